// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Cuts the checked requests for one bus into segments that cross neither a 4 KiB boundary nor
// a page; each becomes one INCR burst of full 64-byte beats. One segment a cycle where there
// is no page list to read.
//
// Reads go out on AR, with an entry for csrec_mmu_rd for each; writes become entries for
// csrec_mmu_wr. With Walk, page lists are read on the same AR, a beat of 8 bytes an entry; the
// last page of each client is remembered until flush_i. A walk that fails ends its request by
// an entry without a burst. A raw request (64 bytes to read or 16 to write at raw_addr_i) goes
// before the next one of the others.

`default_nettype none

module csrec_mmu_seg #(
  parameter bit          Walk = 1'b0,
  parameter int unsigned NumClients = 9,
  parameter int unsigned CliW = 4,
  parameter int unsigned SlotW = 6,
  parameter int unsigned RingW = 7
) (
  input  wire logic             clk_i,
  input  wire logic             rst_ni,
  input  wire logic             flush_i,

  input  wire logic             in_valid_i,
  output      logic             in_ready_o,
  input  wire logic             in_write_i,
  input  wire logic [CliW-1:0]  in_client_i,
  input  wire logic [SlotW-1:0] in_slot_i,
  input  wire logic [RingW-1:0] in_ring_i,
  input  wire logic [12:0]      in_len_i,
  input  wire logic [1:0]       in_levels_i,
  input  wire logic [4:0]       in_shift_i,
  input  wire logic [63:0]      in_base_i,  // as csrec_mmu_table has it
  input  wire logic [63:0]      in_byte_i,

  input  wire logic             raw_valid_i,
  output      logic             raw_ready_o,
  input  wire logic             raw_write_i,
  input  wire logic [63:0]      raw_addr_i,

  output      logic             ar_valid_o,
  input  wire logic             ar_ready_i,
  output      logic [63:0]      ar_addr_o,
  output      logic [7:0]       ar_len_o,
  output      logic [2:0]       ar_size_o,
  output      logic [12:0]      ar_bytes_o,

  output      logic             rd_valid_o,
  input  wire logic             rd_ready_i,
  output      logic [1:0]       rd_kind_o,   // Seg*
  output      logic             rd_last_o,   // of its request
  output      logic [5:0]       rd_lane_o,   // of the first byte
  output      logic [12:0]      rd_bytes_o,

  output      logic             wr_valid_o,
  input  wire logic             wr_ready_i,
  output      logic [1:0]       wr_kind_o,
  output      logic             wr_last_o,
  output      logic [63:0]      wr_addr_o,
  output      logic [12:0]      wr_bytes_o,

  output      logic [CliW-1:0]  seg_client_o, // with either
  output      logic [SlotW-1:0] seg_slot_o,
  output      logic [RingW-1:0] seg_ring_o,
  output      logic [12:0]      seg_len_o,    // of the request

  input  wire logic             walk_valid_i,
  input  wire logic             walk_err_i,
  input  wire logic [63:0]      walk_data_i
);

  localparam logic [1:0] SegData = 2'd0;
  localparam logic [1:0] SegRaw = 2'd1;
  localparam logic [1:0] SegWalk = 2'd2;
  localparam logic [1:0] SegFail = 2'd3;

  typedef enum logic [1:0] {
    StRun,
    StWalk,   // a page-list entry is to be asked for
    StWalkR,  // and awaited
    StFail
  } state_e;

  state_e      state_q;
  logic [12:0] done_q;   // bytes of the request that are cut
  logic        second_q; // the walk is at its second list
  logic [63:0] list_q;   // address of the entry to read

  // ------------------------------------------------------------ translation
  logic [63:0] page_byte, page_index, page_in, page;
  logic        paged, page_ok, page_found;
  assign paged = Walk && in_levels_i != 2'd0;
  assign page_byte = in_byte_i + 64'(done_q);
  assign page_index = page_byte >> in_shift_i;
  assign page_found = state_q == StWalkR && walk_valid_i && !walk_err_i &&
                      (in_levels_i != 2'd2 || second_q);
  assign page_in = page_byte & ~(64'hffff_ffff_ffff_ffff << in_shift_i);

  if (Walk) begin : gen_walk
    // The last page of each client: which list, which entry of it, and what it said
    localparam int unsigned TagW = 2 + 5 + 64 + 64;
    logic [TagW-1:0]       tag_q [0:NumClients-1];
    logic [51:0]           page_q [0:NumClients-1];
    logic [NumClients-1:0] known_q;
    logic [TagW-1:0]       tag;

    assign tag = {in_levels_i, in_shift_i, in_base_i, page_index};
    assign page_ok = known_q[in_client_i] && tag_q[in_client_i] == tag;
    assign page = {page_q[in_client_i], 12'd0};
    always_ff @(posedge clk_i) begin
      if (!rst_ni || flush_i) known_q <= '0;
      else if (page_found) known_q[in_client_i] <= 1'b1;
      if (page_found) begin
        tag_q[in_client_i] <= tag;
        page_q[in_client_i] <= walk_data_i[63:12];
      end
    end
  end else begin : gen_flat
    assign page_ok = 1'b0;
    assign page = '0;
    logic unused;
    assign unused = &{1'b0, flush_i, page_found, page_index};
  end

  // --------------------------------------------------------------- segments
  logic        raw, have, ar_free, rd_go, wr_go, fail;
  logic [63:0] addr;
  logic [12:0] left, room, bytes;
  logic        last;

  assign raw = raw_valid_i && state_q == StRun && done_q == '0;
  assign fail = state_q == StFail;
  assign have = raw || state_q == StRun && in_valid_i && (!paged || page_ok);
  assign addr = raw ? raw_addr_i : paged ? page + page_in : in_base_i + 64'(done_q);
  assign left = raw ? (raw_write_i ? 13'd16 : 13'd64) : in_len_i - done_q;
  assign room = 13'd4096 - {1'b0, addr[11:0]};
  assign bytes = left < room ? left : room;
  assign last = left <= room;

  logic        write, walk;
  assign write = raw ? raw_write_i : in_write_i;
  assign walk = state_q == StWalk;
  assign ar_free = !ar_valid_o || ar_ready_i;

  assign rd_valid_o = fail ? !in_write_i : (walk || have && !write) && ar_free;
  assign rd_kind_o = raw ? SegRaw : walk ? SegWalk : fail ? SegFail : SegData;
  assign rd_last_o = last;
  assign rd_lane_o = walk ? list_q[5:0] : addr[5:0];
  assign rd_bytes_o = walk ? 13'd8 : bytes;
  assign rd_go = rd_valid_o && rd_ready_i;

  assign wr_valid_o = fail ? in_write_i : have && write;
  assign wr_kind_o = raw ? SegRaw : fail ? SegFail : SegData;
  assign wr_last_o = last;
  assign wr_addr_o = addr;
  assign wr_bytes_o = bytes;
  assign wr_go = wr_valid_o && wr_ready_i;

  assign seg_client_o = in_client_i;
  assign seg_slot_o = in_slot_i;
  assign seg_ring_o = in_ring_i;
  assign seg_len_o = in_len_i;

  logic cut;  // a segment, or the end of a request that failed
  assign cut = (rd_go && !walk) || wr_go;
  assign in_ready_o = cut && !raw && (fail || last);
  assign raw_ready_o = cut && raw;

  always_ff @(posedge clk_i) begin
    if (ar_ready_i) ar_valid_o <= 1'b0;
    if (rd_go && !fail) begin
      ar_valid_o <= 1'b1;
      ar_addr_o <= walk ? list_q : {addr[63:6], 6'd0};
      ar_len_o <= walk ? '0 : 8'((13'(addr[5:0]) + bytes - 13'd1) >> 6);
      ar_size_o <= walk ? 3'd3 : 3'd6;
      ar_bytes_o <= walk ? 13'd8 : bytes;
    end
    if (cut && !raw) done_q <= fail || last ? '0 : done_q + bytes;

    case (state_q)
      StRun: begin
        second_q <= 1'b0;
        list_q <= in_base_i + {in_levels_i == 2'd2 ?
                               61'(page_index >> $clog2(csrec_pkg::PAGE_LIST_ENTRIES)) :
                               61'(page_index), 3'd0};
        if (in_valid_i && !raw && paged && !page_ok) state_q <= StWalk;
      end
      StWalk: if (rd_go) state_q <= StWalkR;
      StWalkR: begin
        if (walk_valid_i) begin
          second_q <= 1'b1;
          list_q <= {walk_data_i[63:12], page_index[8:0], 3'd0};
          state_q <= walk_err_i ? StFail : page_found ? StRun : StWalk;
        end
      end
      default: if (cut) state_q <= StRun;
    endcase

    if (!rst_ni) begin
      state_q <= StRun;
      done_q <= '0;
      ar_valid_o <= 1'b0;
    end
  end

  logic unused;
  assign unused = &{1'b0, walk_data_i};

endmodule

`default_nettype wire
