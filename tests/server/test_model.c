// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A model just big enough to test the server with; see test_model.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/csrec_hw.h>

#include "csrec_model.h"
#include "test_model.h"

struct csrec_model {
	uint8_t *dram;
	uint64_t dram_size;
	const struct csrec_host_ops *ops;
	void *opaque;
	uint64_t scratch, addr, len, dram_off, busy, burst;
	uint64_t steps, resets, late;
	unsigned int go;		/* to be started */
	unsigned int irq_pending;	/* vector + 1 */
	unsigned int todo, waiting;	/* transfers not started, not answered */
	unsigned int done;
	int err;
	bool irq_when_done;
	bool out[TM_MAX_BURST];		/* tag awaits its answer */
	uint8_t *buf[TM_MAX_BURST];
	uint64_t buf_dram[TM_MAX_BURST];
	unsigned int buf_len[TM_MAX_BURST];
	bool buf_read[TM_MAX_BURST];
};

int csrec_model_create(struct csrec_model **out, const struct csrec_model_config *cfg, void *dram,
		       const struct csrec_host_ops *ops, void *opaque)
{
	struct csrec_model *m;

	if (cfg->fst)
		return -ENOTSUP;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->dram = dram;
	m->dram_size = cfg->dram_size;
	m->ops = ops;
	m->opaque = opaque;
	m->burst = 1;
	for (int i = 0; i < TM_MAX_BURST; i++)
		m->buf[i] = malloc(4096);
	*out = m;
	return 0;
}

void csrec_model_destroy(struct csrec_model *m)
{
	for (int i = 0; i < TM_MAX_BURST; i++)
		free(m->buf[i]);
	free(m);
}

void csrec_model_reset(struct csrec_model *m)
{
	m->scratch = m->addr = m->len = m->dram_off = m->busy = 0;
	m->burst = 1;
	m->go = m->irq_pending = m->todo = m->waiting = m->done = 0;
	m->err = 0;
	m->irq_when_done = false;
	memset(m->out, 0, sizeof(m->out));
	m->resets++;
}

uint64_t csrec_model_read(struct csrec_model *m, uint32_t off, unsigned int len)
{
	uint64_t v = 0;

	switch (off & ~7u) {
	case CSREC_REG_ID:
		v = CSREC_ID_MAGIC | (uint64_t)CSREC_HW_MINOR << CSREC_ID_MINOR_SHIFT |
		    (uint64_t)CSREC_HW_MAJOR << CSREC_ID_MAJOR_SHIFT;
		break;
	case CSREC_REG_CAP_QUEUE:
		v = (uint64_t)TM_VECTORS << CSREC_CAPQ_VECTORS_SHIFT | 4 << CSREC_CAPQ_IOQ_SHIFT |
		    12 << CSREC_CAPQ_STRIDE_SHIFT | 0x10000ull << CSREC_CAPQ_DB_SHIFT;
		break;
	case CSREC_REG_CAP_DRAM:
		v = m->dram_size;
		break;
	case TM_SCRATCH:
		v = m->scratch;
		break;
	case TM_ADDR:
		v = m->addr;
		break;
	case TM_LEN:
		v = m->len;
		break;
	case TM_DRAM:
		v = m->dram_off;
		break;
	case TM_STATUS:
		v = (m->go || m->todo || m->waiting) | (m->done & 0xffffff) << 8 |
		    (uint64_t)(uint32_t)-m->err << 32;
		break;
	case TM_BUSY:
		v = m->busy;
		break;
	case TM_STEPS:
		v = m->steps;
		break;
	case TM_RESETS:
		v = m->resets;
		break;
	case TM_LATE:
		v = m->late;
		break;
	case TM_BURST:
		v = m->burst;
		break;
	}
	v >>= off % 8 * 8;
	return len < 8 ? v & ((1ull << 8 * len) - 1) : v;
}

void csrec_model_write(struct csrec_model *m, uint32_t off, unsigned int len, uint64_t val)
{
	if (len != 8)
		return;
	switch (off) {
	case TM_SCRATCH:
		m->scratch = val;
		break;
	case TM_ADDR:
		m->addr = val;
		break;
	case TM_LEN:
		m->len = val;
		break;
	case TM_DRAM:
		m->dram_off = val;
		break;
	case TM_GO:
		if (!m->waiting)	/* its buffers are in use */
			m->go = (unsigned int)val & 7;
		break;
	case TM_IRQ:
		m->irq_pending = (val & 7) + 1;
		break;
	case TM_BUSY:
		m->busy = val;
		break;
	case TM_BURST:
		m->burst = val >= 1 && val <= TM_MAX_BURST ? val : 1;
		break;
	}
}

static void finish(struct csrec_model *m, unsigned int tag, int err)
{
	if (!err && m->buf_read[tag])
		memcpy(m->dram + m->buf_dram[tag], m->buf[tag], m->buf_len[tag]);
	if (err)
		m->err = err;
	m->done++;
	m->waiting--;
	if (!m->waiting && m->irq_when_done)
		m->irq_pending = 1;
}

static void start(struct csrec_model *m)
{
	unsigned int go = m->go, n = (unsigned int)m->burst;

	m->go = 0;
	m->err = 0;
	m->irq_when_done = go & TM_GO_IRQ;
	if (!(go & (TM_GO_READ | TM_GO_WRITE)))
		return;
	m->waiting = n;
	for (unsigned int tag = 0; tag < n; tag++) {
		uint64_t dram = m->dram_off + 4096ull * tag, addr = m->addr + 4096ull * tag;
		size_t len = m->len;
		int rc = -ERANGE;

		m->buf_dram[tag] = dram;
		m->buf_len[tag] = (unsigned int)len;
		m->buf_read[tag] = go & TM_GO_READ;
		if (len <= 4096 && dram <= m->dram_size - len) {
			if (go & TM_GO_READ) {
				rc = m->ops->read(m->opaque, tag, addr, m->buf[tag], len);
			} else {
				memcpy(m->buf[tag], m->dram + dram, len);
				rc = m->ops->write(m->opaque, tag, addr, m->buf[tag], len);
			}
		}
		if (rc == -EINPROGRESS)
			m->out[tag] = true;
		else
			finish(m, tag, rc);
	}
}

unsigned int csrec_model_step(struct csrec_model *m, unsigned int cycles)
{
	unsigned int ran = 0;

	m->steps++;
	while (ran < cycles && csrec_model_busy(m)) {
		if (m->go)
			start(m);
		if (m->irq_pending) {
			m->ops->irq(m->opaque, m->irq_pending - 1);
			m->irq_pending = 0;
		}
		if (m->busy)
			m->busy--;
		ran++;
	}
	return ran;
}

bool csrec_model_busy(const struct csrec_model *m)
{
	return m->go || m->irq_pending || m->busy;
}

void csrec_model_host_done(struct csrec_model *m, uint32_t tag, int err)
{
	if (tag >= TM_MAX_BURST || !m->out[tag]) {
		m->late++;
		return;
	}
	m->out[tag] = false;
	finish(m, tag, err);
}

int csrec_model_trace(struct csrec_model *m, const char *fst)
{
	(void)m;
	(void)fst;
	return -ENOTSUP;
}

const char *csrec_model_name(const struct csrec_model *m)
{
	(void)m;
	return "server test";
}
