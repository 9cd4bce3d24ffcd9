#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Boots one guest, runs the guest tests in it, then the checks that look at it from
# outside. Inside the lab:
#
#   tests/guest/host.sh p2p|nop2p [TEST]
#
# Without TEST all of tests/guest/list; output is one TAP stream.
set -uo pipefail

cd "$(dirname "$0")/../.." || exit 1
kernel=$1 only=${2:-}
out=build/vm/$kernel
rm -rf "$out"
mkdir -p "$out"

tools/lab/vm --kernel "$kernel" --out "$out" --drive-size 64M --limit 3600 \
	--trace 'pci_nvme_map_prp' --trace 'pci_nvme_read' \
	-- tests/guest/guest.sh "$kernel" $only
status=$?
[ $status -lt 2 ] || echo "not ok - guest ($kernel) ended with status $status"

case $only in '' | kselftest) tests/kselftest/report "$out" "$kernel" || status=1 ;; esac

# The driver must have left the kernel's log clean.
if [ -f "$out/dmesg.log" ]; then
	if tests/guest/log-reports <"$out/dmesg.log"; then
		echo "ok - kernel log is clean ($kernel)"
	else
		echo "not ok - kernel log is clean ($kernel)"
		status=1
	fi
else
	echo "not ok - guest ($kernel) left no kernel log"
	status=1
fi

# That rows came peer-to-peer is proved from outside: QEMU's trace of the drive must
# show reads whose PRPs lie inside the device's BAR, and none where P2P is off.
result=$(tests/guest/prp-in-bar.sh "$out/bar2" "$out/qemu-trace.log" "$kernel") ||
	result="not ok - the drive's transfers are known (QEMU trace)"
echo "$result"
case $result in *'not ok'*) status=1 ;; esac
echo 1..2
exit $status
