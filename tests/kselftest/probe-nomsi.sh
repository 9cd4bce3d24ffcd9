#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# In a guest without MSI-X, by probe.sh: the driver refuses the device, and says why.
cd "$(dirname "$0")/../.." || exit 1
insmod "build/kernel/$(uname -r)/csrec.ko" && ! [ -e /dev/csrec0 ] && dmesg >/tmp/log &&
	grep 'csrec.*no MSI-X vector' /tmp/log && rmmod csrec && tests/guest/log-reports </tmp/log
