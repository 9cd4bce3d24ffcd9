// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Queues: submission, completion, and running lists of commands to their end. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <sys/ioctl.h>
#include "private.h"

#define DEFAULT_ENTRIES	64
#define BOUNCE_LEN	(256u << 10)

static int fail_queue(const struct csrec_queue *q, int err, const char *what)
{
	switch (err) {
	case EIO:
		return csrec_fail(err, "%s on queue %u of %s: the device made no progress and the queue was reset; destroy it",
				  what, q->id, q->dev->name);
	case ENODEV:
		return csrec_fail(err, "%s on queue %u: %s is gone or was reset; open it again",
				  what, q->id, q->dev->name);
	}
	return csrec_fail(err, "%s on queue %u of %s: %s", what, q->id, q->dev->name,
			  csrec_errno_text(err));
}

static void queue_free(struct csrec_queue *q)
{
	free(q->owner);
	free(q->free_cid);
	free(q->batch);
	free(q->cqes);
	free(q);
}

EXPORT int csrec_queue_create(struct csrec_dev *dev, uint32_t entries, struct csrec_queue **queue)
{
	struct csrec_queue_create arg = { .size = sizeof(arg) };
	struct csrec_queue *q;
	int ret;

	if (!entries)
		entries = dev->max_entries < DEFAULT_ENTRIES ? dev->max_entries : DEFAULT_ENTRIES;
	if (entries < 2 || entries > dev->max_entries || entries & (entries - 1))
		return csrec_fail(EINVAL, "QUEUE_CREATE: %u entries, must be a power of two from 2 to %u",
				  entries, dev->max_entries);

	q = calloc(1, sizeof(*q));
	if (!q)
		goto nomem;
	q->owner = calloc(entries, sizeof(*q->owner));
	q->free_cid = calloc(entries, sizeof(*q->free_cid));
	q->batch = calloc(entries, sizeof(*q->batch));
	q->cqes = calloc(entries, sizeof(*q->cqes));
	if (!q->owner || !q->free_cid || !q->batch || !q->cqes)
		goto nomem;
	q->dev = dev;
	q->entries = entries;

	arg.entries = entries;
	ret = csrec_ioctl(dev, CSREC_IOC_QUEUE_CREATE, &arg);
	if (ret) {
		if (ret == -ENOSPC)
			csrec_fail(ENOSPC, "QUEUE_CREATE: %s has no queue left", dev->name);
		else
			csrec_fail(-ret, "QUEUE_CREATE with %u entries on %s: %s", entries,
				   dev->name, csrec_errno_text(-ret));
		queue_free(q);
		return ret;
	}
	q->id = arg.queue_id;
	*queue = q;
	return 0;
nomem:
	if (q)
		queue_free(q);
	return csrec_fail(ENOMEM, "no memory for a queue handle of %u entries", entries);
}

EXPORT int csrec_queue_destroy(struct csrec_queue *q)
{
	struct csrec_queue_destroy arg = { .size = sizeof(arg) };
	int ret;

	if (!q)
		return 0;
	arg.queue_id = q->id;
	ret = csrec_ioctl(q->dev, CSREC_IOC_QUEUE_DESTROY, &arg);
	if (q->bounce)
		csrec_host_free(q->dev, q->bounce);
	if (ret)
		fail_queue(q, -ret, "QUEUE_DESTROY");
	queue_free(q);
	return ret;
}

EXPORT uint32_t csrec_queue_entries(const struct csrec_queue *q)
{
	return q->entries;
}

EXPORT int csrec_submit(struct csrec_queue *q, const struct csrec_cmd *cmds, uint32_t n)
{
	struct csrec_submit arg = {
		.size = sizeof(arg),
		.queue_id = q->id,
		.count = n < CSREC_SUBMIT_MAX ? n : CSREC_SUBMIT_MAX,
		.cmds = (uintptr_t)cmds,
	};
	int ret;

	if (!n)
		return 0;
	ret = csrec_ioctl(q->dev, CSREC_IOC_SUBMIT, &arg);
	if (ret == -EAGAIN)
		return csrec_fail(EAGAIN, "SUBMIT: queue %u is full with %u commands", q->id,
				  q->outstanding);
	if (ret)
		return fail_queue(q, -ret, "SUBMIT");
	q->outstanding += arg.submitted;
	return arg.submitted;
}

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

EXPORT int csrec_wait(struct csrec_queue *q, struct csrec_cqe *cqes, uint32_t min, uint32_t max,
		      int64_t timeout_ns)
{
	int64_t end = 0;
	struct csrec_wait arg = {
		.size = sizeof(arg),
		.queue_id = q->id,
		.min = min,
		.max = max,
		.cqes = (uintptr_t)cqes,
	};
	int ret;

	if (timeout_ns < 0 ||
	    (timeout_ns && __builtin_add_overflow(now_ns(), timeout_ns, &end))) {
		timeout_ns = -1;	/* for ever, or past the clock's range */
		end = 0;
	}
	do {
		arg.timeout_ns = timeout_ns;
		ret = ioctl(q->dev->fd, CSREC_IOC_WAIT, &arg) ? -errno : 0;
		if (ret == -EINTR && timeout_ns > 0) {
			timeout_ns = end - now_ns();
			if (timeout_ns < 0)
				timeout_ns = 0;
		}
	} while (ret == -EINTR);

	switch (-ret) {
	case 0:
		q->outstanding -= arg.count < q->outstanding ? arg.count : q->outstanding;
		return arg.count;
	case EAGAIN:
		if (end)	/* interrupted at the very end of a timed wait */
			return csrec_fail(ETIMEDOUT, "WAIT on queue %u: none of %u commands completed in time",
					  q->id, q->outstanding);
		return csrec_fail(EAGAIN, "WAIT on queue %u: no completion yet", q->id);
	case ETIMEDOUT:
		return csrec_fail(ETIMEDOUT, "WAIT on queue %u: none of %u commands completed in time",
				  q->id, q->outstanding);
	case EINVAL:
		return csrec_fail(EINVAL, "WAIT on queue %u for %u to %u completions with %u outstanding",
				  q->id, min, max, q->outstanding);
	case EIO:
	case ENODEV:
		q->outstanding = 0;	/* nothing more will come */
		break;
	}
	return fail_queue(q, -ret, "WAIT");
}

/* Sends as many of cmds[*sent..n) as there are free cids. */
static int run_submit(struct csrec_queue *q, const struct csrec_cmd *cmds, uint32_t n,
		      uint32_t *sent, uint32_t *nfree)
{
	uint32_t count = n - *sent < *nfree ? n - *sent : *nfree;
	int ret;

	for (uint32_t i = 0; i < count; i++) {
		uint16_t cid = q->free_cid[*nfree - 1 - i];

		q->batch[i] = cmds[*sent + i];
		q->batch[i].cid = cid;
		q->owner[cid] = *sent + i;
	}
	ret = csrec_submit(q, q->batch, count);
	if (ret > 0) {
		*sent += ret;
		*nfree -= ret;
	}
	return ret;
}

EXPORT int csrec_run(struct csrec_queue *q, const struct csrec_cmd *cmds, uint32_t n,
		     struct csrec_cqe *cqes)
{
	uint32_t sent = 0, nfree = q->entries, bad = UINT32_MAX;
	struct csrec_cqe bad_cqe = { 0 };
	bool lost = false;		/* a completion without its command */
	int ret = 0;

	if (q->outstanding)
		return csrec_fail(EBUSY, "csrec_run on queue %u: %u commands are outstanding", q->id,
				  q->outstanding);
	for (uint32_t i = 0; i < q->entries; i++)
		q->free_cid[i] = i;
	for (uint32_t i = 0; cqes && i < n; i++)
		cqes[i] = (struct csrec_cqe) {
			.cid = cmds[i].cid,
			.status = CSREC_ST_ABORTED << CSREC_CQE_STATUS_SHIFT,
			.field = CSREC_FIELD_NONE,
		};

	for (;;) {
		bool more = sent < n && bad == UINT32_MAX && !lost && !ret;

		if (more && nfree) {
			int err = run_submit(q, cmds, n, &sent, &nfree);

			if (err < 0 && (err != -EAGAIN || !q->outstanding))
				ret = err;
			more = sent < n && !ret;
		}
		if (!q->outstanding)
			break;

		/* with more to send, refill when half of them are done */
		int got = csrec_wait(q, q->cqes, more ? (q->outstanding + 1) / 2 : q->outstanding,
				     q->entries, -1);
		if (got < 0)
			return got;
		for (int i = 0; i < got; i++) {
			const struct csrec_cqe *cqe = &q->cqes[i];
			uint16_t cid = cqe->cid;

			/* 0xffff: the command was not read */
			if (cid >= q->entries || nfree == q->entries) {
				lost = true;
				bad_cqe = *cqe;
				continue;
			}
			uint32_t idx = q->owner[cid];

			q->free_cid[nfree++] = cid;
			if (cqes) {
				cqes[idx] = *cqe;
				cqes[idx].cid = cmds[idx].cid;
			}
			if (CSREC_CQE_STATUS(cqe) && idx < bad) {
				bad = idx;
				bad_cqe = *cqe;
			}
		}
	}
	if (ret)
		return ret;
	if (bad != UINT32_MAX) {
		char text[200];

		csrec_decode_cqe(&bad_cqe, &cmds[bad], text, sizeof(text));
		return csrec_fail(EPROTO, "command %u of %u: %s", bad, n, text);
	}
	if (lost)
		return csrec_fail(EPROTO, "the device could not read a command: %s",
				  csrec_status_name(CSREC_CQE_STATUS(&bad_cqe)));
	return 0;
}

/* dir is the right the device needs on the bounce buffer: READ to the device. */
static int copy(struct csrec_queue *q, uint32_t key, uint64_t off, unsigned char *buf, size_t len,
		uint32_t dir)
{
	int ret;

	if (!q->bounce) {
		ret = csrec_host_alloc(q->dev, BOUNCE_LEN, CSREC_RIGHT_READ | CSREC_RIGHT_WRITE,
				       &q->bounce, &q->bounce_key);
		if (ret)
			return ret;
	}
	while (len) {
		size_t now = len < BOUNCE_LEN ? len : BOUNCE_LEN;
		struct csrec_cmd cmd;

		if (dir == CSREC_RIGHT_READ) {
			memcpy(q->bounce, buf, now);
			cmd = csrec_cmd_copy(key, off, q->bounce_key, 0, now);
		} else {
			cmd = csrec_cmd_copy(q->bounce_key, 0, key, off, now);
		}
		ret = csrec_run(q, &cmd, 1, NULL);
		if (ret)
			return ret;
		if (dir == CSREC_RIGHT_WRITE)
			memcpy(buf, q->bounce, now);
		buf += now;
		off += now;
		len -= now;
	}
	return 0;
}

EXPORT int csrec_copy_to_device(struct csrec_queue *q, uint32_t key, uint64_t off,
				const void *buf, size_t len)
{
	return copy(q, key, off, (unsigned char *)buf, len, CSREC_RIGHT_READ);
}

EXPORT int csrec_copy_from_device(struct csrec_queue *q, uint32_t key, uint64_t off, void *buf,
				  size_t len)
{
	return copy(q, key, off, buf, len, CSREC_RIGHT_WRITE);
}
