#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Parts of pipeline.sh that share no code with csrec:

    pipeline.py TOP export MODEL.crm OUT.safetensors     parameters by dlrm's keys
    pipeline.py TOP moved MODEL.crm OLD.json NEW.json TSV    what replan says of the way
    pipeline.py TOP check MODEL.crm PLAN.json TSV TT_ERROR DRAM   what the plan says of the rows
"""

import json
import sys

import numpy as np

top, what, path, *rest = sys.argv[1:]
sys.path.insert(0, top + "/tests/model")
import ref64  # noqa: E402

model = ref64.load_model(path)


def export(out):
    sections = ref64.load_sections(path)
    names = [sections[6, 0][i:i + 16].rstrip(b"\0").decode() for i in range(0, len(sections[6, 0]), 64)]
    tensors = {f"emb_l.{i}.weight": rows for i, (_, rows) in enumerate(model["tables"])}
    count = {"bot": 0, "top": 0}
    for name, (w, b, _) in zip(names, model["layers"]):
        key = f"{name[:3]}_l.{2 * count[name[:3]]}"
        count[name[:3]] += 1
        tensors[key + ".weight"], tensors[key + ".bias"] = w, b
    head, data = {}, b""
    for key, a in tensors.items():
        raw = a.astype("<f4").tobytes()
        head[key] = {"dtype": "F32", "shape": list(a.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(head).encode()
    with open(out, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + data)


def check(plan_path, tsv, bound, room):
    results = []

    def ok(good, name):
        results.append(good)
        print("ok" if good else "not ok", len(results), "-", name)

    with open(plan_path, encoding="utf-8") as f:
        plan = json.load(f)
    with open(tsv, "rb") as f:
        _, cats, _ = ref64.load_clicks(tsv, range(1, sum(1 for _ in f) + 1))
    over = ref64.load_sections(plan_path + ".overlay")
    order_ok = disjoint = True
    error = tt_rows = onchip = dram = 0
    for i, (name, rows) in enumerate(model["tables"]):
        place = plan["tables"][name]
        if place["tier"] == "dram":
            dram += rows.size * 4
        if place["tier"] != "split":
            continue
        dram += 4 * rows.shape[1] * place["hot"]["count"] + place.get("slots", 0) * plan["cold"]["block"]
        n = len(rows)
        counts = np.bincount((cats[:, i] % np.uint64(n)).astype(np.int64), minlength=n)
        order = np.frombuffer(over[5, i], dtype="<u4")
        order_ok &= np.array_equal(order, np.lexsort((np.arange(n), -counts)))
        hot = place["hot"]["count"]
        if "tt" not in place:
            continue
        m = place["tt"]["count"]
        disjoint &= 0 < hot + m <= n and ("slots" in place) == (hot + m < n)
        _, values = ref64.load_table(over, i, over[2, 0][64 * i:64 * i + 64])
        # rows that never came count together as those that came once
        unseen = max((counts == 1).sum(), 1) / max((counts == 0).sum(), 1)
        w = np.where(counts > 0, counts, min(unseen, 1))
        lost = ((rows[order[hot:hot + m]] - values) ** 2).sum(1)
        error += (w[order[hot:hot + m]] * lost).sum() / (w * (rows ** 2).sum(1)).sum() / len(model["tables"])
        tt_rows += m
        p, q, r = place["tt"]["p"], place["tt"]["q"], [1, *place["tt"]["ranks"], 1]
        onchip += sum(-(-4 * p[k] * r[k] * q[k] * r[k + 1] // 64) * 64 for k in range(3))
    said = plan["prediction"]["tt_error"]
    ok(order_ok, "the overlay's order is by accesses, counted here")
    ok(disjoint and tt_rows > 0, f"{tt_rows} rows are in TT form, slots are where rows are cold")
    ok(abs(said - error ** 0.5) < 1e-4 * said and said <= bound,
       f"the error that it says they have, {said:.5f}, is what they have, and within the bound")
    ok(0 < onchip <= plan["devices"][0]["bytes"]["onchip"], "their cores are counted on chip")
    ok(dram <= plan["devices"][0]["bytes"]["dram"] <= room, "hot rows, whole tables and slots fit the DRAM")
    print(f"1..{len(results)}")
    sys.exit(not all(results))


def tiers(plan_path):
    """Per table that is not in TT form: tier of each row (0 DRAM, 1 TT, 2 cold), its place there,
    or None for tables that lie whole in DRAM; and the bytes of its part of the extent."""
    with open(plan_path, encoding="utf-8") as f:
        plan = json.load(f)
    over = ref64.load_sections(plan_path + ".overlay")
    block = plan["cold"]["block"]
    found = []
    for i, (name, rows) in enumerate(model["tables"]):
        place = plan["tables"][name]
        if place["tier"] == "tt":
            continue
        n, stride = len(rows), 4 * rows.shape[1]
        assert stride & (stride - 1) == 0 and stride <= block
        if place["tier"] == "dram":
            found.append((i, np.zeros(n, int), None, stride, 0))
            continue
        cuts = [0, place["hot"]["count"], place["hot"]["count"] + place.get("tt", {}).get("count", 0), n]
        tier, at = np.empty(n, int), np.empty(n, int)
        order = np.frombuffer(over[5, i], dtype="<u4")
        assert np.array_equal(np.sort(order), np.arange(n))
        for k in range(3):
            tier[order[cuts[k]:cuts[k + 1]]] = k
            at[order[cuts[k]:cuts[k + 1]]] = np.arange(cuts[k + 1] - cuts[k])
        found.append((i, tier, at, stride, -(-(n - cuts[2]) * stride // block) * block))
    return plan, found


def moved(old_path, new_path, tsv):
    _, old = tiers(old_path)
    plan, new = tiers(new_path)
    said, block = plan["migration"], plan["cold"]["block"]
    with open(tsv, "rb") as f:
        cats = ref64.load_clicks(tsv, range(1, sum(1 for _ in f) + 1))[1]
    names = ("dram", "onchip", "nvme")
    rows, accesses = np.zeros((3, 3), int), np.zeros((2, 3))
    dram = least = nvme = 0
    ends = [sum(x[4] for x in side) for side in (old, new)]
    # before the data: a directory of 64 bytes a table, checksums of 4 bytes a block
    lead = [-(-64 * sum(x[4] > 0 for x in side) // block) - (-4 * (end // block) // block)
            for side, end in zip((old, new), ends)]
    shifted = lead[0] != lead[1]
    for (i, t0, at0, _, _), (_, t1, at1, stride, _) in zip(old, new):
        np.add.at(rows, (t0, t1), 1)
        ids = (cats[:, i] % np.uint64(len(t0))).astype(np.int64)
        for k in range(2):
            accesses[k] += np.bincount((t0, t1)[k][ids], minlength=3)
        if at1 is None:
            dram += 0 if at0 is None else stride * len(t1)
            least += 0 if at0 is None else stride * len(t1)
            continue
        fresh = (t1 == 0) & ((t0 != 0) | (True if at0 is None else at0 != at1))
        dram += stride * fresh.sum()
        # who was in DRAM at a place that there still is, can stay there
        hot = (t1 == 0).sum()
        least += stride * (hot - (0 if at0 is None else ((t0 == 0) & (t1 == 0) & (at0 < hot)).sum()))
    at = [0, 0]
    for (_, t0, at0, _, b0), (_, t1, at1, stride, b1) in zip(old, new):
        if at1 is not None:
            cold = t1 == 2
            fresh = cold & ((t0 != 2) | (True if at0 is None else at0 != at1))
            units = np.unique(at1[fresh] * stride // block)
            nvme += b1 if at[0] != at[1] or shifted else len(units) * block
        at = [at[0] + b0, at[1] + b1]
    good = {f"{a}_to_{b}": int(rows[k, n]) for k, a in enumerate(names) for n, b in enumerate(names) if k != n}
    results = [(good == said["rows"], "rows that change tier, counted here"),
               (dram == said["bytes"]["dram"] == least, f"{dram} bytes into DRAM, and fewer are not possible"),
               (nvme == said["bytes"]["nvme"], f"{nvme} bytes onto the drive"),
               (all(said["accesses"][s][n] == accesses[k, j] for k, s in enumerate(("before", "after"))
                    for j, n in enumerate(names)), "accesses by tier, by either plan")]
    for n, (right, name) in enumerate(results, 1):
        print("ok" if right else "not ok", n, "-", name)
    print(f"1..{len(results)}")
    sys.exit(not all(right for right, _ in results))


if what == "export":
    export(*rest)
elif what == "moved":
    moved(*rest)
else:
    check(rest[0], rest[1], float(rest[2]), int(rest[3]))
