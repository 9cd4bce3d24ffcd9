/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What infer and install-cold share: model, placement and where cold rows lie. */
#ifndef CSREC_INFER_H
#define CSREC_INFER_H

#include <csm.h>
#include "cli.h"

struct job {
	const char *model_path, *placement_path, *drive;
	struct csm_model model;
	struct csm_placement placement;
	struct csm_remap remap;
	struct csm_extent extent;
	char cold[256];		/* path of the extent, "" if nothing is cold */
	int cold_fd;
	bool cold_made;		/* was not there, and goes if nothing comes of it */
};

/* Loads and checks model and placement. Returns 0 or the exit status, with a message. */
int job_load(const struct cli *cli, struct job *job);

/*
 * Opens what holds the cold rows: --drive, else the placement's path. For writing a block
 * device must be in no other use; with O_CREAT a file that is not there is made.
 */
int job_open_cold(const struct cli *cli, struct job *job, int flags);

void job_free(struct job *job);

/* The same for what libcsrec-model returned. */
int fail_csm(const struct cli *cli, int ret, const struct csm_err *err);

#endif
