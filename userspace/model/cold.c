// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Cold extent: the rows of split tables that are not hot, in blocks on a drive or in a
 * file (FORMAT.md). Blocks that are read peer-to-peer never pass through the CPU, so
 * their checksums are verified here, when the extent is written and on request, and
 * not on each fetch.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/fs.h>

#include "csm.h"
#include "format.h"

#define CHUNK	(1u << 20)	/* a multiple of every block size */

struct layout {
	uint64_t dir_block, crc_block, data_block, nblocks;
	uint32_t ntables, block;
};

static uint64_t blocks(uint64_t bytes, uint32_t block)
{
	return (bytes + block - 1) / block;
}

static uint64_t table_blocks(const struct csm_map *map, uint32_t block)
{
	return (uint64_t)map->nunits * map->unit / block;
}

static void get_layout(struct layout *l, const struct csm_model *m, const struct csm_placement *p,
		       const struct csm_remap *r)
{
	uint64_t ndata = 0;

	*l = (struct layout){ .block = p->block, .ntables = p->ncold, .dir_block = 1 };
	for (uint32_t t = 0; t < m->ntables; t++)
		if (csm_has_cold(&p->tables[t], &m->tables[t]))
			ndata += table_blocks(&r->maps[t], p->block);
	l->crc_block = 1 + blocks(l->ntables * sizeof(struct csm_ext_dirent), p->block);
	l->data_block = l->crc_block + blocks(ndata * 4, p->block);
	l->nblocks = l->data_block + ndata;
}

uint64_t csm_extent_size(const struct csm_model *m, const struct csm_placement *p,
			 const struct csm_remap *r)
{
	struct layout l;

	if (!p->ncold)
		return 0;
	get_layout(&l, m, p, r);
	return l.nblocks * l.block;
}

static int read_at(int fd, void *buf, size_t len, uint64_t off, const char *name,
		   struct csm_err *err)
{
	uint8_t *b = buf;

	while (len) {
		ssize_t n = pread(fd, b, len, off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return csm_fail(err, -errno, "%s: reading at %llu: %s", name,
					(unsigned long long)off, strerror(errno));
		if (!n)
			return csm_fail(err, -EBADMSG, "%s: ends at %llu, within the extent", name,
					(unsigned long long)off);
		b += n;
		off += n;
		len -= n;
	}
	return 0;
}

/* Another descriptor for the same file that reads past the page cache; -1 if none can. */
static int direct_fd(int fd)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
}

/* Whole blocks, from the drive itself where that is possible. */
static int read_blocks(int direct, int fd, void *buf, size_t len, uint64_t off, const char *name,
		       struct csm_err *err)
{
	if (direct >= 0) {
		int ret = read_at(direct, buf, len, off, name, err);

		if (ret != -EINVAL)	/* the file system wants a coarser alignment */
			return ret;
	}
	return read_at(fd, buf, len, off, name, err);
}

static int write_at(int fd, const void *buf, size_t len, uint64_t off, const char *name,
		    struct csm_err *err)
{
	const uint8_t *b = buf;

	while (len) {
		ssize_t n = pwrite(fd, b, len, off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return csm_fail(err, n ? -errno : -EIO, "%s: writing at %llu: %s", name,
					(unsigned long long)off, strerror(errno));
		b += n;
		off += n;
		len -= n;
	}
	return 0;
}

static void *block_alloc(uint64_t size)
{
	uint64_t room = (size + CSM_PAGE - 1) / CSM_PAGE * CSM_PAGE;
	void *p = aligned_alloc(CSM_PAGE, room ? room : CSM_PAGE);

	if (p)
		memset(p, 0, room);
	return p;
}

/* The entry that the directory must have for a split table. False: out of memory. */
static bool make_dirent(struct csm_ext_dirent *d, const struct csm_table *t,
			const struct csm_map *map, uint64_t data_block, uint32_t block)
{
	uint32_t *ids = csm_cold_ids(map, t->nrows);

	if (!ids)
		return false;
	memset(d, 0, sizeof(*d));
	memcpy(d->name, t->name, strlen(t->name));
	d->data_block = data_block;
	d->nblocks = table_blocks(map, block);
	d->nrows = map->ncold;
	d->stride = map->stride;
	d->dim = t->dim;
	d->ids_crc = csm_crc32c(0, ids, (size_t)map->ncold * 4);
	free(ids);
	return true;
}

static struct csm_ext_dirent *make_dir(const struct csm_model *m, const struct csm_placement *p,
				       const struct csm_remap *r, const struct layout *l)
{
	struct csm_ext_dirent *dir = block_alloc((l->crc_block - l->dir_block) * l->block);
	uint64_t at = l->data_block;
	uint32_t n = 0;

	for (uint32_t t = 0; dir && t < m->ntables; t++) {
		if (!csm_has_cold(&p->tables[t], &m->tables[t]))
			continue;
		if (!make_dirent(&dir[n], &m->tables[t], &r->maps[t], at, l->block)) {
			free(dir);
			return NULL;
		}
		at += dir[n++].nblocks;
	}
	return dir;
}

static void make_header(uint8_t *block, const struct layout *l, uint32_t model_id,
			uint32_t dir_crc, uint32_t crc_crc)
{
	struct csm_ext_hdr h = {
		.major = CSM_EXT_MAJOR, .block = l->block, .ntables = l->ntables,
		.nblocks = l->nblocks, .dir_block = l->dir_block, .crc_block = l->crc_block,
		.data_block = l->data_block, .model_id = model_id, .dir_crc = dir_crc,
		.crc_crc = crc_crc,
	};

	memcpy(h.magic, CSM_EXT_MAGIC, 8);
	memset(block, 0, l->block);
	memcpy(block, &h, sizeof(h));
	h.crc = csm_crc32c(0, block, l->block);
	memcpy(block, &h, sizeof(h));
}

/* The size of an intact extent that starts at off, 0 if there is none. */
static uint64_t old_extent(int fd, uint64_t off, uint64_t end)
{
	struct csm_err err;
	struct csm_ext_hdr h;
	uint8_t *b = block_alloc(CSM_BLOCK_MAX);
	uint64_t size = 0;

	if (b && off + sizeof(h) <= end && !read_at(fd, b, sizeof(h), off, "", &err)) {
		memcpy(&h, b, sizeof(h));
		if (!memcmp(h.magic, CSM_EXT_MAGIC, 8) && h.block >= CSM_BLOCK_MIN &&
		    h.block <= CSM_BLOCK_MAX && off + h.block <= end &&
		    !read_at(fd, b, h.block, off, "", &err)) {
			memset(b + offsetof(struct csm_ext_hdr, crc), 0, 4);
			if (csm_crc32c(0, b, h.block) == h.crc && h.nblocks < UINT64_MAX / h.block)
				size = h.nblocks * h.block;
		}
	}
	free(b);
	return size;
}

/*
 * What tells others that a drive is theirs, where they look for it (their formats; the list
 * that --help of install-cold has). Within the extent check_free() finds them.
 */
static int check_signatures(int fd, const char *name, uint64_t off, uint64_t size, uint64_t end,
			    struct csm_err *err)
{
	static const struct {
		uint32_t at, len;
		const char *bytes, *what;
	} marks[] = {
		{ 512, 8, "EFI PART", "a partition table (GPT)" },
		{ 4096, 8, "EFI PART", "a partition table (GPT)" },
		{ 510, 2, "\x55\xaa", "a DOS partition table or boot sector" },
		{ 1080, 2, "\x53\xef", "an ext2, ext3 or ext4 file system" },
		{ 0, 4, "XFSB", "an XFS file system" },
		{ 65536 + 64, 8, "_BHRfS_M", "a Btrfs file system" },
		{ 1024, 4, "\x10\x20\xf5\xf2", "an F2FS file system" },
		{ 0, 6, "LUKS\xba\xbe", "a LUKS volume" },
		{ 512, 8, "LABELONE", "an LVM volume" },
		{ 0, 4, "\xfc\x4e\x2b\xa9", "a member of an md RAID" },
		{ 4096, 4, "\xfc\x4e\x2b\xa9", "a member of an md RAID" },
		{ 4096 - 10, 10, "SWAPSPACE2", "swap space" },
	};
	uint8_t b[16];

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		uint64_t at = marks[i].at;
		int ret;

		if (at + marks[i].len > end || (at >= off && at < off + size))
			continue;
		ret = read_at(fd, b, marks[i].len, at, name, err);
		if (ret)
			return ret;
		if (!memcmp(b, marks[i].bytes, marks[i].len))
			return csm_fail(err, -EEXIST, "%s: has %s; --force writes into it", name,
					marks[i].what);
	}
	return 0;
}

/* May [off, off + size) be written? Only zeros and a former extent may be lost. */
static int check_free(int fd, const char *name, uint64_t off, uint64_t size, uint64_t end,
		      struct csm_err *err)
{
	uint64_t at = old_extent(fd, off, end);
	uint8_t *b = block_alloc(CHUNK);
	int ret = b ? 0 : csm_fail(err, -ENOMEM, "out of memory");

	while (!ret && at < size && off + at < end) {
		uint64_t n = size - at < CHUNK ? size - at : CHUNK;

		if (n > end - off - at)
			n = end - off - at;
		ret = read_at(fd, b, n, off + at, name, err);
		for (uint64_t i = 0; i < n && !ret; i++)
			if (b[i])
				ret = csm_fail(err, -EEXIST,
					       "%s: byte %llu is not zero and belongs to no csrec extent; --force overwrites it",
					       name, (unsigned long long)(off + at + i));
		at += n;
	}
	free(b);
	return ret;
}

static int file_end(int fd, const char *name, uint32_t block, bool *regular, uint64_t *end,
		    struct csm_err *err)
{
	struct stat st;
	off_t size;
	int lbs;

	if (fstat(fd, &st))
		return csm_fail(err, -errno, "%s: %s", name, strerror(errno));
	*regular = S_ISREG(st.st_mode);
	if (!*regular && !S_ISBLK(st.st_mode))
		return csm_fail(err, -ENOTBLK, "%s: neither a block device nor a regular file", name);
	size = lseek(fd, 0, SEEK_END);
	if (size < 0)
		return csm_fail(err, -errno, "%s: %s", name, strerror(errno));
	*end = size;
	if (!*regular && !ioctl(fd, BLKSSZGET, &lbs) && (uint32_t)lbs > block)
		return csm_fail(err, -EINVAL,
				"%s: its logical block is %d bytes, the placement's only %u", name, lbs,
				block);
	return 0;
}

static int write_table(int fd, const char *name, uint64_t off, const struct csm_model *m,
		       uint32_t table, const struct csm_map *map, uint8_t *buf, uint32_t block,
		       uint32_t *crc, struct csm_err *err)
{
	uint64_t total = (uint64_t)map->nunits * map->unit;
	uint32_t *ids = csm_cold_ids(map, m->tables[table].nrows);
	uint32_t row = 0;
	int ret = 0;

	if (!ids)
		return csm_fail(err, -ENOMEM, "out of memory");
	for (uint64_t at = 0; at < total && !ret; ) {
		uint64_t n = total - at < CHUNK ? total - at : CHUNK;

		/* strides are below CHUNK and divide it or are made of blocks */
		n -= n % map->stride;
		memset(buf, 0, n);
		for (uint64_t o = 0; o < n && row < map->ncold; o += map->stride, row++)
			csm_row(m, table, ids[row], (float *)(buf + o));
		for (uint64_t o = 0; o < n; o += block)
			*crc++ = csm_crc32c(0, buf + o, block);
		ret = write_at(fd, buf, n, off + at, name, err);
		at += n;
	}
	free(ids);
	return ret;
}

static int flush(int fd, const char *name, struct csm_err *err)
{
	if (fsync(fd))
		return csm_fail(err, -errno, "%s: %s", name, strerror(errno));
	return 0;
}

int csm_extent_install(int fd, const char *name, const struct csm_model *m,
		       const struct csm_placement *p, const struct csm_remap *r, bool force,
		       struct csm_err *err)
{
	struct csm_ext_dirent *dir = NULL;
	struct csm_extent x = { };
	uint32_t *crcs = NULL, n = 0;
	uint8_t *buf = NULL;
	uint64_t end, size, ndata;
	struct layout l;
	bool regular;
	int ret;

	if (!p->ncold)
		return csm_fail(err, -EINVAL, "the placement has no cold rows: nothing to install");
	get_layout(&l, m, p, r);
	size = l.nblocks * l.block;
	ret = file_end(fd, name, l.block, &regular, &end, err);
	if (ret)
		return ret;
	if (!regular && (p->cold_off > end || size > end - p->cold_off))
		return csm_fail(err, -ENOSPC, "%s: has %llu bytes; the extent takes %llu at %llu", name,
				(unsigned long long)end, (unsigned long long)size,
				(unsigned long long)p->cold_off);
	if (!force) {
		ret = check_signatures(fd, name, p->cold_off, size, end, err);
		if (!ret)
			ret = check_free(fd, name, p->cold_off, size, end, err);
		if (ret)
			return ret;
	}

	ndata = l.nblocks - l.data_block;
	buf = block_alloc(CHUNK);
	crcs = block_alloc((l.data_block - l.crc_block) * l.block);
	dir = make_dir(m, p, r, &l);
	if (!buf || !crcs || !dir) {
		ret = csm_fail(err, -ENOMEM, "out of memory");
		goto out;
	}
	/* No valid header while the rest is being written. */
	ret = write_at(fd, buf, l.block, p->cold_off, name, err);
	if (!ret)
		ret = flush(fd, name, err);
	for (uint32_t t = 0; t < m->ntables && !ret; t++) {
		if (!csm_has_cold(&p->tables[t], &m->tables[t]))
			continue;
		ret = write_table(fd, name, p->cold_off + dir[n].data_block * l.block, m, t,
				  &r->maps[t], buf, l.block,
				  crcs + (dir[n].data_block - l.data_block), err);
		n++;
	}
	if (!ret)
		ret = write_at(fd, crcs, (l.data_block - l.crc_block) * l.block,
			       p->cold_off + l.crc_block * l.block, name, err);
	if (!ret)
		ret = write_at(fd, dir, (l.crc_block - l.dir_block) * l.block,
			       p->cold_off + l.dir_block * l.block, name, err);
	if (!ret)
		ret = flush(fd, name, err);
	if (ret)
		goto out;
	make_header(buf, &l, m->id, csm_crc32c(0, dir, l.ntables * sizeof(*dir)),
		    csm_crc32c(0, crcs, ndata * 4));
	ret = write_at(fd, buf, l.block, p->cold_off, name, err);
	if (!ret)
		ret = flush(fd, name, err);
	if (ret)
		goto out;

	ret = csm_extent_open(&x, fd, name, m, p, r, err);
	if (!ret)
		ret = csm_extent_verify(&x, fd, name, err);
	csm_extent_free(&x);
out:
	free(buf);
	free(crcs);
	free(dir);
	return ret;
}

int csm_extent_open(struct csm_extent *x, int fd, const char *name, const struct csm_model *m,
		    const struct csm_placement *p, const struct csm_remap *r,
		    struct csm_err *err)
{
	struct csm_ext_dirent *want = NULL, *dir = NULL;
	struct csm_ext_hdr h;
	uint8_t *b = NULL;
	uint64_t end, n = 0;
	struct layout l;
	uint32_t crc;
	bool regular;
	int direct, ret;

	memset(x, 0, sizeof(*x));
	get_layout(&l, m, p, r);
	ret = file_end(fd, name, l.block, &regular, &end, err);
	if (ret)
		return ret;
	direct = direct_fd(fd);
	b = block_alloc(l.block);
	dir = block_alloc((l.crc_block - l.dir_block) * l.block);
	want = make_dir(m, p, r, &l);
	x->crc = block_alloc((l.data_block - l.crc_block) * l.block);
	x->table_off = calloc(m->ntables + 1, sizeof(*x->table_off));
	if (!b || !dir || !want || !x->crc || !x->table_off) {
		ret = csm_fail(err, -ENOMEM, "out of memory");
		goto out;
	}
	if (p->cold_off > end || end - p->cold_off < l.block) {
		ret = csm_fail(err, -EBADMSG, "%s: no cold extent at %llu: it ends at %llu", name,
			       (unsigned long long)p->cold_off, (unsigned long long)end);
		goto out;
	}
	ret = read_blocks(direct, fd, b, l.block, p->cold_off, name, err);
	if (ret)
		goto out;
	memcpy(&h, b, sizeof(h));
	ret = -EBADMSG;
	if (memcmp(h.magic, CSM_EXT_MAGIC, 8)) {
		csm_fail(err, ret, "%s: no cold extent at %llu; csrec install-cold writes it", name,
			 (unsigned long long)p->cold_off);
		goto out;
	}
	if (h.major != CSM_EXT_MAJOR) {
		ret = csm_fail(err, -EPROTONOSUPPORT,
			       "%s: extent version %u.%u, this program reads %u.x", name, h.major,
			       h.minor, CSM_EXT_MAJOR);
		goto out;
	}
	if (h.block != l.block) {
		csm_fail(err, ret, "%s: extent has blocks of %u bytes, the placement says %u", name,
			 h.block, l.block);
		goto out;
	}
	memset(b + offsetof(struct csm_ext_hdr, crc), 0, 4);
	crc = csm_crc32c(0, b, l.block);
	if (crc != h.crc) {
		csm_fail(err, ret, "%s: extent header checksum is %08x, should be %08x", name, crc,
			 h.crc);
		goto out;
	}
	if (h.model_id != m->id) {
		csm_fail(err, ret,
			 "%s: extent belongs to model %08x, not to %08x; install-cold again", name,
			 h.model_id, m->id);
		goto out;
	}
	if (h.ntables != l.ntables || h.nblocks != l.nblocks || h.dir_block != l.dir_block ||
	    h.crc_block != l.crc_block || h.data_block != l.data_block) {
		csm_fail(err, ret, "%s: extent was made for another placement; install-cold again",
			 name);
		goto out;
	}
	if (l.nblocks > (end - p->cold_off) / l.block) {
		csm_fail(err, ret, "%s: extent takes %llu blocks, the file ends before", name,
			 (unsigned long long)l.nblocks);
		goto out;
	}
	ret = read_blocks(direct, fd, dir, (l.crc_block - l.dir_block) * l.block,
			  p->cold_off + l.dir_block * l.block, name, err);
	if (!ret)
		ret = read_blocks(direct, fd, x->crc, (l.data_block - l.crc_block) * l.block,
				  p->cold_off + l.crc_block * l.block, name, err);
	if (ret)
		goto out;
	ret = -EBADMSG;
	x->ndata = l.nblocks - l.data_block;
	crc = csm_crc32c(0, dir, l.ntables * sizeof(*dir));
	if (crc != h.dir_crc) {
		csm_fail(err, ret, "%s: extent directory checksum is %08x, should be %08x", name, crc,
			 h.dir_crc);
		goto out;
	}
	crc = csm_crc32c(0, x->crc, x->ndata * 4);
	if (crc != h.crc_crc) {
		csm_fail(err, ret, "%s: checksum of the checksum area is %08x, should be %08x", name,
			 crc, h.crc_crc);
		goto out;
	}
	for (uint32_t t = 0; t < m->ntables; t++) {
		if (!csm_has_cold(&p->tables[t], &m->tables[t]))
			continue;
		if (memcmp(&dir[n], &want[n], sizeof(*dir))) {
			csm_fail(err, ret,
				 "%s: extent has other cold rows of table %s than the placement; install-cold again",
				 name, m->tables[t].name);
			goto out;
		}
		x->table_off[t] = dir[n++].data_block * l.block;
	}
	x->block = l.block;
	x->base = p->cold_off;
	x->size = l.nblocks * l.block;
	x->data = l.data_block * l.block;
	ret = 0;
out:
	free(b);
	free(dir);
	free(want);
	if (direct >= 0)
		close(direct);
	if (ret)
		csm_extent_free(x);
	return ret;
}

int csm_extent_verify(const struct csm_extent *x, int fd, const char *name, struct csm_err *err)
{
	uint8_t *b = block_alloc(CHUNK);
	uint64_t total = x->ndata * x->block;
	int ret = b ? 0 : csm_fail(err, -ENOMEM, "out of memory");
	int direct = direct_fd(fd);

	for (uint64_t at = 0; at < total && !ret; at += CHUNK) {
		uint64_t n = total - at < CHUNK ? total - at : CHUNK;

		ret = read_blocks(direct, fd, b, n, x->base + x->data + at, name, err);
		for (uint64_t o = 0; o < n && !ret; o += x->block) {
			uint64_t i = (at + o) / x->block;
			uint32_t crc = csm_crc32c(0, b + o, x->block);

			if (crc != x->crc[i])
				ret = csm_fail(err, -EBADMSG,
					       "%s: data block %llu (byte %llu): checksum is %08x, should be %08x",
					       name, (unsigned long long)i,
					       (unsigned long long)(x->base + x->data + at + o), crc,
					       x->crc[i]);
		}
	}
	free(b);
	if (direct >= 0)
		close(direct);
	return ret;
}

void csm_extent_free(struct csm_extent *x)
{
	free(x->crc);
	free(x->table_off);
	memset(x, 0, sizeof(*x));
}
