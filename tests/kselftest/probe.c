// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Probing devices with something wrong: refused with a reason, or driven with less; and the
 * next, good, one works. Against probe_sim.c, run by probe.sh.
 */
#include <libgen.h>
#include <sys/utsname.h>

#include "life.h"

#define WINDOW		0x800	/* see probe_sim.c */
#define TRUTH		0
#define LIE		1
#define ALL_ONES	2
#define DEAF		3

#define DRIVER		"/sys/bus/pci/drivers/csrec/"

FIXTURE(probe)
{
	char bdf[16];
	char sysfs[64];
	int config;
	int log;		/* /dev/kmsg, from now on */
	struct csrec_info info;	/* of the device without fault */
};

static int wrong(FIXTURE_DATA(probe) *self, uint32_t what, uint32_t count, uint64_t value)
{
	if (pwrite(self->config, &value, 4, WINDOW + 8) != 4 ||
	    pwrite(self->config, (char *)&value + 4, 4, WINDOW + 12) != 4 ||
	    pwrite(self->config, &count, 4, WINDOW + 4) != 4 ||
	    pwrite(self->config, &what, 4, WINDOW) != 4)
		return -errno;
	return 0;
}

static int lie(FIXTURE_DATA(probe) *self, uint32_t reg, uint64_t value)
{
	return wrong(self, LIE | reg << 8, 0, value);
}

/* Has the kernel said something like that since the last call? */
static bool said(FIXTURE_DATA(probe) *self, const char *what)
{
	char line[2048];
	bool found = false;
	ssize_t n;

	while ((n = read(self->log, line, sizeof(line) - 1)) > 0 || (n < 0 && errno == EPIPE)) {
		if (n < 0)
			continue;
		line[n] = '\0';
		if (strstr(line, what))
			found = true;
	}
	return found;
}

static int bind(FIXTURE_DATA(probe) *self)
{
	return write_file(DRIVER "bind", self->bdf);
}

static int unbind(FIXTURE_DATA(probe) *self)
{
	return write_file(DRIVER "unbind", self->bdf);
}

FIXTURE_SETUP(probe)
{
	char path[96];
	int fd;

	ASSERT_EQ(0, find_device(self->sysfs, sizeof(self->sysfs), self->bdf, sizeof(self->bdf)));
	snprintf(path, sizeof(path), "%s/config", self->sysfs);
	self->config = open(path, O_RDWR);
	ASSERT_LE(0, self->config);
	self->log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
	ASSERT_LE(0, self->log);
	lseek(self->log, 0, SEEK_END);
	fd = dev_open();
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, get_info(fd, &self->info));
	close(fd);
	ASSERT_EQ(0, unbind(self));
	ASSERT_EQ(-ENOENT, dev_open());
}

/* Whatever was wrong is forgotten once the device is in order. */
FIXTURE_TEARDOWN(probe)
{
	ASSERT_EQ(0, wrong(self, TRUTH, 0, 0));
	ASSERT_EQ(0, bind(self));
	EXPECT_EQ(0, is_as_new(&self->info));
	close(self->config);
	close(self->log);
}

/* Refused, with an errno and a reason; nothing is left of it, and it is refused again. */
#define EXPECT_REFUSED(err, why)				\
	do {							\
		EXPECT_EQ(err, bind(self));			\
		EXPECT_TRUE(said(self, why)) {			\
			TH_LOG("not said: %s", why);		\
		}						\
		EXPECT_EQ(-ENOENT, dev_open());			\
		EXPECT_EQ(err, bind(self));			\
		said(self, why);				\
	} while (0)

TEST_F(probe, no_answer)
{
	ASSERT_EQ(0, lie(self, CSREC_REG_ID, ~0ull));
	EXPECT_REFUSED(-ENODEV, "does not answer on the bus");
}

TEST_F(probe, another_magic)
{
	ASSERT_EQ(0, lie(self, CSREC_REG_ID, 0x100000012345678));
	EXPECT_REFUSED(-ENODEV, "no csrec device: magic 0x12345678");
}

TEST_F(probe, another_major_version)
{
	ASSERT_EQ(0, lie(self, CSREC_REG_ID, CSREC_ID_MAGIC | 2ull << CSREC_ID_MAJOR_SHIFT));
	EXPECT_REFUSED(-ENODEV, "interface version 2.0, this driver needs 1.x");
}

/* A minor step only adds. */
TEST_F(probe, later_minor_version)
{
	ASSERT_EQ(0, lie(self, CSREC_REG_ID, CSREC_ID_MAGIC | 99ull << CSREC_ID_MINOR_SHIFT |
			 1ull << CSREC_ID_MAJOR_SHIFT));
	EXPECT_EQ(0, bind(self));
	EXPECT_EQ(0, is_as_new(&self->info));
	EXPECT_EQ(0, unbind(self));
}

TEST_F(probe, queue_capability)
{
	const uint64_t good = self->info.cap_queue;
	const struct {
		unsigned int shift;
		uint64_t mask, value;
	} bad[] = {
		{ CSREC_CAPQ_IOQ_SHIFT, 0xff, 0 },
		{ CSREC_CAPQ_IOQ_SHIFT, 0xff, 65 },
		{ CSREC_CAPQ_ENTRIES_SHIFT, 0xff, 5 },		/* the admin queue has 6 */
		{ CSREC_CAPQ_ENTRIES_SHIFT, 0xff, 17 },
		{ CSREC_CAPQ_STRIDE_SHIFT, 0xff, 2 },
		{ CSREC_CAPQ_STRIDE_SHIFT, 0xff, 63 },
		{ CSREC_CAPQ_VECTORS_SHIFT, 0xff, 0 },
		{ CSREC_CAPQ_DB_SHIFT, 0xffffffff, CSREC_BAR_REG_SIZE },
		{ CSREC_CAPQ_DB_SHIFT, 0xffffffff, 0xfffff000 },
		{ CSREC_CAPQ_DB_SHIFT, 0xffffffff, 0x10004 },
	};

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint64_t cap = (good & ~(bad[i].mask << bad[i].shift)) |
			       bad[i].value << bad[i].shift;

		ASSERT_EQ(0, wrong(self, TRUTH, 0, 0));
		ASSERT_EQ(0, lie(self, CSREC_REG_CAP_QUEUE, cap));
		EXPECT_REFUSED(-ENODEV, "bad queue capability");
	}
}

TEST_F(probe, table_capability)
{
	for (uint64_t regions = 0; regions < 4; regions++) {
		ASSERT_EQ(0, wrong(self, TRUTH, 0, 0));
		ASSERT_EQ(0, lie(self, CSREC_REG_CAP_TABLE,
				 regions | 16ull << CSREC_CAPT_FENCES_SHIFT));
		EXPECT_REFUSED(-ENODEV, "bad table capability");
	}
}

TEST_F(probe, memory_capability)
{
	const struct {
		uint32_t reg;
		uint64_t value;
	} bad[] = {
		{ CSREC_REG_CAP_DRAM, 1ull << 63 }, { CSREC_REG_CAP_DRAM, (1ull << 40) + 4096 },
		{ CSREC_REG_CAP_DRAM, 4097 }, { CSREC_REG_CAP_ONCHIP, 1ull << 63 },
		{ CSREC_REG_CAP_ONCHIP, (1ull << 32) + 64 }, { CSREC_REG_CAP_ONCHIP, 63 },
	};

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ASSERT_EQ(0, wrong(self, TRUTH, 0, 0));
		ASSERT_EQ(0, lie(self, bad[i].reg, bad[i].value));
		EXPECT_REFUSED(-ENODEV, "bad memory capability");
	}
}

/* A device may be without one kind of memory. */
TEST_F(probe, no_memory)
{
	struct csrec_info info;
	uint32_t key;
	int fd;

	ASSERT_EQ(0, lie(self, CSREC_REG_CAP_DRAM, 0));
	ASSERT_EQ(0, bind(self));
	fd = dev_open();
	ASSERT_EQ(0, get_info(fd, &info));
	EXPECT_EQ(0, info.dram_free);
	EXPECT_EQ(-ENOMEM, mem_alloc(fd, CSREC_REGION_DRAM, 4096, &key));
	EXPECT_EQ(0, mem_alloc(fd, CSREC_REGION_ONCHIP, 4096, &key));
	close(fd);
	ASSERT_EQ(0, unbind(self));

	ASSERT_EQ(0, wrong(self, TRUTH, 0, 0));
	ASSERT_EQ(0, lie(self, CSREC_REG_CAP_ONCHIP, 0));
	ASSERT_EQ(0, bind(self));
	fd = dev_open();
	ASSERT_EQ(0, get_info(fd, &info));
	EXPECT_EQ(0, info.onchip_free);
	EXPECT_EQ(-ENOMEM, mem_alloc(fd, CSREC_REGION_ONCHIP, 4096, &key));
	EXPECT_EQ(0, mem_alloc(fd, CSREC_REGION_DRAM, 4096, &key));
	close(fd);
	ASSERT_EQ(0, unbind(self));
}

/* D-31: a device that never becomes ready is given up in bounded looks. */
TEST_F(probe, never_ready)
{
	ASSERT_EQ(0, lie(self, CSREC_REG_STATUS, 0));
	EXPECT_EQ(-EIO, bind(self));
	EXPECT_TRUE(said(self, "no progress while starting"));
	EXPECT_EQ(-ENOENT, dev_open());
}

TEST_F(probe, refuses_to_start)
{
	ASSERT_EQ(0, lie(self, CSREC_REG_STATUS,
			 CSREC_STATUS_FATAL | CSREC_FATAL_CONFIG << CSREC_STATUS_FATAL_SHIFT));
	EXPECT_REFUSED(-EIO, "device refuses to start: reason 3");
}

/* It starts, but its admin queue does nothing. */
TEST_F(probe, admin_queue_without_answer)
{
	ASSERT_EQ(0, wrong(self, DEAF, 0, 0));
	EXPECT_EQ(-EIO, bind(self));
	EXPECT_TRUE(said(self, "makes no progress"));
	EXPECT_EQ(-ENOENT, dev_open());
}

/* D-45: the device falls off the bus at each read of the probe: a clean end, of either kind. */
TEST_F(probe, all_ones_at_each_read)
{
	unsigned int refused = 0, n;
	uint32_t reads;

	ASSERT_EQ(0, wrong(self, TRUTH, 0, 0));
	ASSERT_EQ(0, bind(self));
	ASSERT_EQ(4, pread(self->config, &reads, 4, WINDOW + 0x10));
	ASSERT_LT(0, reads);
	for (n = 0; n <= reads; n++) {
		struct csrec_info info;
		struct csrec_stats st;
		uint32_t key;
		int ret, fd;

		unbind(self);
		ASSERT_EQ(0, wrong(self, ALL_ONES, n, 0));
		ret = bind(self);
		if (ret) {
			EXPECT_TRUE(ret == -ENODEV || ret == -EIO) {
				TH_LOG("read %u: %d", n, ret);
			}
			EXPECT_EQ(-ENOENT, dev_open());
			refused++;
			continue;
		}
		/* whatever these say, they say it; and nobody believes in such numbers */
		fd = dev_open();
		if (fd >= 0) {
			if (!get_info(fd, &info)) {
				EXPECT_NE(~0ull, info.cap_dram);
			}
			get_stats(fd, &st);
			mem_alloc(fd, CSREC_REGION_DRAM, 4096, &key);
			close(fd);
		}
	}
	/* all but those at its very end, if any */
	EXPECT_LE(reads - 2, refused);
	unbind(self);
}

/* D-43: as many queues as there are, on as many vectors as there are. */
TEST_F(probe, few_vectors)
{
	const uint64_t good = self->info.cap_queue;

	for (unsigned int n = 1; n <= 3; n++) {
		struct csrec_info info;
		int fd;

		ASSERT_EQ(0, wrong(self, TRUTH, 0, 0));
		ASSERT_EQ(0, lie(self, CSREC_REG_CAP_QUEUE,
				 (good & ~(0xffull << CSREC_CAPQ_VECTORS_SHIFT)) |
				 (uint64_t)n << CSREC_CAPQ_VECTORS_SHIFT));
		ASSERT_EQ(0, bind(self));
		fd = dev_open();
		ASSERT_EQ(0, get_info(fd, &info));
		EXPECT_EQ(n, info.irq_vectors);
		close(fd);
		EXPECT_EQ(0, is_as_new(&self->info));
		ASSERT_EQ(0, unbind(self));
	}
}

TEST_F(probe, no_vectors)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/msi_bus", self->sysfs);
	ASSERT_EQ(0, write_file(path, "0"));
	EXPECT_GT(0, bind(self));
	EXPECT_TRUE(said(self, "no MSI-X vector"));
	EXPECT_EQ(-ENOENT, dev_open());
	ASSERT_EQ(0, write_file(path, "1"));
}

/* D-34: what no device can make fail, but a host can. */
TEST_F(probe, no_dma_mask)
{
	struct utsname uts;
	char line[256];

	ASSERT_EQ(0, uname(&uts));
	snprintf(line, sizeof(line), "insmod build/kselftest/mod/%s/csrec_test_fail.ko "
		 "function=dma_set_mask value=%d", uts.release, -EIO);
	ASSERT_EQ(0, system(line));
	EXPECT_REFUSED(-EIO, "no 64-bit DMA");
	ASSERT_EQ(0, system("rmmod csrec_test_fail"));
}

/* D-25: a device that another driver, or kernel, has left running. */
TEST_F(probe, left_running)
{
	char path[96];
	volatile uint64_t *regs;
	uint16_t cmd;
	int fd;

	snprintf(path, sizeof(path), "%s/enable", self->sysfs);
	ASSERT_EQ(0, write_file(path, "1"));
	snprintf(path, sizeof(path), "%s/resource0", self->sysfs);
	fd = open(path, O_RDWR);
	ASSERT_LE(0, fd);
	regs = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, (void *)regs);
	/* its rings lie where nobody answers */
	regs[CSREC_REG_ASQ_BASE / 8] = 0xfffffff000000000;
	regs[CSREC_REG_ACQ_BASE / 8] = 0xfffffff000001000;
	regs[CSREC_REG_AQ_SIZE / 8] = 6;
	regs[CSREC_REG_CTRL / 8] = CSREC_CTRL_ENABLE;
	EXPECT_NE(0, regs[CSREC_REG_STATUS / 8]);
	ASSERT_EQ(0, pci_command(self->sysfs, 0, PCI_COMMAND_MASTER));
	munmap((void *)regs, 4096);
	close(fd);
	EXPECT_EQ(0, bind(self));
	EXPECT_EQ(0, is_as_new(&self->info));

	/* D-26: and it is not left running by this one */
	EXPECT_EQ(0, unbind(self));
	ASSERT_EQ(2, pread(self->config, &cmd, 2, PCI_COMMAND));
	EXPECT_EQ(0, cmd & PCI_COMMAND_MASTER);
	/* nor after a probe that failed half-way */
	ASSERT_EQ(0, wrong(self, DEAF, 0, 0));
	EXPECT_EQ(-EIO, bind(self));
	ASSERT_EQ(2, pread(self->config, &cmd, 2, PCI_COMMAND));
	EXPECT_EQ(0, cmd & PCI_COMMAND_MASTER);
	snprintf(path, sizeof(path), "%s/enable", self->sysfs);
	ASSERT_EQ(0, write_file(path, "0"));
}

/* Length of a BAR, from sysfs. */
static uint64_t bar_len(const char *bdf, unsigned int bar)
{
	unsigned long long start, end = 0, flags;
	char path[96], line[128];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/resource", bdf);
	f = fopen(path, "r");
	for (unsigned int i = 0; f && i <= bar; i++)
		if (!fgets(line, sizeof(line), f))
			line[0] = '\0';
	if (f)
		fclose(f);
	if (sscanf(line, "%llx %llx %llx", &start, &end, &flags) != 3 || !end)
		return 0;
	return end - start + 1;
}

/*
 * The other devices of this guest: BAR 2 missing or too small, which means no peer-to-peer; a
 * MSI-X table with fewer vectors than the device could use. All of them work. Their table
 * says how many vectors they have.
 */
TEST_F(probe, odd_bars_and_tables)
{
	unsigned int seen = 0, few = 0, missing = 0, small = 0;

	for (int i = 0; i < 8; i++) {
		struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
		char node[32], path[96], link[256] = {};
		struct csrec_info info;
		struct csrec_cqe cqe;
		uint16_t control;
		uint64_t len;
		uint32_t key;
		int fd, cfg;

		snprintf(node, sizeof(node), "/dev/csrec%d", i);
		fd = open(node, O_RDWR);
		if (fd < 0)
			continue;
		snprintf(path, sizeof(path), "/sys/class/csrec/csrec%d/device", i);
		ASSERT_LT(0, readlink(path, link, sizeof(link) - 1));
		len = bar_len(basename(link), CSREC_BAR_DRAM);
		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/config", basename(link));
		cfg = open(path, O_RDONLY);
		ASSERT_LE(0, cfg);
		ASSERT_EQ(2, pread(cfg, &control, 2, 0x90 + PCI_MSIX_FLAGS));
		close(cfg);
		control = (control & PCI_MSIX_FLAGS_QSIZE) + 1;

		ASSERT_EQ(0, get_info(fd, &info));
		EXPECT_EQ(control < 5 ? control : 5, info.irq_vectors);
		if (len < 2 * MIB) {
			EXPECT_EQ(0, info.features & CSREC_FEATURE_P2PDMA);
		}
		/* all of its DRAM can be used, seen through the BAR or not */
		EXPECT_EQ(16 * MIB, info.dram_free);
		EXPECT_EQ(0, mem_alloc(fd, CSREC_REGION_DRAM, 8 * MIB, &key));
		for (int n = 0; n < 4; n++) {
			int q = q_create(fd, 4);

			ASSERT_LT(0, q);
			EXPECT_EQ(0, run_cmd(fd, q, &nop, &cqe));
		}
		close(fd);
		seen++;
		few += control < 5;
		missing += !len;
		small += len && len < 2 * MIB;
	}
	EXPECT_EQ(3, seen);
	EXPECT_EQ(2, few);
	EXPECT_EQ(1, missing);
	EXPECT_EQ(1, small);
}

/* The one whose BAR 0 is too small for its registers was refused when the module was loaded. */
TEST_F(probe, small_register_bar)
{
	lseek(self->log, 0, SEEK_SET);
	EXPECT_TRUE(said(self, "register BAR 0 is missing or too small"));
}

TEST_HARNESS_MAIN
