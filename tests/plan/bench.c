// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What `make bench-plan` reports: how long plans take and how near they are to the bound, and
 * predicted cycles against the simulated RTL.
 *
 *   bench CALIBRATION OUT.json
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>

#include "plan.h"
#include "rtl.h"
#include "workload.h"

static struct plan_cost cost;
static struct rtl r;

static void die(const char *what, const char *why)
{
	fprintf(stderr, "bench: %s: %s\n", what, why);
	exit(1);
}

static json_t *number(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

static void solve(struct plan_problem *p, struct plan_solution *s, struct plan_certificate *cert,
		  double *baseline, double limit, const char *name)
{
	const struct plan_options o = { PLAN_HIGHS, limit, p->ndevices > 1 ? 1e-3 : 1e-6 };
	struct csm_err err;

	if (plan_prepare(p, &err) || plan_solution_init(s, p, &err) ||
	    plan_solve(p, &o, s, cert, baseline, &err))
		die(name, err.msg);
}

/* onchip: of each device, for TT forms to choose from; 0: none are offered. */
static void bench_case(json_t *cases, const char *name, uint32_t tables, uint32_t devices,
		       double dram, double onchip)
{
	double baseline[PLAN_SOLVERS];
	struct plan_certificate cert;
	struct plan_problem p;
	struct plan_solution s;
	json_t *b = json_object();

	workload_make(&p, workload_find(name), tables, devices, dram, 64, &cost);
	if (onchip)
		workload_add_tts(&p, onchip);
	solve(&p, &s, &cert, baseline, 60, name);
	for (int i = 1; i < PLAN_SOLVERS; i++)
		json_object_set_new(b, plan_solver_names[i], number(baseline[i]));
	json_array_append_new(cases, json_pack("{s:s, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:b, s:s, s:o}",
		"name", name, "tables", (int)p.ntables, "devices", (int)devices, "dram_bytes", dram,
		"tt_onchip_bytes", onchip,
		"seconds", cert.seconds, "gap", cert.gap, "objective", s.objective, "bound", cert.bound,
		"optimal", cert.optimal, "start", cert.start, "baselines", b));
	printf("%-9s%s %4u tables %u devices: %7.2f s, gap %8.5f %%, %10.1f us; best baseline but recshard %.2f times\n",
	       name, onchip ? " TT" : "   ", p.ntables, devices, cert.seconds, cert.gap * 100, s.objective * 1e6,
	       fmin(fmin(baseline[1], baseline[2]), fmin(fmin(baseline[3], baseline[5]), baseline[6])) /
	       s.objective);
	fflush(stdout);
	plan_solution_free(&s);
	plan_problem_free(&p);
}

static void add_lookups(const struct plan_problem *p, const struct plan_solution *s, uint32_t d,
			bool cold)
{
	for (uint32_t t = 0; t < p->ntables; t++) {
		const struct plan_choice *c = &p->choices[t][s->choice[t]];

		if (s->device[t] == d && (c->slots != 0) == cold)
			rtl_emb(&r, p->batch, rint(p->batch * p->tables[t].pooling), p->tables[t].dim, false);
	}
}

/* The slowest device's batch on the RTL, the drive's part left out. */
static void predict(json_t *list, const char *name, uint32_t tables, uint32_t devices,
		    uint32_t batch)
{
	struct plan_certificate cert;
	struct plan_problem p;
	struct plan_solution s;
	uint32_t slow = 0, dims = 0, all = 0;
	double predicted, simulated;
	char scale[96];

	workload_make(&p, workload_find(name), tables, devices, 1 << 30, batch, &cost);
	solve(&p, &s, &cert, NULL, 5, name);
	for (uint32_t d = 1; d < devices; d++)
		if (s.load[d].engine_s > s.load[slow].engine_s)
			slow = d;
	for (uint32_t t = 0; t < p.ntables; t++) {
		all += p.tables[t].dim;
		dims += s.device[t] == slow ? p.tables[t].dim : 0;
	}
	add_lookups(&p, &s, slow, false);
	add_lookups(&p, &s, slow, true);
	if (devices > 1 && dims)
		rtl_copy(&r, true, 4ull * batch * dims, true);
	if (s.compute[slow]) {
		uint32_t n = s.load[slow].samples;

		if (devices > 1)
			rtl_copy(&r, false, 4ull * n * all, true);
		for (uint32_t i = 0; i < p.nops; i++) {
			const struct plan_op *o = &p.ops[i];

			if (o->unit == PLAN_MLP)
				rtl_mlp(&r, n, o->in, o->out, CSREC_ACT_RELU, true);
			else
				rtl_interact(&r, n, o->dot, o->self, o->nvec, o->dim, o->vec_step, true);
		}
	}
	predicted = s.load[slow].engine_s * p.devices[slow].clock_hz;
	simulated = rtl_run(&r);
	snprintf(scale, sizeof(scale), "batch %u, %u of %u tables, slowest of %u devices, rows folded into 2 MiB",
		 batch, p.ntables, workload_find(name)->ntables, devices);
	json_array_append_new(list, json_pack("{s:s, s:i, s:f, s:f, s:f, s:s}", "workload", name,
		"devices", (int)devices, "predicted_cycles", predicted, "simulated_cycles", simulated,
		"error", predicted / simulated - 1, "scale", scale));
	printf("%-9s %u devices: predicted %9.0f cycles, simulated %9.0f, error %+.1f %% (%s)\n", name,
	       devices, predicted, simulated, (predicted / simulated - 1) * 100, scale);
	fflush(stdout);
	plan_solution_free(&s);
	plan_problem_free(&p);
}

int main(int argc, char **argv)
{
	static const struct { const char *name; uint32_t tables, devices, batch; } predictions[] = {
		{ "rm1", 0, 1, 4 }, { "rm1", 0, 2, 8 }, { "rm2", 0, 4, 4 }, { "rm2", 0, 8, 8 },
		{ "rm3", 0, 1, 4 }, { "rm3", 0, 4, 16 }, { "criteo", 0, 1, 16 }, { "criteo", 0, 2, 32 },
		{ "criteo", 0, 4, 64 }, { "terabyte", 0, 1, 16 }, { "terabyte", 0, 2, 32 },
		{ "dlrm2021", 64, 4, 8 }, { "dlrm2021", 64, 8, 16 }, { "dlrm2022", 64, 8, 8 },
	};
	json_t *cases = json_array(), *prediction = json_array(), *root;
	struct csm_err err;

	if (argc != 3) {
		fprintf(stderr, "usage: bench CALIBRATION OUT.json\n");
		return 2;
	}
	if (plan_cost_load(&cost, argv[1], &err))
		die(argv[1], err.msg);
	bench_case(cases, "criteo", 0, 1, 1 << 29, 0);
	bench_case(cases, "criteo", 0, 1, 1 << 26, 1 << 20);
	bench_case(cases, "criteo", 0, 1, 1 << 25, 4 << 20);
	bench_case(cases, "terabyte", 0, 1, 4e9, 0);
	bench_case(cases, "terabyte", 0, 1, 1e9, 1 << 20);
	bench_case(cases, "dlrm2021", 0, 8, 4294967296., 0);
	bench_case(cases, "dlrm2022", 0, 8, 4294967296., 0);
	for (uint32_t n = 50; n <= 400; n *= 2)
		for (uint32_t d = 1; d <= 8; d *= 2)
			bench_case(cases, "dlrm2021", n, d, 4294967296. * 8 / d * n / 856, 0);
	rtl_open(&r);
	for (size_t i = 0; i < sizeof(predictions) / sizeof(*predictions); i++)
		predict(prediction, predictions[i].name, predictions[i].tables, predictions[i].devices,
			predictions[i].batch);
	rtl_close(&r);
	root = json_pack("{s:s, s:o, s:o}", "calibration", cost.origin, "cases", cases, "prediction",
			 prediction);
	if (!root || json_dump_file(root, argv[2], JSON_INDENT(2)))
		die(argv[2], "cannot be written");
	json_decref(root);
	return 0;
}
