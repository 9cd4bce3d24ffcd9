/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stands in for libcsrec, driver and device, so that userspace/model/run.c can be tested
 * without them. It runs commands with the golden compute library, in the worst order
 * that REFERENCE.md section 2 allows: any command that may have started may be the
 * next to take effect. A missing fence therefore gives wrong scores.
 */
#ifndef FAKE_CSREC_H
#define FAKE_CSREC_H

#include <stdbool.h>
#include <stdint.h>

struct csrec_dev;

struct fake {
	uint64_t seed;		/* of the order */
	uint32_t queue_entries;	/* most that a queue may have */
	uint32_t cap_dim;	/* the widest row it claims to take */
	int fail_p2p;		/* the nth P2P read from now fails; 0: none */
	int fail_cmd;		/* the nth command from now is refused */
	int fail_submit;	/* the nth submission from now fails */
	bool broken_fences;	/* ignores F_FENCE: what a missing fence looks like */
	/* what was seen */
	uint64_t submits, cmds, irqs, waits, early, p2p_segs, p2p_bytes;
	uint32_t live;		/* regions, queues and fences not freed */
};

extern struct fake fake;
struct csrec_dev *fake_open(void);

#endif
