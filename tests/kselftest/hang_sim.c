// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A device that hangs when told to: the golden model with its registers lied about. Linked
 * with --wrap into a device server of its own, for hang.c. A NOP with one of these
 * cids, once fetched, starts the lie:
 *
 *   0xdea1	slow: always busy, and progress with every look
 *   0xdea2	hung: always busy, cycles go by, no progress; ends with a QUEUE_DELETE
 *   0xdea3	dead: the same, and nothing is executed any more; ends with a reset
 *   0xdea4	stuck: as dead, and not even cycles go by
 *   0xdea5	lame: nothing yet, but after its next reset it does not get ready
 *   0xdea6	the server ends at once: nobody answers on the bus any more
 *   0xdea7	old: says that it has interface 1.0, until it is reset
 *   0xdea8	ages: as slow, and with each look at them 2^36 cycles have gone by
 *   0xdea9	lost: this command alone, which waits for a fence that its body names to get 1
 *   0xdea0	the truth again
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <linux/csrec_hw.h>

#include "csrec_model.h"

int __real_csrec_model_create(struct csrec_model **out, const struct csrec_model_config *cfg,
			      void *dram, const struct csrec_host_ops *ops, void *opaque);
int __wrap_csrec_model_create(struct csrec_model **out, const struct csrec_model_config *cfg,
			      void *dram, const struct csrec_host_ops *ops, void *opaque);
uint64_t __real_csrec_model_read(struct csrec_model *m, uint32_t off, unsigned int len);
uint64_t __wrap_csrec_model_read(struct csrec_model *m, uint32_t off, unsigned int len);
unsigned int __real_csrec_model_step(struct csrec_model *m, unsigned int cycles);
unsigned int __wrap_csrec_model_step(struct csrec_model *m, unsigned int cycles);
void __real_csrec_model_reset(struct csrec_model *m);
void __wrap_csrec_model_reset(struct csrec_model *m);

static enum { TRUTH, SLOW, HUNG, DEAD, STUCK, LAME, GONE, OLD, AGES, UNREADY } state;
static uint64_t progress, cycles;
static struct csrec_host_ops below;

/* Data goes the same way, and of a MiB of chance some four bytes do look like the start of one. */
static bool tells(const uint8_t *cmd)
{
	static const uint8_t zero[40];

	return cmd[0] == CSREC_OP_NOP && cmd[3] == 0xde && !memcmp(cmd + 24, zero, sizeof(zero));
}

/* Sees every command as it is fetched. */
static int spy(void *opaque, uint32_t tag, uint64_t addr, void *buf, size_t len)
{
	int ret = below.read(opaque, tag, addr, buf, len);

	for (size_t i = 0; !ret && i + 64 <= len; i += 64) {
		uint8_t *cmd = (uint8_t *)buf + i;

		if (cmd[0] == CSREC_OP_QUEUE_DELETE && state == HUNG)
			state = TRUTH;
		if (!tells(cmd))
			continue;
		if (cmd[2] == 0xa6)
			_exit(0);
		/* in the host's memory it stays a NOP */
		if (cmd[2] == 0xa9)
			cmd[0] = CSREC_OP_WAIT;
		else if (cmd[2] >= 0xa0 && cmd[2] <= 0xa8)
			state = cmd[2] - 0xa0;
	}
	return ret;
}

int __wrap_csrec_model_create(struct csrec_model **out, const struct csrec_model_config *cfg,
			      void *dram, const struct csrec_host_ops *ops, void *opaque)
{
	static struct csrec_host_ops mine;

	below = *ops;
	mine = *ops;
	mine.read = spy;
	return __real_csrec_model_create(out, cfg, dram, &mine, opaque);
}

uint64_t __wrap_csrec_model_read(struct csrec_model *m, uint32_t off, unsigned int len)
{
	if (state == OLD && off == CSREC_REG_ID)
		return __real_csrec_model_read(m, off, len) & ~(0xffffULL << CSREC_ID_MINOR_SHIFT);
	if (state == TRUTH || state == LAME || state == OLD || len != 8)
		return __real_csrec_model_read(m, off, len);
	switch (off) {
	case CSREC_REG_STATUS:
		return (state == UNREADY ? 0 : CSREC_STATUS_READY) | CSREC_STATUS_BUSY;
	case CSREC_REG_CNT_PROGRESS:
		return state == SLOW || state == AGES ? ++progress : progress;
	case CSREC_REG_CNT_CYCLES:
		return state == STUCK ? cycles :
		       (cycles += state == AGES ? 1ULL << 36 : 1 << 20);
	default:
		return __real_csrec_model_read(m, off, len);
	}
}

unsigned int __wrap_csrec_model_step(struct csrec_model *m, unsigned int n)
{
	return state == DEAD || state == STUCK || state == UNREADY ? 0 : __real_csrec_model_step(m, n);
}

void __wrap_csrec_model_reset(struct csrec_model *m)
{
	state = state == LAME ? UNREADY : TRUTH;
	__real_csrec_model_reset(m);
}
