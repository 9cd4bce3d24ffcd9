// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "sys.h"

static const struct option longopts[] = {
	{ "output", required_argument, NULL, 'o' },
	{ NULL, 0, NULL, 0 },
};

/* Sections of lines: what is printed, as text or as JSON. */
static bool json;

static void begin(const char *name)
{
	if (json) {
		jw_object(NULL);
		jw_string("name", name);
		jw_array("lines");
	} else {
		printf("== %s\n", name);
	}
}

static void end(void)
{
	if (json) {
		jw_end();
		jw_end();
	} else {
		putchar('\n');
	}
}

static void line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void line(const char *fmt, ...)
{
	char buf[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	if (json)
		jw_string(NULL, buf);
	else
		puts(buf);
}

/* A whole text, line by line. */
static void lines(char *text)
{
	char *save;

	for (char *s = strtok_r(text, "\n", &save); s; s = strtok_r(NULL, "\n", &save))
		line("%s", s);
}

static void file_section(const char *name, const char *path)
{
	char *text;
	int ret = sys_slurp(path, &text, NULL);

	begin(name);
	if (ret) {
		line("not to be had: %s", sys_why_no_table(ret));
	} else {
		lines(text);
		free(text);
	}
	end();
}

static void versions(const struct csrec_found *d)
{
	char text[256];

	begin("versions");
	line("library %s, for driver interface %d.%d and device interface %d.%d",
	     csrec_lib_version(), CSREC_UAPI_MAJOR, CSREC_UAPI_MINOR, CSREC_HW_MAJOR,
	     CSREC_HW_MINOR);
	if (d->node[0])
		line("driver interface %s, device interface %s", sys_attr(d, "uapi_version"),
		     sys_attr(d, "hw_version"));
	if (sys_line(text, sizeof(text), "%s/module/csrec/version", sys_root()))
		line("module %s", text);
	if (sys_line(text, sizeof(text), "%s/module/csrec/srcversion", sys_root()))
		line("module source %s", text);
	if (sys_line(text, sizeof(text), "%s/version", sys_proc_root()))
		line("%s", text);
	if (sys_line(text, sizeof(text), "%s/cmdline", sys_proc_root()))
		line("kernel command line: %s", text);
	end();
}

static void pci(const struct csrec_found *d)
{
	static const char *const files[] = {
		"vendor", "device", "subsystem_vendor", "subsystem_device", "revision", "class",
		"numa_node", "current_link_speed", "current_link_width", "max_link_speed",
		"max_link_width", "enable", "power_state", "reset_method", "d3cold_allowed",
	};
	static struct sys_config config;
	char text[256], path[PATH_MAX], *all;

	begin("pci");
	line("address %s, below %s, driver %s", d->bdf, d->path[0] ? d->path : "the root complex",
	     d->driver[0] ? d->driver : "none");
	for (size_t i = 0; i < COUNT(files); i++)
		if (sys_line(text, sizeof(text), "%s/bus/pci/devices/%s/%s", sys_root(), d->bdf,
			     files[i]))
			line("%s %s", files[i], text);
	snprintf(path, sizeof(path), "%s/bus/pci/devices/%s/resource", sys_root(), d->bdf);
	if (!sys_slurp(path, &all, NULL)) {
		char *save, *s = strtok_r(all, "\n", &save);

		for (int bar = 0; s && bar < 6; bar++, s = strtok_r(NULL, "\n", &save))
			if (strncmp(s, "0x0000000000000000 0x0000000000000000", 37))
				line("BAR %d %s", bar, s);
		free(all);
	}
	sys_config(d->bdf, &config);
	for (size_t i = 0; i < config.len && i < 256; i += 16) {
		char hex[64];
		int at = 0;

		for (size_t j = i; j < i + 16 && j < config.len; j++)
			at += snprintf(hex + at, sizeof(hex) - at, " %02x", config.data[j]);
		line("config %02zx:%s", i, hex);
	}
	if (config.len <= 64)
		line("config beyond 0x40 needs root");
	end();
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Files of one directory of attributes, in the order of their names. */
static void attributes(const struct csrec_found *d, const char *sub)
{
	char path[PATH_MAX], name[512], *names[64];
	struct dirent *e;
	size_t n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/bus/pci/devices/%s/csrec/%s/%s", sys_root(), d->bdf,
		 sys_name(d), sub);
	dir = opendir(path);
	while (dir && (e = readdir(dir)) && n < COUNT(names))
		if (e->d_name[0] != '.' && (names[n] = strdup(e->d_name)))
			n++;
	if (dir)
		closedir(dir);
	qsort(names, n, sizeof(names[0]), compare);
	for (size_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%s%s%s", sub, sub[0] ? "/" : "", names[i]);
		if (strcmp(name, "uevent") && sys_attr(d, name)[0])
			line("%s %s", name, sys_attr(d, name));
		free(names[i]);
	}
}

static void capabilities(const struct csrec_found *d)
{
	static const char *const engines[] = { "copy", "emb", "tt", "interact", "mlp" };
	static const char *const fp[] = { "rtl", "dpi", "golden" };
	uint64_t q, t, e, l, v;
	char text[64] = "";
	size_t at = 0;

	if (!sys_number(d, "capabilities/cap_queue", &q) ||
	    !sys_number(d, "capabilities/cap_table", &t) ||
	    !sys_number(d, "capabilities/cap_engine", &e) ||
	    !sys_number(d, "capabilities/cap_limit", &l))
		return;
	begin("capabilities, decoded");
	line("%u I/O queues of up to %llu entries", CSREC_CAP(q, CSREC_CAPQ_IOQ, 8),
	     1ull << (CSREC_CAP(q, CSREC_CAPQ_ENTRIES, 8) & 63));
	line("%u interrupt vectors; doorbells at 0x%x, stride %llu",
	     CSREC_CAP(q, CSREC_CAPQ_VECTORS, 8), CSREC_CAP(q, CSREC_CAPQ_DB, 32),
	     1ull << (CSREC_CAP(q, CSREC_CAPQ_STRIDE, 8) & 63));
	line("%u region slots, %u fence slots", CSREC_CAP(t, CSREC_CAPT_REGIONS, 16),
	     CSREC_CAP(t, CSREC_CAPT_FENCES, 16));
	if (sys_number(d, "capabilities/cap_dram", &v))
		line("DRAM %s", cli_bytes(v));
	if (sys_number(d, "capabilities/cap_onchip", &v))
		line("on-chip memory %s", cli_bytes(v));
	for (size_t i = 0; i < COUNT(engines); i++)
		if (e & 1ull << i)
			at += snprintf(text + at, sizeof(text) - at, " %s", engines[i]);
	v = CSREC_CAP(e, CSREC_CAPE_FP, 4);
	line("engines%s; %u multiply-accumulators; fp32 units %s", text,
	     CSREC_CAP(e, CSREC_CAPE_MACS, 16), v < COUNT(fp) ? fp[v] : "unknown");
	line("row %u elements, %u vectors, TT-rank %u, layer width %u",
	     CSREC_CAP(l, CSREC_CAPL_DIM, 16), CSREC_CAP(l, CSREC_CAPL_VECS, 16),
	     CSREC_CAP(l, CSREC_CAPL_RANK, 16), CSREC_CAP(l, CSREC_CAPL_WIDTH, 16));
	end();
}

static void drives(const struct csrec_found *d)
{
	begin("drives");
	if (!d->drives)
		line("no NVMe drive in this machine");
	for (const struct csrec_drive *v = d->drives; v; v = v->next)
		line("%s %s %s: P2P %s: %s", v->bdf, v->node[0] ? v->node : "-", v->model,
		     v->p2p == CSREC_P2P_LIKELY ? "likely" : v->p2p == CSREC_P2P_NO ? "no" : "unknown",
		     v->p2p_why);
	end();
}

static void interrupts(const struct csrec_found *d)
{
	char path[PATH_MAX], *text, *save, *s;
	size_t len = strlen(sys_name(d));

	snprintf(path, sizeof(path), "%s/interrupts", sys_proc_root());
	begin("interrupts");
	if (!sys_slurp(path, &text, NULL)) {
		for (s = strtok_r(text, "\n", &save); s; s = strtok_r(NULL, "\n", &save))
			if (strlen(s) > len && !strcmp(s + strlen(s) - len, sys_name(d)))
				line("%s", s);
		free(text);
	}
	end();
}

/* What the driver left of a device that stopped working; the kernel drops it after a while. */
static void coredumps(const struct csrec_found *d)
{
	char path[PATH_MAX], real[PATH_MAX], *text;
	struct dirent *e;
	bool any = false;
	size_t len;
	DIR *dir;
	int ret;

	begin("devcoredump");
	snprintf(path, sizeof(path), "%s/class/devcoredump", sys_root());
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		if (strncmp(e->d_name, "devcd", 5))
			continue;
		snprintf(path, sizeof(path), "%s/class/devcoredump/%s/failing_device", sys_root(),
			 e->d_name);
		if (!realpath(path, real) || strcmp(strrchr(real, '/') + 1, d->bdf))
			continue;
		any = true;
		snprintf(path, sizeof(path), "%s/class/devcoredump/%s/data", sys_root(), e->d_name);
		line("%s", path);
		ret = sys_slurp(path, &text, &len);
		if (ret) {
			line("not to be had: %s", sys_why_no_table(ret));
		} else {
			if (strlen(text) == len)
				lines(text);
			else
				line("%zu bytes, no text", len);
			free(text);
		}
	}
	if (dir)
		closedir(dir);
	if (!any)
		line("none");
	end();
}

/* What the kernel's log has on the driver. */
static void kernel_log(const struct csrec_found *d)
{
	char path[PATH_MAX], record[8192], *s;
	int fd;

	begin("kernel log");
	snprintf(path, sizeof(path), "%s/kmsg", sys_dev_root());
	/* one record a read; the last read would wait */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		line("not to be had: %s", errno == EPERM || errno == EACCES ? "needs root" :
		     strerror(errno));
		end();
		return;
	}
	for (;;) {
		ssize_t n = read(fd, record, sizeof(record) - 1);
		unsigned long long us = 0;

		if (n < 0 && (errno == EPIPE || errno == EINTR))
			continue;	/* records were overwritten meanwhile */
		if (n <= 0)
			break;
		record[n] = 0;
		for (char *save, *r = strtok_r(record, "\n", &save); r; r = strtok_r(NULL, "\n", &save)) {
			/* "6,1234,5678,-;text"; lines that begin with a blank say more of the last */
			s = strchr(r, ';');
			if (r[0] == ' ' || !s || (!strstr(s, "csrec") && !strstr(s, d->bdf)))
				continue;
			/* the kernel's own may name csrec, and is no word of the driver */
			if (strstr(s, "ommand line:"))
				continue;
			if (sscanf(r, "%*u,%*u,%llu", &us) == 1)
				line("[%5llu.%06llu] %s", us / 1000000, us % 1000000, s + 1);
		}
	}
	close(fd);
	end();
}

static void dump(const struct csrec_found *d)
{
	static const char *const tables[] = { "registers", "queues", "regions", "fences",
					      "contexts" };
	char path[PATH_MAX], text[64];
	time_t t = time(NULL);

	if (json) {
		jw_begin();
		jw_string("address", d->bdf);
		jw_string("node", d->node);
		jw_array("sections");
	}
	begin("csrec dump");
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %z", localtime(&t));
	line("%s at %s, %s", d->node[0] ? d->node : "no node", d->bdf, text);
	end();
	versions(d);
	pci(d);
	if (d->node[0]) {
		begin("attributes");
		attributes(d, "");
		attributes(d, "capabilities");
		end();
		begin("statistics");
		attributes(d, "counters");
		attributes(d, "hw_counters");
		end();
		capabilities(d);
		for (size_t i = 0; i < COUNT(tables); i++) {
			snprintf(path, sizeof(path), "%s/kernel/debug/csrec/%s/%s", sys_root(),
				 sys_name(d), tables[i]);
			file_section(tables[i], path);
		}
		interrupts(d);
	}
	drives(d);
	coredumps(d);
	kernel_log(d);
	if (json) {
		jw_end();
		jw_finish();
	}
}

static int run(struct cli *cli, int argc, char **argv)
{
	struct csrec_found *list, *d;
	const char *output = NULL;
	int code, ret;

	while ((ret = cli_getopt(cli, argc, argv, longopts, &code)) != CLI_END) {
		if (ret == CLI_EXIT)
			return code;
		output = optarg;
	}
	if (cli_no_args(cli, argc, argv))
		return CLI_USAGE;
	code = sys_pick(cli, false, &list, &d);
	if (code)
		return code;
	if (output && strcmp(output, "-") && !freopen(output, "we", stdout)) {
		fprintf(stderr, "csrec dump: %s: %s\n", output, strerror(errno));
		csrec_list_free(list);
		return CLI_FAIL;
	}
	json = cli->json;
	dump(d);
	csrec_list_free(list);
	return CLI_OK;
}

const struct command cmd_dump = {
	.name = "dump",
	.help = "dump [--output FILE] [--device DEV] [--json]\n\n"
		"Writes versions, PCI state, attributes, counters, decoded capabilities, registers,\n"
		"queues, regions, fences, contexts, drives, what the driver left of a failure\n"
		"(devcoredump) and the kernel's log lines on it. It only reads. Registers, tables and\n"
		"log need root: without, the dump says so in their place. No data of any process is\n"
		"in it.\n\n"
		"  -o, --output FILE  instead of standard output, which is -\n",
	.run = run,
};
