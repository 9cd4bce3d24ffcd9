// SPDX-License-Identifier: GPL-2.0-only
/*
 * PCI: probe, remove, reset, interrupts, and the device's life as a whole.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/idr.h>
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/stringify.h>

#include "csrec_trace.h"

/* More than any device has; the allocators keep a bit for each unit. */
#define CSREC_MAX_DRAM		BIT_ULL(40)
#define CSREC_MAX_ONCHIP	BIT_ULL(32)

/* 0, or what a caller gets who finds the device not working. */
int csrec_dead(const struct csrec_dev *csd)
{
	switch (READ_ONCE(csd->state)) {
	case CSREC_LIVE:
		return 0;
	case CSREC_FAILED:
		return -EIO;
	default:
		return -ENODEV;
	}
}

int csrec_ctx_dead(const struct csrec_ctx *ctx)
{
	if (ctx->reset_gen != READ_ONCE(ctx->csd->reset_gen))
		return -ENODEV;
	return csrec_dead(ctx->csd);
}

/*
 * Ends every wait for the device. A device that is only believed to be hung may still
 * write to memory: it is taken off the bus at once.
 */
void csrec_set_dead(struct csrec_dev *csd, enum csrec_state state)
{
	struct csrec_ctx *ctx;
	bool failed;

	spin_lock(&csd->ctx_lock);
	failed = csd->state == CSREC_LIVE && state == CSREC_FAILED;
	/* gone is final, and more than failed */
	if (csd->state < state)
		WRITE_ONCE(csd->state, state);
	spin_unlock(&csd->ctx_lock);

	if (state == CSREC_FAILED)
		pci_clear_master(csd->pdev);
	/* in other states who stops the device does it */
	if (failed)
		schedule_work(&csd->zap_work);

	wake_up_all(&csd->admin.waitq);
	wake_up_all(&csd->regions.idle);
	spin_lock(&csd->ctx_lock);
	list_for_each_entry(ctx, &csd->ctxs, node)
		wake_up_all(&ctx->waitq);
	spin_unlock(&csd->ctx_lock);
	csrec_queues_dead(csd);
	csrec_p2p_dead(csd);

	if (failed)
		csrec_dump(csd, NULL, "device given up");
}

/*
 * Takes the reset_lock for writing if the device is dead; false: it lives (again), and who was to
 * be rid of has been by its reset. Tries, and does not queue: by the time that the lock is free the
 * device may have been reset, and who sleeps in WAIT then would hold up everybody behind this.
 */
bool csrec_lock_dead(struct csrec_dev *csd)
{
	while (csrec_dead(csd)) {
		if (down_write_trylock(&csd->reset_lock)) {
			if (csrec_dead(csd))
				return true;
			up_write(&csd->reset_lock);
			break;
		}
		/* whoever has it leaves, as the device is dead */
		msleep(20);
	}
	return false;
}

/*
 * The status register; all ones, as of a device that is off the bus, also when an error on
 * the way to it forbids looking.
 */
static u64 csrec_hw_status(struct csrec_dev *csd)
{
	return pci_channel_offline(csd->pdev) ? ~0ULL : csrec_read(csd, CSREC_REG_STATUS);
}

/* Is there a csrec device at all at the other end? */
static bool csrec_hw_answers(struct csrec_dev *csd)
{
	return !pci_channel_offline(csd->pdev) &&
	       (u32)csrec_read(csd, CSREC_REG_ID) == CSREC_ID_MAGIC;
}

/*
 * Has a device that was started kept its state? Not if it is off the bus (all ones, or
 * whatever the bridge above makes of it) or was reset behind the driver's back.
 */
static int csrec_hw_check(struct csrec_dev *csd, u64 status)
{
	if (status != ~0ULL && status & CSREC_STATUS_READY)
		return 0;
	if (!csrec_hw_answers(csd)) {
		dev_err(&csd->pdev->dev, "device does not answer on the bus\n");
		/* it may come back: nobody reaches it then, nor it anybody */
		pci_clear_master(csd->pdev);
		csrec_set_dead(csd, CSREC_GONE);
		schedule_work(&csd->zap_work);
	} else {
		dev_err(&csd->pdev->dev, "device has lost its state\n");
		csrec_set_dead(csd, CSREC_FAILED);
	}
	return csrec_dead(csd);
}

/* 0, or -ENODEV or -EIO: the device is found dead, and marked so. */
int csrec_hw_alive(struct csrec_dev *csd)
{
	return csrec_hw_check(csd, csrec_hw_status(csd));
}

/**
 * csrec_hw_look - does the device make progress?
 * @csd: device
 * @watch: what was seen before; zero it to start anew
 * @admin: an admin command is awaited. The device has nothing to do then only if it has
 *	lost it; an I/O queue may as well be blocked in WAIT.
 *
 * Return: 1 hung, 0 not or not known yet, -ENODEV or -EIO found dead (and marked so).
 */
int csrec_hw_look(struct csrec_dev *csd, struct csrec_watch *watch, bool admin)
{
	u64 status = csrec_hw_status(csd);
	u64 progress, cycles;
	int ret;

	if (!csrec_dead(csd)) {
		ret = csrec_hw_check(csd, status);
		if (ret)
			return ret;
	}
	watch->status = status;
	progress = csrec_read(csd, CSREC_REG_CNT_PROGRESS);
	cycles = csrec_read(csd, CSREC_REG_CNT_CYCLES);
	if (!watch->all++)
		watch->began = cycles;
	watch->now = cycles;
	/* what moves may be others' */
	if (admin && watch->all >= CSREC_HUNG_LOOKS && cycles - watch->began >= CSREC_LOST_CYCLES)
		return 1;

	if (!watch->looks || watch->progress != progress) {
		watch->progress = progress;
		watch->cycles = cycles;
		watch->looks = 1;
		watch->busy = !!(status & CSREC_STATUS_BUSY);
		return 0;
	}
	watch->looks++;
	if (status & CSREC_STATUS_BUSY)
		watch->busy++;

	if (!admin && watch->busy != watch->looks)
		return 0;
	if (watch->looks >= CSREC_HUNG_LOOKS &&
	    cycles - watch->cycles >= CSREC_HUNG_CYCLES)
		return 1;
	return watch->looks >= CSREC_STUCK_LOOKS && cycles == watch->cycles;
}

/* Waits for READY to be as wanted, as long as the device makes progress. */
static int csrec_hw_wait_ready(struct csrec_dev *csd, bool ready)
{
	struct csrec_watch watch = {};
	unsigned int ms = 1, waited = 0;
	u64 status;

	for (;;) {
		status = csrec_hw_status(csd);
		if (status == ~0ULL)
			return -ENODEV;
		if (ready && (status & CSREC_STATUS_FATAL)) {
			dev_err(&csd->pdev->dev, "device refuses to start: reason %llu\n",
				(status >> CSREC_STATUS_FATAL_SHIFT) & 0xff);
			return -EIO;
		}
		if (!!(status & CSREC_STATUS_READY) == ready)
			return 0;
		msleep(ms);
		waited += ms;
		if (waited < jiffies_to_msecs(CSREC_LOOK_INTERVAL)) {
			ms = min(ms * 2, 100U);
			continue;
		}
		waited = 0;
		if (csrec_hw_look(csd, &watch, true)) {
			dev_err(&csd->pdev->dev, "no progress while %s\n",
				ready ? "starting" : "stopping");
			return -EIO;
		}
	}
}

/*
 * Stops the device: it forgets queues, regions and fences, and does no DMA afterwards.
 * Needs the reset_lock for writing, or nobody else to have the device.
 */
void csrec_hw_stop(struct csrec_dev *csd)
{
	unsigned int i;

	if (csrec_hw_status(csd) != ~0ULL) {
		csrec_write(csd, CSREC_REG_CTRL, 0);
		csrec_hw_wait_ready(csd, false);
	}
	pci_clear_master(csd->pdev);
	/* a handler of before looks at rings as they were */
	for (i = 0; i < csd->nr_vectors; i++)
		synchronize_irq(pci_irq_vector(csd->pdev, i));
}

/* Starts a stopped device, with the admin queue and the driver's own regions. */
static int csrec_hw_start(struct csrec_dev *csd)
{
	struct csrec_admin *admin = &csd->admin;
	int ret;

	if (!csrec_hw_answers(csd)) {
		ret = -ENODEV;
		goto err_stop;
	}
	/* what a slot reset will need, without bus mastering */
	pci_save_state(csd->pdev);

	spin_lock_irq(&admin->lock);
	csrec_ring_rewind(&admin->ring);
	csrec_ring_clear(&admin->ring);
	bitmap_zero(admin->used, CSREC_ADMIN_ENTRIES);
	spin_unlock_irq(&admin->lock);
	/* its counters may have begun anew */
	memset(&csd->watch, 0, sizeof(csd->watch));
	csrec_stats_look(csd);

	pci_set_master(csd->pdev);
	csrec_write(csd, CSREC_REG_ASQ_BASE, admin->ring.sq_dma);
	csrec_write(csd, CSREC_REG_ACQ_BASE, admin->ring.cq_dma);
	csrec_write(csd, CSREC_REG_AQ_SIZE, CSREC_ADMIN_LOG2);
	csrec_write(csd, CSREC_REG_CTRL, CSREC_CTRL_ENABLE);
	ret = csrec_hw_wait_ready(csd, true);
	if (ret)
		goto err_stop;

	WRITE_ONCE(csd->state, CSREC_LIVE);
	ret = csrec_mem_start(csd);
	if (ret)
		goto err_stop;
	return 0;

err_stop:
	csrec_set_dead(csd, CSREC_FAILED);
	csrec_hw_stop(csd);
	return ret;
}

/* Reads what the device says about itself and refuses what this driver cannot drive. */
static int csrec_hw_identify(struct csrec_dev *csd)
{
	struct device *dev = &csd->pdev->dev;
	u64 id = csrec_read(csd, CSREC_REG_ID);
	unsigned int log2_entries, stride, vectors, regions;
	u64 db, end;

	if (id == ~0ULL)
		return dev_err_probe(dev, -ENODEV, "device does not answer on the bus\n");
	if ((u32)id != CSREC_ID_MAGIC)
		return dev_err_probe(dev, -ENODEV,
				     "no csrec device: magic 0x%08x, expected 0x%08x\n",
				     (u32)id, CSREC_ID_MAGIC);
	csd->hw_major = id >> CSREC_ID_MAJOR_SHIFT;
	csd->hw_minor = id >> CSREC_ID_MINOR_SHIFT;
	if (csd->hw_major != CSREC_HW_MAJOR)
		return dev_err_probe(dev, -ENODEV,
				     "device has interface version %u.%u, this driver needs %u.x\n",
				     csd->hw_major, csd->hw_minor, CSREC_HW_MAJOR);

	csd->cap_queue = csrec_read(csd, CSREC_REG_CAP_QUEUE);
	csd->cap_table = csrec_read(csd, CSREC_REG_CAP_TABLE);
	csd->cap_dram = csrec_read(csd, CSREC_REG_CAP_DRAM);
	csd->cap_onchip = csrec_read(csd, CSREC_REG_CAP_ONCHIP);
	csd->cap_engine = csrec_read(csd, CSREC_REG_CAP_ENGINE);
	csd->cap_limit = csrec_read(csd, CSREC_REG_CAP_LIMIT);

	/* no register is all ones in a device that is there */
	if (csd->cap_queue == ~0ULL || csd->cap_table == ~0ULL || csd->cap_dram == ~0ULL ||
	    csd->cap_onchip == ~0ULL || csd->cap_engine == ~0ULL || csd->cap_limit == ~0ULL)
		return dev_err_probe(dev, -ENODEV, "device does not answer on the bus\n");

	csd->nr_ioq = (csd->cap_queue >> CSREC_CAPQ_IOQ_SHIFT) & 0xff;
	vectors = (csd->cap_queue >> CSREC_CAPQ_VECTORS_SHIFT) & 0xff;
	log2_entries = (csd->cap_queue >> CSREC_CAPQ_ENTRIES_SHIFT) & 0xff;
	stride = (csd->cap_queue >> CSREC_CAPQ_STRIDE_SHIFT) & 0xff;
	db = csd->cap_queue >> CSREC_CAPQ_DB_SHIFT;
	end = db + ((u64)(csd->nr_ioq + 1) << min(stride, 32U));
	if (!csd->nr_ioq || csd->nr_ioq > CSREC_MAX_IOQ || !vectors ||
	    log2_entries < CSREC_ADMIN_LOG2 || log2_entries > 16 || stride < 3 ||
	    end > pci_resource_len(csd->pdev, CSREC_BAR_REG) || !IS_ALIGNED(db, 8))
		return dev_err_probe(dev, -ENODEV, "bad queue capability 0x%016llx\n",
				     csd->cap_queue);
	csd->max_entries = 1U << log2_entries;

	regions = (csd->cap_table >> CSREC_CAPT_REGIONS_SHIFT) & 0xffff;
	if (regions < CSREC_MIN_REGIONS)
		return dev_err_probe(dev, -ENODEV, "bad table capability 0x%016llx\n",
				     csd->cap_table);
	if (csd->cap_dram > CSREC_MAX_DRAM || csd->cap_onchip > CSREC_MAX_ONCHIP ||
	    !IS_ALIGNED(csd->cap_dram, SZ_4K) || !IS_ALIGNED(csd->cap_onchip, 64))
		return dev_err_probe(dev, -ENODEV,
				     "bad memory capability: 0x%llx bytes of DRAM, 0x%llx on chip\n",
				     csd->cap_dram, csd->cap_onchip);
	return 0;
}

static irqreturn_t csrec_irq(int irq, void *data)
{
	struct csrec_vector *vector = data;
	struct csrec_dev *csd = vector->csd;
	struct csrec_queue *q;

	atomic64_inc(&csd->interrupts);
	if (vector == csd->vectors)
		csrec_admin_irq(csd);

	spin_lock(&vector->lock);
	list_for_each_entry(q, &vector->queues, node)
		csrec_queue_irq(q);
	spin_unlock(&vector->lock);

	/*
	 * Ours even if nothing was new: a waiter may have seen the completion before, and
	 * MSI-X vectors are not shared with other devices.
	 */
	return IRQ_HANDLED;
}

static void csrec_irqs_free(struct csrec_dev *csd)
{
	while (csd->nr_vectors--)
		free_irq(pci_irq_vector(csd->pdev, csd->nr_vectors),
			 &csd->vectors[csd->nr_vectors]);
	csd->nr_vectors = 0;
	pci_free_irq_vectors(csd->pdev);
}

/* One vector for the admin queue and one for each I/O queue, or as many as the device has. */
unsigned int csrec_vectors_wanted(const struct csrec_dev *csd)
{
	unsigned int have = (csd->cap_queue >> CSREC_CAPQ_VECTORS_SHIFT) & 0xff;

	return clamp(have, 1U, csd->nr_ioq + 1);
}

static int csrec_irqs_request(struct csrec_dev *csd)
{
	struct pci_dev *pdev = csd->pdev;
	int i, n, ret;

	n = pci_alloc_irq_vectors(pdev, 1, csrec_vectors_wanted(csd), PCI_IRQ_MSIX);
	if (n < 0)
		return dev_err_probe(&pdev->dev, n, "no MSI-X vector\n");

	csd->vectors = devm_kcalloc(&pdev->dev, n, sizeof(*csd->vectors), GFP_KERNEL);
	if (!csd->vectors) {
		ret = -ENOMEM;
		goto err;
	}
	for (i = 0; i < n; i++) {
		struct csrec_vector *vector = &csd->vectors[i];

		vector->csd = csd;
		spin_lock_init(&vector->lock);
		INIT_LIST_HEAD(&vector->queues);
		ret = request_irq(pci_irq_vector(pdev, i), csrec_irq, 0, dev_name(&csd->dev),
				  vector);
		if (ret)
			goto err;
		csd->nr_vectors++;
	}
	return 0;

err:
	csrec_irqs_free(csd);
	return ret;
}

/* What processes have mapped is taken from them. Under the reset_lock for writing. */
static void csrec_zap_contexts(struct csrec_dev *csd)
{
	struct csrec_ctx *ctx;

	list_for_each_entry(ctx, &csd->ctxs, node)
		csrec_maps_zap(ctx);
}

/* Those who found the device dead could not do it where they were. */
static void csrec_zap_work(struct work_struct *work)
{
	struct csrec_dev *csd = container_of(work, struct csrec_dev, zap_work);

	if (!csrec_lock_dead(csd))
		return;
	csrec_zap_contexts(csd);
	up_write(&csd->reset_lock);
}

static int csrec_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct device *dev = &pdev->dev;
	struct csrec_dev *csd;
	int ret;

	csd = kzalloc_obj(*csd, GFP_KERNEL);
	if (!csd)
		return -ENOMEM;
	csd->pdev = pdev;
	csd->state = CSREC_FAILED;
	init_rwsem(&csd->reset_lock);
	spin_lock_init(&csd->ctx_lock);
	INIT_LIST_HEAD(&csd->ctxs);
	ida_init(&csd->domains);
	spin_lock_init(&csd->owner_lock);
	INIT_LIST_HEAD(&csd->owners);
	mutex_init(&csd->queue_lock);
	spin_lock_init(&csd->queues_lock);
	spin_lock_init(&csd->bounce_lock);
	INIT_LIST_HEAD(&csd->bounces);
	spin_lock_init(&csd->p2p_lock);
	INIT_LIST_HEAD(&csd->p2p_reqs);
	INIT_LIST_HEAD(&csd->p2p_drives);
	init_waitqueue_head(&csd->p2p_idle);
	mutex_init(&csd->counters.lock);
	INIT_DELAYED_WORK(&csd->watchdog, csrec_queue_watchdog);
	INIT_WORK(&csd->zap_work, csrec_zap_work);
	csrec_admin_init(csd);
	/* from here on put_device() frees it */
	csrec_cdev_init(csd);
	ret = csd->id;
	if (ret < 0)
		goto err_put;
	pci_set_drvdata(pdev, csd);

	ret = pcim_enable_device(pdev);
	if (ret) {
		dev_err_probe(dev, ret, "cannot be enabled\n");
		goto err_put;
	}
	if (pci_resource_len(pdev, CSREC_BAR_REG) < CSREC_BAR_REG_SIZE) {
		ret = dev_err_probe(dev, -ENODEV, "register BAR %d is missing or too small\n",
				    CSREC_BAR_REG);
		goto err_put;
	}
	csd->regs = pcim_iomap_region(pdev, CSREC_BAR_REG, CSREC_NAME);
	if (IS_ERR(csd->regs)) {
		ret = dev_err_probe(dev, PTR_ERR(csd->regs), "cannot map BAR %d\n",
				    CSREC_BAR_REG);
		goto err_put;
	}
	/* peer-to-peer memory claims nothing by itself */
	if (pci_resource_len(pdev, CSREC_BAR_DRAM)) {
		ret = pcim_request_region(pdev, CSREC_BAR_DRAM, CSREC_NAME);
		if (ret) {
			dev_err_probe(dev, ret, "cannot claim BAR %d\n", CSREC_BAR_DRAM);
			goto err_put;
		}
	}
	ret = csrec_hw_identify(csd);
	if (ret)
		goto err_put;
	ret = dma_set_mask_and_coherent(dev, DMA_BIT_MASK(64));
	if (ret) {
		dev_err_probe(dev, ret, "no 64-bit DMA\n");
		goto err_put;
	}
	dma_set_max_seg_size(dev, UINT_MAX);

	/* outlives the device, as poll() looks there; goes with csd */
	csd->queues = kcalloc(csd->nr_ioq + 1, sizeof(*csd->queues), GFP_KERNEL);
	if (!csd->queues) {
		ret = -ENOMEM;
		goto err_put;
	}
	csd->queue_map = csrec_umem_possible(csd);
	ret = csrec_p2p_init(csd);
	if (ret)
		goto err_put;
	ret = csrec_mem_init(csd);
	if (ret)
		goto err_p2p;
	ret = csrec_ring_alloc(csd, &csd->admin.ring, 0, CSREC_ADMIN_ENTRIES);
	if (ret)
		goto err_mem;

	/* a previous driver, or a kernel before kexec, may have left it running */
	csrec_hw_stop(csd);
	ret = csrec_irqs_request(csd);
	if (ret)
		goto err_ring;
	ret = csrec_hw_start(csd);
	if (ret) {
		dev_err_probe(dev, ret, "cannot be started\n");
		goto err_irqs;
	}
	ret = csrec_cdev_add(csd);
	if (ret)
		goto err_stop;

	dev_info(dev, "%s: interface %u.%u, %u queues, %u vectors, %llu MiB DRAM, %s\n",
		 dev_name(&csd->dev), csd->hw_major, csd->hw_minor, csd->nr_ioq,
		 csd->nr_vectors, csd->dram_size >> 20,
		 csd->p2pdma ? "peer-to-peer" : "no peer-to-peer");
	return 0;

err_stop:
	csrec_set_dead(csd, CSREC_GONE);
	csrec_hw_stop(csd);
	csrec_bounces_free(csd);
err_irqs:
	csrec_irqs_free(csd);
err_ring:
	csrec_ring_free(csd, &csd->admin.ring);
err_mem:
	csrec_mem_exit(csd);
err_p2p:
	destroy_workqueue(csd->p2p_wq);
err_put:
	put_device(&csd->dev);
	return ret;
}

/*
 * Stops the device and takes everything from the contexts, which stay as husks. The PCI
 * core calls all that leads here, and to csrec_restart(), with the device locked.
 */
static void csrec_shutdown_contexts(struct csrec_dev *csd, enum csrec_state state)
{
	struct csrec_ctx *ctx;

	csrec_set_dead(csd, state);
	/* again, without a restart in between: a reset or sleep that failed, then another */
	if (!csd->stopped)
		disable_delayed_work_sync(&csd->watchdog);
	csd->stopped = true;

	down_write(&csd->reset_lock);
	csd->reset_gen++;
	csrec_zap_contexts(csd);
	csrec_hw_stop(csd);
	csrec_stats_look(csd);
	csrec_bounces_free(csd);
	/*
	 * Nobody else takes contexts off the list while the reset_lock is held, and new ones
	 * have nothing.
	 */
	list_for_each_entry(ctx, &csd->ctxs, node)
		csrec_ctx_teardown(ctx);
	up_write(&csd->reset_lock);
	/* waits for other drivers */
	csrec_mem_stop(csd);
}

static void csrec_remove(struct pci_dev *pdev)
{
	struct csrec_dev *csd = pci_get_drvdata(pdev);

	csrec_cdev_del(csd);
	csrec_shutdown_contexts(csd, CSREC_GONE);
	csrec_p2p_wait_idle(csd);
	csrec_irqs_free(csd);
	csrec_ring_free(csd, &csd->admin.ring);
	csrec_mem_exit(csd);
	destroy_workqueue(csd->p2p_wq);
	put_device(&csd->dev);
}

/* Before kexec or power-off: the next kernel must not be written to. */
static void csrec_shutdown(struct pci_dev *pdev)
{
	csrec_shutdown_contexts(pci_get_drvdata(pdev), CSREC_GONE);
}

/* After csrec_shutdown_contexts() with CSREC_RESETTING. */
static int csrec_restart(struct csrec_dev *csd, const char *why)
{
	int ret;

	down_write(&csd->reset_lock);
	atomic64_inc(&csd->device_resets);
	ret = csrec_hw_start(csd);
	trace_csrec_reset(csd, 0, ret);
	if (ret) {
		dev_err(&csd->pdev->dev, "cannot be started after %s: %d\n", why, ret);
		/* it is not between two lives any more: open() says what is the matter */
		spin_lock(&csd->ctx_lock);
		if (csd->state == CSREC_RESETTING)
			WRITE_ONCE(csd->state, ret == -ENODEV ? CSREC_GONE : CSREC_FAILED);
		spin_unlock(&csd->ctx_lock);
	} else {
		dev_info(&csd->pdev->dev, "%s; contexts of before are dead\n", why);
	}
	enable_delayed_work(&csd->watchdog);
	csd->stopped = false;
	up_write(&csd->reset_lock);
	return ret;
}

static void csrec_reset_prepare(struct pci_dev *pdev)
{
	csrec_shutdown_contexts(pci_get_drvdata(pdev), CSREC_RESETTING);
}

static void csrec_reset_done(struct pci_dev *pdev)
{
	csrec_restart(pci_get_drvdata(pdev), "reset");
}

/*
 * The device keeps nothing in its sleep, and must not write to the memory of a kernel that
 * is being saved or restored: for contexts, sleep is a reset.
 */
static int csrec_suspend(struct device *dev)
{
	csrec_shutdown_contexts(dev_get_drvdata(dev), CSREC_RESETTING);
	return 0;
}

static int csrec_resume(struct device *dev)
{
	return csrec_restart(dev_get_drvdata(dev), "sleep");
}

static DEFINE_SIMPLE_DEV_PM_OPS(csrec_pm_ops, csrec_suspend, csrec_resume);

/*
 * An error that was not corrected has lost or spoiled some transfer, and nothing says whose:
 * all contexts die. If the link has stayed up the device is only started anew; otherwise it
 * must not be touched before its slot was reset.
 */
static pci_ers_result_t csrec_error_detected(struct pci_dev *pdev, pci_channel_state_t state)
{
	struct csrec_dev *csd = pci_get_drvdata(pdev);

	switch (state) {
	case pci_channel_io_normal:
		csrec_shutdown_contexts(csd, CSREC_RESETTING);
		return PCI_ERS_RESULT_CAN_RECOVER;
	case pci_channel_io_frozen:
		csrec_shutdown_contexts(csd, CSREC_RESETTING);
		return PCI_ERS_RESULT_NEED_RESET;
	default:
		dev_err(&pdev->dev, "given up by the bus: remove it\n");
		csrec_shutdown_contexts(csd, CSREC_GONE);
		return PCI_ERS_RESULT_DISCONNECT;
	}
}

static pci_ers_result_t csrec_mmio_enabled(struct pci_dev *pdev)
{
	return csrec_hw_answers(pci_get_drvdata(pdev)) ? PCI_ERS_RESULT_RECOVERED :
							 PCI_ERS_RESULT_NEED_RESET;
}

static pci_ers_result_t csrec_slot_reset(struct pci_dev *pdev)
{
	pci_restore_state(pdev);
	return csrec_hw_answers(pci_get_drvdata(pdev)) ? PCI_ERS_RESULT_RECOVERED :
							 PCI_ERS_RESULT_DISCONNECT;
}

static void csrec_error_resume(struct pci_dev *pdev)
{
	struct csrec_dev *csd = pci_get_drvdata(pdev);

	/* the error of a neighbour may be resumed here, too */
	if (csd->stopped)
		csrec_restart(csd, "bus error");
}

static const struct pci_error_handlers csrec_err_handlers = {
	.error_detected = csrec_error_detected,
	.mmio_enabled = csrec_mmio_enabled,
	.slot_reset = csrec_slot_reset,
	.resume = csrec_error_resume,
	.reset_prepare = csrec_reset_prepare,
	.reset_done = csrec_reset_done,
};

static const struct pci_device_id csrec_ids[] = {
	{ PCI_DEVICE(CSREC_PCI_VENDOR, CSREC_PCI_DEVICE) },
	{ }
};
MODULE_DEVICE_TABLE(pci, csrec_ids);

static struct pci_driver csrec_driver = {
	.name = CSREC_NAME,
	.id_table = csrec_ids,
	.probe = csrec_probe,
	.remove = csrec_remove,
	.shutdown = csrec_shutdown,
	.err_handler = &csrec_err_handlers,
	.driver.pm = pm_sleep_ptr(&csrec_pm_ops),
};

static int __init csrec_driver_init(void)
{
	int ret;

	/* the layouts that the device and userspace rely on */
	BUILD_BUG_ON(sizeof(struct csrec_cmd) != 64);
	BUILD_BUG_ON(sizeof(struct csrec_cqe) != 16);
	BUILD_BUG_ON(sizeof(struct csrec_body_desc) != 56);
	BUILD_BUG_ON(sizeof(struct csrec_body_copy) != 56);
	BUILD_BUG_ON(sizeof(struct csrec_body_fence) != 56);
	BUILD_BUG_ON(sizeof(struct csrec_body_fence_set) != 56);
	BUILD_BUG_ON(sizeof(struct csrec_body_queue) != 56);
	BUILD_BUG_ON(sizeof(struct csrec_body_region) != 56);

	ret = csrec_main_init();
	if (ret)
		return ret;
	ret = pci_register_driver(&csrec_driver);
	if (ret)
		csrec_main_exit();
	return ret;
}
module_init(csrec_driver_init);

static void __exit csrec_driver_exit(void)
{
	pci_unregister_driver(&csrec_driver);
	csrec_main_exit();
}
module_exit(csrec_driver_exit);

MODULE_DESCRIPTION("csrec computational storage accelerator");
MODULE_VERSION(__stringify(CSREC_UAPI_MAJOR) "." __stringify(CSREC_UAPI_MINOR));
MODULE_LICENSE("GPL");
