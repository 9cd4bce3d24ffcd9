// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* From one plan to the next with as little moved as can be: MODEL.md, "Replanning". */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tier.h"

/* A table before and after */
struct step {
	const struct csm_map *was;
	const struct csm_place *place;
	bool was_split, split;
	uint32_t nrows, hot, ntt;	/* after */
	uint64_t at[2];			/* first byte in the extent's data, before and after */
};

static int tier_before(const struct step *x, uint32_t id)
{
	if (!x->was->rank)
		return PLAN_DRAM;
	if (x->was->rank[id] < x->was->nhot)
		return PLAN_DRAM;
	return x->was->rank[id] < x->was->nhot + x->was->ntt ? PLAN_ONCHIP : PLAN_NVME;
}

/*
 * order[to .. to + n - 1] gets the rows at from: who was in this tier, whose first rank was
 * base, stays in its place if there is one, and the others fill the gaps in their order.
 */
static void keep_places(const struct step *x, int tier, const uint32_t *from, uint32_t n,
			uint32_t base, uint32_t *order)
{
	uint32_t gap = 0;

	memset(order, 0xff, n * sizeof(*order));
	for (uint32_t i = 0; i < n; i++)
		if (tier_before(x, from[i]) == tier && x->was->rank[from[i]] - base < n)
			order[x->was->rank[from[i]] - base] = from[i];
	for (uint32_t i = 0; i < n; i++) {
		if (tier_before(x, from[i]) == tier && x->was->rank[from[i]] - base < n)
			continue;
		while (order[gap] != UINT32_MAX)
			gap++;
		order[gap] = from[i];
	}
}

/* Is row i of this tier where it was? */
static bool stays(const struct step *x, int tier, uint32_t base, uint32_t id, uint32_t i)
{
	return x->was_split && tier_before(x, id) == tier && x->was->rank[id] - base == i;
}

static uint64_t dram_bytes(const struct step *x, const uint32_t *order, uint32_t stride)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < x->hot; i++)
		n += !stays(x, PLAN_DRAM, 0, order[i], i);
	return n * stride;
}

static uint64_t cold_bytes(const struct step *x, const uint32_t *order, const struct csm_map *now)
{
	uint32_t first = x->hot + x->ntt, base = x->was->nhot + x->was->ntt;
	bool moved = x->at[0] != x->at[1];
	uint64_t units = 0;

	for (uint32_t i = 0; i < now->ncold; i += now->unit_rows) {
		bool same = !moved;

		for (uint32_t k = i; same && k < i + now->unit_rows && k < now->ncold; k++)
			same = stays(x, PLAN_NVME, base, order[first + k], k);
		units += !same;
	}
	return units * now->unit;
}

static bool same_cores(const struct step *x, const uint32_t *order, const struct plan_tt *f,
		       const struct plan_cores *c)
{
	const struct csm_table *t = x->place->tt;

	if (!t || x->place->ntt != x->ntt || memcmp(t->p, f->p, sizeof(f->p)) ||
	    memcmp(t->q, f->q, sizeof(f->q)) || memcmp(t->r, f->r, sizeof(f->r)) ||
	    memcmp(x->place->ids + x->place->nhot, order + x->hot, x->ntt * sizeof(*order)))
		return false;
	for (int k = 0; k < 3; k++)
		if (memcmp(t->core[k], c->core[k], t->core_len[k] * sizeof(float)))
			return false;
	return true;
}

/* The layout that a split table will have; only sizes. */
static void layout(const struct plan_problem *p, const struct step *x, uint32_t dim,
		   struct csm_map *now)
{
	uint32_t bytes = 4 * dim;

	memset(now, 0, sizeof(*now));
	now->stride = 4;
	if (bytes > p->block)
		now->stride = (bytes + p->block - 1) / p->block * p->block;
	while (now->stride < bytes)
		now->stride *= 2;
	now->unit = now->stride > p->block ? now->stride : p->block;
	now->unit_rows = now->unit / now->stride;
	now->ncold = x->nrows - x->hot - x->ntt;
	now->nunits = (now->ncold + now->unit_rows - 1) / now->unit_rows;
}

static int migrate_table(const struct plan_problem *p, const struct plan_choice *c,
			 const struct plan_table *tab, const struct csm_stats_table *st,
			 const struct plan_cores *cores, struct step *x, uint32_t *ranked,
			 uint32_t **order, struct plan_migration *mig, struct csm_err *err)
{
	struct csm_map now;

	for (uint32_t i = 0; i < x->nrows; i++) {
		int before = tier_before(x, ranked[i]);
		int after = i < x->hot ? PLAN_DRAM : i < x->hot + x->ntt ? PLAN_ONCHIP : PLAN_NVME;

		mig->rows[before][after]++;
		if (i < st->norder) {
			mig->accesses[0][before] += st->counts[i];
			mig->accesses[1][after] += st->counts[i];
		}
	}
	if (!x->split) {
		mig->bytes[PLAN_DRAM] += x->was_split ? 4ull * tab->dim * x->nrows : 0;
		return 0;
	}
	*order = malloc((size_t)x->nrows * sizeof(**order));
	if (!*order)
		return csm_fail(err, -ENOMEM, "out of memory");
	memcpy(*order, ranked, (size_t)x->nrows * sizeof(**order));
	layout(p, x, tab->dim, &now);
	if (x->was_split) {
		uint32_t first = x->hot + x->ntt;

		keep_places(x, PLAN_DRAM, ranked, x->hot, 0, *order);
		keep_places(x, PLAN_NVME, ranked + first, x->nrows - first,
			    x->was->nhot + x->was->ntt, *order + first);
	}
	mig->bytes[PLAN_DRAM] += dram_bytes(x, *order, now.stride);
	mig->bytes[PLAN_NVME] += cold_bytes(x, *order, &now);
	if (c->tt >= 0 && !same_cores(x, *order, &tab->tts[c->tt], cores))
		mig->bytes[PLAN_ONCHIP] += c->onchip;
	x->at[0] += (uint64_t)x->was->nunits * x->was->unit;
	x->at[1] += (uint64_t)now.nunits * now.unit;
	return 0;
}

/* Blocks of the extent before its data (FORMAT.md): header, directory, checksums */
static uint64_t lead(uint32_t tables, uint64_t data, uint32_t block)
{
	return 1 + (64ull * tables + block - 1) / block + (data / block * 4 + block - 1) / block;
}

int plan_migrate(const struct plan_problem *p, const struct plan_solution *s,
		 const struct csm_model *m, const struct csm_stats_table *const *stats,
		 const struct plan_cores *cores, const struct csm_placement *old,
		 uint32_t **orders, struct plan_migration *mig, struct csm_err *err)
{
	struct csm_remap was;
	struct step x = { 0 };
	uint32_t ncold = 0;
	int ret;

	memset(mig, 0, sizeof(*mig));
	ret = csm_remap_init(&was, m, old, err);
	if (ret)
		return ret;
	for (uint32_t t = 0; t < p->ntables && !ret; t++) {
		const struct plan_choice *c = &p->choices[t][s->choice[t]];
		const struct plan_table *tab = &p->tables[t];
		uint32_t *ranked;

		if (tab->tt_form)
			continue;
		x.was = &was.maps[t];
		x.place = &old->tables[t];
		x.was_split = x.place->tier == CSM_TIER_SPLIT;
		x.nrows = tab->nrows;
		x.hot = c->hot;
		x.ntt = c->tt >= 0 ? tab->tts[c->tt].count : 0;
		x.split = x.hot < x.nrows;
		ret = plan_order(m, t, stats[t], &ranked, err);
		if (ret)
			break;
		ncold += x.hot + x.ntt < x.nrows;
		if (!x.split)
			x.at[0] += (uint64_t)x.was->nunits * x.was->unit;
		ret = migrate_table(p, c, tab, stats[t], &cores[t], &x, ranked, &orders[t], mig, err);
		free(ranked);
	}
	/* another block size, or a start of the data elsewhere: all of it is written anew */
	if (old->ncold && (old->block != p->block || old->cold_off != PLAN_COLD_OFFSET ||
			   lead(old->ncold, x.at[0], p->block) != lead(ncold, x.at[1], p->block)))
		mig->bytes[PLAN_NVME] = x.at[1];
	csm_remap_free(&was);
	return ret;
}
