// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workload.h"

#define POINTS	128	/* of a Zipf curve */

static uint64_t seed;

static double uniform(void)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return ((seed * 0x2545f4914f6cdd1dull >> 11) + .5) / 9007199254740992.;
}

static double lognormal(double mean, double sigma)
{
	double n = sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());

	return mean * exp(sigma * n - sigma * sigma / 2);
}

/*
 * RM1 to RM3 as DeepRecInfra has them (DeepRecSys models/configs); Criteo as
 * facebookresearch/dlrm trains it (Kaggle: bench/dlrm_s_criteo_kaggle.sh); the last two have
 * as many tables and ids as facebookresearch/dlrm_datasets' traces of 2021 and 2022.
 */
#define W(...)	(const uint32_t[]){ __VA_ARGS__, 0 }
const struct workload workloads[] = {
	{ "rm1", 8, 32, 4e6, 80, false, 0, W(128, 64, 32), W(256, 64, 1), false },
	{ "rm2", 32, 64, 5e5, 120, false, 0, W(256, 128, 64), W(128, 64, 1), false },
	{ "rm3", 10, 32, 2e6, 20, false, 0, W(2560, 1024, 256, 32), W(512, 256, 1), false },
	{ "criteo", 26, 16, 1.3e6, 1, true, 0, W(13, 512, 256, 64, 16), W(512, 256, 1), true },
	{ "terabyte", 26, 64, 3.5e6, 1, true, 0, W(13, 512, 256, 64), W(512, 512, 256, 1), true },
	{ "dlrm2021", 856, 64, 2e6, 15.81, true, 1, W(256, 128, 64), W(128, 64, 1), false },
	{ "dlrm2022", 788, 64, 2e6, 13.60, true, 2, W(256, 128, 64), W(128, 64, 1), false },
	{ 0 },
};

const struct workload *workload_find(const char *name)
{
	const struct workload *w = workloads;

	while (w->name && strcmp(w->name, name))
		w++;
	return w->name ? w : NULL;
}

/*
 * locality_stats.txt of dlrm_datasets: rows by how often they occur, (2^(i-1), 2^i], and the
 * ids that fall on them. The first set of each year.
 */
static const double reuse_rows[2][17] = {
	{ .473, .152, .139, .112, .072, .032, .011, .005, .002, .001 },
	{ .342, .144, .149, .138, .112, .068, .029, .010, .004, .002, .001, .001 },
};
static const double reuse_ids[2][17] = {
	{ .069, .044, .068, .101, .121, .104, .073, .058, .052, .050, .049, .048, .048, .043, .031,
	  .023, .019 },
	{ .027, .023, .040, .068, .105, .120, .099, .070, .059, .054, .040, .072, .064, .047, .021,
	  .017, .076 },
};

/* Buckets by falling occurrence; those of too few rows to have a share are given one. */
static void reuse_curve(struct plan_table *t, int which)
{
	double rows = 0, ids = 0, sum_rows = 0, sum_ids = 0, share[17];

	for (int i = 16; i >= 0; i--) {
		/* between the bounds of the bucket on average */
		share[i] = reuse_rows[which][i] > 0 ? reuse_rows[which][i] :
			   reuse_ids[which][i] / (.75 * (1 << i)) * reuse_rows[which][0] /
			   reuse_ids[which][0];
		sum_rows += share[i];
		sum_ids += reuse_ids[which][i];
	}
	for (int i = 16; i >= 0; i--) {
		uint32_t k;

		rows += share[i] / sum_rows;
		ids += reuse_ids[which][i] / sum_ids;
		k = i ? fmax(t->k[t->ncurve - 1] + 1., rint(rows * t->nrows)) : t->nrows;
		if (k > t->nrows)
			break;
		t->k[t->ncurve] = k;
		t->share[t->ncurve++] = i ? ids : 1;
	}
	if (t->k[t->ncurve - 1] < t->nrows) {
		t->k[t->ncurve] = t->nrows;
		t->share[t->ncurve++] = 1;
	}
}

static double harmonic(double k, double s)
{
	/* Euler and Maclaurin, near enough and smooth */
	return k <= 0 ? 0 : (pow(k, 1 - s) - 1) / (1 - s) + (1 + pow(k, -s)) / 2;
}

static void zipf_curve(struct plan_table *t)
{
	double s = 1.05, all = harmonic(t->nrows, s);

	for (int i = 1; i <= POINTS; i++) {
		double k = rint(exp(log(t->nrows) * i / POINTS));

		if (k <= t->k[t->ncurve - 1])
			continue;
		t->k[t->ncurve] = k;
		t->share[t->ncurve++] = harmonic(k, s) / all;
	}
}

/* Roundings may have bent it: the hull from above. */
static void make_concave(struct plan_table *t)
{
	uint32_t n = 1;

	for (uint32_t i = 1; i < t->ncurve; i++) {
		while (n >= 2 && (t->share[n - 1] - t->share[n - 2]) * ((double)t->k[i] - t->k[n - 1]) <=
		       (t->share[i] - t->share[n - 1]) * ((double)t->k[n - 1] - t->k[n - 2]))
			n--;
		t->k[n] = t->k[i];
		t->share[n++] = t->share[i];
	}
	t->ncurve = n;
}

static void add_mlp(struct plan_problem *p, uint32_t in, const uint32_t *widths)
{
	for (; *widths; in = *widths++) {
		p->ops[p->nops++] = (struct plan_op){ .unit = PLAN_MLP, .in = in, .out = *widths,
						       .repeat = 1 };
		p->weight_bytes += 4. * *widths * (in + 1.) + 128;
	}
}

void workload_make(struct plan_problem *p, const struct workload *w, uint32_t ntables,
		   uint32_t devices, double dram, uint32_t batch, const struct plan_cost *cost)
{
	uint32_t n = ntables ? ntables : w->ntables, vecs = n + 1, bottom = 0;

	memset(p, 0, sizeof(*p));
	seed = 88172645463325252ull;
	p->batch = batch;
	p->block = 4096;
	p->tt_error = .01;
	p->cost = *cost;
	p->ntables = n;
	p->ndevices = devices;
	p->tables = calloc(n, sizeof(*p->tables));
	p->devices = calloc(devices, sizeof(*p->devices));
	p->ops = calloc(16, sizeof(*p->ops));
	if (!p->tables || !p->devices || !p->ops)
		abort();
	for (uint32_t t = 0; t < n; t++) {
		struct plan_table *tab = &p->tables[t];

		snprintf(tab->name, sizeof(tab->name), "t%u", t);
		tab->dim = w->dim;
		tab->nrows = w->spread ? fmin(4e7, fmax(3, lognormal(w->rows, 1.8))) : w->rows;
		tab->pooling = w->spread && w->pooling > 1 ? fmin(500, lognormal(w->pooling, 1.2)) : w->pooling;
		tab->pool_max = ceil(3 * tab->pooling);
		tab->k = calloc(POINTS + 32, sizeof(*tab->k));
		tab->share = calloc(POINTS + 32, sizeof(*tab->share));
		if (!tab->k || !tab->share)
			abort();
		tab->ncurve = 1;
		if (w->reuse)
			reuse_curve(tab, w->reuse - 1);
		else
			zipf_curve(tab);
		make_concave(tab);
	}
	for (uint32_t d = 0; d < devices; d++) {
		p->devices[d] = (struct plan_device){ .dram_bytes = dram, .onchip_bytes = 1 << 20,
			.nvme_bytes = 3.84e12, .nvme_rate = 3.2e9, .nvme_iops = 750e3, .clock_hz = 300e6,
			.power_w = 25 };
		snprintf(p->devices[d].name, sizeof(p->devices[d].name), "ssd%u", d);
	}
	add_mlp(p, w->bottom[0], w->bottom + 1);
	while (w->bottom[bottom + 1])
		bottom++;
	bottom = w->bottom[bottom];
	p->ops[p->nops++] = (struct plan_op){ .unit = PLAN_INTERACT, .repeat = 1, .dot = w->dot,
		.nvec = vecs < 64 ? vecs : 64, .dim = w->dim, .vec_step = w->dim };
	add_mlp(p, w->dot ? bottom + vecs * (vecs - 1) / 2 : vecs < 64 ? vecs * w->dim : 4096, w->top);
}

/* The forms of MODEL.md, "TT forms", with errors as of tables whose spectrum falls by 1/k. */
void workload_add_tts(struct plan_problem *p, double onchip)
{
	static const double from[] = { 0, .25, .5, .75 }, to[] = { .5, .9, 1 };
	static const uint16_t ranks[] = { 8, 32 };

	for (uint32_t d = 0; d < p->ndevices; d++)
		p->devices[d].onchip_bytes = onchip;
	for (uint32_t t = 0; t < p->ntables; t++) {
		struct plan_table *tab = &p->tables[t];

		tab->tts = calloc(24, sizeof(*tab->tts));
		if (!tab->tts)
			abort();
		for (int i = 0; i < 12; i++) {
			double begin = from[i / 3], end = begin + to[i % 3] * (1 - begin);
			uint32_t a = 0, b;

			while (a < tab->ncurve - 1 && tab->share[a] < begin)
				a++;
			for (b = a; b < tab->ncurve - 1 && tab->share[b] < end; b++)
				;
			if (tab->k[b] - tab->k[a] < 64 || (double)(tab->k[b] - tab->k[a]) * tab->dim > 1 << 26)
				continue;
			for (int r = 0; r < 2; r++) {
				struct plan_tt *f = &tab->tts[tab->ntts];
				uint32_t n = tab->k[b] - tab->k[a], side = ceil(cbrt(n));

				*f = (struct plan_tt){ .first = tab->k[a], .count = n, .p = { side, side, side },
					.q = { tab->dim / 16, 4, 4 }, .r = { ranks[r], ranks[r] },
					.error = (tab->share[b] - tab->share[a]) * (.002 + .02 * uniform()) / ranks[r] };
				if (4. * side * (tab->dim / 16 * ranks[r] + 4 * ranks[r] * ranks[r] + 4 * ranks[r]) <=
				    fmin(onchip, 4. * n * tab->dim))
					tab->ntts++;
			}
		}
	}
}
