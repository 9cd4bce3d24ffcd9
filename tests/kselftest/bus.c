// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What comes over the bus: errors, hot unplug and plug, a device that ends while commands are
 * in flight. All of it is done from outside, through QEMU's monitor. Run by bus.sh; the
 * order of the tests counts.
 */
#include <stdarg.h>

#include "life.h"

#define DIE	0xdea6		/* see hang_sim.c */
#define CONFIG_HEAD	64	/* of configuration space: what must be as before */

FIXTURE(bus)
{
	char bdf[16];
	char sysfs[64];
	struct csrec_info info;
	uint8_t config[CONFIG_HEAD];
	int fd;
	int q;
	uint32_t fence;
	struct holder holder;
};

static int shell(const char *fmt, ...)
{
	char line[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	return system(line);
}

/* Waits until the kernel's log has @n lines like @what; 0 or not. */
static int wait_log(const char *what, unsigned int n)
{
	return shell("for i in $(seq 300); do [ $(dmesg | grep -ci '%s') -ge %u ] && exit 0; "
		     "sleep 0.2; done; exit 1", what, n);
}

static int read_config(const char *sysfs, void *buf, off_t off, size_t len)
{
	char path[96];
	int fd, ret;

	snprintf(path, sizeof(path), "%s/config", sysfs);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return -errno;
	ret = pread(fd, buf, len, off) == (ssize_t)len ? 0 : -EIO;
	close(fd);
	return ret;
}

/* What a device that lives again must be like, interrupts included. */
static int is_back(FIXTURE_DATA(bus) *self)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	struct csrec_stats st;
	struct csrec_cqe cqe;
	uint64_t before;
	int fd, q, ret;

	/* recovery is asynchronous: until it is done there is no open */
	while ((fd = wait_for_node()) == -ENODEV)
		usleep(10000);
	if (fd < 0)
		return fd;
	close(fd);
	ret = is_as_new(&self->info);
	if (ret)
		return ret;

	fd = dev_open();
	q = q_create(fd, 2);
	ret = get_stats(fd, &st);
	before = st.interrupts;
	ret = ret ?: run_cmd(fd, q, &nop, &cqe);
	/* the completion may be seen before its interrupt is */
	for (int i = 0; !ret && i < 500; i++) {
		ret = get_stats(fd, &st);
		if (ret || st.interrupts != before)
			break;
		usleep(10000);
	}
	if (!ret && st.interrupts == before)
		ret = -ETIME;
	close(fd);
	return ret;
}

/* The same device as before, too. */
static int is_restored(FIXTURE_DATA(bus) *self)
{
	uint8_t config[CONFIG_HEAD];
	int ret = is_back(self);

	ret = ret ?: read_config(self->sysfs, config, 0, sizeof(config));
	if (!ret && memcmp(config, self->config, sizeof(config)))
		ret = -EILSEQ;
	return ret;
}

FIXTURE_SETUP(bus)
{
	int fd = wait_for_node();

	ASSERT_LE(0, fd);
	close(fd);
	ASSERT_EQ(0, find_device(self->sysfs, sizeof(self->sysfs), self->bdf, sizeof(self->bdf)));
	self->fd = dev_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, get_info(self->fd, &self->info));
	ASSERT_EQ(0, read_config(self->sysfs, self->config, 0, sizeof(self->config)));
	self->q = q_create(self->fd, 16);
	ASSERT_LT(0, self->q);
	ASSERT_EQ(0, fence_create(self->fd, 0, &self->fence));
}

FIXTURE_TEARDOWN(bus)
{
	if (self->fd >= 0)
		close(self->fd);
}

/* Everything at work, then what @inject does: all who had the device find it gone. */
static void hit(struct __test_metadata *_metadata, FIXTURE_DATA(bus) *self, const char *inject)
{
	uint8_t *host = pages(BUSY_LEN);
	pid_t pid = start_busy();
	uint32_t dram, key;
	struct waiter w;
	int status;

	ASSERT_LT(0, pid);
	ASSERT_EQ(0, hold(&self->holder));
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, MIB, &dram));
	ASSERT_EQ(0, mem_register(self->fd, host, BUSY_LEN, CSREC_RIGHT_WRITE, &key));
	ASSERT_EQ(0, start_waiter(&w, self->fd, self->q, self->fence));
	ASSERT_EQ(0, shell("%s", inject));
	ASSERT_EQ(0, pthread_join(w.thread, NULL));
	EXPECT_EQ(-ENODEV, w.ret);
	EXPECT_EQ(POLLHUP, w.poll & POLLHUP);
	EXPECT_DEAD(self->fd, self->q, -ENODEV);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_LOST(lost(&self->holder, -ENODEV));
	/* the device writes no more to what was registered */
	memset(host, 0x5a, BUSY_LEN);
}

/* The link stays up: no reset, and yet a fresh start. */
TEST_F(bus, nonfatal_error)
{
	hit(_metadata, self, "tests/guest/monitor pcie_aer_inject_error d1 COMP_ABORT");
	EXPECT_EQ(0, is_restored(self));
	EXPECT_DEAD(self->fd, self->q, -ENODEV);
	EXPECT_LOST(stays_lost(&self->holder));
}

/* The link is reset, and configuration space with it: it is restored, also a second time. */
TEST_F(bus, fatal_error)
{
	hit(_metadata, self, "tests/guest/monitor pcie_aer_inject_error d1 DLP");
	EXPECT_EQ(0, is_restored(self));
	EXPECT_DEAD(self->fd, self->q, -ENODEV);
	EXPECT_LOST(stays_lost(&self->holder));
	EXPECT_EQ(0, shell("tests/guest/monitor pcie_aer_inject_error d1 DLP"));
	/* the log tells of the second one */
	ASSERT_EQ(0, wait_log("link has been reset", 2));
	EXPECT_EQ(0, is_restored(self));
}

/* An error corrected by hardware is nobody's business. */
TEST_F(bus, corrected_error)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	struct csrec_cqe cqe;

	ASSERT_EQ(0, shell("tests/guest/monitor pcie_aer_inject_error -c d1 0x1"));
	ASSERT_EQ(0, wait_log("AER: Correctable error", 1));
	EXPECT_EQ(0, run_cmd(self->fd, self->q, &nop, &cqe));
	EXPECT_EQ(0, fence_signal(self->fd, self->fence, 1));
}

/* The watchdog is there after errors and resets: it finds a device that cannot be read. */
TEST_F(bus, watchdog_after_errors)
{
	struct waiter w;

	ASSERT_EQ(0, start_waiter(&w, self->fd, self->q, self->fence));
	ASSERT_EQ(0, pci_command(self->sysfs, PCI_COMMAND_MEMORY, 0));
	ASSERT_EQ(0, pthread_join(w.thread, NULL));
	EXPECT_EQ(-ENODEV, w.ret);
	ASSERT_EQ(0, pci_command(self->sysfs, 0, PCI_COMMAND_MEMORY));
	ASSERT_EQ(0, reset(self->sysfs));
	EXPECT_EQ(0, is_restored(self));
}

/*
 * A neighbour that nobody can recover takes the device with it: it is given up until it is
 * removed.
 */
TEST_F(bus, permanent_failure)
{
	int ret;

	ASSERT_EQ(0, hold(&self->holder));
	ASSERT_EQ(0, shell("echo %s >/sys/bus/pci/drivers/nvme/unbind", "0000:03:00.0"));
	ASSERT_EQ(0, shell("tests/guest/monitor pcie_aer_inject_error up COMP_ABORT"));
	ASSERT_EQ(0, wait_log("device recovery failed", 1));
	EXPECT_DEAD(self->fd, self->q, -ENODEV);
	ret = dev_open();
	EXPECT_EQ(-ENODEV, ret);
	EXPECT_LOST(lost(&self->holder, -ENODEV));
	ASSERT_EQ(0, shell("echo 1 >%s/remove; echo 1 >/sys/bus/pci/rescan", self->sysfs));
	EXPECT_EQ(0, is_restored(self));
	EXPECT_LOST(stays_lost(&self->holder));
	EXPECT_EQ(0, shell("echo %s >/sys/bus/pci/drivers/nvme/bind", "0000:03:00.0"));
	EXPECT_EQ(0, shell("for i in $(seq 300); do [ -b %s ] && exit 0; sleep 0.2; done; exit 1",
			   DRIVE));
}

/*
 * QEMU aborts when it frees a device of this kind that has MSI-X (11.1.3): a reference to it,
 * from the display of bus.sh, keeps it from that.
 */
#define HOLD	"tests/guest/monitor -q '{\"execute\":\"qom-set\",\"arguments\":"			\
		"{\"path\":\"/backend/console[0]\",\"property\":\"device\","			\
		"\"value\":\"/machine/peripheral/acc\"}}'"
#define UNPLUG	"tests/guest/monitor device_del acc"
/* A spare one, whose server listens at $CSREC_SPARE. */
#define PLUG	"tests/guest/monitor -q \"$(jq -c --arg path \"$CSREC_SPARE\" "			\
		"'{execute: \"device_add\", arguments: (.id = \"spare\" | .socket.path = $path | "	\
		".[\"x-msg-timeout\"] = 30000)}' /out/device.json)\""

TEST_F(bus, unplug_and_plug)
{
	ASSERT_EQ(0, shell(HOLD));
	hit(_metadata, self, UNPLUG);
	EXPECT_EQ(-ENOENT, dev_open());
	EXPECT_EQ(0, shell("for i in $(seq 300); do [ -e %s ] || exit 0; sleep 0.2; done; exit 1",
			   self->sysfs));
	/* the old one is still open when the new one comes */
	ASSERT_EQ(0, shell(PLUG));
	EXPECT_EQ(0, is_back(self));
	EXPECT_DEAD(self->fd, self->q, -ENODEV);
	EXPECT_LOST(stays_lost(&self->holder));
}

/* Nobody answers any more, at no moment that anybody knows of. The last test: it is gone. */
TEST_F(bus, server_dies)
{
	struct csrec_cmd die = cmd_make(CSREC_OP_NOP, DIE);
	uint8_t *host = pages(BUSY_LEN);
	pid_t pid = start_busy();
	struct waiter w;
	int q2, status;
	uint32_t key;

	ASSERT_LT(0, pid);
	q2 = q_create(self->fd, 2);
	ASSERT_LT(0, q2);
	ASSERT_EQ(0, mem_register(self->fd, host, BUSY_LEN, CSREC_RIGHT_WRITE, &key));
	ASSERT_EQ(0, start_waiter(&w, self->fd, self->q, self->fence));
	ASSERT_EQ(1, q_submit(self->fd, q2, &die, 1));
	ASSERT_EQ(0, pthread_join(w.thread, NULL));
	EXPECT_EQ(-ENODEV, w.ret);
	EXPECT_EQ(POLLHUP, w.poll & POLLHUP);
	EXPECT_DEAD(self->fd, self->q, -ENODEV);
	EXPECT_EQ(-ENODEV, dev_open());
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFEXITED(status));
	/* a reset does not help, and hangs nobody */
	reset(self->sysfs);
	EXPECT_EQ(-ENODEV, dev_open());
	ASSERT_EQ(0, close(self->fd));
	self->fd = -1;
}

TEST_HARNESS_MAIN
