/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory as pages: arithmetic only, which a test runs outside the kernel
 * (tests/unit/pages.c).
 *
 * Memory comes as segments, whose ends are multiples of 4096. Segments that follow one another
 * are one run. All ends of runs but the first and the last must be ends of pages; the larger
 * the pages, the fewer they are.
 */
#ifndef _CSREC_PAGES_H
#define _CSREC_PAGES_H

#define CSREC_MAX_PAGE_SHIFT	30

/* Goes over segments; zero it to begin. */
struct csrec_pages {
	u64 last;		/* where the last segment ended */
	u64 ends;		/* of runs, all of them or-ed */
	u64 at;			/* the next page to be told */
	bool any;
};

/* First time over the segments: finds the size of pages. */
static inline void csrec_pages_look(struct csrec_pages *p, u64 addr, u64 len)
{
	if (p->any && addr != p->last)
		p->ends |= addr | p->last | 1ULL << CSREC_MAX_PAGE_SHIFT;
	p->any = true;
	p->last = addr + len;
}

/* Log2 of it; above CSREC_MAX_PAGE_SHIFT if all is one run, which needs no pages. */
static inline unsigned int csrec_pages_shift(const struct csrec_pages *p)
{
	return p->ends ? __builtin_ctzll(p->ends) : CSREC_MAX_PAGE_SHIFT + 1;
}

/* Second time, zeroed again, for each segment: the pages that begin in it, while there are. */
static inline void csrec_pages_begin(struct csrec_pages *p, u64 addr, u64 len, unsigned int shift)
{
	if (!p->any || addr != p->last)
		p->at = addr >> shift << shift;
	p->any = true;
	p->last = addr + len;
}

static inline bool csrec_pages_next(struct csrec_pages *p, unsigned int shift, u64 *page)
{
	if (p->at >= p->last)
		return false;
	*page = p->at;
	p->at += 1ULL << shift;
	return true;
}

#endif /* _CSREC_PAGES_H */
