// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <math.h>
#include <stdio.h>

#include "output.h"

#define EXPLAINED	6	/* alternatives that --explain shows */

static const char *tier(const struct plan_problem *p, uint32_t t, const struct plan_choice *c)
{
	return p->tables[t].tt_form ? "tt" : c->hot == p->tables[t].nrows ? "dram" : "split";
}

static json_t *table_json(const struct plan_result *r, uint32_t t)
{
	const struct plan_choice *c = &r->p->choices[t][r->s->choice[t]];
	const char *name = tier(r->p, t, c);
	json_t *o = json_pack("{s:s, s:i}", "tier", name, "device", (int)r->s->device[t]);

	if (!o || *name != 's')
		return o;
	json_object_set_new(o, "hot", json_pack("{s:I}", "count", (json_int_t)c->hot));
	if (c->tt >= 0) {
		const struct plan_tt *f = &r->p->tables[t].tts[c->tt];

		json_object_set_new(o, "tt", json_pack("{s:I, s:[i,i,i], s:[i,i,i], s:[i,i]}",
			"count", (json_int_t)f->count, "p", f->p[0], f->p[1], f->p[2], "q", f->q[0],
			f->q[1], f->q[2], "ranks", f->r[0], f->r[1]));
	}
	if (c->slots)
		json_object_set_new(o, "slots", json_integer(c->slots));
	return o;
}

static json_t *number(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

json_t *plan_to_json(const struct plan_result *r)
{
	const struct plan_problem *p = r->p;
	const struct plan_solution *s = r->s;
	json_t *root, *tables = json_object(), *devices = json_array(), *base = json_object();
	bool cold = false;
	double watts = 0;

	for (uint32_t t = 0; t < p->ntables; t++) {
		json_object_set_new(tables, p->tables[t].name, table_json(r, t));
		cold |= p->choices[t][s->choice[t]].slots != 0;
	}
	for (uint32_t d = 0; d < p->ndevices; d++) {
		const struct plan_device *v = &p->devices[d];
		const struct plan_load *l = &s->load[d];

		watts += v->power_w;
		json_array_append_new(devices, json_pack(
			"{s:s, s:s, s:I, s:I, s:{s:f, s:f, s:f, s:f}, s:{s:f, s:f, s:f}, "
			"s:{s:f, s:f}, s:{s:f, s:f, s:f}}",
			"name", v->name, "config", s->compute[d] ? "compute-centric" : "memory-centric",
			"tables", (json_int_t)l->tables, "dense_samples", (json_int_t)l->samples,
			"cycles", "emb", l->emb_cycles, "tt", l->tt_cycles, "copy", l->copy_cycles,
			"dense", l->dense_cycles,
			"seconds", "engines", l->engine_s, "drive", l->drive_s, "total", l->total_s,
			"drive", "reads", l->reads, "bytes", l->read_bytes,
			"bytes", "dram", l->dram, "onchip", l->onchip, "nvme", l->nvme));
	}
	for (int b = 1; b < PLAN_SOLVERS; b++)
		json_object_set_new(base, plan_solver_names[b], number(r->baseline[b]));
	root = json_pack(
		"{s:i, s:i, s:o, s:o, s:{s:i, s:f, s:f, s:f, s:f, s:f, s:s}, "
		"s:{s:s, s:f, s:f, s:f, s:f, s:b, s:s}, s:o}",
		"csrec_placement", 1, "csrec_plan", 1, "tables", tables, "devices", devices,
		"prediction", "batch", (int)p->batch, "seconds", s->objective, "samples_per_s",
		p->batch / s->objective, "latency_s", s->latency, "energy_j", watts * s->objective,
		"tt_error", s->error, "calibration", p->cost.origin,
		"certificate", "solver", plan_solver_names[r->solver], "objective", s->objective,
		"bound", r->cert->bound, "gap", r->cert->gap, "seconds", r->cert->seconds, "optimal",
		r->cert->optimal, "start", r->cert->start,
		"baselines", base);
	if (root && cold)
		json_object_set_new(root, "cold", json_pack("{s:I, s:i}", "offset",
					(json_int_t)PLAN_COLD_OFFSET, "block", (int)p->block));
	if (root && r->overlay)
		json_object_set_new(root, "overlay", json_pack("{s:s, s:I}", "file", r->overlay,
					"crc32c", (json_int_t)r->overlay_crc));
	return root;
}

void plan_print(const struct plan_result *r, FILE *f)
{
	const struct plan_problem *p = r->p;
	const struct plan_solution *s = r->s;

	fprintf(f, "%u tables on %u devices, batch %u: %.1f us a batch, %.0f samples/s, latency %.1f us\n",
		p->ntables, p->ndevices, p->batch, s->objective * 1e6, p->batch / s->objective,
		s->latency * 1e6);
	fprintf(f, "bound %.1f us, gap %.4f %%%s, %.2f s, %s\n", r->cert->bound * 1e6,
		r->cert->gap * 100, r->cert->optimal ? " (optimal)" : "", r->cert->seconds,
		r->cert->start);
	for (uint32_t d = 0; d < p->ndevices; d++) {
		const struct plan_load *l = &s->load[d];

		fprintf(f, "%-12s %-15s %4u tables  %10.1f us: engines %.1f, drive %.1f (%.0f reads); DRAM %.1f of %.1f MiB, on chip %.0f of %.0f KiB\n",
			p->devices[d].name, s->compute[d] ? "compute-centric" : "memory-centric", l->tables,
			l->total_s * 1e6, l->engine_s * 1e6, l->drive_s * 1e6, l->reads, l->dram / 1048576,
			p->devices[d].dram_bytes / 1048576, l->onchip / 1024,
			p->devices[d].onchip_bytes / 1024);
	}
	for (int b = 1; b < PLAN_SOLVERS; b++) {
		if (isfinite(r->baseline[b]))
			fprintf(f, "%-20s %10.1f us, %.2f times\n", plan_solver_names[b],
				r->baseline[b] * 1e6, r->baseline[b] / s->objective);
		else
			fprintf(f, "%-20s does not fit\n", plan_solver_names[b]);
	}
}

static void describe(const struct plan_problem *p, uint32_t t, uint32_t c, uint32_t d, FILE *f)
{
	const struct plan_choice *k = &p->choices[t][c];

	fprintf(f, "%u rows in DRAM", k->hot);
	if (k->tt >= 0)
		fprintf(f, ", %u in TT form (ranks %u, %u; error %.2e)", p->tables[t].tts[k->tt].count,
			p->tables[t].tts[k->tt].r[0], p->tables[t].tts[k->tt].r[1],
			sqrt(p->tables[t].tts[k->tt].error));
	else if (p->tables[t].tt_form)
		fprintf(f, ", all in TT form, as the model has it");
	fprintf(f, ": DRAM %.0f bytes, on chip %.0f, %.1f reads of the drive, alone %.2f us a batch",
		k->dram, k->onchip, k->reads, plan_choice_seconds(p, t, c, d) * 1e6);
}

void plan_explain(const struct plan_result *r, uint32_t t, FILE *f)
{
	const struct plan_problem *p = r->p;
	const struct plan_table *tab = &p->tables[t];
	uint32_t d = r->s->device[t], mine = r->s->choice[t], n = p->nchoices[t];
	struct plan_solution other;
	struct csm_err err;

	fprintf(f, "table %s: %u rows of %u, %.2f ids a sample; on %s\n  chosen: ", tab->name,
		tab->nrows, tab->dim, tab->pooling, p->devices[d].name);
	describe(p, t, mine, d, f);
	fprintf(f, "\n");
	if (plan_solution_init(&other, p, &err))
		return;
	for (uint32_t i = 0; i <= EXPLAINED; i++) {
		uint32_t c = i == EXPLAINED ? mine + 1 : (uint64_t)(n - 1) * i / (EXPLAINED - 1);

		if (c >= n || c == mine)
			continue;
		plan_solution_copy(&other, r->s, p);
		other.choice[t] = c;
		plan_evaluate(p, &other);
		fprintf(f, "  instead: ");
		describe(p, t, c, d, f);
		if (other.load[d].dram > p->devices[d].dram_bytes)
			fprintf(f, "; does not fit: DRAM short by %.0f bytes\n",
				other.load[d].dram - p->devices[d].dram_bytes);
		else if (other.load[d].onchip > p->devices[d].onchip_bytes)
			fprintf(f, "; does not fit: on-chip memory short by %.0f bytes\n",
				other.load[d].onchip - p->devices[d].onchip_bytes);
		else if (other.load[d].nvme > p->devices[d].nvme_bytes)
			fprintf(f, "; does not fit: drive short by %.0f bytes\n",
				other.load[d].nvme - p->devices[d].nvme_bytes);
		else if (other.excess > 0)
			fprintf(f, "; the bound on TT error does not allow it\n");
		else
			fprintf(f, "; the plan would take %+.2f us a batch\n",
				(other.objective - r->s->objective) * 1e6);
	}
	plan_solution_free(&other);
}
