// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Scoring on a device, with a stand-in for the device (fake_csrec.h): over random
 * placements, batch sizes, bags and orders of execution, scores have the golden model's
 * bits. Arguments: a scratch folder, then models.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <csrec.h>

#include "csm.h"
#include "fake_csrec.h"
#include "tap.h"

#define N	70	/* samples of a round */

static uint64_t seed = 777;
static const char *folder;

/* nrows rows in TT form, of any values: small ranks, all of dim in the last core. */
static struct csm_table *random_tt(uint32_t dim, uint32_t nrows)
{
	struct csm_table *t = calloc(1, sizeof(*t));
	uint32_t r[4] = { 1, 1 + rnd(&seed) % 3, 1 + rnd(&seed) % 3, 1 };

	*t = (struct csm_table){
		.form = CSM_FORM_TT, .dim = dim, .nrows = nrows, .p = { 2, 3, nrows / 6 + 1 },
		.q = { 1, 1, dim }, .r = { r[1], r[2] },
	};
	for (int k = 0; k < 3; k++) {
		float *core;

		t->core_len[k] = (uint64_t)t->p[k] * r[k] * t->q[k] * r[k + 1];
		core = malloc(t->core_len[k] * 4);
		for (uint64_t i = 0; i < t->core_len[k]; i++)
			core[i] = (float)(int)(rnd(&seed) % 2001 - 1000) / 999;
		t->core[k] = core;
	}
	return t;
}

/* Each table of rows of the model split, in DRAM, or nearly all cold. */
static void random_placement(struct csm_placement *p, const struct csm_model *m)
{
	memset(p, 0, sizeof(*p));
	p->tables = calloc(m->ntables + 1, sizeof(*p->tables));
	p->ntables = m->ntables;
	p->block = 512u << rnd(&seed) % 4;
	p->cold_off = rnd(&seed) % 4 * p->block;
	for (uint32_t t = 0; t < m->ntables; t++) {
		struct csm_place *pl = &p->tables[t];
		uint32_t n = m->tables[t].nrows;

		pl->tier = m->tables[t].form == CSM_FORM_TT ? CSM_TIER_TT :
			   n > 1 && rnd(&seed) % 3 ? CSM_TIER_SPLIT : CSM_TIER_DRAM;
		if (pl->tier != CSM_TIER_SPLIT)
			continue;
		pl->nhot = rnd(&seed) % n;
		pl->ids = malloc(n * sizeof(*pl->ids));
		if (rnd(&seed) % 2) {
			pl->ntt = 1 + rnd(&seed) % (n - pl->nhot);
			pl->tt = random_tt(m->tables[t].dim, pl->ntt);
		}
		for (uint32_t i = 0; i < pl->nhot + pl->ntt; i++)
			pl->ids[i] = n - 1 - i;
		if (csm_has_cold(pl, &m->tables[t])) {
			p->ncold++;
			/* a sample takes three ids at most, twice */
			pl->slots = 6 + rnd(&seed) % 6;
		}
	}
}

static void free_placement(struct csm_placement *p)
{
	for (uint32_t t = 0; t < p->ntables; t++) {
		for (int k = 0; p->tables[t].tt && k < 3; k++)
			free((void *)p->tables[t].tt->core[k]);
		free((void *)p->tables[t].tt);
	}
	csm_placement_free(p);
}

struct input {
	float *dense;
	struct csm_bags *bags;
};

static void random_input(struct input *in, const struct csm_model *m, uint32_t max)
{
	in->dense = calloc(N, m->ndense * sizeof(float));
	in->bags = calloc(m->nemb + 1, sizeof(*in->bags));
	for (uint32_t i = 0; i < N * m->ndense; i++)
		in->dense[i] = (float)(rnd(&seed) % 10000) / 1000;
	for (uint32_t k = 0; k < m->nnodes; k++) {
		const struct csm_node *n = &m->nodes[k];
		struct csm_bags *b = &in->bags[n->emb];

		if (n->op != CSM_OP_EMB)
			continue;
		b->offsets = calloc(N + 1, 4);
		b->ids = calloc(N * max + 1, 4);
		for (uint32_t i = 0; i < N; i++) {
			uint32_t count = max == 1 ? 1 : rnd(&seed) % (max + 1);

			for (uint32_t j = 0; j < count; j++)
				b->ids[b->offsets[i] + j] = rnd(&seed) % m->tables[n->param].nrows;
			b->offsets[i + 1] = b->offsets[i] + count;
		}
	}
}

static void free_input(struct input *in, const struct csm_model *m)
{
	for (uint32_t e = 0; e < m->nemb; e++) {
		free(in->bags[e].ids);
		free(in->bags[e].offsets);
	}
	free(in->bags);
	free(in->dense);
}

struct rig {
	struct csm_placement p;
	struct csm_remap r;
	struct csm_extent x;
	struct csm_device *d;
	int fd;
};

static int rig_open(struct rig *g, const struct csm_model *m, uint32_t batch, uint32_t max,
		    bool as_file, struct csm_err *err)
{
	struct csm_device_opts o = {
		.batch = batch, .cold_fd = -1, .max_ids = max, .cold_is_file = as_file,
	};
	char path[4096];
	int ret;

	memset(&g->x, 0, sizeof(g->x));
	g->d = NULL;
	snprintf(path, sizeof(path), "%s/cold", folder);
	unlink(path);
	g->fd = open(path, O_RDWR | O_CREAT, 0600);
	ret = csm_remap_init(&g->r, m, &g->p, err);
	if (!ret && g->p.ncold) {
		ret = csm_extent_install(g->fd, path, m, &g->p, &g->r, false, err);
		if (!ret)
			ret = csm_extent_open(&g->x, g->fd, path, m, &g->p, &g->r, err);
		o.cold_fd = g->fd;
	}
	o.extent = &g->x;
	return ret ? ret : csm_device_create(&g->d, fake_open(), m, &g->r, &o, err);
}

static void rig_close(struct rig *g)
{
	csm_device_destroy(g->d);
	csm_extent_free(&g->x);
	csm_remap_free(&g->r);
	free_placement(&g->p);
	close(g->fd);
}

/* Samples whose bits differ, or -1. as_file: cold rows by ordinary reads. */
static int round_trip(const struct csm_model *m, uint32_t batch, uint32_t max, bool as_file,
		      struct csm_totals *totals, struct csm_err *err)
{
	uint32_t width = m->buffers[m->output].width;
	float *out = calloc(N, width * 4), *want = calloc(N, width * 4);
	struct input in;
	struct rig g;
	int bad = -1;

	random_placement(&g.p, m);
	random_input(&in, m, max);
	if (rig_open(&g, m, batch, max, as_file, err))
		goto out;
	if (!csm_golden_score(m, &g.p, in.dense, in.bags, N, want, err) &&
	    !csm_device_score(g.d, in.dense, in.bags, N, out, err)) {
		bad = 0;
		for (uint32_t i = 0; i < N; i++)
			bad += !!memcmp(out + i * width, want + i * width, width * 4);
		*totals = *csm_device_totals(g.d);
	}
out:
	rig_close(&g);
	free_input(&in, m);
	free(out);
	free(want);
	return bad;
}

static void model_rounds(const char *path)
{
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	struct csm_totals t = { }, sum = { };
	struct csm_err err = { "" };
	int bad = 0, i, rounds;
	struct csm_model m;
	uint64_t n = 0;

	if (!tap(!csm_model_load(&m, path, &err), "%s loads", name)) {
		printf("# %s\n", err.msg);
		return;
	}
	fake = (struct fake){ .seed = 5, .queue_entries = 4096, .cap_dim = 256 };
	/* with few tables a placement tries little at once */
	rounds = m.ntables < 20 ? 60 : 12;
	for (i = 0; i < rounds && !bad; i++) {
		bad = round_trip(&m, 1 + rnd(&seed) % N, i % 2 ? 3 : 1, i % 4 == 3, &t, &err);
		sum.batches += t.batches;
		sum.split += t.split;
		sum.rows_dram += t.rows_dram;
		sum.rows_tt += t.rows_tt;
		sum.rows_nvme += t.rows_nvme;
		sum.p2p_bytes += t.p2p_bytes;
		sum.bounce_bytes += t.bounce_bytes;
		n += N;
	}
	if (!tap(!bad, "%s: %llu samples in the worst orders have the golden bits", name,
		 (unsigned long long)n))
		printf("# round %d: %d differ; %s\n", i, bad, err.msg);
	tap(sum.batches == fake.submits && fake.irqs == fake.submits,
	    "%s: one submission and one interrupt a batch", name);
	if (!tap(sum.rows_dram && sum.rows_nvme && sum.p2p_bytes && sum.bounce_bytes && sum.split,
		 "%s: DRAM, drive, file and cut batches took part", name))
		printf("# %llu, %llu rows, %llu, %llu bytes, %llu cuts\n",
		       (unsigned long long)sum.rows_dram, (unsigned long long)sum.rows_nvme,
		       (unsigned long long)sum.p2p_bytes, (unsigned long long)sum.bounce_bytes,
		       (unsigned long long)sum.split);
	tap(fake.p2p_bytes == sum.p2p_bytes && fake.waits && fake.early,
	    "%s: lookups without cold rows went ahead of the drive", name);
	tap(!fake.live, "%s: everything was freed", name);

	fake.broken_fences = true;
	for (i = 0, bad = 0; i < 4; i++)
		bad += round_trip(&m, 16, 1, false, &t, &err);
	tap(bad > 0, "%s: without fences the stand-in gives other bits", name);
	csm_model_free(&m);
}

static void failures(const char *path)
{
	struct csm_totals t;
	struct csm_err err;
	struct csm_model m;

	if (csm_model_load(&m, path, &err)) {
		tap(false, "%s", err.msg);
		return;
	}
	fake = (struct fake){ .seed = 5, .queue_entries = 4096, .cap_dim = 256, .fail_p2p = 2 };
	tap(round_trip(&m, 16, 1, false, &t, &err) == -1 && strstr(err.msg, "drive error"),
	    "a drive error ends scoring and leaves nothing waiting");
	fake.fail_p2p = 0;
	fake.fail_cmd = 40;
	tap(round_trip(&m, 16, 1, false, &t, &err) == -1 && strstr(err.msg, "status 14"),
	    "a refused command is told");
	fake.fail_cmd = 0;
	fake.fail_submit = 2;
	tap(round_trip(&m, 16, 1, false, &t, &err) == -1 && strstr(err.msg, "submitting: fake: submit"),
	    "a failed submission is told");
	fake.fail_submit = 0;
	fake.queue_entries = 8;
	tap(round_trip(&m, 16, 1, false, &t, &err) == -1 && strstr(err.msg, "queues hold 8"),
	    "queues too small for the graph are told");
	fake.queue_entries = 4096;
	fake.cap_dim = 8;
	tap(round_trip(&m, 16, 1, false, &t, &err) == -1 && strstr(err.msg, "larger than this device's 8"),
	    "rows too wide for the device are told");
	tap(!fake.live, "everything was freed each time");
	csm_model_free(&m);
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: test_run FOLDER MODEL...\n");
		return 2;
	}
	folder = argv[1];
	for (int i = 2; i < argc; i++)
		model_rounds(argv[i]);
	failures(argv[2]);
	return tap_done();
}
