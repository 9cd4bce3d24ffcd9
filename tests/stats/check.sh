#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# csrec profile and trace against numpy. Each part is a TAP stream of its own.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/userspace/tap.sh
. "$top/tests/userspace/tap.sh"
csrec=${CSREC_MODEL:-$top/build/tools/csrec-model}
oracle=$top/tests/stats/oracle.py
sample=$top/tools/data/sample.tsv
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1

profile() { "$csrec" profile -o "$tmp/s.json" "$@"; }
trace() { "$csrec" trace "$@"; }
# agrees NAME ORACLE-ARGUMENTS...: a stream of its own
agrees() {
	local name=$1; shift
	python3 "$oracle" "$@" >out 2>&1 || grep -q '^not ok' out || echo "not ok - oracle of: $name" >>out
	sed "s/^\(not ok\|ok\) [0-9]* - /&$name: /" out
}

tap "Criteo" profile --format criteo --input "$sample"
agrees "Criteo" criteo "$sample" s.json
tap "Criteo, ids modulo rows" profile --format criteo --input "$sample" --rows 700
agrees "Criteo, ids modulo rows" criteo "$sample" s.json --rows 700
cp s.json a.json
gzip -c "$sample" >sample.gz
tap "Criteo, compressed" profile --format criteo --input sample.gz --rows 700
tap "gives the same" sh -c "grep -v source a.json | grep -v order_file >a; grep -v source s.json | grep -v order_file | cmp - a"
python3 - "$sample" >day.bin <<-'END'
	import sys
	import numpy as np
	rows = [line.rstrip("\n").split("\t") for line in open(sys.argv[1])]
	out = np.array([[int(v or "0") for v in r[:14]] + [int(v or "0", 16) % 100000 for v in r[14:]]
	                for r in rows], dtype="<i4")
	sys.stdout.buffer.write(out.tobytes())
END
tap "MLPerf" profile --format mlperf --input day.bin
agrees "MLPerf" mlperf day.bin s.json
python3 - <<-'END'
	import numpy as np
	rng = np.random.default_rng(7)
	def ids(samples, hot, dtype="<i4"):
	    return (rng.pareto(1.1, (samples, hot)) * 30).clip(0, 40000).astype(dtype)
	# more than one buffer of samples; array 10 sorts before array 2
	hots = [3, 2, 1, 2, 6, 1, 1, 100, 1, 7, 27]
	many = {str(i): ids(20011, hot, "<i8" if i == 4 else "<i4") for i, hot in enumerate(hots)}
	np.savez("m.npz", **many)
	np.savez_compressed("mz.npz", **many)
	np.savez("gap.npz", **{"0": ids(9, 1), "2": ids(9, 1)})
	np.savez("uneven.npz", **{"0": ids(9, 1), "1": ids(8, 1)})
	np.savez("float.npz", **{"0": ids(9, 1, "<f4")})
	np.savez("cube.npz", **{"0": ids(9, 4).reshape(9, 2, 2)})
	np.savez("below.npz", **{"0": ids(9, 1), "1": ids(9, 2) * np.array([1, -1], "<i4") - 1})
	np.savez("none.npz", **{"0": ids(0, 3)})
	np.savez("empty.npz", **{"0": np.zeros((1 << 58, 0), "<i4")})
	np.savez("one.npz", **{"0": ids(50, 1).ravel()})
	data = bytearray(open("m.npz", "rb").read())
	data[len(data) // 2] ^= 1
	open("flip.npz", "wb").write(data)
END
tap "multi-hot" profile --format npz --input m.npz
agrees "multi-hot" npz m.npz s.json
cp s.json a.json
tap "multi-hot, compressed" profile --format npz --input mz.npz
tap "gives the same" sh -c "grep -v source a.json | grep -v order_file >a; grep -v source s.json | grep -v order_file | cmp - a"
tap "multi-hot, one id a sample" profile --format npz --input one.npz --rows 37
agrees "multi-hot, one id a sample" npz one.npz s.json --rows 37
tap "a model's tables" profile --format criteo --input "$sample" --model "$top/tools/data/sample.crm" --json
tap "have its names and rows" jq -e '.tables[3].name == "C4" and .tables[3].rows == 4000 and (.cooccurrence.pairs | length) > 0' s.json

tap "Zipf" trace --alpha 1.2 --tables 2 --rows 30000 --lookups 10 --samples 10000 -o z_j.bin
agrees "Zipf" zipf z_j.bin 1.2 --rows 30000 --lookups 10
tap "the same again" trace --alpha 1.2 --tables 2 --rows 30000 --lookups 10 --samples 10000 -o y_j.bin
tap "is the same" sh -c "cmp z_0.bin y_0.bin && cmp z_1.bin y_1.bin && ! cmp -s z_0.bin z_1.bin"
tap "another seed" trace --alpha 1.2 --rows 30000 --lookups 10 --samples 10000 --seed 2 -o y_j.bin
tap "is another" sh -c "! cmp -s z_0.bin y_0.bin"
tap "a trace" profile --format dlrm-trace --input z_j.bin --lookups 10
agrees "a trace" trace z_j.bin s.json --lookups 10
tap "exponent 1" trace --alpha 1 --rows 1000 --samples 100000 -o e_j.bin
agrees "exponent 1" zipf e_j.bin 1 --rows 1000
for k in 0 1 2; do
	tap "locality $k" trace --kind locality --locality $k --lookups 20 --samples 2000 -o "l${k}_j" --text
	agrees "locality $k" locality "l${k}_j" $k --lookups 20
done
tap "a text trace" profile --format dlrm-trace --input l0_j --lookups 20
agrees "a text trace" trace l0_j s.json --lookups 20
# in the form of dlrm_datasets' locality_stats.txt
cat >hist.txt <<-END
	Avg # of indices: 100
	Histogram of col sizes:
	(0, 1]: 0.473
	(1, 2]: 0.152
	(2, 4]: 0.139
	(4, 8]: 0.112
	(8, 16]: 0.072
	(16, 32]: 0.052
	(32+: 0.000
	[0, 1, 2, 4, 8, 16, 32]
END
tap "a histogram" trace --kind reuse --histogram hist.txt --rows 1000000 --samples 200000 -o h_j
agrees "a histogram" reuse h_j hist.txt
tap "too few rows for it" exits 7 "by this histogram" trace --kind reuse --histogram hist.txt --rows 100 --samples 20000 -o i_j
echo '{"arch_embedding_size": "100-2000-30", "num_indices_per_lookup": 4}' >arch.json
tap "shapes of a model description" trace --arch arch.json --samples 10 -o m_j --json
tap "are its" sh -c "[ \$(stat -c %s m_0) = 320 ] && [ -e m_2 ] && ! [ -e m_3 ]"
printf '5, 7, 9, 11\n0, 1, 2\n0.5, 0.75, 1.0\n' >dist_emb_0.log
tap "dlrm's distributions" profile --format dlrm-dist --input dist_emb_j.log --samples 20000
# new rows, the one before, and the one before that: a half of four rows comes new
tap "half of it new, all rows the same often" jq -e '.tables[0] | .unique == 4 and .rows == 12 and .accesses == 20000
	and (.reuse_log2[1] / .accesses | . > 0.23 and . < 0.27)' s.json

# counting in little memory
tap "a large table" trace --alpha 1.1 --rows 2000000 --lookups 40 --samples 10000 -o big_j
tap "by a sketch" profile --format dlrm-trace --input big_j --lookups 40 --memory 1M
tap "says so" jq -e '.exact == false and .tables[0].slack > 0' s.json
agrees "by a sketch" trace big_j s.json --lookups 40

# bad input
{ head -n 3 "$sample"; echo nonsense; sed -n 4,5p "$sample"; } >bad.tsv
tap "a malformed line is counted" sh -c "'$csrec' profile --format criteo --input bad.tsv -o b.json --json | jq -e '.malformed == 1 and .samples == 5'"
tap "or ends it" exits 7 "bad.tsv: line 4" profile --format criteo --input bad.tsv --strict
head -c 1000 day.bin >cut.bin
tap "half a record" exits 7 "40 of 160 bytes" profile --format mlperf --input cut.bin
tap "a missing array" exits 7 "none named 1" profile --format npz --input gap.npz
tap "arrays of uneven length" exits 7 "array 1 has 8 samples" profile --format npz --input uneven.npz
tap "ids that are no whole numbers" exits 7 "'<f4'" profile --format npz --input float.npz
tap "three dimensions" exits 7 "3 dimensions" profile --format npz --input cube.npz
tap "an id below 0" exits 7 "array 1, sample 0: id -" profile --format npz --input below.npz
tap "a changed bit" exits 7 "checksum" profile --format npz --input flip.npz
tap "samples without ids" exits 7 "array 0 has no ids" profile --format npz --input empty.npz
tap "no samples" exits 7 "no sample" profile --format npz --input none.npz
head -c 100000 m.npz >cut.npz
tap "half an npz" exits 7 "cut.npz" profile --format npz --input cut.npz
tap "no npz" exits 7 "no zip directory" profile --format npz --input day.bin
head -c 3000 sample.gz >cut.gz
tap "half an archive" exits 7 "cut.gz" profile --format criteo --input cut.gz
printf '1, 2, x3' >n_0
tap "no number" exits 7 "byte 0x78" profile --format dlrm-trace --input n_j
printf '1, 99999999999999999999999' >n_0
tap "too large a number" exits 7 "too large" profile --format dlrm-trace --input n_j
printf '1, 5000000000' >n_0
tap "an id past 32 bits" exits 7 "--rows" profile --format dlrm-trace --input n_j
tap "no such file" exits 7 "/nonexistent" profile --format criteo --input /nonexistent
tap "a folder" exits 7 "directory" profile --format criteo --input "$tmp"
tap "an empty file" exits 7 "no sample" profile --format criteo --input /dev/null
tap "no such format" exits 2 "--format" profile --format csv --input "$sample"
cp "$sample" in.tsv
mkfifo pipe
tap "an output that is a pipe" exits 1 "pipe: not a regular file" "$csrec" profile --format criteo --input in.tsv -o pipe
tap "which is one still" test -p pipe
echo precious >victim
ln -s victim s2.json.tmp
tap "no fixed name beside the output" profile --format criteo --input in.tsv -o s2.json
tap "that others could choose" sh -c '[ "$(cat victim)" = precious ] && [ ! -L s2.json ]'
cp in.tsv in.order
tap "a companion that is the input" exits 2 "in.order: is read" "$csrec" profile --format criteo --input in.order -o in
tap "which is as it was" cmp in.tsv in.order
tap "an output that is the input" exits 2 "would be overwritten" "$csrec" profile --format criteo --input in.tsv -o in.tsv
tap "which stays as it was" cmp in.tsv "$sample"
tap "an output that cannot be" exits 1 "/proc/x" "$csrec" profile --format criteo --input "$sample" -o /proc/x
tap "leaves nothing half done" sh -c '[ -z "$(find . -name "*.json.??????" -o -name "*.order.??????")" ]'
tap "alpha 0" exits 7 "alpha" trace --alpha 0 -o x_j
tap "a name without j" exits 2 "has no 'j'" trace -o /tmp/trace
printf '1, 2\n0, 1\n0.5, 0.4\n' >d_0.log
tap "chances that fall" exits 7 "entry 1" profile --format dlrm-dist --input d_j.log
printf '1, 2\n0, 9\n0.5, 1\n' >d_0.log
tap "a distance past the rows" exits 7 "distance 9" profile --format dlrm-dist --input d_j.log
tap_done
