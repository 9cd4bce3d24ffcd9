#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What `make -C tests/plan check` runs, with csrec-model under sanitizers: the oracle, and
# what the command says to wrong input. TAP.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
O=${O:-$top/build/tests-plan}
csrec=$O/tools/csrec
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export ASAN_OPTIONS=detect_leaks=0	# HiGHS keeps a thread pool
failed=0 n=0

ok() { n=$((n + 1)); echo "ok $n - $1"; }
not_ok() { n=$((n + 1)); failed=1; echo "not ok $n - $1"; }
# exits NAME STATUS TEXT COMMAND...: it exits with that status, says that, and leaves no plan
exits() {
	local name=$1 want=$2 text=$3 got; shift 3
	rm -f "$tmp/plan.json"
	"$@" >"$tmp/out" 2>&1
	got=$?
	if [ $got = "$want" ] && grep -qF -- "$text" "$tmp/out" && { [ "$want" = 0 ] || [ ! -e "$tmp/plan.json" ]; }; then ok "$name"
	else not_ok "$name"; echo "# exit $got, wanted $want with '$text'"; sed 's/^/# /' "$tmp/out"; fi
}

mkdir "$tmp/o"
python3 "$top/tests/plan/oracle.py" "$top" "$csrec" "$tmp/o" 24
status=$?
[ $status = 0 ] || failed=1

# The oracle's second instance has two devices and fits; stats and devices change here.
i=$tmp/o/i1
: >"$tmp/empty.order"
plan() { "$csrec" plan --model "$i.crm" --stats "${S:-$i.stats}" --devices "${D:-$i.dev}" --batch 64 -o "$tmp/plan.json" "$@"; }
with_stats() { jq "$1" "$i.stats" >"$tmp/stats"; shift; S=$tmp/stats plan "$@"; }
with_dev() { jq "$1" "$i.dev" >"$tmp/dev"; shift; D=$tmp/dev plan "$@"; }

exits "a plan, and what it is worth" 0 "bound" plan
for s in greedy-size greedy-lookups greedy-size-lookups recshard all-nvme hot-dram; do
	exits "solver $s makes a plan" 0 "us a batch" with_dev '.devices[].dram_bytes=1e9' --solver $s
done
exits "explains a table" 0 "chosen:" plan --explain t0
exits "a table that is not there" 2 "no table nosuch" plan --explain nosuch
exits "an unknown solver" 2 "magic" plan --solver magic
exits "a time limit that is none" 2 "--time-limit" plan --time-limit soon
exits "report" 0 "us a batch" plan --report "$tmp/r.html"
if grep -q '<svg' "$tmp/r.html" && ! grep -qE 'https?:|<script|<link' "$tmp/r.html" &&
	python3 -c 'import sys, html.parser; html.parser.HTMLParser().feed(open(sys.argv[1]).read())' "$tmp/r.html"; then
	ok "the report has drawings and names nothing outside"
else
	not_ok "the report has drawings and names nothing outside"
fi
exits "no DRAM: which, by how much, what would do" 1 "device DRAM of d0" with_dev '.devices[].dram_bytes=4096'
grep -q 'short by [0-9]* bytes.*times as large on each device is enough' "$tmp/out" &&
	ok "the shortage and its remedy are told" || not_ok "the shortage and its remedy are told"
factor=$(sed -n 's/.*device DRAM \([0-9.]*\) times.*/\1/p' "$tmp/out")
exits "the remedy works" 0 "us a batch" with_dev ".devices[].dram_bytes=(4096 * ${factor:-0} | ceil)"
exits "no room on the drive" 1 "short" with_dev '.devices[] |= (.nvme_bytes=0 | .dram_bytes=200000)'

exits "statistics of another version" 7 "csrec_stats" with_stats '.csrec_stats=2'
exits "a table without statistics" 7 "of the model is missing" with_stats 'del(.tables[0])'
exits "a table twice" 7 "occurs twice" with_stats '.tables += [.tables[0]]'
exits "an unknown table" 7 "none of the model" with_stats '.tables[0].name="x"'
exits "a curve that falls" 7 "ascending" with_stats '.tables[0].curve=[[0,0],[5,10],[7,9]]'
exits "a curve that is not concave" 7 "concave" with_stats '.tables[0].curve=[[0,0],[5,10],[7,90]]'
exits "a curve of more rows than there are" 7 "rows" with_stats '.tables[0].curve=[[0,0],[99999999,10]]'
exits "a curve of something else" 7 "curve" with_stats '.tables[0].curve=[{}, null, "x"]'
exits "a huge pooling factor" 7 "mean" with_stats '.tables[0].pooling.mean=1e300'
exits "a pooling factor that is a string" 7 "mean" with_stats '.tables[0].pooling.mean="1"'
exits "no order file" 7 "nothing: No such file" with_stats '.order_file="nothing"'
exits "an order file elsewhere" 7 "order_file" with_stats '.order_file="o/empty.order"'
exits "an order past the file" 7 "leave the order file" with_stats '.tables[0].order.count=3'
exits "tables that are no list" 7 "tables" with_stats '.tables={}'
exits "devices of another version" 7 "csrec_devices" with_dev '.csrec_devices=0'
exits "no device" 7 "1..64" with_dev '.devices=[]'
exits "a clock of zero" 7 "clock_hz" with_dev '.devices[0].clock_hz=0'
exits "an unknown key" 7 "dram_byts" with_dev '.devices[0].dram_byts=1'
exits "an unknown configuration" 7 "config" with_dev '.devices[0].config="fast"'
exits "a name too long" 7 "name" with_dev '.devices[0].name=("x" * 100)'
exits "two devices of a name" 7 "called" with_dev '.devices[0].name="z" | .devices[1].name="z"'
exits "all devices memory-centric" 1 "no plan" with_dev '.devices[].config="memory-centric"'
printf '{"csrec_devices": 1, "devices": [' >"$tmp/cut"
D=$tmp/cut exits "a file that ends early" 7 "$tmp/cut" plan
head -c 4000 /dev/urandom >"$tmp/noise"
D=$tmp/noise exits "noise" 7 "$tmp/noise" plan
head -c 200000 /dev/zero | tr '\0' '[' >"$tmp/deep"
S=$tmp/deep exits "brackets without end" 7 "$tmp/deep" plan

# cut at each of many places: refused each time, and no sanitizer has anything to say
bad=0
for at in $(seq 1 197 "$(stat -c %s "$i.stats")"); do
	head -c "$at" "$i.stats" >"$tmp/cut"
	S=$tmp/cut plan >"$tmp/out" 2>&1
	[ $? = 7 ] || bad=1
done
[ $bad = 0 ] && ok "statistics cut anywhere are refused" || not_ok "statistics cut anywhere are refused"

# with rows in TT form, from parameters to scores
CSREC=$csrec "$top/tests/plan/pipeline.sh" check "$tmp/pipeline" || failed=1
echo "1..$n"
exit $failed
