// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * csrec: one program to its users, a subcommand for each task. This is the main() of both
 * csrec and, built with CSREC_MODEL, csrec-model (see commands.h).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>
#include "cli.h"
#include "commands.h"

#define DECLARE(symbol, name, summary) extern const struct command symbol;
#define ADDRESS(symbol, name, summary) &symbol,
#ifdef CSREC_MODEL
#define OWN_COMMANDS MODEL_COMMANDS
#else
#define OWN_COMMANDS DEVICE_COMMANDS
#endif

OWN_COMMANDS(DECLARE)
static const struct command *const commands[] = { OWN_COMMANDS(ADDRESS) NULL };

static void usage(void)
{
	printf("Usage: csrec [--json] [--device DEV] COMMAND [OPTION ...]\n"
	       "       csrec COMMAND --help | --help | --version\n\n"
	       "Commands:\n");
#define LINE(symbol, name, summary) printf("  %-13s %s\n", name, summary);
	DEVICE_COMMANDS(LINE)
	MODEL_COMMANDS(LINE)
#undef LINE
	printf("\nOptions of every command:\n"
	       "  --json        result as one JSON object on standard output\n"
	       "  --device DEV  csrec0, 0, a PCI address or a path; default: $CSREC_DEVICE,\n"
	       "                else the first device with a driver\n"
	       "  --help        what the command does and its options\n\n"
	       "Exit status:\n");
#define PRINT(name, value, text) printf("  %d  %s\n", value, text);
	CLI_EXITS(PRINT)
#undef PRINT
}

#ifndef CSREC_MODEL
static bool in_csrec_model(const char *command)
{
#define NAME(symbol, name, summary) name,
	static const char *const names[] = { MODEL_COMMANDS(NAME) NULL };
#undef NAME

	for (size_t i = 0; names[i]; i++)
		if (!strcmp(names[i], command))
			return true;
	return false;
}

/* Becomes csrec-model, which lies beside this program. Returns only if it cannot. */
static int exec_csrec_model(const struct cli *cli, char **argv)
{
	static const char name[] = "/csrec-model";
	char path[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path));
	char *slash = len > 0 ? memrchr(path, '/', len) : NULL;

	if (!slash || slash + sizeof(name) > path + sizeof(path))
		return cli_fail(cli, CLI_FAIL, "cannot tell where this program lies, to find csrec-model");
	memcpy(slash, name, sizeof(name));
	execv(path, argv);
	return cli_fail(cli, CLI_FAIL, "%s: %s", path, strerror(errno));
}
#endif

static int run(int argc, char **argv)
{
	static const struct option longopts[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "device", required_argument, NULL, 'd' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	struct cli cli = { 0 };
	int c;

	/* an error in an option is to be told as JSON even if --json comes after it */
	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
		cli.json |= !strcmp(argv[i], "--json");

	opterr = 0;
	while ((c = getopt_long(argc, argv, "+:hd:V", longopts, NULL)) != -1) {
		switch (c) {
		case 'j':
			cli.json = true;
			break;
		case 'd':
			cli.device = optarg;
			break;
		case 'h':
			usage();
			return CLI_OK;
		case 'v':
		case 'V':
			printf("csrec %s (driver interface %d.%d, device interface %d.%d)\n",
			       csrec_lib_version(), CSREC_UAPI_MAJOR, CSREC_UAPI_MINOR,
			       CSREC_HW_MAJOR, CSREC_HW_MINOR);
			return CLI_OK;
		case ':':
			return cli_fail(&cli, CLI_USAGE, "option %s needs a value",
					argv[optind - 1]);
		default:
			return cli_fail(&cli, CLI_USAGE, "unknown option; see csrec --help");
		}
	}
	if (optind >= argc)
		return cli_fail(&cli, CLI_USAGE, "no command given; see csrec --help");
	for (size_t i = 0; commands[i]; i++) {
		if (strcmp(commands[i]->name, argv[optind]))
			continue;
		argc -= optind;
		argv += optind;
		optind = 0;		/* getopt starts anew */
		cli.cmd = commands[i];
		return cli.cmd->run(&cli, argc, argv);
	}
#ifndef CSREC_MODEL
	if (in_csrec_model(argv[optind]))
		return exec_csrec_model(&cli, argv);
#endif
	return cli_fail(&cli, CLI_USAGE, "no command \"%s\"; see csrec --help", argv[optind]);
}

/*
 * A file must not get the descriptor of a standard stream that was closed: messages would
 * go into it. What takes its place fails as the closed one would.
 */
static bool fill_streams(void)
{
	int fd;

	do {
		fd = fcntl(STDIN_FILENO, F_GETFD) < 0 ? open("/dev/null", O_WRONLY) :
		     open("/dev/null", O_RDONLY);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	return fd >= 0 && !close(fd);
}

int main(int argc, char **argv)
{
	int code;

	if (!fill_streams())
		return CLI_FAIL;
	code = run(argc, argv);

	/* a result that did not get out is no success */
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "csrec: writing the result: %s\n", strerror(errno));
		return code ? code : CLI_FAIL;
	}
	return code;
}
