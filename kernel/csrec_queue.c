// SPDX-License-Identifier: GPL-2.0-only
/*
 * I/O queues: create, destroy, submit, wait, and the watchdog over them.
 */
#include <linux/eventfd.h>
#include <linux/hrtimer.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/pagemap.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "csrec_ring.h"
#include "csrec_trace.h"

static void csrec_queue_free(struct kref *ref)
{
	struct csrec_queue *q = container_of(ref, struct csrec_queue, ref);

	csrec_ring_free(q->ctx->csd, &q->ring);
	if (q->evt)
		eventfd_ctx_put(q->evt);
	kfree(q);
}

static void csrec_queue_put(struct csrec_queue *q)
{
	kref_put(&q->ref, csrec_queue_free);
}

/* A queue of this context by its handle, which is its hardware number. */
static struct csrec_queue *csrec_queue_get(struct csrec_ctx *ctx, u32 id)
{
	struct csrec_dev *csd = ctx->csd;
	struct csrec_queue *q;

	if (!id || id > csd->nr_ioq)
		return NULL;
	spin_lock(&csd->queues_lock);
	q = csd->queues[array_index_nospec(id, csd->nr_ioq + 1)];
	if (q && q->ctx == ctx && !READ_ONCE(q->closing))
		kref_get(&q->ref);
	else
		q = NULL;
	spin_unlock(&csd->queues_lock);
	return q;
}

/* How many entries its rings have, and whether it is mapped; or 0: there is no such queue. */
static u32 csrec_queue_entries(struct csrec_ctx *ctx, u32 id, bool *mapped)
{
	struct csrec_dev *csd = ctx->csd;
	struct csrec_queue *q;
	u32 entries = 0;

	if (!id || id > csd->nr_ioq)
		return 0;
	spin_lock(&csd->queues_lock);
	q = csd->queues[array_index_nospec(id, csd->nr_ioq + 1)];
	if (q && q->ctx == ctx && !READ_ONCE(q->closing))
		entries = q->ring.entries;
	if (entries)
		*mapped = q->ring.umem;
	spin_unlock(&csd->queues_lock);
	return entries;
}

static void csrec_queue_link(struct csrec_dev *csd, struct csrec_queue *q)
{
	lockdep_assert_held(&csd->queue_lock);
	spin_lock(&csd->queues_lock);
	csd->queues[q->qid] = q;
	spin_unlock(&csd->queues_lock);
	if (!q->noirq) {
		spin_lock_irq(&q->vector->lock);
		list_add_tail(&q->node, &q->vector->queues);
		spin_unlock_irq(&q->vector->lock);
	}
	q->ctx->nr_queues++;
	csd->nr_mapped += !!q->ring.umem;
}

/* Off the books; the rings stay until the last waiter has left. */
static void csrec_queue_unlink(struct csrec_dev *csd, struct csrec_queue *q)
{
	lockdep_assert_held(&csd->queue_lock);
	spin_lock_irq(&q->vector->lock);
	list_del_init(&q->node);
	spin_unlock_irq(&q->vector->lock);
	spin_lock(&csd->queues_lock);
	csd->queues[q->qid] = NULL;
	spin_unlock(&csd->queues_lock);
	q->ctx->nr_queues--;
	csrec_owner_uncharge(q->ctx->owner, CSREC_QUOTA_QUEUES, 1);
	if (q->ring.umem) {
		csd->nr_mapped--;
		csrec_umem_del(q->ctx, q->ring.umem);
	}
	csrec_queue_put(q);
}

/* Is the queue's process to see something that it has not consumed? Under q->lock. */
static bool csrec_queue_any(struct csrec_queue *q)
{
	return q->ring.umem ? csrec_ring_unread(&q->ring, 1) : q->ring.posted != q->ring.head;
}

/* Moves ring.posted on over new completions. Under q->lock. */
static void csrec_queue_see(struct csrec_queue *q)
{
	struct csrec_ring *ring = &q->ring;
	u32 i = ring->posted;

	if (csrec_ring_scan(ring) && trace_csrec_complete_enabled())
		for (; i != ring->posted; i++)
			trace_csrec_complete(q, &ring->cq[i & (ring->entries - 1)], i);
}

/*
 * Looks for new completions. True if there are any that nobody has taken, whoever saw them
 * first.
 */
static bool csrec_queue_scan(struct csrec_queue *q)
{
	unsigned long flags;
	bool any;

	spin_lock_irqsave(&q->lock, flags);
	csrec_queue_see(q);
	any = csrec_queue_any(q);
	spin_unlock_irqrestore(&q->lock, flags);
	return any;
}

/*
 * Signals the eventfd if poll() begins to report completions. A process that maps its queue may
 * have consumed all and begun anew since the last look, which shows by its head.
 */
static void csrec_queue_tell(struct csrec_queue *q)
{
	u32 head = q->ring.umem ? READ_ONCE(q->ring.ctl->cq_head) : 0;
	bool any = csrec_queue_any(q);

	lockdep_assert_held(&q->lock);
	if (q->evt && any && (!q->told || q->told_head != head))
		eventfd_signal(q->evt);
	q->told = any;
	q->told_head = head;
}

/*
 * Looks for new completions, and lets everybody know of those that nobody has taken: who saw
 * them first may not have been one who waits for them. Called by the interrupt handler too.
 */
void csrec_queue_irq(struct csrec_queue *q)
{
	unsigned long flags;
	bool any;

	spin_lock_irqsave(&q->lock, flags);
	csrec_queue_see(q);
	csrec_queue_tell(q);
	any = q->told;
	spin_unlock_irqrestore(&q->lock, flags);
	if (any)
		wake_up_all(&q->ctx->waitq);
}

/* What is not a matter of completions. */
static void csrec_queue_tell_error(struct csrec_queue *q)
{
	unsigned long flags;

	spin_lock_irqsave(&q->lock, flags);
	if (q->evt)
		eventfd_signal(q->evt);
	spin_unlock_irqrestore(&q->lock, flags);
}

/* All contexts have died. */
void csrec_queues_dead(struct csrec_dev *csd)
{
	unsigned int i;

	spin_lock(&csd->queues_lock);
	for (i = 1; i <= csd->nr_ioq; i++) {
		if (csd->queues[i])
			csrec_queue_tell_error(csd->queues[i]);
	}
	spin_unlock(&csd->queues_lock);
}

/* Commands whose completion has not been posted, and the count of all that has. */
static u32 csrec_queue_in_flight(struct csrec_queue *q, u32 *posted)
{
	unsigned long flags;
	u64 state;
	u32 n;

	if (q->ring.umem) {
		state = readq(q->ring.doorbell + CSREC_DB_STATE);
		/* all ones: off the bus, which csrec_hw_look() will find */
		*posted = state >> CSREC_DBS_CQ_TAIL_SHIFT;
		if (state == ~0ULL)
			return 1;
		return (u32)(state >> CSREC_DBS_SQ_TAIL_SHIFT) - *posted;
	}
	spin_lock_irqsave(&q->lock, flags);
	csrec_queue_see(q);
	*posted = q->ring.posted;
	n = q->ring.tail - q->ring.posted;
	spin_unlock_irqrestore(&q->lock, flags);
	return n;
}

static void csrec_queue_cmd(struct csrec_cmd *cmd, u8 opcode, const struct csrec_body_queue *body)
{
	memset(cmd, 0, sizeof(*cmd));
	cmd->opcode = opcode;
	memcpy(cmd->body, body, sizeof(*body));
}

/* 0; a status if the device refuses; a negative errno if it does not answer. */
static int csrec_queue_create_hw(struct csrec_dev *csd, struct csrec_queue *q)
{
	struct csrec_body_queue body = {
		.qid = cpu_to_le16(q->qid),
		.log2_entries = ilog2(q->ring.entries),
		.vector = cpu_to_le16(q->vector - csd->vectors),
		.domain = cpu_to_le16(q->ctx->domain),
		.sq_base = cpu_to_le64(q->ring.sq_dma),
		.cq_base = cpu_to_le64(q->ring.cq_dma),
		.irq_count = cpu_to_le16(q->irq_count),
		.qflags = cpu_to_le16(q->noirq ? CSREC_QUEUE_HW_F_NOIRQ : 0),
		.irq_cycles = cpu_to_le32(q->irq_cycles),
	};
	struct csrec_cmd cmd;
	int ret;

	lockdep_assert_held(&csd->queue_lock);
	csrec_queue_cmd(&cmd, CSREC_OP_QUEUE_CREATE, &body);
	ret = csrec_admin_exec(csd, &cmd, 1);
	q->deleted = ret > 0;
	return ret;
}

/*
 * Has the device forget a queue. Afterwards it writes nothing to the rings any more. 0, or
 * a negative errno if it did not answer.
 */
static int csrec_queue_delete_hw(struct csrec_dev *csd, struct csrec_queue *q)
{
	struct csrec_body_queue body = { .qid = cpu_to_le16(q->qid) };
	struct csrec_cmd cmd;
	int ret;

	lockdep_assert_held(&csd->queue_lock);
	if (q->deleted)
		return 0;
	csrec_queue_cmd(&cmd, CSREC_OP_QUEUE_DELETE, &body);
	ret = csrec_admin_exec(csd, &cmd, 1);
	if (ret > 0) {
		csrec_set_dead(csd, CSREC_FAILED);
		return -EIO;
	}
	if (!ret)
		q->deleted = true;
	return ret;
}

/* On failure the queue stays for csrec_queues_teardown(). */
static int csrec_queue_destroy(struct csrec_dev *csd, struct csrec_queue *q)
{
	int ret;

	lockdep_assert_held(&csd->queue_lock);
	/* no submitter is at work after this, and none will be */
	mutex_lock(&q->submit_lock);
	WRITE_ONCE(q->closing, true);
	mutex_unlock(&q->submit_lock);
	/* before its number can become another's */
	if (q->ring.umem)
		csrec_umem_del(q->ctx, q->ring.umem);

	ret = csrec_queue_delete_hw(csd, q);
	wake_up_all(&q->ctx->waitq);
	if (!ret)
		csrec_queue_unlink(csd, q);
	return ret;
}

static int csrec_queue_check(const struct csrec_dev *csd, const struct csrec_queue_create *arg)
{
	if (arg->entries < 2 || arg->entries > csd->max_entries || !is_power_of_2(arg->entries))
		return -EINVAL;
	/* the device counts to that; and without a limit of time the last few would get none */
	if (arg->irq_count > U16_MAX || (arg->irq_count > 1 && !arg->irq_cycles))
		return -EINVAL;
	if ((arg->irq_count || arg->irq_cycles || arg->flags & CSREC_QUEUE_F_NOIRQ) &&
	    !(csrec_features(csd) & CSREC_FEATURE_COALESCE))
		return -EOPNOTSUPP;
	if (arg->flags & CSREC_QUEUE_F_MAP && !csd->queue_map)
		return -EOPNOTSUPP;
	return 0;
}

/* Rings and vector of a queue that has its number. */
static int csrec_queue_equip(struct csrec_queue *q, const struct csrec_queue_create *arg)
{
	struct csrec_ctx *ctx = q->ctx;
	struct csrec_dev *csd = ctx->csd;
	unsigned int vector = 0;
	int ret;

	/* vector 0 serves the admin queue, and the others only if it is the only one */
	if (csd->nr_vectors > 1)
		vector = 1 + (q->qid - 1) % (csd->nr_vectors - 1);
	q->vector = &csd->vectors[vector];
	if (!(arg->flags & CSREC_QUEUE_F_MAP))
		return csrec_ring_alloc(csd, &q->ring, q->qid, arg->entries);

	ret = csrec_ring_alloc_umem(ctx, &q->ring, q->qid, arg->entries);
	if (ret)
		return ret;
	ret = csrec_umem_add(ctx, q->ring.umem);
	if (ret)
		csrec_ring_free(csd, &q->ring);
	return ret;
}

static void csrec_queue_offsets(const struct csrec_queue *q, struct csrec_queue_create *arg)
{
	const struct csrec_umem *um = q->ring.umem;

	arg->ring_offset = um ? um->ring_map.pgoff << PAGE_SHIFT : 0;
	arg->ring_len = um ? csrec_map_len(arg->entries, PAGE_SIZE) : 0;
	arg->cq_off = um ? csrec_map_cq_off(arg->entries, PAGE_SIZE) : 0;
	arg->ctl_off = um ? csrec_map_ctl_off(arg->entries, PAGE_SIZE) : 0;
	arg->db_offset = um ? um->db_map.pgoff << PAGE_SHIFT : 0;
	arg->db_len = um ? PAGE_SIZE : 0;
}

int csrec_ioc_queue_create(struct csrec_ctx *ctx, void *argp)
{
	struct csrec_queue_create *arg = argp;
	struct csrec_dev *csd = ctx->csd;
	struct csrec_queue *q;
	int ret;

	ret = csrec_queue_check(csd, arg);
	if (ret)
		return ret;

	q = kzalloc_obj(*q, GFP_KERNEL_ACCOUNT);
	if (!q)
		return -ENOMEM;
	kref_init(&q->ref);
	q->ctx = ctx;
	q->noirq = arg->flags & CSREC_QUEUE_F_NOIRQ;
	q->irq_count = arg->irq_count;
	q->irq_cycles = arg->irq_cycles;
	INIT_LIST_HEAD(&q->node);
	mutex_init(&q->submit_lock);
	spin_lock_init(&q->lock);

	ret = csrec_enter(ctx);
	if (ret)
		goto err_free;
	ret = csrec_owner_charge(ctx->owner, CSREC_QUOTA_QUEUES, 1);
	if (ret)
		goto err_exit;
	mutex_lock(&csd->queue_lock);
	for (q->qid = 1; q->qid <= csd->nr_ioq && csd->queues[q->qid]; q->qid++)
		;
	if (q->qid > csd->nr_ioq) {
		ret = -ENOSPC;
		goto err_unlock;
	}
	ret = csrec_queue_equip(q, arg);
	if (ret)
		goto err_unlock;
	q->closing = true;
	csrec_queue_link(csd, q);
	ret = csrec_queue_create_hw(csd, q);
	/* without an answer it may exist: left to csrec_queues_teardown() */
	if (ret > 0)
		csrec_queue_unlink(csd, q);
	if (!ret) {
		arg->queue_id = q->qid;
		csrec_queue_offsets(q, arg);
		WRITE_ONCE(q->closing, false);
		/* nothing else tells that there are commands on it */
		if (q->ring.umem)
			schedule_delayed_work(&csd->watchdog, CSREC_LOOK_INTERVAL);
	}
	mutex_unlock(&csd->queue_lock);
	csrec_exit(ctx);
	return ret > 0 ? -EIO : ret;

err_unlock:
	mutex_unlock(&csd->queue_lock);
	csrec_owner_uncharge(ctx->owner, CSREC_QUOTA_QUEUES, 1);
err_exit:
	csrec_exit(ctx);
err_free:
	kfree(q);
	return ret;
}

static int csrec_queue_reset(struct csrec_dev *csd, struct csrec_queue *q)
{
	int ret;

	lockdep_assert_held(&csd->queue_lock);
	/* no submitter is at work, and none will be before it is over */
	mutex_lock(&q->submit_lock);
	ret = csrec_queue_delete_hw(csd, q);
	if (ret)
		goto out;
	spin_lock_irq(&q->lock);
	csrec_ring_rewind(&q->ring);
	q->told = false;
	q->looks = 0;
	WRITE_ONCE(q->resets, q->resets + 1);
	spin_unlock_irq(&q->lock);
	/* with nothing outstanding nobody looks there, but for its process, if it maps it */
	csrec_ring_clear(&q->ring);
	ret = csrec_queue_create_hw(csd, q);
	WRITE_ONCE(q->failed, ret > 0);
	if (ret > 0)
		ret = -EIO;
out:
	mutex_unlock(&q->submit_lock);
	wake_up_all(&q->ctx->waitq);
	return ret;
}

/* Does something to a queue that is there, which nobody else does meanwhile. */
static int csrec_queue_do(struct csrec_ctx *ctx, u32 id,
			  int (*fn)(struct csrec_dev *csd, struct csrec_queue *q))
{
	struct csrec_dev *csd = ctx->csd;
	struct csrec_queue *q;
	int ret;

	ret = csrec_enter(ctx);
	if (ret)
		return ret;
	ret = -ENOENT;
	q = csrec_queue_get(ctx, id);
	if (q) {
		mutex_lock(&csd->queue_lock);
		/* somebody else may have destroyed it first */
		if (!q->closing)
			ret = fn(csd, q);
		mutex_unlock(&csd->queue_lock);
		csrec_queue_put(q);
	}
	csrec_exit(ctx);
	return ret;
}

int csrec_ioc_queue_destroy(struct csrec_ctx *ctx, void *argp)
{
	struct csrec_queue_destroy *arg = argp;

	return arg->rsvd ? -EINVAL : csrec_queue_do(ctx, arg->queue_id, csrec_queue_destroy);
}

int csrec_ioc_queue_reset(struct csrec_ctx *ctx, void *argp)
{
	struct csrec_queue_reset *arg = argp;

	return arg->rsvd ? -EINVAL : csrec_queue_do(ctx, arg->queue_id, csrec_queue_reset);
}

int csrec_ioc_queue_eventfd(struct csrec_ctx *ctx, void *argp)
{
	struct csrec_queue_eventfd *arg = argp;
	struct eventfd_ctx *evt = NULL;
	struct csrec_queue *q;
	int ret;

	if (arg->fd != -1) {
		evt = eventfd_ctx_fdget(arg->fd);
		if (IS_ERR(evt))
			return PTR_ERR(evt);
	}
	ret = csrec_enter(ctx);
	if (ret)
		goto out;
	q = csrec_queue_get(ctx, arg->queue_id);
	if (!q) {
		ret = -ENOENT;
		goto out_exit;
	}
	spin_lock_irq(&q->lock);
	if (evt && q->evt) {
		ret = -EBUSY;
	} else if (!evt && !q->evt) {
		ret = -ENOENT;
	} else {
		swap(evt, q->evt);
		/* what is there already begins now */
		q->told = false;
		csrec_queue_tell(q);
		if (q->evt && READ_ONCE(q->failed))
			eventfd_signal(q->evt);
	}
	spin_unlock_irq(&q->lock);
	csrec_queue_put(q);
out_exit:
	csrec_exit(ctx);
out:
	/* the one that was not taken, or was taken off */
	if (evt)
		eventfd_ctx_put(evt);
	return ret;
}

void csrec_queues_close(struct csrec_ctx *ctx)
{
	struct csrec_dev *csd = ctx->csd;
	unsigned int i;

	mutex_lock(&csd->queue_lock);
	for (i = 1; i <= csd->nr_ioq; i++) {
		struct csrec_queue *q = csd->queues[i];

		if (q && q->ctx == ctx && !q->closing)
			csrec_queue_destroy(csd, q);
	}
	mutex_unlock(&csd->queue_lock);
}

/* The device is stopped, and nobody else uses the context. */
void csrec_queues_teardown(struct csrec_ctx *ctx)
{
	struct csrec_dev *csd = ctx->csd;
	unsigned int i;

	mutex_lock(&csd->queue_lock);
	for (i = 1; i <= csd->nr_ioq; i++) {
		struct csrec_queue *q = csd->queues[i];

		if (q && q->ctx == ctx)
			csrec_queue_unlink(csd, q);
	}
	mutex_unlock(&csd->queue_lock);
}

/* Has any queue of this context a completion, or been reset? */
__poll_t csrec_queues_poll(struct csrec_ctx *ctx)
{
	struct csrec_dev *csd = ctx->csd;
	__poll_t mask = 0;
	unsigned int i;

	spin_lock(&csd->queues_lock);
	for (i = 1; i <= csd->nr_ioq; i++) {
		struct csrec_queue *q = csd->queues[i];

		if (!q || q->ctx != ctx || READ_ONCE(q->closing))
			continue;
		if (csrec_queue_scan(q))
			mask |= EPOLLIN | EPOLLRDNORM;
		if (READ_ONCE(q->failed))
			mask |= EPOLLERR;
	}
	spin_unlock(&csd->queues_lock);
	return mask;
}

static void csrec_queue_trace_submit(const struct csrec_queue *q, const struct csrec_cmd *cmds,
				     u32 n)
{
	u32 i;

	for (i = 0; trace_csrec_submit_enabled() && i < n; i++)
		trace_csrec_submit(q, &cmds[i], q->ring.tail + i);
}

int csrec_ioc_submit(struct csrec_ctx *ctx, void *argp)
{
	struct csrec_submit *arg = argp;
	struct csrec_dev *csd = ctx->csd;
	struct csrec_ring *ring;
	struct csrec_queue *q;
	struct csrec_cmd *cmds;
	unsigned long flags;
	bool mapped = false;
	u32 n, head;
	int ret;

	if (arg->rsvd || !arg->count || arg->count > CSREC_SUBMIT_MAX)
		return -EINVAL;
	n = min(arg->count, csrec_queue_entries(ctx, arg->queue_id, &mapped));
	if (!n)
		return csrec_ctx_dead(ctx) ?: -ENOENT;
	if (mapped)
		return -EOPNOTSUPP;
	cmds = vmemdup_array_user(u64_to_user_ptr(arg->cmds), n, sizeof(*cmds));
	if (IS_ERR(cmds))
		return PTR_ERR(cmds);

	ret = csrec_enter(ctx);
	if (ret)
		goto out_free;
	q = csrec_queue_get(ctx, arg->queue_id);
	if (!q) {
		ret = -ENOENT;
		goto out_exit;
	}
	ring = &q->ring;

	mutex_lock(&q->submit_lock);
	if (q->closing) {
		ret = -ENOENT;
	} else if (ring->umem) {
		/* another one by now */
		ret = -EOPNOTSUPP;
	} else if (READ_ONCE(q->failed)) {
		ret = -EIO;
	} else {
		spin_lock_irqsave(&q->lock, flags);
		head = ring->head;
		spin_unlock_irqrestore(&q->lock, flags);
		n = min(n, csrec_ring_room(ring->entries, ring->tail, head));
		if (!n)
			ret = -EAGAIN;
	}
	if (!ret) {
		csrec_ring_write(ring, cmds, n);
		csrec_queue_trace_submit(q, cmds, n);
		spin_lock_irqsave(&q->lock, flags);
		ring->tail += n;
		spin_unlock_irqrestore(&q->lock, flags);
		csrec_ring_doorbell(csd, ring, ring->tail, head);
		atomic64_add(n, &csd->commands);
		arg->submitted = n;
	}
	mutex_unlock(&q->submit_lock);
	if (!ret)
		schedule_delayed_work(&csd->watchdog, CSREC_LOOK_INTERVAL);
	csrec_queue_put(q);
out_exit:
	csrec_exit(ctx);
out_free:
	kvfree(cmds);
	return ret;
}

/*
 * Takes up to @max completions if at least @min are there; or, if it is for the process to take
 * them, says how many there are.
 */
static u32 csrec_wait_take(struct csrec_queue *q, struct csrec_cqe *cqes, u32 min, u32 max)
{
	struct csrec_ring *ring = &q->ring;
	unsigned long flags;
	u32 n, i;

	if (ring->umem) {
		n = csrec_ring_unread(ring, ring->entries);
		return n < min ? 0 : n;
	}
	spin_lock_irqsave(&q->lock, flags);
	csrec_queue_see(q);
	n = ring->posted - ring->head;
	n = n < min ? 0 : min(n, max);
	for (i = 0; i < n; i++)
		cqes[i] = ring->cq[csrec_ring_slot(ring->entries, ring->head++)];
	if (ring->head == ring->posted)
		q->told = false;
	spin_unlock_irqrestore(&q->lock, flags);
	return n;
}

/* The most that a waiter can ever get. */
static u32 csrec_queue_outstanding(struct csrec_queue *q)
{
	unsigned long flags;
	u32 n;

	if (q->ring.umem)
		return q->ring.entries;
	spin_lock_irqsave(&q->lock, flags);
	n = q->ring.tail - q->ring.head;
	spin_unlock_irqrestore(&q->lock, flags);
	return n;
}

/*
 * True if a waiter need not wait any more: it has got what it wants, in @arg->count; or it
 * will not get that much, as the queue has died or others have taken it.
 */
static bool csrec_wait_over(struct csrec_queue *q, struct csrec_wait *arg,
			    struct csrec_cqe *cqes, u32 max, unsigned int resets)
{
	arg->count = csrec_wait_take(q, cqes, arg->min, max);
	return arg->count || !arg->min || csrec_queue_outstanding(q) < arg->min ||
	       csrec_ctx_dead(q->ctx) || READ_ONCE(q->closing) || READ_ONCE(q->failed) ||
	       READ_ONCE(q->resets) != resets;
}

/* Takes completions into @cqes, @arg->count of them. 0, or why there are none. */
static int csrec_queue_wait(struct csrec_queue *q, struct csrec_wait *arg, struct csrec_cqe *cqes,
			    u32 max)
{
	struct csrec_ctx *ctx = q->ctx;
	bool deadline = arg->flags & CSREC_WAIT_F_DEADLINE;
	ktime_t timeout = arg->timeout_ns < 0 ? KTIME_MAX : ns_to_ktime(arg->timeout_ns);
	unsigned int resets = READ_ONCE(q->resets);
	int ret = 0;

	if (q->noirq && arg->min && arg->timeout_ns)
		return -EINVAL;
	if (arg->min > csrec_queue_outstanding(q) && !READ_ONCE(q->failed))
		return -EINVAL;
	if (deadline && arg->timeout_ns >= 0)
		timeout = max(ktime_sub(timeout, ktime_get()), 0);

	if (!csrec_wait_over(q, arg, cqes, max, resets)) {
		if (!arg->timeout_ns)
			ret = -EAGAIN;
		else
			ret = wait_event_interruptible_hrtimeout(ctx->waitq,
								 csrec_wait_over(q, arg, cqes, max,
										 resets),
								 timeout);
	}
	/* a restarted call would begin a relative timeout anew */
	if (ret == -ERESTARTSYS && !deadline)
		ret = -EINTR;
	if (ret == -ETIME)
		ret = -ETIMEDOUT;

	/* less than wanted is still better than an error */
	if (!arg->count)
		arg->count = csrec_wait_take(q, cqes, 0, max);
	if (arg->count) {
		/* others may have waited for these, and in vain */
		wake_up_all(&ctx->waitq);
		return 0;
	}
	if (!ret)
		ret = csrec_ctx_dead(ctx);
	if (!ret && READ_ONCE(q->closing))
		ret = -ENOENT;
	if (!ret && READ_ONCE(q->resets) != resets)
		ret = -ECANCELED;
	if (!ret && READ_ONCE(q->failed))
		ret = -EIO;
	if (!ret && arg->min)
		ret = -EAGAIN;
	return ret;
}

int csrec_ioc_wait(struct csrec_ctx *ctx, void *argp)
{
	struct csrec_wait *arg = argp;
	void __user *ucqes = u64_to_user_ptr(arg->cqes);
	struct csrec_cqe *cqes = NULL;
	struct csrec_queue *q;
	bool mapped = false;
	u32 entries, max;
	int ret;

	if (arg->max > CSREC_SUBMIT_MAX || arg->timeout_ns < -1)
		return -EINVAL;
	entries = csrec_queue_entries(ctx, arg->queue_id, &mapped);
	if (!entries)
		return csrec_ctx_dead(ctx) ?: -ENOENT;
	if (mapped ? arg->max || arg->cqes : !arg->max || arg->min > arg->max)
		return -EINVAL;
	max = min(arg->max, entries);
	if (!mapped) {
		/* found out before anything is taken */
		if (fault_in_writeable(ucqes, max * sizeof(*cqes)))
			return -EFAULT;
		cqes = kvmalloc_array(max, sizeof(*cqes), GFP_KERNEL_ACCOUNT);
		if (!cqes)
			return -ENOMEM;
	}

	ret = csrec_enter(ctx);
	if (ret)
		goto out_free;
	q = csrec_queue_get(ctx, arg->queue_id);
	if (!q) {
		ret = -ENOENT;
	} else {
		/* not if it is another one by now */
		ret = mapped == !!q->ring.umem ? csrec_queue_wait(q, arg, cqes, max) : -EINVAL;
		csrec_queue_put(q);
	}
	csrec_exit(ctx);

	if (!ret && !mapped && copy_to_user(ucqes, cqes, arg->count * sizeof(*cqes)))
		ret = -EFAULT;
out_free:
	kvfree(cqes);
	return ret;
}

/*
 * May it be that a queue waits for a fence, with @n commands in flight? Later commands wait for a
 * WAIT, so that one which is not over is among the last @n. The process that maps a ring can write
 * there what it likes, to nobody's harm but its own.
 */
static bool csrec_queue_may_wait(struct csrec_queue *q, u32 posted, u32 n)
{
	const struct csrec_ring *ring = &q->ring;
	u32 i;

	n = min(n, ring->entries);
	for (i = 0; i < n; i++) {
		if (READ_ONCE(ring->sq[csrec_ring_slot(ring->entries, posted + i)].opcode) ==
		    CSREC_OP_WAIT)
			return true;
	}
	return false;
}

/*
 * Has it completed nothing for very long? Not known of one that a process maps: it may not have
 * told the device of completions consumed, so that there is no room for more.
 */
static bool csrec_queue_aged(const struct csrec_queue *q)
{
	return !q->ring.umem && q->looks >= CSREC_HUNG_LOOKS &&
	       q->ctx->csd->watch.now - q->since >= CSREC_LOST_CYCLES;
}

/* The device has hung with this one. */
static void csrec_queue_give_up(struct csrec_dev *csd, struct csrec_queue *q)
{
	lockdep_assert_held(&csd->queue_lock);
	dev_err(&csd->pdev->dev, "no progress: queue %u reset\n", q->qid);
	csrec_dump(csd, q, "no progress: queue reset");
	mutex_lock(&q->submit_lock);
	WRITE_ONCE(q->failed, true);
	mutex_unlock(&q->submit_lock);
	atomic64_inc(&csd->queue_resets);
	trace_csrec_reset(csd, q->qid, csrec_queue_delete_hw(csd, q));
	csrec_queue_tell_error(q);
	wake_up_all(&q->ctx->waitq);
}

/*
 * If the device as a whole is @hung, queues with work in flight are given up; those that may be
 * waiting for a fence only if there are no others, as they may be well. If it is not, a queue is
 * that has aged and does not wait. True if there was any.
 */
static bool csrec_queues_give_up(struct csrec_dev *csd, bool hung)
{
	DECLARE_BITMAP(waits, CSREC_MAX_IOQ + 1) = {};
	DECLARE_BITMAP(bad, CSREC_MAX_IOQ + 1) = {};
	struct csrec_queue *q;
	u32 n, posted;
	unsigned int i;

	for (i = 1; i <= csd->nr_ioq; i++) {
		q = csd->queues[i];
		n = q && !q->failed ? csrec_queue_in_flight(q, &posted) : 0;
		if (!n)
			continue;
		if (!q->looks++ || q->seen != posted) {
			q->looks = 1;
			q->seen = posted;
			q->since = csd->watch.now;
		}
		if (csrec_queue_may_wait(q, posted, n))
			__set_bit(i, waits);
		else if (hung || csrec_queue_aged(q))
			__set_bit(i, bad);
	}
	if (hung && bitmap_empty(bad, CSREC_MAX_IOQ + 1))
		bitmap_copy(bad, waits, CSREC_MAX_IOQ + 1);
	for_each_set_bit(i, bad, CSREC_MAX_IOQ + 1)
		csrec_queue_give_up(csd, csd->queues[i]);
	return !bitmap_empty(bad, CSREC_MAX_IOQ + 1);
}

/*
 * Looks, while commands are in flight, whether the device makes progress. Finds
 * completions whose interrupt was lost as well.
 */
void csrec_queue_watchdog(struct work_struct *work)
{
	struct csrec_dev *csd = container_of(to_delayed_work(work), struct csrec_dev, watchdog);
	struct csrec_queue *q;
	bool busy = false;
	unsigned int i;
	u32 posted;
	int hung;

	mutex_lock(&csd->queue_lock);
	for (i = 1; i <= csd->nr_ioq; i++) {
		q = csd->queues[i];
		if (!q || q->failed)
			continue;
		/* in this order: what comes in between is found by the scan */
		if (csrec_queue_in_flight(q, &posted))
			busy = true;
		else
			q->looks = 0;
		csrec_queue_irq(q);
	}
	if (!busy || csrec_dead(csd)) {
		csd->watch.looks = 0;
		goto out;
	}

	hung = csrec_hw_look(csd, &csd->watch, false);
	if (hung < 0)
		goto out;
	if (csrec_queues_give_up(csd, hung))
		csd->watch.looks = 0;
	schedule_delayed_work(&csd->watchdog, CSREC_LOOK_INTERVAL);
out:
	/* nothing but looking tells what is on those that processes map */
	if (csd->nr_mapped && !csrec_dead(csd))
		schedule_delayed_work(&csd->watchdog, CSREC_LOOK_INTERVAL);
	mutex_unlock(&csd->queue_lock);
}
