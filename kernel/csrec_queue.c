// SPDX-License-Identifier: GPL-2.0-only
/*
 * I/O queues: create, destroy, submit, wait, and the watchdog over them.
 */
#include <linux/dma-mapping.h>
#include <linux/hrtimer.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/pagemap.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "csrec_trace.h"

static void csrec_queue_free(struct kref *ref)
{
	struct csrec_queue *q = container_of(ref, struct csrec_queue, ref);

	csrec_ring_free(q->ctx->csd, &q->ring);
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

/* How many entries its rings have; or 0: there is no such queue. */
static u32 csrec_queue_entries(struct csrec_ctx *ctx, u32 id)
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
	spin_unlock(&csd->queues_lock);
	return entries;
}

static void csrec_queue_link(struct csrec_dev *csd, struct csrec_queue *q)
{
	lockdep_assert_held(&csd->queue_lock);
	spin_lock(&csd->queues_lock);
	csd->queues[q->qid] = q;
	spin_unlock(&csd->queues_lock);
	spin_lock_irq(&q->vector->lock);
	list_add_tail(&q->node, &q->vector->queues);
	spin_unlock_irq(&q->vector->lock);
	q->ctx->nr_queues++;
}

/* Off the books; the rings stay until the last waiter has left. */
static void csrec_queue_unlink(struct csrec_dev *csd, struct csrec_queue *q)
{
	lockdep_assert_held(&csd->queue_lock);
	spin_lock_irq(&q->vector->lock);
	list_del(&q->node);
	spin_unlock_irq(&q->vector->lock);
	spin_lock(&csd->queues_lock);
	csd->queues[q->qid] = NULL;
	spin_unlock(&csd->queues_lock);
	q->ctx->nr_queues--;
	csrec_queue_put(q);
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
 * Looks for new completions. True if there are any that nobody has taken: whoever calls this
 * to wake others must not mind who saw them first. Called by the interrupt handler too.
 */
bool csrec_queue_scan(struct csrec_queue *q)
{
	unsigned long flags;
	bool any;

	spin_lock_irqsave(&q->lock, flags);
	csrec_queue_see(q);
	any = q->ring.posted != q->ring.head;
	spin_unlock_irqrestore(&q->lock, flags);
	return any;
}

/* Commands whose completion has not been posted. */
static u32 csrec_queue_in_flight(struct csrec_queue *q)
{
	unsigned long flags;
	u32 n;

	spin_lock_irqsave(&q->lock, flags);
	csrec_queue_see(q);
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

	ret = csrec_queue_delete_hw(csd, q);
	wake_up_all(&q->ctx->waitq);
	if (!ret)
		csrec_queue_unlink(csd, q);
	return ret;
}

int csrec_ioc_queue_create(struct csrec_ctx *ctx, void *argp)
{
	struct csrec_queue_create *arg = argp;
	struct csrec_dev *csd = ctx->csd;
	struct csrec_body_queue body = {};
	unsigned int vector = 0;
	struct csrec_queue *q;
	struct csrec_cmd cmd;
	int ret;

	if (arg->entries < 2 || arg->entries > csd->max_entries || !is_power_of_2(arg->entries))
		return -EINVAL;

	q = kzalloc_obj(*q, GFP_KERNEL_ACCOUNT);
	if (!q)
		return -ENOMEM;
	kref_init(&q->ref);
	q->ctx = ctx;
	mutex_init(&q->submit_lock);
	spin_lock_init(&q->lock);

	ret = csrec_enter(ctx);
	if (ret) {
		kfree(q);
		return ret;
	}
	mutex_lock(&csd->queue_lock);
	for (q->qid = 1; q->qid <= csd->nr_ioq && csd->queues[q->qid]; q->qid++)
		;
	if (q->qid > csd->nr_ioq) {
		ret = -ENOSPC;
		goto err_free;
	}
	ret = csrec_ring_alloc(csd, &q->ring, q->qid, arg->entries);
	if (ret)
		goto err_free;

	/* vector 0 serves the admin queue, and the others only if it is the only one */
	if (csd->nr_vectors > 1)
		vector = 1 + (q->qid - 1) % (csd->nr_vectors - 1);
	q->vector = &csd->vectors[vector];
	q->closing = true;
	csrec_queue_link(csd, q);

	body.qid = cpu_to_le16(q->qid);
	body.log2_entries = ilog2(arg->entries);
	body.vector = cpu_to_le16(vector);
	body.domain = cpu_to_le16(ctx->domain);
	body.sq_base = cpu_to_le64(q->ring.sq_dma);
	body.cq_base = cpu_to_le64(q->ring.cq_dma);
	csrec_queue_cmd(&cmd, CSREC_OP_QUEUE_CREATE, &body);
	ret = csrec_admin_exec(csd, &cmd, 1);
	/* without an answer it may exist: left to csrec_queues_teardown() */
	if (ret > 0)
		csrec_queue_unlink(csd, q);
	if (!ret) {
		arg->queue_id = q->qid;
		WRITE_ONCE(q->closing, false);
	}
	mutex_unlock(&csd->queue_lock);
	csrec_exit(ctx);
	return ret > 0 ? -EIO : ret;

err_free:
	mutex_unlock(&csd->queue_lock);
	csrec_exit(ctx);
	kfree(q);
	return ret;
}

int csrec_ioc_queue_destroy(struct csrec_ctx *ctx, void *argp)
{
	struct csrec_queue_destroy *arg = argp;
	struct csrec_dev *csd = ctx->csd;
	struct csrec_queue *q;
	int ret;

	if (arg->rsvd)
		return -EINVAL;
	ret = csrec_enter(ctx);
	if (ret)
		return ret;
	ret = -ENOENT;
	q = csrec_queue_get(ctx, arg->queue_id);
	if (q) {
		mutex_lock(&csd->queue_lock);
		/* somebody else may have been first */
		if (!q->closing)
			ret = csrec_queue_destroy(csd, q);
		mutex_unlock(&csd->queue_lock);
		csrec_queue_put(q);
	}
	csrec_exit(ctx);
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
	u32 n, head;
	int ret;

	if (arg->rsvd || !arg->count || arg->count > CSREC_SUBMIT_MAX)
		return -EINVAL;
	n = min(arg->count, csrec_queue_entries(ctx, arg->queue_id));
	if (!n)
		return csrec_ctx_dead(ctx) ?: -ENOENT;
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
	} else if (READ_ONCE(q->failed)) {
		ret = -EIO;
	} else {
		spin_lock_irqsave(&q->lock, flags);
		head = ring->head;
		spin_unlock_irqrestore(&q->lock, flags);
		n = min(n, ring->entries - (ring->tail - head));
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

/* Takes up to @max completions if at least @min are there. */
static u32 csrec_wait_take(struct csrec_queue *q, struct csrec_cqe *cqes, u32 min, u32 max)
{
	struct csrec_ring *ring = &q->ring;
	unsigned long flags;
	u32 n, i;

	spin_lock_irqsave(&q->lock, flags);
	csrec_queue_see(q);
	n = ring->posted - ring->head;
	n = n < min ? 0 : min(n, max);
	for (i = 0; i < n; i++)
		cqes[i] = ring->cq[ring->head++ & (ring->entries - 1)];
	spin_unlock_irqrestore(&q->lock, flags);
	return n;
}

static u32 csrec_queue_outstanding(struct csrec_queue *q)
{
	unsigned long flags;
	u32 n;

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
			    struct csrec_cqe *cqes, u32 max)
{
	arg->count = csrec_wait_take(q, cqes, arg->min, max);
	return arg->count || !arg->min || csrec_queue_outstanding(q) < arg->min ||
	       csrec_ctx_dead(q->ctx) || READ_ONCE(q->closing) || READ_ONCE(q->failed);
}

/* Takes completions into @cqes, @arg->count of them. 0, or why there are none. */
static int csrec_queue_wait(struct csrec_queue *q, struct csrec_wait *arg, struct csrec_cqe *cqes,
			    u32 max)
{
	struct csrec_ctx *ctx = q->ctx;
	ktime_t timeout = arg->timeout_ns < 0 ? KTIME_MAX : ns_to_ktime(arg->timeout_ns);
	int ret = 0;

	if (arg->min > csrec_queue_outstanding(q) && !READ_ONCE(q->failed))
		return -EINVAL;

	if (!csrec_wait_over(q, arg, cqes, max)) {
		if (!arg->timeout_ns)
			ret = -EAGAIN;
		else
			ret = wait_event_interruptible_hrtimeout(ctx->waitq,
								 csrec_wait_over(q, arg, cqes, max),
								 timeout);
	}
	/* the timeout is relative: a restarted call would begin it anew */
	if (ret == -ERESTARTSYS)
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
	struct csrec_cqe *cqes;
	struct csrec_queue *q;
	u32 max;
	int ret;

	if (!arg->max || arg->max > CSREC_SUBMIT_MAX || arg->min > arg->max ||
	    arg->timeout_ns < -1)
		return -EINVAL;
	max = min(arg->max, csrec_queue_entries(ctx, arg->queue_id));
	if (!max)
		return csrec_ctx_dead(ctx) ?: -ENOENT;
	/* found out before anything is taken */
	if (fault_in_writeable(ucqes, max * sizeof(*cqes)))
		return -EFAULT;
	cqes = kvmalloc_array(max, sizeof(*cqes), GFP_KERNEL);
	if (!cqes)
		return -ENOMEM;

	ret = csrec_enter(ctx);
	if (ret)
		goto out_free;
	q = csrec_queue_get(ctx, arg->queue_id);
	if (q) {
		ret = csrec_queue_wait(q, arg, cqes, max);
		csrec_queue_put(q);
	} else {
		ret = -ENOENT;
	}
	csrec_exit(ctx);

	if (!ret && copy_to_user(ucqes, cqes, arg->count * sizeof(*cqes)))
		ret = -EFAULT;
out_free:
	kvfree(cqes);
	return ret;
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
	int hung;

	mutex_lock(&csd->queue_lock);
	for (i = 1; i <= csd->nr_ioq; i++) {
		q = csd->queues[i];
		if (!q || q->failed)
			continue;
		/* in this order: what comes in between is found by the scan */
		if (csrec_queue_in_flight(q))
			busy = true;
		if (csrec_queue_scan(q))
			wake_up_all(&q->ctx->waitq);
	}
	if (!busy || csrec_dead(csd)) {
		csd->watch.looks = 0;
		goto out;
	}

	hung = csrec_hw_look(csd, &csd->watch, false);
	if (hung < 0)
		goto out;
	for (i = 1; hung && i <= csd->nr_ioq; i++) {
		q = csd->queues[i];
		if (!q || q->failed || !csrec_queue_in_flight(q))
			continue;
		dev_err(&csd->pdev->dev, "no progress: queue %u reset\n", q->qid);
		csrec_dump(csd, q, "no progress: queue reset");
		mutex_lock(&q->submit_lock);
		WRITE_ONCE(q->failed, true);
		mutex_unlock(&q->submit_lock);
		atomic64_inc(&csd->queue_resets);
		trace_csrec_reset(csd, q->qid, csrec_queue_delete_hw(csd, q));
		wake_up_all(&q->ctx->waitq);
	}
	if (hung)
		csd->watch.looks = 0;
	schedule_delayed_work(&csd->watchdog, CSREC_LOOK_INTERVAL);
out:
	mutex_unlock(&csd->queue_lock);
}
