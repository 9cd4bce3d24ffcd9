// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <csrec.h>

#include "csrec_golden.h"
#include "fake_csrec.h"
#include "tap.h"

#define REGIONS	64
#define MAXQ	4096

struct fake fake;

static char error[200];

struct region {
	uint8_t *mem;
	uint64_t size;
	uint32_t kind;
};

struct csrec_dev {
	struct region region[REGIONS];
	uint64_t fence;
};

struct csrec_queue {
	uint32_t entries;
	struct csrec_cmd cmd[MAXQ];
	struct csrec_cqe cqe[MAXQ];
	bool done[MAXQ];
	uint32_t n, taken, posted;
};

static struct csrec_dev the_dev;
static struct csrec_queue *blocked;	/* what a raised fence may let go */
#define FENCE_KEY	0x10001u

struct csrec_dev *fake_open(void)
{
	return &the_dev;
}

static int fail(int errnum, const char *what)
{
	snprintf(error, sizeof(error), "fake: %s", what);
	return errnum;
}

const char *csrec_error(void)
{
	return error;
}

int csrec_get_info(struct csrec_dev *dev, struct csrec_info *info, size_t size)
{
	uint32_t log2 = 0;

	(void)dev;
	memset(info, 0, size);
	while (2u << log2 <= fake.queue_entries)
		log2++;
	info->cap_queue = (uint64_t)log2 << CSREC_CAPQ_ENTRIES_SHIFT;
	info->cap_engine = CSREC_CAPE_COPY | CSREC_CAPE_EMB | CSREC_CAPE_TT | CSREC_CAPE_INTERACT |
			   CSREC_CAPE_MLP;
	info->cap_limit = (uint64_t)fake.cap_dim << CSREC_CAPL_DIM_SHIFT |
			  64ull << CSREC_CAPL_VECS_SHIFT | 32ull << CSREC_CAPL_RANK_SHIFT |
			  4096ull << CSREC_CAPL_WIDTH_SHIFT;
	return 0;
}

static int add_region(struct csrec_dev *dev, uint32_t kind, uint64_t len, uint32_t *key)
{
	for (uint32_t i = 0; i < REGIONS; i++) {
		struct region *r = &dev->region[i];

		if (r->mem)
			continue;
		/* exact size: a sanitizer sees what leaves the region */
		r->mem = calloc(1, len);
		r->size = len;
		r->kind = kind;
		*key = i | 1u << CSREC_KEY_GEN_SHIFT;
		fake.live++;
		return 0;
	}
	return fail(-ENOSPC, "no region slot");
}

int csrec_mem_alloc(struct csrec_dev *dev, uint32_t kind, uint64_t len, uint32_t *key)
{
	return add_region(dev, kind, len, key);
}

int csrec_mem_free(struct csrec_dev *dev, uint32_t key)
{
	struct region *r = &dev->region[key & 0xffff];

	free(r->mem);
	r->mem = NULL;
	fake.live--;
	return 0;
}

int csrec_host_alloc(struct csrec_dev *dev, size_t len, uint32_t rights, void **ptr, uint32_t *key)
{
	int ret = add_region(dev, CSREC_REGION_HOST, len, key);

	(void)rights;
	if (!ret)
		*ptr = dev->region[*key & 0xffff].mem;
	return ret;
}

int csrec_host_free(struct csrec_dev *dev, void *ptr)
{
	for (uint32_t i = 0; i < REGIONS; i++)
		if (dev->region[i].mem == ptr)
			return csrec_mem_free(dev, i);
	return fail(-ENOENT, "no such memory");
}

/* The device's checks: a wrong key, extent or alignment ends the test program. */
static void *at(uint32_t key, uint64_t off, uint64_t len, uint32_t kind)
{
	struct region *r = &the_dev.region[key & 0xffff];

	if (key >> CSREC_KEY_GEN_SHIFT != 1 || (key & 0xffff) >= REGIONS || !r->mem ||
	    off > r->size || len > r->size - off || off % 4 || (kind && r->kind != kind)) {
		printf("Bail out! command uses key %#x, %llu bytes at %llu\n", key,
		       (unsigned long long)len, (unsigned long long)off);
		fflush(stdout);
		abort();
	}
	return r->mem + off;
}

int csrec_copy_to_device(struct csrec_queue *q, uint32_t key, uint64_t off, const void *buf,
			 size_t len)
{
	(void)q;
	memcpy(at(key, off, len, 0), buf, len);
	return 0;
}

int csrec_queue_create_ext(struct csrec_dev *dev, const struct csrec_queue_opts *opts,
			   struct csrec_queue **q)
{
	const uint32_t entries = opts->entries;

	(void)dev;
	if (entries > fake.queue_entries || entries & (entries - 1))
		return fail(-EINVAL, "entries");
	*q = calloc(1, sizeof(**q));
	(*q)->entries = entries;
	fake.live++;
	return 0;
}

int csrec_queue_destroy(struct csrec_queue *q)
{
	free(q);
	blocked = NULL;
	fake.live--;
	return 0;
}

int csrec_fence_create(struct csrec_dev *dev, uint64_t v, uint32_t *key)
{
	dev->fence = v;
	*key = FENCE_KEY;
	fake.live++;
	return 0;
}

int csrec_fence_destroy(struct csrec_dev *dev, uint32_t key)
{
	(void)dev;
	(void)key;
	fake.live--;
	return 0;
}

static void emb(const struct csrec_emb_desc *d)
{
	struct csrec_golden_bags b = {
		.nbags = d->nbags, .nids = d->nids, .nrows = d->nrows, .out_stride = d->out_stride,
		.ids = at(d->ids_key, d->ids_off, d->nids * 4ull, 0),
		.offsets = at(d->offsets_key, d->offsets_off, (d->nbags + 1ull) * 4, 0),
		.out = at(d->out_key, d->out_off, (d->nbags - 1ull) * d->out_stride + d->dim * 4, 0),
	};
	uint64_t detail;

	if (csrec_golden_emb(&b, at(d->table_key, d->table_off,
				    (d->nrows - 1) * d->row_stride + d->dim * 4, CSREC_REGION_DRAM),
			     d->row_stride, d->dim, &detail))
		abort();
}

static void tt(const struct csrec_tt_desc *d)
{
	struct csrec_golden_bags b = {
		.nbags = d->nbags, .nids = d->nids, .nrows = d->nrows, .out_stride = d->out_stride,
		.ids = at(d->ids_key, d->ids_off, d->nids * 4ull, 0),
		.offsets = at(d->offsets_key, d->offsets_off, (d->nbags + 1ull) * 4, 0),
		.out = at(d->out_key, d->out_off,
			  (d->nbags - 1ull) * d->out_stride + d->q[0] * d->q[1] * d->q[2] * 4, 0),
	};
	uint32_t r[4] = { 1, d->r[0], d->r[1], 1 };
	const float *core[3];
	uint64_t detail;

	for (int k = 0; k < 3; k++)
		core[k] = at(d->core_key[k], d->core_off[k],
			     4ull * d->p[k] * r[k] * d->q[k] * r[k + 1], CSREC_REGION_ONCHIP);
	if (csrec_golden_tt(&b, core, d->p, d->q, d->r, d->flags & CSREC_TT_F_ACCUM,
			    &detail))
		abort();
}

static void interact(const struct csrec_interact_desc *d)
{
	bool self = d->flags & CSREC_INTERACT_F_SELF;
	size_t len = csrec_golden_interact_len(d->op, self, d->nvec, d->dim);
	uint8_t *in = at(d->in_key, d->in_off, (d->batch - 1ull) * d->in_stride +
			 (d->nvec - 1ull) * d->vec_stride + d->dim * 4, 0);
	uint8_t *out = at(d->out_key, d->out_off, (d->batch - 1ull) * d->out_stride + len * 4, 0);

	for (uint32_t i = 0; i < d->batch; i++)
		csrec_golden_interact((float *)(out + (size_t)i * d->out_stride),
				      (float *)(in + (size_t)i * d->in_stride), d->vec_stride,
				      d->nvec, d->dim, d->op, self);
}

static void mlp(const struct csrec_mlp_desc *d)
{
	struct csrec_golden_mlp l = {
		.batch = d->batch, .in_dim = d->in_dim, .out_dim = d->out_dim,
		.x = at(d->x_key, d->x_off, (d->batch - 1ull) * d->x_stride + d->in_dim * 4, 0),
		.w = at(d->w_key, d->w_off, (d->out_dim - 1ull) * d->w_stride + d->in_dim * 4, 0),
		.y = at(d->y_key, d->y_off, (d->batch - 1ull) * d->y_stride + d->out_dim * 4, 0),
		.x_stride = d->x_stride, .w_stride = d->w_stride, .y_stride = d->y_stride,
		.act = d->act,
	};

	if (d->flags & CSREC_MLP_F_BIAS)
		l.bias = at(d->bias_key, d->bias_off, d->out_dim * 4, 0);
	csrec_golden_mlp(&l);
}

static uint16_t execute(const struct csrec_cmd *c)
{
	struct csrec_body_desc b;
	void *desc;

	if (c->opcode == CSREC_OP_WAIT)
		return CSREC_ST_OK;
	if (fake.fail_cmd && !--fake.fail_cmd)
		return CSREC_ST_BUS_ERROR;
	memcpy(&b, c->body, sizeof(b));
	desc = at(b.desc_key, b.desc_off, b.desc_len, 0);
	if (b.desc_off % 8)
		abort();
	switch (c->opcode) {
	case CSREC_OP_EMB:
		emb(desc);
		break;
	case CSREC_OP_TT:
		tt(desc);
		break;
	case CSREC_OP_INTERACT:
		interact(desc);
		break;
	case CSREC_OP_MLP:
		mlp(desc);
		break;
	default:
		return CSREC_ST_BAD_OPCODE;
	}
	return CSREC_ST_OK;
}

/* May command i be at work now? */
static bool eligible(const struct csrec_queue *q, uint32_t i)
{
	struct csrec_body_fence w;
	bool all = true;

	if (q->done[i])
		return false;
	for (uint32_t k = 0; k <= i; k++) {
		if (q->cmd[k].flags & CSREC_CMD_F_FENCE && !all && !fake.broken_fences)
			return false;
		all = all && q->done[k];
		memcpy(&w, q->cmd[k].body, sizeof(w));
		if (q->cmd[k].opcode == CSREC_OP_WAIT && the_dev.fence < w.value)
			return false;
	}
	return true;
}

static void run(struct csrec_queue *q)
{
	for (;;) {
		uint32_t can[MAXQ], n = 0, i;
		struct csrec_cqe *cqe;

		for (i = 0; i < q->n; i++)
			if (eligible(q, i))
				can[n++] = i;
		if (!n)
			return;
		i = can[rnd(&fake.seed) % n];
		cqe = &q->cqe[q->posted++];
		cqe->cid = q->cmd[i].cid;
		cqe->status = execute(&q->cmd[i]) << CSREC_CQE_STATUS_SHIFT;
		q->done[i] = true;
		fake.irqs += !(q->cmd[i].flags & CSREC_CMD_F_NOIRQ);
		fake.cmds++;
	}
}

int csrec_submit(struct csrec_queue *q, const struct csrec_cmd *cmds, uint32_t n)
{
	fake.submits++;
	if (fake.fail_submit && !--fake.fail_submit)
		return fail(-EIO, "submit");
	if (n > q->entries)
		n = q->entries;
	memcpy(q->cmd, cmds, n * sizeof(*cmds));
	memset(q->done, 0, sizeof(q->done));
	q->n = n;
	q->taken = q->posted = 0;
	for (uint32_t i = 0; i < n; i++)
		fake.waits += cmds[i].opcode == CSREC_OP_WAIT;
	run(q);
	fake.early += q->posted;
	blocked = q;
	return n;
}

int csrec_fence_signal(struct csrec_dev *dev, uint32_t key, uint64_t value)
{
	if (key != FENCE_KEY)
		return fail(-ENOENT, "fence");
	if (value > dev->fence)
		dev->fence = value;
	if (blocked)
		run(blocked);
	return 0;
}

int csrec_wait(struct csrec_queue *q, struct csrec_cqe *cqes, uint32_t min, uint32_t max,
	       int64_t timeout_ns)
{
	uint32_t n = q->posted - q->taken;

	(void)timeout_ns;
	run(q);
	n = q->posted - q->taken;
	if (n < min)
		return fail(-EIO, "it would wait for ever");
	if (n > max)
		n = max;
	memcpy(cqes, q->cqe + q->taken, n * sizeof(*cqes));
	q->taken += n;
	return n;
}

int csrec_p2p_read(struct csrec_dev *dev, int fd, const struct csrec_p2p_seg *segs, uint32_t n,
		   uint32_t flags, uint32_t fence_key, uint64_t fence_value, uint64_t *p2p,
		   uint64_t *bounced)
{
	uint64_t total = 0;

	*p2p = *bounced = 0;
	if (fake.fail_p2p && !--fake.fail_p2p)
		return fail(flags & CSREC_P2P_F_ONLY ? -EREMOTEIO : -EIO, "drive error");
	for (uint32_t i = 0; i < n; i++) {
		if (segs[i].dev_off % 512 || segs[i].len % 512 || segs[i].file_off % 512 ||
		    pread(fd, at(segs[i].key, segs[i].dev_off, segs[i].len, CSREC_REGION_DRAM),
			  segs[i].len, segs[i].file_off) != (ssize_t)segs[i].len)
			return fail(-EIO, "segment");
		total += segs[i].len;
	}
	*(flags & CSREC_P2P_F_BOUNCE ? bounced : p2p) = total;
	fake.p2p_bytes += total;
	fake.p2p_segs += n;
	return csrec_fence_signal(dev, fence_key, fence_value);
}

int csrec_decode_cqe(const struct csrec_cqe *cqe, const struct csrec_cmd *cmd, char *buf, size_t len)
{
	return snprintf(buf, len, "opcode %d: status %d", cmd ? cmd->opcode : -1,
			CSREC_CQE_STATUS(cqe));
}
