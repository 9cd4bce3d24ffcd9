// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "infer.h"

typedef unsigned long long ull;

int fail_csm(const struct cli *cli, int ret, const struct csm_err *err)
{
	enum cli_exit code = CLI_FAIL;

	switch (-ret) {
	case EBADMSG:
	case EINVAL:
	case EPROTONOSUPPORT:
	case ENOENT:
	case EISDIR:
		code = CLI_BAD_INPUT;
		break;
	case EEXIST:
		code = CLI_BUSY;
		break;
	case EACCES:
	case EPERM:
		code = CLI_PERMISSION;
		break;
	case ENODEV:
		code = CLI_NO_DEVICE;
		break;
	case ENOTBLK:
		code = CLI_NO_DRIVE;
		break;
	case EREMOTEIO:
		code = CLI_NO_P2P;
		break;
	}
	return cli_fail(cli, code, "%s", err->msg);
}

int job_load(const struct cli *cli, struct job *job)
{
	struct csm_err err;
	int ret;

	job->cold_fd = -1;
	if (!job->model_path)
		return cli_fail(cli, CLI_USAGE, "--model is needed");
	ret = csm_model_load(&job->model, job->model_path, &err);
	if (!ret && job->placement_path) {
		ret = csm_placement_load(&job->placement, job->placement_path, &job->model, &err);
		if (!ret)
			ret = csm_remap_init(&job->remap, &job->model, &job->placement, &err);
	}
	return ret ? fail_csm(cli, ret, &err) : 0;
}

int job_open_cold(const struct cli *cli, struct job *job, int flags)
{
	const char *path = job->drive ? job->drive : job->placement.cold_path;
	struct stat st;

	if (!path)
		return cli_fail(cli, CLI_NO_DRIVE,
				"the placement names no drive for cold rows; --drive is needed");
	if (strlen(path) >= sizeof(job->cold))
		return cli_fail(cli, CLI_USAGE, "--drive: path too long");
	strcpy(job->cold, path);
	/* without O_CREAT O_EXCL has a meaning for block devices: a mounted one is EBUSY */
	if ((flags & O_ACCMODE) != O_RDONLY && !stat(path, &st) && S_ISBLK(st.st_mode))
		flags |= O_EXCL;
	job->cold_fd = open(path, (flags & ~O_CREAT) | O_CLOEXEC);
	if (job->cold_fd < 0 && errno == ENOENT && flags & O_CREAT) {
		job->cold_fd = open(path, flags | O_EXCL | O_CLOEXEC, 0666);
		job->cold_made = job->cold_fd >= 0;
	}
	if (job->cold_fd < 0 && errno == EBUSY)
		return cli_fail(cli, CLI_BUSY, "drive for cold rows: %s is mounted or in other use",
				path);
	if (job->cold_fd < 0)
		return cli_fail(cli, errno == EACCES || errno == EPERM ? CLI_PERMISSION : CLI_NO_DRIVE,
				"drive for cold rows: %s: %s", path, strerror(errno));
	return 0;
}

void job_free(struct job *job)
{
	csm_extent_free(&job->extent);
	if (job->remap.model)
		csm_remap_free(&job->remap);
	csm_placement_free(&job->placement);
	csm_model_free(&job->model);
	if (job->cold_fd >= 0)
		close(job->cold_fd);
}

/* There a name that does not exist is a mistyped drive, and no file to be made. */
static bool below_dev(const char *path)
{
	char *copy = strdup(path), *dir = copy ? realpath(dirname(copy), NULL) : NULL;
	bool below = dir && (!strcmp(dir, "/dev") || !strncmp(dir, "/dev/", 5));

	free(dir);
	free(copy);
	return below;
}

static int run(struct cli *cli, int argc, char **argv)
{
	static const struct option longopts[] = {
		{ "model", required_argument, NULL, 'm' },
		{ "placement", required_argument, NULL, 'p' },
		{ "plan", required_argument, NULL, 'p' },
		{ "drive", required_argument, NULL, 'D' },
		{ "force", no_argument, NULL, 'f' },
		{ "verify", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	struct job job = { .cold_fd = -1 };
	bool force = false, verify = false, create;
	const char *drive;
	struct csm_err err;
	uint64_t size;
	int opt, code = 0, ret;

	while ((opt = cli_getopt(cli, argc, argv, longopts, &code)) != CLI_END) {
		switch (opt) {
		case 'm':
			job.model_path = optarg;
			break;
		case 'p':
			job.placement_path = optarg;
			break;
		case 'D':
			job.drive = optarg;
			break;
		case 'f':
			force = true;
			break;
		case 'v':
			verify = true;
			break;
		default:
			return code;
		}
	}
	if (cli_no_args(cli, argc, argv))
		return CLI_USAGE;
	if (!job.placement_path)
		return cli_fail(cli, CLI_USAGE, "--plan (or --placement) is needed");
	code = job_load(cli, &job);
	if (code)
		goto out;
	if (!job.placement.ncold) {
		/* a plan may well have room for all rows elsewhere */
		if (cli->json) {
			jw_begin();
			jw_uint("tables", 0);
			jw_bool("written", false);
			jw_finish();
		} else {
			printf("%s: no table has cold rows: nothing to install\n", job.placement_path);
		}
		goto out;
	}
	drive = job.drive ? job.drive : job.placement.cold_path;
	if (!verify && (cli_same_file(drive, job.model_path) ||
			cli_same_file(drive, job.placement_path))) {
		code = cli_fail(cli, CLI_USAGE, "%s: is read, and would be overwritten", drive);
		goto out;
	}
	create = job.drive && !below_dev(job.drive);
	code = job_open_cold(cli, &job, verify ? O_RDONLY : O_RDWR | (create ? O_CREAT : 0));
	if (code)
		goto out;
	size = csm_extent_size(&job.model, &job.placement, &job.remap);
	if (verify) {
		ret = csm_extent_open(&job.extent, job.cold_fd, job.cold, &job.model, &job.placement,
				      &job.remap, &err);
		if (!ret)
			ret = csm_extent_verify(&job.extent, job.cold_fd, job.cold, &err);
	} else {
		ret = csm_extent_install(job.cold_fd, job.cold, &job.model, &job.placement,
					 &job.remap, force, &err);
	}
	if (ret) {
		code = fail_csm(cli, ret, &err);
		goto out;
	}
	if (cli->json) {
		jw_begin();
		jw_string("drive", job.cold);
		jw_uint("offset", job.placement.cold_off);
		jw_uint("bytes", size);
		jw_uint("tables", job.placement.ncold);
		jw_bool("written", !verify);
		jw_finish();
	} else {
		printf("%s at %llu: %s, cold rows of %u tables, %s\n", job.cold,
		       (ull)job.placement.cold_off, cli_bytes(size), job.placement.ncold,
		       verify ? "intact" : "written and read back");
	}
out:
	if (code && job.cold_made)
		unlink(job.cold);
	job_free(&job);
	return code;
}

const struct command cmd_install_cold = {
	.name = "install-cold",
	.help = "install-cold --model FILE --plan FILE [--drive PATH] [--force]\n"
		"                 [--verify] [--json]\n\n"
		"Writes the rows that the placement leaves on the drive as a block extent with\n"
		"checksums, and reads it back. Needs no csrec device.\n\n"
		"It does not write to a block device that is mounted or in other use. Without --force\n"
		"it neither overwrites bytes that are not zero, but for a former extent, nor writes to\n"
		"what begins as a drive with partitions (GPT, DOS), file systems (ext2/3/4, XFS, Btrfs,\n"
		"F2FS), LUKS, LVM, md RAID (1.1, 1.2) or swap.\n\n"
		"  --model FILE      model container\n"
		"  --plan FILE       plan or placement of that model; --placement is the same\n"
		"  --drive PATH      block device or file (default: the placement's); a file that is\n"
		"                    not there is made, but not below /dev\n"
		"  --force           overwrite whatever is there\n"
		"  --verify          only check what is there\n",
	.run = run,
};
