// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Writes model containers (FORMAT.md) as a stream: header page left free, sections, then
 * the directory, which is known only then, and the header last.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "csm.h"
#include "format.h"

#define ROOM	(1u << 20)

struct csm_writer {
	char *path, *temp;
	int fd;
	struct csm_dirent *dir;
	uint32_t n, room;
	bool open;			/* a section is */
	uint64_t at;			/* file offset of the buffer's first byte */
	size_t fill;
	uint8_t *buf;
};

static int sys_fail(const struct csm_writer *w, struct csm_err *err)
{
	int e = errno;

	return csm_fail(err, -e, "%s: %s", w->path, strerror(e));
}

static int write_all(struct csm_writer *w, const void *data, size_t len, uint64_t off,
		     struct csm_err *err)
{
	const uint8_t *p = data;

	while (len) {
		ssize_t n = pwrite(w->fd, p, len, off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return sys_fail(w, err);
		p += n;
		off += n;
		len -= n;
	}
	return 0;
}

static int flush(struct csm_writer *w, struct csm_err *err)
{
	int ret = write_all(w, w->buf, w->fill, w->at, err);

	w->at += w->fill;
	w->fill = 0;
	return ret;
}

static int put(struct csm_writer *w, const void *data, size_t len, struct csm_err *err)
{
	const uint8_t *p = data;
	int ret = 0;

	while (len && !ret) {
		size_t n = ROOM - w->fill < len ? ROOM - w->fill : len;

		memcpy(w->buf + w->fill, p, n);
		w->fill += n;
		p += n;
		len -= n;
		if (w->fill == ROOM)
			ret = flush(w, err);
	}
	return ret;
}

/* Zeros up to the next page. */
static int pad(struct csm_writer *w, struct csm_err *err)
{
	static const uint8_t zero[CSM_PAGE];
	size_t over = (w->at + w->fill) % CSM_PAGE;

	return over ? put(w, zero, CSM_PAGE - over, err) : 0;
}

struct csm_writer *csm_writer_open(const char *path, struct csm_err *err)
{
	struct csm_writer *w = calloc(1, sizeof(*w));

	if (!w) {
		csm_fail(err, -ENOMEM, "out of memory");
		return NULL;
	}
	w->fd = -1;
	w->path = strdup(path);
	w->buf = malloc(ROOM);
	if (!w->path || !w->buf) {
		csm_fail(err, -ENOMEM, "out of memory");
		goto fail;
	}
	w->fd = csm_temp_open(path, &w->temp, err);
	if (w->fd < 0)
		goto fail;
	w->at = CSM_PAGE;
	return w;
fail:
	csm_writer_abort(w);
	return NULL;
}

int csm_writer_begin(struct csm_writer *w, uint32_t type, uint32_t index, uint32_t flags,
		     const char *name, struct csm_err *err)
{
	struct csm_dirent *d;
	int ret;

	if (w->open)
		return csm_fail(err, -EINVAL, "%s: section %s begins within another", w->path, name);
	for (uint32_t i = 0; i < w->n; i++)
		if (w->dir[i].type == type && w->dir[i].index == index)
			return csm_fail(err, -EINVAL, "%s: a second section %s", w->path, name);
	if (w->n == w->room) {
		uint32_t room = w->room ? 2 * w->room : 64;

		d = realloc(w->dir, room * sizeof(*d));
		if (!d)
			return csm_fail(err, -ENOMEM, "out of memory");
		w->dir = d;
		w->room = room;
	}
	ret = pad(w, err);
	if (ret)
		return ret;
	d = &w->dir[w->n++];
	*d = (struct csm_dirent){
		.type = type, .index = index, .off = w->at + w->fill, .flags = flags,
	};
	memcpy(d->name, name, strnlen(name, sizeof(d->name) - 1));
	w->open = true;
	return 0;
}

int csm_writer_put(struct csm_writer *w, const void *data, size_t len, struct csm_err *err)
{
	struct csm_dirent *d;

	if (!w->open)
		return csm_fail(err, -EINVAL, "%s: data outside of sections", w->path);
	d = &w->dir[w->n - 1];
	d->crc = csm_crc32c(d->crc, data, len);
	d->size += len;
	return put(w, data, len, err);
}

int csm_writer_end(struct csm_writer *w, struct csm_err *err)
{
	if (!w->open || !w->dir[w->n - 1].size)
		return csm_fail(err, -EINVAL, "%s: %s", w->path,
				w->open ? "an empty section" : "no section is open");
	w->open = false;
	return 0;
}

/* The name must last as well as the data. */
static int sync_folder(const struct csm_writer *w, struct csm_err *err)
{
	const char *slash = strrchr(w->path, '/');
	char *folder = slash ? strndup(w->path, slash - w->path + 1) : strdup(".");
	int fd, ret = 0;

	if (!folder)
		return csm_fail(err, -ENOMEM, "out of memory");
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* some file systems cannot do that: EINVAL */
	if (fd < 0 || (fsync(fd) && errno != EINVAL))
		ret = sys_fail(w, err);
	if (fd >= 0)
		close(fd);
	free(folder);
	return ret;
}

int csm_writer_finish(struct csm_writer *w, struct csm_err *err)
{
	struct csm_hdr h = { .major = CSM_MAJOR, .minor = CSM_MINOR, .nsections = w->n };
	uint8_t page[CSM_PAGE] = { 0 };
	int ret;

	if (w->open || !w->n) {
		ret = csm_fail(err, -EINVAL, "%s: %s", w->path,
			       w->open ? "a section is not ended" : "no sections");
		goto out;
	}
	ret = pad(w, err);
	if (ret)
		goto out;
	memcpy(h.magic, CSM_MAGIC, 8);
	h.dir_off = w->at + w->fill;
	h.dir_crc = csm_crc32c(0, w->dir, w->n * sizeof(*w->dir));
	ret = put(w, w->dir, w->n * sizeof(*w->dir), err);
	if (!ret)
		ret = flush(w, err);
	if (ret)
		goto out;
	h.file_size = w->at;
	memcpy(page, &h, sizeof(h));
	h.crc = csm_crc32c(0, page, CSM_PAGE);
	memcpy(page, &h, sizeof(h));
	ret = write_all(w, page, CSM_PAGE, 0, err);
	if (ret)
		goto out;
	if (fsync(w->fd) || rename(w->temp, w->path)) {
		ret = sys_fail(w, err);
		goto out;
	}
	free(w->temp);
	w->temp = NULL;
	ret = sync_folder(w, err);
out:
	csm_writer_abort(w);
	return ret;
}

void csm_writer_abort(struct csm_writer *w)
{
	if (!w)
		return;
	if (w->fd >= 0) {
		close(w->fd);
		if (w->temp)
			unlink(w->temp);
	}
	free(w->path);
	free(w->temp);
	free(w->dir);
	free(w->buf);
	free(w);
}

uint64_t csm_writer_size(const struct csm_writer *w)
{
	return w->at + w->fill;
}
