// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* CRC-32C, click logs, AUC, remapping and fetch planning, cold extents. Argument: a scratch folder. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "csm.h"
#include "format.h"
#include "tap.h"

static void crc(void)
{
	uint8_t buf[64];
	uint32_t split;

	/* RFC 3720, B.4, and the check value of the CRC catalogue */
	memset(buf, 0, 32);
	tap(csm_crc32c(0, buf, 32) == 0x8a9136aa, "CRC of 32 zeros");
	memset(buf, 0xff, 32);
	tap(csm_crc32c(0, buf, 32) == 0x62a8ab43, "CRC of 32 ones");
	for (int i = 0; i < 32; i++)
		buf[i] = i;
	tap(csm_crc32c(0, buf, 32) == 0x46dd794e, "CRC of 0..31");
	for (int i = 0; i < 32; i++)
		buf[i] = 31 - i;
	tap(csm_crc32c(0, buf, 32) == 0x113fdb5c, "CRC of 31..0");
	tap(csm_crc32c(0, "123456789", 9) == 0xe3069283, "CRC of the digits");
	tap(csm_crc32c(0, "", 0) == 0, "CRC of nothing");
	split = csm_crc32c(0, "12345", 5);
	tap(csm_crc32c(split, "6789", 4) == 0xe3069283, "CRC in two parts");
}

#define D13	"1\t2\t3\t4\t5\t6\t7\t8\t9\t10\t11\t12\t13"
#define H25	"a\tb\tc\td\te\tf\t1\t2\t3\t4\t5\t6\t7\t8\t9\ta\tb\tc\td\te\tf\t1\t2\t3\t4"

static void tsv_lines(void)
{
	static const struct { const char *name, *line; bool good; } cases[] = {
		{ "plain", "1\t" D13 "\t" H25 "\tffffffff", true },
		{ "all empty", "0\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t", true },
		{ "carriage return", "1\t" D13 "\t" H25 "\tff\r", true },
		{ "capital digits", "1\t" D13 "\t" H25 "\tABCDEF", true },
		{ "sixteen digits", "1\t" D13 "\t" H25 "\tffffffffffffffff", true },
		{ "seventeen digits", "1\t" D13 "\t" H25 "\t0ffffffffffffffff", false },
		{ "empty line", "", false },
		{ "label only", "1", false },
		{ "39 fields", "1\t" D13 "\t" H25, false },
		{ "41 fields", "1\t" D13 "\t" H25 "\tff\t", false },
		{ "no label", "\t" D13 "\t" H25 "\tff", false },
		{ "label 2", "2\t" D13 "\t" H25 "\tff", false },
		{ "label 1.0", "1.0\t" D13 "\t" H25 "\tff", false },
		{ "0x prefix", "1\t" D13 "\t" H25 "\t0xff", false },
		{ "not hexadecimal", "1\t" D13 "\t" H25 "\tfg", false },
		{ "space in a category", "1\t" D13 "\t" H25 "\t f", false },
		{ "negative category", "1\t" D13 "\t" H25 "\t-1", false },
		{ "fraction", "1\t1.5\t2\t3\t4\t5\t6\t7\t8\t9\t10\t11\t12\t13\t" H25 "\tff", false },
		{ "lone minus", "1\t-\t2\t3\t4\t5\t6\t7\t8\t9\t10\t11\t12\t13\t" H25 "\tff", false },
		{ "plus sign", "1\t+1\t2\t3\t4\t5\t6\t7\t8\t9\t10\t11\t12\t13\t" H25 "\tff", false },
		{ "int64 maximum", "1\t9223372036854775807\t2\t3\t4\t5\t6\t7\t8\t9\t10\t11\t12\t13\t" H25 "\tff", true },
		{ "int64 overflow", "1\t9223372036854775808\t2\t3\t4\t5\t6\t7\t8\t9\t10\t11\t12\t13\t" H25 "\tff", false },
		{ "text", "click\there", false },
	};
	struct csm_click c;
	const char *line;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		tap(!csm_tsv_line(&c, cases[i].line, strlen(cases[i].line)) == cases[i].good,
		    "line %s: %s", cases[i].good ? "taken" : "refused", cases[i].name);

	line = "1\t0\t-5\t\t1\t2147483647\t6\t7\t8\t9\t10\t11\t12\t13\t\tdeadbeef\t" H25;
	tap(csm_tsv_line(&c, line, strrchr(line, '\t') - line) == NULL && c.label == 1,
	    "values of a line");
	tap(c.dense[0] == 0 && c.dense[1] == 0 && c.dense[2] == 0, "0, negative and empty give ln 1");
	tap(c.dense[3] == 0x1.62e43p-1f, "1 gives ln 2 in fp32");
	/* 2147483647 and the sum round to 2^31 in fp32; ln 2^31 = 21.487562597... */
	tap(c.dense[4] == 21.487562597358305f, "2^31-1 gives ln 2^31");
	/* x + 1 is 16777232 in fp32; from 16777234 the logarithm would be an ulp more */
	line = "1\t16777233\t\t\t\t\t\t\t\t\t\t\t\t\t\tdeadbeef\t" H25;
	tap(csm_tsv_line(&c, line, strrchr(line, '\t') - line) == NULL && c.dense[0] == 0x1.0a2b24p4f,
	    "x and x + 1 are rounded to fp32 before the logarithm");
	tap(c.cat[0] == 0 && c.cat[1] == 0xdeadbeef, "empty and hexadecimal category");
	tap(csm_tsv_line(&c, "1\0", 2) != NULL, "a zero byte does not end the line");
}

struct seen {
	uint64_t line[8];
	int n;
};

static void see(void *priv, uint64_t line, const char *why)
{
	struct seen *s = priv;

	(void)why;
	if (s->n < 8)
		s->line[s->n++] = line;
}

static void tsv_file(void)
{
	static const char good[] = "1\t" D13 "\t" H25 "\tff";
	char *text = NULL, *longline = malloc(20000);
	struct csm_tsv t = { };
	struct seen seen = { };
	struct csm_err err;
	struct csm_click c;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	int n = 0;

	memset(longline, '1', 19999);
	longline[19999] = 0;
	fprintf(f, "%s\n%s\n\nbad\n%s\n%s\n1\t2\t3", good, good, longline, good);
	fclose(f);
	t.f = fmemopen(text, size, "r");
	t.report = see;
	t.priv = &seen;
	while (csm_tsv_next(&t, &c, &err) == 1)
		n++;
	tap(n == 3 && c.line == 6, "three good lines of seven are read");
	tap(t.bad == 4 && seen.n == 4 && seen.line[0] == 3 && seen.line[1] == 4 &&
	    seen.line[2] == 5 && seen.line[3] == 7, "empty, short, too long and truncated lines are reported by number");
	fclose(t.f);

	t = (struct csm_tsv){ .f = fmemopen(text, size, "r"), .strict = true };
	tap(csm_tsv_next(&t, &c, &err) == 1 && csm_tsv_next(&t, &c, &err) == 1 &&
	    csm_tsv_next(&t, &c, &err) == -EBADMSG && strstr(err.msg, "line 3"),
	    "strict stops at the first and names it");
	fclose(t.f);

	t = (struct csm_tsv){ .f = fmemopen((void *)good, strlen(good), "r") };
	tap(csm_tsv_next(&t, &c, &err) == 1 && !csm_tsv_next(&t, &c, &err),
	    "the last line needs no newline");
	fclose(t.f);
	free(text);
	free(longline);
}

static void metrics(void)
{
	const float s[] = { 0.1f, 0.4f, 0.35f, 0.8f }, same[] = { 0.5f, 0.5f, 0.5f, 0.5f };
	const float half[] = { 0.25f, 0.5f }, sure[] = { 0, 1 };
	const uint8_t l[] = { 0, 0, 1, 1 }, flip[] = { 1, 1, 0, 0 }, one[] = { 1, 1, 1, 1 };
	const uint8_t l2[] = { 0, 1 }, wrong[] = { 1, 0 };

	/* 3 of the 4 pairs are in order */
	tap(csm_auc(s, l, 4) == 0.75, "AUC of a known case");
	tap(csm_auc(s, flip, 4) == 0.25, "AUC of its opposite");
	tap(csm_auc(same, l, 4) == 0.5, "AUC of ties");
	tap(isnan(csm_auc(s, one, 4)), "no AUC without non-clicks");
	tap(fabs(csm_logloss(half, l2, 2) - (log(4. / 3) + log(2)) / 2) < 1e-12, "log-loss of a known case");
	tap(csm_logloss(sure, l2, 2) < 1e-14 && isfinite(csm_logloss(sure, wrong, 2)),
	    "log-loss of certainty is finite");
}

/*
 * A model of tables only, with random rows, for the remapper. Row contents are told by
 * table, id and element, so that a wrong row cannot look right.
 */
#define TABLES	5

struct world {
	struct csm_model m;
	struct csm_table tables[TABLES];
	struct csm_node nodes[TABLES + 2];
	struct csm_placement p;
	struct csm_place places[TABLES];
};

static float value(uint32_t table, uint32_t id, uint32_t e)
{
	return (float)(table * 1000003u % 97 + 1) * 100000 + (float)(id * 16 + e % 16);
}

static void world_make(struct world *w, uint64_t *seed, uint32_t block)
{
	static const uint32_t dims[TABLES] = { 16, 4, 20, 300, 1 };

	memset(w, 0, sizeof(*w));
	w->m.tables = w->tables;
	w->m.nodes = w->nodes;
	w->m.ntables = TABLES;
	w->m.nnodes = TABLES + 2;
	w->m.nemb = TABLES + 1;
	w->p.tables = w->places;
	w->p.ntables = TABLES;
	w->p.block = block;
	w->m.id = 0x1234;
	for (uint32_t t = 0; t < TABLES; t++) {
		struct csm_table *tab = &w->tables[t];
		struct csm_place *pl = &w->places[t];
		uint32_t n = 1 + rnd(seed) % 400;
		uint32_t *ids = malloc(n * 4);
		float *rows;

		snprintf(tab->name, sizeof(tab->name), "T%u", t);
		tab->dim = dims[t];
		tab->nrows = n;
		rows = malloc((size_t)n * tab->dim * 4);
		for (uint32_t i = 0; i < n; i++)
			for (uint32_t e = 0; e < tab->dim; e++)
				rows[i * tab->dim + e] = value(t, i, e);
		tab->rows = rows;
		for (uint32_t i = 0; i < n; i++)
			ids[i] = i;
		for (uint32_t i = n - 1; i; i--) {
			uint32_t j = rnd(seed) % (i + 1), x = ids[i];

			ids[i] = ids[j];
			ids[j] = x;
		}
		if (rnd(seed) % 2) {
			tab->norder = rnd(seed) % (n + 1);
			tab->order = ids;
		}
		if (t != 1 || n == 1) {
			pl->tier = n > 1 ? CSM_TIER_SPLIT : CSM_TIER_DRAM;
		}
		if (pl->tier == CSM_TIER_SPLIT) {
			pl->nhot = rnd(seed) % n;
			pl->ids = malloc(n * 4);
			/* hot ids in an order of their own */
			for (uint32_t i = 0; i < pl->nhot; i++)
				pl->ids[i] = ids[pl->nhot - 1 - i];
			if (rnd(seed) % 2) {
				pl->ntt = 1 + rnd(seed) % (n - pl->nhot);
				pl->tt = tab;	/* not looked at here */
				memcpy(pl->ids + pl->nhot, ids + pl->nhot, pl->ntt * 4);
			}
			if (csm_has_cold(pl, tab)) {
				pl->slots = 1 + rnd(seed) % 40;
				w->p.ncold++;
			}
		}
		if (!tab->order)
			free(ids);
		w->nodes[t] = (struct csm_node){ .op = CSM_OP_EMB, .param = t, .emb = t };
	}
	/* table 0 is looked up by two nodes; the last node is no lookup */
	w->nodes[TABLES] = (struct csm_node){ .op = CSM_OP_EMB, .param = 0, .emb = TABLES };
	w->nodes[TABLES + 1] = (struct csm_node){ .op = CSM_OP_MLP };
}

static void world_free(struct world *w)
{
	for (uint32_t t = 0; t < TABLES; t++) {
		free((void *)w->tables[t].rows);
		free((void *)w->tables[t].order);
		free(w->places[t].ids);
	}
}

static void bags_make(struct csm_bags *b, uint32_t n, uint32_t max, uint32_t nrows, uint64_t *seed)
{
	b->offsets = malloc((n + 1) * 4);
	b->ids = malloc((size_t)n * max * 4 + 4);
	b->offsets[0] = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = rnd(seed) % (max + 1);

		for (uint32_t j = 0; j < k; j++)
			b->ids[b->offsets[i] + j] = rnd(seed) % nrows;
		b->offsets[i + 1] = b->offsets[i] + k;
	}
}

/*
 * Plans whole batches over a random placement, does the fetches from an installed
 * extent, and looks every row up as the device would.
 */
static bool remap_round(uint64_t *seed, const char *dir, uint64_t *fetched, uint64_t *splits,
			uint64_t *tts, char *why, size_t len)
{
	const uint32_t n = 1 + rnd(seed) % 60, max = 1 + rnd(seed) % 3;
	const uint32_t block = 512u << rnd(seed) % 4;
	struct csm_bags in[TABLES + 1], out[TABLES + 1], tt[TABLES + 1];
	uint8_t *region[TABLES] = { };
	struct csm_plan plan = { };
	struct csm_extent x = { };
	struct csm_remap r = { };
	struct csm_err err = { "" };
	char path[4096];
	struct world w;
	bool good = false;
	int fd;

	world_make(&w, seed, block);
	w.p.cold_off = rnd(seed) % 3 * block;
	for (uint32_t e = 0; e <= TABLES; e++) {
		bags_make(&in[e], n, max, w.tables[w.nodes[e].param].nrows, seed);
		out[e].ids = malloc((size_t)n * max * 4 + 4);
		out[e].offsets = malloc((n + 1) * 4);
		tt[e].ids = malloc((size_t)n * max * 4 + 4);
		tt[e].offsets = malloc((n + 1) * 4);
	}
	snprintf(path, sizeof(path), "%s/extent", dir);
	unlink(path);
	fd = open(path, O_RDWR | O_CREAT, 0600);
#define FAIL(...)	do { snprintf(why, len, __VA_ARGS__); goto out; } while (0)
	if (csm_remap_init(&r, &w.m, &w.p, &err))
		FAIL("init: %s", err.msg);
	if (w.p.ncold && (csm_extent_install(fd, path, &w.m, &w.p, &r, false, &err) ||
			   csm_extent_open(&x, fd, path, &w.m, &w.p, &r, &err) ||
			   csm_extent_verify(&x, fd, path, &err)))
		FAIL("extent: %s", err.msg);
	for (uint32_t t = 0; t < TABLES; t++) {
		const struct csm_map *map = &r.maps[t];

		if (map->slots && (map->stride < w.tables[t].dim * 4 ||
				   (block % map->stride && map->stride % block)))
			FAIL("table %u: stride %u, block %u", t, map->stride, block);
		region[t] = malloc(map->region_size);
		memset(region[t], 0xff, map->region_size);
		for (uint32_t i = 0; i < map->nhot; i++)
			memcpy(region[t] + (size_t)i * map->stride,
			       w.tables[t].rows + (size_t)(map->ids ? map->ids[i] : i) * w.tables[t].dim,
			       w.tables[t].dim * 4);
	}

	for (uint32_t done = 0; done < n; ) {
		int fit = csm_remap_plan(&r, in, done, n - done, out, tt, &plan, &err);
		uint64_t named = 0;

		if (fit == -ENOSPC) {
			/* true only if this one sample does need too much: then leave it out */
			for (uint32_t t = 0; t < TABLES; t++) {
				const struct csm_map *map = &r.maps[t];
				uint32_t units = 0;
				uint8_t *hit = calloc(map->nunits + 1, 1);

				for (uint32_t e = 0; e <= TABLES; e++)
					for (uint32_t j = in[e].offsets[done]; map->slots &&
					     w.nodes[e].param == t && j < in[e].offsets[done + 1]; j++)
						if (map->rank[in[e].ids[j]] >= map->nhot + map->ntt)
							hit[(map->rank[in[e].ids[j]] - map->nhot - map->ntt) / map->unit_rows] = 1;
				for (uint32_t u = 0; u < map->nunits; u++)
					units += hit[u];
				free(hit);
				if (units > map->slots)
					fit = -1000;
			}
			if (fit != -1000)
				FAIL("refused a sample that fits: %s", err.msg);
			done++;
			continue;
		}
		if (fit < 1 || (uint32_t)fit > n - done)
			FAIL("plan: %d %s", fit, err.msg);
		*splits += (uint32_t)fit < n - done;
		/* the slots may hold anything from before */
		for (uint32_t i = 0; i < plan.nfetch; i++) {
			const struct csm_fetch *f = &plan.fetch[i];
			const struct csm_map *map = &r.maps[f->table];
			uint64_t tail = (uint64_t)map->tail_row * map->stride;

			if (f->dst < tail || f->dst + f->len > map->region_size || f->dst % block ||
			    f->off % block || f->len % block)
				FAIL("fetch %u leaves the slots or is not aligned", i);
			if (i && f[-1].table == f->table &&
			    (f[-1].off + f[-1].len >= f->off || f[-1].dst + f[-1].len != f->dst))
				FAIL("fetch %u is not sorted, merged or unique", i);
			if (i && f[-1].table > f->table)
				FAIL("fetch %u is of an earlier table", i);
			if (pread(fd, region[f->table] + f->dst, f->len,
				  x.base + x.table_off[f->table] + f->off) != (ssize_t)f->len)
				FAIL("fetch %u reads past the extent", i);
			*fetched += f->len;
		}
		for (uint32_t e = 0; e <= TABLES; e++) {
			uint32_t t = w.nodes[e].param, row = 0, ttrow = 0;
			const struct csm_place *pl = &w.places[t];

			for (int i = 0; i < fit; i++) {
				if (out[e].offsets[i] != row || (pl->ntt && tt[e].offsets[i] != ttrow))
					FAIL("bag %d of node %u moved", i, e);
				for (uint32_t j = in[e].offsets[done + i]; j < in[e].offsets[done + i + 1]; j++) {
					uint32_t id = in[e].ids[j], k = pl->nhot, at;

					while (k < pl->nhot + pl->ntt && pl->ids[k] != id)
						k++;
					if (k < pl->nhot + pl->ntt) {
						if (tt[e].ids[ttrow++] != k - pl->nhot)
							FAIL("table %u id %u is another TT row", t, id);
						continue;
					}
					at = out[e].ids[row++];
					if (at >= r.maps[t].region_rows)
						FAIL("row %u of table %u is past its region", at, t);
					if (memcmp(region[t] + (size_t)at * r.maps[t].stride,
						   w.tables[t].rows + (size_t)id * w.tables[t].dim,
						   w.tables[t].dim * 4))
						FAIL("table %u id %u gives another row", t, id);
				}
			}
			if (out[e].offsets[fit] != row || (pl->ntt && tt[e].offsets[fit] != ttrow))
				FAIL("the last bag of node %u ends elsewhere", e);
			named += row + ttrow;
			*tts += ttrow;
		}
		if (plan.rows_dram + plan.rows_nvme + plan.rows_tt != named)
			FAIL("rows are miscounted");
		done += fit;
	}
	good = true;
out:
	csm_plan_free(&plan);
	csm_extent_free(&x);
	if (r.maps)
		csm_remap_free(&r);
	for (uint32_t e = 0; e <= TABLES; e++) {
		free(in[e].ids);
		free(in[e].offsets);
		free(out[e].ids);
		free(out[e].offsets);
		free(tt[e].ids);
		free(tt[e].offsets);
	}
	for (uint32_t t = 0; t < TABLES; t++)
		free(region[t]);
	world_free(&w);
	close(fd);
	unlink(path);
	return good;
}

static void remaps(const char *dir)
{
	uint64_t seed = 12345, fetched = 0, splits = 0, tts = 0;
	char why[500] = "";
	int i;

	for (i = 0; i < 300; i++)
		if (!remap_round(&seed, dir, &fetched, &splits, &tts, why, sizeof(why)))
			break;
	if (!tap(i == 300, "300 random placements: every id finds its row"))
		printf("# round %d: %s\n", i, why);
	tap(fetched > 0 && splits > 10 && tts > 0,
	    "of which some fetched, some cut batches, some had TT rows (%llu bytes, %llu cuts, %llu rows)",
	    (unsigned long long)fetched, (unsigned long long)splits, (unsigned long long)tts);
}

static void dedup(void)
{
	/* 40 rows of 64 bytes, all cold, 8 in a block of 512, 2 slots */
	static float rows[40 * 16];
	struct csm_table t = { .name = "T", .dim = 16, .nrows = 40, .rows = rows };
	struct csm_place pl = { .tier = CSM_TIER_SPLIT, .slots = 2 };
	struct csm_node node = { .op = CSM_OP_EMB };
	struct csm_model m = { .tables = &t, .ntables = 1, .nodes = &node, .nnodes = 1, .nemb = 1 };
	struct csm_placement p = { .tables = &pl, .ntables = 1, .ncold = 1, .block = 512 };
	uint32_t ids[] = { 9, 0, 15, 9, 7, 16 }, offsets[] = { 0, 1, 2, 3, 4, 5, 6 };
	uint32_t oids[6], ooffs[7], all[] = { 0, 3 }, three[] = { 0, 8, 16 }, big[] = { 40 };
	uint32_t one[] = { 0, 1 };
	struct csm_bags in = { ids, offsets }, out = { oids, ooffs }, tt = { };
	struct csm_plan plan = { };
	struct csm_remap r;
	struct csm_err err;

	tap(!csm_remap_init(&r, &m, &p, &err), "a table with no hot rows");
	tap(csm_remap_plan(&r, &in, 0, 6, &out, &tt, &plan, &err) == 5,
	    "a batch of three blocks for two slots is cut before the third");
	tap(plan.nfetch == 1 && plan.fetch[0].off == 0 && plan.fetch[0].len == 1024 &&
	    plan.fetch[0].dst == 0, "neighbouring blocks are one fetch, each block once");
	tap(oids[0] == 9 && oids[1] == 0 && oids[2] == 15 && oids[3] == 9 && oids[4] == 7,
	    "ids keep their order");
	tap(csm_remap_plan(&r, &in, 5, 1, &out, &tt, &plan, &err) == 1 && oids[0] == 0 &&
	    plan.fetch[0].off == 1024 && plan.rows_nvme == 1, "the rest follows");
	in = (struct csm_bags){ three, all };
	tap(csm_remap_plan(&r, &in, 0, 1, &out, &tt, &plan, &err) == -ENOSPC && strstr(err.msg, "table T"),
	    "one sample of three blocks is refused, the table named");
	in = (struct csm_bags){ big, one };
	tap(csm_remap_plan(&r, &in, 0, 1, &out, &tt, &plan, &err) == -EINVAL, "an id past the table is refused");
	csm_plan_free(&plan);
	csm_remap_free(&r);
}

static void extents(const char *dir)
{
	static const struct { const char *name; int64_t at; const char *want; } damage[] = {
		{ "magic", 0, "no cold extent" },
		{ "version", 8, "version" },
		{ "block size", 16, "blocks of" },
		{ "header", 32, "header checksum" },
		{ "directory", 512 + 17, "directory checksum" },
		{ "checksum area", 1024 + 2, "checksum area" },
	};
	uint64_t seed = 99;
	struct csm_extent x;
	struct csm_remap r;
	struct csm_err err = { "" };
	char path[4096];
	struct world w;
	uint64_t size;
	uint8_t b;
	int fd, ret;

	do {
		world_make(&w, &seed, 512);
		if (w.p.ncold < 3 || w.places[0].tier != CSM_TIER_SPLIT) {
			world_free(&w);
			continue;
		}
		break;
	} while (1);
	w.p.cold_off = 4096;
	snprintf(path, sizeof(path), "%s/extent", dir);
	unlink(path);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	if (csm_remap_init(&r, &w.m, &w.p, &err)) {
		tap(false, "init: %s", err.msg);
		return;
	}
	size = csm_extent_size(&w.m, &w.p, &r);

	tap(csm_extent_open(&x, fd, path, &w.m, &w.p, &r, &err) == -EBADMSG, "no extent in an empty file");
	pwrite(fd, "data", 4, 4096 + size - 4);
	tap(csm_extent_install(fd, path, &w.m, &w.p, &r, false, &err) == -EEXIST &&
	    strstr(err.msg, "--force"), "data where the extent would end is not overwritten");
	pwrite(fd, "\0\0\0\0", 4, 4096 + size - 4);
	pwrite(fd, "data", 4, 4096 + size);
	pwrite(fd, "data", 4, 4092);
	tap(!csm_extent_install(fd, path, &w.m, &w.p, &r, false, &err), "installs over zeros: %s", err.msg);
	b = 0;
	tap(pread(fd, &b, 1, 4095) == 1 && b == 'a' && pread(fd, &b, 1, 4096 + size) == 1 && b == 'd',
	    "neighbours are not touched");
	tap(!csm_extent_install(fd, path, &w.m, &w.p, &r, false, &err), "installs over an extent");
	for (size_t i = 0; i < sizeof(damage) / sizeof(damage[0]); i++) {
		pread(fd, &b, 1, 4096 + damage[i].at);
		b ^= 0x10;
		pwrite(fd, &b, 1, 4096 + damage[i].at);
		ret = csm_extent_open(&x, fd, path, &w.m, &w.p, &r, &err);
		if (!tap(ret < 0 && strstr(err.msg, damage[i].want), "damaged %s is found", damage[i].name))
			printf("# got %d, '%s'\n", ret, err.msg);
		if (!ret)
			csm_extent_free(&x);
		b ^= 0x10;
		pwrite(fd, &b, 1, 4096 + damage[i].at);
	}
	tap(!csm_extent_open(&x, fd, path, &w.m, &w.p, &r, &err) &&
	    !csm_extent_verify(&x, fd, path, &err), "undamaged, it verifies");
	pread(fd, &b, 1, 4096 + size - 600);
	b ^= 1;
	pwrite(fd, &b, 1, 4096 + size - 600);
	ret = csm_extent_verify(&x, fd, path, &err);
	tap(ret == -EBADMSG && strstr(err.msg, "data block"), "a flipped data bit is found");
	csm_extent_free(&x);
	tap(csm_extent_install(fd, path, &w.m, &w.p, &r, true, &err) == 0, "force installs over anything");

	w.m.id ^= 1;
	tap(csm_extent_open(&x, fd, path, &w.m, &w.p, &r, &err) == -EBADMSG && strstr(err.msg, "model"),
	    "another model's extent is refused");
	w.m.id ^= 1;
	/* same numbers of rows, other ids */
	if (r.maps[0].ncold > 1) {
		uint32_t first = r.maps[0].nhot + r.maps[0].ntt;

		for (uint32_t id = 0; id < w.tables[0].nrows; id++)
			if (r.maps[0].rank[id] - first < 2)
				r.maps[0].rank[id] = 2 * first + 1 - r.maps[0].rank[id];
		tap(csm_extent_open(&x, fd, path, &w.m, &w.p, &r, &err) == -EBADMSG &&
		    strstr(err.msg, "other cold rows of table T0"), "another placement's extent is refused");
	}
	if (ftruncate(fd, 4096 + size - 512))
		perror("ftruncate");
	tap(csm_extent_open(&x, fd, path, &w.m, &w.p, &r, &err) < 0, "a truncated extent is refused");
	csm_remap_free(&r);
	world_free(&w);
	close(fd);
	unlink(path);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: test_parts FOLDER\n");
		return 2;
	}
	crc();
	tsv_lines();
	tsv_file();
	metrics();
	remaps(argv[1]);
	dedup();
	extents(argv[1]);
	return tap_done();
}
