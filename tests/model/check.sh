#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What `make -C tests/model check` runs: the test programs and the tools as a user calls
# them. Each part is a TAP stream of its own.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
O=${O:-$top/build/tests-model}
data=$top/tools/data
csrec=${CSREC:-$top/build/tools/csrec}
gen=$top/build/gen/csrec-gen
ref=$top/tests/model/ref64.py
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
n=0

ok() { n=$((n + 1)); echo "ok $n - $1"; }
not_ok() { n=$((n + 1)); failed=1; echo "not ok $n - $1"; }
# check NAME COMMAND...: it succeeds
check() { local name=$1; shift; if "$@" >"$tmp/out" 2>&1; then ok "$name"; else not_ok "$name"; sed 's/^/# /' "$tmp/out"; fi; }
# exits NAME STATUS TEXT COMMAND...: it exits with that status and says that
exits() {
	local name=$1 want=$2 text=$3; shift 3
	"$@" >"$tmp/out" 2>&1
	local got=$?
	if [ $got = "$want" ] && grep -qF -- "$text" "$tmp/out"; then ok "$name"
	else not_ok "$name"; echo "# exit $got, wanted $want with '$text'"; sed 's/^/# /' "$tmp/out"; fi
}
# stream COMMAND...: a TAP stream of its own; a death without "not ok" counts too
stream() {
	"$@" >"$tmp/out" 2>&1
	local status=$?
	cat "$tmp/out"
	[ $status = 0 ] || failed=1
	if [ $status != 0 ] && ! grep -q '^not ok' "$tmp/out"; then
		echo "not ok - $(basename "$1") exited with status $status"
	fi
}

mkdir -p "$tmp/graphs"
stream "$O/test_container" "$data"
stream "$O/test_writer" "$tmp"
stream "$O/test_parts" "$tmp"
check "models of other families are written" python3 "$top/tests/model/make_graphs.py" "$top" "$tmp/graphs"
stream "$O/test_run" "$tmp" "$data/sample.crm" "$tmp"/graphs/*.crm
stream "$O/fuzz" "$data/sample.crm" "$data/sample.placement.json" "$data/sample.tsv"

# generator
check "the sample is what its command makes" sh -c "'$gen' --rows 2000 --seed 2 | cmp - '$data/sample.tsv'"
check "rows depend on seed and number alone" sh -c "'$gen' --rows 100 --seed 2 --first 1900 >'$tmp/tail' &&
	tail -n 100 '$data/sample.tsv' | cmp - '$tmp/tail'"
check "another seed gives other rows" sh -c "! '$gen' --rows 2000 --seed 3 | cmp -s - '$data/sample.tsv'"
check "another model keeps the fields and changes labels" bash -c "'$gen' --rows 500 --seed 2 --model-seed 9 >'$tmp/m9' &&
	cut -f2- '$tmp/m9' | cmp - <(head -n 500 '$data/sample.tsv' | cut -f2-) && ! head -n 500 '$data/sample.tsv' | cmp -s - '$tmp/m9'"
check "every row has 40 fields" awk -F '\t' 'NF != 40 { exit 1 }' "$data/sample.tsv"
exits "bad option value is named" 2 "--zipf: 'x'" "$gen" --zipf x
exits "unknown option of the generator" 2 "--nonsense" "$gen" --nonsense
exits "generator option without its value" 2 "--rows" "$gen" --rows
check "tracked files are small" sh -c "test \$(find '$data' -size +4095k | wc -l) = 0"

# scoring without a device
infer() { "$csrec" infer --model "$data/sample.crm" --backend golden "$@"; }
check "golden scores the sample" infer --placement "$data/sample.placement.json" --input "$data/sample.tsv" \
	--output "$tmp/only" --details "$tmp/scores" --report "$tmp/report.json"
check "--output has the scores alone, one a line" sh -c "tail -n +2 '$tmp/scores' | cut -f3 | cmp - '$tmp/only'"
stream python3 "$ref" --model "$data/sample.crm" --input "$data/sample.tsv" --scores "$tmp/scores" \
	--report "$tmp/report.json" --min-auc 0.65
check "report has all keys" jq -e '[.impressions, .auc, .auc_golden, .logloss, .logloss_golden,
	.scores_differ_bits, .max_abs_err_f64, .rows.dram, .rows.tt, .rows.nvme, .bytes.host_in,
	.bytes.host_out, .bytes.p2p, .bytes.bounce, .commands, .doorbells, .interrupts, .cycles.emb,
	.cycles.tt, .cycles.interact, .cycles.mlp, .cycles.total, .kernel, .fp_unit] | all(. != null)' "$tmp/report.json"
# the reference can fail: scores of other impressions are not these
awk 'NR == 1 || NR > 2 { print; next } { print $1 "\t" $2 "\t" $3 + 0.001 }' OFS='\t' "$tmp/scores" >"$tmp/off"
exits "the reference sees a score that is off" 1 "not ok 2" python3 "$ref" --model "$data/sample.crm" \
	--input "$data/sample.tsv" --scores "$tmp/off"
for g in "$tmp"/graphs/*.crm; do
	name=$(basename "$g" .crm)
	check "golden scores $name" "$csrec" infer --model "$g" --backend golden --input "$data/sample.tsv" \
		--limit 300 --details "$tmp/$name.scores"
	stream python3 "$ref" --model "$g" --input "$data/sample.tsv" --scores "$tmp/$name.scores"
done
check "standard input, another batch size, the same scores" sh -c "'$csrec' infer --model '$data/sample.crm' --backend golden \
	--input - --batch 7 --details '$tmp/scores7' <'$data/sample.tsv' && cmp '$tmp/scores' '$tmp/scores7'"

# a plan with TT rows of its own
p=$tmp/plan.json
check "a plan with an overlay is written" python3 "$top/tests/model/make_plan.py" "$top" "$data/sample.placement.json" "$p"
check "golden scores with the plan" infer --plan "$p" --input "$data/sample.tsv" --details "$tmp/planned"
stream python3 "$ref" --model "$data/sample.crm" --plan "$p" --input "$data/sample.tsv" --scores "$tmp/planned"
exits "without the plan the reference sees other scores" 1 "not ok 2" python3 "$ref" --model "$data/sample.crm" \
	--input "$data/sample.tsv" --scores "$tmp/planned"
# broken NAME TEXT JQ: what makes the plan wrong, and what is said of it
broken() { jq "$3" "$p" >"$tmp/plan2.json"; exits "$1" 7 "$2" infer --plan "$tmp/plan2.json" --input "$data/sample.tsv"; }
broken "another shape than the overlay's" "table C7, tt: count, shape or ranks" '.tables.C7.tt.ranks[0] = 4'
broken "another count than the overlay's" "table C7, tt: count, shape or ranks" '.tables.C7.tt.count -= 1'
broken "TT rows that no overlay has" "table C4, tt: no overlay" '.tables.C4.tt = .tables.C7.tt'
broken "TT rows past the order" "are ordered" '.tables.C7.hot.count = 4000'
broken "TT rows after hot rows by id" "by 'count'" '.tables.C7.hot = {"ids": [1]}'
broken "another overlay" "is not the overlay of this placement" '.overlay.crc32c += 1'
broken "an overlay elsewhere" "not the name of a file" '.overlay.file = "../" + .overlay.file'
broken "no overlay there" "nothing.overlay: No such file" '.overlay.file = "nothing.overlay"'
broken "slots, but nothing cold" "no row is cold" '(.tables[] | select(.tt and .slots == null)) |= (.slots = 3)'
broken "another device" "'device' is not" '.tables.C7.device = 1'
cp "$data/sample.crm" "$tmp/model.overlay"
broken "a model as overlay" "does not fit the model" '.overlay.file = "model.overlay"'

# bad input
{ head -n 5 "$data/sample.tsv"; echo; head -n 2 "$data/sample.tsv" | tail -n 1 | cut -c 1-40; sed -n 8,9p "$data/sample.tsv"; } >"$tmp/bad.tsv"
exits "malformed lines are numbered, the rest scored" 0 "bad.tsv: line 6:" infer --input "$tmp/bad.tsv" --details "$tmp/bad.scores"
check "seven of nine lines are scored, with their numbers" sh -c "cut -f1 '$tmp/bad.scores' | tr '\n' ' ' | grep -qx 'line 1 2 3 4 5 8 9 '"
exits "and counted" 0 '"malformed_lines": 2' infer --input "$tmp/bad.tsv" --json
exits "--strict stops" 7 "line 6" infer --input "$tmp/bad.tsv" --strict
exits "a file of no lines" 7 "no well-formed line" infer --input /dev/null
exits "missing input" 7 "/nonexistent" infer --input /nonexistent
head -n 100 "$tmp/only" >"$tmp/scores100"
mkfifo "$tmp/fifo"
exits "a FIFO as a model" 7 "not a regular file" timeout 60 "$csrec" infer --model "$tmp/fifo" --backend golden --input "$data/sample.tsv"
grep -m 50 '^0' "$data/sample.tsv" >"$tmp/noclick.tsv"
exits "no clicks: no AUC" 0 "AUC undefined, " infer --input "$tmp/noclick.tsv"
check "which is null in JSON" sh -c "'$csrec' infer --model '$data/sample.crm' --backend golden --input '$tmp/noclick.tsv' --json |
	jq -e '.auc == null and .auc_golden == null and .logloss > 0'"
check "--output - is standard output" sh -c "'$csrec' infer --model '$data/sample.crm' --backend golden --input '$data/sample.tsv' \
	--limit 100 --output - 2>/dev/null | cmp - '$tmp/scores100'"
exits "where --json has no room" 2 "--output -" infer --input "$data/sample.tsv" --output - --json
exits "an option's error as JSON" 2 '"exit": 2' infer --bogus --json
jq '.tables.C7.tier = "x\u001b[2J\u0007"' "$data/sample.placement.json" >"$tmp/escape.json"
exits "a placement's control characters are not printed" 7 "'x?[2J?'" infer --placement "$tmp/escape.json" --input "$data/sample.tsv"
exits "a model that is none" 7 "wrong magic" "$csrec" infer --model "$data/sample.tsv" --backend golden --input "$data/sample.tsv"
head -c 1000000 "$data/sample.crm" >"$tmp/cut.crm"
exits "a truncated model" 7 "its header says" "$csrec" infer --model "$tmp/cut.crm" --backend golden --input "$data/sample.tsv"
sed 's/"C4"/"C99"/' "$data/sample.placement.json" >"$tmp/p.json"
exits "a placement of another model" 7 "C99" infer --placement "$tmp/p.json" --input "$data/sample.tsv"
exits "no placement for a device" 2 "--plan" "$csrec" infer --model "$data/sample.crm" --input "$data/sample.tsv"
cp "$data/sample.tsv" "$tmp/in.tsv"
ln "$tmp/in.tsv" "$tmp/same.tsv"
exits "scores over the input" 2 "is the input" infer --input "$tmp/in.tsv" --output "$tmp/same.tsv"
exits "a report over the input" 2 "is the input" infer --input - --report "$tmp/in.tsv" <"$tmp/in.tsv"
cp "$data/sample.crm" "$tmp/m.crm"
exits "scores over the model" 2 "is the model" "$csrec" infer --model "$tmp/m.crm" --backend golden \
	--input "$data/sample.tsv" --output "$tmp/m.crm"
check "none of them was touched" sh -c "cmp '$tmp/in.tsv' '$data/sample.tsv' && cmp '$tmp/m.crm' '$data/sample.crm'"
exits "details over the scores" 2 "is the output" infer --input "$data/sample.tsv" --output "$tmp/one" --details "$tmp/one"
exits "a report over the scores" 2 "is the output" infer --input "$data/sample.tsv" --output "$tmp/one" --report "$tmp/one"
check "both may go to a device" infer --input "$data/sample.tsv" --output /dev/null --report /dev/null
mkdir -p "$tmp/sys/bus/pci/devices" "$tmp/dev"
exits "no device" 3 "no csrec device" env CSREC_SYSFS="$tmp/sys" CSREC_DEV="$tmp/dev" "$csrec" infer --model "$data/sample.crm" \
	--placement "$data/sample.placement.json" --input "$data/sample.tsv"

# cold extent
cold() { "$csrec" install-cold --model "$data/sample.crm" --placement "$data/sample.placement.json" "$@"; }
cp "$data/sample.crm" "$tmp/own.crm"
exits "install-cold onto its own model" 2 "would be overwritten" "$csrec" install-cold --model "$tmp/own.crm" \
	--placement "$data/sample.placement.json" --drive "$tmp/own.crm" --force
check "which is as it was" cmp "$tmp/own.crm" "$data/sample.crm"
jq 'del(.cold) | .tables |= map_values(if .tier == "split" then { tier: "dram" } else . end)' "$data/sample.placement.json" >"$tmp/warm.json"
check "no cold rows: nothing to install, and no failure" sh -c "'$csrec' install-cold --model '$data/sample.crm' \
	--placement '$tmp/warm.json' --drive '$tmp/none.img' | grep -q 'nothing to install' && [ ! -e '$tmp/none.img' ]"
check "install-cold writes and reads back" cold --drive "$tmp/drive.img"
check "and verifies" cold --drive "$tmp/drive.img" --verify
check "again is fine" cold --drive "$tmp/drive.img"
printf x | dd of="$tmp/drive.img" bs=1 seek=$((1048576 + 300000)) conv=notrunc status=none
exits "a flipped byte is found" 7 "data block" cold --drive "$tmp/drive.img" --verify
seq 1000000 >"$tmp/data"
exits "foreign data is not overwritten" 9 "--force" cold --drive "$tmp/data"
seq 1000000 >"$tmp/data0"
check "nor do messages go into it, with standard error closed" sh -c "'$csrec' install-cold --model '$data/sample.crm' \
	--placement '$data/sample.placement.json' --drive '$tmp/data' 2>&-; cmp '$tmp/data' '$tmp/data0'"
check "but with --force" cold --drive "$tmp/data" --force
# what others have on a drive, outside the extent
marked() { # WHAT COMMAND...: makes $tmp/disk theirs
	local what=$1; shift
	rm -f "$tmp/disk"; truncate -s 16M "$tmp/disk"
	"$@" >/dev/null 2>&1
	cp "$tmp/disk" "$tmp/disk0"
	exits "a drive with $what is not written to" 9 "has $what; --force" cold --drive "$tmp/disk"
	check "not a byte of it" cmp "$tmp/disk" "$tmp/disk0"
}
mark() { printf "$2" | dd of="$tmp/disk" bs=1 seek="$1" conv=notrunc; }
marked "an ext2, ext3 or ext4 file system" mkfs.ext4 -q -F -E lazy_itable_init=0 "$tmp/disk"
marked "swap space" mkswap "$tmp/disk"
marked "a partition table (GPT)" mark 512 'EFI PART'
marked "a DOS partition table or boot sector" mark 510 '\125\252'
marked "an XFS file system" mark 0 XFSB
marked "a Btrfs file system" mark 65600 _BHRfS_M
marked "a LUKS volume" mark 0 'LUKS\272\276'
marked "an LVM volume" mark 512 LABELONE
marked "a member of an md RAID" mark 4096 '\374\116\053\251'
check "but with --force" cold --drive "$tmp/disk" --force
exits "a mistyped drive is not made into a file" 5 "No such file" cold --drive /tmp/.././dev/csrec-mistyped
check "none is there" test ! -e /dev/csrec-mistyped
exits "a file that gets too large" 1 "File too large" bash -c "trap '' XFSZ; ulimit -f 1000; '$csrec' install-cold \
	--model '$data/sample.crm' --plan '$data/sample.placement.json' --drive '$tmp/new'"
check "is not left behind" test ! -e "$tmp/new"
exits "missing drive" 5 "/dev/nvme99n1" cold --drive /dev/nvme99n1
exits "no extent where one should be" 7 "no cold extent" cold --drive "$data/sample.crm" --verify

echo "1..$n"
exit $failed
