/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What kernels from 6.1 on have under other names, or do not have. The only place that
 * asks for a kernel's version: the rest of the driver is written for the newest one.
 *
 * Stable kernels take over interfaces of later ones. Macros are therefore tested for, and
 * functions get names of their own that the later one's is defined to.
 */
#ifndef _CSREC_COMPAT_H
#define _CSREC_COMPAT_H

#include <linux/version.h>

#include <linux/blkdev.h>
#include <linux/device/class.h>
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/eventfd.h>
#include <linux/fs.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#ifndef kzalloc_obj
/* The flags may be left out. */
#define csrec_second(a, b, ...)		(b)
#define csrec_gfp(...)			csrec_second(0, ##__VA_ARGS__, GFP_KERNEL)
#define kzalloc_obj(p, ...)		kzalloc(sizeof(p), csrec_gfp(__VA_ARGS__))
#define kzalloc_objs(p, count, ...)	kcalloc(count, sizeof(p), csrec_gfp(__VA_ARGS__))
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 18, 0)
#define system_dfl_wq			system_unbound_wq
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)

static inline void __iomem *csrec_pcim_iomap_region(struct pci_dev *pdev, int bar,
						    const char *name)
{
	int ret = pcim_iomap_regions(pdev, BIT(bar), name);

	return ret ? IOMEM_ERR_PTR(ret) : pcim_iomap_table(pdev)[bar];
}

#define pcim_iomap_region csrec_pcim_iomap_region
/* managed, too, after pcim_enable_device() */
#define pcim_request_region pci_request_region

#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)

/*
 * Work is disabled by taking its "pending" bit, so that queueing it does nothing. The owner
 * of that bit owns @cpu as well, which counts how often; a CPU's number is not negative.
 * The callers must lock these two against each other, and may do nothing with disabled work
 * but queue it: cancelling or modifying it would wait for the bit.
 */
static inline bool csrec_disable_delayed_work_sync(struct delayed_work *dwork)
{
	bool pending = false;

	if (dwork->cpu >= 0) {
		do {
			pending |= cancel_delayed_work_sync(dwork);
		} while (test_and_set_bit(WORK_STRUCT_PENDING_BIT, work_data_bits(&dwork->work)));
		dwork->cpu = 0;
	}
	dwork->cpu--;
	return pending;
}

static inline bool csrec_enable_delayed_work(struct delayed_work *dwork)
{
	if (++dwork->cpu < 0)
		return false;
	clear_bit_unlock(WORK_STRUCT_PENDING_BIT, work_data_bits(&dwork->work));
	return true;
}

#define disable_delayed_work_sync csrec_disable_delayed_work_sync
#define enable_delayed_work csrec_enable_delayed_work

#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)

static inline struct block_device *csrec_file_bdev(struct file *file)
{
	return I_BDEV(file->f_mapping->host);
}

#define file_bdev csrec_file_bdev

#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)

static inline void *csrec_memdup_array_user(const void __user *src, size_t n, size_t size)
{
	size_t bytes;

	return check_mul_overflow(n, size, &bytes) ? ERR_PTR(-EOVERFLOW) : memdup_user(src, bytes);
}

#define memdup_array_user csrec_memdup_array_user

static inline void *csrec_vmemdup_array_user(const void __user *src, size_t n, size_t size)
{
	size_t bytes;

	return check_mul_overflow(n, size, &bytes) ? ERR_PTR(-EOVERFLOW) : vmemdup_user(src, bytes);
}

#define vmemdup_array_user csrec_vmemdup_array_user

#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0)
#define eventfd_signal(ctx)		eventfd_signal(ctx, 1)
#endif

/* Under rcu_read_lock() or a lock that keeps *@f from being freed. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)
static inline struct file *csrec_get_file_active(struct file **f)
{
	return get_file_rcu(*f) ? *f : NULL;
}

#define get_file_active csrec_get_file_active
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)

static inline void csrec_vm_flags_mod(struct vm_area_struct *vma, unsigned long set,
				      unsigned long clear)
{
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
}

#define vm_flags_mod csrec_vm_flags_mod
#define vm_flags_set(vma, set) csrec_vm_flags_mod(vma, set, 0)

#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)

static inline struct sg_table *csrec_dma_buf_map(struct dma_buf_attachment *attach,
						 enum dma_data_direction dir)
{
	struct sg_table *sgt;

	dma_resv_lock(attach->dmabuf->resv, NULL);
	sgt = dma_buf_map_attachment(attach, dir);
	dma_resv_unlock(attach->dmabuf->resv);
	return sgt;
}

static inline void csrec_dma_buf_unmap(struct dma_buf_attachment *attach, struct sg_table *sgt,
				       enum dma_data_direction dir)
{
	dma_resv_lock(attach->dmabuf->resv, NULL);
	dma_buf_unmap_attachment(attach, sgt, dir);
	dma_resv_unlock(attach->dmabuf->resv);
}

#define dma_buf_map_attachment_unlocked csrec_dma_buf_map
#define dma_buf_unmap_attachment_unlocked csrec_dma_buf_unmap

#endif

/* Mappings that need no sync, and that DMA debugging lets overlap. */
#ifndef DMA_ATTR_REQUIRE_COHERENT
#define DMA_ATTR_REQUIRE_COHERENT	0
#endif

/* Classes cannot be constant where they are linked into a list. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
#define CSREC_CLASS_CONST
#else
#define CSREC_CLASS_CONST const
#endif

/* Before 6.13 what cannot be mapped is BLK_STS_TARGET only. */
#ifndef BLK_STS_INVAL
#define BLK_STS_INVAL	BLK_STS_TARGET
#endif

/*
 * References that a peer-to-peer page of the kernel's pool has while nobody has it: since 6.15
 * none, before that one.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 0)

#define CSREC_P2P_PAGE_IDLE	1

static inline struct dev_pagemap *csrec_page_pgmap(const struct page *page)
{
	return page->pgmap;
}

#define page_pgmap csrec_page_pgmap

#else
#define CSREC_P2P_PAGE_IDLE	0
#endif

/* How an exporter of dma-bufs tells importers, and whether one listens. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 1, 0)
#define CSREC_INVALIDATE_MAPPINGS	move_notify
#define csrec_invalidate_mappings	dma_buf_move_notify
#else
#define CSREC_INVALIDATE_MAPPINGS	invalidate_mappings
#define csrec_invalidate_mappings	dma_buf_invalidate_mappings
#endif

static inline bool csrec_attach_revocable(const struct dma_buf_attachment *attach)
{
	return attach->importer_ops && attach->importer_ops->CSREC_INVALIDATE_MAPPINGS;
}

/*
 * Does an importer that pins a dma-buf, and listens, expect to keep it all the same? Before 7.1
 * yes, but where CONFIG_DMABUF_MOVE_NOTIFY is off the kernel itself pins whatever is mapped.
 */
#define CSREC_PIN_IS_FOR_GOOD	IS_ENABLED(CONFIG_DMABUF_MOVE_NOTIFY)

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#define CSREC_IMPORT_NS_DMA_BUF	MODULE_IMPORT_NS(DMA_BUF)
#else
#define CSREC_IMPORT_NS_DMA_BUF	MODULE_IMPORT_NS("DMA_BUF")
#endif

/*
 * Commands of io_uring. Before 6.8 they could not be cancelled, so that whoever has one with a
 * drive that hangs could not be killed: there are none then. CSREC_URING_TASK_WORK(fn) makes
 * fn_tw() of fn(cmd, issue_flags), for io_uring_cmd_complete_in_task().
 */
#if IS_ENABLED(CONFIG_IO_URING) && LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
#include <linux/io_uring/cmd.h>

#define CSREC_URING	1

#ifdef IO_URING_CMD_TASK_WORK_ISSUE_FLAGS
#define CSREC_URING_TASK_WORK(fn)							\
static void fn##_tw(struct io_tw_req req, io_tw_token_t token)				\
{											\
	fn(io_uring_cmd_from_tw(req), IO_URING_CMD_TASK_WORK_ISSUE_FLAGS);		\
}
#else
#define CSREC_URING_TASK_WORK(fn)							\
static void fn##_tw(struct io_uring_cmd *cmd, unsigned int issue_flags)		\
{											\
	fn(cmd, issue_flags);								\
}
#endif

static inline void csrec_uring_done(struct io_uring_cmd *cmd, int ret, unsigned int issue_flags)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
	io_uring_cmd_done(cmd, ret, issue_flags);
#else
	io_uring_cmd_done(cmd, ret, 0, issue_flags);
#endif
}

#endif

#endif /* _CSREC_COMPAT_H */
