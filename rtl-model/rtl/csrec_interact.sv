// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// INTERACT: pairwise dot products of a sample's vectors, or their concatenation
// (REFERENCE.md, section 4). desc_* is the start side of csrec_desc, req/rd/wr/rsp one
// mem client port, done_* the completion; see rtl/README.md.
//
// One sample after the other: read all vectors into the buffer, compute the products (up
// to eight at a time, so that steps of one are far enough apart) into the result buffer,
// write. A sample is computed only after its READs have ended well. Vectors that lie
// without gaps, each a whole number of beats, are read and written as one.
//
// A failed access or an abort ends the command; what was written until then stays.
`default_nettype none

module csrec_interact #(
  /* verilator lint_off UNUSEDPARAM */
  parameter int unsigned MaxDim  = 256,  // multiple of 16
  parameter int unsigned MaxVecs = 64,   // 8..128
  parameter int unsigned MaxRank = 32    // as the other engines have
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

  output wire           step_o          // the arithmetic moves
);

  localparam int unsigned BufBeats = MaxVecs * MaxDim / 16;
  localparam int unsigned BufW     = $clog2(BufBeats);
  localparam int unsigned MaxPairs = MaxVecs * (MaxVecs + 1) / 2;
  localparam int unsigned ResBeats = (MaxPairs + 15) / 16;
  localparam int unsigned ResW     = $clog2(ResBeats);
  localparam int unsigned SrcW     = BufW > ResW ? BufW : ResW;
  localparam int unsigned VecW     = $clog2(MaxVecs + 1);
  localparam int unsigned PairsW   = $clog2(MaxPairs + 1);
  localparam int unsigned StepW    = $clog2(MaxDim / 8 + 1);
  // Elements: of a sample's vectors, of its products, of an access
  localparam int unsigned MaxAll   = MaxVecs * MaxDim > MaxPairs ? MaxVecs * MaxDim : MaxPairs;
  localparam int unsigned MaxChunk = csrec_pkg::MEM_MAX_LEN / 4;
  localparam int unsigned ElemsW   = $clog2((MaxAll > MaxChunk ? MaxAll : MaxChunk) + 1);
  localparam logic [ElemsW-1:0] ChunkElems = ElemsW'(MaxChunk);

  localparam logic TagOut = 1'b1;  // of a request: which operand; else in

  typedef enum logic [3:0] {
    StIdle, StSize, StValues, StExtent, StCheck, StWait,
    StLoad, StPairs, StWrite, StStop, StDone
  } state_e;
  state_e state_q;

  // -------------------------------------------------------------------------------
  // Descriptor

  localparam int unsigned DescW = 8 * csrec_pkg::INTERACT_DESC_BYTES;

  logic [DescW-1:0] desc_q;
  logic      [15:0] domain_q;

  wire [31:0] flags      = desc_q[csrec_pkg::INTERACT_DESC_FLAGS_LSB +: 32];
  wire  [7:0] op         = desc_q[csrec_pkg::INTERACT_DESC_OP_LSB +: 8];
  wire [15:0] nvec       = desc_q[csrec_pkg::INTERACT_DESC_NVEC_LSB +: 16];
  wire [15:0] dim        = desc_q[csrec_pkg::INTERACT_DESC_DIM_LSB +: 16];
  wire [31:0] batch      = desc_q[csrec_pkg::INTERACT_DESC_BATCH_LSB +: 32];
  wire [31:0] in_key     = desc_q[csrec_pkg::INTERACT_DESC_IN_KEY_LSB +: 32];
  wire [31:0] out_key    = desc_q[csrec_pkg::INTERACT_DESC_OUT_KEY_LSB +: 32];
  wire [63:0] in_off     = desc_q[csrec_pkg::INTERACT_DESC_IN_OFF_LSB +: 64];
  wire [63:0] out_off    = desc_q[csrec_pkg::INTERACT_DESC_OUT_OFF_LSB +: 64];
  wire [31:0] vec_stride = desc_q[csrec_pkg::INTERACT_DESC_VEC_STRIDE_LSB +: 32];
  wire [31:0] in_stride  = desc_q[csrec_pkg::INTERACT_DESC_IN_STRIDE_LSB +: 32];
  wire [31:0] out_stride = desc_q[csrec_pkg::INTERACT_DESC_OUT_STRIDE_LSB +: 32];

  wire        self       = (flags & csrec_pkg::INTERACT_F_SELF) != '0;
  wire        cat        = op == csrec_pkg::INTERACT_CAT;
  wire [17:0] vec_bytes  = {dim, 2'd0};

  // StSize: sizes that follow from it. They mean something only if dim and nvec are legal.
  logic [PairsW-1:0] pairs_q;       // DOT: dot products of a sample
  logic [ElemsW-1:0] all_q;         // elements of all vectors
  logic       [38:0] vecs_span_q;   // from the first vector to the last
  logic       [31:0] out_bytes_q;   // of a sample

  wire  [VecW-1:0] n        = nvec[VecW-1:0];
  wire [2*VecW-1:0] twice   = {{VecW{1'b0}}, n} * (self ? {{VecW{1'b0}}, n} + 1'b1
                                                       : {{VecW{1'b0}}, n} - 1'b1);
  wire [ElemsW-1:0] all     = ElemsW'(n) * ElemsW'(dim);

  always_ff @(posedge clk_i) begin
    if (state_q == StSize) begin
      pairs_q     <= PairsW'(twice >> 1);
      all_q       <= all;
      vecs_span_q <= (39'(n) - 39'd1) * 39'(vec_stride);
      out_bytes_q <= cat ? 32'({all, 2'd0}) : 32'(vec_bytes) + 32'({twice >> 1, 2'd0});
    end
  end

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
    if ((flags & ~csrec_pkg::INTERACT_F_ALL) != '0) begin
      bad_status = csrec_pkg::ST_BAD_FLAGS;
      bad_field  = field(csrec_pkg::INTERACT_DESC_FLAGS_LSB);
      bad_detail = 64'(flags);
    end else if (desc_q[csrec_pkg::INTERACT_DESC_RSVD5_LSB +:
                        csrec_pkg::INTERACT_DESC_RSVD5_W] != '0) begin
      bad_status = csrec_pkg::ST_RESERVED;
      bad_field  = field(csrec_pkg::INTERACT_DESC_RSVD5_LSB);
    end else if (desc_q[csrec_pkg::INTERACT_DESC_RSVD10_LSB +:
                        csrec_pkg::INTERACT_DESC_RSVD10_W] != '0) begin
      bad_status = csrec_pkg::ST_RESERVED;
      bad_field  = field(csrec_pkg::INTERACT_DESC_RSVD10_LSB);
    end else if (desc_q[csrec_pkg::INTERACT_DESC_RSVD52_LSB +:
                        csrec_pkg::INTERACT_DESC_RSVD52_W] != '0) begin
      bad_status = csrec_pkg::ST_RESERVED;
      bad_field  = field(csrec_pkg::INTERACT_DESC_RSVD52_LSB);
    end else if (desc_q[csrec_pkg::INTERACT_DESC_RSVD56_LSB +:
                        csrec_pkg::INTERACT_DESC_RSVD56_W] != '0) begin
      bad_status = csrec_pkg::ST_RESERVED;
      bad_field  = field(csrec_pkg::INTERACT_DESC_RSVD56_LSB);
    end else if (op != csrec_pkg::INTERACT_DOT && op != csrec_pkg::INTERACT_CAT) begin
      bad_field  = field(csrec_pkg::INTERACT_DESC_OP_LSB);
      bad_detail = 64'(op);
    end else if (nvec == '0 || nvec > 16'(MaxVecs)) begin
      bad_field  = field(csrec_pkg::INTERACT_DESC_NVEC_LSB);
      bad_detail = 64'(nvec);
    end else if (dim == '0 || dim > 16'(MaxDim)) begin
      bad_field  = field(csrec_pkg::INTERACT_DESC_DIM_LSB);
      bad_detail = 64'(dim);
    end else if (batch == '0) begin
      bad_field  = field(csrec_pkg::INTERACT_DESC_BATCH_LSB);
      bad_detail = 64'(batch);
    end else if (in_off[1:0] != '0) begin
      bad_status = csrec_pkg::ST_BAD_ALIGN;
      bad_field  = field(csrec_pkg::INTERACT_DESC_IN_OFF_LSB);
      bad_detail = in_off;
    end else if (out_off[1:0] != '0) begin
      bad_status = csrec_pkg::ST_BAD_ALIGN;
      bad_field  = field(csrec_pkg::INTERACT_DESC_OUT_OFF_LSB);
      bad_detail = out_off;
    end else if (vec_stride[1:0] != '0 || vec_stride < 32'(vec_bytes)) begin
      if (vec_stride[1:0] != '0) bad_status = csrec_pkg::ST_BAD_ALIGN;
      bad_field  = field(csrec_pkg::INTERACT_DESC_VEC_STRIDE_LSB);
      bad_detail = 64'(vec_stride);
    end else if (in_stride[1:0] != '0) begin
      bad_status = csrec_pkg::ST_BAD_ALIGN;
      bad_field  = field(csrec_pkg::INTERACT_DESC_IN_STRIDE_LSB);
      bad_detail = 64'(in_stride);
    end else if (out_stride[1:0] != '0 || out_stride < out_bytes_q) begin
      if (out_stride[1:0] != '0) bad_status = csrec_pkg::ST_BAD_ALIGN;
      bad_field  = field(csrec_pkg::INTERACT_DESC_OUT_STRIDE_LSB);
      bad_detail = 64'(out_stride);
    end else if (self && cat) begin
      bad_status = csrec_pkg::ST_BAD_FLAGS;
      bad_field  = field(csrec_pkg::INTERACT_DESC_FLAGS_LSB);
      bad_detail = 64'(flags);
    end else begin
      bad = 1'b0;
    end
  end

  // Extents: (batch - 1) * stride + the sample's, which may need a 65th bit
  logic        check_out_q;   // the operand being checked
  logic [63:0] prod_q;
  wire  [31:0] gaps        = batch - 32'd1;
  wire  [31:0] stride      = check_out_q ? out_stride : in_stride;
  wire  [64:0] sample_span = check_out_q ? 65'(out_bytes_q)
                                         : 65'(vecs_span_q) + 65'(vec_bytes);
  wire  [64:0] extent      = {1'b0, prod_q} + sample_span;

  always_ff @(posedge clk_i) begin
    if (state_q == StExtent) prod_q <= gaps * stride;
  end

  // -------------------------------------------------------------------------------
  // A sample's segments: what is read, or written, with one offset. Each is cut into
  // accesses of at most 4 KiB.
  //
  //   load   flat: all vectors at once; else each
  //   write  CAT: likewise; DOT: vector 0, then the products

  logic        [31:0] sample_q;
  logic        [63:0] in_at_q, out_at_q;   // offsets of the sample
  logic    [VecW-1:0] seg_q;
  logic        [63:0] seg_at_q;            // offset of what remains of the segment
  logic  [ElemsW-1:0] seg_left_q;          // elements of it
  logic               asked_q;             // everything requested

  wire       whole_beats = dim[3:0] == '0;
  wire       in_flat     = whole_beats && vec_stride == 32'(vec_bytes);
  wire       loading     = state_q == StLoad;
  wire       writing     = state_q == StWrite;
  wire       flat        = writing ? cat && whole_beats : in_flat;
  wire [VecW-1:0] segs   = flat ? VecW'(1) :
                           writing && !cat ? (pairs_q == '0 ? VecW'(1) : VecW'(2)) : n;

  wire [ElemsW-1:0] chunk      = seg_left_q > ChunkElems ? ChunkElems : seg_left_q;
  wire        [5:0] chunk_rest = chunk[9:4] + 6'(chunk[3:0] != '0) - 6'd1;  // beats less one
  wire              seg_end    = chunk == seg_left_q;
  wire              seg_final  = seg_end && seg_q + 1'b1 == segs;

  wire        idle, fail, in_ready;
  wire  [7:0] fail_status;
  wire        fail_tag;
  wire        write_taken;

  // Data on its way out
  typedef enum logic [2:0] {WrIdle, WrAsked, WrFetch, WrOffer, WrSent} wr_e;
  wr_e             wr_q;
  logic      [5:0] wr_left_q;      // beats behind the one under way
  logic [SrcW-1:0] src_q;          // in the buffer, or in the results
  logic            src_res_q;

  // Nothing follows a failed WRITE: its data were not all taken, src_q is off.
  wire   ask = in_ready && !asked_q && !fail && (loading || (writing && wr_q == WrIdle));
  wire   write_rsp;
  wire   samples_done = sample_q == batch - 32'd1;

  // -------------------------------------------------------------------------------
  // Buffers. Vector i starts at beat i * beats_per_vec; beats are zero beyond the
  // vector's end, which is what csrec_dot wants.

  logic [511:0]      buf_q [BufBeats];
  logic [511:0]      res_q [ResBeats];
  logic [BufW-1:0]   load_at_q;
  logic [511:0]      vec_a_q, vec_b_q, res_rd_q;
  logic [BufW-1:0]   rd_a, rd_b;
  wire               rd_a_en, rd_b_en, res_rd_en, res_wr_en;
  logic [ResW-1:0]   res_wr_at_q;
  logic [511:0]      res_d;

  always_ff @(posedge clk_i) begin
    if (rd_valid_i && rd_ready_o) buf_q[load_at_q] <= rd_data_i;
    if (rd_a_en) vec_a_q <= buf_q[rd_a];
    if (rd_b_en) vec_b_q <= buf_q[rd_b];
    if (res_wr_en) res_q[res_wr_at_q] <= res_d;
    if (res_rd_en) res_rd_q <= res_q[src_q[ResW-1:0]];
  end

  always_ff @(posedge clk_i) begin
    if (!loading) load_at_q <= '0;
    else if (rd_valid_i) load_at_q <= load_at_q + 1'b1;
  end

  assign rd_ready_o = 1'b1;

  // -------------------------------------------------------------------------------
  // Pairs: groups of eight; a group takes steps rounds of eight cycles, one for each pair
  // of it. walk_* is the pair of this cycle, base_* the first of the group.

  wire [StepW-1:0] steps    = dim[3 +: StepW] + StepW'(dim[2:0] != '0);
  wire  [BufW-1:0] per_vec  = BufW'(dim[15:4]) + BufW'(dim[3:0] != '0);

  logic    [VecW-1:0] walk_i_q, walk_j_q, base_i_q, base_j_q;
  logic    [BufW-1:0] walk_ia_q, walk_ja_q, base_ia_q, base_ja_q;  // their places
  logic  [PairsW-1:0] walk_n_q, base_n_q;                          // pairs before
  logic   [StepW-1:0] step_q;
  logic         [2:0] slot_q;
  logic  [PairsW-1:0] got_q;       // products done

  wire computing  = state_q == StPairs;
  wire last_j     = self ? walk_j_q == walk_i_q : walk_j_q + 1'b1 == walk_i_q;
  wire issue      = computing && walk_n_q != pairs_q;
  wire round_end  = slot_q == 3'd7;
  wire group_end  = round_end && step_q + 1'b1 == steps;

  wire   [VecW-1:0] next_i  = last_j ? walk_i_q + 1'b1 : walk_i_q;
  wire   [VecW-1:0] next_j  = last_j ? '0 : walk_j_q + 1'b1;
  wire   [BufW-1:0] next_ia = last_j ? walk_ia_q + per_vec : walk_ia_q;
  wire   [BufW-1:0] next_ja = last_j ? '0 : walk_ja_q + per_vec;
  wire [PairsW-1:0] next_n  = issue ? walk_n_q + 1'b1 : walk_n_q;

  always_ff @(posedge clk_i) begin
    if (!computing) begin
      // The first pair is (0, 0) with the diagonal, else (1, 0).
      walk_i_q  <= self ? '0 : VecW'(1);
      walk_ia_q <= self ? '0 : per_vec;
      walk_j_q  <= '0;
      walk_ja_q <= '0;
      walk_n_q  <= '0;
      base_i_q  <= self ? '0 : VecW'(1);
      base_ia_q <= self ? '0 : per_vec;
      base_j_q  <= '0;
      base_ja_q <= '0;
      base_n_q  <= '0;
      step_q    <= '0;
      slot_q    <= '0;
    end else begin
      slot_q <= slot_q + 3'd1;
      if (round_end) step_q <= group_end ? '0 : step_q + 1'b1;
      if (round_end && !group_end) begin
        walk_i_q  <= base_i_q;
        walk_ia_q <= base_ia_q;
        walk_j_q  <= base_j_q;
        walk_ja_q <= base_ja_q;
        walk_n_q  <= base_n_q;
      end else begin
        walk_i_q  <= next_i;
        walk_ia_q <= next_ia;
        walk_j_q  <= next_j;
        walk_ja_q <= next_ja;
        walk_n_q  <= next_n;
      end
      if (group_end) begin
        base_i_q  <= next_i;
        base_ia_q <= next_ia;
        base_j_q  <= next_j;
        base_ja_q <= next_ja;
        base_n_q  <= next_n;
      end
    end
  end

  assign step_o  = issue;
  assign rd_a    = computing ? walk_ia_q + BufW'(step_q >> 1) : src_q[BufW-1:0];
  assign rd_b    = walk_ja_q + BufW'(step_q >> 1);
  assign rd_a_en = issue || (wr_q == WrFetch && !src_res_q);
  assign rd_b_en = issue;

  // One cycle later the operands are there.
  logic       dot_valid_q, dot_first_q, dot_last_q, dot_half_q;
  logic [2:0] dot_slot_q;
  wire        res_valid;
  wire [31:0] res;
  /* verilator lint_off UNUSEDSIGNAL */
  wire  [3:0] res_slot;      // results come in order
  /* verilator lint_on UNUSEDSIGNAL */

  always_ff @(posedge clk_i) begin
    if (!rst_ni) dot_valid_q <= 1'b0;
    else dot_valid_q <= issue;
    dot_first_q <= step_q == '0;
    dot_last_q  <= step_q + 1'b1 == steps;
    dot_half_q  <= step_q[0];
    dot_slot_q  <= slot_q;
  end

  csrec_dot u_dot (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni),
    .in_valid_i  (dot_valid_q),
    .in_slot_i   ({1'b0, dot_slot_q}),
    .in_first_i  (dot_first_q),
    .in_last_i   (dot_last_q),
    .in_a_i      (dot_half_q ? vec_a_q[511:256] : vec_a_q[255:0]),
    .in_b_i      (dot_half_q ? vec_b_q[511:256] : vec_b_q[255:0]),
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

  // Results, sixteen to a beat. The last beat is written with whatever it holds.
  logic [511:0] pack_q;

  always_comb begin
    res_d = pack_q;
    res_d[{got_q[3:0], 5'd0} +: 32] = res;
  end

  wire res_take    = computing && res_valid;
  wire pairs_last  = res_take && got_q + 1'b1 == pairs_q;

  assign res_wr_en = res_take && (got_q[3:0] == 4'd15 || pairs_last);

  always_ff @(posedge clk_i) begin
    if (!computing) begin
      got_q       <= '0;
      res_wr_at_q <= '0;
    end else if (res_take) begin
      got_q <= got_q + 1'b1;
      if (got_q[3:0] == 4'd15) res_wr_at_q <= res_wr_at_q + 1'b1;
    end
    if (res_take) pack_q <= res_d;
  end

  // -------------------------------------------------------------------------------
  // Writing: one WRITE at a time

  wire rsp_tag;
  /* verilator lint_off UNUSEDSIGNAL */
  wire rd_tag;  // there is only one kind of READ
  /* verilator lint_on UNUSEDSIGNAL */

  assign write_rsp = rsp_valid_i && rsp_tag == TagOut && wr_q != WrIdle;
  assign res_rd_en = wr_q == WrFetch && src_res_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wr_q <= WrIdle;
    end else if (write_rsp) begin
      wr_q <= WrIdle;
    end else begin
      unique case (wr_q)
        WrIdle: if (ask && writing) wr_q <= WrAsked;
        WrAsked: if (write_taken) wr_q <= WrFetch;
        WrFetch: wr_q <= WrOffer;
        WrOffer: if (wr_ready_i) wr_q <= wr_left_q == '0 ? WrSent : WrFetch;
        default: ;  // until write_rsp
      endcase
    end
    if (ask && writing) wr_left_q <= chunk_rest;
    else if (wr_valid_o && wr_ready_i) wr_left_q <= wr_left_q - 6'd1;
  end

  assign wr_valid_o = wr_q == WrOffer;
  assign wr_data_o  = src_res_q ? res_rd_q : vec_a_q;

  // -------------------------------------------------------------------------------
  // Walking the segments

  logic [63:0] vec_at_q;       // offset of the vector being requested
  wire         load_done  = loading && asked_q && idle;
  wire         write_done = writing && asked_q && idle && wr_q == WrIdle;
  wire         run_start;
  wire         enter_load  = run_start || (write_done && !samples_done);
  wire         enter_write = (load_done && (cat || pairs_q == '0)) || pairs_last;
  wire  [63:0] load_at     = run_start ? in_off : in_at_q + 64'(in_stride);

  always_ff @(posedge clk_i) begin
    if (enter_load || enter_write) begin
      seg_q      <= '0;
      asked_q    <= 1'b0;
      seg_left_q <= enter_load ? (in_flat ? all_q : ElemsW'(dim)) :
                    cat && whole_beats ? all_q : ElemsW'(dim);
    end else if (ask) begin
      asked_q <= seg_final;
      if (!seg_end) begin
        seg_left_q <= seg_left_q - chunk;
      end else begin
        seg_q      <= seg_q + 1'b1;
        seg_left_q <= writing && !cat ? ElemsW'(pairs_q) : ElemsW'(dim);
      end
    end

    if (enter_load) begin
      in_at_q  <= load_at;
      vec_at_q <= load_at;
      seg_at_q <= load_at;
      out_at_q <= run_start ? out_off : out_at_q + 64'(out_stride);
      sample_q <= run_start ? '0 : sample_q + 32'd1;
    end else if (enter_write) begin
      seg_at_q <= out_at_q;
    end else if (ask) begin
      if (seg_end && loading) begin
        vec_at_q <= vec_at_q + 64'(vec_stride);
        seg_at_q <= vec_at_q + 64'(vec_stride);
      end else begin
        seg_at_q <= seg_at_q + 64'({chunk, 2'd0});
      end
    end

    // Where the data of the WRITEs come from: the buffer in order; DOT's second segment
    // from the results.
    if (enter_write) begin
      src_q     <= '0;
      src_res_q <= 1'b0;
    end else if (wr_q == WrFetch) begin
      src_q <= src_q + 1'b1;
    end else if (ask && writing && !cat && seg_q != '0 && !src_res_q) begin
      src_q     <= '0;
      src_res_q <= 1'b1;
    end
  end

  // -------------------------------------------------------------------------------
  // Requests

  logic        in_valid;
  logic  [1:0] op_d;
  logic [63:0] len_d, off_d;
  logic [31:0] key_d;
  logic        tag_d;

  always_comb begin
    in_valid = ask || state_q == StCheck;
    tag_d    = state_q == StCheck ? check_out_q : writing;
    key_d    = tag_d == TagOut ? out_key : in_key;
    op_d     = writing ? csrec_pkg::MEM_WRITE : csrec_pkg::MEM_READ;
    off_d    = seg_at_q;
    len_d    = 64'({chunk, 2'd0});
    if (state_q == StCheck) begin
      op_d  = check_out_q ? csrec_pkg::MEM_CHECK_WR : csrec_pkg::MEM_CHECK_RD;
      off_d = check_out_q ? out_off : in_off;
      len_d = extent[64] ? '1 : extent[63:0];
    end
  end

  csrec_client #(
    .TagW (1)
  ) u_client (
    .clk_i         (clk_i),
    .rst_ni        (rst_ni),
    .clear_i       (desc_valid_i && desc_ready_o),
    .in_valid_i    (in_valid),
    .in_ready_o    (in_ready),
    .in_op_i       (op_d),
    .in_onchip_i   (1'b0),
    .in_key_i      (key_d),
    .in_off_i      (off_d),
    .in_len_i      (len_d),
    .in_tag_i      (tag_d),
    .req_valid_o   (req_valid_o),
    .req_ready_i   (req_ready_i),
    .req_op_o      (req_op_o),
    .req_onchip_o  (req_onchip_o),
    .req_key_o     (req_key_o),
    .req_off_o     (req_off_o),
    .req_len_o     (req_len_o),
    .rd_end_i      (rd_valid_i && rd_last_i),
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
  logic  [7:0] status_q;
  logic [15:0] field_q;
  logic [63:0] detail_q;

  wire stop = fail || abort_i;

  assign run_start     = state_q == StWait && idle && !stop && check_out_q;
  assign desc_ready_o  = state_q == StIdle;
  assign done_valid_o  = state_q == StDone;
  assign done_status_o = status_q;
  assign done_field_o  = field_q;
  assign done_detail_o = detail_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StIdle;
    end else begin
      unique case (state_q)
        StIdle: if (desc_valid_i) state_q <= StSize;
        StSize: state_q <= StValues;
        StValues: begin
          check_out_q <= 1'b0;
          ran_q       <= 1'b0;
          status_q    <= bad_status;
          field_q     <= bad_field;
          detail_q    <= bad_detail;
          state_q     <= bad ? StDone : StExtent;
        end
        StExtent: state_q <= StCheck;
        StCheck: if (in_ready) state_q <= StWait;
        StWait: if (idle) begin
          check_out_q <= 1'b1;
          state_q     <= stop ? StStop : run_start ? StLoad : StExtent;
        end
        StLoad: begin
          ran_q <= 1'b1;
          if (stop) state_q <= StStop;
          else if (enter_write) state_q <= StWrite;
          else if (load_done) state_q <= StPairs;
        end
        StPairs: begin
          if (stop) state_q <= StStop;
          else if (enter_write) state_q <= StWrite;
        end
        StWrite: begin
          if (stop) begin
            state_q <= StStop;
          end else if (enter_load) begin
            state_q <= StLoad;
          end else if (write_done) begin
            status_q <= csrec_pkg::ST_OK;
            field_q  <= '0;
            detail_q <= 64'(batch);
            state_q  <= StDone;
          end
        end
        StStop: if (idle && flight_q == '0 && !dot_valid_q) begin
          if (!fail) begin
            status_q <= csrec_pkg::ST_ABORTED;
            field_q  <= csrec_pkg::FIELD_NONE;
            detail_q <= '0;
          end else begin
            status_q <= fail_status;
            field_q  <= field(fail_tag == TagOut ? csrec_pkg::INTERACT_DESC_OUT_KEY_LSB
                                                 : csrec_pkg::INTERACT_DESC_IN_KEY_LSB);
            detail_q <= 64'(fail_tag == TagOut ? out_key : in_key);
            if (!ran_q && fail_status == csrec_pkg::ST_OUT_OF_BOUNDS) begin
              field_q  <= field(fail_tag == TagOut ? csrec_pkg::INTERACT_DESC_OUT_OFF_LSB
                                                   : csrec_pkg::INTERACT_DESC_IN_OFF_LSB);
              detail_q <= fail_tag == TagOut ? out_off : in_off;
            end
          end
          state_q <= StDone;
        end
        default: if (done_ready_i) state_q <= StIdle;
      endcase
    end
    if (state_q == StIdle && desc_valid_i) begin
      desc_q   <= desc_i[DescW-1:0];
      domain_q <= desc_domain_i;
    end
  end

endmodule

`default_nettype wire
