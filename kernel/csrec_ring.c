// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rings: memory, phase, doorbell, and processes that map them. The callers lock.
 */
#include <linux/dma-mapping.h>
#include <linux/log2.h>
#include <linux/mm.h>

#include "csrec.h"
#include "csrec_ring.h"

static u64 csrec_doorbell_off(const struct csrec_dev *csd, unsigned int qid)
{
	unsigned int stride = (csd->cap_queue >> CSREC_CAPQ_STRIDE_SHIFT) & 0xff;

	return (csd->cap_queue >> CSREC_CAPQ_DB_SHIFT) + ((u64)qid << stride);
}

int csrec_ring_alloc(struct csrec_dev *csd, struct csrec_ring *ring, unsigned int qid,
		     u32 entries)
{
	struct device *dev = &csd->pdev->dev;

	memset(ring, 0, sizeof(*ring));
	ring->entries = entries;
	ring->doorbell = csd->regs + csrec_doorbell_off(csd, qid);
	ring->sq = dma_alloc_coherent(dev, entries * sizeof(*ring->sq), &ring->sq_dma,
				      GFP_KERNEL_ACCOUNT);
	if (!ring->sq)
		return -ENOMEM;
	ring->cq = dma_alloc_coherent(dev, entries * sizeof(*ring->cq), &ring->cq_dma,
				      GFP_KERNEL_ACCOUNT);
	if (!ring->cq) {
		dma_free_coherent(dev, entries * sizeof(*ring->sq), ring->sq, ring->sq_dma);
		ring->sq = NULL;
		return -ENOMEM;
	}
	return 0;
}

void csrec_ring_free(struct csrec_dev *csd, struct csrec_ring *ring)
{
	struct device *dev = &csd->pdev->dev;

	if (!ring->sq)
		return;
	if (ring->umem) {
		dma_unmap_page(dev, ring->cq_dma, ring->umem->cq_len, DMA_BIDIRECTIONAL);
		dma_unmap_page(dev, ring->sq_dma, ring->umem->sq_len, DMA_BIDIRECTIONAL);
		csrec_umem_put(ring->umem);
	} else {
		dma_free_coherent(dev, ring->entries * sizeof(*ring->cq), ring->cq, ring->cq_dma);
		dma_free_coherent(dev, ring->entries * sizeof(*ring->sq), ring->sq, ring->sq_dma);
	}
	ring->sq = NULL;
}

/* Empty, whatever the memory says; then csrec_ring_clear(). */
void csrec_ring_rewind(struct csrec_ring *ring)
{
	ring->tail = 0;
	ring->posted = 0;
	ring->head = 0;
}

/* Memory as new, for a device that has forgotten this queue. */
void csrec_ring_clear(struct csrec_ring *ring)
{
	memset(ring->sq, 0, ring->entries * sizeof(*ring->sq));
	memset(ring->cq, 0, ring->entries * sizeof(*ring->cq));
	if (ring->umem)
		memset(ring->ctl, 0, sizeof(*ring->ctl));
	/* seen by the device before it is told of the ring */
	dma_wmb();
}

/* Moves @posted on over new completions. True if there were any. */
bool csrec_ring_scan(struct csrec_ring *ring)
{
	u32 n = csrec_cq_count(ring->cq, ring->entries, ring->posted, ring->tail - ring->posted);

	if (!n)
		return false;
	ring->posted += n;
	/* the phase bits were read before the rest of the completions is */
	dma_rmb();
	return true;
}

/* How many completions, up to @most, a process has not consumed from a ring that it maps. */
u32 csrec_ring_unread(const struct csrec_ring *ring, u32 most)
{
	return csrec_cq_count(ring->cq, ring->entries, READ_ONCE(ring->ctl->cq_head), most);
}

/* Behind the tail; neither moves it nor rings. The caller has checked for room. */
void csrec_ring_write(struct csrec_ring *ring, const struct csrec_cmd *cmd, u32 n)
{
	u32 first = csrec_ring_first(ring->entries, ring->tail, n);

	memcpy(&ring->sq[csrec_ring_slot(ring->entries, ring->tail)], cmd, first * sizeof(*cmd));
	memcpy(&ring->sq[0], cmd + first, (n - first) * sizeof(*cmd));
}

/*
 * The completion head travels with the next doorbell and never needs one of its own: no
 * more than @entries commands are written beyond the head that was told last, so each
 * of them already has its slot in the completion ring.
 */
void csrec_ring_doorbell(struct csrec_dev *csd, const struct csrec_ring *ring, u32 tail,
			 u32 head)
{
	writeq((u64)tail << CSREC_DB_SQ_TAIL_SHIFT | (u64)head << CSREC_DB_CQ_HEAD_SHIFT,
	       ring->doorbell);
	atomic64_inc(&csd->doorbells);
}

/* ---- rings that a process maps ---- */

/* Pages that each go their own way: who has mapped one keeps it. */
static struct page *csrec_umem_pages(struct csrec_dev *csd, size_t len)
{
	unsigned int order = get_order(len);
	unsigned long i, n = PAGE_ALIGN(len) >> PAGE_SHIFT;
	struct page *page = alloc_pages_node(dev_to_node(&csd->pdev->dev),
					     GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN, order);

	if (!page)
		return NULL;
	split_page(page, order);
	for (i = n; i < BIT(order); i++)
		__free_page(page + i);
	return page;
}

static void csrec_umem_free_pages(struct page *page, size_t len)
{
	unsigned long i;

	for (i = 0; page && i < PAGE_ALIGN(len) >> PAGE_SHIFT; i++)
		__free_page(page + i);
}

static void csrec_umem_free(struct csrec_umem *um)
{
	csrec_umem_free_pages(um->sq, um->sq_len);
	csrec_umem_free_pages(um->cq, um->cq_len);
	csrec_umem_free_pages(um->dummy, PAGE_SIZE);
	kfree(um);
}

static void csrec_umem_release(struct kref *ref)
{
	csrec_umem_free(container_of(ref, struct csrec_umem, ref));
}

void csrec_umem_put(struct csrec_umem *um)
{
	kref_put(&um->ref, csrec_umem_release);
}

static void csrec_umem_open(struct vm_area_struct *vma)
{
	struct csrec_umem *um = vma->vm_private_data;

	kref_get(&um->ref);
}

static void csrec_umem_close(struct vm_area_struct *vma)
{
	csrec_umem_put(vma->vm_private_data);
}

/* Alive or dead, the rings are memory, and nothing is lost if a zap comes in between. */
static vm_fault_t csrec_umem_fault_ring(struct vm_fault *vmf)
{
	struct csrec_umem *um = vmf->vma->vm_private_data;
	unsigned long i = vmf->pgoff - vmf->vma->vm_pgoff;
	unsigned long sq_pages = um->sq_len >> PAGE_SHIFT;

	if (i >= sq_pages + (um->cq_len >> PAGE_SHIFT))
		return VM_FAULT_SIGBUS;
	vmf->page = i < sq_pages ? um->sq + i : um->cq + (i - sq_pages);
	get_page(vmf->page);
	return 0;
}

/* The doorbell page of the device; or, once it must not be rung any more, one that is nobody's. */
static vm_fault_t csrec_umem_fault_db(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct csrec_umem *um = vma->vm_private_data;
	struct csrec_ctx *ctx = vma->vm_file->private_data;
	vm_fault_t ret;

	mutex_lock(&ctx->map_lock);
	if (csrec_map_live(ctx, &um->db_map))
		ret = vmf_insert_pfn(vma, vma->vm_start, um->db_pfn);
	else
		ret = vmf_insert_pfn_prot(vma, vma->vm_start, page_to_pfn(um->dummy),
					  vm_get_page_prot(vma->vm_flags));
	mutex_unlock(&ctx->map_lock);
	return ret;
}

static const struct vm_operations_struct csrec_umem_ring_vm_ops = {
	.open = csrec_umem_open,
	.close = csrec_umem_close,
	.may_split = csrec_may_split,
	.fault = csrec_umem_fault_ring,
};

static const struct vm_operations_struct csrec_umem_db_vm_ops = {
	.open = csrec_umem_open,
	.close = csrec_umem_close,
	.may_split = csrec_may_split,
	.fault = csrec_umem_fault_db,
};

static int csrec_umem_mmap_ring(struct csrec_map *map, struct vm_area_struct *vma)
{
	struct csrec_umem *um = container_of(map, struct csrec_umem, ring_map);

	kref_get(&um->ref);
	vma->vm_private_data = um;
	vma->vm_ops = &csrec_umem_ring_vm_ops;
	return 0;
}

static int csrec_umem_mmap_db(struct csrec_map *map, struct vm_area_struct *vma)
{
	struct csrec_umem *um = container_of(map, struct csrec_umem, db_map);

	kref_get(&um->ref);
	vm_flags_set(vma, VM_IO | VM_PFNMAP);
	vma->vm_page_prot = pgprot_noncached(vma->vm_page_prot);
	vma->vm_private_data = um;
	vma->vm_ops = &csrec_umem_db_vm_ops;
	return 0;
}

static const struct csrec_map_ops csrec_umem_ring_ops = { .mmap = csrec_umem_mmap_ring };
static const struct csrec_map_ops csrec_umem_db_ops = { .mmap = csrec_umem_mmap_db };

static int csrec_umem_dma(struct csrec_dev *csd, struct page *page, size_t len, dma_addr_t *dma)
{
	struct device *dev = &csd->pdev->dev;

	*dma = dma_map_page(dev, page, 0, len, DMA_BIDIRECTIONAL);
	if (dma_mapping_error(dev, *dma))
		return -ENOMEM;
	/* nobody could say when to sync a ring */
	if (dma_need_sync(dev, *dma)) {
		dma_unmap_page(dev, *dma, len, DMA_BIDIRECTIONAL);
		return -EOPNOTSUPP;
	}
	return 0;
}

/* As csrec_ring_alloc(), but with pages which a process of @ctx may map once they are added. */
int csrec_ring_alloc_umem(struct csrec_ctx *ctx, struct csrec_ring *ring, unsigned int qid,
			  u32 entries)
{
	struct csrec_dev *csd = ctx->csd;
	struct csrec_umem *um;
	int ret;

	memset(ring, 0, sizeof(*ring));
	um = kzalloc_obj(*um, GFP_KERNEL_ACCOUNT);
	if (!um)
		return -ENOMEM;
	kref_init(&um->ref);
	INIT_LIST_HEAD(&um->ring_map.node);
	INIT_LIST_HEAD(&um->db_map.node);
	um->ring_map.ops = &csrec_umem_ring_ops;
	um->db_map.ops = &csrec_umem_db_ops;
	um->sq_len = csrec_map_cq_off(entries, PAGE_SIZE);
	um->cq_len = csrec_map_len(entries, PAGE_SIZE) - um->sq_len;
	um->db_pfn = (pci_resource_start(csd->pdev, CSREC_BAR_REG) +
		      csrec_doorbell_off(csd, qid)) >> PAGE_SHIFT;
	um->sq = csrec_umem_pages(csd, um->sq_len);
	um->cq = csrec_umem_pages(csd, um->cq_len);
	um->dummy = csrec_umem_pages(csd, PAGE_SIZE);
	ret = -ENOMEM;
	if (!um->sq || !um->cq || !um->dummy)
		goto err_free;
	ret = csrec_umem_dma(csd, um->sq, um->sq_len, &ring->sq_dma);
	if (ret)
		goto err_free;
	ret = csrec_umem_dma(csd, um->cq, um->cq_len, &ring->cq_dma);
	if (ret)
		goto err_unmap;

	ring->entries = entries;
	ring->doorbell = csd->regs + csrec_doorbell_off(csd, qid);
	ring->umem = um;
	ring->sq = page_address(um->sq);
	ring->cq = page_address(um->cq);
	ring->ctl = page_address(um->cq) + csrec_map_ctl_off(entries, PAGE_SIZE) - um->sq_len;
	return 0;

err_unmap:
	dma_unmap_page(&csd->pdev->dev, ring->sq_dma, um->sq_len, DMA_BIDIRECTIONAL);
err_free:
	csrec_umem_free(um);
	return ret;
}

int csrec_umem_add(struct csrec_ctx *ctx, struct csrec_umem *um)
{
	int ret = csrec_map_add(ctx, &um->ring_map, (um->sq_len + um->cq_len) >> PAGE_SHIFT);

	if (ret)
		return ret;
	ret = csrec_map_add(ctx, &um->db_map, 1);
	if (ret)
		csrec_map_del(ctx, &um->ring_map);
	return ret;
}

/* Afterwards the doorbell does not reach the device any more. */
void csrec_umem_del(struct csrec_ctx *ctx, struct csrec_umem *um)
{
	csrec_map_del(ctx, &um->db_map);
	csrec_map_del(ctx, &um->ring_map);
}

/* Can processes map rings and doorbells here, without reaching anything else? */
bool csrec_umem_possible(struct csrec_dev *csd)
{
	u64 db = pci_resource_start(csd->pdev, CSREC_BAR_REG) + csrec_doorbell_off(csd, 0);
	unsigned int stride = (csd->cap_queue >> CSREC_CAPQ_STRIDE_SHIFT) & 0xff;
	struct page *page;
	dma_addr_t dma;
	bool possible;

	/* without CSREC_DB_STATE the watchdog would not know what is in flight */
	if (csd->hw_minor < 1 || stride < PAGE_SHIFT || !IS_ALIGNED(db, PAGE_SIZE))
		return false;
	page = csrec_umem_pages(csd, PAGE_SIZE);
	if (!page)
		return false;
	possible = !csrec_umem_dma(csd, page, PAGE_SIZE, &dma);
	if (possible)
		dma_unmap_page(&csd->pdev->dev, dma, PAGE_SIZE, DMA_BIDIRECTIONAL);
	__free_page(page);
	return possible;
}
