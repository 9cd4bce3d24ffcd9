// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// On-chip memory: one inferred RAM, 64 bytes wide with byte enables, behind the part of
// an AXI4 slave that csrec_mmu uses (INCR bursts of full beats, one burst at a time, no
// errors: csrec_mmu has checked the address). A burst streams one beat a cycle.

`default_nettype none

module csrec_onchip #(
  parameter int unsigned Bytes = 1 << 20
) (
  input  wire logic         clk_i,
  input  wire logic         rst_ni,

  input  wire logic         arvalid_i,
  output      logic         arready_o,
  input  wire logic [$clog2(Bytes)-7:0] araddr_i,  // in beats
  input  wire logic [7:0]   arlen_i,
  output      logic         rvalid_o,
  input  wire logic         rready_i,
  output      logic [511:0] rdata_o,
  output      logic         rlast_o,

  input  wire logic         awvalid_i,
  output      logic         awready_o,
  input  wire logic [$clog2(Bytes)-7:0] awaddr_i,  // in beats
  input  wire logic         wvalid_i,
  output      logic         wready_o,
  input  wire logic [511:0] wdata_i,
  input  wire logic [63:0]  wstrb_i,
  input  wire logic         wlast_i,
  output      logic         bvalid_o,
  input  wire logic         bready_i
);

  localparam int unsigned AddrW = $clog2(Bytes) - 6;

  logic [511:0] mem [0:Bytes/64-1];

  // ----------------------------------------------------------------- reads
  // rd_q: beats are still to be fetched; the RAM's output register is the R channel.
  logic             rd_q, rvalid_q, rlast_q;
  logic [AddrW-1:0] raddr_q;
  logic [7:0]       rleft_q;
  logic [511:0]     rdata_q;
  logic             fetch;

  assign arready_o = !rd_q && !rvalid_q;
  assign fetch = rd_q && (!rvalid_q || rready_i);
  assign rvalid_o = rvalid_q;
  assign rdata_o = rdata_q;
  assign rlast_o = rlast_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rd_q <= 1'b0;
      rvalid_q <= 1'b0;
    end else begin
      if (arvalid_i && arready_o) rd_q <= 1'b1;
      if (fetch) begin
        rvalid_q <= 1'b1;
        if (rleft_q == '0) rd_q <= 1'b0;
      end else if (rready_i) begin
        rvalid_q <= 1'b0;
      end
    end
    if (arvalid_i && arready_o) begin
      raddr_q <= araddr_i;
      rleft_q <= arlen_i;
    end
    if (fetch) begin
      raddr_q <= raddr_q + 1'b1;
      rleft_q <= rleft_q - 1'b1;
      rlast_q <= rleft_q == '0;
      rdata_q <= mem[raddr_q];
    end
  end

  // ---------------------------------------------------------------- writes
  logic             wr_q, bvalid_q;
  logic [AddrW-1:0] waddr_q;
  assign awready_o = !wr_q && !bvalid_q;
  assign wready_o = wr_q;
  assign bvalid_o = bvalid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wr_q <= 1'b0;
      bvalid_q <= 1'b0;
    end else begin
      if (awvalid_i && awready_o) wr_q <= 1'b1;
      if (wvalid_i && wready_o && wlast_i) begin
        wr_q <= 1'b0;
        bvalid_q <= 1'b1;
      end
      if (bvalid_q && bready_i) bvalid_q <= 1'b0;
    end
    if (awvalid_i && awready_o) waddr_q <= awaddr_i;
    if (wvalid_i && wready_o) begin
      waddr_q <= waddr_q + 1'b1;
      for (int unsigned i = 0; i < 64; i++) begin
        if (wstrb_i[i]) mem[waddr_q][8*i+:8] <= wdata_i[8*i+:8];
      end
    end
  end

endmodule

`default_nettype wire
