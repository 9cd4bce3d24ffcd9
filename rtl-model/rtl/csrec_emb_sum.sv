// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Sums of bags for EMB: Banks banks of MaxDim fp32 sums, 16 elements a cycle. While one bag is
// added up, those before it are written out.
//
// in_*: one step, elements 16 * in_part_i on of a row: sum = add(sum, mul(in_w_i, x)), from +0
// if in_first_i. Multiplying by 1.0 changes no bit that the addition would not, so rows without
// weights use that. Two steps to the same sums are at least FP_LAT cycles apart: in_ready_o
// waits for that. in_tag_i comes back as out_tag_o with out_valid_o when the step's sums can
// be read, 2 * FP_LAT + 1 cycles after it.
//
// rd_data_o is what bank rd_bank_i has at rd_part_i, combinationally.
`default_nettype none

module csrec_emb_sum #(
  parameter int unsigned MaxDim = 256,  // multiple of 16
  parameter int unsigned Banks  = 8,    // power of two
  parameter int unsigned PartW  = 4     // at least log2 of MaxDim / 16
) (
  input  wire                     clk_i,
  input  wire                     rst_ni,

  input  wire                     in_valid_i,
  output wire                     in_ready_o,
  input  wire [$clog2(Banks)-1:0] in_bank_i,
  input  wire         [PartW-1:0] in_part_i,
  input  wire                     in_first_i,
  input  wire                     in_tag_i,
  input  wire              [31:0] in_w_i,
  input  wire             [511:0] in_x_i,

  output wire                     out_valid_o,
  output wire                     out_tag_o,
  output wire [$clog2(Banks)-1:0] out_bank_o,

  input  wire [$clog2(Banks)-1:0] rd_bank_i,
  input  wire         [PartW-1:0] rd_part_i,
  output wire             [511:0] rd_data_o
);

  localparam int unsigned Lat   = csrec_pkg::FP_LAT;
  localparam int unsigned BankW = $clog2(Banks);
  localparam int unsigned AddrW = BankW + PartW;

  logic [511:0] sum_q [0:(1<<AddrW)-1];

  // Stage 0 has the operands; Lat cycles on a product, of which the last also reads the sums;
  // Lat more and the new sums are at hand, in stage Last.
  localparam int unsigned Last = 2 * Lat;
  logic             [Last:0] valid_q, first_q, tag_q;
  logic  [Last:0][AddrW-1:0] addr_q;
  logic               [31:0] w_q;
  logic              [511:0] x_q, old_q;
  wire               [511:0] prod, sum;
  wire           [AddrW-1:0] in_addr = {in_bank_i, in_part_i};
  logic                      clash;

  // What enters now is added when a step that entered Lat cycles before has its sums.
  always_comb begin
    clash = 1'b0;
    for (int unsigned i = 0; i < Lat - 1; i++) begin
      if (valid_q[i] && addr_q[i] == in_addr) clash = 1'b1;
    end
  end

  assign in_ready_o = !clash;

  wire take = in_valid_i && in_ready_o;

  // The sums of the last stage may be wanted in the very cycle they come, or the next.
  wire now   = valid_q[Last] && addr_q[Last] == addr_q[Lat];
  wire later = valid_q[Last] && addr_q[Last] == addr_q[Lat-1];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= '0;
    else valid_q <= {valid_q[Last-1:0], take};
  end

  // While nothing moves the operands keep their values, so that the arithmetic rests.
  always_ff @(posedge clk_i) begin
    if (take) begin
      w_q <= in_w_i;
      x_q <= in_x_i;
    end
    first_q <= {first_q[Last-1:0], in_first_i};
    tag_q   <= {tag_q[Last-1:0], in_tag_i};
    addr_q  <= {addr_q[Last-1:0], in_addr};
    if (valid_q[Lat-1]) old_q <= later ? sum : sum_q[addr_q[Lat-1]];
    if (valid_q[Last]) sum_q[addr_q[Last]] <= sum;
  end

  for (genvar l = 0; l < 16; l++) begin : gen_lane
    csrec_fp_mul u_mul (
      .clk_i (clk_i),
      .a_i   (w_q),
      .b_i   (x_q[32*l +: 32]),
      .y_o   (prod[32*l +: 32])
    );
    csrec_fp_add u_add (
      .clk_i (clk_i),
      .a_i   (first_q[Lat] ? 32'd0 : now ? sum[32*l +: 32] : old_q[32*l +: 32]),
      .b_i   (prod[32*l +: 32]),
      .y_o   (sum[32*l +: 32])
    );
  end

  // In the cycle after the last stage the sums are in their place.
  logic             out_valid_q, out_tag_q;
  logic [BankW-1:0] out_bank_q;
  always_ff @(posedge clk_i) begin
    out_valid_q <= rst_ni && valid_q[Last];
    out_tag_q   <= tag_q[Last];
    out_bank_q  <= addr_q[Last][AddrW-1 -: BankW];
  end
  assign out_valid_o = out_valid_q;
  assign out_tag_o   = out_tag_q;
  assign out_bank_o  = out_bank_q;
  assign rd_data_o   = sum_q[{rd_bank_i, rd_part_i}];

  if (MaxDim / 16 > (1 << PartW)) begin : gen_bad_part
    $error("PartW: too few bits for MaxDim");
  end

endmodule

`default_nettype wire
