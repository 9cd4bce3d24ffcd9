// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Commands through the driver: data, order, fences, and what the device refuses. Expected
 * bytes are worked out here.
 */
#include "csrec_test.h"

FIXTURE(cmds)
{
	int fd;
	int q;
	uint8_t *host;		/* registered READ and WRITE */
	uint32_t host_key;
	uint32_t dram;
	uint32_t onchip;
};

#define HOST_LEN	(64 * KIB)

FIXTURE_SETUP(cmds)
{
	self->fd = dev_open();
	ASSERT_LE(0, self->fd);
	self->q = q_create(self->fd, 16);
	ASSERT_LT(0, self->q);
	self->host = pages(HOST_LEN);
	ASSERT_NE(NULL, self->host);
	ASSERT_EQ(0, mem_register(self->fd, self->host, HOST_LEN,
				  CSREC_RIGHT_READ | CSREC_RIGHT_WRITE, &self->host_key));
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, HOST_LEN, &self->dram));
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_ONCHIP, 32 * KIB, &self->onchip));
}

FIXTURE_TEARDOWN(cmds)
{
	close(self->fd);
}

/* The completion says who, success, and so many commands fetched. */
TEST_F(cmds, nop)
{
	struct csrec_cmd cmd = cmd_make(CSREC_OP_NOP, 0xabcd);
	struct csrec_cqe cqe;

	memset(&cqe, 0xff, sizeof(cqe));
	EXPECT_EQ(0, run_cmd(self->fd, self->q, &cmd, &cqe));
	EXPECT_EQ(0xabcd, le16toh(cqe.cid));
	EXPECT_EQ(1, le16toh(cqe.sq_head));
	EXPECT_EQ(0, cqe.detail);
}

/* Through each kind of memory and back, at alignments that straddle every boundary. */
TEST_F(cmds, copy)
{
	static const struct { unsigned int src, dst, len; } cases[] = {
		{ 0, 0, 1 }, { 0, 0, 4096 }, { 1, 0, 64 }, { 0, 1, 64 }, { 63, 1, 2 },
		{ 3, 5, 4096 }, { 4095, 4095, 2 }, { 4093, 61, 8197 }, { 17, 4080, 12289 },
	};
	uint8_t *in = self->host, *out = self->host + 32 * KIB, want[16 * KIB];
	struct csrec_cqe cqe;
	struct csrec_cmd cmd;

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned int src = cases[i].src, dst = cases[i].dst, len = cases[i].len;

		pattern_fill(in, 32 * KIB, 20 + i);
		memset(out, 0xee, 32 * KIB);
		memset(want, 0xee, sizeof(want));
		memcpy(want + dst, in + src, len);

		cmd = cmd_copy(self->host_key, src, self->dram, dst, len);
		ASSERT_EQ(0, run_cmd(self->fd, self->q, &cmd, &cqe));
		EXPECT_EQ(len, le64toh(cqe.detail));
		cmd = cmd_copy(self->dram, dst, self->onchip, src, len);
		ASSERT_EQ(0, run_cmd(self->fd, self->q, &cmd, &cqe));
		cmd = cmd_copy(self->onchip, src, self->host_key, 32 * KIB + dst, len);
		ASSERT_EQ(0, run_cmd(self->fd, self->q, &cmd, &cqe));
		EXPECT_EQ(0, memcmp(out, want, sizeof(want)))
			TH_LOG("source %u, destination %u, length %u", src, dst, len);
	}
}

TEST_F(cmds, fill)
{
	static const struct { unsigned int off, len; } cases[] = {
		{ 0, 4 }, { 4, 4 }, { 60, 8 }, { 4092, 8 }, { 0, 8192 }, { 12, 8188 },
	};
	uint32_t keys[] = { self->host_key, self->dram, self->onchip };
	uint8_t want[16 * KIB];
	struct csrec_cqe cqe;
	struct csrec_cmd cmd;

	for (unsigned int k = 0; k < 3; k++) {
		for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			unsigned int off = cases[i].off, len = cases[i].len;
			uint32_t pattern = 0x01020304 + 0x10101010 * i;

			memset(want, 0xee, sizeof(want));
			for (unsigned int n = 0; n < len; n++)
				want[off + n] = pattern >> 8 * (n % 4);
			cmd = cmd_fill(keys[k], 0, sizeof(want), 0xeeeeeeee);
			ASSERT_EQ(0, run_cmd(self->fd, self->q, &cmd, &cqe));
			cmd = cmd_fill(keys[k], off, len, pattern);
			ASSERT_EQ(0, run_cmd(self->fd, self->q, &cmd, &cqe));
			EXPECT_EQ(len, le64toh(cqe.detail));
			cmd = cmd_copy(keys[k], 0, self->host_key, 32 * KIB, sizeof(want));
			ASSERT_EQ(0, run_cmd(self->fd, self->q, &cmd, &cqe));
			EXPECT_EQ(0, memcmp(self->host + 32 * KIB, want, sizeof(want)))
				TH_LOG("memory %u, offset %u, length %u", k, off, len);
		}
	}
}

/* One command after another by F_FENCE: a chain through device memory comes out whole. */
TEST_F(cmds, flag_fence)
{
	struct csrec_cmd cmds[4];
	struct csrec_cqe cqes[4];

	for (int round = 0; round < 5; round++) {
		pattern_fill(self->host, 16 * KIB, 40 + round);
		cmds[0] = cmd_copy(self->host_key, 0, self->dram, 0, 16 * KIB);
		cmds[1] = cmd_copy(self->dram, 0, self->onchip, 0, 16 * KIB);
		cmds[2] = cmd_copy(self->onchip, 0, self->dram, 16 * KIB, 16 * KIB);
		cmds[3] = cmd_copy(self->dram, 16 * KIB, self->host_key, 32 * KIB, 16 * KIB);
		for (int i = 0; i < 4; i++) {
			cmds[i].cid = htole16(i);
			cmds[i].flags = CSREC_CMD_F_FENCE;
		}
		ASSERT_EQ(4, q_submit(self->fd, self->q, cmds, 4));
		ASSERT_EQ(4, q_wait(self->fd, self->q, cqes, 4, 4, -1));
		for (int i = 0; i < 4; i++) {
			EXPECT_EQ(0, cqe_status(&cqes[i]));
			EXPECT_EQ(i, le16toh(cqes[i].cid));
		}
		EXPECT_EQ(0, memcmp(self->host, self->host + 32 * KIB, 16 * KIB));
	}
}

TEST_F(cmds, fence_command)
{
	struct csrec_cmd cmds[4];
	struct csrec_cqe cqes[4];

	pattern_fill(self->host, 16 * KIB, 50);
	cmds[0] = cmd_copy(self->host_key, 0, self->dram, 0, 16 * KIB);
	cmds[1] = cmd_make(CSREC_OP_FENCE, 0);
	cmds[2] = cmd_copy(self->dram, 0, self->host_key, 32 * KIB, 16 * KIB);
	cmds[3] = cmd_make(CSREC_OP_FENCE, 0);
	for (int i = 0; i < 4; i++)
		cmds[i].cid = htole16(i);
	ASSERT_EQ(4, q_submit(self->fd, self->q, cmds, 4));
	ASSERT_EQ(4, q_wait(self->fd, self->q, cqes, 4, 4, -1));
	for (int i = 0; i < 4; i++) {
		EXPECT_EQ(0, cqe_status(&cqes[i]));
		EXPECT_EQ(i, le16toh(cqes[i].cid));
	}
	EXPECT_EQ(0, memcmp(self->host, self->host + 32 * KIB, 16 * KIB));
}

/* SIGNAL on one queue, WAIT on another; values rise and never fall. */
TEST_F(cmds, signal_and_wait)
{
	struct csrec_cqe cqe;
	struct csrec_cmd cmd;
	uint32_t fence;
	int q2;

	q2 = q_create(self->fd, 4);
	ASSERT_LT(0, q2);
	ASSERT_EQ(0, fence_create(self->fd, 5, &fence));
	cmd = cmd_fence(CSREC_OP_WAIT, fence, 5);	/* the first value counts */
	ASSERT_EQ(0, run_cmd(self->fd, q2, &cmd, &cqe));
	EXPECT_EQ(5, le64toh(cqe.detail));

	cmd = cmd_fence(CSREC_OP_WAIT, fence, 7);
	ASSERT_EQ(1, q_submit(self->fd, q2, &cmd, 1));
	cmd = cmd_fence(CSREC_OP_SIGNAL, fence, 6);
	ASSERT_EQ(0, run_cmd(self->fd, self->q, &cmd, &cqe));
	EXPECT_EQ(6, le64toh(cqe.detail));
	EXPECT_EQ(-EAGAIN, q_wait(self->fd, q2, &cqe, 1, 1, 0));
	cmd = cmd_fence(CSREC_OP_SIGNAL, fence, 9);
	ASSERT_EQ(0, run_cmd(self->fd, self->q, &cmd, &cqe));
	EXPECT_EQ(9, le64toh(cqe.detail));
	ASSERT_EQ(1, q_wait(self->fd, q2, &cqe, 1, 1, -1));
	EXPECT_EQ(0, cqe_status(&cqe));
	EXPECT_EQ(9, le64toh(cqe.detail));

	cmd = cmd_fence(CSREC_OP_SIGNAL, fence, 3);
	ASSERT_EQ(0, run_cmd(self->fd, self->q, &cmd, &cqe));
	EXPECT_EQ(9, le64toh(cqe.detail));
	/* unsigned */
	cmd = cmd_fence(CSREC_OP_SIGNAL, fence, ~0ULL);
	ASSERT_EQ(0, run_cmd(self->fd, self->q, &cmd, &cqe));
	EXPECT_EQ(~0ULL, le64toh(cqe.detail));
}

TEST_F(cmds, fence_ioctls)
{
	struct csrec_cqe cqe;
	struct csrec_cmd cmd;
	uint32_t fence;
	int fd = dev_open();

	ASSERT_EQ(0, fence_create(self->fd, 0, &fence));
	cmd = cmd_fence(CSREC_OP_WAIT, fence, 100);
	ASSERT_EQ(1, q_submit(self->fd, self->q, &cmd, 1));
	EXPECT_EQ(0, fence_signal(self->fd, fence, 99));
	EXPECT_EQ(-EAGAIN, q_wait(self->fd, self->q, &cqe, 1, 1, 0));
	EXPECT_EQ(0, fence_signal(self->fd, fence, 200));
	ASSERT_EQ(1, q_wait(self->fd, self->q, &cqe, 1, 1, -1));
	EXPECT_EQ(200, le64toh(cqe.detail));
	/* does not lower it */
	EXPECT_EQ(0, fence_signal(self->fd, fence, 1));
	cmd = cmd_fence(CSREC_OP_WAIT, fence, 200);
	EXPECT_EQ(0, run_cmd(self->fd, self->q, &cmd, &cqe));

	EXPECT_EQ(-ENOENT, fence_signal(self->fd, 0, 1));
	EXPECT_EQ(-ENOENT, fence_signal(self->fd, fence + (1 << CSREC_KEY_GEN_SHIFT), 1));
	EXPECT_EQ(-ENOENT, fence_signal(fd, fence, 300));
	EXPECT_EQ(-ENOENT, fence_destroy(fd, fence));
	EXPECT_EQ(0, fence_destroy(self->fd, fence));
	EXPECT_EQ(-ENOENT, fence_destroy(self->fd, fence));
	EXPECT_EQ(-ENOENT, fence_signal(self->fd, fence, 300));
	EXPECT_EQ(CSREC_ST_STALE_KEY, run_cmd(self->fd, self->q, &cmd, &cqe));
	close(fd);
}

TEST_F(cmds, fence_destroyed_under_wait)
{
	struct csrec_cqe cqe;
	struct csrec_cmd cmd;
	uint32_t fence;

	ASSERT_EQ(0, fence_create(self->fd, 0, &fence));
	cmd = cmd_fence(CSREC_OP_WAIT, fence, 1);
	ASSERT_EQ(1, q_submit(self->fd, self->q, &cmd, 1));
	ASSERT_EQ(0, fence_destroy(self->fd, fence));
	ASSERT_EQ(1, q_wait(self->fd, self->q, &cqe, 1, 1, -1));
	EXPECT_EQ(CSREC_ST_STALE_KEY, cqe_status(&cqe));
}

TEST_F(cmds, foreign_fence)
{
	int fd = dev_open(), q = q_create(fd, 2);
	struct csrec_cqe cqe;
	struct csrec_cmd cmd;
	uint32_t fence;

	ASSERT_LT(0, q);
	ASSERT_EQ(0, fence_create(self->fd, 0, &fence));
	cmd = cmd_fence(CSREC_OP_SIGNAL, fence, 1);
	EXPECT_EQ(CSREC_ST_BAD_DOMAIN, run_cmd(fd, q, &cmd, &cqe));
	cmd = cmd_fence(CSREC_OP_WAIT, fence, 0);
	EXPECT_EQ(CSREC_ST_BAD_DOMAIN, run_cmd(fd, q, &cmd, &cqe));
	close(fd);
}

TEST_F(cmds, fence_slots)
{
	struct csrec_info info;
	unsigned int slots, n = 0;
	uint32_t key = 0, last = 0;
	int ret;

	ASSERT_EQ(0, get_info(self->fd, &info));
	slots = (info.cap_table >> CSREC_CAPT_FENCES_SHIFT) & 0xffff;
	while (!(ret = fence_create(self->fd, 0, &key))) {
		last = key;
		ASSERT_LE(++n, slots);
	}
	EXPECT_EQ(-ENOSPC, ret);
	EXPECT_EQ(slots, n);
	EXPECT_EQ(0, fence_destroy(self->fd, last));
	EXPECT_EQ(0, fence_create(self->fd, 0, &key));
}

/* What is wrong with a command, in the words of the programmer's reference. */
TEST_F(cmds, refused)
{
	static const uint8_t admin[] = {
		CSREC_OP_QUEUE_CREATE, CSREC_OP_QUEUE_DELETE, CSREC_OP_REGION_SET,
		CSREC_OP_REGION_INVAL, CSREC_OP_FENCE_SET, CSREC_OP_FENCE_INVAL,
		CSREC_OP_FENCE_SIGNAL, 0x00, 0x07, 0x0f, 0x14, 0x7f, 0x87, 0xff,
	};
	struct csrec_cmd cmd;
	struct csrec_cqe cqe;

	for (unsigned int i = 0; i < sizeof(admin); i++) {
		cmd = cmd_make(admin[i], 0x1234);
		EXPECT_EQ(CSREC_ST_BAD_OPCODE, run_cmd(self->fd, self->q, &cmd, &cqe))
			TH_LOG("opcode 0x%02x", admin[i]);
		EXPECT_EQ(0x1234, le16toh(cqe.cid));
		EXPECT_EQ(offsetof(struct csrec_cmd, opcode), le16toh(cqe.field));
		EXPECT_EQ(admin[i], le64toh(cqe.detail));
	}

	cmd = cmd_make(CSREC_OP_NOP, 0);
	cmd.flags = 0x81;
	EXPECT_EQ(CSREC_ST_BAD_FLAGS, run_cmd(self->fd, self->q, &cmd, &cqe));
	EXPECT_EQ(offsetof(struct csrec_cmd, flags), le16toh(cqe.field));
	EXPECT_EQ(0x81, le64toh(cqe.detail));

	cmd = cmd_make(CSREC_OP_NOP, 0);
	cmd.rsvd4 = htole32(1);
	EXPECT_EQ(CSREC_ST_RESERVED, run_cmd(self->fd, self->q, &cmd, &cqe));
	EXPECT_EQ(offsetof(struct csrec_cmd, rsvd4), le16toh(cqe.field));

	cmd = cmd_copy(self->host_key, 0, self->dram, 0, 0);
	EXPECT_EQ(CSREC_ST_BAD_LENGTH, run_cmd(self->fd, self->q, &cmd, &cqe));
	EXPECT_EQ(offsetof(struct csrec_cmd, body) + offsetof(struct csrec_body_copy, len),
		  le16toh(cqe.field));

	cmd = cmd_fill(self->dram, 2, 4, 0);
	EXPECT_EQ(CSREC_ST_BAD_ALIGN, run_cmd(self->fd, self->q, &cmd, &cqe));
	EXPECT_EQ(offsetof(struct csrec_cmd, body) + offsetof(struct csrec_body_copy, dst_off),
		  le16toh(cqe.field));
	EXPECT_EQ(2, le64toh(cqe.detail));

	cmd = cmd_fill(self->dram, 0, 6, 0);
	EXPECT_EQ(CSREC_ST_BAD_ALIGN, run_cmd(self->fd, self->q, &cmd, &cqe));

	/* the queue works on */
	cmd = cmd_make(CSREC_OP_NOP, 3);
	EXPECT_EQ(0, run_cmd(self->fd, self->q, &cmd, &cqe));
}

/* Wrong and right ones in a mix: each gets its own answer. */
TEST_F(cmds, mix)
{
	struct csrec_cmd cmds[12];
	struct csrec_cqe cqes[12];

	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 12; i++) {
			cmds[i] = i % 3 == 0 ? cmd_copy(self->host_key, 0, self->dram, 0, 64) :
				  i % 3 == 1 ? cmd_copy(self->host_key, 0, 0, 0, 64) :
					       cmd_fill(self->dram, 0, HOST_LEN + 4, 0);
			cmds[i].cid = htole16(i);
		}
		ASSERT_EQ(12, q_submit(self->fd, self->q, cmds, 12));
		ASSERT_EQ(12, q_wait(self->fd, self->q, cqes, 12, 12, -1));
		for (int i = 0; i < 12; i++) {
			unsigned int cid = le16toh(cqes[i].cid);

			EXPECT_EQ(cid % 3 == 0 ? CSREC_ST_OK :
				  cid % 3 == 1 ? CSREC_ST_STALE_KEY : CSREC_ST_OUT_OF_BOUNDS,
				  cqe_status(&cqes[i]));
		}
	}
}

TEST_HARNESS_MAIN
