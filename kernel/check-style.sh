#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Style of the driver and its headers, as TAP: checkpatch a file, sparse and W=1 a kernel.
#
#   check-style.sh KERNEL_DIR UAPI_DIR BUILD_DIR CHECKPATCH RELEASE...
#
set -u
kernel=$1 uapi=$2 out=$3 checkpatch=$4
shift 4

n=0 bad=0
result() {	# STATUS NAME LOG
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		sed 's/^/# /' "$3" | head -n 40
		bad=1
	fi
}

tmp=$(mktemp -d "$out/check-style.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
log=$tmp/log
echo "TAP version 13"
for f in "$kernel"/*.[ch] "$uapi"/*.h; do
	ignore=
	case $f in
	"$uapi"/*) ignore=--ignore=BIT_MACRO ;;	# BIT() is not for userspace
	*/compat.h) ignore=--ignore=LINUX_VERSION_CODE,CONSTANT_COMPARISON,MACRO_ARG_UNUSED ;;
	*_layout.c) ignore=--ignore=TRAILING_SEMICOLON,MACRO_ARG_REUSE ;; # its table has none
	*_trace.h) ignore=--ignore=OPEN_ENDED_LINE,PARENTHESIS_ALIGNMENT ;; # as TRACE_EVENT() wants
	esac
	# shellcheck disable=SC2086 # $ignore is one option or none
	perl "$checkpatch" $ignore --no-tree --strict --quiet --max-line-length=100 -f "$f" \
		>"$log" 2>&1
	status=$?
	# a quiet checkpatch says nothing at all when it is content
	[ -s "$log" ] && status=1
	result $status "checkpatch ${f##*/}" "$log"
done
! grep -lE 'LINUX_VERSION_CODE|KERNEL_VERSION|UTS_RELEASE' "$kernel"/*.[ch] | grep -v '/compat\.h$' >"$log"
result $? "kernel versions: compat.h alone asks for them" "$log"
build() {	# RELEASE NAME [CHECK=1]: warnings are failures
	rm -rf "$tmp/build"
	make -j"$(nproc)" -C "$kernel" O="$tmp/build" KREL="$1" ${3:+"$3"} >"$log" 2>&1
	status=$?
	grep -E '(warning|error):' "$log" >"$log.w" && status=1
	[ $status = 0 ] || [ -s "$log.w" ] || cp "$log" "$log.w"
	result $status "$2 $1" "$log.w"
}
for release in "$@"; do
	build "$release" W=1
	# Headers from 7.x on need a sparse that knows __typeof_unqual__.
	if grep -qs __typeof_unqual__ "/lib/modules/$release/source/include/linux/compiler.h" &&
	   echo 'static int x; static __typeof_unqual__(x) y;' | sparse - 2>&1 | grep -q error; then
		n=$((n + 1))
		echo "ok $n - sparse $release # SKIP this sparse cannot parse that kernel's headers"
	else
		build "$release" sparse CHECK=1
	fi
done
echo "1..$n"
exit $bad
