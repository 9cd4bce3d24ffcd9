// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * TT-SVD. Step k has the matrix M[(a, i_k, j_k)][(other row digits, other column digits)], a
 * being the rank index from the step before, and finds M = U C: U is core k, C the
 * next step's matrix after its indices are read anew. M is never laid out as a whole: blocks of it
 * are gathered from the table or from C.
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <cblas.h>
#include <lapacke.h>

#include "tt.h"

#define EXACT		1024		/* largest Gram matrix */
#define OVERSAMPLE	16
#define POWER		2
#define BLOCK		(1u << 22)	/* doubles gathered at a time */

/* Singular values this small against the largest are rounding of fp32 rows. */
#define TINY		1e-8

struct unfold {
	const float *rows;		/* the table, in step 0 */
	const double *c;		/* [lead][p * rest][q * qrest], in others */
	uint64_t nrows;			/* of the table; zeros beyond */
	const double *scale_p;		/* [p] and [rest]: what rows are multiplied by, or NULL */
	const double *scale_rest;
	uint64_t lead, p, q, rest, qrest;
	uint64_t m, n;			/* rows, columns */
	double norm2;			/* sum of squares */
};

/* What a step found: M = ut^T c, r rows each */
struct cut {
	double *ut;			/* [r][m] */
	double *c;			/* [r][n] */
	uint64_t r;
	double lost;			/* sum of squares */
};

/* How many ranks a step may keep: fixed, or as few as lose no more than lose */
struct want {
	uint64_t rank;			/* at most */
	double lose;			/* negative: fixed */
};

static void *array(uint64_t a, uint64_t b)
{
	size_t n;

	if (__builtin_mul_overflow(a, b, &n) || n > SIZE_MAX / sizeof(double))
		return NULL;
	return calloc(n ? n : 1, sizeof(double));
}

/* Rows r0 .. r1 - 1 of M, and columns of rest digits t0 .. t1 - 1 */
static void gather(const struct unfold *u, uint64_t r0, uint64_t r1, uint64_t t0, uint64_t t1,
		   double *out)
{
	uint64_t dim = u->q * u->qrest, n = u->qrest;

	for (uint64_t row = r0; row < r1; row++) {
		uint64_t j = row % u->q, ai = row / u->q;

		for (uint64_t t = t0; t < t1; t++, out += n) {
			uint64_t src = ai * u->rest + t, at = src * dim + j * n;

			if (u->c) {
				memcpy(out, u->c + at, n * sizeof(*out));
			} else if (src >= u->nrows) {
				memset(out, 0, n * sizeof(*out));
			} else {
				double f = u->scale_p ? u->scale_p[ai] * u->scale_rest[t] : 1;

				for (uint64_t x = 0; x < n; x++)
					out[x] = f * u->rows[at + x];
			}
		}
	}
}

static uint64_t rows_at_once(const struct unfold *u)
{
	uint64_t n = BLOCK / u->n;

	return !n ? 1 : n < u->m ? n : u->m;
}

static uint64_t rest_at_once(const struct unfold *u)
{
	uint64_t n = BLOCK / (u->m * u->qrest);

	return !n ? 1 : n < u->rest ? n : u->rest;
}

/* Eigenvectors of g[n][n], lower triangle: vector k at g + k * n, both ascending by value. */
static int eigen(double *g, uint64_t n, double *value, struct csm_err *err)
{
	/* a row-major lower triangle is a column-major upper one */
	int info = LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'V', 'U', n, g, n, value);

	if (info == LAPACK_WORK_MEMORY_ERROR)
		return csm_fail(err, -ENOMEM, "out of memory");
	if (info)
		return csm_fail(err, -EIO, "LAPACK dsyevd: %d", info);
	for (uint64_t k = 0; k < n; k++)
		if (value[k] < 0)
			value[k] = 0;
	return 0;
}

/* How many of n ascending squared singular values are kept; *lost of total is not. */
static uint64_t choose(const double *value, uint64_t n, double total, const struct want *want,
		       double *lost)
{
	double kept = 0, sum = 0;
	uint64_t r = 0;

	for (uint64_t k = 0; k < n; k++)
		sum += value[k];
	/* those not among the n are lost at any rate */
	double outside = total > sum * (1 + 1e-13) ? total - sum : 0;

	while (r < n && r < want->rank) {
		if (want->lose >= 0 && r && outside + (sum - kept) <= want->lose)
			break;
		kept += value[n - 1 - r++];
	}
	/* small ones first, or the difference of large sums is all rounding */
	*lost = outside;
	for (uint64_t k = 0; k + r < n; k++)
		*lost += value[k];
	return r;
}

static int alloc_cut(struct cut *cut, const struct unfold *u, struct csm_err *err)
{
	cut->ut = array(cut->r, u->m);
	cut->c = array(cut->r, u->n);
	return cut->ut && cut->c ? 0 : csm_fail(err, -ENOMEM, "out of memory");
}

/* By eigenvectors of M M^T, columns in blocks */
static int cut_rows(const struct unfold *u, const struct want *want, double *g, double *value,
		    double *buf, struct cut *cut, struct csm_err *err)
{
	uint64_t step = rest_at_once(u);
	int ret;

	for (uint64_t t = 0; t < u->rest; t += step) {
		uint64_t end = t + step < u->rest ? t + step : u->rest, w = (end - t) * u->qrest;

		gather(u, 0, u->m, t, end, buf);
		cblas_dsyrk(CblasRowMajor, CblasLower, CblasNoTrans, u->m, w, 1, buf, w, 1, g, u->m);
	}
	ret = eigen(g, u->m, value, err);
	if (ret)
		return ret;
	cut->r = choose(value, u->m, 0, want, &cut->lost);
	ret = alloc_cut(cut, u, err);
	if (ret)
		return ret;
	for (uint64_t k = 0; k < cut->r; k++)
		memcpy(cut->ut + k * u->m, g + (u->m - 1 - k) * u->m, u->m * sizeof(double));
	for (uint64_t t = 0; t < u->rest; t += step) {
		uint64_t end = t + step < u->rest ? t + step : u->rest, w = (end - t) * u->qrest;

		gather(u, 0, u->m, t, end, buf);
		cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, cut->r, w, u->m, 1, cut->ut,
			    u->m, buf, w, 0, cut->c + t * u->qrest, u->n);
	}
	return 0;
}

/* By eigenvectors of M^T M, rows in blocks: U = M V / s, C = s V^T */
static int cut_columns(const struct unfold *u, const struct want *want, double *g, double *value,
		       double *buf, struct cut *cut, struct csm_err *err)
{
	uint64_t step = rows_at_once(u);
	int ret;

	for (uint64_t row = 0; row < u->m; row += step) {
		uint64_t end = row + step < u->m ? row + step : u->m;

		gather(u, row, end, 0, u->rest, buf);
		cblas_dsyrk(CblasRowMajor, CblasLower, CblasTrans, u->n, end - row, 1, buf, u->n, 1,
			    g, u->n);
	}
	ret = eigen(g, u->n, value, err);
	if (ret)
		return ret;
	cut->r = choose(value, u->n, 0, want, &cut->lost);
	ret = alloc_cut(cut, u, err);
	if (ret)
		return ret;
	for (uint64_t k = 0; k < cut->r; k++)
		memcpy(cut->c + k * u->n, g + (u->n - 1 - k) * u->n, u->n * sizeof(double));
	for (uint64_t row = 0; row < u->m; row += step) {
		uint64_t end = row + step < u->m ? row + step : u->m;

		gather(u, row, end, 0, u->rest, buf);
		cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, cut->r, end - row, u->n, 1,
			    cut->c, u->n, buf, u->n, 0, cut->ut + row, u->m);
	}
	for (uint64_t k = 0; k < cut->r; k++) {
		double s = sqrt(value[u->n - 1 - k]);
		/* noise has no direction: such a pair is left out */
		double f = s > TINY * sqrt(value[u->n - 1]) ? 1 / s : 0;

		cblas_dscal(u->m, f, cut->ut + k * u->m, 1);
		cblas_dscal(u->n, f ? s : 0, cut->c + k * u->n, 1);
	}
	return 0;
}

/* +1 or -1, by the number of a matrix element */
static double sign(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return (x ^ x >> 31) & 1 ? 1 : -1;
}

/* Makes the l rows of y[l][m] orthonormal. */
static int orthonormal(double *y, uint64_t l, uint64_t m, double *tau, struct csm_err *err)
{
	int info = LAPACKE_dgeqrf(LAPACK_COL_MAJOR, m, l, y, m, tau);

	if (!info)
		info = LAPACKE_dorgqr(LAPACK_COL_MAJOR, m, l, l, y, m, tau);
	if (info == LAPACK_WORK_MEMORY_ERROR || info == LAPACK_TRANSPOSE_MEMORY_ERROR)
		return csm_fail(err, -ENOMEM, "out of memory");
	return info ? csm_fail(err, -EIO, "LAPACK dgeqrf: %d", info) : 0;
}

/*
 * Randomized: q[l][m] spans most of what M's columns do, found from l random sums of them and two
 * rounds of M M^T; then the exact way for q M, which has l rows.
 */
static int cut_random(const struct unfold *u, const struct want *want, uint64_t l,
		      struct cut *cut, struct csm_err *err)
{
	uint64_t step = rest_at_once(u), most = step * u->qrest;
	double *q = array(l, u->m), *y = array(l, u->m), *z = array(l, most), *c = array(l, u->n);
	double *g = array(l, l), *value = array(l, 1), *tau = array(l, 1), *buf = array(u->m, most);
	int ret = csm_fail(err, -ENOMEM, "out of memory");

	if (!q || !y || !z || !c || !g || !value || !tau || !buf)
		goto out;
	for (int round = 0; round <= POWER; round++) {
		memset(y, 0, l * u->m * sizeof(*y));
		for (uint64_t t = 0; t < u->rest; t += step) {
			uint64_t end = t + step < u->rest ? t + step : u->rest;
			uint64_t w = (end - t) * u->qrest;

			gather(u, 0, u->m, t, end, buf);
			if (round) {
				cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, l, w, u->m, 1,
					    q, u->m, buf, w, 0, z, w);
			} else {
				for (uint64_t k = 0; k < l; k++)
					for (uint64_t x = 0; x < w; x++)
						z[k * w + x] = sign(k * u->n + t * u->qrest + x);
			}
			cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, l, u->m, w, 1, z, w,
				    buf, w, 1, y, u->m);
		}
		double *swap = q;

		q = y;
		y = swap;
		ret = orthonormal(q, l, u->m, tau, err);
		if (ret)
			goto out;
	}
	for (uint64_t t = 0; t < u->rest; t += step) {
		uint64_t end = t + step < u->rest ? t + step : u->rest, w = (end - t) * u->qrest;

		gather(u, 0, u->m, t, end, buf);
		cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, l, w, u->m, 1, q, u->m, buf,
			    w, 0, c + t * u->qrest, u->n);
	}
	cblas_dsyrk(CblasRowMajor, CblasLower, CblasNoTrans, l, u->n, 1, c, u->n, 0, g, l);
	ret = eigen(g, l, value, err);
	if (ret)
		goto out;
	cut->r = choose(value, l, u->norm2, want, &cut->lost);
	ret = alloc_cut(cut, u, err);
	if (ret)
		goto out;
	/* vectors lie in ascending order: the last r, from the end */
	for (uint64_t k = 0; k < cut->r; k++) {
		const double *v = g + (l - 1 - k) * l;

		cblas_dgemv(CblasRowMajor, CblasTrans, l, u->m, 1, q, u->m, v, 1, 0,
			    cut->ut + k * u->m, 1);
		cblas_dgemv(CblasRowMajor, CblasTrans, l, u->n, 1, c, u->n, v, 1, 0,
			    cut->c + k * u->n, 1);
	}
out:
	free(q);
	free(y);
	free(z);
	free(c);
	free(g);
	free(value);
	free(tau);
	free(buf);
	return ret;
}

static int cut_step(const struct unfold *u, const struct want *want, struct cut *cut,
		    struct csm_err *err)
{
	uint64_t side = u->m < u->n ? u->m : u->n, l;
	int ret;

	if (side <= EXACT) {
		double *g = array(side, side), *value = array(side, 1);
		double *buf = u->m <= u->n ? array(u->m, rest_at_once(u) * u->qrest) :
					     array(rows_at_once(u), u->n);

		if (!g || !value || !buf)
			ret = csm_fail(err, -ENOMEM, "out of memory");
		else
			ret = (u->m <= u->n ? cut_rows : cut_columns)(u, want, g, value, buf, cut, err);
		free(g);
		free(value);
		free(buf);
		return ret;
	}
	l = want->lose < 0 ? want->rank : 48;
	for (;;) {
		if (l > want->rank)
			l = want->rank;
		l = l + OVERSAMPLE < side ? l + OVERSAMPLE : side;
		ret = cut_random(u, want, l, cut, err);
		if (ret || want->lose < 0 || cut->lost <= want->lose || l >= want->rank)
			return ret;
		free(cut->ut);
		free(cut->c);
		*cut = (struct cut){ 0 };
		l *= 2;
	}
}

/* ut[r][(a, i, j)] to core[i][a][j][.], the ranks from r on zero */
static float *make_core(const struct tt_shape *s, uint32_t k, const struct cut *cut,
			const double *scale)
{
	uint64_t lead = s->r[k], p = s->p[k], q = s->q[k], r = s->r[k + 1];
	float *core = calloc(tt_core_len(s, k), sizeof(*core));

	if (!core)
		return NULL;
	for (uint64_t b = 0; b < cut->r; b++)
		for (uint64_t a = 0; a < lead; a++)
			for (uint64_t i = 0; i < p; i++)
				for (uint64_t j = 0; j < q; j++)
					core[((i * lead + a) * q + j) * r + b] =
						cut->ut[b * lead * p * q + (a * p + i) * q + j] /
						(scale ? scale[i] : 1);
	return core;
}

/*
 * One decomposition, with scale[k][p_k] or without. lose, if not negative, is how much
 * each step may lose of the sum of squares, and s->r then at first the largest ranks.
 */
static int tt_svd(struct tt_shape *s, const float *rows, uint64_t nrows, double *const *scale,
		  double norm2, double lose, float **cores, double *lost, struct csm_err *err)
{
	struct cut cut = { 0 };
	double *c = NULL, *scale_rest = NULL;
	uint64_t rest = 1, qrest = 1;
	int ret = 0;

	*lost = 0;
	for (uint32_t k = 1; k < s->d; k++)
		rest *= s->p[k];
	if (scale[0]) {
		scale_rest = array(rest, 1);
		if (!scale_rest)
			return csm_fail(err, -ENOMEM, "out of memory");
		for (uint64_t t = 0; t < rest; t++) {
			uint64_t left = t;

			scale_rest[t] = 1;
			for (uint32_t k = s->d - 1; k > 0; k--) {
				scale_rest[t] *= scale[k][left % s->p[k]];
				left /= s->p[k];
			}
		}
	}
	qrest = tt_dim(s);
	rest *= s->p[0];
	for (uint32_t k = 0; k + 1 < s->d; k++) {
		struct unfold u = {
			.rows = k ? NULL : rows, .c = c, .nrows = nrows,
			.scale_p = scale[0], .scale_rest = scale_rest,
			.lead = s->r[k], .p = s->p[k], .q = s->q[k],
			.rest = rest / s->p[k], .qrest = qrest / s->q[k], .norm2 = norm2,
		};
		struct want want = { .lose = lose };
		uint64_t side;

		rest = u.rest;
		qrest = u.qrest;
		u.m = u.lead * u.p * u.q;
		u.n = rest * qrest;
		side = u.m < u.n ? u.m : u.n;
		want.rank = s->r[k + 1] < side ? s->r[k + 1] : side;
		cut = (struct cut){ 0 };
		ret = cut_step(&u, &want, &cut, err);
		if (ret)
			break;
		if (lose >= 0) {
			if (cut.lost > lose * (1 + 1e-9)) {
				ret = csm_fail(err, -ERANGE, "the error cannot be kept with ranks up to %u",
					       s->r[k + 1]);
				break;
			}
			s->r[k + 1] = cut.r;
		} else if (cut.r < s->r[k + 1]) {
			/* the next step's matrix has all ranks, the new ones zero */
			double *all = array(s->r[k + 1], u.n);

			if (!all) {
				ret = csm_fail(err, -ENOMEM, "out of memory");
				break;
			}
			memcpy(all, cut.c, cut.r * u.n * sizeof(*all));
			free(cut.c);
			cut.c = all;
		}
		*lost += cut.lost;
		norm2 -= cut.lost;
		cores[k] = make_core(s, k, &cut, scale[k]);
		free(cut.ut);
		cut.ut = NULL;
		free(c);
		c = cut.c;
		cut.c = NULL;
		if (!cores[k]) {
			ret = csm_fail(err, -ENOMEM, "out of memory");
			break;
		}
	}
	if (!ret) {
		/* what is left is the last core, its one right rank as the only "ut" row */
		cut = (struct cut){ .ut = c, .r = 1 };
		cores[s->d - 1] = make_core(s, s->d - 1, &cut, scale[s->d - 1]);
		if (!cores[s->d - 1])
			ret = csm_fail(err, -ENOMEM, "out of memory");
		cut.ut = NULL;
	}
	free(cut.ut);
	free(cut.c);
	free(c);
	free(scale_rest);
	if (ret)
		tt_free(cores);
	return ret;
}

static int check_rows(const float *rows, uint64_t nrows, uint32_t dim, const float *weight,
		      struct csm_err *err)
{
	double sum = 0;

	for (uint64_t i = 0; i < nrows; i++) {
		for (uint32_t j = 0; j < dim; j++)
			if (!isfinite(rows[i * dim + j]))
				return csm_fail(err, -EINVAL, "row %llu, element %u is not finite",
						(unsigned long long)i, j);
		if (!weight)
			continue;
		if (!(weight[i] >= 0) || !isfinite(weight[i]))
			return csm_fail(err, -EINVAL, "the weight of row %llu is %g",
					(unsigned long long)i, weight[i]);
		sum += weight[i];
	}
	return weight && !sum ? csm_fail(err, -EINVAL, "all weights are 0") : 0;
}

/* Square roots of the mean weight of rows with a digit, over that of all rows */
static int make_scale(const struct tt_shape *s, uint64_t nrows, const float *weight,
		      double **scale, struct csm_err *err)
{
	double total = 0;

	for (uint64_t i = 0; i < nrows; i++)
		total += weight[i];
	for (uint32_t k = 0; k < s->d; k++) {
		double *count = array(s->p[k], 1);
		uint64_t below = 1;

		scale[k] = array(s->p[k], 1);
		if (!scale[k] || !count) {
			free(count);
			return csm_fail(err, -ENOMEM, "out of memory");
		}
		for (uint32_t x = k + 1; x < s->d; x++)
			below *= s->p[x];
		for (uint64_t i = 0; i < nrows; i++) {
			scale[k][i / below % s->p[k]] += weight[i];
			count[i / below % s->p[k]]++;
		}
		for (uint32_t x = 0; x < s->p[k]; x++) {
			double mean = count[x] ? scale[k][x] / count[x] / (total / nrows) : 0;

			/* rows of no access still are to come back, if poorly */
			scale[k][x] = sqrt(mean > 1e-4 ? mean : 1e-4);
		}
		free(count);
	}
	return 0;
}

static double norm2_of(const struct tt_shape *s, const float *rows, uint64_t nrows,
		       double *const *scale)
{
	uint32_t dim = tt_dim(s);
	double sum = 0;

	for (uint64_t i = 0; i < nrows; i++) {
		double row = 0, f = 1;
		uint64_t left = i;

		for (uint32_t j = 0; j < dim; j++)
			row += (double)rows[i * dim + j] * rows[i * dim + j];
		for (uint32_t k = s->d; scale[0] && k-- > 0; left /= s->p[k])
			f *= scale[k][left % s->p[k]];
		sum += f * f * row;
	}
	return sum;
}

static void drop_scale(double **scale)
{
	for (int k = 0; k < TT_MAX; k++)
		free(scale[k]);
}

/* One decomposition and its error */
static int attempt(struct tt_shape *s, const float *rows, uint64_t nrows, const float *weight,
		   double *const *scale, double max_error, float **cores, struct tt_error *e,
		   struct csm_err *err)
{
	double norm2 = norm2_of(s, rows, nrows, scale), lost;
	double lose = max_error < 0 ? -1 : max_error * max_error * norm2 / (s->d - 1);
	int ret = tt_svd(s, rows, nrows, scale, norm2, lose, cores, &lost, err);

	if (!ret)
		ret = tt_measure(s, (const float *const *)cores, rows, nrows, weight, NULL, e, err);
	if (ret) {
		tt_free(cores);
		return ret;
	}
	e->bound = norm2 > 0 ? sqrt(lost / norm2) : 0;
	return 0;
}

int tt_decompose(const struct tt_shape *s, const float *rows, uint64_t nrows, const float *weight,
		 float **cores, struct tt_error *e, struct csm_err *err)
{
	double *scale[TT_MAX] = { NULL };
	float *other[TT_MAX] = { NULL };
	struct tt_shape shape = *s;
	struct tt_error e2;
	int ret = tt_check(s, nrows, tt_dim(s), err);

	memset(cores, 0, TT_MAX * sizeof(*cores));
	if (!ret)
		ret = check_rows(rows, nrows, tt_dim(s), weight, err);
	if (!ret)
		ret = attempt(&shape, rows, nrows, weight, scale, -1, other, e, err);
	if (!ret && weight) {
		float *weighted[TT_MAX] = { NULL };

		ret = make_scale(s, nrows, weight, scale, err);
		if (!ret)
			ret = attempt(&shape, rows, nrows, weight, scale, -1, weighted, &e2, err);
		if (!ret && e2.weighted < e->weighted) {
			*e = e2;
			tt_free(other);
			memcpy(other, weighted, sizeof(other));
		} else {
			tt_free(weighted);
		}
	}
	if (ret)
		tt_free(other);
	else
		memcpy(cores, other, sizeof(other));
	drop_scale(scale);
	return ret;
}

int tt_decompose_to(struct tt_shape *s, const float *rows, uint64_t nrows, const float *weight,
		    double max_error, uint32_t max_rank, float **cores, struct tt_error *e,
		    struct csm_err *err)
{
	double *scale[TT_MAX] = { NULL }, target = max_error;
	float *found[TT_MAX] = { NULL };
	struct tt_shape most = *s, shape;
	int ret;

	if (!(max_error > 0 && max_error < 1))
		return csm_fail(err, -EINVAL, "the error to keep is %g, not between 0 and 1", max_error);
	if (!max_rank || max_rank > TT_RANK_MAX)
		return csm_fail(err, -EINVAL, "largest rank %u: it may be 1 to %d", max_rank, TT_RANK_MAX);
	if (s->d <= TT_MAX)
		for (uint32_t k = 0; k <= s->d; k++)
			most.r[k] = k == 0 || k == s->d ? 1 : max_rank;
	ret = tt_check(&most, nrows, tt_dim(s), err);
	if (!ret)
		ret = check_rows(rows, nrows, tt_dim(s), weight, err);
	if (!ret && weight)
		ret = make_scale(s, nrows, weight, scale, err);
	/* what the singular values promise holds but for rounding, and for weights not at all */
	for (int tries = 0; !ret; tries++) {
		shape = most;
		ret = attempt(&shape, rows, nrows, weight, scale, target, found, e, err);
		if (ret || e->weighted <= max_error)
			break;
		tt_free(found);
		if (tries == 8)
			ret = csm_fail(err, -ERANGE, "the error stays %g, above %g", e->weighted,
				       max_error);
		target *= 0.99 * max_error / e->weighted;
	}
	drop_scale(scale);
	if (ret)
		return ret;
	*s = shape;
	memcpy(cores, found, sizeof(found));
	return 0;
}
