// SPDX-License-Identifier: GPL-2.0-only
/*
 * Device memory: pieces of DRAM and on-chip memory, and user mappings of DRAM.
 *
 * A piece of DRAM is given back once nobody uses it: no region (which a drive may still write
 * to when its key is long gone), no dma-buf, no user mapping, and no transfer that the kernel
 * makes on pages of such a mapping. The last is seen in the pages' reference counts only, and
 * nobody tells when they fall. So a piece that is otherwise unused waits on csd->dram_idle;
 * whoever wants memory or wants to know how much there is looks there first.
 */
#include <linux/device.h>
#include <linux/genalloc.h>
#include <linux/kernfs.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/page_ref.h>
#include <linux/pci-p2pdma.h>
#include <linux/percpu-refcount.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "csrec.h"
#include "compat.h"

/* genalloc says "none" with 0, so that own pools cannot begin there. */
#define CSREC_POOL_BIAS		BIT(48)

/* Between two looks at pages that transfers have. */
#define CSREC_DRAM_LOOK		(HZ / 10)

/* Pages done between two offers of the CPU to others. */
#define CSREC_DRAM_BATCH	1024

/* ---- pools ---- */

static struct gen_pool *csrec_pool(struct csrec_dev *csd, u64 size, unsigned int shift)
{
	int node = dev_to_node(&csd->pdev->dev);
	struct gen_pool *pool = gen_pool_create(shift, node);

	if (!pool)
		return NULL;
	if (gen_pool_add(pool, CSREC_POOL_BIAS, size, node)) {
		gen_pool_destroy(pool);
		return NULL;
	}
	return pool;
}

/* Address in device memory, or -ENOMEM. @align 0: none beyond the unit. */
static s64 csrec_pool_get(struct gen_pool *pool, u64 size, u64 align)
{
	struct genpool_data_align data = { .align = align };
	unsigned long addr;

	if (!pool)
		return -ENOMEM;
	if (align > BIT(pool->min_alloc_order))
		addr = gen_pool_alloc_algo(pool, size, gen_pool_first_fit_align, &data);
	else
		addr = gen_pool_alloc(pool, size);
	return addr ? addr - CSREC_POOL_BIAS : -ENOMEM;
}

static u64 csrec_p2p_base(struct csrec_dev *csd, void *va)
{
	return pci_p2pmem_virt_to_bus(csd->pdev, va) - pci_bus_address(csd->pdev, CSREC_BAR_DRAM);
}

/* Gives back part of an allocation; the pool counts allocations, not bytes. */
static void csrec_p2p_trim(struct csrec_dev *csd, void *va, u64 size)
{
	if (!size)
		return;
	percpu_ref_get(&page_pgmap(virt_to_page(va))->ref);
	pci_free_p2pmem(csd->pdev, va, size);
}

/* The kernel's pool knows no alignment: takes more and gives back what is too much. */
static void *csrec_p2p_get(struct csrec_dev *csd, u64 size, u64 align)
{
	u64 slack = 0, skip;
	void *va;

	size = ALIGN(size, PAGE_SIZE);
	for (;;) {
		va = pci_alloc_p2pmem(csd->pdev, size + slack);
		if (!va)
			return NULL;
		skip = align ? -csrec_p2p_base(csd, va) & (align - 1) : 0;
		if (skip <= slack)
			break;
		pci_free_p2pmem(csd->pdev, va, size + slack);
		/* first as much as is missing in this place, which may be the only one */
		slack = slack ? align - PAGE_SIZE : skip;
	}
	csrec_p2p_trim(csd, va, skip);
	csrec_p2p_trim(csd, va + skip + size, slack - skip);
	return va + skip;
}

/*
 * What the pool of peer-to-peer memory has left. It is shared with whoever maps p2pmem/allocate,
 * and the kernel tells only by way of sysfs: the attribute is looked up once, and asked here.
 */
static u64 csrec_p2p_available(struct csrec_dev *csd)
{
	struct device_attribute *attr = csd->p2p_available;
	u64 avail = 0;
	char *buf;

	buf = kzalloc(PAGE_SIZE, GFP_KERNEL);
	if (!buf)
		return 0;
	if (attr->show(&csd->pdev->dev, attr, buf) <= 0 || kstrtou64(strim(buf), 10, &avail))
		avail = 0;
	kfree(buf);
	return avail;
}

static struct device_attribute *csrec_p2p_find_available(struct csrec_dev *csd)
{
	struct device_attribute *attr = NULL;
	struct kernfs_node *dir, *file;

	dir = kernfs_find_and_get(csd->pdev->dev.kobj.sd, "p2pmem");
	if (!dir)
		return NULL;
	file = kernfs_find_and_get(dir, "available");
	if (file) {
		/* static in the kernel: stays when the file goes */
		attr = container_of((struct attribute *)file->priv, struct device_attribute, attr);
		kernfs_put(file);
	}
	kernfs_put(dir);
	return attr;
}

u64 csrec_dram_free_bytes(struct csrec_dev *csd)
{
	if (csd->p2p_available)
		return csrec_p2p_available(csd);
	if (csd->dram_pool)
		return gen_pool_avail(csd->dram_pool);
	return csd->dram_size - atomic64_read(&csd->dram_used);
}

u64 csrec_onchip_free_bytes(struct csrec_dev *csd)
{
	return csd->onchip_pool ? gen_pool_avail(csd->onchip_pool) : 0;
}

/* ---- pieces of DRAM ---- */

static void csrec_dram_breathe(unsigned long i)
{
	if (i % CSREC_DRAM_BATCH == 0)
		cond_resched();
}

static unsigned long csrec_dram_npages(const struct csrec_dram *d)
{
	return DIV_ROUND_UP(d->size, PAGE_SIZE);
}

static void csrec_dram_free(struct kref *ref)
{
	struct csrec_dram *d = container_of(ref, struct csrec_dram, ref);

	put_device(&d->csd->dev);
	kfree(d);
}

void csrec_dram_put(struct csrec_dram *d)
{
	kref_put(&d->ref, csrec_dram_free);
}

/* References for user mappings to add to; see csrec_dram_take_pages(). */
static void csrec_dram_give_pages(struct csrec_dram *d)
{
	struct page *page = virt_to_page(d->va);
	unsigned long i;

	if (!CSREC_P2P_PAGE_IDLE) {
		for (i = 0; i < csrec_dram_npages(d); i++) {
			set_page_count(page + i, 1);
			csrec_dram_breathe(i);
		}
	}
	d->pages = true;
}

/* Back to how the pool wants them, all of them, unless somebody has one. */
static bool csrec_dram_take_pages(struct csrec_dram *d)
{
	struct page *page = virt_to_page(d->va);
	unsigned long n = csrec_dram_npages(d), i;

	for (i = 0; i < n; i++) {
		if (!page_ref_freeze(page + i, 1))
			break;
		csrec_dram_breathe(i);
	}
	if (i < n || CSREC_P2P_PAGE_IDLE) {
		bool all = i == n;

		while (i--) {
			page_ref_unfreeze(page + i, 1);
			csrec_dram_breathe(i);
		}
		if (!all)
			return false;
	}
	d->pages = false;
	return true;
}

/* Has each page go back to the pool by itself, with the last reference to it. */
static void csrec_dram_leave_pages(struct csrec_dram *d)
{
	struct page *page = virt_to_page(d->va);
	unsigned long n = csrec_dram_npages(d), i;

	/* one for each page from here on, not one for the allocation */
	percpu_ref_get_many(&page_pgmap(page)->ref, n - 1);
	for (i = 0; i < n; i++) {
		put_page(page + i);
		csrec_dram_breathe(i);
	}
}

/* Gives the memory back, if no transfer has any of it (@leave: in any case). */
static bool csrec_dram_release(struct csrec_dram *d, bool leave)
{
	struct csrec_dev *csd = d->csd;

	lockdep_assert_held(&csd->dram_lock);
	if (!d->pages || csrec_dram_take_pages(d)) {
		if (d->va)
			pci_free_p2pmem(csd->pdev, d->va, d->size);
		else
			gen_pool_free(csd->dram_pool, d->base + CSREC_POOL_BIAS, d->size);
	} else if (leave) {
		csrec_dram_leave_pages(d);
	} else {
		return false;
	}
	list_del_init(&d->node);
	atomic64_sub(d->size, &csd->dram_used);
	csrec_owner_uncharge(d->owner, CSREC_QUOTA_DRAM, d->size);
	/* not the last to hold the device, whose lock this is: @d does */
	csrec_owner_put(d->owner);
	d->owner = NULL;
	return true;
}

static void csrec_dram_look(struct csrec_dev *csd)
{
	struct csrec_dram *d, *next;

	lockdep_assert_held(&csd->dram_lock);
	list_for_each_entry_safe(d, next, &csd->dram_idle, node) {
		if (csrec_dram_release(d, false))
			csrec_dram_put(d);
	}
	if (!list_empty(&csd->dram_idle))
		queue_delayed_work(system_dfl_wq, &csd->dram_work, CSREC_DRAM_LOOK);
}

/* Gives back what is not used any more. */
void csrec_dram_reap(struct csrec_dev *csd)
{
	if (list_empty(&csd->dram_idle))
		return;
	mutex_lock(&csd->dram_lock);
	csrec_dram_look(csd);
	mutex_unlock(&csd->dram_lock);
}

static void csrec_dram_work(struct work_struct *work)
{
	csrec_dram_reap(container_of(to_delayed_work(work), struct csrec_dev, dram_work));
}

/* Somebody does not use it any more. */
static void csrec_dram_check(struct csrec_dram *d)
{
	struct csrec_dev *csd = d->csd;

	lockdep_assert_held(&csd->dram_lock);
	if (!d->owner || d->users || (d->maps && !d->dead))
		return;
	list_move_tail(&d->node, &csd->dram_idle);
	csrec_dram_look(csd);
	wake_up_all(&csd->dram_waitq);
}

/* A use beyond the one that there is: of a region, or a dma-buf. */
void csrec_dram_use(struct csrec_dram *d)
{
	kref_get(&d->ref);
	mutex_lock(&d->csd->dram_lock);
	d->users++;
	mutex_unlock(&d->csd->dram_lock);
}

void csrec_dram_unuse(struct csrec_dram *d)
{
	mutex_lock(&d->csd->dram_lock);
	d->users--;
	csrec_dram_check(d);
	mutex_unlock(&d->csd->dram_lock);
	csrec_dram_put(d);
}

/* With one use; its contents are those of who had it before. */
struct csrec_dram *csrec_dram_alloc(struct csrec_ctx *ctx, u64 size, u64 align)
{
	struct csrec_dev *csd = ctx->csd;
	struct csrec_dram *d;
	s64 base;
	int ret;

	d = kzalloc_obj(*d, GFP_KERNEL_ACCOUNT);
	if (!d)
		return ERR_PTR(-ENOMEM);
	d->csd = csd;
	d->size = size;
	kref_init(&d->ref);

	mutex_lock(&csd->dram_lock);
	csrec_dram_look(csd);
	ret = csrec_owner_charge(ctx->owner, CSREC_QUOTA_DRAM, size);
	if (ret)
		goto err;
	ret = -ENOMEM;
	if (csd->p2pdma) {
		d->va = csrec_p2p_get(csd, size, align);
		if (!d->va)
			goto err_uncharge;
		d->base = csrec_p2p_base(csd, d->va);
	} else {
		base = csrec_pool_get(csd->dram_pool, size, align);
		if (base < 0)
			goto err_uncharge;
		d->base = base;
	}
	d->owner = ctx->owner;
	csrec_owner_hold(d->owner);
	d->users = 1;
	/* for being on a list of the device */
	kref_get(&d->ref);
	list_add_tail(&d->node, &csd->drams);
	atomic64_add(size, &csd->dram_used);
	get_device(&csd->dev);
	mutex_unlock(&csd->dram_lock);
	return d;

err_uncharge:
	csrec_owner_uncharge(ctx->owner, CSREC_QUOTA_DRAM, size);
err:
	mutex_unlock(&csd->dram_lock);
	kfree(d);
	return ERR_PTR(ret);
}

/* ---- user mappings ---- */

static void csrec_dram_vm_open(struct vm_area_struct *vma)
{
	struct csrec_dram *d = vma->vm_private_data;

	kref_get(&d->ref);
	mutex_lock(&d->csd->dram_lock);
	d->maps++;
	mutex_unlock(&d->csd->dram_lock);
}

static void csrec_dram_vm_close(struct vm_area_struct *vma)
{
	struct csrec_dram *d = vma->vm_private_data;

	mutex_lock(&d->csd->dram_lock);
	d->maps--;
	csrec_dram_check(d);
	mutex_unlock(&d->csd->dram_lock);
	csrec_dram_put(d);
}

/*
 * A page that is in a mapping counts as referenced until it is out of it. After a reset no page
 * gets into one any more: the memory may then be another's.
 */
static vm_fault_t csrec_dram_vm_fault(struct vm_fault *vmf)
{
	struct csrec_dram *d = vmf->vma->vm_private_data;
	/* the mapping holds its file, which is its context's */
	struct csrec_ctx *ctx = vmf->vma->vm_file->private_data;
	unsigned long n = vmf->pgoff - d->pgoff;
	int ret = -EFAULT;

	mutex_lock(&ctx->map_lock);
	if (!csrec_ctx_dead(ctx) && n < csrec_dram_npages(d))
		ret = vm_insert_page(vmf->vma, vmf->address & PAGE_MASK,
				     virt_to_page(d->va) + n);
	mutex_unlock(&ctx->map_lock);
	/* another thread may have been first */
	if (!ret || ret == -EBUSY)
		return VM_FAULT_NOPAGE;
	return ret == -ENOMEM ? VM_FAULT_OOM : VM_FAULT_SIGBUS;
}

static const struct vm_operations_struct csrec_dram_vm_ops = {
	.open = csrec_dram_vm_open,
	.close = csrec_dram_vm_close,
	.fault = csrec_dram_vm_fault,
};

/* Of csrec_mmap(). Unlike what else is mapped it may be split, and inherited over fork(). */
int csrec_dram_mmap(struct csrec_dram *d, const struct csrec_map *map, struct vm_area_struct *vma)
{
	/* pages with references of their own, not VM_PFNMAP: direct I/O needs them */
	vm_flags_mod(vma, VM_MIXEDMAP, VM_DONTCOPY);
	vma->vm_page_prot = pgprot_noncached(vma->vm_page_prot);
	vma->vm_ops = &csrec_dram_vm_ops;
	vma->vm_private_data = d;

	mutex_lock(&d->csd->dram_lock);
	kref_get(&d->ref);
	if (!d->pages)
		csrec_dram_give_pages(d);
	d->pgoff = map->pgoff;
	d->maps++;
	mutex_unlock(&d->csd->dram_lock);
	return 0;
}

/* ---- on-chip memory ---- */

s64 csrec_onchip_alloc(struct csrec_dev *csd, u64 size, u64 align)
{
	return csrec_pool_get(csd->onchip_pool, size, align);
}

void csrec_onchip_free(struct csrec_dev *csd, u64 base, u64 size)
{
	gen_pool_free(csd->onchip_pool, base + CSREC_POOL_BIAS, size);
}

/* ---- set-up ---- */

/*
 * Offers device DRAM as peer-to-peer memory. Without it (a kernel that lacks P2PDMA, a BAR
 * that is missing, too small or misaligned) the driver allocates from a pool of its own
 * and reads from drives bounce.
 */
static void csrec_dram_add_p2p(struct csrec_dev *csd)
{
	struct pci_dev *pdev = csd->pdev;
	resource_size_t start = pci_resource_start(pdev, CSREC_BAR_DRAM);
	resource_size_t len = pci_resource_len(pdev, CSREC_BAR_DRAM);
	unsigned long align = memremap_compat_align();
	u64 size = min_t(u64, csd->cap_dram, len);
	int ret;

	if (!IS_ENABLED(CONFIG_PCI_P2PDMA))
		return;
	size = ALIGN_DOWN(size, align);
	/* checked here because pci_p2pdma_add_resource() answers a bad range with a WARN */
	if (!size || !IS_ALIGNED(start, align)) {
		dev_warn(&pdev->dev, "BAR %d cannot be peer-to-peer memory: %pa bytes at %pa\n",
			 CSREC_BAR_DRAM, &len, &start);
		return;
	}
	if (size < csd->cap_dram)
		dev_warn(&pdev->dev, "BAR %d shows %llu of %llu bytes of DRAM\n",
			 CSREC_BAR_DRAM, size, csd->cap_dram);
	ret = pci_p2pdma_add_resource(pdev, CSREC_BAR_DRAM, size, 0);
	if (ret) {
		dev_warn(&pdev->dev, "no peer-to-peer memory: %d\n", ret);
		return;
	}
	csd->dram_size = size;
	csd->p2pdma = true;
	csd->p2p_available = csrec_p2p_find_available(csd);
}

int csrec_dram_init(struct csrec_dev *csd)
{
	mutex_init(&csd->dram_lock);
	INIT_LIST_HEAD(&csd->drams);
	INIT_LIST_HEAD(&csd->dram_idle);
	init_waitqueue_head(&csd->dram_waitq);
	INIT_DELAYED_WORK(&csd->dram_work, csrec_dram_work);
	mutex_init(&csd->exports_lock);
	INIT_LIST_HEAD(&csd->exports);

	csrec_dram_add_p2p(csd);
	if (!csd->p2pdma && csd->cap_dram) {
		csd->dram_size = csd->cap_dram;
		csd->dram_pool = csrec_pool(csd, csd->dram_size, ilog2(CSREC_DRAM_UNIT));
		if (!csd->dram_pool)
			return -ENOMEM;
	}
	if (csd->cap_onchip) {
		csd->onchip_pool = csrec_pool(csd, csd->cap_onchip, ilog2(CSREC_ONCHIP_UNIT));
		if (!csd->onchip_pool)
			return -ENOMEM;
	}
	return 0;
}

/*
 * Mappings of memory of before are of nothing: an access is a SIGBUS, and the memory is free
 * though they are there. Of what transfers still have, the kernel waits for the rest.
 */
void csrec_dram_kill(struct csrec_dev *csd)
{
	struct csrec_dram *d, *next;

	mutex_lock(&csd->dram_lock);
	list_for_each_entry(d, &csd->drams, node)
		d->dead = true;
	list_for_each_entry_safe(d, next, &csd->drams, node)
		csrec_dram_check(d);
	mutex_unlock(&csd->dram_lock);
}

static bool csrec_dram_unused(struct csrec_dev *csd)
{
	bool unused;

	mutex_lock(&csd->dram_lock);
	unused = list_empty(&csd->drams);
	mutex_unlock(&csd->dram_lock);
	return unused;
}

/*
 * After csrec_dram_kill(), if there can be any memory. Waits for drives that are sent to it; the
 * kernel's transfers on user mappings are waited for when the pages go, after remove().
 */
void csrec_dram_exit(struct csrec_dev *csd)
{
	struct csrec_dram *d, *next;

	wait_event(csd->dram_waitq, csrec_dram_unused(csd));
	cancel_delayed_work_sync(&csd->dram_work);
	mutex_lock(&csd->dram_lock);
	list_for_each_entry_safe(d, next, &csd->dram_idle, node) {
		csrec_dram_release(d, true);
		csrec_dram_put(d);
	}
	mutex_unlock(&csd->dram_lock);
	/* the pool of peer-to-peer memory goes with the PCI device */
	if (csd->onchip_pool)
		gen_pool_destroy(csd->onchip_pool);
	if (csd->dram_pool)
		gen_pool_destroy(csd->dram_pool);
}
