#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# In the guest: lays what check.sh installed over the root and uses it. Prints TAP lines.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/userspace/tap.sh
. tests/userspace/tap.sh
modprobe overlay
mkdir -p /tmp/root
mount -t overlay -o "lowerdir=/csrec/build/packaging/installed:/" overlay /tmp/root ||
	{ echo "not ok - what was installed can be seen"; exit 1; }
for dir in proc sys dev; do mount --rbind /$dir /tmp/root/$dir; done
mount -t tmpfs tmpfs /tmp/root/run
mount -t tmpfs tmpfs /tmp/root/tmp
# systemd's tools do nothing in a chroot, if not told that this one is meant
inside() { SYSTEMD_IGNORE_CHROOT=1 chroot /tmp/root "$@"; }

inside /usr/lib/systemd/systemd-udevd --daemon
tap "modprobe loads the driver that DKMS built" inside modprobe csrec
inside udevadm settle --timeout=60
dkms() { inside modinfo -F filename csrec | grep updates/dkms && lsmod | grep '^csrec '; }
tap "it is that one" dkms
tap "group csrec may use the device, and nobody else" shows '^660 csrec$' inside stat -c '%a %G' /dev/csrec0
tap "and allocate device memory" shows '^660 csrec$' inside sh -c 'stat -c "%a %G" /sys/bus/pci/drivers/csrec/*/p2pmem/allocate'
tap "csrec list finds it" json '.devices[0].node == "/dev/csrec0"' inside csrec list --json
inside udevadm control --exit
tap "and it is unloaded" rmmod csrec
