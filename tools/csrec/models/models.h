/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the commands on models share. */
#ifndef CSREC_MODELS_H
#define CSREC_MODELS_H

#include <csm.h>
#include "cli.h"

/* What libcsrec-model or a library on top of it returned: message and exit status for it. */
int models_fail(const struct cli *cli, int ret, const struct csm_err *err);

/* cli_same_file() of a and b with suffix behind it. */
bool models_same_beside(const char *a, const char *b, const char *suffix);

/*
 * Progress of a long job on standard error, if that is a terminal: how far, 0..1, or negative if
 * that is not known, and how many of what. Cheap; prints a few times a second.
 */
void models_progress(double part, uint64_t n, const char *what);
/* Wipes it out. */
void models_progress_end(void);

#endif
