// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sigmoid of REFERENCE.md section 5 against the real function: at most 4 ulp off over
 * all finite floats, exact at the ends. argv[1] is the stride through the 2^32 bit
 * patterns (1: all of them); the denser range |x| < 128, where the function is not
 * flat, always gets a stride eight times smaller.
 *
 * Error is measured in ulps of the correctly rounded result, the smallest subnormal
 * being the smallest ulp. The reference is long double expl().
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "csrec_golden.h"

static float to_float(uint32_t u)
{
	float f;

	memcpy(&f, &u, sizeof(f));
	return f;
}

static uint32_t to_bits(float f)
{
	uint32_t u;

	memcpy(&u, &f, sizeof(u));
	return u;
}

static int failed, ntests;

static void ok(int cond, const char *name)
{
	printf("%sok %d - %s\n", cond ? "" : "not ", ++ntests, name);
	failed += !cond;
}

int main(int argc, char **argv)
{
	uint64_t stride = argc > 1 ? strtoull(argv[1], NULL, 0) : 1021, u;
	double worst = 0, worst_neg = 0;
	uint32_t worst_at = 0, worst_neg_at = 0;
	uint64_t n = 0, nan_bad = 0;

	ok(csrec_golden_env_ok(), "sigmoid: default floating-point environment");
	for (u = 0; u < 1ull << 32; ) {
		float x = to_float(u), y = csrec_golden_sigmoid(x);
		uint64_t step = stride;

		if (isnan(x)) {
			nan_bad += to_bits(y) != CSREC_GOLDEN_NAN;
		} else {
			long double e = expl(-fabsl((long double)x));
			long double want = signbit(x) ? e / (1 + e) : 1 / (1 + e);
			int ex;
			double err;

			frexpl(want, &ex);
			if (ex < -125)
				ex = -125;
			err = fabsl((long double)y - want) / ldexpl(1, ex - 24);
			if (!(err <= 1e9))
				err = 1e9;
			if (signbit(x) ? err > worst_neg : err > worst) {
				*(signbit(x) ? &worst_neg : &worst) = err;
				*(signbit(x) ? &worst_neg_at : &worst_at) = u;
			}
			n++;
			if (fabsf(x) > 0x1p-26f && fabsf(x) < 128.0f)
				step = (stride + 7) / 8;
		}
		u += step;
	}
	printf("# %llu values; largest error %.3f ulp at 0x%08x (x >= 0), %.3f ulp at 0x%08x (x < 0)\n",
	       (unsigned long long)n, worst, worst_at, worst_neg, worst_neg_at);
	ok(worst <= 4, "sigmoid: x >= 0 within 4 ulp");
	ok(worst_neg <= 4, "sigmoid: x < 0 within 4 ulp");
	ok(nan_bad == 0, "sigmoid: NaN gives the canonical NaN");
	ok(to_bits(csrec_golden_sigmoid(INFINITY)) == 0x3f800000, "sigmoid: +inf gives 1");
	ok(to_bits(csrec_golden_sigmoid(0.0f)) == 0x3f000000, "sigmoid: +0 gives 0.5");
	ok(to_bits(csrec_golden_sigmoid(-0.0f)) == 0x3f000000, "sigmoid: -0 gives 0.5");
	ok(to_bits(csrec_golden_sigmoid(-INFINITY)) <= 1, "sigmoid: -inf gives 0 or the smallest subnormal");
	printf("1..%d\n", ntests);
	return !!failed;
}
