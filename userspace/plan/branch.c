// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Branch and bound over the choices that can still be in a better plan: MODEL.md, "How it is solved". */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lp.h"

#define MIP_COLUMNS	20000	/* more are not given to it */

/* The best plan so far as the program's variables, for HiGHS to start from. */
static void give_plan(const struct lp *l, const struct plan_solution *best, uint32_t M, double *x)
{
	uint32_t m = 0;

	x[0] = best->objective / l->scale;
	for (uint32_t d = 0; d < l->p->ndevices; d++)
		m += best->compute[d];
	if (M && m) {
		x[1 + 3 * l->ngroups + m - 1] = 1;
		for (uint32_t d = 0; d < l->p->ndevices; d++)
			x[1 + 3 * l->ngroups + M + (m - 1) * l->ngroups + d] = best->compute[d];
	}
	for (uint32_t i = 0; i < l->ncols; i++) {
		const struct col *c = &l->cols[i];

		x[l->first_x + i] = best->choice[c->t] == c->c && best->device[c->t] == c->g;
	}
}

static void take_plan(const struct lp *l, const double *x, uint32_t M, struct plan_solution *s)
{
	for (uint32_t i = 0; i < l->ncols; i++) {
		if (x[l->first_x + i] < 0.5)
			continue;
		s->choice[l->cols[i].t] = l->cols[i].c;
		s->device[l->cols[i].t] = l->cols[i].g;
	}
	memset(s->compute, 0, l->p->ndevices * sizeof(*s->compute));
	for (uint32_t k = 0; k < M; k++)
		for (uint32_t d = 0; d < l->p->ndevices; d++)
			s->compute[d] |= x[1 + 3 * l->ngroups + M + k * l->ngroups + d] > 0.5;
	plan_evaluate(l->p, s);
}

/* By HiGHS, single devices being groups. limit: what was left out cannot be below. */
static int mip(struct lp *l, double limit, struct plan_solution *best, struct plan_solution *s,
	       double seconds, double gap, struct plan_certificate *cert)
{
	uint32_t M = l->p->nops ? l->p->ndevices : 0;
	double bound = 0, *x = calloc(l->first_x + l->ncols, sizeof(*x));
	bool found = !best->excess;
	int ret = x ? 0 : -ENOMEM;

	if (!ret && found)
		give_plan(l, best, M, x);
	if (!ret)
		ret = plan_lp_mip(l, x, &found, &bound, seconds, gap);
	cert->bound = fmax(cert->bound, fmin(bound, limit));
	if (found && !ret) {
		take_plan(l, x, M, s);
		plan_keep_better(l->p, best, s, "branch and bound", cert);
	}
	free(x);
	return ret == -ENOSPC && !best->excess ? 0 : ret;
}

int plan_branch(struct lp *l, struct plan_solution *best, struct plan_solution *s,
		double seconds, double gap, struct plan_certificate *cert)
{
	const struct plan_problem *p = l->p;
	double limit = best->excess ? INFINITY : best->objective;
	/* at the prices as they now are, which need not be those of the best bound */
	double here = plan_lp_dual(l);
	struct lp full;
	int ret;

	cert->columns = cert->columns_left = 0;
	ret = plan_lp_open(&full, p, l->tt, false, l->scale);
	for (uint32_t t = 0; !ret && t < p->ntables; t++) {
		for (uint32_t c = 0; !ret && c < p->nchoices[t]; c++) {
			cert->columns += l->ngroups;
			for (uint32_t d = 0; !ret && d < p->ndevices; d++) {
				uint32_t g = l->of[d];

				if (!plan_choice_allowed(p, t, c, l->tt) ||
				    here + (plan_lp_priced(l, t, c, g) - l->least[t]) * l->scale > limit)
					continue;
				if (++cert->columns_left <= MIP_COLUMNS)
					ret = plan_lp_add(&full, t, c, d);
			}
		}
	}
	if (!ret && cert->columns_left <= MIP_COLUMNS) {
		cert->mip_columns = full.first_x + full.ncols;
		ret = mip(&full, limit, best, s, seconds, gap, cert);
	}
	plan_lp_free(&full);
	return ret;
}
