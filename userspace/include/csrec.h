/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libcsrec: the userspace side of /dev/csrecN.
 *
 * Conventions
 * - Functions that can fail return 0 (or a count) or a negative errno, and then
 *   csrec_error() says in words what and why. Output arguments are written on
 *   success only, unless said otherwise.
 * - EINTR is never returned: interrupted calls are resumed with the time left.
 * - The library prints nothing and never exits. See csrec_set_log().
 *
 * Threads
 * - A device handle may be used by several threads at once; a queue handle by one
 *   at a time. Different queues of one device are independent.
 * - csrec_close() and csrec_queue_destroy() need the last use of the handle to be
 *   over. Everything not listed here is safe in any thread at any time.
 *
 * Processes
 * - The descriptor is close-on-exec. Over fork() the child gets the same context,
 *   but not the memory of csrec_host_alloc() nor the rings of mapped queues: only the
 *   parent may go on using the handle. Open again in the child.
 *
 * Environment
 *   CSREC_DEVICE  what csrec_open(&dev, NULL) opens
 *   CSREC_LOG     error, warn, info or debug: log to standard error
 *   CSREC_SYSFS   instead of /sys (tests)
 *   CSREC_DEV     instead of /dev (tests)
 */
#ifndef CSREC_H
#define CSREC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <linux/csrec.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "commands and completions are little-endian and not swapped here"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define CSREC_LIB_MAJOR		1	/* the soname */
#define CSREC_LIB_MINOR		1

struct csrec_dev;
struct csrec_queue;

/* "1.1": of the library in use, which may be newer than this header. */
const char *csrec_lib_version(void);

/* What the last failed call in this thread failed on. Valid until the next one. */
const char *csrec_error(void);

enum csrec_log_level {
	CSREC_LOG_ERROR,
	CSREC_LOG_WARN,
	CSREC_LOG_INFO,
	CSREC_LOG_DEBUG,
};

/*
 * Sends messages up to level to fn instead of where CSREC_LOG says; NULL goes back to
 * that. fn may be called from any thread that uses the library.
 */
typedef void csrec_log_fn(enum csrec_log_level level, const char *msg, void *priv);
void csrec_set_log(csrec_log_fn *fn, enum csrec_log_level level, void *priv);

/*
 * Discovery. Needs no driver and no privilege, but what is read from PCI
 * configuration space beyond its first 64 bytes (ACS) needs root.
 */
enum csrec_p2p_hint {
	CSREC_P2P_NO,
	CSREC_P2P_LIKELY,
	CSREC_P2P_UNKNOWN,
};

/* An NVMe namespace as seen from one device. */
struct csrec_drive {
	struct csrec_drive *next;
	char bdf[16];
	char node[128];			/* "/dev/nvme0n1"; "" if it has no block device */
	char model[48];			/* "" if unknown */
	uint64_t size;			/* bytes, 0 if unknown */
	int numa_node;			/* -1 if unknown */
	bool shares_switch;		/* nearest common ancestor is a switch */
	char common[16];		/* that ancestor's address, "" if none */
	enum csrec_p2p_hint p2p;
	char p2p_why[96];		/* reason for p2p, one phrase */
};

struct csrec_found {
	struct csrec_found *next;
	char bdf[16];			/* "0000:03:00.0" */
	char node[128];			/* "/dev/csrec0"; "" without driver */
	char driver[32];		/* bound kernel driver, "" if none */
	uint16_t vendor;
	uint16_t device;
	uint8_t revision;
	int numa_node;			/* -1 if unknown */
	uint32_t link_mts;		/* MT/s per lane, 0 if unknown: 8000 is Gen3 */
	uint32_t link_width;		/* lanes, 0 if unknown */
	uint32_t link_max_mts;
	uint32_t link_max_width;
	bool p2pmem;			/* the kernel offers its memory for P2P */
	char path[256];			/* bridges from the root: "0000:00:02.0/0000:01:00.0" */
	struct csrec_drive *drives;	/* every NVMe namespace of the machine */
};

/* Finds all devices, lowest address first; *list NULL if there are none. */
int csrec_list(struct csrec_found **list);
void csrec_list_free(struct csrec_found *list);

/*
 * Opens a context on a device. name: "csrec0", "0", "0000:03:00.0", "03:00.0", a path
 * with a slash, or NULL for $CSREC_DEVICE or else the first one with a driver.
 * -ENODEV no such device, or it has no driver; -EACCES may not open it; -ENOTTY not a
 * csrec device; -EPROTONOSUPPORT driver or device has another major version than this
 * library.
 */
int csrec_open(struct csrec_dev **dev, const char *name);

/* Ends the context: queues, regions, fences and csrec_host_alloc() memory go too. */
void csrec_close(struct csrec_dev *dev);

const char *csrec_name(const struct csrec_dev *dev);	/* "/dev/csrec0" */

/* For poll(): POLLIN while a queue has completions, POLLHUP when the device is gone. */
int csrec_fd(const struct csrec_dev *dev);

/*
 * size is sizeof(*info) and sizeof(*stats) as the caller was compiled; members that the
 * driver does not know are zero.
 */
int csrec_get_info(struct csrec_dev *dev, struct csrec_info *info, size_t size);
int csrec_get_stats(struct csrec_dev *dev, struct csrec_stats *stats, size_t size);

/* Counter CSREC_REG_CNT_reg of struct csrec_stats, up to TT_ROWS; later ones have members. */
#define CSREC_COUNTER(stats, reg) \
	((stats)->counters[(CSREC_REG_CNT_##reg - CSREC_REG_CNT_CYCLES) / 8])

/* A field of a capability register: CSREC_CAP(info.cap_limit, CSREC_CAPL_DIM, 16). */
#define CSREC_CAP(reg, field, bits) \
	((uint32_t)(((reg) >> field##_SHIFT) & ((1ULL << (bits)) - 1)))

/*
 * Queues. entries is a power of two, 0 for 64 or the device's maximum if that is less.
 * -ENOSPC the device has no queue left; -EDQUOT this process has as many as it may.
 * csrec_queue_create() makes a queue on which each call below is a system call.
 */
int csrec_queue_create(struct csrec_dev *dev, uint32_t entries, struct csrec_queue **queue);
int csrec_queue_destroy(struct csrec_queue *queue);
uint32_t csrec_queue_entries(const struct csrec_queue *queue);

/* Since 1.1. How csrec_submit() and csrec_wait() reach the device: */
enum csrec_queue_mode {
	CSREC_QUEUE_AUTO,		/* mapped if driver and device can, else by system calls */
	CSREC_QUEUE_IOCTL,		/* by system calls */
	CSREC_QUEUE_MAPPED,		/* rings and doorbell are mapped: no system calls */
};

enum csrec_queue_irq {
	CSREC_IRQ_ON,			/* csrec_wait() sleeps when looking has been in vain */
	CSREC_IRQ_OFF,			/* no interrupts: csrec_wait() looks, and naps in between */
};

/* All zero but size is AUTO with defaults. What is larger than the library knows is zero. */
struct csrec_queue_opts {
	uint32_t size;			/* sizeof(struct csrec_queue_opts) */
	uint32_t entries;		/* as for csrec_queue_create() */
	uint32_t mode;			/* enum csrec_queue_mode */
	uint32_t irq;			/* enum csrec_queue_irq */
	/* One interrupt for irq_count completions, or irq_cycles after the first of fewer. */
	uint32_t irq_count;		/* 0: 1 */
	uint32_t irq_cycles;		/* device clock cycles, not 0 if irq_count is above 1 */
	/*
	 * Mapped: how often csrec_wait() looks at the ring before it makes a system call.
	 * 0: the library finds out, between 64 and 16,384.
	 */
	uint32_t spin;
	uint32_t rsvd;
};

/*
 * opts NULL: defaults. -EOPNOTSUPP driver or device cannot do what opts ask for; -EINVAL,
 * -E2BIG bad opts.
 *
 * A mapped queue is used like any other, with these differences. Pointers that are not the
 * caller's memory crash instead of -EFAULT. Nobody tells csrec_submit() that the device is
 * gone or was reset: csrec_wait() finds out, at the latest by the system call that it makes
 * now and then when nothing comes, and from then on csrec_submit() fails as well. csrec_stats
 * counts neither commands nor doorbells; the device's own counters do.
 */
int csrec_queue_create_ext(struct csrec_dev *dev, const struct csrec_queue_opts *opts,
			   struct csrec_queue **queue);

/* CSREC_QUEUE_IOCTL or CSREC_QUEUE_MAPPED: what AUTO became. */
enum csrec_queue_mode csrec_queue_mode(const struct csrec_queue *queue);

/*
 * Aborts what is in flight and starts the queue anew, empty; also after -EIO of
 * csrec_wait(). Completions not taken are lost, other queues go on.
 */
int csrec_queue_reset(struct csrec_queue *queue);

/*
 * Has the eventfd fd signalled when there begin to be completions to take, and when the
 * queue or its device fails. Take all there are before sleeping on it. fd -1 takes it off.
 * -EBUSY the queue has one; -EBADF, -EINVAL fd is none; -ENOENT none to take off.
 */
int csrec_queue_eventfd(struct csrec_queue *queue, int fd);

/*
 * Submits the first commands of cmds, as many as fit and at most CSREC_SUBMIT_MAX, with
 * one doorbell. Returns how many; -EAGAIN if none fit before more completions are taken
 * by csrec_wait().
 */
int csrec_submit(struct csrec_queue *queue, const struct csrec_cmd *cmds, uint32_t n);

/*
 * Takes completions until min are there, then without waiting up to max; returns how
 * many. timeout_ns -1: no limit, 0: poll. -EAGAIN none (timeout 0); -ETIMEDOUT none in
 * time; fewer than min if the time was over with some. -EIO: the device hung and the
 * driver reset the queue, which can only be reset or destroyed now. The status is in the
 * completions: CSREC_CQE_STATUS().
 */
int csrec_wait(struct csrec_queue *queue, struct csrec_cqe *cqes, uint32_t min, uint32_t max,
	       int64_t timeout_ns);

/* Since 1.1. The same until a time of CLOCK_MONOTONIC, in nanoseconds; -1: no limit. */
int csrec_wait_until(struct csrec_queue *queue, struct csrec_cqe *cqes, uint32_t min,
		     uint32_t max, int64_t deadline_ns);

#define CSREC_CQE_STATUS(cqe)	((uint16_t)((cqe)->status >> CSREC_CQE_STATUS_SHIFT))

/*
 * Runs n commands, as many at a time as the queue holds, and returns when all have
 * completed. The queue must be idle (-EBUSY). cids are the library's: the caller's are
 * ignored, and completion i is written to cqes[i] with the caller's cid, in the order of
 * the commands, if cqes is not NULL.
 *
 * -EPROTO: the device refused a command. csrec_error() tells which, what and why; the
 * first such in command order counts. Later commands that were not started are not
 * submitted; their completion reads CSREC_ST_ABORTED.
 */
int csrec_run(struct csrec_queue *queue, const struct csrec_cmd *cmds, uint32_t n,
	      struct csrec_cqe *cqes);

/*
 * Memory. A key names it in commands of this context only.
 *
 * csrec_mem_register() pins caller memory, which must stay mapped until
 * csrec_mem_free(). csrec_host_alloc() gives page-aligned zeroed memory, on the
 * device's NUMA node where that is known, absent in forked children, pinned and
 * registered. rights: CSREC_RIGHT_*. -ENOMEM: out of memory or over RLIMIT_MEMLOCK.
 */
int csrec_mem_register(struct csrec_dev *dev, void *ptr, size_t len, uint32_t rights,
		       uint32_t *key);
int csrec_host_alloc(struct csrec_dev *dev, size_t len, uint32_t rights, void **ptr,
		     uint32_t *key);
int csrec_host_free(struct csrec_dev *dev, void *ptr);

/* Device memory, zeroed. kind: CSREC_REGION_DRAM or CSREC_REGION_ONCHIP. */
int csrec_mem_alloc(struct csrec_dev *dev, uint32_t kind, uint64_t len, uint32_t *key);

/*
 * Since 1.1: at an address in device memory that is a multiple of align, a power of two up to
 * CSREC_MEM_MAX_ALIGN, or 0. -EDQUOT more than this process may allocate.
 */
int csrec_mem_alloc_aligned(struct csrec_dev *dev, uint32_t kind, uint64_t len, uint64_t align,
			    uint32_t *key);

/* For keys of csrec_mem_register(), csrec_mem_alloc() and csrec_mem_import(). */
int csrec_mem_free(struct csrec_dev *dev, uint32_t key);

/*
 * Since 1.1. Maps all of a DRAM region of csrec_mem_alloc(). Reads and writes of files opened
 * with O_DIRECT then move data between drive and device themselves, where the drive can
 * (else -EREMOTEIO). The CPU may load and store, slowly. Once the device is reset or gone an
 * access is a SIGBUS. The memory is free again when the key is freed and all is unmapped.
 * -ENOENT no such key; -EOPNOTSUPP not DRAM, or the driver cannot.
 */
int csrec_mem_map(struct csrec_dev *dev, uint32_t key, void **ptr, uint64_t *len);
int csrec_mem_unmap(struct csrec_dev *dev, void *ptr);

/*
 * Since 1.1. A dma-buf of a DRAM region, and a region of a dma-buf. flags: O_CLOEXEC, O_RDWR.
 * *len (may be NULL) gets the length of what was imported. Rules: MEM_EXPORT and MEM_IMPORT in
 * linux/csrec.h.
 */
int csrec_mem_export(struct csrec_dev *dev, uint32_t key, uint32_t flags, int *fd);
int csrec_mem_import(struct csrec_dev *dev, int fd, uint32_t rights, uint32_t *key,
		     uint64_t *len);

/*
 * Moves bytes between caller memory and a region, through a registered buffer that the
 * queue keeps. The queue must be idle. Errors as csrec_run().
 */
int csrec_copy_to_device(struct csrec_queue *queue, uint32_t key, uint64_t off,
			 const void *buf, size_t len);
int csrec_copy_from_device(struct csrec_queue *queue, uint32_t key, uint64_t off,
			   void *buf, size_t len);

/* 64-bit fences that only grow. */
int csrec_fence_create(struct csrec_dev *dev, uint64_t value, uint32_t *key);
int csrec_fence_signal(struct csrec_dev *dev, uint32_t key, uint64_t value);
int csrec_fence_destroy(struct csrec_dev *dev, uint32_t key);

/*
 * Reads n segments of a drive into DRAM regions and returns when all are there; if
 * fence_key is not 0 it raises that fence then. Rules and flags: P2P_READ in
 * linux/csrec.h; n may be above CSREC_P2P_MAX_SEGS. *p2p and *bounced (both may be NULL)
 * get the bytes that went each way, on failure too.
 * -EREMOTEIO: P2P is not possible and CSREC_P2P_F_ONLY was given.
 */
int csrec_p2p_read(struct csrec_dev *dev, int fd, const struct csrec_p2p_seg *segs, uint32_t n,
		   uint32_t flags, uint32_t fence_key, uint64_t fence_value,
		   uint64_t *p2p, uint64_t *bounced);

/* Since 1.1. The same from DRAM regions to a drive. */
int csrec_p2p_write(struct csrec_dev *dev, int fd, const struct csrec_p2p_seg *segs, uint32_t n,
		    uint32_t flags, uint32_t fence_key, uint64_t fence_value,
		    uint64_t *p2p, uint64_t *bounced);

/* Where the bytes of csrec_file_read() came from. */
struct csrec_file_bytes {
	uint64_t direct;		/* from the drive, by its own DMA */
	uint64_t bounced;		/* through host memory */
	uint64_t zeros;			/* holes and unwritten extents, filled by the device */
};

/*
 * Since 1.1. Reads up to len bytes at off of a file into device DRAM and returns how many
 * there were: less than len at the end of the file only. fd is a regular file, on a file
 * system of any kind; it need not be open with O_DIRECT. The queue must be idle.
 *
 * Whole blocks of written extents are read by O_DIRECT into the mapped region, the rest through
 * a host buffer that the queue keeps; no CPU writes to device memory. Where the drive cannot, all
 * bounces, or with CSREC_P2P_F_ONLY it is -EREMOTEIO (as are parts of blocks);
 * CSREC_P2P_F_BOUNCE: all bounces. *bytes (may be NULL) is written on failure too; what was
 * read then is unspecified. A file that others write to meanwhile reads as with pread().
 * -EBADF fd not open for reading; -EINVAL not a regular file, or bad flags; -ENOENT no such
 * key; -ERANGE outside the region; -EIO the drive or the queue failed.
 */
int64_t csrec_file_read(struct csrec_queue *queue, int fd, uint64_t off, uint64_t len,
			uint32_t key, uint64_t dev_off, uint32_t flags,
			struct csrec_file_bytes *bytes);

/*
 * In words. Each returns a constant string, "?" for what it does not know;
 * csrec_field_name(): of csrec_cqe.field, for a command with that opcode.
 * csrec_decode_cqe() writes "COPY: OUT_OF_BOUNDS, dst_off is 0x1000" to buf and returns
 * its full length, as snprintf(). cmd may be NULL.
 */
const char *csrec_status_name(uint16_t status);
const char *csrec_opcode_name(uint8_t opcode);
const char *csrec_field_name(uint8_t opcode, uint16_t field);
int csrec_decode_cqe(const struct csrec_cqe *cqe, const struct csrec_cmd *cmd, char *buf,
		     size_t len);

/*
 * Command builders; all fields not named are zero. For flags and a cid of one's own set
 * the members of the result.
 */
static inline struct csrec_cmd csrec_cmd(uint8_t opcode, const void *body, size_t len)
{
	struct csrec_cmd cmd;

	memset(&cmd, 0, sizeof(cmd));
	cmd.opcode = opcode;
	if (len)
		memcpy(cmd.body, body, len);
	return cmd;
}

static inline struct csrec_cmd csrec_cmd_nop(void)
{
	return csrec_cmd(CSREC_OP_NOP, NULL, 0);
}

static inline struct csrec_cmd csrec_cmd_copy(uint32_t dst_key, uint64_t dst_off,
					      uint32_t src_key, uint64_t src_off, uint64_t len)
{
	struct csrec_body_copy b;

	memset(&b, 0, sizeof(b));
	b.src_key = src_key;
	b.dst_key = dst_key;
	b.src_off = src_off;
	b.dst_off = dst_off;
	b.len = len;
	return csrec_cmd(CSREC_OP_COPY, &b, sizeof(b));
}

static inline struct csrec_cmd csrec_cmd_fill(uint32_t dst_key, uint64_t dst_off, uint64_t len,
					      uint32_t pattern)
{
	struct csrec_body_copy b;

	memset(&b, 0, sizeof(b));
	b.dst_key = dst_key;
	b.dst_off = dst_off;
	b.len = len;
	b.pattern = pattern;
	return csrec_cmd(CSREC_OP_FILL, &b, sizeof(b));
}

/* Completes when all earlier commands of the queue have. */
static inline struct csrec_cmd csrec_cmd_fence(void)
{
	return csrec_cmd(CSREC_OP_FENCE, NULL, 0);
}

static inline struct csrec_cmd csrec_cmd_sync(uint8_t opcode, uint32_t fence_key, uint64_t value)
{
	struct csrec_body_fence b;

	memset(&b, 0, sizeof(b));
	b.fence_key = fence_key;
	b.value = value;
	return csrec_cmd(opcode, &b, sizeof(b));
}

static inline struct csrec_cmd csrec_cmd_signal(uint32_t fence_key, uint64_t value)
{
	return csrec_cmd_sync(CSREC_OP_SIGNAL, fence_key, value);
}

static inline struct csrec_cmd csrec_cmd_wait(uint32_t fence_key, uint64_t value)
{
	return csrec_cmd_sync(CSREC_OP_WAIT, fence_key, value);
}

/* EMB, TT, INTERACT, MLP: len is the size of the opcode's descriptor structure. */
static inline struct csrec_cmd csrec_cmd_desc(uint8_t opcode, uint32_t desc_key,
					      uint64_t desc_off, uint32_t len)
{
	struct csrec_body_desc b;

	memset(&b, 0, sizeof(b));
	b.desc_key = desc_key;
	b.desc_len = len;
	b.desc_off = desc_off;
	return csrec_cmd(opcode, &b, sizeof(b));
}

#ifdef __cplusplus
}
#endif

#endif /* CSREC_H */
