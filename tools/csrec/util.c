// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Options, messages, exit status. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "cli.h"

char *cli_clean(char *text)
{
	for (unsigned char *s = (unsigned char *)text; *s; s++) {
		/* U+0080 to U+009f are control characters too: two bytes in UTF-8 */
		if (s[0] == 0xc2 && s[1] >= 0x80 && s[1] <= 0x9f)
			*s++ = '?', *s = '?';
		else if (*s < ' ' || *s == 0x7f)
			*s = '?';
	}
	return text;
}

int cli_fail(const struct cli *cli, enum cli_exit code, const char *fmt, ...)
{
	char msg[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);

	if (cli->json) {
		jw_begin();
		jw_string("error", msg);
		jw_uint("exit", code);
		jw_finish();
	}
	fflush(stdout);
	fprintf(stderr, "csrec%s%s: %s\n", cli->cmd ? " " : "", cli->cmd ? cli->cmd->name : "",
		cli_clean(msg));
	return code;
}

bool cli_same_file(const char *a, const char *b)
{
	struct stat x, y;

	if (!a || !b || stat(a, &x) || stat(b, &y))
		return false;
	if (S_ISBLK(x.st_mode) && S_ISBLK(y.st_mode))
		return x.st_rdev == y.st_rdev;
	return S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int cli_fail_lib(const struct cli *cli, int ret)
{
	enum cli_exit code = CLI_FAIL;

	switch (-ret) {
	case ENODEV:
	case ENOTTY:
		code = CLI_NO_DEVICE;
		break;
	case EACCES:
	case EPERM:
		code = CLI_PERMISSION;
		break;
	case ENOTBLK:
		code = CLI_NO_DRIVE;
		break;
	case EREMOTEIO:
		code = CLI_NO_P2P;
		break;
	case EPROTONOSUPPORT:
		code = CLI_VERSION;
		break;
	}
	return cli_fail(cli, code, "%s", csrec_error());
}

enum { OPT_JSON = 0x1000, OPT_DEVICE, OPT_HELP };

int cli_getopt(struct cli *cli, int argc, char **argv, const struct option *longopts, int *code)
{
	struct option all[32] = {
		{ "json", no_argument, NULL, OPT_JSON },
		{ "device", required_argument, NULL, OPT_DEVICE },
		{ "help", no_argument, NULL, OPT_HELP },
	};
	char shorts[64] = ":hd:";
	size_t n = 3, at = 4;

	for (; longopts && longopts->name && n < sizeof(all) / sizeof(all[0]) - 1; longopts++) {
		all[n++] = *longopts;
		/* an option whose value is a letter has that as its short form */
		if (longopts->val < 0x80 && isalpha(longopts->val)) {
			shorts[at++] = longopts->val;
			if (longopts->has_arg)
				shorts[at++] = ':';
		}
	}

	opterr = 0;
	for (;;) {
		int this = optind ? optind : 1;
		int c = getopt_long(argc, argv, shorts, all, NULL);

		switch (c) {
		case OPT_JSON:
			cli->json = true;
			break;
		case OPT_DEVICE:
		case 'd':
			cli->device = optarg;
			break;
		case OPT_HELP:
		case 'h':
			printf("Usage: csrec %s", cli->cmd->help);
			*code = CLI_OK;
			return CLI_EXIT;
		case ':':
			*code = cli_fail(cli, CLI_USAGE, "option %s needs a value", argv[optind - 1]);
			return CLI_EXIT;
		case '?':
			*code = cli_fail(cli, CLI_USAGE, "option %s is unknown or takes no value; see csrec %s --help",
					 argv[optind > this ? optind - 1 : this], cli->cmd->name);
			return CLI_EXIT;
		default:
			return c;
		}
	}
}

int cli_no_args(const struct cli *cli, int argc, char **argv)
{
	if (optind >= argc)
		return 0;
	return cli_fail(cli, CLI_USAGE, "unexpected argument \"%s\"; see csrec %s --help",
			argv[optind], cli->cmd->name);
}

int cli_number(const struct cli *cli, const char *opt, const char *text, uint64_t min,
	       uint64_t max, uint64_t *value)
{
	static const char units[] = "KMGT";
	unsigned long long v;
	const char *unit;
	char *end;
	int shift = 0;

	errno = 0;
	v = isdigit((unsigned char)text[0]) ? strtoull(text, &end, 0) : 0;
	if (!isdigit((unsigned char)text[0]))
		return cli_fail(cli, CLI_USAGE, "%s: \"%s\" is not a number", opt, text);
	if (*end && (unit = memchr(units, toupper((unsigned char)*end), 4))) {
		shift = 10 * (unit - units + 1);
		end++;
	}
	if (*end)
		return cli_fail(cli, CLI_USAGE, "%s: \"%s\" is not a number with K, M, G or T", opt,
				text);
	if (errno == ERANGE || v > UINT64_MAX >> shift || v << shift > max || v << shift < min)
		return cli_fail(cli, CLI_USAGE, "%s: %s is not within %llu to %llu", opt, text,
				(unsigned long long)min, (unsigned long long)max);
	*value = v << shift;
	return 0;
}

int cli_open(const struct cli *cli, struct csrec_dev **dev)
{
	int ret = csrec_open(dev, cli->device);

	return ret ? cli_fail_lib(cli, ret) : 0;
}

const char *cli_bytes(uint64_t bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	static char bufs[4][32];
	static int next;
	char *buf = bufs[next++ % 4];
	double v = bytes;
	int u = 0;

	for (; v >= 1024 && u < 4; u++)
		v /= 1024;
	snprintf(buf, sizeof(bufs[0]), u ? "%.1f %s" : "%.0f %s", v, units[u]);
	return buf;
}
