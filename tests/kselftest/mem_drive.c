// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Device memory that a drive is about to write to, or from which it reads, for as long as the
 * drive likes: a device-mapper target that is suspended keeps what it gets until it is resumed.
 */
#include <pthread.h>
#include <stdarg.h>

#include "csrec_test.h"

#define LEN	(256 * KIB)
#define SLOW	"csrec-test-slow"

FIXTURE(drive)
{
	int fd;
	struct csrec_info info;
	uint32_t key;
};

static int run(const char *fmt, ...)
{
	char cmd[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, args);
	va_end(args);
	return system(cmd);
}

FIXTURE_SETUP(drive)
{
	self->fd = dev_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, get_info(self->fd, &self->info));
	ASSERT_EQ(self->info.cap_dram, self->info.dram_free);
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, LEN, &self->key));
	if (run("dmsetup create " SLOW " --table '0 8192 linear /dev/ram0 0' >/dev/null 2>&1 &&"
		"dmsetup mknodes >/dev/null 2>&1"))
		SKIP(return, "no device mapper");
}

FIXTURE_TEARDOWN(drive)
{
	if (self->fd >= 0)
		close(self->fd);
	run("dmsetup resume " SLOW " >/dev/null 2>&1; dmsetup remove " SLOW " >/dev/null 2>&1");
}

struct reader {
	pthread_t thread;
	int fd;
	int drive;
	uint32_t key;
	int ret;
	volatile bool done;
};

static void *reader_thread(void *arg)
{
	struct reader *r = arg;
	struct csrec_p2p_seg seg = { .len = LEN, .key = r->key };
	struct csrec_p2p_read p2p = {
		.size = sizeof(p2p), .fd = r->drive, .count = 1, .segs = (uintptr_t)&seg,
	};

	r->ret = xioctl(r->fd, CSREC_IOC_P2P_READ, &p2p);
	r->done = true;
	return NULL;
}

/* How many hold a region, as the driver's table for debugging says; or -1. */
static int holders(uint32_t key)
{
	unsigned int users, domain;
	char line[256], want[16];
	int found = -1;
	FILE *f = fopen("/sys/kernel/debug/csrec/csrec0/regions", "r");

	snprintf(want, sizeof(want), "0x%08x ", key);
	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, want, strlen(want)) &&
		    sscanf(line, "%*s %*s %*s %u %u", &domain, &users) == 2)
			found = users;
	}
	if (f)
		fclose(f);
	return found;
}

/*
 * A drive stops in the middle of a read: MEM_FREE comes back all the same, and nobody else gets
 * the memory before the drive is done.
 */
TEST_F(drive, freed_while_it_reads)
{
	struct reader r = { .fd = self->fd, .key = self->key };
	uint32_t other[4];

	ASSERT_EQ(0, run("dmsetup suspend " SLOW));
	r.drive = open("/dev/mapper/" SLOW, O_RDONLY);
	ASSERT_LE(0, r.drive);
	ASSERT_EQ(0, pthread_create(&r.thread, NULL, reader_thread, &r));
	for (int i = 0; i < 6000 && holders(self->key) < 1 && !r.done; i++)
		usleep(10000);
	ASSERT_EQ(1, holders(self->key));

	ASSERT_EQ(0, mem_free(self->fd, self->key));
	EXPECT_EQ(-ENOENT, mem_free(self->fd, self->key));
	EXPECT_EQ(self->info.cap_dram - LEN, dram_free(self->fd));
	EXPECT_FALSE(r.done);
	/* others work meanwhile, elsewhere: the kernel looks at the bottom first */
	for (int i = 0; i < 4; i++)
		ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, LEN, &other[i]));
	EXPECT_EQ(self->info.cap_dram - 5 * LEN, dram_free(self->fd));
	for (int i = 0; i < 4; i++)
		ASSERT_EQ(0, mem_free(self->fd, other[i]));

	EXPECT_FALSE(r.done);
	ASSERT_EQ(0, run("dmsetup resume " SLOW));
	ASSERT_EQ(0, pthread_join(r.thread, NULL));
	EXPECT_EQ(0, r.ret);
	EXPECT_EQ(self->info.cap_dram, dram_free(self->fd));
	close(r.drive);
}

TEST_HARNESS_MAIN
