// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bounce buffers: host memory between a drive and the device, each with a region of its own.
 * A transfer has one to itself for as long as it needs it, so that a drive that hangs takes none
 * from the others; a few are kept for the next.
 */
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "csrec.h"
#include "compat.h"

#define CSREC_BOUNCE_IDLE	CSREC_BOUNCE_SLOTS	/* kept */

static void csrec_bounce_free(struct csrec_dev *csd, struct csrec_bounce *b)
{
	csrec_slot_del(&csd->regions, &b->obj);
	dma_unmap_page(&csd->pdev->dev, b->dma, b->size, DMA_BIDIRECTIONAL);
	__free_pages(b->page, get_order(b->size));
	kfree(b);
}

static void csrec_bounce_keep(struct csrec_dev *csd, struct csrec_bounce *b)
{
	spin_lock(&csd->bounce_lock);
	list_add(&b->node, &csd->bounces);
	csd->nr_bounces++;
	spin_unlock(&csd->bounce_lock);
}

/* The largest piece of memory that is to be had, but no more than is worth it. */
static int csrec_bounce_pages(struct csrec_dev *csd, struct csrec_bounce *b)
{
	size_t most = dma_max_mapping_size(&csd->pdev->dev);
	unsigned int order = CSREC_BOUNCE_ORDER;

	while (order && PAGE_SIZE << order > most)
		order--;
	for (; ; order--) {
		b->page = alloc_pages_node(dev_to_node(&csd->pdev->dev),
					   GFP_KERNEL | __GFP_COMP | __GFP_NOWARN |
					   __GFP_NORETRY, order);
		b->size = PAGE_SIZE << order;
		if (b->page)
			return 0;
		if (!order)
			return -ENOMEM;
	}
}

/* Under the reset_lock, with the device alive. */
struct csrec_bounce *csrec_bounce_get(struct csrec_dev *csd)
{
	struct csrec_region r = {
		.kind = CSREC_REGION_HOST,
		.rights = CSREC_RIGHT_READ | CSREC_RIGHT_WRITE,
	};
	struct csrec_bounce *b;
	struct csrec_cmd cmd;
	int ret;

	spin_lock(&csd->bounce_lock);
	b = list_first_entry_or_null(&csd->bounces, struct csrec_bounce, node);
	if (b) {
		list_del(&b->node);
		csd->nr_bounces--;
	}
	spin_unlock(&csd->bounce_lock);
	if (b)
		return b;

	b = kzalloc_obj(*b);
	if (!b)
		return ERR_PTR(-ENOMEM);
	b->reset_gen = csd->reset_gen;
	ret = csrec_bounce_pages(csd, b);
	if (ret)
		goto err_buf;
	/* never from the device only: what it does not write must stay what it was */
	b->dma = dma_map_page(&csd->pdev->dev, b->page, 0, b->size, DMA_BIDIRECTIONAL);
	ret = dma_mapping_error(&csd->pdev->dev, b->dma);
	if (ret)
		goto err_pages;
	ret = csrec_slot_add(&csd->regions, &b->obj, NULL);
	if (ret)
		goto err_unmap;
	r.base = b->dma;
	r.size = b->size;
	r.obj.key = b->obj.key;
	csrec_region_cmd(&cmd, &r);
	ret = csrec_admin_exec(csd, &cmd, 1);
	if (!ret)
		return b;
	if (ret < 0) {
		/* it may know the region: kept until it is stopped */
		csrec_bounce_keep(csd, b);
		return ERR_PTR(ret);
	}
	csrec_bounce_free(csd, b);
	return ERR_PTR(-EIO);

err_unmap:
	dma_unmap_page(&csd->pdev->dev, b->dma, b->size, DMA_BIDIRECTIONAL);
err_pages:
	__free_pages(b->page, get_order(b->size));
err_buf:
	kfree(b);
	return ERR_PTR(ret);
}

void csrec_bounce_put(struct csrec_dev *csd, struct csrec_bounce *b)
{
	bool keep;

	down_read(&csd->reset_lock);
	if (b->reset_gen != csd->reset_gen) {
		/* the device has been stopped since */
		csrec_bounce_free(csd, b);
		goto out;
	}
	spin_lock(&csd->bounce_lock);
	keep = csd->nr_bounces < CSREC_BOUNCE_IDLE;
	spin_unlock(&csd->bounce_lock);
	if (keep || csrec_dead(csd) || csrec_admin_key(csd, CSREC_OP_REGION_INVAL, b->obj.key, 0))
		csrec_bounce_keep(csd, b);
	else
		csrec_bounce_free(csd, b);
out:
	up_read(&csd->reset_lock);
}

/* The device is stopped. Those in use go when they are put. */
void csrec_bounces_free(struct csrec_dev *csd)
{
	struct csrec_bounce *b, *next;

	list_for_each_entry_safe(b, next, &csd->bounces, node)
		csrec_bounce_free(csd, b);
	INIT_LIST_HEAD(&csd->bounces);
	csd->nr_bounces = 0;
}
