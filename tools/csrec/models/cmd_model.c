// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* csrec model: shows, verifies, extracts from model containers. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <csm.h>
#include "models.h"

typedef unsigned long long ull;

static const char *const acts[] = { "none", "relu", "sigmoid" };
static const char *const ops[] = { "?", "EMB", "MLP", "DOT", "CAT" };
static const char *const kinds[] = { "temporary", "dense", "output" };

static uint64_t table_bytes(const struct csm_table *t)
{
	return t->form == CSM_FORM_ROWS ? t->nrows * csm_row_bytes(t->dtype, t->dim) :
	       (t->core_len[0] + t->core_len[1] + t->core_len[2]) * 4;
}

static void show_json(const struct csm_model *m, const char *path)
{
	jw_begin();
	jw_string("model", path);
	jw_uint("bytes", m->size);
	jw_object("input");
	jw_string("format", m->format);
	jw_uint("dense", m->ndense);
	jw_uint("columns", m->ncolumns);
	jw_end();
	jw_array("tables");
	for (uint32_t i = 0; i < m->ntables; i++) {
		const struct csm_table *t = &m->tables[i];

		jw_object(NULL);
		jw_string("name", t->name);
		jw_string("form", t->form == CSM_FORM_TT ? "tt" : "rows");
		jw_string("type", csm_dtype_name(t->dtype));
		jw_uint("rows", t->nrows);
		jw_uint("dim", t->dim);
		jw_uint("bytes", table_bytes(t));
		jw_uint("ordered", t->norder);
		if (t->form == CSM_FORM_TT) {
			jw_array("p");
			for (int k = 0; k < 3; k++)
				jw_uint(NULL, t->p[k]);
			jw_end();
			jw_array("q");
			for (int k = 0; k < 3; k++)
				jw_uint(NULL, t->q[k]);
			jw_end();
			jw_array("ranks");
			for (int k = 0; k < 2; k++)
				jw_uint(NULL, t->r[k]);
			jw_end();
		}
		jw_end();
	}
	jw_end();
	jw_array("layers");
	for (uint32_t i = 0; i < m->nlayers; i++) {
		const struct csm_layer *l = &m->layers[i];

		jw_object(NULL);
		jw_string("name", l->name);
		jw_uint("in", l->in_dim);
		jw_uint("out", l->out_dim);
		jw_string("activation", acts[l->act]);
		jw_bool("bias", l->bias);
		jw_end();
	}
	jw_end();
	jw_array("buffers");
	for (uint32_t i = 0; i < m->nbuffers; i++) {
		jw_object(NULL);
		jw_string("name", m->buffers[i].name);
		jw_uint("width", m->buffers[i].width);
		jw_string("kind", kinds[m->buffers[i].kind]);
		jw_end();
	}
	jw_end();
	jw_array("graph");
	for (uint32_t i = 0; i < m->nnodes; i++) {
		const struct csm_node *n = &m->nodes[i];

		jw_object(NULL);
		jw_string("op", ops[n->op]);
		if (n->op == CSM_OP_EMB) {
			jw_string("table", m->tables[n->param].name);
			jw_uint("column", n->column);
		} else {
			jw_string("from", m->buffers[n->src].name);
			jw_uint("from_element", n->src_off);
			jw_uint("read", n->src_len);
		}
		if (n->op == CSM_OP_MLP)
			jw_string("layer", m->layers[n->param].name);
		if (n->op >= CSM_OP_DOT) {
			jw_uint("vectors", n->nvec);
			jw_uint("dim", n->dim);
		}
		if (n->op == CSM_OP_DOT)
			jw_bool("itself", n->self);
		jw_string("to", m->buffers[n->dst].name);
		jw_uint("to_element", n->dst_off);
		jw_uint("written", n->dst_len);
		jw_uint("repeat", n->repeat);
		jw_end();
	}
	jw_end();
	jw_finish();
}

static void show_text(const struct csm_model *m, const char *path)
{
	uint64_t weights = 0, rows = 0;

	for (uint32_t i = 0; i < m->nlayers; i++)
		weights += (m->layers[i].in_dim + 1ull) * m->layers[i].out_dim;
	for (uint32_t i = 0; i < m->ntables; i++)
		rows += table_bytes(&m->tables[i]);
	printf("%s: %s; tables %s, layers %s\ninput: %s, %u dense, %u id columns\n\n", path,
	       cli_bytes(m->size), cli_bytes(rows), cli_bytes(weights * 4), m->format, m->ndense,
	       m->ncolumns);
	printf("%-15s %-4s %-4s %10s %5s %11s %10s\n", "table", "form", "type", "rows", "dim", "size",
	       "ordered");
	for (uint32_t i = 0; i < m->ntables; i++) {
		const struct csm_table *t = &m->tables[i];

		printf("%-15s %-4s %-4s %10u %5u %11s %10u", t->name,
		       t->form == CSM_FORM_TT ? "tt" : "rows", csm_dtype_name(t->dtype), t->nrows,
		       t->dim, cli_bytes(table_bytes(t)), t->norder);
		if (t->form == CSM_FORM_TT)
			printf("  p %u,%u,%u q %u,%u,%u ranks %u,%u", t->p[0], t->p[1], t->p[2], t->q[0],
			       t->q[1], t->q[2], t->r[0], t->r[1]);
		putchar('\n');
	}
	printf("\n%-15s %6s %6s %-10s %s\n", "layer", "in", "out", "activation", "bias");
	for (uint32_t i = 0; i < m->nlayers; i++)
		printf("%-15s %6u %6u %-10s %s\n", m->layers[i].name, m->layers[i].in_dim,
		       m->layers[i].out_dim, acts[m->layers[i].act], m->layers[i].bias ? "yes" : "no");
	printf("\ngraph\n");
	for (uint32_t i = 0; i < m->nnodes; i++) {
		const struct csm_node *n = &m->nodes[i];

		printf("%5u %s ", i, ops[n->op]);
		if (n->op == CSM_OP_EMB)
			printf("%s of column %u", m->tables[n->param].name, n->column + 1);
		else if (n->op == CSM_OP_MLP)
			printf("%s of %s[%u..%u]", m->layers[n->param].name, m->buffers[n->src].name,
			       n->src_off, n->src_off + n->src_len - 1);
		else
			printf("%u vectors of %u%s in %s", n->nvec, n->dim,
			       n->self ? ", each by itself too," : "", m->buffers[n->src].name);
		printf(" -> %s[%u..%u]", m->buffers[n->dst].name, n->dst_off,
		       n->dst_off + n->dst_len - 1);
		if (n->repeat > 1)
			printf(", %u times", n->repeat);
		putchar('\n');
	}
}

/* The first element that is no number, or n. */
static uint64_t first_bad(const float *v, uint64_t n)
{
	uint64_t i = 0;

	while (i < n && isfinite(v[i]))
		i++;
	return i;
}

static int verify(const struct cli *cli, const struct csm_model *m, const char *path)
{
	uint64_t values = 0, i;
	float *row = malloc(1024 * sizeof(*row));

	if (!row)
		return cli_fail(cli, CLI_FAIL, "out of memory");
	for (uint32_t t = 0; t < m->ntables; t++) {
		const struct csm_table *tab = &m->tables[t];

		for (int k = 0; k < 3 && tab->form == CSM_FORM_TT; k++) {
			i = first_bad(tab->core[k], tab->core_len[k]);
			values += i;
			if (i < tab->core_len[k]) {
				free(row);
				return cli_fail(cli, CLI_BAD_INPUT, "%s: table %s: core %d: element %llu is no number",
						path, tab->name, k, (ull)i);
			}
		}
		for (uint32_t r = 0; r < tab->nrows && tab->form == CSM_FORM_ROWS; r++) {
			csm_row(m, t, r, row);
			i = first_bad(row, tab->dim);
			values += i;
			if (i < tab->dim) {
				free(row);
				return cli_fail(cli, CLI_BAD_INPUT, "%s: table %s: row %u: element %llu is no number",
						path, tab->name, r, (ull)i);
			}
		}
	}
	free(row);
	for (uint32_t l = 0; l < m->nlayers; l++) {
		const struct csm_layer *layer = &m->layers[l];
		uint64_t n = (uint64_t)layer->in_dim * layer->out_dim;

		i = first_bad(layer->w, n);
		if (i == n && layer->bias)
			i += first_bad(layer->bias, layer->out_dim);
		n += layer->bias ? layer->out_dim : 0;
		values += n;
		if (i < n)
			return cli_fail(cli, CLI_BAD_INPUT, "%s: layer %s: element %llu is no number", path,
					layer->name, (ull)i);
	}
	if (cli->json) {
		jw_begin();
		jw_string("model", path);
		jw_uint("bytes", m->size);
		jw_uint("values", values);
		jw_bool("intact", true);
		jw_finish();
	} else {
		printf("%s: intact: all checksums are right, all %llu values are numbers\n", path,
		       (ull)values);
	}
	return CLI_OK;
}

/* The start of a .npy file of version 1.0, 128 bytes. */
static void npy_header(FILE *f, uint64_t rows, uint64_t cols)
{
	char text[118];
	int n = snprintf(text, sizeof(text), "{'descr': '<f4', 'fortran_order': False, 'shape': (%llu, %llu), }",
			 (ull)rows, (ull)cols);

	memset(text + n, ' ', sizeof(text) - n - 1);
	text[sizeof(text) - 1] = '\n';
	fwrite("\x93NUMPY\1\0\x76\0", 1, 10, f);
	fwrite(text, 1, sizeof(text), f);
}

struct what {
	const char *table, *layer, *out;
	uint64_t first, count;
};

static int extract(const struct cli *cli, const struct csm_model *m, const char *path,
		   const struct what *w)
{
	uint64_t rows = 0, cols = 0;
	const struct csm_layer *l = NULL;
	struct stat a, b;
	float *row;
	int t = -1;
	FILE *f;

	if (!w->out || !w->table == !w->layer)
		return cli_fail(cli, CLI_USAGE, "extract: one of --table and --layer, and -o, are needed");
	if (w->table) {
		t = csm_model_find_table(m, w->table);
		if (t < 0)
			return cli_fail(cli, CLI_USAGE, "%s: has no table %s", path, w->table);
		rows = m->tables[t].nrows;
		cols = m->tables[t].dim;
	} else {
		for (uint32_t i = 0; i < m->nlayers && !l; i++)
			l = strcmp(m->layers[i].name, w->layer) ? NULL : &m->layers[i];
		if (!l)
			return cli_fail(cli, CLI_USAGE, "%s: has no layer %s", path, w->layer);
		rows = l->out_dim;
		cols = l->in_dim + (l->bias ? 1 : 0);
	}
	if (w->first >= rows || w->count > rows - w->first)
		return cli_fail(cli, CLI_USAGE, "rows %llu and %llu more: there are %llu", (ull)w->first,
				(ull)w->count, (ull)rows);
	rows = w->count ? w->count : rows - w->first;
	if (!stat(path, &a) && !stat(w->out, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino)
		return cli_fail(cli, CLI_USAGE, "%s: is the model, and would be overwritten", w->out);
	row = malloc(cols * sizeof(*row));
	if (!row)
		return cli_fail(cli, CLI_FAIL, "out of memory");
	f = fopen(w->out, "we");
	if (!f) {
		free(row);
		return cli_fail(cli, CLI_FAIL, "%s: %s", w->out, strerror(errno));
	}
	npy_header(f, rows, cols);
	for (uint64_t r = w->first; r < w->first + rows; r++) {
		if (l) {
			memcpy(row, l->w + r * l->in_dim, l->in_dim * sizeof(*row));
			if (l->bias)
				row[l->in_dim] = l->bias[r];
		} else {
			csm_row(m, t, r, row);
		}
		fwrite(row, sizeof(*row), cols, f);
	}
	free(row);
	if (ferror(f) | fclose(f))
		return cli_fail(cli, CLI_FAIL, "%s: %s", w->out, strerror(errno));
	if (cli->json) {
		jw_begin();
		jw_string("file", w->out);
		jw_uint("rows", rows);
		jw_uint("columns", cols);
		jw_finish();
	} else {
		printf("%s: float32 [%llu, %llu]\n", w->out, (ull)rows, (ull)cols);
	}
	return CLI_OK;
}

static int run(struct cli *cli, int argc, char **argv)
{
	static const struct option longopts[] = {
		{ "table", required_argument, NULL, 't' },
		{ "layer", required_argument, NULL, 'l' },
		{ "first", required_argument, NULL, 'f' },
		{ "count", required_argument, NULL, 'n' },
		{ "output", required_argument, NULL, 'o' },
		{ NULL, 0, NULL, 0 },
	};
	struct what what = { 0 };
	const char *action, *path;
	struct csm_model m;
	struct csm_err err;
	int opt, code = 0, ret;

	while ((opt = cli_getopt(cli, argc, argv, longopts, &code)) != CLI_END) {
		switch (opt) {
		case 't':
			what.table = optarg;
			break;
		case 'l':
			what.layer = optarg;
			break;
		case 'f':
			code = cli_number(cli, "--first", optarg, 0, UINT32_MAX, &what.first);
			break;
		case 'n':
			code = cli_number(cli, "--count", optarg, 1, UINT32_MAX, &what.count);
			break;
		case 'o':
			what.out = optarg;
			break;
		default:
			return code;
		}
		if (code)
			return code;
	}
	action = optind < argc ? argv[optind++] : "";
	path = optind < argc ? argv[optind++] : NULL;
	if (cli_no_args(cli, argc, argv))
		return CLI_USAGE;
	if ((strcmp(action, "show") && strcmp(action, "verify") && strcmp(action, "extract")) || !path)
		return cli_fail(cli, CLI_USAGE, "show, verify or extract, and a model, are needed; see csrec model --help");
	ret = *action == 'v' ? csm_model_load(&m, path, &err) : csm_model_open(&m, path, &err);
	if (ret)
		return models_fail(cli, ret, &err);
	if (*action == 'v')
		code = verify(cli, &m, path);
	else if (*action == 'e')
		code = extract(cli, &m, path, &what);
	else if (cli->json)
		show_json(&m, path);
	else
		show_text(&m, path);
	csm_model_free(&m);
	return code;
}

const struct command cmd_model = {
	.name = "model",
	.help = "model (show | verify | extract) MODEL [OPTION]...\n\n"
		"show      tables, layers, graph and sizes of a model container\n"
		"verify    checks every checksum, and that every value is a number\n"
		"extract   writes rows of a table, or a layer, as float32 .npy: for a layer with\n"
		"          bias, the bias is the last column\n\n"
		"  --table NAME       what to extract\n"
		"  --layer NAME\n"
		"  --first N          first row (default 0)\n"
		"  --count N          how many (default: all from there on)\n"
		"  -o, --output FILE  the .npy file\n",
	.run = run,
};
