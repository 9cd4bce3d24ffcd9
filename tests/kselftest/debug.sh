#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The driver tests on a kernel that watches itself (tools/lab/debug-kernel), by make
# check-debug: all programs of run.sh, fail_nth among them, with the fast device (the C model), in
# guests 1 to 4; then the guests of their own but icount, which measures. One TAP stream. Inside the
# lab:
#
#   tests/kselftest/debug.sh [debug|kcsan|rt [GUEST ...]]
#
# GUEST (1 to 4, hang, probe, bus ...): only these. build/reports/driver.json sums up the latest
# run of each guest, so that they may also be run one by one. What the checkers report is in the
# guests' logs, and makes "kernel log is clean" fail.
set -u
cd "$(dirname "$0")/../.." || exit 1
kernel=${1:-debug}
parts=4
[ $# = 0 ] || shift
# shellcheck disable=SC2046 # words
[ $# -gt 0 ] || set -- $(seq $parts) $(make -s -C tests/kselftest own KERNEL="$kernel")
release=$(tools/lab/debug-kernel "${kernel/#debug/kasan}") || { echo "not ok - no debug kernel"; exit 1; }
mkdir -p build/log
{ make -C kernel KREL="$release" && make -C tests/kselftest KREL="$release" all sims &&
	make -C rtl-model/golden sim; } >build/log/debug.log 2>&1 ||
	{ tail -n 20 build/log/debug.log; echo "not ok - build for $release"; exit 1; }

status=0
for guest in "$@"; do
	case $guest in
	[0-9]*) tests/kselftest/guest "part$guest" "$kernel" --sim build/golden/csrec-sim-golden \
			--memory 2G --limit 3600 -- env "CSREC_PART=$guest/$parts" \
			tests/kselftest/run.sh || status=1 ;;
	*) "tests/kselftest/$guest.sh" "$kernel" || status=1 ;;
	esac
done
exit $status
