// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "source.h"

struct st_source *st_source_new(uint32_t ntables, const char *prefix, uint32_t first,
				const uint32_t *max_len, struct csm_err *err)
{
	struct st_source *src = calloc(1, sizeof(*src));

	if (src) {
		src->ntables = ntables;
		src->names = calloc(ntables, sizeof(*src->names));
		src->rows = calloc(ntables, sizeof(*src->rows));
		src->ids = calloc(ntables, sizeof(*src->ids));
		src->len = calloc(ntables, sizeof(*src->len));
	}
	if (!src || !src->names || !src->rows || !src->ids || !src->len)
		goto fail;
	for (uint32_t t = 0; t < ntables; t++) {
		snprintf(src->names[t], sizeof(src->names[t]), "%s%u", prefix, first + t);
		src->ids[t] = calloc(max_len ? max_len[t] + 1ull : 1, sizeof(uint64_t));
		if (!src->ids[t])
			goto fail;
	}
	return src;
fail:
	st_close(src);
	csm_fail(err, -ENOMEM, "out of memory");
	return NULL;
}

void st_close(struct st_source *src)
{
	if (!src)
		return;
	if (src->close)
		src->close(src);
	for (uint32_t t = 0; src->ids && t < src->ntables; t++)
		free(src->ids[t]);
	free(src->names);
	free(src->rows);
	free(src->ids);
	free(src->len);
	free(src);
}

uint32_t st_tables(const struct st_source *src)
{
	return src->ntables;
}

const char *st_name(const struct st_source *src, uint32_t table)
{
	return src->names[table];
}

uint64_t st_rows(const struct st_source *src, uint32_t table)
{
	return src->rows[table];
}

uint64_t st_malformed(const struct st_source *src)
{
	return src->malformed;
}

double st_progress(const struct st_source *src)
{
	return src->progress ? src->progress(src) : -1;
}

int st_next(struct st_source *src, struct st_sample *s, struct csm_err *err)
{
	int ret = src->next(src, err);

	*s = (struct st_sample){ (const uint64_t *const *)src->ids, src->len };
	return ret;
}

bool st_path(char out[4096], const char *pattern, uint32_t table)
{
	const char *name = strrchr(pattern, '/'), *j = strrchr(name ? name : pattern, 'j');

	return j && (size_t)snprintf(out, 4096, "%.*s%u%s", (int)(j - pattern), pattern, table,
				     j + 1) < 4096;
}

static uint64_t splitmix(uint64_t *x)
{
	uint64_t z = *x += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

void st_seed(struct st_rng *r, uint64_t seed, uint64_t stream)
{
	uint64_t x = seed;

	x = splitmix(&x) ^ stream;
	for (int i = 0; i < 4; i++)
		r->s[i] = splitmix(&x);
}

static uint64_t rotl(uint64_t x, int k)
{
	return x << k | x >> (64 - k);
}

uint64_t st_random(struct st_rng *r)
{
	uint64_t *s = r->s, result = rotl(s[1] * 5, 7) * 9, t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotl(s[3], 45);
	return result;
}

uint64_t st_below(struct st_rng *r, uint64_t n)
{
	unsigned __int128 m = (unsigned __int128)st_random(r) * n;

	if ((uint64_t)m < n)
		while ((uint64_t)m < -n % n)
			m = (unsigned __int128)st_random(r) * n;
	return m >> 64;
}

double st_uniform(struct st_rng *r)
{
	return ((st_random(r) >> 11) + 0.5) * 0x1p-53;
}
