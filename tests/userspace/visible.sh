#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# csrec topo, stat, top, reset, dump and doctor against a sysfs, a debugfs and a procfs made of
# files: visible.sh BUILD_DIR. BUILD_DIR has csrec and mksysfs. TAP.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/userspace/tap.sh
. "$here/tap.sh"
build=$1

tmp=$(mktemp -d /tmp/csrec-visible.XXXXXX) || exit 1
trap 'rm -rf "$tmp"' EXIT
chmod 755 "$tmp"
unset CSREC_DEVICE CSREC_LOG
bdf=0000:04:00.0

csrec() {
	env CSREC_SYSFS="$tmp/${sys:-good}" CSREC_DEV="$tmp/${dev:-dev}" \
		CSREC_PROC="$tmp/${proc:-proc}" CSREC_BOOT="$tmp/${boot:-boot}" "$build/csrec" "$@"
}
with() {
	# with NAME=VALUE... -- COMMAND...
	while [ "$1" != -- ]; do
		local -x "${1?}"
		shift
	done
	shift
	"$@"
}
nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }

# put FILE TEXT: makes a file and the directories above it
put() {
	mkdir -p "$(dirname "$1")"
	printf '%s\n' "$2" >"$1"
}

# machine NAME [mksysfs option ...]: a sysfs with all that the driver shows
machine() {
	local root=$tmp/$1 a n
	"$build/mksysfs" "$root" "${@:2}" || exit 1
	put "$root/bus/pci/devices/$bdf/resource" \
		"0x00000000fea00000 0x00000000fea7ffff 0x0000000000140204
0x0000000000000000 0x0000000000000000 0x0000000000000000
0x0000000800000000 0x0000000800ffffff 0x000000000014220c
0x0000000000000000 0x0000000000000000 0x0000000000000000"
	put "$root/bus/pci/devices/$bdf/reset_method" "flr bus"
	: >"$root/bus/pci/devices/$bdf/reset"
	[ -d "$root/bus/pci/devices/$bdf/csrec/csrec0" ] || return 0
	a=$root/bus/pci/devices/$bdf/csrec/csrec0
	put "$a/uapi_version" "1.${minor:-1}"
	put "$a/hw_version" 1.1
	put "$a/state" live
	put "$a/features" p2pdma
	put "$a/queues" 4
	put "$a/queues_used" 2
	put "$a/vectors" 5
	put "$a/vectors_wanted" 5
	put "$a/dram_size" 16777216
	put "$a/dram_free" 12582912
	put "$a/onchip_size" 1048576
	put "$a/onchip_free" 1048576
	put "$a/capabilities/cap_queue" 0x00010000050c0c04
	put "$a/capabilities/cap_table" 0x0000000000400100
	put "$a/capabilities/cap_dram" 0x0000000001000000
	put "$a/capabilities/cap_onchip" 0x0000000000100000
	put "$a/capabilities/cap_engine" 0x000000200002001f
	put "$a/capabilities/cap_limit" 0x1000002000400100
	n=0
	for c in commands doorbells interrupts p2p_bytes bounce_bytes pinned_bytes; do
		n=$((n + 1))
		put "$a/counters/$c" $((n * 1000))
	done
	put "$a/counters/queue_resets" 0
	put "$a/counters/device_resets" 1
	n=0
	for c in cycles progress commands errors doorbells bad_doorbells bad_writes irqs \
		host_read_bytes host_write_bytes dram_read_bytes dram_write_bytes busy_copy busy_emb \
		busy_tt busy_interact busy_mlp busy emb_rows tt_rows tt_saved; do
		n=$((n + 1))
		put "$a/hw_counters/$c" $((n * 100))
	done
	a=$root/kernel/debug/csrec/csrec0
	put "$a/queues" "queue pid comm domain entries vector mode tail posted head state
1 123 fio 1 64 1 mapped 4294967295 4294967290 4294967280 live
3 456 a\\040b 2 8 3 ioctl 10 10 10 failed"
	put "$a/regions" "key pid comm domain users state kind rights bytes
0x00010000 - csrec 0 0 live dram rw 16777216
0x00010004 123 fio 1 0 live dram rw 4194304
0x00010005 123 fio 1 0 live host r- 100
0x00010006 456 a\\040b 2 0 live onchip rw 64"
	put "$a/fences" "key pid comm domain users state"
	put "$a/contexts" "pid comm domain queues state
123 fio 1 1 live
456 a\\040b 2 1 live
456 a\\040b 3 0 dead"
	put "$a/registers" "status 0x0000000000000001"
}
attr() { put "$tmp/$1/bus/pci/devices/$bdf/csrec/csrec0/$2" "$3"; }

mkdir "$tmp/dev" "$tmp/empty"
: >"$tmp/dev/csrec0"
chmod 666 "$tmp/dev/csrec0"
put "$tmp/proc/sys/kernel/osrelease" 7.3.4+fake
put "$tmp/proc/cmdline" "quiet"
put "$tmp/boot/config-7.3.4+fake" $'# a configuration\nCONFIG_PCI_P2PDMA=y'
put "$tmp/nop2p/config-7.3.4+fake" $'# a configuration\n# CONFIG_PCI_P2PDMA is not set'
put "$tmp/proc612/sys/kernel/osrelease" 6.12.9
put "$tmp/boot/config-6.12.9" $'# a configuration\nCONFIG_PCI_P2PDMA=y'
machine good bound
machine unbound
machine acs bound acs
mkdir -p "$tmp/none/bus/pci/devices"
drive0=0000:03:00.0 drive1=0000:05:00.0

for c in topo stat top reset dump doctor; do
	tap "$c --help" shows "^Usage: csrec $c" csrec $c --help
	tap "$c is in the list of commands" shows "^  $c " csrec --help
	tap "$c: surplus argument" exits 2 '"x"' csrec $c x
	tap "$c: unknown option" exits 2 "--frob" csrec $c --frob
done
for c in topo stat top reset dump; do
	tap "$c without device" with sys=none -- exits 3 "no csrec device (1234:c5ec)" csrec $c
	tap "$c without device, as JSON" with sys=none -- json '.exit == 3' csrec $c --json
done
for c in stat top reset dump doctor; do
	tap "$c of a device that is not there" exits 3 '"csrec7"' csrec $c --device csrec7
done
for c in stat top; do
	tap "$c without driver" with sys=unbound -- exits 3 "$bdf has no driver: load csrec.ko" csrec $c
done
for name in csrec0 0 $bdf 04:00.0 "$tmp/dev/csrec0"; do
	tap "stat --device $name" json ".node == \"$tmp/dev/csrec0\"" csrec stat --json --device "$name"
done

# topo
tap "topo: nodes" json '.nodes as $n | ($n | length) == 8 and
	([$n[] | select(.kind == "root_port")] | length) == 2 and
	([$n[] | select(.kind == "switch_upstream") | .address] == ["0000:01:00.0"]) and
	([$n[] | select(.kind == "switch_downstream")] | length) == 2 and
	([$n[] | select(.kind == "csrec") | .parent] == ["0000:02:01.0"]) and
	([$n[] | select(.kind == "nvme") | .parent] | sort == ["0000:00:03.0", "0000:02:00.0"]) and
	([$n[] | .parent as $p | select($p != "") | $p | IN($n[].address)] | all)' csrec topo --json
tap "topo: parents come first" json '[.nodes[].address] as $a | [.nodes[] | .parent as $p | .address as $x |
	$p == "" or (($a | index($p)) < ($a | index($x)))] | all' csrec topo --json
tap "topo: pairs" json '.pairs | length == 2 and (.[0] | .device == "0000:04:00.0" and .drive == "0000:03:00.0" and
	.p2p == "likely" and .common == "0000:01:00.0") and (.[1] | .p2p == "unknown" and .common == "" and
	(.p2p_reason | contains("root ports")))' csrec topo --json
tap "topo: ACS" with sys=acs -- json '([.nodes[] | select(.kind == "switch_downstream") | .acs] == ["redirects", "redirects"])
	and .pairs[0].p2p == "unknown" and (.pairs[0].p2p_reason | contains("ACS at 0000:02:0"))' csrec topo --json
tap "topo: a tree in text" shows '^      0000:02:01\.0  switch port$' csrec topo
tap "topo: pairs in text" shows "csrec0 with .*nvme0n1: likely: both below switch 0000:01:00.0" csrec topo
tap "topo without driver" with sys=unbound -- json '.pairs[0] | .p2p == "unknown" and .device_node == ""' csrec topo --json

# stat
tap "stat --json" json '.counters == {commands: 1000, doorbells: 2000, interrupts: 3000, p2p_bytes: 4000,
	bounce_bytes: 5000, pinned_bytes: 6000, queue_resets: 0, device_resets: 1} and
	(.hw_counters | length) == 21 and .hw_counters.cycles == 100 and .hw_counters.tt_rows == 2000 and .hw_counters.tt_saved == 2100' csrec stat --json
tap "stat: what the driver does not see" shows 'commands and doorbells without mapped queues$' csrec stat
tap "stat" shows '^  p2p_bytes +4000$' csrec stat
grow() {
	# all counters of the device are read anew: one grows between two looks
	(sleep 0.3; attr grow hw_counters/commands 777; attr grow counters/p2p_bytes 5000) &
	csrec stat --json --interval 1.5 --count 2
	wait
}
machine grow bound
tap "stat --interval: what was added" with sys=grow -- json '.complete and (.samples | length) == 2 and
	.samples[0].hw_counters.commands == 477 and .samples[0].counters.p2p_bytes == 1000 and
	.samples[0].hw_counters.cycles == 0 and .samples[1].hw_counters.commands == 0 and
	.samples[0].counters.pinned_bytes == 6000 and .samples[0].seconds > 1.4' grow
tap "stat --interval in text: head and lines" eval '[ "$(csrec stat --interval 0.1 --count 3 | wc -l)" = 4 ]'
busier() {
	(sleep 0.3; attr grow hw_counters/cycles 1100; attr grow hw_counters/busy 9900) &
	csrec stat --interval 1 --count 1
	wait
}
tap "stat: never busier than all the time" with sys=grow -- shows ' 100\.0$' busier
vanish() {
	(sleep 0.3; rm -r "$tmp/vanish/bus/pci/devices/$bdf/csrec/csrec0/counters") &
	csrec stat --interval 0.6 --count 3
}
machine vanish bound
tap "stat: the device goes" with sys=vanish -- exits 3 "is gone" vanish
machine old bound
rm -r "$tmp/old/bus/pci/devices/$bdf/csrec/csrec0/counters"
tap "stat of an old driver" with sys=old -- exits 8 "no counters in sysfs" csrec stat
tap "stat --count alone" exits 2 "--count needs --interval" csrec stat --count 3
tap "stat --json for ever" exits 2 "needs --count" csrec stat --json --interval 1
for s in 0 -1 x 0.01 1e9 1s; do
	tap "stat --interval $s" exits 2 "is not a number of seconds" csrec stat --interval $s
done

# top
tap "top --json" json '.complete and (.samples | length) == 1 and (.samples[0].devices | length) == 1 and
	(.samples[0].devices[0] | .queues == 4 and .queues_used == 2 and .dram_used_bytes == 4194304 and
	.queue_list == [
	{queue: 1, pid: 123, command: "fio", mode: "mapped", entries: 64, in_flight: 5, unreaped: 10, state: "live"},
	{queue: 3, pid: 456, command: "a\\040b", mode: "ioctl", entries: 8, in_flight: 0, unreaped: 0, state: "failed"}] and
	.processes == [
	{pid: 123, command: "fio", contexts: 1, queues: 1, regions: 2, dram_bytes: 4194304, onchip_bytes: 0, host_bytes: 100},
	{pid: 456, command: "a\\040b", contexts: 2, queues: 1, regions: 1, dram_bytes: 0, onchip_bytes: 64, host_bytes: 0}])' \
	csrec top --json
tap "top: rates from the second picture on" json '(.samples | length) == 2 and
	(.samples[0].devices[0] | has("commands_per_s") | not) and .samples[1].devices[0].commands_per_s == 0' \
	csrec top --json -n 2 --interval 0.1
tap "top without a terminal: one picture, no escapes" eval '[ "$(csrec top | grep -c "^csrec0 0000:04:00.0  live")" = 1 ] &&
	! csrec top | grep -q "$(printf "\\033")"'
tap "top -b -n 3" eval '[ "$(csrec top -b -n 3 --interval 0.1 | grep -c "^csrec top ")" = 3 ]'
tap "top -b for ever ends with its reader" eval 'timeout 20 "$BASH" -c "
	CSREC_SYSFS=$tmp/good CSREC_DEV=$tmp/dev $build/csrec top -b --interval 0.1 | head -n 20 >/dev/null"'
terminal() { # the command, as a terminal has it; q after a while
	(sleep 1.5; printf q) | timeout 30 script -qec "env CSREC_SYSFS=$tmp/good CSREC_DEV=$tmp/dev $build/csrec top --interval 0.2" /dev/null
}
tap "top on a terminal: takes the screen, q gives it back" eval 'out=$(terminal) &&
	[[ $out == *$'"'\\033[?1049h'"'*csrec0*$'"'\\033[?1049l'"'* ]]'
machine silent bound
put "$tmp/silent/kernel/debug/csrec/csrec0/queues" "queue pid comm domain entries vector mode tail posted head state
2 123 fio 1 64 1 mapped 1000 990 0 live"
tap "top: an owner that does not tell what it has read" with sys=silent -- json '.samples[0].devices[0].queue_list ==
	[{queue: 2, pid: 123, command: "fio", mode: "mapped", entries: 64, in_flight: 10, state: "live"}]' csrec top --json
machine nodebug bound
rm -r "$tmp/nodebug/kernel"
tap "top without debugfs" with sys=nodebug -- json '.samples[0].devices[0] | .queue_list == [] and
	(.no_queues | contains("debugfs")) and .queues_used == 2' csrec top --json
machine torn bound
put "$tmp/torn/kernel/debug/csrec/csrec0/queues" "queue pid tail
1 2
3 4 5 6
7 8 9"
tap "top: lines that do not fit their table" with sys=torn -- json '.samples[0].devices[0].queue_list |
	[.[].queue] == [3, 7]' csrec top --json

# reset
machine reset bound
written() { cat "$tmp/reset/bus/pci/devices/$bdf/reset"; }
mkdir -p "$tmp/procbusy/4321/fd" "$tmp/procbusy/77/fd"
ln -s "$tmp/dev/csrec0" "$tmp/procbusy/4321/fd/5"
ln -s /dev/null "$tmp/procbusy/77/fd/0"
put "$tmp/procbusy/4321/comm" fio
tap "reset refuses a device in use" with sys=reset proc=procbusy -- exits 9 "in use by 4321 (fio)" csrec reset
tap "and writes nothing then" eval '[ -z "$(written)" ]'
tap "reset --force" with sys=reset proc=procbusy -- json '.users == 1 and .method == "flr" and .state == "live"' \
	csrec reset --force --json
tap "has written 1" eval '[ "$(written)" = 1 ]'
tap "reset says what it does" with sys=reset -- shows 'csrec0: resetting by flr$' csrec reset
tap "reset says how it ended" with sys=reset -- shows 'csrec0: was live, is live$' csrec reset
attr reset state failed
tap "reset that does not help" with sys=reset -- exits 1 "is failed after the reset" csrec reset
tap "reset without driver" with sys=unbound -- shows "$bdf: done; it has no driver" csrec reset
machine noreset bound
rm "$tmp/noreset/bus/pci/devices/$bdf/reset"
tap "reset that the kernel has not" with sys=noreset -- exits 1 "no way to reset" csrec reset
tap "no single queue from outside" exits 2 "--queue" csrec reset --queue 1
if [ "$(id -u)" = 0 ]; then
	tap "reset by an ordinary user" exits 4 "only root" nobody env CSREC_SYSFS="$tmp/good" CSREC_DEV="$tmp/dev" \
		CSREC_PROC="$tmp/proc" "$build/csrec" reset
	announced() { nobody env CSREC_SYSFS="$tmp/good" CSREC_DEV="$tmp/dev" CSREC_PROC="$tmp/proc" "$build/csrec" reset 2>&1 | grep resetting; }
	tap "who does not announce what it may not do" eval '! announced'
else
	tap_skip "reset by an ordinary user" "not root"
	tap_skip "who does not announce what it may not do" "not root"
fi

# dump
machine dump bound
mkdir -p "$tmp/dump/class/devcoredump/devcd1" "$tmp/dump/class/devcoredump/devcd2"
ln -s "../../../bus/pci/devices/$bdf" "$tmp/dump/class/devcoredump/devcd1/failing_device"
ln -s "../../../bus/pci/devices/$drive0" "$tmp/dump/class/devcoredump/devcd2/failing_device"
put "$tmp/dump/class/devcoredump/devcd1/data" $'csrec-dump 1\nwhy hung'
put "$tmp/dump/class/devcoredump/devcd2/data" "of a drive"
put "$tmp/dev/kmsg" $'6,1,1500000,-;csrec 0000:04:00.0: hello\n SUBSYSTEM=pci\n6,2,1600000,-;eth0: csreek\n5,3,0,-;Kernel command line: quiet csrec_shell=0'
put "$tmp/proc/interrupts" $'  24:  1  2  PCI-MSIX-0000:04:00.0  0-edge  csrec0\n  25:  1  2  nvme0q0'
section() { csrec dump | sed -n "/^== $1/,/^\$/p"; }
for s in 'csrec dump' versions pci attributes statistics 'capabilities, decoded' registers queues \
	regions fences contexts interrupts drives devcoredump 'kernel log'; do
	tap "dump has $s" with sys=dump -- shows "^== $s\$" csrec dump
done
tap "dump: the device's core dump, not another's" with sys=dump -- eval \
	'section devcoredump | grep -qx "why hung" && ! csrec dump | grep -q "of a drive"'
tap "dump: log lines of the driver only" with sys=dump -- eval \
	'section "kernel log" | grep -qxF "[    1.500000] csrec 0000:04:00.0: hello" && [ "$(section "kernel log" | grep -c "^\[")" = 1 ]'
tap "dump: decoded capabilities" with sys=dump -- eval \
	'section "capabilities" | grep -qx "4 I/O queues of up to 4096 entries"'
tap "dump: its interrupts only" with sys=dump -- eval 'section interrupts | grep -q "edge  csrec0" && ! section interrupts | grep -q nvme'
tap "dump: BARs" with sys=dump -- eval 'section pci | grep -q "^BAR 2 0x0000000800000000 0x0000000800ffffff"'
tap "dump --json" with sys=dump -- json '.address == "0000:04:00.0" and ([.sections[].name] | index("queues")) and
	(.sections[] | select(.name == "queues") | .lines | length) == 3 and
	([.sections[].lines[] | type == "string"] | all)' csrec dump --json
tap "dump --output" with sys=dump -- eval 'csrec dump -o "$tmp/out" && [ "$(grep -c "^== " "$tmp/out")" = 15 ] && [ -z "$(csrec dump --output "$tmp/out")" ]'
tap "dump --output -" with sys=dump -- shows '^== csrec dump$' csrec dump --output -
tap "dump --output to a directory that is not there" exits 1 "No such file" csrec dump --output "$tmp/x/y"
tap "dump without driver" with sys=unbound -- shows '^address 0000:04:00.0, .*, driver none' csrec dump
if [ "$(id -u)" = 0 ]; then
	chmod 700 "$tmp/dump/kernel"
	chmod 600 "$tmp/dev/kmsg"
	tap "dump by an ordinary user says what it lacks" shows '^not to be had: needs root' nobody env \
		CSREC_SYSFS="$tmp/dump" CSREC_DEV="$tmp/dev" CSREC_PROC="$tmp/proc" "$build/csrec" dump
	tap "and has the rest" shows '^counters/commands 1000' nobody env \
		CSREC_SYSFS="$tmp/dump" CSREC_DEV="$tmp/dev" CSREC_PROC="$tmp/proc" "$build/csrec" dump
else
	tap_skip "dump by an ordinary user" "not root"
	tap_skip "and has the rest" "not root"
fi

# doctor
finds() { # NAME RESULT TEXT [doctor's exit status]: one check's result
	local name=$1 result=$2 text=$3 status=${4:-0}
	json ".exit == $status and ([.checks[] | select(.name == \"$name\")] | length == 1 and
		(.[0] | .result == \"$result\" and (.reason | contains(\"$text\")) and
		((.result | IN(\"warn\", \"fail\")) == (.remedy != \"\"))))" csrec doctor --json
}
machine two bound
rm -r "$tmp/two/bus/pci/devices/$drive1" "$tmp/two/devices/pci0000:00/0000:00:03.0/$drive1"
tap "doctor: all is well" with sys=two -- json '.exit == 0 and .failed == 0 and .warnings == 0 and
	[.checks[].name] == ["device", "driver", "versions", "node", "state", "vectors", "bar", "p2pdma",
	"nvme0n1", "memlock", "iommu"] and ([.checks[].result] | all(. == "ok"))' csrec doctor --json
tap "doctor in text" with sys=two -- shows '^ok    device       0000:04:00.0' csrec doctor
tap "doctor counts" with sys=two -- shows '^11 ok, 0 warnings, 0 failed$' csrec doctor
tap "doctor --strict, all well" with sys=two -- exits 0 "" csrec doctor --strict
tap "doctor: no device" with sys=none -- finds device fail "no csrec device" 1
tap "doctor: no PCI" with sys=missing -- finds device fail "cannot list the PCI bus" 1
tap "doctor: no driver" with sys=unbound -- finds driver fail "no driver is bound" 1
machine vfio bound
rm -r "$tmp/vfio/bus/pci/devices/$bdf/csrec" "$tmp/vfio/bus/pci/devices/$bdf/driver"
mkdir -p "$tmp/vfio/bus/pci/drivers/vfio-pci"
ln -s "$tmp/vfio/bus/pci/drivers/vfio-pci" "$tmp/vfio/bus/pci/devices/$bdf/driver"
tap "doctor: another driver" with sys=vfio -- finds driver fail "vfio-pci is bound" 1
machine major bound
attr major uapi_version 2.0
tap "doctor: driver of another major version" with sys=major -- finds versions fail "version 2.0, this program needs 1.x" 1
attr major uapi_version ''
tap "doctor: driver without a version" with sys=major -- finds versions warn "older than 1.1"
tap "doctor: no node" with dev=empty -- finds node fail "does not exist" 1
if [ "$(id -u)" = 0 ]; then
	mkdir "$tmp/devno"
	: >"$tmp/devno/csrec0"
	chmod 600 "$tmp/devno/csrec0"
	user() { nobody env CSREC_SYSFS="$tmp/two" CSREC_DEV="$tmp/$dev" CSREC_PROC="$tmp/proc" CSREC_BOOT="$tmp/boot" "$build/csrec" doctor --json; }
	limited() { (ulimit -l 64; user); }
	tap "doctor: no permission" with dev=devno -- json '.exit == 1 and (.checks[] | select(.name == "node") |
		.result == "fail" and (.remedy | contains("group csrec")))' user
	tap "doctor: memlock" with dev=dev -- json '.checks[] | select(.name == "memlock") |
		.result == "warn" and (.reason | contains("64.0 KiB"))' limited
else
	tap_skip "doctor: no permission" "not root"
	tap_skip "doctor: memlock" "not root"
fi
machine state bound
for s in failed resetting gone; do
	attr state state $s
	text="the device is $s"
	[ $s != failed ] || text="does not answer"
	tap "doctor: state $s" with sys=state -- finds state fail "$text" 1
done
attr state state live
attr state counters/queue_resets 3
tap "doctor: queues were reset" with sys=state -- finds state warn "reset 3 queues"
attr state vectors 2
tap "doctor: too few vectors" with sys=state -- finds vectors warn "2 of 5 MSI-X vectors"
tap "doctor --strict counts warnings" with sys=state -- exits 1 "" csrec doctor --strict

resource() { # ROOT START END of BAR 2
	put "$tmp/$1/bus/pci/devices/$bdf/resource" "0x0 0x0 0x0
0x0 0x0 0x0
$2 $3 0x14220c"
}
machine bar bound
rm -r "$tmp/bar/bus/pci/devices/$bdf/p2pmem"
resource bar 0x0 0x0
tap "doctor: BAR without an address" with sys=bar -- finds bar warn "was given no address: no P2P"
tap "doctor: and what comes of it" with sys=bar -- finds p2pdma warn "has not taken the BAR"
resource bar 0x800100000 0x8010fffff
tap "doctor: BAR misaligned" with sys=bar -- finds bar warn "not made of aligned 2 MiB: no P2P"
resource bar 0x800000000 0x8000fffff
tap "doctor: BAR too small for P2P" with sys=bar -- finds bar warn "1.0 MiB at 0x800000000, is not made"
resource good 0x800000000 0x8007fffff
tap "doctor: BAR shows a part of the DRAM" finds bar warn "shows 8.0 MiB of 16.0 MiB"
resource good 0x800000000 0x800ffffff

machine off bound
rm -r "$tmp/off/bus/pci/devices/$bdf/p2pmem"
tap "P2P off: kernel without PCI_P2PDMA" with sys=off boot=nop2p -- finds p2pdma warn "no PCI_P2PDMA in kernel 7.3.4+fake"
tap "P2P off: drives are not looked at then" with sys=off boot=nop2p -- finds nvme0n1 skip "no P2P with any drive"
tap "P2P off: the kernel could and does not" with sys=off -- finds p2pdma warn "does not offer"
put "$tmp/proc2/sys/kernel/osrelease" 9.9
put "$tmp/proc2/kallsyms" "0000000000000000 T pci_enable_device"
tap "P2P off: no configuration to read, but the symbols" with sys=off proc=proc2 -- finds p2pdma warn "no PCI_P2PDMA in kernel 9.9"
tap "P2P off: ACS redirects" with sys=acs -- finds nvme0n1 warn "ACS at 0000:02:0"
tap "P2P off: ACS has its remedy" with sys=acs -- json '.checks[] | select(.name == "nvme0n1") |
	.remedy | contains("disable_acs_redir")' csrec doctor --json
tap "P2P off: not below one switch" finds nvme1n1 warn "different root ports"
machine user bound unprivileged
tap "P2P unknown: ACS not readable" with sys=user -- json '.checks[] | select(.name == "nvme0n1") |
	.result == "warn" and (.remedy | contains("as root"))' csrec doctor --json
machine head bound
mv "$tmp/head/bus/pci/devices/$drive0/nvme/nvme0/nvme0n1" "$tmp/head/bus/pci/devices/$drive0/nvme/nvme0/nvme0c0n1"
tap "P2P off: multipath head before kernel 7" with sys=head proc=proc612 -- finds nvme0n1 warn "multipath head"
tap "multipath head with kernel 7" with sys=head -- finds nvme0n1 ok "by a multipath head"
machine nodrive bound
rm -r "$tmp/nodrive/bus/pci/devices/$drive0/nvme"
tap "P2P off: drive without driver" with sys=nodrive -- finds $drive0 warn "no block device"
for d in $drive0 $drive1; do rm "$tmp/nodrive/bus/pci/devices/$d"; done
tap "doctor: no drive" with sys=nodrive -- finds drives warn "no NVMe drive"
machine iommu bound
mkdir "$tmp/iommu/bus/pci/devices/$bdf/iommu_group"
put "$tmp/iommu/bus/pci/devices/$bdf/iommu_group/type" identity
tap "doctor: IOMMU passes through" with sys=iommu -- finds iommu ok "passes addresses through"
put "$tmp/iommu/bus/pci/devices/$bdf/iommu_group/type" DMA-FQ
tap "doctor: IOMMU translates" with sys=iommu -- finds iommu warn "translates (DMA-FQ)"
tap_done
