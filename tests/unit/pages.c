// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * kernel/csrec_pages.h on the host. Random memory is made of segments, and what the page lists
 * say of each of its 4 KiB is compared with where it is; and no larger page would do.
 */
#include <stdio.h>

#include "kernel.h"
#include "../../kernel/csrec_pages.h"

#define UNIT		4096ULL
#define MAX_SEGS	12
#define MAX_PAGES	(1 << 20)

static u64 rnd_state = 88172645463325252ULL;

static u64 rnd(u64 n)
{
	rnd_state ^= rnd_state << 13;
	rnd_state ^= rnd_state >> 7;
	rnd_state ^= rnd_state << 17;
	return rnd_state % n;
}

struct seg {
	u64 addr, len;
};

static u64 pages[MAX_PAGES];

static unsigned int find_shift(const struct seg *segs, unsigned int n)
{
	struct csrec_pages p = {};

	for (unsigned int i = 0; i < n; i++)
		csrec_pages_look(&p, segs[i].addr, segs[i].len);
	return csrec_pages_shift(&p);
}

static unsigned int make_list(const struct seg *segs, unsigned int n, unsigned int shift)
{
	struct csrec_pages p = {};
	unsigned int count = 0;

	for (unsigned int i = 0; i < n; i++) {
		csrec_pages_begin(&p, segs[i].addr, segs[i].len, shift);
		while (count < MAX_PAGES && csrec_pages_next(&p, shift, &pages[count]))
			count++;
	}
	return count;
}

/*
 * Does a list of this page size say of every unit where it is? As the device reads it
 * (REFERENCE.md section 3), and with as many entries as the region is long.
 */
static bool list_is_right(const struct seg *segs, unsigned int n, unsigned int shift)
{
	unsigned int count = make_list(segs, n, shift);
	u64 page = 1ULL << shift, off = segs[0].addr % page, x = 0;

	for (unsigned int i = 0; i < n; i++) {
		for (u64 at = 0; at < segs[i].len; at += UNIT, x += UNIT) {
			u64 index = (off + x) / page;

			if (index >= count ||
			    pages[index] + (off + x) % page != segs[i].addr + at)
				return false;
		}
	}
	return count == (off + x + page - 1) / page;
}

static unsigned int nr, failed;

static void ok(bool good, const char *name)
{
	printf("%sok %u - %s\n", good ? "" : "not ", ++nr, name);
	failed += !good;
}

static void test_named(void)
{
	struct seg one[] = { { 0x1000, 0x5000 } };
	struct seg follow[] = { { 0x1000, 0x1000 }, { 0x2000, 0x3000 }, { 0x5000, 0x1000 } };
	struct seg small[] = { { 0x1000, 0x1000 }, { 0x3000, 0x1000 } };
	struct seg huge[] = { { 0x200000 + 0x7000, 0x200000 - 0x7000 }, { 0x800000, 0x200000 },
			      { 0x400000, 0x3000 } };
	struct seg again[] = { { 0x200000, 0x200000 }, { 0x200000, 0x200000 } };
	struct seg giant[] = { { 3ULL << 30, 1ULL << 30 }, { 1ULL << 40, 4096 } };

	ok(find_shift(one, 1) > CSREC_MAX_PAGE_SHIFT, "one segment needs no pages");
	ok(find_shift(follow, 3) > CSREC_MAX_PAGE_SHIFT, "nor do segments that follow one another");
	ok(find_shift(small, 2) == 12, "4 KiB pages");
	ok(find_shift(huge, 3) == 21 && list_is_right(huge, 3, 21),
	   "2 MiB pages, the first and the last in part");
	ok(find_shift(again, 2) == 21 && list_is_right(again, 2, 21), "the same page twice");
	ok(find_shift(giant, 2) == 30, "no page is larger than 1 GiB");
}

static void test_random(void)
{
	bool right = true, best = true;

	for (int round = 0; round < 20000; round++) {
		struct seg segs[MAX_SEGS];
		unsigned int n = 1 + rnd(MAX_SEGS), shift;
		unsigned int grain = rnd(6);	/* of 4 to 128 KiB */

		for (unsigned int i = 0; i < n; i++) {
			u64 unit = UNIT << (rnd(4) ? grain : rnd(grain + 1));

			segs[i].addr = i && !rnd(3) ? segs[i - 1].addr + segs[i - 1].len :
				       rnd(64) * unit;
			segs[i].len = (1 + rnd(8)) * unit;
		}
		/* ends of the whole need no alignment */
		if (!rnd(2) && segs[0].len > UNIT) {
			segs[0].addr += UNIT;
			segs[0].len -= UNIT;
		}
		if (!rnd(2) && segs[n - 1].len > UNIT)
			segs[n - 1].len -= UNIT;
		shift = find_shift(segs, n);
		if (shift > CSREC_MAX_PAGE_SHIFT)
			continue;
		right &= list_is_right(segs, n, shift);
		best &= shift == CSREC_MAX_PAGE_SHIFT || !list_is_right(segs, n, shift + 1);
	}
	ok(right, "random segments: every byte is where the list says");
	ok(best, "random segments: larger pages would not do");
}

int main(void)
{
	printf("TAP version 13\n");
	test_named();
	test_random();
	printf("1..%u\n", nr);
	return failed != 0;
}
