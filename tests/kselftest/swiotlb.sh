#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Boots a guest whose kernel bounces all DMA and has debugfs turned off, and tests the driver
# in it. Inside the lab,
# by make -C tests/kselftest check:
#
#   tests/kselftest/swiotlb.sh [KERNEL]
#
cd "$(dirname "$0")/../.." || exit 1
exec tests/kselftest/guest swiotlb "${1:-p2p}" --sim build/kselftest/csrec-sim-hang \
	--append "swiotlb=force debugfs=off" --limit 600 -- tests/kselftest/run.sh swiotlb
