// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Asserts that the compiler lays out the interface's structures as the driver's did. The
 * table is not installed.
 */
#include <stddef.h>
#include <csrec.h>

#define CSREC_STRUCT(s, size)		_Static_assert(sizeof(struct s) == (size), #s);
#define CSREC_FIELD(s, f, at, size)	_Static_assert(offsetof(struct s, f) == (at) && \
						       sizeof(((struct s *)NULL)->f) == (size), #s "." #f);
#include <csrec_layout.h>
