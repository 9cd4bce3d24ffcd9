// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Contexts, memory, fences and P2P: one ioctl each, and what it means if it fails. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <numa.h>
#include <numaif.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include "private.h"

typedef unsigned long long ull;

int csrec_ioctl(const struct csrec_dev *dev, unsigned long req, void *arg)
{
	int ret;

	do {
		ret = ioctl(dev->fd, req, arg);
	} while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : 0;
}

/* Errors that mean the same everywhere. what: "MEM_ALLOC of 4096 bytes" */
static int fail_common(const struct csrec_dev *dev, int err, const char *what)
{
	switch (err) {
	case ENODEV:
		return csrec_fail(err, "%s: %s is gone or was reset; open it again", what,
				  dev->name);
	case EIO:
		return csrec_fail(err, "%s: %s does not answer", what, dev->name);
	case ENOTTY:
		return csrec_fail(err, "%s: the driver of %s does not know this call", what,
				  dev->name);
	}
	return csrec_fail(err, "%s on %s: %s", what, dev->name, csrec_errno_text(err));
}

/* Fills path with the node that name means. */
static int find_node(const char *name, char *path, size_t len)
{
	struct csrec_found *list, *d;
	unsigned int n;
	int ret, end;

	if (!name)
		name = secure_getenv("CSREC_DEVICE");
	if (name && strchr(name, '/'))
		return snprintf(path, len, "%s", name) < (int)len ? 0 :
		       csrec_fail(ENAMETOOLONG, "device path %s is too long", name);

	end = 0;
	if (name && ((sscanf(name, "csrec%u%n", &n, &end) == 1 && !name[end]) ||
		     (sscanf(name, "%u%n", &n, &end) == 1 && !name[end])))
		return snprintf(path, len, "%s/csrec%u", csrec_dev_root(), n) < (int)len ? 0 :
		       csrec_fail(ENAMETOOLONG, "device path of %s is too long", name);

	ret = csrec_list(&list);
	if (ret)
		return ret;
	for (d = list; d; d = d->next) {
		if (name) {
			/* the PCI domain may be left out if it is 0 */
			if (strcmp(d->bdf, name) &&
			    (strncmp(d->bdf, "0000:", 5) || strcmp(d->bdf + 5, name)))
				continue;
		} else if (!d->node[0] && d->next) {
			continue;
		}
		if (!d->node[0]) {
			ret = csrec_fail(ENODEV, "device %s has %s%s: load csrec.ko", d->bdf,
					 d->driver[0] ? "another driver, " : "no driver",
					 d->driver);
			break;
		}
		snprintf(path, len, "%s", d->node);
		break;
	}
	if (!d)
		ret = name ? csrec_fail(ENODEV, "no csrec device is called \"%s\"", name) :
			     csrec_fail(ENODEV, "no csrec device (%04x:%04x) on the PCI bus",
					CSREC_PCI_VENDOR, CSREC_PCI_DEVICE);
	csrec_list_free(list);
	return ret;
}

static int check_versions(struct csrec_dev *dev)
{
	struct csrec_info info;
	int ret;

	memset(&info, 0, sizeof(info));
	info.size = sizeof(info);
	ret = csrec_ioctl(dev, CSREC_IOC_GET_INFO, &info);
	if (ret == -ENOTTY)
		return csrec_fail(ENOTTY, "%s is not a csrec device", dev->name);
	if (ret)
		return fail_common(dev, -ret, "GET_INFO");
	if (info.uapi_major != CSREC_UAPI_MAJOR)
		return csrec_fail(EPROTONOSUPPORT,
				  "%s: driver interface is version %u.%u, libcsrec %s needs %u.x",
				  dev->name, info.uapi_major, info.uapi_minor, csrec_lib_version(),
				  CSREC_UAPI_MAJOR);
	if (info.hw_major != CSREC_HW_MAJOR)
		return csrec_fail(EPROTONOSUPPORT,
				  "%s: device interface is version %u.%u, libcsrec %s needs %u.x",
				  dev->name, info.hw_major, info.hw_minor, csrec_lib_version(),
				  CSREC_HW_MAJOR);
	dev->numa_node = info.numa_node;
	dev->features = info.features;
	dev->uapi_minor = info.uapi_minor;
	dev->max_entries = 1u << CSREC_CAP(info.cap_queue, CSREC_CAPQ_ENTRIES, 5);
	return 0;
}

EXPORT int csrec_open(struct csrec_dev **out, const char *name)
{
	struct csrec_dev *dev;
	int ret;

	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return csrec_fail(ENOMEM, "no memory for a device handle");
	pthread_mutex_init(&dev->lock, NULL);
	dev->fd = -1;

	ret = find_node(name, dev->name, sizeof(dev->name));
	if (ret)
		goto err;
	dev->fd = open(dev->name, O_RDWR | O_CLOEXEC);
	if (dev->fd < 0) {
		ret = errno;
		if (ret == ENOENT || ret == ENXIO || ret == ENODEV)
			ret = csrec_fail(ENODEV,
					 "no %s: no such device, or csrec.ko is not loaded",
					 dev->name);
		else if (ret == EACCES || ret == EPERM)
			ret = csrec_fail(EACCES,
					 "%s: no permission to open it for reading and writing",
					 dev->name);
		else
			ret = csrec_fail(ret, "open %s: %s", dev->name, csrec_errno_text(ret));
		goto err;
	}
	ret = check_versions(dev);
	if (ret)
		goto err;
	csrec_log(CSREC_LOG_INFO, "opened %s, NUMA node %d", dev->name, dev->numa_node);
	*out = dev;
	return 0;
err:
	csrec_close(dev);
	return ret;
}

EXPORT void csrec_close(struct csrec_dev *dev)
{
	struct mapping *m;
	struct region *r;
	struct arena *a;

	if (!dev)
		return;
	/* the driver unpins what is still registered when the context goes */
	if (dev->fd >= 0)
		close(dev->fd);
	while ((a = dev->arenas)) {
		dev->arenas = a->next;
		munmap(a->ptr, a->len);
		free(a);
	}
	while ((m = dev->mappings)) {
		dev->mappings = m->next;
		munmap(m->ptr, m->len);
		free(m);
	}
	while ((r = dev->regions)) {
		dev->regions = r->next;
		if (r->map)
			munmap(r->map, r->len);
		free(r);
	}
	pthread_mutex_destroy(&dev->lock);
	free(dev);
}

EXPORT const char *csrec_name(const struct csrec_dev *dev)
{
	return dev->name;
}

EXPORT int csrec_fd(const struct csrec_dev *dev)
{
	return dev->fd;
}

EXPORT int csrec_get_info(struct csrec_dev *dev, struct csrec_info *info, size_t size)
{
	int ret;

	memset(info, 0, size);
	info->size = size;
	ret = csrec_ioctl(dev, CSREC_IOC_GET_INFO, info);
	return ret ? fail_common(dev, -ret, "GET_INFO") : 0;
}

EXPORT int csrec_get_stats(struct csrec_dev *dev, struct csrec_stats *stats, size_t size)
{
	int ret;

	memset(stats, 0, size);
	stats->size = size;
	ret = csrec_ioctl(dev, CSREC_IOC_GET_STATS, stats);
	return ret ? fail_common(dev, -ret, "GET_STATS") : 0;
}

/*
 * Memory
 */
static bool pinnable(uint64_t len)
{
	return len && len <= CSREC_MEM_MAX_PIN;
}

EXPORT int csrec_mem_register(struct csrec_dev *dev, void *ptr, size_t len, uint32_t rights,
			      uint32_t *key)
{
	struct csrec_mem_register arg = {
		.size = sizeof(arg),
		.addr = (uintptr_t)ptr,
		.len = len,
		.rights = rights,
	};
	struct rlimit lim;
	char what[64];
	int ret;

	snprintf(what, sizeof(what), "MEM_REGISTER of %zu bytes", len);
	ret = csrec_ioctl(dev, CSREC_IOC_MEM_REGISTER, &arg);
	switch (-ret) {
	case 0:
		*key = arg.key;
		return 0;
	case ENOMEM:
		if (getrlimit(RLIMIT_MEMLOCK, &lim) || lim.rlim_cur == RLIM_INFINITY)
			return csrec_fail(ENOMEM, "%s: out of memory", what);
		return csrec_fail(ENOMEM, "%s: RLIMIT_MEMLOCK is %llu bytes", what,
				  (ull)lim.rlim_cur);
	case EFAULT:
		return csrec_fail(EFAULT, "%s: not all of %p is mapped%s", what, ptr,
				  rights & CSREC_RIGHT_WRITE ? " and writable" : "");
	case ENOSPC:
		return csrec_fail(ENOSPC, "%s: no region slot left in the device", what);
	case EINVAL:
		if (!pinnable(len))
			return csrec_fail(EINVAL, "%s: must be 1 to %llu", what,
					  (ull)CSREC_MEM_MAX_PIN);
		return csrec_fail(EINVAL, "%s: rights 0x%x refused", what, rights);
	}
	return fail_common(dev, -ret, what);
}

EXPORT int csrec_mem_alloc_aligned(struct csrec_dev *dev, uint32_t kind, uint64_t len,
				   uint64_t align, uint32_t *key)
{
	struct csrec_mem_alloc arg = {
		.size = sizeof(arg),
		.len = len,
		.kind = kind,
		.align = align,
	};
	bool dram = kind == CSREC_REGION_DRAM;
	struct region *r = NULL;
	struct csrec_info info;
	uint64_t free_bytes;
	char what[80];
	int ret;

	snprintf(what, sizeof(what), "MEM_ALLOC of %llu bytes of %s", (ull)len,
		 dram ? "DRAM" : kind == CSREC_REGION_ONCHIP ? "on-chip memory" : "unknown kind");
	if (dram) {
		r = calloc(1, sizeof(*r));
		if (!r)
			return csrec_fail(ENOMEM, "%s: no memory for its handle", what);
	}
	ret = csrec_ioctl(dev, CSREC_IOC_MEM_ALLOC, &arg);
	if (!ret) {
		*key = arg.key;
		if (!r)
			return 0;
		r->key = arg.key;
		r->len = arg.len;
		r->offset = arg.mmap_offset;
		pthread_mutex_lock(&dev->lock);
		r->next = dev->regions;
		dev->regions = r;
		pthread_mutex_unlock(&dev->lock);
		return 0;
	}
	free(r);
	switch (-ret) {
	case ENOMEM:
		memset(&info, 0, sizeof(info));
		info.size = sizeof(info);
		if (csrec_ioctl(dev, CSREC_IOC_GET_INFO, &info))
			return csrec_fail(ENOMEM, "%s: not enough left", what);
		free_bytes = dram ? info.dram_free : info.onchip_free;
		return csrec_fail(ENOMEM, "%s: %llu bytes are free%s", what, (ull)free_bytes,
				  len > free_bytes ? "" : ", but not in one piece");
	case ENOSPC:
		return csrec_fail(ENOSPC, "%s: no region slot left in the device", what);
	case EDQUOT:
		return csrec_fail(EDQUOT, "%s: more than this process may allocate", what);
	case E2BIG:	/* a driver of before 1.1, told of align */
		return csrec_fail(EOPNOTSUPP, "%s: the driver of %s cannot align it", what, dev->name);
	case EINVAL:
		if (align & (align - 1) || align > CSREC_MEM_MAX_ALIGN)
			return csrec_fail(EINVAL, "%s: alignment %llu is no power of two up to %llu",
					  what, (ull)align, (ull)CSREC_MEM_MAX_ALIGN);
		return csrec_fail(EINVAL, "%s: length 0 or no such kind of memory", what);
	}
	return fail_common(dev, -ret, what);
}

EXPORT int csrec_mem_alloc(struct csrec_dev *dev, uint32_t kind, uint64_t len, uint32_t *key)
{
	return csrec_mem_alloc_aligned(dev, kind, len, 0, key);
}

EXPORT int csrec_mem_free(struct csrec_dev *dev, uint32_t key)
{
	struct csrec_mem_free arg = { .size = sizeof(arg), .key = key };
	struct region *r, **link;
	int ret;

	pthread_mutex_lock(&dev->lock);
	for (link = &dev->regions; (r = *link) && r->key != key; link = &r->next)
		;
	if (r)
		*link = r->next;
	pthread_mutex_unlock(&dev->lock);
	/* or it would stay allocated */
	if (r && r->map)
		munmap(r->map, r->len);
	free(r);

	ret = csrec_ioctl(dev, CSREC_IOC_MEM_FREE, &arg);
	if (ret == -ENOENT)
		return csrec_fail(ENOENT, "MEM_FREE: 0x%x is no memory key of this context", key);
	return ret ? fail_common(dev, -ret, "MEM_FREE") : 0;
}

/* Maps a region with the lock held. */
static int map_region(struct csrec_dev *dev, const struct region *r, uint32_t key, void **ptr)
{
	if (!r)
		return csrec_fail(ENOENT, "0x%x is no key of device DRAM of this context", key);
	if (!r->offset)
		return csrec_fail(EOPNOTSUPP, "the driver of %s cannot map device memory", dev->name);
	if (r->len > SIZE_MAX)
		return csrec_fail(ENOMEM, "mapping %llu bytes: more than there are addresses",
				  (ull)r->len);
	*ptr = mmap(NULL, r->len, PROT_READ | PROT_WRITE, MAP_SHARED, dev->fd, r->offset);
	if (*ptr == MAP_FAILED)
		return csrec_fail(errno, "mapping %llu bytes of device memory: %s", (ull)r->len,
				  csrec_errno_text(errno));
	return 0;
}

static struct region *find_region(struct csrec_dev *dev, uint32_t key)
{
	struct region *r = dev->regions;

	while (r && r->key != key)
		r = r->next;
	return r;
}

int csrec_region_map(struct csrec_dev *dev, uint32_t key, void **ptr, uint64_t *len)
{
	struct region *r;
	int ret = 0;

	pthread_mutex_lock(&dev->lock);
	r = find_region(dev, key);
	*len = r ? r->len : 0;
	if (!r || !r->map)
		ret = map_region(dev, r, key, ptr);
	if (!ret && !r->map)
		r->map = *ptr;
	if (!ret)
		*ptr = r->map;
	pthread_mutex_unlock(&dev->lock);
	return ret;
}

EXPORT int csrec_mem_map(struct csrec_dev *dev, uint32_t key, void **ptr, uint64_t *len)
{
	struct mapping *m = calloc(1, sizeof(*m));
	struct region *r;
	int ret;

	if (!m)
		return csrec_fail(ENOMEM, "no memory for a mapping");
	pthread_mutex_lock(&dev->lock);
	r = find_region(dev, key);
	ret = map_region(dev, r, key, &m->ptr);
	if (!ret) {
		m->len = r->len;
		m->next = dev->mappings;
		dev->mappings = m;
		*ptr = m->ptr;
		if (len)
			*len = m->len;
	}
	pthread_mutex_unlock(&dev->lock);
	if (ret)
		free(m);
	return ret;
}

EXPORT int csrec_mem_unmap(struct csrec_dev *dev, void *ptr)
{
	struct mapping *m, **link;

	if (!ptr)
		return 0;
	pthread_mutex_lock(&dev->lock);
	for (link = &dev->mappings; (m = *link) && m->ptr != ptr; link = &m->next)
		;
	if (m)
		*link = m->next;
	pthread_mutex_unlock(&dev->lock);
	if (!m)
		return csrec_fail(ENOENT, "%p is not from csrec_mem_map() of %s", ptr, dev->name);
	munmap(m->ptr, m->len);
	free(m);
	return 0;
}

EXPORT int csrec_mem_export(struct csrec_dev *dev, uint32_t key, uint32_t flags, int *fd)
{
	struct csrec_mem_export arg = { .size = sizeof(arg), .key = key, .open_flags = flags };
	int ret = csrec_ioctl(dev, CSREC_IOC_MEM_EXPORT, &arg);

	switch (-ret) {
	case 0:
		*fd = arg.fd;
		return 0;
	case ENOENT:
		return csrec_fail(ENOENT, "MEM_EXPORT: 0x%x is no memory key of this context", key);
	case EOPNOTSUPP:
		return csrec_fail(EOPNOTSUPP, "MEM_EXPORT: 0x%x is not DRAM, or the kernel has no P2PDMA",
				  key);
	case EINVAL:
		return csrec_fail(EINVAL, "MEM_EXPORT: flags 0x%x refused", flags);
	}
	return fail_common(dev, -ret, "MEM_EXPORT");
}

EXPORT int csrec_mem_import(struct csrec_dev *dev, int fd, uint32_t rights, uint32_t *key,
			    uint64_t *len)
{
	struct csrec_mem_import arg = { .size = sizeof(arg), .fd = fd, .rights = rights };
	int ret = csrec_ioctl(dev, CSREC_IOC_MEM_IMPORT, &arg);

	switch (-ret) {
	case 0:
		*key = arg.key;
		if (len)
			*len = arg.len;
		return 0;
	case EACCES:
		return csrec_fail(EACCES, "MEM_IMPORT: descriptor %d is not open for writing", fd);
	case EBADF:
		return csrec_fail(EBADF, "MEM_IMPORT: %d is no descriptor", fd);
	case EINVAL:
		return csrec_fail(EINVAL, "MEM_IMPORT: descriptor %d is no dma-buf, or rights 0x%x refused",
				  fd, rights);
	case EOPNOTSUPP:
		return csrec_fail(EOPNOTSUPP, "MEM_IMPORT: %s cannot reach that memory", dev->name);
	case ENOSPC:
		return csrec_fail(ENOSPC, "MEM_IMPORT: no region slot left in the device");
	}
	return fail_common(dev, -ret, "MEM_IMPORT");
}

/* A preference, not a demand: memory elsewhere is slower, but works. */
static void prefer_node(void *ptr, size_t len, int node)
{
	unsigned long mask[16] = { 0 };
	const unsigned int bits = 8 * sizeof(mask[0]);

	if (node < 0 || node >= (int)(bits * 16))
		return;
	if (numa_available() < 0) {
		csrec_log(CSREC_LOG_DEBUG, "no NUMA here, memory stays where it falls");
		return;
	}
	mask[node / bits] = 1ul << (node % bits);
	if (mbind(ptr, len, MPOL_PREFERRED, mask, bits * 16, 0))
		csrec_log(CSREC_LOG_WARN, "cannot prefer NUMA node %d: %s", node,
			  csrec_errno_text(errno));
}

EXPORT int csrec_host_alloc(struct csrec_dev *dev, size_t len, uint32_t rights, void **ptr,
			    uint32_t *key)
{
	size_t page = sysconf(_SC_PAGESIZE);
	struct arena *a;
	int ret;

	if (!pinnable(len))
		return csrec_fail(EINVAL, "host memory of %zu bytes: must be 1 to %llu", len,
				  (ull)CSREC_MEM_MAX_PIN);
	a = calloc(1, sizeof(*a));
	if (!a)
		return csrec_fail(ENOMEM, "no memory for an arena");
	a->len = (len + page - 1) / page * page;
	a->ptr = mmap(NULL, a->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (a->ptr == MAP_FAILED) {
		ret = csrec_fail(errno, "mapping %zu bytes: %s", a->len, csrec_errno_text(errno));
		goto err_free;
	}
	prefer_node(a->ptr, a->len, dev->numa_node);
	/* else a child's copy-on-write could take the page the device writes to */
	if (madvise(a->ptr, a->len, MADV_DONTFORK)) {
		ret = csrec_fail(errno, "MADV_DONTFORK of %zu bytes: %s", a->len,
				 csrec_errno_text(errno));
		goto err_unmap;
	}
	ret = csrec_mem_register(dev, a->ptr, len, rights, &a->key);
	if (ret)
		goto err_unmap;

	pthread_mutex_lock(&dev->lock);
	a->next = dev->arenas;
	dev->arenas = a;
	pthread_mutex_unlock(&dev->lock);
	*ptr = a->ptr;
	*key = a->key;
	return 0;

err_unmap:
	munmap(a->ptr, a->len);
err_free:
	free(a);
	return ret;
}

EXPORT int csrec_host_free(struct csrec_dev *dev, void *ptr)
{
	struct arena *a, **link;
	int ret;

	if (!ptr)
		return 0;
	pthread_mutex_lock(&dev->lock);
	for (link = &dev->arenas; (a = *link) && a->ptr != ptr; link = &a->next)
		;
	if (a)
		*link = a->next;
	pthread_mutex_unlock(&dev->lock);
	if (!a)
		return csrec_fail(ENOENT, "%p is not from csrec_host_alloc() of %s", ptr,
				  dev->name);

	/* pinned pages outlive the mapping, so that unmapping is safe either way */
	ret = csrec_mem_free(dev, a->key);
	munmap(a->ptr, a->len);
	free(a);
	return ret;
}

/*
 * Fences
 */
EXPORT int csrec_fence_create(struct csrec_dev *dev, uint64_t value, uint32_t *key)
{
	struct csrec_fence_create arg = { .size = sizeof(arg), .value = value };
	int ret = csrec_ioctl(dev, CSREC_IOC_FENCE_CREATE, &arg);

	if (!ret)
		*key = arg.key;
	if (ret == -ENOSPC)
		return csrec_fail(ENOSPC, "FENCE_CREATE: no fence slot left in %s", dev->name);
	return ret ? fail_common(dev, -ret, "FENCE_CREATE") : 0;
}

static int fence_op(struct csrec_dev *dev, unsigned long req, const char *what, uint32_t key,
		    uint64_t value)
{
	struct csrec_fence_op arg = { .size = sizeof(arg), .value = value, .key = key };
	int ret = csrec_ioctl(dev, req, &arg);

	if (ret == -ENOENT)
		return csrec_fail(ENOENT, "%s: 0x%x is no fence of this context", what, key);
	return ret ? fail_common(dev, -ret, what) : 0;
}

EXPORT int csrec_fence_signal(struct csrec_dev *dev, uint32_t key, uint64_t value)
{
	return fence_op(dev, CSREC_IOC_FENCE_SIGNAL, "FENCE_SIGNAL", key, value);
}

EXPORT int csrec_fence_destroy(struct csrec_dev *dev, uint32_t key)
{
	return fence_op(dev, CSREC_IOC_FENCE_DESTROY, "FENCE_DESTROY", key, 0);
}

/*
 * P2P
 */

/* Which rule did the driver's -EINVAL mean? The drive knows the numbers. */
static int fail_p2p_einval(const char *what, int fd, const struct csrec_p2p_seg *segs, uint32_t n,
			   uint32_t flags)
{
	uint64_t size = UINT64_MAX;
	int block = 512;

	if (!n)
		return csrec_fail(EINVAL, "%s: no segments", what);
	if (flags & ~(CSREC_P2P_F_ONLY | CSREC_P2P_F_BOUNCE) ||
	    flags == (CSREC_P2P_F_ONLY | CSREC_P2P_F_BOUNCE))
		return csrec_fail(EINVAL, "%s: flags 0x%x are unknown or exclude each other", what,
				  flags);
	ioctl(fd, BLKSSZGET, &block);
	ioctl(fd, BLKGETSIZE64, &size);
	for (uint32_t i = 0; i < n; i++) {
		const struct csrec_p2p_seg *s = &segs[i];

		if (!s->len)
			return csrec_fail(EINVAL, "%s: segment %u has length 0", what, i);
		if (s->file_off % block || s->len % block)
			return csrec_fail(EINVAL,
					  "%s: segment %u, %llu bytes at %llu, is not made of whole %d-byte blocks of the drive",
					  what, i, (ull)s->len, (ull)s->file_off, block);
		if (s->file_off > size || s->len > size - s->file_off)
			return csrec_fail(EINVAL,
					  "%s: segment %u, %llu bytes at %llu, ends past the drive's %llu bytes",
					  what, i, (ull)s->len, (ull)s->file_off, (ull)size);
		if (s->rsvd)
			return csrec_fail(EINVAL, "%s: segment %u: rsvd is not 0", what, i);
		if (s->dev_off % (block < 4096 ? block : 4096))
			return csrec_fail(EINVAL,
					  "%s: segment %u: offset %llu in device memory is not aligned to %d",
					  what, i, (ull)s->dev_off, block < 4096 ? block : 4096);
	}
	return csrec_fail(EINVAL, "%s: refused, for no reason known here", what);
}

static int fail_p2p(const struct csrec_dev *dev, unsigned long req, int err, int fd,
		    const struct csrec_p2p_seg *segs, uint32_t n, uint32_t flags)
{
	const char *what = req == CSREC_IOC_P2P_READ ? "P2P_READ" : "P2P_WRITE";

	switch (err) {
	case EREMOTEIO:
		return csrec_fail(err,
				  "%s: no peer-to-peer path between this drive and %s, and bouncing was excluded",
				  what, dev->name);
	case EBADF:
		return csrec_fail(err, "%s: descriptor %d is not open for %s", what, fd,
				  req == CSREC_IOC_P2P_READ ? "reading" : "writing");
	case ENOTBLK:
		return csrec_fail(err, "%s: descriptor %d is not a block device", what, fd);
	case EINVAL:
		return fail_p2p_einval(what, fd, segs, n, flags);
	case ENOENT:
		return csrec_fail(err, "%s: a segment's key or the fence is not of this context", what);
	case ERANGE:
		return csrec_fail(err, "%s: a segment leaves its device memory region", what);
	case EOPNOTSUPP:
		return csrec_fail(err, "%s: a segment's key is not device DRAM", what);
	case EIO:
		return csrec_fail(err, "%s: the drive reported an error", what);
	}
	return fail_common(dev, err, what);
}

static int p2p(struct csrec_dev *dev, unsigned long req, int fd, const struct csrec_p2p_seg *segs,
	       uint32_t n, uint32_t flags, uint32_t fence_key, uint64_t fence_value,
	       uint64_t *direct, uint64_t *bounced)
{
	uint64_t by_p2p = 0, by_bounce = 0;
	uint32_t i = 0, now;
	int ret = 0;

	do {
		struct csrec_p2p_read arg = {
			.size = sizeof(arg),
			.flags = flags,
			.fd = fd,
			.segs = (uintptr_t)(segs + i),
		};

		now = n - i < CSREC_P2P_MAX_SEGS ? n - i : CSREC_P2P_MAX_SEGS;
		arg.count = now;
		if (i + now == n) {
			arg.fence_key = fence_key;
			arg.fence_value = fence_value;
		}
		ret = csrec_ioctl(dev, req, &arg);
		by_p2p += arg.p2p_bytes;
		by_bounce += arg.bounce_bytes;
		if (ret) {
			ret = fail_p2p(dev, req, -ret, fd, segs + i, now, flags);
			break;
		}
		i += now;
	} while (i < n);

	if (direct)
		*direct = by_p2p;
	if (bounced)
		*bounced = by_bounce;
	return ret;
}

EXPORT int csrec_p2p_read(struct csrec_dev *dev, int fd, const struct csrec_p2p_seg *segs,
			  uint32_t n, uint32_t flags, uint32_t fence_key, uint64_t fence_value,
			  uint64_t *direct, uint64_t *bounced)
{
	return p2p(dev, CSREC_IOC_P2P_READ, fd, segs, n, flags, fence_key, fence_value, direct,
		   bounced);
}

EXPORT int csrec_p2p_write(struct csrec_dev *dev, int fd, const struct csrec_p2p_seg *segs,
			   uint32_t n, uint32_t flags, uint32_t fence_key, uint64_t fence_value,
			   uint64_t *direct, uint64_t *bounced)
{
	return p2p(dev, CSREC_IOC_P2P_WRITE, fd, segs, n, flags, fence_key, fence_value, direct,
		   bounced);
}
