// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Damages models, placements and click logs at random and reads them; the sanitizers
 * judge. Checksums are made right again in half the cases, so that the damage reaches
 * the parts behind them. The same seed does the same.
 *
 *   fuzz MODEL PLACEMENT TSV [ROUNDS [SEED]]
 */
#include "image.h"
#include "tap.h"

static uint64_t seed = 42;

static uint64_t pick(uint64_t n)
{
	return n ? rnd(&seed) % n : 0;
}

static void damage(uint8_t *p, size_t n)
{
	static const uint32_t hot[] = {
		0, 1, 2, 0x7f, 0xff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 4096, 65536,
	};

	if (!n)
		return;
	for (uint64_t k = 1 + pick(4); k; k--) {
		size_t at = pick(n);
		uint32_t v = hot[pick(sizeof(hot) / sizeof(hot[0]))];

		switch (pick(4)) {
		case 0:
			p[at] ^= 1 << pick(8);
			break;
		case 1:
			p[at] = pick(256);
			break;
		case 2:
			p[at] = v;
			break;
		default:
			at -= at % 4;
			if (n - at >= 4)
				memcpy(p + at, &v, 4);
		}
	}
}

/* Header, directory and records; the bulk of the file has nothing to misread. */
static const uint32_t parsed[] = {
	CSM_SEC_TABLES, CSM_SEC_LAYERS, CSM_SEC_BUFFERS, CSM_SEC_NODES, CSM_SEC_INPUT,
};

static uint64_t models(const struct image *good, uint64_t rounds)
{
	uint64_t loaded = 0;

	for (uint64_t i = 0; i < rounds; i++) {
		struct image c = img_copy(good);
		uint64_t where = pick(8);
		struct csm_err err;
		struct csm_model m;

		if (where == 0) {
			damage(c.data, sizeof(struct csm_hdr));
		} else if (where < 3) {
			damage((uint8_t *)img_dir(&c), img_hdr(&c)->nsections * sizeof(struct csm_dirent));
		} else if (where == 3) {
			struct csm_dirent *d = img_find(&c, CSM_SEC_ORDER, 3);

			damage(c.data + d->off, d->size);
		} else {
			struct csm_dirent *d = img_find(&c, parsed[pick(5)], 0);

			damage(c.data + d->off, d->size);
		}
		if (pick(16) == 0)
			c.size = pick(c.size);
		if (c.size >= CSM_PAGE && pick(8)) {
			if (pick(4))
				img_hdr(&c)->file_size = c.size;
			img_seal(&c);
		}
		if (c.size != good->size) {	/* nothing behind the last byte */
			struct image cut = img_copy(&c);

			free(c.data);
			c = cut;
		}
		if (!csm_model_parse(&m, c.data, c.size, &err)) {
			loaded++;
			csm_model_free(&m);
		}
		free(c.data);
	}
	return loaded;
}

static uint64_t placements(const struct image *good, const struct csm_model *m, uint64_t rounds)
{
	static const char *const bits[] = { "{", "}", "[", "]", ",", ":", "\"", "-1", "1e999", "null",
		"99999999999999999999", "\"C4\"", "\"hot\"", "\"ids\"", "true", "\\u0000" };
	uint64_t loaded = 0;

	for (uint64_t i = 0; i < rounds; i++) {
		struct image c = img_copy(good);
		struct csm_placement p;
		struct csm_remap r;
		struct csm_err err;

		if (pick(2)) {
			const char *b = bits[pick(sizeof(bits) / sizeof(bits[0]))];
			size_t at = pick(c.size - strlen(b));

			memcpy(c.data + at, b, strlen(b));
		} else if (pick(2)) {	/* another digit: mostly still JSON */
			for (int k = 0; k < 50; k++) {
				size_t at = pick(c.size);

				if (c.data[at] >= '0' && c.data[at] <= '9') {
					c.data[at] = '0' + pick(10);
					break;
				}
			}
		} else {
			damage(c.data, c.size);
		}
		if (pick(10) == 0)
			c.size = pick(c.size);
		if (!csm_placement_parse(&p, (char *)c.data, c.size, ".", m, &err)) {
			if (!csm_remap_init(&r, m, &p, &err)) {
				loaded++;
				csm_remap_free(&r);
			}
			csm_placement_free(&p);
		}
		free(c.data);
	}
	return loaded;
}

static uint64_t clicks(const struct image *good, uint64_t rounds)
{
	uint64_t lines = 0;
	size_t most = good->size < 20000 ? good->size : 20000;

	for (uint64_t i = 0; i < rounds; i++) {
		struct image part = { good->data, 1 + pick(most) };
		struct image c = img_copy(&part);
		struct csm_tsv t = { };
		struct csm_err err;
		struct csm_click k;

		damage(c.data, c.size);
		t.f = fmemopen(c.data, c.size, "r");
		while (csm_tsv_next(&t, &k, &err) == 1)
			lines++;
		fclose(t.f);
		free(c.data);
	}
	return lines;
}

int main(int argc, char **argv)
{
	struct image model, placement, tsv;
	uint64_t rounds = 2000, n;
	struct csm_err err;
	struct csm_model m;

	if (argc < 4) {
		fprintf(stderr, "usage: fuzz MODEL PLACEMENT TSV [ROUNDS [SEED]]\n");
		return 2;
	}
	if (argc > 4)
		rounds = strtoull(argv[4], NULL, 0);
	if (argc > 5)
		seed = strtoull(argv[5], NULL, 0) | 1;
	model = img_load(argv[1]);
	placement = img_load(argv[2]);
	tsv = img_load(argv[3]);
	if (csm_model_parse(&m, model.data, model.size, &err)) {
		printf("Bail out! %s\n", err.msg);
		return 1;
	}
	n = models(&model, rounds);
	tap(n < rounds, "%llu damaged models read without harm, %llu of them still sound",
	    (unsigned long long)rounds, (unsigned long long)n);
	n = placements(&placement, &m, rounds * 4);
	tap(n && n < rounds * 4, "%llu damaged placements read without harm, %llu of them still sound",
	    (unsigned long long)rounds * 4, (unsigned long long)n);
	n = clicks(&tsv, rounds);
	tap(n, "%llu damaged click logs read without harm, %llu sound lines in them",
	    (unsigned long long)rounds, (unsigned long long)n);
	csm_model_free(&m);
	free(model.data);
	free(placement.data);
	free(tsv.data);
	return tap_done();
}
