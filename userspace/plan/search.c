// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Baselines, and the search that makes plans to start from: MODEL.md, "Plans". */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plan.h"

#define SLACK	1e-12	/* relative: less is no improvement */

const char *const plan_solver_names[PLAN_SOLVERS] = {
	"highs", "greedy-size", "greedy-lookups", "greedy-size-lookups", "recshard", "all-nvme",
	"hot-dram",
};

double plan_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* What is on a device, in a form that changes by a table at a time */
struct sum {
	double warm, cold, copy;	/* cycles */
	double reads, read_bytes, dram, onchip, nvme, error;
};

struct search {
	const struct plan_problem *p;
	struct plan_solution *s;
	struct sum *sums;
	double *fixed;			/* cycles of a device whatever its tables */
	double error;
	bool tt;
	double error_price;
};

static void put(struct sum *a, const struct plan_choice *c, double sign)
{
	*(c->slots ? &a->cold : &a->warm) += sign * (c->emb_cycles + c->tt_cycles);
	a->copy += sign * c->out_cycles;
	a->reads += sign * c->reads;
	a->read_bytes += sign * c->read_bytes;
	a->dram += sign * c->dram;
	a->onchip += sign * c->onchip;
	a->nvme += sign * c->nvme;
	a->error += sign * c->error;
}

static double drive(const struct plan_device *v, double reads, double bytes)
{
	return reads > 0 ? fmax(reads / v->nvme_iops, bytes / v->nvme_rate) : 0;
}

static double total(const struct search *w, uint32_t d, const struct sum *a)
{
	const struct plan_device *v = &w->p->devices[d];

	return fmax(a->warm / v->clock_hz, drive(v, a->reads, a->read_bytes)) +
	       (a->cold + a->copy + w->fixed[d]) / v->clock_hz;
}

static bool fits(const struct search *w, uint32_t d, const struct sum *a)
{
	const struct plan_device *v = &w->p->devices[d];

	return a->dram <= v->dram_bytes && a->onchip <= v->onchip_bytes &&
	       a->nvme <= v->nvme_bytes;
}

static bool error_fits(const struct search *w, double error)
{
	return error <= w->p->tt_error * w->p->tt_error;
}

static void open_search(struct search *w, const struct plan_problem *p, struct plan_solution *s)
{
	double f[PLAN_FEATURES];
	uint32_t m = 0;

	memset(w, 0, sizeof(*w));
	w->p = p;
	w->s = s;
	w->sums = calloc(p->ndevices, sizeof(*w->sums));
	w->fixed = calloc(p->ndevices, sizeof(*w->fixed));
	if (!w->sums || !w->fixed)
		abort();	/* a few bytes a device */
	plan_features_copy(0, f);
	for (uint32_t d = 0; d < p->ndevices; d++)
		m += s->compute[d];
	for (uint32_t d = 0; d < p->ndevices; d++) {
		w->fixed[d] = p->cost.submit + (s->compute[d] ? p->dense_cycles[m] : 0) +
			      (p->ndevices > 1 ? plan_cycles(&p->cost, PLAN_COPY_OUT, f) : 0);
		w->sums[d].dram = s->compute[d] ? p->weight_bytes : 0;
	}
}

static void count(struct search *w)
{
	for (uint32_t t = 0; t < w->p->ntables; t++) {
		const struct plan_choice *c = &w->p->choices[t][w->s->choice[t]];

		put(&w->sums[w->s->device[t]], c, 1);
		w->error += c->error;
	}
}

static void close_search(struct search *w)
{
	free(w->sums);
	free(w->fixed);
}

static void change(struct search *w, uint32_t t, uint32_t d, uint32_t c)
{
	const struct plan_choice *old = &w->p->choices[t][w->s->choice[t]];
	const struct plan_choice *new = &w->p->choices[t][c];

	put(&w->sums[w->s->device[t]], old, -1);
	put(&w->sums[d], new, 1);
	w->error += new->error - old->error;
	w->s->choice[t] = c;
	w->s->device[t] = d;
}

/* The choice of least time plus price, for prices of DRAM and on-chip memory. */
static uint32_t cheapest(const struct search *w, uint32_t t, uint32_t d, double alpha, double mu,
			 double nu)
{
	const struct plan_device *v = &w->p->devices[d];
	double best = INFINITY;
	uint32_t at = 0;

	for (uint32_t c = 0; c < w->p->nchoices[t]; c++) {
		const struct plan_choice *k = &w->p->choices[t][c];
		double cycles = (k->emb_cycles + k->tt_cycles) / v->clock_hz;
		double x = (k->slots ? cycles : alpha * cycles) +
			   (1 - alpha) * drive(v, k->reads, k->read_bytes) + mu * k->dram +
			   nu * k->onchip + w->error_price * k->error;

		if (x < best && plan_choice_allowed(w->p, t, c, w->tt)) {
			best = x;
			at = c;
		}
	}
	return at;
}

static void choose(const struct search *w, uint32_t d, double alpha, double mu, double nu,
		   uint32_t *choice, struct sum *a)
{
	memset(a, 0, sizeof(*a));
	a->dram = w->s->compute[d] ? w->p->weight_bytes : 0;
	for (uint32_t t = 0; t < w->p->ntables; t++) {
		if (w->s->device[t] != d)
			continue;
		choice[t] = cheapest(w, t, d, alpha, mu, nu);
		put(a, &w->p->choices[t][choice[t]], 1);
	}
}

/* Prices at which the device's memories are just kept. */
static void price(const struct search *w, uint32_t d, double alpha, uint32_t *choice,
		  struct sum *a)
{
	const struct plan_device *v = &w->p->devices[d];
	double hi = 1e-3, lo = 1e-18, nu = 0;

	/* a second for a page is more than anything is worth */
	for (int round = 0; round < 2; round++) {
		double l = lo, h = hi;

		choose(w, d, alpha, 0, nu, choice, a);
		if (a->dram > v->dram_bytes) {
			for (int i = 0; i < 40; i++) {
				double mid = sqrt(l * h);

				choose(w, d, alpha, mid, nu, choice, a);
				*(a->dram > v->dram_bytes ? &l : &h) = mid;
			}
			choose(w, d, alpha, h, nu, choice, a);
		}
		if (a->onchip <= v->onchip_bytes || !w->tt || nu > 0)
			return;
		double nl = lo, nh = hi;

		for (int i = 0; i < 40; i++) {
			nu = sqrt(nl * nh);
			choose(w, d, alpha, l > lo ? h : 0, nu, choice, a);
			*(a->onchip > v->onchip_bytes ? &nl : &nh) = nu;
		}
		nu = nh;
	}
}

/* Best change of one table's choice, again and again. */
static void fill(struct search *w, uint32_t d)
{
	for (int round = 0; round < 4000; round++) {
		double now = total(w, d, &w->sums[d]), best = now * (1 - SLACK);
		uint32_t bt = 0, bc = 0;
		bool found = false;

		for (uint32_t t = 0; t < w->p->ntables; t++) {
			const struct plan_choice *old = &w->p->choices[t][w->s->choice[t]];

			if (w->s->device[t] != d)
				continue;
			for (uint32_t c = 0; c < w->p->nchoices[t]; c++) {
				const struct plan_choice *k = &w->p->choices[t][c];
				struct sum a = w->sums[d];

				if (!plan_choice_allowed(w->p, t, c, w->tt))
					continue;
				put(&a, old, -1);
				put(&a, k, 1);
				if (fits(w, d, &a) && error_fits(w, w->error - old->error + k->error) &&
				    total(w, d, &a) < best) {
					best = total(w, d, &a);
					bt = t;
					bc = c;
					found = true;
				}
			}
		}
		if (!found)
			return;
		change(w, bt, d, bc);
	}
}

/* The choices for one weight of engine against drive; kept if they are better. */
static bool try_alpha(struct search *w, uint32_t d, double alpha, uint32_t *choice,
		      uint32_t *keep)
{
	bool was_ok = fits(w, d, &w->sums[d]) && error_fits(w, w->error), is_ok;
	double was = total(w, d, &w->sums[d]);
	struct sum a;

	price(w, d, alpha, choice, &a);
	memcpy(keep, w->s->choice, w->p->ntables * sizeof(*keep));
	for (uint32_t t = 0; t < w->p->ntables; t++)
		if (w->s->device[t] == d)
			change(w, t, d, choice[t]);
	is_ok = fits(w, d, &w->sums[d]) && error_fits(w, w->error);
	if (is_ok && (!was_ok || total(w, d, &w->sums[d]) < was))
		return true;
	for (uint32_t t = 0; was_ok && t < w->p->ntables; t++)
		if (w->s->device[t] == d)
			change(w, t, d, keep[t]);
	return !was_ok;
}

static void tune(struct search *w, uint32_t d)
{
	uint32_t *choice = calloc(w->p->ntables + 1, sizeof(*choice));
	uint32_t *keep = calloc(w->p->ntables + 1, sizeof(*keep));
	double best = 0.5;

	/* a grid, then finer ones around the best of the last */
	for (double step = .25; choice && keep && step > .001; step /= 4) {
		double middle = best;

		for (int i = step == .25 ? -2 : -3; i <= (step == .25 ? 2 : 3); i++) {
			double alpha = middle + i * step;

			if (alpha >= 0 && alpha <= 1 && try_alpha(w, d, alpha, choice, keep))
				best = alpha;
		}
	}
	if (fits(w, d, &w->sums[d]) && error_fits(w, w->error))
		fill(w, d);
	free(choice);
	free(keep);
}

/* The best single move, or swap, of a table of the slowest device. */
static bool relieve(struct search *w)
{
	const struct plan_problem *p = w->p;
	double worst = 0, best;
	uint32_t dc = 0, bt = 0, be = 0, bc = 0, bu = UINT32_MAX;
	bool found = false;

	for (uint32_t d = 0; d < p->ndevices; d++) {
		if (total(w, d, &w->sums[d]) > worst) {
			worst = total(w, d, &w->sums[d]);
			dc = d;
		}
	}
	best = worst * (1 - 1e-9);
	for (uint32_t t = 0; t < p->ntables; t++) {
		const struct plan_choice *old = &p->choices[t][w->s->choice[t]];
		struct sum from = w->sums[dc];

		if (w->s->device[t] != dc)
			continue;
		put(&from, old, -1);
		for (uint32_t e = 0; e < p->ndevices; e++) {
			if (e == dc)
				continue;
			for (uint32_t c = 0; c < p->nchoices[t]; c++) {
				const struct plan_choice *k = &p->choices[t][c];
				struct sum to = w->sums[e];
				double x;

				if (!plan_choice_allowed(p, t, c, w->tt))
					continue;
				put(&to, k, 1);
				x = fmax(total(w, dc, &from), total(w, e, &to));
				if (x < best && fits(w, e, &to) &&
				    error_fits(w, w->error - old->error + k->error)) {
					best = x;
					bt = t;
					be = e;
					bc = c;
					bu = UINT32_MAX;
					found = true;
				}
			}
		}
		for (uint32_t u = 0; u < p->ntables; u++) {
			uint32_t e = w->s->device[u];
			const struct plan_choice *other = &p->choices[u][w->s->choice[u]];
			struct sum a = from, b = w->sums[e];
			double x;

			if (e == dc)
				continue;
			put(&a, other, 1);
			put(&b, other, -1);
			put(&b, old, 1);
			x = fmax(total(w, dc, &a), total(w, e, &b));
			if (x < best && fits(w, dc, &a) && fits(w, e, &b)) {
				best = x;
				bt = t;
				be = e;
				bc = w->s->choice[t];
				bu = u;
				found = true;
			}
		}
	}
	if (!found)
		return false;
	change(w, bt, be, bc);
	if (bu != UINT32_MAX)
		change(w, bu, dc, w->s->choice[bu]);
	fill(w, dc);
	return true;
}

void plan_search(const struct plan_problem *p, struct plan_solution *s, bool tt, double deadline)
{
	struct search w;

	open_search(&w, p, s);
	w.tt = tt;
	count(&w);
	for (uint32_t d = 0; d < p->ndevices; d++)
		tune(&w, d);
	for (int i = 0; i < 2000 && p->ndevices > 1 && plan_now() < deadline && relieve(&w); i++)
		;
	close_search(&w);
	plan_evaluate(p, s);
}

/* By how much a device's memories and the bound on the error are exceeded, relatively. */
static double excess(const struct search *w, uint32_t d, const struct sum *a, double error)
{
	const struct plan_device *v = &w->p->devices[d];
	double cap = w->p->tt_error * w->p->tt_error;

	return fmax(0, a->dram / fmax(v->dram_bytes, 1) - 1) +
	       fmax(0, a->onchip / fmax(v->onchip_bytes, 1) - 1) +
	       fmax(0, a->nvme / fmax(v->nvme_bytes, 1) - 1) +
	       (error > cap ? error / fmax(cap, 1e-30) - 1 : 0);
}

struct change {
	double excess, time;
	uint32_t t, c, u, uc;	/* u: UINT32_MAX if only t changes */
};

/* Takes x for *best if it is less, the excess first. */
static void least(struct change *best, double excess, double time, uint32_t t, uint32_t c,
		  uint32_t u, uint32_t uc)
{
	if (excess < best->excess * (1 - SLACK) ||
	    (excess <= best->excess && time < best->time * (1 - SLACK)))
		*best = (struct change){ excess, time, t, c, u, uc };
}

/* The best change of table t, alone or with one other, to near choices. */
static bool exchange(struct search *w, uint32_t d, uint32_t t, const struct plan_near *near)
{
	const struct plan_problem *p = w->p;
	const struct sum now = w->sums[d];
	const struct plan_choice *old = &p->choices[t][w->s->choice[t]];
	struct change best = { excess(w, d, &now, w->error), total(w, d, &now), UINT32_MAX, 0,
			       UINT32_MAX, 0 };

	for (uint32_t i = 0; i < near[t].n; i++) {
		const struct plan_choice *new = &p->choices[t][near[t].choice[i]];
		double error = w->error - old->error + new->error;
		struct sum a = now;

		put(&a, old, -1);
		put(&a, new, 1);
		least(&best, excess(w, d, &a, error), total(w, d, &a), t, near[t].choice[i],
		      UINT32_MAX, 0);
		for (uint32_t u = 0; u < p->ntables; u++) {
			const struct plan_choice *other = &p->choices[u][w->s->choice[u]];
			struct sum b = a;

			if (u == t || w->s->device[u] != d)
				continue;
			put(&b, other, -1);
			for (uint32_t k = 0; k < near[u].n; k++) {
				const struct plan_choice *to = &p->choices[u][near[u].choice[k]];
				double e = error - other->error + to->error;
				struct sum c = b;

				put(&c, to, 1);
				least(&best, excess(w, d, &c, e), total(w, d, &c), t,
				      near[t].choice[i], u, near[u].choice[k]);
			}
		}
	}
	if (best.t == UINT32_MAX)
		return false;
	change(w, t, d, best.c);
	if (best.u != UINT32_MAX)
		change(w, best.u, d, best.uc);
	return true;
}

void plan_polish(const struct plan_problem *p, struct plan_solution *s,
		 const struct plan_near *const *near, double deadline)
{
	struct search w;

	open_search(&w, p, s);
	count(&w);
	for (uint32_t d = 0; d < p->ndevices; d++) {
		bool more = true;

		while (more) {
			more = false;
			for (uint32_t t = 0; t < p->ntables && plan_now() < deadline; t++)
				if (s->device[t] == d)
					more |= exchange(&w, d, t, near[d]);
		}
	}
	close_search(&w);
	plan_evaluate(p, s);
}

static void set_compute(const struct plan_problem *p, struct plan_solution *s, uint32_t m)
{
	/* the first m by what they have to do otherwise */
	for (uint32_t d = 0; d < p->ndevices; d++)
		s->compute[d] = p->devices[d].config == PLAN_COMPUTE;
	for (uint32_t n = 0; n < m; ) {
		uint32_t best = UINT32_MAX;

		n = 0;
		for (uint32_t d = 0; d < p->ndevices; d++) {
			const struct plan_load *l = &s->load[d];

			n += s->compute[d];
			if (s->compute[d] || p->devices[d].config == PLAN_MEMORY ||
			    l->dram + p->weight_bytes > p->devices[d].dram_bytes)
				continue;
			if (best == UINT32_MAX || l->total_s < s->load[best].total_s)
				best = d;
		}
		if (n >= m || best == UINT32_MAX)
			break;
		s->compute[best] = true;
		n++;
	}
}

void plan_place_dense(const struct plan_problem *p, struct plan_solution *s)
{
	uint32_t best = 0;
	double least = INFINITY;

	if (!p->nops) {
		memset(s->compute, 0, p->ndevices * sizeof(*s->compute));
		plan_evaluate(p, s);
		return;
	}
	for (uint32_t m = 1; m <= p->ndevices; m++) {
		memset(s->compute, 0, p->ndevices * sizeof(*s->compute));
		plan_evaluate(p, s);
		set_compute(p, s, m);
		plan_evaluate(p, s);
		if (s->objective + 1e3 * s->excess < least) {
			least = s->objective + 1e3 * s->excess;
			best = m;
		}
	}
	memset(s->compute, 0, p->ndevices * sizeof(*s->compute));
	plan_evaluate(p, s);
	set_compute(p, s, best);
	plan_evaluate(p, s);
}

static const double *sort_key;

static int by_key(const void *a, const void *b)
{
	double x = sort_key[*(const uint32_t *)a], y = sort_key[*(const uint32_t *)b];

	return x < y ? 1 : x > y ? -1 : *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

/*
 * Tables by falling key, each to the device with the least key so far where it fits: whole
 * in DRAM if whole says so and there is room, else all cold. Room for the dense part is
 * kept on every device that may have it.
 */
static void greedy(const struct plan_problem *p, struct plan_solution *s, const double *key,
		   bool whole)
{
	uint32_t *order = calloc(p->ntables + 1, sizeof(*order));
	double *load = calloc(p->ndevices, sizeof(*load));
	struct search w;

	if (!order || !load)
		abort();
	for (uint32_t t = 0; t < p->ntables; t++)
		order[t] = t;
	sort_key = key;
	qsort(order, p->ntables, sizeof(*order), by_key);
	open_search(&w, p, s);
	for (uint32_t d = 0; d < p->ndevices; d++)
		w.sums[d].dram = p->devices[d].config == PLAN_MEMORY ? 0 : p->weight_bytes;
	for (uint32_t i = 0; i < p->ntables; i++) {
		uint32_t t = order[i], best = UINT32_MAX, c = 0, last = 0;

		for (uint32_t k = 0; k < p->nchoices[t]; k++)
			if (p->choices[t][k].tt < 0)
				last = k;
		for (int cold = whole ? 0 : 1; cold < 2 && best == UINT32_MAX; cold++) {
			c = cold ? 0 : last;
			for (uint32_t d = 0; d < p->ndevices; d++) {
				struct sum a = w.sums[d];

				put(&a, &p->choices[t][c], 1);
				if (fits(&w, d, &a) && (best == UINT32_MAX || load[d] < load[best]))
					best = d;
			}
		}
		if (best == UINT32_MAX) {
			/* nowhere: what evaluation then says is short */
			best = 0;
			for (uint32_t d = 1; d < p->ndevices; d++)
				if (load[d] < load[best])
					best = d;
		}
		put(&w.sums[best], &p->choices[t][c], 1);
		load[best] += key[t];
		s->device[t] = best;
		s->choice[t] = c;
	}
	close_search(&w);
	free(order);
	free(load);
	plan_place_dense(p, s);
}

/* All cold, then row ranges into DRAM in order of accesses a byte, over all tables. */
static void hot_dram(const struct plan_problem *p, struct plan_solution *s)
{
	struct search w;

	open_search(&w, p, s);
	count(&w);
	for (;;) {
		double best = 0;
		uint32_t bt = 0;

		for (uint32_t t = 0; t < p->ntables; t++) {
			const struct plan_table *tab = &p->tables[t];
			uint32_t c = s->choice[t];
			struct sum a = w.sums[s->device[t]];
			double gain;

			if (tab->tt_form || c + 1 >= tab->ncurve)
				continue;
			put(&a, &p->choices[t][c], -1);
			put(&a, &p->choices[t][c + 1], 1);
			gain = tab->pooling * (tab->share[c + 1] - tab->share[c]) /
			       (4. * tab->dim * ((double)tab->k[c + 1] - tab->k[c]));
			if (gain > best && fits(&w, s->device[t], &a)) {
				best = gain;
				bt = t;
			}
		}
		if (best <= 0)
			break;
		change(&w, bt, s->device[bt], s->choice[bt] + 1);
	}
	close_search(&w);
	plan_evaluate(p, s);
}

bool plan_baseline(const struct plan_problem *p, enum plan_solver which, struct plan_solution *s)
{
	double *key = calloc(p->ntables + 1, sizeof(*key));

	if (!key)
		abort();
	for (uint32_t t = 0; t < p->ntables; t++) {
		double size = 4. * p->tables[t].nrows * p->tables[t].dim;
		double lookups = p->tables[t].pooling * p->tables[t].dim;

		key[t] = which == PLAN_GREEDY_SIZE ? size :
			 which == PLAN_GREEDY_LOOKUPS || which == PLAN_ALL_NVME ? lookups :
			 size * lookups;
	}
	greedy(p, s, key, which != PLAN_ALL_NVME && which != PLAN_HOT_DRAM);
	if (which == PLAN_HOT_DRAM)
		hot_dram(p, s);
	free(key);
	return !s->excess;
}
