// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Every failure on the way: for each ioctl, for open, close, mmap and probe, the first
 * allocation or copy of user memory fails, then the second, and so on, until a call comes to
 * its end without one. A call that was failed either reports an error or has done all that
 * was asked (where the kernel or the driver can do without); whichever it was, nothing is left
 * of it once its context is closed. What the kernel thinks of it all, run.sh reads in its log.
 *
 * Needs CONFIG_FAULT_INJECTION (tools/lab/debug-kernel).
 */
#include <linux/udmabuf.h>
#include <sys/eventfd.h>

#include "csrec_test.h"

#define SWEEP_MAX	5000	/* more failures than any call has */
#define LEN		(64 * KIB)
#define BIG		(3 * MIB)	/* more pages than one list has */

static struct {
	int proc;		/* this thread's fail-nth */
	int observer;		/* a context that nothing is done to */
	int drive;
	uint8_t *buf;		/* BIG bytes, present */
	char bdf[32];
} env;

/* What one call needs and makes. */
struct call {
	int fd;
	int q;
	int efd;
	int dmabuf;
	uint32_t key;
	uint32_t fence;
	void *map;
	uint64_t offset;
	uint64_t len;
	struct csrec_cqe cqe;
	uint64_t out;
};

/* ---- fault injection ---- */

static void knob(const char *dir, const char *name, const char *value)
{
	char path[96];

	snprintf(path, sizeof(path), "/sys/kernel/debug/%s/%s", dir, name);
	write_file(path, value);
}

static const char *const kinds[] = {
	"failslab", "fail_page_alloc", "fail_usercopy", "fail_make_request",
};

/* Where a function of the kernel, or of a module, begins and the next one does. */
static bool text_of(const char *name, unsigned long range[2])
{
	unsigned long addr;
	char symbol[128], type;
	FILE *f = fopen("/proc/kallsyms", "r");
	int n;

	range[0] = 0;
	for (int pass = 0; f && pass < 2; pass++) {
		range[1] = ~0UL;
		rewind(f);
		while ((n = fscanf(f, "%lx %c %127s%*[^\n]", &addr, &type, symbol)) == 3) {
			if (!pass && !strcmp(symbol, name))
				range[0] = addr;
			if (pass && addr > range[0] && addr < range[1])
				range[1] = addr;
		}
	}
	if (f)
		fclose(f);
	return range[0];
}

/* What is failed ("require") or not ("reject"): what has a function of this range on its stack. */
static void filter(const char *kind, const char *what, const unsigned long range[2])
{
	char name[32], value[32];

	for (int end = 0; end < 2; end++) {
		snprintf(name, sizeof(name), "%s-%s", what, end ? "end" : "start");
		snprintf(value, sizeof(value), "%#lx", range[end]);
		knob(kind, name, value);
	}
}

static void require(const unsigned long range[2])
{
	for (unsigned int i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		filter(kinds[i], "require", range);
}

static int faults_init(void)
{
	unsigned long range[2];

	env.proc = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (env.proc < 0)
		return -errno;
	for (unsigned int i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		knob(kinds[i], "verbose", "0");
		knob(kinds[i], "ignore-gfp-wait", "N");
		knob(kinds[i], "ignore-gfp-highmem", "N");
	}
	knob("fail_page_alloc", "min-order", "0");
	/* DMA-API debugging turns itself off for good when it has no memory */
	if (text_of("add_dma_entry", range))
		filter("failslab", "reject", range);
	/* peer-to-peer memory gets page tables, and x86 does not look whether there were any left */
	if (text_of("arch_add_memory", range))
		filter("fail_page_alloc", "reject", range);
	write_file("/sys/block/nvme0n1/make-it-fail", "1");
	return 0;
}

static void arm(unsigned int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", n);

	/* takes hold at its end, so that it does not fail itself */
	if (pwrite(env.proc, text, len, 0) != len)
		abort();
}

/* Was the failure taken? Being told, and disarming, may be what fails. */
static bool disarm(void)
{
	char text[16] = "";
	bool taken = pread(env.proc, text, sizeof(text), 0) > 0 && !atoi(text);

	while (pwrite(env.proc, "0", 1, 0) != 1)
		;
	return taken;
}

/* ---- what is swept: prepare() and check() run without faults ---- */

struct op {
	int (*prepare)(struct call *c);	/* -ENOTTY, -EOPNOTSUPP: there is no such thing here */
	int (*run)(struct call *c);
	int (*check)(struct call *c);	/* after success */
};

static int no_prepare(struct call *c)
{
	return 0;
}

static int no_check(struct call *c)
{
	return 0;
}

static int run_get_info(struct call *c)
{
	struct csrec_info info;
	int ret = get_info(c->fd, &info);

	c->out = info.cap_queue;
	return ret;
}

static int check_out(struct call *c)
{
	return c->out ? 0 : -EBADMSG;
}

static int run_get_stats(struct call *c)
{
	struct csrec_stats st;
	int ret = get_stats(c->fd, &st);

	c->out = st.counters[0];
	return ret;
}

static int run_queue_create(struct call *c)
{
	c->q = q_create(c->fd, 16);
	return c->q < 0 ? c->q : 0;
}

static int check_queue(struct call *c)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 7);

	return run_cmd(c->fd, c->q, &nop, &c->cqe) || c->cqe.cid != htole16(7) ? -EBADMSG : 0;
}

static int has_queue_map(struct call *c)
{
	struct csrec_info info;
	int ret = get_info(c->fd, &info);

	if (ret)
		return ret;
	return info.features & CSREC_FEATURE_QUEUE_MAP ? 0 : -EOPNOTSUPP;
}

static int queue_map(struct call *c)
{
	struct csrec_queue_create arg = {
		.size = sizeof(arg), .entries = 16, .flags = CSREC_QUEUE_F_MAP,
	};
	int ret = xioctl(c->fd, CSREC_IOC_QUEUE_CREATE, &arg);

	c->q = arg.queue_id;
	c->offset = arg.ring_offset;
	c->len = arg.ring_len;
	c->out = arg.db_offset;
	return ret;
}

static int prepare_queue_map(struct call *c)
{
	int ret = has_queue_map(c);

	return ret ? ret : queue_map(c);
}

static int run_mmap(struct call *c)
{
	c->map = mmap(NULL, c->len, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, c->offset);
	if (c->map == MAP_FAILED) {
		c->map = NULL;
		return -errno;
	}
	return 0;
}

static int check_map(struct call *c)
{
	volatile uint8_t *p = c->map;

	/* writable, to its end */
	p[0] = 0;
	p[c->len - 1] = 0;
	return p[0] ? -EBADMSG : 0;
}

static int prepare_doorbell(struct call *c)
{
	int ret = prepare_queue_map(c);

	c->offset = c->out;
	c->len = sysconf(_SC_PAGESIZE);
	return ret;
}

static int check_doorbell(struct call *c)
{
	return *(volatile uint64_t *)c->map == ~0ULL ? -EBADMSG : 0;
}

static int run_queue_destroy(struct call *c)
{
	return q_destroy(c->fd, c->q);
}

static int check_no_queue(struct call *c)
{
	return q_destroy(c->fd, c->q) == -ENOENT ? 0 : -EBADMSG;
}

static int prepare_queue(struct call *c)
{
	return run_queue_create(c);
}

static int run_queue_reset(struct call *c)
{
	struct csrec_queue_reset arg = { .size = sizeof(arg), .queue_id = c->q };

	return xioctl(c->fd, CSREC_IOC_QUEUE_RESET, &arg);
}

static int prepare_queue_reset(struct call *c)
{
	int ret = run_queue_create(c);

	/* is there such an ioctl? */
	return ret ? ret : run_queue_reset(c);
}

static int eventfd_set(struct call *c, int efd)
{
	struct csrec_queue_eventfd arg = { .size = sizeof(arg), .queue_id = c->q, .fd = efd };

	return xioctl(c->fd, CSREC_IOC_QUEUE_EVENTFD, &arg);
}

static int prepare_eventfd(struct call *c)
{
	int ret = run_queue_create(c);

	c->efd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ret || c->efd < 0)
		return ret ? ret : -errno;
	ret = eventfd_set(c, c->efd);
	return ret ? ret : eventfd_set(c, -1);
}

static int run_eventfd(struct call *c)
{
	return eventfd_set(c, c->efd);
}

static int check_eventfd(struct call *c)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 7);
	struct pollfd pfd = { .fd = c->efd, .events = POLLIN };
	int ret = q_submit(c->fd, c->q, &nop, 1);

	if (ret != 1)
		return -EBADMSG;
	return poll(&pfd, 1, 300000) == 1 ? 0 : -ETIMEDOUT;
}

static int prepare_submit(struct call *c)
{
	int ret = run_queue_create(c);

	return ret ? ret : mem_alloc(c->fd, CSREC_REGION_DRAM, LEN, &c->key);
}

static int run_submit(struct call *c)
{
	struct csrec_cmd cmd = cmd_fill(c->key, 0, LEN, 0x01020304);
	int ret = q_submit(c->fd, c->q, &cmd, 1);

	return ret < 0 ? ret : 0;
}

static int wait_one(struct call *c)
{
	int ret = q_wait(c->fd, c->q, &c->cqe, 1, 1, -1);

	if (ret < 0)
		return ret;
	return ret == 1 && !cqe_status(&c->cqe) ? 0 : -EBADMSG;
}

static int prepare_wait(struct call *c)
{
	struct pollfd pfd = { .fd = c->fd, .events = POLLIN };
	int ret = prepare_submit(c);

	if (!ret)
		ret = run_submit(c);
	if (!ret && poll(&pfd, 1, -1) != 1)
		ret = -EBADMSG;
	return ret;
}

static int run_poll(struct call *c)
{
	struct pollfd pfd = { .fd = c->fd, .events = POLLIN };

	return poll(&pfd, 1, 0) < 0 ? -errno : 0;
}

/* Sleeps, if it gets that far before the device is done. */
static int prepare_wait_long(struct call *c)
{
	int ret = prepare_submit(c);

	return ret ? ret : run_submit(c);
}

static int run_register(struct call *c)
{
	return mem_register(c->fd, env.buf, c->len, CSREC_RIGHT_READ | CSREC_RIGHT_WRITE, &c->key);
}

static int prepare_register_page(struct call *c)
{
	c->len = 4096;
	return 0;
}

static int prepare_register_big(struct call *c)
{
	c->len = BIG;
	return 0;
}

static int check_region(struct call *c)
{
	struct csrec_cmd cmd;

	if (run_queue_create(c))
		return -EBADMSG;
	cmd = cmd_fill(c->key, 0, c->len, 0xaabbccdd);
	return run_cmd(c->fd, c->q, &cmd, &c->cqe) ? -EBADMSG : 0;
}

static int check_register(struct call *c)
{
	uint32_t *words = (uint32_t *)env.buf;

	memset(env.buf, 0, c->len);
	if (check_region(c))
		return -EBADMSG;
	for (size_t i = 0; i < c->len / 4; i++)
		if (le32toh(words[i]) != 0xaabbccdd)
			return -EBADMSG;
	return 0;
}

static int run_alloc_dram(struct call *c)
{
	c->len = LEN;
	return mem_alloc(c->fd, CSREC_REGION_DRAM, c->len, &c->key);
}

static int run_alloc_onchip(struct call *c)
{
	c->len = 4096;
	return mem_alloc(c->fd, CSREC_REGION_ONCHIP, c->len, &c->key);
}

static int prepare_dram_map(struct call *c)
{
	struct csrec_mem_alloc arg = { .size = sizeof(arg), .len = LEN, .kind = CSREC_REGION_DRAM };
	int ret = xioctl(c->fd, CSREC_IOC_MEM_ALLOC, &arg);

	c->offset = arg.mmap_offset;
	c->len = LEN;
	c->key = arg.key;
	return ret ? ret : arg.mmap_offset ? 0 : -EOPNOTSUPP;
}

static int prepare_registered(struct call *c)
{
	c->len = BIG;
	return run_register(c);
}

static int run_mem_free(struct call *c)
{
	return mem_free(c->fd, c->key);
}

static int check_no_key(struct call *c)
{
	return mem_free(c->fd, c->key) == -ENOENT ? 0 : -EBADMSG;
}

static int run_export(struct call *c)
{
	struct csrec_mem_export arg = {
		.size = sizeof(arg), .key = c->key, .open_flags = O_CLOEXEC | O_RDWR,
	};
	int ret = xioctl(c->fd, CSREC_IOC_MEM_EXPORT, &arg);

	if (!ret)
		c->dmabuf = arg.fd;
	return ret;
}

static int prepare_export(struct call *c)
{
	int ret = run_alloc_dram(c);

	if (!ret)
		ret = run_export(c);
	if (!ret)
		close(c->dmabuf);
	c->dmabuf = -1;
	return ret;
}

static int run_import(struct call *c)
{
	struct csrec_mem_import arg = {
		.size = sizeof(arg), .fd = c->dmabuf, .rights = CSREC_RIGHT_READ | CSREC_RIGHT_WRITE,
	};
	int ret = xioctl(c->fd, CSREC_IOC_MEM_IMPORT, &arg);

	if (!ret)
		c->key = arg.key;
	return ret;
}

static int prepare_import(struct call *c)
{
	int ret = run_alloc_dram(c);

	if (!ret)
		ret = run_export(c);
	if (!ret)
		ret = run_import(c);
	return ret ? ret : run_mem_free(c);
}

/* Host memory that somebody else exports. */
static int prepare_import_host(struct call *c)
{
	struct udmabuf_create arg = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = LEN };
	int dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);

	if (dev < 0)
		return -EOPNOTSUPP;
	arg.memfd = memfd_create("csrec", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	if (!ftruncate(arg.memfd, LEN) && !fcntl(arg.memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		c->dmabuf = ioctl(dev, UDMABUF_CREATE, &arg);
	close(arg.memfd);
	close(dev);
	c->len = LEN;
	return c->dmabuf < 0 ? -EBADMSG : 0;
}

static int run_fence_create(struct call *c)
{
	return fence_create(c->fd, 3, &c->fence);
}

static int check_fence(struct call *c)
{
	struct csrec_cmd wait = cmd_fence(CSREC_OP_WAIT, c->fence, 3);

	if (run_queue_create(c))
		return -EBADMSG;
	return run_cmd(c->fd, c->q, &wait, &c->cqe) ? -EBADMSG : 0;
}

static int prepare_fence(struct call *c)
{
	return fence_create(c->fd, 0, &c->fence);
}

static int run_fence_signal(struct call *c)
{
	return fence_signal(c->fd, c->fence, 3);
}

static int run_fence_destroy(struct call *c)
{
	return fence_destroy(c->fd, c->fence);
}

static int check_no_fence(struct call *c)
{
	return fence_destroy(c->fd, c->fence) == -ENOENT ? 0 : -EBADMSG;
}

/* Two segments that are no neighbours, a fence. */
static int p2p(struct call *c, unsigned long nr, uint32_t flags)
{
	struct csrec_p2p_seg segs[] = {
		{ .file_off = 0, .len = LEN / 4, .dev_off = 0, .key = c->key },
		{ .file_off = LEN, .len = LEN / 4, .dev_off = LEN / 2, .key = c->key },
	};
	struct csrec_p2p_read arg = {
		.size = sizeof(arg), .flags = flags, .fd = env.drive, .count = 2,
		.segs = (uintptr_t)segs, .fence_key = c->fence, .fence_value = 3,
	};
	int ret = xioctl(c->fd, nr, &arg);

	c->out = arg.p2p_bytes + arg.bounce_bytes;
	return ret;
}

static int prepare_p2p(struct call *c)
{
	int ret = mem_alloc(c->fd, CSREC_REGION_DRAM, LEN, &c->key);

	return ret ? ret : prepare_fence(c);
}

static int run_p2p_read(struct call *c)
{
	return p2p(c, CSREC_IOC_P2P_READ, 0);
}

static int run_p2p_read_bounce(struct call *c)
{
	return p2p(c, CSREC_IOC_P2P_READ, CSREC_P2P_F_BOUNCE);
}

static int run_p2p_write(struct call *c)
{
	return p2p(c, CSREC_IOC_P2P_WRITE, 0);
}

static int run_p2p_write_bounce(struct call *c)
{
	return p2p(c, CSREC_IOC_P2P_WRITE, CSREC_P2P_F_BOUNCE);
}

static int prepare_p2p_write(struct call *c)
{
	int ret = prepare_p2p(c);

	return ret ? ret : run_p2p_write(c);
}

static int check_p2p(struct call *c)
{
	return c->out == LEN / 2 ? check_fence(c) : -EBADMSG;
}

/* Everything that a context may have. */
static int prepare_close(struct call *c)
{
	uint32_t key;
	int ret = prepare_registered(c);

	if (!ret)
		ret = run_alloc_onchip(c);
	if (!ret)
		ret = prepare_fence(c);
	if (!ret)
		ret = mem_alloc(c->fd, CSREC_REGION_DRAM, LEN, &key);
	return ret ? ret : run_queue_create(c);
}

static int run_close(struct call *c)
{
	int fd = c->fd;

	c->fd = -1;
	return close(fd) ? -errno : 0;
}

static int prepare_open(struct call *c)
{
	close(c->fd);
	c->fd = -1;
	return 0;
}

static int run_open(struct call *c)
{
	c->fd = dev_open();
	return c->fd < 0 ? c->fd : 0;
}

static int check_open(struct call *c)
{
	return run_queue_create(c);
}

/* ---- the sweep ---- */

FIXTURE(fail_nth) {
};

FIXTURE_SETUP(fail_nth)
{
	struct csrec_info info;
	int ret = faults_init();

	if (ret)
		SKIP(return, "no fault injection in this kernel: %s", strerror(-ret));
	env.buf = pages(BIG);
	ASSERT_NE(NULL, env.buf);
	memset(env.buf, 1, BIG);
	env.drive = open(DRIVE, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, env.drive);
	env.observer = dev_open();
	ASSERT_LE(0, env.observer);
	ASSERT_EQ(0, get_info(env.observer, &info));
	snprintf(env.bdf, sizeof(env.bdf), "%04x:%02x:%02x.%x", info.pci_domain, info.pci_bus,
		 info.pci_devfn >> 3, info.pci_devfn & 7);
}

FIXTURE_TEARDOWN(fail_nth)
{
	close(env.observer);
	close(env.drive);
	close(env.proc);
	munmap(env.buf, BIG);
}

FIXTURE_VARIANT(fail_nth)
{
	struct op op;
};

#define OP(name, prepare_, run_, check_)				\
	FIXTURE_VARIANT_ADD(fail_nth, name) {				\
		.op = { .prepare = prepare_, .run = run_, .check = check_ },	\
	}

OP(open, prepare_open, run_open, check_open);
OP(close, prepare_close, run_close, no_check);
OP(get_info, no_prepare, run_get_info, check_out);
OP(get_stats, no_prepare, run_get_stats, check_out);
OP(queue_create, no_prepare, run_queue_create, check_queue);
OP(queue_create_map, has_queue_map, queue_map, run_queue_destroy);
OP(queue_mmap_ring, prepare_queue_map, run_mmap, check_map);
OP(queue_mmap_doorbell, prepare_doorbell, run_mmap, check_doorbell);
OP(queue_destroy, prepare_queue, run_queue_destroy, check_no_queue);
OP(queue_reset, prepare_queue_reset, run_queue_reset, check_queue);
OP(queue_eventfd, prepare_eventfd, run_eventfd, check_eventfd);
OP(submit, prepare_submit, run_submit, wait_one);
OP(wait, prepare_wait, wait_one, no_check);
OP(wait_asleep, prepare_wait_long, wait_one, no_check);
OP(poll, prepare_wait, run_poll, wait_one);
OP(mem_register_page, prepare_register_page, run_register, check_register);
OP(mem_register_lists, prepare_register_big, run_register, check_register);
OP(mem_alloc_dram, no_prepare, run_alloc_dram, check_region);
OP(mem_alloc_onchip, no_prepare, run_alloc_onchip, check_region);
OP(mem_mmap_dram, prepare_dram_map, run_mmap, check_map);
OP(mem_free_dram, run_alloc_dram, run_mem_free, check_no_key);
OP(mem_free_host, prepare_registered, run_mem_free, check_no_key);
OP(mem_export, prepare_export, run_export, no_check);
OP(mem_import, prepare_import, run_import, check_region);
OP(mem_import_host, prepare_import_host, run_import, check_region);
OP(fence_create, no_prepare, run_fence_create, check_fence);
OP(fence_signal, prepare_fence, run_fence_signal, check_fence);
OP(fence_destroy, prepare_fence, run_fence_destroy, check_no_fence);
OP(p2p_read, prepare_p2p, run_p2p_read, check_p2p);
OP(p2p_read_bounce, prepare_p2p, run_p2p_read_bounce, check_p2p);
OP(p2p_write, prepare_p2p_write, run_p2p_write, check_p2p);
OP(p2p_write_bounce, prepare_p2p_write, run_p2p_write_bounce, check_p2p);

/* What the device and this process have left. */
struct left {
	uint64_t dram, onchip, pinned;
	unsigned long locked;
};

static int left(struct left *l)
{
	struct csrec_info info;
	struct csrec_stats st;
	char line[128];
	FILE *f;

	memset(l, 0, sizeof(*l));
	if (get_info(env.observer, &info) || get_stats(env.observer, &st))
		return -1;
	l->dram = info.dram_free;
	l->onchip = info.onchip_free;
	l->pinned = st.pinned_bytes;
	f = fopen("/proc/self/status", "r");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "VmPin: %lu", &l->locked) == 1)
			break;
	fclose(f);
	return 0;
}

static bool failure(int ret)
{
	return ret == -ENOMEM || ret == -EFAULT || ret == -EIO;
}

TEST_F(fail_nth, sweep)
{
	const struct op *op = &variant->op;
	unsigned int n, failed = 0, absorbed = 0;
	struct left before, after;
	bool taken = true;

	ASSERT_EQ(0, left(&before));
	for (n = 1; taken; n++) {
		struct call c = { .q = -1, .efd = -1, .dmabuf = -1 };
		int ret;

		ASSERT_GT(SWEEP_MAX, n);
		c.fd = dev_open();
		ASSERT_LE(0, c.fd);
		ret = op->prepare(&c);
		if (n == 1 && (ret == -ENOTTY || ret == -EOPNOTSUPP)) {
			close(c.fd);
			SKIP(return, "not in this driver");
		}
		ASSERT_EQ(0, ret) TH_LOG("failure %u: preparing", n);

		arm(n);
		ret = op->run(&c);
		taken = disarm();

		if (ret) {
			ASSERT_TRUE(taken) TH_LOG("error %d without a failure", ret);
			ASSERT_TRUE(failure(ret)) TH_LOG("failure %u: error %d", n, ret);
			failed++;
		} else {
			ASSERT_EQ(0, op->check(&c)) TH_LOG("failure %u", n);
			if (taken)
				absorbed++;
		}
		if (c.map)
			munmap(c.map, c.len);
		if (c.dmabuf >= 0)
			close(c.dmabuf);
		if (c.fd >= 0)
			close(c.fd);
		if (c.efd >= 0)
			close(c.efd);
		ASSERT_EQ(0, left(&after));
		ASSERT_EQ(before.dram, after.dram) TH_LOG("failure %u", n);
		ASSERT_EQ(before.onchip, after.onchip) TH_LOG("failure %u", n);
		ASSERT_EQ(before.pinned, after.pinned) TH_LOG("failure %u", n);
		ASSERT_EQ(before.locked, after.locked) TH_LOG("failure %u", n);
	}
	TH_LOG("%u failures: %u reported, %u made do without", failed + absorbed, failed, absorbed);
}

/* ---- probe ---- */

FIXTURE(fail_nth_probe) {
};

FIXTURE_SETUP(fail_nth_probe)
{
	struct csrec_info info;
	int ret = faults_init(), fd;

	if (ret)
		SKIP(return, "no fault injection in this kernel: %s", strerror(-ret));
	fd = dev_open();
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, get_info(fd, &info));
	close(fd);
	snprintf(env.bdf, sizeof(env.bdf), "%04x:%02x:%02x.%x", info.pci_domain, info.pci_bus,
		 info.pci_devfn >> 3, info.pci_devfn & 7);
}

FIXTURE_TEARDOWN(fail_nth_probe)
{
	static const unsigned long all[2] = { 0, ~0UL };

	require(all);
	close(env.proc);
	if (env.bdf[0] && access(DEV, F_OK))
		write_file("/sys/bus/pci/drivers/csrec/bind", env.bdf);
}

/* What the driver's probe() does, and what that calls; not the rest of bind. */
TEST_F_TIMEOUT(fail_nth_probe, bind, 7200)
{
	unsigned long probe[2];
	int bind = open("/sys/bus/pci/drivers/csrec/bind", O_WRONLY | O_CLOEXEC);
	unsigned int n, failed = 0, absorbed = 0;
	bool taken = true;

	ASSERT_LE(0, bind);
	ASSERT_TRUE(text_of("csrec_probe", probe));
	require(probe);
	for (n = 1; taken; n++) {
		struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 7);
		struct csrec_cqe cqe;
		int ret, fd, q;

		ASSERT_GT(SWEEP_MAX, n);
		ASSERT_EQ(0, write_file("/sys/bus/pci/drivers/csrec/unbind", env.bdf));
		ASSERT_NE(0, access(DEV, F_OK)) TH_LOG("failure %u", n);

		arm(n);
		ret = write(bind, env.bdf, strlen(env.bdf)) < 0 ? -errno : 0;
		taken = disarm();

		if (ret) {
			ASSERT_TRUE(taken) TH_LOG("error %d without a failure", ret);
			/* the PCI core's: no memory to claim a BAR is -EBUSY, to map it -EINVAL */
			ASSERT_TRUE(failure(ret) || ret == -ENODEV || ret == -EBUSY ||
				    ret == -EINVAL)
				TH_LOG("failure %u: error %d", n, ret);
			failed++;
			/* and as if nothing had been */
			if (access(DEV, F_OK))
				ASSERT_EQ(0, write_file("/sys/bus/pci/drivers/csrec/bind", env.bdf))
					TH_LOG("failure %u", n);
		} else if (taken) {
			absorbed++;
		}
		fd = dev_open();
		ASSERT_LE(0, fd) TH_LOG("failure %u", n);
		q = q_create(fd, 16);
		ASSERT_LE(0, q) TH_LOG("failure %u", n);
		ASSERT_EQ(0, run_cmd(fd, q, &nop, &cqe)) TH_LOG("failure %u", n);
		close(fd);
	}
	close(bind);
	TH_LOG("%u failures: %u reported, %u made do without", failed + absorbed, failed, absorbed);
}

TEST_HARNESS_MAIN
