// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// The R channel of one bus: takes the beats of the bursts that csrec_mmu_seg has asked for, in
// their order, moves the bytes of each request together and puts full beats into its client's
// ring, one a cycle. A request that fails puts nothing more there.
//
// out_*: a beat for the ring (out_data_i valid), and/or the end of its request; held until
// out_ready_i. Answers to walks and to raw requests are pulses.

`default_nettype none

module csrec_mmu_rd #(
  parameter int unsigned Depth = 64,  // bursts outstanding
  parameter int unsigned CliW = 4,
  parameter int unsigned SlotW = 6,
  parameter int unsigned RingW = 7
) (
  input  wire logic             clk_i,
  input  wire logic             rst_ni,

  input  wire logic             seg_valid_i,
  output      logic             seg_ready_o,
  input  wire logic [1:0]       seg_kind_i,
  input  wire logic             seg_last_i,
  input  wire logic [5:0]       seg_lane_i,
  input  wire logic [12:0]      seg_bytes_i,
  input  wire logic [CliW-1:0]  seg_client_i,
  input  wire logic [SlotW-1:0] seg_slot_i,
  input  wire logic [RingW-1:0] seg_ring_i,

  input  wire logic             r_valid_i,
  output      logic             r_ready_o,
  input  wire logic [511:0]     r_data_i,
  input  wire logic             r_err_i,

  output      logic             out_valid_o,
  input  wire logic             out_ready_i,
  output      logic             out_beat_o,
  output      logic [RingW-1:0] out_ring_o,
  output      logic [511:0]     out_data_o,
  output      logic             out_end_o,
  output      logic             out_err_o,
  output      logic [CliW-1:0]  out_client_o,
  output      logic [SlotW-1:0] out_slot_o,

  output      logic             walk_valid_o,
  output      logic             walk_err_o,
  output      logic [63:0]      walk_data_o,
  output      logic             raw_valid_o,
  output      logic             raw_err_o,
  output      logic [511:0]     raw_data_o
);

  localparam logic [1:0] SegRaw = 2'd1;
  localparam logic [1:0] SegWalk = 2'd2;
  localparam logic [1:0] SegFail = 2'd3;

  localparam int unsigned EntryW = 2 + 1 + 6 + 13 + CliW + SlotW + RingW;
  logic             valid, pop;
  logic [1:0]       kind;
  logic             last;
  logic [5:0]       lane0;
  logic [12:0]      bytes;
  logic [CliW-1:0]  client;
  logic [SlotW-1:0] slot;
  logic [RingW-1:0] ring;

  csrec_fifo #(
    .Width(EntryW),
    .Depth(Depth)
  ) u_segs (
    .clk_i,
    .rst_ni,
    .in_valid_i (seg_valid_i),
    .in_ready_o (seg_ready_o),
    .in_data_i  ({seg_kind_i, seg_last_i, seg_lane_i, seg_bytes_i, seg_client_i, seg_slot_i,
                  seg_ring_i}),
    .out_valid_o(valid),
    .out_ready_i(pop),
    .out_data_o ({kind, last, lane0, bytes, client, slot, ring})
  );

  // Bytes of the beat that comes: n from lane on
  logic             first_q;  // it begins its segment
  logic             fresh_q;  // the segment begins its request
  logic [12:0]      left_q, left;
  logic [5:0]       lane;
  logic [6:0]       n, whole;
  logic             seg_end, req_end;
  assign lane = first_q ? lane0 : '0;
  assign left = first_q ? bytes : left_q;
  assign whole = 7'd64 - {1'b0, lane};
  assign n = left < 13'(whole) ? left[6:0] : whole;
  assign seg_end = left <= 13'(whole);
  assign req_end = seg_end && last;

  // Bytes not yet in the ring: fill_q of them
  logic [511:0]     pack_q;
  logic [5:0]       fill_q;
  logic [RingW-1:0] ring_q;
  logic             flush_q, err_q;
  logic [6:0]       total;
  logic [511:0]     low;
  logic [1023:0]    sum;
  logic [63:0]      keep;
  logic             move, free, data, bad, put;

  assign free = !out_valid_o || out_ready_i;
  assign data = valid && !kind[1] && kind != SegRaw;
  assign r_ready_o = valid && kind != SegFail && (!data || free && !flush_q);
  assign move = r_valid_i && r_ready_o && data;
  assign bad = r_err_i || (!fresh_q && err_q);
  assign total = {1'b0, fresh_q ? 6'd0 : fill_q} + n;
  assign put = move && !bad && (total[6] || req_end);

  always_comb begin
    low = '0;
    keep = '0;
    sum = '0;
    if (move) begin
      low = r_data_i >> {lane, 3'b000};
      keep = n[6] ? '1 : ~(64'hffff_ffff_ffff_ffff << n[5:0]);
      for (int unsigned i = 0; i < 64; i++) begin
        if (!keep[i]) low[8*i+:8] = 8'h00;
      end
      sum = fresh_q ? 1024'(low) : 1024'(pack_q) | 1024'(low) << {fill_q, 3'b000};
    end
  end

  assign pop = valid && (kind == SegFail ? free && !flush_q :
                         r_valid_i && r_ready_o && (kind[1] || kind == SegRaw || seg_end));

  always_ff @(posedge clk_i) begin
    if (out_ready_i) out_valid_o <= 1'b0;
    if (flush_q && free) begin
      out_valid_o <= 1'b1;
      out_beat_o <= 1'b1;
      out_ring_o <= ring_q;
      out_data_o <= pack_q;
      out_end_o <= 1'b1;
      flush_q <= 1'b0;
    end
    if (move) begin
      first_q <= seg_end;
      left_q <= left - 13'(n);
      fresh_q <= req_end;
      err_q <= bad;
      pack_q <= total[6] ? sum[1023:512] : sum[511:0];
      fill_q <= total[5:0];
      ring_q <= (fresh_q ? ring : ring_q) + RingW'(put);
      out_valid_o <= put || req_end;
      out_beat_o <= put;
      out_ring_o <= fresh_q ? ring : ring_q;
      out_data_o <= sum[511:0];
      out_end_o <= req_end && (bad || total <= 7'd64);
      out_err_o <= bad;
      out_client_o <= client;
      out_slot_o <= slot;
      flush_q <= req_end && !bad && total > 7'd64;
    end
    if (pop && kind == SegFail) begin
      fresh_q <= 1'b1;
      out_valid_o <= 1'b1;
      out_beat_o <= 1'b0;
      out_end_o <= 1'b1;
      out_err_o <= 1'b1;
      out_client_o <= client;
      out_slot_o <= slot;
    end

    walk_valid_o <= rst_ni && pop && kind == SegWalk;
    walk_err_o <= r_err_i;
    if (pop && kind == SegWalk) walk_data_o <= r_data_i[64*lane0[5:3]+:64];
    raw_valid_o <= rst_ni && pop && kind == SegRaw;
    raw_err_o <= r_err_i;
    if (pop && kind == SegRaw) raw_data_o <= r_data_i;

    if (!rst_ni) begin
      first_q <= 1'b1;
      fresh_q <= 1'b1;
      flush_q <= 1'b0;
      out_valid_o <= 1'b0;
    end
  end

endmodule

`default_nettype wire
