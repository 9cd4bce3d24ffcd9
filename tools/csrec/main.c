// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* csrec: one program, a subcommand for each task. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include "cli.h"

extern const struct command cmd_list, cmd_info, cmd_copy, cmd_p2p;
extern const struct command cmd_topo, cmd_stat, cmd_top, cmd_reset, cmd_dump, cmd_doctor;
/* needs userspace/model; left out where that is not built */
extern const struct command cmd_infer __attribute__((weak));
extern const struct command cmd_install_cold __attribute__((weak));

static const struct command *const commands[] = {
	&cmd_list, &cmd_topo, &cmd_info, &cmd_doctor, &cmd_stat, &cmd_top, &cmd_dump, &cmd_reset,
	&cmd_copy, &cmd_p2p, &cmd_infer, &cmd_install_cold,
};

#define COUNT (sizeof(commands) / sizeof(commands[0]))

static void usage(void)
{
	printf("Usage: csrec [--json] [--device DEV] COMMAND [OPTION ...]\n"
	       "       csrec COMMAND --help | --help | --version\n\n"
	       "Commands:\n");
	for (size_t i = 0; i < COUNT; i++)
		if (commands[i])
			printf("  %-13s %s\n", commands[i]->name, commands[i]->summary);
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
	for (size_t i = 0; i < COUNT; i++) {
		if (!commands[i] || strcmp(commands[i]->name, argv[optind]))
			continue;
		argc -= optind;
		argv += optind;
		optind = 0;		/* getopt starts anew */
		cli.cmd = commands[i];
		return cli.cmd->run(&cli, argc, argv);
	}
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
