#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What `make -C tests/convert check` runs. Prints TAP.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
O=${O:-$top/build/tests-convert}
csrec=${CSREC:-$top/build/tools/csrec}
inputs=$top/tests/convert/inputs.py
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
n=0

ok() { n=$((n + 1)); echo "ok $n - $1"; }
not_ok() { n=$((n + 1)); failed=1; echo "not ok $n - $1"; sed 's/^/# /' "$tmp/out"; }
# check NAME COMMAND...: it succeeds
check() { local name=$1; shift; if "$@" >"$tmp/out" 2>&1; then ok "$name"; else not_ok "$name"; fi; }
# exits NAME STATUS TEXT COMMAND...: it exits with that status and says that
exits() {
	local name=$1 want=$2 text=$3; shift 3
	"$@" >"$tmp/out" 2>&1
	local got=$?
	if [ $got = "$want" ] && grep -qF -- "$text" "$tmp/out"; then ok "$name"
	else echo "exit $got, wanted $want with '$text'" >>"$tmp/out"; not_ok "$name"; fi
}

python3 "$inputs" "$tmp" || { echo "not ok 1 - inputs are written"; echo 1..1; exit 1; }

# Scores of what was converted against a forward pass in float64.
score() { "$csrec" infer --model "$1" --backend golden --input "$tmp/clicks.tsv" --output "$tmp/scores"; }
for want in "$tmp"/*.want; do
	name=$(basename "$want" .want)
	args=(--safetensors "$tmp/$name.safetensors")
	[ -e "$tmp/$name.npz" ] && args=(--npz "$tmp/$name.npz")
	[ -e "$tmp/$name.json" ] && args+=(--arch "$tmp/$name.json")
	check "$name is converted" "$csrec" convert "${args[@]}" -o "$tmp/$name.crm"
	check "$name scores" score "$tmp/$name.crm"
	check "$name scores as its definition in float64" python3 "$inputs" "$tmp" "$name" "$tmp/scores"
done
# and the comparison can fail
awk '{ print $1, $NF + 0.001 }' "$tmp/scores" >"$tmp/off"
exits "the reference sees scores that are off" 1 "largest difference" python3 "$inputs" "$tmp" wnd "$tmp/off"

# Rows of each type, bit by bit.
dot=(--safetensors "$tmp/dot.safetensors")
for t in fp32 fp16 int8; do
	check "rows become $t" "$csrec" convert "${dot[@]}" --rows "fp32,C3=$t" -o "$tmp/$t.crm"
	check "$t rows are extracted" "$csrec" model extract "$tmp/$t.crm" --table C3 -o "$tmp/$t.npy"
	check "$t rows are those of numpy" python3 "$inputs" "$tmp" rows $t "$tmp/$t.npy"
	check "$t verifies" "$csrec" model verify "$tmp/$t.crm"
	check "$t scores" score "$tmp/$t.crm"
	check "show --json tells $t" sh -c "'$csrec' model show '$tmp/$t.crm' --json |
		jq -e '.tables | length == 26 and .[2].type == \"$t\" and .[3].type == \"fp32\"'"
done
check "show prints" "$csrec" model show "$tmp/int8.crm"
check "some rows" "$csrec" model extract "$tmp/fp32.crm" --table C3 --first 1 --count 2 -o "$tmp/two.npy"
check "are those" python3 -c "import sys, numpy as np
assert np.array_equal(np.load(sys.argv[1]), np.load(sys.argv[2])[1:3])" "$tmp/two.npy" "$tmp/C3.npy"
check "a layer, its bias last" "$csrec" model extract "$tmp/fp32.crm" --layer bot1 -o "$tmp/bot1.npy"
check "has its shape" python3 -c "import sys, numpy as np
assert np.load(sys.argv[1]).shape == (8, 17)" "$tmp/bot1.npy"
check "--json of convert" sh -c "'$csrec' convert --json --safetensors '$tmp/dot.safetensors' -o '$tmp/j.crm' |
	jq -e '.type == \"dlrm\" and .interaction == \"dot\" and .tables == 26 and .dense == 13'"
cp "$tmp/fp32.crm" "$tmp/flip.crm"
# the directory is at the end, and before it the page of the last section
last=$(($(od -An -t u8 -j 24 -N 8 "$tmp/flip.crm") - 4096))
printf '\377' | dd of="$tmp/flip.crm" bs=1 seek=$last conv=notrunc status=none
exits "verify finds a damaged byte" 7 "checksum" "$csrec" model verify "$tmp/flip.crm"

check "a model with other columns than a click log is converted" "$csrec" convert \
	--safetensors "$tmp/columns.safetensors" -o "$tmp/columns.crm"
exits "and infer says that it cannot feed it" 7 "takes 5 dense inputs and 1 id columns" score "$tmp/columns.crm"

# Refusals: each file says what, and leaves what was there.
echo precious >"$tmp/kept"
cp "$tmp/kept" "$tmp/target.crm"
while IFS=$'\t' read -r name ext text; do
	args=("--$ext" "$tmp/$name.$ext")
	[ -e "$tmp/$name.json" ] && args+=(--arch "$tmp/$name.json")
	exits "refused: ${name#h-}" 7 "$text" "$csrec" convert "${args[@]}" -o "$tmp/target.crm"
done <"$tmp/hostile.list"
check "what was there before is untouched" cmp "$tmp/kept" "$tmp/target.crm"
check "and nothing is left over" sh -c "! ls '$tmp'/target.crm.* 2>/dev/null"
exits "a missing file is named" 7 "/nonexistent" "$csrec" convert --safetensors /nonexistent -o "$tmp/x.crm"
exits "no input" 2 "--safetensors" "$csrec" convert -o "$tmp/x.crm"
exits "output over the input" 2 "overwritten" "$csrec" convert "${dot[@]}" -o "$tmp/dot.safetensors"
exits "unknown type of rows" 2 "int4" "$csrec" convert "${dot[@]}" --rows int4 -o "$tmp/x.crm"
exits "type for a table that is not there" 7 "C27" "$csrec" convert "${dot[@]}" --rows fp32,C27=int8 -o "$tmp/x.crm"
exits "extract without a table of that name" 2 "no table C99" "$csrec" model extract "$tmp/fp32.crm" --table C99 -o "$tmp/x.npy"
exits "rows that are not there" 2 "there are" "$csrec" model extract "$tmp/fp32.crm" --table C3 --first 1000 -o "$tmp/x.npy"
exits "model without an action" 2 "show, verify or extract" "$csrec" model "$tmp/fp32.crm"
exits "show of no model" 7 "wrong magic" "$csrec" model show "$tmp/dot.safetensors"

# A model of 2.5 GiB in much less memory (the address space counts the libraries as well).
# shellcheck disable=SC2016
check "2.5 GiB are converted within 512 MiB of address space" bash -c 'ulimit -v 524288; exec "$@"' - \
	"$csrec" convert --safetensors "$tmp/large.safetensors" --rows int8 -o "$tmp/large.crm"
check "and are all there" sh -c "'$csrec' model show '$tmp/large.crm' --json |
	jq -e '.tables[0].rows == 10485760 and .tables[0].bytes == 10485760 * 72 and .input.columns == 1'"
rm -f "$tmp/large.crm"

# Readers on damaged files, under sanitizers.
"$O/fuzz" "$tmp/half.safetensors" "$tmp/itself.npz" "$tmp/cat.npz" "$tmp/mtwnd.safetensors" >"$tmp/out" 2>&1
status=$?
cat "$tmp/out"
[ $status = 0 ] || { failed=1; grep -q '^not ok' "$tmp/out" || echo "not ok - fuzz exited with status $status"; }

echo "1..$n"
exit $failed
