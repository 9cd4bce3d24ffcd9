/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Access statistics: how often each row of each table is wanted. Traces are read or made
 * (trace.h), counted here in one pass and bounded memory, and written as a statistics file
 * and an order file (FORMAT.md in this folder). Errors as in csm.h.
 */
#ifndef CSREC_STATS_H
#define CSREC_STATS_H

#include <csm.h>

/*
 * Counter of one table's accesses. Exact while the rows seen fit; after that a frequent-items
 * sketch (Misra and Gries' algorithm with purges by the median, as Anderson et al., "A
 * High-Performance Algorithm for Identifying Frequent Items in Data Streams", IMC 2017): a
 * count is then at most `slack` below the true one and never above it, and a row that is
 * missing had at most slack accesses.
 */
struct st_counter;

#define ST_REUSE	33

/*
 * rows: ids are below it, or 0 if that is not known; bytes: most memory it may take, at
 * least ST_MIN_BYTES. NULL: out of memory.
 */
#define ST_MIN_BYTES	(64u << 10)
struct st_counter *st_counter_new(uint64_t rows, size_t bytes);
void st_counter_free(struct st_counter *c);
/* False: out of memory. */
bool st_counter_add(struct st_counter *c, uint32_t id);

struct st_result {
	uint64_t accesses;
	uint64_t unique;		/* rows; an estimate (HyperLogLog, 2 % or so) if not exact */
	bool exact;
	uint64_t slack;			/* see above, 0 if exact */
	uint32_t n;			/* rows that have a count */
	uint32_t *ids;			/* [n] by falling count, equal ones by id */
	uint32_t *counts;		/* [n], 2^32-1 stands for that or more */
	/*
	 * Accesses by distance to the row's last one, in accesses of the table: [0] counts first
	 * ones, [k] those 2^(k-1) .. 2^k - 1 ago. Accesses to rows the sketch does not hold at
	 * the time count as first ones.
	 */
	uint64_t reuse[ST_REUSE];
};

/* The arrays are the caller's to free. The counter can go on counting. */
int st_counter_result(const struct st_counter *c, struct st_result *r, struct csm_err *err);

#define ST_CURVE	256

/* Up to ST_CURVE points (rows, accesses of that many most wanted rows), 1 and all among them. */
uint32_t st_curve(const struct st_result *r, uint64_t (*points)[2]);

/*
 * Counter of pairs of rows that come in one sample, of different tables: a sketch as above
 * of 2^16 pairs.
 */
struct st_pairs;

struct st_pairs *st_pairs_new(void);
void st_pairs_free(struct st_pairs *c);
void st_pairs_add(struct st_pairs *c, uint32_t table_a, uint32_t a, uint32_t table_b, uint32_t b);

/* What a statistics file says of a table besides what its counter tells. */
struct st_table {
	char name[17];
	uint64_t rows;			/* 0: not known */
	uint64_t pooling_max;
	struct st_result result;
};

/* Two rows that came in one sample, and how often, by a sketch (slack as above). */
struct st_pair {
	uint32_t table[2], id[2];
	uint64_t count;
};

struct st_profile {
	const char *source;		/* for people */
	uint64_t samples;
	uint32_t ntables;
	struct st_table *tables;
	uint32_t npairs;		/* most frequent first */
	struct st_pair *pairs;
	uint64_t pair_samples;		/* how many samples were looked at for pairs */
	uint64_t pair_slack;
};

/* The most frequent pairs into list, at most most of them, those certain to have come twice. */
uint32_t st_pairs_result(const struct st_pairs *c, struct st_pair *list, uint32_t most,
			 uint64_t *slack);

/* Writes path and path.order, each by way of a temporary file. */
int csm_stats_write(const struct st_profile *p, const char *path, struct csm_err *err);

/*
 * A statistics file in memory.
 */
struct csm_stats_table {
	char name[17];
	uint64_t rows;			/* 0: not known */
	uint64_t accesses, unique;
	double pooling_mean;		/* accesses a sample */
	uint64_t pooling_max;
	uint32_t ncurve;
	uint64_t (*curve)[2];
	uint32_t norder;
	const uint32_t *order;		/* ids by falling accesses, mapped */
	const uint32_t *counts;
};

struct csm_stats {
	uint64_t samples;
	bool exact;
	uint32_t ntables;
	struct csm_stats_table *tables;
	void *map;			/* of the order file */
	size_t map_size;
};

/* Reads path and the order file it names, which lies beside it, and checks both. */
int csm_stats_load(struct csm_stats *s, const char *path, struct csm_err *err);
void csm_stats_free(struct csm_stats *s);

#endif
