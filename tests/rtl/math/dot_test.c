// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * csrec_dot against a plain loop over floats: values, slots, order and latency, with
 * up to 16 products interleaved at random.
 *
 *   dot_test [PRODUCTS]
 */
#include <stdlib.h>

#include "dot_test.h"
#include "ref.h"
#include "tap.h"

#define FP_LAT 4
#define DOT_LAT (5 * FP_LAT + 2)
#define MAX_N 200
#define SLOTS 16

static struct slot {
	bool busy;
	unsigned int n, step, ready;	/* elements; next step; first cycle it may go */
	uint32_t a[MAX_N], b[MAX_N];
} slots[SLOTS];

/* Results to come, in order of their last steps */
static struct {
	unsigned int cycle, slot, n;
	uint32_t y;
} expect[DOT_LAT + 1];
static unsigned int head, tail;

static unsigned int cycle, bad;
static unsigned long long got;

static uint32_t operand(unsigned int kind)
{
	switch (kind) {
	case 0:		/* as in a network */
		return (rnd() & 0x80ffffff) | 0x3f000000;
	case 1:		/* wide range: over- and underflow within a sum */
		return rnd();
	case 2:		/* few values: exact cancellation, zeros of both signs */
		return as_bits((float)(int)(rnd_below(5) - 2)) | (rnd() & 0x80000000);
	case 3:		/* subnormal products */
		return (rnd() & 0x80ffffff) | 0x20000000;
	default:	/* the caller makes b negative: all products -0, the sum +0 */
		return 0;
	}
}

static void refill(struct slot *s)
{
	unsigned int kind = rnd_below(5);

	s->busy = true;
	s->step = 0;
	s->n = rnd_below(4) ? 1 + rnd_below(24) : 1 + rnd_below(MAX_N);
	for (unsigned int i = 0; i < s->n; i++) {
		s->a[i] = operand(kind);
		s->b[i] = operand(kind) | (kind == 4 ? 0x80000000 : 0);
	}
}

static void step(struct slot *s)
{
	struct dot_in in = { .valid = s != NULL };
	unsigned int slot;
	uint32_t y;

	if (s) {
		in.slot = (unsigned int)(s - slots);
		in.first = s->step == 0;
		for (unsigned int j = 0; j < 8 && 8 * s->step + j < s->n; j++) {
			in.a[j] = s->a[8 * s->step + j];
			in.b[j] = s->b[8 * s->step + j];
		}
		in.last = 8 * ++s->step >= s->n;
		s->ready = cycle + FP_LAT + 1;
		if (in.last) {
			expect[head % (DOT_LAT + 1)].cycle = cycle + DOT_LAT;
			expect[head % (DOT_LAT + 1)].slot = in.slot;
			expect[head % (DOT_LAT + 1)].n = s->n;
			expect[head++ % (DOT_LAT + 1)].y = ref_dot(s->a, s->b, s->n);
			s->busy = false;
		}
	} else {	/* garbage between the steps changes nothing */
		in.slot = rnd_below(SLOTS);
		in.first = rnd() & 1;
		in.last = rnd() & 1;
		for (unsigned int j = 0; j < 8; j++)
			in.a[j] = in.b[j] = rnd();
	}
	if (dot_step(&in, &slot, &y)) {
		unsigned int at = tail % (DOT_LAT + 1);

		if (head == tail || expect[at].cycle != cycle || expect[at].slot != slot ||
		    expect[at].y != y) {
			if (bad++ < 10)
				printf("# cycle %u: slot %u gives %08x; expected slot %u, %08x (%u elements) in cycle %u\n",
				       cycle, slot, y, expect[at].slot, expect[at].y,
				       expect[at].n, expect[at].cycle);
		}
		tail += head != tail;
		got++;
	}
	cycle++;
}

/* Runs @count products over @nslots slots; with probability @idle/16 nothing enters. */
static void run(const char *name, unsigned int count, unsigned int nslots, unsigned int idle)
{
	unsigned long long want = got + count;
	unsigned int started = 0, open = 0;

	while (started < count || open) {
		struct slot *s = &slots[rnd_below(nslots)];

		if (!s->busy && started < count) {
			refill(s);
			started++;
			open++;
		}
		if (!s->busy || s->ready > cycle || rnd_below(16) < idle)
			s = NULL;
		step(s);
		if (s && !s->busy)
			open--;
	}
	for (int i = 0; i <= DOT_LAT; i++)
		step(NULL);
	tap(!bad && got == want && head == tail, "dot, %s: %u products", name, count);
	bad = 0;
	got = want;
	tail = head;
}

int main(int argc, char **argv)
{
	unsigned int count = argc > 1 ? (unsigned int)strtoul(argv[1], NULL, 0) : 20000;

	dot_reset();
	run("16 slots", count, 16, 0);
	run("16 slots with gaps", count, 16, 8);
	run("5 slots", count, 5, 0);
	run("one slot", count / 4, 1, 0);
	return tap_done();
}
