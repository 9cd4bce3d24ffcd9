// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows out of cores: one after another, in bags, and against the table they stand for. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tt.h"

#define CHUNK	8192			/* ids whose rows are held at a time */

/* Products of leading slices, kept for rows with the same leading digits */
struct walk {
	const struct tt_shape *s;
	const float *const *cores;
	uint64_t id;			/* of the last row */
	int known;
	uint64_t below[TT_MAX];		/* product of later p */
	uint64_t slice[TT_MAX];		/* elements a digit selects */
	uint32_t rows[TT_MAX];		/* q_0 .. q_k multiplied */
	float *product[TT_MAX];		/* [rows][r_k+1], from core 1 on */
};

/* Clones for wider vectors; a sanitizer cannot start before they are chosen. */
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
#define WIDE __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define WIDE
#endif

/* c[m][n] = a[m][k] b[k][n], w columns of it */
#define COLUMNS(w) \
	for (; j + (w) <= n; j += (w)) { \
		for (size_t i = 0; i < m; i++) { \
			float acc[w] = { 0 }; \
			for (size_t x = 0; x < k; x++) \
				for (int y = 0; y < (w); y++) \
					acc[y] += a[i * k + x] * b[x * n + j + y]; \
			memcpy(c + i * n + j, acc, sizeof(acc)); \
		} \
	}

WIDE static void multiply(size_t m, size_t n, size_t k, const float *restrict a,
			  const float *restrict b, float *restrict c)
{
	size_t j = 0;

	COLUMNS(64)
	COLUMNS(16)
	COLUMNS(4)
	COLUMNS(1)
}

WIDE static void add_row(float *restrict out, const float *restrict row, uint32_t dim, float w)
{
	for (uint32_t j = 0; j < dim; j++)
		out[j] += w * row[j];
}

static int walk_begin(struct walk *w, const struct tt_shape *s, const float *const *cores,
		      struct csm_err *err)
{
	uint64_t below = 1;
	uint32_t rows = 1;

	*w = (struct walk){ .s = s, .cores = cores };
	for (uint32_t k = s->d; k-- > 0; below *= s->p[k]) {
		w->below[k] = below;
		w->slice[k] = (uint64_t)s->r[k] * s->q[k] * s->r[k + 1];
	}
	for (uint32_t k = 0; k < s->d; k++) {
		rows *= s->q[k];
		w->rows[k] = rows;
		if (!k || k == s->d - 1)
			continue;
		w->product[k] = malloc((size_t)rows * s->r[k + 1] * sizeof(float));
		if (!w->product[k])
			return csm_fail(err, -ENOMEM, "out of memory");
	}
	return 0;
}

static void walk_end(struct walk *w)
{
	for (int k = 0; k < TT_MAX; k++)
		free(w->product[k]);
}

static void walk_row(struct walk *w, uint64_t id, float *out)
{
	const struct tt_shape *s = w->s;
	const float *left = w->cores[0] + id / w->below[0] * w->slice[0];

	for (uint32_t k = 1; k < s->d; k++) {
		const float *right = w->cores[k] + id / w->below[k] % s->p[k] * w->slice[k];
		float *to = k == s->d - 1 ? out : w->product[k];

		if (to == out || !w->known || id / w->below[k] != w->id / w->below[k])
			multiply(w->rows[k - 1], (size_t)s->q[k] * s->r[k + 1], s->r[k], left, right, to);
		left = to;
	}
	w->id = id;
	w->known = 1;
}

int tt_rows(const struct tt_shape *s, const float *const *cores, uint64_t first, uint64_t n,
	    float *out, struct csm_err *err)
{
	int ret = tt_check(s, first + n, tt_dim(s), err);
	struct walk w;

	if (ret)
		return ret;
	ret = walk_begin(&w, s, cores, err);
	for (uint64_t i = 0; !ret && i < n; i++)
		walk_row(&w, first + i, out + i * tt_dim(s));
	walk_end(&w);
	return ret;
}

int tt_measure(const struct tt_shape *s, const float *const *cores, const float *rows,
	       uint64_t nrows, const float *weight, float *row_error, struct tt_error *e,
	       struct csm_err *err)
{
	int ret = tt_check(s, nrows, tt_dim(s), err);
	double all = 0, diff = 0, wall = 0, wdiff = 0, sum = 0;
	struct walk w;
	float *row;

	if (ret)
		return ret;
	*e = (struct tt_error){ 0 };
	row = malloc(tt_dim(s) * sizeof(*row));
	ret = walk_begin(&w, s, cores, err);
	if (!row)
		ret = csm_fail(err, -ENOMEM, "out of memory");
	for (uint64_t i = 0; !ret && i < nrows; i++) {
		double n2 = 0, d2 = 0, f = weight ? weight[i] : 1;
		uint32_t dim = tt_dim(s);

		walk_row(&w, i, row);
		for (uint32_t j = 0; j < dim; j++) {
			double x = rows[i * dim + j], y = x - row[j];

			n2 += x * x;
			d2 += y * y;
		}
		all += n2;
		diff += d2;
		wall += f * n2;
		wdiff += f * d2;
		sum += sqrt(d2);
		if (sqrt(d2) > e->worst_row) {
			e->worst_row = sqrt(d2);
			e->worst = i;
		}
		if (row_error)
			row_error[i] = sqrt(d2);
	}
	walk_end(&w);
	free(row);
	if (ret)
		return ret;
	e->norm = sqrt(all);
	e->relative = all > 0 ? sqrt(diff / all) : 0;
	e->weighted = wall > 0 ? sqrt(wdiff / wall) : 0;
	e->mean_row = sum / nrows;
	return 0;
}

static int by_id(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* row[x]: where in rows the row of ids[x] is, for n ids */
static void rebuild(struct walk *w, const uint32_t *ids, uint32_t n, uint64_t *sorted,
		    uint32_t *where, float *rows)
{
	uint32_t dim = tt_dim(w->s), found = 0;

	for (uint32_t x = 0; x < n; x++)
		sorted[x] = (uint64_t)ids[x] << 32 | x;
	qsort(sorted, n, sizeof(*sorted), by_id);
	for (uint32_t x = 0; x < n; x++) {
		if (!x || sorted[x] >> 32 != sorted[x - 1] >> 32)
			walk_row(w, sorted[x] >> 32, rows + (size_t)dim * found++);
		where[(uint32_t)sorted[x]] = found - 1;
	}
}

int tt_embedding_bag(const struct tt_shape *s, const float *const *cores, uint64_t nrows,
		     const uint32_t *ids, const uint32_t *offsets, uint32_t nbags,
		     const float *weights, float *out, struct csm_err *err)
{
	int ret = tt_check(s, nrows, tt_dim(s), err);
	uint32_t dim, n, bag = 0, room, *where;
	uint64_t *sorted;
	struct walk w;
	float *rows;

	if (ret)
		return ret;
	if (offsets[0])
		return csm_fail(err, -EINVAL, "the first offset is %u, not 0", offsets[0]);
	for (uint32_t b = 0; b < nbags; b++)
		if (offsets[b + 1] < offsets[b])
			return csm_fail(err, -EINVAL, "bag %u ends at %u, before its start %u", b,
					offsets[b + 1], offsets[b]);
	n = offsets[nbags];
	for (uint32_t x = 0; x < n; x++)
		if (ids[x] >= nrows)
			return csm_fail(err, -ERANGE, "id %u at position %u: there are %llu rows",
					ids[x], x, (unsigned long long)nrows);
	dim = tt_dim(s);
	room = n < CHUNK ? n + 1 : CHUNK;
	where = malloc(room * sizeof(*where));
	sorted = malloc(room * sizeof(*sorted));
	rows = malloc((size_t)room * dim * sizeof(*rows));
	ret = walk_begin(&w, s, cores, err);
	if (!where || !sorted || !rows)
		ret = csm_fail(err, -ENOMEM, "out of memory");
	if (ret)
		goto out;
	memset(out, 0, (size_t)nbags * dim * sizeof(*out));
	for (uint32_t from = 0; from < n; from += room) {
		uint32_t len = n - from < room ? n - from : room;

		rebuild(&w, ids + from, len, sorted, where, rows);
		for (uint32_t x = 0; x < len; x++) {
			while (offsets[bag + 1] <= from + x)
				bag++;
			add_row(out + (size_t)bag * dim, rows + (size_t)where[x] * dim, dim,
				weights ? weights[from + x] : 1);
		}
	}
out:
	walk_end(&w);
	free(where);
	free(sorted);
	free(rows);
	return ret;
}
