#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Do two models give the same completions and memory for the same random commands?
#
#   compare.sh DEVICE_TEST_A DEVICE_TEST_B [COUNT [SEED ...]]
#
# Both programs are device_test, linked with different models. Prints TAP, and the first
# differences; the traces stay beside program B for a closer look.
set -u
[ $# -ge 2 ] || { echo "usage: compare.sh DEVICE_TEST_A DEVICE_TEST_B [COUNT [SEED ...]]" >&2; exit 2; }
a=$1 b=$2 count=${3:-300}
if [ $# -ge 3 ]; then shift 3; else shift 2; fi
[ $# -gt 0 ] || set -- 1
n=0 status=0
for seed; do
	n=$((n + 1))
	if "$a" --trace "$seed" "$count" >"$b.trace-a" &&
	   "$b" --trace "$seed" "$count" >"$b.trace-b" &&
	   [ "$(wc -l <"$b.trace-a")" = "$count" ] &&
	   cmp -s "$b.trace-a" "$b.trace-b"; then
		echo "ok $n - both models: seed $seed, $count random commands"
	else
		echo "not ok $n - both models: seed $seed, $count random commands"
		diff "$b.trace-a" "$b.trace-b" | head -n 10 | sed 's/^/# /'
		status=1
	fi
done
echo "1..$n"
exit $status
