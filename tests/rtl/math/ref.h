/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* REFERENCE.md section 5 in plain C floats, bits in and bits out. */
#ifndef REF_H
#define REF_H

#include <stdint.h>

uint32_t ref_add(uint32_t a, uint32_t b);
uint32_t ref_mul(uint32_t a, uint32_t b);
uint32_t ref_dot(const uint32_t *a, const uint32_t *b, unsigned int n);
uint32_t ref_relu(uint32_t x);
uint32_t ref_sigmoid(uint32_t x);

#endif /* REF_H */
