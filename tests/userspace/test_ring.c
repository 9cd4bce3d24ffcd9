// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The ring arithmetic of mapped queues against a device that is written down here, from
 * REFERENCE.md section 2: all ring sizes, counts that pass 2^32, any mixture of submitting,
 * completing and taking. TAP.
 */
#include <stdio.h>
#include <stdlib.h>
#include "ring.h"

static struct csrec_cmd sq[4096];
static struct csrec_cqe cq[4096];
static struct csrec_queue_ctl ctl;
static uint64_t doorbell;

/* The device: counts as 64-bit numbers that never wrap, phase by division. */
static uint64_t fetched, posted, told_tail, told_head;
static int bad;

#define CHECK(cond) do {						\
	if (!(cond)) {							\
		printf("# line %d: %s\n", __LINE__, #cond);		\
		bad++;							\
	}								\
} while (0)

static void device(struct ring *r, unsigned int n)
{
	uint64_t tail = told_tail + (uint32_t)((uint32_t)doorbell - (uint32_t)told_tail);
	uint64_t head = told_head + (uint32_t)((uint32_t)(doorbell >> 32) - (uint32_t)told_head);

	CHECK(tail <= fetched + r->entries && head <= posted);
	told_tail = tail;
	told_head = head;
	while (n-- && fetched < told_tail && posted < told_head + r->entries) {
		struct csrec_cqe *c = &cq[posted % r->entries];

		/* the number of the command is in its body */
		memcpy(&c->detail, sq[fetched % r->entries].body, 8);
		CHECK(c->detail == fetched);
		c->cid = sq[fetched % r->entries].cid;
		c->status = (posted / r->entries) % 2 ? 0 : CSREC_CQE_PHASE;
		fetched++;
		posted++;
	}
}

static void run(uint32_t entries, uint64_t start, unsigned int seed)
{
	struct ring r = { sq, cq, &ctl, &doorbell, entries, start, start };
	struct csrec_cmd cmds[64];
	struct csrec_cqe cqes[64];
	uint64_t submitted = start, taken = start;

	memset(cq, 0, sizeof(cq));
	fetched = posted = told_tail = told_head = start;
	doorbell = (uint32_t)start * 0x100000001ull;
	/* what the pass before left, had there been one */
	for (uint64_t i = start - entries; start && i < start; i++)
		cq[i % entries].status = (i / entries) % 2 ? 0 : CSREC_CQE_PHASE;
	ctl.cq_head = start;

	for (int step = 0; step < 3000 && !bad; step++) {
		uint32_t n = rand_r(&seed) % 65, got;

		switch (rand_r(&seed) % 3) {
		case 0:
			for (uint32_t i = 0; i < n && i < 64; i++) {
				uint64_t number = submitted + i;

				cmds[i] = csrec_cmd_nop();
				cmds[i].cid = number * 7;
				memcpy(cmds[i].body, &number, 8);
			}
			n = n < 64 ? n : 64;
			got = ring_submit(&r, cmds, n);
			CHECK(got == (n < entries - (submitted - taken) ? n :
				      entries - (submitted - taken)));
			submitted += got;
			CHECK(!got || doorbell == ((taken & 0xffffffff) << 32 | (submitted & 0xffffffff)));
			break;
		case 1:
			device(&r, n);
			break;
		case 2:
			n = n < 64 ? n : 64;
			got = ring_take(&r, cqes, n);
			CHECK(got == (n < posted - taken ? n : posted - taken));
			for (uint32_t i = 0; i < got; i++)
				CHECK(cqes[i].detail == taken + i &&
				      cqes[i].cid == (uint16_t)((taken + i) * 7));
			taken += got;
			CHECK(ctl.cq_head == (uint32_t)taken);
			break;
		}
	}
	CHECK(submitted - start > 2000 || entries < 64);
}

int main(void)
{
	static const uint64_t starts[] = { 0, (1ull << 32) - 700, (1ull << 31) - 700 };
	int all = 0, n = 0;

	for (uint32_t log2 = 1; log2 <= 12; log2++) {
		for (int i = 0; i < 3; i++) {
			bad = 0;
			run(1u << log2, starts[i], log2 * 3 + i);
			printf("%s %d - ring: %u entries, counts from %llu\n", bad ? "not ok" : "ok",
			       ++n, 1u << log2, (unsigned long long)starts[i]);
			all |= bad;
		}
	}
	printf("1..%d\n", n);
	return all != 0;
}
