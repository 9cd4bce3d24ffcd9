// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The core of the device, command by command: registers, queues, administration,
 * regions, COPY and FILL, fences, errors, deletion and invalidation in flight. What is
 * expected is written here from REFERENCE.md or worked out here, never asked of a model.
 *
 * Every test runs under several timings, see main().
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dev.h"

#define CMD_FIELD(f)		offsetof(struct csrec_cmd, f)
#define BODY_FIELD(type, f)	(offsetof(struct csrec_cmd, body) + \
				 offsetof(struct csrec_body_##type, f))
#define RW			(CSREC_RIGHT_READ | CSREC_RIGHT_WRITE)
#define CNT(d, name)		reg(d, CSREC_REG_CNT_##name)

/* The timing under test */
static struct csrec_model_config timing;
static unsigned int timing_late;

static void open_dev(struct dev *d, unsigned int log2)
{
	dev_open(d, &timing);
	d->late_pct = timing_late;
	if (log2)
		enable(d, log2);
}

static void close_dev(struct dev *d)
{
	ok(!d->crossed, "no transfer crossed a 4 KiB boundary");
	dev_close(d);
}

static void fill_random(struct dev *d, uint8_t *p, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		p[i] = rnd(d);
}

/* Does @cmd end on @q with exactly this completion? */
static bool gives(struct dev *d, unsigned int qid, struct csrec_cmd cmd, unsigned int status,
		  unsigned int field, uint64_t detail)
{
	struct csrec_cqe cqe;

	cmd.cid = rnd(d);
	if (!exec(d, &d->q[qid], &cmd, &cqe)) {
		printf("# no completion\n");
		return false;
	}
	if (cqe.cid == cmd.cid && cqe_status(&cqe) == status && cqe.field == field &&
	    cqe.detail == detail && cqe.sq_head == (uint16_t)d->q[qid].tail)
		return true;
	printf("# status %u field 0x%x detail 0x%llx cid %s sq_head %u; expected %u 0x%x 0x%llx\n",
	       cqe_status(&cqe), cqe.field, (unsigned long long)cqe.detail,
	       cqe.cid == cmd.cid ? "right" : "wrong", cqe.sq_head, status, field,
	       (unsigned long long)detail);
	return false;
}

static bool good(struct dev *d, unsigned int qid, struct csrec_cmd cmd, uint64_t detail)
{
	return gives(d, qid, cmd, CSREC_ST_OK, 0, detail);
}

/* --- registers, enable, doorbells --- */

static void test_registers(void)
{
	struct dev d;
	uint64_t cap, bad;
	bool all = true;
	uint32_t off;

	open_dev(&d, 0);
	ok(reg(&d, CSREC_REG_ID) == ((uint64_t)CSREC_HW_MAJOR << 48 |
				     (uint64_t)CSREC_HW_MINOR << 32 | CSREC_ID_MAGIC), "ID");
	cap = reg(&d, CSREC_REG_CAP_QUEUE);
	ok((cap & 0xff) == 4 && (cap >> 8 & 0xff) == 12 && (cap >> 16 & 0xff) >= 12 &&
	   (cap >> 24 & 0xff) == 5 && cap >> 32 >= 0x4000 &&
	   (cap >> 32) + ((uint64_t)5 << (cap >> 16 & 0xff)) <= CSREC_BAR_REG_SIZE,
	   "CAP_QUEUE: four queues, 4096 entries, doorbell pages inside the BAR");
	ok(reg(&d, CSREC_REG_CAP_TABLE) == (64 << 16 | 256), "CAP_TABLE");
	ok(reg(&d, CSREC_REG_CAP_DRAM) == DRAM_SIZE, "CAP_DRAM");
	ok(reg(&d, CSREC_REG_CAP_ONCHIP) == ONCHIP_SIZE, "CAP_ONCHIP");
	ok(reg(&d, CSREC_REG_CAP_ENGINE) & CSREC_CAPE_COPY, "CAP_ENGINE has COPY");
	ok(reg(&d, CSREC_REG_STATUS) == 0, "STATUS before enable");

	for (off = CSREC_REG_CNT_PROGRESS; off < CSREC_REG_CNT_END; off += 8)
		all &= reg(&d, off) == 0;
	ok(all, "counters start from zero");

	set(&d, CSREC_REG_ASQ_BASE, 0x1122334455667788);
	ok(reg(&d, CSREC_REG_ASQ_BASE) == 0x1122334455667788, "a register keeps what is written");
	ok(csrec_model_read(d.m, CSREC_REG_ASQ_BASE, 4) == 0x55667788 &&
	   csrec_model_read(d.m, CSREC_REG_ASQ_BASE + 4, 4) == 0x11223344, "4-byte reads");
	ok(csrec_model_read(d.m, CSREC_REG_ASQ_BASE, 2) == 0 &&
	   csrec_model_read(d.m, CSREC_REG_ASQ_BASE + 2, 4) == 0, "other reads give 0");
	ok(reg(&d, 0x1a0) == 0 && reg(&d, 0x1000) == 0 && reg(&d, 0x7fff8) == 0,
	   "reads of what is not there give 0");

	bad = CNT(&d, BAD_WRITE);
	csrec_model_write(d.m, CSREC_REG_ASQ_BASE, 4, 0);
	csrec_model_write(d.m, CSREC_REG_ASQ_BASE + 4, 4, 0);
	csrec_model_write(d.m, CSREC_REG_ASQ_BASE, 1, 0);
	csrec_model_write(d.m, CSREC_REG_ASQ_BASE, 2, 0);
	ok(reg(&d, CSREC_REG_ASQ_BASE) == 0x1122334455667788 && CNT(&d, BAD_WRITE) == bad + 4,
	   "short writes are dropped and counted");
	set(&d, CSREC_REG_ID, 0);
	set(&d, CSREC_REG_CNT_CYCLES, 0);
	set(&d, 0x38, 0);
	set(&d, (uint32_t)(cap >> 32) + 8, 0);
	ok(CNT(&d, BAD_WRITE) == bad + 8 && reg(&d, CSREC_REG_ID),
	   "writes to what cannot be written are dropped and counted");
	csrec_model_reset(d.m);
	ok(reg(&d, CSREC_REG_ASQ_BASE) == 0 && CNT(&d, BAD_WRITE) == 0,
	   "reset clears registers and counters");
	close_dev(&d);
}

static void test_enable(void)
{
	static const struct {
		const char *what;
		uint64_t asq, acq, size;
	} bad[] = {
		{ "ASQ not aligned", RING_BASE + 32, RING_BASE, 4 },
		{ "ACQ not aligned", RING_BASE, RING_BASE + 8, 4 },
		{ "size 0", RING_BASE, RING_BASE, 0 },
		{ "size 13", RING_BASE, RING_BASE, 13 },
	};
	struct dev d;
	unsigned int i;

	open_dev(&d, 0);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint64_t status;

		set(&d, CSREC_REG_ASQ_BASE, bad[i].asq);
		set(&d, CSREC_REG_ACQ_BASE, bad[i].acq);
		set(&d, CSREC_REG_AQ_SIZE, bad[i].size);
		set(&d, CSREC_REG_CTRL, CSREC_CTRL_ENABLE);
		run(&d);
		status = reg(&d, CSREC_REG_STATUS);
		ok(status == (CSREC_STATUS_FATAL |
			      CSREC_FATAL_CONFIG << CSREC_STATUS_FATAL_SHIFT),
		   "enable with %s is FATAL_CONFIG", bad[i].what);
		set(&d, CSREC_REG_CTRL, 0);
		run(&d);
		ok(reg(&d, CSREC_REG_STATUS) == 0, "and disable clears it");
	}
	enable(&d, 12);
	ok(good(&d, 0, cmd_plain(CSREC_OP_NOP, 0), 0), "largest admin ring");
	disable(&d);
	ok(reg(&d, CSREC_REG_STATUS) == 0, "disabled");
	enable(&d, 1);
	ok(good(&d, 0, cmd_plain(CSREC_OP_NOP, 0), 0), "smallest admin ring, after disable");
	/* off and on again before the device looked */
	set(&d, CSREC_REG_CTRL, 0);
	d.q[0].tail = d.q[0].head = 0;
	memset(host_ptr(&d, d.q[0].cq), 0, 32);
	set(&d, CSREC_REG_CTRL, CSREC_CTRL_ENABLE);
	run(&d);
	ok(reg(&d, CSREC_REG_STATUS) == CSREC_STATUS_READY &&
	   good(&d, 0, cmd_plain(CSREC_OP_NOP, 0), 0), "off and on at once starts afresh");
	close_dev(&d);
}

/* Rings @q's doorbell with these counts; was it taken? */
static bool rings(struct dev *d, unsigned int qid, uint32_t tail, uint32_t head)
{
	struct queue q = { .id = qid, .tail = tail, .head = head };
	uint64_t taken = CNT(d, DOORBELLS), refused = CNT(d, BAD_DOORBELL);

	ring_doorbell(d, &q);
	if (CNT(d, DOORBELLS) + CNT(d, BAD_DOORBELL) != taken + refused + 1)
		printf("# doorbell not counted\n");
	return CNT(d, DOORBELLS) == taken + 1;
}

static void test_doorbells(void)
{
	struct csrec_cmd nop = cmd_plain(CSREC_OP_NOP, 9);
	struct csrec_cqe cqe;
	struct dev d;
	unsigned int i;

	open_dev(&d, 0);
	ok(!rings(&d, 0, 0, 0), "no doorbell before enable");
	enable(&d, 2);
	ok(rings(&d, 0, 0, 0), "nothing new is a valid doorbell");
	ok(!rings(&d, 0, 5, 0), "tail past the ring refused");
	ok(!rings(&d, 0, 0xffffffff, 0), "tail backwards refused");
	ok(!rings(&d, 0, 0, 1), "head past what was posted refused");
	ok(!rings(&d, 0, 0, 0xffffffff), "head backwards refused");
	ok(!rings(&d, 1, 0, 0), "queue that does not exist refused");
	ok(!rings(&d, 4, 0, 0) && !rings(&d, 5, 0, 0) && !rings(&d, 30, 0, 0),
	   "nor one that cannot");
	for (i = 0; i < 4; i++)
		put(&d, &d.q[0], &nop);
	ok(rings(&d, 0, 4, 0), "whole ring at once");
	run(&d);
	ok(!rings(&d, 0, 9, 0), "tail past fetched + entries refused");
	ok(!rings(&d, 0, 4, 5), "head past posted refused");
	ok(!rings(&d, 0, 3, 0), "tail backwards refused");
	for (i = 0; i < 4; i++)
		put(&d, &d.q[0], &nop);
	ok(rings(&d, 0, 8, 0), "tail may be entries ahead of fetched");
	run(&d);
	ok(CNT(&d, COMMANDS) == 4, "no room in the CQ: nothing more is started");
	ok(rings(&d, 0, 8, 4), "room is given");
	run(&d);
	ok(CNT(&d, COMMANDS) == 8, "and used");
	ok(!rings(&d, 0, 8, 3), "head backwards refused");
	for (i = 0; i < 4; i++)
		d.q[0].head++;	/* overwritten since */
	for (i = 0; i < 4 && take(&d, &d.q[0], &cqe) && cqe.cid == 9; i++)
		;
	ok(i == 4 && !take(&d, &d.q[0], &cqe), "completions of the second pass are there");
	close_dev(&d);
}

static void test_phase(void)
{
	struct dev d;
	unsigned int i, bad = 0, log2;

	for (log2 = 1; log2 <= 3; log2++) {
		open_dev(&d, log2);
		for (i = 0; i < 60 && !bad; i++)
			bad += !good(&d, 0, cmd_plain(CSREC_OP_NOP, 0), 0);
		ok(!bad && d.q[0].head == 60, "60 commands through a ring of %u", 1 << log2);
		ok(CNT(&d, COMMANDS) == 60 && CNT(&d, IRQS) == 60 && d.irqs[0] == 60 &&
		   CNT(&d, ERRORS) == 0, "counted, each with its interrupt");
		close_dev(&d);
	}
}

/* --- what is refused --- */

struct refusal {
	const char *what;
	struct csrec_cmd cmd;
	unsigned int status, field;
	uint64_t detail;
};

static struct csrec_cmd patched(struct csrec_cmd cmd, unsigned int off, uint8_t byte)
{
	((uint8_t *)&cmd)[off] = byte;
	return cmd;
}

/* Each byte of reserved field [off, off + len) alone makes @cmd RESERVED at @field. */
static bool reserved(struct dev *d, unsigned int qid, struct csrec_cmd cmd, unsigned int off,
		     unsigned int len)
{
	unsigned int i;

	for (i = 0; i < len; i += i + 1 < len && i + 3 >= len ? len - 1 - i : 3)
		if (!gives(d, qid, patched(cmd, off + i, 1 << rnd(d) % 8), CSREC_ST_RESERVED, off,
			   0))
			return false;
	return true;
}

#define RESERVED(d, cmd, type, f) \
	reserved(d, 0, cmd, BODY_FIELD(type, f), sizeof(((struct csrec_body_##type *)0)->f))

static void test_reserved(void)
{
	static const uint8_t plain[] = { CSREC_OP_NOP, CSREC_OP_FENCE };
	struct csrec_cmd c;
	struct dev d;
	unsigned int op, n = 0;
	bool all = true;

	open_dev(&d, 4);
	for (op = 0; op < 256; op++) {
		bool known = (op >= CSREC_OP_NOP && op <= CSREC_OP_WAIT) ||
			     (op >= CSREC_OP_EMB && op <= CSREC_OP_MLP) ||
			     (op >= CSREC_OP_QUEUE_CREATE && op <= CSREC_OP_FENCE_SIGNAL);

		if (known) {
			c = cmd_plain(op, 0);
			c.rsvd4 = 1;
			/* an absent engine's opcode is not known */
			if (op >= CSREC_OP_EMB && op <= CSREC_OP_MLP &&
			    !(reg(&d, CSREC_REG_CAP_ENGINE) >> (op - CSREC_OP_EMB + 1) & 1))
				all &= gives(&d, 0, c, CSREC_ST_BAD_OPCODE, 0, op);
			else
				all &= gives(&d, 0, c, CSREC_ST_RESERVED, CMD_FIELD(rsvd4), 0);
			c.flags = 4;
			if (op < CSREC_OP_EMB || op > CSREC_OP_MLP)
				all &= gives(&d, 0, c, CSREC_ST_BAD_FLAGS, CMD_FIELD(flags), 4);
		} else {
			c = cmd_plain(op, 0);
			c.flags = 0xff;
			c.rsvd4 = 1;
			all &= gives(&d, 0, c, CSREC_ST_BAD_OPCODE, CMD_FIELD(opcode), op);
			n++;
		}
	}
	ok(all && n == 239, "every opcode: known ones look at flags, then reserved; %u are not", n);

	for (n = 0; n < sizeof(plain); n++)
		ok(reserved(&d, 0, cmd_plain(plain[n], 0), 8, 56), "body of opcode %u", plain[n]);
	c = cmd_copy(0, 0, 0, 0, 0, 0);
	ok(RESERVED(&d, c, copy, pattern) && RESERVED(&d, c, copy, rsvd44) &&
	   RESERVED(&d, c, copy, rsvd48), "COPY's reserved fields, before its length");
	c = cmd_fill(0, 0, 1, 0, 0);
	ok(RESERVED(&d, c, copy, src_key) && RESERVED(&d, c, copy, src_off) &&
	   RESERVED(&d, c, copy, rsvd44) && RESERVED(&d, c, copy, rsvd48),
	   "FILL's, before its alignment");
	c = cmd_fence(CSREC_OP_SIGNAL, 0, 0xffff, 0);
	ok(RESERVED(&d, c, fence, rsvd4) && RESERVED(&d, c, fence, rsvd16), "SIGNAL's");
	c.opcode = CSREC_OP_WAIT;
	ok(RESERVED(&d, c, fence, rsvd4) && RESERVED(&d, c, fence, rsvd16), "WAIT's");
	c.opcode = CSREC_OP_FENCE_SIGNAL;
	ok(RESERVED(&d, c, fence, rsvd4) && RESERVED(&d, c, fence, rsvd16), "FENCE_SIGNAL's");
	c.opcode = CSREC_OP_FENCE_INVAL;
	ok(RESERVED(&d, c, fence, rsvd4) && RESERVED(&d, c, fence, value) &&
	   RESERVED(&d, c, fence, rsvd16), "FENCE_INVAL's");
	c = cmd_fence_set(0, 0xffff, 0, 0);
	ok(RESERVED(&d, c, fence_set, rsvd6) && RESERVED(&d, c, fence_set, rsvd16),
	   "FENCE_SET's");
	c = cmd_queue(0, 0, 0, 0xffff, 0);
	ok(RESERVED(&d, c, queue, rsvd3) && RESERVED(&d, c, queue, rsvd32), "QUEUE_CREATE's");
	c = cmd_delete(0, 0);
	ok(RESERVED(&d, c, queue, log2_entries) && RESERVED(&d, c, queue, rsvd3) &&
	   RESERVED(&d, c, queue, vector) && RESERVED(&d, c, queue, domain) &&
	   RESERVED(&d, c, queue, sq_base) && RESERVED(&d, c, queue, cq_base) &&
	   RESERVED(&d, c, queue, irq_count) && RESERVED(&d, c, queue, qflags) &&
	   RESERVED(&d, c, queue, irq_cycles) && RESERVED(&d, c, queue, rsvd32),
	   "QUEUE_DELETE's");
	c = cmd_region(0, 0xffff, 0, 0, 0, 0, 0);
	ok(RESERVED(&d, c, region, rsvd26) && RESERVED(&d, c, region, rsvd32), "REGION_SET's");
	c = cmd_inval(0, 0xffff);
	ok(RESERVED(&d, c, region, kind) && RESERVED(&d, c, region, rights) &&
	   RESERVED(&d, c, region, domain) && RESERVED(&d, c, region, base) &&
	   RESERVED(&d, c, region, size) && RESERVED(&d, c, region, levels) &&
	   RESERVED(&d, c, region, page_shift) && RESERVED(&d, c, region, rsvd26) &&
	   RESERVED(&d, c, region, page_off) && RESERVED(&d, c, region, rsvd32),
	   "REGION_INVAL's");
	for (op = CSREC_OP_EMB; op <= CSREC_OP_MLP; op++) {
		if (!(reg(&d, CSREC_REG_CAP_ENGINE) >> (op - CSREC_OP_EMB + 1) & 1))
			continue;
		ok(RESERVED(&d, cmd_plain(op, 0), desc, rsvd16), "opcode 0x%x's", op);
	}
	/* two wrong: the lower one is reported */
	c = cmd_region(0, 0xffff, 0, 0, 0, 0, 0);
	AS(&c, region)->rsvd26 = 1;
	AS(&c, region)->rsvd32[2] = 1;
	ok(gives(&d, 0, c, CSREC_ST_RESERVED, BODY_FIELD(region, rsvd26), 0), "lowest first");
	close_dev(&d);
}

static struct csrec_cmd region_with(uint8_t kind, uint8_t levels, uint8_t shift, uint32_t off)
{
	struct csrec_cmd c = cmd_region(0, KEY(9, 1), kind, RW, 0, HOST_BASE, 64);

	if (kind != CSREC_REGION_HOST)
		AS(&c, region)->base = 0;
	AS(&c, region)->levels = levels;
	AS(&c, region)->page_shift = shift;
	AS(&c, region)->page_off = off;
	return c;
}

static void test_admin(void)
{
	const uint64_t cqb = RING_BASE + RING_STRIDE + RING_STRIDE / 2;
	struct csrec_cmd queue = cmd_queue(0, 1, 4, 1, 7);
	struct csrec_cmd sq = queue, cq = queue;
	struct dev d;
	unsigned int i;

	AS(&sq, queue)->sq_base += 32;
	AS(&sq, queue)->cq_base += 8;
	AS(&cq, queue)->cq_base += 8;

	const struct refusal first[] = {
		{ "QUEUE_CREATE 0", cmd_queue(0, 0, 0, 99, 0), CSREC_ST_BAD_QUEUE,
		  BODY_FIELD(queue, qid), 0 },
		{ "QUEUE_CREATE 5", cmd_queue(0, 5, 0, 99, 0), CSREC_ST_BAD_QUEUE,
		  BODY_FIELD(queue, qid), 5 },
		{ "QUEUE_CREATE 65535", cmd_queue(0, 65535, 4, 0, 0), CSREC_ST_BAD_QUEUE,
		  BODY_FIELD(queue, qid), 65535 },
		{ "log2_entries 0", cmd_queue(0, 1, 0, 99, 0), CSREC_ST_BAD_VALUE,
		  BODY_FIELD(queue, log2_entries), 0 },
		{ "log2_entries 13", cmd_queue(0, 1, 13, 99, 0), CSREC_ST_BAD_VALUE,
		  BODY_FIELD(queue, log2_entries), 13 },
		{ "vector 5", cmd_queue(0, 1, 4, 5, 0), CSREC_ST_BAD_VALUE,
		  BODY_FIELD(queue, vector), 5 },
		{ "sq_base", sq, CSREC_ST_BAD_ALIGN, BODY_FIELD(queue, sq_base),
		  RING_BASE + RING_STRIDE + 32 },
		{ "cq_base", cq, CSREC_ST_BAD_ALIGN, BODY_FIELD(queue, cq_base), cqb + 8 },
		{ "QUEUE_DELETE 0", cmd_delete(0, 0), CSREC_ST_BAD_QUEUE, BODY_FIELD(queue, qid),
		  0 },
		{ "QUEUE_DELETE 1", cmd_delete(0, 1), CSREC_ST_BAD_QUEUE, BODY_FIELD(queue, qid),
		  1 },
		{ "QUEUE_DELETE 6", cmd_delete(0, 6), CSREC_ST_BAD_QUEUE, BODY_FIELD(queue, qid),
		  6 },
		{ "region slot 256", cmd_region(0, KEY(256, 0), 0, 0, 0, 0, 0), CSREC_ST_BAD_KEY,
		  BODY_FIELD(region, region_key), KEY(256, 0) },
		{ "region generation 0", cmd_region(0, KEY(9, 0), 0, 0, 0, 0, 0),
		  CSREC_ST_BAD_VALUE, BODY_FIELD(region, region_key), KEY(9, 0) },
		{ "kind 0", cmd_region(0, KEY(9, 1), 0, 0, 0, 1, 0), CSREC_ST_BAD_VALUE,
		  BODY_FIELD(region, kind), 0 },
		{ "kind PEER", cmd_region(0, KEY(9, 1), CSREC_REGION_PEER, 0, 0, 1, 0),
		  CSREC_ST_BAD_VALUE, BODY_FIELD(region, kind), CSREC_REGION_PEER },
		{ "kind 255", cmd_region(0, KEY(9, 1), 255, 3, 0, 0, 1), CSREC_ST_BAD_VALUE,
		  BODY_FIELD(region, kind), 255 },
		{ "rights 0", cmd_region(0, KEY(9, 1), CSREC_REGION_DRAM, 0, 0, 1, 0),
		  CSREC_ST_BAD_VALUE, BODY_FIELD(region, rights), 0 },
		{ "rights 4", cmd_region(0, KEY(9, 1), CSREC_REGION_DRAM, 4, 0, 1, 0),
		  CSREC_ST_BAD_VALUE, BODY_FIELD(region, rights), 4 },
		{ "DRAM base 32", cmd_region(0, KEY(9, 1), CSREC_REGION_DRAM, RW, 0, 32, 0),
		  CSREC_ST_BAD_ALIGN, BODY_FIELD(region, base), 32 },
		{ "ONCHIP base 1", cmd_region(0, KEY(9, 1), CSREC_REGION_ONCHIP, RW, 0, 1, 0),
		  CSREC_ST_BAD_ALIGN, BODY_FIELD(region, base), 1 },
		{ "size 0", cmd_region(0, KEY(9, 1), CSREC_REGION_DRAM, RW, 0, 64, 0),
		  CSREC_ST_BAD_LENGTH, BODY_FIELD(region, size), 0 },
		{ "DRAM one too many", cmd_region(0, KEY(9, 1), CSREC_REGION_DRAM, RW, 0, 64,
						  DRAM_SIZE - 63), CSREC_ST_OUT_OF_BOUNDS,
		  BODY_FIELD(region, base), 64 },
		{ "ONCHIP one too many", cmd_region(0, KEY(9, 1), CSREC_REGION_ONCHIP, RW, 0,
						    ONCHIP_SIZE, 1), CSREC_ST_OUT_OF_BOUNDS,
		  BODY_FIELD(region, base), ONCHIP_SIZE },
		{ "DRAM wrapping around", cmd_region(0, KEY(9, 1), CSREC_REGION_DRAM, RW, 0,
						     -64ull, 128), CSREC_ST_OUT_OF_BOUNDS,
		  BODY_FIELD(region, base), -64ull },
		{ "levels with DRAM", region_with(CSREC_REGION_DRAM, 1, 12, 0),
		  CSREC_ST_BAD_VALUE, BODY_FIELD(region, levels), 1 },
		{ "levels 3", region_with(CSREC_REGION_HOST, 3, 12, 0), CSREC_ST_BAD_VALUE,
		  BODY_FIELD(region, levels), 3 },
		{ "page_shift with DRAM", region_with(CSREC_REGION_DRAM, 0, 12, 0),
		  CSREC_ST_BAD_VALUE, BODY_FIELD(region, page_shift), 12 },
		{ "page_shift with levels 0", region_with(CSREC_REGION_HOST, 0, 12, 1),
		  CSREC_ST_BAD_VALUE, BODY_FIELD(region, page_shift), 12 },
		{ "page_shift 11", region_with(CSREC_REGION_HOST, 1, 11, 0),
		  CSREC_ST_BAD_VALUE, BODY_FIELD(region, page_shift), 11 },
		{ "page_shift 31", region_with(CSREC_REGION_HOST, 2, 31, 0),
		  CSREC_ST_BAD_VALUE, BODY_FIELD(region, page_shift), 31 },
		{ "page_shift 44", region_with(CSREC_REGION_HOST, 2, 44, 0),
		  CSREC_ST_BAD_VALUE, BODY_FIELD(region, page_shift), 44 },
		{ "page_off with levels 0", region_with(CSREC_REGION_HOST, 0, 0, 1),
		  CSREC_ST_BAD_VALUE, BODY_FIELD(region, page_off), 1 },
		{ "page_off 4096", region_with(CSREC_REGION_HOST, 1, 12, 4096),
		  CSREC_ST_BAD_VALUE, BODY_FIELD(region, page_off), 4096 },
		{ "page_off 2^30", region_with(CSREC_REGION_HOST, 2, 30, 1u << 30),
		  CSREC_ST_BAD_VALUE, BODY_FIELD(region, page_off), 1u << 30 },
		{ "REGION_INVAL slot 256", cmd_inval(0, KEY(256, 1)), CSREC_ST_BAD_KEY,
		  BODY_FIELD(region, region_key), KEY(256, 1) },
		{ "REGION_INVAL empty slot", cmd_inval(0, KEY(9, 1)), CSREC_ST_STALE_KEY,
		  BODY_FIELD(region, region_key), KEY(9, 1) },
		{ "FENCE_SET slot 64", cmd_fence_set(0, KEY(64, 0), 0, 0), CSREC_ST_BAD_KEY,
		  BODY_FIELD(fence_set, fence_key), KEY(64, 0) },
		{ "FENCE_SET generation 0", cmd_fence_set(0, KEY(3, 0), 0, 0),
		  CSREC_ST_BAD_VALUE, BODY_FIELD(fence_set, fence_key), KEY(3, 0) },
		{ "FENCE_INVAL slot 64", cmd_fence(CSREC_OP_FENCE_INVAL, 0, KEY(64, 1), 0),
		  CSREC_ST_BAD_KEY, BODY_FIELD(fence, fence_key), KEY(64, 1) },
		{ "FENCE_INVAL empty slot", cmd_fence(CSREC_OP_FENCE_INVAL, 0, KEY(3, 1), 0),
		  CSREC_ST_STALE_KEY, BODY_FIELD(fence, fence_key), KEY(3, 1) },
		{ "FENCE_SIGNAL empty slot", cmd_fence(CSREC_OP_FENCE_SIGNAL, 0, KEY(3, 1), 5),
		  CSREC_ST_STALE_KEY, BODY_FIELD(fence, fence_key), KEY(3, 1) },
		{ "SIGNAL slot 65535", cmd_fence(CSREC_OP_SIGNAL, 0, KEY(65535, 1), 5),
		  CSREC_ST_BAD_KEY, BODY_FIELD(fence, fence_key), KEY(65535, 1) },
		{ "WAIT empty slot", cmd_fence(CSREC_OP_WAIT, 0, KEY(3, 1), 0),
		  CSREC_ST_STALE_KEY, BODY_FIELD(fence, fence_key), KEY(3, 1) },
	};
	const struct refusal second[] = {
		{ "QUEUE_CREATE of one that exists", queue, CSREC_ST_BAD_QUEUE,
		  BODY_FIELD(queue, qid), 1 },
		{ "REGION_SET of a used slot", cmd_region(0, KEY(9, 2), 0, 0, 0, 0, 0),
		  CSREC_ST_BAD_VALUE, BODY_FIELD(region, region_key), KEY(9, 2) },
		{ "REGION_INVAL of another generation", cmd_inval(0, KEY(9, 2)),
		  CSREC_ST_STALE_KEY, BODY_FIELD(region, region_key), KEY(9, 2) },
		{ "FENCE_SET of a used slot", cmd_fence_set(0, KEY(3, 2), 0, 0),
		  CSREC_ST_BAD_VALUE, BODY_FIELD(fence_set, fence_key), KEY(3, 2) },
		{ "FENCE_INVAL of another generation",
		  cmd_fence(CSREC_OP_FENCE_INVAL, 0, KEY(3, 2), 0), CSREC_ST_STALE_KEY,
		  BODY_FIELD(fence, fence_key), KEY(3, 2) },
		{ "SIGNAL from another domain", cmd_fence(CSREC_OP_SIGNAL, 0, KEY(3, 1), 1),
		  CSREC_ST_BAD_DOMAIN, BODY_FIELD(fence, fence_key), KEY(3, 1) },
		{ "WAIT from another domain", cmd_fence(CSREC_OP_WAIT, 0, KEY(3, 1), 1),
		  CSREC_ST_BAD_DOMAIN, BODY_FIELD(fence, fence_key), KEY(3, 1) },
	};

	open_dev(&d, 4);
	for (i = 0; i < sizeof(first) / sizeof(first[0]); i++)
		ok(gives(&d, 0, first[i].cmd, first[i].status, first[i].field, first[i].detail),
		   "refused: %s", first[i].what);

	make_queue(&d, 1, 4, 7);
	must(&d, region_with(CSREC_REGION_HOST, 2, 30, (1u << 30) - 1));
	must(&d, cmd_fence_set(0, KEY(3, 1), 7, 10));
	for (i = 0; i < sizeof(second) / sizeof(second[0]); i++)
		ok(gives(&d, 0, second[i].cmd, second[i].status, second[i].field,
			 second[i].detail), "refused: %s", second[i].what);

	for (i = CSREC_OP_QUEUE_CREATE; i <= CSREC_OP_FENCE_SIGNAL; i++)
		ok(gives(&d, 1, cmd_plain(i, 0), CSREC_ST_BAD_OPCODE, 0, i),
		   "admin opcode 0x%x on an I/O queue", i);

	ok(good(&d, 0, cmd_fence(CSREC_OP_FENCE_SIGNAL, 0, KEY(3, 1), 11), 11),
	   "FENCE_SIGNAL needs no domain");
	ok(good(&d, 0, cmd_fence(CSREC_OP_FENCE_INVAL, 0, KEY(3, 1), 0), 0), "FENCE_INVAL");
	ok(good(&d, 0, cmd_fence_set(0, KEY(3, 2), 7, 0), 0), "slot used again");
	ok(good(&d, 0, cmd_inval(0, KEY(9, 1)), 0), "REGION_INVAL");
	ok(good(&d, 0, region_with(CSREC_REGION_ONCHIP, 0, 0, 0), 0), "slot used again");
	ok(good(&d, 0, cmd_delete(0, 1), 0), "QUEUE_DELETE");
	ok(!rings(&d, 1, 0, 0), "its doorbell is gone");
	make_queue(&d, 1, 1, 7);
	ok(good(&d, 1, cmd_plain(CSREC_OP_NOP, 0), 0), "queue made again");

	disable(&d);
	enable(&d, 4);
	ok(gives(&d, 0, cmd_inval(0, KEY(9, 1)), CSREC_ST_STALE_KEY,
		 BODY_FIELD(region, region_key), KEY(9, 1)) &&
	   gives(&d, 0, cmd_delete(0, 1), CSREC_ST_BAD_QUEUE, BODY_FIELD(queue, qid), 1) &&
	   gives(&d, 0, cmd_fence(CSREC_OP_FENCE_SIGNAL, 0, KEY(3, 2), 1), CSREC_ST_STALE_KEY,
		 BODY_FIELD(fence, fence_key), KEY(3, 2)),
	   "disable forgets queues, regions and fences");
	close_dev(&d);
}

/* --- regions, COPY, FILL --- */

/* Regions of all kinds, with where each of their bytes is. */
struct place {
	const char *name;
	uint32_t key;
	uint64_t size;
	uint8_t kind, levels, shift;
	uint64_t base;		/* host address, or offset in DRAM or ONCHIP */
	uint32_t page_off;
	uint64_t *pages;	/* levels 1, 2: addresses */
};

#define N_PLACES	7
/* Host memory: regions' pages in the first 8 MiB, page lists from there. */
#define LISTS		(HOST_BASE + (8u << 20))

static uint8_t *byte_at(struct dev *d, const struct place *p, uint8_t *onchip, uint64_t off)
{
	switch (p->kind) {
	case CSREC_REGION_DRAM:
		return d->dram + p->base + off;
	case CSREC_REGION_ONCHIP:
		return onchip + p->base + off;
	}
	if (!p->levels)
		return host_ptr(d, p->base + off);
	off += p->page_off;
	return host_ptr(d, p->pages[off >> p->shift] + (off & ((1ull << p->shift) - 1)));
}

/* Pages of @p in random order from [*next, ...); page lists from *list. */
static void make_lists(struct dev *d, struct place *p, uint64_t *next, uint64_t *list)
{
	unsigned int n = (p->page_off + p->size - 1) / (1ull << p->shift) + 1;
	unsigned int i, j, tables;
	uint64_t base, *entry;

	*next = (*next + (1ull << p->shift) - 1) & -(1ull << p->shift);
	p->pages = calloc(n, sizeof(*p->pages));
	for (i = 0; i < n; i++)
		p->pages[i] = *next + ((uint64_t)i << p->shift);
	*next += (uint64_t)n << p->shift;
	for (i = n; i > 1; i--) {
		uint64_t t = p->pages[i - 1];

		j = rnd(d) % i;
		p->pages[i - 1] = p->pages[j];
		p->pages[j] = t;
	}
	if (p->levels == 1) {
		/* anywhere, if only 8-byte aligned: across a page boundary */
		base = *list + 4096 - 24;
		memcpy(host_ptr(d, base), p->pages, 8 * n);
		*list = (base + 8 * n + 4095) & ~4095ull;
		p->base = base;
		return;
	}
	tables = (n + 511) / 512;
	base = *list;
	*list += 4096;
	entry = (uint64_t *)host_ptr(d, base + 8);
	for (i = 0; i < tables; i++) {
		memcpy(host_ptr(d, *list), p->pages + 512 * i, 8 * (n - 512 * i < 512 ?
								   n - 512 * i : 512));
		entry[i] = *list;
		*list += 4096;
	}
	p->base = base + 8;
}

static void make_places(struct dev *d, struct place *p, uint16_t domain)
{
	uint64_t next = HOST_BASE + (1u << 20), list = LISTS;
	unsigned int i;

	p[0] = (struct place){ "HOST", KEY(10, 1), 300000, CSREC_REGION_HOST, 0, 0,
			       HOST_BASE + 4096 + 13, 0, NULL };
	p[1] = (struct place){ "HOST 4K pages", KEY(11, 2), 100000, CSREC_REGION_HOST, 1, 12, 0,
			       0, NULL };
	p[2] = (struct place){ "HOST 8K pages", KEY(12, 3), 99999, CSREC_REGION_HOST, 1, 13, 0,
			       5003, NULL };
	p[3] = (struct place){ "HOST lists of 4K", KEY(13, 65535), 2200000, CSREC_REGION_HOST, 2,
			       12, 0, 4095, NULL };
	p[4] = (struct place){ "HOST lists of 64K", KEY(14, 5), 200000, CSREC_REGION_HOST, 2, 16,
			       0, 40001, NULL };
	p[5] = (struct place){ "DRAM", KEY(255, 6), 400001, CSREC_REGION_DRAM, 0, 0, 64 * 77, 0,
			       NULL };
	p[6] = (struct place){ "ONCHIP", KEY(0, 7), ONCHIP_SIZE - 128, CSREC_REGION_ONCHIP, 0, 0,
			       64, 0, NULL };
	for (i = 0; i < N_PLACES; i++) {
		struct csrec_cmd c;

		if (p[i].levels)
			make_lists(d, &p[i], &next, &list);
		c = cmd_region(0, p[i].key, p[i].kind, RW, domain, p[i].base, p[i].size);
		AS(&c, region)->levels = p[i].levels;
		AS(&c, region)->page_shift = p[i].shift;
		AS(&c, region)->page_off = p[i].page_off;
		must(d, c);
	}
	if (next > LISTS || list > RING_BASE)
		abort();
}

static void free_places(struct place *p)
{
	unsigned int i;

	for (i = 0; i < N_PLACES; i++)
		free(p[i].pages);
}

static void test_region_checks(void)
{
	struct dev d;
	struct {
		const char *what;
		uint32_t key;
		uint64_t off, len;
		unsigned int status;
	} bad[] = {
		{ "slot out of range", KEY(256, 1), 0, 8, CSREC_ST_BAD_KEY },
		{ "empty slot", KEY(50, 1), 0, 8, CSREC_ST_STALE_KEY },
		{ "key 0", 0, 0, 8, CSREC_ST_STALE_KEY },
		{ "generation", KEY(20, 2), 0, 8, CSREC_ST_STALE_KEY },
		{ "domain", KEY(23, 1), 0, 8, CSREC_ST_BAD_DOMAIN },
		{ "right", 0, 0, 8, CSREC_ST_BAD_RIGHTS },	/* key below */
		{ "one byte too many", KEY(20, 1), 0, 1001, CSREC_ST_OUT_OF_BOUNDS },
		{ "one byte too far", KEY(20, 1), 1000, 1, CSREC_ST_OUT_OF_BOUNDS },
		{ "far too far", KEY(20, 1), 1ull << 40, 1, CSREC_ST_OUT_OF_BOUNDS },
		{ "wrapping offset", KEY(20, 1), -8ull, 16, CSREC_ST_OUT_OF_BOUNDS },
		{ "wrapping length", KEY(20, 1), 8, -8ull, CSREC_ST_OUT_OF_BOUNDS },
	};
	unsigned int i, dst;

	open_dev(&d, 4);
	make_queue(&d, 2, 4, 42);
	must(&d, cmd_region(0, KEY(20, 1), CSREC_REGION_DRAM, RW, 42, 0, 1000));
	must(&d, cmd_region(0, KEY(21, 1), CSREC_REGION_DRAM, CSREC_RIGHT_READ, 42, 0, 1000));
	must(&d, cmd_region(0, KEY(22, 1), CSREC_REGION_DRAM, CSREC_RIGHT_WRITE, 42, 0, 1000));
	must(&d, cmd_region(0, KEY(23, 1), CSREC_REGION_DRAM, RW, 43, 0, 1000));
	must(&d, cmd_region(0, KEY(24, 1), CSREC_REGION_DRAM, RW, 42, 4096, -4096ull +
			    DRAM_SIZE));

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		for (dst = 0; dst < 2; dst++) {
			uint32_t key = bad[i].status != CSREC_ST_BAD_RIGHTS ? bad[i].key :
				       dst ? KEY(21, 1) : KEY(22, 1);
			bool bounds = bad[i].status == CSREC_ST_OUT_OF_BOUNDS;
			/* the other side fits any length that does not wrap */
			uint32_t other = KEY(24, 1);
			unsigned int field;

			if (dst && bad[i].len > DRAM_SIZE)
				continue;	/* the source would fail first */
			if (bounds)
				field = dst ? BODY_FIELD(copy, dst_off) : BODY_FIELD(copy, src_off);
			else
				field = dst ? BODY_FIELD(copy, dst_key) : BODY_FIELD(copy, src_key);
			ok(gives(&d, 2, dst ? cmd_copy(0, other, 0, key, bad[i].off, bad[i].len) :
					      cmd_copy(0, key, bad[i].off, other, 0, bad[i].len),
				 bad[i].status, field, bounds ? bad[i].off : key),
			   "COPY %s: %s", dst ? "to" : "from", bad[i].what);
			if (dst)
				ok(gives(&d, 2, cmd_fill(0, key, bad[i].off & ~3ull,
							 (bad[i].len + 3) & ~3ull, 1),
					 bad[i].status, field,
					 bounds ? bad[i].off & ~3ull : key),
				   "FILL: %s", bad[i].what);
		}
	}
	ok(gives(&d, 2, cmd_copy(0, KEY(300, 1), 0, KEY(301, 1), 0, 0), CSREC_ST_BAD_LENGTH,
		 BODY_FIELD(copy, len), 0), "COPY of nothing, before the keys");
	ok(gives(&d, 2, cmd_copy(0, KEY(300, 1), 0, KEY(301, 1), 0, 1), CSREC_ST_BAD_KEY,
		 BODY_FIELD(copy, src_key), KEY(300, 1)), "source before destination");
	ok(gives(&d, 2, cmd_fill(0, KEY(300, 1), 2, 0, 0), CSREC_ST_BAD_ALIGN,
		 BODY_FIELD(copy, dst_off), 2), "FILL's offset first");
	ok(gives(&d, 2, cmd_fill(0, KEY(300, 1), 4, 0, 0), CSREC_ST_BAD_LENGTH,
		 BODY_FIELD(copy, len), 0), "then its length: nothing");
	ok(gives(&d, 2, cmd_fill(0, KEY(300, 1), 4, 6, 0), CSREC_ST_BAD_ALIGN,
		 BODY_FIELD(copy, len), 6), "then its length: not words");
	ok(good(&d, 2, cmd_copy(0, KEY(21, 1), 0, KEY(22, 1), 500, 500), 500), "rights suffice");
	close_dev(&d);
}

static uint64_t pick_len(struct dev *d)
{
	switch (rnd(d) % 6) {
	case 0:
		return 1 + rnd(d) % 8;
	case 1:
		return 60 + rnd(d) % 10;
	case 2:
		return 4090 + rnd(d) % 12;
	case 3:
		return 64 * (1 + rnd(d) % 64);
	case 4:
		return 1 + rnd(d) % 12000;
	}
	return 1 + rnd(d) % 300;
}

/* Offset of @len bytes in @p, often just before or after a page boundary. */
static uint64_t pick_off(struct dev *d, const struct place *p, uint64_t len)
{
	uint64_t off = rnd(d) % (p->size - len + 1);
	uint64_t page = p->kind == CSREC_REGION_HOST && p->levels ? 1ull << p->shift : 4096;

	switch (rnd(d) % 4) {
	case 0:
		off -= (off + p->page_off) % page;
		off += rnd(d) % 5 - 2;
		break;
	case 1:
		off &= ~63ull;
		break;
	case 2:
		return rnd(d) % 2 ? 0 : p->size - len;
	}
	return off > p->size - len ? p->size - len : off;
}

static void test_copy(unsigned int rounds)
{
	uint8_t *shadow_host = malloc(HOST_SIZE), *shadow_dram = malloc(DRAM_SIZE);
	uint8_t *onchip = calloc(1, ONCHIP_SIZE), *out = malloc(70000);
	struct place p[N_PLACES];
	struct dev d, s = { 0 };	/* s: the memories as they should be */
	uint64_t i, off, copied = 0;
	unsigned int n, bad = 0, kinds = 0;

	open_dev(&d, 4);
	make_queue(&d, 1, 4, 3);
	make_places(&d, p, 3);
	fill_random(&d, d.host + 4096, (8u << 20) - 4096);
	fill_random(&d, d.dram, 600000);
	/* On-chip memory starts as whatever: give it known contents first. */
	for (off = 0; off < p[6].size; off += p[5].size) {
		uint64_t len = p[6].size - off < p[5].size ? p[6].size - off : p[5].size;

		ok(good(&d, 1, cmd_copy(0, p[5].key, 0, p[6].key, off, len), len),
		   "%llu bytes to ONCHIP", (unsigned long long)len);
		memcpy(onchip + 64 + off, d.dram + p[5].base, len);
	}
	memcpy(shadow_host, d.host, HOST_SIZE);
	memcpy(shadow_dram, d.dram, DRAM_SIZE);
	s.host = shadow_host;
	s.dram = shadow_dram;

	for (n = 0; n < rounds && !bad; n++) {
		const struct place *a = &p[rnd(&d) % N_PLACES], *b = &p[rnd(&d) % N_PLACES];
		uint64_t len = pick_len(&d), from = pick_off(&d, a, len), to;
		uint32_t pattern = rnd(&d);
		uint8_t *tmp;

		if (rnd(&d) % 4 == 0) {
			len = (len + 3) & ~3ull;
			to = pick_off(&d, b, len) & ~3ull;
			bad += !good(&d, 1, cmd_fill(0, b->key, to, len, pattern), len);
			for (i = 0; i < len; i++)
				*byte_at(&s, b, onchip, to + i) = pattern >> 8 * (i % 4);
		} else {
			to = pick_off(&d, b, len);
			if (a == b && from < to + len && to < from + len)
				continue;	/* overlapping: unspecified */
			bad += !good(&d, 1, cmd_copy(0, a->key, from, b->key, to, len), len);
			tmp = malloc(len);
			for (i = 0; i < len; i++)
				tmp[i] = *byte_at(&s, a, onchip, from + i);
			for (i = 0; i < len; i++)
				*byte_at(&s, b, onchip, to + i) = tmp[i];
			free(tmp);
		}
		copied += len;
		kinds |= 1u << (a - p);
		if (bad)
			printf("# %s to %s, %llu bytes, 0x%llx to 0x%llx\n", a->name, b->name,
			       (unsigned long long)len, (unsigned long long)from,
			       (unsigned long long)to);
	}
	ok(!bad && kinds == (1u << N_PLACES) - 1, "%u COPY and FILL, %llu bytes", rounds,
	   (unsigned long long)copied);
	ok(!memcmp(shadow_dram, d.dram, DRAM_SIZE), "DRAM as it should be, all of it");
	ok(!memcmp(shadow_host, d.host, RING_BASE - HOST_BASE),
	   "host memory as it should be, all of it");
	bad = 0;
	for (off = 0; off < p[6].size; off += 65536) {
		uint64_t len = p[6].size - off < 65536 ? p[6].size - off : 65536;

		bad += !good(&d, 1, cmd_copy(0, p[6].key, off, p[4].key, 1, len), len);
		for (i = 0; i < len; i++)
			bad += *byte_at(&d, &p[4], NULL, 1 + i) != onchip[64 + off + i];
	}
	ok(!bad, "on-chip memory as it should be");
	free_places(p);
	free(shadow_host);
	free(shadow_dram);
	free(onchip);
	free(out);
	close_dev(&d);
}

/* --- order, fences --- */

/* Completions of @q so far, as cids; returns how many. */
static unsigned int take_all(struct dev *d, unsigned int qid, struct csrec_cqe *cqe,
			     unsigned int max)
{
	unsigned int n = 0;

	while (n < max && take(d, &d->q[qid], &cqe[n]))
		n++;
	ring_doorbell(d, &d->q[qid]);
	return n;
}

static void test_order(void)
{
	struct csrec_cqe e[16];
	struct csrec_cmd c;
	struct dev d;
	unsigned int i, n, flag;

	open_dev(&d, 4);
	make_queue(&d, 3, 4, 0);
	must(&d, cmd_region(0, KEY(1, 1), CSREC_REGION_HOST, RW, 0, HOST_BASE, 1 << 20));
	must(&d, cmd_region(0, KEY(2, 1), CSREC_REGION_DRAM, RW, 0, 0, 1 << 20));

	for (flag = 0; flag < 2; flag++) {
		fill_random(&d, d.host, 40000);
		c = cmd_copy(100, KEY(1, 1), 0, KEY(2, 1), 0, 20000);
		put(&d, &d.q[3], &c);
		c = cmd_copy(101, KEY(1, 1), 20000, KEY(2, 1), 20000, 20000);
		put(&d, &d.q[3], &c);
		if (flag) {
			/* reads what both wrote */
			c = cmd_copy(102, KEY(2, 1), 0, KEY(1, 1), 100000, 40000);
			c.flags = CSREC_CMD_F_FENCE;
			put(&d, &d.q[3], &c);
		} else {
			c = cmd_plain(CSREC_OP_FENCE, 102);
			put(&d, &d.q[3], &c);
			c = cmd_copy(103, KEY(2, 1), 0, KEY(1, 1), 100000, 40000);
			put(&d, &d.q[3], &c);
		}
		c = cmd_plain(CSREC_OP_NOP, 104);
		put(&d, &d.q[3], &c);
		ring_doorbell(&d, &d.q[3]);
		run(&d);
		n = take_all(&d, 3, e, 16);
		/* a later NOP may overtake a command with F_FENCE, but not FENCE */
		for (i = 0; i < n && e[i].cid != 102; i++)
			;
		ok(n == 5u - flag && (i == 2 || (flag && i == 3 && e[2].cid == 104)) && !memcmp(d.host, d.host + 100000, 40000),
		   flag ? "F_FENCE starts after all earlier ones" :
			  "FENCE completes after all earlier ones, before later ones");
		memset(d.host + 100000, 0, 40000);
	}
	for (i = 0; i < 4; i++) {
		c = cmd_plain(CSREC_OP_NOP, i);
		c.flags = i % 2 ? CSREC_CMD_F_NOIRQ : 0;
		put(&d, &d.q[3], &c);
	}
	n = d.irqs[3];
	ring_doorbell(&d, &d.q[3]);
	run(&d);
	ok(take_all(&d, 3, e, 16) == 4 && e[0].cid == 0 && e[3].cid == 3 && d.irqs[3] == n + 2,
	   "F_NOIRQ asks for none");
	ok(!d.irqs[N_VECTORS], "no interrupt but of the vectors there are");
	close_dev(&d);
}

/* A queue that always has work leaves the others their turn, and the admin queue too. */
static void test_turns(void)
{
	struct csrec_cqe e[256];
	struct csrec_cmd c = cmd_plain(CSREC_OP_NOP, 1);
	struct dev d;
	unsigned int i;

	open_dev(&d, 4);
	make_queue(&d, 1, 8, 0);
	make_queue(&d, 2, 4, 0);
	d.late_pct = 0;
	for (i = 0; i < 200; i++)
		put(&d, &d.q[1], &c);
	put(&d, &d.q[2], &c);
	put(&d, &d.q[0], &c);
	ring_doorbell(&d, &d.q[1]);
	ring_doorbell(&d, &d.q[2]);
	ring_doorbell(&d, &d.q[0]);
	for (i = 0; i < 2; i++) {
		unsigned int qid = i ? 0 : 2;

		while (!take(&d, &d.q[qid], &e[0]) && csrec_model_step(d.m, 1))
			;
		ok(take_all(&d, 1, e, 256) < 50, "queue %u has its turn", qid);
	}
	run(&d);
	close_dev(&d);
}

static void test_fences(void)
{
	struct csrec_cqe e[8];
	struct csrec_cmd c;
	struct dev d;

	open_dev(&d, 4);
	make_queue(&d, 1, 3, 5);
	make_queue(&d, 2, 3, 5);
	make_queue(&d, 3, 3, 6);
	must(&d, cmd_fence_set(0, KEY(63, 9), 5, 100));

	ok(good(&d, 1, cmd_fence(CSREC_OP_WAIT, 0, KEY(63, 9), 100), 100), "WAIT for less or equal");
	ok(good(&d, 1, cmd_fence(CSREC_OP_SIGNAL, 0, KEY(63, 9), 50), 100), "never goes down");
	ok(gives(&d, 3, cmd_fence(CSREC_OP_SIGNAL, 0, KEY(63, 9), 500), CSREC_ST_BAD_DOMAIN,
		 BODY_FIELD(fence, fence_key), KEY(63, 9)), "another domain's fence");

	c = cmd_fence(CSREC_OP_WAIT, 7, KEY(63, 9), 1ull << 63);
	put(&d, &d.q[1], &c);
	c = cmd_plain(CSREC_OP_NOP, 8);
	put(&d, &d.q[1], &c);
	ring_doorbell(&d, &d.q[1]);
	ok(run(&d) && !take_all(&d, 1, e, 8), "WAIT blocks its queue");
	run(&d);
	ok(reg(&d, CSREC_REG_STATUS) == CSREC_STATUS_READY, "a blocked queue is not BUSY");
	ok(good(&d, 2, cmd_plain(CSREC_OP_NOP, 0), 0), "other queues go on");
	ok(good(&d, 2, cmd_fence(CSREC_OP_SIGNAL, 0, KEY(63, 9), (1ull << 63) - 1),
		(1ull << 63) - 1) && !take_all(&d, 1, e, 8), "one short of it: still blocked");
	ok(good(&d, 2, cmd_fence(CSREC_OP_SIGNAL, 0, KEY(63, 9), -1ull), -1ull), "SIGNAL");
	ok(take_all(&d, 1, e, 8) == 2 && e[0].cid == 7 && e[0].detail == -1ull &&
	   !cqe_status(&e[0]) && e[1].cid == 8, "WAIT ends, and its queue goes on");

	must(&d, cmd_fence_set(0, KEY(5, 1), 5, 0));
	c = cmd_fence(CSREC_OP_WAIT, 9, KEY(5, 1), 1);
	put(&d, &d.q[1], &c);
	ring_doorbell(&d, &d.q[1]);
	run(&d);
	must(&d, cmd_fence(CSREC_OP_FENCE_SIGNAL, 0, KEY(5, 1), 1));
	ok(take_all(&d, 1, e, 8) == 1 && e[0].cid == 9 && e[0].detail == 1,
	   "FENCE_SIGNAL ends a WAIT");
	c = cmd_fence(CSREC_OP_WAIT, 10, KEY(5, 1), 2);
	put(&d, &d.q[1], &c);
	ring_doorbell(&d, &d.q[1]);
	run(&d);
	must(&d, cmd_fence(CSREC_OP_FENCE_INVAL, 0, KEY(5, 1), 0));
	ok(take_all(&d, 1, e, 8) == 1 && e[0].cid == 10 && cqe_status(&e[0]) == CSREC_ST_STALE_KEY &&
	   e[0].field == BODY_FIELD(fence, fence_key) && e[0].detail == KEY(5, 1),
	   "a deleted fence ends it with STALE_KEY");
	close_dev(&d);
}

/* --- things that happen in flight --- */

static void start_long_copy(struct dev *d, unsigned int qid, uint16_t cid)
{
	struct csrec_cmd c = cmd_copy(cid, KEY(1, 1), 0, KEY(2, 1), 0, 1 << 20);

	put(d, &d->q[qid], &c);
	ring_doorbell(d, &d->q[qid]);
	csrec_model_step(d->m, 3000 + rnd(d) % 3000);
}

static void open_long(struct dev *d)
{
	open_dev(d, 4);
	make_queue(d, 1, 4, 0);
	make_queue(d, 2, 4, 0);
	must(d, cmd_region(0, KEY(1, 1), CSREC_REGION_HOST, RW, 0, HOST_BASE, 1 << 20));
	must(d, cmd_region(0, KEY(2, 1), CSREC_REGION_DRAM, RW, 0, 0, 1 << 20));
}

static void test_delete(void)
{
	struct csrec_cqe e[8];
	struct csrec_cmd c;
	struct dev d;
	uint64_t to;

	open_long(&d);
	start_long_copy(&d, 1, 55);
	c = cmd_plain(CSREC_OP_FENCE, 56);	/* cannot start */
	put(&d, &d.q[1], &c);
	ring_doorbell(&d, &d.q[1]);
	to = CNT(&d, DRAM_WR);
	ok(good(&d, 0, cmd_delete(0, 1), 0), "delete with a COPY at work");
	ok(CNT(&d, DRAM_WR) >= to && CNT(&d, DRAM_WR) < 1 << 20, "which is cut short");
	d.watch_from = d.q[1].sq;
	d.watch_to = d.q[1].sq + RING_STRIDE;
	ok(take(&d, &d.q[1], &e[0]) && e[0].cid == 55 && cqe_status(&e[0]) == CSREC_ST_ABORTED &&
	   e[0].field == CSREC_FIELD_NONE && e[0].detail == 0, "and completes as ABORTED");
	ok(!take(&d, &d.q[1], &e[0]), "what was not started does not");
	ok(!rings(&d, 1, d.q[1].tail, d.q[1].head), "doorbell refused");
	ok(good(&d, 2, cmd_copy(0, KEY(1, 1), 0, KEY(2, 1), 0, 20000), 20000),
	   "the other queue has the engine");
	ok(!d.watched, "the deleted queue's rings are left alone");
	d.watch_to = 0;

	make_queue(&d, 1, 4, 0);
	must(&d, cmd_fence_set(0, KEY(1, 1), 0, 0));
	c = cmd_fence(CSREC_OP_WAIT, 57, KEY(1, 1), 1);
	put(&d, &d.q[1], &c);
	c = cmd_plain(CSREC_OP_NOP, 58);
	put(&d, &d.q[1], &c);
	ring_doorbell(&d, &d.q[1]);
	run(&d);
	ok(good(&d, 0, cmd_delete(0, 1), 0), "delete with a WAIT blocked");
	ok(take(&d, &d.q[1], &e[0]) && e[0].cid == 57 && cqe_status(&e[0]) == CSREC_ST_ABORTED &&
	   !take(&d, &d.q[1], &e[0]), "it completes as ABORTED, what follows does not");

	/* The queue that signals is looked at before the admin queue, that before queue 1. */
	make_queue(&d, 1, 4, 0);
	c = cmd_fence(CSREC_OP_WAIT, 59, KEY(1, 1), 1);
	put(&d, &d.q[1], &c);
	ring_doorbell(&d, &d.q[1]);
	run(&d);
	c = cmd_fence(CSREC_OP_SIGNAL, 60, KEY(1, 1), 1);
	put(&d, &d.q[2], &c);
	c = cmd_delete(61, 1);
	put(&d, &d.q[0], &c);
	ring_doorbell(&d, &d.q[2]);
	ring_doorbell(&d, &d.q[0]);
	run(&d);
	ok(take(&d, &d.q[0], &e[0]) && e[0].cid == 61 && !cqe_status(&e[0]),
	   "delete with a WAIT that was signalled just before");
	ok(take(&d, &d.q[1], &e[0]) && e[0].cid == 59 &&
	   (!cqe_status(&e[0]) || cqe_status(&e[0]) == CSREC_ST_ABORTED), "it completes");
	close_dev(&d);
}

static void test_inval(void)
{
	struct csrec_cqe e;
	struct csrec_cmd c;
	struct dev d;
	unsigned int dst;

	for (dst = 0; dst < 2; dst++) {
		uint32_t key = dst ? KEY(2, 1) : KEY(1, 1);

		open_long(&d);
		if (dst) {	/* make host memory the destination */
			c = cmd_copy(60, KEY(2, 1), 0, KEY(1, 1), 0, 1 << 20);
			key = KEY(1, 1);
			put(&d, &d.q[1], &c);
			ring_doorbell(&d, &d.q[1]);
			csrec_model_step(d.m, 4000);
		} else {
			start_long_copy(&d, 1, 60);
		}
		c = cmd_inval(61, key);
		put(&d, &d.q[0], &c);
		ring_doorbell(&d, &d.q[0]);
		while (!take(&d, &d.q[0], &e)) {
			csrec_model_step(d.m, 1);
			if (d.n_late)
				run(&d);
		}
		d.watch_from = HOST_BASE;
		d.watch_to = HOST_BASE + (1 << 20);
		ok(e.cid == 61 && !cqe_status(&e), "invalidate the %s of a COPY at work",
		   dst ? "destination" : "source");
		run(&d);
		ok(!d.watched, "no access once that has completed");
		ok(take(&d, &d.q[1], &e) && e.cid == 60 && cqe_status(&e) == CSREC_ST_STALE_KEY &&
		   e.field == (dst ? BODY_FIELD(copy, dst_key) : BODY_FIELD(copy, src_key)) &&
		   e.detail == key, "the COPY ends with STALE_KEY");
		close_dev(&d);
	}
}

/* --- interrupt coalescing --- */

#define LONG_WAIT	100000000	/* cycles; no test runs as many */

static void put_nops(struct dev *d, unsigned int qid, unsigned int n)
{
	struct csrec_cmd c = cmd_plain(CSREC_OP_NOP, 0);

	while (n--)
		put(d, &d->q[qid], &c);
	ring_doorbell(d, &d->q[qid]);
}

static void take_rest(struct dev *d, unsigned int qid)
{
	struct csrec_cqe e;

	while (take(d, &d->q[qid], &e))
		;
	ring_doorbell(d, &d->q[qid]);
}

/* What is expected of @n completions, one by one or at once, @count an interrupt. */
static bool coalesces(struct dev *d, unsigned int n, unsigned int count)
{
	unsigned int before = d->irqs[1], i;

	if (rnd(d) % 2) {
		put_nops(d, 1, n);
		if (!run_posted(d, &d->q[1], n))
			return false;
	} else {
		for (i = 1; i <= n; i++) {
			put_nops(d, 1, 1);
			if (!run_posted(d, &d->q[1], i) || d->irqs[1] - before != i / count)
				return false;
		}
	}
	take_rest(d, 1);
	return d->irqs[1] - before == n / count && run(d) && d->irqs[1] - before == n / count;
}

static void test_coalescing(void)
{
	unsigned int i, n, irqs, lost = 0, late = 0, most = 0;
	uint64_t from, t, shortest = -1ull;
	struct csrec_cmd c;
	struct dev d;
	bool all = true;

	open_dev(&d, 4);
	for (i = 2; i <= 7; i++) {
		make_coalescing(&d, 1, 4, 0, i, LONG_WAIT, 0);
		for (n = 1; n <= 16; n += 1 + rnd(&d) % 3)
			all &= coalesces(&d, n, i);
		all &= good(&d, 0, cmd_delete(0, 1), 0);
	}
	ok(all, "an interrupt for every irq_count completions, none for what is consumed");

	make_coalescing(&d, 1, 4, 0, 100, 3000, 0);
	for (i = 0; i < 10; i++) {
		struct csrec_cqe e;

		irqs = d.irqs[1];
		n = 1 + rnd(&d) % 4;
		put_nops(&d, 1, n);
		while (posted(&d, &d.q[1]) == d.q[1].head) {
			csrec_model_step(d.m, 1);
			if (!csrec_model_busy(d.m))
				run(&d);
		}
		from = CNT(&d, CYCLES);
		run(&d);
		lost += d.irqs[1] == irqs || d.q[1].told != d.q[1].tail;
		most = d.irqs[1] - irqs > most ? d.irqs[1] - irqs : most;
		while (take(&d, &d.q[1], &e))
			;
		ring_doorbell(&d, &d.q[1]);
		t = CNT(&d, CYCLES) - from;
		if (!d.late_pct && t < shortest)
			shortest = t;
		late += t > 3000 + 20000;
	}
	ok(!lost && shortest >= 3000, "fewer have theirs after irq_cycles, not before");
	ok(timing_late || (!late && most <= 2), "and not much later, nor one each");
	must(&d, cmd_delete(0, 1));

	/* the host takes what it sees at any time */
	make_coalescing(&d, 1, 3, 0, 3, 150, 0);
	lost = 0;
	for (i = 0; i < 300; i++) {
		n = (d.q[1].head + 8) - d.q[1].tail;
		put_nops(&d, 1, n ? rnd(&d) % (n + 1) : 0);
		csrec_model_step(d.m, rnd(&d) % 400);
		if (rnd(&d) % 3 == 0) {
			take_rest(&d, 1);
		} else if (rnd(&d) % 3 == 0) {
			run(&d);
			lost += d.q[1].told != d.q[1].tail && d.q[1].head != d.q[1].tail;
		}
	}
	run(&d);
	ok(!lost && (d.q[1].told == d.q[1].tail || d.q[1].head == d.q[1].tail),
	   "whatever the host takes and when: never is a completion left without");
	take_rest(&d, 1);
	must(&d, cmd_delete(0, 1));

	/* deleted at any time around the interrupt's */
	for (i = 0, late = 0; i < 40; i++) {
		make_coalescing(&d, 1, 3, 0, 2 + i % 2, 300, 0);
		put_nops(&d, 1, 1);
		run_posted(&d, &d.q[1], 1);
		csrec_model_step(d.m, rnd(&d) % 400);
		c = cmd_delete(0, 1);
		put(&d, &d.q[0], &c);
		ring_doorbell(&d, &d.q[0]);
		while (posted(&d, &d.q[0]) == d.q[0].head) {
			if (!csrec_model_step(d.m, 1))
				run(&d);
		}
		irqs = d.irqs[1];
		run(&d);
		late += d.irqs[1] != irqs;
		take_rest(&d, 0);
	}
	ok(!late, "no interrupt of a queue after its deletion has completed");
	make_coalescing(&d, 1, 3, 0, 2, LONG_WAIT, CSREC_QUEUE_HW_F_NOIRQ);
	irqs = d.irqs[1];
	put_nops(&d, 1, 8);
	run(&d);
	ok(d.irqs[1] == irqs && posted(&d, &d.q[1]) == 8 && !csrec_model_busy(d.m),
	   "a queue without interrupts has none, and nothing waits there");
	close_dev(&d);
}

static void test_disable(void)
{
	struct dev d;
	uint64_t cycles;

	open_long(&d);
	start_long_copy(&d, 1, 70);
	set(&d, CSREC_REG_CTRL, 0);
	ok(run(&d) && reg(&d, CSREC_REG_STATUS) == 0, "disable with a COPY at work");
	d.watch_from = HOST_BASE;
	d.watch_to = HOST_BASE + HOST_SIZE;
	csrec_model_step(d.m, 10000);
	ok(!d.watched && CNT(&d, DRAM_WR) < 1 << 20, "stops it; nothing moves afterwards");
	ok(CNT(&d, CYCLES) > 0, "counters stay");
	d.watch_to = 0;
	enable(&d, 4);
	ok(good(&d, 0, cmd_plain(CSREC_OP_NOP, 0), 0), "and on again");
	close_dev(&d);

	open_long(&d);
	start_long_copy(&d, 1, 71);
	cycles = CNT(&d, CYCLES);
	d.hold = true;
	csrec_model_reset(d.m);
	ok(CNT(&d, CYCLES) < cycles && CNT(&d, HOST_RD) == 0 && reg(&d, CSREC_REG_STATUS) == 0,
	   "reset with a COPY at work");
	d.hold = false;
	run(&d);
	enable(&d, 4);
	make_queue(&d, 1, 4, 0);
	ok(good(&d, 1, cmd_plain(CSREC_OP_NOP, 0), 0), "and up again");
	close_dev(&d);
}

/* --- bus errors --- */

static void test_bus_errors(void)
{
	struct place p[N_PLACES];
	struct csrec_cqe e;
	struct csrec_cmd c;
	struct dev d;
	unsigned int i;

	open_dev(&d, 4);
	make_queue(&d, 1, 2, 0);
	make_places(&d, p, 0);
	for (i = 0; i < 5; i++) {
		/* the page of byte 50000, then what leads there */
		d.fail_from = (uint64_t)(byte_at(&d, &p[i], NULL, 50000) - d.host) + HOST_BASE;
		d.fail_to = d.fail_from + 1;
		ok(gives(&d, 1, cmd_copy(0, p[i].key, 100, p[5].key, 0, 90000),
			 CSREC_ST_BUS_ERROR, BODY_FIELD(copy, src_key), p[i].key),
		   "read error in %s", p[i].name);
		ok(gives(&d, 1, cmd_copy(0, p[5].key, 0, p[i].key, 100, 90000),
			 CSREC_ST_BUS_ERROR, BODY_FIELD(copy, dst_key), p[i].key),
		   "write error in %s", p[i].name);
		ok(gives(&d, 1, cmd_fill(0, p[i].key, 0, 90000, 0),
			 CSREC_ST_BUS_ERROR, BODY_FIELD(copy, dst_key), p[i].key),
		   "FILL: write error in %s", p[i].name);
		d.fail_to = 0;
		ok(good(&d, 1, cmd_copy(0, p[i].key, 100, p[5].key, 0, 99000), 99000),
		   "gone with its cause");
		if (!p[i].levels)
			continue;
		d.fail_from = p[i].base;
		d.fail_to = p[i].base + 8;
		ok(gives(&d, 1, cmd_copy(0, p[i].key, 0, p[5].key, 0, 10),
			 CSREC_ST_BUS_ERROR, BODY_FIELD(copy, src_key), p[i].key),
		   "page list error in %s", p[i].name);
		if (p[i].levels == 2) {
			memcpy(&d.fail_from, host_ptr(&d, p[i].base), 8);
			d.fail_to = d.fail_from + 8;
			ok(gives(&d, 1, cmd_copy(0, p[5].key, 0, p[i].key, 0, 10),
				 CSREC_ST_BUS_ERROR, BODY_FIELD(copy, dst_key), p[i].key),
			   "second page list error in %s", p[i].name);
		}
		d.fail_to = 0;
	}

	/* rings; a ring of four, so that the slot is not the count */
	while (d.q[1].tail % 4 != 2)
		good(&d, 1, cmd_plain(CSREC_OP_NOP, 0), 0);
	c = cmd_plain(CSREC_OP_NOP, 80);
	put(&d, &d.q[1], &c);
	put(&d, &d.q[1], &c);
	d.fail_from = d.q[1].sq + 2 * 64;
	d.fail_to = d.fail_from + 64;
	ring_doorbell(&d, &d.q[1]);
	run(&d);
	ok(take(&d, &d.q[1], &e) && e.cid == 0xffff && cqe_status(&e) == CSREC_ST_BUS_ERROR &&
	   e.field == CSREC_FIELD_NONE && e.detail == 2, "error reading a command");
	ok(take(&d, &d.q[1], &e) && e.cid == 80 && !cqe_status(&e), "the next is served");
	ring_doorbell(&d, &d.q[1]);
	d.fail_from = d.q[1].cq;
	d.fail_to = d.q[1].cq + 64;
	ok(!exec(&d, &d.q[1], &c, &e), "error writing a completion stops the queue");
	d.fail_to = 0;
	ring_doorbell(&d, &d.q[1]);
	ok(run(&d) && !take(&d, &d.q[1], &e), "for good");
	ok(good(&d, 0, cmd_plain(CSREC_OP_NOP, 0), 0), "not the others");
	ok(good(&d, 0, cmd_delete(0, 1), 0), "until it is deleted");
	make_queue(&d, 1, 3, 0);
	ok(good(&d, 1, cmd_plain(CSREC_OP_NOP, 0), 0), "and made again");

	d.fail_from = d.q[0].sq;
	d.fail_to = d.q[0].sq + 64 * 16;
	ok(!exec(&d, &d.q[0], &c, &e) &&
	   reg(&d, CSREC_REG_STATUS) == (CSREC_STATUS_READY | CSREC_STATUS_FATAL |
					 CSREC_FATAL_ADMIN_SQ << CSREC_STATUS_FATAL_SHIFT),
	   "error reading an admin command is FATAL");
	ok(good(&d, 1, cmd_plain(CSREC_OP_NOP, 0), 0), "I/O queues go on");
	d.fail_to = 0;
	disable(&d);
	ok(reg(&d, CSREC_REG_STATUS) == 0, "disable clears it");
	enable(&d, 4);
	d.fail_from = d.q[0].cq;
	d.fail_to = d.q[0].cq + 16;
	ok(!exec(&d, &d.q[0], &c, &e) &&
	   reg(&d, CSREC_REG_STATUS) == (CSREC_STATUS_READY | CSREC_STATUS_FATAL |
					 CSREC_FATAL_ADMIN_CQ << CSREC_STATUS_FATAL_SHIFT),
	   "error writing an admin completion is FATAL");
	d.fail_to = 0;
	disable(&d);
	enable(&d, 4);
	ok(good(&d, 0, cmd_plain(CSREC_OP_NOP, 0), 0), "disable clears that, too");
	free_places(p);
	close_dev(&d);
}

/* --- counters, descriptors --- */

static void test_counters(void)
{
	uint64_t rd, wr, dr, dw, read, written;
	struct dev d;

	open_long(&d);
	rd = CNT(&d, HOST_RD);
	wr = CNT(&d, HOST_WR);
	dr = CNT(&d, DRAM_RD);
	dw = CNT(&d, DRAM_WR);
	read = d.host_bytes[0];
	written = d.host_bytes[1];
	ok(wr == written && rd == read, "host bytes are what the host saw");
	ok(!dr && !dw, "nothing to DRAM so far");
	good(&d, 1, cmd_copy(0, KEY(1, 1), 3, KEY(2, 1), 77, 10001), 10001);
	ok(CNT(&d, HOST_RD) == rd + 64 + 10001 && CNT(&d, HOST_WR) == wr + 16 &&
	   CNT(&d, DRAM_WR) == dw + 10001 && CNT(&d, DRAM_RD) == dr,
	   "COPY moves its length, a command and a completion");
	ok(d.host_bytes[1] == written + 16 && d.host_bytes[0] >= read + 64 + 10001 &&
	   d.host_bytes[0] <= read + 64 + 10001 + 4 * 128, "reads are rounded out to 64 bytes");
	ok(CNT(&d, BUSY_COPY) > 0 && CNT(&d, BUSY_COPY) <= CNT(&d, BUSY) &&
	   CNT(&d, BUSY) <= CNT(&d, CYCLES) && CNT(&d, BUSY_EMB) == 0, "busy cycles");
	ok(CNT(&d, PROGRESS) > 10001 / 64, "progress");
	rd = CNT(&d, CYCLES);
	ok(csrec_model_step(d.m, 1000) == 0 && !csrec_model_busy(d.m), "idle: nothing to run");
	ok(CNT(&d, CYCLES) < rd + 100, "and no cycles pass");
	close_dev(&d);
}

static void test_descriptors(void)
{
	static const unsigned int sizes[] = { sizeof(struct csrec_emb_desc),
		sizeof(struct csrec_tt_desc), sizeof(struct csrec_interact_desc),
		sizeof(struct csrec_mlp_desc) };
	struct csrec_cmd c;
	struct dev d;
	unsigned int i;

	open_dev(&d, 4);
	make_queue(&d, 1, 4, 0);
	must(&d, cmd_region(0, KEY(2, 1), CSREC_REGION_DRAM, RW, 0, 0, 4096 + 96));
	must(&d, cmd_region(0, KEY(3, 1), CSREC_REGION_DRAM, CSREC_RIGHT_WRITE, 0, 0, 8192));
	for (i = 0; i < 4; i++) {
		struct csrec_body_desc *b = AS(&c, desc);

		if (!(reg(&d, CSREC_REG_CAP_ENGINE) >> (i + 1) & 1))
			continue;
		c = cmd_plain(CSREC_OP_EMB + i, 0);
		b->desc_key = KEY(300, 1);
		b->desc_off = 4;
		b->desc_len = sizes[i] - 8;
		ok(gives(&d, 1, c, CSREC_ST_BAD_LENGTH, BODY_FIELD(desc, desc_len), sizes[i] - 8),
		   "opcode 0x%x: desc_len", CSREC_OP_EMB + i);
		b->desc_len = sizes[i];
		ok(gives(&d, 1, c, CSREC_ST_BAD_ALIGN, BODY_FIELD(desc, desc_off), 4),
		   "desc_off");
		b->desc_off = 0;
		ok(gives(&d, 1, c, CSREC_ST_BAD_KEY, BODY_FIELD(desc, desc_key), KEY(300, 1)),
		   "desc_key");
		b->desc_key = KEY(3, 1);
		ok(gives(&d, 1, c, CSREC_ST_BAD_RIGHTS, BODY_FIELD(desc, desc_key), KEY(3, 1)),
		   "desc_key's right");
		b->desc_key = KEY(2, 1);
		b->desc_off = 4096 + 96 - sizes[i] + 8;
		ok(gives(&d, 1, c, CSREC_ST_OUT_OF_BOUNDS, BODY_FIELD(desc, desc_off),
			 b->desc_off), "descriptor past the region's end");
		/* across a page, up to the region's last byte: its flags are reached */
		b->desc_off -= 8;
		memset(d.dram, 0, 8192);
		memset(d.dram + b->desc_off, 0xff, 4);
		ok(gives(&d, 1, c, CSREC_ST_BAD_FLAGS, CSREC_FIELD_DESC, 0xffffffff),
		   "descriptor is read");
	}
	close_dev(&d);
}

/* The longest the device is BUSY without CNT_PROGRESS, in steps of 1000 cycles. */
static unsigned int longest_rest(struct dev *d, uint8_t opcode, const void *desc, uint32_t len)
{
	struct csrec_cmd c = cmd_plain(opcode, 1);
	struct csrec_body_desc *b = AS(&c, desc);
	uint64_t before = CNT(d, PROGRESS), after;
	unsigned int rest = 0, most = 0;
	struct csrec_cqe e;

	memcpy(d->dram, desc, len);
	b->desc_key = KEY(2, 1);
	b->desc_len = len;
	put(d, &d->q[1], &c);
	ring_doorbell(d, &d->q[1]);
	while (csrec_model_step(d->m, 1000) == 1000) {
		after = CNT(d, PROGRESS);
		rest = after == before ? rest + 1 : 0;
		most = rest > most ? rest : most;
		before = after;
	}
	ok(take(d, &d->q[1], &e) && !cqe_status(&e), "opcode 0x%x", opcode);
	return most;
}

/* Drivers take a device that is BUSY without progress for hung. */
static void test_progress(void)
{
	const struct csrec_tt_desc tt = {
		.nbags = 1, .nids = 1, .p = { 1, 1, 1 }, .q = { 16, 4, 4 }, .r = { 32, 32 },
		.out_stride = 1024, .nrows = 1, .core_key = { KEY(3, 1), KEY(3, 1), KEY(3, 1) },
		.ids_key = KEY(2, 1), .offsets_key = KEY(2, 1), .out_key = KEY(2, 1),
		.ids_off = 1024, .offsets_off = 2048, .out_off = 65536,
	};
	const struct csrec_interact_desc interact = {
		.op = CSREC_INTERACT_DOT, .nvec = 20, .dim = 256, .batch = 1,
		.in_key = KEY(2, 1), .out_key = KEY(2, 1), .in_off = 4096, .out_off = 65536,
		.vec_stride = 1024, .in_stride = 32768, .out_stride = 8192,
	};
	struct csrec_mlp_desc mlp = {	/* the second tile's weights are there */
		.batch = 32, .in_dim = 1024, .out_dim = 8,
		.x_key = KEY(2, 1), .w_key = KEY(2, 1), .y_key = KEY(2, 1),
		.x_off = 4096, .w_off = 1 << 20, .y_off = 2 << 20,
		.x_stride = 4096, .w_stride = 4096, .y_stride = 4096,
	};
	struct dev d;

	open_dev(&d, 4);
	make_queue(&d, 1, 4, 0);
	must(&d, cmd_region(0, KEY(2, 1), CSREC_REGION_DRAM, RW, 0, 0, DRAM_SIZE));
	must(&d, cmd_region(0, KEY(3, 1), CSREC_REGION_ONCHIP, RW, 0, 0, ONCHIP_SIZE));
	memset(d.dram, 0, DRAM_SIZE);
	d.dram[2048 + 4] = 1;	/* the end of TT's bag */
	ok(!longest_rest(&d, CSREC_OP_TT, &tt, sizeof(tt)), "progress while TT computes");
	ok(!longest_rest(&d, CSREC_OP_INTERACT, &interact, sizeof(interact)),
	   "progress while INTERACT computes");
	ok(!longest_rest(&d, CSREC_OP_MLP, &mlp, sizeof(mlp)), "progress while MLP computes");
	mlp.batch = 1;
	mlp.out_dim = 64;
	mlp.in_dim = 8;
	mlp.act = CSREC_ACT_SIGMOID;
	ok(!longest_rest(&d, CSREC_OP_MLP, &mlp, sizeof(mlp)), "and through its sigmoid");
	close_dev(&d);
}

int main(void)
{
	static const struct {
		const char *name;
		unsigned int latency, jitter, stall, late, seed, rounds;
	} timings[] = {
		{ "default", 300, 0, 0, 0, 1, 150 },
		{ "fast host, stalls", 3, 7, 40, 0, 2, 150 },
		{ "jitter", 50, 500, 10, 0, 3, 60 },
		{ "late answers", 20, 0, 0, 50, 4, 60 },
		{ "everything", 20, 60, 60, 20, 5, 60 },
	};
	unsigned int i;

	for (i = 0; i < sizeof(timings) / sizeof(timings[0]); i++) {
		timing = (struct csrec_model_config)CSREC_MODEL_CONFIG_DEFAULT;
		timing.host_latency = timings[i].latency;
		timing.host_jitter = timings[i].jitter;
		timing.stall_pct = timings[i].stall;
		timing.seed = timings[i].seed;
		timing.dram_latency = i ? 10 : 40;
		timing_late = timings[i].late;
		printf("# timing: %s\n", timings[i].name);
		test_registers();
		test_enable();
		test_doorbells();
		test_phase();
		test_reserved();
		test_admin();
		test_region_checks();
		test_copy(timings[i].rounds);
		test_order();
		test_turns();
		test_fences();
		test_delete();
		test_inval();
		test_coalescing();
		test_disable();
		test_bus_errors();
		test_counters();
		test_descriptors();
		if (!i)	/* it is about the engines, not the memories */
			test_progress();
	}
	return finish();
}
