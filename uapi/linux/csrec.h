/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * csrec driver interface: ioctls on /dev/csrecN.
 *
 * An open file is a context. It owns its queues, regions and fences, which the
 * device keeps apart from every other context's (its "domain"), and all of
 * them go when the last reference to the file goes, whatever is in flight.
 *
 * Every argument structure starts with its own size and a flags word. A size
 * below the first version of the structure is -EINVAL; a larger one is accepted
 * if the bytes this driver does not know are zero, else -E2BIG, as is one above the size
 * of a page. Unknown flags and non-zero reserved fields are -EINVAL.
 *
 * What a process has in all its contexts is limited by quota_* in sysfs: -EDQUOT from whatever
 * would make a queue, region or fence, or allocate device memory, beyond that.
 *
 * Errors common to all: -ENOTTY unknown ioctl; -EFAULT bad user pointer; -ENODEV the
 * device is gone or was reset since open (the system's sleep is a reset, too); -EIO the
 * device does not answer.
 */
#ifndef _UAPI_LINUX_CSREC_H
#define _UAPI_LINUX_CSREC_H

#include <linux/types.h>
#include <linux/ioctl.h>
#include <linux/csrec_hw.h>

#define CSREC_UAPI_MAJOR	1
#define CSREC_UAPI_MINOR	1

#define CSREC_IOC_MAGIC		0xC5

#define CSREC_IOC_GET_INFO	_IO(CSREC_IOC_MAGIC, 0x00)
#define CSREC_IOC_QUEUE_CREATE	_IO(CSREC_IOC_MAGIC, 0x01)
#define CSREC_IOC_QUEUE_DESTROY	_IO(CSREC_IOC_MAGIC, 0x02)
#define CSREC_IOC_MEM_REGISTER	_IO(CSREC_IOC_MAGIC, 0x03)
#define CSREC_IOC_MEM_ALLOC	_IO(CSREC_IOC_MAGIC, 0x04)
#define CSREC_IOC_MEM_FREE	_IO(CSREC_IOC_MAGIC, 0x05)
#define CSREC_IOC_FENCE_CREATE	_IO(CSREC_IOC_MAGIC, 0x06)
#define CSREC_IOC_FENCE_DESTROY	_IO(CSREC_IOC_MAGIC, 0x07)
#define CSREC_IOC_FENCE_SIGNAL	_IO(CSREC_IOC_MAGIC, 0x08)
#define CSREC_IOC_SUBMIT	_IO(CSREC_IOC_MAGIC, 0x09)
#define CSREC_IOC_WAIT		_IO(CSREC_IOC_MAGIC, 0x0a)
#define CSREC_IOC_P2P_READ	_IO(CSREC_IOC_MAGIC, 0x0b)
#define CSREC_IOC_GET_STATS	_IO(CSREC_IOC_MAGIC, 0x0c)
/* since 1.1 */
#define CSREC_IOC_QUEUE_RESET	_IO(CSREC_IOC_MAGIC, 0x0d)
#define CSREC_IOC_QUEUE_EVENTFD	_IO(CSREC_IOC_MAGIC, 0x0e)
#define CSREC_IOC_P2P_WRITE	_IO(CSREC_IOC_MAGIC, 0x0f)
#define CSREC_IOC_MEM_EXPORT	_IO(CSREC_IOC_MAGIC, 0x10)
#define CSREC_IOC_MEM_IMPORT	_IO(CSREC_IOC_MAGIC, 0x11)

/* GET_INFO: what this device and driver are. */
struct csrec_info {
	__u32	size;
	__u32	flags;			/* in: 0 */
	__u16	uapi_major;
	__u16	uapi_minor;
	__u16	hw_major;
	__u16	hw_minor;
	__u64	cap_queue;		/* the CSREC_REG_CAP_* registers as read */
	__u64	cap_table;
	__u64	cap_dram;
	__u64	cap_onchip;
	__u64	cap_engine;
	__u64	cap_limit;
	__u32	features;		/* CSREC_FEATURE_* */
	__u32	pci_domain;
	__u8	pci_bus;
	__u8	pci_devfn;
	__u16	irq_vectors;		/* granted by the host */
	__s32	numa_node;		/* -1 if unknown */
	__u64	dram_free;		/* bytes not allocated now, by p2pmem/allocate either */
	__u64	onchip_free;
	/* since 1.1 */
	__u64	quota_dram;		/* bytes this process may allocate, in all its contexts */
	__u64	owned_dram;		/* and has now */
	__u32	quota_queues;		/* the same for queues */
	__u32	owned_queues;
};

#define CSREC_FEATURE_P2PDMA	(1 << 0)	/* kernel has CONFIG_PCI_P2PDMA and took the BAR */
#define CSREC_FEATURE_QUEUE_MAP	(1 << 1)	/* CSREC_QUEUE_F_MAP is possible */
#define CSREC_FEATURE_COALESCE	(1 << 2)	/* irq_count, irq_cycles, CSREC_QUEUE_F_NOIRQ */
#define CSREC_FEATURE_MEM_MAP	(1 << 3)	/* DRAM regions have an mmap_offset */
#define CSREC_FEATURE_URING	(1 << 4)	/* P2P_READ, P2P_WRITE as IORING_OP_URING_CMD */

/*
 * QUEUE_CREATE: a submission/completion queue pair owned by this context.
 * -EINVAL entries not a power of two in 2..hardware maximum; -ENOSPC no free
 * hardware queue; -ENOMEM; -EDQUOT this process has as many queues as it may.
 *
 * Since 1.1: irq_count and irq_cycles as in struct csrec_body_queue, -EINVAL if irq_count is
 * above 65535, or above 1 without irq_cycles, which could leave a completion without an
 * interrupt for ever. CSREC_QUEUE_F_NOIRQ: no interrupts, so that nothing sleeps for this
 * queue: WAIT only polls (-EINVAL otherwise), poll() and an eventfd are not told. -EOPNOTSUPP
 * the device has no CSREC_FEATURE_COALESCE.
 *
 * CSREC_QUEUE_F_MAP: the caller submits and reaps without system calls. It maps, shared,
 * readable and writable:
 *   ring_len bytes at ring_offset: struct csrec_cmd sq[entries] at 0, struct csrec_cqe
 *	cq[entries] at cq_off, struct csrec_queue_ctl at ctl_off;
 *   db_len bytes at db_offset: the queue's doorbell page, see CSREC_DB_*.
 * Both may be mapped any number of times, are not inherited over fork() and cannot be
 * executed, split or grown. The rules of the rings are the device's (CSREC_DB_*,
 * CSREC_CQE_PHASE); counts start at 0 with QUEUE_CREATE and QUEUE_RESET. The driver reads only
 * ctl->cq_head, which says how many completions the caller has consumed, to tell whether
 * there are more: who never sleeps need not write it. Whatever is written to these pages
 * can only disturb this queue. -EOPNOTSUPP without CSREC_FEATURE_QUEUE_MAP; SUBMIT on such
 * a queue is -EOPNOTSUPP; WAIT takes max 0 and cqes 0 and says in count how many
 * completions there are beyond ctl->cq_head.
 * Once the context is dead or the queue is destroyed, doorbell writes reach nothing and the
 * rings are ordinary memory that nobody serves: poll() and ioctls tell.
 */
struct csrec_queue_create {
	__u32	size;
	__u32	flags;			/* CSREC_QUEUE_F_* */
	__u32	entries;
	__u32	queue_id;		/* out: this context's handle */
	/* since 1.1 */
	__u32	irq_count;
	__u32	irq_cycles;
	__u64	ring_offset;		/* out, this and all below; 0 without CSREC_QUEUE_F_MAP */
	__u64	ring_len;
	__u64	cq_off;
	__u64	ctl_off;
	__u64	db_offset;
	__u64	db_len;
};

#define CSREC_QUEUE_F_MAP	(1 << 0)
#define CSREC_QUEUE_F_NOIRQ	(1 << 1)

struct csrec_queue_ctl {
	__u32	cq_head;		/* written by the caller */
	__u32	rsvd[15];
};

/*
 * QUEUE_RESET: aborts what is in flight, waits for it and starts the queue anew, empty, with
 * counts from 0 and all of its rings and ctl zero, also after the driver has reset it (-EIO of
 * SUBMIT and WAIT). Completions not taken are lost; a WAIT under way ends with -ECANCELED if it
 * took none. The handle, mappings and eventfd stay. Other queues go on. -ENOENT no such queue.
 */
struct csrec_queue_reset {
	__u32	size;
	__u32	flags;			/* 0 */
	__u32	queue_id;
	__u32	rsvd;
};

/*
 * QUEUE_EVENTFD: has an eventfd signalled whenever poll() would begin to report this queue, by
 * EPOLLIN or EPOLLERR, at once if it does already, and when the context dies. fd -1 takes it
 * off. -EBUSY there is one; -EBADF, -EINVAL not an eventfd; -ENOENT no such queue, or none to
 * take off.
 */
struct csrec_queue_eventfd {
	__u32	size;
	__u32	flags;			/* 0 */
	__u32	queue_id;
	__s32	fd;
};

/*
 * QUEUE_DESTROY: aborts what is in flight, waits for it. -ENOENT no such queue. Completions
 * that WAIT has not returned are lost; a WAIT under way ends, with -ENOENT if it took none.
 */
struct csrec_queue_destroy {
	__u32	size;
	__u32	flags;			/* 0 */
	__u32	queue_id;
	__u32	rsvd;
};

/*
 * MEM_REGISTER: pins [addr, addr + len) of the caller and makes it a HOST region.
 * rights: CSREC_RIGHT_READ the device may read (source; a read-only mapping is
 * enough), _WRITE it may write (needs a writable mapping, else -EFAULT; as is a shared
 * mapping of a file whose file system must know what gets dirty: not tmpfs, hugetlbfs). addr
 * and len need no alignment. -EINVAL rights empty or unknown, len 0 or above
 * CSREC_MEM_MAX_PIN (1 GiB before 1.1), or addr + len wraps; -EFAULT not mapped, or memory
 * of a device; -ENOMEM what the process has pinned (VmPin, not VmLck of /proc/PID/status) is over
 * RLIMIT_MEMLOCK, which CAP_IPC_LOCK lifts; -ENOSPC no region slot;
 * -EOPNOTSUPP the device reaches this memory only through the host's DMA bounce buffers.
 * The memory stays pinned until MEM_FREE or close. Contents belong to the caller. A process
 * that forks should keep it from its children (MADV_DONTFORK).
 */
struct csrec_mem_register {
	__u32	size;
	__u32	flags;			/* 0 */
	__u64	addr;
	__u64	len;
	__u32	rights;
	__u32	key;			/* out */
};

#define CSREC_MEM_MAX_PIN	(1ULL << 38)

/*
 * MEM_ALLOC: device memory, zeroed, as a region with READ and WRITE.
 * kind: CSREC_REGION_DRAM or _ONCHIP. len is rounded up to 4096 (DRAM) or 64
 * (ONCHIP) bytes; the region ends at the rounded length. -EINVAL kind or len 0;
 * -ENOMEM not enough (contiguous) memory left; -ENOSPC no region slot; -EDQUOT over what
 * this process may allocate (csrec_info.quota_dram).
 *
 * Since 1.1: align, a power of two up to CSREC_MEM_MAX_ALIGN (else -EINVAL; 0: none
 * beyond the unit), of the address in device memory.
 *
 * mmap_offset, if not 0, is where len bytes of a DRAM region can be mapped, shared. These are
 * P2PDMA pages: pread(), pwrite() and io_uring of files opened with O_DIRECT move data
 * between drive and device where the drive's queue allows it (else -EREMOTEIO), and the CPU
 * may load and store. Pages live on until the last mapping and transfer are done, whatever
 * becomes of the region; after a reset or removal of the device they are gone, and an
 * access is a SIGBUS. mmap() of anything but the whole, or private, or executable is -EINVAL.
 *
 * The memory is that of the kernel's p2pmem pool, which the file p2pmem/allocate of the PCI
 * device hands out as well: without a quota, and not zeroed, so to those only whom root trusts.
 */
struct csrec_mem_alloc {
	__u32	size;
	__u32	flags;			/* 0 */
	__u64	len;			/* in, out: rounded */
	__u32	kind;
	__u32	key;			/* out */
	/* since 1.1 */
	__u64	align;
	__u64	mmap_offset;		/* out */
};

#define CSREC_MEM_MAX_ALIGN	(1ULL << 30)

/*
 * MEM_FREE: revokes a key from MEM_REGISTER or MEM_ALLOC. Commands still using it
 * end with CSREC_ST_STALE_KEY; returns when the device no longer touches the
 * memory. A drive (P2P_READ, P2P_WRITE) is not waited for: device memory is not given to
 * another before it is done. -ENOENT not a key of this context.
 */
struct csrec_mem_free {
	__u32	size;
	__u32	flags;			/* 0 */
	__u32	key;
	__u32	rsvd;
};

/*
 * MEM_EXPORT: a dma-buf of a whole DRAM region. The memory stays allocated, and on this
 * process's account, until the last user of the dma-buf is gone; the key may be freed before.
 * An importer that cannot do peer-to-peer DMA with the device, or cannot be told that the memory
 * is taken back, gets an error when it attaches or maps. A reset or removal of the device takes
 * it back. -ENOENT no such key; -EOPNOTSUPP not a DRAM region, or no CSREC_FEATURE_P2PDMA;
 * -EINVAL open_flags other than O_CLOEXEC and O_RDWR or O_RDONLY; -EACCES O_RDWR of a region
 * (from MEM_IMPORT) without both rights, or O_RDONLY of one without READ. An importer that would
 * write gets an error when it maps a dma-buf that is O_RDONLY.
 */
struct csrec_mem_export {
	__u32	size;
	__u32	flags;			/* 0 */
	__u32	key;
	__u32	open_flags;
	__s32	fd;			/* out */
	__u32	rsvd;
};

/*
 * MEM_IMPORT: a dma-buf of any driver as a region. One of this device is DRAM, shared with
 * its exporter; any other is HOST. rights as in MEM_REGISTER; WRITE needs a dma-buf that is
 * open for writing (-EACCES). Memory of others is pinned until the key is freed: its exporter can
 * neither move it nor take it back.
 * -EBADF, -EINVAL not a dma-buf; -EOPNOTSUPP its memory cannot be reached, is not in whole
 * pages, was taken back, or its exporter must be able to do that; -ENOSPC no region slot; -EINTR
 * a signal, while the exporter moves it.
 */
struct csrec_mem_import {
	__u32	size;
	__u32	flags;			/* 0 */
	__s32	fd;
	__u32	rights;
	__u64	len;			/* out */
	__u32	key;			/* out */
	__u32	rsvd;
};

/* FENCE_CREATE: a 64-bit fence object. -ENOSPC no free slot. */
struct csrec_fence_create {
	__u32	size;
	__u32	flags;			/* 0 */
	__u64	value;			/* first value */
	__u32	key;			/* out */
	__u32	rsvd;
};

/*
 * FENCE_DESTROY (value 0, ignored out) and FENCE_SIGNAL: raises the fence to value,
 * never lowers it. -ENOENT not a fence of this context.
 */
struct csrec_fence_op {
	__u32	size;
	__u32	flags;			/* 0 */
	__u64	value;
	__u32	key;
	__u32	rsvd;
};

/*
 * SUBMIT: puts count commands on a queue and rings its doorbell once. Takes as many
 * as fit (a command counts until WAIT has returned its completion); submitted says
 * how many. -EAGAIN none fit; -ENOENT no such queue; -EINVAL count 0 or above
 * CSREC_SUBMIT_MAX; -EIO the driver has reset the queue, see WAIT: destroy it. The driver
 * does not look into commands: the device checks them.
 */
struct csrec_submit {
	__u32	size;
	__u32	flags;			/* 0 */
	__u32	queue_id;
	__u32	count;
	__u64	cmds;			/* const struct csrec_cmd *, count of them */
	__u32	submitted;		/* out */
	__u32	rsvd;
};

#define CSREC_SUBMIT_MAX	4096

/*
 * WAIT: takes completions of one queue, oldest first, until min are there, then up to
 * max without waiting more. timeout_ns: -1 waits for ever, 0 polls. min 0 does not wait
 * either, and count may be 0. Fails only if it took none: -EAGAIN none with timeout 0, or
 * other waiters took them all; -ETIMEDOUT; -EINTR on a signal, also with SA_RESTART, as the
 * timeout is relative; -ENOENT no queue; -EINVAL min above max, max 0 or above
 * CSREC_SUBMIT_MAX, min more than is outstanding, or timeout_ns below -1; -EIO if the driver
 * found the device to make no progress and reset the queue. -EFAULT takes none either,
 * unless the memory goes away during the call.
 * CSREC_WAIT_F_DEADLINE (since 1.1): timeout_ns is a time of CLOCK_MONOTONIC, and the call is
 * restarted after a signal whose handler has SA_RESTART.
 * poll(): EPOLLIN while any queue of the context has a completion, EPOLLERR while one has been
 * reset and is not destroyed, EPOLLHUP when the device is gone, was reset, or does not answer.
 */
struct csrec_wait {
	__u32	size;
	__u32	flags;			/* CSREC_WAIT_F_* */
	__u32	queue_id;
	__u32	min;
	__u32	max;
	__u32	count;			/* out */
	__s64	timeout_ns;
	__u64	cqes;			/* struct csrec_cqe *, room for max */
};

#define CSREC_WAIT_F_DEADLINE	(1 << 0)

/*
 * P2P_READ: reads segments of an NVMe block device into DRAM regions of this context,
 * and returns when all are there. file_off and len must be multiples of the drive's
 * logical block, dev_off a multiple of 4096 or of the logical block if smaller.
 *
 * Without flags the transfer is peer-to-peer where the kernel, the drive's queue and
 * the PCIe topology allow it and bounces through host memory otherwise; which one
 * it was is told in p2p_bytes and bounce_bytes.
 * CSREC_P2P_F_ONLY: never bounce; -EREMOTEIO if not possible.
 * CSREC_P2P_F_BOUNCE: always bounce (for tests and comparison). Not both: -EINVAL.
 * If fence_key is not 0 the fence is raised to fence_value once the data is there.
 *
 * Data that is dirty in the page cache of the drive is written out before.
 *
 * -EBADF fd not open for reading; -ENOTBLK not a block device; -EINVAL alignment,
 * count 0 or above CSREC_P2P_MAX_SEGS, len 0, or past the end of the drive; -ENOENT no
 * such key or fence (also if the fence was destroyed meanwhile); -ERANGE outside the region;
 * -EOPNOTSUPP key is not a DRAM region; -EACCES the region has no CSREC_RIGHT_WRITE (P2P_WRITE:
 * no CSREC_RIGHT_READ); -ENOSPC it has to bounce, and no region slot is left, nor one of the few
 * that are kept for that; -EIO drive error (the contents of the destination are
 * then unspecified).
 *
 * A drive cannot be called back, but waits for nobody and nobody for it: a caller that is
 * killed is gone at once, and one whose device is gone or reset gets its -ENODEV. What the
 * drive has been told to do then ends by itself, nothing more is begun, and no fence raised. Memory
 * is not given out again before, though its key be freed, its context closed and its device
 * reset. Only removal of the device (unbinding the driver) waits. One drive works at up to 32
 * requests at once, others wait their turn.
 *
 * P2P_WRITE (since 1.1) is the same the other way: from DRAM regions to the drive. fd must be
 * open for writing (-EBADF); what the page cache of the drive has of the range is written out
 * before and dropped (-EBUSY if somebody holds on to it). It is on stable storage after an
 * fsync() of fd, or at once if that is open with O_DSYNC. -EACCES the drive has become
 * read-only; -ETXTBSY it is swap space.
 *
 * Both are also IORING_OP_URING_CMD with cmd_op the number of the ioctl and the address of the
 * structure in the first eight bytes of sqe->cmd, the rest of it (with IORING_SETUP_SQE128 all
 * 72 bytes) and uring_cmd_flags 0 (since 1.1). Structure and segments are read at submission;
 * p2p_bytes and bounce_bytes are written before the CQE, whose res is 0 or -errno. Other cmd_op
 * are -ENOTTY. Closing the ring, or the death of its owner, is like a kill. Closing the context
 * waits for no drive: the memory stays allocated until it is done.
 */
struct csrec_p2p_seg {
	__u64	file_off;
	__u64	len;
	__u64	dev_off;		/* in the region */
	__u32	key;
	__u32	rsvd;
};

struct csrec_p2p_read {
	__u32	size;
	__u32	flags;			/* CSREC_P2P_F_* */
	__s32	fd;
	__u32	count;
	__u64	segs;			/* const struct csrec_p2p_seg * */
	__u64	fence_value;
	__u32	fence_key;
	__u32	rsvd;
	__u64	p2p_bytes;		/* out */
	__u64	bounce_bytes;		/* out */
};

#define CSREC_P2P_F_ONLY	(1 << 0)
#define CSREC_P2P_F_BOUNCE	(1 << 1)
#define CSREC_P2P_MAX_SEGS	1024

/*
 * GET_STATS: totals since probe, of driver and device. They only grow, except for pinned_bytes:
 * neither reading nor a reset of the device sets them back, though its registers begin anew
 * then. What the device has counted between the driver's last look at it and a reset that came
 * unannounced is lost. The same figures are in sysfs.
 */
struct csrec_stats {
	__u32	size;
	__u32	flags;			/* 0 */
	__u64	doorbells;		/* MMIO doorbell writes by the driver */
	__u64	interrupts;		/* interrupts taken by the driver */
	__u64	commands;		/* commands that SUBMIT has put on queues */
	__u64	p2p_bytes;
	__u64	bounce_bytes;
	__u64	pinned_bytes;		/* now */
	__u64	counters[20];		/* device counters, CNT_CYCLES and those behind it; */
					/* later ones are at the end of this structure */
	/* since 1.1: of this context */
	__u64	ctx_p2p_bytes;
	__u64	ctx_bounce_bytes;
	/* of the device */
	__u64	queue_resets;		/* by the driver, for lack of progress */
	__u64	device_resets;
	__u64	tt_saved;		/* device counter; 0 from devices of before 1.2 */
};

#endif /* _UAPI_LINUX_CSREC_H */
