// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Checks one valid/ready channel in simulation: what is offered stays offered, and stays
// the same, until it is taken. Nothing in synthesis.

`default_nettype none

module csrec_hs_check #(
  parameter int unsigned Width = 1
) (
  input wire logic             clk_i,
  input wire logic             rst_ni,
  input wire logic             valid_i,
  input wire logic             ready_i,
  input wire logic             drop_i,  // the offer may end untaken now
  input wire logic [Width-1:0] data_i
);

`ifndef SYNTHESIS
  logic             held_q;
  logic [Width-1:0] data_q;

  always_ff @(posedge clk_i) begin
    held_q <= rst_ni && valid_i && !ready_i && !drop_i;
    if (valid_i) data_q <= data_i;
    if (rst_ni && held_q) begin
      assert (valid_i) else $error("%m: offer withdrawn");
      assert (data_i == data_q) else $error("%m: offer changed");
    end
  end
`else
  logic unused;
  assign unused = &{1'b0, clk_i, rst_ni, valid_i, ready_i, drop_i, data_i};
`endif

endmodule

`default_nettype wire
