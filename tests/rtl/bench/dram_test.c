// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The DRAM model against what its own timing parameters imply. Figures are worked out here, in
 * memory clocks, by hand from struct dram_timing.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "dram.h"

#define T	dram_ddr4_2400
#define BEAT	64u
#define BANKS	16u
#define ROW	(BEAT * BANKS << T.columns_log2)	/* from a row to the next of its bank */

static unsigned int tests, failed;

static void tap(bool good, const char *what, double got, double want)
{
	failed += !good;
	printf("%sok %u - dram: %s\n", good ? "" : "not ", ++tests, what);
	if (!good)
		printf("# %g, not %g\n", got, want);
}

static struct dram *make(void)
{
	struct dram *d = dram_new(&T);

	if (!d)
		exit(1);
	return d;
}

/* Cycles a read, told at once with those before it as far as the queue goes, takes on average. */
static double reads(uint64_t (*addr)(unsigned int i), unsigned int n)
{
	struct dram *d = make();
	uint64_t done[DRAM_QUEUE] = { 0 }, now = 0, last = 0;

	for (unsigned int i = 0; i < n; i++) {
		if (now < done[i % DRAM_QUEUE])
			now = done[i % DRAM_QUEUE];
		last = done[i % DRAM_QUEUE] = dram_read(d, now, addr(i));
	}
	dram_free(d);
	return (double)last / n;
}

static uint64_t in_sequence(unsigned int i)
{
	return BEAT * i;
}

static uint64_t one_group(unsigned int i)
{
	return 4 * BEAT * i;
}

static uint64_t one_bank(unsigned int i)
{
	return (uint64_t)ROW * i;
}

static uint64_t all_banks(unsigned int i)
{
	return (uint64_t)ROW * (i / BANKS) + BEAT * (i % BANKS);
}

/* Got is want, but for what refreshes take and the first read needs. */
static void rate(const char *what, uint64_t (*addr)(unsigned int), double want)
{
	double refresh = (double)T.refi / (T.refi - T.rfc - T.rp - T.rcd - T.ras);
	double got = reads(addr, 200000) * DRAM_CLOCKS;

	tap(got >= want && got <= want * refresh * 1.01, what, got, want);
}

int main(void)
{
	struct dram *d = make();
	uint64_t t, u;

	t = dram_read(d, 1000, 0) - 1000;
	tap(t == dram_idle_latency(&T) && t == (T.rcd + T.cl + 4 + 3) / 4u, "a closed bank", t,
	    dram_idle_latency(&T));
	t = dram_read(d, 1100, BEAT * BANKS) - 1100;
	tap(t == (T.cl + 4 + 3) / 4u, "an open row", t, (T.cl + 4 + 3) / 4);
	t = dram_read(d, 1200, ROW) - 1200;
	tap(t == (T.rp + T.rcd + T.cl + 4 + 3) / 4u, "another row of the bank", t,
	    (T.rp + T.rcd + T.cl + 4 + 3) / 4);

	/* a full buffer of writes to one open row, then a read of it */
	for (unsigned int i = 0; i < T.writes; i++)
		t = dram_write(d, 1300, ROW + BEAT * BANKS * i);
	tap(t == 1300, "buffered writes are answered at once", t, 1300);
	t = dram_read(d, 1300, ROW) - 1300;
	u = ((T.writes - 1) * T.ccd_l + T.cwl + 4 + T.wtr + T.cl + 4 + 3) / 4;
	tap(t >= u && t <= u + 2, "a read waits for a full buffer and the bus to turn", t, u);
	t = dram_write(d, 1301, 0);
	tap(t >= 1300 + T.writes * T.ccd_l / 4u, "as the next write does", t, 0);
	dram_free(d);

	d = make();
	t = dram_read(d, T.refi / 4, 0) - T.refi / 4;
	u = (T.rp + T.rfc + T.rcd + T.cl + 4 + 3) / 4;
	tap(t == u, "a refresh", t, u);
	dram_free(d);

	rate("reads in sequence: one a cycle", in_sequence, T.ccd_s);
	rate("of one bank group: tCCD_L", one_group, T.ccd_l);
	rate("of one bank, a new row each: tRAS + tRP", one_bank, T.ras + T.rp);
	rate("of all banks, a new row each: four in tFAW", all_banks, T.faw / 4.0);
	printf("1..%u\n", tests);
	return failed != 0;
}
