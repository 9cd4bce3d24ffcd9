// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Files into device memory. The kernel may let the CPU copy where a direct read is not one
 * of whole blocks that are on the drive: such parts are found first and go through host memory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include "private.h"

typedef unsigned long long ull;

#define EXTENTS		64
#define DIRECT_LEN	(16u << 20)	/* most of one read */

/* Extents whose bytes are not the file's bytes as they lie on the drive. */
#define ODD_EXTENT	(FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC | FIEMAP_EXTENT_ENCODED | \
			 FIEMAP_EXTENT_DATA_ENCRYPTED | FIEMAP_EXTENT_NOT_ALIGNED | \
			 FIEMAP_EXTENT_DATA_INLINE | FIEMAP_EXTENT_DATA_TAIL)

enum kind { WRITTEN, ZEROS, ODD };

struct reader {
	struct csrec_queue *q;
	uint32_t key;
	uint32_t flags;
	int fd;			/* buffered */
	int direct;		/* opened with O_DIRECT, or -1: everything bounces */
	uintptr_t map;		/* where byte 0 of the file would be */
	uint64_t off_align;
	uint64_t mem_align;
	uint64_t pos;
	uint64_t dev_off;	/* of byte pos */
	bool eof;		/* the file has become shorter */
	struct csrec_file_bytes bytes;

	struct fiemap *fm;
	uint32_t next;		/* extent of fm */
};

static void advance(struct reader *r, uint64_t n, uint64_t *count)
{
	r->pos += n;
	r->dev_off += n;
	*count += n;
}

static int reopen(int fd, int flags)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDONLY | O_CLOEXEC | flags);
}

static int fail_read(int err, uint64_t pos)
{
	return csrec_fail(err, "reading the file at byte %llu: %s", (ull)pos, csrec_errno_text(err));
}

static int fail_direct(const struct reader *r)
{
	return csrec_fail(EREMOTEIO,
			  "byte %llu of the file cannot come from the drive directly, and bouncing was excluded",
			  (ull)r->pos);
}

/* Bytes to end through the bounce buffer: the file's, or zeros. */
static int bounce(struct reader *r, uint64_t end, bool zeros)
{
	int ret = csrec_bounce(r->q);

	while (!ret && r->pos < end && !r->eof) {
		uint64_t left = end - r->pos;
		size_t len = left < BOUNCE_LEN ? left : BOUNCE_LEN;
		struct csrec_cmd cmd;
		ssize_t n = len;

		if (zeros)
			memset(r->q->bounce, 0, len);
		else
			n = pread(r->fd, r->q->bounce, len, r->pos);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail_read(errno, r->pos);
		if (!n) {
			r->eof = true;
			break;
		}
		cmd = csrec_cmd_copy(r->key, r->dev_off, r->q->bounce_key, 0, n);
		ret = csrec_run(r->q, &cmd, 1, NULL);
		if (!ret)
			advance(r, n, zeros ? &r->bytes.zeros : &r->bytes.bounced);
	}
	return ret;
}

/* The device zeroes whole words itself. */
static int zero(struct reader *r, uint64_t end)
{
	uint64_t first = (4 - r->dev_off % 4) % 4, words;
	struct csrec_cmd cmd;
	int ret = 0;

	if (first > end - r->pos)
		first = end - r->pos;
	if (first)
		ret = bounce(r, r->pos + first, true);
	words = (end - r->pos) / 4 * 4;
	if (!ret && words) {
		cmd = csrec_cmd_fill(r->key, r->dev_off, words, 0);
		ret = csrec_run(r->q, &cmd, 1, NULL);
		if (!ret)
			advance(r, words, &r->bytes.zeros);
	}
	return ret || r->pos == end ? ret : bounce(r, end, true);
}

static int copy(struct reader *r, uint64_t end)
{
	return r->flags & CSREC_P2P_F_ONLY ? fail_direct(r) : bounce(r, end, false);
}

/* Written blocks, pos to end. Gives up on direct reads for good where the drive cannot. */
static int direct(struct reader *r, uint64_t end)
{
	while (r->pos < end) {
		uint64_t left = end - r->pos;
		ssize_t n = pread(r->direct, (void *)(uintptr_t)(r->map + r->pos), left < DIRECT_LEN ? left : DIRECT_LEN,
				  r->pos);

		if (n > 0)
			advance(r, n, &r->bytes.direct);
		if (n > 0 && !(r->pos % r->off_align))
			continue;
		if (n >= 0) {
			/* shorter than it was: the rest, if any, is less than a block */
			r->eof = !n;
			break;
		}
		switch (errno) {
		case EINTR:
			break;
		case EFAULT:		/* also if the device is no more, which the queue tells */
		case EINVAL:
		case EOPNOTSUPP:
		case EREMOTEIO:
			close(r->direct);
			r->direct = -1;
			return 0;
		default:
			return fail_read(errno, r->pos);
		}
	}
	return 0;
}

static int written(struct reader *r, uint64_t end)
{
	uint64_t first = (r->pos + r->off_align - 1) / r->off_align * r->off_align;
	uint64_t last = end / r->off_align * r->off_align;
	int ret = 0;

	if (first < last && !((uintptr_t)(r->map + first) % r->mem_align)) {
		if (r->pos < first)
			ret = copy(r, first);
		if (!ret && !r->eof)
			ret = direct(r, last);
	}
	return ret || r->eof || r->pos == end ? ret : copy(r, end);
}

/* What lies at pos, and up to where (at most *end). */
static void piece(struct reader *r, uint64_t *end, enum kind *kind)
{
	struct fiemap *fm = r->fm;
	const struct fiemap_extent *e;

	*kind = ODD;
	if (r->direct < 0)
		return;
	for (;;) {
		if (r->next == fm->fm_mapped_extents) {
			if (r->next && fm->fm_extents[r->next - 1].fe_flags & FIEMAP_EXTENT_LAST)
				break;
			memset(fm, 0, sizeof(*fm));
			fm->fm_start = r->pos;
			fm->fm_length = *end - r->pos;
			fm->fm_flags = FIEMAP_FLAG_SYNC;
			fm->fm_extent_count = EXTENTS;
			r->next = 0;
			/* a file system that does not say: let the CPU read */
			if (ioctl(r->fd, FS_IOC_FIEMAP, fm)) {
				close(r->direct);
				r->direct = -1;
				return;
			}
			if (!fm->fm_mapped_extents)
				break;
		}
		e = &fm->fm_extents[r->next];
		if (e->fe_logical + e->fe_length <= r->pos) {
			r->next++;
			continue;
		}
		if (e->fe_logical > r->pos) {
			*kind = ZEROS;
			if (e->fe_logical < *end)
				*end = e->fe_logical;
			return;
		}
		*kind = e->fe_flags & ODD_EXTENT ? ODD :
			e->fe_flags & FIEMAP_EXTENT_UNWRITTEN ? ZEROS : WRITTEN;
		if (e->fe_logical + e->fe_length < *end)
			*end = e->fe_logical + e->fe_length;
		return;
	}
	*kind = ZEROS;		/* nothing more up to the end */
}

static int read_all(struct reader *r, uint64_t end)
{
	int ret = 0;

	while (!ret && r->pos < end && !r->eof) {
		uint64_t until = end;
		enum kind kind;

		piece(r, &until, &kind);
		if (kind == WRITTEN)
			ret = written(r, until);
		else if (kind == ZEROS)
			ret = zero(r, until);
		else
			ret = copy(r, until);
	}
	return ret;
}

/* How direct reads of the file must be aligned; false if there are none. */
static bool alignment(struct reader *r)
{
	r->off_align = 4096;
	r->mem_align = 4096;
#ifdef STATX_DIOALIGN
	struct statx st;

	if (!statx(r->direct, "", AT_EMPTY_PATH, STATX_DIOALIGN, &st) &&
	    st.stx_mask & STATX_DIOALIGN) {
		r->off_align = st.stx_dio_offset_align;
		r->mem_align = st.stx_dio_mem_align;
	}
#endif
	return r->off_align && r->mem_align;
}

EXPORT int64_t csrec_file_read(struct csrec_queue *q, int fd, uint64_t off, uint64_t len,
			       uint32_t key, uint64_t dev_off, uint32_t flags,
			       struct csrec_file_bytes *bytes)
{
	struct reader r = {
		.q = q, .key = key, .flags = flags, .fd = fd, .direct = -1, .pos = off,
		.dev_off = dev_off,
	};
	int how = fcntl(fd, F_GETFL);
	uint64_t region_len;
	struct stat st;
	void *map;
	int ret;

	if (bytes)
		memset(bytes, 0, sizeof(*bytes));
	if (how < 0 || how & O_PATH || (how & O_ACCMODE) == O_WRONLY)
		return csrec_fail(EBADF, "descriptor %d is not open for reading", fd);
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return csrec_fail(EINVAL, "descriptor %d is not a regular file", fd);
	if (flags & ~(CSREC_P2P_F_ONLY | CSREC_P2P_F_BOUNCE) ||
	    flags == (CSREC_P2P_F_ONLY | CSREC_P2P_F_BOUNCE))
		return csrec_fail(EINVAL, "flags 0x%x are unknown or exclude each other", flags);
	if (q->outstanding)
		return csrec_fail(EBUSY, "csrec_file_read on queue %u: %u commands are outstanding",
				  q->id, q->outstanding);
	if (off >= (uint64_t)st.st_size)
		len = 0;
	else if (len > st.st_size - off)
		len = st.st_size - off;

	ret = csrec_region_map(q->dev, key, &map, &region_len);
	if (ret == -ENOENT)
		return ret;
	if (dev_off > region_len || len > region_len - dev_off)
		return csrec_fail(ERANGE, "%llu bytes at %llu leave the region of %llu bytes", (ull)len,
				  (ull)dev_off, (ull)region_len);
	if (!len)
		return 0;

	r.fm = malloc(sizeof(*r.fm) + EXTENTS * sizeof(r.fm->fm_extents[0]));
	if (!r.fm)
		return csrec_fail(ENOMEM, "no memory for a list of extents");
	r.fm->fm_mapped_extents = 0;
	if (how & O_DIRECT) {
		/* parts of blocks are read, too */
		r.fd = reopen(fd, 0);
		if (r.fd < 0) {
			ret = csrec_fail(errno, "opening the file of descriptor %d without O_DIRECT: %s",
					 fd, csrec_errno_text(errno));
			free(r.fm);
			return ret;
		}
	}
	if (!ret && !(flags & CSREC_P2P_F_BOUNCE)) {
		r.map = (uintptr_t)map + dev_off - off;
		r.direct = reopen(fd, O_DIRECT);
		if (r.direct >= 0 && !alignment(&r)) {
			close(r.direct);
			r.direct = -1;
		}
	}

	ret = read_all(&r, off + len);

	if (r.direct >= 0)
		close(r.direct);
	if (r.fd != fd)
		close(r.fd);
	free(r.fm);
	if (bytes)
		*bytes = r.bytes;
	return ret ? ret : (int64_t)(r.pos - off);
}
