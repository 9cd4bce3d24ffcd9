#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Boots a guest in which bus errors happen and the device is unplugged, plugged and dies, with a
# second drive, which has bad blocks, and hangs when told to; tests the driver in it. Inside the
# lab, by make -C tests/kselftest check:
#
#   tests/kselftest/bus.sh [KERNEL]
#
set -u
cd "$(dirname "$0")/../.." || exit 1
spare=$(mktemp -d)
# Waits to be plugged.
build/kselftest/csrec-sim-hang --socket "$spare/dev" >"$spare/log" 2>&1 &
trap 'kill $! 2>/dev/null; rm -rf "$spare"' EXIT
truncate -s 32M "$spare/bad"
bad=file.image.driver=file,file.image.filename=$spare/bad
# sectors of 512 bytes: those of p2p_error.c
n=0
for fault in read,sector=8192 write,sector=16384; do
	rule=file.inject-error.$n
	bad=$bad,$rule.event=none,$rule.iotype=${fault%,*},$rule.${fault#*,},$rule.errno=5
	n=$((n + 1))
done
# What QEMU says of a device that is gone would fill pages.
tests/kselftest/guest bus "${1:-p2p}" --monitor --sim build/kselftest/csrec-sim-hang --limit 900 \
	--qemu-arg -device --qemu-arg bochs-display \
	--qemu-arg -drive --qemu-arg "if=none,id=bad,driver=raw,file.driver=blkdebug,$bad" \
	--qemu-arg -device --qemu-arg xio3130-downstream,id=d2,bus=up,chassis=2,slot=4 \
	--append nvme_core.io_timeout=100000 -- \
	env CSREC_SPARE="$spare/dev" tests/kselftest/bus-guest.sh 2>"$spare/vm.log"
status=$?
grep -v '^qemu-system' "$spare/vm.log" >&2
exit $status
