/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What tests of life and death share: a process with everything at work, somebody who waits
 * for ever, and what must hold once a device is gone or back.
 */
#ifndef CSREC_TEST_LIFE_H
#define CSREC_TEST_LIFE_H

#include <pthread.h>

#include "mapq.h"

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

/*
 * One who has all that can be had of the device: a queue that he maps, with work on it; registered
 * memory that the device writes to; device memory that he maps; a dma-buf.
 */
#define HOLD_LEN	(256 * KIB)

struct holder {
	int fd;
	struct mapq q;
	uint8_t *host;
	uint32_t dram;
	uint64_t offset;
	uint8_t *p;		/* the mapping of device memory; NULL, and no dma-buf: not on this kernel */
	int buf;
};

static int hold(struct holder *h)
{
	uint32_t key, fence;
	struct csrec_cmd cmd;
	int ret;

	*h = (struct holder){ .fd = dev_open(), .buf = -1, .host = pages(HOLD_LEN) };
	ret = mapq_create(&h->q, h->fd, 16, 0, 0, 0);
	ret = ret ?: mem_alloc_map(h->fd, HOLD_LEN, 0, &h->dram, &h->offset);
	ret = ret ?: mem_register(h->fd, h->host, HOLD_LEN, CSREC_RIGHT_WRITE, &key);
	ret = ret ?: fence_create(h->fd, 0, &fence);
	if (ret)
		return ret;
	if (h->offset) {
		h->p = map_at(h->fd, h->offset, HOLD_LEN);
		h->buf = mem_export(h->fd, h->dram, O_RDWR);
		if (!h->p || h->buf < 0)
			return -ENXIO;
		memset(h->p, 0x5a, HOLD_LEN);
	}
	/* at work now, and with something that never ends */
	cmd = cmd_copy(h->dram, 0, key, 0, HOLD_LEN);
	while (h->q.tail < 15)
		mapq_put(&h->q, &cmd);
	cmd = cmd_fence(CSREC_OP_WAIT, fence, 1);
	mapq_put(&h->q, &cmd);
	mapq_ring(&h->q);
	return 0;
}

/* Somebody else may still have to take it away. */
#define SOON(cond)								\
({										\
	int tries_ = 1000;							\
										\
	while (!(cond) && --tries_)						\
		usleep(10000);							\
	tries_ > 0;								\
})

static bool unmappable(const struct holder *h, uint64_t off, uint64_t len, int err)
{
	return !map_at(h->fd, off, len) && errno == -err;
}

/* All of it is lost, and nothing of it reaches the device, which calls answer with @err. */
static const char *lost(struct holder *h, int err)
{
	struct pollfd p = { .fd = h->fd, .events = POLLIN };
	struct csrec_info info;
	uint32_t key;

	if (get_info(h->fd, &info) != err || mapq_wait(&h->q, 0, 0) != err ||
	    q_reset(h->fd, h->q.id) != err || mem_free(h->fd, h->dram) != err ||
	    mem_alloc(h->fd, CSREC_REGION_DRAM, 4096, &key) != err)
		return "calls";
	if (poll(&p, 1, 0) != 1 || !(p.revents & POLLHUP))
		return "poll()";
	if (!unmappable(h, h->q.arg.ring_offset, h->q.arg.ring_len, err) ||
	    !unmappable(h, h->q.arg.db_offset, h->q.arg.db_len, err) ||
	    (h->p && !unmappable(h, h->offset, HOLD_LEN, err)))
		return "mmap()";
	if (h->p && !SOON(is_bus_error(h->p) && is_bus_error(h->p + HOLD_LEN - 1)))
		return "device memory";
	if (!SOON(mapq_db_is_memory(&h->q)))
		return "doorbell";
	mapq_ring(&h->q);
	if (mapq_is_memory(&h->q))
		return "rings";
	if (h->buf >= 0 && mem_export(h->fd, h->dram, O_RDWR) != err)
		return "export";
	memset(h->host, 0xa5, HOLD_LEN);
	return NULL;
}

/* Once there is a new life: the old one's dma-buf is of nothing, and its memory left alone. */
static const char *stays_lost(struct holder *h)
{
	int fd = dev_open();
	const char *why;
	uint64_t len;
	uint32_t key;

	for (size_t i = 0; i < HOLD_LEN; i++)
		if (h->host[i] != 0xa5)
			return "registered memory";
	if (h->buf >= 0 && mem_import(fd, h->buf, CSREC_RIGHT_READ, &key, &len) != -EOPNOTSUPP)
		return "dma-buf";
	close(fd);
	why = lost(h, -ENODEV);
	if (why)
		return why;
	if (munmap(h->q.sq, h->q.arg.ring_len) || munmap((void *)h->q.db, h->q.arg.db_len) ||
	    (h->p && munmap(h->p, HOLD_LEN)) || close(h->fd) || (h->buf >= 0 && close(h->buf)))
		return "the end";
	return NULL;
}

#define EXPECT_LOST(call)							\
	do {									\
		const char *why_ = call;					\
										\
		EXPECT_EQ(NULL, why_) {						\
			TH_LOG("not as it must be: %s", why_);			\
		}								\
	} while (0)

/* Another process, which is in its device memory when that goes, or waits for the end. */
static pid_t start_holder(void)
{
	struct pollfd hup = {};
	int ready[2];
	struct holder h;
	pid_t pid;
	char c;

	if (pipe(ready))
		return -1;
	pid = fork();
	if (!pid) {
		close(ready[0]);
		if (hold(&h) || write(ready[1], "x", 1) != 1)
			_exit(1);
		while (h.p)
			*(volatile uint8_t *)h.p += 1;
		/* completions are there: only the end counts */
		hup.fd = h.fd;
		_exit(poll(&hup, 1, -1) == 1 && hup.revents & POLLHUP ? 0 : 2);
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		pid = -1;
	close(ready[0]);
	return pid;
}

/* What became of it; true if that is right. */
static bool holder_ended(pid_t pid, const struct holder *self)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return false;
	return self->p ? WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS : !status;
}

#endif /* CSREC_TEST_LIFE_H */
