#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The same random commands to the RTL and to the golden device: every completion and all
# memory must be equal. lockstep.sh DIRECTORY [COMMANDS [FIRST-SEED]]: where lockstep_rtl and
# lockstep_golden are, how many commands are to be compared beyond the fixed runs, and from
# which seed on. The seed of a run decides on all of it, latencies (1 to 2000 cycles),
# back-pressure and late answers included. Prints TAP; a run that fails says how to see it.
set -u

dir=$1
commands=${2:-1000}
seed=${3:-1000}
n=0
bad=0
compared=0

# Where to look: the batch of the first line that differs, or in which a disturbed run failed.
replay() { # SEED BATCHES HOST DRAM STALLS LATE [chaos]
	local batch
	batch=$({ diff "$dir/golden.out" "$dir/rtl.out" 2>&1; tail -n 5 "$dir/rtl.out"; } |
		grep -o 'batch [0-9]*' | head -n 1 | cut -d' ' -f2)
	echo "# waves of it: $dir/lockstep_rtl -w wave.fst -b ${batch:-0} $*"
}

# seed, batches, then latency of host and DRAM, stall percentage, percentage of late answers
compare() {
	local count=0
	n=$((n + 1))
	: > "$dir/rtl.out"
	"$dir/lockstep_golden" "$@" > "$dir/golden.out" &&
	"$dir/lockstep_rtl" "$@" > "$dir/rtl.out" 2> "$dir/rtl.err" &&
	cmp -s "$dir/golden.out" "$dir/rtl.out" &&
	! grep -q -e none -e 'does not' -e unknown -e cannot "$dir/golden.out" &&
	count=$(grep -c ': status' "$dir/rtl.out")
	if [ $? = 0 ]; then
		echo "ok $n - seed $1, latency $3 and $4, stalls $5%, late $6%: $count completions equal," \
			"$(grep -c 'status 0' "$dir/rtl.out") of them good, and all memory"
	else
		echo "not ok $n - seed $1, latency $3 and $4, stalls $5%, late $6%"
		diff "$dir/golden.out" "$dir/rtl.out" | head -n 10 | sed 's/^/# /'
		head -n 5 "$dir/rtl.err" | sed 's/^/# /'
		replay "$@"
		bad=1
	fi
	compared=$((compared + count))
}

# the RTL alone, disturbed
chaos() {
	n=$((n + 1))
	: > "$dir/golden.out"
	if "$dir/lockstep_rtl" "$@" chaos > "$dir/rtl.out" 2> "$dir/rtl.err"; then
		sed -n "s/^ok 1 - /ok $n - seed $1, /p" "$dir/rtl.out"
	else
		echo "not ok $n - seed $1, disturbed"
		grep -v '^1\.\.' "$dir/rtl.out" | cat - "$dir/rtl.err" | sed 's/^/# /' | tail
		replay "$@" chaos
		bad=1
	fi
}

# Of any seed: one of 1 to 2000, small as often as large.
latency() { # RANDOM-NUMBER
	local most
	case $(($1 % 4)) in 0) most=8 ;; 1) most=60 ;; 2) most=400 ;; *) most=2000 ;; esac
	echo $((1 + $1 / 4 % most))
}

compare 11 50 10 5 0 0
compare 12 20 300 40 0 0
compare 13 25 5 5 40 0
compare 14 25 10 5 10 40
compare 15 25 10 5 60 20
compare 16 3 2000 2000 0 0
compare 17 10 1 1 0 0
chaos 21 40 10 5 0 0
chaos 22 20 10 5 30 30
chaos 23 20 200 5 0 0
chaos 24 4 2000 2000 20 20
compared=0
while [ $compared -lt "$commands" ] && [ $bad = 0 ]; do
	RANDOM=$seed
	host=$(latency "$RANDOM")
	dram=$(latency "$RANDOM")
	stalls=$((RANDOM % 3 ? RANDOM % 80 : 0))
	late=$((RANDOM % 3 ? 0 : RANDOM % 60))
	# about as much to simulate in each run
	batches=$((1 + 20000 / (400 + host + dram)))
	if [ $((seed % 5)) = 0 ]; then
		chaos "$seed" $((1 + batches / 2)) "$host" "$dram" "$stalls" "$late"
	else
		compare "$seed" "$batches" "$host" "$dram" "$stalls" "$late"
	fi
	seed=$((seed + 1))
done
echo "# $compared random commands equal in RTL and golden device"
echo "1..$n"
exit $bad
