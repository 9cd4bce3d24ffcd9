// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rings: memory, phase, doorbell. The callers lock.
 */
#include <linux/dma-mapping.h>
#include <linux/log2.h>

#include "csrec.h"

int csrec_ring_alloc(struct csrec_dev *csd, struct csrec_ring *ring, unsigned int qid,
		     u32 entries)
{
	struct device *dev = &csd->pdev->dev;
	u64 db = csd->cap_queue >> CSREC_CAPQ_DB_SHIFT;
	unsigned int stride = (csd->cap_queue >> CSREC_CAPQ_STRIDE_SHIFT) & 0xff;

	memset(ring, 0, sizeof(*ring));
	ring->entries = entries;
	ring->doorbell = csd->regs + db + ((u64)qid << stride);
	ring->sq = dma_alloc_coherent(dev, entries * sizeof(*ring->sq), &ring->sq_dma,
				      GFP_KERNEL_ACCOUNT);
	if (!ring->sq)
		return -ENOMEM;
	ring->cq = dma_alloc_coherent(dev, entries * sizeof(*ring->cq), &ring->cq_dma,
				      GFP_KERNEL_ACCOUNT);
	if (!ring->cq) {
		dma_free_coherent(dev, entries * sizeof(*ring->sq), ring->sq, ring->sq_dma);
		ring->sq = NULL;
		return -ENOMEM;
	}
	return 0;
}

void csrec_ring_free(struct csrec_dev *csd, struct csrec_ring *ring)
{
	struct device *dev = &csd->pdev->dev;

	if (!ring->sq)
		return;
	dma_free_coherent(dev, ring->entries * sizeof(*ring->cq), ring->cq, ring->cq_dma);
	dma_free_coherent(dev, ring->entries * sizeof(*ring->sq), ring->sq, ring->sq_dma);
	ring->sq = NULL;
}

/* As new, for a device that has forgotten its queues. */
void csrec_ring_reset(struct csrec_ring *ring)
{
	memset(ring->sq, 0, ring->entries * sizeof(*ring->sq));
	memset(ring->cq, 0, ring->entries * sizeof(*ring->cq));
	ring->tail = 0;
	ring->posted = 0;
	ring->head = 0;
}

/* Completion number @count has phase 1 in even passes over the ring, 0 in odd ones. */
static bool csrec_ring_has(const struct csrec_ring *ring, u32 count)
{
	const struct csrec_cqe *cqe = &ring->cq[count & (ring->entries - 1)];
	bool phase = le16_to_cpu(READ_ONCE(cqe->status)) & CSREC_CQE_PHASE;
	bool pass = (count >> ilog2(ring->entries)) & 1;

	return phase != pass;
}

/* Moves @posted on over new completions. True if there were any. */
bool csrec_ring_scan(struct csrec_ring *ring)
{
	u32 old = ring->posted;

	while (ring->posted != ring->tail && csrec_ring_has(ring, ring->posted))
		ring->posted++;
	if (ring->posted == old)
		return false;
	/* the phase bits were read before the rest of the completions is */
	dma_rmb();
	return true;
}

/* Behind the tail; neither moves it nor rings. The caller has checked for room. */
void csrec_ring_write(struct csrec_ring *ring, const struct csrec_cmd *cmd, u32 n)
{
	u32 slot = ring->tail & (ring->entries - 1);
	u32 first = min(n, ring->entries - slot);

	memcpy(&ring->sq[slot], cmd, first * sizeof(*cmd));
	memcpy(&ring->sq[0], cmd + first, (n - first) * sizeof(*cmd));
}

/*
 * The completion head travels with the next doorbell and never needs one of its own: no
 * more than @entries commands are written beyond the head that was told last, so each
 * of them already has its slot in the completion ring.
 */
void csrec_ring_doorbell(struct csrec_dev *csd, const struct csrec_ring *ring, u32 tail,
			 u32 head)
{
	writeq((u64)tail << CSREC_DB_SQ_TAIL_SHIFT | (u64)head << CSREC_DB_CQ_HEAD_SHIFT,
	       ring->doorbell);
	atomic64_inc(&csd->doorbells);
}
