// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * kernel/csrec_ring.h against a device and a host that count to 2^64 and divide, as the
 * reference has it: "phase bit 1 if floor(c / entries) is even".
 */
#include <stdlib.h>
#include <string.h>

#include "kernel.h"
#include "../../kernel/csrec_ring.h"
#include "../model/tap.h"

static unsigned int phase_of(u64 count, u32 entries)
{
	return count / entries % 2 == 0;
}

/* The device of a ring that begins with count @first, as if it had always run. */
static void begin(struct csrec_cqe *cq, u32 entries, u64 first)
{
	for (u64 c = first; c < first + entries; c++)
		cq[c % entries].status = htole16(c < entries ? 0 : phase_of(c - entries, entries));
}

static void post(struct csrec_cqe *cq, u32 entries, u64 count)
{
	/* a status above the phase that must not matter */
	cq[count % entries].status = htole16(phase_of(count, entries) | (count % 16) << 1);
}

/* Random steps of device and host over several laps: does the host see what was posted? */
static bool laps(u32 entries, u64 first, u64 seed)
{
	struct csrec_cqe *cq = calloc(entries, sizeof(*cq));
	u64 posted = first, head = first, tail = first;
	bool good = true;

	begin(cq, entries, first);
	while (good && head < first + 9ULL * entries) {
		u32 n, room = entries - (u32)(tail - head);

		good &= csrec_ring_room(entries, (u32)tail, (u32)head) == room;
		n = rnd(&seed) % (room + 1);
		if (n) {
			u32 before_end = entries - (u32)(tail % entries);

			good &= csrec_ring_first(entries, (u32)tail, n) ==
				(n < before_end ? n : before_end);
			good &= csrec_ring_slot(entries, (u32)tail) == tail % entries;
		}
		tail += n;
		for (n = rnd(&seed) % (tail - posted + 1); n; n--)
			post(cq, entries, posted++);
		for (u32 most = 0; most < entries + 2; most += 1 + entries / 8) {
			u32 there = (u32)(posted - head);

			good &= csrec_cq_count(cq, entries, (u32)head, most) ==
				(there < most ? there : most);
		}
		good &= csrec_cq_has(cq, entries, (u32)head) == (posted != head);
		head += rnd(&seed) % (posted - head + 1);
	}
	free(cq);
	return good;
}

/* Any contents and any head: the answer is what the definition says, and it ends. */
static bool any_contents(u32 entries)
{
	struct csrec_cqe cq[8];

	for (u32 bits = 0; bits < 1u << entries; bits++) {
		memset(cq, 0xff, sizeof(cq));
		for (u32 i = 0; i < entries; i++)
			cq[i].status = htole16(0xfffe | (bits >> i & 1));
		for (u64 head = (1ULL << 32) - 3 * entries; head < (1ULL << 32) + 3 * entries; head++) {
			u32 n = 0;

			while (n < entries && (bits >> (head + n) % entries & 1) ==
					      phase_of(head + n, entries))
				n++;
			if (csrec_cq_count(cq, entries, (u32)head, UINT32_MAX) != n)
				return false;
		}
	}
	return true;
}

static bool layout(u32 entries, size_t page)
{
	size_t cq = csrec_map_cq_off(entries, page), ctl = csrec_map_ctl_off(entries, page);
	size_t len = csrec_map_len(entries, page);

	return cq % page == 0 && cq >= entries * 64 && cq < entries * 64 + page &&
	       ctl % 64 == 0 && ctl >= cq + entries * 16 && len % page == 0 &&
	       len >= ctl + sizeof(struct csrec_queue_ctl) &&
	       len < ctl + sizeof(struct csrec_queue_ctl) + page;
}

int main(void)
{
	for (u32 entries = 2; entries <= 65536; entries *= 8) {
		tap(laps(entries, 0, 1), "%u entries: several laps", entries);
		tap(laps(entries, 5 * entries + 1, 2), "%u entries: from the middle", entries);
		tap(laps(entries, (1ULL << 32) - 2 * entries - 1, 3),
		    "%u entries: counts pass 2^32", entries);
	}
	for (u32 entries = 2; entries <= 8; entries *= 2)
		tap(any_contents(entries), "%u entries: every contents of a ring", entries);
	for (size_t page = 4096; page <= 65536; page *= 4) {
		bool good = true;

		for (u32 entries = 2; entries <= 65536; entries *= 2)
			good &= layout(entries, page);
		tap(good, "pages of %zu bytes: rings, one after the other", page);
	}
	return tap_done();
}
