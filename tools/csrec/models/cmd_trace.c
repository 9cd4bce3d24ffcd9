// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <jansson.h>
#include <trace.h>
#include "models.h"

typedef unsigned long long ull;

struct job {
	const struct cli *cli;
	const char *kind, *arch, *histogram, *output;
	uint64_t tables, rows, lookups, samples, seed;
	double alpha, locality;
	bool text;

	uint64_t row[ST_TABLES_MAX];
	uint32_t look[ST_TABLES_MAX];
	struct st_source *src;
	FILE *out[ST_TABLES_MAX];
};

/* "a-b-c", as dlrm's options and DeepRecInfra's models have lists. */
static int parse_rows(struct job *j, const char *list)
{
	char *end;

	for (j->tables = 0; ; list = end + 1) {
		unsigned long long v = strtoull(list, &end, 10);

		if (end == list || !v || v > UINT32_MAX || j->tables == ST_TABLES_MAX ||
		    (*end && *end != '-'))
			return cli_fail(j->cli, CLI_BAD_INPUT,
					"%s: arch_embedding_size: entry %llu is no number of rows within 1 and 2^32-1, or there are too many",
					j->arch, (ull)j->tables);
		j->row[j->tables++] = v;
		if (!*end)
			return 0;
	}
}

static int load_arch(struct job *j)
{
	json_error_t je;
	json_t *root = json_load_file(j->arch, JSON_REJECT_DUPLICATES, &je);
	json_t *rows = json_object_get(root, "arch_embedding_size");
	json_t *lookups = json_object_get(root, "num_indices_per_lookup");
	int code;

	if (!root)
		return cli_fail(j->cli, CLI_BAD_INPUT, "%s: line %d: %s", j->arch, je.line, je.text);
	if (!json_is_string(rows))
		code = cli_fail(j->cli, CLI_BAD_INPUT, "%s: arch_embedding_size is missing or no string",
				j->arch);
	else
		code = parse_rows(j, json_string_value(rows));
	if (!code && lookups) {
		if (!json_is_integer(lookups) || json_integer_value(lookups) < 1 ||
		    json_integer_value(lookups) > ST_LOOKUPS_MAX)
			code = cli_fail(j->cli, CLI_BAD_INPUT, "%s: num_indices_per_lookup is not within 1 and %d",
					j->arch, ST_LOOKUPS_MAX);
		else
			j->lookups = json_integer_value(lookups);
	}
	json_decref(root);
	return code;
}

static int write_all(struct job *j)
{
	uint32_t n = st_tables(j->src);
	struct st_sample s;
	struct csm_err err;
	uint64_t done = 0;
	int ret;

	while ((ret = st_next(j->src, &s, &err)) > 0) {
		for (uint32_t t = 0; t < n; t++) {
			if (!j->text)
				fwrite(s.ids[t], sizeof(uint64_t), s.len[t], j->out[t]);
			for (uint32_t k = 0; j->text && k < s.len[t]; k++)
				fprintf(j->out[t], "%s%llu", done || k ? ", " : "", (ull)s.ids[t][k]);
		}
		if (++done % 1024 == 0)
			models_progress(st_progress(j->src), done, "samples");
	}
	models_progress_end();
	if (ret < 0)
		return models_fail(j->cli, ret, &err);
	for (uint32_t t = 0; t < n; t++) {
		if (j->text)
			fputc('\n', j->out[t]);
		if (fflush(j->out[t]) || ferror(j->out[t]))
			return cli_fail(j->cli, CLI_FAIL, "%s, table %u: %s", j->output, t, strerror(errno));
	}
	return 0;
}

static int trace(struct job *j)
{
	struct st_shape shape = {
		.rows = j->row, .lookups = j->look, .samples = j->samples, .seed = j->seed,
	};
	struct csm_err err;
	char path[4096];
	int code;

	for (uint32_t t = 0; t < j->tables; t++)
		j->row[t] = j->rows;
	code = j->arch ? load_arch(j) : 0;
	if (code)
		return code;
	shape.ntables = j->tables;
	for (uint32_t t = 0; t < j->tables; t++)
		j->look[t] = j->lookups;
	if (!strcmp(j->kind, "zipf"))
		j->src = st_gen_zipf(&shape, j->alpha, &err);
	else if (!strcmp(j->kind, "locality"))
		j->src = st_gen_locality(&shape, j->locality, &err);
	else if (!strcmp(j->kind, "reuse") && j->histogram)
		j->src = st_gen_reuse(j->histogram, &shape, &err);
	else
		return cli_fail(j->cli, CLI_USAGE,
				strcmp(j->kind, "reuse") ? "--kind: \"%s\" is none of zipf, locality, reuse" :
				"--kind %s needs --histogram", j->kind);
	if (!j->src)
		return cli_fail(j->cli, CLI_BAD_INPUT, "%s", err.msg);
	for (uint32_t t = 0; t < j->tables; t++) {
		if (!st_path(path, j->output, t))
			return cli_fail(j->cli, CLI_USAGE,
					"--output: \"%s\" has no 'j' in the file's name for the table's number",
					j->output);
		j->out[t] = fopen(path, "we");
		if (!j->out[t])
			return cli_fail(j->cli, CLI_FAIL, "%s: %s", path, strerror(errno));
	}
	code = write_all(j);
	if (code)
		return code;
	if (j->cli->json) {
		jw_begin();
		jw_string("output", j->output);
		jw_uint("tables", j->tables);
		jw_uint("samples", j->samples);
		jw_uint("lookups", j->lookups);
		jw_finish();
	} else {
		printf("%s: %llu tables, %llu samples of %llu ids each\n", j->output, (ull)j->tables,
		       (ull)j->samples, (ull)j->lookups);
	}
	return CLI_OK;
}

static int real(const struct cli *cli, const char *opt, const char *text, double *x)
{
	char *end;

	*x = strtod(text, &end);
	return end == text || *end ? cli_fail(cli, CLI_USAGE, "%s: \"%s\" is not a number", opt, text) : 0;
}

enum { LOCALITY = 256, HISTOGRAM, TEXT };

static int run(struct cli *cli, int argc, char **argv)
{
	static const struct option longopts[] = {
		{ "kind", required_argument, NULL, 'k' },
		{ "output", required_argument, NULL, 'o' },
		{ "arch", required_argument, NULL, 'a' },
		{ "tables", required_argument, NULL, 't' },
		{ "rows", required_argument, NULL, 'r' },
		{ "lookups", required_argument, NULL, 'l' },
		{ "samples", required_argument, NULL, 's' },
		{ "seed", required_argument, NULL, 'S' },
		{ "alpha", required_argument, NULL, 'A' },
		{ "locality", required_argument, NULL, LOCALITY },
		{ "histogram", required_argument, NULL, HISTOGRAM },
		{ "text", no_argument, NULL, TEXT },
		{ NULL, 0, NULL, 0 },
	};
	static struct job j = {
		.kind = "zipf", .tables = 1, .rows = 1000000, .lookups = 1, .samples = 100000, .seed = 1,
		.alpha = 1.05,
	};
	int opt, code = 0;

	j.cli = cli;
	while ((opt = cli_getopt(cli, argc, argv, longopts, &code)) != CLI_END) {
		switch (opt) {
		case 'k':
			j.kind = optarg;
			break;
		case 'o':
			j.output = optarg;
			break;
		case 'a':
			j.arch = optarg;
			break;
		case 't':
			code = cli_number(cli, "--tables", optarg, 1, ST_TABLES_MAX, &j.tables);
			break;
		case 'r':
			code = cli_number(cli, "--rows", optarg, 1, UINT32_MAX, &j.rows);
			break;
		case 'l':
			code = cli_number(cli, "--lookups", optarg, 1, ST_LOOKUPS_MAX, &j.lookups);
			break;
		case 's':
			code = cli_number(cli, "--samples", optarg, 1, INT64_MAX, &j.samples);
			break;
		case 'S':
			code = cli_number(cli, "--seed", optarg, 0, UINT64_MAX, &j.seed);
			break;
		case 'A':
			code = real(cli, "--alpha", optarg, &j.alpha);
			break;
		case LOCALITY:
			code = real(cli, "--locality", optarg, &j.locality);
			break;
		case HISTOGRAM:
			j.histogram = optarg;
			break;
		case TEXT:
			j.text = true;
			break;
		default:
			return code;
		}
		if (code)
			return code;
	}
	if (cli_no_args(cli, argc, argv))
		return CLI_USAGE;
	if (!j.output)
		return cli_fail(cli, CLI_USAGE, "--output is needed");
	code = trace(&j);
	for (uint32_t t = 0; t < ST_TABLES_MAX; t++)
		if (j.out[t])
			fclose(j.out[t]);
	st_close(j.src);
	return code;
}

const struct command cmd_trace = {
	.name = "trace",
	.help = "trace --kind KIND -o PATTERN [OPTION]...\n\n"
		"Makes traces of accesses as dlrm's generator has them, a file a table; the last 'j' of\n"
		"the file's name becomes the table's number. csrec profile --format dlrm-trace reads\n"
		"them. The same options give the same bytes.\n\n"
		"  --kind zipf         the kth row with a chance of 1 / k^ALPHA (default)\n"
		"         locality     RecSSD's: new rows, or such as were used shortly before\n"
		"         reuse        rows accessed as often as a histogram of dlrm_datasets says\n"
		"  --alpha A           zipf: above 0, at most 8 (default 1.05)\n"
		"  --locality K        locality: RecSSD's K; 0, 1, 2 are 14, 57, 71 % new rows (default 0)\n"
		"  --histogram FILE    reuse: a locality_stats.txt of facebookresearch/dlrm_datasets\n"
		"  --arch FILE         tables and lookups of a model of DeepRecInfra (JSON)\n"
		"  --tables N, --rows N, --lookups N   without it (default 1, 1000000, 1)\n"
		"  --samples N         (default 100000)\n"
		"  --seed N            (default 1)\n"
		"  --text              numbers on a line instead of raw 64-bit ones\n",
	.run = run,
};
