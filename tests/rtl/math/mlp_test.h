/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef MLP_TEST_H
#define MLP_TEST_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Inputs and outputs of csrec_mlp in one clock cycle; see rtl-model/rtl/README.md */
struct mlp_in {
	bool rst_n, desc_valid, abort, done_ready;
	bool req_ready, rd_valid, rd_last, wr_ready, rsp_valid;
	uint8_t rsp_status;
	uint16_t desc_domain;
	uint8_t desc[192];
	uint8_t rd_data[64];
};

struct mlp_out {
	bool desc_ready, done_valid;
	bool req_valid, req_onchip, rd_ready, wr_valid;
	uint8_t req_op, done_status;
	uint16_t done_field, req_domain;
	uint32_t req_key;
	uint64_t done_detail, req_off, req_len;
	uint8_t wr_data[64];
};

void mlp_outputs(struct mlp_out *out);
void mlp_clock(const struct mlp_in *in);

#ifdef __cplusplus
}
#endif
#endif /* MLP_TEST_H */
