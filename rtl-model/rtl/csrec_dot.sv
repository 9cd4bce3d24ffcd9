// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Dot products in the order of REFERENCE.md section 5: eight partial sums, lane j
// taking elements k mod 8 = j, then a fixed tree. One step (eight products) a cycle.
//
// Up to 16 dot products are under way, one a slot; in_first_i and in_last_i mark a
// product's first and last step (which may be the same). Two steps of one slot must be
// at least FP_LAT + 1 cycles apart. Always ready. A result comes DOT_LAT cycles after
// its last step, so results keep the order of the last steps. Lanes beyond the end of
// the vectors must carry +0 in both operands.
`default_nettype none

module csrec_dot (
  input  wire          clk_i,
  input  wire          rst_ni,
  input  wire          in_valid_i,
  input  wire    [3:0] in_slot_i,
  input  wire          in_first_i,
  input  wire          in_last_i,
  input  wire  [255:0] in_a_i,
  input  wire  [255:0] in_b_i,
  output wire          out_valid_o,
  output wire    [3:0] out_slot_o,
  output logic  [31:0] out_y_o
);

  localparam int unsigned FpLat = csrec_pkg::FP_LAT;
  localparam int unsigned DotLat = csrec_pkg::DOT_LAT;

  // What the step in each stage is: bit or entry n is n + 1 cycles behind the input.
  logic [FpLat:0]        first_q;
  logic [2*FpLat:0]      step_q;
  logic [DotLat-1:0]     last_q;
  logic [DotLat-1:0][3:0] slot_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      step_q <= '0;
      last_q <= '0;
    end else begin
      step_q <= {step_q[2*FpLat-1:0], in_valid_i};
      last_q <= {last_q[DotLat-2:0], in_valid_i && in_last_i};
    end
  end

  always_ff @(posedge clk_i) begin
    first_q <= {first_q[FpLat-1:0], in_valid_i ? in_first_i : first_q[0]};
    slot_q  <= {slot_q[DotLat-2:0], in_valid_i ? in_slot_i : slot_q[0]};
  end

  // A lane: operand registers, product, partial sums by slot, and the complete sum. The
  // registers keep their values while nothing comes in, so that the arithmetic behind
  // them is at rest. The partial sum that is written belongs to the step that entered
  // FP_LAT cycles before the one whose sum is read, hence the distance between steps.
  wire [255:0] total;

  for (genvar j = 0; j < 8; j++) begin : gen_lane
    logic [31:0] a_q, b_q, total_q;
    logic [31:0] part_q [16];
    logic [31:0] part;
    wire  [31:0] prod, sum;

    always_comb part = first_q[FpLat] ? '0 : part_q[slot_q[FpLat]];

    always_ff @(posedge clk_i) begin
      if (in_valid_i) begin
        a_q <= in_a_i[32*j +: 32];
        b_q <= in_b_i[32*j +: 32];
      end
      if (step_q[2*FpLat]) part_q[slot_q[2*FpLat]] <= sum;
      if (last_q[2*FpLat]) total_q <= sum;
    end

    csrec_fp_mul u_mul (
      .clk_i (clk_i),
      .a_i   (a_q),
      .b_i   (b_q),
      .y_o   (prod)
    );
    csrec_fp_add u_add (
      .clk_i (clk_i),
      .a_i   (part),
      .b_i   (prod),
      .y_o   (sum)
    );
    assign total[32*j +: 32] = total_q;
  end

  // The tree takes only complete sums.
  wire  [127:0] tree1;
  wire   [63:0] tree2;

  for (genvar j = 0; j < 4; j++) begin : gen_tree1
    csrec_fp_add u_add (
      .clk_i (clk_i),
      .a_i   (total[64*j +: 32]),
      .b_i   (total[64*j+32 +: 32]),
      .y_o   (tree1[32*j +: 32])
    );
  end
  for (genvar j = 0; j < 2; j++) begin : gen_tree2
    csrec_fp_add u_add (
      .clk_i (clk_i),
      .a_i   (tree1[64*j +: 32]),
      .b_i   (tree1[64*j+32 +: 32]),
      .y_o   (tree2[32*j +: 32])
    );
  end
  csrec_fp_add u_tree3 (
    .clk_i (clk_i),
    .a_i   (tree2[31:0]),
    .b_i   (tree2[63:32]),
    .y_o   (out_y_o)
  );

  assign out_valid_o = last_q[DotLat-1];
  assign out_slot_o  = slot_q[DotLat-1];

  // operand register, product, sum, total register, three additions
  if (DotLat != 5 * FpLat + 2) begin : gen_check
    $error("csrec_dot takes 5 * FP_LAT + 2 cycles; csrec_pkg::DOT_LAT says otherwise");
  end

endmodule

`default_nettype wire
