// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// MLP: one fully connected layer, y[b][o] = act(dot(x[b], w[o]) + bias[o]).
//
// Works on tiles of 16 samples. A tile's x rows are read into x_mem; then every weight
// row is streamed once through csrec_dot, the tile's samples interleaved in its slots, so
// that eight multiply-accumulates are done each cycle (of a tile of fewer than FP_LAT + 1
// samples, fewer). Weight rows are read ahead into w_mem while earlier ones are in use;
// when all of them fit, they are read once a command instead of once a tile. Results
// collect in y_mem and are written out row by row.
//
// desc/abort/done and mem client as in rtl/README.md. One memory request is under way at
// a time, so that nothing is outstanding when the command ends.
`default_nettype none

module csrec_mlp #(
  parameter int unsigned MaxWidth = 4096,  // widest input or output: power of 2, from 32
  parameter int unsigned WeightBeats = 4096  // w_mem, 64 bytes each: power of 2, >= MaxWidth/16
) (
  input  wire            clk_i,
  input  wire            rst_ni,

  input  wire            desc_valid_i,
  output logic           desc_ready_o,
  input  wire   [1535:0] desc_i,
  input  wire     [15:0] desc_domain_i,
  input  wire            abort_i,
  output logic           done_valid_o,
  input  wire            done_ready_i,
  output logic     [7:0] done_status_o,
  output logic    [15:0] done_field_o,
  output logic    [63:0] done_detail_o,

  output logic           req_valid_o,
  input  wire            req_ready_i,
  output logic     [1:0] req_op_o,
  output logic           req_onchip_o,
  output logic    [31:0] req_key_o,
  output logic    [63:0] req_off_o,
  output logic    [63:0] req_len_o,
  output logic    [15:0] req_domain_o,
  input  wire            rd_valid_i,
  output logic           rd_ready_o,
  input  wire    [511:0] rd_data_i,
  input  wire            rd_last_i,
  output logic           wr_valid_o,
  input  wire            wr_ready_i,
  output logic   [511:0] wr_data_o,
  input  wire            rsp_valid_i,
  input  wire      [7:0] rsp_status_i,

  output wire            step_o         // the arithmetic moves
);

  localparam int unsigned BeatW = $clog2(MaxWidth / 16);    // beat within a row
  localparam int unsigned RowW = $clog2(MaxWidth);          // element within a row
  localparam int unsigned CntW = RowW + 1;                  // 0..MaxWidth
  localparam int unsigned WAddrW = $clog2(WeightBeats);
  localparam int unsigned AddrW = WAddrW > BeatW + 4 ? WAddrW : BeatW + 4;

  localparam int unsigned DescW = 8 * csrec_pkg::MLP_DESC_BYTES;

  // Operands, in the order of their keys and offsets in the descriptor
  localparam logic [1:0] OpX = 2'd0, OpW = 2'd1, OpBias = 2'd2, OpY = 2'd3;

  typedef enum logic [3:0] {
    StIdle,
    StValues,   // checks that need no region
    StExtent,   // extent of an operand: (rows - 1) * stride,
    StCheck,    // and its region check
    StCheckRsp,
    StBias,     // bias read into bias_mem
    StTile,
    StLoadX,
    StCompute,
    StAct,      // sigmoid, in place: read y_mem,
    StActIn,    // start,
    StActOut,   // write back
    StStore,
    StEnd,      // whatever is still under way comes to rest
    StDone
  } state_e;

  typedef enum logic [1:0] {
    MemIdle,
    MemReq,     // request offered
    MemRsp      // data and answer under way
  } mem_e;

  // ---- descriptor

  logic [DescW-1:0] desc_q;
  logic      [15:0] domain_q;

  wire [31:0] d_flags = desc_q[csrec_pkg::MLP_DESC_FLAGS_LSB +: 32];
  wire [31:0] d_batch = desc_q[csrec_pkg::MLP_DESC_BATCH_LSB +: 32];
  wire [15:0] d_in_dim = desc_q[csrec_pkg::MLP_DESC_IN_DIM_LSB +: 16];
  wire [15:0] d_out_dim = desc_q[csrec_pkg::MLP_DESC_OUT_DIM_LSB +: 16];
  wire  [7:0] d_act = desc_q[csrec_pkg::MLP_DESC_ACT_LSB +: 8];
  wire  [7:0] d_dtype = desc_q[csrec_pkg::MLP_DESC_DTYPE_LSB +: 8];
  wire [15:0] d_rsvd14 = desc_q[csrec_pkg::MLP_DESC_RSVD14_LSB +: 16];
  wire [31:0] d_x_key = desc_q[csrec_pkg::MLP_DESC_X_KEY_LSB +: 32];
  wire [31:0] d_w_key = desc_q[csrec_pkg::MLP_DESC_W_KEY_LSB +: 32];
  wire [31:0] d_bias_key = desc_q[csrec_pkg::MLP_DESC_BIAS_KEY_LSB +: 32];
  wire [31:0] d_y_key = desc_q[csrec_pkg::MLP_DESC_Y_KEY_LSB +: 32];
  wire [63:0] d_x_off = desc_q[csrec_pkg::MLP_DESC_X_OFF_LSB +: 64];
  wire [63:0] d_w_off = desc_q[csrec_pkg::MLP_DESC_W_OFF_LSB +: 64];
  wire [63:0] d_bias_off = desc_q[csrec_pkg::MLP_DESC_BIAS_OFF_LSB +: 64];
  wire [63:0] d_y_off = desc_q[csrec_pkg::MLP_DESC_Y_OFF_LSB +: 64];
  wire [31:0] d_x_stride = desc_q[csrec_pkg::MLP_DESC_X_STRIDE_LSB +: 32];
  wire [31:0] d_w_stride = desc_q[csrec_pkg::MLP_DESC_W_STRIDE_LSB +: 32];
  wire [31:0] d_y_stride = desc_q[csrec_pkg::MLP_DESC_Y_STRIDE_LSB +: 32];
  wire [31:0] d_rsvd76 = desc_q[csrec_pkg::MLP_DESC_RSVD76_LSB +: 32];
  wire [csrec_pkg::MLP_DESC_RSVD80_W-1:0] d_rsvd80 =
    desc_q[csrec_pkg::MLP_DESC_RSVD80_LSB +: csrec_pkg::MLP_DESC_RSVD80_W];

  // dimensions, once they are known to be legal
  wire has_bias = (d_flags & csrec_pkg::MLP_F_BIAS) != '0;
  wire [CntW-1:0] in_dim = d_in_dim[CntW-1:0];
  wire [CntW-1:0] out_dim = d_out_dim[CntW-1:0];
  wire [CntW+1:0] in_bytes = {in_dim, 2'b0};
  wire [CntW+1:0] out_bytes = {out_dim, 2'b0};
  wire [RowW-1:0] in_last = RowW'(in_dim - 1'b1);

  // log2 of the beats that a weight row occupies in w_mem, rounded up so that rows start
  // at multiples of it
  logic [3:0] row_log2;
  always_comb begin
    row_log2 = '0;
    for (int unsigned i = 0; i < BeatW; i++)
      if (in_last[RowW-1:4] >> i != '0) row_log2 = 4'(i + 1);
  end
  wire [WAddrW:0] w_slots = (WAddrW+1)'(WeightBeats) >> row_log2;
  wire            w_resident = 32'(out_dim) <= 32'(w_slots);

  // ---- control state

  state_e         state_q;
  logic     [7:0] status_q;
  logic    [15:0] field_q;
  logic    [63:0] detail_q;

  logic     [1:0] op_q;         // operand being checked
  logic    [63:0] product_q;
  logic    [31:0] left_q;       // samples not yet stored
  logic    [63:0] x_off_q, w_off_q, y_off_q;  // next row of each
  logic     [3:0] s_q;          // sample of the tile, in load, sigmoid and store
  logic           w_loaded_q;   // all weight rows are in w_mem
  logic [CntW-1:0] f_row_q;     // weight rows read so far
  logic [CntW-1:0] o_q;         // neuron: being computed; in the sigmoid
  logic [RowW-4:0] k_q;         // step within the dot product
  logic     [3:0] slot_q;       // sample of the step

  // Extent of the operand being checked: all rows but the last, and the last one's bytes
  logic    [31:0] ext_rows, ext_stride;

  always_comb begin
    case (op_q)
      OpX: begin ext_rows = d_batch - 32'd1; ext_stride = d_x_stride; end
      OpW: begin ext_rows = 32'(d_out_dim) - 32'd1; ext_stride = d_w_stride; end
      OpY: begin ext_rows = d_batch - 32'd1; ext_stride = d_y_stride; end
      default: begin ext_rows = '0; ext_stride = '0; end
    endcase
  end

  wire      [4:0] tile = left_q < 32'd16 ? left_q[4:0] : 5'd16;
  wire      [3:0] s_last = 4'(tile - 5'd1);
  // steps of one slot must be FP_LAT + 1 cycles apart, also with few samples
  wire      [3:0] slot_last = s_last < 4'(csrec_pkg::FP_LAT) ? 4'(csrec_pkg::FP_LAT) : s_last;

  // ---- memory requests: a job is a check, or a row moved in requests of up to 4 KiB

  mem_e            mem_q;
  logic      [1:0] m_op_q;
  logic      [1:0] m_operand_q;
  logic     [63:0] m_off_q, m_len_q;  // m_len_q: what is left of the job
  logic [AddrW-1:0] m_addr_q;   // next beat in the operand's buffer
  logic      [6:0] m_beats_q;   // beats of the request still to be written

  wire             m_check = m_op_q == csrec_pkg::MEM_CHECK_RD || m_op_q == csrec_pkg::MEM_CHECK_WR;
  wire      [63:0] m_chunk = m_check || m_len_q < 64'(csrec_pkg::MEM_MAX_LEN) ? m_len_q :
                             64'(csrec_pkg::MEM_MAX_LEN);
  wire             m_ok = mem_q == MemRsp && rsp_valid_i && rsp_status_i == csrec_pkg::ST_OK;
  wire             m_error = mem_q == MemRsp && rsp_valid_i && rsp_status_i != csrec_pkg::ST_OK;
  wire             m_done = m_ok && m_len_q == m_chunk;
  wire             m_wr = wr_valid_o && wr_ready_i;
  wire             m_rd = mem_q == MemRsp && rd_valid_i;
  logic     [31:0] m_key;

  always_comb begin
    case (m_operand_q)
      OpX: m_key = d_x_key;
      OpW: m_key = d_w_key;
      OpBias: m_key = d_bias_key;
      default: m_key = d_y_key;
    endcase
  end

  assign req_valid_o = mem_q == MemReq;
  assign req_op_o = m_op_q;
  assign req_onchip_o = 1'b0;
  assign req_key_o = m_key;
  assign req_off_o = m_off_q;
  assign req_len_o = m_chunk;
  assign req_domain_o = domain_q;
  assign rd_ready_o = 1'b1;
  assign wr_valid_o = mem_q == MemRsp && m_op_q == csrec_pkg::MEM_WRITE && m_beats_q != '0;

  // ---- buffers

  logic [511:0] x_mem [16 << BeatW];        // sample, beat
  logic [511:0] w_mem [WeightBeats];        // row modulo w_slots, beat
  logic [511:0] bias_mem [1 << BeatW];
  logic [511:0] x_q, w_q, bias_q;

  // compute: one step a cycle while its weight row is there
  wire                step = state_q == StCompute && o_q != f_row_q && slot_q <= s_last;
  wire    [WAddrW-1:0] w_addr = (WAddrW'(o_q) << row_log2) | WAddrW'(k_q[RowW-4:1]);

  always_ff @(posedge clk_i) begin
    if (m_rd && m_operand_q == OpX) x_mem[m_addr_q[BeatW+3:0]] <= rd_data_i;
    if (step) x_q <= x_mem[{slot_q, k_q[RowW-4:1]}];
  end

  always_ff @(posedge clk_i) begin
    if (m_rd && m_operand_q == OpW) w_mem[m_addr_q[WAddrW-1:0]] <= rd_data_i;
    if (step && slot_q == '0) w_q <= w_mem[w_addr];
  end

  // ---- dot products

  logic        in_valid_q, in_first_q, in_last_q, in_half_q;
  logic  [3:0] in_slot_q;
  wire         dot_valid;
  wire   [3:0] dot_slot;
  wire  [31:0] dot_y;

  always_ff @(posedge clk_i) begin
    in_valid_q <= rst_ni && step;
    if (step) begin
      in_slot_q  <= slot_q;
      in_first_q <= k_q == '0;
      in_last_q  <= k_q == in_last[RowW-1:3];
      in_half_q  <= k_q[0];
    end
  end

  csrec_dot u_dot (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni),
    .in_valid_i  (in_valid_q),
    .in_slot_i   (in_slot_q),
    .in_first_i  (in_first_q),
    .in_last_i   (in_last_q),
    .in_a_i      (in_half_q ? x_q[511:256] : x_q[255:0]),
    .in_b_i      (in_half_q ? w_q[511:256] : w_q[255:0]),
    .out_valid_o (dot_valid),
    .out_slot_o  (dot_slot),
    .out_y_o     (dot_y)
  );

  // ---- bias and ReLU. Results come neuron by neuron, samples ascending.

  localparam int unsigned FpLat = csrec_pkg::FP_LAT;

  logic [RowW-1:0] r_o_q;       // neuron of the next result
  wire             r_step = dot_valid && dot_slot == s_last;
  wire  [RowW-1:0] r_o_d = state_q == StTile ? '0 : r_o_q + 1'b1;

  always_ff @(posedge clk_i) begin
    if (m_rd && m_operand_q == OpBias) bias_mem[m_addr_q[BeatW-1:0]] <= rd_data_i;
    if (state_q == StTile || r_step) begin
      r_o_q  <= r_o_d;
      bias_q <= bias_mem[r_o_d[RowW-1:4]];
    end
  end

  // Adding +0 for no bias changes nothing: a dot product is never -0.
  wire [31:0] bias = has_bias ? bias_q[32*r_o_q[3:0] +: 32] : '0;
  wire [31:0] sum;

  csrec_fp_add u_bias (.clk_i (clk_i), .a_i (dot_y), .b_i (bias), .y_o (sum));

  logic [FpLat-1:0]           sum_valid_q;
  logic [FpLat-1:0][RowW+3:0] sum_at_q;  // sample, neuron
  wire                        sum_valid = sum_valid_q[FpLat-1];

  always_ff @(posedge clk_i) begin
    sum_valid_q <= rst_ni ? {sum_valid_q[FpLat-2:0], dot_valid} : '0;
    if (dot_valid || sum_valid_q != '0)
      sum_at_q <= {sum_at_q[FpLat-2:0], {dot_slot, r_o_q}};
  end

  // Cycles until the last step that entered has reached y_mem
  logic [5:0] pipe_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) pipe_q <= '0;
    else if (step) pipe_q <= 6'(csrec_pkg::DOT_LAT + FpLat + 2);
    else if (pipe_q != '0) pipe_q <= pipe_q - 6'd1;
  end

  // ---- sigmoid

  wire        act_ready, act_valid;
  wire [31:0] act_y;

  csrec_sigmoid u_sigmoid (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni),
    .in_valid_i  (state_q == StActIn),
    .in_ready_o  (act_ready),
    .in_x_i      (y_q[32*o_q[3:0] +: 32]),
    .out_valid_o (act_valid),
    .out_y_o     (act_y)
  );

  assign step_o = step || act_valid;

  // ---- y_mem: written by elements, read by beats

  wire  [RowW+3:0] y_at = sum_valid ? sum_at_q[FpLat-1] : {s_q, o_q[RowW-1:0]};
  wire             y_we = sum_valid || (state_q == StActOut && act_valid);
  logic     [31:0] y_new;
  wire             y_re = state_q == StAct || m_wr ||
                          (mem_q == MemReq && m_op_q == csrec_pkg::MEM_WRITE);
  wire [BeatW+3:0] y_raddr = state_q == StAct ? {s_q, o_q[RowW-1:4]} :
                             m_wr ? m_addr_q[BeatW+3:0] + 1'b1 : m_addr_q[BeatW+3:0];
  wire     [511:0] y_q;

  always_comb begin
    if (!sum_valid) y_new = act_y;
    // the one NaN there is has its sign bit clear
    else if (d_act == csrec_pkg::ACT_RELU && sum[31]) y_new = '0;
    else y_new = sum;
  end

  for (genvar j = 0; j < 16; j++) begin : gen_y
    logic [31:0] y_mem [16 << BeatW];
    logic [31:0] rd_q;

    always_ff @(posedge clk_i) begin
      if (y_we && y_at[3:0] == 4'(j)) y_mem[y_at[RowW+3:4]] <= y_new;
      if (y_re) rd_q <= y_mem[y_raddr];
    end
    assign y_q[32*j +: 32] = rd_q;
  end

  assign wr_data_o = y_q;

  // ---- control

  assign desc_ready_o = state_q == StIdle;
  assign done_valid_o = state_q == StDone;
  assign done_status_o = status_q;
  assign done_field_o = field_q;
  assign done_detail_o = detail_q;

  // Ends the command with an error in the descriptor field that starts at bit @lsb.
  task automatic refuse(input logic [7:0] status, input int unsigned lsb,
                        input logic [63:0] detail);
    status_q <= status;
    field_q  <= csrec_pkg::FIELD_DESC | 16'(lsb / 8);
    detail_q <= detail;
    state_q  <= StEnd;
  endtask

  // Starts a job of the memory port.
  task automatic start(input logic [1:0] op, input logic [1:0] operand,
                       input logic [63:0] off, input logic [63:0] len,
                       input logic [AddrW-1:0] addr);
    mem_q       <= MemReq;
    m_op_q      <= op;
    m_operand_q <= operand;
    m_off_q     <= off;
    m_len_q     <= len;
    m_addr_q    <= addr;
  endtask

  always_ff @(posedge clk_i) begin
    // The memory port. When the command is to end, a job stops after its request.
    case (mem_q)
      MemReq: begin
        m_beats_q <= 7'((m_chunk + 64'd63) >> 6);
        if (req_ready_i) mem_q <= MemRsp;
      end
      MemRsp: begin
        if (m_rd || m_wr) m_addr_q <= m_addr_q + 1'b1;
        if (m_wr) m_beats_q <= m_beats_q - 7'd1;
        if (rsp_valid_i) begin
          m_off_q <= m_off_q + m_chunk;
          m_len_q <= m_len_q - m_chunk;
          mem_q   <= m_ok && !m_done && state_q != StEnd && !abort_i ? MemReq : MemIdle;
        end
      end
      default: ;
    endcase

    if (abort_i && state_q != StIdle && state_q != StEnd && state_q != StDone) begin
      status_q <= csrec_pkg::ST_ABORTED;
      field_q  <= csrec_pkg::FIELD_NONE;
      detail_q <= '0;
      state_q  <= StEnd;
    end else if (m_error && state_q != StEnd) begin
      // offset and key fields of the operands follow one another
      if (state_q == StCheckRsp && rsp_status_i == csrec_pkg::ST_OUT_OF_BOUNDS)
        refuse(rsp_status_i, csrec_pkg::MLP_DESC_X_OFF_LSB + 64 * 32'(m_operand_q), m_off_q);
      else
        refuse(rsp_status_i, csrec_pkg::MLP_DESC_X_KEY_LSB + 32 * 32'(m_operand_q), 64'(m_key));
    end else begin
      case (state_q)
        StIdle: begin
          if (desc_valid_i) begin
            desc_q   <= desc_i[DescW-1:0];
            domain_q <= desc_domain_i;
            state_q  <= StValues;
          end
        end

        StValues: begin
          left_q     <= d_batch;
          x_off_q    <= d_x_off;
          y_off_q    <= d_y_off;
          w_loaded_q <= 1'b0;
          op_q       <= OpX;
          state_q    <= StExtent;
          if ((d_flags & ~32'(csrec_pkg::MLP_F_ALL)) != '0)
            refuse(csrec_pkg::ST_BAD_FLAGS, csrec_pkg::MLP_DESC_FLAGS_LSB, 64'(d_flags));
          else if (d_rsvd14 != '0)
            refuse(csrec_pkg::ST_RESERVED, csrec_pkg::MLP_DESC_RSVD14_LSB, '0);
          else if (!has_bias && d_bias_key != '0)
            refuse(csrec_pkg::ST_RESERVED, csrec_pkg::MLP_DESC_BIAS_KEY_LSB, '0);
          else if (!has_bias && d_bias_off != '0)
            refuse(csrec_pkg::ST_RESERVED, csrec_pkg::MLP_DESC_BIAS_OFF_LSB, '0);
          else if (d_rsvd76 != '0)
            refuse(csrec_pkg::ST_RESERVED, csrec_pkg::MLP_DESC_RSVD76_LSB, '0);
          else if (d_rsvd80 != '0)
            refuse(csrec_pkg::ST_RESERVED, csrec_pkg::MLP_DESC_RSVD80_LSB, '0);
          else if (d_batch == '0)
            refuse(csrec_pkg::ST_BAD_VALUE, csrec_pkg::MLP_DESC_BATCH_LSB, 64'(d_batch));
          else if (d_in_dim == '0 || d_in_dim > 16'(MaxWidth))
            refuse(csrec_pkg::ST_BAD_VALUE, csrec_pkg::MLP_DESC_IN_DIM_LSB, 64'(d_in_dim));
          else if (d_out_dim == '0 || d_out_dim > 16'(MaxWidth))
            refuse(csrec_pkg::ST_BAD_VALUE, csrec_pkg::MLP_DESC_OUT_DIM_LSB, 64'(d_out_dim));
          else if (d_act > csrec_pkg::ACT_SIGMOID)
            refuse(csrec_pkg::ST_BAD_VALUE, csrec_pkg::MLP_DESC_ACT_LSB, 64'(d_act));
          else if (d_dtype != csrec_pkg::DTYPE_FP32)
            refuse(csrec_pkg::ST_BAD_VALUE, csrec_pkg::MLP_DESC_DTYPE_LSB, 64'(d_dtype));
          else if (d_x_off[1:0] != '0)
            refuse(csrec_pkg::ST_BAD_ALIGN, csrec_pkg::MLP_DESC_X_OFF_LSB, d_x_off);
          else if (d_w_off[1:0] != '0)
            refuse(csrec_pkg::ST_BAD_ALIGN, csrec_pkg::MLP_DESC_W_OFF_LSB, d_w_off);
          else if (d_bias_off[1:0] != '0)
            refuse(csrec_pkg::ST_BAD_ALIGN, csrec_pkg::MLP_DESC_BIAS_OFF_LSB, d_bias_off);
          else if (d_y_off[1:0] != '0)
            refuse(csrec_pkg::ST_BAD_ALIGN, csrec_pkg::MLP_DESC_Y_OFF_LSB, d_y_off);
          else if (d_x_stride[1:0] != '0)
            refuse(csrec_pkg::ST_BAD_ALIGN, csrec_pkg::MLP_DESC_X_STRIDE_LSB, 64'(d_x_stride));
          else if (d_x_stride < 32'(in_bytes))
            refuse(csrec_pkg::ST_BAD_VALUE, csrec_pkg::MLP_DESC_X_STRIDE_LSB, 64'(d_x_stride));
          else if (d_w_stride[1:0] != '0)
            refuse(csrec_pkg::ST_BAD_ALIGN, csrec_pkg::MLP_DESC_W_STRIDE_LSB, 64'(d_w_stride));
          else if (d_w_stride < 32'(in_bytes))
            refuse(csrec_pkg::ST_BAD_VALUE, csrec_pkg::MLP_DESC_W_STRIDE_LSB, 64'(d_w_stride));
          else if (d_y_stride[1:0] != '0)
            refuse(csrec_pkg::ST_BAD_ALIGN, csrec_pkg::MLP_DESC_Y_STRIDE_LSB, 64'(d_y_stride));
          else if (d_y_stride < 32'(out_bytes))
            refuse(csrec_pkg::ST_BAD_VALUE, csrec_pkg::MLP_DESC_Y_STRIDE_LSB, 64'(d_y_stride));
        end

        StExtent: begin
          product_q <= 64'(ext_rows) * 64'(ext_stride);
          state_q <= StCheck;
        end
        StCheck: begin
          state_q <= StCheckRsp;
          case (op_q)
            OpX: start(csrec_pkg::MEM_CHECK_RD, OpX, d_x_off, product_q + 64'(in_bytes), '0);
            OpW: start(csrec_pkg::MEM_CHECK_RD, OpW, d_w_off, product_q + 64'(in_bytes), '0);
            OpBias: start(csrec_pkg::MEM_CHECK_RD, OpBias, d_bias_off, 64'(out_bytes), '0);
            default: start(csrec_pkg::MEM_CHECK_WR, OpY, d_y_off, product_q + 64'(out_bytes), '0);
          endcase
        end
        StCheckRsp: begin
          if (m_done) begin
            op_q    <= op_q == OpW && !has_bias ? OpY : op_q + 2'd1;
            state_q <= op_q != OpY ? StExtent : has_bias ? StBias : StTile;
          end
        end

        StBias: begin
          if (m_done) state_q <= StTile;
          else if (mem_q == MemIdle)
            start(csrec_pkg::MEM_READ, OpBias, d_bias_off, 64'(out_bytes), '0);
        end

        StTile: begin
          s_q    <= '0;
          o_q    <= '0;
          k_q    <= '0;
          slot_q <= '0;
          if (!w_loaded_q) begin
            w_off_q <= d_w_off;
            f_row_q <= '0;
          end
          state_q <= StLoadX;
        end

        StLoadX: begin
          if (m_done) begin
            x_off_q <= x_off_q + 64'(d_x_stride);
            s_q     <= s_q + 4'd1;
            if (s_q == s_last) state_q <= StCompute;
          end else if (mem_q == MemIdle) begin
            start(csrec_pkg::MEM_READ, OpX, x_off_q, 64'(in_bytes), AddrW'({s_q, BeatW'(0)}));
          end
        end

        StCompute: begin
          // read weight rows ahead, as far as there is room
          if (m_done) begin
            w_off_q <= w_off_q + 64'(d_w_stride);
            f_row_q <= f_row_q + 1'b1;
          end else if (mem_q == MemIdle && f_row_q != out_dim &&
                       32'(f_row_q - o_q) < 32'(w_slots)) begin
            start(csrec_pkg::MEM_READ, OpW, w_off_q, 64'(in_bytes),
                  AddrW'(WAddrW'(f_row_q) << row_log2));
          end
          // samples within steps within neurons
          if (o_q != f_row_q) begin
            slot_q <= slot_q == slot_last ? '0 : slot_q + 4'd1;
            if (slot_q == slot_last) begin
              k_q <= k_q == in_last[RowW-1:3] ? '0 : k_q + 1'b1;
              if (k_q == in_last[RowW-1:3]) o_q <= o_q + 1'b1;
            end
          end else if (o_q == out_dim && pipe_q == '0) begin
            w_loaded_q <= w_resident;
            s_q        <= '0;
            o_q        <= '0;
            state_q    <= d_act == csrec_pkg::ACT_SIGMOID ? StAct : StStore;
          end
        end

        StAct: state_q <= StActIn;
        StActIn: state_q <= StActOut;
        StActOut: begin
          if (act_valid) begin
            o_q     <= o_q + 1'b1;
            state_q <= o_q + 1'b1 == out_dim ? StStore : StAct;
          end
        end

        StStore: begin
          if (m_done) begin
            y_off_q <= y_off_q + 64'(d_y_stride);
            s_q     <= s_q + 4'd1;
            o_q     <= '0;
            if (s_q == s_last) begin
              left_q  <= left_q - 32'(tile);
              state_q <= StTile;
              if (left_q == 32'(tile)) begin
                status_q <= csrec_pkg::ST_OK;
                field_q  <= '0;
                detail_q <= 64'(d_batch);
                state_q  <= StEnd;
              end
            end else if (d_act == csrec_pkg::ACT_SIGMOID) begin
              state_q <= StAct;
            end
          end else if (mem_q == MemIdle) begin
            start(csrec_pkg::MEM_WRITE, OpY, y_off_q, 64'(out_bytes), AddrW'({s_q, BeatW'(0)}));
          end
        end

        StEnd: if (mem_q == MemIdle && pipe_q == '0 && act_ready) state_q <= StDone;

        StDone: if (done_ready_i) state_q <= StIdle;

        default: state_q <= StIdle;
      endcase
    end

    if (!rst_ni) begin
      state_q <= StIdle;
      mem_q   <= MemIdle;
    end
  end

  wire unused = &{1'b0, desc_i[1535:DescW], rd_last_i, in_last[2:0]};

endmodule

`default_nettype wire
