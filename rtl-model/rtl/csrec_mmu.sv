// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// All memory traffic of the device: region table, checks, page walk, byte packing, the
// on-chip memory, and the AXI4 masters to host memory and device DRAM.
//
// It serves one request at a time, from three kinds of requesters in one round robin:
//
//   mem clients  (rtl/README.md) by region key; every request is checked
//   raw port     csrec_sched's queue entries by host bus address: a read gives the 64
//                bytes at raw_addr_i (64 B aligned), a write puts 16 bytes (16 B aligned)
//   table port   csrec_sched's region administration
//
// Since a request ends only when its last access has been answered, a region that the
// table port invalidates has no access in flight any more.
//
// A request is cut into segments that cross neither a 4 KiB boundary nor a page; each
// segment is one INCR burst of full 64-byte beats (writes: with strobes), a page-list
// entry one beat of 8 bytes. The low 12 bits of a page-list entry are not used.

`default_nettype none

module csrec_mmu #(
  parameter int unsigned NumClients = 9,
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

  // Requesters: the clients, then raw, then table.
  localparam int unsigned NumReq = NumClients + 2;
  localparam int unsigned RawIdx = NumClients;
  localparam int unsigned TblIdx = NumClients + 1;
  localparam int unsigned SelW = $clog2(NumReq);
  localparam int unsigned RegW = $clog2(NumRegions);
  localparam int unsigned OnchipW = $clog2(OnchipBytes);

  localparam logic [1:0] TblSet = 2'd1;
  localparam logic [1:0] TblInval = 2'd2;
  localparam logic [1:0] TblInvalAll = 2'd3;

  typedef enum logic [3:0] {
    StIdle,   // look for a requester
    StTake,   // ready to sel_q
    StLook,   // region table is read
    StCheck,
    StSeg,    // next segment: address, or page walk
    StWalk,   // page-list entry asked for
    StWalkR,  // and awaited
    StRead,   // AR of a segment
    StReadR,  // its beats
    StFlush,  // last output beat of a READ
    StWrite,  // AW of a segment
    StWriteW, // its beats
    StWriteB, // its answer
    StTable,
    StRsp
  } state_e;

  typedef enum logic [1:0] {
    BusHost,
    BusDram,
    BusOnchip
  } bus_e;

  state_e            state_q;
  bus_e              bus_q;
  logic [SelW-1:0]   sel_q;
  logic              raw_q;
  logic [7:0]        status_q;

  // --------------------------------------------------------------- arbiter
  logic [NumReq-1:0] requests;
  logic [SelW-1:0]   pick;
  logic              pick_any;
  assign requests = {tbl_valid_i, raw_valid_i, req_valid_i};

  // First requester after the last one served.
  always_comb begin
    pick = '0;
    pick_any = 1'b0;
    if (state_q == StIdle) begin
      for (int unsigned i = 0; i < NumReq; i++) begin
        if (!pick_any && requests[i] && SelW'(i) > sel_q) begin
          pick = SelW'(i);
          pick_any = 1'b1;
        end
      end
      for (int unsigned i = 0; i < NumReq; i++) begin
        if (!pick_any && requests[i]) begin
          pick = SelW'(i);
          pick_any = 1'b1;
        end
      end
    end
  end

  always_comb begin
    req_ready_o = '0;
    rsp_valid_o = '0;
    for (int unsigned i = 0; i < NumClients; i++) begin
      req_ready_o[i] = state_q == StTake && sel_q == SelW'(i);
      rsp_valid_o[i] = state_q == StRsp && sel_q == SelW'(i) && !rvalid_q;
    end
  end
  assign raw_ready_o = state_q == StTake && sel_q == SelW'(RawIdx);
  assign raw_rsp_valid_o = state_q == StRsp && sel_q == SelW'(RawIdx);
  assign raw_rsp_err_o = status_q != csrec_pkg::ST_OK;
  assign tbl_ready_o = state_q == StTake && sel_q == SelW'(TblIdx);
  assign tbl_rsp_valid_o = state_q == StRsp && sel_q == SelW'(TblIdx);
  assign rsp_status_o = status_q;

  // ---------------------------------------------------------- region table
  localparam int unsigned EntryW = 16 + 2 + 2 + 16 + 64 + 64 + 2 + 5 + 32;
  logic [EntryW-1:0]     table_q [0:NumRegions-1];
  logic [NumRegions-1:0] used_q;
  logic [EntryW-1:0]     entry_q;
  logic                  entry_used_q;

  logic [15:0] e_gen, e_domain;
  logic [1:0]  e_kind, e_rights, e_levels;
  logic [63:0] e_base, e_size;
  logic [4:0]  e_shift;
  logic [31:0] e_page_off;
  assign {e_gen, e_kind, e_rights, e_domain, e_base, e_size, e_levels, e_shift, e_page_off} =
         entry_q;
  assign tbl_rsp_used_o = entry_used_q;
  assign tbl_rsp_gen_o = e_gen;

  // ------------------------------------------------------- the request held
  logic [1:0]  op_q;
  logic        onchip_q;
  logic [31:0] key_q;
  logic [15:0] domain_q;
  logic [63:0] pos_q;   // region offset of the next byte
  logic [63:0] left_q;  // bytes from there on
  logic        write;
  assign write = op_q == csrec_pkg::MEM_WRITE || op_q == csrec_pkg::MEM_CHECK_WR;

  logic [7:0]  check;
  csrec_region_check #(.NumRegions(NumRegions)) u_check (
    .key_i          (key_q),
    .domain_i       (domain_q),
    .write_i        (write),
    .onchip_i       (onchip_q),
    .off_i          (pos_q),
    .len_i          (left_q),
    .entry_used_i   (entry_used_q),
    .entry_gen_i    (e_gen),
    .entry_kind_i   (e_kind),
    .entry_rights_i (e_rights),
    .entry_domain_i (e_domain),
    .entry_size_i   (e_size),
    .status_o       (check)
  );

  // ------------------------------------------------- segments and page walk
  logic [63:0] addr_q;     // bus address of the segment, then of its next beat
  logic [12:0] seg_q;      // bytes of the segment still to move
  logic        walk2_q;    // the walk is at its second list
  logic [63:0] list_q;     // address of the entry to read

  function automatic logic [12:0] min13(input logic [63:0] a, input logic [12:0] b);
    min13 = a < 64'(b) ? a[12:0] : b;
  endfunction
  function automatic logic [12:0] to_4k(input logic [11:0] a);  // up to the boundary
    to_4k = 13'd4096 - {1'b0, a};
  endfunction

  // In a region with a page list: byte, page, and byte within the page.
  logic [63:0] page_byte, page_index, page_in;
  logic [60:0] top_index;  // in the list that the region's base names
  logic [63:0] flat;  // in one without
  logic [63:0] page, byte_addr;  // from the page-list entry that arrives
  always_comb begin
    page = '0;
    byte_addr = '0;
    if (state_q == StWalkR) begin
      page = {rdata[64*list_q[5:3]+12+:52], 12'd0};
      byte_addr = page + page_in;
    end
  end
  always_comb begin
    page_byte = '0;
    page_index = '0;
    page_in = '0;
    top_index = '0;
    flat = '0;
    if (state_q == StSeg || state_q == StWalkR) begin
      page_byte = pos_q + 64'(e_page_off);
      page_index = page_byte >> e_shift;
      page_in = page_byte & ~(64'hffff_ffff_ffff_ffff << e_shift);
      top_index = 61'(e_levels == 2'd2 ? page_index >> $clog2(csrec_pkg::PAGE_LIST_ENTRIES)
                                       : page_index);
      flat = e_base + pos_q;
    end
  end

  // --------------------------------------------------------- bus in and out
  logic         arvalid_q, awvalid_q;
  logic [7:0]   axlen_q;
  logic [12:0]  seg_len_q;  // bytes of the burst, for the counters
  logic [63:0]  axaddr_q;
  logic         narrow_q;  // AR for a page-list entry
  logic         wvalid_q, wlast_q;
  logic [511:0] wdata_q;
  logic [63:0]  wstrb_q;
  logic         rready, bready;

  logic         arready, awready, wready, rvalid, rlast, rerr, bvalid, berr;
  logic [511:0] rdata;
  logic         oc_arready, oc_awready, oc_wready, oc_rvalid, oc_rlast, oc_bvalid;
  logic [511:0] oc_rdata;

  always_comb begin
    case (bus_q)
      BusHost: begin
        arready = host_arready_i;
        awready = host_awready_i;
        wready = host_wready_i;
        rvalid = host_rvalid_i;
        rlast = host_rlast_i;
        rerr = host_rresp_i != 2'b00;
        bvalid = host_bvalid_i;
        berr = host_bresp_i != 2'b00;
        rdata = host_rdata_i;
      end
      BusDram: begin
        arready = dram_arready_i;
        awready = dram_awready_i;
        wready = dram_wready_i;
        rvalid = dram_rvalid_i;
        rlast = dram_rlast_i;
        rerr = dram_rresp_i != 2'b00;
        bvalid = dram_bvalid_i;
        berr = dram_bresp_i != 2'b00;
        rdata = dram_rdata_i;
      end
      default: begin
        arready = oc_arready;
        awready = oc_awready;
        wready = oc_wready;
        rvalid = oc_rvalid;
        rlast = oc_rlast;
        rerr = 1'b0;
        bvalid = oc_bvalid;
        berr = 1'b0;
        rdata = oc_rdata;
      end
    endcase
  end

  assign host_arvalid_o = arvalid_q && bus_q == BusHost;
  assign host_araddr_o = axaddr_q;
  assign host_arlen_o = axlen_q;
  assign host_arsize_o = narrow_q ? 3'd3 : 3'd6;
  assign host_rready_o = rready && bus_q == BusHost;
  assign host_awvalid_o = awvalid_q && bus_q == BusHost;
  assign host_awaddr_o = axaddr_q;
  assign host_awlen_o = axlen_q;
  assign host_wvalid_o = wvalid_q && bus_q == BusHost;
  assign host_wdata_o = wdata_q;
  assign host_wstrb_o = wstrb_q;
  assign host_wlast_o = wlast_q;
  assign host_bready_o = bready && bus_q == BusHost;

  assign dram_arvalid_o = arvalid_q && bus_q == BusDram;
  assign dram_araddr_o = axaddr_q;
  assign dram_arlen_o = axlen_q;
  assign dram_rready_o = rready && bus_q == BusDram;
  assign dram_awvalid_o = awvalid_q && bus_q == BusDram;
  assign dram_awaddr_o = axaddr_q;
  assign dram_awlen_o = axlen_q;
  assign dram_wvalid_o = wvalid_q && bus_q == BusDram;
  assign dram_wdata_o = wdata_q;
  assign dram_wstrb_o = wstrb_q;
  assign dram_wlast_o = wlast_q;
  assign dram_bready_o = bready && bus_q == BusDram;

  csrec_onchip #(
    .Bytes(OnchipBytes)
  ) u_onchip (
    .clk_i,
    .rst_ni,
    .arvalid_i(arvalid_q && bus_q == BusOnchip),
    .arready_o(oc_arready),
    .araddr_i (axaddr_q[OnchipW-1:6]),
    .arlen_i  (axlen_q),
    .rvalid_o (oc_rvalid),
    .rready_i (rready && bus_q == BusOnchip),
    .rdata_o  (oc_rdata),
    .rlast_o  (oc_rlast),
    .awvalid_i(awvalid_q && bus_q == BusOnchip),
    .awready_o(oc_awready),
    .awaddr_i (axaddr_q[OnchipW-1:6]),
    .wvalid_i (wvalid_q && bus_q == BusOnchip),
    .wready_o (oc_wready),
    .wdata_i  (wdata_q),
    .wstrb_i  (wstrb_q),
    .wlast_i  (wlast_q),
    .bvalid_o (oc_bvalid),
    .bready_i (bready && bus_q == BusOnchip)
  );

  // ------------------------------------------------------------- packing
  // pack_q collects fill_q bytes, lowest first: of read beats until 64 are there for the
  // client, of the client's write data until a beat's worth is there for the bus.
  logic [1023:0] pack_q;
  logic [6:0]    fill_q;     // 0..127
  logic [63:0]   wleft_q;    // bytes the writing client still has to give
  logic          rvalid_q, rlast_q;
  logic [511:0]  rdata_q;
  logic          err_q;

  logic        client_rready, client_wvalid;
  logic [511:0] client_wdata;
  always_comb begin
    client_rready = 1'b0;
    client_wvalid = 1'b0;
    for (int unsigned i = 0; i < NumClients; i++) begin
      if (sel_q == SelW'(i)) begin
        client_rready = rd_ready_i[i];
        client_wvalid = wr_valid_i[i];
      end
    end
  end
  always_comb begin
    client_wdata = '0;
    if (state_q == StWriteW && client_wvalid) client_wdata = wr_data_i[512*sel_q+:512];
  end

  // Bytes of the bus beat at addr_q: nbeat from lane addr_q[5:0] on.
  logic [6:0] nbeat, nlane;
  logic [7:0] beats_less_1;  // of the whole segment
  assign beats_less_1 = 8'((13'(addr_q[5:0]) + seg_q - 13'd1) >> 6);
  assign nlane = 7'd64 - {1'b0, addr_q[5:0]};
  assign nbeat = 13'(nlane) < seg_q ? nlane : seg_q[6:0];

  function automatic logic [63:0] ones(input logic [6:0] n);
    ones = n[6] ? '1 : ~(64'hffff_ffff_ffff_ffff << n[5:0]);
  endfunction

  logic          rd_free, rd_beat;
  logic [1023:0] pack_in;
  assign rd_free = !rvalid_q || client_rready;
  assign rready = (state_q == StReadR && (raw_q || rd_free || err_q)) || state_q == StWalkR;
  assign rd_beat = state_q == StReadR && rvalid && rready;
  // The beat's bytes moved down, what is not ours cleared, put behind what is there.
  logic [511:0] beat_low;
  logic [63:0]  beat_keep;
  always_comb begin
    pack_in = pack_q;
    beat_low = '0;
    beat_keep = '0;
    if (rd_beat) begin
      beat_low = rdata >> {addr_q[5:0], 3'b000};
      beat_keep = ones(nbeat);
      for (int unsigned i = 0; i < 64; i++) begin
        if (!beat_keep[i]) beat_low[8*i+:8] = 8'h00;
      end
      pack_in = pack_q | 1024'(beat_low) << {fill_q[5:0], 3'b000};
    end
  end

  logic wr_take, wr_put, wr_free;
  assign wr_free = !wvalid_q || wready;
  assign wr_put = state_q == StWriteW && seg_q != '0 && fill_q >= nbeat && wr_free;
  assign wr_take = state_q == StWriteW && seg_q != '0 && fill_q < nbeat && !raw_q;
  always_comb begin
    wr_ready_o = '0;
    rd_valid_o = '0;
    for (int unsigned i = 0; i < NumClients; i++) begin
      wr_ready_o[i] = wr_take && sel_q == SelW'(i);
      rd_valid_o[i] = rvalid_q && sel_q == SelW'(i);
    end
  end
  assign rd_data_o = rdata_q;
  assign rd_last_o = rlast_q;
  assign raw_rdata_o = rdata_q;
  assign bready = state_q == StWriteB && !awvalid_q;

  // ------------------------------------------------------------------- FSM
  always_ff @(posedge clk_i) begin
    if (arvalid_q && arready) arvalid_q <= 1'b0;
    if (awvalid_q && awready) awvalid_q <= 1'b0;
    if (wvalid_q && wready) wvalid_q <= 1'b0;
    if (client_rready) rvalid_q <= 1'b0;

    case (state_q)
      StIdle: begin
        if (pick_any) begin
          sel_q <= pick;
          state_q <= StTake;
        end
        pack_q <= '0;
        fill_q <= '0;
        err_q <= 1'b0;
        raw_q <= 1'b0;
        status_q <= csrec_pkg::ST_OK;
      end

      StTake: begin
        if (sel_q == SelW'(TblIdx)) begin
          key_q <= {tbl_gen_i, tbl_index_i};
          state_q <= StLook;
        end else if (sel_q == SelW'(RawIdx)) begin
          raw_q <= 1'b1;
          bus_q <= BusHost;
          addr_q <= raw_addr_i;
          left_q <= raw_write_i ? 64'd16 : 64'd64;
          seg_q <= raw_write_i ? 13'd16 : 13'd64;
          pack_q <= raw_write_i ? 1024'(raw_wdata_i) : '0;
          fill_q <= raw_write_i ? 7'd16 : 7'd0;
          wleft_q <= '0;
          state_q <= raw_write_i ? StWrite : StRead;
        end else begin
          op_q <= req_op_i[2*sel_q+:2];
          onchip_q <= req_onchip_i[sel_q];
          key_q <= req_key_i[32*sel_q+:32];
          pos_q <= req_off_i[64*sel_q+:64];
          left_q <= req_len_i[64*sel_q+:64];
          wleft_q <= req_len_i[64*sel_q+:64];
          domain_q <= req_domain_i[16*sel_q+:16];
          state_q <= StLook;
        end
      end

      StLook: begin
        entry_q <= table_q[key_q[RegW-1:0]];
        entry_used_q <= used_q[key_q[RegW-1:0]];
        state_q <= sel_q == SelW'(TblIdx) ? StTable : StCheck;
      end

      StCheck: begin
        status_q <= check;
        case (e_kind)
          csrec_pkg::REGION_DRAM[1:0]: bus_q <= BusDram;
          csrec_pkg::REGION_ONCHIP[1:0]: bus_q <= BusOnchip;
          default: bus_q <= BusHost;
        endcase
        if (check != csrec_pkg::ST_OK || op_q == csrec_pkg::MEM_CHECK_RD ||
            op_q == csrec_pkg::MEM_CHECK_WR) begin
          state_q <= StRsp;
        end else begin
          state_q <= StSeg;
        end
      end

      StSeg: begin
        walk2_q <= 1'b0;
        addr_q <= flat;
        seg_q <= min13(left_q, to_4k(flat[11:0]));
        // Levels are 0 but in HOST regions.
        if (e_levels == 2'd0) begin
          state_q <= write ? StWrite : StRead;
        end else begin
          list_q <= e_base + {top_index, 3'd0};
          state_q <= StWalk;
        end
      end

      StWalk: begin
        arvalid_q <= 1'b1;
        narrow_q <= 1'b1;
        axlen_q <= '0;
        axaddr_q <= list_q;
        seg_len_q <= 13'd8;
        state_q <= StWalkR;
      end

      StWalkR: begin
        if (rvalid) begin
          narrow_q <= 1'b0;
          if (rerr) begin
            status_q <= csrec_pkg::ST_BUS_ERROR;
            state_q <= StRsp;
          end else if (e_levels == 2'd2 && !walk2_q) begin
            walk2_q <= 1'b1;
            list_q <= page | {52'd0, page_index[8:0], 3'd0};
            state_q <= StWalk;
          end else begin
            addr_q <= byte_addr;
            seg_q <= min13(left_q, to_4k(byte_addr[11:0]));
            state_q <= write ? StWrite : StRead;
          end
        end
      end

      StRead: begin
        arvalid_q <= 1'b1;
        axaddr_q <= {addr_q[63:6], 6'd0};
        axlen_q <= beats_less_1;
        seg_len_q <= seg_q;
        state_q <= StReadR;
      end

      StReadR: begin
        if (rd_beat) begin
          addr_q <= {addr_q[63:6] + 58'd1, 6'd0};
          seg_q <= seg_q - 13'(nbeat);
          pos_q <= pos_q + 64'(nbeat);
          left_q <= left_q - 64'(nbeat);
          if (rerr) begin
            err_q <= 1'b1;
            status_q <= csrec_pkg::ST_BUS_ERROR;
          end
          if (!rerr && !err_q) begin
            pack_q <= pack_in;
            fill_q <= fill_q + nbeat;
            // Enough for an output beat, or the last bytes there are.
            if (fill_q + nbeat >= 7'd64 || left_q == 64'(nbeat)) begin
              rvalid_q <= !raw_q;
              rdata_q <= pack_in[511:0];
              rlast_q <= left_q == 64'(nbeat) && fill_q + nbeat <= 7'd64;
              pack_q <= pack_in >> 512;
              fill_q <= fill_q + nbeat >= 7'd64 ? fill_q + nbeat - 7'd64 : '0;
            end
          end
          if (rlast) begin
            if (rerr || err_q) state_q <= StRsp;
            else if (left_q != 64'(nbeat)) state_q <= StSeg;
            else if (fill_q + nbeat > 7'd64) state_q <= StFlush;
            else state_q <= StRsp;
          end
        end
      end

      StFlush: begin
        if (rd_free) begin
          rvalid_q <= 1'b1;
          rdata_q <= pack_q[511:0];
          rlast_q <= 1'b1;
          state_q <= StRsp;
        end
      end

      StWrite: begin
        awvalid_q <= 1'b1;
        axaddr_q <= {addr_q[63:6], 6'd0};
        axlen_q <= beats_less_1;
        seg_len_q <= seg_q;
        state_q <= StWriteW;
      end

      StWriteW: begin
        if (wr_take && client_wvalid) begin
          pack_q <= pack_q | 1024'(client_wdata) << {fill_q[5:0], 3'b000};
          fill_q <= fill_q + (wleft_q < 64'd64 ? wleft_q[6:0] : 7'd64);
          wleft_q <= wleft_q - (wleft_q < 64'd64 ? wleft_q : 64'd64);
        end
        if (wr_put) begin
          wvalid_q <= 1'b1;
          wdata_q <= 512'(pack_q[511:0] << {addr_q[5:0], 3'b000});
          wstrb_q <= ones(nbeat) << addr_q[5:0];
          wlast_q <= seg_q == 13'(nbeat);
          pack_q <= pack_q >> {nbeat, 3'b000};
          fill_q <= fill_q - nbeat;
          addr_q <= {addr_q[63:6] + 58'd1, 6'd0};
          seg_q <= seg_q - 13'(nbeat);
          pos_q <= pos_q + 64'(nbeat);
          left_q <= left_q - 64'(nbeat);
        end
        if (seg_q == '0 && wvalid_q && wready) state_q <= StWriteB;
      end

      StWriteB: begin
        if (bvalid && bready) begin
          if (berr) status_q <= csrec_pkg::ST_BUS_ERROR;
          state_q <= berr || left_q == '0 ? StRsp : StSeg;
        end
      end

      StTable: begin
        // tbl_*_i are held until the answer
        if (tbl_op_i == TblSet) begin
          table_q[key_q[RegW-1:0]] <= {tbl_gen_i, tbl_kind_i, tbl_rights_i, tbl_domain_i,
                                       tbl_base_i, tbl_size_i, tbl_levels_i, tbl_shift_i,
                                       tbl_page_off_i};
          used_q[key_q[RegW-1:0]] <= 1'b1;
        end
        if (tbl_op_i == TblInval) used_q[key_q[RegW-1:0]] <= 1'b0;
        if (tbl_op_i == TblInvalAll) used_q <= '0;
        state_q <= StRsp;
      end

      // A client takes its last beat before it gets the answer.
      StRsp: if (!rvalid_q) state_q <= StIdle;

      default: state_q <= StIdle;
    endcase

    if (!rst_ni) begin
      state_q <= StIdle;
      sel_q <= '0;
      used_q <= '0;
      arvalid_q <= 1'b0;
      awvalid_q <= 1'b0;
      wvalid_q <= 1'b0;
      rvalid_q <= 1'b0;
      narrow_q <= 1'b0;
    end
  end

  // ---------------------------------------------------------------- events
  // A burst's bytes are counted when its AR or AW goes out.
  assign ev_host_rd_o = arvalid_q && arready && bus_q == BusHost ? seg_len_q : '0;
  assign ev_dram_rd_o = arvalid_q && arready && bus_q == BusDram ? seg_len_q : '0;
  assign ev_host_wr_o = awvalid_q && awready && bus_q == BusHost ? seg_len_q : '0;
  assign ev_dram_wr_o = awvalid_q && awready && bus_q == BusDram ? seg_len_q : '0;
  assign ev_progress_o = (arvalid_q && arready) || (awvalid_q && awready) ||
                         (rvalid && rready) || (wvalid_q && wready) || (bvalid && bready) ||
                         state_q == StTake;

endmodule

`default_nettype wire
