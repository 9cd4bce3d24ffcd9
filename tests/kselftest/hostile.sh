#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The long form of hostile.c, by make check-hostile: a guest with the fast device (the C
# model), hostile processes until the device has taken that many of their commands. Its
# figures go to build/reports/driver.json. Inside the lab:
#
#   tests/kselftest/hostile.sh [KERNEL]
#
# CSREC_HOSTILE_COMMANDS (default 1000000), CSREC_HOSTILE_PROCS and CSREC_HOSTILE_SEED as in
# hostile.c.
set -u
cd "$(dirname "$0")/../.." || exit 1
exec tests/kselftest/guest hostile "${1:-p2p}" --sim build/golden/csrec-sim-golden --limit 7200 -- \
	env "CSREC_HOSTILE_COMMANDS=${CSREC_HOSTILE_COMMANDS:-1000000}" \
	"CSREC_HOSTILE_PROCS=${CSREC_HOSTILE_PROCS:-3}" "CSREC_HOSTILE_SEED=${CSREC_HOSTILE_SEED:-1}" \
	tests/kselftest/run.sh hostile
