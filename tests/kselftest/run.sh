#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Runs the driver tests in a guest with a csrec device and an NVMe drive whose contents do
# not matter: loads csrec.ko for the running kernel, runs all test programs, unloads it,
# and looks at what the kernel's log says. One TAP stream; exit status 1 on failure.
#
#   tests/kselftest/run.sh [PROGRAM ...]
#
# CSREC_KSELFTEST names the directory of the programs (default build/kselftest). CSREC_PART=I/N
# takes every Nth program, from the Ith: N guests have run all. Counts go to /out/kselftest.json,
# for tests/kselftest/report.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
progs=${CSREC_KSELFTEST:-$top/build/kselftest}
module=$top/build/kernel/$(uname -r)/csrec.ko
if [ $# = 0 ]; then
	set -- uapi queue queue_map stall mem mem_map mem_pin mem_quota mem_share mem_drive cmds compute p2p p2p_write p2p_hang p2p_uring life visible hostile
	# some as 32-bit programs, too
	set -- "$@" m32/uapi m32/queue m32/mem m32/mem_map m32/p2p
	# kernels with fault injection (make check-debug)
	[ ! -e /proc/self/fail-nth ] || set -- "$@" fail_nth
fi
part=${CSREC_PART:-1/1}
i=0
for prog in "$@"; do
	[ $i != 0 ] || set --
	[ $((i % ${part#*/})) != $((${part%/*} - 1)) ] || set -- "$@" "$prog"
	i=$((i + 1))
done

tmp=$(mktemp -d /tmp/csrec-kselftest.XXXXXX)
trap 'rm -rf "$tmp"' EXIT
echo 0 >"$tmp/n"
: >"$tmp/results"

say() {	# "ok" or "not ok", NAME
	n=$(($(cat "$tmp/n") + 1))
	echo "$n" >"$tmp/n"
	printf '%s\n' "$1 $n - $2" | tee -a "$tmp/results"
}
check() {	# NAME COMMAND...
	name=$1
	shift
	if "$@" >"$tmp/log" 2>&1; then
		say ok "$name"
	else
		say "not ok" "$name"
		sed 's/^/# /' "$tmp/log"
	fi
}

# Results of a program, counted on: its own plan and numbers go.
program() {
	echo "# $1"
	{ "$progs/$1" 2>&1; echo "exit status $?"; } | while IFS= read -r line; do
		case $line in
		"TAP version"*) ;;
		1..*) echo "${line#1..}" >"$tmp/plan" ;;
		"ok "* | "not ok "*)
			word=${line%% [0-9]*}
			rest=${line#"$word" }
			rest=${rest#* }
			echo x >>"$tmp/seen"
			say "$word" "$1: ${rest#- }" ;;
		"exit status "*) echo "${line#exit status }" >"$tmp/status" ;;
		*) printf '%s\n' "# ${line#\# }" ;;
		esac
	done
	seen=$(wc -l <"$tmp/seen" 2>/dev/null || echo 0)
	plan=$(cat "$tmp/plan" 2>/dev/null || echo 0)
	[ "$plan" != 0 ] && [ "$plan" = "$seen" ] ||
		say "not ok" "$1: $seen results, $plan planned"
	# a failed test makes the exit status 1, which has been told already
	case $(cat "$tmp/status") in
	0 | 1 | 4) ;;
	*) say "not ok" "$1: exit status $(cat "$tmp/status")" ;;
	esac
	rm -f "$tmp/seen" "$tmp/plan" "$tmp/status"
}

log_since_start() {
	dmesg | sed -n "/$mark/,\$p"
}
log_is_clean() {
	log_since_start | "$top/tests/guest/log-reports" >"$tmp/reports"
	status=$?
	cat "$tmp/reports"
	[ $status = 0 ] && ! log_since_start | grep -E 'refused: status|no admin command'
}

# Kernels with kmemleak: an object is told of once it is 5 s old and was seen in two scans.
kmemleak=/sys/kernel/debug/kmemleak
leaks() {
	echo scan >$kmemleak
	sleep 6
	echo scan >$kmemleak
	cat $kmemleak
}
no_leaks() {
	leaks >"$tmp/leaks"
	cat "$tmp/leaks"
	[ ! -s "$tmp/leaks" ]
}

echo "TAP version 13"
mark="csrec kselftest $$"
echo "$mark" >/dev/kmsg
modprobe -q brd rd_nr=1 rd_size=65536
if [ -w $kmemleak ]; then
	# what leaked before is not ours
	leaks >/dev/null
	echo clear >$kmemleak
fi
check "module loads" insmod "$module"
if [ -c /dev/csrec0 ]; then
	# tests that need it say so if it is not there
	testmod=$progs/mod/$(uname -r)/csrec_test_dmabuf.ko
	[ ! -e "$testmod" ] || check "test module loads" insmod "$testmod"
	for prog in "$@"; do
		program "$prog"
	done
	[ ! -e "$testmod" ] || check "test module unloads" rmmod csrec_test_dmabuf
else
	say "not ok" "there is a device node /dev/csrec0"
	log_since_start | grep csrec | sed 's/^/# /'
fi
# while the module's symbols are known
[ ! -w $kmemleak ] || check "kmemleak finds nothing" no_leaks
check "module unloads while idle" rmmod csrec
check "module loads again" insmod "$module"
check "module unloads again" rmmod csrec
[ ! -w $kmemleak ] || check "kmemleak finds nothing after unloading" no_leaks
check "kernel log is clean" log_is_clean
modprobe -qr brd
echo "1..$(cat "$tmp/n")"
[ ! -d /out ] || "$top/tests/kselftest/tally" "$(uname -r)" "$(wc -l <"$tmp/reports")" <"$tmp/results" >/out/kselftest.json
! grep -q '^not ok' "$tmp/results"
