#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The guest's part of `make demo`: demo-guest.sh INPUT LIMIT.
set -eu
cd /csrec
insmod "build/kernel/$(uname -r)/csrec.ko"
tests/model/demo-guest.sh "$1" "$2" /out
rmmod csrec
