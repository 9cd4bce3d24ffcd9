/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef DOT_TEST_H
#define DOT_TEST_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dot_in {
	bool valid, first, last;
	unsigned int slot;
	uint32_t a[8], b[8];
};

void dot_reset(void);
/* One clock cycle: gives the outputs of the cycle, then clocks @in in. */
bool dot_step(const struct dot_in *in, unsigned int *slot, uint32_t *y);

#ifdef __cplusplus
}
#endif
#endif /* DOT_TEST_H */
