#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# csrec against the fake driver: cli.sh BUILD_DIR. BUILD_DIR has csrec, libfake.so and
# mksysfs. TAP.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/userspace/tap.sh
. "$here/tap.sh"
build=$1

tmp=$(mktemp -d /tmp/csrec-cli.XXXXXX) || exit 1
trap 'rm -rf "$tmp"' EXIT
chmod 755 "$tmp"
mkdir "$tmp/dev"
: >"$tmp/dev/csrec0"
"$build/mksysfs" "$tmp/bound" bound && "$build/mksysfs" "$tmp/unbound" &&
	"$build/mksysfs" "$tmp/acs" bound acs || exit 1
mkdir -p "$tmp/none/bus/pci/devices"
head -c 1048576 /dev/urandom >"$tmp/dev/nvme0n1"
unset CSREC_DEVICE CSREC_LOG

# The library to be preloaded is not built with the sanitizers, the program is.
export ASAN_OPTIONS=verify_asan_link_order=0
csrec() {
	env CSREC_SYSFS="$tmp/${sys:-bound}" CSREC_DEV="$tmp/dev" FAKE_DRIVE=1 \
		LD_PRELOAD="$build/libfake.so" "$build/csrec" "$@"
}
with() {
	# with NAME=VALUE COMMAND...
	local -x "${1?}"
	shift
	"$@"
}

tap "help" shows '^  copy ' csrec --help
tap "help names every exit status" shows '^  8  ' csrec --help
tap "version" shows '^csrec 1\.1 .driver interface 1\.1, device interface 1\.2.$' csrec --version
for c in list info copy p2p; do
	tap "$c --help" shows "^Usage: csrec $c" csrec $c --help
done

tap "no command" exits 2 "no command given" csrec
tap "unknown command" exits 2 '"frobnicate"' csrec frobnicate
tap "unknown global option" exits 2 "unknown option" csrec --frob list
tap "unknown option" exits 2 "--frob" csrec copy --frob
tap "option without its value" exits 2 "--size needs a value" csrec copy --size
tap "value for a flag" exits 2 "--verify" csrec copy --verify=1
tap "surplus argument" exits 2 '"x"' csrec list x
tap "usage error as JSON" json '.exit == 2 and (.error | contains("--size"))' \
	csrec --json copy --size nonsense

tap "the same with --json at the end" json '.exit == 2 and (.error | contains("--size"))' \
	csrec copy --size nonsense --json
tap "an unknown option before --json" json '.exit == 2 and (.error | contains("--bogus"))' csrec copy --bogus --json
tap "an unknown command before --json" json '.exit == 2 and (.error | contains("bogus"))' csrec bogus --json
tap "control characters do not reach the terminal" exits 2 'a?[2J?b??c' csrec list $'a\e[2J\x7fb\xc2\x9bc'
tap "JSON has them escaped" json '.error | contains("a\u001b[2J")' csrec list --json $'a\e[2J'

# numbers
for n in '' -1 x 4X 4KK 0x 1e6 1.5M ' 1'; do
	tap "size \"$n\" is no number" exits 2 "--size" csrec copy --size "$n"
done
for n in 0 2G 1T 16777216T 18446744073709551616 99999999999999999999999; do
	tap "size $n is out of range" exits 2 "is not within 1 to 1073741824" csrec copy --size "$n"
done
tap "offset 2^64 by suffix" exits 2 "is not within" csrec p2p --offset 16777216T
tap "seed beyond 64 bits" exits 2 "is not within" csrec copy --seed 99999999999999999999999
tap "size 4K" json '.bytes == 4096' csrec copy --json --size 4K
tap "size 0x20" json '.bytes == 32' csrec copy --json --size 0x20
tap "size 2m" json '.bytes == 2097152' csrec copy --json --size 2m --to host
tap "place" exits 2 '"moon" is not host, dram or onchip' csrec copy --to moon
tap "more commands than bytes" exits 2 "8 commands for 4 bytes" csrec copy --size 4 --count 8

# list
tap "list" shows '^0000:04:00.0 .*/csrec0  driver csrec  NUMA node 1$' csrec list
tap "list: link" shows 'link 8\.0 GT/s x4, of 16\.0 GT/s x8' csrec list
tap "list: drive of the same switch" shows 'same switch; P2P likely' csrec list
tap "list --json" json '.devices[0] | .address == "0000:04:00.0" and .id == "1234:c5ec"
	and .driver == "csrec" and .numa_node == 1 and .link == {mts: 8000, width: 4, max_mts: 16000, max_width: 8}
	and .path == "0000:00:02.0/0000:01:00.0/0000:02:01.0" and (.drives | length) == 2
	and .drives[0].model == "Fake \"A\" drive" and .drives[0].shares_switch
	and .drives[0].bytes == 1048576 and .drives[0].p2p == "likely" and .drives[1].p2p == "unknown"
	and (.drives[1].shares_switch | not)' csrec list --json
tap "devices" json '.csrec_devices == 1 and (.devices | length) == 1 and (.devices[0] |
	.name == "0000:04:00.0" and .dram_bytes > 0 and .onchip_bytes > 0 and .nvme_iops == 750000)' csrec devices
tap "devices: what is told" json '.devices[0] | .nvme_iops == 1000 and .nvme_bytes_per_s == 2147483648 and .power_w == 0' \
	csrec devices --nvme-iops 1000 --nvme-rate 2G --power 0
tap "devices: one is no choice" exits 2 "all devices" csrec devices --device csrec0
tap "devices without driver" with sys=unbound exits 3 "with a driver" csrec devices
tap "list with ACS on" with sys=acs json '.devices[0].drives[0] | .p2p == "unknown" and
	(.p2p_reason | contains("ACS"))' csrec --json list
tap "list without driver" with sys=unbound json '.devices[0] | .node == "" and .driver == ""' \
	csrec list --json
tap "list without driver, text" with sys=unbound shows ' -  driver none ' csrec list
tap "list without device" with sys=none exits 3 "no csrec device (1234:c5ec)" csrec list
tap "list without PCI" with sys=missing exits 3 "cannot list the PCI bus" csrec list

# no device, no permission, wrong version: the same for every command
for c in info copy p2p; do
	tap "$c without device" with sys=none exits 3 "no csrec device" csrec $c
	tap "$c without driver" with sys=unbound exits 3 "0000:04:00.0 has no driver: load csrec.ko" csrec $c
	tap "$c of a missing node" exits 3 "csrec9" csrec $c --device csrec9
	tap "$c, other driver version" with FAKE_UAPI_MAJOR=2 exits 8 "driver interface is version 2.0" csrec $c
	tap "$c, other device version" with FAKE_HW_MAJOR=0 exits 8 "device interface is version 0.0" csrec $c
done
tap "not a csrec device" exits 3 "is not a csrec device" \
	env CSREC_SYSFS="$tmp/bound" CSREC_DEV="$tmp/dev" "$build/csrec" info
if [ "$(id -u)" = 0 ]; then
	chmod 600 "$tmp/dev/csrec0"
	tap "no permission" exits 4 "no permission" env CSREC_SYSFS="$tmp/bound" CSREC_DEV="$tmp/dev" \
		setpriv --reuid 65534 --regid 65534 --clear-groups "$build/csrec" info
	tap "no permission, as JSON" json '.exit == 4' env CSREC_SYSFS="$tmp/bound" CSREC_DEV="$tmp/dev" \
		setpriv --reuid 65534 --regid 65534 --clear-groups "$build/csrec" info --json
else
	tap_skip "no permission" "not root"
fi
tap "device from the environment" with CSREC_DEVICE=csrec9 exits 3 "csrec9" csrec info
tap "device option goes first" with CSREC_DEVICE=csrec9 exits 0 "" csrec info --device 0
tap "device option before the command" exits 0 "" csrec --device 0000:04:00.0 info

# info
tap "info" shows 'queues +4 of up to 256 entries, 4 of 4 interrupt' csrec info
tap "info --json" json '.address == "0000:04:00.0"
	and .versions == {library: "1.1", driver: "1.0", device: "1.0"}
	and .memory == {dram: 16777216, dram_free: 16777216, onchip: 1048576, onchip_free: 1048576}
	and .limits.dim == 128 and .limits.vectors_interact == 32 and .limits.tt_rank == 16
	and .limits.mlp_width == 1024 and .limits.regions == 64 and .limits.fences == 8
	and .limits.doorbell_stride == 4096 and .fp_unit == "golden" and .macs == 72
	and .engines == ["copy", "emb", "tt", "interact", "mlp"] and .p2pdma
	and (.device_counters | length) == 21 and (.features | index("p2pdma") == 0)
	and (.quota | keys) == ["dram", "dram_owned", "queues", "queues_owned"]
	and .driver_counters.queue_resets == 0' csrec info --json
tap "names that are no UTF-8 make no bad JSON" json '.error | contains("\ufffd\ufffdx\u00e9")' \
	csrec info --json --device $'\xff\xc3x\xc3\xa9'
not_utf8() { csrec info --json --device $'\xed\xa0\x80\xf5\xc0\xaf' 2>/dev/null | iconv -f UTF-8 -t UTF-8 >/dev/null; }
tap "JSON is UTF-8" not_utf8
tap "info without P2PDMA" with FAKE_P2P=0 json '.p2pdma | not' csrec info --json

# copy
for from in host dram onchip; do
	for to in host dram onchip; do
		tap "copy $from to $to" json ".from == \"$from\" and .to == \"$to\" and .verified
			and .bytes == 100001 and .commands == 7 and .doorbells == 1 and .interrupts == 1
			and .cycles == 700" csrec copy --json --size 100001 --count 7 --from $from --to $to
		tap "copy $from to $to finds damage" with FAKE_CORRUPT=1 exits 1 "bytes differ" \
			csrec copy --size 1000 --from $from --to $to --seed 5
	done
done
tap "copy says where and which seed" with FAKE_CORRUPT=1 exits 1 \
	"1 of 1000 bytes differ, the first at offset 999 (seed 5)" \
	csrec copy --size 1000 --from host --to host --seed 5
tap "copy --no-verify" with FAKE_CORRUPT=1 json '.verified | not' csrec copy --json --no-verify
tap "copy in text" shows '^host to dram: 1048576 bytes, verified$' csrec copy
tap "copy says what it took" shows '^commands 1, doorbells 1, interrupts 1, device cycles 100$' csrec copy
tap "copy beyond on-chip memory" exits 1 "1048576 bytes are free" csrec copy --to onchip --size 2M
in_pieces() { csrec copy --to onchip --size 2M 2>&1 | grep -q piece; }
tap "and it is not for want of one piece" eval '! in_pieces'

# p2p
drive=$tmp/dev/nvme0n1
tap "p2p" json '.bytes == 1048576 and .p2p_bytes == 1048576 and .bounce_bytes == 0 and .verified' \
	csrec p2p --json
tap "p2p picks the drive of the same switch" json ".drive == \"$drive\"" csrec p2p --json
tap "p2p --bounce" json '.p2p_bytes == 0 and .bounce_bytes == 4096' \
	csrec p2p --json --bounce --drive "$drive" --offset 512 --size 4K --segment 512
tap "p2p --only" json '.p2p_bytes == 1536' csrec p2p --json --only --size 1536 --offset 3K
tap "p2p --only where it is impossible" with FAKE_P2P=0 exits 6 "no peer-to-peer path" csrec p2p --only
tap "p2p bounces where it must" with FAKE_P2P=0 json '.bounce_bytes == 1048576' csrec p2p --json
tap "p2p finds damage" with FAKE_CORRUPT=1 exits 1 "differs from the drive, first at byte 0" csrec p2p
tap "p2p of a driver that miscounts" with FAKE_LIE=1 exits 1 \
	"asked for 1048576 bytes, got 524288 P2P and 0 bounced" csrec p2p
tap "p2p of a missing drive" exits 5 "No such file" csrec p2p --drive "$tmp/dev/nvme9n1"
tap "p2p of a file" with FAKE_DRIVE=0 exits 5 "is not a block device" \
	env CSREC_SYSFS="$tmp/bound" CSREC_DEV="$tmp/dev" FAKE_DRIVE=0 LD_PRELOAD="$build/libfake.so" \
	"$build/csrec" p2p --drive "$drive"
tap "p2p past the end" exits 2 "end past the 1048576 bytes" csrec p2p --offset 1M --size 512
tap "p2p of part of a block" exits 2 "multiples of 512" csrec p2p --size 1000
tap "p2p --only --bounce" exits 2 "exclude each other" csrec p2p --only --bounce

tap "the example runs" shows '^4096 bytes to .*csrec0 and back: the same$' env CSREC_SYSFS="$tmp/bound" \
	CSREC_DEV="$tmp/dev" LD_PRELOAD="$build/libfake.so" "$build/example"
tap "the example says what is wrong" exits 1 "csrec9" env CSREC_DEVICE=csrec9 CSREC_SYSFS="$tmp/bound" \
	CSREC_DEV="$tmp/dev" "$build/example"

full() { csrec list >/dev/full; }
tap "full output device" exits 1 "writing the result" full
tap_done
