// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Registered memory of every sort: huge pages, memfd, files, more than 4 GiB; and a process
 * that changes its mappings meanwhile. What the device sees is looked at by COPY.
 */
#include <linux/memfd.h>
#include <pthread.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "csrec_test.h"

#define HUGE	(2 * MIB)
#define GIB	(1024 * MIB)

FIXTURE(pin)
{
	int fd;
	int q;
	uint8_t *out;
	uint32_t out_key;
};

FIXTURE_SETUP(pin)
{
	self->fd = dev_open();
	ASSERT_LE(0, self->fd);
	self->q = q_create(self->fd, 16);
	ASSERT_LT(0, self->q);
	self->out = pages(16 * 4096);
	ASSERT_EQ(0, mem_register(self->fd, self->out, 16 * 4096, CSREC_RIGHT_WRITE,
				  &self->out_key));
}

FIXTURE_TEARDOWN(pin)
{
	close(self->fd);
}

static uint64_t pinned(int fd)
{
	struct csrec_stats st;

	return get_stats(fd, &st) ? ~0ULL : st.pinned_bytes;
}

static int copy(int fd, int q, uint32_t src, uint64_t src_off, uint32_t dst, uint64_t dst_off,
		uint64_t len)
{
	struct csrec_cmd cmd = cmd_copy(src, src_off, dst, dst_off, len);
	struct csrec_cqe cqe;

	return run_cmd(fd, q, &cmd, &cqe);
}

/*
 * Registers [p + off, p + len) for reading and writing; has the device read around the places
 * where it goes from one huge page to the next, write there, and nowhere else.
 */
static void check_region(struct __test_metadata *_metadata, int fd, int q, uint8_t *out,
			 uint32_t out_key, uint8_t *p, size_t off, size_t len)
{
	uint32_t key;

	for (size_t i = 0; i < len; i += 4096)
		pattern_fill(p + i, 4096, 100 + i / 4096);
	ASSERT_EQ(0, mem_register(fd, p + off, len - off, CSREC_RIGHT_READ | CSREC_RIGHT_WRITE,
				  &key));
	for (size_t at = off; at < len; at = (at / HUGE + 1) * HUGE) {
		size_t from = at < off + 5000 ? off : at - 5000;
		size_t n = len - from < 10000 ? len - from : 10000;

		ASSERT_EQ(0, copy(fd, q, key, from - off, out_key, 0, n));
		EXPECT_EQ(0, memcmp(out, p + from, n)) TH_LOG("at %zu", from);
		/* the other way: 100 bytes across the boundary */
		if (at > off + 1000) {
			ASSERT_EQ(0, copy(fd, q, key, from - off, key, at - 50 - off, 100));
			EXPECT_EQ(0, memcmp(p + at - 50, p + from, 100));
			EXPECT_EQ(0, memcmp(p + at + 50, out + (at + 50 - from), 4000));
		}
	}
	EXPECT_EQ(CSREC_ST_OUT_OF_BOUNDS, copy(fd, q, key, len - off, out_key, 0, 1));
	EXPECT_EQ(0, mem_free(fd, key));
}

/* Huge pages of one mapping, which lie anywhere in memory. */
TEST_F(pin, hugetlb)
{
	static const size_t offs[] = { 0, 100, 4096 + 7, HUGE - 64 };
	uint8_t *p;

	if (write_file("/proc/sys/vm/nr_hugepages", "8"))
		SKIP(return, "no huge pages");
	p = mmap(NULL, 4 * HUGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (p == MAP_FAILED)
		SKIP(return, "no huge pages");
	for (unsigned int i = 0; i < sizeof(offs) / sizeof(offs[0]); i++)
		check_region(_metadata, self->fd, self->q, self->out, self->out_key, p, offs[i],
			     4 * HUGE - i);
	munmap(p, 4 * HUGE);
	write_file("/proc/sys/vm/nr_hugepages", "0");
}

TEST_F(pin, transparent_huge_pages)
{
	uint8_t *p = pages(4 * HUGE);

	p = (void *)(((uintptr_t)p + HUGE - 1) / HUGE * HUGE);
	madvise(p, 3 * HUGE, MADV_HUGEPAGE);
	check_region(_metadata, self->fd, self->q, self->out, self->out_key, p, 0, 3 * HUGE);
	check_region(_metadata, self->fd, self->q, self->out, self->out_key, p, 12345,
		     3 * HUGE - 777);
	/* a hole of small pages in it */
	madvise(p + HUGE + 8 * 4096, 3 * 4096, MADV_DONTNEED);
	check_region(_metadata, self->fd, self->q, self->out, self->out_key, p, 0, 3 * HUGE);
}

TEST_F(pin, memfd)
{
	int memfd = memfd_create("csrec", MFD_CLOEXEC);
	uint8_t *p, *again;
	uint32_t key;

	ASSERT_EQ(0, ftruncate(memfd, HUGE));
	p = mmap(NULL, HUGE, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	ASSERT_NE(MAP_FAILED, p);
	check_region(_metadata, self->fd, self->q, self->out, self->out_key, p, 3, HUGE);
	/* the device writes to the file's pages, whoever maps them */
	ASSERT_EQ(0, mem_register(self->fd, p, HUGE, CSREC_RIGHT_WRITE, &key));
	pattern_fill(p, 4096, 5);
	ASSERT_EQ(0, munmap(p, HUGE));
	again = mmap(NULL, HUGE, PROT_READ, MAP_SHARED, memfd, 0);
	ASSERT_NE(MAP_FAILED, again);
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, 4096, &self->out_key));
	ASSERT_EQ(0, copy(self->fd, self->q, self->out_key, 0, key, 100, 200));
	EXPECT_EQ(0, again[100]);
	EXPECT_EQ(0, again[299]);
	pattern_fill(self->out, 4096, 5);
	EXPECT_EQ(0, memcmp(again, self->out, 100));
	EXPECT_EQ(0, memcmp(again + 300, self->out + 300, 4096 - 300));
}

/* A file of a file system that keeps track of dirty pages: a source, and never a target. */
TEST_F(pin, file)
{
	char dir[] = "/tmp/csrec-XXXXXX", path[64];
	uint8_t text[8192];
	uint32_t key;
	uint8_t *p;
	int file;

	ASSERT_NE(NULL, mkdtemp(dir));
	if (system("mke2fs -qF /dev/ram0 16384 >/dev/null 2>&1") ||
	    mount("/dev/ram0", dir, "ext2", 0, NULL)) {
		rmdir(dir);
		SKIP(return, "no file system to make");
	}
	snprintf(path, sizeof(path), "%s/file", dir);
	file = open(path, O_RDWR | O_CREAT, 0600);
	EXPECT_LE(0, file);
	pattern_fill(text, sizeof(text), 6);
	EXPECT_EQ(sizeof(text), write(file, text, sizeof(text)));
	p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	EXPECT_NE(MAP_FAILED, p);
	EXPECT_EQ(0, mem_register(self->fd, p, 8192, CSREC_RIGHT_READ, &key));
	EXPECT_EQ(0, copy(self->fd, self->q, key, 1, self->out_key, 0, 8191));
	EXPECT_EQ(0, memcmp(self->out, text + 1, 8191));
	EXPECT_EQ(0, mem_free(self->fd, key));
	EXPECT_EQ(-EFAULT, mem_register(self->fd, p, 8192, CSREC_RIGHT_WRITE, &key));
	/* a private mapping of it is ordinary memory once it is written to */
	munmap(p, 8192);
	p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	EXPECT_EQ(0, mem_register(self->fd, p, 8192, CSREC_RIGHT_WRITE, &key));
	EXPECT_EQ(0, mem_free(self->fd, key));
	/* beyond the end of the file there is nothing */
	munmap(p, 8192);
	EXPECT_EQ(0, ftruncate(file, 4096));
	p = mmap(NULL, 8192, PROT_READ, MAP_SHARED, file, 0);
	EXPECT_EQ(-EFAULT, mem_register(self->fd, p, 8192, CSREC_RIGHT_READ, &key));
	munmap(p, 8192);
	close(file);
	EXPECT_EQ(0, umount(dir));
	rmdir(dir);
	EXPECT_EQ(16 * 4096, pinned(self->fd));
}

/*
 * Row 8: lengths of 4 GiB and more are not cut to 32 bits. One huge page, mapped again and again,
 * so that little memory suffices; its last bytes are written as the last of all.
 */
TEST_F(pin, more_than_4_gib)
{
	const uint64_t len = 4 * GIB + HUGE;
	int memfd = memfd_create("csrec", MFD_CLOEXEC | MFD_HUGETLB | MFD_HUGE_2MB);
	uint32_t key, key2;
	uint8_t *p, *page;

	if (write_file("/proc/sys/vm/nr_hugepages", "2") || memfd < 0 || ftruncate(memfd, 2 * HUGE))
		SKIP(return, "no huge pages");
	page = mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	if (page == MAP_FAILED)
		SKIP(return, "no huge pages");
	p = mmap(NULL, len + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ASSERT_NE(MAP_FAILED, p);
	p = (void *)(((uintptr_t)p + HUGE - 1) / HUGE * HUGE);
	for (uint64_t at = 0; at < len; at += HUGE) {
		/* page 1 at the end, page 0 everywhere else: no two of them contiguous */
		ASSERT_EQ(p + at, mmap(p + at, HUGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
				       memfd, at + HUGE == len ? HUGE : 0));
	}
	pattern_fill(page, 8192, 1);
	pattern_fill(page + HUGE, 8192, 2);
	ASSERT_EQ(0, mem_register(self->fd, p, len, CSREC_RIGHT_READ | CSREC_RIGHT_WRITE, &key));
	EXPECT_EQ(16 * 4096 + len, pinned(self->fd));
	/* below and above 4 GiB */
	ASSERT_EQ(0, copy(self->fd, self->q, key, 4 * GIB - HUGE, self->out_key, 0, 8192));
	EXPECT_EQ(0, memcmp(self->out, page, 8192));
	ASSERT_EQ(0, copy(self->fd, self->q, key, 4 * GIB, self->out_key, 0, 8192));
	EXPECT_EQ(0, memcmp(self->out, page + HUGE, 8192));
	ASSERT_EQ(0, copy(self->fd, self->q, key, 0, self->out_key, 0, 8192));
	EXPECT_EQ(0, memcmp(self->out, page, 8192));
	EXPECT_EQ(0, copy(self->fd, self->q, key, len - 1, self->out_key, 0, 1));
	EXPECT_EQ(CSREC_ST_OUT_OF_BOUNDS, copy(self->fd, self->q, key, len, self->out_key, 0, 1));
	/* 4 GiB exactly, and a page more: neither is 0, nor a page */
	ASSERT_EQ(0, mem_register(self->fd, p, 4 * GIB, CSREC_RIGHT_READ, &key2));
	EXPECT_EQ(0, copy(self->fd, self->q, key2, 4 * GIB - 1, self->out_key, 0, 1));
	EXPECT_EQ(CSREC_ST_OUT_OF_BOUNDS,
		  copy(self->fd, self->q, key2, 4 * GIB, self->out_key, 0, 1));
	EXPECT_EQ(0, mem_free(self->fd, key2));
	EXPECT_EQ(0, mem_free(self->fd, key));
	EXPECT_EQ(16 * 4096, pinned(self->fd));
	munmap(p, len);
	munmap(page, 2 * HUGE);
	close(memfd);
	write_file("/proc/sys/vm/nr_hugepages", "0");
}

/* The documented cap, and what is above it. */
TEST_F(pin, cap)
{
	uint32_t key;

	EXPECT_EQ(-EINVAL, mem_register(self->fd, self->out, CSREC_MEM_MAX_PIN + 1,
					CSREC_RIGHT_READ, &key));
	/* not a bad length, but nothing is mapped there */
	EXPECT_EQ(-EFAULT, mem_register(self->fd, (void *)(1ULL << 44), CSREC_MEM_MAX_PIN,
					CSREC_RIGHT_READ, &key));
	EXPECT_EQ(16 * 4096, pinned(self->fd));
}

/* ---- mappings that change ---- */

struct changer {
	pthread_t thread;
	uint8_t *p;
	uint8_t *other;
	volatile bool stop;
	volatile long rounds;
};

static void *change_thread(void *arg)
{
	struct changer *c = arg;

	while (!c->stop) {
		mprotect(c->p, 8 * 4096, PROT_READ);
		mprotect(c->p, 8 * 4096, PROT_READ | PROT_WRITE);
		if (mremap(c->p + 4 * 4096, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, c->other) ==
		    c->other)
			mremap(c->other, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED,
			       c->p + 4 * 4096);
		c->rounds++;
	}
	return NULL;
}

/*
 * Row 30: another thread changes protection and place of what is being registered. It works
 * or fails with EFAULT, and what is registered for writing was writable.
 */
TEST_F(pin, mprotect_and_mremap_race)
{
	struct changer c = { .p = pages(8 * 4096), .other = pages(4096) };
	unsigned int good = 0, bad = 0;
	uint32_t key;

	memset(c.p, 1, 8 * 4096);
	ASSERT_EQ(0, pthread_create(&c.thread, NULL, change_thread, &c));
	for (int i = 0; i < 2000 && (i < 200 || !good || !bad); i++) {
		int ret = mem_register(self->fd, c.p, 8 * 4096, CSREC_RIGHT_WRITE, &key);

		if (ret) {
			ASSERT_EQ(-EFAULT, ret);
			bad++;
		} else {
			good++;
			ASSERT_EQ(0, mem_free(self->fd, key));
		}
	}
	c.stop = true;
	ASSERT_EQ(0, pthread_join(c.thread, NULL));
	EXPECT_LT(0, good);
	EXPECT_LT(0, c.rounds);
	EXPECT_EQ(16 * 4096, pinned(self->fd));
}

/*
 * Row 29: pages that the device has stay those of the process that registered them, though it
 * forks and writes; with MADV_DONTFORK the child has no part in it.
 */
TEST_F(pin, fork_and_write)
{
	uint8_t *in = pages(3 * 4096);
	int status, fds[2];
	uint32_t key;
	pid_t pid;
	char c;

	pattern_fill(in, 3 * 4096, 1);
	ASSERT_EQ(0, mem_register(self->fd, in, 3 * 4096, CSREC_RIGHT_READ | CSREC_RIGHT_WRITE,
				  &key));
	ASSERT_EQ(0, madvise(in + 2 * 4096, 4096, MADV_DONTFORK));
	ASSERT_EQ(0, pipe(fds));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		/* until the parent has written, and then after the device has */
		if (read(fds[0], &c, 1) != 1)
			_exit(2);
		for (int i = 0; i < 2 * 4096; i++) {
			in[i] = 0xee;
		}
		_exit(msync(in + 2 * 4096, 4096, MS_ASYNC) == -1 && errno == ENOMEM ? 0 : 1);
	}
	pattern_fill(in, 3 * 4096, 2);
	ASSERT_EQ(0, copy(self->fd, self->q, key, 0, self->out_key, 0, 3 * 4096));
	EXPECT_EQ(0, memcmp(self->out, in, 3 * 4096));
	ASSERT_EQ(0, copy(self->fd, self->q, key, 0, key, 4096, 4096));
	ASSERT_EQ(1, write(fds[1], "", 1));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, memcmp(in, self->out, 4096));
	EXPECT_EQ(0, memcmp(in + 4096, self->out, 4096));
	EXPECT_EQ(0, memcmp(in + 8192, self->out + 8192, 4096));
}

TEST_HARNESS_MAIN
