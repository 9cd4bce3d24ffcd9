// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Guest memory as the device reaches it.
 *
 * Three ways, tried in this order: the mapping of a range's file; our own BAR 2; a
 * DMA_READ or DMA_WRITE message, which the client resolves (memory without a file,
 * other devices' BARs) and whose answer the model gets later.
 *
 * Sharing. QEMU hands out the file behind guest RAM even when it was opened with
 * share=off; the guest then writes to private copies of its pages and the file stays
 * as it was. Reads through such a mapping are wrong and writes are lost, silently. So a
 * mapping is used only after a page of its file was seen to have, through a DMA_READ
 * message and through the mapping, the same content that is not all zeros. Until then
 * DMA to it goes by message, which is right in either case. A page proves the opposite
 * only if it differs in a word that does not change on either side in CHECK_ROUNDS
 * looks: a page the guest is writing to can differ once, but not stand still on both
 * sides and differ. Two such pages and the server refuses to go on.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server.h"

#define CHECK_ROUNDS		8
#define CHECK_BAD_PAGES		2
#define CHECK_SAMPLES		64	/* pages asked for, per range */
#define CHECK_PEEK		256	/* pages looked at in the mapping to find data */
#define CHECK_ERRORS		4	/* unanswered in a row: the client cannot */

enum dma_kind { MODEL_READ, MODEL_WRITE, CHECK_READ };

struct dma_req {
	struct dma_req *next;
	enum dma_kind kind;
	bool orphan;		/* the model was reset meanwhile */
	uint16_t id;
	uint32_t tag;
	uint64_t addr;
	uint32_t len;
	void *buf;		/* MODEL_READ: the model's */
	uint8_t data[];		/* MODEL_WRITE */
};

/* A file can be truncated while we look at it: that must not be the end of us. */
static sigjmp_buf bus_error;
static volatile sig_atomic_t bus_guarded;

static void on_sigbus(int sig)
{
	if (bus_guarded)
		siglongjmp(bus_error, 1);
	signal(sig, SIG_DFL);
	raise(sig);
}

static int guarded_copy(void *dst, const void *src, size_t len)
{
	if (sigsetjmp(bus_error, 0)) {
		bus_guarded = 0;
		return -EFAULT;
	}
	bus_guarded = 1;
	/*
	 * A completion queue entry has its phase bit in the first word: a CPU that
	 * sees the bit must see the rest.
	 */
	if (len == 16 && !((uintptr_t)dst & 15)) {
		uint64_t half[2];

		memcpy(half, src, sizeof(half));
		__atomic_store_n((uint64_t *)dst + 1, half[1], __ATOMIC_RELAXED);
		__atomic_store_n((uint64_t *)dst, half[0], __ATOMIC_RELEASE);
	} else {
		memcpy(dst, src, len);
	}
	bus_guarded = 0;
	return 0;
}

void dma_init(struct server *s)
{
	struct sigaction sa = { .sa_handler = on_sigbus, .sa_flags = SA_NODEFER };

	sigaction(SIGBUS, &sa, NULL);
	s->dma_queue_tail = &s->dma_queue;
}

/* Index of the first range that ends above @addr. */
static size_t range_at(const struct server *s, uint64_t addr)
{
	size_t lo = 0, hi = s->nranges;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		const struct range *r = &s->range[mid];

		if (r->iova + (r->size - 1) < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static struct range *range_find(const struct server *s, uint64_t addr)
{
	size_t i = range_at(s, addr);

	return i < s->nranges && s->range[i].iova <= addr ? &s->range[i] : NULL;
}

static bool is_proven(const struct server *s, dev_t dev, ino_t ino)
{
	for (size_t i = 0; i < s->nproven; i++)
		if (s->proven[i].dev == dev && s->proven[i].ino == ino)
			return true;
	return false;
}

/* @fd stays the caller's: the mapping does without it. */
int dma_map(struct server *s, const struct vfu_dma_map *m, int fd)
{
	struct range r = { .iova = m->iova, .size = m->size, .prot = m->flags };
	size_t at;

	if (!m->size || m->iova + (m->size - 1) < m->iova || (m->iova | m->size) & 0xfff ||
	    (m->flags & ~(uint32_t)(VFU_DMA_READABLE | VFU_DMA_WRITABLE)))
		return -EINVAL;
	at = range_at(s, m->iova);
	if (at < s->nranges && s->range[at].iova <= m->iova + (m->size - 1))
		return -EEXIST;
	if (s->nranges == MAX_RANGES)
		return -ENOSPC;
	if (s->nranges == s->max_ranges) {
		size_t max = s->max_ranges ? 2 * s->max_ranges : 64;
		struct range *grown = realloc(s->range, max * sizeof(r));

		if (!grown)
			return -ENOMEM;
		s->range = grown;
		s->max_ranges = max;
	}
	if (fd >= 0) {
		int prot = m->flags & VFU_DMA_WRITABLE ? PROT_READ | PROT_WRITE : PROT_READ;
		struct stat st;
		void *p;

		if (fstat(fd, &st))
			return -errno;
		/* Beyond the end of the file there would be nothing but SIGBUS. */
		if ((S_ISREG(st.st_mode) && (m->offset > (uint64_t)st.st_size ||
		     m->size > (uint64_t)st.st_size - m->offset)) || m->offset & 0xfff)
			return -EINVAL;
		p = mmap(NULL, m->size, prot, MAP_SHARED, fd, (off_t)m->offset);
		if (p == MAP_FAILED)
			return -errno;
		r.mem = p;
		r.dev = st.st_dev;
		r.ino = st.st_ino;
		r.shared = s->check_trust || is_proven(s, st.st_dev, st.st_ino);
	}
	memmove(&s->range[at + 1], &s->range[at], (s->nranges - at) * sizeof(r));
	s->range[at] = r;
	s->nranges++;
	dma_check(s);
	return 0;
}

static void range_release(struct range *r)
{
	if (r->mem)
		munmap(r->mem, r->size);
}

void dma_unmap_all(struct server *s)
{
	for (size_t i = 0; i < s->nranges; i++)
		range_release(&s->range[i]);
	s->nranges = 0;
}

/* Unmaps what lies wholly inside; with a virtual IOMMU that can be several ranges. */
int dma_unmap(struct server *s, const struct vfu_dma_unmap *u)
{
	size_t first, end;
	uint64_t last;

	if (u->flags & ~(uint32_t)VFU_UNMAP_ALL)
		return -EINVAL;
	if (u->flags & VFU_UNMAP_ALL) {
		if (u->iova || u->size)
			return -EINVAL;
		dma_unmap_all(s);
		return 0;
	}
	last = u->iova + (u->size - 1);
	if (!u->size || last < u->iova)
		return -EINVAL;
	first = range_at(s, u->iova);
	for (end = first; end < s->nranges && s->range[end].iova <= last; end++)
		if (s->range[end].iova < u->iova ||
		    s->range[end].iova + (s->range[end].size - 1) > last)
			return -EINVAL;		/* would cut it */
	if (end == first)
		return -ENOENT;
	for (size_t i = first; i < end; i++)
		range_release(&s->range[i]);
	memmove(&s->range[first], &s->range[end], (s->nranges - end) * sizeof(s->range[0]));
	s->nranges -= end - first;
	return 0;
}

/* ---- messages ---- */

static struct dma_req *dma_new(struct server *s, enum dma_kind kind, uint64_t addr, uint32_t len,
			       const void *data)
{
	struct dma_req *q = calloc(1, sizeof(*q) + (data ? len : 0));

	if (!q)
		return NULL;
	q->kind = kind;
	q->addr = addr;
	q->len = len;
	if (data)
		memcpy(q->data, data, len);
	*s->dma_queue_tail = q;
	s->dma_queue_tail = &q->next;
	return q;
}

static bool id_in_flight(const struct server *s, uint16_t id)
{
	for (const struct dma_req *q = s->dma_flight; q; q = q->next)
		if (q->id == id)
			return true;
	return false;
}

static struct dma_req *queue_pop(struct server *s)
{
	struct dma_req *q = s->dma_queue;

	s->dma_queue = q->next;
	if (!s->dma_queue)
		s->dma_queue_tail = &s->dma_queue;
	return q;
}

void dma_pump(struct server *s)
{
	while (s->fd >= 0 && s->dma_queue && s->dma_in_flight < DMA_IN_FLIGHT) {
		struct dma_req *q = queue_pop(s);
		struct vfu_dma_rw rw = { .addr = q->addr, .count = q->len };
		bool write = q->kind == MODEL_WRITE;
		struct vfu_hdr hdr = {
			.cmd = write ? VFU_DMA_WRITE : VFU_DMA_READ, .flags = VFU_F_COMMAND,
			.size = (uint32_t)(sizeof(hdr) + sizeof(rw) + (write ? q->len : 0)),
		};

		do {
			q->id = s->dma_next_id++;
		} while (id_in_flight(s, q->id));
		hdr.id = q->id;
		if (q->kind == CHECK_READ) {
			/* What the mapping has now belongs to what the answer will say. */
			const struct range *r = range_find(s, q->addr);

			if (!r || !r->mem ||
			    guarded_copy(s->check.before, r->mem + (q->addr - r->iova), DMA_MAX)) {
				s->check.active = false;
				free(q);
				dma_check(s);
				continue;
			}
		}
		q->next = s->dma_flight;
		s->dma_flight = q;
		s->dma_in_flight++;
		s->stats.dma_messages++;
		debug(s, "%s id %u addr %#" PRIx64 " count %u", write ? "DMA_WRITE" : "DMA_READ",
		      q->id, q->addr, q->len);
		conn_send(s, &hdr, &rw, sizeof(rw), q->data, write ? q->len : 0, -1);
	}
}

/* The model was reset. What left already will be answered to nobody. */
void dma_orphan(struct server *s)
{
	struct dma_req **link = &s->dma_queue, *q;

	while ((q = *link)) {
		if (q->kind == CHECK_READ) {
			link = &q->next;
			continue;
		}
		*link = q->next;
		free(q);
	}
	s->dma_queue_tail = link;
	for (q = s->dma_flight; q; q = q->next)
		if (q->kind != CHECK_READ)
			q->orphan = true;
}

static void list_free(struct dma_req *q)
{
	while (q) {
		struct dma_req *next = q->next;

		free(q);
		q = next;
	}
}

void dma_drop(struct server *s)
{
	list_free(s->dma_queue);
	list_free(s->dma_flight);
	s->dma_queue = NULL;
	s->dma_queue_tail = &s->dma_queue;
	s->dma_flight = NULL;
	s->dma_in_flight = 0;
	free(s->proven);
	s->proven = NULL;
	s->nproven = 0;
	s->check_errors = 0;
	s->check_answered = false;
	s->check_trust = false;
	s->check.active = false;
	s->check.has_suspect = false;
}

/* ---- is guest RAM shared? ---- */

static void prove(struct server *s, const struct range *seen)
{
	void *grown = realloc(s->proven, (s->nproven + 1) * sizeof(s->proven[0]));
	dev_t dev = seen->dev;
	ino_t ino = seen->ino;

	if (grown) {
		s->proven = grown;
		s->proven[s->nproven].dev = dev;
		s->proven[s->nproven++].ino = ino;
	}
	for (size_t i = 0; i < s->nranges; i++)
		if (s->range[i].mem && s->range[i].dev == dev && s->range[i].ino == ino)
			s->range[i].shared = true;
	debug(s, "guest memory at %#" PRIx64 ": mapping is shared", seen->iova);
}

static void check_ask(struct server *s, uint64_t addr)
{
	if (!dma_new(s, CHECK_READ, addr, DMA_MAX, NULL))
		return;
	if (!s->check.active)
		s->check.round = 0;
	s->check.active = true;
	s->check.addr = addr;
}

static bool is_zero(const uint64_t *w)
{
	for (unsigned int i = 0; i < CHECK_WORDS; i++)
		if (w[i])
			return false;
	return true;
}

/* Page @i of a sequence that spreads evenly over the range. */
static uint64_t sample(const struct range *r, unsigned int i)
{
	uint64_t pages = r->size / DMA_MAX;
	uint64_t frac = (uint64_t)i * 0x9e3779b97f4a7c15ull >> 32;	/* golden ratio */

	if (i < 2)
		return i ? pages - 1 : 0;
	return pages <= UINT32_MAX ? pages * frac >> 32 : (pages >> 32) * frac;
}

/*
 * Looks for a page worth asking for: one with data in the mapping proves sharing at the
 * first try. An unshared mapping has none, so then pages are asked for blindly.
 */
static bool check_range(struct server *s, struct range *r)
{
	uint64_t words[CHECK_WORDS];

	if (!r->samples) {
		for (unsigned int i = 0; i < CHECK_PEEK && i < r->size / DMA_MAX; i++) {
			uint64_t off = sample(r, i) * DMA_MAX;

			if (guarded_copy(words, r->mem + off, DMA_MAX) || is_zero(words))
				continue;
			r->samples++;
			check_ask(s, r->iova + off);
			return true;
		}
	}
	if (r->samples >= CHECK_SAMPLES)
		return false;
	check_ask(s, r->iova + sample(r, r->samples++) * DMA_MAX);
	return true;
}

/* Starts a check if one is due: with bus mastering on, on ranges not known to be shared. */
void dma_check(struct server *s)
{
	if (s->check.active || s->check_trust || s->quit || s->fd < 0 || !cfg_master_on(s))
		return;
	if (s->check.has_suspect) {
		const struct range *r = range_find(s, s->check.suspect);

		s->check.has_suspect = false;
		if (r && r->mem && !r->shared) {
			check_ask(s, s->check.suspect);
			return;
		}
	}
	for (size_t i = 0; i < s->nranges; i++) {
		struct range *r = &s->range[i];

		if (r->mem && !r->shared && (r->prot & VFU_DMA_READABLE) && check_range(s, r))
			return;
	}
}

static void refuse(struct server *s, const struct range *r)
{
	say(s, "guest memory at %#" PRIx64 " (%" PRIu64 " KiB) is not shared with this process: "
	    "what the guest writes there does not appear here. Start QEMU with its RAM in a "
	    "memory backend with share=on (-object memory-backend-memfd,id=m,size=SIZE,share=on "
	    "-machine memory-backend=m)", r->iova, r->size >> 10);
	s->exit_code = EXIT_NOT_SHARED;
	s->quit = true;
}

/* Is @msg, which the client sent for the page at s->check.addr, what the mapping has? */
static void check_answer(struct server *s, const uint64_t *msg)
{
	struct share_check *c = &s->check;
	struct range *r = range_find(s, c->addr);
	uint64_t now[CHECK_WORDS];
	bool differs = false, still = false;

	if (!r || !r->mem || guarded_copy(now, r->mem + (c->addr - r->iova), DMA_MAX)) {
		c->active = false;
		return;
	}
	for (unsigned int i = 0; i < CHECK_WORDS; i++)
		differs |= msg[i] != c->before[i] && msg[i] != now[i];
	if (!differs) {
		c->active = false;
		if (!is_zero(msg))
			prove(s, r);
		return;
	}
	if (c->round == 0) {
		memcpy(c->map_first, now, sizeof(now));
		memcpy(c->msg_first, msg, sizeof(c->msg_first));
		memset(c->still, 1, sizeof(c->still));
	}
	for (unsigned int i = 0; i < CHECK_WORDS; i++) {
		c->still[i] = c->still[i] && msg[i] != now[i] && msg[i] == c->msg_first[i] &&
			      now[i] == c->map_first[i] && c->before[i] == now[i];
		still |= c->still[i];
	}
	if (!still) {		/* the guest is writing here: look elsewhere */
		c->active = false;
		return;
	}
	if (++c->round < CHECK_ROUNDS) {
		check_ask(s, c->addr);
		return;
	}
	c->active = false;
	debug(s, "page at %#" PRIx64 " is not what the guest has there", c->addr);
	if (!r->bad_pages || r->bad_addr != c->addr)
		r->bad_pages++;
	r->bad_addr = c->addr;
	if (r->bad_pages >= CHECK_BAD_PAGES)
		refuse(s, r);
}

static void check_failed(struct server *s)
{
	s->check.active = false;
	/* With bus mastering off meanwhile, refusing is what a client should do. */
	if (s->check_answered || !cfg_master_on(s) || ++s->check_errors < CHECK_ERRORS)
		return;
	say(s, "warning: the client does not answer DMA_READ, so it cannot be checked that guest "
	    "memory is shared");
	s->check_trust = true;
	for (size_t i = 0; i < s->nranges; i++)
		s->range[i].shared = s->range[i].mem;
}

/* A page that DMA reads anyway is as good as a sample, and certain to have data. */
static void check_by_the_way(struct server *s, const struct dma_req *q)
{
	struct range *r = range_find(s, q->addr);
	uint8_t page[DMA_MAX];
	bool zero = true;

	if (!r || !r->mem || r->shared ||
	    guarded_copy(page, r->mem + (q->addr - r->iova), q->len))
		return;
	for (uint32_t i = 0; i < q->len; i++)
		zero &= !((uint8_t *)q->buf)[i];
	if (zero)
		return;
	if (!memcmp(page, q->buf, q->len)) {
		prove(s, r);
	} else {
		s->check.suspect = q->addr & ~(uint64_t)(DMA_MAX - 1);
		s->check.has_suspect = true;
		dma_check(s);
	}
}

/* ---- answers ---- */

void dma_reply(struct server *s, size_t len)
{
	const struct vfu_dma_rw *rw = (const void *)s->payload;
	struct dma_req **link = &s->dma_flight, *q;
	int err = 0;

	while ((q = *link) && q->id != s->hdr.id)
		link = &q->next;
	if (!q) {
		say(s, "reply to no message of ours (id %u)", s->hdr.id);
		conn_close(s, "unexpected reply");
		return;
	}
	*link = q->next;
	s->dma_in_flight--;

	if (s->hdr.cmd != (q->kind == MODEL_WRITE ? VFU_DMA_WRITE : VFU_DMA_READ)) {
		err = -EPROTO;
	} else if (s->hdr.flags & VFU_F_ERROR) {
		err = s->hdr.err && s->hdr.err < 4096 ? -(int)s->hdr.err : -EIO;
	} else if (q->kind != MODEL_WRITE &&
		   (len != sizeof(*rw) + q->len || rw->count != q->len)) {
		say(s, "DMA_READ of %u bytes answered with %zu: client with 32-bit counts "
		    "(QEMU before 11)?", q->len, len);
		err = -EPROTO;
	}
	debug(s, "  reply to id %u: %s", q->id, err ? strerrorname_np(-err) : "ok");

	if (q->kind == CHECK_READ) {
		if (err) {
			check_failed(s);
		} else {
			uint64_t msg[CHECK_WORDS];

			s->check_answered = true;
			memcpy(msg, rw->data, sizeof(msg));
			if (s->check.active)
				check_answer(s, msg);
		}
		dma_check(s);
	} else if (!q->orphan) {
		if (q->kind == MODEL_READ) {
			if (!err) {
				memcpy(q->buf, rw->data, q->len);
				s->stats.host_read += q->len;
				check_by_the_way(s, q);
			}
		} else if (!err) {
			s->stats.host_written += q->len;
		}
		csrec_model_host_done(s->model, q->tag, err == -EINPROGRESS ? -EIO : err);
	}
	free(q);
}

/* ---- the model's side ---- */

static int dma_access(struct server *s, bool write, uint32_t tag, uint64_t addr, void *buf,
		      size_t len, const char **path)
{
	struct range *r;
	struct dma_req *q;
	uint8_t *local = NULL;
	uint64_t off;
	int rc;

	if (!len || len > DMA_MAX || (addr & (DMA_MAX - 1)) + len > DMA_MAX)
		return -EINVAL;		/* the model's mistake */
	if (!cfg_master_on(s))
		return -EPERM;
	r = range_find(s, addr);
	if (r && !(r->prot & (write ? VFU_DMA_WRITABLE : VFU_DMA_READABLE)))
		return -EPERM;
	*path = "mapped";
	if (r && r->mem && r->shared) {
		local = r->mem + (addr - r->iova);	/* ranges are whole pages */
	} else if (!(r && r->mem) && cfg_own_dram(s, addr, len, &off)) {
		local = s->dram + off;
		*path = "own BAR";
	}
	if (local) {
		rc = write ? guarded_copy(local, buf, len) : guarded_copy(buf, local, len);
		if (!rc)
			*(write ? &s->stats.host_written : &s->stats.host_read) += len;
		return rc;
	}
	*path = "message";
	q = dma_new(s, write ? MODEL_WRITE : MODEL_READ, addr, (uint32_t)len, write ? buf : NULL);
	if (!q)
		return -ENOMEM;
	q->tag = tag;
	q->buf = write ? NULL : buf;
	return -EINPROGRESS;
}

static int traced_access(struct server *s, bool write, uint32_t tag, uint64_t addr, void *buf,
			 size_t len)
{
	const char *path = "refused";
	int rc = dma_access(s, write, tag, addr, buf, len, &path);

	if (s->trace_dma)
		say(s, "dma %s addr %#" PRIx64 " len %zu tag %u %s%s%s", write ? "write" : "read",
		    addr, len, tag, path, rc ? " " : "", rc ? strerrorname_np(-rc) : "");
	return rc;
}

static int host_read(void *opaque, uint32_t tag, uint64_t addr, void *buf, size_t len)
{
	return traced_access(opaque, false, tag, addr, buf, len);
}

static int host_write(void *opaque, uint32_t tag, uint64_t addr, const void *buf, size_t len)
{
	return traced_access(opaque, true, tag, addr, (void *)buf, len);
}

static void host_irq(void *opaque, unsigned int vector)
{
	irq_raise(opaque, vector);
}

const struct csrec_host_ops dma_host_ops = {
	.read = host_read,
	.write = host_write,
	.irq = host_irq,
};
