#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# By guest_lib: has all reads of the drive below its file fail (on), or not any more (off).
set -e
case $1 in
on) table="0 32768 error" ;;
off) table="0 32768 linear /dev/nvme0n1 0" ;;
esac
dmsetup suspend --nolockfs --noudevsync part0
echo "$table" | dmsetup load part0
dmsetup resume --noudevsync part0
