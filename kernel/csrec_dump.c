// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is known of a device that stopped working, as a devcoredump: text, one item a line,
 *
 *   csrec-dump 1
 *   why TEXT
 *   device BDF interface MAJOR.MINOR dram BYTES onchip BYTES vectors N
 *   reg NAME VALUE
 *   queue QID domain N entries N vector N tail N posted N head N [device tail N posted N]
 *	[hung] [failed] [closing]
 *   cmd QID COUNT opcode N flags N cid N done|in-flight [ARGUMENTS]	of the hung queue
 *   region KEY domain N [kind N rights N size BYTES] users N [closing]
 *   fence KEY domain N users N [closing]
 *   end					missing if there was no room for all
 *
 * Counts are those of the rings, modulo 2^32, as the driver has them, and since interface 1.1 as
 * the device has them; domain 0 is the driver itself. Of commands
 * there are the keys, offsets and lengths: neither data nor addresses.
 */
#include <linux/devcoredump.h>
#include <linux/vmalloc.h>

#include "csrec.h"

#define CSREC_DUMP_BYTES	(256 * 1024)
#define CSREC_DUMP_CMDS		16	/* the last ones of the hung queue */

struct csrec_dump {
	char *text;
	size_t len;
	bool full;
};

static const struct {
	u32 reg;
	const char *name;
} csrec_dump_regs[] = {
	{ CSREC_REG_ID, "id" },
	{ CSREC_REG_CAP_QUEUE, "cap-queue" },
	{ CSREC_REG_CAP_TABLE, "cap-table" },
	{ CSREC_REG_CAP_ENGINE, "cap-engine" },
	{ CSREC_REG_CAP_LIMIT, "cap-limit" },
	{ CSREC_REG_CTRL, "ctrl" },
	{ CSREC_REG_STATUS, "status" },
	{ CSREC_REG_AQ_SIZE, "aq-size" },
	{ CSREC_REG_CNT_CYCLES, "cycles" },
	{ CSREC_REG_CNT_PROGRESS, "progress" },
	{ CSREC_REG_CNT_COMMANDS, "commands" },
	{ CSREC_REG_CNT_ERRORS, "errors" },
	{ CSREC_REG_CNT_DOORBELLS, "doorbells" },
	{ CSREC_REG_CNT_BAD_DOORBELL, "bad-doorbells" },
	{ CSREC_REG_CNT_BAD_WRITE, "bad-writes" },
	{ CSREC_REG_CNT_IRQS, "irqs" },
	{ CSREC_REG_CNT_HOST_RD, "host-read" },
	{ CSREC_REG_CNT_HOST_WR, "host-written" },
	{ CSREC_REG_CNT_DRAM_RD, "dram-read" },
	{ CSREC_REG_CNT_DRAM_WR, "dram-written" },
	{ CSREC_REG_CNT_BUSY, "busy" },
};

/* All of it or nothing, and then nothing more. */
static __printf(2, 3) void csrec_dump_line(struct csrec_dump *d, const char *fmt, ...)
{
	size_t room = CSREC_DUMP_BYTES - d->len;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(d->text + d->len, room, fmt, args);
	va_end(args);
	if (d->full || n >= room)
		d->full = true;
	else
		d->len += n;
}

/* @cmd is a copy: a mapped ring may change under our eyes. */
static void csrec_dump_cmd(struct csrec_dump *d, const struct csrec_queue *q, u32 count,
			   const struct csrec_cmd *cmd, bool done)
{
	union {
		struct csrec_body_copy copy;
		struct csrec_body_fence fence;
		struct csrec_body_desc desc;
	} body;
	char args[128] = "";

	memcpy(&body, cmd->body, sizeof(body));
	switch (cmd->opcode) {
	case CSREC_OP_COPY:
	case CSREC_OP_FILL:
		snprintf(args, sizeof(args), " src %08x+0x%llx dst %08x+0x%llx len 0x%llx",
			 le32_to_cpu(body.copy.src_key), le64_to_cpu(body.copy.src_off),
			 le32_to_cpu(body.copy.dst_key), le64_to_cpu(body.copy.dst_off),
			 le64_to_cpu(body.copy.len));
		break;
	case CSREC_OP_SIGNAL:
	case CSREC_OP_WAIT:
		snprintf(args, sizeof(args), " fence %08x value %llu",
			 le32_to_cpu(body.fence.fence_key), le64_to_cpu(body.fence.value));
		break;
	case CSREC_OP_EMB:
	case CSREC_OP_TT:
	case CSREC_OP_INTERACT:
	case CSREC_OP_MLP:
		snprintf(args, sizeof(args), " desc %08x+0x%llx len %u",
			 le32_to_cpu(body.desc.desc_key), le64_to_cpu(body.desc.desc_off),
			 le32_to_cpu(body.desc.desc_len));
		break;
	}
	csrec_dump_line(d, "cmd %u %u opcode 0x%02x flags 0x%02x cid %u %s%s\n", q->qid, count,
			cmd->opcode, cmd->flags, le16_to_cpu(cmd->cid),
			done ? "done" : "in-flight", args);
}

static void csrec_dump_queue(struct csrec_dump *d, struct csrec_queue *q, bool hung)
{
	const struct csrec_ring *ring = &q->ring;
	u32 n = min(ring->entries, CSREC_DUMP_CMDS);
	u32 tail, posted, head, i;
	unsigned long flags;

	spin_lock_irqsave(&q->lock, flags);
	tail = ring->tail;
	posted = ring->posted;
	head = ring->head;
	spin_unlock_irqrestore(&q->lock, flags);

	csrec_dump_line(d, "queue %u domain %u entries %u vector %u", q->qid, q->ctx->domain,
			ring->entries, (unsigned int)(q->vector - q->vector->csd->vectors));
	csrec_dump_line(d, " tail %u posted %u head %u", tail, posted, head);
	if (q->vector->csd->hw_minor >= 1) {
		u64 state = readq(ring->doorbell + CSREC_DB_STATE);

		/* of a mapped queue only the device knows */
		tail = state >> CSREC_DBS_SQ_TAIL_SHIFT;
		posted = state >> CSREC_DBS_CQ_TAIL_SHIFT;
		csrec_dump_line(d, " device tail %u posted %u", tail, posted);
	}
	csrec_dump_line(d, "%s%s%s\n", hung ? " hung" : "", READ_ONCE(q->failed) ? " failed" : "",
			READ_ONCE(q->closing) ? " closing" : "");
	if (!hung)
		return;
	for (i = tail - min(n, tail); i != tail; i++) {
		struct csrec_cmd cmd = ring->sq[i & (ring->entries - 1)];

		csrec_dump_cmd(d, q, i, &cmd, (s32)(i - posted) < 0);
	}
}

static void csrec_dump_slots(struct csrec_dump *d, struct csrec_slots *slots, bool regions)
{
	unsigned int i;

	spin_lock(&slots->lock);
	for (i = 0; i < slots->count && !d->full; i++) {
		const struct csrec_obj *obj = slots->obj[i];
		char what[64] = "";

		if (!obj)
			continue;
		if (regions && obj->ctx) {
			const struct csrec_region *r = container_of(obj, struct csrec_region, obj);

			snprintf(what, sizeof(what), " kind %u rights %u size %llu", r->kind,
				 r->rights, r->size);
		}
		csrec_dump_line(d, "%s %08x domain %u%s users %u%s\n",
				regions ? "region" : "fence", obj->key,
				obj->ctx ? obj->ctx->domain : 0, what, obj->users,
				obj->closing ? " closing" : "");
	}
	spin_unlock(&slots->lock);
}

/**
 * csrec_dump - leave a dump to whoever wants to find out
 * @csd: device
 * @hung: a queue that made no progress, or NULL: the whole device is given up
 * @why: said in the dump
 *
 * The kernel keeps one dump of a device, for some minutes; while there is one another is
 * dropped, so that what follows from a failure does not cover it.
 */
void csrec_dump(struct csrec_dev *csd, const struct csrec_queue *hung, const char *why)
{
	struct device *dev = &csd->pdev->dev;
	struct csrec_dump d = {};
	struct csrec_queue *q;
	unsigned int i;

	might_sleep();
	if (!IS_ENABLED(CONFIG_DEV_COREDUMP))
		return;
	d.text = vzalloc(CSREC_DUMP_BYTES);
	if (!d.text)
		return;

	csrec_dump_line(&d, "csrec-dump 1\nwhy %s\n", why);
	csrec_dump_line(&d, "device %s interface %u.%u dram %llu onchip %llu vectors %u\n",
			pci_name(csd->pdev), csd->hw_major, csd->hw_minor, csd->cap_dram,
			csd->cap_onchip, csd->nr_vectors);
	for (i = 0; i < ARRAY_SIZE(csrec_dump_regs); i++)
		csrec_dump_line(&d, "reg %s 0x%llx\n", csrec_dump_regs[i].name,
				csrec_read(csd, csrec_dump_regs[i].reg));

	spin_lock(&csd->queues_lock);
	for (i = 1; i <= csd->nr_ioq; i++) {
		q = csd->queues[i];
		if (q)
			csrec_dump_queue(&d, q, q == hung);
	}
	spin_unlock(&csd->queues_lock);
	csrec_dump_slots(&d, &csd->regions, true);
	csrec_dump_slots(&d, &csd->fences, false);
	csrec_dump_line(&d, "end\n");

	/* takes the memory */
	dev_coredumpv(dev, d.text, d.len, GFP_KERNEL);
}
