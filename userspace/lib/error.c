// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Messages: why the last call failed, and the log. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "private.h"

static _Thread_local char last_error[512];
static _Thread_local const char *last_fast;	/* instead, if not NULL */

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static csrec_log_fn *log_fn;
static void *log_priv;
static int log_max;

EXPORT const char *csrec_error(void)
{
	return last_fast ? last_fast : last_error;
}

#define STR(x)	#x
#define VERSION(major, minor)	STR(major) "." STR(minor)

EXPORT const char *csrec_lib_version(void)
{
	return VERSION(CSREC_LIB_MAJOR, CSREC_LIB_MINOR);
}

const char *csrec_errno_text(int err)
{
	const char *text = strerrordesc_np(err);

	return text ? text : "unknown error";
}

int csrec_fail(int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(last_error, sizeof(last_error), fmt, ap);
	va_end(ap);
	last_fast = NULL;
	csrec_log(CSREC_LOG_DEBUG, "%s", last_error);
	return -err;
}

int csrec_fail_fast(int err, const char *text)
{
	last_fast = text;
	return -err;
}

/* The level that CSREC_LOG asks for, -1 for none. */
static int env_level(void)
{
	static const char *const names[] = { "error", "warn", "info", "debug" };
	const char *env = secure_getenv("CSREC_LOG");

	for (int i = 0; env && i < 4; i++)
		if (!strcmp(env, names[i]))
			return i;
	return -1;
}

static void log_stderr(enum csrec_log_level level, const char *msg, void *priv)
{
	(void)level;
	(void)priv;
	dprintf(STDERR_FILENO, "libcsrec: %s\n", msg);
}

EXPORT void csrec_set_log(csrec_log_fn *fn, enum csrec_log_level level, void *priv)
{
	pthread_mutex_lock(&log_lock);
	log_fn = fn;
	log_max = level;
	log_priv = priv;
	pthread_mutex_unlock(&log_lock);
}

void csrec_log(enum csrec_log_level level, const char *fmt, ...)
{
	csrec_log_fn *fn;
	char msg[512];
	void *priv;
	va_list ap;
	int max;

	pthread_mutex_lock(&log_lock);
	fn = log_fn;
	max = log_max;
	priv = log_priv;
	pthread_mutex_unlock(&log_lock);
	if (!fn) {
		fn = log_stderr;
		max = env_level();
	}
	if ((int)level > max)
		return;
	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	fn(level, msg, priv);
}

const char *csrec_sysfs_root(void)
{
	const char *env = secure_getenv("CSREC_SYSFS");

	return env && *env ? env : "/sys";
}

const char *csrec_dev_root(void)
{
	const char *env = secure_getenv("CSREC_DEV");

	return env && *env ? env : "/dev";
}
