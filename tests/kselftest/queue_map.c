// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Queues that a process maps, and what 1.1 added to all queues: coalescing, no interrupts,
 * reset, eventfd, deadlines, quota.
 */
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "mapq.h"

#define PAGE	4096
/* Cycles in which any device has executed a few commands, and that pass all the same. */
#define A_WHILE	2000000

static unsigned int nr_queues(const struct csrec_info *info)
{
	return (info->cap_queue >> CSREC_CAPQ_IOQ_SHIFT) & 0xff;
}

static uint64_t cnt(int fd, unsigned int reg)
{
	struct csrec_stats st;

	return get_stats(fd, &st) ? ~0ULL : counter(&st, reg);
}

static int poll_now(int fd, int timeout)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, timeout) < 0 ? -errno : p.revents;
}

/* Far longer than any of this takes; who has not come by then never will. */
static int join(pthread_t t)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_sec += 100;
	return pthread_timedjoin_np(t, NULL, &ts);
}

/* ---- every way to submit and to wait, on one queue, some, and all ---- */

FIXTURE(ways)
{
	int fd;
	struct csrec_info info;
};

FIXTURE_VARIANT(ways)
{
	bool mapped;
	bool irq;
	unsigned int queues;	/* 0: all */
};

#define WAYS(name, is_mapped, has_irq, n)						\
	FIXTURE_VARIANT_ADD(ways, name) { .mapped = is_mapped, .irq = has_irq, .queues = n }
WAYS(ioctl_irq_1, false, true, 1);
WAYS(ioctl_irq_4, false, true, 4);
WAYS(ioctl_irq_all, false, true, 0);
WAYS(ioctl_poll_1, false, false, 1);
WAYS(ioctl_poll_4, false, false, 4);
WAYS(ioctl_poll_all, false, false, 0);
WAYS(mapped_irq_1, true, true, 1);
WAYS(mapped_irq_4, true, true, 4);
WAYS(mapped_irq_all, true, true, 0);
WAYS(mapped_poll_1, true, false, 1);
WAYS(mapped_poll_4, true, false, 4);
WAYS(mapped_poll_all, true, false, 0);

FIXTURE_SETUP(ways)
{
	self->fd = dev_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, get_info(self->fd, &self->info));
	if (!(self->info.features & CSREC_FEATURE_QUEUE_MAP))
		SKIP(return, "this device has no mapped queues");
}

FIXTURE_TEARDOWN(ways)
{
	close(self->fd);
}

static int way_submit(struct mapq *q, bool mapped, const struct csrec_cmd *cmds, unsigned int n)
{
	if (!mapped)
		return q_submit(q->fd, q->id, cmds, n);
	for (unsigned int i = 0; i < n; i++)
		mapq_put(q, &cmds[i]);
	mapq_ring(q);
	return n;
}

/* At least one completion, at most @max. */
static int way_reap(struct mapq *q, bool mapped, bool irq, struct csrec_cqe *cqes,
		    unsigned int max)
{
	int ret, n = 0;

	if (!mapped) {
		do
			ret = q_wait(q->fd, q->id, cqes, 1, max, irq ? -1 : 0);
		while (ret == -EAGAIN);
		return ret;
	}
	if (irq) {
		ret = mapq_wait(q, 1, -1);
		if (ret < 0)
			return ret;
	}
	while (n < max && (!n || mapq_has(q)))
		n += mapq_take(q, &cqes[n]);
	return n;
}

/* Five laps of each ring, in batches that do not divide it. */
TEST_F(ways, laps)
{
	unsigned int n = variant->queues ? variant->queues : nr_queues(&self->info);
	struct mapq *q = calloc(n, sizeof(*q));
	unsigned int *sent = calloc(n, sizeof(*sent)), *got = calloc(n, sizeof(*got));
	uint8_t (*seen)[80] = calloc(n, sizeof(*seen));
	uint64_t irqs;
	uint32_t flags = variant->irq ? 0 : CSREC_QUEUE_F_NOIRQ;
	unsigned int busy = n;

	for (unsigned int i = 0; i < n; i++) {
		if (variant->mapped) {
			ASSERT_EQ(0, mapq_create(&q[i], self->fd, 16, flags, 0, 0));
		} else {
			ASSERT_EQ(0, mapq_create_raw(self->fd, &q[i].arg, 16, flags, 0, 0));
			q[i].fd = self->fd;
			q[i].id = q[i].arg.queue_id;
		}
	}
	irqs = cnt(self->fd, CSREC_REG_CNT_IRQS);
	while (busy) {
		for (unsigned int i = 0; i < n; i++) {
			unsigned int batch = 1 + (sent[i] + i) % 13;
			struct csrec_cmd cmds[16];

			if (batch > 80 - sent[i])
				batch = 80 - sent[i];
			for (unsigned int j = 0; j < batch; j++)
				cmds[j] = cmd_make(CSREC_OP_NOP, sent[i] + j);
			if (batch && sent[i] + batch - got[i] <= 16) {
				ASSERT_EQ(batch, way_submit(&q[i], variant->mapped, cmds, batch));
				sent[i] += batch;
			}
		}
		for (unsigned int i = 0; i < n; i++) {
			struct csrec_cqe cqes[16];
			int ret;

			if (got[i] == sent[i])
				continue;
			ret = way_reap(&q[i], variant->mapped, variant->irq, cqes, 1 + got[i] % 7);
			ASSERT_LT(0, ret);
			for (int j = 0; j < ret; j++) {
				ASSERT_EQ(0, cqe_status(&cqes[j]));
				ASSERT_GT(sent[i], le16toh(cqes[j].cid));
				seen[i][le16toh(cqes[j].cid)]++;
			}
			got[i] += ret;
			busy -= got[i] == 80;
		}
	}
	for (unsigned int i = 0; i < n; i++) {
		for (unsigned int j = 0; j < 80; j++) {
			ASSERT_EQ(1, seen[i][j]);
		}
	}
	irqs = cnt(self->fd, CSREC_REG_CNT_IRQS) - irqs;
	if (variant->irq) {
		EXPECT_EQ(80 * n, irqs);
	} else {
		EXPECT_EQ(0, irqs);
	}
}

/* ---- what can be mapped, and how ---- */

FIXTURE(map)
{
	int fd;
	struct csrec_info info;
	struct mapq q;		/* 16 entries */
	uint32_t fence;
};

FIXTURE_SETUP(map)
{
	self->fd = dev_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, get_info(self->fd, &self->info));
	if (!(self->info.features & CSREC_FEATURE_QUEUE_MAP))
		SKIP(return, "this device has no mapped queues");
	ASSERT_EQ(0, mapq_create(&self->q, self->fd, 16, 0, 0, 0));
	ASSERT_EQ(0, fence_create(self->fd, 0, &self->fence));
}

FIXTURE_TEARDOWN(map)
{
	if (self->fd >= 0)
		close(self->fd);
}

static int try_map(int fd, uint64_t off, uint64_t len, int prot, int flags)
{
	void *p = mmap(NULL, len, prot, flags, fd, off);

	if (p == MAP_FAILED)
		return -errno;
	munmap(p, len);
	return 0;
}

#define RW	(PROT_READ | PROT_WRITE)

TEST_F(map, layout)
{
	const struct csrec_queue_create *a = &self->q.arg;
	struct csrec_queue_create plain;
	unsigned int max = 1u << ((self->info.cap_queue >> CSREC_CAPQ_ENTRIES_SHIFT) & 0xff);

	EXPECT_NE(0, a->ring_offset);
	EXPECT_NE(0, a->db_offset);
	EXPECT_NE(a->ring_offset, a->db_offset);
	EXPECT_EQ(0, a->ring_len % PAGE);
	EXPECT_EQ(0, a->cq_off % 64);
	EXPECT_EQ(0, a->ctl_off % 64);
	EXPECT_LE(16 * sizeof(struct csrec_cmd), a->cq_off);
	EXPECT_LE(a->cq_off + 16 * sizeof(struct csrec_cqe), a->ctl_off);
	EXPECT_LE(a->ctl_off + sizeof(struct csrec_queue_ctl), a->ring_len);
	EXPECT_LE(16, a->db_len);
	for (uint32_t n = 2; n <= max; n *= 2) {
		struct mapq q;

		ASSERT_EQ(0, mapq_create(&q, self->fd, n, 0, 0, 0));
		/* all of it is zero, and can be written */
		for (uint64_t i = 0; i < q.arg.ring_len / 8; i++) {
			ASSERT_EQ(0, ((uint64_t *)q.sq)[i]);
		}
		memset(q.sq, 0xff, q.arg.ring_len);
		mapq_destroy(&q);
	}
	memset(&plain, 0xff, sizeof(plain));
	plain = (struct csrec_queue_create){ .size = sizeof(plain), .entries = 4,
		.ring_offset = 1, .ring_len = 2, .cq_off = 3, .ctl_off = 4, .db_offset = 5,
		.db_len = 6 };
	ASSERT_EQ(0, xioctl(self->fd, CSREC_IOC_QUEUE_CREATE, &plain));
	EXPECT_EQ(0, plain.ring_offset | plain.ring_len | plain.cq_off | plain.ctl_off |
		     plain.db_offset | plain.db_len);
}

TEST_F(map, as_a_whole)
{
	const struct csrec_queue_create *a = &self->q.arg;
	uint64_t off[2] = { a->ring_offset, a->db_offset }, len[2] = { a->ring_len, a->db_len };

	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(0, try_map(self->fd, off[i], len[i], RW, MAP_SHARED));
		EXPECT_EQ(0, try_map(self->fd, off[i], len[i], PROT_READ, MAP_SHARED));
		EXPECT_EQ(-EINVAL, try_map(self->fd, off[i], len[i] + PAGE, RW, MAP_SHARED));
		EXPECT_EQ(-EINVAL, try_map(self->fd, off[i] + PAGE, len[i], RW, MAP_SHARED));
		EXPECT_EQ(-EINVAL, try_map(self->fd, off[i] - PAGE, len[i], RW, MAP_SHARED));
		EXPECT_EQ(-EINVAL, try_map(self->fd, off[i], 2 * len[i], RW, MAP_SHARED));
	}
	EXPECT_LT(PAGE, len[0]);
	EXPECT_EQ(-EINVAL, try_map(self->fd, off[0], len[0] - PAGE, RW, MAP_SHARED));
	EXPECT_EQ(-EINVAL, try_map(self->fd, off[0] + PAGE, len[0] - PAGE, RW, MAP_SHARED));
	EXPECT_EQ(-EINVAL, try_map(self->fd, 0, PAGE, RW, MAP_SHARED));
	EXPECT_EQ(-EINVAL, try_map(self->fd, 1ULL << 40, PAGE, RW, MAP_SHARED));
	EXPECT_EQ(-EINVAL, try_map(self->fd, 0x7ffffffffffff000, PAGE, RW, MAP_SHARED));
}

TEST_F(map, shared_only)
{
	const struct csrec_queue_create *a = &self->q.arg;
	int fd;

	EXPECT_EQ(-EINVAL, try_map(self->fd, a->ring_offset, a->ring_len, RW, MAP_PRIVATE));
	EXPECT_EQ(-EINVAL, try_map(self->fd, a->db_offset, a->db_len, RW, MAP_PRIVATE));
	/* a file that is open for reading makes no shared mapping that could be written */
	fd = open(DEV, O_RDONLY);
	ASSERT_LE(0, fd);
	struct csrec_queue_create arg;

	ASSERT_EQ(0, mapq_create_raw(fd, &arg, 4, CSREC_QUEUE_F_MAP, 0, 0));
	EXPECT_EQ(-EACCES, try_map(fd, arg.ring_offset, arg.ring_len, RW, MAP_SHARED));
	EXPECT_EQ(-EINVAL, try_map(fd, arg.db_offset, arg.db_len, PROT_READ, MAP_SHARED));
	close(fd);
}

TEST_F(map, not_executable)
{
	const struct csrec_queue_create *a = &self->q.arg;

	EXPECT_EQ(-EINVAL, try_map(self->fd, a->ring_offset, a->ring_len, RW | PROT_EXEC,
				   MAP_SHARED));
	EXPECT_EQ(-1, mprotect(self->q.sq, a->ring_len, RW | PROT_EXEC));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(-1, mprotect((void *)self->q.db, a->db_len, RW | PROT_EXEC));
	EXPECT_EQ(EACCES, errno);
}

TEST_F(map, not_split_not_grown)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	const struct csrec_queue_create *a = &self->q.arg;
	uint8_t *p = (uint8_t *)self->q.sq, *moved;

	EXPECT_EQ(-1, munmap(p + PAGE, a->ring_len - PAGE));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, mprotect(p, PAGE, PROT_READ));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, mremap(p, a->ring_len, PAGE, MREMAP_MAYMOVE));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, mremap(p, a->ring_len, 4 * a->ring_len, MREMAP_MAYMOVE));
	EXPECT_EQ(MAP_FAILED, mremap((void *)self->q.db, PAGE, 2 * PAGE, MREMAP_MAYMOVE));
	EXPECT_EQ(MAP_FAILED, mremap((void *)self->q.db, 0, PAGE, MREMAP_MAYMOVE));
	/* but moved it can be, and works there */
	moved = pages(4 * a->ring_len);
	ASSERT_EQ(moved, mremap(p, a->ring_len, a->ring_len, MREMAP_MAYMOVE | MREMAP_FIXED, moved));
	self->q.sq = (struct csrec_cmd *)moved;
	self->q.cq = (void *)(moved + a->cq_off);
	self->q.ctl = (void *)(moved + a->ctl_off);
	moved += 2 * a->ring_len;
	ASSERT_EQ(moved, mremap((void *)self->q.db, a->db_len, a->db_len,
				MREMAP_MAYMOVE | MREMAP_FIXED, moved));
	self->q.db = (void *)moved;
	EXPECT_EQ(0, mapq_run(&self->q, &nop));
}

TEST_F(map, any_number_of_times)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	struct mapq other = self->q;
	uint8_t *p = map_at(self->fd, self->q.arg.ring_offset, self->q.arg.ring_len);

	ASSERT_NE(NULL, p);
	other.sq = (struct csrec_cmd *)p;
	other.cq = (void *)(p + self->q.arg.cq_off);
	other.ctl = (void *)(p + self->q.arg.ctl_off);
	other.db = map_at(self->fd, self->q.arg.db_offset, self->q.arg.db_len);
	ASSERT_NE(NULL, other.db);
	EXPECT_EQ(0, mapq_run(&other, &nop));
	EXPECT_EQ(nop.opcode, self->q.sq[0].opcode);
	EXPECT_TRUE(mapq_has(&self->q));
	/* and again when the first are gone */
	munmap(self->q.sq, self->q.arg.ring_len);
	munmap((void *)self->q.db, self->q.arg.db_len);
	EXPECT_EQ(0, mapq_run(&other, &nop));
}

/* D-20: a child does not have the parent's mappings, and what it does to the file harms nobody. */
TEST_F(map, not_inherited)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	volatile uint32_t *ring = (uint32_t *)self->q.sq, *db = (uint32_t *)self->q.db;
	int status;
	pid_t pid;

	for (int i = 0; i < 2; i++) {
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			signal(SIGSEGV, SIG_DFL);
			*(i ? db : ring);
			_exit(0);
		}
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	}
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		/* by its own mapping, while the parent's go */
		struct mapq q = self->q;
		uint8_t *p = map_at(q.fd, q.arg.ring_offset, q.arg.ring_len);

		q.sq = (struct csrec_cmd *)p;
		q.cq = (void *)(p + q.arg.cq_off);
		q.ctl = (void *)(p + q.arg.ctl_off);
		q.db = map_at(q.fd, q.arg.db_offset, q.arg.db_len);
		sleep(1);
		_exit(mapq_run(&q, &nop));
	}
	munmap(self->q.sq, self->q.arg.ring_len);
	munmap((void *)self->q.db, self->q.arg.db_len);
	close(self->fd);
	self->fd = -1;
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFEXITED(status) && !WEXITSTATUS(status));
}

/* Of another context: offsets are each context's own. */
TEST_F(map, foreign)
{
	int fd = dev_open();

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EINVAL, try_map(fd, self->q.arg.ring_offset, self->q.arg.ring_len, RW,
				   MAP_SHARED));
	EXPECT_EQ(-EINVAL, try_map(fd, self->q.arg.db_offset, self->q.arg.db_len, RW,
				   MAP_SHARED));
	close(fd);
}

TEST_F(map, ioctls)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	struct csrec_cqe cqe;
	struct csrec_wait arg = { .size = sizeof(arg), .queue_id = self->q.id, .max = 1 };

	EXPECT_EQ(-EOPNOTSUPP, q_submit(self->fd, self->q.id, &nop, 1));
	EXPECT_EQ(-EINVAL, xioctl(self->fd, CSREC_IOC_WAIT, &arg));
	arg.max = 0;
	arg.cqes = (uintptr_t)&cqe;
	EXPECT_EQ(-EINVAL, xioctl(self->fd, CSREC_IOC_WAIT, &arg));
	EXPECT_EQ(-EINVAL, mapq_wait(&self->q, 17, 0));
	EXPECT_EQ(-EINVAL, mapq_wait(&self->q, 1, -2));
	EXPECT_EQ(0, mapq_wait(&self->q, 0, -1));
	EXPECT_EQ(-EAGAIN, mapq_wait(&self->q, 1, 0));
	EXPECT_EQ(-ETIMEDOUT, mapq_wait(&self->q, 1, 10 * MS));
	/* counts those beyond the head that the caller has told */
	for (int i = 0; i < 5; i++)
		mapq_put(&self->q, &nop);
	mapq_ring(&self->q);
	EXPECT_EQ(5, mapq_wait(&self->q, 5, -1));
	EXPECT_EQ(5, mapq_wait(&self->q, 0, 0));
	/* less than asked for when the time is over */
	EXPECT_EQ(5, mapq_wait(&self->q, 6, 10 * MS));
	EXPECT_TRUE(mapq_take(&self->q, &cqe));
	EXPECT_EQ(4, mapq_wait(&self->q, 1, -1));
	while (mapq_take(&self->q, &cqe))
		;
	EXPECT_EQ(-EAGAIN, mapq_wait(&self->q, 1, 0));
}

/* D-13: level, for poll() and epoll. */
TEST_F(map, poll)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	struct epoll_event ev = { .events = EPOLLIN }, got;
	int ep = epoll_create1(EPOLL_CLOEXEC);
	struct csrec_cqe cqe;

	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, self->fd, &ev));
	EXPECT_EQ(0, poll_now(self->fd, 0));
	EXPECT_EQ(0, epoll_wait(ep, &got, 1, 0));
	for (int lap = 0; lap < 40; lap++) {
		mapq_put(&self->q, &nop);
		mapq_put(&self->q, &nop);
		mapq_ring(&self->q);
		ASSERT_EQ(1, epoll_wait(ep, &got, 1, -1));
		ASSERT_EQ(EPOLLIN, got.events);
		ASSERT_EQ(POLLIN, poll_now(self->fd, -1));
		while (!mapq_take(&self->q, &cqe))
			;
		while (!mapq_has(&self->q))
			;
		/* one more */
		mapq_tell(&self->q);
		ASSERT_EQ(POLLIN, poll_now(self->fd, 0));
		ASSERT_EQ(1, epoll_wait(ep, &got, 1, 0));
		ASSERT_TRUE(mapq_take(&self->q, &cqe));
		mapq_tell(&self->q);
		ASSERT_EQ(0, poll_now(self->fd, 0));
		ASSERT_EQ(0, epoll_wait(ep, &got, 1, 0));
	}
	close(ep);
}

/* What the device counts of doorbells, good and bad. */
static uint64_t rings(int fd)
{
	return cnt(fd, CSREC_REG_CNT_DOORBELLS) + cnt(fd, CSREC_REG_CNT_BAD_DOORBELL);
}

static int dead_doorbell(struct mapq *q, int fd)
{
	uint64_t before = rings(fd);

	for (int i = 0; i < 10; i++) {
		q->tail++;
		mapq_ring(q);
	}
	return rings(fd) != before;
}

TEST_F(map, doorbell_after_destroy)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	struct mapq next;

	ASSERT_EQ(0, mapq_run(&self->q, &nop));
	ASSERT_EQ(0, q_destroy(self->fd, self->q.id));
	EXPECT_EQ(-EINVAL, try_map(self->fd, self->q.arg.ring_offset, self->q.arg.ring_len, RW,
				   MAP_SHARED));
	EXPECT_EQ(-EINVAL, try_map(self->fd, self->q.arg.db_offset, self->q.arg.db_len, RW,
				   MAP_SHARED));
	EXPECT_EQ(0, dead_doorbell(&self->q, self->fd));
	EXPECT_EQ(0, mapq_is_memory(&self->q));
	/* nor the next queue of this number; and offsets do not come back */
	ASSERT_EQ(0, mapq_create(&next, self->fd, 16, 0, 0, 0));
	EXPECT_EQ(self->q.id, next.id);
	EXPECT_LT(self->q.arg.db_offset, next.arg.ring_offset);
	EXPECT_EQ(0, dead_doorbell(&self->q, self->fd));
	EXPECT_EQ(0, mapq_run(&next, &nop));
}

/* D-22 */
TEST_F(map, doorbell_after_reset)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	struct mapq untouched;
	int fd;

	ASSERT_EQ(0, mapq_run(&self->q, &nop));
	ASSERT_EQ(0, mapq_create(&untouched, self->fd, 4, 0, 0, 0));
	ASSERT_EQ(0, reset(DEVICE));
	EXPECT_EQ(POLLIN | POLLERR | POLLHUP, poll_now(self->fd, 0) | POLLIN);
	EXPECT_EQ(-ENODEV, mapq_wait(&self->q, 0, 0));
	EXPECT_EQ(-ENODEV, q_reset(self->fd, self->q.id));
	EXPECT_EQ(-ENODEV, q_eventfd(self->fd, self->q.id, -1));
	EXPECT_EQ(-ENODEV, try_map(self->fd, self->q.arg.ring_offset, self->q.arg.ring_len, RW,
				   MAP_SHARED));
	fd = dev_open();
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, dead_doorbell(&self->q, fd));
	EXPECT_EQ(0, dead_doorbell(&untouched, fd));
	EXPECT_EQ(0, mapq_is_memory(&self->q));
	EXPECT_EQ(0, mapq_is_memory(&untouched));
	/* nor a queue of the same number of who came after */
	struct mapq next;

	ASSERT_EQ(0, mapq_create(&next, fd, 16, 0, 0, 0));
	EXPECT_EQ(self->q.id, next.id);
	EXPECT_EQ(0, dead_doorbell(&self->q, fd));
	EXPECT_EQ(0, mapq_run(&next, &nop));
	close(fd);
}

static int64_t hw_counter(const char *name)
{
	char path[96], text[32] = {};
	int fd;

	snprintf(path, sizeof(path), "/sys/class/csrec/csrec0/hw_counters/%s", name);
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return -1;
	close(fd);
	return strtoll(text, NULL, 10);
}

static int64_t hw_rings(void)
{
	return hw_counter("doorbells") + hw_counter("bad_doorbells");
}

/* A device that was given up is soon not reached any more, though its registers still answer. */
TEST_F(map, doorbell_after_failure)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	int64_t before, after = -1;
	uint32_t key;

	ASSERT_EQ(0, mapq_run(&self->q, &nop));
	ASSERT_LT(0, hw_rings());
	ASSERT_EQ(0, pci_command(DEVICE, PCI_COMMAND_MASTER, 0));
	EXPECT_EQ(-EIO, mem_alloc(self->fd, CSREC_REGION_DRAM, PAGE, &key));
	EXPECT_EQ(-EIO, mapq_wait(&self->q, 0, 0));
	for (int i = 0; i < 1000; i++) {
		before = hw_rings();
		for (int j = 0; j < 10; j++)
			mapq_ring(&self->q);
		after = hw_rings();
		if (after == before)
			break;
		usleep(10000);
	}
	EXPECT_EQ(before, after);
	EXPECT_EQ(0, mapq_is_memory(&self->q));
	ASSERT_EQ(0, reset(DEVICE));
}

TEST_F(map, doorbell_after_unbind)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	char sysfs[64], bdf[16];
	int fd;

	ASSERT_EQ(0, find_device(sysfs, sizeof(sysfs), bdf, sizeof(bdf)));
	ASSERT_EQ(0, mapq_run(&self->q, &nop));
	ASSERT_EQ(0, write_file("/sys/bus/pci/drivers/csrec/unbind", bdf));
	/* nobody drives the device, and nobody reaches it */
	mapq_ring(&self->q);
	EXPECT_EQ(0, mapq_is_memory(&self->q));
	ASSERT_EQ(0, write_file("/sys/bus/pci/drivers/csrec/bind", bdf));
	fd = wait_for_node();
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, dead_doorbell(&self->q, fd));
	close(fd);
}

/* Whatever is in there, it disturbs only this queue. */
TEST_F(map, hostile_head)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	struct csrec_wait arg = { .size = sizeof(arg), .queue_id = self->q.id };
	struct mapq good;
	uint32_t x = 1;

	ASSERT_EQ(0, mapq_create(&good, self->fd, 4, 0, 0, 0));
	for (int i = 0; i < 2000; i++) {
		x = x * 1664525 + 1013904223;
		self->q.ctl->cq_head = i % 3 ? x : 0u - (x >> 28);
		memset((void *)self->q.cq, x >> 8, 16 * sizeof(struct csrec_cqe));
		arg.count = ~0u;
		ASSERT_EQ(0, xioctl(self->fd, CSREC_IOC_WAIT, &arg));
		ASSERT_GE(16, arg.count);
		poll_now(self->fd, 0);
		if (i % 100 == 0) {
			ASSERT_EQ(0, mapq_run(&good, &nop));
		}
	}
}

TEST_F(map, hostile_doorbell)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	uint64_t bad = cnt(self->fd, CSREC_REG_CNT_BAD_DOORBELL), x = 1;
	struct mapq good;

	ASSERT_EQ(0, mapq_create(&good, self->fd, 4, 0, 0, 0));
	for (int i = 0; i < 1000; i++) {
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		/* far beyond the tail and what was posted */
		*self->q.db = x | 0x8000000080000000;
		if (i % 100 == 0) {
			ASSERT_EQ(0, mapq_run(&good, &nop));
		}
	}
	EXPECT_EQ(bad + 1000, cnt(self->fd, CSREC_REG_CNT_BAD_DOORBELL));
	/* not even this one suffers */
	EXPECT_EQ(0, mapq_run(&self->q, &nop));
}

/* Of the doorbell page nothing else can be written, nor any other way. */
TEST_F(map, doorbell_page)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	uint64_t bad = cnt(self->fd, CSREC_REG_CNT_BAD_WRITE);
	volatile uint32_t *w = (volatile uint32_t *)self->q.db;
	uint64_t state;

	ASSERT_EQ(0, mapq_run(&self->q, &nop));
	state = self->q.db[CSREC_DB_STATE / 8];
	EXPECT_EQ(1, (uint32_t)(state >> CSREC_DBS_SQ_TAIL_SHIFT));
	EXPECT_EQ(1, (uint32_t)(state >> CSREC_DBS_CQ_TAIL_SHIFT));
	EXPECT_EQ(0, self->q.db[0]);
	self->q.db[CSREC_DB_STATE / 8] = ~0ULL;
	self->q.db[2] = 1;
	self->q.db[PAGE / 8 - 1] = 1;
	w[0] = 5;
	EXPECT_EQ(bad + 4, cnt(self->fd, CSREC_REG_CNT_BAD_WRITE));
	EXPECT_EQ(state, self->q.db[CSREC_DB_STATE / 8]);
	EXPECT_EQ(0, mapq_run(&self->q, &nop));
}

struct waiter {
	struct mapq *q;
	int ret;
};

static void *waiter_thread(void *arg)
{
	struct waiter *w = arg;
	struct csrec_wait wait = { .size = sizeof(wait), .queue_id = w->q->id, .min = 1,
				   .timeout_ns = -1 };

	w->ret = xioctl(w->q->fd, CSREC_IOC_WAIT, &wait);
	if (!w->ret)
		w->ret = wait.count;
	return NULL;
}

static void submit_block(struct mapq *q, uint32_t fence)
{
	struct csrec_cmd cmd = cmd_fence(CSREC_OP_WAIT, fence, 1);

	mapq_put(q, &cmd);
	mapq_ring(q);
}

TEST_F(map, two_waiters)
{
	struct waiter w[2] = { { .q = &self->q }, { .q = &self->q } };
	pthread_t t[2];

	submit_block(&self->q, self->fence);
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_create(&t[i], NULL, waiter_thread, &w[i]));
	}
	usleep(50000);
	ASSERT_EQ(0, fence_signal(self->fd, self->fence, 1));
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, join(t[i]));
		EXPECT_EQ(1, w[i].ret);
	}
}

TEST_F(map, destroy_under_a_waiter)
{
	struct waiter w = { .q = &self->q };
	pthread_t t;

	submit_block(&self->q, self->fence);
	ASSERT_EQ(0, pthread_create(&t, NULL, waiter_thread, &w));
	usleep(50000);
	ASSERT_EQ(0, q_destroy(self->fd, self->q.id));
	ASSERT_EQ(0, join(t));
	/* the aborted command's completion, if the waiter was quick; else the news */
	EXPECT_TRUE(w.ret == -ENOENT || w.ret == 1);
}

TEST_F(map, killed_in_flight)
{
	struct csrec_info now;
	int ready[2], status;
	pid_t pid;
	char c;

	ASSERT_EQ(0, pipe(ready));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		int fd = dev_open();
		void *host = pages(MIB);
		uint32_t dram, key;
		struct csrec_cmd cmd;
		struct csrec_cqe cqe;
		struct mapq q;

		if (mapq_create(&q, fd, 16, 0, 0, 0) ||
		    mem_alloc(fd, CSREC_REGION_DRAM, MIB, &dram) ||
		    mem_register(fd, host, MIB, CSREC_RIGHT_READ | CSREC_RIGHT_WRITE, &key))
			_exit(1);
		cmd = cmd_copy(dram, 0, key, 0, MIB);
		for (int i = 0; ; i++) {
			while (q.tail - q.head < 16)
				mapq_put(&q, &cmd);
			mapq_ring(&q);
			if (i == 2 && write(ready[1], "x", 1) != 1)
				_exit(2);
			while (!mapq_take(&q, &cqe))
				;
		}
	}
	close(ready[1]);
	ASSERT_EQ(1, read(ready[0], &c, 1));
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	ASSERT_EQ(0, get_info(self->fd, &now));
	EXPECT_EQ(self->info.dram_free, now.dram_free);
	/* all queues but ours are there again */
	for (unsigned int i = 1; i < nr_queues(&self->info); i++) {
		struct csrec_queue_create arg;

		ASSERT_EQ(0, mapq_create_raw(self->fd, &arg, 2, CSREC_QUEUE_F_MAP, 0, 0));
	}
}

/* ---- interrupts ---- */

FIXTURE(irq)
{
	int fd;
	struct csrec_info info;
};

FIXTURE_VARIANT(irq)
{
	bool mapped;
};
FIXTURE_VARIANT_ADD(irq, ioctl) { .mapped = false };
FIXTURE_VARIANT_ADD(irq, mapped) { .mapped = true };

FIXTURE_SETUP(irq)
{
	self->fd = dev_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, get_info(self->fd, &self->info));
	if (!(self->info.features & CSREC_FEATURE_COALESCE))
		SKIP(return, "this device does not coalesce interrupts");
}

FIXTURE_TEARDOWN(irq)
{
	close(self->fd);
}

static int make(struct mapq *q, int fd, bool mapped, uint32_t entries, uint32_t flags,
		uint32_t irq_count, uint32_t irq_cycles)
{
	int ret;

	if (mapped)
		return mapq_create(q, fd, entries, flags, irq_count, irq_cycles);
	memset(q, 0, sizeof(*q));
	ret = mapq_create_raw(fd, &q->arg, entries, flags, irq_count, irq_cycles);
	q->fd = fd;
	q->id = q->arg.queue_id;
	q->entries = entries;
	return ret;
}

static uint32_t map_flag(bool mapped)
{
	return mapped ? CSREC_QUEUE_F_MAP : 0;
}

TEST_F(irq, arguments)
{
	struct csrec_queue_create arg;
	uint32_t f = map_flag(variant->mapped);

	/* a last one or two would wait for ever */
	EXPECT_EQ(-EINVAL, mapq_create_raw(self->fd, &arg, 4, f, 2, 0));
	EXPECT_EQ(-EINVAL, mapq_create_raw(self->fd, &arg, 4, f, 65535, 0));
	/* more than the device counts */
	EXPECT_EQ(-EINVAL, mapq_create_raw(self->fd, &arg, 4, f, 65536, 1));
	EXPECT_EQ(-EINVAL, mapq_create_raw(self->fd, &arg, 4, f, 0xffffffff, 1));
	EXPECT_EQ(-EINVAL, mapq_create_raw(self->fd, &arg, 4, f | 4, 0, 0));
	EXPECT_EQ(0, mapq_create_raw(self->fd, &arg, 4, f, 1, 0));
	EXPECT_EQ(0, mapq_create_raw(self->fd, &arg, 4, f, 65535, 0xffffffff));
	EXPECT_EQ(0, mapq_create_raw(self->fd, &arg, 4, f | CSREC_QUEUE_F_NOIRQ, 0, 0));
}

/* Submits @n NOPs with one doorbell and takes their completions without sleeping. */
static int batch(struct mapq *q, bool mapped, unsigned int n)
{
	struct csrec_cmd cmds[64];
	struct csrec_cqe cqe;

	for (unsigned int i = 0; i < n; i++)
		cmds[i] = cmd_make(CSREC_OP_NOP, i);
	if (way_submit(q, mapped, cmds, n) != n)
		return -EPROTO;
	for (unsigned int i = 0; i < n; i++)
		if (way_reap(q, mapped, false, &cqe, 1) != 1 || cqe_status(&cqe))
			return -EPROTO;
	return 0;
}

TEST_F(irq, coalesced)
{
	struct mapq q;
	uint64_t irqs;

	ASSERT_EQ(0, make(&q, self->fd, variant->mapped, 64, 0, 64, 0xffffffff));
	irqs = cnt(self->fd, CSREC_REG_CNT_IRQS);
	for (int i = 0; i < 20; i++) {
		ASSERT_EQ(0, batch(&q, variant->mapped, 64));
	}
	irqs = cnt(self->fd, CSREC_REG_CNT_IRQS) - irqs;
	EXPECT_GE(20, irqs);
	EXPECT_LE(1, irqs);
}

TEST_F(irq, none)
{
	struct mapq q;
	uint64_t irqs;

	ASSERT_EQ(0, make(&q, self->fd, variant->mapped, 64, CSREC_QUEUE_F_NOIRQ, 0, 0));
	irqs = cnt(self->fd, CSREC_REG_CNT_IRQS);
	for (int i = 0; i < 20; i++) {
		ASSERT_EQ(0, batch(&q, variant->mapped, 64));
	}
	EXPECT_EQ(irqs, cnt(self->fd, CSREC_REG_CNT_IRQS));
}

/* A completion that is alone does not wait for others that never come. */
TEST_F(irq, alone)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	struct csrec_cqe cqe;
	struct mapq q;
	uint64_t irqs;

	ASSERT_EQ(0, make(&q, self->fd, variant->mapped, 64, 0, 64, A_WHILE));
	irqs = cnt(self->fd, CSREC_REG_CNT_IRQS);
	ASSERT_EQ(1, way_submit(&q, variant->mapped, &nop, 1));
	/* who polls wakes by the interrupt */
	ASSERT_EQ(POLLIN, poll_now(self->fd, -1));
	ASSERT_EQ(1, way_reap(&q, variant->mapped, true, &cqe, 1));
	EXPECT_GE(irqs + 1, cnt(self->fd, CSREC_REG_CNT_IRQS));
	ASSERT_EQ(1, way_submit(&q, variant->mapped, &nop, 1));
	ASSERT_EQ(1, way_reap(&q, variant->mapped, true, &cqe, 1));
}

/* Nothing sleeps for a queue without interrupts. */
TEST_F(irq, noirq_only_polls)
{
	struct csrec_wait arg = { .size = sizeof(arg) };
	struct csrec_cqe cqe;
	struct mapq q;

	ASSERT_EQ(0, make(&q, self->fd, variant->mapped, 4, CSREC_QUEUE_F_NOIRQ, 0, 0));
	arg.queue_id = q.id;
	if (!variant->mapped) {
		struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);

		arg.max = 1;
		arg.cqes = (uintptr_t)&cqe;
		ASSERT_EQ(1, q_submit(self->fd, q.id, &nop, 1));
	}
	arg.min = 1;
	arg.timeout_ns = -1;
	EXPECT_EQ(-EINVAL, xioctl(self->fd, CSREC_IOC_WAIT, &arg));
	arg.timeout_ns = 1;
	EXPECT_EQ(-EINVAL, xioctl(self->fd, CSREC_IOC_WAIT, &arg));
	arg.min = 0;
	EXPECT_EQ(0, xioctl(self->fd, CSREC_IOC_WAIT, &arg));
}

/* ---- eventfd ---- */

TEST_F(irq, eventfd_errors)
{
	int evt = eventfd(0, EFD_NONBLOCK), evt2 = eventfd(0, 0), file = open("/dev/null", O_RDWR);
	struct mapq q;

	ASSERT_EQ(0, make(&q, self->fd, variant->mapped, 4, 0, 0, 0));
	EXPECT_EQ(-ENOENT, q_eventfd(self->fd, q.id, -1));
	EXPECT_EQ(-EBADF, q_eventfd(self->fd, q.id, -2));
	EXPECT_EQ(-EBADF, q_eventfd(self->fd, q.id, 12345));
	EXPECT_EQ(-EINVAL, q_eventfd(self->fd, q.id, file));
	EXPECT_EQ(-EINVAL, q_eventfd(self->fd, q.id, self->fd));
	EXPECT_EQ(-ENOENT, q_eventfd(self->fd, q.id + 1, evt));
	EXPECT_EQ(-ENOENT, q_eventfd(self->fd, 0, evt));
	EXPECT_EQ(0, q_eventfd(self->fd, q.id, evt));
	EXPECT_EQ(-EBUSY, q_eventfd(self->fd, q.id, evt2));
	EXPECT_EQ(-EBUSY, q_eventfd(self->fd, q.id, evt));
	EXPECT_EQ(0, q_eventfd(self->fd, q.id, -1));
	EXPECT_EQ(-ENOENT, q_eventfd(self->fd, q.id, -1));
	EXPECT_EQ(0, q_eventfd(self->fd, q.id, evt2));
	close(evt);
	close(evt2);
	close(file);
}

static uint64_t evt_read(int evt)
{
	uint64_t n = 0;

	return read(evt, &n, 8) == 8 ? n : 0;
}

TEST_F(irq, eventfd)
{
	int evt = eventfd(0, 0);
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	struct csrec_cqe cqes[4];
	struct mapq q;
	int n;

	ASSERT_EQ(0, make(&q, self->fd, variant->mapped, 4, 0, 0, 0));
	ASSERT_EQ(0, q_eventfd(self->fd, q.id, evt));
	EXPECT_EQ(0, poll_now(evt, 0));
	for (int lap = 0; lap < 40; lap++) {
		ASSERT_EQ(1, way_submit(&q, variant->mapped, &nop, 1));
		/* blocks until there is one */
		ASSERT_EQ(1, evt_read(evt));
		n = way_reap(&q, variant->mapped, false, cqes, 4);
		ASSERT_EQ(1, n);
		if (variant->mapped)
			mapq_tell(&q);
	}
	/* what there is already is told at once */
	ASSERT_EQ(0, q_eventfd(self->fd, q.id, -1));
	ASSERT_EQ(1, way_submit(&q, variant->mapped, &nop, 1));
	ASSERT_EQ(POLLIN, poll_now(self->fd, -1));
	EXPECT_EQ(0, poll_now(evt, 0));
	ASSERT_EQ(0, q_eventfd(self->fd, q.id, evt));
	EXPECT_EQ(POLLIN, poll_now(evt, 0));
	EXPECT_EQ(1, evt_read(evt));
	/* and is not told again */
	ASSERT_EQ(1, way_submit(&q, variant->mapped, &nop, 1));
	if (variant->mapped) {
		ASSERT_EQ(2, mapq_wait(&q, 2, -1));
	}
	EXPECT_EQ(0, poll_now(evt, 50));
	/* when the context dies it is */
	ASSERT_EQ(0, reset(DEVICE));
	EXPECT_EQ(POLLIN, poll_now(evt, 0));
}

/* ---- reset of one queue ---- */

TEST_F(irq, reset)
{
	struct csrec_cmd cmds[3];
	struct csrec_cqe cqe;
	struct mapq q, other;
	uint32_t fence;

	ASSERT_EQ(0, make(&q, self->fd, variant->mapped, 8, 0, 2, A_WHILE));
	ASSERT_EQ(0, make(&other, self->fd, variant->mapped, 8, 0, 0, 0));
	ASSERT_EQ(0, fence_create(self->fd, 0, &fence));
	EXPECT_EQ(-ENOENT, q_reset(self->fd, 0));
	EXPECT_EQ(-ENOENT, q_reset(self->fd, 12345));
	/* a few laps, so that counts are not what they begin with */
	for (int i = 0; i < 21; i++) {
		ASSERT_EQ(0, batch(&q, variant->mapped, 1));
	}
	cmds[0] = cmd_make(CSREC_OP_NOP, 1);
	cmds[1] = cmd_fence(CSREC_OP_WAIT, fence, 1);
	cmds[2] = cmd_make(CSREC_OP_NOP, 3);
	ASSERT_EQ(3, way_submit(&q, variant->mapped, cmds, 3));
	ASSERT_EQ(3, way_submit(&other, variant->mapped, cmds, 3));
	ASSERT_EQ(1, way_reap(&other, variant->mapped, true, &cqe, 1));
	ASSERT_EQ(0, q_reset(self->fd, q.id));
	/* empty, from 0 on, with the same handle and mappings */
	if (variant->mapped) {
		for (uint64_t i = 0; i < q.arg.ring_len / 8; i++) {
			ASSERT_EQ(0, ((uint64_t *)q.sq)[i]);
		}
		q.tail = 0;
		q.head = 0;
	} else {
		EXPECT_EQ(0, q_wait(self->fd, q.id, &cqe, 0, 1, 0));
		EXPECT_EQ(-EINVAL, q_wait(self->fd, q.id, &cqe, 1, 1, 0));
	}
	for (int i = 0; i < 21; i++) {
		ASSERT_EQ(0, batch(&q, variant->mapped, 1 + i % 8));
	}
	/* the other one's work goes on */
	ASSERT_EQ(0, fence_signal(self->fd, fence, 1));
	ASSERT_EQ(1, way_reap(&other, variant->mapped, true, &cqe, 1));
	EXPECT_EQ(0, cqe_status(&cqe));
	ASSERT_EQ(1, way_reap(&other, variant->mapped, true, &cqe, 1));
	EXPECT_EQ(0, cqe_status(&cqe));
	EXPECT_EQ(0, q_reset(self->fd, q.id));
	EXPECT_EQ(0, q_reset(self->fd, q.id));
	EXPECT_EQ(0, q_destroy(self->fd, q.id));
	EXPECT_EQ(-ENOENT, q_reset(self->fd, q.id));
}

struct any_waiter {
	struct mapq *q;
	bool mapped;
	int ret;
};

static void *any_waiter_thread(void *arg)
{
	struct any_waiter *w = arg;
	struct csrec_cqe cqe;

	w->ret = w->mapped ? mapq_wait(w->q, 1, -1) : q_wait(w->q->fd, w->q->id, &cqe, 1, 1, -1);
	return NULL;
}

TEST_F(irq, reset_under_a_waiter)
{
	struct mapq q;
	struct any_waiter w = { .q = &q, .mapped = variant->mapped };
	struct csrec_cmd cmd;
	uint32_t fence;
	pthread_t t;

	ASSERT_EQ(0, fence_create(self->fd, 0, &fence));
	/* without an interrupt the aborted command's completion does not wake it */
	cmd = cmd_fence(CSREC_OP_WAIT, fence, 1);
	cmd.flags = CSREC_CMD_F_NOIRQ;
	ASSERT_EQ(0, make(&q, self->fd, variant->mapped, 8, 0, 0, 0));
	ASSERT_EQ(1, way_submit(&q, variant->mapped, &cmd, 1));
	ASSERT_EQ(0, pthread_create(&t, NULL, any_waiter_thread, &w));
	usleep(50000);
	ASSERT_EQ(0, q_reset(self->fd, q.id));
	ASSERT_EQ(0, join(t));
	EXPECT_EQ(-ECANCELED, w.ret);
}

/* ---- deadlines ---- */

static volatile sig_atomic_t signals;

static void on_signal(int sig)
{
	signals++;
}

static int wait_until(int fd, struct mapq *q, bool mapped, struct csrec_cqe *cqe, int64_t when)
{
	struct csrec_wait arg = { .size = sizeof(arg), .flags = CSREC_WAIT_F_DEADLINE,
				  .queue_id = q->id, .min = 1, .max = !mapped,
				  .timeout_ns = when, .cqes = mapped ? 0 : (uintptr_t)cqe };
	int ret;

	if (mapped)
		mapq_tell(q);
	ret = xioctl(fd, CSREC_IOC_WAIT, &arg);
	return ret ? ret : (int)arg.count;
}

TEST_F(irq, deadline)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	struct itimerspec its = { .it_value.tv_nsec = 20 * MS, .it_interval.tv_nsec = 20 * MS };
	struct csrec_cqe cqe;
	struct csrec_cmd cmd;
	struct mapq q;
	uint32_t fence;
	timer_t timer;
	int64_t when;

	ASSERT_EQ(0, make(&q, self->fd, variant->mapped, 8, 0, 0, 0));
	ASSERT_EQ(0, fence_create(self->fd, 0, &fence));
	cmd = cmd_fence(CSREC_OP_WAIT, fence, 1);
	ASSERT_EQ(1, way_submit(&q, variant->mapped, &cmd, 1));
	/* gone by already */
	EXPECT_EQ(-ETIMEDOUT, wait_until(self->fd, &q, variant->mapped, &cqe, 1));
	EXPECT_EQ(-ETIMEDOUT, wait_until(self->fd, &q, variant->mapped, &cqe, now_ns() - 1));
	EXPECT_EQ(-EINVAL, wait_until(self->fd, &q, variant->mapped, &cqe, -2));
	EXPECT_EQ(-EAGAIN, wait_until(self->fd, &q, variant->mapped, &cqe, 0));
	/* signals do not move it */
	ASSERT_EQ(0, sigaction(SIGALRM, &sa, NULL));
	ASSERT_EQ(0, timer_create(CLOCK_MONOTONIC, NULL, &timer));
	ASSERT_EQ(0, timer_settime(timer, 0, &its, NULL));
	when = now_ns() + 200 * MS;
	EXPECT_EQ(-ETIMEDOUT, wait_until(self->fd, &q, variant->mapped, &cqe, when));
	EXPECT_LE(when, now_ns());
	EXPECT_LT(0, signals);
	/* D-2: without SA_RESTART they end it */
	sa.sa_flags = 0;
	ASSERT_EQ(0, sigaction(SIGALRM, &sa, NULL));
	EXPECT_EQ(-EINTR, wait_until(self->fd, &q, variant->mapped, &cqe, -1));
	timer_delete(timer);
	/* nothing was lost */
	ASSERT_EQ(0, fence_signal(self->fd, fence, 1));
	EXPECT_EQ(1, wait_until(self->fd, &q, variant->mapped, &cqe, -1));
}

/* ---- quota ---- */

TEST_F(irq, quota)
{
	static const char path[] = "/sys/class/csrec/csrec0/quota_queues";
	struct csrec_info info;
	struct mapq q[3], r;
	int fd = dev_open(), status;
	pid_t pid;

	ASSERT_LE(0, fd);
	EXPECT_EQ(nr_queues(&self->info), self->info.quota_queues);
	EXPECT_EQ(0, self->info.owned_queues);
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(0, make(&q[i], i ? fd : self->fd, variant->mapped, 4, 0, 0, 0));
	}
	/* all contexts of this process count */
	ASSERT_EQ(0, get_info(self->fd, &info));
	EXPECT_EQ(3, info.owned_queues);
	ASSERT_EQ(0, q_destroy(fd, q[1].id));
	ASSERT_EQ(0, get_info(fd, &info));
	EXPECT_EQ(2, info.owned_queues);
	if (access(path, W_OK)) {
		close(fd);
		SKIP(return, "no quota_queues in sysfs");
	}
	ASSERT_EQ(0, write_file(path, "2"));
	ASSERT_EQ(0, get_info(fd, &info));
	EXPECT_EQ(2, info.quota_queues);
	EXPECT_EQ(-EDQUOT, make(&r, fd, variant->mapped, 4, 0, 0, 0));
	EXPECT_EQ(-EDQUOT, make(&r, self->fd, variant->mapped, 4, 0, 0, 0));
	/* another process has an account of its own */
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		int own = dev_open();

		for (int i = 0; i < 2; i++)
			if (make(&r, own, variant->mapped, 4, 0, 0, 0))
				_exit(1);
		_exit(make(&r, own, variant->mapped, 4, 0, 0, 0) == -EDQUOT ? 0 : 2);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	/* a limit below what there is takes nothing away */
	ASSERT_EQ(0, write_file(path, "1"));
	EXPECT_EQ(0, batch(&q[0], variant->mapped, 1));
	EXPECT_EQ(0, q_destroy(fd, q[2].id));
	EXPECT_EQ(-EDQUOT, make(&r, fd, variant->mapped, 4, 0, 0, 0));
	close(fd);
	ASSERT_EQ(0, write_file(path, "0"));
	EXPECT_EQ(0, make(&r, self->fd, variant->mapped, 4, 0, 0, 0));
}

/* ---- the figures of the steady state: 64 commands at a time ---- */

#define BATCHES	25

/* A process that says where it begins and ends by a system call that it else never makes. */
static void __attribute__((noreturn)) traced(int pipe_fd, uint32_t flags, uint32_t irq_count)
{
	int fd = dev_open();
	struct csrec_stats st[2];
	uint64_t out[2];
	struct mapq q;
	int ret;

	ret = mapq_create(&q, fd, 64, flags, irq_count, irq_count ? 0xffffffff : 0);
	if (ret || batch(&q, true, 64) || get_stats(fd, &st[0]))
		_exit(1);
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	syscall(SYS_getppid);
	for (int i = 0; i < BATCHES; i++)
		if (batch(&q, true, 64))
			_exit(2);
	syscall(SYS_getppid);
	get_stats(fd, &st[1]);
	out[0] = counter(&st[1], CSREC_REG_CNT_DOORBELLS) - counter(&st[0], CSREC_REG_CNT_DOORBELLS);
	out[1] = counter(&st[1], CSREC_REG_CNT_IRQS) - counter(&st[0], CSREC_REG_CNT_IRQS);
	_exit(write(pipe_fd, out, sizeof(out)) == sizeof(out) ? 0 : 3);
}

/* Runs it; calls[0] the system calls between its two marks, [1] doorbells, [2] interrupts. */
static int count(uint32_t flags, uint32_t irq_count, uint64_t *calls)
{
	struct __ptrace_syscall_info info;
	int p[2], status, marks = 0;
	pid_t pid;

	if (pipe(p))
		return -errno;
	pid = fork();
	if (!pid)
		traced(p[1], flags, irq_count);
	calls[0] = 0;
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL))
		return -EPROTO;
	for (;;) {
		if (ptrace(PTRACE_SYSCALL, pid, 0, 0) || waitpid(pid, &status, 0) != pid)
			return -EPROTO;
		if (WIFEXITED(status))
			break;
		if (!WIFSTOPPED(status) || WSTOPSIG(status) != (SIGTRAP | 0x80) ||
		    ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) <= 0 ||
		    info.op != PTRACE_SYSCALL_INFO_ENTRY)
			continue;
		if (info.entry.nr == SYS_getppid)
			marks++;
		else if (marks == 1)
			calls[0]++;
	}
	if (WEXITSTATUS(status) || marks != 2 || read(p[0], calls + 1, 16) != 16)
		return -EPROTO;
	close(p[0]);
	close(p[1]);
	return 0;
}

TEST(steady_state)
{
	struct csrec_info info;
	uint64_t irq[3], poll[3];
	int fd = dev_open();
	FILE *f;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, get_info(fd, &info));
	close(fd);
	if (!(info.features & CSREC_FEATURE_QUEUE_MAP))
		SKIP(return, "this device has no mapped queues");
	ASSERT_EQ(0, count(0, 64, irq));
	ASSERT_EQ(0, count(CSREC_QUEUE_F_NOIRQ, 0, poll));
	EXPECT_EQ(0, irq[0]);
	EXPECT_EQ(BATCHES, irq[1]);
	EXPECT_GE(BATCHES, irq[2]);
	EXPECT_EQ(0, poll[0]);
	EXPECT_EQ(BATCHES, poll[1]);
	EXPECT_EQ(0, poll[2]);
	/* tests/kselftest/report takes it from here */
	f = fopen("/out/figures.json", "w");
	if (f) {
		fprintf(f, "{\"syscalls_per_64\":%g,\"doorbells_per_64\":%g,"
			"\"interrupts_per_64\":%g,\"interrupts_per_64_polling\":%g}\n",
			(double)irq[0] / BATCHES, (double)irq[1] / BATCHES,
			(double)irq[2] / BATCHES, (double)poll[2] / BATCHES);
		fclose(f);
	}
}

TEST_HARNESS_MAIN
