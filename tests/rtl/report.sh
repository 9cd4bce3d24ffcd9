#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Puts keys into build/reports/rtl.json, and leaves the others there as they are:
#
#   report.sh JQ-ARGUMENT... EXPRESSION     such as: --argjson n 5 '{fp: {pairs: $n}}'
#
# The expression makes an object of the keys; its input is the file as it is.
set -eu

file=$(dirname "$0")/../../build/reports/rtl.json
mkdir -p "$(dirname "$file")"
exec 9>"$file.lock"
flock 9
[ -s "$file" ] || echo '{}' >"$file"
for last; do :; done
keys=$(jq "$@" "$file") || { echo "report.sh: no keys from '$last'" >&2; exit 1; }
jq --argjson keys "$keys" '. + $keys' "$file" >"$file.new"
mv "$file.new" "$file"
