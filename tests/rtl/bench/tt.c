// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * TT: multiply-accumulates per cycle, over the cycles in which a TT command was at work; only
 * those that were done, not those that rows with the same leading digits spared. The bound is
 * the number of multiply-accumulators, one csrec_dot. Cores are on chip and hold zeros: no time
 * depends on their values.
 */
#include <stdio.h>

#include "bench.h"

#define TT_MACS		8
#define LOOKUPS		512	/* of one command, in bags of 16 */

enum order { UNIFORM, ZIPF, ZIPF_SORTED };

/* sorted: frequent rows first */
static const char *const order_name[] = { "uniform", "zipf", "zipf sorted" };

static const struct shape {
	uint32_t p[3];	/* as many as fit on chip */
	uint16_t q[3], r[2];
} shapes[] = {
	{ { 200, 220, 250 }, { 2, 2, 4 }, { 16, 16 } },
	{ { 200, 48, 250 }, { 4, 4, 4 }, { 32, 32 } },
	{ { 120, 90, 110 }, { 4, 4, 4 }, { 12, 14 } },
};

static void measure(const struct shape *s, enum order order)
{
	uint32_t rows = s->p[0] * s->p[1] * s->p[2], dim = s->q[0] * s->q[1] * s->q[2];
	uint32_t slice[3] = { s->q[0] * s->r[0], s->r[0] * s->q[1] * s->r[1], s->r[1] * s->q[2] };
	double macs = (double)s->q[0] * slice[1] + (double)dim * s->r[1];
	const unsigned int bags = LOOKUPS / 16;
	struct csrec_tt_desc *t;
	uint64_t at = 0, cycles, saved;
	struct dev d;
	uint32_t *ids;
	char work[64];

	bench_open(&d);
	must(&d, cmd_region(0, KEY(3, 1), CSREC_REGION_ONCHIP, 3, 1, 0,
			    reg(&d, CSREC_REG_CAP_ONCHIP)));
	ids = (uint32_t *)d.dram;
	for (unsigned int j = 0; j < LOOKUPS; j++) {
		if (order == UNIFORM)
			ids[j] = rnd(&d) % rows;
		else if (order == ZIPF)	/* frequent rows are not neighbours */
			ids[j] = bench_zipf(&d, rows) * 2654435761ull % rows;
		else
			ids[j] = bench_zipf(&d, rows);
	}
	for (unsigned int b = 0; b <= bags; b++)
		ids[LOOKUPS + b] = 16 * b;
	t = bench_add(&d, CSREC_OP_TT, sizeof(*t));
	t->nbags = bags;
	t->nids = LOOKUPS;
	t->nrows = rows;
	t->out_stride = 4 * dim;
	t->ids_key = t->offsets_key = t->out_key = BENCH_DRAM;
	t->offsets_off = 4 * LOOKUPS;
	t->out_off = 1 << 20;
	t->r[0] = s->r[0];
	t->r[1] = s->r[1];
	for (unsigned int k = 0; k < 3; k++) {
		t->p[k] = s->p[k];
		t->q[k] = s->q[k];
		t->core_key[k] = KEY(3, 1);
		t->core_off[k] = at;
		at += 4ull * s->p[k] * slice[k];
	}
	cycles = bench_run(&d, CSREC_REG_CNT_BUSY_TT);
	saved = reg(&d, CSREC_REG_CNT_TT_SAVED);
	snprintf(work, sizeof(work), "%ux%ux%u r%u,%u %s", s->q[0], s->q[1], s->q[2], s->r[0],
		 s->r[1], order_name[order]);
	bench_report("TT", work, "fp32", "MACs", (LOOKUPS * macs - saved) / cycles, TT_MACS);
	printf("         %.1f cycles a row, %.1f %% of the MACs spared\n",
	       (double)cycles / LOOKUPS, 100 * saved / (LOOKUPS * macs));
	dev_close(&d);
}

void bench_tt(void)
{
	for (unsigned int i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		for (enum order o = UNIFORM; o <= ZIPF_SORTED; o++)
			measure(&shapes[i], o);
}
