// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Round robin: picks, combinationally, the first request after the one that was taken last.

`default_nettype none

module csrec_rr #(
  parameter int unsigned Num = 2
) (
  input  wire logic                   clk_i,
  input  wire logic                   rst_ni,
  input  wire logic [Num-1:0]         req_i,
  input  wire logic                   take_i,  // what is picked is served
  output      logic                   any_o,
  output      logic [$clog2(Num)-1:0] pick_o
);

  localparam int unsigned W = $clog2(Num);

  logic [W-1:0] last_q;

  always_comb begin
    any_o = 1'b0;
    pick_o = '0;
    for (int unsigned i = 0; i < Num; i++) begin
      if (!any_o && req_i[i] && W'(i) > last_q) begin
        pick_o = W'(i);
        any_o = 1'b1;
      end
    end
    for (int unsigned i = 0; i < Num; i++) begin
      if (!any_o && req_i[i]) begin
        pick_o = W'(i);
        any_o = 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) last_q <= '0;
    else if (take_i) last_q <= pick_o;
  end

endmodule

`default_nettype wire
