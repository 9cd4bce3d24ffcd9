// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Guest instructions for one command: by a mapped queue in batches of 64, and by one command
 * per ioctl. Run by icount.sh in a guest with one CPU under -icount shift=0, where the time
 * stamp counter counts instructions, of program and kernel alike.
 *
 * Counted is the code that submits and that which reaps. Left out, for both, is the time
 * between: completions are there before reaping begins, and neither queue has interrupts (they
 * would be counted against the ioctls). Each figure is the median of many rounds, as a tick of
 * the guest's clock may fall into any.
 */
#include <x86intrin.h>

#include "mapq.h"

#define BATCH	64
#define ROUNDS	200

static uint64_t insns(void)
{
	_mm_lfence();
	return __rdtsc();
}

static int cmp(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(uint64_t *v, double per)
{
	qsort(v, ROUNDS, sizeof(*v), cmp);
	return v[ROUNDS / 2] / per;
}

/* Until the device has completed @n commands since it had completed @before. */
static void settle(int fd, uint64_t before, unsigned int n)
{
	struct csrec_stats st;

	do
		get_stats(fd, &st);
	while (counter(&st, CSREC_REG_CNT_COMMANDS) - before < n);
}

static uint64_t completed(int fd)
{
	struct csrec_stats st;

	return get_stats(fd, &st) ? 0 : counter(&st, CSREC_REG_CNT_COMMANDS);
}

TEST(instructions)
{
	struct csrec_cmd nop = cmd_make(CSREC_OP_NOP, 1);
	static uint64_t mapped[ROUNDS], ioctls[ROUNDS], empty[ROUNDS];
	struct csrec_queue_create arg;
	int fd = dev_open(), bad = 0;
	struct csrec_info info;
	struct csrec_cqe cqe;
	struct mapq q;
	double m, i, e;
	FILE *f;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, get_info(fd, &info));
	if (!(info.features & CSREC_FEATURE_QUEUE_MAP))
		SKIP(return, "this device has no mapped queues");
	ASSERT_EQ(0, mapq_create(&q, fd, BATCH, CSREC_QUEUE_F_NOIRQ, 0, 0));
	ASSERT_EQ(0, mapq_create_raw(fd, &arg, 2, CSREC_QUEUE_F_NOIRQ, 0, 0));
	for (int r = 0; r < ROUNDS; r++) {
		uint64_t done = completed(fd), t[4];

		t[0] = insns();
		for (int n = 0; n < BATCH; n++)
			mapq_put(&q, &nop);
		mapq_ring(&q);
		t[1] = insns();
		settle(fd, done, BATCH);
		t[2] = insns();
		for (int n = 0; n < BATCH; n++)
			bad += !mapq_take(&q, &cqe) || cqe_status(&cqe);
		t[3] = insns();
		mapped[r] = t[1] - t[0] + t[3] - t[2];

		done = completed(fd);
		t[0] = insns();
		bad += q_submit(fd, arg.queue_id, &nop, 1) != 1;
		t[1] = insns();
		settle(fd, done, 1);
		t[2] = insns();
		bad += q_wait(fd, arg.queue_id, &cqe, 1, 1, 0) != 1 || cqe_status(&cqe);
		t[3] = insns();
		ioctls[r] = t[1] - t[0] + t[3] - t[2];

		t[0] = insns();
		t[1] = insns();
		empty[r] = t[1] - t[0];
	}
	ASSERT_EQ(0, bad);
	m = median(mapped, BATCH);
	i = median(ioctls, 1);
	e = median(empty, 1);
	TH_LOG("mapped %.1f, ioctl %.0f instructions a command; reading the counter %.0f", m, i, e);
	/* a counter of something else, such as time, would not read like this */
	EXPECT_LE(2, e);
	EXPECT_GE(20, e);
	EXPECT_LT(0, m);
	EXPECT_LE(m, i / 10);
	f = fopen("/out/figures.json", "w");
	if (f) {
		fprintf(f, "{\"insn_per_cmd_mapped\":%.1f,\"insn_per_cmd_ioctl\":%.1f}\n", m, i);
		fclose(f);
	}
}

TEST_HARNESS_MAIN
