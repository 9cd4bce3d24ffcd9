// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// May this request touch this region? The checks of REFERENCE.md section 3, in their order,
// of one request against the table entry at its key's index. Combinational; ST_OK or the
// status the request ends with.

`default_nettype none

module csrec_region_check #(
  parameter int unsigned NumRegions = 256
) (
  // the request
  input  wire logic [31:0] key_i,
  input  wire logic [15:0] domain_i,
  input  wire logic        write_i,   // else it reads
  input  wire logic        onchip_i,  // the region must be ONCHIP
  input  wire logic [63:0] off_i,
  input  wire logic [63:0] len_i,

  // the entry at key_i's index, of no interest if that is NumRegions or more
  input  wire logic        entry_used_i,
  input  wire logic [15:0] entry_gen_i,
  input  wire logic [1:0]  entry_kind_i,
  input  wire logic [1:0]  entry_rights_i,
  input  wire logic [15:0] entry_domain_i,
  input  wire logic [63:0] entry_size_i,

  output      logic [7:0]  status_o
);

  logic [64:0] past;
  assign past = {1'b0, off_i} + {1'b0, len_i};

  always_comb begin
    status_o = csrec_pkg::ST_OK;
    if (32'(key_i[15:0]) >= NumRegions) status_o = csrec_pkg::ST_BAD_KEY;
    else if (!entry_used_i || entry_gen_i != key_i[31:16]) status_o = csrec_pkg::ST_STALE_KEY;
    else if (entry_domain_i != domain_i) status_o = csrec_pkg::ST_BAD_DOMAIN;
    else if (!(write_i ? entry_rights_i[1] : entry_rights_i[0])) begin
      status_o = csrec_pkg::ST_BAD_RIGHTS;
    end else if (onchip_i && entry_kind_i != csrec_pkg::REGION_ONCHIP[1:0]) begin
      status_o = csrec_pkg::ST_BAD_VALUE;
    end else if (past > {1'b0, entry_size_i}) status_o = csrec_pkg::ST_OUT_OF_BOUNDS;
  end

endmodule

`default_nettype wire
