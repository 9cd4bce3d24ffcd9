// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A page of drawings: no script, no network. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "output.h"

#define CURVES	64	/* tables drawn, by lookups */

static void text(FILE *f, const char *s)
{
	for (; *s; s++) {
		if (*s == '<' || *s == '>' || *s == '&' || *s == '"')
			fprintf(f, "&#%d;", *s);
		else
			fputc(*s, f);
	}
}

static void bars(const struct plan_result *r, FILE *f)
{
	const struct plan_problem *p = r->p;

	fprintf(f, "<h2>Devices</h2><svg width=\"760\" height=\"%u\">\n", 24 * p->ndevices + 10);
	for (uint32_t d = 0; d < p->ndevices; d++) {
		const struct plan_load *l = &r->s->load[d];
		double to = 500 / r->s->objective, x = 130, hz = p->devices[d].clock_hz;
		double part[3] = { fmax(l->warm_s, l->drive_s), l->cold_s,
			l->total_s - fmax(l->warm_s, l->drive_s) - l->cold_s };
		static const char *const fill[3] = { "#4477aa", "#ee6677", "#ccbb44" };

		fprintf(f, "<text x=\"0\" y=\"%u\">", 24 * d + 17);
		text(f, p->devices[d].name);
		fprintf(f, "</text>");
		for (int i = 0; i < 3; i++) {
			fprintf(f, "<rect x=\"%.1f\" y=\"%u\" width=\"%.1f\" height=\"18\" fill=\"%s\"/>", x,
				24 * d + 4, part[i] * to, fill[i]);
			x += part[i] * to;
		}
		fprintf(f, "<text x=\"%.1f\" y=\"%u\">%.1f us (dense %.1f)</text>\n", x + 5, 24 * d + 17,
			l->total_s * 1e6, l->dense_cycles / hz * 1e6);
	}
	fprintf(f, "</svg><p>Blue: lookups of tables without cold rows, or the drive if that takes longer; "
		"red: lookups after the wait for the drive; yellow: dense part, copies and submission.</p>\n");
}

static void alternatives(const struct plan_result *r, FILE *f)
{
	fprintf(f, "<h2>Alternatives</h2><table><tr><th>plan<th>us a batch<th>times this</tr>\n"
		"<tr><td>this<td>%.1f<td>1</tr>\n<tr><td>bound<td>%.1f<td>%.4f</tr>\n",
		r->s->objective * 1e6, r->cert->bound * 1e6, r->cert->bound / r->s->objective);
	for (int b = 1; b < PLAN_SOLVERS; b++) {
		fprintf(f, "<tr><td>%s", plan_solver_names[b]);
		if (isfinite(r->baseline[b]))
			fprintf(f, "<td>%.1f<td>%.2f</tr>\n", r->baseline[b] * 1e6,
				r->baseline[b] / r->s->objective);
		else
			fprintf(f, "<td colspan=\"2\">does not fit</tr>\n");
	}
	fprintf(f, "</table>\n");
}

static void curve(const struct plan_result *r, uint32_t t, FILE *f)
{
	const struct plan_table *tab = &r->p->tables[t];
	const struct plan_choice *c = &r->p->choices[t][r->s->choice[t]];
	double end = log1p(tab->nrows);

	fprintf(f, "<figure><svg width=\"220\" height=\"130\"><rect x=\"10\" y=\"5\" width=\"200\" height=\"100\" fill=\"#f4f4f4\"/>");
	fprintf(f, "<rect x=\"10\" y=\"5\" width=\"%.1f\" height=\"100\" fill=\"#cfe0f0\"/>",
		200 * log1p(c->hot) / end);
	if (c->tt >= 0) {
		const struct plan_tt *tt = &tab->tts[c->tt];

		fprintf(f, "<rect x=\"%.1f\" y=\"5\" width=\"%.1f\" height=\"100\" fill=\"#d5ecd0\"/>",
			10 + 200 * log1p(tt->first) / end,
			200 * (log1p((double)tt->first + tt->count) - log1p(tt->first)) / end);
	}
	fprintf(f, "<polyline fill=\"none\" stroke=\"#223\" points=\"");
	for (uint32_t i = 0; i < tab->ncurve; i++)
		fprintf(f, "%.1f,%.1f ", 10 + 200 * log1p(tab->k[i]) / end, 105 - 100 * tab->share[i]);
	fprintf(f, "\"/><text x=\"10\" y=\"122\">");
	text(f, tab->name);
	fprintf(f, ": %u of %u hot, ", c->hot, tab->nrows);
	text(f, r->p->devices[r->s->device[t]].name);
	fprintf(f, "</text></svg></figure>\n");
}

int plan_html(const struct plan_result *r, const char *path, struct csm_err *err)
{
	const struct plan_problem *p = r->p;
	FILE *f = fopen(path, "we");
	uint32_t drawn = 0;
	double last = INFINITY;
	uint32_t last_t = 0;
	int bad;

	if (!f)
		return csm_fail(err, -errno, "%s: %s", path, strerror(errno));
	fprintf(f, "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>csrec plan</title><style>"
		"body{font:14px sans-serif;margin:2em}svg text{font-size:11px}figure{display:inline-block;margin:4px}"
		"td,th{text-align:left;padding:2px 12px 2px 0}</style></head><body>\n<h1>Plan of %u tables on %u devices</h1>\n"
		"<p>%.1f us a batch of %u, bound %.1f us, gap %.4f %%, by %s. Cycles: ", p->ntables,
		p->ndevices, r->s->objective * 1e6, p->batch, r->cert->bound * 1e6, r->cert->gap * 100,
		plan_solver_names[r->solver]);
	text(f, p->cost.origin);
	fprintf(f, "</p>\n");
	bars(r, f);
	alternatives(r, f);
	fprintf(f, "<h2>Access curves</h2><p>Share of accesses over rows (logarithmic), most wanted first. Blue: in DRAM; "
		"green: TT; the rest on the drive. The %u tables with most lookups of %u.</p>\n",
		p->ntables < CURVES ? p->ntables : CURVES, p->ntables);
	while (drawn < CURVES && drawn < p->ntables) {
		uint32_t best = UINT32_MAX;

		for (uint32_t t = 0; t < p->ntables; t++) {
			double y = p->tables[t].pooling;

			if ((y < last || (y == last && t > last_t)) &&
			    (best == UINT32_MAX || y > p->tables[best].pooling))
				best = t;
		}
		if (best == UINT32_MAX)
			break;
		last = p->tables[best].pooling;
		last_t = best;
		drawn++;
		if (!p->tables[best].tt_form)
			curve(r, best, f);
	}
	fprintf(f, "</body></html>\n");
	bad = fflush(f) || ferror(f);
	if (fclose(f) || bad)
		return csm_fail(err, -EIO, "%s: could not be written", path);
	return 0;
}
