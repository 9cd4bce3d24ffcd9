// SPDX-License-Identifier: GPL-2.0-only
/*
 * P2P_READ: a drive writes into device DRAM itself; or, where it cannot, into a host buffer
 * that the device copies from.
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/completion.h>
#include <linux/dma-mapping.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/pci-p2pdma.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "csrec_trace.h"

#define CSREC_BIO_BYTES	SZ_1M	/* most of one bio */
#define CSREC_BIO_BATCH	128	/* bios in flight */

/* Bios under way, and one count for who submits them. */
struct csrec_io {
	atomic_t pending;
	struct completion done;
	int err;
};

/* A request and how far it has come. Copy it to walk the same way again. */
struct csrec_p2p {
	struct csrec_dev *csd;
	struct file *file;
	struct block_device *bdev;
	const struct csrec_p2p_seg *segs;
	struct csrec_region **regions;	/* of each segment, held */
	unsigned int count;
	unsigned int seg;		/* position: segment, and bytes in it */
	u64 done;
};

static u64 csrec_p2p_left(const struct csrec_p2p *p, u64 most)
{
	return min(p->segs[p->seg].len - p->done, most);
}

static void csrec_p2p_advance(struct csrec_p2p *p, u64 len)
{
	p->done += len;
	if (p->done == p->segs[p->seg].len) {
		p->seg++;
		p->done = 0;
	}
}

static void csrec_io_init(struct csrec_io *io)
{
	atomic_set(&io->pending, 1);
	init_completion(&io->done);
	io->err = 0;
}

static void csrec_io_put(struct csrec_io *io)
{
	if (atomic_dec_and_test(&io->pending))
		complete(&io->done);
}

static void csrec_bio_end(struct bio *bio)
{
	struct csrec_io *io = bio->bi_private;

	if (bio->bi_status)
		cmpxchg(&io->err, 0, blk_status_to_errno(bio->bi_status));
	bio_put(bio);
	csrec_io_put(io);
}

/* Reads @len bytes at the position of @p into physically contiguous pages. */
static void csrec_io_read(struct csrec_io *io, const struct csrec_p2p *p, struct page *page,
			  unsigned int offset, unsigned int len, blk_opf_t opf)
{
	struct bio *bio = bio_alloc(p->bdev, 1, REQ_OP_READ | opf, GFP_KERNEL);

	bio->bi_iter.bi_sector = (p->segs[p->seg].file_off + p->done) >> SECTOR_SHIFT;
	bio->bi_private = io;
	bio->bi_end_io = csrec_bio_end;
	__bio_add_page(bio, page, len, offset);
	atomic_inc(&io->pending);
	submit_bio(bio);
}

/* A bio cannot be called back, so that not even a kill ends this wait. */
static int csrec_io_wait(struct csrec_io *io)
{
	csrec_io_put(io);
	wait_for_completion_io(&io->done);
	if (io->err && io->err != -EREMOTEIO)
		return -EIO;
	return io->err;
}

static int csrec_p2p_direct(struct csrec_p2p p)
{
	struct blk_plug plug;
	struct csrec_io io;
	int n, ret;

	while (p.seg < p.count) {
		if (fatal_signal_pending(current))
			return -EINTR;
		csrec_io_init(&io);
		blk_start_plug(&plug);
		for (n = 0; n < CSREC_BIO_BATCH && p.seg < p.count; n++) {
			u64 len = csrec_p2p_left(&p, CSREC_BIO_BYTES);
			void *va = p.regions[p.seg]->p2p_va + p.segs[p.seg].dev_off + p.done;

			/* these pages must not share a segment with others */
			csrec_io_read(&io, &p, virt_to_page(va), offset_in_page(va), len,
				      REQ_NOMERGE);
			csrec_p2p_advance(&p, len);
		}
		blk_finish_plug(&plug);
		ret = csrec_io_wait(&io);
		if (ret)
			return ret;
	}
	return 0;
}

/* Has the device copy what lies in the bounce buffer, from the position of @p to @end. */
static int csrec_bounce_copy(struct csrec_p2p p, const struct csrec_p2p *end)
{
	struct csrec_dev *csd = p.csd;
	struct csrec_cmd cmds[CSREC_ADMIN_BATCH];
	u64 src = 0, dst, len;
	unsigned int n = 0;
	int ret;

	while (p.seg != end->seg || p.done != end->done) {
		struct csrec_body_copy body = {
			.src_key = cpu_to_le32(csd->bounce.obj.key),
			.dst_key = cpu_to_le32(csd->win_dram.key),
			.src_off = cpu_to_le64(src),
		};

		dst = p.regions[p.seg]->base + p.segs[p.seg].dev_off + p.done;
		len = p.seg == end->seg ? end->done - p.done : csrec_p2p_left(&p, U64_MAX);
		csrec_p2p_advance(&p, len);
		src += len;
		body.dst_off = cpu_to_le64(dst);
		body.len = cpu_to_le64(len);

		memset(&cmds[n], 0, sizeof(cmds[n]));
		cmds[n].opcode = CSREC_OP_COPY;
		memcpy(cmds[n].body, &body, sizeof(body));
		if (++n < CSREC_ADMIN_BATCH && (p.seg != end->seg || p.done != end->done))
			continue;
		ret = csrec_admin_exec(csd, cmds, n);
		if (ret)
			return ret > 0 ? -EIO : ret;
		n = 0;
	}
	return 0;
}

static int csrec_p2p_bounce(struct csrec_p2p p)
{
	struct csrec_dev *csd = p.csd;
	struct csrec_bounce *b = &csd->bounce;
	struct csrec_p2p start;
	struct blk_plug plug;
	struct csrec_io io;
	u64 size, fill;
	int n, ret;

	if (mutex_lock_killable(&b->lock))
		return -EINTR;
	ret = csrec_bounce_get(csd);
	size = PAGE_SIZE << b->order;
	if (!ret && size < bdev_logical_block_size(p.bdev))
		ret = -ENOMEM;

	while (!ret && p.seg < p.count) {
		if (fatal_signal_pending(current)) {
			ret = -EINTR;
			break;
		}
		start = p;
		csrec_io_init(&io);
		blk_start_plug(&plug);
		for (n = 0, fill = 0; n < CSREC_BIO_BATCH && p.seg < p.count && fill < size; n++) {
			u64 len = csrec_p2p_left(&p, size - fill);

			csrec_io_read(&io, &p, b->page + (fill >> PAGE_SHIFT),
				      offset_in_page(fill), len, 0);
			csrec_p2p_advance(&p, len);
			fill += len;
		}
		blk_finish_plug(&plug);
		ret = csrec_io_wait(&io);
		if (ret)
			break;
		dma_sync_single_for_device(&csd->pdev->dev, b->dma, fill, DMA_TO_DEVICE);
		ret = csrec_bounce_copy(start, &p);
	}
	mutex_unlock(&b->lock);
	/* only peer-to-peer can fail like this */
	return ret == -EREMOTEIO ? -EIO : ret;
}

/*
 * May the drive write to the device? Both must be asked: a queue without the feature may
 * belong to a driver that touches data with the CPU, and a drive with it may have no
 * path to the device.
 */
static bool csrec_p2p_possible(struct csrec_dev *csd, struct block_device *bdev)
{
	struct device *client = disk_to_dev(bdev->bd_disk);

	return csd->p2pdma && blk_queue_pci_p2pdma(bdev_get_queue(bdev)) &&
	       pci_p2pdma_distance_many(csd->pdev, &client, 1, false) >= 0;
}

/* Checks a segment and holds its region. Adds to @total. */
static int csrec_p2p_check(struct csrec_ctx *ctx, struct csrec_p2p *p, unsigned int i, u64 *total)
{
	struct csrec_slots *slots = &ctx->csd->regions;
	const struct csrec_p2p_seg *seg = &p->segs[i];
	u32 block = bdev_logical_block_size(p->bdev);
	struct csrec_region *r;
	struct csrec_obj *obj;
	u64 end;

	if (seg->rsvd || !seg->len || !IS_ALIGNED(seg->file_off | seg->len, block) ||
	    !IS_ALIGNED(seg->dev_off, min(block, 4096U)))
		return -EINVAL;
	if (check_add_overflow(seg->file_off, seg->len, &end) || end > bdev_nr_bytes(p->bdev))
		return -EINVAL;

	obj = csrec_slot_get(slots, ctx, seg->key);
	if (!obj)
		return -ENOENT;
	r = container_of(obj, struct csrec_region, obj);
	p->regions[i] = r;
	if (r->kind != CSREC_REGION_DRAM)
		return -EOPNOTSUPP;
	if (check_add_overflow(seg->dev_off, seg->len, &end) || end > r->size)
		return -ERANGE;
	*total += seg->len;
	return 0;
}

static int csrec_p2p_run(struct csrec_ctx *ctx, struct csrec_p2p *p, struct csrec_p2p_read *arg)
{
	struct csrec_dev *csd = ctx->csd;
	u64 total = 0;
	unsigned int i;
	int ret;

	for (i = 0; i < p->count; i++) {
		ret = csrec_p2p_check(ctx, p, i, &total);
		if (ret)
			return ret;
	}
	/* bios know nothing of what is dirty in the page cache of the drive */
	for (i = 0; i < p->count; i++) {
		ret = filemap_write_and_wait_range(p->file->f_mapping, p->segs[i].file_off,
						   p->segs[i].file_off + p->segs[i].len - 1);
		if (ret)
			return -EIO;
	}

	trace_csrec_p2p_start(ctx, p->bdev, false, p->count, total, arg->flags);
	arg->p2p_bytes = 0;
	arg->bounce_bytes = 0;
	ret = -EREMOTEIO;
	if (!(arg->flags & CSREC_P2P_F_BOUNCE) && csrec_p2p_possible(csd, p->bdev)) {
		/* may find out only now, when an IOMMU has the last word */
		ret = csrec_p2p_direct(*p);
		if (!ret)
			arg->p2p_bytes = total;
	}
	if (ret == -EREMOTEIO && !(arg->flags & CSREC_P2P_F_ONLY)) {
		ret = csrec_p2p_bounce(*p);
		if (!ret)
			arg->bounce_bytes = total;
	}
	atomic64_add(arg->p2p_bytes, &csd->p2p_bytes);
	atomic64_add(arg->bounce_bytes, &csd->bounce_bytes);
	trace_csrec_p2p_done(ctx, arg->p2p_bytes, arg->bounce_bytes, ret);
	return ret;
}

static int csrec_p2p_read(struct csrec_ctx *ctx, void *argp)
{
	struct csrec_p2p_read *arg = argp;
	struct csrec_dev *csd = ctx->csd;
	struct csrec_obj *fence = NULL;
	struct csrec_p2p_seg *segs;
	struct csrec_p2p p = { .csd = csd };
	unsigned int i;
	int ret;

	if (arg->rsvd || !arg->count || arg->count > CSREC_P2P_MAX_SEGS ||
	    arg->flags == (CSREC_P2P_F_ONLY | CSREC_P2P_F_BOUNCE))
		return -EINVAL;

	/* fget() refuses O_PATH descriptors */
	p.file = fget(arg->fd);
	if (!p.file)
		return -EBADF;
	ret = -EBADF;
	if (!(p.file->f_mode & FMODE_READ))
		goto out_file;
	ret = -ENOTBLK;
	if (!S_ISBLK(file_inode(p.file)->i_mode))
		goto out_file;
	p.bdev = file_bdev(p.file);

	segs = memdup_array_user(u64_to_user_ptr(arg->segs), arg->count, sizeof(*segs));
	if (IS_ERR(segs)) {
		ret = PTR_ERR(segs);
		goto out_file;
	}
	p.segs = segs;
	p.count = arg->count;
	p.regions = kzalloc_objs(*p.regions, p.count);
	if (!p.regions) {
		ret = -ENOMEM;
		goto out_segs;
	}
	if (arg->fence_key) {
		fence = csrec_slot_get(&csd->fences, ctx, arg->fence_key);
		if (!fence) {
			ret = -ENOENT;
			goto out_regions;
		}
	}

	ret = csrec_p2p_run(ctx, &p, arg);
	if (!ret && fence) {
		ret = csrec_admin_key(csd, CSREC_OP_FENCE_SIGNAL, arg->fence_key,
				      arg->fence_value);
		if (ret > 0)
			ret = -EIO;
	}

	for (i = 0; i < p.count && p.regions[i]; i++)
		csrec_slot_put(&csd->regions, &p.regions[i]->obj);
	if (fence)
		csrec_slot_put(&csd->fences, fence);
out_regions:
	kfree(p.regions);
out_segs:
	kfree(segs);
out_file:
	fput(p.file);
	return ret;
}

int csrec_ioc_p2p_read(struct csrec_ctx *ctx, void *argp)
{
	int ret = csrec_enter(ctx);

	if (ret)
		return ret;
	ret = csrec_p2p_read(ctx, argp);
	csrec_exit(ctx);
	return ret;
}
