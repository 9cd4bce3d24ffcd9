#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Boots a guest whose device hangs when told to, and tests the driver's watchdog in it.
# Inside the lab, by make -C tests/kselftest check:
#
#   tests/kselftest/hang.sh [KERNEL]
#
cd "$(dirname "$0")/../.." || exit 1
exec tests/kselftest/guest hang "${1:-p2p}" --sim build/kselftest/csrec-sim-hang --limit 600 -- \
	tests/kselftest/run.sh hang
