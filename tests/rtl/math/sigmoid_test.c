// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * csrec_sigmoid: the bits of REFERENCE.md's sequence, and that sequence against libm in
 * double.
 *
 *   sigmoid_test [VALUES]
 */
#include <math.h>
#include <stdlib.h>

#include "ref.h"
#include "sigmoid_test.h"
#include "tap.h"

static double real_sigmoid(double x)
{
	double e = exp(-fabs(x));

	return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

/* Distance in units of the last place that the real value has as a float. */
static double ulps(uint32_t y, double real)
{
	int exp;

	frexp(real, &exp);
	return fabs((double)as_float(y) - real) / ldexp(1, (exp < -125 ? -125 : exp) - 24);
}

static unsigned int bad;

static void same(uint32_t x)
{
	uint32_t y = 0;
	bool came = sigmoid_run(x, &y);

	if ((!came || y != ref_sigmoid(x)) && bad++ < 10)
		printf("# sigmoid(%08x) gives %08x%s, not %08x\n", x, y,
		       came ? "" : " (no answer)", ref_sigmoid(x));
}

int main(int argc, char **argv)
{
	unsigned int count = argc > 1 ? (unsigned int)strtoul(argv[1], NULL, 0) : 20000;
	static const struct {
		uint32_t x, y;
		const char *name;
	} exact[] = {
		{ 0x00000000, 0x3f000000, "0" },
		{ 0x80000000, 0x3f000000, "-0" },
		{ 0x7f800000, 0x3f800000, "infinity" },
		{ 0xff800000, 0x00000000, "-infinity" },
		{ 0x7fc00000, 0x7fc00000, "NaN" },
		{ 0xff800001, 0x7fc00000, "signalling -NaN" },
		{ 0x00000001, 0x3f000000, "the smallest subnormal" },
		{ 0xff7fffff, 0x00000000, "the most negative number" },
	};
	double worst = 0, err;
	uint32_t at = 0, y;

	sigmoid_reset();
	for (size_t i = 0; i < sizeof(exact) / sizeof(exact[0]); i++) {
		bool came = sigmoid_run(exact[i].x, &y);

		tap(came && y == exact[i].y, "sigmoid of %s", exact[i].name);
	}
	/* around every change of the scaling exponent, and the limit */
	for (int k = 0; k <= 151; k++)
		for (int d = -2; d <= 2; d++) {
			uint32_t x = as_bits((float)((k + 0.5) * 0.69314718055994530942));

			same(x + (uint32_t)d);
			same((x + (uint32_t)d) | 0x80000000);
		}
	for (uint32_t i = 0; i < count; i++) {
		same(rnd());
		/* of the exponents where something happens */
		same((rnd() & 0x80ffffff) | (0x3a + rnd_below(9)) << 24);
	}
	tap(!bad, "sigmoid: module as the reference sequence, %u values", 2 * count + 1520);

	/* both signs, from the smallest number to beyond saturation */
	for (uint32_t x = 0; x <= 0x42d80000; x += 211)
		for (unsigned int sign = 0; sign < 2; sign++) {
			err = ulps(ref_sigmoid(x | sign << 31),
				   real_sigmoid((double)as_float(x | sign << 31)));
			if (err > worst) {
				worst = err;
				at = x | sign << 31;
			}
		}
	printf("# worst %.3f ulp, at %08x\n", worst, at);
	tap(worst <= 4, "sigmoid: reference sequence within 4 ulp of libm");
	return tap_done();
}
