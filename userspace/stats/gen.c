// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Makes traces: see trace.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "source.h"

/* Scatters ranks over ids: rank * a + b modulo n, a coprime to n. */
struct scatter {
	uint64_t n, a, b;
};

static uint64_t gcd(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t r = a % b;

		a = b;
		b = r;
	}
	return a;
}

static void scatter_init(struct scatter *s, uint64_t n, struct st_rng *rng)
{
	s->n = n;
	s->b = st_below(rng, n);
	do
		s->a = 1 + st_below(rng, n);
	while (gcd(s->a, n) != 1);
}

static uint64_t scatter(const struct scatter *s, uint64_t rank)
{
	return ((unsigned __int128)rank * s->a + s->b) % s->n;
}

/*
 * Rejection-inversion: Hörmann and Derflinger, "Rejection-inversion to generate variates
 * from monotone discrete distributions", 1996. H is the integral of x^-alpha.
 */
struct zipf {
	double alpha, h1, hn, s;
	uint64_t n;
};

static double zipf_h(const struct zipf *z, double x)
{
	double l = log(x), t = (1 - z->alpha) * l;

	return (fabs(t) > 1e-8 ? expm1(t) / t : 1 + t / 2) * l;
}

static double zipf_inverse(const struct zipf *z, double y)
{
	double t = fmax(y * (1 - z->alpha), -1);

	return exp((fabs(t) > 1e-8 ? log1p(t) / t : 1 - t / 2) * y);
}

static void zipf_init(struct zipf *z, uint64_t n, double alpha)
{
	z->alpha = alpha;
	z->n = n;
	z->h1 = zipf_h(z, 1.5) - 1;
	z->hn = zipf_h(z, (double)n + 0.5);
	z->s = 2 - zipf_inverse(z, zipf_h(z, 2.5) - pow(2, -alpha));
}

/* A rank, from 0. */
static uint64_t zipf_draw(const struct zipf *z, struct st_rng *rng)
{
	for (;;) {
		double u = z->hn + st_uniform(rng) * (z->h1 - z->hn);
		double x = zipf_inverse(z, u), k = fmin(fmax(round(x), 1), (double)z->n);

		if (k - x <= z->s || u >= zipf_h(z, k + 0.5) - pow(k, -z->alpha))
			return (uint64_t)k - 1;
	}
}

/* Rows by their last access, the latest at the end. */
struct lru {
	uint32_t *rows;
	uint64_t head, tail, room;
};

static bool lru_init(struct lru *l, uint64_t most)
{
	l->room = 2 * most + 16;
	l->rows = malloc(l->room * sizeof(*l->rows));
	return l->rows;
}

static void lru_push(struct lru *l, uint32_t row)
{
	if (l->tail == l->room) {
		memmove(l->rows, l->rows + l->head, (l->tail - l->head) * sizeof(*l->rows));
		l->tail -= l->head;
		l->head = 0;
	}
	l->rows[l->tail++] = row;
}

/* The row at a distance from the end, 1 being the latest, which goes to the end. */
static uint32_t lru_touch(struct lru *l, uint64_t distance)
{
	uint32_t *at = &l->rows[l->tail - distance], row = *at;

	memmove(at, at + 1, (distance - 1) * sizeof(*at));
	l->rows[l->tail - 1] = row;
	return row;
}

struct table {
	struct st_rng rng;
	struct scatter scatter;
	struct zipf zipf;
	struct lru lru;
	uint64_t fresh;			/* rows that were new so far */
	uint64_t *sd;			/* [nsd] stack distances and their cumulative chances */
	double *chance;
	uint32_t nsd;
	uint32_t *all;			/* all accesses of the table */
};

struct gen {
	struct table *tables;
	uint32_t ntables;
	uint32_t *lookups;
	uint64_t samples, done;
	double fresh;			/* chance of a new row */
	uint64_t (*draw)(struct gen *g, uint32_t t);
};

static void gen_close(struct st_source *src)
{
	struct gen *g = src->priv;

	for (uint32_t t = 0; g && g->tables && t < g->ntables; t++) {
		free(g->tables[t].lru.rows);
		free(g->tables[t].sd);
		free(g->tables[t].chance);
		free(g->tables[t].all);
	}
	if (g) {
		free(g->tables);
		free(g->lookups);
	}
	free(g);
}

static int gen_next(struct st_source *src, struct csm_err *err)
{
	struct gen *g = src->priv;

	(void)err;
	if (g->done == g->samples)
		return 0;
	for (uint32_t t = 0; t < g->ntables; t++)
		for (uint32_t k = 0; k < g->lookups[t]; k++)
			src->ids[t][k] = g->draw(g, t);
	g->done++;
	return 1;
}

static double gen_progress(const struct st_source *src)
{
	const struct gen *g = src->priv;

	return (double)g->done / (double)g->samples;
}

static struct st_source *gen_new(const struct st_shape *s, struct gen **out, struct csm_err *err)
{
	struct st_source *src = st_source_new(s->ntables, "T", 0, s->lookups, err);
	struct gen *g = calloc(1, sizeof(*g));

	if (g) {
		g->tables = calloc(s->ntables, sizeof(*g->tables));
		g->lookups = calloc(s->ntables, sizeof(*g->lookups));
	}
	if (!src || !g || !g->tables || !g->lookups) {
		if (g) {
			free(g->tables);
			free(g->lookups);
		}
		free(g);
		st_close(src);
		csm_fail(err, -ENOMEM, "out of memory");
		return NULL;
	}
	src->priv = g;
	src->next = gen_next;
	src->progress = gen_progress;
	src->close = gen_close;
	g->ntables = s->ntables;
	g->samples = s->samples;
	memcpy(g->lookups, s->lookups, s->ntables * sizeof(*g->lookups));
	for (uint32_t t = 0; t < s->ntables; t++) {
		src->rows[t] = s->rows[t];
		src->len[t] = s->lookups[t];
		st_seed(&g->tables[t].rng, s->seed, t);
		if (s->rows[t])
			scatter_init(&g->tables[t].scatter, s->rows[t], &g->tables[t].rng);
	}
	*out = g;
	return src;
}

static uint64_t draw_zipf(struct gen *g, uint32_t t)
{
	struct table *tab = &g->tables[t];

	return scatter(&tab->scatter, zipf_draw(&tab->zipf, &tab->rng));
}

struct st_source *st_gen_zipf(const struct st_shape *s, double alpha, struct csm_err *err)
{
	struct st_source *src;
	struct gen *g;

	if (!(alpha > 0 && alpha <= 8)) {
		csm_fail(err, -EINVAL, "alpha %g is not above 0 and at most 8", alpha);
		return NULL;
	}
	src = gen_new(s, &g, err);
	if (!src)
		return NULL;
	g->draw = draw_zipf;
	for (uint32_t t = 0; t < s->ntables; t++)
		zipf_init(&g->tables[t].zipf, s->rows[t], alpha);
	return src;
}

#define LOCALITY_BINS	50
#define LOCALITY_FIRST	0.14	/* the share of RecSSD's histogram in its bin 0 */

static uint64_t draw_locality(struct gen *g, uint32_t t)
{
	struct table *tab = &g->tables[t];
	uint64_t have = tab->lru.tail - tab->lru.head, distance;
	uint32_t row;

	/* bins of Exp(1) up to ln 1000, which 1,000 draws reach: the chance falls by 1000^(1/50) */
	distance = 1 + (uint64_t)(-log(st_uniform(&tab->rng)) * LOCALITY_BINS / log(1000));
	if (distance >= LOCALITY_BINS)
		distance = LOCALITY_BINS - 1;
	distance *= g->lookups[t];
	if (st_uniform(&tab->rng) >= g->fresh && have)
		return lru_touch(&tab->lru, distance < have ? distance : have);
	row = scatter(&tab->scatter, tab->fresh++ % tab->scatter.n);
	/* only when all rows have had their turn can it be there already */
	for (uint64_t i = tab->lru.head; tab->fresh > tab->scatter.n && i < tab->lru.tail; i++)
		if (tab->lru.rows[i] == row)
			return lru_touch(&tab->lru, tab->lru.tail - i);
	lru_push(&tab->lru, row);
	if (have == (uint64_t)LOCALITY_BINS * g->lookups[t])
		tab->lru.head++;
	return row;
}

struct st_source *st_gen_locality(const struct st_shape *s, double k, struct csm_err *err)
{
	struct st_source *src;
	struct gen *g;

	if (!(k >= 0 && k <= 1000)) {
		csm_fail(err, -EINVAL, "locality %g is not within 0 and 1000", k);
		return NULL;
	}
	src = gen_new(s, &g, err);
	if (!src)
		return NULL;
	g->draw = draw_locality;
	g->fresh = (LOCALITY_FIRST + k) / (1 + k);
	for (uint32_t t = 0; t < s->ntables; t++) {
		if (!lru_init(&g->tables[t].lru, (uint64_t)LOCALITY_BINS * s->lookups[t] + 1)) {
			st_close(src);
			csm_fail(err, -ENOMEM, "out of memory");
			return NULL;
		}
	}
	return src;
}

#define DIST_MAX	(1u << 26)	/* numbers a line of a distribution may have */

/* A line of numbers, separated by commas. *n of them, to be freed, or NULL. */
static double *number_line(FILE *f, const char *path, int line, uint32_t *n, struct csm_err *err)
{
	char *text = NULL, *at, *end;
	double *x = NULL;
	size_t room = 0;

	*n = 0;
	if (getline(&text, &room, f) < 0) {
		csm_fail(err, -EBADMSG, "%s: has no line %d; a distribution has three", path, line);
		goto out;
	}
	x = malloc((strlen(text) / 2 + 1) * sizeof(*x));
	if (!x) {
		csm_fail(err, -ENOMEM, "out of memory");
		goto out;
	}
	for (at = text; ; at = end + 1) {
		x[*n] = strtod(at, &end);
		if (end == at || !(x[*n] >= 0) || x[*n] > UINT32_MAX || *n == DIST_MAX) {
			csm_fail(err, -EBADMSG, "%s: line %d: entry %u is no number within 0 and 2^32", path,
				 line, *n);
			free(x);
			x = NULL;
			goto out;
		}
		++*n;
		while (*end == ' ' || *end == '\r' || *end == '\n')
			end++;
		if (*end != ',')
			break;
	}
	if (*end) {
		csm_fail(err, -EBADMSG, "%s: line %d: no comma after entry %u", path, line, *n - 1);
		free(x);
		x = NULL;
	}
out:
	free(text);
	return x;
}

static uint64_t draw_dist(struct gen *g, uint32_t t)
{
	struct table *tab = &g->tables[t];
	uint64_t have = tab->lru.tail - tab->lru.head;
	uint32_t lo = 0, hi = tab->nsd - 1;
	double u = st_uniform(&tab->rng);

	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (tab->chance[mid] < u)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (tab->sd[lo])
		return lru_touch(&tab->lru, tab->sd[lo] < have ? tab->sd[lo] : have);

	/* a new one: the front of the list, which goes to its end */
	uint32_t row = tab->lru.rows[tab->lru.head++];

	lru_push(&tab->lru, row);
	return row;
}

static int read_dist(struct table *tab, const char *path, uint64_t *rows, struct csm_err *err)
{
	uint32_t nrows = 0, nsd = 0, nchance = 0;
	double *unique = NULL, *sd = NULL;
	FILE *f = fopen(path, "re");
	int ret = -EBADMSG;

	if (!f)
		return csm_fail(err, -errno, "%s: %s", path, strerror(errno));
	unique = number_line(f, path, 1, &nrows, err);
	sd = unique ? number_line(f, path, 2, &nsd, err) : NULL;
	tab->chance = sd ? number_line(f, path, 3, &nchance, err) : NULL;
	fclose(f);
	if (!tab->chance)
		goto out;
	if (nsd != nchance) {
		csm_fail(err, ret, "%s: %u stack distances, but %u chances", path, nsd, nchance);
		goto out;
	}
	tab->nsd = nsd;
	tab->sd = malloc(nsd * sizeof(*tab->sd));
	if (!tab->sd || !lru_init(&tab->lru, nrows)) {
		ret = csm_fail(err, -ENOMEM, "out of memory");
		goto out;
	}
	for (uint32_t i = 0; i < nsd; i++) {
		tab->sd[i] = sd[i];
		if (sd[i] > nrows || (i && tab->chance[i] < tab->chance[i - 1]) ||
		    tab->chance[i] > 1 + 1e-6) {
			csm_fail(err, ret, "%s: entry %u: distance %g of %u rows, chance %g after %g", path, i,
				 sd[i], nrows, tab->chance[i], i ? tab->chance[i - 1] : 0);
			goto out;
		}
	}
	if (tab->chance[nsd - 1] < 1 - 1e-6) {
		csm_fail(err, ret, "%s: the chances end at %g, not at 1", path, tab->chance[nsd - 1]);
		goto out;
	}
	*rows = 0;
	for (uint32_t i = 0; i < nrows; i++) {
		lru_push(&tab->lru, unique[i]);
		if (unique[i] >= (double)*rows)
			*rows = unique[i] + 1;
	}
	ret = 0;
out:
	free(unique);
	free(sd);
	return ret;
}

struct st_source *st_gen_dist(const char *pattern, const struct st_shape *s, struct csm_err *err)
{
	struct st_source *src;
	struct gen *g;
	char path[4096];

	src = gen_new(s, &g, err);
	if (!src)
		return NULL;
	g->draw = draw_dist;
	for (uint32_t t = 0; t < s->ntables; t++) {
		if (!st_path(path, pattern, t))
			csm_fail(err, -EINVAL, "%s: the file name has no 'j' for the table's number",
				 pattern);
		else if (!read_dist(&g->tables[t], path, &src->rows[t], err))
			continue;
		st_close(src);
		return NULL;
	}
	return src;
}

#define BINS_MAX	64
#define ACCESSES_MAX	(1ull << 28)

struct histogram {
	int n;
	double lo[BINS_MAX], hi[BINS_MAX], share[BINS_MAX];
};

/* The first "Histogram of col sizes", lines "(1, 2]: 0.152" and the last "(32768+: 0.000". */
static int read_histogram(struct histogram *h, const char *path, struct csm_err *err)
{
	FILE *f = fopen(path, "re");
	char line[1024];
	bool in = false;
	double sum = 0;

	h->n = 0;
	if (!f)
		return csm_fail(err, -errno, "%s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		double lo, hi, share;

		if (!in) {
			in = !strncmp(line, "Histogram of col sizes", 22);
			continue;
		}
		if (sscanf(line, "(%lf, %lf]: %lf", &lo, &hi, &share) != 3) {
			if (sscanf(line, "(%lf+: %lf", &lo, &share) != 2)
				break;
			hi = 2 * lo;
		}
		if (h->n == BINS_MAX || !(lo >= 0) || !(hi > lo) || !(share >= 0) || hi > 1e9)
			break;
		h->lo[h->n] = lo;
		h->hi[h->n] = hi;
		sum += share;
		h->share[h->n++] = sum;
	}
	fclose(f);
	if (!h->n || fabs(sum - 1) > 0.02)
		return csm_fail(err, -EBADMSG,
				"%s: no histogram of col sizes, or its shares come to %g", path, sum);
	for (int i = 0; i < h->n; i++)
		h->share[i] /= sum;
	return 0;
}

static uint64_t draw_all(struct gen *g, uint32_t t)
{
	return g->tables[t].all[g->tables[t].fresh++];
}

/* How often one row is accessed: a bin by its share, in it log-uniform. */
static uint64_t accesses_of_row(const struct histogram *h, struct st_rng *rng)
{
	double u = st_uniform(rng), lo, hi;
	int b = 0;

	while (b < h->n - 1 && h->share[b] < u)
		b++;
	lo = floor(h->lo[b]) + 1;
	hi = floor(h->hi[b]) + 1;
	return fmin(floor(lo * pow(hi / lo, st_uniform(rng))), hi - 1);
}

static int fill_all(struct table *tab, uint64_t want, const struct histogram *h, uint32_t t,
		    struct csm_err *err)
{
	uint64_t n = 0;

	tab->all = malloc(want * sizeof(*tab->all));
	if (!tab->all)
		return csm_fail(err, -ENOMEM, "out of memory");
	for (uint64_t rank = 0; n < want; rank++) {
		uint64_t count = accesses_of_row(h, &tab->rng);

		if (rank == tab->scatter.n)
			return csm_fail(err, -EINVAL,
					"table T%u: its %llu rows make %llu accesses by this histogram, %llu are wanted",
					t, (unsigned long long)rank, (unsigned long long)n,
					(unsigned long long)want);
		for (; count && n < want; count--)
			tab->all[n++] = scatter(&tab->scatter, rank);
	}
	for (uint64_t i = n; i > 1; i--) {
		uint64_t j = st_below(&tab->rng, i);
		uint32_t x = tab->all[i - 1];

		tab->all[i - 1] = tab->all[j];
		tab->all[j] = x;
	}
	return 0;
}

struct st_source *st_gen_reuse(const char *path, const struct st_shape *s, struct csm_err *err)
{
	struct st_source *src;
	struct histogram h;
	struct gen *g;

	if (read_histogram(&h, path, err))
		return NULL;
	src = gen_new(s, &g, err);
	if (!src)
		return NULL;
	g->draw = draw_all;
	for (uint32_t t = 0; t < s->ntables; t++) {
		uint64_t want = s->samples * s->lookups[t];

		if (s->samples > ACCESSES_MAX || want > ACCESSES_MAX)
			csm_fail(err, -EINVAL, "table T%u: %llu samples of %u lookups, more than 2^28 accesses",
				 t, (unsigned long long)s->samples, s->lookups[t]);
		else if (!fill_all(&g->tables[t], want ? want : 1, &h, t, err))
			continue;
		st_close(src);
		return NULL;
	}
	return src;
}
