/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The linear relaxation of the program (lp.c), for solve.c and branch.c. */
#ifndef PLAN_LP_H
#define PLAN_LP_H

#include "plan.h"

enum { TIME_WARM, TIME_READS, TIME_BYTES, CAP_DRAM, CAP_ONCHIP, CAP_NVME, ROWS };
#define TIMES		3
#define MAX_GROUPS	64

struct lp {
	const struct plan_problem *p;
	bool tt;
	double scale;			/* seconds of 1 in the program */
	uint32_t ngroups;
	uint32_t *rep, *size;		/* per group: a device of it, and how many */
	uint32_t *of;			/* group of a device */
	double price[MAX_GROUPS][ROWS];		/* multipliers of rows, none negative */
	double error_price;
	void *highs;
	uint32_t ncols, room;
	struct col { uint32_t t, c, g; } *cols;	/* those of the x, from first_x on */
	uint32_t first_x;
	double bound;			/* in seconds */
	double *least;			/* per table: cost at those prices */
	double *dense;			/* the LP's z, then its y */
};

/* aggregate: equal devices as one group; else each is one. plan_lp_free() in any case. */
int plan_lp_open(struct lp *l, const struct plan_problem *p, bool tt, bool aggregate,
		 double scale);
void plan_lp_free(struct lp *l);
/* Solves the LP over all choices. x gets its solution, [ncols], the caller's. */
int plan_lp_solve(struct lp *l, const struct plan_solution *start, double deadline, double **x,
		  double shortage[MAX_GROUPS][3]);
int plan_lp_add(struct lp *l, uint32_t t, uint32_t c, uint32_t g);

/* Coefficients of x[t][c][g] in the rows of its group, scaled. */
void plan_lp_column(const struct lp *l, uint32_t t, uint32_t c, uint32_t g, double a[ROWS]);
double plan_lp_fixed(const struct lp *l, uint32_t g);
double plan_lp_dense(const struct lp *l, uint32_t g, uint32_t m);
/* What a choice, and the dense part of m devices, costs at the prices. */
double plan_lp_priced(const struct lp *l, uint32_t t, uint32_t c, uint32_t g);
double plan_lp_priced_dense(const struct lp *l, uint32_t m);
/*
 * Solves the program of the columns there are by HiGHS. x: the solution, and if *found one to
 * start from. *bound: in seconds. -ENOSPC: it has no solution.
 */
int plan_lp_mip(struct lp *l, double *x, bool *found, double *bound, double seconds, double gap);
/* Lagrange's dual function at the prices, which it scales: below every plan's time. */
double plan_lp_dual(struct lp *l);

/* solve.c: takes s as *best if it is better. */
void plan_keep_better(const struct plan_problem *p, struct plan_solution *best,
		      const struct plan_solution *s, const char *name,
		      struct plan_certificate *cert);
/*
 * branch.c: the best of the plans that can be better than *best, into which it goes, and a
 * better bound. -ENOSPC: no plan fits.
 */
int plan_branch(struct lp *l, struct plan_solution *best, struct plan_solution *s,
		double seconds, double gap, struct plan_certificate *cert);

#endif
