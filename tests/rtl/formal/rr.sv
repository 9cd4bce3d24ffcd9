// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// csrec_rr among eleven: whoever keeps asking is picked after at most ten others. What is
// picked is taken at once: without that nothing moves, neither the arbiter nor the count.

`default_nettype none

module rr (
  input wire logic        clk_i,
  input wire logic        rst_ni,
  input wire logic [10:0] req_i
);

  logic       any;
  logic [3:0] pick;
  csrec_rr #(
    .Num(11)
  ) u_rr (
    .clk_i,
    .rst_ni,
    .req_i,
    .take_i(any),
    .any_o (any),
    .pick_o(pick)
  );

  (* anyconst *) logic [3:0] one;
  logic [7:0] others_q;
  logic       started_q = 1'b0;

  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    assume (rst_ni == started_q);
    assume (one < 4'd11);
    others_q <= rst_ni && req_i[one] && pick != one ? others_q + 8'd1 : '0;
    if (rst_ni) begin
      assert (any == (req_i != '0));
      assert (!any || (pick < 4'd11 && req_i[pick]));
      assert (others_q + 8'(req_i[one] && pick != one) <= 8'd10);
    end
  end

endmodule

`default_nettype wire
