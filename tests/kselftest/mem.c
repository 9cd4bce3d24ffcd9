// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Memory: registered user memory, device memory, keys.
 */
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "csrec_test.h"

FIXTURE(mem)
{
	int fd;
	int q;
	struct csrec_info info;
};

FIXTURE_SETUP(mem)
{
	self->fd = dev_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, get_info(self->fd, &self->info));
	self->q = q_create(self->fd, 16);
	ASSERT_LT(0, self->q);
}

FIXTURE_TEARDOWN(mem)
{
	close(self->fd);
}

static uint64_t pinned(int fd)
{
	struct csrec_stats st;

	return get_stats(fd, &st) ? ~0ULL : st.pinned_bytes;
}

static int copy(int fd, int q, uint32_t src, uint64_t src_off, uint32_t dst, uint64_t dst_off,
		uint64_t len)
{
	struct csrec_cmd cmd = cmd_copy(src, src_off, dst, dst_off, len);
	struct csrec_cqe cqe;

	return run_cmd(fd, q, &cmd, &cqe);
}

/* ---- MEM_REGISTER ---- */

TEST_F(mem, register_arguments)
{
	void *p = pages(4096);
	uint32_t key;

	EXPECT_EQ(-EINVAL, mem_register(self->fd, p, 0, CSREC_RIGHT_READ, &key));
	EXPECT_EQ(-EINVAL, mem_register(self->fd, p, 4096, 0, &key));
	EXPECT_EQ(-EINVAL, mem_register(self->fd, p, 4096, 4, &key));
	EXPECT_EQ(-EINVAL, mem_register(self->fd, p, 4096, 0x80000001, &key));
	EXPECT_EQ(-EINVAL, mem_register(self->fd, p, CSREC_MEM_MAX_PIN + 1, CSREC_RIGHT_READ, &key));
	EXPECT_EQ(-EINVAL, mem_register(self->fd, p, ~0ULL, CSREC_RIGHT_READ, &key));
	/* as an address of 64 bits, which is what the driver adds up */
	if (sizeof(void *) == 8) {
		EXPECT_EQ(-EINVAL, mem_register(self->fd, (void *)-4096L, 8192, CSREC_RIGHT_READ, &key));
	}
	EXPECT_EQ(-EFAULT, mem_register(self->fd, NULL, 4096, CSREC_RIGHT_READ, &key));
	EXPECT_EQ(-EFAULT, mem_register(self->fd, (void *)0xffff888000000000, 4096,
					CSREC_RIGHT_READ, &key));
	EXPECT_EQ(0, pinned(self->fd));
}

TEST_F(mem, register_partly_mapped)
{
	char *p = pages(16 * 4096);
	uint32_t key;

	ASSERT_EQ(0, munmap(p + 15 * 4096, 4096));
	EXPECT_EQ(-EFAULT, mem_register(self->fd, p, 16 * 4096, CSREC_RIGHT_READ, &key));
	/* what had been pinned is pinned no more */
	EXPECT_EQ(0, pinned(self->fd));
	EXPECT_EQ(0, mem_register(self->fd, p, 15 * 4096, CSREC_RIGHT_READ, &key));
	EXPECT_EQ(15 * 4096, pinned(self->fd));
	EXPECT_EQ(0, mem_free(self->fd, key));
	EXPECT_EQ(0, pinned(self->fd));
}

/* The device reads from it: a read-only mapping is enough. It writes: it is not. */
TEST_F(mem, register_read_only_mapping)
{
	char path[] = "/tmp/csrec-test-XXXXXX";
	int file = mkstemp(path);
	uint8_t *ro, *out = pages(4096), text[4096];
	uint32_t src, dst, key;

	ASSERT_LE(0, file);
	unlink(path);
	pattern_fill(text, sizeof(text), 1);
	ASSERT_EQ(sizeof(text), write(file, text, sizeof(text)));
	ro = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
	ASSERT_NE(MAP_FAILED, ro);
	ASSERT_EQ(0, mem_register(self->fd, ro, 4096, CSREC_RIGHT_READ, &src));
	ASSERT_EQ(0, mem_register(self->fd, out, 4096, CSREC_RIGHT_WRITE, &dst));
	EXPECT_EQ(0, copy(self->fd, self->q, src, 0, dst, 0, 4096));
	EXPECT_EQ(0, memcmp(out, text, 4096));

	EXPECT_EQ(-EFAULT, mem_register(self->fd, ro, 4096, CSREC_RIGHT_WRITE, &key));
	EXPECT_EQ(-EFAULT, mem_register(self->fd, ro, 4096,
					CSREC_RIGHT_READ | CSREC_RIGHT_WRITE, &key));
}

/* A device's memory is not the caller's, however it was mapped. */
TEST_F(mem, register_device_memory)
{
	uint32_t key;
	void *p;
	int fd;

	fd = open("/sys/class/csrec/csrec0/device/p2pmem/allocate", O_RDWR);
	if (fd < 0)
		SKIP(return, "no peer-to-peer memory");
	p = mmap(NULL, 64 * KIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(-EFAULT, mem_register(self->fd, p, 64 * KIB, CSREC_RIGHT_READ, &key));
	EXPECT_EQ(-EFAULT, mem_register(self->fd, p, 64 * KIB, CSREC_RIGHT_WRITE, &key));
	EXPECT_EQ(0, pinned(self->fd));
	close(fd);
}

/* A fresh mapping has no pages of its own yet; the device's writes must reach it. */
TEST_F(mem, register_untouched_memory)
{
	uint8_t *in = pages(4096), *out = pages(3 * 4096);
	uint32_t src, dst;

	pattern_fill(in, 4096, 2);
	ASSERT_EQ(0, mem_register(self->fd, in, 4096, CSREC_RIGHT_READ, &src));
	ASSERT_EQ(0, mem_register(self->fd, out, 3 * 4096, CSREC_RIGHT_WRITE, &dst));
	EXPECT_EQ(0, copy(self->fd, self->q, src, 0, dst, 4096 + 5, 4091));
	for (int i = 0; i < 4096 + 5; i++) {
		ASSERT_EQ(0, out[i]);
	}
	EXPECT_EQ(0, memcmp(out + 4096 + 5, in, 4091));
	EXPECT_EQ(0, out[2 * 4096]);
}

TEST_F(mem, register_any_alignment)
{
	static const struct { unsigned int off, len; } cases[] = {
		{ 0, 1 }, { 1, 1 }, { 4095, 1 }, { 4095, 2 }, { 0xff0, 0x20 }, { 1, 4096 },
		{ 4095, 8194 }, { 63, 65 }, { 7, 12281 },
	};
	uint8_t *in = pages(4 * 4096), *out = pages(4 * 4096), *want = malloc(4 * 4096);

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned int off = cases[i].off, len = cases[i].len;
		uint32_t src, dst;

		pattern_fill(in, 4 * 4096, 10 + i);
		memset(out, 0xee, 4 * 4096);
		memset(want, 0xee, 4 * 4096);
		memcpy(want + off, in + off, len);
		ASSERT_EQ(0, mem_register(self->fd, in + off, len, CSREC_RIGHT_READ, &src));
		ASSERT_EQ(0, mem_register(self->fd, out + off, len, CSREC_RIGHT_WRITE, &dst));
		EXPECT_EQ(0, copy(self->fd, self->q, src, 0, dst, 0, len));
		EXPECT_EQ(0, memcmp(out, want, 4 * 4096))
			TH_LOG("offset %u, length %u", off, len);
		/* the region ends where it was said to, not at the end of the page */
		EXPECT_EQ(CSREC_ST_OUT_OF_BOUNDS, copy(self->fd, self->q, src, 0, dst, 1, len));
		EXPECT_EQ(CSREC_ST_OUT_OF_BOUNDS, copy(self->fd, self->q, src, len, dst, 0, 1));
		ASSERT_EQ(0, mem_free(self->fd, src));
		ASSERT_EQ(0, mem_free(self->fd, dst));
	}
}

/* More pages than one page list holds, so that the device walks two levels. */
TEST_F(mem, register_many_pages)
{
	const size_t len = 1030 * 4096;
	uint8_t *p = pages(len), *out = pages(3 * 4096);
	uint32_t src, dst;

	/* no huge pages, and every other one given back and taken anew: not contiguous */
	madvise(p, len, MADV_NOHUGEPAGE);
	pattern_fill(p, len, 3);
	for (size_t off = 0; off < len; off += 2 * 4096) {
		madvise(p + off, 4096, MADV_DONTNEED);
		pattern_fill(p + off, 4096, 1000 + off);
	}
	ASSERT_EQ(0, mem_register(self->fd, p + 100, len - 100, CSREC_RIGHT_READ, &src));
	ASSERT_EQ(0, mem_register(self->fd, out, 3 * 4096, CSREC_RIGHT_WRITE, &dst));
	static const size_t offs[] = { 0, 511 * 4096 - 200, 512 * 4096 - 150, 1023 * 4096, 1027 * 4096 - 100 };

	for (unsigned int i = 0; i < sizeof(offs) / sizeof(offs[0]); i++) {
		EXPECT_EQ(0, copy(self->fd, self->q, src, offs[i], dst, 0, 3 * 4096));
		EXPECT_EQ(0, memcmp(out, p + 100 + offs[i], 3 * 4096))
			TH_LOG("offset %zu", offs[i]);
	}
}

static int drop_ipc_lock(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data))
		return -errno;
	data[0].effective &= ~(1u << CAP_IPC_LOCK);
	return syscall(SYS_capset, &head, data) ? -errno : 0;
}

TEST_F(mem, register_memlock)
{
	struct rlimit lim = { 64 * KIB, 64 * KIB };
	char *p = pages(MIB);
	uint32_t a, b;

	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &lim));
	/* CAP_IPC_LOCK is above the limit */
	ASSERT_EQ(0, mem_register(self->fd, p, MIB, CSREC_RIGHT_READ, &a));
	ASSERT_EQ(0, mem_free(self->fd, a));

	ASSERT_EQ(0, drop_ipc_lock());
	EXPECT_EQ(-ENOMEM, mem_register(self->fd, p, MIB, CSREC_RIGHT_READ, &a));
	EXPECT_EQ(-ENOMEM, mem_register(self->fd, p, 64 * KIB + 1, CSREC_RIGHT_READ, &a));
	EXPECT_EQ(0, pinned(self->fd));
	/* it is the sum that counts, and what is freed counts no more */
	EXPECT_EQ(0, mem_register(self->fd, p, 40 * KIB, CSREC_RIGHT_READ, &a));
	EXPECT_EQ(-ENOMEM, mem_register(self->fd, p, 40 * KIB, CSREC_RIGHT_READ, &b));
	EXPECT_EQ(0, mem_register(self->fd, p, 24 * KIB, CSREC_RIGHT_READ, &b));
	EXPECT_EQ(0, mem_free(self->fd, a));
	EXPECT_EQ(0, mem_register(self->fd, p, 40 * KIB, CSREC_RIGHT_READ, &a));
	/* a close gives back as well */
	close(self->fd);
	self->fd = dev_open();
	ASSERT_LE(0, self->fd);
	EXPECT_EQ(0, mem_register(self->fd, p, 64 * KIB, CSREC_RIGHT_READ, &a));
}

/* A number of /proc/self/status, in KiB. */
static unsigned long status_of(const char *name)
{
	FILE *f = fopen("/proc/self/status", "r");
	unsigned long n = 0;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			n = strtoul(line + strlen(name), NULL, 10);
	if (f)
		fclose(f);
	return n;
}

/* Pinned memory is accounted as such, and takes nothing from what mlock() may have. */
TEST_F(mem, register_is_pinned)
{
	char *p = pages(MIB);
	uint32_t key;

	ASSERT_EQ(0, status_of("VmPin:"));
	ASSERT_EQ(0, mem_register(self->fd, p, MIB, CSREC_RIGHT_READ, &key));
	EXPECT_EQ(1024, status_of("VmPin:"));
	EXPECT_EQ(0, status_of("VmLck:"));
	EXPECT_EQ(0, mem_free(self->fd, key));
	EXPECT_EQ(0, status_of("VmPin:"));
}

/* A failed registration leaves no charge behind either. */
TEST_F(mem, register_memlock_after_failure)
{
	struct rlimit lim = { 64 * KIB, 64 * KIB };
	char *p = pages(64 * KIB);
	uint32_t key;

	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &lim));
	ASSERT_EQ(0, drop_ipc_lock());
	ASSERT_EQ(0, munmap(p + 60 * KIB, 4096));
	for (int i = 0; i < 20; i++) {
		ASSERT_EQ(-EFAULT, mem_register(self->fd, p, 64 * KIB, CSREC_RIGHT_READ, &key));
	}
	EXPECT_EQ(0, mem_register(self->fd, p, 60 * KIB, CSREC_RIGHT_READ, &key));
}

/* ---- MEM_ALLOC ---- */

TEST_F(mem, alloc_arguments)
{
	uint32_t key;

	EXPECT_EQ(-EINVAL, mem_alloc(self->fd, 0, 4096, &key));
	EXPECT_EQ(-EINVAL, mem_alloc(self->fd, CSREC_REGION_HOST, 4096, &key));
	EXPECT_EQ(-EINVAL, mem_alloc(self->fd, CSREC_REGION_PEER, 4096, &key));
	EXPECT_EQ(-EINVAL, mem_alloc(self->fd, 0x102, 4096, &key));
	EXPECT_EQ(-EINVAL, mem_alloc(self->fd, CSREC_REGION_DRAM, 0, &key));
	EXPECT_EQ(-EINVAL, mem_alloc(self->fd, CSREC_REGION_ONCHIP, 0, &key));
	EXPECT_EQ(-ENOMEM, mem_alloc(self->fd, CSREC_REGION_DRAM, self->info.cap_dram + 1, &key));
	EXPECT_EQ(-ENOMEM, mem_alloc(self->fd, CSREC_REGION_DRAM, ~0ULL, &key));
	EXPECT_EQ(-ENOMEM, mem_alloc(self->fd, CSREC_REGION_DRAM, 1ULL << 32, &key));
	EXPECT_EQ(-ENOMEM, mem_alloc(self->fd, CSREC_REGION_ONCHIP, self->info.cap_onchip + 1,
				     &key));
	EXPECT_EQ(self->info.dram_free, dram_free(self->fd));
}

TEST_F(mem, alloc_alignment)
{
	static const uint64_t bad[] = { 3, 4097, MIB + 4096, 2 * CSREC_MEM_MAX_ALIGN, 1ULL << 63,
					~0ULL };
	uint64_t offset;
	uint32_t key;

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		EXPECT_EQ(-EINVAL, mem_alloc_map(self->fd, 4096, bad[i], &key, &offset)) {
			TH_LOG("alignment 0x%llx", (unsigned long long)bad[i]);
		}
	}
	/* what is wanted is possible, and not there */
	EXPECT_EQ(-ENOMEM, mem_alloc_map(self->fd, self->info.cap_dram + 4096, CSREC_MEM_MAX_ALIGN,
					 &key, &offset));
	EXPECT_EQ(self->info.dram_free, dram_free(self->fd));
	EXPECT_EQ(0, mem_alloc_map(self->fd, 4096, 64 * KIB, &key, &offset));
}

TEST_F(mem, alloc_rounds)
{
	static const struct { uint32_t kind; uint64_t len, rounded; } cases[] = {
		{ CSREC_REGION_DRAM, 1, 4096 }, { CSREC_REGION_DRAM, 4096, 4096 },
		{ CSREC_REGION_DRAM, 4097, 8192 },
		{ CSREC_REGION_ONCHIP, 1, 64 }, { CSREC_REGION_ONCHIP, 64, 64 },
		{ CSREC_REGION_ONCHIP, 65, 128 },
	};

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct csrec_mem_alloc arg = { .size = sizeof(arg), .kind = cases[i].kind,
					       .len = cases[i].len };
		struct csrec_cmd cmd;
		struct csrec_cqe cqe;
		struct csrec_info info;
		uint64_t used;

		ASSERT_EQ(0, xioctl(self->fd, CSREC_IOC_MEM_ALLOC, &arg));
		EXPECT_EQ(cases[i].rounded, arg.len);
		/* READ and WRITE up to the rounded length, and not a byte more */
		cmd = cmd_fill(arg.key, arg.len - 4, 4, 1);
		EXPECT_EQ(0, run_cmd(self->fd, self->q, &cmd, &cqe));
		cmd = cmd_fill(arg.key, arg.len, 4, 1);
		EXPECT_EQ(CSREC_ST_OUT_OF_BOUNDS, run_cmd(self->fd, self->q, &cmd, &cqe));
		ASSERT_EQ(0, get_info(self->fd, &info));
		used = cases[i].kind == CSREC_REGION_DRAM ?
			self->info.dram_free - info.dram_free :
			self->info.onchip_free - info.onchip_free;
		EXPECT_EQ(cases[i].rounded, used);
		EXPECT_EQ(0, mem_free(self->fd, arg.key));
		ASSERT_EQ(0, get_info(self->fd, &info));
		EXPECT_EQ(self->info.dram_free, info.dram_free);
		EXPECT_EQ(self->info.onchip_free, info.onchip_free);
	}
}

/* Whoever had it before: the next owner finds zeroes. */
TEST_F(mem, alloc_is_zeroed)
{
	static const uint32_t kinds[] = { CSREC_REGION_DRAM, CSREC_REGION_ONCHIP };
	uint8_t *out = pages(64 * KIB);
	struct csrec_cqe cqe;
	struct csrec_cmd cmd;

	for (int k = 0; k < 2; k++) {
		for (int round = 0; round < 3; round++) {
			int fd = dev_open(), q = q_create(fd, 2);
			uint32_t key, dst;

			memset(out, 0xee, 64 * KIB);
			ASSERT_EQ(0, mem_register(fd, out, 64 * KIB, CSREC_RIGHT_WRITE, &dst));
			ASSERT_EQ(0, mem_alloc(fd, kinds[k], 64 * KIB, &key));
			ASSERT_EQ(0, copy(fd, q, key, 0, dst, 0, 64 * KIB));
			for (unsigned int i = 0; i < 64 * KIB; i++) {
				ASSERT_EQ(0, out[i]);
			}
			cmd = cmd_fill(key, 0, 64 * KIB, 0xdeadbeef);
			ASSERT_EQ(0, run_cmd(fd, q, &cmd, &cqe));
			close(fd);
		}
	}
}

/* Many small ones do not overlap. */
TEST_F(mem, alloc_disjoint)
{
	static const uint32_t kinds[] = { CSREC_REGION_DRAM, CSREC_REGION_ONCHIP };
	uint8_t *buf = pages(4096);
	uint32_t host, keys[32];

	ASSERT_EQ(0, mem_register(self->fd, buf, 4096, CSREC_RIGHT_READ | CSREC_RIGHT_WRITE,
				  &host));
	for (int i = 0; i < 32; i++) {
		ASSERT_EQ(0, mem_alloc(self->fd, kinds[i % 2], 192, &keys[i]));
		pattern_fill(buf, 192, i);
		ASSERT_EQ(0, copy(self->fd, self->q, host, 0, keys[i], 0, 192));
	}
	for (int i = 0; i < 32; i++) {
		ASSERT_EQ(0, copy(self->fd, self->q, keys[i], 0, host, 0, 192));
		pattern_fill(buf + 2048, 192, i);
		EXPECT_EQ(0, memcmp(buf, buf + 2048, 192));
	}
}

TEST_F(mem, alloc_until_slots_run_out)
{
	unsigned int slots = (self->info.cap_table >> CSREC_CAPT_REGIONS_SHIFT) & 0xffff;
	uint32_t key, last = 0;
	unsigned int n = 0;
	int ret;

	/* on-chip units are smallest; whichever is used up first, it is told */
	while (!(ret = mem_alloc(self->fd, n % 2 ? CSREC_REGION_ONCHIP : CSREC_REGION_DRAM, 64,
				 &key))) {
		last = key;
		n++;
		ASSERT_LE(n, slots);
	}
	EXPECT_EQ(-ENOSPC, ret);
	/* the driver keeps a few for itself */
	EXPECT_LE(slots - 8, n);
	EXPECT_EQ(-ENOSPC, mem_register(self->fd, pages(4096), 4096, CSREC_RIGHT_READ, &key));
	EXPECT_EQ(0, pinned(self->fd));
	EXPECT_EQ(0, mem_free(self->fd, last));
	EXPECT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, 64, &key));
}

/* ---- MEM_FREE and keys ---- */

TEST_F(mem, free_what_is_not_there)
{
	uint32_t key;

	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, 4096, &key));
	EXPECT_EQ(-ENOENT, mem_free(self->fd, 0));
	EXPECT_EQ(-ENOENT, mem_free(self->fd, 0xffffffff));
	EXPECT_EQ(-ENOENT, mem_free(self->fd, key + (1 << CSREC_KEY_GEN_SHIFT)));
	EXPECT_EQ(-ENOENT, mem_free(self->fd, key & 0xffff));
	EXPECT_EQ(0, mem_free(self->fd, key));
	EXPECT_EQ(-ENOENT, mem_free(self->fd, key));
	/* neither the driver's own slots nor anything of the first generation */
	for (uint32_t i = 0; i < 8; i++) {
		EXPECT_EQ(-ENOENT, mem_free(self->fd, i | 1 << CSREC_KEY_GEN_SHIFT));
	}
}

TEST_F(mem, stale_key)
{
	uint32_t a, b, c;

	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, 4096, &a));
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, 4096, &b));
	EXPECT_EQ(0, copy(self->fd, self->q, a, 0, b, 0, 64));
	ASSERT_EQ(0, mem_free(self->fd, a));
	EXPECT_EQ(CSREC_ST_STALE_KEY, copy(self->fd, self->q, a, 0, b, 0, 64));
	EXPECT_EQ(CSREC_ST_STALE_KEY, copy(self->fd, self->q, b, 0, a, 0, 64));
	/* the slot is given away again in time, but the old key does not open it */
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, 4096, &c));
	}
	EXPECT_NE(a, c);
	EXPECT_EQ(CSREC_ST_STALE_KEY, copy(self->fd, self->q, a, 0, b, 0, 64));
	EXPECT_EQ(CSREC_ST_BAD_KEY, copy(self->fd, self->q, 0xffff | 1 << CSREC_KEY_GEN_SHIFT, 0,
					 b, 0, 64));
}

TEST_F(mem, foreign_key)
{
	int fd = dev_open(), q = q_create(fd, 2);
	uint32_t mine, theirs, host;
	uint8_t *buf = pages(4096);
	struct csrec_cmd cmd;
	struct csrec_cqe cqe;

	ASSERT_LT(0, q);
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, 4096, &theirs));
	ASSERT_EQ(0, mem_register(self->fd, buf, 4096, CSREC_RIGHT_READ | CSREC_RIGHT_WRITE, &host));
	ASSERT_EQ(0, mem_alloc(fd, CSREC_REGION_DRAM, 4096, &mine));
	EXPECT_EQ(CSREC_ST_BAD_DOMAIN, copy(fd, q, theirs, 0, mine, 0, 64));
	EXPECT_EQ(CSREC_ST_BAD_DOMAIN, copy(fd, q, mine, 0, theirs, 0, 64));
	EXPECT_EQ(CSREC_ST_BAD_DOMAIN, copy(fd, q, host, 0, mine, 0, 64));
	cmd = cmd_copy(theirs, 0, mine, 0, 64);
	EXPECT_EQ(CSREC_ST_BAD_DOMAIN, run_cmd(fd, q, &cmd, &cqe));
	EXPECT_EQ(theirs, le64toh(cqe.detail));
	EXPECT_EQ(offsetof(struct csrec_cmd, body) + offsetof(struct csrec_body_copy, src_key),
		  le16toh(cqe.field));
	EXPECT_EQ(-ENOENT, mem_free(fd, theirs));
	close(fd);
	EXPECT_EQ(0, copy(self->fd, self->q, theirs, 0, host, 0, 64));
}

/* The driver's own regions cover all of device memory; no user may name them. */
TEST_F(mem, drivers_own_regions)
{
	uint32_t dst;

	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, 4096, &dst));
	for (uint32_t i = 0; i < 2; i++) {
		EXPECT_EQ(CSREC_ST_BAD_DOMAIN,
			  copy(self->fd, self->q, i | 1 << CSREC_KEY_GEN_SHIFT, 0, dst, 0, 64));
	}
}

TEST_F(mem, rights)
{
	uint8_t *buf = pages(4096);
	uint32_t r, w, dram;

	ASSERT_EQ(0, mem_register(self->fd, buf, 4096, CSREC_RIGHT_READ, &r));
	ASSERT_EQ(0, mem_register(self->fd, buf, 4096, CSREC_RIGHT_WRITE, &w));
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, 4096, &dram));
	EXPECT_EQ(0, copy(self->fd, self->q, r, 0, dram, 0, 64));
	EXPECT_EQ(0, copy(self->fd, self->q, dram, 0, w, 0, 64));
	EXPECT_EQ(CSREC_ST_BAD_RIGHTS, copy(self->fd, self->q, w, 0, dram, 0, 64));
	EXPECT_EQ(CSREC_ST_BAD_RIGHTS, copy(self->fd, self->q, dram, 0, r, 0, 64));
}

TEST_F(mem, bounds)
{
	uint32_t a, b;

	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, 8192, &a));
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, 4096, &b));
	EXPECT_EQ(0, copy(self->fd, self->q, a, 4096, b, 0, 4096));
	EXPECT_EQ(CSREC_ST_OUT_OF_BOUNDS, copy(self->fd, self->q, a, 4097, b, 0, 4096));
	EXPECT_EQ(CSREC_ST_OUT_OF_BOUNDS, copy(self->fd, self->q, a, 0, b, 0, 4097));
	EXPECT_EQ(CSREC_ST_OUT_OF_BOUNDS, copy(self->fd, self->q, a, ~0ULL, b, 0, 2));
	EXPECT_EQ(CSREC_ST_OUT_OF_BOUNDS, copy(self->fd, self->q, a, 1, b, 0, ~0ULL));
}

/*
 * Freed while commands use it: they end, well or with STALE_KEY, and afterwards the memory
 * is not touched any more. Tried until it did hit commands in flight.
 */
TEST_F(mem, free_in_flight)
{
	const size_t len = MIB;
	uint8_t *buf = pages(len);
	struct csrec_cmd cmds[16];
	struct csrec_cqe cqes[16];
	unsigned int stale = 0;
	uint32_t src, dst;

	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, len, &src));
	cmds[0] = cmd_fill(src, 0, len, 0x11111111);
	ASSERT_EQ(0, run_cmd(self->fd, self->q, &cmds[0], cqes));
	for (int round = 0; round < 50 && !stale; round++) {
		ASSERT_EQ(0, mem_register(self->fd, buf, len, CSREC_RIGHT_WRITE, &dst));
		for (int i = 0; i < 16; i++)
			cmds[i] = cmd_copy(src, 0, dst, 0, len);
		ASSERT_EQ(16, q_submit(self->fd, self->q, cmds, 16));
		ASSERT_EQ(0, mem_free(self->fd, dst));
		memset(buf, 0x77, len);
		ASSERT_EQ(16, q_wait(self->fd, self->q, cqes, 16, 16, -1));
		for (int i = 0; i < 16; i++) {
			if (cqe_status(&cqes[i]) == CSREC_ST_STALE_KEY) {
				stale++;
			} else {
				EXPECT_EQ(0, cqe_status(&cqes[i]));
			}
		}
		EXPECT_EQ(NULL, memchr(buf, 0x11, len));
		EXPECT_EQ(0, pinned(self->fd));
	}
	EXPECT_LT(0, stale);
}

/* What was queued before the memory was freed, but starts later, finds the key stale. */
TEST_F(mem, free_before_start)
{
	struct csrec_cmd cmds[2];
	struct csrec_cqe cqes[2];
	uint32_t fence, src, dst;

	ASSERT_EQ(0, fence_create(self->fd, 0, &fence));
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, 4096, &src));
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, 4096, &dst));
	cmds[0] = cmd_fence(CSREC_OP_WAIT, fence, 1);
	cmds[1] = cmd_copy(src, 0, dst, 0, 4096);
	cmds[1].cid = htole16(1);
	ASSERT_EQ(2, q_submit(self->fd, self->q, cmds, 2));
	ASSERT_EQ(0, mem_free(self->fd, src));
	ASSERT_EQ(0, fence_signal(self->fd, fence, 1));
	ASSERT_EQ(2, q_wait(self->fd, self->q, cqes, 2, 2, -1));
	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(le16toh(cqes[i].cid) ? CSREC_ST_STALE_KEY : 0, cqe_status(&cqes[i]));
	}
}

/* Pinned pages stay the caller's own across a fork. */
TEST_F(mem, fork)
{
	uint8_t *in = pages(4096), *out = pages(4096);
	uint32_t src, dst;
	int status;
	pid_t pid;

	pattern_fill(in, 4096, 5);
	ASSERT_EQ(0, mem_register(self->fd, in, 4096, CSREC_RIGHT_READ, &src));
	ASSERT_EQ(0, mem_register(self->fd, out, 4096, CSREC_RIGHT_WRITE, &dst));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		/* the context is shared: the child may use it, and its exit ends nothing */
		in[0]++;
		_exit(copy(self->fd, self->q, src, 0, dst, 0, 64) ? 1 : 0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	pattern_fill(in, 4096, 6);	/* the device sees what the parent writes after the fork */
	EXPECT_EQ(0, copy(self->fd, self->q, src, 0, dst, 0, 4096));
	EXPECT_EQ(0, memcmp(in, out, 4096));
}

/* The one who was charged is discharged, though another process closes the file last. */
TEST_F(mem, closed_by_another_process)
{
	uint32_t key;
	int status;
	pid_t pid;

	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		/* registers its memory on the parent's file and goes */
		_exit(mem_register(self->fd, pages(64 * KIB), 64 * KIB, CSREC_RIGHT_READ, &key) ?
		      1 : 0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(64 * KIB, pinned(self->fd));
	close(self->fd);
	self->fd = dev_open();
	EXPECT_EQ(0, pinned(self->fd));
}

TEST_HARNESS_MAIN
