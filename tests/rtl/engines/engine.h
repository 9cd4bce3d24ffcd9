/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One engine alone, with regions in arrays behind its mem client port.
 */
#ifndef ENGINE_H
#define ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The ports, less clock: see rtl-model/rtl/README.md */
struct port_in {
	bool rst_n, desc_valid, abort, done_ready, req_ready, rd_valid, rd_last, wr_ready;
	bool rsp_valid;
	uint8_t rsp_status;
	uint16_t desc_domain;
	uint32_t desc[48];
	uint32_t rd_data[16];
};

struct port_out {
	bool desc_ready, done_valid, req_valid, req_onchip, rd_ready, wr_valid, rows, step;
	uint8_t done_status, req_op;
	uint16_t done_field, req_domain;
	uint32_t req_key, saved;
	uint64_t done_detail, req_off, req_len;
	uint32_t wr_data[16];
};

struct engine {
	const char *name;
	void (*eval)(const struct port_in *in, struct port_out *out);
	void (*clock)(void);
};

extern const struct engine engine_emb, engine_tt, engine_interact;

/* A region: slot n of the table has key (1 << 16 | n). */
struct region {
	uint8_t *mem;
	uint64_t size;
	uint8_t rights;		/* CSREC_RIGHT_* */
	bool onchip;
	uint8_t status;		/* not 0: every access gets this */
};

#define REGIONS 8
#define KEY(slot) (0x10000u | (slot))

struct completion {
	uint8_t status;
	uint16_t field;
	uint64_t detail;
};

/* How the memory behaves, and what is done to the engine, during one run */
struct run {
	unsigned int latency;	/* cycles before a request is served: 0 .. this */
	unsigned int stall;	/* of 16 cycles, how many ready or valid is withheld */
	long fail_at;		/* this READ or WRITE (from 0) fails; -1 none */
	uint8_t fail_status;
	bool abort;		/* abort after abort_at cycles */
	long abort_at;
	/* results */
	struct completion done;
	uint32_t failed_key;	/* of the request that failed_at hit; 0 if none did */
	unsigned long cycles, accesses, rows, saved, steps;
};

extern struct region regions[REGIONS];

/* Runs one descriptor. False, with a message, if the engine broke the protocol or hung. */
bool run_desc(const struct engine *e, const void *desc, size_t size, struct run *r);
void run_random(struct run *r);		/* random behaviour, nothing done to the engine */

/* fp32 on bits, as section 5 of REFERENCE.md has it */
uint32_t fp_add(uint32_t a, uint32_t b);
uint32_t fp_mul(uint32_t a, uint32_t b);
uint32_t fp_dot(const uint32_t *a, size_t step_a, const uint32_t *b, size_t step_b, size_t n);
uint32_t fp_operand(unsigned int kind);	/* kind 0..3: from tame to all bit patterns */

/*
 * Makes slot a region with room for extent bytes at a random offset, which is returned:
 * nothing behind them, or something that must not be touched. Frees what was there.
 */
uint64_t place(unsigned int slot, uint8_t rights, bool onchip, uint64_t extent);
static inline uint32_t *words(unsigned int slot, uint64_t off)
{
	return (uint32_t *)(regions[slot].mem + off);
}

/* One rule of a descriptor: run it, expect this completion and nothing written. */
bool expect_refusal(const struct engine *e, const void *desc, size_t size,
		    unsigned int out_slot, struct completion want);

/*
 * The bags of EMB and TT. Slots: SLOT_* and whatever the rows come from.
 */
enum { SLOT_TABLE, SLOT_IDS, SLOT_OFFSETS, SLOT_WEIGHTS, SLOT_OUT, SLOT_CORE1, SLOT_CORE2 };

struct bags {
	uint32_t nbags, nids, dim, out_stride;
	uint64_t nrows, ids_off, offsets_off, weights_off, out_off;
	bool weighted, accum;
	uint16_t field_offsets_off, field_ids_off;	/* in the descriptor */
	void (*row)(uint32_t id, uint32_t *row);
};

/* Fills in nids and the offsets, makes and fills the regions. */
void bags_make(struct bags *b, unsigned int longest, unsigned int kind);
/*
 * What must come of it: the completion, and the out region after each bag. Expects the
 * region as it is before the run; results stay until the next call.
 */
struct completion bags_expect(const struct bags *b);
/* Does the out region look as it must after exactly all, or after any number of, bags? */
bool bags_match(const struct bags *b, bool all);

#ifdef __cplusplus
}
#endif

#endif /* ENGINE_H */
