#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Installs libcsrec into an empty directory and uses it from there: install.sh DIR. TAP.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/userspace/tap.sh
. "$here/tap.sh"
top=$(cd "$here/../.." && pwd)
dir=$1
rm -rf "$dir"
mkdir -p "$dir"
prefix=/opt/csrec
lib=$dir$prefix/lib
header=$dir$prefix/include/csrec/csrec.h

tap "make install" make -s -C "$top/userspace/lib" install O="$dir/obj" DESTDIR="$dir" PREFIX=$prefix

soname() { readelf -d "$lib/libcsrec.so" | grep -q 'SONAME.*\[libcsrec\.so\.1\]'; }
tap "soname is libcsrec.so.1" soname

# What the header declares is what the library exports: inline functions aside.
declared() {
	cc -E -P -I"$dir$prefix/include/csrec" "$header" | tr '\n' ' ' | tr ';}' '\n\n' |
		grep -vE 'static inline|typedef|return' | grep -oE '\bcsrec_[a-z0-9_]+ *\(' | tr -d ' (' | sort -u
}
exported() { nm -D --defined-only "$lib/libcsrec.so" | sed -n 's/.* T \(.*\)@@CSREC_1\.[01]$/\1/p' | sort; }
stray() { nm -D --defined-only "$lib/libcsrec.so" | grep -v '@@CSREC_1\.[01]$' | grep -v ' A CSREC_1\.[01]'; }
same() {
	[ "$(declared | wc -l)" -gt 20 ] && diff <(declared) <(exported)
}
tap "exports are the header's functions, all versioned" same
none() { ! stray; }
tap "nothing else is exported" none
# A program linked to libcsrec 1.0 finds what it needs: that version is closed.
v10='csrec_close csrec_copy_from_device csrec_copy_to_device csrec_decode_cqe csrec_error
csrec_fd csrec_fence_create csrec_fence_destroy csrec_fence_signal csrec_field_name
csrec_get_info csrec_get_stats csrec_host_alloc csrec_host_free csrec_lib_version csrec_list
csrec_list_free csrec_mem_alloc csrec_mem_free csrec_mem_register csrec_name csrec_opcode_name
csrec_open csrec_p2p_read csrec_queue_create csrec_queue_destroy csrec_queue_entries csrec_run
csrec_set_log csrec_status_name csrec_submit csrec_wait'
closed() {
	diff <(tr ' ' '\n' <<<"$v10" | sort) \
		<(nm -D --defined-only "$lib/libcsrec.so" | sed -n 's/.* T \(.*\)@@CSREC_1\.0$/\1/p' | sort)
}
tap "version 1.0 of the interface is what it was" closed
quiet() { ! nm -D --undefined-only "$lib/libcsrec.so" | grep -wE '(v?printf|__v?printf_chk|puts|putchar|perror|exit|_exit|abort)'; }
tap "the library cannot print to standard output or exit" quiet

cat >"$dir/user.c" <<'END'
#include <csrec.h>
#include <stdio.h>

int main(void)
{
	struct csrec_cmd cmd = csrec_cmd_copy(1, 2, 3, 4, 5);
	struct csrec_dev *dev;

	printf("%s %d %s\n", csrec_lib_version(), csrec_open(&dev, "csrec99"),
	       csrec_opcode_name(cmd.opcode));
	return 0;
}
END
cp "$dir/user.c" "$dir/user.cc"
flags() { PKG_CONFIG_PATH=$lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$dir pkg-config "$@" csrec; }
# shellcheck disable=SC2046 # words
build_c() { cc -std=c17 -Wall -Wextra -Wpedantic -Werror -o "$dir/user-c" "$dir/user.c" $(flags --cflags --libs); }
# shellcheck disable=SC2046
build_cc() { c++ -std=c++17 -Wall -Wextra -Werror -o "$dir/user-cc" "$dir/user.cc" $(flags --cflags --libs); }
# shellcheck disable=SC2046
build_static() {
	cc -o "$dir/user-static" "$dir/user.c" $(flags --cflags) -Wl,-Bstatic $(flags --libs) -Wl,-Bdynamic \
		$(flags --libs --static)
}
# libpci's own .pc file is in a package that programs with the shared library do without
alone() { PKG_CONFIG_LIBDIR=$lib/pkgconfig pkg-config --cflags --libs csrec; }
run() { shows '^1\.1 -19 COPY$' env LD_LIBRARY_PATH="$lib" "$dir/$1"; }
tap "pkg-config asks for no other .pc file" alone
tap "a C program builds with pkg-config" build_c
tap "and runs" run user-c
tap "a C++ program builds with pkg-config" build_cc
tap "and runs" run user-cc
tap "a program with the static library builds" build_static
tap "and runs" run user-static
tap_done
