// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* csrec tt: a model with one of its tables in tensor-train form, and what that costs. */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <csm.h>
#include <format.h>
#include <stats.h>
#include <tt.h>
#include <linux/csrec_hw.h>
#include "models.h"

typedef unsigned long long ull;

/* What the device and the golden model can do, and automatic ranks go up to */
#define DEVICE_RANK	32
#define DEVICE_DIM	256
#define MODEL_RANK	256		/* of a container */
#define BATCH		256

struct work {
	const struct cli *cli;
	const char *model_path, *table_name, *labels, *stats, *out, *export, *import;
	const char *p, *q, *ranks, *max_error;
	uint64_t max_bytes;
	struct csm_model m;
	uint32_t table;
	struct tt_shape s;		/* as decomposed */
	float *weight;			/* accesses by --stats, or NULL */
	float *unpacked;		/* rows, if they are not fp32 in the model */
	float *cores[TT_MAX];
	struct tt_error e;
	bool scored;
	uint64_t impressions, malformed;
	double auc[2], logloss[2];	/* before, after */
};

/* what: stands before the message, or NULL */
static int fail(const struct work *w, int ret, const char *what, const struct csm_err *err)
{
	struct csm_err with;

	csm_fail(&with, ret, "%s%s%s", what ? what : "", what ? ": " : "", err->msg);
	return models_fail(w->cli, ret, &with);
}

/* Numbers 1 .. max separated by commas. Returns how many, or 0 with a message. */
static uint32_t list(const struct work *w, const char *opt, const char *text, uint32_t *to,
		     uint32_t room, uint64_t max)
{
	const char *at = text;
	uint32_t n = 0;

	for (;;) {
		unsigned long long v;
		char *end;

		errno = 0;
		v = strtoull(at, &end, 10);
		if (!isdigit((unsigned char)*at) || errno || !v || v > max || n == room ||
		    (*end && *end != ',')) {
			cli_fail(w->cli, CLI_USAGE, "%s: \"%s\" is no list of up to %u numbers from 1 to %llu",
				 opt, text, room, (ull)max);
			return 0;
		}
		to[n++] = v;
		if (!*end)
			return n;
		at = end + 1;
	}
}

static int find_table(struct work *w)
{
	const char *name = w->table_name;
	int t = csm_model_find_table(&w->m, name);
	char *end;

	if (t < 0 && isdigit((unsigned char)*name)) {
		unsigned long v = strtoul(name, &end, 10);

		if (!*end && v < w->m.ntables)
			t = v;
	}
	if (t < 0)
		return cli_fail(w->cli, CLI_USAGE, "%s: has no table %s; there are %u", w->model_path,
				name, w->m.ntables);
	if (w->m.tables[t].form != CSM_FORM_ROWS)
		return cli_fail(w->cli, CLI_BAD_INPUT, "%s: table %s is in tensor-train form already",
				w->model_path, w->m.tables[t].name);
	w->table = t;
	return 0;
}

static bool on_device(const struct work *w)
{
	const struct tt_shape *s = &w->s;

	if (tt_dim(s) > DEVICE_DIM)
		return false;
	for (uint32_t k = 0; k < s->d; k++)
		if (s->r[k + 1] > DEVICE_RANK || s->r[k] * s->q[k] * s->r[k + 1] > CSREC_TT_MAX_SLICE)
			return false;
	return true;
}

/* Digits, and ranks if they are given or follow from --max-bytes */
static int make_shape(struct work *w)
{
	const struct csm_table *t = &w->m.tables[w->table];
	uint32_t n[3] = { 0 }, d = 3;
	struct csm_err err;
	int ret = 0;

	if (w->p) {
		n[0] = list(w, "--shape", w->p, w->s.p, TT_MAX, UINT32_MAX);
		if (!n[0])
			return CLI_USAGE;
	}
	if (w->q) {
		n[1] = list(w, "--q", w->q, w->s.q, TT_MAX, TT_DIM_MAX);
		if (!n[1])
			return CLI_USAGE;
	}
	if (w->ranks) {
		n[2] = list(w, "--ranks", w->ranks, w->s.r + 1, TT_MAX - 1, MODEL_RANK);
		if (!n[2]++)
			return CLI_USAGE;
	}
	for (int i = 0; i < 3; i++)
		d = n[i] ? n[i] : d;
	for (int i = 0; i < 3; i++)
		if (n[i] && n[i] != d)
			return cli_fail(w->cli, CLI_USAGE,
					"--shape, --q and --ranks (one less) differ in the number of cores");
	if (d > 3 && w->out)
		return cli_fail(w->cli, CLI_USAGE, "a model has three cores at most; %u can only be exported", d);
	w->s.d = d;
	w->s.r[0] = w->s.r[d] = 1;
	if (!n[0])
		ret = tt_auto_p(&w->s, t->nrows, &err);
	if (!ret && !n[1])
		ret = tt_auto_q(&w->s, t->dim, &err);
	if (!ret && w->import) {
		ret = tt_import(&w->s, w->import, w->cores, &err);
		if (ret)
			return fail(w, ret, NULL, &err);
		for (uint32_t k = 1; k < d; k++)
			if (w->s.r[k] > MODEL_RANK)
				return cli_fail(w->cli, CLI_BAD_INPUT, "%s: rank %u: it may be 1 to %d",
						w->import, w->s.r[k], MODEL_RANK);
		ret = tt_check(&w->s, t->nrows, t->dim, &err);
		return ret ? fail(w, ret, w->import, &err) : 0;
	}
	if (!ret && w->max_bytes)
		ret = tt_ranks_for_bytes(&w->s, w->max_bytes, DEVICE_RANK, &err);
	if (!ret && !w->max_error)
		ret = tt_check(&w->s, t->nrows, t->dim, &err);
	if (ret)
		return cli_fail(w->cli, CLI_USAGE, "table %s: %s", t->name, err.msg);
	return 0;
}

/* Accesses of each row, for all that the statistics know of */
static int load_weights(struct work *w)
{
	const struct csm_table *t = &w->m.tables[w->table];
	const struct csm_stats_table *st = NULL;
	struct csm_stats stats;
	struct csm_err err;
	int ret, code = 0;

	ret = csm_stats_load(&stats, w->stats, &err);
	if (ret)
		return fail(w, ret, NULL, &err);
	for (uint32_t i = 0; i < stats.ntables && !st; i++)
		st = strcmp(stats.tables[i].name, t->name) ? NULL : &stats.tables[i];
	w->weight = calloc(t->nrows, sizeof(float));
	if (!st)
		code = cli_fail(w->cli, CLI_BAD_INPUT, "%s: has no table %s", w->stats, t->name);
	else if (!w->weight)
		code = cli_fail(w->cli, CLI_FAIL, "out of memory");
	for (uint32_t i = 0; !code && i < st->norder; i++) {
		if (st->order[i] >= t->nrows)
			code = cli_fail(w->cli, CLI_BAD_INPUT, "%s: table %s: row %u, where the model has %u",
					w->stats, t->name, st->order[i], t->nrows);
		else
			w->weight[st->order[i]] = st->counts[i];
	}
	csm_stats_free(&stats);
	return code;
}

static int decompose(struct work *w)
{
	const struct csm_table *t = &w->m.tables[w->table];
	const float *rows = t->rows;
	struct csm_err err;
	int ret;

	if (!rows) {
		w->unpacked = calloc(t->nrows, (size_t)t->dim * sizeof(float));
		if (!w->unpacked)
			return cli_fail(w->cli, CLI_FAIL, "out of memory");
		for (uint32_t i = 0; i < t->nrows; i++)
			csm_row(&w->m, w->table, i, w->unpacked + (size_t)i * t->dim);
		rows = w->unpacked;
	}
	if (w->import) {
		ret = tt_measure(&w->s, (const float *const *)w->cores, rows, t->nrows, w->weight, NULL,
				 &w->e, &err);
	} else if (w->max_error) {
		char *end;
		double to = strtod(w->max_error, &end);

		if (*end || end == w->max_error || !(to > 0 && to < 1))
			return cli_fail(w->cli, CLI_USAGE, "--max-error: \"%s\" is not between 0 and 1",
					w->max_error);
		ret = tt_decompose_to(&w->s, rows, t->nrows, w->weight, to, DEVICE_RANK, w->cores, &w->e, &err);
	} else {
		ret = tt_decompose(&w->s, rows, t->nrows, w->weight, w->cores, &w->e, &err);
	}
	return ret ? fail(w, ret, t->name, &err) : 0;
}

static int put_cores(const struct work *w, struct csm_writer *out, struct csm_err *err)
{
	static const char zeros[64];
	static const float one = 1;
	int ret = 0;

	/* two cores: a third of the one element 1 changes nothing */
	for (uint32_t k = 0; k < 3 && !ret; k++) {
		uint64_t len = (k < w->s.d ? tt_core_len(&w->s, k) : 1) * sizeof(float);

		ret = csm_writer_put(out, k < w->s.d ? w->cores[k] : &one, len, err);
		if (!ret && len % 64)
			ret = csm_writer_put(out, zeros, 64 - len % 64, err);
	}
	return ret;
}

/* The records of all tables, this one's changed */
static int put_tables(const struct work *w, struct csm_writer *out, const void *old, size_t len,
		      struct csm_err *err)
{
	struct csm_rec_table *r = malloc(len);
	int ret;

	if (!r)
		return csm_fail(err, -ENOMEM, "out of memory");
	memcpy(r, old, len);
	r[w->table].form = CSM_FORM_TT;
	r[w->table].dtype = CSM_FP32;
	for (uint32_t k = 0; k < 3; k++) {
		r[w->table].p[k] = k < w->s.d ? w->s.p[k] : 1;
		r[w->table].q[k] = k < w->s.d ? w->s.q[k] : 1;
	}
	r[w->table].r[0] = w->s.r[1];
	r[w->table].r[1] = w->s.d == 3 ? w->s.r[2] : 1;
	ret = csm_writer_put(out, r, len, err);
	free(r);
	return ret;
}

/* Would writing to path destroy what is read? */
static int check_overwrite(const struct work *w, const char *path)
{
	const char *const read[] = { w->model_path, w->stats, w->labels, w->import };

	for (size_t i = 0; i < sizeof(read) / sizeof(*read); i++)
		if (cli_same_file(path, read[i]))
			return cli_fail(w->cli, CLI_USAGE, "%s: is read, and would be overwritten", path);
	return 0;
}

/* All sections as they were, but for this table's */
static int write_model(struct work *w)
{
	const struct csm_hdr *h = w->m.data;
	const struct csm_dirent *dir = (const void *)((const char *)w->m.data + h->dir_off);
	struct csm_writer *out;
	struct csm_err err;
	int ret = 0;

	out = csm_writer_open(w->out, &err);
	if (!out)
		return cli_fail(w->cli, CLI_FAIL, "%s", err.msg);
	for (uint32_t i = 0; i < h->nsections && !ret; i++) {
		const void *data = (const char *)w->m.data + dir[i].off;
		bool rows = dir[i].type == CSM_SEC_ROWS && dir[i].index == w->table;

		ret = csm_writer_begin(out, rows ? CSM_SEC_CORES : dir[i].type, dir[i].index,
				       dir[i].flags, rows ? "cores" : dir[i].name, &err);
		if (ret)
			break;
		if (rows)
			ret = put_cores(w, out, &err);
		else if (dir[i].type == CSM_SEC_TABLES)
			ret = put_tables(w, out, data, dir[i].size, &err);
		else
			ret = csm_writer_put(out, data, dir[i].size, &err);
		if (!ret)
			ret = csm_writer_end(out, &err);
	}
	if (ret)
		csm_writer_abort(out);
	else
		ret = csm_writer_finish(out, &err);
	return ret ? fail(w, ret, NULL, &err) : 0;
}

/* Scores of a click log by the golden model. */
static int score(struct work *w, const struct csm_model *m, double *auc, double *logloss)
{
	struct csm_tsv tsv = { .f = fopen(w->labels, "re") };
	uint32_t width = m->buffers[m->output].width;
	float *dense = calloc(BATCH, CSM_TSV_DENSE * sizeof(float));
	float *out = calloc(BATCH, (size_t)width * sizeof(float)), *scores = NULL;
	struct csm_bags *bags = calloc(m->nemb + 1, sizeof(*bags));
	uint8_t *labels = NULL;
	uint64_t n = 0, room = 0;
	uint32_t got = BATCH;
	struct csm_err err;
	int ret = 0, code = 0;

	if (!tsv.f) {
		code = cli_fail(w->cli, CLI_BAD_INPUT, "%s: %s", w->labels, strerror(errno));
		goto out;
	}
	for (uint32_t e = 0; bags && e < m->nemb; e++) {
		bags[e].ids = calloc(BATCH, sizeof(uint32_t));
		bags[e].offsets = calloc(BATCH + 1, sizeof(uint32_t));
		for (uint32_t i = 0; bags[e].offsets && i <= BATCH; i++)
			bags[e].offsets[i] = i;
		if (!bags[e].ids || !bags[e].offsets)
			ret = -ENOMEM;
	}
	if (ret || !dense || !out || !bags)
		goto memory;
	while (got == BATCH) {
		if (n + BATCH > room) {
			float *more = realloc(scores, (room * 2 + BATCH) * sizeof(float));
			uint8_t *more_labels = realloc(labels, room * 2 + BATCH);

			scores = more ? more : scores;
			labels = more_labels ? more_labels : labels;
			if (!more || !more_labels)
				goto memory;
			room = room * 2 + BATCH;
		}
		for (got = 0; got < BATCH; got++) {
			struct csm_click c;

			ret = csm_tsv_next(&tsv, &c, &err);
			if (ret <= 0)
				break;
			memcpy(dense + (size_t)got * CSM_TSV_DENSE, c.dense, sizeof(c.dense));
			for (uint32_t k = 0; k < m->nnodes; k++) {
				const struct csm_node *node = &m->nodes[k];

				if (node->op == CSM_OP_EMB)
					bags[node->emb].ids[got] = c.cat[node->column] %
								   m->tables[node->param].nrows;
			}
			labels[n + got] = c.label;
		}
		if (ret >= 0 && got)
			ret = csm_golden_score(m, NULL, dense, bags, got, out, &err);
		if (ret < 0) {
			code = fail(w, ret, w->labels, &err);
			goto out;
		}
		for (uint32_t i = 0; i < got; i++)
			scores[n + i] = out[(size_t)i * width];
		n += got;
	}
	if (!n)
		code = cli_fail(w->cli, CLI_BAD_INPUT, "%s: no well-formed line", w->labels);
	*auc = csm_auc(scores, labels, n);
	*logloss = csm_logloss(scores, labels, n);
	w->impressions = n;
	w->malformed = tsv.bad;
	goto out;
memory:
	code = cli_fail(w->cli, CLI_FAIL, "out of memory");
out:
	for (uint32_t e = 0; bags && e < m->nemb; e++) {
		free(bags[e].ids);
		free(bags[e].offsets);
	}
	free(bags);
	free(dense);
	free(out);
	free(scores);
	free(labels);
	if (tsv.f)
		fclose(tsv.f);
	return code;
}

/* The new model, as read back from its file */
static int score_after(struct work *w)
{
	struct csm_model after;
	struct csm_err err;
	int code, ret;

	ret = csm_model_load(&after, w->out, &err);
	if (ret)
		return fail(w, ret, NULL, &err);
	code = score(w, &after, &w->auc[1], &w->logloss[1]);
	csm_model_free(&after);
	w->scored = true;
	return code;
}

static void json_list(const char *key, const uint32_t *v, uint32_t n)
{
	jw_array(key);
	for (uint32_t k = 0; k < n; k++)
		jw_uint(NULL, v[k]);
	jw_end();
}

static void text_list(const char *key, const uint32_t *v, uint32_t n)
{
	printf("%s ", key);
	for (uint32_t k = 0; k < n; k++)
		printf("%s%u", k ? "," : "", v[k]);
}

static void report(const struct work *w)
{
	const struct csm_table *t = &w->m.tables[w->table];
	uint64_t before = t->nrows * csm_row_bytes(t->dtype, t->dim), after = tt_bytes(&w->s);
	const struct tt_error *e = &w->e;

	if (w->cli->json) {
		jw_begin();
		jw_string("table", t->name);
		jw_uint("index", w->table);
		jw_uint("rows", t->nrows);
		jw_uint("dim", t->dim);
		json_list("p", w->s.p, w->s.d);
		json_list("q", w->s.q, w->s.d);
		json_list("ranks", w->s.r + 1, w->s.d - 1);
		jw_bool("fits_device", on_device(w));
		jw_uint("bytes_before", before);
		jw_uint("bytes_after", after);
		jw_double("ratio", (double)before / after);
		jw_double("relative_error", e->relative);
		if (w->weight)
			jw_double("weighted_error", e->weighted);
		if (!w->import)
			jw_double("bound", e->bound);
		jw_double("mean_row_error", e->mean_row);
		jw_double("worst_row_error", e->worst_row);
		jw_uint("worst_row", e->worst);
		jw_double("norm", e->norm);
		if (w->scored) {
			jw_uint("impressions", w->impressions);
			jw_uint("malformed_lines", w->malformed);
			jw_double("auc_before", w->auc[0]);
			jw_double("auc_after", w->auc[1]);
			jw_double("logloss_before", w->logloss[0]);
			jw_double("logloss_after", w->logloss[1]);
		}
		if (w->out)
			jw_string("model", w->out);
		if (w->export)
			jw_string("cores", w->export);
		jw_finish();
		return;
	}
	printf("table %s: %u rows of %u; ", t->name, t->nrows, t->dim);
	text_list("p", w->s.p, w->s.d);
	text_list(" q", w->s.q, w->s.d);
	text_list(" ranks", w->s.r + 1, w->s.d - 1);
	printf("%s\n%s", on_device(w) ? "" : " (more than the device can do)", cli_bytes(before));
	printf(" to %s, a ratio of %.2f\n", cli_bytes(after), (double)before / after);
	/* with weights the bound is one of the weighted table */
	if (w->import && !w->weight)
		printf("relative error %.6g\n", e->relative);
	else if (w->weight)
		printf("relative error %.6g, weighted by accesses %.6g\n", e->relative, e->weighted);
	else
		printf("relative error %.6g (Frobenius; at most %.6g by what was cut off)\n",
		       e->relative, e->bound);
	printf("error of a row: %.6g on average, %.6g at most, of row %llu\n", e->mean_row,
	       e->worst_row, (ull)e->worst);
	if (w->scored)
		printf("%llu impressions: AUC %.6f before, %.6f after; log-loss %.6f, %.6f\n",
		       (ull)w->impressions, w->auc[0], w->auc[1], w->logloss[0], w->logloss[1]);
	if (w->export)
		printf("cores: %s\n", w->export);
	if (w->out)
		printf("model: %s\n", w->out);
}

static int all(struct work *w)
{
	int code = check_overwrite(w, w->out);

	if (!code)
		code = check_overwrite(w, w->export);
	if (!code && w->out && w->export && !strcmp(w->out, w->export))
		code = cli_fail(w->cli, CLI_USAGE, "%s: cannot be both model and cores", w->out);
	if (!code)
		code = find_table(w);

	if (!code && w->labels && strcmp(w->m.format, CSM_INPUT_CRITEO))
		code = cli_fail(w->cli, CLI_BAD_INPUT, "%s: its input is no click log: --labels cannot be read for it",
				w->model_path);
	if (!code)
		code = make_shape(w);
	if (!code && w->stats)
		code = load_weights(w);
	if (!code)
		code = decompose(w);
	if (!code && w->labels && !on_device(w))
		code = cli_fail(w->cli, CLI_USAGE, "--labels: the golden model takes ranks up to %d, dim up to %d, slices up to %d",
				DEVICE_RANK, DEVICE_DIM, CSREC_TT_MAX_SLICE);
	if (!code && w->labels)
		code = score(w, &w->m, &w->auc[0], &w->logloss[0]);
	if (!code && w->export) {
		struct csm_err err;
		int ret = tt_export(&w->s, (const float *const *)w->cores, w->export, &err);

		code = ret ? fail(w, ret, NULL, &err) : 0;
	}
	if (!code && w->out)
		code = write_model(w);
	if (!code && w->labels)
		code = score_after(w);
	if (!code)
		report(w);
	return code;
}

static int run(struct cli *cli, int argc, char **argv)
{
	static const struct option longopts[] = {
		{ "model", required_argument, NULL, 'm' },
		{ "table", required_argument, NULL, 't' },
		{ "shape", required_argument, NULL, 'p' },
		{ "q", required_argument, NULL, 'q' },
		{ "ranks", required_argument, NULL, 'r' },
		{ "max-error", required_argument, NULL, 'e' },
		{ "max-bytes", required_argument, NULL, 'b' },
		{ "stats", required_argument, NULL, 's' },
		{ "labels", required_argument, NULL, 'l' },
		{ "export", required_argument, NULL, 'E' },
		{ "import", required_argument, NULL, 'I' },
		{ "output", required_argument, NULL, 'o' },
		{ NULL, 0, NULL, 0 },
	};
	struct work w = { .cli = cli };
	struct csm_err err;
	int opt, code = 0, ret;

	while ((opt = cli_getopt(cli, argc, argv, longopts, &code)) != CLI_END) {
		switch (opt) {
		case 'm':
			w.model_path = optarg;
			break;
		case 't':
			w.table_name = optarg;
			break;
		case 'p':
			w.p = optarg;
			break;
		case 'q':
			w.q = optarg;
			break;
		case 'r':
			w.ranks = optarg;
			break;
		case 'e':
			w.max_error = optarg;
			break;
		case 'b':
			code = cli_number(cli, "--max-bytes", optarg, 1, UINT64_MAX >> 1, &w.max_bytes);
			if (code)
				return code;
			break;
		case 's':
			w.stats = optarg;
			break;
		case 'l':
			w.labels = optarg;
			break;
		case 'E':
			w.export = optarg;
			break;
		case 'I':
			w.import = optarg;
			break;
		case 'o':
			w.out = optarg;
			break;
		default:
			return code;
		}
	}
	if (cli_no_args(cli, argc, argv))
		return CLI_USAGE;
	if (!w.model_path || !w.table_name || (!w.out && !w.export))
		return cli_fail(cli, CLI_USAGE, "--model, --table and -o or --export are needed; see csrec tt --help");
	if (!!w.ranks + !!w.max_error + !!w.max_bytes + !!w.import != 1)
		return cli_fail(cli, CLI_USAGE, "one of --ranks, --max-error, --max-bytes and --import is needed");
	if (w.import && w.p)
		return cli_fail(cli, CLI_USAGE, "--shape: --import has it from the file");
	if (w.labels && !w.out)
		return cli_fail(cli, CLI_USAGE, "--labels needs -o: the new model is what is scored");
	ret = csm_model_load(&w.m, w.model_path, &err);
	if (ret)
		return fail(&w, ret, NULL, &err);
	code = all(&w);
	tt_free(w.cores);
	free(w.weight);
	free(w.unpacked);
	csm_model_free(&w.m);
	return code;
}

const struct command cmd_tt = {
	.name = "tt",
	.help = "tt --model MODEL --table N|NAME (--ranks R | --max-error E | --max-bytes B |\n"
		"                --import FILE) [OPTION]... (-o OUT | --export FILE)\n\n"
		"Writes MODEL with one table in tensor-train form (TT-SVD) to OUT, and prints what\n"
		"that costs: errors, compression ratio and, with --labels, AUC before and after.\n\n"
		"  --model MODEL      a model container\n"
		"  --table N|NAME     which table, by name or by number from 0\n"
		"  --ranks R1,R2      ranks, up to 256 (one number: two cores; three numbers:\n"
		"                     four, for --export only)\n"
		"  --max-error E      or the least ranks up to 32 with a relative error up to E\n"
		"  --max-bytes B      or the largest equal ranks up to 32 that fit B bytes\n"
		"  --import FILE      or cores from an .npz of FBTT-Embedding's tt_cores.0 and so on,\n"
		"                     float32 [1, p, r q r'], which --q says how to read\n"
		"  --shape P0,P1,P2   digits of a row, most significant first; their product is at\n"
		"                     least the rows, those missing are zeros (default: as equal\n"
		"                     as can be)\n"
		"  --q Q0,Q1,Q2       digits of a column; their product is the dimension (default:\n"
		"                     the most balanced factors)\n"
		"  --stats STATS.json errors count by accesses, as csrec profile found them\n"
		"  --labels TSV       a Criteo click log that the golden model scores\n"
		"  --export FILE      write the cores to such an .npz\n"
		"  -o, --output OUT   the new model\n",
	.run = run,
};
