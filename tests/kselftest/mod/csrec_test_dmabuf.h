/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/* ioctls of the test module csrec_test_dmabuf, on /dev/csrec_test_dmabuf. */
#ifndef CSREC_TEST_DMABUF_H
#define CSREC_TEST_DMABUF_H

#include <linux/types.h>
#include <linux/ioctl.h>

/*
 * ATTACH, once an open file: imports a dma-buf for the drive, as an importer of the sort that
 * flags say, and tells what it got. Undone by close, or when the exporter takes it back.
 */
struct csrec_test_attach {
	__s32	fd;
	__u32	flags;		/* CSREC_TEST_* */
	__u32	nents;		/* out */
	__u32	longest;	/* of a segment */
	__u64	total;		/* bytes of all segments */
	__u64	first;		/* bus address */
};

#define CSREC_TEST_PEER2PEER	(1 << 0)
#define CSREC_TEST_REVOCABLE	(1 << 1)
#define CSREC_TEST_STATIC	(1 << 2)	/* dma_buf_attach(), as old drivers do */
#define CSREC_TEST_SHORT	(1 << 3)	/* takes segments of up to 64 KiB */
#define CSREC_TEST_READS	(1 << 4)	/* and never writes */

/* How often the exporter has taken it back. */
#define CSREC_TEST_IOC_ATTACH	_IOWR('T', 1, struct csrec_test_attach)
#define CSREC_TEST_IOC_TAKEN	_IO('T', 2)

/* EXPORT, once an open file: a dma-buf of single pages, or with offset of parts of pages. */
struct csrec_test_export {
	__u32	pages;
	__u32	offset;
	__s32	fd;		/* out */
	__u32	flags;		/* CSREC_TEST_REVOCABLE: only for who lets it be taken back */
};

#define CSREC_TEST_IOC_EXPORT	_IOWR('T', 3, struct csrec_test_export)
/* Tells who listens that it is taken back; how many mappings of it are left at last. */
#define CSREC_TEST_IOC_REVOKE	_IO('T', 4)
#define CSREC_TEST_IOC_MAPS	_IO('T', 5)
/* How many importers have it pinned. */
#define CSREC_TEST_IOC_PINS	_IO('T', 6)
/* Begins to move it, or ends that. */
#define CSREC_TEST_IOC_MOVE	_IO('T', 7)

#endif
