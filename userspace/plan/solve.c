// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* From bound to plan and certificate: MODEL.md, "How it is solved". */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lp.h"

static const double *pack_key;

static int by_pack_key(const void *a, const void *b)
{
	double x = pack_key[*(const uint32_t *)a], y = pack_key[*(const uint32_t *)b];

	return x < y ? 1 : x > y ? -1 : 0;
}

/* m devices with dense work, rather those of the LP, and what that leaves of each resource. */
static void round_dense(const struct lp *l, uint32_t m, struct plan_solution *s,
			double (*left)[ROWS])
{
	const struct plan_problem *p = l->p;
	double y[MAX_GROUPS] = { 0 };
	uint32_t least;

	memset(s->compute, 0, p->ndevices * sizeof(*s->compute));
	for (uint32_t g = 0; m && g < l->ngroups; g++) {
		for (uint32_t k = 0; k < p->ndevices; k++)
			y[g] += l->dense[p->ndevices + k * l->ngroups + g];
		if (p->devices[l->rep[g]].config == PLAN_COMPUTE)
			y[g] = INFINITY;
	}
	for (uint32_t n = 0; n < m; n++) {
		least = UINT32_MAX;
		for (uint32_t d = 0; d < p->ndevices; d++)
			if (!s->compute[d] && p->devices[d].config != PLAN_MEMORY &&
			    (least == UINT32_MAX || y[l->of[d]] > y[l->of[least]]))
				least = d;
		if (least == UINT32_MAX)
			break;
		s->compute[least] = true;
		y[l->of[least]] -= 1;
	}
	for (uint32_t d = 0; d < p->ndevices; d++) {
		uint32_t g = l->of[d];

		for (int k = 0; k < ROWS; k++)
			left[d][k] = k < TIMES ? l->bound / l->scale - plan_lp_fixed(l, g) : 1;
		if (!s->compute[d])
			continue;
		for (int k = 0; k < TIMES; k++)
			left[d][k] -= plan_lp_dense(l, g, m);
		left[d][CAP_DRAM] -= p->weight_bytes / fmax(p->devices[d].dram_bytes, 1);
	}
}

/*
 * The LP's largest x of each table, spread over the group's devices, large tables first.
 * match: where what is left looks most like what the table wants; else where the scarcest
 * of what is left stays largest.
 */
static void round_lp(const struct lp *l, const double *x, uint32_t m, bool match,
		     struct plan_solution *s)
{
	const struct plan_problem *p = l->p;
	uint32_t *order = calloc(p->ntables + 1, sizeof(*order));
	double *best = calloc(p->ntables + 1, sizeof(*best));
	double (*left)[ROWS] = calloc(p->ndevices, sizeof(*left));
	uint32_t *group = calloc(p->ntables + 1, sizeof(*group));

	if (!order || !best || !left || !group)
		abort();
	round_dense(l, m, s, left);
	for (uint32_t i = 0; i < l->ncols; i++) {
		const struct col *c = &l->cols[i];

		if (x[i] > best[c->t]) {
			best[c->t] = x[i];
			s->choice[c->t] = c->c;
			group[c->t] = c->g;
		}
	}
	for (uint32_t t = 0; t < p->ntables; t++) {
		double a[ROWS];

		order[t] = t;
		plan_lp_column(l, t, s->choice[t], group[t], a);
		best[t] = 0;
		for (int i = 0; i < ROWS; i++)
			best[t] = fmax(best[t], a[i] * (i < TIMES ? 1 : l->size[group[t]]));
	}
	pack_key = best;
	qsort(order, p->ntables, sizeof(*order), by_pack_key);
	for (uint32_t i = 0; i < p->ntables; i++) {
		uint32_t t = order[i], to = UINT32_MAX;
		double most = -INFINITY, a[ROWS];

		plan_lp_column(l, t, s->choice[t], group[t], a);
		for (int k = TIMES; k < ROWS; k++)
			a[k] *= l->size[group[t]];
		for (uint32_t d = 0; d < p->ndevices; d++) {
			double least = INFINITY, dot = 0, sum = 0, score;

			if (l->of[d] != group[t])
				continue;
			for (int k = 0; k < ROWS; k++) {
				least = fmin(least, left[d][k] - a[k]);
				dot += left[d][k] * a[k];
				sum += left[d][k];
			}
			score = match ? (least < 0 ? least - 1e3 : dot) : least + 1e-3 * sum;
			if (score > most) {
				most = score;
				to = d;
			}
		}
		for (int k = 0; k < ROWS; k++)
			left[to][k] -= a[k];
		s->device[t] = to;
	}
	free(order);
	free(best);
	free(left);
	free(group);
}

static bool better(const struct plan_solution *a, const struct plan_solution *b)
{
	return a->excess < b->excess || (a->excess == b->excess && a->objective < b->objective);
}

void plan_keep_better(const struct plan_problem *p, struct plan_solution *best,
		      const struct plan_solution *s, const char *name,
		      struct plan_certificate *cert)
{
	if (!better(s, best))
		return;
	plan_solution_copy(best, s, p);
	cert->start = name;
}

#define NEAR	24	/* choices of a table that plan_polish() tries */

static const double *near_key;

static int by_near_key(const void *a, const void *b)
{
	double x = near_key[*(const uint32_t *)a], y = near_key[*(const uint32_t *)b];

	return x < y ? -1 : x > y ? 1 : 0;
}

static void near_free(const struct lp *l, struct plan_near **near)
{
	for (uint32_t g = 0; g < l->ngroups; g++)
		for (uint32_t t = 0; t < l->p->ntables; t++)
			free(near[g][t].choice);
	for (uint32_t g = 0; g < l->ngroups; g++)
		free(near[g]);
	free(near);
}

/* Per group and table the choices of least cost at the LP's prices. */
static struct plan_near **near_choices(const struct lp *l)
{
	const struct plan_problem *p = l->p;
	struct plan_near **near = calloc(l->ngroups, sizeof(*near));
	uint32_t most = 0;
	double *key;

	for (uint32_t t = 0; t < p->ntables; t++)
		most = p->nchoices[t] > most ? p->nchoices[t] : most;
	key = calloc(most + 1, sizeof(*key));
	if (!near || !key)
		abort();
	for (uint32_t g = 0; g < l->ngroups; g++) {
		near[g] = calloc(p->ntables + 1, sizeof(*near[g]));
		if (!near[g])
			abort();
		for (uint32_t t = 0; t < p->ntables; t++) {
			struct plan_near *n = &near[g][t];

			n->choice = calloc(p->nchoices[t] + 1, sizeof(*n->choice));
			if (!n->choice)
				abort();
			for (uint32_t c = 0; c < p->nchoices[t]; c++) {
				key[c] = plan_lp_priced(l, t, c, g);
				if (plan_choice_allowed(p, t, c, l->tt))
					n->choice[n->n++] = c;
			}
			near_key = key;
			qsort(n->choice, n->n, sizeof(*n->choice), by_near_key);
			if (n->n > NEAR)
				n->n = NEAR;
		}
	}
	free(key);
	return near;
}
static const char *const cap_names[3] = { "device DRAM", "on-chip memory", "room on the drive" };

/* Does any heuristic find a plan with memories of one kind (3: all) factor times as large? */
static bool fits_if(const struct plan_problem *p, int kind, double factor)
{
	struct plan_problem q = *p;
	struct plan_solution s;
	struct csm_err ignored;
	bool ok = false;

	q.devices = calloc(p->ndevices, sizeof(*q.devices));
	if (!q.devices || plan_solution_init(&s, p, &ignored))
		abort();
	for (uint32_t d = 0; d < p->ndevices; d++) {
		q.devices[d] = p->devices[d];
		if (kind == 0 || kind == 3)
			q.devices[d].dram_bytes *= factor;
		if (kind == 1 || kind == 3)
			q.devices[d].onchip_bytes *= factor;
		if (kind == 2 || kind == 3)
			q.devices[d].nvme_bytes *= factor;
	}
	for (int b = PLAN_GREEDY_SIZE; b < PLAN_SOLVERS && !ok; b++) {
		if (b == PLAN_RECSHARD)
			continue;
		ok = plan_baseline(&q, b, &s);
		if (!ok && b == PLAN_GREEDY_SIZE) {
			plan_search(&q, &s, true, plan_now() + 1);
			ok = !s.excess;
		}
	}
	plan_solution_free(&s);
	free(q.devices);
	return ok;
}

static int infeasible(const struct lp *l, double shortage[MAX_GROUPS][3], struct csm_err *err)
{
	const struct plan_problem *p = l->p;
	char text[240] = "", more[120] = "";
	bool proven = false;
	int n = 0;

	for (uint32_t g = 0; g < l->ngroups; g++) {
		const struct plan_device *v = &p->devices[l->rep[g]];
		double caps[3] = { v->dram_bytes, v->onchip_bytes, v->nvme_bytes };

		for (int i = 0; i < 3; i++) {
			if (shortage[g][i] < 1e-7)
				continue;
			proven = true;
			if (n < (int)sizeof(text) - 1)
				n += snprintf(text + n, sizeof(text) - n, "%s%s of %s%s is short by %.0f bytes",
					      n ? ", " : "", cap_names[i], v->name,
					      l->size[g] > 1 ? " and its equals" : "",
					      ceil(shortage[g][i] * fmax(caps[i] * l->size[g], 1)));
		}
	}
	for (int kind = 0; kind < 4 && !*more; kind++) {
		double lo = 1, hi = 1024;

		if (!fits_if(p, kind, hi))
			continue;
		for (int i = 0; i < 24; i++) {
			double mid = sqrt(lo * hi);

			*(fits_if(p, kind, mid) ? &hi : &lo) = mid;
		}
		snprintf(more, sizeof(more), "%s %.4f times as large on each device is enough",
			 kind < 3 ? cap_names[kind] : "every memory", ceil(hi * 1e4) / 1e4);
	}
	return csm_fail(err, -ENOSPC, "no plan fits: %s; %s", proven ? text :
			"in sum there is room, but no division over the devices was found",
			*more ? more : "no size of the memories alone helps");
}

/*
 * The dual function for each number of devices with dense work, of which one at least has its
 * part as a whole.
 */
static double dense_bound(struct lp *l)
{
	double least = INFINITY, rest = plan_lp_dual(l) / l->scale, cheapest = INFINITY;

	if (!l->p->nops)
		return 0;
	for (uint32_t m = 1; m <= l->p->ndevices; m++)
		cheapest = fmin(cheapest, plan_lp_priced_dense(l, m));
	for (uint32_t m = 1; m <= l->p->ndevices; m++) {
		double part = INFINITY;

		for (uint32_t g = 0; g < l->ngroups; g++)
			if (l->p->devices[l->rep[g]].config != PLAN_MEMORY)
				part = fmin(part, plan_lp_fixed(l, g) + plan_lp_dense(l, g, m));
		least = fmin(least, fmax(rest - cheapest + plan_lp_priced_dense(l, m), part));
	}
	return isfinite(least) ? least * l->scale : 0;
}

static int core(const struct plan_problem *p, const struct plan_options *o, bool tt,
		struct plan_solution *best, struct plan_certificate *cert, struct csm_err *err)
{
	double began = plan_now(), shortage[MAX_GROUPS][3], *x = NULL;
	const struct plan_near *near_of[MAX_GROUPS];
	struct plan_near **near;
	struct plan_solution s;
	struct lp l;
	int ret = plan_solution_init(&s, p, err);

	if (ret)
		return ret;
	plan_solution_copy(&s, best, p);
	plan_search(p, &s, tt, began + o->time_limit / 8);
	plan_keep_better(p, best, &s, "search from a baseline", cert);
	ret = plan_lp_open(&l, p, tt, true, best->objective > 0 ? best->objective : 1e-3);
	if (!ret)
		ret = plan_lp_solve(&l, best, began + o->time_limit / 2, &x, shortage);
	if (ret) {
		ret = csm_fail(err, ret, "HiGHS could not solve the linear program");
		goto out;
	}
	cert->bound = l.bound;
	/* a table is on one device as a whole */
	for (uint32_t t = 0; t < p->ntables; t++) {
		double least = INFINITY;

		for (uint32_t c = 0; c < p->nchoices[t]; c++)
			for (uint32_t g = 0; g < l.ngroups && plan_choice_allowed(p, t, c, tt); g++) {
				double a[ROWS];

				plan_lp_column(&l, t, c, g, a);
				least = fmin(least, (fmax(a[TIME_WARM], fmax(a[TIME_READS], a[TIME_BYTES])) +
						     plan_lp_fixed(&l, g)) * l.scale);
			}
		cert->bound = fmax(cert->bound, least);
	}
	cert->bound = fmax(cert->bound, dense_bound(&l));
	near = near_choices(&l);
	for (uint32_t d = 0; d < p->ndevices; d++)
		near_of[d] = near[l.of[d]];
	for (uint32_t i = 0; i < 2 * (p->nops ? p->ndevices : 1); i++) {
		if (!best->excess && best->objective - cert->bound <= o->gap * best->objective)
			break;
		round_lp(&l, x, p->nops ? i / 2 + 1 : 0, i % 2, &s);
		plan_polish(p, &s, near_of, began + o->time_limit * 3 / 4);
		plan_search(p, &s, tt, began + o->time_limit * 3 / 4);
		plan_polish(p, &s, near_of, began + o->time_limit * 3 / 4);
		plan_keep_better(p, best, &s, "linear program, rounded and improved", cert);
	}
	if (best->excess || best->objective - cert->bound > o->gap * best->objective)
		ret = plan_branch(&l, best, &s, fmax(0.1, began + o->time_limit - plan_now()), o->gap,
				  cert);
	near_free(&l, near);
	if (ret && ret != -ENOSPC)
		ret = csm_fail(err, ret, "HiGHS could not solve the program");
	else if (best->excess)
		ret = infeasible(&l, shortage, err);
	else
		ret = 0;
out:
	cert->seconds = plan_now() - began;
	free(x);
	plan_lp_free(&l);
	plan_solution_free(&s);
	return ret;
}

int plan_solve(const struct plan_problem *p, const struct plan_options *o,
	       struct plan_solution *best, struct plan_certificate *cert,
	       double baseline[PLAN_SOLVERS], struct csm_err *err)
{
	double began = plan_now();
	struct plan_solution s;
	bool any_tt = false;
	int ret;

	memset(cert, 0, sizeof(*cert));
	cert->start = "none";
	if (p->ndevices > MAX_GROUPS)
		return csm_fail(err, -E2BIG, "%u devices; at most %d can be planned for", p->ndevices,
				MAX_GROUPS);
	ret = plan_solution_init(&s, p, err);
	if (ret)
		return ret;
	best->excess = INFINITY;
	for (uint32_t t = 0; t < p->ntables; t++)
		any_tt |= p->tables[t].ntts != 0;
	for (int b = 0; b < PLAN_SOLVERS; b++) {
		if (baseline)
			baseline[b] = NAN;
		if (b == PLAN_HIGHS || b == PLAN_RECSHARD)
			continue;
		if (o->solver != PLAN_HIGHS && o->solver != PLAN_RECSHARD && !baseline &&
		    o->solver != (enum plan_solver)b)
			continue;
		plan_baseline(p, b, &s);
		if (baseline && !s.excess)
			baseline[b] = s.objective;
		if (o->solver == PLAN_HIGHS || o->solver == PLAN_RECSHARD ||
		    o->solver == (enum plan_solver)b)
			plan_keep_better(p, best, &s, plan_solver_names[b], cert);
	}
	if (o->solver == PLAN_HIGHS || o->solver == PLAN_RECSHARD) {
		if (any_tt && o->solver == PLAN_HIGHS && !best->excess) {
			struct plan_options two = { PLAN_RECSHARD, o->time_limit / 4, o->gap };
			struct plan_certificate other = { .start = cert->start };

			plan_solution_copy(&s, best, p);
			ret = core(p, &two, false, &s, &other, err);
			if (!ret) {
				if (baseline)
					baseline[PLAN_RECSHARD] = s.objective;
				plan_keep_better(p, best, &s, "recshard", cert);
			}
		}
		ret = core(p, o, o->solver == PLAN_HIGHS, best, cert, err);
		if (!ret && baseline && (!any_tt || o->solver == PLAN_RECSHARD))
			baseline[PLAN_RECSHARD] = best->objective;
	} else if (best->excess) {
		ret = csm_fail(err, -ENOSPC, "%s finds no plan that fits; --solver highs says what is short",
			       plan_solver_names[o->solver]);
	}
	plan_solution_free(&s);
	if (!ret) {
		cert->gap = fmax(0, (best->objective - cert->bound) / best->objective);
		cert->optimal = cert->gap <= 1e-6;
	}
	cert->seconds = plan_now() - began;
	return ret;
}
