// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Reads an array of 32-bit words from memory, ahead of its consumer, and hands them out
// one by one in order.
//
// start_i (one cycle) takes off_i and count_i and forgets what was before; no READ of
// this stream may be outstanding then. READs are at most 1 KiB and are requested only
// when the buffer has room for all of their data: a beat is always taken.
`default_nettype none

module csrec_stream (
  input  wire          clk_i,
  input  wire          rst_ni,

  input  wire          start_i,
  input  wire   [63:0] off_i,
  input  wire   [32:0] count_i,

  output wire          req_valid_o,
  input  wire          req_ready_i,
  output wire   [63:0] req_off_o,
  output wire   [12:0] req_len_o,

  input  wire          beat_valid_i,
  input  wire  [511:0] beat_i,

  output wire          out_valid_o,
  input  wire          out_ready_i,
  output wire   [31:0] out_o
);

  localparam int unsigned ChunkWords = 256;  // 16 beats
  localparam int unsigned Depth      = 32;   // beats

  // requests
  logic  [63:0] off_q;
  logic  [32:0] left_q;                      // words not yet requested
  logic   [5:0] room_q;                      // beats not promised to a READ

  wire    [8:0] words = left_q > 33'(ChunkWords) ? 9'(ChunkWords) : left_q[8:0];
  wire    [5:0] beats = {1'b0, words[8:4]} + {5'd0, words[3:0] != '0};
  wire          ask   = req_valid_o && req_ready_i;

  assign req_valid_o = left_q != '0 && room_q >= beats;
  assign req_off_o   = off_q;
  assign req_len_o   = {2'd0, words, 2'd0};

  // buffer, and the beat being handed out
  logic [511:0] mem_q [Depth];
  logic   [4:0] wr_q, rd_q;
  logic   [5:0] fill_q;
  logic [511:0] head_q;
  logic         head_valid_q;
  logic   [3:0] idx_q;
  logic  [32:0] todo_q;                      // words not yet handed out

  wire          pop  = out_valid_o && out_ready_i;
  wire          load = fill_q != '0 && (!head_valid_q || (pop && idx_q == 4'd15));

  assign out_valid_o = head_valid_q && todo_q != '0;
  assign out_o       = head_q[{idx_q, 5'd0} +: 32];

  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) begin
      left_q       <= rst_ni ? count_i : '0;
      todo_q       <= rst_ni ? count_i : '0;
      room_q       <= 6'(Depth);
      fill_q       <= '0;
      wr_q         <= '0;
      rd_q         <= '0;
      idx_q        <= '0;
      head_valid_q <= 1'b0;
    end else begin
      if (ask) left_q <= left_q - 33'(words);
      room_q <= room_q - (ask ? beats : '0) + 6'(load);
      fill_q <= fill_q + 6'(beat_valid_i) - 6'(load);
      if (beat_valid_i) wr_q <= wr_q + 5'd1;
      if (load) rd_q <= rd_q + 5'd1;
      if (pop) begin
        idx_q  <= idx_q + 4'd1;
        todo_q <= todo_q - 33'd1;
      end
      if (load) head_valid_q <= 1'b1;
      else if (pop && idx_q == 4'd15) head_valid_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i) off_q <= off_i;
    else if (ask) off_q <= off_q + 64'(req_len_o);
    if (beat_valid_i) mem_q[wr_q] <= beat_i;
    if (load) head_q <= mem_q[rd_q];
  end

endmodule

`default_nettype wire
