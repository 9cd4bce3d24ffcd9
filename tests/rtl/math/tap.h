/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TAP output and a random generator for the arithmetic tests. */
#ifndef TAP_H
#define TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static unsigned int tap_count, tap_failed;

/* One test result; returns @good. */
__attribute__((format(printf, 2, 3)))
static inline bool tap(bool good, const char *fmt, ...)
{
	va_list ap;

	printf("%sok %u - ", good ? "" : "not ", ++tap_count);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
	tap_failed += !good;
	return good;
}

/* Prints the plan; returns the exit code. */
static inline int tap_done(void)
{
	printf("1..%u\n", tap_count);
	return tap_failed || !tap_count;
}

/* xorshift64*: the same numbers everywhere */
static uint64_t rnd_state = 0x9e3779b97f4a7c15;

static inline uint32_t rnd(void)
{
	rnd_state ^= rnd_state >> 12;
	rnd_state ^= rnd_state << 25;
	rnd_state ^= rnd_state >> 27;
	return (uint32_t)((rnd_state * 0x2545f4914f6cdd1d) >> 32);
}

static inline uint32_t rnd_below(uint32_t n)
{
	return (uint32_t)(((uint64_t)rnd() * n) >> 32);
}

static inline float as_float(uint32_t v)
{
	float f;

	memcpy(&f, &v, sizeof(f));
	return f;
}

/* Bits of @f as the device gives them: one NaN. */
static inline uint32_t as_bits(float f)
{
	uint32_t v;

	if (f != f)
		return 0x7fc00000;
	memcpy(&v, &f, sizeof(v));
	return v;
}

#endif /* TAP_H */
