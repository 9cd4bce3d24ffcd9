#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What stands before the lab: arguments of `make demo`, and tools/lab/run, which is
# started in a lab within the lab. TAP.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
# A root of its own, which a mount name space can make private.
if [ -z "${OUTER_ROOT:-}" ]; then
	exec unshare --mount --propagation unchanged sh -euc 'mkdir -p /tmp/outer; mount --rbind / /tmp/outer
		exec chroot /tmp/outer env OUTER_ROOT=1 /csrec/tests/guest/outer.sh'
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
n=0

tap() { # NAME STATUS
	n=$((n + 1))
	if [ "$2" = 0 ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; fi
}

args() { make -s demo-args "$@" >"$tmp/said" 2>&1; }
refused() { # TEXT VARIABLE ...
	local text=$1
	shift
	! args "$@" && grep -qF -- "$text" "$tmp/said"
	tap "demo refuses $*" $?
}
args
tap "demo takes its defaults" $?
for name in 'a b.tsv' "it's.tsv" -n.tsv '"q".tsv' ';.tsv'; do
	cp tools/data/sample.tsv "$tmp/$name"
	args INPUT="$tmp/$name"
	tap "demo takes a file named $name" $?
done
refused "cannot read" INPUT=/nonexistent
refused "cannot read" INPUT=/tmp
refused "never end" INPUT=/dev/zero
for limit in 0 -5 x 010 999999999999999999999; do refused "LIMIT must be" LIMIT=$limit; done
refused "KERNEL must be" KERNEL="'"

# not below /tmp: the lab gets one of its own
export CSREC_LAB=$PWD/build/outer
mkdir -p "$CSREC_LAB"
ln -sfn / "$CSREC_LAB/root"
tools/lab/run sh -c 'exit 7'
tap "status of the command" $(($? != 7))
[ "$(echo text | tools/lab/run cat)" = text ]
tap "standard input" $?
tools/lab/run true <&-
tap "no standard input" $?
tools/lab/run sh -c 'sh -c "trap \"exit 3\" INT; kill -INT \$\$; exit 4"'
tap "interrupts can be caught inside" $(($? != 3))
CSREC_LAB=/dev/null tools/lab/run true 2>"$tmp/said"
[ $? = 3 ] && grep -q 'no lab root' "$tmp/said"
tap "no lab" $?

for sig in HUP INT TERM KILL; do
	mkfifo "$tmp/up.$sig"
	# the pipe ends when whoever holds it has ended
	env --default-signal=INT tools/lab/run sh -c 'echo up; sleep 1000' >"$tmp/up.$sig" &
	exec 4<"$tmp/up.$sig"
	read -r _ <&4
	kill -$sig $!
	timeout 60 cat <&4
	tap "ended by $sig: nothing is left running" $?
	exec 4<&-
	kill -KILL $! 2>/dev/null
	wait $! 2>/dev/null
	[ $? = $((128 + $(kill -l $sig))) ]
	tap "ended by $sig: the status says so" $?
done
tools/lab/run bash -c 'trap "sleep 0.2; echo bye; exit" TERM; echo up; while :; do sleep 0.1; done' >"$tmp/said" &
until grep -q up "$tmp/said"; do sleep 0.1; done
kill -TERM $!
wait $!
grep -q bye "$tmp/said"
tap "a command may end in its own way" $?
echo "1..$n"
