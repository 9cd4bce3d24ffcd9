#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Boots a guest with devices that have something wrong with them, and has the driver probe
# them. Inside the lab, by make -C tests/kselftest check:
#
#   tests/kselftest/probe.sh [KERNEL]
#
set -u
cd "$(dirname "$0")/../.." || exit 1
tmp=$(mktemp -d)
servers='' args=() n=0
trap 'kill $servers 2>/dev/null; rm -rf "$tmp"' EXIT

# What is wrong for good, one device each; the first one of the guest is told at run time.
for fault in BAR0=0x10000 BAR2=0 BAR2=0x100000,MSIX=2 MSIX=1; do
	n=$((n + 1))
	env "CSREC_TEST_${fault%,*}" "CSREC_TEST_${fault#*,}" build/kselftest/csrec-sim-probe --dram-size 16M \
		--socket "$tmp/dev$n" >"$tmp/dev$n.log" 2>&1 &
	servers="$servers $!"
	args+=(--qemu-arg -device --qemu-arg "pcie-root-port,id=odd$n,chassis=1$n"
	       --qemu-arg -device --qemu-arg "{\"driver\":\"vfio-user-pci\",\"bus\":\"odd$n\",\"x-msg-timeout\":600000,\"socket\":{\"path\":\"$tmp/dev$n\",\"type\":\"unix\"}}")
	until [ -S "$tmp/dev$n" ]; do kill -0 $! || exit 1; sleep 0.1; done
done
tests/kselftest/guest probe "${1:-p2p}" --sim build/kselftest/csrec-sim-probe --limit 900 \
	"${args[@]}" -- tests/kselftest/run.sh probe
status=$?

# A host without MSI-X: refused, with the reason, and the module goes as it came.
if tools/lab/vm --kernel "${1:-p2p}" --sim build/kselftest/csrec-sim-probe --out build/vm/probe-nomsi \
	--limit 300 --append pci=nomsi -- tests/kselftest/probe-nomsi.sh; then
	echo "ok - pci=nomsi"
else
	echo "not ok - pci=nomsi"
	status=1
fi
echo 1..1
exit $status
