// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A drive that hangs with a transfer in it holds up nobody: not who asked for it and is killed,
 * not a reset, not MEM_FREE, FENCE_DESTROY or close, no other process and no other drive. But
 * what it may still write to is nobody else's before it is done.
 */
#include <pthread.h>
#include <sys/syscall.h>

#include "p2p.h"

#define LEN	(128 * KIB)
#define MANY	40	/* more than one drive works at */

FIXTURE(p2p_hang)
{
	char bdf[16];
	char sysfs[64];
	int fd;
	int drive;
	uint64_t free;		/* as found */
	uint32_t dram;
};

FIXTURE_SETUP(p2p_hang)
{
	if (hung_make())
		SKIP(return, "no device mapper, or no RAM disk (modules dm-mod, brd)");
	ASSERT_EQ(0, find_device(self->sysfs, sizeof(self->sysfs), self->bdf, sizeof(self->bdf)));
	self->fd = dev_open();
	ASSERT_LE(0, self->fd);
	self->free = dram_free(self->fd);
	self->drive = hung_open();
	ASSERT_LE(0, self->drive);
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, LEN, &self->dram));
	ASSERT_EQ(0, hung_suspend());
}

FIXTURE_TEARDOWN(p2p_hang)
{
	hung_resume();
	close(self->fd);
	close(self->drive);
	hung_remove();
}

/* A call that hangs with the drive. */
struct call {
	int fd, drive, ret;
	unsigned long nr;
	uint32_t key, fence;
	pid_t tid;
	pthread_t thread;
};

static void *call_thread(void *arg)
{
	struct call *c = arg;
	struct csrec_p2p_seg seg = { .len = LEN, .key = c->key };
	struct csrec_p2p_read pr = p2p_arg(c->drive, &seg, 1, 0);

	pr.fence_key = c->fence;
	pr.fence_value = 1;
	__atomic_store_n(&c->tid, gettid(), __ATOMIC_RELEASE);
	c->ret = xioctl(c->fd, c->nr, &pr);
	return NULL;
}

/* Until the kernel has it waiting for what cannot be interrupted but by a kill. */
static int wait_for_sleep(pid_t pid, const pid_t *tid)
{
	char path[64], state = 0;

	for (int i = 0; i < 6000 && state != 'D'; i++) {
		pid_t t = __atomic_load_n(tid, __ATOMIC_ACQUIRE);
		FILE *f;

		usleep(10000);
		snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, t);
		f = t ? fopen(path, "r") : NULL;
		if (!f)
			continue;
		if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
			state = 0;
		fclose(f);
	}
	return state == 'D' ? 0 : -1;
}

static int call_start(struct call *c)
{
	if (pthread_create(&c->thread, NULL, call_thread, c))
		return -1;
	return wait_for_sleep(getpid(), &c->tid);
}

static int call_end(struct call *c)
{
	pthread_join(c->thread, NULL);
	return c->ret;
}

/* Everything that others want of the device and of other drives. */
static int others_work(void)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	int fd = dev_open(), q = q_create(fd, 4), drive = open(DRIVE, O_RDONLY);
	struct csrec_cqe cqe;
	uint32_t key;
	int ret;

	ret = q < 0 ? q : run_cmd(fd, q, &nop, &cqe);
	if (!ret)
		ret = mem_alloc(fd, CSREC_REGION_DRAM, LEN, &key);
	for (int i = 0; !ret && i < 3; i++) {
		ret = p2p_read_one(fd, drive, 0, LEN, key, 0, p2p_ways[i]);
		if (p2p_ways[i] == CSREC_P2P_F_ONLY && ret == -EREMOTEIO)
			ret = 0;
	}
	if (!ret)
		ret = mem_free(fd, key);
	close(drive);
	close(fd);
	return ret;
}

TEST_F(p2p_hang, comes_back)
{
	struct call c = { self->fd, self->drive, 0, CSREC_IOC_P2P_READ, self->dram };

	ASSERT_EQ(0, call_start(&c));
	EXPECT_EQ(0, others_work());
	ASSERT_EQ(0, hung_resume());
	EXPECT_EQ(0, call_end(&c));
}

TEST_F(p2p_hang, killed_caller)
{
	for (int i = 0; i < 2; i++) {
		int status, there[2];
		char go;
		pid_t pid;

		ASSERT_EQ(0, pipe(there));
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			int fd = dev_open();
			struct call c = { fd, self->drive, 0,
					  i ? CSREC_IOC_P2P_WRITE : CSREC_IOC_P2P_READ };

			/* a context of its own, which dies with it */
			if (mem_alloc(fd, CSREC_REGION_DRAM, LEN, &c.key))
				_exit(1);
			/* from here on it sleeps for the drive, not for the device */
			if (write(there[1], "", 1) != 1)
				_exit(1);
			call_thread(&c);
			_exit(2);
		}
		close(there[1]);
		ASSERT_EQ(1, read(there[0], &go, 1));
		close(there[0]);
		ASSERT_EQ(0, wait_for_sleep(pid, &pid));
		ASSERT_EQ(0, kill(pid, SIGKILL));
		/* ends though the drive does not */
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFSIGNALED(status));
		EXPECT_EQ(0, others_work());
	}
	/* what the drive was given for reading stays its own; a write had not got as far */
	EXPECT_GE(self->free - 2 * LEN, dram_free(self->fd));
	ASSERT_EQ(0, hung_resume());
	EXPECT_EQ(self->free - LEN, dram_free_in_the_end(self->fd, self->free - LEN));
}

/* A reset waits for no drive, and who waits for one is told. */
TEST_F(p2p_hang, reset)
{
	struct call c = { self->fd, self->drive, 0, CSREC_IOC_P2P_READ, self->dram };
	int fd;

	ASSERT_EQ(0, call_start(&c));
	ASSERT_EQ(0, reset(self->sysfs));
	EXPECT_EQ(-ENODEV, call_end(&c));
	EXPECT_EQ(0, others_work());
	fd = dev_open();
	ASSERT_LE(0, fd);
	EXPECT_EQ(self->free - LEN, dram_free(fd));
	ASSERT_EQ(0, hung_resume());
	EXPECT_EQ(self->free, dram_free_in_the_end(fd, self->free));
	close(fd);
}

/* The same for a request that waits for others of the same drive. */
TEST_F(p2p_hang, reset_with_a_line)
{
	struct call c[MANY];

	for (int i = 0; i < MANY; i++) {
		c[i] = (struct call){ self->fd, self->drive, 0, CSREC_IOC_P2P_READ, self->dram };
		ASSERT_EQ(0, call_start(&c[i]));
	}
	EXPECT_EQ(0, others_work());
	ASSERT_EQ(0, reset(self->sysfs));
	for (int i = 0; i < MANY; i++) {
		EXPECT_EQ(-ENODEV, call_end(&c[i]));
	}
	EXPECT_EQ(0, others_work());
}

/* Everybody gets a turn. */
TEST_F(p2p_hang, line_moves_on)
{
	struct call c[MANY];

	for (int i = 0; i < MANY; i++) {
		c[i] = (struct call){ self->fd, self->drive, 0,
				      i % 2 ? CSREC_IOC_P2P_WRITE : CSREC_IOC_P2P_READ,
				      self->dram };
		ASSERT_EQ(0, call_start(&c[i]));
	}
	ASSERT_EQ(0, hung_resume());
	for (int i = 0; i < MANY; i++) {
		EXPECT_EQ(0, call_end(&c[i]));
	}
}

TEST_F(p2p_hang, mem_free)
{
	struct call c = { self->fd, self->drive, 0, CSREC_IOC_P2P_READ, self->dram };

	ASSERT_EQ(0, call_start(&c));
	EXPECT_EQ(0, mem_free(self->fd, self->dram));
	EXPECT_EQ(self->free - LEN, dram_free(self->fd));
	ASSERT_EQ(0, hung_resume());
	EXPECT_EQ(0, call_end(&c));
	EXPECT_EQ(self->free, dram_free_in_the_end(self->fd, self->free));
}

TEST_F(p2p_hang, fence_destroyed)
{
	struct call c = { self->fd, self->drive, 0, CSREC_IOC_P2P_READ, self->dram };

	ASSERT_EQ(0, fence_create(self->fd, 0, &c.fence));
	ASSERT_EQ(0, call_start(&c));
	EXPECT_EQ(0, fence_destroy(self->fd, c.fence));
	ASSERT_EQ(0, hung_resume());
	EXPECT_EQ(-ENOENT, call_end(&c));
}

static void *unbind_thread(void *arg)
{
	write_file("/sys/bus/pci/drivers/csrec/unbind", arg);
	return NULL;
}

/* Removal does wait: nobody could tell the drive to keep off. */
TEST_F(p2p_hang, unbind_waits)
{
	struct call c = { self->fd, self->drive, 0, CSREC_IOC_P2P_READ, self->dram };
	pthread_t t;

	ASSERT_EQ(0, call_start(&c));
	ASSERT_EQ(0, pthread_create(&t, NULL, unbind_thread, self->bdf));
	/* the caller is told at once */
	EXPECT_EQ(-ENODEV, call_end(&c));
	usleep(300000);
	EXPECT_EQ(EBUSY, pthread_tryjoin_np(t, NULL));
	ASSERT_EQ(0, hung_resume());
	ASSERT_EQ(0, pthread_join(t, NULL));
	ASSERT_EQ(0, write_file("/sys/bus/pci/drivers/csrec/bind", self->bdf));
	EXPECT_EQ(0, others_work());
}

TEST_HARNESS_MAIN
