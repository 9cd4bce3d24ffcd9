// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* P2P_READ and P2P_WRITE as commands of io_uring. */
#include <liburing.h>
#include <linux/fs.h>
#include <sys/syscall.h>

#include "p2p.h"

#define LEN	(256 * KIB)
#define MANY	64

FIXTURE(p2p_uring)
{
	int fd;
	int q;
	int drive;
	uint64_t free;
	uint8_t *want;
	uint8_t *host;
	uint32_t host_key;
	uint32_t dram;
	struct io_uring ring;
	struct csrec_p2p_seg seg;
};

FIXTURE_VARIANT(p2p_uring)
{
	unsigned int flags;
};

FIXTURE_VARIANT_ADD(p2p_uring, plain) { .flags = 0 };
FIXTURE_VARIANT_ADD(p2p_uring, sqpoll) { .flags = IORING_SETUP_SQPOLL };
FIXTURE_VARIANT_ADD(p2p_uring, defer) {
	.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN };

FIXTURE_SETUP(p2p_uring)
{
	struct csrec_info info;
	int w;

	self->fd = dev_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, get_info(self->fd, &info));
	self->free = info.dram_free;
	if (!(info.features & CSREC_FEATURE_URING))
		SKIP(return, "a kernel without commands of io_uring that can be cancelled");
	self->q = q_create(self->fd, 4);
	ASSERT_LT(0, self->q);
	self->want = pages(LEN);
	pattern_fill(self->want, LEN, getpid());
	w = open(DRIVE, O_WRONLY);
	ASSERT_LE(0, w);
	ASSERT_EQ(LEN, pwrite(w, self->want, LEN, 0));
	close(w);
	self->drive = open(DRIVE, O_RDWR);
	ASSERT_LE(0, self->drive);
	self->host = pages(LEN);
	ASSERT_EQ(0, mem_register(self->fd, self->host, LEN, CSREC_RIGHT_READ | CSREC_RIGHT_WRITE,
				  &self->host_key));
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, LEN, &self->dram));
	self->seg = (struct csrec_p2p_seg){ .len = LEN, .key = self->dram };
	ASSERT_EQ(0, io_uring_queue_init(MANY, &self->ring, variant->flags));
}

FIXTURE_TEARDOWN(p2p_uring)
{
	io_uring_queue_exit(&self->ring);
	close(self->fd);
	close(self->drive);
}

static struct io_uring_sqe *prepare(struct io_uring *ring, int fd, unsigned int op, void *arg)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	if (!sqe)
		abort();
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = op;
	*(uint64_t *)sqe->cmd = (uintptr_t)arg;
	return sqe;
}

static int result(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	int ret = io_uring_wait_cqe(ring, &cqe);

	if (ret)
		return ret;
	ret = cqe->res;
	io_uring_cqe_seen(ring, cqe);
	return ret;
}

/* One command alone: its result. */
static int run(struct io_uring *ring, int fd, unsigned int op, void *arg)
{
	prepare(ring, fd, op, arg);
	/* with SQPOLL it may count what the thread has not taken yet as well */
	if (io_uring_submit(ring) < 1)
		return -EPROTO;
	return result(ring);
}

static int fetch(FIXTURE_DATA(p2p_uring) *self)
{
	struct csrec_cmd cmd = cmd_copy(self->dram, 0, self->host_key, 0, LEN);
	struct csrec_cqe cqe;

	return run_cmd(self->fd, self->q, &cmd, &cqe);
}

TEST_F(p2p_uring, read_and_write)
{
	for (int way = 0; way < 3; way++) {
		struct csrec_p2p_read arg = p2p_arg(self->drive, &self->seg, 1, p2p_ways[way]);
		int ret = run(&self->ring, self->fd, CSREC_IOC_P2P_READ, &arg);

		if (p2p_ways[way] == CSREC_P2P_F_ONLY && ret == -EREMOTEIO)
			continue;
		ASSERT_EQ(0, ret);
		EXPECT_EQ(LEN, arg.p2p_bytes + arg.bounce_bytes);
		ASSERT_EQ(0, fetch(self));
		EXPECT_EQ(0, memcmp(self->host, self->want, LEN));

		self->seg.file_off = 2 * MIB;
		arg = p2p_arg(self->drive, &self->seg, 1, p2p_ways[way]);
		ASSERT_EQ(0, run(&self->ring, self->fd, CSREC_IOC_P2P_WRITE, &arg));
		EXPECT_EQ(LEN, arg.p2p_bytes + arg.bounce_bytes);
		self->seg.file_off = 0;
		memset(self->host, 0, LEN);
		ASSERT_EQ(LEN, pread(self->drive, self->host, LEN, 2 * MIB));
		EXPECT_EQ(0, memcmp(self->host, self->want, LEN));
	}
}

/* All at once, each its own piece; structures and segments are the caller's after submission. */
TEST_F(p2p_uring, many)
{
	struct csrec_p2p_seg segs[MANY];
	struct csrec_p2p_read args[MANY];

	for (int way = 0; way < 3; way += 2) {
		for (int i = 0; i < MANY; i++) {
			segs[i] = (struct csrec_p2p_seg){ .file_off = i * 4096, .len = 4096,
							  .dev_off = (MANY - 1 - i) * 4096,
							  .key = self->dram };
			args[i] = p2p_arg(self->drive, &segs[i], 1, p2p_ways[way]);
			prepare(&self->ring, self->fd, CSREC_IOC_P2P_READ, &args[i]);
		}
		ASSERT_EQ(MANY, io_uring_submit(&self->ring));
		if (!(self->ring.flags & IORING_SETUP_SQPOLL)) {
			for (int i = 0; i < MANY; i++) {
				segs[i].key = 0;
				args[i].segs = 0;
			}
		}
		for (int i = 0; i < MANY; i++) {
			ASSERT_EQ(0, result(&self->ring));
		}
		for (int i = 0; i < MANY; i++) {
			EXPECT_EQ(4096, args[i].p2p_bytes + args[i].bounce_bytes);
		}
		ASSERT_EQ(0, fetch(self));
		for (int i = 0; i < MANY; i++) {
			EXPECT_EQ(0, memcmp(self->host + (MANY - 1 - i) * 4096,
					    self->want + i * 4096, 4096));
		}
	}
}

/* A region that is not to be written is not written by this way either. */
TEST_F(p2p_uring, rights)
{
	struct csrec_mem_export ex = { .size = sizeof(ex), .key = self->dram, .open_flags = O_RDWR };
	struct csrec_mem_import im = { .size = sizeof(im), .rights = CSREC_RIGHT_READ };
	struct csrec_p2p_read arg = p2p_arg(self->drive, &self->seg, 1, 0);
	int ret = xioctl(self->fd, CSREC_IOC_MEM_EXPORT, &ex);

	if (ret == -EOPNOTSUPP)
		SKIP(return, "no peer-to-peer memory");
	ASSERT_EQ(0, ret);
	im.fd = ex.fd;
	ASSERT_EQ(0, xioctl(self->fd, CSREC_IOC_MEM_IMPORT, &im));
	close(ex.fd);
	self->seg.key = im.key;
	EXPECT_EQ(-EACCES, run(&self->ring, self->fd, CSREC_IOC_P2P_READ, &arg));
	EXPECT_EQ(0, run(&self->ring, self->fd, CSREC_IOC_P2P_WRITE, &arg));
}

/* Of commands of 80 bytes the last 72 are reserved. */
TEST_F(p2p_uring, long_commands)
{
	struct csrec_p2p_read arg = p2p_arg(self->drive, &self->seg, 1, 0);
	struct io_uring_sqe *sqe;
	struct io_uring ring;

	ASSERT_EQ(0, io_uring_queue_init(4, &ring, variant->flags | IORING_SETUP_SQE128));
	EXPECT_EQ(0, run(&ring, self->fd, CSREC_IOC_P2P_READ, &arg));
	for (int i = 8; i < 80; i += 71) {
		sqe = prepare(&ring, self->fd, CSREC_IOC_P2P_READ, &arg);
		sqe->cmd[i] = 1;
		ASSERT_LE(1, io_uring_submit(&ring));
		EXPECT_EQ(-EINVAL, result(&ring)) TH_LOG("byte %d", i);
		memset(sqe->cmd, 0, 80);
	}
	io_uring_queue_exit(&ring);
}

/* A command that waits for the fence before it sees the data. */
TEST_F(p2p_uring, fence)
{
	struct csrec_p2p_read arg = p2p_arg(self->drive, &self->seg, 1, 0);
	struct csrec_cmd cmds[2];
	struct csrec_cqe cqes[2];
	int n = 0, ret;

	ASSERT_EQ(0, fence_create(self->fd, 0, &arg.fence_key));
	arg.fence_value = 1;
	cmds[0] = cmd_fence(CSREC_OP_WAIT, arg.fence_key, 1);
	cmds[1] = cmd_copy(self->dram, 0, self->host_key, 0, LEN);
	ASSERT_EQ(2, q_submit(self->fd, self->q, cmds, 2));
	prepare(&self->ring, self->fd, CSREC_IOC_P2P_READ, &arg);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	/* the ring's completion may interrupt a wait, with or without something taken */
	while (n < 2) {
		ret = q_wait(self->fd, self->q, cqes + n, 2 - n, 2 - n, -1);
		if (ret == -EINTR)
			continue;
		ASSERT_LT(0, ret);
		n += ret;
	}
	EXPECT_EQ(0, cqe_status(&cqes[0]));
	EXPECT_EQ(0, cqe_status(&cqes[1]));
	EXPECT_EQ(0, memcmp(self->host, self->want, LEN));
	EXPECT_EQ(0, result(&self->ring));
}

TEST_F(p2p_uring, errors)
{
	struct csrec_p2p_read arg = p2p_arg(self->drive, &self->seg, 1, 0);
	struct io_uring *ring = &self->ring;
	struct io_uring_sqe *sqe;
	void *ro;

	EXPECT_EQ(-ENOTTY, run(ring, self->fd, CSREC_IOC_GET_INFO, &arg));
	EXPECT_EQ(-ENOTTY, run(ring, self->fd, 0, &arg));
	EXPECT_EQ(-EFAULT, run(ring, self->fd, CSREC_IOC_P2P_READ, NULL));
	sqe = prepare(ring, self->fd, CSREC_IOC_P2P_READ, &arg);
	((uint64_t *)sqe->cmd)[1] = 1;
	ASSERT_LT(0, io_uring_submit(ring));
	EXPECT_EQ(-EINVAL, result(ring));
	sqe = prepare(ring, self->fd, CSREC_IOC_P2P_READ, &arg);
	/* io_uring itself may be first to refuse it, as there is no such buffer */
	sqe->uring_cmd_flags = IORING_URING_CMD_FIXED;
	ASSERT_LT(0, io_uring_submit(ring));
	EXPECT_NE(0, result(ring));

	arg.size = 8;
	EXPECT_EQ(-EINVAL, run(ring, self->fd, CSREC_IOC_P2P_READ, &arg));
	arg = p2p_arg(self->drive, &self->seg, 1, 1U << 31);
	EXPECT_EQ(-EINVAL, run(ring, self->fd, CSREC_IOC_P2P_READ, &arg));
	arg = p2p_arg(self->drive, &self->seg, 0, 0);
	EXPECT_EQ(-EINVAL, run(ring, self->fd, CSREC_IOC_P2P_READ, &arg));
	arg = p2p_arg(-1, &self->seg, 1, 0);
	EXPECT_EQ(-EBADF, run(ring, self->fd, CSREC_IOC_P2P_READ, &arg));
	arg = p2p_arg(self->drive, NULL, 1, 0);
	EXPECT_EQ(-EFAULT, run(ring, self->fd, CSREC_IOC_P2P_WRITE, &arg));
	self->seg.key = 0;
	arg = p2p_arg(self->drive, &self->seg, 1, 0);
	EXPECT_EQ(-ENOENT, run(ring, self->fd, CSREC_IOC_P2P_WRITE, &arg));
	self->seg.key = self->dram;

	/* a structure that cannot be written to when the transfer is done */
	ro = pages(4096);
	arg = p2p_arg(self->drive, &self->seg, 1, 0);
	memcpy(ro, &arg, sizeof(arg));
	ASSERT_EQ(0, mprotect(ro, 4096, PROT_READ));
	EXPECT_EQ(-EFAULT, run(ring, self->fd, CSREC_IOC_P2P_READ, ro));

	/* and all is as before */
	EXPECT_EQ(0, run(ring, self->fd, CSREC_IOC_P2P_READ, &arg));
	EXPECT_EQ(0, mem_free(self->fd, self->dram));
}

/* A ring that is closed, and a context, with a transfer in a drive that hangs. */
TEST_F(p2p_uring, closed_in_flight)
{
	struct csrec_p2p_read arg;
	struct io_uring ring;
	int drive, fd;

	if (hung_make())
		SKIP(return, "no device mapper, or no RAM disk (modules dm-mod, brd)");
	drive = hung_open();
	ASSERT_LE(0, drive);
	ASSERT_EQ(0, hung_suspend());
	ASSERT_EQ(0, io_uring_queue_init(4, &ring, variant->flags));
	fd = dev_open();
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, mem_alloc(fd, CSREC_REGION_DRAM, LEN, &self->seg.key));
	arg = p2p_arg(drive, &self->seg, 1, 0);
	prepare(&ring, fd, CSREC_IOC_P2P_READ, &arg);
	ASSERT_EQ(1, io_uring_submit(&ring));
	/* taken up, also where another thread submits */
	while (variant->flags & IORING_SETUP_SQPOLL && io_uring_sq_ready(&ring))
		usleep(1000);
	usleep(100000);
	io_uring_queue_exit(&ring);
	close(fd);
	EXPECT_EQ(self->free - 2 * LEN, dram_free(self->fd));
	ASSERT_EQ(0, hung_resume());
	EXPECT_EQ(self->free - LEN, dram_free_in_the_end(self->fd, self->free - LEN));
	close(drive);
	EXPECT_EQ(0, hung_remove());
}

/* A process that is killed with one in flight is gone at once. */
TEST_F(p2p_uring, killed_in_flight)
{
	int drive, status, pipes[2];
	pid_t pid;
	char c;

	if (hung_make())
		SKIP(return, "no device mapper, or no RAM disk (modules dm-mod, brd)");
	drive = hung_open();
	ASSERT_LE(0, drive);
	ASSERT_EQ(0, hung_suspend());
	ASSERT_EQ(0, pipe(pipes));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		struct csrec_p2p_read arg = p2p_arg(drive, &self->seg, 1, 0);
		struct io_uring ring;
		int fd = dev_open();

		if (mem_alloc(fd, CSREC_REGION_DRAM, LEN, &self->seg.key) ||
		    io_uring_queue_init(4, &ring, variant->flags))
			_exit(1);
		prepare(&ring, fd, CSREC_IOC_P2P_READ, &arg);
		if (io_uring_submit(&ring) != 1 || write(pipes[1], "x", 1) != 1)
			_exit(2);
		_exit(result(&ring) ? 3 : 4);
	}
	close(pipes[1]);
	ASSERT_EQ(1, read(pipes[0], &c, 1));
	usleep(100000);
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	ASSERT_EQ(0, hung_resume());
	EXPECT_EQ(self->free - LEN, dram_free_in_the_end(self->fd, self->free - LEN));
	close(drive);
	EXPECT_EQ(0, hung_remove());
}

/* A reset ends it for who waits, though not for the drive. */
TEST_F(p2p_uring, reset_in_flight)
{
	struct csrec_p2p_read arg;
	int drive, fd;

	if (hung_make())
		SKIP(return, "no device mapper, or no RAM disk (modules dm-mod, brd)");
	drive = hung_open();
	ASSERT_LE(0, drive);
	ASSERT_EQ(0, hung_suspend());
	arg = p2p_arg(drive, &self->seg, 1, 0);
	prepare(&self->ring, self->fd, CSREC_IOC_P2P_READ, &arg);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	ASSERT_EQ(0, reset(DEVICE));
	EXPECT_EQ(-ENODEV, result(&self->ring));
	EXPECT_EQ(-ENODEV, run(&self->ring, self->fd, CSREC_IOC_P2P_READ, &arg));
	ASSERT_EQ(0, hung_resume());
	fd = dev_open();
	ASSERT_LE(0, fd);
	EXPECT_EQ(self->free, dram_free_in_the_end(fd, self->free));
	close(fd);
	close(drive);
	EXPECT_EQ(0, hung_remove());
}

TEST_HARNESS_MAIN
