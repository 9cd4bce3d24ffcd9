// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * EMB: bytes of rows per cycle, over the cycles in which an EMB command was at work. One
 * command a table; all operands in device DRAM, rows of a table one behind the other, outputs
 * as [bag][table][dim], which INTERACT takes.
 *
 * The bound is what the DRAM model alone gives when it is told these beats in the order in
 * which the bags need them, as fast as its queue takes them: offsets and ids (1 KiB ahead),
 * rows, and the outputs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "dram.h"

#define CHUNK	256		/* words of a read of ids or offsets */

struct work {
	const char *name;
	unsigned int tables, dim, lookups, batch;
	uint32_t rows;		/* of a table, a power of two */
	enum { UNIFORM, ZIPF, SEQUENCE } ids;
};

static const struct work works[] = {
	{ "RM1 8x32x80 uniform", 8, 32, 80, 32, 1 << 17, UNIFORM },
	{ "RM1 8x32x80 zipf", 8, 32, 80, 32, 1 << 17, ZIPF },
	{ "RM2 32x64x120 uniform", 32, 64, 120, 8, 1 << 14, UNIFORM },
	{ "RM2 32x64x120 zipf", 32, 64, 120, 8, 1 << 14, ZIPF },
	{ "RM3 10x32x20 uniform", 10, 32, 20, 128, 1 << 16, UNIFORM },
	{ "RM3 10x32x20 zipf", 10, 32, 20, 128, 1 << 16, ZIPF },
	{ "Criteo 26x16x1 uniform", 26, 16, 1, 1024, 1 << 16, UNIFORM },
	{ "Criteo 26x16x1 zipf", 26, 16, 1, 1024, 1 << 16, ZIPF },
	/* what one mem client gets at most */
	{ "1x256x64 in sequence", 1, 256, 64, 64, 1 << 12, SEQUENCE },
};

struct layout {
	uint64_t tables, table_bytes, ids, ids_bytes, offsets, out, out_bytes;
	uint32_t out_stride;
};

static uint64_t up(uint64_t x)
{
	return (x + 4095) & ~4095ull;
}

static struct layout lay_out(const struct work *w)
{
	struct layout l;

	l.table_bytes = 4ull * w->dim * w->rows;
	l.ids_bytes = up(4ull * w->batch * w->lookups);
	l.out_stride = 4 * w->dim * w->tables;
	l.out_bytes = up((uint64_t)l.out_stride * w->batch);
	l.tables = 0;
	l.ids = l.tables + w->tables * l.table_bytes;
	l.offsets = l.ids + w->tables * l.ids_bytes;
	l.out = l.offsets + up(4ull * (w->batch + 1));
	if (l.out + l.out_bytes > DRAM_SIZE)
		bench_die("%s does not fit in %u bytes", w->name, DRAM_SIZE);
	return l;
}

static void make_ids(struct dev *d, const struct work *w, uint32_t *ids)
{
	for (unsigned int j = 0; j < w->batch * w->lookups; j++) {
		if (w->ids == ZIPF)	/* frequent rows are not neighbours */
			ids[j] = bench_zipf(d, w->rows) * 2654435761u & (w->rows - 1);
		else
			ids[j] = (w->ids == UNIFORM ? rnd(d) : j) & (w->rows - 1);
	}
}

/* The DRAM model's own time for one table's traffic */
struct replay {
	struct dram *dram;
	uint64_t done[DRAM_QUEUE], last, issue;
	unsigned int n;
};

static void burst(struct replay *r, uint64_t addr, uint64_t len)
{
	uint64_t *slot = &r->done[r->n++ % DRAM_QUEUE];

	if (r->issue < *slot)
		r->issue = *slot;
	for (uint64_t a = addr & ~63ull; a < addr + len; a += 64)
		r->last = dram_read(r->dram, r->issue, a);
	*slot = r->last;
	r->issue++;	/* one address a cycle */
}

static uint64_t bound_of(const struct dev *d, const struct work *w, const struct layout *l)
{
	struct replay r = { .dram = dram_new(&dram_ddr4_2400) };

	if (!r.dram)
		bench_die("no memory");
	for (unsigned int t = 0; t < w->tables; t++) {
		const uint32_t *ids = (const uint32_t *)(d->dram + l->ids + t * l->ids_bytes);
		unsigned int n = w->batch * w->lookups, j = 0;

		for (unsigned int b = 0; b < w->batch; b++) {
			uint64_t out = l->out + (uint64_t)b * l->out_stride + 4ull * w->dim * t;

			if (b % CHUNK == 0)
				burst(&r, l->offsets + 4 * b,
				      4 * (w->batch - b < CHUNK ? w->batch + 1 - b : CHUNK));
			for (unsigned int k = 0; k < w->lookups; k++, j++) {
				if (j % CHUNK == 0)
					burst(&r, l->ids + t * l->ids_bytes + 4ull * j,
					      4 * (n - j < CHUNK ? n - j : CHUNK));
				burst(&r, l->tables + t * l->table_bytes + 4ull * w->dim * ids[j],
				      4 * w->dim);
			}
			for (uint64_t a = out & ~63ull; a < out + 4 * w->dim; a += 64) {
				uint64_t at = dram_write(r.dram, r.issue, a);

				if (r.issue < at)
					r.issue = at;
			}
		}
	}
	dram_free(r.dram);
	return r.last;
}

static void check(const struct dev *d, const struct work *w, const struct layout *l)
{
	for (unsigned int t = 0; t < w->tables; t++) {
		const uint32_t *ids = (const uint32_t *)(d->dram + l->ids + t * l->ids_bytes);

		for (unsigned int b = 0; b < w->batch; b++) {
			const float *out = (const float *)(d->dram + l->out +
							   (uint64_t)b * l->out_stride +
							   4ull * w->dim * t);

			for (unsigned int e = 0; e < w->dim; e++) {
				float sum = 0;

				for (unsigned int k = 0; k < w->lookups; k++)
					sum += ((const float *)(d->dram + l->tables +
								t * l->table_bytes))
						[(uint64_t)ids[b * w->lookups + k] * w->dim + e];
				if (memcmp(&sum, &out[e], 4))
					bench_die("%s: table %u, bag %u, element %u: %g, not %g",
						  w->name, t, b, e, out[e], sum);
			}
		}
	}
}

static void measure(const struct work *w)
{
	struct layout l = lay_out(w);
	struct dev d;
	uint64_t cycles, bound;
	double bytes = 4.0 * w->tables * w->batch * w->lookups * w->dim;

	bench_open(&d);
	for (uint64_t i = 0; i < l.ids / 4; i++)
		((float *)d.dram)[i] = (float)(i * 2654435761u % 65521) / 256 - 128;
	for (unsigned int b = 0; b <= w->batch; b++)
		((uint32_t *)(d.dram + l.offsets))[b] = b * w->lookups;
	for (unsigned int t = 0; t < w->tables; t++) {
		struct csrec_emb_desc *e = bench_add(&d, CSREC_OP_EMB, sizeof(*e));

		make_ids(&d, w, (uint32_t *)(d.dram + l.ids + t * l.ids_bytes));
		e->dim = w->dim;
		e->nbags = w->batch;
		e->nids = w->batch * w->lookups;
		e->nrows = w->rows;
		e->row_stride = 4 * w->dim;
		e->out_stride = l.out_stride;
		e->table_key = e->ids_key = e->offsets_key = e->out_key = BENCH_DRAM;
		e->table_off = l.tables + t * l.table_bytes;
		e->ids_off = l.ids + t * l.ids_bytes;
		e->offsets_off = l.offsets;
		e->out_off = l.out + 4ull * w->dim * t;
	}
	bound = bound_of(&d, w, &l);
	cycles = bench_run(&d, CSREC_REG_CNT_BUSY_EMB);
	check(&d, w, &l);
	bench_report("EMB", w->name, "fp32", "bytes of rows", bytes / cycles, bytes / bound);
	dev_close(&d);
}

void bench_emb(void)
{
	for (unsigned int i = 0; i < sizeof(works) / sizeof(works[0]); i++)
		measure(&works[i]);
}
