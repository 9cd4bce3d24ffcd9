// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// First in, first out. valid/ready on both sides; what enters can leave one cycle later. The
// memory is read combinationally: registers or LUT RAM.

`default_nettype none

module csrec_fifo #(
  parameter int unsigned Width = 1,
  parameter int unsigned Depth = 4  // power of two, from 2
) (
  input  wire logic             clk_i,
  input  wire logic             rst_ni,
  input  wire logic             in_valid_i,
  output      logic             in_ready_o,
  input  wire logic [Width-1:0] in_data_i,
  output      logic             out_valid_o,
  input  wire logic             out_ready_i,
  output      logic [Width-1:0] out_data_o
);

  localparam int unsigned PtrW = $clog2(Depth);

  logic [Width-1:0] mem_q [0:Depth-1];
  logic [PtrW-1:0]  put_q, get_q;
  logic [PtrW:0]    fill_q;
  logic             put, get;

  assign in_ready_o = !fill_q[PtrW];
  assign out_valid_o = fill_q != '0;
  assign out_data_o = mem_q[get_q];
  assign put = in_valid_i && in_ready_o;
  assign get = out_valid_o && out_ready_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      put_q <= '0;
      get_q <= '0;
      fill_q <= '0;
    end else begin
      if (put) put_q <= put_q + 1'b1;
      if (get) get_q <= get_q + 1'b1;
      fill_q <= fill_q + (PtrW+1)'(put) - (PtrW+1)'(get);
    end
    if (put) mem_q[put_q] <= in_data_i;
  end

endmodule

`default_nettype wire
