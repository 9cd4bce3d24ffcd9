// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Verilated csrec_dot for dot_test.
#include "Vdot.h"
#include "dot_test.h"

#include <cstring>

// registers and memories start with anything
static const bool random_start = (Verilated::randReset(2), Verilated::randSeed(1), true);
static Vdot top;

static void clock_it()
{
	top.clk_i = 0;
	top.eval();
	top.clk_i = 1;
	top.eval();
}

extern "C" void dot_reset(void)
{
	top.rst_ni = 0;
	top.in_valid_i = 0;
	for (int i = 0; i < 4; i++)
		clock_it();
	top.rst_ni = 1;
}

extern "C" bool dot_step(const struct dot_in *in, unsigned int *slot, uint32_t *y)
{
	bool valid;

	top.in_valid_i = in->valid;
	top.in_slot_i = in->slot;
	top.in_first_i = in->first;
	top.in_last_i = in->last;
	memcpy(top.in_a_i.data(), in->a, sizeof(in->a));
	memcpy(top.in_b_i.data(), in->b, sizeof(in->b));
	top.clk_i = 0;
	top.eval();
	valid = top.out_valid_o;
	*slot = top.out_slot_o;
	*y = top.out_y_o;
	top.clk_i = 1;
	top.eval();
	return valid;
}
