/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a plan needs of the rows themselves: TT forms to choose from, with their errors, and
 * the overlay, a file with the order of rows and the cores of the forms that were chosen
 * (userspace/model/FORMAT.md). MODEL.md, "TT forms", says how. Errors as in plan.h.
 */
#ifndef PLAN_TIER_H
#define PLAN_TIER_H

#include <stats.h>
#include <tt.h>

#include "plan.h"

/* Statistics of the model's tables in its order; their ids are rows of them. -EBADMSG if not. */
int plan_match_stats(const struct plan_problem *p, const struct csm_stats *s,
		     const struct csm_stats_table **by_table, struct csm_err *err);

/* Fills in every table's tts. After curves are loaded, before plan_prepare(). */
int plan_make_tts(struct plan_problem *p, const struct csm_model *m,
		  const struct csm_stats_table *const *stats, struct csm_err *err);

/* Per table: the form that was decomposed last, of all its rows. */
struct plan_cores {
	int32_t tt;		/* index into tts, -1: none */
	float *core[TT_MAX];
};

struct plan_cores *plan_cores_new(const struct plan_problem *p, struct csm_err *err);
void plan_cores_free(struct plan_cores *c, const struct plan_problem *p);

/*
 * Decomposes the forms that s has, all of their rows, puts their errors into the problem in
 * place of the estimates, and evaluates s anew: s->excess is not 0 if it breaks a bound now.
 */
int plan_measure_tts(struct plan_problem *p, struct plan_solution *s, const struct csm_model *m,
		     const struct csm_stats_table *const *stats, struct plan_cores *cores,
		     struct csm_err *err);

/*
 * Writes the overlay of s, whose forms cores[] has; *crc gets its header's. Not needed if
 * plan_has_split() is false. orders, if not NULL, has an order of all rows for tables that
 * shall not have that of the statistics, NULL for the others.
 */
int plan_write_overlay(const struct plan_problem *p, const struct plan_solution *s,
		       const struct csm_model *m, const struct csm_stats_table *const *stats,
		       const struct plan_cores *cores, uint32_t *const *orders, const char *path,
		       uint32_t *crc, struct csm_err *err);
bool plan_has_split(const struct plan_problem *p, const struct plan_solution *s);

/* Rows of a table by falling accesses, then by id: [nrows], to be freed. */
int plan_order(const struct csm_model *m, uint32_t table, const struct csm_stats_table *st,
	       uint32_t **order, struct csm_err *err);

enum { PLAN_DRAM, PLAN_ONCHIP, PLAN_NVME, PLAN_TIERS };

/* What it takes from one plan to the next. */
struct plan_migration {
	uint64_t rows[PLAN_TIERS][PLAN_TIERS];	/* by tier before and after */
	uint64_t bytes[PLAN_TIERS];		/* to be written to each */
	double accesses[2][PLAN_TIERS];		/* by the new statistics: before, after */
};

/*
 * From old, of the same model on one device, to s. orders[] gets for each split table an order
 * of its rows that has s's tiers, but leaves as many rows as can be where they are; to be freed.
 */
int plan_migrate(const struct plan_problem *p, const struct plan_solution *s,
		 const struct csm_model *m, const struct csm_stats_table *const *stats,
		 const struct plan_cores *cores, const struct csm_placement *old,
		 uint32_t **orders, struct plan_migration *mig, struct csm_err *err);

#endif
