// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * p2p_source DRIVE p2p|bounce [DRIVE p2p|bounce ...]: are bytes of these block devices right, and
 * do they take the way that they must? Run by p2p_topology.sh. Overwrites their first 2 MiB.
 */
#include <linux/fs.h>

#include "p2p.h"

#define LEN	MIB

static int fd, q;
static uint8_t *host;
static uint32_t host_key, dram;

/* Device memory to the host's, or the other way. */
static int copy(bool in)
{
	struct csrec_cmd cmd = in ? cmd_copy(host_key, 0, dram, 0, LEN) :
				    cmd_copy(dram, 0, host_key, 0, LEN);
	struct csrec_cqe cqe;

	return run_cmd(fd, q, &cmd, &cqe);
}

/* The kernel's own view of the drive, which csrec has nothing to do with. */
static bool drive_is(int direct, uint64_t off, const uint8_t *want)
{
	uint8_t *now = pages(LEN);
	bool same = pread(direct, now, LEN, off) == LEN && !memcmp(now, want, LEN);

	munmap(now, LEN);
	return same;
}

static const char *try_way(int drive, int direct, bool peer, uint32_t flags)
{
	static uint32_t seed;
	uint8_t *want = pages(LEN);
	struct csrec_p2p_seg seg = { .len = LEN, .key = dram };
	uint64_t way = peer && flags != CSREC_P2P_F_BOUNCE ? LEN : 0;
	struct csrec_p2p_read arg;
	int ret;

	pattern_fill(want, LEN, ++seed);
	if (pwrite(drive, want, LEN, 0) != LEN)
		return "cannot be written";
	memset(host, 0xee, LEN);
	if (copy(true))
		return "device memory cannot be written";
	ret = p2p_read(fd, &arg, drive, &seg, 1, flags);
	if (flags == CSREC_P2P_F_ONLY && !peer) {
		if (ret != -EREMOTEIO ||
		    p2p_write(fd, &arg, drive, &seg, 1, flags) != -EREMOTEIO)
			return "peer-to-peer is not refused";
		return drive_is(direct, 0, want) ? NULL : "changed by what was refused";
	}
	if (ret)
		return "read fails";
	if (arg.p2p_bytes != way || arg.bounce_bytes != LEN - way)
		return "read goes another way";
	if (copy(false) || memcmp(host, want, LEN))
		return "read brings other bytes";

	pattern_fill(want, LEN, ++seed);
	memcpy(host, want, LEN);
	if (copy(true))
		return "device memory cannot be written";
	seg.file_off = LEN;
	if (p2p_write(fd, &arg, drive, &seg, 1, flags))
		return "write fails";
	if (arg.p2p_bytes != way || arg.bounce_bytes != LEN - way)
		return "write goes another way";
	return drive_is(direct, LEN, want) ? NULL : "write leaves other bytes";
}

int main(int argc, char **argv)
{
	static const char * const names[] = { "as it comes", "peer-to-peer only", "bounced" };
	int n = 0, bad = 0;

	fd = dev_open();
	q = q_create(fd, 4);
	host = pages(LEN);
	if (q < 0 || mem_alloc(fd, CSREC_REGION_DRAM, LEN, &dram) ||
	    mem_register(fd, host, LEN, CSREC_RIGHT_READ | CSREC_RIGHT_WRITE, &host_key)) {
		printf("Bail out! no csrec device\n");
		return 1;
	}
	for (int i = 1; i + 1 < argc; i += 2) {
		bool peer = !strcmp(argv[i + 1], "p2p");
		int drive = open(argv[i], O_RDWR), direct = open(argv[i], O_RDONLY | O_DIRECT);

		for (int way = 0; way < 3; way++) {
			const char *why = drive < 0 || direct < 0 ? "cannot be opened" :
					  try_way(drive, direct, peer, p2p_ways[way]);

			printf("%s %d - %s (%s), %s%s%s\n", why ? "not ok" : "ok", ++n, argv[i],
			       argv[i + 1], names[way], why ? ": " : "", why ?: "");
			bad += !!why;
		}
		close(drive);
		close(direct);
	}
	printf("1..%d\n", n);
	return !!bad;
}
