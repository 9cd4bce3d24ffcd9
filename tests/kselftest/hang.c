// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The watchdog, against a device that hangs on purpose (hang_sim.c). Run by hang.sh.
 */
#include <dirent.h>
#include <sys/eventfd.h>

#include "mapq.h"

#define SLOW	0xdea1
#define HUNG	0xdea2
#define DEAD	0xdea3
#define STUCK	0xdea4
#define LAME	0xdea5
#define OLD	0xdea7
#define AGES	0xdea8
#define LOST	0xdea9
#define TRUTH	0xdea0

FIXTURE(hang)
{
	int fd;
	int q;
	uint32_t fence;
	char sysfs[64];
	char bdf[16];
};

#define DUMPS	"/sys/class/devcoredump"

/* How many dumps there are; the text of one of them. -ENOENT: this kernel keeps none. */
static int dumps(char *text, size_t len)
{
	DIR *d = opendir(DUMPS);
	struct dirent *e;
	char path[512];
	int n = 0;

	text[0] = '\0';
	if (!d)
		return -ENOENT;
	while ((e = readdir(d))) {
		int fd;
		ssize_t got = 0, more;

		if (strncmp(e->d_name, "devcd", 5))
			continue;
		snprintf(path, sizeof(path), DUMPS "/%s/data", e->d_name);
		fd = open(path, O_RDONLY);
		while (fd >= 0 && (more = read(fd, text + got, len - 1 - got)) > 0)
			got += more;
		text[got] = '\0';
		close(fd);
		n++;
	}
	closedir(d);
	return n;
}

/* Whoever has read a dump writes to it, and it goes. */
static void drop_dumps(void)
{
	struct dirent *e;
	char path[512];
	DIR *d;

	for (int i = 0; i < 1000; i++) {
		bool any = false;

		d = opendir(DUMPS);
		while (d && (e = readdir(d))) {
			if (strncmp(e->d_name, "devcd", 5))
				continue;
			snprintf(path, sizeof(path), DUMPS "/%s/data", e->d_name);
			write_file(path, "0");
			any = true;
		}
		if (d)
			closedir(d);
		if (!any)
			return;
		usleep(10000);
	}
}

FIXTURE_SETUP(hang)
{
	drop_dumps();
	ASSERT_EQ(0, find_device(self->sysfs, sizeof(self->sysfs), self->bdf, sizeof(self->bdf)));
	self->fd = dev_open();
	ASSERT_LE(0, self->fd);
	self->q = q_create(self->fd, 16);
	ASSERT_LT(0, self->q);
	ASSERT_EQ(0, fence_create(self->fd, 0, &self->fence));
}

FIXTURE_TEARDOWN(hang)
{
	if (self->fd >= 0)
		close(self->fd);
}

/* The device goes into a mode, with one command left in flight. */
static int begin(int fd, int q, uint32_t fence, uint16_t mode)
{
	struct csrec_cmd cmds[2] = { cmd_make(CSREC_OP_NOP, mode),
				     cmd_fence(CSREC_OP_WAIT, fence, 1) };

	return q_submit(fd, q, cmds, 2);
}

/* Busy for longer than the watchdog looks, but never without progress. */
TEST_F(hang, slow_is_not_hung)
{
	struct csrec_cmd truth = cmd_make(CSREC_OP_NOP, TRUTH);
	static char text[300 * KIB];
	struct csrec_cqe cqes[2];
	int q2 = q_create(self->fd, 2);

	ASSERT_LT(0, q2);
	ASSERT_EQ(2, begin(self->fd, self->q, self->fence, SLOW));
	ASSERT_EQ(1, q_wait(self->fd, self->q, cqes, 1, 1, -1));
	EXPECT_EQ(-ETIMEDOUT, q_wait(self->fd, self->q, cqes, 1, 1, 10000 * MS));
	ASSERT_EQ(0, run_cmd(self->fd, q2, &truth, cqes));
	EXPECT_EQ(0, fence_signal(self->fd, self->fence, 1));
	ASSERT_EQ(1, q_wait(self->fd, self->q, cqes, 1, 1, -1));
	EXPECT_EQ(0, cqe_status(cqes));
	EXPECT_GE(0, dumps(text, sizeof(text)));
}

/* No progress: the queue with work in flight is reset, and nothing else is. */
TEST_F(hang, queue_is_reset)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	int other = dev_open(), q2 = q_create(other, 2), ret;
	struct pollfd p = { .fd = self->fd, .events = POLLIN }, p2 = { .fd = other };
	struct csrec_stats before, after;
	struct csrec_cqe cqes[2];

	ASSERT_LT(0, q2);
	ASSERT_EQ(0, get_stats(other, &before));
	ASSERT_EQ(2, begin(self->fd, self->q, self->fence, HUNG));
	ASSERT_EQ(1, q_wait(self->fd, self->q, cqes, 1, 1, -1));
	/* whoever only polls is told as well; the others' queues are well */
	do {
		ASSERT_EQ(1, poll(&p, 1, 120000));
	} while (!(p.revents & POLLERR) && q_wait(self->fd, self->q, cqes, 0, 2, 0) >= 0);
	EXPECT_EQ(POLLERR, p.revents & (POLLERR | POLLHUP));
	EXPECT_EQ(0, poll(&p2, 1, 0));
	ret = q_wait(self->fd, self->q, cqes, 1, 1, -1);
	if (ret == 1) {
		/* the command that was cut short, if the device said so */
		EXPECT_EQ(CSREC_ST_ABORTED, cqe_status(cqes));
		ret = q_wait(self->fd, self->q, cqes, 1, 1, -1);
	}
	EXPECT_EQ(-EIO, ret);
	EXPECT_EQ(-EIO, q_submit(self->fd, self->q, &nop, 1));
	EXPECT_EQ(0, q_destroy(self->fd, self->q));
	EXPECT_EQ(0, poll(&p, 1, 0));
	self->q = q_create(self->fd, 16);
	ASSERT_LT(0, self->q);
	EXPECT_EQ(0, run_cmd(self->fd, self->q, &nop, cqes));
	EXPECT_EQ(0, run_cmd(other, q2, &nop, cqes));
	ASSERT_EQ(0, get_stats(other, &after));
	EXPECT_EQ(before.queue_resets + 1, after.queue_resets);
	EXPECT_EQ(before.device_resets, after.device_resets);
	EXPECT_TRUE(attr_is("state", "live"));
	close(other);
}

/* A command that never ends, and that the driver does not know to be a WAIT. */
static struct csrec_cmd lost(uint32_t fence)
{
	struct csrec_cmd cmd = cmd_fence(CSREC_OP_NOP, fence, 1);

	cmd.cid = htole16(LOST);
	return cmd;
}

/* Takes what there is until the queue fails: the error. */
static int drain(int fd, int q)
{
	struct csrec_cqe cqe;
	int ret;

	do {
		ret = q_wait(fd, q, &cqe, 1, 1, -1);
	} while (ret > 0);
	return ret;
}

/* With the device hung, who only waits for a fence is not the one to be blamed. */
TEST_F(hang, queue_that_waits_is_spared)
{
	struct csrec_cmd cmds[2] = { cmd_make(CSREC_OP_NOP, HUNG) }, wait;
	int q2 = q_create(self->fd, 4);
	struct csrec_stats before, after;
	struct csrec_cqe cqe;
	uint32_t fence2;

	ASSERT_LT(0, q2);
	ASSERT_EQ(0, get_stats(self->fd, &before));
	ASSERT_EQ(0, fence_create(self->fd, 0, &fence2));
	wait = cmd_fence(CSREC_OP_WAIT, fence2, 1);
	ASSERT_EQ(1, q_submit(self->fd, q2, &wait, 1));
	cmds[1] = lost(self->fence);
	ASSERT_EQ(2, q_submit(self->fd, self->q, cmds, 2));
	EXPECT_EQ(-EIO, drain(self->fd, self->q));
	EXPECT_EQ(-ETIMEDOUT, q_wait(self->fd, q2, &cqe, 1, 1, 100 * MS));
	EXPECT_EQ(0, fence_signal(self->fd, fence2, 1));
	ASSERT_EQ(1, q_wait(self->fd, q2, &cqe, 1, 1, -1));
	EXPECT_EQ(0, cqe_status(&cqe));
	ASSERT_EQ(0, get_stats(self->fd, &after));
	EXPECT_EQ(before.queue_resets + 1, after.queue_resets);
}

/* A queue is stuck while others are not: it is found, if only after ages. */
TEST_F(hang, queue_among_others)
{
	struct csrec_cmd ages = cmd_make(CSREC_OP_NOP, AGES), nop = cmd_make(CSREC_OP_NOP, 1);
	struct csrec_cmd truth = cmd_make(CSREC_OP_NOP, TRUTH), stuck = lost(self->fence), wait;
	int q2 = q_create(self->fd, 4), q3 = q_create(self->fd, 4), ret = 0;
	struct csrec_stats before, after;
	struct csrec_cqe cqe;
	uint32_t fence3;

	ASSERT_LT(0, q2);
	ASSERT_LT(0, q3);
	ASSERT_EQ(0, fence_create(self->fd, 0, &fence3));
	wait = cmd_fence(CSREC_OP_WAIT, fence3, 1);
	ASSERT_EQ(1, q_submit(self->fd, q3, &wait, 1));
	ASSERT_EQ(0, get_stats(self->fd, &before));
	ASSERT_EQ(0, run_cmd(self->fd, q2, &ages, &cqe));
	ASSERT_EQ(1, q_submit(self->fd, self->q, &stuck, 1));
	for (int i = 0; i < 3000 && !ret; i++) {
		ASSERT_EQ(0, run_cmd(self->fd, q2, &nop, &cqe));
		ret = q_wait(self->fd, self->q, &cqe, 1, 1, 20 * MS);
		if (ret == -ETIMEDOUT || ret == 1)
			ret = 0;
	}
	EXPECT_EQ(-EIO, ret);
	/* one that works is well, and one that waits for as long as it likes */
	EXPECT_EQ(0, run_cmd(self->fd, q2, &truth, &cqe));
	EXPECT_EQ(0, fence_signal(self->fd, fence3, 1));
	EXPECT_EQ(1, q_wait(self->fd, q3, &cqe, 1, 1, -1));
	EXPECT_EQ(0, cqe_status(&cqe));
	ASSERT_EQ(0, get_stats(self->fd, &after));
	EXPECT_EQ(before.queue_resets + 1, after.queue_resets);
}

/* One dump of what there was: everything that helps, and nothing that is nobody's business. */
TEST_F(hang, leaves_a_dump)
{
	static char text[300 * KIB], want[200];
	uint8_t *host = pages(64 * KIB);
	struct csrec_cmd fill;
	struct csrec_cqe cqe;
	uint32_t dram, key;
	int n, ret;

	if (dumps(text, sizeof(text)) == -ENOENT)
		SKIP(return, "kernel without CONFIG_DEV_COREDUMP");
	ASSERT_EQ(0, dumps(text, sizeof(text)));
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, 8 * KIB, &dram));
	ASSERT_EQ(0, mem_register(self->fd, host, 64 * KIB, CSREC_RIGHT_READ, &key));
	fill = cmd_fill(dram, 4096, 4096, 0xfeedc0de);
	ASSERT_EQ(0, run_cmd(self->fd, self->q, &fill, &cqe));
	ASSERT_EQ(2, begin(self->fd, self->q, self->fence, HUNG));
	do {
		ret = q_wait(self->fd, self->q, &cqe, 1, 1, -1);
	} while (ret == 1);
	ASSERT_EQ(-EIO, ret);

	n = dumps(text, sizeof(text));
	EXPECT_EQ(1, n);
	EXPECT_EQ(0, strncmp(text, "csrec-dump 1\nwhy no progress", 28));
	EXPECT_EQ(0, strcmp(text + strlen(text) - 5, "\nend\n"));
	EXPECT_NE(NULL, strstr(text, "\nreg status 0x3\n"));
	snprintf(want, sizeof(want), "\nqueue %d domain ", self->q);
	EXPECT_NE(NULL, strstr(text, want));
	EXPECT_NE(NULL, strstr(text, " tail 3 posted 2 head 2"));
	EXPECT_NE(NULL, strstr(text, "device tail 3 posted 2 hung\n"));
	/* commands: ended, told to hang, in flight */
	snprintf(want, sizeof(want), "\ncmd %d 0 opcode 0x03 flags 0x00 cid 0 done", self->q);
	EXPECT_NE(NULL, strstr(text, want));
	snprintf(want, sizeof(want), "dst %08x+0x1000 len 0x1000\n", dram);
	EXPECT_NE(NULL, strstr(text, want));
	snprintf(want, sizeof(want), "\ncmd %d 1 opcode 0x01 flags 0x00 cid %u done\n", self->q, HUNG);
	EXPECT_NE(NULL, strstr(text, want));
	snprintf(want, sizeof(want), "\ncmd %d 2 opcode 0x06 flags 0x00 cid 0 in-flight fence %08x value 1\n",
		 self->q, self->fence);
	EXPECT_NE(NULL, strstr(text, want));
	snprintf(want, sizeof(want), "\nregion %08x domain", dram);
	EXPECT_NE(NULL, strstr(text, want));
	EXPECT_NE(NULL, strstr(text, "kind 2 rights 3 size 8192 "));
	EXPECT_NE(NULL, strstr(text, "kind 1 rights 1 size 65536 "));
	snprintf(want, sizeof(want), "\nfence %08x domain", self->fence);
	EXPECT_NE(NULL, strstr(text, want));
	/* not what was written, nor where in the kernel anything lies */
	EXPECT_EQ(NULL, strstr(text, "feedc0de"));
	EXPECT_EQ(NULL, strstr(text, "ffff"));
	drop_dumps();
	EXPECT_EQ(0, dumps(text, sizeof(text)));
}

/* QUEUE_RESET instead of destroying it. */
TEST_F(hang, queue_comes_back)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	int evt = eventfd(0, EFD_NONBLOCK), ret;
	struct csrec_cqe cqes[2];
	struct pollfd p = { .fd = self->fd, .events = POLLIN }, e = { .fd = evt, .events = POLLIN };
	uint64_t n;

	ASSERT_EQ(2, begin(self->fd, self->q, self->fence, HUNG));
	ASSERT_EQ(1, q_wait(self->fd, self->q, cqes, 1, 1, -1));
	ASSERT_EQ(0, q_eventfd(self->fd, self->q, evt));
	do {
		ret = q_wait(self->fd, self->q, cqes, 1, 1, -1);
	} while (ret > 0);
	ASSERT_EQ(-EIO, ret);
	/* the eventfd was told; and one that comes later is as well */
	EXPECT_EQ(1, poll(&e, 1, 60000));
	EXPECT_EQ(8, read(evt, &n, 8));
	EXPECT_EQ(0, q_eventfd(self->fd, self->q, -1));
	EXPECT_EQ(0, q_eventfd(self->fd, self->q, evt));
	EXPECT_EQ(8, read(evt, &n, 8));
	EXPECT_EQ(0, q_reset(self->fd, self->q));
	EXPECT_EQ(0, poll(&p, 1, 0));
	EXPECT_EQ(0, run_cmd(self->fd, self->q, &nop, cqes));
	close(evt);
}

/* The watchdog looks after queues that it learns of by CSREC_DB_STATE only. */
TEST_F(hang, mapped_queue_is_reset)
{
	struct csrec_cmd cmds[2] = { cmd_make(CSREC_OP_NOP, HUNG),
				     cmd_fence(CSREC_OP_WAIT, self->fence, 1) };
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	struct pollfd p = { .fd = self->fd, .events = POLLIN };
	struct csrec_stats before, after;
	struct csrec_cqe cqe;
	struct mapq q, q2;
	int ret;

	ret = mapq_create(&q, self->fd, 8, 0, 0, 0);
	if (ret == -EOPNOTSUPP)
		SKIP(return, "this device has no mapped queues");
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, mapq_create(&q2, self->fd, 8, 0, 0, 0));
	ASSERT_EQ(0, mapq_run(&q2, &nop));
	mapq_tell(&q2);
	ASSERT_EQ(0, get_stats(self->fd, &before));
	for (int i = 0; i < 13; i++) {
		ASSERT_EQ(0, mapq_run(&q, &nop));
	}
	mapq_put(&q, &cmds[0]);
	mapq_put(&q, &cmds[1]);
	mapq_ring(&q);
	do {
		ASSERT_EQ(1, poll(&p, 1, 120000));
		while (mapq_take(&q, &cqe))
			;
		mapq_tell(&q);
	} while (!(p.revents & POLLERR));
	do {
		ret = mapq_wait(&q, 1, -1);
		while (mapq_take(&q, &cqe))
			;
	} while (ret > 0);
	EXPECT_EQ(-EIO, ret);
	ASSERT_EQ(0, get_stats(self->fd, &after));
	EXPECT_EQ(before.queue_resets + 1, after.queue_resets);
	/* another one of the same context is well */
	EXPECT_EQ(0, mapq_run(&q2, &nop));
	mapq_tell(&q2);
	/* the same rings, from 0 */
	ASSERT_EQ(0, q_reset(self->fd, q.id));
	q.tail = 0;
	q.head = 0;
	EXPECT_EQ(0, poll(&p, 1, 0));
	for (int i = 0; i < 13; i++) {
		ASSERT_EQ(0, mapq_run(&q, &nop));
	}
}

/* A device of interface 1.0 does all that there was before, and says what it does not. */
TEST_F(hang, old_device)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, OLD);
	struct csrec_queue_create arg;
	struct csrec_info info;
	struct csrec_cqe cqe;

	ASSERT_EQ(0, get_info(self->fd, &info));
	if (!info.hw_minor)
		SKIP(return, "this device is that old itself");
	EXPECT_EQ(CSREC_FEATURE_COALESCE | CSREC_FEATURE_QUEUE_MAP,
		  info.features & (CSREC_FEATURE_COALESCE | CSREC_FEATURE_QUEUE_MAP));
	ASSERT_EQ(0, run_cmd(self->fd, self->q, &nop, &cqe));
	close(self->fd);
	ASSERT_EQ(0, write_file("/sys/bus/pci/drivers/csrec/unbind", self->bdf));
	ASSERT_EQ(0, write_file("/sys/bus/pci/drivers/csrec/bind", self->bdf));
	self->fd = wait_for_node();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, get_info(self->fd, &info));
	EXPECT_EQ(0, info.hw_minor);
	EXPECT_EQ(0, info.features & (CSREC_FEATURE_COALESCE | CSREC_FEATURE_QUEUE_MAP));
	EXPECT_EQ(-EOPNOTSUPP, mapq_create_raw(self->fd, &arg, 4, CSREC_QUEUE_F_MAP, 0, 0));
	EXPECT_EQ(-EOPNOTSUPP, mapq_create_raw(self->fd, &arg, 4, CSREC_QUEUE_F_NOIRQ, 0, 0));
	EXPECT_EQ(-EOPNOTSUPP, mapq_create_raw(self->fd, &arg, 4, 0, 2, 100));
	EXPECT_EQ(-EOPNOTSUPP, mapq_create_raw(self->fd, &arg, 4, 0, 0, 100));
	nop = cmd_make(CSREC_OP_NOP, 1);
	ASSERT_EQ(0, mapq_create_raw(self->fd, &arg, 4, 0, 0, 0));
	EXPECT_EQ(0, run_cmd(self->fd, arg.queue_id, &nop, &cqe));
	EXPECT_EQ(0, q_reset(self->fd, arg.queue_id));
	EXPECT_EQ(0, run_cmd(self->fd, arg.queue_id, &nop, &cqe));
	/* and is what it is again */
	ASSERT_EQ(0, reset(self->sysfs));
	ASSERT_EQ(0, write_file("/sys/bus/pci/drivers/csrec/unbind", self->bdf));
	ASSERT_EQ(0, write_file("/sys/bus/pci/drivers/csrec/bind", self->bdf));
}

static void dies(struct __test_metadata *_metadata, FIXTURE_DATA(hang) *self, uint16_t mode)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	uint8_t *host = pages(64 * KIB);
	static char text[300 * KIB];
	struct csrec_cqe cqes[2];
	uint32_t key;
	int ret;

	ASSERT_EQ(0, mem_register(self->fd, host, 64 * KIB, CSREC_RIGHT_WRITE, &key));
	ASSERT_EQ(2, begin(self->fd, self->q, self->fence, mode));
	do {
		ret = q_wait(self->fd, self->q, cqes, 1, 1, -1);
	} while (ret > 0);
	EXPECT_EQ(-EIO, ret);
	EXPECT_EQ(-EIO, mem_free(self->fd, key));
	EXPECT_EQ(-EIO, q_submit(self->fd, self->q, &nop, 1));
	/* lets go of everything though the device confirms nothing */
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(-EIO, dev_open());
	/* one event, one dump: of the queue that was found first */
	if (dumps(text, sizeof(text)) != -ENOENT) {
		EXPECT_EQ(1, dumps(text, sizeof(text)));
		EXPECT_NE(NULL, strstr(text, " hung"));
	}
	EXPECT_TRUE(attr_is("state", "failed"));

	ASSERT_EQ(0, reset(self->sysfs));
	EXPECT_TRUE(attr_is("state", "live"));
	self->fd = dev_open();
	ASSERT_LE(0, self->fd);
	self->q = q_create(self->fd, 16);
	ASSERT_LT(0, self->q);
	EXPECT_EQ(0, run_cmd(self->fd, self->q, &nop, cqes));
	EXPECT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, 4096, &key));
}

/* The admin queue does not answer either: the device is given up until it is reset. */
TEST_F(hang, device_is_given_up)
{
	dies(_metadata, self, DEAD);
}

/* A reset that brings the device back to no life: -EIO for who opens it, until the next one. */
TEST_F(hang, reset_that_fails)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, LAME);
	struct csrec_cqe cqe;
	struct csrec_info info;

	ASSERT_EQ(0, run_cmd(self->fd, self->q, &nop, &cqe));
	/* whether the file says that it failed is the kernel's business */
	reset(self->sysfs);
	EXPECT_EQ(-EIO, dev_open());
	EXPECT_EQ(-ENODEV, get_info(self->fd, &info));

	ASSERT_EQ(0, reset(self->sysfs));
	EXPECT_EQ(-ENODEV, get_info(self->fd, &info));
	close(self->fd);
	self->fd = dev_open();
	ASSERT_LE(0, self->fd);
	self->q = q_create(self->fd, 16);
	ASSERT_LT(0, self->q);
	nop = cmd_make(CSREC_OP_NOP, 1);
	EXPECT_EQ(0, run_cmd(self->fd, self->q, &nop, &cqe));
}

/* Not even its clock moves. */
TEST_F(hang, device_without_a_clock)
{
	dies(_metadata, self, STUCK);
}

TEST_HARNESS_MAIN
