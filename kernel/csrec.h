/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * csrec driver: what its files share.
 *
 * Locks, outermost first:
 *
 *   csd->reset_lock	rwsem. Read: an ioctl, or close, works with the device
 *			(csrec_enter()). Write: the device is being stopped (remove,
 *			reset). Whoever wants it for writing first sets csd->state, which
 *			ends every wait for the device, or uses csrec_lock_dead(): nobody
 *			waits for it for writing while the device lives, so that WAIT may
 *			sleep under it. Nothing that a process or a drive
 *			can stall happens under it: user memory is read before and written
 *			after.
 *   csd->queue_lock	mutex. QUEUE_CREATE and QUEUE_DELETE, changes of csd->queues[].
 *   queue->submit_lock	mutex. Writing to a submission ring.
 *   ctx->map_lock	mutex. What can be mapped, and making page table entries for it. Page
 *			fault handlers take it, so that no user memory is touched under it.
 *   csd->exports_lock	mutex. The list of dma-bufs.
 *   csd->dram_lock	mutex. Pieces of device DRAM; mmap_lock is outside, so that no user
 *			memory is touched under it.
 *   counters->lock	mutex. Reading the device's counters; nothing nests in it.
 *   csd->queues_lock, vector->lock, queue->lock, admin->lock, slots->lock, csd->ctx_lock,
 *   csd->bounce_lock, csd->p2p_lock
 *			spinlocks; queue->lock nests in the first two. The interrupt
 *			handler takes those of vector, queue and admin.
 *
 * Memory that the device may still touch is given back only after the device has
 * confirmed that it does not (QUEUE_DELETE, REGION_INVAL), or has been stopped. It is
 * mapped for DMA, and unmapped, only under the reset_lock, as the PCI device is not ours
 * after remove(): a reference to a queue is not kept beyond csrec_exit(). An object
 * for which neither could be had stays on its context's list for csrec_ctx_teardown().
 */
#ifndef _CSREC_H
#define _CSREC_H

#include <linux/atomic.h>
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/io.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/rwsem.h>
#include <linux/sched.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/csrec.h>

#include "compat.h"

#define CSREC_NAME		"csrec"

#define CSREC_MAX_IOQ		64	/* of any device */
#define CSREC_ADMIN_LOG2	6
#define CSREC_ADMIN_ENTRIES	BIT(CSREC_ADMIN_LOG2)
#define CSREC_ADMIN_BATCH	16	/* most commands of one csrec_admin_exec() */

/* Of the driver's own: all DRAM, all on-chip memory, a bounce buffer; and one to be of use. */
#define CSREC_MIN_REGIONS	4U

#define CSREC_DRAM_UNIT		4096	/* of allocation */
#define CSREC_ONCHIP_UNIT	64

#define CSREC_BOUNCE_ORDER	8	/* bounce buffer, at most 1 MiB with 4 KiB pages */
#define CSREC_BOUNCE_SLOTS	4U	/* regions that are reserved for them */

/*
 * What a hung device looks like. Time alone never counts, as the device may be simulated: so many
 * cycles must have gone by without any work moving, and the answer must have been the same in so
 * many looks; or the device must say that it is busy while not even its clock moves, in very many
 * looks. While other work moves, a command is given up only after very many cycles: a quarter of
 * an hour of a device of 300 MHz, in which it could have written all its memory many times.
 */
#define CSREC_HUNG_CYCLES	BIT_ULL(18)
#define CSREC_LOST_CYCLES	BIT_ULL(38)
#define CSREC_HUNG_LOOKS	4
#define CSREC_STUCK_LOOKS	16

/* Between two looks at the progress counter, jiffies. */
#define CSREC_LOOK_INTERVAL	HZ

struct csrec_ctx;
struct csrec_dev;
struct csrec_map;
struct eventfd_ctx;
struct file;
struct inode;
struct vm_area_struct;
struct gen_pool;
struct io_uring_cmd;

enum csrec_state {
	CSREC_LIVE,
	CSREC_FAILED,		/* does not answer: -EIO until it is reset */
	CSREC_RESETTING,	/* -ENODEV */
	CSREC_GONE,		/* removed, or reads all ones: -ENODEV */
};

/* A pair of rings. All counts run freely modulo 2^32. */
struct csrec_ring {
	struct csrec_cmd *sq;
	struct csrec_cqe *cq;
	dma_addr_t sq_dma;
	dma_addr_t cq_dma;
	void __iomem *doorbell;
	u32 entries;		/* power of two */
	u32 tail;		/* commands written */
	u32 posted;		/* completions seen in the CQ */
	u32 head;		/* completions consumed */
	/* of a queue that a process maps, or NULL; it keeps the counts itself */
	struct csrec_umem *umem;
	struct csrec_queue_ctl *ctl;
};

struct csrec_vector {
	struct csrec_dev *csd;
	spinlock_t lock;	/* queues */
	struct list_head queues;
};

struct csrec_queue {
	struct kref ref;
	struct csrec_ctx *ctx;
	struct csrec_vector *vector;
	struct list_head node;	/* vector->queues */
	u16 qid;
	bool closing;		/* not (yet, or any more) to be found by its handle */
	bool failed;		/* reset by the watchdog */
	bool deleted;		/* queue_lock: the device has confirmed QUEUE_DELETE */
	bool noirq;		/* CSREC_QUEUE_F_NOIRQ */
	u16 irq_count;
	u32 irq_cycles;
	unsigned int resets;	/* by QUEUE_RESET */
	/* queue_lock: since when it has completed nothing that it has in flight */
	u32 seen;		/* completions posted */
	unsigned int looks;
	u64 since;		/* cycles */
	struct mutex submit_lock;
	spinlock_t lock;	/* counts of the ring, and what follows it */
	struct csrec_ring ring;
	struct eventfd_ctx *evt;
	bool told;		/* evt knows that there are completions */
	u32 told_head;		/* ctl->cq_head then */
};

struct csrec_admin {
	spinlock_t lock;	/* all of it */
	struct csrec_ring ring;
	wait_queue_head_t waitq;
	DECLARE_BITMAP(used, CSREC_ADMIN_ENTRIES);	/* by cid */
	DECLARE_BITMAP(done, CSREC_ADMIN_ENTRIES);
	struct csrec_cqe cqe[CSREC_ADMIN_ENTRIES];
};

/* What a key names: first member of regions and fences. */
struct csrec_obj {
	struct csrec_ctx *ctx;	/* NULL: the driver's own, domain 0; or gone */
	struct list_head node;	/* ctx->regions or ctx->fences */
	u32 key;
	bool closing;		/* not (yet, or any more) to be found by its key */
	bool gone;		/* off the table */
	bool reserved;		/* takes a slot that was reserved */
	unsigned int users;	/* transfers that hold it */
	void (*release)(struct csrec_obj *obj);	/* by the last of them, if gone */
};

/* The driver's side of a table of the device: region slots, or fence slots. */
struct csrec_slots {
	spinlock_t lock;	/* everything here, and the lists of objects */
	wait_queue_head_t idle;
	unsigned int count;
	unsigned int used;
	unsigned int reserve;	/* that many are for the driver only */
	unsigned int next;	/* where to look for a free slot; spreads generations */
	u16 *gen;
	struct csrec_obj **obj;
};

/*
 * A piece of device DRAM. Lives as long as anything refers to it; has memory as long as it is
 * used: see csrec_dram.c.
 */
struct csrec_dram {
	struct kref ref;
	struct csrec_dev *csd;	/* held */
	/* of the rest what changes is under csd->dram_lock */
	struct list_head node;	/* csd->drams, or csd->dram_idle when nothing uses it */
	struct csrec_owner *owner;	/* charged and held; NULL: the memory is given back */
	u64 base;
	u64 size;
	void *va;		/* peer-to-peer pages; NULL without P2PDMA */
	unsigned long pgoff;	/* of user mappings */
	unsigned int users;	/* regions, dma-bufs */
	unsigned int maps;	/* user mappings */
	bool pages;		/* mappings may refer to its pages */
	bool dead;		/* the device was reset since */
};

struct csrec_map_ops {
	/* under ctx->map_lock; sets vma->vm_ops, and makes no page table entries */
	int (*mmap)(struct csrec_map *map, struct vm_area_struct *vma);
};

/* What can be mapped at an offset: member of what it belongs to. */
struct csrec_map {
	struct list_head node;	/* ctx->maps */
	u64 pgoff;
	unsigned long npages;
	const struct csrec_map_ops *ops;
};

/*
 * Rings and doorbell of one queue as a process maps them. VMAs hold it as the queue does, so that
 * memory which is mapped outlives the queue and the device.
 */
struct csrec_umem {
	struct kref ref;
	struct csrec_map ring_map;
	struct csrec_map db_map;
	struct page *sq;
	struct page *cq;	/* and struct csrec_queue_ctl */
	size_t sq_len;		/* both in whole pages */
	size_t cq_len;
	struct page *dummy;	/* in place of the doorbell when that is taken away */
	unsigned long db_pfn;
};

struct csrec_region {
	struct csrec_obj obj;
	u8 kind;
	u8 rights;
	u8 levels;
	u8 page_shift;
	u64 size;
	u64 base;		/* as REGION_SET wants it */
	u32 page_off;
	/* DRAM */
	struct csrec_dram *dram;
	struct csrec_map map;		/* if it has ops */
	void *p2p_va;		/* of it, with P2PDMA */
	/* HOST */
	struct dma_buf_attachment *import;	/* of a dma-buf; else pinned: */
	struct sg_table *import_sgt;
	struct mm_struct *mm;	/* whose pinned_vm is charged */
	unsigned long npages;	/* pinned */
	unsigned long charged;
	struct sg_append_table sgt;
	unsigned int nlists;
	__le64 *top;		/* bus addresses of the page lists, read by the device */
	dma_addr_t top_dma;
	size_t top_size;
	void **lists;
};

struct csrec_fence {
	struct csrec_obj obj;
};

/* MEM_EXPORT: its argument, and what becomes arg.fd once the caller has been told the number. */
struct csrec_export_call {
	struct csrec_mem_export arg;
	struct file *file;
};

/* What a process may have so much of, or so many. */
enum csrec_quota {
	CSREC_QUOTA_DRAM,	/* bytes */
	CSREC_QUOTA_ONCHIP,	/* bytes */
	CSREC_QUOTA_QUEUES,
	CSREC_QUOTA_REGIONS,
	CSREC_QUOTA_FENCES,
	CSREC_NR_QUOTAS
};

/* A process (thread group) that has opened the device, for what it may have in all contexts. */
struct csrec_owner {
	struct kref ref;
	struct list_head node;	/* csd->owners */
	struct csrec_dev *csd;
	struct pid *pid;
	u64 has[CSREC_NR_QUOTAS];	/* csd->owner_lock */
};

/* One open file; transfers of drives, which may end after it was closed, refer to it as well. */
struct csrec_ctx {
	struct kref ref;
	struct csrec_dev *csd;
	struct list_head node;	/* csd->ctxs */
	u64 reset_gen;		/* csd->reset_gen at open */
	u16 domain;
	struct pid *pid;	/* of the process that opened it, to be told */
	struct csrec_owner *owner;	/* the same process */
	char comm[TASK_COMM_LEN];
	wait_queue_head_t waitq;	/* completions, queue or device failure */
	unsigned int nr_queues;		/* queue_lock */
	struct list_head regions;	/* regions.lock */
	struct list_head fences;	/* fences.lock */
	struct inode *inode;		/* its i_mapping has all mappings */
	struct mutex map_lock;		/* maps, map_next */
	struct list_head maps;
	unsigned long map_next;		/* offset that was never given out, pages */
	atomic64_t p2p_bytes;
	atomic64_t bounce_bytes;
};

struct csrec_bounce {
	struct list_head node;	/* csd->bounces, if idle */
	struct page *page;
	size_t size;
	dma_addr_t dma;
	u64 reset_gen;		/* csd->reset_gen when the device learnt of it */
	struct csrec_obj obj;	/* HOST region of domain 0 */
};

/* Past looks at the progress counter, to tell a hung device from a slow one. */
struct csrec_watch {
	u64 progress;
	u64 cycles;
	unsigned int looks;	/* with the same progress */
	unsigned int busy;	/* of these, with STATUS.BUSY */
	unsigned int all;	/* looks with or without progress */
	u64 began;		/* cycles at the first, */
	u64 now;		/* and at the last of them */
	u64 status;		/* of the last look */
};

#define CSREC_NR_COUNTERS	((CSREC_REG_CNT_END - CSREC_REG_CNT_CYCLES) / 8)

/* The device's counters, which begin anew when it is reset, as totals which do not. */
struct csrec_counters {
	struct mutex lock;	/* all of it */
	bool begun;		/* the first look has been */
	u64 last[CSREC_NR_COUNTERS];	/* registers as last seen */
	u64 total[CSREC_NR_COUNTERS];	/* since probe */
};

struct csrec_dev {
	struct device dev;
	struct cdev cdev;
	int id;
	struct pci_dev *pdev;
	void __iomem *regs;

	/* capabilities, as read and taken apart */
	u64 cap_queue;
	u64 cap_table;
	u64 cap_dram;
	u64 cap_onchip;
	u64 cap_engine;
	u64 cap_limit;
	u16 hw_major;
	u16 hw_minor;
	unsigned int nr_ioq;
	u32 max_entries;

	struct rw_semaphore reset_lock;
	struct work_struct zap_work;	/* the device has failed: nobody reaches it */
	enum csrec_state state;
	bool stopped;			/* device lock: between shutdown and restart */
	u64 reset_gen;

	spinlock_t ctx_lock;	/* ctxs */
	struct list_head ctxs;
	struct ida domains;

	spinlock_t owner_lock;	/* owners, and what they have */
	struct list_head owners;
	u64 quota[CSREC_NR_QUOTAS];	/* most that one owner may have; 0: no limit */

	unsigned int nr_vectors;
	struct csrec_vector *vectors;

	struct mutex queue_lock;	/* queues (with queues_lock), nr_mapped, watch */
	spinlock_t queues_lock;		/* looking at queues, short of queue_lock */
	struct csrec_queue **queues;	/* by qid, [0] unused */
	unsigned int nr_mapped;		/* queues that processes map */
	struct csrec_watch watch;
	struct delayed_work watchdog;

	struct csrec_admin admin;
	struct csrec_slots regions;
	struct csrec_slots fences;

	bool queue_map;		/* CSREC_QUEUE_F_MAP is possible */
	bool p2pdma;
	struct gen_pool *dram_pool;	/* without P2PDMA */
	struct gen_pool *onchip_pool;
	u64 dram_size;
	atomic64_t dram_used;
	struct device_attribute *p2p_available;	/* of the p2pmem pool */
	struct mutex dram_lock;		/* pieces of DRAM, and whether they are used */
	struct list_head drams;
	struct list_head dram_idle;
	wait_queue_head_t dram_waitq;	/* drams got shorter */
	struct delayed_work dram_work;
	struct mutex exports_lock;	/* exports */
	struct list_head exports;	/* dma-bufs not revoked */
	struct csrec_obj win_dram;	/* all of the memory, for the admin queue */
	struct csrec_obj win_onchip;
	spinlock_t bounce_lock;		/* bounces, nr_bounces */
	struct list_head bounces;	/* idle */
	unsigned int nr_bounces;
	spinlock_t p2p_lock;		/* requests and drives */
	struct list_head p2p_reqs;
	struct list_head p2p_drives;
	wait_queue_head_t p2p_idle;	/* no requests left */
	struct workqueue_struct *p2p_wq;

	atomic64_t doorbells;
	atomic64_t interrupts;
	atomic64_t commands;
	atomic64_t p2p_bytes;
	atomic64_t bounce_bytes;
	atomic64_t pinned_bytes;
	atomic64_t queue_resets;
	atomic64_t device_resets;
	struct csrec_counters counters;
	struct dentry *debugfs;
};

/* csrec_pci.c */
int csrec_dead(const struct csrec_dev *csd);
int csrec_ctx_dead(const struct csrec_ctx *ctx);
bool csrec_lock_dead(struct csrec_dev *csd);
void csrec_set_dead(struct csrec_dev *csd, enum csrec_state state);
int csrec_hw_alive(struct csrec_dev *csd);
int csrec_hw_look(struct csrec_dev *csd, struct csrec_watch *watch, bool admin);
void csrec_hw_stop(struct csrec_dev *csd);
unsigned int csrec_vectors_wanted(const struct csrec_dev *csd);

/* csrec_main.c */
int csrec_main_init(void);
void csrec_main_exit(void);
void csrec_cdev_init(struct csrec_dev *csd);
int csrec_cdev_add(struct csrec_dev *csd);
void csrec_cdev_del(struct csrec_dev *csd);
void csrec_ctx_teardown(struct csrec_ctx *ctx);
int csrec_owner_charge(struct csrec_owner *owner, enum csrec_quota what, u64 n);
void csrec_owner_uncharge(struct csrec_owner *owner, enum csrec_quota what, u64 n);
void csrec_owner_hold(struct csrec_owner *owner);
void csrec_owner_put(struct csrec_owner *owner);
void csrec_ctx_put(struct csrec_ctx *ctx);
u32 csrec_features(const struct csrec_dev *csd);
int csrec_enter(struct csrec_ctx *ctx);
int csrec_enter_nowait(struct csrec_ctx *ctx);
void csrec_exit(struct csrec_ctx *ctx);

/* csrec_mmap.c */
int csrec_mmap_init(void);
void csrec_mmap_exit(void);
int csrec_maps_init(struct csrec_ctx *ctx);
void csrec_maps_exit(struct csrec_ctx *ctx);
void csrec_maps_zap(struct csrec_ctx *ctx);
int csrec_map_add(struct csrec_ctx *ctx, struct csrec_map *map, unsigned long npages);
void csrec_map_del(struct csrec_ctx *ctx, struct csrec_map *map);
bool csrec_map_live(struct csrec_ctx *ctx, const struct csrec_map *map);
int csrec_mmap(struct file *file, struct vm_area_struct *vma);
int csrec_may_split(struct vm_area_struct *vma, unsigned long addr);

/* csrec_ring.c */
int csrec_ring_alloc(struct csrec_dev *csd, struct csrec_ring *ring, unsigned int qid,
		     u32 entries);
void csrec_ring_free(struct csrec_dev *csd, struct csrec_ring *ring);
void csrec_ring_rewind(struct csrec_ring *ring);
void csrec_ring_clear(struct csrec_ring *ring);
bool csrec_ring_scan(struct csrec_ring *ring);
u32 csrec_ring_unread(const struct csrec_ring *ring, u32 most);
void csrec_ring_write(struct csrec_ring *ring, const struct csrec_cmd *cmd, u32 n);
void csrec_ring_doorbell(struct csrec_dev *csd, const struct csrec_ring *ring, u32 tail,
			 u32 head);
int csrec_ring_alloc_umem(struct csrec_ctx *ctx, struct csrec_ring *ring, unsigned int qid,
			  u32 entries);
void csrec_umem_put(struct csrec_umem *um);
int csrec_umem_add(struct csrec_ctx *ctx, struct csrec_umem *um);
void csrec_umem_del(struct csrec_ctx *ctx, struct csrec_umem *um);
bool csrec_umem_possible(struct csrec_dev *csd);

/* csrec_admin.c */
void csrec_admin_init(struct csrec_dev *csd);
void csrec_admin_irq(struct csrec_dev *csd);
int csrec_admin_exec(struct csrec_dev *csd, const struct csrec_cmd *cmds, unsigned int n);
int csrec_admin_key(struct csrec_dev *csd, u8 opcode, u32 key, u64 value);

/* csrec_queue.c */
void csrec_queue_irq(struct csrec_queue *q);
void csrec_queues_dead(struct csrec_dev *csd);
void csrec_queue_watchdog(struct work_struct *work);
void csrec_queues_close(struct csrec_ctx *ctx);
void csrec_queues_teardown(struct csrec_ctx *ctx);
__poll_t csrec_queues_poll(struct csrec_ctx *ctx);
int csrec_ioc_queue_create(struct csrec_ctx *ctx, void *argp);
int csrec_ioc_queue_destroy(struct csrec_ctx *ctx, void *argp);
int csrec_ioc_queue_reset(struct csrec_ctx *ctx, void *argp);
int csrec_ioc_queue_eventfd(struct csrec_ctx *ctx, void *argp);
int csrec_ioc_submit(struct csrec_ctx *ctx, void *argp);
int csrec_ioc_wait(struct csrec_ctx *ctx, void *argp);

/* csrec_slots.c */
int csrec_slots_init(struct csrec_slots *slots, unsigned int count);
void csrec_slots_free(struct csrec_slots *slots);
int csrec_slot_add(struct csrec_slots *slots, struct csrec_obj *obj, struct list_head *list);
void csrec_slot_publish(struct csrec_slots *slots, struct csrec_obj *obj);
bool csrec_slot_del(struct csrec_slots *slots, struct csrec_obj *obj);
struct csrec_obj *csrec_slot_get(struct csrec_slots *slots, struct csrec_ctx *ctx, u32 key);
void csrec_slot_put(struct csrec_slots *slots, struct csrec_obj *obj);
struct csrec_obj *csrec_slot_close(struct csrec_slots *slots, struct csrec_ctx *ctx, u32 key);
struct csrec_obj *csrec_slot_close_first(struct csrec_slots *slots, struct list_head *list);
void csrec_slot_wait_idle(struct csrec_slots *slots, struct csrec_obj *obj);
void csrec_slots_for_each(struct csrec_dev *csd, struct csrec_slots *slots,
			  void (*fn)(struct csrec_dev *csd, const struct csrec_obj *obj,
				     void *data),
			  void *data);

/* csrec_mem.c */
int csrec_mem_init(struct csrec_dev *csd);
void csrec_mem_exit(struct csrec_dev *csd);
int csrec_mem_start(struct csrec_dev *csd);
void csrec_mem_stop(struct csrec_dev *csd);
enum dma_data_direction csrec_dma_dir(const struct csrec_region *r);
void csrec_region_cmd(struct csrec_cmd *cmd, const struct csrec_region *r);
int csrec_lists_make(struct csrec_dev *csd, struct csrec_region *r, const struct sg_table *sgt,
		     unsigned int offset);
int csrec_region_install(struct csrec_ctx *ctx, struct csrec_region *r, u32 *key);
void csrec_region_set_dram(struct csrec_region *r, struct csrec_dram *d);
void csrec_regions_close(struct csrec_ctx *ctx);
void csrec_regions_teardown(struct csrec_ctx *ctx);
int csrec_ioc_mem_register(struct csrec_ctx *ctx, void *argp);
int csrec_ioc_mem_alloc(struct csrec_ctx *ctx, void *argp);
int csrec_ioc_mem_free(struct csrec_ctx *ctx, void *argp);

/* csrec_dram.c */
int csrec_dram_init(struct csrec_dev *csd);
void csrec_dram_exit(struct csrec_dev *csd);
void csrec_dram_kill(struct csrec_dev *csd);
void csrec_dram_reap(struct csrec_dev *csd);
u64 csrec_dram_free_bytes(struct csrec_dev *csd);
struct csrec_dram *csrec_dram_alloc(struct csrec_ctx *ctx, u64 size, u64 align);
void csrec_dram_use(struct csrec_dram *d);
void csrec_dram_unuse(struct csrec_dram *d);
void csrec_dram_put(struct csrec_dram *d);
int csrec_dram_mmap(struct csrec_dram *d, const struct csrec_map *map, struct vm_area_struct *vma);
u64 csrec_onchip_free_bytes(struct csrec_dev *csd);
s64 csrec_onchip_alloc(struct csrec_dev *csd, u64 size, u64 align);
void csrec_onchip_free(struct csrec_dev *csd, u64 base, u64 size);

/* csrec_dmabuf.c */
void csrec_export_end(struct csrec_export_call *call, int ret);
void csrec_import_put(struct csrec_region *r);
void csrec_exports_revoke(struct csrec_dev *csd);
int csrec_ioc_mem_export(struct csrec_ctx *ctx, void *argp);
int csrec_ioc_mem_import(struct csrec_ctx *ctx, void *argp);

/* csrec_fence.c */
void csrec_fences_close(struct csrec_ctx *ctx);
void csrec_fences_teardown(struct csrec_ctx *ctx);
int csrec_ioc_fence_create(struct csrec_ctx *ctx, void *argp);
int csrec_ioc_fence_destroy(struct csrec_ctx *ctx, void *argp);
int csrec_ioc_fence_signal(struct csrec_ctx *ctx, void *argp);

/* csrec_dump.c */
void csrec_dump(struct csrec_dev *csd, const struct csrec_queue *hung, const char *why);

/* csrec_bounce.c */
struct csrec_bounce *csrec_bounce_get(struct csrec_dev *csd);
void csrec_bounce_put(struct csrec_dev *csd, struct csrec_bounce *b);
void csrec_bounces_free(struct csrec_dev *csd);

/* csrec_p2p.c */
int csrec_p2p_init(struct csrec_dev *csd);
void csrec_p2p_dead(struct csrec_dev *csd);
void csrec_p2p_wait_idle(struct csrec_dev *csd);
int csrec_ioc_p2p_read(struct csrec_ctx *ctx, void *argp);
int csrec_ioc_p2p_write(struct csrec_ctx *ctx, void *argp);
int csrec_p2p_uring(struct csrec_ctx *ctx, const struct csrec_p2p_read *arg, bool write,
		    struct io_uring_cmd *cmd, void __user *uarg, unsigned int issue_flags);
void csrec_p2p_uring_cancel(struct io_uring_cmd *cmd, unsigned int issue_flags);

/* csrec_stats.c */
void csrec_stats_look(struct csrec_dev *csd);
u64 csrec_stats_counter(struct csrec_dev *csd, unsigned int i);
void csrec_stats_counters(struct csrec_dev *csd, struct csrec_stats *stats);

/* csrec_sysfs.c */
extern const struct attribute_group *csrec_groups[];

/* csrec_debugfs.c */
void csrec_debugfs_init(void);
void csrec_debugfs_exit(void);
void csrec_debugfs_add(struct csrec_dev *csd);
void csrec_debugfs_del(struct csrec_dev *csd);

static inline u64 csrec_read(const struct csrec_dev *csd, u32 reg)
{
	return readq(csd->regs + reg);
}

static inline void csrec_write(struct csrec_dev *csd, u32 reg, u64 val)
{
	writeq(val, csd->regs + reg);
}

#endif /* _CSREC_H */
