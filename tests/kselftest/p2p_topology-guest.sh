#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# In the guest of p2p_topology.sh: finds its drives by their serial numbers, stacks others on
# them, and has P2P_READ and P2P_WRITE try them all. TAP; counts go to /out/kselftest.json.
#
#   p2p_topology-guest.sh KERNEL	as for tools/lab/vm: only nop2p lacks PCI_P2PDMA
#
cd "$(dirname "$0")/../.." || exit 1
peer=p2p
[ "$1" != nop2p ] || peer=bounce
tap=/tmp/topology.tap

drive() {	# SERIAL: its node, which may be there a little later
	for _ in $(seq 100); do
		for node in /sys/block/nvme*n*; do
			# the paths below a multipath head have no node
			case ${node##*/} in nvme*c*n*) continue ;; esac
			[ "$(tr -d ' ' <"$node/device/serial")" != "$1" ] ||
				{ echo "/dev/${node##*/}"; return; }
		done
		sleep 0.1
	done
	echo "/dev/no-drive-$1"
}
quiet() { "$@" >/dev/null 2>&1 || echo "# $* failed"; }

say() { echo "$*" | tee -a $tap; }

echo "csrec topology" >/dev/kmsg
insmod "build/kernel/$(uname -r)/csrec.ko" || { echo "not ok - module loads"; exit 1; }
for module in virtio_blk dm-mod raid0 raid1 loop brd; do
	modprobe -q "$module"
done
leaf=$(drive csrec-lab) root=$(drive root) head=$(drive many)
virtio=/dev/vda

# Three partitions of 8 MiB on the drive that can be reached, so that only what is on top of it
# is new.
entry() { printf "\\0\\0\\0\\0\\203\\0\\0\\0\\0\\$1\\0\\0\\0\\100\\0\\0"; }
{ entry 100; entry 200; entry 300; } | dd of="$leaf" bs=1 seek=446 conv=notrunc status=none
printf '\125\252' | dd of="$leaf" bs=1 seek=510 conv=notrunc status=none
quiet blockdev --rereadpt "$leaf"
quiet busybox timeout 20 sh -c "until [ -b ${leaf}p3 ]; do sleep 0.1; done"
echo "0 16384 linear ${leaf}p1 0" | quiet dmsetup create csrec-linear --noudevsync
quiet dmsetup mknodes
quiet losetup /dev/loop0 "${leaf}p1"
for level in 0 1; do
	quiet mdadm --create "/dev/md$level" --run --force --assume-clean --metadata=1.0 \
		--level=$level --raid-devices=2 "${leaf}p2" "${leaf}p3"
	build/kselftest/p2p_source "/dev/md$level" bounce >"/tmp/md$level" 2>&1
	sed -n '/^ok\|^not ok/s/ [0-9]* / /p' "/tmp/md$level" | tee -a $tap
	quiet mdadm --stop "/dev/md$level"
done
echo 1..6
{
	build/kselftest/p2p_source "$leaf" $peer "${leaf}p1" $peer "$root" bounce "$head" bounce \
		"$virtio" bounce /dev/mapper/csrec-linear bounce /dev/loop0 bounce /dev/ram0 bounce
	# a failed test makes it 1, which has been told already
	status=$?
	[ $status -le 1 ] || echo "not ok - p2p_source: exit status $status"
} | tee -a $tap
quiet losetup -d /dev/loop0
quiet dmsetup remove --retry --noudevsync csrec-linear
if rmmod csrec; then say "ok - module unloads"; else say "not ok - module unloads"; fi
reports=$(dmesg | sed -n '/csrec topology/,$p' | tests/guest/log-reports)
if [ -z "$reports" ]; then say "ok - kernel log is clean"; else say "not ok - kernel log is clean"; fi
[ -z "$reports" ] || echo "$reports" | sed 's/^/# /'
echo 1..2
tests/kselftest/tally "$(uname -r)" "$(echo "$reports" | grep -c .)" <$tap >/out/kselftest.json
! grep -q '^not ok' $tap
