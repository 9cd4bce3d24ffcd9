// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * P2P_WRITE. What was written is read with pread(), from the drive itself (O_DIRECT) and
 * through its page cache. The errors of arguments are tried on P2P_READ as well.
 */
#include <linux/fs.h>
#include <sys/swap.h>

#include "p2p.h"

#define DRIVE_LEN	(4 * MIB)	/* of the drive, written with a pattern */
#define DRAM_LEN	(MIB + 64 * KIB)	/* takes the driver two bios */
#define RAM		"/dev/ram0"

FIXTURE(p2p_write)
{
	int fd;
	int q;
	int drive;		/* read and write */
	int direct;		/* to look at it */
	bool p2p;
	uint32_t block;
	uint64_t drive_size;
	uint8_t *was;		/* what is on the drive before */
	uint8_t *now;		/* read back */
	uint8_t *host;		/* what is in device memory */
	uint32_t host_key;
	uint32_t dram;
};

FIXTURE_SETUP(p2p_write)
{
	struct csrec_cmd cmd;
	struct csrec_cqe cqe;

	ASSERT_EQ(0, p2p_begin(&self->fd, &self->q, &self->p2p));

	self->drive = drive_open(O_RDWR, &self->drive_size, &self->block);
	ASSERT_LE(0, self->drive);
	self->direct = open(DRIVE, O_RDONLY | O_DIRECT);
	ASSERT_LE(0, self->direct);

	self->was = pages(DRIVE_LEN);
	self->now = pages(DRIVE_LEN);
	pattern_fill(self->was, DRIVE_LEN, getpid());
	ASSERT_EQ(DRIVE_LEN, pwrite(self->drive, self->was, DRIVE_LEN, 0));
	ASSERT_EQ(0, fsync(self->drive));

	self->host = pages(DRAM_LEN);
	pattern_fill(self->host, DRAM_LEN, ~getpid());
	ASSERT_EQ(0, mem_register(self->fd, self->host, DRAM_LEN, CSREC_RIGHT_READ,
				  &self->host_key));
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, DRAM_LEN, &self->dram));
	cmd = cmd_copy(self->host_key, 0, self->dram, 0, DRAM_LEN);
	ASSERT_EQ(0, run_cmd(self->fd, self->q, &cmd, &cqe));
}

FIXTURE_TEARDOWN(p2p_write)
{
	close(self->fd);
	close(self->drive);
	close(self->direct);
}

/* Is the drive what @want says, both ways of looking at it? */
#define EXPECT_DRIVE(want)								\
	do {										\
		ASSERT_EQ(DRIVE_LEN, pread(self->direct, self->now, DRIVE_LEN, 0));	\
		EXPECT_EQ(0, memcmp(self->now, want, DRIVE_LEN));			\
		ASSERT_EQ(DRIVE_LEN, pread(self->drive, self->now, DRIVE_LEN, 0));	\
		EXPECT_EQ(0, memcmp(self->now, want, DRIVE_LEN));			\
	} while (0)

TEST_F(p2p_write, one_segment)
{
	for (int i = 0; i < 3; i++) {
		bool peer = self->p2p && p2p_ways[i] != CSREC_P2P_F_BOUNCE;
		struct csrec_p2p_seg seg = { .file_off = MIB, .len = 128 * KIB,
					     .dev_off = (4 + 128 * i) * KIB, .key = self->dram };
		struct csrec_stats before, after;
		struct csrec_p2p_read arg;

		ASSERT_EQ(0, get_stats(self->fd, &before));
		if (p2p_ways[i] == CSREC_P2P_F_ONLY && !self->p2p) {
			EXPECT_EQ(-EREMOTEIO, p2p_write(self->fd, &arg, self->drive, &seg, 1,
							p2p_ways[i]));
			EXPECT_DRIVE(self->was);
			continue;
		}
		ASSERT_EQ(0, p2p_write(self->fd, &arg, self->drive, &seg, 1, p2p_ways[i]));
		EXPECT_EQ(peer ? seg.len : 0, arg.p2p_bytes);
		EXPECT_EQ(peer ? 0 : seg.len, arg.bounce_bytes);
		ASSERT_EQ(0, get_stats(self->fd, &after));
		EXPECT_EQ(arg.p2p_bytes, after.p2p_bytes - before.p2p_bytes);
		EXPECT_EQ(arg.bounce_bytes, after.bounce_bytes - before.bounce_bytes);
		/* bounced bytes pass the device's host port, the others do not */
		if (peer) {
			EXPECT_GT(seg.len, counter(&after, CSREC_REG_CNT_HOST_WR) -
				  counter(&before, CSREC_REG_CNT_HOST_WR));
		} else {
			EXPECT_LE(seg.len, counter(&after, CSREC_REG_CNT_HOST_WR) -
				  counter(&before, CSREC_REG_CNT_HOST_WR));
		}
		memcpy(self->was + MIB, self->host + seg.dev_off, seg.len);
		EXPECT_DRIVE(self->was);
	}
}

/* As many as a call takes, single blocks, scattered on both sides, two regions. */
TEST_F(p2p_write, many_segments)
{
	struct csrec_p2p_seg *segs = calloc(CSREC_P2P_MAX_SEGS, sizeof(*segs));
	struct csrec_cmd cmd;
	struct csrec_cqe cqe;
	uint32_t second;

	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, DRAM_LEN, &second));
	cmd = cmd_copy(self->host_key, 0, second, 0, DRAM_LEN);
	ASSERT_EQ(0, run_cmd(self->fd, self->q, &cmd, &cqe));
	for (int way = 0; way < 3; way++) {
		struct csrec_p2p_read arg;

		if (p2p_ways[way] == CSREC_P2P_F_ONLY && !self->p2p)
			continue;
		for (unsigned int i = 0; i < CSREC_P2P_MAX_SEGS; i++) {
			segs[i] = (struct csrec_p2p_seg){
				.file_off = (uint64_t)self->block * (2 * i),
				.len = self->block,
				.dev_off = (uint64_t)self->block * ((i * 37 + way) % 2048),
				.key = i % 2 ? self->dram : second,
			};
			memcpy(self->was + segs[i].file_off, self->host + segs[i].dev_off,
			       self->block);
		}
		ASSERT_EQ(0, p2p_write(self->fd, &arg, self->drive, segs, CSREC_P2P_MAX_SEGS,
				       p2p_ways[way]));
		EXPECT_EQ(CSREC_P2P_MAX_SEGS * self->block, arg.p2p_bytes + arg.bounce_bytes);
		EXPECT_DRIVE(self->was);
	}
}

/* More than any bio or a bounce buffer holds. */
TEST_F(p2p_write, large)
{
	for (int way = 0; way < 3; way++) {
		struct csrec_p2p_seg seg = { .file_off = self->block * (3 + way),
					     .len = DRAM_LEN - self->block,
					     .dev_off = self->block, .key = self->dram };
		struct csrec_p2p_read arg;

		if (p2p_ways[way] == CSREC_P2P_F_ONLY && !self->p2p)
			continue;
		ASSERT_EQ(0, p2p_write(self->fd, &arg, self->drive, &seg, 1, p2p_ways[way]));
		memcpy(self->was + seg.file_off, self->host + seg.dev_off, seg.len);
		EXPECT_DRIVE(self->was);
	}
}

/* What is dirty around the range arrives; what is in the cache of the range does not stay. */
TEST_F(p2p_write, page_cache)
{
	for (int way = 0; way < 3; way++) {
		struct csrec_p2p_seg seg = { .file_off = 8192 + self->block, .len = self->block,
					     .dev_off = 65536 * way, .key = self->dram };
		struct csrec_p2p_read arg;

		if (p2p_ways[way] == CSREC_P2P_F_ONLY && !self->p2p)
			continue;
		memset(self->was + 8192, 'a' + way, 4096);
		ASSERT_EQ(4096, pwrite(self->drive, self->was + 8192, 4096, 8192));
		ASSERT_EQ(0, p2p_write(self->fd, &arg, self->drive, &seg, 1, p2p_ways[way]));
		memcpy(self->was + seg.file_off, self->host + seg.dev_off, seg.len);
		ASSERT_EQ(DRIVE_LEN, pread(self->drive, self->now, DRIVE_LEN, 0));
		EXPECT_EQ(0, memcmp(self->now, self->was, DRIVE_LEN));
		ASSERT_EQ(0, fsync(self->drive));
		EXPECT_DRIVE(self->was);
	}
}

/* Stable at once: QEMU's drive has a volatile cache, so that these are FUA writes. */
TEST_F(p2p_write, dsync)
{
	struct csrec_p2p_seg seg = { .len = self->block, .key = self->dram };
	int fd = open(DRIVE, O_RDWR | O_DSYNC);
	struct csrec_p2p_read arg;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, p2p_write(self->fd, &arg, fd, &seg, 1, 0));
	memcpy(self->was, self->host, self->block);
	EXPECT_DRIVE(self->was);
	close(fd);
}

TEST_F(p2p_write, fence)
{
	struct csrec_p2p_seg seg = { .len = 4096, .key = self->dram };
	struct csrec_p2p_read arg = {
		.size = sizeof(arg), .fd = self->drive, .count = 1, .segs = (uintptr_t)&seg,
		.fence_value = 42,
	};
	struct csrec_cmd cmd;
	struct csrec_cqe cqe;

	ASSERT_EQ(0, fence_create(self->fd, 41, &arg.fence_key));
	cmd = cmd_fence(CSREC_OP_WAIT, arg.fence_key, 42);
	ASSERT_EQ(1, q_submit(self->fd, self->q, &cmd, 1));
	ASSERT_EQ(0, xioctl(self->fd, CSREC_IOC_P2P_WRITE, &arg));
	ASSERT_EQ(1, q_wait(self->fd, self->q, &cqe, 1, 1, -1));
	EXPECT_EQ(0, cqe_status(&cqe));
	EXPECT_EQ(42, le64toh(cqe.detail));

	arg.fence_key += 1 << CSREC_KEY_GEN_SHIFT;
	EXPECT_EQ(-ENOENT, xioctl(self->fd, CSREC_IOC_P2P_WRITE, &arg));
}

/* Each context sees its own bytes, and the device's are the sum. */
TEST_F(p2p_write, counters)
{
	struct csrec_p2p_seg seg = { .len = 8 * KIB, .key = self->dram };
	struct csrec_stats before, mine, theirs;
	struct csrec_p2p_read arg;
	int other = dev_open();
	uint64_t peer;

	ASSERT_LE(0, other);
	ASSERT_EQ(0, get_stats(self->fd, &before));
	EXPECT_EQ(0, before.ctx_p2p_bytes);
	EXPECT_EQ(0, before.ctx_bounce_bytes);
	ASSERT_EQ(0, p2p_write(self->fd, &arg, self->drive, &seg, 1, 0));
	peer = arg.p2p_bytes;
	ASSERT_EQ(0, p2p_read(self->fd, &arg, self->drive, &seg, 1, CSREC_P2P_F_BOUNCE));
	ASSERT_EQ(0, mem_alloc(other, CSREC_REGION_DRAM, 8 * KIB, &seg.key));
	seg.len = 4 * KIB;
	ASSERT_EQ(0, p2p_read(other, &arg, self->drive, &seg, 1, CSREC_P2P_F_BOUNCE));
	/* what fails does not count */
	seg.len = 1;
	EXPECT_EQ(-EINVAL, p2p_read(other, &arg, self->drive, &seg, 1, 0));

	ASSERT_EQ(0, get_stats(self->fd, &mine));
	ASSERT_EQ(0, get_stats(other, &theirs));
	EXPECT_EQ(self->p2p ? 8 * KIB : 0, mine.ctx_p2p_bytes);
	EXPECT_EQ(peer, mine.ctx_p2p_bytes);
	EXPECT_EQ(16 * KIB - peer, mine.ctx_bounce_bytes);
	EXPECT_EQ(0, theirs.ctx_p2p_bytes);
	EXPECT_EQ(4 * KIB, theirs.ctx_bounce_bytes);
	EXPECT_EQ(peer, mine.p2p_bytes - before.p2p_bytes);
	EXPECT_EQ(20 * KIB - peer, mine.bounce_bytes - before.bounce_bytes);
	close(other);
}

static int write_one(int fd, int drive, uint64_t file_off, uint64_t len, uint32_t key,
		     uint64_t dev_off, uint32_t flags)
{
	struct csrec_p2p_seg seg = { .file_off = file_off, .len = len, .key = key,
				     .dev_off = dev_off };
	struct csrec_p2p_read arg;

	return p2p_write(fd, &arg, drive, &seg, 1, flags);
}

TEST_F(p2p_write, segment_errors)
{
	uint64_t end = self->drive_size;
	uint32_t b = self->block, onchip, theirs;
	int fd = self->fd, d = self->drive, other = dev_open();

	ASSERT_EQ(0, mem_alloc(fd, CSREC_REGION_ONCHIP, 8192, &onchip));
	ASSERT_EQ(0, mem_alloc(other, CSREC_REGION_DRAM, 8192, &theirs));
	for (int way = 0; way < 3; way++) {
		uint32_t f = p2p_ways[way];

		EXPECT_EQ(-EINVAL, write_one(fd, d, 1, b, self->dram, 0, f));
		EXPECT_EQ(-EINVAL, write_one(fd, d, 0, b - 1, self->dram, 0, f));
		EXPECT_EQ(-EINVAL, write_one(fd, d, 0, 0, self->dram, 0, f));
		EXPECT_EQ(-EINVAL, write_one(fd, d, 0, b, self->dram, b / 2, f));
		EXPECT_EQ(-EINVAL, write_one(fd, d, end, b, self->dram, 0, f));
		EXPECT_EQ(-EINVAL, write_one(fd, d, end - b, 2 * b, self->dram, 0, f));
		EXPECT_EQ(-EINVAL, write_one(fd, d, -(uint64_t)b, 2 * b, self->dram, 0, f));
		EXPECT_EQ(-ERANGE, write_one(fd, d, 0, b, self->dram, DRAM_LEN, f));
		EXPECT_EQ(-ERANGE, write_one(fd, d, 0, b, self->dram, -(uint64_t)b, f));
		EXPECT_EQ(-ENOENT, write_one(fd, d, 0, b, 0, 0, f));
		EXPECT_EQ(-ENOENT, write_one(fd, d, 0, b, theirs, 0, f));
		EXPECT_EQ(-EOPNOTSUPP, write_one(fd, d, 0, b, onchip, 0, f));
		EXPECT_EQ(-EOPNOTSUPP, write_one(fd, d, 0, b, self->host_key, 0, f));
	}
	EXPECT_DRIVE(self->was);
	close(other);
}

/* The one that is wrong among many spoils the whole, and nothing was written. */
TEST_F(p2p_write, one_bad_segment)
{
	struct csrec_p2p_seg segs[8];
	struct csrec_p2p_read arg;

	for (int i = 0; i < 8; i++)
		segs[i] = (struct csrec_p2p_seg){ .file_off = i * 4096, .len = 4096,
						  .dev_off = i * 4096, .key = self->dram };
	segs[7].key = 0;
	EXPECT_EQ(-ENOENT, p2p_write(self->fd, &arg, self->drive, segs, 8, 0));
	segs[7].key = self->dram;
	segs[7].rsvd = 1;
	EXPECT_EQ(-EINVAL, p2p_write(self->fd, &arg, self->drive, segs, 8, 0));
	EXPECT_DRIVE(self->was);
}

TEST_F(p2p_write, arguments)
{
	struct csrec_p2p_seg seg = { .len = 4096, .key = self->dram };
	struct csrec_p2p_read arg;

	EXPECT_EQ(-EINVAL, p2p_write(self->fd, &arg, self->drive, &seg, 0, 0));
	EXPECT_EQ(-EINVAL, p2p_write(self->fd, &arg, self->drive, &seg, CSREC_P2P_MAX_SEGS + 1,
				     0));
	EXPECT_EQ(-EINVAL, p2p_write(self->fd, &arg, self->drive, &seg, 1,
				     CSREC_P2P_F_ONLY | CSREC_P2P_F_BOUNCE));
	EXPECT_EQ(-EFAULT, p2p_write(self->fd, &arg, self->drive, NULL, 1, 0));
}

TEST_F(p2p_write, file)
{
	uint32_t dram = self->dram;
	int fd;

	EXPECT_EQ(-EBADF, write_one(self->fd, -1, 0, 4096, dram, 0, 0));
	fd = open(DRIVE, O_PATH);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EBADF, write_one(self->fd, fd, 0, 4096, dram, 0, 0));
	close(fd);
	fd = open(DRIVE, O_RDONLY);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EBADF, write_one(self->fd, fd, 0, 4096, dram, 0, 0));
	close(fd);
	fd = open(DRIVE, O_WRONLY);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, write_one(self->fd, fd, 0, 4096, dram, 0, 0));
	close(fd);
	fd = open("/tmp", O_RDWR | O_TMPFILE, 0600);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ftruncate(fd, MIB));
	EXPECT_EQ(-ENOTBLK, write_one(self->fd, fd, 0, 4096, dram, 0, 0));
	close(fd);
	fd = open("/dev/null", O_RDWR);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-ENOTBLK, write_one(self->fd, fd, 0, 4096, dram, 0, 0));
	close(fd);
}

TEST_F(p2p_write, read_only_drive)
{
	int fd = open(RAM, O_RDWR), on = 1, off = 0;

	if (fd < 0)
		SKIP(return, "no RAM disk at " RAM " (module brd)");
	ASSERT_EQ(0, ioctl(fd, BLKROSET, &on));
	EXPECT_EQ(-EACCES, write_one(self->fd, fd, 0, 4096, self->dram, 0, 0));
	EXPECT_EQ(0, p2p_read_one(self->fd, fd, 0, 4096, self->dram, 0, 0));
	ASSERT_EQ(0, ioctl(fd, BLKROSET, &off));
	EXPECT_EQ(0, write_one(self->fd, fd, 0, 4096, self->dram, 0, 0));
	close(fd);
}

/* A file system holds on to the page with its superblock: nothing is written. */
TEST_F(p2p_write, held_page_cache)
{
	char was[4096], now[4096];
	int fd;

	if (access(RAM, F_OK))
		SKIP(return, "no RAM disk at " RAM " (module brd)");
	ASSERT_EQ(0, system("modprobe -q ext4; mkfs.ext4 -qF " RAM " && mkdir -p /tmp/held && "
			    "mount -t ext4 " RAM " /tmp/held"));
	fd = open(RAM, O_RDWR);
	if (fd < 0 && errno == EBUSY) {
		ASSERT_EQ(0, system("umount /tmp/held"));
		SKIP(return, "no writing to what is mounted (no BLK_DEV_WRITE_MOUNTED)");
	}
	ASSERT_LE(0, fd);
	ASSERT_EQ(4096, pread(fd, was, 4096, 0));
	for (int way = 0; way < 3; way += 2)
		EXPECT_EQ(-EBUSY, write_one(self->fd, fd, 0, 4096, self->dram, 0, p2p_ways[way]));
	ASSERT_EQ(4096, pread(fd, now, 4096, 0));
	EXPECT_EQ(0, memcmp(was, now, 4096));
	/* a read needs nothing but what was written */
	EXPECT_EQ(0, p2p_read_one(self->fd, fd, 0, 4096, self->dram, 0, 0));
	ASSERT_EQ(0, system("umount /tmp/held"));
	EXPECT_EQ(0, write_one(self->fd, fd, 0, 4096, self->dram, 0, 0));
	close(fd);
}

TEST_F(p2p_write, swap_space)
{
	int fd = open(RAM, O_RDWR);

	if (fd < 0)
		SKIP(return, "no RAM disk at " RAM " (module brd)");
	ASSERT_EQ(0, system("mkswap -q " RAM));
	if (swapon(RAM, 0)) {
		ASSERT_EQ(ENOSYS, errno);
		SKIP(return, "no swap in this kernel");
	}
	EXPECT_EQ(-ETXTBSY, write_one(self->fd, fd, 0, 4096, self->dram, 0, 0));
	EXPECT_EQ(0, p2p_read_one(self->fd, fd, 0, 4096, self->dram, 0, 0));
	ASSERT_EQ(0, swapoff(RAM));
	EXPECT_EQ(0, write_one(self->fd, fd, 0, 4096, self->dram, 0, 0));
	close(fd);
}

TEST_HARNESS_MAIN
