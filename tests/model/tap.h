/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A result line per check, a plan at the end, exit status by tap_done(). */
#ifndef TAP_H
#define TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

static unsigned int tap_n, tap_bad;

__attribute__((format(printf, 2, 3)))
static inline bool tap(bool good, const char *fmt, ...)
{
	va_list ap;

	printf("%sok %u - ", good ? "" : "not ", ++tap_n);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);		/* a sanitizer's exit does not */
	tap_bad += !good;
	return good;
}

static inline int tap_done(void)
{
	printf("1..%u\n", tap_n);
	fflush(stdout);
	return tap_bad != 0;
}

/* xorshift64*: the same numbers everywhere */
static inline uint64_t rnd(uint64_t *s)
{
	*s ^= *s >> 12;
	*s ^= *s << 25;
	*s ^= *s >> 27;
	return *s * 0x2545f4914f6cdd1du;
}

#endif
