// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of any element type to fp32 and back (FORMAT.md, table records). */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "csm.h"

const char *csm_dtype_name(enum csm_dtype dtype)
{
	static const char *const names[] = { "fp32", "fp16", "int8" };

	return names[dtype];
}

uint64_t csm_row_bytes(enum csm_dtype dtype, uint32_t dim)
{
	return dtype == CSM_FP32 ? dim * 4ull : dtype == CSM_FP16 ? dim * 2ull : dim + 8ull;
}

/*
 * By hand: not every compiler and CPU this builds for has _Float16, and gcc's conversion of
 * double to it may round twice.
 */
uint16_t csm_to_half(float x)
{
	uint32_t u, man, sign, half, rest;
	int exp;

	memcpy(&u, &x, 4);
	sign = u >> 16 & 0x8000;
	exp = (int)(u >> 23 & 0xff) - 127;
	man = u & 0x7fffff;
	if (exp == 128)			/* NaNs stay NaNs */
		return sign | 0x7c00 | (man ? 0x200 | man >> 13 : 0);
	if (exp < -25)			/* below half of the least subnormal */
		return sign;
	if (exp < -14) {		/* subnormal: units of 2^-24 */
		int shift = -exp - 1;	/* 14 .. 24 */

		man |= 0x800000;
		half = man >> shift;
		rest = man & ((1u << shift) - 1);
		return sign | (half + (rest > 1u << (shift - 1) ||
				       (rest == 1u << (shift - 1) && half & 1)));
	}
	if (exp > 15)
		return sign | 0x7c00;
	half = (uint32_t)(exp + 15) << 10 | man >> 13;
	rest = man & 0x1fff;
	/* a carry runs into the exponent, and at its end gives infinity: both are right */
	return sign | (half + (rest > 0x1000 || (rest == 0x1000 && half & 1)));
}

float csm_from_half(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, exp = h >> 10 & 31, man = h & 0x3ff, u;
	float x;

	if (!exp) {
		x = ldexpf((float)man, -24);
		return sign ? -x : x;
	}
	u = sign | (exp == 31 ? 0xffu : exp + 112) << 23 | man << 13;
	memcpy(&x, &u, 4);
	return x;
}

/* Core k is [p_k][r_k][q_k][r_k+1]; the row is the product of one slice of each. */
static void tt_row(const struct csm_table *t, uint32_t id, float *out)
{
	uint32_t i0 = id / (t->p[1] * t->p[2]), i1 = id / t->p[2] % t->p[1], i2 = id % t->p[2];
	uint32_t r1 = t->r[0], r2 = t->r[1], q1 = t->q[1], q2 = t->q[2];
	const float *a = t->core[0] + (size_t)i0 * t->q[0] * r1;
	const float *b = t->core[1] + (size_t)i1 * r1 * q1 * r2;
	const float *c = t->core[2] + (size_t)i2 * r2 * q2;

	for (uint32_t x = 0; x < t->q[0]; x++)
		for (uint32_t y = 0; y < q1; y++)
			for (uint32_t z = 0; z < q2; z++) {
				double sum = 0;

				for (uint32_t l = 0; l < r2; l++) {
					double ab = 0;

					for (uint32_t k = 0; k < r1; k++)
						ab += (double)a[x * r1 + k] *
						      b[((size_t)k * q1 + y) * r2 + l];
					sum += ab * c[l * q2 + z];
				}
				*out++ = (float)sum;
			}
}

void csm_row(const struct csm_model *m, uint32_t table, uint32_t id, float *out)
{
	const struct csm_table *t = &m->tables[table];
	const uint8_t *raw;
	float scale, bias;

	if (t->form == CSM_FORM_TT) {
		tt_row(t, id, out);
		return;
	}
	if (t->dtype == CSM_FP32) {
		memcpy(out, t->rows + (size_t)id * t->dim, t->dim * 4);
		return;
	}
	raw = t->raw + id * csm_row_bytes(t->dtype, t->dim);
	if (t->dtype == CSM_FP16) {
		for (uint32_t i = 0; i < t->dim; i++) {
			uint16_t h;

			memcpy(&h, raw + 2 * i, 2);
			out[i] = csm_from_half(h);
		}
		return;
	}
	memcpy(&scale, raw + t->dim, 4);
	memcpy(&bias, raw + t->dim + 4, 4);
	for (uint32_t i = 0; i < t->dim; i++)
		out[i] = raw[i] * scale + bias;
}

int csm_row_pack(enum csm_dtype dtype, uint32_t dim, const float *in, void *out)
{
	uint8_t *raw = out;
	float lo = in[0], hi = in[0], scale, inverse;

	if (dtype == CSM_FP32) {
		memcpy(out, in, dim * 4);
		return 0;
	}
	if (dtype == CSM_FP16) {
		for (uint32_t i = 0; i < dim; i++) {
			uint16_t h = csm_to_half(in[i]);

			if ((h & 0x7fff) >= 0x7c00)
				return -ERANGE;
			memcpy(raw + 2 * i, &h, 2);
		}
		return 0;
	}
	for (uint32_t i = 1; i < dim; i++) {
		lo = in[i] < lo ? in[i] : lo;
		hi = in[i] > hi ? in[i] : hi;
	}
	if (!isfinite(hi - lo))
		return -ERANGE;
	scale = (hi - lo) / 255.0f;
	inverse = 255.0f / ((hi - lo) + 1e-8f);
	for (uint32_t i = 0; i < dim; i++)
		raw[i] = lrintf((in[i] - lo) * inverse);
	memcpy(raw + dim, &scale, 4);
	memcpy(raw + dim + 4, &lo, 4);
	return 0;
}
