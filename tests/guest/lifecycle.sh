#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Ends the device server, QEMU and the wrapper while a guest is at work; each time
# tools/lab/vm must say which one it was, end by itself and leave nothing running.
# Inside the lab. TAP.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
out=build/vm/lifecycle
n=0

tap() { # NAME STATUS
	n=$((n + 1))
	if [ "$2" = 0 ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; fi
}

# Children of the wrapper by name, while it runs.
child() { pgrep -P "$vm" -f "$1" | head -n 1; }

begin() {
	rm -rf $out
	mkdir -p $out
	tools/lab/vm --out $out -- sh -c 'insmod "build/kernel/$(uname -r)/csrec.ko" && touch /out/up && sleep 1000' \
		>$out/vm.log 2>&1 &
	vm=$!
	until [ -e $out/up ] || ! kill -0 $vm 2>/dev/null; do sleep 0.2; done
	sim=$(child csrec-sim) qemu=$(child qemu-system)
}

gone() { # PID ...: none of them runs any more
	local pid
	for pid; do
		[ -n "$pid" ] || return 1
		! kill -0 "$pid" 2>/dev/null || return 1
	done
}

begin
kill -KILL "$sim"
wait $vm
tap "device server killed: status 126" $(($? != 126))
grep -q 'device server ended while the guest was running' $out/vm.log
tap "device server killed: said so" $?
gone "$sim" "$qemu" $vm
tap "device server killed: nothing left running" $?

begin
kill -KILL "$qemu"
wait $vm
tap "QEMU killed: status 126" $(($? != 126))
grep -q 'guest ended without running its command to the end' $out/vm.log
tap "QEMU killed: said so" $?
gone "$sim" "$qemu" $vm
tap "QEMU killed: nothing left running" $?

begin
kill -TERM $vm
wait $vm
tap "interrupted: status 130" $(($? != 130))
grep -q 'interrupted' $out/vm.log
tap "interrupted: said so" $?
gone "$sim" "$qemu" $vm
tap "interrupted: nothing left running" $?

# no guest is that fast
tools/lab/vm --sim none --boot 1 --out $out -- true >$out/vm.log 2>&1 &
vm=$!
wait $vm
tap "never booted: status 124" $(($? != 124))
[ "$(grep -c 'no first process within 1 s' $out/vm.log)" = 3 ] &&
	[ "$(grep -c 'starting it again' $out/vm.log)" = 2 ]
tap "never booted: tried three times, and said so" $?
! pgrep -f "$PWD/$out" >/dev/null && gone $vm
tap "never booted: nothing left running" $?
echo "1..$n"
