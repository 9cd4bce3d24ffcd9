// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A drive with bad blocks: -EIO, no fence raised, no bytes counted, and everything else goes on.
 * The drive is CSREC_BAD, see bus.sh: reads of one block fail, and writes of another.
 */
#include "p2p.h"

#define LEN		(64 * KIB)
#define BAD_READ	(4 * MIB)
#define BAD_WRITE	(8 * MIB)

FIXTURE(p2p_error)
{
	int fd;
	int q;
	int drive;
	bool p2p;
	uint32_t dram;
	uint32_t fence;
};

FIXTURE_VARIANT(p2p_error)
{
	bool write;
	uint64_t bad;
};

FIXTURE_VARIANT_ADD(p2p_error, read)
{
	.bad = BAD_READ,
};

FIXTURE_VARIANT_ADD(p2p_error, write)
{
	.write = true,
	.bad = BAD_WRITE,
};

FIXTURE_SETUP(p2p_error)
{
	const char *bad = getenv("CSREC_BAD");

	if (!bad)
		SKIP(return, "no drive with bad blocks");
	ASSERT_EQ(0, p2p_begin(&self->fd, &self->q, &self->p2p));
	self->drive = open(bad, O_RDWR);
	ASSERT_LE(0, self->drive);
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, MIB, &self->dram));
	ASSERT_EQ(0, fence_create(self->fd, 0, &self->fence));
}

FIXTURE_TEARDOWN(p2p_error)
{
	close(self->fd);
	close(self->drive);
}

/* The bad block is in the last of several segments; the fence would say that all are there. */
static int transfer(FIXTURE_DATA(p2p_error) *self, bool write, uint64_t off, uint32_t flags,
		    struct csrec_p2p_read *arg)
{
	struct csrec_p2p_seg segs[4];

	for (int i = 0; i < 4; i++)
		segs[i] = (struct csrec_p2p_seg){
			.file_off = i == 3 ? off - 4096 : 2 * off + i * LEN,
			.len = LEN, .dev_off = i * LEN, .key = self->dram,
		};
	*arg = p2p_arg(self->drive, segs, 4, flags);
	arg->fence_key = self->fence;
	arg->fence_value = 1;
	return xioctl(self->fd, write ? CSREC_IOC_P2P_WRITE : CSREC_IOC_P2P_READ, arg);
}

TEST_F(p2p_error, bad_block)
{
	for (int i = 0; i < 3; i++) {
		bool peer = self->p2p && p2p_ways[i] != CSREC_P2P_F_BOUNCE;
		struct csrec_cmd wait = cmd_fence(CSREC_OP_WAIT, self->fence, 1);
		struct csrec_stats before, after;
		struct csrec_p2p_read arg;
		struct csrec_cqe cqe;

		if (p2p_ways[i] == CSREC_P2P_F_ONLY && !self->p2p)
			continue;
		ASSERT_EQ(0, get_stats(self->fd, &before));
		ASSERT_EQ(1, q_submit(self->fd, self->q, &wait, 1));
		EXPECT_EQ(-EIO, transfer(self, variant->write, variant->bad, p2p_ways[i], &arg)) {
			TH_LOG("way %d", i);
		}
		ASSERT_EQ(0, get_stats(self->fd, &after));
		EXPECT_EQ(before.p2p_bytes, after.p2p_bytes);
		EXPECT_EQ(before.bounce_bytes, after.bounce_bytes);
		/* the fence is as it was; and the same drive, device and memory serve on */
		EXPECT_EQ(-EAGAIN, q_wait(self->fd, self->q, &cqe, 1, 1, 0));
		EXPECT_EQ(0, transfer(self, variant->write, MIB, p2p_ways[i], &arg));
		EXPECT_EQ(peer ? 4 * LEN : 0, arg.p2p_bytes);
		EXPECT_EQ(peer ? 0 : 4 * LEN, arg.bounce_bytes);
		EXPECT_EQ(1, q_wait(self->fd, self->q, &cqe, 1, 1, -1));
		ASSERT_EQ(0, fence_destroy(self->fd, self->fence));
		ASSERT_EQ(0, fence_create(self->fd, 0, &self->fence));
	}
}

/* Direct I/O on mapped device memory is the kernel's own: it says what the drive said. */
TEST_F(p2p_error, mapped_memory)
{
	int direct = open(getenv("CSREC_BAD"), O_RDWR | O_DIRECT);
	uint64_t offset;
	uint32_t key;
	uint8_t *p;

	ASSERT_LE(0, direct);
	ASSERT_EQ(0, mem_alloc_map(self->fd, LEN, 0, &key, &offset));
	if (!offset)
		SKIP(return, "no peer-to-peer memory");
	p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, self->fd, offset);
	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(-1, variant->write ? pwrite(direct, p, LEN, variant->bad) :
				       pread(direct, p, LEN, variant->bad));
	EXPECT_TRUE(errno == EIO || errno == ENODATA) {
		TH_LOG("errno %d", errno);
	}
	EXPECT_EQ(LEN, variant->write ? pwrite(direct, p, LEN, MIB) : pread(direct, p, LEN, MIB));
	close(direct);
}

TEST_HARNESS_MAIN
