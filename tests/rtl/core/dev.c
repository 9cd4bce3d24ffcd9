// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dev.h"

unsigned int tests_run, tests_failed;

bool ok(bool good, const char *fmt, ...)
{
	va_list ap;

	tests_run++;
	tests_failed += !good;
	printf("%sok %u - ", good ? "" : "not ", tests_run);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
	return good;
}

int finish(void)
{
	printf("1..%u\n", tests_run);
	return tests_failed != 0;
}

static void die(const char *what)
{
	printf("Bail out! %s\n", what);
	exit(1);
}

uint64_t rnd(struct dev *d)
{
	d->rng ^= d->rng >> 12;
	d->rng ^= d->rng << 25;
	d->rng ^= d->rng >> 27;
	return (d->rng * 0x2545f4914f6cdd1dull) >> 20;
}

uint8_t *host_ptr(struct dev *d, uint64_t addr)
{
	if (addr < HOST_BASE || addr >= HOST_BASE + HOST_SIZE)
		die("test uses host memory that is not there");
	return d->host + (addr - HOST_BASE);
}

/* --- host memory --- */

static int host_access(struct dev *d, bool write, uint32_t tag, uint64_t addr, void *buf,
		       size_t len)
{
	if (!len || (addr & 4095) + len > 4096)
		d->crossed++;
	if (addr < HOST_BASE || addr + len > HOST_BASE + HOST_SIZE ||
	    (addr < d->fail_to && addr + len > d->fail_from))
		return -EPERM;
	if (addr < d->watch_to && addr + len > d->watch_from)
		d->watched++;
	d->host_bytes[write] += len;
	if (d->n_late < MAX_LATE && rnd(d) % 100 < d->late_pct) {
		struct late *l = &d->late[d->n_late++];

		*l = (struct late){ tag, write, addr, buf, len };
		if (write) {
			l->buf = malloc(len);
			memcpy(l->buf, buf, len);
		}
		return -EINPROGRESS;
	}
	if (write)
		memcpy(host_ptr(d, addr), buf, len);
	else
		memcpy(buf, host_ptr(d, addr), len);
	return 0;
}

static int host_read(void *opaque, uint32_t tag, uint64_t addr, void *buf, size_t len)
{
	return host_access(opaque, false, tag, addr, buf, len);
}

static int host_write(void *opaque, uint32_t tag, uint64_t addr, const void *buf, size_t len)
{
	return host_access(opaque, true, tag, addr, (void *)buf, len);
}

static void host_irq(void *opaque, unsigned int vector)
{
	struct dev *d = opaque;

	d->irqs[vector < N_VECTORS ? vector : N_VECTORS]++;
	if (vector < N_QUEUES && d->q[vector].live)
		d->q[vector].told = posted(d, &d->q[vector]);
}

/* Answers one of the late accesses, any. */
static void answer_late(struct dev *d)
{
	unsigned int i = rnd(d) % d->n_late;
	struct late l = d->late[i];

	d->late[i] = d->late[--d->n_late];
	if (l.write) {
		memcpy(host_ptr(d, l.addr), l.buf, l.len);
		free(l.buf);
	} else {
		memcpy(l.buf, host_ptr(d, l.addr), l.len);
	}
	csrec_model_host_done(d->m, l.tag, 0);
}

/* --- the device --- */

void dev_open(struct dev *d, const struct csrec_model_config *cfg)
{
	static const struct csrec_host_ops ops = { host_read, host_write, host_irq };
	struct csrec_model_config c = CSREC_MODEL_CONFIG_DEFAULT;

	memset(d, 0, sizeof(*d));
	if (cfg)
		c = *cfg;
	c.dram_size = DRAM_SIZE;
	d->rng = c.seed * 2 + 1;
	d->host = calloc(1, HOST_SIZE);
	d->dram = calloc(1, DRAM_SIZE);
	if (!d->host || !d->dram || csrec_model_create(&d->m, &c, d->dram, &ops, d))
		die("cannot make the model");
}

void dev_close(struct dev *d)
{
	csrec_model_destroy(d->m);
	while (d->n_late--)
		if (d->late[d->n_late].write)
			free(d->late[d->n_late].buf);
	free(d->host);
	free(d->dram);
}

uint64_t reg(struct dev *d, uint32_t off)
{
	return csrec_model_read(d->m, off, 8);
}

void set(struct dev *d, uint32_t off, uint64_t val)
{
	csrec_model_write(d->m, off, 8, val);
}

bool run(struct dev *d)
{
	unsigned int i;

	for (i = 0; i < 20000; i++) {
		csrec_model_step(d->m, 1000);
		if (d->n_late && !d->hold) {
			if (!csrec_model_busy(d->m) || rnd(d) % 4 == 0)
				answer_late(d);
		} else if (!csrec_model_busy(d->m)) {
			return true;
		}
	}
	return false;
}

bool run_posted(struct dev *d, const struct queue *q, unsigned int n)
{
	unsigned int i, rest = 40;

	for (i = 0; i < 2000000 && rest; i++) {
		csrec_model_step(d->m, 10);
		if (posted(d, q) - q->head >= n)
			rest--;
		if (d->n_late && !d->hold && rnd(d) % 8 == 0)
			answer_late(d);
	}
	return !rest;
}

static void init_queue(struct dev *d, unsigned int qid, unsigned int log2)
{
	struct queue *q = &d->q[qid];

	*q = (struct queue){
		.live = true,
		.id = qid,
		.log2 = log2,
		.sq = RING_BASE + qid * RING_STRIDE,
		.cq = RING_BASE + qid * RING_STRIDE + RING_STRIDE / 2,
	};
	memset(host_ptr(d, q->sq), 0, 64u << log2);
	memset(host_ptr(d, q->cq), 0, 16u << log2);
}

void enable(struct dev *d, unsigned int log2)
{
	init_queue(d, 0, log2);
	set(d, CSREC_REG_ASQ_BASE, d->q[0].sq);
	set(d, CSREC_REG_ACQ_BASE, d->q[0].cq);
	set(d, CSREC_REG_AQ_SIZE, log2);
	set(d, CSREC_REG_CTRL, CSREC_CTRL_ENABLE);
	run(d);
	if (reg(d, CSREC_REG_STATUS) != CSREC_STATUS_READY)
		die("device does not get ready");
}

void disable(struct dev *d)
{
	unsigned int i;

	set(d, CSREC_REG_CTRL, 0);
	run(d);
	for (i = 0; i < N_QUEUES; i++)
		d->q[i].live = false;
}

void ring_doorbell(struct dev *d, struct queue *q)
{
	uint64_t cap = reg(d, CSREC_REG_CAP_QUEUE);

	set(d, (uint32_t)(cap >> CSREC_CAPQ_DB_SHIFT) +
	       (q->id << (cap >> CSREC_CAPQ_STRIDE_SHIFT & 0xff)),
	    (uint64_t)q->head << CSREC_DB_CQ_HEAD_SHIFT | q->tail);
}

void put(struct dev *d, struct queue *q, const struct csrec_cmd *cmd)
{
	uint32_t slot = q->tail++ & ((1u << q->log2) - 1);

	memcpy(host_ptr(d, q->sq + 64 * slot), cmd, sizeof(*cmd));
}

bool take(struct dev *d, struct queue *q, struct csrec_cqe *cqe)
{
	uint32_t slot = q->head & ((1u << q->log2) - 1);
	unsigned int phase = ~(q->head >> q->log2) & 1;

	memcpy(cqe, host_ptr(d, q->cq + 16 * slot), sizeof(*cqe));
	if ((cqe->status & CSREC_CQE_PHASE) != phase)
		return false;
	q->head++;
	return true;
}

uint32_t posted(struct dev *d, const struct queue *q)
{
	struct queue ahead = *q;
	struct csrec_cqe e;

	while (ahead.head - q->head < 1u << q->log2 && take(d, &ahead, &e))
		;
	return ahead.head;
}

bool exec(struct dev *d, struct queue *q, const struct csrec_cmd *cmd, struct csrec_cqe *cqe)
{
	put(d, q, cmd);
	ring_doorbell(d, q);
	run(d);
	memset(cqe, 0xee, sizeof(*cqe));
	if (!take(d, q, cqe))
		return false;
	ring_doorbell(d, q);
	return true;
}

unsigned int cqe_status(const struct csrec_cqe *cqe)
{
	return cqe->status >> CSREC_CQE_STATUS_SHIFT;
}

/* --- commands --- */

struct csrec_cmd cmd_plain(uint8_t opcode, uint16_t cid)
{
	return (struct csrec_cmd){ .opcode = opcode, .cid = cid };
}

struct csrec_cmd cmd_copy(uint16_t cid, uint32_t src, uint64_t src_off, uint32_t dst,
			  uint64_t dst_off, uint64_t len)
{
	struct csrec_cmd c = cmd_plain(CSREC_OP_COPY, cid);

	*AS(&c, copy) = (struct csrec_body_copy){
		.src_key = src, .src_off = src_off, .dst_key = dst, .dst_off = dst_off, .len = len,
	};
	return c;
}

struct csrec_cmd cmd_fill(uint16_t cid, uint32_t dst, uint64_t dst_off, uint64_t len,
			  uint32_t pattern)
{
	struct csrec_cmd c = cmd_copy(cid, 0, 0, dst, dst_off, len);

	c.opcode = CSREC_OP_FILL;
	AS(&c, copy)->pattern = pattern;
	return c;
}

struct csrec_cmd cmd_fence(uint8_t opcode, uint16_t cid, uint32_t key, uint64_t value)
{
	struct csrec_cmd c = cmd_plain(opcode, cid);

	*AS(&c, fence) = (struct csrec_body_fence){ .fence_key = key, .value = value };
	return c;
}

struct csrec_cmd cmd_fence_set(uint16_t cid, uint32_t key, uint16_t domain, uint64_t value)
{
	struct csrec_cmd c = cmd_plain(CSREC_OP_FENCE_SET, cid);

	*AS(&c, fence_set) = (struct csrec_body_fence_set){
		.fence_key = key, .domain = domain, .value = value,
	};
	return c;
}

struct csrec_cmd cmd_queue(uint16_t cid, unsigned int qid, unsigned int log2, uint16_t vector,
			   uint16_t domain)
{
	struct csrec_cmd c = cmd_plain(CSREC_OP_QUEUE_CREATE, cid);

	*AS(&c, queue) = (struct csrec_body_queue){
		.qid = qid, .log2_entries = log2, .vector = vector, .domain = domain,
		.sq_base = RING_BASE + qid * RING_STRIDE,
		.cq_base = RING_BASE + qid * RING_STRIDE + RING_STRIDE / 2,
	};
	return c;
}

struct csrec_cmd cmd_coalesce(uint16_t cid, unsigned int qid, unsigned int log2, uint16_t domain,
			      uint16_t irq_count, uint32_t irq_cycles, uint16_t qflags)
{
	struct csrec_cmd c = cmd_queue(cid, qid, log2, qid % N_VECTORS, domain);

	AS(&c, queue)->irq_count = irq_count;
	AS(&c, queue)->irq_cycles = irq_cycles;
	AS(&c, queue)->qflags = qflags;
	return c;
}

struct csrec_cmd cmd_delete(uint16_t cid, unsigned int qid)
{
	struct csrec_cmd c = cmd_plain(CSREC_OP_QUEUE_DELETE, cid);

	AS(&c, queue)->qid = qid;
	return c;
}

struct csrec_cmd cmd_region(uint16_t cid, uint32_t key, uint8_t kind, uint8_t rights,
			    uint16_t domain, uint64_t base, uint64_t size)
{
	struct csrec_cmd c = cmd_plain(CSREC_OP_REGION_SET, cid);

	*AS(&c, region) = (struct csrec_body_region){
		.region_key = key, .kind = kind, .rights = rights, .domain = domain,
		.base = base, .size = size,
	};
	return c;
}

struct csrec_cmd cmd_inval(uint16_t cid, uint32_t key)
{
	struct csrec_cmd c = cmd_plain(CSREC_OP_REGION_INVAL, cid);

	AS(&c, region)->region_key = key;
	return c;
}

void must(struct dev *d, struct csrec_cmd cmd)
{
	struct csrec_cqe cqe;

	if (exec(d, &d->q[0], &cmd, &cqe) && !cqe_status(&cqe) && cqe.cid == cmd.cid)
		return;
	printf("# opcode 0x%x: status %u field 0x%x detail 0x%llx\n", cmd.opcode,
	       cqe_status(&cqe), cqe.field, (unsigned long long)cqe.detail);
	die("set-up command failed");
}

void make_queue(struct dev *d, unsigned int qid, unsigned int log2, uint16_t domain)
{
	must(d, cmd_queue(0, qid, log2, qid % N_VECTORS, domain));
	init_queue(d, qid, log2);
}

void make_coalescing(struct dev *d, unsigned int qid, unsigned int log2, uint16_t domain,
		     uint16_t irq_count, uint32_t irq_cycles, uint16_t qflags)
{
	must(d, cmd_coalesce(0, qid, log2, domain, irq_count, irq_cycles, qflags));
	init_queue(d, qid, log2);
}
