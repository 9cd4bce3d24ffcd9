// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* csrec_list(): devices, their links, and the drives they could read peer-to-peer. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <pci/pci.h>
#include "private.h"

#define CLASS_NVME	0x0108		/* with any programming interface */
#define MAX_DEPTH	24		/* bridges above a device */

/* ACS control bits that send peer-to-peer requests up to the root complex */
#define ACS_REDIRECT	(PCI_ACS_CTRL_REQ_RED | PCI_ACS_CTRL_CMPLT_RED | PCI_ACS_CTRL_EGRESS)

/* The bridges above a device, from the root down. */
struct path {
	int depth;
	char bdf[MAX_DEPTH][16];
};

/*
 * libpci reports errors through a function that must not return and gets no context.
 * Nothing of ours is allocated between setjmp and the calls below it but what scan()
 * hangs on its list.
 */
static _Thread_local jmp_buf pci_failed;
static _Thread_local char pci_message[256];

static void on_error(char *fmt, ...) __attribute__((noreturn));
static void on_error(char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(pci_message, sizeof(pci_message), fmt, ap);
	va_end(ap);
	longjmp(pci_failed, 1);
}

static void on_warning(char *fmt, ...)
{
	char msg[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	csrec_log(CSREC_LOG_DEBUG, "libpci: %s", msg);
}

/* A path below sysfs; one that is too long names nothing. */
static void sysfs_path(char path[PATH_MAX], const char *fmt, va_list ap)
{
	int n = snprintf(path, PATH_MAX, "%s/", csrec_sysfs_root());

	if (n >= PATH_MAX || vsnprintf(path + n, PATH_MAX - n, fmt, ap) >= PATH_MAX - n)
		path[0] = 0;
}

/* Reads one line of a file below sysfs; false and "" if there is none. */
static bool read_line(char *buf, size_t len, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static bool read_line(char *buf, size_t len, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;
	FILE *f;

	va_start(ap, fmt);
	sysfs_path(path, fmt, ap);
	va_end(ap);

	buf[0] = 0;
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(buf, len, f))
		buf[0] = 0;
	fclose(f);
	for (size_t n = strlen(buf); n && isspace((unsigned char)buf[n - 1]); n--)
		buf[n - 1] = 0;
	return buf[0];
}

/* The target of a link below sysfs, without links on the way; false if there is none. */
static bool real_path(char real[PATH_MAX], const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static bool real_path(char real[PATH_MAX], const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;

	va_start(ap, fmt);
	sysfs_path(path, fmt, ap);
	va_end(ap);
	return realpath(path, real);
}

static DIR *open_dir(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static DIR *open_dir(const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;

	va_start(ap, fmt);
	sysfs_path(path, fmt, ap);
	va_end(ap);
	return opendir(path);
}

static void bdf_of(const struct pci_dev *p, char bdf[16])
{
	snprintf(bdf, 16, "%04x:%02x:%02x.%x", (unsigned int)p->domain & 0xffff, p->bus, p->dev,
		 p->func);
}

static int numa_node_of(const char *bdf)
{
	char line[16];

	return read_line(line, sizeof(line), "bus/pci/devices/%s/numa_node", bdf) ?
	       atoi(line) : -1;
}

static void driver_of(const char *bdf, char *driver, size_t len)
{
	char real[PATH_MAX];

	driver[0] = 0;
	if (real_path(real, "bus/pci/devices/%s/driver", bdf))
		snprintf(driver, len, "%s", strrchr(real, '/') + 1);
}

static void path_of(const char *bdf, struct path *path)
{
	char real[PATH_MAX], *save, *word;

	path->depth = 0;
	if (!real_path(real, "bus/pci/devices/%s", bdf))
		return;
	for (word = strtok_r(real, "/", &save); word; word = strtok_r(NULL, "/", &save)) {
		unsigned int d, b, s, f;
		int end = 0;

		if (sscanf(word, "%4x:%2x:%2x.%1x%n", &d, &b, &s, &f, &end) == 4 && !word[end] &&
		    strcmp(word, bdf) && path->depth < MAX_DEPTH)
			snprintf(path->bdf[path->depth++], 16, "%s", word);
	}
}

static uint32_t speed_to_mts(unsigned int code)
{
	static const uint32_t mts[] = { 0, 2500, 5000, 8000, 16000, 32000, 64000 };

	return code < sizeof(mts) / sizeof(mts[0]) ? mts[code] : 0;
}

/* "8.0 GT/s PCIe" */
static uint32_t text_to_mts(const char *text)
{
	unsigned int whole = 0, tenth = 0;

	sscanf(text, "%u.%1u", &whole, &tenth);
	return whole * 1000 + tenth * 100;
}

/* From the PCIe capability, or as sysfs has it where that cannot be read. */
static void link_of(struct pci_dev *p, struct csrec_found *d)
{
	struct pci_cap *cap = pci_find_cap(p, PCI_CAP_ID_EXP, PCI_CAP_NORMAL);
	uint32_t max = cap ? pci_read_long(p, cap->addr + PCI_EXP_LNKCAP) : ~0u;
	uint16_t now = cap ? pci_read_word(p, cap->addr + PCI_EXP_LNKSTA) : 0xffff;
	char line[64];

	if (max != ~0u && now != 0xffff) {
		d->link_mts = speed_to_mts(now & PCI_EXP_LNKSTA_SPEED);
		d->link_width = (now & PCI_EXP_LNKSTA_WIDTH) >> 4;
		d->link_max_mts = speed_to_mts(max & PCI_EXP_LNKCAP_SPEED);
		d->link_max_width = (max & PCI_EXP_LNKCAP_WIDTH) >> 4;
		return;
	}
	read_line(line, sizeof(line), "bus/pci/devices/%s/current_link_speed", d->bdf);
	d->link_mts = text_to_mts(line);
	read_line(line, sizeof(line), "bus/pci/devices/%s/current_link_width", d->bdf);
	d->link_width = atoi(line);
	read_line(line, sizeof(line), "bus/pci/devices/%s/max_link_speed", d->bdf);
	d->link_max_mts = text_to_mts(line);
	read_line(line, sizeof(line), "bus/pci/devices/%s/max_link_width", d->bdf);
	d->link_max_width = atoi(line);
}

/* The driver's node: a child of the device in its class. */
static void node_of(struct csrec_found *d)
{
	static const char *const classes[] = { "csrec", "misc" };
	struct dirent *e;

	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]) && !d->node[0]; i++) {
		DIR *dir = open_dir("bus/pci/devices/%s/%s", d->bdf, classes[i]);
		unsigned int n;
		int end = 0;

		while (dir && (e = readdir(dir)))
			if (sscanf(e->d_name, "csrec%u%n", &n, &end) == 1 && !e->d_name[end])
				snprintf(d->node, sizeof(d->node), "%s/csrec%u", csrec_dev_root(), n);
		if (dir)
			closedir(dir);
	}
}

static struct pci_dev *find_dev(struct pci_access *acc, const char *bdf)
{
	struct pci_dev *p;
	char this[16];

	for (p = acc->devices; p; p = p->next) {
		bdf_of(p, this);
		if (!strcmp(this, bdf))
			return p;
	}
	return NULL;
}

/* The PCIe port type of a bridge, -1 if it cannot be read. */
static int port_type(struct pci_access *acc, const char *bdf)
{
	struct pci_dev *p = find_dev(acc, bdf);
	struct pci_cap *cap;
	uint16_t flags;

	if (!p)
		return -1;
	pci_fill_info(p, PCI_FILL_CAPS);
	cap = pci_find_cap(p, PCI_CAP_ID_EXP, PCI_CAP_NORMAL);
	if (!cap)
		return -1;
	flags = pci_read_word(p, cap->addr + PCI_EXP_FLAGS);
	return flags == 0xffff ? -1 : (flags & PCI_EXP_FLAGS_TYPE) >> 4;
}

/* Does this bridge redirect peer-to-peer requests? -1: cannot be read. */
static int redirects(struct pci_access *acc, const char *bdf)
{
	struct pci_dev *p = find_dev(acc, bdf);
	struct pci_cap *cap;
	uint8_t probe[4];

	if (!p || !pci_read_block(p, 0x100, probe, sizeof(probe)))
		return -1;
	pci_fill_info(p, PCI_FILL_CAPS | PCI_FILL_EXT_CAPS);
	cap = pci_find_cap(p, PCI_EXT_CAP_ID_ACS, PCI_CAP_EXTENDED);
	return cap && pci_read_word(p, cap->addr + PCI_ACS_CTRL) & ACS_REDIRECT;
}

/* Would the kernel let drive and device talk directly, and if not, why. */
static void judge(struct pci_access *acc, const struct csrec_found *d, struct csrec_drive *drv)
{
	struct path a, b;
	int n = 0, acs = 0;
	const char *where = "";

	path_of(d->bdf, &a);
	path_of(drv->bdf, &b);
	while (n < a.depth && n < b.depth && !strcmp(a.bdf[n], b.bdf[n]))
		n++;
	if (n) {
		int type;

		snprintf(drv->common, sizeof(drv->common), "%s", a.bdf[n - 1]);
		type = port_type(acc, drv->common);
		/* unreadable: two ports below one bridge are a switch all but surely */
		drv->shares_switch = type < 0 || type == PCI_EXP_TYPE_UPSTREAM;
	}
	/* redirection counts at every port from the common one down to either end */
	for (int i = n - 1; n && i < a.depth && !acs; i++) {
		where = a.bdf[i];
		acs = redirects(acc, where);
	}
	for (int i = n; n && i < b.depth && !acs; i++) {
		where = b.bdf[i];
		acs = redirects(acc, where);
	}

	drv->p2p = CSREC_P2P_UNKNOWN;
	if (!drv->node[0]) {
		drv->p2p = CSREC_P2P_NO;
		snprintf(drv->p2p_why, sizeof(drv->p2p_why), "the drive has no block device");
	} else if (d->node[0] && !d->p2pmem) {
		drv->p2p = CSREC_P2P_NO;
		snprintf(drv->p2p_why, sizeof(drv->p2p_why),
			 "the kernel offers no P2P memory (CONFIG_PCI_P2PDMA)");
	} else if (!n) {
		snprintf(drv->p2p_why, sizeof(drv->p2p_why),
			 "different root ports, left to the kernel's list of root complexes");
	} else if (acs > 0) {
		snprintf(drv->p2p_why, sizeof(drv->p2p_why),
			 "ACS at %s redirects it through the root complex", where);
	} else if (acs < 0) {
		snprintf(drv->p2p_why, sizeof(drv->p2p_why),
			 "ACS of %s can only be read by root", where);
	} else if (!d->node[0]) {
		snprintf(drv->p2p_why, sizeof(drv->p2p_why), "csrec.ko is not bound");
	} else {
		drv->p2p = CSREC_P2P_LIKELY;
		snprintf(drv->p2p_why, sizeof(drv->p2p_why), "both below %s %s",
			 drv->shares_switch ? "switch" : "bridge", drv->common);
	}
}

static struct csrec_drive *add_drive(struct csrec_found *d, const char *bdf)
{
	struct csrec_drive *drv = calloc(1, sizeof(*drv)), **link = &d->drives;

	if (!drv)
		return NULL;
	while (*link)
		link = &(*link)->next;
	*link = drv;
	snprintf(drv->bdf, sizeof(drv->bdf), "%s", bdf);
	drv->numa_node = numa_node_of(bdf);
	return drv;
}

/* Appends the namespaces of one NVMe controller, or one entry without node. */
static int add_drives(struct csrec_found *d, const char *bdf)
{
	char ctrl[32] = "", line[64];
	struct dirent *e;
	struct csrec_drive *drv;
	bool any = false;
	DIR *dir;

	dir = open_dir("bus/pci/devices/%s/nvme", bdf);
	while (dir && (e = readdir(dir)))
		if (!strncmp(e->d_name, "nvme", 4))
			snprintf(ctrl, sizeof(ctrl), "%.31s", e->d_name);
	if (dir)
		closedir(dir);

	dir = ctrl[0] ? open_dir("bus/pci/devices/%s/nvme/%s", bdf, ctrl) : NULL;
	while (dir && (e = readdir(dir))) {
		unsigned int subsys, path, ns;
		int end = 0;

		/* with multipath the path is nvme0c1n2 and the block device nvme0n2 */
		if (!((sscanf(e->d_name, "nvme%un%u%n", &subsys, &ns, &end) == 2 ||
		       sscanf(e->d_name, "nvme%uc%un%u%n", &subsys, &path, &ns, &end) == 3) &&
		      !e->d_name[end]))
			continue;
		drv = add_drive(d, bdf);
		if (!drv) {
			closedir(dir);
			return -ENOMEM;
		}
		any = true;
		snprintf(drv->node, sizeof(drv->node), "%s/nvme%un%u", csrec_dev_root(), subsys, ns);
		read_line(drv->model, sizeof(drv->model), "bus/pci/devices/%s/nvme/%s/model", bdf,
			  ctrl);
		if (read_line(line, sizeof(line), "class/block/nvme%un%u/size", subsys, ns))
			drv->size = strtoull(line, NULL, 10) * 512;
	}
	if (dir)
		closedir(dir);
	return any || add_drive(d, bdf) ? 0 : -ENOMEM;
}

/* The drives in every entry, in address order, whatever order libpci has. */
static int scan_drives(struct pci_access *acc, struct csrec_found *d)
{
	char bdf[16], last[16] = "", next[16];

	for (;;) {
		next[0] = 0;
		for (struct pci_dev *p = acc->devices; p; p = p->next) {
			if (p->device_class != CLASS_NVME)
				continue;
			bdf_of(p, bdf);
			if (strcmp(bdf, last) > 0 && (!next[0] || strcmp(bdf, next) < 0))
				strcpy(next, bdf);
		}
		if (!next[0])
			break;
		if (add_drives(d, next))
			return -ENOMEM;
		strcpy(last, next);
	}
	for (struct csrec_drive *drv = d->drives; drv; drv = drv->next)
		judge(acc, d, drv);
	return 0;
}

static int scan(struct pci_access *acc, struct csrec_found **list)
{
	struct csrec_found *d, **link;
	struct pci_dev *p;
	struct path path;
	char real[PATH_MAX];
	size_t n;

	pci_init(acc);
	pci_scan_bus(acc);
	for (p = acc->devices; p; p = p->next)
		pci_fill_info(p, PCI_FILL_IDENT | PCI_FILL_CLASS);
	for (p = acc->devices; p; p = p->next) {
		if (p->vendor_id != CSREC_PCI_VENDOR || p->device_id != CSREC_PCI_DEVICE)
			continue;
		d = calloc(1, sizeof(*d));
		if (!d)
			return -ENOMEM;
		bdf_of(p, d->bdf);
		for (link = list; *link && strcmp((*link)->bdf, d->bdf) < 0;)
			link = &(*link)->next;
		d->next = *link;
		*link = d;

		pci_fill_info(p, PCI_FILL_CAPS | PCI_FILL_EXT_CAPS);
		d->vendor = p->vendor_id;
		d->device = p->device_id;
		d->revision = pci_read_byte(p, PCI_REVISION_ID);
		d->numa_node = numa_node_of(d->bdf);
		driver_of(d->bdf, d->driver, sizeof(d->driver));
		node_of(d);
		link_of(p, d);
		d->p2pmem = real_path(real, "bus/pci/devices/%s/p2pmem", d->bdf);
		path_of(d->bdf, &path);
		n = 0;
		for (int i = 0; i < path.depth && n < sizeof(d->path); i++)
			n += snprintf(d->path + n, sizeof(d->path) - n, "%s%s", i ? "/" : "",
				      path.bdf[i]);
		if (scan_drives(acc, d))
			return -ENOMEM;
	}
	return 0;
}

EXPORT int csrec_list(struct csrec_found **out)
{
	/* survives the longjmp: neither is changed after setjmp */
	struct pci_access *const acc = pci_alloc();
	struct csrec_found **const list = calloc(1, sizeof(*list));
	char path[PATH_MAX];
	int ret;

	if (!list) {
		pci_cleanup(acc);
		return csrec_fail(ENOMEM, "no memory for the list of devices");
	}
	snprintf(path, sizeof(path), "%s/bus/pci", csrec_sysfs_root());
	acc->method = PCI_ACCESS_SYS_BUS_PCI;
	acc->error = on_error;
	acc->warning = on_warning;
	acc->debug = on_warning;
	pci_set_param(acc, "sysfs.path", path);

	if (!setjmp(pci_failed)) {
		ret = scan(acc, list);
		if (ret)
			csrec_fail(-ret, "no memory for the list of devices");
	} else {
		ret = csrec_fail(ENODEV, "cannot list the PCI bus in %s: %s", path, pci_message);
	}
	if (!ret)
		*out = *list;
	else
		csrec_list_free(*list);
	free(list);
	pci_cleanup(acc);
	return ret;
}

EXPORT void csrec_list_free(struct csrec_found *list)
{
	struct csrec_found *d;
	struct csrec_drive *drv;

	while ((d = list)) {
		list = d->next;
		while ((drv = d->drives)) {
			d->drives = drv->next;
			free(drv);
		}
		free(d);
	}
}
