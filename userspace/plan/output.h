/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PLAN_OUTPUT_H
#define PLAN_OUTPUT_H

#include <jansson.h>

#include "plan.h"

struct plan_result {
	const struct plan_problem *p;
	const struct plan_solution *s;
	const struct plan_certificate *cert;
	const double *baseline;		/* [PLAN_SOLVERS] */
	enum plan_solver solver;
	const char *overlay;		/* name of the file beside the plan, or NULL */
	uint32_t overlay_crc;
};

/* PLAN.json: a placement with more keys. NULL without memory. */
json_t *plan_to_json(const struct plan_result *r);
/* What is said without --json, and of one table. */
void plan_print(const struct plan_result *r, FILE *f);
void plan_explain(const struct plan_result *r, uint32_t t, FILE *f);
/* Drawings without script and network. -EIO ... with *err */
int plan_html(const struct plan_result *r, const char *path, struct csm_err *err);

#endif
