// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/kernel/debug/csrec/csrecN: what the driver knows of queues, regions, fences and
 * contexts, for people. Not an interface: columns come and go.
 *
 * debugfs may be missing or refuse; nothing depends on it, so that nothing is checked.
 */
#include <linux/debugfs.h>
#include <linux/pid_namespace.h>
#include <linux/seq_file.h>

#include "csrec.h"

static struct dentry *csrec_debugfs_root;

/* Whose it is: who opened, with the pid that the reader knows it by. Without: the driver. */
static void csrec_show_owner(struct seq_file *s, const struct csrec_ctx *ctx)
{
	if (!ctx) {
		seq_puts(s, "- csrec");
		return;
	}
	seq_printf(s, "%d ", pid_nr_ns(ctx->pid, task_active_pid_ns(current)));
	/* one word, whatever the process calls itself */
	if (ctx->comm[0])
		seq_escape_str(s, ctx->comm, ESCAPE_OCTAL | ESCAPE_NAP | ESCAPE_APPEND, " \\");
	else
		seq_putc(s, '-');
}

static void csrec_show_queue(struct seq_file *s, struct csrec_queue *q)
{
	struct csrec_ring *ring = &q->ring;
	u32 tail, posted, head;
	unsigned long flags;
	u64 state;

	if (ring->umem) {
		/* its process keeps the counts, the device knows two of them */
		state = csrec_dead(q->ctx->csd) ? 0 : readq(ring->doorbell + CSREC_DB_STATE);
		tail = state >> CSREC_DBS_SQ_TAIL_SHIFT;
		posted = state >> CSREC_DBS_CQ_TAIL_SHIFT;
		head = READ_ONCE(ring->ctl->cq_head);
	} else {
		spin_lock_irqsave(&q->lock, flags);
		tail = ring->tail;
		posted = ring->posted;
		head = ring->head;
		spin_unlock_irqrestore(&q->lock, flags);
	}
	seq_printf(s, "%u ", q->qid);
	csrec_show_owner(s, q->ctx);
	seq_printf(s, " %u %u %td %s %u %u %u %s\n", q->ctx->domain, ring->entries,
		   q->vector - q->ctx->csd->vectors, ring->umem ? "mapped" : "ioctl", tail, posted,
		   head, READ_ONCE(q->failed) ? "failed" :
		   READ_ONCE(q->closing) ? "closing" : "live");
}

static int csrec_queues_show(struct seq_file *s, void *unused)
{
	struct csrec_dev *csd = s->private;
	unsigned int i;

	seq_puts(s, "queue pid comm domain entries vector mode tail posted head state\n");
	/* the device is not reset or taken away while it is asked */
	down_read(&csd->reset_lock);
	spin_lock(&csd->queues_lock);
	for (i = 1; i <= csd->nr_ioq; i++)
		if (csd->queues[i])
			csrec_show_queue(s, csd->queues[i]);
	spin_unlock(&csd->queues_lock);
	up_read(&csd->reset_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(csrec_queues);

static void csrec_show_obj(struct seq_file *s, const struct csrec_obj *obj)
{
	seq_printf(s, "0x%08x ", obj->key);
	csrec_show_owner(s, obj->ctx);
	seq_printf(s, " %u %u %s", obj->ctx ? obj->ctx->domain : 0, obj->users,
		   obj->ctx && obj->closing ? "closing" : "live");
}

static void csrec_show_region(struct csrec_dev *csd, const struct csrec_obj *obj, void *data)
{
	static const char * const kinds[] = {
		[CSREC_REGION_HOST] = "host",
		[CSREC_REGION_DRAM] = "dram",
		[CSREC_REGION_ONCHIP] = "onchip",
	};
	const struct csrec_region *r;
	struct seq_file *s = data;

	csrec_show_obj(s, obj);
	/* the driver's own are less than a region */
	if (obj == &csd->win_dram) {
		seq_printf(s, " dram rw %llu\n", csd->dram_size);
	} else if (obj == &csd->win_onchip) {
		seq_printf(s, " onchip rw %llu\n", csd->cap_onchip);
	} else if (!obj->ctx) {
		seq_printf(s, " host rw %zu\n", container_of(obj, struct csrec_bounce, obj)->size);
	} else {
		r = container_of(obj, struct csrec_region, obj);
		seq_printf(s, " %s %c%c %llu\n", kinds[r->kind],
			   r->rights & CSREC_RIGHT_READ ? 'r' : '-',
			   r->rights & CSREC_RIGHT_WRITE ? 'w' : '-', r->size);
	}
}

static int csrec_regions_show(struct seq_file *s, void *unused)
{
	struct csrec_dev *csd = s->private;

	seq_puts(s, "key pid comm domain users state kind rights bytes\n");
	csrec_slots_for_each(csd, &csd->regions, csrec_show_region, s);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(csrec_regions);

static void csrec_show_fence(struct csrec_dev *csd, const struct csrec_obj *obj, void *data)
{
	csrec_show_obj(data, obj);
	seq_putc(data, '\n');
}

static int csrec_fences_show(struct seq_file *s, void *unused)
{
	struct csrec_dev *csd = s->private;

	seq_puts(s, "key pid comm domain users state\n");
	csrec_slots_for_each(csd, &csd->fences, csrec_show_fence, s);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(csrec_fences);

static int csrec_contexts_show(struct seq_file *s, void *unused)
{
	struct csrec_dev *csd = s->private;
	struct csrec_ctx *ctx;

	seq_puts(s, "pid comm domain queues state\n");
	spin_lock(&csd->ctx_lock);
	list_for_each_entry(ctx, &csd->ctxs, node) {
		csrec_show_owner(s, ctx);
		seq_printf(s, " %u %u %s\n", ctx->domain, READ_ONCE(ctx->nr_queues),
			   csrec_ctx_dead(ctx) ? "dead" : "live");
	}
	spin_unlock(&csd->ctx_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(csrec_contexts);

static int csrec_registers_show(struct seq_file *s, void *unused)
{
	struct csrec_dev *csd = s->private;

	down_read(&csd->reset_lock);
	/* nobody knows who would answer while it is being reset, or once it is gone */
	if (csrec_dead(csd) != -ENODEV) {
		seq_printf(s, "id 0x%016llx\n", csrec_read(csd, CSREC_REG_ID));
		seq_printf(s, "ctrl 0x%016llx\n", csrec_read(csd, CSREC_REG_CTRL));
		seq_printf(s, "status 0x%016llx\n", csrec_read(csd, CSREC_REG_STATUS));
	}
	up_read(&csd->reset_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(csrec_registers);

/* Between cdev_device_add() and cdev_device_del(). */
void csrec_debugfs_add(struct csrec_dev *csd)
{
	struct dentry *dir = debugfs_create_dir(dev_name(&csd->dev), csrec_debugfs_root);

	debugfs_create_file("queues", 0400, dir, csd, &csrec_queues_fops);
	debugfs_create_file("regions", 0400, dir, csd, &csrec_regions_fops);
	debugfs_create_file("fences", 0400, dir, csd, &csrec_fences_fops);
	debugfs_create_file("contexts", 0400, dir, csd, &csrec_contexts_fops);
	debugfs_create_file("registers", 0400, dir, csd, &csrec_registers_fops);
	csd->debugfs = dir;
}

/* Waits for who is reading. */
void csrec_debugfs_del(struct csrec_dev *csd)
{
	debugfs_remove(csd->debugfs);
}

void csrec_debugfs_init(void)
{
	csrec_debugfs_root = debugfs_create_dir(CSREC_NAME, NULL);
}

void csrec_debugfs_exit(void)
{
	debugfs_remove(csrec_debugfs_root);
}
