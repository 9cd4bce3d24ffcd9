/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What tests of life and death share: a process with everything at work, somebody who waits
 * for ever, and what must hold once a device is gone or back.
 */
#ifndef CSREC_TEST_LIFE_H
#define CSREC_TEST_LIFE_H

#include <libgen.h>
#include <linux/pci_regs.h>
#include <pthread.h>

#include "csrec_test.h"

static int wait_for_node(void)
{
	for (int i = 0; i < 3000; i++) {
		int fd = dev_open();

		if (fd >= 0 || fd != -ENOENT)
			return fd;
		usleep(10000);
	}
	return -ENOENT;
}

/* A new context finds everything free, and a device that works. */
static int is_as_new(const struct csrec_info *before)
{
	int fd = wait_for_node(), n = (before->cap_queue >> CSREC_CAPQ_IOQ_SHIFT) & 0xff;
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	struct csrec_info info;
	struct csrec_stats st;
	struct csrec_cqe cqe;
	uint32_t key;
	int ret;

	if (fd < 0)
		return fd;
	/* a drive that writes to memory of a dead context keeps it until it is done */
	for (int i = 0; i < 3000; i++) {
		ret = get_info(fd, &info);
		if (ret || info.dram_free == info.cap_dram)
			break;
		usleep(10000);
	}
	if (!ret && (info.dram_free != info.cap_dram || info.onchip_free != info.cap_onchip))
		ret = -ENOMEM;
	if (!ret)
		ret = get_stats(fd, &st);
	if (!ret && st.pinned_bytes)
		ret = -EBUSY;
	for (int i = 0; !ret && i < n; i++) {
		int q = q_create(fd, 2);

		ret = q < 0 ? q : run_cmd(fd, q, &nop, &cqe);
	}
	if (!ret)
		ret = mem_alloc(fd, CSREC_REGION_DRAM, 64 * KIB, &key);
	if (!ret)
		ret = fence_create(fd, 0, &key);
	close(fd);
	return ret;
}

/*
 * A process with everything at work: long copies between all memories, a queue that waits
 * for a fence, reads from the drive. Never returns.
 */
#define BUSY_LEN	(4 * MIB)

static void *read_forever(void *arg)
{
	uint32_t *a = arg;		/* fd, key, drive */
	struct csrec_p2p_seg seg = { .len = BUSY_LEN, .key = a[1] };
	struct csrec_p2p_read pr = { .size = sizeof(pr), .fd = a[2], .count = 1,
				     .segs = (uintptr_t)&seg };

	for (unsigned int i = 0; ; i++) {
		pr.flags = i % 2 ? CSREC_P2P_F_BOUNCE : 0;
		if (xioctl(a[0], CSREC_IOC_P2P_READ, &pr))
			return NULL;
	}
}

static void busy_process(int ready)
{
	int fd = dev_open(), q = q_create(fd, 16), q2 = q_create(fd, 4);
	void *host = pages(BUSY_LEN);
	uint32_t dram[2], key, fence, args[3];
	struct csrec_cmd cmds[16];
	struct csrec_cqe cqes[16];
	pthread_t t;

	if (q < 0 || q2 < 0 || mem_alloc(fd, CSREC_REGION_DRAM, BUSY_LEN, &dram[0]) ||
	    mem_alloc(fd, CSREC_REGION_DRAM, BUSY_LEN, &dram[1]) ||
	    mem_register(fd, host, BUSY_LEN, CSREC_RIGHT_READ | CSREC_RIGHT_WRITE, &key) ||
	    fence_create(fd, 0, &fence))
		_exit(1);
	cmds[0] = cmd_fence(CSREC_OP_WAIT, fence, 1);
	q_submit(fd, q2, cmds, 1);
	args[0] = fd;
	args[1] = dram[1];
	args[2] = open(DRIVE, O_RDONLY);
	pthread_create(&t, NULL, read_forever, args);
	for (int i = 0; i < 16; i++)
		cmds[i] = i % 2 ? cmd_copy(key, 0, dram[0], 0, BUSY_LEN) :
				  cmd_copy(dram[0], 0, key, 0, BUSY_LEN);
	for (int i = 0; ; i++) {
		if (q_submit(fd, q, cmds, 16) < 0)
			_exit(2);
		if (!i && write(ready, "x", 1) != 1)
			_exit(3);
		q_wait(fd, q, cqes, 16, 16, -1);
	}
}

/* The process, when it has all that in flight; or -1. */
static pid_t start_busy(void)
{
	int ready[2];
	pid_t pid;
	char c;

	if (pipe(ready))
		return -1;
	pid = fork();
	if (!pid) {
		close(ready[0]);
		busy_process(ready[1]);
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		pid = -1;
	close(ready[0]);
	return pid;
}

struct waiter {
	int fd, q, ret, poll;
	pthread_t thread;
};

static void *wait_thread(void *arg)
{
	struct waiter *w = arg;
	struct csrec_cqe cqe;
	struct pollfd p = { .fd = w->fd, .events = POLLIN };

	w->ret = q_wait(w->fd, w->q, &cqe, 1, 1, -1);
	if (poll(&p, 1, -1) == 1)
		w->poll = p.revents;
	return NULL;
}

/* Somebody in WAIT for ever. */
static int start_waiter(struct waiter *w, int fd, int q, uint32_t fence)
{
	struct csrec_cmd cmd = cmd_fence(CSREC_OP_WAIT, fence, 1);

	*w = (struct waiter){ .fd = fd, .q = q };
	if (q_submit(fd, q, &cmd, 1) != 1)
		return -EIO;
	if (pthread_create(&w->thread, NULL, wait_thread, w))
		return -EAGAIN;
	usleep(50000);
	return 0;
}

/* Every call on the context fails as it must once its device is gone. */
#define EXPECT_DEAD(_fd, _q, err)								\
	do {										\
		struct csrec_cmd nop_ = cmd_make(CSREC_OP_NOP, 1);			\
		struct pollfd p_ = { .fd = (_fd), .events = POLLIN };			\
		struct csrec_info info_;						\
		struct csrec_cqe cqe_;							\
		uint32_t key_;								\
											\
		EXPECT_EQ(err, get_info(_fd, &info_));					\
		EXPECT_EQ(err, q_create(_fd, 16));					\
		EXPECT_EQ(err, q_destroy(_fd, _q));					\
		EXPECT_EQ(err, q_submit(_fd, _q, &nop_, 1));				\
		EXPECT_EQ(err, q_wait(_fd, _q, &cqe_, 1, 1, -1));				\
		EXPECT_EQ(err, mem_alloc(_fd, CSREC_REGION_DRAM, 4096, &key_));		\
		EXPECT_EQ(err, mem_free(_fd, 0));					\
		EXPECT_EQ(err, fence_create(_fd, 0, &key_));				\
		EXPECT_EQ(1, poll(&p_, 1, 0));						\
		EXPECT_EQ(POLLHUP, p_.revents & POLLHUP);				\
	} while (0)

static int reset(const char *sysfs)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/reset", sysfs);
	return write_file(path, "1");
}

/* Sets or clears bits of the PCI command register, behind the driver's back. */
static int pci_command(const char *sysfs, uint16_t clear, uint16_t set)
{
	char path[96];
	uint16_t cmd;
	int fd, ret = 0;

	snprintf(path, sizeof(path), "%s/config", sysfs);
	fd = open(path, O_RDWR);
	if (fd < 0)
		return -errno;
	if (pread(fd, &cmd, 2, PCI_COMMAND) != 2)
		ret = -EIO;
	cmd = (cmd & ~clear) | set;
	if (!ret && pwrite(fd, &cmd, 2, PCI_COMMAND) != 2)
		ret = -EIO;
	close(fd);
	return ret;
}

/* The directory of the device's PCI device, and its name. */
static int find_device(char *sysfs, size_t len, char *bdf, size_t bdf_len)
{
	char link[256] = {};

	if (readlink("/sys/class/csrec/csrec0/device", link, sizeof(link) - 1) <= 0)
		return -errno;
	snprintf(bdf, bdf_len, "%s", basename(link));
	snprintf(sysfs, len, "/sys/bus/pci/devices/%s", bdf);
	return 0;
}

#endif /* CSREC_TEST_LIFE_H */
