// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The ways to place a table, and what a plan comes to: MODEL.md, "Quantities". */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"

#define PAGE		4096.
#define MARGIN		4	/* standard deviations of room for fetched blocks */

static double round_up(double x, double to)
{
	return ceil(x / to) * to;
}

/* FORMAT.md section 2 */
static double stride_of(const struct plan_problem *p, const struct plan_table *t)
{
	double bytes = 4. * t->dim, s = 4;

	if (bytes > p->block)
		return round_up(bytes, p->block);
	while (s < bytes)
		s *= 2;
	return s;
}

/*
 * Reads that n draws cause among rows from .. end of the order: distinct rows, taken as
 * equally wanted within a piece of the curve, which can only overstate them.
 */
static double distinct(const struct plan_table *t, uint32_t from, double n)
{
	double sum = 0;

	for (uint32_t i = 1; i < t->ncurve; i++) {
		double rows = (double)t->k[i] - t->k[i - 1], hit = t->share[i] - t->share[i - 1];

		if (t->k[i] <= from || hit <= 0)
			continue;
		if (t->k[i - 1] < from) {
			hit *= (t->k[i] - from) / rows;
			rows = t->k[i] - from;
		}
		sum += hit >= rows ? rows : -rows * expm1(n * log1p(-hit / rows));
	}
	return sum;
}

static double share_at(const struct plan_table *t, uint32_t k)
{
	uint32_t i = 1;

	while (i < t->ncurve - 1 && t->k[i] < k)
		i++;
	return t->share[i - 1] + (t->share[i] - t->share[i - 1]) * (k - (double)t->k[i - 1]) /
	       ((double)t->k[i] - t->k[i - 1]);
}

static double core_bytes(const struct plan_tt *f)
{
	const double slice[3] = { f->q[0] * f->r[0], f->r[0] * f->q[1] * f->r[1], f->r[1] * f->q[2] };
	double sum = 0;

	for (int k = 0; k < 3; k++)
		sum += round_up(4. * f->p[k] * slice[k], 64);
	return sum;
}

/* DRAM of a choice with cold rows and this many slots */
static double split_bytes(const struct plan_problem *p, const struct plan_table *t, uint32_t hot,
			  uint32_t slots)
{
	double stride = stride_of(p, t), unit = stride > p->block ? stride : p->block;

	return round_up(round_up(hot * stride, unit) + slots * unit, PAGE);
}

static void make_choice(const struct plan_problem *p, const struct plan_table *t, uint32_t hot,
			int32_t tt, double all, struct plan_choice *c)
{
	const struct plan_tt *f = tt >= 0 ? &t->tts[tt] : t->tt_form ? &t->form : NULL;
	double n = p->batch * t->pooling, feature[PLAN_FEATURES];
	double stride = stride_of(p, t), unit = stride > p->block ? stride : p->block;
	uint32_t past = f && !t->tt_form ? hot + f->count : t->tt_form ? t->nrows : hot;
	double by_tt = f ? share_at(t, past) - share_at(t, hot) : 0;
	double cold = (double)t->nrows - past;

	memset(c, 0, sizeof(*c));
	c->hot = hot;
	c->tt = tt;
	if (t->tt_form)
		by_tt = 1;
	if (hot || cold > 0) {
		plan_features_emb(p->batch, n * (1 - by_tt), t->dim, feature);
		c->emb_cycles = plan_cycles(&p->cost, PLAN_EMB, feature);
	}
	if (f) {
		plan_features_tt(p->batch, n * by_tt, f->q, f->r, feature);
		c->tt_cycles = plan_cycles(&p->cost, PLAN_TT, feature);
		c->onchip = core_bytes(f);
		c->error = f->error * n / all;
	}
	if (p->ndevices > 1) {
		plan_features_copy(4. * p->batch * t->dim, feature);
		feature[0] = 0;		/* one copy for all tables */
		c->out_cycles = plan_cycles(&p->cost, PLAN_COPY_OUT, feature);
	}
	if (cold > 0) {
		double nunits = ceil(cold * stride / unit);

		c->reads = fmin(distinct(t, past, n), nunits);
		c->read_bytes = c->reads * unit;
		c->slots = fmin(fmin(nunits, CSM_SLOTS_MAX),
				ceil(fmax(c->reads + MARGIN * sqrt(c->reads), fmax(1, t->pool_max))));
		c->nvme = round_up(nunits * unit, PAGE);
		c->dram = split_bytes(p, t, hot, c->slots);
	} else if (hot) {
		c->dram = round_up(hot * (hot == t->nrows ? 4. * t->dim : stride), PAGE);
	}
}

/* n slots, but no less than planned and no more than a batch may need. */
static uint32_t slots_of(const struct plan_problem *p, const struct plan_table *t,
			 const struct plan_choice *c, uint32_t n)
{
	double stride = stride_of(p, t), unit = stride > p->block ? stride : p->block;
	double past = c->hot + (c->tt >= 0 ? (double)t->tts[c->tt].count : 0);
	double ids = p->batch * t->pooling;
	double most = fmin(ceil((t->nrows - past) * stride / unit), ceil(ids + MARGIN * sqrt(ids)));

	return fmax(c->slots, fmin(fmin(n, most), CSM_SLOTS_MAX));
}

void plan_spare_slots(struct plan_problem *p, struct plan_solution *s)
{
	for (uint32_t d = 0; d < p->ndevices; d++) {
		double left = (p->devices[d].dram_bytes - s->load[d].dram) / 2;
		uint32_t lo = 0, hi = CSM_SLOTS_MAX + 1;

		/* as many for each table as fit */
		while (hi - lo > 1) {
			uint32_t mid = lo + (hi - lo) / 2;
			double more = 0;

			for (uint32_t t = 0; t < p->ntables; t++) {
				const struct plan_choice *c = &p->choices[t][s->choice[t]];

				if (s->device[t] == d && c->slots)
					more += split_bytes(p, &p->tables[t], c->hot,
							    slots_of(p, &p->tables[t], c, mid)) - c->dram;
			}
			*(more <= left ? &lo : &hi) = mid;
		}
		for (uint32_t t = 0; t < p->ntables; t++) {
			struct plan_choice *c = &p->choices[t][s->choice[t]];

			if (s->device[t] != d || !c->slots)
				continue;
			c->slots = slots_of(p, &p->tables[t], c, lo);
			c->dram = split_bytes(p, &p->tables[t], c->hot, c->slots);
		}
	}
	plan_evaluate(p, s);
}

static bool same_device(const struct plan_device *a, const struct plan_device *b)
{
	return a->config == b->config && a->dram_bytes == b->dram_bytes &&
	       a->onchip_bytes == b->onchip_bytes && a->nvme_bytes == b->nvme_bytes &&
	       a->nvme_rate == b->nvme_rate && a->nvme_iops == b->nvme_iops &&
	       a->clock_hz == b->clock_hz && a->power_w == b->power_w;
}

/* Cycles of the dense part for samples of them. */
static double dense(const struct plan_problem *p, uint32_t samples)
{
	double sum = 0, f[PLAN_FEATURES], dims = 0;

	for (uint32_t i = 0; i < p->nops; i++) {
		const struct plan_op *o = &p->ops[i];

		if (o->unit == PLAN_MLP)
			plan_features_mlp(&p->cost, samples, o->in, o->out, f);
		else
			plan_features_interact(samples, o->dot, o->self, o->nvec, o->dim, o->vec_step, f);
		sum += o->repeat * plan_cycles(&p->cost, o->unit, f);
	}
	if (p->ndevices > 1) {
		for (uint32_t t = 0; t < p->ntables; t++)
			dims += p->tables[t].dim;
		plan_features_copy(4. * samples * dims, f);
		sum += plan_cycles(&p->cost, PLAN_COPY_IN, f);
	}
	return sum;
}

/* Chord by chord: a curve of counts is concave by its nature, but a file may say otherwise. */
static int check_curve(const struct plan_table *t, struct csm_err *err)
{
	double last = INFINITY;

	if (t->ncurve < 2 || t->k[0] || t->k[t->ncurve - 1] != t->nrows)
		return csm_fail(err, -EBADMSG, "table %s: access curve does not go from 0 to %u rows",
				t->name, t->nrows);
	for (uint32_t i = 1; i < t->ncurve; i++) {
		double slope = (t->share[i] - t->share[i - 1]) / ((double)t->k[i] - t->k[i - 1]);

		if (t->k[i] <= t->k[i - 1] || slope < 0 || slope > last * (1 + 1e-9) + 1e-15)
			return csm_fail(err, -EBADMSG,
					"table %s: access curve is not ascending and concave at point %u",
					t->name, i);
		last = slope;
	}
	return 0;
}

static double all_lookups(const struct plan_problem *p)
{
	double all = 0;

	for (uint32_t t = 0; t < p->ntables; t++)
		all += p->batch * p->tables[t].pooling;
	return all;
}

void plan_set_errors(struct plan_problem *p)
{
	double all = all_lookups(p);

	for (uint32_t t = 0; t < p->ntables; t++) {
		const struct plan_table *tab = &p->tables[t];

		for (uint32_t i = 0; i < p->nchoices[t]; i++) {
			struct plan_choice *c = &p->choices[t][i];

			if (c->tt >= 0)
				c->error = tab->tts[c->tt].error * p->batch * tab->pooling / all;
		}
	}
}

int plan_prepare(struct plan_problem *p, struct csm_err *err)
{
	double all = all_lookups(p);
	bool dense_ok = false;
	int ret;

	p->choices = calloc(p->ntables + 1, sizeof(*p->choices));
	p->nchoices = calloc(p->ntables + 1, sizeof(*p->nchoices));
	p->group = calloc(p->ndevices + 1, sizeof(*p->group));
	p->dense_cycles = calloc(p->ndevices + 1, sizeof(*p->dense_cycles));
	if (!p->choices || !p->nchoices || !p->group || !p->dense_cycles)
		return csm_fail(err, -ENOMEM, "out of memory");
	for (uint32_t d = 0; d < p->ndevices; d++) {
		uint32_t first = 0;

		while (!same_device(&p->devices[first], &p->devices[d]))
			first++;
		p->group[d] = first;
		dense_ok |= p->devices[d].config != PLAN_MEMORY;
	}
	if (!dense_ok && p->nops)
		return csm_fail(err, -ENOSPC,
				"no plan fits: every device is memory-centric, none may have the dense part");
	for (uint32_t m = 1; m <= p->ndevices; m++)
		p->dense_cycles[m] = dense(p, (p->batch + m - 1) / m);
	for (uint32_t t = 0; t < p->ntables; t++) {
		const struct plan_table *tab = &p->tables[t];
		struct plan_choice *c;
		uint32_t n = 0;

		ret = tab->tt_form ? 0 : check_curve(tab, err);
		if (ret)
			return ret;
		c = calloc(tab->ncurve + tab->ntts + 1, sizeof(*c));
		if (!c)
			return csm_fail(err, -ENOMEM, "out of memory");
		p->choices[t] = c;
		if (tab->tt_form)
			make_choice(p, tab, 0, -1, all, &c[n++]);
		for (uint32_t i = 0; !tab->tt_form && i < tab->ncurve; i++)
			make_choice(p, tab, tab->k[i], -1, all, &c[n++]);
		for (uint32_t i = 0; !tab->tt_form && i < tab->ntts; i++)
			make_choice(p, tab, tab->tts[i].first, i, all, &c[n++]);
		p->nchoices[t] = n;
	}
	return 0;
}

void plan_problem_free(struct plan_problem *p)
{
	for (uint32_t t = 0; t < p->ntables; t++) {
		free(p->tables[t].k);
		free(p->tables[t].share);
		free(p->tables[t].tts);
		if (p->choices)
			free(p->choices[t]);
	}
	free(p->tables);
	free(p->ops);
	free(p->devices);
	free(p->choices);
	free(p->nchoices);
	free(p->group);
	free(p->dense_cycles);
	memset(p, 0, sizeof(*p));
}

int plan_solution_init(struct plan_solution *s, const struct plan_problem *p,
		       struct csm_err *err)
{
	memset(s, 0, sizeof(*s));
	s->choice = calloc(p->ntables + 1, sizeof(*s->choice));
	s->device = calloc(p->ntables + 1, sizeof(*s->device));
	s->compute = calloc(p->ndevices + 1, sizeof(*s->compute));
	s->load = calloc(p->ndevices + 1, sizeof(*s->load));
	if (s->choice && s->device && s->compute && s->load)
		return 0;
	plan_solution_free(s);
	return csm_fail(err, -ENOMEM, "out of memory");
}

void plan_solution_free(struct plan_solution *s)
{
	free(s->choice);
	free(s->device);
	free(s->compute);
	free(s->load);
	memset(s, 0, sizeof(*s));
}

void plan_solution_copy(struct plan_solution *to, const struct plan_solution *from,
			const struct plan_problem *p)
{
	struct plan_solution keep = *to;

	memcpy(to->choice, from->choice, p->ntables * sizeof(*to->choice));
	memcpy(to->device, from->device, p->ntables * sizeof(*to->device));
	memcpy(to->compute, from->compute, p->ndevices * sizeof(*to->compute));
	memcpy(to->load, from->load, p->ndevices * sizeof(*to->load));
	*to = *from;
	to->choice = keep.choice;
	to->device = keep.device;
	to->compute = keep.compute;
	to->load = keep.load;
}

bool plan_choice_allowed(const struct plan_problem *p, uint32_t t, uint32_t c, bool tt)
{
	return tt || p->choices[t][c].tt < 0;
}

double plan_choice_seconds(const struct plan_problem *p, uint32_t t, uint32_t c, uint32_t d)
{
	const struct plan_choice *k = &p->choices[t][c];
	const struct plan_device *v = &p->devices[d];
	double s = (k->emb_cycles + k->tt_cycles + k->out_cycles) / v->clock_hz;

	return k->reads > 0 ? s + fmax(k->reads / v->nvme_iops, k->read_bytes / v->nvme_rate) : s;
}

static double over(double have, double cap)
{
	return have <= cap ? 0 : (have - cap) / fmax(cap, PAGE);
}

void plan_evaluate(const struct plan_problem *p, struct plan_solution *s)
{
	double error = 0, lookups = 0, dense_s = 0, f[PLAN_FEATURES];
	uint32_t m = 0, left = p->batch;

	memset(s->load, 0, p->ndevices * sizeof(*s->load));
	s->objective = s->excess = 0;
	for (uint32_t d = 0; d < p->ndevices; d++)
		m += s->compute[d];
	for (uint32_t t = 0; t < p->ntables; t++) {
		const struct plan_choice *c = &p->choices[t][s->choice[t]];
		struct plan_load *l = &s->load[s->device[t]];
		double hz = p->devices[s->device[t]].clock_hz;
		double cycles = c->emb_cycles + c->tt_cycles;

		l->tables++;
		l->emb_cycles += c->emb_cycles;
		l->tt_cycles += c->tt_cycles;
		l->copy_cycles += c->out_cycles;
		*(c->slots ? &l->cold_s : &l->warm_s) += cycles / hz;
		l->reads += c->reads;
		l->read_bytes += c->read_bytes;
		l->dram += c->dram;
		l->onchip += c->onchip;
		l->nvme += c->nvme;
		error += c->error;
	}
	plan_features_copy(0, f);
	for (uint32_t d = 0; d < p->ndevices; d++) {
		const struct plan_device *v = &p->devices[d];
		struct plan_load *l = &s->load[d];

		if (p->ndevices > 1)
			l->copy_cycles += plan_cycles(&p->cost, PLAN_COPY_OUT, f);
		if (s->compute[d]) {
			l->dense_cycles = p->dense_cycles[m];
			l->samples = left < (p->batch + m - 1) / m ? left : (p->batch + m - 1) / m;
			left -= l->samples;
			l->dram += p->weight_bytes;
		}
		if (l->reads > 0)
			l->drive_s = fmax(l->reads / v->nvme_iops, l->read_bytes / v->nvme_rate);
		l->engine_s = (p->cost.submit + l->emb_cycles + l->tt_cycles + l->copy_cycles +
			       l->dense_cycles) / v->clock_hz;
		l->total_s = fmax(l->warm_s, l->drive_s) + l->cold_s +
			     (p->cost.submit + l->copy_cycles + l->dense_cycles) / v->clock_hz;
		s->objective = fmax(s->objective, l->total_s);
		lookups = fmax(lookups, l->total_s - l->dense_cycles / v->clock_hz);
		dense_s = fmax(dense_s, l->dense_cycles / v->clock_hz);
		s->excess += over(l->dram, v->dram_bytes) + over(l->onchip, v->onchip_bytes) +
			     over(l->nvme, v->nvme_bytes);
	}
	s->latency = lookups + dense_s;
	s->error = sqrt(error);
	if (error > p->tt_error * p->tt_error)
		s->excess += error / (p->tt_error * p->tt_error) - 1;
	if (!m && p->nops)
		s->excess += 1;
}
