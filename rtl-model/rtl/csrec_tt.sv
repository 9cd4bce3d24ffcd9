// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// TT: sums over bags of rows rebuilt from three tensor-train cores (REFERENCE.md,
// section 4). desc_* is the start side of csrec_desc, req/rd/wr/rsp one mem client port,
// done_* the completion; see rtl/README.md.
//
// Row by row: the row's slice of each core is read into the operand buffers; T = A * B
// goes back into the buffer of left operands; row = T * C goes into the sums. The digits
// of the next row's id are found meanwhile, and complete bags are written while the next
// one is at work. A row is computed only after its READs have ended well.
//
// T depends on the first two digits only. The buffer has room for more than one T unless
// they are of the largest shape; a row that finds there the T of its digits, made earlier in
// the same command, reads nothing but its slice of the third core. Where a T belongs is given
// by the low bits of its leading digits (REFERENCE.md, section 4).
//
// Operand buffers: element k of a dot product is in bank k mod 8, so that a step of
// csrec_dot reads one word of each bank. Banks of right operands are four words wide:
// slices whose rows are whole quadruples are stored four elements a cycle, others one.
//
// A failed access or an abort ends the command at once: bags handed to the writer before
// are written, or being written when that is what failed, the others are not.
`default_nettype none

module csrec_tt #(
  /* verilator lint_off UNUSEDPARAM */
  parameter int unsigned MaxDim  = 256,  // multiple of 16
  parameter int unsigned MaxVecs = 64,   // as the other engines have
  parameter int unsigned MaxRank = 32    // multiple of 8
  /* verilator lint_on UNUSEDPARAM */
) (
  input  wire           clk_i,
  input  wire           rst_ni,

  input  wire           desc_valid_i,
  output wire           desc_ready_o,
  /* verilator lint_off UNUSEDSIGNAL */
  input  wire  [1535:0] desc_i,  // zero above the descriptor
  /* verilator lint_on UNUSEDSIGNAL */
  input  wire    [15:0] desc_domain_i,
  input  wire           abort_i,
  output wire           done_valid_o,
  input  wire           done_ready_i,
  output wire     [7:0] done_status_o,
  output wire    [15:0] done_field_o,
  output wire    [63:0] done_detail_o,

  output wire           req_valid_o,
  input  wire           req_ready_i,
  output wire     [1:0] req_op_o,
  output wire           req_onchip_o,
  output wire    [31:0] req_key_o,
  output wire    [63:0] req_off_o,
  output wire    [63:0] req_len_o,
  output wire    [15:0] req_domain_o,
  input  wire           rd_valid_i,
  output wire           rd_ready_o,
  input  wire   [511:0] rd_data_i,
  input  wire           rd_last_i,
  output wire           wr_valid_o,
  input  wire           wr_ready_i,
  output wire   [511:0] wr_data_o,
  input  wire           rsp_valid_i,
  input  wire     [7:0] rsp_status_i,

  output wire           rows_o,
  output wire    [31:0] saved_o,        // multiplications that a row did without, else 0
  output wire           step_o          // the arithmetic moves
);

  localparam int unsigned MaxSlice = csrec_pkg::TT_MAX_SLICE;
  localparam int unsigned SliceW   = $clog2(MaxSlice + 1);
  localparam int unsigned DimW     = $clog2(MaxDim + 1);
  localparam int unsigned RankW    = $clog2(MaxRank + 1);
  localparam int unsigned StepsW   = $clog2(MaxRank / 8 + 1);
  // Words of a bank: A, C and T have at most MaxDim rows or columns of MaxRank elements
  localparam int unsigned PartW    = $clog2(MaxDim * MaxRank / 8);
  localparam int unsigned LeftW    = PartW + 1;                   // T, then A
  localparam int unsigned MaxSetW  = $clog2(csrec_pkg::TT_MAX_KEPT);
  localparam int unsigned SetW     = $clog2(PartW + 1);
  localparam int unsigned RightLen = MaxSlice + 2 ** PartW;       // B, then C
  localparam int unsigned RightW   = $clog2(RightLen);

  localparam logic [31:0] One = 32'h3f800000;

  // Operands, in the order of their checks, and tags of the mem client's requests. The
  // output has one for each direction.
  localparam logic [2:0] OpndCore0   = 3'd0;
  localparam logic [2:0] OpndCore1   = 3'd1;
  localparam logic [2:0] OpndCore2   = 3'd2;
  localparam logic [2:0] OpndIds     = 3'd3;
  localparam logic [2:0] OpndOffsets = 3'd4;
  localparam logic [2:0] OpndWeights = 3'd5;
  localparam logic [2:0] OpndOut     = 3'd6;
  localparam logic [2:0] OpndOutRd   = 3'd7;

  typedef enum logic [3:0] {
    StIdle, StSize, StValues, StExtent, StCheck, StWait,
    StItem, StLoad, StMulT, StMulRow, StBag, StAccAsk, StAccWait, StHand,
    StStop, StDone
  } state_e;
  state_e state_q;

  // -------------------------------------------------------------------------------
  // Descriptor

  localparam int unsigned DescW = 8 * csrec_pkg::TT_DESC_BYTES;

  logic [DescW-1:0] desc_q;
  logic      [15:0] domain_q;

  wire [31:0] flags       = desc_q[csrec_pkg::TT_DESC_FLAGS_LSB +: 32];
  wire [31:0] nbags       = desc_q[csrec_pkg::TT_DESC_NBAGS_LSB +: 32];
  wire [31:0] nids        = desc_q[csrec_pkg::TT_DESC_NIDS_LSB +: 32];
  wire [31:0] p0          = desc_q[csrec_pkg::TT_DESC_P_LSB +: 32];
  wire [31:0] p1          = desc_q[csrec_pkg::TT_DESC_P_LSB + 32 +: 32];
  wire [31:0] p2          = desc_q[csrec_pkg::TT_DESC_P_LSB + 64 +: 32];
  wire [15:0] q0          = desc_q[csrec_pkg::TT_DESC_Q_LSB +: 16];
  wire [15:0] q1          = desc_q[csrec_pkg::TT_DESC_Q_LSB + 16 +: 16];
  wire [15:0] q2          = desc_q[csrec_pkg::TT_DESC_Q_LSB + 32 +: 16];
  wire [15:0] r1          = desc_q[csrec_pkg::TT_DESC_R_LSB +: 16];
  wire [15:0] r2          = desc_q[csrec_pkg::TT_DESC_R_LSB + 16 +: 16];
  wire [31:0] out_stride  = desc_q[csrec_pkg::TT_DESC_OUT_STRIDE_LSB +: 32];
  wire [63:0] nrows       = desc_q[csrec_pkg::TT_DESC_NROWS_LSB +: 64];
  wire [95:0] core_key    = desc_q[csrec_pkg::TT_DESC_CORE_KEY_LSB +: 96];
  wire [31:0] ids_key     = desc_q[csrec_pkg::TT_DESC_IDS_KEY_LSB +: 32];
  wire [31:0] offsets_key = desc_q[csrec_pkg::TT_DESC_OFFSETS_KEY_LSB +: 32];
  wire [31:0] weights_key = desc_q[csrec_pkg::TT_DESC_WEIGHTS_KEY_LSB +: 32];
  wire [31:0] out_key     = desc_q[csrec_pkg::TT_DESC_OUT_KEY_LSB +: 32];
  wire [63:0] core_off0   = desc_q[csrec_pkg::TT_DESC_CORE_OFF_LSB +: 64];
  wire [63:0] core_off1   = desc_q[csrec_pkg::TT_DESC_CORE_OFF_LSB + 64 +: 64];
  wire [63:0] core_off2   = desc_q[csrec_pkg::TT_DESC_CORE_OFF_LSB + 128 +: 64];
  wire [63:0] ids_off     = desc_q[csrec_pkg::TT_DESC_IDS_OFF_LSB +: 64];
  wire [63:0] offsets_off = desc_q[csrec_pkg::TT_DESC_OFFSETS_OFF_LSB +: 64];
  wire [63:0] weights_off = desc_q[csrec_pkg::TT_DESC_WEIGHTS_OFF_LSB +: 64];
  wire [63:0] out_off     = desc_q[csrec_pkg::TT_DESC_OUT_OFF_LSB +: 64];

  wire        weighted    = (flags & csrec_pkg::TT_F_WEIGHTS) != '0;
  wire        accum       = (flags & csrec_pkg::TT_F_ACCUM) != '0;

  // The product of the engine: sizes in StSize, extents in StExtent, then offsets of
  // slices. Sizes come one a cycle; each is taken from prod_q one step later.
  logic        [3:0] size_q;
  logic       [63:0] prod_q;
  logic       [31:0] mul_a, mul_b;

  logic       [31:0] prows_q;              // rows there can be
  logic   [DimW-1:0] q01_q, dim_q;
  logic [SliceW-1:0] b_cols_q;             // q1 * r2
  logic [SliceW-1:0] slice0_q, slice1_q, slice2_q;
  logic       [31:0] t_macs_q;             // what T takes: q0 * r1 * q1 * r2
  logic  [PartW-1:0] t_last_q;             // its last word in a bank: q0 * q1 * steps - 1
  logic              p_bad_q, q_bad_q, slice_bad_q;

  always_ff @(posedge clk_i) begin
    prod_q <= mul_a * mul_b;
    size_q <= state_q == StSize ? size_q + 4'd1 : '0;
    if (state_q == StSize) begin
      unique case (size_q)
        4'd1: p_bad_q <= prod_q[63:32] != '0;
        4'd2: begin
          prows_q     <= prod_q[31:0];
          p_bad_q     <= p_bad_q || prod_q[63:32] != '0;
        end
        4'd3: q01_q   <= prod_q[DimW-1:0];
        4'd4: begin
          dim_q       <= prod_q[DimW-1:0];
          q_bad_q     <= prod_q > 64'(MaxDim);
        end
        4'd5: b_cols_q <= prod_q[SliceW-1:0];
        4'd6: begin
          slice1_q    <= prod_q[SliceW-1:0];
          slice_bad_q <= prod_q > 64'(MaxSlice);
        end
        4'd7: begin
          slice0_q    <= prod_q[SliceW-1:0];
          slice_bad_q <= slice_bad_q || prod_q > 64'(MaxSlice);
        end
        4'd8: begin
          slice2_q    <= prod_q[SliceW-1:0];
          slice_bad_q <= slice_bad_q || prod_q > 64'(MaxSlice);
        end
        4'd9:  t_macs_q <= prod_q[31:0];
        4'd10: t_last_q <= prod_q[PartW-1:0] - 1'b1;
        default: ;
      endcase
    end
  end

  wire [DimW+1:0] row_bytes = {dim_q, 2'd0};

  function automatic logic [15:0] field(input int unsigned lsb);
    field = csrec_pkg::FIELD_DESC | 16'(lsb / 8);
  endfunction

  // Pass 6: the first of these that fails
  logic        bad;
  logic  [7:0] bad_status;
  logic [15:0] bad_field;
  logic [63:0] bad_detail;

  always_comb begin
    bad        = 1'b1;
    bad_status = csrec_pkg::ST_BAD_VALUE;
    bad_field  = csrec_pkg::FIELD_NONE;
    bad_detail = '0;
    if ((flags & ~csrec_pkg::TT_F_ALL) != '0) begin
      bad_status = csrec_pkg::ST_BAD_FLAGS;
      bad_field  = field(csrec_pkg::TT_DESC_FLAGS_LSB);
      bad_detail = 64'(flags);
    end else if (desc_q[csrec_pkg::TT_DESC_RSVD34_LSB +: csrec_pkg::TT_DESC_RSVD34_W] != '0) begin
      bad_status = csrec_pkg::ST_RESERVED;
      bad_field  = field(csrec_pkg::TT_DESC_RSVD34_LSB);
    end else if (!weighted && weights_key != '0) begin
      bad_status = csrec_pkg::ST_RESERVED;
      bad_field  = field(csrec_pkg::TT_DESC_WEIGHTS_KEY_LSB);
    end else if (desc_q[csrec_pkg::TT_DESC_RSVD76_LSB +: csrec_pkg::TT_DESC_RSVD76_W] != '0) begin
      bad_status = csrec_pkg::ST_RESERVED;
      bad_field  = field(csrec_pkg::TT_DESC_RSVD76_LSB);
    end else if (!weighted && weights_off != '0) begin
      bad_status = csrec_pkg::ST_RESERVED;
      bad_field  = field(csrec_pkg::TT_DESC_WEIGHTS_OFF_LSB);
    end else if (desc_q[csrec_pkg::TT_DESC_RSVD136_LSB +:
                        csrec_pkg::TT_DESC_RSVD136_W] != '0) begin
      bad_status = csrec_pkg::ST_RESERVED;
      bad_field  = field(csrec_pkg::TT_DESC_RSVD136_LSB);
    end else if (nbags == '0) begin
      bad_field  = field(csrec_pkg::TT_DESC_NBAGS_LSB);
    end else if (p0 == '0) begin
      bad_field  = field(csrec_pkg::TT_DESC_P_LSB);
    end else if (p1 == '0) begin
      bad_field  = field(csrec_pkg::TT_DESC_P_LSB + 32);
    end else if (p2 == '0) begin
      bad_field  = field(csrec_pkg::TT_DESC_P_LSB + 64);
    end else if (p_bad_q) begin
      bad_field  = field(csrec_pkg::TT_DESC_P_LSB);
    end else if (q0 == '0) begin
      bad_field  = field(csrec_pkg::TT_DESC_Q_LSB);
    end else if (q1 == '0) begin
      bad_field  = field(csrec_pkg::TT_DESC_Q_LSB + 16);
    end else if (q2 == '0) begin
      bad_field  = field(csrec_pkg::TT_DESC_Q_LSB + 32);
    end else if (q_bad_q) begin
      bad_field  = field(csrec_pkg::TT_DESC_Q_LSB);
    end else if (r1 == '0 || r1 > 16'(MaxRank)) begin
      bad_field  = field(csrec_pkg::TT_DESC_R_LSB);
      bad_detail = 64'(r1);
    end else if (r2 == '0 || r2 > 16'(MaxRank)) begin
      bad_field  = field(csrec_pkg::TT_DESC_R_LSB + 16);
      bad_detail = 64'(r2);
    end else if (slice_bad_q) begin
      bad_field  = field(csrec_pkg::TT_DESC_Q_LSB);
    end else if (out_stride[1:0] != '0 || out_stride < 32'(row_bytes)) begin
      if (out_stride[1:0] != '0) bad_status = csrec_pkg::ST_BAD_ALIGN;
      bad_field  = field(csrec_pkg::TT_DESC_OUT_STRIDE_LSB);
      bad_detail = 64'(out_stride);
    end else if (nrows == '0 || nrows > 64'(prows_q)) begin
      bad_field  = field(csrec_pkg::TT_DESC_NROWS_LSB);
      bad_detail = nrows;
    end else begin
      bad_status = csrec_pkg::ST_BAD_ALIGN;
      if (core_off0[1:0] != '0) begin
        bad_field  = field(csrec_pkg::TT_DESC_CORE_OFF_LSB);
        bad_detail = core_off0;
      end else if (core_off1[1:0] != '0) begin
        bad_field  = field(csrec_pkg::TT_DESC_CORE_OFF_LSB + 64);
        bad_detail = core_off1;
      end else if (core_off2[1:0] != '0) begin
        bad_field  = field(csrec_pkg::TT_DESC_CORE_OFF_LSB + 128);
        bad_detail = core_off2;
      end else if (ids_off[1:0] != '0) begin
        bad_field  = field(csrec_pkg::TT_DESC_IDS_OFF_LSB);
        bad_detail = ids_off;
      end else if (offsets_off[1:0] != '0) begin
        bad_field  = field(csrec_pkg::TT_DESC_OFFSETS_OFF_LSB);
        bad_detail = offsets_off;
      end else if (weights_off[1:0] != '0) begin
        bad_field  = field(csrec_pkg::TT_DESC_WEIGHTS_OFF_LSB);
        bad_detail = weights_off;
      end else if (out_off[1:0] != '0) begin
        bad_field  = field(csrec_pkg::TT_DESC_OUT_OFF_LSB);
        bad_detail = out_off;
      end else begin
        bad = 1'b0;
      end
    end
  end

  // An operand: of opnd_q while checking and loading, of the failed request when that is
  // done
  logic  [2:0] opnd_q;
  wire         fail;
  wire   [7:0] fail_status;
  wire   [2:0] fail_tag;
  wire   [2:0] opnd = fail ? fail_tag : opnd_q;
  logic [31:0] opnd_key;
  logic [63:0] opnd_off;
  logic [15:0] opnd_key_field, opnd_off_field;
  logic [31:0] ext_a, ext_b;  // its extent is a * b + c
  logic [34:0] ext_c;

  always_comb begin
    ext_a = 32'd4;
    ext_b = nids;
    ext_c = '0;
    unique case (opnd)
      OpndCore0: begin
        opnd_key       = core_key[31:0];
        opnd_off       = core_off0;
        opnd_key_field = field(csrec_pkg::TT_DESC_CORE_KEY_LSB);
        opnd_off_field = field(csrec_pkg::TT_DESC_CORE_OFF_LSB);
        ext_a          = p0;
        ext_b          = 32'({slice0_q, 2'd0});
      end
      OpndCore1: begin
        opnd_key       = core_key[63:32];
        opnd_off       = core_off1;
        opnd_key_field = field(csrec_pkg::TT_DESC_CORE_KEY_LSB + 32);
        opnd_off_field = field(csrec_pkg::TT_DESC_CORE_OFF_LSB + 64);
        ext_a          = p1;
        ext_b          = 32'({slice1_q, 2'd0});
      end
      OpndCore2: begin
        opnd_key       = core_key[95:64];
        opnd_off       = core_off2;
        opnd_key_field = field(csrec_pkg::TT_DESC_CORE_KEY_LSB + 64);
        opnd_off_field = field(csrec_pkg::TT_DESC_CORE_OFF_LSB + 128);
        ext_a          = p2;
        ext_b          = 32'({slice2_q, 2'd0});
      end
      OpndIds: begin
        opnd_key       = ids_key;
        opnd_off       = ids_off;
        opnd_key_field = field(csrec_pkg::TT_DESC_IDS_KEY_LSB);
        opnd_off_field = field(csrec_pkg::TT_DESC_IDS_OFF_LSB);
      end
      OpndOffsets: begin
        opnd_key       = offsets_key;
        opnd_off       = offsets_off;
        opnd_key_field = field(csrec_pkg::TT_DESC_OFFSETS_KEY_LSB);
        opnd_off_field = field(csrec_pkg::TT_DESC_OFFSETS_OFF_LSB);
        ext_b          = nbags;
        ext_c          = 35'd4;
      end
      OpndWeights: begin
        opnd_key       = weights_key;
        opnd_off       = weights_off;
        opnd_key_field = field(csrec_pkg::TT_DESC_WEIGHTS_KEY_LSB);
        opnd_off_field = field(csrec_pkg::TT_DESC_WEIGHTS_OFF_LSB);
      end
      default: begin
        opnd_key       = out_key;
        opnd_off       = out_off;
        opnd_key_field = field(csrec_pkg::TT_DESC_OUT_KEY_LSB);
        opnd_off_field = field(csrec_pkg::TT_DESC_OUT_OFF_LSB);
        ext_a          = out_stride;
        ext_b          = nbags - 32'd1;
        ext_c          = 35'(row_bytes);
      end
    endcase
  end

  // -------------------------------------------------------------------------------
  // Items: from the walker, with the digits of the row's id

  logic       running_q;
  wire        start;      // running_q rises
  wire        idle, in_ready;
  wire  [2:0] rd_tag, rsp_tag;
  wire        walk_req_valid;
  logic       walk_req_ready;
  wire  [1:0] walk_req_sel;
  wire [63:0] walk_req_off;
  wire [12:0] walk_req_len;
  wire        walk_beat = rd_tag == OpndIds || rd_tag == OpndOffsets || rd_tag == OpndWeights;
  wire  [1:0] walk_beat_sel = rd_tag == OpndIds ? 2'd1 : rd_tag == OpndWeights ? 2'd2 : 2'd0;
  wire        walk_valid, walk_ready, walk_empty, walk_end, walk_first, walk_last;
  wire [31:0] walk_id, walk_weight;
  wire  [7:0] end_status;
  wire [63:0] end_detail;

  csrec_bag_walk u_walk (
    .clk_i         (clk_i),
    .rst_ni        (rst_ni),
    .start_i       (start),
    .nbags_i       (nbags),
    .nids_i        (nids),
    .nrows_i       (nrows[32:0]),
    .weighted_i    (weighted),
    .ids_off_i     (ids_off),
    .offsets_off_i (offsets_off),
    .weights_off_i (weights_off),
    .req_valid_o   (walk_req_valid),
    .req_ready_i   (walk_req_ready),
    .req_sel_o     (walk_req_sel),
    .req_off_o     (walk_req_off),
    .req_len_o     (walk_req_len),
    .beat_valid_i  (rd_valid_i && walk_beat),
    .beat_sel_i    (walk_beat_sel),
    .beat_i        (rd_data_i),
    .item_valid_o  (walk_valid),
    .item_ready_i  (walk_ready),
    .item_empty_o  (walk_empty),
    .item_end_o    (walk_end),
    .item_first_o  (walk_first),
    .item_last_o   (walk_last),
    .item_id_o     (walk_id),
    .item_weight_o (walk_weight),
    .end_status_o  (end_status),
    .end_detail_o  (end_detail)
  );

  // The next item: id / p2 gives the leading digits and i2; these, by p1, i0 and i1.
  typedef enum logic [1:0] {ItNone, ItDiv1, ItDiv2, ItReady} it_e;
  it_e         it_q;
  logic        it_empty_q, it_end_q, it_first_q, it_last_q;
  logic [31:0] it_weight_q, it_lead_q, it_i2_q;
  wire         it_row = !it_empty_q && !it_end_q;
  wire         it_pop;
  wire         div_done;
  wire  [31:0] div_quot, div_rem;  // with ItReady: i0 and i1

  assign walk_ready = running_q && it_q == ItNone;

  always_ff @(posedge clk_i) begin
    if (!running_q) begin
      it_q <= ItNone;
    end else begin
      unique case (it_q)
        ItNone: if (walk_valid) it_q <= walk_empty || walk_end ? ItReady : ItDiv1;
        ItDiv1: if (div_done) it_q <= ItDiv2;
        ItDiv2: if (div_done) it_q <= ItReady;
        default: if (it_pop) it_q <= ItNone;
      endcase
    end
    if (walk_ready) begin
      it_empty_q  <= walk_empty;
      it_end_q    <= walk_end;
      it_first_q  <= walk_first;
      it_last_q   <= walk_last;
      it_weight_q <= walk_weight;
    end
    if (it_q == ItDiv1) begin
      it_lead_q <= div_quot;
      it_i2_q   <= div_rem;
    end
  end

  csrec_div u_div (
    .clk_i   (clk_i),
    .rst_ni  (rst_ni),
    .start_i ((walk_ready && walk_valid) || (it_q == ItDiv1 && div_done)),
    .a_i     (it_q == ItDiv1 ? div_quot : walk_id),
    .b_i     (it_q == ItDiv1 ? p1 : p2),
    .done_o  (div_done),
    .quot_o  (div_quot),
    .rem_o   (div_rem)
  );

  // -------------------------------------------------------------------------------
  // Requests for the row's slices, and for the output with F_ACCUM

  typedef enum logic [1:0] {RqNone, RqMul, RqFirst, RqRest} rq_e;
  rq_e               rq_q;
  logic       [63:0] rq_off_q;
  logic [SliceW-1:0] rq_left_q;   // elements
  logic        [2:0] pending_q;   // READs of slices and output not yet answered
  logic       [31:0] digit;
  logic [SliceW-1:0] slice;
  logic              rq_ready;

  localparam logic [SliceW-1:0] ChunkElems = SliceW'(csrec_pkg::MEM_MAX_LEN / 4);

  wire load_go = state_q == StItem && it_q == ItReady && it_row;

  // Places for T: a power of two of words each, as many as fit, at most 2 ** MaxSetW.
  logic        [SetW-1:0] t_bits, set_bits;   // logarithms of their size and number
  logic     [2**MaxSetW-1:0] t_valid_q;
  logic            [31:0] t_lead_q [2**MaxSetW];
  wire      [MaxSetW-1:0] set    = it_lead_q[MaxSetW-1:0] & ~(MaxSetW'('1) << set_bits);
  wire                    t_same = t_valid_q[set] && t_lead_q[set] == it_lead_q;
  wire        [PartW-1:0] t_base = PartW'(PartW'(set) << t_bits);
  wire                    t_done;

  always_comb begin
    t_bits = '0;
    for (int unsigned i = 0; i < PartW; i++) begin
      if (t_last_q[i]) t_bits = SetW'(i + 1);
    end
    set_bits = SetW'(PartW) - t_bits;
    if (set_bits > SetW'(MaxSetW)) set_bits = SetW'(MaxSetW);
  end

  always_ff @(posedge clk_i) begin
    if (!running_q) t_valid_q <= '0;
    else if (load_go && !t_same) t_valid_q[set] <= 1'b0;
    else if (t_done) t_valid_q[set] <= 1'b1;
    if (load_go) t_lead_q[set] <= it_lead_q;
  end

  wire [SliceW-1:0] rq_chunk = rq_left_q > ChunkElems ? ChunkElems : rq_left_q;
  wire rq_go   = rq_q == RqRest && rq_ready;
  wire rq_done = rq_go && rq_chunk == rq_left_q;
  wire acc_go;     // the READ of the output is accepted

  always_comb begin
    unique case (opnd_q)
      OpndCore0: begin
        digit = div_quot;
        slice = slice0_q;
      end
      OpndCore1: begin
        digit = div_rem;
        slice = slice1_q;
      end
      default: begin
        digit = it_i2_q;
        slice = slice2_q;
      end
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!running_q) begin
      rq_q <= RqNone;
    end else begin
      unique case (rq_q)
        RqNone: if (load_go) rq_q <= RqMul;
        RqMul: rq_q <= RqFirst;
        RqFirst: rq_q <= RqRest;
        default: if (rq_done) rq_q <= opnd_q == OpndCore2 ? RqNone : RqMul;
      endcase
    end
    if (rq_q == RqFirst) begin
      rq_off_q  <= opnd_off + prod_q;
      rq_left_q <= slice;
    end else if (rq_go) begin
      rq_off_q  <= rq_off_q + 64'({rq_chunk, 2'd0});
      rq_left_q <= rq_left_q - rq_chunk;
    end
  end

  wire answered = rsp_valid_i && (rsp_tag == OpndOutRd || rsp_tag == OpndCore0 ||
                                  rsp_tag == OpndCore1 || rsp_tag == OpndCore2);

  always_ff @(posedge clk_i) begin
    if (!running_q) pending_q <= '0;
    else pending_q <= pending_q + 3'(rq_go || acc_go) - 3'(answered);
  end

  // Operands of the multiplier
  always_comb begin
    mul_a = ext_a;
    mul_b = ext_b;
    if (state_q == StSize) begin
      unique case (size_q)
        4'd0: begin
          mul_a = p1;
          mul_b = p2;
        end
        4'd1: begin
          mul_a = p0;
          mul_b = prod_q[31:0];
        end
        4'd2: begin
          mul_a = 32'(q0);
          mul_b = 32'(q1);
        end
        4'd3: begin
          mul_a = prod_q[31:0];
          mul_b = 32'(q2);
        end
        4'd4: begin
          mul_a = 32'(q1);
          mul_b = 32'(r2);
        end
        4'd5: begin
          mul_a = prod_q[31:0];
          mul_b = 32'(r1);
        end
        4'd6: begin
          mul_a = 32'(q0);
          mul_b = 32'(r1);
        end
        4'd7: begin
          mul_a = 32'(q2);
          mul_b = 32'(r2);
        end
        4'd8: begin
          mul_a = 32'(q0);
          mul_b = 32'(slice1_q);
        end
        default: begin
          mul_a = 32'(q01_q);
          mul_b = 32'(steps_t);
        end
      endcase
    end else if (running_q) begin
      mul_a = digit;
      mul_b = 32'({slice, 2'd0});
    end
  end

  // -------------------------------------------------------------------------------
  // Loading: beats to elements, elements to where they belong

  typedef enum logic [2:0] {LdA, LdB, LdC, LdLoaded, LdOut} ld_e;
  ld_e                ld_q;
  logic       [511:0] beat_q;
  logic               beat_valid_q;
  logic         [3:0] idx_q;       // element of the beat
  logic [SliceW-1:0]  ld_left_q;   // elements of the slice, or of the output
  logic [SliceW-1:0]  col_q;       // in the slice's row
  logic [RankW-1:0]   row_mod_q;   // its row, B and C
  logic [RightW-1:0]  at_q;        // where the slice's row starts in a bank

  logic [SliceW-1:0]  cols;        // of the slice's row
  always_comb begin
    unique case (ld_q)
      LdA:     cols = SliceW'(r1);
      LdB:     cols = b_cols_q;
      default: cols = SliceW'(q2);
    endcase
  end

  wire                acc_in_ready;
  wire                quad     = cols[1:0] == '0 && ld_q != LdOut;
  wire          [2:0] ld_n     = quad ? 3'd4 : 3'd1;
  wire                ld_go    = beat_valid_q && (ld_q != LdOut || acc_in_ready);
  wire                ld_end   = ld_left_q == SliceW'(ld_n);
  wire                beat_end = ld_go && (ld_end || {1'b0, idx_q} + 5'(ld_n) == 5'd16);
  wire [SliceW-1:0]   col_next = col_q + SliceW'(ld_n);
  wire                row_end  = col_next == cols;
  wire        [127:0] ld_x     = quad ? beat_q[{idx_q[3:2], 7'd0} +: 128]
                                      : {4{beat_q[{idx_q, 5'd0} +: 32]}};

  wire                ld_ready = !running_q || !beat_valid_q || beat_end;
  wire                ld_take  = rd_valid_i && !walk_beat && ld_ready && running_q;

  assign rd_ready_o = walk_beat || ld_ready;

  wire [StepsW-1:0] steps_a = StepsW'(r1[RankW-1:0] >> 3) + StepsW'(r1[2:0] != '0);
  wire [StepsW-1:0] steps_t = StepsW'(r2[RankW-1:0] >> 3) + StepsW'(r2[2:0] != '0);

  always_ff @(posedge clk_i) begin
    if (!running_q) begin
      ld_q         <= LdLoaded;
      beat_valid_q <= 1'b0;
    end else begin
      if (ld_take) beat_valid_q <= 1'b1;
      else if (beat_end) beat_valid_q <= 1'b0;

      if (load_go) ld_q <= t_same ? LdC : LdA;
      else if (acc_go) ld_q <= LdOut;
      else if (ld_go && ld_end) begin
        unique case (ld_q)
          LdA:     ld_q <= LdB;
          LdB:     ld_q <= LdC;
          default: ld_q <= LdLoaded;
        endcase
      end
    end
    if (ld_take) begin
      beat_q <= rd_data_i;
      idx_q  <= '0;
    end else if (ld_go) begin
      idx_q  <= idx_q + 4'(ld_n);
    end

    if (load_go || acc_go || (ld_go && ld_end)) begin
      ld_left_q <= load_go ? (t_same ? slice2_q : slice0_q) : acc_go ? SliceW'(dim_q) :
                   ld_q == LdA ? slice1_q : slice2_q;
      at_q      <= (load_go ? t_same : ld_q == LdB) ? RightW'(MaxSlice) : '0;  // next slice's
      col_q     <= '0;
      row_mod_q <= '0;
    end else if (ld_go) begin
      ld_left_q <= ld_left_q - SliceW'(ld_n);
      col_q     <= row_end && ld_q != LdOut ? '0 : col_next;
      if (row_end) begin
        row_mod_q <= row_mod_q + 1'b1;
        if (ld_q == LdA) at_q <= at_q + RightW'(steps_a);
        else if (row_mod_q[2:0] == 3'd7) at_q <= at_q + RightW'(cols);
      end
    end
  end

  wire loaded = ld_q == LdLoaded && pending_q == '0 && rq_q == RqNone;

  // -------------------------------------------------------------------------------
  // Dot products: T[i][c] of A's row i and B's column c, then row[m][c] of T's row m and
  // C's column c, in the order of the results. Groups of eight; a group takes steps rounds
  // of eight cycles, one for each product of it.

  wire                by_row = state_q == StMulRow;   // else T
  wire                at_work = state_q == StMulT || by_row;
  wire     [DimW-1:0] mul_rows  = by_row ? q01_q : q0[DimW-1:0];
  wire   [SliceW-1:0] mul_cols  = by_row ? SliceW'(q2) : b_cols_q;
  wire   [StepsW-1:0] mul_steps = by_row ? steps_t : steps_a;
  wire          [2:0] mul_rest  = by_row ? r2[2:0] : r1[2:0];  // lanes of the last step

  logic    [DimW-1:0] walk_row_q, base_row_q;
  logic  [SliceW-1:0] walk_col_q, base_col_q;
  logic   [PartW-1:0] walk_at_q, base_at_q;   // row * steps
  logic  [RightW-1:0] step_at_q;              // step * columns
  logic  [StepsW-1:0] step_q;
  logic         [2:0] slot_q;
  wire                mul_done;               // the phase's last result is here

  wire                issue     = at_work && walk_row_q != mul_rows;
  wire                col_last  = walk_col_q + 1'b1 == mul_cols;
  wire                step_last = step_q + 1'b1 == mul_steps;
  wire                round_end = slot_q == 3'd7;
  wire                group_end = round_end && step_last;
  wire     [DimW-1:0] next_row  = issue && col_last ? walk_row_q + 1'b1 : walk_row_q;
  wire   [SliceW-1:0] next_col  = col_last ? '0 : walk_col_q + 1'b1;
  wire    [PartW-1:0] next_at   = col_last ? walk_at_q + PartW'(mul_steps) : walk_at_q;

  always_ff @(posedge clk_i) begin
    if (!at_work || mul_done) begin
      walk_row_q <= '0;
      walk_col_q <= '0;
      walk_at_q  <= '0;
      base_row_q <= '0;
      base_col_q <= '0;
      base_at_q  <= '0;
      step_at_q  <= '0;
      step_q     <= '0;
      slot_q     <= '0;
    end else begin
      slot_q <= slot_q + 3'd1;
      if (round_end) begin
        step_q    <= group_end ? '0 : step_q + 1'b1;
        step_at_q <= group_end ? '0 : step_at_q + RightW'(mul_cols);
      end
      if (round_end && !group_end) begin
        walk_row_q <= base_row_q;
        walk_col_q <= base_col_q;
        walk_at_q  <= base_at_q;
      end else begin
        walk_row_q <= next_row;
        walk_col_q <= next_col;
        walk_at_q  <= next_at;
      end
      if (group_end) begin
        base_row_q <= next_row;
        base_col_q <= next_col;
        base_at_q  <= next_at;
      end
    end
  end

  wire  [LeftW-1:0] left_at  = {!by_row, (by_row ? t_base : '0) + walk_at_q + PartW'(step_q)};
  wire [RightW-1:0] right_at = (by_row ? RightW'(MaxSlice) : '0) + step_at_q +
                               RightW'(walk_col_q);

  // One cycle later the operands are there.
  logic       dot_valid_q, dot_first_q, dot_last_q;
  logic [2:0] dot_slot_q;
  logic [1:0] dot_sub_q;      // word of the right operands' quadruple
  logic [7:0] dot_lanes_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) dot_valid_q <= 1'b0;
    else dot_valid_q <= issue;
    dot_first_q <= step_q == '0;
    dot_last_q  <= step_last;
    dot_slot_q  <= slot_q;
    dot_sub_q   <= right_at[1:0];
    dot_lanes_q <= step_last && mul_rest != '0 ? 8'((9'd1 << mul_rest) - 9'd1) : '1;
  end

  // Results
  wire                res_valid;
  wire         [31:0] res;
  /* verilator lint_off UNUSEDSIGNAL */
  wire          [3:0] res_slot;      // results come in order
  /* verilator lint_on UNUSEDSIGNAL */
  logic    [DimW-1:0] res_n_q;       // rows of T done; elements of the row done
  logic   [RankW-1:0] res_k_q;       // element of T's row
  logic   [PartW-1:0] res_at_q;      // where T's row starts

  wire res_take = at_work && res_valid;
  wire t_wr     = res_take && !by_row;
  wire t_end    = RankW'(res_k_q + 1'b1) == r2[RankW-1:0];

  assign mul_done = res_take && (by_row ? res_n_q + 1'b1 == dim_q
                                        : t_end && res_n_q + 1'b1 == q01_q);

  always_ff @(posedge clk_i) begin
    if (!at_work || mul_done) begin
      res_n_q  <= '0;
      res_k_q  <= '0;
      res_at_q <= '0;
    end else if (res_take) begin
      if (by_row || t_end) res_n_q <= res_n_q + 1'b1;
      res_k_q <= t_end ? '0 : res_k_q + 1'b1;
      if (t_end) res_at_q <= res_at_q + PartW'(steps_t);
    end
  end

  // Banks
  wire [255:0] left, right;
  wire         a_wr       = ld_go && ld_q == LdA;
  wire         bc_wr      = ld_go && (ld_q == LdB || ld_q == LdC);
  wire [LeftW-1:0]  left_wr_at  = t_wr ? {1'b0, t_base + res_at_q + PartW'(res_k_q >> 3)}
                                       : {1'b1, at_q[PartW-1:0] + PartW'(col_q >> 3)};
  wire [RightW-1:0] right_wr_at = at_q + RightW'(col_q);

  for (genvar j = 0; j < 8; j++) begin : gen_bank
    logic [31:0] left_q [2 ** LeftW];
    logic [31:0] left_rd_q;
    wire         a_here  = a_wr && (quad ? col_q[2] == (j >= 4) : col_q[2:0] == 3'(j));
    wire         t_here  = t_wr && res_k_q[2:0] == 3'(j);

    always_ff @(posedge clk_i) begin
      if (a_here || t_here) left_q[left_wr_at] <= t_here ? res : ld_x[32*(j%4) +: 32];
      if (issue) left_rd_q <= left_q[left_at];
    end
    assign left[32*j +: 32] = dot_lanes_q[j] ? left_rd_q : '0;

    wire [127:0] quad_rd;
    for (genvar s = 0; s < 4; s++) begin : gen_sub
      logic [31:0] right_q [(RightLen + 3) / 4];
      logic [31:0] right_rd_q;

      always_ff @(posedge clk_i) begin
        if (bc_wr && row_mod_q[2:0] == 3'(j) && (quad || right_wr_at[1:0] == 2'(s))) begin
          right_q[right_wr_at[RightW-1:2]] <= ld_x[32*s +: 32];
        end
        if (issue) right_rd_q <= right_q[right_at[RightW-1:2]];
      end
      assign quad_rd[32*s +: 32] = right_rd_q;
    end
    assign right[32*j +: 32] = dot_lanes_q[j] ? quad_rd[{dot_sub_q, 5'd0} +: 32] : '0;
  end

  csrec_dot u_dot (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni),
    .in_valid_i  (dot_valid_q),
    .in_slot_i   ({1'b0, dot_slot_q}),
    .in_first_i  (dot_first_q),
    .in_last_i   (dot_last_q),
    .in_a_i      (left),
    .in_b_i      (right),
    .out_valid_o (res_valid),
    .out_slot_o  (res_slot),
    .out_y_o     (res)
  );

  // Products on their way: after a stop they must come out before the next command.
  logic [5:0] flight_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) flight_q <= '0;
    else flight_q <= flight_q + 6'(dot_valid_q && dot_last_q) - 6'(res_valid);
  end

  // -------------------------------------------------------------------------------
  // Sums, and writing complete bags

  typedef enum logic [1:0] {WrIdle, WrAsk, WrTaken, WrData} wr_e;
  wr_e          wr_q;
  logic  [63:0] out_at_q;       // where the bag at work belongs
  logic  [63:0] wr_off_q;
  logic         bank_q, bag_empty_q;
  logic         wr_req_ready;
  wire          write_taken;
  wire          acc_idle, acc_out_valid;
  wire          write_rsp = rsp_valid_i && rsp_tag == OpndOut &&
                            (wr_q == WrTaken || wr_q == WrData);
  wire          bag_go    = state_q == StHand && wr_q == WrIdle;
  wire          acc_feed  = ld_q == LdOut && beat_valid_q;
  wire          acc_row   = by_row && res_valid;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wr_q <= WrIdle;
    end else begin
      unique case (wr_q)
        WrIdle: if (bag_go) wr_q <= WrAsk;
        WrAsk: if (wr_req_ready) wr_q <= WrTaken;
               else if (!running_q) wr_q <= WrIdle;
        WrTaken: if (write_rsp) wr_q <= WrIdle;
                 else if (write_taken) wr_q <= WrData;
        default: if (write_rsp) wr_q <= WrIdle;
      endcase
    end
    if (start) begin
      out_at_q <= out_off;
      bank_q   <= 1'b0;
    end else if (bag_go) begin
      out_at_q <= out_at_q + 64'(out_stride);
      wr_off_q <= out_at_q;
      bank_q   <= !bank_q;
    end
    if (state_q == StItem) bag_empty_q <= it_empty_q;
  end

  // Results come no faster than the sums take them: dim elements lie between two to the
  // same sum, or, if these are few, the time that the next row takes.
  csrec_bag_acc #(
    .Lanes  (1),
    .MaxDim (MaxDim)
  ) u_acc (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni),
    .in_valid_i  (acc_feed || acc_row),
    .in_ready_o  (acc_in_ready),
    .in_bank_i   (bank_q),
    .in_addr_i   (acc_feed ? col_q[$clog2(MaxDim)-1:0] : res_n_q[$clog2(MaxDim)-1:0]),
    .in_first_i  (acc_feed ? bag_empty_q : it_first_q),
    .in_w_i      (acc_feed ? One : it_weight_q),
    .in_x_i      (acc_feed ? ld_x[31:0] : res),
    .idle_o      (acc_idle),
    .out_start_i (bag_go),
    .out_stop_i  (write_rsp || (wr_q == WrAsk && !running_q)),
    .out_bank_i  (bank_q),
    .out_zero_i  (bag_empty_q && !accum),
    .out_beats_i (dim_q[DimW-1:4] + (DimW-4)'(dim_q[3:0] != '0)),
    .out_valid_o (acc_out_valid),
    .out_ready_i (wr_ready_i && wr_q == WrData),
    .out_data_o  (wr_data_o)
  );

  assign wr_valid_o = acc_out_valid && wr_q == WrData;
  assign t_done     = mul_done && !by_row;
  assign rows_o     = mul_done && by_row;
  assign saved_o    = rows_o && reuse_q ? t_macs_q : '0;
  assign step_o     = issue;

  // -------------------------------------------------------------------------------
  // Requests

  logic        in_valid, in_onchip;
  logic  [1:0] in_op;
  logic [31:0] in_key;
  logic [63:0] in_off, in_len;
  logic  [2:0] in_tag;
  logic        acc_ready;

  assign acc_go = state_q == StAccAsk && acc_ready;

  wire may_ask = running_q && !fail && in_ready;

  always_comb begin
    wr_req_ready   = 1'b0;
    rq_ready       = 1'b0;
    acc_ready      = 1'b0;
    walk_req_ready = 1'b0;
    in_valid       = running_q && !fail;
    in_op          = csrec_pkg::MEM_READ;
    in_onchip      = 1'b0;
    in_key         = opnd_key;
    in_off         = opnd_off;
    in_len         = prod_q + 64'(ext_c);
    in_tag         = opnd_q;
    if (!running_q) begin
      in_valid  = state_q == StCheck;
      in_op     = opnd_q == OpndOut ? csrec_pkg::MEM_CHECK_WR : csrec_pkg::MEM_CHECK_RD;
      in_onchip = opnd_q <= OpndCore2;
    end else if (wr_q == WrAsk) begin
      in_op        = csrec_pkg::MEM_WRITE;
      in_key       = out_key;
      in_off       = wr_off_q;
      in_len       = 64'(row_bytes);
      in_tag       = OpndOut;
      wr_req_ready = may_ask;
    end else if (rq_q == RqRest) begin
      in_onchip = 1'b1;
      in_off    = rq_off_q;
      in_len    = 64'({rq_chunk, 2'd0});
      rq_ready  = may_ask;
    end else if (state_q == StAccAsk) begin
      in_key    = out_key;
      in_off    = out_at_q;
      in_len    = 64'(row_bytes);
      in_tag    = OpndOutRd;
      acc_ready = may_ask;
    end else begin
      in_valid = walk_req_valid && !fail;
      in_off   = walk_req_off;
      in_len   = 64'(walk_req_len);
      unique case (walk_req_sel)
        2'd1: begin
          in_key = ids_key;
          in_tag = OpndIds;
        end
        2'd2: begin
          in_key = weights_key;
          in_tag = OpndWeights;
        end
        default: begin
          in_key = offsets_key;
          in_tag = OpndOffsets;
        end
      endcase
      walk_req_ready = may_ask;
    end
  end

  csrec_client u_client (
    .clk_i         (clk_i),
    .rst_ni        (rst_ni),
    .clear_i       (desc_valid_i && desc_ready_o),
    .in_valid_i    (in_valid),
    .in_ready_o    (in_ready),
    .in_op_i       (in_op),
    .in_onchip_i   (in_onchip),
    .in_key_i      (in_key),
    .in_off_i      (in_off),
    .in_len_i      (in_len),
    .in_tag_i      (in_tag),
    .req_valid_o   (req_valid_o),
    .req_ready_i   (req_ready_i),
    .req_op_o      (req_op_o),
    .req_onchip_o  (req_onchip_o),
    .req_key_o     (req_key_o),
    .req_off_o     (req_off_o),
    .req_len_o     (req_len_o),
    .rd_end_i      (rd_valid_i && rd_ready_o && rd_last_i),
    .rd_tag_o      (rd_tag),
    .rsp_valid_i   (rsp_valid_i),
    .rsp_status_i  (rsp_status_i),
    .rsp_tag_o     (rsp_tag),
    .write_taken_o (write_taken),
    .idle_o        (idle),
    .fail_o        (fail),
    .fail_status_o (fail_status),
    .fail_tag_o    (fail_tag)
  );

  assign req_domain_o = domain_q;

  // -------------------------------------------------------------------------------
  // Control

  logic        ran_q;          // a failed request belongs to pass 7
  logic        reuse_q;        // the row takes T as it is
  logic  [7:0] status_q;
  logic [15:0] field_q;
  logic [63:0] detail_q;

  wire stop       = fail || abort_i;
  wire last_opnd  = opnd_q == (accum ? OpndOutRd : OpndOut);
  wire finished   = state_q == StItem && it_q == ItReady && it_end_q && wr_q == WrIdle && idle;
  wire bag_done   = it_empty_q || it_last_q;

  // A row's item stays until the row is done.
  assign it_pop = (state_q == StItem && it_q == ItReady && it_empty_q) || (mul_done && by_row);

  assign start         = state_q == StWait && idle && !stop && last_opnd;
  assign desc_ready_o  = state_q == StIdle;
  assign done_valid_o  = state_q == StDone;
  assign done_status_o = status_q;
  assign done_field_o  = field_q;
  assign done_detail_o = detail_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q   <= StIdle;
      running_q <= 1'b0;
    end else begin
      unique case (state_q)
        StIdle: if (desc_valid_i) state_q <= StSize;
        StSize: if (size_q == 4'd10) state_q <= StValues;
        StValues: begin
          opnd_q   <= OpndCore0;
          ran_q    <= 1'b0;
          status_q <= bad_status;
          field_q  <= bad_field;
          detail_q <= bad_detail;
          state_q  <= bad ? StDone : StExtent;
        end
        StExtent: state_q <= StCheck;
        StCheck: if (in_ready) state_q <= StWait;
        StWait: if (idle) begin
          opnd_q    <= opnd_q + (opnd_q == OpndOffsets && !weighted ? 3'd2 : 3'd1);
          running_q <= start;
          state_q   <= stop ? StStop : start ? StItem : StExtent;
        end
        StStop: if (idle && flight_q == '0 && !dot_valid_q) begin
          if (!fail) begin
            status_q <= csrec_pkg::ST_ABORTED;
            field_q  <= csrec_pkg::FIELD_NONE;
            detail_q <= '0;
          end else begin
            status_q <= fail_status;
            field_q  <= opnd_key_field;
            detail_q <= 64'(opnd_key);
            if (!ran_q && fail_status == csrec_pkg::ST_OUT_OF_BOUNDS) begin
              field_q  <= opnd_off_field;
              detail_q <= opnd_off;
            end
          end
          state_q <= StDone;
        end
        StDone: if (done_ready_i) state_q <= StIdle;
        default: begin  // running
          ran_q <= 1'b1;
          if (load_go) opnd_q <= t_same ? OpndCore2 : OpndCore0;
          if (load_go) reuse_q <= t_same;
          else if (rq_done) opnd_q <= opnd_q + 3'd1;

          unique case (state_q)
            StItem: begin
              if (load_go) begin
                state_q <= StLoad;
              end else if (it_pop) begin
                state_q <= StBag;
              end else if (finished) begin
                status_q  <= end_status;
                field_q   <= end_status == csrec_pkg::ST_OK ? '0 :
                             end_status == csrec_pkg::ST_BAD_ID ?
                               field(csrec_pkg::TT_DESC_IDS_OFF_LSB) :
                               field(csrec_pkg::TT_DESC_OFFSETS_OFF_LSB);
                detail_q  <= end_detail;
                running_q <= 1'b0;
                state_q   <= StDone;
              end
            end
            StLoad: if (loaded) state_q <= reuse_q ? StMulRow : StMulT;
            StMulT: if (mul_done) state_q <= StMulRow;
            StMulRow: if (mul_done) state_q <= bag_done ? StBag : StItem;
            StBag: if (acc_idle) state_q <= accum ? StAccAsk : StHand;
            StAccAsk: if (acc_go) state_q <= StAccWait;
            StAccWait: if (loaded && acc_idle) state_q <= StHand;
            default: if (bag_go) state_q <= StItem;  // StHand
          endcase
          if (stop) begin
            running_q <= 1'b0;
            state_q   <= StStop;
          end
        end
      endcase
    end
    if (state_q == StIdle && desc_valid_i) begin
      desc_q   <= desc_i[DescW-1:0];
      domain_q <= desc_domain_i;
    end
  end

endmodule

`default_nettype wire
