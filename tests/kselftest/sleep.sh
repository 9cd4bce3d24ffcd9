#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Boots a guest and puts it to sleep with work in flight. Inside the lab, by
# make -C tests/kselftest check:
#
#   tests/kselftest/sleep.sh [KERNEL]
#
# 9p does not survive the sleep, and so nothing in the guest that needs a file does: the
# results are read from its console.
set -u
cd "$(dirname "$0")/../.." || exit 1
kernel=${1:-p2p}
name="sleep"
[ "$kernel" = p2p ] || name=sleep-$kernel
out=build/vm/$name
mkdir -p "$out"
rm -f "$out/release" "$out/console.log"
# shellcheck disable=SC2016 # the guest's uname
tools/lab/vm --kernel "$kernel" --sim build/kselftest/csrec-sim-hang --out "$out" --limit 900 -- \
	sh -c 'insmod build/kernel/$(uname -r)/csrec.ko && cp build/kselftest/sleep /tmp/ && exec /tmp/sleep' \
	>"$out.log" 2>&1
[ -f "$out/console.log" ] || { cat "$out.log"; echo "not ok - sleep: no guest"; exit 1; }
{
	sed -n 's/^\[[^]]*\] csrec-test: //p' "$out/console.log" | tr -d '\r'
	tests/guest/log-reports <"$out/console.log" >"$out/bugs" ||
		{ sed 's/^/# /' "$out/bugs"; echo "not ok - sleep: kernel log is clean"; }
} >"$out/tap"
grep -q '^1\.\.' "$out/tap" || echo "not ok - sleep: the guest did not come to its end" >>"$out/tap"
cat "$out/tap"
tests/kselftest/tally "$(cat "$out/release")" "$(wc -l <"$out/bugs")" <"$out/tap" >"$out/kselftest.json"
tests/kselftest/report "$out" "$name"
! grep -q '^not ok' "$out/tap"
