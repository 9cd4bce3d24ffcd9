// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory: pinned user memory and device memory, as regions.
 */
#include <linux/dma-mapping.h>
#include <linux/dmapool.h>
#include <linux/genalloc.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/pci-p2pdma.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "csrec_trace.h"

#define CSREC_LIST_BYTES	(CSREC_PAGE_LIST_ENTRIES * sizeof(__le64))
#define CSREC_ONCHIP_SHIFT	6	/* allocation unit of on-chip memory */

/* genalloc says "none" with 0, so that own pools cannot begin there. */
#define CSREC_POOL_BIAS		BIT(48)

/* Pages pinned in one go: how long a signal waits. */
#define CSREC_PIN_BATCH		1024UL

static bool csrec_is_dram(const struct csrec_region *r)
{
	return r->kind == CSREC_REGION_DRAM;
}

/* ---- device memory ---- */

u64 csrec_dram_free_bytes(struct csrec_dev *csd)
{
	return csd->dram_size - atomic64_read(&csd->dram_used);
}

u64 csrec_onchip_free_bytes(struct csrec_dev *csd)
{
	return csd->onchip_pool ? gen_pool_avail(csd->onchip_pool) : 0;
}

static int csrec_devmem_get(struct csrec_dev *csd, struct csrec_region *r)
{
	struct pci_dev *pdev = csd->pdev;
	struct gen_pool *pool = csrec_is_dram(r) ? csd->dram_pool : csd->onchip_pool;
	unsigned long addr;

	if (csrec_is_dram(r) && csd->p2pdma) {
		r->p2p_va = pci_alloc_p2pmem(pdev, r->size);
		if (!r->p2p_va)
			return -ENOMEM;
		r->base = pci_p2pmem_virt_to_bus(pdev, r->p2p_va) -
			  pci_bus_address(pdev, CSREC_BAR_DRAM);
	} else {
		addr = pool ? gen_pool_alloc(pool, r->size) : 0;
		if (!addr)
			return -ENOMEM;
		r->base = addr - CSREC_POOL_BIAS;
	}
	if (csrec_is_dram(r))
		atomic64_add(r->size, &csd->dram_used);
	return 0;
}

static void csrec_devmem_put(struct csrec_dev *csd, struct csrec_region *r)
{
	if (r->p2p_va)
		pci_free_p2pmem(csd->pdev, r->p2p_va, r->size);
	else
		gen_pool_free(csrec_is_dram(r) ? csd->dram_pool : csd->onchip_pool,
			      r->base + CSREC_POOL_BIAS, r->size);
	if (csrec_is_dram(r))
		atomic64_sub(r->size, &csd->dram_used);
}

/*
 * Zeroes device memory before its new owner sees it. The device does it itself: the CPU
 * must not touch peer-to-peer memory, and cannot reach on-chip memory.
 */
static int csrec_devmem_zero(struct csrec_dev *csd, const struct csrec_region *r)
{
	const struct csrec_obj *win = csrec_is_dram(r) ? &csd->win_dram : &csd->win_onchip;
	struct csrec_cmd cmd = { .opcode = CSREC_OP_FILL };
	struct csrec_body_copy body = {
		.dst_key = cpu_to_le32(win->key),
		.dst_off = cpu_to_le64(r->base),
		.len = cpu_to_le64(r->size),
	};

	memcpy(cmd.body, &body, sizeof(body));
	return csrec_admin_exec(csd, &cmd, 1);
}

/* ---- user memory ---- */

static void csrec_unpin(struct csrec_dev *csd, struct csrec_region *r)
{
	unpin_user_pages_dirty_lock(r->pages, r->npages, r->rights & CSREC_RIGHT_WRITE);
	atomic64_sub((u64)r->npages << PAGE_SHIFT, &csd->pinned_bytes);
	r->npages = 0;
	kvfree(r->pages);
	r->pages = NULL;
	if (r->mm) {
		/* the mm that was charged, whoever closes the file */
		account_locked_vm(r->mm, r->charged, false);
		mmdrop(r->mm);
		r->mm = NULL;
	}
}

static int csrec_pin(struct csrec_dev *csd, struct csrec_region *r, u64 addr)
{
	/* memory that the device only reads may be mapped read-only */
	unsigned int gup = FOLL_LONGTERM | (r->rights & CSREC_RIGHT_WRITE ? FOLL_WRITE : 0);
	unsigned long total = DIV_ROUND_UP(offset_in_page(addr) + r->size, PAGE_SIZE);
	long n;
	int ret;

	addr &= PAGE_MASK;
	ret = account_locked_vm(current->mm, total, true);
	if (ret)
		return ret;
	r->mm = current->mm;
	mmgrab(r->mm);
	r->charged = total;

	r->pages = kvmalloc_array(total, sizeof(*r->pages), GFP_KERNEL_ACCOUNT);
	if (!r->pages) {
		ret = -ENOMEM;
		goto err;
	}
	while (r->npages < total) {
		if (fatal_signal_pending(current)) {
			ret = -EINTR;
			goto err;
		}
		n = pin_user_pages_fast(addr + (r->npages << PAGE_SHIFT),
					min(total - r->npages, CSREC_PIN_BATCH), gup,
					r->pages + r->npages);
		if (n <= 0) {
			/* -EREMOTEIO: peer-to-peer memory, which is never pinned for long */
			ret = n && n != -EREMOTEIO ? n : -EFAULT;
			goto err;
		}
		r->npages += n;
		atomic64_add((u64)n << PAGE_SHIFT, &csd->pinned_bytes);
	}
	return 0;

err:
	csrec_unpin(csd, r);
	return ret;
}

static enum dma_data_direction csrec_dma_dir(const struct csrec_region *r)
{
	/* not FROM_DEVICE: the device need not write all of it */
	return r->rights & CSREC_RIGHT_WRITE ? DMA_BIDIRECTIONAL : DMA_TO_DEVICE;
}

static void csrec_lists_free(struct csrec_dev *csd, struct csrec_region *r)
{
	unsigned int i;

	for (i = 0; i < r->nlists; i++)
		dma_pool_free(csd->list_pool, r->lists[i], le64_to_cpu(r->top[i]));
	r->nlists = 0;
	if (r->top)
		dma_free_coherent(&csd->pdev->dev,
				  DIV_ROUND_UP(r->npages, CSREC_PAGE_LIST_ENTRIES) * sizeof(__le64),
				  r->top, r->top_dma);
	r->top = NULL;
	kvfree(r->lists);
	r->lists = NULL;
}

/* One entry a page, whatever the DMA segments are; then a list of the lists if needed. */
static int csrec_lists_make(struct csrec_dev *csd, struct csrec_region *r)
{
	unsigned int want = DIV_ROUND_UP(r->npages, CSREC_PAGE_LIST_ENTRIES);
	struct sg_dma_page_iter iter;
	unsigned long n = 0;
	__le64 *list = NULL;
	dma_addr_t dma;

	r->lists = kvcalloc(want, sizeof(*r->lists), GFP_KERNEL_ACCOUNT);
	r->top = dma_alloc_coherent(&csd->pdev->dev, want * sizeof(*r->top), &r->top_dma,
				    GFP_KERNEL_ACCOUNT);
	if (!r->lists || !r->top)
		goto err;

	for_each_sgtable_dma_page(&r->sgt, &iter, 0) {
		if (n % CSREC_PAGE_LIST_ENTRIES == 0) {
			list = dma_pool_zalloc(csd->list_pool, GFP_KERNEL_ACCOUNT, &dma);
			if (!list)
				goto err;
			r->lists[r->nlists] = list;
			r->top[r->nlists++] = cpu_to_le64(dma);
		}
		list[n++ % CSREC_PAGE_LIST_ENTRIES] =
			cpu_to_le64(sg_page_iter_dma_address(&iter));
	}
	if (WARN_ON_ONCE(n != r->npages))
		goto err;

	if (r->nlists == 1) {
		r->levels = 1;
		r->base = le64_to_cpu(r->top[0]);
	} else {
		r->levels = 2;
		r->base = r->top_dma;
	}
	return 0;

err:
	csrec_lists_free(csd, r);
	return -ENOMEM;
}

static int csrec_map(struct csrec_dev *csd, struct csrec_region *r, u64 addr)
{
	struct device *dev = &csd->pdev->dev;
	struct scatterlist *sg;
	unsigned int i;
	int ret;

	ret = sg_alloc_table_from_pages(&r->sgt, r->pages, r->npages, 0,
					r->npages << PAGE_SHIFT, GFP_KERNEL_ACCOUNT);
	if (ret)
		return ret;
	ret = dma_map_sgtable(dev, &r->sgt, csrec_dma_dir(r), 0);
	if (ret) {
		/* there is a limit only to what bounces */
		if (dma_max_mapping_size(dev) != SIZE_MAX)
			ret = -EOPNOTSUPP;
		goto err_table;
	}
	/* nobody could say when to sync memory that is mapped for good */
	for_each_sgtable_dma_sg(&r->sgt, sg, i) {
		if (dma_need_sync(dev, sg_dma_address(sg))) {
			ret = -EOPNOTSUPP;
			goto err_map;
		}
	}

	if (r->sgt.nents == 1) {
		r->levels = 0;
		r->base = sg_dma_address(r->sgt.sgl) + offset_in_page(addr);
		return 0;
	}
	r->page_off = offset_in_page(addr);
	ret = csrec_lists_make(csd, r);
	if (!ret)
		return 0;

err_map:
	dma_unmap_sgtable(dev, &r->sgt, csrec_dma_dir(r), 0);
err_table:
	sg_free_table(&r->sgt);
	return ret;
}

static void csrec_unmap(struct csrec_dev *csd, struct csrec_region *r)
{
	csrec_lists_free(csd, r);
	dma_unmap_sgtable(&csd->pdev->dev, &r->sgt, csrec_dma_dir(r), 0);
	sg_free_table(&r->sgt);
}

/* ---- regions ---- */

static void csrec_region_cmd(struct csrec_cmd *cmd, const struct csrec_region *r)
{
	struct csrec_body_region body = {
		.region_key = cpu_to_le32(r->obj.key),
		.kind = r->kind,
		.rights = r->rights,
		.domain = cpu_to_le16(r->obj.ctx ? r->obj.ctx->domain : 0),
		.base = cpu_to_le64(r->base),
		.size = cpu_to_le64(r->size),
		.levels = r->levels,
		.page_shift = r->levels ? PAGE_SHIFT : 0,
		.page_off = cpu_to_le32(r->page_off),
	};

	memset(cmd, 0, sizeof(*cmd));
	cmd->opcode = CSREC_OP_REGION_SET;
	memcpy(cmd->body, &body, sizeof(body));
}

/* Gives back what is behind a region that the device does not know (any more). */
static void csrec_region_free(struct csrec_dev *csd, struct csrec_region *r)
{
	if (r->kind == CSREC_REGION_HOST) {
		csrec_unmap(csd, r);
		csrec_unpin(csd, r);
	} else {
		csrec_devmem_put(csd, r);
	}
	kfree(r);
}

/*
 * Makes a region known to the device. On failure the region is disposed of: at once, or,
 * if the device did not answer, with the context.
 */
static int csrec_region_install(struct csrec_ctx *ctx, struct csrec_region *r)
{
	struct csrec_dev *csd = ctx->csd;
	struct csrec_cmd cmd;
	int ret;

	r->obj.ctx = ctx;
	ret = csrec_slot_add(&csd->regions, &r->obj, &ctx->regions);
	if (ret) {
		csrec_region_free(csd, r);
		return ret;
	}
	ret = r->kind == CSREC_REGION_HOST ? 0 : csrec_devmem_zero(csd, r);
	if (!ret) {
		csrec_region_cmd(&cmd, r);
		ret = csrec_admin_exec(csd, &cmd, 1);
	}
	if (!ret) {
		trace_csrec_region_set(ctx, r);
		csrec_slot_publish(&csd->regions, &r->obj);
		return 0;
	}
	if (ret < 0)
		return ret;
	csrec_slot_del(&csd->regions, &r->obj);
	csrec_region_free(csd, r);
	return -EIO;
}

/*
 * Revokes and frees a region that is closing. If the device does not confirm, the region
 * is left to the context.
 */
static int csrec_region_destroy(struct csrec_dev *csd, struct csrec_region *r)
{
	int ret = csrec_admin_key(csd, CSREC_OP_REGION_INVAL, r->obj.key, 0);

	/* a drive may write to it as well */
	csrec_slot_wait_idle(&csd->regions, &r->obj);
	if (ret > 0) {
		/* its table is not what was written there */
		csrec_set_dead(csd, CSREC_FAILED);
		return -EIO;
	}
	if (ret)
		return ret;
	trace_csrec_region_inval(csd, r->obj.key);
	csrec_slot_del(&csd->regions, &r->obj);
	csrec_region_free(csd, r);
	return 0;
}

void csrec_regions_close(struct csrec_ctx *ctx)
{
	struct csrec_dev *csd = ctx->csd;
	struct csrec_obj *obj;

	while ((obj = csrec_slot_close_first(&csd->regions, &ctx->regions)))
		csrec_region_destroy(csd, container_of(obj, struct csrec_region, obj));
}

/* The device is stopped, and nobody else uses the context. */
void csrec_regions_teardown(struct csrec_ctx *ctx)
{
	struct csrec_region *r, *next;

	list_for_each_entry_safe(r, next, &ctx->regions, obj.node) {
		csrec_slot_del(&ctx->csd->regions, &r->obj);
		csrec_region_free(ctx->csd, r);
	}
}

int csrec_ioc_mem_register(struct csrec_ctx *ctx, void *argp)
{
	struct csrec_mem_register *arg = argp;
	struct csrec_dev *csd = ctx->csd;
	struct csrec_region *r;
	u64 end;
	int ret;

	if (!arg->rights || arg->rights & ~(CSREC_RIGHT_READ | CSREC_RIGHT_WRITE))
		return -EINVAL;
	if (!arg->len || arg->len > CSREC_MEM_MAX_PIN ||
	    check_add_overflow(arg->addr, arg->len, &end))
		return -EINVAL;

	r = kzalloc_obj(*r, GFP_KERNEL_ACCOUNT);
	if (!r)
		return -ENOMEM;
	r->kind = CSREC_REGION_HOST;
	r->rights = arg->rights;
	r->size = arg->len;
	/* may take as long as the process wants */
	ret = csrec_pin(csd, r, arg->addr);
	if (ret)
		goto err_free;
	ret = csrec_enter(ctx);
	if (ret)
		goto err_unpin;
	ret = csrec_map(csd, r, arg->addr);
	if (ret)
		goto err_exit;
	ret = csrec_region_install(ctx, r);
	if (!ret)
		arg->key = r->obj.key;
	csrec_exit(ctx);
	return ret;

err_exit:
	csrec_exit(ctx);
err_unpin:
	csrec_unpin(csd, r);
err_free:
	kfree(r);
	return ret;
}

int csrec_ioc_mem_alloc(struct csrec_ctx *ctx, void *argp)
{
	struct csrec_mem_alloc *arg = argp;
	struct csrec_dev *csd = ctx->csd;
	struct csrec_region *r;
	u64 unit, most;
	int ret;

	switch (arg->kind) {
	case CSREC_REGION_DRAM:
		unit = 4096;
		most = csd->dram_size;
		break;
	case CSREC_REGION_ONCHIP:
		unit = BIT(CSREC_ONCHIP_SHIFT);
		most = csd->cap_onchip;
		break;
	default:
		return -EINVAL;
	}
	if (!arg->len)
		return -EINVAL;
	if (arg->len > most)
		return -ENOMEM;

	r = kzalloc_obj(*r, GFP_KERNEL_ACCOUNT);
	if (!r)
		return -ENOMEM;
	r->kind = arg->kind;
	r->rights = CSREC_RIGHT_READ | CSREC_RIGHT_WRITE;
	r->size = ALIGN(arg->len, unit);
	ret = csrec_enter(ctx);
	if (ret)
		goto err_free;
	ret = csrec_devmem_get(csd, r);
	if (ret)
		goto err_exit;
	ret = csrec_region_install(ctx, r);
	if (!ret) {
		arg->key = r->obj.key;
		arg->len = r->size;
	}
	csrec_exit(ctx);
	return ret;

err_exit:
	csrec_exit(ctx);
err_free:
	kfree(r);
	return ret;
}

int csrec_ioc_mem_free(struct csrec_ctx *ctx, void *argp)
{
	struct csrec_mem_free *arg = argp;
	struct csrec_obj *obj;
	int ret;

	if (arg->rsvd)
		return -EINVAL;
	ret = csrec_enter(ctx);
	if (ret)
		return ret;
	obj = csrec_slot_close(&ctx->csd->regions, ctx, arg->key);
	if (obj)
		ret = csrec_region_destroy(ctx->csd, container_of(obj, struct csrec_region, obj));
	else
		ret = -ENOENT;
	csrec_exit(ctx);
	return ret;
}

/* ---- bounce buffer ---- */

/* Makes the bounce buffer and its region, once. Under bounce.lock. */
int csrec_bounce_get(struct csrec_dev *csd)
{
	struct csrec_bounce *b = &csd->bounce;
	size_t most = dma_max_mapping_size(&csd->pdev->dev);
	struct csrec_region r = {
		.kind = CSREC_REGION_HOST,
		.rights = CSREC_RIGHT_READ,
	};
	struct csrec_cmd cmd;
	int ret;

	lockdep_assert_held(&b->lock);
	if (b->page)
		return 0;

	b->order = CSREC_BOUNCE_ORDER;
	while (b->order && PAGE_SIZE << b->order > most)
		b->order--;
	for (; ; b->order--) {
		b->page = alloc_pages_node(dev_to_node(&csd->pdev->dev),
					   GFP_KERNEL | __GFP_COMP | __GFP_NOWARN |
					   __GFP_NORETRY, b->order);
		if (b->page || !b->order)
			break;
	}
	if (!b->page)
		return -ENOMEM;
	r.size = PAGE_SIZE << b->order;
	b->dma = dma_map_page(&csd->pdev->dev, b->page, 0, r.size, DMA_TO_DEVICE);
	ret = dma_mapping_error(&csd->pdev->dev, b->dma);
	if (ret)
		goto err_free;
	ret = csrec_slot_add(&csd->regions, &b->obj, NULL);
	if (ret)
		goto err_unmap;
	r.base = b->dma;
	r.obj.key = b->obj.key;
	csrec_region_cmd(&cmd, &r);
	ret = csrec_admin_exec(csd, &cmd, 1);
	if (!ret)
		return 0;
	if (ret < 0)
		return ret;	/* csrec_bounce_free() once the device is stopped */

	ret = -EIO;
	csrec_slot_del(&csd->regions, &b->obj);
err_unmap:
	dma_unmap_page(&csd->pdev->dev, b->dma, r.size, DMA_TO_DEVICE);
err_free:
	__free_pages(b->page, b->order);
	b->page = NULL;
	return ret;
}

/* The device is stopped. */
void csrec_bounce_free(struct csrec_dev *csd)
{
	struct csrec_bounce *b = &csd->bounce;

	if (!b->page)
		return;
	csrec_slot_del(&csd->regions, &b->obj);
	dma_unmap_page(&csd->pdev->dev, b->dma, PAGE_SIZE << b->order, DMA_TO_DEVICE);
	__free_pages(b->page, b->order);
	b->page = NULL;
}

/* ---- set-up ---- */

/*
 * Offers device DRAM as peer-to-peer memory. Without it (a kernel that lacks P2PDMA, a BAR
 * that is missing, too small or misaligned) the driver allocates from a pool of its own
 * and reads from drives bounce.
 */
static void csrec_mem_add_p2p(struct csrec_dev *csd)
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
}

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

int csrec_mem_init(struct csrec_dev *csd)
{
	unsigned int nr_regions = (csd->cap_table >> CSREC_CAPT_REGIONS_SHIFT) & 0xffff;
	unsigned int nr_fences = (csd->cap_table >> CSREC_CAPT_FENCES_SHIFT) & 0xffff;

	if (csrec_slots_init(&csd->regions, nr_regions) ||
	    csrec_slots_init(&csd->fences, nr_fences))
		goto err;
	csd->list_pool = dma_pool_create(CSREC_NAME, &csd->pdev->dev, CSREC_LIST_BYTES, 4096, 0);
	if (!csd->list_pool)
		goto err;

	csrec_mem_add_p2p(csd);
	if (!csd->p2pdma && csd->cap_dram) {
		csd->dram_size = csd->cap_dram;
		csd->dram_pool = csrec_pool(csd, csd->dram_size, 12);
		if (!csd->dram_pool)
			goto err;
	}
	if (csd->cap_onchip) {
		csd->onchip_pool = csrec_pool(csd, csd->cap_onchip, CSREC_ONCHIP_SHIFT);
		if (!csd->onchip_pool)
			goto err;
	}
	if (csrec_slot_add(&csd->regions, &csd->win_dram, NULL) ||
	    csrec_slot_add(&csd->regions, &csd->win_onchip, NULL))
		goto err;
	return 0;

err:
	csrec_mem_exit(csd);
	return -ENOMEM;
}

void csrec_mem_exit(struct csrec_dev *csd)
{
	if (csd->onchip_pool)
		gen_pool_destroy(csd->onchip_pool);
	if (csd->dram_pool)
		gen_pool_destroy(csd->dram_pool);
	/* NULL is fine; the p2pmem pool goes with the PCI device */
	dma_pool_destroy(csd->list_pool);
	csrec_slots_free(&csd->fences);
	csrec_slots_free(&csd->regions);
}

/* After each start: the admin queue's own view of all device memory, in domain 0. */
int csrec_mem_start(struct csrec_dev *csd)
{
	struct csrec_region dram = {
		.obj.key = csd->win_dram.key,
		.kind = CSREC_REGION_DRAM,
		.rights = CSREC_RIGHT_READ | CSREC_RIGHT_WRITE,
		.size = csd->dram_size,
	};
	struct csrec_region onchip = {
		.obj.key = csd->win_onchip.key,
		.kind = CSREC_REGION_ONCHIP,
		.rights = CSREC_RIGHT_READ | CSREC_RIGHT_WRITE,
		.size = csd->cap_onchip,
	};
	struct csrec_cmd cmds[2];
	unsigned int n = 0;
	int ret;

	if (dram.size)
		csrec_region_cmd(&cmds[n++], &dram);
	if (onchip.size)
		csrec_region_cmd(&cmds[n++], &onchip);
	if (!n)
		return 0;
	ret = csrec_admin_exec(csd, cmds, n);
	return ret > 0 ? -EIO : ret;
}
