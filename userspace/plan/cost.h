/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Device cycles of a command as a sum of coefficient times feature (MODEL.md, "Cycles").
 * Features follow from what the RTL does for a command; coefficients are fitted to the
 * RTL's cycles (make calibrate) and read from a calibration file.
 */
#ifndef PLAN_COST_H
#define PLAN_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "csm.h"

enum plan_unit { PLAN_EMB, PLAN_TT, PLAN_MLP, PLAN_INTERACT, PLAN_COPY_IN, PLAN_COPY_OUT, PLAN_UNITS };
#define PLAN_FEATURES	7

extern const char *const plan_unit_names[PLAN_UNITS];
/* Names of the unit's features, NULL after the last. */
extern const char *const plan_feature_names[PLAN_UNITS][PLAN_FEATURES + 1];

struct plan_cost {
	double coef[PLAN_UNITS][PLAN_FEATURES];	/* cycles a feature, none negative */
	double mlp_row;		/* cycles to ask for a weight row, beside its beats */
	double submit;		/* cycles of a submission beside those of its commands */
	uint32_t weight_beats;	/* 64-byte beats of weights that MLP keeps */
	char origin[160];	/* what was measured */
};

/* nbags and nids may be fractions: they are what a batch has on average. */
void plan_features_emb(double nbags, double nids, uint32_t dim, double f[PLAN_FEATURES]);
void plan_features_tt(double nbags, double nids, const uint16_t q[3], const uint16_t r[2],
		      double f[PLAN_FEATURES]);
void plan_features_mlp(const struct plan_cost *c, uint32_t batch, uint32_t in, uint32_t out,
		       double f[PLAN_FEATURES]);
void plan_features_interact(uint32_t batch, bool dot, bool self, uint32_t nvec, uint32_t dim,
			    uint32_t vec_step, double f[PLAN_FEATURES]);
void plan_features_copy(double len, double f[PLAN_FEATURES]);
double plan_cycles(const struct plan_cost *c, enum plan_unit u, const double f[PLAN_FEATURES]);

/* The calibration built in, or of a file. -EBADMSG, -ENOENT ... */
int plan_cost_parse(struct plan_cost *c, const char *text, size_t len, const char *name,
		    struct csm_err *err);
int plan_cost_load(struct plan_cost *c, const char *path, struct csm_err *err);

#endif
