// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The rules that hold for each ioctl: sizes, flags, reserved fields, user pointers. A
 * variant an ioctl, with an argument that the driver accepts.
 */
#include <sys/eventfd.h>

#include "csrec_test.h"

#define ARG_MAX_BYTES	1024

FIXTURE(ioctl)
{
	int fd;
	uint8_t *arg;		/* ARG_MAX_BYTES, a valid argument */
	uint8_t *buf;		/* something to register, submit from, wait into */
};

FIXTURE_VARIANT(ioctl)
{
	unsigned long nr;
	uint32_t size;
	uint32_t first;		/* size of the first version */
};

#define VARIANT(name, NR, type)						\
	FIXTURE_VARIANT_ADD(ioctl, name) {				\
		.nr = CSREC_IOC_##NR,					\
		.size = sizeof(struct type),				\
		.first = sizeof(struct type),				\
	}
/* the same for one that has grown: @next is the first new member */
#define VARIANT_GROWN(name, NR, type, next)				\
	FIXTURE_VARIANT_ADD(ioctl, name) {				\
		.nr = CSREC_IOC_##NR,					\
		.size = sizeof(struct type),				\
		.first = offsetof(struct type, next),			\
	}

VARIANT_GROWN(get_info, GET_INFO, csrec_info, quota_dram);
VARIANT_GROWN(queue_create, QUEUE_CREATE, csrec_queue_create, irq_count);
VARIANT(queue_destroy, QUEUE_DESTROY, csrec_queue_destroy);
VARIANT(queue_reset, QUEUE_RESET, csrec_queue_reset);
VARIANT(queue_eventfd, QUEUE_EVENTFD, csrec_queue_eventfd);
VARIANT(mem_register, MEM_REGISTER, csrec_mem_register);
VARIANT_GROWN(mem_alloc, MEM_ALLOC, csrec_mem_alloc, align);
VARIANT(mem_free, MEM_FREE, csrec_mem_free);
VARIANT(fence_create, FENCE_CREATE, csrec_fence_create);
VARIANT(fence_destroy, FENCE_DESTROY, csrec_fence_op);
VARIANT(fence_signal, FENCE_SIGNAL, csrec_fence_op);
VARIANT(submit, SUBMIT, csrec_submit);
VARIANT(wait, WAIT, csrec_wait);
VARIANT(p2p_read, P2P_READ, csrec_p2p_read);
VARIANT(p2p_write, P2P_WRITE, csrec_p2p_read);
VARIANT_GROWN(get_stats, GET_STATS, csrec_stats, ctx_p2p_bytes);

/* A valid argument; what it needs is made on the way. */
static int prepare(int fd, unsigned long nr, uint8_t *raw, uint8_t *buf)
{
	union {
		struct csrec_queue_create qc;
		struct csrec_queue_destroy qd;
		struct csrec_queue_eventfd qe;
		struct csrec_mem_register mr;
		struct csrec_mem_alloc ma;
		struct csrec_mem_free mf;
		struct csrec_fence_op fo;
		struct csrec_submit su;
		struct csrec_wait wa;
		struct csrec_p2p_read pr;
	} arg;
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	uint32_t key;
	int q, ret = 0;

	memset(&arg, 0, sizeof(arg));
	switch (nr) {
	case CSREC_IOC_QUEUE_CREATE:
		arg.qc.entries = 16;
		break;
	case CSREC_IOC_QUEUE_EVENTFD:
		ret = q_create(fd, 16);
		arg.qe.queue_id = ret;
		arg.qe.fd = eventfd(0, EFD_CLOEXEC);
		break;
	case CSREC_IOC_QUEUE_DESTROY:
	case CSREC_IOC_QUEUE_RESET:
		/* the same structure */
		ret = q_create(fd, 16);
		arg.qd.queue_id = ret;
		break;
	case CSREC_IOC_MEM_REGISTER:
		arg.mr.addr = (uintptr_t)buf;
		arg.mr.len = 4096;
		arg.mr.rights = CSREC_RIGHT_READ;
		break;
	case CSREC_IOC_MEM_ALLOC:
		arg.ma.len = 4096;
		arg.ma.kind = CSREC_REGION_DRAM;
		break;
	case CSREC_IOC_MEM_FREE:
		ret = mem_alloc(fd, CSREC_REGION_DRAM, 4096, &arg.mf.key);
		break;
	case CSREC_IOC_FENCE_DESTROY:
	case CSREC_IOC_FENCE_SIGNAL:
		ret = fence_create(fd, 0, &arg.fo.key);
		break;
	case CSREC_IOC_SUBMIT:
		ret = q_create(fd, 16);
		arg.su.queue_id = ret;
		arg.su.count = 1;
		memcpy(buf, &nop, sizeof(nop));
		arg.su.cmds = (uintptr_t)buf;
		break;
	case CSREC_IOC_WAIT:
		q = q_create(fd, 16);
		if (q < 0)
			return q;
		ret = q_submit(fd, q, &nop, 1);
		arg.wa.queue_id = q;
		arg.wa.min = 1;
		arg.wa.max = 1;
		arg.wa.timeout_ns = -1;
		arg.wa.cqes = (uintptr_t)buf;
		break;
	case CSREC_IOC_P2P_READ:
	case CSREC_IOC_P2P_WRITE:
		ret = mem_alloc(fd, CSREC_REGION_DRAM, 4096, &key);
		if (ret)
			return ret;
		ret = open(DRIVE, O_RDWR);
		arg.pr.fd = ret;
		arg.pr.count = 1;
		memcpy(buf, &(struct csrec_p2p_seg){ .len = 4096, .key = key },
		       sizeof(struct csrec_p2p_seg));
		arg.pr.segs = (uintptr_t)buf;
		break;
	}
	memcpy(raw, &arg, sizeof(arg));
	return ret < 0 ? ret : 0;
}

FIXTURE_SETUP(ioctl)
{
	self->fd = dev_open();
	ASSERT_LE(0, self->fd);
	self->arg = calloc(1, ARG_MAX_BYTES);
	self->buf = pages(4096);
	ASSERT_NE(NULL, self->arg);
	ASSERT_NE(NULL, self->buf);
	ASSERT_EQ(0, prepare(self->fd, variant->nr, self->arg, self->buf));
	*(uint32_t *)self->arg = variant->size;
}

FIXTURE_TEARDOWN(ioctl)
{
	close(self->fd);
}

TEST_F(ioctl, accepted)
{
	EXPECT_EQ(0, xioctl(self->fd, variant->nr, self->arg));
}

TEST_F(ioctl, size_too_small)
{
	uint32_t *size = (uint32_t *)self->arg;

	*size = variant->first - 1;
	EXPECT_EQ(-EINVAL, xioctl(self->fd, variant->nr, self->arg));
	*size = 0;
	EXPECT_EQ(-EINVAL, xioctl(self->fd, variant->nr, self->arg));
	*size = 4;
	EXPECT_EQ(-EINVAL, xioctl(self->fd, variant->nr, self->arg));
}

/* A program of the first version goes on as ever, and nothing is written behind what it has. */
TEST_F(ioctl, first_version)
{
	*(uint32_t *)self->arg = variant->first;
	memset(self->arg + variant->first, 0x5a, 64);
	EXPECT_EQ(0, xioctl(self->fd, variant->nr, self->arg));
	for (int i = 0; i < 64; i++) {
		ASSERT_EQ(0x5a, self->arg[variant->first + i]);
	}
}

TEST_F(ioctl, larger_with_zeroes)
{
	*(uint32_t *)self->arg = variant->size + 8;
	EXPECT_EQ(0, xioctl(self->fd, variant->nr, self->arg));
}

TEST_F(ioctl, larger_with_something)
{
	*(uint32_t *)self->arg = variant->size + 8;
	self->arg[variant->size + 7] = 1;
	EXPECT_EQ(-E2BIG, xioctl(self->fd, variant->nr, self->arg));
}

/* Zeroes or not, nothing above a page is looked at. */
TEST_F(ioctl, larger_than_a_page)
{
	uint8_t *big = pages(16 * 4096);

	ASSERT_NE(NULL, big);
	memcpy(big, self->arg, variant->size);
	*(uint32_t *)big = 4097;
	EXPECT_EQ(-E2BIG, xioctl(self->fd, variant->nr, big));
	*(uint32_t *)big = 16 * 4096;
	EXPECT_EQ(-E2BIG, xioctl(self->fd, variant->nr, big));
	*(uint32_t *)big = 4096;
	EXPECT_EQ(0, xioctl(self->fd, variant->nr, big));
	munmap(big, 16 * 4096);
}

TEST_F(ioctl, leaves_what_follows_alone)
{
	memset(self->arg + variant->size, 0x5a, 64);
	EXPECT_EQ(0, xioctl(self->fd, variant->nr, self->arg));
	for (int i = 0; i < 64; i++) {
		ASSERT_EQ(0x5a, self->arg[variant->size + i]);
	}
}

TEST_F(ioctl, unknown_flags)
{
	uint32_t *flags = (uint32_t *)self->arg + 1;

	*flags = 0x80000000;
	EXPECT_EQ(-EINVAL, xioctl(self->fd, variant->nr, self->arg));
	*flags = 1 << 2;
	EXPECT_EQ(-EINVAL, xioctl(self->fd, variant->nr, self->arg));
}

TEST_F(ioctl, bad_pointer)
{
	uint8_t *page = guarded_page();

	ASSERT_NE(NULL, page);
	EXPECT_EQ(-EFAULT, xioctl(self->fd, variant->nr, NULL));
	EXPECT_EQ(-EFAULT, xioctl(self->fd, variant->nr, page + 4096));
	/* a kernel address */
	EXPECT_EQ(-EFAULT, xioctl(self->fd, variant->nr, (void *)0xffff888000000000));
	/* runs into the page that is not there */
	memcpy(page + 4096 - variant->size + 4, self->arg, variant->size - 4);
	EXPECT_EQ(-EFAULT, xioctl(self->fd, variant->nr, page + 4096 - variant->size + 4));
}

TEST_F(ioctl, at_the_end_of_a_page)
{
	uint8_t *page = guarded_page();
	uint8_t *end = page + 4096 - variant->size;

	ASSERT_NE(NULL, page);
	memcpy(end, self->arg, variant->size);
	EXPECT_EQ(0, xioctl(self->fd, variant->nr, end));
}

#define RSVD(NR, type, field)	{ #NR "." #field, CSREC_IOC_##NR, sizeof(struct type),	\
				  offsetof(struct type, field) }

TEST(reserved_fields)
{
	static const struct {
		const char *name;
		unsigned long nr;
		uint32_t size, offset;
	} fields[] = {
		RSVD(QUEUE_DESTROY, csrec_queue_destroy, rsvd),
		RSVD(QUEUE_RESET, csrec_queue_reset, rsvd),
		RSVD(MEM_FREE, csrec_mem_free, rsvd),
		RSVD(FENCE_CREATE, csrec_fence_create, rsvd),
		RSVD(FENCE_DESTROY, csrec_fence_op, rsvd),
		RSVD(FENCE_DESTROY, csrec_fence_op, value),
		RSVD(FENCE_SIGNAL, csrec_fence_op, rsvd),
		RSVD(SUBMIT, csrec_submit, rsvd),
		RSVD(P2P_READ, csrec_p2p_read, rsvd),
		RSVD(P2P_WRITE, csrec_p2p_read, rsvd),
	};
	uint8_t *buf = pages(4096);

	for (unsigned int i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		uint8_t arg[ARG_MAX_BYTES] = {};
		int fd = dev_open();

		ASSERT_LE(0, fd);
		ASSERT_EQ(0, prepare(fd, fields[i].nr, arg, buf));
		*(uint32_t *)arg = fields[i].size;
		arg[fields[i].offset] = 1;
		EXPECT_EQ(-EINVAL, xioctl(fd, fields[i].nr, arg))
			TH_LOG("%s", fields[i].name);
		/* nothing had happened, and it was for this field alone */
		arg[fields[i].offset] = 0;
		EXPECT_EQ(0, xioctl(fd, fields[i].nr, arg))
			TH_LOG("%s", fields[i].name);
		close(fd);
	}
}

TEST(unknown_ioctl)
{
	uint8_t arg[ARG_MAX_BYTES] = { 64 };
	int fd = dev_open();

	ASSERT_LE(0, fd);
	for (unsigned int nr = _IOC_NR(CSREC_IOC_MEM_IMPORT) + 1; nr < 0x100; nr++)
		EXPECT_EQ(-ENOTTY, xioctl(fd, _IO(CSREC_IOC_MAGIC, nr), arg));
	EXPECT_EQ(-ENOTTY, xioctl(fd, _IO('x', 0), arg));
	EXPECT_EQ(-ENOTTY, xioctl(fd, _IOWR(CSREC_IOC_MAGIC, 0, uint32_t), arg));
	EXPECT_EQ(-ENOTTY, xioctl(fd, 0, arg));
	/* between the first and the last a driver may leave some out */
	memset(arg, 0, sizeof(arg));
	for (unsigned int nr = 0; nr <= _IOC_NR(CSREC_IOC_MEM_IMPORT); nr++) {
		int ret = xioctl(fd, _IO(CSREC_IOC_MAGIC, nr), arg);

		EXPECT_TRUE(ret == -EINVAL || ret == -ENOTTY) TH_LOG("ioctl 0x%x: %d", nr, ret);
	}
	close(fd);
}

TEST(info)
{
	struct csrec_info info;
	int fd = dev_open();

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, get_info(fd, &info));
	EXPECT_EQ(CSREC_UAPI_MAJOR, info.uapi_major);
	EXPECT_EQ(CSREC_UAPI_MINOR, info.uapi_minor);
	EXPECT_EQ(CSREC_HW_MAJOR, info.hw_major);
	EXPECT_NE(0, (info.cap_queue >> CSREC_CAPQ_IOQ_SHIFT) & 0xff);
	EXPECT_NE(0, info.cap_dram);
	EXPECT_EQ(info.cap_dram, info.dram_free);
	EXPECT_EQ(info.cap_onchip, info.onchip_free);
	EXPECT_EQ(1, info.cap_engine & CSREC_CAPE_COPY);
	EXPECT_LE(1, info.irq_vectors);
	EXPECT_EQ(0, info.features & ~(2 * CSREC_FEATURE_URING - 1));
	close(fd);
}

/* Counters of the device move on, by themselves and by what was done. */
TEST(stats)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	struct csrec_stats before, after;
	struct csrec_cqe cqe;
	int fd = dev_open(), q;

	ASSERT_LE(0, fd);
	q = q_create(fd, 16);
	ASSERT_LT(0, q);
	ASSERT_EQ(0, get_stats(fd, &before));
	ASSERT_EQ(0, run_cmd(fd, q, &nop, &cqe));
	ASSERT_EQ(0, get_stats(fd, &after));
	EXPECT_EQ(before.commands + 1, after.commands);
	EXPECT_EQ(before.doorbells + 1, after.doorbells);
	EXPECT_EQ(counter(&before, CSREC_REG_CNT_DOORBELLS) + 1,
		  counter(&after, CSREC_REG_CNT_DOORBELLS));
	EXPECT_EQ(counter(&before, CSREC_REG_CNT_COMMANDS) + 1,
		  counter(&after, CSREC_REG_CNT_COMMANDS));
	EXPECT_EQ(counter(&before, CSREC_REG_CNT_ERRORS), counter(&after, CSREC_REG_CNT_ERRORS));
	EXPECT_EQ(counter(&before, CSREC_REG_CNT_BAD_DOORBELL),
		  counter(&after, CSREC_REG_CNT_BAD_DOORBELL));
	EXPECT_EQ(counter(&before, CSREC_REG_CNT_BAD_WRITE),
		  counter(&after, CSREC_REG_CNT_BAD_WRITE));
	EXPECT_LT(counter(&before, CSREC_REG_CNT_PROGRESS),
		  counter(&after, CSREC_REG_CNT_PROGRESS));
	EXPECT_LE(64, counter(&after, CSREC_REG_CNT_HOST_RD) -
		  counter(&before, CSREC_REG_CNT_HOST_RD));
	EXPECT_LE(16, counter(&after, CSREC_REG_CNT_HOST_WR) -
		  counter(&before, CSREC_REG_CNT_HOST_WR));
	close(fd);
}

TEST_HARNESS_MAIN
