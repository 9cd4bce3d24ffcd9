// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// In front of a compute engine: checks a descriptor command's body, fetches the
// descriptor once and hands the copy to the engine. The engine's completion is passed on
// as it is. start/abort/done as in rtl/README.md on both sides; one command at a time.

`default_nettype none

module csrec_desc #(
  parameter int unsigned DescBytes = 128
) (
  input  wire logic          clk_i,
  input  wire logic          rst_ni,

  input  wire logic          start_valid_i,
  output      logic          start_ready_o,
  input  wire logic [511:0]  start_cmd_i,
  input  wire logic [15:0]   start_domain_i,
  input  wire logic          abort_i,
  output      logic          done_valid_o,
  input  wire logic          done_ready_i,
  output      logic [7:0]    done_status_o,
  output      logic [15:0]   done_field_o,
  output      logic [63:0]   done_detail_o,

  // to the engine
  output      logic          desc_valid_o,
  input  wire logic          desc_ready_i,
  output      logic [1535:0] desc_o,
  output      logic [15:0]   desc_domain_o,
  output      logic          eng_abort_o,
  input  wire logic          eng_done_valid_i,
  output      logic          eng_done_ready_o,
  input  wire logic [7:0]    eng_done_status_i,
  input  wire logic [15:0]   eng_done_field_i,
  input  wire logic [63:0]   eng_done_detail_i,

  // mem client, reads only
  output      logic          req_valid_o,
  input  wire logic          req_ready_i,
  output      logic [31:0]   req_key_o,
  output      logic [63:0]   req_off_o,
  output      logic [63:0]   req_len_o,
  output      logic [15:0]   req_domain_o,
  input  wire logic          rd_valid_i,
  output      logic          rd_ready_o,
  input  wire logic [511:0]  rd_data_i,
  input  wire logic          rsp_valid_i,
  input  wire logic [7:0]    rsp_status_i
);

  localparam int unsigned BodyLsb = csrec_pkg::CMD_BODY_LSB;
  localparam int unsigned KeyLsb = BodyLsb + csrec_pkg::BODY_DESC_DESC_KEY_LSB;
  localparam int unsigned LenLsb = BodyLsb + csrec_pkg::BODY_DESC_DESC_LEN_LSB;
  localparam int unsigned OffLsb = BodyLsb + csrec_pkg::BODY_DESC_DESC_OFF_LSB;

  typedef enum logic [2:0] {
    StIdle,
    StCheck,
    StReq,
    StData,   // descriptor under way
    StEngine, // offered to the engine
    StRun,    // engine at work
    StDone
  } state_e;

  state_e        state_q;
  logic [31:0]   key_q, len_q;
  logic [63:0]   off_q;
  logic [15:0]   domain_q;
  logic [1535:0] desc_q;
  logic [1:0]    beat_q;
  logic [7:0]    status_q;
  logic [15:0]   field_q;
  logic [63:0]   detail_q;

  assign start_ready_o = state_q == StIdle;
  assign req_valid_o = state_q == StReq;
  assign req_key_o = key_q;
  assign req_off_o = off_q;
  assign req_len_o = 64'(DescBytes);
  assign req_domain_o = domain_q;
  assign rd_ready_o = state_q == StData;
  assign desc_valid_o = state_q == StEngine;
  assign desc_o = desc_q;
  assign desc_domain_o = domain_q;
  assign eng_abort_o = abort_i;
  assign eng_done_ready_o = state_q == StRun;
  assign done_valid_o = state_q == StDone;
  assign done_status_o = status_q;
  assign done_field_o = field_q;
  assign done_detail_o = detail_q;

  always_ff @(posedge clk_i) begin
    case (state_q)
      StIdle: begin
        if (start_valid_i) begin
          key_q <= start_cmd_i[KeyLsb+:32];
          len_q <= start_cmd_i[LenLsb+:32];
          off_q <= start_cmd_i[OffLsb+:64];
          domain_q <= start_domain_i;
          desc_q <= '0;
          beat_q <= '0;
          state_q <= StCheck;
        end
      end
      StCheck: begin
        if (len_q != DescBytes) begin
          status_q <= csrec_pkg::ST_BAD_LENGTH;
          field_q <= 16'(LenLsb / 8);
          detail_q <= 64'(len_q);
          state_q <= StDone;
        end else if (off_q[2:0] != '0) begin
          status_q <= csrec_pkg::ST_BAD_ALIGN;
          field_q <= 16'(OffLsb / 8);
          detail_q <= off_q;
          state_q <= StDone;
        end else begin
          state_q <= StReq;
        end
      end
      StReq: if (req_ready_i) state_q <= StData;
      StData: begin
        if (rd_valid_i) begin
          desc_q[512*beat_q+:512] <= rd_data_i;
          beat_q <= beat_q + 2'd1;
        end
        if (rsp_valid_i) begin
          status_q <= rsp_status_i;
          field_q <= 16'(KeyLsb / 8);
          detail_q <= 64'(key_q);
          if (rsp_status_i == csrec_pkg::ST_OUT_OF_BOUNDS) begin
            field_q <= 16'(OffLsb / 8);
            detail_q <= off_q;
          end
          if (rsp_status_i != csrec_pkg::ST_OK) begin
            state_q <= StDone;
          end else if (abort_i) begin
            status_q <= csrec_pkg::ST_ABORTED;
            field_q <= csrec_pkg::FIELD_NONE;
            detail_q <= '0;
            state_q <= StDone;
          end else begin
            state_q <= StEngine;
          end
        end
      end
      StEngine: if (desc_ready_i) state_q <= StRun;
      StRun: begin
        if (eng_done_valid_i) begin
          status_q <= eng_done_status_i;
          field_q <= eng_done_field_i;
          detail_q <= eng_done_detail_i;
          state_q <= StDone;
        end
      end
      StDone: if (done_ready_i) state_q <= StIdle;
      default: state_q <= StIdle;
    endcase
    if (!rst_ni) state_q <= StIdle;
  end

  logic unused;
  assign unused = &{1'b0, start_cmd_i};

endmodule

`default_nettype wire
