// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A device model against REFERENCE.md, through csrec_model.h only. What is expected is
 * worked out here from that text; operands are small integers, so that float results
 * are exact whatever the order (bit-exactness of real numbers is compute_test.py's).
 *
 * The same source is linked with the golden device and with the Verilated RTL:
 *   make -C tests/golden device_test MODEL_LIBS="..."
 * Every test runs twice: with host memory answering at once, and with answers that
 * come late and out of order.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/csrec_hw.h>
#include "csrec_model.h"

/* --- TAP --- */

static int ntests, nfailed;
static const char *mode_name;

static bool __attribute__((format(printf, 2, 3))) ok(bool cond, const char *fmt, ...)
{
	va_list ap;

	printf("%sok %d - %s: ", cond ? "" : "not ", ++ntests, mode_name);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
	nfailed += !cond;
	return cond;
}

static bool eq(uint64_t got, uint64_t want, const char *name)
{
	if (!ok(got == want, "%s", name)) {
		printf("# got 0x%llx, expected 0x%llx\n", (unsigned long long)got,
		       (unsigned long long)want);
		return false;
	}
	return true;
}

static _Noreturn void bail(const char *why)
{
	printf("Bail out! %s: %s\n", mode_name, why);
	exit(1);
}

/* --- host memory as the device sees it --- */

#define HOST_BASE	0x1200000000ull	/* above 32 bits, so that a cut address shows */
#define HOST_SIZE	(8u << 20)
#define DRAM_SIZE	(16u << 20)

static uint8_t host[HOST_SIZE];
static uint8_t dram[DRAM_SIZE] __attribute__((aligned(4096)));
static struct csrec_model *m;

struct window {
	uint64_t from, to;	/* bus addresses; empty if equal */
};

static struct window broken;	/* accesses fail */
static struct window held;	/* reads and writes are not answered until let go */
static struct window unanswered;	/* writes are done, but not answered until let go */
static struct window spoilt, spoilt2;	/* what is read there is overwritten at once */
static unsigned int spoilt_bytes;	/* and counted */

static bool late;		/* answer host accesses later, in odd order */
static uint32_t rng = 1;

static struct pending {
	uint32_t tag;
	uint64_t addr;
	void *buf;		/* read: the model's; write: our copy */
	size_t len;
	bool write, done;
} pending[256];
static unsigned int npending;

static unsigned int irqs[256];
static unsigned int bad_transfers, early_irqs;

static uint32_t rnd(void)
{
	rng = rng * 1664525 + 1013904223;
	return rng >> 8;
}

static uint8_t *host_at(uint64_t addr)
{
	return host + (addr - HOST_BASE);
}

static bool in_window(const struct window *w, uint64_t addr, size_t len)
{
	return addr < w->to && addr + len > w->from;
}

static int touch(uint64_t addr, size_t len)
{
	if (!len || (addr & 4095) + len > 4096)
		bad_transfers++;
	if (addr < HOST_BASE || addr + len > HOST_BASE + HOST_SIZE ||
	    in_window(&broken, addr, len))
		return -EFAULT;
	return 0;
}

static bool postpone(uint32_t tag, uint64_t addr, void *buf, size_t len, bool write)
{
	if (!late && !in_window(&held, addr, len) && !in_window(&unanswered, addr, len))
		return false;
	if (npending == sizeof(pending) / sizeof(pending[0]))
		bail("more host accesses in flight than the test has room for");
	pending[npending++] = (struct pending){ .tag = tag, .addr = addr, .buf = buf, .len = len,
						.write = write };
	return true;
}

static void read_host(void *buf, uint64_t addr, size_t len)
{
	memcpy(buf, host_at(addr), len);
	if (in_window(&spoilt, addr, len) || in_window(&spoilt2, addr, len)) {
		memset(host_at(addr), 0xff, len);
		spoilt_bytes += len;
	}
}

static int host_read(void *opaque, uint32_t tag, uint64_t addr, void *buf, size_t len)
{
	int err = touch(addr, len);

	(void)opaque;
	if (postpone(tag, addr, buf, len, false))
		return -EINPROGRESS;
	if (!err)
		read_host(buf, addr, len);
	return err;
}

static int host_write(void *opaque, uint32_t tag, uint64_t addr, const void *buf, size_t len)
{
	int err = touch(addr, len);
	void *copy = malloc(len);

	(void)opaque;
	if (!copy)
		bail("out of memory");
	memcpy(copy, buf, len);
	if (postpone(tag, addr, copy, len, true)) {
		if (!err && in_window(&unanswered, addr, len)) {
			memcpy(host_at(addr), copy, len);
			pending[npending - 1].done = true;
		}
		return -EINPROGRESS;
	}
	if (!err)
		memcpy(host_at(addr), copy, len);
	free(copy);
	return err;
}

/* Answers one access that is not held back. */
static bool answer_one(void)
{
	unsigned int i, start = npending ? rnd() % npending : 0;
	struct pending p;
	int err;

	for (i = 0; i < npending; i++) {
		unsigned int at = (start + i) % npending;

		p = pending[at];
		if (in_window(&held, p.addr, p.len) ||
		    (p.done && in_window(&unanswered, p.addr, p.len)))
			continue;
		pending[at] = pending[--npending];
		err = p.addr < HOST_BASE || p.addr + p.len > HOST_BASE + HOST_SIZE ||
		      in_window(&broken, p.addr, p.len) ? -EFAULT : 0;
		if (!err && p.write && !p.done)
			memcpy(host_at(p.addr), p.buf, p.len);
		else if (!err && !p.write)
			read_host(p.buf, p.addr, p.len);
		if (p.write)
			free(p.buf);
		csrec_model_host_done(m, p.tag, err);
		return true;
	}
	return false;
}

static void forget_pending(void)
{
	while (npending)
		if (pending[--npending].write)
			free(pending[npending].buf);
}

/* Lets the device run until it has nothing to do but, maybe, wait for held accesses. */
static void run(void)
{
	unsigned int i;

	for (i = 0; i < 100000; i++) {
		bool any = false;

		csrec_model_step(m, 500);
		while (answer_one())
			any = true;
		if (!any && !csrec_model_busy(m))
			return;
	}
	bail("the device does not come to rest");
}

/* --- queues as a driver keeps them --- */

struct queue {
	unsigned int id, log2, vector;
	uint64_t sq, cq;		/* bus addresses */
	uint32_t tail, head;
	unsigned int irqs_seen;
};

static struct queue admin, ioq, ioq2;
static uint64_t db_base;
static unsigned int db_shift, n_ioq;
static struct { uint64_t commands, errors, doorbells, bad_doorbells, bad_writes, irqs; } tally;

static uint64_t reg(uint32_t off)
{
	return csrec_model_read(m, off, 8);
}

static void set_reg(uint32_t off, uint64_t val)
{
	csrec_model_write(m, off, 8, val);
}

static void raw_doorbell(unsigned int qid, uint32_t tail, uint32_t head)
{
	csrec_model_write(m, db_base + ((uint64_t)qid << db_shift), 8,
			  (uint64_t)head << CSREC_DB_CQ_HEAD_SHIFT | tail);
}

static void ring(struct queue *q)
{
	raw_doorbell(q->id, q->tail, q->head);
	tally.doorbells++;
}

static void put(struct queue *q, const struct csrec_cmd *c)
{
	uint32_t slot = q->tail & ((1u << q->log2) - 1);

	memcpy(host_at(q->sq + slot * sizeof(*c)), c, sizeof(*c));
	q->tail++;
}

static bool posted(const struct queue *q, uint32_t count, struct csrec_cqe *cqe)
{
	memcpy(cqe, host_at(q->cq + (count & ((1u << q->log2) - 1)) * sizeof(*cqe)),
	       sizeof(*cqe));
	return (cqe->status & CSREC_CQE_PHASE) == !(count >> q->log2 & 1);
}

/* Takes the next completion, if there. */
static bool take(struct queue *q, struct csrec_cqe *cqe)
{
	if (!posted(q, q->head, cqe))
		return false;
	q->head++;
	tally.commands++;
	tally.errors += !!(cqe->status >> CSREC_CQE_STATUS_SHIFT);
	return true;
}

/* The completion that an interrupt announces must be in memory already. */
static void host_irq(void *opaque, unsigned int vector)
{
	struct queue *qs[] = { &admin, &ioq, &ioq2 };
	struct csrec_cqe cqe;
	unsigned int i;

	(void)opaque;
	irqs[vector & 255]++;
	tally.irqs++;
	for (i = 0; i < 3; i++) {
		if (qs[i]->vector != vector || !qs[i]->sq)
			continue;
		/* NOIRQ completions only make more of them visible, never fewer */
		if (!posted(qs[i], qs[i]->irqs_seen, &cqe) &&
		    qs[i]->irqs_seen - qs[i]->head < 1u << 31)
			early_irqs++;
		qs[i]->irqs_seen++;
	}
}

static const struct csrec_host_ops ops = {
	.read = host_read, .write = host_write, .irq = host_irq,
};

static struct csrec_cqe do1(struct queue *q, const struct csrec_cmd *c)
{
	struct csrec_cqe cqe;

	put(q, c);
	ring(q);
	run();
	if (!take(q, &cqe))
		bail("a command got no completion");
	return cqe;
}

static bool is(const struct csrec_cqe *cqe, unsigned int cid, unsigned int status,
	       unsigned int field, uint64_t detail)
{
	return cqe->cid == cid && cqe->status >> CSREC_CQE_STATUS_SHIFT == (int)status &&
	       cqe->field == field && cqe->detail == detail;
}

static bool check_cqe(const struct csrec_cqe *cqe, unsigned int cid, unsigned int status,
		      unsigned int field, uint64_t detail, const char *name)
{
	if (ok(is(cqe, cid, status, field, detail), "%s", name))
		return true;
	printf("# got cid 0x%x status %u field 0x%x detail 0x%llx,\n"
	       "# expected cid 0x%x status %u field 0x%x detail 0x%llx\n",
	       cqe->cid, cqe->status >> CSREC_CQE_STATUS_SHIFT, cqe->field,
	       (unsigned long long)cqe->detail, cid, status, field,
	       (unsigned long long)detail);
	return false;
}

static bool expect(struct queue *q, const struct csrec_cmd *c, unsigned int status,
		   unsigned int field, uint64_t detail, const char *name)
{
	struct csrec_cqe cqe = do1(q, c);

	return check_cqe(&cqe, c->cid, status, field, detail, name);
}

static bool expect_ok(struct queue *q, const struct csrec_cmd *c, uint64_t detail,
		      const char *name)
{
	return expect(q, c, CSREC_ST_OK, 0, detail, name);
}

/* --- commands --- */

#define B(c, type)	((struct csrec_body_##type *)(c).body)
#define BF(type, f)	(offsetof(struct csrec_cmd, body) + offsetof(struct csrec_body_##type, f))
#define DF(type, f)	(CSREC_FIELD_DESC | offsetof(struct csrec_##type##_desc, f))
#define KEY(gen, index)	((uint32_t)(gen) << CSREC_KEY_GEN_SHIFT | (index))

static struct csrec_cmd cmd(uint8_t opcode)
{
	static uint16_t cid;
	struct csrec_cmd c = { .opcode = opcode, .cid = ++cid };

	return c;
}

static struct csrec_cmd cmd_copy(uint32_t dk, uint64_t doff, uint32_t sk, uint64_t soff,
				 uint64_t len)
{
	struct csrec_cmd c = cmd(CSREC_OP_COPY);

	B(c, copy)->src_key = sk;
	B(c, copy)->dst_key = dk;
	B(c, copy)->src_off = soff;
	B(c, copy)->dst_off = doff;
	B(c, copy)->len = len;
	return c;
}

static struct csrec_cmd cmd_fill(uint32_t dk, uint64_t doff, uint64_t len, uint32_t pattern)
{
	struct csrec_cmd c = cmd(CSREC_OP_FILL);

	B(c, copy)->dst_key = dk;
	B(c, copy)->dst_off = doff;
	B(c, copy)->len = len;
	B(c, copy)->pattern = pattern;
	return c;
}

static struct csrec_cmd cmd_fence(uint8_t op, uint32_t key, uint64_t value)
{
	struct csrec_cmd c = cmd(op);

	B(c, fence)->fence_key = key;
	B(c, fence)->value = value;
	return c;
}

static struct csrec_cmd cmd_queue_create(const struct queue *q, uint16_t domain)
{
	struct csrec_cmd c = cmd(CSREC_OP_QUEUE_CREATE);

	B(c, queue)->qid = q->id;
	B(c, queue)->log2_entries = q->log2;
	B(c, queue)->vector = q->vector;
	B(c, queue)->domain = domain;
	B(c, queue)->sq_base = q->sq;
	B(c, queue)->cq_base = q->cq;
	return c;
}

static struct csrec_cmd cmd_queue_delete(uint16_t qid)
{
	struct csrec_cmd c = cmd(CSREC_OP_QUEUE_DELETE);

	B(c, queue)->qid = qid;
	return c;
}

static struct csrec_cmd cmd_region(uint32_t key, uint8_t kind, uint8_t rights,
				   uint16_t domain, uint64_t base, uint64_t size)
{
	struct csrec_cmd c = cmd(CSREC_OP_REGION_SET);

	B(c, region)->region_key = key;
	B(c, region)->kind = kind;
	B(c, region)->rights = rights;
	B(c, region)->domain = domain;
	B(c, region)->base = base;
	B(c, region)->size = size;
	return c;
}

static struct csrec_cmd cmd_region_inval(uint32_t key)
{
	struct csrec_cmd c = cmd(CSREC_OP_REGION_INVAL);

	B(c, region)->region_key = key;
	return c;
}

static struct csrec_cmd cmd_fence_set(uint32_t key, uint16_t domain, uint64_t value)
{
	struct csrec_cmd c = cmd(CSREC_OP_FENCE_SET);

	B(c, fence_set)->fence_key = key;
	B(c, fence_set)->domain = domain;
	B(c, fence_set)->value = value;
	return c;
}

/* --- set-up that most tests share --- */

#define DOMAIN		7
#define RW		(CSREC_RIGHT_READ | CSREC_RIGHT_WRITE)

/* Host memory map, offsets from HOST_BASE */
#define H_ASQ		0x0000
#define H_ACQ		0x1000
#define H_SQ		0x2000
#define H_CQ		0x3000
#define H_SQ2		0x4000
#define H_CQ2		0x5000
#define H_LIST		0x10000		/* page lists */
#define H_DATA		0x100000
#define H_DATA_SIZE	0x100000

/* DRAM map */
#define D_DATA		0x100000
#define D_DATA_SIZE	0x100000
#define D_SMALL		0x300000	/* the regions with odd rights */
#define D_SMALL_SIZE	0x10000

#define K_HOST		KEY(1, 0)
#define K_DRAM		KEY(2, 1)
#define K_CHIP		KEY(3, 2)
#define K_RO		KEY(4, 3)
#define K_WO		KEY(5, 4)
#define K_FOREIGN	KEY(6, 5)
#define K_STALE		KEY(7, 1)	/* K_DRAM's slot */
#define K_EMPTY		KEY(1, 200)
#define K_BAD		KEY(1, 0xffff)
#define CHIP_SIZE	0x8000

static const struct window none;

static void ring_memory(struct queue *q, unsigned int id, unsigned int log2, unsigned int vector,
			uint32_t sq, uint32_t cq)
{
	*q = (struct queue){ .id = id, .log2 = log2, .vector = vector,
			     .sq = HOST_BASE + sq, .cq = HOST_BASE + cq };
	memset(host + sq, 0, sizeof(struct csrec_cmd) << log2);
	memset(host + cq, 0, sizeof(struct csrec_cqe) << log2);
}

static void enable(void)
{
	ring_memory(&admin, 0, 4, 0, H_ASQ, H_ACQ);
	set_reg(CSREC_REG_ASQ_BASE, admin.sq);
	set_reg(CSREC_REG_ACQ_BASE, admin.cq);
	set_reg(CSREC_REG_AQ_SIZE, admin.log2);
	set_reg(CSREC_REG_CTRL, CSREC_CTRL_ENABLE);
	run();
}

static void make(const struct csrec_cmd *c)
{
	struct csrec_cqe cqe = do1(&admin, c);

	if (!is(&cqe, c->cid, CSREC_ST_OK, 0, 0)) {
		printf("# opcode 0x%x: status %u field 0x%x\n", c->opcode,
		       cqe.status >> CSREC_CQE_STATUS_SHIFT, cqe.field);
		bail("set-up command refused");
	}
}

static void make_queue(struct queue *q, uint16_t domain)
{
	struct csrec_cmd c = cmd_queue_create(q, domain);

	make(&c);
}

static void make_region(uint32_t key, uint8_t kind, uint8_t rights, uint16_t domain,
			uint64_t base, uint64_t size)
{
	struct csrec_cmd c = cmd_region(key, kind, rights, domain, base, size);

	make(&c);
}

static void fresh(void)
{
	broken = held = unanswered = spoilt = spoilt2 = none;
	forget_pending();
	csrec_model_reset(m);
	memset(&tally, 0, sizeof(tally));
	memset(irqs, 0, sizeof(irqs));
	ioq = ioq2 = (struct queue){ 0 };
	enable();
}

/* An enabled device with two queues and the regions above. */
static void ready(void)
{
	fresh();
	ring_memory(&ioq, 1, 3, 1, H_SQ, H_CQ);
	make_queue(&ioq, DOMAIN);
	ring_memory(&ioq2, 2, 3, 2, H_SQ2, H_CQ2);
	make_queue(&ioq2, DOMAIN);
	make_region(K_HOST, CSREC_REGION_HOST, RW, DOMAIN, HOST_BASE + H_DATA, H_DATA_SIZE);
	make_region(K_DRAM, CSREC_REGION_DRAM, RW, DOMAIN, D_DATA, D_DATA_SIZE);
	make_region(K_CHIP, CSREC_REGION_ONCHIP, RW, DOMAIN, 0x1000, CHIP_SIZE);
	make_region(K_RO, CSREC_REGION_DRAM, CSREC_RIGHT_READ, DOMAIN, D_SMALL, D_SMALL_SIZE);
	make_region(K_WO, CSREC_REGION_DRAM, CSREC_RIGHT_WRITE, DOMAIN, D_SMALL, D_SMALL_SIZE);
	make_region(K_FOREIGN, CSREC_REGION_DRAM, RW, DOMAIN + 1, D_SMALL, D_SMALL_SIZE);
}

/* --- section 1: registers, enable, disable, reset --- */

static void test_registers(void)
{
	uint64_t v;

	csrec_model_reset(m);
	v = reg(CSREC_REG_ID);
	eq((uint32_t)v, CSREC_ID_MAGIC, "ID: magic");
	eq(v >> CSREC_ID_MAJOR_SHIFT, CSREC_HW_MAJOR, "ID: major version");
	eq(v >> CSREC_ID_MINOR_SHIFT & 0xffff, CSREC_HW_MINOR, "ID: minor version");
	eq(csrec_model_read(m, CSREC_REG_ID + 4, 4), v >> 32, "ID: upper half by a 4-byte read");
	eq(csrec_model_read(m, CSREC_REG_ID, 4), CSREC_ID_MAGIC, "ID: lower half by a 4-byte read");
	eq(reg(CSREC_REG_CAP_DRAM), DRAM_SIZE, "CAP_DRAM is what was configured");
	ok(reg(CSREC_REG_CAP_ONCHIP) >= 0x10000, "CAP_ONCHIP is there");

	v = reg(CSREC_REG_CAP_QUEUE);
	n_ioq = v >> CSREC_CAPQ_IOQ_SHIFT & 0xff;
	db_shift = v >> CSREC_CAPQ_STRIDE_SHIFT & 0xff;
	db_base = v >> CSREC_CAPQ_DB_SHIFT;
	ok(n_ioq >= 3 && n_ioq <= 64, "CAP_QUEUE: 3 to 64 I/O queues");
	ok((v >> CSREC_CAPQ_ENTRIES_SHIFT & 0xff) == 12, "CAP_QUEUE: rings up to 2^12");
	ok(db_shift == 12 && db_base % 4096 == 0 &&
	   db_base + ((n_ioq + 1ull) << db_shift) <= CSREC_BAR_REG_SIZE,
	   "CAP_QUEUE: a 4 KiB doorbell page per queue, inside the BAR");
	ok((v >> CSREC_CAPQ_VECTORS_SHIFT & 0xff) >= 4, "CAP_QUEUE: 4 vectors or more");
	ok((reg(CSREC_REG_CAP_ENGINE) & 0x1f) == 0x1f, "CAP_ENGINE: all five engines");

	eq(reg(CSREC_REG_STATUS), 0, "after reset: not READY, BUSY or FATAL");
	eq(reg(CSREC_REG_CTRL), 0, "after reset: CTRL is 0");
	eq(reg(CSREC_REG_CNT_COMMANDS), 0, "after reset: counters are 0");

	set_reg(CSREC_REG_ASQ_BASE, 0x123456789abcdec0);
	eq(reg(CSREC_REG_ASQ_BASE), 0x123456789abcdec0, "ASQ_BASE reads back");
	v = reg(CSREC_REG_CNT_BAD_WRITE);
	csrec_model_write(m, CSREC_REG_ASQ_BASE, 4, 0);
	csrec_model_write(m, CSREC_REG_ASQ_BASE + 4, 4, 0);
	eq(reg(CSREC_REG_ASQ_BASE), 0x123456789abcdec0, "4-byte writes are dropped");
	eq(reg(CSREC_REG_CNT_BAD_WRITE), v + 2, "4-byte writes are counted");
	set_reg(CSREC_REG_ID, 0);
	eq((uint32_t)reg(CSREC_REG_ID), CSREC_ID_MAGIC, "a write to ID changes nothing");
	raw_doorbell(0, 0, 0);
	raw_doorbell(1, 0, 0);
	eq(reg(CSREC_REG_CNT_BAD_DOORBELL), 2, "doorbells of a disabled device are refused");
}

static void try_config(uint64_t asq, uint64_t acq, uint64_t size, const char *name)
{
	csrec_model_reset(m);
	set_reg(CSREC_REG_ASQ_BASE, asq);
	set_reg(CSREC_REG_ACQ_BASE, acq);
	set_reg(CSREC_REG_AQ_SIZE, size);
	set_reg(CSREC_REG_CTRL, CSREC_CTRL_ENABLE);
	run();
	eq(reg(CSREC_REG_STATUS), CSREC_STATUS_FATAL |
	   CSREC_FATAL_CONFIG << CSREC_STATUS_FATAL_SHIFT, name);
}

static void test_enable(void)
{
	struct csrec_cmd c;

	try_config(HOST_BASE + 32, HOST_BASE + H_ACQ, 4, "enable: ASQ not 64-byte aligned");
	try_config(HOST_BASE, HOST_BASE + H_ACQ + 8, 4, "enable: ACQ not 16-byte aligned");
	try_config(HOST_BASE, HOST_BASE + H_ACQ, 0, "enable: size 0");
	try_config(HOST_BASE, HOST_BASE + H_ACQ, 13, "enable: size 13");
	set_reg(CSREC_REG_CTRL, 0);
	run();
	eq(reg(CSREC_REG_STATUS), 0, "disable clears FATAL");

	ready();
	eq(reg(CSREC_REG_STATUS), CSREC_STATUS_READY, "enabled: READY, not BUSY");
	c = cmd(CSREC_OP_NOP);
	expect_ok(&ioq, &c, 0, "NOP");
	set_reg(CSREC_REG_CTRL, 0);
	run();
	eq(reg(CSREC_REG_STATUS), 0, "disabled: READY is gone");
	ok(reg(CSREC_REG_CNT_COMMANDS) > 0, "disable keeps the counters");
	enable();
	raw_doorbell(1, 1, 0);
	eq(reg(CSREC_REG_CNT_BAD_DOORBELL), 1, "disable forgets queues");
	ring_memory(&ioq, 1, 3, 1, H_SQ, H_CQ);
	make_queue(&ioq, DOMAIN);
	c = cmd_fill(K_DRAM, 0, 64, 1);
	expect(&ioq, &c, CSREC_ST_STALE_KEY, BF(copy, dst_key), K_DRAM, "disable forgets regions");
	c = cmd_region(K_DRAM, CSREC_REGION_DRAM, RW, DOMAIN, D_DATA, D_DATA_SIZE);
	expect_ok(&admin, &c, 0, "a forgotten slot is empty");

	memset(dram, 0x5a, 64);
	csrec_model_reset(m);
	eq(reg(CSREC_REG_STATUS), 0, "reset: READY is gone");
	eq(reg(CSREC_REG_CNT_COMMANDS) | reg(CSREC_REG_CNT_HOST_RD) | reg(CSREC_REG_CNT_BUSY), 0,
	   "reset clears counters");
	eq(reg(CSREC_REG_ASQ_BASE) | reg(CSREC_REG_AQ_SIZE), 0, "reset clears registers");
	eq(dram[0], 0x5a, "reset keeps DRAM");
}

static void test_onchip_stays(void)
{
	struct csrec_cmd c;
	uint32_t v = 0;

	ready();
	c = cmd_fill(K_CHIP, 64, 64, 0xfeedbeef);
	expect_ok(&ioq, &c, 64, "FILL on-chip memory");
	ready();	/* resets */
	c = cmd_copy(K_HOST, 0, K_CHIP, 64, 4);
	expect_ok(&ioq, &c, 4, "COPY out of on-chip memory");
	memcpy(&v, host + H_DATA, 4);
	eq(v, 0xfeedbeef, "reset keeps on-chip memory");
}

/* --- section 2: queues --- */

static void test_doorbells(void)
{
	struct csrec_cmd c = cmd(CSREC_OP_NOP);
	uint64_t bad;
	unsigned int i;

	ready();
	for (i = 0; i < 3; i++)
		expect_ok(&ioq, &c, 0, "NOP before the doorbell checks");
	ring(&ioq);	/* gives the last head */
	bad = reg(CSREC_REG_CNT_BAD_DOORBELL);
	eq(bad, 0, "no doorbell refused so far");
	raw_doorbell(1, 3 + 9, 3);
	eq(reg(CSREC_REG_CNT_BAD_DOORBELL), ++bad, "tail beyond fetched + entries");
	raw_doorbell(1, 2, 3);
	eq(reg(CSREC_REG_CNT_BAD_DOORBELL), ++bad, "tail going back");
	raw_doorbell(1, 3, 4);
	eq(reg(CSREC_REG_CNT_BAD_DOORBELL), ++bad, "head beyond posted");
	raw_doorbell(1, 3, 2);
	eq(reg(CSREC_REG_CNT_BAD_DOORBELL), ++bad, "head going back");
	raw_doorbell(1, 4, 4);
	eq(reg(CSREC_REG_CNT_BAD_DOORBELL), ++bad, "good tail, bad head: nothing is taken");
	raw_doorbell(3, 1, 0);
	eq(reg(CSREC_REG_CNT_BAD_DOORBELL), ++bad, "queue not created");
	raw_doorbell(n_ioq + 1, 1, 0);
	eq(reg(CSREC_REG_CNT_BAD_DOORBELL), ++bad, "queue that cannot be");
	csrec_model_write(m, db_base + (1ull << db_shift), 4, 4);
	eq(reg(CSREC_REG_CNT_BAD_DOORBELL), bad, "a 4-byte doorbell write is no doorbell");
	eq(reg(CSREC_REG_CNT_BAD_WRITE), 1, "... but a dropped write");
	run();
	expect_ok(&ioq, &c, 0, "the queue still works");
	eq(reg(CSREC_REG_CNT_DOORBELLS), tally.doorbells, "valid doorbells are counted");
	raw_doorbell(1, ioq.tail, ioq.head);
	eq(reg(CSREC_REG_CNT_BAD_DOORBELL), bad, "a doorbell that only gives the head is valid");
}

static void test_phase_and_room(void)
{
	struct csrec_cmd c;
	struct csrec_cqe cqe;
	struct queue small;
	unsigned int i, good = 0;

	ready();
	ring_memory(&small, 3, 1, 3, 0x6000, 0x7000);
	make_queue(&small, DOMAIN);
	for (i = 0; i < 13; i++) {
		c = cmd(CSREC_OP_NOP);
		cqe = do1(&small, &c);
		good += is(&cqe, c.cid, CSREC_ST_OK, 0, 0) && cqe.sq_head == small.tail;
	}
	eq(good, 13, "thirteen commands through two slots: phase, cid, sq_head");

	/* two completions that are not taken, two more commands */
	ring(&small);
	for (i = 0; i < 2; i++) {
		c = cmd(CSREC_OP_NOP);
		put(&small, &c);
	}
	ring(&small);
	run();
	for (i = 0; i < 2; i++) {
		c = cmd(CSREC_OP_NOP);
		put(&small, &c);
	}
	ring(&small);
	run();
	ok(posted(&small, small.head, &cqe) && posted(&small, small.head + 1, &cqe),
	   "full CQ: two completions");
	eq(reg(CSREC_REG_STATUS), CSREC_STATUS_READY, "full CQ: not BUSY");
	good = take(&small, &cqe);
	ring(&small);
	run();
	good += take(&small, &cqe);
	good += take(&small, &cqe);
	eq(good, 3, "room given: the third follows");
	ok(!posted(&small, small.head, &cqe), "... and the fourth still waits");
	ring(&small);
	run();
	ok(take(&small, &cqe) && cqe.cid == c.cid, "... until there is room again");
}

static void test_interrupts(void)
{
	struct csrec_cmd c = cmd(CSREC_OP_NOP);
	unsigned int before;

	ready();
	before = irqs[1];
	do1(&ioq, &c);
	eq(irqs[1], before + 1, "a completion requests its queue's vector");
	c.flags = CSREC_CMD_F_NOIRQ;
	do1(&ioq, &c);
	eq(irqs[1], before + 1, "NOIRQ requests none");
	c.opcode = 0x7f;
	do1(&ioq, &c);
	eq(irqs[1], before + 1, "NOIRQ holds for a refused command");
	c.flags = 0;
	do1(&ioq, &c);
	eq(irqs[1], before + 2, "a refused command without it requests one");
	eq(reg(CSREC_REG_CNT_IRQS), tally.irqs, "interrupts are counted");
	eq(reg(CSREC_REG_CNT_COMMANDS), tally.commands, "completions are counted");
	eq(reg(CSREC_REG_CNT_ERRORS), tally.errors, "errors are counted");
}

static void test_fetch_errors(void)
{
	struct csrec_cmd c = cmd(CSREC_OP_NOP);
	struct csrec_cqe cqe;

	ready();
	do1(&ioq, &c);
	broken = (struct window){ ioq.sq + 64, ioq.sq + 128 };
	put(&ioq, &c);
	put(&ioq, &c);
	ring(&ioq);
	run();
	ok(take(&ioq, &cqe), "bus error on fetch: completion");
	check_cqe(&cqe, 0xffff, CSREC_ST_BUS_ERROR, CSREC_FIELD_NONE, 1,
		  "bus error on fetch: cid 0xffff, detail the slot");
	ok(take(&ioq, &cqe) && is(&cqe, c.cid, CSREC_ST_OK, 0, 0),
	   "bus error on fetch: the next command runs");
	broken = none;

	broken = (struct window){ ioq.cq, ioq.cq + 4096 };
	put(&ioq, &c);
	put(&ioq, &c);
	ring(&ioq);
	run();
	broken = none;
	run();
	ok(!take(&ioq, &cqe), "bus error on a completion: the queue has stopped");
	expect_ok(&ioq2, &c, 0, "... others work");
	c = cmd_queue_delete(1);
	expect_ok(&admin, &c, 0, "... and QUEUE_DELETE gets it back");
	ring_memory(&ioq, 1, 3, 1, H_SQ, H_CQ);
	make_queue(&ioq, DOMAIN);
	c = cmd(CSREC_OP_NOP);
	expect_ok(&ioq, &c, 0, "... for a new one");

	broken = (struct window){ admin.sq, admin.sq + 4096 };
	put(&admin, &c);
	ring(&admin);
	run();
	eq(reg(CSREC_REG_STATUS) & ~CSREC_STATUS_READY, CSREC_STATUS_FATAL |
	   CSREC_FATAL_ADMIN_SQ << CSREC_STATUS_FATAL_SHIFT, "bus error on the admin SQ: FATAL");
	broken = none;
	set_reg(CSREC_REG_CTRL, 0);
	run();
	eq(reg(CSREC_REG_STATUS), 0, "... which disable clears");

	ready();
	broken = (struct window){ admin.cq, admin.cq + 4096 };
	put(&admin, &c);
	ring(&admin);
	run();
	eq(reg(CSREC_REG_STATUS) & ~CSREC_STATUS_READY, CSREC_STATUS_FATAL |
	   CSREC_FATAL_ADMIN_CQ << CSREC_STATUS_FATAL_SHIFT, "bus error on the admin CQ: FATAL");
	broken = none;
	set_reg(CSREC_REG_CTRL, 0);
	run();
	eq(reg(CSREC_REG_STATUS), 0, "... which disable clears");
}

/* Position of a cid among the next n completions, n if missing. */
static unsigned int place(struct csrec_cqe *cqes, unsigned int n, uint16_t cid)
{
	unsigned int i;

	for (i = 0; i < n && cqes[i].cid != cid; i++)
		;
	return i;
}

static void test_order(void)
{
	struct csrec_cmd copy, fence, nop, flagged;
	struct csrec_cqe cqe[4];
	unsigned int i, got = 0;

	ready();
	copy = cmd_copy(K_DRAM, 0x80000, K_DRAM, 0, 0x10000);
	fence = cmd(CSREC_OP_FENCE);
	nop = cmd(CSREC_OP_NOP);
	flagged = cmd(CSREC_OP_NOP);
	flagged.flags = CSREC_CMD_F_FENCE;
	put(&ioq, &copy);
	put(&ioq, &fence);
	put(&ioq, &nop);
	put(&ioq, &flagged);
	ring(&ioq);
	run();
	for (i = 0; i < 4; i++)
		got += take(&ioq, &cqe[i]);
	eq(got, 4, "COPY, FENCE, NOP, NOP with F_FENCE: four completions");
	ok(place(cqe, got, copy.cid) < place(cqe, got, fence.cid), "FENCE after what came before");
	ok(place(cqe, got, fence.cid) < place(cqe, got, nop.cid), "later commands wait for FENCE");
	eq(place(cqe, got, flagged.cid), 3, "F_FENCE after what came before");
}

/* --- fences --- */

#define F_A	KEY(1, 0)
#define F_B	KEY(9, 1)
#define F_BAD	KEY(1, 0x7fff)

static void test_fences(void)
{
	struct csrec_cmd c, w;
	struct csrec_cqe cqe;

	ready();
	c = cmd_fence_set(F_A, DOMAIN, 5);
	expect_ok(&admin, &c, 0, "FENCE_SET");
	expect(&admin, &c, CSREC_ST_BAD_VALUE, BF(fence_set, fence_key), F_A,
	       "FENCE_SET: slot taken");
	c = cmd_fence_set(KEY(0, 3), DOMAIN, 0);
	expect(&admin, &c, CSREC_ST_BAD_VALUE, BF(fence_set, fence_key), KEY(0, 3),
	       "FENCE_SET: generation 0");
	c = cmd_fence_set(F_BAD, DOMAIN, 0);
	expect(&admin, &c, CSREC_ST_BAD_KEY, BF(fence_set, fence_key), F_BAD,
	       "FENCE_SET: slot out of range");
	c = cmd_fence_set(F_B, DOMAIN + 1, 0);
	expect_ok(&admin, &c, 0, "FENCE_SET in another domain");

	c = cmd_fence(CSREC_OP_SIGNAL, F_A, 7);
	expect_ok(&ioq, &c, 7, "SIGNAL raises");
	c = cmd_fence(CSREC_OP_SIGNAL, F_A, 6);
	expect_ok(&ioq, &c, 7, "SIGNAL never lowers");
	c = cmd_fence(CSREC_OP_SIGNAL, F_A, 1ull << 63);
	expect_ok(&ioq, &c, 1ull << 63, "SIGNAL compares unsigned");
	c = cmd_fence(CSREC_OP_SIGNAL, F_B, 1);
	expect(&ioq, &c, CSREC_ST_BAD_DOMAIN, BF(fence, fence_key), F_B, "SIGNAL: foreign fence");
	c = cmd_fence(CSREC_OP_SIGNAL, KEY(2, 0), 1);
	expect(&ioq, &c, CSREC_ST_STALE_KEY, BF(fence, fence_key), KEY(2, 0),
	       "SIGNAL: stale fence");
	c = cmd_fence(CSREC_OP_SIGNAL, F_BAD, 1);
	expect(&ioq, &c, CSREC_ST_BAD_KEY, BF(fence, fence_key), F_BAD, "SIGNAL: bad key");
	c = cmd_fence(CSREC_OP_SIGNAL, 0, 1);
	expect(&ioq, &c, CSREC_ST_STALE_KEY, BF(fence, fence_key), 0, "SIGNAL: key 0");
	c = cmd_fence(CSREC_OP_WAIT, F_B, 0);
	expect(&ioq, &c, CSREC_ST_BAD_DOMAIN, BF(fence, fence_key), F_B, "WAIT: foreign fence");
	c = cmd_fence(CSREC_OP_WAIT, KEY(2, 1), 0);
	expect(&ioq, &c, CSREC_ST_STALE_KEY, BF(fence, fence_key), KEY(2, 1), "WAIT: stale fence");
	c = cmd_fence(CSREC_OP_WAIT, F_BAD, 0);
	expect(&ioq, &c, CSREC_ST_BAD_KEY, BF(fence, fence_key), F_BAD, "WAIT: bad key");
	c = cmd_fence(CSREC_OP_WAIT, F_A, 7);
	expect_ok(&ioq, &c, 1ull << 63, "WAIT for a value already passed");
	c = cmd_fence(CSREC_OP_FENCE_SIGNAL, F_B, 3);
	expect_ok(&admin, &c, 3, "FENCE_SIGNAL needs no domain");
	c = cmd_fence(CSREC_OP_FENCE_SIGNAL, KEY(2, 1), 3);
	expect(&admin, &c, CSREC_ST_STALE_KEY, BF(fence, fence_key), KEY(2, 1),
	       "FENCE_SIGNAL: stale fence");
	c = cmd_fence(CSREC_OP_FENCE_SIGNAL, F_BAD, 3);
	expect(&admin, &c, CSREC_ST_BAD_KEY, BF(fence, fence_key), F_BAD, "FENCE_SIGNAL: bad key");

	/* WAIT blocks its queue and no other */
	w = cmd_fence(CSREC_OP_WAIT, F_A, (1ull << 63) + 1);
	put(&ioq, &w);
	c = cmd(CSREC_OP_NOP);
	put(&ioq, &c);
	ring(&ioq);
	run();
	ok(!posted(&ioq, ioq.head, &cqe), "WAIT blocks its queue");
	eq(reg(CSREC_REG_STATUS), CSREC_STATUS_READY, "a queue blocked in WAIT is not BUSY");
	expect_ok(&ioq2, &c, 0, "WAIT blocks no other queue");
	c = cmd_fence(CSREC_OP_SIGNAL, F_A, (1ull << 63) + 5);
	expect_ok(&ioq2, &c, (1ull << 63) + 5, "SIGNAL from another queue");
	ok(take(&ioq, &cqe), "... lets the waiter go");
	check_cqe(&cqe, w.cid, CSREC_ST_OK, 0, (1ull << 63) + 5, "WAIT's detail is the value");
	ok(take(&ioq, &cqe), "... and then what is behind it");

	w = cmd_fence(CSREC_OP_WAIT, F_A, UINT64_MAX);
	put(&ioq, &w);
	ring(&ioq);
	run();
	c = cmd_fence(CSREC_OP_FENCE_INVAL, F_A, 0);
	expect_ok(&admin, &c, 0, "FENCE_INVAL");
	ok(take(&ioq, &cqe), "a deleted fence ends the WAIT");
	check_cqe(&cqe, w.cid, CSREC_ST_STALE_KEY, BF(fence, fence_key), F_A,
		  "... with STALE_KEY");
	expect(&admin, &c, CSREC_ST_STALE_KEY, BF(fence, fence_key), F_A, "FENCE_INVAL: gone");
	c = cmd_fence(CSREC_OP_FENCE_INVAL, F_BAD, 0);
	expect(&admin, &c, CSREC_ST_BAD_KEY, BF(fence, fence_key), F_BAD, "FENCE_INVAL: bad key");

	c = cmd_fence_set(KEY(2, 0), DOMAIN, 0);
	expect_ok(&admin, &c, 0, "FENCE_SET reuses the slot");
	w = cmd_fence(CSREC_OP_WAIT, KEY(2, 0), 1);
	put(&ioq, &w);
	ring(&ioq);
	run();
	c = cmd_queue_delete(1);
	expect_ok(&admin, &c, 0, "QUEUE_DELETE of a queue blocked in WAIT");
	ok(take(&ioq, &cqe), "... completes the WAIT");
	check_cqe(&cqe, w.cid, CSREC_ST_ABORTED, CSREC_FIELD_NONE, 0, "... as ABORTED");
}

/* --- section 4, passes 1 to 3 --- */

static void test_heads(void)
{
	static const uint8_t io_ops[] = {
		CSREC_OP_NOP, CSREC_OP_COPY, CSREC_OP_FILL, CSREC_OP_FENCE, CSREC_OP_SIGNAL,
		CSREC_OP_WAIT, CSREC_OP_EMB, CSREC_OP_TT, CSREC_OP_INTERACT, CSREC_OP_MLP,
	};
	static const uint8_t bad_ops[] = { 0, 0x07, 0x0f, 0x14, 0x7f, 0x87, 0xff };
	/* opcode, field, its size: every reserved field of every body */
	static const struct { uint8_t op; uint16_t off, len; } rsvd[] = {
#define R(op, type, f) { op, BF(type, f), sizeof(((struct csrec_body_##type *)0)->f) }
		{ CSREC_OP_NOP, 8, 56 }, { CSREC_OP_FENCE, 8, 56 },
		R(CSREC_OP_COPY, copy, pattern), R(CSREC_OP_COPY, copy, rsvd44),
		R(CSREC_OP_COPY, copy, rsvd48),
		R(CSREC_OP_FILL, copy, src_key), R(CSREC_OP_FILL, copy, src_off),
		R(CSREC_OP_FILL, copy, rsvd44), R(CSREC_OP_FILL, copy, rsvd48),
		R(CSREC_OP_SIGNAL, fence, rsvd4), R(CSREC_OP_SIGNAL, fence, rsvd16),
		R(CSREC_OP_WAIT, fence, rsvd4), R(CSREC_OP_WAIT, fence, rsvd16),
		R(CSREC_OP_EMB, desc, rsvd16), R(CSREC_OP_TT, desc, rsvd16),
		R(CSREC_OP_INTERACT, desc, rsvd16), R(CSREC_OP_MLP, desc, rsvd16),
		R(CSREC_OP_QUEUE_CREATE, queue, rsvd3), R(CSREC_OP_QUEUE_CREATE, queue, rsvd32),
		R(CSREC_OP_QUEUE_DELETE, queue, log2_entries),
		R(CSREC_OP_QUEUE_DELETE, queue, rsvd3), R(CSREC_OP_QUEUE_DELETE, queue, vector),
		R(CSREC_OP_QUEUE_DELETE, queue, domain), R(CSREC_OP_QUEUE_DELETE, queue, sq_base),
		R(CSREC_OP_QUEUE_DELETE, queue, cq_base),
		R(CSREC_OP_QUEUE_DELETE, queue, irq_count),
		R(CSREC_OP_QUEUE_DELETE, queue, qflags),
		R(CSREC_OP_QUEUE_DELETE, queue, irq_cycles),
		R(CSREC_OP_QUEUE_DELETE, queue, rsvd32),
		R(CSREC_OP_REGION_SET, region, rsvd26), R(CSREC_OP_REGION_SET, region, rsvd32),
		R(CSREC_OP_REGION_INVAL, region, kind), R(CSREC_OP_REGION_INVAL, region, rights),
		R(CSREC_OP_REGION_INVAL, region, domain), R(CSREC_OP_REGION_INVAL, region, base),
		R(CSREC_OP_REGION_INVAL, region, size), R(CSREC_OP_REGION_INVAL, region, levels),
		R(CSREC_OP_REGION_INVAL, region, page_shift),
		R(CSREC_OP_REGION_INVAL, region, rsvd26),
		R(CSREC_OP_REGION_INVAL, region, page_off),
		R(CSREC_OP_REGION_INVAL, region, rsvd32),
		R(CSREC_OP_FENCE_SET, fence_set, rsvd6), R(CSREC_OP_FENCE_SET, fence_set, rsvd16),
		R(CSREC_OP_FENCE_INVAL, fence, rsvd4), R(CSREC_OP_FENCE_INVAL, fence, value),
		R(CSREC_OP_FENCE_INVAL, fence, rsvd16),
		R(CSREC_OP_FENCE_SIGNAL, fence, rsvd4), R(CSREC_OP_FENCE_SIGNAL, fence, rsvd16),
#undef R
	};
	struct csrec_cmd c;
	char name[80];
	unsigned int i;

	ready();
	for (i = 0; i < sizeof(bad_ops); i++) {
		c = cmd(bad_ops[i]);
		snprintf(name, sizeof(name), "opcode 0x%02x is unknown", bad_ops[i]);
		expect(&ioq, &c, CSREC_ST_BAD_OPCODE, 0, bad_ops[i], name);
	}
	for (i = CSREC_OP_QUEUE_CREATE; i <= CSREC_OP_FENCE_SIGNAL; i++) {
		c = cmd(i);
		snprintf(name, sizeof(name), "admin opcode 0x%02x on an I/O queue", i);
		expect(&ioq, &c, CSREC_ST_BAD_OPCODE, 0, i, name);
	}
	for (i = 0; i < sizeof(io_ops); i++) {
		c = cmd(io_ops[i]);
		c.flags = 0x80 | CSREC_CMD_F_FENCE;
		c.rsvd4 = 1;	/* a later pass, must not win */
		snprintf(name, sizeof(name), "opcode 0x%02x: unknown flag", io_ops[i]);
		expect(&ioq, &c, CSREC_ST_BAD_FLAGS, 1, c.flags, name);
		c.flags = 0;
		c.body[55] = 1;
		snprintf(name, sizeof(name), "opcode 0x%02x: reserved head field", io_ops[i]);
		expect(&ioq, &c, CSREC_ST_RESERVED, 4, 0, name);
	}
	for (i = 0; i < sizeof(rsvd) / sizeof(rsvd[0]); i++) {
		c = cmd(rsvd[i].op);
		((uint8_t *)&c)[rsvd[i].off + rsvd[i].len - 1] = 0x80;
		snprintf(name, sizeof(name), "opcode 0x%02x: reserved bytes %u to %u", rsvd[i].op,
			 rsvd[i].off, rsvd[i].off + rsvd[i].len - 1);
		expect(&admin, &c, CSREC_ST_RESERVED, rsvd[i].off, 0, name);
	}
	c = cmd_copy(K_BAD, 0, K_BAD, 0, 0);
	B(c, copy)->rsvd48[0] = 1;
	expect(&ioq, &c, CSREC_ST_RESERVED, BF(copy, rsvd48), 0, "reserved before values");
	c = cmd(CSREC_OP_NOP);
	expect_ok(&admin, &c, 0, "the admin queue takes NOP");
}

/* --- COPY, FILL, regions --- */

static uint32_t region_base(uint32_t key)
{
	return key == K_HOST ? H_DATA : D_DATA;
}

static uint8_t *region_mem(uint32_t key)
{
	return (key == K_HOST ? host : dram) + region_base(key);
}

static void scribble(uint8_t *p, size_t n)
{
	while (n--)
		*p++ = rnd();
}

static void test_copy(void)
{
	static const uint32_t keys[] = { K_HOST, K_DRAM };
	static const unsigned int lens[] = { 1, 3, 63, 64, 65, 4096, 5000, 20000 };
	static uint8_t want[65536];
	struct csrec_cmd c;
	struct csrec_cqe cqe;
	unsigned int i, s, d, n, good = 0;

	ready();
	scribble(region_mem(K_HOST), H_DATA_SIZE);
	scribble(region_mem(K_DRAM), D_DATA_SIZE);
	n = sizeof(lens) / sizeof(lens[0]);
	for (i = 0; i < 4 * n; i++) {
		uint32_t sk = keys[i & 1], dk = keys[i >> 1 & 1], len = lens[i / 4];
		uint32_t soff = rnd() % 8192, doff = 0x40000 + rnd() % 8192;
		uint8_t *dm = region_mem(dk) + 0x40000;

		memcpy(want, dm, sizeof(want));
		memcpy(want + doff - 0x40000, region_mem(sk) + soff, len);
		c = cmd_copy(dk, doff, sk, soff, len);
		cqe = do1(&ioq, &c);
		good += is(&cqe, c.cid, CSREC_ST_OK, 0, len) && !memcmp(want, dm, sizeof(want));
	}
	eq(good, 4 * n, "COPY between host and DRAM, any length and alignment, nothing beyond");

	for (s = 0, good = 0; s < 3; s++) {
		d = rnd() % 64;
		c = cmd_copy(K_CHIP, 1000 + d, K_HOST, s * 777, 3000);
		cqe = do1(&ioq, &c);
		good += is(&cqe, c.cid, CSREC_ST_OK, 0, 3000);
		c = cmd_copy(K_DRAM, 5 * s, K_CHIP, 1000 + d, 3000);
		cqe = do1(&ioq, &c);
		good += is(&cqe, c.cid, CSREC_ST_OK, 0, 3000) &&
			!memcmp(region_mem(K_HOST) + s * 777, region_mem(K_DRAM) + 5 * s, 3000);
	}
	eq(good, 6, "COPY through on-chip memory");

	c = cmd_copy(K_DRAM, 0, K_HOST, 0, 0);
	expect(&ioq, &c, CSREC_ST_BAD_LENGTH, BF(copy, len), 0, "COPY: length 0");
	c = cmd_copy(K_DRAM, 0, K_BAD, 0, 4);
	expect(&ioq, &c, CSREC_ST_BAD_KEY, BF(copy, src_key), K_BAD, "COPY: slot out of range");
	c = cmd_copy(K_DRAM, 0, K_STALE, 0, 4);
	expect(&ioq, &c, CSREC_ST_STALE_KEY, BF(copy, src_key), K_STALE, "COPY: old generation");
	c = cmd_copy(K_DRAM, 0, K_EMPTY, 0, 4);
	expect(&ioq, &c, CSREC_ST_STALE_KEY, BF(copy, src_key), K_EMPTY, "COPY: empty slot");
	c = cmd_copy(K_DRAM, 0, 0, 0, 4);
	expect(&ioq, &c, CSREC_ST_STALE_KEY, BF(copy, src_key), 0, "COPY: key 0");
	c = cmd_copy(K_FOREIGN, 0, K_DRAM, 0, 4);
	expect(&ioq, &c, CSREC_ST_BAD_DOMAIN, BF(copy, dst_key), K_FOREIGN,
	       "COPY: region of another domain");
	c = cmd_copy(K_DRAM, 0, K_WO, 0, 4);
	expect(&ioq, &c, CSREC_ST_BAD_RIGHTS, BF(copy, src_key), K_WO, "COPY: not readable");
	c = cmd_copy(K_RO, 0, K_DRAM, 0, 4);
	expect(&ioq, &c, CSREC_ST_BAD_RIGHTS, BF(copy, dst_key), K_RO, "COPY: not writable");
	c = cmd_copy(K_DRAM, 0, K_HOST, H_DATA_SIZE - 3, 4);
	expect(&ioq, &c, CSREC_ST_OUT_OF_BOUNDS, BF(copy, src_off), H_DATA_SIZE - 3,
	       "COPY: source leaves its region");
	c = cmd_copy(K_DRAM, D_DATA_SIZE, K_HOST, 0, 1);
	expect(&ioq, &c, CSREC_ST_OUT_OF_BOUNDS, BF(copy, dst_off), D_DATA_SIZE,
	       "COPY: destination leaves its region");
	c = cmd_copy(K_DRAM, UINT64_MAX - 1, K_HOST, 0, 4);
	expect(&ioq, &c, CSREC_ST_OUT_OF_BOUNDS, BF(copy, dst_off), UINT64_MAX - 1,
	       "COPY: offset plus length wraps");
	c = cmd_copy(K_DRAM, 1, K_HOST, 0, UINT64_MAX);
	expect(&ioq, &c, CSREC_ST_OUT_OF_BOUNDS, BF(copy, src_off), 0, "COPY: length near 2^64");
	c = cmd_copy(K_BAD, 0, K_WO, 0, 4);
	expect(&ioq, &c, CSREC_ST_BAD_RIGHTS, BF(copy, src_key), K_WO,
	       "COPY: the source is checked first");
	c = cmd_copy(K_DRAM, D_DATA_SIZE - 4, K_HOST, H_DATA_SIZE - 4, 4);
	expect_ok(&ioq, &c, 4, "COPY: the last bytes of both regions");
	c = cmd_copy(K_DRAM, 0, K_HOST, 0, 4);
	expect(&admin, &c, CSREC_ST_BAD_DOMAIN, BF(copy, src_key), K_HOST,
	       "COPY on the admin queue: its domain is 0");

	broken = (struct window){ HOST_BASE + H_DATA + 0x1000, HOST_BASE + H_DATA + 0x2000 };
	c = cmd_copy(K_DRAM, 0, K_HOST, 0x0800, 0x2000);
	expect(&ioq, &c, CSREC_ST_BUS_ERROR, BF(copy, src_key), K_HOST, "COPY: bus error reading");
	c = cmd_copy(K_HOST, 0x0800, K_DRAM, 0, 0x2000);
	expect(&ioq, &c, CSREC_ST_BUS_ERROR, BF(copy, dst_key), K_HOST, "COPY: bus error writing");
	broken = none;
}

static void test_fill(void)
{
	struct csrec_cmd c;
	unsigned int i, good = 0;
	uint32_t *p = (uint32_t *)region_mem(K_DRAM);

	ready();
	memset(p, 0x11, 8192);
	c = cmd_fill(K_DRAM, 4, 5000, 0xa1b2c3d4);
	expect_ok(&ioq, &c, 5000, "FILL");
	for (i = 0; i < 8192 / 4; i++)
		good += p[i] == (i >= 1 && i < 1251 ? 0xa1b2c3d4 : 0x11111111);
	eq(good, 8192 / 4, "FILL writes the pattern and nothing beyond");
	c = cmd_fill(K_HOST, 0, 4, 1);
	expect_ok(&ioq, &c, 4, "FILL of host memory");
	c = cmd_fill(K_DRAM, 2, 0, 1);
	expect(&ioq, &c, CSREC_ST_BAD_ALIGN, BF(copy, dst_off), 2, "FILL: offset before length");
	c = cmd_fill(K_DRAM, 0, 0, 1);
	expect(&ioq, &c, CSREC_ST_BAD_LENGTH, BF(copy, len), 0, "FILL: length 0");
	c = cmd_fill(K_DRAM, 0, 6, 1);
	expect(&ioq, &c, CSREC_ST_BAD_ALIGN, BF(copy, len), 6, "FILL: length not a multiple of 4");
	c = cmd_fill(K_RO, 0, 4, 1);
	expect(&ioq, &c, CSREC_ST_BAD_RIGHTS, BF(copy, dst_key), K_RO, "FILL: not writable");
	c = cmd_fill(K_DRAM, D_DATA_SIZE - 4, 8, 1);
	expect(&ioq, &c, CSREC_ST_OUT_OF_BOUNDS, BF(copy, dst_off), D_DATA_SIZE - 4,
	       "FILL: leaves the region");
}

static void test_region_set(void)
{
	static const struct {
		const char *name;
		uint32_t key;
		uint8_t kind, rights, levels, shift;
		uint32_t page_off;
		uint64_t base, size;
		uint16_t status, field;
		uint64_t detail;
	} t[] = {
#define DR CSREC_REGION_DRAM
#define HO CSREC_REGION_HOST
#define CH CSREC_REGION_ONCHIP
#define K9 KEY(1, 9)
		{ "slot out of range", K_BAD, DR, RW, 0, 0, 0, 0, 64,
		  CSREC_ST_BAD_KEY, BF(region, region_key), K_BAD },
		{ "generation 0", 9, DR, RW, 0, 0, 0, 0, 64,
		  CSREC_ST_BAD_VALUE, BF(region, region_key), 9 },
		{ "slot taken", K_STALE, DR, RW, 0, 0, 0, 0, 64,
		  CSREC_ST_BAD_VALUE, BF(region, region_key), K_STALE },
		{ "kind 0", K9, 0, RW, 0, 0, 0, 0, 64, CSREC_ST_BAD_VALUE, BF(region, kind), 0 },
		{ "kind PEER", K9, CSREC_REGION_PEER, RW, 0, 0, 0, 0, 64,
		  CSREC_ST_BAD_VALUE, BF(region, kind), CSREC_REGION_PEER },
		{ "no rights", K9, DR, 0, 0, 0, 0, 0, 64,
		  CSREC_ST_BAD_VALUE, BF(region, rights), 0 },
		{ "unknown right", K9, DR, 4, 0, 0, 0, 0, 64,
		  CSREC_ST_BAD_VALUE, BF(region, rights), 4 },
		{ "DRAM base not aligned", K9, DR, RW, 0, 0, 0, 32, 64,
		  CSREC_ST_BAD_ALIGN, BF(region, base), 32 },
		{ "on-chip base not aligned", K9, CH, RW, 0, 0, 0, 8, 64,
		  CSREC_ST_BAD_ALIGN, BF(region, base), 8 },
		{ "page list not aligned", K9, HO, RW, 1, 12, 0, HOST_BASE + 4, 64,
		  CSREC_ST_BAD_ALIGN, BF(region, base), HOST_BASE + 4 },
		{ "size 0", K9, DR, RW, 0, 0, 0, 0, 0,
		  CSREC_ST_BAD_LENGTH, BF(region, size), 0 },
		{ "beyond DRAM", K9, DR, RW, 0, 0, 0, DRAM_SIZE - 64, 65,
		  CSREC_ST_OUT_OF_BOUNDS, BF(region, base), DRAM_SIZE - 64 },
		{ "beyond DRAM by wrapping", K9, DR, RW, 0, 0, 0, 64, UINT64_MAX - 63,
		  CSREC_ST_OUT_OF_BOUNDS, BF(region, base), 64 },
		{ "beyond on-chip memory", K9, CH, RW, 0, 0, 0, 1u << 30, 64,
		  CSREC_ST_OUT_OF_BOUNDS, BF(region, base), 1u << 30 },
		{ "levels 3", K9, HO, RW, 3, 12, 0, HOST_BASE, 64,
		  CSREC_ST_BAD_VALUE, BF(region, levels), 3 },
		{ "levels with DRAM", K9, DR, RW, 1, 12, 0, 0, 64,
		  CSREC_ST_BAD_VALUE, BF(region, levels), 1 },
		{ "page shift 11", K9, HO, RW, 1, 11, 0, HOST_BASE, 64,
		  CSREC_ST_BAD_VALUE, BF(region, page_shift), 11 },
		{ "page shift 31", K9, HO, RW, 2, 31, 0, HOST_BASE, 64,
		  CSREC_ST_BAD_VALUE, BF(region, page_shift), 31 },
		{ "page shift with levels 0", K9, HO, RW, 0, 12, 0, HOST_BASE, 64,
		  CSREC_ST_BAD_VALUE, BF(region, page_shift), 12 },
		{ "page offset beyond the page", K9, HO, RW, 1, 12, 4096, HOST_BASE, 64,
		  CSREC_ST_BAD_VALUE, BF(region, page_off), 4096 },
		{ "page offset with levels 0", K9, HO, RW, 0, 0, 1, HOST_BASE, 64,
		  CSREC_ST_BAD_VALUE, BF(region, page_off), 1 },
		{ "kind before rights", K9, 0, 0, 0, 0, 0, 1, 0,
		  CSREC_ST_BAD_VALUE, BF(region, kind), 0 },
		{ "base before size", K9, DR, RW, 0, 0, 0, 1, 0,
		  CSREC_ST_BAD_ALIGN, BF(region, base), 1 },
		{ "bounds before levels", K9, DR, RW, 1, 0, 0, DRAM_SIZE, 64,
		  CSREC_ST_OUT_OF_BOUNDS, BF(region, base), DRAM_SIZE },
#undef DR
#undef HO
#undef CH
	};
	struct csrec_cmd c;
	char name[80];
	unsigned int i;

	ready();
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		c = cmd_region(t[i].key, t[i].kind, t[i].rights, DOMAIN, t[i].base, t[i].size);
		B(c, region)->levels = t[i].levels;
		B(c, region)->page_shift = t[i].shift;
		B(c, region)->page_off = t[i].page_off;
		snprintf(name, sizeof(name), "REGION_SET: %s", t[i].name);
		expect(&admin, &c, t[i].status, t[i].field, t[i].detail, name);
	}
	c = cmd_region(K9, CSREC_REGION_DRAM, RW, DOMAIN, DRAM_SIZE - 64, 64);
	expect_ok(&admin, &c, 0, "REGION_SET: the end of DRAM");
	c = cmd_region_inval(KEY(2, 9));
	expect(&admin, &c, CSREC_ST_STALE_KEY, BF(region, region_key), KEY(2, 9),
	       "REGION_INVAL: old generation");
	c = cmd_region_inval(K_BAD);
	expect(&admin, &c, CSREC_ST_BAD_KEY, BF(region, region_key), K_BAD,
	       "REGION_INVAL: slot out of range");
	c = cmd_region_inval(K9);
	expect_ok(&admin, &c, 0, "REGION_INVAL");
	expect(&admin, &c, CSREC_ST_STALE_KEY, BF(region, region_key), K9, "REGION_INVAL: gone");
	c = cmd_fill(K9, 0, 4, 0);
	expect(&ioq, &c, CSREC_ST_STALE_KEY, BF(copy, dst_key), K9, "an invalidated key is stale");
	c = cmd_region(KEY(65535, 9), CSREC_REGION_DRAM, RW, DOMAIN, 0, 64);
	expect_ok(&admin, &c, 0, "REGION_SET: generation 65535");
	expect(&ioq, &(struct csrec_cmd){ .opcode = CSREC_OP_NOP, .flags = 4 },
	       CSREC_ST_BAD_FLAGS, 1, 4, "flag bit 2 is unknown");
}

static void test_page_lists(void)
{
	static const uint32_t pool = H_DATA + 0x80000;	/* 32 pages that lists point to */
	struct csrec_cmd c;
	uint64_t *list = (uint64_t *)(host + H_LIST), *top;
	unsigned int i, page, bad;
	const uint32_t n2 = 600 * 4096;

	ready();
	/* level 1: 8 pages in reverse order, first byte at 0x123 of the first */
	for (i = 0; i < 9; i++)
		list[i] = HOST_BASE + pool + (8 - i) * 4096;
	c = cmd_region(KEY(1, 20), CSREC_REGION_HOST, RW, DOMAIN, HOST_BASE + H_LIST, 8 * 4096);
	B(c, region)->levels = 1;
	B(c, region)->page_shift = 12;
	B(c, region)->page_off = 0x123;
	expect_ok(&admin, &c, 0, "REGION_SET: page list");
	scribble(host + pool, 9 * 4096);
	c = cmd_copy(K_DRAM, 0, KEY(1, 20), 5, 8 * 4096 - 5);
	expect_ok(&ioq, &c, 8 * 4096 - 5, "COPY out of a page-list region");
	for (i = 5, bad = 0; i < 8 * 4096; i++) {
		page = (0x123 + i) / 4096;
		bad += region_mem(K_DRAM)[i - 5] !=
		       host[pool + (8 - page) * 4096 + (0x123 + i) % 4096];
	}
	eq(bad, 0, "... the right bytes");
	memset(host + pool, 0, 9 * 4096);
	c = cmd_fill(KEY(1, 20), 0, 8 * 4096, 0xffffffff);
	expect_ok(&ioq, &c, 8 * 4096, "FILL of it");
	for (i = 0, bad = 0; i < 9 * 4096; i++) {
		page = 8 - i / 4096;
		bad += host[pool + i] !=
		       (page * 4096 + i % 4096 - 0x123 < 8 * 4096 ? 0xff : 0);
	}
	eq(bad, 0, "... and no byte outside");

	/* level 1 with 16 KiB pages */
	for (i = 0; i < 3; i++)
		list[i] = HOST_BASE + pool + ((i + 1) % 3) * 16384;
	c = cmd_region(KEY(1, 21), CSREC_REGION_HOST, RW, DOMAIN, HOST_BASE + H_LIST, 40000);
	B(c, region)->levels = 1;
	B(c, region)->page_shift = 14;
	B(c, region)->page_off = 5000;
	expect_ok(&admin, &c, 0, "REGION_SET: 16 KiB pages");
	scribble(host + pool, 3 * 16384);
	c = cmd_copy(K_DRAM, 0, KEY(1, 21), 0, 40000);
	expect_ok(&ioq, &c, 40000, "COPY out of 16 KiB pages");
	for (i = 0, bad = 0; i < 40000; i++)
		bad += region_mem(K_DRAM)[i] !=
		       host[pool + (((5000 + i) / 16384 + 1) % 3) * 16384 + (5000 + i) % 16384];
	eq(bad, 0, "... the right bytes");

	/* level 2: 600 pages, so two list pages; the lists' pages are apart */
	top = (uint64_t *)(host + H_LIST + 0x8000);
	top[0] = HOST_BASE + H_LIST + 0x4000;
	top[1] = HOST_BASE + H_LIST;
	for (i = 0; i < 600; i++) {
		list = (uint64_t *)(host + (i < 512 ? H_LIST + 0x4000 : H_LIST));
		list[i % 512] = HOST_BASE + pool + i * 7 % 32 * 4096;
	}
	c = cmd_region(KEY(1, 22), CSREC_REGION_HOST, RW, DOMAIN, HOST_BASE + H_LIST + 0x8000, n2);
	B(c, region)->levels = 2;
	B(c, region)->page_shift = 12;
	expect_ok(&admin, &c, 0, "REGION_SET: list of page lists");
	scribble(host + pool, 32 * 4096);
	c = cmd_copy(K_DRAM, 0, KEY(1, 22), 510 * 4096 + 77, 4 * 4096);
	expect_ok(&ioq, &c, 4 * 4096, "COPY across two list pages");
	for (i = 0, bad = 0; i < 4 * 4096; i++) {
		page = 510 + (77 + i) / 4096;
		bad += region_mem(K_DRAM)[i] != host[pool + page * 7 % 32 * 4096 + (77 + i) % 4096];
	}
	eq(bad, 0, "... the right bytes");
	c = cmd_copy(K_DRAM, 0, KEY(1, 22), n2 - 1, 2);
	expect(&ioq, &c, CSREC_ST_OUT_OF_BOUNDS, BF(copy, src_off), n2 - 1,
	       "a page-list region ends at its size");

	broken = (struct window){ HOST_BASE + H_LIST, HOST_BASE + H_LIST + 0x1000 };
	c = cmd_copy(K_DRAM, 0, KEY(1, 22), 550 * 4096, 64);
	expect(&ioq, &c, CSREC_ST_BUS_ERROR, BF(copy, src_key), KEY(1, 22),
	       "bus error reading a page list");
	broken = (struct window){ HOST_BASE + H_LIST + 0x8000, HOST_BASE + H_LIST + 0x9000 };
	expect(&ioq, &c, CSREC_ST_BUS_ERROR, BF(copy, src_key), KEY(1, 22),
	       "bus error reading the list of page lists");
	broken = none;
}

/* --- queues: create, delete --- */

static void test_queue_admin(void)
{
	static const struct {
		const char *name;
		uint16_t qid;
		uint8_t log2;
		uint16_t vector;
		uint64_t sq, cq;
		uint16_t status, field;
		uint64_t detail;
	} t[] = {
		{ "qid 0", 0, 3, 0, 0, 0, CSREC_ST_BAD_QUEUE, BF(queue, qid), 0 },
		{ "qid beyond", 65, 3, 0, 0, 0, CSREC_ST_BAD_QUEUE, BF(queue, qid), 65 },
		{ "qid taken", 1, 3, 0, 0, 0, CSREC_ST_BAD_QUEUE, BF(queue, qid), 1 },
		{ "one entry", 3, 0, 0, 0, 0, CSREC_ST_BAD_VALUE, BF(queue, log2_entries), 0 },
		{ "2^13 entries", 3, 13, 0, 0, 0, CSREC_ST_BAD_VALUE, BF(queue, log2_entries), 13 },
		{ "vector beyond", 3, 3, 255, 0, 0, CSREC_ST_BAD_VALUE, BF(queue, vector), 255 },
		{ "sq_base not aligned", 3, 3, 0, 32, 0, CSREC_ST_BAD_ALIGN, BF(queue, sq_base), 32 },
		{ "cq_base not aligned", 3, 3, 0, 64, 8, CSREC_ST_BAD_ALIGN, BF(queue, cq_base), 8 },
		{ "qid before the rest", 0, 0, 255, 1, 1, CSREC_ST_BAD_QUEUE, BF(queue, qid), 0 },
	};
	static const struct {
		const char *name;
		uint16_t count, flags;
		uint32_t cycles;
		uint16_t cq, status, field;
		uint64_t detail;
	} irq[] = {
		{ "irq_count 2 without irq_cycles", 2, 0, 0, 0, CSREC_ST_BAD_VALUE,
		  BF(queue, irq_count), 2 },
		{ "... also where there are no interrupts", 65535, CSREC_QUEUE_HW_F_NOIRQ, 0, 0,
		  CSREC_ST_BAD_VALUE, BF(queue, irq_count), 65535 },
		{ "qflags 2", 0, 2, 0, 0, CSREC_ST_BAD_VALUE, BF(queue, qflags), 2 },
		{ "qflags 0x8001", 2, 0x8001, 1, 0, CSREC_ST_BAD_VALUE, BF(queue, qflags), 0x8001 },
		{ "cq_base before irq_count", 2, 2, 0, 8, CSREC_ST_BAD_ALIGN, BF(queue, cq_base),
		  8 },
		{ "irq_count before qflags", 3, 2, 0, 0, CSREC_ST_BAD_VALUE, BF(queue, irq_count),
		  3 },
	};
	struct csrec_cmd c;
	char name[80];
	unsigned int i;

	ready();
	for (i = 0; i < sizeof(irq) / sizeof(irq[0]); i++) {
		c = cmd(CSREC_OP_QUEUE_CREATE);
		B(c, queue)->qid = 3;
		B(c, queue)->log2_entries = 3;
		B(c, queue)->cq_base = irq[i].cq;
		B(c, queue)->irq_count = irq[i].count;
		B(c, queue)->irq_cycles = irq[i].cycles;
		B(c, queue)->qflags = irq[i].flags;
		snprintf(name, sizeof(name), "QUEUE_CREATE: %s", irq[i].name);
		expect(&admin, &c, irq[i].status, irq[i].field, irq[i].detail, name);
	}
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		c = cmd(CSREC_OP_QUEUE_CREATE);
		B(c, queue)->qid = t[i].qid;
		B(c, queue)->log2_entries = t[i].log2;
		B(c, queue)->vector = t[i].vector;
		B(c, queue)->sq_base = t[i].sq;
		B(c, queue)->cq_base = t[i].cq;
		snprintf(name, sizeof(name), "QUEUE_CREATE: %s", t[i].name);
		expect(&admin, &c, t[i].status, t[i].field, t[i].detail, name);
	}
	c = cmd_queue_delete(0);
	expect(&admin, &c, CSREC_ST_BAD_QUEUE, BF(queue, qid), 0, "QUEUE_DELETE: qid 0");
	c = cmd_queue_delete(3);
	expect(&admin, &c, CSREC_ST_BAD_QUEUE, BF(queue, qid), 3, "QUEUE_DELETE: no such queue");
	c = cmd_queue_delete(999);
	expect(&admin, &c, CSREC_ST_BAD_QUEUE, BF(queue, qid), 999, "QUEUE_DELETE: qid beyond");
	c = cmd_queue_delete(1);
	expect_ok(&admin, &c, 0, "QUEUE_DELETE of an idle queue");
	expect(&admin, &c, CSREC_ST_BAD_QUEUE, BF(queue, qid), 1, "QUEUE_DELETE: gone");
}

#define BIG	(4u << 20)

/* A DRAM to DRAM copy of BIG bytes on ioq, run until some of it is done. */
static struct csrec_cmd start_big_copy(void)
{
	struct csrec_cmd c;
	unsigned int i;

	ready();
	memset(dram, 1, BIG);
	make_region(KEY(1, 30), CSREC_REGION_DRAM, RW, DOMAIN, BIG, BIG);
	make_region(KEY(1, 31), CSREC_REGION_DRAM, RW, DOMAIN, 2 * BIG, BIG);
	memset(dram + BIG, 0xee, BIG);
	memset(dram + 2 * BIG, 0, BIG);
	c = cmd_copy(KEY(1, 31), 0, KEY(1, 30), 0, BIG);
	put(&ioq, &c);
	ring(&ioq);
	for (i = 0; i < 100000 && dram[2 * BIG] != 0xee; i++) {
		csrec_model_step(m, 100);
		while (answer_one())
			;
	}
	return c;
}

static size_t copied(void)
{
	size_t i, n = 0;

	for (i = 0; i < BIG; i++)
		n += dram[2 * BIG + i] == 0xee;
	return n;
}

static void test_in_flight(void)
{
	struct csrec_cmd c, d;
	struct csrec_cqe cqe;
	uint64_t progress;
	size_t n;

	c = start_big_copy();
	ok(copied() > 0 && copied() < BIG, "a long COPY is under way");
	ok(reg(CSREC_REG_STATUS) & CSREC_STATUS_BUSY, "... BUSY");
	progress = reg(CSREC_REG_CNT_PROGRESS);
	csrec_model_step(m, 5000);
	ok(reg(CSREC_REG_CNT_PROGRESS) > progress, "... CNT_PROGRESS grows");
	d = cmd(CSREC_OP_NOP);
	put(&ioq2, &d);
	ring(&ioq2);
	while (csrec_model_step(m, 500), answer_one() || !posted(&ioq2, 0, &cqe))
		if (!csrec_model_busy(m) && !npending)
			break;
	ok(take(&ioq2, &cqe) && !posted(&ioq, 0, &cqe), "... does not keep another queue waiting");
	run();
	ok(take(&ioq, &cqe) && is(&cqe, c.cid, CSREC_ST_OK, 0, BIG) && copied() == BIG,
	   "... and ends complete");

	c = start_big_copy();
	d = cmd_queue_delete(1);
	expect_ok(&admin, &d, 0, "QUEUE_DELETE with a COPY under way");
	ok(take(&ioq, &cqe), "... the COPY is completed before");
	check_cqe(&cqe, c.cid, CSREC_ST_ABORTED, CSREC_FIELD_NONE, 0, "... as ABORTED");
	n = copied();
	ok(n < BIG, "... cut short");
	csrec_model_step(m, 20000);
	ok(copied() == n, "... and nothing is written after");

	c = start_big_copy();
	d = cmd_region_inval(KEY(1, 31));
	expect_ok(&admin, &d, 0, "REGION_INVAL of the destination of a COPY under way");
	ok(take(&ioq, &cqe), "... the COPY ends");
	check_cqe(&cqe, c.cid, CSREC_ST_STALE_KEY, BF(copy, dst_key), KEY(1, 31),
		  "... with STALE_KEY");
	ok(copied() < BIG, "... cut short");

	c = start_big_copy();
	d = cmd_region_inval(KEY(1, 30));
	expect_ok(&admin, &d, 0, "REGION_INVAL of its source");
	ok(take(&ioq, &cqe), "... the COPY ends");
	check_cqe(&cqe, c.cid, CSREC_ST_STALE_KEY, BF(copy, src_key), KEY(1, 30),
		  "... with STALE_KEY");

	start_big_copy();
	progress = reg(CSREC_REG_CNT_COMMANDS);
	set_reg(CSREC_REG_CTRL, 0);
	run();
	eq(reg(CSREC_REG_STATUS), 0, "disable with a COPY under way");
	n = copied();
	ok(n < BIG, "... cuts it short");
	ok(!posted(&ioq, 0, &cqe), "... posts no completion");
	eq(reg(CSREC_REG_CNT_COMMANDS), progress, "... counts none");
	csrec_model_step(m, 20000);
	ok(copied() == n, "... and nothing is written after");

	start_big_copy();
	csrec_model_reset(m);
	forget_pending();
	n = copied();
	csrec_model_step(m, 20000);
	ok(n < BIG && copied() == n, "reset with a COPY under way");
	ready();
	d = cmd(CSREC_OP_NOP);
	expect_ok(&ioq, &d, 0, "... and the device works again");
}

/* Commands whose host access is not answered while others go on. */
static void test_held(void)
{
	uint32_t tag;
	struct csrec_cmd c, d;
	struct csrec_cqe cqe;

	ready();
	make_region(KEY(1, 40), CSREC_REGION_HOST, RW, DOMAIN, HOST_BASE + H_DATA, 0x1000);
	memset(host + H_DATA, 0xab, 64);
	memset(region_mem(K_DRAM), 0, 64);
	held = (struct window){ HOST_BASE + H_DATA, HOST_BASE + H_DATA + 0x1000 };
	c = cmd_copy(K_DRAM, 0, KEY(1, 40), 0, 64);
	put(&ioq, &c);
	ring(&ioq);
	run();
	ok(npending > 0 && !posted(&ioq, 0, &cqe), "a COPY awaits host memory");
	ok(reg(CSREC_REG_STATUS) & CSREC_STATUS_BUSY, "... BUSY");
	ok(!csrec_model_busy(m), "... but nothing to run");
	d = cmd_region_inval(KEY(1, 40));
	put(&admin, &d);
	ring(&admin);
	run();
	ok(!posted(&admin, admin.head, &cqe), "REGION_INVAL awaits the access in flight");
	held = none;
	run();
	ok(take(&admin, &cqe) && is(&cqe, d.cid, CSREC_ST_OK, 0, 0), "... and then completes");
	ok(take(&ioq, &cqe), "... as does the COPY");

	ready();
	held = (struct window){ HOST_BASE + H_DATA, HOST_BASE + H_DATA + 0x1000 };
	c = cmd_fill(K_HOST, 0, 64, 0x77777777);
	put(&ioq, &c);
	ring(&ioq);
	run();
	d = cmd_queue_delete(1);
	put(&admin, &d);
	ring(&admin);
	run();
	ok(npending > 0 && !posted(&admin, admin.head, &cqe),
	   "QUEUE_DELETE awaits the write in flight");
	held = none;
	run();
	ok(take(&admin, &cqe) && is(&cqe, d.cid, CSREC_ST_OK, 0, 0), "... and then completes");
	ok(take(&ioq, &cqe), "... after the FILL's completion");

	ready();
	held = (struct window){ HOST_BASE + H_DATA, HOST_BASE + H_DATA + 0x1000 };
	put(&ioq, &c);
	ring(&ioq);
	run();
	set_reg(CSREC_REG_CTRL, 0);
	run();
	ok(reg(CSREC_REG_STATUS) & CSREC_STATUS_READY, "disable awaits the write in flight");
	held = none;
	run();
	eq(reg(CSREC_REG_STATUS), 0, "... and then READY drops");

	ready();
	held = (struct window){ HOST_BASE + H_DATA, HOST_BASE + H_DATA + 0x1000 };
	put(&ioq, &c);
	ring(&ioq);
	run();
	ok(npending > 0, "reset with a write in flight");
	csrec_model_reset(m);
	tag = pending[0].tag;
	forget_pending();
	eq(reg(CSREC_REG_STATUS), 0, "... is over at once");
	csrec_model_host_done(m, tag, 0);
	run();
	ready();
	d = cmd(CSREC_OP_NOP);
	expect_ok(&ioq, &d, 0, "... and a stray answer does no harm");
}

/* --- descriptors --- */

#define DESC_AT		0x1000	/* in K_DRAM */

static struct csrec_cmd cmd_desc(uint8_t op, const void *desc, uint32_t size)
{
	struct csrec_cmd c = cmd(op);

	memcpy(region_mem(K_DRAM) + DESC_AT, desc, size);
	B(c, desc)->desc_key = K_DRAM;
	B(c, desc)->desc_len = size;
	B(c, desc)->desc_off = DESC_AT;
	return c;
}

/* One field of a good descriptor made bad. */
struct patch {
	const char *name;
	uint16_t off, size;
	uint64_t val;
	uint16_t status, field;
	uint64_t detail;
};

#define FSIZE(type, f)	sizeof(((struct csrec_##type##_desc *)0)->f)
#define FOFF(type, f)	offsetof(struct csrec_##type##_desc, f)
/* a value that is reported as it is */
#define VAL(type, f, v, st) \
	{ #f " = " #v, FOFF(type, f), FSIZE(type, f), v, CSREC_ST_##st, DF(type, f), v }
/* a reserved field (of an array: its last byte) */
#define RSV(type, f) \
	{ #f " set", FOFF(type, f) + FSIZE(type, f) - 1, 1, 1, CSREC_ST_RESERVED, DF(type, f), 0 }
/* anything else */
#define ANY(name, type, f, size, v, st, field, detail) \
	{ name, FOFF(type, f), size, v, CSREC_ST_##st, field, detail }

static void run_patches(uint8_t op, const char *opname, const void *good, uint32_t size,
			const struct patch *p, unsigned int n)
{
	uint8_t desc[256];
	struct csrec_cmd c;
	char name[96];

	for (; n--; p++) {
		memcpy(desc, good, size);
		memcpy(desc + p->off, &p->val, p->size);
		c = cmd_desc(op, desc, size);
		snprintf(name, sizeof(name), "%s: %s", opname, p->name);
		expect(&ioq, &c, p->status, p->field, p->detail, name);
	}
}

/* Where a descriptor keeps an operand. */
struct operand {
	const char *name;
	uint16_t key, off;
	bool write, chip;
};

#define OPER(type, n, w)	{ #n, FOFF(type, n##_key), FOFF(type, n##_off), w, false }

/* Region checks 1 to 6 of every operand, and the descriptor's own. */
static void run_operands(uint8_t op, const char *opname, const void *good, uint32_t size,
			 const struct operand *o, unsigned int n)
{
	static const struct { const char *name; uint32_t key; unsigned int status; } k[] = {
		{ "slot out of range", K_BAD, CSREC_ST_BAD_KEY },
		{ "empty slot", K_EMPTY, CSREC_ST_STALE_KEY },
		{ "old generation", K_STALE, CSREC_ST_STALE_KEY },
		{ "another domain's", K_FOREIGN, CSREC_ST_BAD_DOMAIN },
	};
	uint64_t wrap = 0xfffffffffffffffc, end;
	uint8_t desc[256];
	struct csrec_cmd c;
	unsigned int i, j;
	uint32_t key;
	char name[96];

	for (i = 0; i < n; i++, o++) {
		for (j = 0; j < sizeof(k) / sizeof(k[0]); j++) {
			memcpy(desc, good, size);
			memcpy(desc + o->key, &k[j].key, 4);
			c = cmd_desc(op, desc, size);
			snprintf(name, sizeof(name), "%s: %s_key: %s", opname, o->name, k[j].name);
			expect(&ioq, &c, k[j].status, CSREC_FIELD_DESC | o->key, k[j].key, name);
		}
		memcpy(desc, good, size);
		key = o->write ? K_RO : K_WO;
		memcpy(desc + o->key, &key, 4);
		c = cmd_desc(op, desc, size);
		snprintf(name, sizeof(name), "%s: %s_key: right not granted", opname, o->name);
		expect(&ioq, &c, CSREC_ST_BAD_RIGHTS, CSREC_FIELD_DESC | o->key, key, name);
		if (o->chip) {
			memcpy(desc, good, size);
			key = K_DRAM;
			memcpy(desc + o->key, &key, 4);
			c = cmd_desc(op, desc, size);
			snprintf(name, sizeof(name), "%s: %s_key: not on-chip", opname, o->name);
			expect(&ioq, &c, CSREC_ST_BAD_VALUE, CSREC_FIELD_DESC | o->key, key, name);
		}
		memcpy(desc, good, size);
		memcpy(desc + o->off, &wrap, 8);
		c = cmd_desc(op, desc, size);
		snprintf(name, sizeof(name), "%s: %s_off: wraps", opname, o->name);
		expect(&ioq, &c, CSREC_ST_OUT_OF_BOUNDS, CSREC_FIELD_DESC | o->off, wrap, name);
		memcpy(desc, good, size);
		end = o->chip ? CHIP_SIZE : D_DATA_SIZE;
		memcpy(desc + o->off, &end, 8);
		c = cmd_desc(op, desc, size);
		snprintf(name, sizeof(name), "%s: %s_off: at the region's end", opname, o->name);
		expect(&ioq, &c, CSREC_ST_OUT_OF_BOUNDS, CSREC_FIELD_DESC | o->off, end, name);
		memcpy(desc, good, size);
		end = 2;
		memcpy(desc + o->off, &end, 8);
		c = cmd_desc(op, desc, size);
		snprintf(name, sizeof(name), "%s: %s_off: not aligned", opname, o->name);
		expect(&ioq, &c, CSREC_ST_BAD_ALIGN, CSREC_FIELD_DESC | o->off, end, name);
	}

	c = cmd_desc(op, good, size);
	B(c, desc)->desc_len = size - 8;
	snprintf(name, sizeof(name), "%s: desc_len", opname);
	expect(&ioq, &c, CSREC_ST_BAD_LENGTH, BF(desc, desc_len), size - 8, name);
	c = cmd_desc(op, good, size);
	B(c, desc)->desc_off += 4;
	snprintf(name, sizeof(name), "%s: desc_off not a multiple of 8", opname);
	expect(&ioq, &c, CSREC_ST_BAD_ALIGN, BF(desc, desc_off), DESC_AT + 4, name);
	c = cmd_desc(op, good, size);
	B(c, desc)->desc_off = D_DATA_SIZE - 8;
	snprintf(name, sizeof(name), "%s: descriptor leaves its region", opname);
	expect(&ioq, &c, CSREC_ST_OUT_OF_BOUNDS, BF(desc, desc_off), D_DATA_SIZE - 8, name);
	c = cmd_desc(op, good, size);
	B(c, desc)->desc_key = K_WO;
	snprintf(name, sizeof(name), "%s: descriptor not readable", opname);
	expect(&ioq, &c, CSREC_ST_BAD_RIGHTS, BF(desc, desc_key), K_WO, name);
	c = cmd_desc(op, good, size);
	B(c, desc)->desc_key = K_HOST;
	broken = (struct window){ HOST_BASE + H_DATA, HOST_BASE + H_DATA + H_DATA_SIZE };
	snprintf(name, sizeof(name), "%s: bus error reading the descriptor", opname);
	expect(&ioq, &c, CSREC_ST_BUS_ERROR, BF(desc, desc_key), K_HOST, name);
	broken = none;
}

/* Where the operands lie in K_DRAM. */
#define A_TABLE		0x10000
#define A_IDS		0x20000
#define A_OFFSETS	0x21000
#define A_WEIGHTS	0x22000
#define A_OUT		0x30000

static float *f_at(uint32_t off)
{
	return (float *)(region_mem(K_DRAM) + off);
}

static void put_u32(uint32_t off, const uint32_t *v, unsigned int n)
{
	memcpy(region_mem(K_DRAM) + off, v, 4 * n);
}

static const uint32_t the_ids[] = { 2, 0, 2, 4, 1, 3 };
static const uint32_t the_offsets[] = { 0, 3, 3, 4, 6 };
static const float the_weights[] = { 1, -2, 3, 0.5f, 8, -1 };
#define NBAGS	4
#define NIDS	6

/* Row i, element e of whichever table: small integers */
static float cell(unsigned int i, unsigned int e)
{
	return (float)((int)(i * 7 + e * 3) % 11 - 4);
}

/* What bag b's element e has to be, by the definition of a weighted EmbeddingBag. */
static float bag_sum(float (*row)(unsigned int, unsigned int), unsigned int b, unsigned int e,
		     bool weighted)
{
	float s = 0;
	unsigned int j;

	for (j = the_offsets[b]; j < the_offsets[b + 1]; j++)
		s += (weighted ? the_weights[j] : 1) * row(the_ids[j], e);
	return s;
}

static void put_bags(void)
{
	put_u32(A_IDS, the_ids, NIDS);
	put_u32(A_OFFSETS, the_offsets, NBAGS + 1);
	memcpy(f_at(A_WEIGHTS), the_weights, sizeof(the_weights));
}

static bool bags_are(float (*row)(unsigned int, unsigned int), unsigned int dim,
		     unsigned int stride, bool weighted, float plus)
{
	unsigned int b, e, bad = 0;

	for (b = 0; b < NBAGS; b++)
		for (e = 0; e < dim; e++)
			bad += f_at(A_OUT + b * stride)[e] !=
			       bag_sum(row, b, e, weighted) + plus;
	return !bad;
}

/* Offsets and ids that are wrong, for EMB and TT alike. */
static void bad_bags(uint8_t op, const char *opname, const void *good, uint32_t size,
		     uint16_t ids_field, uint16_t offsets_field, unsigned int stride,
		     unsigned int nrows)
{
	static const struct { const char *name; uint32_t off[5]; int bag; } t[] = {
		{ "offsets decrease", { 0, 3, 2, 4, 6 }, 1 },
		{ "offsets pass nids", { 0, 3, 3, 4, 7 }, 3 },
		{ "the first offset passes nids", { 9, 9, 9, 9, 9 }, 0 },
		{ "offsets near 2^32", { 0, 0xffffffff, 3, 4, 6 }, 0 },
	};
	struct csrec_cmd c;
	unsigned int i, b, bad;
	uint32_t id = nrows;
	char name[96];

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		put_bags();
		put_u32(A_OFFSETS, t[i].off, 5);
		memset(f_at(A_OUT), 0xaa, NBAGS * stride);
		c = cmd_desc(op, good, size);
		snprintf(name, sizeof(name), "%s: %s", opname, t[i].name);
		expect(&ioq, &c, CSREC_ST_BAD_OFFSETS, offsets_field, t[i].bag, name);
		for (b = 0, bad = 0; b < NBAGS; b++)
			bad += (*(uint32_t *)f_at(A_OUT + b * stride) == 0xaaaaaaaa) !=
			       ((int)b >= t[i].bag);
		ok(!bad, "%s: the bags before are written, the others are not", name);
	}
	put_bags();
	put_u32(A_IDS + 4 * 4, &id, 1);
	memset(f_at(A_OUT), 0xaa, NBAGS * stride);
	c = cmd_desc(op, good, size);
	snprintf(name, sizeof(name), "%s: id = nrows", opname);
	expect(&ioq, &c, CSREC_ST_BAD_ID, ids_field, 4, name);
	for (b = 0, bad = 0; b < NBAGS; b++)
		bad += (*(uint32_t *)f_at(A_OUT + b * stride) == 0xaaaaaaaa) != (b >= 3);
	ok(!bad, "%s: the bags before are written, the others are not", name);
	put_bags();
}

static void test_emb(void)
{
	const unsigned int dim = 20, stride = 96, ostride = 84, nrows = 5;
	struct csrec_emb_desc d = {
		.dim = dim, .nbags = NBAGS, .nids = NIDS, .nrows = nrows,
		.row_stride = stride, .out_stride = ostride,
		.table_key = K_DRAM, .ids_key = K_DRAM, .offsets_key = K_DRAM, .out_key = K_DRAM,
		.table_off = A_TABLE, .ids_off = A_IDS, .offsets_off = A_OFFSETS,
		.out_off = A_OUT,
	}, w = d, x;
	static const struct patch p[] = {
		VAL(emb, flags, 2, BAD_FLAGS), VAL(emb, flags, 0x80000001, BAD_FLAGS),
		RSV(emb, rsvd7), RSV(emb, rsvd52), RSV(emb, rsvd96),
		RSV(emb, weights_key), RSV(emb, weights_off),
		VAL(emb, dim, 0, BAD_VALUE), VAL(emb, dim, 257, BAD_VALUE),
		VAL(emb, dtype, 1, BAD_VALUE), VAL(emb, nbags, 0, BAD_VALUE),
		VAL(emb, nrows, 0, BAD_VALUE), VAL(emb, nrows, 0x100000001, BAD_VALUE),
		VAL(emb, row_stride, 98, BAD_ALIGN), VAL(emb, row_stride, 76, BAD_VALUE),
		VAL(emb, row_stride, 2, BAD_ALIGN),
		VAL(emb, out_stride, 86, BAD_ALIGN), VAL(emb, out_stride, 76, BAD_VALUE),
		ANY("nrows = 2^32", emb, nrows, 8, 1ull << 32, OUT_OF_BOUNDS,
		    DF(emb, table_off), A_TABLE),
		ANY("nids too many", emb, nids, 4, 0xffffffff, OUT_OF_BOUNDS,
		    DF(emb, ids_off), A_IDS),
		ANY("nbags too many", emb, nbags, 4, 0xffffffff, OUT_OF_BOUNDS,
		    DF(emb, offsets_off), A_OFFSETS),
	};
	static const struct operand o[] = {
		OPER(emb, table, false), OPER(emb, ids, false), OPER(emb, offsets, false),
		OPER(emb, weights, false), OPER(emb, out, true),
	};
	struct csrec_cmd c;
	unsigned int i, e;
	uint64_t rows;

	ready();
	for (i = 0; i < nrows; i++)
		for (e = 0; e < dim; e++)
			f_at(A_TABLE + i * stride)[e] = cell(i, e);
	put_bags();
	memset(f_at(A_OUT), 0xaa, NBAGS * ostride);
	rows = reg(CSREC_REG_CNT_EMB_ROWS);
	c = cmd_desc(CSREC_OP_EMB, &d, sizeof(d));
	expect_ok(&ioq, &c, NIDS, "EMB");
	ok(bags_are(cell, dim, ostride, false, 0), "EMB: sums, zeros for the empty bag");
	eq(*(uint32_t *)f_at(A_OUT + 80), 0xaaaaaaaa, "EMB: nothing between rows");
	eq(reg(CSREC_REG_CNT_EMB_ROWS), rows + NIDS, "EMB: rows are counted");
	ok(reg(CSREC_REG_CNT_BUSY_EMB) > 0, "EMB: busy cycles are counted");

	w.flags = CSREC_EMB_F_WEIGHTS;
	w.weights_key = K_DRAM;
	w.weights_off = A_WEIGHTS;
	c = cmd_desc(CSREC_OP_EMB, &w, sizeof(w));
	expect_ok(&ioq, &c, NIDS, "EMB with weights");
	ok(bags_are(cell, dim, ostride, true, 0), "EMB: weighted sums");

	/* operands in host and on-chip memory */
	x = d;
	memcpy(region_mem(K_HOST), f_at(A_TABLE), nrows * stride);
	memcpy(region_mem(K_HOST) + 0x2ffc, the_ids, sizeof(the_ids));
	memcpy(region_mem(K_HOST) + 0x3ff4, the_offsets, sizeof(the_offsets));
	x.table_key = x.ids_key = x.offsets_key = K_HOST;
	x.table_off = 0;
	x.ids_off = 0x2ffc;
	x.offsets_off = 0x3ff4;
	memset(f_at(A_OUT), 0xaa, NBAGS * ostride);
	c = cmd_desc(CSREC_OP_EMB, &x, sizeof(x));
	expect_ok(&ioq, &c, NIDS, "EMB out of host memory");
	ok(bags_are(cell, dim, ostride, false, 0), "EMB: same sums");
	broken = (struct window){ HOST_BASE + H_DATA + 4 * stride, HOST_BASE + H_DATA + 5 * stride };
	c = cmd_desc(CSREC_OP_EMB, &x, sizeof(x));
	expect(&ioq, &c, CSREC_ST_BUS_ERROR, DF(emb, table_key), K_HOST, "EMB: bus error on a row");
	broken = none;

	x = d;
	x.nids = 0;
	put_u32(A_OFFSETS, (uint32_t[]){ 0, 0, 0, 0, 0 }, 5);
	memset(f_at(A_OUT), 0xaa, NBAGS * ostride);
	c = cmd_desc(CSREC_OP_EMB, &x, sizeof(x));
	expect_ok(&ioq, &c, 0, "EMB without ids");
	for (i = 0, e = 0; i < dim; i++)
		e |= ((uint32_t *)f_at(A_OUT + 3 * ostride))[i];
	eq(e, 0, "EMB: +0 in empty bags");
	put_u32(A_OFFSETS, (uint32_t[]){ 2, 2, 3, 3, 4 }, 5);
	c = cmd_desc(CSREC_OP_EMB, &d, sizeof(d));
	expect_ok(&ioq, &c, 2, "EMB: the detail counts ids used");
	put_bags();

	run_patches(CSREC_OP_EMB, "EMB", &d, sizeof(d), p, sizeof(p) / sizeof(p[0]));
	run_operands(CSREC_OP_EMB, "EMB", &w, sizeof(w), o, 5);
	bad_bags(CSREC_OP_EMB, "EMB", &d, sizeof(d), DF(emb, ids_off), DF(emb, offsets_off),
		 ostride, nrows);
}

/* TT: p 2,3,2 q 2,2,3 r 3,5; cores of small integers. */
static float tt_core(unsigned int k, unsigned int i)
{
	return (float)((int)(i * (5 + 2 * k) + 3 * k) % 7 - 3);
}

static const unsigned int tp[3] = { 2, 3, 2 }, tq[3] = { 2, 2, 3 }, tr[4] = { 1, 3, 5, 1 };
#define TT_DIM	12

/* One element of a row by the textbook sum over both ranks. */
static float tt_cell(unsigned int id, unsigned int e)
{
	unsigned int i0 = id / 6, i1 = id / 2 % 3, i2 = id % 2;
	unsigned int j0 = e / 6, j1 = e / 3 % 2, j2 = e % 3, a, b;
	float s = 0;

	for (a = 0; a < tr[1]; a++)
		for (b = 0; b < tr[2]; b++)
			s += tt_core(0, (i0 * tq[0] + j0) * tr[1] + a) *
			     tt_core(1, ((i1 * tr[1] + a) * tq[1] + j1) * tr[2] + b) *
			     tt_core(2, (i2 * tr[2] + b) * tq[2] + j2);
	return s;
}

static void test_tt(void)
{
	const unsigned int ostride = 52;
	struct csrec_tt_desc d = {
		.nbags = NBAGS, .nids = NIDS, .p = { 2, 3, 2 }, .q = { 2, 2, 3 }, .r = { 3, 5 },
		.out_stride = ostride, .nrows = 12,
		.core_key = { K_CHIP, K_CHIP, K_CHIP },
		.ids_key = K_DRAM, .offsets_key = K_DRAM, .out_key = K_DRAM,
		.core_off = { 0, 0x404, 0x1000 },
		.ids_off = A_IDS, .offsets_off = A_OFFSETS, .out_off = A_OUT,
	}, w = d, x;
	static const struct patch p[] = {
		VAL(tt, flags, 4, BAD_FLAGS),
		RSV(tt, rsvd34), RSV(tt, rsvd76), RSV(tt, rsvd136),
		RSV(tt, weights_key), RSV(tt, weights_off),
		VAL(tt, nbags, 0, BAD_VALUE),
		VAL(tt, p[0], 0, BAD_VALUE), VAL(tt, p[1], 0, BAD_VALUE),
		VAL(tt, p[2], 0, BAD_VALUE),
		ANY("p product 2^32", tt, p[0], 8, 0x0000800000010000ull, BAD_VALUE,
		    DF(tt, p[0]), 0),
		ANY("p product wraps 2^64", tt, p[0], 8, 0xffffffffffffffffull, BAD_VALUE,
		    DF(tt, p[0]), 0),
		VAL(tt, q[0], 0, BAD_VALUE), VAL(tt, q[1], 0, BAD_VALUE),
		VAL(tt, q[2], 0, BAD_VALUE),
		ANY("q product 258", tt, q[0], 2, 43, BAD_VALUE, DF(tt, q[0]), 0),
		ANY("q product wraps", tt, q[0], 6, 0xffffffffffffull, BAD_VALUE, DF(tt, q[0]), 0),
		VAL(tt, r[0], 0, BAD_VALUE), VAL(tt, r[0], 33, BAD_VALUE),
		VAL(tt, r[1], 0, BAD_VALUE), VAL(tt, r[1], 33, BAD_VALUE),
		VAL(tt, out_stride, 54, BAD_ALIGN), VAL(tt, out_stride, 44, BAD_VALUE),
		VAL(tt, nrows, 0, BAD_VALUE), VAL(tt, nrows, 13, BAD_VALUE),
		ANY("core 0 leaves its region", tt, p[0], 4, 100000, OUT_OF_BOUNDS,
		    DF(tt, core_off[0]), 0),
		ANY("core 2 leaves its region", tt, p[2], 4, 100000, OUT_OF_BOUNDS,
		    DF(tt, core_off[2]), 0x1000),
	};
	static const struct operand o[] = {
		{ "core[0]", FOFF(tt, core_key[0]), FOFF(tt, core_off[0]), false, true },
		{ "core[1]", FOFF(tt, core_key[1]), FOFF(tt, core_off[1]), false, true },
		{ "core[2]", FOFF(tt, core_key[2]), FOFF(tt, core_off[2]), false, true },
		OPER(tt, ids, false), OPER(tt, offsets, false), OPER(tt, weights, false),
		OPER(tt, out, true),
	};
	struct csrec_cmd c;
	unsigned int k, i, e, b;
	uint64_t rows, saved;
	unsigned int again = 0, seen = 0;

	ready();
	for (k = 0; k < 3; k++) {
		unsigned int n = tp[k] * tr[k] * tq[k] * tr[k + 1];

		for (i = 0; i < n; i++)
			f_at(A_TABLE)[i] = tt_core(k, i);
		c = cmd_copy(K_CHIP, d.core_off[k], K_DRAM, A_TABLE, 4 * n);
		expect_ok(&ioq, &c, 4 * n, "TT: core loaded by COPY");
	}
	put_bags();
	memset(f_at(A_OUT), 0xaa, NBAGS * ostride);
	rows = reg(CSREC_REG_CNT_TT_ROWS);
	saved = reg(CSREC_REG_CNT_TT_SAVED);
	c = cmd_desc(CSREC_OP_TT, &d, sizeof(d));
	expect_ok(&ioq, &c, NIDS, "TT");
	ok(bags_are(tt_cell, TT_DIM, ostride, false, 0), "TT: sums of rebuilt rows");
	eq(*(uint32_t *)f_at(A_OUT + 48), 0xaaaaaaaa, "TT: nothing between rows");
	eq(reg(CSREC_REG_CNT_TT_ROWS), rows + NIDS, "TT: rows are counted");
	/* room for more products of cores 0 and 1 than there can be */
	for (i = 0; i < NIDS; i++) {
		again += seen >> the_ids[i] / tp[2] & 1;
		seen |= 1u << the_ids[i] / tp[2];
	}
	eq(reg(CSREC_REG_CNT_TT_SAVED), saved + again * tq[0] * tr[1] * tq[1] * tr[2],
	   "TT: multiplications spared by rows with the same leading digits");
	ok(again, "TT: there are such rows");

	w.flags = CSREC_TT_F_WEIGHTS | CSREC_TT_F_ACCUM;
	w.weights_key = K_DRAM;
	w.weights_off = A_WEIGHTS;
	for (b = 0; b < NBAGS; b++)
		for (e = 0; e < TT_DIM; e++)
			f_at(A_OUT + b * ostride)[e] = 1000;
	c = cmd_desc(CSREC_OP_TT, &w, sizeof(w));
	expect_ok(&ioq, &c, NIDS, "TT with weights, accumulating");
	ok(bags_are(tt_cell, TT_DIM, ostride, true, 1000), "TT: weighted sums onto what was there");
	x = w;
	x.out_key = K_WO;
	x.out_off = 0;
	c = cmd_desc(CSREC_OP_TT, &x, sizeof(x));
	expect(&ioq, &c, CSREC_ST_BAD_RIGHTS, DF(tt, out_key), K_WO, "TT: F_ACCUM needs READ too");
	put_u32(A_OFFSETS, (uint32_t[]){ 99 }, 1);
	expect(&ioq, &c, CSREC_ST_BAD_RIGHTS, DF(tt, out_key), K_WO,
	       "TT: ... which is checked before the offsets are read");
	put_bags();
	x.flags = CSREC_TT_F_WEIGHTS;
	c = cmd_desc(CSREC_OP_TT, &x, sizeof(x));
	expect_ok(&ioq, &c, NIDS, "TT: without it WRITE is enough");
	x = d;
	x.p[0] = x.p[1] = 1u << 31;
	x.p[2] = 4;
	c = cmd_desc(CSREC_OP_TT, &x, sizeof(x));
	expect(&ioq, &c, CSREC_ST_BAD_VALUE, DF(tt, p[0]), 0, "TT: p product 2^64");

	run_patches(CSREC_OP_TT, "TT", &d, sizeof(d), p, sizeof(p) / sizeof(p[0]));
	x = d;
	x.q[0] = 1, x.q[1] = 8, x.q[2] = 1;
	x.r[0] = 32, x.r[1] = 32;
	c = cmd_desc(CSREC_OP_TT, &x, sizeof(x));
	expect(&ioq, &c, CSREC_ST_BAD_VALUE, DF(tt, q[0]), 0, "TT: slice of 8192 elements");
	x.q[1] = 4;
	c = cmd_desc(CSREC_OP_TT, &x, sizeof(x));
	expect(&ioq, &c, CSREC_ST_OUT_OF_BOUNDS, DF(tt, core_off[1]), 0x404,
	       "TT: slice of 4096 elements passes");
	run_operands(CSREC_OP_TT, "TT", &w, sizeof(w), o, 7);
	x = d;
	x.nrows = 10;
	bad_bags(CSREC_OP_TT, "TT", &x, sizeof(x), DF(tt, ids_off), DF(tt, offsets_off), ostride,
		 10);
}

static void test_interact(void)
{
	const unsigned int nvec = 5, dim = 9, vstride = 40, batch = 3;
	struct csrec_interact_desc d = {
		.op = CSREC_INTERACT_DOT, .nvec = nvec, .dim = dim, .batch = batch,
		.in_key = K_DRAM, .out_key = K_DRAM, .in_off = A_TABLE, .out_off = A_OUT,
		.vec_stride = vstride, .in_stride = 256, .out_stride = 200,
	}, x;
	static const struct patch p[] = {
		VAL(interact, flags, 2, BAD_FLAGS),
		RSV(interact, rsvd5), RSV(interact, rsvd10), RSV(interact, rsvd52),
		RSV(interact, rsvd56),
		VAL(interact, op, 2, BAD_VALUE),
		VAL(interact, nvec, 0, BAD_VALUE), VAL(interact, nvec, 65, BAD_VALUE),
		VAL(interact, dim, 0, BAD_VALUE), VAL(interact, dim, 257, BAD_VALUE),
		VAL(interact, batch, 0, BAD_VALUE),
		VAL(interact, vec_stride, 42, BAD_ALIGN), VAL(interact, vec_stride, 32, BAD_VALUE),
		VAL(interact, in_stride, 6, BAD_ALIGN),
		VAL(interact, out_stride, 74, BAD_ALIGN), VAL(interact, out_stride, 72, BAD_VALUE),
		ANY("CAT's out_stride", interact, op, 1, CSREC_INTERACT_CAT, OK, 0, 3),
		ANY("batch too large", interact, batch, 4, 0xffffffff, OUT_OF_BOUNDS,
		    DF(interact, in_off), A_TABLE),
	};
	static const struct operand o[] = { OPER(interact, in, false), OPER(interact, out, true) };
	unsigned int s, i, j, e, at, bad, self;
	struct csrec_cmd c;
	float want;

	ready();
	for (s = 0; s < batch; s++)
		for (i = 0; i < nvec; i++)
			for (e = 0; e < dim; e++)
				f_at(A_TABLE + s * 256 + i * vstride)[e] = cell(s * 5 + i, e);
	for (self = 0; self < 2; self++) {
		d.flags = self ? CSREC_INTERACT_F_SELF : 0;
		memset(f_at(A_OUT), 0xaa, 1024);
		c = cmd_desc(CSREC_OP_INTERACT, &d, sizeof(d));
		expect_ok(&ioq, &c, batch, self ? "INTERACT DOT with the diagonal" : "INTERACT DOT");
		for (s = 0, bad = 0; s < batch; s++) {
			const float *out = f_at(A_OUT + s * 200);

			for (e = 0; e < dim; e++)
				bad += out[e] != cell(s * 5, e);
			for (i = 0, at = dim; i < nvec; i++)
				for (j = 0; j < i + self; j++, at++) {
					for (e = 0, want = 0; e < dim; e++)
						want += cell(s * 5 + i, e) * cell(s * 5 + j, e);
					bad += out[at] != want;
				}
			bad += at != dim + (self ? 15 : 10);
			bad += ((const uint32_t *)out)[at] != 0xaaaaaaaa;
		}
		eq(bad, 0, "INTERACT DOT: dense vector, then the triangle by rows, no more");
	}
	d.flags = 0;
	x = d;
	x.op = CSREC_INTERACT_CAT;
	f_at(A_TABLE + vstride)[0] = cell(1, 0);
	*(uint32_t *)(f_at(A_TABLE + vstride) + 1) = 0xffc12345;	/* a NaN keeps its bits */
	c = cmd_desc(CSREC_OP_INTERACT, &x, sizeof(x));
	expect_ok(&ioq, &c, batch, "INTERACT CAT");
	for (s = 0, bad = 0; s < batch; s++)
		for (i = 0; i < nvec; i++)
			bad += !!memcmp(f_at(A_OUT + s * 200) + i * dim,
					f_at(A_TABLE + s * 256 + i * vstride), 4 * dim);
	eq(bad, 0, "INTERACT CAT: the vectors, bit by bit");

	x.flags = CSREC_INTERACT_F_SELF;
	c = cmd_desc(CSREC_OP_INTERACT, &x, sizeof(x));
	expect(&ioq, &c, CSREC_ST_BAD_FLAGS, DF(interact, flags), 1, "INTERACT: F_SELF with CAT");
	x.out_stride = 2;
	c = cmd_desc(CSREC_OP_INTERACT, &x, sizeof(x));
	expect(&ioq, &c, CSREC_ST_BAD_ALIGN, DF(interact, out_stride), 2,
	       "INTERACT: ... after the values");
	x.flags = 0;
	x.out_stride = 4 * nvec * dim - 4;
	c = cmd_desc(CSREC_OP_INTERACT, &x, sizeof(x));
	expect(&ioq, &c, CSREC_ST_BAD_VALUE, DF(interact, out_stride), x.out_stride,
	       "INTERACT: CAT's out_stride too small");
	x = d;
	x.flags = CSREC_INTERACT_F_SELF;
	x.out_stride = 4 * (dim + 15) - 4;
	c = cmd_desc(CSREC_OP_INTERACT, &x, sizeof(x));
	expect(&ioq, &c, CSREC_ST_BAD_VALUE, DF(interact, out_stride), x.out_stride,
	       "INTERACT: F_SELF's out_stride too small");
	x = d;
	x.batch = x.vec_stride = x.in_stride = 0xfffffffc;
	x.nvec = 64;
	x.out_stride = 0xfffffffc;
	c = cmd_desc(CSREC_OP_INTERACT, &x, sizeof(x));
	expect(&ioq, &c, CSREC_ST_OUT_OF_BOUNDS, DF(interact, in_off), A_TABLE,
	       "INTERACT: an extent beyond 2^64");
	x = d;
	x.nvec = 1;
	c = cmd_desc(CSREC_OP_INTERACT, &x, sizeof(x));
	expect_ok(&ioq, &c, batch, "INTERACT of one vector");
	ok(!memcmp(f_at(A_OUT + 200), f_at(A_TABLE + 256), 4 * dim), "INTERACT: is that vector");
	run_patches(CSREC_OP_INTERACT, "INTERACT", &d, sizeof(d), p, sizeof(p) / sizeof(p[0]));
	run_operands(CSREC_OP_INTERACT, "INTERACT", &d, sizeof(d), o, 2);
}

static void test_mlp(void)
{
	const unsigned int in = 21, out = 7, batch = 3, xs = 96, ws = 88, ys = 32;
	struct csrec_mlp_desc d = {
		.batch = batch, .in_dim = in, .out_dim = out, .act = CSREC_ACT_NONE,
		.x_key = K_DRAM, .w_key = K_DRAM, .y_key = K_DRAM,
		.x_off = A_TABLE, .w_off = A_TABLE + 0x1004, .y_off = A_OUT,
		.x_stride = xs, .w_stride = ws, .y_stride = ys,
	}, b, x;
	static const struct patch p[] = {
		VAL(mlp, flags, 2, BAD_FLAGS),
		RSV(mlp, rsvd14), RSV(mlp, rsvd76), RSV(mlp, rsvd80),
		RSV(mlp, bias_key), RSV(mlp, bias_off),
		VAL(mlp, batch, 0, BAD_VALUE),
		VAL(mlp, in_dim, 0, BAD_VALUE), VAL(mlp, in_dim, 4097, BAD_VALUE),
		VAL(mlp, out_dim, 0, BAD_VALUE), VAL(mlp, out_dim, 4097, BAD_VALUE),
		VAL(mlp, act, 3, BAD_VALUE), VAL(mlp, dtype, 1, BAD_VALUE),
		VAL(mlp, x_stride, 98, BAD_ALIGN), VAL(mlp, x_stride, 80, BAD_VALUE),
		VAL(mlp, w_stride, 90, BAD_ALIGN), VAL(mlp, w_stride, 80, BAD_VALUE),
		VAL(mlp, y_stride, 30, BAD_ALIGN), VAL(mlp, y_stride, 24, BAD_VALUE),
		ANY("batch too large", mlp, batch, 4, 0xffffffff, OUT_OF_BOUNDS,
		    DF(mlp, x_off), A_TABLE),
	};
	static const struct operand o[] = {
		OPER(mlp, x, false), OPER(mlp, w, false), OPER(mlp, bias, false),
		OPER(mlp, y, true),
	};
	unsigned int s, i, e, act, bad;
	struct csrec_cmd c;
	float want, bias;

	ready();
	for (s = 0; s < batch; s++)
		for (e = 0; e < in; e++)
			f_at(d.x_off + s * xs)[e] = cell(s, e);
	for (i = 0; i < out; i++) {
		for (e = 0; e < in; e++)
			f_at(d.w_off + i * ws)[e] = cell(i + 9, e + i * i);
		f_at(A_WEIGHTS)[i] = (float)((int)i * 10 - 30);
	}
	b = d;
	b.flags = CSREC_MLP_F_BIAS;
	b.bias_key = K_DRAM;
	b.bias_off = A_WEIGHTS;
	for (act = 0; act < 4; act++) {
		x = act & 1 ? b : d;
		x.act = act & 2 ? CSREC_ACT_RELU : CSREC_ACT_NONE;
		memset(f_at(A_OUT), 0xaa, batch * ys);
		c = cmd_desc(CSREC_OP_MLP, &x, sizeof(x));
		expect_ok(&ioq, &c, batch, act & 1 ? "MLP with bias" : "MLP");
		for (s = 0, bad = 0; s < batch; s++) {
			for (i = 0; i < out; i++) {
				bias = act & 1 ? (float)((int)i * 10 - 30) : 0;
				for (e = 0, want = bias; e < in; e++)
					want += cell(s, e) * cell(i + 9, e + i * i);
				if (act & 2 && want < 0)
					want = 0;
				bad += f_at(A_OUT + s * ys)[i] != want;
			}
			bad += ((uint32_t *)f_at(A_OUT + s * ys))[out] != 0xaaaaaaaa;
		}
		ok(!bad, "MLP: y = %s(w x%s), nothing between rows", act & 2 ? "relu" : "",
		   act & 1 ? " + bias" : "");
	}
	x = b;
	x.act = CSREC_ACT_SIGMOID;
	x.in_dim = 1;
	x.out_dim = 4;
	x.batch = 1;
	f_at(d.x_off)[0] = 1;
	for (i = 0; i < 4; i++) {
		f_at(d.w_off + i * ws)[0] = 0;
		f_at(A_WEIGHTS)[i] = i == 0 ? 0 : i == 1 ? 1000 : i == 2 ? -1000 : 1;
	}
	c = cmd_desc(CSREC_OP_MLP, &x, sizeof(x));
	expect_ok(&ioq, &c, 1, "MLP with sigmoid");
	ok(f_at(A_OUT)[0] == 0.5f && f_at(A_OUT)[1] == 1.0f && f_at(A_OUT)[2] < 1e-30f &&
	   f_at(A_OUT)[2] >= 0 && f_at(A_OUT)[3] > 0.7310585f && f_at(A_OUT)[3] < 0.7310587f,
	   "MLP: sigmoid of 0, 1000, -1000, 1");
	run_patches(CSREC_OP_MLP, "MLP", &d, sizeof(d), p, sizeof(p) / sizeof(p[0]));
	run_operands(CSREC_OP_MLP, "MLP", &b, sizeof(b), o, 4);
}

/* --- interrupt coalescing, DB_STATE, counts that wrap --- */

#define LONG_WAIT	1000000		/* cycles; no step of these tests takes as many */

static void step(unsigned int cycles)
{
	csrec_model_step(m, cycles);
	while (answer_one())
		;
}

/* Runs until @n completions that were not taken are there, and then somewhat longer. */
static void run_posted(const struct queue *q, unsigned int n)
{
	struct csrec_cqe cqe;
	unsigned int i;

	for (i = 0; i < 10000 && !posted(q, q->head + n - 1, &cqe); i++)
		step(10);
	if (i == 10000)
		bail("a command got no completion");
	for (i = 0; i < 20; i++)
		step(10);
}

static struct csrec_cmd cmd_coalesce(const struct queue *q, uint16_t count, uint32_t cycles,
				     uint16_t flags)
{
	struct csrec_cmd c = cmd_queue_create(q, DOMAIN);

	B(c, queue)->irq_count = count;
	B(c, queue)->irq_cycles = cycles;
	B(c, queue)->qflags = flags;
	return c;
}

/* @q anew, with these parameters. */
static void coalesce(struct queue *q, uint16_t count, uint32_t cycles, uint16_t flags)
{
	struct csrec_cmd c = cmd_queue_delete(q->id);
	unsigned int id = q->id;

	make(&c);
	ring_memory(q, id, 4, id, id == 1 ? H_SQ : H_SQ2, id == 1 ? H_CQ : H_CQ2);
	c = cmd_coalesce(q, count, cycles, flags);
	make(&c);
}

/* @n NOPs at once, until their completions are there. They are not taken. */
static void nops(struct queue *q, unsigned int n, uint8_t flags)
{
	struct csrec_cmd c = cmd(CSREC_OP_NOP);
	unsigned int i, before = q->tail - q->head;

	c.flags = flags;
	for (i = 0; i < n; i++)
		put(q, &c);
	ring(q);
	run_posted(q, before + n);
}

static void take_all(struct queue *q)
{
	struct csrec_cqe cqe;

	while (take(q, &cqe))
		;
	ring(q);
}

static uint64_t cycles_now(void)
{
	return reg(CSREC_REG_CNT_CYCLES);
}

static void test_coalescing(void)
{
	struct csrec_cmd c = cmd(CSREC_OP_NOP);
	unsigned int n, i;
	uint64_t from;

	ready();
	coalesce(&ioq, 3, LONG_WAIT, 0);
	n = irqs[1];
	nops(&ioq, 2, 0);
	eq(irqs[1], n, "irq_count 3: no interrupt for two completions");
	eq(reg(CSREC_REG_STATUS), CSREC_STATUS_READY, "... and the device is not BUSY meanwhile");
	nops(&ioq, 1, 0);
	eq(irqs[1], n + 1, "... but with the third");
	take_all(&ioq);
	nops(&ioq, 7, 0);
	eq(irqs[1], n + 3, "... and two for seven at once");
	nops(&ioq, 1, 0);
	eq(irqs[1], n + 3, "... the seventh and eighth wait");
	nops(&ioq, 2, CSREC_CMD_F_NOIRQ);
	eq(irqs[1], n + 3, "completions with F_NOIRQ do not count");
	c.opcode = 0x7f;
	put(&ioq, &c);
	ring(&ioq);
	run_posted(&ioq, 11);
	eq(irqs[1], n + 4, "one with an error does");
	take_all(&ioq);

	nops(&ioq, 2, 0);
	take_all(&ioq);
	from = cycles_now();
	run();
	ok(cycles_now() - from < LONG_WAIT / 2, "what the host has consumed waits no more");
	eq(irqs[1], n + 4, "... and has no interrupt");
	nops(&ioq, 2, 0);
	eq(irqs[1], n + 4, "... the count begins anew");
	take(&ioq, &(struct csrec_cqe){ 0 });
	ring(&ioq);
	step(100);
	nops(&ioq, 1, 0);
	eq(irqs[1], n + 5, "what it has consumed of those that wait still counts");
	take_all(&ioq);
	eq(reg(CSREC_REG_CNT_IRQS), tally.irqs, "interrupts are counted");

	coalesce(&ioq, 1, LONG_WAIT, 0);
	n = irqs[1];
	nops(&ioq, 4, 0);
	eq(irqs[1], n + 4, "irq_count 1: an interrupt each, whatever irq_cycles");
	coalesce(&ioq, 0, LONG_WAIT, 0);
	n = irqs[1];
	nops(&ioq, 4, 0);
	eq(irqs[1], n + 4, "irq_count 0 is 1");
	coalesce(&ioq, 2, LONG_WAIT, 0);
	n = irqs[1];
	for (i = 0; i < 5; i++) {
		nops(&ioq, 2, 0);
		take_all(&ioq);
	}
	eq(irqs[1], n + 5, "irq_count 2: one for each pair");
}

/* Cycles from now until @q's vector is requested, 0 if it is not. */
static uint64_t until_irq(const struct queue *q)
{
	uint64_t from = cycles_now();
	unsigned int i, n = irqs[q->vector];

	for (i = 0; i < 20000 && irqs[q->vector] == n; i++)
		step(1);
	return irqs[q->vector] == n ? 0 : cycles_now() - from;
}

#define WAIT_CYCLES	6000
#define SLACK		1000	/* cycles: run_posted() stops that late at most, and steps are coarse */

static void test_irq_timer(void)
{
	struct csrec_cmd c;
	struct csrec_cqe cqe;
	unsigned int n, n2, i;
	uint64_t from, t;

	ready();
	coalesce(&ioq, 8, WAIT_CYCLES, 0);
	n = irqs[1];
	nops(&ioq, 1, 0);
	eq(irqs[1], n, "fewer than irq_count wait");
	ok(csrec_model_busy(m), "... which an idle device still runs for");
	t = until_irq(&ioq);
	ok(t > WAIT_CYCLES - SLACK && t < WAIT_CYCLES + SLACK,
	   "... until the first has waited irq_cycles (%llu of %u)", (unsigned long long)t,
	   WAIT_CYCLES);
	run();
	eq(irqs[1], n + 1, "... then one interrupt");
	ok(!csrec_model_busy(m), "... and the device is idle");
	nops(&ioq, 1, 0);
	from = cycles_now();
	while (cycles_now() - from < WAIT_CYCLES / 2)
		step(10);
	nops(&ioq, 1, 0);
	t = until_irq(&ioq);
	ok(t > SLACK && t < WAIT_CYCLES / 2 + SLACK, "the time is the first one's, not the last's");
	run();
	eq(irqs[1], n + 2, "... and one interrupt is for all");
	nops(&ioq, 1, 0);
	run();
	eq(irqs[1], n + 3, "the next one waits anew, and not for ever");
	take_all(&ioq);
	nops(&ioq, 3, 0);
	from = cycles_now();
	while (cycles_now() - from < WAIT_CYCLES / 2)
		step(10);
	take_all(&ioq);
	nops(&ioq, 1, 0);
	t = until_irq(&ioq);
	ok(t > WAIT_CYCLES - SLACK && t < WAIT_CYCLES + SLACK,
	   "after the first was consumed the time is that of the next");
	take_all(&ioq);

	/* two queues, two timers, the longer one first */
	coalesce(&ioq, 8, 2 * WAIT_CYCLES, 0);
	coalesce(&ioq2, 8, WAIT_CYCLES, 0);
	n = irqs[1];
	n2 = irqs[2];
	nops(&ioq, 1, 0);
	nops(&ioq2, 1, 0);
	step(WAIT_CYCLES + WAIT_CYCLES / 2);
	ok(irqs[1] == n && irqs[2] == n2 + 1, "each queue has its own time: the shorter");
	until_irq(&ioq);
	run();
	ok(irqs[1] == n + 1 && irqs[2] == n2 + 1, "... and the longer");

	/* the device awaits memory while a completion waits */
	coalesce(&ioq, 8, WAIT_CYCLES, 0);
	n = irqs[1];
	held = (struct window){ HOST_BASE + H_DATA, HOST_BASE + H_DATA + 0x1000 };
	take_all(&ioq2);
	c = cmd_copy(K_DRAM, 0, K_HOST, 0, 64);
	put(&ioq2, &c);
	ring(&ioq2);
	nops(&ioq, 1, 0);
	run();
	eq(irqs[1], n + 1, "the time passes also while host memory does not answer");
	held = none;
	run();

	/* the write of a completion fails: what waits is told of all the same */
	coalesce(&ioq, 8, WAIT_CYCLES, 0);
	n = irqs[1];
	nops(&ioq, 1, 0);
	broken = (struct window){ ioq.cq, ioq.cq + 4096 };
	c = cmd(CSREC_OP_NOP);
	put(&ioq, &c);
	ring(&ioq);
	run();
	broken = none;
	eq(irqs[1], n + 1, "a queue that has stopped still tells of what waits");

	coalesce(&ioq, 0xffff, 0xffffffff, 0);
	n = irqs[1];
	nops(&ioq, 15, 0);
	eq(irqs[1], n, "the largest count and time");
	c = cmd_queue_delete(1);
	expect_ok(&admin, &c, 0, "QUEUE_DELETE while completions wait");
	run();
	eq(irqs[1], n, "... forgets that they do");
	ring_memory(&ioq, 1, 4, 1, H_SQ, H_CQ);
	c = cmd_coalesce(&ioq, 2, LONG_WAIT, 0);
	make(&c);
	nops(&ioq, 1, 0);
	eq(irqs[1], n, "... a new queue begins at none");
	nops(&ioq, 1, 0);
	eq(irqs[1], n + 1, "... and counts");
	nops(&ioq, 1, 0);
	set_reg(CSREC_REG_CTRL, 0);
	run();
	ok(irqs[1] == n + 1 && reg(CSREC_REG_STATUS) == 0, "disable forgets them, too");
	enable();
	ring_memory(&ioq, 1, 4, 1, H_SQ, H_CQ);
	make_queue(&ioq, DOMAIN);
	ring_memory(&ioq2, 2, 4, 2, H_SQ2, H_CQ2);
	make_queue(&ioq2, DOMAIN);
	coalesce(&ioq, 2, WAIT_CYCLES, 0);
	n = irqs[1];
	nops(&ioq, 1, 0);
	csrec_model_reset(m);
	forget_pending();
	ok(!csrec_model_busy(m), "reset while a completion waits: idle");
	for (i = 0; i < 2 * WAIT_CYCLES / 100; i++)
		step(100);
	eq(irqs[1], n, "... and no interrupt");

	/*
	 * The host sees a completion, and consumes it, before its write is answered. When it
	 * is, there is nothing left to wait for an interrupt.
	 */
	for (i = 0; i < 3; i++) {
		static const uint16_t irq_count[] = { 3, 0, 1 };

		ready();
		coalesce(&ioq, irq_count[i], LONG_WAIT, 0);
		n = irqs[1];
		unanswered = (struct window){ ioq.cq, ioq.cq + 4096 };
		c = cmd(CSREC_OP_NOP);
		put(&ioq, &c);
		ring(&ioq);
		while (!posted(&ioq, 0, &cqe))
			step(10);
		take_all(&ioq);
		eq(reg(CSREC_REG_CNT_BAD_DOORBELL), 0,
		   "a completion may be consumed before its write is answered");
		unanswered = none;
		from = cycles_now();
		run();
		ok(cycles_now() - from < LONG_WAIT / 2, "... then it does not wait");
		eq(irqs[1], n + !!i, i ? "... but has its interrupt where each has one" :
				       "... nor has an interrupt");
	}
}

static void test_noirq_queue(void)
{
	static const uint32_t waits[][2] = { { 0, 0 }, { 1, 100 }, { 2, 100 }, { 3, LONG_WAIT } };
	struct csrec_cmd c;
	unsigned int i, n;

	ready();
	for (i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		coalesce(&ioq, waits[i][0], waits[i][1], CSREC_QUEUE_HW_F_NOIRQ);
		n = irqs[1];
		nops(&ioq, 6, 0);
		c = cmd(0x7f);
		put(&ioq, &c);
		broken = (struct window){ ioq.sq + 7 * 64, ioq.sq + 8 * 64 };
		put(&ioq, &c);
		ring(&ioq);
		run_posted(&ioq, 8);
		broken = none;
		ok(!csrec_model_busy(m), "QFLAGS_NOIRQ, count %u, cycles %u: nothing waits",
		   waits[i][0], waits[i][1]);
		eq(irqs[1], n, "... and there is no interrupt");
	}
	coalesce(&ioq, 0, 0, 0);
	n = irqs[1];
	nops(&ioq, 1, 0);
	eq(irqs[1], n + 1, "a queue without it after one with it has interrupts");
}

static uint64_t db_state(unsigned int qid)
{
	return reg(db_base + ((uint64_t)qid << db_shift) + CSREC_DB_STATE);
}

static uint64_t counts(uint32_t sq, uint32_t cq)
{
	return (uint64_t)sq << CSREC_DBS_SQ_TAIL_SHIFT | (uint64_t)cq << CSREC_DBS_CQ_TAIL_SHIFT;
}

static void test_db_state(void)
{
	uint32_t page = db_base + (1u << db_shift);
	struct csrec_cmd c = cmd(CSREC_OP_NOP);
	uint64_t bad;
	unsigned int i, n;

	csrec_model_reset(m);
	for (i = n = 0; i < (CSREC_BAR_REG_SIZE - db_base) >> db_shift; i++)
		n += db_state(i) != 0;
	eq(n, 0, "DB_STATE before enable: 0 in each page");
	ready();
	eq(db_state(0), counts(admin.tail, admin.tail), "DB_STATE of the admin queue");
	ok(admin.tail, "... which has done something");
	for (i = 3, n = 0; i < (CSREC_BAR_REG_SIZE - db_base) >> db_shift; i++)
		n += db_state(i) != 0;
	eq(n, 0, "DB_STATE of queues that do not exist, or cannot: 0");
	eq(db_state(1), 0, "DB_STATE of a new queue");
	for (i = 0; i < 7; i++)
		put(&ioq, &c);
	ring(&ioq);
	run();
	ring(&ioq);
	for (i = 0; i < 4; i++)
		put(&ioq, &c);
	ring(&ioq);
	run();
	eq(db_state(1), counts(11, 8), "eleven commands told, room for eight completions");
	eq(db_state(2), 0, "... and none in the other queue");
	eq(csrec_model_read(m, page + CSREC_DB_STATE, 4), 11, "lower half by a 4-byte read");
	eq(csrec_model_read(m, page + CSREC_DB_STATE + 4, 4), 8, "upper half by a 4-byte read");
	eq(csrec_model_read(m, page + CSREC_DB_STATE, 2) |
	   csrec_model_read(m, page + CSREC_DB_STATE + 2, 4) |
	   csrec_model_read(m, page + CSREC_DB_STATE + 4, 8), 0, "other reads give 0");
	for (i = n = 0; i < 4096; i += 8)
		n += i != CSREC_DB_STATE && reg(page + i) != 0;
	eq(n, 0, "the doorbell reads as 0, and so does the rest of its page");
	bad = reg(CSREC_REG_CNT_BAD_WRITE);
	set_reg(page + CSREC_DB_STATE, 0);
	eq(reg(CSREC_REG_CNT_BAD_WRITE), bad + 1, "a write to DB_STATE is dropped");
	raw_doorbell(1, 99, 0);
	raw_doorbell(1, 12, 9);
	eq(db_state(1), counts(11, 8), "nor do refused doorbells change it");
	take_all(&ioq);
	run();
	eq(db_state(1), counts(11, 11), "room given: all are there");

	held = (struct window){ ioq.cq, ioq.cq + 4096 };
	put(&ioq, &c);
	ring(&ioq);
	run();
	eq(db_state(1), counts(12, 11), "a completion on its way does not count");
	held = none;
	run();
	eq(db_state(1), counts(12, 12), "... until it is there");
	c = cmd_queue_delete(1);
	expect_ok(&admin, &c, 0, "QUEUE_DELETE");
	eq(db_state(1), 0, "DB_STATE of a deleted queue: 0");
	set_reg(CSREC_REG_CTRL, 0);
	run();
	eq(db_state(0) | db_state(2), 0, "DB_STATE after disable: 0");
}

/* Counts run modulo 2^32: queues that begin shortly before. */
static void test_wrap(void)
{
	struct csrec_model_config cfg = CSREC_MODEL_CONFIG_DEFAULT;
	struct csrec_model *usual = m;
	struct csrec_cmd c = cmd(CSREC_OP_NOP);
	struct csrec_cqe cqe;
	uint32_t first = -32u;		/* a multiple of twice the ring: CQ slots start as zero */
	unsigned int i, good, n;
	uint64_t bad;

	cfg.dram_size = DRAM_SIZE;
	cfg.first_count = first;
	if (csrec_model_create(&m, &cfg, dram, &ops, NULL))
		bail("csrec_model_create() failed");
	broken = held = none;
	memset(&tally, 0, sizeof(tally));
	ioq = ioq2 = (struct queue){ 0 };
	ring_memory(&admin, 0, 4, 0, H_ASQ, H_ACQ);
	admin.tail = admin.head = admin.irqs_seen = first;
	set_reg(CSREC_REG_ASQ_BASE, admin.sq);
	set_reg(CSREC_REG_ACQ_BASE, admin.cq);
	set_reg(CSREC_REG_AQ_SIZE, admin.log2);
	set_reg(CSREC_REG_CTRL, CSREC_CTRL_ENABLE);
	run();
	ring_memory(&ioq, 1, 4, 1, H_SQ, H_CQ);
	ioq.tail = ioq.head = ioq.irqs_seen = first;
	ring_memory(&ioq2, 2, 3, 2, H_SQ2, H_CQ2);
	ioq2.tail = ioq2.head = ioq2.irqs_seen = first;
	n = irqs[1];
	c = cmd_coalesce(&ioq, 4, LONG_WAIT, 0);
	make(&c);
	make_queue(&ioq2, DOMAIN);
	c = cmd(CSREC_OP_NOP);
	for (i = good = 0; i < 50; i++) {
		cqe = do1(&ioq2, &c);
		good += is(&cqe, c.cid, CSREC_ST_OK, 0, 0) && cqe.sq_head == (uint16_t)ioq2.tail &&
			db_state(2) == counts(ioq2.tail, ioq2.tail);
	}
	ok(good == 50 && ioq2.tail == 18, "one by one past 2^32: phase, sq_head, DB_STATE");
	for (i = good = 0; i < 60; i++) {
		cqe = do1(&admin, &c);
		good += is(&cqe, c.cid, CSREC_ST_OK, 0, 0);
	}
	eq(good, 60, "... on the admin queue");

	/* to four before, then eight at once, and doorbells that are wrong by one */
	for (i = 0; i < 28; i += 4) {
		nops(&ioq, 4, 0);
		take_all(&ioq);
	}
	ok(ioq.tail == -4u && irqs[1] == n + 7, "four before 2^32");
	bad = reg(CSREC_REG_CNT_BAD_DOORBELL);
	raw_doorbell(1, 13, -4u);
	eq(reg(CSREC_REG_CNT_BAD_DOORBELL), ++bad, "a tail one too far, past 2^32");
	raw_doorbell(1, -5u, -4u);
	eq(reg(CSREC_REG_CNT_BAD_DOORBELL), ++bad, "a tail going back");
	raw_doorbell(1, -4u, -3u);
	eq(reg(CSREC_REG_CNT_BAD_DOORBELL), ++bad, "a head beyond posted");
	raw_doorbell(1, -4u, 0);
	eq(reg(CSREC_REG_CNT_BAD_DOORBELL), ++bad, "... past 2^32");
	nops(&ioq, 16, 0);
	eq(db_state(1), counts(12, 12), "a whole ring at once past 2^32");
	eq(irqs[1], n + 11, "... with an interrupt for every four");
	raw_doorbell(1, -1u, 0);
	eq(reg(CSREC_REG_CNT_BAD_DOORBELL), ++bad, "a tail going back past 2^32");
	raw_doorbell(1, 12, 0);
	eq(reg(CSREC_REG_CNT_BAD_DOORBELL), bad, "a head at 2^32 exactly");
	ioq.head += 4;
	raw_doorbell(1, 12, -1u);
	eq(reg(CSREC_REG_CNT_BAD_DOORBELL), ++bad, "a head going back past 2^32");
	for (i = good = 0; i < 12; i++)
		good += take(&ioq, &cqe) && is(&cqe, ioq2.tail ? cqe.cid : 0, CSREC_ST_OK, 0, 0);
	eq(good, 12, "all completions are where they belong");
	forget_pending();
	csrec_model_destroy(m);
	m = usual;
}

/* --- a host that changes what the device has read --- */

static void test_single_fetch(void)
{
	struct csrec_mlp_desc d = {
		.batch = 1, .in_dim = 16, .out_dim = 8, .act = CSREC_ACT_NONE,
		.x_key = K_DRAM, .w_key = K_DRAM, .y_key = K_DRAM,
		.x_off = A_TABLE, .w_off = A_TABLE + 0x1000, .y_off = A_OUT,
		.x_stride = 64, .w_stride = 64, .y_stride = 64,
	};
	struct csrec_cmd c[8];
	struct csrec_cqe cqe;
	unsigned int i, good = 0, zeros = 0;
	uint32_t v;

	ready();
	c[0] = cmd_fence_set(KEY(1, 9), DOMAIN, 0);
	expect_ok(&admin, &c[0], 0, "FENCE_SET");
	memset(f_at(A_TABLE), 0, 0x2000);
	memset(f_at(A_OUT), 0xaa, 64);
	memcpy(host + H_DATA, &d, sizeof(d));
	spoilt = (struct window){ ioq.sq, ioq.sq + 8 * 64 };
	spoilt2 = (struct window){ HOST_BASE + H_DATA, HOST_BASE + H_DATA + sizeof(d) };
	spoilt_bytes = 0;
	c[0] = cmd_fence(CSREC_OP_WAIT, KEY(1, 9), 1);
	c[1] = cmd(CSREC_OP_NOP);
	c[2] = cmd_fill(K_DRAM, 0, 4096, 0x12345678);
	c[3] = cmd_copy(K_DRAM, 0x8000, K_DRAM, 0, 4096);
	c[3].flags = CSREC_CMD_F_FENCE;
	c[4] = cmd(CSREC_OP_MLP);
	B(c[4], desc)->desc_key = K_HOST;
	B(c[4], desc)->desc_len = sizeof(d);
	c[5] = cmd(CSREC_OP_FENCE);
	c[6] = cmd_fence(CSREC_OP_SIGNAL, KEY(1, 9), 5);
	c[7] = cmd(0x77);
	for (i = 0; i < 8; i++)
		put(&ioq, &c[i]);
	ring(&ioq);
	run();
	ok(!posted(&ioq, 0, &cqe) && host[H_SQ] == 0xff, "a WAIT blocks, its slot is overwritten");
	c[0] = cmd_fence(CSREC_OP_SIGNAL, KEY(1, 9), 1);
	expect_ok(&ioq2, &c[0], 1, "SIGNAL from elsewhere");
	c[0] = cmd_fence(CSREC_OP_WAIT, KEY(1, 9), 1);
	while (take(&ioq, &cqe))
		good += (cqe.status >> CSREC_CQE_STATUS_SHIFT) ==
			(cqe.cid == c[7].cid ? CSREC_ST_BAD_OPCODE : CSREC_ST_OK);
	eq(good, 8, "commands do what they said when they were fetched");
	eq(spoilt_bytes, 8 * 64 + sizeof(d), "each byte of commands and descriptor is read once");
	for (i = good = 0; i < 1024; i++) {
		memcpy(&v, region_mem(K_DRAM) + 0x8000 + 4 * i, 4);
		good += v == 0x12345678;
	}
	for (i = 0; i < 8; i++)
		zeros += f_at(A_OUT)[i] == 0;
	ok(good == 1024 && zeros == 8, "... and so do FILL, COPY and MLP");
	spoilt = spoilt2 = none;
}

/* Doorbells by the hundred, right and wrong: others are served, and nothing is lost. */
static void test_doorbell_flood(void)
{
	static const unsigned int lens[] = { 1, 2, 4, 8 };
	struct csrec_cmd c = cmd(CSREC_OP_NOP);
	uint64_t bad, bad_write, state;
	unsigned int i, len, off, good = 0, bad_db = 0, dropped = 0;

	ready();
	ring(&ioq2);
	state = db_state(0);
	bad = reg(CSREC_REG_CNT_BAD_DOORBELL);
	bad_write = reg(CSREC_REG_CNT_BAD_WRITE);
	for (i = 0; i < 400; i++) {
		if (i % 4 == 3) {
			good += !(do1(&ioq2, &c).status >> CSREC_CQE_STATUS_SHIFT);
			continue;
		}
		len = lens[rnd() % 4];
		off = rnd() % (4096 / len) * len;
		if (rnd() % 4 == 0)
			off = 0;
		/* a count that is never right: queue 1 has done nothing and has 8 slots */
		csrec_model_write(m, db_base + (1ull << db_shift) + off, len,
				  (uint64_t)rnd() << 32 | rnd() << 8 | 0x80000009);
		if (len == 8 && !off)
			bad_db++;
		else
			dropped++;
		csrec_model_step(m, rnd() % 8);
	}
	eq(good, 100, "a hundred commands amid wrong writes to another queue's doorbell page");
	eq(reg(CSREC_REG_CNT_BAD_DOORBELL), bad + bad_db, "... refused doorbells are counted");
	eq(reg(CSREC_REG_CNT_BAD_WRITE), bad_write + dropped, "... and dropped writes");
	ok(db_state(1) == 0 && db_state(0) == state, "... and no other queue moved");
	eq(reg(CSREC_REG_STATUS), CSREC_STATUS_READY, "... nor is the device BUSY");
	expect_ok(&ioq, &c, 0, "the queue whose page it was works");
}

static const struct { const char *name; void (*run)(void); } tests[] = {
	{ "registers", test_registers }, { "enable", test_enable },
	{ "onchip", test_onchip_stays }, { "doorbells", test_doorbells },
	{ "phase", test_phase_and_room }, { "interrupts", test_interrupts },
	{ "fetch", test_fetch_errors }, { "order", test_order }, { "fences", test_fences },
	{ "heads", test_heads }, { "copy", test_copy }, { "fill", test_fill },
	{ "region_set", test_region_set }, { "page_lists", test_page_lists },
	{ "queue_admin", test_queue_admin }, { "in_flight", test_in_flight },
	{ "held", test_held }, { "emb", test_emb }, { "tt", test_tt },
	{ "interact", test_interact }, { "mlp", test_mlp },
	{ "coalescing", test_coalescing }, { "irq_timer", test_irq_timer },
	{ "noirq_queue", test_noirq_queue }, { "db_state", test_db_state },
	{ "wrap", test_wrap }, { "single_fetch", test_single_fetch },
	{ "doorbell_flood", test_doorbell_flood },
};

/* --- a trace of random commands, to be compared between models --- */

/*
 * One command after another, some with a field spoilt; a line for each: completion and
 * a hash of all memory that commands may write. Inputs can only be read, outputs lie
 * elsewhere, so nothing is left unspecified: two models must print the same.
 */
#define IN_SIZE		0x10000
#define OUT_SIZE	0x8000
#define T_IDS		0xc000		/* in an input region: ids, offsets, weights, descriptor */
#define T_OFFSETS	0xc400
#define T_WEIGHTS	0xc800
#define T_DESC		0xf000

static const uint32_t t_in[] = { KEY(1, 10), KEY(1, 11) }, t_out[] = { KEY(1, 12), KEY(1, 13) };
static const uint32_t t_chip = KEY(1, 14), t_load = KEY(1, 15);
static uint8_t *t_in_mem[2], *t_out_mem[2];

static uint32_t below(uint32_t n)
{
	return (rnd() ^ rnd() >> 12) % n;
}

/* Bits of a float: anything, ordinary, around the subnormals, small integers */
static uint32_t float_bits(unsigned int kind)
{
	static const uint32_t edge[] = {
		0, 0x80000000, 1, 0x807fffff, 0x00800000, 0x3f800000, 0xbf800000, 0x7f7fffff,
		0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x7f800001, 0x33800000,
	};
	uint32_t sign = rnd() << 31, mant = rnd() & 0x7fffff;
	float f;

	switch (kind) {
	case 0:
		return below(4) ? rnd() << 16 ^ rnd() : edge[below(sizeof(edge) / 4)];
	case 1:
		return sign | (122 + below(10)) << 23 | mant;
	case 2:
		return sign | (50 + below(16)) << 23 | mant;
	default:
		f = (float)below(17) - 8;
		memcpy(&mant, &f, 4);
		return mant;
	}
}

static void make_paged(uint32_t key, uint8_t rights, uint32_t list, uint32_t mem, uint32_t size)
{
	struct csrec_cmd c = cmd_region(key, CSREC_REGION_HOST, rights, DOMAIN,
					HOST_BASE + list, size);
	uint64_t page;
	uint32_t i;

	for (i = 0; i < size / 4096; i++) {
		page = HOST_BASE + mem + i * 4096;
		memcpy(host + list + 8 * i, &page, 8);
	}
	B(c, region)->levels = 1;
	B(c, region)->page_shift = 12;
	make(&c);
}

static void trace_regions(void)
{
	ready();
	make_region(t_in[0], CSREC_REGION_DRAM, CSREC_RIGHT_READ, DOMAIN, 0x400000, IN_SIZE);
	make_paged(t_in[1], CSREC_RIGHT_READ, H_LIST, H_DATA, IN_SIZE);
	make_region(t_out[0], CSREC_REGION_DRAM, RW, DOMAIN, 0x500000, OUT_SIZE);
	make_paged(t_out[1], RW, H_LIST + 0x1000, H_DATA + 0x20000, OUT_SIZE);
	make_region(t_chip, CSREC_REGION_ONCHIP, CSREC_RIGHT_READ, DOMAIN, 0, IN_SIZE);
	make_region(t_load, CSREC_REGION_ONCHIP, RW, DOMAIN, 0, IN_SIZE);
	t_in_mem[0] = dram + 0x400000;
	t_in_mem[1] = host + H_DATA;
	t_out_mem[0] = dram + 0x500000;
	t_out_mem[1] = host + H_DATA + 0x20000;
	memset(t_out_mem[0], 0x55, OUT_SIZE);
	memset(t_out_mem[1], 0x55, OUT_SIZE);
}

static uint64_t hash(const uint8_t *p, size_t n, uint64_t h)
{
	uint64_t v;

	for (; n; n -= 8, p += 8) {
		memcpy(&v, p, 8);
		h = (h ^ v) * 0x100000001b3;
		h ^= h >> 29;
	}
	return h;
}

/* Fresh floats in the inputs, and ids below nrows with offsets that fit, mostly. */
static void trace_inputs(uint32_t nbags, uint32_t nids, uint32_t nrows)
{
	unsigned int kind = below(4), i, k;
	uint32_t at, v;

	for (k = 0; k < 2; k++)
		for (i = 0; i < T_IDS; i += 4) {
			v = float_bits(kind);
			memcpy(t_in_mem[k] + i, &v, 4);
		}
	for (i = 0; i < nids; i++) {
		v = below(nrows + !below(200));
		for (k = 0; k < 2; k++)
			memcpy(t_in_mem[k] + T_IDS + 4 * i, &v, 4);
		v = float_bits(kind);
		for (k = 0; k < 2; k++)
			memcpy(t_in_mem[k] + T_WEIGHTS + 4 * i, &v, 4);
	}
	for (i = 0, at = below(2); i <= nbags; i++) {
		v = below(60) ? at : below(nids + 3);
		for (k = 0; k < 2; k++)
			memcpy(t_in_mem[k] + T_OFFSETS + 4 * i, &v, 4);
		at += below(5);
		if (at > nids)
			at = nids;
	}
}

static uint32_t any_in(void)
{
	return t_in[below(2)];
}

static uint32_t any_out(void)
{
	return t_out[below(2)];
}

static size_t trace_emb(struct csrec_emb_desc *d)
{
	uint32_t nbags = 1 + below(6), nids = 1 + below(30), nrows = 1 + below(20);

	*d = (struct csrec_emb_desc){
		.flags = below(2), .dim = 1 + (below(8) ? below(40) : 200 + below(56)),
		.nbags = nbags, .nids = nids, .nrows = nrows,
		.table_key = any_in(), .ids_key = any_in(), .offsets_key = any_in(),
		.out_key = any_out(),
		.table_off = 4 * below(64), .ids_off = T_IDS, .offsets_off = T_OFFSETS,
		.out_off = 4 * below(512),
	};
	d->row_stride = 4 * (d->dim + below(4));
	d->out_stride = 4 * (d->dim + below(4));
	if (d->flags & CSREC_EMB_F_WEIGHTS) {
		d->weights_key = any_in();
		d->weights_off = T_WEIGHTS;
	}
	trace_inputs(nbags, nids, nrows);
	return sizeof(*d);
}

static size_t trace_tt(struct csrec_tt_desc *d)
{
	static const uint16_t ranks[] = { 1, 2, 3, 5, 8, 9, 16, 32 };
	uint32_t nbags = 1 + below(4), nids = 1 + below(12), size[3], k;
	struct csrec_cmd c;

	do {
		*d = (struct csrec_tt_desc){
			.flags = below(4), .nbags = nbags, .nids = nids,
			.p = { 1 + below(4), 1 + below(4), 1 + below(4) },
			.q = { 1 + below(6), 1 + below(6), 1 + below(8) },
			.r = { ranks[below(8)], ranks[below(8)] },
			.core_key = { t_chip, t_chip, t_chip }, .ids_key = any_in(),
			.offsets_key = any_in(), .out_key = any_out(),
			.ids_off = T_IDS, .offsets_off = T_OFFSETS, .out_off = 4 * below(512),
		};
		size[0] = d->p[0] * d->q[0] * d->r[0];
		size[1] = d->p[1] * d->r[0] * d->q[1] * d->r[1];
		size[2] = d->p[2] * d->r[1] * d->q[2];
		for (k = 0; k < 3; k++)
			d->core_off[k] = 4 * below(20) + (k ? d->core_off[k - 1] + 4 * size[k - 1] : 0);
	} while (d->core_off[2] + 4 * size[2] > T_IDS || d->q[0] * d->q[1] * d->q[2] > 256);
	d->out_stride = 4 * (d->q[0] * d->q[1] * d->q[2] + below(4));
	d->nrows = d->p[0] * d->p[1] * d->p[2];
	if (d->flags & CSREC_TT_F_WEIGHTS) {
		d->weights_key = any_in();
		d->weights_off = T_WEIGHTS;
	}
	trace_inputs(nbags, nids, d->nrows);
	c = cmd_copy(t_load, 0, t_in[below(2)], 0, T_IDS);
	do1(&ioq, &c);
	return sizeof(*d);
}

static size_t trace_interact(struct csrec_interact_desc *d)
{
	*d = (struct csrec_interact_desc){
		.op = below(4) ? CSREC_INTERACT_DOT : CSREC_INTERACT_CAT,
		.nvec = 1 + below(10), .dim = 1 + below(40), .batch = 1 + below(3),
		.in_key = any_in(), .out_key = any_out(),
		.in_off = 4 * below(64), .out_off = 4 * below(256),
	};
	d->flags = below(2) && d->op == CSREC_INTERACT_DOT;
	d->vec_stride = 4 * (d->dim + below(4));
	d->in_stride = 4 * below(500);
	d->out_stride = 4 * (d->dim * d->nvec + 55 + below(4));
	trace_inputs(1, 1, 1);
	return sizeof(*d);
}

static size_t trace_mlp(struct csrec_mlp_desc *d)
{
	*d = (struct csrec_mlp_desc){
		.flags = below(2), .batch = 1 + below(3), .in_dim = 1 + below(70),
		.out_dim = 1 + below(20), .act = below(3),
		.x_key = any_in(), .w_key = any_in(), .y_key = any_out(),
		.x_off = 4 * below(64), .w_off = 0x2000 + 4 * below(64), .y_off = 4 * below(256),
	};
	d->x_stride = 4 * (d->in_dim + below(4));
	d->w_stride = 4 * (d->in_dim + below(4));
	d->y_stride = 4 * (d->out_dim + below(4));
	if (d->flags & CSREC_MLP_F_BIAS) {
		d->bias_key = any_in();
		d->bias_off = 0x8000 + 4 * below(64);
	}
	trace_inputs(1, 1, 1);
	return sizeof(*d);
}

static void spoil(void *p, size_t size)
{
	size_t at = below(size), n = 1 + below(8);

	while (n-- && at < size)
		((uint8_t *)p)[at++] = below(3) ? rnd() : 0;
}

static int trace(uint32_t seed, unsigned int count)
{
	union {
		struct csrec_emb_desc emb;
		struct csrec_tt_desc tt;
		struct csrec_interact_desc interact;
		struct csrec_mlp_desc mlp;
	} d;
	struct csrec_cmd c;
	struct csrec_cqe cqe;
	unsigned int n;
	uint64_t h;
	size_t size;

	mode_name = "trace";
	rng = seed;
	trace_regions();
	for (n = 0; n < count; n++) {
		unsigned int what = below(6);

		size = 0;
		if (what == 0) {
			c = cmd_copy(any_out(), below(OUT_SIZE), any_in(), below(IN_SIZE),
				     below(3) ? 1 + below(300) : 1 + below(9000));
		} else if (what == 1) {
			c = cmd_fill(any_out(), 4 * below(OUT_SIZE / 4), 4 + 4 * below(2000), rnd());
		} else if (what == 2) {
			c = cmd(CSREC_OP_EMB);
			size = trace_emb(&d.emb);
		} else if (what == 3) {
			c = cmd(CSREC_OP_TT);
			size = trace_tt(&d.tt);
		} else if (what == 4) {
			c = cmd(CSREC_OP_INTERACT);
			size = trace_interact(&d.interact);
		} else {
			c = cmd(CSREC_OP_MLP);
			size = trace_mlp(&d.mlp);
		}
		if (size) {
			unsigned int where = below(2);

			if (!below(4))
				spoil(&d, size);
			memcpy(t_in_mem[where] + T_DESC, &d, size);
			B(c, desc)->desc_key = t_in[where];
			B(c, desc)->desc_len = size;
			B(c, desc)->desc_off = T_DESC;
		}
		if (!below(12))
			spoil(c.body, sizeof(c.body));
		cqe = do1(&ioq, &c);
		h = hash(t_out_mem[0], OUT_SIZE, n);
		h = hash(t_out_mem[1], OUT_SIZE, h);
		printf("%u op %02x status %u field %04x detail %llx memory %016llx\n", n, c.opcode,
		       cqe.status >> CSREC_CQE_STATUS_SHIFT, cqe.field,
		       (unsigned long long)cqe.detail, (unsigned long long)h);
	}
	return 0;
}

/*
 * device_test [NAME ...]: all tests, or those named
 * device_test --trace SEED COUNT: no tests, but a trace to compare
 */
int main(int argc, char **argv)
{
	struct csrec_model_config cfg = CSREC_MODEL_CONFIG_DEFAULT;
	unsigned int mode, i;
	int a;

	mode_name = "create";
	cfg.dram_size = DRAM_SIZE;
	if (csrec_model_create(&m, &cfg, dram, &ops, NULL))
		bail("csrec_model_create() failed");
	if (argc < 2 || strcmp(argv[1], "--trace"))
		printf("# model: %s\n", csrec_model_name(m));
	mode_name = "at once";
	if (argc == 4 && !strcmp(argv[1], "--trace")) {
		db_base = reg(CSREC_REG_CAP_QUEUE) >> CSREC_CAPQ_DB_SHIFT;
		db_shift = reg(CSREC_REG_CAP_QUEUE) >> CSREC_CAPQ_STRIDE_SHIFT & 0xff;
		a = trace(strtoul(argv[2], NULL, 0), strtoul(argv[3], NULL, 0));
		forget_pending();
		csrec_model_destroy(m);
		return a;
	}
	test_registers();	/* learns where the doorbells are */
	for (mode = 0; mode < 2; mode++) {
		late = mode;
		mode_name = late ? "late" : "at once";
		for (i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
			bool wanted = argc < 2;

			for (a = 1; a < argc; a++)
				wanted |= !strcmp(argv[a], tests[i].name);
			if (!wanted)
				continue;
			printf("# %s\n", tests[i].name);
			tests[i].run();
		}
	}
	mode_name = "overall";
	eq(bad_transfers, 0, "no host transfer crosses a 4 KiB boundary or is empty");
	eq(early_irqs, 0, "no interrupt came before its completion");
	forget_pending();
	csrec_model_destroy(m);
	printf("1..%d\n", ntests);
	return nfailed ? 1 : 0;
}
