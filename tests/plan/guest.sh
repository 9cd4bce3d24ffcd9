#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Scores by the plan that `make -C tests/plan guest` left, with the real driver, device and
# drive, in the guest: finds no driver loaded, leaves none. TAP.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/userspace/tap.sh
. "$top/tests/userspace/tap.sh"
from=$top/build/tests-plan/pipeline
drive=/dev/nvme0n1

csrec() { "$top/build/tools/csrec" "$@"; }
if ! insmod "$top/build/kernel/$(uname -r)/csrec.ko"; then
	echo "not ok - csrec.ko loads"
	exit 1
fi
for _ in $(seq 50); do
	[ -c /dev/csrec0 ] && break
	sleep 0.1
done
plan=(--model "$from/model.crm" --plan "$from/plan.json" --drive "$drive")
tap "cold rows go to the drive" json '.written and .tables > 0' csrec install-cold "${plan[@]}" --force --json
tap "rows of all three tiers, and not one bit unlike the golden model's" json '.impressions == 100
	and .scores_differ_bits == 0 and .rows.dram > 0 and .rows.tt > .impressions and .rows.nvme > 0
	and .rows.dram + .rows.tt + .rows.nvme == 26 * .impressions and .bytes.p2p + .bytes.bounce > 0' \
	csrec infer "${plan[@]}" --input "$top/tools/data/sample.tsv" --limit 100 --json --output /tmp/scores
head -n 100 "$from/scores" >/tmp/want
tap "they are those that the host printed" cmp /tmp/scores /tmp/want
csrec devices >/tmp/devices.json
tap "a plan for this very device" json '.devices[0].name == "'"$(csrec info --json | jq -r .address)"'"' \
	csrec plan --model "$from/model.crm" --stats "$from/stats.json" --devices /tmp/devices.json -o /tmp/plan.json --json
tap "has the drive's size" sh -c "test \"\$(jq .devices[0].nvme_bytes /tmp/devices.json)\" = \"\$(blockdev --getsize64 $drive)\""
tap "the driver unloads" rmmod csrec
tap_done
