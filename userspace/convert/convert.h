/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libcsrec-convert: trained models from other programs' files to csrec model containers.
 * README.md says which keys, shapes and architectures are taken.
 *
 * Functions that can fail return 0 or a negative errno and say in *err what and where:
 * -EBADMSG for a damaged file, -EINVAL for one that is no model this can convert.
 */
#ifndef CVT_H
#define CVT_H

#include <csm.h>

/*
 * Tensors of a file
 */
enum cvt_kind { CVT_SAFETENSORS, CVT_NPZ, CVT_NPZ_IDS };	/* ids: of whole numbers */
enum cvt_dtype { CVT_F32, CVT_F16, CVT_BF16, CVT_I32, CVT_I64 };

struct cvt_tensor {
	char *key;			/* at most CVT_KEY_MAX printable bytes */
	enum cvt_dtype dtype;
	uint32_t ndim;
	uint64_t shape[2];		/* more dimensions are refused on opening */
	uint64_t count;			/* elements */
	uint64_t off;			/* file offset of its data (npz: of the member's) */
	/* npz */
	bool deflated;
	uint64_t packed, size;		/* bytes of the member, in the file and unpacked */
	uint32_t skip;			/* its .npy header */
	uint32_t crc;
};

#define CVT_KEY_MAX	200
#define CVT_TENSORS_MAX	131072u
#define CVT_HEADER_MAX	(16u << 20)	/* bytes of JSON, or of a zip's central directory */

struct cvt_source {
	char *path;
	int fd;
	enum cvt_kind kind;
	uint64_t size;
	struct cvt_tensor *t;		/* sorted by key */
	uint32_t n;
};

/* Opens a file and checks everything but the data: key, type, shape, place of each tensor. */
int cvt_open(struct cvt_source *s, const char *path, enum cvt_kind kind, struct csm_err *err);
void cvt_close(struct cvt_source *s);
const struct cvt_tensor *cvt_find(const struct cvt_source *s, const char *key);

/* Reads a tensor from its first element on, in row-major order, in constant memory. */
struct cvt_stream;
struct cvt_stream *cvt_stream_open(const struct cvt_source *s, const struct cvt_tensor *t,
				   struct csm_err *err);
/* The next n elements, as fp32. -EBADMSG: NaN or infinity, or a member that ends early. */
int cvt_stream_read(struct cvt_stream *st, float *out, size_t n, struct csm_err *err);
/* The next len bytes as they are: the only way to whole numbers. */
int cvt_stream_raw(struct cvt_stream *st, void *buf, size_t len, struct csm_err *err);
/* After the last element: checks what a zip member promises of itself. */
int cvt_stream_end(struct cvt_stream *st, struct csm_err *err);
void cvt_stream_close(struct cvt_stream *st);

/*
 * Conversion
 */
struct cvt_rows {			/* --rows: a type for all tables, others for some */
	enum csm_dtype all;
	struct cvt_rows_of {
		char name[17];
		enum csm_dtype dtype;
		bool used;
	} *of;
	uint32_t n;
};

/* TYPE[,TABLE=TYPE]... */
int cvt_rows_parse(struct cvt_rows *r, const char *text, struct csm_err *err);
void cvt_rows_free(struct cvt_rows *r);

struct cvt_result {
	char type[16];			/* dlrm, wnd, mtwnd, ncf */
	char interaction[16];		/* dot, dot-itself, cat, sum (of ncf) */
	uint32_t ntables, nlayers, ndense, ncolumns;
	uint64_t rows, bytes_in, bytes_out;
};

/* arch: path of a JSON file, or NULL. */
int cvt_convert(const struct cvt_source *s, const char *arch, struct cvt_rows *rows,
		const char *out, struct cvt_result *result, struct csm_err *err);

/* What the parsers of safetensors.c and npz.c share with tensors.c. */
int cvt_open_safetensors(struct cvt_source *s, struct csm_err *err);
int cvt_open_npz(struct cvt_source *s, struct csm_err *err);
/* Exactly len bytes from off; -EBADMSG if the file ends before. */
int cvt_pread(const struct cvt_source *s, void *buf, size_t len, uint64_t off,
	      struct csm_err *err);
/* Adds a tensor, whose key is copied. */
struct cvt_tensor *cvt_add(struct cvt_source *s, const char *key, size_t len, struct csm_err *err);
/* Sets shape and count, and refuses more than two dimensions and overflow. */
int cvt_set_shape(const struct cvt_source *s, struct cvt_tensor *t, const uint64_t *shape,
		  uint32_t ndim, struct csm_err *err);
extern const uint32_t cvt_dtype_size[];

#endif
