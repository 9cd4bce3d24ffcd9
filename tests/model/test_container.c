// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Container and placement: what is sound loads, and every rule of FORMAT.md that a file
 * can break is refused with a message that names it. Argument: tools/data.
 */
#include <errno.h>
#include <unistd.h>

#include "image.h"
#include "tap.h"

static struct image sample;

static struct csm_rec_table *table(struct image *im, int i)
{
	return (struct csm_rec_table *)img_data(im, CSM_SEC_TABLES, 0) + i;
}

static struct csm_rec_layer *layer(struct image *im, int i)
{
	return (struct csm_rec_layer *)img_data(im, CSM_SEC_LAYERS, 0) + i;
}

static struct csm_rec_buffer *buffer(struct image *im, int i)
{
	return (struct csm_rec_buffer *)img_data(im, CSM_SEC_BUFFERS, 0) + i;
}

static struct csm_rec_node *node(struct image *im, int i)
{
	return (struct csm_rec_node *)img_data(im, CSM_SEC_NODES, 0) + i;
}

static uint32_t *order(struct image *im)	/* of C4 */
{
	return img_data(im, CSM_SEC_ORDER, 3);
}

/*
 * The sample's nodes are 26 EMB, then MLP bot0 (26), bot1 (27), DOT (28), top0..2 (29..31);
 * its buffers dense, features, bot0, interaction, top0, top1, click; C3 (2) is in TT form.
 */
#define CASES(X) \
	X("empty file", "less than a header", c.size = 0) \
	X("100 bytes of a header", "less than a header", c.size = 100) \
	X("wrong magic", "wrong magic", c.data[3] ^= 1) \
	X("major version 2", "version 2.0", img_hdr(&c)->major = 2; img_seal(&c)) \
	X("header bit flipped", "header checksum", c.data[33] ^= 4) \
	X("reserved header byte", "reserved header bytes", c.data[4000] = 1; img_seal(&c)) \
	X("truncated by a byte", "its header says", c.size--) \
	X("truncated by half", "its header says", c.size /= 2) \
	X("no sections", "0 sections", img_hdr(&c)->nsections = 0; img_seal(&c)) \
	X("4 billion sections", "sections; 1 to", img_hdr(&c)->nsections = ~0u; img_seal(&c)) \
	X("directory past the end", "leaves the file", img_hdr(&c)->dir_off = 1ull << 40; img_seal(&c)) \
	X("directory at the last page", "leaves the file", img_hdr(&c)->nsections = 60000; img_seal(&c)) \
	X("directory in the header", "leaves the file", img_hdr(&c)->dir_off = 0; img_seal_header(&c)) \
	X("directory bit flipped", "directory checksum", img_dir(&c)->name[5] ^= 1) \
	X("table bit flipped", "ROWS 3): checksum", ((uint8_t *)img_data(&c, CSM_SEC_ROWS, 3))[77] ^= 1) \
	X("weight bit flipped", "WEIGHTS 4): checksum", ((uint8_t *)img_data(&c, CSM_SEC_WEIGHTS, 4))[0] ^= 128) \
	X("section not aligned", "not aligned", img_find(&c, CSM_SEC_ROWS, 0)->off += 64; img_seal(&c)) \
	X("section past the end", "not within the file", img_find(&c, CSM_SEC_ROWS, 0)->off = c.size + 4096 - c.size % 4096; img_seal(&c)) \
	X("section size wraps", "not within the file", img_find(&c, CSM_SEC_ROWS, 0)->size = ~0ull - 4095; img_seal(&c)) \
	X("empty section", "not within the file", img_find(&c, CSM_SEC_ROWS, 0)->size = 0; img_seal(&c)) \
	X("sections overlap", "overlap", img_find(&c, CSM_SEC_ROWS, 0)->off = img_find(&c, CSM_SEC_ROWS, 1)->off; img_seal(&c)) \
	X("section over the directory", "overlap", img_find(&c, CSM_SEC_INPUT, 0)->off = img_hdr(&c)->dir_off; img_seal(&c)) \
	X("two of one section", "two sections ORDER 3", img_find(&c, CSM_SEC_ORDER, 0)->index = 3; img_seal(&c)) \
	X("unknown needed section", "type 99", img_find(&c, CSM_SEC_META, 0)->type = 99; img_seal(&c)) \
	X("unknown section flag", "unknown flags", img_find(&c, CSM_SEC_META, 0)->flags = 2; img_seal(&c)) \
	X("no input", "no INPUT", img_find(&c, CSM_SEC_INPUT, 0)->index = 1; img_seal(&c)) \
	X("no nodes", "no NODES", img_find(&c, CSM_SEC_NODES, 0)->index = 1; img_seal(&c)) \
	X("half a table record", "TABLES section has", img_find(&c, CSM_SEC_TABLES, 0)->size -= 32; img_seal(&c)) \
	X("other input format", "input format 'Criteo-tsv'", *(char *)img_data(&c, CSM_SEC_INPUT, 0) = 'C'; img_seal(&c)) \
	X("no id columns", "0 id columns", ((struct csm_rec_input *)img_data(&c, CSM_SEC_INPUT, 0))->ncolumns = 0; img_seal(&c)) \
	X("4 billion dense inputs", "input has 4294967295", ((struct csm_rec_input *)img_data(&c, CSM_SEC_INPUT, 0))->ndense = ~0u; img_seal(&c)) \
	X("27 columns of a log that has 26", "criteo-tsv has", ((struct csm_rec_input *)img_data(&c, CSM_SEC_INPUT, 0))->ncolumns = 27; img_seal(&c)) \
	X("12 dense inputs", "input has 12", ((struct csm_rec_input *)img_data(&c, CSM_SEC_INPUT, 0))->ndense = 12; img_seal(&c)) \
	X("table without a name", "no proper name", memset(table(&c, 1)->name, 0, 16); img_seal(&c)) \
	X("table name without end", "no proper name", memset(table(&c, 1)->name, 'x', 16); img_seal(&c)) \
	X("two tables of one name", "both named C1", memcpy(table(&c, 1)->name, "C1", 3); img_seal(&c)) \
	X("table form 2", "unknown form", table(&c, 1)->form = 2; img_seal(&c)) \
	X("table type 3", "unknown form 0 or type 3", table(&c, 1)->dtype = 3; img_seal(&c)) \
	X("fp32 rows told as fp16", "its shape takes", table(&c, 1)->dtype = 1; img_seal(&c)) \
	X("TT cores told as fp16", "unknown form 1 or type 1", table(&c, 2)->dtype = 1; img_seal(&c)) \
	X("table reserved", "reserved bytes", table(&c, 1)->rsvd54 = 1; img_seal(&c)) \
	X("dim 0", "shape", table(&c, 1)->dim = 0; img_seal(&c)) \
	X("dim 65535", "shape", table(&c, 1)->dim = 65535; img_seal(&c)) \
	X("2^62 rows", "shape", table(&c, 1)->nrows = 1ull << 62; img_seal(&c)) \
	X("one row more than there is", "its shape takes", table(&c, 1)->nrows++; img_seal(&c)) \
	X("rows with TT shape", "TT shape of a table of rows", table(&c, 1)->q[1] = 2; img_seal(&c)) \
	X("TT p 0", "out of range", table(&c, 2)->p[1] = 0; img_seal(&c)) \
	X("TT rank 0", "out of range", table(&c, 2)->r[0] = 0; img_seal(&c)) \
	X("TT rank 60000", "out of range", table(&c, 2)->r[1] = 60000; img_seal(&c)) \
	X("TT p product 2^60", "too large", table(&c, 2)->p[0] = table(&c, 2)->p[1] = 1u << 30; img_seal(&c)) \
	X("TT q is not dim", "TT shape holds", table(&c, 2)->q[0] = 4; img_seal(&c)) \
	X("TT rows above p", "TT shape holds", table(&c, 2)->nrows = 100001; img_seal(&c)) \
	X("TT cores too short", "CORES section", img_find(&c, CSM_SEC_CORES, 2)->size -= 64; img_seal(&c)) \
	X("order names no row", "ORDER entry 7", order(&c)[7] = 4000; img_seal(&c)) \
	X("order names a row twice", "ORDER entry 9", order(&c)[9] = order(&c)[8]; img_seal(&c)) \
	X("order too long", "ORDER section has", table(&c, 3)->nrows = 3999; img_find(&c, CSM_SEC_ROWS, 3)->size -= 64; img_seal(&c)) \
	X("layer of no inputs", "out of range", layer(&c, 0)->in_dim = 0; img_seal(&c)) \
	X("layer of 70000 outputs", "out of range", layer(&c, 0)->out_dim = 70000; img_seal(&c)) \
	X("activation 3", "activation 3", layer(&c, 0)->act = 3; img_seal(&c)) \
	X("weights do not fit the shape", "WEIGHTS section has", layer(&c, 0)->in_dim = 14; img_seal(&c)) \
	X("bias denied", "WEIGHTS section has", layer(&c, 0)->has_bias = 0; img_seal(&c)) \
	X("layer reserved", "reserved bytes", layer(&c, 0)->rsvd27[30] = 1; img_seal(&c)) \
	X("buffer of width 0", "width 0", buffer(&c, 1)->width = 0; img_seal(&c)) \
	X("buffer of width 2^31", "width 2147483648", buffer(&c, 1)->width = 1u << 31; img_seal(&c)) \
	X("buffer kind 3", "unknown kind", buffer(&c, 1)->kind = 3; img_seal(&c)) \
	X("second dense input", "second dense input", buffer(&c, 1)->kind = 1; img_seal(&c)) \
	X("dense input too wide", "dense input is 14 wide", buffer(&c, 0)->width = 14; img_seal(&c)) \
	X("no output", "no output", buffer(&c, 6)->kind = 0; img_seal(&c)) \
	X("output partly written", "not written in full", buffer(&c, 6)->width = 2; img_seal(&c)) \
	X("operation 0", "unknown operation 0", node(&c, 3)->op = 0; img_seal(&c)) \
	X("operation 5", "unknown operation 5", node(&c, 30)->op = 5; img_seal(&c)) \
	X("node flag", "unknown flags", node(&c, 3)->flags = 1; img_seal(&c)) \
	X("node reserved", "reserved bytes", node(&c, 3)->rsvd48[3] = 1; img_seal(&c)) \
	X("no such table", "does not exist", node(&c, 3)->param = 26; img_seal(&c)) \
	X("no such column", "does not exist", node(&c, 3)->column = 26; img_seal(&c)) \
	X("no such layer", "does not exist", node(&c, 30)->param = 5; img_seal(&c)) \
	X("no such buffer", "no such buffer", node(&c, 30)->dst = 7; img_seal(&c)) \
	X("repeat 0", "repeat 0", node(&c, 30)->repeat = 0; img_seal(&c)) \
	X("repetitions overlap", "write over each other", node(&c, 30)->repeat = 2; node(&c, 30)->src_step = 0; buffer(&c, 5)->width = 100; node(&c, 30)->dst_step = 1; img_seal(&c)) \
	X("reads past its buffer", "reads past", node(&c, 29)->src_off = 1; img_seal(&c)) \
	X("offset wraps", "reads past", node(&c, 29)->src_off = ~0u; img_seal(&c)) \
	X("writes past its buffer", "writes past", node(&c, 3)->dst_off += 400; img_seal(&c)) \
	X("vectors too far apart", "reads past", node(&c, 28)->vec_step = 17; img_seal(&c)) \
	X("vectors overlap", "out of range", node(&c, 28)->vec_step = 15; img_seal(&c)) \
	X("no vectors", "out of range", node(&c, 28)->nvec = 0; img_seal(&c)) \
	X("one vector too many", "past", node(&c, 28)->nvec = 28; img_seal(&c)) \
	X("MLP with vectors", "vectors without", node(&c, 29)->nvec = 1; img_seal(&c)) \
	X("reads what is not written", "no node before it writes", node(&c, 27)->dst_off = 0; node(&c, 25)->dst_off = 0; node(&c, 27)->dst = 1; node(&c, 25)->op = 2; node(&c, 25)->param = 1; node(&c, 25)->column = 0; node(&c, 25)->src = 2; img_seal(&c)) \
	X("EMB after MLP", "come before all others", { struct csm_rec_node t = *node(&c, 25); *node(&c, 25) = *node(&c, 26); *node(&c, 26) = t; } img_seal(&c)) \
	X("two EMB in one place", "another EMB", node(&c, 3)->dst_off = node(&c, 2)->dst_off; img_seal(&c)) \
	X("writes the dense input", "must not write", node(&c, 27)->dst = 0; node(&c, 27)->param = 4; node(&c, 27)->src = 1; img_seal(&c)) \
	X("reads what it writes", "must not write", buffer(&c, 5)->width = 400; node(&c, 30)->src = 5; node(&c, 30)->dst = 5; img_seal(&c))

static void refusals(void)
{
#define CASE(name, want, change) { \
		struct image c = img_copy(&sample), exact; \
		struct csm_err err = { "" }; \
		struct csm_model m; \
		int ret; \
		{ change; } \
		exact = img_copy(&c); \
		ret = csm_model_parse(&m, exact.data, exact.size, &err); \
		if (!tap(ret < 0 && strstr(err.msg, want), "container refused: %s", name)) \
			printf("# got %d, '%s'; wanted '%s'\n", ret, err.msg, want); \
		if (!ret) \
			csm_model_free(&m); \
		free(exact.data); \
		free(c.data); \
	}
	CASES(CASE)
#undef CASE
}

static void accepted(const char *path)
{
	struct image c = img_copy(&sample);
	struct csm_err err = { "" };
	struct csm_model m;
	float first;

	if (!tap(!csm_model_load(&m, path, &err), "sample loads")) {
		printf("# %s\n", err.msg);
		exit(tap_done());
	}
	tap(m.ntables == 26 && m.nlayers == 5 && m.nemb == 26 && m.dense == 0 && m.output == 6,
	    "its parts are counted");
	tap(m.tables[2].form == CSM_FORM_TT && m.tables[2].core_len[1] == 50u * 8 * 2 * 8 &&
	    (uintptr_t)m.tables[2].core[1] % 64 == 0 && m.nodes[28].src_len == 27 * 16 &&
	    m.nodes[28].dst_len == 16 + 27 * 26 / 2, "and its shapes are right");
	memcpy(&first, img_data(&sample, CSM_SEC_ROWS, 3), 4);
	tap(m.tables[3].rows[0] == first, "rows are the file's");
	csm_model_free(&m);

	img_find(&c, CSM_SEC_META, 0)->type = 99;
	img_find(&c, 99, 0)->flags = CSM_SEC_F_OPTIONAL;
	img_hdr(&c)->minor = 7;
	img_seal(&c);
	tap(!csm_model_parse(&m, c.data, c.size, &err),
	    "a later minor version with an unknown optional section loads");
	csm_model_free(&m);
	free(c.data);

	tap(csm_model_load(&m, "/nonexistent", &err) == -ENOENT && strstr(err.msg, "/nonexistent"),
	    "missing file is named");
	tap(csm_model_load(&m, "/dev/zero", &err) == -EINVAL, "a device is no model file");
}

/* Placement of the sample with one table's entry, or the whole text, replaced. */
static int place(const struct csm_model *m, const char *key, const char *with, struct csm_err *err)
{
	struct csm_placement p;
	char text[8192];
	size_t n = 0;
	int ret;

	n += snprintf(text, sizeof(text), "{\"csrec_placement\": 1, \"cold\": "
		      "{\"block\": 4096, \"path\": \"x\"}, \"tables\": {");
	for (int i = 1; i <= 26; i++) {
		char name[16];

		snprintf(name, sizeof(name), "C%d", i);
		if (!strcmp(name, key) && !*with)
			continue;
		n += snprintf(text + n, sizeof(text) - n, "%s\"%s\": ", text[n - 1] == '{' ? "" : ", ",
			      name);
		n += snprintf(text + n, sizeof(text) - n, "%s", !strcmp(name, key) ? with :
			      i == 3 || i == 12 || i == 16 ? "{\"tier\": \"tt\"}" : "{\"tier\": \"dram\"}");
	}
	snprintf(text + n, sizeof(text) - n, "}}");
	if (!*key)
		snprintf(text, sizeof(text), "%s", with);
	ret = csm_placement_parse(&p, text, strlen(text), ".", m, err);
	if (!ret)
		csm_placement_free(&p);
	return ret;
}

static void placements(const char *path, const char *sample_path)
{
#define ALL	"{\"csrec_placement\": 1, \"tables\": {}}"
	static const struct { const char *name, *key, *with, *want; } cases[] = {
		{ "no JSON", "", "{", "line 1" },
		{ "empty", "", "", "line 1" },
		{ "an array", "", "[1]", "no JSON object" },
		{ "no version", "", "{\"tables\": {}}", "'csrec_placement' is missing" },
		{ "version 2", "", "{\"csrec_placement\": 2}", "version 2" },
		{ "version as text", "", "{\"csrec_placement\": \"1\"}", "not an integer" },
		{ "unknown key", "", "{\"csrec_placement\": 1, \"tabels\": {}}", "unknown key 'tabels'" },
		{ "no tables", "", "{\"csrec_placement\": 1}", "'tables' is missing" },
		{ "duplicate key", "", "{\"csrec_placement\": 1, \"csrec_placement\": 1}", "duplicate" },
		{ "tables not placed", "", ALL, "table C1 of the model is not placed" },
		{ "one table not placed", "C20", "", "table C20 of the model is not placed" },
		{ "unknown table", "", "{\"csrec_placement\": 1, \"tables\": {\"C99\": {}}}", "'C99' is not in the model" },
		{ "entry no object", "C4", "3", "C4: an object" },
		{ "no tier", "C4", "{}", "table C4: 'tier' is missing" },
		{ "unknown tier", "C4", "{\"tier\": \"flash\"}", "tier 'flash'" },
		{ "rows as TT", "C4", "{\"tier\": \"tt\"}", "the model has it as rows" },
		{ "TT as rows", "C3", "{\"tier\": \"dram\"}", "the model has it in TT form" },
		{ "TT split", "C3", "{\"tier\": \"split\", \"slots\": 1, \"hot\": {\"ids\": []}}", "in TT form" },
		{ "slots without split", "C4", "{\"tier\": \"dram\", \"slots\": 3}", "unknown key 'slots'" },
		{ "no slots", "C4", "{\"tier\": \"split\", \"hot\": {\"count\": 3}}", "'slots' is missing" },
		{ "0 slots", "C4", "{\"tier\": \"split\", \"slots\": 0, \"hot\": {\"count\": 3}}", "'slots' is not" },
		{ "2^40 slots", "C4", "{\"tier\": \"split\", \"slots\": 1099511627776, \"hot\": {\"count\": 3}}", "'slots' is not" },
		{ "no hot rows", "C4", "{\"tier\": \"split\", \"slots\": 3}", "hot: an object" },
		{ "hot without kind", "C4", "{\"tier\": \"split\", \"slots\": 3, \"hot\": {}}", "one of" },
		{ "hot of two kinds", "C4", "{\"tier\": \"split\", \"slots\": 3, \"hot\": {\"count\": 1, \"ids\": []}}", "one of" },
		{ "hot count negative", "C4", "{\"tier\": \"split\", \"slots\": 3, \"hot\": {\"count\": -1}}", "'count' is not" },
		{ "hot count above the rows", "C4", "{\"tier\": \"split\", \"slots\": 3, \"hot\": {\"count\": 4001}}", "'count' is not" },
		{ "hot count without order", "C2", "{\"tier\": \"split\", \"slots\": 3, \"hot\": {\"count\": 1}}", "only 0" },
		{ "all rows hot", "C4", "{\"tier\": \"split\", \"slots\": 3, \"hot\": {\"count\": 4000}}", "every row is hot" },
		{ "hot row too large", "C4", "{\"tier\": \"split\", \"slots\": 3, \"hot\": {\"ids\": [4000]}}", "hot row 4000" },
		{ "hot row negative", "C4", "{\"tier\": \"split\", \"slots\": 3, \"hot\": {\"ids\": [0, -1]}}", "entry 1 is no row" },
		{ "hot row twice", "C4", "{\"tier\": \"split\", \"slots\": 3, \"hot\": {\"ids\": [5, 5]}}", "given twice" },
		{ "range backwards", "C4", "{\"tier\": \"split\", \"slots\": 3, \"hot\": {\"ranges\": [[5, 4]]}}", "range 0" },
		{ "range of three", "C4", "{\"tier\": \"split\", \"slots\": 3, \"hot\": {\"ranges\": [[1, 2, 3]]}}", "range 0" },
		{ "ranges overlap", "C4", "{\"tier\": \"split\", \"slots\": 3, \"hot\": {\"ranges\": [[0, 9], [9, 10]]}}", "given twice" },
		{ "endless range", "C4", "{\"tier\": \"split\", \"slots\": 3, \"hot\": {\"ranges\": [[0, 9223372036854775807]]}}", "hot row 4000" },
		{ "range no array", "C4", "{\"tier\": \"split\", \"slots\": 3, \"hot\": {\"ranges\": 3}}", "an array" },
	};
	struct csm_placement p;
	struct csm_err err = { "" };
	struct csm_model m;

	if (csm_model_load(&m, sample_path, &err)) {
		tap(false, "sample loads: %s", err.msg);
		return;
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int ret = place(&m, cases[i].key, cases[i].with, &err);

		if (!tap(ret < 0 && strstr(err.msg, cases[i].want), "placement refused: %s",
			 cases[i].name))
			printf("# got %d, '%s'; wanted '%s'\n", ret, err.msg, cases[i].want);
	}
	tap(!place(&m, "C4", "{\"tier\": \"split\", \"slots\": 3, \"comment\": \"x\", \"hot\": {\"ids\": []}}", &err),
	    "no hot rows, and a comment, are fine");
	struct csm_table *c4 = &m.tables[csm_model_find_table(&m, "C4")], kept = *c4;

	c4->order = NULL;
	c4->norder = 0;
	tap(!place(&m, "C4", "{\"tier\": \"split\", \"slots\": 3, \"hot\": {\"count\": 0}}", &err),
	    "no hot rows of a table without an order are fine");
	*c4 = kept;

	/* the cold object, by a text that is otherwise sound */
	static const struct { const char *name, *cold, *want; } colds[] = {
		{ "missing", "", "'cold' is missing" },
		{ "no object", "\"cold\": 3,", "'cold' is no object" },
		{ "no block", "\"cold\": {\"path\": \"x\"},", "'block' is missing" },
		{ "block 256", "\"cold\": {\"block\": 256},", "'block' is not" },
		{ "block 1000", "\"cold\": {\"block\": 1000},", "no power of two" },
		{ "offset within a block", "\"cold\": {\"block\": 4096, \"offset\": 512},", "no multiple" },
		{ "offset negative", "\"cold\": {\"block\": 4096, \"offset\": -4096},", "'offset' is not" },
		{ "path a number", "\"cold\": {\"block\": 4096, \"path\": 1},", "'path' is no string" },
		{ "unknown key", "\"cold\": {\"block\": 4096, \"of\": 1},", "unknown key 'of'" },
	};
	struct image file = img_load(path);
	char *text, *at, *rest;

	for (size_t i = 0; i < sizeof(colds) / sizeof(colds[0]); i++) {
		char buf[8192];
		int ret;

		text = strndup((char *)file.data, file.size);
		at = strstr(text, "\"cold\"");
		rest = strstr(at, "\"tables\"");
		snprintf(buf, sizeof(buf), "%.*s%s%s", (int)(at - text), text, colds[i].cold, rest);
		ret = csm_placement_parse(&p, buf, strlen(buf), ".", &m, &err);
		if (!tap(ret < 0 && strstr(err.msg, colds[i].want), "placement refused: cold, %s",
			 colds[i].name))
			printf("# got %d, '%s'; wanted '%s'\n", ret, err.msg, colds[i].want);
		free(text);
	}
	free(file.data);
	tap(!csm_placement_load(&p, path, &m, &err), "sample placement loads");
	tap(p.ncold >= 8 && p.tables[2].tier == CSM_TIER_TT && p.tables[11].tier == CSM_TIER_TT,
	    "it has two TT tables and more, and eight split ones and more");
	tap(p.tables[3].nhot == 1000 && p.tables[3].ids[0] == m.tables[3].order[0],
	    "hot rows by count are the model's order");
	tap(p.tables[12].nhot == 1600 && p.tables[12].ids[800] == 1600, "hot rows by ranges");
	csm_placement_free(&p);
	csm_model_free(&m);
}

int main(int argc, char **argv)
{
	char model[4096], placement[4096];

	if (argc != 2) {
		fprintf(stderr, "usage: test_container tools/data\n");
		return 2;
	}
	snprintf(model, sizeof(model), "%s/sample.crm", argv[1]);
	snprintf(placement, sizeof(placement), "%s/sample.placement.json", argv[1]);
	sample = img_load(model);
	accepted(model);
	refusals();
	placements(placement, model);
	free(sample.data);
	return tap_done();
}
