/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What readers and generators of traces share. */
#ifndef ST_SOURCE_H
#define ST_SOURCE_H

#include "trace.h"

struct st_source {
	uint32_t ntables;
	char (*names)[17];
	uint64_t *rows;
	uint64_t **ids;			/* [ntables] room for a bag, of max_len ids */
	uint32_t *len;
	uint64_t malformed;
	int (*next)(struct st_source *src, struct csm_err *err);
	double (*progress)(const struct st_source *src);
	void (*close)(struct st_source *src);
	void *priv;			/* close() frees it */
};

/*
 * A source without a reader yet; names are prefix and number from first on. NULL: out of
 * memory, and err says so.
 */
struct st_source *st_source_new(uint32_t ntables, const char *prefix, uint32_t first,
				const uint32_t *max_len, struct csm_err *err);

/* xoshiro256** by Blackman and Vigna (public domain), seeded by splitmix64. */
struct st_rng {
	uint64_t s[4];
};

void st_seed(struct st_rng *r, uint64_t seed, uint64_t stream);
uint64_t st_random(struct st_rng *r);
/* Below n, without bias (Lemire's method). */
uint64_t st_below(struct st_rng *r, uint64_t n);
/* In (0, 1). */
double st_uniform(struct st_rng *r);

#endif
