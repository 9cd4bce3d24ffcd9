#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Layouts of the interface: uapi/csrec_layout.h says where every field of every structure
# is. The driver and libcsrec assert it when they are built. TAP:
#
#   tests/uapi/layout.sh            is it what the headers give, for 64 and 32 bits?
#   tests/uapi/layout.sh --write    makes it anew, after a change that is meant
set -u
cd "$(dirname "$0")/../.." || exit 1
table=uapi/csrec_layout.h
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
n=0 bad=0
flags=(-std=c17 -Wall -Wextra -Werror -Iuapi -include linux/csrec.h)

tap() {	# NAME COMMAND...
	local name=$1
	shift
	n=$((n + 1))
	if "$@" >"$tmp/log" 2>&1; then
		echo "ok $n - layout: $name"
	else
		echo "not ok $n - layout: $name"
		sed 's/^/# /' "$tmp/log" | head -n 20
		bad=1
	fi
}

# "structure field" for each field; "structure" alone before them.
fields() {
	cat uapi/linux/csrec_hw.h uapi/linux/csrec.h | awk '
		/^struct csrec_[a-z0-9_]+ \{$/ { s = $2; print s; next }
		/^\};/ { s = "" }
		s != "" && match($0, /^\t[a-z_ ]*[a-z0-9_]+\t?[ \t]*[a-z0-9_]+(\[[^]]*\])?;/) {
			f = substr($0, RSTART, RLENGTH)
			sub(/(\[[^]]*\])?;$/, "", f)
			sub(/.*[ \t]/, "", f)
			print s, f
		}'
}
fields >"$tmp/fields"

make_table() {
	{
		echo '#include <stddef.h>'
		echo '#include <stdio.h>'
		echo 'int main(void) {'
		awk 'NF == 1 { printf "printf(\"CSREC_STRUCT(%s, %%zu)\\n\", sizeof(struct %s));\n", $1, $1 }
		NF == 2 { printf "printf(\"CSREC_FIELD(%s, %s, %%zu, %%zu)\\n\", offsetof(struct %s, %s), sizeof(((struct %s *)0)->%s));\n", $1, $2, $1, $2, $1, $2 }' "$tmp/fields"
		echo 'return 0; }'
	} >"$tmp/print.c"
	gcc "${flags[@]}" -o "$tmp/print" "$tmp/print.c" || return
	cat <<-'END'
		/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
		/*
		 * Sizes of all structures of linux/csrec.h and linux/csrec_hw.h; offsets and sizes of
		 * their fields. Written by tests/uapi/layout.sh --write; whoever includes it defines
		 * the two macros.
		 */
	END
	"$tmp/print"
}

if [ "${1:-}" = --write ]; then
	make_table >"$tmp/table" && cp "$tmp/table" $table
	exit
fi

same() { make_table >"$tmp/table" && diff $table "$tmp/table"; }
tap "the table is what the headers give" same

# What follows a field is the next one: nothing is left out, nothing is padded.
whole() {
	awk -F'[(,) ]+' '
		function done() { if (s != "" && at != size) { print s, "ends at", at, "not", size; bad = 1 } }
		/^CSREC_STRUCT/ { done(); s = $2; size = $3; at = 0; structs++ }
		/^CSREC_FIELD/ { if ($4 != at) { print $2, $3, "is at", $4, "not", at; bad = 1 } at += $5 }
		END { done(); if (structs < 20) { print structs, "structures only"; bad = 1 } exit bad }' $table
}
tap "fields follow each other without padding" whole

# The 64-bit kernel reads what 32-bit programs write.
assert() {
	cat >"$tmp/assert.c" <<-'END'
		#include <stddef.h>
		#define CSREC_STRUCT(s, n) _Static_assert(sizeof(struct s) == (n), #s);
		#define CSREC_FIELD(s, f, at, n) _Static_assert(offsetof(struct s, f) == (at) && \
			sizeof(((struct s *)0)->f) == (n), #s "." #f);
		#include "csrec_layout.h"
	END
	gcc "$@" "${flags[@]}" -c -o "$tmp/assert.o" "$tmp/assert.c"
}
tap "64-bit programs have it" assert -m64
tap "32-bit programs have it" assert -m32
tap "x32 programs have it" assert -mx32
tap "C++ programs have the headers" g++ -std=c++17 -Wall -Wextra -Werror -Iuapi -x c++ -c -o "$tmp/cc.o" uapi/linux/csrec.h
# can the assertions fail?
wrong() {
	sed -i 's/^CSREC_FIELD(csrec_cqe, detail, 8, 8)/CSREC_FIELD(csrec_cqe, detail, 4, 8)/' "$tmp/csrec_layout.h"
	! gcc -I"$tmp" "${flags[@]}" -c -o "$tmp/assert.o" "$tmp/assert.c"
}
cp $table "$tmp/"
tap "a field that moves is seen" wrong
lib32() {
	local f
	for f in userspace/lib/*.c; do
		gcc -m32 -std=c17 -Wall -Wextra -Werror -D_FILE_OFFSET_BITS=64 -Iuserspace/include -Iuapi \
			-idirafter "/usr/include/$(gcc -print-multiarch)" -c -o "$tmp/lib.o" "$f" || return
	done
}
tap "libcsrec compiles for 32 bits" lib32
echo 1..$n
exit $bad
