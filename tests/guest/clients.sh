#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# In a guest, by tests/guest/list: programs that know nothing of csrec use its device and the
# drive beside it: lspci, a walk over the capabilities, nvme-cli, and fio with its buffers in
# device memory, by the kernel's own p2pmem/allocate.
cd "$(dirname "$0")/../.." || exit 1
tmp=$(mktemp -d /tmp/csrec-clients.XXXXXX)
trap 'rm -rf "$tmp"' EXIT
n=0 bad=0

check() {	# NAME COMMAND...: the end of what it prints on failure
	name=$1
	shift
	n=$((n + 1))
	if "$@" >"$tmp/log" 2>&1; then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name"
		tail -n 20 "$tmp/log" | sed 's/^/# /'
		bad=1
	fi
}
skip() {	# NAME WHY
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}

lspci_is_content() {
	lspci -vvv -s "$bdf" >"$tmp/lspci" || return
	cat "$tmp/lspci"
	grep -q 'Kernel driver in use: csrec' "$tmp/lspci" && ! grep -E '<\?>|!!!' "$tmp/lspci"
}

byte() {	# OFFSET in configuration space, decimal
	od -An -tu1 -j "$1" -N 1 "$sysfs/config" | tr -d ' '
}
word32() {
	od -An -tu4 -j "$1" -N 4 "$sysfs/config" | tr -d ' '
}
# Each pointer inside the space and aligned, no capability twice, and those that there must be:
# power management, PCI Express, MSI-X.
capabilities() {
	at=$(($(byte 52) & 252)) seen=' ' ids=' '
	while [ "$at" != 0 ]; do
		case $seen in *" $at "*) echo "loop at $at"; return 1 ;; esac
		[ "$at" -ge 64 ] && [ "$at" -le 252 ] || { echo "capability at $at"; return 1; }
		id=$(byte "$at")
		echo "capability $id at $at"
		seen="$seen$at " ids="$ids$id "
		at=$(($(byte $((at + 1))) & 252))
	done
	for id in 1 16 17; do
		case $ids in *" $id "*) ;; *) echo "no capability $id"; return 1 ;; esac
	done
}
# The same for extended capabilities, of which there may be none.
extended_capabilities() {
	at=256 seen=' '
	[ "$(stat -c %s "$sysfs/config")" -ge 4096 ] || { echo "no extended space"; return 1; }
	while [ "$at" != 0 ]; do
		case $seen in *" $at "*) echo "loop at $at"; return 1 ;; esac
		[ "$at" -ge 256 ] && [ "$at" -le 4092 ] || { echo "capability at $at"; return 1; }
		head=$(word32 "$at")
		[ "$head" != 4294967295 ] || { echo "nothing at $at"; return 1; }
		echo "extended capability $((head & 65535)) version $((head >> 16 & 15)) at $at"
		[ "$head" = 0 ] || [ $((head >> 16 & 15)) != 0 ] || return 1
		seen="$seen$at "
		at=$((head >> 20 & 4092))
	done
}

id_ctrl() {
	nvme id-ctrl /dev/nvme0 | tee "$tmp/id" && grep -q '^sn .*csrec-lab' "$tmp/id"
}
list() {
	nvme list | tee "$tmp/list" && grep -q '^/dev/nvme0n1 .*csrec-lab' "$tmp/list"
}
nvme_read() {
	head -c 4096 /dev/urandom >"$tmp/want" &&
		dd if="$tmp/want" of=/dev/nvme0n1 bs=4096 count=1 seek=16 conv=fsync status=none &&
		nvme read /dev/nvme0n1 --start-block=128 --block-count=7 --data-size=4096 \
			--data="$tmp/got" && cmp "$tmp/want" "$tmp/got"
}

memory() {	# bytes that p2pmem/allocate has left
	cat "$sysfs/p2pmem/available"
}
run_fio() {	# ENGINE RW
	before=$(memory)
	(cd "$tmp" && fio --name=csrec --filename=/dev/nvme0n1 --direct=1 --ioengine="$1" --rw="$2" \
		--bs=4k --size=2m --iodepth=8 --verify=crc32c --verify_fatal=1 --do_verify=1 \
		--iomem=mmapshared:"$sysfs/p2pmem/allocate") || return
	[ "$(memory)" = "$before" ] || { echo "memory left: $before before, $(memory) after"; return 1; }
}

echo "TAP version 13"
insmod "build/kernel/$(uname -r)/csrec.ko" || exit 1
sysfs=$(readlink -f /sys/class/csrec/csrec0/device) bdf=${sysfs##*/}
check "lspci -vvv understands all of the device" lspci_is_content
check "capabilities" capabilities
check "extended capabilities" extended_capabilities
check "nvme id-ctrl" id_ctrl
check "nvme list" list
check "nvme read" nvme_read
for job in "psync randwrite" "psync randrw" "io_uring randwrite" "io_uring randrw"; do
	# shellcheck disable=SC2086 # two words
	if [ -e "$sysfs/p2pmem/allocate" ]; then
		check "fio with buffers in device memory: $job" run_fio $job
	else
		skip "fio with buffers in device memory: $job" "a kernel without PCI_P2PDMA"
	fi
done
check "module unloads" rmmod csrec
echo "1..$n"
exit $bad
