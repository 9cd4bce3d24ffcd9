#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What `make shell` runs in the guest: loads the driver, gives a shell.
cd /csrec || exit 1
export PATH=/csrec/build/tools:$PATH
insmod "build/kernel/$(uname -r)/csrec.ko" || echo "csrec.ko did not load; see dmesg"
echo "csrec guest, kernel $(uname -r). The checkout is /csrec (read-only); /out is writable,"
echo "build/vm/run on the host."
echo "Try: csrec list; csrec info; csrec copy --verify; csrec infer --help. Leave with exit."
exec bash
