// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Cores as FBTT-Embedding keeps them, in an .npz (a zip file of stored .npy files): core k is
 * tt_cores.k, float32 [1][p_k][r_k * q_k * r_{k+1}], the 1 being its number of tables. Zip's and .npy's
 * fields: PKWARE APPNOTE 6.3, numpy's format.py.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "tt.h"

#define NPY		128		/* bytes before the data, as written here */
#define SIZE_MOST	(1ull << 31)	/* of a member and of a file: no zip64 */

struct __attribute__((packed)) local {
	uint32_t magic;			/* "PK\3\4" */
	uint16_t version, flags, method, time, date;
	uint32_t crc, packed, size;
	uint16_t name_len, extra_len;
};

struct __attribute__((packed)) central {
	uint32_t magic;			/* "PK\1\2" */
	uint16_t made_by, version, flags, method, time, date;
	uint32_t crc, packed, size;
	uint16_t name_len, extra_len, comment_len, disk, attr;
	uint32_t ext_attr, off;
};

struct __attribute__((packed)) end {
	uint32_t magic;			/* "PK\5\6" */
	uint16_t disk, dir_disk, here, n;
	uint32_t size, off;
	uint16_t comment_len;
};

#define LOCAL	0x04034b50u
#define CENTRAL	0x02014b50u
#define END	0x06054b50u
#define Y1980	0x21		/* January 1st: the same cores make the same file */

static void npy_header(char *h, uint64_t p, uint64_t slice)
{
	int n;

	memset(h, ' ', NPY);
	memcpy(h, "\x93NUMPY\1\0\x76\0", 10);
	n = snprintf(h + 10, NPY - 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, %llu, %llu), }",
		     (unsigned long long)p, (unsigned long long)slice);
	h[10 + n] = ' ';
	h[NPY - 1] = '\n';
}

int tt_export(const struct tt_shape *s, const float *const *cores, const char *path,
	      struct csm_err *err)
{
	struct central dir[TT_MAX];
	uint64_t at = 0;
	char *temp;
	FILE *f;
	int fd, ret = tt_check(s, 1, tt_dim(s), err);

	if (ret)
		return ret;
	if (tt_bytes(s) > SIZE_MOST)
		return csm_fail(err, -EFBIG, "%s: cores of more than 2 GiB", path);
	fd = csm_temp_open(path, &temp, err);
	if (fd < 0)
		return fd;
	f = fdopen(fd, "w");
	if (!f) {
		close(fd);
		unlink(temp);
		free(temp);
		return csm_fail(err, -ENOMEM, "out of memory");
	}
	for (uint32_t k = 0; k < s->d; k++) {
		uint64_t len = tt_core_len(s, k) * 4;
		char head[NPY], name[16];
		struct local l = {
			.magic = LOCAL, .version = 20, .date = Y1980, .packed = NPY + len,
			.size = NPY + len,
			.name_len = snprintf(name, sizeof(name), "tt_cores.%u.npy", k),
		};

		npy_header(head, s->p[k], tt_core_len(s, k) / s->p[k]);
		l.crc = crc32_z(crc32_z(0, (const Bytef *)head, NPY), (const Bytef *)cores[k], len);
		dir[k] = (struct central){
			.magic = CENTRAL, .made_by = 20, .version = 20, .date = Y1980, .crc = l.crc,
			.packed = l.packed, .size = l.size, .name_len = l.name_len, .off = at,
		};
		fwrite(&l, sizeof(l), 1, f);
		fwrite(name, 1, l.name_len, f);
		fwrite(head, 1, NPY, f);
		fwrite(cores[k], 1, len, f);
		at += sizeof(l) + l.name_len + NPY + len;
	}
	struct end end = { .magic = END, .here = s->d, .n = s->d, .off = at };

	for (uint32_t k = 0; k < s->d; k++) {
		fwrite(&dir[k], sizeof(dir[k]), 1, f);
		fprintf(f, "tt_cores.%u.npy", k);
		end.size += sizeof(dir[k]) + dir[k].name_len;
	}
	fwrite(&end, sizeof(end), 1, f);
	if (fflush(f) || ferror(f) || fsync(fileno(f)))
		ret = csm_fail(err, -EIO, "%s: %s", path, strerror(errno));
	fclose(f);
	if (!ret && rename(temp, path))
		ret = csm_fail(err, -errno, "%s: %s", path, strerror(errno));
	if (ret)
		unlink(temp);
	free(temp);
	return ret;
}

/* The data of a member and its two dimensions after the 1. */
static int npy_parse(const char *path, uint32_t k, const uint8_t *at, uint64_t size, uint64_t *p,
		     uint64_t *slice, const uint8_t **data, struct csm_err *err)
{
	unsigned long long a, b;
	char text[257], *shape;
	uint32_t len;

	if (size < 10 || memcmp(at, "\x93NUMPY\1", 7))
		return csm_fail(err, -EBADMSG, "%s: tt_cores.%u: no .npy file of version 1", path, k);
	len = at[8] | at[9] << 8;
	if (len > size - 10 || len >= sizeof(text))
		return csm_fail(err, -EBADMSG, "%s: tt_cores.%u: its header has %u bytes", path, k, len);
	memcpy(text, at + 10, len);
	text[len] = 0;
	shape = strstr(text, "'shape': (1, ");
	if (!strstr(text, "'descr': '<f4'") || !strstr(text, "'fortran_order': False") || !shape ||
	    sscanf(shape, "'shape': (1, %10llu, %10llu)", &a, &b) != 2)
		return csm_fail(err, -EINVAL, "%s: tt_cores.%u: is not float32 [1, p, r q r'] in C order",
				path, k);
	if (!a || !b || a > UINT32_MAX || b > UINT32_MAX || (size - 10 - len) % 4 ||
	    (size - 10 - len) / 4 / a != b || (size - 10 - len) / 4 % a)
		return csm_fail(err, -EBADMSG, "%s: tt_cores.%u: [1, %llu, %llu] in %llu bytes", path, k, a,
				b, (unsigned long long)(size - 10 - len));
	*p = a;
	*slice = b;
	*data = at + 10 + len;
	return 0;
}

static int parse(struct tt_shape *s, const char *path, const uint8_t *file, uint64_t size,
		 float **cores, struct csm_err *err)
{
	struct end e;
	uint64_t at;

	if (size < sizeof(e))
		return csm_fail(err, -EBADMSG, "%s: %llu bytes are no .npz", path, (unsigned long long)size);
	memcpy(&e, file + size - sizeof(e), sizeof(e));
	if (e.magic != END || e.comment_len || e.off > size || e.size > size - e.off)
		return csm_fail(err, -EBADMSG, "%s: does not end as a zip file without comment", path);
	if (e.n != s->d)
		return csm_fail(err, -EINVAL, "%s: has %u arrays, not a core for each of %u q", path, e.n,
				s->d);
	s->r[0] = 1;
	at = e.off;
	for (uint32_t i = 0; i < e.n; i++) {
		uint64_t p = 0, slice = 0, off, left;
		const uint8_t *data = NULL;
		struct central c;
		struct local l;
		uint32_t k;
		int ret;

		if (size - at < sizeof(c))
			return csm_fail(err, -EBADMSG, "%s: byte %llu: directory ends early", path,
					(unsigned long long)at);
		memcpy(&c, file + at, sizeof(c));
		left = size - at - sizeof(c);
		if (c.magic != CENTRAL || left < (uint64_t)c.name_len + c.extra_len + c.comment_len)
			return csm_fail(err, -EBADMSG, "%s: byte %llu: no directory entry", path,
					(unsigned long long)at);
		k = c.name_len == 14 ? file[at + sizeof(c) + 9] - '0' : TT_MAX;
		if (k >= e.n || memcmp(file + at + sizeof(c), "tt_cores.", 9) ||
		    memcmp(file + at + sizeof(c) + 10, ".npy", 4))
			return csm_fail(err, -EINVAL, "%s: byte %llu: arrays must be tt_cores.0 to .%u", path,
					(unsigned long long)at, e.n - 1);
		/* cores are read in their order: ranks follow from those before */
		if (k != i)
			return csm_fail(err, -EINVAL, "%s: tt_cores.%u comes where .%u should", path, k, i);
		at += sizeof(c) + c.name_len + c.extra_len + c.comment_len;
		if (c.method || c.flags & 1 || c.packed != c.size)
			return csm_fail(err, -EINVAL, "%s: tt_cores.%u is compressed", path, k);
		if (c.off > size || size - c.off < sizeof(l))
			return csm_fail(err, -EBADMSG, "%s: tt_cores.%u lies beyond the file", path, k);
		memcpy(&l, file + c.off, sizeof(l));
		off = (uint64_t)c.off + sizeof(l) + l.name_len + l.extra_len;
		if (l.magic != LOCAL || off > size || c.size > size - off)
			return csm_fail(err, -EBADMSG, "%s: tt_cores.%u lies beyond the file", path, k);
		if (crc32_z(0, file + off, c.size) != c.crc)
			return csm_fail(err, -EBADMSG, "%s: tt_cores.%u: its CRC is wrong", path, k);
		ret = npy_parse(path, k, file + off, c.size, &p, &slice, &data, err);
		if (ret)
			return ret;
		if (slice % ((uint64_t)s->r[k] * s->q[k]))
			return csm_fail(err, -EINVAL, "%s: tt_cores.%u: %llu elements are no multiple of rank %u times q %u",
					path, k, (unsigned long long)slice, s->r[k], s->q[k]);
		s->p[k] = p;
		s->r[k + 1] = slice / ((uint64_t)s->r[k] * s->q[k]);
		if (!s->r[k + 1] || s->r[k + 1] > TT_RANK_MAX)
			return csm_fail(err, -EINVAL, "%s: tt_cores.%u: rank %u", path, k, s->r[k + 1]);
		cores[k] = malloc(p * slice * 4);
		if (!cores[k])
			return csm_fail(err, -ENOMEM, "out of memory");
		memcpy(cores[k], data, p * slice * 4);
		for (uint64_t x = 0; x < p * slice; x++)
			if (!__builtin_isfinite(cores[k][x]))
				return csm_fail(err, -EINVAL, "%s: tt_cores.%u: element %llu is not finite", path,
						k, (unsigned long long)x);
	}
	if (s->r[s->d] != 1)
		return csm_fail(err, -EINVAL, "%s: tt_cores.%u: its last rank is %u, not 1", path, s->d - 1,
				s->r[s->d]);
	return tt_check(s, 1, tt_dim(s), err);
}

int tt_import(struct tt_shape *s, const char *path, float **cores, struct csm_err *err)
{
	struct stat st;
	int fd, ret = 0;
	void *map;

	memset(cores, 0, TT_MAX * sizeof(*cores));
	if (s->d < 2 || s->d > TT_MAX)
		return csm_fail(err, -EINVAL, "%u cores: there may be 2 to %d", s->d, TT_MAX);
	for (uint32_t k = 0; k < s->d; k++)
		if (!s->q[k] || s->q[k] > TT_DIM_MAX)
			return csm_fail(err, -EINVAL, "q%u is %u", k, s->q[k]);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return csm_fail(err, -errno, "%s: %s", path, strerror(errno));
	if (fstat(fd, &st))
		ret = csm_fail(err, -errno, "%s: %s", path, strerror(errno));
	else if (!S_ISREG(st.st_mode) || !st.st_size)
		ret = csm_fail(err, -EBADMSG, "%s: is empty or no file", path);
	map = ret ? MAP_FAILED : mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (!ret && map == MAP_FAILED)
		ret = csm_fail(err, -errno, "%s: %s", path, strerror(errno));
	close(fd);
	if (ret)
		return ret;
	ret = parse(s, path, map, st.st_size, cores, err);
	munmap(map, st.st_size);
	if (ret)
		tt_free(cores);
	return ret;
}
