// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Golden device: what each command checks and does, REFERENCE.md section 4. The order
 * of the checks is part of the interface; it is the order of the code below.
 */
#include <stddef.h>
#include <string.h>

#include "csrec_golden.h"
#include "device.h"

/* --- field tables --- */

struct span {
	uint16_t off, len;
};

/* A field of a command's head or body, or of a descriptor. */
#define HEAD(f)		{ offsetof(struct csrec_cmd, f), sizeof(((struct csrec_cmd *)0)->f) }
#define BODY(type, f)	{ offsetof(struct csrec_cmd, body) + offsetof(struct csrec_body_##type, f), \
			  sizeof(((struct csrec_body_##type *)0)->f) }
#define DESC(type, f)	{ offsetof(struct csrec_##type##_desc, f), \
			  sizeof(((struct csrec_##type##_desc *)0)->f) }

/* The same as the completion names it. */
#define BODY_FIELD(type, f) \
	(offsetof(struct csrec_cmd, body) + offsetof(struct csrec_body_##type, f))
#define DESC_FIELD(type, f) \
	(CSREC_FIELD_DESC | offsetof(struct csrec_##type##_desc, f))

/* First of the spans that is not zero, or -1. */
static int first_set(const void *base, const struct span *s)
{
	for (; s->len; s++) {
		const uint8_t *p = (const uint8_t *)base + s->off;
		unsigned int i;

		for (i = 0; i < s->len; i++)
			if (p[i])
				return s->off;
	}
	return -1;
}

/* --- operands --- */

/* Memory a command works on, with the fields to blame for key and offset. */
struct operand {
	struct access a;
	uint64_t off;
	uint16_t key_field, off_field;
};

#define OPERAND(k, o, r, kf, of) \
	((struct operand){ .a = { .key = (k), .right = (r) }, .off = (o), \
			   .key_field = (kf), .off_field = (of) })

/* Region checks of passes 5 and 6. */
static int check(struct queue *q, const struct operand *op, uint64_t len, struct result *res)
{
	int st = mem_check(q, &op->a, op->off, len);

	if (st == CSREC_ST_OUT_OF_BOUNDS)
		return fail(res, st, op->off_field, op->off);
	if (st)
		return fail(res, st, op->key_field, op->a.key);
	return CSREC_ST_OK;
}

/* An access of pass 7: whatever goes wrong is the key's. */
static int access_at(struct queue *q, const struct operand *op, uint64_t rel, void *buf,
		     size_t len, struct result *res)
{
	int st = mem_access(q, &op->a, op->off + rel, buf, len);

	if (st == CSREC_ST_ABORTED)
		return fail(res, st, CSREC_FIELD_NONE, 0);
	if (st)
		return fail(res, st, op->key_field, op->a.key);
	return CSREC_ST_OK;
}

/* --- COPY, FILL --- */

static int do_copy(struct queue *q, const void *body, struct result *res)
{
	const struct csrec_body_copy *b = body;
	struct operand src = OPERAND(b->src_key, b->src_off, CSREC_RIGHT_READ,
				     BODY_FIELD(copy, src_key), BODY_FIELD(copy, src_off));
	struct operand dst = OPERAND(b->dst_key, b->dst_off, CSREC_RIGHT_WRITE,
				     BODY_FIELD(copy, dst_key), BODY_FIELD(copy, dst_off));
	uint8_t buf[4096];
	uint64_t done;
	size_t n;

	if (!b->len)
		return fail(res, CSREC_ST_BAD_LENGTH, BODY_FIELD(copy, len), b->len);
	if (check(q, &src, b->len, res) || check(q, &dst, b->len, res))
		return res->status;

	for (done = 0; done < b->len; done += n) {
		n = b->len - done < sizeof(buf) ? b->len - done : sizeof(buf);
		if (access_at(q, &src, done, buf, n, res) ||
		    access_at(q, &dst, done, buf, n, res))
			return res->status;
	}
	res->detail = b->len;
	return CSREC_ST_OK;
}

static int do_fill(struct queue *q, const void *body, struct result *res)
{
	const struct csrec_body_copy *b = body;
	struct operand dst = OPERAND(b->dst_key, b->dst_off, CSREC_RIGHT_WRITE,
				     BODY_FIELD(copy, dst_key), BODY_FIELD(copy, dst_off));
	uint32_t buf[1024];
	uint64_t done;
	size_t n;

	if (b->dst_off % 4)
		return fail(res, CSREC_ST_BAD_ALIGN, BODY_FIELD(copy, dst_off), b->dst_off);
	if (!b->len)
		return fail(res, CSREC_ST_BAD_LENGTH, BODY_FIELD(copy, len), b->len);
	if (b->len % 4)
		return fail(res, CSREC_ST_BAD_ALIGN, BODY_FIELD(copy, len), b->len);
	if (check(q, &dst, b->len, res))
		return res->status;

	for (n = 0; n < 1024; n++)
		buf[n] = b->pattern;
	for (done = 0; done < b->len; done += n) {
		n = b->len - done < sizeof(buf) ? b->len - done : sizeof(buf);
		if (access_at(q, &dst, done, buf, n, res))
			return res->status;
	}
	res->detail = b->len;
	return CSREC_ST_OK;
}

/* --- NOP, FENCE, SIGNAL, WAIT --- */

/* NOP; and FENCE, as a queue's commands run one after another here. */
static int do_nothing(struct queue *q, const void *body, struct result *res)
{
	(void)q;
	(void)body;
	(void)res;
	return CSREC_ST_OK;
}

/* Checks 1 to 3 of a fence; the admin queue may leave out the third. */
static int get_fence(struct queue *q, uint32_t key, bool any_domain, struct fence **f,
		     struct result *res)
{
	int st = fence_find(q->m, key, f);

	if (!st && !any_domain && (*f)->domain != q->domain)
		st = CSREC_ST_BAD_DOMAIN;
	if (st)
		return fail(res, st, BODY_FIELD(fence, fence_key), key);
	return CSREC_ST_OK;
}

static int signal_fence(struct queue *q, const struct csrec_body_fence *b, bool any_domain,
			struct result *res)
{
	struct fence *f;

	if (get_fence(q, b->fence_key, any_domain, &f, res))
		return res->status;
	if (f->value < b->value)
		f->value = b->value;
	res->detail = f->value;
	return CSREC_ST_OK;
}

static int do_signal(struct queue *q, const void *body, struct result *res)
{
	return signal_fence(q, body, false, res);
}

static int do_fence_signal(struct queue *q, const void *body, struct result *res)
{
	return signal_fence(q, body, true, res);
}

static bool wait_over(const struct queue *q)
{
	struct fence *f;

	return q->abort || fence_find(q->m, q->wait.fence.key, &f) ||
	       f->value >= q->wait.fence.value;
}

static int do_wait(struct queue *q, const void *body, struct result *res)
{
	const struct csrec_body_fence *b = body;
	struct fence *f;

	if (get_fence(q, b->fence_key, false, &f, res))
		return res->status;
	q->wait.fence.key = b->fence_key;
	q->wait.fence.value = b->value;
	block_until(q, wait_over);
	if (fence_find(q->m, b->fence_key, &f))
		return fail(res, CSREC_ST_STALE_KEY, BODY_FIELD(fence, fence_key), b->fence_key);
	if (f->value < b->value)
		return fail(res, CSREC_ST_ABORTED, CSREC_FIELD_NONE, 0);
	res->detail = f->value;
	return CSREC_ST_OK;
}

/* --- descriptors --- */

/* Checks and fetches the descriptor; its fields are the caller's. */
static int get_desc(struct queue *q, const struct csrec_body_desc *b, void *desc, size_t size,
		    struct result *res)
{
	struct operand op = OPERAND(b->desc_key, b->desc_off, CSREC_RIGHT_READ,
				    BODY_FIELD(desc, desc_key), BODY_FIELD(desc, desc_off));

	if (b->desc_len != size)
		return fail(res, CSREC_ST_BAD_LENGTH, BODY_FIELD(desc, desc_len), b->desc_len);
	if (b->desc_off % 8)
		return fail(res, CSREC_ST_BAD_ALIGN, BODY_FIELD(desc, desc_off), b->desc_off);
	if (check(q, &op, size, res))
		return res->status;
	return access_at(q, &op, 0, desc, size, res);
}

static int desc_flags(const void *desc, uint32_t known, struct result *res)
{
	uint32_t flags;

	memcpy(&flags, desc, sizeof(flags));	/* first in every descriptor */
	if (flags & ~known)
		return fail(res, CSREC_ST_BAD_FLAGS, CSREC_FIELD_DESC, flags);
	return CSREC_ST_OK;
}

static int desc_reserved(const void *desc, const struct span *s, struct result *res)
{
	int off = first_set(desc, s);

	if (off >= 0)
		return fail(res, CSREC_ST_RESERVED, CSREC_FIELD_DESC | off, 0);
	return CSREC_ST_OK;
}

/* Value checks of one field, true if it is bad. */
#define BAD_IF(cond, type, d, f, status) \
	((cond) && fail(res, status, DESC_FIELD(type, f), (d)->f))
#define NONZERO(type, d, f)	BAD_IF(!(d)->f, type, d, f, CSREC_ST_BAD_VALUE)
#define AT_MOST(type, d, f, hi)	BAD_IF((d)->f > (hi), type, d, f, CSREC_ST_BAD_VALUE)
#define UP_TO(type, d, f, hi)	(NONZERO(type, d, f) || AT_MOST(type, d, f, hi))
#define ALIGN4(type, d, f)	BAD_IF((d)->f % 4, type, d, f, CSREC_ST_BAD_ALIGN)
#define STRIDE(type, d, f, least) \
	(ALIGN4(type, d, f) || BAD_IF((d)->f < (least), type, d, f, CSREC_ST_BAD_VALUE))
#define DESC_OPERAND(type, d, name, right) \
	OPERAND((d)->name##_key, (d)->name##_off, right, DESC_FIELD(type, name##_key), \
		DESC_FIELD(type, name##_off))

/* --- EMB, TT: bags --- */

/* What both have in common; row() fetches or rebuilds the row of a legal id. */
struct bags {
	struct operand ids, offsets, weights, out;
	bool weighted, accum;
	uint32_t nbags, nids, out_stride;
	uint64_t nrows;
	size_t dim;
	uint64_t *rows_counter;
	int (*row)(struct queue *q, const void *ctx, uint32_t id, float *row,
		   struct result *res);
	const void *ctx;
};

#define IDS_AT_ONCE	64

static int run_bag(struct queue *q, const struct bags *b, uint32_t from, uint32_t to, float *sum,
		   struct result *res)
{
	uint32_t ids[IDS_AT_ONCE], j, i, n;
	float weights[IDS_AT_ONCE], row[MAX_DIM];

	for (j = from; j < to; j += n) {
		n = to - j < IDS_AT_ONCE ? to - j : IDS_AT_ONCE;
		if (access_at(q, &b->ids, 4ull * j, ids, 4 * n, res))
			return res->status;
		if (b->weighted && access_at(q, &b->weights, 4ull * j, weights, 4 * n, res))
			return res->status;
		for (i = 0; i < n; i++) {
			if (ids[i] >= b->nrows)
				return fail(res, CSREC_ST_BAD_ID, b->ids.off_field, j + i);
			if (b->row(q, b->ctx, ids[i], row, res))
				return res->status;
			csrec_golden_bag_add(sum, row, b->weighted ? weights + i : NULL, b->dim);
			++*b->rows_counter;
		}
	}
	return CSREC_ST_OK;
}

static int run_bags(struct queue *q, const struct bags *b, struct result *res)
{
	float sum[MAX_DIM], old[MAX_DIM];
	struct operand out_read = b->out;
	uint32_t bag, bounds[2];
	uint64_t used = 0;

	out_read.a.right = CSREC_RIGHT_READ;
	for (bag = 0; bag < b->nbags; bag++) {
		uint64_t at = (uint64_t)bag * b->out_stride;

		if (access_at(q, &b->offsets, 4ull * bag, bounds, sizeof(bounds), res))
			return res->status;
		if (bounds[0] > bounds[1] || bounds[1] > b->nids)
			return fail(res, CSREC_ST_BAD_OFFSETS, b->offsets.off_field, bag);
		memset(sum, 0, sizeof(sum));
		if (run_bag(q, b, bounds[0], bounds[1], sum, res))
			return res->status;
		if (b->accum) {
			if (access_at(q, &out_read, at, old, 4 * b->dim, res))
				return res->status;
			csrec_golden_bag_add(old, sum, NULL, b->dim);
			memcpy(sum, old, 4 * b->dim);
		}
		if (access_at(q, &b->out, at, sum, 4 * b->dim, res))
			return res->status;
		used += bounds[1] - bounds[0];
	}
	res->detail = used;
	return CSREC_ST_OK;
}

struct emb_ctx {
	struct operand table;
	uint32_t row_stride;
	size_t dim;
};

static int emb_row(struct queue *q, const void *ctx, uint32_t id, float *row, struct result *res)
{
	const struct emb_ctx *c = ctx;

	return access_at(q, &c->table, (uint64_t)id * c->row_stride, row, 4 * c->dim, res);
}

static int do_emb(struct queue *q, const void *body, struct result *res)
{
	static const struct span reserved[] = {
		DESC(emb, rsvd7), DESC(emb, rsvd52), DESC(emb, rsvd96), { 0, 0 },
	};
	static const struct span reserved_unweighted[] = {
		DESC(emb, rsvd7), DESC(emb, weights_key), DESC(emb, rsvd52),
		DESC(emb, weights_off), DESC(emb, rsvd96), { 0, 0 },
	};
	struct csrec_emb_desc desc, *d = &desc;
	struct emb_ctx ctx;
	struct bags b;
	bool weighted;

	if (get_desc(q, body, d, sizeof(*d), res) || desc_flags(d, CSREC_EMB_F_ALL, res))
		return res->status;
	weighted = d->flags & CSREC_EMB_F_WEIGHTS;
	if (desc_reserved(d, weighted ? reserved : reserved_unweighted, res))
		return res->status;

	if (UP_TO(emb, d, dim, MAX_DIM) ||
	    AT_MOST(emb, d, dtype, CSREC_DTYPE_FP32) ||
	    NONZERO(emb, d, nbags) ||
	    UP_TO(emb, d, nrows, 1ull << 32) ||
	    STRIDE(emb, d, row_stride, 4u * d->dim) ||
	    STRIDE(emb, d, out_stride, 4u * d->dim) ||
	    ALIGN4(emb, d, table_off) || ALIGN4(emb, d, ids_off) ||
	    ALIGN4(emb, d, offsets_off) || ALIGN4(emb, d, weights_off) ||
	    ALIGN4(emb, d, out_off))
		return res->status;

	ctx = (struct emb_ctx){
		.table = DESC_OPERAND(emb, d, table, CSREC_RIGHT_READ),
		.row_stride = d->row_stride,
		.dim = d->dim,
	};
	b = (struct bags){
		.ids = DESC_OPERAND(emb, d, ids, CSREC_RIGHT_READ),
		.offsets = DESC_OPERAND(emb, d, offsets, CSREC_RIGHT_READ),
		.weights = DESC_OPERAND(emb, d, weights, CSREC_RIGHT_READ),
		.out = DESC_OPERAND(emb, d, out, CSREC_RIGHT_WRITE),
		.weighted = weighted,
		.nbags = d->nbags,
		.nids = d->nids,
		.out_stride = d->out_stride,
		.nrows = d->nrows,
		.dim = d->dim,
		.rows_counter = &CNT(q->m, EMB_ROWS),
		.row = emb_row,
		.ctx = &ctx,
	};
	if (check(q, &ctx.table, (d->nrows - 1) * d->row_stride + 4 * d->dim, res) ||
	    check(q, &b.ids, 4ull * d->nids, res) ||
	    check(q, &b.offsets, 4 * (d->nbags + 1ull), res) ||
	    (weighted && check(q, &b.weights, 4ull * d->nids, res)) ||
	    check(q, &b.out, (d->nbags - 1ull) * d->out_stride + 4 * d->dim, res))
		return res->status;

	return run_bags(q, &b, res);
}

struct tt_ctx {
	struct operand core[3];
	uint32_t p[3];
	uint16_t q[3], r[2];
	uint32_t slice[3];	/* elements of core k that one id selects */
	/* i0 * p1 + i1 of the products A*B that the device keeps, one for each remainder */
	struct kept {
		uint64_t leading[CSREC_TT_MAX_KEPT];
		uint32_t n;
	} *kept;
};

static int tt_row(struct queue *q, const void *ctx, uint32_t id, float *row, struct result *res)
{
	const struct tt_ctx *c = ctx;
	float slice[3][CSREC_TT_MAX_SLICE], tmp[CSREC_GOLDEN_TT_TMP];
	uint32_t i[3] = {
		id / ((uint64_t)c->p[1] * c->p[2]), id / c->p[2] % c->p[1], id % c->p[2],
	};
	uint64_t *leading;
	unsigned int k;

	for (k = 0; k < 3; k++)
		if (access_at(q, &c->core[k], 4ull * i[k] * c->slice[k], slice[k],
			      4 * c->slice[k], res))
			return res->status;
	csrec_golden_tt_row(row, tmp, slice[0], slice[1], slice[2], c->q, c->r);
	/* computed anew here, but not by the device */
	leading = &c->kept->leading[id / c->p[2] % c->kept->n];
	if (*leading == id / c->p[2])
		CNT(q->m, TT_SAVED) += (uint64_t)c->q[0] * c->slice[1];
	*leading = id / c->p[2];
	return CSREC_ST_OK;
}

static int do_tt(struct queue *q, const void *body, struct result *res)
{
	static const struct span reserved[] = {
		DESC(tt, rsvd34), DESC(tt, rsvd76), DESC(tt, rsvd136), { 0, 0 },
	};
	static const struct span reserved_unweighted[] = {
		DESC(tt, rsvd34), DESC(tt, weights_key), DESC(tt, rsvd76),
		DESC(tt, weights_off), DESC(tt, rsvd136), { 0, 0 },
	};
	struct csrec_tt_desc desc, *d = &desc;
	struct operand out_read;
	uint64_t rows, dim;
	struct tt_ctx ctx;
	struct kept kept;
	struct bags b;
	bool weighted, accum;
	unsigned int k;

	if (get_desc(q, body, d, sizeof(*d), res) || desc_flags(d, CSREC_TT_F_ALL, res))
		return res->status;
	weighted = d->flags & CSREC_TT_F_WEIGHTS;
	accum = d->flags & CSREC_TT_F_ACCUM;
	if (desc_reserved(d, weighted ? reserved : reserved_unweighted, res))
		return res->status;

	if (NONZERO(tt, d, nbags))
		return res->status;
	for (k = 0; k < 3; k++)
		if (NONZERO(tt, d, p[k]))
			return res->status;
	rows = (uint64_t)d->p[0] * d->p[1];
	if (rows >> 32 || (rows *= d->p[2]) >> 32)
		return fail(res, CSREC_ST_BAD_VALUE, DESC_FIELD(tt, p[0]), 0);
	for (k = 0; k < 3; k++)
		if (NONZERO(tt, d, q[k]))
			return res->status;
	dim = (uint64_t)d->q[0] * d->q[1] * d->q[2];
	if (dim > MAX_DIM)
		return fail(res, CSREC_ST_BAD_VALUE, DESC_FIELD(tt, q[0]), 0);
	if (UP_TO(tt, d, r[0], MAX_RANK) || UP_TO(tt, d, r[1], MAX_RANK))
		return res->status;
	ctx = (struct tt_ctx){
		.slice = { d->q[0] * d->r[0], d->r[0] * d->q[1] * d->r[1], d->r[1] * d->q[2] },
		.kept = &kept,
	};
	for (k = 0; k < 3; k++)
		if (ctx.slice[k] > CSREC_TT_MAX_SLICE)
			return fail(res, CSREC_ST_BAD_VALUE, DESC_FIELD(tt, q[0]), 0);
	if (STRIDE(tt, d, out_stride, 4 * dim) || UP_TO(tt, d, nrows, rows) ||
	    ALIGN4(tt, d, core_off[0]) || ALIGN4(tt, d, core_off[1]) ||
	    ALIGN4(tt, d, core_off[2]) || ALIGN4(tt, d, ids_off) ||
	    ALIGN4(tt, d, offsets_off) || ALIGN4(tt, d, weights_off) ||
	    ALIGN4(tt, d, out_off))
		return res->status;

	memset(kept.leading, 0xff, sizeof(kept.leading));
	for (kept.n = CSREC_TT_MAX_KEPT; kept.n > 1; kept.n /= 2)
		if (kept.n * d->q[0] * d->q[1] * ((d->r[1] + 7) / 8) <= MAX_DIM * MAX_RANK / 8)
			break;
	memcpy(ctx.p, d->p, sizeof(ctx.p));
	memcpy(ctx.q, d->q, sizeof(ctx.q));
	memcpy(ctx.r, d->r, sizeof(ctx.r));
	for (k = 0; k < 3; k++) {
		ctx.core[k] = OPERAND(d->core_key[k], d->core_off[k], CSREC_RIGHT_READ,
				      DESC_FIELD(tt, core_key[k]), DESC_FIELD(tt, core_off[k]));
		ctx.core[k].a.onchip = true;
	}
	b = (struct bags){
		.ids = DESC_OPERAND(tt, d, ids, CSREC_RIGHT_READ),
		.offsets = DESC_OPERAND(tt, d, offsets, CSREC_RIGHT_READ),
		.weights = DESC_OPERAND(tt, d, weights, CSREC_RIGHT_READ),
		.out = DESC_OPERAND(tt, d, out, CSREC_RIGHT_WRITE),
		.weighted = weighted,
		.accum = accum,
		.nbags = d->nbags,
		.nids = d->nids,
		.out_stride = d->out_stride,
		.nrows = d->nrows,
		.dim = dim,
		.rows_counter = &CNT(q->m, TT_ROWS),
		.row = tt_row,
		.ctx = &ctx,
	};
	out_read = b.out;
	out_read.a.right = CSREC_RIGHT_READ;
	for (k = 0; k < 3; k++)
		if (check(q, &ctx.core[k], 4ull * d->p[k] * ctx.slice[k], res))
			return res->status;
	if (check(q, &b.ids, 4ull * d->nids, res) ||
	    check(q, &b.offsets, 4 * (d->nbags + 1ull), res) ||
	    (weighted && check(q, &b.weights, 4ull * d->nids, res)) ||
	    check(q, &b.out, (d->nbags - 1ull) * d->out_stride + 4 * dim, res) ||
	    (accum && check(q, &out_read, (d->nbags - 1ull) * d->out_stride + 4 * dim, res)))
		return res->status;

	return run_bags(q, &b, res);
}

/* --- INTERACT --- */

static int do_interact(struct queue *q, const void *body, struct result *res)
{
	static const struct span reserved[] = {
		DESC(interact, rsvd5), DESC(interact, rsvd10), DESC(interact, rsvd52),
		DESC(interact, rsvd56), { 0, 0 },
	};
	float in[MAX_VECS * MAX_DIM], out[MAX_VECS * MAX_DIM];
	struct csrec_interact_desc desc, *d = &desc;
	struct operand src, dst;
	uint64_t in_len;
	size_t len, v;
	uint32_t s;
	bool self;

	if (get_desc(q, body, d, sizeof(*d), res) ||
	    desc_flags(d, CSREC_INTERACT_F_ALL, res) || desc_reserved(d, reserved, res))
		return res->status;
	self = d->flags & CSREC_INTERACT_F_SELF;

	if (AT_MOST(interact, d, op, CSREC_INTERACT_CAT) ||
	    UP_TO(interact, d, nvec, MAX_VECS) || UP_TO(interact, d, dim, MAX_DIM) ||
	    NONZERO(interact, d, batch))
		return res->status;
	len = csrec_golden_interact_len(d->op, self, d->nvec, d->dim);
	if (ALIGN4(interact, d, in_off) || ALIGN4(interact, d, out_off) ||
	    STRIDE(interact, d, vec_stride, 4u * d->dim) || ALIGN4(interact, d, in_stride) ||
	    STRIDE(interact, d, out_stride, 4 * len))
		return res->status;
	if (self && d->op == CSREC_INTERACT_CAT)
		return fail(res, CSREC_ST_BAD_FLAGS, DESC_FIELD(interact, flags), d->flags);

	src = DESC_OPERAND(interact, d, in, CSREC_RIGHT_READ);
	dst = DESC_OPERAND(interact, d, out, CSREC_RIGHT_WRITE);
	/* the one extent that can pass 2^64 */
	if (__builtin_add_overflow((d->batch - 1ull) * d->in_stride,
				   (d->nvec - 1ull) * d->vec_stride + 4 * d->dim, &in_len))
		in_len = UINT64_MAX;
	if (check(q, &src, in_len, res) ||
	    check(q, &dst, (d->batch - 1ull) * d->out_stride + 4 * len, res))
		return res->status;

	for (s = 0; s < d->batch; s++) {
		for (v = 0; v < d->nvec; v++)
			if (access_at(q, &src, (uint64_t)s * d->in_stride + v * d->vec_stride,
				      in + v * d->dim, 4 * d->dim, res))
				return res->status;
		csrec_golden_interact(out, in, 4 * d->dim, d->nvec, d->dim, d->op, self);
		if (access_at(q, &dst, (uint64_t)s * d->out_stride, out, 4 * len, res))
			return res->status;
	}
	res->detail = d->batch;
	return CSREC_ST_OK;
}

/* --- MLP --- */

static int do_mlp(struct queue *q, const void *body, struct result *res)
{
	static const struct span reserved[] = {
		DESC(mlp, rsvd14), DESC(mlp, rsvd76), DESC(mlp, rsvd80), { 0, 0 },
	};
	static const struct span reserved_unbiased[] = {
		DESC(mlp, rsvd14), DESC(mlp, bias_key), DESC(mlp, bias_off), DESC(mlp, rsvd76),
		DESC(mlp, rsvd80), { 0, 0 },
	};
	float x[MAX_WIDTH], w[MAX_WIDTH], y[MAX_WIDTH], bias[MAX_WIDTH];
	struct operand xo, wo, bo, yo;
	struct csrec_mlp_desc desc, *d = &desc;
	uint32_t s, o;
	bool biased;

	if (get_desc(q, body, d, sizeof(*d), res) || desc_flags(d, CSREC_MLP_F_ALL, res))
		return res->status;
	biased = d->flags & CSREC_MLP_F_BIAS;
	if (desc_reserved(d, biased ? reserved : reserved_unbiased, res))
		return res->status;

	if (NONZERO(mlp, d, batch) || UP_TO(mlp, d, in_dim, MAX_WIDTH) ||
	    UP_TO(mlp, d, out_dim, MAX_WIDTH) ||
	    AT_MOST(mlp, d, act, CSREC_ACT_SIGMOID) ||
	    AT_MOST(mlp, d, dtype, CSREC_DTYPE_FP32) ||
	    ALIGN4(mlp, d, x_off) || ALIGN4(mlp, d, w_off) || ALIGN4(mlp, d, bias_off) ||
	    ALIGN4(mlp, d, y_off) || STRIDE(mlp, d, x_stride, 4u * d->in_dim) ||
	    STRIDE(mlp, d, w_stride, 4u * d->in_dim) ||
	    STRIDE(mlp, d, y_stride, 4u * d->out_dim))
		return res->status;

	xo = DESC_OPERAND(mlp, d, x, CSREC_RIGHT_READ);
	wo = DESC_OPERAND(mlp, d, w, CSREC_RIGHT_READ);
	bo = DESC_OPERAND(mlp, d, bias, CSREC_RIGHT_READ);
	yo = DESC_OPERAND(mlp, d, y, CSREC_RIGHT_WRITE);
	if (check(q, &xo, (d->batch - 1ull) * d->x_stride + 4 * d->in_dim, res) ||
	    check(q, &wo, (d->out_dim - 1ull) * d->w_stride + 4 * d->in_dim, res) ||
	    (biased && check(q, &bo, 4 * d->out_dim, res)) ||
	    check(q, &yo, (d->batch - 1ull) * d->y_stride + 4 * d->out_dim, res))
		return res->status;

	if (biased && access_at(q, &bo, 0, bias, 4 * d->out_dim, res))
		return res->status;
	for (s = 0; s < d->batch; s++) {
		if (access_at(q, &xo, (uint64_t)s * d->x_stride, x, 4 * d->in_dim, res))
			return res->status;
		for (o = 0; o < d->out_dim; o++) {
			if (access_at(q, &wo, (uint64_t)o * d->w_stride, w, 4 * d->in_dim, res))
				return res->status;
			y[o] = csrec_golden_neuron(x, w, d->in_dim, biased ? bias + o : NULL,
						   d->act);
		}
		if (access_at(q, &yo, (uint64_t)s * d->y_stride, y, 4 * d->out_dim, res))
			return res->status;
	}
	res->detail = d->batch;
	return CSREC_ST_OK;
}

/* --- admin commands --- */

static int do_queue_create(struct queue *q, const void *body, struct result *res)
{
	const struct csrec_body_queue *b = body;
	struct queue *new;

	if (b->qid < 1 || b->qid > N_IOQ || q->m->queue[b->qid].state != QUEUE_FREE)
		return fail(res, CSREC_ST_BAD_QUEUE, BODY_FIELD(queue, qid), b->qid);
	if (b->log2_entries < 1 || b->log2_entries > MAX_LOG2)
		return fail(res, CSREC_ST_BAD_VALUE, BODY_FIELD(queue, log2_entries),
			    b->log2_entries);
	if (b->vector >= N_VECTORS)
		return fail(res, CSREC_ST_BAD_VALUE, BODY_FIELD(queue, vector), b->vector);
	if (b->sq_base % sizeof(struct csrec_cmd))
		return fail(res, CSREC_ST_BAD_ALIGN, BODY_FIELD(queue, sq_base), b->sq_base);
	if (b->cq_base % sizeof(struct csrec_cqe))
		return fail(res, CSREC_ST_BAD_ALIGN, BODY_FIELD(queue, cq_base), b->cq_base);
	if (b->irq_count > 1 && !b->irq_cycles)
		return fail(res, CSREC_ST_BAD_VALUE, BODY_FIELD(queue, irq_count), b->irq_count);
	if (b->qflags & ~CSREC_QUEUE_HW_F_ALL)
		return fail(res, CSREC_ST_BAD_VALUE, BODY_FIELD(queue, qflags), b->qflags);

	new = &q->m->queue[b->qid];
	new->log2_entries = b->log2_entries;
	new->vector = b->vector;
	new->domain = b->domain;
	new->noirq = b->qflags & CSREC_QUEUE_HW_F_NOIRQ;
	new->irq_count = b->irq_count;
	new->irq_cycles = b->irq_cycles;
	new->sq_base = b->sq_base;
	new->cq_base = b->cq_base;
	queue_start(new);
	return CSREC_ST_OK;
}

static bool queue_gone(const struct queue *q)
{
	return q->wait.queue->state == QUEUE_FREE;
}

static int do_queue_delete(struct queue *q, const void *body, struct result *res)
{
	const struct csrec_body_queue *b = body;
	struct queue *old;

	if (b->qid < 1 || b->qid > N_IOQ || q->m->queue[b->qid].state == QUEUE_FREE)
		return fail(res, CSREC_ST_BAD_QUEUE, BODY_FIELD(queue, qid), b->qid);
	old = &q->m->queue[b->qid];
	old->abort = true;
	q->wait.queue = old;
	block_until(q, queue_gone);
	return CSREC_ST_OK;
}

static int do_region_set(struct queue *q, const void *body, struct result *res)
{
	const struct csrec_body_region *b = body;
	uint32_t index = b->region_key & 0xffff, gen = b->region_key >> CSREC_KEY_GEN_SHIFT;
	uint64_t align = 1, limit;
	struct region *r;
	bool paged;

	if (index >= N_REGIONS)
		return fail(res, CSREC_ST_BAD_KEY, BODY_FIELD(region, region_key), b->region_key);
	r = &q->m->region[index];
	if (!gen || r->valid)
		return fail(res, CSREC_ST_BAD_VALUE, BODY_FIELD(region, region_key),
			    b->region_key);
	if (b->kind < CSREC_REGION_HOST || b->kind > CSREC_REGION_ONCHIP)
		return fail(res, CSREC_ST_BAD_VALUE, BODY_FIELD(region, kind), b->kind);
	if (!b->rights || b->rights & ~(CSREC_RIGHT_READ | CSREC_RIGHT_WRITE))
		return fail(res, CSREC_ST_BAD_VALUE, BODY_FIELD(region, rights), b->rights);

	paged = b->kind == CSREC_REGION_HOST && (b->levels == 1 || b->levels == 2);
	if (b->kind != CSREC_REGION_HOST)
		align = 64;
	else if (paged)
		align = 8;
	if (b->base % align)
		return fail(res, CSREC_ST_BAD_ALIGN, BODY_FIELD(region, base), b->base);
	if (!b->size)
		return fail(res, CSREC_ST_BAD_LENGTH, BODY_FIELD(region, size), b->size);
	if (b->kind != CSREC_REGION_HOST) {
		limit = b->kind == CSREC_REGION_DRAM ? q->m->cfg.dram_size : ONCHIP_SIZE;
		if (b->base > limit || b->size > limit - b->base)
			return fail(res, CSREC_ST_OUT_OF_BOUNDS, BODY_FIELD(region, base),
				    b->base);
	}
	if (b->levels > (b->kind == CSREC_REGION_HOST ? 2 : 0))
		return fail(res, CSREC_ST_BAD_VALUE, BODY_FIELD(region, levels), b->levels);
	if (paged ? b->page_shift < 12 || b->page_shift > 30 : b->page_shift)
		return fail(res, CSREC_ST_BAD_VALUE, BODY_FIELD(region, page_shift),
			    b->page_shift);
	if (paged ? b->page_off >> b->page_shift : b->page_off)
		return fail(res, CSREC_ST_BAD_VALUE, BODY_FIELD(region, page_off), b->page_off);

	*r = (struct region){
		.valid = true,
		.gen = gen,
		.domain = b->domain,
		.kind = b->kind,
		.rights = b->rights,
		.levels = b->levels,
		.page_shift = b->page_shift,
		.page_off = b->page_off,
		.base = b->base,
		.size = b->size,
	};
	return CSREC_ST_OK;
}

static bool region_drained(const struct queue *q)
{
	return !q->wait.region->users;
}

static int do_region_inval(struct queue *q, const void *body, struct result *res)
{
	const struct csrec_body_region *b = body;
	struct region *r;
	int st = region_find(q->m, b->region_key, &r);

	if (st)
		return fail(res, st, BODY_FIELD(region, region_key), b->region_key);
	r->valid = false;
	q->wait.region = r;
	block_until(q, region_drained);
	return CSREC_ST_OK;
}

static int do_fence_set(struct queue *q, const void *body, struct result *res)
{
	const struct csrec_body_fence_set *b = body;
	uint32_t index = b->fence_key & 0xffff, gen = b->fence_key >> CSREC_KEY_GEN_SHIFT;

	if (index >= N_FENCES)
		return fail(res, CSREC_ST_BAD_KEY, BODY_FIELD(fence_set, fence_key), b->fence_key);
	if (!gen || q->m->fence[index].valid)
		return fail(res, CSREC_ST_BAD_VALUE, BODY_FIELD(fence_set, fence_key),
			    b->fence_key);
	q->m->fence[index] = (struct fence){
		.valid = true, .gen = gen, .domain = b->domain, .value = b->value,
	};
	return CSREC_ST_OK;
}

static int do_fence_inval(struct queue *q, const void *body, struct result *res)
{
	const struct csrec_body_fence *b = body;
	struct fence *f;

	if (get_fence(q, b->fence_key, true, &f, res))
		return res->status;
	f->valid = false;
	return CSREC_ST_OK;
}

/* --- passes 1 to 3, and off to the command --- */

static const struct command {
	uint8_t opcode;
	int (*run)(struct queue *q, const void *body, struct result *res);
	uint16_t busy;			/* counter register, or 0 */
	struct span reserved[12];	/* ascending, ended by a zero length */
} commands[] = {
	{ CSREC_OP_NOP, do_nothing, 0, { HEAD(rsvd4), HEAD(body) } },
	{ CSREC_OP_FENCE, do_nothing, 0, { HEAD(rsvd4), HEAD(body) } },
	{ CSREC_OP_COPY, do_copy, CSREC_REG_CNT_BUSY_COPY,
	  { HEAD(rsvd4), BODY(copy, pattern), BODY(copy, rsvd44), BODY(copy, rsvd48) } },
	{ CSREC_OP_FILL, do_fill, CSREC_REG_CNT_BUSY_COPY,
	  { HEAD(rsvd4), BODY(copy, src_key), BODY(copy, src_off), BODY(copy, rsvd44),
	    BODY(copy, rsvd48) } },
	{ CSREC_OP_SIGNAL, do_signal, 0,
	  { HEAD(rsvd4), BODY(fence, rsvd4), BODY(fence, rsvd16) } },
	{ CSREC_OP_WAIT, do_wait, 0,
	  { HEAD(rsvd4), BODY(fence, rsvd4), BODY(fence, rsvd16) } },
	{ CSREC_OP_EMB, do_emb, CSREC_REG_CNT_BUSY_EMB, { HEAD(rsvd4), BODY(desc, rsvd16) } },
	{ CSREC_OP_TT, do_tt, CSREC_REG_CNT_BUSY_TT, { HEAD(rsvd4), BODY(desc, rsvd16) } },
	{ CSREC_OP_INTERACT, do_interact, CSREC_REG_CNT_BUSY_INTERACT,
	  { HEAD(rsvd4), BODY(desc, rsvd16) } },
	{ CSREC_OP_MLP, do_mlp, CSREC_REG_CNT_BUSY_MLP, { HEAD(rsvd4), BODY(desc, rsvd16) } },
	{ CSREC_OP_QUEUE_CREATE, do_queue_create, 0,
	  { HEAD(rsvd4), BODY(queue, rsvd3), BODY(queue, rsvd32) } },
	{ CSREC_OP_QUEUE_DELETE, do_queue_delete, 0,
	  { HEAD(rsvd4), BODY(queue, log2_entries), BODY(queue, rsvd3), BODY(queue, vector),
	    BODY(queue, domain), BODY(queue, sq_base), BODY(queue, cq_base),
	    BODY(queue, irq_count), BODY(queue, qflags), BODY(queue, irq_cycles),
	    BODY(queue, rsvd32) } },
	{ CSREC_OP_REGION_SET, do_region_set, 0,
	  { HEAD(rsvd4), BODY(region, rsvd26), BODY(region, rsvd32) } },
	{ CSREC_OP_REGION_INVAL, do_region_inval, 0,
	  { HEAD(rsvd4), BODY(region, kind), BODY(region, rights), BODY(region, domain),
	    BODY(region, base), BODY(region, size), BODY(region, levels),
	    BODY(region, page_shift), BODY(region, rsvd26), BODY(region, page_off),
	    BODY(region, rsvd32) } },
	{ CSREC_OP_FENCE_SET, do_fence_set, 0,
	  { HEAD(rsvd4), BODY(fence_set, rsvd6), BODY(fence_set, rsvd16) } },
	{ CSREC_OP_FENCE_INVAL, do_fence_inval, 0,
	  { HEAD(rsvd4), BODY(fence, rsvd4), BODY(fence, value), BODY(fence, rsvd16) } },
	{ CSREC_OP_FENCE_SIGNAL, do_fence_signal, 0,
	  { HEAD(rsvd4), BODY(fence, rsvd4), BODY(fence, rsvd16) } },
};

void execute(struct queue *q, const struct csrec_cmd *cmd, struct result *res)
{
	const struct command *c = NULL;
	unsigned int i;
	int off;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (commands[i].opcode == cmd->opcode)
			c = &commands[i];
	if (!c || (q->id && c->opcode >= CSREC_OP_QUEUE_CREATE)) {
		fail(res, CSREC_ST_BAD_OPCODE, offsetof(struct csrec_cmd, opcode), cmd->opcode);
		return;
	}
	if (cmd->flags & ~CSREC_CMD_F_ALL) {
		fail(res, CSREC_ST_BAD_FLAGS, offsetof(struct csrec_cmd, flags), cmd->flags);
		return;
	}
	off = first_set(cmd, c->reserved);
	if (off >= 0) {
		fail(res, CSREC_ST_RESERVED, off, 0);
		return;
	}
	if (c->busy)
		q->busy = &q->m->cnt[(c->busy - CSREC_REG_CNT_CYCLES) / 8];
	c->run(q, cmd->body, res);
}
