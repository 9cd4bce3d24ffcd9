// SPDX-License-Identifier: GPL-2.0-only
/*
 * P2P_READ and P2P_WRITE: a drive accesses device DRAM itself; or, where it cannot, a host
 * buffer that the device copies to or from.
 *
 * Each is a request with a life of its own, run by a worker. Who asked waits for its answer
 * (ioctl) or is told it (io_uring), and may get one before the request has ended: it was killed,
 * it cancelled, or the device is gone. The drive is then sent nothing more; but a bio cannot be
 * called back, and until the last has come back the request holds all that the drive was given.
 * No lock is held meanwhile, and only remove() waits.
 *
 * A drive that hangs keeps its workers. Requests for one drive beyond CSREC_DRIVE_ACTIVE wait in
 * line, so that those for others find a worker, and a bounce buffer: of the WQ_MAX_ACTIVE that a
 * device may have (512 in old kernels, 2048 in new ones) 16 or 64 drives that all hang have the
 * last.
 */
#include <linux/bio.h>
#include <linux/blk-integrity.h>
#include <linux/blkdev.h>
#include <linux/cgroup.h>
#include <linux/completion.h>
#include <linux/dma-mapping.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/pci-p2pdma.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "csrec_trace.h"
#include "compat.h"

#define CSREC_BIO_BYTES		SZ_1M	/* most of one bio */
#define CSREC_BIO_BATCH		128	/* bios in flight of one request */
#define CSREC_DRIVE_ACTIVE	32	/* requests of one drive at work */

/* A disk that has requests. */
struct csrec_drive {
	struct list_head node;	/* csd->p2p_drives */
	struct gendisk *disk;
	unsigned int active;
	struct list_head waiting;
};

struct csrec_req {
	struct kref ref;	/* the worker's, and that of who asked */
	struct work_struct work;
	struct csrec_ctx *ctx;	/* held */

	/* what is asked; held until the end */
	struct file *file;
	struct block_device *bdev;
	struct csrec_p2p_seg *segs;
	struct csrec_region **regions;	/* of each segment */
	unsigned int count;
	u32 flags;
	bool write;
	u32 fence_key;
	u64 fence_value;
	u64 total;

	/* csd->p2p_lock */
	struct list_head node;	/* csd->p2p_reqs */
	struct list_head wait;	/* drive->waiting */
	struct csrec_drive *drive;	/* while it is active; before, one to be used */
	bool active;
	bool answered;		/* and by whom: who sets it */

	bool stop;		/* nobody wants it any more */
	int ret;		/* the answer, once answered */
	u64 p2p_bytes;
	u64 bounce_bytes;

	struct cgroup_subsys_state *blkcg;	/* of who asked, to which bios are charged */
	struct io_uring_cmd *cmd;	/* until answered; NULL: an ioctl */
	void __user *uarg;
};

/* How far a request has come. */
struct csrec_pos {
	const struct csrec_req *req;
	unsigned int seg;	/* segment, and bytes in it */
	u64 done;
};

static u64 csrec_pos_left(const struct csrec_pos *p, u64 most)
{
	return min(p->req->segs[p->seg].len - p->done, most);
}

static void csrec_pos_advance(struct csrec_pos *p, u64 len)
{
	p->done += len;
	if (p->done == p->req->segs[p->seg].len) {
		p->seg++;
		p->done = 0;
	}
}

static bool csrec_pos_before(const struct csrec_pos *p, const struct csrec_pos *end)
{
	return p->seg != end->seg || p->done != end->done;
}

/* May the drive be sent more? */
static int csrec_req_go_on(const struct csrec_req *req)
{
	return READ_ONCE(req->stop) ? -EINTR : csrec_ctx_dead(req->ctx);
}

/* ---- bios ---- */

/* Bios under way, and one count for who submits them. */
struct csrec_io {
	atomic_t pending;
	struct completion done;
	blk_status_t err;	/* of the first that failed */
	bool moved;		/* some did not */
};

static void csrec_io_init(struct csrec_io *io)
{
	atomic_set(&io->pending, 1);
	init_completion(&io->done);
	io->err = BLK_STS_OK;
	io->moved = false;
}

static void csrec_io_put(struct csrec_io *io)
{
	if (atomic_dec_and_test(&io->pending))
		complete(&io->done);
}

static void csrec_bio_end(struct bio *bio)
{
	struct csrec_io *io = bio->bi_private;

	if (!bio->bi_status)
		WRITE_ONCE(io->moved, true);
	else
		cmpxchg(&io->err, BLK_STS_OK, bio->bi_status);
	bio_put(bio);
	csrec_io_put(io);
}

/* Has the drive transfer @len bytes at position @p from or to physically contiguous pages. */
static void csrec_io_submit(struct csrec_io *io, const struct csrec_pos *p, struct page *page,
			    unsigned int offset, unsigned int len, blk_opf_t opf)
{
	const struct csrec_req *req = p->req;
	struct bio *bio;

	opf |= req->write ? REQ_OP_WRITE | REQ_SYNC | REQ_IDLE : REQ_OP_READ;
	if (req->write && req->file->f_flags & O_DSYNC)
		opf |= REQ_FUA;
	bio = bio_alloc(req->bdev, 1, opf, GFP_KERNEL);
	/* not the worker's */
	if (req->blkcg)
		bio_associate_blkg_from_css(bio, req->blkcg);
	bio->bi_iter.bi_sector = (req->segs[p->seg].file_off + p->done) >> SECTOR_SHIFT;
	bio->bi_private = io;
	bio->bi_end_io = csrec_bio_end;
	__bio_add_page(bio, page, len, offset);
	atomic_inc(&io->pending);
	submit_bio(bio);
}

/* As long as the drive likes, and without being taken for a task that hangs. */
static int csrec_io_wait(struct csrec_io *io)
{
	csrec_io_put(io);
	wait_for_completion_state(&io->done, TASK_IDLE);
	return io->err ? -EIO : 0;
}

/*
 * Was it the way that was missing? Drivers that cannot map peer-to-peer pages for the drive send it
 * nothing, and say so in one of these ways; but so may a drive that was sent something.
 */
static bool csrec_io_no_way(const struct csrec_io *io)
{
	return !io->moved && (io->err == BLK_STS_TARGET || io->err == BLK_STS_INVAL);
}

/* ---- peer-to-peer ---- */

/*
 * May the drive access the device? Both must be asked: a queue without the feature may
 * belong to a driver that touches data with the CPU, and a drive with it may have no
 * path to the device. And if it protects its blocks, the CPU reads them all.
 */
static bool csrec_p2p_possible(struct csrec_dev *csd, struct block_device *bdev)
{
	struct device *client = disk_to_dev(bdev->bd_disk);

	return csd->p2pdma && blk_queue_pci_p2pdma(bdev_get_queue(bdev)) &&
	       !blk_get_integrity(bdev->bd_disk) &&
	       pci_p2pdma_distance_many(csd->pdev, &client, 1, false) >= 0;
}

static int csrec_req_direct(const struct csrec_req *req)
{
	struct csrec_pos p = { .req = req };
	struct blk_plug plug;
	bool moved = false;
	struct csrec_io io;
	int n, ret;

	while (p.seg < req->count) {
		ret = csrec_req_go_on(req);
		if (ret)
			return ret;
		csrec_io_init(&io);
		blk_start_plug(&plug);
		for (n = 0; n < CSREC_BIO_BATCH && p.seg < req->count; n++) {
			u64 len = csrec_pos_left(&p, CSREC_BIO_BYTES);
			void *va = req->regions[p.seg]->p2p_va + req->segs[p.seg].dev_off + p.done;

			/* these pages must not share a segment with others */
			csrec_io_submit(&io, &p, virt_to_page(va), offset_in_page(va), len,
					REQ_NOMERGE);
			csrec_pos_advance(&p, len);
		}
		blk_finish_plug(&plug);
		ret = csrec_io_wait(&io);
		if (ret)
			return !moved && csrec_io_no_way(&io) ? -EREMOTEIO : ret;
		moved = true;
	}
	return 0;
}

/* ---- bounce ---- */

/* Has the device copy between the buffer and what is from @p to @end. */
static int csrec_bounce_copy(struct csrec_bounce *b, struct csrec_pos p,
			     const struct csrec_pos *end)
{
	const struct csrec_req *req = p.req;
	struct csrec_dev *csd = req->ctx->csd;
	struct csrec_cmd cmds[CSREC_ADMIN_BATCH];
	u64 buf = 0, dram, len;
	unsigned int n = 0;
	int ret;

	ret = csrec_enter(req->ctx);
	if (ret)
		return ret;
	while (csrec_pos_before(&p, end)) {
		struct csrec_body_copy body = {};

		dram = req->regions[p.seg]->base + req->segs[p.seg].dev_off + p.done;
		len = p.seg == end->seg ? end->done - p.done : csrec_pos_left(&p, U64_MAX);
		csrec_pos_advance(&p, len);
		body.src_key = cpu_to_le32(req->write ? csd->win_dram.key : b->obj.key);
		body.src_off = cpu_to_le64(req->write ? dram : buf);
		body.dst_key = cpu_to_le32(req->write ? b->obj.key : csd->win_dram.key);
		body.dst_off = cpu_to_le64(req->write ? buf : dram);
		body.len = cpu_to_le64(len);
		buf += len;

		memset(&cmds[n], 0, sizeof(cmds[n]));
		cmds[n].opcode = CSREC_OP_COPY;
		memcpy(cmds[n].body, &body, sizeof(body));
		if (++n < CSREC_ADMIN_BATCH && csrec_pos_before(&p, end))
			continue;
		ret = csrec_admin_exec(csd, cmds, n);
		if (ret)
			break;
		n = 0;
	}
	csrec_exit(req->ctx);
	return ret > 0 ? -EIO : ret;
}

/* Has the drive transfer between the buffer and what is from @p to @end. */
static int csrec_bounce_io(struct csrec_bounce *b, struct csrec_pos p, const struct csrec_pos *end)
{
	struct blk_plug plug;
	struct csrec_io io;
	u64 buf = 0, len;

	csrec_io_init(&io);
	blk_start_plug(&plug);
	while (csrec_pos_before(&p, end)) {
		len = p.seg == end->seg ? end->done - p.done : csrec_pos_left(&p, U64_MAX);
		csrec_io_submit(&io, &p, b->page + (buf >> PAGE_SHIFT), offset_in_page(buf), len,
				0);
		csrec_pos_advance(&p, len);
		buf += len;
	}
	blk_finish_plug(&plug);
	return csrec_io_wait(&io);
}

/* As much as fits in the buffer. */
static int csrec_bounce_part(struct csrec_bounce *b, struct csrec_pos *p)
{
	const struct csrec_req *req = p->req;
	struct device *dev = &req->ctx->csd->pdev->dev;
	struct csrec_pos start = *p;
	u64 fill = 0, len;
	int n, ret;

	for (n = 0; n < CSREC_BIO_BATCH && p->seg < req->count && fill < b->size; n++) {
		len = csrec_pos_left(p, b->size - fill);
		csrec_pos_advance(p, len);
		fill += len;
	}
	if (req->write) {
		ret = csrec_bounce_copy(b, start, p);
		if (ret)
			return ret;
		dma_sync_single_for_cpu(dev, b->dma, fill, DMA_BIDIRECTIONAL);
		ret = csrec_bounce_io(b, start, p);
	} else {
		ret = csrec_bounce_io(b, start, p);
		if (ret)
			return ret;
		dma_sync_single_for_device(dev, b->dma, fill, DMA_BIDIRECTIONAL);
		ret = csrec_bounce_copy(b, start, p);
	}
	return ret;
}

static int csrec_req_bounce(const struct csrec_req *req)
{
	struct csrec_pos p = { .req = req };
	struct csrec_dev *csd = req->ctx->csd;
	struct csrec_bounce *b;
	int ret;

	ret = csrec_enter(req->ctx);
	if (ret)
		return ret;
	b = csrec_bounce_get(csd);
	csrec_exit(req->ctx);
	if (IS_ERR(b))
		return PTR_ERR(b);

	if (b->size < bdev_logical_block_size(req->bdev))
		ret = -ENOMEM;
	while (!ret && p.seg < req->count) {
		ret = csrec_req_go_on(req);
		if (!ret)
			ret = csrec_bounce_part(b, &p);
	}
	csrec_bounce_put(csd, b);
	return ret;
}

/* ---- the request ---- */

/* Bios know nothing of what the page cache has of the drive. */
static int csrec_req_sync_cache(const struct csrec_req *req)
{
	struct address_space *mapping = req->file->f_mapping;
	unsigned int i;
	int ret;

	for (i = 0; i < req->count; i++) {
		loff_t start = req->segs[i].file_off, end = start + req->segs[i].len - 1;

		ret = csrec_req_go_on(req);
		if (ret)
			return ret;
		if (filemap_write_and_wait_range(mapping, start, end))
			return -EIO;
		if (!req->write)
			continue;
		ret = invalidate_inode_pages2_range(mapping, start >> PAGE_SHIFT,
						    end >> PAGE_SHIFT);
		if (ret)
			return ret;
	}
	return 0;
}

/* What somebody has read into the page cache since is of before. */
static void csrec_req_drop_cache(const struct csrec_req *req)
{
	struct address_space *mapping = req->file->f_mapping;
	unsigned int i;

	for (i = 0; i < req->count; i++)
		invalidate_inode_pages2_range(mapping, req->segs[i].file_off >> PAGE_SHIFT,
					      (req->segs[i].file_off + req->segs[i].len - 1) >>
					      PAGE_SHIFT);
}

static int csrec_req_fence(const struct csrec_req *req)
{
	struct csrec_dev *csd = req->ctx->csd;
	struct csrec_obj *fence;
	int ret;

	ret = csrec_enter(req->ctx);
	if (ret)
		return ret;
	/* not held all the time, so that nobody who destroys it waits for the drive */
	fence = csrec_slot_get(&csd->fences, req->ctx, req->fence_key);
	if (fence) {
		ret = csrec_admin_key(csd, CSREC_OP_FENCE_SIGNAL, req->fence_key,
				      req->fence_value);
		csrec_slot_put(&csd->fences, fence);
	} else {
		ret = -ENOENT;
	}
	csrec_exit(req->ctx);
	return ret > 0 ? -EIO : ret;
}

static int csrec_req_transfer(struct csrec_req *req)
{
	int ret;

	ret = csrec_req_sync_cache(req);
	if (ret)
		return ret;
	ret = -EREMOTEIO;
	if (!(req->flags & CSREC_P2P_F_BOUNCE) && csrec_p2p_possible(req->ctx->csd, req->bdev)) {
		/* may find out only now, when an IOMMU has the last word */
		ret = csrec_req_direct(req);
		if (!ret)
			req->p2p_bytes = req->total;
	}
	if (ret == -EREMOTEIO && !(req->flags & CSREC_P2P_F_ONLY)) {
		ret = csrec_req_bounce(req);
		if (!ret)
			req->bounce_bytes = req->total;
	}
	if (req->write)
		csrec_req_drop_cache(req);
	return ret;
}

static void csrec_req_free(struct kref *ref)
{
	struct csrec_req *req = container_of(ref, struct csrec_req, ref);

	kfree(req->drive);
	csrec_ctx_put(req->ctx);
	kfree(req);
}

static void csrec_req_put(struct csrec_req *req)
{
	kref_put(&req->ref, csrec_req_free);
}

/* Gives back what the drive had. */
static void csrec_req_release(struct csrec_req *req)
{
	unsigned int i;

	for (i = 0; req->regions && i < req->count && req->regions[i]; i++)
		csrec_slot_put(&req->ctx->csd->regions, &req->regions[i]->obj);
	kvfree(req->regions);
	kvfree(req->segs);
	if (req->blkcg)
		css_put(req->blkcg);
	if (req->file)
		fput(req->file);
}

#ifdef CSREC_URING
static void csrec_req_uring_end(struct io_uring_cmd *cmd, unsigned int issue_flags);
CSREC_URING_TASK_WORK(csrec_req_uring_end)
#endif

/* The first answer counts. */
static void csrec_req_answer(struct csrec_req *req, int ret)
{
	lockdep_assert_held(&req->ctx->csd->p2p_lock);
	if (req->answered)
		return;
	req->ret = ret;
	/* pairs with the one who waits */
	smp_store_release(&req->answered, true);
#ifdef CSREC_URING
	if (req->cmd) {
		io_uring_cmd_complete_in_task(req->cmd, csrec_req_uring_end_tw);
		return;
	}
#endif
	wake_up_all(&req->ctx->waitq);
}

/* No more of it; a request that waits in line is over at once. */
static void csrec_req_stop(struct csrec_req *req)
{
	lockdep_assert_held(&req->ctx->csd->p2p_lock);
	WRITE_ONCE(req->stop, true);
	if (!list_empty(&req->wait)) {
		list_del_init(&req->wait);
		queue_work(req->ctx->csd->p2p_wq, &req->work);
	}
}

/* Its drive is free for the next. */
static void csrec_req_leave(struct csrec_req *req)
{
	struct csrec_drive *drive = req->drive;
	struct csrec_req *next;

	lockdep_assert_held(&req->ctx->csd->p2p_lock);
	if (!req->active)
		return;
	req->drive = NULL;
	next = list_first_entry_or_null(&drive->waiting, struct csrec_req, wait);
	if (next) {
		list_del_init(&next->wait);
		swap(next->drive, req->drive);
		next->drive = drive;
		next->active = true;
		queue_work(next->ctx->csd->p2p_wq, &next->work);
	} else if (!--drive->active) {
		list_del(&drive->node);
		req->drive = drive;
	}
}

static void csrec_req_work(struct work_struct *work)
{
	struct csrec_req *req = container_of(work, struct csrec_req, work);
	struct csrec_ctx *ctx = req->ctx;
	struct csrec_dev *csd = ctx->csd;
	int ret;

	ret = csrec_req_go_on(req);
	if (!ret) {
		trace_csrec_p2p_start(ctx, req->bdev, req->write, req->count, req->total,
				      req->flags);
		ret = csrec_req_transfer(req);
		if (!ret && req->fence_key)
			ret = csrec_req_fence(req);
		atomic64_add(req->p2p_bytes, &csd->p2p_bytes);
		atomic64_add(req->bounce_bytes, &csd->bounce_bytes);
		atomic64_add(req->p2p_bytes, &ctx->p2p_bytes);
		atomic64_add(req->bounce_bytes, &ctx->bounce_bytes);
		trace_csrec_p2p_done(ctx, req->p2p_bytes, req->bounce_bytes, ret);
	}
	csrec_req_release(req);

	spin_lock(&csd->p2p_lock);
	csrec_req_answer(req, ret);
	csrec_req_leave(req);
	list_del(&req->node);
	if (list_empty(&csd->p2p_reqs))
		wake_up_all(&csd->p2p_idle);
	spin_unlock(&csd->p2p_lock);
	csrec_req_put(req);
}

static struct csrec_drive *csrec_drive_find(struct csrec_dev *csd, struct gendisk *disk)
{
	struct csrec_drive *drive;

	list_for_each_entry(drive, &csd->p2p_drives, node) {
		if (drive->disk == disk)
			return drive;
	}
	return NULL;
}

/* From here on it lives by itself. */
static void csrec_req_start(struct csrec_req *req)
{
	struct csrec_dev *csd = req->ctx->csd;
	struct csrec_drive *drive;
	int ret;

	spin_lock(&csd->p2p_lock);
	list_add_tail(&req->node, &csd->p2p_reqs);
	drive = csrec_drive_find(csd, req->bdev->bd_disk);
	if (drive && drive->active == CSREC_DRIVE_ACTIVE) {
		list_add_tail(&req->wait, &drive->waiting);
	} else {
		if (!drive) {
			drive = req->drive;
			list_add(&drive->node, &csd->p2p_drives);
		} else {
			kfree(req->drive);
		}
		req->drive = drive;
		drive->active++;
		req->active = true;
		queue_work(csd->p2p_wq, &req->work);
	}
	/* csrec_p2p_dead() may have been before it was on the list */
	ret = csrec_ctx_dead(req->ctx);
	if (ret) {
		csrec_req_answer(req, ret);
		csrec_req_stop(req);
	}
	spin_unlock(&csd->p2p_lock);
}

/* ---- what is asked ---- */

static int csrec_req_check_file(struct csrec_req *req, int fd)
{
	/* fget() refuses O_PATH descriptors */
	req->file = fget(fd);
	if (!req->file || !(req->file->f_mode & (req->write ? FMODE_WRITE : FMODE_READ)))
		return -EBADF;
	if (!S_ISBLK(file_inode(req->file)->i_mode))
		return -ENOTBLK;
	req->bdev = file_bdev(req->file);
	if (!req->write)
		return 0;
	if (bdev_read_only(req->bdev))
		return -EACCES;
	return IS_SWAPFILE(req->file->f_mapping->host) ? -ETXTBSY : 0;
}

/* Checks a segment and holds its region. */
static int csrec_req_check_seg(struct csrec_req *req, unsigned int i)
{
	struct csrec_slots *slots = &req->ctx->csd->regions;
	const struct csrec_p2p_seg *seg = &req->segs[i];
	u32 block = bdev_logical_block_size(req->bdev);
	struct csrec_region *r;
	struct csrec_obj *obj;
	u64 end;

	if (seg->rsvd || !seg->len || !IS_ALIGNED(seg->file_off | seg->len, block) ||
	    !IS_ALIGNED(seg->dev_off, min(block, 4096U)))
		return -EINVAL;
	if (check_add_overflow(seg->file_off, seg->len, &end) || end > bdev_nr_bytes(req->bdev))
		return -EINVAL;

	obj = csrec_slot_get(slots, req->ctx, seg->key);
	if (!obj)
		return -ENOENT;
	r = container_of(obj, struct csrec_region, obj);
	if (r->kind != CSREC_REGION_DRAM) {
		csrec_slot_put(slots, obj);
		return -EOPNOTSUPP;
	}
	req->regions[i] = r;
	/* the drive does for the caller what the caller's commands might not */
	if (!(r->rights & (req->write ? CSREC_RIGHT_READ : CSREC_RIGHT_WRITE)))
		return -EACCES;
	if (check_add_overflow(seg->dev_off, seg->len, &end) || end > r->size)
		return -ERANGE;
	req->total += seg->len;
	return 0;
}

static int csrec_req_check_keys(struct csrec_req *req, bool nowait)
{
	struct csrec_slots *fences = &req->ctx->csd->fences;
	struct csrec_obj *fence;
	unsigned int i;
	int ret;

	ret = nowait ? csrec_enter_nowait(req->ctx) : csrec_enter(req->ctx);
	if (ret)
		return ret;
	if (req->fence_key) {
		fence = csrec_slot_get(fences, req->ctx, req->fence_key);
		if (fence)
			csrec_slot_put(fences, fence);
		else
			ret = -ENOENT;
	}
	for (i = 0; !ret && i < req->count; i++)
		ret = csrec_req_check_seg(req, i);
	csrec_exit(req->ctx);
	return ret;
}

static int csrec_req_prepare(struct csrec_req *req, const struct csrec_p2p_read *arg, bool nowait)
{
	int ret;

	ret = csrec_req_check_file(req, arg->fd);
	if (ret)
		return ret;
	req->segs = kvmalloc_array(arg->count, sizeof(*req->segs), GFP_KERNEL_ACCOUNT);
	req->regions = kvcalloc(arg->count, sizeof(*req->regions), GFP_KERNEL_ACCOUNT);
	req->drive = kzalloc_obj(*req->drive, GFP_KERNEL_ACCOUNT);
	if (!req->segs || !req->regions || !req->drive)
		return -ENOMEM;
	if (copy_from_user(req->segs, u64_to_user_ptr(arg->segs),
			   arg->count * sizeof(*req->segs)))
		return -EFAULT;
	req->drive->disk = req->bdev->bd_disk;
	INIT_LIST_HEAD(&req->drive->waiting);
	req->count = arg->count;
	return csrec_req_check_keys(req, nowait);
}

/* Everything is checked, read and held; it only has to be started. */
static struct csrec_req *csrec_req_make(struct csrec_ctx *ctx, const struct csrec_p2p_read *arg,
					bool write, bool nowait)
{
	struct csrec_req *req;
	int ret;

	if (arg->rsvd || !arg->count || arg->count > CSREC_P2P_MAX_SEGS ||
	    arg->flags == (CSREC_P2P_F_ONLY | CSREC_P2P_F_BOUNCE))
		return ERR_PTR(-EINVAL);
	req = kzalloc_obj(*req, GFP_KERNEL_ACCOUNT);
	if (!req)
		return ERR_PTR(-ENOMEM);
	kref_init(&req->ref);
	INIT_WORK(&req->work, csrec_req_work);
	INIT_LIST_HEAD(&req->wait);
	kref_get(&ctx->ref);
	req->ctx = ctx;
	req->flags = arg->flags;
	req->write = write;
	req->fence_key = arg->fence_key;
	req->fence_value = arg->fence_value;
#ifdef CONFIG_BLK_CGROUP
	req->blkcg = task_get_css(current, io_cgrp_id);
#endif
	ret = csrec_req_prepare(req, arg, nowait);
	if (ret) {
		csrec_req_release(req);
		csrec_req_put(req);
		return ERR_PTR(ret);
	}
	return req;
}

/* ---- by ioctl ---- */

static int csrec_p2p_ioctl(struct csrec_ctx *ctx, struct csrec_p2p_read *arg, bool write)
{
	struct csrec_dev *csd = ctx->csd;
	struct csrec_req *req;
	int ret;

	req = csrec_req_make(ctx, arg, write, false);
	if (IS_ERR(req))
		return PTR_ERR(req);
	kref_get(&req->ref);
	csrec_req_start(req);

	/* if this one dies, or the device, the request is left to itself */
	ret = wait_event_killable(ctx->waitq, smp_load_acquire(&req->answered));
	if (ret) {
		spin_lock(&csd->p2p_lock);
		csrec_req_answer(req, -EINTR);
		csrec_req_stop(req);
		spin_unlock(&csd->p2p_lock);
	}
	ret = req->ret;
	arg->p2p_bytes = req->p2p_bytes;
	arg->bounce_bytes = req->bounce_bytes;
	csrec_req_put(req);
	return ret;
}

int csrec_ioc_p2p_read(struct csrec_ctx *ctx, void *argp)
{
	return csrec_p2p_ioctl(ctx, argp, false);
}

int csrec_ioc_p2p_write(struct csrec_ctx *ctx, void *argp)
{
	return csrec_p2p_ioctl(ctx, argp, true);
}

/* ---- by io_uring ---- */

#ifdef CSREC_URING

struct csrec_uring_pdu {
	struct csrec_req *req;
};

static struct csrec_req *csrec_uring_req(struct io_uring_cmd *cmd)
{
	return io_uring_cmd_to_pdu(cmd, struct csrec_uring_pdu)->req;
}

/* In the task that submitted it; or, if that is ending, in whatever there is. */
static void csrec_req_uring_end(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct csrec_req *req = csrec_uring_req(cmd);
	u64 bytes[2] = { req->p2p_bytes, req->bounce_bytes };
	int ret = req->ret;

	BUILD_BUG_ON(offsetof(struct csrec_p2p_read, bounce_bytes) !=
		     offsetof(struct csrec_p2p_read, p2p_bytes) + sizeof(bytes[0]));
	if (!ret && !(current->flags & (PF_EXITING | PF_KTHREAD)) &&
	    copy_to_user(req->uarg + offsetof(struct csrec_p2p_read, p2p_bytes), bytes,
			 sizeof(bytes)))
		ret = -EFAULT;
	csrec_uring_done(cmd, ret, issue_flags);
	csrec_req_put(req);
}

int csrec_p2p_uring(struct csrec_ctx *ctx, const struct csrec_p2p_read *arg, bool write,
		    struct io_uring_cmd *cmd, void __user *uarg, unsigned int issue_flags)
{
	struct csrec_req *req;

	/* -EAGAIN: comes again from where it may wait */
	req = csrec_req_make(ctx, arg, write, issue_flags & IO_URING_F_NONBLOCK);
	if (IS_ERR(req))
		return PTR_ERR(req);
	req->cmd = cmd;
	req->uarg = uarg;
	io_uring_cmd_to_pdu(cmd, struct csrec_uring_pdu)->req = req;
	/* for the command, until that is done */
	kref_get(&req->ref);
	io_uring_cmd_mark_cancelable(cmd, issue_flags);
	csrec_req_start(req);
	return -EIOCBQUEUED;
}

/* The ring is closed, or its owner dies. */
void csrec_p2p_uring_cancel(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct csrec_req *req = csrec_uring_req(cmd);
	struct csrec_dev *csd = req->ctx->csd;
	bool first;

	spin_lock(&csd->p2p_lock);
	first = !req->answered;
	req->answered = true;
	csrec_req_stop(req);
	spin_unlock(&csd->p2p_lock);
	/* else it is about to be done */
	if (first) {
		csrec_uring_done(cmd, -ECANCELED, issue_flags);
		csrec_req_put(req);
	}
}

#endif

/* ---- the device ---- */

/* The device is dead: who waits for it is told so, though a drive may not have ended. */
void csrec_p2p_dead(struct csrec_dev *csd)
{
	struct csrec_req *req;
	int ret;

	spin_lock(&csd->p2p_lock);
	list_for_each_entry(req, &csd->p2p_reqs, node) {
		ret = csrec_ctx_dead(req->ctx);
		if (ret) {
			csrec_req_answer(req, ret);
			csrec_req_stop(req);
		}
	}
	spin_unlock(&csd->p2p_lock);
}

static bool csrec_p2p_is_idle(struct csrec_dev *csd)
{
	bool idle;

	spin_lock(&csd->p2p_lock);
	idle = list_empty(&csd->p2p_reqs);
	spin_unlock(&csd->p2p_lock);
	return idle;
}

/* For remove(): drives have nothing more of this device. Nobody can hurry them. */
void csrec_p2p_wait_idle(struct csrec_dev *csd)
{
	wait_event(csd->p2p_idle, csrec_p2p_is_idle(csd));
}

/*
 * Destroyed after csrec_mem_exit(): a request that is still to be started has device memory, which
 * that waits for.
 */
int csrec_p2p_init(struct csrec_dev *csd)
{
	csd->p2p_wq = alloc_workqueue("%s-p2p", WQ_UNBOUND, WQ_MAX_ACTIVE, dev_name(&csd->dev));
	return csd->p2p_wq ? 0 : -ENOMEM;
}
