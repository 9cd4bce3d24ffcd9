// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * libcsrec against the fake driver of fake.c. Each test is a function; TAP on standard
 * output, exit status 1 if one failed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <numa.h>
#include <numaif.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <csrec.h>
#include "fake.h"
#include "tree.h"

static char root[] = "/tmp/csrec-lib.XXXXXX";
static bool failed;

#define CHECK(cond) do {							\
	if (!(cond)) {								\
		printf("# line %d: %s; csrec_error: \"%s\"\n", __LINE__, #cond,	\
		       csrec_error());						\
		failed = true;							\
	}									\
} while (0)

static bool said(const char *part)
{
	return strstr(csrec_error(), part);
}

static struct csrec_dev *open_fake(void)
{
	struct csrec_dev *dev = NULL;
	int ret = csrec_open(&dev, "csrec0");

	CHECK(ret == 0);
	if (ret)
		exit(1);
	memset(fake.calls, 0, sizeof(fake.calls));
	return dev;
}

/* What the test at work makes its queues of. */
static enum csrec_queue_mode mode = CSREC_QUEUE_IOCTL;
static enum csrec_queue_irq irq = CSREC_IRQ_ON;

static struct csrec_queue *queue(struct csrec_dev *dev, uint32_t entries)
{
	const struct csrec_queue_opts opts = {
		.size = sizeof(opts), .entries = entries, .mode = mode, .irq = irq,
	};
	struct csrec_queue *q = NULL;

	CHECK(csrec_queue_create_ext(dev, &opts, &q) == 0);
	if (!q)
		exit(1);
	CHECK(csrec_queue_mode(q) == mode);
	return q;
}

/*
 * Contexts
 */
static void test_open_names(void)
{
	struct csrec_dev *dev;
	const char *names[] = { "csrec0", "0", "0000:04:00.0", "04:00.0", NULL, NULL };
	char path[128];

	snprintf(path, sizeof(path), "%s/dev/csrec0", root);
	names[4] = path;
	for (int i = 0; i < 6; i++) {
		dev = NULL;
		CHECK(csrec_open(&dev, names[i]) == 0);
		if (!dev)
			continue;
		CHECK(!strcmp(csrec_name(dev), path));
		CHECK(csrec_fd(dev) >= 0);
		csrec_close(dev);
	}
	setenv("CSREC_DEVICE", "csrec7", 1);
	CHECK(csrec_open(&dev, NULL) == -ENODEV);
	CHECK(said("/dev/csrec7"));
	unsetenv("CSREC_DEVICE");
}

static void test_open_refused(void)
{
	struct csrec_dev *dev = (void *)1;

	CHECK(csrec_open(&dev, "0000:04:00.1") == -ENODEV);
	CHECK(said("0000:04:00.1"));
	CHECK(csrec_open(&dev, "csrec") == -ENODEV);
	CHECK(said("\"csrec\""));
	CHECK(csrec_open(&dev, "0000:03:00.0") == -ENODEV);	/* the drive */
	fake_fail(0x00, ENOTTY, 1);
	CHECK(csrec_open(&dev, "csrec0") == -ENOTTY);
	CHECK(said("is not a csrec device"));
	fake_fail(0x00, EIO, 1);
	CHECK(csrec_open(&dev, "csrec0") == -EIO);
	CHECK(said("does not answer"));
	CHECK(dev == (void *)1);
}

static void test_open_versions(void)
{
	struct csrec_dev *dev;

	fake.uapi_major = CSREC_UAPI_MAJOR + 1;
	CHECK(csrec_open(&dev, "csrec0") == -EPROTONOSUPPORT);
	CHECK(said("driver interface is version 2.0") && said("needs 1.x"));
	fake.uapi_major = CSREC_UAPI_MAJOR;
	fake.hw_major = 9;
	CHECK(csrec_open(&dev, "csrec0") == -EPROTONOSUPPORT);
	CHECK(said("device interface is version 9.0") && said("needs 1.x"));
	fake.hw_major = CSREC_HW_MAJOR;
}

static void test_no_permission(void)
{
	struct csrec_dev *dev;
	char path[128];
	pid_t pid;
	int status = 0;

	if (geteuid()) {
		printf("# not root, cannot become somebody else\n");
		return;
	}
	snprintf(path, sizeof(path), "%s/dev/csrec0", root);
	chmod(path, 0600);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		if (setgid(65534) || setuid(65534))
			_exit(3);
		_exit(csrec_open(&dev, "csrec0") == -EACCES && said("no permission") ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_info_stats(void)
{
	struct csrec_dev *dev = open_fake();
	struct csrec_stats stats;
	struct csrec_info info;
	struct csrec_cmd nop = csrec_cmd_nop();
	struct csrec_queue *q = queue(dev, 4);

	CHECK(csrec_get_info(dev, &info, sizeof(info)) == 0);
	CHECK(CSREC_CAP(info.cap_limit, CSREC_CAPL_DIM, 16) == 128);
	CHECK(CSREC_CAP(info.cap_limit, CSREC_CAPL_WIDTH, 16) == 1024);
	CHECK(CSREC_CAP(info.cap_engine, CSREC_CAPE_FP, 4) == 2);
	CHECK(csrec_run(q, &nop, 1, NULL) == 0);
	CHECK(csrec_get_stats(dev, &stats, sizeof(stats)) == 0);
	CHECK(CSREC_COUNTER(&stats, CYCLES) > 0 && CSREC_COUNTER(&stats, TT_ROWS) == 0);
	fake_fail(0x0c, ENODEV, 1);
	CHECK(csrec_get_stats(dev, &stats, sizeof(stats)) == -ENODEV);
	CHECK(said("GET_STATS") && said("gone or was reset"));
	csrec_queue_destroy(q);
	csrec_close(dev);
}

/*
 * Memory
 */
static void test_register_errors(void)
{
	const struct rlimit low = { 65536, 65536 };
	struct csrec_dev *dev = open_fake();
	struct rlimit old;
	uint32_t key = 77;
	char buf[16];

	getrlimit(RLIMIT_MEMLOCK, &old);
	setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){ low.rlim_cur, old.rlim_max });
	fake_fail(0x03, ENOMEM, 1);
	CHECK(csrec_mem_register(dev, buf, 1048576, CSREC_RIGHT_READ, &key) == -ENOMEM);
	CHECK(!strcmp(csrec_error(), "MEM_REGISTER of 1048576 bytes: RLIMIT_MEMLOCK is 65536 bytes"));
	setrlimit(RLIMIT_MEMLOCK, &old);

	fake_fail(0x03, EFAULT, 2);
	CHECK(csrec_mem_register(dev, buf, 16, CSREC_RIGHT_READ, &key) == -EFAULT);
	CHECK(said("mapped") && !said("writable"));
	CHECK(csrec_mem_register(dev, buf, 16, CSREC_RIGHT_WRITE, &key) == -EFAULT);
	CHECK(said("mapped and writable"));
	fake_fail(0x03, ENOSPC, 1);
	CHECK(csrec_mem_register(dev, buf, 16, CSREC_RIGHT_READ, &key) == -ENOSPC);
	CHECK(said("no region slot"));
	fake_fail(0x03, EINVAL, 2);
	CHECK(csrec_mem_register(dev, buf, 0, CSREC_RIGHT_READ, &key) == -EINVAL);
	CHECK(said("must be 1 to 274877906944"));
	CHECK(csrec_mem_register(dev, buf, 16, 8, &key) == -EINVAL);
	CHECK(said("rights 0x8"));
	CHECK(key == 77);
	csrec_close(dev);
}

static void test_alloc_errors(void)
{
	struct csrec_dev *dev = open_fake();
	uint32_t key, a;

	CHECK(csrec_mem_alloc(dev, CSREC_REGION_DRAM, 1 << 20, &a) == 0);
	CHECK(csrec_mem_alloc(dev, CSREC_REGION_DRAM, 16 << 20, &key) == -ENOMEM);
	CHECK(said("16777216 bytes of DRAM: 15728640 bytes are free"));
	CHECK(csrec_mem_alloc(dev, CSREC_REGION_ONCHIP, 2 << 20, &key) == -ENOMEM);
	CHECK(said("on-chip memory: 1048576 bytes are free"));
	CHECK(csrec_mem_alloc(dev, CSREC_REGION_HOST, 4096, &key) == -EINVAL);
	CHECK(csrec_mem_alloc(dev, CSREC_REGION_DRAM, 0, &key) == -EINVAL);
	CHECK(csrec_mem_free(dev, a) == 0);
	CHECK(csrec_mem_free(dev, a) == -ENOENT);
	CHECK(said("is no memory key"));
	csrec_close(dev);
}

/* VmFlags of the mapping at addr, "" if there is none. */
static void vm_flags(const void *addr, char *flags, size_t len)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	unsigned long start, end;
	bool here = false;
	char line[256];

	flags[0] = 0;
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			here = start <= (unsigned long)addr && (unsigned long)addr < end;
		else if (here && !strncmp(line, "VmFlags:", 8))
			snprintf(flags, len, "%s", line + 8);
	}
	if (f)
		fclose(f);
}

static void test_host_alloc(void)
{
	struct csrec_dev *dev = open_fake();
	uint32_t key, key2, before = fake.regions;
	unsigned char *p = NULL;
	void *ptr, *second;
	char flags[256];
	uint64_t len;

	CHECK(csrec_host_alloc(dev, 5000, CSREC_RIGHT_READ, &ptr, &key) == 0);
	p = ptr;
	CHECK((uintptr_t)ptr % sysconf(_SC_PAGESIZE) == 0);
	for (int i = 0; i < 5000; i++)
		CHECK(p[i] == 0);
	CHECK(fake_region(key, &len) == ptr && len == 5000);
	vm_flags(ptr, flags, sizeof(flags));
	CHECK(strstr(flags, " dc"));			/* not copied on fork */

	CHECK(csrec_host_alloc(dev, 4096, CSREC_RIGHT_WRITE, &second, &key2) == 0);
	CHECK(csrec_host_free(dev, p + 1) == -ENOENT);
	CHECK(csrec_host_free(dev, ptr) == 0);
	CHECK(csrec_host_free(dev, ptr) == -ENOENT);
	CHECK(csrec_host_free(dev, NULL) == 0);
	CHECK(fake.regions == before + 1);

	/* a failed registration leaves no mapping and no entry */
	fake_fail(0x03, ENOSPC, 1);
	ptr = (void *)1;
	CHECK(csrec_host_alloc(dev, 4096, CSREC_RIGHT_READ, &ptr, &key) == -ENOSPC);
	CHECK(ptr == (void *)1);
	CHECK(csrec_host_alloc(dev, 0, CSREC_RIGHT_READ, &ptr, &key) == -EINVAL);
	CHECK(csrec_host_alloc(dev, SIZE_MAX, CSREC_RIGHT_READ, &ptr, &key) == -EINVAL);

	csrec_mem_free(dev, key2);	/* the fake does not see close() */
	csrec_close(dev);
	CHECK(mprotect(second, 4096, PROT_READ) < 0);	/* unmapped by close */
}

/* Memory prefers the device's node; without one, or without NUMA, it lies where it falls. */
static void test_numa(void)
{
	unsigned long mask[16];
	struct csrec_dev *dev;
	uint32_t key;
	void *ptr;
	int policy;

	for (int node = -1; node < 1; node++) {
		fake.numa_node = node;
		dev = open_fake();
		CHECK(csrec_host_alloc(dev, 4096, CSREC_RIGHT_READ, &ptr, &key) == 0);
		if (numa_available() >= 0) {
			memset(mask, 0, sizeof(mask));
			CHECK(!get_mempolicy(&policy, mask, sizeof(mask) * 8, ptr, MPOL_F_ADDR));
			CHECK(policy == (node < 0 ? MPOL_DEFAULT : MPOL_PREFERRED));
			CHECK(mask[0] == (node < 0 ? 0 : 1));
		} else {
			printf("# no NUMA here: policy not checked\n");
		}
		csrec_host_free(dev, ptr);
		csrec_close(dev);
	}
	/* a node that this machine does not have is not an error either */
	fake.numa_node = 1000;
	dev = open_fake();
	CHECK(csrec_host_alloc(dev, 4096, CSREC_RIGHT_READ, &ptr, &key) == 0);
	csrec_host_free(dev, ptr);
	csrec_close(dev);
	fake.numa_node = -1;
}

/*
 * Queues
 */
static void test_queue_create(void)
{
	struct csrec_dev *dev = open_fake();
	struct csrec_queue *q[5] = { 0 };

	CHECK(csrec_queue_create(dev, 3, &q[0]) == -EINVAL);
	CHECK(said("3 entries") && said("from 2 to 256"));
	CHECK(csrec_queue_create(dev, 1, &q[0]) == -EINVAL);
	CHECK(csrec_queue_create(dev, 512, &q[0]) == -EINVAL);
	CHECK(fake.calls[0x01] == 0);
	for (int i = 0; i < 4; i++)
		q[i] = queue(dev, 0);
	CHECK(csrec_queue_entries(q[0]) == 64);
	CHECK(csrec_queue_create(dev, 0, &q[4]) == -ENOSPC);
	CHECK(said("no queue left") && !q[4]);
	for (int i = 0; i < 4; i++)
		CHECK(csrec_queue_destroy(q[i]) == 0);
	CHECK(csrec_queue_destroy(NULL) == 0);
	csrec_close(dev);
}

static void test_submit_wait(void)
{
	struct csrec_dev *dev = open_fake();
	struct csrec_queue *q = queue(dev, 8);
	struct csrec_cmd cmds[12];
	struct csrec_cqe cqes[12];

	for (int i = 0; i < 12; i++) {
		cmds[i] = csrec_cmd_nop();
		cmds[i].cid = 100 + i;
	}
	CHECK(csrec_submit(q, cmds, 0) == 0);
	CHECK(csrec_submit(q, cmds, 12) == 8);
	CHECK(csrec_submit(q, cmds + 8, 4) == -EAGAIN);
	CHECK(said("full with 8"));
	CHECK(csrec_wait(q, cqes, 2, 3, -1) == 3);
	for (int i = 0; i < 3; i++)
		CHECK(cqes[i].cid == 100 + i && CSREC_CQE_STATUS(&cqes[i]) == CSREC_ST_OK);
	CHECK(csrec_submit(q, cmds + 8, 4) == 3);
	CHECK(csrec_run(q, cmds, 1, NULL) == -EBUSY);
	CHECK(said("8 commands are outstanding"));
	CHECK(csrec_wait(q, cqes, 8, 12, -1) == 8);
	CHECK(cqes[7].cid == 110);

	CHECK(csrec_wait(q, cqes, 0, 1, 0) == 0);
	CHECK(csrec_wait(q, cqes, 1, 1, -1) == -EINVAL);
	CHECK(said("1 to 1 completions with 0 outstanding"));
	csrec_queue_destroy(q);
	csrec_close(dev);
}

static void test_wait_interrupted(void)
{
	const int64_t second = 1000000000;
	struct csrec_dev *dev = open_fake();
	struct csrec_queue *q = queue(dev, 8);
	struct csrec_cmd nop = csrec_cmd_nop();
	struct csrec_cqe cqe;

	csrec_submit(q, &nop, 1);
	fake_fail(0x0a, EINTR, 3);
	CHECK(csrec_wait(q, &cqe, 1, 1, 1000 * second) == 1);
	CHECK(fake.calls[0x0a] == 4);
	CHECK(fake.last_timeout < 1000 * second && fake.last_timeout > 0);

	csrec_submit(q, &nop, 1);
	fake_fail(0x0a, EINTR, 1);
	CHECK(csrec_wait(q, &cqe, 1, 1, -1) == 1);
	CHECK(fake.last_timeout == -1);

	/* the time is up while interrupted: that is a timeout, not "no completion yet" */
	csrec_submit(q, &nop, 1);
	fake_fail(0x0a, EAGAIN, 1);
	CHECK(csrec_wait(q, &cqe, 1, 1, 1) == -ETIMEDOUT);
	CHECK(csrec_wait(q, &cqe, 1, 1, INT64_MAX) == 1);
	CHECK(fake.last_timeout == -1);
	fake_fail(0x0a, EIO, 1);
	CHECK(csrec_wait(q, &cqe, 1, 1, -1) == -EIO);
	CHECK(said("made no progress"));

	/* other calls resume as well */
	fake_fail(0x09, EINTR, 2);
	CHECK(csrec_submit(q, &nop, 1) == 1);
	csrec_queue_destroy(q);
	csrec_close(dev);
}

/* n fills of four bytes each, so that what ran can be seen in memory */
static struct csrec_cmd *fills(uint32_t key, uint32_t n)
{
	struct csrec_cmd *cmds = calloc(n, sizeof(*cmds));

	for (uint32_t i = 0; i < n; i++) {
		cmds[i] = csrec_cmd_fill(key, 4 * i, 4, 0x1000 + i);
		cmds[i].cid = 7;	/* the caller's, of no use to tell them apart */
	}
	return cmds;
}

static void run_many(bool reverse, uint32_t limit)
{
	const uint32_t n = 1000;
	struct csrec_dev *dev = open_fake();
	struct csrec_queue *q = queue(dev, 16);
	struct csrec_cqe *cqes = calloc(n, sizeof(*cqes));
	struct csrec_cmd *cmds;
	uint32_t key, word;
	uint64_t len;

	CHECK(csrec_mem_alloc(dev, CSREC_REGION_DRAM, 4 * n, &key) == 0);
	cmds = fills(key, n);
	cmds[5].opcode = CSREC_OP_NOP;
	memset(cmds[5].body, 0, sizeof(cmds[5].body));
	fake.reverse = reverse;
	fake.submit_limit = limit;
	fake.lazy = !limit;
	CHECK(csrec_run(q, cmds, n, cqes) == 0);
	fake.reverse = false;
	fake.submit_limit = 0;
	fake.lazy = false;
	for (uint32_t i = 0; i < n; i++) {
		memcpy(&word, (char *)fake_region(key, &len) + 4 * i, 4);
		CHECK(word == (i == 5 ? 0 : 0x1000 + i));
		CHECK(cqes[i].cid == 7 && CSREC_CQE_STATUS(&cqes[i]) == CSREC_ST_OK);
		CHECK(cqes[i].detail == (i == 5 ? 0 : 4));
	}
	/* half a ring at a time: some 2 * 1000 / 16 doorbells, not 1000 */
	if (mode == CSREC_QUEUE_MAPPED)
		CHECK(fake.calls[0x09] == 0 && fake.calls[0x0a] <= 2 * n / 16 + 2);
	else if (!limit)
		CHECK(fake.calls[0x09] <= 2 * n / 16 + 2);
	CHECK(fake.bad_doorbells == 0);
	free(cmds);
	free(cqes);
	csrec_mem_free(dev, key);
	csrec_queue_destroy(q);
	csrec_close(dev);
}

static void test_run_many(void)
{
	run_many(false, 0);
}

static void test_run_out_of_order(void)
{
	run_many(true, 0);
}

static void test_run_partial_submit(void)
{
	run_many(true, 3);
}

static void run_refused(bool reverse)
{
	const uint32_t n = 100, bad = 40;
	struct csrec_dev *dev = open_fake();
	struct csrec_queue *q = queue(dev, 16);
	struct csrec_cqe cqes[100];
	struct csrec_cmd *cmds;
	uint32_t key, started;

	CHECK(csrec_mem_alloc(dev, CSREC_REGION_DRAM, 4 * n, &key) == 0);
	cmds = fills(key, n);
	cmds[bad] = csrec_cmd_fill(key + 0x10000, 0, 4, 0);
	cmds[bad + 1] = csrec_cmd_fill(key, 1 << 20, 4, 0);	/* worse, but later */
	fake.reverse = reverse;
	CHECK(csrec_run(q, cmds, n, cqes) == -EPROTO);
	fake.reverse = false;
	CHECK(said("command 40 of 100: FILL: STALE_KEY, dst_key is 0x"));
	for (uint32_t i = 0; i < bad; i++)
		CHECK(CSREC_CQE_STATUS(&cqes[i]) == CSREC_ST_OK);
	CHECK(CSREC_CQE_STATUS(&cqes[bad]) == CSREC_ST_STALE_KEY);
	CHECK(CSREC_CQE_STATUS(&cqes[bad + 1]) == CSREC_ST_OUT_OF_BOUNDS);
	for (started = bad + 2; started < n; started++)
		if (CSREC_CQE_STATUS(&cqes[started]) == CSREC_ST_ABORTED)
			break;
	CHECK(started < n);		/* it stopped sending */
	for (uint32_t i = started; i < n; i++)
		CHECK(CSREC_CQE_STATUS(&cqes[i]) == CSREC_ST_ABORTED && cqes[i].cid == 7);

	/* the queue is idle and works */
	CHECK(csrec_run(q, cmds, bad, NULL) == 0);
	CHECK(csrec_run(q, NULL, 0, NULL) == 0);
	free(cmds);
	csrec_mem_free(dev, key);
	csrec_queue_destroy(q);
	csrec_close(dev);
}

static void test_run_refused(void)
{
	run_refused(false);
	run_refused(true);
}

static void test_run_driver_errors(void)
{
	struct csrec_dev *dev = open_fake();
	struct csrec_queue *q = queue(dev, 4);
	struct csrec_cmd nops[8];

	for (int i = 0; i < 8; i++)
		nops[i] = csrec_cmd_nop();
	fake.lose = 1;
	CHECK(csrec_run(q, nops, 8, NULL) == -EPROTO);
	CHECK(said("could not read a command: BUS_ERROR"));
	fake_fail(0x09, EIO, 1);
	CHECK(csrec_run(q, nops, 8, NULL) == -EIO);
	CHECK(csrec_run(q, nops, 8, NULL) == 0);
	/* what was sent before SUBMIT failed is still waited for */
	fake_fail_after(0x09, 1, ENODEV, 1);
	CHECK(csrec_run(q, nops, 8, NULL) == -ENODEV);
	CHECK(csrec_run(q, nops, 8, NULL) == 0);
	fake_fail(0x09, EAGAIN, 1);
	CHECK(csrec_run(q, nops, 8, NULL) == -EAGAIN);	/* an idle queue is never full */
	csrec_queue_destroy(q);
	csrec_close(dev);
}

static void test_copy_bounce(void)
{
	static const size_t sizes[] = { 1, 4095, 256 << 10, (256 << 10) + 1, (1 << 20) + 3 };
	struct csrec_dev *dev = open_fake();
	struct csrec_queue *q = queue(dev, 0);
	const size_t room = 2 << 20;
	unsigned char *data = malloc(room), *back = malloc(room);
	uint32_t key;

	for (size_t i = 0; i < room; i++)
		data[i] = i * 2654435761u >> 13;
	CHECK(csrec_mem_alloc(dev, CSREC_REGION_DRAM, room, &key) == 0);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const size_t n = sizes[i];
		unsigned char *mem;
		uint64_t len;

		mem = fake_region(key, &len);
		memset(mem, 0xee, len);
		memset(back, 0x11, room);
		CHECK(csrec_copy_to_device(q, key, 100, data + 7, n) == 0);
		CHECK(mem[99] == 0xee && mem[100 + n] == 0xee && !memcmp(mem + 100, data + 7, n));
		CHECK(csrec_copy_from_device(q, key, 100, back + 5, n) == 0);
		CHECK(back[4] == 0x11 && back[5 + n] == 0x11 && !memcmp(back + 5, data + 7, n));
	}
	CHECK(csrec_copy_to_device(q, key, room, data, 1) == -EPROTO);
	CHECK(said("OUT_OF_BOUNDS, dst_off is 0x200000"));
	CHECK(csrec_copy_to_device(q, key, 0, data, 0) == 0);
	CHECK(fake.regions == 2);
	csrec_mem_free(dev, key);
	csrec_queue_destroy(q);
	CHECK(fake.regions == 0);		/* the bounce buffer went with the queue */
	csrec_close(dev);
	free(data);
	free(back);
}

/* Four queues of one device in four threads; messages do not mix. */
static void *thread(void *arg)
{
	struct csrec_dev *dev = arg;
	struct csrec_queue *q = queue(dev, 8);
	unsigned char data[3000], back[3000];
	char want[64];
	uint32_t key;

	for (int round = 0; round < 50; round++) {
		memset(data, (uintptr_t)q >> 4 & 0xff, sizeof(data));
		CHECK(csrec_mem_alloc(dev, CSREC_REGION_ONCHIP, sizeof(data), &key) == 0);
		CHECK(csrec_copy_to_device(q, key, 0, data, sizeof(data)) == 0);
		CHECK(csrec_copy_from_device(q, key, 0, back, sizeof(back)) == 0);
		CHECK(!memcmp(data, back, sizeof(data)));
		CHECK(csrec_mem_free(dev, key) == 0);
		CHECK(csrec_mem_free(dev, key) == -ENOENT);
		snprintf(want, sizeof(want), "0x%x is no memory key", key);
		CHECK(said(want));
	}
	csrec_queue_destroy(q);
	return NULL;
}

static void test_threads(void)
{
	struct csrec_dev *dev = open_fake();
	pthread_t t[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, thread, dev);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	csrec_close(dev);
}

static void test_fences(void)
{
	struct csrec_dev *dev = open_fake();
	uint32_t key[9];

	for (int i = 0; i < 8; i++)
		CHECK(csrec_fence_create(dev, i, &key[i]) == 0);
	CHECK(csrec_fence_create(dev, 0, &key[8]) == -ENOSPC);
	CHECK(said("no fence slot"));
	CHECK(csrec_fence_signal(dev, key[3], 10) == 0);
	for (int i = 0; i < 8; i++)
		CHECK(csrec_fence_destroy(dev, key[i]) == 0);
	CHECK(csrec_fence_signal(dev, key[3], 11) == -ENOENT);
	CHECK(said("FENCE_SIGNAL") && said("no fence of this context"));
	csrec_close(dev);
}

/*
 * P2P
 */
static int drive_fd(size_t bytes)
{
	char path[128];
	FILE *f;
	int fd;

	snprintf(path, sizeof(path), "%s/drive", root);
	f = fopen(path, "w+");
	for (size_t i = 0; f && i < bytes; i++)
		fputc(i * 2654435761u >> 11, f);
	if (!f || fflush(f))
		exit(1);
	fake.drive = true;
	fd = dup(fileno(f));
	fclose(f);
	return fd;
}

static void test_p2p(void)
{
	const uint32_t n = 2500;
	struct csrec_dev *dev = open_fake();
	struct csrec_p2p_seg *segs = calloc(n, sizeof(*segs));
	uint64_t p2p = 1, bounced = 1, len;
	int fd = drive_fd(1 << 20);
	unsigned char *mem, want[512];
	uint32_t key, fence;

	CHECK(csrec_mem_alloc(dev, CSREC_REGION_DRAM, n * 512, &key) == 0);
	CHECK(csrec_fence_create(dev, 0, &fence) == 0);
	for (uint32_t i = 0; i < n; i++)
		segs[i] = (struct csrec_p2p_seg) {
			.file_off = i * 7 % 2048 * 512, .len = 512, .dev_off = i * 512, .key = key,
		};
	/* more than one call's worth; only the last one carries the fence */
	CHECK(csrec_p2p_read(dev, fd, segs, n, 0, fence, 5, &p2p, &bounced) == 0);
	CHECK(fake.calls[0x0b] == 3 && fake.last_fence == fence);
	CHECK(p2p == n * 512 && bounced == 0);
	mem = fake_region(key, &len);
	for (uint32_t i = 0; i < n; i++) {
		CHECK(pread(fd, want, 512, segs[i].file_off) == 512);
		CHECK(!memcmp(mem + segs[i].dev_off, want, 512));
	}
	CHECK(csrec_p2p_read(dev, fd, segs, 1, CSREC_P2P_F_BOUNCE, 0, 0, NULL, &bounced) == 0);
	CHECK(bounced == 512);

	/* the second call fails: what the first one moved is told, and no fence is raised */
	fake.last_fence = 0;
	fake_fail_after(0x0b, 1, EIO, 1);
	CHECK(csrec_p2p_read(dev, fd, segs, n, 0, fence, 6, &p2p, &bounced) == -EIO);
	CHECK(p2p == 1024 * 512 && bounced == 0 && fake.last_fence == 0);
	CHECK(said("the drive reported an error"));

	fake.p2p = false;
	CHECK(csrec_p2p_read(dev, fd, segs, 1, CSREC_P2P_F_ONLY, 0, 0, &p2p, &bounced) == -EREMOTEIO);
	CHECK(said("no peer-to-peer path") && p2p == 0 && bounced == 0);
	CHECK(csrec_p2p_read(dev, fd, segs, 1, 0, 0, 0, &p2p, &bounced) == 0);
	CHECK(p2p == 0 && bounced == 512);
	fake.p2p = true;
	csrec_fence_destroy(dev, fence);
	csrec_mem_free(dev, key);
	csrec_close(dev);
	close(fd);
	free(segs);
}

static void test_p2p_messages(void)
{
	struct csrec_dev *dev = open_fake();
	struct csrec_p2p_seg good = { .len = 512 }, s[2];
	int fd = drive_fd(1 << 20);
	uint32_t key, chip;

	CHECK(csrec_mem_alloc(dev, CSREC_REGION_DRAM, 4096, &key) == 0);
	CHECK(csrec_mem_alloc(dev, CSREC_REGION_ONCHIP, 4096, &chip) == 0);
	good.key = key;
#define TRY(change, err, text) do {							\
	s[0] = s[1] = good;								\
	change;										\
	CHECK(csrec_p2p_read(dev, fd, s, 2, 0, 0, 0, NULL, NULL) == -(err));		\
	CHECK(said(text));								\
} while (0)
	TRY(s[1].len = 0, EINVAL, "segment 1 has length 0");
	TRY(s[1].len = 100, EINVAL, "segment 1, 100 bytes at 0, is not made of whole 512-byte");
	TRY(s[1].file_off = 1, EINVAL, "segment 1, 512 bytes at 1, is not made of whole 512-byte");
	TRY(s[1].file_off = 1 << 20, EINVAL, "ends past the drive's 1048576 bytes");
	TRY(s[1].dev_off = 100, EINVAL, "offset 100 in device memory is not aligned to 512");
	TRY(s[1].dev_off = 4096, ERANGE, "leaves its device memory region");
	TRY(s[1].key = 1, ENOENT, "not of this context");
	TRY(s[1].key = chip, EOPNOTSUPP, "not device DRAM");
	fake_fail(0x0b, ENOTBLK, 1);
	TRY(, ENOTBLK, "is not a block device");
	fake_fail(0x0b, EBADF, 1);
	TRY(, EBADF, "is not open for reading");
#undef TRY
	CHECK(csrec_p2p_read(dev, fd, s, 0, 0, 0, 0, NULL, NULL) == -EINVAL);
	CHECK(said("no segments"));
	fake_fail(0x0b, EINVAL, 1);
	CHECK(csrec_p2p_read(dev, fd, &good, 1, 3, 0, 0, NULL, NULL) == -EINVAL);
	CHECK(said("flags 0x3"));
	csrec_mem_free(dev, key);
	csrec_mem_free(dev, chip);
	csrec_close(dev);
	close(fd);
}

/*
 * Mapped queues. The device works only when it is told to, by fake_step() or in WAIT.
 */
static struct csrec_dev *open_mapped(void)
{
	fake.queue_map = true;
	return open_fake();
}

static uint32_t all_calls(void)
{
	uint32_t n = 0;

	for (int i = 0; i < 32; i++)
		n += fake.calls[i];
	return n;
}

static void test_queue_opts(void)
{
	struct csrec_queue_opts opts = { .size = sizeof(opts) };
	struct csrec_dev *dev = open_fake();
	struct csrec_queue *q = NULL;
	struct {
		struct csrec_queue_opts o;
		uint32_t later[2];
	} larger = { .o.size = sizeof(larger) };

	/* a driver of before 1.1 */
	CHECK(csrec_queue_create_ext(dev, NULL, &q) == 0);
	CHECK(csrec_queue_mode(q) == CSREC_QUEUE_IOCTL && csrec_queue_entries(q) == 64);
	csrec_queue_destroy(q);
	opts.mode = CSREC_QUEUE_MAPPED;
	CHECK(csrec_queue_create_ext(dev, &opts, &q) == -EOPNOTSUPP);
	CHECK(said("cannot map queues"));
	opts.mode = CSREC_QUEUE_IOCTL;
	opts.irq = CSREC_IRQ_OFF;
	CHECK(csrec_queue_create_ext(dev, &opts, &q) == -EOPNOTSUPP);
	opts.irq = CSREC_IRQ_ON;
	opts.irq_count = 2;
	opts.irq_cycles = 100;
	CHECK(csrec_queue_create_ext(dev, &opts, &q) == -EOPNOTSUPP);
	csrec_close(dev);

	dev = open_mapped();
	opts.entries = 32;
	opts.mode = CSREC_QUEUE_AUTO;
	opts.irq_count = 16;
	CHECK(csrec_queue_create_ext(dev, &opts, &q) == 0);
	CHECK(csrec_queue_mode(q) == CSREC_QUEUE_MAPPED && csrec_queue_entries(q) == 32);
	CHECK(fake.last_queue_flags == CSREC_QUEUE_F_MAP);
	CHECK(fake.last_irq_count == 16 && fake.last_irq_cycles == 100);
	csrec_queue_destroy(q);
	CHECK(csrec_queue_create(dev, 0, &q) == 0);
	CHECK(csrec_queue_mode(q) == CSREC_QUEUE_IOCTL && fake.last_queue_flags == 0);
	csrec_queue_destroy(q);
	opts = (struct csrec_queue_opts){ .size = sizeof(opts), .irq = CSREC_IRQ_OFF };
	CHECK(csrec_queue_create_ext(dev, &opts, &q) == 0);
	CHECK(fake.last_queue_flags == (CSREC_QUEUE_F_MAP | CSREC_QUEUE_F_NOIRQ));
	csrec_queue_destroy(q);
	CHECK(csrec_queue_create_ext(dev, &larger.o, &q) == 0);
	csrec_queue_destroy(q);

	q = NULL;
	larger.later[1] = 1 << 24;
	CHECK(csrec_queue_create_ext(dev, &larger.o, &q) == -E2BIG);
	CHECK(said("byte 39 is of a later version"));
	opts = (struct csrec_queue_opts){ .size = sizeof(opts) - 1 };
	CHECK(csrec_queue_create_ext(dev, &opts, &q) == -EINVAL);
	opts = (struct csrec_queue_opts){ .size = sizeof(opts), .mode = CSREC_QUEUE_MAPPED + 1 };
	CHECK(csrec_queue_create_ext(dev, &opts, &q) == -EINVAL && said("mode 3"));
	opts = (struct csrec_queue_opts){ .size = sizeof(opts), .irq = CSREC_IRQ_OFF + 1 };
	CHECK(csrec_queue_create_ext(dev, &opts, &q) == -EINVAL && said("irq 2"));
	opts = (struct csrec_queue_opts){ .size = sizeof(opts), .rsvd = 1 };
	CHECK(csrec_queue_create_ext(dev, &opts, &q) == -EINVAL && said("rsvd 1"));
	opts = (struct csrec_queue_opts){ .size = sizeof(opts), .irq = CSREC_IRQ_OFF, .irq_count = 1 };
	CHECK(csrec_queue_create_ext(dev, &opts, &q) == -EINVAL && said("without interrupts"));
	fake_fail(0x01, EDQUOT, 1);
	CHECK(csrec_queue_create_ext(dev, NULL, &q) == -EDQUOT && said("as many queues"));
	/* a layout that cannot be is not mapped, and leaves no queue */
	fake.ring_shift = 1 << 20;
	CHECK(csrec_queue_create_ext(dev, NULL, &q) == -EPROTO && said("impossible layout"));
	fake.ring_shift = 1;
	CHECK(csrec_queue_create_ext(dev, NULL, &q) == -EPROTO);
	fake.ring_shift = -4096;
	CHECK(csrec_queue_create_ext(dev, NULL, &q) == -EPROTO);
	fake.ring_shift = 0;
	CHECK(!q && fake.queues == 0);
	csrec_close(dev);
}

/* Batches of all sizes, around the ring very often: no call, right data, no bad doorbell. */
static void test_mapped_wrap(void)
{
	struct csrec_dev *dev = open_mapped();
	struct csrec_queue *q = queue(dev, 8);
	struct csrec_cqe cqes[8];
	uint32_t key, word, calls;
	uint64_t len;

	CHECK(csrec_mem_alloc(dev, CSREC_REGION_DRAM, 4096, &key) == 0);
	calls = all_calls();
	for (uint32_t round = 0, at = 0; round < 1000; round++) {
		uint32_t n = 1 + round % 8;
		struct csrec_cmd cmds[8];

		for (uint32_t i = 0; i < n; i++, at++) {
			cmds[i] = csrec_cmd_fill(key, 4 * (at % 1024), 4, at);
			cmds[i].cid = at;
		}
		CHECK(csrec_submit(q, cmds, n) == (int)n);
		CHECK(csrec_wait(q, cqes, 1, 8, 0) == -EAGAIN);
		fake_step(1, n);
		CHECK(csrec_wait(q, cqes, n, 8, 0) == (int)n);
		for (uint32_t i = 0; i < n; i++) {
			CHECK(cqes[i].cid == (uint16_t)(at - n + i) && cqes[i].detail == 4 &&
			      CSREC_CQE_STATUS(&cqes[i]) == CSREC_ST_OK);
			memcpy(&word, (char *)fake_region(key, &len) + 4 * ((at - n + i) % 1024), 4);
			CHECK(word == at - n + i);
		}
	}
	CHECK(all_calls() == calls && fake.bad_doorbells == 0);
	csrec_mem_free(dev, key);
	csrec_queue_destroy(q);
	csrec_close(dev);
}

static void test_mapped_full(void)
{
	struct csrec_dev *dev = open_mapped();
	struct csrec_queue *q = queue(dev, 4);
	struct csrec_cmd cmds[6];
	struct csrec_cqe cqes[6];

	for (int i = 0; i < 6; i++) {
		cmds[i] = csrec_cmd_nop();
		cmds[i].cid = i;
	}
	CHECK(csrec_submit(q, cmds, 6) == 4);
	CHECK(csrec_submit(q, cmds + 4, 2) == -EAGAIN && said("full with 4"));
	fake_step(1, 3);
	/* completed, but not taken: still no room */
	CHECK(csrec_submit(q, cmds + 4, 2) == -EAGAIN);
	CHECK(csrec_wait(q, cqes, 1, 1, 0) == 1 && cqes[0].cid == 0);
	CHECK(csrec_submit(q, cmds + 4, 2) == 1);
	fake_step(1, 8);
	CHECK(csrec_wait(q, cqes, 0, 6, 0) == 4);
	for (int i = 0; i < 4; i++)
		CHECK(cqes[i].cid == 1 + i);
	CHECK(fake.calls[0x09] == 0 && fake.calls[0x0a] == 0 && fake.bad_doorbells == 0);
	csrec_queue_destroy(q);
	csrec_close(dev);
}

static void test_mapped_sleeps(void)
{
	struct csrec_dev *dev = open_mapped();
	struct csrec_queue *q = queue(dev, 8);
	struct csrec_cmd nops[4];
	struct csrec_cqe cqes[8];

	for (int i = 0; i < 4; i++)
		nops[i] = csrec_cmd_nop();
	/* looking is in vain: one WAIT for what is missing, which a signal may interrupt */
	csrec_submit(q, nops, 4);
	fake_step(1, 1);
	fake.last_timeout = 0;
	CHECK(csrec_wait(q, cqes, 4, 8, -1) == 4);
	CHECK(fake.calls[0x0a] == 1 && fake.last_min == 3 && fake.last_max == 0);
	CHECK(fake.last_timeout == -1 && !fake.last_wait_flags);
	fake_fail(0x0a, EINTR, 3);
	csrec_submit(q, nops, 2);
	CHECK(csrec_wait(q, cqes, 2, 8, -1) == 2);
	CHECK(fake.calls[0x0a] == 5);

	/* deadlines */
	csrec_submit(q, nops, 2);
	fake_step(1, 1);
	fake_fail(0x0a, ETIMEDOUT, UINT32_MAX);
	CHECK(csrec_wait(q, cqes, 2, 8, 1000000) == 1);
	CHECK(csrec_wait(q, cqes, 1, 8, 1000000) == -ETIMEDOUT && said("none of 1"));
	CHECK(csrec_wait_until(q, cqes, 1, 8, 1) == -ETIMEDOUT);
	CHECK(csrec_wait_until(q, cqes, 1, 8, 0) == -ETIMEDOUT);
	fake_fail(0x0a, ETIMEDOUT, 0);
	CHECK(csrec_wait_until(q, cqes, 1, 8, INT64_MAX) == 1);
	CHECK(fake.last_wait_flags == CSREC_WAIT_F_DEADLINE && fake.last_timeout == INT64_MAX);
	csrec_submit(q, nops, 1);
	CHECK(csrec_wait_until(q, cqes, 1, 1, -1) == 1);
	CHECK(fake.last_timeout == -1 && !fake.last_wait_flags);

	CHECK(csrec_wait(q, cqes, 1, 1, -1) == -EINVAL);
	CHECK(csrec_wait(q, cqes, 0, 0, -1) == -EINVAL);
	CHECK(csrec_wait(q, cqes, 2, 1, -1) == -EINVAL);
	CHECK(csrec_wait(q, cqes, 0, CSREC_SUBMIT_MAX + 1, -1) == -EINVAL);
	csrec_queue_destroy(q);
	csrec_close(dev);
}

/* Without interrupts nobody sleeps in WAIT: it is asked how things are, and no more. */
static void test_no_interrupts(void)
{
	struct csrec_dev *dev = open_mapped();
	struct csrec_queue *q;
	struct csrec_cmd nop = csrec_cmd_nop();
	struct csrec_cqe cqe;

	irq = CSREC_IRQ_OFF;
	q = queue(dev, 8);
	fake.last_timeout = 7;
	csrec_submit(q, &nop, 1);
	CHECK(csrec_wait(q, &cqe, 1, 1, -1) == 1);
	CHECK(fake.calls[0x0a] == 1 && fake.last_timeout == 0);
	fake_fail(0x0a, EAGAIN, 3);
	csrec_submit(q, &nop, 1);
	if (mode == CSREC_QUEUE_MAPPED)
		fake_fail(0x0a, EINTR, 3);
	CHECK(csrec_wait(q, &cqe, 1, 1, 1000000000) == 1);
	CHECK(fake.calls[0x0a] == 5 && fake.last_timeout == 0);
	fake_fail(0x0a, EAGAIN, UINT32_MAX);
	csrec_submit(q, &nop, 1);
	CHECK(csrec_wait(q, &cqe, 1, 1, 1000) == -ETIMEDOUT);
	fake_fail(0x0a, EIO, 1);
	CHECK(csrec_wait(q, &cqe, 1, 1, -1) == -EIO);
	fake_fail(0x0a, 0, 0);
	irq = CSREC_IRQ_ON;
	csrec_queue_destroy(q);
	csrec_close(dev);
}

/* A device that dies is found out, whatever is called, and what it had done is not lost. */
static void test_mapped_dead(void)
{
	static const int errs[] = { ENODEV, EIO };

	for (int e = 0; e < 2; e++) {
		struct csrec_dev *dev = open_mapped();
		struct csrec_queue *q = queue(dev, 8);
		struct csrec_cmd nops[3] = { csrec_cmd_nop(), csrec_cmd_nop(), csrec_cmd_nop() };
		struct csrec_cqe cqes[8];
		int ret = -EAGAIN;

		csrec_submit(q, nops, 3);
		fake_step(1, 1);
		fake_fail(0x0a, errs[e], UINT32_MAX);
		CHECK(csrec_wait(q, cqes, 3, 8, -1) == 1);
		CHECK(csrec_wait(q, cqes, 2, 8, -1) == -errs[e]);
		CHECK(said(e ? "made no progress" : "gone or was reset"));
		CHECK(csrec_submit(q, nops, 1) == -errs[e]);
		CHECK(csrec_wait(q, cqes, 1, 8, -1) == -errs[e]);
		CHECK(csrec_wait(q, cqes, 0, 8, 0) == -errs[e]);
		CHECK(csrec_run(q, nops, 3, NULL) == -errs[e]);
		csrec_queue_destroy(q);

		/* who only polls finds out as well, without a call for each look */
		q = queue(dev, 8);
		csrec_submit(q, nops, 1);
		memset(fake.calls, 0, sizeof(fake.calls));
		for (int i = 0; ret == -EAGAIN && i < 1000000; i++)
			ret = csrec_wait(q, cqes, 1, 1, 0);
		CHECK(ret == -errs[e] && all_calls() == 1);
		csrec_queue_destroy(q);
		q = queue(dev, 8);
		for (int i = 0, n = 0; !n && i < 1000000; i++)
			ret = n = csrec_wait(q, cqes, 0, 1, 0);
		CHECK(ret == -errs[e]);
		csrec_queue_destroy(q);
		fake_fail(0x0a, 0, 0);
		csrec_close(dev);
	}
}

static void test_queue_reset(void)
{
	struct csrec_dev *dev = open_mapped();
	struct csrec_queue *q = queue(dev, 4);
	struct csrec_cmd nops[8];
	struct csrec_cqe cqes[8];

	for (int i = 0; i < 8; i++)
		nops[i] = csrec_cmd_nop();
	CHECK(csrec_run(q, nops, 7, NULL) == 0);
	csrec_submit(q, nops, 3);
	fake_fail(0x0a, EIO, 1);
	CHECK(csrec_wait(q, cqes, 3, 8, -1) == -EIO);
	CHECK(csrec_queue_reset(q) == 0);
	CHECK(csrec_run(q, nops, 7, NULL) == 0);
	csrec_submit(q, nops, 3);
	CHECK(csrec_queue_reset(q) == 0);
	CHECK(csrec_wait(q, cqes, 1, 1, 0) == -EINVAL);
	CHECK(csrec_run(q, nops, 8, NULL) == 0);
	CHECK(fake.bad_doorbells == 0);
	fake_fail(0x0d, ENODEV, 1);
	CHECK(csrec_queue_reset(q) == -ENODEV && said("QUEUE_RESET"));
	csrec_queue_destroy(q);
	csrec_close(dev);
}

static void test_eventfd(void)
{
	struct csrec_dev *dev = open_fake();
	struct csrec_queue *q = queue(dev, 4);

	CHECK(csrec_queue_eventfd(q, -1) == -ENOENT && said("no eventfd to take off"));
	CHECK(csrec_queue_eventfd(q, 5) == 0);
	CHECK(csrec_queue_eventfd(q, 6) == -EBUSY && said("has an eventfd"));
	CHECK(csrec_queue_eventfd(q, -1) == 0);
	fake_fail(0x0e, EINVAL, 1);
	CHECK(csrec_queue_eventfd(q, 0) == -EINVAL && said("descriptor 0 is no eventfd"));
	fake_fail(0x0e, EBADF, 1);
	CHECK(csrec_queue_eventfd(q, 99) == -EBADF);
	csrec_queue_destroy(q);
	csrec_close(dev);
}

static void test_mem_map(void)
{
	struct csrec_dev *dev = open_fake();
	uint32_t key, chip, other;
	unsigned char *mem;
	void *ptr, *second;
	uint64_t len = 0;
	int fd = -1;

	CHECK(csrec_mem_alloc(dev, CSREC_REGION_DRAM, 8192, &key) == 0);
	CHECK(csrec_mem_map(dev, key, &ptr, NULL) == -EOPNOTSUPP && said("cannot map"));
	csrec_mem_free(dev, key);
	fake.mem_map = true;
	CHECK(csrec_mem_alloc_aligned(dev, CSREC_REGION_DRAM, 5000, 1 << 21, &key) == 0);
	CHECK(fake.last_align == 1 << 21);
	CHECK(csrec_mem_alloc(dev, CSREC_REGION_ONCHIP, 64, &chip) == 0);
	CHECK(csrec_mem_map(dev, chip, &ptr, &len) == -ENOENT);
	CHECK(csrec_mem_map(dev, key, &ptr, &len) == 0 && len == 8192);
	CHECK(csrec_mem_map(dev, key, &second, NULL) == 0 && second != ptr);
	mem = fake_region(key, &len);
	memset(ptr, 0x5a, 8192);
	CHECK(mem[0] == 0x5a && mem[8191] == 0x5a && ((unsigned char *)second)[4096] == 0x5a);
	CHECK(csrec_mem_unmap(dev, (char *)ptr + 1) == -ENOENT && said("not from csrec_mem_map"));
	CHECK(csrec_mem_unmap(dev, ptr) == 0);
	CHECK(csrec_mem_unmap(dev, ptr) == -ENOENT);
	CHECK(csrec_mem_unmap(dev, NULL) == 0);

	CHECK(csrec_mem_export(dev, key, O_CLOEXEC, &fd) == 0);
	CHECK(csrec_mem_export(dev, key + 1, 0, &fd) == -ENOENT);
	CHECK(csrec_mem_export(dev, chip, 0, &fd) == -EOPNOTSUPP);
	CHECK(csrec_mem_import(dev, fd, CSREC_RIGHT_READ, &other, &len) == 0 && len == 8192);
	close(fd);
	CHECK(csrec_mem_import(dev, fd, CSREC_RIGHT_READ, &other, NULL) == -EBADF);
	fake_fail(0x11, EACCES, 1);
	CHECK(csrec_mem_import(dev, 0, CSREC_RIGHT_WRITE, &other, NULL) == -EACCES);
	csrec_mem_free(dev, other);

	fake_fail(0x04, EDQUOT, 1);
	CHECK(csrec_mem_alloc(dev, CSREC_REGION_DRAM, 4096, &other) == -EDQUOT);
	CHECK(said("more than this process may"));
	fake_fail(0x04, EINVAL, 1);
	CHECK(csrec_mem_alloc_aligned(dev, CSREC_REGION_DRAM, 4096, 3, &other) == -EINVAL);
	CHECK(said("alignment 3 is no power of two"));
	fake.mem_map = false;
	csrec_mem_free(dev, key);
	csrec_mem_free(dev, chip);
	csrec_close(dev);
	CHECK(mprotect(second, 4096, PROT_READ) < 0);	/* unmapped by close */
}

static void test_p2p_write(void)
{
	struct csrec_dev *dev = open_fake();
	struct csrec_p2p_seg seg = { .file_off = 1024, .len = 512, .dev_off = 512 };
	int fd = drive_fd(1 << 20);
	unsigned char back[512];
	uint64_t len, p2p = 7, bounced = 7;

	CHECK(csrec_mem_alloc(dev, CSREC_REGION_DRAM, 4096, &seg.key) == 0);
	memset(fake_region(seg.key, &len), 0x3c, 4096);
	CHECK(csrec_p2p_write(dev, fd, &seg, 1, 0, 0, 0, &p2p, &bounced) == 0);
	CHECK(p2p == 512 && bounced == 0 && fake.calls[0x0f] == 1 && fake.calls[0x0b] == 0);
	CHECK(pread(fd, back, 512, 1024) == 512 && back[0] == 0x3c && back[511] == 0x3c);
	fake_fail(0x0f, EBADF, 1);
	CHECK(csrec_p2p_write(dev, fd, &seg, 1, 0, 0, 0, NULL, NULL) == -EBADF);
	CHECK(said("P2P_WRITE") && said("not open for writing"));
	csrec_mem_free(dev, seg.key);
	csrec_close(dev);
	close(fd);
}

/* A file of all there is: written, hole, written without whole blocks, unwritten, odd end. */
static int file_of_parts(const char *dir, size_t size)
{
	char path[256];
	unsigned char *data = malloc(size);
	int fd;

	snprintf(path, sizeof(path), "%s/csrec-file.XXXXXX", dir);
	fd = mkstemp(path);
	CHECK(fd >= 0);
	unlink(path);
	for (size_t i = 0; i < size; i++)
		data[i] = (i * 2654435761u >> 11) | 1;
	CHECK(ftruncate(fd, size) == 0);
	CHECK(pwrite(fd, data, 100000, 0) == 100000);
	CHECK(pwrite(fd, data, 5000, 200001) == 5000);
	CHECK(fallocate(fd, 0, 300000, 60000) == 0 || errno == EOPNOTSUPP);
	CHECK(pwrite(fd, data, size - 400000, 400000) == (ssize_t)(size - 400000));
	CHECK(fsync(fd) == 0);
	free(data);
	return fd;
}

static void read_parts(struct csrec_queue *q, int fd, size_t size, uint32_t key, uint32_t flags)
{
	const uint64_t size64 = size;
	unsigned char *want = malloc(size), *mem;
	struct csrec_file_bytes sum = { 0 };
	unsigned int seed = 1;
	uint64_t len;

	CHECK(pread(fd, want, size, 0) == (ssize_t)size);
	mem = fake_region(key, &len);
	for (int i = 0; i < 60; i++) {
		/* offsets alike modulo 4096 half of the time, or there is nothing direct */
		uint64_t off = i ? rand_r(&seed) % (size64 + 1000) : 0;
		uint64_t n = i ? rand_r(&seed) % 300000u : size64 + 5;
		uint64_t to = i % 2 ? off % 4096 : rand_r(&seed) % 4096u;
		uint64_t expect = off >= size64 ? 0 : n < size64 - off ? n : size64 - off;
		struct csrec_file_bytes b;

		memset(mem, 0xee, len);
		CHECK(csrec_file_read(q, fd, off, n, key, to, flags, &b) == (int64_t)expect);
		CHECK(b.direct + b.bounced + b.zeros == expect);
		CHECK(!memcmp(mem + to, want + (expect ? off : 0), expect));
		CHECK((!to || mem[to - 1] == 0xee) && mem[to + expect] == 0xee);
		sum.direct += b.direct;
		sum.bounced += b.bounced;
		sum.zeros += b.zeros;
		if (flags & CSREC_P2P_F_BOUNCE)
			CHECK(!b.direct && !b.zeros);
	}
	printf("# %llu bytes direct, %llu bounced, %llu zeros\n", (unsigned long long)sum.direct,
	       (unsigned long long)sum.bounced, (unsigned long long)sum.zeros);
	free(want);
}

static void test_file_read(void)
{
	const char *dirs[] = { root, getenv("CSREC_TEST_DIR") };
	const size_t size = 500123;
	struct csrec_dev *dev;
	struct csrec_queue *q;
	struct csrec_file_bytes b;
	uint32_t key, chip;
	int fd, null;

	fake.mem_map = true;
	dev = open_mapped();
	q = queue(dev, 0);
	CHECK(csrec_mem_alloc(dev, CSREC_REGION_DRAM, 1 << 20, &key) == 0);
	CHECK(csrec_mem_alloc(dev, CSREC_REGION_ONCHIP, 4096, &chip) == 0);
	for (int i = 0; i < 2; i++) {
		if (!dirs[i])
			continue;
		fd = file_of_parts(dirs[i], size);
		read_parts(q, fd, size, key, 0);
		read_parts(q, fd, size, key, CSREC_P2P_F_BOUNCE);
		if (csrec_file_read(q, fd, 0, 8192, key, 0, CSREC_P2P_F_ONLY, &b) == 8192) {
			/* a file system that tells where what is: nothing else is needed here */
			CHECK(b.direct == 8192 && !b.bounced && !b.zeros);
			CHECK(csrec_file_read(q, fd, 98304, 8192, key, 0, CSREC_P2P_F_ONLY, &b) == 8192);
			CHECK(b.direct == 4096 && b.zeros == 4096);
			CHECK(csrec_file_read(q, fd, 0, 8191, key, 0, CSREC_P2P_F_ONLY, &b) ==
			      -EREMOTEIO);
			CHECK(said("of the file cannot come") && b.direct >= 4096 && !b.bounced);
		} else {
			CHECK(said("cannot come from the drive directly"));
		}
		close(fd);
	}

	fd = file_of_parts(root, size);
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	CHECK(csrec_file_read(q, null, 0, 1, key, 0, 0, NULL) == -EINVAL && said("not a regular file"));
	close(null);
	CHECK(csrec_file_read(q, null, 0, 1, key, 0, 0, NULL) == -EBADF);
	CHECK(csrec_file_read(q, fd, 0, 1, key, 0, 3, NULL) == -EINVAL && said("flags 0x3"));
	CHECK(csrec_file_read(q, fd, 0, 1, chip, 0, 0, NULL) == -ENOENT);
	CHECK(csrec_file_read(q, fd, 0, 2, key, (1 << 20) - 1, 0, NULL) == -ERANGE);
	CHECK(csrec_file_read(q, fd, 0, 1, key, UINT64_MAX, 0, NULL) == -ERANGE);
	CHECK(csrec_file_read(q, fd, UINT64_MAX, UINT64_MAX, key, 0, 0, NULL) == 0);
	close(fd);
	fd = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	CHECK(csrec_file_read(q, fd, 0, 1, key, 0, 0, NULL) == -EBADF);
	close(fd);
	fake.mem_map = false;
	csrec_mem_free(dev, key);
	csrec_mem_free(dev, chip);
	csrec_queue_destroy(q);
	csrec_close(dev);
}

/*
 * Words. Offsets are counted by hand from the layouts, not with offsetof().
 */
static void test_decode_fields(void)
{
	static const struct {
		uint8_t opcode;
		uint16_t field;
		const char *name;
	} cases[] = {
		{ 0x02, 0, "opcode" }, { 0x02, 1, "flags" }, { 0x02, 4, "rsvd4" },
		{ 0x02, 8, "src_key" }, { 0x02, 12, "dst_key" }, { 0x02, 16, "src_off" },
		{ 0x02, 24, "dst_off" }, { 0x02, 32, "len" }, { 0x03, 40, "pattern" },
		{ 0x02, 44, "rsvd44" }, { 0x02, 48, "rsvd48" }, { 0x01, 8, "body" },
		{ 0x05, 8, "fence_key" }, { 0x06, 12, "rsvd4" }, { 0x06, 16, "value" },
		{ 0x10, 8, "desc_key" }, { 0x11, 12, "desc_len" }, { 0x13, 16, "desc_off" },
		{ 0x10, 0x8000 + 4, "dim" }, { 0x10, 0x8000 + 36, "ids_key" },
		{ 0x10, 0x8000 + 88, "out_off" }, { 0x10, 0x8000 + 96, "rsvd96" },
		{ 0x11, 0x8000 + 16, "p[1]" }, { 0x11, 0x8000 + 28, "q[2]" },
		{ 0x11, 0x8000 + 32, "r[1]" }, { 0x11, 0x8000 + 56, "core_key[2]" },
		{ 0x11, 0x8000 + 96, "core_off[2]" }, { 0x11, 0x8000 + 136, "rsvd136" },
		{ 0x12, 0x8000 + 5, "rsvd5" }, { 0x12, 0x8000 + 48, "out_stride" },
		{ 0x12, 0x8000 + 56, "rsvd56" }, { 0x13, 0x8000 + 12, "act" },
		{ 0x13, 0x8000 + 28, "y_key" }, { 0x13, 0x8000 + 72, "y_stride" },
		{ 0x13, 0x8000 + 80, "rsvd80" },
		{ 0x02, 0x8000, "?" }, { 0x02, 9, "?" }, { 0xff, 8, "?" }, { 0xff, 0, "opcode" },
		{ 0x02, 0xffff, "none" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *got = csrec_field_name(cases[i].opcode, cases[i].field);

		if (strcmp(got, cases[i].name)) {
			printf("# opcode 0x%02x field 0x%x: %s, not %s\n", cases[i].opcode,
			       cases[i].field, got, cases[i].name);
			failed = true;
		}
	}
	for (int st = 0; st < CSREC_ST_COUNT; st++)
		CHECK(strcmp(csrec_status_name(st), "?"));
	CHECK(!strcmp(csrec_status_name(CSREC_ST_COUNT), "?"));
	CHECK(!strcmp(csrec_opcode_name(0x12), "INTERACT") && !strcmp(csrec_opcode_name(0), "?"));
}

static void decodes(uint8_t opcode, uint16_t status, uint16_t field, uint64_t detail,
		    const char *want)
{
	struct csrec_cmd cmd = csrec_cmd(opcode, NULL, 0);
	struct csrec_cqe cqe = { .status = status << 1 | 1, .field = field, .detail = detail };
	char text[200], tiny[8];
	int n = csrec_decode_cqe(&cqe, &cmd, text, sizeof(text));

	if (strcmp(text, want)) {
		printf("# \"%s\", not \"%s\"\n", text, want);
		failed = true;
	}
	CHECK(n == (int)strlen(want));
	CHECK(csrec_decode_cqe(&cqe, &cmd, tiny, sizeof(tiny)) == n && strlen(tiny) == 7);
}

static void test_decode_cqe(void)
{
	struct csrec_cqe cqe = { .cid = 9, .status = 15 << 1, .field = 0xffff };
	char text[64];

	decodes(0x02, 0, 0, 4096, "COPY: OK, detail 4096");
	decodes(0x02, 11, 24, 4096, "COPY: OUT_OF_BOUNDS, dst_off is 0x1000");
	decodes(0x02, 3, 48, 0, "COPY: RESERVED, rsvd48 is not zero");
	decodes(0x10, 12, 0x8000 + 72, 5, "EMB: BAD_OFFSETS, bag 5 starts or ends out of order");
	decodes(0x11, 13, 0x8000 + 104, 17, "TT: BAD_ID, ids[17] is not a row of the table");
	decodes(0x11, 6, 0x8000 + 24, 0,
		"TT: BAD_VALUE, q[0] is 0, or the product over that array is too large");
	decodes(0x11, 6, 0x8000 + 30, 0, "TT: BAD_VALUE, r[0] is 0x0");
	decodes(0x07, 1, 0, 7, "opcode 0x07: BAD_OPCODE, opcode is 0x7");
	decodes(0x02, 14, 0xffff, 3, "COPY: BUS_ERROR, detail 0x3");
	decodes(0x02, 6, 9, 1, "COPY: BAD_VALUE, command byte 9 is 0x1");
	decodes(0x02, 99, 8, 1, "COPY: status 99, src_key, detail 0x1");
	CHECK(csrec_decode_cqe(&cqe, NULL, text, sizeof(text)) > 0);
	CHECK(!strcmp(text, "cid 9: ABORTED, detail 0x0"));
}

static void test_builders(void)
{
	static const unsigned char copy[64] = {
		2, 0, 0, 0, 0, 0, 0, 0, 0x78, 0x56, 0x34, 0x12, 0x88, 0x66, 0x44, 0x22,
		0x01, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x10,
	};
	static const unsigned char fill[64] = {
		3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x88, 0x66, 0x44, 0x22,
		0, 0, 0, 0, 0, 0, 0, 0, 0x08, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0,
		0xef, 0xbe, 0xad, 0xde,
	};
	static const unsigned char wait[64] = {
		6, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80,
	};
	static const unsigned char desc[64] = {
		0x11, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 192, 0, 0, 0, 0, 1,
	};
	struct csrec_cmd c;

	CHECK(sizeof(c) == 64 && sizeof(struct csrec_cqe) == 16);
	c = csrec_cmd_copy(0x22446688, 2, 0x12345678, 1, 4096);
	CHECK(!memcmp(&c, copy, 64));
	c = csrec_cmd_fill(0x22446688, 8, 16, 0xdeadbeef);
	CHECK(!memcmp(&c, fill, 64));
	c = csrec_cmd_wait(0x20001, 1ull << 63);
	CHECK(!memcmp(&c, wait, 64));
	c = csrec_cmd_desc(CSREC_OP_TT, 0x20001, 256, sizeof(struct csrec_tt_desc));
	CHECK(!memcmp(&c, desc, 64));
	c = csrec_cmd_signal(1, 1);
	CHECK(c.opcode == 5);
	c = csrec_cmd_fence();
	CHECK(c.opcode == 4);
}

/*
 * Discovery
 */
static struct csrec_found *list_of(const char *name, bool bound, int acs, bool user)
{
	struct csrec_found *list = (void *)1;
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	CHECK(tree_lab(path, bound, acs, user) == 0);
	setenv("CSREC_SYSFS", path, 1);
	CHECK(csrec_list(&list) == 0);
	snprintf(path, sizeof(path), "%s/sys", root);
	setenv("CSREC_SYSFS", path, 1);
	if (list == (void *)1 || !list)
		exit(1);
	return list;
}

static void test_list(void)
{
	struct csrec_found *d = list_of("bound", true, 0, false);
	struct csrec_drive *a = d->drives, *b = a ? a->next : NULL;
	char node[128];

	CHECK(!d->next && a && b && !b->next);
	if (!b)
		return;
	CHECK(!strcmp(d->bdf, "0000:04:00.0") && d->vendor == 0x1234 && d->device == 0xc5ec);
	snprintf(node, sizeof(node), "%s/dev/csrec0", root);
	CHECK(!strcmp(d->node, node) && !strcmp(d->driver, "csrec"));
	CHECK(d->numa_node == 1 && d->revision == 1 && d->p2pmem);
	CHECK(d->link_mts == 8000 && d->link_width == 4);
	CHECK(d->link_max_mts == 16000 && d->link_max_width == 8);
	CHECK(!strcmp(d->path, "0000:00:02.0/0000:01:00.0/0000:02:01.0"));

	CHECK(!strcmp(a->bdf, "0000:03:00.0") && a->size == 1 << 20 && a->numa_node == 0);
	snprintf(node, sizeof(node), "%s/dev/nvme0n1", root);
	CHECK(!strcmp(a->node, node) && !strcmp(a->model, "Fake \"A\" drive"));
	CHECK(a->shares_switch && !strcmp(a->common, "0000:01:00.0"));
	CHECK(a->p2p == CSREC_P2P_LIKELY && strstr(a->p2p_why, "0000:01:00.0"));

	snprintf(node, sizeof(node), "%s/dev/nvme1n1", root);
	CHECK(!strcmp(b->bdf, "0000:05:00.0") && !strcmp(b->node, node) && b->size == 2 << 20);
	CHECK(!b->shares_switch && !b->common[0] && b->numa_node == -1);
	CHECK(b->p2p == CSREC_P2P_UNKNOWN && strstr(b->p2p_why, "different root ports"));
	csrec_list_free(d);
}

static void test_list_unbound(void)
{
	struct csrec_found *d = list_of("unbound", false, 0, false);
	struct csrec_dev *dev;
	char path[128];

	CHECK(!d->node[0] && !d->driver[0] && !d->p2pmem);
	CHECK(d->drives->shares_switch && d->drives->p2p == CSREC_P2P_UNKNOWN);
	CHECK(strstr(d->drives->p2p_why, "csrec.ko"));
	csrec_list_free(d);

	snprintf(path, sizeof(path), "%s/unbound", root);
	setenv("CSREC_SYSFS", path, 1);
	CHECK(csrec_open(&dev, NULL) == -ENODEV);
	CHECK(said("0000:04:00.0 has no driver"));
	snprintf(path, sizeof(path), "%s/sys", root);
	setenv("CSREC_SYSFS", path, 1);
}

static void test_list_no_p2pmem(void)
{
	struct csrec_found *d = list_of("no-p2pmem", true, 0, false);
	char path[256];

	csrec_list_free(d);
	snprintf(path, sizeof(path), "%s/no-p2pmem/bus/pci/devices/0000:04:00.0/p2pmem/size", root);
	CHECK(!unlink(path));
	*strstr(path, "/size") = 0;
	CHECK(!rmdir(path));
	*strstr(path, "/bus") = 0;
	setenv("CSREC_SYSFS", path, 1);
	d = NULL;
	CHECK(csrec_list(&d) == 0 && d);
	CHECK(d && !d->p2pmem && d->drives->p2p == CSREC_P2P_NO);
	CHECK(d && strstr(d->drives->p2p_why, "CONFIG_PCI_P2PDMA"));
	csrec_list_free(d);
	snprintf(path, sizeof(path), "%s/sys", root);
	setenv("CSREC_SYSFS", path, 1);
}

static void test_list_acs(void)
{
	struct csrec_found *d = list_of("acs", true, 0x1d, false);

	CHECK(d->drives->shares_switch && d->drives->p2p == CSREC_P2P_UNKNOWN);
	CHECK(strstr(d->drives->p2p_why, "ACS at 0000:02:0"));
	csrec_list_free(d);

	/* source validation and upstream forwarding alone redirect no requests */
	d = list_of("acs-sv", true, 0x11, false);
	CHECK(d->drives->p2p == CSREC_P2P_LIKELY);
	csrec_list_free(d);
}

static void test_list_unprivileged(void)
{
	struct csrec_found *d = list_of("user", true, 0, true);

	/* 64 bytes of configuration space: the link comes from sysfs, ACS is not known */
	CHECK(d->link_mts == 8000 && d->link_width == 4);
	CHECK(d->link_max_mts == 16000 && d->link_max_width == 8);
	CHECK(d->drives->shares_switch && d->drives->p2p == CSREC_P2P_UNKNOWN);
	CHECK(strstr(d->drives->p2p_why, "by root"));
	csrec_list_free(d);
}

static void test_list_others(void)
{
	const struct tree_dev devs[] = {
		{ "0000:00:09.0", 0x1234, 0xc5ec, 0x120000, TREE_ENDPOINT, TREE_NO_ACS, -1, 1, 1,
		  "vfio-pci", false },
		{ "0000:00:04.0", 0x1234, 0xc5ec, 0x120000, TREE_ENDPOINT, TREE_NO_ACS, -1, 1, 1,
		  NULL, false },
		{ "0000:00:05.0", 0x1234, 0x11e8, 0x00ff00, TREE_ENDPOINT, TREE_NO_ACS, -1, 1, 1,
		  NULL, false },
		{ "0000:00:0a.0", 0x1234, 0xc5ec, 0x120000, TREE_ENDPOINT, TREE_NO_ACS, -1, 1, 1,
		  NULL, false },
		/* an NVMe controller that nothing drives */
		{ "0000:00:06.0", 0x1b36, 0x0010, 0x010802, TREE_ENDPOINT, TREE_NO_ACS, -1, 1, 1,
		  NULL, false },
	};
	struct csrec_found *list = (void *)1;
	static char longer[10000];
	struct csrec_dev *dev;
	char path[128];

	snprintf(path, sizeof(path), "%s/none/bus/pci/devices", root);
	CHECK(tree_root_file(root, "none/bus/pci/devices", NULL) == 0);
	*strstr(path, "/bus") = 0;
	setenv("CSREC_SYSFS", path, 1);
	CHECK(csrec_list(&list) == 0 && !list);
	CHECK(csrec_open(&dev, NULL) == -ENODEV);
	CHECK(said("no csrec device (1234:c5ec)"));

	/* made in no order, so that address order is not by chance */
	for (int i = 0; i < 5; i++)
		CHECK(tree_add(path, &devs[i]) == 0);
	CHECK(csrec_list(&list) == 0);
	CHECK(list && !strcmp(list->bdf, "0000:00:04.0") && !list->path[0]);
	CHECK(list && list->next && !strcmp(list->next->bdf, "0000:00:09.0"));
	CHECK(list && list->next && list->next->next && !list->next->next->next);
	CHECK(list && list->drives && !list->drives->node[0] && list->drives->p2p == CSREC_P2P_NO);
	csrec_list_free(list);
	CHECK(csrec_open(&dev, "0000:00:09.0") == -ENODEV);
	CHECK(said("another driver, vfio-pci"));

	list = (void *)1;
	setenv("CSREC_SYSFS", "/nonexistent", 1);
	CHECK(csrec_list(&list) == -ENODEV);
	CHECK(said("/nonexistent/bus/pci") && list == (void *)1);
	memset(longer, 'x', sizeof(longer) - 1);
	setenv("CSREC_SYSFS", longer, 1);
	CHECK(csrec_list(&list) == -ENODEV);
	snprintf(path, sizeof(path), "%s/sys", root);
	setenv("CSREC_SYSFS", path, 1);
}

/*
 * Log
 */
static char logged[512];
static int log_count;

static void on_log(enum csrec_log_level level, const char *msg, void *priv)
{
	(void)level;
	snprintf(logged, sizeof(logged), "%s", msg);
	++*(int *)priv;
}

static void test_log(void)
{
	struct csrec_dev *dev;

	csrec_set_log(on_log, CSREC_LOG_INFO, &log_count);
	dev = open_fake();
	CHECK(log_count == 1 && strstr(logged, "opened ") && strstr(logged, "csrec0"));
	csrec_mem_free(dev, 1);
	CHECK(log_count == 1);			/* failures are debug messages */
	csrec_set_log(on_log, CSREC_LOG_DEBUG, &log_count);
	csrec_mem_free(dev, 1);
	CHECK(log_count == 2 && !strcmp(logged, csrec_error()));
	csrec_set_log(NULL, 0, NULL);
	csrec_mem_free(dev, 1);
	CHECK(log_count == 2);
	csrec_close(dev);
	CHECK(!strcmp(csrec_lib_version(), "1.1"));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

#define T(name) { #name, test_##name, CSREC_QUEUE_IOCTL }
#define MAPPED(name) { #name ", mapped", test_##name, CSREC_QUEUE_MAPPED }
#define BOTH(name) T(name), MAPPED(name)
static const struct {
	const char *name;
	void (*run)(void);
	enum csrec_queue_mode mode;
} tests[] = {
	T(open_names), T(open_refused), T(open_versions), T(no_permission), T(info_stats),
	T(register_errors), T(alloc_errors), T(host_alloc), T(numa), T(queue_create),
	BOTH(submit_wait), T(wait_interrupted), BOTH(run_many), BOTH(run_out_of_order),
	BOTH(run_partial_submit), BOTH(run_refused), T(run_driver_errors), BOTH(copy_bounce),
	BOTH(threads), T(queue_opts), MAPPED(mapped_wrap), MAPPED(mapped_full),
	MAPPED(mapped_sleeps), BOTH(no_interrupts), MAPPED(mapped_dead), BOTH(queue_reset),
	BOTH(eventfd), T(mem_map), T(p2p_write), BOTH(file_read), T(fences), T(p2p),
	T(p2p_messages), T(decode_fields), T(decode_cqe), T(builders), T(list), T(list_unbound),
	T(list_no_p2pmem), T(list_acs), T(list_unprivileged), T(list_others), T(log),
};

int main(void)
{
	const size_t n = sizeof(tests) / sizeof(tests[0]);
	char path[128];
	int bad = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("1..%zu\n", n);
	if (!mkdtemp(root) || chmod(root, 0755))
		return 1;
	snprintf(path, sizeof(path), "%s/sys", root);
	if (tree_root_file(root, "dev/csrec0", "") || tree_lab(path, true, 0, false))
		return 1;
	setenv("CSREC_SYSFS", path, 1);
	snprintf(path, sizeof(path), "%s/dev", root);
	setenv("CSREC_DEV", path, 1);
	unsetenv("CSREC_DEVICE");
	unsetenv("CSREC_LOG");

	for (size_t i = 0; i < n; i++) {
		failed = false;
		mode = tests[i].mode;
		fake.queue_map = mode == CSREC_QUEUE_MAPPED;
		tests[i].run();
		printf("%s %zu - lib: %s\n", failed ? "not ok" : "ok", i + 1, tests[i].name);
		bad += failed;
	}
	nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return bad != 0;
}
