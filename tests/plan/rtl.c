// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rtl.h"

#define HOST_BYTES	(12ull << 20)	/* below the rings */
#define HOST_DATA	(6ull << 20)	/* where copies go; the arena is below */
#define HALF		(DRAM_SIZE / 2)	/* inputs below, outputs above */

enum { HOST = KEY(1, 7), DRAM = KEY(2, 7), ONCHIP = KEY(3, 7) };

static void die(const char *what)
{
	fprintf(stderr, "rtl: %s\n", what);
	exit(1);
}

void rtl_open(struct rtl *r)
{
	memset(r, 0, sizeof(*r));
	dev_open(&r->d, NULL);
	enable(&r->d, 6);
	make_queue(&r->d, 1, 11, 1);
	must(&r->d, cmd_region(0, HOST, CSREC_REGION_HOST, 3, 1, HOST_BASE, HOST_BYTES));
	must(&r->d, cmd_region(0, DRAM, CSREC_REGION_DRAM, 3, 1, 0, DRAM_SIZE));
	must(&r->d, cmd_region(0, ONCHIP, CSREC_REGION_ONCHIP, 3, 1, 0, ONCHIP_SIZE));
}

void rtl_close(struct rtl *r)
{
	dev_close(&r->d);
}

static uint64_t arena(struct rtl *r, uint64_t len)
{
	uint64_t at = r->host_at;

	r->host_at += (len + 63) & ~63ull;
	if (r->host_at > HOST_DATA)
		die("a batch takes more host memory than there is");
	return at;
}

static void *add(struct rtl *r, uint8_t opcode, uint32_t len, bool fence)
{
	uint64_t at = arena(r, len);
	struct csrec_cmd *c = &r->cmds[r->n];

	if (r->n >= RTL_MAX_CMDS - 1)
		die("too many commands");
	*c = cmd_plain(opcode, r->n++);
	c->flags = CSREC_CMD_F_NOIRQ | (fence ? CSREC_CMD_F_FENCE : 0);
	*AS(c, desc) = (struct csrec_body_desc){ .desc_key = HOST, .desc_len = len, .desc_off = at };
	memset(host_ptr(&r->d, HOST_BASE + at), 0, len);
	return host_ptr(&r->d, HOST_BASE + at);
}

/* nids ids below nrows, spread evenly over the bags */
static void bags(struct rtl *r, uint32_t nbags, uint32_t nids, uint64_t nrows, __le64 *ids_off,
		 __le64 *offsets_off)
{
	uint32_t *p;

	*ids_off = arena(r, 4ull * nids + 4);
	p = (uint32_t *)host_ptr(&r->d, HOST_BASE + *ids_off);
	for (uint32_t i = 0; i < nids; i++)
		p[i] = rnd(&r->d) % nrows;
	*offsets_off = arena(r, 4ull * nbags + 4);
	p = (uint32_t *)host_ptr(&r->d, HOST_BASE + *offsets_off);
	for (uint32_t i = 0; i <= nbags; i++)
		p[i] = (uint64_t)nids * i / nbags;
}

void rtl_emb(struct rtl *r, uint32_t nbags, uint32_t nids, uint32_t dim, bool fence)
{
	struct csrec_emb_desc *e = add(r, CSREC_OP_EMB, sizeof(*e), fence);

	e->dim = dim;
	e->nbags = nbags;
	e->nids = nids;
	e->row_stride = e->out_stride = 4 * dim;
	e->nrows = HALF / e->row_stride;
	if ((uint64_t)nbags * e->out_stride > HALF)
		die("sums larger than memory");
	bags(r, nbags, nids, e->nrows, &e->ids_off, &e->offsets_off);
	e->table_key = e->out_key = DRAM;
	e->ids_key = e->offsets_key = HOST;
	e->out_off = HALF;
}

void rtl_tt(struct rtl *r, uint32_t nbags, uint32_t nids, const uint32_t p[3],
	    const uint16_t q[3], const uint16_t ranks[2], bool accum, bool fence)
{
	struct csrec_tt_desc *t = add(r, CSREC_OP_TT, sizeof(*t), fence);
	const uint32_t slice[3] = { q[0] * ranks[0], ranks[0] * q[1] * ranks[1], ranks[1] * q[2] };
	uint64_t at = 0;

	t->flags = accum ? CSREC_TT_F_ACCUM : 0;
	t->nbags = nbags;
	t->nids = nids;
	t->nrows = 1;
	for (int k = 0; k < 3; k++) {
		uint64_t room = ONCHIP_SIZE / 3 / 4 / slice[k];

		t->p[k] = p[k] < room ? p[k] : room;
		t->q[k] = q[k];
		t->core_key[k] = ONCHIP;
		t->core_off[k] = at;
		at = (at + 4ull * t->p[k] * slice[k] + 63) & ~63ull;
		t->nrows *= t->p[k];
	}
	t->r[0] = ranks[0];
	t->r[1] = ranks[1];
	t->out_stride = 4 * q[0] * q[1] * q[2];
	bags(r, nbags, nids, t->nrows, &t->ids_off, &t->offsets_off);
	t->ids_key = t->offsets_key = HOST;
	t->out_key = DRAM;
	t->out_off = HALF;
}

void rtl_mlp(struct rtl *r, uint32_t batch, uint32_t in, uint32_t out, uint8_t act, bool fence)
{
	/* weights larger than memory: some outputs after the others */
	uint32_t most = DRAM_SIZE / 4 / in, n = out < most ? out : most;
	struct csrec_mlp_desc *m;

	if ((uint64_t)batch * in * 4 > HALF || (uint64_t)batch * out * 4 > HALF || !n)
		die("an activation larger than memory");
	for (; out; out -= n, fence = false) {
		n = out < n ? out : n;
		m = add(r, CSREC_OP_MLP, sizeof(*m), fence);
		/* weights may run into the outputs: values do not matter */
		*m = (struct csrec_mlp_desc){
			.flags = CSREC_MLP_F_BIAS, .batch = batch, .in_dim = in, .out_dim = n, .act = act,
			.x_key = DRAM, .w_key = DRAM, .bias_key = DRAM, .y_key = DRAM, .y_off = HALF,
			.x_stride = 4 * in, .w_stride = 4 * in, .y_stride = 4 * n,
		};
	}
}

void rtl_interact(struct rtl *r, uint32_t batch, bool dot, bool self, uint32_t nvec,
		  uint32_t dim, uint32_t vec_step, bool fence)
{
	struct csrec_interact_desc *e = add(r, CSREC_OP_INTERACT, sizeof(*e), fence);
	uint32_t out = dot ? dim + nvec * (nvec - 1) / 2 + (self ? nvec : 0) : nvec * dim;

	*e = (struct csrec_interact_desc){
		.flags = self ? CSREC_INTERACT_F_SELF : 0,
		.op = dot ? CSREC_INTERACT_DOT : CSREC_INTERACT_CAT, .nvec = nvec, .dim = dim,
		.batch = batch, .in_key = DRAM, .out_key = DRAM, .out_off = HALF,
		.vec_stride = 4 * vec_step, .in_stride = 4 * vec_step * nvec, .out_stride = 4 * out,
	};
	if ((uint64_t)batch * e->in_stride > HALF || (uint64_t)batch * e->out_stride > HALF)
		die("an interaction larger than memory");
}

void rtl_copy(struct rtl *r, bool to_host, uint64_t len, bool fence)
{
	struct csrec_cmd *c = &r->cmds[r->n];

	if (r->n >= RTL_MAX_CMDS - 1 || len > HALF)
		die("too much to copy");
	*c = to_host ? cmd_copy(r->n, DRAM, 0, HOST, HOST_DATA, len) :
		       cmd_copy(r->n, HOST, HOST_DATA, DRAM, HALF, len);
	c->flags = CSREC_CMD_F_NOIRQ | (fence ? CSREC_CMD_F_FENCE : 0);
	r->n++;
}

static void read_units(struct rtl *r, uint64_t u[5])
{
	for (int i = 0; i < 5; i++)
		u[i] = reg(&r->d, CSREC_REG_CNT_BUSY_COPY + 8 * i);
}

uint64_t rtl_run(struct rtl *r)
{
	struct queue *q = &r->d.q[1];
	uint64_t cycles = 0, before[5], after[5];
	struct csrec_cqe cqe;
	uint32_t done = 0;

	read_units(r, before);
	for (uint32_t i = 0; i < r->n; i++)
		put(&r->d, q, &r->cmds[i]);
	ring_doorbell(&r->d, q);
	while (csrec_model_busy(r->d.m))
		cycles += csrec_model_step(r->d.m, 100000);
	while (take(&r->d, q, &cqe)) {
		if (cqe_status(&cqe)) {
			fprintf(stderr, "command %u, opcode 0x%x: status %u field %u detail %llu\n", cqe.cid,
				r->cmds[cqe.cid].opcode, cqe_status(&cqe), cqe.field,
				(unsigned long long)cqe.detail);
			exit(1);
		}
		done++;
	}
	if (done != r->n)
		die("commands are missing");
	ring_doorbell(&r->d, q);
	while (csrec_model_busy(r->d.m))
		csrec_model_step(r->d.m, 1000);
	read_units(r, after);
	for (int i = 0; i < 5; i++)
		r->units[i] = after[i] - before[i];
	r->n = 0;
	r->host_at = 0;
	return cycles;
}
