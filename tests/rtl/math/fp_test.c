// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * csrec_fp_mul and csrec_fp_add, both bodies, against the host.
 *
 *   fp_test [RANDOM-PAIRS]
 *
 * The expected product and sum are computed in double and rounded to float once more:
 * a product of two floats is exact in double, and for a sum double has enough bits
 * (more than twice float's, plus two) that rounding twice is rounding once. So the
 * expectation does not share a path with the DPI functions, which compute in float.
 */
#include <stdlib.h>

#include "fp_test.h"
#include "tap.h"

#define LAT 4		/* csrec_pkg::FP_LAT */

struct unit {
	const char *name;
	void (*step)(uint32_t a, uint32_t b, uint32_t *mul, uint32_t *add);
	unsigned long long bad_mul, bad_add;
};

static struct unit units[] = {
	{ .name = "synthesizable", .step = fp_step_rtl },
	{ .name = "DPI", .step = fp_step_dpi },
};

#define NUNITS (sizeof(units) / sizeof(units[0]))

/* What went in, by cycle mod LAT */
static struct {
	uint32_t a, b, mul, add;
	bool live;
} pipe[LAT];
static unsigned int cycle;
static unsigned long long pairs, differ;

static void complain(const struct unit *u, char op, uint32_t a, uint32_t b, uint32_t got,
		     uint32_t want)
{
	printf("# %s: %08x %c %08x gives %08x, not %08x\n", u->name, a, op, b, got, want);
}

static void feed(uint32_t a, uint32_t b, bool live)
{
	unsigned int at = cycle++ % LAT;
	uint32_t mul[NUNITS], add[NUNITS];

	for (size_t i = 0; i < NUNITS; i++) {
		struct unit *u = &units[i];

		u->step(a, b, &mul[i], &add[i]);
		if (!pipe[at].live)
			continue;
		if (mul[i] != pipe[at].mul && u->bad_mul++ < 10)
			complain(u, '*', pipe[at].a, pipe[at].b, mul[i], pipe[at].mul);
		if (add[i] != pipe[at].add && u->bad_add++ < 10)
			complain(u, '+', pipe[at].a, pipe[at].b, add[i], pipe[at].add);
	}
	if (pipe[at].live) {
		pairs++;
		differ += mul[0] != mul[1] || add[0] != add[1];
	}
	pipe[at].a = a;
	pipe[at].b = b;
	pipe[at].mul = as_bits((float)((double)as_float(a) * (double)as_float(b)));
	pipe[at].add = as_bits((float)((double)as_float(a) + (double)as_float(b)));
	pipe[at].live = live;
}

static void drain(void)
{
	for (int i = 0; i < LAT; i++)
		feed(0, 0, false);
}

static void report(const char *what)
{
	for (size_t i = 0; i < NUNITS; i++) {
		tap(pairs && !units[i].bad_mul, "fp_mul, %s body, %s: %llu pairs",
		    units[i].name, what, pairs);
		tap(pairs && !units[i].bad_add, "fp_add, %s body, %s: %llu pairs",
		    units[i].name, what, pairs);
		units[i].bad_mul = units[i].bad_add = 0;
	}
	tap(pairs && !differ, "both bodies agree, %s", what);
	pairs = differ = 0;
}

/* Magnitudes around every kind of boundary; the sign is added by the caller. */
static size_t make_special(uint32_t *v)
{
	static const uint32_t frac[] = { 0, 1, 2, 3, 0x3fffff, 0x400000, 0x400001, 0x555555,
					 0x7ffffd, 0x7ffffe, 0x7fffff };
	static const uint32_t exps[] = { 0, 1, 2, 23, 24, 25, 64, 102, 103, 104, 125, 126, 127,
					 128, 129, 149, 150, 151, 190, 252, 253, 254, 255 };
	size_t n = 0;

	for (size_t e = 0; e < sizeof(exps) / sizeof(exps[0]); e++)
		for (size_t f = 0; f < sizeof(frac) / sizeof(frac[0]); f++)
			v[n++] = exps[e] << 23 | frac[f];
	/* subnormals, one bit each: every shift of the normaliser */
	for (unsigned int i = 2; i < 23; i++)
		v[n++] = 1u << i;
	/* short significands: products and sums that are exact halves */
	for (unsigned int i = 1; i < 23; i++)
		v[n++] = 127u << 23 | 1u << i | 1;
	return n;
}

static uint32_t random_exp(uint32_t exp)
{
	return (rnd() & 0x807fffff) | (exp & 0xff) << 23;
}

static void random_pair(uint32_t *a, uint32_t *b)
{
	uint32_t exp, mask;

	*a = rnd();
	*b = rnd();
	switch (rnd_below(10)) {
	case 0:		/* anything */
		break;
	case 1:		/* close exponents: rounding of sums */
		exp = *a >> 23 & 0xff;
		*b = random_exp(exp + rnd_below(58) - 29);
		break;
	case 2:		/* cancellation down to a few units in the last place */
		*b = (*a ^ 0x80000000) + rnd_below(17) - 8;
		break;
	case 3:		/* cancellation across a power of two */
		*a &= 0xff800003;
		*b = (*a ^ 0x80000000) - 1 - rnd_below(16);
		break;
	case 4:		/* sums in the subnormal range */
		*a &= 0x81ffffff;
		*b &= 0x81ffffff;
		break;
	case 5:		/* products around the smallest normal and subnormal numbers */
		exp = 1 + rnd_below(254);
		*a = random_exp(exp);
		*b = random_exp(exp < 128 ? 129 - exp + rnd_below(3) - rnd_below(26) : 0);
		break;
	case 6:		/* subnormal times normal */
		*a = (rnd() & 0x807fffff) >> rnd_below(23);
		*b = random_exp(100 + rnd_below(80));
		break;
	case 7:		/* products around the largest number */
		exp = 128 + rnd_below(126);
		*a = random_exp(exp);
		*b = random_exp(381 - exp - rnd_below(3));
		break;
	case 8:		/* short significands: exact halves */
		mask = 0xff800000 | 0xffffffffu << rnd_below(23);
		*a &= mask;
		*b &= 0xff800000 | 0xffffffffu << rnd_below(23);
		if (rnd() & 1)
			*b = (*b & 0x807fffff) | (*a & 0x7f800000);
		break;
	default:	/* a value against infinity, NaN and zero */
		*b = (rnd() & 0x80000000) | (rnd() & 1 ? 0x7f800000 : 0) |
		     (rnd() & 1 ? rnd_below(3) : 0);
		break;
	}
	if (rnd() & 1) {
		uint32_t t = *a;

		*a = *b;
		*b = t;
	}
}

int main(int argc, char **argv)
{
	unsigned long long count = argc > 1 ? strtoull(argv[1], NULL, 0) : 2000000;
	static uint32_t v[1024];
	size_t n = make_special(v);
	uint32_t a, b;

	for (size_t i = 0; i < 2 * n; i++)
		for (size_t j = 0; j < 2 * n; j++)
			feed(v[i / 2] | (i & 1u) << 31, v[j / 2] | (j & 1u) << 31, true);
	drain();
	report("special values");

	for (unsigned long long i = 0; i < count; i++) {
		random_pair(&a, &b);
		feed(a, b, true);
		/* operands at rest for a while: the DPI body then computes nothing */
		if (!rnd_below(64))
			for (uint32_t rest = rnd_below(2 * LAT); rest; rest--)
				feed(a, b, true);
	}
	drain();
	report("random pairs");
	return tap_done();
}
