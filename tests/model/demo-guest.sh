#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The part of `make demo` that runs in the guest, as root, with csrec.ko loaded:
#
#   tests/model/demo-guest.sh INPUT LIMIT OUTDIR
#
# Writes the sample model's cold rows to the drive and scores INPUT. OUTDIR gets
# scores.tsv and demo.json, which tests/model/ref64.py completes outside. Peer-to-peer
# is insisted on where the kernel can do it.
set -euo pipefail

[ $# = 3 ] || { echo "usage: demo-guest.sh INPUT LIMIT OUTDIR" >&2; exit 2; }
input=$1 limit=$2 out=$3
top=$(cd "$(dirname "$0")/../.." && pwd)
csrec=$top/build/tools/csrec
model=(--model "$top/tools/data/sample.crm" --placement "$top/tools/data/sample.placement.json")

p2p=auto
[ "$("$csrec" info --json | jq .p2pdma)" != true ] || p2p=only
"$csrec" install-cold "${model[@]}"
"$csrec" infer "${model[@]}" --input "$input" --limit "$limit" --p2p $p2p --verify-cold \
	--details "$out/scores.tsv" --report "$out/demo.json" |
	sed "\\|^scores: $out/|d" # the guest's path; demo.sh names the host's
