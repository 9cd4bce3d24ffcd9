#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Boots a guest that loads and unloads the driver ROUNDS times (default 50), and enters what
# was measured into build/reports/driver.json. Inside the lab, by make -C tests/kselftest
# check and make check-reload_500:
#
#   tests/kselftest/reload.sh [KERNEL [ROUNDS]]
#
cd "$(dirname "$0")/../.." || exit 1
kernel=${1:-p2p}
name=reload
[ "$kernel" = p2p ] || name=reload-$kernel
tests/kselftest/guest reload "$kernel" --sim build/kselftest/csrec-sim-hang --limit 3000 \
	--append 'slub_debug=F,kmalloc-*' -- \
	tests/kselftest/reload-guest.sh "${2:-50}" || exit
[ ! -s "build/vm/$name/reload.json" ] || tests/report reload_count <"build/vm/$name/reload.json"
