// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Frequent pairs of rows: see stats.h. */
#include <stdlib.h>
#include <string.h>

#include "stats.h"

#define SLOTS	(1u << 17)		/* half of them are used at most */

struct st_pairs {
	uint32_t used;
	uint64_t slack;
	struct st_pair slots[SLOTS];	/* count 0: free */
};

struct st_pairs *st_pairs_new(void)
{
	return calloc(1, sizeof(struct st_pairs));
}

void st_pairs_free(struct st_pairs *c)
{
	free(c);
}

static struct st_pair *find(struct st_pair *slots, const struct st_pair *key)
{
	uint64_t h = (uint64_t)key->id[0] << 32 | key->id[1];
	uint32_t i;

	h ^= (uint64_t)key->table[0] << 48 ^ (uint64_t)key->table[1] << 16;
	h *= 0x9e3779b97f4a7c15ull;
	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9ull;
	for (i = h >> 47; slots[i].count; i = (i + 1) % SLOTS)
		if (!memcmp(slots[i].id, key->id, sizeof(key->id)) &&
		    !memcmp(slots[i].table, key->table, sizeof(key->table)))
			break;
	return &slots[i];
}

static int by_count(const void *a, const void *b)
{
	const struct st_pair *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	if (memcmp(x->table, y->table, sizeof(x->table)))
		return memcmp(x->table, y->table, sizeof(x->table));
	return memcmp(x->id, y->id, sizeof(x->id));
}

/* Takes the median off all counts; half of the pairs go. */
static void purge(struct st_pairs *c)
{
	struct st_pair *old = malloc(c->used * sizeof(*old));
	uint32_t n = 0;
	uint64_t less;

	if (!old) {		/* counts stay right if all are forgotten */
		for (uint32_t i = 0; i < SLOTS; i++)
			if (c->slots[i].count > c->slack)
				c->slack = c->slots[i].count;
		memset(c->slots, 0, sizeof(c->slots));
		c->used = 0;
		return;
	}
	for (uint32_t i = 0; i < SLOTS; i++)
		if (c->slots[i].count)
			old[n++] = c->slots[i];
	qsort(old, n, sizeof(*old), by_count);
	less = old[n / 2].count;
	c->slack += less;
	c->used = 0;
	memset(c->slots, 0, sizeof(c->slots));
	for (uint32_t i = 0; i < n && old[i].count > less; i++) {
		old[i].count -= less;
		*find(c->slots, &old[i]) = old[i];
		c->used++;
	}
	free(old);
}

void st_pairs_add(struct st_pairs *c, uint32_t table_a, uint32_t a, uint32_t table_b, uint32_t b)
{
	struct st_pair key = { { table_a, table_b }, { a, b }, 1 };
	struct st_pair *s = find(c->slots, &key);

	if (s->count) {
		s->count++;
		return;
	}
	*s = key;
	if (++c->used == SLOTS / 2)
		purge(c);
}

uint32_t st_pairs_result(const struct st_pairs *c, struct st_pair *list, uint32_t most,
			 uint64_t *slack)
{
	struct st_pair *all = malloc((c->used + 1ull) * sizeof(*all));
	uint32_t n = 0;

	*slack = c->slack;
	for (uint32_t i = 0; all && i < SLOTS; i++)
		if (c->slots[i].count > 1)
			all[n++] = c->slots[i];
	if (n)
		qsort(all, n, sizeof(*all), by_count);
	if (n > most)
		n = most;
	if (n)
		memcpy(list, all, n * sizeof(*list));
	free(all);
	return n;
}
