// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Verilated csrec_sigmoid for sigmoid_test.
#include "Vsigmoid.h"
#include "sigmoid_test.h"

// registers and memories start with anything
static const bool random_start = (Verilated::randReset(2), Verilated::randSeed(1), true);
static Vsigmoid top;

static void clock_it()
{
	top.clk_i = 0;
	top.eval();
	top.clk_i = 1;
	top.eval();
}

extern "C" void sigmoid_reset(void)
{
	top.rst_ni = 0;
	top.in_valid_i = 0;
	for (int i = 0; i < 4; i++)
		clock_it();
	top.rst_ni = 1;
}

extern "C" bool sigmoid_run(uint32_t x, uint32_t *y)
{
	int limit = 1000;

	top.in_valid_i = 1;
	top.in_x_i = x;
	while (!top.in_ready_o && limit--)
		clock_it();
	clock_it();
	top.in_valid_i = 0;
	top.in_x_i = ~x;
	while (!top.out_valid_o && limit--)
		clock_it();
	*y = top.out_y_o;
	return limit > 0;
}
