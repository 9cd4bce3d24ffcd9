// SPDX-License-Identifier: GPL-2.0-only
/*
 * Admin queue: commands of the driver itself. Many callers may have commands on it at once;
 * the cid says whose a completion is.
 */
#include <linux/bitmap.h>

#include "csrec.h"

/* Takes what has been completed off the ring. */
static bool csrec_admin_reap(struct csrec_dev *csd)
{
	struct csrec_admin *admin = &csd->admin;
	struct csrec_ring *ring = &admin->ring;
	bool stray = false;
	unsigned long flags;
	bool any;

	spin_lock_irqsave(&admin->lock, flags);
	any = csrec_ring_scan(ring);
	while (ring->head != ring->posted) {
		const struct csrec_cqe *cqe = &ring->cq[ring->head & (ring->entries - 1)];
		u16 cid = le16_to_cpu(cqe->cid);

		if (cid < CSREC_ADMIN_ENTRIES && test_bit(cid, admin->used)) {
			admin->cqe[cid] = *cqe;
			__set_bit(cid, admin->done);
		} else {
			stray = true;
		}
		ring->head++;
	}
	spin_unlock_irqrestore(&admin->lock, flags);

	/* its caller finds out by the lack of progress */
	if (stray)
		dev_err_ratelimited(&csd->pdev->dev, "completion for no admin command\n");
	return any;
}

void csrec_admin_irq(struct csrec_dev *csd)
{
	if (csrec_admin_reap(csd))
		wake_up_all(&csd->admin.waitq);
}

void csrec_admin_init(struct csrec_dev *csd)
{
	spin_lock_init(&csd->admin.lock);
	init_waitqueue_head(&csd->admin.waitq);
}

/* Puts all @n commands on the ring, or, if there is no room for all, none. */
static bool csrec_admin_submit(struct csrec_dev *csd, const struct csrec_cmd *cmds,
			       unsigned int n, u16 *cids)
{
	struct csrec_admin *admin = &csd->admin;
	struct csrec_ring *ring = &admin->ring;
	unsigned long flags;
	unsigned int i;

	spin_lock_irqsave(&admin->lock, flags);
	if (bitmap_weight(admin->used, CSREC_ADMIN_ENTRIES) + n > CSREC_ADMIN_ENTRIES ||
	    ring->tail - ring->head + n > ring->entries) {
		spin_unlock_irqrestore(&admin->lock, flags);
		return false;
	}
	for (i = 0; i < n; i++) {
		struct csrec_cmd cmd = cmds[i];

		cids[i] = find_first_zero_bit(admin->used, CSREC_ADMIN_ENTRIES);
		__set_bit(cids[i], admin->used);
		__clear_bit(cids[i], admin->done);
		cmd.cid = cpu_to_le16(cids[i]);
		csrec_ring_write(ring, &cmd, 1);
		ring->tail++;
	}
	csrec_ring_doorbell(csd, ring, ring->tail, ring->head);
	spin_unlock_irqrestore(&admin->lock, flags);
	return true;
}

static bool csrec_admin_done(struct csrec_admin *admin, const u16 *cids, unsigned int n)
{
	unsigned long flags;
	unsigned int i;

	spin_lock_irqsave(&admin->lock, flags);
	for (i = 0; i < n && test_bit(cids[i], admin->done); i++)
		;
	spin_unlock_irqrestore(&admin->lock, flags);
	return i == n;
}

/* Gives the cids back. The status of the first command that failed, or 0. */
static int csrec_admin_finish(struct csrec_dev *csd, const struct csrec_cmd *cmds,
			      const u16 *cids, unsigned int n)
{
	struct csrec_admin *admin = &csd->admin;
	struct csrec_cqe bad;
	unsigned long flags;
	unsigned int i;
	int status = 0;
	u8 opcode = 0;

	spin_lock_irqsave(&admin->lock, flags);
	for (i = 0; i < n; i++) {
		const struct csrec_cqe *cqe = &admin->cqe[cids[i]];
		int st = le16_to_cpu(cqe->status) >> CSREC_CQE_STATUS_SHIFT;

		if (st && !status) {
			status = st;
			bad = *cqe;
			opcode = cmds[i].opcode;
		}
		__clear_bit(cids[i], admin->used);
	}
	spin_unlock_irqrestore(&admin->lock, flags);
	wake_up_all(&admin->waitq);

	if (status)
		dev_err_ratelimited(&csd->pdev->dev,
				    "admin command 0x%02x refused: status %d, field %u, detail 0x%llx\n",
				    opcode, status, le16_to_cpu(bad.field),
				    le64_to_cpu(bad.detail));
	return status;
}

/**
 * csrec_admin_exec - run commands on the admin queue and wait for all of them
 * @csd: device
 * @cmds: commands; their cid is overwritten
 * @n: how many, at most CSREC_ADMIN_BATCH; they take one doorbell
 *
 * Waits as long as the device makes progress. Return: 0; the CSREC_ST_* of the first
 * that the device refused; or -ENODEV or -EIO if the device is gone or hung, in which
 * case the commands may still have taken effect.
 */
int csrec_admin_exec(struct csrec_dev *csd, const struct csrec_cmd *cmds, unsigned int n)
{
	struct csrec_admin *admin = &csd->admin;
	struct csrec_watch watch = {};
	u16 cids[CSREC_ADMIN_BATCH];
	int hung;

	might_sleep();
	if (WARN_ON_ONCE(n > CSREC_ADMIN_BATCH))
		return -EINVAL;

	wait_event(admin->waitq, csrec_dead(csd) || csrec_admin_submit(csd, cmds, n, cids));
	if (csrec_dead(csd))
		return csrec_dead(csd);

	while (!wait_event_timeout(admin->waitq,
				   csrec_admin_done(admin, cids, n) || csrec_dead(csd),
				   CSREC_LOOK_INTERVAL)) {
		/* an interrupt may have been lost */
		csrec_admin_irq(csd);
		if (csrec_admin_done(admin, cids, n))
			break;
		hung = csrec_hw_look(csd, &watch, true);
		if (hung > 0 || (!hung && watch.status & CSREC_STATUS_FATAL)) {
			dev_err(&csd->pdev->dev,
				"admin command 0x%02x %s (status 0x%llx): given up, needs a reset\n",
				cmds[0].opcode, hung ? "makes no progress" : "hit a fatal error",
				watch.status);
			csrec_set_dead(csd, CSREC_FAILED);
		}
	}
	if (!csrec_admin_done(admin, cids, n))
		return csrec_dead(csd);
	return csrec_admin_finish(csd, cmds, cids, n);
}

/* REGION_INVAL, FENCE_INVAL, FENCE_SIGNAL: commands of a key, and perhaps a value. */
int csrec_admin_key(struct csrec_dev *csd, u8 opcode, u32 key, u64 value)
{
	struct csrec_cmd cmd = { .opcode = opcode };
	struct csrec_body_fence body = {
		.fence_key = cpu_to_le32(key),
		.value = cpu_to_le64(value),
	};

	BUILD_BUG_ON(offsetof(struct csrec_body_fence, fence_key) !=
		     offsetof(struct csrec_body_region, region_key));
	memcpy(cmd.body, &body, sizeof(body));
	return csrec_admin_exec(csd, &cmd, 1);
}
