// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows in TT form to choose from, and how well they keep: MODEL.md, "TT forms". */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>
#include <linux/csrec_hw.h>

#include "format.h"
#include "tier.h"

#define DEVICE_RANK	32
#define DEVICE_DIM	256
#define FEWEST		64u		/* rows: less is no range worth a core */
#define SAMPLE		32768u		/* rows that an estimate looks at, at most */
#define LARGEST		(1u << 26)	/* elements of a range: it is decomposed in memory */

/* A table's rows by falling accesses, and what each counts. */
struct ranked {
	const struct csm_model *m;
	uint32_t table, dim, nrows;
	uint32_t *id;
	float *weight;
	double energy;			/* sum of weight * |row|^2 */
};

int plan_match_stats(const struct plan_problem *p, const struct csm_stats *s,
		     const struct csm_stats_table **by_table, struct csm_err *err)
{
	for (uint32_t t = 0; t < p->ntables; t++) {
		const struct csm_stats_table *st = NULL;

		for (uint32_t i = 0; i < s->ntables && !st; i++)
			st = strcmp(s->tables[i].name, p->tables[t].name) ? NULL : &s->tables[i];
		if (!st)
			return csm_fail(err, -EBADMSG, "table %s has no order", p->tables[t].name);
		for (uint32_t i = 0; i < st->norder; i++)
			if (st->order[i] >= p->tables[t].nrows)
				return csm_fail(err, -EBADMSG, "table %s: row %u is in the order, the model has %u",
						st->name, st->order[i], p->tables[t].nrows);
		by_table[t] = st;
	}
	return 0;
}

/*
 * A row that the trace lacks counts as much as Good and Turing have it (Good, Biometrika 40,
 * 1953): those together as the rows that came once.
 */
static float unseen_weight(const struct csm_stats_table *st, uint32_t nrows)
{
	uint32_t once = 0;

	for (uint32_t i = 0; i < st->norder; i++)
		once += st->counts[i] == 1;
	return nrows > st->norder ? fmin(1, fmax(once, 1) / ((double)nrows - st->norder)) : 1;
}

/* Squares of rows first .. first + n - 1, each by its weight; large ranges by every nth row. */
static double energy(const struct ranked *r, uint32_t first, uint32_t n)
{
	uint32_t step = (n + SAMPLE - 1) / SAMPLE, seen = 0;
	float row[DEVICE_DIM];
	double sum = 0;

	for (uint32_t i = 0; i < n; i += step, seen++) {
		double square = 0;

		csm_row(r->m, r->table, r->id[first + i], row);
		for (uint32_t j = 0; j < r->dim; j++)
			square += (double)row[j] * row[j];
		sum += r->weight[first + i] * square;
	}
	return seen ? sum * n / seen : 0;
}

static void ranked_free(struct ranked *r)
{
	free(r->id);
	free(r->weight);
}

static int rank_rows(struct ranked *r, const struct csm_model *m, uint32_t table,
		     const struct csm_stats_table *st, struct csm_err *err)
{
	const struct csm_table *t = &m->tables[table];
	float unseen = unseen_weight(st, t->nrows);
	uint8_t *seen = calloc(t->nrows / 8 + 1, 1);
	uint32_t n = 0, hot;

	memset(r, 0, sizeof(*r));
	r->m = m;
	r->table = table;
	r->dim = t->dim;
	r->nrows = t->nrows;
	r->id = calloc(t->nrows, sizeof(*r->id));
	r->weight = calloc(t->nrows, sizeof(*r->weight));
	if (!seen || !r->id || !r->weight) {
		free(seen);
		ranked_free(r);
		return csm_fail(err, -ENOMEM, "out of memory");
	}
	for (; n < st->norder && n < t->nrows; n++) {
		if (seen[st->order[n] / 8] >> st->order[n] % 8 & 1) {
			uint32_t id = st->order[n];

			free(seen);
			ranked_free(r);
			return csm_fail(err, -EBADMSG, "table %s: row %u is in the order twice", t->name, id);
		}
		r->id[n] = st->order[n];
		r->weight[n] = st->counts[n] ? st->counts[n] : unseen;
		seen[st->order[n] / 8] |= 1 << st->order[n] % 8;
	}
	for (uint32_t id = 0; id < t->nrows && n < t->nrows; id++) {
		if (seen[id / 8] >> id % 8 & 1)
			continue;
		r->id[n] = id;
		r->weight[n++] = unseen;
	}
	free(seen);
	if (t->dim > DEVICE_DIM)
		return 0;
	/* the most wanted ones weigh most: they are all looked at */
	hot = t->nrows < SAMPLE ? t->nrows : SAMPLE;
	r->energy = energy(r, 0, hot) + energy(r, hot, t->nrows - hot);
	return 0;
}

/* Ranks up to rank of which the engine can take the slices. */
static bool set_ranks(struct tt_shape *s, uint32_t rank)
{
	for (; rank; rank--) {
		bool fits = true;

		for (uint32_t k = 1; k < s->d; k++)
			s->r[k] = fmin(rank, tt_full_rank(s, k));
		for (uint32_t k = 0; k < s->d; k++)
			fits &= s->r[k] * s->q[k] * s->r[k + 1] <= CSREC_TT_MAX_SLICE;
		if (fits)
			return true;
	}
	return false;
}

static void shape_of(const struct plan_tt *f, struct tt_shape *s)
{
	*s = (struct tt_shape){ .d = 3, .r = { 1, f->r[0], f->r[1], 1 } };
	for (int k = 0; k < 3; k++) {
		s->p[k] = f->p[k];
		s->q[k] = f->q[k];
	}
}

/* Error of every step-th row of f's, as a share of the table's energy; cores if wanted. */
static int decompose(const struct ranked *r, const struct plan_tt *f, uint32_t step,
		     double *error, float **cores, struct csm_err *err)
{
	uint32_t n = (f->count + step - 1) / step;
	float *rows = calloc(n, r->dim * sizeof(float)), *weight = calloc(n, sizeof(float));
	float *own[TT_MAX] = { NULL };
	double part = 0;
	struct tt_shape s;
	struct tt_error e;
	int ret = 0;

	shape_of(f, &s);
	if (!rows || !weight)
		ret = csm_fail(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; !ret && i < n; i++) {
		float *row = rows + (size_t)i * r->dim;
		double square = 0;

		csm_row(r->m, r->table, r->id[f->first + i * step], row);
		weight[i] = r->weight[f->first + i * step];
		for (uint32_t j = 0; j < r->dim; j++)
			square += (double)row[j] * row[j];
		part += weight[i] * square;
	}
	if (!ret && step > 1)
		ret = tt_auto_p(&s, n, err);
	/* the sample has fewer digits, and so at times less use for a rank */
	for (uint32_t k = 1; !ret && step > 1 && k < s.d; k++)
		s.r[k] = fmin(s.r[k], tt_full_rank(&s, k));
	if (!ret)
		ret = tt_decompose(&s, rows, n, weight, own, &e, err);
	if (!ret)
		*error = r->energy > 0 ? e.weighted * e.weighted * part * f->count / n / r->energy : 0;
	if (!ret && cores)
		memcpy(cores, own, sizeof(own));
	else
		tt_free(own);
	free(rows);
	free(weight);
	return ret;
}

/* Point of the curve from which on the rows get at most this share of accesses. */
static uint32_t point_of(const struct plan_table *t, double share)
{
	uint32_t i = 1;

	while (i < t->ncurve - 1 && t->share[i] < share)
		i++;
	return i;
}

static int add_form(struct plan_problem *p, uint32_t t, const struct ranked *r, double most_bytes,
		    uint32_t first, uint32_t count, uint32_t rank, struct csm_err *err)
{
	struct plan_table *tab = &p->tables[t];
	struct plan_tt *f = &tab->tts[tab->ntts];
	struct tt_shape s = { .d = 3, .r = { 1, 1, 1, 1 } };
	struct csm_err why;

	if (count < FEWEST || (uint64_t)count * tab->dim > LARGEST || tt_auto_p(&s, count, &why) ||
	    tt_auto_q(&s, tab->dim, &why) || !set_ranks(&s, rank) || tt_bytes(&s) > most_bytes ||
	    tt_bytes(&s) > 4ull * count * tab->dim)
		return 0;	/* not one to choose */
	*f = (struct plan_tt){ .first = first, .count = count, .r = { s.r[1], s.r[2] } };
	for (int k = 0; k < 3; k++) {
		f->p[k] = s.p[k];
		f->q[k] = s.q[k];
	}
	for (uint32_t i = 0; i < tab->ntts; i++)
		if (tab->tts[i].first == first && tab->tts[i].count == count &&
		    !memcmp(tab->tts[i].r, f->r, sizeof(f->r)))
			return 0;
	tab->ntts++;
	return decompose(r, f, (count + SAMPLE - 1) / SAMPLE, &f->error, NULL, err);
}

int plan_make_tts(struct plan_problem *p, const struct csm_model *m,
		  const struct csm_stats_table *const *stats, struct csm_err *err)
{
	static const double hot[] = { 0, .25, .5, .75 };	/* shares of accesses before it */
	static const double of_rest[] = { .5, .9, 1 };		/* and in it, of what is left */
	static const uint32_t ranks[] = { 8, 32 };
	int threads = openblas_get_num_threads(), ret = 0;
	double most = 0;

	/* hundreds of small matrices: threads would wait for each other more than they work */
	openblas_set_num_threads(1);
	for (uint32_t d = 0; d < p->ndevices; d++)
		most = fmax(most, p->devices[d].onchip_bytes);
	for (uint32_t t = 0; t < p->ntables && !ret; t++) {
		struct plan_table *tab = &p->tables[t];
		struct ranked r;

		if (tab->tt_form || tab->nrows < 2 * FEWEST || tab->dim > DEVICE_DIM || p->tt_error <= 0)
			continue;
		tab->tts = calloc(4 * 3 * 2, sizeof(*tab->tts));
		ret = tab->tts ? rank_rows(&r, m, t, stats[t], err) :
				 csm_fail(err, -ENOMEM, "out of memory");
		if (ret)
			break;
		for (int i = 0; i < 4 * 3 * 2 && !ret; i++) {
			double h = hot[i / 6], upto = h + (1 - h) * of_rest[i / 2 % 3];
			uint32_t a = point_of(tab, h), b = point_of(tab, upto);

			if (b > a)
				ret = add_form(p, t, &r, most, tab->k[a], tab->k[b] - tab->k[a],
					       ranks[i % 2], err);
		}
		ranked_free(&r);
	}
	openblas_set_num_threads(threads);
	return ret;
}

struct plan_cores *plan_cores_new(const struct plan_problem *p, struct csm_err *err)
{
	struct plan_cores *c = calloc(p->ntables + 1, sizeof(*c));

	if (!c)
		csm_fail(err, -ENOMEM, "out of memory");
	for (uint32_t t = 0; c && t < p->ntables; t++)
		c[t].tt = -1;
	return c;
}

void plan_cores_free(struct plan_cores *c, const struct plan_problem *p)
{
	for (uint32_t t = 0; c && t < p->ntables; t++)
		if (c[t].tt >= 0)
			tt_free(c[t].core);
	free(c);
}

int plan_measure_tts(struct plan_problem *p, struct plan_solution *s, const struct csm_model *m,
		     const struct csm_stats_table *const *stats, struct plan_cores *cores,
		     struct csm_err *err)
{
	for (uint32_t t = 0; t < p->ntables; t++) {
		int32_t tt = p->choices[t][s->choice[t]].tt;
		struct plan_table *tab = &p->tables[t];
		double error, ratio;
		struct ranked r;
		int ret;

		if (tt < 0 || cores[t].tt == tt)
			continue;
		if (cores[t].tt >= 0)
			tt_free(cores[t].core);
		cores[t].tt = -1;
		ret = rank_rows(&r, m, t, stats[t], err);
		if (ret)
			return ret;
		ret = decompose(&r, &tab->tts[tt], 1, &error, cores[t].core, err);
		ranked_free(&r);
		if (ret)
			return ret;
		cores[t].tt = tt;
		/* the table's other estimates are as far off */
		ratio = tab->tts[tt].error > 0 ? fmax(1, error / tab->tts[tt].error) : 1;
		for (uint32_t i = 0; i < tab->ntts; i++)
			if (tab->tts[i].count > SAMPLE && !tab->tts[i].measured)
				tab->tts[i].error *= ratio;
		tab->tts[tt].error = error;
		tab->tts[tt].measured = true;
	}
	plan_set_errors(p);
	plan_evaluate(p, s);
	return 0;
}

/* --- overlay --- */

static bool split(const struct plan_problem *p, uint32_t t, const struct plan_choice *c)
{
	return !p->tables[t].tt_form && c->hot < p->tables[t].nrows;
}

int plan_order(const struct csm_model *m, uint32_t table, const struct csm_stats_table *st,
	       uint32_t **order, struct csm_err *err)
{
	struct ranked r;
	int ret = rank_rows(&r, m, table, st, err);

	if (ret)
		return ret;
	free(r.weight);
	*order = r.id;
	return 0;
}

bool plan_has_split(const struct plan_problem *p, const struct plan_solution *s)
{
	for (uint32_t t = 0; t < p->ntables; t++)
		if (split(p, t, &p->choices[t][s->choice[t]]))
			return true;
	return false;
}

static int put_tables(struct csm_writer *w, const struct plan_problem *p,
		      const struct plan_solution *s, struct csm_err *err)
{
	int ret = csm_writer_begin(w, CSM_SEC_TABLES, 0, 0, "tables", err);

	for (uint32_t t = 0; t < p->ntables && !ret; t++) {
		const struct plan_table *tab = &p->tables[t];
		int32_t tt = p->choices[t][s->choice[t]].tt;
		struct csm_rec_table r = { .dim = tab->dim, .nrows = tab->nrows };

		memcpy(r.name, tab->name, sizeof(r.name));
		if (tt >= 0) {
			const struct plan_tt *f = &tab->tts[tt];

			r.form = CSM_FORM_TT;
			r.nrows = f->count;
			memcpy(r.p, f->p, sizeof(r.p));
			memcpy(r.q, f->q, sizeof(r.q));
			memcpy(r.r, f->r, sizeof(r.r));
		}
		ret = csm_writer_put(w, &r, sizeof(r), err);
	}
	return ret ? ret : csm_writer_end(w, err);
}

static int put_cores(struct csm_writer *w, const struct plan_tt *f, float *const *core,
		     struct csm_err *err)
{
	static const char zeros[64];
	struct tt_shape s;
	int ret = 0;

	shape_of(f, &s);
	for (uint32_t k = 0; k < 3 && !ret; k++) {
		uint64_t len = tt_core_len(&s, k) * sizeof(float);

		ret = csm_writer_put(w, core[k], len, err);
		if (!ret && len % 64)
			ret = csm_writer_put(w, zeros, 64 - len % 64, err);
	}
	return ret;
}

static int put_table(struct csm_writer *w, const struct plan_problem *p, uint32_t t,
		     const struct plan_choice *c, const struct csm_model *m,
		     const struct csm_stats_table *st, const struct plan_cores *cores,
		     const uint32_t *order, struct csm_err *err)
{
	uint32_t *own = NULL;
	int ret = 0;

	if (!split(p, t, c))
		return 0;
	if (c->tt >= 0) {
		ret = csm_writer_begin(w, CSM_SEC_CORES, t, 0, p->tables[t].name, err);
		if (!ret)
			ret = put_cores(w, &p->tables[t].tts[c->tt], cores->core, err);
		if (!ret)
			ret = csm_writer_end(w, err);
	}
	if (!ret && !order)
		ret = plan_order(m, t, st, &own, err);
	if (!ret)
		ret = csm_writer_begin(w, CSM_SEC_ORDER, t, 0, p->tables[t].name, err);
	if (!ret)
		ret = csm_writer_put(w, order ? order : own, p->tables[t].nrows * sizeof(*own), err);
	if (!ret)
		ret = csm_writer_end(w, err);
	free(own);
	return ret;
}

int plan_write_overlay(const struct plan_problem *p, const struct plan_solution *s,
		       const struct csm_model *m, const struct csm_stats_table *const *stats,
		       const struct plan_cores *cores, uint32_t *const *orders, const char *path,
		       uint32_t *crc, struct csm_err *err)
{
	struct csm_writer *w = csm_writer_open(path, err);
	struct csm_model read;
	int ret;

	if (!w)
		return -EIO;
	ret = put_tables(w, p, s, err);
	for (uint32_t t = 0; t < p->ntables && !ret; t++)
		ret = put_table(w, p, t, &p->choices[t][s->choice[t]], m, stats[t], &cores[t],
				orders ? orders[t] : NULL, err);
	if (ret) {
		csm_writer_abort(w);
		return ret;
	}
	ret = csm_writer_finish(w, err);
	/* as infer will read it */
	if (!ret)
		ret = csm_overlay_load(&read, path, m, err);
	if (ret)
		return ret;
	*crc = read.id;
	csm_model_free(&read);
	return 0;
}
