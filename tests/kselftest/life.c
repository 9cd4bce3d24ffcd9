// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Life and death: kill, close, unbind, removal, reset, a device that stops answering; each
 * with work in flight. Afterwards the device works and has all its memory again.
 */
#include <dirent.h>
#include <sys/syscall.h>

#include "life.h"

FIXTURE(life)
{
	char bdf[16];
	char sysfs[64];		/* the PCI device's directory */
	struct csrec_info info;	/* as found */
	int fd;
	int q;
	uint32_t fence;
};

FIXTURE_SETUP(life)
{
	ASSERT_EQ(0, find_device(self->sysfs, sizeof(self->sysfs), self->bdf, sizeof(self->bdf)));
	self->fd = dev_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, get_info(self->fd, &self->info));
	/* as left by the test before, see is_as_new() */
	for (int i = 0; i < 3000 && self->info.dram_free != self->info.cap_dram; i++) {
		usleep(10000);
		ASSERT_EQ(0, get_info(self->fd, &self->info));
	}
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

TEST_F(life, unbind_while_open)
{
	uint8_t *host = pages(BUSY_LEN);
	pid_t pid = start_busy();
	uint32_t dram, key;
	struct waiter w;
	struct holder h;
	int status;

	ASSERT_LT(0, pid);
	ASSERT_EQ(0, hold(&h));
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, MIB, &dram));
	ASSERT_EQ(0, mem_register(self->fd, host, BUSY_LEN, CSREC_RIGHT_WRITE, &key));
	ASSERT_EQ(0, start_waiter(&w, self->fd, self->q, self->fence));
	ASSERT_EQ(0, write_file("/sys/bus/pci/drivers/csrec/unbind", self->bdf));
	EXPECT_LOST(lost(&h, -ENODEV));
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
	EXPECT_LOST(stays_lost(&h));
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(0, is_as_new(&self->info));
}

TEST_F(life, removed_while_open)
{
	pid_t other = start_holder();
	struct holder h;
	struct waiter w;
	char path[96];

	ASSERT_LT(0, other);
	ASSERT_EQ(0, hold(&h));
	ASSERT_EQ(0, start_waiter(&w, self->fd, self->q, self->fence));
	snprintf(path, sizeof(path), "%s/remove", self->sysfs);
	ASSERT_EQ(0, write_file(path, "1"));
	ASSERT_EQ(0, pthread_join(w.thread, NULL));
	EXPECT_EQ(-ENODEV, w.ret);
	EXPECT_DEAD(self->fd, self->q, -ENODEV);
	EXPECT_LOST(lost(&h, -ENODEV));
	EXPECT_TRUE(holder_ended(other, &h));
	ASSERT_EQ(0, write_file("/sys/bus/pci/rescan", "1"));
	EXPECT_EQ(0, is_as_new(&self->info));
	EXPECT_LOST(stays_lost(&h));
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

/* A device that cannot be read: whoever waits gets away, and a reset brings it back. */
TEST_F(life, falls_off_the_bus)
{
	struct holder h;
	struct waiter w;
	uint32_t key;

	ASSERT_EQ(0, hold(&h));
	ASSERT_EQ(0, start_waiter(&w, self->fd, self->q, self->fence));
	ASSERT_EQ(0, pci_command(self->sysfs, PCI_COMMAND_MEMORY, 0));
	EXPECT_EQ(-ENODEV, mem_alloc(self->fd, CSREC_REGION_DRAM, 4096, &key));
	ASSERT_EQ(0, pthread_join(w.thread, NULL));
	EXPECT_EQ(-ENODEV, w.ret);
	EXPECT_DEAD(self->fd, self->q, -ENODEV);
	EXPECT_EQ(-ENODEV, dev_open());
	/* also should it come back by itself: nobody reaches it, nor it anybody */
	ASSERT_EQ(0, pci_command(self->sysfs, 0, PCI_COMMAND_MEMORY));
	EXPECT_LOST(lost(&h, -ENODEV));
	ASSERT_EQ(0, reset(self->sysfs));
	EXPECT_DEAD(self->fd, self->q, -ENODEV);
	EXPECT_EQ(0, is_as_new(&self->info));
	EXPECT_LOST(stays_lost(&h));
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
	pid_t other = start_holder();
	struct holder h;
	struct waiter w;
	uint32_t key;

	ASSERT_LT(0, other);
	ASSERT_EQ(0, hold(&h));
	ASSERT_EQ(0, mem_register(self->fd, host, 64 * KIB, CSREC_RIGHT_WRITE, &key));
	ASSERT_EQ(0, start_waiter(&w, self->fd, self->q, self->fence));
	ASSERT_EQ(0, pci_command(self->sysfs, PCI_COMMAND_MASTER, 0));
	EXPECT_EQ(-EIO, mem_alloc(self->fd, CSREC_REGION_DRAM, 4096, &key));
	ASSERT_EQ(0, pthread_join(w.thread, NULL));
	EXPECT_EQ(-EIO, w.ret);
	EXPECT_DEAD(self->fd, self->q, -EIO);
	EXPECT_EQ(-EIO, dev_open());
	EXPECT_LOST(lost(&h, -EIO));
	EXPECT_TRUE(holder_ended(other, &h));
	/* what it had is given back, though the device confirms nothing */
	close(self->fd);
	self->fd = -1;
	ASSERT_EQ(0, reset(self->sysfs));
	EXPECT_EQ(0, is_as_new(&self->info));
	EXPECT_LOST(stays_lost(&h));
}

/* Every way that PCI has: contexts of before are dead, configuration space is as it was. */
TEST_F(life, reset_by_every_method)
{
	char methods[64] = {}, path[96], *save, *m;
	uint8_t before[64], after[64];
	int fd, config, n = 0, flr = 0;

	snprintf(path, sizeof(path), "%s/config", self->sysfs);
	config = open(path, O_RDONLY);
	ASSERT_EQ(64, pread(config, before, 64, 0));
	snprintf(path, sizeof(path), "%s/reset_method", self->sysfs);
	fd = open(path, O_RDONLY);
	ASSERT_LT(0, read(fd, methods, sizeof(methods) - 1));
	close(fd);
	for (m = strtok_r(methods, " \n", &save); m; m = strtok_r(NULL, " \n", &save)) {
		pid_t other = start_holder();
		struct holder h;
		struct waiter w;

		ASSERT_LT(0, other);
		ASSERT_EQ(0, hold(&h));
		ASSERT_EQ(0, write_file(path, m));
		ASSERT_EQ(0, start_waiter(&w, self->fd, self->q, self->fence));
		EXPECT_EQ(0, reset(self->sysfs)) {
			TH_LOG("method %s", m);
		}
		ASSERT_EQ(0, pthread_join(w.thread, NULL));
		EXPECT_EQ(-ENODEV, w.ret);
		EXPECT_DEAD(self->fd, self->q, -ENODEV);
		ASSERT_EQ(64, pread(config, after, 64, 0));
		EXPECT_EQ(0, memcmp(before, after, 64)) {
			TH_LOG("method %s", m);
		}
		EXPECT_LOST(lost(&h, -ENODEV));
		EXPECT_TRUE(holder_ended(other, &h));
		EXPECT_EQ(0, is_as_new(&self->info));
		EXPECT_LOST(stays_lost(&h));
		flr += !strcmp(m, "flr");
		n++;

		close(self->fd);
		self->fd = dev_open();
		ASSERT_LE(0, self->fd);
		self->q = q_create(self->fd, 16);
		ASSERT_LT(0, self->q);
		ASSERT_EQ(0, fence_create(self->fd, 0, &self->fence));
	}
	EXPECT_EQ(0, write_file(path, "default"));
	close(config);
	EXPECT_EQ(1, flr);
	EXPECT_LT(1, n);
}

struct resetter {
	const char *sysfs;
	bool stop;
	unsigned int done;
};

static void *reset_forever(void *arg)
{
	struct resetter *r = arg;

	while (!__atomic_load_n(&r->stop, __ATOMIC_RELAXED))
		if (!reset(r->sysfs))
			r->done++;
	return NULL;
}

/* D-19: one of them waits for the other. */
TEST_F(life, reset_against_remove)
{
	struct resetter r = { .sysfs = self->sysfs };
	char path[96];
	pthread_t t;

	snprintf(path, sizeof(path), "%s/remove", self->sysfs);
	ASSERT_EQ(0, pthread_create(&t, NULL, reset_forever, &r));
	for (int i = 0; i < 8; i++) {
		usleep(i * 5000);
		ASSERT_EQ(0, write_file(path, "1"));
		ASSERT_EQ(0, write_file("/sys/bus/pci/rescan", "1"));
	}
	__atomic_store_n(&r.stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(t, NULL));
	EXPECT_LT(0, r.done);
	EXPECT_DEAD(self->fd, self->q, -ENODEV);
	EXPECT_EQ(0, is_as_new(&self->info));
}

static void read_all(const char *dir)
{
	struct dirent *e;
	DIR *d = opendir(dir);

	while (d && (e = readdir(d))) {
		char path[512], buf[4096];
		int fd;

		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (e->d_type == DT_DIR && e->d_name[0] != '.' && strcmp(e->d_name, "power"))
			read_all(path);
		if (e->d_type != DT_REG)
			continue;
		fd = open(path, O_RDONLY | O_NONBLOCK);
		if (fd >= 0 && read(fd, buf, sizeof(buf)) < 0)
			buf[0] = '\0';
		close(fd);
	}
	if (d)
		closedir(d);
}

/* D-18: attributes are read while their device goes. */
TEST_F(life, attributes_against_unbind)
{
	pid_t pids[2];
	int status;

	for (int i = 0; i < 2; i++) {
		pids[i] = fork();
		ASSERT_LE(0, pids[i]);
		while (!pids[i]) {
			read_all("/sys/class/csrec/csrec0/");
			read_all("/sys/kernel/debug/csrec/");
		}
	}
	for (int i = 0; i < 10; i++) {
		ASSERT_EQ(0, write_file("/sys/bus/pci/drivers/csrec/unbind", self->bdf));
		ASSERT_EQ(0, write_file("/sys/bus/pci/drivers/csrec/bind", self->bdf));
		usleep(i * 10000);
	}
	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(0, waitpid(pids[i], &status, WNOHANG));
		kill(pids[i], SIGKILL);
		EXPECT_EQ(pids[i], waitpid(pids[i], &status, 0));
	}
	EXPECT_EQ(0, is_as_new(&self->info));
}

/* D-26: what is not driven must not be able to write to memory. */
TEST_F(life, bus_mastering_ends_with_the_driver)
{
	pid_t pid = start_busy();
	char path[96];
	uint16_t cmd;
	int fd, status;

	ASSERT_LT(0, pid);
	snprintf(path, sizeof(path), "%s/config", self->sysfs);
	fd = open(path, O_RDONLY);
	ASSERT_EQ(2, pread(fd, &cmd, 2, PCI_COMMAND));
	EXPECT_EQ(PCI_COMMAND_MASTER, cmd & PCI_COMMAND_MASTER);
	ASSERT_EQ(0, write_file("/sys/bus/pci/drivers/csrec/unbind", self->bdf));
	ASSERT_EQ(2, pread(fd, &cmd, 2, PCI_COMMAND));
	EXPECT_EQ(0, cmd & PCI_COMMAND_MASTER);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, write_file("/sys/bus/pci/drivers/csrec/bind", self->bdf));
	EXPECT_EQ(0, is_as_new(&self->info));
	close(fd);
}

/* Both BARs are ours in /proc/iomem, so that nobody else takes them. */
TEST_F(life, bars_are_claimed)
{
	unsigned int n = 0;
	char line[128];
	FILE *f = fopen("/proc/iomem", "r");

	ASSERT_NE(NULL, f);
	while (fgets(line, sizeof(line), f))
		n += !strcmp(line + strcspn(line, ":"), ": csrec\n");
	fclose(f);
	EXPECT_EQ(2, n);
}

/*
 * D-16: a process goes, in some way, while the device writes to its memory. Whoever gets the
 * pages then must find in them what he wrote.
 */
#define GUARD_LEN	(48 * MIB)

static int guard(void)
{
	uint8_t *p = pages(GUARD_LEN);

	if (!p)
		return 10;
	memset(p, 0x5a, GUARD_LEN);
	/* as long as 16 copies could have taken, were they still at work */
	for (int i = 0; i < 20; i++) {
		for (size_t at = 0; at < GUARD_LEN; at += 64)
			if (p[at] != 0x5a)
				return 11;
		usleep(10000);
	}
	munmap(p, GUARD_LEN);
	return 0;
}

/* What exec() runs, in place of the tests. */
__attribute__((constructor)) static void guard_main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "--guard"))
		_exit(guard());
}

FIXTURE(flight)
{
	struct csrec_info info;
};

FIXTURE_VARIANT(flight)
{
	enum { BY_KILL, BY_CLOSE, BY_EXIT, BY_EXEC, BY_FORK } way;
	bool mapped;		/* the queue */
};

#define FLIGHT(name, how)							\
	FIXTURE_VARIANT_ADD(flight, name) { .way = how };			\
	FIXTURE_VARIANT_ADD(flight, name##_mapped) { .way = how, .mapped = true }
FLIGHT(kill, BY_KILL);
FLIGHT(close, BY_CLOSE);
FLIGHT(exit, BY_EXIT);
FLIGHT(exec, BY_EXEC);
FLIGHT(fork, BY_FORK);

FIXTURE_SETUP(flight)
{
	int fd = dev_open();

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, get_info(fd, &self->info));
	close(fd);
}

FIXTURE_TEARDOWN(flight)
{
}

/* As many commands as the queue takes: 0 or -1. */
static int take_off(int fd, bool mapped, const struct csrec_cmd *cmd)
{
	struct csrec_cmd cmds[16];
	struct mapq q;
	int id;

	if (mapped) {
		if (mapq_create(&q, fd, 16, 0, 0, 0))
			return -1;
		while (q.tail < 16)
			mapq_put(&q, cmd);
		mapq_ring(&q);
		return 0;
	}
	for (int i = 0; i < 16; i++)
		cmds[i] = *cmd;
	id = q_create(fd, 16);
	return id > 0 && q_submit(fd, id, cmds, 16) == 16 ? 0 : -1;
}

/* The device writes to @host, or memory of its own. */
static void fly(int way, bool mapped, volatile uint8_t *host, int ready)
{
	int fd = dev_open();
	struct csrec_cmd cmd;
	uint32_t dram, key;

	host = host ?: pages(BUSY_LEN);
	if (mem_alloc(fd, CSREC_REGION_DRAM, BUSY_LEN, &dram) ||
	    mem_register(fd, (void *)host, BUSY_LEN, CSREC_RIGHT_WRITE, &key))
		_exit(1);
	cmd = cmd_copy(dram, 0, key, 0, BUSY_LEN);
	if (take_off(fd, mapped, &cmd))
		_exit(2);
	/* now: the rest is in flight */
	while (*host == 0xa5)
		;
	if (write(ready, "x", 1) != 1)
		_exit(2);
	switch (way) {
	case BY_CLOSE:
		close(fd);
		munmap((void *)host, BUSY_LEN);
		_exit(guard());
	case BY_EXIT:
		_exit(0);
	case BY_EXEC:
		execl("/proc/self/exe", "life", "--guard", NULL);
		_exit(3);
	case BY_FORK:
		/* the child has the context, and so the memory stays the device's */
		if (!fork()) {
			usleep(200000);
			_exit(0);
		}
		_exit(guard());
	default:
		pause();
	}
}

/* A process that takes off, and is gone once this returns; true if it ended as it must. */
static bool flight(const FIXTURE_VARIANT(flight) *variant, void *host)
{
	int ready[2], status = -1;
	pid_t pid;
	char c;

	if (pipe(ready))
		return false;
	pid = fork();
	if (!pid)
		fly(variant->way, variant->mapped, host, ready[1]);
	close(ready[1]);
	if (pid > 0 && read(ready[0], &c, 1) == 1) {
		if (variant->way == BY_KILL)
			kill(pid, SIGKILL);
		if (!host && guard())
			return false;
		if (waitpid(pid, &status, 0) != pid)
			return false;
	}
	close(ready[0]);
	return variant->way == BY_KILL ? WIFSIGNALED(status) : !status;
}

TEST_F(flight, memory_of_others)
{
	for (int round = 0; round < (variant->mapped ? 1 : 3); round++) {
		EXPECT_TRUE(flight(variant, NULL));
		EXPECT_EQ(0, guard());
		if (variant->way == BY_FORK) {
			/* the grandchild is not ours to wait for */
			for (int i = 0; i < 1000 && is_as_new(&self->info); i++)
				usleep(10000);
		}
		EXPECT_EQ(0, is_as_new(&self->info));
	}
}

static bool all_are(const uint8_t *p, size_t len, uint8_t byte)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != byte)
			return false;
	return true;
}

/*
 * The same with memory that lives on in this process. It begins and ends in the middle of a page:
 * what is before and behind it is never written, and it no more once that process is gone.
 */
#define GUARD_PAGE	4096
#define GUARD_ODD	100

TEST_F(flight, destination)
{
	size_t len = BUSY_LEN + 2 * GUARD_PAGE, before = GUARD_PAGE + GUARD_ODD;
	uint8_t *all = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	size_t behind = before + BUSY_LEN;

	ASSERT_NE(MAP_FAILED, all);
	memset(all, 0xa5, len);
	ASSERT_TRUE(flight(variant, all + before));
	if (variant->way == BY_FORK) {
		for (int i = 0; i < 1000 && is_as_new(&self->info); i++)
			usleep(10000);
	}
	/* it did write */
	EXPECT_EQ(0, all[before]);
	memset(all + before, 0x5a, BUSY_LEN);
	EXPECT_EQ(0, is_as_new(&self->info));
	/* as long as what was in flight could have taken */
	EXPECT_EQ(0, guard());
	EXPECT_TRUE(all_are(all + before, BUSY_LEN, 0x5a));
	EXPECT_TRUE(all_are(all, before, 0xa5));
	EXPECT_TRUE(all_are(all + behind, len - behind, 0xa5));
	munmap(all, len);
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
