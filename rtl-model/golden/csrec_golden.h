/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Golden compute: the bits the device gives for EMB, TT, INTERACT and MLP, as plain
 * functions on plain memory. The rules are REFERENCE.md section 5 (numerics) and
 * section 4 (what each command computes); this is their C form.
 *
 * Units: strides are bytes and multiples of 4, dimensions are elements, float arrays
 * are little-endian binary32 as in device memory. Pointers are 4-byte aligned.
 * Ownership: nothing is allocated, kept or freed; outputs must not overlap inputs
 * (TT with accumulation reads its own output, nothing else).
 * Errors: the functions that take ids return CSREC_ST_OK, CSREC_ST_BAD_OFFSETS or
 * CSREC_ST_BAD_ID and the completion's detail; the others cannot fail. Shapes are the
 * caller's promise, legal as in REFERENCE.md; nothing else is checked here.
 * Threads: no state, every function may run anywhere at once, but the calling thread
 * must have the default floating-point environment (csrec_golden_env_ok()).
 */
#ifndef CSREC_GOLDEN_H
#define CSREC_GOLDEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The one NaN that arithmetic gives. */
#define CSREC_GOLDEN_NAN	0x7fc00000u

/*
 * Largest TT intermediate that csrec_golden_tt_row() may need, in elements:
 * q0 * q1 * r2 with q0 * q1 * q2 <= 256 and r2 <= 32.
 */
#define CSREC_GOLDEN_TT_TMP	(256 * 32)

/* Round to nearest, subnormals kept, on the calling thread? */
bool csrec_golden_env_ok(void);

/* Scalars. Any NaN result is CSREC_GOLDEN_NAN. */
float csrec_golden_add(float a, float b);
float csrec_golden_mul(float a, float b);
float csrec_golden_relu(float x);
float csrec_golden_sigmoid(float x);

/* Eight partial sums and a fixed tree, over n elements; n = 0 gives +0. */
float csrec_golden_dot(const float *a, const float *b, size_t n);

/* One step of a bag: sum[e] = sum[e] + row[e], or + (w * row[e]); w NULL for none. */
void csrec_golden_bag_add(float *sum, const float *row, const float *w, size_t dim);

/*
 * One TT row from the three core slices: a [q0][r1], b [r1][q1][r2], c [r2][q2];
 * row is f32[q0 * q1 * q2]. tmp holds q0 * q1 * r2 elements.
 */
void csrec_golden_tt_row(float *row, float *tmp, const float *a, const float *b,
			 const float *c, const uint16_t q[3], const uint16_t r[2]);

/* Bags of ids, shared by EMB and TT. */
struct csrec_golden_bags {
	uint32_t nbags;
	uint32_t nids;
	const uint32_t *ids;		/* [nids] */
	const uint32_t *offsets;	/* [nbags + 1] */
	const float *weights;		/* [nids], or NULL */
	uint64_t nrows;			/* ids must be below */
	float *out;			/* bag b at out + b * out_stride bytes */
	size_t out_stride;
};

/*
 * EMB: table row i at table + i * row_stride bytes, dim elements. On error the bags
 * before the bad one are written and *detail is the bag (BAD_OFFSETS) or the position
 * in ids (BAD_ID); on success it is the number of ids used.
 */
int csrec_golden_emb(const struct csrec_golden_bags *bags, const float *table,
		     size_t row_stride, size_t dim, uint64_t *detail);

/*
 * TT: core k is f32[p[k]][r[k]][q[k]][r[k + 1]], densely packed, r[0] = r[3] = 1 (r
 * here holds the middle two). accum: out += sum instead of out = sum. Errors as EMB.
 * dim = q0 * q1 * q2 is at most 256, r at most 32.
 */
int csrec_golden_tt(const struct csrec_golden_bags *bags, const float *const core[3],
		    const uint32_t p[3], const uint16_t q[3], const uint16_t r[2],
		    bool accum, uint64_t *detail);

/* Elements that INTERACT writes a sample; op is CSREC_INTERACT_DOT or _CAT. */
size_t csrec_golden_interact_len(int op, bool self, size_t nvec, size_t dim);

/* One sample: vectors at in + i * vec_stride bytes. */
void csrec_golden_interact(float *out, const float *in, size_t vec_stride, size_t nvec,
			   size_t dim, int op, bool self);

/*
 * One fully connected layer over a batch: y[b][o] = act(dot(x[b], w[o]) + bias[o]).
 * bias may be NULL; act is CSREC_ACT_*.
 */
struct csrec_golden_mlp {
	size_t batch, in_dim, out_dim;
	const float *x, *w, *bias;
	float *y;
	size_t x_stride, w_stride, y_stride;
	int act;
};

void csrec_golden_mlp(const struct csrec_golden_mlp *l);

/* One output of the layer above: dot, then bias (NULL for none), then act. */
float csrec_golden_neuron(const float *x, const float *w, size_t n, const float *bias,
			  int act);

#ifdef __cplusplus
}
#endif
#endif /* CSREC_GOLDEN_H */
