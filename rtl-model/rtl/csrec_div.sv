// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Unsigned 32-bit division, one bit a cycle. start_i takes the operands (b_i not 0);
// done_o rises when quot_o and rem_o are there and stays until the next start_i.
`default_nettype none

module csrec_div (
  input  wire        clk_i,
  input  wire        rst_ni,
  input  wire        start_i,
  input  wire [31:0] a_i,
  input  wire [31:0] b_i,
  output wire        done_o,
  output wire [31:0] quot_o,
  output wire [31:0] rem_o
);

  logic  [5:0] left_q;    // bits to go
  logic [31:0] b_q, rem_q;
  logic [31:0] quot_q;    // what remains of a on top, quotient bits from below

  wire [32:0] next = {rem_q, quot_q[31]};
  wire        fits = next >= {1'b0, b_q};

  assign done_o = left_q == '0;
  assign quot_o = quot_q;
  assign rem_o  = rem_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) left_q <= '0;
    else if (start_i) left_q <= 6'd32;
    else if (!done_o) left_q <= left_q - 6'd1;

    if (start_i) begin
      b_q    <= b_i;
      rem_q  <= '0;
      quot_q <= a_i;
    end else if (!done_o) begin
      rem_q  <= fits ? next[31:0] - b_q : next[31:0];
      quot_q <= {quot_q[30:0], fits};
    end
  end

endmodule

`default_nettype wire
