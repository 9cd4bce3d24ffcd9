/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the driver tests share: the ioctls as functions that return 0 or -errno, commands,
 * and a fixture's worth of common state. Nothing here comes from libcsrec, so that the
 * driver is tested alone.
 */
#ifndef CSREC_TEST_H
#define CSREC_TEST_H

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/csrec.h>
#include <linux/pci_regs.h>

#include "kselftest_harness.h"

/* The device may be a simulated one: the limit is for what hangs, not for what is slow. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 600

#define DEV	"/dev/csrec0"
#define DRIVE	"/dev/nvme0n1"
#define DEVICE	"/sys/class/csrec/csrec0/device"	/* the PCI device's directory */
#define MS	1000000LL
#define KIB	1024UL
#define MIB	(1024UL * 1024UL)

static inline int xioctl(int fd, unsigned long nr, void *arg)
{
	return ioctl(fd, nr, arg) ? -errno : 0;
}

static inline int dev_open(void)
{
	int fd = open(DEV, O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static inline int get_info(int fd, struct csrec_info *info)
{
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	return xioctl(fd, CSREC_IOC_GET_INFO, info);
}

static inline int get_stats(int fd, struct csrec_stats *st)
{
	memset(st, 0, sizeof(*st));
	st->size = sizeof(*st);
	return xioctl(fd, CSREC_IOC_GET_STATS, st);
}

static inline uint64_t counter(const struct csrec_stats *st, unsigned int reg)
{
	return reg == CSREC_REG_CNT_TT_SAVED ? st->tt_saved :
	       st->counters[(reg - CSREC_REG_CNT_CYCLES) / 8];
}

static inline uint64_t dram_free(int fd)
{
	struct csrec_info info;

	return get_info(fd, &info) ? 0 : info.dram_free;
}

/* The handle, or -errno. */
static inline int q_create(int fd, uint32_t entries)
{
	struct csrec_queue_create arg = { .size = sizeof(arg), .entries = entries };
	int ret = xioctl(fd, CSREC_IOC_QUEUE_CREATE, &arg);

	return ret ? ret : (int)arg.queue_id;
}

static inline int q_destroy(int fd, uint32_t q)
{
	struct csrec_queue_destroy arg = { .size = sizeof(arg), .queue_id = q };

	return xioctl(fd, CSREC_IOC_QUEUE_DESTROY, &arg);
}

/* Aborts what is on a queue, which stays. */
static inline int q_reset(int fd, uint32_t q)
{
	struct csrec_queue_reset arg = { .size = sizeof(arg), .queue_id = q };

	return xioctl(fd, CSREC_IOC_QUEUE_RESET, &arg);
}

static inline int q_eventfd(int fd, uint32_t q, int evt)
{
	struct csrec_queue_eventfd arg = { .size = sizeof(arg), .queue_id = q, .fd = evt };

	return xioctl(fd, CSREC_IOC_QUEUE_EVENTFD, &arg);
}

static inline int mem_register(int fd, void *addr, uint64_t len, uint32_t rights, uint32_t *key)
{
	struct csrec_mem_register arg = { .size = sizeof(arg), .addr = (uintptr_t)addr,
					  .len = len, .rights = rights };
	int ret = xioctl(fd, CSREC_IOC_MEM_REGISTER, &arg);

	*key = arg.key;
	return ret;
}

static inline int mem_alloc(int fd, uint32_t kind, uint64_t len, uint32_t *key)
{
	struct csrec_mem_alloc arg = { .size = sizeof(arg), .len = len, .kind = kind };
	int ret = xioctl(fd, CSREC_IOC_MEM_ALLOC, &arg);

	*key = arg.key;
	return ret;
}

static inline int mem_free(int fd, uint32_t key)
{
	struct csrec_mem_free arg = { .size = sizeof(arg), .key = key };

	return xioctl(fd, CSREC_IOC_MEM_FREE, &arg);
}

/* Device memory, and where it can be mapped (0: it cannot). */
static inline int mem_alloc_map(int fd, uint64_t len, uint64_t align, uint32_t *key,
				uint64_t *offset)
{
	struct csrec_mem_alloc arg = { .size = sizeof(arg), .len = len, .align = align,
				       .kind = CSREC_REGION_DRAM };
	int ret = xioctl(fd, CSREC_IOC_MEM_ALLOC, &arg);

	*key = arg.key;
	*offset = arg.mmap_offset;
	return ret;
}

/* The dma-buf, or -errno. */
static inline int mem_export(int fd, uint32_t key, uint32_t flags)
{
	struct csrec_mem_export arg = { .size = sizeof(arg), .key = key, .open_flags = flags };
	int ret = xioctl(fd, CSREC_IOC_MEM_EXPORT, &arg);

	return ret ? ret : arg.fd;
}

static inline int mem_import(int fd, int buf, uint32_t rights, uint32_t *key, uint64_t *len)
{
	struct csrec_mem_import arg = { .size = sizeof(arg), .fd = buf, .rights = rights };
	int ret = xioctl(fd, CSREC_IOC_MEM_IMPORT, &arg);

	*key = arg.key;
	*len = arg.len;
	return ret;
}

static inline int fence_create(int fd, uint64_t value, uint32_t *key)
{
	struct csrec_fence_create arg = { .size = sizeof(arg), .value = value };
	int ret = xioctl(fd, CSREC_IOC_FENCE_CREATE, &arg);

	*key = arg.key;
	return ret;
}

static inline int fence_destroy(int fd, uint32_t key)
{
	struct csrec_fence_op arg = { .size = sizeof(arg), .key = key };

	return xioctl(fd, CSREC_IOC_FENCE_DESTROY, &arg);
}

static inline int fence_signal(int fd, uint32_t key, uint64_t value)
{
	struct csrec_fence_op arg = { .size = sizeof(arg), .key = key, .value = value };

	return xioctl(fd, CSREC_IOC_FENCE_SIGNAL, &arg);
}

/* How many were taken, or -errno. */
static inline int q_submit(int fd, uint32_t q, const struct csrec_cmd *cmds, uint32_t n)
{
	struct csrec_submit arg = { .size = sizeof(arg), .queue_id = q, .count = n,
				    .cmds = (uintptr_t)cmds };
	int ret = xioctl(fd, CSREC_IOC_SUBMIT, &arg);

	return ret ? ret : (int)arg.submitted;
}

/* How many were taken, or -errno. */
static inline int q_wait(int fd, uint32_t q, struct csrec_cqe *cqes, uint32_t min, uint32_t max,
			 int64_t timeout_ns)
{
	struct csrec_wait arg = { .size = sizeof(arg), .queue_id = q, .min = min, .max = max,
				  .timeout_ns = timeout_ns, .cqes = (uintptr_t)cqes };
	int ret = xioctl(fd, CSREC_IOC_WAIT, &arg);

	return ret ? ret : (int)arg.count;
}

static inline unsigned int cqe_status(const struct csrec_cqe *cqe)
{
	return le16toh(cqe->status) >> CSREC_CQE_STATUS_SHIFT;
}

/* Runs one command alone: its status, or -errno. */
static inline int run_cmd(int fd, uint32_t q, const struct csrec_cmd *cmd, struct csrec_cqe *cqe)
{
	int ret = q_submit(fd, q, cmd, 1);

	if (ret < 0)
		return ret;
	ret = q_wait(fd, q, cqe, 1, 1, -1);
	return ret < 0 ? ret : (int)cqe_status(cqe);
}

static inline struct csrec_cmd cmd_make(uint8_t opcode, uint16_t cid)
{
	struct csrec_cmd cmd;

	memset(&cmd, 0, sizeof(cmd));
	cmd.opcode = opcode;
	cmd.cid = htole16(cid);
	return cmd;
}

static inline struct csrec_cmd cmd_copy(uint32_t src, uint64_t src_off, uint32_t dst,
					uint64_t dst_off, uint64_t len)
{
	struct csrec_cmd cmd = cmd_make(CSREC_OP_COPY, 0);
	struct csrec_body_copy body = {
		.src_key = htole32(src), .src_off = htole64(src_off),
		.dst_key = htole32(dst), .dst_off = htole64(dst_off), .len = htole64(len),
	};

	memcpy(cmd.body, &body, sizeof(body));
	return cmd;
}

static inline struct csrec_cmd cmd_fill(uint32_t dst, uint64_t dst_off, uint64_t len,
					uint32_t pattern)
{
	struct csrec_cmd cmd = cmd_make(CSREC_OP_FILL, 0);
	struct csrec_body_copy body = {
		.dst_key = htole32(dst), .dst_off = htole64(dst_off), .len = htole64(len),
		.pattern = htole32(pattern),
	};

	memcpy(cmd.body, &body, sizeof(body));
	return cmd;
}

/* SIGNAL or WAIT */
static inline struct csrec_cmd cmd_fence(uint8_t opcode, uint32_t key, uint64_t value)
{
	struct csrec_cmd cmd = cmd_make(opcode, 0);
	struct csrec_body_fence body = { .fence_key = htole32(key), .value = htole64(value) };

	memcpy(cmd.body, &body, sizeof(body));
	return cmd;
}

/* EMB, TT, INTERACT, MLP */
static inline struct csrec_cmd cmd_desc(uint8_t opcode, uint32_t key, uint64_t off, uint32_t len)
{
	struct csrec_cmd cmd = cmd_make(opcode, 0);
	struct csrec_body_desc body = { .desc_key = htole32(key), .desc_off = htole64(off),
					.desc_len = htole32(len) };

	memcpy(cmd.body, &body, sizeof(body));
	return cmd;
}

/* Bytes that repeat nowhere nearby, different for each seed. */
static inline void pattern_fill(void *buf, size_t len, uint32_t seed)
{
	uint32_t x = seed * 2654435761u + 1;
	uint8_t *p = buf;

	for (size_t i = 0; i < len; i++) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		p[i] = x;
	}
}

static inline void *pages(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* A page before one that cannot be touched. */
static inline void *guarded_page(void)
{
	long size = sysconf(_SC_PAGESIZE);
	char *p = pages(2 * size);

	if (p && mprotect(p + size, size, PROT_NONE))
		return NULL;
	return p;
}

static inline int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static inline int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	int ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

/* Once the node is there: a new context; or -errno. */
static inline int wait_for_node(void)
{
	for (int i = 0; i < 3000; i++) {
		int fd = dev_open();

		if (fd >= 0 || fd != -ENOENT)
			return fd;
		usleep(10000);
	}
	return -ENOENT;
}

/* The directory of the device's PCI device, and its name. */
static inline int find_device(char *sysfs, size_t len, char *bdf, size_t bdf_len)
{
	char link[256] = {};

	if (readlink(DEVICE, link, sizeof(link) - 1) <= 0)
		return -errno;
	snprintf(bdf, bdf_len, "%s", strrchr(link, '/') + 1);
	snprintf(sysfs, len, "/sys/bus/pci/devices/%s", bdf);
	return 0;
}

static inline int reset(const char *sysfs)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/reset", sysfs);
	return write_file(path, "1");
}

/* Sets or clears bits of the PCI command register, behind the driver's back. */
static inline int pci_command(const char *sysfs, uint16_t clear, uint16_t set)
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

static sigjmp_buf sigbus_env;

static void on_sigbus(int sig)
{
	siglongjmp(sigbus_env, 1);
}

/* Does an access give SIGBUS? */
static inline bool is_bus_error(volatile uint8_t *p)
{
	struct sigaction sa = { .sa_handler = on_sigbus }, old;
	volatile bool hit = false;

	sigaction(SIGBUS, &sa, &old);
	if (sigsetjmp(sigbus_env, 1))
		hit = true;
	else
		(void)*p;
	sigaction(SIGBUS, &old, NULL);
	return hit;
}

/* Does an attribute in sysfs read like this? */
static inline bool attr_is(const char *name, const char *want)
{
	char path[128], buf[128] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/csrec/csrec0/%s", name);
	f = fopen(path, "r");
	if (!f)
		return false;
	if (!fgets(buf, sizeof(buf), f))
		buf[0] = 0;
	fclose(f);
	buf[strcspn(buf, "\n")] = 0;
	return !strcmp(buf, want);
}

#endif /* CSREC_TEST_H */
