// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <jansson.h>
#include <csm.h>
#include <output.h>
#include <tier.h>
#include "models.h"

/* tools/plan/calibration.json */
static const char calibration[] = {
#include "calibration.inc"
};

typedef unsigned long long ull;

struct plan_args {
	const char *model, *stats, *devices, *out, *explain, *report, *calibration;
	const char *old;		/* replan: the plan so far */
	struct plan_options o;
	uint64_t batch, block;
	double tt_error;
};

static int parse_double(const struct cli *cli, const char *opt, const char *arg, double min,
			double max, double *x)
{
	char *end;

	errno = 0;
	*x = strtod(arg, &end);
	if (errno || end == arg || *end || !(*x >= min && *x <= max))
		return cli_fail(cli, CLI_USAGE, "%s: '%s' is not a number in %g..%g", opt, arg, min, max);
	return 0;
}

/* Whole or not at all: written beside it and renamed. */
static int write_plan(const struct cli *cli, json_t *root, const char *path)
{
	struct csm_err err;
	int fd, bad;
	char *tmp;

	fd = csm_temp_open(path, &tmp, &err);
	if (fd < 0)
		return models_fail(cli, fd, &err);
	bad = json_dumpfd(root, fd, JSON_INDENT(2)) || fsync(fd) || rename(tmp, path);
	if (bad) {
		bad = cli_fail(cli, CLI_FAIL, "%s: %s", path, strerror(errno));
		unlink(tmp);
	}
	close(fd);
	free(tmp);
	return bad;
}

/* What the forms that s has really do may break the bound: then another plan is sought. */
static int solve_measured(const struct plan_args *a, struct plan_problem *p,
			  const struct csm_model *m, const struct csm_stats_table *const *stats,
			  struct plan_cores *cores, struct plan_solution *s,
			  struct plan_certificate *cert, double *baseline, struct csm_err *err)
{
	int ret;

	do {
		ret = plan_solve(p, &a->o, s, cert, baseline, err);
		if (!ret)
			ret = plan_measure_tts(p, s, m, stats, cores, err);
	} while (!ret && s->excess);
	return ret;
}

/* The overlay first: a plan that is there has all it names. */
static int write_overlay(const struct plan_args *a, struct plan_result *r,
			 const struct csm_model *m, const struct csm_stats_table *const *stats,
			 const struct plan_cores *cores, uint32_t *const *orders, char **path,
			 struct csm_err *err)
{
	const char *slash;

	if (!plan_has_split(r->p, r->s))
		return 0;
	if (asprintf(path, "%s.overlay", a->out) < 0) {
		*path = NULL;
		return csm_fail(err, -ENOMEM, "out of memory");
	}
	slash = strrchr(*path, '/');
	r->overlay = slash ? slash + 1 : *path;
	return plan_write_overlay(r->p, r->s, m, stats, cores, orders, *path, &r->overlay_crc, err);
}

static json_t *migration_json(const struct plan_migration *mig)
{
	static const char *const tier[] = { "dram", "onchip", "nvme" };
	json_t *rows = json_object(), *bytes = json_object(), *before = json_object();
	json_t *after = json_object();

	for (int a = 0; a < PLAN_TIERS; a++) {
		for (int b = 0; b < PLAN_TIERS; b++) {
			char key[32];

			if (a == b)
				continue;
			snprintf(key, sizeof(key), "%s_to_%s", tier[a], tier[b]);
			json_object_set_new(rows, key, json_integer(mig->rows[a][b]));
		}
		json_object_set_new(bytes, tier[a], json_integer(mig->bytes[a]));
		json_object_set_new(before, tier[a], json_real(mig->accesses[0][a]));
		json_object_set_new(after, tier[a], json_real(mig->accesses[1][a]));
	}
	return json_pack("{s:o, s:o, s:{s:o, s:o}}", "rows", rows, "bytes", bytes, "accesses",
			 "before", before, "after", after);
}

static void migration_print(const struct plan_migration *mig)
{
	const uint64_t (*n)[PLAN_TIERS] = mig->rows;

	printf("rows into DRAM: %llu from the drive, %llu from TT form; into TT form: %llu, %llu from DRAM; onto the drive: %llu from DRAM, %llu from TT form\n",
	       (ull)n[PLAN_NVME][PLAN_DRAM], (ull)n[PLAN_ONCHIP][PLAN_DRAM],
	       (ull)n[PLAN_NVME][PLAN_ONCHIP], (ull)n[PLAN_DRAM][PLAN_ONCHIP],
	       (ull)n[PLAN_DRAM][PLAN_NVME], (ull)n[PLAN_ONCHIP][PLAN_NVME]);
	printf("to write: %.1f KiB in DRAM, %.1f KiB on chip, %.1f KiB on the drive\n",
	       mig->bytes[PLAN_DRAM] / 1024., mig->bytes[PLAN_ONCHIP] / 1024.,
	       mig->bytes[PLAN_NVME] / 1024.);
	for (int i = 0; i < 2; i++) {
		const double *a = mig->accesses[i];
		double all = fmax(a[0] + a[1] + a[2], 1);

		printf("accesses %s: %.1f %% DRAM, %.1f %% on chip, %.1f %% drive\n",
		       i ? "with this plan" : "by the plan so far", 100 * a[0] / all, 100 * a[1] / all,
		       100 * a[2] / all);
	}
}

static int solve(const struct cli *cli, const struct plan_args *a, struct plan_problem *p,
		 const struct csm_model *m, const struct csm_stats_table *const *stats,
		 const struct csm_placement *old)
{
	uint32_t **orders = NULL;
	struct plan_migration mig;
	double baseline[PLAN_SOLVERS];
	struct plan_certificate cert;
	struct plan_solution s = { 0 };
	struct plan_result r = { p, &s, &cert, baseline, a->o.solver, NULL, 0 };
	struct plan_cores *cores = NULL;
	char *overlay = NULL;
	uint32_t explain = 0;
	struct csm_err err;
	json_t *root;
	int ret;

	if (a->explain) {
		while (explain < p->ntables && strcmp(p->tables[explain].name, a->explain))
			explain++;
		if (explain == p->ntables)
			return cli_fail(cli, CLI_USAGE, "--explain: the model has no table %s", a->explain);
	}
	ret = plan_make_tts(p, m, stats, &err);
	if (!ret)
		ret = plan_prepare(p, &err);
	if (!ret) {
		cores = plan_cores_new(p, &err);
		ret = cores ? plan_solution_init(&s, p, &err) : -ENOMEM;
	}
	if (!ret)
		ret = solve_measured(a, p, m, stats, cores, &s, &cert, baseline, &err);
	if (!ret)
		plan_spare_slots(p, &s);
	if (!ret && a->report)
		ret = plan_html(&r, a->report, &err);
	if (!ret && old) {
		orders = calloc(p->ntables + 1, sizeof(*orders));
		ret = orders ? plan_migrate(p, &s, m, stats, cores, old, orders, &mig, &err) :
			       csm_fail(&err, -ENOMEM, "out of memory");
	}
	if (!ret)
		ret = write_overlay(a, &r, m, stats, cores, orders, &overlay, &err);
	for (uint32_t t = 0; orders && t < p->ntables; t++)
		free(orders[t]);
	free(orders);
	plan_cores_free(cores, p);
	if (ret) {
		plan_solution_free(&s);
		free(overlay);
		return models_fail(cli, ret, &err);
	}
	root = plan_to_json(&r);
	if (root && old)
		json_object_set_new(root, "migration", migration_json(&mig));
	ret = root ? write_plan(cli, root, a->out) : cli_fail(cli, CLI_FAIL, "out of memory");
	if (!ret && cli->json) {
		json_dumpf(root, stdout, JSON_INDENT(2));
		putchar('\n');
	} else if (!ret) {
		plan_print(&r, stdout);
		if (old)
			migration_print(&mig);
	}
	if (!ret && a->explain)
		plan_explain(&r, explain, cli->json ? stderr : stdout);
	json_decref(root);
	plan_solution_free(&s);
	free(overlay);
	return ret;
}

static int plan(const struct cli *cli, const struct plan_args *a)
{
	struct plan_problem p = { .batch = a->batch, .block = a->block, .tt_error = a->tt_error };
	const struct csm_stats_table **by_table = NULL;
	struct csm_model m = { 0 };
	struct csm_placement old = { 0 };
	struct csm_stats stats = { 0 };
	struct csm_err err, why;
	int ret = a->calibration ? plan_cost_load(&p.cost, a->calibration, &err) :
		  plan_cost_parse(&p.cost, calibration, sizeof(calibration), "built-in calibration",
				  &err);

	if (!ret)
		ret = plan_load_devices(&p, a->devices, &err);
	if (!ret)
		ret = csm_model_load(&m, a->model, &err);
	if (!ret)
		ret = plan_from_model(&p, &m, &err);
	if (!ret)
		ret = plan_load_stats(&p, a->stats, &err);
	if (!ret)
		ret = csm_stats_load(&stats, a->stats, &err);
	if (!ret) {
		by_table = calloc(m.ntables + 1, sizeof(*by_table));
		ret = by_table ? plan_match_stats(&p, &stats, by_table, &why) : -ENOMEM;
		if (ret)
			csm_fail(&err, ret, "%s: %s", a->stats, by_table ? why.msg : "out of memory");
	}
	if (!ret && a->old) {
		ret = csm_placement_load(&old, a->old, &m, &err);
		if (!ret && p.ndevices != 1)
			ret = csm_fail(&err, -EINVAL, "%s: has %u devices, replan takes one", a->devices,
				       p.ndevices);
	}
	ret = ret ? models_fail(cli, ret, &err) : solve(cli, a, &p, &m, by_table, a->old ? &old : NULL);
	csm_placement_free(&old);
	free(by_table);
	csm_stats_free(&stats);
	plan_problem_free(&p);
	csm_model_free(&m);
	return ret;
}

static int run_as(struct cli *cli, int argc, char **argv, bool again)
{
	static const struct option longopts[] = {
		{ "model", required_argument, NULL, 'm' },
		{ "plan", required_argument, NULL, 'p' },
		{ "stats", required_argument, NULL, 's' },
		{ "devices", required_argument, NULL, 'D' },
		{ "output", required_argument, NULL, 'o' },
		{ "solver", required_argument, NULL, 'S' },
		{ "time-limit", required_argument, NULL, 't' },
		{ "gap", required_argument, NULL, 'g' },
		{ "batch", required_argument, NULL, 'b' },
		{ "block", required_argument, NULL, 'B' },
		{ "tt-error", required_argument, NULL, 'e' },
		{ "explain", required_argument, NULL, 'x' },
		{ "report", required_argument, NULL, 'r' },
		{ "calibration", required_argument, NULL, 'c' },
		{ NULL, 0, NULL, 0 },
	};
	struct plan_args a = { .o = { PLAN_HIGHS, 60, 1e-4 }, .batch = 64, .block = 4096,
		.tt_error = 0.01 };
	int opt, code = 0;

	while ((opt = cli_getopt(cli, argc, argv, longopts, &code)) != CLI_END) {
		switch (opt) {
		case 'm':
			a.model = optarg;
			break;
		case 'p':
			if (!again)
				return cli_fail(cli, CLI_USAGE, "--plan: csrec replan takes it");
			a.old = optarg;
			break;
		case 's':
			a.stats = optarg;
			break;
		case 'D':
			a.devices = optarg;
			break;
		case 'o':
			a.out = optarg;
			break;
		case 'S':
			for (a.o.solver = 0; a.o.solver < PLAN_SOLVERS; a.o.solver++)
				if (!strcmp(optarg, plan_solver_names[a.o.solver]))
					break;
			if (a.o.solver == PLAN_SOLVERS)
				code = cli_fail(cli, CLI_USAGE, "--solver: there is no \"%s\"", optarg);
			break;
		case 't':
			code = parse_double(cli, "--time-limit", optarg, 0.01, 1e6, &a.o.time_limit);
			break;
		case 'g':
			code = parse_double(cli, "--gap", optarg, 0, 1, &a.o.gap);
			break;
		case 'b':
			code = cli_number(cli, "--batch", optarg, 1, 65536, &a.batch);
			break;
		case 'B':
			code = cli_number(cli, "--block", optarg, CSM_BLOCK_MIN, CSM_BLOCK_MAX, &a.block);
			if (!code && a.block & (a.block - 1))
				code = cli_fail(cli, CLI_USAGE, "--block: not a power of two");
			break;
		case 'e':
			code = parse_double(cli, "--tt-error", optarg, 0, 10, &a.tt_error);
			break;
		case 'x':
			a.explain = optarg;
			break;
		case 'r':
			a.report = optarg;
			break;
		case 'c':
			a.calibration = optarg;
			break;
		default:
			return code;
		}
		if (code)
			return code;
	}
	if (cli_no_args(cli, argc, argv))
		return CLI_USAGE;
	if (!a.model || !a.stats || !a.devices || !a.out)
		return cli_fail(cli, CLI_USAGE, "--model, --stats, --devices and --output are needed");
	if (again && !a.old)
		return cli_fail(cli, CLI_USAGE, "--plan, the plan so far, is needed");
	if (cli_same_file(a.model, a.out) || cli_same_file(a.stats, a.out) ||
	    cli_same_file(a.devices, a.out))
		return cli_fail(cli, CLI_USAGE, "%s: is read, and would be overwritten", a.out);
	if (models_same_beside(a.model, a.out, ".overlay") || models_same_beside(a.stats, a.out, ".overlay") ||
	    models_same_beside(a.devices, a.out, ".overlay"))
		return cli_fail(cli, CLI_USAGE, "%s.overlay: is read, and would be overwritten", a.out);
	if (a.report && (!strcmp(a.report, a.out) || cli_same_file(a.report, a.out)))
		return cli_fail(cli, CLI_USAGE, "%s: is the plan, and the report as well", a.out);
	if (models_same_beside(a.out, a.stats, ".order"))
		return cli_fail(cli, CLI_USAGE, "%s: belongs to %s, and would be overwritten", a.out, a.stats);
	return plan(cli, &a);
}

static int run(struct cli *cli, int argc, char **argv)
{
	return run_as(cli, argc, argv, false);
}

static int run_again(struct cli *cli, int argc, char **argv)
{
	return run_as(cli, argc, argv, true);
}

const struct command cmd_plan = {
	.name = "plan",
	.help = "plan --model FILE --stats FILE --devices FILE -o PLAN.json [OPTION]...\n\n"
		"Decides for each table which of its rows live in device DRAM, which in tensor-train\n"
		"(TT) form on chip and which on the drive, on which device, so that the slowest device\n"
		"is done soonest; proves how far from the best the plan can be. Writes PLAN.json and\n"
		"PLAN.json.overlay (order of rows, TT cores), which csrec infer and install-cold take.\n"
		"userspace/plan/MODEL.md has the mathematics.\n\n"
		"  --model FILE      model container\n"
		"  --stats FILE      access statistics\n"
		"  --devices FILE    what the devices are\n"
		"  -o, --output FILE the plan, a placement with more in it\n"
		"  --solver NAME     highs (default), or a baseline: greedy-size, greedy-lookups,\n"
		"                    greedy-size-lookups, recshard, all-nvme, hot-dram\n"
		"  --time-limit S    seconds for the solver (default 60)\n"
		"  --gap G           relative distance from the bound that is enough (default 1e-4)\n"
		"  --batch N         samples a batch (default 64)\n"
		"  --block N         bytes read from the drive at a time (default 4096)\n"
		"  --tt-error E      most error of TT rows, root mean square relative to the rows,\n"
		"                    weighted by access (default 0.01; 0: no rows in TT form but those\n"
		"                    the model has so)\n"
		"  --explain TABLE   why the table lies where it does\n"
		"  --report FILE     drawings as one HTML page\n"
		"  --calibration FILE  another device's cycles than the built-in ones\n",
	.run = run,
};

const struct command cmd_replan = {
	.name = "replan",
	.help = "replan --plan OLD.json --model FILE --stats FILE --devices FILE -o PLAN.json\n"
		"                [OPTION]...\n\n"
		"Plans anew, by new statistics, and says what it takes to get there from OLD.json: rows\n"
		"that change tier, bytes to write to each, and how accesses would go by either plan.\n"
		"Rows that stay in a tier keep their places there as far as that goes.\n\n"
		"  --plan OLD.json   the plan so far, of the same model, with its overlay\n"
		"  --model FILE      and all other options: as csrec plan has them\n"
		"  --stats FILE      new access statistics\n"
		"  --devices FILE    the one device\n"
		"  -o, --output FILE the new plan, which may replace the old one\n",
	.run = run_again,
};
