/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libcsrec-tt: tensor-train form of embedding tables: decomposition by TT-SVD, its error,
 * and an embedding bag on the CPU.
 *
 * A table f32[nrows][dim] is a tensor: row i has digits i_0 .. i_{d-1} in bases p (the first
 * the most significant), column j digits j_0 .. j_{d-1} in bases q. Its tensor train is
 *	row(i)[j] = G_0[i_0][:][j_0][:] * ... * G_{d-1}[i_{d-1}][:][j_{d-1}][:]
 * with core k f32[p_k][r_k][q_k][r_{k+1}], r_0 = r_d = 1: digit order and core layout of
 * facebookresearch/FBTT-Embedding, of uapi/linux/csrec_hw.h and of CORES in a model.
 *
 * TT-SVD and its error bound: I. Oseledets, Tensor-Train Decomposition, SIAM J. Sci.
 * Comput. 33 (2011), algorithm 1 and theorem 2.2. Randomized SVD: Halko, Martinsson, Tropp,
 * SIAM Review 53 (2011), algorithms 4.4 and 5.1.
 *
 * Functions that can fail return 0 or a negative errno and say what and where in *err.
 */
#ifndef TT_H
#define TT_H

#include <stddef.h>
#include <stdint.h>

#include "csm.h"

#define TT_MAX		4		/* cores, at least 2 */
#define TT_RANK_MAX	4096
#define TT_DIM_MAX	65535

struct tt_shape {
	uint32_t d;			/* cores */
	uint32_t p[TT_MAX];		/* product at least nrows, below 2^32 */
	uint32_t q[TT_MAX];		/* product is dim */
	uint32_t r[TT_MAX + 1];		/* r[0] = r[d] = 1 */
};

struct tt_error {
	double norm;			/* Frobenius norm of the table */
	double relative;		/* norm of the difference / norm; 0 for a table of zeros */
	double weighted;		/* sqrt(sum w |row - row'|^2 / sum w |row|^2); without weights = relative */
	double mean_row, worst_row;	/* |row - row'|, Euclidean */
	uint64_t worst;			/* the row it is of */
	/*
	 * sqrt of the sum of all squared singular values that were cut off, over norm:
	 * relative is no larger, but for fp32 rounding. With weights it is of the table with
	 * its rows scaled, see tt_decompose(). Set by tt_decompose*() only.
	 */
	double bound;
};

/* Are d, p, q and r possible, for nrows rows of dim elements? -EINVAL if not. */
int tt_check(const struct tt_shape *s, uint64_t nrows, uint32_t dim, struct csm_err *err);

/* Sets d, p, q: p as equal as can be with little to spare above nrows, q the factors of dim with
 * the least sum, ascending. r[0] = r[d] = 1, the other ranks are the caller's. */
int tt_shape_auto(struct tt_shape *s, uint32_t d, uint64_t nrows, uint32_t dim, struct csm_err *err);
/* The same for one of them; p or q may come from elsewhere. */
int tt_auto_p(struct tt_shape *s, uint64_t nrows, struct csm_err *err);
int tt_auto_q(struct tt_shape *s, uint32_t dim, struct csm_err *err);

/* Largest rank between cores k - 1 and k that can be of use. */
uint64_t tt_full_rank(const struct tt_shape *s, uint32_t k);

/* Sets r to the largest equal ranks (less where fewer suffice) up to max_rank with which the cores
 * take at most bytes. -ENOSPC if rank 1 takes more. */
int tt_ranks_for_bytes(struct tt_shape *s, uint64_t bytes, uint32_t max_rank, struct csm_err *err);

uint64_t tt_core_len(const struct tt_shape *s, uint32_t k);	/* elements */
uint64_t tt_bytes(const struct tt_shape *s);			/* of all cores */
uint32_t tt_dim(const struct tt_shape *s);

/*
 * Cores of rows, f32[nrows][dim], with the ranks of s. Row numbers from nrows to the product of p
 * stand for zero rows: they add nothing to norms, and tt_auto_p() leaves few of them.
 * A rank above tt_full_rank() is filled up with zeros.
 *
 * weight, per row, finite and not negative, or NULL: makes errors of rows count by it (accesses,
 * for an error weighted by access). Weights of a TT must be a product over digits,
 * which the nearest product (of the means per digit) stands in for: rows are scaled by its square
 * root, decomposed, and the cores scaled back. The result without weights is taken if its weighted
 * error is less.
 *
 * An unfolding with a side of up to 1024 is decomposed exactly, by the eigenvectors of its
 * Gram matrix in fp64; a larger one by randomized SVD with a fixed seed, 16 columns and two
 * power iterations more than needed. The same input gives the same cores, if BLAS does.
 *
 * cores[TT_MAX] gets d allocated arrays and then NULL; free them with tt_free(). e is measured, not estimated.
 * -EINVAL: shape, or a row that is not finite (which is said). -ENOMEM.
 */
int tt_decompose(const struct tt_shape *s, const float *rows, uint64_t nrows, const float *weight,
		 float **cores, struct tt_error *e, struct csm_err *err);
/*
 * The same with the smallest ranks, which s->r gets, that keep the error (weighted if there are
 * weights) within max_error, 0 < max_error < 1. -ERANGE if that needs a rank above max_rank.
 */
int tt_decompose_to(struct tt_shape *s, const float *rows, uint64_t nrows, const float *weight,
		    double max_error, uint32_t max_rank, float **cores, struct tt_error *e,
		    struct csm_err *err);
void tt_free(float **cores);

/* Errors of cores against rows; row_error, f32[nrows], gets |row - row'| if not NULL. */
int tt_measure(const struct tt_shape *s, const float *const *cores, const float *rows,
	       uint64_t nrows, const float *weight, float *row_error, struct tt_error *e,
	       struct csm_err *err);

/* out, f32[n][dim]: rows first .. first + n - 1. */
int tt_rows(const struct tt_shape *s, const float *const *cores, uint64_t first, uint64_t n,
	    float *out, struct csm_err *err);

/*
 * out, f32[nbags][dim]: bag b is the sum of rows ids[offsets[b]] .. ids[offsets[b + 1] - 1], each
 * times its weight if weights, f32[offsets[nbags]], is not NULL; an empty bag is 0. Rows are
 * rebuilt in fp32, each distinct one once per 8192 ids, products of leading cores once for
 * rows that share their digits. -EINVAL: offsets not ascending from 0, or a shape that cannot be;
 * -ERANGE: an id of nrows or more. out is not written then.
 */
int tt_embedding_bag(const struct tt_shape *s, const float *const *cores, uint64_t nrows,
		     const uint32_t *ids, const uint32_t *offsets, uint32_t nbags,
		     const float *weights, float *out, struct csm_err *err);

/*
 * Cores as an .npz of arrays tt_cores.0 .. tt_cores.(d-1), float32 [1][p_k][r_k * q_k * r_{k+1}]: the
 * shapes, and the names, of FBTT-Embedding's parameters; np.load() and np.savez() read and
 * write it. The file appears when it is complete.
 */
int tt_export(const struct tt_shape *s, const float *const *cores, const char *path,
	      struct csm_err *err);
/*
 * The reverse, for s->d and s->q given; p and r follow from the arrays' shapes. -EBADMSG: damaged
 * file; -EINVAL: other arrays, compressed ones, values that are not finite.
 */
int tt_import(struct tt_shape *s, const char *path, float **cores, struct csm_err *err);

#endif /* TT_H */
