// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The host's FPU behind csrec_fp_mul and csrec_fp_add (CSREC_FP_DPI): host float
 * multiplication and addition are IEEE-754 exact in the default environment. Compile
 * without -ffast-math and with -ffp-contract=off.
 */
#include <stdint.h>
#include <string.h>

#include "fp_dpi.h"

static float to_float(uint32_t v)
{
	float f;

	memcpy(&f, &v, sizeof(f));
	return f;
}

static uint32_t to_bits(float f)
{
	uint32_t v;

	if (f != f)
		return 0x7fc00000;
	memcpy(&v, &f, sizeof(v));
	return v;
}

unsigned int csrec_fp_mul_dpi(unsigned int a, unsigned int b)
{
	return to_bits(to_float(a) * to_float(b));
}

unsigned int csrec_fp_add_dpi(unsigned int a, unsigned int b)
{
	return to_bits(to_float(a) + to_float(b));
}
