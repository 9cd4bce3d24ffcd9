// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Queues: create, destroy, submit, wait, poll.
 */
#include <pthread.h>

#include "csrec_test.h"

FIXTURE(queue)
{
	int fd;
	int q;
	uint32_t fence;
	struct csrec_info info;
};

FIXTURE_SETUP(queue)
{
	self->fd = dev_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, get_info(self->fd, &self->info));
	self->q = q_create(self->fd, 16);
	ASSERT_LT(0, self->q);
	ASSERT_EQ(0, fence_create(self->fd, 0, &self->fence));
}

FIXTURE_TEARDOWN(queue)
{
	close(self->fd);
}

static unsigned int max_entries(const struct csrec_info *info)
{
	return 1u << ((info->cap_queue >> CSREC_CAPQ_ENTRIES_SHIFT) & 0xff);
}

static unsigned int nr_queues(const struct csrec_info *info)
{
	return (info->cap_queue >> CSREC_CAPQ_IOQ_SHIFT) & 0xff;
}

/* Blocks the queue until the fence is raised to 1. */
static int block(int fd, int q, uint32_t fence)
{
	struct csrec_cmd cmd = cmd_fence(CSREC_OP_WAIT, fence, 1);

	return q_submit(fd, q, &cmd, 1);
}

TEST_F(queue, entries)
{
	int q;

	EXPECT_EQ(-EINVAL, q_create(self->fd, 0));
	EXPECT_EQ(-EINVAL, q_create(self->fd, 1));
	EXPECT_EQ(-EINVAL, q_create(self->fd, 3));
	EXPECT_EQ(-EINVAL, q_create(self->fd, 24));
	EXPECT_EQ(-EINVAL, q_create(self->fd, 2 * max_entries(&self->info)));
	EXPECT_EQ(-EINVAL, q_create(self->fd, 0x80000000));
	q = q_create(self->fd, 2);
	EXPECT_LT(0, q);
	q = q_create(self->fd, max_entries(&self->info));
	EXPECT_LT(0, q);
}

TEST_F(queue, as_many_as_there_are)
{
	unsigned int n = nr_queues(&self->info);
	int q = 0;

	for (unsigned int i = 1; i < n; i++) {
		q = q_create(self->fd, 2);
		ASSERT_LT(0, q);
	}
	EXPECT_EQ(-ENOSPC, q_create(self->fd, 2));
	EXPECT_EQ(0, q_destroy(self->fd, q));
	EXPECT_LT(0, q_create(self->fd, 2));
}

TEST_F(queue, destroy_what_is_not_there)
{
	EXPECT_EQ(-ENOENT, q_destroy(self->fd, 0));
	EXPECT_EQ(-ENOENT, q_destroy(self->fd, nr_queues(&self->info) + 1));
	EXPECT_EQ(-ENOENT, q_destroy(self->fd, 0xffffffff));
	EXPECT_EQ(0, q_destroy(self->fd, self->q));
	EXPECT_EQ(-ENOENT, q_destroy(self->fd, self->q));
}

TEST_F(queue, foreign)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	struct csrec_cqe cqe;
	int fd = dev_open();

	ASSERT_LE(0, fd);
	EXPECT_EQ(-ENOENT, q_destroy(fd, self->q));
	EXPECT_EQ(-ENOENT, q_submit(fd, self->q, &nop, 1));
	EXPECT_EQ(-ENOENT, q_wait(fd, self->q, &cqe, 0, 1, 0));
	close(fd);
	EXPECT_EQ(0, run_cmd(self->fd, self->q, &nop, &cqe));
}

TEST_F(queue, destroy_aborts)
{
	struct csrec_cqe cqe;

	ASSERT_EQ(1, block(self->fd, self->q, self->fence));
	EXPECT_EQ(0, q_destroy(self->fd, self->q));
	EXPECT_EQ(-ENOENT, q_wait(self->fd, self->q, &cqe, 1, 1, 0));
	/* the slot can be used again */
	self->q = q_create(self->fd, 4);
	EXPECT_LT(0, self->q);
}

TEST_F(queue, submit_counts)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);

	EXPECT_EQ(-EINVAL, q_submit(self->fd, self->q, &nop, 0));
	EXPECT_EQ(-EINVAL, q_submit(self->fd, self->q, &nop, CSREC_SUBMIT_MAX + 1));
	EXPECT_EQ(-ENOENT, q_submit(self->fd, 0, &nop, 1));
	EXPECT_EQ(-ENOENT, q_submit(self->fd, 0xffffffff, &nop, 1));
	EXPECT_EQ(-EFAULT, q_submit(self->fd, self->q, NULL, 1));
	EXPECT_EQ(-EFAULT, q_submit(self->fd, self->q, (void *)0xffff888000000000, 1));
}

TEST_F(queue, submit_from_the_end_of_a_page)
{
	uint8_t *page = guarded_page();
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	struct csrec_cqe cqe;

	ASSERT_NE(NULL, page);
	memcpy(page + 4096 - sizeof(nop), &nop, sizeof(nop));
	EXPECT_EQ(-EFAULT, q_submit(self->fd, self->q, (void *)(page + 4096 - sizeof(nop)), 2));
	EXPECT_EQ(-EINVAL, q_wait(self->fd, self->q, &cqe, 1, 1, 0));
	EXPECT_EQ(1, q_submit(self->fd, self->q, (void *)(page + 4096 - sizeof(nop)), 1));
	EXPECT_EQ(1, q_wait(self->fd, self->q, &cqe, 1, 1, -1));
}

/* Takes what fits, and counts a command until its completion was returned. */
TEST_F(queue, full)
{
	struct csrec_cmd cmds[32];
	struct csrec_cqe cqes[32];

	for (int i = 0; i < 32; i++)
		cmds[i] = cmd_make(CSREC_OP_NOP, i);
	EXPECT_EQ(16, q_submit(self->fd, self->q, cmds, 32));
	EXPECT_EQ(-EAGAIN, q_submit(self->fd, self->q, cmds, 1));
	EXPECT_EQ(3, q_wait(self->fd, self->q, cqes, 3, 3, -1));
	EXPECT_EQ(3, q_submit(self->fd, self->q, cmds, 4));
	EXPECT_EQ(-EAGAIN, q_submit(self->fd, self->q, cmds, 1));
	EXPECT_EQ(16, q_wait(self->fd, self->q, cqes, 16, 32, -1));
	EXPECT_EQ(-EINVAL, q_wait(self->fd, self->q, cqes, 1, 1, 0));
}

TEST_F(queue, one_doorbell_a_call)
{
	struct csrec_stats before, after;
	struct csrec_cmd cmds[16];
	struct csrec_cqe cqes[16];

	for (int i = 0; i < 16; i++)
		cmds[i] = cmd_make(CSREC_OP_NOP, i);
	ASSERT_EQ(0, get_stats(self->fd, &before));
	for (int i = 0; i < 10; i++) {
		ASSERT_EQ(16, q_submit(self->fd, self->q, cmds, 16));
		ASSERT_EQ(16, q_wait(self->fd, self->q, cqes, 16, 16, -1));
	}
	ASSERT_EQ(0, get_stats(self->fd, &after));
	EXPECT_EQ(before.doorbells + 10, after.doorbells);
	EXPECT_EQ(before.commands + 160, after.commands);
}

/* Every alignment of submission and wait against rings of two and of four. */
TEST_F(queue, wrap_around)
{
	static const unsigned int sizes[] = { 2, 4 };

	for (unsigned int s = 0; s < 2; s++) {
		unsigned int entries = sizes[s], sent = 0, got = 0, seen[64] = {};
		int q = q_create(self->fd, entries);

		ASSERT_LT(0, q);
		while (got < 64) {
			unsigned int n = 1 + (sent + s) % entries;
			struct csrec_cmd cmds[4];
			struct csrec_cqe cqes[4];
			int ret;

			for (unsigned int i = 0; i < n; i++)
				cmds[i] = cmd_make(CSREC_OP_NOP, sent + i);
			if (n > 64 - sent)
				n = 64 - sent;
			if (n && sent - got < entries) {
				ret = q_submit(self->fd, q, cmds, n);
				ASSERT_LT(0, ret);
				sent += ret;
			}
			ret = q_wait(self->fd, q, cqes, 1, 1 + got % entries, -1);
			ASSERT_LT(0, ret);
			for (int i = 0; i < ret; i++) {
				ASSERT_EQ(0, cqe_status(&cqes[i]));
				ASSERT_GT(sent, le16toh(cqes[i].cid));
				seen[le16toh(cqes[i].cid)]++;
			}
			got += ret;
		}
		for (int i = 0; i < 64; i++) {
			EXPECT_EQ(1, seen[i]);
		}
		EXPECT_EQ(0, q_destroy(self->fd, q));
	}
}

TEST_F(queue, largest_ring_at_once)
{
	unsigned int n = max_entries(&self->info);
	struct csrec_cmd *cmds = calloc(n, sizeof(*cmds));
	struct csrec_cqe *cqes = calloc(n, sizeof(*cqes));
	int q = q_create(self->fd, n);
	uint8_t *seen = calloc(n, 1);

	ASSERT_LT(0, q);
	for (unsigned int i = 0; i < n; i++)
		cmds[i] = cmd_make(CSREC_OP_NOP, i);
	if (n > CSREC_SUBMIT_MAX)
		n = CSREC_SUBMIT_MAX;
	ASSERT_EQ(n, q_submit(self->fd, q, cmds, n));
	ASSERT_EQ(n, q_wait(self->fd, q, cqes, n, n, -1));
	for (unsigned int i = 0; i < n; i++)
		seen[le16toh(cqes[i].cid)]++;
	for (unsigned int i = 0; i < n; i++) {
		ASSERT_EQ(1, seen[i]);
	}
}

TEST_F(queue, wait_arguments)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 7);
	struct csrec_cqe cqes[2];

	EXPECT_EQ(-EINVAL, q_wait(self->fd, self->q, cqes, 1, 1, 0));	/* nothing outstanding */
	ASSERT_EQ(1, q_submit(self->fd, self->q, &nop, 1));
	EXPECT_EQ(-EINVAL, q_wait(self->fd, self->q, cqes, 2, 1, 0));
	EXPECT_EQ(-EINVAL, q_wait(self->fd, self->q, cqes, 2, 2, -1));	/* one outstanding */
	EXPECT_EQ(-EINVAL, q_wait(self->fd, self->q, cqes, 0, 0, 0));
	EXPECT_EQ(-EINVAL, q_wait(self->fd, self->q, cqes, 0, CSREC_SUBMIT_MAX + 1, 0));
	EXPECT_EQ(-EINVAL, q_wait(self->fd, self->q, cqes, 1, 1, -2));
	EXPECT_EQ(-ENOENT, q_wait(self->fd, 0, cqes, 1, 1, -1));
	/* a bad pointer takes nothing */
	EXPECT_EQ(-EFAULT, q_wait(self->fd, self->q, NULL, 1, 1, -1));
	EXPECT_EQ(1, q_wait(self->fd, self->q, cqes, 1, 2, -1));
	EXPECT_EQ(7, le16toh(cqes[0].cid));
	/* nor does it fail with nothing asked */
	EXPECT_EQ(0, q_wait(self->fd, self->q, cqes, 0, 2, 0));
}

TEST_F(queue, wait_without_waiting)
{
	struct csrec_cqe cqe;

	ASSERT_EQ(1, block(self->fd, self->q, self->fence));
	EXPECT_EQ(-EAGAIN, q_wait(self->fd, self->q, &cqe, 1, 1, 0));
	EXPECT_EQ(0, q_wait(self->fd, self->q, &cqe, 0, 1, 0));
	EXPECT_EQ(0, q_wait(self->fd, self->q, &cqe, 0, 1, -1));
	ASSERT_EQ(0, fence_signal(self->fd, self->fence, 1));
	EXPECT_EQ(1, q_wait(self->fd, self->q, &cqe, 1, 1, -1));
}

TEST_F(queue, wait_timeout)
{
	struct csrec_cqe cqe;
	int64_t start;

	ASSERT_EQ(1, block(self->fd, self->q, self->fence));
	start = now_ns();
	EXPECT_EQ(-ETIMEDOUT, q_wait(self->fd, self->q, &cqe, 1, 1, 20 * MS));
	/* never earlier; how much later is not ours to say */
	EXPECT_LE(20 * MS, now_ns() - start);
	ASSERT_EQ(0, fence_signal(self->fd, self->fence, 1));
	/* the command is still there */
	EXPECT_EQ(1, q_wait(self->fd, self->q, &cqe, 1, 1, -1));
}

/* What has come until the time is over is returned, though it is less than asked for. */
TEST_F(queue, wait_timeout_with_some)
{
	struct csrec_cmd cmds[3];
	struct csrec_cqe cqes[3];
	int ret;

	cmds[0] = cmd_make(CSREC_OP_NOP, 1);
	cmds[1] = cmd_fence(CSREC_OP_WAIT, self->fence, 1);
	cmds[2] = cmd_make(CSREC_OP_NOP, 3);
	ASSERT_EQ(3, q_submit(self->fd, self->q, cmds, 3));
	do
		ret = q_wait(self->fd, self->q, cqes, 3, 3, 20 * MS);
	while (ret == -ETIMEDOUT);
	EXPECT_EQ(1, ret);
	EXPECT_EQ(1, le16toh(cqes[0].cid));
	ASSERT_EQ(0, fence_signal(self->fd, self->fence, 1));
	EXPECT_EQ(2, q_wait(self->fd, self->q, cqes, 2, 3, -1));
}

static void on_signal(int sig)
{
	(void)sig;
}

TEST_F(queue, wait_signal)
{
	struct sigaction sa = { .sa_handler = on_signal };	/* no SA_RESTART */
	struct itimerspec its = { .it_value.tv_nsec = 50 * MS, .it_interval.tv_nsec = 50 * MS };
	struct csrec_cqe cqe;
	timer_t timer;

	ASSERT_EQ(0, sigaction(SIGALRM, &sa, NULL));
	ASSERT_EQ(1, block(self->fd, self->q, self->fence));
	ASSERT_EQ(0, timer_create(CLOCK_MONOTONIC, NULL, &timer));
	ASSERT_EQ(0, timer_settime(timer, 0, &its, NULL));
	EXPECT_EQ(-EINTR, q_wait(self->fd, self->q, &cqe, 1, 1, -1));
	/* not restarted behind the caller's back either, as its timeout is relative */
	sa.sa_flags = SA_RESTART;
	ASSERT_EQ(0, sigaction(SIGALRM, &sa, NULL));
	EXPECT_EQ(-EINTR, q_wait(self->fd, self->q, &cqe, 1, 1, 3600 * 1000 * MS));
	timer_delete(timer);
	/* nothing was lost */
	ASSERT_EQ(0, fence_signal(self->fd, self->fence, 1));
	EXPECT_EQ(1, q_wait(self->fd, self->q, &cqe, 1, 1, -1));
}

/* A completion that asks for no interrupt is found all the same. */
TEST_F(queue, wait_without_interrupt)
{
	struct csrec_cmd cmd = cmd_make(CSREC_OP_NOP, 9);
	struct csrec_cqe cqe;

	cmd.flags = CSREC_CMD_F_NOIRQ;
	EXPECT_EQ(0, run_cmd(self->fd, self->q, &cmd, &cqe));
	EXPECT_EQ(9, le16toh(cqe.cid));
}

struct waiter {
	int fd, q, ret;
	uint32_t min;
};

static void *wait_thread(void *arg)
{
	struct waiter *w = arg;
	struct csrec_cqe cqe[4];

	w->ret = q_wait(w->fd, w->q, cqe, w->min, w->min, -1);
	return NULL;
}

TEST_F(queue, several_waiters)
{
	struct csrec_cmd cmds[4];
	struct waiter w[4];
	pthread_t t[4];

	cmds[0] = cmd_fence(CSREC_OP_WAIT, self->fence, 1);
	for (int i = 1; i < 4; i++)
		cmds[i] = cmd_make(CSREC_OP_NOP, i);
	ASSERT_EQ(4, q_submit(self->fd, self->q, cmds, 4));
	for (int i = 0; i < 4; i++) {
		w[i] = (struct waiter){ .fd = self->fd, .q = self->q, .min = 1 };
		ASSERT_EQ(0, pthread_create(&t[i], NULL, wait_thread, &w[i]));
	}
	usleep(20000);
	ASSERT_EQ(0, fence_signal(self->fd, self->fence, 1));
	for (int i = 0; i < 4; i++) {
		ASSERT_EQ(0, pthread_join(t[i], NULL));
		EXPECT_EQ(1, w[i].ret);
	}
}

/* A waiter on a command that completes without an interrupt; or -errno. */
static int start_quiet_waiter(pthread_t *t, struct waiter *w, uint32_t fence)
{
	struct csrec_cmd cmd = cmd_fence(CSREC_OP_WAIT, fence, 1);

	cmd.flags = CSREC_CMD_F_NOIRQ;
	if (q_submit(w->fd, w->q, &cmd, 1) != 1 || pthread_create(t, NULL, wait_thread, w))
		return -EAGAIN;
	usleep(50000);
	return 0;
}

/* Far longer than any device takes; who has not come by then never will. */
static int join(pthread_t t)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_sec += 60;
	return pthread_timedjoin_np(t, NULL, &ts);
}

/* Who looks at a completion and leaves it there does not keep it from those who wait for it. */
TEST_F(queue, seen_by_another)
{
	struct waiter w = { .fd = self->fd, .q = self->q, .min = 1 };
	struct pollfd p = { .fd = self->fd, .events = POLLIN };
	pthread_t t;

	ASSERT_EQ(0, start_quiet_waiter(&t, &w, self->fence));
	ASSERT_EQ(0, fence_signal(self->fd, self->fence, 1));
	while (pthread_tryjoin_np(t, NULL)) {
		if (poll(&p, 1, 0) == 1) {
			ASSERT_EQ(0, join(t));
			break;
		}
	}
	EXPECT_EQ(1, w.ret);
}

/* Who takes the last one leaves nobody waiting for what will not come. */
TEST_F(queue, taken_by_another)
{
	struct waiter w = { .fd = self->fd, .q = self->q, .min = 1 };
	struct csrec_cqe cqe;
	pthread_t t;
	int ret = 0;

	ASSERT_EQ(0, start_quiet_waiter(&t, &w, self->fence));
	ASSERT_EQ(0, fence_signal(self->fd, self->fence, 1));
	while (!ret && pthread_tryjoin_np(t, NULL))
		ret = q_wait(self->fd, self->q, &cqe, 0, 1, 0);
	if (ret) {
		EXPECT_EQ(1, ret);
		ASSERT_EQ(0, join(t));
		EXPECT_EQ(-EAGAIN, w.ret);
	} else {
		EXPECT_EQ(1, w.ret);
	}
}

/* Whoever waits on a queue that is destroyed is told. */
TEST_F(queue, destroy_under_a_waiter)
{
	struct waiter w = { .fd = self->fd, .q = self->q, .min = 1 };
	pthread_t t;

	ASSERT_EQ(1, block(self->fd, self->q, self->fence));
	ASSERT_EQ(0, pthread_create(&t, NULL, wait_thread, &w));
	usleep(50000);
	ASSERT_EQ(0, q_destroy(self->fd, self->q));
	ASSERT_EQ(0, pthread_join(t, NULL));
	/* the aborted command's completion, if the waiter was quick; else the news */
	EXPECT_TRUE(w.ret == -ENOENT || w.ret == 1);
}

static int poll_now(int fd, int timeout)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, timeout) < 0 ? -errno : p.revents;
}

TEST_F(queue, poll)
{
	struct csrec_cmd cmds[2];
	struct csrec_cqe cqe;
	int q2 = q_create(self->fd, 4);

	ASSERT_LT(0, q2);
	EXPECT_EQ(0, poll_now(self->fd, 0));
	cmds[0] = cmd_make(CSREC_OP_NOP, 1);
	cmds[1] = cmd_make(CSREC_OP_NOP, 2);
	ASSERT_EQ(2, q_submit(self->fd, self->q, cmds, 2));
	EXPECT_EQ(POLLIN, poll_now(self->fd, -1));
	EXPECT_EQ(1, q_wait(self->fd, self->q, &cqe, 1, 1, -1));
	/* there is one more */
	EXPECT_EQ(POLLIN, poll_now(self->fd, -1));
	EXPECT_EQ(1, q_wait(self->fd, self->q, &cqe, 1, 1, -1));
	EXPECT_EQ(0, poll_now(self->fd, 0));
	/* any queue of the context */
	ASSERT_EQ(1, block(self->fd, q2, self->fence));
	EXPECT_EQ(0, poll_now(self->fd, 20));
	ASSERT_EQ(0, fence_signal(self->fd, self->fence, 1));
	EXPECT_EQ(POLLIN, poll_now(self->fd, -1));
	EXPECT_EQ(1, q_wait(self->fd, q2, &cqe, 1, 1, -1));
	EXPECT_EQ(0, poll_now(self->fd, 0));
}

/* Queues work next to each other: one that is blocked holds up no other. */
TEST_F(queue, independent)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 5);
	struct csrec_cqe cqe;
	int q2 = q_create(self->fd, 2);

	ASSERT_LT(0, q2);
	ASSERT_EQ(1, block(self->fd, self->q, self->fence));
	for (int i = 0; i < 10; i++) {
		ASSERT_EQ(0, run_cmd(self->fd, q2, &nop, &cqe));
	}
	EXPECT_EQ(-EAGAIN, q_wait(self->fd, self->q, &cqe, 1, 1, 0));
}

TEST_HARNESS_MAIN
