// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * P2P_READ. The drive is written through its page cache first, so that the tests also show
 * that what is dirty there arrives.
 */
#include <sys/mount.h>
#include <linux/fs.h>

#include "p2p.h"

#define DRIVE_LEN	(4 * MIB)	/* of the drive, written with a pattern */
#define DRAM_LEN	(MIB + 64 * KIB)	/* takes the driver two bios */

FIXTURE(p2p)
{
	int fd;
	int q;
	int drive;
	bool p2p;
	uint64_t drive_size;
	uint32_t block;
	uint8_t *want;		/* what is on the drive */
	uint8_t *host;
	uint32_t host_key;
	uint32_t dram;
};

FIXTURE_SETUP(p2p)
{
	int w;

	ASSERT_EQ(0, p2p_begin(&self->fd, &self->q, &self->p2p));

	self->drive = drive_open(O_RDONLY, &self->drive_size, &self->block);
	ASSERT_LE(0, self->drive);

	self->want = malloc(DRIVE_LEN);
	pattern_fill(self->want, DRIVE_LEN, getpid());
	w = open(DRIVE, O_WRONLY);
	ASSERT_LE(0, w);
	ASSERT_EQ(DRIVE_LEN, pwrite(w, self->want, DRIVE_LEN, 0));
	close(w);

	self->host = pages(DRAM_LEN);
	ASSERT_EQ(0, mem_register(self->fd, self->host, DRAM_LEN, CSREC_RIGHT_WRITE,
				  &self->host_key));
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, DRAM_LEN, &self->dram));
}

FIXTURE_TEARDOWN(p2p)
{
	close(self->fd);
	close(self->drive);
}

/* Device memory as the device has it. */
static int fetch(int fd, int q, uint32_t dram, uint32_t host)
{
	struct csrec_cmd cmd = cmd_copy(dram, 0, host, 0, DRAM_LEN);
	struct csrec_cqe cqe;

	return run_cmd(fd, q, &cmd, &cqe);
}

static int clear(int fd, int q, uint32_t dram)
{
	struct csrec_cmd cmd = cmd_fill(dram, 0, DRAM_LEN, 0xeeeeeeee);
	struct csrec_cqe cqe;

	return run_cmd(fd, q, &cmd, &cqe);
}

TEST_F(p2p, one_segment)
{
	for (int i = 0; i < 3; i++) {
		bool peer = self->p2p && p2p_ways[i] != CSREC_P2P_F_BOUNCE;
		struct csrec_p2p_seg seg = { .file_off = MIB, .len = 128 * KIB, .dev_off = 4096,
					     .key = self->dram };
		struct csrec_stats before, after;
		struct csrec_p2p_read arg;

		ASSERT_EQ(0, clear(self->fd, self->q, self->dram));
		ASSERT_EQ(0, get_stats(self->fd, &before));
		if (p2p_ways[i] == CSREC_P2P_F_ONLY && !self->p2p) {
			EXPECT_EQ(-EREMOTEIO, p2p_read(self->fd, &arg, self->drive, &seg, 1,
						       p2p_ways[i]));
			ASSERT_EQ(0, get_stats(self->fd, &after));
			EXPECT_EQ(before.bounce_bytes, after.bounce_bytes);
			continue;
		}
		ASSERT_EQ(0, p2p_read(self->fd, &arg, self->drive, &seg, 1, p2p_ways[i]));
		/* the truth, in the answer and in the totals */
		EXPECT_EQ(peer ? seg.len : 0, arg.p2p_bytes);
		EXPECT_EQ(peer ? 0 : seg.len, arg.bounce_bytes);
		ASSERT_EQ(0, get_stats(self->fd, &after));
		EXPECT_EQ(arg.p2p_bytes, after.p2p_bytes - before.p2p_bytes);
		EXPECT_EQ(arg.bounce_bytes, after.bounce_bytes - before.bounce_bytes);
		/* bounced bytes pass the device's host port, the others do not */
		if (peer) {
			EXPECT_GT(seg.len, counter(&after, CSREC_REG_CNT_HOST_RD) -
				  counter(&before, CSREC_REG_CNT_HOST_RD));
		} else {
			EXPECT_LE(seg.len, counter(&after, CSREC_REG_CNT_HOST_RD) -
				  counter(&before, CSREC_REG_CNT_HOST_RD));
		}

		ASSERT_EQ(0, fetch(self->fd, self->q, self->dram, self->host_key));
		EXPECT_EQ(0, memcmp(self->host + 4096, self->want + MIB, seg.len));
		for (unsigned int n = 0; n < 4096; n++) {
			ASSERT_EQ(0xee, self->host[n]);
		}
		for (unsigned int n = 4096 + seg.len; n < DRAM_LEN; n++) {
			ASSERT_EQ(0xee, self->host[n]);
		}
	}
}

/* As many as a call takes, single blocks, scattered on both sides, two regions. */
TEST_F(p2p, many_segments)
{
	struct csrec_p2p_seg *segs = calloc(CSREC_P2P_MAX_SEGS, sizeof(*segs));
	uint32_t second;

	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, DRAM_LEN, &second));
	for (int way = 0; way < 3; way++) {
		struct csrec_p2p_read arg;

		if (p2p_ways[way] == CSREC_P2P_F_ONLY && !self->p2p)
			continue;
		ASSERT_EQ(0, clear(self->fd, self->q, self->dram));
		ASSERT_EQ(0, clear(self->fd, self->q, second));
		for (unsigned int i = 0; i < CSREC_P2P_MAX_SEGS; i++)
			segs[i] = (struct csrec_p2p_seg){
				.file_off = (uint64_t)self->block * (i * 37 % 4096),
				.len = self->block,
				.dev_off = (uint64_t)self->block * (i * 2 % 1024),
				.key = i < 512 ? self->dram : second,
			};
		ASSERT_EQ(0, p2p_read(self->fd, &arg, self->drive, segs, CSREC_P2P_MAX_SEGS,
				      p2p_ways[way]));
		EXPECT_EQ(CSREC_P2P_MAX_SEGS * self->block, arg.p2p_bytes + arg.bounce_bytes);
		for (int r = 0; r < 2; r++) {
			ASSERT_EQ(0, fetch(self->fd, self->q, r ? second : self->dram,
					   self->host_key));
			for (unsigned int i = r * 512; i < (r + 1) * 512u; i++) {
				ASSERT_EQ(0, memcmp(self->host + segs[i].dev_off,
						    self->want + segs[i].file_off, self->block));
			}
			/* the blocks between stayed as they were */
			for (unsigned int i = 0; i < 512; i++) {
				ASSERT_EQ(0xee, self->host[(2 * i + 1) * self->block]);
			}
		}
	}
}

/* More than any bio or the bounce buffer holds. */
TEST_F(p2p, large)
{
	for (int way = 0; way < 3; way++) {
		if (p2p_ways[way] == CSREC_P2P_F_ONLY && !self->p2p)
			continue;
		ASSERT_EQ(0, clear(self->fd, self->q, self->dram));
		ASSERT_EQ(0, p2p_read_one(self->fd, self->drive, self->block * 3,
				      DRAM_LEN - self->block, self->dram, self->block, p2p_ways[way]));
		ASSERT_EQ(0, fetch(self->fd, self->q, self->dram, self->host_key));
		EXPECT_EQ(0, memcmp(self->host + self->block, self->want + self->block * 3,
				    DRAM_LEN - self->block));
	}
}

/* Data written just now, still dirty in the page cache. */
TEST_F(p2p, dirty_page_cache)
{
	int w = open(DRIVE, O_WRONLY);
	char text[4096];

	ASSERT_LE(0, w);
	for (int way = 0; way < 3; way++) {
		if (p2p_ways[way] == CSREC_P2P_F_ONLY && !self->p2p)
			continue;
		memset(text, 'a' + way, sizeof(text));
		ASSERT_EQ(sizeof(text), pwrite(w, text, sizeof(text), 8192));
		ASSERT_EQ(0, p2p_read_one(self->fd, self->drive, 8192, 4096, self->dram, 0, p2p_ways[way]));
		ASSERT_EQ(0, fetch(self->fd, self->q, self->dram, self->host_key));
		EXPECT_EQ(0, memcmp(self->host, text, sizeof(text)));
	}
	close(w);
}

TEST_F(p2p, fence)
{
	struct csrec_p2p_seg seg = { .len = 4096, .key = self->dram };
	struct csrec_p2p_read arg = {
		.size = sizeof(arg), .fd = self->drive, .count = 1, .segs = (uintptr_t)&seg,
		.fence_value = 42,
	};
	struct csrec_cmd cmds[2];
	struct csrec_cqe cqes[2];
	uint32_t fence;

	ASSERT_EQ(0, clear(self->fd, self->q, self->dram));
	ASSERT_EQ(0, fence_create(self->fd, 41, &fence));
	/* waits on the device for what the drive brings, then reads it */
	cmds[0] = cmd_fence(CSREC_OP_WAIT, fence, 42);
	cmds[1] = cmd_copy(self->dram, 0, self->host_key, 0, 4096);
	ASSERT_EQ(2, q_submit(self->fd, self->q, cmds, 2));
	arg.fence_key = fence;
	ASSERT_EQ(0, xioctl(self->fd, CSREC_IOC_P2P_READ, &arg));
	ASSERT_EQ(2, q_wait(self->fd, self->q, cqes, 2, 2, -1));
	EXPECT_EQ(0, cqe_status(&cqes[0]));
	EXPECT_EQ(42, le64toh(cqes[0].detail));
	EXPECT_EQ(0, cqe_status(&cqes[1]));
	EXPECT_EQ(0, memcmp(self->host, self->want, 4096));

	/* a transfer that fails raises nothing */
	arg.fence_value = 99;
	seg.len = 1;
	EXPECT_EQ(-EINVAL, xioctl(self->fd, CSREC_IOC_P2P_READ, &arg));
	seg.len = 4096;
	cmds[0] = cmd_fence(CSREC_OP_SIGNAL, fence, 0);
	ASSERT_EQ(0, run_cmd(self->fd, self->q, &cmds[0], cqes));
	EXPECT_EQ(42, le64toh(cqes[0].detail));

	arg.fence_key = fence + (1 << CSREC_KEY_GEN_SHIFT);
	EXPECT_EQ(-ENOENT, xioctl(self->fd, CSREC_IOC_P2P_READ, &arg));
}

/* Whoever takes all regions that there are does not keep transfers from bouncing. */
TEST_F(p2p, bounce_without_a_region_left)
{
	unsigned int slots, n = 0;
	int fd = dev_open(), ret;
	struct csrec_info info;
	uint32_t key;

	ASSERT_EQ(0, get_info(fd, &info));
	slots = (info.cap_table >> CSREC_CAPT_REGIONS_SHIFT) & 0xffff;
	/* whatever was kept of transfers before goes with a reset */
	ASSERT_EQ(0, write_file("/sys/class/csrec/csrec0/device/reset", "1"));
	close(fd);
	close(self->fd);
	self->fd = dev_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, DRAM_LEN, &self->dram));
	while (!(ret = mem_alloc(self->fd, CSREC_REGION_DRAM, 4096, &key)))
		ASSERT_LE(++n, slots);
	EXPECT_EQ(-ENOSPC, ret);
	EXPECT_EQ(0, p2p_read_one(self->fd, self->drive, 0, 64 * KIB, self->dram, 0,
				  CSREC_P2P_F_BOUNCE));
}

/* How much a control group has read from all drives; or -1. */
static long long group_read(const char *group)
{
	char path[128], line[256];
	long long sum = 0, n;
	const char *at;
	FILE *f;

	snprintf(path, sizeof(path), "%s/io.stat", group);
	f = fopen(path, "r");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		at = strstr(line, "rbytes=");
		if (at && sscanf(at, "rbytes=%lld", &n) == 1)
			sum += n;
	}
	fclose(f);
	return sum;
}

/* What the drive does is on the account of who asked, and not of a thread of the kernel. */
TEST_F(p2p, block_cgroup)
{
	char top[] = "/tmp/csrec-cgroup.XXXXXX", group[64], path[96], pid[16];
	long long before, after;

	ASSERT_NE(NULL, mkdtemp(top));
	snprintf(group, sizeof(group), "%s/csrec-test", top);
	snprintf(pid, sizeof(pid), "%d", getpid());
	if (mount("none", top, "cgroup2", 0, NULL)) {
		rmdir(top);
		SKIP(return, "no cgroup2");
	}
	snprintf(path, sizeof(path), "%s/cgroup.subtree_control", top);
	write_file(path, "+io");
	snprintf(path, sizeof(path), "%s/cgroup.procs", group);
	ASSERT_EQ(0, mkdir(group, 0700));
	if (group_read(group) < 0) {
		rmdir(group);
		umount2(top, MNT_DETACH);
		rmdir(top);
		SKIP(return, "no control of block I/O");
	}
	for (int way = 0; way < 3; way += 2) {
		before = group_read(group);
		EXPECT_EQ(0, write_file(path, pid));
		EXPECT_EQ(0, p2p_read_one(self->fd, self->drive, 0, DRAM_LEN, self->dram, 0,
					  p2p_ways[way]));
		after = group_read(group);
		EXPECT_LE(before + DRAM_LEN, after) TH_LOG("way %d", way);
	}
	snprintf(path, sizeof(path), "%s/cgroup.procs", top);
	EXPECT_EQ(0, write_file(path, pid));
	EXPECT_EQ(0, rmdir(group));
	umount2(top, MNT_DETACH);
	rmdir(top);
}

TEST_F(p2p, alignment)
{
	uint32_t b = self->block;

	for (int way = 0; way < 3; way++) {
		uint32_t f = p2p_ways[way];

		EXPECT_EQ(-EINVAL, p2p_read_one(self->fd, self->drive, 1, b, self->dram, 0, f));
		EXPECT_EQ(-EINVAL, p2p_read_one(self->fd, self->drive, b / 2, b, self->dram, 0, f));
		EXPECT_EQ(-EINVAL, p2p_read_one(self->fd, self->drive, 0, b - 1, self->dram, 0, f));
		EXPECT_EQ(-EINVAL, p2p_read_one(self->fd, self->drive, 0, b + 1, self->dram, 0, f));
		EXPECT_EQ(-EINVAL, p2p_read_one(self->fd, self->drive, 0, 0, self->dram, 0, f));
		EXPECT_EQ(-EINVAL, p2p_read_one(self->fd, self->drive, 0, b, self->dram, 4, f));
		EXPECT_EQ(-EINVAL, p2p_read_one(self->fd, self->drive, 0, b, self->dram, b / 2, f));
	}
}

TEST_F(p2p, end_of_the_drive)
{
	uint64_t end = self->drive_size;
	uint32_t b = self->block;

	EXPECT_EQ(0, p2p_read_one(self->fd, self->drive, end - b, b, self->dram, 0, 0));
	EXPECT_EQ(-EINVAL, p2p_read_one(self->fd, self->drive, end, b, self->dram, 0, 0));
	EXPECT_EQ(-EINVAL, p2p_read_one(self->fd, self->drive, end - b, 2 * b, self->dram, 0, 0));
	EXPECT_EQ(-EINVAL, p2p_read_one(self->fd, self->drive, -(uint64_t)b, b, self->dram, 0, 0));
	EXPECT_EQ(-EINVAL, p2p_read_one(self->fd, self->drive, -(uint64_t)b, 2 * b, self->dram, 0, 0));
	EXPECT_EQ(-EINVAL, p2p_read_one(self->fd, self->drive, b, -(uint64_t)b, self->dram, 0, 0));
}

TEST_F(p2p, region)
{
	uint32_t b = self->block, onchip, theirs;
	int other = dev_open();

	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_ONCHIP, 8192, &onchip));
	ASSERT_EQ(0, mem_alloc(other, CSREC_REGION_DRAM, 8192, &theirs));
	EXPECT_EQ(0, p2p_read_one(self->fd, self->drive, 0, b, self->dram, DRAM_LEN - b, 0));
	EXPECT_EQ(-ERANGE, p2p_read_one(self->fd, self->drive, 0, b, self->dram, DRAM_LEN, 0));
	EXPECT_EQ(-ERANGE, p2p_read_one(self->fd, self->drive, 0, 2 * b, self->dram, DRAM_LEN - b, 0));
	EXPECT_EQ(-ERANGE, p2p_read_one(self->fd, self->drive, 0, b, self->dram, -(uint64_t)b, 0));
	EXPECT_EQ(-ENOENT, p2p_read_one(self->fd, self->drive, 0, b, 0, 0, 0));
	EXPECT_EQ(-ENOENT, p2p_read_one(self->fd, self->drive, 0, b, theirs, 0, 0));
	EXPECT_EQ(-EOPNOTSUPP, p2p_read_one(self->fd, self->drive, 0, b, onchip, 0, 0));
	EXPECT_EQ(-EOPNOTSUPP, p2p_read_one(self->fd, self->drive, 0, b, self->host_key, 0, 0));
	ASSERT_EQ(0, mem_free(self->fd, self->dram));
	EXPECT_EQ(-ENOENT, p2p_read_one(self->fd, self->drive, 0, b, self->dram, 0, 0));
	close(other);
}

/* The one that is wrong among many spoils the whole, and nothing is held afterwards. */
TEST_F(p2p, one_bad_segment)
{
	struct csrec_p2p_seg segs[8];
	struct csrec_p2p_read arg;

	for (int i = 0; i < 8; i++)
		segs[i] = (struct csrec_p2p_seg){ .file_off = i * 4096, .len = 4096,
						  .dev_off = i * 4096, .key = self->dram };
	segs[7].key = 0;
	EXPECT_EQ(-ENOENT, p2p_read(self->fd, &arg, self->drive, segs, 8, 0));
	segs[7].key = self->dram;
	segs[7].rsvd = 1;
	EXPECT_EQ(-EINVAL, p2p_read(self->fd, &arg, self->drive, segs, 8, 0));
	segs[7].rsvd = 0;
	EXPECT_EQ(0, p2p_read(self->fd, &arg, self->drive, segs, 8, 0));
	EXPECT_EQ(0, mem_free(self->fd, self->dram));
}

TEST_F(p2p, arguments)
{
	struct csrec_p2p_seg seg = { .len = 4096, .key = self->dram };
	struct csrec_p2p_read arg;

	EXPECT_EQ(-EINVAL, p2p_read(self->fd, &arg, self->drive, &seg, 0, 0));
	EXPECT_EQ(-EINVAL, p2p_read(self->fd, &arg, self->drive, &seg, CSREC_P2P_MAX_SEGS + 1, 0));
	EXPECT_EQ(-EINVAL, p2p_read(self->fd, &arg, self->drive, &seg, 1,
				    CSREC_P2P_F_ONLY | CSREC_P2P_F_BOUNCE));
	EXPECT_EQ(-EFAULT, p2p_read(self->fd, &arg, self->drive, NULL, 1, 0));
}

TEST_F(p2p, file)
{
	uint32_t dram = self->dram;
	int fd;

	EXPECT_EQ(-EBADF, p2p_read_one(self->fd, -1, 0, 4096, dram, 0, 0));
	EXPECT_EQ(-EBADF, p2p_read_one(self->fd, 999, 0, 4096, dram, 0, 0));

	fd = open(DRIVE, O_PATH);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EBADF, p2p_read_one(self->fd, fd, 0, 4096, dram, 0, 0));
	close(fd);

	fd = open(DRIVE, O_WRONLY);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EBADF, p2p_read_one(self->fd, fd, 0, 4096, dram, 0, 0));
	close(fd);

	fd = open("/tmp", O_RDWR | O_TMPFILE, 0600);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ftruncate(fd, MIB));
	EXPECT_EQ(-ENOTBLK, p2p_read_one(self->fd, fd, 0, 4096, dram, 0, 0));
	close(fd);

	fd = open("/dev/null", O_RDONLY);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-ENOTBLK, p2p_read_one(self->fd, fd, 0, 4096, dram, 0, 0));
	close(fd);
	EXPECT_EQ(-ENOTBLK, p2p_read_one(self->fd, self->fd, 0, 4096, dram, 0, 0));
}

/*
 * A block device whose driver moves data with the CPU must never get peer-to-peer pages:
 * it bounces.
 */
TEST_F(p2p, other_block_device)
{
	int w, fd = open("/dev/ram0", O_RDONLY);
	struct csrec_p2p_seg seg = { .len = 64 * KIB, .key = self->dram };
	struct csrec_p2p_read arg;

	if (fd < 0)
		SKIP(return, "no RAM disk at /dev/ram0 (module brd)");
	w = open("/dev/ram0", O_WRONLY);
	ASSERT_EQ(64 * KIB, pwrite(w, self->want, 64 * KIB, 0));
	close(w);
	EXPECT_EQ(-EREMOTEIO, p2p_read(self->fd, &arg, fd, &seg, 1, CSREC_P2P_F_ONLY));
	ASSERT_EQ(0, p2p_read(self->fd, &arg, fd, &seg, 1, 0));
	EXPECT_EQ(0, arg.p2p_bytes);
	EXPECT_EQ(seg.len, arg.bounce_bytes);
	ASSERT_EQ(0, fetch(self->fd, self->q, self->dram, self->host_key));
	EXPECT_EQ(0, memcmp(self->host, self->want, seg.len));
	close(fd);
}

TEST_HARNESS_MAIN
