#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# In the guest of bus.sh: plugs the second drive, so that it is the second by its name as well, and
# runs what needs it; then the rest, which leaves no device.
cd "$(dirname "$0")/../.." || exit 1
bad=/dev/nvme1n1
tests/guest/monitor device_add nvme,id=bad-drive,drive=bad,serial=bad,bus=d2 &&
	timeout 60 sh -c "until [ -b $bad ]; do sleep 0.1; done" || { echo "not ok - a drive is plugged"; exit 1; }
CSREC_BAD=$bad CSREC_HUNG="$bad bad" tests/kselftest/run.sh p2p_error p2p_hang p2p_uring bus
