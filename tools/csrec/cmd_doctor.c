// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
#include "sys.h"

enum { OPT_STRICT = 1 };

static const struct option longopts[] = {
	{ "strict", no_argument, NULL, OPT_STRICT },
	{ NULL, 0, NULL, 0 },
};

enum result { OK, WARN, FAIL, SKIP, RESULTS };

static const char *const result_names[] = { "ok", "warn", "fail", "skip" };

static bool json;
static unsigned int counts[RESULTS];

/* One check: what was found, and for warn and fail what to do about it. */
static void say(enum result r, const char *name, const char *remedy, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
static void say(enum result r, const char *name, const char *remedy, const char *fmt, ...)
{
	char reason[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	counts[r]++;
	if (json) {
		jw_object(NULL);
		jw_string("name", name);
		jw_string("result", result_names[r]);
		jw_string("reason", reason);
		jw_string("remedy", remedy ? remedy : "");
		jw_end();
	} else {
		printf("%-4s  %-12s %s\n", result_names[r], name, reason);
		if (remedy)
			printf("      %-12s do: %s\n", "", remedy);
	}
}

static void check_versions(const struct csrec_found *d)
{
	unsigned int major, minor;
	const char *s = sys_attr(d, "uapi_version");

	if (sscanf(s, "%u.%u", &major, &minor) != 2)
		say(WARN, "versions", "install csrec.ko of the same release as this program",
		    "the driver does not say its version: it is older than 1.1");
	else if (major != CSREC_UAPI_MAJOR)
		say(FAIL, "versions", "install csrec.ko and this program from the same release",
		    "the driver's interface is version %s, this program needs %d.x", s,
		    CSREC_UAPI_MAJOR);
	else if ((int)minor < CSREC_UAPI_MINOR)
		say(WARN, "versions", "install csrec.ko of the same release as this program",
		    "the driver's interface is version %s, this program knows %d.%d: what is newer will not work",
		    s, CSREC_UAPI_MAJOR, CSREC_UAPI_MINOR);
	else
		say(OK, "versions", NULL, "driver interface %s, device interface %s, library %s", s,
		    sys_attr(d, "hw_version"), csrec_lib_version());
}

static void check_node(const struct csrec_found *d)
{
	if (!access(d->node, R_OK | W_OK))
		say(OK, "node", NULL, "%s can be opened", d->node);
	else if (errno == ENOENT)
		say(FAIL, "node", "see whether udev (or devtmpfs) runs; reload csrec.ko",
		    "%s does not exist, though the driver has registered it", d->node);
	else if (errno == EACCES)
		say(FAIL, "node", "add the user to the group csrec, log in anew, and see that the udev rule is installed",
		    "%s: this user may not open it", d->node);
	else
		say(FAIL, "node", "see the kernel's log (csrec dump)", "%s: %s", d->node,
		    strerror(errno));
}

static void check_state(const struct csrec_found *d)
{
	const char *state = sys_attr(d, "state");
	uint64_t resets;

	if (!state[0]) {
		say(SKIP, "state", NULL, "this driver does not tell");
	} else if (!strcmp(state, "failed")) {
		say(FAIL, "state", "keep csrec dump --output FILE for a report, then csrec reset",
		    "the device does not answer; every call gives EIO");
	} else if (!strcmp(state, "live")) {
		sys_number(d, "counters/queue_resets", &resets);
		if (resets)
			say(WARN, "state", "see the kernel's log and devcoredump (csrec dump)",
			    "live, but the driver has reset %" PRIu64 " queues that made no progress",
			    resets);
		else
			say(OK, "state", NULL, "live, no queue had to be reset");
	} else {
		say(FAIL, "state", "wait; if it stays so, remove the device and rescan the PCI bus",
		    "the device is %s", state);
	}
}

static void check_vectors(const struct csrec_found *d)
{
	uint64_t have, want;

	if (!sys_number(d, "vectors", &have) || !sys_number(d, "vectors_wanted", &want))
		say(SKIP, "vectors", NULL, "this driver does not tell");
	else if (have < want)
		say(WARN, "vectors", "look for who takes the vectors (/proc/interrupts), and for pci=nomsi or a small MSI-X table in a virtual machine",
		    "%" PRIu64 " of %" PRIu64 " MSI-X vectors: queues share interrupts", have, want);
	else
		say(OK, "vectors", NULL, "all %" PRIu64 " MSI-X vectors", want);
}

/* [start, end] of a BAR; false if there is none. */
static bool bar(const struct csrec_found *d, int nr, uint64_t *start, uint64_t *size)
{
	char path[PATH_MAX];
	unsigned long long s = 0, e = 0;
	bool ok = true;
	FILE *f;

	snprintf(path, sizeof(path), "%s/bus/pci/devices/%s/resource", sys_root(), d->bdf);
	f = fopen(path, "re");
	if (!f)
		return false;
	for (int i = 0; ok && i <= nr; i++)
		ok = fscanf(f, "%llx %llx %*x", &s, &e) == 2;
	fclose(f);
	*start = s;
	*size = ok && e > s ? e - s + 1 : 0;
	return *size;
}

/* What P2P memory must be aligned to: a subsection of the kernel's memory map. */
#define P2P_ALIGN	(2ull << 20)

/* Whether P2P can do with it. */
static bool check_bar(const struct csrec_found *d)
{
	uint64_t start, size, dram;
	bool known = sys_number(d, "capabilities/cap_dram", &dram);

	if (!bar(d, CSREC_BAR_DRAM, &start, &size)) {
		say(WARN, "bar", "give the slot more 64-bit prefetchable space: firmware (Above 4G Decoding), pci=realloc, or pref64-reserve in QEMU",
		    "BAR %d, which shows the device's DRAM, was given no address: no P2P",
		    CSREC_BAR_DRAM);
		return false;
	}
	if (start % P2P_ALIGN || size < P2P_ALIGN) {
		say(WARN, "bar", "another placement by the kernel (pci=realloc), or a larger BAR",
		    "BAR %d, %s at 0x%" PRIx64 ", is not made of aligned 2 MiB: no P2P",
		    CSREC_BAR_DRAM, cli_bytes(size), start);
		return false;
	}
	if (known && size < dram)
		say(WARN, "bar", "enable resizable BARs or Above 4G Decoding in the firmware",
		    "BAR %d shows %s of %s of DRAM; only these can be used",
		    CSREC_BAR_DRAM, cli_bytes(size), cli_bytes(dram));
	else
		say(OK, "bar", NULL, "BAR %d, %s at 0x%" PRIx64, CSREC_BAR_DRAM, cli_bytes(size),
		    start);
	return true;
}

/* CONFIG_PCI_P2PDMA of the running kernel: 1, 0, -1 if it cannot be found out. */
static int kernel_has_p2pdma(char *release, size_t len)
{
	char path[PATH_MAX], *text;
	int has = -1;

	if (!sys_line(release, len, "%s/sys/kernel/osrelease", sys_proc_root()))
		return -1;
	snprintf(path, sizeof(path), "%s/config-%s", sys_boot_root(), release);
	if (!sys_slurp(path, &text, NULL)) {
		has = strstr(text, "\nCONFIG_PCI_P2PDMA=y") != NULL;
		free(text);
		return has;
	}
	/* without the configuration: is its function there? */
	snprintf(path, sizeof(path), "%s/kallsyms", sys_proc_root());
	if (!sys_slurp(path, &text, NULL)) {
		has = strstr(text, " pci_p2pdma_add_resource\n") != NULL;
		free(text);
	}
	return has;
}

/* Whether P2P is possible as far as kernel and BAR are concerned. */
static bool check_p2pdma(const struct csrec_found *d, bool bar_ok)
{
	char release[128];
	int has = kernel_has_p2pdma(release, sizeof(release));

	if (has == 0)
		say(WARN, "p2pdma", "boot a kernel with CONFIG_PCI_P2PDMA=y (Debian: from 6.13 on)",
		    "no PCI_P2PDMA in kernel %s: drive reads bounce through host memory", release);
	else if (d->p2pmem)
		say(OK, "p2pdma", NULL, "the kernel offers the device's DRAM to other devices");
	else if (!bar_ok)
		say(WARN, "p2pdma", "see bar", "the kernel has not taken the BAR");
	else
		say(WARN, "p2pdma", has > 0 ? "see the kernel's log (csrec dump)" :
		    "boot a kernel with CONFIG_PCI_P2PDMA=y (Debian: from 6.13 on)",
		    "the kernel does not offer the device's DRAM to other devices: drive reads bounce");
	return d->p2pmem;
}

/* Is this namespace a path below a multipath head? */
static bool multipath(const struct csrec_drive *v)
{
	char path[PATH_MAX];
	unsigned int subsys, ns, a, b, c;
	struct dirent *e, *f;
	bool found = false;
	DIR *dir, *sub;
	const char *slash = strrchr(v->node, '/');
	int end = 0;

	if (!slash || sscanf(slash, "/nvme%un%u", &subsys, &ns) != 2)
		return false;
	snprintf(path, sizeof(path), "%s/bus/pci/devices/%s/nvme", sys_root(), v->bdf);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		if (strncmp(e->d_name, "nvme", 4))
			continue;
		snprintf(path, sizeof(path), "%s/bus/pci/devices/%s/nvme/%s", sys_root(), v->bdf,
			 e->d_name);
		sub = opendir(path);
		while (sub && (f = readdir(sub)))
			if (sscanf(f->d_name, "nvme%uc%un%u%n", &a, &b, &c, &end) == 3 &&
			    !f->d_name[end] && a == subsys && c == ns)
				found = true;
		if (sub)
			closedir(sub);
	}
	if (dir)
		closedir(dir);
	return found;
}

static const char *drive_remedy(const struct csrec_drive *v)
{
	if (!v->node[0])
		return "bind the nvme driver, and create a namespace";
	if (strstr(v->p2p_why, "by root"))
		return "run csrec doctor as root";
	if (strstr(v->p2p_why, "ACS"))
		return "boot with pci=disable_acs_redir= and the address of the port, if isolation by the IOMMU is not needed there";
	if (!v->common[0])
		return "put drive and device below one PCIe switch; csrec p2p --only shows whether this root complex can";
	return "csrec p2p --only shows whether it works";
}

static void check_drives(const struct csrec_found *d, bool p2p)
{
	char release[128] = "", name[64];

	if (!d->drives) {
		say(WARN, "drives", "none, if no drive is to be read", "no NVMe drive in this machine");
		return;
	}
	sys_line(release, sizeof(release), "%s/sys/kernel/osrelease", sys_proc_root());
	for (const struct csrec_drive *v = d->drives; v; v = v->next) {
		const char *slash = strrchr(v->node, '/');

		snprintf(name, sizeof(name), "%s", slash ? slash + 1 : v->bdf);
		if (!p2p)
			say(SKIP, name, NULL, "no P2P with any drive, see above");
		else if (v->p2p != CSREC_P2P_LIKELY)
			say(WARN, name, drive_remedy(v), "%s: %s", v->bdf, v->p2p_why);
		else if (multipath(v) && atoi(release) < 7)
			say(WARN, name, "boot with nvme_core.multipath=N",
			    "%s is a multipath head, through which kernel %s does no P2P", v->node,
			    release);
		else
			say(OK, name, NULL, "%s: P2P likely, %s%s", v->bdf, v->p2p_why,
			    multipath(v) ? ", by a multipath head" : "");
	}
}

/* Enough for the buffers of one program. */
#define MEMLOCK_WANTED	(64ull << 20)

static void check_memlock(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_MEMLOCK, &r))
		say(SKIP, "memlock", NULL, "the limit cannot be read");
	else if (!geteuid())
		say(OK, "memlock", NULL, "root is not limited");
	else if (r.rlim_cur != RLIM_INFINITY && r.rlim_cur < MEMLOCK_WANTED)
		say(WARN, "memlock", "raise memlock in /etc/security/limits.conf, or LimitMEMLOCK= of the service",
		    "this user may pin %s of memory (ulimit -l); registering more gives ENOMEM",
		    cli_bytes(r.rlim_cur));
	else
		say(OK, "memlock", NULL, "this user may pin %s",
		    r.rlim_cur == RLIM_INFINITY ? "all memory" : cli_bytes(r.rlim_cur));
}

static void check_iommu(const struct csrec_found *d)
{
	char type[64];

	if (!sys_exists("%s/bus/pci/devices/%s/iommu_group", sys_root(), d->bdf))
		say(OK, "iommu", NULL, "none for this device");
	else if (!sys_line(type, sizeof(type), "%s/bus/pci/devices/%s/iommu_group/type", sys_root(),
			   d->bdf))
		say(SKIP, "iommu", NULL, "the kernel does not tell its mode");
	else if (!strcmp(type, "identity"))
		say(OK, "iommu", NULL, "passes addresses through");
	else
		say(WARN, "iommu", "boot with iommu=pt if devices are trusted",
		    "translates (%s): ports are then set to redirect, and P2P takes the way through the root complex",
		    type);
}

static void check_all(const struct csrec_found *d)
{
	bool bar_ok;

	say(OK, "device", NULL, "%s, csrec below %s", d->bdf,
	    d->path[0] ? d->path : "the root complex");
	if (!d->node[0]) {
		if (d->driver[0])
			say(FAIL, "driver", "unbind it and load csrec.ko",
			    "%s is bound, which makes no csrec node", d->driver);
		else
			say(FAIL, "driver", "modprobe csrec; if that fails, see the kernel's log (csrec dump)",
			    "no driver is bound");
		check_bar(d);
		return;
	}
	say(OK, "driver", NULL, "%s is bound", d->driver);
	check_versions(d);
	check_node(d);
	check_state(d);
	check_vectors(d);
	bar_ok = check_bar(d);
	check_drives(d, check_p2pdma(d, bar_ok));
	check_memlock();
	check_iommu(d);
}

static int run(struct cli *cli, int argc, char **argv)
{
	struct csrec_found *list = NULL, *d = NULL;
	bool strict = false;
	int code, ret;

	while ((ret = cli_getopt(cli, argc, argv, longopts, &code)) != CLI_END) {
		if (ret == CLI_EXIT)
			return code;
		strict = true;
	}
	if (cli_no_args(cli, argc, argv))
		return CLI_USAGE;
	json = cli->json;
	ret = csrec_list(&list);
	if (!ret && list) {
		csrec_list_free(list);
		/* a device that was asked for by name and is not there is no finding */
		code = sys_pick(cli, false, &list, &d);
		if (code)
			return code;
	}
	if (json) {
		jw_begin();
		jw_string("address", d ? d->bdf : "");
		jw_string("node", d ? d->node : "");
		jw_array("checks");
	}
	if (ret)
		say(FAIL, "device", "run it where the PCI bus is visible", "%s", csrec_error());
	else if (!d)
		say(FAIL, "device", "see that the card is seated, powered and configured: lspci -d 1234:c5ec",
		    "no csrec device (%04x:%04x) on the PCI bus", CSREC_PCI_VENDOR,
		    CSREC_PCI_DEVICE);
	else
		check_all(d);
	code = counts[FAIL] || (strict && counts[WARN]) ? CLI_FAIL : CLI_OK;
	if (json) {
		jw_end();
		jw_uint("ok", counts[OK]);
		jw_uint("warnings", counts[WARN]);
		jw_uint("failed", counts[FAIL]);
		jw_uint("exit", code);
		jw_finish();
	} else {
		printf("%u ok, %u warnings, %u failed\n", counts[OK], counts[WARN], counts[FAIL]);
	}
	if (d)
		csrec_list_free(list);
	return code;
}

const struct command cmd_doctor = {
	.name = "doctor",
	.help = "doctor [--strict] [--device DEV] [--json]\n\n"
		"Checks in this order: device, driver, versions, device node, state, interrupt\n"
		"vectors, BAR, CONFIG_PCI_P2PDMA, each drive (topology, ACS, multipath), the limit on\n"
		"pinned memory, the IOMMU. Each gives ok, warn (works, but not as well as it could: a\n"
		"drive that is read through host memory, for example), fail, or skip; with a reason,\n"
		"and for warn and fail a remedy. It only reads. ACS can be read by root only.\n\n"
		"Exit status 0 if nothing failed, else 1.\n\n"
		"  --strict  a warning counts as a failure\n",
	.run = run,
};
