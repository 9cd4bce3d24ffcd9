#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Boots a guest and puts it to sleep with work in flight. Inside the lab, by
# make -C tests/kselftest check:
#
#   tests/kselftest/sleep.sh [KERNEL]
#
# QEMU tells its monitor when the guest sleeps, and is told to wake it then.
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

qmp=$(mktemp -d)
mkfifo "$qmp/monitor.in" "$qmp/monitor.out"
exec 5<>"$qmp/monitor.in" 6<>"$qmp/monitor.out"
trap 'kill $! 2>/dev/null; rm -rf "$qmp"' EXIT
echo '{"execute":"qmp_capabilities"}' >&5
while read -r line <&6; do
	case $line in *'"event": "SUSPEND"'*) echo '{"execute":"system_wakeup"}' >&5 ;; esac
done &

# shellcheck disable=SC2016 # the guest's uname
tools/lab/vm --kernel "$kernel" --sim build/kselftest/csrec-sim-hang --out "$out" --limit 900 \
	--qemu-arg -chardev --qemu-arg "pipe,id=waker,path=$qmp/monitor" \
	--qemu-arg -object --qemu-arg monitor-qmp,id=wake,chardev=waker -- \
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
