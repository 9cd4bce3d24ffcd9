/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints, below events/csrec in tracefs. A queue that is mapped submits and reaps without
 * the driver and has none of csrec_submit and csrec_complete.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM csrec

#if !defined(_CSREC_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _CSREC_TRACE_H

#include <linux/blkdev.h>
#include <linux/tracepoint.h>

#include "csrec.h"

/* A command has been written to its ring; count: commands of this queue before it. */
TRACE_EVENT(csrec_submit,
	TP_PROTO(const struct csrec_queue *q, const struct csrec_cmd *cmd, u32 count),
	TP_ARGS(q, cmd, count),
	TP_STRUCT__entry(
		__field(int, dev)
		__field(u32, count)
		__field(u16, qid)
		__field(u16, cid)
		__field(u8, opcode)
		__field(u8, flags)
	),
	TP_fast_assign(
		__entry->dev = q->ctx->csd->id;
		__entry->count = count;
		__entry->qid = q->qid;
		__entry->cid = le16_to_cpu(cmd->cid);
		__entry->opcode = cmd->opcode;
		__entry->flags = cmd->flags;
	),
	TP_printk("dev=%d queue=%u count=%u cid=%u opcode=0x%02x flags=0x%02x",
		  __entry->dev, __entry->qid, __entry->count, __entry->cid,
		  __entry->opcode, __entry->flags)
);

/* The driver has seen a completion; count: completions of this queue before it. */
TRACE_EVENT(csrec_complete,
	TP_PROTO(const struct csrec_queue *q, const struct csrec_cqe *cqe, u32 count),
	TP_ARGS(q, cqe, count),
	TP_STRUCT__entry(
		__field(u64, detail)
		__field(int, dev)
		__field(u32, count)
		__field(u16, qid)
		__field(u16, cid)
		__field(u16, status)
		__field(u16, field)
	),
	TP_fast_assign(
		__entry->detail = le64_to_cpu(cqe->detail);
		__entry->dev = q->ctx->csd->id;
		__entry->count = count;
		__entry->qid = q->qid;
		__entry->cid = le16_to_cpu(cqe->cid);
		__entry->status = le16_to_cpu(cqe->status) >> CSREC_CQE_STATUS_SHIFT;
		__entry->field = le16_to_cpu(cqe->field);
	),
	TP_printk("dev=%d queue=%u count=%u cid=%u status=%u field=%u detail=0x%llx",
		  __entry->dev, __entry->qid, __entry->count, __entry->cid,
		  __entry->status, __entry->field, __entry->detail)
);

/* P2P_READ or P2P_WRITE: checked, and about to move data. */
TRACE_EVENT(csrec_p2p_start,
	TP_PROTO(const struct csrec_ctx *ctx, const struct block_device *bdev, bool write,
		 u32 segs, u64 bytes, u32 flags),
	TP_ARGS(ctx, bdev, write, segs, bytes, flags),
	TP_STRUCT__entry(
		__field(u64, bytes)
		__field(dev_t, drive)
		__field(int, dev)
		__field(u32, segs)
		__field(u32, flags)
		__field(u16, domain)
		__field(bool, write)
	),
	TP_fast_assign(
		__entry->bytes = bytes;
		__entry->drive = bdev->bd_dev;
		__entry->dev = ctx->csd->id;
		__entry->segs = segs;
		__entry->flags = flags;
		__entry->domain = ctx->domain;
		__entry->write = write;
	),
	TP_printk("dev=%d domain=%u drive=%u:%u %s segs=%u bytes=%llu flags=0x%x",
		  __entry->dev, __entry->domain, MAJOR(__entry->drive), MINOR(__entry->drive),
		  __entry->write ? "write" : "read", __entry->segs, __entry->bytes,
		  __entry->flags)
);

/* Its end: which way the bytes went, and what the caller gets. */
TRACE_EVENT(csrec_p2p_done,
	TP_PROTO(const struct csrec_ctx *ctx, u64 p2p_bytes, u64 bounce_bytes, int ret),
	TP_ARGS(ctx, p2p_bytes, bounce_bytes, ret),
	TP_STRUCT__entry(
		__field(u64, p2p_bytes)
		__field(u64, bounce_bytes)
		__field(int, dev)
		__field(int, ret)
		__field(u16, domain)
	),
	TP_fast_assign(
		__entry->p2p_bytes = p2p_bytes;
		__entry->bounce_bytes = bounce_bytes;
		__entry->dev = ctx->csd->id;
		__entry->ret = ret;
		__entry->domain = ctx->domain;
	),
	TP_printk("dev=%d domain=%u p2p_bytes=%llu bounce_bytes=%llu ret=%d",
		  __entry->dev, __entry->domain, __entry->p2p_bytes, __entry->bounce_bytes,
		  __entry->ret)
);

/* A queue was reset, or, with queue 0, the device; ret: whether it runs again. */
TRACE_EVENT(csrec_reset,
	TP_PROTO(const struct csrec_dev *csd, unsigned int qid, int ret),
	TP_ARGS(csd, qid, ret),
	TP_STRUCT__entry(
		__field(int, dev)
		__field(int, ret)
		__field(u16, qid)
	),
	TP_fast_assign(
		__entry->dev = csd->id;
		__entry->ret = ret;
		__entry->qid = qid;
	),
	TP_printk("dev=%d queue=%u ret=%d", __entry->dev, __entry->qid, __entry->ret)
);

/* The device has taken a region. */
TRACE_EVENT(csrec_region_set,
	TP_PROTO(const struct csrec_ctx *ctx, const struct csrec_region *r),
	TP_ARGS(ctx, r),
	TP_STRUCT__entry(
		__field(u64, bytes)
		__field(int, dev)
		__field(u32, key)
		__field(u16, domain)
		__field(u8, kind)
		__field(u8, rights)
	),
	TP_fast_assign(
		__entry->bytes = r->size;
		__entry->dev = ctx->csd->id;
		__entry->key = r->obj.key;
		__entry->domain = ctx->domain;
		__entry->kind = r->kind;
		__entry->rights = r->rights;
	),
	TP_printk("dev=%d domain=%u key=0x%08x kind=%u rights=%u bytes=%llu",
		  __entry->dev, __entry->domain, __entry->key, __entry->kind,
		  __entry->rights, __entry->bytes)
);

/* The device has forgotten a region. */
TRACE_EVENT(csrec_region_inval,
	TP_PROTO(const struct csrec_dev *csd, u32 key),
	TP_ARGS(csd, key),
	TP_STRUCT__entry(
		__field(int, dev)
		__field(u32, key)
	),
	TP_fast_assign(
		__entry->dev = csd->id;
		__entry->key = key;
	),
	TP_printk("dev=%d key=0x%08x", __entry->dev, __entry->key)
);

#endif /* _CSREC_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE csrec_trace
#include <trace/define_trace.h>
