// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Life and death: kill, close, unbind, removal, reset, a device that stops answering; each
 * with work in flight. Afterwards the device works and has all its memory again.
 */
#include <libgen.h>
#include <linux/pci_regs.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "csrec_test.h"

FIXTURE(life)
{
	char bdf[16];
	char sysfs[64];		/* the PCI device's directory */
	struct csrec_info info;	/* as found */
	int fd;
	int q;
	uint32_t fence;
};

static int wait_for_node(void)
{
	for (int i = 0; i < 3000; i++) {
		int fd = dev_open();

		if (fd >= 0 || fd != -ENOENT)
			return fd;
		usleep(10000);
	}
	return -ENOENT;
}

FIXTURE_SETUP(life)
{
	char link[256] = {};

	ASSERT_LT(0, readlink("/sys/class/csrec/csrec0/device", link, sizeof(link) - 1));
	snprintf(self->bdf, sizeof(self->bdf), "%s", basename(link));
	snprintf(self->sysfs, sizeof(self->sysfs), "/sys/bus/pci/devices/%s", self->bdf);
	self->fd = dev_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, get_info(self->fd, &self->info));
	ASSERT_EQ(self->info.cap_dram, self->info.dram_free);
	self->q = q_create(self->fd, 16);
	ASSERT_LT(0, self->q);
	ASSERT_EQ(0, fence_create(self->fd, 0, &self->fence));
}

FIXTURE_TEARDOWN(life)
{
	if (self->fd >= 0)
		close(self->fd);
}

/* A new context finds everything free, and a device that works. */
static int is_as_new(const struct csrec_info *before)
{
	int fd = wait_for_node(), n = (before->cap_queue >> CSREC_CAPQ_IOQ_SHIFT) & 0xff;
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	struct csrec_info info;
	struct csrec_stats st;
	struct csrec_cqe cqe;
	uint32_t key;
	int ret;

	if (fd < 0)
		return fd;
	ret = get_info(fd, &info);
	if (!ret && (info.dram_free != info.cap_dram || info.onchip_free != info.cap_onchip))
		ret = -ENOMEM;
	if (!ret)
		ret = get_stats(fd, &st);
	if (!ret && st.pinned_bytes)
		ret = -EBUSY;
	for (int i = 0; !ret && i < n; i++) {
		int q = q_create(fd, 2);

		ret = q < 0 ? q : run_cmd(fd, q, &nop, &cqe);
	}
	if (!ret)
		ret = mem_alloc(fd, CSREC_REGION_DRAM, 64 * KIB, &key);
	if (!ret)
		ret = fence_create(fd, 0, &key);
	close(fd);
	return ret;
}

/*
 * A process with everything at work: long copies between all memories, a queue that waits
 * for a fence, reads from the drive. Never returns.
 */
#define BUSY_LEN	(4 * MIB)

static void *read_forever(void *arg)
{
	uint32_t *a = arg;		/* fd, key, drive */
	struct csrec_p2p_seg seg = { .len = BUSY_LEN, .key = a[1] };
	struct csrec_p2p_read pr = { .size = sizeof(pr), .fd = a[2], .count = 1,
				     .segs = (uintptr_t)&seg };

	for (unsigned int i = 0; ; i++) {
		pr.flags = i % 2 ? CSREC_P2P_F_BOUNCE : 0;
		if (xioctl(a[0], CSREC_IOC_P2P_READ, &pr))
			return NULL;
	}
}

static void busy_process(int ready)
{
	int fd = dev_open(), q = q_create(fd, 16), q2 = q_create(fd, 4);
	void *host = pages(BUSY_LEN);
	uint32_t dram[2], key, fence, args[3];
	struct csrec_cmd cmds[16];
	struct csrec_cqe cqes[16];
	pthread_t t;

	if (q < 0 || q2 < 0 || mem_alloc(fd, CSREC_REGION_DRAM, BUSY_LEN, &dram[0]) ||
	    mem_alloc(fd, CSREC_REGION_DRAM, BUSY_LEN, &dram[1]) ||
	    mem_register(fd, host, BUSY_LEN, CSREC_RIGHT_READ | CSREC_RIGHT_WRITE, &key) ||
	    fence_create(fd, 0, &fence))
		_exit(1);
	cmds[0] = cmd_fence(CSREC_OP_WAIT, fence, 1);
	q_submit(fd, q2, cmds, 1);
	args[0] = fd;
	args[1] = dram[1];
	args[2] = open(DRIVE, O_RDONLY);
	pthread_create(&t, NULL, read_forever, args);
	for (int i = 0; i < 16; i++)
		cmds[i] = i % 2 ? cmd_copy(key, 0, dram[0], 0, BUSY_LEN) :
				  cmd_copy(dram[0], 0, key, 0, BUSY_LEN);
	for (int i = 0; ; i++) {
		if (q_submit(fd, q, cmds, 16) < 0)
			_exit(2);
		if (!i && write(ready, "x", 1) != 1)
			_exit(3);
		q_wait(fd, q, cqes, 16, 16, -1);
	}
}

/* The process, when it has all that in flight; or -1. */
static pid_t start_busy(void)
{
	int ready[2];
	pid_t pid;
	char c;

	if (pipe(ready))
		return -1;
	pid = fork();
	if (!pid) {
		close(ready[0]);
		busy_process(ready[1]);
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		pid = -1;
	close(ready[0]);
	return pid;
}

TEST_F(life, kill_in_flight)
{
	close(self->fd);
	self->fd = -1;
	for (int round = 0; round < 5; round++) {
		pid_t pid = start_busy();
		int status;

		ASSERT_LT(0, pid);
		usleep(round * 7000);
		ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFSIGNALED(status));
		EXPECT_EQ(0, is_as_new(&self->info));
	}
}

/* Others notice nothing. */
TEST_F(life, kill_beside_another)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	struct csrec_cqe cqe;
	pid_t pid = start_busy();
	int status;

	ASSERT_LT(0, pid);
	EXPECT_EQ(0, run_cmd(self->fd, self->q, &nop, &cqe));
	ASSERT_EQ(0, kill(pid, SIGKILL));
	EXPECT_EQ(0, run_cmd(self->fd, self->q, &nop, &cqe));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, run_cmd(self->fd, self->q, &nop, &cqe));
	EXPECT_EQ(0, fence_signal(self->fd, self->fence, 1));
}

/* After close() returns, the device writes no more to what was registered. */
TEST_F(life, close_in_flight)
{
	uint8_t *host = pages(BUSY_LEN);
	struct csrec_cmd cmds[16];
	uint32_t dram, key;

	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, BUSY_LEN, &dram));
	ASSERT_EQ(0, mem_register(self->fd, host, BUSY_LEN, CSREC_RIGHT_WRITE, &key));
	for (int i = 0; i < 16; i++)
		cmds[i] = cmd_copy(dram, 0, key, 0, BUSY_LEN);
	ASSERT_EQ(16, q_submit(self->fd, self->q, cmds, 16));
	close(self->fd);
	self->fd = -1;
	memset(host, 0x5a, BUSY_LEN);
	EXPECT_EQ(0, is_as_new(&self->info));
	for (size_t i = 0; i < BUSY_LEN; i++) {
		if (host[i] != 0x5a) {
			EXPECT_EQ(0x5a, host[i])
				TH_LOG("byte %zu", i);
			break;
		}
	}
}

/* The child's copy of the descriptor keeps the context alive; its exit ends it. */
TEST_F(life, fork_keeps_the_context)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	int to_child[2], status;
	struct csrec_cqe cqe;
	uint32_t key;
	pid_t pid;
	char c;

	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, MIB, &key));
	ASSERT_EQ(0, pipe(to_child));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		close(to_child[1]);
		if (read(to_child[0], &c, 1) != 1)
			_exit(1);
		_exit(run_cmd(self->fd, self->q, &nop, &cqe) ? 2 : 0);
	}
	close(self->fd);
	self->fd = dev_open();
	ASSERT_LE(0, self->fd);
	EXPECT_EQ(self->info.dram_free - MIB, dram_free(self->fd));
	ASSERT_EQ(1, write(to_child[1], "x", 1));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(self->info.dram_free, dram_free(self->fd));
}

TEST_F(life, unload_refused_while_open)
{
	EXPECT_EQ(-1, syscall(SYS_delete_module, "csrec", O_NONBLOCK));
	EXPECT_EQ(EWOULDBLOCK, errno);
	EXPECT_EQ(0, fence_signal(self->fd, self->fence, 1));
}

struct waiter {
	int fd, q, ret, poll;
	pthread_t thread;
};

static void *wait_thread(void *arg)
{
	struct waiter *w = arg;
	struct csrec_cqe cqe;
	struct pollfd p = { .fd = w->fd, .events = POLLIN };

	w->ret = q_wait(w->fd, w->q, &cqe, 1, 1, -1);
	if (poll(&p, 1, -1) == 1)
		w->poll = p.revents;
	return NULL;
}

/* Somebody in WAIT for ever. */
static int start_waiter(struct waiter *w, int fd, int q, uint32_t fence)
{
	struct csrec_cmd cmd = cmd_fence(CSREC_OP_WAIT, fence, 1);

	*w = (struct waiter){ .fd = fd, .q = q };
	if (q_submit(fd, q, &cmd, 1) != 1)
		return -EIO;
	if (pthread_create(&w->thread, NULL, wait_thread, w))
		return -EAGAIN;
	usleep(50000);
	return 0;
}

/* Every call on the context fails as it must once its device is gone. */
#define EXPECT_DEAD(_fd, _q, err)								\
	do {										\
		struct csrec_cmd nop_ = cmd_make(CSREC_OP_NOP, 1);			\
		struct pollfd p_ = { .fd = (_fd), .events = POLLIN };			\
		struct csrec_info info_;						\
		struct csrec_cqe cqe_;							\
		uint32_t key_;								\
											\
		EXPECT_EQ(err, get_info(_fd, &info_));					\
		EXPECT_EQ(err, q_create(_fd, 16));					\
		EXPECT_EQ(err, q_destroy(_fd, _q));					\
		EXPECT_EQ(err, q_submit(_fd, _q, &nop_, 1));				\
		EXPECT_EQ(err, q_wait(_fd, _q, &cqe_, 1, 1, -1));				\
		EXPECT_EQ(err, mem_alloc(_fd, CSREC_REGION_DRAM, 4096, &key_));		\
		EXPECT_EQ(err, mem_free(_fd, 0));					\
		EXPECT_EQ(err, fence_create(_fd, 0, &key_));				\
		EXPECT_EQ(1, poll(&p_, 1, 0));						\
		EXPECT_EQ(POLLHUP, p_.revents & POLLHUP);				\
	} while (0)

TEST_F(life, unbind_while_open)
{
	uint8_t *host = pages(BUSY_LEN);
	pid_t pid = start_busy();
	uint32_t dram, key;
	struct waiter w;
	int status;

	ASSERT_LT(0, pid);
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, MIB, &dram));
	ASSERT_EQ(0, mem_register(self->fd, host, BUSY_LEN, CSREC_RIGHT_WRITE, &key));
	ASSERT_EQ(0, start_waiter(&w, self->fd, self->q, self->fence));
	ASSERT_EQ(0, write_file("/sys/bus/pci/drivers/csrec/unbind", self->bdf));
	ASSERT_EQ(0, pthread_join(w.thread, NULL));
	EXPECT_EQ(-ENODEV, w.ret);
	EXPECT_EQ(POLLHUP, w.poll & POLLHUP);
	EXPECT_DEAD(self->fd, self->q, -ENODEV);
	EXPECT_EQ(-ENOENT, dev_open());
	/* the other one finds out by itself */
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFEXITED(status));

	/* bound again while the old descriptor is still open: that one stays dead */
	ASSERT_EQ(0, write_file("/sys/bus/pci/drivers/csrec/bind", self->bdf));
	EXPECT_EQ(0, is_as_new(&self->info));
	EXPECT_DEAD(self->fd, self->q, -ENODEV);
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(0, is_as_new(&self->info));
}

TEST_F(life, removed_while_open)
{
	char path[96];
	struct waiter w;

	ASSERT_EQ(0, start_waiter(&w, self->fd, self->q, self->fence));
	snprintf(path, sizeof(path), "%s/remove", self->sysfs);
	ASSERT_EQ(0, write_file(path, "1"));
	ASSERT_EQ(0, pthread_join(w.thread, NULL));
	EXPECT_EQ(-ENODEV, w.ret);
	EXPECT_DEAD(self->fd, self->q, -ENODEV);
	ASSERT_EQ(0, write_file("/sys/bus/pci/rescan", "1"));
	EXPECT_EQ(0, is_as_new(&self->info));
}

static int reset(const char *sysfs)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/reset", sysfs);
	return write_file(path, "1");
}

TEST_F(life, reset_while_open)
{
	for (int round = 0; round < 3; round++) {
		pid_t pid = start_busy();
		struct waiter w;
		uint32_t key;
		int status;

		ASSERT_LT(0, pid);
		ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, MIB, &key));
		ASSERT_EQ(0, start_waiter(&w, self->fd, self->q, self->fence));
		ASSERT_EQ(0, reset(self->sysfs));
		ASSERT_EQ(0, pthread_join(w.thread, NULL));
		EXPECT_EQ(-ENODEV, w.ret);
		EXPECT_DEAD(self->fd, self->q, -ENODEV);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFEXITED(status));
		EXPECT_EQ(0, is_as_new(&self->info));

		/* a context of after the reset lives, beside the old one */
		close(self->fd);
		self->fd = dev_open();
		ASSERT_LE(0, self->fd);
		self->q = q_create(self->fd, 16);
		ASSERT_LT(0, self->q);
		ASSERT_EQ(0, fence_create(self->fd, 0, &self->fence));
	}
}

/* Sets or clears bits of the PCI command register, behind the driver's back. */
static int pci_command(const char *sysfs, uint16_t clear, uint16_t set)
{
	char path[96];
	uint16_t cmd;
	int fd, ret = 0;

	snprintf(path, sizeof(path), "%s/config", sysfs);
	fd = open(path, O_RDWR);
	if (fd < 0)
		return -errno;
	if (pread(fd, &cmd, 2, PCI_COMMAND) != 2)
		ret = -EIO;
	cmd = (cmd & ~clear) | set;
	if (!ret && pwrite(fd, &cmd, 2, PCI_COMMAND) != 2)
		ret = -EIO;
	close(fd);
	return ret;
}

/* A device that cannot be read: whoever waits gets away, and a reset brings it back. */
TEST_F(life, falls_off_the_bus)
{
	struct waiter w;
	uint32_t key;

	ASSERT_EQ(0, start_waiter(&w, self->fd, self->q, self->fence));
	ASSERT_EQ(0, pci_command(self->sysfs, PCI_COMMAND_MEMORY, 0));
	EXPECT_EQ(-ENODEV, mem_alloc(self->fd, CSREC_REGION_DRAM, 4096, &key));
	ASSERT_EQ(0, pthread_join(w.thread, NULL));
	EXPECT_EQ(-ENODEV, w.ret);
	EXPECT_DEAD(self->fd, self->q, -ENODEV);
	EXPECT_EQ(-ENODEV, dev_open());
	ASSERT_EQ(0, pci_command(self->sysfs, 0, PCI_COMMAND_MEMORY));
	ASSERT_EQ(0, reset(self->sysfs));
	EXPECT_DEAD(self->fd, self->q, -ENODEV);
	EXPECT_EQ(0, is_as_new(&self->info));
}

/* The same when nobody calls: the watchdog finds it. */
TEST_F(life, falls_off_the_bus_unnoticed)
{
	struct waiter w;

	ASSERT_EQ(0, start_waiter(&w, self->fd, self->q, self->fence));
	ASSERT_EQ(0, pci_command(self->sysfs, PCI_COMMAND_MEMORY, 0));
	ASSERT_EQ(0, pthread_join(w.thread, NULL));
	EXPECT_EQ(-ENODEV, w.ret);
	ASSERT_EQ(0, pci_command(self->sysfs, 0, PCI_COMMAND_MEMORY));
	/* close with the device dead, then bring it back */
	close(self->fd);
	self->fd = -1;
	ASSERT_EQ(0, reset(self->sysfs));
	EXPECT_EQ(0, is_as_new(&self->info));
}

/* A device that cannot reach its admin queue says so, and is given up: -EIO until reset. */
TEST_F(life, admin_queue_fails)
{
	uint8_t *host = pages(64 * KIB);
	struct waiter w;
	uint32_t key;

	ASSERT_EQ(0, mem_register(self->fd, host, 64 * KIB, CSREC_RIGHT_WRITE, &key));
	ASSERT_EQ(0, start_waiter(&w, self->fd, self->q, self->fence));
	ASSERT_EQ(0, pci_command(self->sysfs, PCI_COMMAND_MASTER, 0));
	EXPECT_EQ(-EIO, mem_alloc(self->fd, CSREC_REGION_DRAM, 4096, &key));
	ASSERT_EQ(0, pthread_join(w.thread, NULL));
	EXPECT_EQ(-EIO, w.ret);
	EXPECT_DEAD(self->fd, self->q, -EIO);
	EXPECT_EQ(-EIO, dev_open());
	/* what it had is given back, though the device confirms nothing */
	close(self->fd);
	self->fd = -1;
	ASSERT_EQ(0, reset(self->sysfs));
	EXPECT_EQ(0, is_as_new(&self->info));
}

/* Contexts come and go, and one is killed now and then, until a reset ends them all. */
TEST_F(life, churn)
{
	struct csrec_cmd cmd;
	struct csrec_cqe cqe;
	pid_t pids[4];
	int status;

	close(self->fd);
	self->fd = -1;
	for (int i = 0; i < 4; i++) {
		pids[i] = fork();
		ASSERT_LE(0, pids[i]);
		if (pids[i])
			continue;
		for (unsigned int n = 0; n < 20; n++) {
			int fd = dev_open(), q = q_create(fd, 4);
			void *p = pages(64 * KIB);
			uint32_t host, dram, fence;

			if (q < 0)
				_exit(0);	/* all taken, or reset: both may be */
			if (mem_register(fd, p, 64 * KIB, CSREC_RIGHT_READ, &host) ||
			    mem_alloc(fd, CSREC_REGION_DRAM, 64 * KIB, &dram) ||
			    fence_create(fd, n, &fence))
				_exit(0);
			cmd = cmd_copy(host, 0, dram, 0, 64 * KIB);
			q_submit(fd, q, &cmd, 1);
			if ((n + i) % 3)
				q_wait(fd, q, &cqe, 1, 1, -1);
			if ((n + i) % 4 == 0)
				mem_free(fd, host);
			if ((n + i) % 4 == 1)
				q_destroy(fd, q);
			close(fd);
			munmap(p, 64 * KIB);
		}
		_exit(0);
	}
	usleep(30000);
	kill(pids[0], SIGKILL);
	usleep(30000);
	ASSERT_EQ(0, reset(self->sysfs));
	for (int i = 0; i < 4; i++) {
		ASSERT_EQ(pids[i], waitpid(pids[i], &status, 0));
	}
	EXPECT_EQ(0, is_as_new(&self->info));
}

TEST_HARNESS_MAIN
