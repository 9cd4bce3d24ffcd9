/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lists of device commands on the simulated RTL, and how many cycles they take: what
 * calibration and prediction share. Built on tests/rtl/core/dev.h.
 *
 * Ids, offsets and descriptors lie in host memory and all else in device DRAM, TT cores on
 * chip, as the run time has it. Time does not depend on values, nor on how many rows there
 * are: the modelled DRAM has one latency. So rows that do not fit are folded into what does.
 */
#ifndef PLAN_RTL_H
#define PLAN_RTL_H

#include "dev.h"

#define RTL_MAX_CMDS	2048

struct rtl {
	struct dev d;
	struct csrec_cmd cmds[RTL_MAX_CMDS];
	uint32_t n;
	uint64_t host_at;		/* next free byte of the host region */
	uint64_t units[5];		/* busy cycles by unit: copy, emb, tt, interact, mlp */
};

void rtl_open(struct rtl *r);
void rtl_close(struct rtl *r);

/* Append a command; fence makes it wait for the earlier ones. */
void rtl_emb(struct rtl *r, uint32_t nbags, uint32_t nids, uint32_t dim, bool fence);
/* accum: add to the output that is there */
void rtl_tt(struct rtl *r, uint32_t nbags, uint32_t nids, const uint32_t p[3],
	    const uint16_t q[3], const uint16_t ranks[2], bool accum, bool fence);
void rtl_mlp(struct rtl *r, uint32_t batch, uint32_t in, uint32_t out, uint8_t act, bool fence);
void rtl_interact(struct rtl *r, uint32_t batch, bool dot, bool self, uint32_t nvec,
		  uint32_t dim, uint32_t vec_step, bool fence);
void rtl_copy(struct rtl *r, bool to_host, uint64_t len, bool fence);

/* Runs the list, empties it, and returns cycles from the doorbell until all is at rest. */
uint64_t rtl_run(struct rtl *r);

#endif
