// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads placement files (FORMAT.md): which tier each table's rows live in. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "csm.h"

#define SLOTS_MAX	(1u << 20)
#define FILE_MAX	(256u << 20)

/* Refuses keys that this version does not know: a mistyped one must not be ignored. */
static int check_keys(json_t *obj, const char *where, const char *const *known,
		      struct csm_err *err)
{
	const char *key;
	json_t *v;

	json_object_foreach(obj, key, v) {
		const char *const *k = known;

		while (*k && strcmp(*k, key))
			k++;
		if (!*k && strcmp(key, "comment"))
			return csm_fail(err, -EINVAL, "%s: unknown key '%.64s'", where, key);
	}
	return 0;
}

static int get_uint(json_t *obj, const char *where, const char *key, uint64_t min, uint64_t max,
		    uint64_t *out, struct csm_err *err)
{
	json_t *v = json_object_get(obj, key);

	if (!v)
		return csm_fail(err, -EINVAL, "%s: '%s' is missing", where, key);
	if (!json_is_integer(v) || json_integer_value(v) < 0 ||
	    (uint64_t)json_integer_value(v) < min || (uint64_t)json_integer_value(v) > max)
		return csm_fail(err, -EINVAL, "%s: '%s' is not an integer in %llu..%llu", where, key,
				(unsigned long long)min, (unsigned long long)max);
	*out = json_integer_value(v);
	return 0;
}

/* Adds id to the hot rows; seen has a bit per row. */
static int add_hot(struct csm_place *pl, uint8_t *seen, const struct csm_table *t,
		   uint64_t id, struct csm_err *err)
{
	if (id >= t->nrows)
		return csm_fail(err, -EINVAL, "table %s: hot row %llu, but it has %u rows", t->name,
				(unsigned long long)id, t->nrows);
	if (seen[id / 8] >> id % 8 & 1)
		return csm_fail(err, -EINVAL, "table %s: hot row %llu is given twice", t->name,
				(unsigned long long)id);
	seen[id / 8] |= 1 << id % 8;
	pl->hot[pl->nhot++] = id;
	return 0;
}

/* {"count": n}, {"ids": [...]} or {"ranges": [[first, last], ...]} */
static int parse_hot(struct csm_place *pl, json_t *hot, const struct csm_table *t,
		     struct csm_err *err)
{
	static const char *const known[] = { "count", "ids", "ranges", NULL };
	json_t *ids, *ranges, *v;
	uint8_t *seen = NULL;
	char where[64];
	uint64_t count;
	size_t i;
	int ret;

	snprintf(where, sizeof(where), "table %s, hot", t->name);
	if (!json_is_object(hot))
		return csm_fail(err, -EINVAL, "%s: an object is needed", where);
	ret = check_keys(hot, where, known, err);
	if (ret)
		return ret;
	ids = json_object_get(hot, "ids");
	ranges = json_object_get(hot, "ranges");
	if (!!ids + !!ranges + !!json_object_get(hot, "count") != 1)
		return csm_fail(err, -EINVAL, "%s: one of 'count', 'ids' and 'ranges' is needed",
				where);
	if ((ids && !json_is_array(ids)) || (ranges && !json_is_array(ranges)))
		return csm_fail(err, -EINVAL, "%s: an array is needed", where);

	pl->hot = malloc((size_t)t->nrows * sizeof(*pl->hot));
	seen = calloc(t->nrows / 8 + 1, 1);
	if (!pl->hot || !seen) {
		ret = csm_fail(err, -ENOMEM, "out of memory");
		goto out;
	}
	if (ids) {
		json_array_foreach(ids, i, v) {
			ret = !json_is_integer(v) || json_integer_value(v) < 0 ?
			      csm_fail(err, -EINVAL, "%s: entry %zu is no row number", where, i) :
			      add_hot(pl, seen, t, json_integer_value(v), err);
			if (ret)
				goto out;
		}
	} else if (ranges) {
		json_array_foreach(ranges, i, v) {
			json_int_t lo = json_integer_value(json_array_get(v, 0));
			json_int_t hi = json_integer_value(json_array_get(v, 1));

			if (json_array_size(v) != 2 || !json_is_integer(json_array_get(v, 0)) ||
			    !json_is_integer(json_array_get(v, 1)) || lo < 0 || hi < lo) {
				ret = csm_fail(err, -EINVAL, "%s: range %zu is not [first, last]",
					       where, i);
				goto out;
			}
			for (json_int_t id = lo; id <= hi; id++) {
				ret = add_hot(pl, seen, t, id, err);
				if (ret)
					goto out;
			}
		}
	} else {
		ret = get_uint(hot, where, "count", 0, t->nrows, &count, err);
		if (!ret && count > t->norder)
			ret = csm_fail(err, -EINVAL,
				       "%s: %llu rows by order, but the model orders %u of this table",
				       where, (unsigned long long)count, t->norder);
		if (ret)
			goto out;
		if (count)	/* without, there may be no order */
			memcpy(pl->hot, t->order, count * sizeof(*pl->hot));
		pl->nhot = count;
	}
	if (pl->nhot == t->nrows)
		ret = csm_fail(err, -EINVAL, "%s: every row is hot; the tier is then 'dram'", where);
out:
	free(seen);
	return ret;
}

static int parse_table(struct csm_placement *p, json_t *obj, const struct csm_table *t,
		       struct csm_place *pl, struct csm_err *err)
{
	static const char *const known_split[] = { "tier", "hot", "slots", NULL };
	static const char *const known[] = { "tier", NULL };
	const char *tier;
	char where[48];
	uint64_t slots;
	int ret;

	snprintf(where, sizeof(where), "table %s", t->name);
	tier = json_string_value(json_object_get(obj, "tier"));
	if (!tier)
		return csm_fail(err, -EINVAL, "%s: 'tier' is missing or no string", where);
	if (!strcmp(tier, "tt"))
		pl->tier = CSM_TIER_TT;
	else if (!strcmp(tier, "dram"))
		pl->tier = CSM_TIER_DRAM;
	else if (!strcmp(tier, "split"))
		pl->tier = CSM_TIER_SPLIT;
	else
		return csm_fail(err, -EINVAL, "%s: tier '%.32s' is none of tt, dram, split", where,
				tier);
	if ((pl->tier == CSM_TIER_TT) != (t->form == CSM_FORM_TT))
		return csm_fail(err, -EINVAL, "%s: tier '%s', but the model has it %s", where, tier,
				t->form == CSM_FORM_TT ? "in TT form" : "as rows");
	ret = check_keys(obj, where, pl->tier == CSM_TIER_SPLIT ? known_split : known, err);
	if (ret || pl->tier != CSM_TIER_SPLIT)
		return ret;
	ret = get_uint(obj, where, "slots", 1, SLOTS_MAX, &slots, err);
	if (ret)
		return ret;
	pl->slots = slots;
	p->nsplit++;
	return parse_hot(pl, json_object_get(obj, "hot"), t, err);
}

static int parse_cold(struct csm_placement *p, json_t *cold, struct csm_err *err)
{
	static const char *const known[] = { "path", "offset", "block", NULL };
	json_t *path;
	uint64_t v;
	int ret;

	if (!cold) {
		if (p->nsplit)
			return csm_fail(err, -EINVAL, "'cold' is missing, but %u tables are split",
					p->nsplit);
		return 0;
	}
	if (!json_is_object(cold))
		return csm_fail(err, -EINVAL, "'cold' is no object");
	ret = check_keys(cold, "cold", known, err);
	if (ret)
		return ret;
	path = json_object_get(cold, "path");
	if (path && !(json_is_string(path) && *json_string_value(path)))
		return csm_fail(err, -EINVAL, "cold: 'path' is no string");
	if (path) {
		p->cold_path = strdup(json_string_value(path));
		if (!p->cold_path)
			return csm_fail(err, -ENOMEM, "out of memory");
	}
	ret = get_uint(cold, "cold", "block", CSM_BLOCK_MIN, CSM_BLOCK_MAX, &v, err);
	if (ret)
		return ret;
	if (v & (v - 1))
		return csm_fail(err, -EINVAL, "cold: 'block' %llu is no power of two",
				(unsigned long long)v);
	p->block = v;
	if (!json_object_get(cold, "offset"))
		return 0;
	ret = get_uint(cold, "cold", "offset", 0, INT64_MAX / 2, &p->cold_off, err);
	if (!ret && p->cold_off % p->block)
		ret = csm_fail(err, -EINVAL, "cold: 'offset' %llu is no multiple of the block, %u",
			       (unsigned long long)p->cold_off, p->block);
	return ret;
}

static int parse_root(struct csm_placement *p, json_t *root, const struct csm_model *m,
		      struct csm_err *err)
{
	static const char *const known[] = { "csrec_placement", "cold", "tables", NULL };
	json_t *tables, *v;
	uint64_t version;
	const char *key;
	int ret;

	if (!json_is_object(root))
		return csm_fail(err, -EINVAL, "no JSON object");
	ret = get_uint(root, "placement", "csrec_placement", 0, UINT32_MAX, &version, err);
	if (ret)
		return ret;
	if (version != 1)
		return csm_fail(err, -EPROTONOSUPPORT,
				"placement version %llu, this program reads 1",
				(unsigned long long)version);
	ret = check_keys(root, "placement", known, err);
	if (ret)
		return ret;
	tables = json_object_get(root, "tables");
	if (!json_is_object(tables))
		return csm_fail(err, -EINVAL, "'tables' is missing or no object");
	json_object_foreach(tables, key, v) {
		int t = csm_model_find_table(m, key);

		if (t < 0)
			return csm_fail(err, -EINVAL, "table '%.32s' is not in the model", key);
		if (!json_is_object(v))
			return csm_fail(err, -EINVAL, "table %s: an object is needed", key);
		ret = parse_table(p, v, &m->tables[t], &p->tables[t], err);
		if (ret)
			return ret;
	}
	for (uint32_t t = 0; t < m->ntables; t++)
		if (!json_object_get(tables, m->tables[t].name))
			return csm_fail(err, -EINVAL, "table %s of the model is not placed",
					m->tables[t].name);
	return parse_cold(p, json_object_get(root, "cold"), err);
}

int csm_placement_parse(struct csm_placement *p, const char *text, size_t len,
			const struct csm_model *m, struct csm_err *err)
{
	json_error_t je;
	json_t *root;
	int ret;

	memset(p, 0, sizeof(*p));
	root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &je);
	if (!root)
		return csm_fail(err, -EINVAL, "line %d: %s", je.line, je.text);
	p->ntables = m->ntables;
	p->tables = calloc(m->ntables + 1, sizeof(*p->tables));
	ret = p->tables ? parse_root(p, root, m, err) : csm_fail(err, -ENOMEM, "out of memory");
	json_decref(root);
	if (ret)
		csm_placement_free(p);
	return ret;
}

int csm_placement_load(struct csm_placement *p, const char *path, const struct csm_model *m,
		       struct csm_err *err)
{
	struct csm_err why;
	struct stat st;
	char *text = NULL;
	size_t n = 0;
	FILE *f;
	int ret;

	memset(p, 0, sizeof(*p));
	f = fopen(path, "re");
	if (!f || fstat(fileno(f), &st)) {
		ret = csm_fail(err, -errno, "%s: %s", path, strerror(errno));
		goto out;
	}
	if (!S_ISREG(st.st_mode) || st.st_size > FILE_MAX) {
		ret = csm_fail(err, -EINVAL, "%s: not a regular file of at most %u bytes", path,
			       FILE_MAX);
		goto out;
	}
	text = malloc(st.st_size + 1);
	if (!text) {
		ret = csm_fail(err, -ENOMEM, "%s: out of memory", path);
		goto out;
	}
	n = fread(text, 1, st.st_size, f);
	if (ferror(f)) {
		ret = csm_fail(err, -EIO, "%s: read failed", path);
		goto out;
	}
	ret = csm_placement_parse(p, text, n, m, &why);
	if (ret)
		csm_fail(err, ret, "%s: %s", path, why.msg);
out:
	free(text);
	if (f)
		fclose(f);
	return ret;
}

void csm_placement_free(struct csm_placement *p)
{
	for (uint32_t t = 0; p->tables && t < p->ntables; t++)
		free(p->tables[t].hot);
	free(p->tables);
	free(p->cold_path);
	memset(p, 0, sizeof(*p));
}
