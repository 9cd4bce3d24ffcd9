// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * csrec_emb alone: emb_test [descriptors]
 */
#include <stdlib.h>
#include <string.h>

#include <linux/csrec_hw.h>
#include "engine.h"
#include "../math/tap.h"

#define FIELD(f) (CSREC_FIELD_DESC | offsetof(struct csrec_emb_desc, f))

static struct csrec_emb_desc d;
static struct bags b;

static void table_row(uint32_t id, uint32_t *row)
{
	memcpy(row, words(SLOT_TABLE, d.table_off + (uint64_t)id * d.row_stride), 4 * b.dim);
}

static void make(uint32_t dim, uint32_t nbags, unsigned int longest, uint32_t nrows)
{
	unsigned int kind = rnd_below(4);

	b = (struct bags){
		.nbags = nbags, .dim = dim, .nrows = nrows, .row = table_row,
		.out_stride = 4 * (dim + (rnd_below(2) ? 0 : rnd_below(40))),
		.weighted = rnd_below(2),
		.field_offsets_off = offsetof(struct csrec_emb_desc, offsets_off),
		.field_ids_off = offsetof(struct csrec_emb_desc, ids_off),
	};
	bags_make(&b, longest, kind);
	d = (struct csrec_emb_desc){
		.flags = b.weighted ? CSREC_EMB_F_WEIGHTS : 0, .dim = dim, .nbags = nbags,
		.nids = b.nids, .nrows = nrows, .out_stride = b.out_stride,
		.row_stride = 4 * (dim + (rnd_below(2) ? 0 : rnd_below(40))),
		.table_key = KEY(SLOT_TABLE), .ids_key = KEY(SLOT_IDS),
		.offsets_key = KEY(SLOT_OFFSETS),
		.weights_key = b.weighted ? KEY(SLOT_WEIGHTS) : 0, .out_key = KEY(SLOT_OUT),
		.ids_off = b.ids_off, .offsets_off = b.offsets_off,
		.weights_off = b.weights_off, .out_off = b.out_off,
	};
	d.table_off = place(SLOT_TABLE, CSREC_RIGHT_READ, false,
			    (nrows - 1ull) * d.row_stride + 4 * dim);
	for (uint32_t i = 0; i < nrows; i++)
		for (uint32_t e = 0; e < dim; e++)
			words(SLOT_TABLE, d.table_off + (uint64_t)i * d.row_stride)[e] =
				fp_operand(kind);
}

static void make_random(void)
{
	make(rnd_below(2) ? 1 + rnd_below(MAX_DIM) : 1 + rnd_below(20), 1 + rnd_below(30),
	     rnd_below(8), 1 + rnd_below(50));
}

static bool run_and_compare(void)
{
	struct completion want = bags_expect(&b);
	struct run r;

	run_random(&r);
	if (!run_desc(&engine_emb, &d, sizeof(d), &r))
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
	return bags_match(&b, true);
}

static void sums(unsigned int n)
{
	unsigned int bad = 0;

	for (unsigned int i = 0; i < n; i++) {
		make_random();
		bad += !run_and_compare();
	}
	tap(!bad, "emb: %u random descriptors", n);

	bad = 0;
	for (unsigned int dim = 1; dim <= MAX_DIM; dim += dim < 40 ? 1 : 9) {
		make(dim, 3, 4, 5);
		bad += !run_and_compare();
	}
	make(MAX_DIM, 3, 4, 5);
	bad += !run_and_compare();
	tap(!bad, "emb: dims 1 to 40, then to %u", MAX_DIM);

	make(7, 700, 3, 100);
	tap(run_and_compare(), "emb: 700 bags, several reads of offsets and ids");
	make(3, 1, 3000, 100);
	tap(run_and_compare(), "emb: one long bag");
	make(16, 40, 0, 10);
	tap(run_and_compare(), "emb: only empty bags");
	make(16, 1, 0, 1);
	d.nids = b.nids = 0;
	memset(words(SLOT_OFFSETS, b.offsets_off), 0, 8);
	tap(run_and_compare(), "emb: no ids at all");
}

/* Bad ids and offsets: the bags before are written, the others not touched. */
static void stream_errors(void)
{
	unsigned int bad = 0, seen_id = 0, seen_offsets = 0;

	for (unsigned int i = 0; i < 60; i++) {
		uint32_t *offsets, *ids;

		make_random();
		offsets = words(SLOT_OFFSETS, b.offsets_off);
		ids = words(SLOT_IDS, b.ids_off);
		if (i % 2 && offsets[b.nbags] > offsets[0]) {
			uint32_t j = offsets[0] + rnd_below(offsets[b.nbags] - offsets[0]);

			ids[j] = rnd_below(2) ? b.nrows : 0xffffffff;
			seen_id++;
		} else {
			offsets[rnd_below(b.nbags + 1)] = rnd_below(2) ? b.nids + 1 : rnd();
			seen_offsets++;
		}
		if (!bags_expect(&b).status)	/* a smaller one may do no harm */
			continue;
		bad += !run_and_compare();
	}
	tap(!bad && seen_id && seen_offsets, "emb: bad offsets and ids in mid-stream");

	make(4, 3, 5, 5);
	words(SLOT_OFFSETS, b.offsets_off)[0] = b.nids + 1;
	tap(run_and_compare(), "emb: first offset beyond nids");
	make(4, 3, 0, 5);
	d.nids = b.nids = 0;
	memset(words(SLOT_OFFSETS, b.offsets_off), 0, 16);
	words(SLOT_OFFSETS, b.offsets_off)[3] = 1;
	tap(run_and_compare(), "emb: ids where there are none");
}

struct rule {
	const char *name;
	struct completion want;
};

#define REFUSE(what, name, status, field, detail) do {					\
	make(20, 5, 3, 9);								\
	b.weighted = true;								\
	if (!(d.flags & CSREC_EMB_F_WEIGHTS)) {						\
		d.flags |= CSREC_EMB_F_WEIGHTS;						\
		d.weights_key = KEY(SLOT_WEIGHTS);					\
		d.weights_off = place(SLOT_WEIGHTS, CSREC_RIGHT_READ, false, 4 * d.nids);\
	}										\
	what;										\
	tap(expect_refusal(&engine_emb, &d, sizeof(d), SLOT_OUT,			\
			   (struct completion){ CSREC_ST_##status, FIELD(field), detail }),\
	    "emb: " name);								\
} while (0)

static void rules(void)
{
	REFUSE(d.flags |= 0x80, "unknown flag", BAD_FLAGS, flags, d.flags);
	REFUSE(d.flags |= 0x10000000; d.rsvd7 = 1, "flags before reserved", BAD_FLAGS, flags,
	       d.flags);
	REFUSE(d.rsvd7 = 1, "rsvd7", RESERVED, rsvd7, 0);
	REFUSE(d.rsvd52 = 1u << 31, "rsvd52", RESERVED, rsvd52, 0);
	REFUSE(d.rsvd96[3] = 1ull << 63, "rsvd96", RESERVED, rsvd96, 0);
	REFUSE(d.rsvd96[0] = 1; d.rsvd52 = 1; d.dim = 0, "reserved ascending", RESERVED,
	       rsvd52, 0);
	REFUSE(d.flags = 0, "weights_key without weights", RESERVED, weights_key, 0);
	REFUSE(d.flags = 0; d.rsvd7 = 4, "rsvd7 before weights_key", RESERVED, rsvd7, 0);
	REFUSE(d.flags = 0; d.rsvd52 = 4, "weights_key before rsvd52", RESERVED, weights_key, 0);
	REFUSE(d.flags = 0; d.weights_key = 0; d.weights_off = 8, "weights_off without weights",
	       RESERVED, weights_off, 0);
	REFUSE(d.dim = 0; d.dtype = 1, "dim 0", BAD_VALUE, dim, 0);
	REFUSE(d.dim = MAX_DIM + 1, "dim above the limit", BAD_VALUE, dim, MAX_DIM + 1);
	REFUSE(d.dtype = 1; d.nbags = 0, "dtype", BAD_VALUE, dtype, 1);
	REFUSE(d.nbags = 0; d.nrows = 0, "no bags", BAD_VALUE, nbags, 0);
	REFUSE(d.nrows = 0; d.row_stride = 2, "no rows", BAD_VALUE, nrows, 0);
	REFUSE(d.nrows = 0x100000001, "too many rows", BAD_VALUE, nrows, 0x100000001);
	REFUSE(d.row_stride = 78; d.out_stride = 0, "row_stride not aligned", BAD_ALIGN,
	       row_stride, 78);
	REFUSE(d.row_stride = 76; d.out_stride = 0, "row_stride below the row", BAD_VALUE,
	       row_stride, 76);
	REFUSE(d.out_stride = 79; d.table_off = 1, "out_stride not aligned", BAD_ALIGN,
	       out_stride, 79);
	REFUSE(d.out_stride = 76; d.table_off = 1, "out_stride below the row", BAD_VALUE,
	       out_stride, 76);
	REFUSE(d.table_off = 1; d.ids_off = 1, "table_off", BAD_ALIGN, table_off, 1);
	REFUSE(d.ids_off = 2; d.offsets_off = 1, "ids_off", BAD_ALIGN, ids_off, 2);
	REFUSE(d.offsets_off = 3; d.weights_off = 1, "offsets_off", BAD_ALIGN, offsets_off, 3);
	REFUSE(d.weights_off = 6; d.out_off = 1, "weights_off", BAD_ALIGN, weights_off, 6);
	REFUSE(d.out_off = 0xffffffffffffffff; d.table_key = 0, "out_off", BAD_ALIGN, out_off,
	       0xffffffffffffffff);
	/* keys and rights, in the order of the keys' fields */
	REFUSE(d.table_key = 0x20000; d.ids_key = 0x10063, "table_key", STALE_KEY, table_key,
	       0x20000);
	REFUSE(d.ids_key = 0x10063; d.offsets_key = 0, "ids_key", BAD_KEY, ids_key, 0x10063);
	REFUSE(regions[SLOT_OFFSETS].rights = CSREC_RIGHT_WRITE; d.weights_key = 0,
	       "offsets_key", BAD_RIGHTS, offsets_key, KEY(SLOT_OFFSETS));
	REFUSE(regions[SLOT_WEIGHTS].status = CSREC_ST_BAD_DOMAIN; d.out_key = 0,
	       "weights_key", BAD_DOMAIN, weights_key, KEY(SLOT_WEIGHTS));
	REFUSE(regions[SLOT_OUT].rights = CSREC_RIGHT_READ, "out_key", BAD_RIGHTS, out_key,
	       KEY(SLOT_OUT));
	/* extents: one word more than there is */
	REFUSE(regions[SLOT_TABLE].size = d.table_off + 8ull * d.row_stride + 79, "table extent",
	       OUT_OF_BOUNDS, table_off, d.table_off);
	REFUSE(regions[SLOT_IDS].size = d.ids_off + 4ull * d.nids + 3; d.nids++, "ids extent",
	       OUT_OF_BOUNDS, ids_off, d.ids_off);
	REFUSE(regions[SLOT_OFFSETS].size = d.offsets_off + 23, "offsets extent", OUT_OF_BOUNDS,
	       offsets_off, d.offsets_off);
	REFUSE(d.weights_off = 0xfffffffffffffffc; d.nids += !d.nids, "weights extent that wraps",
	       OUT_OF_BOUNDS, weights_off, 0xfffffffffffffffc);
	REFUSE(regions[SLOT_OUT].size = d.out_off + 4ull * d.out_stride + 79, "out extent",
	       OUT_OF_BOUNDS, out_off, d.out_off);
	REFUSE(d.nrows = 0x100000000; d.row_stride = 0xfffffffc, "largest table extent",
	       OUT_OF_BOUNDS, table_off, d.table_off);
	REFUSE(d.nbags = 0xffffffff, "largest offsets extent", OUT_OF_BOUNDS, offsets_off,
	       d.offsets_off);
}

static uint16_t key_field(uint32_t key)
{
	switch (key & 0xffff) {
	case SLOT_TABLE:	return FIELD(table_key);
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
		bool was_write = false;
		uint8_t *before;

		make_random();
		want = bags_expect(&b);
		before = malloc(regions[SLOT_OUT].size);
		memcpy(before, regions[SLOT_OUT].mem, regions[SLOT_OUT].size);
		run_random(&probe);
		r = probe;
		if (!run_desc(&engine_emb, &d, sizeof(d), &probe)) {
			bad_fail++;
			continue;
		}
		memcpy(regions[SLOT_OUT].mem, before, regions[SLOT_OUT].size);
		free(before);

		if (i % 2) {
			r.fail_at = rnd_below(probe.accesses);
			r.fail_status = rnd_below(2) ? CSREC_ST_BUS_ERROR : CSREC_ST_STALE_KEY;
			if (!run_desc(&engine_emb, &d, sizeof(d), &r)) {
				bad_fail++;
				continue;
			}
			if (!r.failed_key)	/* went another way this time */
				continue;
			failed++;
			was_write = r.failed_key == KEY(SLOT_OUT);
			if (r.done.status != r.fail_status ||
			    r.done.field != key_field(r.failed_key) ||
			    r.done.detail != r.failed_key || (!was_write && !bags_match(&b, false)))
				bad_fail++;
		} else {
			r.abort = true;
			r.abort_at = rnd_below(probe.cycles + 2);
			if (!run_desc(&engine_emb, &d, sizeof(d), &r)) {
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
		make(5, 4, 3, 5);
		if (!run_and_compare())
			bad_fail++;
	}
	tap(!bad_fail && failed > n / 4, "emb: %u accesses that failed while running", failed);
	tap(!bad_abort && aborted > n / 4, "emb: %u aborts", aborted);
}

int main(int argc, char **argv)
{
	unsigned int n = argc > 1 ? strtoul(argv[1], NULL, 0) : 300;

	sums(n);
	stream_errors();
	rules();
	cut_short(8 * n);
	return tap_done();
}
