#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# make install and modules_install, into directories of their own. The Debian packages: made
# twice they are the same; installed over a scratch copy of the lab's root, their driver builds
# for the guest's kernel, their command and library work; a guest loads that driver; removed,
# nothing of them is left. Inside the lab. TAP.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/userspace/tap.sh
. tests/userspace/tap.sh
work=$PWD/build/packaging
rm -rf "$work"
mkdir -p "$work"

tap "packages are made" tools/packaging/deb.sh "$work/deb"
again() { tools/packaging/deb.sh "$work/again" && (cd "$work/deb" && sha256sum -- *.deb) | (cd "$work/again" && sha256sum -c); }
tap "made again they are the same, byte for byte" again

# DKMS would build for all kernels with headers: here for the guest's alone, which is enough
kernel=$(basename "$(grep -l '^CONFIG_PCI_P2PDMA=y' /boot/config-*)")
kernel=${kernel#config-}

# Without packages; what is built is there.
tap "make install DESTDIR=" make -s -o build install PREFIX=/usr DESTDIR="$work/install"
installed() { LD_LIBRARY_PATH=$work/install/usr/lib "$work/install/usr/bin/$1" "${@:2}"; }
tap "what it has installed runs" shows '^csrec 1\.1 ' installed csrec --version
tap "with its man page" test -s "$work/install/usr/share/man/man1/csrec.1"
modules() { make -s -C kernel modules_install KREL="$kernel" INSTALL_MOD_PATH="$work/modules"; }
tap "modules_install INSTALL_MOD_PATH=" modules
tap "modprobe would find that driver" \
	sh -c "modprobe -d '$work/modules' -S $kernel -n -v csrec | grep '^insmod $work/modules/.*/csrec.ko'"

# The scratch copy: changes go to a file system in memory.
tmp=$(mktemp -d)
mount -t tmpfs -o size=2g tmpfs "$tmp" && mkdir "$tmp/up" "$tmp/work" "$tmp/root" &&
	mount -t overlay -o "lowerdir=/,upperdir=$tmp/up,workdir=$tmp/work" overlay "$tmp/root" &&
	mount --bind /proc "$tmp/root/proc" && mount --rbind /dev "$tmp/root/dev" &&
	mount -t tmpfs tmpfs "$tmp/root/tmp" && cp "$work"/deb/*.deb "$tmp/root/tmp/" ||
	{ echo "not ok - a scratch copy of the root"; echo "1..3"; exit 1; }
trap 'umount -R "$tmp/root"; umount "$tmp"; rmdir "$tmp"' EXIT
inside() { chroot "$tmp/root" "$@"; }
script() { inside bash -euc "$1"; }

files() { (cd "$tmp/up" && find . \( -type f -o -type l -o -type c \) | grep -vE '^./(var/(log|cache|lib/(dpkg|systemd))|tmp|run)/|/__pycache__/' | LC_ALL=C sort); }
for dir in "$tmp"/root/lib/modules/*; do
	[ "${dir##*/}" = "$kernel" ] || rm -rf "$dir"
done
before=$(files)
# shellcheck disable=SC2016 # expanded inside
tap "they install" script 'export DEBIAN_FRONTEND=noninteractive; dpkg -i /tmp/*.deb'
tap "group csrec exists" inside getent group csrec
built() { inside dkms status -m csrec -v 1.1 -k "$kernel" | grep ': installed'; }
tap "DKMS has built and installed the driver for $kernel" built
tap "modprobe would find it" inside sh -c "modprobe -S $kernel -n -v csrec | grep updates/dkms"
# shellcheck disable=SC2016
old() { script 'mkdir -p /lib/modules/5.10.0-1/build; dkms install csrec/1.1 -k 5.10.0-1'; [ $? = 77 ]; }
tap "it is skipped for a kernel that is too old" old
inside rm -rf /lib/modules/5.10.0-1
tap "the command runs" shows '^csrec 1\.1 ' inside csrec --version
tap "its man page is there" inside test -s /usr/share/man/man1/csrec.1.gz
# shellcheck disable=SC2016
tap "a program builds with the library's package" script '
	echo "#include <csrec.h>
		#include <stdio.h>
		int main(void) { puts(csrec_lib_version()); }" >/tmp/p.c
	cc -Wall -Werror -o /tmp/p /tmp/p.c $(pkg-config --cflags --libs csrec)
	[ "$(/tmp/p)" = 1.1 ]'
tap "udev takes the rule" inside udevadm verify /usr/lib/udev/rules.d/60-csrec.rules

# A guest sees what was installed through a layer of its own (guest.sh).
cp -a "$tmp/up" "$work/installed"
timeout 900 tools/lab/vm --out build/vm/packaging --limit 800 ${CSREC_SIM:+--sim "$CSREC_SIM"} \
	-- tests/packaging/guest.sh >"$work/guest.log" 2>&1
grep -E '^(ok|not ok|#)' "$work/guest.log"
tap_n=$((tap_n + $(grep -cE '^(ok|not ok)' "$work/guest.log")))
guest_done() { [ "$(grep -c '^ok' "$work/guest.log")" = 6 ] || { tail -n 5 "$work/guest.log"; false; }; }
tap "a guest runs the installed driver" guest_done

# shellcheck disable=SC2016
tap "they are removed" script 'dpkg --purge csrec-dkms csrec-tools libcsrec-dev libcsrec1'
# but for what DKMS keeps for itself: the key that it signs modules with
gone() {
	diff <(echo "$before") <(files | grep -vE '^./var/lib/dkms/mok\.|^./(etc/(group|gshadow|passwd|shadow|subgid|subuid)-?|etc/\.pwd\.lock|etc/ld\.so\.cache)$|^./(usr/)?lib/modules/[^/]*/modules\.')
}
tap "nothing is left" gone
nogroup() { ! inside getent group csrec; }
tap "nor is the group" nogroup
tap_done
