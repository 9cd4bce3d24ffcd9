// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The mixed-integer program with HiGHS: MODEL.md, "Program" and "How it is solved".
 *
 * Equal devices are one group of the linear program, which has no symmetry then. Its
 * columns are made as they are wanted (column generation), so that all points of all
 * curves take part. Its multipliers give the bound by Lagrange's dual function, which
 * needs no trust in the LP solver's tolerances.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <interfaces/highs_c_api.h>

#include "plan.h"

enum { TIME_WARM, TIME_READS, TIME_BYTES, CAP_DRAM, CAP_ONCHIP, CAP_NVME, ROWS };
#define TIMES		3
#define SHORT_PRICE	1e3	/* of a memory's whole size, in times of the scale */
#define MIP_COLUMNS	20000	/* more are not given to branch and bound */

struct lp {
	const struct plan_problem *p;
	bool tt;
	double scale;			/* seconds of 1 in the program */
	uint32_t ngroups;
	uint32_t *rep, *size;		/* per group: a device of it, and how many */
	uint32_t *of;			/* group of a device */
	double price[64][ROWS];		/* multipliers of rows, none negative */
	double error_price;
	void *highs;
	uint32_t ncols, room;
	struct col { uint32_t t, c, g; } *cols;	/* those of the x, from first_x on */
	uint32_t first_x;
	double bound;			/* in seconds */
	double *least;			/* per table: cost at those prices */
	double *dense;			/* the LP's z, then its y */
};

#define MAX_GROUPS	64

static double error_cap(const struct plan_problem *p)
{
	return p->tt_error > 0 ? p->tt_error * p->tt_error : 1;
}

/* Coefficients of x[t][c][g] in the rows of its group, scaled. */
static void column(const struct lp *l, uint32_t t, uint32_t c, uint32_t g, double a[ROWS])
{
	const struct plan_choice *k = &l->p->choices[t][c];
	const struct plan_device *v = &l->p->devices[l->rep[g]];
	double n = l->size[g], cycles = (k->emb_cycles + k->tt_cycles) / v->clock_hz;
	double always = k->out_cycles / v->clock_hz + (k->slots ? cycles : 0);
	double caps[3] = { v->dram_bytes, v->onchip_bytes, v->nvme_bytes };
	double use[3] = { k->dram, k->onchip, k->nvme };

	a[TIME_WARM] = (always + (k->slots ? 0 : cycles)) / l->scale;
	a[TIME_READS] = (always + (k->reads > 0 ? k->reads / v->nvme_iops : 0)) / l->scale;
	a[TIME_BYTES] = (always + (k->reads > 0 ? k->read_bytes / v->nvme_rate : 0)) / l->scale;
	for (int i = 0; i < 3; i++)
		a[CAP_DRAM + i] = use[i] / fmax(n * caps[i], 1);
}

static double fixed_time(const struct lp *l, uint32_t g)
{
	double f[PLAN_FEATURES], x = l->p->cost.submit;

	plan_features_copy(0, f);
	if (l->p->ndevices > 1)
		x += plan_cycles(&l->p->cost, PLAN_COPY_OUT, f);
	return x / l->p->devices[l->rep[g]].clock_hz / l->scale;
}

static double dense_time(const struct lp *l, uint32_t g, uint32_t m)
{
	return l->p->dense_cycles[m] / l->p->devices[l->rep[g]].clock_hz / l->scale;
}

static double priced(const struct lp *l, uint32_t t, uint32_t c, uint32_t g)
{
	double a[ROWS], sum = l->error_price * l->p->choices[t][c].error / error_cap(l->p);

	column(l, t, c, g, a);
	for (int i = 0; i < ROWS; i++)
		sum += l->price[g][i] * a[i];
	return sum;
}

static double time_price(const struct lp *l, uint32_t g)
{
	return l->price[g][0] + l->price[g][1] + l->price[g][2];
}

/* What the dense part costs at these prices when m devices share it, cheapest ones first. */
static double priced_dense(const struct lp *l, uint32_t m)
{
	double cost[MAX_GROUPS], sum = 0;
	uint32_t left[MAX_GROUPS];

	for (uint32_t g = 0; g < l->ngroups; g++) {
		const struct plan_device *v = &l->p->devices[l->rep[g]];

		cost[g] = time_price(l, g) * dense_time(l, g, m) + l->price[g][CAP_DRAM] *
			  l->p->weight_bytes / fmax(l->size[g] * v->dram_bytes, 1);
		left[g] = v->config == PLAN_MEMORY ? 0 : l->size[g];
		if (v->config == PLAN_COMPUTE) {
			if (m < l->size[g])
				return INFINITY;
			sum += left[g] * cost[g];
			m -= left[g];
			left[g] = 0;
		}
	}
	while (m) {
		uint32_t best = UINT32_MAX, n;

		for (uint32_t g = 0; g < l->ngroups; g++)
			if (left[g] && (best == UINT32_MAX || cost[g] < cost[best]))
				best = g;
		if (best == UINT32_MAX)
			return INFINITY;
		n = left[best] < m ? left[best] : m;
		sum += n * cost[best];
		left[best] -= n;
		m -= n;
	}
	return sum;
}

/* Lagrange's dual function at the prices: below every plan's time. */
static double dual_value(struct lp *l)
{
	const struct plan_problem *p = l->p;
	double sum = -l->error_price * (p->tt_error > 0 ? 1 : 0), all = 0, dense = INFINITY;

	for (uint32_t g = 0; g < l->ngroups; g++)
		all += l->size[g] * time_price(l, g);
	if (all <= 0)
		return 0;
	l->error_price /= all;
	sum /= all;
	for (uint32_t g = 0; g < l->ngroups; g++) {
		const struct plan_device *v = &p->devices[l->rep[g]];
		double caps[3] = { v->dram_bytes, v->onchip_bytes, v->nvme_bytes };

		for (int i = 0; i < ROWS; i++)
			l->price[g][i] /= all;
		for (int i = 0; i < 3; i++)
			sum -= l->price[g][CAP_DRAM + i] * (caps[i] * l->size[g] >= 1 ? 1 :
							    caps[i] * l->size[g]);
		sum += l->size[g] * time_price(l, g) * fixed_time(l, g);
	}
	for (uint32_t t = 0; t < p->ntables; t++) {
		l->least[t] = INFINITY;
		for (uint32_t g = 0; g < l->ngroups; g++)
			for (uint32_t c = 0; c < p->nchoices[t]; c++)
				if (plan_choice_allowed(p, t, c, l->tt))
					l->least[t] = fmin(l->least[t], priced(l, t, c, g));
		sum += l->least[t];
	}
	for (uint32_t m = 1; m <= p->ndevices && p->nops; m++)
		dense = fmin(dense, priced_dense(l, m));
	return (p->nops ? sum + dense : sum) * l->scale;
}

/* Rows: tables, then ROWS a group, the error, then 1 + M of the dense part, then configs. */
static uint32_t row_of(const struct lp *l, uint32_t g, int i)
{
	return l->p->ntables + g * ROWS + i;
}

static uint32_t error_row(const struct lp *l)
{
	return l->p->ntables + l->ngroups * ROWS;
}

static int add_col(struct lp *l, double cost, double ub, uint32_t n, const HighsInt *index,
		   const double *value)
{
	const HighsInt start = 0;

	return Highs_addCols(l->highs, 1, &cost, &(double){ 0 }, &ub, n, &start, index, value) ==
	       kHighsStatusError;
}

static int add_x(struct lp *l, uint32_t t, uint32_t c, uint32_t g)
{
	double a[ROWS], value[ROWS + 2] = { 1 };
	HighsInt index[ROWS + 2] = { t };
	uint32_t n = 1;

	if (l->ncols == l->room) {
		void *more = realloc(l->cols, 2 * l->room * sizeof(*l->cols));

		if (!more)
			return -ENOMEM;
		l->cols = more;
		l->room *= 2;
	}
	column(l, t, c, g, a);
	for (int i = 0; i < ROWS; i++) {
		if (!a[i])
			continue;
		index[n] = row_of(l, g, i);
		value[n++] = i < TIMES ? -a[i] : a[i];
	}
	if (l->p->choices[t][c].error > 0) {
		index[n] = error_row(l);
		value[n++] = l->p->choices[t][c].error / error_cap(l->p);
	}
	l->cols[l->ncols++] = (struct col){ t, c, g };
	return add_col(l, 0, 1e30, n, index, value) ? -EIO : 0;
}

static void quiet(void *h)
{
	Highs_setBoolOptionValue(h, "output_flag", 0);
	Highs_setIntOptionValue(h, "threads", 1);
	Highs_setStringOptionValue(h, "parallel", "off");
}

/* Everything but the x. */
static int make_rows(struct lp *l)
{
	const struct plan_problem *p = l->p;
	uint32_t G = l->ngroups, M = p->nops ? p->ndevices : 0;
	HighsInt index[MAX_GROUPS * ROWS + 2];
	double value[MAX_GROUPS * ROWS + 2], inf = Highs_getInfinity(l->highs);
	uint32_t dense0 = error_row(l) + 1, n = 0;
	int bad = 0;

	for (uint32_t t = 0; t < p->ntables; t++)
		bad |= Highs_addRow(l->highs, 1, 1, 0, NULL, NULL) == kHighsStatusError;
	for (uint32_t g = 0; g < G; g++) {
		const struct plan_device *v = &p->devices[l->rep[g]];
		double caps[3] = { v->dram_bytes, v->onchip_bytes, v->nvme_bytes };

		for (int i = 0; i < TIMES; i++)
			bad |= Highs_addRow(l->highs, l->size[g] * fixed_time(l, g), inf, 0, NULL, NULL) ==
			       kHighsStatusError;
		for (int i = 0; i < 3; i++)
			bad |= Highs_addRow(l->highs, -inf, caps[i] * l->size[g] >= 1 ? 1 :
					    caps[i] * l->size[g], 0, NULL, NULL) == kHighsStatusError;
	}
	Highs_addRow(l->highs, -inf, p->tt_error > 0 ? 1 : 0, 0, NULL, NULL);
	if (M) {
		Highs_addRow(l->highs, 1, 1, 0, NULL, NULL);		/* one number of devices */
		for (uint32_t m = 1; m <= M; m++)
			Highs_addRow(l->highs, 0, 0, 0, NULL, NULL);	/* y of m add up to m */
		for (uint32_t g = 0; g < G; g++)
			Highs_addRow(l->highs, p->devices[l->rep[g]].config == PLAN_COMPUTE ?
				     l->size[g] : 0, p->devices[l->rep[g]].config == PLAN_MEMORY ? 0 :
				     l->size[g], 0, NULL, NULL);
	}
	/* T, then what memories are short of */
	for (uint32_t g = 0; g < G; g++) {
		for (int i = 0; i < TIMES; i++) {
			index[n] = row_of(l, g, i);
			value[n++] = l->size[g];
		}
	}
	bad |= add_col(l, 1, inf, n, index, value);
	for (uint32_t g = 0; g < G; g++)
		for (int i = CAP_DRAM; i < ROWS; i++)
			bad |= add_col(l, SHORT_PRICE, inf, 1, &(HighsInt){ row_of(l, g, i) },
				       &(double){ -1 });
	for (uint32_t m = 1; m <= M; m++) {
		HighsInt zi[2] = { dense0, dense0 + m };
		double zv[2] = { 1, -(double)m };

		bad |= add_col(l, 0, 1, 2, zi, zv);
	}
	for (uint32_t m = 1; m <= M; m++) {
		for (uint32_t g = 0; g < G; g++) {
			n = 0;
			for (int i = 0; i < TIMES; i++) {
				index[n] = row_of(l, g, i);
				value[n++] = -dense_time(l, g, m);
			}
			index[n] = row_of(l, g, CAP_DRAM);
			value[n++] = p->weight_bytes /
				     fmax(l->size[g] * p->devices[l->rep[g]].dram_bytes, 1);
			index[n] = dense0 + m;
			value[n++] = 1;
			index[n] = dense0 + M + 1 + g;
			value[n++] = 1;
			bad |= add_col(l, 0, l->size[g], n, index, value);
		}
	}
	l->first_x = 1 + 3 * G + M + M * G;
	return bad ? -EIO : 0;
}

static void lp_free(struct lp *l)
{
	if (l->highs)
		Highs_destroy(l->highs);
	free(l->rep);
	free(l->size);
	free(l->of);
	free(l->cols);
	free(l->least);
	free(l->dense);
}

static int lp_open(struct lp *l, const struct plan_problem *p, bool tt, bool aggregate,
		   double scale)
{
	memset(l, 0, sizeof(*l));
	l->p = p;
	l->tt = tt;
	l->scale = scale;
	l->room = 4096;
	l->rep = calloc(p->ndevices, sizeof(*l->rep));
	l->size = calloc(p->ndevices, sizeof(*l->size));
	l->of = calloc(p->ndevices, sizeof(*l->of));
	l->cols = calloc(l->room, sizeof(*l->cols));
	l->least = calloc(p->ntables + 1, sizeof(*l->least));
	l->highs = Highs_create();
	if (!l->rep || !l->size || !l->of || !l->cols || !l->least || !l->highs)
		return -ENOMEM;
	for (uint32_t d = 0; d < p->ndevices; d++) {
		if (aggregate && p->group[d] != d) {
			l->of[d] = l->of[p->group[d]];
		} else {
			l->of[d] = l->ngroups;
			l->rep[l->ngroups++] = d;
		}
		l->size[l->of[d]]++;
	}
	quiet(l->highs);
	return make_rows(l);
}

static bool same_col(const struct lp *l, uint32_t t, uint32_t c, uint32_t g)
{
	for (uint32_t i = 0; i < l->ncols; i++)
		if (l->cols[i].t == t && l->cols[i].c == c && l->cols[i].g == g)
			return true;
	return false;
}

/* Solves the LP over all choices. x gets its solution, [ncols], the caller's. */
static int lp_solve(struct lp *l, const struct plan_solution *start, double deadline, double **x,
		    double shortage[MAX_GROUPS][3])
{
	const struct plan_problem *p = l->p;
	double *col = NULL, *dual = NULL;
	int ret = 0;

	for (uint32_t t = 0; t < p->ntables && !ret; t++) {
		uint32_t n = p->nchoices[t];

		for (uint32_t g = 0; g < l->ngroups && !ret; g++) {
			for (uint32_t i = 0; i <= 4 && !ret; i++) {
				uint32_t c = (uint64_t)(n - 1) * i / 4;

				if (plan_choice_allowed(p, t, c, l->tt) && !(i && c == (n - 1) * (i - 1) / 4))
					ret = add_x(l, t, c, g);
			}
		}
		if (!ret && start && !same_col(l, t, start->choice[t], l->of[start->device[t]]))
			ret = add_x(l, t, start->choice[t], l->of[start->device[t]]);
	}
	for (int round = 0; !ret; round++) {
		HighsInt rows = Highs_getNumRow(l->highs), cols = Highs_getNumCol(l->highs), status;
		uint32_t added = 0;
		double value, objective;

		/* each is as long as there now are */
		free(col);
		free(dual);
		col = calloc(cols, sizeof(*col));
		dual = calloc(rows, sizeof(*dual));
		if (!col || !dual) {
			ret = -ENOMEM;
			break;
		}
		status = Highs_run(l->highs);
		if (status == kHighsStatusError ||
		    Highs_getModelStatus(l->highs) != kHighsModelStatusOptimal) {
			ret = -EIO;
			break;
		}
		Highs_getSolution(l->highs, col, NULL, NULL, dual);
		objective = Highs_getObjectiveValue(l->highs) * l->scale;
		for (uint32_t g = 0; g < l->ngroups; g++)
			for (int i = 0; i < ROWS; i++)
				l->price[g][i] = fmax(0, i < TIMES ? dual[row_of(l, g, i)] :
						      -dual[row_of(l, g, i)]);
		l->error_price = fmax(0, -dual[error_row(l)]);
		value = dual_value(l);
		l->bound = fmax(l->bound, value);
		for (uint32_t g = 0; g < l->ngroups; g++)
			for (int i = 0; i < 3; i++)
				shortage[g][i] = col[1 + 3 * g + i];
		if (objective - l->bound <= 1e-9 * objective || round == 200 || plan_now() > deadline)
			break;
		for (uint32_t t = 0; t < p->ntables && !ret; t++) {
			for (uint32_t g = 0; g < l->ngroups && !ret; g++) {
				double least = INFINITY;
				uint32_t at = 0;

				for (uint32_t c = 0; c < p->nchoices[t]; c++) {
					double y = plan_choice_allowed(p, t, c, l->tt) ? priced(l, t, c, g) :
						   INFINITY;

					if (y < least) {
						least = y;
						at = c;
					}
				}
				if (least < dual[t] - 1e-13 && least < l->least[t] + 1e-12) {
					ret = add_x(l, t, at, g);
					added++;
				}
			}
		}
		if (!added)
			break;
	}
	free(dual);
	if (!ret && col) {
		l->dense = calloc(l->first_x, sizeof(*l->dense));
		if (l->dense)
			memcpy(l->dense, col + 1 + 3 * l->ngroups,
			       (l->first_x - 1 - 3 * l->ngroups) * sizeof(*l->dense));
		else
			ret = -ENOMEM;
		*x = calloc(l->ncols + 1, sizeof(**x));
		if (*x)
			memcpy(*x, col + l->first_x, l->ncols * sizeof(**x));
		else
			ret = -ENOMEM;
	}
	free(col);
	return ret;
}

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
			left[d][k] = k < TIMES ? l->bound / l->scale - fixed_time(l, g) : 1;
		if (!s->compute[d])
			continue;
		for (int k = 0; k < TIMES; k++)
			left[d][k] -= dense_time(l, g, m);
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
		column(l, t, s->choice[t], group[t], a);
		best[t] = 0;
		for (int i = 0; i < ROWS; i++)
			best[t] = fmax(best[t], a[i] * (i < TIMES ? 1 : l->size[group[t]]));
	}
	pack_key = best;
	qsort(order, p->ntables, sizeof(*order), by_pack_key);
	for (uint32_t i = 0; i < p->ntables; i++) {
		uint32_t t = order[i], to = UINT32_MAX;
		double most = -INFINITY, a[ROWS];

		column(l, t, s->choice[t], group[t], a);
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

static void keep_better(const struct plan_problem *p, struct plan_solution *best,
			const struct plan_solution *s, const char *name,
			struct plan_certificate *cert)
{
	if (!better(s, best))
		return;
	plan_solution_copy(best, s, p);
	cert->start = name;
}

/* Branch and bound over the choices that can still be in a better plan. */
static int mip(const struct lp *l, struct plan_solution *best, struct plan_solution *s,
	       double seconds, double gap, struct plan_certificate *cert)
{
	const struct plan_problem *p = l->p;
	uint32_t M = p->nops ? p->ndevices : 0, m = 0;
	double limit = best->excess ? INFINITY : best->objective, *x = NULL, bound;
	struct lp full;
	int ret;

	cert->columns = cert->columns_left = 0;
	for (uint32_t t = 0; t < p->ntables; t++) {
		for (uint32_t c = 0; c < p->nchoices[t]; c++) {
			for (uint32_t g = 0; g < l->ngroups; g++) {
				cert->columns++;
				if (plan_choice_allowed(p, t, c, l->tt) &&
				    l->bound + (priced(l, t, c, g) - l->least[t]) * l->scale <= limit)
					cert->columns_left += l->size[g];
			}
		}
	}
	if (cert->columns_left > MIP_COLUMNS)
		return 0;
	ret = lp_open(&full, p, l->tt, false, l->scale);
	/* the memories may not be short here */
	for (uint32_t i = 0; !ret && i < 3 * full.ngroups; i++)
		Highs_changeColBounds(full.highs, 1 + i, 0, 0);
	for (uint32_t i = 0; !ret && i < M + M * full.ngroups; i++)
		Highs_changeColIntegrality(full.highs, 1 + 3 * full.ngroups + i, kHighsVarTypeInteger);
	for (uint32_t t = 0; !ret && t < p->ntables; t++) {
		for (uint32_t c = 0; !ret && c < p->nchoices[t]; c++) {
			for (uint32_t d = 0; !ret && d < p->ndevices; d++) {
				uint32_t g = l->of[d];

				if (!plan_choice_allowed(p, t, c, l->tt) ||
				    l->bound + (priced(l, t, c, g) - l->least[t]) * l->scale > limit)
					continue;
				ret = add_x(&full, t, c, d);
				if (!ret) {
					HighsInt at = full.first_x + full.ncols - 1;

					Highs_changeColBounds(full.highs, at, 0, 1);
					Highs_changeColIntegrality(full.highs, at, kHighsVarTypeInteger);
				}
			}
		}
	}
	if (!ret) {
		HighsInt cols = Highs_getNumCol(full.highs);

		cert->mip_columns = cols;
		x = calloc(cols, sizeof(*x));
		if (!x)
			ret = -ENOMEM;
	}
	if (!ret && !best->excess) {
		x[0] = best->objective / l->scale;
		for (uint32_t d = 0; d < p->ndevices; d++)
			m += best->compute[d];
		if (M && m) {
			x[1 + 3 * full.ngroups + m - 1] = 1;
			for (uint32_t d = 0; d < p->ndevices; d++)
				x[1 + 3 * full.ngroups + M + (m - 1) * full.ngroups + d] = best->compute[d];
		}
		for (uint32_t i = 0; i < full.ncols; i++) {
			const struct col *c = &full.cols[i];

			x[full.first_x + i] = best->choice[c->t] == c->c && best->device[c->t] == c->g;
		}
		Highs_setSolution(full.highs, x, NULL, NULL, NULL);
	}
	if (!ret) {
		Highs_setDoubleOptionValue(full.highs, "time_limit", seconds);
		Highs_setDoubleOptionValue(full.highs, "mip_rel_gap", gap);
		Highs_setDoubleOptionValue(full.highs, "mip_abs_gap", 1e-9);
		Highs_setDoubleOptionValue(full.highs, "mip_feasibility_tolerance", 1e-9);
		Highs_setDoubleOptionValue(full.highs, "primal_feasibility_tolerance", 1e-9);
		if (Highs_run(full.highs) == kHighsStatusError)
			ret = -EIO;
	}
	if (!ret) {
		HighsInt status = Highs_getModelStatus(full.highs), valid = 0;

		Highs_getIntInfoValue(full.highs, "primal_solution_status", &valid);
		if (Highs_getDoubleInfoValue(full.highs, "mip_dual_bound", &bound) == kHighsStatusOk &&
		    isfinite(bound)) {
			/* what was left out cannot be below limit */
			bound = fmin(bound * l->scale, limit);
			cert->bound = fmax(cert->bound, bound);
		}
		if (status == kHighsModelStatusInfeasible && best->excess)
			ret = -ENOSPC;
		if (valid == 2 && Highs_getSolution(full.highs, x, NULL, NULL, NULL) ==
		    kHighsStatusOk) {
			for (uint32_t i = 0; i < full.ncols; i++) {
				if (x[full.first_x + i] < 0.5)
					continue;
				s->choice[full.cols[i].t] = full.cols[i].c;
				s->device[full.cols[i].t] = full.cols[i].g;
			}
			memset(s->compute, 0, p->ndevices * sizeof(*s->compute));
			for (uint32_t k = 0; k < M; k++)
				for (uint32_t d = 0; d < p->ndevices; d++)
					s->compute[d] |= x[1 + 3 * full.ngroups + M + k * full.ngroups + d] > 0.5;
			plan_evaluate(p, s);
			keep_better(p, best, s, "branch and bound", cert);
		}
	}
	free(x);
	lp_free(&full);
	return ret;
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
	double least = INFINITY, rest = dual_value(l) / l->scale, cheapest = INFINITY;

	if (!l->p->nops)
		return 0;
	for (uint32_t m = 1; m <= l->p->ndevices; m++)
		cheapest = fmin(cheapest, priced_dense(l, m));
	for (uint32_t m = 1; m <= l->p->ndevices; m++) {
		double part = INFINITY;

		for (uint32_t g = 0; g < l->ngroups; g++)
			if (l->p->devices[l->rep[g]].config != PLAN_MEMORY)
				part = fmin(part, fixed_time(l, g) + dense_time(l, g, m));
		least = fmin(least, fmax(rest - cheapest + priced_dense(l, m), part));
	}
	return isfinite(least) ? least * l->scale : 0;
}

static int core(const struct plan_problem *p, const struct plan_options *o, bool tt,
		struct plan_solution *best, struct plan_certificate *cert, struct csm_err *err)
{
	double began = plan_now(), shortage[MAX_GROUPS][3], *x = NULL;
	struct plan_solution s;
	struct lp l;
	int ret = plan_solution_init(&s, p, err);

	if (ret)
		return ret;
	plan_solution_copy(&s, best, p);
	plan_search(p, &s, tt, began + o->time_limit / 8);
	keep_better(p, best, &s, "search from a baseline", cert);
	ret = lp_open(&l, p, tt, true, best->objective > 0 ? best->objective : 1e-3);
	if (!ret)
		ret = lp_solve(&l, best, began + o->time_limit / 2, &x, shortage);
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

				column(&l, t, c, g, a);
				least = fmin(least, (fmax(a[TIME_WARM], fmax(a[TIME_READS], a[TIME_BYTES])) +
						     fixed_time(&l, g)) * l.scale);
			}
		cert->bound = fmax(cert->bound, least);
	}
	cert->bound = fmax(cert->bound, dense_bound(&l));
	for (uint32_t i = 0; i < 2 * (p->nops ? p->ndevices : 1); i++) {
		if (!best->excess && best->objective - cert->bound <= o->gap * best->objective)
			break;
		round_lp(&l, x, p->nops ? i / 2 + 1 : 0, i % 2, &s);
		plan_search(p, &s, tt, began + o->time_limit * 3 / 4);
		keep_better(p, best, &s, "linear program, rounded and improved", cert);
	}
	if (best->excess || best->objective - cert->bound > o->gap * best->objective)
		ret = mip(&l, best, &s, fmax(0.1, began + o->time_limit - plan_now()), o->gap, cert);
	if (ret && ret != -ENOSPC)
		ret = csm_fail(err, ret, "HiGHS could not solve the program");
	else if (best->excess)
		ret = infeasible(&l, shortage, err);
	else
		ret = 0;
out:
	cert->seconds = plan_now() - began;
	free(x);
	lp_free(&l);
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
			keep_better(p, best, &s, plan_solver_names[b], cert);
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
				keep_better(p, best, &s, "recshard", cert);
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
