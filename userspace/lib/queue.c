// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Queues: submission, completion, and running lists of commands to their end. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <sys/ioctl.h>
#include "private.h"

#define DEFAULT_ENTRIES	64

static int fail_queue(const struct csrec_queue *q, int err, const char *what)
{
	switch (err) {
	case EIO:
		return csrec_fail(err, "%s on queue %u of %s: the device made no progress and the queue was reset; reset or destroy it",
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

static int fail_create(const struct csrec_dev *dev, int err, uint32_t entries)
{
	switch (err) {
	case ENOSPC:
		return csrec_fail(err, "QUEUE_CREATE: %s has no queue left", dev->name);
	case EDQUOT:
		return csrec_fail(err, "QUEUE_CREATE: this process has as many queues of %s as it may",
				  dev->name);
	case EOPNOTSUPP:
		return csrec_fail(err, "QUEUE_CREATE: %s cannot map queues, coalesce or leave out interrupts",
				  dev->name);
	}
	return csrec_fail(err, "QUEUE_CREATE with %u entries on %s: %s", entries, dev->name,
			  csrec_errno_text(err));
}

/* What csrec_queue_opts may be, in any version of it. */
static int check_opts(struct csrec_queue_opts *o, const struct csrec_queue_opts *in)
{
	const unsigned char *bytes = (const unsigned char *)in;

	memset(o, 0, sizeof(*o));
	if (!in)
		return 0;
	if (in->size < sizeof(*o))
		return csrec_fail(EINVAL, "csrec_queue_opts: size is %u, must be %zu or more",
				  in->size, sizeof(*o));
	for (uint32_t i = sizeof(*o); i < in->size; i++)
		if (bytes[i])
			return csrec_fail(E2BIG, "csrec_queue_opts: byte %u is of a later version than libcsrec %s",
					  i, csrec_lib_version());
	*o = *in;
	if (o->mode > CSREC_QUEUE_MAPPED || o->irq > CSREC_IRQ_OFF || o->rsvd)
		return csrec_fail(EINVAL, "csrec_queue_opts: mode %u, irq %u, rsvd %u: unknown",
				  o->mode, o->irq, o->rsvd);
	if (o->irq == CSREC_IRQ_OFF && (o->irq_count || o->irq_cycles))
		return csrec_fail(EINVAL, "csrec_queue_opts: irq_count and irq_cycles without interrupts");
	return 0;
}

EXPORT int csrec_queue_create_ext(struct csrec_dev *dev, const struct csrec_queue_opts *opts,
				  struct csrec_queue **queue)
{
	struct csrec_queue_create arg = { .size = sizeof(arg) };
	struct csrec_queue_opts o;
	struct csrec_queue *q;
	uint32_t entries;
	int ret = check_opts(&o, opts);

	if (ret)
		return ret;
	entries = o.entries;
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
	q->irq = o.irq == CSREC_IRQ_ON;
	q->spin = o.spin;

	arg.entries = entries;
	arg.irq_count = o.irq_count;
	arg.irq_cycles = o.irq_cycles;
	if (o.mode == CSREC_QUEUE_MAPPED ||
	    (o.mode == CSREC_QUEUE_AUTO && dev->features & CSREC_FEATURE_QUEUE_MAP))
		arg.flags |= CSREC_QUEUE_F_MAP;
	if (!q->irq)
		arg.flags |= CSREC_QUEUE_F_NOIRQ;
	/* a driver of before 1.1 calls what it does not know bad */
	if (!(dev->features & CSREC_FEATURE_QUEUE_MAP) && arg.flags & CSREC_QUEUE_F_MAP)
		ret = -EOPNOTSUPP;
	else if (!(dev->features & CSREC_FEATURE_COALESCE) &&
		 (arg.flags & CSREC_QUEUE_F_NOIRQ || arg.irq_count || arg.irq_cycles))
		ret = -EOPNOTSUPP;
	else
		ret = csrec_ioctl(dev, CSREC_IOC_QUEUE_CREATE, &arg);
	if (ret) {
		fail_create(dev, -ret, entries);
		queue_free(q);
		return ret;
	}
	q->id = arg.queue_id;
	if (arg.flags & CSREC_QUEUE_F_MAP) {
		ret = csrec_mapped_init(q, &arg);
		if (ret) {
			struct csrec_queue_destroy destroy = {
				.size = sizeof(destroy),
				.queue_id = q->id,
			};

			csrec_ioctl(dev, CSREC_IOC_QUEUE_DESTROY, &destroy);
			queue_free(q);
			return ret;
		}
	}
	*queue = q;
	return 0;
nomem:
	if (q)
		queue_free(q);
	return csrec_fail(ENOMEM, "no memory for a queue handle of %u entries", entries);
}

EXPORT int csrec_queue_create(struct csrec_dev *dev, uint32_t entries, struct csrec_queue **queue)
{
	const struct csrec_queue_opts opts = {
		.size = sizeof(opts),
		.entries = entries,
		.mode = CSREC_QUEUE_IOCTL,
	};

	return csrec_queue_create_ext(dev, &opts, queue);
}

EXPORT int csrec_queue_destroy(struct csrec_queue *q)
{
	struct csrec_queue_destroy arg = { .size = sizeof(arg) };
	int ret;

	if (!q)
		return 0;
	arg.queue_id = q->id;
	ret = csrec_ioctl(q->dev, CSREC_IOC_QUEUE_DESTROY, &arg);
	if (q->mapped)
		csrec_mapped_exit(q);
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

EXPORT enum csrec_queue_mode csrec_queue_mode(const struct csrec_queue *q)
{
	return q->mapped ? CSREC_QUEUE_MAPPED : CSREC_QUEUE_IOCTL;
}

EXPORT int csrec_queue_reset(struct csrec_queue *q)
{
	struct csrec_queue_reset arg = { .size = sizeof(arg), .queue_id = q->id };
	int ret = csrec_ioctl(q->dev, CSREC_IOC_QUEUE_RESET, &arg);

	if (ret)
		return fail_queue(q, -ret, "QUEUE_RESET");
	q->outstanding = 0;
	q->error = 0;
	q->idle = 0;
	if (q->mapped)
		ring_reset(&q->ring);
	return 0;
}

EXPORT int csrec_queue_eventfd(struct csrec_queue *q, int fd)
{
	struct csrec_queue_eventfd arg = { .size = sizeof(arg), .queue_id = q->id, .fd = fd };
	int ret = csrec_ioctl(q->dev, CSREC_IOC_QUEUE_EVENTFD, &arg);

	switch (-ret) {
	case 0:
		return 0;
	case EBUSY:
		return csrec_fail(EBUSY, "QUEUE_EVENTFD: queue %u has an eventfd", q->id);
	case EBADF:
	case EINVAL:
		return csrec_fail(-ret, "QUEUE_EVENTFD: descriptor %d is no eventfd", fd);
	case ENOENT:
		return csrec_fail(ENOENT, "QUEUE_EVENTFD: queue %u has no eventfd to take off", q->id);
	}
	return fail_queue(q, -ret, "QUEUE_EVENTFD");
}

/* 0 or more, or -errno without a message. */
static int submit(struct csrec_queue *q, const struct csrec_cmd *cmds, uint32_t n)
{
	struct csrec_submit arg = {
		.size = sizeof(arg),
		.queue_id = q->id,
		.count = n,
		.cmds = (uintptr_t)cmds,
	};
	int ret;

	if (q->mapped)
		return csrec_mapped_submit(q, cmds, n);
	ret = csrec_ioctl(q->dev, CSREC_IOC_SUBMIT, &arg);
	if (ret)
		return ret;
	q->outstanding += arg.submitted;
	return arg.submitted;
}

EXPORT int csrec_submit(struct csrec_queue *q, const struct csrec_cmd *cmds, uint32_t n)
{
	int ret;

	if (!n)
		return 0;
	ret = submit(q, cmds, n < CSREC_SUBMIT_MAX ? n : CSREC_SUBMIT_MAX);
	if (ret == -EAGAIN)
		return csrec_fail(EAGAIN, "SUBMIT: queue %u is full with %u commands", q->id,
				  q->outstanding);
	return ret < 0 ? fail_queue(q, -ret, "SUBMIT") : ret;
}

int64_t csrec_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

void csrec_nap(uint32_t naps, int64_t end)
{
	int64_t ns = 20000ll << (naps < 6 ? naps : 6);
	struct timespec ts = { 0 };

	if (end > NOW) {
		int64_t left = end - csrec_now();

		ns = left < 0 ? 0 : left < ns ? left : ns;
	}
	ts.tv_nsec = ns;
	nanosleep(&ts, NULL);
}

/* One WAIT until end, resumed after signals. 0 or more, or -errno. */
static int wait_once(struct csrec_queue *q, struct csrec_cqe *cqes, uint32_t min, uint32_t max,
		     int64_t end)
{
	struct csrec_wait arg = {
		.size = sizeof(arg),
		.queue_id = q->id,
		.min = min,
		.max = max,
		.cqes = (uintptr_t)cqes,
	};
	int ret;

	do {
		arg.timeout_ns = end;
		if (end > NOW && q->dev->uapi_minor >= 1) {
			arg.flags = CSREC_WAIT_F_DEADLINE;
		} else if (end > NOW) {
			arg.timeout_ns = end - csrec_now();
			if (arg.timeout_ns < 0)
				arg.timeout_ns = 0;
		}
		ret = ioctl(q->dev->fd, CSREC_IOC_WAIT, &arg) ? -errno : 0;
	} while (ret == -EINTR);
	if (ret == -EAGAIN && end > NOW)
		return -ETIMEDOUT;	/* interrupted at the very end */
	return ret ? ret : (int)arg.count;
}

/* Without interrupts the driver only looks. */
static int wait_polling(struct csrec_queue *q, struct csrec_cqe *cqes, uint32_t min, uint32_t max,
			int64_t end)
{
	uint32_t got = 0, naps = 0;
	int ret;

	for (;;) {
		ret = wait_once(q, cqes + got, min - got, max - got, NOW);
		if (ret > 0)
			got += ret;
		if (got >= min || (ret < 0 && ret != -EAGAIN) || end == NOW)
			break;
		if (end > NOW && csrec_now() >= end) {
			ret = -ETIMEDOUT;
			break;
		}
		csrec_nap(naps++, end);
	}
	return got ? (int)got : ret;
}

static int wait_until(struct csrec_queue *q, struct csrec_cqe *cqes, uint32_t min, uint32_t max,
		      int64_t end)
{
	int ret;

	if (q->mapped) {
		if (!max || max > CSREC_SUBMIT_MAX || min > max ||
		    (min > q->outstanding && !q->error))
			ret = -EINVAL;
		else
			ret = csrec_mapped_wait(q, cqes, min, max, end);
		if (ret >= 0)
			return ret;
	} else {
		ret = q->irq ? wait_once(q, cqes, min, max, end) :
			       wait_polling(q, cqes, min, max, end);
		if (ret >= 0) {
			q->outstanding -= (uint32_t)ret < q->outstanding ? (uint32_t)ret :
									   q->outstanding;
			return ret;
		}
	}

	switch (-ret) {
	case EAGAIN:
		return csrec_fail_fast(EAGAIN, "WAIT: no completion yet");
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

EXPORT int csrec_wait(struct csrec_queue *q, struct csrec_cqe *cqes, uint32_t min, uint32_t max,
		      int64_t timeout_ns)
{
	int64_t end;

	if (timeout_ns == 0)
		end = NOW;
	else if (timeout_ns < 0 || __builtin_add_overflow(csrec_now(), timeout_ns, &end))
		end = NEVER;	/* or past the clock's range */
	return wait_until(q, cqes, min, max, end);
}

EXPORT int csrec_wait_until(struct csrec_queue *q, struct csrec_cqe *cqes, uint32_t min,
			    uint32_t max, int64_t deadline_ns)
{
	/* 0 is a time in the past like any other */
	return wait_until(q, cqes, min, max, deadline_ns < 0 ? NEVER : deadline_ns ? deadline_ns : 1);
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

int csrec_bounce(struct csrec_queue *q)
{
	if (q->bounce)
		return 0;
	return csrec_host_alloc(q->dev, BOUNCE_LEN, CSREC_RIGHT_READ | CSREC_RIGHT_WRITE,
				&q->bounce, &q->bounce_key);
}

/* dir is the right the device needs on the bounce buffer: READ to the device. */
static int copy(struct csrec_queue *q, uint32_t key, uint64_t off, unsigned char *buf, size_t len,
		uint32_t dir)
{
	int ret = csrec_bounce(q);

	if (ret)
		return ret;
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
