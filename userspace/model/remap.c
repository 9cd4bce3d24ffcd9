// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Address remapper and fetch planner. A row id becomes a row number of the table's
 * own region: a hot row's place, or a place in the slot that the block with that row is
 * fetched into. Ids keep their order in the bag; only fetches are sorted and
 * de-duplicated, so placement never changes a sum.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "csm.h"

static int map_init(struct csm_map *map, const struct csm_table *t, const struct csm_place *pl,
		    const uint32_t *order, uint32_t norder, uint32_t block, struct csm_err *err)
{
	uint32_t bytes = t->dim * 4, n = pl->nhot + pl->ntt;
	uint64_t slack;

	if (pl->tier == CSM_TIER_TT)
		return 0;
	if (pl->tier == CSM_TIER_DRAM) {
		map->stride = bytes;
		map->nhot = t->nrows;
		map->region_rows = t->nrows;
		map->region_size = (uint64_t)t->nrows * bytes;
		return 0;
	}
	/* The stride divides the block or is a multiple of it. */
	if (bytes > block)
		map->stride = (bytes + block - 1) / block * block;
	else
		for (map->stride = 4; map->stride < bytes; )
			map->stride *= 2;
	map->unit = map->stride > block ? map->stride : block;
	map->unit_rows = map->unit / map->stride;
	map->nhot = pl->nhot;
	map->ntt = pl->ntt;
	map->ids = pl->ids;
	map->tt = pl->tt;
	map->slots = pl->slots;
	map->ncold = t->nrows - n;
	map->nunits = (map->ncold + map->unit_rows - 1) / map->unit_rows;
	slack = ((uint64_t)map->nhot + map->unit_rows - 1) / map->unit_rows * map->unit_rows;
	map->region_rows = slack + (uint64_t)map->slots * map->unit_rows;
	map->region_size = map->region_rows * map->stride;
	if (map->region_rows > UINT32_MAX)
		return csm_fail(err, -EINVAL, "table %s: hot rows and slots come to %llu rows",
				t->name, (unsigned long long)map->region_rows);
	map->tail_row = slack;

	map->rank = malloc((size_t)t->nrows * sizeof(*map->rank));
	map->stamp = calloc((size_t)map->nunits + 1, sizeof(*map->stamp));
	map->slot = calloc((size_t)map->nunits + 1, sizeof(*map->slot));
	map->want = calloc((size_t)map->slots + 1, sizeof(*map->want));
	if (!map->rank || !map->stamp || !map->slot || !map->want)
		return csm_fail(err, -ENOMEM, "out of memory");
	memset(map->rank, 0xff, (size_t)t->nrows * sizeof(*map->rank));
	for (uint32_t i = 0; i < n; i++)
		map->rank[pl->ids[i]] = i;
	/* Cold rows: by order first, so that likely ones share blocks. */
	for (uint32_t i = 0; i < norder; i++)
		if (map->rank[order[i]] == UINT32_MAX)
			map->rank[order[i]] = n++;
	for (uint32_t id = 0; id < t->nrows; id++)
		if (map->rank[id] == UINT32_MAX)
			map->rank[id] = n++;
	return 0;
}

uint32_t *csm_cold_ids(const struct csm_map *map, uint32_t nrows)
{
	uint32_t first = map->nhot + map->ntt;
	uint32_t *ids = calloc((size_t)map->ncold + 1, sizeof(*ids));

	for (uint32_t id = 0; ids && id < nrows; id++)
		if (map->rank[id] >= first)
			ids[map->rank[id] - first] = id;
	return ids;
}

int csm_remap_init(struct csm_remap *r, const struct csm_model *m,
		   const struct csm_placement *p, struct csm_err *err)
{
	int ret;

	memset(r, 0, sizeof(*r));
	r->model = m;
	r->maps = calloc(m->ntables + 1, sizeof(*r->maps));
	if (!r->maps)
		return csm_fail(err, -ENOMEM, "out of memory");
	for (uint32_t t = 0; t < m->ntables; t++) {
		/* an overlay's order takes the place of the model's */
		const struct csm_table *by = p->overlay && p->overlay->tables[t].order ?
					     &p->overlay->tables[t] : &m->tables[t];

		ret = map_init(&r->maps[t], &m->tables[t], &p->tables[t], by->order, by->norder,
			       p->block, err);
		if (ret) {
			csm_remap_free(r);
			return ret;
		}
	}
	return 0;
}

void csm_remap_free(struct csm_remap *r)
{
	for (uint32_t t = 0; r->maps && t < r->model->ntables; t++) {
		free(r->maps[t].rank);
		free(r->maps[t].stamp);
		free(r->maps[t].slot);
		free(r->maps[t].want);
	}
	free(r->maps);
	memset(r, 0, sizeof(*r));
}

/* Starts a batch: forgets which units are wanted. */
static void begin(struct csm_remap *r)
{
	if (++r->now == 0) {
		/* the stamps have come round: none may look current */
		for (uint32_t t = 0; t < r->model->ntables; t++)
			if (r->maps[t].stamp)
				memset(r->maps[t].stamp, 0, r->maps[t].nunits * sizeof(uint32_t));
		r->now = 1;
	}
	for (uint32_t t = 0; t < r->model->ntables; t++)
		r->maps[t].nwant = 0;
}

/* Takes back the units from nwant on, which the sample that did not fit had added. */
static void unwant(struct csm_map *map, uint32_t nwant)
{
	while (map->nwant > nwant)
		map->stamp[map->want[--map->nwant]] = 0;
}

/* Marks what sample i needs. False: some table's slots do not suffice; nothing is marked. */
static bool want_sample(struct csm_remap *r, const struct csm_bags *in, uint32_t i,
			uint32_t *before, uint32_t *full)
{
	const struct csm_model *m = r->model;

	for (uint32_t t = 0; t < m->ntables; t++)
		before[t] = r->maps[t].nwant;
	for (uint32_t k = 0; k < m->nnodes; k++) {
		const struct csm_node *n = &m->nodes[k];
		struct csm_map *map = &r->maps[n->param];
		const struct csm_bags *b = &in[n->emb];

		if (n->op != CSM_OP_EMB || !map->ncold)
			continue;
		for (uint32_t j = b->offsets[i]; j < b->offsets[i + 1]; j++) {
			uint32_t rank = map->rank[b->ids[j]], unit;

			if (rank < map->nhot + map->ntt)
				continue;
			unit = (rank - map->nhot - map->ntt) / map->unit_rows;
			if (map->stamp[unit] == r->now)
				continue;
			if (map->nwant == map->slots) {
				*full = n->param;
				for (uint32_t t = 0; t < m->ntables; t++)
					unwant(&r->maps[t], before[t]);
				return false;
			}
			map->stamp[unit] = r->now;
			map->want[map->nwant++] = unit;
		}
	}
	return true;
}

static int by_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static int add_fetch(struct csm_plan *plan, const struct csm_fetch *f, struct csm_err *err)
{
	if (plan->nfetch == plan->room) {
		uint32_t room = plan->room ? plan->room * 2 : 64;
		struct csm_fetch *p = realloc(plan->fetch, room * sizeof(*p));

		if (!p)
			return csm_fail(err, -ENOMEM, "out of memory");
		plan->fetch = p;
		plan->room = room;
	}
	plan->fetch[plan->nfetch++] = *f;
	return 0;
}

/* Sorted units fill the slots in order; neighbours on the drive become one fetch. */
static int plan_fetches(struct csm_remap *r, struct csm_plan *plan, struct csm_err *err)
{
	for (uint32_t t = 0; t < r->model->ntables; t++) {
		struct csm_map *map = &r->maps[t];
		uint64_t tail = (uint64_t)map->tail_row * map->stride;

		if (map->nwant)
			qsort(map->want, map->nwant, sizeof(*map->want), by_u32);
		for (uint32_t s = 0, n; s < map->nwant; s += n) {
			struct csm_fetch f = {
				.table = t, .off = (uint64_t)map->want[s] * map->unit,
				.dst = tail + (uint64_t)s * map->unit,
			};
			int ret;

			for (n = 0; s + n < map->nwant && map->want[s + n] == map->want[s] + n; n++)
				map->slot[map->want[s + n]] = s + n;
			f.len = (uint64_t)n * map->unit;
			ret = add_fetch(plan, &f, err);
			if (ret)
				return ret;
		}
	}
	return 0;
}

/* Region row of the cold row, which its slot holds by then. */
static uint32_t slot_row(const struct csm_map *map, uint32_t cold)
{
	return map->tail_row + map->slot[cold / map->unit_rows] * map->unit_rows +
	       cold % map->unit_rows;
}

/* Node e's ids of the planned samples, by the tiers they lie in. */
static void place_ids(const struct csm_map *map, const struct csm_bags *in, uint32_t first,
		      uint32_t n, struct csm_bags *out, struct csm_bags *tt,
		      struct csm_plan *plan)
{
	uint32_t nmem = 0, ntt = 0;

	for (uint32_t i = 0; i < n; i++) {
		out->offsets[i] = nmem;
		if (map->tt)
			tt->offsets[i] = ntt;
		for (uint32_t j = in->offsets[first + i]; j < in->offsets[first + i + 1]; j++) {
			uint32_t rank = map->rank ? map->rank[in->ids[j]] : in->ids[j];

			if (rank < map->nhot) {
				out->ids[nmem++] = rank;
				plan->rows_dram++;
			} else if (rank - map->nhot < map->ntt) {
				tt->ids[ntt++] = rank - map->nhot;
				plan->rows_tt++;
			} else {
				out->ids[nmem++] = slot_row(map, rank - map->nhot - map->ntt);
				plan->rows_nvme++;
			}
		}
	}
	out->offsets[n] = nmem;
	if (map->tt)
		tt->offsets[n] = ntt;
}

int csm_remap_plan(struct csm_remap *r, const struct csm_bags *in, uint32_t first, uint32_t n,
		   struct csm_bags *out, struct csm_bags *tt, struct csm_plan *plan,
		   struct csm_err *err)
{
	const struct csm_model *m = r->model;
	uint32_t *before, fit = 0, full = 0;
	int ret;

	for (uint32_t k = 0; k < m->nnodes; k++) {
		const struct csm_node *node = &m->nodes[k];
		const struct csm_bags *b = &in[node->emb];

		if (node->op != CSM_OP_EMB)
			continue;
		for (uint32_t j = b->offsets[first]; j < b->offsets[first + n]; j++)
			if (b->ids[j] >= m->tables[node->param].nrows)
				return csm_fail(err, -EINVAL, "table %s: id %u, but it has %u rows",
						m->tables[node->param].name, b->ids[j],
						m->tables[node->param].nrows);
	}
	before = malloc((m->ntables + 1) * sizeof(*before));
	if (!before)
		return csm_fail(err, -ENOMEM, "out of memory");
	begin(r);
	while (fit < n && want_sample(r, in, first + fit, before, &full))
		fit++;
	free(before);
	if (!fit)
		return csm_fail(err, -ENOSPC,
				"table %s: one sample needs more blocks than its %u slots",
				m->tables[full].name, r->maps[full].slots);

	plan->nfetch = 0;
	plan->rows_dram = plan->rows_tt = plan->rows_nvme = 0;
	ret = plan_fetches(r, plan, err);
	if (ret)
		return ret;
	for (uint32_t k = 0; k < m->nnodes; k++) {
		const struct csm_node *node = &m->nodes[k];
		uint32_t e = node->emb;

		if (node->op != CSM_OP_EMB)
			continue;
		if (m->tables[node->param].form != CSM_FORM_TT) {
			place_ids(&r->maps[node->param], &in[e], first, fit, &out[e], &tt[e], plan);
			continue;
		}
		for (uint32_t i = 0; i <= fit; i++)
			out[e].offsets[i] = in[e].offsets[first + i] - in[e].offsets[first];
		memcpy(out[e].ids, in[e].ids + in[e].offsets[first],
		       out[e].offsets[fit] * sizeof(*out[e].ids));
		plan->rows_tt += out[e].offsets[fit];
	}
	return fit;
}

void csm_plan_free(struct csm_plan *plan)
{
	free(plan->fetch);
	memset(plan, 0, sizeof(*plan));
}
