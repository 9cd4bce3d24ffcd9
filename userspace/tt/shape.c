// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "tt.h"

uint64_t tt_core_len(const struct tt_shape *s, uint32_t k)
{
	return (uint64_t)s->p[k] * s->r[k] * s->q[k] * s->r[k + 1];
}

uint64_t tt_bytes(const struct tt_shape *s)
{
	uint64_t n = 0;

	for (uint32_t k = 0; k < s->d; k++)
		n += tt_core_len(s, k);
	return n * sizeof(float);
}

uint32_t tt_dim(const struct tt_shape *s)
{
	uint32_t dim = 1;

	for (uint32_t k = 0; k < s->d && k < TT_MAX; k++)
		dim *= s->q[k];
	return dim;
}

void tt_free(float **cores)
{
	for (int k = 0; k < TT_MAX; k++) {
		free(cores[k]);
		cores[k] = NULL;
	}
}

/* p and q, without ranks */
static int check_digits(const struct tt_shape *s, uint64_t nrows, uint32_t dim, struct csm_err *err)
{
	uint64_t p = 1, q = 1;

	if (s->d < 2 || s->d > TT_MAX)
		return csm_fail(err, -EINVAL, "%u cores: there may be 2 to %d", s->d, TT_MAX);
	if (!nrows)
		return csm_fail(err, -EINVAL, "a table without rows has no TT form");
	for (uint32_t k = 0; k < s->d; k++) {
		if (!s->p[k] || !s->q[k])
			return csm_fail(err, -EINVAL, "core %u: p and q must not be 0", k);
		p *= s->p[k];		/* below 2^32 times below 2^32 */
		q *= s->q[k];
		if (p > UINT32_MAX)
			return csm_fail(err, -EINVAL, "the product of p must be below 2^32");
		if (q > TT_DIM_MAX)
			return csm_fail(err, -EINVAL, "the product of q may be %d at most", TT_DIM_MAX);
	}
	if (p < nrows)
		return csm_fail(err, -EINVAL, "the product of p, %llu, is less than the %llu rows",
				(unsigned long long)p, (unsigned long long)nrows);
	if (q != dim)
		return csm_fail(err, -EINVAL, "the product of q, %llu, is not the dimension, %u",
				(unsigned long long)q, dim);
	return 0;
}

int tt_check(const struct tt_shape *s, uint64_t nrows, uint32_t dim, struct csm_err *err)
{
	int ret = check_digits(s, nrows, dim, err);

	if (ret)
		return ret;
	for (uint32_t k = 0; k <= s->d; k++) {
		if ((k == 0 || k == s->d) && s->r[k] != 1)
			return csm_fail(err, -EINVAL, "the outer ranks are 1, not %u", s->r[k]);
		if (s->r[k] < 1 || s->r[k] > TT_RANK_MAX)
			return csm_fail(err, -EINVAL, "rank r%u is %u: it may be 1 to %d", k,
					s->r[k], TT_RANK_MAX);
	}
	for (uint32_t k = 0; k < s->d; k++) {
		/* at most 2^12 * 2^16 * 2^12 */
		uint64_t slice = (uint64_t)s->r[k] * s->q[k] * s->r[k + 1];

		if (slice > (1ull << 40) / s->p[k])
			return csm_fail(err, -EINVAL, "core %u would have more than 2^40 elements", k);
	}
	return 0;
}

int tt_auto_p(struct tt_shape *s, uint64_t nrows, struct csm_err *err)
{
	uint64_t left = nrows;

	if (s->d < 2 || s->d > TT_MAX)
		return csm_fail(err, -EINVAL, "%u cores: there may be 2 to %d", s->d, TT_MAX);
	if (!nrows || nrows > UINT32_MAX / 2)
		return csm_fail(err, -EINVAL, "%llu rows: there may be 1 to 2^31 - 1",
				(unsigned long long)nrows);
	for (uint32_t k = 0; k < s->d; k++) {
		uint32_t f = ceil(pow(left, 1.0 / (s->d - k)) - 1e-9);

		s->p[k] = k == s->d - 1 ? left : f;
		left = (left + s->p[k] - 1) / s->p[k];
	}
	return 0;
}

/* The factors of dim into n, none below least, with the least sum; 0 if there are none. */
static uint32_t factor(uint32_t dim, uint32_t n, uint32_t least, uint32_t *q)
{
	uint32_t best = 0, rest[TT_MAX];

	if (n == 1) {
		q[0] = dim;
		return dim >= least ? dim : 0;
	}
	for (uint32_t f = least; (uint64_t)f * f <= dim; f++) {
		uint32_t sum = dim % f ? 0 : factor(dim / f, n - 1, f, rest);

		if (!sum || (best && sum + f >= best))
			continue;
		best = sum + f;
		q[0] = f;
		for (uint32_t k = 1; k < n; k++)
			q[k] = rest[k - 1];
	}
	return best;
}

int tt_auto_q(struct tt_shape *s, uint32_t dim, struct csm_err *err)
{
	if (s->d < 2 || s->d > TT_MAX)
		return csm_fail(err, -EINVAL, "%u cores: there may be 2 to %d", s->d, TT_MAX);
	if (!dim || dim > TT_DIM_MAX)
		return csm_fail(err, -EINVAL, "dimension %u: it may be 1 to %d", dim, TT_DIM_MAX);
	factor(dim, s->d, 1, s->q);
	return 0;
}

int tt_shape_auto(struct tt_shape *s, uint32_t d, uint64_t nrows, uint32_t dim, struct csm_err *err)
{
	int ret;

	*s = (struct tt_shape){ .d = d };
	ret = tt_auto_p(s, nrows, err);
	if (!ret)
		ret = tt_auto_q(s, dim, err);
	if (!ret)
		s->r[0] = s->r[d] = 1;
	return ret;
}

uint64_t tt_full_rank(const struct tt_shape *s, uint32_t k)
{
	uint64_t before = 1, after = 1;

	for (uint32_t i = 0; i < s->d; i++)
		*(i < k ? &before : &after) *= (uint64_t)s->p[i] * s->q[i];
	return before < after ? before : after;
}

static void equal_ranks(struct tt_shape *s, uint32_t rank)
{
	s->r[0] = s->r[s->d] = 1;
	for (uint32_t k = 1; k < s->d; k++) {
		uint64_t full = tt_full_rank(s, k);

		s->r[k] = full < rank ? full : rank;
	}
}

int tt_ranks_for_bytes(struct tt_shape *s, uint64_t bytes, uint32_t max_rank, struct csm_err *err)
{
	uint32_t lo = 1, hi = max_rank < TT_RANK_MAX ? max_rank : TT_RANK_MAX;
	int ret = check_digits(s, 1, tt_dim(s), err);

	if (ret)
		return ret;
	equal_ranks(s, 1);
	if (tt_bytes(s) > bytes)
		return csm_fail(err, -ENOSPC, "even cores of rank 1 take %llu bytes, more than %llu",
				(unsigned long long)tt_bytes(s), (unsigned long long)bytes);
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo + 1) / 2;

		equal_ranks(s, mid);
		if (tt_bytes(s) <= bytes)
			lo = mid;
		else
			hi = mid - 1;
	}
	equal_ranks(s, lo);
	return 0;
}
