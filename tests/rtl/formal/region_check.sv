// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// csrec_region_check for all inputs. REFERENCE.md section 3 is written down here once more, in
// terms of bytes: any one byte of the request, and any one way to be refused.

`default_nettype none

module region_check (
  input wire logic        clk_i,
  input wire logic [31:0] key_i,
  input wire logic [15:0] domain_i,
  input wire logic        write_i,
  input wire logic        onchip_i,
  input wire logic [63:0] off_i,
  input wire logic [63:0] len_i,
  input wire logic        used_i,
  input wire logic [15:0] gen_i,
  input wire logic [1:0]  kind_i,
  input wire logic [1:0]  rights_i,
  input wire logic [15:0] owner_i,
  input wire logic [63:0] size_i,
  input wire logic [63:0] base_i,
  input wire logic [63:0] byte_i   // any, of the request
);

  logic [7:0] status;
  csrec_region_check #(
    .NumRegions(256)
  ) u_check (
    .key_i,
    .domain_i,
    .write_i,
    .onchip_i,
    .off_i,
    .len_i,
    .entry_used_i  (used_i),
    .entry_gen_i   (gen_i),
    .entry_kind_i  (kind_i),
    .entry_rights_i(rights_i),
    .entry_domain_i(owner_i),
    .entry_size_i  (size_i),
    .status_o      (status)
  );

  logic granted, fits;
  assign granted = key_i[15:8] == '0 && used_i && gen_i == key_i[31:16] && owner_i == domain_i &&
                   rights_i[write_i] && (!onchip_i || kind_i == 2'(csrec_pkg::REGION_ONCHIP));
  // without a sum that could wrap around
  assign fits = len_i <= size_i && off_i <= size_i - len_i;

  always_ff @(posedge clk_i) begin
    assert ((status == csrec_pkg::ST_OK) == (granted && fits));
    if (status == csrec_pkg::ST_OK && byte_i < len_i) begin
      assert (off_i + byte_i >= off_i && off_i + byte_i < size_i);
      // REGION_SET takes no region that wraps: its bytes are base and up
      if (base_i + size_i >= base_i) begin
        assert (base_i + off_i + byte_i >= base_i && base_i + off_i + byte_i < base_i + size_i);
      end
    end
    // Each refusal is the first that applies.
    case (status)
      csrec_pkg::ST_OK: begin
      end
      csrec_pkg::ST_BAD_KEY: begin
        assert (key_i[15:8] != '0);
      end
      csrec_pkg::ST_STALE_KEY: begin
        assert (key_i[15:8] == '0 && (!used_i || gen_i != key_i[31:16]));
      end
      csrec_pkg::ST_BAD_DOMAIN: begin
        assert (key_i[15:8] == '0 && used_i && gen_i == key_i[31:16] && owner_i != domain_i);
      end
      csrec_pkg::ST_BAD_RIGHTS: begin
        assert (key_i[15:8] == '0 && used_i && gen_i == key_i[31:16] && owner_i == domain_i &&
                !rights_i[write_i]);
      end
      csrec_pkg::ST_BAD_VALUE: begin
        assert (key_i[15:8] == '0 && used_i && gen_i == key_i[31:16] && owner_i == domain_i &&
                rights_i[write_i] && onchip_i && kind_i != 2'(csrec_pkg::REGION_ONCHIP));
      end
      csrec_pkg::ST_OUT_OF_BOUNDS: begin
        assert (granted && !fits);
      end
      default: begin
        assert (1'b0);
      end
    endcase
  end

endmodule

`default_nettype wire
