/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the subcommands of csrec share. */
#ifndef CSREC_CLI_H
#define CSREC_CLI_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <csrec.h>

/* Exit status of csrec, and the only place where it is written; --help prints it. */
#define CLI_EXITS(X) \
	X(CLI_OK,	  0, "success") \
	X(CLI_FAIL,	  1, "it did not work, or the data differed") \
	X(CLI_USAGE,	  2, "wrong options or option values") \
	X(CLI_NO_DEVICE,  3, "no such device, or no driver on it") \
	X(CLI_PERMISSION, 4, "no permission for the device or the drive") \
	X(CLI_NO_DRIVE,	  5, "no such NVMe drive") \
	X(CLI_NO_P2P,	  6, "peer-to-peer was asked for and is not possible") \
	X(CLI_BAD_INPUT,  7, "an input file is missing, damaged or does not fit") \
	X(CLI_VERSION,	  8, "driver or device has another interface version") \
	X(CLI_BUSY,	  9, "the device or drive is in use, or would lose what is on it")

#define CLI_EXIT_ENUM(name, value, text) name = value,
enum cli_exit { CLI_EXITS(CLI_EXIT_ENUM) };

struct command;

struct cli {
	const struct command *cmd;	/* NULL before it is known */
	const char *device;		/* --device, or NULL */
	bool json;			/* --json */
};

/*
 * A subcommand. To add one, define a cmd_NAME in cmd_NAME.c (models/cmd_NAME.c for one of
 * csrec-model) and list it in commands.h.
 * run gets the arguments from the subcommand's name on and returns an enum cli_exit.
 */
struct command {
	const char *name;
	const char *help;		/* after "Usage: csrec ", whole lines */
	int (*run)(struct cli *cli, int argc, char **argv);
};

/* Control characters become "?": a name from a file must not reach the terminal as commands. */
char *cli_clean(char *text);

/*
 * Prints "csrec NAME: message" to standard error, and with --json also an object with
 * "error" and "exit" to standard output. Returns code. Call once, and last.
 */
int cli_fail(const struct cli *cli, enum cli_exit code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The same for what libcsrec returned: csrec_error() and the exit status for ret. */
int cli_fail_lib(const struct cli *cli, int ret);

/* Most of a --size: what is moved is in host memory, too. */
#define CLI_SIZE_MAX	(1ull << 30)

/*
 * getopt_long() that takes care of --json, --device, --help and of wrong options.
 * A long option whose value is a letter has it as its short form.
 * Returns a value of longopts, CLI_END after the last option, or CLI_EXIT: return *code.
 */
#define CLI_END		-1
#define CLI_EXIT	-2
int cli_getopt(struct cli *cli, int argc, char **argv, const struct option *longopts, int *code);

/* Fails for arguments that are not options. */
int cli_no_args(const struct cli *cli, int argc, char **argv);

/*
 * A number of option opt: decimal or 0x, with K, M, G or T for powers of 1024. Returns 0
 * or CLI_USAGE, with a message.
 */
int cli_number(const struct cli *cli, const char *opt, const char *text, uint64_t min,
	       uint64_t max, uint64_t *value);

/* Are both names of one file or block device that is there? NULL is none. */
bool cli_same_file(const char *a, const char *b);

/* Opens --device. Returns 0 or the exit status, with a message. */
int cli_open(const struct cli *cli, struct csrec_dev **dev);

/* "256.0 MiB" into a buffer that the fourth call after reuses. */
const char *cli_bytes(uint64_t bytes);

/*
 * JSON to standard output: one object, opened by jw_begin() and ended by jw_finish(). The
 * prefix keeps clear of libjansson, which cmd_infer links.
 * key is NULL inside arrays.
 */
void jw_begin(void);
void jw_finish(void);
void jw_object(const char *key);
void jw_array(const char *key);
void jw_end(void);			/* of the innermost object or array */
void jw_string(const char *key, const char *value);
void jw_uint(const char *key, uint64_t value);
void jw_int(const char *key, int64_t value);
void jw_double(const char *key, double value);
void jw_bool(const char *key, bool value);

#endif
