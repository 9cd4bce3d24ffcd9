// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Queues: fetches commands, does the checks of passes 1 to 3, runs what needs no engine
// (NOP, FENCE, SIGNAL, WAIT, administration), starts the engines for the rest, posts
// completions and requests interrupts.
//
// One FSM looks at the queues in turn and starts one command of each. A queue holds at
// most one command that has been fetched but not started; it waits there for room in its
// CQ, for its engine, for earlier commands (FENCE, F_FENCE), or for a fence value (WAIT).
// Completions of a queue with interrupt coalescing wait for an interrupt (unseen_q) until
// they are enough, consumed, or the first of them has waited long enough (left_q).
// The FSM's own memory accesses (SQ entries, CQ entries, region table) are one request at
// a time to csrec_mmu.
//
// Unit numbers, everywhere: 0 copy, 1 emb, 2 tt, 3 interact, 4 mlp.

`default_nettype none

module csrec_sched #(
  parameter int unsigned NumIoQueues = 4,
  parameter int unsigned NumRegions = 256,
  parameter int unsigned NumFences = 64,
  parameter int unsigned NumVectors = 5,
  parameter int unsigned OnchipBytes = 1 << 20,
  parameter int unsigned MaxLog2Entries = 12,
  parameter logic [4:0]  Engines = 5'h1f
) (
  input  wire logic         clk_i,
  input  wire logic         rst_ni,
  input  wire logic [63:0]  dram_size_i,
  input  wire logic [31:0]  first_count_i,  // of every queue; constant, 0 but in tests

  // csrec_regs
  input  wire logic         enable_i,
  input  wire logic         disable_i,  // pulse
  input  wire logic [63:0]  asq_base_i,
  input  wire logic [63:0]  acq_base_i,
  input  wire logic [3:0]   aq_log2_i,
  input  wire logic         db_valid_i,
  input  wire logic [6:0]   db_queue_i,
  input  wire logic [63:0]  db_value_i,
  output      logic         db_ok_o,
  input  wire logic [6:0]   dbs_queue_i,
  output      logic [63:0]  dbs_value_o,
  output      logic         ready_o,
  output      logic         busy_o,   // CSREC_STATUS_BUSY
  output      logic         waits_o,  // completions wait for an interrupt
  output      logic         timer_o,  // and for the time to request it
  output      logic         fatal_o,
  output      logic [7:0]   fatal_code_o,
  output      logic         ev_command_o,
  output      logic         ev_error_o,
  output      logic         ev_irq_o,
  output      logic         ev_progress_o,
  output      logic [4:0]   ev_unit_busy_o,

  // MSI-X requests
  output      logic         msix_valid_o,
  input  wire logic         msix_ready_i,
  output      logic [15:0]  msix_vector_o,

  // engines
  output      logic [4:0]   start_valid_o,
  input  wire logic [4:0]   start_ready_i,
  output      logic [511:0] start_cmd_o,
  output      logic [15:0]  start_domain_o,
  output      logic [4:0]   abort_o,
  input  wire logic [4:0]   done_valid_i,
  output      logic [4:0]   done_ready_o,
  input  wire logic [39:0]  done_status_i,
  input  wire logic [79:0]  done_field_i,
  input  wire logic [319:0] done_detail_i,

  // csrec_mmu, raw port
  output      logic         raw_valid_o,
  input  wire logic         raw_ready_i,
  output      logic         raw_write_o,
  output      logic [63:0]  raw_addr_o,
  output      logic [127:0] raw_wdata_o,
  input  wire logic         raw_rsp_valid_i,
  input  wire logic         raw_rsp_err_i,
  input  wire logic [511:0] raw_rdata_i,

  // csrec_mmu, table port
  output      logic         tbl_valid_o,
  input  wire logic         tbl_ready_i,
  output      logic [1:0]   tbl_op_o,
  output      logic [15:0]  tbl_index_o,
  output      logic [15:0]  tbl_gen_o,
  output      logic [1:0]   tbl_kind_o,
  output      logic [1:0]   tbl_rights_o,
  output      logic [15:0]  tbl_domain_o,
  output      logic [63:0]  tbl_base_o,
  output      logic [63:0]  tbl_size_o,
  output      logic [1:0]   tbl_levels_o,
  output      logic [4:0]   tbl_shift_o,
  output      logic [31:0]  tbl_page_off_o,
  input  wire logic         tbl_rsp_valid_i,
  input  wire logic         tbl_rsp_used_i,
  input  wire logic [15:0]  tbl_rsp_gen_i
);

  localparam int unsigned NumQ = NumIoQueues + 1;
  localparam int unsigned QW = $clog2(NumQ);
  localparam int unsigned FW = $clog2(NumFences);
  localparam int unsigned NumUnits = 5;

  localparam logic [1:0] TblProbe = 2'd0;
  localparam logic [1:0] TblSet = 2'd1;
  localparam logic [1:0] TblInval = 2'd2;
  localparam logic [1:0] TblInvalAll = 2'd3;

  typedef enum logic [4:0] {
    StOff,        // disabled
    StBadConfig,  // FATAL_CONFIG
    StScan,       // look for work
    StFetch,      // read the SQ entry of queue cur_q
    StFetchRsp,
    StDecode,     // passes 1 to 3 on cmd_q
    StStart,      // hand cmd_q to its unit
    StFence,      // fence commands, SIGNAL, WAIT
    StQueue,      // QUEUE_CREATE, QUEUE_DELETE
    StProbe,      // region commands: what is in the slot
    StProbeRsp,
    StRegion,     // pass 4 and 5 of region commands
    StTable,      // and their effect
    StTableRsp,
    StDone,       // take the answer of unit unit_q
    StPost,       // write the completion pst_*
    StPostRsp,
    StIrq,
    StDrain,      // being disabled: units stop
    StClear,      // then the region table is cleared
    StClearRsp
  } state_e;

  state_e state_q;

  // ----------------------------------------------------------- queue state
  logic [NumQ-1:0] exists_q;
  logic [NumQ-1:0] stop_q;   // after a bus error on the CQ (admin: or the SQ)
  logic [NumQ-1:0] held_q;   // sqe_q has a command that is not started
  logic [NumQ-1:0] bad_q;    // instead of it, its fetch failed
  logic [NumQ-1:0] wait_q;   // it is a WAIT that has started, and blocks
  logic [NumQ-1:0] again_q;  // some fence has changed since it was looked at
  logic [3:0]   log2_q   [0:NumQ-1];
  logic [63:0]  sqb_q    [0:NumQ-1];
  logic [63:0]  cqb_q    [0:NumQ-1];
  logic [15:0]  vector_q [0:NumQ-1];
  logic [15:0]  domain_q [0:NumQ-1];
  logic [NumQ-1:0] noirq_q;
  logic [15:0]  icnt_q   [0:NumQ-1];  // completions an interrupt; 0 is 1
  logic [31:0]  icyc_q   [0:NumQ-1];  // cycles the first of fewer may wait
  logic [15:0]  unseen_q [0:NumQ-1];  // completions that wait for an interrupt
  logic [31:0]  left_q   [0:NumQ-1];  // cycles that the first of them may still wait
  logic [31:0]  tail_q   [0:NumQ-1];  // counts, see CSREC_DB_*
  logic [31:0]  head_q   [0:NumQ-1];
  logic [31:0]  fetched_q[0:NumQ-1];
  logic [31:0]  posted_q [0:NumQ-1];
  logic [3:0]   open_q   [0:NumQ-1];  // started, not yet posted
  logic [511:0] sqe_q    [0:NumQ-1];

  // QUEUE_DELETE under way; the admin queue starts nothing meanwhile.
  logic          del_q;
  logic [QW-1:0] del_qid_q;
  logic [15:0]   del_cid_q;
  logic          del_noirq_q;

  // What each unit works on.
  logic [NumUnits-1:0] unit_busy_q;
  logic [QW-1:0] unit_qid_q   [0:NumUnits-1];
  logic [15:0]   unit_cid_q   [0:NumUnits-1];
  logic [NumUnits-1:0] unit_noirq_q;

  logic [QW-1:0]  cur_q;       // queue that is looked at
  logic           served_q;    // it has had its turn: one command
  logic [QW:0]    idle_q;      // queues in a row with nothing to do
  logic [511:0]   cmd_q;       // command at work, of queue cur_q
  logic [2:0]     unit_q;
  logic           disable_q;   // ENABLE was written as 0: drain
  logic           fatal_q;
  logic [7:0]     fatal_code_q;

  // Completion to post.
  logic [QW-1:0] pst_qid_q;
  logic          pst_open_q;  // it was counted in open_q
  logic          pst_noirq_q;
  logic [15:0]   pst_cid_q;
  logic [7:0]    pst_status_q;
  logic [15:0]   pst_field_q;
  logic [63:0]   pst_detail_q;

  assign ready_o = exists_q[0];
  assign fatal_o = fatal_q;
  assign fatal_code_o = fatal_code_q;
  assign ev_unit_busy_o = unit_busy_q;

  // ------------------------------------------------------------- doorbells
  logic [QW-1:0] db_q;
  logic [31:0]   db_tail, db_head;
  assign db_q = db_queue_i[QW-1:0];
  assign db_tail = db_value_i[csrec_pkg::DB_SQ_TAIL_SHIFT+:32];
  assign db_head = db_value_i[csrec_pkg::DB_CQ_HEAD_SHIFT+:32];
  always_comb begin
    db_ok_o = 1'b0;
    if (db_valid_i && 32'(db_queue_i) < NumQ) begin
      db_ok_o = exists_q[db_q] && !(del_q && db_q == del_qid_q) && !disable_q &&
                db_tail - tail_q[db_q] <= fetched_q[db_q] + (32'd1 << log2_q[db_q]) - tail_q[db_q] &&
                db_head - head_q[db_q] <= posted_q[db_q] - head_q[db_q];
    end
  end

  // How far a queue is. A completion on its way to the host does not count yet.
  logic [QW-1:0] dbs_q;
  assign dbs_q = dbs_queue_i[QW-1:0];
  always_comb begin
    dbs_value_o = '0;
    if (32'(dbs_queue_i) < NumQ && exists_q[dbs_q]) begin
      dbs_value_o[csrec_pkg::DBS_SQ_TAIL_SHIFT+:32] = tail_q[dbs_q];
      dbs_value_o[csrec_pkg::DBS_CQ_TAIL_SHIFT+:32] =
          posted_q[dbs_q] - 32'(state_q == StPostRsp && pst_qid_q == dbs_q);
    end
  end

  // ------------------------------------------------- interrupt coalescing
  logic [NumQ-1:0] waits, due;
  logic            due_any;
  logic [QW-1:0]   due_q;
  always_comb begin
    due_any = 1'b0;
    due_q = '0;
    for (int unsigned i = 0; i < NumQ; i++) begin
      waits[i] = unseen_q[i] != '0;
      due[i] = waits[i] && left_q[i] == '0;
      if (due[i] && !due_any) begin
        due_any = 1'b1;
        due_q = QW'(i);
      end
    end
  end
  assign waits_o = waits != '0;
  assign timer_o = (waits & ~due) != '0;

  // The completion that has just become visible: does it end the wait, or begin or join
  // one? It does neither when the host has consumed it before its write was answered.
  logic [31:0] pst_head;
  logic        pst_irq, pst_wait;
  always_comb begin
    pst_head = db_ok_o && db_q == pst_qid_q ? db_head : head_q[pst_qid_q];
    pst_irq = 1'b0;
    pst_wait = 1'b0;
    if (!pst_noirq_q && !noirq_q[pst_qid_q]) begin
      if (icnt_q[pst_qid_q] <= 16'd1) pst_irq = 1'b1;
      else if (pst_head != posted_q[pst_qid_q]) begin
        pst_irq = unseen_q[pst_qid_q] + 16'd1 == icnt_q[pst_qid_q];
        pst_wait = !pst_irq;
      end
    end
  end

  // ------------------------------------------- what queue cur_q could do now
  logic cur_live, cur_room, cur_start, cur_fetch;
  always_comb begin
    cur_live = 1'b0;
    cur_room = 1'b0;
    cur_start = 1'b0;
    cur_fetch = 1'b0;
    if (state_q == StScan) begin
      cur_live = exists_q[cur_q] && !stop_q[cur_q] && !served_q &&
                 !(del_q && (cur_q == '0 || cur_q == del_qid_q));
      cur_room = posted_q[cur_q] + 32'(open_q[cur_q]) - head_q[cur_q] <
                 32'd1 << log2_q[cur_q];
      cur_start = cur_live && cur_room && held_q[cur_q] &&
                  (!wait_q[cur_q] || again_q[cur_q]) &&
                  (open_q[cur_q] == '0 || bad_q[cur_q] || !fences(sqe_q[cur_q][15:0])) &&
                  (bad_q[cur_q] || !unit_busy_q[unit_of(sqe_q[cur_q][7:0])] ||
                   !needs_unit(sqe_q[cur_q][7:0]));
      cur_fetch = cur_live && !held_q[cur_q] && tail_q[cur_q] != fetched_q[cur_q];
    end
  end

  // Must every earlier command have completed before this one (opcode, flags) starts?
  function automatic logic fences(input logic [15:0] head);
    fences = head[7:0] == csrec_pkg::OP_FENCE || (head[15:8] & csrec_pkg::CMD_F_FENCE) != '0;
  endfunction

  function automatic logic [2:0] unit_of(input logic [7:0] opcode);
    case (opcode)
      csrec_pkg::OP_EMB: unit_of = 3'd1;
      csrec_pkg::OP_TT: unit_of = 3'd2;
      csrec_pkg::OP_INTERACT: unit_of = 3'd3;
      csrec_pkg::OP_MLP: unit_of = 3'd4;
      default: unit_of = 3'd0;
    endcase
  endfunction

  function automatic logic needs_unit(input logic [7:0] opcode);
    case (opcode)
      csrec_pkg::OP_COPY, csrec_pkg::OP_FILL, csrec_pkg::OP_EMB, csrec_pkg::OP_TT,
      csrec_pkg::OP_INTERACT, csrec_pkg::OP_MLP: needs_unit = 1'b1;
      default: needs_unit = 1'b0;
    endcase
  endfunction

  logic [2:0] done_unit;
  logic       done_any;
  always_comb begin
    done_any = 1'b0;
    done_unit = '0;
    for (int unsigned i = 0; i < NumUnits; i++) begin
      if (done_valid_i[i] && !done_any) begin
        done_any = 1'b1;
        done_unit = 3'(i);
      end
    end
  end

  // ------------------------------------------------------ cmd_q, taken apart
  localparam int unsigned BodyLsb = csrec_pkg::CMD_BODY_LSB;
  logic [7:0]   opcode, flags;
  logic [447:0] body;
  assign opcode = cmd_q[csrec_pkg::CMD_OPCODE_LSB+:8];
  assign flags = cmd_q[csrec_pkg::CMD_FLAGS_LSB+:8];
  assign body = cmd_q[BodyLsb+:448];

  // A field's number for csrec_cqe.field, from its place in the body.
  function automatic logic [15:0] bfield(input int unsigned lsb);
    bfield = 16'((BodyLsb + lsb) / 8);
  endfunction

  // Passes 1 to 3.
  logic        chk_bad;
  logic [7:0]  chk_status;
  logic [15:0] chk_field;
  logic [63:0] chk_detail;
  always_comb begin
    chk_bad = 1'b0;
    chk_status = csrec_pkg::ST_RESERVED;
    chk_field = '0;
    chk_detail = '0;
    if (state_q == StDecode) begin
      if (!known(opcode, cur_q == '0)) begin
        chk_bad = 1'b1;
        chk_status = csrec_pkg::ST_BAD_OPCODE;
        chk_field = 16'(csrec_pkg::CMD_OPCODE_LSB / 8);
        chk_detail = 64'(opcode);
      end else if ((flags & ~csrec_pkg::CMD_F_ALL) != '0) begin
        chk_bad = 1'b1;
        chk_status = csrec_pkg::ST_BAD_FLAGS;
        chk_field = 16'(csrec_pkg::CMD_FLAGS_LSB / 8);
        chk_detail = 64'(flags);
      end else if (cmd_q[csrec_pkg::CMD_RSVD4_LSB+:32] != '0) begin
        chk_bad = 1'b1;
        chk_field = 16'(csrec_pkg::CMD_RSVD4_LSB / 8);
      end else begin
        {chk_bad, chk_field} = reserved(opcode, body);
      end
    end
  end

  function automatic logic known(input logic [7:0] op, input logic admin);
    case (op)
      csrec_pkg::OP_NOP, csrec_pkg::OP_FENCE, csrec_pkg::OP_SIGNAL, csrec_pkg::OP_WAIT:
        known = 1'b1;
      csrec_pkg::OP_COPY, csrec_pkg::OP_FILL, csrec_pkg::OP_EMB, csrec_pkg::OP_TT,
      csrec_pkg::OP_INTERACT, csrec_pkg::OP_MLP:
        known = Engines[unit_of(op)];
      csrec_pkg::OP_QUEUE_CREATE, csrec_pkg::OP_QUEUE_DELETE, csrec_pkg::OP_REGION_SET,
      csrec_pkg::OP_REGION_INVAL, csrec_pkg::OP_FENCE_SET, csrec_pkg::OP_FENCE_INVAL,
      csrec_pkg::OP_FENCE_SIGNAL:
        known = admin;
      default: known = 1'b0;
    endcase
  endfunction

  // First reserved body field that is not zero: {found, field}. From the last field to the
  // first, so that the first is what stays.
  function automatic logic [16:0] reserved(input logic [7:0] op, input logic [447:0] b);
    logic del, inval;
    del = op == csrec_pkg::OP_QUEUE_DELETE;
    inval = op == csrec_pkg::OP_REGION_INVAL;
    reserved = '0;
    case (op)
      csrec_pkg::OP_NOP, csrec_pkg::OP_FENCE:
        if (b != '0) reserved = {1'b1, bfield(0)};
      csrec_pkg::OP_COPY, csrec_pkg::OP_FILL: begin
        if (b[csrec_pkg::BODY_COPY_RSVD48_LSB+:csrec_pkg::BODY_COPY_RSVD48_W] != '0)
          reserved = {1'b1, bfield(csrec_pkg::BODY_COPY_RSVD48_LSB)};
        if (b[csrec_pkg::BODY_COPY_RSVD44_LSB+:csrec_pkg::BODY_COPY_RSVD44_W] != '0)
          reserved = {1'b1, bfield(csrec_pkg::BODY_COPY_RSVD44_LSB)};
        if (op == csrec_pkg::OP_COPY && b[csrec_pkg::BODY_COPY_PATTERN_LSB+:csrec_pkg::BODY_COPY_PATTERN_W] != '0)
          reserved = {1'b1, bfield(csrec_pkg::BODY_COPY_PATTERN_LSB)};
        if (op == csrec_pkg::OP_FILL && b[csrec_pkg::BODY_COPY_SRC_OFF_LSB+:csrec_pkg::BODY_COPY_SRC_OFF_W] != '0)
          reserved = {1'b1, bfield(csrec_pkg::BODY_COPY_SRC_OFF_LSB)};
        if (op == csrec_pkg::OP_FILL && b[csrec_pkg::BODY_COPY_SRC_KEY_LSB+:csrec_pkg::BODY_COPY_SRC_KEY_W] != '0)
          reserved = {1'b1, bfield(csrec_pkg::BODY_COPY_SRC_KEY_LSB)};
      end
      csrec_pkg::OP_SIGNAL, csrec_pkg::OP_WAIT, csrec_pkg::OP_FENCE_SIGNAL,
      csrec_pkg::OP_FENCE_INVAL: begin
        if (b[csrec_pkg::BODY_FENCE_RSVD16_LSB+:csrec_pkg::BODY_FENCE_RSVD16_W] != '0)
          reserved = {1'b1, bfield(csrec_pkg::BODY_FENCE_RSVD16_LSB)};
        if (op == csrec_pkg::OP_FENCE_INVAL && b[csrec_pkg::BODY_FENCE_VALUE_LSB+:csrec_pkg::BODY_FENCE_VALUE_W] != '0)
          reserved = {1'b1, bfield(csrec_pkg::BODY_FENCE_VALUE_LSB)};
        if (b[csrec_pkg::BODY_FENCE_RSVD4_LSB+:csrec_pkg::BODY_FENCE_RSVD4_W] != '0)
          reserved = {1'b1, bfield(csrec_pkg::BODY_FENCE_RSVD4_LSB)};
      end
      csrec_pkg::OP_FENCE_SET: begin
        if (b[csrec_pkg::BODY_FENCE_SET_RSVD16_LSB+:csrec_pkg::BODY_FENCE_SET_RSVD16_W] != '0)
          reserved = {1'b1, bfield(csrec_pkg::BODY_FENCE_SET_RSVD16_LSB)};
        if (b[csrec_pkg::BODY_FENCE_SET_RSVD6_LSB+:csrec_pkg::BODY_FENCE_SET_RSVD6_W] != '0)
          reserved = {1'b1, bfield(csrec_pkg::BODY_FENCE_SET_RSVD6_LSB)};
      end
      csrec_pkg::OP_EMB, csrec_pkg::OP_TT, csrec_pkg::OP_INTERACT, csrec_pkg::OP_MLP:
        if (b[csrec_pkg::BODY_DESC_RSVD16_LSB+:csrec_pkg::BODY_DESC_RSVD16_W] != '0)
          reserved = {1'b1, bfield(csrec_pkg::BODY_DESC_RSVD16_LSB)};
      csrec_pkg::OP_QUEUE_CREATE, csrec_pkg::OP_QUEUE_DELETE: begin
        if (b[csrec_pkg::BODY_QUEUE_RSVD32_LSB+:csrec_pkg::BODY_QUEUE_RSVD32_W] != '0)
          reserved = {1'b1, bfield(csrec_pkg::BODY_QUEUE_RSVD32_LSB)};
        if (del && b[csrec_pkg::BODY_QUEUE_IRQ_CYCLES_LSB+:csrec_pkg::BODY_QUEUE_IRQ_CYCLES_W] != '0)
          reserved = {1'b1, bfield(csrec_pkg::BODY_QUEUE_IRQ_CYCLES_LSB)};
        if (del && b[csrec_pkg::BODY_QUEUE_QFLAGS_LSB+:csrec_pkg::BODY_QUEUE_QFLAGS_W] != '0)
          reserved = {1'b1, bfield(csrec_pkg::BODY_QUEUE_QFLAGS_LSB)};
        if (del && b[csrec_pkg::BODY_QUEUE_IRQ_COUNT_LSB+:csrec_pkg::BODY_QUEUE_IRQ_COUNT_W] != '0)
          reserved = {1'b1, bfield(csrec_pkg::BODY_QUEUE_IRQ_COUNT_LSB)};
        if (del && b[csrec_pkg::BODY_QUEUE_CQ_BASE_LSB+:csrec_pkg::BODY_QUEUE_CQ_BASE_W] != '0)
          reserved = {1'b1, bfield(csrec_pkg::BODY_QUEUE_CQ_BASE_LSB)};
        if (del && b[csrec_pkg::BODY_QUEUE_SQ_BASE_LSB+:csrec_pkg::BODY_QUEUE_SQ_BASE_W] != '0)
          reserved = {1'b1, bfield(csrec_pkg::BODY_QUEUE_SQ_BASE_LSB)};
        if (del && b[csrec_pkg::BODY_QUEUE_DOMAIN_LSB+:csrec_pkg::BODY_QUEUE_DOMAIN_W] != '0)
          reserved = {1'b1, bfield(csrec_pkg::BODY_QUEUE_DOMAIN_LSB)};
        if (del && b[csrec_pkg::BODY_QUEUE_VECTOR_LSB+:csrec_pkg::BODY_QUEUE_VECTOR_W] != '0)
          reserved = {1'b1, bfield(csrec_pkg::BODY_QUEUE_VECTOR_LSB)};
        if (b[csrec_pkg::BODY_QUEUE_RSVD3_LSB+:csrec_pkg::BODY_QUEUE_RSVD3_W] != '0)
          reserved = {1'b1, bfield(csrec_pkg::BODY_QUEUE_RSVD3_LSB)};
        if (del && b[csrec_pkg::BODY_QUEUE_LOG2_ENTRIES_LSB+:csrec_pkg::BODY_QUEUE_LOG2_ENTRIES_W] != '0)
          reserved = {1'b1, bfield(csrec_pkg::BODY_QUEUE_LOG2_ENTRIES_LSB)};
      end
      csrec_pkg::OP_REGION_SET, csrec_pkg::OP_REGION_INVAL: begin
        if (b[csrec_pkg::BODY_REGION_RSVD32_LSB+:csrec_pkg::BODY_REGION_RSVD32_W] != '0)
          reserved = {1'b1, bfield(csrec_pkg::BODY_REGION_RSVD32_LSB)};
        if (inval && b[csrec_pkg::BODY_REGION_PAGE_OFF_LSB+:csrec_pkg::BODY_REGION_PAGE_OFF_W] != '0)
          reserved = {1'b1, bfield(csrec_pkg::BODY_REGION_PAGE_OFF_LSB)};
        if (b[csrec_pkg::BODY_REGION_RSVD26_LSB+:csrec_pkg::BODY_REGION_RSVD26_W] != '0)
          reserved = {1'b1, bfield(csrec_pkg::BODY_REGION_RSVD26_LSB)};
        if (inval && b[csrec_pkg::BODY_REGION_PAGE_SHIFT_LSB+:csrec_pkg::BODY_REGION_PAGE_SHIFT_W] != '0)
          reserved = {1'b1, bfield(csrec_pkg::BODY_REGION_PAGE_SHIFT_LSB)};
        if (inval && b[csrec_pkg::BODY_REGION_LEVELS_LSB+:csrec_pkg::BODY_REGION_LEVELS_W] != '0)
          reserved = {1'b1, bfield(csrec_pkg::BODY_REGION_LEVELS_LSB)};
        if (inval && b[csrec_pkg::BODY_REGION_SIZE_LSB+:csrec_pkg::BODY_REGION_SIZE_W] != '0)
          reserved = {1'b1, bfield(csrec_pkg::BODY_REGION_SIZE_LSB)};
        if (inval && b[csrec_pkg::BODY_REGION_BASE_LSB+:csrec_pkg::BODY_REGION_BASE_W] != '0)
          reserved = {1'b1, bfield(csrec_pkg::BODY_REGION_BASE_LSB)};
        if (inval && b[csrec_pkg::BODY_REGION_DOMAIN_LSB+:csrec_pkg::BODY_REGION_DOMAIN_W] != '0)
          reserved = {1'b1, bfield(csrec_pkg::BODY_REGION_DOMAIN_LSB)};
        if (inval && b[csrec_pkg::BODY_REGION_RIGHTS_LSB+:csrec_pkg::BODY_REGION_RIGHTS_W] != '0)
          reserved = {1'b1, bfield(csrec_pkg::BODY_REGION_RIGHTS_LSB)};
        if (inval && b[csrec_pkg::BODY_REGION_KIND_LSB+:csrec_pkg::BODY_REGION_KIND_W] != '0)
          reserved = {1'b1, bfield(csrec_pkg::BODY_REGION_KIND_LSB)};
      end
      default: ;
    endcase
  endfunction

  // ----------------------------------------------------------- fence table
  localparam int unsigned FKeyLsb = csrec_pkg::BODY_FENCE_FENCE_KEY_LSB;
  logic [NumFences-1:0] f_used_q;
  logic [95:0]          f_table_q [0:NumFences-1];  // generation, domain, value
  logic [31:0] f_key;
  logic [63:0] f_arg, f_value, f_max;
  logic [15:0] f_gen, f_domain;
  logic        f_range, f_used;
  assign f_key = body[FKeyLsb+:32];
  assign f_arg = body[csrec_pkg::BODY_FENCE_VALUE_LSB+:64];
  assign f_range = 32'(f_key[15:0]) < NumFences;
  assign {f_gen, f_domain, f_value} = f_table_q[f_key[FW-1:0]];
  assign f_used = f_used_q[f_key[FW-1:0]];
  assign f_max = f_value > f_arg ? f_value : f_arg;

  // ------------------------------------------------------ QUEUE_*, pass 4
  logic [15:0] q_id, q_vector;
  logic [7:0]  q_log2;
  logic [63:0] q_sqb, q_cqb;
  logic [15:0] q_icnt, q_flags;
  logic [31:0] q_icyc;
  logic [QW-1:0] q_idx;
  assign q_id = body[csrec_pkg::BODY_QUEUE_QID_LSB+:16];
  assign q_idx = q_id[QW-1:0];
  assign q_log2 = body[csrec_pkg::BODY_QUEUE_LOG2_ENTRIES_LSB+:8];
  assign q_vector = body[csrec_pkg::BODY_QUEUE_VECTOR_LSB+:16];
  assign q_sqb = body[csrec_pkg::BODY_QUEUE_SQ_BASE_LSB+:64];
  assign q_cqb = body[csrec_pkg::BODY_QUEUE_CQ_BASE_LSB+:64];
  assign q_icnt = body[csrec_pkg::BODY_QUEUE_IRQ_COUNT_LSB+:16];
  assign q_flags = body[csrec_pkg::BODY_QUEUE_QFLAGS_LSB+:16];
  assign q_icyc = body[csrec_pkg::BODY_QUEUE_IRQ_CYCLES_LSB+:32];

  // ----------------------------------------------------- REGION_SET, pass 4
  logic [31:0] r_key, r_page_off;
  logic [7:0]  r_kind, r_rights, r_levels, r_shift;
  logic [63:0] r_base, r_size;
  assign r_key = body[csrec_pkg::BODY_REGION_REGION_KEY_LSB+:32];
  assign r_kind = body[csrec_pkg::BODY_REGION_KIND_LSB+:8];
  assign r_rights = body[csrec_pkg::BODY_REGION_RIGHTS_LSB+:8];
  assign r_base = body[csrec_pkg::BODY_REGION_BASE_LSB+:64];
  assign r_size = body[csrec_pkg::BODY_REGION_SIZE_LSB+:64];
  assign r_levels = body[csrec_pkg::BODY_REGION_LEVELS_LSB+:8];
  assign r_shift = body[csrec_pkg::BODY_REGION_PAGE_SHIFT_LSB+:8];
  assign r_page_off = body[csrec_pkg::BODY_REGION_PAGE_OFF_LSB+:32];

  logic        slot_used_q;  // what StProbe found
  logic [15:0] slot_gen_q;
  logic        set_bad;
  logic [7:0]  set_status;
  logic [15:0] set_field;
  logic [63:0] set_detail;
  logic [63:0] set_limit;
  logic        set_lists, set_host, set_small;
  always_comb begin
    set_bad = 1'b0;
    set_status = csrec_pkg::ST_BAD_VALUE;
    set_field = '0;
    set_detail = '0;
    set_host = r_kind == csrec_pkg::REGION_HOST;
    set_lists = set_host && r_levels != '0;
    set_limit = r_kind == csrec_pkg::REGION_DRAM ? dram_size_i : 64'(OnchipBytes);
    set_small = !set_host || (r_levels != 8'd1 && r_levels != 8'd2);
    if (state_q == StRegion) begin
      set_bad = 1'b1;
      if (r_key[31:16] == '0 || slot_used_q) begin
        set_field = bfield(csrec_pkg::BODY_REGION_REGION_KEY_LSB);
        set_detail = 64'(r_key);
      end else if (r_kind < csrec_pkg::REGION_HOST || r_kind > csrec_pkg::REGION_ONCHIP) begin
        set_field = bfield(csrec_pkg::BODY_REGION_KIND_LSB);
        set_detail = 64'(r_kind);
      end else if (r_rights == '0 ||
                   (r_rights & ~(csrec_pkg::RIGHT_READ | csrec_pkg::RIGHT_WRITE)) != '0) begin
        set_field = bfield(csrec_pkg::BODY_REGION_RIGHTS_LSB);
        set_detail = 64'(r_rights);
      end else if ((!set_host && r_base[5:0] != '0) || (set_lists && r_base[2:0] != '0)) begin
        set_status = csrec_pkg::ST_BAD_ALIGN;
        set_field = bfield(csrec_pkg::BODY_REGION_BASE_LSB);
        set_detail = r_base;
      end else if (r_size == '0) begin
        set_status = csrec_pkg::ST_BAD_LENGTH;
        set_field = bfield(csrec_pkg::BODY_REGION_SIZE_LSB);
      end else if (!set_host && {1'b0, r_base} + {1'b0, r_size} > {1'b0, set_limit}) begin
        set_status = csrec_pkg::ST_OUT_OF_BOUNDS;
        set_field = bfield(csrec_pkg::BODY_REGION_BASE_LSB);
        set_detail = r_base;
      end else if (r_levels > (set_host ? 8'd2 : 8'd0)) begin
        set_field = bfield(csrec_pkg::BODY_REGION_LEVELS_LSB);
        set_detail = 64'(r_levels);
      end else if (set_small ? r_shift != '0 : r_shift < 8'd12 || r_shift > 8'd30) begin
        set_field = bfield(csrec_pkg::BODY_REGION_PAGE_SHIFT_LSB);
        set_detail = 64'(r_shift);
      end else if (set_small ? r_page_off != '0 : r_page_off >> r_shift[4:0] != '0) begin
        set_field = bfield(csrec_pkg::BODY_REGION_PAGE_OFF_LSB);
        set_detail = 64'(r_page_off);
      end else begin
        set_bad = 1'b0;
      end
    end
  end

  assign tbl_valid_o = state_q == StProbe || state_q == StTable || state_q == StClear;
  assign tbl_index_o = r_key[15:0];
  assign tbl_gen_o = r_key[31:16];
  assign tbl_kind_o = r_kind[1:0];
  assign tbl_rights_o = r_rights[1:0];
  assign tbl_domain_o = body[csrec_pkg::BODY_REGION_DOMAIN_LSB+:16];
  assign tbl_base_o = r_base;
  assign tbl_size_o = r_size;
  assign tbl_levels_o = r_levels[1:0];
  assign tbl_shift_o = r_shift[4:0];
  assign tbl_page_off_o = r_page_off;
  always_comb begin
    case (state_q)
      StTable, StTableRsp:
        tbl_op_o = opcode == csrec_pkg::OP_REGION_SET ? TblSet : TblInval;
      StClear, StClearRsp: tbl_op_o = TblInvalAll;
      default: tbl_op_o = TblProbe;
    endcase
  end

  // -------------------------------------------------------------- raw port
  logic [31:0] sq_slot, bad_slot, cq_slot;
  logic [15:0] cqe_status;
  assign sq_slot = fetched_q[cur_q] & ((32'd1 << log2_q[cur_q]) - 32'd1);
  assign cq_slot = posted_q[pst_qid_q] & ((32'd1 << log2_q[pst_qid_q]) - 32'd1);
  assign bad_slot = (fetched_q[cur_q] - 32'd1) & ((32'd1 << log2_q[cur_q]) - 32'd1);
  assign cqe_status = 16'(pst_status_q) << csrec_pkg::CQE_STATUS_SHIFT |
                      (posted_q[pst_qid_q][5'(log2_q[pst_qid_q])] ? 16'd0 :
                                                             16'(csrec_pkg::CQE_PHASE));

  logic pst_dead;  // nobody to tell
  assign pst_dead = !exists_q[pst_qid_q] || stop_q[pst_qid_q];

  assign raw_valid_o = state_q == StFetch || (state_q == StPost && !pst_dead);
  assign raw_write_o = state_q == StPost;
  assign raw_addr_o = state_q == StPost ? cqb_q[pst_qid_q] + {28'd0, cq_slot, 4'd0}
                                        : sqb_q[cur_q] + {26'd0, sq_slot, 6'd0};
  assign raw_wdata_o = {pst_detail_q, fetched_q[pst_qid_q][15:0],
                        pst_status_q == csrec_pkg::ST_OK ? 16'd0 : pst_field_q, cqe_status,
                        pst_cid_q};

  // -------------------------------------------------------- engines, MSI-X
  assign start_cmd_o = cmd_q;
  assign start_domain_o = domain_q[cur_q];
  always_comb begin
    for (int unsigned i = 0; i < NumUnits; i++) begin
      start_valid_o[i] = state_q == StStart && unit_q == 3'(i);
      done_ready_o[i] = state_q == StDone && unit_q == 3'(i);
      abort_o[i] = unit_busy_q[i] &&
                   (state_q == StDrain || (del_q && unit_qid_q[i] == del_qid_q));
    end
  end
  assign msix_valid_o = state_q == StIrq;
  assign msix_vector_o = vector_q[pst_qid_q];

  assign ev_command_o = state_q == StPostRsp && raw_rsp_valid_i && !raw_rsp_err_i;
  assign ev_error_o = ev_command_o && pst_status_q != csrec_pkg::ST_OK;
  assign ev_irq_o = msix_valid_o && msix_ready_i;
  assign ev_progress_o = ev_command_o || state_q == StDone ||
                         (start_valid_o & start_ready_i) != '0;

  logic scan_busy;
  assign scan_busy = 32'(idle_q) < NumQ || del_q || unit_busy_q != '0 || disable_q;
  always_comb begin
    case (state_q)
      StOff: busy_o = enable_i && !disable_i;
      StBadConfig: busy_o = disable_q;
      StScan: busy_o = scan_busy;
      default: busy_o = 1'b1;
    endcase
  end

  // ------------------------------------------------------------------- FSM
  always_ff @(posedge clk_i) begin
    if (disable_i && state_q != StOff) disable_q <= 1'b1;

    if (db_ok_o) begin
      tail_q[db_q] <= db_tail;
      head_q[db_q] <= db_head;
      idle_q <= '0;
      if (db_head == posted_q[db_q]) unseen_q[db_q] <= '0;
    end

    for (int unsigned i = 0; i < NumQ; i++) begin
      if (left_q[i] != '0) left_q[i] <= left_q[i] - 32'd1;
    end

    case (state_q)
      StOff: begin
        disable_q <= 1'b0;
        idle_q <= '0;
        cur_q <= '0;
        if (enable_i && !disable_i) begin
          log2_q[0] <= aq_log2_i;
          sqb_q[0] <= asq_base_i;
          cqb_q[0] <= acq_base_i;
          vector_q[0] <= '0;
          domain_q[0] <= '0;
          noirq_q[0] <= 1'b0;
          icnt_q[0] <= '0;
          icyc_q[0] <= '0;
          tail_q[0] <= first_count_i;
          head_q[0] <= first_count_i;
          fetched_q[0] <= first_count_i;
          posted_q[0] <= first_count_i;
          open_q[0] <= '0;
          if (asq_base_i[5:0] != '0 || acq_base_i[3:0] != '0 || aq_log2_i == '0 ||
              32'(aq_log2_i) > MaxLog2Entries) begin
            fatal_q <= 1'b1;
            fatal_code_q <= csrec_pkg::FATAL_CONFIG;
            state_q <= StBadConfig;
          end else begin
            exists_q[0] <= 1'b1;
            state_q <= StScan;
          end
        end
      end

      StBadConfig: begin
        if (disable_q) begin
          fatal_q <= 1'b0;
          fatal_code_q <= csrec_pkg::FATAL_NONE;
          state_q <= StOff;
        end
      end

      StScan: begin
        unit_q <= done_unit;
        cmd_q <= sqe_q[cur_q];
        if (disable_q) begin
          state_q <= StDrain;
        end else if (due_any) begin
          pst_qid_q <= due_q;
          unseen_q[due_q] <= '0;
          state_q <= StIrq;
        end else if (done_any) begin
          state_q <= StDone;
        end else if (del_q && open_q[del_qid_q] == '0) begin
          idle_q <= '0;
          pst_status_q <= csrec_pkg::ST_OK;
          pst_field_q <= '0;
          pst_detail_q <= '0;
          if (wait_q[del_qid_q] && !stop_q[del_qid_q]) begin
            // A WAIT that was blocked has started, so it completes.
            wait_q[del_qid_q] <= 1'b0;
            held_q[del_qid_q] <= 1'b0;
            pst_qid_q <= del_qid_q;
            pst_open_q <= 1'b0;
            pst_noirq_q <= (sqe_q[del_qid_q][15:8] & csrec_pkg::CMD_F_NOIRQ) != '0;
            pst_cid_q <= sqe_q[del_qid_q][csrec_pkg::CMD_CID_LSB+:16];
            pst_status_q <= csrec_pkg::ST_ABORTED;
            pst_field_q <= csrec_pkg::FIELD_NONE;
          end else begin
            del_q <= 1'b0;
            exists_q[del_qid_q] <= 1'b0;
            unseen_q[del_qid_q] <= '0;
            pst_qid_q <= '0;
            pst_open_q <= 1'b1;
            pst_noirq_q <= del_noirq_q;
            pst_cid_q <= del_cid_q;
          end
          state_q <= StPost;
        end else if (cur_start) begin
          idle_q <= '0;
          served_q <= 1'b1;
          pst_qid_q <= cur_q;
          pst_open_q <= 1'b0;
          pst_noirq_q <= (sqe_q[cur_q][15:8] & csrec_pkg::CMD_F_NOIRQ) != '0;
          pst_cid_q <= sqe_q[cur_q][csrec_pkg::CMD_CID_LSB+:16];
          state_q <= StDecode;
          if (bad_q[cur_q]) begin
            held_q[cur_q] <= 1'b0;
            pst_noirq_q <= 1'b0;
            pst_cid_q <= 16'hffff;
            pst_status_q <= csrec_pkg::ST_BUS_ERROR;
            pst_field_q <= csrec_pkg::FIELD_NONE;
            pst_detail_q <= {32'd0, bad_slot};
            state_q <= StPost;
          end
        end else if (cur_fetch) begin
          idle_q <= '0;
          state_q <= StFetch;
        end else begin
          cur_q <= 32'(cur_q) == NumQ - 1 ? '0 : cur_q + 1'b1;
          served_q <= 1'b0;
          if (!db_ok_o && !served_q && 32'(idle_q) < NumQ) idle_q <= idle_q + 1'b1;
        end
      end

      StFetch: if (raw_ready_i) state_q <= StFetchRsp;

      StFetchRsp: begin
        if (raw_rsp_valid_i) begin
          state_q <= StScan;
          if (raw_rsp_err_i && cur_q == '0) begin
            stop_q[0] <= 1'b1;
            fatal_q <= 1'b1;
            fatal_code_q <= csrec_pkg::FATAL_ADMIN_SQ;
          end else begin
            sqe_q[cur_q] <= raw_rdata_i;
            held_q[cur_q] <= 1'b1;
            bad_q[cur_q] <= raw_rsp_err_i;
            fetched_q[cur_q] <= fetched_q[cur_q] + 32'd1;
          end
        end
      end

      StDecode: begin
        pst_status_q <= csrec_pkg::ST_OK;
        pst_field_q <= '0;
        pst_detail_q <= '0;
        unit_q <= unit_of(opcode);
        if (chk_bad) begin
          pst_status_q <= chk_status;
          pst_field_q <= chk_field;
          pst_detail_q <= chk_detail;
          held_q[cur_q] <= 1'b0;
          state_q <= StPost;
        end else begin
          case (opcode)
            csrec_pkg::OP_NOP, csrec_pkg::OP_FENCE: begin
              held_q[cur_q] <= 1'b0;
              state_q <= StPost;
            end
            csrec_pkg::OP_SIGNAL, csrec_pkg::OP_WAIT, csrec_pkg::OP_FENCE_SET,
            csrec_pkg::OP_FENCE_INVAL, csrec_pkg::OP_FENCE_SIGNAL: state_q <= StFence;
            csrec_pkg::OP_QUEUE_CREATE, csrec_pkg::OP_QUEUE_DELETE: state_q <= StQueue;
            csrec_pkg::OP_REGION_SET, csrec_pkg::OP_REGION_INVAL: begin
              if (32'(r_key[15:0]) >= NumRegions) begin
                pst_status_q <= csrec_pkg::ST_BAD_KEY;
                pst_field_q <= bfield(csrec_pkg::BODY_REGION_REGION_KEY_LSB);
                pst_detail_q <= 64'(r_key);
                held_q[cur_q] <= 1'b0;
                state_q <= StPost;
              end else begin
                state_q <= StProbe;
              end
            end
            default: state_q <= StStart;
          endcase
        end
      end

      StStart: begin
        if ((start_valid_o & start_ready_i) != '0) begin
          held_q[cur_q] <= 1'b0;
          open_q[cur_q] <= open_q[cur_q] + 4'd1;
          unit_busy_q[unit_q] <= 1'b1;
          unit_qid_q[unit_q] <= cur_q;
          unit_cid_q[unit_q] <= pst_cid_q;
          unit_noirq_q[unit_q] <= pst_noirq_q;
          state_q <= StScan;
        end
      end

      StFence: begin
        held_q[cur_q] <= 1'b0;
        wait_q[cur_q] <= 1'b0;
        pst_field_q <= bfield(FKeyLsb);
        pst_detail_q <= 64'(f_key);
        state_q <= StPost;
        if (!f_range) begin
          pst_status_q <= csrec_pkg::ST_BAD_KEY;
        end else if (opcode == csrec_pkg::OP_FENCE_SET) begin
          if (f_key[31:16] == '0 || f_used) begin
            pst_status_q <= csrec_pkg::ST_BAD_VALUE;
          end else begin
            f_used_q[f_key[FW-1:0]] <= 1'b1;
            f_table_q[f_key[FW-1:0]] <= {f_key[31:16],
                                         body[csrec_pkg::BODY_FENCE_SET_DOMAIN_LSB+:16],
                                         body[csrec_pkg::BODY_FENCE_SET_VALUE_LSB+:64]};
            pst_detail_q <= '0;
          end
        end else if (!f_used || f_gen != f_key[31:16]) begin
          pst_status_q <= csrec_pkg::ST_STALE_KEY;
        end else if (opcode == csrec_pkg::OP_FENCE_INVAL) begin
          f_used_q[f_key[FW-1:0]] <= 1'b0;
          again_q <= '1;
          pst_detail_q <= '0;
        end else if (opcode != csrec_pkg::OP_FENCE_SIGNAL && f_domain != domain_q[cur_q]) begin
          pst_status_q <= csrec_pkg::ST_BAD_DOMAIN;
        end else if (opcode == csrec_pkg::OP_WAIT) begin
          pst_detail_q <= f_value;
          if (f_value < f_arg) begin
            held_q[cur_q] <= 1'b1;
            wait_q[cur_q] <= 1'b1;
            again_q[cur_q] <= 1'b0;
            state_q <= StScan;
          end
        end else begin
          f_table_q[f_key[FW-1:0]] <= {f_gen, f_domain, f_max};
          again_q <= '1;
          pst_detail_q <= f_max;
        end
      end

      StQueue: begin
        held_q[cur_q] <= 1'b0;
        state_q <= StPost;
        if (q_id == '0 || 32'(q_id) >= NumQ ||
            exists_q[q_idx] != (opcode == csrec_pkg::OP_QUEUE_DELETE)) begin
          pst_status_q <= csrec_pkg::ST_BAD_QUEUE;
          pst_field_q <= bfield(csrec_pkg::BODY_QUEUE_QID_LSB);
          pst_detail_q <= 64'(q_id);
        end else if (opcode == csrec_pkg::OP_QUEUE_DELETE) begin
          del_q <= 1'b1;
          del_qid_q <= q_idx;
          del_cid_q <= pst_cid_q;
          del_noirq_q <= pst_noirq_q;
          open_q[0] <= open_q[0] + 4'd1;
          state_q <= StScan;
        end else if (q_log2 == '0 || 32'(q_log2) > MaxLog2Entries) begin
          pst_status_q <= csrec_pkg::ST_BAD_VALUE;
          pst_field_q <= bfield(csrec_pkg::BODY_QUEUE_LOG2_ENTRIES_LSB);
          pst_detail_q <= 64'(q_log2);
        end else if (32'(q_vector) >= NumVectors) begin
          pst_status_q <= csrec_pkg::ST_BAD_VALUE;
          pst_field_q <= bfield(csrec_pkg::BODY_QUEUE_VECTOR_LSB);
          pst_detail_q <= 64'(q_vector);
        end else if (q_sqb[5:0] != '0) begin
          pst_status_q <= csrec_pkg::ST_BAD_ALIGN;
          pst_field_q <= bfield(csrec_pkg::BODY_QUEUE_SQ_BASE_LSB);
          pst_detail_q <= q_sqb;
        end else if (q_cqb[3:0] != '0) begin
          pst_status_q <= csrec_pkg::ST_BAD_ALIGN;
          pst_field_q <= bfield(csrec_pkg::BODY_QUEUE_CQ_BASE_LSB);
          pst_detail_q <= q_cqb;
        end else if (q_icnt > 16'd1 && q_icyc == '0) begin
          pst_status_q <= csrec_pkg::ST_BAD_VALUE;
          pst_field_q <= bfield(csrec_pkg::BODY_QUEUE_IRQ_COUNT_LSB);
          pst_detail_q <= 64'(q_icnt);
        end else if ((q_flags & ~csrec_pkg::QUEUE_HW_F_ALL) != '0) begin
          pst_status_q <= csrec_pkg::ST_BAD_VALUE;
          pst_field_q <= bfield(csrec_pkg::BODY_QUEUE_QFLAGS_LSB);
          pst_detail_q <= 64'(q_flags);
        end else begin
          exists_q[q_idx] <= 1'b1;
          stop_q[q_idx] <= 1'b0;
          held_q[q_idx] <= 1'b0;
          wait_q[q_idx] <= 1'b0;
          log2_q[q_idx] <= q_log2[3:0];
          sqb_q[q_idx] <= q_sqb;
          cqb_q[q_idx] <= q_cqb;
          vector_q[q_idx] <= q_vector;
          domain_q[q_idx] <= body[csrec_pkg::BODY_QUEUE_DOMAIN_LSB+:16];
          noirq_q[q_idx] <= (q_flags & csrec_pkg::QUEUE_HW_F_NOIRQ) != '0;
          icnt_q[q_idx] <= q_icnt;
          icyc_q[q_idx] <= q_icyc;
          tail_q[q_idx] <= first_count_i;
          head_q[q_idx] <= first_count_i;
          fetched_q[q_idx] <= first_count_i;
          posted_q[q_idx] <= first_count_i;
          open_q[q_idx] <= '0;
        end
      end

      StProbe: if (tbl_ready_i) state_q <= StProbeRsp;
      StProbeRsp: begin
        slot_used_q <= tbl_rsp_used_i;
        slot_gen_q <= tbl_rsp_gen_i;
        if (tbl_rsp_valid_i) state_q <= StRegion;
      end

      StRegion: begin
        held_q[cur_q] <= 1'b0;
        state_q <= StTable;
        if (opcode == csrec_pkg::OP_REGION_SET) begin
          if (set_bad) begin
            pst_status_q <= set_status;
            pst_field_q <= set_field;
            pst_detail_q <= set_detail;
            state_q <= StPost;
          end
        end else if (!slot_used_q || slot_gen_q != r_key[31:16]) begin
          pst_status_q <= csrec_pkg::ST_STALE_KEY;
          pst_field_q <= bfield(csrec_pkg::BODY_REGION_REGION_KEY_LSB);
          pst_detail_q <= 64'(r_key);
          state_q <= StPost;
        end
      end

      StTable: if (tbl_ready_i) state_q <= StTableRsp;
      StTableRsp: if (tbl_rsp_valid_i) state_q <= StPost;

      StDone: begin
        idle_q <= '0;
        unit_busy_q[unit_q] <= 1'b0;
        pst_qid_q <= unit_qid_q[unit_q];
        pst_open_q <= 1'b1;
        pst_noirq_q <= unit_noirq_q[unit_q];
        pst_cid_q <= unit_cid_q[unit_q];
        pst_status_q <= done_status_i[8*unit_q+:8];
        pst_field_q <= done_field_i[16*unit_q+:16];
        pst_detail_q <= done_detail_i[64*unit_q+:64];
        state_q <= disable_q ? StDrain : StPost;
      end

      StPost: begin
        if (pst_dead || raw_ready_i) begin
          if (pst_open_q) open_q[pst_qid_q] <= open_q[pst_qid_q] - 4'd1;
          state_q <= StScan;
        end
        if (!pst_dead && raw_ready_i) begin
          // Counted before the host can see it: its doorbell may come at once.
          posted_q[pst_qid_q] <= posted_q[pst_qid_q] + 32'd1;
          state_q <= StPostRsp;
        end
      end

      StPostRsp: begin
        if (raw_rsp_valid_i) begin
          state_q <= pst_irq ? StIrq : StScan;
          if (!raw_rsp_err_i && pst_irq) unseen_q[pst_qid_q] <= '0;
          if (!raw_rsp_err_i && pst_wait) begin
            unseen_q[pst_qid_q] <= unseen_q[pst_qid_q] + 16'd1;
            if (!waits[pst_qid_q]) left_q[pst_qid_q] <= icyc_q[pst_qid_q];
          end
          if (raw_rsp_err_i) begin
            stop_q[pst_qid_q] <= 1'b1;
            if (pst_qid_q == '0) begin
              fatal_q <= 1'b1;
              fatal_code_q <= csrec_pkg::FATAL_ADMIN_CQ;
            end
            state_q <= StScan;
          end
        end
      end

      StIrq: if (msix_ready_i) state_q <= StScan;

      StDrain: begin
        unit_q <= done_unit;
        if (done_any) state_q <= StDone;
        else if (unit_busy_q == '0) state_q <= StClear;
      end

      StClear: if (tbl_ready_i) state_q <= StClearRsp;

      StClearRsp: begin
        if (tbl_rsp_valid_i) begin
          exists_q <= '0;
          stop_q <= '0;
          held_q <= '0;
          wait_q <= '0;
          for (int unsigned i = 0; i < NumQ; i++) unseen_q[i] <= '0;
          f_used_q <= '0;
          del_q <= 1'b0;
          fatal_q <= 1'b0;
          fatal_code_q <= csrec_pkg::FATAL_NONE;
          state_q <= StOff;
        end
      end

      default: state_q <= StOff;
    endcase

    if (!rst_ni) begin
      state_q <= StOff;
      exists_q <= '0;
      stop_q <= '0;
      held_q <= '0;
      bad_q <= '0;
      wait_q <= '0;
      for (int unsigned i = 0; i < NumQ; i++) unseen_q[i] <= '0;
      f_used_q <= '0;
      del_q <= 1'b0;
      unit_busy_q <= '0;
      disable_q <= 1'b0;
      fatal_q <= 1'b0;
      fatal_code_q <= csrec_pkg::FATAL_NONE;
      idle_q <= '0;
      cur_q <= '0;
      served_q <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  // Asserted in simulation, and proved for all inputs and any number of cycles by
  // tests/rtl/formal, where these invariants carry their own induction.
  //
  // A command is at work on queue cur_q that has not been counted in open_q: it still has
  // the room in the CQ that it started with.
  logic            at_work, table_op, draining;
  state_e          wanted;  // where the command goes from StDecode
  logic [3:0]      open_want [0:NumQ-1];
  logic [31:0]     entries   [0:NumQ-1];
  // A WAIT that has passed StDecode; head is its opcode and flags, rest what follows the cid.
  function automatic logic checked_wait(input logic [15:0] head, input logic [479:0] rest);
    checked_wait = head[7:0] == csrec_pkg::OP_WAIT && (head[15:8] & ~csrec_pkg::CMD_F_ALL) == '0 &&
                   rest[31:0] == '0 && reserved(csrec_pkg::OP_WAIT, rest[479:32]) == '0;
  endfunction
  always_comb begin
    case (state_q)
      StDecode, StStart, StFence, StQueue, StProbe, StProbeRsp, StRegion: at_work = 1'b1;
      default: at_work = 1'b0;
    endcase
    table_op = state_q == StTable || state_q == StTableRsp;
    case (opcode)
      csrec_pkg::OP_SIGNAL, csrec_pkg::OP_WAIT, csrec_pkg::OP_FENCE_SET,
      csrec_pkg::OP_FENCE_INVAL, csrec_pkg::OP_FENCE_SIGNAL: wanted = StFence;
      csrec_pkg::OP_QUEUE_CREATE, csrec_pkg::OP_QUEUE_DELETE: wanted = StQueue;
      csrec_pkg::OP_REGION_SET, csrec_pkg::OP_REGION_INVAL: wanted = StProbe;
      default: wanted = needs_unit(opcode) ? StStart : StDecode;
    endcase
    draining = state_q == StDrain || state_q == StClear || state_q == StClearRsp ||
               (state_q == StDone && disable_q);
    for (int unsigned i = 0; i < NumQ; i++) begin
      entries[i] = 32'd1 << log2_q[i];
      open_want[i] = 4'(del_q && i == 0) +
                     4'(state_q == StPost && pst_open_q && 32'(pst_qid_q) == i);
      for (int unsigned u = 0; u < NumUnits; u++) begin
        open_want[i] = open_want[i] + 4'(unit_busy_q[u] && 32'(unit_qid_q[u]) == i);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < NumQ; i++) begin
      if (rst_ni && exists_q[i]) begin
        assert (log2_q[i] != '0 && 32'(log2_q[i]) <= MaxLog2Entries) else $error("%m: entries");
        // SQ: nothing is fetched that the host has not put there, nor twice
        assert (tail_q[i] - fetched_q[i] <= entries[i]) else $error("%m: SQ overrun");
        // CQ: what is posted and what is going to be has a slot that the host is done with
        assert (posted_q[i] - head_q[i] <= entries[i]) else $error("%m: CQ overrun");
        assert (posted_q[i] + 32'(open_q[i]) - head_q[i] <= entries[i])
        else $error("%m: no room for what is started");
        assert (!wait_q[i] || posted_q[i] + 32'(open_q[i]) - head_q[i] < entries[i])
        else $error("%m: no room for a blocked WAIT");
        assert (!wait_q[i] || (held_q[i] && !bad_q[i] &&
                               checked_wait(sqe_q[i][15:0], sqe_q[i][511:32])))
        else $error("%m: blocked by no WAIT");
        assert (draining || open_q[i] == open_want[i]) else $error("%m: open commands miscounted");
      end
    end
    if (rst_ni) begin
      for (int unsigned u = 0; u < NumUnits; u++) begin
        assert (!unit_busy_q[u] || exists_q[unit_qid_q[u]]) else $error("%m: for no queue");
      end
      if (state_q == StOff || state_q == StBadConfig) begin
        assert ({exists_q, held_q, wait_q, stop_q, unit_busy_q, del_q} == '0)
        else $error("%m: off, and not cleared");
      end else begin
        assert (exists_q[0]) else $error("%m: on without admin queue");
      end
      assert (state_q <= StClearRsp) else $error("%m: no state");
      assert (!draining || disable_q) else $error("%m: drains unasked");
      if (state_q == StClear || state_q == StClearRsp) begin
        assert (unit_busy_q == '0) else $error("%m: units work on");
      end
      if (state_q == StDone) begin
        assert (32'(unit_q) < NumUnits && unit_busy_q[unit_q] && done_valid_i[unit_q])
        else $error("%m: takes what is not done");
      end
      if (state_q == StPostRsp || state_q == StIrq) begin
        assert (exists_q[pst_qid_q]) else $error("%m: tells nobody");
      end
      assert (!del_q || (exists_q[del_qid_q] && del_qid_q != '0 && exists_q[0]))
      else $error("%m: deletes no queue");
      assert (32'(cur_q) < NumQ) else $error("%m: looks at no queue");
      assert (!at_work || state_q == StDecode || state_q == wanted ||
              (wanted == StProbe && (state_q == StProbeRsp || state_q == StRegion)))
      else $error("%m: command gone astray");
      if (state_q == StPost && !pst_open_q) begin
        assert (!wait_q[pst_qid_q]) else $error("%m: blocked, and posted");
      end
      if (at_work) begin
        assert (exists_q[cur_q] && held_q[cur_q] && cmd_q == sqe_q[cur_q] && pst_qid_q == cur_q &&
                !pst_open_q && !bad_q[cur_q] && !(del_q && (cur_q == '0 || cur_q == del_qid_q)))
        else $error("%m: works on something else");
        assert (state_q != StFence || opcode != csrec_pkg::OP_WAIT ||
                checked_wait(cmd_q[15:0], cmd_q[511:32]))
        else $error("%m: WAIT not checked");
        assert (!needs_unit(opcode) || !unit_busy_q[unit_of(opcode)]) else $error("%m: unit taken");
        assert (wanted != StQueue || state_q == StDecode || cur_q == '0)
        else $error("%m: queues are the admin queue's");
        assert (state_q != StStart || unit_q == unit_of(opcode)) else $error("%m: wrong unit");
      end
      if (table_op) begin
        assert (exists_q[cur_q] && !wait_q[cur_q] && pst_qid_q == cur_q && !pst_open_q)
        else $error("%m: table operation of nobody");
      end
      if (at_work || table_op) begin
        assert (posted_q[cur_q] + 32'(open_q[cur_q]) - head_q[cur_q] < entries[cur_q])
        else $error("%m: no room for what is at work");
      end
      if (state_q == StFetch || state_q == StFetchRsp) begin
        assert (exists_q[cur_q] && !held_q[cur_q] && tail_q[cur_q] != fetched_q[cur_q])
        else $error("%m: fetches what is not there");
      end
      if (state_q == StPost && !pst_dead) begin
        assert (posted_q[pst_qid_q] + 32'(open_q[pst_qid_q]) - head_q[pst_qid_q] <
                entries[pst_qid_q] + 32'(pst_open_q)) else $error("%m: posts without room");
      end
      // Queue entries are read, and completions written, within the rings.
      if (raw_valid_o && !raw_write_o) begin
        assert (raw_addr_o - sqb_q[cur_q] < 64'(entries[cur_q]) << 6)
        else $error("%m: fetch outside the SQ");
      end
      if (raw_valid_o && raw_write_o) begin
        assert (raw_addr_o - cqb_q[pst_qid_q] < 64'(entries[pst_qid_q]) << 4)
        else $error("%m: completion outside the CQ");
      end
    end
  end

  // What waits for an interrupt is of a queue that has some, less than would bring one, and
  // not yet consumed; a timer runs no longer than it was told to.
  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < NumQ; i++) begin
      if (rst_ni && waits[i]) begin
        assert (exists_q[i] && !noirq_q[i]) else $error("%m: waits for no interrupt");
        assert (unseen_q[i] < icnt_q[i]) else $error("%m: waits though there are enough");
        assert (head_q[i] != posted_q[i]) else $error("%m: consumed and still waits");
        assert (left_q[i] <= icyc_q[i]) else $error("%m: waits too long");
      end
    end
    if (rst_ni && msix_valid_o) begin
      assert (exists_q[pst_qid_q] && !noirq_q[pst_qid_q]) else $error("%m: no such interrupt");
    end
  end
`endif

`ifdef FORMAL
  // Only for tests/rtl/formal: what takes a witness of its own.
  //
  // Phase: the bit in any slot of any CQ, as the host sees it (slots start as zero), is not
  // the one that the next completion for the slot has; what a completion writes flips it.
  (* anyconst *) logic [QW-1:0] f_queue;
  (* anyconst *) logic [11:0]   f_slot;
  logic        f_phase_q;
  logic [31:0] f_mask, f_next;
  assign f_mask = (32'd1 << log2_q[f_queue]) - 32'd1;
  assign f_next = posted_q[f_queue] + ((32'(f_slot) - posted_q[f_queue]) & f_mask);

  // Fairness: could f_queue start its command now, and how many have others started since?
  logic        f_could, f_start;
  logic [31:0] f_turns_q, f_rest;
  always_comb begin
    f_could = exists_q[f_queue] && !stop_q[f_queue] && held_q[f_queue] && !disable_q &&
              !(del_q && (f_queue == '0 || f_queue == del_qid_q)) &&
              posted_q[f_queue] + 32'(open_q[f_queue]) - head_q[f_queue] <
                32'd1 << log2_q[f_queue] &&
              (!wait_q[f_queue] || again_q[f_queue]) &&
              (open_q[f_queue] == '0 || bad_q[f_queue] || !fences(sqe_q[f_queue][15:0])) &&
              (bad_q[f_queue] || !needs_unit(sqe_q[f_queue][7:0]) ||
               !unit_busy_q[unit_of(sqe_q[f_queue][7:0])]);
    f_start = state_q == StScan && !disable_q && !due_any && !done_any &&
              !(del_q && open_q[del_qid_q] == '0) && cur_start;
    // queues that the scan still comes to before f_queue
    f_rest = cur_q == f_queue ? (served_q ? NumQ - 1 : 0) :
             (cur_q < f_queue ? 32'(f_queue) - 32'(cur_q)
                              : NumQ + 32'(f_queue) - 32'(cur_q)) - 32'(served_q);
  end

  // The same of units that are done: how many others were taken meanwhile?
  (* anyconst *) logic [2:0] f_unit;
  logic [31:0] f_taken_q, f_others;
  always_comb begin
    f_others = 32'(state_q == StDecode || state_q == StStart);
    for (int unsigned u = 0; u < NumUnits; u++) begin
      f_others = f_others + 32'(unit_busy_q[u] && 3'(u) != f_unit);
    end
  end

  always_ff @(posedge clk_i) begin
    assume (32'(f_queue) < NumQ && 32'(f_unit) < NumUnits);
    if (!exists_q[f_queue]) f_phase_q <= 1'b0;
    else if (state_q == StPost && !pst_dead && raw_ready_i && pst_qid_q == f_queue &&
             cq_slot == 32'(f_slot)) begin
      f_phase_q <= raw_wdata_o[16];
      assert (!rst_ni || raw_wdata_o[16] != f_phase_q);
    end
    if (rst_ni && exists_q[f_queue] && 32'(f_slot) <= f_mask) begin
      assert (f_phase_q == f_next[5'(log2_q[f_queue])]);
    end

    f_turns_q <= !f_could || (f_start && cur_q == f_queue) || !rst_ni ? '0
                 : f_turns_q + 32'(f_start);
    if (rst_ni && f_could) begin
      assert (f_turns_q < NumQ && f_turns_q + f_rest < NumQ);
    end

    f_taken_q <= !done_valid_i[f_unit] || !rst_ni ? '0
                 : f_taken_q + 32'(state_q == StDone && unit_q != f_unit);
    if (rst_ni && done_valid_i[f_unit]) begin
      assert (f_taken_q <= NumUnits && f_taken_q + f_others <= NumUnits);
    end
  end
`endif

endmodule

`default_nettype wire
