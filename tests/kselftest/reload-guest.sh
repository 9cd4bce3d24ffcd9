#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# reload-guest.sh ROUNDS, in a guest: loads and unloads the driver so often, with work killed
# in flight in between, and looks for what was not given back. TAP; figures go to
# /out/reload.json, counts of results to /out/kselftest.json.
#
# A leak shows in every round. So rounds come in BLOCKS blocks of equal length; between the
# blocks the objects of each kmalloc cache are counted, and the pages of which the kernel says
# what they are: free, in slabs, on the lists of files and processes, page tables, stacks.
# What was lost in every block is what leaked: the least loss of any block, times the blocks.
# What only fluctuates has a block without loss. Less than one thing in two rounds is no leak.
# That this finds leaks is tested first, with rounds that leave something behind.
#
# Needs slub_debug=F,kmalloc-* on the kernel's command line: objects of these caches are
# counted exactly then.
set -u
cd "$(dirname "$0")/../.." || exit 1
rounds=$1
BLOCKS=5
module=build/kernel/$(uname -r)/csrec.ko
tmp=$(mktemp -d)
n=0

tap() { # NAME STATUS
	n=$((n + 1))
	if [ "$2" = 0 ]; then echo "ok $n - reload: $1"; else echo "not ok $n - reload: $1"; fi |
		tee -a "$tmp/tap"
}

# "pages N" and "objects CACHE N" lines, once what can be given back was.
count() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
	echo 3 >/proc/sys/vm/drop_caches
	# KASAN keeps what was freed for a while, but not from this
	echo 1 | tee /sys/kernel/slab/*kmalloc-*/shrink >/dev/null
	cat /proc/vmstat /proc/zoneinfo | awk '
		/^nr_(free_pages|slab_.*|zone_(in)?active_.*|zone_unevictable|page_table_pages) / { n += $2 }
		/^nr_kernel_stack / { n += $2 / 4 }
		$1 == "count:" { n += $2 }
		END { print "pages", n }'
	awk '{ print "objects", FILENAME, $1 }' /sys/kernel/slab/*kmalloc-*/objects
}

# measure COMMAND ROUNDS: sets pages, objects (and cache, the one which lost most): what leaked.
measure() {
	local block i per_block=$(($2 / BLOCKS))
	"$1" 0 || return
	count >"$tmp/0"
	for ((block = 1; block <= BLOCKS; block++)); do
		for ((i = 0; i < per_block; i++)); do "$1" "$i" || return; done
		count >"$tmp/$block"
	done
	for ((block = 1; block <= BLOCKS; block++)); do
		paste -d ' ' "$tmp/$((block - 1))" "$tmp/$block"
	done >"$tmp/blocks"
	awk -v blocks=$BLOCKS -v floor=$((per_block / 2)) '
		function lost(k, d) { if (!(k in least) || d < least[k]) least[k] = d }
		$1 == "pages" { lost("pages", $2 - $4) }
		$1 == "objects" && $2 == $5 { lost($2, $6 - $3) }
		END {
			for (k in least)
				if (k != "pages" && least[k] > most) { most = least[k]; who = k }
			p = least["pages"] > floor ? least["pages"] * blocks : 0
			o = most > floor ? most * blocks : 0
			print p, o, o ? who : "-"
		}' "$tmp/blocks" >"$tmp/leaked"
	read -r pages objects cache <"$tmp/leaked"
	echo "# $1: leaked pages $pages, objects $objects ($cache); pages known" \
		"$(awk '$1 == "pages" { printf "%s ", $2; last = $4 } END { print last }' "$tmp/blocks")"
}

leak() {	# a pipe that stays open, with eight pages in it
	mkfifo "$tmp/fifo"
	# shellcheck disable=SC2034 # nobody closes it
	exec {fd}<>"$tmp/fifo"
	head -c 32768 /dev/zero >&"$fd"
	rm "$tmp/fifo"
}
reload() {
	insmod "$module" || return
	[ $(($1 % 10)) != 0 ] || build/kselftest/reload || return
	rmmod csrec
}
# What must be the same before and after, exactly.
state() {
	awk '/^nr_foll_pin_/ { pins += /acquired/ ? $2 : -$2 } END { print "pinned", pins }' /proc/vmstat
	wc -l </proc/iomem
	wc -l </proc/interrupts
	# not stacks of threads, which the kernel starts as it likes
	grep -cE ' (ioremap|vmap)|execmem' /proc/vmallocinfo
	ls /dev /sys/class
}

echo "TAP version 13"
# enough to be seen
measure leak 50
tap "pages that leak in each round are seen" $((pages < 100))
tap "an object that leaks in each round is seen" $((objects < 40))

dmesg -C
reload 0
state >"$tmp/before"
measure reload "$rounds"
status=$?
tap "$rounds times" $status
state >"$tmp/after"
diff "$tmp/before" "$tmp/after" >"$tmp/diff"
tap "pinned pages, mappings, interrupts and nodes as before" $?
sed 's/^/# /' "$tmp/diff"
tap "no pages leak" $((pages > 0))
tap "no objects leak" $((objects > 0))
dmesg | tests/guest/log-reports >"$tmp/reports"
tap "kernel log is clean" $?
sed 's/^/# /' "$tmp/reports"
tests/kselftest/tally "$(uname -r)" "$(wc -l <"$tmp/reports")" <"$tmp/tap" >/out/kselftest.json
[ $status != 0 ] || echo "{\"reload_count\": $((rounds / BLOCKS * BLOCKS)), \"leaked_pages\": $pages}" >/out/reload.json
echo "1..$n"
