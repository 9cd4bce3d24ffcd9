#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The driver tests on a kernel that watches itself (tools/lab/debug-kernel), by make
# check-debug: all programs of run.sh and fail_nth with the fast device (the C model), then
# the guests of their own but icount, which measures. One TAP stream. Inside the lab:
#
#   tests/kselftest/debug.sh [debug|kcsan|rt]
#
# What the checkers report is in the guests' logs, and makes "kernel log is clean" fail.
set -u
cd "$(dirname "$0")/../.." || exit 1
kernel=${1:-debug}
release=$(tools/lab/debug-kernel "${kernel/#debug/kasan}") || { echo "not ok - no debug kernel"; exit 1; }
mkdir -p build/log
{ make -C kernel KREL="$release" && make -C tests/kselftest KREL="$release" all sims &&
	make -C rtl-model/golden sim; } >build/log/debug.log 2>&1 ||
	{ tail -n 20 build/log/debug.log; echo "not ok - build for $release"; exit 1; }

status=0
tests/kselftest/guest all "$kernel" --sim build/golden/csrec-sim-golden --memory 2G --limit 3600 -- \
	tests/kselftest/run.sh || status=1
make -s -C tests/kselftest check KERNEL="$kernel" || status=1
exit $status
