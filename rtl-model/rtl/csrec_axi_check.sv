// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Checks one AXI4 or AXI4-Lite port, both sides of it, in simulation and proofs. Nothing in
// synthesis. What is asserted:
//
//   - an offer on any channel stays, and stays the same, until it is taken
//   - bursts are INCR, of beats no wider than the bus, aligned, within 4 KiB
//   - WLAST comes with the last beat of its burst and no other; so does RLAST
//   - an answer belongs to a request of its ID that is not yet answered: R to the oldest
//     read of the ID, B to a write of which address and all data were taken before
//   - no more than MaxOutstanding reads of an ID, or writes, are open (its own limit)
//
// AXI4-Lite: tie lengths, IDs and bursts to those of a single full beat, *last to 1.

`default_nettype none

module csrec_axi_check #(
  parameter int unsigned AddrW = 64,
  parameter int unsigned DataW = 512,
  parameter int unsigned IdW = 1,
  parameter int unsigned MaxOutstanding = 256  // power of two
) (
  input wire logic               clk_i,
  input wire logic               rst_ni,

  input wire logic [IdW-1:0]     awid_i,
  input wire logic [AddrW-1:0]   awaddr_i,
  input wire logic [7:0]         awlen_i,
  input wire logic [2:0]         awsize_i,
  input wire logic [1:0]         awburst_i,
  input wire logic               awvalid_i,
  input wire logic               awready_i,
  input wire logic [DataW-1:0]   wdata_i,
  input wire logic [DataW/8-1:0] wstrb_i,
  input wire logic               wlast_i,
  input wire logic               wvalid_i,
  input wire logic               wready_i,
  input wire logic [IdW-1:0]     bid_i,
  input wire logic [1:0]         bresp_i,
  input wire logic               bvalid_i,
  input wire logic               bready_i,
  input wire logic [IdW-1:0]     arid_i,
  input wire logic [AddrW-1:0]   araddr_i,
  input wire logic [7:0]         arlen_i,
  input wire logic [2:0]         arsize_i,
  input wire logic [1:0]         arburst_i,
  input wire logic               arvalid_i,
  input wire logic               arready_i,
  input wire logic [IdW-1:0]     rid_i,
  input wire logic [DataW-1:0]   rdata_i,
  input wire logic [1:0]         rresp_i,
  input wire logic               rlast_i,
  input wire logic               rvalid_i,
  input wire logic               rready_i
);

`ifndef SYNTHESIS

  csrec_hs_check #(
    .Width(IdW + AddrW + 13)
  ) u_aw (
    .clk_i,
    .rst_ni,
    .valid_i(awvalid_i),
    .ready_i(awready_i),
    .drop_i (1'b0),
    .data_i ({awid_i, awaddr_i, awlen_i, awsize_i, awburst_i})
  );
  csrec_hs_check #(
    .Width(DataW + DataW / 8 + 1)
  ) u_w (
    .clk_i,
    .rst_ni,
    .valid_i(wvalid_i),
    .ready_i(wready_i),
    .drop_i (1'b0),
    .data_i ({wdata_i, wstrb_i, wlast_i})
  );
  csrec_hs_check #(
    .Width(IdW + 2)
  ) u_b (
    .clk_i,
    .rst_ni,
    .valid_i(bvalid_i),
    .ready_i(bready_i),
    .drop_i (1'b0),
    .data_i ({bid_i, bresp_i})
  );
  csrec_hs_check #(
    .Width(IdW + AddrW + 13)
  ) u_ar (
    .clk_i,
    .rst_ni,
    .valid_i(arvalid_i),
    .ready_i(arready_i),
    .drop_i (1'b0),
    .data_i ({arid_i, araddr_i, arlen_i, arsize_i, arburst_i})
  );
  csrec_hs_check #(
    .Width(IdW + DataW + 3)
  ) u_r (
    .clk_i,
    .rst_ni,
    .valid_i(rvalid_i),
    .ready_i(rready_i),
    .drop_i (1'b0),
    .data_i ({rid_i, rdata_i, rresp_i, rlast_i})
  );

  localparam int unsigned NumIds = 1 << IdW;
  localparam int unsigned OutW = $clog2(MaxOutstanding);
  localparam logic [2:0]  MaxSize = 3'($clog2(DataW / 8));

  // ------------------------------------------------------------------ bursts
  function automatic logic aligned(input logic [11:0] addr, input logic [2:0] size);
    aligned = (addr & ~(12'hfff << size)) == '0;
  endfunction
  function automatic logic within_4k(input logic [11:0] addr, input logic [7:0] len,
                                     input logic [2:0] size);
    within_4k = 16'(addr) + ((16'(len) + 16'd1) << size) <= 16'd4096;
  endfunction

  always_ff @(posedge clk_i) begin
    if (rst_ni && awvalid_i) begin
      assert (awburst_i == 2'b01) else $error("%m: AW: not INCR");
      assert (awsize_i <= MaxSize) else $error("%m: AW: beats wider than the bus");
      assert (aligned(awaddr_i[11:0], awsize_i)) else $error("%m: AW: not aligned");
      assert (within_4k(awaddr_i[11:0], awlen_i, awsize_i)) else $error("%m: AW: over 4 KiB");
    end
    if (rst_ni && arvalid_i) begin
      assert (arburst_i == 2'b01) else $error("%m: AR: not INCR");
      assert (arsize_i <= MaxSize) else $error("%m: AR: beats wider than the bus");
      assert (aligned(araddr_i[11:0], arsize_i)) else $error("%m: AR: not aligned");
      assert (within_4k(araddr_i[11:0], arlen_i, arsize_i)) else $error("%m: AR: over 4 KiB");
    end
  end

  // ------------------------------------------------------------------- reads
  // Lengths of the open reads of each ID, oldest first.
  logic [7:0]    r_len_q   [0:NumIds*MaxOutstanding-1];
  logic [OutW:0] r_first_q [0:NumIds-1];
  logic [OutW:0] r_next_q  [0:NumIds-1];
  logic [7:0]    r_beat_q  [0:NumIds-1];

  logic [OutW:0] r_open;
  logic [7:0]    r_want;
  assign r_open = r_next_q[rid_i] - r_first_q[rid_i];
  assign r_want = r_len_q[{rid_i, r_first_q[rid_i][OutW-1:0]}];

  always_ff @(posedge clk_i) begin
    if (rst_ni && rvalid_i) begin
      assert (r_open != '0) else $error("%m: R: nothing was asked for");
      assert (rlast_i == (r_beat_q[rid_i] == r_want)) else $error("%m: RLAST misplaced");
      assert (rresp_i != 2'b01) else $error("%m: R: EXOKAY");
    end
    if (rvalid_i && rready_i) begin
      r_beat_q[rid_i] <= rlast_i ? '0 : r_beat_q[rid_i] + 8'd1;
      if (rlast_i) r_first_q[rid_i] <= r_first_q[rid_i] + 1'b1;
    end
    if (arvalid_i && arready_i) begin
      assert (!rst_ni || r_next_q[arid_i] - r_first_q[arid_i] != (OutW + 1)'(MaxOutstanding))
      else $error("%m: too many reads");
      r_len_q[{arid_i, r_next_q[arid_i][OutW-1:0]}] <= arlen_i;
      r_next_q[arid_i] <= r_next_q[arid_i] + 1'b1;
    end
    if (!rst_ni) begin
      for (int unsigned i = 0; i < NumIds; i++) begin
        r_first_q[i] <= '0;
        r_next_q[i] <= '0;
        r_beat_q[i] <= '0;
      end
    end
  end

  // ------------------------------------------------------------------ writes
  // Address and data of a burst may come in any order, but bursts' data come in the order of
  // their addresses: lengths of both, to be compared as soon as both are known. An answer is
  // owed to the ID once they were.
  logic [7:0]     aw_len_q [0:MaxOutstanding-1];
  logic [IdW-1:0] aw_id_q  [0:MaxOutstanding-1];
  logic [7:0]     w_len_q  [0:MaxOutstanding-1];
  logic [OutW:0]  aw_next_q, w_next_q, both_q;
  logic [7:0]     w_beat_q;
  logic [OutW:0]  owed_q   [0:NumIds-1];

  logic           both;
  logic [IdW-1:0] both_id;
  assign both = both_q != aw_next_q && both_q != w_next_q;
  assign both_id = aw_id_q[both_q[OutW-1:0]];

  always_ff @(posedge clk_i) begin
    if (awvalid_i && awready_i) begin
      assert (!rst_ni || aw_next_q - both_q != (OutW + 1)'(MaxOutstanding))
      else $error("%m: too many writes");
      aw_len_q[aw_next_q[OutW-1:0]] <= awlen_i;
      aw_id_q[aw_next_q[OutW-1:0]] <= awid_i;
      aw_next_q <= aw_next_q + 1'b1;
    end
    // WLAST too late is seen while the beats come, if the address is there
    if (rst_ni && wvalid_i && w_next_q == both_q && both_q != aw_next_q) begin
      assert (wlast_i == (w_beat_q == aw_len_q[w_next_q[OutW-1:0]]))
      else $error("%m: WLAST misplaced");
    end
    if (wvalid_i && wready_i) begin
      w_beat_q <= wlast_i ? '0 : w_beat_q + 8'd1;
      if (wlast_i) begin
        assert (!rst_ni || w_next_q - both_q != (OutW + 1)'(MaxOutstanding))
        else $error("%m: too much data without address");
        w_len_q[w_next_q[OutW-1:0]] <= w_beat_q;
        w_next_q <= w_next_q + 1'b1;
      end
    end
    if (both) begin
      assert (!rst_ni || w_len_q[both_q[OutW-1:0]] == aw_len_q[both_q[OutW-1:0]])
      else $error("%m: WLAST misplaced");
      both_q <= both_q + 1'b1;
    end
    if (rst_ni && bvalid_i) begin
      assert (owed_q[bid_i] != '0 || (both && both_id == bid_i))
      else $error("%m: B: nothing was written");
      assert (bresp_i != 2'b01) else $error("%m: B: EXOKAY");
    end
    for (int unsigned i = 0; i < NumIds; i++) begin
      owed_q[i] <= owed_q[i] + (OutW + 1)'(both && both_id == IdW'(i))
                   - (OutW + 1)'(bvalid_i && bready_i && bid_i == IdW'(i));
    end
    if (!rst_ni) begin
      aw_next_q <= '0;
      w_next_q <= '0;
      both_q <= '0;
      w_beat_q <= '0;
      for (int unsigned i = 0; i < NumIds; i++) owed_q[i] <= '0;
    end
  end

`else
  logic unused;
  assign unused = &{1'b0, clk_i, rst_ni, awid_i, awaddr_i, awlen_i, awsize_i, awburst_i, awvalid_i,
                    awready_i, wdata_i, wstrb_i, wlast_i, wvalid_i, wready_i, bid_i, bresp_i,
                    bvalid_i, bready_i, arid_i, araddr_i, arlen_i, arsize_i, arburst_i, arvalid_i,
                    arready_i, rid_i, rdata_i, rresp_i, rlast_i, rvalid_i, rready_i};
`endif

endmodule

`default_nettype wire
