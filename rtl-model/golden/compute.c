// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Golden compute library, see csrec_golden.h. Everything here leans on the compiler
 * rounding every operation to binary32 on its own: no contraction, no excess
 * precision, no reassociation. The Makefile's flags say so; the lines below refuse
 * what can be refused at compile time.
 */
#include <float.h>
#include <stdint.h>
#include <string.h>

#include <linux/csrec_hw.h>
#include "csrec_golden.h"

#if FLT_EVAL_METHOD != 0
#error "float expressions must be evaluated in float (on x86: -msse2 -mfpmath=sse)"
#endif
#ifdef __FAST_MATH__
#error "do not build the golden model with -ffast-math"
#endif
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the golden model assumes a little-endian host"
#endif

static uint32_t to_bits(float f)
{
	uint32_t u;

	memcpy(&u, &f, sizeof(u));
	return u;
}

static float to_float(uint32_t u)
{
	float f;

	memcpy(&f, &u, sizeof(f));
	return f;
}

static float canon(float f)
{
	return f != f ? to_float(CSREC_GOLDEN_NAN) : f;
}

static const float *at(const float *base, size_t bytes)
{
	return (const float *)((const char *)base + bytes);
}

bool csrec_golden_env_ok(void)
{
	volatile float tiny = FLT_MIN, half = 0.5f, one = 1.0f, third = 3.0f;
	volatile float sub = tiny * half;	/* zero if flushed */
	volatile float back = sub * 2.0f;	/* zero if subnormal inputs are */
	volatile float up = one / third, down = -one / third;

	return back == tiny && to_bits(up) == 0x3eaaaaab && to_bits(down) == 0xbeaaaaab;
}

float csrec_golden_add(float a, float b)
{
	return canon(a + b);
}

float csrec_golden_mul(float a, float b)
{
	return canon(a * b);
}

float csrec_golden_relu(float x)
{
	return x > 0.0f || x != x ? canon(x) : 0.0f;
}

float csrec_golden_sigmoid(float x)
{
	static const uint32_t coef[] = {
		0x39506967, 0x3ab743ce, 0x3c088908, 0x3d2aa9c1, 0x3e2aaaaa, 0x3f000000,
	};
	const float log2e = to_float(0x3fb8aa3b), magic = to_float(0x4b400000);
	const float ln2_hi = to_float(0x3f318000), ln2_lo = to_float(0xb95e8083);
	float t, m, kf, r, u, p, e, d, y;
	unsigned int k, k1, i;

	if (x != x)
		return canon(x);

	t = to_float(to_bits(x) & 0x7fffffff);
	if (t > 104.0f)
		t = 104.0f;

	m = t * log2e + magic;
	k = to_bits(m) & 0xff;
	kf = m - magic;
	r = (t - kf * ln2_hi) - kf * ln2_lo;
	u = -r;

	p = to_float(coef[0]);
	for (i = 1; i < 6; i++)
		p = p * u + to_float(coef[i]);
	p = p * (u * u);
	p = p + u;
	p = p + 1.0f;

	k1 = k < 100 ? k : 100;
	e = p * to_float((127 - k1) << 23);
	if (k > 100)
		e = e * to_float((127 - (k - 100)) << 23);

	d = 1.0f + e;
	y = to_float(0x7ef311c7 - to_bits(d));
	for (i = 0; i < 2; i++)
		y = y * (2.0f - d * y);
	y = y + y * (1.0f - d * y);

	return to_bits(x) >> 31 ? e * y : y;
}

/*
 * A NaN stays a NaN through every sum and product and never changes a number, so it is
 * enough to make it the canonical one at the end.
 */
float csrec_golden_dot(const float *a, const float *b, size_t n)
{
	float p[8] = { 0 };
	size_t k, j;

	for (k = 0; k + 8 <= n; k += 8)
		for (j = 0; j < 8; j++)
			p[j] += a[k + j] * b[k + j];
	for (j = 0; k + j < n; j++)
		p[j] += a[k + j] * b[k + j];

	return canon(((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7])));
}

void csrec_golden_bag_add(float *sum, const float *row, const float *w, size_t dim)
{
	size_t e;

	if (w) {
		for (e = 0; e < dim; e++)
			sum[e] = canon(sum[e] + *w * row[e]);
	} else {
		for (e = 0; e < dim; e++)
			sum[e] = canon(sum[e] + row[e]);
	}
}

/* c[m][n] = a[m][k] * b[k][n], each element a dot product; k is at most 32 here. */
static void matmul(float *c, const float *a, const float *b, size_t m, size_t k, size_t n)
{
	float col[32];
	size_t i, j, l;

	for (j = 0; j < n; j++) {
		for (l = 0; l < k; l++)
			col[l] = b[l * n + j];
		for (i = 0; i < m; i++)
			c[i * n + j] = csrec_golden_dot(a + i * k, col, k);
	}
}

void csrec_golden_tt_row(float *row, float *tmp, const float *a, const float *b,
			 const float *c, const uint16_t q[3], const uint16_t r[2])
{
	matmul(tmp, a, b, q[0], r[0], (size_t)q[1] * r[1]);
	matmul(row, tmp, c, (size_t)q[0] * q[1], r[1], q[2]);
}

/* A source of rows: EMB's table or TT's cores. Returns the row of this id. */
struct row_source {
	const float *table;
	size_t row_stride;
	const float *const *core;
	const uint32_t *p;
	const uint16_t *q, *r;
};

static const float *fetch_row(const struct row_source *s, uint32_t id, float *row, float *tmp)
{
	uint32_t i0, i1, i2;

	if (s->table)
		return at(s->table, id * s->row_stride);

	i0 = id / ((uint64_t)s->p[1] * s->p[2]);
	i1 = id / s->p[2] % s->p[1];
	i2 = id % s->p[2];
	csrec_golden_tt_row(row, tmp,
			    s->core[0] + (size_t)i0 * s->q[0] * s->r[0],
			    s->core[1] + (size_t)i1 * s->r[0] * s->q[1] * s->r[1],
			    s->core[2] + (size_t)i2 * s->r[1] * s->q[2], s->q, s->r);
	return row;
}

static int run_bags(const struct csrec_golden_bags *b, const struct row_source *s, size_t dim,
		    bool accum, uint64_t *detail)
{
	float sum[256], row[256], tmp[CSREC_GOLDEN_TT_TMP];
	uint64_t used = 0;
	uint32_t bag, j;
	float *out;

	for (bag = 0; bag < b->nbags; bag++) {
		uint32_t from = b->offsets[bag], to = b->offsets[bag + 1];

		if (from > to || to > b->nids) {
			*detail = bag;
			return CSREC_ST_BAD_OFFSETS;
		}
		memset(sum, 0, dim * sizeof(*sum));
		for (j = from; j < to; j++) {
			if (b->ids[j] >= b->nrows) {
				*detail = j;
				return CSREC_ST_BAD_ID;
			}
			csrec_golden_bag_add(sum, fetch_row(s, b->ids[j], row, tmp),
					     b->weights ? b->weights + j : NULL, dim);
		}
		used += to - from;
		out = (float *)((char *)b->out + bag * b->out_stride);
		if (accum)
			csrec_golden_bag_add(out, sum, NULL, dim);
		else
			memcpy(out, sum, dim * sizeof(*sum));
	}
	*detail = used;
	return CSREC_ST_OK;
}

int csrec_golden_emb(const struct csrec_golden_bags *bags, const float *table,
		     size_t row_stride, size_t dim, uint64_t *detail)
{
	const struct row_source s = { .table = table, .row_stride = row_stride };

	return run_bags(bags, &s, dim, false, detail);
}

int csrec_golden_tt(const struct csrec_golden_bags *bags, const float *const core[3],
		    const uint32_t p[3], const uint16_t q[3], const uint16_t r[2],
		    bool accum, uint64_t *detail)
{
	const struct row_source s = { .core = core, .p = p, .q = q, .r = r };

	return run_bags(bags, &s, (size_t)q[0] * q[1] * q[2], accum, detail);
}

size_t csrec_golden_interact_len(int op, bool self, size_t nvec, size_t dim)
{
	if (op == CSREC_INTERACT_CAT)
		return nvec * dim;
	return dim + (self ? nvec * (nvec + 1) / 2 : nvec * (nvec - 1) / 2);
}

void csrec_golden_interact(float *out, const float *in, size_t vec_stride, size_t nvec,
			   size_t dim, int op, bool self)
{
	size_t i, j;

	if (op == CSREC_INTERACT_CAT) {
		for (i = 0; i < nvec; i++)
			memcpy(out + i * dim, at(in, i * vec_stride), dim * sizeof(*out));
		return;
	}

	memcpy(out, in, dim * sizeof(*out));
	out += dim;
	for (i = 0; i < nvec; i++)
		for (j = 0; j < i + self; j++)
			*out++ = csrec_golden_dot(at(in, i * vec_stride),
						  at(in, j * vec_stride), dim);
}

float csrec_golden_neuron(const float *x, const float *w, size_t n, const float *bias, int act)
{
	float y = csrec_golden_dot(x, w, n);

	if (bias)
		y = csrec_golden_add(y, *bias);
	if (act == CSREC_ACT_RELU)
		y = csrec_golden_relu(y);
	else if (act == CSREC_ACT_SIGMOID)
		y = csrec_golden_sigmoid(y);
	return y;
}

void csrec_golden_mlp(const struct csrec_golden_mlp *l)
{
	size_t b, o;

	for (b = 0; b < l->batch; b++) {
		float *y = (float *)((char *)l->y + b * l->y_stride);

		for (o = 0; o < l->out_dim; o++)
			y[o] = csrec_golden_neuron(at(l->x, b * l->x_stride),
						   at(l->w, o * l->w_stride), l->in_dim,
						   l->bias ? l->bias + o : NULL, l->act);
	}
}
