#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# csrec infer and install-cold with the real driver, device and drive, in the guest: finds
# no driver loaded, leaves none. CSREC_GUEST_KERNEL is p2p or nop2p. TAP.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/userspace/tap.sh
. "$top/tests/userspace/tap.sh"
data=$top/tools/data
drive=/dev/nvme0n1
kernel=${CSREC_GUEST_KERNEL:-p2p}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
unset CSREC_DEVICE CSREC_LOG CSREC_SYSFS CSREC_DEV

csrec() { "$top/build/tools/csrec" "$@"; }
model=(--model "$data/sample.crm" --placement "$data/sample.placement.json")
infer() { csrec infer "${model[@]}" --input "$data/sample.tsv" "$@"; }
nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }

tap "infer without driver" exits 3 "no driver" infer
if ! insmod "$top/build/kernel/$(uname -r)/csrec.ko"; then
	echo "not ok - csrec.ko loads"
	exit 1
fi
for _ in $(seq 50); do
	[ -c /dev/csrec0 ] && break
	sleep 0.1
done

modprobe -q ext4
mkdir "$tmp/mnt"
mkfs.ext4 -q -F $drive && mount -t ext4 $drive "$tmp/mnt"
tap "not onto a mounted drive" exits 9 "is mounted or in other use" csrec install-cold "${model[@]}"
tap "nor by force" exits 9 "is mounted or in other use" csrec install-cold "${model[@]}" --force
umount "$tmp/mnt"
tap "nor onto a file system" exits 9 "has an ext2, ext3 or ext4 file system" csrec install-cold "${model[@]}"

# other tests may have left anything on the drive
blkdiscard -z -o 0 -l 8M $drive 2>/dev/null || dd if=/dev/zero of=$drive bs=1M count=8 conv=fsync status=none
tap "infer before install-cold" exits 7 "csrec install-cold writes it" infer
tap "install-cold" json '.tables >= 8 and .written and .bytes > 1000000' csrec install-cold "${model[@]}" --json
tap "the drive has it" json '.written | not' csrec install-cold "${model[@]}" --verify --json
tap "a drive without an extent" exits 5 "/dev/nvme9n1" infer --drive /dev/nvme9n1
chmod 666 /dev/csrec0
tap "a drive one may not read" exits 4 "$drive: Permission denied" nobody "$top/build/tools/csrec" infer \
	"${model[@]}" --input "$data/sample.tsv"
chmod 600 /dev/csrec0

# What every scored run must show
sound='.scores_differ_bits == 0 and .auc == .auc_golden and .logloss == .logloss_golden and .malformed_lines == 0
	and .commands > 0 and .doorbells >= .batches and .interrupts > 0 and .rows.tt == 3 * .impressions
	and .rows.dram + .rows.tt + .rows.nvme == 26 * .impressions and .rows.nvme > 0
	and ([.cycles.emb, .cycles.tt, .cycles.interact, .cycles.mlp] | all(. > 0)) and .cycles.total > 0'
# a doorbell a batch, and one more where the driver raises the fence after the drive
way='.bytes.p2p > 0 and .bytes.bounce == 0 and .doorbells <= 2 * .batches and 5 * .interrupts < .commands'
[ $kernel = p2p ] || way='.bytes.p2p == 0 and .bytes.bounce > 0'

tap "200 impressions have the golden bits" json ".impressions == 200 and $sound and $way" \
	infer --limit 200 --json --output "$tmp/a"
tap "bounced, other batches, the same" json ".impressions == 200 and $sound and .bytes.p2p == 0 and .bytes.bounce > 0" \
	infer --limit 200 --batch 33 --p2p bounce --verify-cold --json --output "$tmp/b"
tap "scores do not depend on batches or the way of cold rows" cmp "$tmp/a" "$tmp/b"
if [ $kernel = p2p ]; then
	tap "P2P only" json "$sound and $way" infer --limit 20 --p2p only --json
else
	tap "P2P only where the kernel has none" exits 6 "peer-to-peer" infer --limit 20 --p2p only
fi
csrec install-cold "${model[@]}" --drive "$tmp/cold" >/dev/null
tap "cold rows in a file" json "$sound and .bytes.p2p == 0 and .bytes.bounce > 0" \
	infer --limit 20 --drive "$tmp/cold" --json
tap "P2P only from a file" exits 6 "needs a block device" infer --limit 20 --drive "$tmp/cold" --p2p only
sed 's/"slots": [0-9]*/"slots": 2/' "$data/sample.placement.json" >"$tmp/tight.json"
tap "two slots a table: batches are cut, bits stay" json "$sound and .batches_split > 0" \
	csrec infer --model "$data/sample.crm" --placement "$tmp/tight.json" --input "$data/sample.tsv" --limit 40 --json
plan=(--model "$data/sample.crm" --plan "$top/build/tests-model/plan/plan.json")
csrec install-cold "${plan[@]}" --force >/dev/null
tap "a plan: some rows of a table hot, some in TT form, some cold" json ".impressions == 100 and .scores_differ_bits == 0
	and .rows.tt > 3 * .impressions and .rows.nvme > 0 and .rows.dram + .rows.tt + .rows.nvme == 26 * .impressions" \
	csrec infer "${plan[@]}" --input "$data/sample.tsv" --limit 100 --json
csrec install-cold "${model[@]}" --force >/dev/null
tap "nothing stays pinned, all memory was given back" json '.driver_counters.pinned_bytes == 0
	and .memory.onchip_free == .memory.onchip' csrec info --json
mkfifo "$tmp/endless"
"$top/build/tools/csrec" infer "${model[@]}" --input "$tmp/endless" >/dev/null 2>&1 &
victim=$!
# the fifo never ends, so the victim is at work or waits for more with all it owns
exec 9<>"$tmp/endless"
head -n 200 "$data/sample.tsv" >&9	# less than a pipe holds
for _ in $(seq 100); do
	[ "$(csrec info --json | jq .driver_counters.pinned_bytes)" = 0 ] || break
	sleep 0.1
done
tap "a run is under way" json '.driver_counters.pinned_bytes > 0' csrec info --json
kill -KILL $victim
exec 9>&-
wait $victim 2>/dev/null
tap "killed while scoring, it leaves nothing pinned" json '.driver_counters.pinned_bytes == 0
	and .memory.onchip_free == .memory.onchip' csrec info --json
tap "and the next run scores" json "$sound" infer --limit 10 --json
tap "the driver unloads" rmmod csrec
tap_done
