// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The container writer, element types of rows, and the mapped loader. Argument: a folder
 * for files. What numpy and a float64 model say of conversions is in tests/convert.
 */
#include <errno.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image.h"
#include "tap.h"

#define DIM	5
#define NROWS	700

static float value(uint32_t row, uint32_t i)
{
	uint64_t s = row * 31 + i + 1;

	return (float)(int64_t)(rnd(&s) >> 40) / 4096 - 2048;
}

/* Three tables, one of each type, summed up by one layer. */
static int write_model(const char *path, struct csm_err *err)
{
	struct csm_rec_table tables[3] = { };
	struct csm_rec_layer layer = { .name = "out", .in_dim = 3 * DIM, .out_dim = 1 };
	struct csm_rec_buffer buffers[2] = {
		{ .name = "features", .width = 3 * DIM },
		{ .name = "score", .width = 1, .kind = CSM_BUF_OUTPUT },
	};
	struct csm_rec_node nodes[4] = { };
	struct csm_rec_input input = { .format = CSM_INPUT_COLUMNS, .ncolumns = 3 };
	float w[3 * DIM], row[DIM];
	struct csm_writer *writer = csm_writer_open(path, err);
	uint8_t packed[DIM * 4 + 8];
	int ret = 0;

	if (!writer)
		return -1;
	for (int t = 0; t < 3; t++) {
		sprintf(tables[t].name, "T%d", t);
		tables[t].dtype = t;
		tables[t].dim = DIM;
		tables[t].nrows = NROWS;
		nodes[t] = (struct csm_rec_node){ .op = CSM_OP_EMB, .param = t, .column = t,
			.dst_off = t * DIM, .repeat = 1 };
		ret |= csm_writer_begin(writer, CSM_SEC_ROWS, t, 0, tables[t].name, err);
		for (uint32_t r = 0; r < NROWS; r++) {
			for (int i = 0; i < DIM; i++)
				row[i] = value(r, i);
			ret |= csm_row_pack(t, DIM, row, packed);
			ret |= csm_writer_put(writer, packed, csm_row_bytes(t, DIM), err);
		}
		ret |= csm_writer_end(writer, err);
	}
	nodes[3] = (struct csm_rec_node){ .op = CSM_OP_MLP, .dst = 1, .repeat = 1 };
	for (int i = 0; i < 3 * DIM; i++)
		w[i] = 1;
	const struct { uint32_t type; const void *data; size_t len; } sections[] = {
		{ CSM_SEC_INPUT, &input, sizeof(input) }, { CSM_SEC_TABLES, tables, sizeof(tables) },
		{ CSM_SEC_LAYERS, &layer, sizeof(layer) }, { CSM_SEC_WEIGHTS, w, sizeof(w) },
		{ CSM_SEC_BUFFERS, buffers, sizeof(buffers) }, { CSM_SEC_NODES, nodes, sizeof(nodes) },
	};
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		ret |= csm_writer_begin(writer, sections[i].type, 0, 0, "a name longer than the field for it", err);
		ret |= csm_writer_put(writer, sections[i].data, sections[i].len, err);
		ret |= csm_writer_end(writer, err);
	}
	if (ret) {
		csm_writer_abort(writer);
		return ret;
	}
	return csm_writer_finish(writer, err);
}

static void halves(void)
{
	uint32_t same = 0, nearest = 0;

	for (uint32_t h = 0; h < 65536; h++) {
		float x = csm_from_half(h);

		same += isnan(x) ? isnan(csm_from_half(csm_to_half(x))) : csm_to_half(x) == h;
	}
	tap(same == 65536, "every fp16 value survives fp32 and back");
	/* just below, at and above the middle of neighbours */
	for (uint32_t h = 0; h < 0x7bff; h++) {
		double a = csm_from_half(h), b = csm_from_half(h + 1);
		float mid = (float)((a + b) / 2);	/* exact: one more bit */

		nearest += csm_to_half(nextafterf(mid, 0)) == h &&
			   csm_to_half(nextafterf(mid, INFINITY)) == h + 1 &&
			   csm_to_half(mid) == (h & 1 ? h + 1 : h) &&
			   csm_to_half(-mid) == (0x8000 | (h & 1 ? h + 1 : h));
	}
	tap(nearest == 0x7bff, "fp32 goes to the nearest fp16, ties to the even one");
	tap(csm_to_half(65519.99f) == 0x7bff && csm_to_half(65520) == 0x7c00 &&
	    csm_to_half(1e-9f) == 0 && csm_to_half(-INFINITY) == 0xfc00, "and so at the ends");
}

static void packing(void)
{
	float in[4] = { 1, 2, 1e6f, 4 }, far[2] = { 3e38f, -3e38f }, flat[3] = { 7, 7, 7 }, scale, bias;
	uint8_t out[16];

	tap(csm_row_pack(CSM_FP16, 4, in, out) == -ERANGE, "fp16 refuses 1e6");
	tap(csm_row_pack(CSM_INT8, 2, far, out) == -ERANGE, "int8 refuses a range beyond fp32");
	tap(!csm_row_pack(CSM_INT8, 3, flat, out), "int8 takes a row of equal values");
	memcpy(&scale, out + 3, 4);
	memcpy(&bias, out + 7, 4);
	tap(!out[0] && !out[1] && !out[2] && scale == 0 && bias == 7, "and keeps them");
}

int main(int argc, char **argv)
{
	struct csm_err err = { "" };
	struct csm_writer *w;
	struct csm_model m;
	char path[4096], temp[4200];
	struct image good, bad;
	float row[DIM];
	uint32_t exact = 0, close = 0;
	double worst16 = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: test_writer FOLDER\n");
		return 2;
	}
	snprintf(path, sizeof(path), "%s/written.crm", argv[1]);
	halves();
	packing();
	if (!tap(!write_model(path, &err) && !csm_model_load(&m, path, &err),
		 "a written model loads")) {
		printf("# %s\n", err.msg);
		return tap_done();
	}
	tap(!strcmp(m.format, "columns") && !m.ndense && m.ncolumns == 3 && m.dense < 0,
	    "its input has no dense columns and three of ids");
	for (uint32_t r = 0; r < NROWS; r++) {
		csm_row(&m, 0, r, row);
		for (int i = 0; i < DIM; i++)
			exact += row[i] == value(r, i);
		csm_row(&m, 1, r, row);
		for (int i = 0; i < DIM; i++)
			worst16 = fmax(worst16, fabs(row[i] - value(r, i)));
		float lo = value(r, 0), hi = lo;

		for (int i = 1; i < DIM; i++) {
			lo = fminf(lo, value(r, i));
			hi = fmaxf(hi, value(r, i));
		}
		csm_row(&m, 2, r, row);
		for (int i = 0; i < DIM; i++)
			close += fabs(row[i] - value(r, i)) < (hi - lo) / 255 * 0.51;
	}
	tap(exact == NROWS * DIM, "fp32 rows are the same");
	tap(worst16 > 0 && worst16 <= 1, "fp16 rows of up to 2048 are off by 1 at most");
	tap(close == NROWS * DIM, "int8 rows are off by half a step");
	csm_model_free(&m);

	/* what is not complete does not appear; what was there stays */
	good = img_load(path);
	w = csm_writer_open(path, &err);
	tap(w && !csm_writer_begin(w, CSM_SEC_META, 0, 0, "meta", &err) &&
	    !csm_writer_put(w, "{}", 2, &err), "another model of that name is begun");
	tap(csm_writer_begin(w, CSM_SEC_ROWS, 0, 0, "rows", &err) == -EINVAL, "a section within a section is refused");
	csm_writer_abort(w);
	bad = img_load(path);
	tap(bad.size == good.size && !memcmp(bad.data, good.data, good.size),
	    "and given up: the old one is untouched");
	snprintf(temp, sizeof(temp), "test $(ls %s.* 2>/dev/null | wc -l) = 0", path);
	tap(!system(temp), "nothing is left over");
	tap(!csm_writer_open("/nonexistent/x", &err) && strstr(err.msg, "/nonexistent/x"),
	    "a folder that does not exist is named");
	tap(!csm_writer_open("/dev/null", &err) && strstr(err.msg, "not a regular"),
	    "a device is not replaced");
	w = csm_writer_open(path, &err);
	tap(w && !csm_writer_begin(w, CSM_SEC_META, 0, 0, "meta", &err) &&
	    csm_writer_end(w, &err) == -EINVAL, "an empty section is refused");
	csm_writer_abort(w);

	/* rows damaged: load finds it, open does not look */
	img_find(&good, CSM_SEC_ROWS, 1);
	((uint8_t *)img_data(&good, CSM_SEC_ROWS, 1))[99] ^= 1;
	FILE *f = fopen(path, "wb");

	fwrite(good.data, 1, good.size, f);
	fclose(f);
	tap(csm_model_load(&m, path, &err) == -EBADMSG && strstr(err.msg, "ROWS 1"),
	    "a damaged row is found on loading");
	tap(!csm_model_open(&m, path, &err), "and left to others by opening");
	csm_model_free(&m);
	free(good.data);
	free(bad.data);
	return tap_done();
}
