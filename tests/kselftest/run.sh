#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Runs the driver tests in a guest with a csrec device and an NVMe drive whose contents do
# not matter: loads csrec.ko for the running kernel, runs all test programs, unloads it,
# and looks at what the kernel's log says. One TAP stream; exit status 1 on failure.
#
#   tests/kselftest/run.sh [PROGRAM ...]
#
# CSREC_KSELFTEST names the directory of the programs (default build/kselftest).
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
progs=${CSREC_KSELFTEST:-$top/build/kselftest}
module=$top/build/kernel/$(uname -r)/csrec.ko
[ $# -gt 0 ] || set -- uapi queue mem cmds compute p2p life

tmp=$(mktemp -d /tmp/csrec-kselftest.XXXXXX)
trap 'rm -rf "$tmp"' EXIT
echo 0 >"$tmp/n"
: >"$tmp/bad"

say() {	# "ok" or "not ok", NAME
	n=$(($(cat "$tmp/n") + 1))
	echo "$n" >"$tmp/n"
	echo "$1 $n - $2"
	[ "$1" = ok ] || echo "$2" >>"$tmp/bad"
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
		*) echo "# ${line#\# }" ;;
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
	! log_since_start | grep -E 'BUG|WARNING|Oops|Call Trace|blocked for more|DMA-API|IO_PAGE_FAULT|general protection|refcount_t|refused: status|no admin command'
}

echo "TAP version 13"
mark="csrec kselftest $$"
echo "$mark" >/dev/kmsg
modprobe -q brd rd_nr=1 rd_size=65536
check "module loads" insmod "$module"
if [ -c /dev/csrec0 ]; then
	for prog; do
		program "$prog"
	done
else
	say "not ok" "there is a device node /dev/csrec0"
	log_since_start | grep csrec | sed 's/^/# /'
fi
check "module unloads while idle" rmmod csrec
check "module loads again" insmod "$module"
check "module unloads again" rmmod csrec
check "kernel log is clean" log_is_clean
modprobe -qr brd
echo "1..$(cat "$tmp/n")"
[ ! -s "$tmp/bad" ]
