// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Files of named tensors: opening, finding, reading in constant memory. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "convert.h"

#define ROOM	(256u << 10)

typedef unsigned long long ull;

const uint32_t cvt_dtype_size[] = { 4, 2, 2, 4, 8 };

int cvt_pread(const struct cvt_source *s, void *buf, size_t len, uint64_t off,
	      struct csm_err *err)
{
	uint8_t *p = buf;

	while (len) {
		ssize_t n = pread(s->fd, p, len, off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return csm_fail(err, -errno, "%s: byte %llu: %s", s->path, (ull)off,
					strerror(errno));
		if (!n)
			return csm_fail(err, -EBADMSG, "%s: ends at byte %llu, within its contents",
					s->path, (ull)off);
		p += n;
		off += n;
		len -= n;
	}
	return 0;
}

struct cvt_tensor *cvt_add(struct cvt_source *s, const char *key, size_t len, struct csm_err *err)
{
	struct cvt_tensor *t;

	if (!len || len > CVT_KEY_MAX) {
		csm_fail(err, -EBADMSG, "%s: a key of %zu bytes; 1 to %d are possible", s->path, len,
			 CVT_KEY_MAX);
		return NULL;
	}
	for (size_t i = 0; i < len; i++) {
		if (key[i] <= ' ' || key[i] > '~') {
			csm_fail(err, -EBADMSG, "%s: key number %u has byte %#x, which no parameter's name has",
				 s->path, s->n, (uint8_t)key[i]);
			return NULL;
		}
	}
	if (s->n == CVT_TENSORS_MAX) {
		csm_fail(err, -EBADMSG, "%s: more than %u tensors", s->path, CVT_TENSORS_MAX);
		return NULL;
	}
	if (!(s->n & (s->n - 1))) {	/* room is the next power of two */
		t = realloc(s->t, (s->n ? 2 * s->n : 1) * sizeof(*t));
		if (!t) {
			csm_fail(err, -ENOMEM, "out of memory");
			return NULL;
		}
		s->t = t;
	}
	t = &s->t[s->n];
	memset(t, 0, sizeof(*t));
	t->key = strndup(key, len);
	if (!t->key) {
		csm_fail(err, -ENOMEM, "out of memory");
		return NULL;
	}
	s->n++;
	return t;
}

int cvt_set_shape(const struct cvt_source *s, struct cvt_tensor *t, const uint64_t *shape,
		  uint32_t ndim, struct csm_err *err)
{
	if (ndim > 2)
		return csm_fail(err, -EINVAL, "%s: %s: %u dimensions; parameters have 1 or 2", s->path,
				t->key, ndim);
	t->ndim = ndim;
	t->count = 1;
	for (uint32_t i = 0; i < ndim; i++) {
		t->shape[i] = shape[i];
		/* 2^60: times an element's size it still fits */
		if (__builtin_mul_overflow(t->count, shape[i], &t->count) || t->count >> 60)
			return csm_fail(err, -EBADMSG, "%s: %s: its shape has no sensible size",
					s->path, t->key);
	}
	return 0;
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct cvt_tensor *)a)->key, ((const struct cvt_tensor *)b)->key);
}

int cvt_open(struct cvt_source *s, const char *path, enum cvt_kind kind, struct csm_err *err)
{
	struct stat st;
	int ret;

	memset(s, 0, sizeof(*s));
	s->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (s->fd < 0 || fstat(s->fd, &st)) {
		ret = csm_fail(err, -errno, "%s: %s", path, strerror(errno));
		goto fail;
	}
	if (!S_ISREG(st.st_mode)) {
		ret = csm_fail(err, -EINVAL, "%s: not a regular file", path);
		goto fail;
	}
	s->path = strdup(path);
	if (!s->path) {
		ret = csm_fail(err, -ENOMEM, "out of memory");
		goto fail;
	}
	s->size = st.st_size;
	s->kind = kind;
	ret = kind == CVT_SAFETENSORS ? cvt_open_safetensors(s, err) : cvt_open_npz(s, err);
	if (ret)
		goto fail;
	if (!s->n) {
		ret = csm_fail(err, -EINVAL, "%s: has no tensors", path);
		goto fail;
	}
	qsort(s->t, s->n, sizeof(*s->t), by_key);
	for (uint32_t i = 1; i < s->n; i++) {
		if (!strcmp(s->t[i].key, s->t[i - 1].key)) {
			ret = csm_fail(err, -EBADMSG, "%s: %s is there twice, at bytes %llu and %llu",
				       path, s->t[i].key, (ull)s->t[i - 1].off, (ull)s->t[i].off);
			goto fail;
		}
	}
	return 0;
fail:
	cvt_close(s);
	return ret;
}

void cvt_close(struct cvt_source *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		free(s->t[i].key);
	free(s->t);
	free(s->path);
	if (s->fd >= 0)
		close(s->fd);
	memset(s, 0, sizeof(*s));
	s->fd = -1;
}

const struct cvt_tensor *cvt_find(const struct cvt_source *s, const char *key)
{
	struct cvt_tensor want = { .key = (char *)key };

	return bsearch(&want, s->t, s->n, sizeof(*s->t), by_key);
}

struct cvt_stream {
	const struct cvt_source *s;
	const struct cvt_tensor *t;
	uint64_t at;			/* in the file */
	uint64_t packed;		/* bytes left there */
	uint64_t left;			/* bytes left, unpacked */
	uint64_t element;
	uint32_t crc;
	bool inflating;
	z_stream z;
	uint8_t in[ROOM];
	uint8_t raw[ROOM];
};

struct cvt_stream *cvt_stream_open(const struct cvt_source *s, const struct cvt_tensor *t,
				   struct csm_err *err)
{
	struct cvt_stream *st = calloc(1, sizeof(*st));
	int ret = 0;

	if (!st) {
		csm_fail(err, -ENOMEM, "out of memory");
		return NULL;
	}
	st->s = s;
	st->t = t;
	st->at = t->off;
	st->packed = t->packed;
	st->left = t->size;
	if (t->deflated) {
		if (inflateInit2(&st->z, -MAX_WBITS) != Z_OK) {
			csm_fail(err, -ENOMEM, "out of memory");
			free(st);
			return NULL;
		}
		st->inflating = true;
	}
	for (uint32_t skip = t->skip; skip && !ret; ) {
		uint32_t n = skip < ROOM ? skip : ROOM;

		ret = cvt_stream_raw(st, st->raw, n, err);
		skip -= n;
	}
	if (ret) {
		cvt_stream_close(st);
		return NULL;
	}
	return st;
}

static int unpack(struct cvt_stream *st, uint8_t *out, size_t len, struct csm_err *err)
{
	z_stream *z = &st->z;

	z->next_out = out;
	z->avail_out = len;
	while (z->avail_out) {
		int ret;

		if (!z->avail_in && st->packed) {
			size_t n = st->packed < ROOM ? st->packed : ROOM;

			ret = cvt_pread(st->s, st->in, n, st->at, err);
			if (ret)
				return ret;
			st->at += n;
			st->packed -= n;
			z->next_in = st->in;
			z->avail_in = n;
		}
		ret = inflate(z, Z_NO_FLUSH);
		/* whatever it says: all bytes there is what counts */
		if (ret != Z_OK && z->avail_out)
			return csm_fail(err, -EBADMSG, "%s: %s: its compressed data is damaged near byte %llu",
					st->s->path, st->t->key, (ull)(st->at - z->avail_in));
	}
	return 0;
}

int cvt_stream_raw(struct cvt_stream *st, void *buf, size_t len, struct csm_err *err)
{
	int ret;

	if (len > st->left)
		return csm_fail(err, -EBADMSG, "%s: %s: ends %llu bytes early", st->s->path, st->t->key,
				(ull)(len - st->left));
	if (st->inflating)
		ret = unpack(st, buf, len, err);
	else
		ret = cvt_pread(st->s, buf, len, st->at, err);
	if (ret)
		return ret;
	if (!st->inflating)
		st->at += len;
	st->left -= len;
	if (st->t->skip || st->inflating)	/* a zip member */
		st->crc = crc32(st->crc, buf, len);
	return 0;
}

int cvt_stream_read(struct cvt_stream *st, float *out, size_t n, struct csm_err *err)
{
	const struct cvt_tensor *t = st->t;
	uint32_t size = cvt_dtype_size[t->dtype];
	int ret;

	while (n) {
		size_t k = n < ROOM / size ? n : ROOM / size;
		uint32_t bad = 0;

		ret = cvt_stream_raw(st, t->dtype == CVT_F32 ? (uint8_t *)out : st->raw, k * size, err);
		if (ret)
			return ret;
		for (size_t i = 0; i < k && t->dtype != CVT_F32; i++) {
			uint16_t h;

			memcpy(&h, st->raw + 2 * i, 2);
			if (t->dtype == CVT_F16) {
				out[i] = csm_from_half(h);
			} else {
				uint32_t u = (uint32_t)h << 16;

				memcpy(&out[i], &u, 4);
			}
		}
		for (size_t i = 0; i < k; i++) {
			uint32_t u;

			memcpy(&u, &out[i], 4);
			bad |= (u & 0x7f800000) == 0x7f800000;
		}
		for (size_t i = 0; i < k && bad; i++) {
			uint64_t e = st->element + i;
			uint32_t u;

			memcpy(&u, &out[i], 4);
			if ((u & 0x7f800000) == 0x7f800000)
				return csm_fail(err, -EINVAL, "%s: %s: element %llu, at byte %llu of %s, is %s",
						st->s->path, t->key, (ull)e,
						(ull)((st->inflating ? 0 : t->off) + t->skip + e * size),
						st->inflating ? "its member" : "the file",
						u & 0x7fffff ? "NaN" : "infinite");
		}
		st->element += k;
		out += k;
		n -= k;
	}
	return 0;
}

int cvt_stream_end(struct cvt_stream *st, struct csm_err *err)
{
	const struct cvt_tensor *t = st->t;

	if (st->left)
		return csm_fail(err, -EBADMSG, "%s: %s: %llu bytes behind its last element", st->s->path,
				t->key, (ull)st->left);
	if ((t->skip || st->inflating) && st->crc != t->crc)
		return csm_fail(err, -EBADMSG, "%s: %s: checksum is %08x, should be %08x", st->s->path,
				t->key, st->crc, t->crc);
	return 0;
}

void cvt_stream_close(struct cvt_stream *st)
{
	if (!st)
		return;
	if (st->inflating)
		inflateEnd(&st->z);
	free(st);
}
