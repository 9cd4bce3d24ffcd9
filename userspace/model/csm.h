/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libcsrec-model: model container, placement, cold extent, address remapping, click
 * log reader, and the run time that scores with a csrec device or with the golden
 * compute library. File formats are in FORMAT.md.
 *
 * Functions that can fail return 0 or a negative errno and then say in words what and
 * where in *err. Objects belong to one thread at a time; a loaded model is read-only.
 */
#ifndef CSM_H
#define CSM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct csm_err {
	char msg[400];
};

/* Writes the message and returns errnum. */
int csm_fail(struct csm_err *err, int errnum, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * A new file beside path, which rename() puts in its place when it is whole; *temp, its name, is
 * the caller's to free. Returns an open descriptor. -EINVAL: path is a device, a pipe or a
 * folder, which rename() would replace or not do.
 */
int csm_temp_open(const char *path, char **temp, struct csm_err *err);

/* CRC-32C (Castagnoli), reflected; crc is 0 at first, then the result so far. */
uint32_t csm_crc32c(uint32_t crc, const void *data, size_t len);

/*
 * Model
 */
enum csm_form { CSM_FORM_ROWS, CSM_FORM_TT };

/* Element types of rows; the numbers are the container's. */
enum csm_dtype { CSM_FP32, CSM_FP16, CSM_INT8 };

struct csm_table {
	char name[17];
	enum csm_form form;
	uint32_t dim;
	uint32_t nrows;
	uint32_t p[3];			/* TT only, as in struct csrec_tt_desc */
	uint16_t q[3];
	uint16_t r[2];
	enum csm_dtype dtype;		/* of rows; TT: fp32 */
	const float *rows;		/* fp32: [nrows][dim], else NULL; csm_row() takes any */
	const uint8_t *raw;		/* not fp32: [nrows][csm_row_bytes()] */
	const float *core[3];
	uint64_t core_len[3];		/* elements */
	const uint32_t *order;		/* ids, most wanted first; NULL if not told */
	uint32_t norder;
};

struct csm_layer {
	char name[17];
	uint32_t in_dim, out_dim;
	uint8_t act;			/* CSREC_ACT_* */
	const float *w;			/* [out][in] */
	const float *bias;		/* [out] or NULL */
};

enum csm_buffer_kind { CSM_BUF_TEMP, CSM_BUF_DENSE, CSM_BUF_OUTPUT };

struct csm_buffer {
	char name[17];
	uint32_t width;			/* elements a sample */
	enum csm_buffer_kind kind;
};

enum csm_op { CSM_OP_EMB = 1, CSM_OP_MLP, CSM_OP_DOT, CSM_OP_CAT };

struct csm_node {
	enum csm_op op;
	bool self;			/* DOT: with the diagonal */
	uint32_t param;			/* EMB: table, MLP: layer */
	uint32_t column;		/* EMB: which ids */
	uint32_t src, src_off;		/* buffer, element; not EMB */
	uint32_t dst, dst_off;
	uint32_t nvec, dim, vec_step;	/* DOT, CAT */
	uint32_t repeat, src_step, dst_step;
	uint32_t src_len, dst_len;	/* elements each repetition reads and writes */
	uint32_t emb;			/* EMB: number among the EMB nodes */
};

struct csm_model {
	void *data;			/* the file, mapped; what the pointers here point into */
	size_t size;
	uint32_t id;			/* header checksum: tells models apart */
	const char *meta;		/* JSON text, meta_len bytes, or NULL */
	size_t meta_len;
	char format[17];		/* of the input: criteo-tsv or columns */
	uint32_t ndense, ncolumns;	/* ndense may be 0 */
	uint32_t ntables, nlayers, nbuffers, nnodes, nemb;
	struct csm_table *tables;
	struct csm_layer *layers;
	struct csm_buffer *buffers;
	struct csm_node *nodes;
	int dense;			/* buffer of the dense input, -1 if unused */
	int output;			/* buffer whose first element is the score */
};

/*
 * Maps and validates a file; nothing of a file that breaks a rule is used. It may be larger
 * than memory. It must not be cut while in use; the writer below replaces files, which
 * leaves a mapped one as it is.
 */
int csm_model_load(struct csm_model *m, const char *path, struct csm_err *err);
/*
 * The same without reading the rows: the checksums of ROWS sections are not checked. For
 * those who need little of a large model, or check it themselves.
 */
int csm_model_open(struct csm_model *m, const char *path, struct csm_err *err);
/* The same for size bytes at data (64-byte aligned), which stay the caller's. */
int csm_model_parse(struct csm_model *m, const void *data, size_t size, struct csm_err *err);
void csm_model_free(struct csm_model *m);
/*
 * Reads what a plan adds to model m (FORMAT.md, overlay): o->tables[t] has table t's order,
 * and if its form is TT, shape and cores of the nrows rows that the plan has in that form.
 * Free with csm_model_free().
 */
int csm_overlay_load(struct csm_model *o, const char *path, const struct csm_model *m,
		     struct csm_err *err);
int csm_model_find_table(const struct csm_model *m, const char *name);

/* Bytes of a stored row: 4 dim, 2 dim, or dim + 8 (int8: then fp32 scale, fp32 bias). */
uint64_t csm_row_bytes(enum csm_dtype dtype, uint32_t dim);
const char *csm_dtype_name(enum csm_dtype dtype);	/* fp32, fp16, int8 */
/*
 * Row id of a table, dim values, whatever its type. fp16 is exact; int8 is q * scale + bias,
 * each step rounded to fp32. TT: computed in double and rounded, so not always the bits
 * that the TT engine gives.
 */
void csm_row(const struct csm_model *m, uint32_t table, uint32_t id, float *out);
/*
 * The reverse: dim values at in to a stored row. fp16 rounds to nearest, ties to even; int8
 * as torch.ops.quantized.embedding_bag_byte_prepack has it. -ERANGE: the type cannot hold
 * them (beyond fp16's largest, or max - min beyond fp32's).
 */
int csm_row_pack(enum csm_dtype dtype, uint32_t dim, const float *in, void *out);
uint16_t csm_to_half(float x);
float csm_from_half(uint16_t h);

/*
 * Writes a model container (or a plan's overlay) as a stream: sections one after the other,
 * each with as many puts as one likes, in constant memory. The file appears under its name
 * when it is complete, and before that not at all: until then it has a temporary name
 * beside it. err says what and where; after an error only csm_writer_abort() is possible.
 */
struct csm_writer;

struct csm_writer *csm_writer_open(const char *path, struct csm_err *err);
/* type, index, flags as in FORMAT.md; name for people, at most 31 bytes are kept. */
int csm_writer_begin(struct csm_writer *w, uint32_t type, uint32_t index, uint32_t flags,
		     const char *name, struct csm_err *err);
int csm_writer_put(struct csm_writer *w, const void *data, size_t len, struct csm_err *err);
int csm_writer_end(struct csm_writer *w, struct csm_err *err);
/* Directory, header, fsync, rename. Frees w, also when it fails. */
int csm_writer_finish(struct csm_writer *w, struct csm_err *err);
/* Frees w and removes the temporary file. NULL is fine. */
void csm_writer_abort(struct csm_writer *w);
/* Bytes written so far. */
uint64_t csm_writer_size(const struct csm_writer *w);

/*
 * Placement
 */
enum csm_tier { CSM_TIER_DRAM, CSM_TIER_TT, CSM_TIER_SPLIT };

/* A split table's rows: nhot in device DRAM, then ntt in TT form on chip, the rest cold. */
struct csm_place {
	enum csm_tier tier;
	uint32_t nhot;
	uint32_t ntt;
	uint32_t *ids;			/* [nhot + ntt], hot ones in region order, TT ones by TT id */
	const struct csm_table *tt;	/* shape and cores of the TT rows, from the overlay */
	uint32_t slots;			/* room for fetched blocks, 0 if nothing is cold */
};

struct csm_placement {
	struct csm_place *tables;	/* as the model's */
	uint32_t ntables;
	uint32_t ncold;			/* tables with cold rows */
	struct csm_model *overlay;	/* what the plan adds to the model, or NULL */
	char *cold_path;		/* NULL if the file names none */
	uint64_t cold_off;
	uint32_t block;
};

#define CSM_SLOTS_MAX	(1u << 20)
#define CSM_BLOCK_MIN	512
#define CSM_BLOCK_MAX	65536

static inline bool csm_has_cold(const struct csm_place *pl, const struct csm_table *t)
{
	return pl->tier == CSM_TIER_SPLIT && (uint64_t)pl->nhot + pl->ntt < t->nrows;
}

/* Reads a placement and the overlay it names, which lies beside it. */
int csm_placement_load(struct csm_placement *p, const char *path, const struct csm_model *m,
		       struct csm_err *err);
/* The same for text; an overlay it names is looked for in directory dir. */
int csm_placement_parse(struct csm_placement *p, const char *text, size_t len,
			const char *dir, const struct csm_model *m, struct csm_err *err);
void csm_placement_free(struct csm_placement *p);

/*
 * Remapping: where each row of a table lies, and which blocks a batch has to fetch.
 *
 * A row's rank tells its tier and place: hot rows have ranks from 0 by region row, TT rows
 * come after them by TT id, cold rows last by place in the extent. A split table's region
 * has its hot rows first, then from row tail_row on the slots. A slot holds one unit: a
 * block, or a row if rows are larger than blocks.
 */
struct csm_map {
	uint32_t stride;		/* bytes between rows, in region and extent */
	uint32_t nhot, ntt;
	const uint32_t *ids;		/* the placement's, which must stay; NULL: all rows hot */
	const struct csm_table *tt;	/* the placement's; NULL: no TT rows of a split table */
	uint32_t tail_row;
	uint32_t slots;
	uint32_t unit;			/* bytes of a slot */
	uint32_t unit_rows;
	uint32_t ncold;
	uint32_t nunits;		/* units of the cold rows */
	uint32_t *rank;			/* [nrows]; NULL: the id is the region row */
	uint64_t region_rows;		/* EMB's nrows */
	uint64_t region_size;
	/* scratch of csm_remap_plan() */
	uint32_t *stamp;		/* [nunits] */
	uint32_t *slot;			/* [nunits] */
	uint32_t *want;			/* [slots] */
	uint32_t nwant;
};

struct csm_remap {
	const struct csm_model *model;
	struct csm_map *maps;		/* per table; TT tables' are empty */
	uint32_t now;
};

/* ids of one EMB node for a batch: bag i is ids[offsets[i]] .. ids[offsets[i + 1] - 1] */
struct csm_bags {
	uint32_t *ids;
	uint32_t *offsets;
};

/* len bytes from off of the table's part of the extent to byte dst of its region */
struct csm_fetch {
	uint32_t table;
	uint64_t off;
	uint64_t len;
	uint64_t dst;
};

struct csm_plan {
	struct csm_fetch *fetch;	/* ascending by table and off, no unit twice */
	uint32_t nfetch, room;
	uint64_t rows_dram, rows_tt, rows_nvme;	/* rows named, by where they come from */
};

int csm_remap_init(struct csm_remap *r, const struct csm_model *m,
		   const struct csm_placement *p, struct csm_err *err);
void csm_remap_free(struct csm_remap *r);
/* Ids of a table's cold rows in extent order, [ncold], to be freed; NULL: out of memory. */
uint32_t *csm_cold_ids(const struct csm_map *map, uint32_t nrows);

/*
 * Plans as many of the samples first .. first + n - 1 as the slots allow, at least one,
 * and returns how many. in[e] are node e's bags over all samples; for the planned ones
 * out[e].ids[] gets region rows (TT: ids) and out[e].offsets[] their bags, from 0; where a
 * split table has TT rows, tt[e] gets these by TT id, and out[e] the others.
 * -ENOSPC: one sample alone needs more units of a table than it has slots.
 */
int csm_remap_plan(struct csm_remap *r, const struct csm_bags *in, uint32_t first, uint32_t n,
		   struct csm_bags *out, struct csm_bags *tt, struct csm_plan *plan,
		   struct csm_err *err);
void csm_plan_free(struct csm_plan *plan);

/*
 * Cold extent
 */
struct csm_extent {
	uint32_t block;
	uint64_t base;			/* byte offset in the file */
	uint64_t size;			/* bytes in all */
	uint64_t data;			/* offset of the data from base */
	uint32_t *crc;			/* [ndata] of each data block */
	uint64_t ndata;
	uint64_t *table_off;		/* per model table, from base; 0: none */
};

/* Bytes that installing will take. */
uint64_t csm_extent_size(const struct csm_model *m, const struct csm_placement *p,
			 const struct csm_remap *r);
/*
 * Writes the extent to fd (block device or file; grown if a file) and reads it back
 * past the page cache where the file allows. -EEXIST: what is there is neither zero
 * nor an extent, and force is not set.
 */
int csm_extent_install(int fd, const char *name, const struct csm_model *m,
		       const struct csm_placement *p, const struct csm_remap *r, bool force,
		       struct csm_err *err);
/* Reads and checks header, directory and checksum area against model and placement. */
int csm_extent_open(struct csm_extent *x, int fd, const char *name, const struct csm_model *m,
		    const struct csm_placement *p, const struct csm_remap *r,
		    struct csm_err *err);
/* Reads every data block and checks its CRC. */
int csm_extent_verify(const struct csm_extent *x, int fd, const char *name,
		      struct csm_err *err);
void csm_extent_free(struct csm_extent *x);

/*
 * Click logs
 */
#define CSM_TSV_DENSE	13
#define CSM_TSV_CATS	26
#define CSM_TSV_LINE	4096		/* longest line, with its newline */

struct csm_click {
	uint64_t line;			/* number in the file, from 1 */
	uint8_t label;
	float dense[CSM_TSV_DENSE];	/* ln(max(x, 0) + 1) */
	uint64_t cat[CSM_TSV_CATS];	/* hexadecimal value, 0 if empty */
};

struct csm_tsv {
	FILE *f;
	uint64_t line;
	uint64_t bad;			/* malformed lines so far */
	/* called for each malformed line; may be NULL */
	void (*report)(void *priv, uint64_t line, const char *why);
	void *priv;
	bool strict;			/* stop at the first malformed line */
	char buf[CSM_TSV_LINE + 1];
};

/* One line of len bytes without its newline. NULL if well formed, else why not. */
const char *csm_tsv_line(struct csm_click *c, const char *s, size_t len);
/* 1: *c is the next well-formed line; 0: end; -EBADMSG: strict; -EIO. */
int csm_tsv_next(struct csm_tsv *t, struct csm_click *c, struct csm_err *err);

/*
 * Figures of merit
 */
/* Chance that a click scores above a non-click, ties half; NaN if there is only one kind. */
double csm_auc(const float *score, const uint8_t *label, size_t n);
/* Mean of -ln of the probability given to what happened, kept in [1e-15, 1 - 1e-15]. */
double csm_logloss(const float *score, const uint8_t *label, size_t n);

/*
 * Scoring. dense is [n][ndense]; bags have one entry per EMB node, ids as the model
 * numbers them.
 */
/*
 * On the CPU with the golden compute library, from the model alone, or with p from the
 * model and which rows that placement has in TT form (which is all of it that changes a
 * bit): remapping and device take no part. out is [n][width of the output buffer].
 */
int csm_golden_score(const struct csm_model *m, const struct csm_placement *p,
		     const float *dense, const struct csm_bags *bags, uint32_t n, float *out,
		     struct csm_err *err);

struct csrec_dev;
struct csm_device;

struct csm_device_opts {
	uint32_t batch;			/* most samples of one submission */
	int cold_fd;			/* -1 if nothing is cold */
	bool cold_is_file;		/* no block device: read it through the CPU */
	const struct csm_extent *extent;
	uint32_t p2p_flags;		/* CSREC_P2P_F_* */
	uint32_t max_ids;		/* most ids a bag may hold, 1 for click logs */
};

struct csm_totals {
	uint64_t batches;		/* submissions, one doorbell each */
	uint64_t rows_dram, rows_tt, rows_nvme;
	uint64_t p2p_bytes, bounce_bytes;
	uint64_t fetches;		/* segments read from the drive */
	uint64_t split;			/* batches cut because the slots were full */
};

/* Allocates device memory and loads hot rows, cores and weights. */
int csm_device_create(struct csm_device **out, struct csrec_dev *dev, const struct csm_model *m,
		      struct csm_remap *r, const struct csm_device_opts *opts,
		      struct csm_err *err);
void csm_device_destroy(struct csm_device *d);
int csm_device_score(struct csm_device *d, const float *dense, const struct csm_bags *bags,
		     uint32_t n, float *out, struct csm_err *err);
const struct csm_totals *csm_device_totals(const struct csm_device *d);

#endif /* CSM_H */
