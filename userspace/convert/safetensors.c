// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * safetensors: u64 length of the header, the header (JSON: key -> dtype, shape, begin and
 * end in the data), the data. The data has no gaps, no overlaps and nothing behind it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "convert.h"

typedef unsigned long long ull;

static int get_dtype(const struct cvt_source *s, struct cvt_tensor *t, const char *name,
		     struct csm_err *err)
{
	static const char *const names[] = { "F32", "F16", "BF16" };

	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(name, names[i])) {
			t->dtype = i;
			return 0;
		}
	}
	return csm_fail(err, -EINVAL, "%s: %s, at byte %llu: type %.16s; F32, F16 and BF16 can be converted",
			s->path, t->key, (ull)t->off, name);
}

static int get_tensor(struct cvt_source *s, const char *key, json_t *v, uint64_t data,
		      struct csm_err *err)
{
	json_t *dtype = json_object_get(v, "dtype"), *shape = json_object_get(v, "shape");
	json_t *offsets = json_object_get(v, "data_offsets"), *x;
	uint64_t dims[3] = { 0 }, begin, end, room = s->size - data;
	struct cvt_tensor *t = cvt_add(s, key, strlen(key), err);
	size_t i;
	int ret;

	if (!t)
		return -EBADMSG;
	if (!json_is_object(v) || json_object_size(v) != 3 || !json_is_string(dtype) ||
	    !json_is_array(shape) || !json_is_array(offsets) || json_array_size(offsets) != 2)
		return csm_fail(err, -EBADMSG, "%s: %s: header entry is not dtype, shape and data_offsets",
				s->path, t->key);
	json_array_foreach(offsets, i, x)
		if (!json_is_integer(x) || json_integer_value(x) < 0)
			return csm_fail(err, -EBADMSG, "%s: %s: data_offsets are not numbers", s->path,
					t->key);
	begin = json_integer_value(json_array_get(offsets, 0));
	end = json_integer_value(json_array_get(offsets, 1));
	if (begin > end || end > room)
		return csm_fail(err, -EBADMSG,
				"%s: %s: data_offsets %llu to %llu leave the %llu bytes of data; is the file cut?",
				s->path, t->key, (ull)begin, (ull)end, (ull)room);
	t->off = data + begin;
	t->packed = t->size = end - begin;
	ret = get_dtype(s, t, json_string_value(dtype), err);
	if (ret)
		return ret;
	json_array_foreach(shape, i, x) {
		if (!json_is_integer(x) || json_integer_value(x) < 0)
			return csm_fail(err, -EBADMSG, "%s: %s: shape is not of numbers", s->path, t->key);
		if (i < 3)
			dims[i] = json_integer_value(x);
	}
	ret = cvt_set_shape(s, t, dims, json_array_size(shape), err);
	if (ret)
		return ret;
	if (t->count * cvt_dtype_size[t->dtype] != t->size)
		return csm_fail(err, -EBADMSG, "%s: %s, at byte %llu: has %llu bytes, its shape takes %llu",
				s->path, t->key, (ull)t->off, (ull)t->size,
				(ull)(t->count * cvt_dtype_size[t->dtype]));
	return 0;
}

static int by_off(const void *a, const void *b)
{
	const struct cvt_tensor *x = a, *y = b;

	if (x->off != y->off)
		return x->off < y->off ? -1 : 1;
	return x->size < y->size ? -1 : x->size > y->size;	/* empty ones first */
}

int cvt_open_safetensors(struct cvt_source *s, struct csm_err *err)
{
	uint64_t len, at;
	json_error_t why;
	json_t *root = NULL, *v;
	const char *key;
	char *text = NULL;
	int ret;

	if (s->size < 10)
		return csm_fail(err, -EBADMSG, "%s: %llu bytes are no safetensors file", s->path,
				(ull)s->size);
	ret = cvt_pread(s, &len, 8, 0, err);
	if (ret)
		return ret;
	if (len < 2 || len > s->size - 8)
		return csm_fail(err, -EBADMSG, "%s: header of %llu bytes in a file of %llu: no safetensors file, or cut",
				s->path, (ull)len, (ull)s->size);
	if (len > CVT_HEADER_MAX)
		return csm_fail(err, -EBADMSG, "%s: header of %llu bytes; at most %u are read", s->path,
				(ull)len, CVT_HEADER_MAX);
	text = malloc(len);
	if (!text)
		return csm_fail(err, -ENOMEM, "out of memory");
	ret = cvt_pread(s, text, len, 8, err);
	if (ret)
		goto out;
	root = *text == '{' ? json_loadb(text, len, JSON_REJECT_DUPLICATES, &why) : NULL;
	if (!root) {
		ret = csm_fail(err, -EBADMSG, "%s: header: byte %d: %s", s->path,
			       *text == '{' ? why.position + 8 : 8,
			       *text == '{' ? why.text : "a '{' is missing; no safetensors file?");
		goto out;
	}
	json_object_foreach(root, key, v) {
		if (!strcmp(key, "__metadata__")) {
			if (json_is_object(v))
				continue;
			ret = csm_fail(err, -EBADMSG, "%s: header: __metadata__ is no object", s->path);
			goto out;
		}
		ret = get_tensor(s, key, v, 8 + len, err);
		if (ret)
			goto out;
	}
	/* qsort takes no NULL */
	if (s->n)
		qsort(s->t, s->n, sizeof(*s->t), by_off);
	at = 8 + len;
	for (uint32_t i = 0; i < s->n; i++) {
		if (s->t[i].off != at) {
			ret = csm_fail(err, -EBADMSG, "%s: %s begins at byte %llu, %s", s->path,
				       s->t[i].key, (ull)s->t[i].off, s->t[i].off < at ?
				       "within another tensor" : "behind a gap");
			goto out;
		}
		at += s->t[i].size;
	}
	if (at != s->size)
		ret = csm_fail(err, -EBADMSG, "%s: %llu bytes behind the last tensor, from byte %llu on",
			       s->path, (ull)(s->size - at), (ull)at);
out:
	json_decref(root);
	free(text);
	return ret;
}
