/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Inside of the golden device: what device.c (registers, queues, memory, admin
 * commands' effects) and exec.c (commands) share.
 *
 * Each queue runs as a coroutine that fetches, executes and completes one command
 * after another. It gives way when its slice is used up, when a host access is answered
 * late, and when it waits for something (work, a fence, a drained region, a deleted
 * queue). A coroutine's stack owns nothing, so a reset may simply drop it.
 */
#ifndef CSREC_GOLDEN_DEVICE_H
#define CSREC_GOLDEN_DEVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include <linux/csrec_hw.h>
#include "csrec_model.h"

/* Capabilities: those of the RTL's default build. */
#define N_IOQ		4
#define MAX_LOG2	12
#define DB_STRIDE_LOG2	12
#define DB_BASE		0x10000
#define N_VECTORS	5
#define N_REGIONS	256
#define N_FENCES	64
#define ONCHIP_SIZE	(1u << 20)
#define MAX_DIM		256
#define MAX_VECS	64
#define MAX_RANK	32
#define MAX_WIDTH	4096
#define N_MACS		32	/* nominal: four engines of eight */

/* Nominal cycles between two turns of the scheduler, and the costs of things. */
#define SLICE		1024
#define COST_COMMAND	32
#define COST_ACCESS	8
#define COST_BYTES	16	/* bytes per cycle */

struct region {
	bool valid;
	uint16_t gen, domain;
	uint8_t kind, rights, levels, page_shift;
	uint32_t page_off;
	uint64_t base, size;
	unsigned int users;	/* accesses let in and not finished */
};

struct fence {
	bool valid;
	uint16_t gen, domain;
	uint64_t value;
};

enum queue_state { QUEUE_FREE, QUEUE_LIVE };

struct queue {
	struct csrec_model *m;
	unsigned int id;
	enum queue_state state;
	bool abort;			/* being deleted, or the device disabled */

	uint16_t vector, domain;
	unsigned int log2_entries;
	uint64_t sq_base, cq_base;
	uint32_t tail, fetched;		/* SQ, free-running */
	uint32_t posted, head;		/* CQ, free-running */
	bool posting;			/* the last posted one is still on its way */

	/* Interrupt coalescing */
	bool noirq;
	uint16_t irq_count;
	uint32_t irq_cycles;
	unsigned int unseen;		/* completions that wait for an interrupt */
	uint64_t irq_at;		/* cycle at which the first has waited long enough */

	/* What it waits for; NULL while it can simply run. */
	bool (*ready)(const struct queue *q);
	union {
		const struct region *region;
		const struct queue *queue;
		struct {
			uint32_t key;
			uint64_t value;
		} fence;
	} wait;
	bool executing;			/* between start and end of a command */
	uint64_t *busy;			/* engine's busy counter, or NULL */

	/* Its host access; there is never more than one. */
	struct {
		bool late;		/* not answered yet */
		uint32_t tag;
		int err;
		uint8_t buf[4096];
	} host;

	ucontext_t ctx;
	void *stack;
};

#define N_COUNTERS	((CSREC_REG_CNT_END - CSREC_REG_CNT_CYCLES) / 8)
#define CNT(m, name)	((m)->cnt[(CSREC_REG_CNT_##name - CSREC_REG_CNT_CYCLES) / 8])

struct csrec_model {
	struct csrec_model_config cfg;
	struct csrec_host_ops ops;
	void *opaque;
	uint8_t *dram;
	uint8_t *onchip;

	uint64_t ctrl, asq_base, acq_base, aq_size;
	bool up, disabling;
	uint8_t fatal;
	uint64_t cnt[N_COUNTERS];

	struct queue queue[1 + N_IOQ];
	struct region region[N_REGIONS];
	struct fence fence[N_FENCES];

	uint32_t next_tag;

	ucontext_t main_ctx;
	struct queue *current;
	unsigned int slice_left;
	unsigned int turn;		/* queue whose turn is next */
};

/* A command's outcome, as the completion reports it. */
struct result {
	uint16_t status, field;
	uint64_t detail;
};

static inline int fail(struct result *res, int status, uint16_t field, uint64_t detail)
{
	res->status = status;
	res->field = field;
	res->detail = detail;
	return status;
}

/* device.c, for coroutines */
void charge(struct queue *q, unsigned int cycles);
void block_until(struct queue *q, bool (*ready)(const struct queue *q));
void queue_start(struct queue *q);
int region_find(struct csrec_model *m, uint32_t key, struct region **out);
int fence_find(struct csrec_model *m, uint32_t key, struct fence **out);

/*
 * One access of a command, checked against the region table; buf NULL only checks.
 * Returns CSREC_ST_*; ABORTED without touching anything once the queue is to stop.
 */
struct access {
	uint32_t key;
	uint8_t right;		/* CSREC_RIGHT_READ or _WRITE */
	bool onchip;		/* region must be ONCHIP */
};
int mem_check(struct queue *q, const struct access *a, uint64_t off, uint64_t len);
int mem_access(struct queue *q, const struct access *a, uint64_t off, void *buf, size_t len);

/* exec.c */
void execute(struct queue *q, const struct csrec_cmd *cmd, struct result *res);

#endif /* CSREC_GOLDEN_DEVICE_H */
