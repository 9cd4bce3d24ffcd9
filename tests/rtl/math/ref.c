// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * REFERENCE.md section 5, for the tests of the RTL: written from the text, sharing
 * nothing with the golden model. Compile with -ffp-contract=off.
 */
#include "ref.h"
#include "tap.h"

uint32_t ref_add(uint32_t a, uint32_t b)
{
	return as_bits(as_float(a) + as_float(b));
}

uint32_t ref_mul(uint32_t a, uint32_t b)
{
	return as_bits(as_float(a) * as_float(b));
}

uint32_t ref_dot(const uint32_t *a, const uint32_t *b, unsigned int n)
{
	uint32_t p[8] = { 0 };

	for (unsigned int k = 0; k < n; k++)
		p[k % 8] = ref_add(p[k % 8], ref_mul(a[k], b[k]));
	return ref_add(ref_add(ref_add(p[0], p[1]), ref_add(p[2], p[3])),
		       ref_add(ref_add(p[4], p[5]), ref_add(p[6], p[7])));
}

uint32_t ref_relu(uint32_t x)
{
	float f = as_float(x);

	return f > 0 || f != f ? as_bits(f) : 0;
}

uint32_t ref_sigmoid(uint32_t x)
{
	static const float c[] = { 0x1.a0d2cep-13f, 0x1.6e879cp-10f, 0x1.111210p-7f,
				   0x1.555382p-5f, 0x1.555554p-3f, 0.5f };
	const float ln2_hi = 0.693359375f, ln2_lo = -0x1.bd0106p-13f;
	const float magic = 12582912.0f;
	float t, m, kf, r, u, p, e, d, y;
	uint32_t bits;
	int k;

	if (as_float(x) != as_float(x))
		return 0x7fc00000;
	t = as_float(x & 0x7fffffff);
	if (t > 104.0f)
		t = 104.0f;
	m = t * 0x1.715476p+0f + magic;
	memcpy(&bits, &m, sizeof(bits));
	k = bits & 0xff;
	kf = m - magic;
	r = t - kf * ln2_hi;
	r = r - kf * ln2_lo;
	u = -r;
	p = c[0];
	for (int i = 1; i < 6; i++)
		p = p * u + c[i];
	p = p * (u * u);
	p = p + u;
	p = p + 1.0f;
	/* exact powers of two: 2^-n has the exponent 127 - n */
	e = p * as_float((uint32_t)(127 - (k < 100 ? k : 100)) << 23);
	if (k > 100)
		e = e * as_float((uint32_t)(127 - (k - 100)) << 23);
	d = 1.0f + e;
	memcpy(&bits, &d, sizeof(bits));
	y = as_float(0x7ef311c7 - bits);
	for (int i = 0; i < 2; i++)
		y = y * (2.0f - d * y);
	y = y + y * (1.0f - d * y);
	return as_bits(x >> 31 ? e * y : y);
}
