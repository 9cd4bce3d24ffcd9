#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Proves the modules of this folder: prove.sh DIRECTORY [NAME...]. Prints TAP; results go to
# build/reports/rtl.json as proofs[{name, result}]. A proof that fails leaves its trace in
# DIRECTORY/NAME.vcd.
set -u

dir=$1; shift
src=$(cd "$(dirname "$0")" && pwd)
rtl=$src/../../../rtl-model/rtl
n=0
bad=0
proofs=[]

# NAME DEPTH WHAT MODULE...: induction over DEPTH steps, with as many from reset on (an
# assertion at a clock edge takes one of them). In the
# copies that Yosys reads, assertions have lost their messages, for which it has no grammar.
prove() {
	local name=$1 depth=$2 what=$3 result=proved m s=$SECONDS; shift 3
	[ ${#only[@]} = 0 ] || [[ " ${only[*]} " == *" $name "* ]] || return
	n=$((n + 1))
	rm -rf "${dir:?}/$name"; mkdir -p "$dir/$name"
	for m; do
		sed -zE 's/\)[[:space:]]*else[[:space:]]+\$error\([^;]*\);/);/g' "$rtl/csrec_$m.sv" >"$dir/$name/csrec_$m.sv"
	done
	if ! yosys -q -l "$dir/$name.log" -p "
		read_verilog -sv -formal $dir/pkg/csrec_pkg.sv $(printf "$dir/$name/csrec_%s.sv " "$@") $src/$name.sv
		prep -flatten -top $name; memory_map; opt -full; async2sync; dffunmap; setundef -undriven -anyseq
		write_smt2 -wires $dir/$name.smt2" >&2; then
		result=unreadable
	else
		{ yosys-smtbmc -s z3 --unroll --noincr --presat -t "$depth" --dump-vcd "$dir/$name.vcd" "$dir/$name.smt2" &&
			yosys-smtbmc -s z3 --unroll --noincr -i -t "$depth" --dump-vcd "$dir/$name.vcd" "$dir/$name.smt2"; } >>"$dir/$name.log" 2>&1 ||
			result=failed
	fi
	if [ $result = proved ]; then
		echo "ok $n - $name: $what ($((SECONDS - s)) s)"
	else
		echo "not ok $n - $name: $what: $result"
		tail -n 15 "$dir/$name.log" | sed 's/^/# /'
		bad=1
	fi
	proofs=$(jq -c --arg name "$name: $what" --arg result $result '. + [{$name, $result}]' <<<"$proofs")
}

only=("$@")
prove region_check 1 "no byte outside a granted region, nothing refused that is granted" region_check
prove rr 14 "of eleven that keep asking none waits for more than ten others" rr
prove sched 2 "queue pointers, room, phase bits, rings' bounds, fairness among queues and units" sched
echo "1..$n"
[ ${#only[@]} != 0 ] || "$src/../report.sh" --argjson proofs "$proofs" '{$proofs}' || exit
exit $bad
