// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Verilated csrec_mlp for mlp_test; MODEL is the Verilated class. No output of the
// module depends on an input of the same cycle.
#define STR2(s) #s
#define STR(s) STR2(s)
#include STR(MODEL.h)
#include "mlp_test.h"

#include <cstring>

// registers and memories start with anything
static const bool random_start = (Verilated::randReset(2), Verilated::randSeed(1), true);
static MODEL top;

extern "C" void mlp_outputs(struct mlp_out *out)
{
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
}

extern "C" void mlp_clock(const struct mlp_in *in)
{
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
	top.clk_i = 0;
	top.eval();
	top.clk_i = 1;
	top.eval();
}
