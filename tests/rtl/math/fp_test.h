/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef FP_TEST_H
#define FP_TEST_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One clock cycle: gives the outputs of the cycle, then clocks @a and @b in. */
void fp_step_rtl(uint32_t a, uint32_t b, uint32_t *mul, uint32_t *add);
void fp_step_dpi(uint32_t a, uint32_t b, uint32_t *mul, uint32_t *add);

#ifdef __cplusplus
}
#endif
#endif /* FP_TEST_H */
