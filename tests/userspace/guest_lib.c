// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * libcsrec with the real driver and device, in the guest: guest_lib FILE, FILE being on a file
 * system of the drive. Each test on both kinds of queue; what the driver cannot is skipped. With
 * the name of something else that FILE is on, only what concerns files; with a command that has
 * the drive fail ("on") and work again ("off"), only that.
 * System calls are counted by tracing the test. TAP.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <csrec.h>

static int n, bad;
static bool failed;
static volatile uint32_t *counting;	/* shared with the tracer: count? and how many */

#define CHECK(cond) do {								\
	if (!(cond)) {									\
		printf("# line %d: %s; errno %d, csrec_error: \"%s\"\n", __LINE__, #cond,	\
		       errno, csrec_error());						\
		failed = true;								\
	}										\
} while (0)

static struct csrec_dev *dev;

static struct csrec_queue *make(const struct csrec_queue_opts *base, uint32_t entries,
				enum csrec_queue_mode mode)
{
	struct csrec_queue_opts opts = *base;
	struct csrec_queue *q = NULL;

	opts.size = sizeof(opts);
	opts.entries = entries;
	opts.mode = mode;
	CHECK(csrec_queue_create_ext(dev, &opts, &q) == 0);
	return q;
}

static const struct csrec_queue_opts plain;

/* Data written and moved by more commands than the ring holds. */
static void test_run(enum csrec_queue_mode mode)
{
	const uint32_t count = 500;
	struct csrec_queue *q = make(&plain, 16, mode);
	struct csrec_cmd *cmds = calloc(count, sizeof(*cmds));
	uint32_t *back = calloc(count, 4);
	uint32_t src, dst;

	if (!q)
		return;
	CHECK(csrec_mem_alloc(dev, CSREC_REGION_DRAM, 4 * count, &src) == 0);
	CHECK(csrec_mem_alloc(dev, CSREC_REGION_DRAM, 4 * count, &dst) == 0);
	for (uint32_t i = 0; i < count; i++)
		cmds[i] = csrec_cmd_fill(src, 4 * i, 4, 0xab000000 + i);
	CHECK(csrec_run(q, cmds, count, NULL) == 0);
	for (uint32_t i = 0; i < count; i++)
		cmds[i] = csrec_cmd_copy(dst, 4 * (count - 1 - i), src, 4 * i, 4);
	CHECK(csrec_run(q, cmds, count, NULL) == 0);
	CHECK(csrec_copy_from_device(q, dst, 0, back, 4 * count) == 0);
	for (uint32_t i = 0; i < count; i++)
		CHECK(back[i] == 0xab000000 + count - 1 - i);
	cmds[3] = csrec_cmd_copy(dst, 4 * count, src, 0, 4096);
	CHECK(csrec_run(q, cmds, 8, NULL) == -EPROTO && strstr(csrec_error(), "command 3 of 8"));
	csrec_mem_free(dev, src);
	csrec_mem_free(dev, dst);
	csrec_queue_destroy(q);
	free(cmds);
	free(back);
}

/* A queue that is held up by a fence: full, timeouts, then all at once; eventfd. */
static void test_blocked(enum csrec_queue_mode mode)
{
	struct csrec_queue *q = make(&plain, 8, mode);
	struct csrec_cmd cmds[12];
	struct csrec_cqe cqes[12];
	struct pollfd p = { .events = POLLIN };
	uint64_t events;
	uint32_t fence;

	if (!q)
		return;
	CHECK(csrec_fence_create(dev, 0, &fence) == 0);
	cmds[0] = csrec_cmd_wait(fence, 1);
	for (int i = 1; i < 12; i++)
		cmds[i] = csrec_cmd_nop();
	for (int i = 0; i < 12; i++)
		cmds[i].cid = i;
	p.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	CHECK(csrec_queue_eventfd(q, p.fd) == 0);
	CHECK(csrec_submit(q, cmds, 12) == 8);
	CHECK(csrec_submit(q, cmds + 8, 4) == -EAGAIN);
	CHECK(csrec_wait(q, cqes, 1, 12, 0) == -EAGAIN);
	CHECK(csrec_wait(q, cqes, 1, 12, 20000000) == -ETIMEDOUT);
	CHECK(csrec_wait_until(q, cqes, 1, 12, 1) == -ETIMEDOUT);
	CHECK(read(p.fd, &events, 8) < 0);
	CHECK(csrec_fence_signal(dev, fence, 1) == 0);
	CHECK(poll(&p, 1, 60000) == 1 && read(p.fd, &events, 8) == 8);
	CHECK(csrec_wait(q, cqes, 8, 12, -1) == 8);
	CHECK(csrec_submit(q, cmds + 8, 4) == 4);
	CHECK(csrec_wait(q, cqes, 4, 4, -1) == 4);
	CHECK(csrec_queue_eventfd(q, -1) == 0);
	close(p.fd);

	/* and aborted */
	cmds[0] = csrec_cmd_wait(fence, 2);
	CHECK(csrec_submit(q, cmds, 8) == 8);
	CHECK(csrec_queue_reset(q) == 0);
	CHECK(csrec_run(q, cmds + 1, 11, NULL) == 0);
	csrec_fence_destroy(dev, fence);
	csrec_queue_destroy(q);
}

/* 64 commands a batch: system calls, doorbells and interrupts of a queue that is in step. */
static void steady(enum csrec_queue_irq irq, uint32_t irq_count, uint32_t most_irqs)
{
	const struct csrec_queue_opts opts = {
		.irq = irq, .irq_count = irq_count, .irq_cycles = irq_count ? 1u << 30 : 0,
		.spin = UINT32_MAX,
	};
	struct csrec_queue *q = make(&opts, 64, CSREC_QUEUE_MAPPED);
	struct csrec_stats before, after;
	struct csrec_cmd cmds[64];
	struct csrec_cqe cqes[64];
	const uint32_t batches = 20;
	uint64_t doorbells, irqs;
	uint32_t calls;

	if (!q)
		return;
	for (int i = 0; i < 64; i++)
		cmds[i] = csrec_cmd_nop();
	CHECK(csrec_get_stats(dev, &before, sizeof(before)) == 0);
	counting[1] = 0;
	counting[0] = 1;
	for (uint32_t b = 0; b < batches; b++) {
		CHECK(csrec_submit(q, cmds, 64) == 64);
		CHECK(csrec_wait(q, cqes, 64, 64, -1) == 64);
	}
	counting[0] = 0;
	calls = counting[1];
	CHECK(csrec_get_stats(dev, &after, sizeof(after)) == 0);
	doorbells = CSREC_COUNTER(&after, DOORBELLS) - CSREC_COUNTER(&before, DOORBELLS);
	irqs = CSREC_COUNTER(&after, IRQS) - CSREC_COUNTER(&before, IRQS);
	printf("# %u batches of 64 by libcsrec: %u system calls, %llu doorbells, %llu interrupts\n",
	       batches, calls, (unsigned long long)doorbells, (unsigned long long)irqs);
	CHECK(calls == 0);
	CHECK(doorbells == batches);
	CHECK(irqs <= batches * most_irqs);
	csrec_queue_destroy(q);
}

static void test_steady_polling(enum csrec_queue_mode mode)
{
	(void)mode;
	steady(CSREC_IRQ_OFF, 0, 0);
}

static void test_steady_coalescing(enum csrec_queue_mode mode)
{
	(void)mode;
	steady(CSREC_IRQ_ON, 64, 1);
}

/* A file on the drive, against pread(). */
static const char *path;

static void test_file(enum csrec_queue_mode mode)
{
	const size_t size = 700001;
	struct csrec_queue *q = make(&plain, 8, mode);
	unsigned char *want = malloc(size), *got = malloc(size);
	struct csrec_file_bytes b;
	uint32_t key;
	int fd;

	if (!q)
		return;
	for (size_t i = 0; i < size; i++)
		want[i] = (i * 2654435761u >> 11) | 1;
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && ftruncate(fd, size) == 0);
	CHECK(pwrite(fd, want, 200000, 0) == 200000);
	CHECK(pwrite(fd, want, 3000, 300001) == 3000);
	CHECK(fallocate(fd, 0, 400000, 60000) == 0);
	CHECK(pwrite(fd, want, size - 500000, 500000) == (ssize_t)(size - 500000));
	CHECK(pread(fd, want, size, 0) == (ssize_t)size);
	CHECK(csrec_mem_alloc(dev, CSREC_REGION_DRAM, 1 << 20, &key) == 0);
	for (uint32_t flags = 0; flags <= CSREC_P2P_F_BOUNCE; flags += CSREC_P2P_F_BOUNCE) {
		CHECK(csrec_file_read(q, fd, 0, 1 << 20, key, 4096, flags, &b) == (int64_t)size);
		CHECK(csrec_copy_from_device(q, key, 4096, got, size) == 0);
		CHECK(!memcmp(want, got, size));
		CHECK(b.direct + b.bounced + b.zeros == size);
		printf("# flags %u: %llu bytes direct, %llu bounced, %llu zeros\n", flags,
		       (unsigned long long)b.direct, (unsigned long long)b.bounced,
		       (unsigned long long)b.zeros);
		CHECK(!flags || b.bounced == size);
	}
	/* its end is less than a block, which no drive can deliver */
	CHECK(csrec_file_read(q, fd, 0, 1 << 20, key, 4096, CSREC_P2P_F_ONLY, &b) == -EREMOTEIO &&
	      strstr(csrec_error(), "bouncing was excluded"));
	csrec_mem_free(dev, key);
	csrec_queue_destroy(q);
	close(fd);
	free(want);
	free(got);
}

/* The drive fails under the file: said which byte; and when it works again, so does this. */
static const char *fail_drive;		/* a command: "on", "off" */

static int set_drive(const char *how)
{
	char line[256];

	snprintf(line, sizeof(line), "%s %s", fail_drive, how);
	return system(line);
}

static void test_error(enum csrec_queue_mode mode)
{
	const size_t size = 1 << 18;
	struct csrec_queue *q = make(&plain, 8, mode);
	unsigned char *want = malloc(size), *got = malloc(size);
	struct csrec_file_bytes b;
	uint32_t key;
	int fd;

	if (!q)
		return;
	for (size_t i = 0; i < size; i++)
		want[i] = (i * 2654435761u >> 11) | 1;
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && pwrite(fd, want, size, 0) == (ssize_t)size && fsync(fd) == 0);
	CHECK(posix_fadvise(fd, 0, size, POSIX_FADV_DONTNEED) == 0);
	CHECK(csrec_mem_alloc(dev, CSREC_REGION_DRAM, size, &key) == 0);
	CHECK(csrec_file_read(q, fd, 0, 4096, key, 0, 0, NULL) == 4096);
	CHECK(posix_fadvise(fd, 0, size, POSIX_FADV_DONTNEED) == 0);
	CHECK(set_drive("on") == 0);
	for (uint32_t flags = 0; flags <= CSREC_P2P_F_BOUNCE; flags += CSREC_P2P_F_BOUNCE)
		CHECK(csrec_file_read(q, fd, 0, size, key, 0, flags, &b) == -EIO &&
		      strstr(csrec_error(), "reading the file at byte 0"));
	CHECK(set_drive("off") == 0);
	CHECK(csrec_file_read(q, fd, 0, size, key, 0, 0, &b) == (int64_t)size);
	CHECK(csrec_copy_from_device(q, key, 0, got, size) == 0 && !memcmp(want, got, size));
	csrec_mem_free(dev, key);
	csrec_queue_destroy(q);
	close(fd);
	free(want);
	free(got);
}

/* The device is reset under a queue that is at work: errors, and no crash. */
static void test_dead(enum csrec_queue_mode mode)
{
	struct csrec_queue *q = make(&plain, 8, mode);
	struct csrec_cmd cmds[2] = { csrec_cmd_nop() };
	struct csrec_cqe cqes[8];
	struct csrec_info info;
	char file[128];
	uint32_t fence;
	int fd;

	if (!q)
		return;
	CHECK(csrec_get_info(dev, &info, sizeof(info)) == 0);
	snprintf(file, sizeof(file), "/sys/bus/pci/devices/%04x:%02x:%02x.%x/reset", info.pci_domain,
		 info.pci_bus, info.pci_devfn >> 3, info.pci_devfn & 7);
	CHECK(csrec_fence_create(dev, 0, &fence) == 0);
	cmds[1] = csrec_cmd_wait(fence, 1);
	CHECK(csrec_submit(q, cmds, 2) == 2);
	fd = open(file, O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0 && write(fd, "1", 1) == 1);
	close(fd);
	for (int i = 0, ret = 1; ret > 0 && i < 2; i++) {
		ret = csrec_wait(q, cqes, 1, 8, -1);
		CHECK(ret == 1 || ret == -ENODEV);
	}
	CHECK(csrec_submit(q, cmds, 1) == -ENODEV);
	CHECK(csrec_wait(q, cqes, 0, 1, 0) < 0);
	CHECK(csrec_queue_destroy(q) == -ENODEV);
	csrec_close(dev);
	CHECK(csrec_open(&dev, "csrec0") == 0);
}

static const struct {
	const char *name;
	void (*run)(enum csrec_queue_mode mode);
	bool mapped_only;
	uint32_t features;
} tests[] = {
	{ "more commands than the ring holds", test_run, false, 0 },
	{ "a blocked queue: full, timeouts, eventfd, reset", test_blocked, false, CSREC_FEATURE_QUEUE_MAP },
	{ "0 system calls, 1 doorbell, 0 interrupts a batch of 64, polling", test_steady_polling, true,
	  CSREC_FEATURE_COALESCE },
	{ "0 system calls, 1 doorbell, 1 interrupt at most a batch of 64", test_steady_coalescing,
	  true, CSREC_FEATURE_COALESCE },
	{ "a file with holes", test_file, false, 0 },
	{ "a drive that fails under its file", test_error, false, 0 },
	{ "a device that is reset", test_dead, false, 0 },
};

static const char *where;		/* what the file is on, if not the drive itself */

static int run_all(void)
{
	static const enum csrec_queue_mode modes[] = { CSREC_QUEUE_IOCTL, CSREC_QUEUE_MAPPED };
	struct csrec_info info;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (csrec_open(&dev, "csrec0") || csrec_get_info(dev, &info, sizeof(info))) {
		printf("not ok 1 - lib: %s\n1..1\n", csrec_error());
		return 1;
	}
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		if (where && tests[i].run != (fail_drive ? test_error : test_file))
			continue;
		if (!where && tests[i].run == test_error)
			continue;
		for (int m = 0; m < 2; m++) {
			uint32_t need = tests[i].features |
				(modes[m] == CSREC_QUEUE_MAPPED ? CSREC_FEATURE_QUEUE_MAP : 0);
			const char *kind = m ? "mapped" : "ioctl";

			if (tests[i].mapped_only && !m)
				continue;
			n++;
			if (need & ~info.features) {
				printf("ok %d - lib, %s: %s%s%s # SKIP not in this driver\n", n, kind,
				       tests[i].name, where ? " on " : "", where ? where : "");
				continue;
			}
			failed = false;
			tests[i].run(modes[m]);
			printf("%s %d - lib, %s: %s%s%s\n", failed ? "not ok" : "ok", n, kind, tests[i].name,
			       where ? " on " : "", where ? where : "");
			bad += failed;
		}
	}
	csrec_close(dev);
	printf("1..%d\n", n);
	return bad != 0;
}

int main(int argc, char **argv)
{
	int status = 0;
	pid_t pid;

	if (argc < 2)
		return 2;
	path = argv[1];
	where = argc > 2 ? argv[2] : NULL;
	fail_drive = argc > 3 ? argv[3] : NULL;
	counting = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid = fork();
	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		exit(run_all());
	}
	waitpid(pid, &status, 0);
	ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	for (int entry = 1;;) {
		ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
		if (waitpid(pid, &status, 0) < 0 || WIFEXITED(status) || WIFSIGNALED(status))
			break;
		if (WIFSTOPPED(status) && WSTOPSIG(status) == (SIGTRAP | 0x80)) {
			if (entry && counting[0])
				counting[1]++;
			entry = !entry;
		}
	}
	if (!WIFEXITED(status))
		printf("not ok - the test was killed by signal %d\n", WTERMSIG(status));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
