// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Damages safetensors and npz files at random and converts them; the sanitizers judge. The
 * same seed does the same.
 *
 *   fuzz FILE...     .npz or safetensors; environment: ROUNDS (per file), SEED
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "convert.h"
#include "tap.h"

static uint64_t seed = 42;

static uint64_t pick(uint64_t n)
{
	return n ? rnd(&seed) % n : 0;
}

/* Numbers and words of both formats, over what is there. */
static void damage(uint8_t *p, size_t n)
{
	static const char *const bits[] = { "{", "}", "[", "]", ",", ":", "\"", "-1", "1e9", "null", "F16",
		"BF16", "99999999999999999999", "9223372036854775807", "emb_l.0", "top_l.2", "weight",
		"(", ")", "'<f2'", "True", "PK\1\2", "PK\3\4", "PK\5\6", "PK\6\6" };
	static const uint32_t hot[] = { 0, 1, 8, 0xff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff };

	for (uint64_t k = 1 + pick(3); k && n > 32; k--) {
		const char *b = bits[pick(sizeof(bits) / sizeof(bits[0]))];
		size_t at = pick(n - 24);

		switch (pick(4)) {
		case 0:
			p[at] ^= 1 << pick(8);
			break;
		case 1:
			memcpy(p + at, b, strlen(b));
			break;
		case 2:
			memcpy(p + at, &hot[pick(8)], pick(2) ? 2 : 4);
			break;
		default:		/* another digit: still JSON, other sizes */
			for (size_t i = 0; i < 200 && at + i < n; i++)
				if (p[at + i] >= '0' && p[at + i] <= '9') {
					p[at + i] = '0' + pick(10);
					break;
				}
		}
	}
}

static bool try(const uint8_t *data, size_t size, enum cvt_kind kind, const char *out)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct cvt_result result;
	struct cvt_source s;
	struct cvt_rows rows;
	struct csm_err err;
	char path[64];
	bool good = false;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size || cvt_rows_parse(&rows, "fp32,C2=int8", &err))
		exit(2);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!cvt_open(&s, path, kind, &err)) {
		good = !cvt_convert(&s, NULL, &rows, out, &result, &err);
		cvt_close(&s);
	}
	cvt_rows_free(&rows);
	close(fd);
	return good;
}

int main(int argc, char **argv)
{
	const char *e = getenv("ROUNDS");
	uint64_t rounds = e ? strtoull(e, NULL, 0) : 1500;
	char out[] = "/tmp/fuzz-convert.XXXXXX";
	int tmp = mkstemp(out);

	e = getenv("SEED");
	if (e)
		seed = strtoull(e, NULL, 0) | 1;
	for (int i = 1; i < argc; i++) {
		enum cvt_kind kind = strstr(argv[i], ".npz") ? CVT_NPZ : CVT_SAFETENSORS;
		FILE *f = fopen(argv[i], "rb");
		uint64_t sound = 0;
		size_t size, head;
		uint8_t *good, *bad;
		struct csm_err err;
		struct csm_model m;

		if (!f || fseek(f, 0, SEEK_END))
			return 2;
		size = ftell(f);
		rewind(f);
		good = malloc(size);
		bad = malloc(size);
		if (!good || !bad || fread(good, 1, size, f) != size)
			return 2;
		fclose(f);
		tap(try(good, size, kind, out), "%s: the file itself is sound", strrchr(argv[i], '/') + 1);
		head = kind == CVT_NPZ ? size : 8 + *(const uint64_t *)good;
		for (uint64_t k = 0; k < rounds; k++) {
			size_t n = pick(12) ? size : pick(size);

			memcpy(bad, good, size);
			if (kind == CVT_NPZ && pick(2))	/* the directory is at the end */
				damage(bad + size - 1000, 1000);
			else
				damage(bad, head);
			if (!try(bad, n, kind, out))
				continue;
			sound++;
			/* what it takes for sound must be a sound container */
			if (csm_model_load(&m, out, &err)) {
				tap(false, "round %llu gave a container that does not load: %s",
				    (unsigned long long)k, err.msg);
				continue;
			}
			csm_model_free(&m);
		}
		tap(sound < rounds, "%llu damaged copies read without harm, %llu of them still sound",
		    (unsigned long long)rounds, (unsigned long long)sound);
		free(good);
		free(bad);
	}
	close(tmp);
	unlink(out);
	return tap_done();
}
