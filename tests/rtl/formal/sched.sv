// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// csrec_sched with everything around it free: any doorbells at any time, any memory, engines
// that answer when they like. Assumed is only that the first cycle is in reset, and that an
// engine is done with what was started, and holds that until it is taken. What is proved
// stands in csrec_sched.

`default_nettype none

module sched (
  input wire logic         clk_i,
  input wire logic         rst_ni,
  input wire logic         enable_i,
  input wire logic         disable_i,
  input wire logic [63:0]  asq_base_i,
  input wire logic [63:0]  acq_base_i,
  input wire logic [3:0]   aq_log2_i,
  input wire logic         db_valid_i,
  input wire logic [6:0]   db_queue_i,
  input wire logic [63:0]  db_value_i,
  input wire logic         msix_ready_i,
  input wire logic [4:0]   start_ready_i,
  input wire logic [4:0]   done_valid_i,
  input wire logic [39:0]  done_status_i,
  input wire logic [79:0]  done_field_i,
  input wire logic [319:0] done_detail_i,
  input wire logic         raw_ready_i,
  input wire logic         raw_rsp_valid_i,
  input wire logic         raw_rsp_err_i,
  input wire logic [511:0] raw_rdata_i,
  input wire logic         tbl_ready_i,
  input wire logic         tbl_rsp_valid_i,
  input wire logic         tbl_rsp_used_i,
  input wire logic [15:0]  tbl_rsp_gen_i
);

  logic [4:0] start_valid, done_ready, busy;

  csrec_sched #(
    .NumIoQueues(2),
    .NumRegions(2),
    .NumFences(2),
    .NumVectors(3),
    .OnchipBytes(4096),
    .MaxLog2Entries(12)
  ) u_sched (
    .clk_i,
    .rst_ni,
    .dram_size_i(64'd4096),
    .first_count_i(32'd0),
    .enable_i,
    .disable_i,
    .asq_base_i,
    .acq_base_i,
    .aq_log2_i,
    .db_valid_i,
    .db_queue_i,
    .db_value_i,
    .dbs_queue_i('0),
    .msix_ready_i,
    .start_valid_o(start_valid),
    .start_ready_i,
    .done_valid_i,
    .done_ready_o(done_ready),
    .done_status_i,
    .done_field_i,
    .done_detail_i,
    .raw_ready_i,
    .raw_rsp_valid_i,
    .raw_rsp_err_i,
    .raw_rdata_i,
    .tbl_ready_i,
    .tbl_rsp_valid_i,
    .tbl_rsp_used_i,
    .tbl_rsp_gen_i,
    .ev_unit_busy_o(busy)
  );

  logic       started_q = 1'b0;
  logic [4:0] at_work_q, held_q;
  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    assume (rst_ni == started_q);
    at_work_q <= rst_ni ? (at_work_q | (start_valid & start_ready_i)) & ~done_ready : '0;
    held_q <= rst_ni ? done_valid_i & ~done_ready : '0;
    assume ((done_valid_i & ~at_work_q) == '0);
    assume ((held_q & ~done_valid_i) == '0);
    if (rst_ni) begin
      assert (busy == at_work_q);
      assert ((done_ready & ~done_valid_i) == '0);
    end
  end

endmodule

`default_nettype wire
