/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A model container in memory that tests damage: find a section, change it, and
 * reseal() so that only the change is wrong and not the checksums.
 */
#ifndef IMAGE_H
#define IMAGE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "csm.h"
#include "format.h"

struct image {
	uint8_t *data;
	size_t size;
};

static inline struct csm_hdr *img_hdr(struct image *im)
{
	return (struct csm_hdr *)im->data;
}

static inline struct csm_dirent *img_dir(struct image *im)
{
	return (struct csm_dirent *)(im->data + img_hdr(im)->dir_off);
}

static inline struct csm_dirent *img_find(struct image *im, uint32_t type, uint32_t index)
{
	struct csm_dirent *d = img_dir(im);

	for (uint32_t i = 0; i < img_hdr(im)->nsections; i++, d++)
		if (d->type == type && d->index == index)
			return d;
	abort();
}

static inline void *img_data(struct image *im, uint32_t type, uint32_t index)
{
	return im->data + img_find(im, type, index)->off;
}

static inline void img_seal_header(struct image *im)
{
	struct csm_hdr *h = img_hdr(im);

	h->crc = 0;
	h->crc = csm_crc32c(0, im->data, CSM_PAGE);
}

/* Right checksums wherever header and directory still point into the file. */
static inline void img_seal(struct image *im)
{
	struct csm_hdr *h = img_hdr(im);

	if (h->dir_off <= im->size && h->dir_off % 8 == 0 &&
	    h->nsections <= (im->size - h->dir_off) / sizeof(struct csm_dirent)) {
		struct csm_dirent *d = img_dir(im);

		for (uint32_t i = 0; i < h->nsections; i++)
			if (d[i].off <= im->size && d[i].size <= im->size - d[i].off)
				d[i].crc = csm_crc32c(0, im->data + d[i].off, d[i].size);
		h->dir_crc = csm_crc32c(0, d, h->nsections * sizeof(*d));
	}
	img_seal_header(im);
}

static inline struct image img_load(const char *path)
{
	struct image im = { };
	FILE *f = fopen(path, "rb");

	if (!f || fseek(f, 0, SEEK_END)) {
		perror(path);
		exit(2);
	}
	im.size = ftell(f);
	rewind(f);
	im.data = aligned_alloc(CSM_PAGE, (im.size + CSM_PAGE) / CSM_PAGE * CSM_PAGE);
	if (!im.data || fread(im.data, 1, im.size, f) != im.size) {
		perror(path);
		exit(2);
	}
	fclose(f);
	return im;
}

/* A copy with nothing behind its last byte, so that a sanitizer sees overruns. */
static inline struct image img_copy(const struct image *im)
{
	struct image c = { .size = im->size };

	if (posix_memalign((void **)&c.data, 64, c.size ? c.size : 1))
		abort();
	memcpy(c.data, im->data, c.size);
	return c;
}

#endif
