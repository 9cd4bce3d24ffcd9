// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A host that has every DMA bounce (swiotlb=force, as confidential guests do): memory cannot
 * be registered there, but drives can be read. Run by swiotlb.sh, with debugfs turned off.
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

/* Device memory, as its BAR shows it, holds @want somewhere. */
static bool dram_holds(const struct csrec_info *info, const uint8_t *want, size_t len)
{
	int fd = open("/sys/class/csrec/csrec0/device/resource2", O_RDWR);
	uint8_t *bar = mmap(NULL, info->cap_dram, PROT_READ, MAP_SHARED, fd, 0);
	bool found = false;

	close(fd);
	if (bar == MAP_FAILED)
		return false;
	for (size_t off = 0; off + len <= info->cap_dram && !found; off += 4096)
		found = !memcmp(bar + off, want, 64) && !memcmp(bar + off, want, len);
	munmap(bar, info->cap_dram);
	return found;
}

TEST(drive_is_read)
{
	int fd = dev_open(), drive = open(DRIVE, O_RDWR);
	struct csrec_p2p_seg seg = { .file_off = MIB, .len = LEN };
	struct csrec_p2p_read arg = {
		.size = sizeof(arg), .flags = CSREC_P2P_F_BOUNCE, .fd = drive, .count = 1,
		.segs = (uintptr_t)&seg,
	};
	uint8_t *want = malloc(LEN);
	struct csrec_info info;

	ASSERT_LE(0, fd);
	ASSERT_LE(0, drive);
	ASSERT_EQ(0, get_info(fd, &info));
	pattern_fill(want, LEN, getpid());
	ASSERT_EQ(LEN, pwrite(drive, want, LEN, MIB));
	ASSERT_EQ(0, mem_alloc(fd, CSREC_REGION_DRAM, LEN, &seg.key));
	EXPECT_EQ(0, xioctl(fd, CSREC_IOC_P2P_READ, &arg));
	EXPECT_EQ(LEN, arg.bounce_bytes);
	EXPECT_TRUE(dram_holds(&info, want, LEN));
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
