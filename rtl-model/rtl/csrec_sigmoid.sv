// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// The logistic function by the fp32 sequence of REFERENCE.md section 5, one value at a
// time: a small program on one multiplier and one adder, FP_LAT + 2 cycles a step.
//
// in_valid_i / in_ready_o take a value; out_valid_o is a pulse with the result. Inputs
// are taken only when nothing is under way.
`default_nettype none

module csrec_sigmoid (
  input  wire         clk_i,
  input  wire         rst_ni,
  input  wire         in_valid_i,
  output wire         in_ready_o,
  input  wire  [31:0] in_x_i,
  output logic        out_valid_o,
  output logic [31:0] out_y_o
);

  localparam logic [31:0] Nan = 32'h7fc0_0000;
  localparam logic [31:0] Limit = 32'h42d0_0000;  // 104.0
  localparam logic [31:0] Log2e = 32'h3fb8_aa3b;
  localparam logic [31:0] Magic = 32'h4b40_0000;  // 1.5 * 2^23: adding it rounds to an integer
  localparam logic [31:0] Ln2Hi = 32'h3f31_8000;
  localparam logic [31:0] Ln2Lo = 32'hb95e_8083;
  localparam logic [31:0] C0 = 32'h3950_6967;
  localparam logic [31:0] C1 = 32'h3ab7_43ce;
  localparam logic [31:0] C2 = 32'h3c08_8908;
  localparam logic [31:0] C3 = 32'h3d2a_a9c1;
  localparam logic [31:0] C4 = 32'h3e2a_aaaa;
  localparam logic [31:0] C5 = 32'h3f00_0000;
  localparam logic [31:0] One = 32'h3f80_0000;
  localparam logic [31:0] Two = 32'h4000_0000;
  localparam logic [31:0] Seed = 32'h7ef3_11c7;   // Seed - bits(d) is 1/d, roughly

  // Where a step's result goes. A result is also the first operand of the next step
  // where the program says RES.
  localparam logic [2:0] ToRes = 3'd0, ToT = 3'd1, ToU = 3'd2, ToP = 3'd3, ToE = 3'd4,
                         ToD = 3'd5, ToY = 3'd6, ToK = 3'd7;

  localparam logic [5:0] LastStep = 6'd34;

  function automatic logic [31:0] neg(input logic [31:0] v);
    neg = {~v[31], v[30:0]};
  endfunction

  logic        busy_q, sign_q, nan_q;
  logic [5:0]  step_q;
  logic [2:0]  wait_q;   // cycles until the result of the step is there
  logic [31:0] res_q, t_q, u_q, p_q, e_q, d_q, y_q;
  logic [7:0]  k_q;      // t / ln 2, rounded

  // 2^-min(k, 100) and 2^-max(k - 100, 0)
  wire  [31:0] scale1 = {1'b0, 8'd127 - (k_q > 8'd100 ? 8'd100 : k_q), 23'b0};
  wire  [31:0] scale2 = {1'b0, k_q > 8'd100 ? 8'd227 - k_q : 8'd127, 23'b0};

  // The program: add or multiply, operands, destination
  logic        op_add;
  logic [31:0] op_a, op_b;
  logic [2:0]  op_to;

  always_comb begin
    op_add = step_q[0];
    op_a   = res_q;
    op_b   = d_q;
    op_to  = ToRes;
    case (step_q)
      // k, r
      6'd0:  begin op_add = 1'b0; op_a = t_q;  op_b = Log2e;      end
      6'd1:  begin op_add = 1'b1;              op_b = Magic;      op_to = ToK; end
      6'd2:  begin op_add = 1'b1;              op_b = neg(Magic); op_to = ToP; end  // kf
      6'd3:  begin op_add = 1'b0; op_a = p_q;  op_b = Ln2Hi;      end
      6'd4:  begin op_add = 1'b1; op_a = t_q;  op_b = neg(res_q); op_to = ToT; end
      6'd5:  begin op_add = 1'b0; op_a = p_q;  op_b = Ln2Lo;      end
      6'd6:  begin op_add = 1'b1; op_a = t_q;  op_b = neg(res_q); op_to = ToU; end  // u = -r
      // exp(u)
      6'd7:  begin op_add = 1'b0; op_a = C0;   op_b = u_q;        end
      6'd8:  begin op_add = 1'b1;              op_b = C1;         end
      6'd9:  begin op_add = 1'b0;              op_b = u_q;        end
      6'd10: begin op_add = 1'b1;              op_b = C2;         end
      6'd11: begin op_add = 1'b0;              op_b = u_q;        end
      6'd12: begin op_add = 1'b1;              op_b = C3;         end
      6'd13: begin op_add = 1'b0;              op_b = u_q;        end
      6'd14: begin op_add = 1'b1;              op_b = C4;         end
      6'd15: begin op_add = 1'b0;              op_b = u_q;        end
      6'd16: begin op_add = 1'b1;              op_b = C5;         op_to = ToP; end
      6'd17: begin op_add = 1'b0; op_a = u_q;  op_b = u_q;        end
      6'd18: begin op_add = 1'b0; op_a = p_q;  op_b = res_q;      end
      6'd19: begin op_add = 1'b1;              op_b = u_q;        end
      6'd20: begin op_add = 1'b1;              op_b = One;        end
      // e, d
      6'd21: begin op_add = 1'b0;              op_b = scale1;     end
      6'd22: begin op_add = 1'b0;              op_b = scale2;     op_to = ToE; end
      6'd23: begin op_add = 1'b1; op_a = One;  op_b = e_q;        op_to = ToD; end
      // 1/d
      6'd24,
      6'd27,
      6'd30: begin op_add = 1'b0; op_a = d_q;  op_b = y_q;        end
      6'd25,
      6'd28: begin op_add = 1'b1; op_a = Two;  op_b = neg(res_q); end
      6'd26,
      6'd29: begin op_add = 1'b0; op_a = y_q;  op_b = res_q;      op_to = ToY; end
      6'd31: begin op_add = 1'b1; op_a = One;  op_b = neg(res_q); end
      6'd32: begin op_add = 1'b0; op_a = y_q;  op_b = res_q;      end
      6'd33: begin op_add = 1'b1; op_a = y_q;  op_b = res_q;      op_to = ToY; end
      // LastStep; used for negative x only
      default: begin op_add = 1'b0; op_a = e_q; op_b = y_q;       end
    endcase
  end

  logic [31:0] mul_a_q, mul_b_q, add_a_q, add_b_q;
  logic        add_q;
  logic [2:0]  to_q;
  wire  [31:0] mul_y, add_y;
  wire  [31:0] result = add_q ? add_y : mul_y;

  csrec_fp_mul u_mul (.clk_i (clk_i), .a_i (mul_a_q), .b_i (mul_b_q), .y_o (mul_y));
  csrec_fp_add u_add (.clk_i (clk_i), .a_i (add_a_q), .b_i (add_b_q), .y_o (add_y));

  assign in_ready_o = !busy_q;

  always_ff @(posedge clk_i) begin
    out_valid_o <= 1'b0;
    if (!busy_q) begin
      if (in_valid_i) begin
        busy_q <= 1'b1;
        sign_q <= in_x_i[31];
        nan_q  <= in_x_i[30:0] > 31'h7f80_0000;
        t_q    <= in_x_i[30:0] > Limit[30:0] ? Limit : {1'b0, in_x_i[30:0]};
        step_q <= '0;
        wait_q <= '0;
      end
    end else if (wait_q == '0) begin
      add_q <= op_add;
      to_q  <= op_to;
      if (op_add) begin
        add_a_q <= op_a;
        add_b_q <= op_b;
      end else begin
        mul_a_q <= op_a;
        mul_b_q <= op_b;
      end
      wait_q <= 3'(csrec_pkg::FP_LAT + 1);
    end else begin
      wait_q <= wait_q - 3'd1;
      if (wait_q == 3'd1) begin
        step_q <= step_q + 6'd1;
        res_q  <= result;
        case (to_q)
          ToT: t_q <= result;
          ToU: u_q <= neg(result);
          ToP: p_q <= result;
          ToE: e_q <= result;
          ToD: begin
            d_q <= result;
            y_q <= Seed - result;
          end
          ToY: y_q <= result;
          ToK: k_q <= result[7:0];
          default: ;
        endcase
        if (step_q == LastStep) begin
          busy_q      <= 1'b0;
          out_valid_o <= 1'b1;
          out_y_o     <= nan_q ? Nan : sign_q ? result : y_q;
        end
      end
    end
    if (!rst_ni) begin
      busy_q      <= 1'b0;
      out_valid_o <= 1'b0;
    end
  end

endmodule

`default_nettype wire
