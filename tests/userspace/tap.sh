# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# TAP for shell tests: source it, call the functions, end with tap_done.

tap_n=0 tap_bad=0

# tap NAME COMMAND...: ok if COMMAND succeeds; if not, its output as comments
tap() {
	local name=$1 out
	shift
	tap_n=$((tap_n + 1))
	if out=$("$@" 2>&1); then
		echo "ok - $name"
	else
		echo "not ok - $name"
		printf '%s\n' "$out" | sed 's/^/# /'
		tap_bad=$((tap_bad + 1))
	fi
}

tap_skip() {
	tap_n=$((tap_n + 1))
	echo "ok - $1 # SKIP $2"
}

tap_done() {
	echo "1..$tap_n"
	[ $tap_bad = 0 ]
	exit
}

# exits STATUS TEXT COMMAND...: COMMAND ends with STATUS and its standard error, one line,
# has TEXT in it. TEXT "" wants no message at all.
exits() {
	local want=$1 text=$2 err got
	shift 2
	err=$("$@" 2>&1 >/dev/null)
	got=$?
	echo "exit status $got, standard error: $err"
	[ $got = "$want" ] || return 1
	if [ -z "$text" ]; then
		[ -z "$err" ]
	else
		[[ $err == *"$text"* && $err != *$'\n'* ]]
	fi
}

# json FILTER COMMAND...: COMMAND's standard output is one JSON value, and jq's FILTER of it
# is true. COMMAND may fail.
json() {
	local filter=$1 out
	shift
	out=$("$@" 2>/dev/null)
	echo "output: $out"
	[ "$(jq -s length <<<"$out")" = 1 ] && jq -e "$filter" <<<"$out"
}

# shows PATTERN COMMAND...: COMMAND succeeds and its standard output matches the regex
shows() {
	local pattern=$1 out
	shift
	out=$("$@") || return 1
	echo "output: $out"
	grep -qE -- "$pattern" <<<"$out"
}
