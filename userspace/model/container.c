// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads and validates model containers (FORMAT.md). */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/csrec_hw.h>

#include "csm.h"
#include "format.h"

#define DIM_MAX		1024u
#define RANK_MAX	256u
#define WIDTH_MAX	(1u << 20)
#define REPEAT_MAX	65536u
#define SECTIONS_MAX	65536u
#define INPUTS_MAX	65535u
#define ROWS_MAX	0x7fffffffu

struct parser {
	const uint8_t *data;
	size_t size;
	const struct csm_dirent *dir;
	uint32_t nsections;
	bool skip_rows;			/* leave their checksums unchecked */
	struct csm_model *m;
	struct csm_err *err;
};

static const char *section_name(uint32_t type)
{
	static const char *const names[] = {
		"?", "META", "TABLES", "ROWS", "CORES", "ORDER", "LAYERS", "WEIGHTS", "BUFFERS",
		"NODES", "INPUT",
	};

	return names[type < sizeof(names) / sizeof(names[0]) ? type : 0];
}

static bool is_zero(const void *p, size_t n)
{
	const uint8_t *b = p;

	while (n--)
		if (*b++)
			return false;
	return true;
}

/* Names are printable, not empty, and end within their field. */
static bool get_name(char out[17], const char in[16])
{
	size_t n = strnlen(in, 16);

	if (!n || n == 16 || !is_zero(in + n, 16 - n))
		return false;
	for (size_t i = 0; i < n; i++)
		if (in[i] <= ' ' || in[i] > '~')
			return false;
	memcpy(out, in, n);
	out[n] = 0;
	return true;
}

static int check_header(struct parser *p)
{
	struct csm_hdr h;
	uint8_t page[CSM_PAGE];
	uint32_t crc;

	if (p->size < CSM_PAGE)
		return csm_fail(p->err, -EBADMSG, "file has %zu bytes, less than a header", p->size);
	memcpy(&h, p->data, sizeof(h));
	if (memcmp(h.magic, CSM_MAGIC, 8))
		return csm_fail(p->err, -EBADMSG, "wrong magic: this is no csrec model");
	if (h.major != CSM_MAJOR)
		return csm_fail(p->err, -EPROTONOSUPPORT,
				"container version %u.%u, this program reads %u.x", h.major, h.minor,
				CSM_MAJOR);
	memcpy(page, p->data, CSM_PAGE);
	memset(page + offsetof(struct csm_hdr, crc), 0, 4);
	crc = csm_crc32c(0, page, CSM_PAGE);
	if (crc != h.crc)
		return csm_fail(p->err, -EBADMSG, "header checksum is %08x, should be %08x", crc,
				h.crc);
	if (!is_zero(page + sizeof(h), CSM_PAGE - sizeof(h)))
		return csm_fail(p->err, -EBADMSG, "reserved header bytes are not zero");
	if (h.file_size != p->size)
		return csm_fail(p->err, -EBADMSG, "file has %zu bytes, its header says %llu",
				p->size, (unsigned long long)h.file_size);
	if (!h.nsections || h.nsections > SECTIONS_MAX)
		return csm_fail(p->err, -EBADMSG, "%u sections; 1 to %u are possible", h.nsections,
				SECTIONS_MAX);
	if (h.dir_off % CSM_PAGE || h.dir_off < CSM_PAGE || h.dir_off > p->size ||
	    h.nsections * sizeof(struct csm_dirent) > p->size - h.dir_off)
		return csm_fail(p->err, -EBADMSG, "directory at %llu with %u entries leaves the file",
				(unsigned long long)h.dir_off, h.nsections);
	p->dir = (const void *)(p->data + h.dir_off);
	p->nsections = h.nsections;
	crc = csm_crc32c(0, p->dir, h.nsections * sizeof(*p->dir));
	if (crc != h.dir_crc)
		return csm_fail(p->err, -EBADMSG, "directory checksum is %08x, should be %08x", crc,
				h.dir_crc);
	p->m->id = h.crc;
	return 0;
}

struct span {
	uint64_t off, end;
};

static int by_off(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->off < y->off ? -1 : x->off > y->off;
}

static int by_key(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int check_sections(struct parser *p)
{
	uint32_t n = p->nsections;
	struct span *spans = calloc(n + 1, sizeof(*spans));
	uint64_t *keys = calloc(n, sizeof(*keys));
	int ret = -ENOMEM;

	if (!spans || !keys) {
		csm_fail(p->err, ret, "out of memory");
		goto out;
	}
	ret = -EBADMSG;
	for (uint32_t i = 0; i < n; i++) {
		const struct csm_dirent *d = &p->dir[i];
		const char *name = section_name(d->type);

		if (d->off % CSM_PAGE || d->off < CSM_PAGE || !d->size || d->off > p->size ||
		    d->size > p->size - d->off) {
			csm_fail(p->err, ret,
				 "section %u (%s %u): %llu bytes at %llu are not within the file or not aligned to %u",
				 i, name, d->index, (unsigned long long)d->size,
				 (unsigned long long)d->off, CSM_PAGE);
			goto out;
		}
		if (d->flags & ~CSM_SEC_F_OPTIONAL) {
			csm_fail(p->err, ret, "section %u (%s %u): unknown flags %#x", i, name, d->index,
				 d->flags);
			goto out;
		}
		if ((!d->type || d->type > CSM_SEC_INPUT) && !(d->flags & CSM_SEC_F_OPTIONAL)) {
			csm_fail(p->err, ret, "section %u has type %u, which this program does not know",
				 i, d->type);
			goto out;
		}
		spans[i] = (struct span){ d->off, d->off + d->size };
		keys[i] = (uint64_t)d->type << 32 | d->index;
	}
	spans[n].off = (const uint8_t *)p->dir - p->data;
	spans[n].end = spans[n].off + n * sizeof(*p->dir);
	qsort(spans, n + 1, sizeof(*spans), by_off);
	qsort(keys, n, sizeof(*keys), by_key);
	for (uint32_t i = 0; i < n; i++) {
		if (spans[i].end > spans[i + 1].off) {
			csm_fail(p->err, ret, "sections overlap at byte %llu",
				 (unsigned long long)spans[i + 1].off);
			goto out;
		}
		if (i && keys[i] == keys[i - 1]) {
			csm_fail(p->err, ret, "two sections %s %u", section_name(keys[i] >> 32),
				 (uint32_t)keys[i]);
			goto out;
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct csm_dirent *d = &p->dir[i];
		uint32_t crc;

		if (p->skip_rows && d->type == CSM_SEC_ROWS)
			continue;
		crc = csm_crc32c(0, p->data + d->off, d->size);
		if (crc != d->crc) {
			csm_fail(p->err, ret, "section %u (%s %u): checksum is %08x, should be %08x", i,
				 section_name(d->type), d->index, crc, d->crc);
			goto out;
		}
	}
	ret = 0;
out:
	free(spans);
	free(keys);
	return ret;
}

/* A section's bytes, or NULL with size 0 if there is none. */
static const void *find(const struct parser *p, uint32_t type, uint32_t index, uint64_t *size)
{
	for (uint32_t i = 0; i < p->nsections; i++) {
		if (p->dir[i].type == type && p->dir[i].index == index) {
			*size = p->dir[i].size;
			return p->data + p->dir[i].off;
		}
	}
	*size = 0;
	return NULL;
}

/* A section of records; count 0 if there is none and it may be missing. */
static int records(const struct parser *p, uint32_t type, size_t each, bool needed,
		   const void **recs, uint32_t *count)
{
	uint64_t size;

	*recs = find(p, type, 0, &size);
	if (needed && !*recs)
		return csm_fail(p->err, -EBADMSG, "no %s section", section_name(type));
	if (size % each || size / each > SECTIONS_MAX)
		return csm_fail(p->err, -EBADMSG,
				"%s section has %llu bytes; it takes 1 to %u records of %zu",
				section_name(type), (unsigned long long)size, SECTIONS_MAX, each);
	*count = size / each;
	return 0;
}

static int expect(const struct parser *p, uint32_t type, uint32_t index, const char *name,
		  uint64_t want, const void **data)
{
	uint64_t size;

	*data = find(p, type, index, &size);
	if (!*data)
		return csm_fail(p->err, -EBADMSG, "%s: no %s section", name, section_name(type));
	if (size != want)
		return csm_fail(p->err, -EBADMSG, "%s: %s section has %llu bytes, its shape takes %llu",
				name, section_name(type), (unsigned long long)size,
				(unsigned long long)want);
	return 0;
}

/* nrows: of the table that is ordered, which an overlay's may be a part of */
static int parse_order(struct parser *p, struct csm_table *t, uint32_t index, uint32_t nrows)
{
	uint64_t size;
	uint8_t *seen;
	int ret = 0;

	t->order = find(p, CSM_SEC_ORDER, index, &size);
	if (!t->order)
		return 0;
	if (size % 4 || size / 4 > nrows)
		return csm_fail(p->err, -EBADMSG, "table %s: ORDER section has %llu bytes for %u rows",
				t->name, (unsigned long long)size, nrows);
	t->norder = size / 4;
	seen = calloc(nrows / 8 + 1, 1);
	if (!seen)
		return csm_fail(p->err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < t->norder && !ret; i++) {
		uint32_t id = t->order[i];

		if (id >= nrows || seen[id / 8] >> id % 8 & 1)
			ret = csm_fail(p->err, -EBADMSG,
				       "table %s: ORDER entry %u is %u, which is no row or was there before",
				       t->name, i, id);
		else
			seen[id / 8] |= 1 << id % 8;
	}
	free(seen);
	return ret;
}

/* What all table records have in common. */
static int parse_record(struct parser *p, struct csm_table *t, const struct csm_rec_table *r,
			uint32_t index)
{
	if (!get_name(t->name, r->name))
		return csm_fail(p->err, -EBADMSG, "table %u has no proper name", index);
	for (uint32_t i = 0; i < index; i++)
		if (!strcmp(p->m->tables[i].name, t->name))
			return csm_fail(p->err, -EBADMSG, "tables %u and %u are both named %s", i, index,
					t->name);
	if (r->rsvd20 || r->rsvd54 || r->rsvd56)
		return csm_fail(p->err, -EBADMSG, "table %s: reserved bytes are not zero", t->name);
	if (r->form > CSM_FORM_TT || r->dtype > (r->form == CSM_FORM_TT ? CSM_FP32 : CSM_INT8))
		return csm_fail(p->err, -EBADMSG, "table %s: unknown form %u or type %u", t->name,
				r->form, r->dtype);
	if (!r->dim || r->dim > DIM_MAX || !r->nrows || r->nrows > ROWS_MAX)
		return csm_fail(p->err, -EBADMSG, "table %s: shape %llu x %u is outside 1..%u x 1..%u",
				t->name, (unsigned long long)r->nrows, r->dim, ROWS_MAX, DIM_MAX);
	t->form = r->form;
	t->dtype = r->dtype;
	t->dim = r->dim;
	t->nrows = r->nrows;
	if (r->form == CSM_FORM_ROWS && !is_zero(r->p, 22))
		return csm_fail(p->err, -EBADMSG, "table %s: TT shape of a table of rows", t->name);
	return 0;
}

static int parse_tt(struct parser *p, struct csm_table *t, const struct csm_rec_table *r,
		    uint32_t index)
{
	uint64_t rows = 1, dim = 1, total = 0;
	uint32_t rank[4] = { 1, r->r[0], r->r[1], 1 };
	const void *data;
	int ret;

	for (int k = 0; k < 3; k++) {
		/* p below 2^31, q and r below 2^16: neither product wraps, each is capped */
		if (!r->p[k] || r->p[k] > ROWS_MAX || !r->q[k] || r->q[k] > DIM_MAX ||
		    (k < 2 && (!r->r[k] || r->r[k] > RANK_MAX)))
			return csm_fail(p->err, -EBADMSG, "table %s: TT shape of core %d is out of range",
					t->name, k);
		rows *= r->p[k];
		dim *= r->q[k];
		if (rows > UINT32_MAX || dim > DIM_MAX)
			return csm_fail(p->err, -EBADMSG, "table %s: TT shape is too large", t->name);
	}
	if (rows < t->nrows || dim != t->dim)
		return csm_fail(p->err, -EBADMSG, "table %s: TT shape holds %llu x %llu, table is %u x %u",
				t->name, (unsigned long long)rows, (unsigned long long)dim, t->nrows,
				t->dim);
	for (int k = 0; k < 3; k++) {
		t->p[k] = r->p[k];
		t->q[k] = r->q[k];
		t->core_len[k] = (uint64_t)r->p[k] * rank[k] * r->q[k] * rank[k + 1];
		total += (t->core_len[k] * 4 + 63) / 64 * 64;
	}
	t->r[0] = r->r[0];
	t->r[1] = r->r[1];
	ret = expect(p, CSM_SEC_CORES, index, t->name, total, &data);
	if (ret)
		return ret;
	for (int k = 0; k < 3; k++) {
		t->core[k] = data;
		data = (const uint8_t *)data + (t->core_len[k] * 4 + 63) / 64 * 64;
	}
	return 0;
}

static int parse_table(struct parser *p, struct csm_table *t, const struct csm_rec_table *r,
		       uint32_t index)
{
	const void *data;
	int ret = parse_record(p, t, r, index);

	if (ret)
		return ret;
	if (r->form == CSM_FORM_ROWS) {
		ret = expect(p, CSM_SEC_ROWS, index, t->name,
			     t->nrows * csm_row_bytes(t->dtype, t->dim), &data);
		if (ret)
			return ret;
		if (t->dtype == CSM_FP32)
			t->rows = data;
		else
			t->raw = data;
		return parse_order(p, t, index, t->nrows);
	}
	return parse_tt(p, t, r, index);
}

static int parse_layer(struct parser *p, struct csm_layer *l, const struct csm_rec_layer *r,
		       uint32_t index)
{
	const void *data;
	uint64_t w;
	int ret;

	if (!get_name(l->name, r->name))
		return csm_fail(p->err, -EBADMSG, "layer %u has no proper name", index);
	if (!is_zero(r->rsvd27, sizeof(r->rsvd27)) || r->has_bias > 1)
		return csm_fail(p->err, -EBADMSG, "layer %s: reserved bytes are not zero", l->name);
	if (!r->in_dim || !r->out_dim || r->in_dim > UINT16_MAX || r->out_dim > UINT16_MAX ||
	    r->act > CSREC_ACT_SIGMOID || r->dtype != CSREC_DTYPE_FP32)
		return csm_fail(p->err, -EBADMSG,
				"layer %s: shape %u x %u, activation %u or type %u is out of range",
				l->name, r->out_dim, r->in_dim, r->act, r->dtype);
	l->in_dim = r->in_dim;
	l->out_dim = r->out_dim;
	l->act = r->act;
	w = (uint64_t)l->in_dim * l->out_dim;
	ret = expect(p, CSM_SEC_WEIGHTS, index, l->name, (w + (r->has_bias ? l->out_dim : 0)) * 4,
		     &data);
	if (ret)
		return ret;
	l->w = data;
	l->bias = r->has_bias ? l->w + w : NULL;
	return 0;
}

static int parse_buffer(struct parser *p, struct csm_buffer *b, const struct csm_rec_buffer *r,
			uint32_t index)
{
	struct csm_model *m = p->m;

	if (!get_name(b->name, r->name))
		return csm_fail(p->err, -EBADMSG, "buffer %u has no proper name", index);
	if (!is_zero(r->rsvd21, sizeof(r->rsvd21)) || r->kind > CSM_BUF_OUTPUT)
		return csm_fail(p->err, -EBADMSG,
				"buffer %s: unknown kind, or reserved bytes are not zero", b->name);
	if (!r->width || r->width > WIDTH_MAX)
		return csm_fail(p->err, -EBADMSG, "buffer %s: width %u is outside 1..%u", b->name,
				r->width, WIDTH_MAX);
	b->width = r->width;
	b->kind = r->kind;
	if (b->kind == CSM_BUF_DENSE) {
		if (m->dense >= 0)
			return csm_fail(p->err, -EBADMSG, "buffer %s: a second dense input", b->name);
		if (b->width != m->ndense)
			return csm_fail(p->err, -EBADMSG,
					"buffer %s: dense input is %u wide, the input has %u", b->name,
					b->width, m->ndense);
		m->dense = index;
	} else if (b->kind == CSM_BUF_OUTPUT && m->output < 0) {
		m->output = index;
	}
	return 0;
}

static uint64_t node_extent(uint32_t off, uint32_t len, uint32_t repeat, uint32_t step)
{
	return (uint64_t)off + (uint64_t)(repeat - 1) * step + len;
}

static int parse_node(struct parser *p, struct csm_node *n, const struct csm_rec_node *r,
		      uint32_t index)
{
	struct csm_model *m = p->m;
	uint64_t in, out;

#define BAD(...)	csm_fail(p->err, -EBADMSG, "node " __VA_ARGS__)
	if (r->rsvd6 || !is_zero(r->rsvd48, sizeof(r->rsvd48)))
		return BAD("%u: reserved bytes are not zero", index);
	if (r->op < CSM_OP_EMB || r->op > CSM_OP_CAT)
		return BAD("%u: unknown operation %u", index, r->op);
	if (r->flags & ~(r->op == CSM_OP_DOT ? CSM_NODE_F_SELF : 0))
		return BAD("%u: unknown flags %#x", index, r->flags);
	if (!r->repeat || r->repeat > REPEAT_MAX)
		return BAD("%u: repeat %u is outside 1..%u", index, r->repeat, REPEAT_MAX);
	if (r->dst >= m->nbuffers || (r->op != CSM_OP_EMB && r->src >= m->nbuffers))
		return BAD("%u: no such buffer", index);
	*n = (struct csm_node){
		.op = r->op, .self = r->flags & CSM_NODE_F_SELF, .param = r->param,
		.column = r->column, .src = r->src, .src_off = r->src_off, .dst = r->dst,
		.dst_off = r->dst_off, .nvec = r->nvec, .dim = r->dim, .vec_step = r->vec_step,
		.repeat = r->repeat, .src_step = r->src_step, .dst_step = r->dst_step,
	};
	if (r->op == CSM_OP_EMB) {
		if (r->param >= m->ntables || r->column >= m->ncolumns)
			return BAD("%u: table %u or column %u does not exist", index, r->param,
				   r->column);
		if (r->src || r->src_off || r->src_step || r->repeat != 1)
			return BAD("%u: EMB reads no buffer and does not repeat", index);
		if (index && m->nodes[index - 1].op != CSM_OP_EMB)
			return BAD("%u: EMB nodes come before all others", index);
		in = 0;
		out = m->tables[r->param].dim;
		n->emb = m->nemb++;
	} else if (r->op == CSM_OP_MLP) {
		if (r->param >= m->nlayers)
			return BAD("%u: layer %u does not exist", index, r->param);
		in = m->layers[r->param].in_dim;
		out = m->layers[r->param].out_dim;
	} else {
		uint64_t v = r->nvec;

		if (!r->nvec || !r->dim || r->dim > DIM_MAX || r->vec_step < r->dim ||
		    r->vec_step > WIDTH_MAX || r->param)
			return BAD("%u: %u vectors of %u elements, %u apart, are out of range", index,
				   r->nvec, r->dim, r->vec_step);
		in = (v - 1) * r->vec_step + r->dim;
		out = r->op == CSM_OP_CAT ? v * r->dim : r->dim + v * (v - 1 + 2 * n->self) / 2;
	}
	if (r->op != CSM_OP_EMB && r->column)
		return BAD("%u: column without EMB", index);
	if (r->op < CSM_OP_DOT && (r->nvec || r->dim || r->vec_step))
		return BAD("%u: vectors without DOT or CAT", index);
	if (r->op != CSM_OP_EMB && node_extent(r->src_off, in, r->repeat, r->src_step) >
				   m->buffers[r->src].width)
		return BAD("%u: reads past the %u elements of buffer %s", index,
			   m->buffers[r->src].width, m->buffers[r->src].name);
	if (node_extent(r->dst_off, out, r->repeat, r->dst_step) > m->buffers[r->dst].width)
		return BAD("%u: writes past the %u elements of buffer %s", index,
			   m->buffers[r->dst].width, m->buffers[r->dst].name);
	if (m->buffers[r->dst].kind == CSM_BUF_DENSE || (r->op != CSM_OP_EMB && r->src == r->dst))
		return BAD("%u: must not write the dense input or the buffer it reads", index);
	if (r->repeat > 1 && r->dst_step < out)
		return BAD("%u: repetitions write over each other", index);
	n->src_len = in;
	n->dst_len = out;
#undef BAD
	return 0;
}

/* Is all that nodes read, and all of each output, written before? */
static int check_flow(struct parser *p)
{
	struct csm_model *m = p->m;
	uint8_t **have = calloc(m->nbuffers, sizeof(*have));
	int ret = 0;

	for (uint32_t b = 0; have && b < m->nbuffers; b++) {
		have[b] = calloc(m->buffers[b].width, 1);
		if (!have[b])
			ret = -ENOMEM;
		else if (m->buffers[b].kind == CSM_BUF_DENSE)
			memset(have[b], 1, m->buffers[b].width);
	}
	if (!have || ret) {
		ret = csm_fail(p->err, -ENOMEM, "out of memory");
		goto out;
	}
	for (uint32_t i = 0; i < m->nnodes; i++) {
		const struct csm_node *n = &m->nodes[i];
		uint32_t vecs = n->op >= CSM_OP_DOT ? n->nvec : n->op == CSM_OP_MLP;
		uint32_t len = n->op >= CSM_OP_DOT ? n->dim : n->src_len;

		for (uint32_t rep = 0; rep < n->repeat; rep++) {
			for (uint32_t v = 0; v < vecs; v++) {
				uint64_t at = n->src_off + (uint64_t)rep * n->src_step +
					      (uint64_t)v * n->vec_step;

				if (memchr(have[n->src] + at, 0, len)) {
					ret = csm_fail(p->err, -EBADMSG,
						       "node %u reads elements of buffer %s that no node before it writes",
						       i, m->buffers[n->src].name);
					goto out;
				}
			}
			if (n->op == CSM_OP_EMB && memchr(have[n->dst] + n->dst_off, 1, n->dst_len)) {
				ret = csm_fail(p->err, -EBADMSG,
					       "node %u writes what another EMB writes in buffer %s", i,
					       m->buffers[n->dst].name);
				goto out;
			}
			memset(have[n->dst] + n->dst_off + (uint64_t)rep * n->dst_step, 1, n->dst_len);
		}
	}
	for (uint32_t b = 0; b < m->nbuffers; b++) {
		if (m->buffers[b].kind == CSM_BUF_OUTPUT &&
		    memchr(have[b], 0, m->buffers[b].width)) {
			ret = csm_fail(p->err, -EBADMSG, "output %s is not written in full",
				       m->buffers[b].name);
			goto out;
		}
	}
out:
	for (uint32_t b = 0; have && b < m->nbuffers; b++)
		free(have[b]);
	free(have);
	return ret;
}

static int parse_input(struct parser *p)
{
	const struct csm_rec_input *in;
	const void *data;
	int ret = expect(p, CSM_SEC_INPUT, 0, "model", sizeof(*in), &data);

	if (ret)
		return ret;
	in = data;
	if (!get_name(p->m->format, in->format) || in->rsvd24 ||
	    (strcmp(p->m->format, CSM_INPUT_CRITEO) && strcmp(p->m->format, CSM_INPUT_COLUMNS)))
		return csm_fail(p->err, -EBADMSG, "input format '%.16s' is not known", in->format);
	if (in->ndense > INPUTS_MAX || !in->ncolumns || in->ncolumns > INPUTS_MAX)
		return csm_fail(p->err, -EBADMSG,
				"input has %u dense and %u id columns; 0 to %u and 1 to %u are possible",
				in->ndense, in->ncolumns, INPUTS_MAX, INPUTS_MAX);
	if (!strcmp(p->m->format, CSM_INPUT_CRITEO) &&
	    ((in->ndense && in->ndense != CSM_TSV_DENSE) || in->ncolumns > CSM_TSV_CATS))
		return csm_fail(p->err, -EBADMSG,
				"input has %u dense and %u category columns; criteo-tsv has %u and %u",
				in->ndense, in->ncolumns, CSM_TSV_DENSE, CSM_TSV_CATS);
	p->m->ndense = in->ndense;
	p->m->ncolumns = in->ncolumns;
	return 0;
}

static int parse_all(struct parser *p)
{
	struct csm_model *m = p->m;
	const void *tables, *layers, *buffers, *nodes;
	uint64_t size;
	int ret;

	if ((ret = check_header(p)) || (ret = check_sections(p)) || (ret = parse_input(p)) ||
	    (ret = records(p, CSM_SEC_TABLES, sizeof(struct csm_rec_table), false, &tables,
			   &m->ntables)) ||
	    (ret = records(p, CSM_SEC_LAYERS, sizeof(struct csm_rec_layer), false, &layers,
			   &m->nlayers)) ||
	    (ret = records(p, CSM_SEC_BUFFERS, sizeof(struct csm_rec_buffer), true, &buffers,
			   &m->nbuffers)) ||
	    (ret = records(p, CSM_SEC_NODES, sizeof(struct csm_rec_node), true, &nodes,
			   &m->nnodes)))
		return ret;
	m->meta = find(p, CSM_SEC_META, 0, &size);
	m->meta_len = size;
	m->tables = calloc(m->ntables + 1, sizeof(*m->tables));
	m->layers = calloc(m->nlayers + 1, sizeof(*m->layers));
	m->buffers = calloc(m->nbuffers, sizeof(*m->buffers));
	m->nodes = calloc(m->nnodes, sizeof(*m->nodes));
	if (!m->tables || !m->layers || !m->buffers || !m->nodes)
		return csm_fail(p->err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < m->ntables && !ret; i++)
		ret = parse_table(p, &m->tables[i], (const struct csm_rec_table *)tables + i, i);
	for (uint32_t i = 0; i < m->nlayers && !ret; i++)
		ret = parse_layer(p, &m->layers[i], (const struct csm_rec_layer *)layers + i, i);
	for (uint32_t i = 0; i < m->nbuffers && !ret; i++)
		ret = parse_buffer(p, &m->buffers[i], (const struct csm_rec_buffer *)buffers + i, i);
	for (uint32_t i = 0; i < m->nnodes && !ret; i++)
		ret = parse_node(p, &m->nodes[i], (const struct csm_rec_node *)nodes + i, i);
	if (!ret && m->output < 0)
		ret = csm_fail(p->err, -EBADMSG, "graph has no output");
	return ret ? ret : check_flow(p);
}

static int parse_overlay(struct parser *p, const struct csm_model *base)
{
	struct csm_model *m = p->m;
	const void *tables;
	int ret;

	if ((ret = check_header(p)) || (ret = check_sections(p)) ||
	    (ret = records(p, CSM_SEC_TABLES, sizeof(struct csm_rec_table), true, &tables,
			   &m->ntables)))
		return ret;
	if (m->ntables != base->ntables)
		return csm_fail(p->err, -EBADMSG, "is for %u tables, the model has %u", m->ntables,
				base->ntables);
	m->tables = calloc(m->ntables + 1, sizeof(*m->tables));
	if (!m->tables)
		return csm_fail(p->err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < m->ntables; i++) {
		const struct csm_rec_table *r = (const struct csm_rec_table *)tables + i;
		const struct csm_table *b = &base->tables[i];
		struct csm_table *t = &m->tables[i];

		ret = parse_record(p, t, r, i);
		if (ret)
			return ret;
		if (strcmp(t->name, b->name) || t->dim != b->dim || t->nrows > b->nrows ||
		    (t->form == CSM_FORM_TT && b->form == CSM_FORM_TT))
			return csm_fail(p->err, -EBADMSG, "table %s: does not fit the model's %s, %u x %u",
					t->name, b->name, b->nrows, b->dim);
		if (t->form == CSM_FORM_TT)
			ret = parse_tt(p, t, r, i);
		if (!ret)
			ret = parse_order(p, t, i, b->nrows);
		if (ret)
			return ret;
	}
	return 0;
}

/* What kind of file, and how much of it is looked at */
struct how {
	bool skip_rows;			/* leave checksums of ROWS sections alone */
	const struct csm_model *base;	/* this is an overlay for that model */
};

static int parse(struct csm_model *m, const void *data, size_t size, struct how how,
		 struct csm_err *err)
{
	struct parser p = { .data = data, .size = size, .skip_rows = how.skip_rows, .m = m, .err = err };
	int ret;

	memset(m, 0, sizeof(*m));
	m->dense = m->output = -1;
	ret = how.base ? parse_overlay(&p, how.base) : parse_all(&p);
	if (ret)
		csm_model_free(m);
	return ret;
}

int csm_model_parse(struct csm_model *m, const void *data, size_t size, struct csm_err *err)
{
	return parse(m, data, size, (struct how){ }, err);
}

static int load(struct csm_model *m, const char *path, struct how how, struct csm_err *err)
{
	struct csm_err why;
	struct stat st;
	void *data = NULL;
	int fd, ret;

	memset(m, 0, sizeof(*m));
	/* a FIFO would wait for its other end */
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st)) {
		ret = csm_fail(err, -errno, "%s: %s", path, strerror(errno));
		goto out;
	}
	if (!S_ISREG(st.st_mode)) {
		ret = csm_fail(err, -EINVAL, "%s: not a regular file", path);
		goto out;
	}
	if (st.st_size) {
		data = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (data == MAP_FAILED) {
			data = NULL;
			ret = csm_fail(err, -errno, "%s: mapping %llu bytes: %s", path,
				       (unsigned long long)st.st_size, strerror(errno));
			goto out;
		}
		/* the checksums go through it once; later reads are here and there */
		madvise(data, st.st_size, MADV_SEQUENTIAL);
	}
	ret = parse(m, data, st.st_size, how, &why);
	if (ret) {
		csm_fail(err, ret, "%s: %s", path, why.msg);
		goto out;
	}
	madvise(data, st.st_size, MADV_NORMAL);
	m->data = data;
	m->size = st.st_size;
	data = NULL;
out:
	if (data)
		munmap(data, st.st_size);
	if (fd >= 0)
		close(fd);
	return ret;
}

int csm_model_load(struct csm_model *m, const char *path, struct csm_err *err)
{
	return load(m, path, (struct how){ }, err);
}

int csm_model_open(struct csm_model *m, const char *path, struct csm_err *err)
{
	return load(m, path, (struct how){ .skip_rows = true }, err);
}

int csm_overlay_load(struct csm_model *o, const char *path, const struct csm_model *m,
		     struct csm_err *err)
{
	return load(o, path, (struct how){ .base = m }, err);
}

void csm_model_free(struct csm_model *m)
{
	free(m->tables);
	free(m->layers);
	free(m->buffers);
	free(m->nodes);
	if (m->data)
		munmap(m->data, m->size);
	memset(m, 0, sizeof(*m));
}

int csm_model_find_table(const struct csm_model *m, const char *name)
{
	for (uint32_t i = 0; i < m->ntables; i++)
		if (!strcmp(m->tables[i].name, name))
			return i;
	return -1;
}
