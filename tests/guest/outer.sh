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

for target in shell vm-test; do
	! make -s $target KERNEL=p3p >"$tmp/said" 2>&1 && grep -q "KERNEL must be" "$tmp/said" &&
		! grep -q built "$tmp/said"
	tap "$target refuses KERNEL=p3p, and builds nothing" $?
done
for t in bogus '#' 'cli infer'; do
	! make -s vm-test T="$t" >"$tmp/said" 2>&1 && grep -q "no guest test '$t'" "$tmp/said" &&
		! grep -q built "$tmp/said"
	tap "vm-test refuses T=$t, and builds nothing" $?
done

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
# A device server that tells its arguments and dies: vm then prints what it said.
printf '#!/bin/sh\necho "got $*"\nexit 1\n' >"$CSREC_LAB/sim"
chmod +x "$CSREC_LAB/sim"
CSREC_SIM=build/outer/sim CSREC_SIM_ARGS='--fst build/wave.fst --fst-window 0:20000' tools/lab/run \
	tools/lab/vm --out /tmp/out -- true >"$tmp/said" 2>&1
grep -q '^got --socket [^ ]* --fst build/wave.fst --fst-window 0:20000$' "$tmp/said"
tap "CSREC_SIM and CSREC_SIM_ARGS reach the device server" $?
CSREC_LAB=/dev/null tools/lab/run true 2>"$tmp/said"
[ $? = 3 ] && grep -q 'no lab root.*CSREC_LAB' "$tmp/said"
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
