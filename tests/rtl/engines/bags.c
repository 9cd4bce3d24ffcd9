// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Bags: made at random, and what must come of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/csrec_hw.h>
#include "engine.h"
#include "../math/tap.h"

static uint8_t *expected;	/* the out region before the run */
static uint32_t *sums;		/* [bags_good][dim] */
static uint32_t bags_good;	/* bags before the first error */

void bags_make(struct bags *b, unsigned int longest, unsigned int kind)
{
	uint32_t *offsets, *w;
	uint32_t at = rnd_below(4) ? 0 : rnd_below(300);	/* ids before the first bag */
	uint32_t after = rnd_below(4) ? 0 : rnd_below(300);	/* and behind the last */

	b->offsets_off = place(SLOT_OFFSETS, CSREC_RIGHT_READ, false, 4ull * (b->nbags + 1));
	offsets = words(SLOT_OFFSETS, b->offsets_off);
	offsets[0] = at;
	for (uint32_t i = 0; i < b->nbags; i++) {
		at += rnd_below(4) ? rnd_below(longest + 1) : 0;
		offsets[i + 1] = at;
	}
	b->nids = at + after;
	b->ids_off = place(SLOT_IDS, CSREC_RIGHT_READ, false, 4ull * b->nids);
	w = words(SLOT_IDS, b->ids_off);
	for (uint32_t i = 0; i < b->nids; i++)	/* 0 also outside the bags: any id will do */
		w[i] = i >= offsets[0] && i < at ? rnd() % b->nrows : rnd();
	for (uint32_t i = offsets[0] + 1; i < at; i++)
		if (!rnd_below(8))
			w[i] = w[i - 1];
	if (b->weighted) {
		b->weights_off = place(SLOT_WEIGHTS, CSREC_RIGHT_READ, false, 4ull * b->nids);
		w = words(SLOT_WEIGHTS, b->weights_off);
		for (uint32_t i = 0; i < b->nids; i++)
			w[i] = fp_operand(kind);
	}
	b->out_off = place(SLOT_OUT, CSREC_RIGHT_WRITE | (b->accum ? CSREC_RIGHT_READ : 0),
			   false, (b->nbags - 1ull) * b->out_stride + 4 * b->dim);
	if (b->accum) {
		for (uint32_t i = 0; i < b->nbags; i++)
			for (uint32_t e = 0; e < b->dim; e++)
				words(SLOT_OUT, b->out_off + (uint64_t)i * b->out_stride)[e] =
					fp_operand(kind);
	}
}

struct completion bags_expect(const struct bags *b)
{
	const uint32_t *offsets = words(SLOT_OFFSETS, b->offsets_off);
	const uint32_t *ids = words(SLOT_IDS, b->ids_off);
	const uint32_t *weights = b->weighted ? words(SLOT_WEIGHTS, b->weights_off) : NULL;
	uint32_t row[256];

	free(expected);
	expected = malloc(regions[SLOT_OUT].size);
	memcpy(expected, regions[SLOT_OUT].mem, regions[SLOT_OUT].size);
	free(sums);
	sums = calloc((size_t)b->nbags * b->dim, 4);

	for (bags_good = 0; bags_good < b->nbags; bags_good++) {
		uint32_t *sum = sums + (size_t)bags_good * b->dim;
		uint32_t from = offsets[bags_good], to = offsets[bags_good + 1];

		if (from > to || to > b->nids)
			return (struct completion){ CSREC_ST_BAD_OFFSETS,
				CSREC_FIELD_DESC | b->field_offsets_off, bags_good };
		for (uint32_t j = from; j < to; j++) {
			if (ids[j] >= b->nrows)
				return (struct completion){ CSREC_ST_BAD_ID,
					CSREC_FIELD_DESC | b->field_ids_off, j };
			b->row(ids[j], row);
			for (uint32_t e = 0; e < b->dim; e++)
				sum[e] = fp_add(sum[e], weights ? fp_mul(weights[j], row[e])
								: row[e]);
		}
		if (b->accum) {
			const uint32_t *out = words(SLOT_OUT, b->out_off +
						    (uint64_t)bags_good * b->out_stride);

			for (uint32_t e = 0; e < b->dim; e++)
				sum[e] = fp_add(out[e], sum[e]);
		}
	}
	return (struct completion){ CSREC_ST_OK, 0, offsets[b->nbags] - offsets[0] };
}

/* Adds the bags one by one to what was there before, and compares after each. */
bool bags_match(const struct bags *b, bool all)
{
	for (uint32_t i = 0; i <= bags_good; i++) {
		if ((!all || i == bags_good) &&
		    !memcmp(expected, regions[SLOT_OUT].mem, regions[SLOT_OUT].size))
			return true;
		if (i < bags_good)
			memcpy(expected + b->out_off + (uint64_t)i * b->out_stride,
			       sums + (size_t)i * b->dim, 4 * b->dim);
	}
	for (uint64_t i = 0; i < regions[SLOT_OUT].size; i += 4)
		if (memcmp(expected + i, regions[SLOT_OUT].mem + i, 4)) {
			printf("# out differs first at byte %lld of the extent: want %08x got %08x\n",
			       (long long)(i - b->out_off), *(uint32_t *)(expected + i),
			       *words(SLOT_OUT, i));
			break;
		}
	return false;
}
