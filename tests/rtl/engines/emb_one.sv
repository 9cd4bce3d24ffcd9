// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// csrec_emb with its three mem client ports behind one, as the other engines have it: requests
// in a round robin, answers in the order of all requests. Less than csrec_mmu may do, and
// nothing it may not.

`default_nettype none

module emb_one #(
  parameter int unsigned MaxDim  = 256,
  parameter int unsigned MaxVecs = 64
) (
  input  wire           clk_i,
  input  wire           rst_ni,

  input  wire           desc_valid_i,
  output wire           desc_ready_o,
  input  wire  [1535:0] desc_i,
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

  wire   [2:0] req_valid;
  wire   [5:0] req_op;
  wire  [95:0] req_key;
  wire [191:0] req_off, req_len;
  wire   [1:0] rd_ready;
  logic  [1:0] pick, held_q, sel, at;
  logic        any, hold_q, known;

  // What was offered and not taken stays.
  assign sel          = hold_q ? held_q : pick;
  assign req_valid_o  = hold_q || any;
  assign req_op_o     = req_op[2*sel +: 2];
  assign req_onchip_o = 1'b0;
  assign req_key_o    = req_key[32*sel +: 32];
  assign req_off_o    = req_off[64*sel +: 64];
  assign req_len_o    = req_len[64*sel +: 64];
  assign rd_ready_o   = at == 2'd0 ? rd_ready[0] : rd_ready[1];

  wire go = req_valid_o && req_ready_i;
  always_ff @(posedge clk_i) begin
    hold_q <= rst_ni && req_valid_o && !req_ready_i;
    held_q <= sel;
  end

  csrec_rr #(.Num(3)) u_rr (
    .clk_i  (clk_i),
    .rst_ni (rst_ni),
    .req_i  (req_valid),
    .take_i (go),
    .any_o  (any),
    .pick_o (pick)
  );

  // Whose the requests are that are not answered
  wire room;
  csrec_fifo #(.Width(2), .Depth(128)) u_order (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni),
    .in_valid_i  (go),
    .in_ready_o  (room),
    .in_data_i   (sel),
    .out_valid_o (known),
    .out_ready_i (rsp_valid_i),
    .out_data_o  (at)
  );

  csrec_emb #(
    .MaxDim  (MaxDim),
    .MaxVecs (MaxVecs)
  ) u_emb (
    .clk_i           (clk_i),
    .rst_ni          (rst_ni),
    .desc_valid_i    (desc_valid_i),
    .desc_ready_o    (desc_ready_o),
    .desc_i          (desc_i),
    .desc_domain_i   (desc_domain_i),
    .abort_i         (abort_i),
    .done_valid_o    (done_valid_o),
    .done_ready_i    (done_ready_i),
    .done_status_o   (done_status_o),
    .done_field_o    (done_field_o),
    .done_detail_o   (done_detail_o),
    .req_domain_o    (req_domain_o),
    .rd_data_i       (rd_data_i),
    .rsp_status_i    (rsp_status_i),
    .row_req_valid_o (req_valid[0]),
    .row_req_ready_i (go && sel == 2'd0),
    .row_req_op_o    (req_op[1:0]),
    .row_req_key_o   (req_key[31:0]),
    .row_req_off_o   (req_off[63:0]),
    .row_req_len_o   (req_len[63:0]),
    .row_rd_valid_i  (rd_valid_i && at == 2'd0),
    .row_rd_ready_o  (rd_ready[0]),
    .row_rd_last_i   (rd_last_i),
    .row_rsp_valid_i (rsp_valid_i && at == 2'd0),
    .idx_req_valid_o (req_valid[1]),
    .idx_req_ready_i (go && sel == 2'd1),
    .idx_req_op_o    (req_op[3:2]),
    .idx_req_key_o   (req_key[63:32]),
    .idx_req_off_o   (req_off[127:64]),
    .idx_req_len_o   (req_len[127:64]),
    .idx_rd_valid_i  (rd_valid_i && at == 2'd1),
    .idx_rd_ready_o  (rd_ready[1]),
    .idx_rd_last_i   (rd_last_i),
    .idx_rsp_valid_i (rsp_valid_i && at == 2'd1),
    .out_req_valid_o (req_valid[2]),
    .out_req_ready_i (go && sel == 2'd2),
    .out_req_op_o    (req_op[5:4]),
    .out_req_key_o   (req_key[95:64]),
    .out_req_off_o   (req_off[191:128]),
    .out_req_len_o   (req_len[191:128]),
    .out_wr_valid_o  (wr_valid_o),
    .out_wr_ready_i  (wr_ready_i),
    .out_wr_data_o   (wr_data_o),
    .out_rsp_valid_i (rsp_valid_i && at == 2'd2),
    .rows_o          (rows_o)
  );

  logic unused;
  assign unused = &{1'b0, room, known};

endmodule

`default_nettype wire
