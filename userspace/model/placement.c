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
	pl->ids[pl->nhot++] = id;
	return 0;
}

/* {"count": n}, {"ids": [...]} or {"ranges": [[first, last], ...]} */
static int parse_hot(struct csm_place *pl, json_t *hot, const struct csm_table *t,
		     const struct csm_table *by, struct csm_err *err)
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

	pl->ids = malloc((size_t)t->nrows * sizeof(*pl->ids));
	seen = calloc(t->nrows / 8 + 1, 1);
	if (!pl->ids || !seen) {
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
		if (!ret && count > by->norder)
			ret = csm_fail(err, -EINVAL,
				       "%s: %llu rows by order, but only %u of this table are ordered",
				       where, (unsigned long long)count, by->norder);
		if (ret)
			goto out;
		if (count)	/* without, there may be no order */
			memcpy(pl->ids, by->order, count * sizeof(*pl->ids));
		pl->nhot = count;
	}
out:
	free(seen);
	return ret;
}

static bool same_numbers(json_t *array, const uint32_t *want, size_t n)
{
	if (json_array_size(array) != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!json_is_integer(json_array_get(array, i)) ||
		    json_integer_value(json_array_get(array, i)) != want[i])
			return false;
	return true;
}

/* {"count": n, "p": [...], "q": [...], "ranks": [...]}: the rows by order after the hot ones */
static int parse_tt(struct csm_place *pl, json_t *tt, bool hot_by_order,
		    const struct csm_table *t, const struct csm_table *by, struct csm_err *err)
{
	static const char *const known[] = { "count", "p", "q", "ranks", NULL };
	uint32_t q[3] = { by->q[0], by->q[1], by->q[2] }, r[2] = { by->r[0], by->r[1] };
	char where[64];
	uint64_t count;
	int ret;

	snprintf(where, sizeof(where), "table %s, tt", t->name);
	if (!json_is_object(tt))
		return csm_fail(err, -EINVAL, "%s: an object is needed", where);
	ret = check_keys(tt, where, known, err);
	if (!ret)
		ret = get_uint(tt, where, "count", 1, t->nrows, &count, err);
	if (ret)
		return ret;
	if (!hot_by_order)
		return csm_fail(err, -EINVAL, "%s: takes hot rows by 'count'", where);
	if (by == t || by->form != CSM_FORM_TT)
		return csm_fail(err, -EINVAL, "%s: no overlay has its cores", where);
	if (count != by->nrows || by->dim != t->dim || !same_numbers(json_object_get(tt, "p"), by->p, 3) ||
	    !same_numbers(json_object_get(tt, "q"), q, 3) ||
	    !same_numbers(json_object_get(tt, "ranks"), r, 2))
		return csm_fail(err, -EINVAL, "%s: count, shape or ranks are not those of the overlay",
				where);
	if (pl->nhot + count > by->norder)
		return csm_fail(err, -EINVAL,
				"%s: %llu rows by order after %u hot ones, but only %u are ordered",
				where, (unsigned long long)count, pl->nhot, by->norder);
	memcpy(pl->ids + pl->nhot, by->order + pl->nhot, count * sizeof(*pl->ids));
	pl->ntt = count;
	pl->tt = by;
	return 0;
}

static int parse_table(struct csm_placement *p, json_t *obj, uint32_t index,
		       const struct csm_table *t, struct csm_place *pl, struct csm_err *err)
{
	static const char *const known_split[] = { "tier", "device", "hot", "tt", "slots", NULL };
	static const char *const known[] = { "tier", "device", NULL };
	const struct csm_table *by = p->overlay ? &p->overlay->tables[index] : t;
	json_t *hot = json_object_get(obj, "hot"), *tt = json_object_get(obj, "tt");
	const char *tier;
	char where[48];
	uint64_t slots = 0, device;
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
	if (!ret && json_object_get(obj, "device"))
		ret = get_uint(obj, where, "device", 0, 0, &device, err);
	if (ret || pl->tier != CSM_TIER_SPLIT)
		return ret;
	if (!by->order)
		by = t;
	ret = parse_hot(pl, hot, t, by, err);
	if (!ret && tt)
		ret = parse_tt(pl, tt, json_object_get(hot, "count"), t, by, err);
	if (ret)
		return ret;
	if (!csm_has_cold(pl, t)) {
		if (!pl->ntt)
			return csm_fail(err, -EINVAL, "%s: every row is hot; the tier is then 'dram'",
					where);
		return json_object_get(obj, "slots") ?
		       csm_fail(err, -EINVAL, "%s: 'slots', but no row is cold", where) : 0;
	}
	ret = get_uint(obj, where, "slots", 1, CSM_SLOTS_MAX, &slots, err);
	pl->slots = slots;
	p->ncold++;
	return ret;
}

static int parse_cold(struct csm_placement *p, json_t *cold, struct csm_err *err)
{
	static const char *const known[] = { "path", "offset", "block", NULL };
	json_t *path;
	uint64_t v;
	int ret;

	if (!cold) {
		if (p->ncold)
			return csm_fail(err, -EINVAL, "'cold' is missing, but %u tables have cold rows",
					p->ncold);
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

/* {"file": name, "crc32c": header's}: a file beside the placement */
static int parse_overlay(struct csm_placement *p, json_t *overlay, const char *dir,
			 const struct csm_model *m, struct csm_err *err)
{
	static const char *const known[] = { "file", "crc32c", NULL };
	const char *file = json_string_value(json_object_get(overlay, "file"));
	char path[4096];
	uint64_t crc;
	int ret;

	if (!overlay)
		return 0;
	if (!json_is_object(overlay))
		return csm_fail(err, -EINVAL, "'overlay' is no object");
	ret = check_keys(overlay, "overlay", known, err);
	if (!ret)
		ret = get_uint(overlay, "overlay", "crc32c", 0, UINT32_MAX, &crc, err);
	if (ret)
		return ret;
	if (!file || !*file || strchr(file, '/'))
		return csm_fail(err, -EINVAL, "overlay: 'file' is not the name of a file beside this one");
	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, file) >= sizeof(path))
		return csm_fail(err, -ENAMETOOLONG, "overlay: %s/...: path is too long", dir);
	p->overlay = calloc(1, sizeof(*p->overlay));
	if (!p->overlay)
		return csm_fail(err, -ENOMEM, "out of memory");
	ret = csm_overlay_load(p->overlay, path, m, err);
	if (!ret && p->overlay->id != crc)
		ret = csm_fail(err, -EBADMSG, "%s: is not the overlay of this placement (%08x, not %08x)",
			       path, p->overlay->id, (uint32_t)crc);
	return ret;
}

static int parse_root(struct csm_placement *p, json_t *root, const char *dir,
		      const struct csm_model *m, struct csm_err *err)
{
	/* what planners tell besides is for people and for csrec plan */
	static const char *const known[] = { "csrec_placement", "cold", "tables", "overlay",
		"csrec_plan", "devices", "prediction", "certificate", "baselines", "migration", NULL };
	json_t *tables, *devices, *v;
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
	devices = json_object_get(root, "devices");
	if (devices && json_array_size(devices) != 1)
		return csm_fail(err, -EINVAL,
				"is a plan for %zu devices, and rows can be placed on one only",
				json_array_size(devices));
	ret = parse_overlay(p, json_object_get(root, "overlay"), dir, m, err);
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
		ret = parse_table(p, v, t, &m->tables[t], &p->tables[t], err);
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
			const char *dir, const struct csm_model *m, struct csm_err *err)
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
	ret = p->tables ? parse_root(p, root, dir, m, err) : csm_fail(err, -ENOMEM, "out of memory");
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
	char *text = NULL, *slash, *dir = NULL;
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
	dir = strdup(path);
	if (!dir) {
		ret = csm_fail(err, -ENOMEM, "%s: out of memory", path);
		goto out;
	}
	slash = strrchr(dir, '/');
	if (slash)
		slash[slash == dir] = 0;
	ret = csm_placement_parse(p, text, n, slash ? dir : ".", m, &why);
	if (ret)
		csm_fail(err, ret, "%s: %s", path, why.msg);
out:
	free(dir);
	free(text);
	if (f)
		fclose(f);
	return ret;
}

void csm_placement_free(struct csm_placement *p)
{
	for (uint32_t t = 0; p->tables && t < p->ntables; t++)
		free(p->tables[t].ids);
	free(p->tables);
	free(p->cold_path);
	if (p->overlay)
		csm_model_free(p->overlay);
	free(p->overlay);
	memset(p, 0, sizeof(*p));
}
