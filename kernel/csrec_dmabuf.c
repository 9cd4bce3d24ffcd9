// SPDX-License-Identifier: GPL-2.0-only
/*
 * dma-bufs: device DRAM for other drivers, and their memory as regions.
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/file.h>
#include <linux/module.h>
#include <linux/pci-p2pdma.h>
#include <linux/slab.h>

#include "csrec.h"
#include "compat.h"

CSREC_IMPORT_NS_DMA_BUF;

/* ---- export ---- */

struct csrec_export {
	struct csrec_dram *dram;
	struct csrec_dev *csd;		/* whose exports_lock */
	struct list_head node;		/* csd->exports, until it is revoked */
	struct dma_buf *buf;
	/* of importers, under the dma-buf's reservation lock */
	unsigned int maps;
	bool revoked;
	wait_queue_head_t waitq;
};

/*
 * The memory is where it is and nowhere else: who cannot reach it there gets no copy. And it
 * goes with the device: who cannot be told so is not let in.
 */
static int csrec_export_attach(struct dma_buf *buf, struct dma_buf_attachment *attach)
{
	struct csrec_export *e = buf->priv;
	int ret = 0;

	if (!attach->peer2peer || !csrec_attach_revocable(attach))
		return -EOPNOTSUPP;
	dma_resv_lock(buf->resv, NULL);
	if (e->revoked)
		ret = -ENODEV;
	else if (pci_p2pdma_distance(e->csd->pdev, attach->dev, false) < 0)
		ret = -EREMOTEIO;
	dma_resv_unlock(buf->resv);
	return ret;
}

static struct sg_table *csrec_export_map(struct dma_buf_attachment *attach,
					 enum dma_data_direction dir)
{
	struct csrec_export *e = attach->dmabuf->priv;
	const struct csrec_dram *d = e->dram;
	/* lengths of segments have 32 bits, and the importer's limit */
	u64 most = ALIGN_DOWN(min_t(u64, dma_get_max_seg_size(attach->dev), U32_MAX), PAGE_SIZE);
	u64 done = 0, len;
	struct scatterlist *sg;
	struct sg_table *sgt;
	unsigned int i;
	int ret;

	dma_resv_assert_held(attach->dmabuf->resv);
	if (e->revoked)
		return ERR_PTR(-ENODEV);
	/* what may not be written by way of its file may not by way of another device either */
	if (dir != DMA_TO_DEVICE && !(attach->dmabuf->file->f_mode & FMODE_WRITE))
		return ERR_PTR(-EACCES);
	if (!most)
		return ERR_PTR(-EOPNOTSUPP);
	sgt = kzalloc_obj(*sgt);
	if (!sgt)
		return ERR_PTR(-ENOMEM);
	ret = sg_alloc_table(sgt, DIV_ROUND_UP_ULL(d->size, most), GFP_KERNEL);
	if (ret)
		goto err_free;
	for_each_sgtable_sg(sgt, sg, i) {
		len = min(d->size - done, most);
		sg_set_page(sg, virt_to_page(d->va + done), len, 0);
		done += len;
	}
	/* peer-to-peer pages: gives the bus address, or fails if there is no way */
	ret = dma_map_sgtable(attach->dev, sgt, dir, DMA_ATTR_SKIP_CPU_SYNC);
	if (ret)
		goto err_table;
	e->maps++;
	return sgt;

err_table:
	sg_free_table(sgt);
err_free:
	kfree(sgt);
	return ERR_PTR(ret);
}

static void csrec_export_unmap(struct dma_buf_attachment *attach, struct sg_table *sgt,
			       enum dma_data_direction dir)
{
	struct csrec_export *e = attach->dmabuf->priv;

	dma_resv_assert_held(attach->dmabuf->resv);
	dma_unmap_sgtable(attach->dev, sgt, dir, DMA_ATTR_SKIP_CPU_SYNC);
	sg_free_table(sgt);
	kfree(sgt);
	if (!--e->maps)
		wake_up_all(&e->waitq);
}

/*
 * The memory never moves, so that there is nothing to do; but who pins it to be left alone is not
 * let in, as a reset takes it back all the same. Being there, these keep kernels before 6.16
 * from mapping the dma-buf for good when somebody attaches.
 */
static int csrec_export_pin(struct dma_buf_attachment *attach)
{
	return CSREC_PIN_IS_FOR_GOOD ? -EOPNOTSUPP : 0;
}

static void csrec_export_unpin(struct dma_buf_attachment *attach)
{
}

static void csrec_export_release(struct dma_buf *buf)
{
	struct csrec_export *e = buf->priv;
	struct csrec_dev *csd = e->csd;

	mutex_lock(&csd->exports_lock);
	list_del_init(&e->node);
	mutex_unlock(&csd->exports_lock);
	if (!e->revoked)
		csrec_dram_unuse(e->dram);
	kfree(e);
	put_device(&csd->dev);
}

static const struct dma_buf_ops csrec_export_ops = {
	.attach = csrec_export_attach,
	.pin = csrec_export_pin,
	.unpin = csrec_export_unpin,
	.map_dma_buf = csrec_export_map,
	.unmap_dma_buf = csrec_export_unmap,
	.release = csrec_export_release,
};

static struct dma_buf *csrec_export(struct csrec_dev *csd, struct csrec_dram *d, int flags)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct csrec_export *e;
	struct dma_buf *buf;

	e = kzalloc_obj(*e, GFP_KERNEL_ACCOUNT);
	if (!e)
		return ERR_PTR(-ENOMEM);
	e->csd = csd;
	e->dram = d;
	init_waitqueue_head(&e->waitq);
	info.ops = &csrec_export_ops;
	info.size = d->size;
	info.flags = flags;
	info.priv = e;
	buf = dma_buf_export(&info);
	if (IS_ERR(buf)) {
		kfree(e);
		return buf;
	}
	e->buf = buf;
	get_device(&csd->dev);
	csrec_dram_use(d);
	mutex_lock(&csd->exports_lock);
	list_add_tail(&e->node, &csd->exports);
	mutex_unlock(&csd->exports_lock);
	return buf;
}

/*
 * The device has been reset, or goes: what is exported is taken back. Importers end their use
 * of it in bounded time once they are told.
 */
void csrec_exports_revoke(struct csrec_dev *csd)
{
	struct csrec_export *e;
	bool found;

	do {
		found = false;
		mutex_lock(&csd->exports_lock);
		list_for_each_entry(e, &csd->exports, node) {
			/* else it is being released */
			if (get_file_active(&e->buf->file)) {
				list_del_init(&e->node);
				found = true;
				break;
			}
		}
		mutex_unlock(&csd->exports_lock);
		if (!found)
			break;

		dma_resv_lock(e->buf->resv, NULL);
		e->revoked = true;
		csrec_invalidate_mappings(e->buf);
		dma_resv_wait_timeout(e->buf->resv, DMA_RESV_USAGE_BOOKKEEP, false,
				      MAX_SCHEDULE_TIMEOUT);
		dma_resv_unlock(e->buf->resv);
		wait_event(e->waitq, !READ_ONCE(e->maps));
		csrec_dram_unuse(e->dram);
		fput(e->buf->file);
	} while (found);
}

int csrec_ioc_mem_export(struct csrec_ctx *ctx, void *argp)
{
	struct csrec_export_call *call = argp;
	struct csrec_mem_export *arg = &call->arg;
	struct csrec_dev *csd = ctx->csd;
	u8 rights = CSREC_RIGHT_READ;
	struct csrec_region *r;
	struct csrec_obj *obj;
	struct dma_buf *buf;
	int ret;

	if (arg->rsvd || arg->open_flags & ~(O_CLOEXEC | O_ACCMODE) ||
	    ((arg->open_flags & O_ACCMODE) != O_RDONLY &&
	     (arg->open_flags & O_ACCMODE) != O_RDWR))
		return -EINVAL;
	if ((arg->open_flags & O_ACCMODE) == O_RDWR)
		rights |= CSREC_RIGHT_WRITE;
	ret = csrec_enter(ctx);
	if (ret)
		return ret;
	obj = csrec_slot_get(&csd->regions, ctx, arg->key);
	if (!obj) {
		ret = -ENOENT;
		goto out;
	}
	r = container_of(obj, struct csrec_region, obj);
	if (!r->dram || !r->dram->va)
		buf = ERR_PTR(-EOPNOTSUPP);
	else if (rights & ~r->rights)
		buf = ERR_PTR(-EACCES);
	else
		buf = csrec_export(csd, r->dram, arg->open_flags);
	csrec_slot_put(&csd->regions, obj);
	if (IS_ERR(buf)) {
		ret = PTR_ERR(buf);
		goto out;
	}
	ret = get_unused_fd_flags(arg->open_flags & O_CLOEXEC);
	if (ret < 0) {
		dma_buf_put(buf);
		goto out;
	}
	arg->fd = ret;
	call->file = buf->file;
	ret = 0;
out:
	csrec_exit(ctx);
	return ret;
}

/* The caller knows the number, or (@ret) could not be told it. */
void csrec_export_end(struct csrec_export_call *call, int ret)
{
	if (!ret) {
		fd_install(call->arg.fd, call->file);
		return;
	}
	put_unused_fd(call->arg.fd);
	fput(call->file);
}

/* ---- import ---- */

/*
 * Memory of another exporter. Page lists say for good where it is, and so it has to stay there: an
 * attachment without invalidate_mappings() pins what it maps. Nothing stops a command at once, and
 * so no revocation is promised either: exporters that need one refuse such an attachment, and those
 * of peer-to-peer memory, which HOST regions are not for.
 */
void csrec_import_put(struct csrec_region *r)
{
	struct dma_buf *buf = r->import->dmabuf;

	if (r->import_sgt)
		dma_buf_unmap_attachment_unlocked(r->import, r->import_sgt, csrec_dma_dir(r));
	dma_buf_detach(buf, r->import);
	dma_buf_put(buf);
}

/* Is all of it host memory that the device reaches at any time, in whole pages? */
static bool csrec_import_suits(struct csrec_dev *csd, const struct csrec_region *r)
{
	struct scatterlist *sg;
	unsigned int i;
	u64 total = 0;

	for_each_sgtable_dma_sg(r->import_sgt, sg, i) {
		if (!IS_ALIGNED(sg_dma_address(sg) | sg_dma_len(sg), 4096) ||
		    dma_need_sync(&csd->pdev->dev, sg_dma_address(sg)))
			return false;
		total += sg_dma_len(sg);
	}
	return total >= r->size;
}

/* Waits until the exporter does not move it any more, which ends soon, by the rules of fences. */
static int csrec_import_host(struct csrec_dev *csd, struct csrec_region *r, struct dma_buf *buf)
{
	struct dma_buf_attachment *attach;
	struct sg_table *sgt;
	int ret;

	attach = dma_buf_attach(buf, &csd->pdev->dev);
	if (IS_ERR(attach)) {
		ret = PTR_ERR(attach);
		goto err;
	}
	get_dma_buf(buf);
	r->import = attach;
	sgt = dma_buf_map_attachment_unlocked(attach, csrec_dma_dir(r));
	if (IS_ERR(sgt)) {
		ret = PTR_ERR(sgt);
		goto err_put;
	}
	r->import_sgt = sgt;
	ret = -EOPNOTSUPP;
	if (!csrec_import_suits(csd, r))
		goto err_put;
	ret = csrec_lists_make(csd, r, sgt, 0);
	if (!ret)
		return 0;

err_put:
	csrec_import_put(r);
err:
	if (ret == -ERESTARTSYS)
		ret = -EINTR;
	/* whatever else an exporter says, it means that its memory is not for us */
	return ret == -ENOMEM || ret == -EINTR ? ret : -EOPNOTSUPP;
}

static int csrec_import_dram(struct csrec_region *r, struct dma_buf *buf)
{
	struct csrec_export *e = buf->priv;
	int ret = 0;

	dma_resv_lock(buf->resv, NULL);
	if (e->revoked) {
		ret = -EOPNOTSUPP;
	} else {
		csrec_dram_use(e->dram);
		csrec_region_set_dram(r, e->dram);
	}
	dma_resv_unlock(buf->resv);
	return ret;
}

static int csrec_import_region(struct csrec_ctx *ctx, struct csrec_region *r, struct dma_buf *buf,
			       u32 *key)
{
	struct csrec_export *e = buf->priv;
	int ret;

	if (buf->ops == &csrec_export_ops && e->csd == ctx->csd) {
		r->kind = CSREC_REGION_DRAM;
		ret = csrec_import_dram(r, buf);
	} else {
		r->kind = CSREC_REGION_HOST;
		ret = csrec_import_host(ctx->csd, r, buf);
	}
	if (ret) {
		kfree(r);
		return ret;
	}
	return csrec_region_install(ctx, r, key);
}

int csrec_ioc_mem_import(struct csrec_ctx *ctx, void *argp)
{
	struct csrec_mem_import *arg = argp;
	struct csrec_region *r;
	struct dma_buf *buf;
	int ret;

	if (arg->rsvd || !arg->rights || arg->rights & ~(CSREC_RIGHT_READ | CSREC_RIGHT_WRITE))
		return -EINVAL;
	buf = dma_buf_get(arg->fd);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	ret = -EACCES;
	if (arg->rights & CSREC_RIGHT_WRITE && !(buf->file->f_mode & FMODE_WRITE))
		goto out;
	ret = -ENOMEM;
	r = kzalloc_obj(*r, GFP_KERNEL_ACCOUNT);
	if (!r)
		goto out;
	r->rights = arg->rights;
	r->size = buf->size;
	ret = csrec_enter(ctx);
	if (ret) {
		kfree(r);
		goto out;
	}
	arg->len = buf->size;
	ret = csrec_import_region(ctx, r, buf, &arg->key);
	csrec_exit(ctx);
out:
	dma_buf_put(buf);
	return ret;
}
