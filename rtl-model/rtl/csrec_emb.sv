// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// EMB: sums of table rows over bags (REFERENCE.md, section 4). desc_* is the start side
// of csrec_desc, req/rd/wr/rsp one mem client port, done_* the completion; see
// rtl/README.md.
//
// csrec_bag_walk yields rows in order. The front end asks for each as soon as there is
// room for its data and puts an entry in the item queue; the back end adds row after
// row and hands complete bags to the writer, while the next bag goes to the other bank
// of sums. Nothing that arrives ever waits for anything that was not yet requested, so
// the port cannot lock up. A row is used only after its READ has ended well.
//
// A failed access or an abort ends the command at once: bags handed to the writer before
// are written, or being written when that is what failed, the others are not.
`default_nettype none

module csrec_emb #(
  /* verilator lint_off UNUSEDPARAM */
  parameter int unsigned MaxDim  = 256,  // multiple of 16
  parameter int unsigned MaxVecs = 64,   // this and MaxRank: as the other engines have
  parameter int unsigned MaxRank = 32
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

  output wire           rows_o
);

  localparam int unsigned Lanes     = 4;
  localparam int unsigned RowBeats  = MaxDim / 16;
  localparam int unsigned BeatsW    = $clog2(RowBeats + 1);
  localparam int unsigned FifoW     = $clog2(4 * RowBeats);
  localparam int unsigned FifoBeats = 2 ** FifoW;  // its pointers wrap by themselves
  localparam int unsigned Items     = 8;

  // Operands, in the order of their checks, and tags of the mem client's requests
  localparam logic [2:0] OpndTable   = 3'd0;
  localparam logic [2:0] OpndIds     = 3'd1;
  localparam logic [2:0] OpndOffsets = 3'd2;
  localparam logic [2:0] OpndWeights = 3'd3;
  localparam logic [2:0] OpndOut     = 3'd4;

  typedef enum logic [2:0] {
    StIdle, StValues, StExtent, StCheck, StWait, StRun, StStop, StDone
  } state_e;
  state_e state_q;

  // -------------------------------------------------------------------------------
  // Descriptor

  localparam int unsigned DescW = 8 * csrec_pkg::EMB_DESC_BYTES;

  logic [DescW-1:0] desc_q;
  logic      [15:0] domain_q;

  wire [31:0] flags       = desc_q[csrec_pkg::EMB_DESC_FLAGS_LSB +: 32];
  wire [15:0] dim         = desc_q[csrec_pkg::EMB_DESC_DIM_LSB +: 16];
  wire  [7:0] dtype       = desc_q[csrec_pkg::EMB_DESC_DTYPE_LSB +: 8];
  wire [31:0] nbags       = desc_q[csrec_pkg::EMB_DESC_NBAGS_LSB +: 32];
  wire [31:0] nids        = desc_q[csrec_pkg::EMB_DESC_NIDS_LSB +: 32];
  wire [63:0] nrows       = desc_q[csrec_pkg::EMB_DESC_NROWS_LSB +: 64];
  wire [31:0] row_stride  = desc_q[csrec_pkg::EMB_DESC_ROW_STRIDE_LSB +: 32];
  wire [31:0] out_stride  = desc_q[csrec_pkg::EMB_DESC_OUT_STRIDE_LSB +: 32];
  wire [31:0] table_key   = desc_q[csrec_pkg::EMB_DESC_TABLE_KEY_LSB +: 32];
  wire [31:0] ids_key     = desc_q[csrec_pkg::EMB_DESC_IDS_KEY_LSB +: 32];
  wire [31:0] offsets_key = desc_q[csrec_pkg::EMB_DESC_OFFSETS_KEY_LSB +: 32];
  wire [31:0] weights_key = desc_q[csrec_pkg::EMB_DESC_WEIGHTS_KEY_LSB +: 32];
  wire [31:0] out_key     = desc_q[csrec_pkg::EMB_DESC_OUT_KEY_LSB +: 32];
  wire [63:0] table_off   = desc_q[csrec_pkg::EMB_DESC_TABLE_OFF_LSB +: 64];
  wire [63:0] ids_off     = desc_q[csrec_pkg::EMB_DESC_IDS_OFF_LSB +: 64];
  wire [63:0] offsets_off = desc_q[csrec_pkg::EMB_DESC_OFFSETS_OFF_LSB +: 64];
  wire [63:0] weights_off = desc_q[csrec_pkg::EMB_DESC_WEIGHTS_OFF_LSB +: 64];
  wire [63:0] out_off     = desc_q[csrec_pkg::EMB_DESC_OUT_OFF_LSB +: 64];

  wire        weighted    = (flags & csrec_pkg::EMB_F_WEIGHTS) != '0;
  wire [17:0] row_bytes   = {dim, 2'd0};
  wire [BeatsW-1:0] row_beats = dim[4 +: BeatsW] + BeatsW'(dim[3:0] != '0);

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
    if ((flags & ~csrec_pkg::EMB_F_ALL) != '0) begin
      bad_status = csrec_pkg::ST_BAD_FLAGS;
      bad_field  = field(csrec_pkg::EMB_DESC_FLAGS_LSB);
      bad_detail = 64'(flags);
    end else if (desc_q[csrec_pkg::EMB_DESC_RSVD7_LSB +: csrec_pkg::EMB_DESC_RSVD7_W] != '0) begin
      bad_status = csrec_pkg::ST_RESERVED;
      bad_field  = field(csrec_pkg::EMB_DESC_RSVD7_LSB);
    end else if (!weighted && weights_key != '0) begin
      bad_status = csrec_pkg::ST_RESERVED;
      bad_field  = field(csrec_pkg::EMB_DESC_WEIGHTS_KEY_LSB);
    end else if (desc_q[csrec_pkg::EMB_DESC_RSVD52_LSB +: csrec_pkg::EMB_DESC_RSVD52_W] != '0) begin
      bad_status = csrec_pkg::ST_RESERVED;
      bad_field  = field(csrec_pkg::EMB_DESC_RSVD52_LSB);
    end else if (!weighted && weights_off != '0) begin
      bad_status = csrec_pkg::ST_RESERVED;
      bad_field  = field(csrec_pkg::EMB_DESC_WEIGHTS_OFF_LSB);
    end else if (desc_q[csrec_pkg::EMB_DESC_RSVD96_LSB +: csrec_pkg::EMB_DESC_RSVD96_W] != '0) begin
      bad_status = csrec_pkg::ST_RESERVED;
      bad_field  = field(csrec_pkg::EMB_DESC_RSVD96_LSB);
    end else if (dim == '0 || dim > 16'(MaxDim)) begin
      bad_field  = field(csrec_pkg::EMB_DESC_DIM_LSB);
      bad_detail = 64'(dim);
    end else if (dtype != csrec_pkg::DTYPE_FP32) begin
      bad_field  = field(csrec_pkg::EMB_DESC_DTYPE_LSB);
      bad_detail = 64'(dtype);
    end else if (nbags == '0) begin
      bad_field  = field(csrec_pkg::EMB_DESC_NBAGS_LSB);
      bad_detail = 64'(nbags);
    end else if (nrows == '0 || nrows > 64'h1_0000_0000) begin
      bad_field  = field(csrec_pkg::EMB_DESC_NROWS_LSB);
      bad_detail = nrows;
    end else if (row_stride[1:0] != '0 || row_stride < 32'(row_bytes)) begin
      if (row_stride[1:0] != '0) bad_status = csrec_pkg::ST_BAD_ALIGN;
      bad_field  = field(csrec_pkg::EMB_DESC_ROW_STRIDE_LSB);
      bad_detail = 64'(row_stride);
    end else if (out_stride[1:0] != '0 || out_stride < 32'(row_bytes)) begin
      if (out_stride[1:0] != '0) bad_status = csrec_pkg::ST_BAD_ALIGN;
      bad_field  = field(csrec_pkg::EMB_DESC_OUT_STRIDE_LSB);
      bad_detail = 64'(out_stride);
    end else begin
      bad_status = csrec_pkg::ST_BAD_ALIGN;
      if (table_off[1:0] != '0) begin
        bad_field  = field(csrec_pkg::EMB_DESC_TABLE_OFF_LSB);
        bad_detail = table_off;
      end else if (ids_off[1:0] != '0) begin
        bad_field  = field(csrec_pkg::EMB_DESC_IDS_OFF_LSB);
        bad_detail = ids_off;
      end else if (offsets_off[1:0] != '0) begin
        bad_field  = field(csrec_pkg::EMB_DESC_OFFSETS_OFF_LSB);
        bad_detail = offsets_off;
      end else if (weights_off[1:0] != '0) begin
        bad_field  = field(csrec_pkg::EMB_DESC_WEIGHTS_OFF_LSB);
        bad_detail = weights_off;
      end else if (out_off[1:0] != '0) begin
        bad_field  = field(csrec_pkg::EMB_DESC_OUT_OFF_LSB);
        bad_detail = out_off;
      end else begin
        bad = 1'b0;
      end
    end
  end

  // An operand: of opnd_q while checking, of the failed request when that is done
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
      OpndTable: begin
        opnd_key       = table_key;
        opnd_off       = table_off;
        opnd_key_field = field(csrec_pkg::EMB_DESC_TABLE_KEY_LSB);
        opnd_off_field = field(csrec_pkg::EMB_DESC_TABLE_OFF_LSB);
        ext_a          = row_stride;
        ext_b          = nrows[31:0] - 32'd1;
        ext_c          = 35'(row_bytes);
      end
      OpndIds: begin
        opnd_key       = ids_key;
        opnd_off       = ids_off;
        opnd_key_field = field(csrec_pkg::EMB_DESC_IDS_KEY_LSB);
        opnd_off_field = field(csrec_pkg::EMB_DESC_IDS_OFF_LSB);
      end
      OpndOffsets: begin
        opnd_key       = offsets_key;
        opnd_off       = offsets_off;
        opnd_key_field = field(csrec_pkg::EMB_DESC_OFFSETS_KEY_LSB);
        opnd_off_field = field(csrec_pkg::EMB_DESC_OFFSETS_OFF_LSB);
        ext_b          = nbags;
        ext_c          = 35'd4;
      end
      OpndWeights: begin
        opnd_key       = weights_key;
        opnd_off       = weights_off;
        opnd_key_field = field(csrec_pkg::EMB_DESC_WEIGHTS_KEY_LSB);
        opnd_off_field = field(csrec_pkg::EMB_DESC_WEIGHTS_OFF_LSB);
      end
      default: begin
        opnd_key       = out_key;
        opnd_off       = out_off;
        opnd_key_field = field(csrec_pkg::EMB_DESC_OUT_KEY_LSB);
        opnd_off_field = field(csrec_pkg::EMB_DESC_OUT_OFF_LSB);
        ext_a          = out_stride;
        ext_b          = nbags - 32'd1;
        ext_c          = 35'(row_bytes);
      end
    endcase
  end

  // -------------------------------------------------------------------------------
  // Items: from the walker, with the row's place in the table, to the queue

  wire        running = state_q == StRun;
  wire        start;      // enter StRun
  wire        walk_req_valid;
  logic       walk_req_ready;
  wire  [1:0] walk_req_sel;
  wire [63:0] walk_req_off;
  wire [12:0] walk_req_len;
  wire  [2:0] rd_tag;
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
    .beat_valid_i  (rd_valid_i && rd_tag != OpndTable),
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

  // The product of the engine: extents while checking, then row offsets
  logic [63:0] prod_q;

  always_ff @(posedge clk_i) begin
    if (!running) prod_q <= ext_a * ext_b;
    else if (walk_ready) prod_q <= walk_id * row_stride;
  end

  logic                  next_valid_q;  // an item, with its prod_q
  logic [34:0]           next_q;        // {empty, first, last, weight}
  logic                  next_end_q;
  wire                   next_row = !next_end_q && !next_q[34];
  wire                   next_go;
  wire                   row_req_valid;
  logic                  row_req_ready;

  assign walk_ready = !next_valid_q || next_go;

  always_ff @(posedge clk_i) begin
    if (!running) next_valid_q <= 1'b0;
    else if (walk_ready) next_valid_q <= walk_valid && !(next_valid_q && next_end_q);
    if (walk_ready) begin
      next_q     <= {walk_empty, walk_first, walk_last, walk_weight};
      next_end_q <= walk_end;
    end
  end

  // Item queue
  logic [34:0] item_q [Items];
  logic        item_end_q [Items];
  logic  [2:0] item_wr_q, item_rd_q;
  logic  [3:0] item_fill_q;
  logic        item_pop;

  // Row buffer: room is given to a row when it is requested
  logic         [511:0] fifo_q [FifoBeats];
  logic   [FifoW-1:0]   fifo_wr_q, fifo_rd_q;
  logic     [FifoW:0]   fifo_room_q, fifo_fill_q;
  logic         [511:0] head_q;
  logic                 head_valid_q;
  logic           [3:0] rows_ready_q;    // READs of rows that ended well, not yet added
  wire                  row_beat = rd_valid_i && rd_tag == OpndTable;
  wire                  head_load;
  wire                  part_go, part_last, row_done;  // see Adding

  assign row_req_valid = next_valid_q && next_row && item_fill_q != 4'(Items) &&
                         fifo_room_q >= (FifoW+1)'(row_beats);
  assign next_go       = next_row ? row_req_valid && row_req_ready : item_fill_q != 4'(Items);

  wire       item_push = running && next_valid_q && next_go;
  wire [2:0] rsp_tag;
  wire       row_rsp   = rsp_valid_i && rsp_tag == OpndTable;

  always_ff @(posedge clk_i) begin
    if (!running) begin
      item_wr_q    <= '0;
      item_rd_q    <= '0;
      item_fill_q  <= '0;
      rows_ready_q <= '0;
    end else begin
      if (item_push) item_wr_q <= item_wr_q + 3'd1;
      if (item_pop) item_rd_q <= item_rd_q + 3'd1;
      item_fill_q  <= item_fill_q + 4'(item_push) - 4'(item_pop);
      rows_ready_q <= rows_ready_q + 4'(row_rsp) - 4'(row_done);
    end
    if (item_push) begin
      item_q[item_wr_q]     <= next_q;
      item_end_q[item_wr_q] <= next_end_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!running) begin
      fifo_wr_q    <= '0;
      fifo_rd_q    <= '0;
      fifo_room_q  <= (FifoW+1)'(FifoBeats);
      fifo_fill_q  <= '0;
      head_valid_q <= 1'b0;
    end else begin
      if (row_beat) fifo_wr_q <= fifo_wr_q + 1'b1;
      if (head_load) fifo_rd_q <= fifo_rd_q + 1'b1;
      fifo_room_q <= fifo_room_q - (item_push && next_row ? (FifoW+1)'(row_beats) : '0) +
                     (FifoW+1)'(head_load);
      fifo_fill_q <= fifo_fill_q + (FifoW+1)'(row_beat) - (FifoW+1)'(head_load);
      if (head_load) head_valid_q <= 1'b1;
      else if (part_last) head_valid_q <= 1'b0;
    end
    if (row_beat) fifo_q[fifo_wr_q] <= rd_data_i;
    if (head_load) head_q <= fifo_q[fifo_rd_q];
    else if (part_go) head_q <= {{(32*Lanes){1'b0}}, head_q[511:32*Lanes]};
  end

  // -------------------------------------------------------------------------------
  // Adding: the head of the item queue, part by part

  wire [34:0] item       = item_q[item_rd_q];
  wire        item_valid = item_fill_q != '0;
  wire        item_end   = item_end_q[item_rd_q];
  wire        item_empty = item[34];
  wire        item_first = item[33];
  wire        item_last  = item[32];

  logic                    bank_q;
  logic [$clog2(MaxDim/Lanes)-1:0] part_q;      // of the row
  logic                    bag_done_q;          // the bag waits for the writer
  logic                    bag_empty_q;
  wire                     part_ready, acc_idle, bag_go;
  wire                     part_valid = running && item_valid && !item_end && !item_empty &&
                                        !bag_done_q && rows_ready_q != '0 && head_valid_q;
  wire [15:0]              part_next  = 16'(part_q) * 16'(Lanes) + 16'(Lanes);

  assign part_go   = part_valid && part_ready;
  assign part_last = part_go && (part_next >= dim || part_next[3:0] == '0);
  assign row_done  = part_go && part_next >= dim;
  assign head_load = fifo_fill_q != '0 && (!head_valid_q || part_last);
  assign rows_o    = row_done;

  wire empty_go = running && item_valid && !item_end && item_empty && !bag_done_q;

  assign item_pop = row_done || empty_go;

  always_ff @(posedge clk_i) begin
    if (!running) begin
      bank_q     <= 1'b0;
      part_q     <= '0;
      bag_done_q <= 1'b0;
    end else begin
      if (row_done) part_q <= '0;
      else if (part_go) part_q <= part_q + 1'b1;
      if (empty_go || (row_done && item_last)) bag_done_q <= 1'b1;
      else if (bag_go) bag_done_q <= 1'b0;
      if (bag_go) bank_q <= !bank_q;
    end
    if (empty_go || row_done) bag_empty_q <= empty_go;
  end

  // -------------------------------------------------------------------------------
  // Writing complete bags

  typedef enum logic [1:0] {WrIdle, WrAsk, WrTaken, WrData} wr_e;
  wr_e          wr_q;
  logic  [63:0] wr_off_q;
  logic         wr_req_ready;
  wire          write_taken;
  wire          acc_out_valid;
  wire          write_rsp = rsp_valid_i && rsp_tag == OpndOut &&
                            (wr_q == WrTaken || wr_q == WrData);

  // All that is in order waits for the sums to settle: only then is the bag handed over.
  assign bag_go = running && bag_done_q && acc_idle && wr_q == WrIdle;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wr_q <= WrIdle;
    end else begin
      unique case (wr_q)
        WrIdle: if (bag_go) wr_q <= WrAsk;
        WrAsk: if (wr_req_ready) wr_q <= WrTaken;
               else if (!running) wr_q <= WrIdle;
        WrTaken: if (write_rsp) wr_q <= WrIdle;
                 else if (write_taken) wr_q <= WrData;
        default: if (write_rsp) wr_q <= WrIdle;
      endcase
    end
    if (start) wr_off_q <= out_off;
    else if (write_rsp) wr_off_q <= wr_off_q + 64'(out_stride);
  end

  csrec_bag_acc #(
    .Lanes  (Lanes),
    .MaxDim (MaxDim)
  ) u_acc (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni),
    .in_valid_i  (part_valid),
    .in_ready_o  (part_ready),
    .in_bank_i   (bank_q),
    .in_addr_i   (part_q),
    .in_first_i  (item_first),
    .in_w_i      (item[31:0]),
    .in_x_i      (head_q[32*Lanes-1:0]),
    .idle_o      (acc_idle),
    .out_start_i (bag_go),
    .out_stop_i  (write_rsp || (wr_q == WrAsk && !running)),
    .out_bank_i  (bank_q),
    .out_zero_i  (bag_empty_q),
    .out_beats_i (row_beats),
    .out_valid_o (acc_out_valid),
    .out_ready_i (wr_ready_i && wr_q == WrData),
    .out_data_o  (wr_data_o)
  );

  assign wr_valid_o = acc_out_valid && wr_q == WrData;

  // -------------------------------------------------------------------------------
  // Requests

  logic        in_valid;
  logic  [1:0] in_op;
  logic [31:0] in_key;
  logic [63:0] in_off, in_len;
  logic  [2:0] in_tag;
  wire         in_ready, idle;

  always_comb begin
    wr_req_ready   = 1'b0;
    row_req_ready  = 1'b0;
    walk_req_ready = 1'b0;
    in_valid       = 1'b0;
    in_op          = csrec_pkg::MEM_READ;
    in_key         = opnd_key;
    in_off         = opnd_off;
    in_len         = prod_q + 64'(ext_c);
    in_tag         = opnd_q;
    if (state_q == StCheck) begin
      in_valid = 1'b1;
      in_op    = opnd_q == OpndOut ? csrec_pkg::MEM_CHECK_WR : csrec_pkg::MEM_CHECK_RD;
    end else if (wr_q == WrAsk) begin
      in_valid     = running;
      in_op        = csrec_pkg::MEM_WRITE;
      in_key       = out_key;
      in_off       = wr_off_q;
      in_len       = 64'(row_bytes);
      in_tag       = OpndOut;
      wr_req_ready = in_ready && running;
    end else if (row_req_valid) begin
      in_valid      = running;
      in_key        = table_key;
      in_off        = table_off + prod_q;
      in_len        = 64'(row_bytes);
      in_tag        = OpndTable;
      row_req_ready = in_ready;
    end else begin
      in_valid = running && walk_req_valid;
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
      walk_req_ready = in_ready && running;
    end
  end

  csrec_client u_client (
    .clk_i         (clk_i),
    .rst_ni        (rst_ni),
    .clear_i       (desc_valid_i && desc_ready_o),
    .in_valid_i    (in_valid),
    .in_ready_o    (in_ready),
    .in_op_i       (in_op),
    .in_onchip_i   (1'b0),
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

  assign rd_ready_o   = 1'b1;
  assign req_domain_o = domain_q;

  // -------------------------------------------------------------------------------
  // Control

  logic        ran_q;          // a failed request belongs to pass 7
  logic  [7:0] status_q;
  logic [15:0] field_q;
  logic [63:0] detail_q;

  wire finished = item_valid && item_end && !bag_done_q && wr_q == WrIdle && idle;

  assign start         = state_q == StWait && idle && !fail && !abort_i && opnd_q == OpndOut;
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
        StIdle: if (desc_valid_i) state_q <= StValues;
        StValues: begin
          opnd_q   <= OpndTable;
          ran_q    <= 1'b0;
          status_q <= bad_status;
          field_q  <= bad_field;
          detail_q <= bad_detail;
          state_q  <= bad ? StDone : StExtent;
        end
        StExtent: state_q <= StCheck;
        StCheck: if (in_ready) state_q <= StWait;
        StWait: if (idle) begin
          opnd_q  <= opnd_q + (opnd_q == OpndOffsets && !weighted ? 3'd2 : 3'd1);
          state_q <= fail || abort_i ? StStop : start ? StRun : StExtent;
        end
        StRun: begin
          ran_q <= 1'b1;
          if (fail || abort_i) begin
            state_q <= StStop;
          end else if (finished) begin
            status_q <= end_status;
            field_q  <= end_status == csrec_pkg::ST_OK ? '0 :
                        end_status == csrec_pkg::ST_BAD_ID ?
                          field(csrec_pkg::EMB_DESC_IDS_OFF_LSB) :
                          field(csrec_pkg::EMB_DESC_OFFSETS_OFF_LSB);
            detail_q <= end_detail;
            state_q  <= StDone;
          end
        end
        StStop: if (idle) begin
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
