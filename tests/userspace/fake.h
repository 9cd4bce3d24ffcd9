/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A csrec driver and device that exist only as an ioctl() function. It takes every call
 * with the csrec magic, on whatever descriptor, so that any file can stand for
 * /dev/csrecN; what is mapped is mapped from that file. Built into the unit test, and as a library for LD_PRELOAD under the CLI;
 * there its settings come from FAKE_UAPI_MAJOR and so on.
 */
#ifndef FAKE_H
#define FAKE_H

#include <stdbool.h>
#include <stdint.h>

struct fake {
	/* settings */
	uint16_t uapi_major, hw_major;	/* FAKE_UAPI_MAJOR, FAKE_HW_MAJOR */
	bool p2p;			/* FAKE_P2P: peer-to-peer is possible */
	bool corrupt;			/* FAKE_CORRUPT: COPY changes its last byte */
	bool lie;			/* FAKE_LIE: P2P_READ counts half of what it read */
	bool drive;			/* FAKE_DRIVE: files answer as block devices */
	int numa_node;
	bool reverse;			/* completions of one WAIT come newest first */
	bool lazy;			/* WAIT gives no more than its min */
	uint32_t submit_limit;		/* SUBMIT takes no more at a time; 0: no limit */
	uint16_t lose;			/* this many commands complete with cid 0xffff */
	bool queue_map;			/* FAKE_QUEUE_MAP: mapped queues, and coalescing */
	bool mem_map;			/* DRAM can be mapped */
	uint64_t ring_shift;		/* added to where the completions of a mapped queue are */

	/* what was seen */
	uint32_t calls[32];		/* by ioctl number */
	uint32_t last_min, last_max;	/* of WAIT */
	int64_t last_timeout;
	uint32_t last_fence;		/* of P2P_READ */
	uint32_t regions;		/* alive */
	uint32_t queues;		/* alive */
	uint32_t last_wait_flags;
	uint32_t last_irq_count, last_irq_cycles, last_queue_flags;	/* of QUEUE_CREATE */
	uint64_t last_align;		/* of MEM_ALLOC */
	uint32_t bad_doorbells;
};

extern struct fake fake;

/* The next count calls of ioctl number nr fail with err and do nothing else. */
void fake_fail(unsigned int nr, int err, unsigned int count);
/* So do those after the next skip. */
void fake_fail_after(unsigned int nr, unsigned int skip, int err, unsigned int count);

/*
 * The device looks at the doorbell of a mapped queue and executes up to n commands. It does
 * so too whenever WAIT is called, and else not: what a test sees does not depend on time.
 */
void fake_step(uint32_t queue_id, uint32_t n);

/* Length and memory of a region, NULL if there is none. */
void *fake_region(uint32_t key, uint64_t *len);

#endif
