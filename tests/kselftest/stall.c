// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A process that does not let its own page faults end, by userfaultfd, stalls only its own
 * call: not another process, nor a reset or the removal of the device.
 */
#include <pthread.h>
#include <sys/syscall.h>

#include <linux/userfaultfd.h>

#include "csrec_test.h"

#define PAGE	4096

enum call { GET_INFO, GET_INFO_OUT, SUBMIT, WAIT, MEM_REGISTER };
enum deed { OTHERS, RESET, UNBIND };

FIXTURE(stall)
{
	char bdf[16];
	char sysfs[64];
	int fd;
	int q;
	uint32_t fence;
	int uffd;
	uint8_t *page;		/* its faults are in our hands */
	pthread_t caller;
	int ret;		/* of the call */
};

FIXTURE_VARIANT(stall)
{
	enum call call;
};
FIXTURE_VARIANT_ADD(stall, get_info) { .call = GET_INFO };
FIXTURE_VARIANT_ADD(stall, get_info_out) { .call = GET_INFO_OUT };
FIXTURE_VARIANT_ADD(stall, submit) { .call = SUBMIT };
FIXTURE_VARIANT_ADD(stall, wait) { .call = WAIT };
FIXTURE_VARIANT_ADD(stall, mem_register) { .call = MEM_REGISTER };

/* All that a process does with a device which works. */
static int use(void)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	int fd = wait_for_node(), q, ret;
	struct csrec_cqe cqe;
	uint32_t key;

	if (fd < 0)
		return fd;
	q = q_create(fd, 4);
	ret = q < 0 ? q : run_cmd(fd, q, &nop, &cqe);
	if (!ret)
		ret = mem_register(fd, &cqe, sizeof(cqe), CSREC_RIGHT_READ, &key);
	if (!ret)
		ret = mem_alloc(fd, CSREC_REGION_DRAM, PAGE, &key);
	if (!ret)
		ret = q_destroy(fd, q);
	close(fd);
	return ret;
}

/* A page that is not there yet; or, to be read but not written, one write-protected. */
static int stalled_page(bool readable, uint8_t **page)
{
	struct uffdio_api api = { .api = UFFD_API,
				  .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP };
	struct uffdio_register reg = {};
	struct uffdio_writeprotect wp = {};
	int uffd = syscall(SYS_userfaultfd, O_CLOEXEC);

	*page = pages(PAGE);
	if (uffd < 0 || !*page)
		return -1;
	if (readable)
		/* an argument of GET_INFO */
		**(uint32_t **)page = sizeof(struct csrec_info);
	reg.range.start = (uintptr_t)*page;
	reg.range.len = PAGE;
	reg.mode = readable ? UFFDIO_REGISTER_MODE_WP : UFFDIO_REGISTER_MODE_MISSING;
	wp.range = reg.range;
	wp.mode = UFFDIO_WRITEPROTECT_MODE_WP;
	if (ioctl(uffd, UFFDIO_API, &api) || ioctl(uffd, UFFDIO_REGISTER, &reg) ||
	    (readable && ioctl(uffd, UFFDIO_WRITEPROTECT, &wp)))
		return -1;
	return uffd;
}

FIXTURE_SETUP(stall)
{
	struct csrec_cmd cmd;

	ASSERT_EQ(0, find_device(self->sysfs, sizeof(self->sysfs), self->bdf, sizeof(self->bdf)));
	self->fd = dev_open();
	ASSERT_LE(0, self->fd);
	self->q = q_create(self->fd, 4);
	ASSERT_LT(0, self->q);
	ASSERT_EQ(0, fence_create(self->fd, 0, &self->fence));
	cmd = cmd_fence(CSREC_OP_WAIT, self->fence, 1);
	ASSERT_EQ(1, q_submit(self->fd, self->q, &cmd, 1));
	self->uffd = stalled_page(variant->call == GET_INFO_OUT || variant->call == WAIT,
				  &self->page);
	ASSERT_LE(0, self->uffd);
}

FIXTURE_TEARDOWN(stall)
{
	if (self->fd >= 0)
		close(self->fd);
	close(self->uffd);
}

struct caller {
	FIXTURE_DATA(stall) *self;
	enum call call;
};

static void *call(void *arg)
{
	struct caller *c = arg;
	FIXTURE_DATA(stall) *self = c->self;
	uint32_t key;

	switch (c->call) {
	case GET_INFO:
	case GET_INFO_OUT:
		self->ret = xioctl(self->fd, CSREC_IOC_GET_INFO, self->page);
		break;
	case SUBMIT:
		self->ret = q_submit(self->fd, self->q, (void *)self->page, 1);
		break;
	case WAIT:
		self->ret = q_wait(self->fd, self->q, (void *)self->page, 1, 1, -1);
		break;
	case MEM_REGISTER:
		self->ret = mem_register(self->fd, self->page, PAGE, CSREC_RIGHT_READ, &key);
		break;
	}
	return NULL;
}

struct deed_arg {
	enum deed deed;
	const char *bdf, *sysfs;
	int ret;
};

static void *deed(void *arg)
{
	struct deed_arg *d = arg;

	switch (d->deed) {
	case OTHERS:
		d->ret = use();
		break;
	case RESET:
		d->ret = reset(d->sysfs);
		break;
	case UNBIND:
		d->ret = write_file("/sys/bus/pci/drivers/csrec/unbind", d->bdf);
		break;
	}
	return NULL;
}

/* Far longer than any of this takes; who has not come by then never will. */
static int join(pthread_t t)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_sec += 100;
	return pthread_timedjoin_np(t, NULL, &ts);
}

static void test(struct __test_metadata *_metadata, FIXTURE_DATA(stall) *self, enum call which,
		 enum deed what)
{
	struct caller c = { .self = self, .call = which };
	struct deed_arg d = { .deed = what, .bdf = self->bdf, .sysfs = self->sysfs };
	struct uffdio_writeprotect wp = {};
	struct uffdio_zeropage zero = {};
	struct uffd_msg msg;
	pthread_t t;
	int late;

	ASSERT_EQ(0, pthread_create(&self->caller, NULL, call, &c));
	/* the call is in its page fault now */
	ASSERT_EQ(sizeof(msg), read(self->uffd, &msg, sizeof(msg)));
	ASSERT_EQ(UFFD_EVENT_PAGEFAULT, msg.event);

	ASSERT_EQ(0, pthread_create(&t, NULL, deed, &d));
	late = join(t);

	wp.range.start = zero.range.start = (uintptr_t)self->page;
	wp.range.len = zero.range.len = PAGE;
	wp.mode = 0;
	if (which == GET_INFO_OUT || which == WAIT) {
		ASSERT_EQ(0, ioctl(self->uffd, UFFDIO_WRITEPROTECT, &wp));
	} else {
		ASSERT_EQ(0, ioctl(self->uffd, UFFDIO_ZEROPAGE, &zero));
	}
	EXPECT_EQ(0, late);
	if (late)
		pthread_join(t, NULL);
	EXPECT_EQ(0, d.ret);
	if (what == OTHERS && which == WAIT) {
		ASSERT_EQ(0, fence_signal(self->fd, self->fence, 1));
	}
	ASSERT_EQ(0, join(self->caller));
	if (which == GET_INFO) {
		/* read after the fault: a size of 0 */
		EXPECT_EQ(-EINVAL, self->ret);
	} else if (which == GET_INFO_OUT) {
		/* was done before */
		EXPECT_EQ(0, self->ret);
	} else if (what == OTHERS) {
		EXPECT_EQ(which == MEM_REGISTER ? 0 : 1, self->ret);
	} else {
		EXPECT_EQ(-ENODEV, self->ret);
	}
	if (what == UNBIND) {
		EXPECT_EQ(0, write_file("/sys/bus/pci/drivers/csrec/bind", self->bdf));
	}
	EXPECT_EQ(0, use());
}

TEST_F(stall, others)
{
	test(_metadata, self, variant->call, OTHERS);
}

TEST_F(stall, reset)
{
	test(_metadata, self, variant->call, RESET);
}

TEST_F(stall, unbind)
{
	test(_metadata, self, variant->call, UNBIND);
}

TEST_HARNESS_MAIN
