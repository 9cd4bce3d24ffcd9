// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Prints csrec_pkg.sv from <linux/csrec_hw.h>, so that the layouts stand in one
 * place. consts.inc holds one CONST() line for every constant of that header (the
 * Makefile extracts it). Structures are listed here field by field; a list that
 * leaves a hole in its structure does not compile.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <linux/csrec_hw.h>

/* X(field) for each field, in order */
#define FIELDS_cmd(X) X(opcode) X(flags) X(cid) X(rsvd4) X(body)
#define FIELDS_body_desc(X) X(desc_key) X(desc_len) X(desc_off) X(rsvd16)
#define FIELDS_body_copy(X) X(src_key) X(dst_key) X(src_off) X(dst_off) X(len) X(pattern) \
	X(rsvd44) X(rsvd48)
#define FIELDS_body_fence(X) X(fence_key) X(rsvd4) X(value) X(rsvd16)
#define FIELDS_body_fence_set(X) X(fence_key) X(domain) X(rsvd6) X(value) X(rsvd16)
#define FIELDS_body_queue(X) X(qid) X(log2_entries) X(rsvd3) X(vector) X(domain) X(sq_base) \
	X(cq_base) X(irq_count) X(qflags) X(irq_cycles) X(rsvd32)
#define FIELDS_body_region(X) X(region_key) X(kind) X(rights) X(domain) X(base) X(size) \
	X(levels) X(page_shift) X(rsvd26) X(page_off) X(rsvd32)
#define FIELDS_cqe(X) X(cid) X(status) X(field) X(sq_head) X(detail)
#define FIELDS_emb_desc(X) X(flags) X(dim) X(dtype) X(rsvd7) X(nbags) X(nids) X(nrows) \
	X(row_stride) X(out_stride) X(table_key) X(ids_key) X(offsets_key) X(weights_key) \
	X(out_key) X(rsvd52) X(table_off) X(ids_off) X(offsets_off) X(weights_off) X(out_off) \
	X(rsvd96)
#define FIELDS_tt_desc(X) X(flags) X(nbags) X(nids) X(p) X(q) X(r) X(rsvd34) X(out_stride) \
	X(nrows) X(core_key) X(ids_key) X(offsets_key) X(weights_key) X(out_key) X(rsvd76) \
	X(core_off) X(ids_off) X(offsets_off) X(weights_off) X(out_off) X(rsvd136)
#define FIELDS_interact_desc(X) X(flags) X(op) X(rsvd5) X(nvec) X(dim) X(rsvd10) X(batch) \
	X(in_key) X(out_key) X(in_off) X(out_off) X(vec_stride) X(in_stride) X(out_stride) \
	X(rsvd52) X(rsvd56)
#define FIELDS_mlp_desc(X) X(flags) X(batch) X(in_dim) X(out_dim) X(act) X(dtype) X(rsvd14) \
	X(x_key) X(w_key) X(bias_key) X(y_key) X(x_off) X(w_off) X(bias_off) X(y_off) \
	X(x_stride) X(w_stride) X(y_stride) X(rsvd76) X(rsvd80)

#define STRUCTS(S) S(cmd) S(body_desc) S(body_copy) S(body_fence) S(body_fence_set) \
	S(body_queue) S(body_region) S(cqe) S(emb_desc) S(tt_desc) S(interact_desc) S(mlp_desc)

struct field {
	const char *name;
	size_t off, size;
};

#define SIZEOF(s, f) sizeof(((struct csrec_##s *)0)->f)
#define PLUS_cmd(f) + SIZEOF(cmd, f)
#define PLUS_body_desc(f) + SIZEOF(body_desc, f)
#define PLUS_body_copy(f) + SIZEOF(body_copy, f)
#define PLUS_body_fence(f) + SIZEOF(body_fence, f)
#define PLUS_body_fence_set(f) + SIZEOF(body_fence_set, f)
#define PLUS_body_queue(f) + SIZEOF(body_queue, f)
#define PLUS_body_region(f) + SIZEOF(body_region, f)
#define PLUS_cqe(f) + SIZEOF(cqe, f)
#define PLUS_emb_desc(f) + SIZEOF(emb_desc, f)
#define PLUS_tt_desc(f) + SIZEOF(tt_desc, f)
#define PLUS_interact_desc(f) + SIZEOF(interact_desc, f)
#define PLUS_mlp_desc(f) + SIZEOF(mlp_desc, f)

/* The listed fields cover the structure: nothing forgotten, no padding. */
#define COVERED(s) \
	_Static_assert(0 FIELDS_##s(PLUS_##s) == sizeof(struct csrec_##s), \
		       "fields of struct csrec_" #s " do not add up to its size");
STRUCTS(COVERED)

_Static_assert(sizeof(struct csrec_cmd) == 64, "struct csrec_cmd");
_Static_assert(sizeof(struct csrec_cqe) == 16, "struct csrec_cqe");

#define ROW(s, f) { #f, offsetof(struct csrec_##s, f), SIZEOF(s, f) },
#define ROW_cmd(f) ROW(cmd, f)
#define ROW_body_desc(f) ROW(body_desc, f)
#define ROW_body_copy(f) ROW(body_copy, f)
#define ROW_body_fence(f) ROW(body_fence, f)
#define ROW_body_fence_set(f) ROW(body_fence_set, f)
#define ROW_body_queue(f) ROW(body_queue, f)
#define ROW_body_region(f) ROW(body_region, f)
#define ROW_cqe(f) ROW(cqe, f)
#define ROW_emb_desc(f) ROW(emb_desc, f)
#define ROW_tt_desc(f) ROW(tt_desc, f)
#define ROW_interact_desc(f) ROW(interact_desc, f)
#define ROW_mlp_desc(f) ROW(mlp_desc, f)

#define TABLE(s) static const struct field fields_##s[] = { FIELDS_##s(ROW_##s) };
STRUCTS(TABLE)

static const struct {
	const char *name;
	unsigned long long value;
} consts[] = {
#define CONST(name) { #name, name },
#include "consts.inc"
};

/* Constants that are compared with a signal get that signal's width. */
static const struct {
	const char *prefix;
	unsigned int bits;
} widths[] = {
	{ "REG_", 20 }, { "OP_", 8 }, { "ST_COUNT", 0 }, { "ST_", 8 }, { "FIELD_", 16 },
	{ "CMD_F_", 8 }, { "QUEUE_HW_F_", 16 }, { "REGION_", 8 }, { "RIGHT_", 8 }, { "FATAL_", 8 }, { "DTYPE_", 8 },
	{ "ACT_", 8 }, { "INTERACT_F_", 32 }, { "INTERACT_", 8 }, { "EMB_F_", 32 },
	{ "TT_F_", 32 }, { "MLP_F_", 32 }, { "ID_MAGIC", 32 }, { "FP_", 4 },
};

static unsigned int width_of(const char *name)
{
	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
		if (!strncmp(name, widths[i].prefix, strlen(widths[i].prefix)))
			return widths[i].bits;
	return 0;
}

static void print_upper(const char *s)
{
	for (; *s; s++)
		putchar(*s >= 'a' && *s <= 'z' ? *s - 'a' + 'A' : *s);
}

static void print_struct(const char *name, const struct field *f, size_t n, size_t size)
{
	printf("\n  // struct csrec_%s: %zu bytes\n  localparam int unsigned ", name, size);
	print_upper(name);
	printf("_BYTES = %zu;\n", size);
	for (size_t i = 0; i < n; i++) {
		printf("  localparam int unsigned ");
		print_upper(name);
		putchar('_');
		print_upper(f[i].name);
		printf("_LSB = %zu;\n  localparam int unsigned ", f[i].off * 8);
		print_upper(name);
		putchar('_');
		print_upper(f[i].name);
		printf("_W = %zu;\n", f[i].size * 8);
	}
}

int main(void)
{
	printf("// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause\n"
	       "// Generated from linux/csrec_hw.h by rtl-model/gen. Do not edit.\n"
	       "//\n"
	       "// Constants keep their names without the CSREC_ prefix. A structure's field has\n"
	       "// its first bit (_LSB, byte 0 of the structure in bits 7:0) and its width (_W; for\n"
	       "// an array that of all its elements).\n"
	       "/* verilator lint_off UNUSEDPARAM */\n"
	       "package csrec_pkg;\n\n");
	for (size_t i = 0; i < sizeof(consts) / sizeof(consts[0]); i++) {
		const char *name = consts[i].name + strlen("CSREC_");
		unsigned int bits = width_of(name);

		if (bits)
			printf("  localparam logic [%u:0] %s = %u'h%llx;\n", bits - 1, name, bits,
			       consts[i].value);
		else
			printf("  localparam int unsigned %s = 32'h%llx;\n", name,
			       consts[i].value);
	}
#define PRINT(s) print_struct(#s, fields_##s, sizeof(fields_##s) / sizeof(fields_##s[0]), \
			      sizeof(struct csrec_##s));
	STRUCTS(PRINT)
	printf("\n"
	       "  // Not in the header: conventions between the modules, see rtl/README.md\n"
	       "  localparam logic [1:0] MEM_CHECK_RD = 2'd0;\n"
	       "  localparam logic [1:0] MEM_READ = 2'd1;\n"
	       "  localparam logic [1:0] MEM_WRITE = 2'd2;\n"
	       "  localparam logic [1:0] MEM_CHECK_WR = 2'd3;\n"
	       "  localparam int unsigned MEM_MAX_LEN = 32'd4096;\n"
	       "  // Cycles through csrec_fp_mul and csrec_fp_add, and through csrec_dot: one\n"
	       "  // multiplication, the accumulating addition, three additions of the tree, and\n"
	       "  // a register at either end.\n"
	       "  localparam int unsigned FP_LAT = 32'd4;\n"
	       "  localparam int unsigned DOT_LAT = 5 * FP_LAT + 2;\n"
	       "\nendpackage\n"
	       "/* verilator lint_on UNUSEDPARAM */\n");
	return 0;
}
