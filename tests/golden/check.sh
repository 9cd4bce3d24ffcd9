#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Runs the golden model's tests from the build directory given; each prints a TAP
# stream of its own.
set -u
here=$(dirname "$0")
out=$1
status=0
python3 "$here/compute_test.py" "$out/libcsrec-golden.so" || status=1
"$out/sigmoid_test" || status=1
"$out/device_test_san" || status=1
exit $status
