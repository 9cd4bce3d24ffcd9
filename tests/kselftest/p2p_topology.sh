#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Boots a guest with a CPU whose host bridge is not known to pass peer-to-peer DMA on, and
# drives in other places than below the device's switch: on the root bus, in a subsystem with
# two controllers (a multipath head), and one of virtio. Tests P2P_READ and P2P_WRITE with
# them and with what can be stacked on a drive. Inside the lab, by make -C
# tests/kselftest check:
#
#   tests/kselftest/p2p_topology.sh [KERNEL]
#
cd "$(dirname "$0")/../.." || exit 1
kernel=${1:-p2p}
sim=build/kselftest/csrec-sim-hang
dir=$(mktemp -d /tmp/csrec-topology.XXXXXX)
trap 'rm -rf "$dir"' EXIT
for name in root many virtio; do
	truncate -s 16M "$dir/$name"
	set -- "$@" --qemu-arg -drive --qemu-arg "file=$dir/$name,if=none,id=$name,format=raw"
done
shift "$(($# - 12))"
tests/kselftest/guest topology "$kernel" --sim "$sim" --limit 600 "$@" \
	--qemu-arg -cpu --qemu-arg Skylake-Client \
	--qemu-arg -device --qemu-arg nvme,drive=root,serial=root \
	--qemu-arg -device --qemu-arg nvme-subsys,id=nss,nqn=many \
	--qemu-arg -device --qemu-arg nvme,id=many0,serial=many,subsys=nss \
	--qemu-arg -device --qemu-arg nvme,id=many1,serial=many,subsys=nss \
	--qemu-arg -device --qemu-arg nvme-ns,drive=many,bus=many0,nsid=1,shared=on \
	--qemu-arg -device --qemu-arg virtio-blk-pci,drive=virtio \
	-- tests/kselftest/p2p_topology-guest.sh "$kernel"
