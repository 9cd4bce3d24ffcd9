#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Boots a guest and puts it to sleep with work in flight. Inside the lab, by
# make -C tests/kselftest check:
#
#   tests/kselftest/sleep.sh [p2p|nop2p]
#
# 9p does not survive the sleep, and so nothing in the guest that needs a file does: the
# results are read from its console.
set -u
cd "$(dirname "$0")/../.." || exit 1
out=build/vm/sleep
# shellcheck disable=SC2016 # the guest's uname
tools/lab/vm --kernel "${1:-p2p}" --sim build/kselftest/csrec-sim-hang --out $out --limit 900 -- \
	sh -c 'insmod build/kernel/$(uname -r)/csrec.ko && cp build/kselftest/sleep /tmp/ && exec /tmp/sleep' \
	>$out.log 2>&1
sed -n 's/^\[[^]]*\] csrec-test: //p' $out/console.log | tr -d '\r' | tee $out/tap
grep -q '^1\.\.' $out/tap || { echo "not ok - sleep: the guest did not come to its end"; exit 1; }
if grep -E 'BUG|WARNING|Oops|Call Trace|blocked for more' $out/console.log; then
	echo "not ok - sleep: kernel log is clean"
	exit 1
fi
! grep -q '^not ok' $out/tap
