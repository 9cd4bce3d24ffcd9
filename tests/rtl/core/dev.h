/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A device model with its driver's side of things, for tests: host memory that is a flat
 * array, queues, commands one by one or in batches, and TAP output.
 */
#ifndef CORE_DEV_H
#define CORE_DEV_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/csrec_hw.h>
#include "csrec_model.h"

#define HOST_BASE	0x100000000ull	/* bus address of the first byte */
#define HOST_SIZE	(16u << 20)
#ifndef DRAM_SIZE		/* a power of two */
#define DRAM_SIZE	(4u << 20)
#endif
#define ONCHIP_SIZE	(1u << 20)
#define N_QUEUES	5
#define N_VECTORS	5
#define MAX_LATE	64

/* Where the rings are: queue q's SQ and CQ, 256 KiB apart, above 12 MiB. */
#define RING_BASE	(HOST_BASE + (12u << 20))
#define RING_STRIDE	(512u << 10)

struct queue {
	bool live;
	unsigned int id, log2;
	uint64_t sq, cq;
	uint32_t tail, head;
	uint32_t told;		/* completions that were there at its last interrupt */
};

struct late {
	uint32_t tag;
	bool write;
	uint64_t addr;
	uint8_t *buf;		/* read: where to put it; write: a copy */
	size_t len;
};

struct dev {
	struct csrec_model *m;
	uint8_t *host, *dram;
	struct queue q[N_QUEUES];
	unsigned int irqs[N_VECTORS + 1];	/* the last: vectors that cannot be */
	uint64_t fail_from, fail_to;		/* bus errors here */
	uint64_t watch_from, watch_to;		/* accesses here are counted */
	unsigned int watched;
	unsigned int late_pct;			/* host accesses answered late */
	bool hold;				/* late answers are kept back */
	struct late late[MAX_LATE];
	unsigned int n_late;
	uint64_t rng;
	uint64_t crossed;			/* transfers over a 4 KiB boundary: never */
	uint64_t host_bytes[2];			/* read, written */
};

/* TAP */
extern unsigned int tests_run, tests_failed;
bool ok(bool good, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int finish(void);

uint64_t rnd(struct dev *d);
uint8_t *host_ptr(struct dev *d, uint64_t addr);

/* Model with default or given configuration; dies when it cannot be made. */
void dev_open(struct dev *d, const struct csrec_model_config *cfg);
void dev_close(struct dev *d);
uint64_t reg(struct dev *d, uint32_t off);
void set(struct dev *d, uint32_t off, uint64_t val);

/* Runs until the device is idle and no late answer is held; false: does not end. */
bool run(struct dev *d);
/* Runs until @q has @n completions that were not taken, and somewhat longer. */
bool run_posted(struct dev *d, const struct queue *q, unsigned int n);

/* Admin queue with 2^log2 entries, zeroed rings. */
void enable(struct dev *d, unsigned int log2);
void disable(struct dev *d);
void ring_doorbell(struct dev *d, struct queue *q);
void put(struct dev *d, struct queue *q, const struct csrec_cmd *cmd);
bool take(struct dev *d, struct queue *q, struct csrec_cqe *cqe);
/* How many completions are there, counted as q->head is. */
uint32_t posted(struct dev *d, const struct queue *q);
/* One command, run to its end. False: no completion. */
bool exec(struct dev *d, struct queue *q, const struct csrec_cmd *cmd, struct csrec_cqe *cqe);
unsigned int cqe_status(const struct csrec_cqe *cqe);

/* Commands. Key of slot i, generation g: */
#define KEY(i, g)	((uint32_t)(g) << CSREC_KEY_GEN_SHIFT | (i))
#define AS(cmd, type)	((struct csrec_body_##type *)(cmd)->body)

struct csrec_cmd cmd_plain(uint8_t opcode, uint16_t cid);
struct csrec_cmd cmd_copy(uint16_t cid, uint32_t src, uint64_t src_off, uint32_t dst,
			  uint64_t dst_off, uint64_t len);
struct csrec_cmd cmd_fill(uint16_t cid, uint32_t dst, uint64_t dst_off, uint64_t len,
			  uint32_t pattern);
struct csrec_cmd cmd_fence(uint8_t opcode, uint16_t cid, uint32_t key, uint64_t value);
struct csrec_cmd cmd_fence_set(uint16_t cid, uint32_t key, uint16_t domain, uint64_t value);
struct csrec_cmd cmd_queue(uint16_t cid, unsigned int qid, unsigned int log2, uint16_t vector,
			   uint16_t domain);
struct csrec_cmd cmd_coalesce(uint16_t cid, unsigned int qid, unsigned int log2, uint16_t domain,
			      uint16_t irq_count, uint32_t irq_cycles, uint16_t qflags);
struct csrec_cmd cmd_delete(uint16_t cid, unsigned int qid);
struct csrec_cmd cmd_region(uint16_t cid, uint32_t key, uint8_t kind, uint8_t rights,
			    uint16_t domain, uint64_t base, uint64_t size);
struct csrec_cmd cmd_inval(uint16_t cid, uint32_t key);

/* Set-up that must succeed: dies otherwise. */
void must(struct dev *d, struct csrec_cmd cmd);
void make_queue(struct dev *d, unsigned int qid, unsigned int log2, uint16_t domain);
void make_coalescing(struct dev *d, unsigned int qid, unsigned int log2, uint16_t domain,
		     uint16_t irq_count, uint32_t irq_cycles, uint16_t qflags);

#endif /* CORE_DEV_H */
