/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of libcsrec share. */
#ifndef CSREC_PRIVATE_H
#define CSREC_PRIVATE_H

#include <pthread.h>
#include <csrec.h>
#include "ring.h"

#define EXPORT __attribute__((visibility("default")))

/* One csrec_host_alloc(). */
struct arena {
	struct arena *next;
	void *ptr;
	size_t len;		/* as mapped */
	uint32_t key;
};

/* A DRAM region that can be mapped. */
struct region {
	struct region *next;
	uint32_t key;
	uint64_t len;
	uint64_t offset;	/* for mmap() */
	void *map;		/* the library's own mapping, made at first use */
};

/* One csrec_mem_map(). */
struct mapping {
	struct mapping *next;
	void *ptr;
	size_t len;
};

struct csrec_dev {
	int fd;
	int numa_node;
	uint32_t max_entries;
	uint32_t features;
	uint16_t uapi_minor;
	char name[128];
	pthread_mutex_t lock;	/* protects the lists */
	struct arena *arenas;
	struct region *regions;
	struct mapping *mappings;
};

struct csrec_queue {
	struct csrec_dev *dev;
	uint32_t id;
	uint32_t entries;
	uint32_t outstanding;	/* submitted, completion not taken */
	bool irq;		/* the driver can sleep for it */
	int error;		/* what a mapped queue was found to have died of, 0 or < 0 */

	/* mapped: */
	bool mapped;
	struct ring ring;
	void *ring_map;
	size_t ring_len;
	void *db_map;
	size_t db_len;
	uint32_t spin;		/* looks before a system call */
	bool adapt;		/* spin follows what is seen */
	uint32_t idle;		/* looks in vain since the last system call */

	/* csrec_run(): cid i is command owner[i]; cids not in use are in free_cid[] */
	uint32_t *owner;
	uint16_t *free_cid;
	struct csrec_cmd *batch;
	struct csrec_cqe *cqes;

	void *bounce;		/* csrec_copy_*(), csrec_file_read(); made at first use */
	uint32_t bounce_key;
};

#define BOUNCE_LEN	(256u << 10)
int csrec_bounce(struct csrec_queue *q);

/* mapped.c */
int csrec_mapped_init(struct csrec_queue *q, const struct csrec_queue_create *arg);
void csrec_mapped_exit(struct csrec_queue *q);
int csrec_mapped_submit(struct csrec_queue *q, const struct csrec_cmd *cmds, uint32_t n);
int csrec_mapped_wait(struct csrec_queue *q, struct csrec_cqe *cqes, uint32_t min, uint32_t max,
		      int64_t end);

/* Times of CLOCK_MONOTONIC in ns; besides: */
#define NEVER	(-1)
#define NOW	0
int64_t csrec_now(void);
/* For who must look again and again: sleeps, the longer the more naps, but not past end. */
void csrec_nap(uint32_t naps, int64_t end);

/* device.c: the library's own mapping of a DRAM region, and its length. */
int csrec_region_map(struct csrec_dev *dev, uint32_t key, void **ptr, uint64_t *len);

/* Sets this thread's csrec_error() and returns -err. */
int csrec_fail(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same for what is no failure but part of work: a constant, not logged. */
int csrec_fail_fast(int err, const char *text);
const char *csrec_errno_text(int err);

void csrec_log(enum csrec_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* ioctl that resumes after signals: 0 or -errno, no message. */
int csrec_ioctl(const struct csrec_dev *dev, unsigned long req, void *arg);

const char *csrec_sysfs_root(void);
const char *csrec_dev_root(void);

#endif
