// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Mapped queues: submission and completion without system calls. When looking at the ring
 * is in vain for long, a queue with interrupts sleeps in the driver and one without naps;
 * both then hear from the driver whether the device still lives.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include "private.h"

#define SPIN_MIN	64u
#define SPIN_START	2048u
#define SPIN_MAX	16384u
/* So many looks of csrec_wait() with timeout 0 in vain: time to ask the driver. */
#define IDLE_MAX	16384u

/* Offsets and lengths as the driver must have meant them. */
static bool layout_ok(const struct csrec_queue_create *arg)
{
	const uint64_t page = sysconf(_SC_PAGESIZE);
	const uint64_t sq = (uint64_t)arg->entries * sizeof(struct csrec_cmd);
	const uint64_t cq = (uint64_t)arg->entries * sizeof(struct csrec_cqe);

	return arg->ring_len <= SIZE_MAX && arg->db_len <= SIZE_MAX &&
	       !(arg->ring_offset % page) && !(arg->db_offset % page) &&
	       !(arg->cq_off % sizeof(struct csrec_cqe)) && !(arg->ctl_off % 64) &&
	       arg->cq_off >= sq && arg->cq_off <= arg->ring_len &&
	       arg->ring_len - arg->cq_off >= cq && arg->ctl_off <= arg->ring_len &&
	       arg->ring_len - arg->ctl_off >= sizeof(struct csrec_queue_ctl) &&
	       arg->db_len >= sizeof(uint64_t);
}

int csrec_mapped_init(struct csrec_queue *q, const struct csrec_queue_create *arg)
{
	struct ring *r = &q->ring;
	int fd = q->dev->fd;
	unsigned char *p;
	void *db;

	if (!layout_ok(arg))
		return csrec_fail(EPROTO, "QUEUE_CREATE: the driver of %s gave an impossible layout of the rings",
				  q->dev->name);
	p = mmap(NULL, arg->ring_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, arg->ring_offset);
	if (p == MAP_FAILED)
		return csrec_fail(errno, "mapping the rings of queue %u of %s: %s", q->id,
				  q->dev->name, csrec_errno_text(errno));
	db = mmap(NULL, arg->db_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, arg->db_offset);
	if (db == MAP_FAILED) {
		int ret = csrec_fail(errno, "mapping the doorbell of queue %u of %s: %s", q->id,
				     q->dev->name, csrec_errno_text(errno));

		munmap(p, arg->ring_len);
		return ret;
	}
	q->ring_map = p;
	q->ring_len = arg->ring_len;
	q->db_map = db;
	q->db_len = arg->db_len;
	r->sq = (struct csrec_cmd *)p;
	r->cq = (struct csrec_cqe *)(p + arg->cq_off);
	r->ctl = (struct csrec_queue_ctl *)(p + arg->ctl_off);
	r->doorbell = db;
	r->entries = q->entries;
	ring_reset(r);
	q->mapped = true;
	if (!q->spin) {
		q->spin = SPIN_START;
		q->adapt = true;
	}
	return 0;
}

void csrec_mapped_exit(struct csrec_queue *q)
{
	munmap(q->ring_map, q->ring_len);
	munmap(q->db_map, q->db_len);
}

int csrec_mapped_submit(struct csrec_queue *q, const struct csrec_cmd *cmds, uint32_t n)
{
	if (q->error)
		return q->error;
	n = ring_submit(&q->ring, cmds, n);
	if (!n)
		return -EAGAIN;
	q->outstanding = q->ring.tail - q->ring.head;
	return n;
}

/*
 * Has the driver wait until there are min completions more, or, with min 0, only say how
 * things are. 0, or why nothing will come any more. That the time is up is no error here.
 */
static int ask(struct csrec_queue *q, uint32_t min, int64_t end)
{
	struct csrec_wait arg = { .size = sizeof(arg), .queue_id = q->id, .min = min };
	int ret;

	q->idle = 0;
	arg.timeout_ns = end;
	if (end > NOW && q->dev->uapi_minor >= 1) {
		arg.flags = CSREC_WAIT_F_DEADLINE;
	} else if (end > NOW) {
		arg.timeout_ns = end - csrec_now();
		if (arg.timeout_ns < 0)
			arg.timeout_ns = 0;
	}
	ret = ioctl(q->dev->fd, CSREC_IOC_WAIT, &arg) ? -errno : 0;
	switch (-ret) {
	case EINTR:
	case EAGAIN:
	case ETIMEDOUT:
		return 0;
	case EIO:
	case ENODEV:
		q->error = ret;
		break;
	}
	return ret;
}

static bool over(int64_t end)
{
	return end == NOW || (end > NOW && csrec_now() >= end);
}

/* So many looks were in vain before the completion came. */
static void adapt(struct csrec_queue *q, uint32_t looks)
{
	/* towards twice what it takes */
	uint32_t spin = (7 * q->spin + 2 * looks) / 8;

	q->spin = spin < SPIN_MIN ? SPIN_MIN : spin > SPIN_MAX ? SPIN_MAX : spin;
}

int csrec_mapped_wait(struct csrec_queue *q, struct csrec_cqe *cqes, uint32_t min, uint32_t max,
		      int64_t end)
{
	uint32_t got = 0, looks = 0, naps = 0;
	int ret = q->error;

	for (;;) {
		uint32_t n = ring_take(&q->ring, cqes + got, max - got);

		got += n;
		if (n)
			q->idle = 0;
		else
			q->idle++;
		if (got >= min || end == NOW) {
			if (!got && !ret && q->idle >= IDLE_MAX)
				ret = ask(q, 0, NOW);
			break;
		}
		if (ret || (end > NOW && looks % 1024 == 1023 && over(end)))
			break;
		if (n) {
			/* it is at work: patience begins anew */
			looks = 0;
			continue;
		}
		if (++looks < q->spin) {
			cpu_relax();
			continue;
		}

		if (!naps++ && q->adapt)
			q->spin = q->spin / 2 < SPIN_MIN ? SPIN_MIN : q->spin / 2;
		if (q->irq) {
			ret = ask(q, min - got, end);
		} else {
			csrec_nap(naps, end);
			ret = ask(q, 0, NOW);
		}
		if (over(end)) {
			got += ring_take(&q->ring, cqes + got, max - got);
			break;
		}
	}

	if (q->adapt && got && !naps)
		adapt(q, looks);
	q->outstanding = q->ring.tail - q->ring.head;
	if (got)
		return got;
	if (ret)
		return ret;
	if (!min)
		return 0;
	return end == NOW ? -EAGAIN : -ETIMEDOUT;
}
