#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Runs in the guest: guest.sh p2p|nop2p [TEST]. Each line of tests/guest/list is a name
# and a script that prints TAP; a script finds no driver loaded and leaves none.
cd /csrec || exit 1
kernel=$1 only=${2:-}
export PATH=/csrec/build/tools:$PATH CSREC_GUEST_KERNEL="$kernel"
status=0

for dev in /sys/bus/pci/devices/*; do
	[ "$(cat "$dev/vendor" "$dev/device" | tr '\n' ' ')" = '0x1234 0xc5ec ' ] || continue
	awk 'NR == 3 { print $1, $2 }' "$dev/resource" >/out/bar2
done
[ -s /out/bar2 ] || echo "not ok - no csrec device in the guest"

found=0
while read -r name script; do
	case $name in '' | '#'*) continue ;; esac
	[ -z "$only" ] || [ "$name" = "$only" ] || continue
	found=1
	echo "# $name"
	"$script" || { echo "# $name exited with $?"; status=1; }
	if lsmod | grep -q '^csrec '; then
		rmmod csrec || { echo "not ok - $name leaves the driver unloadable"; status=1; }
	fi
done <tests/guest/list
[ $found = 1 ] || { echo "not ok - no guest test named '$only'; see tests/guest/list"; status=1; }
exit $status
