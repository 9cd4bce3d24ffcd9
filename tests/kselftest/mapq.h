/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A queue that this process has mapped: rings and doorbell as the uAPI header states them.
 */
#ifndef MAPQ_H
#define MAPQ_H

#include "csrec_test.h"

struct mapq {
	int fd;
	struct csrec_queue_create arg;
	uint32_t id;
	uint32_t entries;
	uint32_t shift;		/* log2 of entries */
	struct csrec_cmd *sq;
	volatile struct csrec_cqe *cq;
	volatile struct csrec_queue_ctl *ctl;
	volatile uint64_t *db;
	uint32_t tail;		/* commands written */
	uint32_t head;		/* completions consumed */
};

static inline int mapq_create_raw(int fd, struct csrec_queue_create *arg, uint32_t entries,
				  uint32_t flags, uint32_t irq_count, uint32_t irq_cycles)
{
	*arg = (struct csrec_queue_create){
		.size = sizeof(*arg), .flags = flags, .entries = entries,
		.irq_count = irq_count, .irq_cycles = irq_cycles,
	};
	return xioctl(fd, CSREC_IOC_QUEUE_CREATE, arg);
}

static inline void *map_at(int fd, uint64_t off, uint64_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, off);

	return p == MAP_FAILED ? NULL : p;
}

/* 0 or -errno. */
static inline int mapq_create(struct mapq *q, int fd, uint32_t entries, uint32_t flags,
			      uint32_t irq_count, uint32_t irq_cycles)
{
	int ret;
	uint8_t *ring;

	memset(q, 0, sizeof(*q));
	ret = mapq_create_raw(fd, &q->arg, entries, CSREC_QUEUE_F_MAP | flags, irq_count,
			      irq_cycles);
	if (ret)
		return ret;
	ring = map_at(fd, q->arg.ring_offset, q->arg.ring_len);
	q->db = map_at(fd, q->arg.db_offset, q->arg.db_len);
	if (!ring || !q->db)
		return -errno;
	q->fd = fd;
	q->id = q->arg.queue_id;
	q->entries = entries;
	q->shift = __builtin_ctz(entries);
	q->sq = (struct csrec_cmd *)ring;
	q->cq = (volatile struct csrec_cqe *)(ring + q->arg.cq_off);
	q->ctl = (volatile struct csrec_queue_ctl *)(ring + q->arg.ctl_off);
	return 0;
}

static inline void mapq_destroy(struct mapq *q)
{
	munmap(q->sq, q->arg.ring_len);
	munmap((void *)q->db, q->arg.db_len);
	q_destroy(q->fd, q->id);
}

/* The caller knows that there is room. */
static inline void mapq_put(struct mapq *q, const struct csrec_cmd *cmd)
{
	q->sq[q->tail++ & (q->entries - 1)] = *cmd;
}

static inline void mapq_ring(struct mapq *q)
{
	/* commands before the doorbell; an MMIO write, which an x86 CPU does not merge */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	*q->db = (uint64_t)q->tail << CSREC_DB_SQ_TAIL_SHIFT |
		 (uint64_t)q->head << CSREC_DB_CQ_HEAD_SHIFT;
}

static inline bool mapq_has(const struct mapq *q)
{
	return (le16toh(q->cq[q->head & (q->entries - 1)].status) & CSREC_CQE_PHASE) !=
	       (q->head >> q->shift & 1);
}

/* Takes one completion if there is one. */
static inline bool mapq_take(struct mapq *q, struct csrec_cqe *cqe)
{
	if (!mapq_has(q))
		return false;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	*cqe = *(struct csrec_cqe *)&q->cq[q->head++ & (q->entries - 1)];
	return true;
}

/* Tells the driver how far this process is. */
static inline void mapq_tell(struct mapq *q)
{
	__atomic_store_n(&q->ctl->cq_head, q->head, __ATOMIC_RELEASE);
}

/* WAIT on a mapped queue: how many there are, or -errno. */
static inline int mapq_wait_flags(struct mapq *q, uint32_t min, int64_t timeout_ns, uint32_t flags)
{
	struct csrec_wait arg = { .size = sizeof(arg), .flags = flags, .queue_id = q->id,
				  .min = min, .timeout_ns = timeout_ns };
	int ret;

	mapq_tell(q);
	ret = xioctl(q->fd, CSREC_IOC_WAIT, &arg);
	return ret ? ret : (int)arg.count;
}

static inline int mapq_wait(struct mapq *q, uint32_t min, int64_t timeout_ns)
{
	return mapq_wait_flags(q, min, timeout_ns, 0);
}

/* Runs one command alone: its status, or -errno. */
static inline int mapq_run(struct mapq *q, const struct csrec_cmd *cmd)
{
	struct csrec_cqe cqe;
	int ret;

	mapq_put(q, cmd);
	mapq_ring(q);
	ret = mapq_wait(q, 1, q->arg.flags & CSREC_QUEUE_F_NOIRQ ? 0 : -1);
	while (ret == -EAGAIN)
		ret = mapq_wait(q, 1, 0);
	if (ret < 0)
		return ret;
	return mapq_take(q, &cqe) ? (int)cqe_status(&cqe) : -EPROTO;
}

/* The rings of what is gone: memory. */
static inline int mapq_is_memory(struct mapq *q)
{
	memset(q->sq, 0x5a, q->arg.ring_len);
	for (uint64_t i = 0; i < q->arg.ring_len; i++)
		if (((uint8_t *)q->sq)[i] != 0x5a)
			return -1;
	return 0;
}

/* Is the doorbell page memory, and not the device's? That ignores writes to its end. */
static inline bool mapq_db_is_memory(struct mapq *q)
{
	volatile uint64_t *end = q->db + q->arg.db_len / 8 - 1;

	*end = 0x5a5a5a5a01234567;
	return *end == 0x5a5a5a5a01234567;
}

#endif /* MAPQ_H */
