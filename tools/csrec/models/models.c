// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "models.h"

int models_fail(const struct cli *cli, int ret, const struct csm_err *err)
{
	enum cli_exit code = CLI_FAIL;

	switch (-ret) {
	case EBADMSG:
	case EINVAL:
	case EPROTONOSUPPORT:
	case EOPNOTSUPP:
	case ENOENT:
	case EISDIR:
		code = CLI_BAD_INPUT;
		break;
	case EACCES:
	case EPERM:
		code = CLI_PERMISSION;
		break;
	}
	return cli_fail(cli, code, "%s", err->msg);
}

bool models_same_beside(const char *a, const char *b, const char *suffix)
{
	char *name;
	bool same;

	if (asprintf(&name, "%s%s", b, suffix) < 0)
		return true;
	same = cli_same_file(a, name);
	free(name);
	return same;
}

static int shown;

void models_progress(double part, uint64_t n, const char *what)
{
	static struct timespec last;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	if ((now.tv_sec - last.tv_sec) * 1000 + (now.tv_nsec - last.tv_nsec) / 1000000 < 250 ||
	    !isatty(STDERR_FILENO))
		return;
	last = now;
	if (part >= 0)
		shown = fprintf(stderr, "\r%3.0f %%  %llu %s ", part * 100, (unsigned long long)n, what);
	else
		shown = fprintf(stderr, "\r%llu %s ", (unsigned long long)n, what);
}

void models_progress_end(void)
{
	if (shown)
		fprintf(stderr, "\r%*s\r", shown, "");
	shown = 0;
}
