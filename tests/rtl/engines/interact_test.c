// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * csrec_interact alone: interact_test [descriptors]
 */
#include <stdlib.h>
#include <string.h>

#include <linux/csrec_hw.h>
#include "engine.h"
#include "../math/tap.h"

#define FIELD(f) (CSREC_FIELD_DESC | offsetof(struct csrec_interact_desc, f))

enum { SLOT_IN, SLOT_RES };

static struct csrec_interact_desc d;
static uint8_t *before, *expected;	/* the out region */

static uint32_t out_elems(const struct csrec_interact_desc *c)
{
	uint32_t n = c->nvec;

	if (c->op == CSREC_INTERACT_CAT)
		return n * c->dim;
	return c->dim + (c->flags & CSREC_INTERACT_F_SELF ? n * (n + 1) / 2 : n * (n - 1) / 2);
}

static const uint32_t *vec(uint32_t sample, uint32_t i)
{
	return words(SLOT_IN, d.in_off + (uint64_t)sample * d.in_stride +
		     (uint64_t)i * d.vec_stride);
}

static void make(uint32_t op, uint32_t flags, uint32_t nvec, uint32_t dim, uint32_t batch)
{
	unsigned int kind = rnd_below(4);
	uint64_t span;

	d = (struct csrec_interact_desc){
		.flags = flags, .op = op, .nvec = nvec, .dim = dim, .batch = batch,
		.in_key = KEY(SLOT_IN), .out_key = KEY(SLOT_RES),
		.vec_stride = 4 * (dim + (rnd_below(2) ? 0 : rnd_below(20))),
	};
	span = (nvec - 1ull) * d.vec_stride + 4 * dim;
	d.in_stride = rnd_below(4) ? span + 4 * rnd_below(20)	/* any: samples may overlap */
				   : 4 * rnd_below(100);
	d.out_stride = 4 * (out_elems(&d) + (rnd_below(2) ? 0 : rnd_below(20)));
	d.in_off = place(SLOT_IN, CSREC_RIGHT_READ, false, (batch - 1ull) * d.in_stride + span);
	d.out_off = place(SLOT_RES, CSREC_RIGHT_WRITE, false,
			  (batch - 1ull) * d.out_stride + 4 * out_elems(&d));
	for (uint64_t i = 0; i < regions[SLOT_IN].size / 4; i++)
		words(SLOT_IN, 0)[i] = fp_operand(kind);
}

static void make_random(void)
{
	uint32_t op = rnd_below(3) ? CSREC_INTERACT_DOT : CSREC_INTERACT_CAT;

	make(op, op == CSREC_INTERACT_DOT ? rnd_below(2) : 0,
	     rnd_below(4) ? 1 + rnd_below(12) : 1 + rnd_below(MAX_VECS),
	     rnd_below(4) ? 1 + rnd_below(40) : 1 + rnd_below(MAX_DIM), 1 + rnd_below(4));
}

static void expect(void)
{
	free(before);
	free(expected);
	before = malloc(regions[SLOT_RES].size);
	expected = malloc(regions[SLOT_RES].size);
	memcpy(before, regions[SLOT_RES].mem, regions[SLOT_RES].size);
	memcpy(expected, before, regions[SLOT_RES].size);

	for (uint32_t s = 0; s < d.batch; s++) {
		uint32_t *out = (uint32_t *)(expected + d.out_off + (uint64_t)s * d.out_stride);
		bool self = d.flags & CSREC_INTERACT_F_SELF;

		for (uint32_t i = 0; i < (d.op == CSREC_INTERACT_CAT ? d.nvec : 1u); i++) {
			memcpy(out, vec(s, i), 4 * d.dim);
			out += d.dim;
		}
		if (d.op == CSREC_INTERACT_CAT)
			continue;
		for (uint32_t i = 0; i < d.nvec; i++)
			for (uint32_t j = 0; self ? j <= i : j < i; j++)
				*out++ = fp_dot(vec(s, i), 1, vec(s, j), 1, d.dim);
	}
}

static bool matches(void)
{
	for (uint64_t i = 0; i < regions[SLOT_RES].size; i++)
		if (expected[i] != regions[SLOT_RES].mem[i]) {
			printf("# op %u flags %u nvec %u dim %u batch %u: out differs first at byte %lld\n",
			       d.op, d.flags, d.nvec, d.dim, d.batch,
			       (long long)(i - d.out_off));
			return false;
		}
	return true;
}

static bool run_and_compare(void)
{
	struct run r;

	expect();
	run_random(&r);
	if (!run_desc(&engine_interact, &d, sizeof(d), &r))
		return false;
	if (r.done.status || r.done.detail != d.batch) {
		printf("# op %u flags %u nvec %u dim %u batch %u stride %u: got status %u field 0x%x detail %llu\n",
		       d.op, d.flags, d.nvec, d.dim, d.batch, d.vec_stride, r.done.status,
		       r.done.field, (unsigned long long)r.done.detail);
		return false;
	}
	return matches();
}

static void results(unsigned int n)
{
	static const struct {
		uint32_t op, flags;
		const char *name;
	} ops[] = {
		{ CSREC_INTERACT_DOT, 0, "dot" },
		{ CSREC_INTERACT_DOT, CSREC_INTERACT_F_SELF, "dot with the diagonal" },
		{ CSREC_INTERACT_CAT, 0, "cat" },
	};
	unsigned int bad = 0;

	for (unsigned int i = 0; i < n; i++) {
		make_random();
		bad += !run_and_compare();
	}
	tap(!bad, "interact: %u random descriptors", n);

	for (unsigned int o = 0; o < 3; o++) {
		bad = 0;
		for (uint32_t nvec = 1; nvec <= MAX_VECS; nvec++) {
			make(ops[o].op, ops[o].flags, nvec, 1 + rnd_below(20), 1);
			bad += !run_and_compare();
		}
		tap(!bad, "interact: %s, 1 to %u vectors", ops[o].name, MAX_VECS);
		bad = 0;
		for (uint32_t dim = 1; dim <= MAX_DIM; dim += dim < 50 ? 1 : 7) {
			make(ops[o].op, ops[o].flags, 3, dim, 1);
			bad += !run_and_compare();
		}
		tap(!bad, "interact: %s, dims 1 to 50, then to %u", ops[o].name, MAX_DIM);
		make(ops[o].op, ops[o].flags, MAX_VECS, MAX_DIM, 2);
		tap(run_and_compare(), "interact: %s, largest shape", ops[o].name);
	}
	bad = 0;
	for (unsigned int i = 0; i < 6; i++) {	/* no gaps, whole beats: read as one */
		make(i % 2 ? CSREC_INTERACT_CAT : CSREC_INTERACT_DOT, 0, 27 + 5 * i,
		     16 * (1 + i / 2), 3);
		d.vec_stride = 4 * d.dim;
		bad += !run_and_compare();
	}
	tap(!bad, "interact: vectors without gaps");
}

#define REFUSE(what, name, status, field, detail) do {					\
	make(CSREC_INTERACT_DOT, CSREC_INTERACT_F_SELF, 5, 20, 3);			\
	what;										\
	tap(expect_refusal(&engine_interact, &d, sizeof(d), SLOT_RES,			\
			   (struct completion){ CSREC_ST_##status, FIELD(field), detail }),\
	    "interact: " name);								\
} while (0)

static void rules(void)
{
	REFUSE(d.flags = 3, "unknown flag", BAD_FLAGS, flags, 3);
	REFUSE(d.flags = 0x80000000; d.rsvd5 = 1, "flags before reserved", BAD_FLAGS, flags,
	       0x80000000);
	REFUSE(d.rsvd5 = 0x80; d.rsvd10 = 1, "rsvd5", RESERVED, rsvd5, 0);
	REFUSE(d.rsvd10 = 0x8000; d.rsvd52 = 1; d.op = 9, "rsvd10", RESERVED, rsvd10, 0);
	REFUSE(d.rsvd52 = 1u << 31; d.rsvd56 = 1, "rsvd52", RESERVED, rsvd52, 0);
	REFUSE(d.rsvd56 = 1ull << 63; d.op = 7, "rsvd56", RESERVED, rsvd56, 0);
	REFUSE(d.op = 2; d.nvec = 0, "op", BAD_VALUE, op, 2);
	REFUSE(d.nvec = 0; d.dim = 0, "no vectors", BAD_VALUE, nvec, 0);
	REFUSE(d.nvec = MAX_VECS + 1, "too many vectors", BAD_VALUE, nvec, MAX_VECS + 1);
	REFUSE(d.nvec = 0xffff, "far too many vectors", BAD_VALUE, nvec, 0xffff);
	REFUSE(d.dim = 0; d.batch = 0, "dim 0", BAD_VALUE, dim, 0);
	REFUSE(d.dim = MAX_DIM + 1, "dim above the limit", BAD_VALUE, dim, MAX_DIM + 1);
	REFUSE(d.batch = 0; d.in_off = 1, "no samples", BAD_VALUE, batch, 0);
	REFUSE(d.in_off = 1; d.out_off = 1, "in_off", BAD_ALIGN, in_off, 1);
	REFUSE(d.out_off = 6; d.vec_stride = 1, "out_off", BAD_ALIGN, out_off, 6);
	REFUSE(d.vec_stride = 2; d.in_stride = 1, "vec_stride not aligned", BAD_ALIGN,
	       vec_stride, 2);
	REFUSE(d.vec_stride = 76; d.in_stride = 1, "vec_stride below the vector", BAD_VALUE,
	       vec_stride, 76);
	REFUSE(d.in_stride = 3; d.out_stride = 1, "in_stride", BAD_ALIGN, in_stride, 3);
	REFUSE(d.out_stride = 2, "out_stride not aligned", BAD_ALIGN, out_stride, 2);
	REFUSE(d.out_stride = 4 * (20 + 15) - 4; d.in_key = 0, "out_stride below dot with diagonal",
	       BAD_VALUE, out_stride, 136);
	REFUSE(d.flags = 0; d.out_stride = 4 * (20 + 10) - 4, "out_stride below dot", BAD_VALUE,
	       out_stride, 116);
	REFUSE(d.flags = 0; d.op = CSREC_INTERACT_CAT; d.out_stride = 396,
	       "out_stride below cat", BAD_VALUE, out_stride, 396);
	REFUSE(d.op = CSREC_INTERACT_CAT; d.out_stride = 396, "out_stride before diagonal of cat",
	       BAD_VALUE, out_stride, 396);
	REFUSE(d.op = CSREC_INTERACT_CAT; d.out_stride = 400; d.in_key = 0, "diagonal of cat",
	       BAD_FLAGS, flags, CSREC_INTERACT_F_SELF);
	REFUSE(d.in_key = 0x20000; d.out_key = 0, "in_key", STALE_KEY, in_key, 0x20000);
	REFUSE(regions[SLOT_RES].rights = CSREC_RIGHT_READ, "out_key", BAD_RIGHTS, out_key,
	       KEY(SLOT_RES));
	REFUSE(regions[SLOT_IN].size = d.in_off + 2ull * d.in_stride + 4ull * d.vec_stride + 79;
	       d.out_key = 0, "in extent", OUT_OF_BOUNDS, in_off, d.in_off);
	REFUSE(regions[SLOT_RES].size = d.out_off + 2ull * d.out_stride + 139, "out extent",
	       OUT_OF_BOUNDS, out_off, d.out_off);
	REFUSE(d.batch = 0xffffffff; d.in_stride = 0xfffffffc; d.vec_stride = 0xfffffffc;
	       d.nvec = 64; d.in_off = 0; d.out_stride = 0xfffffffc,
	       "in extent above 64 bits", OUT_OF_BOUNDS, in_off, 0);
}

/* A write that fails, or an abort, may leave any part of the output written. */
static bool partly(void)
{
	for (uint64_t i = 0; i < regions[SLOT_RES].size; i += 4)
		if (memcmp(regions[SLOT_RES].mem + i, expected + i, 4) &&
		    memcmp(regions[SLOT_RES].mem + i, before + i, 4))
			return false;
	return true;
}

static void cut_short(unsigned int n)
{
	unsigned int bad_fail = 0, bad_abort = 0, failed = 0, aborted = 0;

	for (unsigned int i = 0; i < n; i++) {
		struct run r, probe;

		/* small ones: many points at which to cut, and fast */
		make(rnd_below(2) ? CSREC_INTERACT_DOT : CSREC_INTERACT_CAT, 0, 1 + rnd_below(8),
		     1 + rnd_below(24), 1 + rnd_below(4));
		expect();
		run_random(&probe);
		r = probe;
		if (!run_desc(&engine_interact, &d, sizeof(d), &probe)) {
			bad_fail++;
			continue;
		}
		memcpy(regions[SLOT_RES].mem, before, regions[SLOT_RES].size);

		if (i % 2) {
			bool out;

			r.fail_at = rnd_below(probe.accesses);
			r.fail_status = rnd_below(2) ? CSREC_ST_BUS_ERROR : CSREC_ST_STALE_KEY;
			if (!run_desc(&engine_interact, &d, sizeof(d), &r)) {
				bad_fail++;
				continue;
			}
			if (!r.failed_key)	/* went another way this time */
				continue;
			failed++;
			out = r.failed_key == KEY(SLOT_RES);
			if (r.done.status != r.fail_status || !partly() ||
			    r.done.field != (out ? FIELD(out_key) : FIELD(in_key)) ||
			    r.done.detail != r.failed_key) {
				printf("# got status %u field 0x%x detail 0x%llx, %s access failed\n",
				       r.done.status, r.done.field,
				       (unsigned long long)r.done.detail, out ? "out" : "in");
				bad_fail++;
			}
		} else {
			r.abort = true;
			r.abort_at = rnd_below(probe.cycles + 2);
			if (!run_desc(&engine_interact, &d, sizeof(d), &r)) {
				bad_abort++;
				continue;
			}
			aborted += r.done.status == CSREC_ST_ABORTED;
			if (r.done.status == CSREC_ST_ABORTED)
				bad_abort += r.done.field != CSREC_FIELD_NONE || r.done.detail ||
					     !partly();
			else
				bad_abort += r.done.status || !matches();
		}
		/* and the engine is none the worse for it */
		make(CSREC_INTERACT_DOT, 0, 3, 8, 1);
		bad_fail += !run_and_compare();
	}
	tap(!bad_fail && failed > n / 4, "interact: %u accesses that failed while running", failed);
	tap(!bad_abort && aborted > n / 4, "interact: %u aborts", aborted);
}

int main(int argc, char **argv)
{
	unsigned int n = argc > 1 ? strtoul(argv[1], NULL, 0) : 200;

	results(n);
	rules();
	cut_short(15 * n);
	return tap_done();
}
