// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads traces: see trace.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "source.h"

#define BUF	(256u << 10)

/* One file, plain or gz; lines or records out of a buffer. */
struct in {
	gzFile f;
	char *path;
	uint64_t size;			/* of the file as it lies there */
	uint64_t line;
	bool strict, end;
	char *buf;
	size_t at, have;
};

static int in_open(struct in *in, const char *path, struct csm_err *err)
{
	struct stat st;

	if (stat(path, &st))
		return csm_fail(err, -errno, "%s: %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return csm_fail(err, -EISDIR, "%s: is a directory", path);
	in->size = st.st_size;
	in->path = strdup(path);
	in->buf = malloc(BUF);
	in->f = gzopen(path, "rbe");
	if (!in->path || !in->buf)
		return csm_fail(err, -ENOMEM, "out of memory");
	if (!in->f)
		return csm_fail(err, -errno, "%s: %s", path, strerror(errno));
	gzbuffer(in->f, BUF);
	return 0;
}

static void in_close(struct in *in)
{
	if (in->f)
		gzclose_r(in->f);
	free(in->path);
	free(in->buf);
}

/* Moves what is left to the front and reads more. Bytes got, 0 at the end. */
static int in_fill(struct in *in, struct csm_err *err)
{
	int n, code;

	memmove(in->buf, in->buf + in->at, in->have - in->at);
	in->have -= in->at;
	in->at = 0;
	if (in->have == BUF || in->end)
		return 0;
	n = gzread(in->f, in->buf + in->have, BUF - in->have);
	if (n < 0 || (!n && (gzerror(in->f, &code), code != Z_OK)))
		return csm_fail(err, -EBADMSG, "%s: %s", in->path, gzerror(in->f, &code));
	in->end = !n;
	in->have += n;
	return n;
}

/* The next line without its newline, *len bytes. 1, 0 at the end, or an error. */
static int in_line(struct in *in, const char **line, size_t *len, struct csm_err *err)
{
	char *nl;
	int n;

	for (;;) {
		nl = memchr(in->buf + in->at, '\n', in->have - in->at);
		if (nl)
			break;
		n = in_fill(in, err);
		if (n < 0)
			return n;
		if (!n) {
			/* the last line needs no newline; one longer than the buffer is cut there */
			if (in->at == in->have)
				return 0;
			*line = in->buf + in->at;
			*len = in->have - in->at;
			in->at = in->have;
			in->line++;
			return 1;
		}
	}
	*line = in->buf + in->at;
	*len = nl - *line;
	in->at += *len + 1;
	in->line++;
	return 1;
}

static double in_progress(const struct st_source *src)
{
	const struct in *in = src->priv;

	return in->size ? (double)gzoffset(in->f) / (double)in->size : -1;
}

static void one_close(struct st_source *src)
{
	if (src->priv)
		in_close(src->priv);
	free(src->priv);
}

static struct st_source *open_one(const char *path, uint32_t ntables,
				  int (*next)(struct st_source *, struct csm_err *),
				  struct csm_err *err)
{
	uint32_t one[CSM_TSV_CATS];
	struct st_source *src;

	for (int i = 0; i < CSM_TSV_CATS; i++)
		one[i] = 1;
	src = st_source_new(ntables, "C", 1, one, err);
	if (!src)
		return NULL;
	src->close = one_close;
	src->progress = in_progress;
	src->next = next;
	src->priv = calloc(1, sizeof(struct in));
	if (!src->priv)
		csm_fail(err, -ENOMEM, "out of memory");
	if (!src->priv || in_open(src->priv, path, err)) {
		st_close(src);
		return NULL;
	}
	for (uint32_t t = 0; t < ntables; t++)
		src->len[t] = 1;
	return src;
}

static int next_criteo(struct st_source *src, struct csm_err *err)
{
	struct in *in = src->priv;
	struct csm_click click;
	const char *line, *why;
	size_t len;
	int ret;

	while ((ret = in_line(in, &line, &len, err)) > 0) {
		why = csm_tsv_line(&click, line, len);
		if (!why) {
			for (int t = 0; t < CSM_TSV_CATS; t++)
				src->ids[t][0] = click.cat[t];
			return 1;
		}
		src->malformed++;
		if (in->strict)
			return csm_fail(err, -EBADMSG, "%s: line %llu: %s", in->path,
					(unsigned long long)in->line, why);
	}
	return ret;
}

struct st_source *st_open_criteo(const char *path, bool strict, struct csm_err *err)
{
	struct st_source *src = open_one(path, CSM_TSV_CATS, next_criteo, err);

	if (src)
		((struct in *)src->priv)->strict = strict;
	return src;
}

#define MLPERF_RECORD	160

static int next_mlperf(struct st_source *src, struct csm_err *err)
{
	struct in *in = src->priv;
	int32_t record[MLPERF_RECORD / 4];

	while (in->have - in->at < MLPERF_RECORD) {
		int n = in_fill(in, err);

		if (n < 0)
			return n;
		if (!n && in->have)
			return csm_fail(err, -EBADMSG, "%s: the last record has %zu of %d bytes",
					in->path, in->have, MLPERF_RECORD);
		if (!n)
			return 0;
	}
	memcpy(record, in->buf + in->at, MLPERF_RECORD);
	in->at += MLPERF_RECORD;
	in->line++;
	for (int t = 0; t < CSM_TSV_CATS; t++) {
		int32_t id = record[1 + CSM_TSV_DENSE + t];

		if (id < 0)
			return csm_fail(err, -EBADMSG, "%s: record %llu: id %d of table C%d", in->path,
					(unsigned long long)in->line, id, t + 1);
		src->ids[t][0] = id;
	}
	return 1;
}

struct st_source *st_open_mlperf(const char *path, struct csm_err *err)
{
	return open_one(path, CSM_TSV_CATS, next_mlperf, err);
}

/* dlrm's traces: a file a table, all read side by side. */
struct traces {
	struct in *in;			/* [ntables] */
	bool *text;
	uint32_t ntables, lookups;
};

static void traces_close(struct st_source *src)
{
	struct traces *t = src->priv;

	for (uint32_t i = 0; t && t->in && i < t->ntables; i++)
		in_close(&t->in[i]);
	if (t) {
		free(t->in);
		free(t->text);
	}
	free(t);
}

static double traces_progress(const struct st_source *src)
{
	const struct traces *t = src->priv;

	return t->in[0].size ? (double)gzoffset(t->in[0].f) / (double)t->in[0].size : -1;
}

/* The next number of a text, separated by commas and white space. 1, 0 at the end, error. */
static int next_number(struct in *in, uint64_t *value, struct csm_err *err)
{
	bool digits = false;
	uint64_t v = 0;

	for (;; in->at++) {
		char c;

		if (in->at == in->have) {
			int n = in_fill(in, err);

			if (n < 0)
				return n;
			if (!n)
				break;
		}
		c = in->buf[in->at];
		if (c >= '0' && c <= '9') {
			if (v > (UINT64_MAX - 9) / 10)
				return csm_fail(err, -EBADMSG, "%s: number %llu is too large", in->path,
						(unsigned long long)in->line + 1);
			v = v * 10 + (c - '0');
			digits = true;
		} else if (c != ',' && c != ' ' && c != '\n' && c != '\r' && c != '\t') {
			return csm_fail(err, -EBADMSG, "%s: byte %#x after number %llu", in->path,
					(unsigned char)c, (unsigned long long)in->line);
		} else if (digits) {
			break;
		}
	}
	*value = v;
	in->line += digits;
	return digits;
}

static int next_word(struct in *in, uint64_t *value, struct csm_err *err)
{
	while (in->have - in->at < 8) {
		int n = in_fill(in, err);

		if (n < 0)
			return n;
		if (!n && in->have)
			return csm_fail(err, -EBADMSG, "%s: ends within a number", in->path);
		if (!n)
			return 0;
	}
	memcpy(value, in->buf + in->at, 8);
	in->at += 8;
	in->line++;
	return 1;
}

static int next_traces(struct st_source *src, struct csm_err *err)
{
	struct traces *t = src->priv;

	for (uint32_t i = 0; i < t->ntables; i++) {
		for (uint32_t k = 0; k < t->lookups; k++) {
			int ret = t->text[i] ? next_number(&t->in[i], &src->ids[i][k], err) :
				  next_word(&t->in[i], &src->ids[i][k], err);

			if (ret <= 0)
				return ret;	/* a bag that is not full is left out */
		}
	}
	return 1;
}

uint32_t st_files(const char *pattern)
{
	char path[4096];
	struct stat st;
	uint32_t n = 0;

	while (n < ST_TABLES_MAX && st_path(path, pattern, n) && !stat(path, &st))
		n++;
	return n;
}

struct st_source *st_open_trace(const char *pattern, uint32_t lookups, struct csm_err *err)
{
	uint32_t n = st_files(pattern), len[ST_TABLES_MAX];
	struct st_source *src;
	struct traces *t;
	char path[4096];

	if (!n) {
		csm_fail(err, -ENOENT,
			 "%s: no file for table 0 (the last 'j' in the file's name is its number)", pattern);
		return NULL;
	}
	for (uint32_t i = 0; i < n; i++)
		len[i] = lookups;
	src = st_source_new(n, "T", 0, len, err);
	if (!src)
		return NULL;
	src->close = traces_close;
	src->next = next_traces;
	src->progress = traces_progress;
	src->priv = t = calloc(1, sizeof(*t));
	if (t) {
		t->ntables = n;
		t->lookups = lookups;
		t->in = calloc(n, sizeof(*t->in));
		t->text = calloc(n, sizeof(*t->text));
	}
	if (!t || !t->in || !t->text) {
		csm_fail(err, -ENOMEM, "out of memory");
		goto fail;
	}
	for (uint32_t i = 0; i < n; i++) {
		struct in *in = &t->in[i];

		st_path(path, pattern, i);
		if (in_open(in, path, err) || in_fill(in, err) < 0)
			goto fail;
		/* raw numbers below 2^56 have a zero byte */
		t->text[i] = !memchr(in->buf, 0, in->have);
		src->len[i] = lookups;
	}
	return src;
fail:
	st_close(src);
	return NULL;
}
