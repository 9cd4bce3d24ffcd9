// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * csrec_fp_mul and csrec_fp_add, both bodies, against the host.
 *
 *   fp_test [RANDOM-PAIRS [SEED]]
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
	enum { EMPTY, AGAIN, FRESH } what;
} pipe[LAT];
static unsigned int cycle;
static unsigned long long pairs, differ, all_random;

static void complain(const struct unit *u, char op, uint32_t a, uint32_t b, uint32_t got,
		     uint32_t want)
{
	printf("# %s: %08x %c %08x gives %08x, not %08x\n", u->name, a, op, b, got, want);
}

static void feed(uint32_t a, uint32_t b, int what)
{
	unsigned int at = cycle++ % LAT;
	uint32_t mul[NUNITS], add[NUNITS];

	for (size_t i = 0; i < NUNITS; i++) {
		struct unit *u = &units[i];

		u->step(a, b, &mul[i], &add[i]);
		if (!pipe[at].what)
			continue;
		if (mul[i] != pipe[at].mul && u->bad_mul++ < 10)
			complain(u, '*', pipe[at].a, pipe[at].b, mul[i], pipe[at].mul);
		if (add[i] != pipe[at].add && u->bad_add++ < 10)
			complain(u, '+', pipe[at].a, pipe[at].b, add[i], pipe[at].add);
	}
	if (pipe[at].what) {
		pairs += pipe[at].what == FRESH;
		differ += mul[0] != mul[1] || add[0] != add[1];
	}
	pipe[at].a = a;
	pipe[at].b = b;
	pipe[at].mul = as_bits((float)((double)as_float(a) * (double)as_float(b)));
	pipe[at].add = as_bits((float)((double)as_float(a) + (double)as_float(b)));
	pipe[at].what = what;
}

static void drain(void)
{
	for (int i = 0; i < LAT; i++)
		feed(0, 0, EMPTY);
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

/*
 * Significands of which the product ends in a half and up to two units, of the 23 or 24 bits
 * that rounding drops.
 */
static void product_near_half(uint32_t *a, uint32_t *b)
{
	uint32_t ma, mb, inv, low = 23 + (rnd() & 1);

	ma = (rnd() & 0x7ffffe) | 0x800001;
	/* ma's inverse modulo 2^32: each step doubles the bits that are right */
	inv = ma;
	for (int i = 0; i < 4; i++)
		inv *= 2 - ma * inv;
	do
		mb = ((1u << (low - 1)) + rnd_below(5) - 2) * inv & ((1u << low) - 1);
	while (low == 24 && !(mb >> 23));
	*a = random_exp(64 + rnd_below(126));
	*a = (*a & 0xff800000) | (ma & 0x7fffff);
	*b = random_exp(64 + rnd_below(126));
	*b = (*b & 0xff800000) | (mb & 0x7fffff);
}

/* b is half a unit in a's last place, or next to that. */
static void sum_near_half(uint32_t *a, uint32_t *b)
{
	uint32_t exp = 26 + rnd_below(228);

	*a = random_exp(exp);
	*b = (rnd() & 0x80000000) | ((exp - 24) << 23);
	*b += rnd_below(9) - 4;
	/* ties want both parities, and the borrow out of a power of two */
	if (rnd_below(8) == 0)
		*a &= 0xff800001;
}

static const char *const kinds[] = {
	"any bits",
	"close exponents",
	"cancellation to a few units in the last place",
	"cancellation across a power of two",
	"sums of subnormal and small numbers",
	"products around the smallest numbers",
	"subnormal times normal",
	"products around the largest number",
	"short significands",
	"against infinity, NaN and zero",
	"products next to a half",
	"sums next to a half",
};

#define NKINDS (sizeof(kinds) / sizeof(kinds[0]))

static void random_pair(unsigned int kind, uint32_t *a, uint32_t *b)
{
	uint32_t exp;

	*a = rnd();
	*b = rnd();
	switch (kind) {
	case 0:
		break;
	case 1:
		exp = *a >> 23 & 0xff;
		*b = random_exp(exp + rnd_below(58) - 29);
		break;
	case 2:
		*b = (*a ^ 0x80000000) + rnd_below(17) - 8;
		break;
	case 3:
		*a &= 0xff800003;
		*b = (*a ^ 0x80000000) - 1 - rnd_below(16);
		break;
	case 4:
		*a &= 0x81ffffff;
		*b &= 0x81ffffff;
		break;
	case 5:
		exp = 1 + rnd_below(254);
		*a = random_exp(exp);
		*b = random_exp(exp < 128 ? 129 - exp + rnd_below(3) - rnd_below(26) : 0);
		if (rnd() & 1) {	/* exact halves there, too */
			*a &= 0xff800000 | 0xffffffffu << (10 + rnd_below(13));
			*b &= 0xff800000 | 0xffffffffu << (10 + rnd_below(13));
		}
		break;
	case 6:
		*a = (rnd() & 0x807fffff) >> rnd_below(23);
		*b = random_exp(100 + rnd_below(80));
		break;
	case 7:
		exp = 128 + rnd_below(126);
		*a = random_exp(exp);
		*b = random_exp(381 - exp - rnd_below(3));
		break;
	case 8:		/* products and sums that are exact halves */
		*a &= 0xff800000 | 0xffffffffu << rnd_below(23);
		*b &= 0xff800000 | 0xffffffffu << rnd_below(23);
		if (rnd() & 1)
			*b = (*b & 0x807fffff) | (*a & 0x7f800000);
		break;
	case 9:
		*b = (rnd() & 0x80000000) | (rnd() & 1 ? 0x7f800000 : 0) |
		     (rnd() & 1 ? rnd_below(3) : 0);
		break;
	case 10:
		product_near_half(a, b);
		break;
	default:
		sum_near_half(a, b);
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

	if (argc > 2)
		rnd_state ^= strtoull(argv[2], NULL, 0) << 1;

	for (size_t i = 0; i < 2 * n; i++)
		for (size_t j = 0; j < 2 * n; j++)
			feed(v[i / 2] | (i & 1u) << 31, v[j / 2] | (j & 1u) << 31, FRESH);
	drain();
	report("special values");

	for (unsigned int k = 0; k < NKINDS; k++) {
		for (unsigned long long i = 0; i < (count + NKINDS - 1) / NKINDS; i++) {
			random_pair(k, &a, &b);
			feed(a, b, FRESH);
			/* operands at rest for a while: the DPI body then computes nothing */
			if (!rnd_below(64))
				for (uint32_t rest = rnd_below(2 * LAT); rest; rest--)
					feed(a, b, AGAIN);
		}
		drain();
		all_random += pairs;
		report(kinds[k]);
	}
	printf("# %llu random pairs in all\n", all_random);
	return tap_done();
}
