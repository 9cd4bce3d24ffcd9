// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Golden device: registers, doorbells, queues, regions and the coroutines that serve
 * the queues. See device.h for how the pieces hang together.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the golden model assumes a little-endian host"
#endif

#define STACK_SIZE	(512u << 10)

/* --- coroutines --- */

static void to_scheduler(struct queue *q)
{
	swapcontext(&q->ctx, &q->m->main_ctx);
}

/* Lets time pass, and others run when this queue's slice is used up. */
void charge(struct queue *q, unsigned int cycles)
{
	struct csrec_model *m = q->m;

	CNT(m, CYCLES) += cycles;
	CNT(m, PROGRESS)++;
	if (q->executing) {
		CNT(m, BUSY) += cycles;
		if (q->busy)
			*q->busy += cycles;
	}
	if (cycles < m->slice_left) {
		m->slice_left -= cycles;
		return;
	}
	m->slice_left = 0;
	q->ready = NULL;
	to_scheduler(q);
}

void block_until(struct queue *q, bool (*ready)(const struct queue *q))
{
	if (ready(q))
		return;
	q->ready = ready;
	to_scheduler(q);
	q->ready = NULL;
}

static bool runnable(const struct queue *q)
{
	return q->state == QUEUE_LIVE && (!q->ready || q->ready(q));
}

/* --- host memory --- */

static bool host_answered(const struct queue *q)
{
	return !q->host.late;
}

/* Within one 4 KiB page; waits for a late answer even when the queue is to stop. */
static int host_transfer(struct queue *q, bool write, uint64_t addr, void *buf, size_t len)
{
	struct csrec_model *m = q->m;
	int err;

	q->host.tag = m->next_tag++;
	if (write) {
		memcpy(q->host.buf, buf, len);
		err = m->ops.write(m->opaque, q->host.tag, addr, q->host.buf, len);
	} else {
		err = m->ops.read(m->opaque, q->host.tag, addr, q->host.buf, len);
	}
	if (err == -EINPROGRESS) {
		q->host.late = true;
		block_until(q, host_answered);
		err = q->host.err;
	}
	if (err)
		return CSREC_ST_BUS_ERROR;

	if (write) {
		CNT(m, HOST_WR) += len;
	} else {
		CNT(m, HOST_RD) += len;
		memcpy(buf, q->host.buf, len);
	}
	return CSREC_ST_OK;
}

/* Any length: in pieces that stay within a page. */
static int host_access(struct queue *q, bool write, uint64_t addr, void *buf, size_t len)
{
	uint8_t *p = buf;

	while (len) {
		size_t n = 4096 - (addr & 4095);
		int st;

		if (n > len)
			n = len;
		st = host_transfer(q, write, addr, p, n);
		if (st)
			return st;
		addr += n;
		p += n;
		len -= n;
	}
	return CSREC_ST_OK;
}

/* --- regions and fences --- */

int region_find(struct csrec_model *m, uint32_t key, struct region **out)
{
	uint32_t index = key & 0xffff;

	if (index >= N_REGIONS)
		return CSREC_ST_BAD_KEY;
	*out = &m->region[index];
	if (!(*out)->valid || (*out)->gen != key >> CSREC_KEY_GEN_SHIFT)
		return CSREC_ST_STALE_KEY;
	return CSREC_ST_OK;
}

int fence_find(struct csrec_model *m, uint32_t key, struct fence **out)
{
	uint32_t index = key & 0xffff;

	if (index >= N_FENCES)
		return CSREC_ST_BAD_KEY;
	*out = &m->fence[index];
	if (!(*out)->valid || (*out)->gen != key >> CSREC_KEY_GEN_SHIFT)
		return CSREC_ST_STALE_KEY;
	return CSREC_ST_OK;
}

static int region_check(struct queue *q, const struct access *a, uint64_t off, uint64_t len,
			struct region **out)
{
	struct region *r;
	int st = region_find(q->m, a->key, &r);

	if (st)
		return st;
	if (r->domain != q->domain)
		return CSREC_ST_BAD_DOMAIN;
	if (!(r->rights & a->right))
		return CSREC_ST_BAD_RIGHTS;
	if (a->onchip && r->kind != CSREC_REGION_ONCHIP)
		return CSREC_ST_BAD_VALUE;
	if (off > r->size || len > r->size - off)
		return CSREC_ST_OUT_OF_BOUNDS;
	*out = r;
	return CSREC_ST_OK;
}

/* Bus address of byte x of a HOST region, and how many bytes follow in its page. */
static int translate(struct queue *q, const struct region *r, uint64_t x, uint64_t *addr,
		     uint64_t *left)
{
	uint64_t page, table = r->base, entry;
	int st;

	if (!r->levels) {
		*addr = r->base + x;
		*left = r->size - x;
		return CSREC_ST_OK;
	}

	x += r->page_off;
	page = x >> r->page_shift;
	if (r->levels == 2) {
		st = host_access(q, false, r->base + page / CSREC_PAGE_LIST_ENTRIES * 8,
				 &table, 8);
		if (st)
			return st;
		page %= CSREC_PAGE_LIST_ENTRIES;
	}
	st = host_access(q, false, table + page * 8, &entry, 8);
	if (st)
		return st;
	x &= (1ull << r->page_shift) - 1;
	*addr = entry + x;
	*left = (1ull << r->page_shift) - x;
	return CSREC_ST_OK;
}

static int region_move(struct queue *q, const struct region *r, bool write, uint64_t off,
		       void *buf, size_t len)
{
	struct csrec_model *m = q->m;
	uint8_t *p = buf, *mem;

	if (r->kind != CSREC_REGION_HOST) {
		mem = (r->kind == CSREC_REGION_DRAM ? m->dram : m->onchip) + r->base + off;
		if (write)
			memcpy(mem, buf, len);
		else
			memcpy(buf, mem, len);
		if (r->kind == CSREC_REGION_DRAM && write)
			CNT(m, DRAM_WR) += len;
		else if (r->kind == CSREC_REGION_DRAM)
			CNT(m, DRAM_RD) += len;
		return CSREC_ST_OK;
	}

	while (len) {
		uint64_t addr, n;
		int st = translate(q, r, off, &addr, &n);

		if (st)
			return st;
		if (n > len)
			n = len;
		st = host_access(q, write, addr, p, n);
		if (st)
			return st;
		off += n;
		p += n;
		len -= n;
	}
	return CSREC_ST_OK;
}

int mem_check(struct queue *q, const struct access *a, uint64_t off, uint64_t len)
{
	struct region *r;

	return region_check(q, a, off, len, &r);
}

int mem_access(struct queue *q, const struct access *a, uint64_t off, void *buf, size_t len)
{
	struct region *r;
	int st;

	if (q->abort)
		return CSREC_ST_ABORTED;
	st = region_check(q, a, off, len, &r);
	if (st)
		return st;
	r->users++;
	st = region_move(q, r, a->right == CSREC_RIGHT_WRITE, off, buf, len);
	r->users--;
	charge(q, COST_ACCESS + len / COST_BYTES);
	return st;
}

/* --- queues --- */

static bool has_work(const struct queue *q)
{
	uint32_t entries = 1u << q->log2_entries;

	return q->abort || (q->fetched != q->tail && q->posted - q->head < entries);
}

static bool must_stop(const struct queue *q)
{
	return q->abort;
}

static int fetch(struct queue *q, struct csrec_cmd *cmd)
{
	uint32_t slot = q->fetched & ((1u << q->log2_entries) - 1);
	int st = host_access(q, false, q->sq_base + slot * sizeof(*cmd), cmd, sizeof(*cmd));

	q->fetched++;
	return st;
}

/*
 * The count moves before the write: by the time a late answer comes, the host may
 * have seen the completion and given its slot back.
 */
static int post(struct queue *q, uint16_t cid, const struct result *res)
{
	struct csrec_model *m = q->m;
	uint32_t slot = q->posted & ((1u << q->log2_entries) - 1);
	struct csrec_cqe cqe = {
		.cid = cid,
		.status = res->status << CSREC_CQE_STATUS_SHIFT |
			  (~q->posted >> q->log2_entries & CSREC_CQE_PHASE),
		.field = res->field,
		.sq_head = q->fetched,
		.detail = res->detail,
	};
	int st;

	q->posted++;
	q->posting = true;
	st = host_access(q, true, q->cq_base + slot * sizeof(cqe), &cqe, sizeof(cqe));
	q->posting = false;
	if (st)
		return st;
	CNT(m, COMMANDS)++;
	CNT(m, ERRORS) += !!res->status;
	return CSREC_ST_OK;
}

static void request_irq(struct queue *q)
{
	q->unseen = 0;
	CNT(q->m, IRQS)++;
	q->m->ops.irq(q->m->opaque, q->vector);
}

/* Interrupts whose time has come. */
static void run_timers(struct csrec_model *m)
{
	unsigned int i;

	for (i = 0; i <= N_IOQ; i++)
		if (m->queue[i].unseen && CNT(m, CYCLES) >= m->queue[i].irq_at)
			request_irq(&m->queue[i]);
}

/* Cycles until the next timer, at most @max; 0 if none runs. */
static uint64_t timer_left(const struct csrec_model *m, uint64_t max)
{
	uint64_t left = 0;
	unsigned int i;

	for (i = 0; i <= N_IOQ; i++) {
		const struct queue *q = &m->queue[i];

		if (q->unseen && (!left || q->irq_at - CNT(m, CYCLES) < left))
			left = q->irq_at - CNT(m, CYCLES);
	}
	return left < max ? left : max;
}

/* A completion that may have an interrupt is visible. */
static void announce(struct queue *q)
{
	if (q->noirq)
		return;
	if (q->irq_count > 1) {
		/* consumed before its write was answered */
		if (q->head == q->posted)
			return;
		if (!q->unseen++)
			q->irq_at = CNT(q->m, CYCLES) + q->irq_cycles;
		if (q->unseen < q->irq_count)
			return;
	}
	request_irq(q);
}

static void stop_queue(struct queue *q, uint8_t fatal)
{
	if (!q->id)
		q->m->fatal = fatal;
	block_until(q, must_stop);
}

static void serve(struct queue *q)
{
	struct csrec_model *m = q->m;

	for (;;) {
		struct csrec_cmd cmd;
		struct result res = { 0 };

		block_until(q, has_work);
		if (q->abort)
			return;

		if (fetch(q, &cmd)) {
			if (!q->id) {
				stop_queue(q, CSREC_FATAL_ADMIN_SQ);
				return;
			}
			cmd.cid = 0xffff;
			cmd.flags = 0;
			fail(&res, CSREC_ST_BUS_ERROR, CSREC_FIELD_NONE,
			     (q->fetched - 1) & ((1u << q->log2_entries) - 1));
		} else if (q->abort) {
			return;
		} else {
			q->executing = true;
			charge(q, COST_COMMAND);
			execute(q, &cmd, &res);
			q->executing = false;
			q->busy = NULL;
		}
		if (m->disabling)
			return;

		if (post(q, cmd.cid, &res)) {
			stop_queue(q, CSREC_FATAL_ADMIN_CQ);
			return;
		}
		if (!(cmd.flags & CSREC_CMD_F_NOIRQ))
			announce(q);
	}
}

static void queue_main(unsigned int lo, unsigned int hi)
{
	struct queue *q = (struct queue *)((uintptr_t)hi << 32 | lo);

	serve(q);
	q->unseen = 0;
	q->state = QUEUE_FREE;
	to_scheduler(q);
}

/* The caller has set what describes the queue; this sets it going. */
void queue_start(struct queue *q)
{
	uintptr_t arg = (uintptr_t)q;

	q->tail = q->fetched = q->posted = q->head = q->m->cfg.first_count;
	q->abort = q->executing = q->posting = false;
	q->busy = NULL;
	q->ready = NULL;
	q->state = QUEUE_LIVE;
	getcontext(&q->ctx);
	q->ctx.uc_stack.ss_sp = q->stack;
	q->ctx.uc_stack.ss_size = STACK_SIZE;
	q->ctx.uc_link = NULL;
	makecontext(&q->ctx, (void (*)(void))queue_main, 2, (unsigned int)arg,
		    (unsigned int)((uint64_t)arg >> 32));
}

/* --- enable and disable --- */

static void forget_tables(struct csrec_model *m)
{
	memset(m->region, 0, sizeof(m->region));
	memset(m->fence, 0, sizeof(m->fence));
	m->fatal = CSREC_FATAL_NONE;
	m->up = m->disabling = false;
}

static void try_enable(struct csrec_model *m)
{
	struct queue *q = &m->queue[0];

	if (!(m->ctrl & CSREC_CTRL_ENABLE) || m->up || m->fatal)
		return;
	if (m->asq_base % sizeof(struct csrec_cmd) || m->acq_base % sizeof(struct csrec_cqe) ||
	    m->aq_size < 1 || m->aq_size > MAX_LOG2) {
		m->fatal = CSREC_FATAL_CONFIG;
		return;
	}
	q->vector = q->domain = 0;
	q->log2_entries = m->aq_size;
	q->sq_base = m->asq_base;
	q->cq_base = m->acq_base;
	queue_start(q);
	m->up = true;
}

/* The last step of a disable, once no queue runs any more. */
static void try_disable(struct csrec_model *m)
{
	unsigned int i;

	for (i = 0; i <= N_IOQ; i++)
		if (m->queue[i].state != QUEUE_FREE)
			return;
	forget_tables(m);
	try_enable(m);
}

static void write_ctrl(struct csrec_model *m, uint64_t val)
{
	unsigned int i;

	m->ctrl = val & CSREC_CTRL_ENABLE;
	if (m->ctrl) {
		try_enable(m);
		return;
	}
	if (!m->up) {
		m->fatal = CSREC_FATAL_NONE;
		return;
	}
	m->disabling = true;
	for (i = 0; i <= N_IOQ; i++)
		m->queue[i].abort = true;
}

/* --- registers --- */

/* Is a command of this queue at work, or could one start? A WAIT that waits is not. */
static bool queue_busy(const struct queue *q)
{
	if (q->state == QUEUE_FREE)
		return false;
	return runnable(q) || q->ready == host_answered;
}

static uint64_t read_status(const struct csrec_model *m)
{
	uint64_t val = 0;
	unsigned int i;

	if (m->up)
		val |= CSREC_STATUS_READY;
	for (i = 0; i <= N_IOQ; i++)
		if (queue_busy(&m->queue[i]))
			val |= CSREC_STATUS_BUSY;
	if (m->fatal)
		val |= CSREC_STATUS_FATAL | (uint64_t)m->fatal << CSREC_STATUS_FATAL_SHIFT;
	return val;
}

/* DB_STATE: a completion on its way to the host does not count yet. */
static uint64_t queue_progress(const struct csrec_model *m, unsigned int qid)
{
	const struct queue *q;

	if (qid > N_IOQ || m->queue[qid].state == QUEUE_FREE)
		return 0;
	q = &m->queue[qid];
	return (uint64_t)q->tail << CSREC_DBS_SQ_TAIL_SHIFT |
	       (uint64_t)(q->posted - q->posting) << CSREC_DBS_CQ_TAIL_SHIFT;
}

static uint64_t read_reg(const struct csrec_model *m, uint32_t off)
{
	if (off >= DB_BASE && off < CSREC_BAR_REG_SIZE &&
	    (off & ((1u << DB_STRIDE_LOG2) - 1)) == CSREC_DB_STATE)
		return queue_progress(m, (off - DB_BASE) >> DB_STRIDE_LOG2);
	switch (off) {
	case CSREC_REG_ID:
		return CSREC_ID_MAGIC | (uint64_t)CSREC_HW_MINOR << CSREC_ID_MINOR_SHIFT |
		       (uint64_t)CSREC_HW_MAJOR << CSREC_ID_MAJOR_SHIFT;
	case CSREC_REG_CAP_QUEUE:
		return N_IOQ << CSREC_CAPQ_IOQ_SHIFT | MAX_LOG2 << CSREC_CAPQ_ENTRIES_SHIFT |
		       DB_STRIDE_LOG2 << CSREC_CAPQ_STRIDE_SHIFT |
		       N_VECTORS << CSREC_CAPQ_VECTORS_SHIFT |
		       (uint64_t)DB_BASE << CSREC_CAPQ_DB_SHIFT;
	case CSREC_REG_CAP_TABLE:
		return N_REGIONS << CSREC_CAPT_REGIONS_SHIFT | N_FENCES << CSREC_CAPT_FENCES_SHIFT;
	case CSREC_REG_CAP_DRAM:
		return m->cfg.dram_size;
	case CSREC_REG_CAP_ONCHIP:
		return ONCHIP_SIZE;
	case CSREC_REG_CAP_ENGINE:
		return CSREC_CAPE_COPY | CSREC_CAPE_EMB | CSREC_CAPE_TT | CSREC_CAPE_INTERACT |
		       CSREC_CAPE_MLP | CSREC_FP_GOLDEN << CSREC_CAPE_FP_SHIFT |
		       (uint64_t)N_MACS << CSREC_CAPE_MACS_SHIFT;
	case CSREC_REG_CAP_LIMIT:
		return (uint64_t)MAX_DIM << CSREC_CAPL_DIM_SHIFT |
		       (uint64_t)MAX_VECS << CSREC_CAPL_VECS_SHIFT |
		       (uint64_t)MAX_RANK << CSREC_CAPL_RANK_SHIFT |
		       (uint64_t)MAX_WIDTH << CSREC_CAPL_WIDTH_SHIFT;
	case CSREC_REG_CTRL:
		return m->ctrl;
	case CSREC_REG_STATUS:
		return read_status(m);
	case CSREC_REG_ASQ_BASE:
		return m->asq_base;
	case CSREC_REG_ACQ_BASE:
		return m->acq_base;
	case CSREC_REG_AQ_SIZE:
		return m->aq_size;
	}
	if (off >= CSREC_REG_CNT_CYCLES && off < CSREC_REG_CNT_END)
		return m->cnt[(off - CSREC_REG_CNT_CYCLES) / 8];
	return 0;
}

static void doorbell(struct csrec_model *m, unsigned int qid, uint64_t val)
{
	uint32_t tail = val >> CSREC_DB_SQ_TAIL_SHIFT, head = val >> CSREC_DB_CQ_HEAD_SHIFT;
	struct queue *q;

	if (qid > N_IOQ || m->queue[qid].state == QUEUE_FREE || m->queue[qid].abort)
		goto bad;
	q = &m->queue[qid];
	if (tail - q->tail > q->fetched + (1u << q->log2_entries) - q->tail ||
	    head - q->head > q->posted - q->head)
		goto bad;
	q->tail = tail;
	q->head = head;
	if (head == q->posted)
		q->unseen = 0;
	CNT(m, DOORBELLS)++;
	return;
bad:
	CNT(m, BAD_DOORBELL)++;
}

uint64_t csrec_model_read(struct csrec_model *m, uint32_t off, unsigned int len)
{
	uint64_t val;

	if ((len != 4 && len != 8) || off % len)
		return 0;
	val = read_reg(m, off & ~7u);
	if (len == 4)
		val = (uint32_t)(off & 4 ? val >> 32 : val);
	return val;
}

void csrec_model_write(struct csrec_model *m, uint32_t off, unsigned int len, uint64_t val)
{
	if (len != 8 || off % 8)
		goto bad;
	if (off >= DB_BASE && off < CSREC_BAR_REG_SIZE) {
		if (off & ((1u << DB_STRIDE_LOG2) - 1))
			goto bad;
		doorbell(m, (off - DB_BASE) >> DB_STRIDE_LOG2, val);
		return;
	}
	switch (off) {
	case CSREC_REG_CTRL:
		write_ctrl(m, val);
		return;
	case CSREC_REG_ASQ_BASE:
		m->asq_base = val;
		return;
	case CSREC_REG_ACQ_BASE:
		m->acq_base = val;
		return;
	case CSREC_REG_AQ_SIZE:
		m->aq_size = val & 0xf;
		return;
	}
bad:
	CNT(m, BAD_WRITE)++;
}

/* --- the model as a whole --- */

unsigned int csrec_model_step(struct csrec_model *m, unsigned int cycles)
{
	uint64_t start = CNT(m, CYCLES), ran = 0;
	unsigned int idle = 0;

	while (ran < cycles) {
		struct queue *q = &m->queue[m->turn];

		m->turn = (m->turn + 1) % (1 + N_IOQ);
		if (runnable(q)) {
			idle = 0;
			m->slice_left = SLICE;
			swapcontext(&m->main_ctx, &q->ctx);
			if (m->disabling)
				try_disable(m);
		} else if (++idle > N_IOQ) {
			uint64_t left = timer_left(m, cycles - ran);

			if (!left)
				break;
			CNT(m, CYCLES) += left;
		}
		run_timers(m);
		ran = CNT(m, CYCLES) - start;
	}
	/* the last thing done may have cost more than was asked for */
	return CNT(m, CYCLES) - start < cycles ? CNT(m, CYCLES) - start : cycles;
}

bool csrec_model_busy(const struct csrec_model *m)
{
	unsigned int i;

	for (i = 0; i <= N_IOQ; i++)
		if (runnable(&m->queue[i]) || m->queue[i].unseen)
			return true;
	return false;
}

/* An answer to nobody, as to an access from before a reset, is ignored. */
void csrec_model_host_done(struct csrec_model *m, uint32_t tag, int err)
{
	unsigned int i;

	for (i = 0; i <= N_IOQ; i++) {
		struct queue *q = &m->queue[i];

		if (q->host.late && q->host.tag == tag) {
			q->host.err = err;
			q->host.late = false;
		}
	}
}

void csrec_model_reset(struct csrec_model *m)
{
	unsigned int i;

	for (i = 0; i <= N_IOQ; i++) {
		m->queue[i].state = QUEUE_FREE;
		m->queue[i].unseen = 0;
		m->queue[i].host.late = false;
	}
	forget_tables(m);
	memset(m->cnt, 0, sizeof(m->cnt));
	m->ctrl = m->asq_base = m->acq_base = m->aq_size = 0;
}

int csrec_model_create(struct csrec_model **out, const struct csrec_model_config *cfg,
		       void *dram, const struct csrec_host_ops *ops, void *opaque)
{
	struct csrec_model *m;
	unsigned int i;

	if (!dram || cfg->dram_size < 4096 || cfg->dram_size & (cfg->dram_size - 1))
		return -EINVAL;
	if (cfg->fst)
		return -ENOTSUP;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->cfg = *cfg;
	m->ops = *ops;
	m->opaque = opaque;
	m->dram = dram;
	m->onchip = calloc(1, ONCHIP_SIZE);
	if (!m->onchip)
		goto fail;
	for (i = 0; i <= N_IOQ; i++) {
		m->queue[i].m = m;
		m->queue[i].id = i;
		m->queue[i].stack = malloc(STACK_SIZE);
		if (!m->queue[i].stack)
			goto fail;
	}
	*out = m;
	return 0;
fail:
	csrec_model_destroy(m);
	return -ENOMEM;
}

void csrec_model_destroy(struct csrec_model *m)
{
	unsigned int i;

	if (!m)
		return;
	for (i = 0; i <= N_IOQ; i++)
		free(m->queue[i].stack);
	free(m->onchip);
	free(m);
}

int csrec_model_trace(struct csrec_model *m, const char *fst)
{
	(void)m;
	return fst ? -ENOTSUP : 0;
}

const char *csrec_model_name(const struct csrec_model *m)
{
	(void)m;
	return "golden";
}
