// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include "cli.h"

#define PATTERN 0x5ca1ab1e	/* in the destination before the read */

typedef unsigned long long ull;

struct p2p {
	char drive[128];
	uint64_t offset, size, segment;
	uint32_t flags;
	bool verify;
	uint64_t by_p2p, by_bounce;
};

/* Without --drive: one below the device's switch, else the first there is. */
static int pick_drive(const struct cli *cli, struct csrec_dev *dev, struct p2p *p)
{
	const struct csrec_drive *best = NULL;
	struct csrec_found *list;
	int ret = csrec_list(&list);

	if (ret)
		return cli_fail_lib(cli, ret);
	for (const struct csrec_found *d = list; d; d = d->next) {
		if (strcmp(d->node, csrec_name(dev)))
			continue;
		for (const struct csrec_drive *v = d->drives; v; v = v->next)
			if (v->node[0] && (!best || (v->shares_switch && !best->shares_switch)))
				best = v;
	}
	if (best)
		snprintf(p->drive, sizeof(p->drive), "%s", best->node);
	csrec_list_free(list);
	return best ? 0 : cli_fail(cli, CLI_NO_DRIVE, "no NVMe drive in this machine");
}

static int open_drive(const struct cli *cli, const struct p2p *p, int *fd)
{
	uint64_t bytes;
	int block;

	*fd = open(p->drive, O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (*fd < 0 && (errno == EACCES || errno == EPERM))
		return cli_fail(cli, CLI_PERMISSION, "%s: no permission to read it", p->drive);
	if (*fd < 0 && errno != EINVAL)		/* EINVAL: a file system without O_DIRECT */
		return cli_fail(cli, CLI_NO_DRIVE, "%s: %s", p->drive, strerror(errno));
	if (*fd < 0 || ioctl(*fd, BLKGETSIZE64, &bytes) || ioctl(*fd, BLKSSZGET, &block))
		return cli_fail(cli, CLI_NO_DRIVE, "%s is not a block device", p->drive);
	if (p->offset % block || p->size % block || p->segment % block)
		return cli_fail(cli, CLI_USAGE,
				"--offset, --size and --segment must be multiples of %d, the logical block of %s",
				block, p->drive);
	if (p->offset > bytes || p->size > bytes - p->offset)
		return cli_fail(cli, CLI_USAGE, "%llu bytes at offset %llu end past the %llu bytes of %s",
				(ull)p->size, (ull)p->offset, (ull)bytes, p->drive);
	return 0;
}

/* The drive read twice, through the device and around it. */
static int verify(const struct cli *cli, struct csrec_queue *queue, uint32_t key, int fd,
		  const struct p2p *p)
{
	unsigned char *want = NULL, *got = NULL;
	uint64_t done = 0;
	int code = 0, ret;

	if (posix_memalign((void **)&want, 4096, p->size) ||
	    posix_memalign((void **)&got, 4096, p->size)) {
		code = cli_fail(cli, CLI_FAIL, "no memory for %llu bytes", (ull)p->size);
		goto out;
	}
	ret = csrec_copy_from_device(queue, key, 0, got, p->size);
	if (ret) {
		code = cli_fail_lib(cli, ret);
		goto out;
	}
	while (done < p->size) {
		ssize_t n = pread(fd, want + done, p->size - done, p->offset + done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			code = cli_fail(cli, CLI_FAIL, "reading %s at offset %llu: %s", p->drive,
					(ull)(p->offset + done), n ? strerror(errno) : "end of file");
			goto out;
		}
		done += n;
	}
	for (uint64_t i = 0; i < p->size; i++) {
		if (want[i] == got[i])
			continue;
		code = cli_fail(cli, CLI_FAIL,
				"device memory differs from the drive, first at byte %llu: 0x%02x, drive has 0x%02x",
				(ull)i, got[i], want[i]);
		break;
	}
out:
	free(want);
	free(got);
	return code;
}

static int read_drive(const struct cli *cli, struct csrec_dev *dev, struct csrec_queue *queue, int fd,
		      struct p2p *p)
{
	/* every segment starts on a boundary that P2P_READ accepts */
	uint32_t n = (p->size + p->segment - 1) / p->segment, key;
	struct csrec_p2p_seg *segs;
	struct csrec_cmd fill;
	int ret;

	ret = csrec_mem_alloc(dev, CSREC_REGION_DRAM, p->size, &key);
	if (ret)
		return cli_fail_lib(cli, ret);
	fill = csrec_cmd_fill(key, 0, p->size, PATTERN);
	ret = csrec_run(queue, &fill, 1, NULL);
	if (ret)
		return cli_fail_lib(cli, ret);

	segs = calloc(n, sizeof(*segs));
	if (!segs)
		return cli_fail(cli, CLI_FAIL, "no memory for %u segments", n);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t off = i * p->segment;

		segs[i].file_off = p->offset + off;
		segs[i].len = p->size - off < p->segment ? p->size - off : p->segment;
		segs[i].dev_off = off;
		segs[i].key = key;
	}
	ret = csrec_p2p_read(dev, fd, segs, n, p->flags, 0, 0, &p->by_p2p, &p->by_bounce);
	free(segs);
	if (ret)
		return cli_fail_lib(cli, ret);
	if (p->by_p2p + p->by_bounce != p->size)
		return cli_fail(cli, CLI_FAIL, "asked for %llu bytes, got %llu P2P and %llu bounced",
				(ull)p->size, (ull)p->by_p2p, (ull)p->by_bounce);
	return p->verify ? verify(cli, queue, key, fd, p) : 0;
}

static void print(const struct cli *cli, const struct p2p *p)
{
	if (cli->json) {
		jw_begin();
		jw_string("drive", p->drive);
		jw_uint("offset", p->offset);
		jw_uint("bytes", p->size);
		jw_uint("p2p_bytes", p->by_p2p);
		jw_uint("bounce_bytes", p->by_bounce);
		jw_bool("verified", p->verify);
		jw_finish();
		return;
	}
	printf("%s at %llu: %llu bytes%s\n", p->drive, (ull)p->offset, (ull)p->size,
	       p->verify ? ", verified" : ", not verified");
	printf("%llu peer-to-peer, %llu bounced through host memory\n", (ull)p->by_p2p,
	       (ull)p->by_bounce);
}

static int run(struct cli *cli, int argc, char **argv)
{
	static const struct option longopts[] = {
		{ "drive", required_argument, NULL, 'D' },
		{ "offset", required_argument, NULL, 'o' },
		{ "size", required_argument, NULL, 's' },
		{ "segment", required_argument, NULL, 'g' },
		{ "only", no_argument, NULL, 'p' },
		{ "bounce", no_argument, NULL, 'b' },
		{ "verify", no_argument, NULL, 'v' },
		{ "no-verify", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	struct p2p p = { .size = 1 << 20, .segment = 64 << 10, .verify = true };
	struct csrec_queue *queue = NULL;
	struct csrec_dev *dev;
	int opt, code = 0, ret, fd = -1;

	while ((opt = cli_getopt(cli, argc, argv, longopts, &code)) != CLI_END) {
		switch (opt) {
		case 'D':
			if (strlen(optarg) >= sizeof(p.drive))
				return cli_fail(cli, CLI_USAGE, "--drive: path too long");
			strcpy(p.drive, optarg);
			break;
		case 'o':
			code = cli_number(cli, "--offset", optarg, 0, INT64_MAX, &p.offset);
			break;
		case 's':
			code = cli_number(cli, "--size", optarg, 1, CLI_SIZE_MAX, &p.size);
			break;
		case 'g':
			code = cli_number(cli, "--segment", optarg, 512, CLI_SIZE_MAX,
					  &p.segment);
			break;
		case 'p':
			p.flags |= CSREC_P2P_F_ONLY;
			break;
		case 'b':
			p.flags |= CSREC_P2P_F_BOUNCE;
			break;
		case 'v':
			p.verify = true;
			break;
		case 'V':
			p.verify = false;
			break;
		default:
			return code;
		}
		if (code)
			return code;
	}
	if (cli_no_args(cli, argc, argv))
		return CLI_USAGE;
	if ((p.flags & CSREC_P2P_F_ONLY) && (p.flags & CSREC_P2P_F_BOUNCE))
		return cli_fail(cli, CLI_USAGE, "--only and --bounce exclude each other");

	code = cli_open(cli, &dev);
	if (code)
		return code;
	if (!p.drive[0])
		code = pick_drive(cli, dev, &p);
	if (!code)
		code = open_drive(cli, &p, &fd);
	if (code)
		goto out;
	ret = csrec_queue_create_ext(dev, NULL, &queue);
	code = ret ? cli_fail_lib(cli, ret) : read_drive(cli, dev, queue, fd, &p);
	if (!code)
		print(cli, &p);
out:
	csrec_queue_destroy(queue);
	if (fd >= 0)
		close(fd);
	csrec_close(dev);
	return code;
}

const struct command cmd_p2p = {
	.name = "p2p",
	.help = "p2p [--drive DRIVE] [--offset N] [--size N] [--segment N]\n"
		"                 [--only | --bounce] [--no-verify] [--device DEV] [--json]\n\n"
		"Reads part of an NVMe drive into device DRAM, peer-to-peer where that is possible,\n"
		"then compares device memory with what the drive says to an ordinary read. Reports\n"
		"how many bytes went which way.\n\n"
		"  --drive DRIVE  block device (default: one below the device's switch)\n"
		"  --offset N     first byte on the drive (default 0)\n"
		"  --size N       bytes (default 1M); K, M, G, T are powers of 1024\n"
		"  --segment N    bytes per segment of the vectored read (default 64K)\n"
		"  --only         fail (exit 6) instead of bouncing through host memory\n"
		"  --bounce       always bounce\n"
		"  --verify       compare (default)\n"
		"  --no-verify    do not\n",
	.run = run,
};
