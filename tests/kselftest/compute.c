// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Compute commands, small cases. What must come out is computed here from the rules of
 * rtl-model/REFERENCE.md section 5, one fp32 operation at a time (-ffp-contract=off), and
 * compared bit for bit; sigmoid within its 4 ulp of the real function.
 */
#include <math.h>

#include "csrec_test.h"

#define HOST_LEN	(256 * KIB)
#define DRAM_LEN	(64 * KIB)

FIXTURE(compute)
{
	int fd;
	int q;
	uint8_t *host;
	uint32_t host_key;
	uint32_t dram;
	uint32_t onchip;
	uint64_t engines;
};

FIXTURE_SETUP(compute)
{
	struct csrec_info info;

	self->fd = dev_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, get_info(self->fd, &info));
	self->engines = info.cap_engine;
	self->q = q_create(self->fd, 16);
	ASSERT_LT(0, self->q);
	self->host = pages(HOST_LEN);
	ASSERT_EQ(0, mem_register(self->fd, self->host, HOST_LEN,
				  CSREC_RIGHT_READ | CSREC_RIGHT_WRITE, &self->host_key));
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_DRAM, DRAM_LEN, &self->dram));
	ASSERT_EQ(0, mem_alloc(self->fd, CSREC_REGION_ONCHIP, 16 * KIB, &self->onchip));
}

FIXTURE_TEARDOWN(compute)
{
	close(self->fd);
}

/* Where things lie in the host region. */
#define AT_DESC		0
#define AT_IDS		4096
#define AT_OFFSETS	8192
#define AT_WEIGHTS	12288
#define AT_OUT		16384
#define AT_DATA		(64 * KIB)

static uint32_t rng_state = 12345;

static uint32_t rng(void)
{
	rng_state = rng_state * 1664525 + 1013904223;
	return rng_state >> 8;
}

/* Of every magnitude that sums meet, both signs. */
static float rng_float(void)
{
	float v = (float)rng() / (1 << 24) - 0.5f;

	return ldexpf(v, (int)(rng() % 9) - 4);
}

static uint32_t bits(float f)
{
	uint32_t u;

	memcpy(&u, &f, sizeof(u));
	return u;
}

/* Eight partial sums and a fixed tree. */
static float dot(const float *a, const float *b, unsigned int n)
{
	float p[8] = {};

	for (unsigned int k = 0; k < n; k++)
		p[k % 8] = p[k % 8] + a[k] * b[k];
	return ((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7]));
}

static int to_device(int fd, int q, uint32_t host, uint64_t off, uint32_t dst, uint64_t len)
{
	struct csrec_cmd cmd = cmd_copy(host, off, dst, 0, len);
	struct csrec_cqe cqe;

	return run_cmd(fd, q, &cmd, &cqe);
}

#define NBAGS	5
#define NIDS	14

/* Empty bags at the start, within and at the end; an id twice in a bag. */
static const uint32_t bag_offsets[NBAGS + 1] = { 0, 0, 5, 5, 14, 14 };

TEST_F(compute, emb)
{
	enum { DIM = 13, ROWS = 37, STRIDE = 64, OUT_STRIDE = 56 };
	float *table = (float *)(self->host + AT_DATA), *w = (float *)(self->host + AT_WEIGHTS);
	uint32_t *ids = (uint32_t *)(self->host + AT_IDS);
	struct csrec_emb_desc *desc = (void *)(self->host + AT_DESC);

	if (!(self->engines & CSREC_CAPE_EMB))
		SKIP(return, "device has no EMB engine");
	for (int r = 0; r < ROWS; r++)
		for (int e = 0; e < DIM; e++)
			table[r * STRIDE / 4 + e] = rng_float();
	for (int i = 0; i < NIDS; i++) {
		ids[i] = rng() % ROWS;
		w[i] = rng_float();
	}
	ids[1] = ids[0];
	ids[2] = ROWS - 1;
	ids[3] = 0;
	memcpy(self->host + AT_OFFSETS, bag_offsets, sizeof(bag_offsets));
	ASSERT_EQ(0, to_device(self->fd, self->q, self->host_key, AT_DATA, self->dram,
			       ROWS * STRIDE));

	for (int weighted = 0; weighted < 2; weighted++) {
		struct csrec_cqe cqe;
		struct csrec_cmd cmd;

		memset(desc, 0, sizeof(*desc));
		desc->dim = htole16(DIM);
		desc->nbags = htole32(NBAGS);
		desc->nids = htole32(NIDS);
		desc->nrows = htole64(ROWS);
		desc->row_stride = htole32(STRIDE);
		desc->out_stride = htole32(OUT_STRIDE);
		desc->table_key = htole32(self->dram);
		desc->ids_key = htole32(self->host_key);
		desc->ids_off = htole64(AT_IDS);
		desc->offsets_key = htole32(self->host_key);
		desc->offsets_off = htole64(AT_OFFSETS);
		desc->out_key = htole32(self->host_key);
		desc->out_off = htole64(AT_OUT);
		if (weighted) {
			desc->flags = htole32(CSREC_EMB_F_WEIGHTS);
			desc->weights_key = htole32(self->host_key);
			desc->weights_off = htole64(AT_WEIGHTS);
		}
		memset(self->host + AT_OUT, 0xee, NBAGS * OUT_STRIDE);
		cmd = cmd_desc(CSREC_OP_EMB, self->host_key, AT_DESC, sizeof(*desc));
		ASSERT_EQ(0, run_cmd(self->fd, self->q, &cmd, &cqe))
			TH_LOG("field 0x%x detail 0x%llx", le16toh(cqe.field),
			       (unsigned long long)le64toh(cqe.detail));
		EXPECT_EQ(NIDS, le64toh(cqe.detail));
		for (int b = 0; b < NBAGS; b++) {
			float *out = (float *)(self->host + AT_OUT + b * OUT_STRIDE);

			for (int e = 0; e < DIM; e++) {
				float s = 0;

				for (uint32_t j = bag_offsets[b]; j < bag_offsets[b + 1]; j++) {
					float v = table[ids[j] * STRIDE / 4 + e];

					s = s + (weighted ? w[j] * v : v);
				}
				ASSERT_EQ(bits(s), bits(out[e]))
					TH_LOG("bag %d, element %d", b, e);
			}
			/* between the rows nothing is written */
			if (b < NBAGS - 1) {
				EXPECT_EQ(0xeeeeeeee, bits(out[DIM]));
			}
		}
	}
}

TEST_F(compute, emb_refused)
{
	struct csrec_emb_desc *desc = (void *)(self->host + AT_DESC);
	struct csrec_cmd cmd = cmd_desc(CSREC_OP_EMB, self->host_key, AT_DESC, sizeof(*desc));
	uint32_t *offsets = (uint32_t *)(self->host + AT_OFFSETS);
	uint32_t *ids = (uint32_t *)(self->host + AT_IDS);
	struct csrec_cmd bad;
	struct csrec_cqe cqe;

	if (!(self->engines & CSREC_CAPE_EMB))
		SKIP(return, "device has no EMB engine");
	*desc = (struct csrec_emb_desc){
		.dim = htole16(4), .nbags = htole32(2), .nids = htole32(2), .nrows = htole64(8),
		.row_stride = htole32(16), .out_stride = htole32(16),
		.table_key = htole32(self->dram), .ids_key = htole32(self->host_key),
		.offsets_key = htole32(self->host_key), .out_key = htole32(self->host_key),
		.ids_off = htole64(AT_IDS), .offsets_off = htole64(AT_OFFSETS),
		.out_off = htole64(AT_OUT),
	};
	offsets[1] = 1;
	offsets[2] = 2;
	ASSERT_EQ(0, run_cmd(self->fd, self->q, &cmd, &cqe));

	ids[1] = 8;
	EXPECT_EQ(CSREC_ST_BAD_ID, run_cmd(self->fd, self->q, &cmd, &cqe));
	EXPECT_EQ(1, le64toh(cqe.detail));
	EXPECT_EQ(CSREC_FIELD_DESC | offsetof(struct csrec_emb_desc, ids_off), le16toh(cqe.field));
	ids[1] = 0;
	offsets[2] = 3;
	EXPECT_EQ(CSREC_ST_BAD_OFFSETS, run_cmd(self->fd, self->q, &cmd, &cqe));
	EXPECT_EQ(1, le64toh(cqe.detail));
	offsets[2] = 2;
	desc->out_key = htole32(0);
	EXPECT_EQ(CSREC_ST_STALE_KEY, run_cmd(self->fd, self->q, &cmd, &cqe));
	EXPECT_EQ(CSREC_FIELD_DESC | offsetof(struct csrec_emb_desc, out_key), le16toh(cqe.field));
	desc->out_key = htole32(self->host_key);
	desc->nrows = htole64(DRAM_LEN / 16 + 1);
	EXPECT_EQ(CSREC_ST_OUT_OF_BOUNDS, run_cmd(self->fd, self->q, &cmd, &cqe));
	desc->nrows = htole64(8);
	desc->rsvd52 = htole32(1);
	EXPECT_EQ(CSREC_ST_RESERVED, run_cmd(self->fd, self->q, &cmd, &cqe));
	desc->rsvd52 = 0;
	bad = cmd_desc(CSREC_OP_EMB, self->host_key, AT_DESC, sizeof(*desc) - 8);
	EXPECT_EQ(CSREC_ST_BAD_LENGTH, run_cmd(self->fd, self->q, &bad, &cqe));
	bad = cmd_desc(CSREC_OP_EMB, self->host_key, AT_DESC + 4, sizeof(*desc));
	EXPECT_EQ(CSREC_ST_BAD_ALIGN, run_cmd(self->fd, self->q, &bad, &cqe));
	EXPECT_EQ(0, run_cmd(self->fd, self->q, &cmd, &cqe));
}

TEST_F(compute, tt)
{
	enum { P0 = 3, P1 = 4, P2 = 5, Q0 = 2, Q1 = 2, Q2 = 3, R1 = 3, R2 = 5,
	       DIM = Q0 * Q1 * Q2, ROWS = 57, N0 = P0 * Q0 * R1, N1 = P1 * R1 * Q1 * R2,
	       N2 = P2 * R2 * Q2, AT1 = 4096, AT2 = 8192 };
	float *c0 = (float *)(self->host + AT_DATA), *c1 = c0 + AT1 / 4, *c2 = c0 + AT2 / 4;
	float *w = (float *)(self->host + AT_WEIGHTS);
	uint32_t *ids = (uint32_t *)(self->host + AT_IDS);
	struct csrec_tt_desc *desc = (void *)(self->host + AT_DESC);
	unsigned int leads = 0;

	if (!(self->engines & CSREC_CAPE_TT))
		SKIP(return, "device has no TT engine");
	for (int i = 0; i < N0; i++)
		c0[i] = rng_float();
	for (int i = 0; i < N1; i++)
		c1[i] = rng_float();
	for (int i = 0; i < N2; i++)
		c2[i] = rng_float();
	for (int i = 0; i < NIDS; i++) {
		ids[i] = rng() % ROWS;
		w[i] = rng_float();
	}
	ids[0] = ROWS - 1;
	ids[1] = 0;
	for (int i = 0; i < NIDS; i++)
		leads |= 1u << ids[i] / P2;
	memcpy(self->host + AT_OFFSETS, bag_offsets, sizeof(bag_offsets));
	ASSERT_EQ(0, to_device(self->fd, self->q, self->host_key, AT_DATA, self->onchip,
			       AT2 + N2 * 4));

	for (int mode = 0; mode < 4; mode++) {
		bool weighted = mode & 1, accum = mode & 2;
		struct csrec_stats stats[2];
		float before[NBAGS][DIM];
		struct csrec_cqe cqe;
		struct csrec_cmd cmd;

		memset(desc, 0, sizeof(*desc));
		desc->flags = htole32((weighted ? CSREC_TT_F_WEIGHTS : 0) |
				      (accum ? CSREC_TT_F_ACCUM : 0));
		desc->nbags = htole32(NBAGS);
		desc->nids = htole32(NIDS);
		desc->p[0] = htole32(P0);
		desc->p[1] = htole32(P1);
		desc->p[2] = htole32(P2);
		desc->q[0] = htole16(Q0);
		desc->q[1] = htole16(Q1);
		desc->q[2] = htole16(Q2);
		desc->r[0] = htole16(R1);
		desc->r[1] = htole16(R2);
		desc->out_stride = htole32(DIM * 4);
		desc->nrows = htole64(ROWS);
		for (int i = 0; i < 3; i++)
			desc->core_key[i] = htole32(self->onchip);
		desc->core_off[1] = htole64(AT1);
		desc->core_off[2] = htole64(AT2);
		desc->ids_key = htole32(self->host_key);
		desc->ids_off = htole64(AT_IDS);
		desc->offsets_key = htole32(self->host_key);
		desc->offsets_off = htole64(AT_OFFSETS);
		desc->out_key = htole32(self->host_key);
		desc->out_off = htole64(AT_OUT);
		if (weighted) {
			desc->weights_key = htole32(self->host_key);
			desc->weights_off = htole64(AT_WEIGHTS);
		}
		for (int b = 0; b < NBAGS; b++)
			for (int e = 0; e < DIM; e++)
				before[b][e] = rng_float();
		memcpy(self->host + AT_OUT, before, sizeof(before));

		cmd = cmd_desc(CSREC_OP_TT, self->host_key, AT_DESC, sizeof(*desc));
		ASSERT_EQ(0, get_stats(self->fd, &stats[0]));
		ASSERT_EQ(0, run_cmd(self->fd, self->q, &cmd, &cqe))
			TH_LOG("field 0x%x detail 0x%llx", le16toh(cqe.field),
			       (unsigned long long)le64toh(cqe.detail));
		EXPECT_EQ(NIDS, le64toh(cqe.detail));
		/* there is room for all products of leading digits: each is made once */
		ASSERT_EQ(0, get_stats(self->fd, &stats[1]));
		EXPECT_EQ(stats[0].tt_saved +
			  (NIDS - __builtin_popcount(leads)) * Q0 * R1 * Q1 * R2, stats[1].tt_saved);

		for (int b = 0; b < NBAGS; b++) {
			float *out = (float *)(self->host + AT_OUT + b * DIM * 4), s[DIM] = {};

			for (uint32_t j = bag_offsets[b]; j < bag_offsets[b + 1]; j++) {
				uint32_t i0 = ids[j] / (P1 * P2), i1 = ids[j] / P2 % P1;
				uint32_t i2 = ids[j] % P2;

				for (int a = 0; a < Q0; a++) {
					for (int c = 0; c < Q1; c++) {
						float t[R2];

						/* T[a*q1 + c][s] over r1, with B's column */
						for (int k = 0; k < R2; k++) {
							float col[R1];

							for (int r = 0; r < R1; r++)
								col[r] = c1[((i1 * R1 + r) * Q1 + c) * R2 + k];
							t[k] = dot(&c0[(i0 * Q0 + a) * R1], col, R1);
						}
						for (int d = 0; d < Q2; d++) {
							int e = (a * Q1 + c) * Q2 + d;
							float col[R2], v;

							for (int k = 0; k < R2; k++)
								col[k] = c2[(i2 * R2 + k) * Q2 + d];
							v = dot(t, col, R2);
							s[e] = s[e] + (weighted ? w[j] * v : v);
						}
					}
				}
			}
			for (int e = 0; e < DIM; e++) {
				float want = accum ? before[b][e] + s[e] : s[e];

				ASSERT_EQ(bits(want), bits(out[e]))
					TH_LOG("mode %d, bag %d, element %d", mode, b, e);
			}
		}
	}
}

TEST_F(compute, interact)
{
	enum { NVEC = 5, DIM = 11, BATCH = 3, VEC_STRIDE = 48, IN_STRIDE = 256, OUT_STRIDE = 256 };
	float *in = (float *)(self->host + AT_DATA);
	struct csrec_interact_desc *desc = (void *)(self->host + AT_DESC);

	if (!(self->engines & CSREC_CAPE_INTERACT))
		SKIP(return, "device has no INTERACT engine");
	for (unsigned int i = 0; i < BATCH * IN_STRIDE / 4; i++)
		in[i] = rng_float();

	for (int mode = 0; mode < 3; mode++) {
		bool cat = mode == 2, self_pairs = mode == 1;
		struct csrec_cqe cqe;
		struct csrec_cmd cmd;

		memset(desc, 0, sizeof(*desc));
		desc->flags = htole32(self_pairs ? CSREC_INTERACT_F_SELF : 0);
		desc->op = cat ? CSREC_INTERACT_CAT : CSREC_INTERACT_DOT;
		desc->nvec = htole16(NVEC);
		desc->dim = htole16(DIM);
		desc->batch = htole32(BATCH);
		desc->in_key = htole32(self->host_key);
		desc->in_off = htole64(AT_DATA);
		desc->out_key = htole32(self->host_key);
		desc->out_off = htole64(AT_OUT);
		desc->vec_stride = htole32(VEC_STRIDE);
		desc->in_stride = htole32(IN_STRIDE);
		desc->out_stride = htole32(OUT_STRIDE);
		memset(self->host + AT_OUT, 0xee, BATCH * OUT_STRIDE);
		cmd = cmd_desc(CSREC_OP_INTERACT, self->host_key, AT_DESC, sizeof(*desc));
		ASSERT_EQ(0, run_cmd(self->fd, self->q, &cmd, &cqe))
			TH_LOG("field 0x%x detail 0x%llx", le16toh(cqe.field),
			       (unsigned long long)le64toh(cqe.detail));
		EXPECT_EQ(BATCH, le64toh(cqe.detail));
		for (int b = 0; b < BATCH; b++) {
			float *out = (float *)(self->host + AT_OUT + b * OUT_STRIDE);
			float want[64];
			int n = 0;

			for (int v = 0; v < (cat ? NVEC : 1); v++)
				for (int e = 0; e < DIM; e++)
					want[n++] = in[b * IN_STRIDE / 4 + v * VEC_STRIDE / 4 + e];
			for (int i = 0; i < NVEC && !cat; i++)
				for (int j = 0; self_pairs ? j <= i : j < i; j++)
					want[n++] = dot(in + b * IN_STRIDE / 4 + i * VEC_STRIDE / 4,
							in + b * IN_STRIDE / 4 + j * VEC_STRIDE / 4,
							DIM);
			for (int e = 0; e < n; e++) {
				ASSERT_EQ(bits(want[e]), bits(out[e]))
					TH_LOG("mode %d, sample %d, element %d", mode, b, e);
			}
			EXPECT_EQ(0xeeeeeeee, bits(out[n]));
		}
	}
}

/* Steps between two floats of the same sign. */
static uint32_t ulps(float a, float b)
{
	return bits(a) > bits(b) ? bits(a) - bits(b) : bits(b) - bits(a);
}

TEST_F(compute, mlp)
{
	enum { IN = 19, OUT = 7, BATCH = 4, X_STRIDE = 80, W_STRIDE = 76, Y_STRIDE = 32,
	       AT_W = AT_DATA + 4096, AT_B = AT_DATA + 8192 };
	float *x = (float *)(self->host + AT_DATA), *w = (float *)(self->host + AT_W);
	float *bias = (float *)(self->host + AT_B);
	struct csrec_mlp_desc *desc = (void *)(self->host + AT_DESC);
	unsigned int negative = 0;

	if (!(self->engines & CSREC_CAPE_MLP))
		SKIP(return, "device has no MLP engine");
	for (unsigned int i = 0; i < BATCH * X_STRIDE / 4; i++)
		x[i] = rng_float();
	for (unsigned int i = 0; i < OUT * W_STRIDE / 4; i++)
		w[i] = rng_float();
	for (int i = 0; i < OUT; i++)
		bias[i] = rng_float();

	for (int mode = 0; mode < 6; mode++) {
		bool with_bias = mode & 1;
		int act = mode / 2;
		struct csrec_cqe cqe;
		struct csrec_cmd cmd;

		memset(desc, 0, sizeof(*desc));
		desc->flags = htole32(with_bias ? CSREC_MLP_F_BIAS : 0);
		desc->batch = htole32(BATCH);
		desc->in_dim = htole16(IN);
		desc->out_dim = htole16(OUT);
		desc->act = act;
		desc->x_key = htole32(self->host_key);
		desc->x_off = htole64(AT_DATA);
		desc->w_key = htole32(self->host_key);
		desc->w_off = htole64(AT_W);
		desc->y_key = htole32(self->host_key);
		desc->y_off = htole64(AT_OUT);
		desc->x_stride = htole32(X_STRIDE);
		desc->w_stride = htole32(W_STRIDE);
		desc->y_stride = htole32(Y_STRIDE);
		if (with_bias) {
			desc->bias_key = htole32(self->host_key);
			desc->bias_off = htole64(AT_B);
		}
		cmd = cmd_desc(CSREC_OP_MLP, self->host_key, AT_DESC, sizeof(*desc));
		ASSERT_EQ(0, run_cmd(self->fd, self->q, &cmd, &cqe))
			TH_LOG("field 0x%x detail 0x%llx", le16toh(cqe.field),
			       (unsigned long long)le64toh(cqe.detail));
		EXPECT_EQ(BATCH, le64toh(cqe.detail));
		for (int b = 0; b < BATCH; b++) {
			float *y = (float *)(self->host + AT_OUT + b * Y_STRIDE);

			for (int o = 0; o < OUT; o++) {
				float v = dot(x + b * X_STRIDE / 4, w + o * W_STRIDE / 4, IN);

				if (with_bias)
					v = v + bias[o];
				negative += v < 0;
				if (act == CSREC_ACT_RELU)
					v = v > 0 ? v : 0.0f;
				if (act == CSREC_ACT_SIGMOID) {
					EXPECT_GE(4, ulps((float)(1 / (1 + exp(-(double)v))), y[o]));
				} else {
					ASSERT_EQ(bits(v), bits(y[o]))
						TH_LOG("mode %d, sample %d, output %d", mode, b, o);
				}
			}
		}
	}
	EXPECT_NE(0, negative);		/* else ReLU was not tried */
}

TEST_HARNESS_MAIN
