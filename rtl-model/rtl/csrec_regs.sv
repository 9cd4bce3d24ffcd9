// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Registers, doorbells and counters behind an AXI4-Lite slave of 64 bits.
//
// A write must have all eight strobes, else it is dropped and counted, as is one that
// hits nothing writable. Reads of what is not there give 0. Neither ever answers with
// an error or waits for anything but its own channel. A doorbell write is shown to
// csrec_sched for one cycle (db_valid_o); db_ok_i says in the same cycle whether it was
// legal, as dbs_value_i says at once what DB_STATE of queue dbs_queue_o is.

`default_nettype none

module csrec_regs #(
  parameter int unsigned NumIoQueues = 4,
  parameter int unsigned NumRegions = 256,
  parameter int unsigned NumFences = 64,
  parameter int unsigned NumVectors = 5,
  parameter int unsigned OnchipBytes = 1 << 20,
  parameter int unsigned MaxLog2Entries = 12,
  parameter int unsigned MaxDim = 256,
  parameter int unsigned MaxVecs = 64,
  parameter int unsigned MaxRank = 32,
  parameter int unsigned MaxWidth = 4096,
  parameter int unsigned NumMacs = 8,
  parameter logic [4:0]  Engines = 5'h1f,  // CSREC_CAPE_* bits
  parameter logic [3:0]  FpUnit = 4'd0,    // CSREC_FP_*
  parameter int unsigned DbBase = 32'h10000,
  parameter int unsigned DbStrideLog2 = 12
) (
  input  wire logic        clk_i,
  input  wire logic        rst_ni,
  input  wire logic [63:0] dram_size_i,

  input  wire logic        s_axil_awvalid_i,
  output      logic        s_axil_awready_o,
  input  wire logic [18:0] s_axil_awaddr_i,
  input  wire logic        s_axil_wvalid_i,
  output      logic        s_axil_wready_o,
  input  wire logic [63:0] s_axil_wdata_i,
  input  wire logic [7:0]  s_axil_wstrb_i,
  output      logic        s_axil_bvalid_o,
  input  wire logic        s_axil_bready_i,
  input  wire logic        s_axil_arvalid_i,
  output      logic        s_axil_arready_o,
  input  wire logic [18:0] s_axil_araddr_i,
  output      logic        s_axil_rvalid_o,
  input  wire logic        s_axil_rready_i,
  output      logic [63:0] s_axil_rdata_o,
  output      logic        busy_o,

  // to csrec_sched
  output      logic        enable_o,
  output      logic        disable_o,  // pulse: ENABLE was written as 0
  output      logic [63:0] asq_base_o,
  output      logic [63:0] acq_base_o,
  output      logic [3:0]  aq_log2_o,
  output      logic        db_valid_o,
  output      logic [6:0]  db_queue_o,
  output      logic [63:0] db_value_o,
  input  wire logic        db_ok_i,
  output      logic [6:0]  dbs_queue_o,
  input  wire logic [63:0] dbs_value_i,

  // status and events to count
  input  wire logic        st_ready_i,
  input  wire logic        st_busy_i,
  input  wire logic        st_fatal_i,
  input  wire logic [7:0]  st_fatal_code_i,
  input  wire logic        ev_progress_i,
  input  wire logic        ev_command_i,
  input  wire logic        ev_error_i,
  input  wire logic        ev_irq_i,
  input  wire logic        ev_busy_i,
  input  wire logic [4:0]  ev_unit_busy_i,  // copy, emb, tt, interact, mlp
  input  wire logic        ev_emb_row_i,
  input  wire logic        ev_tt_row_i,
  input  wire logic [31:0] ev_tt_saved_i,  // multiplications
  input  wire logic [12:0] ev_host_rd_i,  // bytes
  input  wire logic [12:0] ev_host_wr_i,
  input  wire logic [12:0] ev_dram_rd_i,
  input  wire logic [12:0] ev_dram_wr_i
);

  localparam int unsigned NumCnt = (32'(csrec_pkg::REG_CNT_END) -
                                    32'(csrec_pkg::REG_CNT_CYCLES)) / 8;

  // ---------------------------------------------------------------- writes
  logic        aw_full_q, w_full_q;
  logic [18:0] aw_addr_q;
  logic [63:0] w_data_q;
  logic        w_whole_q;
  logic        bvalid_q;

  assign s_axil_awready_o = !aw_full_q;
  assign s_axil_wready_o = !w_full_q;
  assign s_axil_bvalid_o = bvalid_q;

  // The write that is done in this cycle.
  logic        wr;
  logic [19:0] wr_addr;
  logic        wr_db, wr_ctrl, wr_asq, wr_acq, wr_aqs;
  logic [19:0] db_rel;
  assign wr = aw_full_q && w_full_q && !bvalid_q;
  assign wr_addr = {1'b0, aw_addr_q};
  assign db_rel = wr_addr - 20'(DbBase);
  assign wr_db = wr && w_whole_q && wr_addr >= 20'(DbBase) &&
                 db_rel[DbStrideLog2-1:0] == '0;
  assign wr_ctrl = wr && w_whole_q && wr_addr == csrec_pkg::REG_CTRL;
  assign wr_asq = wr && w_whole_q && wr_addr == csrec_pkg::REG_ASQ_BASE;
  assign wr_acq = wr && w_whole_q && wr_addr == csrec_pkg::REG_ACQ_BASE;
  assign wr_aqs = wr && w_whole_q && wr_addr == csrec_pkg::REG_AQ_SIZE;

  assign db_valid_o = wr_db;
  assign db_queue_o = 7'(db_rel >> DbStrideLog2);
  assign db_value_o = w_data_q;

  logic        enable_q;
  logic [63:0] asq_base_q, acq_base_q;
  logic [3:0]  aq_log2_q;
  assign enable_o = enable_q;
  assign disable_o = wr_ctrl && (w_data_q[31:0] & csrec_pkg::CTRL_ENABLE) == '0;
  assign asq_base_o = asq_base_q;
  assign acq_base_o = acq_base_q;
  assign aq_log2_o = aq_log2_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      aw_full_q <= 1'b0;
      w_full_q <= 1'b0;
      bvalid_q <= 1'b0;
      enable_q <= 1'b0;
      asq_base_q <= '0;
      acq_base_q <= '0;
      aq_log2_q <= '0;
    end else begin
      if (s_axil_awvalid_i && s_axil_awready_o) aw_full_q <= 1'b1;
      if (s_axil_wvalid_i && s_axil_wready_o) w_full_q <= 1'b1;
      if (wr) begin
        aw_full_q <= 1'b0;
        w_full_q <= 1'b0;
        bvalid_q <= 1'b1;
      end
      if (bvalid_q && s_axil_bready_i) bvalid_q <= 1'b0;
      if (wr_ctrl) enable_q <= (w_data_q[31:0] & csrec_pkg::CTRL_ENABLE) != '0;
      if (wr_asq) asq_base_q <= w_data_q;
      if (wr_acq) acq_base_q <= w_data_q;
      if (wr_aqs) aq_log2_q <= w_data_q[3:0];
    end
    if (s_axil_awvalid_i && s_axil_awready_o) aw_addr_q <= s_axil_awaddr_i;
    if (s_axil_wvalid_i && s_axil_wready_o) begin
      w_data_q <= s_axil_wdata_i;
      w_whole_q <= s_axil_wstrb_i == 8'hff;
    end
  end

  // -------------------------------------------------------------- counters
  logic [63:0] cnt_q [0:NumCnt-1];

  function automatic int unsigned cidx(input logic [19:0] register);
    cidx = (32'(register) - 32'(csrec_pkg::REG_CNT_CYCLES)) / 8;
  endfunction

  localparam int unsigned IdxHostRd = cidx(csrec_pkg::REG_CNT_HOST_RD);
  localparam int unsigned IdxHostWr = cidx(csrec_pkg::REG_CNT_HOST_WR);
  localparam int unsigned IdxDramRd = cidx(csrec_pkg::REG_CNT_DRAM_RD);
  localparam int unsigned IdxDramWr = cidx(csrec_pkg::REG_CNT_DRAM_WR);
  localparam int unsigned IdxTtSaved = cidx(csrec_pkg::REG_CNT_TT_SAVED);

  // Counters that step by one have a bit each here; the others have none.
  logic [NumCnt-1:0] inc;
  always_comb begin
    inc = '0;
    inc[cidx(csrec_pkg::REG_CNT_CYCLES)] = 1'b1;
    inc[cidx(csrec_pkg::REG_CNT_PROGRESS)] = ev_progress_i;
    inc[cidx(csrec_pkg::REG_CNT_COMMANDS)] = ev_command_i;
    inc[cidx(csrec_pkg::REG_CNT_ERRORS)] = ev_error_i;
    inc[cidx(csrec_pkg::REG_CNT_DOORBELLS)] = wr_db && db_ok_i;
    inc[cidx(csrec_pkg::REG_CNT_BAD_DOORBELL)] = wr_db && !db_ok_i;
    inc[cidx(csrec_pkg::REG_CNT_BAD_WRITE)] =
        wr && !(wr_db || wr_ctrl || wr_asq || wr_acq || wr_aqs);
    inc[cidx(csrec_pkg::REG_CNT_IRQS)] = ev_irq_i;
    inc[cidx(csrec_pkg::REG_CNT_BUSY_COPY)] = ev_unit_busy_i[0];
    inc[cidx(csrec_pkg::REG_CNT_BUSY_EMB)] = ev_unit_busy_i[1];
    inc[cidx(csrec_pkg::REG_CNT_BUSY_TT)] = ev_unit_busy_i[2];
    inc[cidx(csrec_pkg::REG_CNT_BUSY_INTERACT)] = ev_unit_busy_i[3];
    inc[cidx(csrec_pkg::REG_CNT_BUSY_MLP)] = ev_unit_busy_i[4];
    inc[cidx(csrec_pkg::REG_CNT_BUSY)] = ev_busy_i;
    inc[cidx(csrec_pkg::REG_CNT_EMB_ROWS)] = ev_emb_row_i;
    inc[cidx(csrec_pkg::REG_CNT_TT_ROWS)] = ev_tt_row_i;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      for (int unsigned i = 0; i < NumCnt; i++) cnt_q[i] <= '0;
    end else begin
      for (int unsigned i = 0; i < NumCnt; i++) begin
        if (inc[i]) cnt_q[i] <= cnt_q[i] + 64'd1;
      end
      if (ev_host_rd_i != '0) cnt_q[IdxHostRd] <= cnt_q[IdxHostRd] + 64'(ev_host_rd_i);
      if (ev_host_wr_i != '0) cnt_q[IdxHostWr] <= cnt_q[IdxHostWr] + 64'(ev_host_wr_i);
      if (ev_dram_rd_i != '0) cnt_q[IdxDramRd] <= cnt_q[IdxDramRd] + 64'(ev_dram_rd_i);
      if (ev_dram_wr_i != '0) cnt_q[IdxDramWr] <= cnt_q[IdxDramWr] + 64'(ev_dram_wr_i);
      if (ev_tt_saved_i != '0) cnt_q[IdxTtSaved] <= cnt_q[IdxTtSaved] + 64'(ev_tt_saved_i);
    end
  end

  // ----------------------------------------------------------------- reads
  logic        rvalid_q;
  logic [63:0] rdata_q;
  assign s_axil_arready_o = !rvalid_q;
  assign s_axil_rvalid_o = rvalid_q;
  assign s_axil_rdata_o = rdata_q;

  logic [19:0] rd_addr, rd_rel;
  assign rd_addr = {1'b0, s_axil_araddr_i[18:3], 3'b000};
  assign rd_rel = rd_addr - 20'(DbBase);
  assign dbs_queue_o = 7'(rd_rel >> DbStrideLog2);

  logic [31:0] status;
  always_comb begin
    status = '0;
    if (st_ready_i) status |= csrec_pkg::STATUS_READY;
    if (st_busy_i) status |= csrec_pkg::STATUS_BUSY;
    if (st_fatal_i) begin
      status |= csrec_pkg::STATUS_FATAL |
                32'(st_fatal_code_i) << csrec_pkg::STATUS_FATAL_SHIFT;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rvalid_q <= 1'b0;
    end else if (s_axil_arvalid_i && s_axil_arready_o) begin
      rvalid_q <= 1'b1;
    end else if (s_axil_rready_i) begin
      rvalid_q <= 1'b0;
    end
    if (s_axil_arvalid_i && s_axil_arready_o) begin
      rdata_q <= '0;
      case (rd_addr)
        csrec_pkg::REG_ID:
          rdata_q <= 64'(csrec_pkg::HW_MAJOR) << csrec_pkg::ID_MAJOR_SHIFT |
                     64'(csrec_pkg::HW_MINOR) << csrec_pkg::ID_MINOR_SHIFT |
                     64'(csrec_pkg::ID_MAGIC);
        csrec_pkg::REG_CAP_QUEUE:
          rdata_q <= 64'(NumIoQueues) << csrec_pkg::CAPQ_IOQ_SHIFT |
                     64'(MaxLog2Entries) << csrec_pkg::CAPQ_ENTRIES_SHIFT |
                     64'(DbStrideLog2) << csrec_pkg::CAPQ_STRIDE_SHIFT |
                     64'(NumVectors) << csrec_pkg::CAPQ_VECTORS_SHIFT |
                     64'(DbBase) << csrec_pkg::CAPQ_DB_SHIFT;
        csrec_pkg::REG_CAP_TABLE:
          rdata_q <= 64'(NumRegions) << csrec_pkg::CAPT_REGIONS_SHIFT |
                     64'(NumFences) << csrec_pkg::CAPT_FENCES_SHIFT;
        csrec_pkg::REG_CAP_DRAM: rdata_q <= dram_size_i;
        csrec_pkg::REG_CAP_ONCHIP: rdata_q <= 64'(OnchipBytes);
        csrec_pkg::REG_CAP_ENGINE:
          rdata_q <= 64'(Engines) | 64'(FpUnit) << csrec_pkg::CAPE_FP_SHIFT |
                     64'(NumMacs) << csrec_pkg::CAPE_MACS_SHIFT;
        csrec_pkg::REG_CAP_LIMIT:
          rdata_q <= 64'(MaxDim) << csrec_pkg::CAPL_DIM_SHIFT |
                     64'(MaxVecs) << csrec_pkg::CAPL_VECS_SHIFT |
                     64'(MaxRank) << csrec_pkg::CAPL_RANK_SHIFT |
                     64'(MaxWidth) << csrec_pkg::CAPL_WIDTH_SHIFT;
        csrec_pkg::REG_CTRL: rdata_q <= enable_q ? 64'(csrec_pkg::CTRL_ENABLE) : '0;
        csrec_pkg::REG_STATUS: rdata_q <= 64'(status);
        csrec_pkg::REG_ASQ_BASE: rdata_q <= asq_base_q;
        csrec_pkg::REG_ACQ_BASE: rdata_q <= acq_base_q;
        csrec_pkg::REG_AQ_SIZE: rdata_q <= 64'(aq_log2_q);
        default:
          if (rd_addr >= csrec_pkg::REG_CNT_CYCLES && rd_addr < csrec_pkg::REG_CNT_END) begin
            rdata_q <= cnt_q[($clog2(NumCnt))'((rd_addr - csrec_pkg::REG_CNT_CYCLES) >> 3)];
          end else if (rd_addr >= 20'(DbBase) &&
                       rd_rel[DbStrideLog2-1:0] == DbStrideLog2'(csrec_pkg::DB_STATE)) begin
            rdata_q <= dbs_value_i;
          end
      endcase
    end
  end

  logic unused;  // reads are whole registers; who asked for half of one takes its half
  assign unused = &{1'b0, s_axil_araddr_i[2:0]};

  assign busy_o = aw_full_q || w_full_q || bvalid_q || rvalid_q;

endmodule

`default_nettype wire
