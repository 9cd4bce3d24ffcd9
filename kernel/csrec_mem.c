// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory: pinned user memory and device memory, as regions.
 */
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "csrec_pages.h"
#include "csrec_trace.h"

#define CSREC_LIST_BYTES	(CSREC_PAGE_LIST_ENTRIES * sizeof(__le64))
/* Pages pinned in one go: how long a signal waits. */
#define CSREC_PIN_BATCH		512UL

/* ---- device memory ---- */

/*
 * Zeroes device memory before its new owner sees it. The device does it itself: the CPU
 * must not touch peer-to-peer memory, and cannot reach on-chip memory.
 */
static int csrec_devmem_zero(struct csrec_dev *csd, const struct csrec_region *r)
{
	const struct csrec_obj *win = r->dram ? &csd->win_dram : &csd->win_onchip;
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
	unsigned long done, n, len;
	struct scatterlist *sg;
	unsigned int i;

	for_each_sgtable_sg(&r->sgt.sgt, sg, i) {
		len = sg->length >> PAGE_SHIFT;
		for (done = 0; done < len; done += n) {
			n = min(len - done, CSREC_PIN_BATCH);
			unpin_user_page_range_dirty_lock(sg_page(sg) + done, n,
							 r->rights & CSREC_RIGHT_WRITE);
			cond_resched();
		}
	}
	sg_free_append_table(&r->sgt);
	atomic64_sub((u64)r->npages << PAGE_SHIFT, &csd->pinned_bytes);
	r->npages = 0;
	if (r->mm) {
		/* the mm that was charged, whoever closes the file */
		atomic64_sub(r->charged, &r->mm->pinned_vm);
		mmdrop(r->mm);
		r->mm = NULL;
	}
}

/* What is remembered of pages is how they follow one another: the less, the larger they are. */
static int csrec_pin(struct csrec_dev *csd, struct csrec_region *r, u64 addr)
{
	/* memory that the device only reads may be mapped read-only */
	unsigned int gup = FOLL_LONGTERM | (r->rights & CSREC_RIGHT_WRITE ? FOLL_WRITE : 0);
	unsigned long total = DIV_ROUND_UP(offset_in_page(addr) + r->size, PAGE_SIZE);
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	struct page **pages;
	int ret = 0;
	long n;

	addr &= PAGE_MASK;
	pages = kmalloc_array(CSREC_PIN_BATCH, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return -ENOMEM;
	/* without mmap_lock, as memory is unpinned under the reset_lock, too */
	if (atomic64_add_return(total, &current->mm->pinned_vm) > limit &&
	    !capable(CAP_IPC_LOCK)) {
		atomic64_sub(total, &current->mm->pinned_vm);
		ret = -ENOMEM;
		goto out;
	}
	r->mm = current->mm;
	mmgrab(r->mm);
	r->charged = total;

	while (r->npages < total) {
		if (fatal_signal_pending(current)) {
			ret = -EINTR;
			break;
		}
		n = pin_user_pages_fast(addr + (r->npages << PAGE_SHIFT),
					min(total - r->npages, CSREC_PIN_BATCH), gup, pages);
		if (n <= 0) {
			/* -EREMOTEIO: peer-to-peer memory, which is never pinned for long */
			ret = n && n != -EREMOTEIO ? n : -EFAULT;
			break;
		}
		ret = sg_alloc_append_table_from_pages(&r->sgt, pages, n, 0, n << PAGE_SHIFT,
						       UINT_MAX, total - r->npages - n,
						       GFP_KERNEL_ACCOUNT);
		if (ret) {
			unpin_user_pages(pages, n);
			break;
		}
		r->npages += n;
		atomic64_add((u64)n << PAGE_SHIFT, &csd->pinned_bytes);
		cond_resched();
	}
	if (ret)
		csrec_unpin(csd, r);
out:
	kfree(pages);
	return ret;
}

enum dma_data_direction csrec_dma_dir(const struct csrec_region *r)
{
	/* not FROM_DEVICE: the device need not write all of it */
	return r->rights & CSREC_RIGHT_WRITE ? DMA_BIDIRECTIONAL : DMA_TO_DEVICE;
}

static void csrec_lists_free(struct csrec_dev *csd, struct csrec_region *r)
{
	unsigned int i;

	for (i = 0; i < r->nlists; i++) {
		dma_free_coherent(&csd->pdev->dev, CSREC_LIST_BYTES, r->lists[i],
				  le64_to_cpu(r->top[i]));
		cond_resched();
	}
	r->nlists = 0;
	if (r->top)
		dma_free_coherent(&csd->pdev->dev, r->top_size, r->top, r->top_dma);
	r->top = NULL;
	kvfree(r->lists);
	r->lists = NULL;
}

/* Puts page number @n on the lists. */
static int csrec_lists_add(struct csrec_dev *csd, struct csrec_region *r, u64 n, u64 page)
{
	dma_addr_t dma;
	__le64 *list;

	if (n % CSREC_PAGE_LIST_ENTRIES == 0) {
		/* no pool, whose pages would stay on the account of who came first */
		list = dma_alloc_coherent(&csd->pdev->dev, CSREC_LIST_BYTES, &dma,
					  GFP_KERNEL_ACCOUNT);
		if (!list)
			return -ENOMEM;
		r->lists[r->nlists] = list;
		r->top[r->nlists++] = cpu_to_le64(dma);
	}
	list = r->lists[r->nlists - 1];
	list[n % CSREC_PAGE_LIST_ENTRIES] = cpu_to_le64(page);
	return 0;
}

/*
 * How the device finds a HOST region: its memory begins @offset bytes into what is mapped
 * in @sgt, whose segments begin and end at multiples of 4096.
 */
int csrec_lists_make(struct csrec_dev *csd, struct csrec_region *r, const struct sg_table *sgt,
		     unsigned int offset)
{
	u64 first = sg_dma_address(sgt->sgl) + offset;
	u64 page, n = 0, npages, nlists;
	struct csrec_pages pages = {};
	struct scatterlist *sg;
	unsigned int shift, i;

	for_each_sgtable_dma_sg(sgt, sg, i) {
		csrec_pages_look(&pages, sg_dma_address(sg), sg_dma_len(sg));
		if (i % CSREC_PAGE_LIST_ENTRIES == 0)
			cond_resched();
	}
	shift = csrec_pages_shift(&pages);
	if (shift > CSREC_MAX_PAGE_SHIFT) {
		r->levels = 0;
		r->base = first;
		return 0;
	}
	r->page_shift = shift;
	r->page_off = first & (BIT_ULL(shift) - 1);
	npages = DIV_ROUND_UP_ULL(r->page_off + r->size, BIT_ULL(shift));
	nlists = DIV_ROUND_UP_ULL(npages, CSREC_PAGE_LIST_ENTRIES);

	r->lists = kvcalloc(nlists, sizeof(*r->lists), GFP_KERNEL_ACCOUNT);
	r->top_size = nlists * sizeof(*r->top);
	r->top = dma_alloc_coherent(&csd->pdev->dev, r->top_size, &r->top_dma,
				    GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!r->lists || !r->top)
		goto err;

	memset(&pages, 0, sizeof(pages));
	for_each_sgtable_dma_sg(sgt, sg, i) {
		csrec_pages_begin(&pages, sg_dma_address(sg), sg_dma_len(sg), shift);
		while (n < npages && csrec_pages_next(&pages, shift, &page)) {
			if (csrec_lists_add(csd, r, n++, page))
				goto err;
			if (n % CSREC_PAGE_LIST_ENTRIES == 0)
				cond_resched();
		}
	}
	if (WARN_ON_ONCE(n != npages))
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
	struct sg_table *sgt = &r->sgt.sgt;
	struct scatterlist *sg;
	unsigned int i;
	int ret;

	/*
	 * Nobody could say when to sync memory that is mapped for good, and as often as it is
	 * registered. Kernels that cannot be told so are asked.
	 */
	ret = dma_map_sgtable(dev, sgt, csrec_dma_dir(r), DMA_ATTR_REQUIRE_COHERENT);
	if (ret) {
		/* there is a limit only to what bounces */
		return dma_max_mapping_size(dev) != SIZE_MAX ? -EOPNOTSUPP : ret;
	}
	for_each_sgtable_dma_sg(sgt, sg, i) {
		if (dma_need_sync(dev, sg_dma_address(sg))) {
			ret = -EOPNOTSUPP;
			goto err;
		}
	}
	ret = csrec_lists_make(csd, r, sgt, offset_in_page(addr));
	if (!ret)
		return 0;

err:
	dma_unmap_sgtable(dev, sgt, csrec_dma_dir(r), DMA_ATTR_REQUIRE_COHERENT);
	return ret;
}

static void csrec_unmap(struct csrec_dev *csd, struct csrec_region *r)
{
	csrec_lists_free(csd, r);
	dma_unmap_sgtable(&csd->pdev->dev, &r->sgt.sgt, csrec_dma_dir(r),
			  DMA_ATTR_REQUIRE_COHERENT);
}

/* ---- regions ---- */

void csrec_region_cmd(struct csrec_cmd *cmd, const struct csrec_region *r)
{
	struct csrec_body_region body = {
		.region_key = cpu_to_le32(r->obj.key),
		.kind = r->kind,
		.rights = r->rights,
		.domain = cpu_to_le16(r->obj.ctx ? r->obj.ctx->domain : 0),
		.base = cpu_to_le64(r->base),
		.size = cpu_to_le64(r->size),
		.levels = r->levels,
		.page_shift = r->page_shift,
		.page_off = cpu_to_le32(r->page_off),
	};

	memset(cmd, 0, sizeof(*cmd));
	cmd->opcode = CSREC_OP_REGION_SET;
	memcpy(cmd->body, &body, sizeof(body));
}

/* Gives back what is behind a region that the device does not know (any more). */
static void csrec_region_free(struct csrec_dev *csd, struct csrec_region *r)
{
	switch (r->kind) {
	case CSREC_REGION_HOST:
		if (r->import) {
			csrec_lists_free(csd, r);
			csrec_import_put(r);
		} else {
			csrec_unmap(csd, r);
			csrec_unpin(csd, r);
		}
		break;
	case CSREC_REGION_DRAM:
		csrec_dram_unuse(r->dram);
		break;
	default:
		csrec_onchip_free(csd, r->base, r->size);
	}
	kfree(r);
}

/* Of a region that is off the table already: DRAM, which a drive had. */
static void csrec_region_release(struct csrec_obj *obj)
{
	struct csrec_region *r = container_of(obj, struct csrec_region, obj);

	csrec_dram_unuse(r->dram);
	kfree(r);
}

/* @r takes over one use of @d. */
void csrec_region_set_dram(struct csrec_region *r, struct csrec_dram *d)
{
	r->dram = d;
	r->base = d->base;
	r->p2p_va = d->va;
	r->obj.release = csrec_region_release;
}

static int csrec_region_mmap(struct csrec_map *map, struct vm_area_struct *vma)
{
	return csrec_dram_mmap(container_of(map, struct csrec_region, map)->dram, map, vma);
}

static const struct csrec_map_ops csrec_region_map_ops = {
	.mmap = csrec_region_mmap,
};

/* DRAM is on the account of who allocated it, and for longer: see csrec_dram.c. */
static int csrec_region_charge(struct csrec_owner *owner, const struct csrec_region *r)
{
	int ret = csrec_owner_charge(owner, CSREC_QUOTA_REGIONS, 1);

	if (ret || r->kind != CSREC_REGION_ONCHIP)
		return ret;
	ret = csrec_owner_charge(owner, CSREC_QUOTA_ONCHIP, r->size);
	if (ret)
		csrec_owner_uncharge(owner, CSREC_QUOTA_REGIONS, 1);
	return ret;
}

static void csrec_region_uncharge(struct csrec_owner *owner, const struct csrec_region *r)
{
	if (r->kind == CSREC_REGION_ONCHIP)
		csrec_owner_uncharge(owner, CSREC_QUOTA_ONCHIP, r->size);
	csrec_owner_uncharge(owner, CSREC_QUOTA_REGIONS, 1);
}

/* The device does not know it (any more). */
static void csrec_region_del(struct csrec_dev *csd, struct csrec_region *r)
{
	/* while there is a context: it may close once the region is off its list */
	csrec_region_uncharge(r->obj.ctx->owner, r);
	/* mappings that are there stay, and have the memory stay */
	if (r->map.ops)
		csrec_map_del(r->obj.ctx, &r->map);
	if (csrec_slot_del(&csd->regions, &r->obj))
		csrec_region_free(csd, r);
}

/*
 * Gives a region a key, which cannot be used yet. From here on the region is the context's, also
 * if the device does not answer any more; on failure it is disposed of.
 */
static int csrec_region_add(struct csrec_ctx *ctx, struct csrec_region *r)
{
	int ret;

	r->obj.ctx = ctx;
	ret = csrec_region_charge(ctx->owner, r);
	if (ret)
		goto err;
	ret = csrec_slot_add(&ctx->csd->regions, &r->obj, &ctx->regions);
	if (!ret)
		return 0;
	csrec_region_uncharge(ctx->owner, r);
err:
	csrec_region_free(ctx->csd, r);
	return ret;
}

static int csrec_region_set(struct csrec_dev *csd, struct csrec_region *r)
{
	struct csrec_cmd cmd;
	int ret;

	csrec_region_cmd(&cmd, r);
	ret = csrec_admin_exec(csd, &cmd, 1);
	if (!ret)
		trace_csrec_region_set(r->obj.ctx, r);
	return ret;
}

/* After a failure of the admin queue: what the ioctl returns. */
static int csrec_region_fail(struct csrec_dev *csd, struct csrec_region *r, int status)
{
	if (status < 0)
		return status;
	csrec_region_del(csd, r);
	return -EIO;
}

/*
 * Makes a region known to the device. On success it is everybody's who knows or guesses the key,
 * so that the caller has no right to look at it any more.
 */
int csrec_region_install(struct csrec_ctx *ctx, struct csrec_region *r, u32 *key)
{
	int ret = csrec_region_add(ctx, r);

	if (ret)
		return ret;
	ret = csrec_region_set(ctx->csd, r);
	if (ret)
		return csrec_region_fail(ctx->csd, r, ret);
	*key = r->obj.key;
	csrec_slot_publish(&ctx->csd->regions, &r->obj);
	return 0;
}

/*
 * Revokes and frees a region that is closing. If the device does not confirm, the region
 * is left to the context. A drive that writes to it is not waited for: the memory is not
 * given out again before it is done.
 */
static int csrec_region_destroy(struct csrec_dev *csd, struct csrec_region *r)
{
	int ret = csrec_admin_key(csd, CSREC_OP_REGION_INVAL, r->obj.key, 0);

	if (ret > 0) {
		/* its table is not what was written there */
		csrec_set_dead(csd, CSREC_FAILED);
		return -EIO;
	}
	if (ret)
		return ret;
	trace_csrec_region_inval(csd, r->obj.key);
	/* other kinds are looked at by who wanted DRAM, and put at once */
	if (!r->dram)
		csrec_slot_wait_idle(&csd->regions, &r->obj);
	csrec_region_del(csd, r);
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

	list_for_each_entry_safe(r, next, &ctx->regions, obj.node)
		csrec_region_del(ctx->csd, r);
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
	ret = csrec_region_install(ctx, r, &arg->key);
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

/* What is behind a region of device memory. */
static int csrec_devmem_get(struct csrec_ctx *ctx, struct csrec_region *r, u64 align)
{
	struct csrec_dram *d;
	s64 base;

	if (r->kind == CSREC_REGION_ONCHIP) {
		base = csrec_onchip_alloc(ctx->csd, r->size, align);
		if (base < 0)
			return base;
		r->base = base;
		return 0;
	}
	d = csrec_dram_alloc(ctx, r->size, align);
	if (IS_ERR(d))
		return PTR_ERR(d);
	csrec_region_set_dram(r, d);
	return 0;
}

/* Where to map it, or 0. Offsets can be guessed: it must be zeroed before. */
static u64 csrec_region_map_add(struct csrec_ctx *ctx, struct csrec_region *r)
{
	if (!r->p2p_va)
		return 0;
	r->map.ops = &csrec_region_map_ops;
	if (!csrec_map_add(ctx, &r->map, DIV_ROUND_UP(r->size, PAGE_SIZE)))
		return r->map.pgoff << PAGE_SHIFT;
	r->map.ops = NULL;
	return 0;
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
		unit = CSREC_DRAM_UNIT;
		most = csd->dram_size;
		break;
	case CSREC_REGION_ONCHIP:
		unit = CSREC_ONCHIP_UNIT;
		most = csd->cap_onchip;
		break;
	default:
		return -EINVAL;
	}
	if (!arg->len || arg->align > CSREC_MEM_MAX_ALIGN ||
	    (arg->align && !is_power_of_2(arg->align)))
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
	ret = csrec_devmem_get(ctx, r, arg->align);
	if (ret)
		goto err_exit;
	ret = csrec_region_add(ctx, r);
	if (ret)
		goto out;
	ret = csrec_devmem_zero(csd, r) ?: csrec_region_set(csd, r);
	if (ret) {
		ret = csrec_region_fail(csd, r, ret);
		goto out;
	}
	arg->len = r->size;
	arg->mmap_offset = csrec_region_map_add(ctx, r);
	arg->key = r->obj.key;
	csrec_slot_publish(&csd->regions, &r->obj);
out:
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

/* ---- set-up ---- */

int csrec_mem_init(struct csrec_dev *csd)
{
	unsigned int nr_regions = (csd->cap_table >> CSREC_CAPT_REGIONS_SHIFT) & 0xffff;
	unsigned int nr_fences = (csd->cap_table >> CSREC_CAPT_FENCES_SHIFT) & 0xffff;

	if (csrec_dram_init(csd) || csrec_slots_init(&csd->regions, nr_regions) ||
	    csrec_slots_init(&csd->fences, nr_fences))
		goto err;
	if (csrec_slot_add(&csd->regions, &csd->win_dram, NULL) ||
	    csrec_slot_add(&csd->regions, &csd->win_onchip, NULL))
		goto err;
	/* no process has so many regions that a transfer cannot bounce; one is left to be of use */
	csd->regions.reserve = min(CSREC_BOUNCE_SLOTS, nr_regions - CSREC_MIN_REGIONS + 1);
	return 0;

err:
	csrec_mem_exit(csd);
	return -ENOMEM;
}

void csrec_mem_exit(struct csrec_dev *csd)
{
	csrec_dram_exit(csd);
	csrec_slots_free(&csd->fences);
	csrec_slots_free(&csd->regions);
}

/*
 * The device was stopped, and nobody can begin anything new with memory of before. Without the
 * reset_lock.
 */
void csrec_mem_stop(struct csrec_dev *csd)
{
	csrec_dram_kill(csd);
	csrec_exports_revoke(csd);
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
