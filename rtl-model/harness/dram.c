// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "dram.h"

#define MAX_BANKS	64
#define MAX_WRITES	64
#define MAX_ACTS	128

const struct dram_timing dram_ddr4_2400 = {
	.groups_log2 = 2, .banks_log2 = 2, .columns_log2 = 7,
	.cl = 17, .cwl = 12, .rcd = 17, .rp = 17, .ras = 39, .rtp = 9, .wr = 18,
	.ccd_s = 4, .ccd_l = 6, .rrd_s = 4, .rrd_l = 6, .faw = 26, .wtr = 9,
	.rfc = 312, .refi = 9360, .writes = 32,
};

struct bank {
	bool open;
	uint64_t row;
	uint64_t column_at, precharge_at, activate_at;	/* not before */
};

struct act {
	uint64_t at;
	unsigned int group;
};

struct dram {
	struct dram_timing t;
	struct bank banks[MAX_BANKS];
	struct act acts[MAX_ACTS];	/* by time; only those that still matter */
	unsigned int n_acts;
	uint64_t column;		/* time of the last column command */
	unsigned int group;		/* and its bank group */
	bool writing;			/* and its direction */
	uint64_t refresh_at;
	uint64_t pending[MAX_WRITES];	/* addresses of buffered writes */
	unsigned int n_pending;
	uint64_t drained;		/* cycle by which the last full buffer is written */
};

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t to_cycle(uint64_t clocks)
{
	return (clocks + DRAM_CLOCKS - 1) / DRAM_CLOCKS;
}

unsigned int dram_idle_latency(const struct dram_timing *t)
{
	return to_cycle(t->rcd + t->cl + DRAM_CLOCKS);
}

struct dram *dram_new(const struct dram_timing *t)
{
	struct dram *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->t = *t;
	d->refresh_at = t->refi;
	return d;
}

void dram_free(struct dram *d)
{
	free(d);
}

/* First time from @t on at which a row of @group may be opened; it is noted down. */
static uint64_t activate(struct dram *d, uint64_t now, uint64_t t, unsigned int group)
{
	unsigned int i, k, old = 0;

	/* what comes later begins at @now or after it */
	while (old < d->n_acts && d->acts[old].at + d->t.faw <= now)
		old++;
	/* full only if a caller is told of more beats than any controller holds */
	if (d->n_acts - old == MAX_ACTS)
		old++;
	memmove(d->acts, d->acts + old, (d->n_acts - old) * sizeof(*d->acts));
	d->n_acts -= old;

again:
	for (i = 0; i < d->n_acts && d->acts[i].at <= t; i++)
		;
	/* i is where it would go: neighbours of its group and any, then any five in a row */
	for (k = 0; k < d->n_acts; k++) {
		uint64_t a = d->acts[k].at;
		unsigned int gap = d->acts[k].group == group ? d->t.rrd_l : d->t.rrd_s;

		if (a < t + gap && t < a + gap) {
			t = a + gap;
			goto again;
		}
	}
	for (k = 0; k <= 4; k++) {
		/* the five of which k come before it */
		uint64_t first, last;

		if (k > i || i + (4 - k) > d->n_acts)
			continue;
		first = k ? d->acts[i - k].at : t;
		last = k < 4 ? d->acts[i + 3 - k].at : t;
		if (last - first < d->t.faw) {
			t = k ? later(t + 1, first + d->t.faw) : t + 1;
			goto again;
		}
	}
	memmove(d->acts + i + 1, d->acts + i, (d->n_acts - i) * sizeof(*d->acts));
	d->acts[i] = (struct act){ t, group };
	d->n_acts++;
	return t;
}

static void refresh(struct dram *d, uint64_t now)
{
	uint64_t t = later(now, d->column);
	unsigned int i, n = 1u << (d->t.groups_log2 + d->t.banks_log2);
	uint64_t ready;

	if (t < d->refresh_at)
		return;
	d->refresh_at += (t - d->refresh_at) / d->t.refi * d->t.refi;	/* those that cost nobody */
	ready = later(d->refresh_at, d->column) + d->t.rp + d->t.rfc;
	for (i = 0; i < n; i++) {
		d->banks[i].open = false;
		d->banks[i].activate_at = later(d->banks[i].activate_at, ready);
	}
	d->refresh_at += d->t.refi;
}

/* One beat, after all that were told before; returns the end of its data. */
static uint64_t beat(struct dram *d, uint64_t now, uint64_t addr, bool write)
{
	const struct dram_timing *t = &d->t;
	unsigned int bits = t->groups_log2 + t->banks_log2;
	unsigned int group = addr >> 6 & ((1u << t->groups_log2) - 1);
	struct bank *b = &d->banks[addr >> 6 & ((1u << bits) - 1)];
	uint64_t row = addr >> (6 + bits + t->columns_log2);
	uint64_t at;

	refresh(d, now);
	if (!b->open || b->row != row) {
		at = later(now, b->activate_at);
		if (b->open)
			at = later(at, later(now, b->precharge_at) + t->rp);
		at = activate(d, now, at, group);
		b->open = true;
		b->row = row;
		b->column_at = at + t->rcd;
		b->precharge_at = at + t->ras;
	}
	at = later(later(now, b->column_at),
		   d->column + (group == d->group ? t->ccd_l : t->ccd_s));
	if (d->writing && !write)
		at = later(at, d->column + t->cwl + DRAM_CLOCKS + t->wtr);
	if (!d->writing && write)
		at = later(at, d->column + t->cl + DRAM_CLOCKS + 2 - t->cwl);
	d->column = at;
	d->group = group;
	d->writing = write;
	b->precharge_at = later(b->precharge_at,
				write ? at + t->cwl + DRAM_CLOCKS + t->wr : at + t->rtp);
	return at + (write ? t->cwl : t->cl) + DRAM_CLOCKS;
}

static void drain(struct dram *d, uint64_t now)
{
	unsigned int i;

	for (i = 0; i < d->n_pending; i++)
		d->drained = to_cycle(beat(d, now, d->pending[i], true));
	d->n_pending = 0;
}

uint64_t dram_read(struct dram *d, uint64_t cycle, uint64_t addr)
{
	uint64_t now = cycle * DRAM_CLOCKS;
	/* more than enough for all that is buffered, row by row */
	uint64_t spare = d->n_pending * (uint64_t)(d->t.rp + d->t.rcd) + d->t.cl + d->t.wtr;

	if (d->n_pending && d->column + spare < now)
		drain(d, d->column);
	return to_cycle(beat(d, now, addr, false));
}

uint64_t dram_write(struct dram *d, uint64_t cycle, uint64_t addr)
{
	uint64_t done = later(cycle, d->drained);

	d->pending[d->n_pending++] = addr;
	if (d->n_pending == d->t.writes)
		drain(d, done * DRAM_CLOCKS);
	return done;
}
