// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Scores on a csrec device. Where things live:
 *
 *   host arena  dense inputs, ids, offsets, descriptors, outputs; pinned once
 *   DRAM        a region per table of rows (hot rows, then slots), one for the MLP
 *               weights and one for the graph's temporary buffers
 *   ONCHIP      one region with all TT cores
 *
 * A batch is one submission with one doorbell: the lookups that need nothing from the
 * drive, WAIT on a fence, the lookups that do, the TT rows of split tables, which are added
 * to those lookups' sums, and the rest of the graph in its order.
 * The driver raises the fence when the drive's blocks have arrived (which costs it an
 * admin command), so the first part runs while they are on their way.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <csrec.h>

#include "csm.h"

#define ALIGN	64u

/* Where a graph buffer lies */
struct place {
	uint32_t key;
	uint64_t off;
};

struct csm_device {
	struct csrec_dev *dev;
	struct csrec_queue *queue;
	const struct csm_model *m;
	struct csm_remap *remap;
	struct csm_device_opts o;
	struct csm_totals totals;

	uint32_t *table_key;		/* per table of rows */
	uint32_t core_key, weight_key, temp_key;
	uint64_t (*core_off)[3];	/* per table */
	uint64_t *w_off, *bias_off;	/* per layer */
	struct place *bufs;

	uint8_t *arena;
	uint32_t arena_key;
	uint64_t desc_off;		/* descriptors, in the order of the commands */
	/* per EMB node, twice: of the table's rows, and of the TT rows of a split one */
	uint64_t (*ids_off)[2], (*offsets_off)[2];
	struct csm_bags *bags[2];	/* the same places as pointers */

	struct csrec_cmd *cmds;
	struct csrec_cqe *cqes;
	uint32_t max_cmds, ncmds;
	uint64_t desc_at;
	uint32_t fence_key;
	uint64_t fence;
	struct csm_plan plan;
	struct csrec_p2p_seg *segs;
	uint32_t nsegs;
	/* what commands since the last F_FENCE read and write, as element ranges */
	struct touch {
		uint32_t buf, lo, hi;
		bool write;
	} *touch;
	uint32_t ntouch;
};

static uint64_t align_up(uint64_t x)
{
	return (x + ALIGN - 1) / ALIGN * ALIGN;
}

/* A failure of libcsrec: its words, with what we were at. */
static int lib_fail(struct csm_err *err, int ret, const char *what)
{
	return csm_fail(err, ret, "%s: %s", what, csrec_error());
}

/* Shape and cores of a table's rows in TT form, all of them or a split table's, or NULL. */
static const struct csm_table *tt_of(const struct csm_device *d, uint32_t table)
{
	const struct csm_table *t = &d->m->tables[table];

	return t->form == CSM_FORM_TT ? t : d->remap->maps[table].tt;
}

static int check_caps(struct csm_device *d, struct csm_err *err)
{
	const struct csm_model *m = d->m;
	uint32_t dim, vecs, rank, width, need = CSREC_CAPE_COPY;
	struct csrec_info info;
	int ret = csrec_get_info(d->dev, &info, sizeof(info));

	if (ret)
		return lib_fail(err, ret, "asking for the device's capabilities");
	dim = CSREC_CAP(info.cap_limit, CSREC_CAPL_DIM, 16);
	vecs = CSREC_CAP(info.cap_limit, CSREC_CAPL_VECS, 16);
	rank = CSREC_CAP(info.cap_limit, CSREC_CAPL_RANK, 16);
	width = CSREC_CAP(info.cap_limit, CSREC_CAPL_WIDTH, 16);
	for (uint32_t i = 0; i < m->nnodes; i++) {
		const struct csm_node *n = &m->nodes[i];

		if (n->op == CSM_OP_EMB) {
			const struct csm_table *t = &m->tables[n->param], *tt = tt_of(d, n->param);

			need |= (t->form == CSM_FORM_ROWS ? CSREC_CAPE_EMB : 0) |
				(tt ? CSREC_CAPE_TT : 0);
			if (t->dim > dim || (tt && (tt->r[0] > rank || tt->r[1] > rank)))
				return csm_fail(err, -EOPNOTSUPP,
						"table %s: row or rank is larger than this device's %u and %u",
						t->name, dim, rank);
		} else if (n->op == CSM_OP_MLP) {
			const struct csm_layer *l = &m->layers[n->param];

			need |= CSREC_CAPE_MLP;
			if (l->in_dim > width || l->out_dim > width)
				return csm_fail(err, -EOPNOTSUPP,
						"layer %s: %u x %u is wider than this device's %u",
						l->name, l->out_dim, l->in_dim, width);
		} else {
			need |= CSREC_CAPE_INTERACT;
			if (n->nvec > vecs || n->dim > dim)
				return csm_fail(err, -EOPNOTSUPP,
						"node %u: %u vectors of %u are beyond this device's %u of %u",
						i, n->nvec, n->dim, vecs, dim);
		}
	}
	if ((info.cap_engine & need) != need)
		return csm_fail(err, -EOPNOTSUPP, "this device lacks engines the model needs (%#x)",
				(unsigned int)(need & ~info.cap_engine));
	return 0;
}

static int alloc_mem(struct csm_device *d, uint32_t kind, uint64_t len, const char *what,
		     uint32_t *key, struct csm_err *err)
{
	int ret = csrec_mem_alloc(d->dev, kind, len, key);

	if (ret)
		return csm_fail(err, ret, "%s: %llu bytes of device memory: %s", what,
				(unsigned long long)len, csrec_error());
	return 0;
}

/* The hot rows of a table, or all of them, to the start of its region. */
static int load_rows(struct csm_device *d, uint32_t t, struct csm_err *err)
{
	const struct csm_table *table = &d->m->tables[t];
	const struct csm_map *map = &d->remap->maps[t];
	const uint32_t chunk = 4096;
	uint8_t *buf;
	int ret;

	ret = alloc_mem(d, CSREC_REGION_DRAM, map->region_size, table->name, &d->table_key[t], err);
	if (ret)
		return ret;
	buf = calloc(chunk, map->stride);
	if (!buf)
		return csm_fail(err, -ENOMEM, "out of memory");
	for (uint32_t at = 0; at < map->nhot && !ret; at += chunk) {
		uint32_t n = map->nhot - at < chunk ? map->nhot - at : chunk;

		for (uint32_t i = 0; i < n; i++) {
			uint32_t id = map->ids ? map->ids[at + i] : at + i;

			csm_row(d->m, t, id, (float *)(buf + (size_t)i * map->stride));
		}
		ret = csrec_copy_to_device(d->queue, d->table_key[t], (uint64_t)at * map->stride, buf,
					   (size_t)n * map->stride);
		if (ret)
			lib_fail(err, ret, table->name);
	}
	free(buf);
	return ret;
}

static int load_tables(struct csm_device *d, struct csm_err *err)
{
	const struct csm_model *m = d->m;
	uint64_t onchip = 0;
	int ret = 0;

	for (uint32_t t = 0; t < m->ntables; t++) {
		const struct csm_table *tt = tt_of(d, t);

		for (int k = 0; tt && k < 3; k++) {
			d->core_off[t][k] = onchip;
			onchip = align_up(onchip + tt->core_len[k] * 4);
		}
	}
	if (onchip)
		ret = alloc_mem(d, CSREC_REGION_ONCHIP, onchip, "TT cores", &d->core_key, err);
	for (uint32_t t = 0; t < m->ntables && !ret; t++) {
		const struct csm_table *tt = tt_of(d, t);

		if (m->tables[t].form == CSM_FORM_ROWS)
			ret = load_rows(d, t, err);
		for (int k = 0; tt && k < 3 && !ret; k++) {
			ret = csrec_copy_to_device(d->queue, d->core_key, d->core_off[t][k],
						   tt->core[k], tt->core_len[k] * 4);
			if (ret)
				lib_fail(err, ret, m->tables[t].name);
		}
	}
	return ret;
}

static int load_layers(struct csm_device *d, struct csm_err *err)
{
	const struct csm_model *m = d->m;
	uint64_t size = 0;
	int ret;

	for (uint32_t i = 0; i < m->nlayers; i++) {
		const struct csm_layer *l = &m->layers[i];

		d->w_off[i] = size;
		size = align_up(size + (uint64_t)l->in_dim * l->out_dim * 4);
		d->bias_off[i] = size;
		size = align_up(size + l->out_dim * 4);
	}
	if (!size)
		return 0;
	ret = alloc_mem(d, CSREC_REGION_DRAM, size, "weights", &d->weight_key, err);
	for (uint32_t i = 0; i < m->nlayers && !ret; i++) {
		const struct csm_layer *l = &m->layers[i];

		ret = csrec_copy_to_device(d->queue, d->weight_key, d->w_off[i], l->w,
					   (size_t)l->in_dim * l->out_dim * 4);
		if (!ret && l->bias)
			ret = csrec_copy_to_device(d->queue, d->weight_key, d->bias_off[i], l->bias,
						   l->out_dim * 4);
		if (ret)
			lib_fail(err, ret, l->name);
	}
	return ret;
}

/* Gives every buffer its place, and makes the arena and the temporary region. */
static int make_buffers(struct csm_device *d, struct csm_err *err)
{
	const struct csm_model *m = d->m;
	uint64_t host = 0, temp = 0, desc = 0;
	void *arena;
	int ret;

	for (uint32_t b = 0; b < m->nbuffers; b++) {
		uint64_t *at = m->buffers[b].kind == CSM_BUF_TEMP ? &temp : &host;

		d->bufs[b].off = *at;
		*at = align_up(*at + (uint64_t)d->o.batch * m->buffers[b].width * 4);
	}
	for (uint32_t e = 0; e < m->nemb; e++) {
		for (int k = 0; k < 2; k++) {
			d->ids_off[e][k] = host;
			host = align_up(host + (uint64_t)d->o.batch * d->o.max_ids * 4);
			d->offsets_off[e][k] = host;
			host = align_up(host + (d->o.batch + 1ull) * 4);
		}
	}
	for (uint32_t i = 0; i < m->nnodes; i++) {
		const struct csm_node *n = &m->nodes[i];

		/* all descriptors fit in the largest, and so keep their alignment */
		uint32_t cmds = n->op == CSM_OP_EMB ? 2 : n->repeat;

		desc += (uint64_t)cmds * align_up(sizeof(struct csrec_tt_desc));
		d->max_cmds += cmds;
	}
	d->max_cmds++;			/* WAIT */
	d->desc_off = host;
	host += desc;
	if (temp) {
		ret = alloc_mem(d, CSREC_REGION_DRAM, temp, "buffers", &d->temp_key, err);
		if (ret)
			return ret;
	}
	ret = csrec_host_alloc(d->dev, host, CSREC_RIGHT_READ | CSREC_RIGHT_WRITE, &arena,
			       &d->arena_key);
	if (ret)
		return lib_fail(err, ret, "host memory for a batch");
	d->arena = arena;
	for (uint32_t b = 0; b < m->nbuffers; b++)
		d->bufs[b].key = m->buffers[b].kind == CSM_BUF_TEMP ? d->temp_key : d->arena_key;
	for (uint32_t e = 0; e < m->nemb; e++) {
		for (int k = 0; k < 2; k++) {
			d->bags[k][e].ids = (uint32_t *)(d->arena + d->ids_off[e][k]);
			d->bags[k][e].offsets = (uint32_t *)(d->arena + d->offsets_off[e][k]);
		}
	}
	return 0;
}

static int make_queue(struct csm_device *d, struct csm_err *err)
{
	struct csrec_info info;
	struct csrec_queue_opts opts = { .size = sizeof(opts) };
	uint32_t entries = 2, most;
	int ret = csrec_get_info(d->dev, &info, sizeof(info));

	if (ret)
		return lib_fail(err, ret, "asking for the device's capabilities");
	most = 1u << CSREC_CAP(info.cap_queue, CSREC_CAPQ_ENTRIES, 8);
	while (entries < d->max_cmds)
		entries *= 2;
	if (entries > most)
		return csm_fail(err, -EOPNOTSUPP,
				"a batch takes %u commands; this device's queues hold %u", d->max_cmds,
				most);
	if (entries < 16)
		entries = most < 16 ? most : 16;
	opts.entries = entries;
	ret = csrec_queue_create_ext(d->dev, &opts, &d->queue);
	return ret ? lib_fail(err, ret, "making a queue") : 0;
}

int csm_device_create(struct csm_device **out, struct csrec_dev *dev, const struct csm_model *m,
		      struct csm_remap *r, const struct csm_device_opts *opts,
		      struct csm_err *err)
{
	struct csm_device *d = calloc(1, sizeof(*d));
	int ret;

	if (!d)
		return csm_fail(err, -ENOMEM, "out of memory");
	d->dev = dev;
	d->m = m;
	d->remap = r;
	d->o = *opts;
	d->table_key = calloc(m->ntables + 1, sizeof(*d->table_key));
	d->core_off = calloc(m->ntables + 1, sizeof(*d->core_off));
	d->w_off = calloc(m->nlayers + 1, sizeof(*d->w_off));
	d->bias_off = calloc(m->nlayers + 1, sizeof(*d->bias_off));
	d->bufs = calloc(m->nbuffers, sizeof(*d->bufs));
	d->ids_off = calloc(m->nemb + 1, sizeof(*d->ids_off));
	d->offsets_off = calloc(m->nemb + 1, sizeof(*d->offsets_off));
	for (int k = 0; k < 2; k++)
		d->bags[k] = calloc(m->nemb + 1, sizeof(*d->bags[k]));
	ret = csm_fail(err, -ENOMEM, "out of memory");
	if (!d->table_key || !d->core_off || !d->w_off || !d->bias_off || !d->bufs ||
	    !d->ids_off || !d->offsets_off || !d->bags[0] || !d->bags[1])
		goto fail;
	ret = check_caps(d, err);
	if (!ret)
		ret = make_buffers(d, err);
	if (!ret)
		ret = make_queue(d, err);
	if (ret)
		goto fail;
	d->cmds = calloc(d->max_cmds, sizeof(*d->cmds));
	d->cqes = calloc(d->max_cmds, sizeof(*d->cqes));
	d->touch = calloc(2 * d->max_cmds, sizeof(*d->touch));
	if (!d->cmds || !d->cqes || !d->touch) {
		ret = csm_fail(err, -ENOMEM, "out of memory");
		goto fail;
	}
	ret = csrec_fence_create(dev, 0, &d->fence_key);
	if (ret) {
		lib_fail(err, ret, "making a fence");
		goto fail;
	}
	ret = load_tables(d, err);
	if (!ret)
		ret = load_layers(d, err);
	if (ret)
		goto fail;
	*out = d;
	return 0;
fail:
	csm_device_destroy(d);
	return ret;
}

void csm_device_destroy(struct csm_device *d)
{
	if (!d)
		return;
	/* the queue first: nothing may still use the memory */
	if (d->queue)
		csrec_queue_destroy(d->queue);
	for (uint32_t t = 0; d->table_key && t < d->m->ntables; t++)
		if (d->table_key[t])
			csrec_mem_free(d->dev, d->table_key[t]);
	if (d->core_key)
		csrec_mem_free(d->dev, d->core_key);
	if (d->weight_key)
		csrec_mem_free(d->dev, d->weight_key);
	if (d->temp_key)
		csrec_mem_free(d->dev, d->temp_key);
	if (d->fence_key)
		csrec_fence_destroy(d->dev, d->fence_key);
	if (d->arena)
		csrec_host_free(d->dev, d->arena);
	csm_plan_free(&d->plan);
	free(d->table_key);
	free(d->core_off);
	free(d->w_off);
	free(d->bias_off);
	free(d->bufs);
	free(d->ids_off);
	free(d->offsets_off);
	free(d->bags[0]);
	free(d->bags[1]);
	free(d->cmds);
	free(d->cqes);
	free(d->touch);
	free(d->segs);
	free(d);
}

/* A descriptor of the batch at hand, zeroed, and the command that names it. */
static void *add_cmd(struct csm_device *d, uint8_t opcode, uint32_t len)
{
	void *desc = d->arena + d->desc_at;
	struct csrec_cmd *c = &d->cmds[d->ncmds++];

	memset(desc, 0, len);
	*c = csrec_cmd_desc(opcode, d->arena_key, d->desc_at, len);
	c->flags = CSREC_CMD_F_NOIRQ;
	d->desc_at += align_up(len);
	return desc;
}

static bool clash(const struct csm_device *d, const struct touch *t)
{
	for (uint32_t i = 0; i < d->ntouch; i++) {
		const struct touch *o = &d->touch[i];

		if (o->buf == t->buf && o->lo < t->hi && t->lo < o->hi && (o->write || t->write))
			return true;
	}
	return false;
}

/* Makes the newest command wait for the earlier ones if they touch what it touches. */
static void order_cmd(struct csm_device *d, const struct touch *src, const struct touch *dst)
{
	if ((src && clash(d, src)) || clash(d, dst)) {
		d->cmds[d->ncmds - 1].flags |= CSREC_CMD_F_FENCE;
		d->ntouch = 0;
	}
	if (src)
		d->touch[d->ntouch++] = *src;
	d->touch[d->ntouch++] = *dst;
}

static void add_emb(struct csm_device *d, const struct csm_node *n, uint32_t batch)
{
	const struct csm_map *map = &d->remap->maps[n->param];
	uint32_t dim = d->m->tables[n->param].dim;
	struct touch dst = { n->dst, n->dst_off, n->dst_off + dim, true };
	struct csrec_emb_desc *e = add_cmd(d, CSREC_OP_EMB, sizeof(*e));

	e->dim = dim;
	e->dtype = CSREC_DTYPE_FP32;
	e->nbags = batch;
	e->nids = d->bags[0][n->emb].offsets[batch];
	e->nrows = map->region_rows;
	e->row_stride = map->stride;
	e->out_stride = d->m->buffers[n->dst].width * 4;
	e->table_key = d->table_key[n->param];
	e->ids_key = e->offsets_key = d->arena_key;
	e->ids_off = d->ids_off[n->emb][0];
	e->offsets_off = d->offsets_off[n->emb][0];
	e->out_key = d->bufs[n->dst].key;
	e->out_off = d->bufs[n->dst].off + n->dst_off * 4ull;
	order_cmd(d, NULL, &dst);
}

/* The rows in TT form; those of a split table are added to what its EMB command gave. */
static void add_tt(struct csm_device *d, const struct csm_node *n, uint32_t batch)
{
	const struct csm_table *tt = tt_of(d, n->param);
	bool part = tt != &d->m->tables[n->param];
	struct touch dst = { n->dst, n->dst_off, n->dst_off + tt->dim, true };
	struct csrec_tt_desc *e = add_cmd(d, CSREC_OP_TT, sizeof(*e));

	e->flags = part ? CSREC_TT_F_ACCUM : 0;
	e->nbags = batch;
	e->nids = d->bags[part][n->emb].offsets[batch];
	memcpy(e->p, tt->p, sizeof(e->p));
	memcpy(e->q, tt->q, sizeof(e->q));
	memcpy(e->r, tt->r, sizeof(e->r));
	e->out_stride = d->m->buffers[n->dst].width * 4;
	e->nrows = tt->nrows;
	for (int k = 0; k < 3; k++) {
		e->core_key[k] = d->core_key;
		e->core_off[k] = d->core_off[n->param][k];
	}
	e->ids_key = e->offsets_key = d->arena_key;
	e->ids_off = d->ids_off[n->emb][part];
	e->offsets_off = d->offsets_off[n->emb][part];
	e->out_key = d->bufs[n->dst].key;
	e->out_off = d->bufs[n->dst].off + n->dst_off * 4ull;
	order_cmd(d, NULL, &dst);
}

static void add_dense(struct csm_device *d, const struct csm_node *n, uint32_t rep,
		      uint32_t batch)
{
	const struct csm_model *m = d->m;
	uint32_t from = n->src_off + rep * n->src_step, to = n->dst_off + rep * n->dst_step;
	uint32_t in_stride = m->buffers[n->src].width * 4;
	uint32_t out_stride = m->buffers[n->dst].width * 4;
	const struct place *in = &d->bufs[n->src], *out = &d->bufs[n->dst];
	struct touch src = { n->src, from, from + n->src_len, false };
	struct touch dst = { n->dst, to, to + n->dst_len, true };

	if (n->op == CSM_OP_MLP) {
		const struct csm_layer *l = &m->layers[n->param];
		struct csrec_mlp_desc *e = add_cmd(d, CSREC_OP_MLP, sizeof(*e));

		e->batch = batch;
		e->in_dim = l->in_dim;
		e->out_dim = l->out_dim;
		e->act = l->act;
		e->dtype = CSREC_DTYPE_FP32;
		e->x_key = in->key;
		e->x_off = in->off + from * 4ull;
		e->x_stride = in_stride;
		e->w_key = d->weight_key;
		e->w_off = d->w_off[n->param];
		e->w_stride = l->in_dim * 4;
		if (l->bias) {
			e->flags = CSREC_MLP_F_BIAS;
			e->bias_key = d->weight_key;
			e->bias_off = d->bias_off[n->param];
		}
		e->y_key = out->key;
		e->y_off = out->off + to * 4ull;
		e->y_stride = out_stride;
	} else {
		struct csrec_interact_desc *e = add_cmd(d, CSREC_OP_INTERACT, sizeof(*e));

		e->flags = n->self ? CSREC_INTERACT_F_SELF : 0;
		e->op = n->op == CSM_OP_DOT ? CSREC_INTERACT_DOT : CSREC_INTERACT_CAT;
		e->nvec = n->nvec;
		e->dim = n->dim;
		e->batch = batch;
		e->in_key = in->key;
		e->in_off = in->off + from * 4ull;
		e->vec_stride = n->vec_step * 4;
		e->in_stride = in_stride;
		e->out_key = out->key;
		e->out_off = out->off + to * 4ull;
		e->out_stride = out_stride;
	}
	order_cmd(d, &src, &dst);
}

/* Lookups in memory, of the tables that wait for the drive or of those that do not. */
static void add_lookups(struct csm_device *d, bool cold, uint32_t batch)
{
	for (uint32_t i = 0; i < d->m->nemb; i++) {
		const struct csm_node *n = &d->m->nodes[i];	/* EMB nodes come first */

		if (d->m->tables[n->param].form == CSM_FORM_ROWS &&
		    !!d->remap->maps[n->param].nwant == cold)
			add_emb(d, n, batch);
	}
}

static void add_tt_lookups(struct csm_device *d, bool part, uint32_t batch)
{
	for (uint32_t i = 0; i < d->m->nemb; i++) {
		const struct csm_node *n = &d->m->nodes[i];
		const struct csm_table *tt = tt_of(d, n->param);

		if (tt && (tt != &d->m->tables[n->param]) == part)
			add_tt(d, n, batch);
	}
}

static void build(struct csm_device *d, uint32_t batch)
{
	const struct csm_model *m = d->m;

	d->ncmds = d->ntouch = 0;
	d->desc_at = d->desc_off;
	add_lookups(d, false, batch);
	add_tt_lookups(d, false, batch);
	if (d->plan.nfetch) {
		d->cmds[d->ncmds] = csrec_cmd_wait(d->fence_key, ++d->fence);
		d->cmds[d->ncmds++].flags = CSREC_CMD_F_NOIRQ;
		add_lookups(d, true, batch);
	}
	add_tt_lookups(d, true, batch);
	for (uint32_t i = 0; i < m->nnodes; i++)
		for (uint32_t r = 0; m->nodes[i].op != CSM_OP_EMB && r < m->nodes[i].repeat; r++)
			add_dense(d, &m->nodes[i], r, batch);
	/* The last one ends last, and it alone interrupts. */
	d->cmds[d->ncmds - 1].flags = CSREC_CMD_F_FENCE;
	for (uint32_t i = 0; i < d->ncmds; i++)
		d->cmds[i].cid = i;
}

/* A file instead of a drive: through the CPU, as a bounce. */
static int fetch_file(struct csm_device *d, struct csm_err *err)
{
	for (uint32_t i = 0; i < d->plan.nfetch; i++) {
		const struct csm_fetch *f = &d->plan.fetch[i];
		uint64_t off = d->o.extent->base + d->o.extent->table_off[f->table] + f->off;
		uint8_t *buf = malloc(f->len);
		uint64_t have = 0;
		int ret = 0;

		while (buf && have < f->len) {
			ssize_t n = pread(d->o.cold_fd, buf + have, f->len - have, off + have);

			if (n < 0 && errno == EINTR)
				continue;
			if (n <= 0)
				break;
			have += n;
		}
		if (!buf)
			ret = csm_fail(err, -ENOMEM, "out of memory");
		else if (have < f->len)
			ret = csm_fail(err, -EIO, "cold extent: reading at byte %llu failed",
				       (unsigned long long)(off + have));
		else if ((ret = csrec_copy_to_device(d->queue, d->table_key[f->table], f->dst, buf,
						     f->len)))
			lib_fail(err, ret, "cold rows");
		free(buf);
		if (ret)
			return ret;
		d->totals.bounce_bytes += f->len;
	}
	return 0;
}

static int fetch_drive(struct csm_device *d, struct csm_err *err)
{
	uint64_t p2p = 0, bounced = 0;
	int ret;

	if (d->nsegs < d->plan.nfetch) {
		struct csrec_p2p_seg *segs = realloc(d->segs, d->plan.nfetch * sizeof(*segs));

		if (!segs)
			return csm_fail(err, -ENOMEM, "out of memory");
		d->segs = segs;
		d->nsegs = d->plan.nfetch;
	}
	for (uint32_t i = 0; i < d->plan.nfetch; i++) {
		const struct csm_fetch *f = &d->plan.fetch[i];

		d->segs[i] = (struct csrec_p2p_seg){
			.file_off = d->o.extent->base + d->o.extent->table_off[f->table] + f->off,
			.len = f->len, .dev_off = f->dst, .key = d->table_key[f->table],
		};
	}
	ret = csrec_p2p_read(d->dev, d->o.cold_fd, d->segs, d->plan.nfetch, d->o.p2p_flags,
			     d->fence_key, d->fence, &p2p, &bounced);
	d->totals.p2p_bytes += p2p;
	d->totals.bounce_bytes += bounced;
	return ret ? lib_fail(err, ret, "reading cold rows") : 0;
}

/*
 * Takes all completions, whatever happened, and tells the first command that failed.
 */
static int reap(struct csm_device *d, uint32_t submitted, struct csm_err *err)
{
	const struct csrec_cqe *worst = NULL;
	uint32_t have = 0;
	char text[200];

	while (have < submitted) {
		int n = csrec_wait(d->queue, d->cqes + have, submitted - have, submitted - have, -1);

		if (n < 0)
			return lib_fail(err, n, "waiting for the device");
		have += n;
	}
	for (uint32_t i = 0; i < have; i++)
		if (CSREC_CQE_STATUS(&d->cqes[i]) && (!worst || d->cqes[i].cid < worst->cid))
			worst = &d->cqes[i];
	if (!worst)
		return 0;
	csrec_decode_cqe(worst, worst->cid < submitted ? &d->cmds[worst->cid] : NULL, text,
			 sizeof(text));
	return csm_fail(err, -EPROTO, "command %u of %u: %s", worst->cid, submitted, text);
}

static int run_batch(struct csm_device *d, struct csm_err *err)
{
	struct csm_err ignored;
	int n, ret, fetched = 0;

	if (d->plan.nfetch && d->o.cold_is_file) {
		/* the copies use this queue, so they go first */
		ret = fetch_file(d, err);
		if (!ret)
			ret = csrec_fence_signal(d->dev, d->fence_key, d->fence);
		if (ret)
			return ret;
	}
	n = csrec_submit(d->queue, d->cmds, d->ncmds);
	if (n < 0)
		return lib_fail(err, n, "submitting");
	d->totals.batches++;
	d->totals.fetches += d->plan.nfetch;
	if (d->plan.nfetch && !d->o.cold_is_file) {
		fetched = fetch_drive(d, err);
		/* let go what waits for rows that will not come */
		if (fetched)
			csrec_fence_signal(d->dev, d->fence_key, d->fence);
	}
	ret = reap(d, n, fetched ? &ignored : err);
	if (fetched || ret)
		return fetched ? fetched : ret;
	if ((uint32_t)n < d->ncmds)
		return csm_fail(err, -EIO, "the queue took %d of %u commands", n, d->ncmds);
	return 0;
}

int csm_device_score(struct csm_device *d, const float *dense, const struct csm_bags *bags,
		     uint32_t n, float *out, struct csm_err *err)
{
	const struct csm_model *m = d->m;
	uint32_t width = m->buffers[m->output].width;
	uint32_t done = 0;

	while (done < n) {
		uint32_t most = n - done < d->o.batch ? n - done : d->o.batch;
		int got, ret;

		for (uint32_t e = 0; e < m->nemb; e++)
			if (bags[e].offsets[done + most] - bags[e].offsets[done] >
			    (uint64_t)d->o.batch * d->o.max_ids)
				return csm_fail(err, -EINVAL, "more than %u ids a sample", d->o.max_ids);
		got = csm_remap_plan(d->remap, bags, done, most, d->bags[0], d->bags[1], &d->plan,
				     err);
		if (got < 0)
			return got;
		if ((uint32_t)got < most)
			d->totals.split++;
		if (m->dense >= 0)
			memcpy(d->arena + d->bufs[m->dense].off, dense + (size_t)done * m->ndense,
			       (size_t)got * m->ndense * 4);
		build(d, got);
		ret = run_batch(d, err);
		if (ret)
			return ret;
		memcpy(out + (size_t)done * width, d->arena + d->bufs[m->output].off,
		       (size_t)got * width * 4);
		d->totals.rows_dram += d->plan.rows_dram;
		d->totals.rows_tt += d->plan.rows_tt;
		d->totals.rows_nvme += d->plan.rows_nvme;
		done += got;
	}
	return 0;
}

const struct csm_totals *csm_device_totals(const struct csm_device *d)
{
	return &d->totals;
}
