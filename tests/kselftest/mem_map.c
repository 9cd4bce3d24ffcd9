// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Device memory in user space: mappings of DRAM regions, direct I/O between them and a drive
 * with no csrec code in the path, and what becomes of them when the region, the context, the
 * process or the device goes. What is in device memory is looked at by the device, with COPY.
 */
#include <linux/io_uring.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "csrec_test.h"

#define LEN		(256 * KIB)

FIXTURE(map)
{
	int fd;
	int q;
	int drive;
	struct csrec_info info;
	char sysfs[80];		/* the PCI device's directory */
	char bdf[16];
	uint32_t key;
	uint64_t offset;
	uint8_t *p;		/* the mapping */
	uint8_t *host;
	uint32_t host_key;
	uint8_t *want;
};

static void *map(int fd, uint64_t len, uint64_t offset)
{
	return mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
}

static uint64_t pool_available(const char *sysfs)
{
	char path[128], text[32] = {};
	int fd;

	snprintf(path, sizeof(path), "%s/p2pmem/available", sysfs);
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		return ~0ULL;
	close(fd);
	return strtoull(text, NULL, 10);
}

FIXTURE_SETUP(map)
{
	self->fd = dev_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, get_info(self->fd, &self->info));
	ASSERT_EQ(self->info.cap_dram, self->info.dram_free);
	self->q = q_create(self->fd, 16);
	ASSERT_LT(0, self->q);
	if (!(self->info.features & CSREC_FEATURE_MEM_MAP))
		SKIP(return, "no peer-to-peer memory");
	ASSERT_EQ(0, find_device(self->sysfs, sizeof(self->sysfs), self->bdf, sizeof(self->bdf)));
	ASSERT_EQ(self->info.dram_free, pool_available(self->sysfs));

	self->drive = open(DRIVE, O_RDWR | O_DIRECT);
	ASSERT_LE(0, self->drive);
	self->want = aligned_alloc(4096, LEN);
	pattern_fill(self->want, LEN, getpid());
	ASSERT_EQ(LEN, pwrite(self->drive, self->want, LEN, 0));

	self->host = pages(LEN);
	ASSERT_EQ(0, mem_register(self->fd, self->host, LEN, CSREC_RIGHT_READ | CSREC_RIGHT_WRITE,
				  &self->host_key));
	ASSERT_EQ(0, mem_alloc_map(self->fd, LEN, 0, &self->key, &self->offset));
	ASSERT_NE(0, self->offset);
	self->p = map(self->fd, LEN, self->offset);
	ASSERT_NE(MAP_FAILED, self->p);
}

FIXTURE_TEARDOWN(map)
{
	if (self->fd >= 0)
		close(self->fd);
}

/* What the device finds in a region: 0, or the status. It goes to self->host. */
static int look(int fd, int q, uint32_t key, uint64_t off, uint32_t host_key, uint64_t len)
{
	struct csrec_cmd cmd = cmd_copy(key, off, host_key, 0, len);
	struct csrec_cqe cqe;

	return run_cmd(fd, q, &cmd, &cqe);
}

/*
 * Another context takes up to @most bytes of device memory, from the bottom, which is where
 * the kernel looks first, and writes to all of it. How much it got; what was not zero in it.
 */
static uint64_t others_take(uint64_t most, long *nonzero)
{
	uint8_t *buf = pages(LEN);
	uint64_t got = 0;
	uint32_t host, key;
	struct csrec_cmd cmd;
	struct csrec_cqe cqe;
	int fd = dev_open(), q = q_create(fd, 4);

	*nonzero = -1;
	if (q < 0 || mem_register(fd, buf, LEN, CSREC_RIGHT_WRITE, &host))
		return 0;
	*nonzero = 0;
	for (uint64_t len = most; len >= 4096; len /= 2) {
		while (got < most && !mem_alloc(fd, CSREC_REGION_DRAM, len, &key)) {
			uint64_t part = len < LEN ? len : LEN;

			got += len;
			if (look(fd, q, key, 0, host, part))
				*nonzero += 1;
			for (uint64_t i = 0; i < part; i++)
				*nonzero += buf[i] != 0;
			cmd = cmd_fill(key, 0, len, 0xffffffff);
			if (run_cmd(fd, q, &cmd, &cqe))
				*nonzero += 1;
		}
	}
	munmap(buf, LEN);
	close(fd);
	return got;
}

/* ---- what can be mapped ---- */

TEST_F(map, cpu_and_device_see_the_same)
{
	struct csrec_cmd cmd;
	struct csrec_cqe cqe;

	for (size_t i = 0; i < LEN; i += 8) {
		ASSERT_EQ(0, *(uint64_t *)(self->p + i));
	}
	for (size_t i = 0; i < LEN; i += 8)
		*(uint64_t *)(self->p + i) = *(uint64_t *)(self->want + i);
	ASSERT_EQ(0, look(self->fd, self->q, self->key, 0, self->host_key, LEN));
	EXPECT_EQ(0, memcmp(self->host, self->want, LEN));

	cmd = cmd_fill(self->key, 8192, 4096, 0xa5b6c7d8);
	ASSERT_EQ(0, run_cmd(self->fd, self->q, &cmd, &cqe));
	for (size_t i = 8192; i < 12288; i += 4) {
		ASSERT_EQ(0xa5b6c7d8, *(uint32_t *)(self->p + i));
	}
	EXPECT_EQ(0, memcmp(self->p + 12288, self->want + 12288, 4096));
}

TEST_F(map, refused)
{
	uint64_t off = self->offset;
	void *p;

	/* only shared, and not to be executed */
	p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE, self->fd, off);
	EXPECT_EQ(MAP_FAILED, p);
	EXPECT_EQ(EINVAL, errno);
	p = mmap(NULL, LEN, PROT_READ | PROT_EXEC, MAP_SHARED, self->fd, off);
	EXPECT_EQ(MAP_FAILED, p);
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, mprotect(self->p, LEN, PROT_READ | PROT_EXEC));
	/* as a whole, and nothing that is no region's */
	p = map(self->fd, LEN - 4096, off);
	EXPECT_EQ(MAP_FAILED, p);
	EXPECT_EQ(EINVAL, errno);
	p = map(self->fd, LEN + 4096, off);
	EXPECT_EQ(MAP_FAILED, p);
	EXPECT_EQ(EINVAL, errno);
	p = map(self->fd, 4096, off + LEN + (1ULL << 30));
	EXPECT_EQ(MAP_FAILED, p);
	EXPECT_EQ(EINVAL, errno);
	/* a mapping does not grow into what lies behind */
	EXPECT_EQ(MAP_FAILED, mremap(self->p, LEN, LEN + 4096, MREMAP_MAYMOVE));
	/* a key that is gone cannot be mapped any more */
	ASSERT_EQ(0, mem_free(self->fd, self->key));
	p = map(self->fd, LEN, off);
	EXPECT_EQ(MAP_FAILED, p);
	EXPECT_EQ(EINVAL, errno);
}

/* Offsets are a context's own: the same number in another one is not this memory. */
TEST_F(map, offset_is_of_its_context)
{
	int fd = dev_open();

	EXPECT_EQ(MAP_FAILED, map(fd, LEN, self->offset));
	close(fd);
}

TEST_F(map, onchip_has_no_offset)
{
	struct csrec_mem_alloc arg = { .size = sizeof(arg), .len = 4096, .mmap_offset = ~0ULL,
				       .kind = CSREC_REGION_ONCHIP };

	ASSERT_EQ(0, xioctl(self->fd, CSREC_IOC_MEM_ALLOC, &arg));
	EXPECT_EQ(0, arg.mmap_offset);
}

/* Many mappings of one region, parts of them, moved, given back and touched again. */
TEST_F(map, pieces)
{
	uint8_t *a = map(self->fd, LEN, self->offset), *b;

	ASSERT_NE(MAP_FAILED, a);
	memset(a, 1, LEN);
	EXPECT_EQ(1, self->p[LEN - 1]);
	ASSERT_EQ(0, munmap(a + 8192, 4096));
	EXPECT_EQ(1, a[0]);
	EXPECT_EQ(1, a[12288]);
	a[12288] = 2;
	EXPECT_EQ(2, self->p[12288]);
	b = pages(LEN);
	b = mremap(a + 12288, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, b);
	ASSERT_NE(MAP_FAILED, b);
	EXPECT_EQ(2, b[0]);
	b[1] = 3;
	EXPECT_EQ(3, self->p[12289]);
	ASSERT_EQ(0, madvise(self->p, LEN, MADV_DONTNEED));
	EXPECT_EQ(3, self->p[12289]);
}

/* The same pages as physical memory: aligned as asked for, and disjoint. */
TEST_F(map, alignment)
{
	static const uint64_t aligns[] = { 1, 64, 4096, 8192, 64 * KIB, MIB, 2 * MIB, 16 * MIB };
	uint64_t bar = 0, used = self->info.dram_free - dram_free(self->fd), start, offset, entry;
	char path[128], line[128];
	int pm = open("/proc/self/pagemap", O_RDONLY);
	uint32_t key;
	FILE *f;

	ASSERT_LE(0, pm);
	snprintf(path, sizeof(path), "%s/resource", self->sysfs);
	f = fopen(path, "r");
	ASSERT_NE(NULL, f);
	for (int i = 0; i <= CSREC_BAR_DRAM; i++)
		ASSERT_NE(NULL, fgets(line, sizeof(line), f));
	fclose(f);
	bar = strtoull(line, NULL, 16);
	ASSERT_NE(0, bar);
	for (unsigned int i = 0; i < sizeof(aligns) / sizeof(aligns[0]); i++) {
		uint8_t *p;

		ASSERT_EQ(0, mem_alloc_map(self->fd, 12288, aligns[i], &key, &offset));
		used += 12288;
		EXPECT_EQ(self->info.dram_free - used, dram_free(self->fd));
		p = map(self->fd, 12288, offset);
		ASSERT_NE(MAP_FAILED, p);
		*p = i + 1;
		ASSERT_EQ(8, pread(pm, &entry, 8, (uintptr_t)p / 4096 * 8));
		start = (entry & ((1ULL << 55) - 1)) * 4096 - bar;
		EXPECT_GT(self->info.cap_dram, start);
		EXPECT_EQ(0, start % aligns[i])
			TH_LOG("alignment %lx: at %lx", (long)aligns[i], (long)start);
	}
}

/* ---- direct I/O ---- */

TEST_F(map, direct_read_and_write)
{
	struct csrec_cmd cmd;
	struct csrec_cqe cqe;

	/* drive to device */
	ASSERT_EQ(LEN, pread(self->drive, self->p, LEN, 0));
	ASSERT_EQ(0, look(self->fd, self->q, self->key, 0, self->host_key, LEN));
	EXPECT_EQ(0, memcmp(self->host, self->want, LEN));
	/* device to drive */
	cmd = cmd_fill(self->key, 4096, 8192, 0x13572468);
	ASSERT_EQ(0, run_cmd(self->fd, self->q, &cmd, &cqe));
	ASSERT_EQ(8192, pwrite(self->drive, self->p + 4096, 8192, 64 * KIB));
	for (int i = 0; i < 8192; i += 4)
		*(uint32_t *)(self->want + 64 * KIB + i) = 0x13572468;
	memset(self->host, 0, LEN);
	ASSERT_EQ(LEN, pread(self->drive, self->host, LEN, 0));
	EXPECT_EQ(0, memcmp(self->host, self->want, LEN));
}

TEST_F(map, direct_vectored)
{
	uint8_t *ram = aligned_alloc(4096, 8192);
	struct iovec iov[] = {
		{ ram, 4096 }, { self->p + 4096, 8192 }, { ram + 4096, 4096 }, { self->p, 4096 },
	};

	ASSERT_EQ(20480, preadv(self->drive, iov, 4, 4096));
	EXPECT_EQ(0, memcmp(ram, self->want + 4096, 4096));
	EXPECT_EQ(0, memcmp(ram + 4096, self->want + 16384, 4096));
	ASSERT_EQ(0, look(self->fd, self->q, self->key, 0, self->host_key, 12288));
	EXPECT_EQ(0, memcmp(self->host + 4096, self->want + 8192, 8192));
	EXPECT_EQ(0, memcmp(self->host, self->want + 20480, 4096));
	ASSERT_EQ(20480, pwritev(self->drive, iov, 4, 128 * KIB));
	ASSERT_EQ(20480, pread(self->drive, self->host, 20480, 128 * KIB));
	EXPECT_EQ(0, memcmp(self->host, self->want + 4096, 20480));
}

struct ring {
	int fd;
	unsigned int *sq_tail, *sq_array, *cq_head, *cq_tail, cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
};

static int ring_open(struct ring *r, unsigned int n)
{
	struct io_uring_params par = {};
	size_t len;
	char *p;

	r->fd = syscall(SYS_io_uring_setup, n, &par);
	if (r->fd < 0)
		return -errno;
	len = par.cq_off.cqes + par.cq_entries * sizeof(struct io_uring_cqe);
	if (len < par.sq_off.array + par.sq_entries * 4)
		len = par.sq_off.array + par.sq_entries * 4;
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, IORING_OFF_SQ_RING);
	r->sqes = mmap(NULL, par.sq_entries * sizeof(*r->sqes), PROT_READ | PROT_WRITE, MAP_SHARED,
		       r->fd, IORING_OFF_SQES);
	if (p == MAP_FAILED || r->sqes == MAP_FAILED)
		return -errno;
	r->sq_tail = (void *)(p + par.sq_off.tail);
	r->sq_array = (void *)(p + par.sq_off.array);
	r->cq_head = (void *)(p + par.cq_off.head);
	r->cq_tail = (void *)(p + par.cq_off.tail);
	r->cq_mask = *(unsigned int *)(p + par.cq_off.ring_mask);
	r->cqes = (void *)(p + par.cq_off.cqes);
	return 0;
}

/* @n transfers at once, of 4 KiB each: how many are complete and right, or -errno. */
static int ring_transfer(struct ring *r, uint8_t op, int file, uint8_t *p, uint64_t off, int n)
{
	unsigned int tail = *r->sq_tail;
	int good = 0;

	for (int i = 0; i < n; i++) {
		r->sqes[i] = (struct io_uring_sqe){
			.opcode = op, .fd = file, .off = off + i * 4096UL, .len = 4096,
			.addr = (uintptr_t)(p + i * 4096UL),
		};
		r->sq_array[(tail + i) % 64] = i;
	}
	__atomic_store_n(r->sq_tail, tail + n, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, r->fd, n, n, IORING_ENTER_GETEVENTS, NULL, 0) != n)
		return -errno;
	while (*r->cq_head != __atomic_load_n(r->cq_tail, __ATOMIC_ACQUIRE)) {
		good += r->cqes[*r->cq_head & r->cq_mask].res == 4096;
		(*r->cq_head)++;
	}
	return good;
}

TEST_F(map, io_uring)
{
	struct iovec iov = { self->p, LEN };
	struct ring r;

	ASSERT_EQ(0, ring_open(&r, 64));
	EXPECT_EQ(64, ring_transfer(&r, IORING_OP_READ, self->drive, self->p, 0, 64));
	ASSERT_EQ(0, look(self->fd, self->q, self->key, 0, self->host_key, LEN));
	EXPECT_EQ(0, memcmp(self->host, self->want, LEN));
	EXPECT_EQ(64, ring_transfer(&r, IORING_OP_WRITE, self->drive, self->p, MIB, 64));
	ASSERT_EQ(LEN, pread(self->drive, self->host, LEN, MIB));
	EXPECT_EQ(0, memcmp(self->host, self->want, LEN));
	/* row 56: buffers that are registered are pinned for long, which these pages never are */
	EXPECT_EQ(-1, syscall(SYS_io_uring_register, r.fd, IORING_REGISTER_BUFFERS, &iov, 1));
	EXPECT_TRUE(errno == EFAULT || errno == EREMOTEIO);
	close(r.fd);
}

/* For the same reason it is no user memory to register. */
TEST_F(map, is_not_registered)
{
	uint32_t key;

	EXPECT_EQ(-EFAULT, mem_register(self->fd, self->p, LEN, CSREC_RIGHT_READ, &key));
	self->p[0] = 1;
	EXPECT_EQ(-EFAULT, mem_register(self->fd, self->p, LEN, CSREC_RIGHT_READ, &key));
	EXPECT_EQ(-EFAULT, mem_register(self->fd, self->p, LEN, CSREC_RIGHT_WRITE, &key));
}

/* A queue that cannot do it says so, and nothing arrives. */
TEST_F(map, drive_that_cannot)
{
	int ram = open("/dev/ram0", O_RDWR | O_DIRECT);

	if (ram < 0)
		SKIP(return, "no RAM disk");
	EXPECT_EQ(-1, pread(ram, self->p, 4096, 0));
	EXPECT_EQ(EREMOTEIO, errno);
	EXPECT_EQ(-1, pwrite(ram, self->p, 4096, 0));
	EXPECT_EQ(EREMOTEIO, errno);
	/* through the page cache the CPU copies */
	close(ram);
}

/* ---- ends ---- */

/* Takes memory of the kernel's pool by way of its own file, which does not zero it. */
static void *hog(const char *sysfs, uint64_t len)
{
	char path[128];
	void *p;
	int fd;

	snprintf(path, sizeof(path), "%s/p2pmem/allocate", sysfs);
	fd = open(path, O_RDWR);
	p = map(fd, len, 0);
	close(fd);
	return p;
}

/* The region is freed, the mapping stays: the memory is nobody else's until it goes, too. */
TEST_F(map, outlives_its_key)
{
	uint64_t rest;
	long nonzero;

	memset(self->p, 0x5a, LEN);
	ASSERT_EQ(0, mem_free(self->fd, self->key));
	EXPECT_EQ(-ENOENT, mem_free(self->fd, self->key));
	EXPECT_EQ(self->info.cap_dram - LEN, dram_free(self->fd));
	ASSERT_EQ(LEN, pread(self->drive, self->p, LEN, 0));
	/* everything that can be had; most of it without having it zeroed, which takes time */
	rest = (self->info.cap_dram - LEN) % (8 * MIB);
	ASSERT_NE(MAP_FAILED, hog(self->sysfs, self->info.cap_dram - LEN - rest));
	EXPECT_EQ(rest, dram_free(self->fd));
	EXPECT_EQ(rest, others_take(MIB * 8, &nonzero));
	EXPECT_EQ(0, nonzero);
	EXPECT_EQ(0, memcmp(self->p, self->want, LEN));
	ASSERT_EQ(0, munmap(self->p, LEN));
	EXPECT_EQ(rest + LEN, dram_free(self->fd));
	/* and the next one finds zeroes */
	EXPECT_EQ(LEN, others_take(LEN, &nonzero));
	EXPECT_EQ(0, nonzero);
}

/* A part of a mapping is enough to keep all. */
TEST_F(map, outlives_its_key_in_part)
{
	ASSERT_EQ(0, munmap(self->p, LEN - 4096));
	self->p[LEN - 1] = 7;
	ASSERT_EQ(0, mem_free(self->fd, self->key));
	EXPECT_EQ(self->info.cap_dram - LEN, dram_free(self->fd));
	EXPECT_EQ(7, self->p[LEN - 1]);
	ASSERT_EQ(0, munmap(self->p + LEN - 4096, 4096));
	EXPECT_EQ(self->info.cap_dram, dram_free(self->fd));
}

TEST_F(map, outlives_its_descriptor)
{
	int fd = dev_open();

	memset(self->p, 0x5a, LEN);
	close(self->fd);
	self->fd = fd;
	EXPECT_EQ(0x5a, self->p[LEN - 1]);
	ASSERT_EQ(LEN, pread(self->drive, self->p, LEN, 0));
	EXPECT_EQ(0, memcmp(self->p, self->want, LEN));
	EXPECT_EQ(self->info.cap_dram - LEN, dram_free(fd));
	ASSERT_EQ(0, munmap(self->p, LEN));
	EXPECT_EQ(self->info.cap_dram, dram_free(fd));
}

TEST_F(map, fork)
{
	int status;
	pid_t pid;

	self->p[0] = 1;
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		/* the parent's mapping is gone meanwhile */
		while (__atomic_load_n(self->p, __ATOMIC_ACQUIRE) != 2)
			usleep(1000);
		self->p[4096] = 3;
		_exit(pread(self->drive, self->p + 8192, 4096, 0) == 4096 &&
		      !memcmp(self->p + 8192, self->want, 4096) ? 0 : 1);
	}
	ASSERT_EQ(0, mem_free(self->fd, self->key));
	self->p[0] = 2;
	ASSERT_EQ(0, munmap(self->p, LEN));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(self->info.cap_dram, dram_free(self->fd));
}

/* ---- transfers in flight ---- */

struct loop {
	pthread_t thread;
	int drive;
	uint8_t *p;
	volatile bool stop;
	volatile long done;
	int err;
};

static void *loop_thread(void *arg)
{
	struct loop *l = arg;

	while (!l->stop) {
		/* a read that is cut short says why when it is tried again */
		if (pread(l->drive, l->p, LEN, 0) < 0) {
			l->err = errno;
			break;
		}
		l->done++;
	}
	return NULL;
}

static int loop_start(struct loop *l, int drive, uint8_t *p)
{
	*l = (struct loop){ .drive = drive, .p = p };
	if (pthread_create(&l->thread, NULL, loop_thread, l))
		return -1;
	while (!l->done && !l->err)
		sched_yield();
	return 0;
}

/*
 * Key and mapping go while a drive writes: nobody else gets the memory before it is done, and
 * then it comes back. The transfer may end with EFAULT where it begins too late.
 */
TEST_F(map, freed_in_flight)
{
	struct loop l[2];
	long nonzero;

	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < 2; i++)
			ASSERT_EQ(0, loop_start(&l[i], self->drive, self->p));
		ASSERT_EQ(0, mem_free(self->fd, self->key));
		/* not munmap(): something else of ours would come to lie where the threads read to */
		ASSERT_EQ(self->p, mmap(self->p, LEN, PROT_NONE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
		/* a late transfer would show in what has been zeroed for them */
		EXPECT_EQ(2 * LEN, others_take(2 * LEN, &nonzero));
		EXPECT_EQ(0, nonzero);
		for (int i = 0; i < 2; i++) {
			l[i].stop = true;
			ASSERT_EQ(0, pthread_join(l[i].thread, NULL));
			if (l[i].err) {
				EXPECT_EQ(EFAULT, l[i].err);
			}
		}
		EXPECT_EQ(self->info.cap_dram, dram_free(self->fd));
		ASSERT_EQ(0, mem_alloc_map(self->fd, LEN, 0, &self->key, &self->offset));
		self->p = map(self->fd, LEN, self->offset);
		ASSERT_NE(MAP_FAILED, self->p);
	}
}

/* Readers of other processes: pid, or -1. */
static pid_t start_reader(int drive, uint8_t *p, int *ready)
{
	int fds[2];
	pid_t pid;
	char c;

	if (pipe(fds))
		return -1;
	pid = fork();
	if (!pid) {
		struct loop l = { .drive = drive, .p = p };

		if (pread(drive, p, LEN, 0) != LEN || write(fds[1], "", 1) != 1)
			_exit(100);
		loop_thread(&l);
		_exit(l.err);
	}
	close(fds[1]);
	*ready = read(fds[0], &c, 1) == 1;
	close(fds[0]);
	return pid;
}

TEST_F(map, killed_in_flight)
{
	pid_t pids[4];
	int status, ready;

	for (int i = 0; i < 4; i++) {
		pids[i] = start_reader(self->drive, self->p, &ready);
		ASSERT_LT(0, pids[i]);
		ASSERT_TRUE(ready);
	}
	ASSERT_EQ(0, munmap(self->p, LEN));
	ASSERT_EQ(0, mem_free(self->fd, self->key));
	for (int i = 0; i < 4; i++)
		kill(pids[i], SIGKILL);
	for (int i = 0; i < 4; i++) {
		ASSERT_EQ(pids[i], waitpid(pids[i], &status, 0));
		EXPECT_TRUE(WIFSIGNALED(status));
	}
	EXPECT_EQ(self->info.cap_dram, dram_free(self->fd));
	EXPECT_EQ(self->info.cap_dram, pool_available(self->sysfs));
}

/* A reset takes mappings away: rows 22, 24. The memory is free, though they are still there. */
TEST_F(map, reset)
{
	int status, ready, fd;
	pid_t pid;

	memset(self->p, 0x5a, LEN);
	pid = start_reader(self->drive, self->p, &ready);
	ASSERT_LT(0, pid);
	ASSERT_TRUE(ready);
	ASSERT_EQ(0, reset(self->sysfs));
	EXPECT_TRUE(is_bus_error(self->p));
	EXPECT_TRUE(is_bus_error(self->p + LEN - 1));
	EXPECT_EQ(MAP_FAILED, map(self->fd, LEN, self->offset));
	EXPECT_EQ(-1, pread(self->drive, self->p, LEN, 0));
	EXPECT_EQ(EFAULT, errno);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(EFAULT, WEXITSTATUS(status));
	fd = wait_for_node();
	ASSERT_LE(0, fd);
	EXPECT_EQ(self->info.cap_dram, dram_free(fd));
	ASSERT_EQ(0, munmap(self->p, LEN));
	EXPECT_EQ(self->info.cap_dram, dram_free(fd));
	close(fd);
}

/* Unbinding ends with mappings alive and transfers under way. */
TEST_F(map, unbind)
{
	int status, ready, fd;
	pid_t pids[4];

	memset(self->p, 0x5a, LEN);
	for (int i = 0; i < 4; i++) {
		pids[i] = start_reader(self->drive, self->p, &ready);
		ASSERT_LT(0, pids[i]);
		ASSERT_TRUE(ready);
	}
	ASSERT_EQ(0, write_file("/sys/bus/pci/drivers/csrec/unbind", self->bdf));
	EXPECT_TRUE(is_bus_error(self->p));
	for (int i = 0; i < 4; i++) {
		ASSERT_EQ(pids[i], waitpid(pids[i], &status, 0));
		EXPECT_EQ(EFAULT, WEXITSTATUS(status));
	}
	EXPECT_EQ(MAP_FAILED, map(self->fd, LEN, self->offset));
	ASSERT_EQ(0, write_file("/sys/bus/pci/drivers/csrec/bind", self->bdf));
	fd = wait_for_node();
	ASSERT_LE(0, fd);
	EXPECT_TRUE(is_bus_error(self->p));
	EXPECT_EQ(self->info.cap_dram, dram_free(fd));
	EXPECT_EQ(self->info.cap_dram, pool_available(self->sysfs));
	close(fd);
}

/* ---- the kernel's own file ---- */

/* dram_free counts what is taken through p2pmem/allocate, and such pages do I/O as well. */
TEST_F(map, p2pmem_allocate)
{
	uint64_t before = dram_free(self->fd);
	long nonzero;
	uint8_t *p = hog(self->sysfs, LEN);

	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(before - LEN, dram_free(self->fd));
	ASSERT_EQ(LEN, pread(self->drive, p, LEN, 0));
	EXPECT_EQ(2 * LEN, others_take(2 * LEN, &nonzero));
	EXPECT_EQ(0, memcmp(p, self->want, LEN));
	ASSERT_EQ(0, munmap(p, LEN));
	EXPECT_EQ(before, dram_free(self->fd));
	EXPECT_EQ(2 * LEN, others_take(2 * LEN, &nonzero));
	EXPECT_EQ(0, nonzero);
}

TEST_HARNESS_MAIN
