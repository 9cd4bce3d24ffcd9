/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SIGMOID_TEST_H
#define SIGMOID_TEST_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void sigmoid_reset(void);
/* Runs the module for one value; false if it gives no answer. */
bool sigmoid_run(uint32_t x, uint32_t *y);

#ifdef __cplusplus
}
#endif
#endif /* SIGMOID_TEST_H */
