// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <math.h>
#include <string.h>
#include <jansson.h>

#include "cost.h"

#define ADD_STEPS	4	/* cycles from one addition of an element to the next: FP_LAT */
#define TILE		16	/* samples that MLP works on at a time */
#define TILE_STEPS	5	/* cycles between two steps of one sample: FP_LAT + 1 */

const char *const plan_unit_names[PLAN_UNITS] = {
	"emb", "tt", "mlp", "interact", "copy_in", "copy_out",
};
const char *const plan_feature_names[PLAN_UNITS][PLAN_FEATURES + 1] = {
	{ "command", "bag", "id", "row_beat", "bag_beat", "step" },
	{ "command", "bag", "id", "load", "first_step", "second_step", "bag_beat" },
	{ "command", "sample", "tile", "x_beat", "weight_row", "y_beat" },
	{ "command", "sample", "read", "in_beat", "step", "out_beat" },
	{ "command", "beat", "chunk" },
	{ "command", "beat", "chunk" },
};

static double up(double a, double b)
{
	return ceil(a / b);
}

void plan_features_emb(double nbags, double nids, uint32_t dim, double f[PLAN_FEATURES])
{
	memset(f, 0, sizeof(double) * PLAN_FEATURES);
	f[0] = 1;
	f[1] = nbags;
	f[2] = nids;
	f[3] = nids * up(dim, 16);
	f[4] = nbags * up(dim, 16);
	/* a row of the same bag as the one before is added after it */
	f[5] = fmin(nids, nbags) * up(dim, 16) + fmax(nids - nbags, 0) * fmax(up(dim, 16), ADD_STEPS);
}

void plan_features_tt(double nbags, double nids, const uint16_t q[3], const uint16_t r[2],
		      double f[PLAN_FEATURES])
{
	uint32_t dim = q[0] * q[1] * q[2], b = q[1] * r[1];
	double load = up(q[0] * r[0], r[0] % 4 ? 1 : 4) + up(r[0] * b, b % 4 ? 1 : 4) +
		      up(r[1] * q[2], q[2] % 4 ? 1 : 4);

	memset(f, 0, sizeof(double) * PLAN_FEATURES);
	f[0] = 1;
	f[1] = nbags;
	f[2] = nids;
	f[3] = nids * load;
	f[4] = nids * q[0] * b * up(r[0], 8);
	f[5] = nids * dim * up(r[1], 8);
	f[6] = nbags * up(dim, 16);
}

void plan_features_mlp(const struct plan_cost *c, uint32_t batch, uint32_t in, uint32_t out,
		       double f[PLAN_FEATURES])
{
	double beats = up(in, 16), rows = 0;
	bool kept = beats * out <= c->weight_beats;

	/* A weight row takes the longer of its arithmetic and of being read. */
	for (uint32_t b = 0; b < batch; b += TILE) {
		uint32_t n = batch - b < TILE ? batch - b : TILE;
		double steps = (n < TILE_STEPS ? TILE_STEPS : n) * up(in, 8);

		rows += out * (b && kept ? steps : fmax(steps, c->mlp_row + beats));
	}
	memset(f, 0, sizeof(double) * PLAN_FEATURES);
	f[0] = 1;
	f[1] = batch;
	f[2] = up(batch, TILE);
	f[3] = batch * beats;
	f[4] = rows;
	f[5] = batch * up(out, 16);
}

void plan_features_interact(uint32_t batch, bool dot, bool self, uint32_t nvec, uint32_t dim,
			    uint32_t vec_step, double f[PLAN_FEATURES])
{
	double pairs = nvec * (nvec - 1.) / 2 + (self ? nvec : 0), beats = up(dim, 16);
	bool whole = dim % 16 == 0 && vec_step == dim;

	memset(f, 0, sizeof(double) * PLAN_FEATURES);
	f[0] = 1;
	f[1] = batch;
	f[2] = batch * (whole ? 1. : nvec);
	f[3] = batch * nvec * beats;
	f[4] = dot ? batch * pairs * up(dim, 8) : 0;
	f[5] = batch * up(dot ? dim + pairs : nvec * dim, 16);
}

void plan_features_copy(double len, double f[PLAN_FEATURES])
{
	memset(f, 0, sizeof(double) * PLAN_FEATURES);
	f[0] = 1;
	f[1] = len / 64;
	f[2] = up(len, 4096);	/* what is asked for at once */
}

double plan_cycles(const struct plan_cost *c, enum plan_unit u, const double f[PLAN_FEATURES])
{
	double sum = 0;

	for (int i = 0; i < PLAN_FEATURES; i++)
		sum += c->coef[u][i] * f[i];
	return sum;
}

static int get_number(json_t *o, const char *key, const char *name, const char *where,
		      double *x, struct csm_err *err)
{
	json_t *v = json_object_get(o, key);

	if (!json_is_number(v))
		return csm_fail(err, -EBADMSG, "%s: %s: \"%s\" is missing or no number", name, where,
				key);
	*x = json_number_value(v);
	if (!(*x >= 0 && *x < 1e9))
		return csm_fail(err, -EBADMSG, "%s: %s: \"%s\" is not in 0..1e9", name, where, key);
	return 0;
}

static int parse(struct plan_cost *c, json_t *root, const char *name, struct csm_err *err)
{
	json_t *version = json_object_get(root, "csrec_calibration");
	json_t *origin = json_object_get(root, "origin"), *o;
	double beats;
	int ret;

	if (json_integer_value(version) != 1)
		return csm_fail(err, -EBADMSG, "%s: \"csrec_calibration\" is not 1", name);
	if (!json_is_string(origin))
		return csm_fail(err, -EBADMSG, "%s: \"origin\" is missing or no string", name);
	snprintf(c->origin, sizeof(c->origin), "%s", json_string_value(origin));
	for (int u = 0; u < PLAN_UNITS; u++) {
		o = json_object_get(root, plan_unit_names[u]);
		for (int i = 0; plan_feature_names[u][i]; i++) {
			ret = get_number(o, plan_feature_names[u][i], name, plan_unit_names[u],
					 &c->coef[u][i], err);
			if (ret)
				return ret;
		}
	}
	ret = get_number(json_object_get(root, "mlp"), "row_wait", name, "mlp", &c->mlp_row, err);
	if (!ret)
		ret = get_number(json_object_get(root, "mlp"), "weight_beats", name, "mlp", &beats,
				 err);
	if (!ret)
		ret = get_number(root, "submit", name, "top", &c->submit, err);
	if (!ret)
		c->weight_beats = beats;
	return ret;
}

int plan_cost_parse(struct plan_cost *c, const char *text, size_t len, const char *name,
		    struct csm_err *err)
{
	json_error_t je;
	json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &je);
	int ret;

	memset(c, 0, sizeof(*c));
	if (!root)
		return csm_fail(err, -EBADMSG, "%s: line %d: %s", name, je.line, je.text);
	ret = parse(c, root, name, err);
	json_decref(root);
	return ret;
}

int plan_cost_load(struct plan_cost *c, const char *path, struct csm_err *err)
{
	json_error_t je;
	json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &je);
	int ret;

	memset(c, 0, sizeof(*c));
	if (!root)
		return csm_fail(err, -EBADMSG, "%s: line %d: %s", path, je.line, je.text);
	ret = parse(c, root, path, err);
	json_decref(root);
	return ret;
}
