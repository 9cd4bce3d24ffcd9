// SPDX-License-Identifier: GPL-2.0-only
/*
 * Asserts that every structure of the interface is laid out as its table says, which
 * tests/uapi compares for programs of 64 and 32 bits.
 */
#include <linux/build_bug.h>
#include <linux/csrec.h>
#include <linux/stddef.h>

#define CSREC_STRUCT(s, size)		static_assert(sizeof(struct s) == (size));
#define CSREC_FIELD(s, f, at, size)	static_assert(offsetof(struct s, f) == (at) && \
						      sizeof_field(struct s, f) == (size));

#include <csrec_layout.h>
