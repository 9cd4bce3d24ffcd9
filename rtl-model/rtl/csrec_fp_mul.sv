// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// fp32 multiplier: IEEE-754, round to nearest even, subnormals kept, every NaN result
// 0x7FC00000. Takes operands every cycle; y_o belongs to the a_i, b_i of FP_LAT cycles
// before. No enable and no reset.
//
// With CSREC_FP_DPI the host's FPU computes the product behind the same number of
// registers: the same bits at the same time, faster to simulate.
`default_nettype none

module csrec_fp_mul (
  input  wire         clk_i,
  input  wire  [31:0] a_i,
  input  wire  [31:0] b_i,
  output logic [31:0] y_o
);

`ifdef CSREC_FP_DPI

  import "DPI-C" pure function int unsigned csrec_fp_mul_dpi(input int unsigned a,
                                                            input int unsigned b);

  // The host computes only when an operand changes, and once the pipeline has settled
  // nothing moves: an idle unit costs the simulator little more than a comparison.
  logic [31:0] a_q = '0, b_q = '0;
  logic [31:0] y1_q = '0, y2_q = '0, y3_q = '0;
  logic [2:0]  moving_q = '0;

  always_ff @(posedge clk_i) begin
    if (a_i != a_q || b_i != b_q) begin
      a_q      <= a_i;
      b_q      <= b_i;
      y1_q     <= csrec_fp_mul_dpi(a_i, b_i);
      moving_q <= '1;
    end else if (moving_q != '0) begin
      moving_q <= moving_q >> 1;
    end
    if (moving_q != '0) begin
      y2_q <= y1_q;
      y3_q <= y2_q;
      y_o  <= y3_q;
    end
  end

  initial y_o = '0;

`else

  // Leading zeros; 48 when there is no one.
  function automatic logic [5:0] clz48(input logic [47:0] v);
    logic [63:0] x;
    x = {v, 16'h8000};
    clz48[5] = x[63:32] == '0;
    if (clz48[5]) x = x << 32;
    clz48[4] = x[63:48] == '0;
    if (clz48[4]) x = x << 16;
    clz48[3] = x[63:56] == '0;
    if (clz48[3]) x = x << 8;
    clz48[2] = x[63:60] == '0;
    if (clz48[2]) x = x << 4;
    clz48[1] = x[63:62] == '0;
    if (clz48[1]) x = x << 2;
    clz48[0] = ~x[63];
  endfunction

  // Stage 1: significands multiplied, exponents added. A subnormal has the exponent of
  // the smallest normal number and no hidden one.
  wire         a_normal = a_i[30:23] != '0;
  wire         b_normal = b_i[30:23] != '0;
  wire         a_max = a_i[30:23] == '1;
  wire         b_max = b_i[30:23] == '1;
  wire         a_frac = a_i[22:0] != '0;
  wire         b_frac = b_i[22:0] != '0;
  wire   [7:0] a_exp = a_normal ? a_i[30:23] : 8'd1;
  wire   [7:0] b_exp = b_normal ? b_i[30:23] : 8'd1;

  logic [47:0] prod1_q;
  logic [9:0]  exp1_q;  // signed, biased: the exponent if the leading one is in bit 46
  logic        sign1_q, nan1_q, inf1_q;

  always_ff @(posedge clk_i) begin
    prod1_q <= {24'b0, a_normal, a_i[22:0]} * {24'b0, b_normal, b_i[22:0]};
    exp1_q  <= {2'b0, a_exp} + {2'b0, b_exp} - 10'd127;
    sign1_q <= a_i[31] ^ b_i[31];
    nan1_q  <= (a_max && a_frac) || (b_max && b_frac) ||
               (a_max && !b_normal && !b_frac) || (b_max && !a_normal && !a_frac);
    inf1_q  <= a_max || b_max;
  end

  // Stage 2: how far to shift. To the left until the leading one is in bit 47, but in
  // the subnormal range only as far as the exponent goes (a negative shift is to the
  // right).
  wire   [5:0] lz = clz48(prod1_q);
  wire   [9:0] exp_norm = exp1_q + 10'd1 - {4'b0, lz};
  wire         normal = !exp_norm[9] && exp_norm != '0 && prod1_q != '0;

  logic [47:0] prod2_q;
  logic [9:0]  shift2_q;
  logic [8:0]  exp2_q;
  logic        sign2_q, nan2_q, inf2_q;

  always_ff @(posedge clk_i) begin
    prod2_q  <= prod1_q;
    shift2_q <= normal ? {4'b0, lz} : exp1_q;
    exp2_q   <= normal ? exp_norm[8:0] : 9'd0;
    sign2_q  <= sign1_q;
    nan2_q   <= nan1_q;
    inf2_q   <= inf1_q;
  end

  // Stage 3: the shift. Bits pushed out to the right are remembered in the sticky bit;
  // beyond 24 places all bits are below the guard bit.
  wire   [9:0] right = -shift2_q;
  wire  [47:0] lost = prod2_q & ~(48'hffff_ffff_ffff << right[4:0]);
  logic [47:0] shifted;
  logic        sticky;

  always_comb begin
    if (!shift2_q[9]) begin
      shifted = prod2_q << shift2_q[5:0];
      sticky  = 1'b0;
    end else if (right < 10'd32) begin
      shifted = prod2_q >> right[4:0];
      sticky  = lost != '0;
    end else begin
      shifted = '0;
      sticky  = prod2_q != '0;
    end
  end

  logic [23:0] sig3_q;
  logic [8:0]  exp3_q;
  logic        guard3_q, sticky3_q, sign3_q, nan3_q, inf3_q;

  always_ff @(posedge clk_i) begin
    sig3_q    <= shifted[47:24];
    guard3_q  <= shifted[23];
    sticky3_q <= shifted[22:0] != '0 || sticky;
    exp3_q    <= exp2_q;
    sign3_q   <= sign2_q;
    nan3_q    <= nan2_q;
    inf3_q    <= inf2_q;
  end

  // Stage 4: rounding. The carry out of the fraction is the right next exponent, also
  // from the largest subnormal to the smallest normal number.
  wire         up = guard3_q && (sticky3_q || sig3_q[0]);
  wire  [31:0] rounded = {exp3_q, sig3_q[22:0]} + {31'b0, up};
  wire         unused_hidden = sig3_q[23];

  always_ff @(posedge clk_i) begin
    if (nan3_q) y_o <= 32'h7fc0_0000;
    else if (inf3_q || rounded[31:23] >= 9'd255) y_o <= {sign3_q, 31'h7f80_0000};
    else y_o <= {sign3_q, rounded[30:0]};
  end

`endif

  if (csrec_pkg::FP_LAT != 4) begin : gen_check
    $error("csrec_fp_mul has four stages; csrec_pkg::FP_LAT says otherwise");
  end

endmodule

`default_nettype wire
