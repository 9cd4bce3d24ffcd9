#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Writes a plan with an overlay: make_plan.py TOP PLACEMENT OUT. Every second split table of
the sample's placement gets TT rows after its hot ones, in an order of the overlay's own, and
one of them no cold row at all. The cores are random: whoever reads them right agrees with
ref64.py, and whoever takes the model's rows instead does not."""

import json
import struct
import sys

import numpy as np

top, placement, out = sys.argv[1:]
sys.path.insert(0, top + "/tools/train")
import crmodel as cr  # noqa: E402

rng = np.random.default_rng(11)
with open(placement, encoding="utf-8") as f:
    plan = json.load(f)
with open(top + "/tools/data/sample.crm", "rb") as f:
    model = f.read()
dir_off, count = struct.unpack_from("<QI", model, 24)
tables = next(model[off:off + n] for kind, _, off, n in
              (struct.unpack_from("<IIQQ", model, dir_off + 64 * i) for i in range(count))
              if kind == cr.TABLES)

w = cr.Writer({"name": "overlay of a test"})
splits = 0
for i in range(len(tables) // 64):
    name, _, _, dim, _, nrows = struct.unpack_from("<16sBBHIQ", tables, 64 * i)
    name = name.rstrip(b"\0").decode()
    place = plan["tables"][name]
    splits += place["tier"] == "split"
    if place["tier"] != "split" or "count" not in place["hot"] or splits % 2:
        w.tables.append(struct.pack("<16sBBHIQ32x", name.encode(), 0, 0, dim, 0, nrows))
        continue
    order = rng.permutation(nrows)
    hot = place["hot"]["count"]
    rest = splits == 4		# this one has no cold rows
    p, q, r = (4, 5, -(-(nrows - hot if rest else 300) // 20)), (2, dim // 4, 2), (3, 5)
    n = nrows - hot if rest else p[0] * p[1] * p[2] - 7
    ranks = (1, *r, 1)
    w.tt_table(name, n, [rng.normal(0, 0.5, (p[k], ranks[k], q[k], ranks[k + 1]))
                         for k in range(3)])
    w._section(cr.ORDER, i, name + " order", order.astype("<u4").tobytes())
    place["tt"] = {"count": n, "p": p, "q": q, "ranks": r}
    if rest:
        del place["slots"]
crc = w.write(out + ".overlay")
plan["overlay"] = {"file": out.rsplit("/", 1)[-1] + ".overlay", "crc32c": crc}
with open(out, "w", encoding="utf-8") as f:
    json.dump(plan, f, indent=1)
