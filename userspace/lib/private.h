/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of libcsrec share. */
#ifndef CSREC_PRIVATE_H
#define CSREC_PRIVATE_H

#include <pthread.h>
#include <csrec.h>

#define EXPORT __attribute__((visibility("default")))

/* One csrec_host_alloc(). */
struct arena {
	struct arena *next;
	void *ptr;
	size_t len;		/* as mapped */
	uint32_t key;
};

struct csrec_dev {
	int fd;
	int numa_node;
	uint32_t max_entries;
	char name[128];
	pthread_mutex_t lock;	/* protects arenas */
	struct arena *arenas;
};

struct csrec_queue {
	struct csrec_dev *dev;
	uint32_t id;
	uint32_t entries;
	uint32_t outstanding;	/* submitted, completion not taken */

	/* csrec_run(): cid i is command owner[i]; cids not in use are in free_cid[] */
	uint32_t *owner;
	uint16_t *free_cid;
	struct csrec_cmd *batch;
	struct csrec_cqe *cqes;

	void *bounce;		/* csrec_copy_*(), made at first use */
	uint32_t bounce_key;
};

/* Sets this thread's csrec_error() and returns -err. */
int csrec_fail(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *csrec_errno_text(int err);

void csrec_log(enum csrec_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* ioctl that resumes after signals: 0 or -errno, no message. */
int csrec_ioctl(const struct csrec_dev *dev, unsigned long req, void *arg);

const char *csrec_sysfs_root(void);
const char *csrec_dev_root(void);

#endif
