// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Sums of a bag: two banks of MaxDim fp32 sums, of which one can be filled while the
// other is being written out.
//
// in_*: one step, Lanes elements of a row with element Lanes * in_addr_i first: sum =
// add(sum, mul(in_w_i, x)), from +0 if in_first_i. Multiplying by 1.0 changes no bit
// that the addition would not, so rows without weights use that. A step waits until the
// previous one to the same sums is far enough ahead. idle_o: all sums are in place.
//
// out_start_i hands out bank out_bank_i (zeros if out_zero_i) as out_beats_i beats of 16
// elements. What the last beat has beyond the row is not defined. The bank must be
// complete and must stay until the last beat is taken; out_stop_i breaks off.
`default_nettype none

module csrec_bag_acc #(
  parameter int unsigned Lanes  = 4,  // 1, 2, 4 or 8
  parameter int unsigned MaxDim = 256
) (
  input  wire                            clk_i,
  input  wire                            rst_ni,

  input  wire                            in_valid_i,
  output wire                            in_ready_o,
  input  wire                            in_bank_i,
  input  wire [$clog2(MaxDim/Lanes)-1:0] in_addr_i,
  input  wire                            in_first_i,
  input  wire                     [31:0] in_w_i,
  input  wire             [32*Lanes-1:0] in_x_i,
  output wire                            idle_o,

  input  wire                            out_start_i,
  input  wire                            out_stop_i,
  input  wire                            out_bank_i,
  input  wire                            out_zero_i,
  input  wire   [$clog2(MaxDim/16+1)-1:0] out_beats_i,
  output wire                            out_valid_o,
  input  wire                            out_ready_i,
  output wire                    [511:0] out_data_o
);

  localparam int unsigned FpLat = csrec_pkg::FP_LAT;
  localparam int unsigned AddrW = $clog2(MaxDim / Lanes) + 1;  // with the bank
  localparam int unsigned Parts = 16 / Lanes;                  // of a beat
  localparam int unsigned PartW = $clog2(Parts);
  localparam int unsigned BeatsW = $clog2(MaxDim / 16 + 1);
  localparam int unsigned Busy  = FpLat + 1;                   // stages that block

  logic [32*Lanes-1:0] sum_q [2**AddrW];

  // Operand registers, then FpLat cycles of multiplication, of which the last also
  // reads the sums, then FpLat of addition. Stage 0 holds the operands.
  logic                [2*FpLat:0] valid_q;
  logic                  [FpLat:0] first_q;
  logic     [2*FpLat:0][AddrW-1:0] addr_q;
  logic                     [31:0] w_q;
  logic             [32*Lanes-1:0] x_q, old_q;
  wire              [32*Lanes-1:0] prod, sum;
  wire                 [AddrW-1:0] in_addr = {in_bank_i, in_addr_i};
  logic                            clash;

  // A step that enters now reads its sums FpLat cycles on. The step in stage Busy - 1
  // writes its own in that very cycle, which is too late, as it is for those behind it.
  always_comb begin
    clash = 1'b0;
    for (int unsigned i = 0; i < Busy; i++) begin
      if (valid_q[i] && addr_q[i] == in_addr) clash = 1'b1;
    end
  end

  assign in_ready_o = !clash;
  assign idle_o     = valid_q == '0;

  wire take = in_valid_i && in_ready_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= '0;
    else valid_q <= {valid_q[2*FpLat-1:0], take};
  end

  // While nothing moves the operands keep their values, so that the arithmetic rests.
  always_ff @(posedge clk_i) begin
    if (take) begin
      w_q <= in_w_i;
      x_q <= in_x_i;
    end
    first_q <= {first_q[FpLat-1:0], in_first_i};
    addr_q  <= {addr_q[2*FpLat-1:0], in_addr};
    if (valid_q[FpLat-1]) old_q <= sum_q[addr_q[FpLat-1]];
    if (valid_q[2*FpLat]) sum_q[addr_q[2*FpLat]] <= sum;
  end

  for (genvar l = 0; l < Lanes; l++) begin : gen_lane
    csrec_fp_mul u_mul (
      .clk_i (clk_i),
      .a_i   (w_q),
      .b_i   (x_q[32*l +: 32]),
      .y_o   (prod[32*l +: 32])
    );
    csrec_fp_add u_add (
      .clk_i (clk_i),
      .a_i   (first_q[FpLat] ? 32'd0 : old_q[32*l +: 32]),
      .b_i   (prod[32*l +: 32]),
      .y_o   (sum[32*l +: 32])
    );
  end

  // Writing out: read a part a cycle, collect a beat, offer it.
  logic                busy_q, zero_q, got_q, full_q;
  logic    [AddrW-1:0] part_addr_q;
  logic    [PartW-1:0] part_q, got_part_q;
  logic   [BeatsW-1:0] beats_q;
  logic [32*Lanes-1:0] part_data_q;
  logic        [511:0] beat_q;

  wire read = busy_q && beats_q != '0 && !full_q && !(got_q && got_part_q == '1);
  wire sent = full_q && out_ready_i;

  assign out_valid_o = full_q;
  assign out_data_o  = zero_q ? '0 : beat_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || out_stop_i) begin
      busy_q <= 1'b0;
      got_q  <= 1'b0;
      full_q <= 1'b0;
    end else if (out_start_i) begin
      busy_q      <= 1'b1;
      zero_q      <= out_zero_i;
      part_addr_q <= {out_bank_i, {(AddrW-1){1'b0}}};
      part_q      <= '0;
      beats_q     <= out_beats_i;
    end else begin
      got_q <= read;
      if (read) begin
        part_addr_q <= part_addr_q + 1'b1;
        part_q      <= part_q + 1'b1;
        got_part_q  <= part_q;
        if (part_q == '1) beats_q <= beats_q - 1'b1;
      end
      if (got_q && got_part_q == '1) full_q <= 1'b1;
      else if (sent) full_q <= 1'b0;
      if (sent && beats_q == '0) busy_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (read) part_data_q <= sum_q[part_addr_q];
    if (got_q) beat_q <= {part_data_q, beat_q[511:32*Lanes]};
  end

endmodule

`default_nettype wire
