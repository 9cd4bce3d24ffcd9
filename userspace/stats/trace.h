/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Access traces, read from files or made, one sample after the other: for each table a bag
 * of ids. What is made depends on the parameters and the seed alone.
 */
#ifndef CSREC_TRACE_H
#define CSREC_TRACE_H

#include <csm.h>

#define ST_TABLES_MAX	4096
#define ST_LOOKUPS_MAX	65536

struct st_source;

struct st_sample {
	const uint64_t *const *ids;	/* [tables] the bags, until the next call */
	const uint32_t *len;		/* [tables] */
};

/*
 * Criteo TSV (Kaggle, Terabyte), plain or gz: 26 tables, one id each, the hexadecimal value,
 * 0 if empty. Malformed lines are counted and left out; strict: the first one ends it.
 */
struct st_source *st_open_criteo(const char *path, bool strict, struct csm_err *err);
/* MLPerf's binary form: records of 40 little-endian int32, the last 26 being ids. */
struct st_source *st_open_mlperf(const char *path, struct csm_err *err);
/*
 * Multi-hot ids as facebookresearch/dlrm's torchrec_dlrm makes them
 * (materialize_synthetic_multihot_dataset.py): an .npz of int32 or int64 arrays "0", "1", ...,
 * each [samples][ids a sample] of a table.
 */
struct st_source *st_open_npz(const char *path, struct csm_err *err);
/*
 * Traces of dlrm's generator, a file a table: the last 'j' in the file's name stands for the
 * table's number, from 0. Numbers separated by ", " on a line, or raw uint64; lookups of
 * them make a bag.
 */
/* pattern with its file name's last 'j' replaced by table; false: no 'j', or too long. */
bool st_path(char out[4096], const char *pattern, uint32_t table);
/* How many files of tables 0, 1, ... there are by such a pattern. */
uint32_t st_files(const char *pattern);
struct st_source *st_open_trace(const char *pattern, uint32_t lookups, struct csm_err *err);

/* What is made: samples of ntables bags of lookups ids below rows. */
struct st_shape {
	uint32_t ntables;
	const uint64_t *rows;		/* [ntables] */
	const uint32_t *lookups;	/* [ntables] */
	uint64_t samples;
	uint64_t seed;
};

/* Zipf's law: the k-th most wanted row with probability ~ 1 / k^alpha, alpha in (0, 8]. */
struct st_source *st_gen_zipf(const struct st_shape *s, double alpha, struct csm_err *err);
/*
 * RecSSD's locality: a new row with probability (0.14 + k) / (1 + k), else one at an LRU
 * distance of 1..49 bags, whose chances fall as those of Exp(1) up to ln 1000. After its
 * gen_dist.py, which takes lines of 128 rows where this takes rows.
 */
struct st_source *st_gen_locality(const struct st_shape *s, double k, struct csm_err *err);
/*
 * dist_emb_j.log of dlrm's generator: three lines, unique rows in LRU order, stack distances
 * (0: a new row) and their cumulative probabilities. lookups and samples from s alone.
 */
struct st_source *st_gen_dist(const char *pattern, const struct st_shape *s,
			      struct csm_err *err);
/*
 * A histogram of accesses a row, as locality_stats.txt of facebookresearch/dlrm_datasets
 * prints it; the first of the file. All accesses of a table in an order of chance, which the
 * published data, having no order, allow.
 */
struct st_source *st_gen_reuse(const char *path, const struct st_shape *s, struct csm_err *err);

uint32_t st_tables(const struct st_source *src);
/* Name of a table, C1.. or T0.., and its rows, 0 if the source does not know. */
const char *st_name(const struct st_source *src, uint32_t table);
uint64_t st_rows(const struct st_source *src, uint32_t table);
/* 1: *s is the next sample, 0: the end, or a negative errno. */
int st_next(struct st_source *src, struct st_sample *s, struct csm_err *err);
/* How far, 0..1; negative if that cannot be told. */
double st_progress(const struct st_source *src);
uint64_t st_malformed(const struct st_source *src);
void st_close(struct st_source *src);

#endif
