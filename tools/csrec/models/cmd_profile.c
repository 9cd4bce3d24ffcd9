// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <stats.h>
#include <trace.h>
#include "models.h"

typedef unsigned long long ull;

#define PAIRS		100	/* most that are told */
#define PAIR_IDS	4	/* of a bag, the first */

/* A column of the trace counts for a table: one each, or as the model's lookups have it. */
struct use {
	uint32_t column, table;
};

struct profile {
	const struct cli *cli;
	const char *format, *input, *output, *model_path;
	uint64_t rows, memory, limit, lookups, samples, seed, pairs_every;
	bool strict;

	struct csm_model model;
	bool have_model;
	struct st_source *src;
	struct use *uses;
	uint32_t nuses;
	struct st_counter **counters;	/* [tables] */
	uint64_t *bag;			/* [tables] accesses of the sample at hand */
	struct st_pairs *pairs;
	struct st_profile out;
};

static int open_dist(struct profile *p, struct csm_err *err)
{
	uint64_t rows[ST_TABLES_MAX] = { 0 };
	uint32_t lookups[ST_TABLES_MAX];
	struct st_shape shape = {
		.ntables = st_files(p->input), .rows = rows, .lookups = lookups,
		.samples = p->samples, .seed = p->seed,
	};

	for (uint32_t t = 0; t < shape.ntables; t++)
		lookups[t] = p->lookups;
	if (!shape.ntables)
		return csm_fail(err, -ENOENT, "%s: no such file for table 0", p->input);
	p->src = st_gen_dist(p->input, &shape, err);
	return p->src ? 0 : -EBADMSG;
}

static int open_source(struct profile *p)
{
	struct csm_err err;

	if (!strcmp(p->format, "criteo"))
		p->src = st_open_criteo(p->input, p->strict, &err);
	else if (!strcmp(p->format, "mlperf"))
		p->src = st_open_mlperf(p->input, &err);
	else if (!strcmp(p->format, "npz"))
		p->src = st_open_npz(p->input, &err);
	else if (!strcmp(p->format, "dlrm-trace"))
		p->src = st_open_trace(p->input, p->lookups, &err);
	else if (!strcmp(p->format, "dlrm-dist"))
		open_dist(p, &err);
	else
		return cli_fail(p->cli, CLI_USAGE,
				"--format: \"%s\" is none of criteo, mlperf, npz, dlrm-trace, dlrm-dist",
				p->format);
	return p->src ? 0 : cli_fail(p->cli, CLI_BAD_INPUT, "%s", err.msg);
}

static int make_uses(struct profile *p)
{
	const struct csm_model *m = &p->model;
	uint32_t columns = st_tables(p->src);

	p->nuses = p->have_model ? m->nemb : columns;
	p->uses = calloc(p->nuses + 1, sizeof(*p->uses));
	if (!p->uses)
		return cli_fail(p->cli, CLI_FAIL, "out of memory");
	for (uint32_t u = 0; u < p->nuses; u++) {
		/* a model's lookups come first among its nodes */
		p->uses[u] = p->have_model ? (struct use){ m->nodes[u].column, m->nodes[u].param } :
			     (struct use){ u, u };
		if (p->uses[u].column >= columns)
			return cli_fail(p->cli, CLI_BAD_INPUT,
					"%s: the trace has %u columns of ids, %s reads column %u", p->input,
					columns, p->model_path, p->uses[u].column);
	}
	return 0;
}

static int make_counters(struct profile *p)
{
	uint32_t n = p->have_model ? p->model.ntables : st_tables(p->src);

	p->counters = calloc(n + 1, sizeof(*p->counters));
	p->bag = calloc(n + 1, sizeof(*p->bag));
	p->out.tables = calloc(n + 1, sizeof(*p->out.tables));
	p->out.pairs = calloc(PAIRS, sizeof(*p->out.pairs));
	p->pairs = p->pairs_every ? st_pairs_new() : NULL;
	if (!p->counters || !p->bag || !p->out.tables || !p->out.pairs ||
	    (p->pairs_every && !p->pairs))
		return cli_fail(p->cli, CLI_FAIL, "out of memory");
	p->out.ntables = n;
	for (uint32_t t = 0; t < n; t++) {
		struct st_table *tab = &p->out.tables[t];
		uint64_t share = p->memory / n;

		strcpy(tab->name, p->have_model ? p->model.tables[t].name : st_name(p->src, t));
		tab->rows = p->have_model ? p->model.tables[t].nrows :
			    p->rows ? p->rows : st_rows(p->src, t);
		p->counters[t] = st_counter_new(tab->rows, share < ST_MIN_BYTES ? ST_MIN_BYTES : share);
		if (!p->counters[t])
			return cli_fail(p->cli, CLI_FAIL, "out of memory");
	}
	return 0;
}

static int count(struct profile *p, const struct st_sample *s)
{
	memset(p->bag, 0, p->out.ntables * sizeof(*p->bag));
	for (uint32_t u = 0; u < p->nuses; u++) {
		uint32_t t = p->uses[u].table, len = s->len[p->uses[u].column];
		const uint64_t *ids = s->ids[p->uses[u].column];
		struct st_table *tab = &p->out.tables[t];

		for (uint32_t k = 0; k < len; k++) {
			uint64_t id = tab->rows ? ids[k] % tab->rows : ids[k];

			if (id > UINT32_MAX)
				return cli_fail(p->cli, CLI_BAD_INPUT,
						"%s: sample %llu: id %llu of table %s has more than 32 bits; --rows or --model reduce ids",
						p->input, (ull)p->out.samples, (ull)id, tab->name);
			if (!st_counter_add(p->counters[t], id))
				return cli_fail(p->cli, CLI_FAIL, "out of memory");
		}
		p->bag[t] += len;
		if (tab->pooling_max < p->bag[t])
			tab->pooling_max = p->bag[t];
	}
	return 0;
}

static uint32_t id_of(const struct profile *p, const struct st_sample *s, uint32_t use, uint32_t k)
{
	uint64_t rows = p->out.tables[p->uses[use].table].rows;
	uint64_t id = s->ids[p->uses[use].column][k];

	return rows ? id % rows : id;
}

static uint32_t pair_ids(const struct profile *p, const struct st_sample *s, uint32_t use)
{
	uint32_t len = s->len[p->uses[use].column];

	return len < PAIR_IDS ? len : PAIR_IDS;
}

static void count_pairs(struct profile *p, const struct st_sample *s)
{
	p->out.pair_samples++;
	for (uint32_t a = 0; a < p->nuses; a++)
		for (uint32_t b = a + 1; b < p->nuses; b++) {
			if (p->uses[a].table == p->uses[b].table)
				continue;
			for (uint32_t i = 0; i < pair_ids(p, s, a); i++)
				for (uint32_t k = 0; k < pair_ids(p, s, b); k++)
					st_pairs_add(p->pairs, p->uses[a].table, id_of(p, s, a, i),
						     p->uses[b].table, id_of(p, s, b, k));
		}
}

static int read_all(struct profile *p)
{
	struct st_sample s;
	struct csm_err err;
	int ret;

	while (p->out.samples < p->limit) {
		ret = st_next(p->src, &s, &err);
		if (ret < 0)
			models_progress_end();
		if (ret < 0)
			return models_fail(p->cli, ret, &err);
		if (!ret)
			break;
		ret = count(p, &s);
		if (ret)
			return ret;
		if (p->pairs_every && p->out.samples % p->pairs_every == 0)
			count_pairs(p, &s);
		if (++p->out.samples % 1024 == 0)
			models_progress(st_progress(p->src), p->out.samples, "samples");
	}
	models_progress_end();
	if (!p->out.samples)
		return cli_fail(p->cli, CLI_BAD_INPUT, "%s: has no sample", p->input);
	return 0;
}

static void print(const struct profile *p)
{
	if (p->cli->json) {
		jw_begin();
		jw_string("output", p->output);
		jw_uint("samples", p->out.samples);
		jw_uint("malformed", st_malformed(p->src));
		jw_array("tables");
	} else {
		printf("%llu samples", (ull)p->out.samples);
		if (st_malformed(p->src))
			printf(", %llu malformed lines left out", (ull)st_malformed(p->src));
		printf("\n%-16s %12s %12s %12s %9s  rows for 50 / 90 / 99 %% of accesses\n", "table", "rows",
		       "accesses", "unique", "pooling");
	}
	for (uint32_t t = 0; t < p->out.ntables; t++) {
		const struct st_table *tab = &p->out.tables[t];
		const struct st_result *r = &tab->result;
		double mean = (double)r->accesses / (double)p->out.samples;
		uint64_t sum = 0, need[3] = { 0 };
		static const int percent[3] = { 50, 90, 99 };

		for (uint32_t i = 0, k = 0; i < r->n && k < 3; i++) {
			sum += r->counts[i];
			while (k < 3 && sum * 100 >= r->accesses * percent[k])
				need[k++] = i + 1;
		}
		if (p->cli->json) {
			jw_object(NULL);
			jw_string("name", tab->name);
			jw_uint("rows", tab->rows);
			jw_uint("accesses", r->accesses);
			jw_uint("unique", r->unique);
			jw_bool("exact", r->exact);
			jw_double("pooling", mean);
			jw_end();
			continue;
		}
		printf("%-16s %12llu %12llu %s%11llu %9.2f ", tab->name, (ull)tab->rows, (ull)r->accesses,
		       r->exact ? " " : "~", (ull)r->unique, mean);
		for (int k = 0; k < 3; k++)
			need[k] ? printf(" %llu%s", (ull)need[k], k < 2 ? " /" : "\n") :
			printf(" ?%s", k < 2 ? " /" : "\n");
	}
	if (p->cli->json) {
		jw_end();
		jw_finish();
	} else {
		printf("written: %s and %s.order\n", p->output, p->output);
	}
}

static int profile(struct profile *p)
{
	struct csm_err err;
	int code, ret;

	if (p->model_path) {
		ret = csm_model_open(&p->model, p->model_path, &err);
		if (ret)
			return models_fail(p->cli, ret, &err);
		p->have_model = true;
	}
	code = open_source(p);
	if (!code)
		code = make_uses(p);
	if (!code)
		code = make_counters(p);
	if (!code)
		code = read_all(p);
	if (code)
		return code;
	for (uint32_t t = 0; t < p->out.ntables; t++) {
		ret = st_counter_result(p->counters[t], &p->out.tables[t].result, &err);
		if (ret)
			return models_fail(p->cli, ret, &err);
	}
	if (p->pairs)
		p->out.npairs = st_pairs_result(p->pairs, p->out.pairs, PAIRS, &p->out.pair_slack);
	if (csm_stats_write(&p->out, p->output, &err))
		return cli_fail(p->cli, CLI_FAIL, "%s", err.msg);
	print(p);
	return CLI_OK;
}

static void profile_free(struct profile *p)
{
	for (uint32_t t = 0; t < p->out.ntables; t++) {
		st_counter_free(p->counters[t]);
		free(p->out.tables[t].result.ids);
		free(p->out.tables[t].result.counts);
	}
	free(p->counters);
	free(p->bag);
	free(p->out.tables);
	free(p->out.pairs);
	free(p->uses);
	st_pairs_free(p->pairs);
	st_close(p->src);
	if (p->have_model)
		csm_model_free(&p->model);
}

enum { STRICT = 256, ROWS, MEMORY, PAIRS_EVERY };

static int run(struct cli *cli, int argc, char **argv)
{
	static const struct option longopts[] = {
		{ "format", required_argument, NULL, 'f' },
		{ "input", required_argument, NULL, 'i' },
		{ "output", required_argument, NULL, 'o' },
		{ "model", required_argument, NULL, 'm' },
		{ "limit", required_argument, NULL, 'n' },
		{ "lookups", required_argument, NULL, 'l' },
		{ "samples", required_argument, NULL, 's' },
		{ "seed", required_argument, NULL, 'S' },
		{ "rows", required_argument, NULL, ROWS },
		{ "memory", required_argument, NULL, MEMORY },
		{ "pairs-every", required_argument, NULL, PAIRS_EVERY },
		{ "strict", no_argument, NULL, STRICT },
		{ NULL, 0, NULL, 0 },
	};
	struct profile p = {
		.cli = cli, .memory = 1ull << 30, .limit = UINT64_MAX, .lookups = 1, .samples = 100000,
		.seed = 1, .pairs_every = 64,
	};
	int opt, code = 0;

	while ((opt = cli_getopt(cli, argc, argv, longopts, &code)) != CLI_END) {
		switch (opt) {
		case 'f':
			p.format = optarg;
			break;
		case 'i':
			p.input = optarg;
			break;
		case 'o':
			p.output = optarg;
			break;
		case 'm':
			p.model_path = optarg;
			break;
		case 'n':
			code = cli_number(cli, "--limit", optarg, 1, INT64_MAX, &p.limit);
			break;
		case 'l':
			code = cli_number(cli, "--lookups", optarg, 1, ST_LOOKUPS_MAX, &p.lookups);
			break;
		case 's':
			code = cli_number(cli, "--samples", optarg, 1, INT64_MAX, &p.samples);
			break;
		case 'S':
			code = cli_number(cli, "--seed", optarg, 0, UINT64_MAX, &p.seed);
			break;
		case ROWS:
			code = cli_number(cli, "--rows", optarg, 1, UINT32_MAX, &p.rows);
			break;
		case MEMORY:
			code = cli_number(cli, "--memory", optarg, 1 << 20, 1ull << 40, &p.memory);
			break;
		case PAIRS_EVERY:
			code = cli_number(cli, "--pairs-every", optarg, 0, INT64_MAX, &p.pairs_every);
			break;
		case STRICT:
			p.strict = true;
			break;
		default:
			return code;
		}
		if (code)
			return code;
	}
	if (cli_no_args(cli, argc, argv))
		return CLI_USAGE;
	if (!p.format || !p.input || !p.output)
		return cli_fail(cli, CLI_USAGE, "--format, --input and --output are needed");
	if (cli_same_file(p.input, p.output) || cli_same_file(p.model_path, p.output))
		return cli_fail(cli, CLI_USAGE, "%s: is read, and would be overwritten", p.output);
	if (models_same_beside(p.input, p.output, ".order") ||
	    models_same_beside(p.model_path, p.output, ".order"))
		return cli_fail(cli, CLI_USAGE, "%s.order: is read, and would be overwritten", p.output);
	p.out.source = p.input;
	code = profile(&p);
	profile_free(&p);
	return code;
}

const struct command cmd_profile = {
	.name = "profile",
	.help = "profile --format FORMAT --input FILE -o STATS.json [OPTION]...\n\n"
		"Counts, in one pass over a trace of accesses, how often each row of each table is\n"
		"wanted. Writes STATS.json (curves, pooling, reuse, pairs) and STATS.json.order (the rows\n"
		"by falling accesses), which csrec plan takes.\n\n"
		"  --format criteo      Criteo TSV, plain or gz\n"
		"           mlperf      MLPerf's records of 40 int32\n"
		"           npz         DLRM-v2's multi-hot ids: arrays 0, 1, ... of [samples][ids]\n"
		"           dlrm-trace  a file a table of dlrm's generator, the last 'j' of the file's\n"
		"                       name being the table's number\n"
		"           dlrm-dist   dist_emb_j.log of dlrm's generator: a trace is made by it\n"
		"  --model FILE         tables, their names and rows are this model's\n"
		"  --rows N             without a model: ids are taken modulo N\n"
		"  --limit N            samples to read (default: all)\n"
		"  --lookups N          dlrm-*: ids a bag (default 1)\n"
		"  --samples N          dlrm-dist: samples to make (default 100000)\n"
		"  --seed N             dlrm-dist: makes the same again (default 1)\n"
		"  --memory BYTES       for counters (default 1G); a table whose rows do not fit is\n"
		"                       counted by a sketch, and the file says with what slack\n"
		"  --pairs-every N      look for pairs of rows in each Nth sample, at the first four ids\n"
		"                       of each bag (default 64, 0: not at all)\n"
		"  --strict             criteo: stop at the first malformed line\n",
	.run = run,
};
