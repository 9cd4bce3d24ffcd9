// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Walks the bags of EMB and TT: reads offsets, ids and weights and yields what is to be
// done, in order, as items:
//
//   row    to be added: id, weight (1.0 if there are none), whether it is its bag's
//          first or last
//   empty  a bag without ids
//   end    no more: all bags done, BAD_OFFSETS or BAD_ID, with the completion's detail.
//          It comes after all items that precede the offending word, and stays.
//
// start_i takes the parameters, which must stay, and begins anew; no READ may be
// outstanding then.
`default_nettype none

module csrec_bag_walk (
  input  wire          clk_i,
  input  wire          rst_ni,

  input  wire          start_i,
  input  wire   [31:0] nbags_i,
  input  wire   [31:0] nids_i,
  input  wire   [32:0] nrows_i,
  input  wire          weighted_i,
  input  wire   [63:0] ids_off_i,
  input  wire   [63:0] offsets_off_i,
  input  wire   [63:0] weights_off_i,

  output logic         req_valid_o,
  input  wire          req_ready_i,
  output logic   [1:0] req_sel_o,    // Sel*
  output logic  [63:0] req_off_o,
  output logic  [12:0] req_len_o,

  input  wire          beat_valid_i,
  input  wire    [1:0] beat_sel_i,
  input  wire  [511:0] beat_i,

  output logic         item_valid_o,
  input  wire          item_ready_i,
  output wire          item_empty_o,
  output wire          item_end_o,
  output wire          item_first_o,
  output wire          item_last_o,
  output wire   [31:0] item_id_o,
  output wire   [31:0] item_weight_o,
  output wire    [7:0] end_status_o,  // with item_end_o
  output wire   [63:0] end_detail_o
);

  localparam logic [1:0] SelOffsets = 2'd0;
  localparam logic [1:0] SelIds     = 2'd1;
  localparam logic [1:0] SelWeights = 2'd2;

  localparam logic [31:0] One = 32'h3f800000;

  typedef enum logic [1:0] {StFirst, StBag, StIds, StEnd} state_e;
  state_e       state_q;
  logic  [31:0] bag_q;     // bag being walked
  logic  [31:0] first_q;   // offsets[0]
  logic  [31:0] from_q;    // offsets[bag]
  logic  [31:0] to_q;      // offsets[bag + 1], in StIds
  logic  [31:0] pos_q;     // next id, in StIds
  logic   [7:0] status_q;
  logic  [63:0] detail_q;

  wire          offs_valid, ids_valid, weights_valid;
  wire   [31:0] offs, id, weight;
  logic         offs_ready, ids_ready;

  // Words come in StFirst and StBag from offsets, in StIds from ids and weights.
  wire          word_valid = ids_valid && (!weighted_i || weights_valid);
  wire          bag_ok     = offs >= from_q && offs <= nids_i;
  wire          id_ok      = {1'b0, id} < nrows_i;
  wire          take_first = state_q == StFirst && offs_valid;
  wire   [31:0] count      = offs <= nids_i ? nids_i - offs : '0;

  always_comb begin
    item_valid_o = 1'b0;
    offs_ready   = 1'b0;
    ids_ready    = 1'b0;
    unique case (state_q)
      StFirst: offs_ready = 1'b1;
      StBag: begin
        item_valid_o = bag_q != nbags_i && offs_valid && bag_ok && offs == from_q;
        offs_ready   = offs != from_q || item_ready_i;
      end
      StIds: begin
        item_valid_o = word_valid && id_ok;
        ids_ready    = item_ready_i && word_valid;
      end
      default: item_valid_o = 1'b1;
    endcase
  end

  assign item_empty_o  = state_q == StBag;
  assign item_end_o    = state_q == StEnd;
  assign item_first_o  = pos_q == from_q;
  assign item_last_o   = pos_q + 32'd1 == to_q;
  assign item_id_o     = id;
  assign item_weight_o = weighted_i ? weight : One;
  assign end_status_o  = status_q;
  assign end_detail_o  = detail_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) begin
      // After reset the streams have nothing, so StFirst waits for start_i.
      state_q <= StFirst;
      bag_q   <= '0;
    end else begin
      unique case (state_q)
        StFirst: if (offs_valid) begin
          first_q <= offs;
          from_q  <= offs;
          state_q <= StBag;
        end
        StBag: begin
          if (bag_q == nbags_i) begin
            status_q <= csrec_pkg::ST_OK;
            detail_q <= {32'd0, from_q - first_q};
            state_q  <= StEnd;
          end else if (offs_valid && !bag_ok) begin
            status_q <= csrec_pkg::ST_BAD_OFFSETS;
            detail_q <= {32'd0, bag_q};
            state_q  <= StEnd;
          end else if (offs_valid && offs != from_q) begin
            to_q    <= offs;
            pos_q   <= from_q;
            state_q <= StIds;
          end else if (offs_valid && item_ready_i) begin
            bag_q <= bag_q + 32'd1;
          end
        end
        StIds: begin
          if (word_valid && !id_ok) begin
            status_q <= csrec_pkg::ST_BAD_ID;
            detail_q <= {32'd0, pos_q};
            state_q  <= StEnd;
          end else if (word_valid && item_ready_i) begin
            pos_q <= pos_q + 32'd1;
            if (item_last_o) begin
              from_q  <= to_q;
              bag_q   <= bag_q + 32'd1;
              state_q <= StBag;
            end
          end
        end
        default: ;
      endcase
    end
  end

  // The three arrays. Ids and weights start at offsets[0], once that is known.
  wire   [2:0] ask;
  logic  [2:0] grant;
  wire  [63:0] ask_off_offs, ask_off_ids, ask_off_weights;
  wire  [12:0] ask_len_offs, ask_len_ids, ask_len_weights;

  always_comb begin
    grant       = '0;
    req_valid_o = ask != '0 && state_q != StEnd;
    if (ask[0]) begin
      req_sel_o = SelOffsets;
      req_off_o = ask_off_offs;
      req_len_o = ask_len_offs;
      grant[0]  = req_ready_i && req_valid_o;
    end else if (ask[1]) begin
      req_sel_o = SelIds;
      req_off_o = ask_off_ids;
      req_len_o = ask_len_ids;
      grant[1]  = req_ready_i && req_valid_o;
    end else begin
      req_sel_o = SelWeights;
      req_off_o = ask_off_weights;
      req_len_o = ask_len_weights;
      grant[2]  = req_ready_i && req_valid_o;
    end
  end

  csrec_stream u_offsets (
    .clk_i        (clk_i),
    .rst_ni       (rst_ni),
    .start_i      (start_i),
    .off_i        (offsets_off_i),
    .count_i      ({1'b0, nbags_i} + 33'd1),
    .req_valid_o  (ask[0]),
    .req_ready_i  (grant[0]),
    .req_off_o    (ask_off_offs),
    .req_len_o    (ask_len_offs),
    .beat_valid_i (beat_valid_i && beat_sel_i == SelOffsets),
    .beat_i       (beat_i),
    .out_valid_o  (offs_valid),
    .out_ready_i  (offs_ready),
    .out_o        (offs)
  );

  csrec_stream u_ids (
    .clk_i        (clk_i),
    .rst_ni       (rst_ni),
    .start_i      (start_i || take_first),
    .off_i        (ids_off_i + {30'd0, offs, 2'd0}),
    .count_i      (start_i ? '0 : {1'b0, count}),
    .req_valid_o  (ask[1]),
    .req_ready_i  (grant[1]),
    .req_off_o    (ask_off_ids),
    .req_len_o    (ask_len_ids),
    .beat_valid_i (beat_valid_i && beat_sel_i == SelIds),
    .beat_i       (beat_i),
    .out_valid_o  (ids_valid),
    .out_ready_i  (ids_ready),
    .out_o        (id)
  );

  csrec_stream u_weights (
    .clk_i        (clk_i),
    .rst_ni       (rst_ni),
    .start_i      (start_i || take_first),
    .off_i        (weights_off_i + {30'd0, offs, 2'd0}),
    .count_i      (start_i || !weighted_i ? '0 : {1'b0, count}),
    .req_valid_o  (ask[2]),
    .req_ready_i  (grant[2]),
    .req_off_o    (ask_off_weights),
    .req_len_o    (ask_len_weights),
    .beat_valid_i (beat_valid_i && beat_sel_i == SelWeights),
    .beat_i       (beat_i),
    .out_valid_o  (weights_valid),
    .out_ready_i  (ids_ready),
    .out_o        (weight)
  );

endmodule

`default_nettype wire
