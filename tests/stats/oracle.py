#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Independent counts of traces, with numpy.

    oracle.py criteo|mlperf|npz|trace INPUT STATS.json [--rows N] [--lookups N]
    oracle.py zipf|locality|reuse TRACE PARAMETER [--rows N] [--lookups N]

The first form compares all that a statistics file and its order file say with counts made
here; the second looks whether a trace has the distribution it was made for. Prints TAP."""

import argparse
import json
import os
import sys

import numpy as np

ap = argparse.ArgumentParser()
ap.add_argument("what")
ap.add_argument("input")
ap.add_argument("other")
ap.add_argument("--rows", type=int)
ap.add_argument("--lookups", type=int, default=1)
args = ap.parse_args()
results = []


def check(ok, name):
    results.append(bool(ok))
    print(f"{'ok' if ok else 'not ok'} {len(results)} - {name}")


def criteo(path):
    with open(path, "rb") as f:
        rows = [line.rstrip(b"\r\n").split(b"\t")[14:] for line in f]
    return np.array([[int(v or b"0", 16) for v in r] for r in rows], dtype=np.uint64).T[:, :, None]


def mlperf(path):
    return np.fromfile(path, dtype="<i4").reshape(-1, 40)[:, 14:].astype(np.uint64).T[:, :, None]


def npz(path):
    with np.load(path) as arrays:
        return [a.astype(np.uint64).reshape(len(a), -1)
                for a in (arrays[str(i)] for i in range(len(arrays.files)))]


def trace(pattern):
    tables = []
    j = pattern.rindex("j")
    while os.path.exists(name := pattern[:j] + str(len(tables)) + pattern[j + 1:]):
        with open(name, "rb") as f:
            raw = f.read()
        ids = (np.frombuffer(raw, dtype="<u8") if b"\0" in raw[:4096] else
               np.array(raw.replace(b",", b" ").split(), dtype=np.uint64))
        tables.append(ids[:len(ids) // args.lookups * args.lookups].reshape(-1, args.lookups))
    n = min(len(t) for t in tables)
    return np.stack([t[:n] for t in tables])


def reuse(ids):
    """By bit length of the distance to the last access of the row; [0]: first ones."""
    hist, last = np.zeros(33, dtype=int), {}
    for now, row in enumerate(ids.tolist()):
        hist[(now - last[row]).bit_length() if row in last else 0] += 1
        last[row] = now
    return hist


def compare(data):
    with open(args.other, encoding="utf-8") as f:
        stats = json.load(f)
    with open(os.path.join(os.path.dirname(args.other), stats["order_file"]), "rb") as f:
        order = f.read()
    check(stats["csrec_stats"] == 1 and stats["samples"] == len(data[0]) and
          len(stats["tables"]) == len(data), "samples and tables are the trace's")
    bad = {k: [] for k in ("sums", "order", "curve", "reuse", "bounds")}
    for t, ids in zip(stats["tables"], data):
        pooling = ids.shape[1]
        ids = ids.ravel() % np.uint64(args.rows) if args.rows else ids.ravel()
        rows, counts = np.unique(ids, return_counts=True)
        by = np.lexsort((rows, -counts))
        rows, counts = rows[by], counts[by]
        at, n = t["order"]["offset"], t["order"]["count"]
        got_rows = np.frombuffer(order, "<u4", n, at)
        got_counts = np.frombuffer(order, "<u4", n, at + 4 * n)
        if t["accesses"] != len(ids) or abs(t["pooling"]["mean"] - pooling) > 1e-9 or \
                t["pooling"]["max"] != pooling or (args.rows or None) != t["rows"]:
            bad["sums"].append(t["name"])
        if t["exact"]:
            if t["unique"] != len(rows) or not np.array_equal(got_rows, rows) or \
                    not np.array_equal(got_counts, counts):
                bad["order"].append(t["name"])
            total = np.concatenate([[0], np.cumsum(counts)])
            if any(total[k] != a for k, a in t["curve"]) or t["curve"][-1][0] != len(rows) or \
                    t["curve"][0][0] != 1 or len(t["curve"]) > 256:
                bad["curve"].append(t["name"])
            want = reuse(ids)
            if list(want[:len(t["reuse_log2"])]) != t["reuse_log2"] or \
                    want.sum() != sum(t["reuse_log2"]):
                bad["reuse"].append(t["name"])
        else:
            true = dict(zip(rows.tolist(), counts.tolist()))
            have = dict(zip(got_rows.tolist(), got_counts.tolist()))
            if any(not c <= true.get(r, 0) <= c + t["slack"] for r, c in have.items()) or \
                    any(c > t["slack"] and r not in have for r, c in true.items()) or \
                    abs(t["unique"] / len(rows) - 1) > 0.08 or t["slack"] >= counts[0]:
                bad["bounds"].append(t["name"])
    exact = [t["exact"] for t in stats["tables"]]
    check(not bad["sums"], f"accesses, pooling and rows {bad['sums']}")
    if any(exact):
        check(not bad["order"], f"order and counts {bad['order']}")
        check(not bad["curve"], f"curve {bad['curve']}")
        check(not bad["reuse"], f"reuse distances {bad['reuse']}")
    if not all(exact):
        check(not bad["bounds"], f"sketched counts are within their slack {bad['bounds']}")


def main():
    if args.what in ("criteo", "mlperf", "npz", "trace"):
        compare({"criteo": criteo, "mlperf": mlperf, "npz": npz, "trace": trace}[args.what](args.input))
    for ids in trace(args.input) if args.what in ("zipf", "locality", "reuse") else []:
        ids = ids.ravel()
        rows, counts = np.unique(ids, return_counts=True)
        counts = np.sort(counts)[::-1]
        if args.what == "zipf":
            p = np.arange(1, args.rows + 1, dtype=float) ** -float(args.other)
            p /= p.sum()
            # ten most wanted rows, and all beyond the 1000th: within five standard deviations
            for name, got, want in [(f"rank {k + 1}", counts[k], p[k]) for k in range(10)] + \
                    [("the tail", len(ids) - counts[:1000].sum(), p[1000:].sum())]:
                sd = (len(ids) * want * (1 - want)) ** 0.5
                if abs(got - len(ids) * want) > 5 * sd + (name == "the tail") * 0.02 * len(ids):
                    check(False, f"{name}: {got}, expected {len(ids) * want:.0f} +- {sd:.0f}")
            check(rows.max() < args.rows and len(ids) > 1000, "ids are rows, and follow the law")
        elif args.what == "locality":
            k = float(args.other)
            want = (0.14 + k) / (1 + k)
            check(abs(len(rows) / len(ids) - want) < 0.01,
                  f"{len(rows) / len(ids):.3f} of accesses are to new rows, {want:.3f} expected")
        else:
            with open(args.other, encoding="utf-8") as f:
                lines = f.read().split("Histogram of col sizes:\n")[1].splitlines()
            worst = 0
            for line in lines:
                if not line.startswith("("):
                    break
                lo, rest = line[1:].split("+" if "+" in line else ",", 1)
                hi = 1e18 if "+" in line else float(rest.split("]")[0])
                share = np.mean((counts > float(lo)) & (counts <= hi))
                worst = max(worst, abs(share - float(line.rsplit(":", 1)[1])))
            check(worst < 0.015, f"shares of rows by accesses are within {worst:.4f} of the histogram's")
    print(f"1..{len(results)}")
    sys.exit(0 if results and all(results) else 1)


main()
