// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "csm.h"

int csm_fail(struct csm_err *err, int errnum, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	return errnum;
}

int csm_temp_open(const char *path, char **temp, struct csm_err *err)
{
	struct stat st;
	mode_t mask;
	int fd;

	*temp = NULL;
	if (!stat(path, &st) && !S_ISREG(st.st_mode))
		return csm_fail(err, -EINVAL, "%s: not a regular file", path);
	if (asprintf(temp, "%s.XXXXXX", path) < 0) {
		*temp = NULL;
		return csm_fail(err, -ENOMEM, "out of memory");
	}
	fd = mkostemp(*temp, O_CLOEXEC);
	mask = umask(0);
	umask(mask);
	if (fd < 0 || fchmod(fd, 0666 & ~mask)) {
		int ret = csm_fail(err, -errno, "%s: %s", path, strerror(errno));

		if (fd >= 0) {
			unlink(*temp);
			close(fd);
		}
		free(*temp);
		*temp = NULL;
		return ret;
	}
	return fd;
}

/* Slicing by eight: table k advances a byte that k more bytes follow. */
static uint32_t crc_table[8][256];

__attribute__((constructor)) static void crc_init(void)
{
	for (uint32_t n = 0; n < 256; n++) {
		uint32_t c = n;

		for (int k = 0; k < 8; k++)
			c = (c >> 1) ^ (c & 1 ? 0x82f63b78u : 0);
		crc_table[0][n] = c;
	}
	for (int t = 1; t < 8; t++) {
		for (uint32_t n = 0; n < 256; n++) {
			uint32_t c = crc_table[t - 1][n];

			crc_table[t][n] = (c >> 8) ^ crc_table[0][c & 0xff];
		}
	}
}

uint32_t csm_crc32c(uint32_t crc, const void *data, size_t len)
{
	const uint8_t *p = data;

	crc = ~crc;
	for (; len >= 8; len -= 8, p += 8) {
		uint32_t lo, hi;

		memcpy(&lo, p, 4);
		memcpy(&hi, p + 4, 4);
		lo ^= crc;
		crc = crc_table[7][lo & 0xff] ^ crc_table[6][lo >> 8 & 0xff] ^
		      crc_table[5][lo >> 16 & 0xff] ^ crc_table[4][lo >> 24] ^
		      crc_table[3][hi & 0xff] ^ crc_table[2][hi >> 8 & 0xff] ^
		      crc_table[1][hi >> 16 & 0xff] ^ crc_table[0][hi >> 24];
	}
	while (len--)
		crc = (crc >> 8) ^ crc_table[0][(crc ^ *p++) & 0xff];
	return ~crc;
}

struct ranked {
	float score;
	uint8_t label;
};

static int by_score(const void *a, const void *b)
{
	float x = ((const struct ranked *)a)->score, y = ((const struct ranked *)b)->score;

	return (x > y) - (x < y);
}

double csm_auc(const float *score, const uint8_t *label, size_t n)
{
	struct ranked *v = malloc((n ? n : 1) * sizeof(*v));
	double pairs = 0, clicks = 0, others = 0;

	if (!v)
		return NAN;
	for (size_t i = 0; i < n; i++)
		v[i] = (struct ranked){ score[i], label[i] };
	qsort(v, n, sizeof(*v), by_score);
	for (size_t i = 0; i < n;) {
		double c = 0, o = 0;
		size_t j = i;

		for (; j < n && v[j].score == v[i].score; j++) {
			c += v[j].label;
			o += !v[j].label;
		}
		if (j == i) {		/* a NaN equals nothing: no order, no AUC */
			free(v);
			return NAN;
		}
		pairs += c * (others + o / 2);
		clicks += c;
		others += o;
		i = j;
	}
	free(v);
	return clicks && others ? pairs / (clicks * others) : NAN;
}

double csm_logloss(const float *score, const uint8_t *label, size_t n)
{
	const double least = 1e-15;
	double sum = 0;

	for (size_t i = 0; i < n; i++) {
		double p = score[i];

		p = p < least ? least : p > 1 - least ? 1 - least : p;
		sum -= log(label[i] ? p : 1 - p);
	}
	return sum / (double)n;
}
