#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# libcsrec with the real driver and device, in the guest, and a file system on its drive.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
insmod "$top/build/kernel/$(uname -r)/csrec.ko" || { echo "not ok - csrec.ko loads"; exit 1; }
mkdir -p /tmp/drive
if ! { modprobe -q ext4; mkfs.ext4 -q -F /dev/nvme0n1 && mount -t ext4 /dev/nvme0n1 /tmp/drive; }; then
	echo "not ok - a file system on the drive"
	exit 1
fi
"$top/build/tests-userspace/guest_lib" /tmp/drive/file
status=$?
umount /tmp/drive
rmmod csrec || { echo "not ok - csrec.ko unloads"; status=1; }
exit $status
