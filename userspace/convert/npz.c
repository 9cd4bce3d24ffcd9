// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * npz: a zip (APPNOTE.TXT, with the zip64 records that numpy always writes) of .npy members,
 * stored or deflated. A .npy is "\x93NUMPY", version, header length, a Python dictionary of
 * descr, fortran_order and shape, the data.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "convert.h"

#define NPY_HEADER_MAX	4096u

typedef unsigned long long ull;

static uint64_t le(const uint8_t *p, int n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | p[n];
	return v;
}

struct zip_end {
	uint64_t entries, size, off;	/* of the central directory */
	uint64_t at;			/* where the end records begin */
};

static int find_end(const struct cvt_source *s, struct zip_end *e, struct csm_err *err)
{
	uint64_t room = s->size < 65557 ? s->size : 65557, base = s->size - room;
	uint8_t *tail = malloc(room + 1), rec[56];
	int64_t i;
	int ret;

	if (!tail)
		return csm_fail(err, -ENOMEM, "out of memory");
	ret = cvt_pread(s, tail, room, base, err);
	if (ret)
		goto out;
	for (i = (int64_t)room - 22; i >= 0; i--)
		if (!memcmp(tail + i, "PK\5\6", 4) && i + 22 + (int64_t)le(tail + i + 20, 2) == (int64_t)room)
			break;
	if (i < 0) {
		ret = csm_fail(err, -EBADMSG, "%s: no zip directory at its end: no npz file, or cut",
			       s->path);
		goto out;
	}
	e->at = base + i;
	e->entries = le(tail + i + 10, 2);
	e->size = le(tail + i + 12, 4);
	e->off = le(tail + i + 16, 4);
	if (i >= 20 && !memcmp(tail + i - 20, "PK\6\7", 4)) {
		uint64_t at = le(tail + i - 12, 8);

		if (at > e->at || e->at - at < sizeof(rec) + 20) {
			ret = csm_fail(err, -EBADMSG, "%s: zip64 record at byte %llu leaves the file",
				       s->path, (ull)at);
			goto out;
		}
		ret = cvt_pread(s, rec, sizeof(rec), at, err);
		if (ret)
			goto out;
		if (memcmp(rec, "PK\6\6", 4)) {
			ret = csm_fail(err, -EBADMSG, "%s: no zip64 record at byte %llu", s->path, (ull)at);
			goto out;
		}
		e->at = at;
		e->entries = le(rec + 32, 8);
		e->size = le(rec + 40, 8);
		e->off = le(rec + 48, 8);
	}
	if (e->off > e->at || e->size > e->at - e->off || e->size > CVT_HEADER_MAX)
		ret = csm_fail(err, -EBADMSG, "%s: zip directory of %llu bytes at byte %llu is not possible",
			       s->path, (ull)e->size, (ull)e->off);
out:
	free(tail);
	return ret;
}

/* The dictionary of a .npy header; Python's syntax, as far as numpy writes it. */
struct text {
	const char *p, *end;
};

static void spaces(struct text *t)
{
	while (t->p < t->end && (*t->p == ' ' || *t->p == '\n'))
		t->p++;
}

static bool eat(struct text *t, char c)
{
	spaces(t);
	if (t->p == t->end || *t->p != c)
		return false;
	t->p++;
	return true;
}

static bool word(struct text *t, char *out, size_t room)
{
	size_t n = 0;
	char quote;

	spaces(t);
	if (t->p == t->end || (*t->p != '\'' && *t->p != '"'))
		return false;
	quote = *t->p++;
	while (t->p < t->end && *t->p != quote) {
		if (n + 1 == room)
			return false;
		out[n++] = *t->p++;
	}
	out[n] = 0;
	return eat(t, quote);
}

static bool tuple(struct text *t, uint64_t *shape, uint32_t *ndim)
{
	*ndim = 0;
	if (!eat(t, '('))
		return false;
	while (!eat(t, ')')) {
		uint64_t v = 0;
		bool any = false;

		spaces(t);
		for (; t->p < t->end && *t->p >= '0' && *t->p <= '9'; t->p++, any = true)
			if (__builtin_mul_overflow(v, 10, &v) ||
			    __builtin_add_overflow(v, (uint64_t)(*t->p - '0'), &v))
				return false;
		if (!any || *ndim == 32)
			return false;
		if (*ndim < 3)
			shape[*ndim] = v;
		++*ndim;
		if (!eat(t, ',')) {
			if (!eat(t, ')'))
				return false;
			return true;
		}
	}
	return true;
}

static int parse_npy(const struct cvt_source *s, struct cvt_tensor *t, const char *p, size_t len,
		     struct csm_err *err)
{
	static const struct {
		const char *name;
		enum cvt_dtype dtype;
	} types[2][2] = { { { "<f4", CVT_F32 }, { "<f2", CVT_F16 } },
			  { { "<i4", CVT_I32 }, { "<i8", CVT_I64 } } };
	int ids = s->kind == CVT_NPZ_IDS, which;
	struct text x = { p, p + len };
	uint64_t shape[3] = { 0 };
	char name[20], descr[20] = "";
	uint32_t ndim = 0, have = 0;
	bool fortran = false;

	if (!eat(&x, '{'))
		goto bad;
	while (!eat(&x, '}')) {
		uint32_t bit;

		if (!word(&x, name, sizeof(name)) || !eat(&x, ':'))
			goto bad;
		bit = !strcmp(name, "descr") ? 1 : !strcmp(name, "fortran_order") ? 2 :
		      !strcmp(name, "shape") ? 4 : 0;
		if (!bit || have & bit)
			goto bad;
		have |= bit;
		spaces(&x);
		if (bit == 1 && !word(&x, descr, sizeof(descr)))
			goto bad;
		if (bit == 2) {
			fortran = x.end - x.p >= 4 && !memcmp(x.p, "True", 4);
			if (!fortran && (x.end - x.p < 5 || memcmp(x.p, "False", 5)))
				goto bad;
			x.p += fortran ? 4 : 5;
		}
		if (bit == 4 && !tuple(&x, shape, &ndim))
			goto bad;
		if (!eat(&x, ',')) {
			if (!eat(&x, '}'))
				goto bad;
			break;
		}
	}
	spaces(&x);
	if (have != 7 || x.p != x.end)
		goto bad;
	if (fortran && ndim > 1)
		return csm_fail(err, -EINVAL, "%s: %s, at byte %llu: in Fortran order; numpy.ascontiguousarray() changes that",
				s->path, t->key, (ull)t->off);
	which = strcmp(descr, types[ids][0].name) != 0;
	if (which && strcmp(descr, types[ids][1].name))
		return csm_fail(err, -EINVAL, "%s: %s, at byte %llu: type '%s'; '%s' and '%s' can be %s",
				s->path, t->key, (ull)t->off, descr, types[ids][0].name,
				types[ids][1].name, ids ? "ids" : "converted");
	t->dtype = types[ids][which].dtype;
	return cvt_set_shape(s, t, shape, ndim, err);
bad:
	return csm_fail(err, -EBADMSG, "%s: %s, at byte %llu: its .npy header is not what numpy writes",
			s->path, t->key, (ull)t->off);
}

static int read_npy(const struct cvt_source *s, struct cvt_tensor *t, struct csm_err *err)
{
	struct cvt_stream *st = cvt_stream_open(s, t, err);
	char head[12], text[NPY_HEADER_MAX];
	uint32_t len = 0, at = 10;
	int ret;

	if (!st)
		return -ENOMEM;
	ret = cvt_stream_raw(st, head, 10, err);
	if (ret)
		goto out;
	if (memcmp(head, "\x93NUMPY", 6) || head[6] < 1 || head[6] > 3) {
		ret = csm_fail(err, -EBADMSG, "%s: %s, at byte %llu: no .npy of version 1 to 3", s->path,
			       t->key, (ull)t->off);
		goto out;
	}
	if (head[6] > 1) {
		ret = cvt_stream_raw(st, head + 10, 2, err);
		if (ret)
			goto out;
		at = 12;
	}
	len = le((uint8_t *)head + 8, at - 8);
	if (len > sizeof(text)) {
		ret = csm_fail(err, -EBADMSG, "%s: %s: a .npy header of %u bytes; at most %u are read",
			       s->path, t->key, len, NPY_HEADER_MAX);
		goto out;
	}
	ret = cvt_stream_raw(st, text, len, err);
	if (!ret)
		ret = parse_npy(s, t, text, len, err);
	if (ret)
		goto out;
	t->skip = at + len;
	if (t->count * cvt_dtype_size[t->dtype] != t->size - t->skip)
		ret = csm_fail(err, -EBADMSG, "%s: %s, at byte %llu: has %llu bytes of data, its shape takes %llu",
			       s->path, t->key, (ull)t->off, (ull)(t->size - t->skip),
			       (ull)(t->count * cvt_dtype_size[t->dtype]));
out:
	cvt_stream_close(st);
	return ret;
}

/* The 64-bit sizes and offset that stand for fields of all ones, in their order. */
static bool zip64(const uint8_t *x, size_t len, uint64_t *size, uint64_t *packed, uint64_t *off)
{
	uint64_t *const want[] = { *size == UINT32_MAX ? size : NULL,
				   *packed == UINT32_MAX ? packed : NULL,
				   *off == UINT32_MAX ? off : NULL };

	if (!want[0] && !want[1] && !want[2])
		return true;
	while (len >= 4) {
		size_t n = le(x + 2, 2);

		if (n > len - 4)
			return false;
		if (le(x, 2) == 1) {
			x += 4;
			for (int i = 0; i < 3; i++) {
				if (!want[i])
					continue;
				if (n < 8)
					return false;
				*want[i] = le(x, 8);
				x += 8;
				n -= 8;
			}
			return true;
		}
		x += 4 + n;
		len -= 4 + n;
	}
	return false;
}

/* One entry of the central directory; *used is its length. */
static int add_member(struct cvt_source *s, const uint8_t *d, size_t room, const struct zip_end *e,
		      size_t *used, struct csm_err *err)
{
	uint64_t size, packed, off, at;
	uint32_t nlen, xlen, method;
	struct cvt_tensor *t;
	const char *name;
	uint8_t local[30];
	int ret;

	if (room < 46 || memcmp(d, "PK\1\2", 4))
		return csm_fail(err, -EBADMSG, "%s: zip directory is damaged at entry %u", s->path, s->n);
	nlen = le(d + 28, 2);
	xlen = le(d + 30, 2);
	*used = 46 + nlen + xlen + le(d + 32, 2);
	if (*used > room)
		return csm_fail(err, -EBADMSG, "%s: zip directory is damaged at entry %u", s->path, s->n);
	name = (const char *)d + 46;
	packed = le(d + 20, 4);
	size = le(d + 24, 4);
	off = le(d + 42, 4);
	method = le(d + 10, 2);
	if (nlen < 5 || memcmp(name + nlen - 4, ".npy", 4))
		return csm_fail(err, -EINVAL, "%s: member %u is no .npy", s->path, s->n);
	t = cvt_add(s, name, nlen - 4, err);
	if (!t)
		return -EBADMSG;
	if (!zip64(d + 46 + nlen, xlen, &size, &packed, &off) || off > e->off || e->off - off < 30)
		return csm_fail(err, -EBADMSG, "%s: %s: its place in the file is not possible", s->path,
				t->key);
	if (le(d + 8, 2) & 1 || (method != 0 && method != 8))
		return csm_fail(err, -EINVAL, "%s: %s: encrypted, or compressed by method %u; stored and deflated can be read",
				s->path, t->key, method);
	ret = cvt_pread(s, local, sizeof(local), off, err);
	if (ret)
		return ret;
	at = off + 30 + le(local + 26, 2) + le(local + 28, 2);
	if (memcmp(local, "PK\3\4", 4) || at > e->off || packed > e->off - at ||
	    (!method && packed != size))
		return csm_fail(err, -EBADMSG, "%s: %s: %llu bytes at byte %llu are no zip member within the file",
				s->path, t->key, (ull)packed, (ull)off);
	t->off = at;
	t->packed = packed;
	t->size = size;
	t->deflated = method == 8;
	t->crc = le(d + 16, 4);
	return read_npy(s, t, err);
}

static int by_off(const void *a, const void *b)
{
	const struct cvt_tensor *x = a, *y = b;

	return x->off < y->off ? -1 : x->off > y->off;
}

int cvt_open_npz(struct cvt_source *s, struct csm_err *err)
{
	struct zip_end e = { 0 };
	uint8_t *dir;
	uint64_t at = 0;
	int ret = find_end(s, &e, err);

	if (ret)
		return ret;
	dir = malloc(e.size + 1);
	if (!dir)
		return csm_fail(err, -ENOMEM, "out of memory");
	ret = cvt_pread(s, dir, e.size, e.off, err);
	for (uint64_t i = 0; i < e.entries && !ret; i++) {
		size_t used = 0;

		ret = add_member(s, dir + at, e.size - at, &e, &used, err);
		at += used;
	}
	if (!ret && at != e.size)
		ret = csm_fail(err, -EBADMSG, "%s: %llu bytes behind the zip directory's last entry",
			       s->path, (ull)(e.size - at));
	free(dir);
	if (ret)
		return ret;
	if (s->n)
		qsort(s->t, s->n, sizeof(*s->t), by_off);
	for (uint32_t i = 1; i < s->n; i++)
		if (s->t[i - 1].packed > s->t[i].off - s->t[i - 1].off)
			return csm_fail(err, -EBADMSG, "%s: %s begins within another member, at byte %llu",
					s->path, s->t[i].key, (ull)s->t[i].off);
	return 0;
}
