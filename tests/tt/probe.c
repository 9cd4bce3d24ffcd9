// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Calls userspace/tt for check.py. Arrays are raw little-endian files, "-" for none; a shape is
 * p0,p1,../q0,q1,../r0,r1,.. with any number of each, d being how many p there are.
 *
 *	probe svd SHAPE ROWS DIM WEIGHT PREFIX		cores to PREFIX.0 ..
 *	probe to SHAPE ROWS DIM WEIGHT PREFIX MAX-ERROR MAX-RANK
 *	probe measure SHAPE ROWS DIM WEIGHT PREFIX	row errors to PREFIX.rows
 *	probe rows SHAPE PREFIX FIRST N OUT
 *	probe bag SHAPE PREFIX NROWS IDS OFFSETS WEIGHTS OUT
 *	probe auto D NROWS DIM
 *	probe bytes SHAPE BYTES MAX-RANK
 *	probe mutate SHAPE NPZ N		imports N damaged copies of the file
 *	probe time SHAPE PREFIX NROWS IDS OFFSETS REPEAT
 *
 * Prints "key value" lines; what a function refused as "refused ERRNO MESSAGE".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tt.h"

static struct csm_err err;
static struct tt_shape s;
static float *cores[TT_MAX];

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static void *load(const char *path, size_t *len)
{
	FILE *f = strcmp(path, "-") ? fopen(path, "rb") : NULL;
	void *p;

	*len = 0;
	if (!f) {
		if (strcmp(path, "-"))
			die(path);
		return NULL;
	}
	fseek(f, 0, SEEK_END);
	*len = ftell(f);
	rewind(f);
	/* of that size exactly, so that a sanitizer sees any step beyond */
	p = malloc(*len);
	if (*len && fread(p, 1, *len, f) != *len)
		die(path);
	fclose(f);
	return p;
}

static void save(const char *path, const void *p, size_t len)
{
	FILE *f = fopen(path, "wb");

	if (!f || fwrite(p, 1, len, f) != len || fclose(f))
		die(path);
}

static void list(uint32_t *to, uint32_t max, uint32_t *n, char *text)
{
	char *at, *part = strtok_r(text, ",", &at);

	for (*n = 0; part && *n < max; part = strtok_r(NULL, ",", &at))
		to[(*n)++] = strtoul(part, NULL, 10);
}

static void shape(char *text)
{
	char *p = strsep(&text, "/"), *q = strsep(&text, "/");
	uint32_t n, many[16];

	list(many, 16, &s.d, p);
	memcpy(s.p, many, sizeof(s.p));
	list(s.q, TT_MAX, &n, q);
	if (text)
		list(s.r, TT_MAX + 1, &n, text);
}

static void show(const char *key, const uint32_t *v, uint32_t n)
{
	printf("%s", key);
	for (uint32_t k = 0; k < n; k++)
		printf(" %u", v[k]);
	putchar('\n');
}

static void load_cores(const char *prefix)
{
	for (uint32_t k = 0; k < s.d; k++) {
		char path[500];
		size_t len;

		snprintf(path, sizeof(path), "%s.%u", prefix, k);
		cores[k] = load(path, &len);
		if (len != tt_core_len(&s, k) * 4)
			die(path);
	}
}

static void save_cores(const char *prefix)
{
	for (uint32_t k = 0; k < s.d; k++) {
		char path[500];

		snprintf(path, sizeof(path), "%s.%u", prefix, k);
		save(path, cores[k], tt_core_len(&s, k) * 4);
	}
}

static int result(int ret, const struct tt_error *e)
{
	if (ret)
		printf("refused %d %s\n", -ret, err.msg);
	else if (e)
		printf("norm %.17g\nrelative %.17g\nweighted %.17g\nmean_row %.17g\nworst_row %.17g\n"
		       "worst %llu\nbound %.17g\n", e->norm, e->relative, e->weighted, e->mean_row,
		       e->worst_row, (unsigned long long)e->worst, e->bound);
	tt_free(cores);
	return 0;
}

#define CORES ((const float *const *)cores)

int main(int argc, char **argv)
{
	const char *what = argv[1];
	struct tt_error e;
	size_t len, n;
	int ret;

	if (argc < 5)
		return 2;
	if (!strcmp(what, "auto")) {
		ret = tt_shape_auto(&s, atoi(argv[2]), strtoull(argv[3], NULL, 10),
				    strtoul(argv[4], NULL, 10), &err);
		if (!ret) {
			show("p", s.p, s.d);
			show("q", s.q, s.d);
		}
		return result(ret, NULL);
	}
	shape(argv[2]);
	if (!strcmp(what, "mutate")) {
		uint8_t *file = load(argv[3], &len), old;
		uint64_t rnd = 1;
		int refused = 0;

		for (int i = 0; i < atoi(argv[4]); i++) {
			char path[500];
			size_t at;

			rnd = rnd * 6364136223846793005u + 1442695040888963407u;
			/* the directory at the end more often than the rest */
			at = i % 2 ? len - 1 - (rnd >> 33) % 250 : (rnd >> 33) % len;
			old = file[at];
			file[at] = rnd >> 24;
			snprintf(path, sizeof(path), "%s.mut", argv[3]);
			save(path, file, i % 5 ? len : at);
			file[at] = old;
			refused += !!tt_import(&s, path, cores, &err);
			tt_free(cores);
		}
		printf("refusals %d\n", refused);
		ret = tt_import(&s, argv[3], cores, &err);
		free(file);
		if (!ret)
			show("r", s.r, s.d + 1);
		return result(ret, NULL);
	}
	if (!strcmp(what, "bytes")) {
		ret = tt_ranks_for_bytes(&s, strtoull(argv[3], NULL, 10), atoi(argv[4]), &err);
		if (!ret) {
			show("r", s.r, s.d + 1);
			printf("bytes %llu\n", (unsigned long long)tt_bytes(&s));
		}
		return result(ret, NULL);
	}
	if (!strcmp(what, "bag") || !strcmp(what, "time")) {
		uint64_t nrows = strtoull(argv[4], NULL, 10);
		uint32_t *ids = load(argv[5], &len), *offsets = load(argv[6], &n);
		uint32_t nbags = n / 4 - 1;
		size_t size = (size_t)nbags * tt_dim(&s) * 4;
		float *out = malloc(size), *weights = NULL;

		load_cores(argv[3]);
		if (!strcmp(what, "bag"))
			weights = load(argv[7], &len);
		memset(out, 0x5a, size);
		ret = tt_embedding_bag(&s, CORES, nrows, ids, offsets, nbags, weights, out, &err);
		if (!strcmp(what, "bag")) {
			save(argv[8], out, size);
		} else {
			struct timespec a, b;

			clock_gettime(CLOCK_MONOTONIC, &a);
			for (int i = 0; i < atoi(argv[7]); i++)
				tt_embedding_bag(&s, CORES, nrows, ids, offsets, nbags, NULL, out, &err);
			clock_gettime(CLOCK_MONOTONIC, &b);
			printf("seconds %.9g\n", (b.tv_sec - a.tv_sec + (b.tv_nsec - a.tv_nsec) / 1e9) /
						 atoi(argv[7]));
		}
		free(ids);
		free(offsets);
		free(weights);
		free(out);
		return result(ret, NULL);
	}
	if (!strcmp(what, "rows")) {
		n = strtoull(argv[5], NULL, 10) * tt_dim(&s);
		float *out = malloc(n * 4);

		load_cores(argv[3]);
		ret = tt_rows(&s, CORES, strtoull(argv[4], NULL, 10), n / tt_dim(&s), out, &err);
		if (!ret)
			save(argv[6], out, n * 4);
		free(out);
		return result(ret, NULL);
	}

	float *rows = load(argv[3], &len), *weight = load(argv[5], &n);
	uint64_t nrows = len / 4 / strtoul(argv[4], NULL, 10);

	if (!strcmp(what, "svd")) {
		ret = tt_check(&s, nrows, strtoul(argv[4], NULL, 10), &err);
		if (!ret)
			ret = tt_decompose(&s, rows, nrows, weight, cores, &e, &err);
		if (!ret)
			save_cores(argv[6]);
	} else if (!strcmp(what, "to")) {
		ret = tt_decompose_to(&s, rows, nrows, weight, atof(argv[7]), atoi(argv[8]), cores, &e,
				      &err);
		if (!ret) {
			save_cores(argv[6]);
			show("r", s.r, s.d + 1);
		}
	} else if (!strcmp(what, "measure")) {
		float *each = malloc(nrows * 4);
		char path[500];

		load_cores(argv[6]);
		ret = tt_measure(&s, CORES, rows, nrows, weight, each, &e, &err);
		snprintf(path, sizeof(path), "%s.rows", argv[6]);
		save(path, each, nrows * 4);
		free(each);
	} else {
		return 2;
	}
	free(rows);
	free(weight);
	return result(ret, &e);
}
