// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// fp32 adder: IEEE-754, round to nearest even, subnormals kept, every NaN result
// 0x7FC00000. Takes operands every cycle; y_o belongs to the a_i, b_i of FP_LAT cycles
// before. No enable and no reset.
//
// With CSREC_FP_DPI the host's FPU computes the sum behind the same number of
// registers: the same bits at the same time, faster to simulate.
`default_nettype none

module csrec_fp_add (
  input  wire         clk_i,
  input  wire  [31:0] a_i,
  input  wire  [31:0] b_i,
  output logic [31:0] y_o
);

`ifdef CSREC_FP_DPI

  import "DPI-C" pure function int unsigned csrec_fp_add_dpi(input int unsigned a,
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
      y1_q     <= csrec_fp_add_dpi(a_i, b_i);
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

  // Leading zeros; 28 when there is no one.
  function automatic logic [4:0] clz28(input logic [27:0] v);
    logic [31:0] x;
    x = {v, 4'h8};
    clz28[4] = x[31:16] == '0;
    if (clz28[4]) x = x << 16;
    clz28[3] = x[31:24] == '0;
    if (clz28[3]) x = x << 8;
    clz28[2] = x[31:28] == '0;
    if (clz28[2]) x = x << 4;
    clz28[1] = x[31:30] == '0;
    if (clz28[1]) x = x << 2;
    clz28[0] = ~x[31];
  endfunction

  // Stage 1: order by magnitude. A subnormal has the exponent of the smallest normal
  // number and no hidden one.
  wire         swap = b_i[30:0] > a_i[30:0];
  wire  [31:0] hi = swap ? b_i : a_i;
  wire  [30:0] lo = swap ? a_i[30:0] : b_i[30:0];
  wire         hi_normal = hi[30:23] != '0;
  wire         lo_normal = lo[30:23] != '0;
  wire   [7:0] hi_exp = hi_normal ? hi[30:23] : 8'd1;
  wire   [7:0] lo_exp = lo_normal ? lo[30:23] : 8'd1;
  wire   [7:0] diff = hi_exp - lo_exp;

  logic [23:0] hi1_q, lo1_q;
  logic [7:0]  exp1_q;
  logic [4:0]  diff1_q;
  logic        sign1_q, sub1_q, nan1_q, inf1_q;

  always_ff @(posedge clk_i) begin
    hi1_q    <= {hi_normal, hi[22:0]};
    lo1_q    <= {lo_normal, lo[22:0]};
    exp1_q   <= hi_exp;
    diff1_q  <= diff > 8'd31 ? 5'd31 : diff[4:0];
    sign1_q  <= hi[31];
    sub1_q   <= a_i[31] ^ b_i[31];
    // a NaN orders above infinity, so only lo can be the second infinity
    nan1_q   <= hi[30:0] > 31'h7f80_0000 ||
                (lo == 31'h7f80_0000 && a_i[31] != b_i[31]);
    inf1_q   <= hi[30:23] == '1;
  end

  // Stage 2: align and add. Three bits below the significand hold guard, round and
  // sticky; the sticky one is the OR of all that is shifted out.
  wire  [26:0] aligned = {lo1_q, 3'b0} >> diff1_q;
  wire  [26:0] lost = {lo1_q, 3'b0} & ~(27'h7ff_ffff << diff1_q);
  wire  [27:0] addend = {1'b0, aligned[26:1], aligned[0] | (lost != '0)};

  logic [27:0] sum2_q;
  logic [7:0]  exp2_q;
  logic        sign2_q, sub2_q, nan2_q, inf2_q;

  always_ff @(posedge clk_i) begin
    sum2_q  <= sub1_q ? {1'b0, hi1_q, 3'b0} - addend : {1'b0, hi1_q, 3'b0} + addend;
    exp2_q  <= exp1_q;
    sign2_q <= sign1_q;
    sub2_q  <= sub1_q;
    nan2_q  <= nan1_q;
    inf2_q  <= inf1_q;
  end

  // Stage 3: shift until the leading one is in bit 27, but in the subnormal range only
  // as far as the exponent goes.
  wire   [4:0] lz = clz28(sum2_q);
  wire         normal = exp2_q >= {3'b0, lz} && sum2_q != '0;
  wire   [4:0] shift = normal ? lz : exp2_q[4:0];
  wire  [27:0] shifted = sum2_q << shift;

  logic [23:0] sig3_q;
  logic [8:0]  exp3_q;
  logic        guard3_q, sticky3_q, sign3_q, nan3_q, inf3_q;

  always_ff @(posedge clk_i) begin
    sig3_q    <= shifted[27:4];
    guard3_q  <= shifted[3];
    sticky3_q <= shifted[2:0] != '0;
    exp3_q    <= normal ? {1'b0, exp2_q} + 9'd1 - {4'b0, lz} : 9'd0;
    // x - x is +0
    sign3_q   <= sign2_q && !(sub2_q && sum2_q == '0);
    nan3_q    <= nan2_q;
    inf3_q    <= inf2_q;
  end

  // Stage 4: rounding. The carry out of the fraction is the right next exponent.
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
    $error("csrec_fp_add has four stages; csrec_pkg::FP_LAT says otherwise");
  end

endmodule

`default_nettype wire
