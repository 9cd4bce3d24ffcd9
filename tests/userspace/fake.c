// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/csrec.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include "fake.h"

#define REGIONS		64
#define QUEUES		4
#define FENCES		8
#define LOG2_ENTRIES	8
#define ENTRIES		(1 << LOG2_ENTRIES)
#define DRAM		(16ull << 20)
#define ONCHIP		(1ull << 20)

struct fake fake = {
	.uapi_major = CSREC_UAPI_MAJOR,
	.hw_major = CSREC_HW_MAJOR,
	.numa_node = -1,
	.p2p = true,
};

static struct region {
	uint8_t kind;
	uint8_t rights;
	uint16_t gen;
	uint64_t len;
	unsigned char *mem;
} regions[REGIONS];

static struct queue {
	bool used;
	uint32_t entries;
	uint32_t count;		/* completions waiting to be taken */
	struct csrec_cqe cqes[ENTRIES];
} queues[QUEUES];

static struct {
	bool used;
	uint64_t value;
} fences[FENCES];

static struct {
	unsigned int skip, count;
	int err;
} failures[16];

static struct csrec_stats totals;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void settings(void)
{
	const char *s;

	if ((s = getenv("FAKE_UAPI_MAJOR")))
		fake.uapi_major = atoi(s);
	if ((s = getenv("FAKE_HW_MAJOR")))
		fake.hw_major = atoi(s);
	if ((s = getenv("FAKE_P2P")))
		fake.p2p = atoi(s);
	if ((s = getenv("FAKE_CORRUPT")))
		fake.corrupt = atoi(s);
	if ((s = getenv("FAKE_LIE")))
		fake.lie = atoi(s);
	if ((s = getenv("FAKE_DRIVE")))
		fake.drive = atoi(s);
}

void fake_fail_after(unsigned int nr, unsigned int skip, int err, unsigned int count)
{
	failures[nr].skip = skip;
	failures[nr].count = count;
	failures[nr].err = err;
}

void fake_fail(unsigned int nr, int err, unsigned int count)
{
	fake_fail_after(nr, 0, err, count);
}

static struct region *find(uint32_t key)
{
	struct region *r = &regions[key % REGIONS];

	return (key & 0xffff) < REGIONS && r->kind && r->gen == key >> 16 ? r : NULL;
}

void *fake_region(uint32_t key, uint64_t *len)
{
	struct region *r = find(key);

	if (!r)
		return NULL;
	*len = r->len;
	return r->mem;
}

static int region_new(uint8_t kind, uint8_t rights, uint64_t len, void *mem, uint32_t *key)
{
	for (uint32_t i = 0; i < REGIONS; i++) {
		struct region *r = &regions[i];

		if (r->kind)
			continue;
		r->kind = kind;
		r->rights = rights;
		r->len = len;
		r->mem = mem;
		r->gen++;
		*key = i | (uint32_t)r->gen << 16;
		fake.regions++;
		return 0;
	}
	return -ENOSPC;
}

static uint64_t space(uint8_t kind)
{
	uint64_t left = kind == CSREC_REGION_DRAM ? DRAM : ONCHIP;

	for (int i = 0; i < REGIONS; i++)
		if (regions[i].kind == kind)
			left -= regions[i].len;
	return left;
}

static int get_info(struct csrec_info *p)
{
	p->uapi_major = fake.uapi_major;
	p->hw_major = fake.hw_major;
	p->cap_queue = QUEUES | LOG2_ENTRIES << 8 | 12 << 16 | 4 << 24 | 0x10000ull << 32;
	p->cap_table = REGIONS | FENCES << 16;
	p->cap_dram = DRAM;
	p->cap_onchip = ONCHIP;
	p->cap_engine = 0x1f | CSREC_FP_GOLDEN << 16 | 72ull << 32;
	p->cap_limit = 128 | 32ull << 16 | 16ull << 32 | 1024ull << 48;
	p->features = fake.p2p ? CSREC_FEATURE_P2PDMA : 0;
	p->pci_bus = 4;
	p->pci_devfn = 0;
	p->irq_vectors = 4;
	p->numa_node = fake.numa_node;
	p->dram_free = space(CSREC_REGION_DRAM);
	p->onchip_free = space(CSREC_REGION_ONCHIP);
	return 0;
}

static int queue_create(struct csrec_queue_create *p)
{
	if (p->entries < 2 || p->entries > ENTRIES || p->entries & (p->entries - 1))
		return -EINVAL;
	for (int i = 0; i < QUEUES; i++) {
		if (queues[i].used)
			continue;
		queues[i].used = true;
		queues[i].entries = p->entries;
		queues[i].count = 0;
		p->queue_id = i + 1;
		return 0;
	}
	return -ENOSPC;
}

static struct queue *queue(uint32_t id)
{
	return id >= 1 && id <= QUEUES && queues[id - 1].used ? &queues[id - 1] : NULL;
}

static int mem_alloc(struct csrec_mem_alloc *p)
{
	uint64_t unit = p->kind == CSREC_REGION_DRAM ? 4096 : 64;
	void *mem;

	if ((p->kind != CSREC_REGION_DRAM && p->kind != CSREC_REGION_ONCHIP) || !p->len)
		return -EINVAL;
	if (p->len > space(p->kind))
		return -ENOMEM;
	p->len = (p->len + unit - 1) / unit * unit;
	mem = calloc(1, p->len);
	return region_new(p->kind, 3, p->len, mem, &p->key);
}

static int mem_free(struct csrec_mem_free *p)
{
	struct region *r = find(p->key);

	if (!r)
		return -ENOENT;
	if (r->kind != CSREC_REGION_HOST)
		free(r->mem);
	r->kind = 0;
	fake.regions--;
	return 0;
}

/* One operand as the device checks it; 0 or a status. */
static int operand(uint32_t key, uint64_t off, uint64_t len, uint8_t right, size_t key_field,
		   size_t off_field, unsigned char **mem, struct csrec_cqe *cqe)
{
	struct region *r = find(key);

	cqe->field = 8 + key_field;
	cqe->detail = key;
	if (!r)
		return CSREC_ST_STALE_KEY;
	if (!(r->rights & right))
		return CSREC_ST_BAD_RIGHTS;
	if (off > r->len || len > r->len - off) {
		cqe->field = 8 + off_field;
		cqe->detail = off;
		return CSREC_ST_OUT_OF_BOUNDS;
	}
	*mem = r->mem + off;
	return 0;
}

static int execute(const struct csrec_cmd *cmd, struct csrec_cqe *cqe)
{
	unsigned char *src = NULL, *dst = NULL;
	struct csrec_body_copy b;
	int st;

	memcpy(&b, cmd->body, sizeof(b));
	switch (cmd->opcode) {
	case CSREC_OP_NOP:
	case CSREC_OP_FENCE:
		return 0;
	case CSREC_OP_COPY:
		st = operand(b.src_key, b.src_off, b.len, CSREC_RIGHT_READ,
			     offsetof(struct csrec_body_copy, src_key),
			     offsetof(struct csrec_body_copy, src_off), &src, cqe);
		if (!st)
			st = operand(b.dst_key, b.dst_off, b.len, CSREC_RIGHT_WRITE,
				     offsetof(struct csrec_body_copy, dst_key),
				     offsetof(struct csrec_body_copy, dst_off), &dst, cqe);
		if (st)
			return st;
		memmove(dst, src, b.len);
		if (fake.corrupt)
			dst[b.len - 1]++;
		cqe->detail = b.len;
		return 0;
	case CSREC_OP_FILL:
		st = operand(b.dst_key, b.dst_off, b.len, CSREC_RIGHT_WRITE,
			     offsetof(struct csrec_body_copy, dst_key),
			     offsetof(struct csrec_body_copy, dst_off), &dst, cqe);
		if (st)
			return st;
		for (uint64_t i = 0; i < b.len; i += 4)
			memcpy(dst + i, &b.pattern, 4);
		cqe->detail = b.len;
		return 0;
	}
	cqe->field = 0;
	cqe->detail = cmd->opcode;
	return CSREC_ST_BAD_OPCODE;
}

static int submit(struct csrec_submit *p)
{
	const struct csrec_cmd *cmds = (void *)(uintptr_t)p->cmds;
	struct queue *q = queue(p->queue_id);

	if (!q)
		return -ENOENT;
	if (!p->count || p->count > CSREC_SUBMIT_MAX)
		return -EINVAL;
	p->submitted = 0;
	while (p->submitted < p->count && q->count < q->entries &&
	       !(fake.submit_limit && p->submitted >= fake.submit_limit)) {
		const struct csrec_cmd *cmd = &cmds[p->submitted];
		struct csrec_cqe cqe = { .cid = cmd->cid, .field = CSREC_FIELD_NONE };
		int st = execute(cmd, &cqe);

		if (fake.lose) {
			fake.lose--;
			cqe = (struct csrec_cqe) { .cid = 0xffff, .field = CSREC_FIELD_NONE };
			st = CSREC_ST_BUS_ERROR;
		}
		if (!st)
			cqe.field = 0;
		cqe.status = st << 1 | 1;
		q->cqes[q->count++] = cqe;
		p->submitted++;
		totals.counters[(CSREC_REG_CNT_CYCLES - CSREC_REG_CNT_CYCLES) / 8] += 100;
	}
	if (!p->submitted)
		return -EAGAIN;
	totals.commands += p->submitted;
	totals.doorbells++;
	totals.interrupts++;
	return 0;
}

static int wait_for(struct csrec_wait *p)
{
	struct csrec_cqe *out = (void *)(uintptr_t)p->cqes;
	struct queue *q = queue(p->queue_id);

	fake.last_min = p->min;
	fake.last_max = p->max;
	fake.last_timeout = p->timeout_ns;
	if (!q)
		return -ENOENT;
	if (!p->max || p->max > CSREC_SUBMIT_MAX || p->min > p->max || p->min > q->count)
		return -EINVAL;
	p->count = p->max < q->count ? p->max : q->count;
	if (fake.lazy && p->min)
		p->count = p->min;
	if (!p->count)
		return p->timeout_ns ? -ETIMEDOUT : -EAGAIN;
	for (uint32_t i = 0; i < p->count; i++)
		out[i] = q->cqes[fake.reverse ? q->count - 1 - i : i];
	q->count -= p->count;
	if (!fake.reverse)
		memmove(q->cqes, q->cqes + p->count, q->count * sizeof(q->cqes[0]));
	return 0;
}

static int p2p_read(struct csrec_p2p_read *p)
{
	const struct csrec_p2p_seg *segs = (void *)(uintptr_t)p->segs;
	bool direct = fake.p2p && !(p->flags & CSREC_P2P_F_BOUNCE);

	fake.last_fence = p->fence_key;
	if (!p->count || p->count > CSREC_P2P_MAX_SEGS)
		return -EINVAL;
	if (!direct && (p->flags & CSREC_P2P_F_ONLY))
		return -EREMOTEIO;
	for (uint32_t i = 0; i < p->count; i++) {
		struct region *r = find(segs[i].key);

		if (!segs[i].len || segs[i].file_off % 512 || segs[i].len % 512 ||
		    segs[i].dev_off % 512)
			return -EINVAL;
		if (!r)
			return -ENOENT;
		if (r->kind != CSREC_REGION_DRAM)
			return -EOPNOTSUPP;
		if (segs[i].dev_off > r->len || segs[i].len > r->len - segs[i].dev_off)
			return -ERANGE;
		if (pread(p->fd, r->mem + segs[i].dev_off, segs[i].len, segs[i].file_off) !=
		    (ssize_t)segs[i].len)
			return -EINVAL;
		if (direct)
			p->p2p_bytes += segs[i].len;
		else
			p->bounce_bytes += segs[i].len;
	}
	if (fake.lie)
		p->p2p_bytes /= 2;
	if (fake.corrupt) {
		struct region *r = find(segs[0].key);

		r->mem[segs[0].dev_off] ^= 1;
	}
	return 0;
}

static int fence_op(unsigned int nr, struct csrec_fence_op *p)
{
	uint32_t i = p->key - 1;

	if (i >= FENCES || !fences[i].used)
		return -ENOENT;
	if (nr == 0x07)
		fences[i].used = false;
	else if (p->value > fences[i].value)
		fences[i].value = p->value;
	return 0;
}

static int fence_create(struct csrec_fence_create *p)
{
	for (int i = 0; i < FENCES; i++) {
		if (fences[i].used)
			continue;
		fences[i].used = true;
		fences[i].value = p->value;
		p->key = i + 1;
		return 0;
	}
	return -ENOSPC;
}

static int call(unsigned int nr, void *arg)
{
	struct csrec_mem_register *reg = arg;
	struct csrec_queue_destroy *qd = arg;

	fake.calls[nr]++;
	if (failures[nr].count) {
		if (failures[nr].skip) {
			failures[nr].skip--;
		} else {
			failures[nr].count--;
			if (nr == 0x0a)
				fake.last_timeout = ((struct csrec_wait *)arg)->timeout_ns;
			return -failures[nr].err;
		}
	}
	switch (nr) {
	case 0x00:
		return get_info(arg);
	case 0x01:
		return queue_create(arg);
	case 0x02:
		if (!queue(qd->queue_id))
			return -ENOENT;
		queue(qd->queue_id)->used = false;
		return 0;
	case 0x03:
		return region_new(CSREC_REGION_HOST, reg->rights, reg->len,
				  (void *)(uintptr_t)reg->addr, &reg->key);
	case 0x04:
		return mem_alloc(arg);
	case 0x05:
		return mem_free(arg);
	case 0x06:
		return fence_create(arg);
	case 0x07:
	case 0x08:
		return fence_op(nr, arg);
	case 0x09:
		return submit(arg);
	case 0x0a:
		return wait_for(arg);
	case 0x0b:
		return p2p_read(arg);
	case 0x0c:
		totals.size = ((struct csrec_stats *)arg)->size;
		memcpy(arg, &totals, totals.size < sizeof(totals) ? totals.size : sizeof(totals));
		return 0;
	}
	return -ENOTTY;
}

/* Replaces the C library's. */
int ioctl(int fd, unsigned long req, ...)
{
	struct stat st;
	va_list ap;
	void *arg;
	int ret;

	va_start(ap, req);
	arg = va_arg(ap, void *);
	va_end(ap);

	if (fake.drive && req == BLKGETSIZE64 && !fstat(fd, &st) && S_ISREG(st.st_mode)) {
		*(uint64_t *)arg = st.st_size;
		return 0;
	}
	if (fake.drive && req == BLKSSZGET && !fstat(fd, &st) && S_ISREG(st.st_mode)) {
		*(int *)arg = 512;
		return 0;
	}
	if (_IOC_TYPE(req) != CSREC_IOC_MAGIC)
		return syscall(SYS_ioctl, fd, req, arg);

	pthread_mutex_lock(&lock);
	ret = _IOC_NR(req) < 16 ? call(_IOC_NR(req), arg) : -ENOTTY;
	pthread_mutex_unlock(&lock);
	if (ret < 0) {
		errno = -ret;
		return -1;
	}
	return ret;
}
