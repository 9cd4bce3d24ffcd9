// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Scores on the CPU with the golden compute library: the bits that the device must
 * give. Reads the model's own tables by the model's own ids; of a placement it wants to
 * know which rows are in TT form, and finds them by a search of its own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/csrec_hw.h>

#include "csm.h"
#include "csrec_golden.h"

/* A table that is not fp32: the rows named, unpacked, make an fp32 table of their own. */
static int run_packed(const struct csm_model *m, uint32_t table, struct csrec_golden_bags *bags,
		      struct csm_err *err)
{
	const struct csm_table *t = &m->tables[table];
	const uint32_t *ids = bags->ids;
	uint32_t *same = malloc((bags->nids + 1ull) * sizeof(*same));
	float *rows = malloc((bags->nids + 1ull) * t->dim * sizeof(*rows));
	uint64_t detail = 0;
	int ret = 0;

	if (!same || !rows)
		ret = csm_fail(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < bags->nids && !ret; i++) {
		if (ids[i] >= t->nrows)
			ret = csm_fail(err, -EINVAL, "table %s: bad id at position %u", t->name, i);
		else
			csm_row(m, table, ids[i], rows + (size_t)i * t->dim);
		same[i] = i;
	}
	if (!ret) {
		bags->ids = same;
		bags->nrows = bags->nids;
		if (csrec_golden_emb(bags, rows, t->dim * 4, t->dim, &detail) != CSREC_ST_OK)
			ret = csm_fail(err, -EINVAL, "table %s: bad offsets of bag %llu", t->name,
				       (unsigned long long)detail);
	}
	free(same);
	free(rows);
	return ret;
}

/* t: a table of m, or the TT part of one */
static int run_bags(const struct csm_model *m, const struct csm_table *t,
		    const struct csm_bags *b, uint32_t n, bool accum, float *dst, size_t stride,
		    struct csm_err *err)
{
	struct csrec_golden_bags bags = {
		.nbags = n, .nids = b->offsets[n], .ids = b->ids, .offsets = b->offsets,
		.nrows = t->nrows, .out = dst, .out_stride = stride,
	};
	uint64_t detail = 0;
	int st;

	if (t->form == CSM_FORM_ROWS && t->dtype == CSM_FP32)
		st = csrec_golden_emb(&bags, t->rows, t->dim * 4, t->dim, &detail);
	else if (t->form == CSM_FORM_ROWS)
		return run_packed(m, t - m->tables, &bags, err);
	else if (t->dim <= 256 && t->r[1] <= 32 && t->r[0] <= 32)
		st = csrec_golden_tt(&bags, t->core, t->p, t->q, t->r, accum, &detail);
	else
		return csm_fail(err, -EOPNOTSUPP, "table %s: TT shape is beyond the golden model's",
				t->name);
	if (st != CSREC_ST_OK)
		return csm_fail(err, -EINVAL, "table %s: %s %llu", t->name,
				st == CSREC_ST_BAD_ID ? "bad id at position" : "bad offsets of bag",
				(unsigned long long)detail);
	return 0;
}

struct tt_row {
	uint32_t id, tt_id;
};

static int by_id(const void *a, const void *b)
{
	const struct tt_row *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/* A table some of whose rows are in TT form: the others first, then these are added. */
static int run_mixed(const struct csm_model *m, const struct csm_table *t,
		     const struct csm_place *pl, const struct csm_bags *b, uint32_t n, float *dst,
		     size_t stride, struct csm_err *err)
{
	struct tt_row *rows = calloc(pl->ntt, sizeof(*rows));
	struct csm_bags part[2] = { };	/* memory rows, TT rows */
	int ret = 0;

	for (int k = 0; k < 2; k++) {
		part[k].ids = calloc((size_t)b->offsets[n] + 1, sizeof(uint32_t));
		part[k].offsets = calloc((size_t)n + 1, sizeof(uint32_t));
		if (!part[k].ids || !part[k].offsets)
			ret = -ENOMEM;
	}
	if (!rows || ret) {
		ret = csm_fail(err, -ENOMEM, "out of memory");
		goto out;
	}
	for (uint32_t i = 0; i < pl->ntt; i++)
		rows[i] = (struct tt_row){ pl->ids[pl->nhot + i], i };
	qsort(rows, pl->ntt, sizeof(*rows), by_id);
	for (uint32_t i = 0; i < n; i++) {
		for (int k = 0; k < 2; k++)
			part[k].offsets[i + 1] = part[k].offsets[i];
		for (uint32_t j = b->offsets[i]; j < b->offsets[i + 1]; j++) {
			struct tt_row key = { .id = b->ids[j] };
			struct tt_row *tt = bsearch(&key, rows, pl->ntt, sizeof(*rows), by_id);
			struct csm_bags *p = &part[!!tt];

			p->ids[p->offsets[i + 1]++] = tt ? tt->tt_id : b->ids[j];
		}
	}
	ret = run_bags(m, t, &part[0], n, false, dst, stride, err);
	if (!ret)
		ret = run_bags(m, pl->tt, &part[1], n, true, dst, stride, err);
out:
	for (int k = 0; k < 2; k++) {
		free(part[k].ids);
		free(part[k].offsets);
	}
	free(rows);
	return ret;
}

int csm_golden_score(const struct csm_model *m, const struct csm_placement *p,
		     const float *dense, const struct csm_bags *bags, uint32_t n, float *out,
		     struct csm_err *err)
{
	float **buf = calloc(m->nbuffers, sizeof(*buf));
	int ret = 0;

	if (!csrec_golden_env_ok()) {
		free(buf);
		return csm_fail(err, -EINVAL, "floating-point environment is not the default one");
	}
	for (uint32_t b = 0; buf && b < m->nbuffers; b++) {
		buf[b] = calloc((size_t)n * m->buffers[b].width, sizeof(float));
		if (!buf[b])
			ret = -ENOMEM;
	}
	if (!buf || ret) {
		ret = csm_fail(err, -ENOMEM, "out of memory");
		goto out;
	}
	if (m->dense >= 0)
		memcpy(buf[m->dense], dense, (size_t)n * m->ndense * sizeof(float));
	for (uint32_t i = 0; i < m->nnodes && !ret; i++) {
		const struct csm_node *node = &m->nodes[i];
		size_t out_w = m->buffers[node->dst].width, in_w = m->buffers[node->src].width;

		if (node->op == CSM_OP_EMB) {
			const struct csm_place *pl = p ? &p->tables[node->param] : NULL;
			float *dst = buf[node->dst] + node->dst_off;

			ret = pl && pl->ntt ?
			      run_mixed(m, &m->tables[node->param], pl, &bags[node->emb], n, dst,
					out_w * 4, err) :
			      run_bags(m, &m->tables[node->param], &bags[node->emb], n, false, dst,
				       out_w * 4, err);
			continue;
		}
		for (uint32_t rep = 0; rep < node->repeat; rep++) {
			float *src = buf[node->src] + node->src_off + (size_t)rep * node->src_step;
			float *dst = buf[node->dst] + node->dst_off + (size_t)rep * node->dst_step;

			if (node->op == CSM_OP_MLP) {
				const struct csm_layer *l = &m->layers[node->param];
				struct csrec_golden_mlp g = {
					.batch = n, .in_dim = l->in_dim, .out_dim = l->out_dim,
					.x = src, .w = l->w, .bias = l->bias, .y = dst,
					.x_stride = in_w * 4, .w_stride = l->in_dim * 4,
					.y_stride = out_w * 4, .act = l->act,
				};

				csrec_golden_mlp(&g);
				continue;
			}
			for (uint32_t s = 0; s < n; s++)
				csrec_golden_interact(dst + s * out_w, src + s * in_w,
						      node->vec_step * 4, node->nvec, node->dim,
						      node->op == CSM_OP_DOT ? CSREC_INTERACT_DOT :
									       CSREC_INTERACT_CAT,
						      node->self);
		}
	}
	if (!ret)
		memcpy(out, buf[m->output],
		       (size_t)n * m->buffers[m->output].width * sizeof(float));
out:
	for (uint32_t b = 0; buf && b < m->nbuffers; b++)
		free(buf[b]);
	free(buf);
	return ret;
}
