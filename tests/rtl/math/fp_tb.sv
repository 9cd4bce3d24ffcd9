// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Both arithmetic units on the same operands, for fp_test.
`default_nettype none

module fp_tb (
  input  wire        clk_i,
  input  wire [31:0] a_i,
  input  wire [31:0] b_i,
  output wire [31:0] mul_o,
  output wire [31:0] add_o
);

  csrec_fp_mul u_mul (.clk_i, .a_i, .b_i, .y_o (mul_o));
  csrec_fp_add u_add (.clk_i, .a_i, .b_i, .y_o (add_o));

endmodule

`default_nettype wire
