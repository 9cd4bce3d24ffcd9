// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Criteo display-advertising click logs: label, 13 integers, 26 hexadecimal categories,
 * tab separated, all but the label may be empty. Values are prepared as
 * facebookresearch/dlrm does it: empty is 0, integers below 0 are 0, dense inputs are
 * ln(x + 1) in fp32. Categories stay whole here; a table takes them modulo its rows.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "csm.h"

static bool parse_int(const char *s, size_t len, float *v)
{
	bool neg = len && *s == '-';
	uint64_t x = 0;

	if (len == (size_t)neg)
		return len == 0 ? (*v = 0, true) : false;
	for (size_t i = neg; i < len; i++) {
		unsigned int d = (unsigned char)s[i] - '0';

		if (d > 9 || x > ((uint64_t)INT64_MAX - d) / 10)
			return false;
		x = x * 10 + d;
	}
	/*
	 * The sum is rounded to fp32, as there. The logarithm is taken in double and
	 * rounded once, so that every implementation gets the same dense inputs.
	 */
	*v = neg ? 0 : (float)log((double)((float)x + 1.0f));
	return true;
}

static bool parse_hex(const char *s, size_t len, uint64_t *v)
{
	*v = 0;
	if (len > 16)
		return false;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = s[i];
		unsigned int d;

		if (c >= '0' && c <= '9')
			d = c - '0';
		else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
			d = (c | 0x20) - 'a' + 10;
		else
			return false;
		*v = *v << 4 | d;
	}
	return true;
}

const char *csm_tsv_line(struct csm_click *c, const char *s, size_t len)
{
	const char *end = s + len;

	if (len && end[-1] == '\r')
		end--;
	for (unsigned int i = 0; ; i++) {
		const char *tab = memchr(s, '\t', end - s);
		size_t n = (tab ? tab : end) - s;

		if (i == 0) {
			if (n != 1 || (*s != '0' && *s != '1'))
				return "label is not 0 or 1";
			c->label = *s - '0';
		} else if (i <= CSM_TSV_DENSE) {
			if (!parse_int(s, n, &c->dense[i - 1]))
				return "integer field is not an integer";
		} else {
			if (!parse_hex(s, n, &c->cat[i - 1 - CSM_TSV_DENSE]))
				return "category field is not hexadecimal (16 digits at most)";
		}
		if (!tab)
			return i == CSM_TSV_DENSE + CSM_TSV_CATS ? NULL : "fewer than 40 fields";
		if (i == CSM_TSV_DENSE + CSM_TSV_CATS)
			return "more than 40 fields";
		s = tab + 1;
	}
}

/* Reads up to a newline. Length without it; -1 at the end; -2 too long, all skipped. */
static long read_line(struct csm_tsv *t)
{
	size_t n = 0;
	int ch;

	while ((ch = getc_unlocked(t->f)) != EOF && ch != '\n') {
		if (n < CSM_TSV_LINE)
			t->buf[n] = ch;
		n++;
	}
	if (ch == EOF && !n)
		return -1;
	return n < CSM_TSV_LINE ? (long)n : -2;
}

int csm_tsv_next(struct csm_tsv *t, struct csm_click *c, struct csm_err *err)
{
	for (;;) {
		long len = read_line(t);
		const char *why;

		if (ferror(t->f))
			return csm_fail(err, -EIO, "reading the input failed after line %llu: %s",
					(unsigned long long)t->line, strerror(errno));
		if (len == -1)
			return 0;
		t->line++;
		why = len == -2 ? "line is too long" : csm_tsv_line(c, t->buf, len);
		if (!why) {
			c->line = t->line;
			return 1;
		}
		t->bad++;
		if (t->report)
			t->report(t->priv, t->line, why);
		if (t->strict)
			return csm_fail(err, -EBADMSG, "line %llu: %s",
					(unsigned long long)t->line, why);
	}
}
