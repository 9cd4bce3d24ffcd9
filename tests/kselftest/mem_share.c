// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * dma-bufs: MEM_EXPORT and MEM_IMPORT. Between two contexts; from udmabuf; and with the test
 * module (mod/), which imports and exports as other drivers do.
 */
#include <linux/dma-buf.h>
#include <linux/memfd.h>
#include <linux/udmabuf.h>
#include <pthread.h>
#include <sys/time.h>

#include "csrec_test_dmabuf.h"
#include "p2p.h"

#define LEN	(256 * KIB)

FIXTURE(share)
{
	int fd;
	int q;
	struct csrec_info info;
	bool p2p;
	char bdf[16];
	char sysfs[64];
	uint32_t key;
	uint8_t *host;
	uint32_t host_key;
	uint8_t *want;
};

static int copy(int fd, int q, uint32_t src, uint64_t src_off, uint32_t dst, uint64_t dst_off,
		uint64_t len)
{
	struct csrec_cmd cmd = cmd_copy(src, src_off, dst, dst_off, len);
	struct csrec_cqe cqe;

	return run_cmd(fd, q, &cmd, &cqe);
}

static uint64_t owned(int fd)
{
	struct csrec_info info;

	return get_info(fd, &info) ? ~0ULL : info.owned_dram;
}

/* Waits for work that another thread of the kernel does; false: it never did. */
#define EVENTUALLY(cond)							\
({										\
	int tries_ = 3000;							\
										\
	while (!(cond) && --tries_)						\
		usleep(10000);							\
	tries_ > 0;								\
})

FIXTURE_SETUP(share)
{
	self->fd = dev_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, get_info(self->fd, &self->info));
	ASSERT_EQ(self->info.cap_dram, self->info.dram_free);
	self->p2p = self->info.features & CSREC_FEATURE_P2PDMA;
	ASSERT_EQ(0, find_device(self->sysfs, sizeof(self->sysfs), self->bdf, sizeof(self->bdf)));
	self->q = q_create(self->fd, 16);
	ASSERT_LT(0, self->q);
	self->host = pages(LEN);
	self->want = malloc(LEN);
	pattern_fill(self->want, LEN, getpid());
	ASSERT_EQ(0, mem_register(self->fd, self->host, LEN, CSREC_RIGHT_READ | CSREC_RIGHT_WRITE,
				  &self->host_key));
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, LEN, &self->key));
	memcpy(self->host, self->want, LEN);
	ASSERT_EQ(0, copy(self->fd, self->q, self->host_key, 0, self->key, 0, LEN));
	memset(self->host, 0, LEN);
}

FIXTURE_TEARDOWN(share)
{
	if (self->fd >= 0)
		close(self->fd);
}

static int udmabuf(uint8_t **p, size_t len)
{
	struct udmabuf_create arg = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = len };
	int dev = open("/dev/udmabuf", O_RDWR), fd;

	if (dev < 0)
		return -errno;
	arg.memfd = memfd_create("csrec", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	if (ftruncate(arg.memfd, len) || fcntl(arg.memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		return -errno;
	*p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, arg.memfd, 0);
	fd = ioctl(dev, UDMABUF_CREATE, &arg);
	if (fd < 0)
		fd = -errno;
	close(arg.memfd);
	close(dev);
	return fd;
}

/* ---- arguments ---- */

TEST_F(share, export_arguments)
{
	struct csrec_mem_export arg = { .size = sizeof(arg), .key = self->key, .rsvd = 1 };
	uint32_t onchip;

	EXPECT_EQ(-EINVAL, xioctl(self->fd, CSREC_IOC_MEM_EXPORT, &arg));
	arg.rsvd = 0;
	arg.flags = 1;
	EXPECT_EQ(-EINVAL, xioctl(self->fd, CSREC_IOC_MEM_EXPORT, &arg));
	EXPECT_EQ(-EINVAL, mem_export(self->fd, self->key, O_WRONLY));
	EXPECT_EQ(-EINVAL, mem_export(self->fd, self->key, O_RDWR | O_NONBLOCK));
	EXPECT_EQ(-EINVAL, mem_export(self->fd, self->key, O_ACCMODE));
	EXPECT_EQ(-ENOENT, mem_export(self->fd, 0, O_RDWR));
	EXPECT_EQ(-ENOENT, mem_export(self->fd, self->key + (1 << CSREC_KEY_GEN_SHIFT), O_RDWR));
	EXPECT_EQ(-EOPNOTSUPP, mem_export(self->fd, self->host_key, O_RDWR));
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_ONCHIP, 4096, &onchip));
	EXPECT_EQ(-EOPNOTSUPP, mem_export(self->fd, onchip, O_RDWR));
	if (!self->p2p) {
		EXPECT_EQ(-EOPNOTSUPP, mem_export(self->fd, self->key, O_RDWR));
	}
	/* nothing was taken by all that */
	EXPECT_EQ(0, mem_free(self->fd, self->key));
	EXPECT_EQ(self->info.cap_dram, dram_free(self->fd));
}

/* Who cannot be told the number of a descriptor has none: nobody would ever close it. */
TEST_F(share, export_untold)
{
	struct csrec_mem_export *arg = (void *)pages(4096);
	int before = dup(self->fd), after;

	if (!self->p2p)
		SKIP(return, "no peer-to-peer memory");
	*arg = (struct csrec_mem_export){ .size = sizeof(*arg), .key = self->key,
					  .open_flags = O_RDWR };
	ASSERT_EQ(0, mprotect(arg, 4096, PROT_READ));
	close(before);
	EXPECT_EQ(-EFAULT, xioctl(self->fd, CSREC_IOC_MEM_EXPORT, arg));
	after = dup(self->fd);
	EXPECT_EQ(before, after);
	close(after);
	EXPECT_EQ(0, mem_free(self->fd, self->key));
	EXPECT_EQ(0, owned(self->fd));
}

TEST_F(share, export_flags)
{
	struct stat st;
	int buf;

	if (!self->p2p)
		SKIP(return, "no peer-to-peer memory");
	buf = mem_export(self->fd, self->key, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, buf);
	EXPECT_EQ(FD_CLOEXEC, fcntl(buf, F_GETFD));
	EXPECT_EQ(O_RDWR, fcntl(buf, F_GETFL) & O_ACCMODE);
	EXPECT_EQ(LEN, lseek(buf, 0, SEEK_END));
	EXPECT_EQ(0, fstat(buf, &st));
	close(buf);
	buf = mem_export(self->fd, self->key, O_RDONLY);
	ASSERT_LE(0, buf);
	EXPECT_EQ(0, fcntl(buf, F_GETFD));
	EXPECT_EQ(O_RDONLY, fcntl(buf, F_GETFL) & O_ACCMODE);
	close(buf);
}

/* A descriptor is not there before its number has been told. */
TEST_F(share, export_that_nobody_is_told)
{
	struct csrec_mem_export *arg = pages(4096);
	int next = dup(0), again;

	if (!self->p2p)
		SKIP(return, "no peer-to-peer memory");
	close(next);
	*arg = (struct csrec_mem_export){ .size = sizeof(*arg), .key = self->key };
	ASSERT_EQ(0, mprotect(arg, 4096, PROT_READ));
	EXPECT_EQ(-EFAULT, xioctl(self->fd, CSREC_IOC_MEM_EXPORT, arg));
	again = dup(0);
	EXPECT_EQ(next, again);
	close(again);
	EXPECT_EQ(0, mem_free(self->fd, self->key));
	EXPECT_EQ(self->info.cap_dram, dram_free(self->fd));
}

TEST_F(share, import_arguments)
{
	struct csrec_mem_import arg = { .size = sizeof(arg), .fd = -1, .rsvd = 1,
					.rights = CSREC_RIGHT_READ };
	uint32_t key;
	uint64_t len;

	EXPECT_EQ(-EINVAL, xioctl(self->fd, CSREC_IOC_MEM_IMPORT, &arg));
	arg.rsvd = 0;
	arg.flags = 1;
	EXPECT_EQ(-EINVAL, xioctl(self->fd, CSREC_IOC_MEM_IMPORT, &arg));
	EXPECT_EQ(-EINVAL, mem_import(self->fd, -1, 0, &key, &len));
	EXPECT_EQ(-EINVAL, mem_import(self->fd, -1, 4, &key, &len));
	EXPECT_EQ(-EBADF, mem_import(self->fd, -1, CSREC_RIGHT_READ, &key, &len));
	EXPECT_EQ(-EINVAL, mem_import(self->fd, self->fd, CSREC_RIGHT_READ, &key, &len));
}

/* The rule of sizes: shorter than the first version, longer with zeroes, longer with more. */
TEST_F(share, lengths)
{
	struct {
		union {
			struct csrec_mem_export ex;
			struct csrec_mem_import im;
		};
		uint64_t more[4];
	} arg;
	uint8_t *p;
	int buf = udmabuf(&p, 4096);

	if (self->p2p) {
		for (int i = 0; i < 3; i++) {
			memset(&arg, 0, sizeof(arg));
			arg.ex = (struct csrec_mem_export){
				.size = sizeof(arg.ex) + 8 * i - (i ? 0 : 1), .key = self->key };
			((uint8_t *)&arg)[sizeof(arg.ex) + 8] = i == 2;
			EXPECT_EQ(i == 0 ? -EINVAL : i == 1 ? 0 : -E2BIG,
				  xioctl(self->fd, CSREC_IOC_MEM_EXPORT, &arg));
		}
	}
	if (buf == -ENOENT)
		SKIP(return, "no /dev/udmabuf");
	for (int i = 0; i < 3; i++) {
		memset(&arg, 0, sizeof(arg));
		arg.im = (struct csrec_mem_import){
			.size = sizeof(arg.im) + 8 * i - (i ? 0 : 1), .fd = buf,
			.rights = CSREC_RIGHT_READ };
		((uint8_t *)&arg)[sizeof(arg.im) + 8] = i == 2;
		EXPECT_EQ(i == 0 ? -EINVAL : i == 1 ? 0 : -E2BIG,
			  xioctl(self->fd, CSREC_IOC_MEM_IMPORT, &arg));
	}
	close(buf);
}

/* ---- between contexts ---- */

TEST_F(share, with_another_context)
{
	int fd = dev_open(), q = q_create(fd, 4), ro, rw;
	uint32_t host, key, rkey;
	uint64_t len;

	if (!self->p2p)
		SKIP(return, "no peer-to-peer memory");
	rw = mem_export(self->fd, self->key, O_RDWR);
	ro = mem_export(self->fd, self->key, O_RDONLY);
	ASSERT_LE(0, rw);
	ASSERT_LE(0, ro);
	ASSERT_EQ(0, mem_register(fd, self->host, LEN, CSREC_RIGHT_READ | CSREC_RIGHT_WRITE, &host));
	EXPECT_EQ(-EACCES, mem_import(fd, ro, CSREC_RIGHT_WRITE, &rkey, &len));
	ASSERT_EQ(0, mem_import(fd, ro, CSREC_RIGHT_READ, &rkey, &len));
	EXPECT_EQ(LEN, len);
	ASSERT_EQ(0, mem_import(fd, rw, CSREC_RIGHT_READ | CSREC_RIGHT_WRITE, &key, &len));
	EXPECT_EQ(LEN, len);
	close(ro);
	close(rw);

	/* what the one has written the other reads, and the other way round */
	ASSERT_EQ(0, copy(fd, q, rkey, 0, host, 0, LEN));
	EXPECT_EQ(0, memcmp(self->host, self->want, LEN));
	EXPECT_EQ(CSREC_ST_BAD_RIGHTS, copy(fd, q, host, 0, rkey, 0, 64));
	ASSERT_EQ(0, copy(fd, q, key, 4096, key, 100 * 4096 / 4, 4096));
	ASSERT_EQ(0, copy(self->fd, self->q, self->key, 100 * 4096 / 4, self->host_key, 0, 4096));
	EXPECT_EQ(0, memcmp(self->host, self->want + 4096, 4096));
	EXPECT_EQ(CSREC_ST_OUT_OF_BOUNDS, copy(fd, q, key, LEN - 63, host, 0, 64));
	/* keys are still those of their contexts */
	EXPECT_EQ(CSREC_ST_BAD_DOMAIN, copy(fd, q, self->key, 0, host, 0, 64));

	/* the exporter goes, the memory stays; on the exporter's account, which is ours as well */
	ASSERT_EQ(0, mem_free(self->fd, self->key));
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(self->info.cap_dram - LEN, dram_free(fd));
	EXPECT_EQ(LEN, owned(fd));
	ASSERT_EQ(0, copy(fd, q, key, 8192, host, 8192, 4096));
	EXPECT_EQ(0, memcmp(self->host + 8192, self->want + 8192, 4096));
	EXPECT_EQ(0, mem_free(fd, key));
	EXPECT_EQ(self->info.cap_dram - LEN, dram_free(fd));
	EXPECT_EQ(0, mem_free(fd, rkey));
	EXPECT_EQ(self->info.cap_dram, dram_free(fd));
	EXPECT_EQ(0, owned(fd));
	close(fd);
}

/* Rights of a region hold whoever does the writing: a drive, or who imports a dma-buf of it. */
TEST_F(share, rights_of_an_import)
{
	int drive = open(DRIVE, O_RDWR), rw, buf;
	struct csrec_p2p_read arg;
	struct csrec_p2p_seg seg;
	uint32_t r, w, key;
	uint64_t len;

	if (!self->p2p)
		SKIP(return, "no peer-to-peer memory");
	ASSERT_LE(0, drive);
	rw = mem_export(self->fd, self->key, O_RDWR);
	ASSERT_LE(0, rw);
	ASSERT_EQ(0, mem_import(self->fd, rw, CSREC_RIGHT_READ, &r, &len));
	ASSERT_EQ(0, mem_import(self->fd, rw, CSREC_RIGHT_WRITE, &w, &len));

	for (int way = 0; way < 3; way += 2) {
		seg = (struct csrec_p2p_seg){ .len = LEN, .key = r };
		EXPECT_EQ(-EACCES, p2p_read(self->fd, &arg, drive, &seg, 1, p2p_ways[way]));
		EXPECT_EQ(0, p2p_write(self->fd, &arg, drive, &seg, 1, p2p_ways[way]));
		seg.key = w;
		EXPECT_EQ(-EACCES, p2p_write(self->fd, &arg, drive, &seg, 1, p2p_ways[way]));
		EXPECT_EQ(0, p2p_read(self->fd, &arg, drive, &seg, 1, p2p_ways[way]));
	}
	/* the drive has had what the memory had from the beginning */
	ASSERT_EQ(0, copy(self->fd, self->q, self->key, 0, self->host_key, 0, LEN));
	EXPECT_EQ(0, memcmp(self->host, self->want, LEN));

	EXPECT_EQ(-EACCES, mem_export(self->fd, r, O_RDWR));
	EXPECT_EQ(-EACCES, mem_export(self->fd, w, O_RDWR));
	EXPECT_EQ(-EACCES, mem_export(self->fd, w, O_RDONLY));
	buf = mem_export(self->fd, r, O_RDONLY);
	ASSERT_LE(0, buf);
	EXPECT_EQ(-EACCES, mem_import(self->fd, buf, CSREC_RIGHT_WRITE, &key, &len));
	close(buf);
	close(rw);
	close(drive);
}

/* The descriptor alone keeps it, and can be passed on. */
TEST_F(share, with_another_process)
{
	int buf, status;
	uint32_t key;
	uint64_t len;
	pid_t pid;

	if (!self->p2p)
		SKIP(return, "no peer-to-peer memory");
	buf = mem_export(self->fd, self->key, O_RDWR);
	ASSERT_LE(0, buf);
	ASSERT_EQ(0, mem_free(self->fd, self->key));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		int fd = dev_open(), q = q_create(fd, 2);
		uint32_t host;
		uint8_t *p = pages(LEN);

		/* not on this process's account */
		if (mem_import(fd, buf, CSREC_RIGHT_READ, &key, &len) || owned(fd) ||
		    mem_register(fd, p, LEN, CSREC_RIGHT_WRITE, &host) ||
		    copy(fd, q, key, 0, host, 0, LEN) || memcmp(p, self->want, LEN))
			_exit(1);
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(LEN, owned(self->fd));
	EXPECT_EQ(self->info.cap_dram - LEN, dram_free(self->fd));
	close(buf);
	EXPECT_EQ(0, owned(self->fd));
	EXPECT_EQ(self->info.cap_dram, dram_free(self->fd));
}

/* ---- memory of others ---- */

TEST_F(share, udmabuf)
{
	uint64_t len;
	uint32_t key;
	uint8_t *p;
	int buf = udmabuf(&p, LEN);

	if (buf == -ENOENT)
		SKIP(return, "no /dev/udmabuf");
	ASSERT_LE(0, buf);
	memcpy(p, self->want, LEN);
	ASSERT_EQ(0, mem_import(self->fd, buf, CSREC_RIGHT_READ | CSREC_RIGHT_WRITE, &key, &len));
	EXPECT_EQ(LEN, len);
	close(buf);
	ASSERT_EQ(0, copy(self->fd, self->q, key, 5, self->host_key, 0, LEN - 5));
	EXPECT_EQ(0, memcmp(self->host, self->want + 5, LEN - 5));
	ASSERT_EQ(0, copy(self->fd, self->q, key, 0, key, 5 * 4096 - 50, 100));
	EXPECT_EQ(0, memcmp(p + 5 * 4096 - 50, self->want, 100));
	EXPECT_EQ(0, memcmp(p + 5 * 4096 + 50, self->want + 5 * 4096 + 50, LEN - 5 * 4096 - 50));
	EXPECT_EQ(CSREC_ST_OUT_OF_BOUNDS, copy(self->fd, self->q, key, LEN - 1, self->host_key, 0, 2));
	/* it cannot be exported again: it is not device memory */
	EXPECT_EQ(-EOPNOTSUPP, mem_export(self->fd, key, O_RDWR));
	EXPECT_EQ(0, mem_free(self->fd, key));
	EXPECT_EQ(CSREC_ST_STALE_KEY, copy(self->fd, self->q, key, 0, self->host_key, 0, 1));
}

TEST_F(share, import_until_slots_run_out)
{
	unsigned int slots = (self->info.cap_table >> CSREC_CAPT_REGIONS_SHIFT) & 0xffff, n = 0;
	uint64_t len;
	uint32_t key, last = 0;
	uint8_t *p;
	int buf = udmabuf(&p, 4096), ret;

	if (buf == -ENOENT)
		SKIP(return, "no /dev/udmabuf");
	ASSERT_LE(0, buf);
	while (!(ret = mem_import(self->fd, buf, CSREC_RIGHT_READ, &key, &len))) {
		last = key;
		ASSERT_LE(++n, slots);
	}
	EXPECT_EQ(-ENOSPC, ret);
	EXPECT_EQ(0, mem_free(self->fd, last));
	EXPECT_EQ(0, mem_import(self->fd, buf, CSREC_RIGHT_READ, &key, &len));
	close(buf);
}

/* ---- with the test module ---- */

#define NEED_MODULE(t)						\
	int t = open("/dev/csrec_test_dmabuf", O_RDWR);		\
								\
	if (t < 0)						\
		SKIP(return, "no test module")

static int test_export(int t, uint32_t n, uint32_t offset, uint32_t flags)
{
	struct csrec_test_export arg = { .pages = n, .offset = offset, .flags = flags };

	return ioctl(t, CSREC_TEST_IOC_EXPORT, &arg) < 0 ? -errno : arg.fd;
}

static int test_attach(int t, int buf, uint32_t flags, struct csrec_test_attach *arg)
{
	*arg = (struct csrec_test_attach){ .fd = buf, .flags = flags };
	return ioctl(t, CSREC_TEST_IOC_ATTACH, arg) < 0 ? -errno : 0;
}

/* Imported memory stays until its key is freed: its exporter can neither move it nor take it back. */
TEST_F(share, import_is_pinned)
{
	uint64_t len;
	uint32_t key;
	uint8_t *p;
	int buf;

	NEED_MODULE(t);
	buf = test_export(t, 600, 0, 0);
	ASSERT_LE(0, buf);
	p = mmap(NULL, 600 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, buf, 0);
	ASSERT_NE(MAP_FAILED, p);
	ASSERT_EQ(0, mem_import(self->fd, buf, CSREC_RIGHT_READ | CSREC_RIGHT_WRITE, &key, &len));
	EXPECT_EQ(600 * 4096, len);
	EXPECT_EQ(1, ioctl(t, CSREC_TEST_IOC_MAPS));
	EXPECT_LT(0, ioctl(t, CSREC_TEST_IOC_PINS));
	/* single pages, more than one list of them */
	for (int i = 0; i < 600; i++)
		pattern_fill(p + i * 4096, 4096, i);
	for (int i = 0; i < 600; i += 37) {
		ASSERT_EQ(0, copy(self->fd, self->q, key, i * 4096, self->host_key, 0, 4096));
		EXPECT_EQ(0, memcmp(p + i * 4096, self->host, 4096)) TH_LOG("page %d", i);
	}
	ASSERT_EQ(0, copy(self->fd, self->q, key, 511 * 4096, self->host_key, 0, 3 * 4096));
	EXPECT_EQ(0, memcmp(p + 511 * 4096, self->host, 3 * 4096));

	/* nobody listens, and nothing changes */
	ASSERT_EQ(0, ioctl(t, CSREC_TEST_IOC_REVOKE));
	EXPECT_EQ(1, ioctl(t, CSREC_TEST_IOC_MAPS));
	EXPECT_LT(0, ioctl(t, CSREC_TEST_IOC_PINS));
	EXPECT_EQ(0, copy(self->fd, self->q, key, 0, self->host_key, 0, 64));
	EXPECT_EQ(0, memcmp(p, self->host, 64));

	/* whichever way it is given up */
	ASSERT_EQ(0, mem_free(self->fd, key));
	EXPECT_EQ(0, ioctl(t, CSREC_TEST_IOC_MAPS));
	EXPECT_EQ(0, ioctl(t, CSREC_TEST_IOC_PINS));
	EXPECT_EQ(CSREC_ST_STALE_KEY, copy(self->fd, self->q, key, 0, self->host_key, 0, 64));
	ASSERT_EQ(0, mem_import(self->fd, buf, CSREC_RIGHT_READ, &key, &len));
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(0, ioctl(t, CSREC_TEST_IOC_MAPS));
	EXPECT_EQ(0, ioctl(t, CSREC_TEST_IOC_PINS));
	close(buf);
	close(t);
}

/* So an exporter that must be able to take it back does not let us in. */
TEST_F(share, import_of_what_may_be_taken_back)
{
	uint64_t len;
	uint32_t key;
	int buf;

	NEED_MODULE(t);
	buf = test_export(t, 4, 0, CSREC_TEST_REVOCABLE);
	ASSERT_LE(0, buf);
	EXPECT_EQ(-EOPNOTSUPP, mem_import(self->fd, buf, CSREC_RIGHT_READ, &key, &len));
	EXPECT_EQ(0, ioctl(t, CSREC_TEST_IOC_MAPS));
	EXPECT_EQ(0, ioctl(t, CSREC_TEST_IOC_PINS));
	close(buf);
	close(t);
}

/* A reset takes the device's key, and gives the exporter its memory back. */
TEST_F(share, import_and_reset)
{
	uint64_t len;
	uint32_t key;
	int buf;

	NEED_MODULE(t);
	buf = test_export(t, 4, 0, 0);
	ASSERT_LE(0, buf);
	ASSERT_EQ(0, mem_import(self->fd, buf, CSREC_RIGHT_READ, &key, &len));
	ASSERT_EQ(0, reset(self->sysfs));
	EXPECT_EQ(-ENODEV, mem_free(self->fd, key));
	EXPECT_EQ(0, ioctl(t, CSREC_TEST_IOC_MAPS));
	EXPECT_EQ(0, ioctl(t, CSREC_TEST_IOC_PINS));
	close(buf);
	close(t);
}

static void on_signal(int sig)
{
}

/* Who imports waits until the memory is where it stays, or for a signal. */
TEST_F(share, import_while_it_moves)
{
	struct sigaction sa = { .sa_handler = on_signal };
	struct itimerval soon = { .it_value.tv_usec = 100000, .it_interval.tv_usec = 100000 };
	struct itimerval never = {};
	uint64_t len;
	uint32_t key;
	int buf;

	NEED_MODULE(t);
	buf = test_export(t, 4, 0, 0);
	ASSERT_LE(0, buf);
	ASSERT_EQ(0, ioctl(t, CSREC_TEST_IOC_MOVE));
	ASSERT_EQ(0, sigaction(SIGALRM, &sa, NULL));
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &soon, NULL));
	EXPECT_EQ(-EINTR, mem_import(self->fd, buf, CSREC_RIGHT_READ, &key, &len));
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &never, NULL));
	ASSERT_EQ(0, ioctl(t, CSREC_TEST_IOC_MOVE));
	EXPECT_EQ(0, mem_import(self->fd, buf, CSREC_RIGHT_READ, &key, &len));
	close(buf);
	close(t);
}

TEST_F(share, import_of_parts_of_pages)
{
	uint64_t len;
	uint32_t key;
	int buf;

	NEED_MODULE(t);
	buf = test_export(t, 4, 512, 0);
	ASSERT_LE(0, buf);
	EXPECT_EQ(-EOPNOTSUPP, mem_import(self->fd, buf, CSREC_RIGHT_READ, &key, &len));
	EXPECT_EQ(0, ioctl(t, CSREC_TEST_IOC_MAPS));
	EXPECT_EQ(0, ioctl(t, CSREC_TEST_IOC_PINS));
	close(buf);
	close(t);
}

/* Row 38: who cannot reach the memory where it is gets an error, and not a copy elsewhere. */
TEST_F(share, export_to_whom)
{
	struct csrec_test_attach arg;
	int buf;

	NEED_MODULE(t);
	if (!self->p2p)
		SKIP(return, "no peer-to-peer memory");
	buf = mem_export(self->fd, self->key, O_RDWR);
	ASSERT_LE(0, buf);
	EXPECT_EQ(-EOPNOTSUPP, test_attach(t, buf, CSREC_TEST_STATIC, &arg));
	EXPECT_EQ(-EOPNOTSUPP, test_attach(t, buf, 0, &arg));
	EXPECT_EQ(-EOPNOTSUPP, test_attach(t, buf, CSREC_TEST_REVOCABLE, &arg));
	/* the device may go: who cannot be told is not let in */
	EXPECT_EQ(-EOPNOTSUPP, test_attach(t, buf, CSREC_TEST_PEER2PEER, &arg));
	EXPECT_EQ(0, test_attach(t, buf, CSREC_TEST_PEER2PEER | CSREC_TEST_REVOCABLE, &arg));
	close(t);
	close(buf);
	EXPECT_EQ(0, mem_free(self->fd, self->key));
	EXPECT_EQ(self->info.cap_dram, dram_free(self->fd));
}

/* Nor does another device write to what may only be read. */
TEST_F(share, export_to_whom_writes)
{
	const uint32_t sort = CSREC_TEST_PEER2PEER | CSREC_TEST_REVOCABLE;
	struct csrec_test_attach arg;
	int buf;

	NEED_MODULE(t);
	if (!self->p2p)
		SKIP(return, "no peer-to-peer memory");
	buf = mem_export(self->fd, self->key, O_RDONLY);
	ASSERT_LE(0, buf);
	EXPECT_EQ(-EACCES, test_attach(t, buf, sort, &arg));
	EXPECT_EQ(0, test_attach(t, buf, sort | CSREC_TEST_READS, &arg));
	close(t);
	close(buf);
}

/* The bus addresses are those of this memory in the device's BAR. Row 9: in segments that fit. */
TEST_F(share, export_addresses)
{
	struct csrec_mem_alloc alloc = { .size = sizeof(alloc), .len = LEN,
					 .kind = CSREC_REGION_DRAM };
	int pm = open("/proc/self/pagemap", O_RDONLY), buf;
	struct csrec_test_attach arg;
	uint64_t entry;
	uint8_t *p;

	NEED_MODULE(t);
	if (!self->p2p)
		SKIP(return, "no peer-to-peer memory");
	ASSERT_EQ(0, xioctl(self->fd, CSREC_IOC_MEM_ALLOC, &alloc));
	p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, self->fd, alloc.mmap_offset);
	ASSERT_NE(MAP_FAILED, p);
	*p = 1;
	ASSERT_EQ(8, pread(pm, &entry, 8, (uintptr_t)p / 4096 * 8));
	buf = mem_export(self->fd, alloc.key, O_RDWR);
	ASSERT_LE(0, buf);
	ASSERT_EQ(0, test_attach(t, buf, CSREC_TEST_PEER2PEER | CSREC_TEST_REVOCABLE, &arg));
	/* PCI addresses are physical addresses on this machine */
	EXPECT_EQ((entry & ((1ULL << 55) - 1)) * 4096, arg.first);
	EXPECT_EQ(LEN, arg.total);
	close(t);
	t = open("/dev/csrec_test_dmabuf", O_RDWR);
	ASSERT_LE(0, t);
	ASSERT_EQ(0, test_attach(t, buf, CSREC_TEST_PEER2PEER | CSREC_TEST_REVOCABLE |
				 CSREC_TEST_SHORT, &arg));
	EXPECT_EQ(LEN, arg.total);
	EXPECT_EQ(64 * KIB, arg.longest);
	EXPECT_EQ(LEN / (64 * KIB), arg.nents);
	close(t);
	close(buf);
}

/* An importer keeps the memory, when key, descriptor and context are gone. */
TEST_F(share, export_outlives)
{
	struct csrec_test_attach arg;
	int buf, fd = dev_open();

	NEED_MODULE(t);
	if (!self->p2p)
		SKIP(return, "no peer-to-peer memory");
	buf = mem_export(self->fd, self->key, O_RDWR);
	ASSERT_LE(0, buf);
	ASSERT_EQ(0, test_attach(t, buf, CSREC_TEST_PEER2PEER | CSREC_TEST_REVOCABLE, &arg));
	close(buf);
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(self->info.cap_dram - LEN, dram_free(fd));
	EXPECT_EQ(LEN, owned(fd));
	EXPECT_EQ(0, ioctl(t, CSREC_TEST_IOC_TAKEN));
	close(t);
	EXPECT_EQ(self->info.cap_dram, dram_free(fd));
	EXPECT_EQ(0, owned(fd));
	close(fd);
}

static void check_taken(struct __test_metadata *_metadata, int t, int buf, uint64_t cap_dram)
{
	struct csrec_test_attach arg;
	uint64_t len;
	uint32_t key;
	int fd = -1;

	EXPECT_EQ(1, ioctl(t, CSREC_TEST_IOC_TAKEN));
	EXPECT_TRUE(EVENTUALLY((fd = dev_open()) >= 0));
	/* the memory is free, though the dma-buf is still there: it is of nothing now */
	EXPECT_EQ(cap_dram, dram_free(fd));
	EXPECT_EQ(-EOPNOTSUPP, mem_import(fd, buf, CSREC_RIGHT_READ, &key, &len));
	close(t);
	t = open("/dev/csrec_test_dmabuf", O_RDWR);
	EXPECT_EQ(-ENODEV, test_attach(t, buf, CSREC_TEST_PEER2PEER | CSREC_TEST_REVOCABLE, &arg));
	close(t);
	close(buf);
	EXPECT_EQ(cap_dram, dram_free(fd));
	close(fd);
}

TEST_F(share, export_and_reset)
{
	struct csrec_test_attach arg;
	int buf;

	NEED_MODULE(t);
	if (!self->p2p)
		SKIP(return, "no peer-to-peer memory");
	buf = mem_export(self->fd, self->key, O_RDWR);
	ASSERT_LE(0, buf);
	ASSERT_EQ(0, test_attach(t, buf, CSREC_TEST_PEER2PEER | CSREC_TEST_REVOCABLE, &arg));
	ASSERT_EQ(0, reset(self->sysfs));
	check_taken(_metadata, t, buf, self->info.cap_dram);
}

TEST_F(share, export_and_unbind)
{
	struct csrec_test_attach arg;
	int buf;

	NEED_MODULE(t);
	if (!self->p2p)
		SKIP(return, "no peer-to-peer memory");
	buf = mem_export(self->fd, self->key, O_RDWR);
	ASSERT_LE(0, buf);
	ASSERT_EQ(0, test_attach(t, buf, CSREC_TEST_PEER2PEER | CSREC_TEST_REVOCABLE, &arg));
	ASSERT_EQ(0, write_file("/sys/bus/pci/drivers/csrec/unbind", self->bdf));
	ASSERT_EQ(0, write_file("/sys/bus/pci/drivers/csrec/bind", self->bdf));
	check_taken(_metadata, t, buf, self->info.cap_dram);
}

TEST_HARNESS_MAIN
