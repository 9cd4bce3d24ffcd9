/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * csrec hardware interface: registers, commands, completions, descriptors.
 *
 * This header is the only place where these layouts are written. The driver,
 * the library, the golden model and the co-simulation server include it; the
 * SystemVerilog package is generated from it (rtl-model/gen). What the fields
 * mean is in rtl-model/REFERENCE.md.
 *
 * Everything in memory and in registers is little-endian. "Reserved" fields
 * must be zero; the device refuses a command in which one is not.
 */
#ifndef _UAPI_LINUX_CSREC_HW_H
#define _UAPI_LINUX_CSREC_HW_H

#include <linux/types.h>

/* Interface version: a major step breaks software, a minor step only adds. */
#define CSREC_HW_MAJOR			1
#define CSREC_HW_MINOR			2

/*
 * PCI identity. 0x1234 is not an assigned vendor id; it is the one QEMU's own
 * educational devices use. A board would carry its maker's.
 */
#define CSREC_PCI_VENDOR		0x1234
#define CSREC_PCI_DEVICE		0xc5ec
#define CSREC_PCI_CLASS			0x120000	/* processing accelerator */

/* BAR 0: registers, MSI-X table, doorbells. BAR 2: device DRAM. */
#define CSREC_BAR_REG			0
#define CSREC_BAR_DRAM			2
#define CSREC_BAR_REG_SIZE		0x80000
#define CSREC_MSIX_TABLE_OFFSET		0x2000
#define CSREC_MSIX_PBA_OFFSET		0x3000

/*
 * Registers, byte offsets in BAR 0. All are 64 bits wide. Reads may be 4 or 8
 * bytes, naturally aligned. Writes must be 8 bytes; other writes are dropped
 * and counted in CSREC_REG_CNT_BAD_WRITE.
 */
#define CSREC_REG_ID			0x000	/* RO: see CSREC_ID_* */
#define CSREC_REG_CAP_QUEUE		0x008	/* RO: see CSREC_CAPQ_* */
#define CSREC_REG_CAP_TABLE		0x010	/* RO: see CSREC_CAPT_* */
#define CSREC_REG_CAP_DRAM		0x018	/* RO: device DRAM, bytes */
#define CSREC_REG_CAP_ONCHIP		0x020	/* RO: on-chip memory, bytes */
#define CSREC_REG_CAP_ENGINE		0x028	/* RO: see CSREC_CAPE_* */
#define CSREC_REG_CAP_LIMIT		0x030	/* RO: see CSREC_CAPL_* */
#define CSREC_REG_CTRL			0x040	/* RW: see CSREC_CTRL_* */
#define CSREC_REG_STATUS		0x048	/* RO: see CSREC_STATUS_* */
#define CSREC_REG_ASQ_BASE		0x050	/* RW: admin SQ bus address, 64 B aligned */
#define CSREC_REG_ACQ_BASE		0x058	/* RW: admin CQ bus address, 16 B aligned */
#define CSREC_REG_AQ_SIZE		0x060	/* RW: [3:0] log2 entries, 1..12 */

/* Counters: RO, from zero at device reset, never cleared otherwise. */
#define CSREC_REG_CNT_CYCLES		0x100	/* device clock cycles */
#define CSREC_REG_CNT_PROGRESS		0x108	/* grows whenever any work moves */
#define CSREC_REG_CNT_COMMANDS		0x110	/* completions posted */
#define CSREC_REG_CNT_ERRORS		0x118	/* of these, status not 0 */
#define CSREC_REG_CNT_DOORBELLS		0x120	/* valid doorbell writes */
#define CSREC_REG_CNT_BAD_DOORBELL	0x128	/* doorbell values refused */
#define CSREC_REG_CNT_BAD_WRITE		0x130	/* register writes dropped */
#define CSREC_REG_CNT_IRQS		0x138	/* MSI-X messages requested */
#define CSREC_REG_CNT_HOST_RD		0x140	/* bytes read from host memory */
#define CSREC_REG_CNT_HOST_WR		0x148	/* bytes written to host memory */
#define CSREC_REG_CNT_DRAM_RD		0x150	/* bytes read from device DRAM */
#define CSREC_REG_CNT_DRAM_WR		0x158	/* bytes written to device DRAM */
#define CSREC_REG_CNT_BUSY_COPY		0x160	/* cycles with a COPY or FILL at work */
#define CSREC_REG_CNT_BUSY_EMB		0x168	/* cycles with an EMB at work */
#define CSREC_REG_CNT_BUSY_TT		0x170	/* cycles with a TT at work */
#define CSREC_REG_CNT_BUSY_INTERACT	0x178	/* cycles with an INTERACT at work */
#define CSREC_REG_CNT_BUSY_MLP		0x180	/* cycles with an MLP at work */
#define CSREC_REG_CNT_BUSY		0x188	/* cycles with any command at work */
#define CSREC_REG_CNT_EMB_ROWS		0x190	/* rows gathered by EMB */
#define CSREC_REG_CNT_TT_ROWS		0x198	/* rows rebuilt by TT */
#define CSREC_REG_CNT_TT_SAVED		0x1a0	/* multiplications that TT was spared (since 1.2) */
#define CSREC_REG_CNT_END		0x1a8	/* first offset after the counters */

/* CSREC_REG_ID */
#define CSREC_ID_MAGIC			0x43535243	/* [31:0], "CRSC" in bytes */
#define CSREC_ID_MINOR_SHIFT		32		/* [47:32] */
#define CSREC_ID_MAJOR_SHIFT		48		/* [63:48] */

/* CSREC_REG_CAP_QUEUE */
#define CSREC_CAPQ_IOQ_SHIFT		0	/* [7:0] I/O queue pairs, 1..64 */
#define CSREC_CAPQ_ENTRIES_SHIFT	8	/* [15:8] log2 of most ring entries */
#define CSREC_CAPQ_STRIDE_SHIFT		16	/* [23:16] log2 of doorbell stride */
#define CSREC_CAPQ_VECTORS_SHIFT	24	/* [31:24] MSI-X vectors */
#define CSREC_CAPQ_DB_SHIFT		32	/* [63:32] offset of doorbell 0 */

/* CSREC_REG_CAP_TABLE */
#define CSREC_CAPT_REGIONS_SHIFT	0	/* [15:0] region slots */
#define CSREC_CAPT_FENCES_SHIFT		16	/* [31:16] fence slots */

/* CSREC_REG_CAP_ENGINE */
#define CSREC_CAPE_COPY			(1 << 0)
#define CSREC_CAPE_EMB			(1 << 1)
#define CSREC_CAPE_TT			(1 << 2)
#define CSREC_CAPE_INTERACT		(1 << 3)
#define CSREC_CAPE_MLP			(1 << 4)
#define CSREC_CAPE_FP_SHIFT		16	/* [19:16] CSREC_FP_* */
#define CSREC_CAPE_MACS_SHIFT		32	/* [47:32] multiply-accumulators in all */

/* fp32 units behind the engines; all three give the same bits */
#define CSREC_FP_RTL			0	/* synthesizable */
#define CSREC_FP_DPI			1	/* host FPU called from simulation */
#define CSREC_FP_GOLDEN			2	/* no RTL: the C model answers */

/* CSREC_REG_CAP_LIMIT */
#define CSREC_CAPL_DIM_SHIFT		0	/* [15:0] widest embedding row, elements */
#define CSREC_CAPL_VECS_SHIFT		16	/* [31:16] most INTERACT vectors */
#define CSREC_CAPL_RANK_SHIFT		32	/* [47:32] largest TT-rank */
#define CSREC_CAPL_WIDTH_SHIFT		48	/* [63:48] widest MLP layer input */

/* CSREC_REG_CTRL */
#define CSREC_CTRL_ENABLE		(1 << 0)

/* CSREC_REG_STATUS */
#define CSREC_STATUS_READY		(1 << 0)	/* queues are served */
#define CSREC_STATUS_BUSY		(1 << 1)	/* some command is at work or can start */
#define CSREC_STATUS_FATAL		(1 << 2)	/* see CSREC_FATAL_*; needs disable */
#define CSREC_STATUS_FATAL_SHIFT	16		/* [23:16] why */
#define CSREC_FATAL_NONE		0
#define CSREC_FATAL_ADMIN_SQ		1	/* bus error reading the admin SQ */
#define CSREC_FATAL_ADMIN_CQ		2	/* bus error writing the admin CQ */
#define CSREC_FATAL_CONFIG		3	/* bad ASQ/ACQ/AQ_SIZE at enable */

/*
 * Doorbell page of queue q: offset CAPQ_DB + (q << CAPQ_STRIDE). Its first
 * eight bytes are the doorbell, which reads as 0; the next eight, read-only, tell how far the
 * queue is (since 1.1; 0 if it does not exist); the rest of the page holds nothing. All
 * halves are free-running counts, not ring indices.
 */
#define CSREC_DB_DOORBELL		0x0
#define CSREC_DB_SQ_TAIL_SHIFT		0	/* [31:0] commands ever written */
#define CSREC_DB_CQ_HEAD_SHIFT		32	/* [63:32] completions ever consumed */
#define CSREC_DB_STATE			0x8
#define CSREC_DBS_SQ_TAIL_SHIFT		0	/* [31:0] commands told by valid doorbells */
#define CSREC_DBS_CQ_TAIL_SHIFT		32	/* [63:32] completions posted */

/* Opcodes. Zero is no command, so that zeroed memory is refused. */
#define CSREC_OP_NOP			0x01
#define CSREC_OP_COPY			0x02
#define CSREC_OP_FILL			0x03
#define CSREC_OP_FENCE			0x04
#define CSREC_OP_SIGNAL			0x05
#define CSREC_OP_WAIT			0x06
#define CSREC_OP_EMB			0x10
#define CSREC_OP_TT			0x11
#define CSREC_OP_INTERACT		0x12
#define CSREC_OP_MLP			0x13
/* Admin queue only */
#define CSREC_OP_QUEUE_CREATE		0x80
#define CSREC_OP_QUEUE_DELETE		0x81
#define CSREC_OP_REGION_SET		0x82
#define CSREC_OP_REGION_INVAL		0x83
#define CSREC_OP_FENCE_SET		0x84
#define CSREC_OP_FENCE_INVAL		0x85
#define CSREC_OP_FENCE_SIGNAL		0x86

/* csrec_cmd.flags */
#define CSREC_CMD_F_FENCE		(1 << 0)	/* start after all earlier ones end */
#define CSREC_CMD_F_NOIRQ		(1 << 1)	/* no interrupt for this completion */
#define CSREC_CMD_F_ALL			(CSREC_CMD_F_FENCE | CSREC_CMD_F_NOIRQ)

/*
 * Keys name a region or a fence: slot index in [15:0], generation in [31:16].
 * Generations run 1..65535, so key 0 is never valid.
 */
#define CSREC_KEY_INDEX_SHIFT		0
#define CSREC_KEY_GEN_SHIFT		16

/* A command: 64 bytes. The head is common, the body depends on the opcode. */
struct csrec_cmd {
	__u8	opcode;
	__u8	flags;
	__le16	cid;		/* returned in the completion, not interpreted */
	__le32	rsvd4;
	__u8	body[56];
};

/* EMB, TT, INTERACT, MLP */
struct csrec_body_desc {
	__le32	desc_key;	/* region holding the descriptor, READ right */
	__le32	desc_len;	/* sizeof the opcode's descriptor */
	__le64	desc_off;	/* multiple of 8 */
	__le64	rsvd16[5];
};

/* COPY: src to dst. FILL: pattern to dst, src_* reserved. */
struct csrec_body_copy {
	__le32	src_key;
	__le32	dst_key;
	__le64	src_off;
	__le64	dst_off;
	__le64	len;		/* bytes, not 0 */
	__le32	pattern;	/* FILL only: repeated from dst_off on */
	__le32	rsvd44;
	__le64	rsvd48[2];
};

/* SIGNAL, WAIT; admin FENCE_SIGNAL, FENCE_INVAL (value reserved). */
struct csrec_body_fence {
	__le32	fence_key;
	__le32	rsvd4;
	__le64	value;
	__le64	rsvd16[5];
};

/* Admin FENCE_SET: (re)creates a fence. */
struct csrec_body_fence_set {
	__le32	fence_key;
	__le16	domain;
	__le16	rsvd6;
	__le64	value;		/* first value */
	__le64	rsvd16[5];
};

/* Admin QUEUE_CREATE; QUEUE_DELETE uses qid only. */
struct csrec_body_queue {
	__le16	qid;		/* 1..number of I/O queues */
	__u8	log2_entries;	/* 1..CAPQ_ENTRIES; SQ and CQ alike */
	__u8	rsvd3;
	__le16	vector;		/* MSI-X vector, below CAPQ_VECTORS */
	__le16	domain;
	__le64	sq_base;	/* bus address, 64 B aligned, contiguous */
	__le64	cq_base;	/* bus address, 16 B aligned, contiguous */
	/*
	 * Since 1.1: one interrupt for irq_count completions (0 is 1), or once the first of
	 * fewer has waited irq_cycles (0: no limit; then irq_count must be 0 or 1).
	 */
	__le16	irq_count;
	__le16	qflags;		/* CSREC_QUEUE_HW_F_* */
	__le32	irq_cycles;
	__le64	rsvd32[3];
};

#define CSREC_QUEUE_HW_F_NOIRQ		(1 << 0)	/* never an interrupt */
#define CSREC_QUEUE_HW_F_ALL		CSREC_QUEUE_HW_F_NOIRQ

/* Admin REGION_SET; REGION_INVAL uses region_key only. */
struct csrec_body_region {
	__le32	region_key;	/* slot and new generation */
	__u8	kind;		/* CSREC_REGION_* */
	__u8	rights;		/* CSREC_RIGHT_* */
	__le16	domain;
	/* DRAM, ONCHIP: byte offset, 64 B aligned. HOST: bus address of page list or memory. */
	__le64	base;
	__le64	size;		/* bytes, not 0 */
	__u8	levels;		/* HOST: 0 base is the memory itself, 1 page list, 2 list of
				 * page lists. Else 0.
				 */
	__u8	page_shift;	/* HOST, levels 1, 2: log2 page bytes, 12..30; else 0 */
	__le16	rsvd26;
	__le32	page_off;	/* HOST, levels 1, 2: first byte in page 0; else 0 */
	__le64	rsvd32[3];
};

/* Region kinds */
#define CSREC_REGION_HOST		1
#define CSREC_REGION_DRAM		2
#define CSREC_REGION_ONCHIP		3
#define CSREC_REGION_PEER		4	/* reserved: refused by this version */

/* Region rights: what the device may do there */
#define CSREC_RIGHT_READ		(1 << 0)
#define CSREC_RIGHT_WRITE		(1 << 1)

/* A page-list page has 512 little-endian bus addresses. */
#define CSREC_PAGE_LIST_ENTRIES		512

/* Completion: 16 bytes. */
struct csrec_cqe {
	__le16	cid;
	__le16	status;		/* [0] phase, [15:1] CSREC_ST_* */
	__le16	field;		/* byte offset of the offending field, see below */
	__le16	sq_head;	/* low 16 bits of the count of commands fetched */
	__le64	detail;		/* on error the offending value; on success see the command */
};

#define CSREC_CQE_PHASE			1
#define CSREC_CQE_STATUS_SHIFT		1
/*
 * csrec_cqe.field: offset in struct csrec_cmd, or with this bit set offset in
 * the descriptor. CSREC_FIELD_NONE: no single field is to blame.
 */
#define CSREC_FIELD_DESC		0x8000
#define CSREC_FIELD_NONE		0xffff

/* Completion status */
#define CSREC_ST_OK			0
#define CSREC_ST_BAD_OPCODE		1	/* unknown, or admin opcode on an I/O queue */
#define CSREC_ST_BAD_FLAGS		2	/* unknown flag bit */
#define CSREC_ST_RESERVED		3	/* reserved field not zero */
#define CSREC_ST_BAD_LENGTH		4	/* a length that cannot be */
#define CSREC_ST_BAD_ALIGN		5	/* offset or stride not aligned */
#define CSREC_ST_BAD_VALUE		6	/* outside the legal range or capability */
#define CSREC_ST_BAD_KEY		7	/* slot index out of range */
#define CSREC_ST_STALE_KEY		8	/* slot empty, or another generation */
#define CSREC_ST_BAD_DOMAIN		9	/* belongs to another domain */
#define CSREC_ST_BAD_RIGHTS		10	/* READ or WRITE not granted */
#define CSREC_ST_OUT_OF_BOUNDS		11	/* offset and length leave the region */
#define CSREC_ST_BAD_OFFSETS		12	/* bag offsets decrease or pass nids */
#define CSREC_ST_BAD_ID			13	/* row id not below nrows */
#define CSREC_ST_BUS_ERROR		14	/* host or DRAM answered with an error */
#define CSREC_ST_ABORTED		15	/* queue deleted */
#define CSREC_ST_BAD_QUEUE		16	/* queue exists, or does not */
#define CSREC_ST_COUNT			17

/*
 * EMB: SparseLengthsSum / EmbeddingBag(mode="sum") over one table.
 * out[b][e] = sum over j in [offsets[b], offsets[b+1]) of
 *             (weights[j] *) table[ids[j]][e]
 */
struct csrec_emb_desc {
	__le32	flags;		/* CSREC_EMB_F_* */
	__le16	dim;		/* elements per row, 1..CAPL_DIM */
	__u8	dtype;		/* CSREC_DTYPE_FP32 */
	__u8	rsvd7;
	__le32	nbags;		/* not 0 */
	__le32	nids;
	__le64	nrows;		/* ids must be below */
	__le32	row_stride;	/* bytes, multiple of 4, at least dim * 4 */
	__le32	out_stride;	/* bytes, multiple of 4, at least dim * 4 */
	__le32	table_key;	/* READ: nrows rows */
	__le32	ids_key;	/* READ: u32[nids] */
	__le32	offsets_key;	/* READ: u32[nbags + 1] */
	__le32	weights_key;	/* READ: f32[nids]; 0 without F_WEIGHTS */
	__le32	out_key;	/* WRITE */
	__le32	rsvd52;
	__le64	table_off;	/* all offsets: bytes, multiple of 4 */
	__le64	ids_off;
	__le64	offsets_off;
	__le64	weights_off;
	__le64	out_off;
	__le64	rsvd96[4];
};

#define CSREC_EMB_F_WEIGHTS		(1 << 0)	/* per-sample weights */
#define CSREC_EMB_F_ALL			CSREC_EMB_F_WEIGHTS

#define CSREC_DTYPE_FP32		0

/*
 * TT: the same sum over rows rebuilt from three tensor-train cores.
 * dim = q[0] * q[1] * q[2]. Core k is f32[p[k]][r[k]][q[k]][r[k+1]] with
 * r[0] = r[3] = 1, the layout of facebookresearch/FBTT-Embedding.
 */
struct csrec_tt_desc {
	__le32	flags;		/* CSREC_TT_F_* */
	__le32	nbags;		/* not 0 */
	__le32	nids;
	__le32	p[3];		/* not 0; product below 2^32 */
	__le16	q[3];		/* not 0; product at most CAPL_DIM */
	__le16	r[2];		/* r1, r2: 1..CAPL_RANK */
	__le16	rsvd34;
	__le32	out_stride;	/* bytes, multiple of 4, at least dim * 4 */
	__le64	nrows;		/* ids must be below; 1..product of p */
	__le32	core_key[3];	/* READ, kind ONCHIP */
	__le32	ids_key;	/* READ: u32[nids] */
	__le32	offsets_key;	/* READ: u32[nbags + 1] */
	__le32	weights_key;	/* READ: f32[nids]; 0 without F_WEIGHTS */
	__le32	out_key;	/* WRITE, and READ with F_ACCUM */
	__le32	rsvd76;
	__le64	core_off[3];	/* all offsets: bytes, multiple of 4 */
	__le64	ids_off;
	__le64	offsets_off;
	__le64	weights_off;
	__le64	out_off;
	__le64	rsvd136[7];
};

#define CSREC_TT_F_WEIGHTS		(1 << 0)	/* per-sample weights */
#define CSREC_TT_F_ACCUM		(1 << 1)	/* out += sum instead of out = sum */
#define CSREC_TT_F_ALL			(CSREC_TT_F_WEIGHTS | CSREC_TT_F_ACCUM)
/* elements of core k that one digit selects, r[k] * q[k] * r[k+1]: at most */
#define CSREC_TT_MAX_SLICE		4096

/* products of slices of cores 0 and 1 that are kept while a command runs: at most (since 1.2) */
#define CSREC_TT_MAX_KEPT		64

/*
 * INTERACT: feature interaction of nvec vectors of dim elements per sample,
 * vector 0 being the dense one.
 * DOT: out = [v0, dot(v1,v0), dot(v2,v0), dot(v2,v1), dot(v3,v0), ...]
 * CAT: out = [v0, v1, ..., v(nvec-1)]
 */
struct csrec_interact_desc {
	__le32	flags;		/* CSREC_INTERACT_F_* */
	__u8	op;		/* CSREC_INTERACT_DOT or _CAT */
	__u8	rsvd5;
	__le16	nvec;		/* 1..CAPL_VECS */
	__le16	dim;		/* 1..CAPL_DIM */
	__le16	rsvd10;
	__le32	batch;		/* samples, not 0 */
	__le32	in_key;		/* READ */
	__le32	out_key;	/* WRITE */
	__le64	in_off;		/* all offsets: bytes, multiple of 4 */
	__le64	out_off;
	__le32	vec_stride;	/* bytes between a sample's vectors */
	__le32	in_stride;	/* bytes between samples */
	__le32	out_stride;	/* bytes between samples */
	__le32	rsvd52;
	__le64	rsvd56;
};

#define CSREC_INTERACT_F_SELF		(1 << 0)	/* DOT: with the diagonal */
#define CSREC_INTERACT_F_ALL		CSREC_INTERACT_F_SELF
#define CSREC_INTERACT_DOT		0
#define CSREC_INTERACT_CAT		1

/*
 * MLP: one fully connected layer, y[b][o] = act(dot(x[b], w[o]) + bias[o]);
 * w is row-major [out][in], as torch.nn.Linear keeps it.
 */
struct csrec_mlp_desc {
	__le32	flags;		/* CSREC_MLP_F_* */
	__le32	batch;		/* samples, not 0 */
	__le16	in_dim;		/* 1..CAPL_WIDTH */
	__le16	out_dim;	/* 1..CAPL_WIDTH */
	__u8	act;		/* CSREC_ACT_* */
	__u8	dtype;		/* CSREC_DTYPE_FP32 */
	__le16	rsvd14;
	__le32	x_key;		/* READ: f32[batch][in_dim] */
	__le32	w_key;		/* READ: f32[out_dim][in_dim] */
	__le32	bias_key;	/* READ: f32[out_dim]; 0 without F_BIAS */
	__le32	y_key;		/* WRITE: f32[batch][out_dim] */
	__le64	x_off;		/* all offsets: bytes, multiple of 4 */
	__le64	w_off;
	__le64	bias_off;
	__le64	y_off;
	__le32	x_stride;	/* bytes, multiple of 4, at least in_dim * 4 */
	__le32	w_stride;	/* bytes, multiple of 4, at least in_dim * 4 */
	__le32	y_stride;	/* bytes, multiple of 4, at least out_dim * 4 */
	__le32	rsvd76;
	__le64	rsvd80[6];
};

#define CSREC_MLP_F_BIAS		(1 << 0)
#define CSREC_MLP_F_ALL			CSREC_MLP_F_BIAS
#define CSREC_ACT_NONE			0
#define CSREC_ACT_RELU			1
#define CSREC_ACT_SIGMOID		2

#endif /* _UAPI_LINUX_CSREC_HW_H */
