#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The same random commands to the RTL and to the golden device: every completion and all
# memory must be equal. lockstep.sh DIRECTORY [FACTOR]: where lockstep_rtl and
# lockstep_golden are, and by how much to multiply the number of batches. Prints TAP.
set -u

dir=$1
factor=${2:-1}
n=0
bad=0

# seed, batches, then host latency, stall percentage and percentage of late answers
compare() {
	n=$((n + 1))
	batches=$(($2 * factor))
	"$dir/lockstep_golden" "$1" "$batches" "$3" "$4" "$5" > "$dir/golden.out" &&
	"$dir/lockstep_rtl" "$1" "$batches" "$3" "$4" "$5" > "$dir/rtl.out" &&
	cmp -s "$dir/golden.out" "$dir/rtl.out" &&
	! grep -q -e none -e 'does not' -e unknown -e cannot "$dir/golden.out"
	if [ $? = 0 ]; then
		echo "ok $n - seed $1, latency $3, stalls $4%, late $5%:" \
			"$(grep -c ': status' "$dir/rtl.out") completions equal," \
			"$(grep -c 'status 0' "$dir/rtl.out") of them good, and all memory"
	else
		echo "not ok $n - seed $1, latency $3, stalls $4%, late $5%"
		diff "$dir/golden.out" "$dir/rtl.out" | head -n 10 | sed 's/^/# /'
		bad=1
	fi
}

# the RTL alone, disturbed
chaos() {
	n=$((n + 1))
	if "$dir/lockstep_rtl" "$1" $(($2 * factor)) "$3" "$4" "$5" chaos > "$dir/rtl.out"; then
		sed -n "s/^ok 1/ok $n/p" "$dir/rtl.out"
	else
		echo "not ok $n - seed $1, disturbed"
		grep -v '^1\.\.' "$dir/rtl.out" | sed 's/^/# /' | tail
		bad=1
	fi
}

compare 11 50 10 0 0
compare 12 20 300 0 0
compare 13 25 5 40 0
compare 14 25 10 10 40
compare 15 25 10 60 20
chaos 21 40 10 0 0
chaos 22 20 10 30 30
chaos 23 20 200 0 0
echo "1..$n"
exit $bad
