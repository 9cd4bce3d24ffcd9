// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Statistics files and their order files: FORMAT.md in this folder. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <jansson.h>

#include "stats.h"

#define ALIGN	64
#define SUFFIX	".order"

/* Takes over the descriptor. */
static int write_order(const struct st_profile *p, int fd, const char *path, uint64_t *offsets,
		       uint32_t *crcs, struct csm_err *err)
{
	static const char zero[ALIGN];
	FILE *f = fdopen(fd, "w");
	uint64_t at = 0;

	if (!f) {
		close(fd);
		return csm_fail(err, -ENOMEM, "out of memory");
	}
	for (uint32_t t = 0; t < p->ntables; t++) {
		const struct st_result *r = &p->tables[t].result;
		size_t len = r->n * sizeof(uint32_t), pad = -at % ALIGN;

		fwrite(zero, 1, pad, f);
		offsets[t] = at + pad;
		fwrite(r->ids, 1, len, f);
		fwrite(r->counts, 1, len, f);
		crcs[t] = csm_crc32c(csm_crc32c(0, r->ids, len), r->counts, len);
		at = offsets[t] + 2 * len;
	}
	if (fflush(f) || fsync(fileno(f)) || ferror(f)) {
		csm_fail(err, -EIO, "%s: %s", path, strerror(errno));
		fclose(f);
		return -EIO;
	}
	fclose(f);
	return 0;
}

static json_t *table_json(const struct st_profile *p, uint32_t t, uint64_t offset, uint32_t crc)
{
	const struct st_table *tab = &p->tables[t];
	const struct st_result *r = &tab->result;
	json_t *curve = json_array(), *reuse = json_array();
	uint64_t points[ST_CURVE][2];
	uint32_t n = st_curve(r, points);
	int last = ST_REUSE;

	for (uint32_t i = 0; i < n; i++)
		json_array_append_new(curve, json_pack("[I, I]", (json_int_t)points[i][0],
						       (json_int_t)points[i][1]));
	while (last > 1 && !r->reuse[last - 1])
		last--;
	for (int i = 0; i < last; i++)
		json_array_append_new(reuse, json_integer(r->reuse[i]));
	return json_pack("{s:s, s:i, s:o, s:I, s:I, s:b, s:I, s:{s:f, s:I}, s:o, s:o, s:{s:I, s:I, s:I}}",
			 "name", tab->name, "index", (int)t,
			 "rows", tab->rows ? json_integer(tab->rows) : json_null(),
			 "accesses", (json_int_t)r->accesses, "unique", (json_int_t)r->unique,
			 "exact", r->exact, "slack", (json_int_t)r->slack,
			 "pooling", "mean", p->samples ? (double)r->accesses / (double)p->samples : 0.,
			 "max", (json_int_t)tab->pooling_max, "curve", curve, "reuse_log2", reuse,
			 "order", "offset", (json_int_t)offset, "count", (json_int_t)r->n,
			 "crc32c", (json_int_t)crc);
}

static json_t *pairs_json(const struct st_profile *p)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < p->npairs; i++) {
		const struct st_pair *q = &p->pairs[i];

		json_array_append_new(list, json_pack("{s:[s, I], s:[s, I], s:I}",
			"a", p->tables[q->table[0]].name, (json_int_t)q->id[0],
			"b", p->tables[q->table[1]].name, (json_int_t)q->id[1],
			"count", (json_int_t)q->count));
	}
	return json_pack("{s:I, s:I, s:o}", "samples", (json_int_t)p->pair_samples, "slack",
			 (json_int_t)p->pair_slack, "pairs", list);
}

int csm_stats_write(const struct st_profile *p, const char *path, struct csm_err *err)
{
	uint64_t *offsets = calloc(p->ntables + 1, sizeof(*offsets));
	uint32_t *crcs = calloc(p->ntables + 1, sizeof(*crcs));
	char order[4096], *order_tmp = NULL, *json_tmp = NULL;
	const char *name = strrchr(path, '/');
	json_t *tables = json_array(), *root = NULL;
	bool exact = true;
	int ret = -ENOMEM, fd = -1;

	if (!offsets || !crcs || !tables) {
		csm_fail(err, ret, "out of memory");
		goto out;
	}
	if (strlen(path) + sizeof(SUFFIX) + 4 > sizeof(order)) {
		ret = csm_fail(err, -ENAMETOOLONG, "%s: path is too long", path);
		goto out;
	}
	snprintf(order, sizeof(order), "%s" SUFFIX, path);
	fd = csm_temp_open(path, &json_tmp, err);
	ret = fd < 0 ? fd : csm_temp_open(order, &order_tmp, err);
	if (ret >= 0)
		ret = write_order(p, ret, order, offsets, crcs, err);
	if (ret)
		goto remove;
	for (uint32_t t = 0; t < p->ntables; t++) {
		exact &= p->tables[t].result.exact;
		json_array_append_new(tables, table_json(p, t, offsets[t], crcs[t]));
	}
	root = json_pack("{s:i, s:s, s:I, s:b, s:s+, s:O, s:o}", "csrec_stats", 1, "source", p->source,
			 "samples", (json_int_t)p->samples, "exact", exact,
			 "order_file", name ? name + 1 : path, SUFFIX, "tables", tables,
			 "cooccurrence", pairs_json(p));
	if (!root || json_array_size(tables) != p->ntables) {
		ret = csm_fail(err, -ENOMEM, "out of memory");
		goto remove;
	}
	if (json_dumpfd(root, fd, JSON_INDENT(1)) || fsync(fd) || rename(order_tmp, order) ||
	    rename(json_tmp, path))
		ret = csm_fail(err, -errno ? -errno : -EIO, "%s: %s", path, strerror(errno));
	if (!ret)
		goto out;
remove:
	if (order_tmp)
		unlink(order_tmp);
	if (json_tmp)
		unlink(json_tmp);
out:
	if (fd >= 0)
		close(fd);
	free(order_tmp);
	free(json_tmp);
	json_decref(root);
	json_decref(tables);
	free(offsets);
	free(crcs);
	return ret;
}

/* A count in JSON: an integer not below 0. */
static bool get(json_t *o, const char *key, uint64_t *x)
{
	json_t *v = json_object_get(o, key);

	*x = json_integer_value(v);
	return json_is_integer(v) && json_integer_value(v) >= 0;
}

static int load_curve(struct csm_stats_table *t, json_t *curve, struct csm_err *err)
{
	size_t n = json_array_size(curve);

	if (!json_is_array(curve) || n > ST_CURVE)
		return csm_fail(err, -EBADMSG, "table %s: 'curve' is no list of at most %d points",
				t->name, ST_CURVE);
	t->curve = calloc(n + 1, sizeof(*t->curve));
	if (!t->curve)
		return csm_fail(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++) {
		json_t *point = json_array_get(curve, i);

		for (int k = 0; k < 2; k++) {
			json_t *v = json_array_get(point, k);

			if (json_array_size(point) != 2 || !json_is_integer(v) || json_integer_value(v) < 0)
				return csm_fail(err, -EBADMSG, "table %s: curve, point %zu: not [rows, accesses]",
						t->name, i);
			t->curve[i][k] = json_integer_value(v);
		}
		if (i && (t->curve[i][0] <= t->curve[i - 1][0] || t->curve[i][1] < t->curve[i - 1][1]))
			return csm_fail(err, -EBADMSG, "table %s: curve, point %zu: not ascending", t->name, i);
	}
	t->ncurve = n;
	return 0;
}

static int load_table(struct csm_stats *s, struct csm_stats_table *t, json_t *o, size_t index,
		      struct csm_err *err)
{
	const char *name = json_string_value(json_object_get(o, "name"));
	json_t *pooling = json_object_get(o, "pooling"), *order = json_object_get(o, "order");
	uint64_t offset, count, crc;
	size_t len;
	int ret;

	if (!name || !*name || strlen(name) >= sizeof(t->name))
		return csm_fail(err, -EBADMSG, "tables[%zu]: 'name' is not a string of 1..%zu bytes", index,
				sizeof(t->name) - 1);
	strcpy(t->name, name);
	if (!json_is_null(json_object_get(o, "rows")) && !get(o, "rows", &t->rows))
		return csm_fail(err, -EBADMSG, "table %s: 'rows' is neither a count nor null", name);
	t->pooling_mean = json_number_value(json_object_get(pooling, "mean"));
	if (!get(o, "accesses", &t->accesses) || !get(o, "unique", &t->unique) ||
	    !get(pooling, "max", &t->pooling_max) || !(t->pooling_mean >= 0))
		return csm_fail(err, -EBADMSG,
				"table %s: 'accesses', 'unique' or 'pooling' is missing or no count", name);
	ret = load_curve(t, json_object_get(o, "curve"), err);
	if (ret)
		return ret;
	if (!get(order, "offset", &offset) || !get(order, "count", &count) || !get(order, "crc32c", &crc))
		return csm_fail(err, -EBADMSG, "table %s: 'order' lacks offset, count or crc32c", name);
	if (offset % ALIGN || offset > s->map_size || count > UINT32_MAX ||
	    count * 8 > s->map_size - offset)
		return csm_fail(err, -EBADMSG, "table %s: %llu rows at byte %llu leave the order file", name,
				(unsigned long long)count, (unsigned long long)offset);
	len = count * sizeof(uint32_t);
	t->norder = count;
	t->order = (const uint32_t *)((const uint8_t *)s->map + offset);
	t->counts = t->order + count;
	if (csm_crc32c(csm_crc32c(0, t->order, len), t->counts, len) != crc)
		return csm_fail(err, -EBADMSG, "table %s: checksum of its order is wrong", name);
	for (uint64_t i = 0; i < count; i++)
		if ((t->rows && t->order[i] >= t->rows) || (i && t->counts[i] > t->counts[i - 1]))
			return csm_fail(err, -EBADMSG, "table %s: order, entry %llu: row %u does not belong there",
					name, (unsigned long long)i, t->order[i]);
	return 0;
}

static int map_order(struct csm_stats *s, const char *path, json_t *root, struct csm_err *err)
{
	const char *file = json_string_value(json_object_get(root, "order_file"));
	const char *slash = strrchr(path, '/');
	char order[4096];
	struct stat st;
	int fd, ret = 0;

	if (!file || !*file || strchr(file, '/'))
		return csm_fail(err, -EBADMSG, "'order_file' is not the name of a file beside this one");
	if ((size_t)snprintf(order, sizeof(order), "%.*s%s", slash ? (int)(slash - path + 1) : 0, path,
			     file) >= sizeof(order))
		return csm_fail(err, -ENAMETOOLONG, "path of the order file is too long");
	fd = open(order, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st)) {
		ret = csm_fail(err, -errno, "%s: %s", order, strerror(errno));
	} else if (!S_ISREG(st.st_mode)) {
		ret = csm_fail(err, -EINVAL, "%s: not a regular file", order);
	} else if (st.st_size) {
		s->map = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (s->map == MAP_FAILED) {
			s->map = NULL;
			ret = csm_fail(err, -errno, "%s: %s", order, strerror(errno));
		} else {
			s->map_size = st.st_size;
		}
	}
	if (fd >= 0)
		close(fd);
	return ret;
}

int csm_stats_load(struct csm_stats *s, const char *path, struct csm_err *err)
{
	json_t *root, *tables;
	struct csm_err why = { "" };
	json_error_t je;
	int ret;

	memset(s, 0, sizeof(*s));
	root = json_load_file(path, JSON_REJECT_DUPLICATES, &je);
	if (!root)
		return csm_fail(err, je.line < 0 ? -ENOENT : -EBADMSG, "%s: line %d: %s", path, je.line,
				je.text);
	tables = json_object_get(root, "tables");
	s->exact = json_is_true(json_object_get(root, "exact"));
	if (json_integer_value(json_object_get(root, "csrec_stats")) != 1)
		ret = csm_fail(&why, -EPROTONOSUPPORT, "'csrec_stats' is not 1");
	else if (!get(root, "samples", &s->samples) || !json_is_array(tables))
		ret = csm_fail(&why, -EBADMSG, "'samples' or 'tables' is missing");
	else
		ret = map_order(s, path, root, &why);
	if (!ret) {
		s->tables = calloc(json_array_size(tables) + 1, sizeof(*s->tables));
		if (!s->tables)
			ret = csm_fail(&why, -ENOMEM, "out of memory");
	}
	for (size_t i = 0; !ret && i < json_array_size(tables); i++) {
		s->ntables = i + 1;
		ret = load_table(s, &s->tables[i], json_array_get(tables, i), i, &why);
	}
	json_decref(root);
	if (ret) {
		csm_stats_free(s);
		csm_fail(err, ret, "%s: %s", path, why.msg);
	}
	return ret;
}

void csm_stats_free(struct csm_stats *s)
{
	for (uint32_t t = 0; t < s->ntables; t++)
		free(s->tables[t].curve);
	free(s->tables);
	if (s->map)
		munmap(s->map, s->map_size);
	memset(s, 0, sizeof(*s));
}
