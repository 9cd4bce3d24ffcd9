/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Arithmetic of rings: pure functions, for the driver and for the test that runs on the host
 * (tests/unit), which brings its own idea of the kernel's helpers.
 *
 * Counts run freely modulo 2^32, and the number of entries is a power of two, so that a count's
 * slot and pass stay right when it wraps.
 */
#ifndef _CSREC_RING_H
#define _CSREC_RING_H

#include <linux/csrec.h>

static inline u32 csrec_ring_slot(u32 entries, u32 count)
{
	return count & (entries - 1);
}

/* How many more commands fit behind @tail if those from @head on count. */
static inline u32 csrec_ring_room(u32 entries, u32 tail, u32 head)
{
	return entries - (tail - head);
}

/* How many of @n entries from @count on lie before the end of the ring. */
static inline u32 csrec_ring_first(u32 entries, u32 count, u32 n)
{
	return min(n, entries - csrec_ring_slot(entries, count));
}

/*
 * Is completion number @count there? Its phase is 1 in even passes over the ring, 0 in odd
 * ones; slots start as zero.
 */
static inline bool csrec_cq_has(const struct csrec_cqe *cq, u32 entries, u32 count)
{
	const struct csrec_cqe *cqe = &cq[csrec_ring_slot(entries, count)];
	bool phase = le16_to_cpu(READ_ONCE(cqe->status)) & CSREC_CQE_PHASE;
	bool odd = (count >> ilog2(entries)) & 1;

	return phase != odd;
}

/*
 * How many completions are there from number @head on, up to @most? Right for any @head and
 * any contents of the ring in that it ends, and looks nowhere else.
 */
static inline u32 csrec_cq_count(const struct csrec_cqe *cq, u32 entries, u32 head, u32 most)
{
	u32 n = 0;

	most = min(most, entries);
	while (n < most && csrec_cq_has(cq, entries, head + n))
		n++;
	return n;
}

/* Where things lie in the rings of a queue that a process maps. */
static inline size_t csrec_map_cq_off(u32 entries, size_t page)
{
	return ALIGN(entries * sizeof(struct csrec_cmd), page);
}

static inline size_t csrec_map_ctl_off(u32 entries, size_t page)
{
	return csrec_map_cq_off(entries, page) + ALIGN(entries * sizeof(struct csrec_cqe), 64);
}

static inline size_t csrec_map_len(u32 entries, size_t page)
{
	return ALIGN(csrec_map_ctl_off(entries, page) + sizeof(struct csrec_queue_ctl), page);
}

#endif /* _CSREC_RING_H */
