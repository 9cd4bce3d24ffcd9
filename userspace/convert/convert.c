// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * From parameters by name to tables, layers and a graph, and into a container. README.md
 * has the names and where the definitions of the models come from.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include <linux/csrec_hw.h>

#include "convert.h"
#include "format.h"

#define DIM_MAX		1024u
#define ROWS_MAX	0x7fffffffu
#define WIDTH_MAX	(1u << 20)
#define LAYER_MAX	65535u
#define DEPTH_MAX	64u		/* layers of one MLP */
#define TASKS_MAX	256u
#define TABLES_MAX	16384u

typedef unsigned long long ull;

enum family { DLRM, WND, MTWND, NCF };
static const char *const family_names[] = { "dlrm", "wnd", "mtwnd", "ncf" };

enum interaction { NOT_TOLD, DOT, DOT_ITSELF, CAT };

/* What --arch says; absent parts are empty. */
struct list {
	uint32_t *v, n;
};

struct arch {
	bool have;
	int family;			/* -1: not told */
	enum interaction interaction;
	bool product;			/* ncf: MF vectors are multiplied, not added */
	struct list bot, top, tasks, emb;
	uint32_t dim, ntasks;
	char name[64];
	json_int_t lookups;
};

struct layer {
	char name[17];
	const struct cvt_tensor *w, *b;	/* b may be NULL */
	uint32_t in, out;		/* in: as the container has it */
	uint8_t act;
	int32_t *map;			/* [in] the tensor's column, -1: zero; NULL: the same */
};

struct table {
	char name[17];
	const struct cvt_tensor *t;
	enum csm_dtype dtype;
	const struct cvt_tensor *proj;	/* mixed dimensions: to the common one */
};

struct mlp {
	const struct cvt_tensor *w[DEPTH_MAX], *b[DEPTH_MAX];
	uint32_t n;
};

struct import {
	const struct cvt_source *s;
	struct csm_err *err;
	struct arch arch;
	bool torchrec;
	size_t prefix;			/* bytes before emb_l. and so on */
	enum family family;
	enum interaction interaction;
	struct table *tables;
	uint32_t ntables;
	struct mlp bot, top, final, *tasks;
	uint32_t ntasks;
	uint32_t ndense;

	/* what becomes the container's */
	struct layer *layers;
	uint32_t nlayers;
	struct csm_rec_buffer *buffers;
	uint32_t nbuffers;
	struct csm_rec_node *nodes;
	uint32_t nnodes;
};

/*
 * Rows' types
 */
static int get_type(const char *s, size_t len, enum csm_dtype *d)
{
	for (int i = CSM_FP32; i <= CSM_INT8; i++) {
		if (strlen(csm_dtype_name(i)) == len && !memcmp(s, csm_dtype_name(i), len)) {
			*d = i;
			return 0;
		}
	}
	return -EINVAL;
}

int cvt_rows_parse(struct cvt_rows *r, const char *text, struct csm_err *err)
{
	memset(r, 0, sizeof(*r));
	for (const char *p = text; ; ) {
		size_t len = strcspn(p, ",");
		const char *eq = memchr(p, '=', len);
		struct cvt_rows_of *of;

		if (!eq) {
			if (p != text || get_type(p, len, &r->all))
				goto bad;
		} else {
			of = realloc(r->of, (r->n + 1) * sizeof(*of));
			if (!of) {
				cvt_rows_free(r);
				return csm_fail(err, -ENOMEM, "out of memory");
			}
			r->of = of;
			of += r->n++;
			memset(of, 0, sizeof(*of));
			if (eq == p || (size_t)(eq - p) >= sizeof(of->name) ||
			    get_type(eq + 1, p + len - eq - 1, &of->dtype))
				goto bad;
			memcpy(of->name, p, eq - p);
			for (uint32_t i = 0; i + 1 < r->n; i++)
				if (!strcmp(r->of[i].name, of->name))
					goto bad;
		}
		if (!p[len])
			return 0;
		p += len + 1;
	}
bad:
	cvt_rows_free(r);
	return csm_fail(err, -EINVAL, "rows: '%s' is not fp32, fp16 or int8, then TABLE=TYPE for some tables, each once",
			text);
}

void cvt_rows_free(struct cvt_rows *r)
{
	free(r->of);
	memset(r, 0, sizeof(*r));
}

/*
 * --arch
 */
static int arch_list(struct list *l, const char *path, const char *key, json_t *v,
		     struct csm_err *err)
{
	const char *p = json_string_value(v);
	char *end;

	for (; p; p = end + 1) {
		unsigned long x = strtoul(p, &end, 10);
		uint32_t *grown;

		if (*p < '0' || *p > '9' || !x || x > UINT32_MAX || (*end && *end != '-') ||
		    l->n == TABLES_MAX)
			break;
		grown = realloc(l->v, (l->n + 1) * sizeof(*grown));
		if (!grown)
			return csm_fail(err, -ENOMEM, "out of memory");
		l->v = grown;
		l->v[l->n++] = x;
		if (!*end)
			return 0;
	}
	return csm_fail(err, -EINVAL, "%s: %s is not numbers with - between them, as in \"512-256-1\"",
			path, key);
}

static int arch_number(uint32_t *out, const char *path, const char *key, json_t *v,
		       struct csm_err *err)
{
	if (!json_is_integer(v) || json_integer_value(v) < 1 || json_integer_value(v) > LAYER_MAX)
		return csm_fail(err, -EINVAL, "%s: %s is no number of 1 to %u", path, key, LAYER_MAX);
	*out = json_integer_value(v);
	return 0;
}

static int arch_type(struct arch *a, const char *path, const char *name, struct csm_err *err)
{
	for (int i = 0; i < 4; i++) {
		if (!strcmp(name, family_names[i])) {
			a->family = i;
			return 0;
		}
	}
	return csm_fail(err, -EINVAL,
			"%s: model_type '%.40s' cannot be converted; dlrm, wnd, mtwnd and ncf can", path,
			name);
}

static int arch_load(struct arch *a, const char *path, struct csm_err *err)
{
	json_t *root, *v, *op = NULL, *itself = NULL;
	json_error_t why;
	const char *key, *s;
	int ret = 0;

	a->family = -1;
	if (!path)
		return 0;
	root = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
	if (!root)
		return csm_fail(err, -EINVAL, "%s: line %d: %s", path, why.line, why.text);
	if (!json_is_object(root))
		ret = csm_fail(err, -EINVAL, "%s: no JSON object", path);
	a->have = true;
	/* the type first: of another model's keys, none would be understood */
	v = json_object_get(root, "model_type");
	if (!ret && v)
		ret = arch_type(a, path, json_is_string(v) ? json_string_value(v) : "", err);
	for (void *it = ret ? NULL : json_object_iter(root); it && !ret;
	     it = json_object_iter_next(root, it)) {
		key = json_object_iter_key(it);
		v = json_object_iter_value(it);
		s = json_string_value(v);
		if (!strcmp(key, "arch_mlp_bot"))
			ret = arch_list(&a->bot, path, key, v, err);
		else if (!strcmp(key, "arch_mlp_top"))
			ret = arch_list(&a->top, path, key, v, err);
		else if (!strcmp(key, "arch_mlp_tasks"))
			ret = arch_list(&a->tasks, path, key, v, err);
		else if (!strcmp(key, "arch_embedding_size"))
			ret = arch_list(&a->emb, path, key, v, err);
		else if (!strcmp(key, "arch_sparse_feature_size"))
			ret = arch_number(&a->dim, path, key, v, err);
		else if (!strcmp(key, "num_multi_tasks"))
			ret = arch_number(&a->ntasks, path, key, v, err);
		else if (!strcmp(key, "arch_interaction_op"))
			op = v;
		else if (!strcmp(key, "arch_interaction_itself"))
			itself = v;
		else if (!strcmp(key, "csrec_mf_op") && s && (!strcmp(s, "sum") || !strcmp(s, "mul")))
			a->product = *s == 'm';
		else if (!strcmp(key, "model_name") && s)
			snprintf(a->name, sizeof(a->name), "%s", s);
		else if (!strcmp(key, "num_indices_per_lookup") && json_is_integer(v))
			a->lookups = json_integer_value(v);
		else if (!strncmp(key, "arch_", 5) || !strncmp(key, "csrec_", 6))
			ret = csm_fail(err, -EINVAL, "%s: %.40s is unknown or not what it should be", path,
				       key);
		else if ((!strcmp(key, "qr_flag") || !strcmp(key, "weighted_pooling") ||
			  !strcmp(key, "loss_threshold")) && !json_is_false(v) && !json_is_null(v) &&
			 !(json_is_number(v) && json_number_value(v) == 0))
			ret = csm_fail(err, -EINVAL, "%s: models with %s cannot be converted", path, key);
	}
	if (!ret && itself && !json_is_boolean(itself))
		ret = csm_fail(err, -EINVAL, "%s: arch_interaction_itself is neither true nor false", path);
	if (!ret && op) {
		s = json_is_string(op) ? json_string_value(op) : "";
		a->interaction = !strcmp(s, "cat") ? CAT : strcmp(s, "dot") ? NOT_TOLD :
				 json_is_true(itself) ? DOT_ITSELF : DOT;
		if (a->interaction == NOT_TOLD)
			ret = csm_fail(err, -EINVAL, "%s: arch_interaction_op '%.40s' is neither dot nor cat",
				       path, s);
	}
	json_decref(root);
	return ret;
}

/*
 * Names
 */
enum role {
	TABLE, MD_TABLE, MD_PROJ, TR_TABLE, BOT_W, BOT_B, TOP_W, TOP_B, TASK_W, TASK_B, FINAL_W,
	FINAL_B, TR_LAST_W, TR_LAST_B,
};

/* # is a number without leading zeros; step is what layers are counted in. */
static const struct name {
	const char *text;
	enum role role;
	bool torchrec;
	uint8_t step;
} names[] = {
	{ "emb_l.#.weight", TABLE, false, 1 },
	{ "emb_l.#.embs.weight", MD_TABLE, false, 1 },
	{ "emb_l.#.proj.weight", MD_PROJ, false, 1 },
	/* between the layers of a Sequential are activations */
	{ "bot_l.#.weight", BOT_W, false, 2 },
	{ "bot_l.#.bias", BOT_B, false, 2 },
	{ "top_l.#.weight", TOP_W, false, 2 },
	{ "top_l.#.bias", TOP_B, false, 2 },
	{ "task_l.#.#.weight", TASK_W, false, 2 },
	{ "task_l.#.#.bias", TASK_B, false, 2 },
	{ "final_l.#.weight", FINAL_W, false, 2 },
	{ "final_l.#.bias", FINAL_B, false, 2 },
	{ "sparse_arch.embedding_bag_collection.embedding_bags.t_cat_#.weight", TR_TABLE, true, 1 },
	{ "dense_arch.model._mlp.#._linear.weight", BOT_W, true, 1 },
	{ "dense_arch.model._mlp.#._linear.bias", BOT_B, true, 1 },
	{ "over_arch.model.0._mlp.#._linear.weight", TOP_W, true, 1 },
	{ "over_arch.model.0._mlp.#._linear.bias", TOP_B, true, 1 },
	{ "over_arch.model.1.weight", TR_LAST_W, true, 1 },
	{ "over_arch.model.1.bias", TR_LAST_B, true, 1 },
};

/* What cannot be converted, by what its keys contain. */
static const struct {
	const char *part, *what;
} refused[] = {
	{ "crossnet", "a cross network (DCN)" },
	{ "interaction_branch", "projected interactions (DLRM_Projection)" },
	{ ".weight_q", "quotient-remainder embeddings (--qr-flag)" },
	{ ".weight_r", "quotient-remainder embeddings (--qr-flag)" },
	{ "v_W_l", "weighted pooling (--weighted-pooling)" },
	{ "gru", "recurrent units (DIEN)" },
	{ "attention", "attention (DIN, DIEN)" },
};

static bool matches(const char *key, const char *text, uint32_t num[2])
{
	int n = 0;

	for (; *text; text++) {
		if (*text != '#') {
			if (*key++ != *text)
				return false;
			continue;
		}
		if (*key < '0' || *key > '9' || (*key == '0' && key[1] >= '0' && key[1] <= '9'))
			return false;
		for (num[n] = 0; *key >= '0' && *key <= '9'; key++) {
			if (num[n] > 1000000)
				return false;
			num[n] = num[n] * 10 + (*key - '0');
		}
		n++;
	}
	return !*key;
}

/* Module names of wrappers may come before it. */
static const struct name *find_name(const char *key, uint32_t num[2], size_t *prefix)
{
	for (const char *p = key; p; p = strchr(p, '.'), p = p ? p + 1 : NULL) {
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			if (matches(p, names[i].text, num)) {
				*prefix = p - key;
				return &names[i];
			}
		}
	}
	return NULL;
}

static int missing(const struct import *im, const char *text, uint32_t number)
{
	char key[CVT_KEY_MAX + 1];
	const char *hash = strchr(text, '#');

	if (hash)
		snprintf(key, sizeof(key), "%.*s%u%s", (int)(hash - text), text, number, hash + 1);
	else
		snprintf(key, sizeof(key), "%s", text);
	return csm_fail(im->err, -EINVAL, "%s: %.*s%s is missing", im->s->path, (int)im->prefix,
			im->s->n ? im->s->t[0].key : "", key);
}

static int at(const struct import *im, const struct cvt_tensor *t, const char *what)
{
	return csm_fail(im->err, -EINVAL, "%s: %s, at byte %llu: %s", im->s->path, t->key, (ull)t->off,
			what);
}

static int put_layer(struct import *im, struct mlp *m, bool bias, uint32_t index, uint32_t step,
		     const struct cvt_tensor *t)
{
	if (index % step || index / step >= DEPTH_MAX)
		return at(im, t, "no such layer is possible here");
	index /= step;
	*(bias ? &m->b[index] : &m->w[index]) = t;
	m->n = index + 1 > m->n ? index + 1 : m->n;
	return 0;
}

static int put_table(struct import *im, uint32_t index, const struct cvt_tensor *t, bool proj)
{
	if (index >= TABLES_MAX)
		return at(im, t, "too many tables");
	if (index >= im->ntables) {
		struct table *grown = realloc(im->tables, (index + 1) * sizeof(*grown));

		if (!grown)
			return csm_fail(im->err, -ENOMEM, "out of memory");
		memset(grown + im->ntables, 0, (index + 1 - im->ntables) * sizeof(*grown));
		im->tables = grown;
		im->ntables = index + 1;
	}
	if (!proj && im->tables[index].t)
		return at(im, t, "a second tensor for this table");
	*(proj ? &im->tables[index].proj : &im->tables[index].t) = t;
	return 0;
}

/* Gives each tensor its part in the model. Returns through last what ends over_arch. */
static int sort_out(struct import *im, const struct cvt_tensor *last[2])
{
	const struct cvt_source *s = im->s;

	for (uint32_t i = 0; i < s->n; i++) {
		const struct cvt_tensor *t = &s->t[i];
		uint32_t num[2] = { 0 };
		size_t prefix = 0;
		const struct name *n;
		int ret = 0;

		for (size_t k = 0; k < sizeof(refused) / sizeof(refused[0]); k++)
			if (strstr(t->key, refused[k].part))
				return csm_fail(im->err, -EINVAL, "%s: %s, at byte %llu: models with %s cannot be converted",
						s->path, t->key, (ull)t->off, refused[k].what);
		n = find_name(t->key, num, &prefix);
		if (!n)
			return at(im, t, "no parameter of a model that can be converted");
		if (i == 0) {
			im->prefix = prefix;
			im->torchrec = n->torchrec;
		}
		if (prefix != im->prefix || strncmp(t->key, s->t[0].key, prefix) ||
		    n->torchrec != im->torchrec)
			return csm_fail(im->err, -EINVAL, "%s: %s and %s do not belong to one model",
					s->path, s->t[0].key, t->key);
		switch (n->role) {
		case TABLE:
		case MD_TABLE:
		case TR_TABLE:
			ret = put_table(im, num[0], t, false);
			break;
		case MD_PROJ:
			ret = put_table(im, num[0], t, true);
			break;
		case BOT_W:
		case BOT_B:
			ret = put_layer(im, &im->bot, n->role == BOT_B, num[0], n->step, t);
			break;
		case TOP_W:
		case TOP_B:
			ret = put_layer(im, &im->top, n->role == TOP_B, num[0], n->step, t);
			break;
		case FINAL_W:
		case FINAL_B:
			ret = put_layer(im, &im->final, n->role == FINAL_B, num[0], n->step, t);
			break;
		case TASK_W:
		case TASK_B:
			if (num[0] >= TASKS_MAX)
				return at(im, t, "too many tasks");
			ret = put_layer(im, &im->tasks[num[0]], n->role == TASK_B, num[1], n->step, t);
			im->ntasks = num[0] + 1 > im->ntasks ? num[0] + 1 : im->ntasks;
			break;
		case TR_LAST_W:
			last[0] = t;
			break;
		case TR_LAST_B:
			last[1] = t;
			break;
		}
		if (ret)
			return ret;
	}
	return 0;
}

/*
 * Shapes
 */
static int check_mlp(const struct import *im, const struct mlp *m, const char *w_name,
		     const char *b_name, uint32_t step)
{
	for (uint32_t k = 0; k < m->n; k++) {
		const struct cvt_tensor *w = m->w[k], *b = m->b[k];

		if (!w)
			return missing(im, w_name, k * step);
		if (!b)
			return missing(im, b_name, k * step);
		if (w->ndim != 2 || !w->shape[0] || !w->shape[1] || w->shape[0] > LAYER_MAX ||
		    w->shape[1] > LAYER_MAX)
			return at(im, w, "a layer's weight is [out, in], each 1 to 65535");
		if (b->ndim != 1 || b->shape[0] != w->shape[0])
			return csm_fail(im->err, -EINVAL, "%s: %s, at byte %llu: shape does not fit the %llu outputs of %s",
					im->s->path, b->key, (ull)b->off, (ull)w->shape[0], w->key);
		if (k && w->shape[1] != m->w[k - 1]->shape[0])
			return csm_fail(im->err, -EINVAL, "%s: %s, at byte %llu: takes %llu inputs, but %s gives %llu",
					im->s->path, w->key, (ull)w->off, (ull)w->shape[1],
					m->w[k - 1]->key, (ull)m->w[k - 1]->shape[0]);
	}
	return 0;
}

static uint32_t mlp_in(const struct mlp *m)
{
	return m->w[0]->shape[1];
}

static uint32_t mlp_out(const struct mlp *m)
{
	return m->w[m->n - 1]->shape[0];
}

/* Width of a table in the interaction */
static uint32_t width(const struct table *t)
{
	return t->proj ? t->proj->shape[0] : t->t->shape[1];
}

static int check_tables(struct import *im)
{
	if (!im->ntables)
		return missing(im, im->torchrec ? names[11].text : names[0].text, 0);
	for (uint32_t i = 0; i < im->ntables; i++) {
		struct table *t = &im->tables[i];

		if (!t->t)
			return missing(im, im->torchrec ? names[11].text : names[0].text, i);
		if (t->t->ndim != 2 || !t->t->shape[0] || t->t->shape[0] > ROWS_MAX ||
		    !t->t->shape[1] || t->t->shape[1] > DIM_MAX)
			return at(im, t->t, "a table is [rows, dim], 1 to 2^31-1 by 1 to 1024");
		if (t->proj && (t->proj->ndim != 2 || t->proj->shape[1] != t->t->shape[1] ||
				!t->proj->shape[0] || t->proj->shape[0] > DIM_MAX))
			return at(im, t->proj, "a projection is [common dim, the table's dim]");
		snprintf(t->name, sizeof(t->name), "C%u", i + 1);
	}
	return 0;
}

static int check_arch_list(const struct import *im, const char *key, const struct list *l,
			   uint32_t first, const struct mlp *m)
{
	uint32_t want = l->n - (first ? 1 : 0);
	bool good = want == m->n;

	if (!l->n)
		return 0;
	if (first && good && m->n)
		good = l->v[0] == mlp_in(m);
	for (uint32_t k = 0; k < m->n && good; k++)
		good = l->v[k + (first ? 1 : 0)] == m->w[k]->shape[0];
	if (good)
		return 0;
	return csm_fail(im->err, -EINVAL, "%s: its layers are not those of %s (%u of them from %s on)",
			im->s->path, key, m->n, m->n ? m->w[0]->key : "nowhere");
}

static int check_arch(struct import *im)
{
	const struct arch *a = &im->arch;
	int ret;

	if (a->emb.n && a->emb.n != im->ntables)
		return csm_fail(im->err, -EINVAL, "%s: has %u tables, arch_embedding_size %u", im->s->path,
				im->ntables, a->emb.n);
	for (uint32_t i = 0; i < a->emb.n; i++)
		if (a->emb.v[i] != im->tables[i].t->shape[0])
			return csm_fail(im->err, -EINVAL, "%s: %s, at byte %llu: %llu rows, arch_embedding_size says %u",
					im->s->path, im->tables[i].t->key, (ull)im->tables[i].t->off,
					(ull)im->tables[i].t->shape[0], a->emb.v[i]);
	for (uint32_t i = 0; a->dim && i < im->ntables; i++)
		if (a->dim != width(&im->tables[i]))
			return csm_fail(im->err, -EINVAL, "%s: %s, at byte %llu: rows of %u, arch_sparse_feature_size says %u",
					im->s->path, im->tables[i].t->key, (ull)im->tables[i].t->off,
					width(&im->tables[i]), a->dim);
	if (im->family == DLRM) {
		ret = check_arch_list(im, "arch_mlp_bot", &a->bot, 1, &im->bot);
		if (ret)
			return ret;
	} else if (im->family != NCF && a->bot.n && (a->bot.n != 1 || a->bot.v[0] != im->ndense)) {
		return csm_fail(im->err, -EINVAL, "%s: takes %u dense inputs, not arch_mlp_bot's",
				im->s->path, im->ndense);
	}
	if (im->family == NCF && a->top.n) {	/* its last is final_l */
		const struct list top = { a->top.v, a->top.n - 1 }, final = { a->top.v + a->top.n - 1, 1 };

		ret = top.n ? check_arch_list(im, "arch_mlp_top", &top, 0, &im->top) : 0;
		return ret ? ret : check_arch_list(im, "arch_mlp_top", &final, 0, &im->final);
	}
	ret = check_arch_list(im, "arch_mlp_top", &a->top, 0, &im->top);
	for (uint32_t i = 0; i < im->ntasks && !ret; i++)
		ret = check_arch_list(im, "arch_mlp_tasks", &a->tasks, 1, &im->tasks[i]);
	if (!ret && a->ntasks && a->ntasks != im->ntasks)
		ret = csm_fail(im->err, -EINVAL, "%s: has %u tasks, num_multi_tasks says %u", im->s->path,
			       im->ntasks, a->ntasks);
	return ret;
}

/* Which of DLRM's interactions gives what the top MLP takes? */
static int find_interaction(struct import *im)
{
	static const char *const ops[] = { "", "dot", "dot with arch_interaction_itself", "cat" };
	uint64_t f = im->ntables + 1, d = mlp_out(&im->bot), cat = d, have = mlp_in(&im->top);
	uint64_t wide[4] = { 0 };
	bool equal = true;
	uint32_t found = 0;

	for (uint32_t i = 0; i < im->ntables; i++) {
		cat += width(&im->tables[i]);
		equal &= width(&im->tables[i]) == d;
	}
	wide[CAT] = cat;
	if (equal) {
		wide[DOT] = d + f * (f - 1) / 2;
		wide[DOT_ITSELF] = d + f * (f + 1) / 2;
	}
	if (im->torchrec)		/* its DLRM knows one only */
		wide[CAT] = wide[DOT_ITSELF] = 0;
	if (im->arch.interaction) {
		im->interaction = im->arch.interaction;
		if (wide[im->interaction] == have)
			return 0;
		if (!wide[im->interaction])
			return csm_fail(im->err, -EINVAL, "%s: interaction %s needs all tables as wide as the bottom MLP's %llu outputs",
					im->s->path, ops[im->interaction], (ull)d);
		return csm_fail(im->err, -EINVAL, "%s: %s, at byte %llu: takes %llu inputs; interaction %s gives %llu",
				im->s->path, im->top.w[0]->key, (ull)im->top.w[0]->off, (ull)have,
				ops[im->interaction], (ull)wide[im->interaction]);
	}
	for (int i = DOT; i <= CAT; i++) {
		if (wide[i] != have)
			continue;
		if (found)
			return csm_fail(im->err, -EINVAL,
					"%s: interaction may be %s or %s: both give %llu; --arch with arch_interaction_op tells",
					im->s->path, ops[found], ops[i], (ull)have);
		found = i;
	}
	if (!found)
		return csm_fail(im->err, -EINVAL,
				"%s: %s, at byte %llu: takes %llu inputs; interaction dot gives %llu, with itself %llu, cat %llu (0: not possible here)",
				im->s->path, im->top.w[0]->key, (ull)im->top.w[0]->off, (ull)have,
				(ull)wide[DOT], (ull)wide[DOT_ITSELF], (ull)wide[CAT]);
	im->interaction = found;
	return 0;
}

/*
 * Graph
 */
static int add_buffer(struct import *im, const char *name, uint64_t wide, uint8_t kind)
{
	struct csm_rec_buffer *b;

	if (!wide || wide > WIDTH_MAX)
		return csm_fail(im->err, -EINVAL, "%s: buffer %s would be %llu wide; at most %u are possible",
				im->s->path, name, (ull)wide, WIDTH_MAX);
	b = realloc(im->buffers, (im->nbuffers + 1) * sizeof(*b));
	if (!b)
		return csm_fail(im->err, -ENOMEM, "out of memory");
	im->buffers = b;
	b += im->nbuffers;
	memset(b, 0, sizeof(*b));
	memcpy(b->name, name, strnlen(name, 15));
	b->width = wide;
	b->kind = kind;
	return im->nbuffers++;
}

static int add_node(struct import *im, struct csm_rec_node node)
{
	struct csm_rec_node *n = realloc(im->nodes, (im->nnodes + 1) * sizeof(*n));

	if (!n)
		return csm_fail(im->err, -ENOMEM, "out of memory");
	im->nodes = n;
	if (!node.repeat)
		node.repeat = 1;
	n[im->nnodes++] = node;
	return 0;
}

static int add_emb(struct import *im, uint32_t table, uint32_t dst, uint32_t off)
{
	return add_node(im, (struct csm_rec_node){ .op = CSM_OP_EMB, .param = table, .column = table,
						   .dst = dst, .dst_off = off });
}

/* in: what the layer reads, which map says how to make of the tensor's columns */
static int add_layer(struct import *im, const char *name, const struct cvt_tensor *w,
		     const struct cvt_tensor *b, uint8_t act, uint32_t in, int32_t *map)
{
	struct layer *l = realloc(im->layers, (im->nlayers + 1) * sizeof(*l));

	if (!l) {
		free(map);
		return csm_fail(im->err, -ENOMEM, "out of memory");
	}
	im->layers = l;
	l += im->nlayers;
	*l = (struct layer){ .w = w, .b = b, .in = in, .out = w->shape[0], .act = act, .map = map };
	snprintf(l->name, 16, "%s", name);
	return im->nlayers++;
}

/*
 * An MLP from a place in a buffer to one in another, with buffers of its own between. map,
 * if not NULL, is of the first layer, whose inputs are then in.
 */
static int add_mlp(struct import *im, const char *name, const struct mlp *m, uint32_t src,
		   uint32_t dst, uint32_t dst_off, uint8_t last, uint32_t in, int32_t *map)
{
	for (uint32_t k = 0; k < m->n; k++) {
		bool end = k == m->n - 1;
		char part[32];
		int layer, to = dst, ret;

		snprintf(part, sizeof(part), "%s%u", name, k);
		layer = add_layer(im, part, m->w[k], m->b[k], end ? last : CSREC_ACT_RELU,
				  k ? m->w[k]->shape[1] : in, k ? NULL : map);
		if (layer < 0)
			return layer;
		if (!end) {
			to = add_buffer(im, part, m->w[k]->shape[0], CSM_BUF_TEMP);
			if (to < 0)
				return to;
		}
		ret = add_node(im, (struct csm_rec_node){ .op = CSM_OP_MLP, .param = layer, .src = src,
							  .dst = to, .dst_off = end ? dst_off : 0 });
		if (ret)
			return ret;
		src = to;
	}
	return 0;
}

/* The elements of one buffer to another: CAT of single vectors. */
static int add_copy(struct import *im, uint32_t src, uint32_t n, uint32_t dst, uint32_t dst_off)
{
	for (uint32_t done = 0; done < n; ) {
		uint32_t k = n - done < DIM_MAX ? n - done : DIM_MAX;
		int ret = add_node(im, (struct csm_rec_node){
			.op = CSM_OP_CAT, .nvec = 1, .dim = k, .vec_step = k, .src = src,
			.src_off = done, .dst = dst, .dst_off = dst_off + done });

		if (ret)
			return ret;
		done += k;
	}
	return 0;
}

/* Tables side by side from off on; those with a projection by way of a buffer. */
static int add_tables(struct import *im, uint32_t dst, uint32_t off)
{
	uint32_t to = off;
	int ret = 0, buffer;
	int *from = calloc(im->ntables, sizeof(*from));

	if (!from)
		return csm_fail(im->err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < im->ntables && !ret; i++) {
		const struct table *t = &im->tables[i];
		char name[32];

		if (t->proj) {
			snprintf(name, sizeof(name), "md%u", i);
			from[i] = buffer = add_buffer(im, name, t->t->shape[1], CSM_BUF_TEMP);
			ret = buffer < 0 ? buffer : add_emb(im, i, buffer, 0);
		} else {
			ret = add_emb(im, i, dst, to);
		}
		to += width(t);
	}
	to = off;
	for (uint32_t i = 0; i < im->ntables && !ret; i++) {
		const struct table *t = &im->tables[i];
		char name[32];
		int layer;

		if (t->proj) {
			snprintf(name, sizeof(name), "proj%u", i);
			layer = add_layer(im, name, t->proj, NULL, CSREC_ACT_NONE, t->t->shape[1], NULL);
			ret = layer < 0 ? layer :
			      add_node(im, (struct csm_rec_node){ .op = CSM_OP_MLP, .param = layer,
								  .src = from[i], .dst = dst, .dst_off = to });
		}
		to += width(t);
	}
	free(from);
	return ret;
}

/*
 * TorchRec takes the products above the diagonal, (0,1) (0,2) .. (1,2) .., where DLRM and
 * the hardware take those below, (1,0) (2,0) (2,1) ..: the same numbers in another order,
 * so the columns of the layer that reads them change places.
 */
static int32_t *triangle_map(uint32_t d, uint32_t f)
{
	int32_t *map = malloc((d + f * (f - 1ull) / 2) * sizeof(*map)), *p = map;

	if (!map)
		return NULL;
	for (uint32_t i = 0; i < d; i++)
		*p++ = i;
	for (uint32_t i = 1; i < f; i++)
		for (uint32_t j = 0; j < i; j++)
			/* rows before j have f-1, f-2, .. products */
			*p++ = d + j * (f - 1) - j * (j - 1) / 2 + (i - j - 1);
	return map;
}

static int build_dlrm(struct import *im)
{
	uint32_t f = im->ntables + 1, d = mlp_out(&im->bot), in = mlp_in(&im->top);
	uint64_t wide = d;
	int32_t *map = NULL;
	int x, features, z, y, ret;

	im->ndense = mlp_in(&im->bot);
	ret = find_interaction(im);
	if (ret)
		return ret;
	for (uint32_t i = 0; i < im->ntables; i++)
		wide += width(&im->tables[i]);
	if ((x = add_buffer(im, "dense", im->ndense, CSM_BUF_DENSE)) < 0 ||
	    (features = add_buffer(im, "features", wide, CSM_BUF_TEMP)) < 0)
		return -EINVAL;
	ret = add_tables(im, features, d);
	if (!ret)
		ret = add_mlp(im, "bot", &im->bot, x, features, 0, CSREC_ACT_RELU, im->ndense, NULL);
	if (ret)
		return ret;
	z = features;
	if (im->interaction != CAT) {
		if (f > LAYER_MAX)
			return csm_fail(im->err, -EINVAL, "%s: too many tables for dot", im->s->path);
		z = add_buffer(im, "interaction", in, CSM_BUF_TEMP);
		if (z < 0)
			return z;
		ret = add_node(im, (struct csm_rec_node){
			.op = CSM_OP_DOT, .flags = im->interaction == DOT_ITSELF ? CSM_NODE_F_SELF : 0,
			.nvec = f, .dim = d, .vec_step = d, .src = features, .dst = z });
		if (ret)
			return ret;
	}
	y = add_buffer(im, "click", mlp_out(&im->top), CSM_BUF_OUTPUT);
	if (y < 0)
		return y;
	if (im->torchrec) {
		map = triangle_map(d, f);
		if (!map)
			return csm_fail(im->err, -ENOMEM, "out of memory");
	}
	return add_mlp(im, "top", &im->top, z, y, 0, CSREC_ACT_SIGMOID, in, map);
}

static int build_wnd(struct import *im)
{
	uint64_t emb = 0;
	int x, features, shared, y, ret;

	for (uint32_t i = 0; i < im->ntables; i++)
		emb += width(&im->tables[i]);
	if (mlp_in(&im->top) <= emb)
		return csm_fail(im->err, -EINVAL, "%s: %s, at byte %llu: takes %u inputs, and the tables alone have %llu",
				im->s->path, im->top.w[0]->key, (ull)im->top.w[0]->off,
				mlp_in(&im->top), (ull)emb);
	im->ndense = mlp_in(&im->top) - emb;
	if ((x = add_buffer(im, "dense", im->ndense, CSM_BUF_DENSE)) < 0 ||
	    (features = add_buffer(im, "features", mlp_in(&im->top), CSM_BUF_TEMP)) < 0)
		return -EINVAL;
	ret = add_tables(im, features, im->ndense);
	if (!ret)
		ret = add_copy(im, x, im->ndense, features, 0);
	if (ret)
		return ret;
	if (im->family == WND) {
		y = add_buffer(im, "click", mlp_out(&im->top), CSM_BUF_OUTPUT);
		return y < 0 ? y : add_mlp(im, "top", &im->top, features, y, 0, CSREC_ACT_SIGMOID,
					   mlp_in(&im->top), NULL);
	}
	shared = add_buffer(im, "shared", mlp_out(&im->top), CSM_BUF_TEMP);
	y = add_buffer(im, "tasks", (uint64_t)im->ntasks * mlp_out(&im->tasks[0]), CSM_BUF_OUTPUT);
	if (shared < 0 || y < 0)
		return -EINVAL;
	ret = add_mlp(im, "top", &im->top, features, shared, 0, CSREC_ACT_RELU, mlp_in(&im->top), NULL);
	for (uint32_t t = 0; t < im->ntasks && !ret; t++) {
		const struct mlp *m = &im->tasks[t];
		char name[32];

		if (mlp_in(m) != mlp_out(&im->top) || mlp_out(m) != mlp_out(&im->tasks[0]))
			return at(im, m->w[0], "does not fit top_l, or the tasks differ in their outputs");
		snprintf(name, sizeof(name), "task%u-", t);
		ret = add_mlp(im, name, m, shared, y, t * mlp_out(m), CSREC_ACT_SIGMOID, mlp_in(m), NULL);
	}
	return ret;
}

static int build_ncf(struct import *im)
{
	const struct table *t = im->tables;
	uint32_t d, h, in;
	int32_t *map;
	int mf, mlp, both, y, ret = 0;

	if (im->ntables != 4 || im->final.n != 1)
		return csm_fail(im->err, -EINVAL, "%s: %u tables and %u layers of final_l; ncf has 4 and 1",
				im->s->path, im->ntables, im->final.n);
	d = width(&t[0]);
	h = mlp_out(&im->top);
	if (width(&t[1]) != d)
		return at(im, t[1].t, "the two tables of matrix factorization differ in their rows' width");
	if (mlp_in(&im->top) != width(&t[2]) + width(&t[3]))
		return at(im, im->top.w[0], "does not take the third and fourth table side by side");
	if (mlp_in(&im->final) != d + h)
		return at(im, im->final.w[0], "does not take the MF vector and top_l's outputs side by side");
	/* both MF vectors, or with product [u0, u0*i0, u1, ..]; then the MLP's outputs */
	in = 2 * d + h;
	if ((mf = add_buffer(im, "mf", 2 * d, CSM_BUF_TEMP)) < 0 ||
	    (mlp = add_buffer(im, "mlp", mlp_in(&im->top), CSM_BUF_TEMP)) < 0 ||
	    (both = add_buffer(im, "both", in, CSM_BUF_TEMP)) < 0 ||
	    (y = add_buffer(im, "score", mlp_out(&im->final), CSM_BUF_OUTPUT)) < 0)
		return -EINVAL;
	for (uint32_t i = 0; i < 4 && !ret; i++)
		ret = add_emb(im, i, i < 2 ? (im->arch.product ? mf : both) : mlp,
			      i == 1 ? d : i == 3 ? width(&t[2]) : 0);
	if (!ret && im->arch.product)
		ret = add_node(im, (struct csm_rec_node){
			.op = CSM_OP_DOT, .nvec = 2, .dim = 1, .vec_step = d, .repeat = d, .src = mf,
			.src_step = 1, .dst = both, .dst_step = 2 });
	if (!ret)
		ret = add_mlp(im, "top", &im->top, mlp, both, 2 * d, CSREC_ACT_RELU, mlp_in(&im->top), NULL);
	if (ret)
		return ret;
	map = malloc(in * sizeof(*map));
	if (!map)
		return csm_fail(im->err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < 2 * d; i++)	/* W (u + i) is W u + W i */
		map[i] = im->arch.product ? (i & 1 ? (int32_t)(i / 2) : -1) : (int32_t)(i % d);
	for (uint32_t i = 0; i < h; i++)
		map[2 * d + i] = d + i;
	return add_mlp(im, "final", &im->final, both, y, 0, CSREC_ACT_RELU, in, map);
}

static int understand(struct import *im)
{
	const struct cvt_tensor *last[2] = { NULL, NULL };
	uint32_t step;
	int ret;

	im->tasks = calloc(TASKS_MAX, sizeof(*im->tasks));
	if (!im->tasks)
		return csm_fail(im->err, -ENOMEM, "out of memory");
	ret = sort_out(im, last);
	if (ret)
		return ret;
	step = im->torchrec ? 1 : 2;
	if (im->torchrec) {
		if (!last[0])
			return missing(im, "over_arch.model.1.weight", 0);
		if (im->top.n == DEPTH_MAX)
			return at(im, last[0], "too many layers before it");
		im->top.w[im->top.n] = last[0];
		im->top.b[im->top.n++] = last[1];
	}
	im->family = im->arch.family >= 0 ? (enum family)im->arch.family : im->ntasks ? MTWND :
		     im->final.n ? NCF : im->bot.n || im->torchrec ? DLRM : WND;
	ret = check_tables(im);
	if (!ret && im->family == DLRM && !im->bot.n)
		ret = missing(im, im->torchrec ? names[12].text : "bot_l.#.weight", 0);
	if (!ret && !im->top.n)
		ret = missing(im, im->torchrec ? names[14].text : "top_l.#.weight", 0);
	if (!ret && im->family == MTWND && !im->ntasks)
		ret = missing(im, "task_l.0.0.weight", 0);
	if (!ret && im->family == NCF && !im->final.n)
		ret = missing(im, "final_l.#.weight", 0);
	if (!ret && im->family != DLRM && im->bot.n)
		ret = at(im, im->bot.w[0] ? im->bot.w[0] : im->bot.b[0], "a model of this type has no bottom MLP");
	if (!ret && im->family != MTWND && im->ntasks)
		ret = csm_fail(im->err, -EINVAL, "%s: task_l is of mtwnd models, this is %s", im->s->path,
			       family_names[im->family]);
	if (!ret && im->family != NCF && im->final.n)
		ret = csm_fail(im->err, -EINVAL, "%s: final_l is of ncf models, this is %s", im->s->path,
			       family_names[im->family]);
	for (uint32_t i = 0; i < im->ntables && !ret; i++)
		if (im->tables[i].proj && im->family != DLRM)
			ret = at(im, im->tables[i].proj, "only DLRM has tables of mixed dimensions");
	if (ret)
		return ret;
	if ((ret = check_mlp(im, &im->bot, im->torchrec ? names[12].text : names[3].text,
			     im->torchrec ? names[13].text : names[4].text, step)) ||
	    (ret = check_mlp(im, &im->top, im->torchrec ? names[14].text : names[5].text,
			     im->torchrec ? names[15].text : names[6].text, step)) ||
	    (ret = check_mlp(im, &im->final, names[9].text, names[10].text, 2)))
		return ret;
	for (uint32_t t = 0; t < im->ntasks; t++) {
		char w[64], b[64];

		snprintf(w, sizeof(w), "task_l.%u.#.weight", t);
		snprintf(b, sizeof(b), "task_l.%u.#.bias", t);
		if (!im->tasks[t].n)
			return missing(im, w, 0);
		ret = check_mlp(im, &im->tasks[t], w, b, 2);
		if (ret)
			return ret;
	}
	ret = im->family == DLRM ? build_dlrm(im) : im->family == NCF ? build_ncf(im) : build_wnd(im);
	return ret ? ret : check_arch(im);
}

/*
 * Output
 */
static int put_section(struct import *im, struct csm_writer *w, uint32_t type, const char *name,
		       const void *data, size_t len)
{
	int ret = csm_writer_begin(w, type, 0, 0, name, im->err);

	if (!ret)
		ret = csm_writer_put(w, data, len, im->err);
	return ret ? ret : csm_writer_end(w, im->err);
}

static int put_meta(struct import *im, struct csm_writer *w)
{
	static const char *const ops[] = { "cat", "dot", "dot-itself", "cat" };
	json_t *meta = json_pack("{s:s, s:s, s:s, s:s}", "name", *im->arch.name ? im->arch.name :
				 "imported", "model_type", family_names[im->family], "interaction",
				 im->family == NCF ? (im->arch.product ? "mul" : "sum") :
				 ops[im->interaction], "keys", im->torchrec ? "torchrec" : "dlrm");
	char *text;
	int ret;

	if (meta && im->arch.lookups > 0)
		json_object_set_new(meta, "num_indices_per_lookup", json_integer(im->arch.lookups));
	text = meta ? json_dumps(meta, JSON_INDENT(1) | JSON_SORT_KEYS) : NULL;
	json_decref(meta);
	if (!text)
		return csm_fail(im->err, -ENOMEM, "out of memory");
	ret = put_section(im, w, CSM_SEC_META, "meta", text, strlen(text));
	free(text);
	return ret;
}

static int put_rows(struct import *im, struct csm_writer *w, uint32_t index)
{
	const struct table *t = &im->tables[index];
	uint32_t dim = t->t->shape[1], most = 65536 / dim;
	uint64_t bytes = csm_row_bytes(t->dtype, dim);
	float *in = malloc((size_t)most * dim * sizeof(*in));
	uint8_t *out = t->dtype == CSM_FP32 ? (uint8_t *)in : malloc(most * bytes);
	struct cvt_stream *st = NULL;
	char name[32];
	int ret;

	snprintf(name, sizeof(name), "%s rows", t->name);
	ret = in && out ? csm_writer_begin(w, CSM_SEC_ROWS, index, 0, name, im->err) :
			  csm_fail(im->err, -ENOMEM, "out of memory");
	if (!ret && !(st = cvt_stream_open(im->s, t->t, im->err)))
		ret = -EBADMSG;
	for (uint64_t row = 0; row < t->t->shape[0] && !ret; row += most) {
		uint64_t n = t->t->shape[0] - row < most ? t->t->shape[0] - row : most;

		ret = cvt_stream_read(st, in, n * dim, im->err);
		for (uint64_t i = 0; i < n && !ret && t->dtype != CSM_FP32; i++)
			if (csm_row_pack(t->dtype, dim, in + i * dim, out + i * bytes))
				ret = csm_fail(im->err, -EINVAL, "%s: %s: row %llu is beyond what %s can hold",
					       im->s->path, t->t->key, (ull)(row + i),
					       csm_dtype_name(t->dtype));
		if (!ret)
			ret = csm_writer_put(w, out, n * bytes, im->err);
	}
	if (!ret)
		ret = cvt_stream_end(st, im->err);
	if (!ret)
		ret = csm_writer_end(w, im->err);
	cvt_stream_close(st);
	if (out != (uint8_t *)in)
		free(out);
	free(in);
	return ret;
}

static int put_tensor(struct import *im, struct csm_writer *w, const struct cvt_tensor *t,
		      uint32_t rows, uint32_t cols, const int32_t *map, uint32_t out_cols)
{
	float *in = malloc(cols * sizeof(*in)), *out = malloc(out_cols * sizeof(*out));
	struct cvt_stream *st = cvt_stream_open(im->s, t, im->err);
	int ret = st ? 0 : -EBADMSG;

	if (!in || !out)
		ret = csm_fail(im->err, -ENOMEM, "out of memory");
	for (uint32_t r = 0; r < rows && !ret; r++) {
		ret = cvt_stream_read(st, in, cols, im->err);
		if (ret)
			break;
		for (uint32_t i = 0; i < out_cols; i++)
			out[i] = !map ? in[i] : map[i] < 0 ? 0 : in[map[i]];
		ret = csm_writer_put(w, out, out_cols * sizeof(*out), im->err);
	}
	if (!ret)
		ret = cvt_stream_end(st, im->err);
	cvt_stream_close(st);
	free(in);
	free(out);
	return ret;
}

static int put_weights(struct import *im, struct csm_writer *w, uint32_t index)
{
	const struct layer *l = &im->layers[index];
	char name[32];
	int ret;

	snprintf(name, sizeof(name), "%s weights", l->name);
	ret = csm_writer_begin(w, CSM_SEC_WEIGHTS, index, 0, name, im->err);
	if (!ret)
		ret = put_tensor(im, w, l->w, l->out, l->w->shape[1], l->map, l->in);
	if (!ret && l->b)
		ret = put_tensor(im, w, l->b, 1, l->out, NULL, l->out);
	return ret ? ret : csm_writer_end(w, im->err);
}

static int put_all(struct import *im, struct csm_writer *w)
{
	struct csm_rec_table *tables = calloc(im->ntables, sizeof(*tables));
	struct csm_rec_layer *layers = calloc(im->nlayers, sizeof(*layers));
	struct csm_rec_input input = { .ndense = im->ndense, .ncolumns = im->ntables };
	int ret = tables && layers ? 0 : csm_fail(im->err, -ENOMEM, "out of memory");

	strcpy(input.format, (input.ndense == 0 || input.ndense == CSM_TSV_DENSE) &&
	       input.ncolumns <= CSM_TSV_CATS ? CSM_INPUT_CRITEO : CSM_INPUT_COLUMNS);
	for (uint32_t i = 0; i < im->ntables && !ret; i++) {
		memcpy(tables[i].name, im->tables[i].name, 16);
		tables[i].dtype = im->tables[i].dtype;
		tables[i].dim = im->tables[i].t->shape[1];
		tables[i].nrows = im->tables[i].t->shape[0];
	}
	for (uint32_t i = 0; i < im->nlayers && !ret; i++) {
		memcpy(layers[i].name, im->layers[i].name, 16);
		layers[i].in_dim = im->layers[i].in;
		layers[i].out_dim = im->layers[i].out;
		layers[i].act = im->layers[i].act;
		layers[i].has_bias = im->layers[i].b != NULL;
	}
	if (!ret)
		ret = put_meta(im, w);
	if (!ret)
		ret = put_section(im, w, CSM_SEC_INPUT, "input", &input, sizeof(input));
	if (!ret)
		ret = put_section(im, w, CSM_SEC_TABLES, "tables", tables, im->ntables * sizeof(*tables));
	if (!ret)
		ret = put_section(im, w, CSM_SEC_LAYERS, "layers", layers, im->nlayers * sizeof(*layers));
	if (!ret)
		ret = put_section(im, w, CSM_SEC_BUFFERS, "buffers", im->buffers,
				  im->nbuffers * sizeof(*im->buffers));
	if (!ret)
		ret = put_section(im, w, CSM_SEC_NODES, "nodes", im->nodes,
				  im->nnodes * sizeof(*im->nodes));
	for (uint32_t i = 0; i < im->ntables && !ret; i++)
		ret = put_rows(im, w, i);
	for (uint32_t i = 0; i < im->nlayers && !ret; i++)
		ret = put_weights(im, w, i);
	free(tables);
	free(layers);
	return ret;
}

static int set_types(struct import *im, struct cvt_rows *rows)
{
	for (uint32_t i = 0; i < im->ntables; i++) {
		im->tables[i].dtype = rows->all;
		for (uint32_t k = 0; k < rows->n; k++) {
			if (strcmp(rows->of[k].name, im->tables[i].name))
				continue;
			im->tables[i].dtype = rows->of[k].dtype;
			rows->of[k].used = true;
		}
	}
	for (uint32_t k = 0; k < rows->n; k++)
		if (!rows->of[k].used)
			return csm_fail(im->err, -EINVAL, "rows: the model has no table %s; it has C1 to C%u",
					rows->of[k].name, im->ntables);
	return 0;
}

int cvt_convert(const struct cvt_source *s, const char *arch, struct cvt_rows *rows,
		const char *out, struct cvt_result *result, struct csm_err *err)
{
	static const char *const ops[] = { "cat", "dot", "dot-itself", "cat" };
	struct import im = { .s = s, .err = err };
	struct csm_writer *w = NULL;
	struct stat st;
	int ret;

	memset(result, 0, sizeof(*result));
	ret = arch_load(&im.arch, arch, err);
	if (!ret)
		ret = understand(&im);
	if (!ret)
		ret = set_types(&im, rows);
	if (!ret && !(w = csm_writer_open(out, err)))
		ret = -EIO;
	if (!ret)
		ret = put_all(&im, w);
	if (!ret) {
		strcpy(result->type, family_names[im.family]);
		strcpy(result->interaction, im.family == NCF ? (im.arch.product ? "mul" : "sum") :
		       ops[im.interaction]);
		result->ntables = result->ncolumns = im.ntables;
		result->nlayers = im.nlayers;
		result->ndense = im.ndense;
		for (uint32_t i = 0; i < im.ntables; i++)
			result->rows += im.tables[i].t->shape[0];
		result->bytes_in = s->size;
		ret = csm_writer_finish(w, err);
		w = NULL;
		if (!ret && !stat(out, &st))
			result->bytes_out = st.st_size;
	}
	csm_writer_abort(w);
	for (uint32_t i = 0; i < im.nlayers; i++)
		free(im.layers[i].map);
	free(im.layers);
	free(im.tables);
	free(im.tasks);
	free(im.buffers);
	free(im.nodes);
	free(im.arch.bot.v);
	free(im.arch.top.v);
	free(im.arch.tasks.v);
	free(im.arch.emb.v);
	return ret;
}
