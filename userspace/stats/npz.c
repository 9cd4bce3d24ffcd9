// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Multi-hot ids in an .npz: see trace.h. Columns lie one after the other and are read side by side. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <convert.h>

#include "source.h"

#define BLOCK	(8u << 20)	/* bytes read ahead, of all columns */

struct npz {
	struct cvt_source file;
	struct column {
		const struct cvt_tensor *t;
		struct cvt_stream *st;
		uint8_t *buf;
		size_t bytes;		/* of a bag */
	} *col;
	uint32_t ncols;
	uint64_t samples, at;
	uint32_t block, have, used;	/* samples in the buffers */
};

static void npz_close(struct st_source *src)
{
	struct npz *z = src->priv;

	for (uint32_t i = 0; z && z->col && i < z->ncols; i++) {
		cvt_stream_close(z->col[i].st);
		free(z->col[i].buf);
	}
	if (z) {
		free(z->col);
		cvt_close(&z->file);
	}
	free(z);
}

static double npz_progress(const struct st_source *src)
{
	const struct npz *z = src->priv;

	return z->samples ? (double)z->at / (double)z->samples : 1;
}

static int fill(struct npz *z, struct csm_err *err)
{
	uint64_t left = z->samples - z->at;
	uint32_t n = left < z->block ? left : z->block;

	for (uint32_t i = 0; i < z->ncols; i++) {
		struct column *c = &z->col[i];
		int ret = n ? cvt_stream_raw(c->st, c->buf, n * c->bytes, err) :
			  cvt_stream_end(c->st, err);

		if (ret)
			return ret;
	}
	z->have = n;
	z->used = 0;
	return n > 0;
}

static int next_npz(struct st_source *src, struct csm_err *err)
{
	struct npz *z = src->priv;

	if (z->used == z->have) {
		int ret = fill(z, err);

		if (ret <= 0)
			return ret;
	}
	for (uint32_t i = 0; i < z->ncols; i++) {
		const struct column *c = &z->col[i];
		const uint8_t *bag = c->buf + z->used * c->bytes;

		for (uint32_t k = 0; k < src->len[i]; k++) {
			int32_t narrow;
			int64_t id;

			if (c->t->dtype == CVT_I32) {
				memcpy(&narrow, bag + 4ull * k, 4);
				id = narrow;
			} else {
				memcpy(&id, bag + 8ull * k, 8);
			}
			if (id < 0)
				return csm_fail(err, -EBADMSG, "%s: array %u, sample %llu: id %lld",
						z->file.path, i, (unsigned long long)z->at, (long long)id);
			src->ids[i][k] = id;
		}
	}
	z->used++;
	z->at++;
	return 1;
}

/* Arrays "0", "1", ... of as many rows each; *len gets their columns. */
static int check(struct npz *z, const char *path, uint32_t *len, struct csm_err *err)
{
	uint64_t bytes = 0;

	z->ncols = z->file.n;
	if (z->ncols > ST_TABLES_MAX)
		return csm_fail(err, -EBADMSG, "%s: %u arrays; %u can be read", path, z->ncols, ST_TABLES_MAX);
	z->col = calloc(z->ncols, sizeof(*z->col));
	if (!z->col)
		return csm_fail(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < z->ncols; i++) {
		struct column *c = &z->col[i];
		char key[12];

		snprintf(key, sizeof(key), "%u", i);
		c->t = cvt_find(&z->file, key);
		if (!c->t)
			return csm_fail(err, -EINVAL, "%s: has %u arrays, but none named %u; 0 to %u are the tables' ids",
					path, z->ncols, i, z->ncols - 1);
		if (!c->t->ndim)
			return csm_fail(err, -EINVAL, "%s: array %u is a single number", path, i);
		if (i && c->t->shape[0] != z->samples)
			return csm_fail(err, -EINVAL, "%s: array %u has %llu samples, array 0 has %llu", path, i,
					(unsigned long long)c->t->shape[0], (unsigned long long)z->samples);
		z->samples = c->t->shape[0];
		if (c->t->ndim > 1 && c->t->shape[1] > ST_LOOKUPS_MAX)
			return csm_fail(err, -EINVAL, "%s: array %u has %llu ids a sample; %u are possible", path, i,
					(unsigned long long)c->t->shape[1], ST_LOOKUPS_MAX);
		len[i] = c->t->ndim > 1 ? c->t->shape[1] : 1;
		/* as many samples as its header likes, without a byte of them */
		if (!len[i])
			return csm_fail(err, -EINVAL, "%s: array %u has no ids", path, i);
		c->bytes = (size_t)len[i] * cvt_dtype_size[c->t->dtype];
		bytes += c->bytes;
	}
	z->block = bytes >= BLOCK ? 1 : BLOCK / (bytes + 1) + 1;
	for (uint32_t i = 0; i < z->ncols; i++) {
		struct column *c = &z->col[i];

		c->st = cvt_stream_open(&z->file, c->t, err);
		if (!c->st)
			return -EBADMSG;
		c->buf = malloc(z->block * c->bytes + 1);
		if (!c->buf)
			return csm_fail(err, -ENOMEM, "out of memory");
	}
	return 0;
}

struct st_source *st_open_npz(const char *path, struct csm_err *err)
{
	struct npz *z = calloc(1, sizeof(*z));
	uint32_t *len = calloc(ST_TABLES_MAX, sizeof(*len));
	struct st_source *src = NULL, holder = { .priv = z };

	if (!z || !len)
		csm_fail(err, -ENOMEM, "out of memory");
	else if (!cvt_open(&z->file, path, CVT_NPZ_IDS, err) && !check(z, path, len, err))
		src = st_source_new(z->ncols, "C", 1, len, err);
	if (src) {
		src->close = npz_close;
		src->next = next_npz;
		src->progress = npz_progress;
		src->priv = z;
		memcpy(src->len, len, z->ncols * sizeof(*len));
	} else {
		npz_close(&holder);
	}
	free(len);
	return src;
}
