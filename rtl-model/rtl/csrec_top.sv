// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// csrec: the device without its PCIe shell. Standard ports: AXI4-Lite slave for BAR 0
// (registers and doorbells), AXI4 masters to host memory (bus addresses) and to device
// DRAM (offsets), MSI-X requests (valid/ready/vector; whatever was written before is
// visible when the request is made). One clock, one reset, which may come at any time as
// long as the AXI partners are reset with it.
//
// busy_o is low when nothing can change without an access from outside.

`default_nettype none

module csrec_top #(
  parameter int unsigned NumIoQueues = 4,         // 1..64
  parameter int unsigned NumRegions = 256,        // power of two, 2..4096
  parameter int unsigned NumFences = 64,          // power of two, 2..4096
  parameter int unsigned NumVectors = NumIoQueues + 1,  // 1..255
  parameter int unsigned OnchipBytes = 1 << 20,   // power of two, from 4096
  parameter int unsigned MaxLog2Entries = 12,     // 1..12
  parameter int unsigned MaxDim = 256,            // multiple of 16, 16..1024
  parameter int unsigned MaxVecs = 64,            // 8..128
  parameter int unsigned MaxRank = 32,            // multiple of 8, 8..64
  parameter int unsigned MaxWidth = 4096,         // power of two, 32..32768
  parameter bit          EnEmb = 1'b1,
  parameter bit          EnTt = 1'b1,
  parameter bit          EnInt = 1'b1,
  parameter bit          EnMlp = 1'b1
) (
  input  wire logic         clk_i,
  input  wire logic         rst_ni,
  input  wire logic [63:0]  cfg_dram_size_i,  // bytes, constant
  input  wire logic [31:0]  cfg_first_count_i,  // where queues' counts begin; 0 but in tests
  output      logic         busy_o,
  output      logic         timer_o,     // a timer runs
  output      logic         progress_o,  // CNT_PROGRESS steps

  input  wire logic         s_axil_awvalid_i,
  output      logic         s_axil_awready_o,
  input  wire logic [18:0]  s_axil_awaddr_i,
  input  wire logic [2:0]   s_axil_awprot_i,
  input  wire logic         s_axil_wvalid_i,
  output      logic         s_axil_wready_o,
  input  wire logic [63:0]  s_axil_wdata_i,
  input  wire logic [7:0]   s_axil_wstrb_i,
  output      logic         s_axil_bvalid_o,
  input  wire logic         s_axil_bready_i,
  output      logic [1:0]   s_axil_bresp_o,
  input  wire logic         s_axil_arvalid_i,
  output      logic         s_axil_arready_o,
  input  wire logic [18:0]  s_axil_araddr_i,
  input  wire logic [2:0]   s_axil_arprot_i,
  output      logic         s_axil_rvalid_o,
  input  wire logic         s_axil_rready_i,
  output      logic [63:0]  s_axil_rdata_o,
  output      logic [1:0]   s_axil_rresp_o,

  output      logic [0:0]   m_axi_host_awid_o,
  output      logic [63:0]  m_axi_host_awaddr_o,
  output      logic [7:0]   m_axi_host_awlen_o,
  output      logic [2:0]   m_axi_host_awsize_o,
  output      logic [1:0]   m_axi_host_awburst_o,
  output      logic [3:0]   m_axi_host_awcache_o,
  output      logic [2:0]   m_axi_host_awprot_o,
  output      logic         m_axi_host_awvalid_o,
  input  wire logic         m_axi_host_awready_i,
  output      logic [511:0] m_axi_host_wdata_o,
  output      logic [63:0]  m_axi_host_wstrb_o,
  output      logic         m_axi_host_wlast_o,
  output      logic         m_axi_host_wvalid_o,
  input  wire logic         m_axi_host_wready_i,
  input  wire logic [0:0]   m_axi_host_bid_i,
  input  wire logic [1:0]   m_axi_host_bresp_i,
  input  wire logic         m_axi_host_bvalid_i,
  output      logic         m_axi_host_bready_o,
  output      logic [0:0]   m_axi_host_arid_o,
  output      logic [63:0]  m_axi_host_araddr_o,
  output      logic [7:0]   m_axi_host_arlen_o,
  output      logic [2:0]   m_axi_host_arsize_o,
  output      logic [1:0]   m_axi_host_arburst_o,
  output      logic [3:0]   m_axi_host_arcache_o,
  output      logic [2:0]   m_axi_host_arprot_o,
  output      logic         m_axi_host_arvalid_o,
  input  wire logic         m_axi_host_arready_i,
  input  wire logic [0:0]   m_axi_host_rid_i,
  input  wire logic [511:0] m_axi_host_rdata_i,
  input  wire logic [1:0]   m_axi_host_rresp_i,
  input  wire logic         m_axi_host_rlast_i,
  input  wire logic         m_axi_host_rvalid_i,
  output      logic         m_axi_host_rready_o,

  output      logic [0:0]   m_axi_dram_awid_o,
  output      logic [63:0]  m_axi_dram_awaddr_o,
  output      logic [7:0]   m_axi_dram_awlen_o,
  output      logic [2:0]   m_axi_dram_awsize_o,
  output      logic [1:0]   m_axi_dram_awburst_o,
  output      logic [3:0]   m_axi_dram_awcache_o,
  output      logic [2:0]   m_axi_dram_awprot_o,
  output      logic         m_axi_dram_awvalid_o,
  input  wire logic         m_axi_dram_awready_i,
  output      logic [511:0] m_axi_dram_wdata_o,
  output      logic [63:0]  m_axi_dram_wstrb_o,
  output      logic         m_axi_dram_wlast_o,
  output      logic         m_axi_dram_wvalid_o,
  input  wire logic         m_axi_dram_wready_i,
  input  wire logic [0:0]   m_axi_dram_bid_i,
  input  wire logic [1:0]   m_axi_dram_bresp_i,
  input  wire logic         m_axi_dram_bvalid_i,
  output      logic         m_axi_dram_bready_o,
  output      logic [0:0]   m_axi_dram_arid_o,
  output      logic [63:0]  m_axi_dram_araddr_o,
  output      logic [7:0]   m_axi_dram_arlen_o,
  output      logic [2:0]   m_axi_dram_arsize_o,
  output      logic [1:0]   m_axi_dram_arburst_o,
  output      logic [3:0]   m_axi_dram_arcache_o,
  output      logic [2:0]   m_axi_dram_arprot_o,
  output      logic         m_axi_dram_arvalid_o,
  input  wire logic         m_axi_dram_arready_i,
  input  wire logic [0:0]   m_axi_dram_rid_i,
  input  wire logic [511:0] m_axi_dram_rdata_i,
  input  wire logic [1:0]   m_axi_dram_rresp_i,
  input  wire logic         m_axi_dram_rlast_i,
  input  wire logic         m_axi_dram_rvalid_i,
  output      logic         m_axi_dram_rready_o,

  output      logic         msix_valid_o,
  input  wire logic         msix_ready_i,
  output      logic [15:0]  msix_vector_o
);

  // Mem clients: 0 copy, then two for each engine, its descriptor's first; then EMB's for
  // offsets, ids and weights, and for what it writes. Its rows want many requests at a time.
  localparam int unsigned NumClients = 11;
  localparam logic [NumClients-1:0] DeepClients = 11'b000_0000_0100;
  localparam logic [4:0] Engines = {EnMlp, EnInt, EnTt, EnEmb, 1'b1};
`ifdef CSREC_FP_DPI
  localparam logic [3:0] FpUnit = csrec_pkg::FP_DPI;
`else
  localparam logic [3:0] FpUnit = csrec_pkg::FP_RTL;
`endif
  localparam int unsigned NumMacs = 8 * (32'(EnEmb) + 32'(EnTt) + 32'(EnInt) + 32'(EnMlp));

  if (NumIoQueues < 1 || NumIoQueues > 64) begin : gen_bad_queues
    $error("NumIoQueues: 1..64");
  end
  if (NumRegions < 2 || NumRegions > 4096 || (NumRegions & (NumRegions - 1)) != 0)
  begin : gen_bad_regions
    $error("NumRegions: power of two, 2..4096");
  end
  if (NumFences < 2 || NumFences > 4096 || (NumFences & (NumFences - 1)) != 0)
  begin : gen_bad_fences
    $error("NumFences: power of two, 2..4096");
  end
  if (NumVectors < 1 || NumVectors > 255) begin : gen_bad_vectors
    $error("NumVectors: 1..255");
  end
  if (OnchipBytes < 4096 || (OnchipBytes & (OnchipBytes - 1)) != 0) begin : gen_bad_onchip
    $error("OnchipBytes: power of two, from 4096");
  end
  if (MaxLog2Entries < 1 || MaxLog2Entries > 12) begin : gen_bad_entries
    $error("MaxLog2Entries: 1..12");
  end
  if (MaxDim < 16 || MaxDim > 1024 || MaxDim % 16 != 0) begin : gen_bad_dim
    $error("MaxDim: multiple of 16, 16..1024");
  end
  if (MaxVecs < 8 || MaxVecs > 128) begin : gen_bad_vecs
    $error("MaxVecs: 8..128");
  end
  if (MaxRank < 8 || MaxRank > 64 || MaxRank % 8 != 0) begin : gen_bad_rank
    $error("MaxRank: multiple of 8, 8..64");
  end
  if (MaxWidth < 32 || MaxWidth > 32768 || (MaxWidth & (MaxWidth - 1)) != 0)
  begin : gen_bad_width
    $error("MaxWidth: power of two, 32..32768");
  end

  logic        enable, disable_req, db_valid, db_ok;
  logic [63:0] asq_base, acq_base, db_value;
  logic [3:0]  aq_log2;
  logic [6:0]  db_queue;
  logic        sched_ready, sched_busy, sched_waits, regs_busy, fatal;
  logic [6:0]  dbs_queue;
  logic [63:0] dbs_value;
  logic [7:0]  fatal_code;
  logic        ev_command, ev_error, ev_irq, ev_sched, ev_mmu;
  logic [4:0]  unit_busy;
  logic        emb_row, tt_row, tt_step, int_step, mlp_step;
  logic [31:0] tt_saved;
  logic [12:0] ev_host_rd, ev_host_wr, ev_dram_rd, ev_dram_wr;

  logic [4:0]   start_valid, start_ready, abort_req, u_done_valid, u_done_ready;
  logic [511:0] start_cmd;
  logic [15:0]  start_domain;
  logic [39:0]  u_done_status;
  logic [79:0]  u_done_field;
  logic [319:0] u_done_detail;

  logic         raw_valid, raw_ready, raw_write, raw_rsp_valid, raw_rsp_err;
  logic [63:0]  raw_addr;
  logic [127:0] raw_wdata;
  logic [511:0] raw_rdata;
  logic         tbl_valid, tbl_ready, tbl_rsp_valid, tbl_rsp_used;
  logic [1:0]   tbl_op, tbl_kind, tbl_rights, tbl_levels;
  logic [15:0]  tbl_index, tbl_gen, tbl_domain, tbl_rsp_gen;
  logic [63:0]  tbl_base, tbl_size;
  logic [4:0]   tbl_shift;
  logic [31:0]  tbl_page_off;

  logic [NumClients-1:0]     req_valid, req_ready, req_onchip, rd_valid, rd_ready;
  logic [NumClients-1:0]     wr_valid, wr_ready, rsp_valid;
  logic [NumClients*2-1:0]   req_op;
  logic [NumClients*32-1:0]  req_key;
  logic [NumClients*64-1:0]  req_off, req_len;
  logic [NumClients*16-1:0]  req_domain;
  logic [NumClients*512-1:0] wr_data;
  logic [511:0]              rd_data;
  logic                      rd_last;
  logic [7:0]                rsp_status;

  assign progress_o = ev_sched || ev_mmu || emb_row || tt_step || int_step || mlp_step;
  assign busy_o = sched_busy || sched_waits || regs_busy;

  csrec_regs #(
    .NumIoQueues(NumIoQueues),
    .NumRegions(NumRegions),
    .NumFences(NumFences),
    .NumVectors(NumVectors),
    .OnchipBytes(OnchipBytes),
    .MaxLog2Entries(MaxLog2Entries),
    .MaxDim(MaxDim),
    .MaxVecs(MaxVecs),
    .MaxRank(MaxRank),
    .MaxWidth(MaxWidth),
    .NumMacs(NumMacs),
    .Engines(Engines),
    .FpUnit(FpUnit)
  ) u_regs (
    .clk_i,
    .rst_ni,
    .dram_size_i(cfg_dram_size_i),
    .s_axil_awvalid_i,
    .s_axil_awready_o,
    .s_axil_awaddr_i,
    .s_axil_wvalid_i,
    .s_axil_wready_o,
    .s_axil_wdata_i,
    .s_axil_wstrb_i,
    .s_axil_bvalid_o,
    .s_axil_bready_i,
    .s_axil_arvalid_i,
    .s_axil_arready_o,
    .s_axil_araddr_i,
    .s_axil_rvalid_o,
    .s_axil_rready_i,
    .s_axil_rdata_o,
    .busy_o(regs_busy),
    .enable_o(enable),
    .disable_o(disable_req),
    .asq_base_o(asq_base),
    .acq_base_o(acq_base),
    .aq_log2_o(aq_log2),
    .db_valid_o(db_valid),
    .db_queue_o(db_queue),
    .db_value_o(db_value),
    .db_ok_i(db_ok),
    .dbs_queue_o(dbs_queue),
    .dbs_value_i(dbs_value),
    .st_ready_i(sched_ready),
    .st_busy_i(sched_busy),
    .st_fatal_i(fatal),
    .st_fatal_code_i(fatal_code),
    .ev_progress_i(progress_o),
    .ev_command_i(ev_command),
    .ev_error_i(ev_error),
    .ev_irq_i(ev_irq),
    .ev_busy_i(sched_busy),
    .ev_unit_busy_i(unit_busy),
    .ev_emb_row_i(emb_row),
    .ev_tt_row_i(tt_row),
    .ev_tt_saved_i(tt_saved),
    .ev_host_rd_i(ev_host_rd),
    .ev_host_wr_i(ev_host_wr),
    .ev_dram_rd_i(ev_dram_rd),
    .ev_dram_wr_i(ev_dram_wr)
  );
  assign s_axil_bresp_o = 2'b00;
  assign s_axil_rresp_o = 2'b00;

  csrec_sched #(
    .NumIoQueues(NumIoQueues),
    .NumRegions(NumRegions),
    .NumFences(NumFences),
    .NumVectors(NumVectors),
    .OnchipBytes(OnchipBytes),
    .MaxLog2Entries(MaxLog2Entries),
    .Engines(Engines)
  ) u_sched (
    .clk_i,
    .rst_ni,
    .dram_size_i(cfg_dram_size_i),
    .first_count_i(cfg_first_count_i),
    .enable_i(enable),
    .disable_i(disable_req),
    .asq_base_i(asq_base),
    .acq_base_i(acq_base),
    .aq_log2_i(aq_log2),
    .db_valid_i(db_valid),
    .db_queue_i(db_queue),
    .db_value_i(db_value),
    .db_ok_o(db_ok),
    .dbs_queue_i(dbs_queue),
    .dbs_value_o(dbs_value),
    .ready_o(sched_ready),
    .busy_o(sched_busy),
    .waits_o(sched_waits),
    .timer_o,
    .fatal_o(fatal),
    .fatal_code_o(fatal_code),
    .ev_command_o(ev_command),
    .ev_error_o(ev_error),
    .ev_irq_o(ev_irq),
    .ev_progress_o(ev_sched),
    .ev_unit_busy_o(unit_busy),
    .msix_valid_o,
    .msix_ready_i,
    .msix_vector_o,
    .start_valid_o(start_valid),
    .start_ready_i(start_ready),
    .start_cmd_o(start_cmd),
    .start_domain_o(start_domain),
    .abort_o(abort_req),
    .done_valid_i(u_done_valid),
    .done_ready_o(u_done_ready),
    .done_status_i(u_done_status),
    .done_field_i(u_done_field),
    .done_detail_i(u_done_detail),
    .raw_valid_o(raw_valid),
    .raw_ready_i(raw_ready),
    .raw_write_o(raw_write),
    .raw_addr_o(raw_addr),
    .raw_wdata_o(raw_wdata),
    .raw_rsp_valid_i(raw_rsp_valid),
    .raw_rsp_err_i(raw_rsp_err),
    .raw_rdata_i(raw_rdata),
    .tbl_valid_o(tbl_valid),
    .tbl_ready_i(tbl_ready),
    .tbl_op_o(tbl_op),
    .tbl_index_o(tbl_index),
    .tbl_gen_o(tbl_gen),
    .tbl_kind_o(tbl_kind),
    .tbl_rights_o(tbl_rights),
    .tbl_domain_o(tbl_domain),
    .tbl_base_o(tbl_base),
    .tbl_size_o(tbl_size),
    .tbl_levels_o(tbl_levels),
    .tbl_shift_o(tbl_shift),
    .tbl_page_off_o(tbl_page_off),
    .tbl_rsp_valid_i(tbl_rsp_valid),
    .tbl_rsp_used_i(tbl_rsp_used),
    .tbl_rsp_gen_i(tbl_rsp_gen)
  );

  csrec_mmu #(
    .NumClients(NumClients),
    .Deep(DeepClients),
    .NumRegions(NumRegions),
    .OnchipBytes(OnchipBytes)
  ) u_mmu (
    .clk_i,
    .rst_ni,
    .req_valid_i(req_valid),
    .req_ready_o(req_ready),
    .req_op_i(req_op),
    .req_onchip_i(req_onchip),
    .req_key_i(req_key),
    .req_off_i(req_off),
    .req_len_i(req_len),
    .req_domain_i(req_domain),
    .rd_valid_o(rd_valid),
    .rd_ready_i(rd_ready),
    .rd_data_o(rd_data),
    .rd_last_o(rd_last),
    .wr_valid_i(wr_valid),
    .wr_ready_o(wr_ready),
    .wr_data_i(wr_data),
    .rsp_valid_o(rsp_valid),
    .rsp_status_o(rsp_status),
    .raw_valid_i(raw_valid),
    .raw_ready_o(raw_ready),
    .raw_write_i(raw_write),
    .raw_addr_i(raw_addr),
    .raw_wdata_i(raw_wdata),
    .raw_rsp_valid_o(raw_rsp_valid),
    .raw_rsp_err_o(raw_rsp_err),
    .raw_rdata_o(raw_rdata),
    .tbl_valid_i(tbl_valid),
    .tbl_ready_o(tbl_ready),
    .tbl_op_i(tbl_op),
    .tbl_index_i(tbl_index),
    .tbl_gen_i(tbl_gen),
    .tbl_kind_i(tbl_kind),
    .tbl_rights_i(tbl_rights),
    .tbl_domain_i(tbl_domain),
    .tbl_base_i(tbl_base),
    .tbl_size_i(tbl_size),
    .tbl_levels_i(tbl_levels),
    .tbl_shift_i(tbl_shift),
    .tbl_page_off_i(tbl_page_off),
    .tbl_rsp_valid_o(tbl_rsp_valid),
    .tbl_rsp_used_o(tbl_rsp_used),
    .tbl_rsp_gen_o(tbl_rsp_gen),
    .host_awaddr_o(m_axi_host_awaddr_o),
    .host_awlen_o(m_axi_host_awlen_o),
    .host_awvalid_o(m_axi_host_awvalid_o),
    .host_awready_i(m_axi_host_awready_i),
    .host_wdata_o(m_axi_host_wdata_o),
    .host_wstrb_o(m_axi_host_wstrb_o),
    .host_wlast_o(m_axi_host_wlast_o),
    .host_wvalid_o(m_axi_host_wvalid_o),
    .host_wready_i(m_axi_host_wready_i),
    .host_bresp_i(m_axi_host_bresp_i),
    .host_bvalid_i(m_axi_host_bvalid_i),
    .host_bready_o(m_axi_host_bready_o),
    .host_araddr_o(m_axi_host_araddr_o),
    .host_arlen_o(m_axi_host_arlen_o),
    .host_arsize_o(m_axi_host_arsize_o),
    .host_arvalid_o(m_axi_host_arvalid_o),
    .host_arready_i(m_axi_host_arready_i),
    .host_rdata_i(m_axi_host_rdata_i),
    .host_rresp_i(m_axi_host_rresp_i),
    .host_rlast_i(m_axi_host_rlast_i),
    .host_rvalid_i(m_axi_host_rvalid_i),
    .host_rready_o(m_axi_host_rready_o),
    .dram_awaddr_o(m_axi_dram_awaddr_o),
    .dram_awlen_o(m_axi_dram_awlen_o),
    .dram_awvalid_o(m_axi_dram_awvalid_o),
    .dram_awready_i(m_axi_dram_awready_i),
    .dram_wdata_o(m_axi_dram_wdata_o),
    .dram_wstrb_o(m_axi_dram_wstrb_o),
    .dram_wlast_o(m_axi_dram_wlast_o),
    .dram_wvalid_o(m_axi_dram_wvalid_o),
    .dram_wready_i(m_axi_dram_wready_i),
    .dram_bresp_i(m_axi_dram_bresp_i),
    .dram_bvalid_i(m_axi_dram_bvalid_i),
    .dram_bready_o(m_axi_dram_bready_o),
    .dram_araddr_o(m_axi_dram_araddr_o),
    .dram_arlen_o(m_axi_dram_arlen_o),
    .dram_arvalid_o(m_axi_dram_arvalid_o),
    .dram_arready_i(m_axi_dram_arready_i),
    .dram_rdata_i(m_axi_dram_rdata_i),
    .dram_rresp_i(m_axi_dram_rresp_i),
    .dram_rlast_i(m_axi_dram_rlast_i),
    .dram_rvalid_i(m_axi_dram_rvalid_i),
    .dram_rready_o(m_axi_dram_rready_o),
    .ev_host_rd_o(ev_host_rd),
    .ev_host_wr_o(ev_host_wr),
    .ev_dram_rd_o(ev_dram_rd),
    .ev_dram_wr_o(ev_dram_wr),
    .ev_progress_o(ev_mmu)
  );

  // What is the same for every host burst: INCR, 64-byte beats, normal memory, one ID.
  assign m_axi_host_awid_o = '0;
  assign m_axi_host_awsize_o = 3'd6;
  assign m_axi_host_awburst_o = 2'b01;
  assign m_axi_host_awcache_o = 4'b0011;
  assign m_axi_host_awprot_o = 3'b000;
  assign m_axi_host_arid_o = '0;
  assign m_axi_host_arburst_o = 2'b01;
  assign m_axi_host_arcache_o = 4'b0011;
  assign m_axi_host_arprot_o = 3'b000;

  // What is the same for every dram burst: INCR, 64-byte beats, normal memory, one ID.
  assign m_axi_dram_awid_o = '0;
  assign m_axi_dram_awsize_o = 3'd6;
  assign m_axi_dram_awburst_o = 2'b01;
  assign m_axi_dram_awcache_o = 4'b0011;
  assign m_axi_dram_awprot_o = 3'b000;
  assign m_axi_dram_arid_o = '0;
  assign m_axi_dram_arburst_o = 2'b01;
  assign m_axi_dram_arcache_o = 4'b0011;
  assign m_axi_dram_arprot_o = 3'b000;
  assign m_axi_dram_arsize_o = 3'd6;

  // copy: unit 0, client 0
  csrec_copy u_copy (
    .clk_i,
    .rst_ni,
    .start_valid_i (start_valid[0]),
    .start_ready_o (start_ready[0]),
    .start_cmd_i   (start_cmd),
    .start_domain_i(start_domain),
    .abort_i       (abort_req[0]),
    .done_valid_o  (u_done_valid[0]),
    .done_ready_i  (u_done_ready[0]),
    .done_status_o (u_done_status[7:0]),
    .done_field_o  (u_done_field[15:0]),
    .done_detail_o (u_done_detail[63:0]),
    .req_valid_o   (req_valid[0]),
    .req_ready_i   (req_ready[0]),
    .req_op_o      (req_op[1:0]),
    .req_key_o     (req_key[31:0]),
    .req_off_o     (req_off[63:0]),
    .req_len_o     (req_len[63:0]),
    .req_domain_o  (req_domain[15:0]),
    .rd_valid_i    (rd_valid[0]),
    .rd_ready_o    (rd_ready[0]),
    .rd_data_i     (rd_data),
    .wr_valid_o    (wr_valid[0]),
    .wr_ready_i    (wr_ready[0]),
    .wr_data_o     (wr_data[511:0]),
    .rsp_valid_i   (rsp_valid[0]),
    .rsp_status_i  (rsp_status)
  );
  assign req_onchip[0] = 1'b0;

  // emb: unit 1, clients 1 (descriptor) and 2
  if (EnEmb) begin : gen_emb
    logic          desc_valid, desc_ready, abort, done_valid, done_ready;
    logic [1535:0] desc;
    logic [15:0]   desc_domain, done_field, emb_domain;
    logic [7:0]    done_status;
    logic [63:0]   done_detail;

    csrec_desc #(
      .DescBytes(csrec_pkg::EMB_DESC_BYTES)
    ) u_desc (
      .clk_i,
      .rst_ni,
      .start_valid_i    (start_valid[1]),
      .start_ready_o    (start_ready[1]),
      .start_cmd_i      (start_cmd),
      .start_domain_i   (start_domain),
      .abort_i          (abort_req[1]),
      .done_valid_o     (u_done_valid[1]),
      .done_ready_i     (u_done_ready[1]),
      .done_status_o    (u_done_status[8*1+:8]),
      .done_field_o     (u_done_field[16*1+:16]),
      .done_detail_o    (u_done_detail[64*1+:64]),
      .desc_valid_o     (desc_valid),
      .desc_ready_i     (desc_ready),
      .desc_o           (desc),
      .desc_domain_o    (desc_domain),
      .eng_abort_o      (abort),
      .eng_done_valid_i (done_valid),
      .eng_done_ready_o (done_ready),
      .eng_done_status_i(done_status),
      .eng_done_field_i (done_field),
      .eng_done_detail_i(done_detail),
      .req_valid_o      (req_valid[1]),
      .req_ready_i      (req_ready[1]),
      .req_key_o        (req_key[32*1+:32]),
      .req_off_o        (req_off[64*1+:64]),
      .req_len_o        (req_len[64*1+:64]),
      .req_domain_o     (req_domain[16*1+:16]),
      .rd_valid_i       (rd_valid[1]),
      .rd_ready_o       (rd_ready[1]),
      .rd_data_i        (rd_data),
      .rsp_valid_i      (rsp_valid[1]),
      .rsp_status_i     (rsp_status)
    );
    assign req_op[2*1+:2] = csrec_pkg::MEM_READ;
    assign req_onchip[1] = 1'b0;
    assign wr_valid[1] = 1'b0;
    assign wr_data[512*1+:512] = '0;

    csrec_emb #(
      .MaxDim(MaxDim)
    ) u_emb (
      .clk_i,
      .rst_ni,
      .desc_valid_i   (desc_valid),
      .desc_ready_o   (desc_ready),
      .desc_i         (desc),
      .desc_domain_i  (desc_domain),
      .abort_i        (abort),
      .done_valid_o   (done_valid),
      .done_ready_i   (done_ready),
      .done_status_o  (done_status),
      .done_field_o   (done_field),
      .done_detail_o  (done_detail),
      .req_domain_o   (emb_domain),
      .rd_data_i      (rd_data),
      .rsp_status_i   (rsp_status),
      .row_req_valid_o(req_valid[2]),
      .row_req_ready_i(req_ready[2]),
      .row_req_op_o   (req_op[2*2+:2]),
      .row_req_key_o  (req_key[32*2+:32]),
      .row_req_off_o  (req_off[64*2+:64]),
      .row_req_len_o  (req_len[64*2+:64]),
      .row_rd_valid_i (rd_valid[2]),
      .row_rd_ready_o (rd_ready[2]),
      .row_rd_last_i  (rd_last),
      .row_rsp_valid_i(rsp_valid[2]),
      .idx_req_valid_o(req_valid[9]),
      .idx_req_ready_i(req_ready[9]),
      .idx_req_op_o   (req_op[2*9+:2]),
      .idx_req_key_o  (req_key[32*9+:32]),
      .idx_req_off_o  (req_off[64*9+:64]),
      .idx_req_len_o  (req_len[64*9+:64]),
      .idx_rd_valid_i (rd_valid[9]),
      .idx_rd_ready_o (rd_ready[9]),
      .idx_rd_last_i  (rd_last),
      .idx_rsp_valid_i(rsp_valid[9]),
      .out_req_valid_o(req_valid[10]),
      .out_req_ready_i(req_ready[10]),
      .out_req_op_o   (req_op[2*10+:2]),
      .out_req_key_o  (req_key[32*10+:32]),
      .out_req_off_o  (req_off[64*10+:64]),
      .out_req_len_o  (req_len[64*10+:64]),
      .out_wr_valid_o (wr_valid[10]),
      .out_wr_ready_i (wr_ready[10]),
      .out_wr_data_o  (wr_data[512*10+:512]),
      .out_rsp_valid_i(rsp_valid[10]),
      .rows_o         (emb_row)
    );
    assign req_onchip[2] = 1'b0;
    assign wr_valid[2] = 1'b0;
    assign wr_data[512*2+:512] = '0;
    assign req_domain[16*2+:16] = emb_domain;
    assign req_onchip[10:9] = '0;
    assign req_domain[16*9+:32] = {2{emb_domain}};
    assign wr_valid[9] = 1'b0;
    assign wr_data[512*9+:512] = '0;
    assign rd_ready[10] = 1'b0;
  end else begin : gen_no_emb
    assign start_ready[1] = 1'b0;
    assign u_done_valid[1] = 1'b0;
    assign u_done_status[8*1+:8] = '0;
    assign u_done_field[16*1+:16] = '0;
    assign u_done_detail[64*1+:64] = '0;
    assign req_valid[2:1] = '0;
    assign req_op[2*1+:4] = '0;
    assign req_onchip[2:1] = '0;
    assign req_key[32*1+:64] = '0;
    assign req_off[64*1+:128] = '0;
    assign req_len[64*1+:128] = '0;
    assign req_domain[16*1+:32] = '0;
    assign rd_ready[2:1] = '0;
    assign wr_valid[2:1] = '0;
    assign wr_data[512*1+:1024] = '0;
    assign req_valid[10:9] = '0;
    assign req_op[2*9+:4] = '0;
    assign req_onchip[10:9] = '0;
    assign req_key[32*9+:64] = '0;
    assign req_off[64*9+:128] = '0;
    assign req_len[64*9+:128] = '0;
    assign req_domain[16*9+:32] = '0;
    assign rd_ready[10:9] = '0;
    assign wr_valid[10:9] = '0;
    assign wr_data[512*9+:1024] = '0;
    assign emb_row = 1'b0;
  end

  // tt: unit 2, clients 3 (descriptor) and 4
  if (EnTt) begin : gen_tt
    logic          desc_valid, desc_ready, abort, done_valid, done_ready;
    logic [1535:0] desc;
    logic [15:0]   desc_domain, done_field;
    logic [7:0]    done_status;
    logic [63:0]   done_detail;

    csrec_desc #(
      .DescBytes(csrec_pkg::TT_DESC_BYTES)
    ) u_desc (
      .clk_i,
      .rst_ni,
      .start_valid_i    (start_valid[2]),
      .start_ready_o    (start_ready[2]),
      .start_cmd_i      (start_cmd),
      .start_domain_i   (start_domain),
      .abort_i          (abort_req[2]),
      .done_valid_o     (u_done_valid[2]),
      .done_ready_i     (u_done_ready[2]),
      .done_status_o    (u_done_status[8*2+:8]),
      .done_field_o     (u_done_field[16*2+:16]),
      .done_detail_o    (u_done_detail[64*2+:64]),
      .desc_valid_o     (desc_valid),
      .desc_ready_i     (desc_ready),
      .desc_o           (desc),
      .desc_domain_o    (desc_domain),
      .eng_abort_o      (abort),
      .eng_done_valid_i (done_valid),
      .eng_done_ready_o (done_ready),
      .eng_done_status_i(done_status),
      .eng_done_field_i (done_field),
      .eng_done_detail_i(done_detail),
      .req_valid_o      (req_valid[3]),
      .req_ready_i      (req_ready[3]),
      .req_key_o        (req_key[32*3+:32]),
      .req_off_o        (req_off[64*3+:64]),
      .req_len_o        (req_len[64*3+:64]),
      .req_domain_o     (req_domain[16*3+:16]),
      .rd_valid_i       (rd_valid[3]),
      .rd_ready_o       (rd_ready[3]),
      .rd_data_i        (rd_data),
      .rsp_valid_i      (rsp_valid[3]),
      .rsp_status_i     (rsp_status)
    );
    assign req_op[2*3+:2] = csrec_pkg::MEM_READ;
    assign req_onchip[3] = 1'b0;
    assign wr_valid[3] = 1'b0;
    assign wr_data[512*3+:512] = '0;

    csrec_tt #(
      .MaxDim(MaxDim),
      .MaxRank(MaxRank)
    ) u_tt (
      .clk_i,
      .rst_ni,
      .desc_valid_i (desc_valid),
      .desc_ready_o (desc_ready),
      .desc_i       (desc),
      .desc_domain_i(desc_domain),
      .abort_i      (abort),
      .done_valid_o (done_valid),
      .done_ready_i (done_ready),
      .done_status_o(done_status),
      .done_field_o (done_field),
      .done_detail_o(done_detail),
      .req_valid_o  (req_valid[4]),
      .req_ready_i  (req_ready[4]),
      .req_op_o     (req_op[2*4+:2]),
      .req_onchip_o (req_onchip[4]),
      .req_key_o    (req_key[32*4+:32]),
      .req_off_o    (req_off[64*4+:64]),
      .req_len_o    (req_len[64*4+:64]),
      .req_domain_o (req_domain[16*4+:16]),
      .rd_valid_i   (rd_valid[4]),
      .rd_ready_o   (rd_ready[4]),
      .rd_data_i    (rd_data),
      .rd_last_i    (rd_last),
      .wr_valid_o   (wr_valid[4]),
      .wr_ready_i   (wr_ready[4]),
      .wr_data_o    (wr_data[512*4+:512]),
      .rsp_valid_i  (rsp_valid[4]),
      .rsp_status_i (rsp_status),
      .rows_o       (tt_row),
      .saved_o      (tt_saved),
      .step_o       (tt_step)
    );
  end else begin : gen_no_tt
    assign start_ready[2] = 1'b0;
    assign u_done_valid[2] = 1'b0;
    assign u_done_status[8*2+:8] = '0;
    assign u_done_field[16*2+:16] = '0;
    assign u_done_detail[64*2+:64] = '0;
    assign req_valid[4:3] = '0;
    assign req_op[2*3+:4] = '0;
    assign req_onchip[4:3] = '0;
    assign req_key[32*3+:64] = '0;
    assign req_off[64*3+:128] = '0;
    assign req_len[64*3+:128] = '0;
    assign req_domain[16*3+:32] = '0;
    assign rd_ready[4:3] = '0;
    assign wr_valid[4:3] = '0;
    assign wr_data[512*3+:1024] = '0;
    assign tt_row = 1'b0;
    assign tt_saved = '0;
    assign tt_step = 1'b0;
  end

  // interact: unit 3, clients 5 (descriptor) and 6
  if (EnInt) begin : gen_interact
    logic          desc_valid, desc_ready, abort, done_valid, done_ready;
    logic [1535:0] desc;
    logic [15:0]   desc_domain, done_field;
    logic [7:0]    done_status;
    logic [63:0]   done_detail;

    csrec_desc #(
      .DescBytes(csrec_pkg::INTERACT_DESC_BYTES)
    ) u_desc (
      .clk_i,
      .rst_ni,
      .start_valid_i    (start_valid[3]),
      .start_ready_o    (start_ready[3]),
      .start_cmd_i      (start_cmd),
      .start_domain_i   (start_domain),
      .abort_i          (abort_req[3]),
      .done_valid_o     (u_done_valid[3]),
      .done_ready_i     (u_done_ready[3]),
      .done_status_o    (u_done_status[8*3+:8]),
      .done_field_o     (u_done_field[16*3+:16]),
      .done_detail_o    (u_done_detail[64*3+:64]),
      .desc_valid_o     (desc_valid),
      .desc_ready_i     (desc_ready),
      .desc_o           (desc),
      .desc_domain_o    (desc_domain),
      .eng_abort_o      (abort),
      .eng_done_valid_i (done_valid),
      .eng_done_ready_o (done_ready),
      .eng_done_status_i(done_status),
      .eng_done_field_i (done_field),
      .eng_done_detail_i(done_detail),
      .req_valid_o      (req_valid[5]),
      .req_ready_i      (req_ready[5]),
      .req_key_o        (req_key[32*5+:32]),
      .req_off_o        (req_off[64*5+:64]),
      .req_len_o        (req_len[64*5+:64]),
      .req_domain_o     (req_domain[16*5+:16]),
      .rd_valid_i       (rd_valid[5]),
      .rd_ready_o       (rd_ready[5]),
      .rd_data_i        (rd_data),
      .rsp_valid_i      (rsp_valid[5]),
      .rsp_status_i     (rsp_status)
    );
    assign req_op[2*5+:2] = csrec_pkg::MEM_READ;
    assign req_onchip[5] = 1'b0;
    assign wr_valid[5] = 1'b0;
    assign wr_data[512*5+:512] = '0;

    csrec_interact #(
      .MaxDim(MaxDim),
      .MaxVecs(MaxVecs)
    ) u_interact (
      .clk_i,
      .rst_ni,
      .desc_valid_i (desc_valid),
      .desc_ready_o (desc_ready),
      .desc_i       (desc),
      .desc_domain_i(desc_domain),
      .abort_i      (abort),
      .done_valid_o (done_valid),
      .done_ready_i (done_ready),
      .done_status_o(done_status),
      .done_field_o (done_field),
      .done_detail_o(done_detail),
      .req_valid_o  (req_valid[6]),
      .req_ready_i  (req_ready[6]),
      .req_op_o     (req_op[2*6+:2]),
      .req_onchip_o (req_onchip[6]),
      .req_key_o    (req_key[32*6+:32]),
      .req_off_o    (req_off[64*6+:64]),
      .req_len_o    (req_len[64*6+:64]),
      .req_domain_o (req_domain[16*6+:16]),
      .rd_valid_i   (rd_valid[6]),
      .rd_ready_o   (rd_ready[6]),
      .rd_data_i    (rd_data),
      .rd_last_i    (rd_last),
      .wr_valid_o   (wr_valid[6]),
      .wr_ready_i   (wr_ready[6]),
      .wr_data_o    (wr_data[512*6+:512]),
      .rsp_valid_i  (rsp_valid[6]),
      .rsp_status_i (rsp_status),
      .step_o       (int_step)
    );
  end else begin : gen_no_interact
    assign start_ready[3] = 1'b0;
    assign u_done_valid[3] = 1'b0;
    assign u_done_status[8*3+:8] = '0;
    assign u_done_field[16*3+:16] = '0;
    assign u_done_detail[64*3+:64] = '0;
    assign req_valid[6:5] = '0;
    assign req_op[2*5+:4] = '0;
    assign req_onchip[6:5] = '0;
    assign req_key[32*5+:64] = '0;
    assign req_off[64*5+:128] = '0;
    assign req_len[64*5+:128] = '0;
    assign req_domain[16*5+:32] = '0;
    assign rd_ready[6:5] = '0;
    assign wr_valid[6:5] = '0;
    assign wr_data[512*5+:1024] = '0;
    assign int_step = 1'b0;
  end

  // mlp: unit 4, clients 7 (descriptor) and 8
  if (EnMlp) begin : gen_mlp
    logic          desc_valid, desc_ready, abort, done_valid, done_ready;
    logic [1535:0] desc;
    logic [15:0]   desc_domain, done_field;
    logic [7:0]    done_status;
    logic [63:0]   done_detail;

    csrec_desc #(
      .DescBytes(csrec_pkg::MLP_DESC_BYTES)
    ) u_desc (
      .clk_i,
      .rst_ni,
      .start_valid_i    (start_valid[4]),
      .start_ready_o    (start_ready[4]),
      .start_cmd_i      (start_cmd),
      .start_domain_i   (start_domain),
      .abort_i          (abort_req[4]),
      .done_valid_o     (u_done_valid[4]),
      .done_ready_i     (u_done_ready[4]),
      .done_status_o    (u_done_status[8*4+:8]),
      .done_field_o     (u_done_field[16*4+:16]),
      .done_detail_o    (u_done_detail[64*4+:64]),
      .desc_valid_o     (desc_valid),
      .desc_ready_i     (desc_ready),
      .desc_o           (desc),
      .desc_domain_o    (desc_domain),
      .eng_abort_o      (abort),
      .eng_done_valid_i (done_valid),
      .eng_done_ready_o (done_ready),
      .eng_done_status_i(done_status),
      .eng_done_field_i (done_field),
      .eng_done_detail_i(done_detail),
      .req_valid_o      (req_valid[7]),
      .req_ready_i      (req_ready[7]),
      .req_key_o        (req_key[32*7+:32]),
      .req_off_o        (req_off[64*7+:64]),
      .req_len_o        (req_len[64*7+:64]),
      .req_domain_o     (req_domain[16*7+:16]),
      .rd_valid_i       (rd_valid[7]),
      .rd_ready_o       (rd_ready[7]),
      .rd_data_i        (rd_data),
      .rsp_valid_i      (rsp_valid[7]),
      .rsp_status_i     (rsp_status)
    );
    assign req_op[2*7+:2] = csrec_pkg::MEM_READ;
    assign req_onchip[7] = 1'b0;
    assign wr_valid[7] = 1'b0;
    assign wr_data[512*7+:512] = '0;

    csrec_mlp #(
      .MaxWidth(MaxWidth)
    ) u_mlp (
      .clk_i,
      .rst_ni,
      .desc_valid_i (desc_valid),
      .desc_ready_o (desc_ready),
      .desc_i       (desc),
      .desc_domain_i(desc_domain),
      .abort_i      (abort),
      .done_valid_o (done_valid),
      .done_ready_i (done_ready),
      .done_status_o(done_status),
      .done_field_o (done_field),
      .done_detail_o(done_detail),
      .req_valid_o  (req_valid[8]),
      .req_ready_i  (req_ready[8]),
      .req_op_o     (req_op[2*8+:2]),
      .req_onchip_o (req_onchip[8]),
      .req_key_o    (req_key[32*8+:32]),
      .req_off_o    (req_off[64*8+:64]),
      .req_len_o    (req_len[64*8+:64]),
      .req_domain_o (req_domain[16*8+:16]),
      .rd_valid_i   (rd_valid[8]),
      .rd_ready_o   (rd_ready[8]),
      .rd_data_i    (rd_data),
      .rd_last_i    (rd_last),
      .wr_valid_o   (wr_valid[8]),
      .wr_ready_i   (wr_ready[8]),
      .wr_data_o    (wr_data[512*8+:512]),
      .rsp_valid_i  (rsp_valid[8]),
      .rsp_status_i (rsp_status),
      .step_o       (mlp_step)
    );
  end else begin : gen_no_mlp
    assign start_ready[4] = 1'b0;
    assign u_done_valid[4] = 1'b0;
    assign u_done_status[8*4+:8] = '0;
    assign u_done_field[16*4+:16] = '0;
    assign u_done_detail[64*4+:64] = '0;
    assign req_valid[8:7] = '0;
    assign req_op[2*7+:4] = '0;
    assign req_onchip[8:7] = '0;
    assign req_key[32*7+:64] = '0;
    assign req_off[64*7+:128] = '0;
    assign req_len[64*7+:128] = '0;
    assign req_domain[16*7+:32] = '0;
    assign rd_ready[8:7] = '0;
    assign wr_valid[8:7] = '0;
    assign wr_data[512*7+:1024] = '0;
    assign mlp_step = 1'b0;
  end

  // -------------------------------------------------------------- assertions
  csrec_axi_check u_chk_host (
    .clk_i,
    .rst_ni,
    .awid_i    (m_axi_host_awid_o),
    .awaddr_i  (m_axi_host_awaddr_o),
    .awlen_i   (m_axi_host_awlen_o),
    .awsize_i  (m_axi_host_awsize_o),
    .awburst_i (m_axi_host_awburst_o),
    .awvalid_i (m_axi_host_awvalid_o),
    .awready_i (m_axi_host_awready_i),
    .wdata_i   (m_axi_host_wdata_o),
    .wstrb_i   (m_axi_host_wstrb_o),
    .wlast_i   (m_axi_host_wlast_o),
    .wvalid_i  (m_axi_host_wvalid_o),
    .wready_i  (m_axi_host_wready_i),
    .bid_i     (m_axi_host_bid_i),
    .bresp_i   (m_axi_host_bresp_i),
    .bvalid_i  (m_axi_host_bvalid_i),
    .bready_i  (m_axi_host_bready_o),
    .arid_i    (m_axi_host_arid_o),
    .araddr_i  (m_axi_host_araddr_o),
    .arlen_i   (m_axi_host_arlen_o),
    .arsize_i  (m_axi_host_arsize_o),
    .arburst_i (m_axi_host_arburst_o),
    .arvalid_i (m_axi_host_arvalid_o),
    .arready_i (m_axi_host_arready_i),
    .rid_i     (m_axi_host_rid_i),
    .rdata_i   (m_axi_host_rdata_i),
    .rresp_i   (m_axi_host_rresp_i),
    .rlast_i   (m_axi_host_rlast_i),
    .rvalid_i  (m_axi_host_rvalid_i),
    .rready_i  (m_axi_host_rready_o)
  );
  csrec_axi_check u_chk_dram (
    .clk_i,
    .rst_ni,
    .awid_i    (m_axi_dram_awid_o),
    .awaddr_i  (m_axi_dram_awaddr_o),
    .awlen_i   (m_axi_dram_awlen_o),
    .awsize_i  (m_axi_dram_awsize_o),
    .awburst_i (m_axi_dram_awburst_o),
    .awvalid_i (m_axi_dram_awvalid_o),
    .awready_i (m_axi_dram_awready_i),
    .wdata_i   (m_axi_dram_wdata_o),
    .wstrb_i   (m_axi_dram_wstrb_o),
    .wlast_i   (m_axi_dram_wlast_o),
    .wvalid_i  (m_axi_dram_wvalid_o),
    .wready_i  (m_axi_dram_wready_i),
    .bid_i     (m_axi_dram_bid_i),
    .bresp_i   (m_axi_dram_bresp_i),
    .bvalid_i  (m_axi_dram_bvalid_i),
    .bready_i  (m_axi_dram_bready_o),
    .arid_i    (m_axi_dram_arid_o),
    .araddr_i  (m_axi_dram_araddr_o),
    .arlen_i   (m_axi_dram_arlen_o),
    .arsize_i  (m_axi_dram_arsize_o),
    .arburst_i (m_axi_dram_arburst_o),
    .arvalid_i (m_axi_dram_arvalid_o),
    .arready_i (m_axi_dram_arready_i),
    .rid_i     (m_axi_dram_rid_i),
    .rdata_i   (m_axi_dram_rdata_i),
    .rresp_i   (m_axi_dram_rresp_i),
    .rlast_i   (m_axi_dram_rlast_i),
    .rvalid_i  (m_axi_dram_rvalid_i),
    .rready_i  (m_axi_dram_rready_o)
  );
  csrec_hs_check #(
    .Width(16)
  ) u_chk_msix (
    .clk_i,
    .rst_ni,
    .valid_i(msix_valid_o),
    .ready_i(msix_ready_i),
    .drop_i (1'b0),
    .data_i (msix_vector_o)
  );
  csrec_axi_check #(
    .AddrW(19),
    .DataW(64)
  ) u_chk_axil (
    .clk_i,
    .rst_ni,
    .awid_i   (1'b0),
    .awaddr_i (s_axil_awaddr_i),
    .awlen_i  (8'd0),
    .awsize_i (3'd3),
    .awburst_i(2'b01),
    .awvalid_i(s_axil_awvalid_i),
    .awready_i(s_axil_awready_o),
    .wdata_i  (s_axil_wdata_i),
    .wstrb_i  (s_axil_wstrb_i),
    .wlast_i  (1'b1),
    .wvalid_i (s_axil_wvalid_i),
    .wready_i (s_axil_wready_o),
    .bid_i    (1'b0),
    .bresp_i  (s_axil_bresp_o),
    .bvalid_i (s_axil_bvalid_o),
    .bready_i (s_axil_bready_i),
    .arid_i   (1'b0),
    .araddr_i (s_axil_araddr_i),
    .arlen_i  (8'd0),
    .arsize_i (3'd3),
    .arburst_i(2'b01),
    .arvalid_i(s_axil_arvalid_i),
    .arready_i(s_axil_arready_o),
    .rid_i    (1'b0),
    .rdata_i  (s_axil_rdata_o),
    .rresp_i  (s_axil_rresp_o),
    .rlast_i  (1'b1),
    .rvalid_i (s_axil_rvalid_o),
    .rready_i (s_axil_rready_i)
  );
  for (genvar c = 0; c < NumClients; c++) begin : gen_client
    csrec_hs_check #(
      .Width(179)
    ) u_chk_req (
      .clk_i,
      .rst_ni,
      .valid_i(req_valid[c]),
      .ready_i(req_ready[c]),
      .drop_i (1'b0),
      .data_i ({req_op[2*c+:2], req_onchip[c], req_key[32*c+:32], req_off[64*c+:64],
                req_len[64*c+:64], req_domain[16*c+:16]})
    );
    csrec_hs_check #(
      .Width(513)
    ) u_chk_rd (
      .clk_i,
      .rst_ni,
      .valid_i(rd_valid[c]),
      .ready_i(rd_ready[c]),
      .drop_i (1'b0),
      .data_i ({rd_data, rd_last})
    );
    // an error ends a WRITE with data still on offer
    csrec_hs_check #(
      .Width(512)
    ) u_chk_wr (
      .clk_i,
      .rst_ni,
      .valid_i(wr_valid[c]),
      .ready_i(wr_ready[c]),
      .drop_i (rsp_valid[c]),
      .data_i (wr_data[512*c+:512])
    );
  end

  // Not needed: one ID, and protection is the region table's. An absent engine's wires.
  logic unused;
  assign unused = &{1'b0, s_axil_awprot_i, s_axil_arprot_i, wr_ready, start_valid, abort_req,
                    u_done_ready, req_ready, rd_valid, rsp_valid, rd_last};

endmodule

`default_nettype wire
