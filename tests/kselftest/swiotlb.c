// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A host that has every DMA bounce (swiotlb=force, as confidential guests do): memory cannot
 * be registered there, but drives can be used. Run by swiotlb.sh, with debugfs turned off.
 */
#include "csrec_test.h"

#define LEN	(3 * MIB)	/* more than any bounce buffer, of either kind */

TEST(register_is_refused)
{
	static const size_t lens[] = { 1, 4096, 64 * KIB, LEN };
	struct csrec_stats st;
	int fd = dev_open();
	uint32_t key;

	ASSERT_LE(0, fd);
	for (int i = 0; i < 4; i++) {
		for (uint32_t rights = 1; rights <= 3; rights++) {
			EXPECT_EQ(-EOPNOTSUPP, mem_register(fd, pages(LEN), lens[i], rights, &key))
				TH_LOG("%zu bytes, rights %u", lens[i], rights);
		}
	}
	ASSERT_EQ(0, get_stats(fd, &st));
	EXPECT_EQ(0, st.pinned_bytes);
	close(fd);
}

static int transfer(int fd, unsigned long nr, int drive, uint64_t off, uint32_t key)
{
	struct csrec_p2p_seg seg = { .file_off = off, .len = LEN, .key = key };
	struct csrec_p2p_read arg = {
		.size = sizeof(arg), .flags = CSREC_P2P_F_BOUNCE, .fd = drive, .count = 1,
		.segs = (uintptr_t)&seg,
	};
	int ret = xioctl(fd, nr, &arg);

	return ret ?: arg.bounce_bytes == LEN ? 0 : -EPROTO;
}

/*
 * Both ways. Other bytes come between, so that what is left in a bounce buffer is never what is
 * wanted there.
 */
TEST(drive_is_read_and_written)
{
	int fd = dev_open(), drive = open(DRIVE, O_RDWR);
	uint8_t *want = malloc(LEN), *other = malloc(LEN), *got = malloc(LEN);
	uint32_t keys[2];

	ASSERT_LE(0, fd);
	ASSERT_LE(0, drive);
	pattern_fill(want, LEN, getpid());
	pattern_fill(other, LEN, ~getpid());
	ASSERT_EQ(LEN, pwrite(drive, want, LEN, MIB));
	ASSERT_EQ(LEN, pwrite(drive, other, LEN, 8 * MIB));
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, mem_alloc(fd, CSREC_REGION_DRAM, LEN, &keys[i]));
	}
	EXPECT_EQ(0, transfer(fd, CSREC_IOC_P2P_READ, drive, MIB, keys[0]));
	EXPECT_EQ(0, transfer(fd, CSREC_IOC_P2P_READ, drive, 8 * MIB, keys[1]));
	EXPECT_EQ(0, transfer(fd, CSREC_IOC_P2P_WRITE, drive, 16 * MIB, keys[0]));
	ASSERT_EQ(LEN, pread(drive, got, LEN, 16 * MIB));
	EXPECT_EQ(0, memcmp(got, want, LEN));
	close(fd);
	close(drive);
}

/* The driver has all but its tables for debugging, and the other tests show that it works. */
TEST(nothing_needs_debugfs)
{
	EXPECT_NE(0, access("/sys/kernel/debug/csrec", F_OK));
	EXPECT_TRUE(attr_is("state", "live"));
}

TEST_HARNESS_MAIN
