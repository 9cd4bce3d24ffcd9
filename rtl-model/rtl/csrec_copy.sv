// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// COPY and FILL. Checks lengths, alignment and both regions for the whole length, then
// works in chunks of up to 4 KiB: read one into the buffer, write it. The mem port packs
// bytes, so source and destination alignment do not matter here.
// start/abort/done and mem client as in rtl/README.md.

`default_nettype none

module csrec_copy (
  input  wire logic         clk_i,
  input  wire logic         rst_ni,

  input  wire logic         start_valid_i,
  output      logic         start_ready_o,
  input  wire logic [511:0] start_cmd_i,
  input  wire logic [15:0]  start_domain_i,
  input  wire logic         abort_i,
  output      logic         done_valid_o,
  input  wire logic         done_ready_i,
  output      logic [7:0]   done_status_o,
  output      logic [15:0]  done_field_o,
  output      logic [63:0]  done_detail_o,

  output      logic         req_valid_o,
  input  wire logic         req_ready_i,
  output      logic [1:0]   req_op_o,
  output      logic [31:0]  req_key_o,
  output      logic [63:0]  req_off_o,
  output      logic [63:0]  req_len_o,
  output      logic [15:0]  req_domain_o,
  input  wire logic         rd_valid_i,
  output      logic         rd_ready_o,
  input  wire logic [511:0] rd_data_i,
  output      logic         wr_valid_o,
  input  wire logic         wr_ready_i,
  output      logic [511:0] wr_data_o,
  input  wire logic         rsp_valid_i,
  input  wire logic [7:0]   rsp_status_i
);

  localparam int unsigned BodyLsb = csrec_pkg::CMD_BODY_LSB;
  localparam int unsigned SrcKeyLsb = BodyLsb + csrec_pkg::BODY_COPY_SRC_KEY_LSB;
  localparam int unsigned DstKeyLsb = BodyLsb + csrec_pkg::BODY_COPY_DST_KEY_LSB;
  localparam int unsigned SrcOffLsb = BodyLsb + csrec_pkg::BODY_COPY_SRC_OFF_LSB;
  localparam int unsigned DstOffLsb = BodyLsb + csrec_pkg::BODY_COPY_DST_OFF_LSB;
  localparam int unsigned LenLsb = BodyLsb + csrec_pkg::BODY_COPY_LEN_LSB;
  localparam int unsigned PatternLsb = BodyLsb + csrec_pkg::BODY_COPY_PATTERN_LSB;

  typedef enum logic [2:0] {
    StIdle,
    StValues,
    StReq,   // request op_q offered to the MMU
    StRsp,   // its data and answer under way
    StDone
  } state_e;

  state_e       state_q;
  logic [1:0]   op_q;
  logic         fill_q;
  logic [31:0]  src_key_q, dst_key_q, pattern_q;
  logic [63:0]  src_off_q, dst_off_q, len_q;  // of what is still to do
  logic [63:0]  total_q;
  logic [15:0]  domain_q;
  logic [5:0]   beat_q;
  logic [7:0]   status_q;
  logic [15:0]  field_q;
  logic [63:0]  detail_q;

  logic [511:0] buf_q [0:63];

  logic src;  // the request is about the source
  logic [12:0] chunk;
  assign src = op_q == csrec_pkg::MEM_CHECK_RD || op_q == csrec_pkg::MEM_READ;
  assign chunk = len_q < 64'(csrec_pkg::MEM_MAX_LEN) ? len_q[12:0]
                                                     : 13'(csrec_pkg::MEM_MAX_LEN);

  assign start_ready_o = state_q == StIdle;
  assign req_valid_o = state_q == StReq;
  assign req_op_o = op_q;
  assign req_key_o = src ? src_key_q : dst_key_q;
  assign req_off_o = src ? src_off_q : dst_off_q;
  assign req_len_o = op_q == csrec_pkg::MEM_CHECK_RD || op_q == csrec_pkg::MEM_CHECK_WR ?
                     len_q : 64'(chunk);
  assign req_domain_o = domain_q;
  assign rd_ready_o = state_q == StRsp;
  assign wr_valid_o = state_q == StRsp && op_q == csrec_pkg::MEM_WRITE;
  assign wr_data_o = fill_q ? {16{pattern_q}} : buf_q[beat_q];
  assign done_valid_o = state_q == StDone;
  assign done_status_o = status_q;
  assign done_field_o = field_q;
  assign done_detail_o = detail_q;

  always_ff @(posedge clk_i) begin
    case (state_q)
      StIdle: begin
        if (start_valid_i) begin
          fill_q <= start_cmd_i[7:0] == csrec_pkg::OP_FILL;
          src_key_q <= start_cmd_i[SrcKeyLsb+:32];
          dst_key_q <= start_cmd_i[DstKeyLsb+:32];
          src_off_q <= start_cmd_i[SrcOffLsb+:64];
          dst_off_q <= start_cmd_i[DstOffLsb+:64];
          len_q <= start_cmd_i[LenLsb+:64];
          total_q <= start_cmd_i[LenLsb+:64];
          pattern_q <= start_cmd_i[PatternLsb+:32];
          domain_q <= start_domain_i;
          state_q <= StValues;
        end
      end
      StValues: begin
        op_q <= fill_q ? csrec_pkg::MEM_CHECK_WR : csrec_pkg::MEM_CHECK_RD;
        state_q <= StReq;
        if (fill_q && dst_off_q[1:0] != '0) begin
          status_q <= csrec_pkg::ST_BAD_ALIGN;
          field_q <= 16'(DstOffLsb / 8);
          detail_q <= dst_off_q;
          state_q <= StDone;
        end else if (len_q == '0 || (fill_q && len_q[1:0] != '0)) begin
          status_q <= len_q == '0 ? csrec_pkg::ST_BAD_LENGTH : csrec_pkg::ST_BAD_ALIGN;
          field_q <= 16'(LenLsb / 8);
          detail_q <= len_q;
          state_q <= StDone;
        end
      end
      StReq: begin
        beat_q <= '0;
        if (req_ready_i) state_q <= StRsp;
      end
      StRsp: begin
        if (rd_valid_i) begin
          buf_q[beat_q] <= rd_data_i;
          beat_q <= beat_q + 6'd1;
        end
        if (wr_valid_o && wr_ready_i) beat_q <= beat_q + 6'd1;
        if (rsp_valid_i && rsp_status_i != csrec_pkg::ST_OK) begin
          status_q <= rsp_status_i;
          if (rsp_status_i == csrec_pkg::ST_OUT_OF_BOUNDS) begin
            field_q <= src ? 16'(SrcOffLsb / 8) : 16'(DstOffLsb / 8);
            detail_q <= src ? src_off_q : dst_off_q;
          end else begin
            field_q <= src ? 16'(SrcKeyLsb / 8) : 16'(DstKeyLsb / 8);
            detail_q <= src ? 64'(src_key_q) : 64'(dst_key_q);
          end
          state_q <= StDone;
        end else if (rsp_valid_i) begin
          state_q <= StReq;
          case (op_q)
            csrec_pkg::MEM_CHECK_RD: op_q <= csrec_pkg::MEM_CHECK_WR;
            csrec_pkg::MEM_READ: op_q <= csrec_pkg::MEM_WRITE;
            default: op_q <= fill_q ? csrec_pkg::MEM_WRITE : csrec_pkg::MEM_READ;
          endcase
          if (op_q == csrec_pkg::MEM_WRITE) begin
            src_off_q <= src_off_q + 64'(chunk);
            dst_off_q <= dst_off_q + 64'(chunk);
            len_q <= len_q - 64'(chunk);
          end
          if (op_q == csrec_pkg::MEM_WRITE && len_q == 64'(chunk)) begin
            status_q <= csrec_pkg::ST_OK;
            field_q <= '0;
            detail_q <= total_q;
            state_q <= StDone;
          end else if (abort_i) begin
            status_q <= csrec_pkg::ST_ABORTED;
            field_q <= csrec_pkg::FIELD_NONE;
            detail_q <= '0;
            state_q <= StDone;
          end
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
