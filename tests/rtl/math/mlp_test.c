// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * csrec_mlp behind a fake MMU, against loops over plain floats.
 *
 *   mlp_test
 *
 * Compiled with MAX_WIDTH being the module's parameter.
 */
#include <stddef.h>
#include <stdlib.h>

#include <linux/csrec_hw.h>

#include "mlp_test.h"
#include "ref.h"
#include "tap.h"

#define DOMAIN 7
#define MEM_BYTES (8u << 20)
#define GUARD 64		/* bytes around each operand's region */
#define NONE UINT64_MAX

enum { X, W, BIAS, Y, OPERANDS };
static const char *const operand_names[] = { "x", "w", "bias", "y" };

#define OFF(f) offsetof(struct csrec_mlp_desc, f)
static const uint16_t keys[] = { OFF(x_key), OFF(w_key), OFF(bias_key), OFF(y_key) };
static const uint16_t offs[] = { OFF(x_off), OFF(w_off), OFF(bias_off), OFF(y_off) };

/* ---- the fake MMU */

static struct region {
	uint32_t key;
	uint16_t domain;
	uint8_t rights;
	uint64_t size;
	uint8_t *mem;		/* with GUARD bytes before and after */
} regions[OPERANDS];

struct request {
	uint8_t op;
	uint32_t key;
	uint64_t off, len;
};

static struct {
	/* how it behaves */
	unsigned int stall;	/* of 16: probability that a handshake does not happen */
	unsigned int latency;	/* cycles before the first beat, at most */
	bool random_latency;
	uint64_t fail_at;	/* request number that fails, and how */
	uint8_t fail_status;
	bool frozen;		/* takes no request */

	/* the request being served */
	bool busy;
	struct request req;
	unsigned int wait;
	uint64_t done;		/* bytes moved */
	uint64_t fail_after;	/* bytes moved before the failure */
	uint8_t status;

	/* what was seen */
	uint64_t count;
	struct request checks[8];
	unsigned int nchecks;
	bool check_after_data;
	const char *violation;
	struct mlp_out last;
	bool last_req_held, last_wr_held;
} mmu;

static uint64_t cycle;

static void violation(const char *what)
{
	if (!mmu.violation)
		mmu.violation = what;
}

static uint8_t check(const struct request *r, struct region **found)
{
	bool write = r->op >= 2;

	*found = NULL;
	for (int i = 0; i < OPERANDS; i++) {
		struct region *g = &regions[i];

		if (g->key != r->key)
			continue;
		*found = g;
		if (g->domain != DOMAIN)
			return CSREC_ST_BAD_DOMAIN;
		if (!(g->rights & (write ? CSREC_RIGHT_WRITE : CSREC_RIGHT_READ)))
			return CSREC_ST_BAD_RIGHTS;
		if (r->off > g->size || r->len > g->size - r->off)
			return CSREC_ST_OUT_OF_BOUNDS;
		return CSREC_ST_OK;
	}
	return CSREC_ST_STALE_KEY;
}

static bool stalled(void)
{
	return mmu.stall && rnd_below(16) < mmu.stall;
}

static void mmu_cycle(const struct mlp_out *out, struct mlp_in *in)
{
	struct region *g;
	uint64_t n;

	in->req_ready = in->rd_valid = in->rd_last = in->wr_ready = in->rsp_valid = false;
	in->rsp_status = (uint8_t)rnd();	/* means nothing without valid */
	for (size_t i = 0; i < sizeof(in->rd_data); i += 4) {
		uint32_t junk = rnd();

		memcpy(in->rd_data + i, &junk, 4);
	}

	/* what was offered and not taken must still be offered, unchanged */
	if (mmu.last_req_held &&
	    (!out->req_valid || out->req_op != mmu.last.req_op ||
	     out->req_key != mmu.last.req_key || out->req_off != mmu.last.req_off ||
	     out->req_len != mmu.last.req_len))
		violation("request changed while not taken");
	if (mmu.last_wr_held && mmu.busy &&
	    (!out->wr_valid || memcmp(out->wr_data, mmu.last.wr_data, 64)))
		violation("write data changed while not taken");
	mmu.last = *out;
	mmu.last_req_held = mmu.last_wr_held = false;

	if (out->req_valid) {
		in->req_ready = !mmu.busy && !mmu.frozen && !stalled();
		mmu.last_req_held = !in->req_ready;
	}
	if (in->req_ready) {
		mmu.req = (struct request){ out->req_op, out->req_key, out->req_off,
					    out->req_len };
		if (out->req_domain != DOMAIN)
			violation("wrong domain");
		if (out->req_onchip)
			violation("ONCHIP demanded");
		if ((out->req_op == 1 || out->req_op == 2) &&
		    (out->req_len < 1 || out->req_len > 4096))
			violation("length of a transfer");
		if (out->req_op == 0 || out->req_op == 3) {
			if (mmu.nchecks < 8)
				mmu.checks[mmu.nchecks++] = mmu.req;
			if (mmu.check_after_data)
				violation("check after the first transfer");
		} else {
			mmu.check_after_data = true;
		}
		mmu.status = check(&mmu.req, &g);
		mmu.fail_after = mmu.status ? 0 : NONE;
		if (mmu.count++ == mmu.fail_at) {
			mmu.status = mmu.fail_status;
			mmu.fail_after = rnd_below(3) ? 64 * rnd_below(64) : 0;
		}
		mmu.done = 0;
		mmu.wait = mmu.random_latency ? rnd_below(mmu.latency + 1) : mmu.latency;
		mmu.busy = true;
		return;
	}
	if (!mmu.busy) {
		if (out->wr_valid)
			violation("write data without a request");
		return;
	}
	if (mmu.wait) {
		mmu.wait--;
		mmu.last_wr_held = out->wr_valid;
		return;
	}
	if (mmu.req.op == 0 || mmu.req.op == 3 || mmu.done == mmu.req.len ||
	    mmu.done >= mmu.fail_after) {
		if (stalled()) {
			mmu.last_wr_held = out->wr_valid;
			return;
		}
		in->rsp_valid = true;
		in->rsp_status = mmu.status;
		mmu.busy = false;
		return;
	}
	check(&mmu.req, &g);
	n = mmu.req.len - mmu.done < 64 ? mmu.req.len - mmu.done : 64;
	if (mmu.req.op == 1) {
		if (!out->rd_ready || stalled())
			return;
		in->rd_valid = true;
		memset(in->rd_data, 0, 64);
		memcpy(in->rd_data, g->mem + GUARD + mmu.req.off + mmu.done, n);
		mmu.done += n;
		in->rd_last = mmu.done == mmu.req.len;
		/* the answer comes with the last beat or after it */
		if (in->rd_last && mmu.fail_after == NONE && rnd() & 1) {
			in->rsp_valid = true;
			in->rsp_status = CSREC_ST_OK;
			mmu.busy = false;
		}
	} else if (out->wr_valid) {
		in->wr_ready = !stalled();
		mmu.last_wr_held = !in->wr_ready;
		if (in->wr_ready) {
			memcpy(g->mem + GUARD + mmu.req.off + mmu.done, out->wr_data, n);
			mmu.done += n;
		}
	}
}

/* ---- running a descriptor */

struct result {
	uint8_t status;
	uint16_t field;
	uint64_t detail, cycles;
};

static struct mlp_in in;

static void one_cycle(struct mlp_out *out)
{
	mlp_outputs(out);
	mmu_cycle(out, &in);
	mlp_clock(&in);
	cycle++;
}

static void reset(void)
{
	struct mlp_out out;

	memset(&in, 0, sizeof(in));
	mmu.busy = mmu.last_req_held = mmu.last_wr_held = false;
	for (int i = 0; i < 4; i++) {
		mlp_outputs(&out);
		mlp_clock(&in);
	}
	in.rst_n = true;
}

/* abort_i rises @abort_at cycles after the descriptor was taken. */
static struct result run(const struct csrec_mlp_desc *d, uint64_t abort_at)
{
	struct result res = { .status = 0xff };
	uint64_t began, limit, count_at_abort = 0;
	struct mlp_out out;

	mmu.count = mmu.nchecks = 0;
	mmu.check_after_data = false;
	mmu.violation = NULL;

	memset(in.desc, 0, sizeof(in.desc));
	memcpy(in.desc, d, sizeof(*d));
	in.desc_domain = DOMAIN;
	in.desc_valid = true;
	do
		one_cycle(&out);
	while (!out.desc_ready);
	in.desc_valid = false;
	for (size_t i = 0; i < sizeof(in.desc); i++)	/* it has its own copy now */
		in.desc[i] = (uint8_t)rnd();
	in.desc_domain = (uint16_t)rnd();

	began = cycle;
	limit = abort_at == NONE ? 100000000 : abort_at + 20000;
	for (;;) {
		in.abort = cycle - began >= abort_at;
		in.done_ready = !stalled();
		one_cycle(&out);
		if (cycle - began <= abort_at)
			count_at_abort = mmu.count;
		else if (mmu.count > count_at_abort + 2)
			violation("goes on after the abort");
		if (out.done_valid && mmu.busy)
			violation("done with a request outstanding");
		if (out.done_valid && out.req_valid)
			violation("request after done");
		if (out.done_valid && in.done_ready)
			break;
		if (cycle - began > limit) {
			violation("does not end");
			break;
		}
	}
	res = (struct result){ out.done_status, out.done_field, out.done_detail,
			       cycle - began };
	in.abort = in.done_ready = false;
	return res;
}

/* ---- operands */

static uint8_t *mem_copy;	/* the y region as it should become */

static void set_region(int i, uint64_t size, uint8_t rights)
{
	regions[i] = (struct region){ .key = 0x10000u * (3 + (unsigned int)i) + 5 + (unsigned int)i,
				      .domain = DOMAIN, .rights = rights, .size = size,
				      .mem = regions[i].mem };
}

static uint32_t operand(unsigned int kind)
{
	switch (kind) {
	case 0:
	case 1:
	case 2:		/* as in a network */
		return (rnd() & 0x807fffff) | (0x3c + rnd_below(4)) << 24;
	case 3:		/* anything, infinity and NaN included */
		return rnd();
	default:	/* small integers: exact sums, zeros */
		return as_bits((float)(int)(rnd_below(7) - 3));
	}
}

static void fill(int i, unsigned int kind)
{
	for (uint64_t n = 0; n < regions[i].size + 2 * GUARD; n += 4) {
		uint32_t v = operand(kind);

		memcpy(regions[i].mem + n, &v, 4);
	}
}

/* A legal descriptor with regions of just the right size. */
static struct csrec_mlp_desc make(unsigned int batch, unsigned int in_dim, unsigned int out_dim,
				  unsigned int act, bool bias, bool wide)
{
	struct csrec_mlp_desc d = {
		.flags = bias ? CSREC_MLP_F_BIAS : 0,
		.batch = batch,
		.in_dim = (uint16_t)in_dim,
		.out_dim = (uint16_t)out_dim,
		.act = (uint8_t)act,
		.x_stride = 4 * (in_dim + (wide ? rnd_below(40) : 0)),
		.w_stride = 4 * (in_dim + (wide ? rnd_below(40) : 0)),
		.y_stride = 4 * (out_dim + (wide ? rnd_below(40) : 0)),
		.x_off = wide ? 4 * rnd_below(100) : 0,
		.w_off = wide ? 4 * rnd_below(100) : 0,
		.bias_off = wide && bias ? 4 * rnd_below(100) : 0,
		.y_off = wide ? 4 * rnd_below(100) : 0,
	};

	set_region(X, d.x_off + (uint64_t)(batch - 1) * d.x_stride + 4 * in_dim,
		   CSREC_RIGHT_READ);
	set_region(W, d.w_off + (uint64_t)(out_dim - 1) * d.w_stride + 4 * in_dim,
		   CSREC_RIGHT_READ);
	set_region(BIAS, d.bias_off + 4 * out_dim, CSREC_RIGHT_READ);
	set_region(Y, d.y_off + (uint64_t)(batch - 1) * d.y_stride + 4 * out_dim,
		   CSREC_RIGHT_WRITE);
	d.x_key = regions[X].key;
	d.w_key = regions[W].key;
	d.bias_key = bias ? regions[BIAS].key : 0;
	d.y_key = regions[Y].key;
	return d;
}

static void fill_all(void)
{
	unsigned int kind = rnd_below(5);

	for (int i = 0; i < OPERANDS; i++)
		fill(i, kind);
	memcpy(mem_copy, regions[Y].mem, regions[Y].size + 2 * GUARD);
}

static void load(uint32_t *v, const uint8_t *from, unsigned int n)
{
	memcpy(v, from, 4 * n);
}

/* Puts the expected output into mem_copy; only the first @samples. */
static void expect(const struct csrec_mlp_desc *d, unsigned int samples)
{
	static uint32_t x[MAX_WIDTH], w[MAX_WIDTH];
	uint32_t bias, y;

	for (unsigned int b = 0; b < samples; b++) {
		load(x, regions[X].mem + GUARD + d->x_off + (uint64_t)b * d->x_stride, d->in_dim);
		for (unsigned int o = 0; o < d->out_dim; o++) {
			load(w, regions[W].mem + GUARD + d->w_off + (uint64_t)o * d->w_stride,
			     d->in_dim);
			y = ref_dot(x, w, d->in_dim);
			if (d->flags & CSREC_MLP_F_BIAS) {
				load(&bias, regions[BIAS].mem + GUARD + d->bias_off + 4 * o, 1);
				y = ref_add(y, bias);
			}
			if (d->act == CSREC_ACT_RELU)
				y = ref_relu(y);
			else if (d->act == CSREC_ACT_SIGMOID)
				y = ref_sigmoid(y);
			memcpy(mem_copy + GUARD + d->y_off + (uint64_t)b * d->y_stride + 4 * o,
			       &y, 4);
		}
	}
}

static bool y_as_expected(void)
{
	return !memcmp(mem_copy, regions[Y].mem, regions[Y].size + 2 * GUARD);
}

static void describe(const struct csrec_mlp_desc *d, struct result r)
{
	printf("# batch %u, %u to %u, act %u, flags %u: status %u field %#x detail %#llx%s%s\n",
	       d->batch, d->in_dim, d->out_dim, d->act, d->flags, r.status, r.field,
	       (unsigned long long)r.detail, mmu.violation ? "; " : "",
	       mmu.violation ? mmu.violation : "");
}

/* One layer from start to end. */
static bool layer(unsigned int batch, unsigned int in_dim, unsigned int out_dim,
		  unsigned int act, bool bias, bool wide, struct result *res)
{
	struct csrec_mlp_desc d = make(batch, in_dim, out_dim, act, bias, wide);
	const uint64_t lens[] = { regions[X].size - d.x_off, regions[W].size - d.w_off,
				  4 * out_dim, regions[Y].size - d.y_off };
	const uint64_t at_off[] = { d.x_off, d.w_off, d.bias_off, d.y_off };
	unsigned int at = 0;
	struct result r;
	bool good;

	fill_all();
	expect(&d, batch);
	r = run(&d, NONE);
	good = r.status == CSREC_ST_OK && r.field == 0 && r.detail == batch && !mmu.violation &&
	       y_as_expected();
	/* whole extents were checked, ascending by key field, before anything moved */
	for (int i = 0; i < OPERANDS; i++) {
		if (i == BIAS && !bias)
			continue;
		good &= mmu.checks[at].key == regions[i].key && mmu.checks[at].off == at_off[i] &&
			mmu.checks[at].len == lens[i] && mmu.checks[at].op == (i == Y ? 3 : 0);
		at++;
	}
	good &= at == mmu.nchecks;
	if (!good)
		describe(&d, r);
	if (res)
		*res = r;
	return good;
}

/* ---- tests */

static void behave(unsigned int stall, unsigned int latency, bool random_latency)
{
	mmu.stall = stall;
	mmu.latency = latency;
	mmu.random_latency = random_latency;
	mmu.fail_at = NONE;
}

static void test_shapes(void)
{
	static const unsigned int dims[] = { 1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, MAX_WIDTH };
	unsigned int n = sizeof(dims) / sizeof(dims[0]);
	bool good = true;

	behave(0, 3, true);
	for (unsigned int i = 0; i < n; i++)
		good &= layer(1 + rnd_below(20), dims[i], 1 + rnd_below(40), rnd_below(3),
			      rnd() & 1, false, NULL);
	tap(good, "mlp: input widths");
	good = true;
	for (unsigned int i = 0; i < n; i++)
		good &= layer(1 + rnd_below(20), 1 + rnd_below(40), dims[i], rnd_below(2),
			      rnd() & 1, false, NULL);
	tap(good, "mlp: output widths");
	good = true;
	for (unsigned int i = 1; i <= 33; i++)
		good &= layer(i, 1 + rnd_below(40), 1 + rnd_below(20), rnd_below(2), rnd() & 1,
			      true, NULL);
	tap(good, "mlp: batch 1 to 33");
	/* weights that do not stay on chip, rows of several requests */
	good = layer(18, MAX_WIDTH, 37, CSREC_ACT_RELU, true, true, NULL);
	good &= layer(17, MAX_WIDTH - 1, 20, CSREC_ACT_NONE, true, true, NULL);
	tap(good, "mlp: widest rows, weights read for every tile");
}

static void test_random(unsigned int count)
{
	bool good = true;

	for (unsigned int i = 0; i < count; i++) {
		unsigned int width = rnd_below(8) || MAX_WIDTH > 64 ? 64 : MAX_WIDTH;

		behave(rnd_below(15), rnd_below(60), true);
		good &= layer(1 + rnd_below(40), 1 + rnd_below(width), 1 + rnd_below(width),
			      rnd_below(8) ? rnd_below(2) : 2, rnd() & 1, rnd() & 1, NULL);
	}
	tap(good, "mlp: %u random layers, random latency and back-pressure", count);
}

/* A rule of the descriptor: what breaks it and what is answered. */
static const struct rule {
	const char *name;
	uint16_t off;
	uint8_t size;
	uint64_t value;
	uint8_t status;
	uint16_t field;
	uint64_t detail;
	bool no_bias;		/* F_BIAS clear */
} rules[] = {
#define SIZE(f) sizeof(((struct csrec_mlp_desc *)0)->f)
#define RULE(name, f, value, st) { name, OFF(f), SIZE(f), value, st, OFF(f), value, false }
	RULE("unknown flag", flags, 0x3, CSREC_ST_BAD_FLAGS),
	RULE("unknown high flag", flags, 0x80000001, CSREC_ST_BAD_FLAGS),
	{ "rsvd14", OFF(rsvd14), 2, 0x100, CSREC_ST_RESERVED, OFF(rsvd14), 0, false },
	{ "bias_key without F_BIAS", OFF(bias_key), 4, 0x10005, CSREC_ST_RESERVED,
	  OFF(bias_key), 0, true },
	{ "bias_off without F_BIAS", OFF(bias_off), 8, 1ull << 63, CSREC_ST_RESERVED,
	  OFF(bias_off), 0, true },
	{ "rsvd76", OFF(rsvd76), 4, 1u << 31, CSREC_ST_RESERVED, OFF(rsvd76), 0, false },
	{ "rsvd80, first", OFF(rsvd80), 8, 1, CSREC_ST_RESERVED, OFF(rsvd80), 0, false },
	{ "rsvd80, last", OFF(rsvd80[5]), 8, 1ull << 63, CSREC_ST_RESERVED, OFF(rsvd80), 0,
	  false },
	RULE("batch 0", batch, 0, CSREC_ST_BAD_VALUE),
	RULE("in_dim 0", in_dim, 0, CSREC_ST_BAD_VALUE),
	RULE("in_dim too large", in_dim, MAX_WIDTH + 1, CSREC_ST_BAD_VALUE),
	RULE("in_dim 65535", in_dim, 65535, CSREC_ST_BAD_VALUE),
	RULE("out_dim 0", out_dim, 0, CSREC_ST_BAD_VALUE),
	RULE("out_dim too large", out_dim, MAX_WIDTH + 1, CSREC_ST_BAD_VALUE),
	RULE("act 3", act, 3, CSREC_ST_BAD_VALUE),
	RULE("act 255", act, 255, CSREC_ST_BAD_VALUE),
	RULE("dtype", dtype, 1, CSREC_ST_BAD_VALUE),
	RULE("x_off not aligned", x_off, 0x1000000000000002, CSREC_ST_BAD_ALIGN),
	RULE("w_off not aligned", w_off, 1, CSREC_ST_BAD_ALIGN),
	RULE("bias_off not aligned", bias_off, 3, CSREC_ST_BAD_ALIGN),
	RULE("y_off not aligned", y_off, 0xfffffffffffffffe, CSREC_ST_BAD_ALIGN),
	RULE("x_stride not aligned", x_stride, 4 * 20 + 1, CSREC_ST_BAD_ALIGN),
	RULE("x_stride not aligned, too small", x_stride, 2, CSREC_ST_BAD_ALIGN),
	RULE("x_stride too small", x_stride, 4 * 19, CSREC_ST_BAD_VALUE),
	RULE("w_stride not aligned", w_stride, 0xffffffff, CSREC_ST_BAD_ALIGN),
	RULE("w_stride too small", w_stride, 4 * 19, CSREC_ST_BAD_VALUE),
	RULE("y_stride not aligned", y_stride, 4 * 30 + 2, CSREC_ST_BAD_ALIGN),
	RULE("y_stride too small", y_stride, 4 * 29, CSREC_ST_BAD_VALUE),
};

#define NRULES (sizeof(rules) / sizeof(rules[0]))

static void break_rule(struct csrec_mlp_desc *d, const struct rule *r)
{
	memcpy((uint8_t *)d + r->off, &r->value, r->size);
}

static bool refused(const struct csrec_mlp_desc *d, const struct rule *r, const char *also)
{
	struct result res = run(d, NONE);
	bool good = res.status == r->status && res.field == (CSREC_FIELD_DESC | r->field) &&
		    res.detail == r->detail && !mmu.violation && !mmu.count;

	if (!good) {
		printf("# %s%s%s\n", r->name, also ? " and " : "", also ? also : "");
		describe(d, res);
	}
	return good;
}

static void test_rules(void)
{
	unsigned int pairs = 0;
	bool good = true;

	behave(0, 3, true);
	for (size_t i = 0; i < NRULES; i++) {
		struct csrec_mlp_desc d = make(9, 20, 30, 0, !rules[i].no_bias, false);

		break_rule(&d, &rules[i]);
		tap(refused(&d, &rules[i], NULL), "mlp: %s is refused", rules[i].name);
	}
	/* of two broken rules the earlier one is reported */
	for (size_t i = 0; i < NRULES; i++)
		for (size_t j = i + 1; j < NRULES; j++) {
			struct csrec_mlp_desc d = make(9, 20, 30, 0, !rules[i].no_bias, false);

			if (rules[j].no_bias != rules[i].no_bias ||
			    (rules[j].off < rules[i].off + rules[i].size &&
			     rules[i].off < rules[j].off + rules[j].size))
				continue;
			break_rule(&d, &rules[j]);
			break_rule(&d, &rules[i]);
			good &= refused(&d, &rules[i], rules[j].name);
			pairs++;
		}
	tap(good, "mlp: order of the rules, %u pairs", pairs);
}

static bool region_refused(const struct csrec_mlp_desc *d, int i, uint8_t status)
{
	bool bounds = status == CSREC_ST_OUT_OF_BOUNDS;
	struct result r = run(d, NONE);
	uint16_t field = bounds ? offs[i] : keys[i];
	uint64_t detail = 0;
	bool good;

	memcpy(&detail, (const uint8_t *)d + field, bounds ? 8 : 4);
	good = r.status == status && r.field == (CSREC_FIELD_DESC | field) &&
	       r.detail == detail && !mmu.violation && !mmu.check_after_data;
	if (!good)
		describe(d, r);
	return good;
}

static void test_regions(void)
{
	behave(2, 9, true);
	for (int i = 0; i < OPERANDS; i++) {
		const uint64_t wraps = UINT64_MAX - 3;
		struct csrec_mlp_desc d = make(19, 20, 30, 0, true, true);
		bool good;

		regions[i].key ^= 0x10000;
		good = region_refused(&d, i, CSREC_ST_STALE_KEY);
		/* a later operand's fault is not reported first */
		for (int j = i + 1; j < OPERANDS; j++)
			regions[j].size -= 4;
		good &= region_refused(&d, i, CSREC_ST_STALE_KEY);
		tap(good, "mlp: stale %s_key", operand_names[i]);

		d = make(19, 20, 30, 0, true, true);
		regions[i].domain++;
		tap(region_refused(&d, i, CSREC_ST_BAD_DOMAIN), "mlp: foreign %s_key",
		    operand_names[i]);

		d = make(19, 20, 30, 0, true, true);
		regions[i].rights ^= CSREC_RIGHT_READ | CSREC_RIGHT_WRITE;
		tap(region_refused(&d, i, CSREC_ST_BAD_RIGHTS), "mlp: rights of %s_key",
		    operand_names[i]);

		d = make(19, 20, 30, 0, true, true);
		regions[i].size--;
		good = region_refused(&d, i, CSREC_ST_OUT_OF_BOUNDS);
		memcpy((uint8_t *)&d + offs[i], &wraps, 8);
		good &= region_refused(&d, i, CSREC_ST_OUT_OF_BOUNDS);
		tap(good, "mlp: bounds of %s", operand_names[i]);
	}
	/* the largest extents do not wrap */
	for (int i = X; i < OPERANDS; i++) {
		struct csrec_mlp_desc d = make(19, MAX_WIDTH, MAX_WIDTH, 0, true, false);
		uint64_t rows = i == W ? MAX_WIDTH - 1 : 0xfffffffe, want;

		if (i == BIAS)
			continue;
		if (i == Y)	/* so that x passes */
			d.x_stride = 4 * MAX_WIDTH;
		if (i != W)
			d.batch = 0xffffffff;
		*(i == X ? &d.x_stride : i == W ? &d.w_stride : &d.y_stride) = 0xfffffffc;
		if (i == Y)
			regions[X].size = UINT64_MAX;
		want = rows * 0xfffffffc + 4 * MAX_WIDTH;
		tap(region_refused(&d, i, CSREC_ST_OUT_OF_BOUNDS) &&
		    mmu.checks[mmu.nchecks - 1].len == want, "mlp: largest extent of %s",
		    operand_names[i]);
	}
}

/* A request fails while the layer runs: key field, whatever the status; later all is well. */
static void test_running_errors(unsigned int count)
{
	static const uint8_t status[] = { CSREC_ST_STALE_KEY, CSREC_ST_BUS_ERROR,
					  CSREC_ST_OUT_OF_BOUNDS };
	unsigned int seen[OPERANDS] = { 0 };
	bool good = true;

	for (unsigned int i = 0; i < count; i++) {
		struct csrec_mlp_desc d = make(1 + rnd_below(40), 1 + rnd_below(64),
					       1 + rnd_below(20), rnd_below(2), true, true);
		unsigned int requests = 5 + d.batch * 2 + d.out_dim;
		struct result r;
		int at;

		behave(rnd_below(10), rnd_below(30), true);
		fill_all();
		mmu.fail_at = 4 + rnd_below(requests - 4);
		mmu.fail_status = status[rnd_below(3)];
		r = run(&d, NONE);
		for (at = 0; at < OPERANDS && regions[at].key != mmu.req.key; at++)
			;
		if (mmu.count <= mmu.fail_at) {		/* ended before */
			good &= r.status == CSREC_ST_OK && !mmu.violation;
		} else if (at == OPERANDS || r.status != mmu.fail_status ||
			   r.field != (CSREC_FIELD_DESC | keys[at]) ||
			   r.detail != regions[at].key || mmu.violation) {
			describe(&d, r);
			good = false;
		} else {
			seen[at]++;
		}
		mmu.fail_at = NONE;
		good &= layer(1 + rnd_below(20), 1 + rnd_below(30), 1 + rnd_below(20),
			      rnd_below(2), rnd() & 1, true, NULL);
	}
	for (int i = 0; i < OPERANDS; i++)
		tap(seen[i] > 0, "mlp: %u accesses to %s failed while running", seen[i],
		    operand_names[i]);
	tap(good, "mlp: each was reported, and the layer after it was right");
}

static void test_abort(unsigned int count)
{
	unsigned int cut = 0;
	bool good = true;
	struct csrec_mlp_desc d;
	struct result r;
	struct mlp_out out;

	for (unsigned int i = 0; i < count; i++) {
		d = make(1 + rnd_below(40), i % 4 ? 1 + rnd_below(64) : MAX_WIDTH,
			 1 + rnd_below(20), rnd_below(3), rnd() & 1, true);
		/* without latency the next layer starts while old results could still come */
		if (rnd() & 1)
			behave(0, 0, false);
		else
			behave(rnd_below(10), rnd_below(30), true);
		fill_all();
		r = run(&d, rnd_below(1 + rnd_below(6000)));
		if (r.status == CSREC_ST_ABORTED) {
			good &= r.field == CSREC_FIELD_NONE && r.detail == 0 && !mmu.violation;
			cut++;
		} else {
			good &= r.status == CSREC_ST_OK && !mmu.violation;
		}
		if (!good) {
			describe(&d, r);
			break;
		}
		good &= layer(1 + rnd_below(20), 1 + rnd_below(30), 1 + rnd_below(20),
			      rnd_below(2), rnd() & 1, true, NULL);
	}
	tap(good && cut > count / 4, "mlp: aborted %u times at random, then right again", cut);

	d = make(4, 4, 4, 0, true, false);
	r = run(&d, 0);
	tap(r.status == CSREC_ST_ABORTED && !mmu.violation && !mmu.check_after_data,
	    "mlp: aborted at once");

	/* a request that is not taken stays offered; only then does the abort end */
	memset(in.desc, 0, sizeof(in.desc));
	memcpy(in.desc, &d, sizeof(d));
	in.desc_domain = DOMAIN;
	in.desc_valid = true;
	mmu.frozen = true;
	mmu.violation = NULL;
	good = true;
	for (int i = 0; i < 200; i++) {
		one_cycle(&out);
		in.desc_valid = in.desc_valid && !out.desc_ready;
		in.abort = i > 100;
		in.done_ready = true;
		good &= !out.done_valid && (i < 20 || out.req_valid);
	}
	mmu.frozen = false;
	for (int i = 0; i < 200 && !out.done_valid; i++)
		one_cycle(&out);
	in.abort = in.done_ready = false;
	tap(good && out.done_valid && out.done_status == CSREC_ST_ABORTED && !mmu.busy &&
	    !mmu.violation, "mlp: abort waits for the offered request");
	tap(layer(4, 4, 4, 0, true, false, NULL), "mlp: right after that");
}

static void test_reset(unsigned int count)
{
	bool good = true;

	for (unsigned int i = 0; i < count; i++) {
		struct csrec_mlp_desc d = make(20, 40, 20, rnd_below(3), true, false);
		struct mlp_out out;

		behave(rnd_below(10), rnd_below(30), true);
		fill_all();
		memset(in.desc, 0, sizeof(in.desc));
		memcpy(in.desc, &d, sizeof(d));
		in.desc_domain = DOMAIN;
		in.desc_valid = true;
		for (uint32_t n = rnd_below(4000); n; n--) {
			one_cycle(&out);
			in.desc_valid = in.desc_valid && !out.desc_ready;
		}
		reset();
		good &= layer(1 + rnd_below(20), 1 + rnd_below(30), 1 + rnd_below(20),
			      rnd_below(2), rnd() & 1, true, NULL);
	}
	tap(good, "mlp: reset at random, then right again");
}

/* Cycles, not time: weights come fast enough to keep the lanes busy. */
static void test_speed(void)
{
	unsigned int in_dim = MAX_WIDTH < 367 ? MAX_WIDTH : 367;
	struct result r;
	uint64_t ideal = 128u * 64 * ((in_dim + 7) / 8);

	behave(0, 40, false);
	if (!layer(128, in_dim, MAX_WIDTH < 64 ? MAX_WIDTH : 64, CSREC_ACT_RELU, true, false, &r)) {
		tap(false, "mlp: steady streaming");
		return;
	}
	printf("# 128 x %u to 64: %llu cycles, %llu of them needed for the arithmetic\n", in_dim,
	       (unsigned long long)r.cycles, (unsigned long long)ideal);
	/* rows too short to hide the latency are another matter */
	if (MAX_WIDTH >= 367)
		tap(r.cycles * 8 < ideal * 10, "mlp: lanes at work 80 %% of the time");
}

int main(void)
{
	for (int i = 0; i < OPERANDS; i++)
		regions[i].mem = malloc(MEM_BYTES);
	mem_copy = malloc(MEM_BYTES);
	if (!regions[X].mem || !regions[W].mem || !regions[BIAS].mem || !regions[Y].mem ||
	    !mem_copy) {
		fputs("mlp_test: no memory\n", stderr);
		return 1;
	}
	reset();
	test_shapes();
	test_random(150);
	test_rules();
	test_regions();
	test_running_errors(150);
	test_abort(150);
	test_reset(30);
	test_speed();
	return tap_done();
}
