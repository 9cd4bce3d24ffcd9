// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// One Verilated engine as a struct engine. Compiled once for each, with VTOP its
// Verilated class, NAME its name, HAS_ROWS if it has rows_o and HAS_SAVED if saved_o.
#include "engine.h"

#include <cstring>

#define STR2(x) #x
#define STR(x) STR2(x)
#define HEADER2(x) STR(x.h)
#define CAT2(a, b) a##b
#define CAT(a, b) CAT2(a, b)
#include HEADER2(VTOP)

// Registers start with random values: what reset leaves out must not matter.
static VTOP &top = [] () -> VTOP & {
	Verilated::randReset(2);
	Verilated::randSeed(1);
	return *new VTOP;
}();

static void eval(const struct port_in *in, struct port_out *out)
{
	top.clk_i = 0;
	top.rst_ni = in->rst_n;
	top.desc_valid_i = in->desc_valid;
	memcpy(top.desc_i.data(), in->desc, sizeof(in->desc));
	top.desc_domain_i = in->desc_domain;
	top.abort_i = in->abort;
	top.done_ready_i = in->done_ready;
	top.req_ready_i = in->req_ready;
	top.rd_valid_i = in->rd_valid;
	memcpy(top.rd_data_i.data(), in->rd_data, sizeof(in->rd_data));
	top.rd_last_i = in->rd_last;
	top.wr_ready_i = in->wr_ready;
	top.rsp_valid_i = in->rsp_valid;
	top.rsp_status_i = in->rsp_status;
	top.eval();
	out->desc_ready = top.desc_ready_o;
	out->done_valid = top.done_valid_o;
	out->done_status = top.done_status_o;
	out->done_field = top.done_field_o;
	out->done_detail = top.done_detail_o;
	out->req_valid = top.req_valid_o;
	out->req_op = top.req_op_o;
	out->req_onchip = top.req_onchip_o;
	out->req_key = top.req_key_o;
	out->req_off = top.req_off_o;
	out->req_len = top.req_len_o;
	out->req_domain = top.req_domain_o;
	out->rd_ready = top.rd_ready_o;
	out->wr_valid = top.wr_valid_o;
	memcpy(out->wr_data, top.wr_data_o.data(), sizeof(out->wr_data));
#ifdef HAS_ROWS
	out->rows = top.rows_o;
#else
	out->rows = false;
#endif
#ifdef HAS_SAVED
	out->saved = top.saved_o;
	out->step = top.step_o;
#else
	out->saved = out->step = 0;
#endif
}

static void clock_it(void)
{
	top.clk_i = 1;
	top.eval();
}

extern "C" const struct engine CAT(engine_, NAME) = { STR(NAME), eval, clock_it };
