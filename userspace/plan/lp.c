// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The linear relaxation: MODEL.md, "Program" and "How it is solved".
 *
 * Equal devices are one group of it, which has no symmetry then. Its columns are made as they
 * are wanted (column generation), so that all points of all curves take part. Its multipliers
 * give the bound by Lagrange's dual function, which needs no trust in the LP solver's
 * tolerances.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <interfaces/highs_c_api.h>	/* it defines variables: here only */

#include "lp.h"

#define SHORT_PRICE	1e3	/* of a memory's whole size, in times of the scale */

static double error_cap(const struct plan_problem *p)
{
	return p->tt_error > 0 ? p->tt_error * p->tt_error : 1;
}

/* Coefficients of x[t][c][g] in the rows of its group, scaled. */
void plan_lp_column(const struct lp *l, uint32_t t, uint32_t c, uint32_t g, double a[ROWS])
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

double plan_lp_fixed(const struct lp *l, uint32_t g)
{
	double f[PLAN_FEATURES], x = l->p->cost.submit;

	plan_features_copy(0, f);
	if (l->p->ndevices > 1)
		x += plan_cycles(&l->p->cost, PLAN_COPY_OUT, f);
	return x / l->p->devices[l->rep[g]].clock_hz / l->scale;
}

double plan_lp_dense(const struct lp *l, uint32_t g, uint32_t m)
{
	return l->p->dense_cycles[m] / l->p->devices[l->rep[g]].clock_hz / l->scale;
}

double plan_lp_priced(const struct lp *l, uint32_t t, uint32_t c, uint32_t g)
{
	double a[ROWS], sum = l->error_price * l->p->choices[t][c].error / error_cap(l->p);

	plan_lp_column(l, t, c, g, a);
	for (int i = 0; i < ROWS; i++)
		sum += l->price[g][i] * a[i];
	return sum;
}

static double time_price(const struct lp *l, uint32_t g)
{
	return l->price[g][0] + l->price[g][1] + l->price[g][2];
}

/* What the dense part costs at these prices when m devices share it, cheapest ones first. */
double plan_lp_priced_dense(const struct lp *l, uint32_t m)
{
	double cost[MAX_GROUPS], sum = 0;
	uint32_t left[MAX_GROUPS];

	for (uint32_t g = 0; g < l->ngroups; g++) {
		const struct plan_device *v = &l->p->devices[l->rep[g]];

		cost[g] = time_price(l, g) * plan_lp_dense(l, g, m) + l->price[g][CAP_DRAM] *
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

/* Rows: tables, then ROWS a group, the error, then 1 + M of the dense part, then configs. */
static uint32_t row_of(const struct lp *l, uint32_t g, int i)
{
	return l->p->ntables + g * ROWS + i;
}

static uint32_t error_row(const struct lp *l)
{
	return l->p->ntables + l->ngroups * ROWS;
}

static void take_prices(struct lp *l, const double *dual)
{
	for (uint32_t g = 0; g < l->ngroups; g++)
		for (int i = 0; i < ROWS; i++)
			l->price[g][i] = fmax(0, i < TIMES ? dual[row_of(l, g, i)] :
					      -dual[row_of(l, g, i)]);
	l->error_price = fmax(0, -dual[error_row(l)]);
}

double plan_lp_dual(struct lp *l)
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
		sum += l->size[g] * time_price(l, g) * plan_lp_fixed(l, g);
	}
	for (uint32_t t = 0; t < p->ntables; t++) {
		l->least[t] = INFINITY;
		for (uint32_t g = 0; g < l->ngroups; g++)
			for (uint32_t c = 0; c < p->nchoices[t]; c++)
				if (plan_choice_allowed(p, t, c, l->tt))
					l->least[t] = fmin(l->least[t], plan_lp_priced(l, t, c, g));
		sum += l->least[t];
	}
	for (uint32_t m = 1; m <= p->ndevices && p->nops; m++)
		dense = fmin(dense, plan_lp_priced_dense(l, m));
	return (p->nops ? sum + dense : sum) * l->scale;
}

static int add_col(struct lp *l, double cost, double ub, uint32_t n, const HighsInt *index,
		   const double *value)
{
	const HighsInt start = 0;

	return Highs_addCols(l->highs, 1, &cost, &(double){ 0 }, &ub, n, &start, index, value) ==
	       kHighsStatusError;
}

int plan_lp_add(struct lp *l, uint32_t t, uint32_t c, uint32_t g)
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
	plan_lp_column(l, t, c, g, a);
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
			bad |= Highs_addRow(l->highs, l->size[g] * plan_lp_fixed(l, g), inf, 0, NULL, NULL) ==
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
				value[n++] = -plan_lp_dense(l, g, m);
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

void plan_lp_free(struct lp *l)
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

int plan_lp_open(struct lp *l, const struct plan_problem *p, bool tt, bool aggregate,
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
int plan_lp_mip(struct lp *l, double *x, bool *found, double *bound, double seconds, double gap)
{
	HighsInt valid = 0, cols = Highs_getNumCol(l->highs);
	void *h = l->highs;

	/* the memories may not be short here */
	for (uint32_t i = 0; i < 3 * l->ngroups; i++)
		Highs_changeColBounds(h, 1 + i, 0, 0);
	for (HighsInt i = 1 + 3 * l->ngroups; i < cols; i++) {
		Highs_changeColIntegrality(h, i, kHighsVarTypeInteger);
		if (i >= (HighsInt)l->first_x)
			Highs_changeColBounds(h, i, 0, 1);
	}
	if (*found)
		Highs_setSolution(h, x, NULL, NULL, NULL);
	Highs_setDoubleOptionValue(h, "time_limit", seconds);
	Highs_setDoubleOptionValue(h, "mip_rel_gap", gap);
	Highs_setDoubleOptionValue(h, "mip_abs_gap", 1e-9);
	Highs_setDoubleOptionValue(h, "mip_feasibility_tolerance", 1e-9);
	Highs_setDoubleOptionValue(h, "primal_feasibility_tolerance", 1e-9);
	if (Highs_run(h) == kHighsStatusError)
		return -EIO;
	Highs_getIntInfoValue(h, "primal_solution_status", &valid);
	if (Highs_getDoubleInfoValue(h, "mip_dual_bound", bound) != kHighsStatusOk ||
	    !isfinite(*bound))
		*bound = 0;
	*bound *= l->scale;
	*found = valid == kHighsSolutionStatusFeasible &&
		 Highs_getSolution(h, x, NULL, NULL, NULL) == kHighsStatusOk;
	return Highs_getModelStatus(h) == kHighsModelStatusInfeasible ? -ENOSPC : 0;
}

int plan_lp_solve(struct lp *l, const struct plan_solution *start, double deadline, double **x,
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
					ret = plan_lp_add(l, t, c, g);
			}
		}
		if (!ret && start && !same_col(l, t, start->choice[t], l->of[start->device[t]]))
			ret = plan_lp_add(l, t, start->choice[t], l->of[start->device[t]]);
	}
	for (int round = 0; !ret; round++) {
		HighsInt rows = Highs_getNumRow(l->highs), cols = Highs_getNumCol(l->highs);
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
		if (Highs_run(l->highs) == kHighsStatusError ||
		    Highs_getModelStatus(l->highs) != kHighsModelStatusOptimal) {
			ret = -EIO;
			break;
		}
		Highs_getSolution(l->highs, col, NULL, NULL, dual);
		take_prices(l, dual);
		objective = Highs_getObjectiveValue(l->highs) * l->scale;
		value = plan_lp_dual(l);
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
					double y = plan_choice_allowed(p, t, c, l->tt) ? plan_lp_priced(l, t, c, g) :
						   INFINITY;

					if (y < least) {
						least = y;
						at = c;
					}
				}
				if (least < dual[t] - 1e-13 && least < l->least[t] + 1e-12) {
					ret = plan_lp_add(l, t, at, g);
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
