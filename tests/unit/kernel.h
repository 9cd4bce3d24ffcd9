/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the driver's pure functions need of the kernel, for a program on the host. */
#ifndef UNIT_KERNEL_H
#define UNIT_KERNEL_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

#define READ_ONCE(x)		(*(const volatile __typeof__(x) *)&(x))
#define le16_to_cpu(x)		le16toh(x)
#define ilog2(x)		(31 - __builtin_clz(x))
#define ALIGN(x, a)		(((x) + (a) - 1) / (a) * (a))
#define min(a, b)		((a) < (b) ? (a) : (b))

#endif /* UNIT_KERNEL_H */
