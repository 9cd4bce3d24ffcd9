// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Measures commands of several sizes on the simulated RTL and fits the coefficients of
 * userspace/plan/cost.h:
 *
 *   calibrate ORIGIN >calibration.json
 *
 * What is fitted is what a command adds to a list: the difference between lists of three and
 * of one, halved. Least squares of the relative errors, no coefficient negative.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost.h"
#include "rtl.h"

#define MAX_SAMPLES	160

struct fit {
	double f[MAX_SAMPLES][PLAN_FEATURES], y[MAX_SAMPLES];
	int n;
};

static struct rtl r;
static struct fit fits[PLAN_UNITS];
static struct { uint32_t batch, in, out; double y; } mlps[MAX_SAMPLES];
static double submits;
static int nsubmits;

static void emb(const uint32_t *a, bool fence)
{
	rtl_emb(&r, a[0], a[0] * a[1], a[2], fence);
}

static void tt(const uint32_t *a, bool fence)
{
	const uint32_t p[3] = { 20, 20, 20 };
	const uint16_t q[3] = { a[2], a[3], a[4] }, ranks[2] = { a[5], a[6] };

	rtl_tt(&r, a[0], a[0] * a[1], p, q, ranks, true, fence);
}

static void mlp(const uint32_t *a, bool fence)
{
	rtl_mlp(&r, a[0], a[1], a[2], CSREC_ACT_RELU, fence);
}

static void interact(const uint32_t *a, bool fence)
{
	rtl_interact(&r, a[0], a[3], false, a[1], a[2], a[2], fence);
}

static void copy_in(const uint32_t *a, bool fence)
{
	rtl_copy(&r, false, a[0], fence);
}

static void copy_out(const uint32_t *a, bool fence)
{
	rtl_copy(&r, true, a[0], fence);
}

static double measure(void (*add)(const uint32_t *, bool), const uint32_t *a, bool fence)
{
	double one, three;

	add(a, false);
	one = rtl_run(&r);
	for (int i = 0; i < 3; i++)
		add(a, fence);
	three = rtl_run(&r);
	submits += one - (three - one) / 2;
	nsubmits++;
	return (three - one) / 2;
}

static double *sample(enum plan_unit u, double y)
{
	struct fit *f = &fits[u];

	if (f->n == MAX_SAMPLES)
		abort();
	f->y[f->n] = y;
	return f->f[f->n++];
}

/* Projected coordinate descent: few unknowns, so its slowness does no harm. */
static double solve(const struct fit *s, double *x, double *worst)
{
	double sum = 0;

	memset(x, 0, sizeof(double) * PLAN_FEATURES);
	for (int round = 0; round < 20000; round++) {
		for (int j = 0; j < PLAN_FEATURES; j++) {
			double num = 0, den = 0;

			for (int i = 0; i < s->n; i++) {
				double rest = s->y[i], w = 1 / (s->y[i] * s->y[i]);

				for (int k = 0; k < PLAN_FEATURES; k++)
					rest -= k == j ? 0 : x[k] * s->f[i][k];
				num += w * rest * s->f[i][j];
				den += w * s->f[i][j] * s->f[i][j];
			}
			if (den > 0)
				x[j] = fmax(0, num / den);
		}
	}
	*worst = 0;
	for (int i = 0; i < s->n; i++) {
		double e = -s->y[i];

		for (int k = 0; k < PLAN_FEATURES; k++)
			e += x[k] * s->f[i][k];
		e /= s->y[i];
		sum += e * e;
		*worst = fmax(*worst, fabs(e));
	}
	return sum;
}

static void measure_bags(void)
{
	static const uint32_t tts[][5] = {
		{ 2, 2, 4, 8, 8 }, { 4, 4, 4, 8, 8 }, { 4, 4, 4, 16, 16 }, { 2, 2, 4, 16, 16 },
		{ 4, 4, 4, 32, 32 }, { 2, 4, 4, 12, 20 }, { 4, 8, 4, 16, 8 }, { 2, 2, 2, 4, 4 },
		{ 2, 3, 3, 6, 6 },
	};
	static const uint32_t dims[] = { 4, 16, 32, 48, 64, 128, 256 };
	static const uint32_t pools[] = { 1, 4, 20 };
	static const uint32_t nbags[] = { 8, 40 };

	for (size_t b = 0; b < 2; b++) {
		for (size_t p = 0; p < 3; p++) {
			uint32_t a[7] = { nbags[b], pools[p] };

			for (size_t d = 0; d < sizeof(dims) / sizeof(*dims); d++) {
				double y;

				a[2] = dims[d];
				y = measure(emb, a, false);
				plan_features_emb(a[0], a[0] * a[1], a[2], sample(PLAN_EMB, y));
			}
			for (size_t i = 0; b + p < 3 && i < sizeof(tts) / sizeof(*tts); i++) {
				uint16_t q[3] = { tts[i][0], tts[i][1], tts[i][2] };
				uint16_t ranks[2] = { tts[i][3], tts[i][4] };
				double y;

				memcpy(a + 2, tts[i], sizeof(tts[i]));
				y = measure(tt, a, false);
				plan_features_tt(a[0], a[0] * a[1], q, ranks, sample(PLAN_TT, y));
			}
		}
	}
}

static void measure_dense(void)
{
	static const uint32_t widths[] = { 13, 64, 256, 512 };
	static const uint32_t shapes[][3] = {	/* nvec, dim, dot */
		{ 27, 16, 1 }, { 9, 32, 1 }, { 33, 64, 1 }, { 11, 32, 0 }, { 27, 16, 0 }, { 4, 8, 1 },
		{ 9, 128, 1 }, { 2, 64, 1 }, { 33, 64, 0 }, { 50, 32, 1 },
	};
	static const uint32_t batches[] = { 4, 16, 40 };

	for (size_t b = 0; b < 3; b++) {
		uint32_t a[4] = { batches[b] };

		for (size_t i = 0; i < 4; i++) {
			for (size_t o = 0; o < 3; o++) {
				uint32_t m[3] = { batches[b], widths[i], o ? widths[o] : 1 };

				mlps[fits[PLAN_MLP].n].batch = m[0];
				mlps[fits[PLAN_MLP].n].in = m[1];
				mlps[fits[PLAN_MLP].n].out = m[2];
				sample(PLAN_MLP, measure(mlp, m, true));
			}
		}
		for (size_t s = 0; b < 2 && s < sizeof(shapes) / sizeof(*shapes); s++) {
			double y;

			memcpy(a + 1, shapes[s], sizeof(shapes[s]));
			y = measure(interact, a, true);
			plan_features_interact(a[0], a[3], false, a[1], a[2], a[2],
					       sample(PLAN_INTERACT, y));
		}
	}
	for (uint32_t len = 256; len <= 1u << 18; len *= 4) {
		plan_features_copy(len, sample(PLAN_COPY_IN, measure(copy_in, &len, true)));
		plan_features_copy(len, sample(PLAN_COPY_OUT, measure(copy_out, &len, true)));
	}
}

int main(int argc, char **argv)
{
	struct plan_cost c = { .weight_beats = 4096 };
	double worst, best = INFINITY, row = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: calibrate ORIGIN\n");
		return 2;
	}
	rtl_open(&r);
	measure_bags();
	measure_dense();
	/* where reading a weight row takes longer than using it: the best of a few */
	for (c.mlp_row = 0; c.mlp_row <= 120; c.mlp_row += 4) {
		struct fit *f = &fits[PLAN_MLP];
		double x[PLAN_FEATURES], sum;

		for (int i = 0; i < f->n; i++)
			plan_features_mlp(&c, mlps[i].batch, mlps[i].in, mlps[i].out, f->f[i]);
		sum = solve(f, x, &worst);
		if (sum < best) {
			best = sum;
			row = c.mlp_row;
		}
	}
	c.mlp_row = row;
	for (int i = 0; i < fits[PLAN_MLP].n; i++)
		plan_features_mlp(&c, mlps[i].batch, mlps[i].in, mlps[i].out, fits[PLAN_MLP].f[i]);
	printf("{\n  \"csrec_calibration\": 1,\n  \"origin\": \"%s\",\n  \"model\": \"%s\",\n"
	       "  \"submit\": %.1f,\n", argv[1], csrec_model_name(r.d.m), fmax(0, submits / nsubmits));
	for (int u = 0; u < PLAN_UNITS; u++) {
		double x[PLAN_FEATURES], sum = solve(&fits[u], x, &worst);

		printf("  \"%s\": {", plan_unit_names[u]);
		for (int i = 0; plan_feature_names[u][i]; i++)
			printf(" \"%s\": %.6g,", plan_feature_names[u][i], x[i]);
		if (u == PLAN_MLP)
			printf(" \"row_wait\": %g, \"weight_beats\": %u,", row, c.weight_beats);
		printf("\n    \"samples\": %d, \"rms_error\": %.4f, \"worst_error\": %.4f }%s\n",
		       fits[u].n, sqrt(sum / fits[u].n), worst, u + 1 < PLAN_UNITS ? "," : "");
		if (getenv("CALIBRATE_VERBOSE"))
			for (int i = 0; i < fits[u].n; i++) {
				double e = 0;

				for (int k = 0; k < PLAN_FEATURES; k++)
					e += x[k] * fits[u].f[i][k];
				fprintf(stderr, "%s %.0f %.0f %+.3f :", plan_unit_names[u], fits[u].y[i], e,
					e / fits[u].y[i] - 1);
				for (int k = 0; k < PLAN_FEATURES; k++)
					fprintf(stderr, " %.0f", fits[u].f[i][k]);
				fputc('\n', stderr);
			}
	}
	puts("}");
	rtl_close(&r);
	return 0;
}
