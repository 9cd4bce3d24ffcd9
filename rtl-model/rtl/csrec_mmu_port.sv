// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// One mem client's outstanding requests, in their order, and the ring of beats in which its
// READs arrive. A READ gets its place in the ring when it is taken, so that data never waits
// for the client while it is on a bus; beats of different READs may arrive in any order.
//
// can_o: req_* may be taken now. WRITEs outstanding at the same time name the same key, since
// only then their data is wanted in their order. take_i takes it, as slot_o, with its first
// beat at ring_o.
// stat_*: what came of its checks; stat_end_i, that this ends it. beat_*: a beat is in the
// ring. end_*: it is over; a READ's comes with its last beat, or, if it fails, after the last.
// head_*: what the client can get next, a beat, an answer, or both; not both false: one
// beat of what failed is skipped. It is done when head_take_i is high.
// drain_i: drained_o falls and rises again when all that is outstanding now is answered.

`default_nettype none

module csrec_mmu_port #(
  parameter int unsigned Slots = 64,  // power of two
  parameter int unsigned SlotW = 6,   // at least its logarithm
  parameter int unsigned Beats = 128  // power of two, at least 64
) (
  input  wire logic                     clk_i,
  input  wire logic                     rst_ni,

  input  wire logic                     req_valid_i,
  input  wire logic [1:0]               req_op_i,
  input  wire logic [31:0]              req_key_i,
  input  wire logic [12:0]              req_len_i,
  output      logic                     can_o,
  output      logic                     quiet_o,  // no WRITE is outstanding
  input  wire logic                     take_i,
  output      logic [SlotW-1:0]         slot_o,
  output      logic [$clog2(Beats)-1:0] ring_o,

  input  wire logic                     stat_valid_i,
  input  wire logic [SlotW-1:0]         stat_slot_i,
  input  wire logic [7:0]               stat_status_i,
  input  wire logic                     stat_end_i,

  input  wire logic                     beat_valid_i,
  input  wire logic [$clog2(Beats)-1:0] beat_ring_i,
  input  wire logic [3:0]               end_valid_i,
  input  wire logic [4*SlotW-1:0]       end_slot_i,
  input  wire logic [3:0]               end_err_i,

  output      logic                     head_valid_o,
  output      logic                     head_data_o,
  output      logic                     head_last_o,
  output      logic                     head_rsp_o,
  output      logic [7:0]               head_status_o,
  output      logic [$clog2(Beats)-1:0] head_ring_o,
  input  wire logic                     head_take_i,

  input  wire logic                     drain_i,
  output      logic                     drained_o
);

  localparam int unsigned W = $clog2(Slots);
  localparam int unsigned RingW = $clog2(Beats);

  logic [W-1:0]     put_q, get_q;
  logic [W:0]       count_q, drain_q, writes_q;
  logic [31:0]      write_key_q;
  logic [RingW-1:0] alloc_q, head_q;
  logic [RingW:0]   free_q;
  logic [6:0]       sent_q;             // beats of the oldest request that are done with
  logic [Slots-1:0] end_q, err_q;
  logic [Beats-1:0] full_q;
  logic [8:0]       info_q [0:Slots-1]; // {WRITE, READ, its beats}
  logic [7:0]       stat_q [0:Slots-1];

  // --------------------------------------------------------------- requests
  logic       read, write;
  logic [6:0] beats;
  assign read = req_op_i == csrec_pkg::MEM_READ;
  assign write = req_op_i == csrec_pkg::MEM_WRITE;
  assign beats = read ? req_len_i[12:6] + 7'(req_len_i[5:0] != '0) : '0;
  assign can_o = req_valid_i && !count_q[W] && 32'(free_q) >= 32'(beats) &&
                 (!write || writes_q == '0 || req_key_i == write_key_q);
  assign quiet_o = writes_q == '0;
  assign slot_o = SlotW'(put_q);
  assign ring_o = alloc_q;

  // ------------------------------------------------------------- the oldest
  logic       head_write, head_read, over, bad, more, head_last;
  logic [6:0] head_beats;
  assign {head_write, head_read, head_beats} = info_q[get_q];
  assign over = count_q != '0 && end_q[get_q];
  assign bad = over && (err_q[get_q] || stat_q[get_q] != csrec_pkg::ST_OK);
  assign more = head_read && sent_q != head_beats;
  assign head_last = sent_q + 7'd1 == head_beats;

  assign head_data_o = count_q != '0 && more && !bad && full_q[head_q];
  assign head_last_o = head_last;
  assign head_rsp_o = more ? (head_data_o || bad) && head_last : over;
  assign head_valid_o = head_data_o || over && (bad || !more);
  assign head_status_o = !bad ? csrec_pkg::ST_OK :
                         stat_q[get_q] != csrec_pkg::ST_OK ? stat_q[get_q] :
                         csrec_pkg::ST_BUS_ERROR;
  assign head_ring_o = head_q;

  logic step, done;
  assign step = head_take_i && more;
  assign done = head_take_i && head_rsp_o;
  assign drained_o = drain_q == '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      put_q <= '0;
      get_q <= '0;
      count_q <= '0;
      drain_q <= '0;
      writes_q <= '0;
      alloc_q <= '0;
      head_q <= '0;
      free_q <= (RingW+1)'(Beats);
      sent_q <= '0;
      end_q <= '0;
      err_q <= '0;
      full_q <= '0;
    end else begin
      if (take_i) begin
        put_q <= put_q + 1'b1;
        alloc_q <= alloc_q + RingW'(beats);
      end
      if (step) begin
        head_q <= head_q + 1'b1;
        full_q[head_q] <= 1'b0;
        sent_q <= sent_q + 7'd1;
      end
      if (stat_valid_i && stat_end_i) end_q[stat_slot_i[W-1:0]] <= 1'b1;
      if (beat_valid_i) full_q[beat_ring_i] <= 1'b1;
      for (int unsigned i = 0; i < 4; i++) begin
        if (end_valid_i[i]) begin
          end_q[end_slot_i[SlotW*i+:W]] <= 1'b1;
          if (end_err_i[i]) err_q[end_slot_i[SlotW*i+:W]] <= 1'b1;
        end
      end
      if (done) begin
        get_q <= get_q + 1'b1;
        sent_q <= '0;
        end_q[get_q] <= 1'b0;
        err_q[get_q] <= 1'b0;
      end
      count_q <= count_q + (W+1)'(take_i) - (W+1)'(done);
      writes_q <= writes_q + (W+1)'(take_i && write) - (W+1)'(done && head_write);
      free_q <= free_q - (take_i ? (RingW+1)'(beats) : '0) + (RingW+1)'(step);
      if (drain_i) drain_q <= count_q - (W+1)'(done);
      else if (done && drain_q != '0) drain_q <= drain_q - 1'b1;
    end
    if (take_i) info_q[put_q] <= {write, read, beats};
    if (take_i && write) write_key_q <= req_key_i;
    if (stat_valid_i) stat_q[stat_slot_i[W-1:0]] <= stat_status_i;
  end

  logic unused;
  assign unused = &{1'b0, stat_slot_i, end_slot_i};

endmodule

`default_nettype wire
