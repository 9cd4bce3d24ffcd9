// SPDX-License-Identifier: GPL-2.0-only
/* What the tracepoints of csrec_trace.h are made of. */
#define CREATE_TRACE_POINTS
#include "csrec_trace.h"
