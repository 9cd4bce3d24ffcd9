// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Counts accesses to the rows of a table: see stats.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"

#define HLL_BITS	12

struct slot {
	uint32_t id;
	uint32_t count;			/* 0: free */
	uint32_t last;			/* when it was accessed, modulo 2^32 */
};

struct st_counter {
	bool dense;			/* slots[] is indexed by id */
	struct slot *slots;
	uint64_t nslots;		/* dense: rows, else a power of two */
	uint64_t max;			/* most slots that memory allows */
	uint64_t used;
	uint64_t accesses;
	uint64_t slack;
	bool sketch;
	uint8_t hll[1 << HLL_BITS];
	uint64_t reuse[ST_REUSE];
};

/* Bijective mixing of 64 bits, constants of MurmurHash3's finaliser (public domain). */
static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ull;
	return x ^ x >> 33;
}

struct st_counter *st_counter_new(uint64_t rows, size_t bytes)
{
	struct st_counter *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	for (c->max = 1024; c->max * 2 * sizeof(struct slot) <= bytes; )
		c->max *= 2;
	c->dense = rows && rows * sizeof(struct slot) <= bytes;
	c->nslots = c->dense ? rows : 1024;
	c->slots = calloc(c->nslots, sizeof(*c->slots));
	if (!c->slots) {
		free(c);
		return NULL;
	}
	return c;
}

void st_counter_free(struct st_counter *c)
{
	if (c)
		free(c->slots);
	free(c);
}

/* Where id is, or the free slot where it would be. */
static struct slot *find(const struct st_counter *c, uint32_t id)
{
	uint64_t i;

	if (c->dense)
		return &c->slots[id];
	for (i = mix(id) & (c->nslots - 1); c->slots[i].count && c->slots[i].id != id; )
		i = (i + 1) & (c->nslots - 1);
	return &c->slots[i];
}

static void hll_add(struct st_counter *c, uint32_t id)
{
	/* bits that find() does not use for small tables */
	uint64_t h = mix(id ^ 0x9e3779b97f4a7c15ull);
	uint64_t rest = h << HLL_BITS | 1ull << (HLL_BITS - 1);
	uint8_t rank = __builtin_clzll(rest) + 1, *reg = &c->hll[h >> (64 - HLL_BITS)];

	if (*reg < rank)
		*reg = rank;
}

/* Flajolet et al., "HyperLogLog", 2007; with its correction for small ranges. */
static uint64_t hll_estimate(const struct st_counter *c)
{
	const double m = 1 << HLL_BITS, alpha = 0.7213 / (1 + 1.079 / m);
	double sum = 0, e;
	int zero = 0;

	for (int i = 0; i < 1 << HLL_BITS; i++) {
		sum += ldexp(1, -c->hll[i]);
		zero += !c->hll[i];
	}
	e = alpha * m * m / sum;
	return llround(e < 2.5 * m && zero ? m * log(m / zero) : e);
}

static bool rehash(struct st_counter *c, uint64_t nslots, uint32_t less)
{
	struct slot *old = c->slots;
	uint64_t n = c->nslots;

	c->slots = calloc(nslots, sizeof(*c->slots));
	if (!c->slots) {
		c->slots = old;
		return false;
	}
	c->nslots = nslots;
	c->used = 0;
	for (uint64_t i = 0; i < n; i++) {
		if (old[i].count <= less)
			continue;
		old[i].count -= less;
		*find(c, old[i].id) = old[i];
		c->used++;
	}
	free(old);
	return true;
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* The median of up to 1024 counts, evenly taken. At least half of all fall to it. */
static uint32_t median(const struct st_counter *c)
{
	uint32_t sample[1024], n = 0;
	uint64_t step = c->nslots / 1024;

	for (uint64_t i = 0; i < c->nslots && n < 1024; i += step) {
		uint64_t k = i;

		while (k < i + step && !c->slots[k].count)
			k++;
		if (k < i + step)
			sample[n++] = c->slots[k].count;
	}
	qsort(sample, n, sizeof(*sample), by_value);
	return sample[n / 2];
}

static bool make_room(struct st_counter *c)
{
	if (c->nslots < c->max)
		return rehash(c, c->nslots * 2, 0);
	if (!c->sketch) {
		c->sketch = true;
		for (uint64_t i = 0; i < c->nslots; i++)
			if (c->slots[i].count)
				hll_add(c, c->slots[i].id);
	}

	uint32_t less = median(c);

	c->slack += less;
	return rehash(c, c->nslots, less);
}

bool st_counter_add(struct st_counter *c, uint32_t id)
{
	struct slot *s = find(c, id);
	uint32_t now = c->accesses++;

	if (s->count) {
		uint32_t ago = now - s->last;

		c->reuse[ago ? 32 - __builtin_clz(ago) : 32]++;
		s->last = now;
		if (s->count != UINT32_MAX)
			s->count++;
		return true;
	}
	c->reuse[0]++;
	if (c->sketch)
		hll_add(c, id);
	if (!c->dense && (c->used + 1) * 4 > c->nslots * 3) {
		if (!make_room(c))
			return false;
		s = find(c, id);
	}
	*s = (struct slot){ .id = id, .count = 1, .last = now };
	c->used++;
	return true;
}

/* LSD radix sort by falling count, equal ones by id; uses tmp, which has as much room. */
static void sort(uint64_t *keys, uint64_t *tmp, uint64_t n)
{
	for (int shift = 0; shift < 64; shift += 8) {
		uint64_t at[257] = { 0 };

		for (uint64_t i = 0; i < n; i++)
			at[(keys[i] >> shift & 255) + 1]++;
		for (int b = 0; b < 256; b++)
			at[b + 1] += at[b];
		for (uint64_t i = 0; i < n; i++)
			tmp[at[keys[i] >> shift & 255]++] = keys[i];
		memcpy(keys, tmp, n * sizeof(*keys));
	}
}

int st_counter_result(const struct st_counter *c, struct st_result *r, struct csm_err *err)
{
	uint64_t *keys = malloc((c->used + 1) * sizeof(*keys));
	uint64_t *tmp = malloc((c->used + 1) * sizeof(*tmp));
	uint64_t n = 0;

	*r = (struct st_result){
		.accesses = c->accesses, .exact = !c->sketch, .slack = c->slack, .n = c->used,
		.unique = c->sketch ? hll_estimate(c) : c->used,
		.ids = malloc((c->used + 1) * sizeof(*r->ids)),
		.counts = malloc((c->used + 1) * sizeof(*r->counts)),
	};
	memcpy(r->reuse, c->reuse, sizeof(r->reuse));
	if (!keys || !tmp || !r->ids || !r->counts) {
		free(keys);
		free(tmp);
		free(r->ids);
		free(r->counts);
		return csm_fail(err, -ENOMEM, "out of memory");
	}
	for (uint64_t i = 0; i < c->nslots; i++)
		if (c->slots[i].count)
			keys[n++] = (uint64_t)~c->slots[i].count << 32 | c->slots[i].id;
	sort(keys, tmp, n);
	for (uint64_t i = 0; i < n; i++) {
		r->ids[i] = keys[i];
		r->counts[i] = ~(uint32_t)(keys[i] >> 32);
	}
	/* an estimate can fall below what is certain */
	if (r->unique < n)
		r->unique = n;
	free(keys);
	free(tmp);
	return 0;
}

uint32_t st_curve(const struct st_result *r, uint64_t (*points)[2])
{
	uint64_t sum = 0, next = 1;
	uint32_t n = 0;
	double grow = 1;

	/* as many points as there are rows, or points that lie ever farther apart */
	if (r->n > ST_CURVE - 2)
		grow = pow(r->n, 1.0 / (ST_CURVE / 2));
	for (uint64_t i = 0; i < r->n; i++) {
		sum += r->counts[i];
		if (i + 1 != next && i + 1 != r->n)
			continue;
		points[n][0] = i + 1;
		points[n++][1] = sum;
		next = fmax((double)next + 1, floor((double)next * grow));
	}
	/* what the sketch lost lies in rows that it does not name */
	if (n && r->accesses > sum && r->unique > r->n) {
		points[n][0] = r->unique;
		points[n++][1] = r->accesses;
	}
	return n;
}
