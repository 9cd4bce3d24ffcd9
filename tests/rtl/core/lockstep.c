// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Gives a model random commands and prints every completion and checksums of all memory
 * they could write. Linked once with the RTL and once with the golden device, the two
 * outputs must be equal (lockstep.sh compares them).
 *
 *   lockstep [-w FILE -b BATCH] SEED BATCHES [HOST_LATENCY DRAM_LATENCY STALL_PCT LATE_PCT [chaos]]
 *
 * -w writes the waves of one batch, for a seed that has failed.
 * With a seventh argument there is nothing to compare: instead, in each batch, a queue is
 * deleted or a region invalidated under the commands at work, host memory fails for a
 * while, or the device is disabled or reset. Then all must come to rest, every command be
 * accounted for, and the device start again. TAP.
 *
 * Much is legal, much has one bit or byte wrong. Commands that run at the same time never
 * touch the same bytes: each queue has its own domain and regions, what is read there is
 * never written by it, and within a queue all that writes has F_FENCE.
 *
 * Queues differ in interrupt coalescing. Their times are so long that they do not pass within
 * a batch, so that the number of interrupts does not depend on the timing: it must be equal,
 * too. With a seventh argument they are short, and no completion may be left without one.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dev.h"

#define N_IO		3	/* queues at work; the fourth is for QUEUE_CREATE */
#define PER_BATCH	10
#define AREA		0x40000	/* bytes of each region */

/* Slots of queue q: 8 * q + which. Keys differ in more than one byte. */
enum { IN_HOST, IN_DRAM, IN_ONCHIP, OUT_HOST, OUT_DRAM, OUT_ONCHIP, N_REGIONS };
static const uint8_t kinds[N_REGIONS] = {
	CSREC_REGION_HOST, CSREC_REGION_DRAM, CSREC_REGION_ONCHIP,
	CSREC_REGION_HOST, CSREC_REGION_DRAM, CSREC_REGION_ONCHIP,
};

static struct dev d;
static uint64_t dice = 1;	/* decisions; not the timing's random numbers */
static bool chaos;
static uint16_t qflags[N_IO + 1];	/* of QUEUE_CREATE */

static uint32_t roll(uint32_t n)
{
	dice ^= dice >> 12;
	dice ^= dice << 25;
	dice ^= dice >> 27;
	return ((dice * 0x2545f4914f6cdd1dull) >> 33) % n;
}

static uint32_t key(unsigned int q, unsigned int which)
{
	return KEY(8 * q + which, 0x1100 + 0x37 * (8 * q + which));
}

static uint64_t base_of(unsigned int q, unsigned int which)
{
	switch (kinds[which]) {
	case CSREC_REGION_HOST:
		return HOST_BASE + ((2 * q + (which == OUT_HOST)) * AREA);
	case CSREC_REGION_DRAM:
		return (2 * q + (which == OUT_DRAM)) * AREA;
	}
	return (2 * q + (which == OUT_ONCHIP)) * 0x10000;
}

static uint64_t size_of(unsigned int which)
{
	return kinds[which] == CSREC_REGION_ONCHIP ? 0x10000 : AREA;
}

/* Host regions are identity mapped, all but queue 2's through page lists behind the data. */
static uint64_t lists;

static struct csrec_cmd make_region(unsigned int q, unsigned int which)
{
	struct csrec_cmd c = cmd_region(0, key(q, which), kinds[which],
					which < OUT_HOST ? CSREC_RIGHT_READ :
					CSREC_RIGHT_READ | CSREC_RIGHT_WRITE, q,
					base_of(q, which), size_of(which));
	unsigned int i;

	if (kinds[which] == CSREC_REGION_HOST && q != 2) {
		uint64_t at = lists;

		for (i = 0; i < AREA / 4096; i++) {
			uint64_t page = base_of(q, which) + 4096 * i;

			memcpy(host_ptr(&d, at + 8 * i), &page, 8);
		}
		lists += 4096;
		AS(&c, region)->levels = 1;
		if (which == OUT_HOST) {
			memcpy(host_ptr(&d, lists), &at, 8);
			at = lists;
			lists += 4096;
			AS(&c, region)->levels = 2;
		}
		AS(&c, region)->base = at;
		AS(&c, region)->page_shift = 12;
	}
	return c;
}

static float random_float(void)
{
	static const uint32_t odd[] = { 0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc12345, 1,
		0x007fffff, 0x7f7fffff, 0x3f800000, 0x7f800001 };
	uint32_t bits = roll(1u << 31) << 1 | roll(2);
	float f;

	if (roll(40) == 0)
		bits = odd[roll(sizeof(odd) / sizeof(odd[0]))];
	else	/* mostly of like size, so that sums lose bits */
		bits = (bits & 0x807fffff) | (120 + roll(12)) << 23;
	memcpy(&f, &bits, sizeof(f));
	return f;
}

/* The test's own view of an input region in host memory or DRAM. */
static uint8_t *in_ptr(unsigned int q, unsigned int which, uint64_t off)
{
	return which == IN_HOST ? host_ptr(&d, base_of(q, which) + off) :
				  d.dram + base_of(q, which) + off;
}

/* Space for small inputs of a batch; the lower half of the regions is floats. */
static uint64_t in_next[N_IO + 1][2];

static uint64_t in_alloc(unsigned int q, unsigned int which, uint64_t len)
{
	uint64_t at = in_next[q][which];

	in_next[q][which] += (len + 7 + 4 * roll(20)) & ~7ull;
	if (in_next[q][which] > AREA)
		abort();
	return at;
}

/* Now and then one of another domain, or one that may not be written. */
static uint32_t any_in(unsigned int q)
{
	return key(roll(30) ? q : 1 + q % N_IO, IN_HOST + roll(3));
}

static uint32_t any_out(unsigned int q)
{
	return key(q, (roll(30) ? OUT_HOST : IN_HOST) + roll(3));
}

static uint64_t words(unsigned int max)
{
	return 4ull * roll(max / 4);
}

/* One bit, one byte, or a field of a few bytes, is not what it was. */
static void spoil(void *p, size_t from, size_t len)
{
	uint8_t *b = (uint8_t *)p + from;
	unsigned int i = roll(len);

	switch (roll(4)) {
	case 0:
		b[i] = roll(256);
		break;
	case 1:
		b[i & ~3u] += roll(2) ? 1 : -1;
		break;
	default:
		b[i] ^= 1u << roll(8);
	}
}

/* ids and offsets into memory of @which; sometimes wrong. */
static void make_bags(unsigned int q, unsigned int which, uint32_t nbags, uint32_t *nids,
		      uint64_t nrows, __le64 *ids_off, __le64 *offsets_off)
{
	uint32_t *offsets, *ids, i, at = roll(3);

	*offsets_off = in_alloc(q, which, 4 * (nbags + 1));
	offsets = (uint32_t *)in_ptr(q, which, *offsets_off);
	for (i = 0; i <= nbags; i++) {
		offsets[i] = at;
		at += roll(4) ? roll(6) : 0;
	}
	*nids = at + roll(3);
	*ids_off = in_alloc(q, which, 4 * (*nids + 1));
	ids = (uint32_t *)in_ptr(q, which, *ids_off);
	for (i = 0; i < *nids; i++)
		ids[i] = roll(nrows);
	if (roll(8) == 0)
		offsets[roll(nbags + 1)] = roll(2) ? roll(2 * at + 2) : roll(1u << 31);
	if (roll(8) == 0 && *nids)
		ids[roll(*nids)] = roll(2) ? nrows : roll(1u << 31);
}

/* A descriptor's place, its key and offset filled in; returns where it is. */
static void *make_desc(struct csrec_cmd *c, unsigned int q, unsigned int which, size_t size)
{
	uint64_t off = in_alloc(q, which, size + 8) & ~7ull;

	*AS(c, desc) = (struct csrec_body_desc){
		.desc_key = key(q, which), .desc_len = size, .desc_off = off,
	};
	memset(in_ptr(q, which, off), 0, size);
	return in_ptr(q, which, off);
}

static void make_emb(struct csrec_cmd *c, unsigned int q)
{
	unsigned int which = roll(2), bags_in = roll(2);
	struct csrec_emb_desc *e = make_desc(c, q, which, sizeof(*e));
	uint32_t nids;

	e->dim = 1 + (roll(3) ? roll(40) : roll(256));
	e->nbags = 1 + roll(6);
	e->nrows = 1 + roll(60);
	e->row_stride = 4 * e->dim + words(64);
	e->out_stride = 4 * e->dim + words(64);
	make_bags(q, bags_in, e->nbags, &nids, e->nrows, &e->ids_off, &e->offsets_off);
	e->nids = nids;
	e->ids_key = e->offsets_key = key(q, bags_in);
	e->table_key = any_in(q);
	e->table_off = words(0x800);
	e->out_key = any_out(q);
	e->out_off = words(0x8000);
	if (roll(2)) {
		e->flags = CSREC_EMB_F_WEIGHTS;
		e->weights_key = any_in(q);
		e->weights_off = words(0x8000);
	}
	if (roll(3) == 0)
		spoil(e, 0, sizeof(*e));
}

static void make_tt(struct csrec_cmd *c, unsigned int q)
{
	unsigned int which = roll(2), bags_in = roll(2), k;
	struct csrec_tt_desc *t = make_desc(c, q, which, sizeof(*t));
	uint32_t nids, dim;

	for (k = 0; k < 3; k++) {
		t->p[k] = 1 + roll(5);
		t->q[k] = 1 + roll(5);
	}
	t->r[0] = 1 + roll(9);
	t->r[1] = 1 + roll(9);
	dim = t->q[0] * t->q[1] * t->q[2];
	t->nbags = 1 + roll(4);
	t->nrows = t->p[0] * t->p[1] * t->p[2];
	if (t->nrows > 1)
		t->nrows -= roll(2);
	t->out_stride = 4 * dim + words(40);
	make_bags(q, bags_in, t->nbags, &nids, t->nrows, &t->ids_off, &t->offsets_off);
	t->nids = nids;
	t->ids_key = t->offsets_key = key(q, bags_in);
	for (k = 0; k < 3; k++) {
		t->core_key[k] = key(q, IN_ONCHIP);
		t->core_off[k] = words(0x4000);
	}
	t->out_key = any_out(q);
	t->out_off = words(0x8000);
	t->flags = roll(4);
	if (t->flags & CSREC_TT_F_WEIGHTS) {
		t->weights_key = any_in(q);
		t->weights_off = words(0x8000);
	}
	if (roll(3) == 0)
		spoil(t, 0, sizeof(*t));
}

static void make_interact(struct csrec_cmd *c, unsigned int q)
{
	struct csrec_interact_desc *n = make_desc(c, q, roll(2), sizeof(*n));
	uint32_t out;

	n->op = roll(2);
	n->nvec = 1 + roll(12);
	n->dim = 1 + roll(40);
	n->batch = 1 + roll(4);
	n->flags = n->op == CSREC_INTERACT_DOT ? roll(2) : roll(8) == 0;
	out = n->op == CSREC_INTERACT_CAT ? n->nvec * n->dim :
	      n->dim + n->nvec * (n->nvec + (n->flags ? 1 : -1)) / 2;
	n->vec_stride = 4 * n->dim + words(32);
	n->in_stride = roll(4) ? n->nvec * n->vec_stride : words(64);
	n->out_stride = 4 * out + words(32);
	n->in_key = any_in(q);
	n->in_off = words(0x4000);
	n->out_key = any_out(q);
	n->out_off = words(0x8000);
	if (roll(3) == 0)
		spoil(n, 0, sizeof(*n));
}

static void make_mlp(struct csrec_cmd *c, unsigned int q)
{
	struct csrec_mlp_desc *m = make_desc(c, q, roll(2), sizeof(*m));

	m->batch = 1 + roll(5);
	m->in_dim = 1 + roll(60);
	m->out_dim = 1 + roll(30);
	m->act = roll(3);
	m->x_stride = 4 * m->in_dim + words(32);
	m->w_stride = 4 * m->in_dim + words(32);
	m->y_stride = 4 * m->out_dim + words(32);
	m->x_key = any_in(q);
	m->w_key = any_in(q);
	m->y_key = any_out(q);
	m->x_off = words(0x4000);
	m->w_off = words(0x4000);
	m->y_off = words(0x8000);
	if (roll(2)) {
		m->flags = CSREC_MLP_F_BIAS;
		m->bias_key = any_in(q);
		m->bias_off = words(0x8000);
	}
	if (roll(3) == 0)
		spoil(m, 0, sizeof(*m));
}

static struct csrec_cmd make_command(unsigned int q, uint16_t cid)
{
	static void (*const engine[])(struct csrec_cmd *, unsigned int) = {
		make_emb, make_tt, make_interact, make_mlp,
	};
	struct csrec_cmd c;
	uint64_t len;

	switch (roll(10)) {
	case 0:
		c = cmd_plain(roll(2) ? CSREC_OP_NOP : CSREC_OP_FENCE, cid);
		break;
	case 1:
		/* one fence a queue: nobody else changes it */
		c = cmd_fence(CSREC_OP_SIGNAL, cid, KEY(q, 0x55), roll(1000));
		break;
	case 2:
	case 3:
		len = 1 + roll(roll(2) ? 200 : 10000);
		c = cmd_copy(cid, any_in(q), roll(0x8000), any_out(q), roll(0x8000), len);
		break;
	case 4:
		c = cmd_fill(cid, any_out(q), words(0x8000), 4 + words(6000), roll(1u << 31));
		break;
	default:
		len = roll(4);
		c = cmd_plain(CSREC_OP_EMB + len, cid);
		engine[len](&c, q);
	}
	c.flags = CSREC_CMD_F_FENCE | (roll(3) ? 0 : CSREC_CMD_F_NOIRQ);
	if (roll(5) == 0) {
		do
			spoil(&c, 0, sizeof(c));
		while (c.opcode == CSREC_OP_WAIT);	/* might never end */
		c.cid = cid;
		c.flags |= CSREC_CMD_F_FENCE;
	}
	return c;
}

/* Regions 200.. and fences 32.. are for these, and queue 4. */
static struct csrec_cmd make_admin(uint16_t cid)
{
	uint32_t slot = 200 + roll(4), gen = 0x2200 + roll(2), fence = KEY(32 + roll(4), gen);
	struct csrec_cmd c;

	switch (roll(8)) {
	case 0:
		c = cmd_queue(cid, 4, 1 + roll(12), roll(5), roll(9));
		AS(&c, queue)->irq_count = roll(4);
		AS(&c, queue)->irq_cycles = roll(3);
		AS(&c, queue)->qflags = roll(3);
		break;
	case 1:
		c = cmd_delete(cid, 4);
		break;
	case 2:
	case 3:
		c = cmd_region(cid, KEY(slot, gen), 1 + roll(3), 1 + roll(3), roll(9),
			       64 * roll(2000), 1 + roll(60000));
		if (AS(&c, region)->kind == CSREC_REGION_HOST) {
			AS(&c, region)->levels = roll(3);
			if (AS(&c, region)->levels) {
				AS(&c, region)->page_shift = 12 + roll(19);
				AS(&c, region)->page_off = roll(4096);
			}
		}
		break;
	case 4:
		c = cmd_inval(cid, KEY(slot, gen));
		break;
	case 5:
		c = cmd_fence_set(cid, fence, roll(9), roll(100));
		break;
	case 6:
		c = cmd_fence(CSREC_OP_FENCE_SIGNAL, cid, fence, roll(300));
		break;
	default:
		c = cmd_fence(CSREC_OP_FENCE_INVAL, cid, fence, 0);
	}
	if (roll(2)) {
		/* single bits: 4 becomes no queue that is at work */
		((uint8_t *)&c)[roll(64)] ^= 1u << roll(8);
		c.cid = cid;
		if (c.opcode == CSREC_OP_WAIT)
			c.opcode = CSREC_OP_NOP;
	}
	return c;
}

static uint64_t checksum(const uint8_t *p, size_t n)
{
	uint64_t h = 0xcbf29ce484222325;

	while (n--)
		h = (h ^ *p++) * 0x100000001b3;
	return h;
}

static void print_completions(unsigned int q, unsigned int batch, unsigned int n)
{
	struct csrec_cqe e, by_cid[PER_BATCH];
	bool seen[PER_BATCH] = { false };
	unsigned int i;

	for (i = 0; i < n && take(&d, &d.q[q], &e); i++) {
		if (e.cid >= PER_BATCH || seen[e.cid]) {
			printf("batch %u queue %u: completion of unknown cid %u\n", batch, q, e.cid);
			continue;
		}
		seen[e.cid] = true;
		by_cid[e.cid] = e;
	}
	for (i = 0; i < n; i++) {
		if (!seen[i])
			printf("batch %u queue %u cid %u: none\n", batch, q, i);
		else
			printf("batch %u queue %u cid %u: status %u field 0x%x detail 0x%llx\n",
			       batch, q, i, cqe_status(&by_cid[i]), by_cid[i].field,
			       (unsigned long long)by_cid[i].detail);
	}
}

static void run_batch(unsigned int batch)
{
	unsigned int n[N_QUEUES], q, i;
	struct csrec_cmd c;

	for (q = 1; q <= N_IO; q++) {
		in_next[q][0] = in_next[q][1] = AREA / 2;
		n[q] = 1 + roll(PER_BATCH);
		for (i = 0; i < n[q]; i++) {
			c = make_command(q, i);
			printf("# batch %u queue %u cid %u: opcode 0x%x\n", batch, q, i, c.opcode);
			put(&d, &d.q[q], &c);
		}
	}
	for (q = 1; q <= N_IO; q++)
		ring_doorbell(&d, &d.q[q]);
	for (q = 1; q <= N_IO; q++)
		if (!run_posted(&d, &d.q[q], n[q]))
			printf("batch %u does not end\n", batch);
	for (q = 1; q <= N_IO; q++) {
		print_completions(q, batch, n[q]);
		printf("batch %u queue %u interrupts %u\n", batch, q, d.irqs[q]);
		/* nothing waits for an interrupt any more */
		ring_doorbell(&d, &d.q[q]);
	}

	n[0] = 1 + roll(PER_BATCH);
	for (i = 0; i < n[0]; i++) {
		c = make_admin(i);
		printf("# batch %u admin cid %u: opcode 0x%x\n", batch, i, c.opcode);
		put(&d, &d.q[0], &c);
	}
	ring_doorbell(&d, &d.q[0]);
	run(&d);
	print_completions(0, batch, n[0]);

	for (q = 1; q <= N_IO; q++) {
		/* on-chip output where it can be seen */
		c = cmd_copy(0, key(q, OUT_ONCHIP), 0, key(q, OUT_DRAM), AREA - 0x10000, 0x10000);
		put(&d, &d.q[q], &c);
		ring_doorbell(&d, &d.q[q]);
		run_posted(&d, &d.q[q], 1);
		print_completions(q, batch, 1);
		ring_doorbell(&d, &d.q[q]);
		printf("batch %u queue %u memory %016llx %016llx\n", batch, q,
		       (unsigned long long)checksum(host_ptr(&d, base_of(q, OUT_HOST)), AREA),
		       (unsigned long long)checksum(d.dram + base_of(q, OUT_DRAM), AREA));
	}
}

static void make_any_queue(unsigned int q)
{
	uint16_t irq_count = roll(3) ? 2 + roll(PER_BATCH) : roll(2);
	uint32_t irq_cycles = chaos ? 1 + roll(roll(2) ? 40 : 5000) : 1u << 31;

	qflags[q] = roll(5) ? 0 : CSREC_QUEUE_HW_F_NOIRQ;
	make_coalescing(&d, q, 4, q, irq_count, irq_cycles, qflags[q]);
}

/* Admin queue, queues and regions as the commands expect them. */
static void set_up(void)
{
	unsigned int q, which;

	lists = HOST_BASE + (8u << 20);
	enable(&d, 6);
	for (q = 1; q <= N_IO; q++) {
		make_any_queue(q);
		for (which = 0; which < N_REGIONS; which++)
			must(&d, make_region(q, which));
		must(&d, cmd_fence_set(0, KEY(q, 0x55), q, 0));
	}
	/* On-chip inputs: filled through a second key of the same memory. */
	for (q = 1; q <= N_IO; q++) {
		struct csrec_cqe e;
		struct csrec_cmd c = cmd_copy(0, key(q, IN_DRAM), 0, KEY(100, 1), 0, 0x10000);

		must(&d, cmd_region(0, KEY(100, 1), CSREC_REGION_ONCHIP, CSREC_RIGHT_WRITE, q,
				    base_of(q, IN_ONCHIP), 0x10000));
		put(&d, &d.q[q], &c);
		ring_doorbell(&d, &d.q[q]);
		run_posted(&d, &d.q[q], 1);
		if (!take(&d, &d.q[q], &e) || cqe_status(&e))
			printf("cannot fill on-chip memory\n");
		c = cmd_fill(0, key(q, OUT_ONCHIP), 0, 0x10000, 0);
		put(&d, &d.q[q], &c);
		ring_doorbell(&d, &d.q[q]);
		run_posted(&d, &d.q[q], 1);
		if (!take(&d, &d.q[q], &e) || cqe_status(&e))
			printf("cannot clear on-chip memory\n");
		ring_doorbell(&d, &d.q[q]);
		must(&d, cmd_inval(0, KEY(100, 1)));
	}
}

static void fill_inputs(void)
{
	unsigned int q, i;

	for (q = 1; q <= N_IO; q++) {
		for (i = 0; i < AREA / 8; i++) {
			((float *)in_ptr(q, IN_HOST, 0))[i] = random_float();
			((float *)in_ptr(q, IN_DRAM, 0))[i] = random_float();
		}
	}
}

/* --- chaos --- */

static void step_some(unsigned int n)
{
	csrec_model_step(d.m, 1 + roll(n));
}

/* Runs until the admin queue has answered. */
static bool admin(struct csrec_cmd c, struct csrec_cqe *e)
{
	unsigned int i;

	put(&d, &d.q[0], &c);
	ring_doorbell(&d, &d.q[0]);
	for (i = 0; i < 200000; i++) {
		if (take(&d, &d.q[0], e)) {
			ring_doorbell(&d, &d.q[0]);
			return true;
		}
		/* one step at a time, so that what comes after is seen */
		if (!csrec_model_step(d.m, d.n_late ? 100 : 1))
			run(&d);
	}
	return false;
}

static bool chaos_batch(void)
{
	unsigned int n[N_QUEUES], got, q, i, what = roll(6), irqs = 0;
	bool silent[N_QUEUES][PER_BATCH];	/* no interrupt for this cid */
	struct csrec_cqe e;
	struct csrec_cmd c;
	bool good = true;

	for (q = 1; q <= N_IO; q++) {
		in_next[q][0] = in_next[q][1] = AREA / 2;
		n[q] = 1 + roll(PER_BATCH);
		for (i = 0; i < n[q]; i++) {
			c = make_command(q, i);
			if (roll(2))
				c.flags &= ~CSREC_CMD_F_FENCE;
			silent[q][i] = (c.flags & CSREC_CMD_F_NOIRQ) || qflags[q];
			put(&d, &d.q[q], &c);
		}
		ring_doorbell(&d, &d.q[q]);
	}
	step_some(20000);
	q = 1 + roll(N_IO);
	switch (what) {
	case 0:
	case 1:
		good &= admin(cmd_delete(0, q), &e) && !cqe_status(&e);
		d.watch_from = d.q[q].sq;
		d.watch_to = d.q[q].sq + RING_STRIDE;
		d.watched = 0;
		irqs = d.irqs[q];
		break;
	case 2:
		i = roll(N_REGIONS);
		good &= admin(cmd_inval(0, key(q, i)), &e) && !cqe_status(&e);
		break;
	case 3:
		d.fail_from = base_of(q, roll(2) ? IN_HOST : OUT_HOST) + roll(AREA);
		d.fail_to = d.fail_from + 1 + roll(30000);
		step_some(20000);
		break;
	case 4:
		set(&d, CSREC_REG_CTRL, 0);
		break;
	default:
		csrec_model_reset(d.m);
	}
	good &= run(&d) && !csrec_model_busy(d.m);
	d.fail_to = 0;
	if (what < 2) {
		good &= !d.watched && d.irqs[q] == irqs;
		d.watch_to = 0;
	}
	for (i = 1; i <= N_IO; i++) {
		bool cid[PER_BATCH] = { false };

		got = 0;
		while (take(&d, &d.q[i], &e)) {
			good &= e.cid < n[i] && !cid[e.cid];
			cid[e.cid % PER_BATCH] = true;
			got++;
			/* no interrupt is lost, unless the queue is */
			if (what < 4 && !(what < 2 && i == q) && !silent[i][e.cid % PER_BATCH])
				good &= d.q[i].told >= d.q[i].head;
		}
		/* all of them, but where the queue ended early */
		good &= what >= 4 || (what < 2 && i == q) || got == n[i];
	}
	if (!good)
		printf("# what %u, queue %u\n", what, q);
	/* afresh, by the gentler or the harder way */
	if (roll(2)) {
		disable(&d);
		good &= reg(&d, CSREC_REG_STATUS) == 0;
	} else {
		csrec_model_reset(d.m);
		run(&d);
	}
	set_up();
	return good;
}

/* Waves on or off, if there are to be any. */
static void trace(const char *file, bool on)
{
	if (file && csrec_model_trace(d.m, on ? file : NULL)) {
		fprintf(stderr, "lockstep: this model writes no waves to '%s'\n", file);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct csrec_model_config cfg = CSREC_MODEL_CONFIG_DEFAULT;
	unsigned int batches, i, bad = 0, wave_batch = 0;
	const char *wave = NULL;
	int opt;

	while ((opt = getopt(argc, argv, "w:b:")) != -1) {
		if (opt == 'w')
			wave = optarg;
		else if (opt == 'b')
			wave_batch = strtoul(optarg, NULL, 0);
		else
			argc = 0;
	}
	argc -= optind;
	argv += optind;
	if (argc < 2) {
		fprintf(stderr, "usage: lockstep [-w FILE -b BATCH] SEED BATCHES "
			"[HOST_LATENCY DRAM_LATENCY STALL_PCT LATE_PCT [chaos]]\n");
		return 2;
	}
	cfg.seed = strtoul(argv[0], NULL, 0);
	dice = cfg.seed * 0x9e3779b97f4a7c15ull | 1;
	batches = strtoul(argv[1], NULL, 0);
	cfg.host_latency = argc > 2 ? strtoul(argv[2], NULL, 0) : 10;
	cfg.dram_latency = argc > 3 ? strtoul(argv[3], NULL, 0) : 5;
	cfg.stall_pct = argc > 4 ? strtoul(argv[4], NULL, 0) : 0;
	dev_open(&d, &cfg);
	d.late_pct = argc > 5 ? strtoul(argv[5], NULL, 0) : 0;
	chaos = argc > 6;
	fill_inputs();
	set_up();
	if (chaos) {
		for (i = 0; i < batches && !bad; i++) {
			trace(wave, i == wave_batch);
			bad += !chaos_batch();
			if (bad)
				printf("# batch %u\n", i);
		}
		ok(!bad, "%u batches cut short in all ways, latency %s and %s, stalls %s%%, late %s%%",
		   batches, argv[2], argv[3], argv[4], argv[5]);
		dev_close(&d);
		return finish();
	}
	for (i = 0; i < batches; i++) {
		trace(wave, i == wave_batch);
		run_batch(i);
	}
	printf("%llu interrupts\n", (unsigned long long)reg(&d, CSREC_REG_CNT_IRQS));
	printf("%llu rows, %llu TT rows\n", (unsigned long long)reg(&d, CSREC_REG_CNT_EMB_ROWS),
	       (unsigned long long)reg(&d, CSREC_REG_CNT_TT_ROWS));
	dev_close(&d);
	return 0;
}
