// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// The region table, and the checks of every access (REFERENCE.md, section 3). A pipeline of
// one request a cycle: in_* in one cycle, out_* two cycles later, never stalled. Tag goes with
// the request.
//
// A table operation takes the same way in between, with tbl_*_i held until tbl_done_o: probe,
// set, invalidate, invalidate all. What entered before it saw the table as it was; what enters
// two cycles after it or later sees it as it is then. tbl_done_o comes three cycles after
// it.

`default_nettype none

module csrec_mmu_table #(
  parameter int unsigned NumRegions = 256,
  parameter int unsigned TagW = 1
) (
  input  wire logic            clk_i,
  input  wire logic            rst_ni,

  input  wire logic            in_valid_i,
  input  wire logic [1:0]      in_op_i,
  input  wire logic            in_onchip_i,
  input  wire logic [31:0]     in_key_i,
  input  wire logic [63:0]     in_off_i,
  input  wire logic [63:0]     in_len_i,
  input  wire logic [15:0]     in_domain_i,
  input  wire logic [TagW-1:0] in_tag_i,

  output      logic            out_valid_o,
  output      logic [7:0]      out_status_o,
  output      logic [1:0]      out_op_o,
  output      logic [1:0]      out_kind_o,
  output      logic [1:0]      out_levels_o,
  output      logic [4:0]      out_shift_o,
  output      logic [63:0]     out_base_o,  // levels 0: address of the first byte; else the list
  output      logic [63:0]     out_byte_o,  // else: first byte, counted from the first page
  output      logic [12:0]     out_len_o,
  output      logic [TagW-1:0] out_tag_o,

  input  wire logic            tbl_valid_i,
  input  wire logic [1:0]      tbl_op_i,
  input  wire logic [15:0]     tbl_index_i,  // below NumRegions
  input  wire logic [15:0]     tbl_gen_i,
  input  wire logic [1:0]      tbl_kind_i,
  input  wire logic [1:0]      tbl_rights_i,
  input  wire logic [15:0]     tbl_domain_i,
  input  wire logic [63:0]     tbl_base_i,
  input  wire logic [63:0]     tbl_size_i,
  input  wire logic [1:0]      tbl_levels_i,
  input  wire logic [4:0]      tbl_shift_i,
  input  wire logic [31:0]     tbl_page_off_i,
  output      logic            tbl_done_o,
  output      logic            tbl_used_o,  // as it was found
  output      logic [15:0]     tbl_gen_o
);

  localparam int unsigned RegW = $clog2(NumRegions);
  localparam int unsigned EntryW = 16 + 2 + 2 + 16 + 64 + 64 + 2 + 5 + 32;
  localparam logic [1:0] TblSet = 2'd1;
  localparam logic [1:0] TblInval = 2'd2;
  localparam logic [1:0] TblInvalAll = 2'd3;

  logic [EntryW-1:0]     table_q [0:NumRegions-1];
  logic [NumRegions-1:0] used_q;

  // First stage: the slot is read.
  logic                  valid_q, tbl_q, onchip_q, entry_used_q;
  logic [1:0]            op_q;
  logic [31:0]           key_q;
  logic [63:0]           off_q, len_q;
  logic [15:0]           domain_q;
  logic [TagW-1:0]       tag_q;
  logic [EntryW-1:0]     entry_q;
  logic [RegW-1:0]       index;

  assign index = tbl_valid_i ? tbl_index_i[RegW-1:0] : in_key_i[RegW-1:0];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      tbl_q <= 1'b0;
    end else begin
      valid_q <= in_valid_i;
      tbl_q <= tbl_valid_i;
    end
    if (in_valid_i || tbl_valid_i) begin
      op_q <= in_op_i;
      onchip_q <= in_onchip_i;
      key_q <= in_key_i;
      off_q <= in_off_i;
      len_q <= in_len_i;
      domain_q <= in_domain_i;
      tag_q <= in_tag_i;
      entry_q <= table_q[index];
      entry_used_q <= used_q[index];
    end
  end

  logic [15:0] e_gen, e_domain;
  logic [1:0]  e_kind, e_rights, e_levels;
  logic [63:0] e_base, e_size;
  logic [4:0]  e_shift;
  logic [31:0] e_page_off;
  assign {e_gen, e_kind, e_rights, e_domain, e_base, e_size, e_levels, e_shift, e_page_off} =
         entry_q;

  // Second stage: the checks.
  logic [7:0] status;
  csrec_region_check #(
    .NumRegions(NumRegions)
  ) u_check (
    .key_i         (key_q),
    .domain_i      (domain_q),
    .write_i       (op_q == csrec_pkg::MEM_WRITE || op_q == csrec_pkg::MEM_CHECK_WR),
    .onchip_i      (onchip_q),
    .off_i         (off_q),
    .len_i         (len_q),
    .entry_used_i  (entry_used_q),
    .entry_gen_i   (e_gen),
    .entry_kind_i  (e_kind),
    .entry_rights_i(e_rights),
    .entry_domain_i(e_domain),
    .entry_size_i  (e_size),
    .status_o      (status)
  );

  always_ff @(posedge clk_i) begin
    out_valid_o <= rst_ni && valid_q;
    if (valid_q) begin
      out_status_o <= status;
      out_op_o <= op_q;
      out_kind_o <= e_kind;
      out_levels_o <= e_levels;
      out_shift_o <= e_shift;
      out_base_o <= e_levels == 2'd0 ? e_base + off_q : e_base;
      out_byte_o <= off_q + 64'(e_page_off);
      out_len_o <= len_q[12:0];
      out_tag_o <= tag_q;
    end
  end

  // Table operations
  logic tbl_after_q;
  always_ff @(posedge clk_i) begin
    tbl_after_q <= rst_ni && tbl_q;
    tbl_done_o <= rst_ni && tbl_after_q;
    if (tbl_q) begin
      tbl_used_o <= entry_used_q;
      tbl_gen_o <= e_gen;
      if (tbl_op_i == TblSet) begin
        table_q[tbl_index_i[RegW-1:0]] <= {tbl_gen_i, tbl_kind_i, tbl_rights_i, tbl_domain_i,
                                           tbl_base_i, tbl_size_i, tbl_levels_i, tbl_shift_i,
                                           tbl_page_off_i};
        used_q[tbl_index_i[RegW-1:0]] <= 1'b1;
      end
      if (tbl_op_i == TblInval) used_q[tbl_index_i[RegW-1:0]] <= 1'b0;
      if (tbl_op_i == TblInvalAll) used_q <= '0;
    end
    if (!rst_ni) used_q <= '0;
  end

  logic unused;
  assign unused = &{1'b0, tbl_index_i};

endmodule

`default_nettype wire
