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
guest_lib=$top/build/tests-userspace/guest_lib
"$guest_lib" /tmp/drive/file
status=$?
umount /tmp/drive

# Files on what is stacked on the drive: csrec_file_read() brings the same bytes.
stacked() {	# NAME DEVICE
	mkfs.ext4 -q -F "$2" && mount -t ext4 "$2" /tmp/drive ||
		{ echo "not ok - a file system on $1"; status=1; return; }
	"$guest_lib" /tmp/drive/file "$1" || status=1
	umount /tmp/drive
}
linear() {	# NAME SECTORS FIRST: a part of the drive
	echo "0 $2 linear /dev/nvme0n1 $3" | dmsetup create "$1" --noudevsync && dmsetup mknodes "$1"
}
for module in dm-mod raid0 loop; do
	modprobe -q $module
done
linear part0 32768 0 && linear part1 32768 32768
stacked dm-linear /dev/mapper/part0
mdadm --create /dev/md0 --run --force --assume-clean --metadata=1.0 --level=0 --raid-devices=2 \
	/dev/mapper/part0 /dev/mapper/part1 >/dev/null 2>&1
stacked md-raid0 /dev/md0
mdadm --stop /dev/md0 >/dev/null 2>&1
losetup /dev/loop0 /dev/mapper/part0
stacked loop /dev/loop0
losetup -d /dev/loop0

# A drive that fails under a file: its file system knows where the file is, and no more.
if mkfs.ext4 -q -F /dev/mapper/part0 && mount -t ext4 /dev/mapper/part0 /tmp/drive; then
	"$guest_lib" /tmp/drive/file dm-error "$top/tests/userspace/guest_error.sh" || status=1
	umount /tmp/drive
else
	echo "not ok - a file system on dm-error"
	status=1
fi
dmsetup remove --retry --noudevsync part0
dmsetup remove --retry --noudevsync part1
rmmod csrec || { echo "not ok - csrec.ko unloads"; status=1; }
exit $status
