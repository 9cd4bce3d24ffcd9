// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a process may have of device memory: the limit is one of all its contexts, and counts
 * what is really taken, until it is really given back.
 */
#include <pthread.h>

#include "csrec_test.h"

#define SYSFS	"/sys/class/csrec/csrec0"

FIXTURE(quota)
{
	int fd;
	struct csrec_info info;
};

static int set_quota(const char *name, uint64_t val)
{
	char path[64], text[32];

	snprintf(path, sizeof(path), SYSFS "/%s", name);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)val);
	return write_file(path, text);
}

FIXTURE_SETUP(quota)
{
	self->fd = dev_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, get_info(self->fd, &self->info));
	EXPECT_EQ(0, self->info.owned_dram);
	EXPECT_EQ(0, self->info.owned_queues);
}

FIXTURE_TEARDOWN(quota)
{
	set_quota("quota_dram", 0);
	set_quota("quota_queues", 0);
	set_quota("quota_onchip", 0);
	set_quota("quota_regions", 0);
	set_quota("quota_fences", 0);
	close(self->fd);
}

static uint64_t owned(int fd)
{
	struct csrec_info info;

	return get_info(fd, &info) ? ~0ULL : info.owned_dram;
}

/* Without a limit all of it is what a process may have. */
TEST_F(quota, none)
{
	uint32_t key;

	EXPECT_EQ(self->info.cap_dram, self->info.quota_dram);
	EXPECT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, 2 * MIB, &key));
	EXPECT_EQ(2 * MIB, owned(self->fd));
}

TEST_F(quota, dram)
{
	int fd2 = dev_open();
	uint32_t a, b, c;

	ASSERT_EQ(0, set_quota("quota_dram", MIB));
	ASSERT_EQ(0, get_info(self->fd, &self->info));
	EXPECT_EQ(MIB, self->info.quota_dram);
	EXPECT_EQ(-EDQUOT, mem_alloc(self->fd, CSREC_REGION_DRAM, MIB + 1, &a));
	EXPECT_EQ(0, owned(self->fd));
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, MIB - 4096, &a));
	/* rounded lengths count, and those of all contexts */
	EXPECT_EQ(-EDQUOT, mem_alloc(fd2, CSREC_REGION_DRAM, 4097, &b));
	EXPECT_EQ(0, mem_alloc(fd2, CSREC_REGION_DRAM, 1, &b));
	EXPECT_EQ(-EDQUOT, mem_alloc(self->fd, CSREC_REGION_DRAM, 1, &c));
	EXPECT_EQ(MIB, owned(self->fd));
	EXPECT_EQ(MIB, owned(fd2));
	/* on-chip memory and registered memory are another matter */
	EXPECT_EQ(0, mem_alloc(self->fd, CSREC_REGION_ONCHIP, 64, &c));
	EXPECT_EQ(0, mem_register(self->fd, pages(4096), 4096, CSREC_RIGHT_READ, &c));
	EXPECT_EQ(0, mem_free(self->fd, a));
	EXPECT_EQ(4096, owned(self->fd));
	EXPECT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, MIB - 4096, &a));
	/* a close gives back */
	close(self->fd);
	EXPECT_EQ(4096, owned(fd2));
	self->fd = dev_open();
	EXPECT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, MIB - 4096, &a));
	close(fd2);
}

/* What the device has slots for, or has least of: regions of all sorts, fences, on-chip memory. */
TEST_F(quota, the_rest)
{
	int fd2 = dev_open();
	uint32_t a, b, key;

	ASSERT_EQ(0, set_quota("quota_regions", 2));
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, 4096, &a));
	ASSERT_EQ(0, mem_register(fd2, pages(4096), 4096, CSREC_RIGHT_READ, &b));
	EXPECT_EQ(-EDQUOT, mem_alloc(self->fd, CSREC_REGION_ONCHIP, 64, &key));
	EXPECT_EQ(-EDQUOT, mem_register(self->fd, pages(4096), 4096, CSREC_RIGHT_READ, &key));
	EXPECT_EQ(-EDQUOT, mem_alloc(self->fd, CSREC_REGION_DRAM, 4096, &key));
	/* what was refused has left nothing */
	EXPECT_EQ(4096, owned(self->fd));
	EXPECT_EQ(0, mem_free(self->fd, a));
	EXPECT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, 4096, &a));
	close(fd2);
	EXPECT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, 4096, &key));
	ASSERT_EQ(0, set_quota("quota_regions", 0));

	ASSERT_EQ(0, set_quota("quota_onchip", 4096));
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_ONCHIP, 4096 - 64, &a));
	EXPECT_EQ(-EDQUOT, mem_alloc(self->fd, CSREC_REGION_ONCHIP, 65, &key));
	EXPECT_EQ(0, mem_alloc(self->fd, CSREC_REGION_ONCHIP, 1, &b));
	EXPECT_EQ(-EDQUOT, mem_alloc(self->fd, CSREC_REGION_ONCHIP, 1, &key));
	EXPECT_EQ(0, mem_free(self->fd, b));
	EXPECT_EQ(0, mem_alloc(self->fd, CSREC_REGION_ONCHIP, 64, &key));

	ASSERT_EQ(0, set_quota("quota_fences", 1));
	ASSERT_EQ(0, fence_create(self->fd, 0, &a));
	EXPECT_EQ(-EDQUOT, fence_create(self->fd, 0, &b));
	EXPECT_EQ(0, fence_destroy(self->fd, a));
	EXPECT_EQ(0, fence_create(self->fd, 0, &b));
}

/* A limit that is lowered below what a process has takes nothing from it. */
TEST_F(quota, lowered)
{
	uint32_t a, b;

	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, MIB, &a));
	ASSERT_EQ(0, set_quota("quota_dram", 64 * KIB));
	EXPECT_EQ(-EDQUOT, mem_alloc(self->fd, CSREC_REGION_DRAM, 4096, &b));
	EXPECT_EQ(MIB, owned(self->fd));
	EXPECT_EQ(0, mem_free(self->fd, a));
	EXPECT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, 64 * KIB, &b));
}

/* Failures charge nothing. */
TEST_F(quota, failure)
{
	uint32_t a, key;

	ASSERT_EQ(0, set_quota("quota_dram", 2 * self->info.cap_dram));
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, 4096, &a));
	for (int i = 0; i < 4; i++) {
		ASSERT_EQ(-ENOMEM, mem_alloc(self->fd, CSREC_REGION_DRAM, self->info.cap_dram,
					     &key));
	}
	EXPECT_EQ(4096, owned(self->fd));
}

/* A child has an account of its own; a context is on the account of who opened it. */
TEST_F(quota, is_of_a_process)
{
	uint32_t key;
	int status;
	pid_t pid;

	ASSERT_EQ(0, set_quota("quota_dram", MIB));
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, MIB, &key));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		int fd = dev_open();

		if (mem_alloc(self->fd, CSREC_REGION_DRAM, 4096, &key) != -EDQUOT ||
		    owned(fd) || mem_alloc(fd, CSREC_REGION_DRAM, MIB, &key) ||
		    mem_alloc(fd, CSREC_REGION_DRAM, 4096, &key) != -EDQUOT)
			_exit(1);
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(MIB, owned(self->fd));
}

/* Memory whose key is gone, but that is still mapped, still counts. */
TEST_F(quota, mapped)
{
	struct csrec_mem_alloc arg = { .size = sizeof(arg), .len = MIB, .kind = CSREC_REGION_DRAM };
	uint32_t key;
	void *p;

	ASSERT_EQ(0, set_quota("quota_dram", MIB));
	ASSERT_EQ(0, xioctl(self->fd, CSREC_IOC_MEM_ALLOC, &arg));
	if (!arg.mmap_offset)
		SKIP(return, "no peer-to-peer memory");
	p = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, self->fd, arg.mmap_offset);
	ASSERT_NE(MAP_FAILED, p);
	*(char *)p = 1;
	ASSERT_EQ(0, mem_free(self->fd, arg.key));
	EXPECT_EQ(MIB, owned(self->fd));
	EXPECT_EQ(-EDQUOT, mem_alloc(self->fd, CSREC_REGION_DRAM, 4096, &key));
	ASSERT_EQ(0, munmap(p, MIB));
	EXPECT_EQ(0, owned(self->fd));
	EXPECT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, MIB, &key));
}

/* Threads that allocate at once do not get more together. */
struct racer {
	pthread_t thread;
	int fd;
	unsigned int got;
	int err;
};

static void *racer_thread(void *arg)
{
	struct racer *r = arg;
	uint32_t key;

	while (!(r->err = mem_alloc(r->fd, CSREC_REGION_DRAM, 4096, &key)))
		r->got++;
	return NULL;
}

TEST_F(quota, race)
{
	struct racer r[4];
	unsigned int sum = 0;

	ASSERT_EQ(0, set_quota("quota_dram", 40 * 4096));
	for (int i = 0; i < 4; i++) {
		r[i] = (struct racer){ .fd = dev_open() };
		ASSERT_EQ(0, pthread_create(&r[i].thread, NULL, racer_thread, &r[i]));
	}
	for (int i = 0; i < 4; i++) {
		ASSERT_EQ(0, pthread_join(r[i].thread, NULL));
		EXPECT_EQ(-EDQUOT, r[i].err);
		sum += r[i].got;
	}
	EXPECT_EQ(40, sum);
	EXPECT_EQ(40 * 4096, owned(self->fd));
	for (int i = 0; i < 4; i++)
		close(r[i].fd);
	EXPECT_EQ(0, owned(self->fd));
}

TEST_F(quota, settings)
{
	EXPECT_EQ(-EINVAL, write_file(SYSFS "/quota_dram", "x"));
	EXPECT_EQ(-EINVAL, write_file(SYSFS "/quota_dram", "-1"));
	EXPECT_EQ(-ERANGE, write_file(SYSFS "/quota_queues", "0x100000000"));
	EXPECT_EQ(-ERANGE, write_file(SYSFS "/quota_regions", "0x100000000"));
	EXPECT_EQ(0, write_file(SYSFS "/quota_dram", "0x100000"));
	ASSERT_EQ(0, get_info(self->fd, &self->info));
	EXPECT_EQ(MIB, self->info.quota_dram);
}

TEST_HARNESS_MAIN
