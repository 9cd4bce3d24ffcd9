// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * csrec_tt alone: tt_test [descriptors]
 */
#include <stdlib.h>
#include <string.h>

#include <linux/csrec_hw.h>
#include "engine.h"
#include "../math/tap.h"

#define FIELD(f) (CSREC_FIELD_DESC | offsetof(struct csrec_tt_desc, f))
#define MAX_RANK 32

static const unsigned int core_slot[3] = { SLOT_TABLE, SLOT_CORE1, SLOT_CORE2 };
static struct csrec_tt_desc d;
static struct bags b;
static uint64_t saved_in_all;

static uint32_t slice(unsigned int k)
{
	return (k ? d.r[k - 1] : 1) * d.q[k] * (k < 2 ? d.r[k] : 1);
}

static void tt_row(uint32_t id, uint32_t *row)
{
	static uint32_t t[MAX_DIM * MAX_RANK];
	uint32_t i[3] = { id / d.p[2] / d.p[1], id / d.p[2] % d.p[1], id % d.p[2] };
	uint32_t n = d.q[1] * d.r[1], *core[3];

	for (unsigned int k = 0; k < 3; k++)
		core[k] = words(core_slot[k], d.core_off[k] + 4ull * i[k] * slice(k));
	for (uint32_t m = 0; m < d.q[0]; m++)		/* [q0][q1 * r2], that is [q0 * q1][r2] */
		for (uint32_t c = 0; c < n; c++)
			t[m * n + c] = fp_dot(core[0] + m * d.r[0], 1, core[1] + c, n, d.r[0]);
	for (uint32_t m = 0; m < (uint32_t)d.q[0] * d.q[1]; m++)
		for (uint32_t c = 0; c < d.q[2]; c++)
			row[m * d.q[2] + c] = fp_dot(t + m * d.r[1], 1, core[2] + c, d.q[2],
						     d.r[1]);
}

struct shape {
	uint32_t p[3];
	uint16_t q[3], r[2];
};

static void make(const struct shape *s, uint32_t flags, uint32_t nbags, unsigned int longest)
{
	unsigned int kind = rnd_below(4);
	uint64_t rows = (uint64_t)s->p[0] * s->p[1] * s->p[2];
	uint32_t dim = s->q[0] * s->q[1] * s->q[2];

	b = (struct bags){
		.nbags = nbags, .dim = dim, .row = tt_row,
		.nrows = rnd_below(2) ? rows : 1 + rnd_below(rows),
		.out_stride = 4 * (dim + (rnd_below(2) ? 0 : rnd_below(40))),
		.weighted = flags & CSREC_TT_F_WEIGHTS, .accum = flags & CSREC_TT_F_ACCUM,
		.field_offsets_off = offsetof(struct csrec_tt_desc, offsets_off),
		.field_ids_off = offsetof(struct csrec_tt_desc, ids_off),
	};
	bags_make(&b, longest, kind);
	d = (struct csrec_tt_desc){
		.flags = flags, .nbags = nbags, .nids = b.nids, .nrows = b.nrows,
		.p = { s->p[0], s->p[1], s->p[2] }, .q = { s->q[0], s->q[1], s->q[2] },
		.r = { s->r[0], s->r[1] }, .out_stride = b.out_stride,
		.core_key = { KEY(SLOT_TABLE), KEY(SLOT_CORE1), KEY(SLOT_CORE2) },
		.ids_key = KEY(SLOT_IDS), .offsets_key = KEY(SLOT_OFFSETS),
		.weights_key = b.weighted ? KEY(SLOT_WEIGHTS) : 0, .out_key = KEY(SLOT_OUT),
		.ids_off = b.ids_off, .offsets_off = b.offsets_off,
		.weights_off = b.weights_off, .out_off = b.out_off,
	};
	for (unsigned int k = 0; k < 3; k++) {
		uint32_t n = s->p[k] * slice(k);

		d.core_off[k] = place(core_slot[k], CSREC_RIGHT_READ, true, 4ull * n);
		for (uint32_t i = 0; i < n; i++)
			words(core_slot[k], d.core_off[k])[i] = fp_operand(kind);
	}
}

static void random_shape(struct shape *s)
{
	do {
		unsigned int rank = rnd_below(4) ? 12 : MAX_RANK;
		unsigned int q = rnd_below(4) ? 6 : 24;

		for (unsigned int k = 0; k < 3; k++) {
			s->p[k] = 1 + rnd_below(5);
			s->q[k] = 1 + rnd_below(q);
		}
		s->r[0] = 1 + rnd_below(rank);
		s->r[1] = 1 + rnd_below(rank);
	} while (s->q[0] * s->q[1] * s->q[2] > MAX_DIM ||
		 s->r[0] * s->q[1] * s->r[1] > CSREC_TT_MAX_SLICE);
}

static void make_random(void)
{
	struct shape s;

	random_shape(&s);
	make(&s, rnd_below(4), 1 + rnd_below(6), rnd_below(5));
}

/* What reuse must have spared (REFERENCE.md, section 4) */
static uint64_t saved(void)
{
	const uint32_t *offsets = words(SLOT_OFFSETS, b.offsets_off);
	const uint32_t *ids = words(SLOT_IDS, b.ids_off);
	uint32_t size = d.q[0] * d.q[1] * ((d.r[1] + 7) / 8), last[CSREC_TT_MAX_KEPT];
	uint64_t n = 0, places = MAX_DIM * MAX_RANK / 8;

	while (places > CSREC_TT_MAX_KEPT || places * size > MAX_DIM * MAX_RANK / 8)
		places /= 2;
	memset(last, 0xff, sizeof(last));
	for (uint32_t j = offsets[0]; j < offsets[b.nbags]; j++) {
		uint32_t leading = ids[j] / d.p[2], *l = &last[leading % places];

		n += *l == leading;
		*l = leading;
	}
	return n * d.q[0] * slice(1);
}

static bool run_and_compare(void)
{
	struct completion want = bags_expect(&b);
	struct run r;

	run_random(&r);
	if (!run_desc(&engine_tt, &d, sizeof(d), &r))
		return false;
	if (r.done.status != want.status || r.done.detail != want.detail ||
	    (want.status && r.done.field != want.field)) {
		printf("# got status %u field 0x%x detail %llu, want %u 0x%x %llu\n",
		       r.done.status, r.done.field, (unsigned long long)r.done.detail,
		       want.status, want.field, (unsigned long long)want.detail);
		return false;
	}
	if (!want.status && r.rows != want.detail) {
		printf("# %lu pulses of rows_o for %llu rows\n", r.rows,
		       (unsigned long long)want.detail);
		return false;
	}
	if (!want.status && r.saved != saved()) {
		printf("# %lu multiplications saved, want %llu\n", r.saved,
		       (unsigned long long)saved());
		return false;
	}
	saved_in_all += r.saved;
	if (bags_match(&b, true))
		return true;
	printf("# flags %u q %u %u %u r %u %u\n", d.flags, d.q[0], d.q[1], d.q[2], d.r[0],
	       d.r[1]);
	return false;
}

static void sums(unsigned int n)
{
	static const struct shape shapes[] = {
		{ { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1 } },
		{ { 2, 2, 2 }, { 2, 2, 2 }, { 1, 1 } },
		{ { 3, 4, 5 }, { 2, 2, 4 }, { 16, 16 } },
		{ { 5, 4, 3 }, { 4, 4, 4 }, { 32, 32 } },
		{ { 2, 3, 2 }, { 8, 4, 8 }, { 32, 32 } },
		{ { 2, 3, 2 }, { 4, 4, 16 }, { 8, 24 } },
		{ { 2, 2, 2 }, { 1, 128, 2 }, { 1, 32 } },	/* longest T, B in one bank */
		{ { 2, 2, 2 }, { 1, 256, 1 }, { 1, 16 } },
		{ { 2, 2, 2 }, { 1, 128, 1 }, { 32, 1 } },
		{ { 2, 2, 2 }, { 256, 1, 1 }, { 16, 32 } },
		{ { 2, 2, 2 }, { 128, 1, 2 }, { 32, 32 } },
		{ { 2, 2, 2 }, { 1, 1, 256 }, { 32, 16 } },
		{ { 3, 3, 3 }, { 3, 5, 7 }, { 7, 9 } },
		{ { 3, 3, 3 }, { 5, 3, 1 }, { 31, 17 } },
		{ { 40, 1, 50 }, { 1, 2, 3 }, { 8, 8 } },
		{ { 1, 70, 1 }, { 3, 1, 2 }, { 2, 3 } },
	};
	unsigned int bad = 0;

	for (unsigned int i = 0; i < n; i++) {
		make_random();
		bad += !run_and_compare();
	}
	tap(!bad && saved_in_all, "tt: %u random descriptors, reuse saves %llu multiplications", n,
	    (unsigned long long)saved_in_all);

	bad = 0;
	for (unsigned int i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		for (uint32_t flags = 0; flags <= CSREC_TT_F_ALL; flags++) {
			make(&shapes[i], flags, 3, 3);
			bad += !run_and_compare();
		}
	tap(!bad, "tt: %zu shapes with all flags", sizeof(shapes) / sizeof(*shapes));

	make(&shapes[1], CSREC_TT_F_WEIGHTS, 600, 3);
	tap(run_and_compare(), "tt: 600 bags");
	make(&shapes[2], 0, 20, 0);
	tap(run_and_compare(), "tt: only empty bags");
	make(&shapes[2], CSREC_TT_F_ACCUM, 20, 0);
	tap(run_and_compare(), "tt: only empty bags, added to what is there");
	make(&shapes[0], CSREC_TT_F_ACCUM, 3, 0);
	d.nids = b.nids = 0;
	memset(words(SLOT_OFFSETS, b.offsets_off), 0, 16);
	tap(run_and_compare(), "tt: no ids at all");

	/* few leading digits, so that most rows find T; cores change from command to command */
	for (uint32_t flags = 0; flags <= CSREC_TT_F_ALL; flags++) {
		make(&(struct shape){ { 2, 1, 7 }, { 2, 3, 4 }, { 5, 11 } }, flags, 40, 6);
		tap(run_and_compare(), "tt: rows that share leading digits, flags %u", flags);
		make(&(struct shape){ { 9, 11, 2 }, { 2, 2, 2 }, { 3, 3 } }, flags, 200, 6);
		tap(run_and_compare(), "tt: more leading digits than places, flags %u", flags);
	}

	/* digits of ids that need all 32 bits: only the first core is large */
	make(&(struct shape){ { 2000, 1, 1 }, { 1, 1, 1 }, { 1, 1 } }, 0, 4, 8);
	tap(run_and_compare(), "tt: many rows");
}

static void stream_errors(void)
{
	unsigned int bad = 0, seen_id = 0, seen_offsets = 0;

	for (unsigned int i = 0; i < 60; i++) {
		uint32_t *offsets, *ids;

		make_random();
		offsets = words(SLOT_OFFSETS, b.offsets_off);
		ids = words(SLOT_IDS, b.ids_off);
		if (i % 2 && offsets[b.nbags] > offsets[0]) {
			ids[offsets[0] + rnd_below(offsets[b.nbags] - offsets[0])] =
				rnd_below(2) ? b.nrows : 0xffffffff;
			seen_id++;
		} else {
			offsets[rnd_below(b.nbags + 1)] = rnd_below(2) ? b.nids + 1 : rnd();
			seen_offsets++;
		}
		if (!bags_expect(&b).status)
			continue;
		bad += !run_and_compare();
	}
	tap(!bad && seen_id && seen_offsets, "tt: bad offsets and ids in mid-stream");
}

#define REFUSE(what, name, status, field, detail) do {					\
	make(&(struct shape){ { 3, 4, 5 }, { 2, 3, 4 }, { 5, 6 } }, CSREC_TT_F_ALL, 4, 3);\
	what;										\
	tap(expect_refusal(&engine_tt, &d, sizeof(d), SLOT_OUT,				\
			   (struct completion){ CSREC_ST_##status, FIELD(field), detail }),\
	    "tt: " name);								\
} while (0)

static void rules(void)
{
	REFUSE(d.flags |= 4; d.rsvd34 = 1, "unknown flag", BAD_FLAGS, flags, 7);
	REFUSE(d.rsvd34 = 1; d.rsvd76 = 1, "rsvd34", RESERVED, rsvd34, 0);
	REFUSE(d.flags = 0; d.rsvd76 = 1, "weights_key without weights", RESERVED, weights_key, 0);
	REFUSE(d.rsvd76 = 1; d.rsvd136[0] = 1, "rsvd76", RESERVED, rsvd76, 0);
	REFUSE(d.flags = 0; d.weights_key = 0; d.weights_off = 4; d.rsvd136[1] = 1,
	       "weights_off without weights", RESERVED, weights_off, 0);
	REFUSE(d.rsvd136[6] = 1ull << 63; d.nbags = 0, "rsvd136", RESERVED, rsvd136, 0);
	REFUSE(d.nbags = 0; d.p[0] = 0, "no bags", BAD_VALUE, nbags, 0);
	REFUSE(d.p[0] = 0; d.p[1] = 0, "p[0]", BAD_VALUE, p[0], 0);
	REFUSE(d.p[1] = 0; d.p[2] = 0, "p[1]", BAD_VALUE, p[1], 0);
	REFUSE(d.p[2] = 0; d.p[1] = 0xffffffff, "p[2]", BAD_VALUE, p[2], 0);
	REFUSE(d.p[0] = 0x10000; d.p[1] = 0x10000; d.p[2] = 1, "product of p: 2^32",
	       BAD_VALUE, p[0], 0);
	REFUSE(d.p[0] = 1; d.p[1] = 0x10000; d.p[2] = 0x10000; d.q[0] = 0,
	       "product of p: p[1] * p[2] is 2^32", BAD_VALUE, p[0], 0);
	REFUSE(d.p[0] = d.p[1] = d.p[2] = 0x80000000, "product of p: wraps to 0 in 64 bits",
	       BAD_VALUE, p[0], 0);
	REFUSE(d.p[0] = d.p[1] = d.p[2] = 0xffffffff, "product of p: largest", BAD_VALUE, p[0], 0);
	REFUSE(d.q[0] = 0; d.q[1] = 0, "q[0]", BAD_VALUE, q[0], 0);
	REFUSE(d.q[1] = 0; d.q[2] = 0, "q[1]", BAD_VALUE, q[1], 0);
	REFUSE(d.q[2] = 0; d.q[1] = 0xffff, "q[2]", BAD_VALUE, q[2], 0);
	REFUSE(d.q[0] = 4; d.q[1] = 5; d.q[2] = 13; d.r[0] = 0, "dim above the limit", BAD_VALUE,
	       q[0], 0);
	REFUSE(d.q[0] = d.q[1] = d.q[2] = 0xffff, "dim far above the limit", BAD_VALUE, q[0], 0);
	REFUSE(d.r[0] = 0; d.r[1] = 0, "rank 0", BAD_VALUE, r[0], 0);
	REFUSE(d.r[0] = MAX_RANK + 1; d.r[1] = 0xffff, "rank above the limit", BAD_VALUE, r[0],
	       MAX_RANK + 1);
	REFUSE(d.r[1] = MAX_RANK + 1; d.q[2] = 32, "second rank", BAD_VALUE, r[1], MAX_RANK + 1);
	REFUSE(d.q[0] = 129; d.q[1] = 1; d.q[2] = 1; d.r[0] = 32; d.out_stride = 0,
	       "slice of core 0 too large", BAD_VALUE, q[0], 0);
	REFUSE(d.q[1] = 5; d.r[0] = d.r[1] = 32; d.out_stride = 0, "slice of core 1 too large",
	       BAD_VALUE, q[0], 0);
	REFUSE(d.q[0] = 1; d.q[1] = 1; d.q[2] = 129; d.r[1] = 32; d.out_stride = 0,
	       "slice of core 2 too large", BAD_VALUE, q[0], 0);
	REFUSE(d.out_stride = 97; d.nrows = 0, "out_stride not aligned", BAD_ALIGN, out_stride, 97);
	REFUSE(d.out_stride = 92; d.nrows = 0, "out_stride below the row", BAD_VALUE, out_stride,
	       92);
	REFUSE(d.nrows = 0; d.core_off[0] = 1, "no rows", BAD_VALUE, nrows, 0);
	REFUSE(d.nrows = 61; d.core_off[0] = 1, "too many rows", BAD_VALUE, nrows, 61);
	REFUSE(d.nrows = 0x10000003c, "far too many rows", BAD_VALUE, nrows, 0x10000003c);
	REFUSE(d.core_off[0] = 1; d.core_off[1] = 1, "core_off[0]", BAD_ALIGN, core_off[0], 1);
	REFUSE(d.core_off[1] = 2; d.core_off[2] = 1, "core_off[1]", BAD_ALIGN, core_off[1], 2);
	REFUSE(d.core_off[2] = 3; d.ids_off = 1, "core_off[2]", BAD_ALIGN, core_off[2], 3);
	REFUSE(d.ids_off = 2; d.offsets_off = 1, "ids_off", BAD_ALIGN, ids_off, 2);
	REFUSE(d.offsets_off = 3; d.weights_off = 1, "offsets_off", BAD_ALIGN, offsets_off, 3);
	REFUSE(d.weights_off = 5; d.out_off = 1, "weights_off", BAD_ALIGN, weights_off, 5);
	REFUSE(d.out_off = 6; d.core_key[0] = 0, "out_off", BAD_ALIGN, out_off, 6);
	/* keys, rights and kind, in the order of the keys' fields */
	REFUSE(d.core_key[0] = 0x20000; d.core_key[1] = 0, "core_key[0]", STALE_KEY, core_key[0],
	       0x20000);
	REFUSE(regions[SLOT_CORE1].onchip = false; d.core_key[2] = 0, "core not on chip", BAD_VALUE,
	       core_key[1], KEY(SLOT_CORE1));
	REFUSE(regions[SLOT_CORE2].rights = CSREC_RIGHT_WRITE; d.ids_key = 0, "core_key[2]",
	       BAD_RIGHTS, core_key[2], KEY(SLOT_CORE2));
	REFUSE(d.ids_key = 0x10063; d.offsets_key = 0, "ids_key", BAD_KEY, ids_key, 0x10063);
	REFUSE(d.offsets_key = 0; d.weights_key = 0, "offsets_key", STALE_KEY, offsets_key, 0);
	REFUSE(d.weights_key = 0; d.out_key = 0, "weights_key", STALE_KEY, weights_key, 0);
	REFUSE(regions[SLOT_OUT].rights = CSREC_RIGHT_READ, "out not writable", BAD_RIGHTS, out_key,
	       KEY(SLOT_OUT));
	REFUSE(regions[SLOT_OUT].rights = CSREC_RIGHT_WRITE, "out not readable", BAD_RIGHTS,
	       out_key, KEY(SLOT_OUT));
	/* extents: a byte more than there is */
	REFUSE(regions[SLOT_TABLE].size = d.core_off[0] + 4 * 3 * 10 - 1, "core 0 extent",
	       OUT_OF_BOUNDS, core_off[0], d.core_off[0]);
	REFUSE(regions[SLOT_CORE1].size = d.core_off[1] + 4 * 4 * 90 - 1, "core 1 extent",
	       OUT_OF_BOUNDS, core_off[1], d.core_off[1]);
	REFUSE(regions[SLOT_CORE2].size = d.core_off[2] + 4 * 5 * 24 - 1, "core 2 extent",
	       OUT_OF_BOUNDS, core_off[2], d.core_off[2]);
	REFUSE(d.nids++; regions[SLOT_IDS].size = d.ids_off + 4ull * d.nids - 1, "ids extent",
	       OUT_OF_BOUNDS, ids_off, d.ids_off);
	REFUSE(regions[SLOT_OFFSETS].size = d.offsets_off + 19, "offsets extent", OUT_OF_BOUNDS,
	       offsets_off, d.offsets_off);
	REFUSE(d.weights_off = 0xfffffffffffffffc; d.nids += !d.nids; regions[SLOT_IDS].size += 4,
	       "weights extent that wraps", OUT_OF_BOUNDS, weights_off, 0xfffffffffffffffc);
	REFUSE(regions[SLOT_OUT].size = d.out_off + 3ull * d.out_stride + 95, "out extent",
	       OUT_OF_BOUNDS, out_off, d.out_off);
	REFUSE(d.p[0] = 0xffffffff; d.p[1] = d.p[2] = 1, "largest core extent", OUT_OF_BOUNDS,
	       core_off[0], d.core_off[0]);
}

static uint16_t key_field(uint32_t key)
{
	switch (key & 0xffff) {
	case SLOT_TABLE:	return FIELD(core_key[0]);
	case SLOT_CORE1:	return FIELD(core_key[1]);
	case SLOT_CORE2:	return FIELD(core_key[2]);
	case SLOT_IDS:		return FIELD(ids_key);
	case SLOT_OFFSETS:	return FIELD(offsets_key);
	case SLOT_WEIGHTS:	return FIELD(weights_key);
	default:		return FIELD(out_key);
	}
}

/* An access that fails while running, or an abort: whole bags in order, then nothing. */
static void cut_short(unsigned int n)
{
	unsigned int bad_fail = 0, bad_abort = 0, failed = 0, aborted = 0;

	for (unsigned int i = 0; i < n; i++) {
		struct completion want;
		struct run r, probe;
		uint8_t *before;

		make_random();
		want = bags_expect(&b);
		before = malloc(regions[SLOT_OUT].size);
		memcpy(before, regions[SLOT_OUT].mem, regions[SLOT_OUT].size);
		run_random(&probe);
		r = probe;
		if (!run_desc(&engine_tt, &d, sizeof(d), &probe)) {
			bad_fail++;
			continue;
		}
		memcpy(regions[SLOT_OUT].mem, before, regions[SLOT_OUT].size);
		free(before);

		if (i % 2) {
			r.fail_at = rnd_below(probe.accesses);
			r.fail_status = rnd_below(2) ? CSREC_ST_BUS_ERROR : CSREC_ST_STALE_KEY;
			if (!run_desc(&engine_tt, &d, sizeof(d), &r)) {
				bad_fail++;
				continue;
			}
			if (!r.failed_key)	/* went another way this time */
				continue;
			failed++;
			/* a WRITE that failed may have written a part */
			if (r.done.status != r.fail_status ||
			    r.done.field != key_field(r.failed_key) ||
			    r.done.detail != r.failed_key ||
			    (r.failed_key != KEY(SLOT_OUT) && !bags_match(&b, false)))
				bad_fail++;
		} else {
			r.abort = true;
			r.abort_at = rnd_below(probe.cycles + 2);
			if (!run_desc(&engine_tt, &d, sizeof(d), &r)) {
				bad_abort++;
				continue;
			}
			if (r.done.status == CSREC_ST_ABORTED) {
				aborted++;
				bad_abort += r.done.field != CSREC_FIELD_NONE || r.done.detail ||
					     !bags_match(&b, false);
			} else {
				bad_abort += r.done.status != want.status || !bags_match(&b, true);
			}
		}
		/* and the engine is none the worse for it */
		make(&(struct shape){ { 2, 2, 2 }, { 2, 2, 2 }, { 4, 4 } }, 0, 2, 2);
		bad_fail += !run_and_compare();
	}
	tap(!bad_fail && failed > n / 4, "tt: %u accesses that failed while running", failed);
	tap(!bad_abort && aborted > n / 4, "tt: %u aborts", aborted);
}

int main(int argc, char **argv)
{
	unsigned int n = argc > 1 ? strtoul(argv[1], NULL, 0) : 200;

	sums(n);
	stream_errors();
	rules();
	cut_short(3 * n);
	return tap_done();
}
