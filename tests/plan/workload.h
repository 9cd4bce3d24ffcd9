/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Problems of the size that users have, made by seed. */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#include "plan.h"

struct workload {
	const char *name;
	uint32_t ntables, dim;
	double rows;		/* each, or mean if spread */
	double pooling;		/* each, or mean if spread */
	bool spread;		/* rows and pooling log-normal over tables */
	int reuse;		/* curve: 0 Zipf 1.05, 1 dlrm_datasets 2021, 2 2022 */
	const uint32_t *bottom, *top;	/* widths, 0 after the last; bottom begins with the input */
	bool dot;
};

extern const struct workload workloads[];	/* name NULL after the last */
const struct workload *workload_find(const char *name);

/* The first ntables tables (0: all) on devices like the SmartSSD, of dram bytes each. Dies
 * without memory. cost must be set. */
void workload_make(struct plan_problem *p, const struct workload *w, uint32_t ntables,
		   uint32_t devices, double dram, uint32_t batch, const struct plan_cost *cost);

/* Adds TT forms to choose from, and gives each device onchip bytes for their cores. Before
 * plan_prepare(). */
void workload_add_tts(struct plan_problem *p, double onchip);

#endif
