// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Verilated fp_tb for fp_test. Compiled once a body, with BODY being rtl or dpi.
#define CAT3(a, b) a##b
#define CAT(a, b) CAT3(a, b)
#define STR2(s) #s
#define STR(s) STR2(s)

#define MODEL CAT(Vfp_, BODY)
#include STR(MODEL.h)
#include "fp_test.h"

extern "C" void CAT(fp_step_, BODY)(uint32_t a, uint32_t b, uint32_t *mul, uint32_t *add)
{
	static MODEL top;

	top.a_i = a;
	top.b_i = b;
	top.clk_i = 0;
	top.eval();
	*mul = top.mul_o;
	*add = top.add_o;
	top.clk_i = 1;
	top.eval();
}
