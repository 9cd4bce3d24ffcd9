#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `make demo`, inside the lab: demo.sh p2p|nop2p INPUT LIMIT. INPUT is a path below the
# checkout. Boots a guest, scores INPUT there, checks the scores from outside against the
# float64 reference, prints what came out and fails if anything of it does not hold.
set -euo pipefail

cd "$(dirname "$0")/../.."
kernel=$1 input=$2 limit=$3
out=build/demo
report=build/reports/demo.json
sample=tools/data/sample.tsv

case $limit in '' | *[!0-9]* | 0) echo "demo: LIMIT must be a number above 0, not '$limit'" >&2; exit 2 ;; esac
# what two at once wrote would be mixed
mkdir -p "$out"
exec 9>"$out/lock"
flock 9
rm -rf "$out/run"
mkdir -p "$out/run" build/reports
rm -f "$report"

echo "demo: booting a guest ($kernel), scoring up to $limit impressions; two or three minutes"
status=0
# shellcheck disable=SC2016 # expanded in the guest
tools/lab/vm --kernel "$kernel" --out "$out/run" -- sh -euc '
	insmod "build/kernel/$(uname -r)/csrec.ko"
	tests/model/demo-guest.sh "$@" /out
	rmmod csrec' sh "$input" "$limit" || status=$?
[ $status != 130 ] || { echo "demo: interrupted" >&2; exit 130; }
if [ $status != 0 ]; then
	echo "demo: scoring failed with status $status; logs are in $out/run" >&2
	exit "$status"
fi

cp "$out/run/scores.tsv" "$out/scores.tsv"
cp "$out/run/demo.json" "$report"
echo
echo "demo: the same scores in float64, computed from the model file by numpy"
python3 tests/model/ref64.py --model tools/data/sample.crm --input "$input" \
	--scores "$out/scores.tsv" --report "$report"

fail=0
must() { # WHAT JQ-CONDITION
	if jq -e "$2" "$report" >/dev/null; then echo "  holds: $1"; else echo "  DOES NOT HOLD: $1"; fail=1; fi
}
echo
must "scores that differ from the golden model in any bit: 0" '.scores_differ_bits == 0'
must "largest difference from float64 below 1e-5" '.max_abs_err_f64 != null and .max_abs_err_f64 < 1e-5'
must "AUC and log-loss equal the golden model's" '.auc == .auc_golden and .logloss == .logloss_golden'
if [ "$kernel" = p2p ]; then
	must "no cold row bounced" '.bytes.bounce == 0'
else
	must "no cold row came peer-to-peer (this kernel has no PCI_P2PDMA)" '.bytes.p2p == 0'
fi
# What the shipped sample must show; another file, or a few lines, may have no cold row or
# only labels of one kind.
if [ "$limit" -ge 100 ] && cmp -s "$input" <(head -n "$(wc -l <"$input")" "$sample"); then
	must "rows came from all three tiers" '.rows.dram > 0 and .rows.tt > 0 and .rows.nvme > 0'
	must "cold rows came from the drive into device memory" '.bytes.p2p + .bytes.bounce > 0'
	must "AUC above 0.65" '.auc > 0.65'
fi
echo
echo "scores: $out/scores.tsv"
echo "report: $report"
exit $fail
