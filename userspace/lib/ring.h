/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rings of a mapped queue: arithmetic and memory order, no system calls. The rules are the
 * device's (CSREC_DB_*, CSREC_CQE_PHASE). All counts run freely modulo 2^32; their
 * differences are at most the number of entries.
 *
 * Order: commands are in memory before the doorbell that tells of them (io_wmb), a
 * completion is read after its phase bit (io_rmb). The doorbell says as well what has been
 * consumed, so that the slots of completions that were copied out may be written again.
 */
#ifndef CSREC_RING_H
#define CSREC_RING_H

#include <csrec.h>

struct ring {
	struct csrec_cmd *sq;
	struct csrec_cqe *cq;
	struct csrec_queue_ctl *ctl;
	uint64_t *doorbell;
	uint32_t entries;		/* power of two */
	uint32_t tail;			/* commands written */
	uint32_t head;			/* completions consumed */
};

/* Stores to memory before those to the device. */
static inline void io_wmb(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__asm__ volatile("" ::: "memory");	/* stores stay in order, to the device too */
#elif defined(__aarch64__)
	__asm__ volatile("dmb oshst" ::: "memory");
#elif defined(__riscv)
	__asm__ volatile("fence w,o" ::: "memory");
#else
	__sync_synchronize();
#endif
}

/* Loads of what the device wrote to memory, in order. */
static inline void io_rmb(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__asm__ volatile("" ::: "memory");	/* loads stay in order */
#elif defined(__aarch64__)
	__asm__ volatile("dmb oshld" ::: "memory");
#elif defined(__riscv)
	__asm__ volatile("fence r,r" ::: "memory");
#else
	__sync_synchronize();
#endif
}

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static inline void ring_reset(struct ring *r)
{
	r->tail = 0;
	r->head = 0;
	__atomic_store_n(&r->ctl->cq_head, 0, __ATOMIC_RELEASE);
}

/* Writes up to n commands and rings once; returns how many fit. */
static inline uint32_t ring_submit(struct ring *r, const struct csrec_cmd *cmds, uint32_t n)
{
	uint32_t room = r->entries - (r->tail - r->head);
	uint32_t slot = r->tail & (r->entries - 1);
	uint32_t first;

	if (n > room)
		n = room;
	if (!n)
		return 0;
	first = r->entries - slot < n ? r->entries - slot : n;
	memcpy(&r->sq[slot], cmds, first * sizeof(*cmds));
	memcpy(&r->sq[0], cmds + first, (n - first) * sizeof(*cmds));
	r->tail += n;
	io_wmb();
	/* one access of eight bytes, on 32-bit CPUs too: the device drops others */
	__atomic_store_n(r->doorbell, (uint64_t)r->tail << CSREC_DB_SQ_TAIL_SHIFT |
			 (uint64_t)r->head << CSREC_DB_CQ_HEAD_SHIFT, __ATOMIC_RELAXED);
	return n;
}

/* Is the completion with that count there? Phase is 1 in even passes over the ring. */
static inline bool ring_has(const struct ring *r, uint32_t count)
{
	uint16_t status = __atomic_load_n(&r->cq[count & (r->entries - 1)].status,
					  __ATOMIC_RELAXED);

	return (status & CSREC_CQE_PHASE) == !(count & r->entries);
}

/* Takes up to max completions and tells the driver. */
static inline uint32_t ring_take(struct ring *r, struct csrec_cqe *cqes, uint32_t max)
{
	uint32_t n = 0;

	while (n < max && r->head != r->tail && ring_has(r, r->head)) {
		io_rmb();
		cqes[n++] = r->cq[r->head++ & (r->entries - 1)];
	}
	/* released: who sleeps in the driver until there are more has read these */
	if (n)
		__atomic_store_n(&r->ctl->cq_head, r->head, __ATOMIC_RELEASE);
	return n;
}

#endif
