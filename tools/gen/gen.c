// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * csrec-gen: writes click logs in the form of the Criteo display-advertising data
 * set (label, 13 integers, 26 hexadecimal categories, tab separated, fields may be
 * empty), with a click model planted in them that a recommendation model can find:
 *
 *   logit = base + sum of dense effects + sum of one effect per category value
 *           + sum over some pairs of columns of a product of latent vectors
 *
 * Category values follow a Zipf law. --model-seed chooses the planted model,
 * --seed the rows, so that training and test files can share the one and differ in
 * the other. Row n depends on the seeds and n alone.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NDENSE	13
#define NCAT	26
#define LATENT	4

/* What a column is like. Cardinalities have the spread of the Kaggle set's. */
static const uint32_t cardinality[NCAT] = {
	1460, 583, 10131226, 2202607, 305, 24, 12517, 633, 3, 93145, 5683, 8351592,
	3194, 27, 14992, 5461305, 10, 5652, 2173, 4, 7046546, 18, 15, 286181, 105, 142572,
};

/* Per cent of empty fields */
static const uint8_t cat_empty[NCAT] = {
	0, 0, 3, 3, 0, 12, 0, 0, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 44, 44, 3, 76, 0, 3, 44, 44,
};
static const uint8_t dense_empty[NDENSE] = {
	45, 0, 21, 22, 3, 22, 4, 0, 4, 45, 4, 77, 22,
};

/* Dense values are exp(normal(mean, sd)) - 1, rounded, not below 0. */
static const double dense_mean[NDENSE] = {
	0.7, 1.8, 2.0, 1.6, 8.0, 3.6, 1.5, 2.0, 3.8, 0.4, 0.7, 0.4, 1.6,
};
static const double dense_sd[NDENSE] = {
	0.9, 1.9, 1.2, 0.9, 2.0, 1.5, 1.2, 1.0, 1.4, 0.4, 0.8, 0.6, 1.0,
};

/* Pairs of columns whose latent vectors interact */
static const uint8_t pairs[][2] = {
	{ 2, 3 }, { 4, 7 }, { 5, 13 }, { 8, 19 }, { 16, 21 }, { 1, 22 }, { 5, 16 }, { 11, 24 },
};

struct opts {
	uint64_t rows, seed, model_seed, first;
	double zipf, strength, base;
	uint32_t max_card;
	const char *out;
};

/* Finalizer of SplitMix64: a bijection that mixes all bits */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static uint64_t mix3(uint64_t a, uint64_t b, uint64_t c)
{
	return mix(mix(mix(a) ^ b) ^ c);
}

static double unit(uint64_t bits)
{
	return ((double)(bits >> 11) + 0.5) * 0x1p-53;
}

/* A standard normal number from one hash (Box and Muller) */
static double normal(uint64_t h)
{
	return sqrt(-2.0 * log(unit(h))) * cos(6.283185307179586 * unit(mix(h)));
}

struct column {
	uint32_t n;
	double *cdf;
};

static int column_init(struct column *c, uint32_t n, double s)
{
	double sum = 0;

	c->n = n;
	c->cdf = malloc(n * sizeof(*c->cdf));
	if (!c->cdf)
		return -ENOMEM;
	for (uint32_t k = 0; k < n; k++) {
		sum += pow(k + 1, -s);
		c->cdf[k] = sum;
	}
	return 0;
}

static uint32_t column_draw(const struct column *c, double u)
{
	uint32_t lo = 0, hi = c->n - 1;

	u *= c->cdf[c->n - 1];
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (c->cdf[mid] < u)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static double effect(const struct opts *o, unsigned int col, uint32_t value)
{
	return normal(mix3(o->model_seed, 1000 + col, value));
}

static double latent(const struct opts *o, unsigned int col, uint32_t value, unsigned int d)
{
	return normal(mix3(o->model_seed, 2000 + col * LATENT + d, value));
}

static int write_row(FILE *f, const struct opts *o, const struct column *col, uint64_t row)
{
	uint64_t stream = mix3(o->seed, 1, row), n = 0;
	int64_t dense[NDENSE];
	uint32_t cat[NCAT];	/* rank of the value; empty is UINT32_MAX */
	double logit = 0, part;
	char line[1024];
	int len;

#define NEXT()	mix(stream + n++)
	for (unsigned int j = 0; j < NDENSE; j++) {
		double g = normal(NEXT());

		dense[j] = llround(exp(dense_mean[j] + dense_sd[j] * g)) - 1;
		if (dense[j] < 0)
			dense[j] = 0;
		if (j == 1 && NEXT() % 100 < 10)	/* this one goes below zero */
			dense[j] = -1 - (int64_t)(NEXT() % 3);
		part = dense[j] > 0 ? log1p((double)dense[j]) : 0;
		if (NEXT() % 100 < dense_empty[j]) {
			dense[j] = INT64_MIN;
			part = 0;
		}
		logit += 0.25 * normal(mix3(o->model_seed, 3, j)) * (part - dense_mean[j]) / dense_sd[j];
	}
	for (unsigned int c = 0; c < NCAT; c++) {
		cat[c] = column_draw(&col[c], unit(NEXT()));
		if (NEXT() % 100 < cat_empty[c])
			cat[c] = UINT32_MAX;
		logit += 0.33 * effect(o, c, cat[c]);
	}
	for (size_t p = 0; p < sizeof(pairs) / sizeof(pairs[0]); p++) {
		unsigned int a = pairs[p][0], b = pairs[p][1];

		part = 0;
		for (unsigned int d = 0; d < LATENT; d++)
			part += latent(o, a, cat[a], d) * latent(o, b, cat[b], d);
		logit += 0.2 * part;
	}
	logit = o->base + o->strength * logit;

	len = snprintf(line, sizeof(line), "%d", unit(NEXT()) < 1 / (1 + exp(-logit)));
#undef NEXT
	for (unsigned int j = 0; j < NDENSE; j++) {
		line[len++] = '\t';
		if (dense[j] != INT64_MIN)
			len += snprintf(line + len, sizeof(line) - len, "%" PRId64, dense[j]);
	}
	for (unsigned int c = 0; c < NCAT; c++) {
		line[len++] = '\t';
		if (cat[c] != UINT32_MAX)
			len += snprintf(line + len, sizeof(line) - len, "%08" PRIx32,
					(uint32_t)mix3(4, c, cat[c]));
	}
	line[len++] = '\n';
	return fwrite(line, 1, len, f) == (size_t)len ? 0 : -EIO;
}

static void usage(FILE *f)
{
	fputs("usage: csrec-gen [OPTION]...\n"
	      "Writes click logs in Criteo TSV form with a planted click model.\n"
	      "  --rows N        rows to write (1000)\n"
	      "  --first N       number of the first row (0)\n"
	      "  --seed N        chooses the rows (1)\n"
	      "  --model-seed N  chooses the planted click model (1)\n"
	      "  --zipf S        exponent of the category values' Zipf law (1.1)\n"
	      "  --max-card N    cap on the values per category column (100000)\n"
	      "  --strength X    scale of all effects; 0 leaves noise only (1)\n"
	      "  --base X        logit before effects (-3.2)\n"
	      "  --output FILE   instead of standard output\n"
	      "  --help\n", f);
}

static int parse_u64(const char *name, const char *s, uint64_t min, uint64_t max, uint64_t *v)
{
	char *end;

	errno = 0;
	*v = strtoull(s, &end, 0);
	if (errno || end == s || *end || strchr(s, '-') || *v < min || *v > max) {
		fprintf(stderr, "csrec-gen: --%s: '%s' is not a number in %" PRIu64 "..%" PRIu64 "\n",
			name, s, min, max);
		return -EINVAL;
	}
	return 0;
}

static int parse_double(const char *name, const char *s, double min, double max, double *v)
{
	char *end;

	*v = strtod(s, &end);
	if (end == s || *end || !(*v >= min && *v <= max)) {
		fprintf(stderr, "csrec-gen: --%s: '%s' is not a number in %g..%g\n",
			name, s, min, max);
		return -EINVAL;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option longopts[] = {
		{ "rows", required_argument, NULL, 'n' },
		{ "first", required_argument, NULL, 'f' },
		{ "seed", required_argument, NULL, 's' },
		{ "model-seed", required_argument, NULL, 'm' },
		{ "zipf", required_argument, NULL, 'z' },
		{ "max-card", required_argument, NULL, 'c' },
		{ "strength", required_argument, NULL, 'x' },
		{ "base", required_argument, NULL, 'b' },
		{ "output", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	struct opts o = {
		.rows = 1000, .seed = 1, .model_seed = 1, .zipf = 1.1, .strength = 1,
		.base = -3.2, .max_card = 100000,
	};
	struct column col[NCAT] = { };
	FILE *f = stdout;
	uint64_t v;
	int c, idx = 0, err = 0;

	while ((c = getopt_long(argc, argv, "", longopts, &idx)) != -1) {
		const char *name = longopts[idx].name;

		switch (c) {
		case 'n': err = parse_u64(name, optarg, 0, UINT64_MAX, &o.rows); break;
		case 'f': err = parse_u64(name, optarg, 0, UINT64_MAX, &o.first); break;
		case 's': err = parse_u64(name, optarg, 0, UINT64_MAX, &o.seed); break;
		case 'm': err = parse_u64(name, optarg, 0, UINT64_MAX, &o.model_seed); break;
		case 'z': err = parse_double(name, optarg, 0, 10, &o.zipf); break;
		case 'c':
			err = parse_u64(name, optarg, 1, 100000000, &v);
			o.max_card = v;
			break;
		case 'x': err = parse_double(name, optarg, 0, 100, &o.strength); break;
		case 'b': err = parse_double(name, optarg, -100, 100, &o.base); break;
		case 'o': o.out = optarg; break;
		case 'h': usage(stdout); return 0;
		default: usage(stderr); return 2;
		}
		if (err)
			return 2;
	}
	if (optind < argc) {
		fprintf(stderr, "csrec-gen: unexpected argument '%s'\n", argv[optind]);
		return 2;
	}

	for (c = 0; c < NCAT; c++) {
		uint32_t n = cardinality[c] < o.max_card ? cardinality[c] : o.max_card;

		if (column_init(&col[c], n, o.zipf)) {
			fputs("csrec-gen: out of memory\n", stderr);
			return 1;
		}
	}
	if (o.out) {
		f = fopen(o.out, "w");
		if (!f) {
			fprintf(stderr, "csrec-gen: %s: %s\n", o.out, strerror(errno));
			return 1;
		}
	}
	for (uint64_t i = 0; i < o.rows && !err; i++)
		err = write_row(f, &o, col, o.first + i);
	if (fclose(f) || err) {
		fprintf(stderr, "csrec-gen: %s: write failed\n", o.out ? o.out : "standard output");
		return 1;
	}
	for (c = 0; c < NCAT; c++)
		free(col[c].cdf);
	return 0;
}
