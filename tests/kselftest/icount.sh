#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Counts the guest's instructions for one command, in a guest of one CPU whose clock is its
# instructions. Inside the lab, by make -C tests/kselftest check:
#
#   tests/kselftest/icount.sh [KERNEL]
#
# What the device takes for a command is not counted.
cd "$(dirname "$0")/../.." || exit 1
exec tests/kselftest/guest icount "${1:-p2p}" --sim build/kselftest/csrec-sim-hang --icount --limit 900 -- \
	tests/kselftest/run.sh icount
