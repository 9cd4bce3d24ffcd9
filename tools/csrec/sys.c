// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* sysfs, debugfs and procfs for the commands for administrators. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "sys.h"

#define MAX_FILE	(16u << 20)

static const char *root(const char *env, const char *def)
{
	const char *s = getenv(env);

	return s && *s ? s : def;
}

const char *sys_root(void)
{
	return root("CSREC_SYSFS", "/sys");
}

const char *sys_dev_root(void)
{
	return root("CSREC_DEV", "/dev");
}

const char *sys_proc_root(void)
{
	return root("CSREC_PROC", "/proc");
}

const char *sys_boot_root(void)
{
	return root("CSREC_BOOT", "/boot");
}

int sys_slurp(const char *path, char **text, size_t *len)
{
	size_t n = 0, room = 0;
	char *buf = NULL, *more;
	ssize_t got = 0;
	int err = 0, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	do {
		if (room - n < 4096) {
			room = room ? room * 2 : 8192;
			more = room > MAX_FILE ? NULL : realloc(buf, room);
			if (!more) {
				err = ENOMEM;
				break;
			}
			buf = more;
		}
		got = read(fd, buf + n, room - n - 1);
		if (got > 0)
			n += got;
	} while (got > 0 || (got < 0 && errno == EINTR));
	/* what can be read later is not there */
	if (got < 0 && !err && errno != EAGAIN)
		err = errno;
	close(fd);
	if (err) {
		free(buf);
		return -err;
	}
	buf[n] = 0;
	*text = buf;
	if (len)
		*len = n;
	return 0;
}

static void trim(char *s)
{
	for (size_t n = strlen(s); n && isspace((unsigned char)s[n - 1]); n--)
		s[n - 1] = 0;
}

bool sys_line(char *buf, size_t len, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;
	FILE *f;
	int n;

	buf[0] = 0;
	va_start(ap, fmt);
	n = vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	f = n < (int)sizeof(path) ? fopen(path, "re") : NULL;
	if (!f)
		return false;
	if (!fgets(buf, len, f))
		buf[0] = 0;
	fclose(f);
	trim(buf);
	return buf[0];
}

bool sys_exists(const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	return n < (int)sizeof(path) && !access(path, F_OK);
}

const char *sys_name(const struct csrec_found *d)
{
	const char *slash = strrchr(d->node, '/');

	return slash ? slash + 1 : d->node;
}

const char *sys_attr(const struct csrec_found *d, const char *name)
{
	static char bufs[16][256];
	static unsigned int next;
	char *buf = bufs[next++ % 16];

	buf[0] = 0;
	if (d->node[0])
		sys_line(buf, sizeof(bufs[0]), "%s/bus/pci/devices/%s/csrec/%s/%s", sys_root(),
			 d->bdf, sys_name(d), name);
	return buf;
}

bool sys_number(const struct csrec_found *d, const char *name, uint64_t *value)
{
	const char *s = sys_attr(d, name);
	char *end;

	*value = 0;
	if (!isdigit((unsigned char)s[0]))
		return false;
	*value = strtoull(s, &end, 0);
	return !*end;
}

/* Does text name this device? As csrec_open() has it. */
static bool named(const struct csrec_found *d, const char *text)
{
	const char *name = sys_name(d);

	if (strchr(text, '/')) {
		char real[PATH_MAX], node[PATH_MAX];

		return d->node[0] && realpath(text, real) && realpath(d->node, node) &&
		       !strcmp(real, node);
	}
	return !strcmp(text, d->bdf) || (!strncmp(d->bdf, "0000:", 5) && !strcmp(text, d->bdf + 5)) ||
	       (name[0] && (!strcmp(text, name) || !strcmp(text, name + 5)));
}

int sys_pick(const struct cli *cli, bool need_driver, struct csrec_found **list,
	     struct csrec_found **d)
{
	const char *want = cli->device ? cli->device : root("CSREC_DEVICE", NULL);
	struct csrec_found *i, *found = NULL;
	int ret = csrec_list(list);

	if (ret)
		return cli_fail_lib(cli, ret);
	for (i = *list; i && !found; i = i->next)
		if (want ? named(i, want) : i->node[0] != 0)
			found = i;
	if (!found && !want && !need_driver)
		found = *list;
	if (!*list)
		ret = cli_fail(cli, CLI_NO_DEVICE, "no csrec device (%04x:%04x) on the PCI bus",
			       CSREC_PCI_VENDOR, CSREC_PCI_DEVICE);
	else if (!found && want)
		ret = cli_fail(cli, CLI_NO_DEVICE, "no csrec device \"%s\"", want);
	else if (!found || (need_driver && !found->node[0]))
		ret = cli_fail(cli, CLI_NO_DEVICE, "%s has no driver: load csrec.ko",
			       found ? found->bdf : (*list)->bdf);
	if (ret)
		csrec_list_free(*list);
	*d = found;
	return ret;
}

/* ---- PCI ---- */

void sys_config(const char *bdf, struct sys_config *c)
{
	char path[PATH_MAX], *text;

	c->len = 0;
	snprintf(path, sizeof(path), "%s/bus/pci/devices/%s/config", sys_root(), bdf);
	if (sys_slurp(path, &text, &c->len))
		return;
	if (c->len > sizeof(c->data))
		c->len = sizeof(c->data);
	memcpy(c->data, text, c->len);
	free(text);
}

static unsigned int get16(const struct sys_config *c, size_t off)
{
	return off + 2 <= c->len ? c->data[off] | c->data[off + 1] << 8 : 0xffff;
}

int sys_port_type(const struct sys_config *c)
{
	unsigned int at = get16(c, 0x34) & 0xfc, flags;

	if (c->len <= 64)
		return -1;
	/* a list that goes round has more than 48 members */
	for (int i = 0; i < 48 && at >= 0x40 && get16(c, at) != 0xffff; i++) {
		flags = get16(c, at + 2);
		if ((get16(c, at) & 0xff) == 0x10)
			return (flags >> 4) & 0xf;
		at = (get16(c, at) >> 8) & 0xfc;
	}
	return -1;
}

int sys_acs(const struct sys_config *c)
{
	unsigned int at = 0x100;

	if (c->len <= 0x100)
		return -1;
	for (int i = 0; i < 960 && at >= 0x100 && get16(c, at) && get16(c, at) != 0xffff; i++) {
		/* request redirect, completion redirect, egress control */
		if (get16(c, at) == 0x000d)
			return !!(get16(c, at + 6) & 0x2c);
		at = (get16(c, at + 2) >> 4) & 0xffc;
	}
	return -2;
}

int sys_path(const char *bdf, char path[][16], int max)
{
	char link[PATH_MAX], real[PATH_MAX], *save, *word;
	int n = 0;

	snprintf(link, sizeof(link), "%s/bus/pci/devices/%s", sys_root(), bdf);
	if (!realpath(link, real))
		return 0;
	for (word = strtok_r(real, "/", &save); word; word = strtok_r(NULL, "/", &save)) {
		unsigned int dom, b, s, f;
		int end = 0;

		if (sscanf(word, "%4x:%2x:%2x.%1x%n", &dom, &b, &s, &f, &end) == 4 &&
		    !word[end] && n < max)
			snprintf(path[n++], 16, "%.15s", word);
	}
	return n;
}

/* ---- debugfs ---- */

int sys_table(const struct csrec_found *d, const char *name, struct sys_table *t)
{
	char path[PATH_MAX], *line, *word, *lines, *words;
	size_t room = 0, n = 0, columns;
	int ret;

	memset(t, 0, sizeof(*t));
	snprintf(path, sizeof(path), "%s/kernel/debug/csrec/%s/%s", sys_root(), sys_name(d), name);
	ret = sys_slurp(path, &t->text, NULL);
	if (ret)
		return ret;
	for (line = strtok_r(t->text, "\n", &lines); line; line = strtok_r(NULL, "\n", &lines)) {
		columns = 0;
		for (word = strtok_r(line, " ", &words); word; word = strtok_r(NULL, " ", &words)) {
			if (t->columns && columns >= t->columns)
				break;
			if (n == room) {
				char **more = realloc(t->words, (room + 256) * sizeof(*more));

				if (!more) {
					sys_table_free(t);
					return -ENOMEM;
				}
				t->words = more;
				room += 256;
			}
			t->words[n++] = word;
			columns++;
		}
		if (!t->columns)
			t->columns = columns;
		else if (columns == t->columns)
			t->rows++;
		else
			n -= columns;		/* not a line of this table */
	}
	return 0;
}

void sys_table_free(struct sys_table *t)
{
	free(t->words);
	free(t->text);
	memset(t, 0, sizeof(*t));
}

const char *sys_cell(const struct sys_table *t, size_t row, const char *column)
{
	for (size_t i = 0; i < t->columns; i++)
		if (!strcmp(t->words[i], column))
			return t->words[(row + 1) * t->columns + i];
	return "";
}

const char *sys_why_no_table(int err)
{
	switch (-err) {
	case EACCES:
	case EPERM:
		return "needs root";
	case ENOENT:
		return geteuid() ? "needs root, and debugfs" : "no debugfs";
	}
	return strerror(-err);
}

size_t sys_users(const char *node, struct sys_user *users, size_t max)
{
	char path[PATH_MAX], target[PATH_MAX];
	struct dirent *e, *f;
	size_t n = 0;
	DIR *proc = opendir(sys_proc_root()), *fds;

	while (proc && (e = readdir(proc))) {
		if (!isdigit((unsigned char)e->d_name[0]) || atoi(e->d_name) == getpid())
			continue;
		snprintf(path, sizeof(path), "%s/%s/fd", sys_proc_root(), e->d_name);
		fds = opendir(path);
		while (fds && (f = readdir(fds))) {
			ssize_t len = readlinkat(dirfd(fds), f->d_name, target, sizeof(target) - 1);

			if (len < 0)
				continue;
			target[len] = 0;
			if (strcmp(target, node))
				continue;
			if (n < max) {
				users[n].pid = atoi(e->d_name);
				sys_line(users[n].comm, sizeof(users[n].comm), "%s/%s/comm",
					 sys_proc_root(), e->d_name);
			}
			n++;
			break;
		}
		if (fds)
			closedir(fds);
	}
	if (proc)
		closedir(proc);
	return n;
}

/* ---- counters ---- */

const char *const sys_counters[] = {
	"commands", "doorbells", "interrupts", "p2p_bytes", "bounce_bytes", "pinned_bytes",
	"queue_resets", "device_resets",
};

const char *const sys_hw_counters[] = {
	"cycles", "progress", "commands", "errors", "doorbells", "bad_doorbells", "bad_writes",
	"irqs", "host_read_bytes", "host_write_bytes", "dram_read_bytes", "dram_write_bytes",
	"busy_copy", "busy_emb", "busy_tt", "busy_interact", "busy_mlp", "busy", "emb_rows",
	"tt_rows", "tt_saved",
};

_Static_assert(COUNT(sys_counters) == SYS_COUNTERS, "names of counters");
_Static_assert(COUNT(sys_hw_counters) == SYS_HW_COUNTERS, "names of device counters");

bool sys_sample(const struct csrec_found *d, struct sys_sample *s)
{
	struct timespec ts;
	char path[64];
	bool ok = true;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	s->time = ts.tv_sec + ts.tv_nsec / 1e9;
	for (size_t i = 0; i < SYS_COUNTERS; i++) {
		snprintf(path, sizeof(path), "counters/%s", sys_counters[i]);
		ok &= sys_number(d, path, &s->counters[i]);
	}
	for (size_t i = 0; i < SYS_HW_COUNTERS; i++) {
		snprintf(path, sizeof(path), "hw_counters/%s", sys_hw_counters[i]);
		ok &= sys_number(d, path, &s->hw[i]);
	}
	return ok;
}

static uint64_t by_name(const char *const *names, size_t n, const uint64_t *values,
			const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(names[i], name))
			return values[i];
	return 0;
}

uint64_t sys_counter(const struct sys_sample *s, const char *name)
{
	return by_name(sys_counters, SYS_COUNTERS, s->counters, name);
}

uint64_t sys_hw_counter(const struct sys_sample *s, const char *name)
{
	return by_name(sys_hw_counters, SYS_HW_COUNTERS, s->hw, name);
}

double sys_busy(uint64_t busy, uint64_t cycles)
{
	/* each is a file, and the device works on between the reads of the two */
	return !cycles ? 0 : busy < cycles ? 100.0 * busy / cycles : 100;
}

/* ---- time ---- */

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

void sys_stoppable(void)
{
	struct sigaction sa = { .sa_handler = on_signal };

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

bool sys_stopped(void)
{
	return stop;
}

bool sys_sleep(double seconds)
{
	struct timespec ts = { .tv_sec = seconds, .tv_nsec = fmod(seconds, 1) * 1e9 };

	while (!stop && nanosleep(&ts, &ts) && errno == EINTR)
		;
	return !stop;
}

int sys_seconds(const struct cli *cli, const char *opt, const char *text, double *seconds)
{
	char *end;

	*seconds = isdigit((unsigned char)text[0]) ? strtod(text, &end) : 0;
	if (!isdigit((unsigned char)text[0]) || *end || !(*seconds >= 0.1 && *seconds <= 86400))
		return cli_fail(cli, CLI_USAGE, "%s: \"%s\" is not a number of seconds, 0.1 to 86400",
				opt, text);
	return 0;
}
