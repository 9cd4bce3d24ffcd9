/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Layouts of the model container and the cold extent; FORMAT.md says what they mean.
 * Everything is little-endian, and so is every host that this code supports.
 */
#ifndef CSM_FORMAT_H
#define CSM_FORMAT_H

#include <stdint.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "little-endian hosts only");

#define CSM_PAGE		4096

/* Model container */
#define CSM_MAGIC		"CSRECMDL"
#define CSM_MAJOR		1
#define CSM_MINOR		1	/* what the writer writes */

struct csm_hdr {
	char magic[8];
	uint16_t major, minor;
	uint32_t crc;			/* of the first CSM_PAGE bytes, this field 0 */
	uint64_t file_size;
	uint64_t dir_off;
	uint32_t nsections;
	uint32_t dir_crc;
};
_Static_assert(sizeof(struct csm_hdr) == 40, "header");

struct csm_dirent {
	uint32_t type;
	uint32_t index;
	uint64_t off;
	uint64_t size;
	uint32_t crc;
	uint32_t flags;
	char name[32];
};
_Static_assert(sizeof(struct csm_dirent) == 64, "directory entry");
#define CSM_SEC_F_OPTIONAL	1u

enum {
	CSM_SEC_META = 1,
	CSM_SEC_TABLES,
	CSM_SEC_ROWS,
	CSM_SEC_CORES,
	CSM_SEC_ORDER,
	CSM_SEC_LAYERS,
	CSM_SEC_WEIGHTS,
	CSM_SEC_BUFFERS,
	CSM_SEC_NODES,
	CSM_SEC_INPUT,
};

struct csm_rec_table {
	char name[16];
	uint8_t form;
	uint8_t dtype;
	uint16_t dim;
	uint32_t rsvd20;
	uint64_t nrows;
	uint32_t p[3];
	uint16_t q[3];
	uint16_t r[2];
	uint16_t rsvd54;
	uint64_t rsvd56;
};
_Static_assert(sizeof(struct csm_rec_table) == 64, "table record");

struct csm_rec_layer {
	char name[16];
	uint32_t in_dim, out_dim;
	uint8_t act;
	uint8_t has_bias;
	uint8_t dtype;
	uint8_t rsvd27[37];
};
_Static_assert(sizeof(struct csm_rec_layer) == 64, "layer record");

struct csm_rec_buffer {
	char name[16];
	uint32_t width;
	uint8_t kind;
	uint8_t rsvd21[11];
};
_Static_assert(sizeof(struct csm_rec_buffer) == 32, "buffer record");

struct csm_rec_node {
	uint8_t op;
	uint8_t flags;
	uint16_t nvec;
	uint16_t dim;
	uint16_t rsvd6;
	uint32_t param, column;
	uint32_t src, src_off, dst, dst_off;
	uint32_t vec_step;
	uint32_t repeat, src_step, dst_step;
	uint32_t rsvd48[4];
};
_Static_assert(sizeof(struct csm_rec_node) == 64, "node record");
#define CSM_NODE_F_SELF		1u

#define CSM_INPUT_CRITEO	"criteo-tsv"
#define CSM_INPUT_COLUMNS	"columns"

struct csm_rec_input {
	char format[16];
	uint32_t ndense, ncolumns;
	uint64_t rsvd24;
};
_Static_assert(sizeof(struct csm_rec_input) == 32, "input record");

/* Cold extent */
#define CSM_EXT_MAGIC		"CSRECEXT"
#define CSM_EXT_MAJOR		1

struct csm_ext_hdr {
	char magic[8];
	uint16_t major, minor;
	uint32_t crc;			/* of the first block, this field 0 */
	uint32_t block;
	uint32_t ntables;
	uint64_t nblocks;		/* the whole extent's */
	uint64_t dir_block;
	uint64_t crc_block;
	uint64_t data_block;
	uint32_t model_id;
	uint32_t dir_crc;
	uint32_t crc_crc;		/* of the checksum area */
	uint32_t rsvd68;
};
_Static_assert(sizeof(struct csm_ext_hdr) == 72, "extent header");

struct csm_ext_dirent {
	char name[16];
	uint64_t data_block;		/* first, from the extent's start */
	uint64_t nblocks;
	uint64_t nrows;
	uint32_t stride;
	uint32_t dim;
	uint32_t ids_crc;		/* of the row ids in extent order, u32 each */
	uint32_t rsvd52[3];
};
_Static_assert(sizeof(struct csm_ext_dirent) == 64, "extent directory entry");

#endif /* CSM_FORMAT_H */
