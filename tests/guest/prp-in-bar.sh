#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# prp-in-bar.sh BAR2 TRACE p2p|nop2p: BAR2 has the first and last bus address of the
# device's memory, TRACE is QEMU's, with pci_nvme_map_prp lines (prp1, prp2).
set -eu
# shellcheck disable=SC2046 # two words
set -- $(cat "$1") "$2" "$3"
inside=$(perl -ne '
	BEGIN { ($lo, $hi) = map { hex } splice @ARGV, 0, 2; $n = 0 }
	if (/pci_nvme_map_prp .*prp1 0x([0-9a-f]+) prp2 0x([0-9a-f]+)/) {
		my $p = hex $1;
		$n++ if $p >= $lo && $p <= $hi;
	}
	END { print $n }' "$1" "$2" "$3")
all=$(grep -c pci_nvme_map_prp "$3" || :)
echo "# $inside of $all drive transfers have their first PRP inside the device BAR $1-$2"
case $4 in
p2p) [ "$inside" -gt 0 ] && echo "ok - the drive wrote into the device BAR (QEMU trace)" ||
	echo "not ok - the drive wrote into the device BAR (QEMU trace)" ;;
nop2p) [ "$inside" = 0 ] && [ "$all" -gt 0 ] && echo "ok - the drive never wrote into the device BAR (QEMU trace)" ||
	echo "not ok - the drive never wrote into the device BAR (QEMU trace)" ;;
esac
