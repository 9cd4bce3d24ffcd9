#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Rows a second of csrec profile and of the same count with numpy, one core each, one after
# the other on the same file: bench.sh [LINES]. Completes build/reports/plan.json.
set -euo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
lines=${1:-100000}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
report=$top/build/reports/plan.json
make -s -C "$top/tools/gen" >/dev/null
"$top/build/gen/csrec-gen" --rows "$lines" --seed 5 >"$tmp/day.tsv"

cat >"$tmp/count.py" <<'END'
import sys
import numpy as np

with open(sys.argv[1]) as f:
    cats = np.array([[int(v or "0", 16) for v in line.rstrip("\n").split("\t")[14:]] for line in f])
for t in range(26):
    rows, counts = np.unique(cats[:, t], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    np.save(f"{sys.argv[2]}/{t}.npy", np.stack([rows[order], counts[order]]))
END
# seconds COMMAND...: the least of three runs
seconds() {
	local best=999999 from to
	for _ in 1 2 3; do
		from=$(date +%s%N)
		"$@" >/dev/null
		to=$(date +%s%N)
		[ $(((to - from) / 1000)) -ge $best ] || best=$(((to - from) / 1000))
	done
	echo $best
}
ours=$(seconds taskset -c 0 "$top/build/tools/csrec-model" profile --format criteo --input "$tmp/day.tsv" -o "$tmp/s.json")
theirs=$(seconds taskset -c 0 env OPENBLAS_NUM_THREADS=1 python3 "$tmp/count.py" "$tmp/day.tsv" "$tmp")
mkdir -p "$(dirname "$report")"
[ -s "$report" ] || echo '{}' >"$report"
jq --argjson n "$lines" --argjson a "$ours" --argjson b "$theirs" \
	'.profile_rows_per_s = {csrec: ($n * 1e6 / $a | round), numpy: ($n * 1e6 / $b | round)}' "$report" >"$report.new"
mv "$report.new" "$report"
jq -r '.profile_rows_per_s | "csrec profile \(.csrec) rows/s, numpy \(.numpy) rows/s: \(.csrec / .numpy * 10 | round / 10) times"' "$report"
jq -e '.profile_rows_per_s | .csrec >= 3 * .numpy' "$report" >/dev/null
