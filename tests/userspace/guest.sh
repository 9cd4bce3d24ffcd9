#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# csrec with the real driver and device, in the guest: finds no driver loaded, leaves none.
# CSREC_GUEST_KERNEL is p2p or nop2p. TAP.
set -u
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
# shellcheck source=tests/userspace/tap.sh
. "$here/tap.sh"
module=$top/build/kernel/$(uname -r)/csrec.ko
drive=/dev/nvme0n1
p2p=${CSREC_GUEST_KERNEL:-p2p}
unset CSREC_DEVICE CSREC_LOG CSREC_SYSFS CSREC_DEV

csrec() { "$top/build/tools/csrec" "$@"; }
nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }

# Without the driver
tap "list without driver" json '.devices | length == 1 and (.[0] | .node == "" and .driver == ""
	and .id == "1234:c5ec" and (.drives | length) == 1 and .drives[0].shares_switch)' csrec list --json
for c in info copy p2p; do
	tap "$c without driver" exits 3 "no driver: load csrec.ko" csrec $c
done
tap "info of a node that is not there" exits 3 "csrec.ko is not loaded" csrec info --device csrec0

tap "doctor without driver" json '.exit == 1 and (.checks[] | select(.name == "driver") |
	.result == "fail" and (.remedy | contains("modprobe csrec")))' csrec doctor --json
tap "topo without driver" json '(.nodes[] | select(.kind == "csrec") | .driver) == ""' csrec topo --json
tap "dump without driver" shows '^address .*, driver none$' csrec dump

if ! insmod "$module"; then
	echo "not ok - csrec.ko loads"
	exit 1
fi
for _ in $(seq 50); do
	[ -c /dev/csrec0 ] && break
	sleep 0.1
done

# Discovery
tap "list" json '.devices[0] | .node == "/dev/csrec0" and .driver == "csrec" and .link.width > 0
	and .link.mts > 0 and (.path | split("/") | length) == 3' csrec list --json
tap "list: the drive is below the same switch" json '.devices[0] | .drives[0] as $d | .path as $p |
	$d.node == "'$drive'" and $d.shares_switch and ($p | split("/")[1]) == $d.common' csrec list --json
tap "list: drive size" json ".devices[0].drives[0].bytes == $(blockdev --getsize64 $drive)" csrec list --json
if [ $p2p = p2p ]; then
	tap "list: P2P is likely" json '.devices[0] | .p2pmem and .drives[0].p2p == "likely"' csrec list --json
else
	tap "list: no P2P in this kernel" json '.devices[0] | (.p2pmem | not) and .drives[0].p2p == "no"' csrec list --json
fi
tap "list as nobody" json '.devices[0] | .node == "/dev/csrec0" and .link.width > 0' \
	nobody "$top/build/tools/csrec" list --json
address=$(csrec list --json | jq -r '.devices[0].address')
for name in csrec0 0 /dev/csrec0 "$address" "${address#0000:}"; do
	tap "info --device $name" json ".node == \"/dev/csrec0\" and .address == \"$address\"" \
		csrec info --json --device "$name"
done
tap "info as nobody" exits 4 "/dev/csrec0: no permission" nobody "$top/build/tools/csrec" info
tap "info of another node" exits 3 "csrec9" csrec info --device csrec9
tap "a device node that is not csrec's" exits 3 "/dev/null is not a csrec device" csrec info --device /dev/null

# What the device says
tap "info" json '.versions.library == "1.1" and (.versions.driver | startswith("1."))
	and (.versions.device | startswith("1.")) and (.memory | .dram >= 16777216 and .dram_free <= .dram
	and .onchip > 0 and .onchip_free == .onchip) and (.limits | .io_queues >= 1 and .io_queues <= 64
	and .regions > 0 and .fences > 0) and .engines == ["copy", "emb", "tt", "interact", "mlp"]
	and (.fp_unit | IN("rtl", "dpi", "golden")) and (.device_counters | length) == 21' csrec info --json
tap "info: what the kernel can" json ".p2pdma == $([ $p2p = p2p ] && echo true || echo false)" csrec info --json
tap "info: features are those of sysfs" [ "$(csrec info --json | jq -r '.features | join(" ")')" = \
	"$(cat /sys/class/csrec/csrec0/features)" ]
tap "info in text" shows '^fp|fp32 units: (rtl|dpi|golden)$' csrec info

# Copies: every pair of memories, lengths and splits without a common alignment. A
# completion may be seen before its interrupt is taken, so that one copy can show none.
for from in host dram onchip; do
	for to in host dram onchip; do
		tap "copy $from to $to" json ".verified and .from == \"$from\" and .to == \"$to\" and .bytes == 20003
			and .commands == 5 and .doorbells >= 1 and .doorbells <= 5 and .interrupts <= 5
			and .cycles > 0" csrec copy --json --size 20003 --count 5 --from $from --to $to
	done
done
for size in 1 63 64 4095 4097 65536; do
	tap "copy of $size bytes" json ".verified and .bytes == $size" csrec copy --json --size $size
done
tap "copy of 1M" json '.verified' csrec copy --json --size 1M
tap "copy of more commands than the ring holds" json '.verified and .commands == 300 and .doorbells < 100' \
	csrec copy --json --size 30000 --count 300
tap "the example runs" shows '^4096 bytes to /dev/csrec0 and back: the same$' "$top/build/tests-userspace/example"
onchip=$(csrec info --json | jq .memory.onchip)
tap "copy of more than on-chip memory holds" exits 1 "bytes are free" csrec copy --to onchip --size $((onchip + 64))
tap "copy over the memlock limit" exits 1 "RLIMIT_MEMLOCK is 65536 bytes" \
	setpriv --bounding-set -ipc_lock --inh-caps -ipc_lock \
	bash -c "ulimit -l 64; exec '$top/build/tools/csrec' copy --size 1M"
tap "the driver took interrupts" json '.driver_counters.interrupts > 0 and .device_counters.irqs > 0' csrec info --json
tap "everything was given back" json '.memory | .onchip_free == .onchip' csrec info --json
tap "nothing stays pinned" json '.driver_counters.pinned_bytes == 0' csrec info --json
tap "the device saw no bad doorbell or write" json '.device_counters | .bad_doorbells == 0 and .bad_writes == 0' \
	csrec info --json

# The drive
dd if=/dev/urandom of=$drive bs=64K count=32 oflag=direct conv=fsync status=none || echo "not ok - filling $drive"
if [ $p2p = p2p ]; then
	tap "p2p --only" json '.verified and .p2p_bytes == 262144 and .bounce_bytes == 0' \
		csrec p2p --json --only --drive $drive --size 256K
	tap "p2p picks the drive, and the direct way" json ".verified and .drive == \"$drive\" and .p2p_bytes == 65536" \
		csrec p2p --json --size 64K
else
	tap "p2p --only where the kernel has no P2P" exits 6 "no peer-to-peer path" csrec p2p --only --size 64K
	tap "p2p picks the drive, and bounces" json ".verified and .drive == \"$drive\" and .p2p_bytes == 0 and .bounce_bytes == 65536" \
		csrec p2p --json --size 64K
fi
tap "p2p --bounce" json '.verified and .p2p_bytes == 0 and .bounce_bytes == 262144' \
	csrec p2p --json --bounce --drive $drive --offset 64K --size 256K
block=$(blockdev --getss $drive)
tap "p2p of single blocks" json ".verified and .p2p_bytes + .bounce_bytes == $((9 * block))" \
	csrec p2p --json --drive $drive --offset $((5 * block)) --size $((9 * block)) --segment "$block"
last=$(($(blockdev --getsize64 $drive) - block))
tap "p2p of the last block" json '.verified' csrec p2p --json --drive $drive --offset $last --size "$block"
tap "p2p past the end" exits 2 "end past the" csrec p2p --drive $drive --offset $last --size $((2 * block))
tap "p2p of part of a block" exits 2 "multiples of $block" csrec p2p --drive $drive --offset 1
tap "p2p of a missing drive" exits 5 "/dev/nvme9n1: No such file" csrec p2p --drive /dev/nvme9n1
tap "p2p of a character device" exits 5 "/dev/zero is not a block device" csrec p2p --drive /dev/zero
chmod 666 /dev/csrec0
tap "p2p of a drive one may not read" exits 4 "$drive: no permission" nobody "$top/build/tools/csrec" p2p --drive $drive
tap "copy as nobody, with the node open to all" json '.verified' \
	nobody "$top/build/tools/csrec" copy --json --size 4096
chmod 600 /dev/csrec0
nvme_address=$(csrec list --json | jq -r '.devices[0].drives[0].address')
echo "$nvme_address" >/sys/bus/pci/drivers/nvme/unbind
tap "p2p without any drive" exits 5 "no NVMe drive" csrec p2p
tap "list: a drive without driver" json '.devices[0].drives[0] | .node == "" and .p2p == "no"' csrec list --json
echo "$nvme_address" >/sys/bus/pci/drivers/nvme/bind
for _ in $(seq 100); do
	[ -b $drive ] && break
	sleep 0.1
done

# What stands around the device
if [ $p2p = p2p ]; then
	tap "doctor: all is well" json '.exit == 0 and .warnings == 0 and .failed == 0 and
		([.checks[] | select(.result != "ok")] == [])' csrec doctor --json
	tap "topo: drive and device can P2P" json '.pairs | length == 1 and .[0].p2p == "likely"' csrec topo --json
else
	tap "doctor: no PCI_P2PDMA" json ".exit == 0 and .failed == 0 and ([.checks[] | select(.result == \"warn\")] |
		length == 1 and .[0].name == \"p2pdma\" and .[0].reason ==
		\"no PCI_P2PDMA in kernel $(uname -r): drive reads bounce through host memory\")" csrec doctor --json
	tap "doctor --strict" exits 1 "" csrec doctor --strict
	tap "topo: drive and device cannot P2P" json '.pairs | length == 1 and .[0].p2p == "no" and
		(.[0].p2p_reason | contains("PCI_P2PDMA"))' csrec topo --json
fi
tap "topo: both below one switch" json '[.nodes[] | .kind] | sort == ["csrec", "nvme", "root_port",
	"switch_downstream", "switch_downstream", "switch_upstream"]' csrec topo --json
tap "doctor as nobody" json '.exit == 1 and (.checks[] | select(.name == "node") | .result == "fail")' \
	nobody "$top/build/tools/csrec" doctor --json
commands=$(csrec stat --json | jq .hw_counters.commands)
csrec copy --size 4K --count 3 >/dev/null
# one more reads back; the driver has some of its own, and does not see those of mapped queues
tap "stat counts, and anybody may read it" json ".hw_counters.commands >= $((commands + 4)) and
	.counters.pinned_bytes == 0 and .hw_counters.commands > .counters.commands" \
	nobody "$top/build/tools/csrec" stat --json
tap "stat is what info says" [ "$(csrec stat --json | jq '[.hw_counters | .commands, .errors, .doorbells]')" = \
	"$(csrec info --json | jq '[.device_counters | .commands, .errors, .doorbells]')" ]
added() {
	(sleep 1; exec "$top/build/tools/csrec" copy --size 4K --count 5 >/dev/null) &
	csrec stat --json --interval 5 --count 1
	wait $!
}
tap "stat --interval" json '.complete and .samples[0].hw_counters.commands >= 6' added
exec 9<>/dev/csrec0
tap "top shows who has the device open" json ".samples[0].devices[0].processes == [{pid: $$, command: \"guest.sh\",
	contexts: 1, queues: 0, regions: 0, dram_bytes: 0, onchip_bytes: 0, host_bytes: 0}]" csrec top --json
tap "top in lines" shows "^ +$$ guest.sh +1 +0" csrec top -b -n 1
tap "top as nobody" json '.samples[0].devices[0] | (.no_queues | contains("root")) and .queues > 0' \
	nobody "$top/build/tools/csrec" top --json
tap "reset of a device in use" exits 9 "in use by $$ (guest.sh)" csrec reset
tap "reset as nobody" exits 4 "only root" nobody "$top/build/tools/csrec" reset
resets=$(csrec stat --json | jq .counters.device_resets)
before=$(csrec stat --json | jq -c .hw_counters)
tap "reset --force" json '.users >= 1 and .state_before == "live" and .state == "live" and .method == "flr"' \
	csrec reset --force --json
tap "the reset was counted, and set no counter back" json ".counters.device_resets == $((resets + 1)) and
	(.hw_counters | to_entries | all(.value >= ($before)[.key]))" csrec stat --json
tap "top shows that the context is dead" shows "^$$ guest.sh [0-9]+ 0 dead\$" cat /sys/kernel/debug/csrec/csrec0/contexts
exec 9>&-
tap "reset of an idle device" shows '^/dev/csrec0: was live, is live$' csrec reset
tap "it works after that" json '.verified' csrec copy --json --size 4K
dumped() { csrec dump --json | jq -e ".sections[] | select(.name == \"$1\") | .lines | $2" >/dev/null; }
tap "dump: registers" dumped registers 'any(startswith("status 0x00000000000000"))'
tap "dump: tables" dumped contexts '.[0] | startswith("pid comm domain")'
tap "dump: counters" dumped statistics 'any(test("^hw_counters/cycles [0-9]+$"))'
tap "dump: decoded" dumped "capabilities, decoded" 'any(test("I/O queues"))'
tap "dump: interrupts" dumped interrupts 'length > 0'
tap "dump: kernel log" dumped "kernel log" 'any(test("reset; contexts of before are dead"))'
tap "dump as nobody" shows '^not to be had: needs root' nobody "$top/build/tools/csrec" dump

exec 9<>/dev/csrec0
busy() { ! rmmod csrec; }
tap "the driver does not unload while open" busy
exec 9>&-
tap "the driver unloads" rmmod csrec
tap "then there is no device again" exits 3 "no driver: load csrec.ko" csrec copy
tap_done
