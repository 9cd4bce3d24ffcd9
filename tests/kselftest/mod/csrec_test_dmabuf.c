// SPDX-License-Identifier: GPL-2.0-only
/*
 * Test module: the other side of dma-bufs. An importer of every sort, for what csrec exports,
 * and an exporter that moves its memory or takes it back, for what csrec imports. It transfers nothing.
 */
#include <linux/dma-buf.h>
#include <linux/dma-fence.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "csrec_test_dmabuf.h"

CSREC_IMPORT_NS_DMA_BUF;

struct test_export {
	struct kref ref;
	unsigned int count;
	unsigned int offset;
	unsigned int flags;
	atomic_t maps;
	atomic_t pins;
	struct page *pages[];
};

struct test_move;

struct test_file {
	struct mutex lock;	/* all of it, but for what is said */
	/* importer */
	struct pci_dev *drive;
	struct dma_buf *buf;
	struct dma_buf_attachment *attach;
	struct sg_table *sgt;	/* the dma-buf's reservation lock */
	enum dma_data_direction dir;
	struct work_struct work;
	atomic_t taken;
	/* exporter */
	struct test_export *export;
	struct dma_buf *exported;
	struct test_move *move;
};

/* The exporter is busy with its memory until this is signalled. */
struct test_move {
	struct dma_fence base;
	spinlock_t lock;
};

/* ---- importer ---- */

static void test_unmap(struct test_file *f)
{
	dma_resv_lock(f->buf->resv, NULL);
	if (f->sgt)
		dma_buf_unmap_attachment(f->attach, f->sgt, f->dir);
	f->sgt = NULL;
	dma_resv_unlock(f->buf->resv);
}

static void test_work(struct work_struct *work)
{
	test_unmap(container_of(work, struct test_file, work));
}

static void test_invalidate(struct dma_buf_attachment *attach)
{
	struct test_file *f = attach->importer_priv;

	atomic_inc(&f->taken);
	schedule_work(&f->work);
}

static const struct dma_buf_attach_ops test_ops[] = {
	[0] = { },
	[CSREC_TEST_PEER2PEER] = { .allow_peer2peer = true },
	[CSREC_TEST_REVOCABLE] = { .CSREC_INVALIDATE_MAPPINGS = test_invalidate },
	[CSREC_TEST_PEER2PEER | CSREC_TEST_REVOCABLE] = {
		.allow_peer2peer = true,
		.CSREC_INVALIDATE_MAPPINGS = test_invalidate,
	},
};

static void test_detach(struct test_file *f)
{
	if (!f->buf)
		return;
	if (!IS_ERR_OR_NULL(f->attach)) {
		test_unmap(f);
		dma_buf_detach(f->buf, f->attach);
		/* nobody queues it any more, and it finds nothing */
		flush_work(&f->work);
	}
	f->attach = NULL;
	dma_buf_put(f->buf);
	f->buf = NULL;
}

static int test_attach(struct test_file *f, struct csrec_test_attach *arg)
{
	struct device *dev = &f->drive->dev;
	unsigned int most = dma_get_max_seg_size(dev), i;
	struct scatterlist *sg;
	int ret = 0;

	if (f->buf)
		return -EBUSY;
	f->buf = dma_buf_get(arg->fd);
	if (IS_ERR(f->buf)) {
		ret = PTR_ERR(f->buf);
		f->buf = NULL;
		return ret;
	}
	if (arg->flags & CSREC_TEST_STATIC)
		f->attach = dma_buf_attach(f->buf, dev);
	else
		f->attach = dma_buf_dynamic_attach(f->buf, dev, &test_ops[arg->flags & 3], f);
	if (IS_ERR(f->attach)) {
		ret = PTR_ERR(f->attach);
		goto err;
	}
	if (arg->flags & CSREC_TEST_SHORT)
		dma_set_max_seg_size(dev, SZ_64K);
	dma_resv_lock(f->buf->resv, NULL);
	f->dir = arg->flags & CSREC_TEST_READS ? DMA_TO_DEVICE : DMA_BIDIRECTIONAL;
	f->sgt = dma_buf_map_attachment(f->attach, f->dir);
	if (IS_ERR(f->sgt)) {
		ret = PTR_ERR(f->sgt);
		f->sgt = NULL;
	} else {
		arg->nents = f->sgt->nents;
		arg->first = sg_dma_address(f->sgt->sgl);
		for_each_sgtable_dma_sg(f->sgt, sg, i) {
			arg->total += sg_dma_len(sg);
			arg->longest = max(arg->longest, sg_dma_len(sg));
		}
	}
	dma_resv_unlock(f->buf->resv);
	dma_set_max_seg_size(dev, most);
	if (!ret)
		return 0;
err:
	test_detach(f);
	return ret;
}

/* ---- exporter ---- */

static void test_export_free(struct kref *ref)
{
	struct test_export *e = container_of(ref, struct test_export, ref);
	unsigned int i;

	for (i = 0; i < e->count; i++)
		if (e->pages[i])
			__free_page(e->pages[i]);
	kfree(e);
}

static int test_export_attach(struct dma_buf *buf, struct dma_buf_attachment *attach)
{
	struct test_export *e = buf->priv;

	return e->flags & CSREC_TEST_REVOCABLE && !csrec_attach_revocable(attach) ? -EOPNOTSUPP : 0;
}

static struct sg_table *test_export_map(struct dma_buf_attachment *attach,
					enum dma_data_direction dir)
{
	struct test_export *e = attach->dmabuf->priv;
	struct scatterlist *sg;
	struct sg_table *sgt;
	unsigned int i;
	int ret;

	sgt = kzalloc_obj(*sgt);
	if (!sgt)
		return ERR_PTR(-ENOMEM);
	ret = sg_alloc_table(sgt, e->count, GFP_KERNEL);
	if (ret)
		goto err_free;
	/* from the last to the first, which are seldom contiguous */
	for_each_sgtable_sg(sgt, sg, i)
		sg_set_page(sg, e->pages[e->count - 1 - i], PAGE_SIZE - e->offset, e->offset);
	ret = dma_map_sgtable(attach->dev, sgt, dir, 0);
	if (ret)
		goto err_table;
	atomic_inc(&e->maps);
	return sgt;

err_table:
	sg_free_table(sgt);
err_free:
	kfree(sgt);
	return ERR_PTR(ret);
}

static void test_export_unmap(struct dma_buf_attachment *attach, struct sg_table *sgt,
			      enum dma_data_direction dir)
{
	struct test_export *e = attach->dmabuf->priv;

	dma_unmap_sgtable(attach->dev, sgt, dir, 0);
	sg_free_table(sgt);
	kfree(sgt);
	atomic_dec(&e->maps);
}

static int test_export_pin(struct dma_buf_attachment *attach)
{
	struct test_export *e = attach->dmabuf->priv;

	atomic_inc(&e->pins);
	return 0;
}

static void test_export_unpin(struct dma_buf_attachment *attach)
{
	struct test_export *e = attach->dmabuf->priv;

	atomic_dec(&e->pins);
}

static int test_export_mmap(struct dma_buf *buf, struct vm_area_struct *vma)
{
	struct test_export *e = buf->priv;
	unsigned long i;
	int ret = 0;

	for (i = 0; i < vma_pages(vma) && !ret; i++)
		ret = vm_insert_page(vma, vma->vm_start + i * PAGE_SIZE,
				     e->pages[e->count - 1 - vma->vm_pgoff - i]);
	return ret;
}

static void test_export_release(struct dma_buf *buf)
{
	struct test_export *e = buf->priv;

	kref_put(&e->ref, test_export_free);
}

static const struct dma_buf_ops test_export_ops = {
	.attach = test_export_attach,
	.pin = test_export_pin,
	.unpin = test_export_unpin,
	.map_dma_buf = test_export_map,
	.unmap_dma_buf = test_export_unmap,
	.mmap = test_export_mmap,
	.release = test_export_release,
};

static int test_do_export(struct test_file *f, struct csrec_test_export *arg)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct test_export *e;
	struct dma_buf *buf;
	unsigned int i;

	if (f->export)
		return -EBUSY;
	if (!arg->pages || arg->pages > 4096 || arg->offset >= PAGE_SIZE)
		return -EINVAL;
	e = kzalloc(struct_size(e, pages, arg->pages), GFP_KERNEL);
	if (!e)
		return -ENOMEM;
	kref_init(&e->ref);
	e->count = arg->pages;
	e->offset = arg->offset;
	e->flags = arg->flags;
	for (i = 0; i < e->count; i++) {
		e->pages[i] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		if (!e->pages[i])
			goto err;
	}
	info.ops = &test_export_ops;
	info.size = e->count * (PAGE_SIZE - e->offset);
	info.flags = O_RDWR;
	info.priv = e;
	buf = dma_buf_export(&info);
	if (IS_ERR(buf))
		goto err;
	/* the file keeps it as well */
	kref_get(&e->ref);
	get_dma_buf(buf);
	arg->fd = dma_buf_fd(buf, O_CLOEXEC);
	if (arg->fd < 0)
		dma_buf_put(buf);
	f->export = e;
	f->exported = buf;
	return min(arg->fd, 0);

err:
	kref_put(&e->ref, test_export_free);
	return -ENOMEM;
}

static int test_revoke(struct test_file *f)
{
	if (!f->exported)
		return -ENOENT;
	dma_resv_lock(f->exported->resv, NULL);
	csrec_invalidate_mappings(f->exported);
	dma_resv_unlock(f->exported->resv);
	return 0;
}

static const char *test_move_name(struct dma_fence *fence)
{
	return "csrec_test_dmabuf";
}

static const struct dma_fence_ops test_move_ops = {
	.get_driver_name = test_move_name,
	.get_timeline_name = test_move_name,
};

static int test_move(struct test_file *f)
{
	struct test_move *move;
	int ret;

	if (f->move) {
		dma_fence_signal(&f->move->base);
		dma_fence_put(&f->move->base);
		f->move = NULL;
		return 0;
	}
	if (!f->exported)
		return -ENOENT;
	move = kzalloc_obj(*move);
	if (!move)
		return -ENOMEM;
	spin_lock_init(&move->lock);
	dma_fence_init(&move->base, &test_move_ops, &move->lock, dma_fence_context_alloc(1), 1);
	dma_resv_lock(f->exported->resv, NULL);
	ret = dma_resv_reserve_fences(f->exported->resv, 1);
	if (!ret)
		dma_resv_add_fence(f->exported->resv, &move->base, DMA_RESV_USAGE_KERNEL);
	dma_resv_unlock(f->exported->resv);
	if (ret) {
		dma_fence_signal(&move->base);
		dma_fence_put(&move->base);
		return ret;
	}
	f->move = move;
	return 0;
}

/* ---- file ---- */

static int test_open(struct inode *inode, struct file *file)
{
	struct test_file *f = kzalloc_obj(*f);

	if (!f)
		return -ENOMEM;
	f->drive = pci_get_class(PCI_CLASS_STORAGE_EXPRESS, NULL);
	if (!f->drive) {
		kfree(f);
		return -ENODEV;
	}
	mutex_init(&f->lock);
	INIT_WORK(&f->work, test_work);
	file->private_data = f;
	return 0;
}

static int test_release(struct inode *inode, struct file *file)
{
	struct test_file *f = file->private_data;

	test_detach(f);
	if (f->move)
		test_move(f);
	if (f->exported)
		dma_buf_put(f->exported);
	if (f->export)
		kref_put(&f->export->ref, test_export_free);
	pci_dev_put(f->drive);
	mutex_destroy(&f->lock);
	kfree(f);
	return 0;
}

static long test_ioctl(struct file *file, unsigned int cmd, unsigned long argp)
{
	struct test_file *f = file->private_data;
	void __user *uarg = (void __user *)argp;
	union {
		struct csrec_test_attach attach;
		struct csrec_test_export export;
	} arg = {};
	int ret = -ENOTTY;

	if (_IOC_SIZE(cmd) > sizeof(arg) || copy_from_user(&arg, uarg, _IOC_SIZE(cmd)))
		return -EFAULT;
	mutex_lock(&f->lock);
	switch (cmd) {
	case CSREC_TEST_IOC_ATTACH:
		ret = test_attach(f, &arg.attach);
		break;
	case CSREC_TEST_IOC_TAKEN:
		ret = atomic_read(&f->taken);
		break;
	case CSREC_TEST_IOC_EXPORT:
		ret = test_do_export(f, &arg.export);
		break;
	case CSREC_TEST_IOC_REVOKE:
		ret = test_revoke(f);
		break;
	case CSREC_TEST_IOC_MOVE:
		ret = test_move(f);
		break;
	case CSREC_TEST_IOC_MAPS:
		ret = f->export ? atomic_read(&f->export->maps) : -ENOENT;
		break;
	case CSREC_TEST_IOC_PINS:
		ret = f->export ? atomic_read(&f->export->pins) : -ENOENT;
		break;
	}
	mutex_unlock(&f->lock);
	if (ret >= 0 && copy_to_user(uarg, &arg, _IOC_SIZE(cmd)))
		return -EFAULT;
	return ret;
}

static const struct file_operations test_fops = {
	.owner = THIS_MODULE,
	.open = test_open,
	.release = test_release,
	.unlocked_ioctl = test_ioctl,
};

static struct miscdevice test_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "csrec_test_dmabuf",
	.fops = &test_fops,
	.mode = 0600,
};
module_misc_device(test_misc);

MODULE_DESCRIPTION("csrec test: the other side of dma-bufs");
MODULE_LICENSE("GPL");
