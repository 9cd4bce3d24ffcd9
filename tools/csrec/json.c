// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Writes JSON as it comes, with the commas and the indentation. */
#include <assert.h>
#include <math.h>
#include "cli.h"

#define MAX_DEPTH 16

static char closers[MAX_DEPTH];
static bool filled[MAX_DEPTH];
static int depth;

/* Length of the UTF-8 sequence at s, 0 if there is none: JSON takes nothing else. */
static int utf8_len(const unsigned char *s)
{
	int len = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 :
		  s[0] < 0xf5 ? 4 : 0;

	for (int i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* longer than need be, a surrogate, or past the last code point */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return len;
}

static void quote(const char *str)
{
	const unsigned char *s = (const unsigned char *)str;
	int len;

	putchar('"');
	for (; *s; s += len ? len : 1) {
		len = utf8_len(s);
		if (!len)
			fputs("\\ufffd", stdout);
		else if (*s == '"' || *s == '\\')
			printf("\\%c", *s);
		else if (*s < 0x20 || *s == 0x7f)
			printf("\\u%04x", *s);
		else
			fwrite(s, 1, len, stdout);
	}
	putchar('"');
}

static void member(const char *key)
{
	if (depth)
		printf("%s\n%*s", filled[depth - 1] ? "," : "", depth * 2, "");
	if (depth)
		filled[depth - 1] = true;
	if (key) {
		quote(key);
		fputs(": ", stdout);
	}
}

static void open_scope(const char *key, char opener, char closer)
{
	assert(depth < MAX_DEPTH);
	member(key);
	putchar(opener);
	closers[depth] = closer;
	filled[depth++] = false;
}

void jw_end(void)
{
	assert(depth > 0);
	depth--;
	if (filled[depth])
		printf("\n%*s", depth * 2, "");
	putchar(closers[depth]);
}

void jw_object(const char *key)
{
	open_scope(key, '{', '}');
}

void jw_array(const char *key)
{
	open_scope(key, '[', ']');
}

void jw_begin(void)
{
	assert(!depth);
	jw_object(NULL);
}

void jw_finish(void)
{
	jw_end();
	assert(!depth);
	putchar('\n');
}

void jw_string(const char *key, const char *value)
{
	member(key);
	quote(value);
}

void jw_uint(const char *key, uint64_t value)
{
	member(key);
	printf("%llu", (unsigned long long)value);
}

void jw_int(const char *key, int64_t value)
{
	member(key);
	printf("%lld", (long long)value);
}

/* JSON has no NaN and no infinity */
void jw_double(const char *key, double value)
{
	member(key);
	if (isfinite(value))
		printf("%.17g", value);
	else
		fputs("null", stdout);
}

void jw_bool(const char *key, bool value)
{
	member(key);
	fputs(value ? "true" : "false", stdout);
}
