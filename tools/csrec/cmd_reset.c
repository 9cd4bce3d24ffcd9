// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>
#include "sys.h"

enum { OPT_FORCE = 1 };

static const struct option longopts[] = {
	{ "force", no_argument, NULL, OPT_FORCE },
	{ NULL, 0, NULL, 0 },
};

#define MAX_USERS 16

/* "1234 (fio), 99 (csrec) and 3 more" */
static void names(char *buf, size_t len, const struct sys_user *users, size_t n)
{
	size_t at = 0;

	for (size_t i = 0; i < n && i < 4 && at < len; i++)
		at += snprintf(buf + at, len - at, "%s%d (%s)", i ? ", " : "", (int)users[i].pid,
			       users[i].comm);
	if (n > 4 && at < len)
		snprintf(buf + at, len - at, " and %zu more", n - 4);
}

static int open_reset(const char *bdf)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/bus/pci/devices/%s/reset", sys_root(), bdf);
	return open(path, O_WRONLY | O_CLOEXEC);
}

static int reset(const struct cli *cli, const struct csrec_found *d, bool force)
{
	const char *what = d->node[0] ? d->node : d->bdf;
	struct sys_user users[MAX_USERS];
	char method[64], list[256] = "", was[32], is[32];
	size_t n;
	int fd, err = 0;

	sys_line(method, sizeof(method), "%s/bus/pci/devices/%s/reset_method", sys_root(), d->bdf);
	method[strcspn(method, " ")] = 0;
	n = d->node[0] ? sys_users(d->node, users, MAX_USERS) : 0;
	if (n) {
		names(list, sizeof(list), users, n < MAX_USERS ? n : MAX_USERS);
		if (!force)
			return cli_fail(cli, CLI_BUSY,
					"%s is in use by %s, who would lose queues and memory; --force resets it all the same",
					what, list);
	}
	snprintf(was, sizeof(was), "%s", sys_attr(d, "state"));
	fd = open_reset(d->bdf);
	if (fd < 0)
		err = errno;
	if (fd >= 0 && !cli->json) {
		printf("%s: resetting by %s%s%s%s\n", what, method[0] ? method : "what the kernel has",
		       n ? ", in use by " : "", cli_clean(list), n ? ": their contexts die" : "");
		fflush(stdout);
	}
	if (fd >= 0 && write(fd, "1", 1) != 1)
		err = errno;
	if (fd >= 0)
		close(fd);
	if (err == ENOENT)
		return cli_fail(cli, CLI_FAIL, "%s: the kernel has no way to reset it", what);
	if (err == EACCES || err == EPERM)
		return cli_fail(cli, CLI_PERMISSION, "%s: only root may reset it", what);
	if (err)
		return cli_fail(cli, CLI_FAIL, "%s: reset: %s", what, strerror(err));
	snprintf(is, sizeof(is), "%s", sys_attr(d, "state"));
	if (is[0] && strcmp(is, "live"))
		return cli_fail(cli, CLI_FAIL, "%s is %s after the reset; see csrec dump", what, is);
	if (cli->json) {
		jw_begin();
		jw_string("address", d->bdf);
		jw_string("node", d->node);
		jw_string("method", method);
		jw_uint("users", n);
		jw_string("state_before", was);
		jw_string("state", is);
		jw_finish();
	} else if (is[0]) {
		printf("%s: was %s, is %s\n", what, was, is);
	} else {
		printf("%s: done; it has no driver\n", what);
	}
	return CLI_OK;
}

static int run(struct cli *cli, int argc, char **argv)
{
	struct csrec_found *list, *d;
	bool force = false;
	int code, ret;

	while ((ret = cli_getopt(cli, argc, argv, longopts, &code)) != CLI_END) {
		if (ret == CLI_EXIT)
			return code;
		force = true;
	}
	if (cli_no_args(cli, argc, argv))
		return CLI_USAGE;
	code = sys_pick(cli, false, &list, &d);
	if (code)
		return code;
	code = reset(cli, d, force);
	csrec_list_free(list);
	return code;
}

const struct command cmd_reset = {
	.name = "reset",
	.help = "reset [--device DEV] [--force] [--json]\n\n"
		"Resets a device through the kernel, as writing to its \"reset\" file in sysfs does,\n"
		"and says how and what became of it. Whoever has the device open keeps the\n"
		"descriptor and loses the rest: every call gives ENODEV from then on, device memory\n"
		"is given to others. Needs root. Single queues are reset by their owner only\n"
		"(QUEUE_RESET).\n\n"
		"  --force  although processes have the device open\n",
	.run = run,
};
