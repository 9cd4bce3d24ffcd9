#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# pipeline.sh make|check FOLDER: the way of a trained model, from a file of parameters to
# scores with a plan, by the commands of README.md, "Bring a model". make only leaves in FOLDER what
# guest.sh scores; check looks at it from outside, and prints TAP.
set -euo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
what=$1 out=$2
data=$top/tools/data tsv=$top/tools/data/sample.tsv
csrec=${CSREC:-$top/build/tools/csrec}
bound=0.2 dram=800000

mkdir -p "$out"
cd "$out"
# small enough for rows of all tiers, on a drive slow enough for TT rows to be worth it
printf '{"csrec_devices": 1, "devices": [{"name": "small", "dram_bytes": %d, "onchip_bytes": 262144,
	"nvme_bytes_per_s": 3.2e9, "nvme_iops": 20000, "clock_hz": 3e8}]}\n' $dram >dev.json
python3 "$top/tests/plan/pipeline.py" "$top" export "$data/sample.crm" dlrm.safetensors
"$csrec" convert --safetensors dlrm.safetensors -o converted.crm >log
"$csrec" profile --format criteo --input "$tsv" --model converted.crm -o stats.json >>log 2>&1
"$csrec" tt --model converted.crm --table C3 --shape 50,50,40 --ranks 8,8 -o model.crm >>log
"$csrec" plan --model model.crm --stats stats.json --devices dev.json --block 512 --tt-error $bound -o plan.json >>log
"$csrec" install-cold --model model.crm --plan plan.json --drive cold.img --force >>log
"$csrec" infer --model model.crm --plan plan.json --backend golden --input "$tsv" -o scores --details details \
	--report planned.report >>log
[ "$what" = check ] || exit 0

set +e
n=0 failed=0
result() { n=$((n + 1)); if [ "$1" = 0 ]; then echo "ok $n - $2"; else failed=1; echo "not ok $n - $2"; fi; }
scored() { # NAME MODEL: scores without a plan
	"$csrec" infer --model "$2" --backend golden --input "$tsv" --report "$1.report" --details "$1.details" >>log
}
scored trained "$data/sample.crm"
scored converted converted.crm
scored tt model.crm
echo "# step        AUC       log-loss"
for step in trained converted tt planned; do
	printf '# %-10s  %.6f  %.6f\n' $step "$(jq .auc $step.report)" "$(jq .logloss $step.report)"
done
jq -e -n 'def auc: input | .auc; auc as $a | auc as $b | ($a - $b) | fabs < 1e-5' trained.report converted.report >/dev/null
result $? "conversion keeps the AUC"
jq -e -n 'def auc: input | .auc; auc as $a | auc as $b | ($a - $b) | fabs < 0.01' trained.report planned.report >/dev/null
result $? "TT forms and the plan keep it within 0.01"
jq -e '[.tables[].tier] | index("dram") and index("tt") and index("split")' plan.json >/dev/null
result $? "some tables are in DRAM, some in TT form, some split"
jq -e '[.tables[] | select(.hot.count > 0 and .tt.count > 0 and .slots > 0)] | length > 0' plan.json >/dev/null
result $? "some table has rows in all three tiers"
"$csrec" install-cold --model model.crm --plan plan.json --drive cold.img --verify >>log 2>&1
result $? "the cold rows are as installed"
jq '.devices += [.devices[0] | .name = "d1"]' dev.json >dev2.json
"$csrec" plan --model model.crm --stats stats.json --devices dev2.json -o two.json >>log &&
	! "$csrec" infer --model model.crm --plan two.json --backend golden --input "$tsv" >refused 2>&1 &&
	grep -q 'plan for 2 devices' refused
result $? "a plan for two devices is made, and infer says that it cannot run it"
jq '.devices[0].dram_bytes = 1500000' dev.json >larger.json
"$csrec" plan --model model.crm --stats stats.json --devices larger.json --tt-error 0 -o exact.json >>log &&
	"$csrec" infer --model model.crm --plan exact.json --backend golden --input "$tsv" -o exact >>log &&
	cut -f3 tt.details | tail -n +2 | cmp -s - exact
result $? "without TT rows of its own a plan changes no bit"
tail -n 1000 "$tsv" >half.tsv
again=(--plan plan.json --model model.crm --block 512 --tt-error "$bound")
"$csrec" profile --format criteo --input half.tsv --model model.crm -o half.json >>log &&
	"$csrec" replan "${again[@]}" --devices dev.json --stats stats.json -o same.json >>log &&
	jq -e '[.migration | .rows, .bytes | .[]] | add == 0' same.json >/dev/null
result $? "by the same statistics nothing moves"
"$csrec" replan "${again[@]}" --devices dev.json --stats half.json -o new.json >>log &&
	"$csrec" infer --model model.crm --plan new.json --backend golden --input "$tsv" --details new.details >>log
result $? "by others a new plan is made, and scores"
"$csrec" replan "${again[@]}" --devices dev2.json --stats half.json -o none.json >refused 2>&1
[ $? = 7 ] && grep -q 'replan takes one' refused && [ ! -e none.json ]
result $? "replan onto two devices is refused"
echo "1..$n"
python3 "$top/tests/model/ref64.py" --model model.crm --plan new.json --input "$tsv" --scores new.details || failed=1
python3 "$top/tests/plan/pipeline.py" "$top" moved model.crm plan.json new.json half.tsv || failed=1
python3 "$top/tests/model/ref64.py" --model model.crm --plan plan.json --input "$tsv" --scores details || failed=1
python3 "$top/tests/plan/pipeline.py" "$top" check model.crm plan.json "$tsv" $bound $dram || failed=1
exit $failed
