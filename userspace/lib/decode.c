// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Completions in words. */
#include <stdio.h>
#include "private.h"

struct field {
	uint16_t off;
	const char *name;
};

static const char *const status_names[CSREC_ST_COUNT] = {
	[CSREC_ST_OK]		 = "OK",
	[CSREC_ST_BAD_OPCODE]	 = "BAD_OPCODE",
	[CSREC_ST_BAD_FLAGS]	 = "BAD_FLAGS",
	[CSREC_ST_RESERVED]	 = "RESERVED",
	[CSREC_ST_BAD_LENGTH]	 = "BAD_LENGTH",
	[CSREC_ST_BAD_ALIGN]	 = "BAD_ALIGN",
	[CSREC_ST_BAD_VALUE]	 = "BAD_VALUE",
	[CSREC_ST_BAD_KEY]	 = "BAD_KEY",
	[CSREC_ST_STALE_KEY]	 = "STALE_KEY",
	[CSREC_ST_BAD_DOMAIN]	 = "BAD_DOMAIN",
	[CSREC_ST_BAD_RIGHTS]	 = "BAD_RIGHTS",
	[CSREC_ST_OUT_OF_BOUNDS] = "OUT_OF_BOUNDS",
	[CSREC_ST_BAD_OFFSETS]	 = "BAD_OFFSETS",
	[CSREC_ST_BAD_ID]	 = "BAD_ID",
	[CSREC_ST_BUS_ERROR]	 = "BUS_ERROR",
	[CSREC_ST_ABORTED]	 = "ABORTED",
	[CSREC_ST_BAD_QUEUE]	 = "BAD_QUEUE",
};

#define END { 0, NULL }

/* The head, and for commands without a body the whole body. */
#define F(m) { offsetof(struct csrec_cmd, m), #m }
static const struct field head_fields[] = {
	F(opcode), F(flags), F(cid), F(rsvd4), END
};

static const struct field plain_fields[] = { F(body), END };
#undef F

#define BODY(s, m) { offsetof(struct csrec_cmd, body) + offsetof(struct s, m), #m }
#define F(m) BODY(csrec_body_desc, m)
static const struct field desc_fields[] = {
	F(desc_key), F(desc_len), F(desc_off), F(rsvd16), END
};
#undef F

#define F(m) BODY(csrec_body_copy, m)
static const struct field copy_fields[] = {
	F(src_key), F(dst_key), F(src_off), F(dst_off), F(len), F(pattern), F(rsvd44),
	F(rsvd48), END
};
#undef F

#define F(m) BODY(csrec_body_fence, m)
static const struct field fence_fields[] = {
	F(fence_key), F(rsvd4), F(value), F(rsvd16), END
};
#undef F

#define F(m) { offsetof(struct csrec_emb_desc, m), #m }
static const struct field emb_fields[] = {
	F(flags), F(dim), F(dtype), F(rsvd7), F(nbags), F(nids), F(nrows), F(row_stride),
	F(out_stride), F(table_key), F(ids_key), F(offsets_key), F(weights_key), F(out_key),
	F(rsvd52), F(table_off), F(ids_off), F(offsets_off), F(weights_off), F(out_off),
	F(rsvd96), END
};
#undef F

#define F(m) { offsetof(struct csrec_tt_desc, m), #m }
static const struct field tt_fields[] = {
	F(flags), F(nbags), F(nids), F(p[0]), F(p[1]), F(p[2]), F(q[0]), F(q[1]), F(q[2]),
	F(r[0]), F(r[1]), F(rsvd34), F(out_stride), F(nrows), F(core_key[0]), F(core_key[1]),
	F(core_key[2]), F(ids_key), F(offsets_key), F(weights_key), F(out_key), F(rsvd76),
	F(core_off[0]), F(core_off[1]), F(core_off[2]), F(ids_off), F(offsets_off),
	F(weights_off), F(out_off), F(rsvd136), END
};
#undef F

#define F(m) { offsetof(struct csrec_interact_desc, m), #m }
static const struct field interact_fields[] = {
	F(flags), F(op), F(rsvd5), F(nvec), F(dim), F(rsvd10), F(batch), F(in_key), F(out_key),
	F(in_off), F(out_off), F(vec_stride), F(in_stride), F(out_stride), F(rsvd52),
	F(rsvd56), END
};
#undef F

#define F(m) { offsetof(struct csrec_mlp_desc, m), #m }
static const struct field mlp_fields[] = {
	F(flags), F(batch), F(in_dim), F(out_dim), F(act), F(dtype), F(rsvd14), F(x_key),
	F(w_key), F(bias_key), F(y_key), F(x_off), F(w_off), F(bias_off), F(y_off),
	F(x_stride), F(w_stride), F(y_stride), F(rsvd76), F(rsvd80), END
};
#undef F

static const struct opcode {
	const char *name;
	const struct field *body;
	const struct field *desc;
} opcodes[256] = {
	[CSREC_OP_NOP]		= { "NOP", plain_fields, NULL },
	[CSREC_OP_COPY]		= { "COPY", copy_fields, NULL },
	[CSREC_OP_FILL]		= { "FILL", copy_fields, NULL },
	[CSREC_OP_FENCE]	= { "FENCE", plain_fields, NULL },
	[CSREC_OP_SIGNAL]	= { "SIGNAL", fence_fields, NULL },
	[CSREC_OP_WAIT]		= { "WAIT", fence_fields, NULL },
	[CSREC_OP_EMB]		= { "EMB", desc_fields, emb_fields },
	[CSREC_OP_TT]		= { "TT", desc_fields, tt_fields },
	[CSREC_OP_INTERACT]	= { "INTERACT", desc_fields, interact_fields },
	[CSREC_OP_MLP]		= { "MLP", desc_fields, mlp_fields },
	/* an I/O queue refuses these by opcode, so no other field comes up */
	[CSREC_OP_QUEUE_CREATE]	= { "QUEUE_CREATE", NULL, NULL },
	[CSREC_OP_QUEUE_DELETE]	= { "QUEUE_DELETE", NULL, NULL },
	[CSREC_OP_REGION_SET]	= { "REGION_SET", NULL, NULL },
	[CSREC_OP_REGION_INVAL]	= { "REGION_INVAL", NULL, NULL },
	[CSREC_OP_FENCE_SET]	= { "FENCE_SET", NULL, NULL },
	[CSREC_OP_FENCE_INVAL]	= { "FENCE_INVAL", NULL, NULL },
	[CSREC_OP_FENCE_SIGNAL]	= { "FENCE_SIGNAL", NULL, NULL },
};

EXPORT const char *csrec_status_name(uint16_t status)
{
	return status < CSREC_ST_COUNT ? status_names[status] : "?";
}

EXPORT const char *csrec_opcode_name(uint8_t opcode)
{
	return opcodes[opcode].name ? opcodes[opcode].name : "?";
}

static const char *find(const struct field *f, uint16_t off)
{
	for (; f && f->name; f++)
		if (f->off == off)
			return f->name;
	return NULL;
}

EXPORT const char *csrec_field_name(uint8_t opcode, uint16_t field)
{
	const struct opcode *op = &opcodes[opcode];
	const char *name;

	if (field == CSREC_FIELD_NONE)
		return "none";
	if (field & CSREC_FIELD_DESC) {
		name = find(op->desc, field & ~CSREC_FIELD_DESC);
	} else {
		name = find(head_fields, field);
		if (!name)
			name = find(op->body, field);
	}
	return name ? name : "?";
}

/* A product of p or q out of range is told by element 0 with detail 0. */
static bool is_product(uint8_t opcode, uint16_t field)
{
	return opcode == CSREC_OP_TT &&
	       (field == (CSREC_FIELD_DESC | offsetof(struct csrec_tt_desc, p)) ||
		field == (CSREC_FIELD_DESC | offsetof(struct csrec_tt_desc, q)));
}

EXPORT int csrec_decode_cqe(const struct csrec_cqe *cqe, const struct csrec_cmd *cmd, char *buf,
			    size_t len)
{
	uint8_t opcode = cmd ? cmd->opcode : 0;
	uint16_t status = CSREC_CQE_STATUS(cqe);
	unsigned long long detail = cqe->detail;
	char op[32], field[32];

	if (!cmd)
		snprintf(op, sizeof(op), "cid %u", cqe->cid);
	else if (opcodes[opcode].name)
		snprintf(op, sizeof(op), "%s", opcodes[opcode].name);
	else
		snprintf(op, sizeof(op), "opcode 0x%02x", opcode);

	snprintf(field, sizeof(field), "%s", csrec_field_name(opcode, cqe->field));
	if (!strcmp(field, "?"))
		snprintf(field, sizeof(field), "%s byte %u",
			 cqe->field & CSREC_FIELD_DESC ? "descriptor" : "command",
			 cqe->field & ~CSREC_FIELD_DESC);

	switch (status) {
	case CSREC_ST_OK:
		return snprintf(buf, len, "%s: OK, detail %llu", op, detail);
	case CSREC_ST_RESERVED:
		return snprintf(buf, len, "%s: RESERVED, %s is not zero", op, field);
	case CSREC_ST_BAD_OFFSETS:
		return snprintf(buf, len,
				"%s: BAD_OFFSETS, bag %llu starts or ends out of order", op, detail);
	case CSREC_ST_BAD_ID:
		return snprintf(buf, len,
				"%s: BAD_ID, ids[%llu] is not a row of the table", op, detail);
	case CSREC_ST_BAD_VALUE:
		if (detail || !is_product(opcode, cqe->field))
			break;
		return snprintf(buf, len,
				"%s: BAD_VALUE, %s is 0, or the product over that array is too large",
				op, field);
	}
	if (status >= CSREC_ST_COUNT)
		return snprintf(buf, len, "%s: status %u, %s, detail 0x%llx", op, status, field,
				detail);
	if (cqe->field == CSREC_FIELD_NONE)
		return snprintf(buf, len, "%s: %s, detail 0x%llx", op, status_names[status],
				detail);
	return snprintf(buf, len, "%s: %s, %s is 0x%llx", op, status_names[status], field, detail);
}
