// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Runs descriptors on an engine: the start/done handshake, and a memory that obeys
 * rtl-model/rtl/README.md at its least convenient and checks that the engine does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/csrec_hw.h>
#include "engine.h"
#include "../math/tap.h"

#define DOMAIN 0x5aa5
#define MAX_OUTSTANDING 64
#define PATIENCE 200000		/* cycles without any handshake that count as hung */

enum { OP_CHECK_RD, OP_READ, OP_WRITE, OP_CHECK_WR };

struct region regions[REGIONS];

struct request {
	unsigned int op;
	bool onchip;
	uint32_t key;
	uint64_t off, len;
	bool fail;		/* by injection */
	unsigned int fail_after;/* beats before it does, if there are so many */
};

/* The request at work is queue[0]. */
static struct {
	struct request queue[MAX_OUTSTANDING];
	unsigned int count;
	unsigned int wait;	/* cycles until it is served */
	unsigned int beat, beats;
	unsigned int rsp_wait;	/* cycles from the last beat to the response */
	bool started, offered;	/* offered: rd_valid is up and must stay */
	bool astray;		/* a WRITE failed without all its data: so do those behind it */
	uint8_t status;
} mem;

static bool chance(unsigned int of_16)
{
	return rnd_below(16) < of_16;
}

static uint8_t check(const struct request *q)
{
	unsigned int slot = q->key & 0xffff;
	unsigned int right = q->op == OP_WRITE || q->op == OP_CHECK_WR ? CSREC_RIGHT_WRITE
								       : CSREC_RIGHT_READ;

	if (slot >= REGIONS)
		return CSREC_ST_BAD_KEY;
	if (q->key != KEY(slot) || !regions[slot].mem)
		return CSREC_ST_STALE_KEY;
	if (regions[slot].status)
		return regions[slot].status;
	if (!(regions[slot].rights & right))
		return CSREC_ST_BAD_RIGHTS;
	if (q->onchip && !regions[slot].onchip)
		return CSREC_ST_BAD_VALUE;
	if (q->off > regions[slot].size || q->len > regions[slot].size - q->off)
		return CSREC_ST_OUT_OF_BOUNDS;
	return CSREC_ST_OK;
}

static unsigned int beat_len(const struct request *q, unsigned int beat)
{
	uint64_t left = q->len - 64ull * beat;

	return left > 64 ? 64 : left;
}

/* What the memory drives in this cycle */
static void mem_drive(struct port_in *in, struct run *r)
{
	struct request *q = &mem.queue[0];

	in->req_ready = mem.count < MAX_OUTSTANDING && !chance(r->stall);
	in->rd_valid = in->rd_last = in->wr_ready = in->rsp_valid = false;
	in->rsp_status = rnd();		/* means nothing without rsp_valid */
	for (int i = 0; i < 16; i++)
		in->rd_data[i] = 0xdeadbeef;
	if (!mem.count)
		return;
	if (mem.wait) {
		mem.wait--;
		return;
	}
	if (!mem.started) {
		mem.started = true;
		mem.beat = 0;
		mem.rsp_wait = rnd_below(2) ? 0 : rnd_below(r->latency + 1);
		mem.status = check(q);
		mem.beats = q->op == OP_READ || q->op == OP_WRITE ? (q->len + 63) / 64 : 0;
		if (mem.status) {
			mem.beats = 0;
		} else if (q->fail) {
			mem.status = r->fail_status;
			mem.rsp_wait = rnd_below(300);
			if (q->fail_after < mem.beats)
				mem.beats = q->fail_after;
		}
		if (q->op == OP_WRITE) {
			if (mem.astray) {
				mem.status = r->fail_status;
				mem.beats = 0;
			}
			mem.astray |= mem.status && mem.beats < (q->len + 63) / 64;
		}
	}
	if (mem.beat < mem.beats) {
		if (q->op == OP_WRITE) {
			in->wr_ready = !chance(r->stall);
			return;
		}
		if (!mem.offered && chance(r->stall))
			return;
		mem.offered = in->rd_valid = true;
		in->rd_last = mem.beat == (q->len + 63) / 64 - 1;
		memset(in->rd_data, 0, sizeof(in->rd_data));
		memcpy(in->rd_data, regions[q->key & 0xffff].mem + q->off + 64 * mem.beat,
		       beat_len(q, mem.beat));
		for (int i = 0; i < 16 && q->fail; i++)	/* what comes may be anything */
			in->rd_data[i] = rnd();
	}
}

/* rsp may come with the last beat, so it is decided after the engine's rd_ready. */
static bool mem_respond(struct port_in *in, const struct port_out *out, struct run *r)
{
	unsigned int beat = mem.beat + (in->rd_valid && out->rd_ready);

	if (!mem.count || mem.wait || !mem.started || beat < mem.beats || chance(r->stall))
		return false;
	if (mem.rsp_wait) {
		mem.rsp_wait--;
		return false;
	}
	in->rsp_valid = true;
	in->rsp_status = mem.status;
	return true;
}

static bool complain(const struct engine *e, const char *what)
{
	printf("# %s: %s\n", e->name, what);
	return false;
}

/* Takes this cycle's handshakes into account. */
static bool mem_update(const struct engine *e, const struct port_in *in,
		       const struct port_out *out, struct run *r)
{
	struct request *q = &mem.queue[0];

	if (out->wr_valid) {
		bool taken = false;

		for (unsigned int i = 0; i < mem.count; i++)
			taken |= mem.queue[i].op == OP_WRITE;
		if (!taken)
			return complain(e, "write data before its request was taken");
	}
	if (in->rd_valid && out->rd_ready) {
		mem.beat++;
		mem.offered = false;
	}
	if (in->wr_ready && out->wr_valid) {
		memcpy(regions[q->key & 0xffff].mem + q->off + 64 * mem.beat, out->wr_data,
		       beat_len(q, mem.beat));
		mem.beat++;
	}
	if (in->rsp_valid) {
		unsigned int i;

		memmove(&mem.queue[0], &mem.queue[1], sizeof(mem.queue) - sizeof(*q));
		mem.count--;
		mem.started = false;
		for (i = 0; i < mem.count && mem.queue[i].op != OP_WRITE; i++)
			;
		mem.astray &= i < mem.count;
		mem.wait = rnd_below(r->latency + 1);
	}
	if (out->req_valid && in->req_ready) {
		q = &mem.queue[mem.count++];
		*q = (struct request){ .op = out->req_op, .onchip = out->req_onchip,
				       .key = out->req_key, .off = out->req_off,
				       .len = out->req_len };
		if (mem.count == 1)
			mem.wait = rnd_below(r->latency + 1);
		if (out->req_domain != DOMAIN)
			return complain(e, "request with another domain");
		if (q->op == OP_READ || q->op == OP_WRITE) {
			if (!q->len || q->len > 4096)
				return complain(e, "request with a length of 0 or above 4096");
			if ((long)r->accesses++ == r->fail_at) {
				q->fail = true;
				q->fail_after = rnd_below(2) ? 64
							     : rnd_below((q->len + 63) / 64 + 1);
				r->failed_key = q->key;
			}
		}
	}
	return true;
}

bool run_desc(const struct engine *e, const void *desc, size_t size, struct run *r)
{
	struct port_in in = { .rst_n = true, .desc_domain = DOMAIN };
	struct port_out out, before = { 0 };
	unsigned long quiet = 0;
	bool started = false, held = false;
	static const struct engine *ready;

	if (ready != e) {
		in.rst_n = false;
		for (int i = 0; i < 4; i++) {
			e->eval(&in, &out);
			e->clock();
		}
		in.rst_n = true;
	}
	ready = NULL;	/* reset it again unless it comes to a good end */

	memset(&mem, 0, sizeof(mem));
	r->cycles = r->accesses = r->rows = r->saved = r->steps = 0;
	r->failed_key = 0;
	memcpy(in.desc, desc, size);

	for (;;) {
		bool moved;

		in.desc_valid = !started;
		in.abort = r->abort && (long)r->cycles >= r->abort_at;
		in.done_ready = !chance(r->stall);
		mem_drive(&in, r);
		e->eval(&in, &out);
		if (mem_respond(&in, &out, r))
			e->eval(&in, &out);

		if (held && memcmp(&before, &out, offsetof(struct port_out, wr_data)) &&
		    (!out.req_valid || out.req_op != before.req_op ||
		     out.req_onchip != before.req_onchip || out.req_key != before.req_key ||
		     out.req_off != before.req_off || out.req_len != before.req_len))
			return complain(e, "a request changed before it was taken");
		held = out.req_valid && !in.req_ready;
		before = out;

		moved = (out.req_valid && in.req_ready) || (in.rd_valid && out.rd_ready) ||
			(in.wr_ready && out.wr_valid) || in.rsp_valid || out.rows;
		quiet = moved ? 0 : quiet + 1;
		if (quiet > PATIENCE)
			return complain(e, "hung");
		if (started && out.desc_ready)
			return complain(e, "ready for a descriptor before done");

		if (!mem_update(e, &in, &out, r))
			return false;
		r->rows += out.rows;
		r->saved += out.saved;
		r->steps += out.step;
		r->cycles++;

		if (out.done_valid) {
			if (mem.count || out.req_valid)
				return complain(e, "done with a request outstanding");
			r->done.status = out.done_status;
			r->done.field = out.done_field;
			r->done.detail = out.done_detail;
		}
		started |= out.desc_ready;
		/* a descriptor is only there while it is offered */
		if (started)
			memset(in.desc, 0xee, sizeof(in.desc));
		e->clock();
		if (out.done_valid && in.done_ready) {
			ready = e;
			return true;
		}
	}
}

void run_random(struct run *r)
{
	static const unsigned int latency[] = { 0, 1, 5, 60 };
	static const unsigned int stall[] = { 0, 0, 4, 12 };

	*r = (struct run){ .latency = latency[rnd_below(4)], .stall = stall[rnd_below(4)],
			   .fail_at = -1 };
}

uint32_t fp_add(uint32_t a, uint32_t b)
{
	return as_bits(as_float(a) + as_float(b));
}

uint32_t fp_mul(uint32_t a, uint32_t b)
{
	return as_bits(as_float(a) * as_float(b));
}

uint32_t fp_dot(const uint32_t *a, size_t step_a, const uint32_t *b, size_t step_b, size_t n)
{
	uint32_t p[8] = { 0 };

	for (size_t k = 0; k < n; k++)
		p[k % 8] = fp_add(p[k % 8], fp_mul(a[k * step_a], b[k * step_b]));
	return fp_add(fp_add(fp_add(p[0], p[1]), fp_add(p[2], p[3])),
		      fp_add(fp_add(p[4], p[5]), fp_add(p[6], p[7])));
}

uint32_t fp_operand(unsigned int kind)
{
	static const uint32_t special[] = {
		0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x7f800001,
		1, 0x80000001, 0x007fffff, 0x00800000, 0x7f7fffff, 0xff7fffff, 0x3f800000,
	};

	switch (kind) {
	case 0:		/* as in a network */
		return (rnd() & 0x80ffffff) | 0x3e000000;
	case 1:		/* a few specials among these */
		return rnd_below(32) ? fp_operand(0)
				     : special[rnd_below(sizeof(special) / sizeof(*special))];
	case 2:		/* subnormals and what makes them, no NaN */
		return (rnd() & 0x80ffffff) | (rnd_below(2) ? 0 : 0x1f000000);
	default:
		return rnd();
	}
}

uint64_t place(unsigned int slot, uint8_t rights, bool onchip, uint64_t extent)
{
	struct region *g = &regions[slot];
	uint64_t off = 4ull * rnd_below(40);

	free(g->mem);
	g->size = off + extent + (rnd_below(2) ? 0 : 4 * rnd_below(40));
	if (!g->size)
		g->size = 4;
	g->mem = malloc(g->size);
	g->rights = rights;
	g->onchip = onchip;
	g->status = 0;
	for (uint64_t i = 0; i < g->size; i++)
		g->mem[i] = rnd();
	return off;
}

bool expect_refusal(const struct engine *e, const void *desc, size_t size,
		    unsigned int out_slot, struct completion want)
{
	struct region *g = &regions[out_slot];
	uint8_t *before = malloc(g->size);
	struct run r;
	bool good;

	memcpy(before, g->mem, g->size);
	run_random(&r);
	good = run_desc(e, desc, size, &r);
	if (good && (r.done.status != want.status || r.done.field != want.field ||
		     r.done.detail != want.detail)) {
		printf("# got status %u field 0x%x detail 0x%llx, want %u 0x%x 0x%llx\n",
		       r.done.status, r.done.field, (unsigned long long)r.done.detail,
		       want.status, want.field, (unsigned long long)want.detail);
		good = false;
	}
	if (good && r.accesses)
		good = complain(e, "memory read or written by a command that is refused");
	if (memcmp(before, g->mem, g->size))
		good = complain(e, "memory changed by a command that is refused");
	free(before);
	return good;
}
