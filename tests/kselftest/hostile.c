// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Hostile processes, without privileges, next to a victim that works.
 *
 * Each hostile process opens the device, makes itself at home and then does what it likes:
 * ioctls with arguments from plausible to wild; commands and descriptors likewise, with keys
 * of its own, of the victim and of nobody; random bytes over its mapped rings, control page
 * and doorbell page; closing, unmapping, forking and dying in the middle of it all. Meanwhile
 * a victim in a context of its own has the device copy, fill, look up, multiply, and compares
 * every bit with what it has worked out itself. At the end the victim's memory, memory that
 * nobody gave to the device, and page cache must be as they were, the device must serve
 * others, and memory of the dead must come as zeros.
 *
 * On a kernel with KCOV, ioctls that reach code of the driver which none has reached before are
 * kept, and their likes are tried more often.
 *
 * CSREC_HOSTILE_COMMANDS	commands of theirs that the device has taken, at least (default 3000)
 * CSREC_HOSTILE_PROCS		hostile processes at a time (3)
 * CSREC_HOSTILE_SEED		(1)
 */
#include <grp.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <linux/kcov.h>

#include "csrec_test.h"

#define ARENA		(256 * KIB)	/* a hostile process's registered memory */
#define CANARY		(1 * MIB)
#define NOBODY		65534
#define STEPS		400		/* of one hostile life, at most */
#define LIFE		30		/* seconds, then an alarm ends it, wherever it is */

#define PCS		16384	/* entries of a KCOV buffer */
#define SEEN_LOG2	16
#define CORPUS		256
#define ARG_BYTES	256

/* An ioctl that got somewhere new. */
struct input {
	uint32_t nr;
	uint8_t raw[ARG_BYTES];
};

/* What they all see. */
struct shared {
	uint64_t target;
	uint64_t commands;	/* of hostile queues, taken by the device */
	uint64_t calls;		/* hostile ioctls */
	uint64_t garbage;	/* bytes written over mapped pages */
	uint64_t lives;
	uint64_t rounds;	/* of the victim */
	uint64_t mismatches;
	uint64_t errors;	/* victim's calls that failed */
	int last_error;
	uint32_t stop;
	uint32_t keys[4];	/* the victim's */
	uint32_t fence;
	uint64_t reached;	/* places in the driver, by KCOV */
	uint32_t inputs;
	uint8_t seen[1 << SEEN_LOG2];
	struct input corpus[CORPUS];
};

static struct shared *sh;

/* With nothing near it: what runs over an end of it, or registers more than it, gets nowhere. */
static void *apart(size_t len, int flags)
{
	uint8_t *p = mmap(NULL, len + 4 * MIB, PROT_NONE, flags | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED || mprotect(p + 2 * MIB, len, PROT_READ | PROT_WRITE))
		return NULL;
	return p + 2 * MIB;
}

static void add(uint64_t *n, uint64_t v)
{
	__atomic_add_fetch(n, v, __ATOMIC_RELAXED);
}

static uint64_t get(uint64_t *n)
{
	return __atomic_load_n(n, __ATOMIC_RELAXED);
}

static bool stopped(void)
{
	return __atomic_load_n(&sh->stop, __ATOMIC_RELAXED);
}

/* ---- chance ---- */

static uint64_t rnd_state;

static uint64_t rnd(void)
{
	rnd_state ^= rnd_state << 13;
	rnd_state ^= rnd_state >> 7;
	rnd_state ^= rnd_state << 17;
	return rnd_state * 0x2545f4914f6cdd1dULL;
}

static uint32_t below(uint32_t n)
{
	return (rnd() >> 32) % n;
}

static bool one_in(uint32_t n)
{
	return !below(n);
}

static void rnd_bytes(void *buf, size_t len)
{
	for (uint8_t *p = buf; len--; )
		*p++ = rnd() >> 56;
}

/* A few bytes turned into others. */
static void spoil(void *buf, size_t len)
{
	for (unsigned int n = 1 + below(3); n--; )
		((uint8_t *)buf)[below(len)] = rnd() >> 56;
}

/* A number that is often near where something ends. */
static uint64_t wild(void)
{
	switch (below(6)) {
	case 0:
		return 0;
	case 1:
		return ~0ULL - below(4096);
	case 2:
		return (1ULL << below(64)) + below(3) - 1;
	case 3:
		return below(65536);
	case 4:
		return (uint64_t)below(65536) * 4096;
	default:
		return rnd();
	}
}

/* ---- code coverage ---- */

static uint64_t *cover;

/* Of this process, by the kernel that runs it; needs root. */
static void cover_init(void)
{
	int fd = open("/sys/kernel/debug/kcov", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return;
	if (!ioctl(fd, KCOV_INIT_TRACE, PCS)) {
		cover = mmap(NULL, PCS * sizeof(*cover), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (cover == MAP_FAILED || ioctl(fd, KCOV_ENABLE, KCOV_TRACE_PC))
			cover = NULL;
	}
	/* stays enabled, and open by its mapping and this task */
}

static void cover_begin(void)
{
	if (cover)
		__atomic_store_n(&cover[0], 0, __ATOMIC_RELAXED);
}

/* Keeps what got somewhere new. */
static void cover_end(unsigned int nr, const void *raw)
{
	uint64_t n, i;
	bool fresh = false;

	if (!cover)
		return;
	n = __atomic_load_n(&cover[0], __ATOMIC_RELAXED);
	for (i = 1; i <= n && i < PCS; i++) {
		uint8_t *seen = &sh->seen[cover[i] * 0x9e3779b97f4a7c15ULL >> (64 - SEEN_LOG2)];

		if (!*seen) {
			*seen = 1;
			add(&sh->reached, 1);
			fresh = true;
		}
	}
	if (fresh) {
		uint32_t at = __atomic_fetch_add(&sh->inputs, 1, __ATOMIC_RELAXED) % CORPUS;

		sh->corpus[at].nr = nr;
		memcpy(sh->corpus[at].raw, raw, ARG_BYTES);
	}
}

/* ---- a hostile process ---- */

#define QUEUES	4
#define KEYS	12

struct hq {
	int id;
	uint32_t entries;
	uint8_t *ring;		/* mapped: all of it, and the doorbell page */
	uint64_t ring_len;
	uint64_t cq_off;
	uint64_t ctl_off;
	volatile uint64_t *db;
	uint64_t told;		/* commands, by SUBMIT */
};

static struct {
	int fd;
	int drive;
	uint8_t *arena;
	uint8_t *readonly;
	uint32_t arena_key;
	uint32_t keys[KEYS];
	uint32_t fences[4];
	struct hq q[QUEUES];
	int fds[6];		/* what an fd argument may be */
	uint8_t *dram;		/* mapped device memory */
	uint64_t dram_len;
} h;

/* Mostly its own: what is refused at the door gets no further. */
static uint32_t pick_key(void)
{
	uint32_t key = h.keys[below(KEYS)];

	switch (below(30)) {
	case 0:
	case 1:
		return sh->keys[below(4)];
	case 2:
		return sh->keys[below(4)] + (below(3) << 16);
	case 3:
		return rnd();
	case 4:
		return key + (1u << below(32));
	case 5:
		return below(16) | 1 << 16;	/* the driver's own */
	default:
		return key && one_in(2) ? key : h.arena_key;
	}
}

static uint32_t pick_fence(void)
{
	return one_in(4) ? sh->fence : one_in(4) ? (uint32_t)rnd() : h.fences[below(4)];
}

static uint64_t pick_off(void)
{
	return one_in(16) ? wild() : one_in(8) ? below(ARENA / 64) * 64 : below(64) * 64;
}

static uint64_t pick_len(void)
{
	return one_in(16) ? wild() : (1 + below(512)) * 4;
}

/* A descriptor for @opcode somewhere in the arena; its offset. */
static uint64_t gen_desc(uint8_t opcode, uint32_t *len)
{
	uint64_t at = below(ARENA / 512) * 512;
	union {
		struct csrec_emb_desc emb;
		struct csrec_tt_desc tt;
		struct csrec_interact_desc in;
		struct csrec_mlp_desc mlp;
	} d;

	memset(&d, 0, sizeof(d));
	switch (opcode) {
	case CSREC_OP_EMB:
		d.emb.dim = 1 + below(16);
		d.emb.nbags = 1 + below(8);
		d.emb.nids = below(32);
		d.emb.nrows = 1 + below(64);
		d.emb.row_stride = 64;
		d.emb.out_stride = 64;
		d.emb.table_key = pick_key();
		d.emb.ids_key = pick_key();
		d.emb.offsets_key = pick_key();
		d.emb.out_key = pick_key();
		d.emb.table_off = pick_off();
		d.emb.ids_off = pick_off();
		d.emb.offsets_off = pick_off();
		d.emb.out_off = pick_off();
		*len = sizeof(d.emb);
		/* often ids and offsets that pass */
		if (!one_in(4) && d.emb.offsets_off < ARENA / 2)
			memset(h.arena + d.emb.offsets_off, 0, 64);
		break;
	case CSREC_OP_TT:
		d.tt.nbags = 1 + below(4);
		d.tt.nids = below(16);
		for (int i = 0; i < 3; i++) {
			d.tt.p[i] = 1 + below(4);
			d.tt.q[i] = 1 + below(3);
			d.tt.core_key[i] = pick_key();
			d.tt.core_off[i] = below(64) * 64;
		}
		d.tt.r[0] = 1 + below(4);
		d.tt.r[1] = 1 + below(4);
		d.tt.out_stride = 128;
		d.tt.nrows = 1 + below(8);
		d.tt.ids_key = pick_key();
		d.tt.offsets_key = pick_key();
		d.tt.out_key = pick_key();
		d.tt.ids_off = pick_off();
		d.tt.offsets_off = pick_off();
		d.tt.out_off = pick_off();
		*len = sizeof(d.tt);
		break;
	case CSREC_OP_INTERACT:
		d.in.op = below(2);
		d.in.nvec = 1 + below(6);
		d.in.dim = 1 + below(16);
		d.in.batch = 1 + below(4);
		d.in.in_key = pick_key();
		d.in.out_key = pick_key();
		d.in.in_off = pick_off();
		d.in.out_off = pick_off();
		d.in.vec_stride = 64;
		d.in.in_stride = 512;
		d.in.out_stride = 512;
		*len = sizeof(d.in);
		break;
	default:
		d.mlp.batch = 1 + below(4);
		d.mlp.in_dim = 1 + below(32);
		d.mlp.out_dim = 1 + below(16);
		d.mlp.act = below(3);
		d.mlp.x_key = pick_key();
		d.mlp.w_key = pick_key();
		d.mlp.y_key = pick_key();
		d.mlp.x_off = pick_off();
		d.mlp.w_off = pick_off();
		d.mlp.y_off = pick_off();
		d.mlp.x_stride = 128;
		d.mlp.w_stride = 128;
		d.mlp.y_stride = 128;
		*len = sizeof(d.mlp);
		break;
	}
	if (one_in(4))
		spoil(&d, *len);
	memcpy(h.arena + at, &d, *len);
	return at;
}

static void gen_cmd(struct csrec_cmd *cmd)
{
	static const uint8_t opcodes[] = {
		CSREC_OP_NOP, CSREC_OP_COPY, CSREC_OP_COPY, CSREC_OP_FILL, CSREC_OP_FILL,
		CSREC_OP_FENCE, CSREC_OP_SIGNAL, CSREC_OP_EMB, CSREC_OP_TT, CSREC_OP_INTERACT,
		CSREC_OP_MLP,
	}, admin[] = {
		CSREC_OP_QUEUE_CREATE, CSREC_OP_QUEUE_DELETE, CSREC_OP_REGION_SET,
		CSREC_OP_REGION_INVAL, CSREC_OP_FENCE_SET, CSREC_OP_FENCE_INVAL,
		CSREC_OP_FENCE_SIGNAL,
	};
	uint8_t opcode = one_in(12) ? admin[below(sizeof(admin))] : opcodes[below(sizeof(opcodes))];
	uint32_t len;
	uint64_t at;

	if (one_in(16)) {
		rnd_bytes(cmd, sizeof(*cmd));
		return;
	}
	/* one that blocks its queue, seldom */
	if (one_in(64))
		opcode = CSREC_OP_WAIT;
	switch (opcode) {
	case CSREC_OP_COPY:
		*cmd = cmd_copy(pick_key(), pick_off(), pick_key(), pick_off(), pick_len());
		break;
	case CSREC_OP_FILL:
		*cmd = cmd_fill(pick_key(), pick_off(), pick_len(), 0xbadbadba);
		break;
	case CSREC_OP_SIGNAL:
	case CSREC_OP_WAIT:
	case CSREC_OP_FENCE_SET:
	case CSREC_OP_FENCE_INVAL:
	case CSREC_OP_FENCE_SIGNAL:
		*cmd = cmd_fence(opcode, pick_fence(), below(4));
		break;
	case CSREC_OP_EMB:
	case CSREC_OP_TT:
	case CSREC_OP_INTERACT:
	case CSREC_OP_MLP:
		at = gen_desc(opcode, &len);
		*cmd = cmd_desc(opcode, h.arena_key, at, len);
		break;
	case CSREC_OP_QUEUE_CREATE:
	case CSREC_OP_QUEUE_DELETE:
	case CSREC_OP_REGION_SET:
	case CSREC_OP_REGION_INVAL:
		*cmd = cmd_make(opcode, 0);
		rnd_bytes(cmd->body, 24);
		break;
	default:
		*cmd = cmd_make(opcode, 0);
		break;
	}
	cmd->cid = rnd();
	if (one_in(4))
		cmd->flags = below(4);
	if (one_in(8))
		spoil(cmd, sizeof(*cmd));
}

static void *map(uint64_t off, uint64_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, h.fd, off);

	return p == MAP_FAILED ? NULL : p;
}

/* Counts what the device says it has taken of a queue. */
static void count(struct hq *q)
{
	uint64_t n = q->told;

	if (q->db)
		n = (uint32_t)(q->db[CSREC_DB_STATE / 8] >> CSREC_DBS_SQ_TAIL_SHIFT);
	/* gone: all ones, or a page that nobody serves */
	if (n != UINT32_MAX)
		add(&sh->commands, n);
	q->told = 0;
}

static void hq_destroy(struct hq *q)
{
	if (q->id <= 0)
		return;
	count(q);
	q_destroy(h.fd, q->id);
	if (q->ring && !one_in(4))
		munmap(q->ring, q->ring_len);
	if (q->db && !one_in(4))
		munmap((void *)q->db, 4096);
	memset(q, 0, sizeof(*q));
}

static void hq_create(struct hq *q)
{
	struct csrec_queue_create arg = {
		.size = sizeof(arg), .entries = 2u << below(7),
		.flags = one_in(4) ? 0 : CSREC_QUEUE_F_MAP,
	};

	hq_destroy(q);
	if (one_in(3))
		arg.flags |= CSREC_QUEUE_F_NOIRQ;
	if (one_in(4)) {
		arg.irq_count = below(20);
		arg.irq_cycles = wild();
	}
	if (xioctl(h.fd, CSREC_IOC_QUEUE_CREATE, &arg)) {
		arg.flags = 0;
		arg.irq_count = 0;
		arg.irq_cycles = 0;
		if (xioctl(h.fd, CSREC_IOC_QUEUE_CREATE, &arg))
			return;
	}
	q->id = arg.queue_id;
	q->entries = arg.entries;
	if (!arg.ring_len)
		return;
	q->ring_len = arg.ring_len;
	q->cq_off = arg.cq_off;
	q->ctl_off = arg.ctl_off;
	q->ring = map(arg.ring_offset, arg.ring_len);
	q->db = map(arg.db_offset, arg.db_len);
}

/* Commands as the rings' rules have it, and all completions taken. */
static void ring_batch(struct hq *q)
{
	struct csrec_cmd *sq = (struct csrec_cmd *)q->ring;
	uint64_t state = q->db[CSREC_DB_STATE / 8];
	uint32_t tail = state >> CSREC_DBS_SQ_TAIL_SHIFT;
	uint32_t posted = state >> CSREC_DBS_CQ_TAIL_SHIFT;
	uint32_t room = q->entries - (tail - posted);
	uint32_t n = room > q->entries ? 0 : room;

	/* its oldest command blocks: begin anew */
	if (!n || one_in(200)) {
		hq_create(q);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		gen_cmd(&sq[(tail + i) & (q->entries - 1)]);
	if (one_in(8))
		spoil(sq, q->entries * sizeof(*sq));
	if (!one_in(4))
		*(volatile uint32_t *)(q->ring + q->ctl_off) = posted;
	q->db[0] = (uint64_t)posted << CSREC_DB_CQ_HEAD_SHIFT | (uint32_t)(tail + n);
}

/* As the rules do not have it. */
static void ring_garbage(struct hq *q)
{
	volatile uint8_t *db = (volatile uint8_t *)q->db;
	uint32_t at, len;

	switch (below(6)) {
	case 0:		/* over the whole ring memory, wherever */
		at = below(q->ring_len);
		len = 1 + below(q->ring_len - at);
		rnd_bytes(q->ring + at, len);
		add(&sh->garbage, len);
		break;
	case 1:		/* completions, control page */
		at = one_in(2) ? q->cq_off : q->ctl_off;
		rnd_bytes(q->ring + at, 64);
		add(&sh->garbage, 64);
		break;
	case 2:		/* any doorbell */
		q->db[0] = one_in(2) ? rnd() : wild() << 32 | (uint32_t)wild();
		add(&sh->garbage, 8);
		break;
	case 3:		/* any width, anywhere in the page */
		at = below(4096);
		db[at] = rnd();
		*(volatile uint16_t *)(db + (at & 4094)) = rnd();
		*(volatile uint32_t *)(db + (at & 4092)) = rnd();
		add(&sh->garbage, 7);
		break;
	case 4:
		for (at = below(512), len = below(16); len-- && at < 512; at++)
			q->db[at] = rnd();
		add(&sh->garbage, 128);
		break;
	default:	/* it can be read, too */
		at = below(4088);
		(void)db[at];
		(void)*(volatile uint64_t *)(db + (at & ~7u));
		break;
	}
}

static void *pick_ptr(void)
{
	switch (below(8)) {
	case 0:
		return NULL;
	case 1:
		return (void *)0xffff888000000000UL;
	case 2:
		return (void *)(wild() << 12);
	case 3:
		return h.readonly;
	case 4:
		return h.arena + ARENA - below(256);
	default:
		return h.arena + below(ARENA - 8192);
	}
}

static int pick_fd(void)
{
	return one_in(8) ? (int)wild() : h.fds[below(6)];
}

static uint32_t pick_queue(void)
{
	return one_in(4) ? below(20) : (uint32_t)h.q[below(QUEUES)].id;
}

static void keep_key(uint32_t key)
{
	h.keys[below(KEYS)] = key;
}

/* One ioctl, any. */
static void any_ioctl(void)
{
	union {
		uint8_t raw[ARG_BYTES];
		uint32_t size;
		struct csrec_info info;
		struct csrec_queue_create qc;
		struct csrec_queue_destroy qd;
		struct csrec_queue_reset qr;
		struct csrec_queue_eventfd qe;
		struct csrec_mem_register mr;
		struct csrec_mem_alloc ma;
		struct csrec_mem_free mf;
		struct csrec_mem_export me;
		struct csrec_mem_import mi;
		struct csrec_fence_create fc;
		struct csrec_fence_op fo;
		struct csrec_submit su;
		struct csrec_wait wa;
		struct csrec_p2p_read pr;
		struct csrec_stats st;
	} a;
	struct csrec_p2p_seg segs[4];
	struct csrec_cmd cmds[32];
	unsigned int i, nr = below(0x12);
	int ret;

	memset(&a, 0, sizeof(a));
	switch (CSREC_IOC_GET_INFO + nr) {
	case CSREC_IOC_GET_INFO:
		a.size = sizeof(a.info);
		break;
	case CSREC_IOC_QUEUE_CREATE:
		/* of the few queues not too many at a time */
		hq_create(&h.q[below(QUEUES)]);
		return;
	case CSREC_IOC_QUEUE_DESTROY:
		if (one_in(3)) {
			hq_destroy(&h.q[below(QUEUES)]);
			return;
		}
		a.size = sizeof(a.qd);
		a.qd.queue_id = below(20);
		break;
	case CSREC_IOC_MEM_REGISTER:
		a.size = sizeof(a.mr);
		a.mr.addr = (uintptr_t)pick_ptr();
		a.mr.len = one_in(4) ? wild() : below(65536);
		a.mr.rights = one_in(8) ? wild() : 1 + below(3);
		break;
	case CSREC_IOC_MEM_ALLOC:
		a.size = one_in(2) ? sizeof(a.ma) : offsetof(struct csrec_mem_alloc, align);
		a.ma.len = one_in(4) ? wild() : below(256 * KIB);
		a.ma.kind = one_in(8) ? wild() : 2 + below(2);
		if (one_in(4))
			a.ma.align = wild();
		break;
	case CSREC_IOC_MEM_FREE:
		a.size = sizeof(a.mf);
		a.mf.key = pick_key();
		/* the arena is needed */
		if (a.mf.key == h.arena_key)
			return;
		break;
	case CSREC_IOC_FENCE_CREATE:
		a.size = sizeof(a.fc);
		a.fc.value = wild();
		break;
	case CSREC_IOC_FENCE_DESTROY:
	case CSREC_IOC_FENCE_SIGNAL:
		a.size = sizeof(a.fo);
		a.fo.key = pick_fence();
		a.fo.value = wild();
		break;
	case CSREC_IOC_SUBMIT:
		a.size = sizeof(a.su);
		i = below(QUEUES);
		a.su.queue_id = h.q[i].id;
		a.su.count = one_in(8) ? wild() : 1 + below(32);
		a.su.cmds = (uintptr_t)cmds;
		for (unsigned int c = 0; c < 32; c++)
			gen_cmd(&cmds[c]);
		if (one_in(8))
			a.su.cmds = (uintptr_t)pick_ptr();
		/* more than there are: what follows on the stack are commands as well */
		if (a.su.count > 32)
			a.su.cmds = (uintptr_t)h.arena;
		cover_begin();
		if (!xioctl(h.fd, CSREC_IOC_SUBMIT, &a) && a.su.submitted <= 65536)
			h.q[i].told += a.su.submitted;
		cover_end(nr, &a);
		add(&sh->calls, 1);
		return;
	case CSREC_IOC_WAIT:
		a.size = sizeof(a.wa);
		a.wa.queue_id = pick_queue();
		a.wa.max = one_in(8) ? wild() : below(64);
		a.wa.min = one_in(2) ? 0 : below(a.wa.max + 1);
		a.wa.timeout_ns = one_in(32) ? (int64_t)wild() : (int64_t)below(2 * MS);
		a.wa.cqes = (uintptr_t)(one_in(4) ? pick_ptr() : h.arena);
		if (one_in(8))
			a.wa.flags = below(2);
		break;
	case CSREC_IOC_P2P_READ:
	case CSREC_IOC_P2P_WRITE:
		a.size = sizeof(a.pr);
		a.pr.flags = below(4);
		a.pr.fd = one_in(4) ? pick_fd() : h.drive;
		a.pr.count = one_in(8) ? wild() : 1 + below(4);
		a.pr.segs = (uintptr_t)(one_in(8) ? pick_ptr() : segs);
		a.pr.fence_key = one_in(2) ? 0 : pick_fence();
		a.pr.fence_value = below(8);
		for (i = 0; i < 4; i++) {
			segs[i].file_off = one_in(8) ? wild() : below(1024) * 4096;
			segs[i].len = one_in(8) ? wild() : (1 + below(4)) * 4096;
			segs[i].dev_off = one_in(8) ? wild() : below(16) * 4096;
			segs[i].key = pick_key();
			segs[i].rsvd = one_in(32);
		}
		break;
	case CSREC_IOC_GET_STATS:
		a.size = sizeof(a.st);
		break;
	case CSREC_IOC_QUEUE_RESET:
		a.size = sizeof(a.qr);
		i = below(QUEUES);
		if (h.q[i].id > 0)
			count(&h.q[i]);
		a.qr.queue_id = h.q[i].id;
		break;
	case CSREC_IOC_QUEUE_EVENTFD:
		a.size = sizeof(a.qe);
		a.qe.queue_id = pick_queue();
		a.qe.fd = one_in(2) ? -1 : pick_fd();
		break;
	case CSREC_IOC_MEM_EXPORT:
		a.size = sizeof(a.me);
		a.me.key = pick_key();
		a.me.open_flags = one_in(4) ? wild() : O_CLOEXEC | O_RDWR;
		break;
	case CSREC_IOC_MEM_IMPORT:
		a.size = sizeof(a.mi);
		a.mi.fd = pick_fd();
		a.mi.rights = 1 + below(3);
		break;
	}
	if (one_in(6))
		spoil(a.raw, sizeof(a.ma));
	if (one_in(16))
		a.size = wild();
	add(&sh->calls, 1);
	if (one_in(32)) {
		ioctl(h.fd, one_in(2) ? rnd() : CSREC_IOC_GET_INFO + nr, pick_ptr());
		return;
	}
	/* one that has got somewhere, changed a little */
	if (cover && sh->inputs && one_in(3)) {
		const struct input *in = &sh->corpus[below(sh->inputs < CORPUS ? sh->inputs : CORPUS)];

		/* queues of their own accord are only known to hq_create() */
		if (in->nr != _IOC_NR(CSREC_IOC_QUEUE_CREATE)) {
			nr = in->nr;
			memcpy(a.raw, in->raw, ARG_BYTES);
			spoil(a.raw, 64);
		}
	}
	cover_begin();
	ret = ioctl(h.fd, CSREC_IOC_GET_INFO + nr, &a);
	cover_end(nr, &a);
	if (ret)
		return;
	switch (CSREC_IOC_GET_INFO + nr) {
	case CSREC_IOC_MEM_REGISTER:
		keep_key(a.mr.key);
		break;
	case CSREC_IOC_MEM_ALLOC:
		keep_key(a.ma.key);
		if (a.size == sizeof(a.ma) && a.ma.mmap_offset && a.ma.len <= MIB) {
			if (h.dram && one_in(2))
				munmap(h.dram, h.dram_len);
			h.dram = map(a.ma.mmap_offset, a.ma.len);
			h.dram_len = a.ma.len;
		}
		break;
	case CSREC_IOC_MEM_EXPORT:
		if (h.fds[5] > 2)
			close(h.fds[5]);
		h.fds[5] = a.me.fd;
		break;
	case CSREC_IOC_MEM_IMPORT:
		keep_key(a.mi.key);
		break;
	case CSREC_IOC_FENCE_CREATE:
		h.fences[below(4)] = a.fc.key;
		break;
	}
}

/* What one can do to mappings and descriptors. */
static void any_other(void)
{
	struct hq *q = &h.q[below(QUEUES)];
	uint8_t byte;
	pid_t pid;
	void *p;

	switch (below(8)) {
	case 0:
		p = mmap(NULL, 4096 * (1 + below(4)), 1 + below(7),
			 one_in(4) ? MAP_PRIVATE : MAP_SHARED, h.fd, wild() & ~4095ULL);
		if (p != MAP_FAILED)
			byte = *(volatile uint8_t *)p;
		break;
	case 1:
		if (!q->ring)
			break;
		if (one_in(2))
			mprotect(q->ring, 4096, PROT_READ | (one_in(2) ? PROT_EXEC : PROT_WRITE));
		else
			munmap(q->ring + 4096 * below(q->ring_len / 4096), 4096);
		mprotect(q->ring, q->ring_len, PROT_READ | PROT_WRITE);
		break;
	case 2:
		if (q->ring)
			p = mremap(q->ring, q->ring_len, q->ring_len * 2, MREMAP_MAYMOVE);
		break;
	case 3:
		if (q->db)
			madvise((void *)q->db, 4096, one_in(2) ? MADV_DONTNEED : MADV_DOFORK);
		break;
	case 4:		/* a child does a little with what it inherits */
		if (!one_in(8))
			break;
		pid = fork();
		if (!pid) {
			alarm(2);
			any_ioctl();
			_exit(0);
		}
		if (pid > 0)
			waitpid(pid, NULL, 0);
		break;
	case 5: {
		struct pollfd pfd = { .fd = h.fd, .events = rnd() };

		poll(&pfd, 1, 0);
		byte = read(h.fd, h.arena, 64);
		byte = write(h.fd, h.arena, 64);
		lseek(h.fd, wild(), SEEK_SET);
		break;
	}
	case 6:		/* device memory: by the CPU, and by the drive */
		if (!h.dram || !h.dram_len)
			break;
		h.dram[below(h.dram_len)] = rnd();
		if (one_in(4) && pread(h.drive, h.dram, 4096, below(1024) * 4096) < 0)
			break;
		break;
	default:	/* what commands may name changes under them */
		rnd_bytes(h.arena + below(ARENA - 64), 64);
		break;
	}
	(void)byte;
}

static void hostile_life(uint64_t seed, int drive)
{
	static const struct rlimit lock = { 8 * MIB, 8 * MIB }, core = { 0, 0 };
	unsigned int steps;

	rnd_state = seed * 0x9e3779b97f4a7c15ULL + 1;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_MEMLOCK, &lock);
	setrlimit(RLIMIT_CORE, &core);
	cover_init();
	if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
	    setresuid(NOBODY, NOBODY, NOBODY))
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(LIFE);

	h.drive = drive;
	h.fd = dev_open();
	if (h.fd < 0)
		_exit(2);
	h.arena = apart(ARENA, MAP_PRIVATE);
	h.readonly = apart(8192, MAP_PRIVATE);
	if (!h.arena || !h.readonly)
		_exit(2);
	mprotect(h.readonly, 8192, PROT_READ);
	rnd_bytes(h.arena, ARENA);
	if (mem_register(h.fd, h.arena, ARENA, CSREC_RIGHT_READ | CSREC_RIGHT_WRITE, &h.arena_key))
		_exit(3);
	for (unsigned int i = 0; i < KEYS / 2; i++) {
		uint32_t key;

		if (!mem_alloc(h.fd, i % 3 ? CSREC_REGION_DRAM : CSREC_REGION_ONCHIP,
			       i % 3 ? 64 * KIB : 4096, &key)) {
			h.keys[i] = key;
		}
	}
	for (unsigned int i = 0; i < 4; i++)
		fence_create(h.fd, 0, &h.fences[i]);
	for (unsigned int i = 0; i < QUEUES / 2; i++)
		hq_create(&h.q[i]);
	h.fds[0] = h.fd;
	h.fds[1] = drive;
	h.fds[2] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	h.fds[3] = dev_open();
	h.fds[4] = -1;
	h.fds[5] = -1;

	for (steps = below(STEPS); steps && !stopped(); steps--) {
		struct hq *q = &h.q[below(QUEUES)];
		unsigned int what = below(8);

		if (q->ring && q->db && what < 4)
			ring_batch(q);
		else if (q->ring && q->db && what == 4)
			ring_garbage(q);
		else if (what < 7)
			any_ioctl();
		else
			any_other();
	}
	for (unsigned int i = 0; i < QUEUES; i++)
		if (h.q[i].id > 0)
			count(&h.q[i]);
	add(&sh->lives, 1);
	switch (below(4)) {
	case 0:
		kill(getpid(), SIGKILL);
		break;
	case 1:
		close(h.fd);
		break;
	case 2:
		execl("/bin/true", "true", NULL);
		break;
	}
	_exit(0);
}

/* Sees that there always is one. */
static void hostile_parent(uint64_t seed, int drive)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!stopped()) {
		pid_t pid = fork();

		if (!pid)
			hostile_life(seed, drive);
		if (pid > 0)
			waitpid(pid, NULL, 0);
		seed += 1000;
	}
	_exit(0);
}

/* ---- the victim ---- */

#define V_LEN		(64 * KIB)
#define V_DIM		8
#define V_ROWS		32

struct victim {
	int fd;
	int q;
	uint8_t *host;
	uint32_t host_key;
	uint32_t dram;
	uint32_t onchip;
	uint32_t fence;
};

static int victim_init(struct victim *v)
{
	v->fd = dev_open();
	if (v->fd < 0)
		return v->fd;
	v->q = q_create(v->fd, 16);
	v->host = pages(V_LEN);
	if (v->q < 0 || !v->host ||
	    mem_register(v->fd, v->host, V_LEN, CSREC_RIGHT_READ | CSREC_RIGHT_WRITE, &v->host_key) ||
	    mem_alloc(v->fd, CSREC_REGION_DRAM, V_LEN, &v->dram) ||
	    mem_alloc(v->fd, CSREC_REGION_ONCHIP, 4096, &v->onchip) ||
	    fence_create(v->fd, 0, &v->fence))
		return -EIO;
	sh->keys[0] = v->host_key;
	sh->keys[1] = v->dram;
	sh->keys[2] = v->onchip;
	sh->keys[3] = v->host_key;
	sh->fence = v->fence;
	return 0;
}

static void v_run(struct victim *v, const struct csrec_cmd *cmd)
{
	struct csrec_cqe cqe;
	int ret = run_cmd(v->fd, v->q, cmd, &cqe);

	if (ret) {
		add(&sh->errors, 1);
		sh->last_error = ret;
	}
}

static void v_same(const void *want, const void *got, size_t len)
{
	if (memcmp(want, got, len))
		add(&sh->mismatches, 1);
}

/* Multiples of 1/4 of small size: sums are exact, whatever the order. */
static float v_float(void)
{
	return ((int)below(256) - 128) / 4.0f;
}

static float v_dot(const float *a, const float *b, unsigned int n)
{
	float s = 0;

	while (n--)
		s += *a++ * *b++;
	return s;
}

/* Copies, fills, looks up, multiplies; half of its memory stays what it was. */
static void victim_round(struct victim *v, uint32_t round)
{
	enum { SRC = 0, DST = 8192, TABLE = 16384, IDS = 20480, OFFS = 20992, DESC = 21504,
	       OUT = 24576 };
	float *table = (float *)(v->host + TABLE), *out = (float *)(v->host + OUT);
	struct csrec_emb_desc *emb = (void *)(v->host + DESC);
	struct csrec_mlp_desc *mlp = (void *)(v->host + DESC + 256);
	uint32_t *ids = (uint32_t *)(v->host + IDS), *offs = (uint32_t *)(v->host + OFFS);
	struct csrec_cmd cmd;
	float want[4 * V_DIM];
	uint32_t words[512];

	/* there and back, over DRAM and on-chip memory */
	pattern_fill(v->host + SRC, 4096, round);
	memset(v->host + DST, 0, 4096);
	cmd = cmd_copy(v->host_key, SRC, v->dram, 8192, 4096);
	v_run(v, &cmd);
	cmd = cmd_copy(v->dram, 8192, v->onchip, 0, 4096);
	v_run(v, &cmd);
	cmd = cmd_copy(v->onchip, 0, v->host_key, DST, 4096);
	v_run(v, &cmd);
	v_same(v->host + SRC, v->host + DST, 4096);

	cmd = cmd_fill(v->host_key, DST, sizeof(words), round);
	v_run(v, &cmd);
	for (unsigned int i = 0; i < 512; i++)
		words[i] = htole32(round);
	v_same(words, v->host + DST, sizeof(words));

	/* four bags of four */
	for (unsigned int i = 0; i < V_ROWS * V_DIM; i++)
		table[i] = v_float();
	for (unsigned int i = 0; i < 16; i++)
		ids[i] = below(V_ROWS);
	for (unsigned int i = 0; i < 5; i++)
		offs[i] = 4 * i;
	memset(emb, 0, sizeof(*emb));
	emb->dim = htole16(V_DIM);
	emb->nbags = htole32(4);
	emb->nids = htole32(16);
	emb->nrows = htole64(V_ROWS);
	emb->row_stride = htole32(4 * V_DIM);
	emb->out_stride = htole32(4 * V_DIM);
	emb->table_key = htole32(v->host_key);
	emb->table_off = htole64(TABLE);
	emb->ids_key = htole32(v->host_key);
	emb->ids_off = htole64(IDS);
	emb->offsets_key = htole32(v->host_key);
	emb->offsets_off = htole64(OFFS);
	emb->out_key = htole32(v->host_key);
	emb->out_off = htole64(OUT);
	memset(out, 0xee, sizeof(want));
	cmd = cmd_desc(CSREC_OP_EMB, v->host_key, DESC, sizeof(*emb));
	v_run(v, &cmd);
	for (unsigned int b = 0; b < 4; b++)
		for (unsigned int e = 0; e < V_DIM; e++) {
			want[b * V_DIM + e] = 0;
			for (unsigned int j = 0; j < 4; j++)
				want[b * V_DIM + e] += table[ids[4 * b + j] * V_DIM + e];
		}
	v_same(want, out, sizeof(want));

	/* one layer: the table's first rows by its last */
	memset(mlp, 0, sizeof(*mlp));
	mlp->batch = htole32(4);
	mlp->in_dim = htole16(V_DIM);
	mlp->out_dim = htole16(V_DIM);
	mlp->x_key = htole32(v->host_key);
	mlp->w_key = htole32(v->host_key);
	mlp->y_key = htole32(v->host_key);
	mlp->x_off = htole64(TABLE);
	mlp->w_off = htole64(TABLE + 16 * 4 * V_DIM);
	mlp->y_off = htole64(OUT);
	mlp->x_stride = htole32(4 * V_DIM);
	mlp->w_stride = htole32(4 * V_DIM);
	mlp->y_stride = htole32(4 * V_DIM);
	memset(out, 0xee, sizeof(want));
	cmd = cmd_desc(CSREC_OP_MLP, v->host_key, DESC + 256, sizeof(*mlp));
	v_run(v, &cmd);
	for (unsigned int b = 0; b < 4; b++)
		for (unsigned int o = 0; o < V_DIM; o++)
			want[b * V_DIM + o] = v_dot(&table[b * V_DIM], &table[(16 + o) * V_DIM], V_DIM);
	v_same(want, out, sizeof(want));
	add(&sh->rounds, 1);
}

/* What of its memory no round touches. */
#define V_CANARY	(V_LEN / 2)

static void victim_canaries(struct victim *v, bool check)
{
	static uint8_t want[V_LEN / 2];
	struct csrec_cmd cmd;

	pattern_fill(want, sizeof(want), 77);
	if (!check) {
		memcpy(v->host + V_CANARY, want, sizeof(want));
		cmd = cmd_copy(v->host_key, V_CANARY, v->dram, V_CANARY, sizeof(want));
		v_run(v, &cmd);
		return;
	}
	v_same(want, v->host + V_CANARY, sizeof(want));
	memset(v->host + V_CANARY, 0, sizeof(want));
	cmd = cmd_copy(v->dram, V_CANARY, v->host_key, V_CANARY, sizeof(want));
	v_run(v, &cmd);
	v_same(want, v->host + V_CANARY, sizeof(want));
}

static void victim_parent(struct victim *v)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	rnd_state = 4711;
	victim_canaries(v, false);
	for (uint32_t round = 1; !stopped(); round++)
		victim_round(v, round);
	victim_round(v, 0);
	victim_canaries(v, true);
	_exit(0);
}

/* ---- the test ---- */

static unsigned long env_number(const char *name, unsigned long otherwise)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 0) : otherwise;
}

static bool is_filled(const uint8_t *p, size_t len, uint8_t byte)
{
	return p[0] == byte && !memcmp(p, p + 1, len - 1);
}

/* Device memory that now can be had is zero. Bytes seen, or -errno. */
static int64_t zeros(uint32_t kind, uint64_t chunk, unsigned int most)
{
	uint8_t *host = pages(chunk);
	uint32_t key, host_key;
	int fd = dev_open(), q;
	struct csrec_cqe cqe;
	struct csrec_cmd cmd;
	int64_t sum = 0;

	if (fd < 0)
		return fd;
	q = q_create(fd, 4);
	if (q < 0 || mem_register(fd, host, chunk, CSREC_RIGHT_WRITE, &host_key))
		return -EIO;
	while (most-- && !mem_alloc(fd, kind, chunk, &key)) {
		memset(host, 0xff, chunk);
		cmd = cmd_copy(key, 0, host_key, 0, chunk);
		if (run_cmd(fd, q, &cmd, &cqe))
			return -EIO;
		if (!is_filled(host, chunk, 0))
			return -EBADMSG;
		sum += chunk;
	}
	close(fd);
	munmap(host, chunk);
	return sum;
}

/* Every queue of the device, each working, all at once; the victim has gone. */
static int all_queues(void)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	struct csrec_cqe cqe;
	struct csrec_info info;
	int fds[64], n = 0, qs = 0, ret = 0;

	while (n < 64 && !ret) {
		int q;

		fds[n] = dev_open();
		if (fds[n] < 0)
			return -ENODEV;
		n++;
		/* a process may have so many, a context any of them */
		while ((q = q_create(fds[n - 1], 2)) > 0) {
			qs++;
			if (run_cmd(fds[n - 1], q, &nop, &cqe))
				ret = -EIO;
		}
		if (q == -ENOSPC || q == -EDQUOT)
			break;
	}
	if (get_info(fds[0], &info))
		ret = -EIO;
	if (!ret && (unsigned int)qs < ((info.cap_queue >> CSREC_CAPQ_IOQ_SHIFT) & 0xff) &&
	    (unsigned int)qs < info.quota_queues)
		ret = -ENOSPC;
	while (n--)
		close(fds[n]);
	return ret;
}

FIXTURE(hostile) {
};

FIXTURE_SETUP(hostile)
{
}

FIXTURE_TEARDOWN(hostile)
{
}

TEST_F_TIMEOUT(hostile, processes, 20000)
{
	unsigned int procs = env_number("CSREC_HOSTILE_PROCS", 3);
	unsigned long seed = env_number("CSREC_HOSTILE_SEED", 1);
	uint64_t calls = 0, commands = 0, free_before, still;
	struct csrec_stats st, st2;
	pid_t victim, parents[16];
	struct victim v = {};
	uint8_t *canary, *cache;
	unsigned int idle = 0;
	int observer, drive, memfd, status;
	FILE *f;

	ASSERT_GE(16, procs);
	sh = apart(sizeof(*sh), MAP_SHARED);
	ASSERT_NE(NULL, sh);
	sh->target = env_number("CSREC_HOSTILE_COMMANDS", 3000);
	drive = open(DRIVE, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, drive);
	/* memory of this process and page cache, which nobody gave to the device */
	canary = pages(CANARY);
	memset(canary, 0xa5, CANARY);
	memfd = memfd_create("canary", MFD_CLOEXEC);
	ASSERT_EQ(0, ftruncate(memfd, CANARY));
	cache = mmap(NULL, CANARY, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	ASSERT_NE(MAP_FAILED, (void *)cache);
	memset(cache, 0x5a, CANARY);
	/* what the hostile have mapped they may write to */
	ASSERT_EQ(0, madvise(cache, CANARY, MADV_DONTFORK));
	ASSERT_EQ(0, madvise(canary, CANARY, MADV_DONTFORK));
	ASSERT_EQ(0, chmod(DEV, 0666));
	observer = dev_open();
	ASSERT_LE(0, observer);
	free_before = dram_free(observer);
	ASSERT_EQ(0, get_stats(observer, &st));

	fflush(NULL);
	victim = fork();
	if (!victim) {
		if (victim_init(&v))
			_exit(1);
		victim_parent(&v);
	}
	/* it has all it needs before others take it */
	while (!get(&sh->rounds) && !waitpid(victim, &status, WNOHANG))
		usleep(1000);
	ASSERT_NE(0, get(&sh->rounds));
	for (unsigned int i = 0; i < procs; i++) {
		parents[i] = fork();
		if (!parents[i])
			hostile_parent(seed + i, drive);
	}
	/* as long as anything of it moves */
	while (commands < sh->target && idle < 600) {
		sleep(1);
		still = calls == get(&sh->calls) && commands == get(&sh->commands);
		idle = still ? idle + 1 : 0;
		calls = get(&sh->calls);
		commands = get(&sh->commands);
	}
	__atomic_store_n(&sh->stop, 1, __ATOMIC_RELAXED);
	for (unsigned int i = 0; i < procs; i++)
		waitpid(parents[i], &status, 0);
	ASSERT_EQ(victim, waitpid(victim, &status, 0));
	EXPECT_EQ(0, status);
	commands = get(&sh->commands);

	ASSERT_EQ(0, get_stats(observer, &st2));
	TH_LOG("%llu hostile commands, %llu ioctls, %llu bytes of garbage, %llu lives; %llu rounds of the victim",
	       (unsigned long long)commands, (unsigned long long)get(&sh->calls),
	       (unsigned long long)get(&sh->garbage), (unsigned long long)get(&sh->lives),
	       (unsigned long long)get(&sh->rounds));
	TH_LOG("device: %llu completions, %llu errors, %llu doorbells, %llu refused",
	       (unsigned long long)(counter(&st2, CSREC_REG_CNT_COMMANDS) - counter(&st, CSREC_REG_CNT_COMMANDS)),
	       (unsigned long long)(counter(&st2, CSREC_REG_CNT_ERRORS) - counter(&st, CSREC_REG_CNT_ERRORS)),
	       (unsigned long long)(counter(&st2, CSREC_REG_CNT_DOORBELLS) - counter(&st, CSREC_REG_CNT_DOORBELLS)),
	       (unsigned long long)(counter(&st2, CSREC_REG_CNT_BAD_DOORBELL) - counter(&st, CSREC_REG_CNT_BAD_DOORBELL)));
	if (sh->reached)
		TH_LOG("KCOV: %llu places in the driver reached, %u ioctls kept",
		       (unsigned long long)sh->reached, sh->inputs);
	f = fopen("/out/hostile.json", "w");
	if (f) {
		fprintf(f, "{\"hostile_commands\":%llu,\"victim_mismatches\":%llu}\n",
			(unsigned long long)commands, (unsigned long long)get(&sh->mismatches));
		fclose(f);
	}

	EXPECT_LE(sh->target, commands);
	EXPECT_EQ(0, get(&sh->mismatches));
	EXPECT_EQ(0, get(&sh->errors)) TH_LOG("last: %d", sh->last_error);
	EXPECT_TRUE(is_filled(canary, CANARY, 0xa5));
	EXPECT_TRUE(is_filled(cache, CANARY, 0x5a));

	/* nothing is left of them */
	EXPECT_EQ(free_before, dram_free(observer));
	EXPECT_EQ(st.pinned_bytes, st2.pinned_bytes);
	EXPECT_EQ(0, all_queues());
	/* where they were, or all of it: that takes the RTL minutes */
	EXPECT_LT(0, zeros(CSREC_REGION_DRAM, 256 * KIB, sh->target < 100000 ? 64 : 1000));
	EXPECT_LT(0, zeros(CSREC_REGION_ONCHIP, 4096, 1000));
	close(observer);
}

TEST_HARNESS_MAIN
