/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Builds a sysfs with PCI devices in a directory, for discovery without hardware. */
#ifndef TREE_H
#define TREE_H

#include <stdbool.h>

/* PCIe port types, as in the capability */
#define TREE_ENDPOINT	0
#define TREE_ROOT	4
#define TREE_UPSTREAM	5
#define TREE_DOWNSTREAM	6

#define TREE_NO_ACS	-1

struct tree_dev {
	const char *path;	/* "0000:00:02.0/0000:01:00.0": bridges, then the device */
	unsigned int vendor, device, class;
	int type;		/* TREE_* */
	int acs;		/* ACS control register, or TREE_NO_ACS */
	int numa_node;
	unsigned int speed, width;	/* link, now; the most is Gen4 x8 */
	const char *driver;	/* NULL: none */
	bool short_config;	/* as a user without privilege sees it: 64 bytes */
};

/* 0, or -1 with a message on standard error. */
int tree_add(const char *root, const struct tree_dev *dev);

/* Makes a file or a directory below a device; text NULL: a directory. */
int tree_file(const char *root, const char *dev_path, const char *name, const char *text);

/* A directory of files by path below root. */
int tree_root_file(const char *root, const char *name, const char *text);

/*
 * The lab's topology: root port, switch, below it an NVMe drive 0000:03:00.0 (nvme0n1)
 * and a csrec device 0000:04:00.0; another drive 0000:05:00.0 (nvme1n1) below a second
 * root port. bound: with drivers, /dev/csrec0 and P2P memory.
 */
int tree_lab(const char *root, bool bound, int acs, bool short_config);

#endif
