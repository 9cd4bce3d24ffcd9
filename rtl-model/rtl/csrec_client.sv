// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// An engine's end of a mem client port (rtl/README.md): holds the request until it is
// taken, keeps at most Slots outstanding, and remembers by a tag what each was for.
//
// in_*: one request; its tag comes back as rd_tag_o while its data arrives and as
// rsp_tag_o with its response. The first response that is not OK is kept in fail_*
// until clear_i. idle_o: nothing is held or outstanding. What was accepted here goes
// to the MMU, whatever happens; an engine that stops waits for idle_o.
`default_nettype none

module csrec_client #(
  parameter int unsigned TagW  = 3,
  parameter int unsigned Slots = 4    // power of two; csrec_mmu takes 8 of most clients
) (
  input  wire             clk_i,
  input  wire             rst_ni,
  input  wire             clear_i,

  input  wire             in_valid_i,
  output wire             in_ready_o,
  input  wire       [1:0] in_op_i,
  input  wire             in_onchip_i,
  input  wire      [31:0] in_key_i,
  input  wire      [63:0] in_off_i,
  input  wire      [63:0] in_len_i,
  input  wire  [TagW-1:0] in_tag_i,

  output wire             req_valid_o,
  input  wire             req_ready_i,
  output wire       [1:0] req_op_o,
  output wire             req_onchip_o,
  output wire      [31:0] req_key_o,
  output wire      [63:0] req_off_o,
  output wire      [63:0] req_len_o,

  input  wire             rd_end_i,     // the last beat of a READ is being taken
  output wire  [TagW-1:0] rd_tag_o,
  input  wire             rsp_valid_i,
  input  wire       [7:0] rsp_status_i,
  output wire  [TagW-1:0] rsp_tag_o,

  output wire             write_taken_o,  // the MMU has taken a WRITE: offer its data
  output wire             idle_o,
  output wire             fail_o,
  output wire       [7:0] fail_status_o,
  output wire  [TagW-1:0] fail_tag_o
);

  localparam int unsigned W = $clog2(Slots);

  logic             valid_q;
  logic       [1:0] op_q;
  logic             onchip_q;
  logic      [31:0] key_q;
  logic      [63:0] off_q, len_q;

  // Tags of what is outstanding, and of the READs among it whose data is to come.
  logic   [TagW-1:0] tags_q [0:Slots-1];
  logic   [TagW-1:0] rd_tags_q [0:Slots-1];
  logic      [W-1:0] put_q, get_q, rd_put_q, rd_get_q;
  logic        [W:0] count_q;

  logic              fail_q;
  logic        [7:0] fail_status_q;
  logic   [TagW-1:0] fail_tag_q;

  assign in_ready_o    = !count_q[W] && (!valid_q || req_ready_i);
  assign rd_tag_o      = rd_tags_q[rd_get_q];
  assign rsp_tag_o     = tags_q[get_q];
  assign write_taken_o = valid_q && req_ready_i && op_q == csrec_pkg::MEM_WRITE;
  assign idle_o        = count_q == '0;
  assign fail_o        = fail_q;
  assign fail_status_o = fail_status_q;
  assign fail_tag_o    = fail_tag_q;

  assign req_valid_o   = valid_q;
  assign req_op_o      = op_q;
  assign req_onchip_o  = onchip_q;
  assign req_key_o     = key_q;
  assign req_off_o     = off_q;
  assign req_len_o     = len_q;

  wire put = in_valid_i && in_ready_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q  <= 1'b0;
      count_q  <= '0;
      put_q    <= '0;
      get_q    <= '0;
      rd_put_q <= '0;
      rd_get_q <= '0;
      fail_q   <= 1'b0;
    end else begin
      if (put) valid_q <= 1'b1;
      else if (req_ready_i) valid_q <= 1'b0;

      count_q <= count_q + (W+1)'(put) - (W+1)'(rsp_valid_i);
      if (put) put_q <= put_q + 1'b1;
      if (rsp_valid_i) get_q <= get_q + 1'b1;
      if (put && in_op_i == csrec_pkg::MEM_READ) rd_put_q <= rd_put_q + 1'b1;
      if (rd_end_i) rd_get_q <= rd_get_q + 1'b1;

      if (rsp_valid_i && rsp_status_i != csrec_pkg::ST_OK) fail_q <= 1'b1;
      if (clear_i) begin
        // a READ that failed may have left its entry behind
        fail_q   <= 1'b0;
        rd_get_q <= rd_put_q;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (put) begin
      op_q                        <= in_op_i;
      onchip_q                    <= in_onchip_i;
      key_q                       <= in_key_i;
      off_q                       <= in_off_i;
      len_q                       <= in_len_i;
      tags_q[put_q]               <= in_tag_i;
      if (in_op_i == csrec_pkg::MEM_READ) rd_tags_q[rd_put_q] <= in_tag_i;
    end
    if (rsp_valid_i && !fail_q) begin
      fail_status_q <= rsp_status_i;
      fail_tag_q    <= rsp_tag_o;
    end
  end

endmodule

`default_nettype wire
