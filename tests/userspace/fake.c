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
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
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
	bool mapped;
} regions[REGIONS];

/* In the file: a MiB for each mapped queue, behind it 16 for each region. */
#define QUEUE_OFFSET(i)		((uint64_t)(i) << 20)
#define DB_OFFSET(i)		(QUEUE_OFFSET(i) + 0x80000)
#define DRAM_OFFSET(i)		((uint64_t)(16 + 16 * (i)) << 20)
static int file;			/* of the call at work */

static struct queue {
	bool used;
	uint32_t entries;
	uint32_t count;		/* completions waiting to be taken */
	struct csrec_cqe cqes[ENTRIES];
	int eventfd;		/* -1: none */
	/* mapped: */
	struct csrec_cmd *sq;
	struct csrec_cqe *cq;
	struct csrec_queue_ctl *ctl;
	uint64_t *doorbell;
	uint32_t tail, head;	/* as told by the doorbell */
	uint32_t fetched, posted;
} queues[QUEUES];

static struct {
	bool used;
	uint64_t value;
} fences[FENCES];

static struct {
	unsigned int skip, count;
	int err;
} failures[32];

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
	if ((s = getenv("FAKE_QUEUE_MAP")))
		fake.queue_map = atoi(s);
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
	p->features = (fake.p2p ? CSREC_FEATURE_P2PDMA : 0) |
		      (fake.queue_map ? CSREC_FEATURE_QUEUE_MAP | CSREC_FEATURE_COALESCE : 0);
	p->uapi_minor = fake.queue_map;
	p->pci_bus = 4;
	p->pci_devfn = 0;
	p->irq_vectors = 4;
	p->numa_node = fake.numa_node;
	p->dram_free = space(CSREC_REGION_DRAM);
	p->onchip_free = space(CSREC_REGION_ONCHIP);
	return 0;
}

/* As the driver may: the parts in whole pages, the doorbell elsewhere. */
static int map_queue(struct queue *q, int i, struct csrec_queue_create *p)
{
	char *mem;

	p->cq_off = q->entries * 64;
	p->ctl_off = (p->cq_off + q->entries * 16 + 63) / 64 * 64;
	p->ring_len = (p->ctl_off + 64 + 4095) / 4096 * 4096;
	p->ring_offset = QUEUE_OFFSET(i);
	p->db_offset = DB_OFFSET(i);
	p->db_len = 4096;
	if (ftruncate(file, DRAM_OFFSET(REGIONS)))
		return -errno;
	mem = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, file, QUEUE_OFFSET(i));
	if (mem == MAP_FAILED)
		return -errno;
	memset(mem, 0, 1 << 20);
	q->sq = (void *)mem;
	q->cq = (void *)(mem + p->cq_off);
	q->ctl = (void *)(mem + p->ctl_off);
	q->doorbell = (void *)(mem + 0x80000);
	p->cq_off += fake.ring_shift;
	return 0;
}

static int queue_create(struct csrec_queue_create *p)
{
	fake.last_irq_count = p->irq_count;
	fake.last_irq_cycles = p->irq_cycles;
	fake.last_queue_flags = p->flags;
	if (p->entries < 2 || p->entries > ENTRIES || p->entries & (p->entries - 1) ||
	    p->flags & ~(CSREC_QUEUE_F_MAP | CSREC_QUEUE_F_NOIRQ))
		return -EINVAL;
	for (int i = 0; i < QUEUES; i++) {
		struct queue *q = &queues[i];
		int ret = 0;

		if (q->used)
			continue;
		memset(q, 0, sizeof(*q));
		q->entries = p->entries;
		q->eventfd = -1;
		if (p->flags & CSREC_QUEUE_F_MAP)
			ret = map_queue(q, i, p);
		if (ret)
			return ret;
		q->used = true;
		fake.queues++;
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
	int ret;

	if ((p->kind != CSREC_REGION_DRAM && p->kind != CSREC_REGION_ONCHIP) || !p->len)
		return -EINVAL;
	if (p->len > space(p->kind))
		return -ENOMEM;
	p->len = (p->len + unit - 1) / unit * unit;
	fake.last_align = p->align;
	mem = calloc(1, p->len);
	ret = region_new(p->kind, 3, p->len, mem, &p->key);
	if (!ret && fake.mem_map && p->kind == CSREC_REGION_DRAM) {
		struct region *r = find(p->key);

		p->mmap_offset = DRAM_OFFSET(r - regions);
		if (ftruncate(file, DRAM_OFFSET(REGIONS)))
			return -errno;
		free(r->mem);
		r->mem = mmap(NULL, r->len, PROT_READ | PROT_WRITE, MAP_SHARED, file,
			      p->mmap_offset);
		if (r->mem == MAP_FAILED)
			return -errno;
		memset(r->mem, 0, r->len);
		r->mapped = true;
	}
	return ret;
}

static int mem_free(struct csrec_mem_free *p)
{
	struct region *r = find(p->key);

	if (!r)
		return -ENOENT;
	if (r->mapped)
		munmap(r->mem, r->len);
	else if (r->kind != CSREC_REGION_HOST)
		free(r->mem);
	r->mapped = false;
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

static struct csrec_cqe run_one(const struct csrec_cmd *cmd)
{
	struct csrec_cqe cqe = { .cid = cmd->cid, .field = CSREC_FIELD_NONE };
	int st = execute(cmd, &cqe);

	if (fake.lose) {
		fake.lose--;
		cqe = (struct csrec_cqe) { .cid = 0xffff, .field = CSREC_FIELD_NONE };
		st = CSREC_ST_BUS_ERROR;
	}
	if (!st)
		cqe.field = 0;
	cqe.status = st << 1;
	totals.counters[(CSREC_REG_CNT_CYCLES - CSREC_REG_CNT_CYCLES) / 8] += 100;
	totals.counters[(CSREC_REG_CNT_COMMANDS - CSREC_REG_CNT_CYCLES) / 8]++;
	return cqe;
}

static void step(struct queue *q, uint32_t n)
{
	uint64_t db = __atomic_load_n(q->doorbell, __ATOMIC_ACQUIRE);
	uint32_t tail = db, head = db >> 32, begin = q->posted;
	struct csrec_cqe batch[ENTRIES];

	if (tail - q->tail > q->fetched + q->entries - q->tail || head - q->head > q->posted - q->head)
		fake.bad_doorbells++;
	else {
		totals.counters[(CSREC_REG_CNT_DOORBELLS - CSREC_REG_CNT_CYCLES) / 8] +=
			tail != q->tail;
		q->tail = tail;
		q->head = head;
	}
	while (n-- && q->fetched != q->tail && q->posted - q->head < q->entries)
		batch[q->posted++ - begin] = run_one(&q->sq[q->fetched++ & (q->entries - 1)]);
	for (uint32_t i = begin; i != q->posted; i++) {
		struct csrec_cqe *to = &q->cq[i & (q->entries - 1)];
		struct csrec_cqe cqe = batch[fake.reverse ? q->posted - 1 - i : i - begin];

		to->cid = cqe.cid;
		to->field = cqe.field;
		to->detail = cqe.detail;
		/* the bit is 1 in the first pass over the ring, then 0, and so on */
		cqe.status |= !(i / q->entries & 1);
		__atomic_store_n(&to->status, cqe.status, __ATOMIC_RELEASE);
	}
}

void fake_step(uint32_t id, uint32_t n)
{
	pthread_mutex_lock(&lock);
	step(queue(id), n);
	pthread_mutex_unlock(&lock);
}

static int wait_mapped(struct queue *q, struct csrec_wait *p)
{
	if (p->max || p->cqes)
		return -EINVAL;
	step(q, fake.lazy && p->min ? p->min : UINT32_MAX);
	p->count = q->posted - __atomic_load_n(&q->ctl->cq_head, __ATOMIC_ACQUIRE);
	if (p->count >= p->min)
		return 0;
	return p->timeout_ns ? -ETIMEDOUT : -EAGAIN;
}

static int queue_reset(struct csrec_queue_reset *p)
{
	struct queue *q = queue(p->queue_id);

	if (!q)
		return -ENOENT;
	q->count = q->tail = q->head = q->fetched = q->posted = 0;
	if (q->sq) {
		memset(q->cq, 0, q->entries * sizeof(*q->cq));
		*q->doorbell = 0;
	}
	return 0;
}

static int queue_eventfd(struct csrec_queue_eventfd *p)
{
	struct queue *q = queue(p->queue_id);

	if (!q || (p->fd < 0 && q->eventfd < 0))
		return -ENOENT;
	if (p->fd >= 0 && q->eventfd >= 0)
		return -EBUSY;
	q->eventfd = p->fd;
	return 0;
}

static int submit(struct csrec_submit *p)
{
	const struct csrec_cmd *cmds = (void *)(uintptr_t)p->cmds;
	struct queue *q = queue(p->queue_id);

	if (!q)
		return -ENOENT;
	if (q->sq)
		return -EOPNOTSUPP;
	if (!p->count || p->count > CSREC_SUBMIT_MAX)
		return -EINVAL;
	p->submitted = 0;
	while (p->submitted < p->count && q->count < q->entries &&
	       !(fake.submit_limit && p->submitted >= fake.submit_limit)) {
		struct csrec_cqe cqe = run_one(&cmds[p->submitted]);

		cqe.status |= 1;
		q->cqes[q->count++] = cqe;
		p->submitted++;
	}
	if (!p->submitted)
		return -EAGAIN;
	totals.commands += p->submitted;
	totals.doorbells++;
	totals.counters[(CSREC_REG_CNT_DOORBELLS - CSREC_REG_CNT_CYCLES) / 8]++;
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
	fake.last_wait_flags = p->flags;
	if (!q)
		return -ENOENT;
	if (q->sq)
		return wait_mapped(q, p);
	if (!p->max || p->max > CSREC_SUBMIT_MAX || p->min > p->max || p->min > q->count)
		return -EINVAL;
	p->count = p->max < q->count ? p->max : q->count;
	if (fake.lazy && p->min)
		p->count = p->min;
	if (!p->count)
		return !p->min ? 0 : p->timeout_ns ? -ETIMEDOUT : -EAGAIN;
	for (uint32_t i = 0; i < p->count; i++)
		out[i] = q->cqes[fake.reverse ? q->count - 1 - i : i];
	q->count -= p->count;
	if (!fake.reverse)
		memmove(q->cqes, q->cqes + p->count, q->count * sizeof(q->cqes[0]));
	return 0;
}

static int p2p(struct csrec_p2p_read *p, bool to_drive)
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
		if ((to_drive ?
		     pwrite(p->fd, r->mem + segs[i].dev_off, segs[i].len, segs[i].file_off) :
		     pread(p->fd, r->mem + segs[i].dev_off, segs[i].len, segs[i].file_off)) !=
		    (ssize_t)segs[i].len)
			return -EINVAL;
		if (direct)
			p->p2p_bytes += segs[i].len;
		else
			p->bounce_bytes += segs[i].len;
	}
	if (fake.lie)
		p->p2p_bytes /= 2;
	if (fake.corrupt && !to_drive) {
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

/* An eventfd is as good as a dma-buf: its value is the key. */
static int mem_export(struct csrec_mem_export *p)
{
	struct region *r = find(p->key);

	if (!r)
		return -ENOENT;
	if (r->kind != CSREC_REGION_DRAM)
		return -EOPNOTSUPP;
	p->fd = eventfd(p->key, EFD_CLOEXEC | EFD_NONBLOCK);
	return p->fd < 0 ? -errno : 0;
}

static int mem_import(struct csrec_mem_import *p)
{
	struct region *r;
	uint64_t key;

	if (read(p->fd, &key, sizeof(key)) != sizeof(key))
		return errno == EBADF ? -EBADF : -EINVAL;
	r = find(key);
	p->len = r->len;
	return region_new(CSREC_REGION_HOST, p->rights, r->len, r->mem, &p->key);
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
		if (queue(qd->queue_id)->sq)
			munmap(queue(qd->queue_id)->sq, 1 << 20);
		queue(qd->queue_id)->used = false;
		fake.queues--;
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
		return p2p(arg, false);
	case 0x0d:
		return queue_reset(arg);
	case 0x0e:
		return queue_eventfd(arg);
	case 0x0f:
		return p2p(arg, true);
	case 0x10:
		return mem_export(arg);
	case 0x11:
		return mem_import(arg);
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
	file = fd;
	ret = _IOC_NR(req) < 32 ? call(_IOC_NR(req), arg) : -ENOTTY;
	pthread_mutex_unlock(&lock);
	if (ret < 0) {
		errno = -ret;
		return -1;
	}
	return ret;
}
