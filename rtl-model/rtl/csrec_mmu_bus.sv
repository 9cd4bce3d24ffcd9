// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// One bus of csrec_mmu: the checked requests that wait for it, csrec_mmu_seg, csrec_mmu_rd
// and csrec_mmu_wr. ReqDepth is at least the number of requests that can be outstanding, so
// in_* is never refused and a slow bus does not stop the requests for others.

`default_nettype none

module csrec_mmu_bus #(
  parameter bit          Walk = 1'b0,
  parameter int unsigned NumClients = 9,
  parameter int unsigned CliW = 4,
  parameter int unsigned SlotW = 6,
  parameter int unsigned RingW = 7,
  parameter int unsigned ReqDepth = 256,
  parameter int unsigned Bursts = 64     // reads outstanding
) (
  input  wire logic             clk_i,
  input  wire logic             rst_ni,
  input  wire logic             flush_i,

  input  wire logic             in_valid_i,
  input  wire logic             in_write_i,
  input  wire logic [CliW-1:0]  in_client_i,
  input  wire logic [SlotW-1:0] in_slot_i,
  input  wire logic [RingW-1:0] in_ring_i,
  input  wire logic [12:0]      in_len_i,
  input  wire logic [1:0]       in_levels_i,
  input  wire logic [4:0]       in_shift_i,
  input  wire logic [63:0]      in_base_i,
  input  wire logic [63:0]      in_byte_i,

  input  wire logic             raw_valid_i,
  output      logic             raw_ready_o,
  input  wire logic             raw_write_i,
  input  wire logic [63:0]      raw_addr_i,
  input  wire logic [127:0]     raw_wdata_i,   // stays until the answer
  output      logic             raw_rsp_valid_o,
  output      logic             raw_rsp_err_o,
  output      logic [511:0]     raw_rdata_o,

  output      logic             out_valid_o,
  input  wire logic             out_ready_i,
  output      logic             out_beat_o,
  output      logic [RingW-1:0] out_ring_o,
  output      logic [511:0]     out_data_o,
  output      logic             out_end_o,
  output      logic             out_err_o,
  output      logic [CliW-1:0]  out_client_o,
  output      logic [SlotW-1:0] out_slot_o,

  input  wire logic [NumClients-1:0] wr_quiet_i,
  output      logic [CliW-1:0]  wr_client_o,
  output      logic             wr_take_o,
  input  wire logic             wr_valid_i,
  input  wire logic [511:0]     wr_data_i,
  output      logic             wr_end_valid_o,
  output      logic             wr_end_err_o,
  output      logic [CliW-1:0]  wr_end_client_o,
  output      logic [SlotW-1:0] wr_end_slot_o,

  output      logic             ar_valid_o,
  input  wire logic             ar_ready_i,
  output      logic [63:0]      ar_addr_o,
  output      logic [7:0]       ar_len_o,
  output      logic [2:0]       ar_size_o,
  input  wire logic             r_valid_i,
  output      logic             r_ready_o,
  input  wire logic [511:0]     r_data_i,
  input  wire logic             r_err_i,
  output      logic             aw_valid_o,
  input  wire logic             aw_ready_i,
  output      logic [63:0]      aw_addr_o,
  output      logic [7:0]       aw_len_o,
  output      logic             w_valid_o,
  input  wire logic             w_ready_i,
  output      logic [511:0]     w_data_o,
  output      logic [63:0]      w_strb_o,
  output      logic             w_last_o,
  input  wire logic             b_valid_i,
  output      logic             b_ready_o,
  input  wire logic             b_err_i,

  // bytes asked for, in the cycle in which a burst starts; any handshake
  output      logic [12:0]      ev_rd_o,
  output      logic [12:0]      ev_wr_o,
  output      logic             ev_any_o
);

  localparam int unsigned ReqW = 1 + CliW + SlotW + RingW + 13 + 2 + 5 + 64 + 64;

  logic             valid, ready, write;
  logic [CliW-1:0]  client;
  logic [SlotW-1:0] slot;
  logic [RingW-1:0] ring;
  logic [12:0]      len;
  logic [1:0]       levels;
  logic [4:0]       shift;
  logic [63:0]      base, first;
  logic             room;

  csrec_fifo #(
    .Width(ReqW),
    .Depth(ReqDepth)
  ) u_reqs (
    .clk_i,
    .rst_ni,
    .in_valid_i (in_valid_i),
    .in_ready_o (room),
    .in_data_i  ({in_write_i, in_client_i, in_slot_i, in_ring_i, in_len_i, in_levels_i,
                  in_shift_i, in_base_i, in_byte_i}),
    .out_valid_o(valid),
    .out_ready_i(ready),
    .out_data_o ({write, client, slot, ring, len, levels, shift, base, first})
  );

  logic             rd_valid, rd_ready, rd_last, wr_valid, wr_ready, wr_last;
  logic [1:0]       rd_kind, wr_kind;
  logic [5:0]       rd_lane;
  logic [12:0]      rd_bytes, wr_bytes, seg_len, ar_bytes, aw_bytes;
  logic [63:0]      wr_addr;
  logic [CliW-1:0]  seg_client;
  logic [SlotW-1:0] seg_slot;
  logic [RingW-1:0] seg_ring;
  logic             walk_valid, walk_err;
  logic [63:0]      walk_data;
  logic             raw_rd_valid, raw_rd_err, raw_wr_valid, raw_wr_err;

  csrec_mmu_seg #(
    .Walk(Walk),
    .NumClients(NumClients),
    .CliW(CliW),
    .SlotW(SlotW),
    .RingW(RingW)
  ) u_seg (
    .clk_i,
    .rst_ni,
    .flush_i,
    .in_valid_i  (valid),
    .in_ready_o  (ready),
    .in_write_i  (write),
    .in_client_i (client),
    .in_slot_i   (slot),
    .in_ring_i   (ring),
    .in_len_i    (len),
    .in_levels_i (levels),
    .in_shift_i  (shift),
    .in_base_i   (base),
    .in_byte_i   (first),
    .raw_valid_i,
    .raw_ready_o,
    .raw_write_i,
    .raw_addr_i,
    .ar_valid_o,
    .ar_ready_i,
    .ar_addr_o,
    .ar_len_o,
    .ar_size_o,
    .ar_bytes_o  (ar_bytes),
    .rd_valid_o  (rd_valid),
    .rd_ready_i  (rd_ready),
    .rd_kind_o   (rd_kind),
    .rd_last_o   (rd_last),
    .rd_lane_o   (rd_lane),
    .rd_bytes_o  (rd_bytes),
    .wr_valid_o  (wr_valid),
    .wr_ready_i  (wr_ready),
    .wr_kind_o   (wr_kind),
    .wr_last_o   (wr_last),
    .wr_addr_o   (wr_addr),
    .wr_bytes_o  (wr_bytes),
    .seg_client_o(seg_client),
    .seg_slot_o  (seg_slot),
    .seg_ring_o  (seg_ring),
    .seg_len_o   (seg_len),
    .walk_valid_i(walk_valid),
    .walk_err_i  (walk_err),
    .walk_data_i (walk_data)
  );

  csrec_mmu_rd #(
    .Depth(Bursts),
    .CliW(CliW),
    .SlotW(SlotW),
    .RingW(RingW)
  ) u_rd (
    .clk_i,
    .rst_ni,
    .seg_valid_i (rd_valid),
    .seg_ready_o (rd_ready),
    .seg_kind_i  (rd_kind),
    .seg_last_i  (rd_last),
    .seg_lane_i  (rd_lane),
    .seg_bytes_i (rd_bytes),
    .seg_client_i(seg_client),
    .seg_slot_i  (seg_slot),
    .seg_ring_i  (seg_ring),
    .r_valid_i,
    .r_ready_o,
    .r_data_i,
    .r_err_i,
    .out_valid_o,
    .out_ready_i,
    .out_beat_o,
    .out_ring_o,
    .out_data_o,
    .out_end_o,
    .out_err_o,
    .out_client_o,
    .out_slot_o,
    .walk_valid_o(walk_valid),
    .walk_err_o  (walk_err),
    .walk_data_o (walk_data),
    .raw_valid_o (raw_rd_valid),
    .raw_err_o   (raw_rd_err),
    .raw_data_o  (raw_rdata_o)
  );

  csrec_mmu_wr #(
    .NumClients(NumClients),
    .CliW(CliW),
    .SlotW(SlotW)
  ) u_wr (
    .clk_i,
    .rst_ni,
    .seg_valid_i (wr_valid),
    .seg_ready_o (wr_ready),
    .seg_kind_i  (wr_kind),
    .seg_last_i  (wr_last),
    .seg_addr_i  (wr_addr),
    .seg_bytes_i (wr_bytes),
    .seg_client_i(seg_client),
    .seg_slot_i  (seg_slot),
    .seg_len_i   (seg_len),
    .quiet_i     (wr_quiet_i),
    .client_o    (wr_client_o),
    .take_o      (wr_take_o),
    .take_valid_i(wr_valid_i),
    .take_data_i (wr_data_i),
    .raw_data_i  (raw_wdata_i),
    .aw_valid_o,
    .aw_ready_i,
    .aw_addr_o,
    .aw_len_o,
    .aw_bytes_o  (aw_bytes),
    .w_valid_o,
    .w_ready_i,
    .w_data_o,
    .w_strb_o,
    .w_last_o,
    .b_valid_i,
    .b_ready_o,
    .b_err_i,
    .end_valid_o (wr_end_valid_o),
    .end_err_o   (wr_end_err_o),
    .end_client_o(wr_end_client_o),
    .end_slot_o  (wr_end_slot_o),
    .raw_valid_o (raw_wr_valid),
    .raw_err_o   (raw_wr_err)
  );

  // One raw request at a time
  assign raw_rsp_valid_o = raw_rd_valid || raw_wr_valid;
  assign raw_rsp_err_o = raw_rd_valid ? raw_rd_err : raw_wr_err;

  assign ev_rd_o = ar_valid_o && ar_ready_i ? ar_bytes : '0;
  assign ev_wr_o = aw_valid_o && aw_ready_i ? aw_bytes : '0;
  assign ev_any_o = (ar_valid_o && ar_ready_i) || (aw_valid_o && aw_ready_i) ||
                    (r_valid_i && r_ready_o) || (w_valid_o && w_ready_i) ||
                    (b_valid_i && b_ready_o);

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && in_valid_i) assert (room) else $error("%m: more requests than can be");
  end
`else
  logic unused;
  assign unused = &{1'b0, room};
`endif

endmodule

`default_nettype wire
