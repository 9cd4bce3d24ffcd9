// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// AW, W and B of one bus: fetches the data of a WRITE from its client, cuts it into the bursts
// of its segments, and counts their answers. A beat a cycle within a segment; a segment takes
// a cycle longer than its beats.
//
// A request that fails before it has all its data leaves the client's stream of data out of
// step: those behind it, up to the last that is outstanding (quiet_i), fail without a beat.
//
// client_o names the client of which take_o takes data. A raw request's data is raw_data_i,
// which must stay. end_* and raw_* are pulses, in the order of the segments.

`default_nettype none

module csrec_mmu_wr #(
  parameter int unsigned Depth = 16,  // segments waiting, and bursts without an answer
  parameter int unsigned NumClients = 9,
  parameter int unsigned CliW = 4,
  parameter int unsigned SlotW = 6
) (
  input  wire logic             clk_i,
  input  wire logic             rst_ni,

  input  wire logic             seg_valid_i,
  output      logic             seg_ready_o,
  input  wire logic [1:0]       seg_kind_i,
  input  wire logic             seg_last_i,
  input  wire logic [63:0]      seg_addr_i,
  input  wire logic [12:0]      seg_bytes_i,
  input  wire logic [CliW-1:0]  seg_client_i,
  input  wire logic [SlotW-1:0] seg_slot_i,
  input  wire logic [12:0]      seg_len_i,   // of the request

  input  wire logic [NumClients-1:0] quiet_i,  // has no WRITE outstanding
  output      logic [CliW-1:0]  client_o,
  output      logic             take_o,
  input  wire logic             take_valid_i,
  input  wire logic [511:0]     take_data_i,
  input  wire logic [127:0]     raw_data_i,

  output      logic             aw_valid_o,
  input  wire logic             aw_ready_i,
  output      logic [63:0]      aw_addr_o,
  output      logic [7:0]       aw_len_o,
  output      logic [12:0]      aw_bytes_o,
  output      logic             w_valid_o,
  input  wire logic             w_ready_i,
  output      logic [511:0]     w_data_o,
  output      logic [63:0]      w_strb_o,
  output      logic             w_last_o,
  input  wire logic             b_valid_i,
  output      logic             b_ready_o,
  input  wire logic             b_err_i,

  output      logic             end_valid_o,
  output      logic             end_err_o,
  output      logic [CliW-1:0]  end_client_o,
  output      logic [SlotW-1:0] end_slot_o,
  output      logic             raw_valid_o,
  output      logic             raw_err_o
);

  localparam logic [1:0] SegRaw = 2'd1;
  localparam logic [1:0] SegFail = 2'd3;

  localparam int unsigned EntryW = 2 + 1 + 64 + 13 + CliW + SlotW + 13;
  logic             valid, pop;
  logic [1:0]       kind;
  logic             last;
  logic [63:0]      addr;
  logic [12:0]      bytes, len;
  logic [CliW-1:0]  client;
  logic [SlotW-1:0] slot;

  csrec_fifo #(
    .Width(EntryW),
    .Depth(Depth)
  ) u_segs (
    .clk_i,
    .rst_ni,
    .in_valid_i (seg_valid_i),
    .in_ready_o (seg_ready_o),
    .in_data_i  ({seg_kind_i, seg_last_i, seg_addr_i, seg_bytes_i, seg_client_i, seg_slot_i,
                  seg_len_i}),
    .out_valid_o(valid),
    .out_ready_i(pop),
    .out_data_o ({kind, last, addr, bytes, client, slot, len})
  );

  // The beat to be made: n bytes from lane on
  logic        first_q;   // it begins its segment
  logic        fresh_q;   // nothing of the request has been taken or made
  logic        asked_q;   // the segment's AW is out
  logic [12:0] left_q, left;
  logic [5:0]  lane;
  logic [6:0]  n, whole;
  logic        seg_end;
  assign lane = first_q ? addr[5:0] : '0;
  assign left = first_q ? bytes : left_q;
  assign whole = 7'd64 - {1'b0, lane};
  assign n = left < 13'(whole) ? left[6:0] : whole;
  assign seg_end = left <= 13'(whole);

  // Bytes from the client that are not yet made into beats
  logic [1023:0] pack_q, rest;
  logic [7:0]    fill_q, kept;
  logic [6:0]    want_q, want;  // beats the client still has to give
  logic          put, got, ask, raw, fail;
  logic          b_put, b_room;

  logic [NumClients-1:0] astray_q;  // data out of step
  logic                  entry_last;

  assign raw = kind == SegRaw;
  assign fail = kind == SegFail || (!raw && astray_q[client]);
  assign entry_last = last || kind == SegFail;
  assign ask = valid && !fail && !asked_q && (!aw_valid_o || aw_ready_i) && b_room;
  assign put = valid && !fail && asked_q && (raw || fill_q >= 8'(n)) &&
               (!w_valid_o || w_ready_i);
  assign kept = fill_q - (put && !raw ? 8'(n) : '0);
  assign want = fresh_q ? len[12:6] + 7'(len[5:0] != '0) : want_q;
  assign client_o = client;
  assign take_o = valid && !raw && !fail && want != '0 && kept < 8'd64;
  assign got = take_o && take_valid_i;
  assign rest = put ? pack_q >> {n, 3'b000} : pack_q;
  assign b_put = ask || (valid && fail && b_room);
  assign pop = put && seg_end || (valid && fail && b_room);

  always_ff @(posedge clk_i) begin
    if (aw_ready_i) aw_valid_o <= 1'b0;
    if (w_ready_i) w_valid_o <= 1'b0;
    if (ask) begin
      asked_q <= 1'b1;
      aw_valid_o <= 1'b1;
      aw_addr_o <= {addr[63:6], 6'd0};
      aw_len_o <= 8'((13'(addr[5:0]) + bytes - 13'd1) >> 6);
      aw_bytes_o <= bytes;
    end
    if (got) begin
      want_q <= want - 7'd1;
      fresh_q <= 1'b0;
    end
    if (got || put) begin
      pack_q <= got ? rest | 1024'(take_data_i) << {kept[5:0], 3'b000} : rest;
      fill_q <= kept + (got ? 8'd64 : '0);
    end
    if (put) begin
      w_valid_o <= 1'b1;
      w_data_o <= 512'((raw ? 512'(raw_data_i) : pack_q[511:0]) << {lane, 3'b000});
      w_strb_o <= (n[6] ? '1 : ~(64'hffff_ffff_ffff_ffff << n[5:0])) << lane;
      w_last_o <= seg_end;
      first_q <= seg_end;
      left_q <= left - 13'(n);
    end
    if (pop) begin
      asked_q <= 1'b0;
      if (entry_last || fail) begin
        fresh_q <= 1'b1;
        pack_q <= '0;
        fill_q <= '0;
      end
    end
    astray_q <= astray_q & ~quiet_i;
    if (valid && kind == SegFail) astray_q[client] <= 1'b1;
    if (!rst_ni) begin
      astray_q <= '0;
      first_q <= 1'b1;
      fresh_q <= 1'b1;
      asked_q <= 1'b0;
      fill_q <= '0;
      pack_q <= '0;
      aw_valid_o <= 1'b0;
      w_valid_o <= 1'b0;
    end
  end

  // ---------------------------------------------------------------- answers
  logic             b_valid, b_pop, b_last, b_bad_q;
  logic [1:0]       b_kind;
  logic [CliW-1:0]  b_client;
  logic [SlotW-1:0] b_slot;

  csrec_fifo #(
    .Width(2 + 1 + CliW + SlotW),
    .Depth(Depth)
  ) u_answers (
    .clk_i,
    .rst_ni,
    .in_valid_i (b_put),
    .in_ready_o (b_room),
    .in_data_i  ({fail ? SegFail : kind, entry_last, client, slot}),
    .out_valid_o(b_valid),
    .out_ready_i(b_pop),
    .out_data_o ({b_kind, b_last, b_client, b_slot})
  );

  assign b_ready_o = b_valid && b_kind != SegFail;
  assign b_pop = b_kind == SegFail || b_valid_i;

  always_ff @(posedge clk_i) begin
    end_valid_o <= 1'b0;
    raw_valid_o <= 1'b0;
    if (b_valid && b_pop) begin
      end_valid_o <= b_kind != SegRaw && b_last;
      end_err_o <= b_bad_q || b_kind == SegFail || b_err_i;
      end_client_o <= b_client;
      end_slot_o <= b_slot;
      raw_valid_o <= b_kind == SegRaw;
      raw_err_o <= b_err_i;
      b_bad_q <= !b_last && (b_bad_q || b_kind == SegFail || b_err_i);
    end
    if (!rst_ni) begin
      end_valid_o <= 1'b0;
      raw_valid_o <= 1'b0;
      b_bad_q <= 1'b0;
    end
  end

endmodule

`default_nettype wire
