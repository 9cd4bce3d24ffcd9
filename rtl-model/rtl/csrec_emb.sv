// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// EMB: sums of table rows over bags (REFERENCE.md, section 4). desc_* is the start side
// of csrec_desc, done_* the completion; see rtl/README.md. Three mem client ports, so that
// what one memory is slow to give does not hold up what another has ready: row_* rows (and
// the checks), idx_* offsets, ids and weights, out_* what is written.
//
// csrec_bag_walk yields rows in order. The front end asks for each as soon as there is
// room for its data, up to Rows of them, over as many bags as it takes, and puts an entry in
// the item queue; the back end adds a beat of 16 elements a cycle, in order, in csrec_emb_sum.
// Each bag has a bank of sums, from its first row until it is written out; a bag is written
// when its last sum is in place, while those behind it are added up. Nothing that arrives ever
// waits for anything that was not yet requested, so the ports cannot lock up. A row is used
// only after its READ has ended well.
//
// A failed access or an abort ends the command at once: bags whose WRITE was requested
// before are written, the others are not.
//
// Steady state: a row takes the larger of its beats and, if it has less than FP_LAT of them,
// FP_LAT cycles, since its sums wait for those of the row before it (in another bag, its beats).
`default_nettype none

module csrec_emb #(
  /* verilator lint_off UNUSEDPARAM */
  parameter int unsigned MaxDim  = 256,  // multiple of 16
  parameter int unsigned Rows    = 64,   // in flight, power of two
  parameter int unsigned Banks   = 8,    // power of two
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

  output wire    [15:0] req_domain_o,  // these are the same for all three
  input  wire   [511:0] rd_data_i,
  input  wire     [7:0] rsp_status_i,

  output wire           row_req_valid_o,
  input  wire           row_req_ready_i,
  output wire     [1:0] row_req_op_o,
  output wire    [31:0] row_req_key_o,
  output wire    [63:0] row_req_off_o,
  output wire    [63:0] row_req_len_o,
  input  wire           row_rd_valid_i,
  output wire           row_rd_ready_o,
  input  wire           row_rd_last_i,
  input  wire           row_rsp_valid_i,

  output wire           idx_req_valid_o,
  input  wire           idx_req_ready_i,
  output wire     [1:0] idx_req_op_o,
  output wire    [31:0] idx_req_key_o,
  output wire    [63:0] idx_req_off_o,
  output wire    [63:0] idx_req_len_o,
  input  wire           idx_rd_valid_i,
  output wire           idx_rd_ready_o,
  input  wire           idx_rd_last_i,
  input  wire           idx_rsp_valid_i,

  output wire           out_req_valid_o,
  input  wire           out_req_ready_i,
  output wire     [1:0] out_req_op_o,
  output wire    [31:0] out_req_key_o,
  output wire    [63:0] out_req_off_o,
  output wire    [63:0] out_req_len_o,
  output wire           out_wr_valid_o,
  input  wire           out_wr_ready_i,
  output wire   [511:0] out_wr_data_o,
  input  wire           out_rsp_valid_i,

  output wire           rows_o
);

  localparam int unsigned RowBeats  = MaxDim / 16;
  localparam int unsigned BeatsW    = $clog2(RowBeats + 1);
  localparam int unsigned FifoW     = $clog2(4 * RowBeats > 2 * Rows ? 4 * RowBeats : 2 * Rows);
  localparam int unsigned FifoBeats = 2 ** FifoW;  // its pointers wrap by themselves
  localparam int unsigned ItemsW    = $clog2(Rows);
  localparam int unsigned BankW     = $clog2(Banks);
  localparam int unsigned Writes    = 8;  // requested and not answered

  if (Rows < 8 || (Rows & (Rows - 1)) != 0) begin : gen_bad_rows
    $error("Rows: power of two, from 8");
  end
  if (Banks < 2 || Banks > Writes || (Banks & (Banks - 1)) != 0) begin : gen_bad_banks
    $error("Banks: power of two, 2..8");
  end

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
  wire         row_fail, idx_fail, out_fail;
  wire   [7:0] row_fail_status, idx_fail_status, out_fail_status;
  wire   [2:0] row_fail_tag, idx_fail_tag;
  wire         fail        = row_fail || idx_fail || out_fail;
  wire   [7:0] fail_status = row_fail ? row_fail_status :
                             idx_fail ? idx_fail_status : out_fail_status;
  wire   [2:0] fail_tag    = row_fail ? row_fail_tag : idx_fail ? idx_fail_tag : OpndOut;
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
  wire        walk_req_ready;
  wire  [1:0] walk_req_sel;
  wire [63:0] walk_req_off;
  wire [12:0] walk_req_len;
  wire  [2:0] walk_tag;  // of the beat that comes
  wire  [1:0] walk_beat_sel = walk_tag == OpndIds ? 2'd1 : walk_tag == OpndWeights ? 2'd2 : 2'd0;
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
    .beat_valid_i  (idx_rd_valid_i),
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
  wire                   fetch_valid, fetch_ready;

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
  logic       [34:0] item_q [0:Rows-1];
  logic   [Rows-1:0] item_end_q;
  logic [ItemsW-1:0] item_wr_q, item_rd_q;
  logic   [ItemsW:0] item_fill_q;
  wire               item_room = !item_fill_q[ItemsW];
  wire               item_pop;

  // Row buffer: room is given to a row when it is requested
  logic         [511:0] fifo_q [0:FifoBeats-1];
  logic   [FifoW-1:0]   fifo_wr_q, fifo_rd_q;
  logic     [FifoW:0]   fifo_room_q, fifo_fill_q;
  logic         [511:0] head_q;
  logic                 head_valid_q;
  logic    [ItemsW:0]   rows_ready_q;    // READs of rows that ended well, not yet added
  wire                  row_beat = row_rd_valid_i;
  wire                  head_load;
  wire                  step, row_done;  // see Adding

  assign fetch_valid = running && next_valid_q && next_row && item_room &&
                       fifo_room_q >= (FifoW+1)'(row_beats);
  assign next_go     = next_row ? fetch_valid && fetch_ready : item_room;

  wire item_push = running && next_valid_q && next_go;
  wire row_rsp   = running && row_rsp_valid_i && rsp_status_i == csrec_pkg::ST_OK;

  always_ff @(posedge clk_i) begin
    if (!running) begin
      item_wr_q    <= '0;
      item_rd_q    <= '0;
      item_fill_q  <= '0;
      rows_ready_q <= '0;
    end else begin
      if (item_push) item_wr_q <= item_wr_q + 1'b1;
      if (item_pop) item_rd_q <= item_rd_q + 1'b1;
      item_fill_q  <= item_fill_q + (ItemsW+1)'(item_push) - (ItemsW+1)'(item_pop);
      rows_ready_q <= rows_ready_q + (ItemsW+1)'(row_rsp) - (ItemsW+1)'(row_done);
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
      else if (step) head_valid_q <= 1'b0;
    end
    if (row_beat) fifo_q[fifo_wr_q] <= rd_data_i;
    if (head_load) head_q <= fifo_q[fifo_rd_q];
  end

  // -------------------------------------------------------------------------------
  // Adding: the head of the item queue, beat by beat

  wire [34:0] item       = item_q[item_rd_q];
  wire        item_valid = item_fill_q != '0;
  wire        item_end   = item_end_q[item_rd_q];
  wire        item_empty = item[34];
  wire        item_first = item[33];
  wire        item_last  = item[32];

  // Banks in the order of the bags. The bag at work has bank_q; used_q of them hold a bag.
  logic [BankW-1:0] bank_q, ask_q, put_q;  // ask_q: next to be asked for, put_q: to be written
  logic   [BankW:0] used_q, asked_q;       // asked_q: asked for and not written
  logic             open_q;                // the bag at work has its bank, and rows to come
  logic [Banks-1:0] full_q, empty_q;       // its sums are in place; of a bag without ids
  logic [BeatsW-1:0] part_q;               // beats of the row that are added
  wire              bank_new;              // a bag takes its bank
  wire              bank_free;             // a bag is written
  wire              step_ready, sum_valid, sum_last;
  wire  [BankW-1:0] sum_bank;

  wire bag_begins = item_first && part_q == '0;
  wire bank_room  = !used_q[BankW];
  wire row_ends   = part_q + 1'b1 == row_beats;
  wire step_valid = running && item_valid && !item_end && !item_empty && rows_ready_q != '0 &&
                    head_valid_q && (bank_room || !bag_begins);
  wire empty_go   = running && item_valid && !item_end && item_empty && bank_room;

  assign step      = step_valid && step_ready;
  assign row_done  = step && row_ends;
  assign head_load = fifo_fill_q != '0 && (!head_valid_q || step);
  assign rows_o    = row_done;
  assign item_pop  = row_done || empty_go;
  assign bank_new  = empty_go || (step && bag_begins);

  wire write_asked;
  always_ff @(posedge clk_i) begin
    if (start) begin
      bank_q  <= '0;
      ask_q   <= '0;
      put_q   <= '0;
      used_q  <= '0;
      asked_q <= '0;
      full_q  <= '0;
      part_q  <= '0;
      open_q  <= 1'b0;
    end else begin
      if (row_done) part_q <= '0;
      else if (step) part_q <= part_q + 1'b1;
      if (step) open_q <= !(row_ends && item_last);
      if (empty_go || (row_done && item_last)) bank_q <= bank_q + 1'b1;
      used_q  <= used_q + (BankW+1)'(bank_new) - (BankW+1)'(bank_free);
      asked_q <= asked_q + (BankW+1)'(write_asked) - (BankW+1)'(bank_free);
      if (write_asked) ask_q <= ask_q + 1'b1;
      if (bank_free) put_q <= put_q + 1'b1;
      if (bank_free) full_q[put_q] <= 1'b0;
      if (sum_valid && sum_last) full_q[sum_bank] <= 1'b1;
      if (empty_go) full_q[bank_q] <= 1'b1;
    end
    if (bank_new) empty_q[bank_q] <= empty_go;
  end

  // -------------------------------------------------------------------------------
  // Writing complete bags: asked for in order, and their data given as it is taken

  logic       [63:0] wr_off_q;
  logic [BeatsW-1:0] beat_q;       // of the bag being written
  logic    [BankW:0] taken_q;      // WRITEs that were taken and have not got all their data
  wire               write_ready, write_taken, out_idle;
  wire               write_valid = running && full_q[ask_q] && !asked_q[BankW];
  wire       [511:0] sums;
  wire               beat_go   = out_wr_valid_o && out_wr_ready_i;

  assign write_asked = write_valid && write_ready;
  assign bank_free   = beat_go && beat_q + 1'b1 == row_beats;
  // What was taken gets its data whatever happens, unless one is answered that had not got all:
  // it has failed, and so will those behind it.
  logic    [BankW:0] given_q;      // WRITEs that got all their data and have no answer
  logic              cut_q;
  assign out_wr_valid_o = taken_q != '0 && !cut_q;
  assign out_wr_data_o  = empty_q[put_q] ? '0 : sums;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || start) begin
      beat_q  <= '0;
      taken_q <= '0;
      given_q <= '0;
      cut_q   <= 1'b0;
    end else begin
      if (out_rsp_valid_i && given_q == '0 && !bank_free) cut_q <= 1'b1;
      given_q <= given_q + (BankW+1)'(bank_free) -
                 (BankW+1)'(out_rsp_valid_i && (given_q != '0 || bank_free));
      if (bank_free) beat_q <= '0;
      else if (beat_go) beat_q <= beat_q + 1'b1;
      taken_q <= taken_q + (BankW+1)'(write_taken) - (BankW+1)'(bank_free);
    end
    if (start) wr_off_q <= out_off;
    else if (write_asked) wr_off_q <= wr_off_q + 64'(out_stride);
  end

  csrec_emb_sum #(
    .MaxDim (MaxDim),
    .Banks  (Banks),
    .PartW  (BeatsW)
  ) u_sum (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni),
    .in_valid_i  (step_valid),
    .in_ready_o  (step_ready),
    .in_bank_i   (bank_q),
    .in_part_i   (part_q),
    .in_first_i  (item_first),
    .in_tag_i    (item_last && row_ends),
    .in_w_i      (item[31:0]),
    .in_x_i      (head_q),
    .out_valid_o (sum_valid),
    .out_tag_o   (sum_last),
    .out_bank_o  (sum_bank),
    .rd_bank_i   (put_q),
    .rd_part_i   (beat_q),
    .rd_data_o   (sums)
  );

  // -------------------------------------------------------------------------------
  // Requests

  wire        row_idle, idx_idle;
  wire        row_ready, idx_ready;
  wire        checking = state_q == StCheck;
  wire  [2:0] row_tag, row_rsp_tag, idx_rsp_tag, out_tag, out_rsp_tag, out_fail_tag;
  wire        row_taken, idx_taken;
  wire        row_onchip, idx_onchip, out_onchip;
  wire        idle = row_idle && idx_idle && out_idle;

  assign fetch_ready = row_ready && !checking;
  assign walk_req_ready = idx_ready && running;

  csrec_client #(
    .Slots (Rows)
  ) u_row (
    .clk_i         (clk_i),
    .rst_ni        (rst_ni),
    .clear_i       (desc_valid_i && desc_ready_o),
    .in_valid_i    (checking || fetch_valid),
    .in_ready_o    (row_ready),
    .in_op_i       (!checking ? csrec_pkg::MEM_READ : opnd_q == OpndOut ?
                    csrec_pkg::MEM_CHECK_WR : csrec_pkg::MEM_CHECK_RD),
    .in_onchip_i   (1'b0),
    .in_key_i      (checking ? opnd_key : table_key),
    .in_off_i      (checking ? opnd_off : table_off + prod_q),
    .in_len_i      (checking ? prod_q + 64'(ext_c) : 64'(row_bytes)),
    .in_tag_i      (checking ? opnd_q : OpndTable),
    .req_valid_o   (row_req_valid_o),
    .req_ready_i   (row_req_ready_i),
    .req_op_o      (row_req_op_o),
    .req_onchip_o  (row_onchip),
    .req_key_o     (row_req_key_o),
    .req_off_o     (row_req_off_o),
    .req_len_o     (row_req_len_o),
    .rd_end_i      (row_rd_valid_i && row_rd_last_i),
    .rd_tag_o      (row_tag),
    .rsp_valid_i   (row_rsp_valid_i),
    .rsp_status_i  (rsp_status_i),
    .rsp_tag_o     (row_rsp_tag),
    .write_taken_o (row_taken),
    .idle_o        (row_idle),
    .fail_o        (row_fail),
    .fail_status_o (row_fail_status),
    .fail_tag_o    (row_fail_tag)
  );

  csrec_client u_idx (
    .clk_i         (clk_i),
    .rst_ni        (rst_ni),
    .clear_i       (desc_valid_i && desc_ready_o),
    .in_valid_i    (running && walk_req_valid),
    .in_ready_o    (idx_ready),
    .in_op_i       (csrec_pkg::MEM_READ),
    .in_onchip_i   (1'b0),
    .in_key_i      (walk_req_sel == 2'd1 ? ids_key :
                    walk_req_sel == 2'd2 ? weights_key : offsets_key),
    .in_off_i      (walk_req_off),
    .in_len_i      (64'(walk_req_len)),
    .in_tag_i      (walk_req_sel == 2'd1 ? OpndIds :
                    walk_req_sel == 2'd2 ? OpndWeights : OpndOffsets),
    .req_valid_o   (idx_req_valid_o),
    .req_ready_i   (idx_req_ready_i),
    .req_op_o      (idx_req_op_o),
    .req_onchip_o  (idx_onchip),
    .req_key_o     (idx_req_key_o),
    .req_off_o     (idx_req_off_o),
    .req_len_o     (idx_req_len_o),
    .rd_end_i      (idx_rd_valid_i && idx_rd_last_i),
    .rd_tag_o      (walk_tag),
    .rsp_valid_i   (idx_rsp_valid_i),
    .rsp_status_i  (rsp_status_i),
    .rsp_tag_o     (idx_rsp_tag),
    .write_taken_o (idx_taken),
    .idle_o        (idx_idle),
    .fail_o        (idx_fail),
    .fail_status_o (idx_fail_status),
    .fail_tag_o    (idx_fail_tag)
  );

  csrec_client #(
    .Slots (Writes)
  ) u_out (
    .clk_i         (clk_i),
    .rst_ni        (rst_ni),
    .clear_i       (desc_valid_i && desc_ready_o),
    .in_valid_i    (write_valid),
    .in_ready_o    (write_ready),
    .in_op_i       (csrec_pkg::MEM_WRITE),
    .in_onchip_i   (1'b0),
    .in_key_i      (out_key),
    .in_off_i      (wr_off_q),
    .in_len_i      (64'(row_bytes)),
    .in_tag_i      (OpndOut),
    .req_valid_o   (out_req_valid_o),
    .req_ready_i   (out_req_ready_i),
    .req_op_o      (out_req_op_o),
    .req_onchip_o  (out_onchip),
    .req_key_o     (out_req_key_o),
    .req_off_o     (out_req_off_o),
    .req_len_o     (out_req_len_o),
    .rd_end_i      (1'b0),
    .rd_tag_o      (out_tag),
    .rsp_valid_i   (out_rsp_valid_i),
    .rsp_status_i  (rsp_status_i),
    .rsp_tag_o     (out_rsp_tag),
    .write_taken_o (write_taken),
    .idle_o        (out_idle),
    .fail_o        (out_fail),
    .fail_status_o (out_fail_status),
    .fail_tag_o    (out_fail_tag)
  );

  assign row_rd_ready_o = 1'b1;
  assign idx_rd_ready_o = 1'b1;
  assign req_domain_o   = domain_q;

  // What only one of the three has a use for
  logic unused;
  assign unused = &{1'b0, row_tag, row_rsp_tag, idx_rsp_tag, out_tag, out_rsp_tag, out_fail_tag,
                    row_taken, idx_taken, row_onchip, idx_onchip, out_onchip};

  // -------------------------------------------------------------------------------
  // Control

  logic        ran_q;          // a failed request belongs to pass 7
  logic  [7:0] status_q;
  logic [15:0] field_q;
  logic [63:0] detail_q;

  // A bag that an error cut short keeps its bank.
  wire finished = item_valid && item_end && used_q == (BankW+1)'(open_q) && idle;

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
        StCheck: if (row_ready) state_q <= StWait;
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
