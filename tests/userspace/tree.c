// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tree.h"

static int fail(const char *path)
{
	fprintf(stderr, "tree: %s: %s\n", path, strerror(errno));
	return -1;
}

/* mkdir -p of everything before the last slash, or of all of path */
static int mkdirs(const char *path, bool all)
{
	char buf[PATH_MAX];

	snprintf(buf, sizeof(buf), "%s", path);
	for (char *p = buf + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = 0;
		if (mkdir(buf, 0755) && errno != EEXIST)
			return fail(buf);
		*p = '/';
	}
	return all && mkdir(buf, 0755) && errno != EEXIST ? fail(buf) : 0;
}

static int write_file(const char *path, const void *data, size_t len)
{
	FILE *f;

	if (mkdirs(path, false))
		return -1;
	f = fopen(path, "we");
	if (!f)
		return fail(path);
	if (fwrite(data, 1, len, f) != len) {
		fclose(f);
		return fail(path);
	}
	return fclose(f) ? fail(path) : 0;
}

static void dev_dir(char *buf, size_t len, const char *root, const char *path)
{
	snprintf(buf, len, "%s/devices/pci0000:00/%s", root, path);
}

int tree_root_file(const char *root, const char *name, const char *text)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	return text ? write_file(path, text, strlen(text)) : mkdirs(path, true);
}

int tree_file(const char *root, const char *dev_path, const char *name, const char *text)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "devices/pci0000:00/%s/%s", dev_path, name);
	return tree_root_file(root, path, text);
}

static int number(const char *root, const char *dev, const char *name, const char *fmt, long value)
{
	char text[32];

	snprintf(text, sizeof(text), fmt, value);
	return tree_file(root, dev, name, text);
}

static void put16(uint8_t *p, unsigned int v)
{
	p[0] = v;
	p[1] = v >> 8;
}

int tree_add(const char *root, const struct tree_dev *d)
{
	const char *bdf = strrchr(d->path, '/') ? strrchr(d->path, '/') + 1 : d->path;
	char dir[PATH_MAX - 64], path[PATH_MAX], target[PATH_MAX];
	uint8_t config[512] = { 0 };
	int err;

	put16(config + 0x00, d->vendor);
	put16(config + 0x02, d->device);
	put16(config + 0x06, 0x0010);		/* has capabilities */
	config[0x08] = 1;
	config[0x09] = d->class;
	put16(config + 0x0a, d->class >> 8);
	config[0x0e] = d->type >= TREE_ROOT;	/* header of a bridge */
	config[0x34] = 0x40;
	config[0x40] = 0x10;			/* PCI Express, the only one */
	put16(config + 0x42, 2 | d->type << 4);
	put16(config + 0x4c, 4 | 8 << 4);	/* link capability: Gen4 x8 */
	put16(config + 0x52, d->speed | d->width << 4);
	if (d->acs != TREE_NO_ACS) {
		put16(config + 0x100, 0x000d);
		put16(config + 0x102, 1);
		put16(config + 0x106, d->acs);
	}

	dev_dir(dir, sizeof(dir), root, d->path);
	snprintf(path, sizeof(path), "%s/config", dir);
	err = write_file(path, config, d->short_config ? 64 : sizeof(config)) ||
	      number(root, d->path, "vendor", "0x%04lx\n", d->vendor) ||
	      number(root, d->path, "device", "0x%04lx\n", d->device) ||
	      number(root, d->path, "class", "0x%06lx\n", d->class) ||
	      number(root, d->path, "irq", "%ld\n", 0) ||
	      number(root, d->path, "numa_node", "%ld\n", d->numa_node) ||
	      tree_file(root, d->path, "current_link_speed", "8.0 GT/s PCIe\n") ||
	      number(root, d->path, "current_link_width", "%ld\n", d->width) ||
	      tree_file(root, d->path, "max_link_speed", "16.0 GT/s PCIe\n") ||
	      number(root, d->path, "max_link_width", "%ld\n", 8);
	if (err)
		return -1;

	snprintf(path, sizeof(path), "%s/bus/pci/devices/%s", root, bdf);
	snprintf(target, sizeof(target), "../../../devices/pci0000:00/%s", d->path);
	if (mkdirs(path, false))
		return -1;
	if (symlink(target, path))
		return fail(path);
	if (!d->driver)
		return 0;
	snprintf(target, sizeof(target), "%s/bus/pci/drivers/%s", root, d->driver);
	snprintf(path, sizeof(path), "%s/driver", dir);
	return mkdirs(target, true) || (symlink(target, path) ? fail(path) : 0);
}

int tree_lab(const char *root, bool bound, int acs, bool short_config)
{
	const char *const drive0 = "0000:00:02.0/0000:01:00.0/0000:02:00.0/0000:03:00.0";
	const char *const acc = "0000:00:02.0/0000:01:00.0/0000:02:01.0/0000:04:00.0";
	const char *const drive1 = "0000:00:03.0/0000:05:00.0";
	const struct tree_dev devs[] = {
		{ "0000:00:02.0", 0x1b36, 0x000c, 0x060400, TREE_ROOT, TREE_NO_ACS, -1, 3, 4,
		  "pcieport", short_config },
		{ "0000:00:02.0/0000:01:00.0", 0x104c, 0x8232, 0x060400, TREE_UPSTREAM,
		  TREE_NO_ACS, -1, 3, 4, "pcieport", short_config },
		{ "0000:00:02.0/0000:01:00.0/0000:02:00.0", 0x104c, 0x8233, 0x060400,
		  TREE_DOWNSTREAM, acs, -1, 3, 4, "pcieport", short_config },
		{ "0000:00:02.0/0000:01:00.0/0000:02:01.0", 0x104c, 0x8233, 0x060400,
		  TREE_DOWNSTREAM, acs, -1, 3, 4, "pcieport", short_config },
		{ drive0, 0x1b36, 0x0010, 0x010802, TREE_ENDPOINT, TREE_NO_ACS, 0, 3, 4, "nvme",
		  short_config },
		{ acc, 0x1234, 0xc5ec, 0x120000, TREE_ENDPOINT, TREE_NO_ACS, 1, 3, 4,
		  bound ? "csrec" : NULL, short_config },
		{ "0000:00:03.0", 0x1b36, 0x000c, 0x060400, TREE_ROOT, TREE_NO_ACS, -1, 3, 4,
		  "pcieport", short_config },
		{ drive1, 0x1b36, 0x0010, 0x010802, TREE_ENDPOINT, TREE_NO_ACS, -1, 3, 4, "nvme",
		  short_config },
	};

	for (size_t i = 0; i < sizeof(devs) / sizeof(devs[0]); i++)
		if (tree_add(root, &devs[i]))
			return -1;
	if (tree_file(root, drive0, "nvme/nvme0/nvme0n1", NULL) ||
	    tree_file(root, drive0, "nvme/nvme0/model", "Fake \"A\" drive   \n") ||
	    tree_root_file(root, "class/block/nvme0n1/size", "2048\n") ||
	    /* a controller that can have several paths: the block device is nvme1n1 */
	    tree_file(root, drive1, "nvme/nvme1/nvme1c1n1", NULL) ||
	    tree_file(root, drive1, "nvme/nvme1/model", "Fake B\n") ||
	    tree_root_file(root, "class/block/nvme1n1/size", "4096\n"))
		return -1;
	return bound && (tree_file(root, acc, "csrec/csrec0", NULL) ||
			 tree_file(root, acc, "p2pmem/size", "16777216\n")) ? -1 : 0;
}

#ifdef TREE_MAIN
/* mksysfs DIR [bound] [acs] [unprivileged] */
int main(int argc, char **argv)
{
	bool bound = false, acs = false, user = false;

	if (argc < 2) {
		fprintf(stderr, "usage: mksysfs DIR [bound] [acs] [unprivileged]\n");
		return 2;
	}
	for (int i = 2; i < argc; i++) {
		bound |= !strcmp(argv[i], "bound");
		acs |= !strcmp(argv[i], "acs");
		user |= !strcmp(argv[i], "unprivileged");
	}
	return tree_lab(argv[1], bound, acs ? 0x1d : 0, user) ? 1 : 0;
}
#endif
