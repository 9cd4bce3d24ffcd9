// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// All memory traffic of the device: region table, checks, page walk, byte packing, the
// on-chip memory, and the AXI4 masters to host memory and device DRAM. Requesters:
//
//   mem clients  (rtl/README.md) by region key; every request is checked
//   raw port     csrec_sched's queue entries by host bus address: a read gives the 64
//                bytes at raw_addr_i (64 B aligned), a write puts 16 bytes (16 B aligned);
//                one at a time
//   table port   csrec_sched's region administration
//
// One request a cycle is taken, clients and table port in a round robin; csrec_mmu_port says
// which client has room for another. csrec_mmu_table checks it, and one of three csrec_mmu_bus
// carries it out: on one bus in order, on different ones at the same time. What is read
// goes into the client's ring; one beat a cycle goes from there to the clients, those that have
// some in a round robin, and each client gets all in the order in which it asked. Nothing on a
// bus waits for a client; a client that stops taking a READ's data while it is offered
// holds up what others have read, until it goes on.
//
// The invalidation of a region is answered when all is that was taken before it.
//
// From a request to AR four cycles; from R to rd_valid three.

`default_nettype none

module csrec_mmu #(
  parameter int unsigned NumClients = 9,
  parameter logic [NumClients-1:0] Deep = '0,   // clients that may have Slots requests
  parameter int unsigned Slots = 64,            // outstanding, power of two, 8..64; others 8
  parameter int unsigned RingBeats = 128,       // of a client's ring, power of two, from 64
  parameter int unsigned NumRegions = 256,
  parameter int unsigned OnchipBytes = 1 << 20
) (
  input  wire logic                      clk_i,
  input  wire logic                      rst_ni,

  // mem clients, packed, client 0 lowest
  input  wire logic [NumClients-1:0]     req_valid_i,
  output      logic [NumClients-1:0]     req_ready_o,
  input  wire logic [NumClients*2-1:0]   req_op_i,
  input  wire logic [NumClients-1:0]     req_onchip_i,
  input  wire logic [NumClients*32-1:0]  req_key_i,
  input  wire logic [NumClients*64-1:0]  req_off_i,
  input  wire logic [NumClients*64-1:0]  req_len_i,
  input  wire logic [NumClients*16-1:0]  req_domain_i,
  output      logic [NumClients-1:0]     rd_valid_o,
  input  wire logic [NumClients-1:0]     rd_ready_i,
  output      logic [511:0]              rd_data_o,  // the same for all
  output      logic                      rd_last_o,
  input  wire logic [NumClients-1:0]     wr_valid_i,
  output      logic [NumClients-1:0]     wr_ready_o,
  input  wire logic [NumClients*512-1:0] wr_data_i,
  output      logic [NumClients-1:0]     rsp_valid_o,
  output      logic [7:0]                rsp_status_o,

  // raw port
  input  wire logic                      raw_valid_i,
  output      logic                      raw_ready_o,
  input  wire logic                      raw_write_i,
  input  wire logic [63:0]               raw_addr_i,
  input  wire logic [127:0]              raw_wdata_i,
  output      logic                      raw_rsp_valid_o,
  output      logic                      raw_rsp_err_o,
  output      logic [511:0]              raw_rdata_o,

  // table port. Ops: 0 probe, 1 set, 2 invalidate, 3 invalidate all
  input  wire logic                      tbl_valid_i,
  output      logic                      tbl_ready_o,
  input  wire logic [1:0]                tbl_op_i,
  input  wire logic [15:0]               tbl_index_i,  // below NumRegions
  input  wire logic [15:0]               tbl_gen_i,
  input  wire logic [1:0]                tbl_kind_i,
  input  wire logic [1:0]                tbl_rights_i,
  input  wire logic [15:0]               tbl_domain_i,
  input  wire logic [63:0]               tbl_base_i,
  input  wire logic [63:0]               tbl_size_i,
  input  wire logic [1:0]                tbl_levels_i,
  input  wire logic [4:0]                tbl_shift_i,
  input  wire logic [31:0]               tbl_page_off_i,
  output      logic                      tbl_rsp_valid_o,
  output      logic                      tbl_rsp_used_o,  // as it was found
  output      logic [15:0]               tbl_rsp_gen_o,

  // AXI4 master to host memory
  output      logic [63:0]               host_awaddr_o,
  output      logic [7:0]                host_awlen_o,
  output      logic                      host_awvalid_o,
  input  wire logic                      host_awready_i,
  output      logic [511:0]              host_wdata_o,
  output      logic [63:0]               host_wstrb_o,
  output      logic                      host_wlast_o,
  output      logic                      host_wvalid_o,
  input  wire logic                      host_wready_i,
  input  wire logic [1:0]                host_bresp_i,
  input  wire logic                      host_bvalid_i,
  output      logic                      host_bready_o,
  output      logic [63:0]               host_araddr_o,
  output      logic [7:0]                host_arlen_o,
  output      logic [2:0]                host_arsize_o,
  output      logic                      host_arvalid_o,
  input  wire logic                      host_arready_i,
  input  wire logic [511:0]              host_rdata_i,
  input  wire logic [1:0]                host_rresp_i,
  input  wire logic                      host_rlast_i,
  input  wire logic                      host_rvalid_i,
  output      logic                      host_rready_o,

  // AXI4 master to device DRAM
  output      logic [63:0]               dram_awaddr_o,
  output      logic [7:0]                dram_awlen_o,
  output      logic                      dram_awvalid_o,
  input  wire logic                      dram_awready_i,
  output      logic [511:0]              dram_wdata_o,
  output      logic [63:0]               dram_wstrb_o,
  output      logic                      dram_wlast_o,
  output      logic                      dram_wvalid_o,
  input  wire logic                      dram_wready_i,
  input  wire logic [1:0]                dram_bresp_i,
  input  wire logic                      dram_bvalid_i,
  output      logic                      dram_bready_o,
  output      logic [63:0]               dram_araddr_o,
  output      logic [7:0]                dram_arlen_o,
  output      logic                      dram_arvalid_o,
  input  wire logic                      dram_arready_i,
  input  wire logic [511:0]              dram_rdata_i,
  input  wire logic [1:0]                dram_rresp_i,
  input  wire logic                      dram_rlast_i,
  input  wire logic                      dram_rvalid_i,
  output      logic                      dram_rready_o,

  // bytes asked for, in the cycle in which a burst starts; any handshake
  output      logic [12:0]               ev_host_rd_o,
  output      logic [12:0]               ev_host_wr_o,
  output      logic [12:0]               ev_dram_rd_o,
  output      logic [12:0]               ev_dram_wr_o,
  output      logic                      ev_progress_o
);

  localparam int unsigned CliW = $clog2(NumClients + 1);
  localparam int unsigned SlotW = $clog2(Slots);
  localparam int unsigned RingW = $clog2(RingBeats);
  localparam int unsigned OnchipW = $clog2(OnchipBytes);
  localparam int unsigned TagW = CliW + SlotW + RingW;
  localparam int unsigned FewSlots = 8;

  function automatic int unsigned all_slots();
    all_slots = 0;
    for (int unsigned i = 0; i < NumClients; i++) begin
      all_slots += Deep[i] ? Slots : FewSlots;
    end
  endfunction
  localparam int unsigned ReqDepth = 1 << $clog2(all_slots());

  if (Slots < FewSlots || Slots > 64 || (Slots & (Slots - 1)) != 0) begin : gen_bad_slots
    $error("Slots: power of two, 8..64");
  end
  // room for the largest READ
  if (RingBeats < 64 || (RingBeats & (RingBeats - 1)) != 0) begin : gen_bad_ring
    $error("RingBeats: power of two, from 64");
  end

  // Buses, as regions' kinds less one: host, DRAM, on-chip
  localparam int unsigned NumBuses = 3;

  // ------------------------------------------------------ one request a cycle
  logic [NumClients-1:0]       can, take, quiet;
  logic [NumClients*SlotW-1:0] take_slot;
  logic [NumClients*RingW-1:0] take_ring;
  logic                        any, take_tbl;
  logic [CliW-1:0]             pick;
  logic                        tbl_busy_q;

  csrec_rr #(
    .Num(NumClients + 1)
  ) u_take (
    .clk_i,
    .rst_ni,
    .req_i ({tbl_valid_i && !tbl_busy_q, can}),
    .take_i(any),
    .any_o (any),
    .pick_o(pick)
  );

  assign take_tbl = any && pick == CliW'(NumClients);
  always_comb begin
    for (int unsigned i = 0; i < NumClients; i++) take[i] = any && pick == CliW'(i);
  end
  assign req_ready_o = take;
  assign tbl_ready_o = take_tbl;

  logic [1:0]      sel_op;
  logic            sel_onchip;
  logic [31:0]     sel_key;
  logic [63:0]     sel_off, sel_len;
  logic [15:0]     sel_domain;
  logic [TagW-1:0] sel_tag;
  always_comb begin
    sel_op = '0;
    sel_onchip = 1'b0;
    sel_key = '0;
    sel_off = '0;
    sel_len = '0;
    sel_domain = '0;
    sel_tag = '0;
    for (int unsigned i = 0; i < NumClients; i++) begin
      if (take[i]) begin
        sel_op = req_op_i[2*i+:2];
        sel_onchip = req_onchip_i[i];
        sel_key = req_key_i[32*i+:32];
        sel_off = req_off_i[64*i+:64];
        sel_len = req_len_i[64*i+:64];
        sel_domain = req_domain_i[16*i+:16];
        sel_tag = {CliW'(i), take_slot[SlotW*i+:SlotW], take_ring[RingW*i+:RingW]};
      end
    end
  end

  logic             chk_valid, chk_write, chk_go;
  logic [7:0]       chk_status;
  logic [1:0]       chk_op, chk_kind, chk_levels;
  logic [4:0]       chk_shift;
  logic [63:0]      chk_base, chk_byte;
  logic [12:0]      chk_len;
  logic [CliW-1:0]  chk_client;
  logic [SlotW-1:0] chk_slot;
  logic [RingW-1:0] chk_ring;
  logic             tbl_done;

  csrec_mmu_table #(
    .NumRegions(NumRegions),
    .TagW(TagW)
  ) u_table (
    .clk_i,
    .rst_ni,
    .in_valid_i  (any && !take_tbl),
    .in_op_i     (sel_op),
    .in_onchip_i (sel_onchip),
    .in_key_i    (sel_key),
    .in_off_i    (sel_off),
    .in_len_i    (sel_len),
    .in_domain_i (sel_domain),
    .in_tag_i    (sel_tag),
    .out_valid_o (chk_valid),
    .out_status_o(chk_status),
    .out_op_o    (chk_op),
    .out_kind_o  (chk_kind),
    .out_levels_o(chk_levels),
    .out_shift_o (chk_shift),
    .out_base_o  (chk_base),
    .out_byte_o  (chk_byte),
    .out_len_o   (chk_len),
    .out_tag_o   ({chk_client, chk_slot, chk_ring}),
    .tbl_valid_i (take_tbl),
    .tbl_op_i,
    .tbl_index_i,
    .tbl_gen_i,
    .tbl_kind_i,
    .tbl_rights_i,
    .tbl_domain_i,
    .tbl_base_i,
    .tbl_size_i,
    .tbl_levels_i,
    .tbl_shift_i,
    .tbl_page_off_i,
    .tbl_done_o  (tbl_done),
    .tbl_used_o  (tbl_rsp_used_o),
    .tbl_gen_o   (tbl_rsp_gen_o)
  );

  assign chk_write = chk_op == csrec_pkg::MEM_WRITE;
  assign chk_go = chk_status == csrec_pkg::ST_OK &&
                  (chk_write || chk_op == csrec_pkg::MEM_READ);

  // -------------------------------------------------------- table operations
  // An invalidation (tbl_op_i[1]) waits for what was outstanding before it took effect.
  logic [NumClients-1:0] drained;
  logic                  draining_q;
  always_ff @(posedge clk_i) begin
    if (take_tbl) tbl_busy_q <= 1'b1;
    draining_q <= (draining_q && !(&drained)) || tbl_done;
    if (tbl_rsp_valid_o) tbl_busy_q <= 1'b0;
    if (!rst_ni) begin
      tbl_busy_q <= 1'b0;
      draining_q <= 1'b0;
    end
  end
  assign tbl_rsp_valid_o = draining_q && &drained;

  // ------------------------------------------------------------------- buses
  logic [NumBuses-1:0]       out_valid, out_ready, out_beat, out_end, out_err;
  logic [NumBuses*RingW-1:0] out_ring;
  logic [NumBuses*512-1:0]   out_data;
  logic [NumBuses*CliW-1:0]  out_client;
  logic [NumBuses*SlotW-1:0] out_slot;
  logic [NumBuses*CliW-1:0]  wr_client;
  logic [NumBuses-1:0]       wr_take, wr_avail;
  logic [NumBuses*512-1:0]   wr_word;
  logic [NumBuses-1:0]       wend_valid, wend_err;
  logic [NumBuses*CliW-1:0]  wend_client;
  logic [NumBuses*SlotW-1:0] wend_slot;

  logic [NumBuses-1:0]       ar_valid, ar_ready, r_valid, r_ready, r_err;
  logic [NumBuses-1:0]       aw_valid, aw_ready, w_valid, w_ready, w_last;
  logic [NumBuses-1:0]       b_valid, b_ready, b_err, ev_any;
  logic [NumBuses*64-1:0]    ar_addr, aw_addr, w_strb;
  logic [NumBuses*8-1:0]     ar_len, aw_len;
  logic [NumBuses*3-1:0]     ar_size;
  logic [NumBuses*512-1:0]   r_data, w_data;
  logic [NumBuses*13-1:0]    ev_rd, ev_wr;
  logic [NumBuses-1:0]       raw_ready, raw_rsp_valid, raw_rsp_err;
  logic [NumBuses*512-1:0]   raw_rdata;
  logic [127:0]              raw_wdata_q;

  for (genvar b = 0; b < NumBuses; b++) begin : gen_bus
    csrec_mmu_bus #(
      .Walk(b == 0),
      .NumClients(NumClients),
      .CliW(CliW),
      .SlotW(SlotW),
      .RingW(RingW),
      .ReqDepth(ReqDepth),
      .Bursts(b == 2 ? 4 : 64)
    ) u_bus (
      .clk_i,
      .rst_ni,
      .flush_i        (tbl_rsp_valid_o),
      .in_valid_i     (chk_valid && chk_go && chk_kind == 2'(b + 1)),
      .in_write_i     (chk_write),
      .in_client_i    (chk_client),
      .in_slot_i      (chk_slot),
      .in_ring_i      (chk_ring),
      .in_len_i       (chk_len),
      .in_levels_i    (chk_levels),
      .in_shift_i     (chk_shift),
      .in_base_i      (chk_base),
      .in_byte_i      (chk_byte),
      .raw_valid_i    (b == 0 && raw_valid_i),
      .raw_ready_o    (raw_ready[b]),
      .raw_write_i,
      .raw_addr_i,
      .raw_wdata_i    (raw_wdata_q),
      .raw_rsp_valid_o(raw_rsp_valid[b]),
      .raw_rsp_err_o  (raw_rsp_err[b]),
      .raw_rdata_o    (raw_rdata[512*b+:512]),
      .out_valid_o    (out_valid[b]),
      .out_ready_i    (out_ready[b]),
      .out_beat_o     (out_beat[b]),
      .out_ring_o     (out_ring[RingW*b+:RingW]),
      .out_data_o     (out_data[512*b+:512]),
      .out_end_o      (out_end[b]),
      .out_err_o      (out_err[b]),
      .out_client_o   (out_client[CliW*b+:CliW]),
      .out_slot_o     (out_slot[SlotW*b+:SlotW]),
      .wr_quiet_i     (quiet),
      .wr_client_o    (wr_client[CliW*b+:CliW]),
      .wr_take_o      (wr_take[b]),
      .wr_valid_i     (wr_avail[b]),
      .wr_data_i      (wr_word[512*b+:512]),
      .wr_end_valid_o (wend_valid[b]),
      .wr_end_err_o   (wend_err[b]),
      .wr_end_client_o(wend_client[CliW*b+:CliW]),
      .wr_end_slot_o  (wend_slot[SlotW*b+:SlotW]),
      .ar_valid_o     (ar_valid[b]),
      .ar_ready_i     (ar_ready[b]),
      .ar_addr_o      (ar_addr[64*b+:64]),
      .ar_len_o       (ar_len[8*b+:8]),
      .ar_size_o      (ar_size[3*b+:3]),
      .r_valid_i      (r_valid[b]),
      .r_ready_o      (r_ready[b]),
      .r_data_i       (r_data[512*b+:512]),
      .r_err_i        (r_err[b]),
      .aw_valid_o     (aw_valid[b]),
      .aw_ready_i     (aw_ready[b]),
      .aw_addr_o      (aw_addr[64*b+:64]),
      .aw_len_o       (aw_len[8*b+:8]),
      .w_valid_o      (w_valid[b]),
      .w_ready_i      (w_ready[b]),
      .w_data_o       (w_data[512*b+:512]),
      .w_strb_o       (w_strb[64*b+:64]),
      .w_last_o       (w_last[b]),
      .b_valid_i      (b_valid[b]),
      .b_ready_o      (b_ready[b]),
      .b_err_i        (b_err[b]),
      .ev_rd_o        (ev_rd[13*b+:13]),
      .ev_wr_o        (ev_wr[13*b+:13]),
      .ev_any_o       (ev_any[b])
    );

    always_comb begin
      wr_avail[b] = 1'b0;
      wr_word[512*b+:512] = '0;
      for (int unsigned i = 0; i < NumClients; i++) begin
        if (wr_take[b] && wr_client[CliW*b+:CliW] == CliW'(i)) begin
          wr_avail[b] = wr_valid_i[i];
          wr_word[512*b+:512] = wr_data_i[512*i+:512];
        end
      end
    end
  end

  always_comb begin
    wr_ready_o = '0;
    for (int unsigned i = 0; i < NumClients; i++) begin
      for (int unsigned b = 0; b < NumBuses; b++) begin
        if (wr_take[b] && wr_client[CliW*b+:CliW] == CliW'(i)) wr_ready_o[i] = 1'b1;
      end
    end
  end

  assign raw_ready_o = raw_ready[0];
  assign raw_rsp_valid_o = raw_rsp_valid[0];
  assign raw_rsp_err_o = raw_rsp_err[0];
  assign raw_rdata_o = raw_rdata[511:0];
  always_ff @(posedge clk_i) if (raw_valid_i) raw_wdata_q <= raw_wdata_i;

  assign host_arvalid_o = ar_valid[0];
  assign host_araddr_o = ar_addr[63:0];
  assign host_arlen_o = ar_len[7:0];
  assign host_arsize_o = ar_size[2:0];
  assign host_rready_o = r_ready[0];
  assign host_awvalid_o = aw_valid[0];
  assign host_awaddr_o = aw_addr[63:0];
  assign host_awlen_o = aw_len[7:0];
  assign host_wvalid_o = w_valid[0];
  assign host_wdata_o = w_data[511:0];
  assign host_wstrb_o = w_strb[63:0];
  assign host_wlast_o = w_last[0];
  assign host_bready_o = b_ready[0];

  assign dram_arvalid_o = ar_valid[1];
  assign dram_araddr_o = ar_addr[64+:64];
  assign dram_arlen_o = ar_len[8+:8];
  assign dram_rready_o = r_ready[1];
  assign dram_awvalid_o = aw_valid[1];
  assign dram_awaddr_o = aw_addr[64+:64];
  assign dram_awlen_o = aw_len[8+:8];
  assign dram_wvalid_o = w_valid[1];
  assign dram_wdata_o = w_data[512+:512];
  assign dram_wstrb_o = w_strb[64+:64];
  assign dram_wlast_o = w_last[1];
  assign dram_bready_o = b_ready[1];

  logic         oc_arready, oc_rvalid, oc_rlast, oc_awready, oc_wready, oc_bvalid;
  logic [511:0] oc_rdata;
  assign ar_ready = {oc_arready, dram_arready_i, host_arready_i};
  assign r_valid = {oc_rvalid, dram_rvalid_i, host_rvalid_i};
  assign r_data = {oc_rdata, dram_rdata_i, host_rdata_i};
  assign r_err = {1'b0, dram_rresp_i != 2'b00, host_rresp_i != 2'b00};
  assign aw_ready = {oc_awready, dram_awready_i, host_awready_i};
  assign w_ready = {oc_wready, dram_wready_i, host_wready_i};
  assign b_valid = {oc_bvalid, dram_bvalid_i, host_bvalid_i};
  assign b_err = {1'b0, dram_bresp_i != 2'b00, host_bresp_i != 2'b00};

  csrec_onchip #(
    .Bytes(OnchipBytes)
  ) u_onchip (
    .clk_i,
    .rst_ni,
    .arvalid_i(ar_valid[2]),
    .arready_o(oc_arready),
    .araddr_i (ar_addr[128+6+:OnchipW-6]),
    .arlen_i  (ar_len[16+:8]),
    .rvalid_o (oc_rvalid),
    .rready_i (r_ready[2]),
    .rdata_o  (oc_rdata),
    .rlast_o  (oc_rlast),
    .awvalid_i(aw_valid[2]),
    .awready_o(oc_awready),
    .awaddr_i (aw_addr[128+6+:OnchipW-6]),
    .wvalid_i (w_valid[2]),
    .wready_o (oc_wready),
    .wdata_i  (w_data[1024+:512]),
    .wstrb_i  (w_strb[128+:64]),
    .wlast_i  (w_last[2]),
    .bvalid_o (oc_bvalid),
    .bready_i (b_ready[2])
  );

  // ------------------------------------------------------------------- rings
  // One RAM for all: a beat a cycle comes from the buses, in turn, and one goes to a client.
  logic [511:0]    ring_q [0:(1<<CliW)*RingBeats-1];
  logic            put, put_beat, put_end, put_err;
  logic [1:0]      put_bus;
  logic [RingW-1:0] put_ring;
  logic [511:0]    put_data;
  logic [CliW-1:0] put_client;
  logic [SlotW-1:0] put_slot;

  csrec_rr #(
    .Num(NumBuses)
  ) u_put (
    .clk_i,
    .rst_ni,
    .req_i (out_valid),
    .take_i(put),
    .any_o (put),
    .pick_o(put_bus)
  );

  always_comb begin
    put_beat = 1'b0;
    put_end = 1'b0;
    put_err = 1'b0;
    put_ring = '0;
    put_data = '0;
    put_client = '0;
    put_slot = '0;
    out_ready = '0;
    for (int unsigned b = 0; b < NumBuses; b++) begin
      if (put && put_bus == 2'(b)) begin
        out_ready[b] = 1'b1;
        put_beat = out_beat[b];
        put_end = out_end[b];
        put_err = out_err[b];
        put_ring = out_ring[RingW*b+:RingW];
        put_data = out_data[512*b+:512];
        put_client = out_client[CliW*b+:CliW];
        put_slot = out_slot[SlotW*b+:SlotW];
      end
    end
  end

  // ----------------------------------------------------------------- clients
  logic [NumClients-1:0]       head_valid, head_data, head_last, head_rsp, head_take;
  logic [NumClients*8-1:0]     head_status;
  logic [NumClients*RingW-1:0] head_ring;

  for (genvar c = 0; c < NumClients; c++) begin : gen_client
    logic [3:0] end_valid;
    assign end_valid = {wend_valid[2] && wend_client[2*CliW+:CliW] == CliW'(c),
                        wend_valid[1] && wend_client[CliW+:CliW] == CliW'(c),
                        wend_valid[0] && wend_client[0+:CliW] == CliW'(c),
                        put && put_end && put_client == CliW'(c)};

    csrec_mmu_port #(
      .Slots(Deep[c] ? Slots : FewSlots),
      .SlotW(SlotW),
      .Beats(RingBeats)
    ) u_port (
      .clk_i,
      .rst_ni,
      .req_valid_i  (req_valid_i[c]),
      .req_op_i     (req_op_i[2*c+:2]),
      .req_key_i    (req_key_i[32*c+:32]),
      .req_len_i    (req_len_i[64*c+:13]),
      .can_o        (can[c]),
      .quiet_o      (quiet[c]),
      .take_i       (take[c]),
      .slot_o       (take_slot[SlotW*c+:SlotW]),
      .ring_o       (take_ring[RingW*c+:RingW]),
      .stat_valid_i (chk_valid && chk_client == CliW'(c)),
      .stat_slot_i  (chk_slot),
      .stat_status_i(chk_status),
      .stat_end_i   (!chk_go),
      .beat_valid_i (put && put_beat && put_client == CliW'(c)),
      .beat_ring_i  (put_ring),
      .end_valid_i  (end_valid),
      .end_slot_i   ({wend_slot, put_slot}),
      .end_err_i    ({wend_err, put_err}),
      .head_valid_o (head_valid[c]),
      .head_data_o  (head_data[c]),
      .head_last_o  (head_last[c]),
      .head_rsp_o   (head_rsp[c]),
      .head_status_o(head_status[8*c+:8]),
      .head_ring_o  (head_ring[RingW*c+:RingW]),
      .head_take_i  (head_take[c]),
      .drain_i      (tbl_done && tbl_op_i[1]),
      .drained_o    (drained[c])
    );
  end

  // ---------------------------------------------------------------- delivery
  // What goes to a client next, chosen a cycle ahead so that the RAM can be read.
  logic                  give_any, give_free, give_valid_q, give_data_q, give_rsp_q;
  logic [CliW-1:0]       give_client_q, give;
  logic [$clog2(NumClients)-1:0] give_pick;
  logic [NumClients-1:0] want;
  assign want = head_valid & (~head_data | rd_ready_i);

  csrec_rr #(
    .Num(NumClients)
  ) u_give (
    .clk_i,
    .rst_ni,
    .req_i (want),
    .take_i(give_any && give_free),
    .any_o (give_any),
    .pick_o(give_pick)
  );

  assign give = CliW'(give_pick);

  logic             pick_data, pick_last, pick_rsp, give_ready;
  logic [7:0]       pick_status;
  logic [RingW-1:0] pick_ring;
  always_comb begin
    head_take = '0;
    pick_data = 1'b0;
    pick_last = 1'b0;
    pick_rsp = 1'b0;
    pick_status = '0;
    pick_ring = '0;
    give_ready = 1'b0;
    for (int unsigned i = 0; i < NumClients; i++) begin
      if (give_any && give == CliW'(i)) begin
        head_take[i] = give_free;
        pick_data = head_data[i];
        pick_last = head_last[i];
        pick_rsp = head_rsp[i];
        pick_status = head_status[8*i+:8];
        pick_ring = head_ring[RingW*i+:RingW];
      end
      if (give_client_q == CliW'(i)) give_ready = rd_ready_i[i];
    end
  end

  assign give_free = !give_valid_q || !give_data_q || give_ready;

  always_ff @(posedge clk_i) begin
    if (give_free) begin
      give_valid_q <= give_any && (pick_data || pick_rsp);
      give_data_q <= pick_data;
      give_rsp_q <= pick_rsp;
      give_client_q <= give;
      rd_last_o <= pick_last;
      rsp_status_o <= pick_status;
      if (give_any && pick_data) rd_data_o <= ring_q[{give, pick_ring}];
    end
    if (put && put_beat) ring_q[{put_client, put_ring}] <= put_data;
    if (!rst_ni) give_valid_q <= 1'b0;
  end

  always_comb begin
    for (int unsigned i = 0; i < NumClients; i++) begin
      rd_valid_o[i] = give_valid_q && give_data_q && give_client_q == CliW'(i);
      rsp_valid_o[i] = give_valid_q && give_rsp_q && give_client_q == CliW'(i) && give_free;
    end
  end

  // ------------------------------------------------------------------ events
  assign ev_host_rd_o = ev_rd[12:0];
  assign ev_dram_rd_o = ev_rd[13+:13];
  assign ev_host_wr_o = ev_wr[12:0];
  assign ev_dram_wr_o = ev_wr[13+:13];
  assign ev_progress_o = ev_any != '0 || any || give_any;

  logic unused;
  assign unused = &{1'b0, host_rlast_i, dram_rlast_i, oc_rlast, raw_ready, raw_rsp_valid,
                    raw_rsp_err, raw_rdata, ev_rd, ev_wr, ar_size, ar_addr, aw_addr, aw_len};

endmodule

`default_nettype wire
