#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Boots a guest in which bus errors happen and the device is unplugged, plugged and dies; tests
# the driver in it. Inside the lab, by make -C tests/kselftest check:
#
#   tests/kselftest/bus.sh [KERNEL]
#
set -u
cd "$(dirname "$0")/../.." || exit 1
spare=$(mktemp -d)
# Waits to be plugged.
build/kselftest/csrec-sim-hang --socket "$spare/dev" >"$spare/log" 2>&1 &
trap 'kill $! 2>/dev/null; rm -rf "$spare"' EXIT
# What QEMU says of a device that is gone would fill pages.
tests/kselftest/guest bus "${1:-p2p}" --monitor --sim build/kselftest/csrec-sim-hang --limit 900 \
	--qemu-arg -device --qemu-arg bochs-display -- \
	env CSREC_SPARE="$spare/dev" tests/kselftest/run.sh bus 2>"$spare/vm.log"
status=$?
grep -v '^qemu-system' "$spare/vm.log" >&2
exit $status
