// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Devices, model and statistics into a problem: formats in MODEL.md, "Files". */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>

#include "plan.h"

#define MAX_POINTS	1024

static json_t *load(const char *path, struct csm_err *err)
{
	json_error_t je;
	json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &je);

	if (!root)
		csm_fail(err, je.line < 0 ? -ENOENT : -EBADMSG, je.line < 0 ? "%s: %s" :
			 "%s: %s (line %d)", path, je.text, je.line);
	else if (!json_is_object(root))
		csm_fail(err, -EBADMSG, "%s: not a JSON object", path);
	else
		return root;
	json_decref(root);
	return NULL;
}

static int number(json_t *o, const char *key, const char *file, const char *where, double min,
		  double max, double *x, struct csm_err *err)
{
	json_t *v = json_object_get(o, key);

	if (!json_is_number(v))
		return csm_fail(err, -EBADMSG, "%s: %s: \"%s\" is missing or no number", file, where,
				key);
	*x = json_number_value(v);
	if (!(*x >= min && *x <= max))
		return csm_fail(err, -EBADMSG, "%s: %s: \"%s\" is %g, not in %g..%g", file, where, key,
				*x, min, max);
	return 0;
}

static int load_device(struct plan_device *d, json_t *o, const char *file, uint32_t index,
		       struct csm_err *err)
{
	static const char *const known[] = { "name", "config", "dram_bytes", "onchip_bytes",
		"nvme_bytes", "nvme_bytes_per_s", "nvme_iops", "clock_hz", "power_w", "comment", NULL };
	static const char *const configs[] = { "auto", "memory-centric", "compute-centric" };
	const char *key, *name = json_string_value(json_object_get(o, "name"));
	json_t *v, *config = json_object_get(o, "config");
	char where[96];
	int ret;

	snprintf(where, sizeof(where), "devices[%u]", index);
	if (!json_is_object(o))
		return csm_fail(err, -EBADMSG, "%s: %s is no object", file, where);
	json_object_foreach(o, key, v) {
		int k = 0;

		while (known[k] && strcmp(known[k], key))
			k++;
		if (!known[k])
			return csm_fail(err, -EBADMSG, "%s: %s: unknown key \"%.40s\"", file, where, key);
	}
	if (!name || !*name || strlen(name) >= sizeof(d->name))
		return csm_fail(err, -EBADMSG, "%s: %s: \"name\" is not a string of 1..%zu bytes", file,
				where, sizeof(d->name) - 1);
	strcpy(d->name, name);
	snprintf(where, sizeof(where), "device %s", name);
	d->config = config ? 3 : PLAN_AUTO;
	for (int i = 0; i < 3 && json_is_string(config); i++)
		if (!strcmp(json_string_value(config), configs[i]))
			d->config = i;
	if (d->config > PLAN_COMPUTE)
		return csm_fail(err, -EBADMSG,
				"%s: %s: \"config\" is none of auto, memory-centric, compute-centric", file,
				where);
	ret = number(o, "dram_bytes", file, where, 0, 1e15, &d->dram_bytes, err);
	if (!ret)
		ret = number(o, "onchip_bytes", file, where, 0, 1e15, &d->onchip_bytes, err);
	if (!ret)
		ret = number(o, "nvme_bytes_per_s", file, where, 1, 1e15, &d->nvme_rate, err);
	if (!ret)
		ret = number(o, "nvme_iops", file, where, 1, 1e12, &d->nvme_iops, err);
	if (!ret)
		ret = number(o, "clock_hz", file, where, 1e3, 1e12, &d->clock_hz, err);
	d->nvme_bytes = 1e15;
	if (!ret && json_object_get(o, "nvme_bytes"))
		ret = number(o, "nvme_bytes", file, where, 0, 1e18, &d->nvme_bytes, err);
	if (!ret && json_object_get(o, "power_w"))
		ret = number(o, "power_w", file, where, 0, 1e6, &d->power_w, err);
	return ret;
}

int plan_load_devices(struct plan_problem *p, const char *path, struct csm_err *err)
{
	json_t *root = load(path, err), *list, *o;
	size_t i;
	int ret = 0;

	if (!root)
		return -EBADMSG;
	list = json_object_get(root, "devices");
	if (json_integer_value(json_object_get(root, "csrec_devices")) != 1)
		ret = csm_fail(err, -EBADMSG, "%s: \"csrec_devices\" is not 1", path);
	else if (!json_is_array(list) || !json_array_size(list) || json_array_size(list) > 64)
		ret = csm_fail(err, -EBADMSG, "%s: \"devices\" is not a list of 1..64", path);
	if (!ret) {
		p->devices = calloc(json_array_size(list), sizeof(*p->devices));
		if (!p->devices)
			ret = csm_fail(err, -ENOMEM, "out of memory");
	}
	for (i = 0; !ret && i < json_array_size(list); i++) {
		o = json_array_get(list, i);
		ret = load_device(&p->devices[i], o, path, i, err);
		for (size_t k = 0; !ret && k < i; k++)
			if (!strcmp(p->devices[k].name, p->devices[i].name))
				ret = csm_fail(err, -EBADMSG, "%s: two devices are called %s", path,
					       p->devices[i].name);
		p->ndevices = i + 1;
	}
	json_decref(root);
	return ret;
}

int plan_from_model(struct plan_problem *p, const struct csm_model *m, struct csm_err *err)
{
	p->tables = calloc(m->ntables + 1, sizeof(*p->tables));
	p->ops = calloc(m->nnodes + 1, sizeof(*p->ops));
	if (!p->tables || !p->ops)
		return csm_fail(err, -ENOMEM, "out of memory");
	p->ntables = m->ntables;
	for (uint32_t t = 0; t < m->ntables; t++) {
		const struct csm_table *from = &m->tables[t];
		struct plan_table *to = &p->tables[t];

		memcpy(to->name, from->name, sizeof(to->name));
		to->dim = from->dim;
		to->nrows = from->nrows;
		to->tt_form = from->form == CSM_FORM_TT;
		if (to->tt_form) {
			to->form.count = from->nrows;
			memcpy(to->form.p, from->p, sizeof(to->form.p));
			memcpy(to->form.q, from->q, sizeof(to->form.q));
			memcpy(to->form.r, from->r, sizeof(to->form.r));
		}
	}
	for (uint32_t i = 0; i < m->nnodes; i++) {
		const struct csm_node *n = &m->nodes[i];
		struct plan_op *o = &p->ops[p->nops];

		if (n->op == CSM_OP_EMB)
			continue;
		p->nops++;
		o->repeat = n->repeat;
		if (n->op == CSM_OP_MLP) {
			o->unit = PLAN_MLP;
			o->in = m->layers[n->param].in_dim;
			o->out = m->layers[n->param].out_dim;
		} else {
			o->unit = PLAN_INTERACT;
			o->dot = n->op == CSM_OP_DOT;
			o->self = n->self;
			o->nvec = n->nvec;
			o->dim = n->dim;
			o->vec_step = n->vec_step;
		}
	}
	for (uint32_t i = 0; i < m->nlayers; i++)
		p->weight_bytes += 4. * m->layers[i].out_dim * (m->layers[i].in_dim + 1.) + 128;
	/* the temporary buffers are in DRAM, too */
	for (uint32_t b = 0; b < m->nbuffers; b++)
		if (m->buffers[b].kind == CSM_BUF_TEMP)
			p->weight_bytes += 4. * p->batch * m->buffers[b].width + 64;
	return 0;
}

static int load_curve(struct plan_table *t, json_t *curve, const char *file, struct csm_err *err)
{
	size_t n = json_is_array(curve) ? json_array_size(curve) : 0;
	double total, last_k = -1, last_a = -1;

	if (n < 1 || n > MAX_POINTS)
		return csm_fail(err, -EBADMSG, "%s: table %s: \"curve\" is not a list of 1..%d points",
				file, t->name, MAX_POINTS);
	t->k = calloc(n + 2, sizeof(*t->k));
	t->share = calloc(n + 2, sizeof(*t->share));
	if (!t->k || !t->share)
		return csm_fail(err, -ENOMEM, "out of memory");
	total = json_number_value(json_array_get(json_array_get(curve, n - 1), 1));
	t->ncurve = 1;		/* (0, 0), which need not be told */
	for (size_t i = 0; i < n; i++) {
		json_t *point = json_array_get(curve, i);
		json_t *jk = json_array_get(point, 0), *ja = json_array_get(point, 1);
		double k = json_number_value(jk), a = json_number_value(ja);

		if (!json_is_array(point) || json_array_size(point) != 2 || !json_is_integer(jk) ||
		    !json_is_number(ja) || !(k > last_k) || !(a >= last_a) || k < 0 ||
		    k > t->nrows || a < 0 || a > 1e18)
			return csm_fail(err, -EBADMSG,
					"%s: table %s: \"curve\", point %zu: not [rows, accesses], ascending, of at most %u rows",
					file, t->name, i, t->nrows);
		last_k = k;
		last_a = a;
		if (!k && a > 0)
			return csm_fail(err, -EBADMSG, "%s: table %s: \"curve\": 0 rows have accesses",
					file, t->name);
		if (!k)
			continue;
		t->k[t->ncurve] = k;
		t->share[t->ncurve++] = total > 0 ? a / total : k / t->nrows;
	}
	/* rows that were never accessed */
	if (t->k[t->ncurve - 1] < t->nrows) {
		t->share[t->ncurve] = t->ncurve > 1 && total > 0 ? 1 : 0;
		t->k[t->ncurve++] = t->nrows;
	}
	return 0;
}

int plan_load_stats(struct plan_problem *p, const char *path, struct csm_err *err)
{
	json_t *root = load(path, err), *list, *o;
	size_t i;
	int ret = 0;

	if (!root)
		return -EBADMSG;
	list = json_object_get(root, "tables");
	if (json_integer_value(json_object_get(root, "csrec_stats")) != 1)
		ret = csm_fail(err, -EBADMSG, "%s: \"csrec_stats\" is not 1", path);
	else if (!json_is_array(list))
		ret = csm_fail(err, -EBADMSG, "%s: \"tables\" is missing or no list", path);
	for (i = 0; !ret && i < json_array_size(list); i++) {
		struct plan_table *t = NULL;
		const char *name;
		json_t *pool;

		o = json_array_get(list, i);
		name = json_string_value(json_object_get(o, "name"));
		for (uint32_t k = 0; name && k < p->ntables; k++)
			if (!strcmp(p->tables[k].name, name))
				t = &p->tables[k];
		if (!t) {
			ret = csm_fail(err, -EBADMSG, "%s: tables[%zu]: \"name\" is none of the model's tables",
				       path, i);
			break;
		}
		if (t->ncurve) {
			ret = csm_fail(err, -EBADMSG, "%s: table %s occurs twice", path, t->name);
			break;
		}
		pool = json_object_get(o, "pooling");
		ret = number(pool, "mean", path, name, 0, 1e6, &t->pooling, err);
		if (!ret)
			ret = number(pool, "max", path, name, 0, 1e9, &t->pool_max, err);
		if (!ret)
			ret = load_curve(t, json_object_get(o, "curve"), path, err);
	}
	for (uint32_t t = 0; !ret && t < p->ntables; t++)
		if (!p->tables[t].ncurve)
			ret = csm_fail(err, -EBADMSG, "%s: table %s of the model is missing", path,
				       p->tables[t].name);
	json_decref(root);
	return ret;
}
