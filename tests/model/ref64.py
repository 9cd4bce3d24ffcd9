#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Independent float64 reference of the scores that csrec infer writes.

    ref64.py --model M [--plan P] --input TSV --scores SCORES [--report report.json]
             [--max-err 1e-5]

Reads the container as userspace/model/FORMAT.md describes it and the click log on its
own, expands the TT tables (and with --plan the rows that the plan has in TT form), computes the graph in float64 from the same float32 dense
inputs, and compares. With --report it fills max_abs_err_f64 in and checks AUC and
log-loss against the report's. Prints TAP; exits with 1 if anything does not hold.
Shares no code with what it checks.
"""

import argparse
import json
import os
import struct
import sys

import numpy as np

PAGE = 4096


def load_sections(path):
    with open(path, "rb") as f:
        raw = f.read()
    magic, major, _, _, size, dir_off, count, _ = struct.unpack_from("<8sHHIQQII", raw)
    assert magic == b"CSRECMDL" and major == 1 and size == len(raw), "no model container"
    sections = {}
    for i in range(count):
        kind, index, off, n, _, _, _ = struct.unpack_from("<IIQQII32s", raw, dir_off + 64 * i)
        sections[kind, index] = raw[off:off + n]
    return sections


def text(b):
    return b.rstrip(b"\0").decode("ascii")


def floats(b):
    return np.frombuffer(b, dtype="<f4")


def load_table(sections, index, rec):
    """Name and every row, in float64."""
    name, form, dtype, dim, _, nrows = struct.unpack_from("<16sBBHIQ", rec)
    p = struct.unpack_from("<3I", rec, 32)
    q = struct.unpack_from("<3H", rec, 44)
    r = struct.unpack_from("<2H", rec, 50)
    assert dtype == 0
    if form == 0:
        return text(name), floats(sections[3, index]).reshape(nrows, dim).astype(np.float64)
    data, cores, at = floats(sections[4, index]).astype(np.float64), [], 0
    ranks = (1, *r, 1)
    for k in range(3):
        n = p[k] * ranks[k] * q[k] * ranks[k + 1]
        cores.append(data[at:at + n].reshape(p[k], ranks[k], q[k], ranks[k + 1]))
        at += -(-n // 16) * 16		# each core starts at a multiple of 64 bytes
    # row (i, j, k), column (x, y, z): the sum over both ranks
    full = np.einsum("iaxb,jbyc,kczd->ijkxyz", *cores, optimize=True)
    return text(name), full.reshape(np.prod(p), dim)[:nrows]


def load_model(path):
    s = load_sections(path)
    records = lambda kind, size: [s.get((kind, 0), b"")[i:i + size]
                                  for i in range(0, len(s.get((kind, 0), b"")), size)]
    layers = []
    for i, rec in enumerate(records(6, 64)):
        n_in, n_out, act, bias = struct.unpack_from("<IIBB", rec, 16)
        w = floats(s[7, i]).astype(np.float64)
        layers.append((w[:n_in * n_out].reshape(n_out, n_in),
                       w[n_in * n_out:] if bias else np.zeros(n_out), act))
    return {
        "tables": [load_table(s, i, rec) for i, rec in enumerate(records(2, 64))],
        "layers": layers,
        "buffers": [struct.unpack_from("<16sIB", rec) for rec in records(8, 32)],
        "nodes": [struct.unpack_from("<BBHHHIIIIIIIIII", rec) for rec in records(9, 64)],
    }


def apply_plan(model, path):
    """Rows that the plan has in TT form take the values that its overlay's cores give."""
    with open(path, encoding="utf-8") as f:
        plan = json.load(f)
    over = load_sections(os.path.join(os.path.dirname(path), plan["overlay"]["file"]))
    rows_in_tt = 0
    for i, (name, rows) in enumerate(model["tables"]):
        place = plan["tables"][name]
        if "tt" not in place:
            continue
        other, values = load_table(over, i, over[2, 0][64 * i:64 * i + 64])
        first, count = place["hot"]["count"], place["tt"]["count"]
        assert other == name and len(values) == count
        rows[np.frombuffer(over[5, i], dtype="<u4")[first:first + count]] = values
        rows_in_tt += count
    assert rows_in_tt, "the plan has no row in TT form"


def load_clicks(path, lines):
    """The named lines only: dense inputs in float32, category values, labels."""
    wanted = set(lines)
    rows = {}
    with open(path, "rb") as f:
        for number, line in enumerate(f, 1):
            if number in wanted:
                rows[number] = line.rstrip(b"\r\n").split(b"\t")
            if len(rows) == len(wanted):
                break
    fields = [rows[n] for n in lines]
    assert all(len(x) == 40 for x in fields), "a scored line does not have 40 fields"
    labels = np.array([int(x[0]) for x in fields])
    ints = np.array([[max(int(v or 0), 0) for v in x[1:14]] for x in fields])
    plus1 = ints.astype(np.float32) + np.float32(1)
    dense = np.log(plus1.astype(np.float64)).astype(np.float32)
    cats = np.array([[int(v or b"0", 16) for v in x[14:]] for x in fields], dtype=np.uint64)
    return dense, cats, labels


def activate(x, act):
    if act == 1:
        return np.maximum(x, 0)
    if act == 2:
        return 1 / (1 + np.exp(-x))
    return x


def score(model, dense, cats):
    n = len(dense)
    bufs = [np.full((n, width), np.nan) for _, width, _ in model["buffers"]]
    output = next(b for b, (_, _, kind) in zip(bufs, model["buffers"]) if kind == 2)
    for b, (_, _, kind) in zip(bufs, model["buffers"]):
        if kind == 1:
            b[:] = dense
    for op, flags, nvec, dim, _, param, column, src, src_off, dst, dst_off, vec_step, \
            repeat, src_step, dst_step in model["nodes"]:
        for rep in range(repeat):
            at, to = src_off + rep * src_step, dst_off + rep * dst_step
            if op == 1:
                rows = model["tables"][param][1]
                # a sum that starts at +0 turns -0 into +0; in float64 that shows nowhere
                y = rows[(cats[:, column] % np.uint64(len(rows))).astype(np.int64)]
            elif op == 2:
                w, bias, act = model["layers"][param]
                y = activate(bufs[src][:, at:at + w.shape[1]] @ w.T + bias, act)
            else:
                v = np.stack([bufs[src][:, at + i * vec_step:at + i * vec_step + dim]
                              for i in range(nvec)], 1)
                if op == 3:
                    i, j = np.tril_indices(nvec, 0 if flags & 1 else -1)
                    y = np.hstack([v[:, 0], np.einsum("nvd,nwd->nvw", v, v)[:, i, j]])
                else:
                    y = v.reshape(n, -1)
            bufs[dst][:, to:to + y.shape[1]] = y
    return output


def auc(scores, labels):
    """Share of (click, non-click) pairs in the right order, ties half: by definition."""
    pos = np.sort(scores[labels == 1])
    neg = scores[labels == 0]
    below = np.searchsorted(pos, neg, "right")	# clicks not above this non-click
    ties = below - np.searchsorted(pos, neg, "left")
    return 1 - (below.sum() - ties.sum() / 2) / (len(pos) * len(neg))


def logloss(scores, labels):
    p = np.clip(scores, 1e-15, 1 - 1e-15)
    return -np.mean(np.where(labels == 1, np.log(p), np.log1p(-p)))


def main():
    ap = argparse.ArgumentParser(description="float64 reference of csrec scores")
    ap.add_argument("--model", required=True)
    ap.add_argument("--plan", help="plan with an overlay, as csrec plan writes it")
    ap.add_argument("--input", required=True)
    ap.add_argument("--scores", required=True, help="what csrec infer --details wrote")
    ap.add_argument("--report", help="JSON report to complete")
    ap.add_argument("--max-err", type=float, default=1e-5)
    ap.add_argument("--min-auc", type=float, help="least AUC of the reference")
    args = ap.parse_args()

    np.seterr(over="ignore")	# exp(-x) of a very negative x: the sigmoid is then 0
    got = np.loadtxt(args.scores, skiprows=1, ndmin=2, dtype=np.float64)
    if not len(got):
        sys.exit("ref64: the scores file is empty")
    lines = got[:, 0].astype(np.int64).tolist()
    dense, cats, labels = load_clicks(args.input, lines)
    model = load_model(args.model)
    if args.plan:
        apply_plan(model, args.plan)
    want = score(model, dense, cats)[:, 0]

    results = []

    def check(ok, name):
        results.append(ok)
        print(f"{'ok' if ok else 'not ok'} {len(results)} - {name}")

    err = float(np.max(np.abs(got[:, 2] - want)))
    ref_auc, ref_loss = auc(want, labels), logloss(want, labels)
    print(f"# {len(lines)} impressions, float64 AUC {ref_auc:.6f}, log-loss {ref_loss:.6f}")
    check(bool(np.all(got[:, 1] == labels)), "labels are the file's")
    check(err < args.max_err,
          f"largest difference from float64 is {err:.3e}, below {args.max_err:g}")
    if args.min_auc is not None:
        check(ref_auc > args.min_auc, f"AUC {ref_auc:.4f} is above {args.min_auc:g}")
    if args.report:
        with open(args.report, encoding="utf-8") as f:
            report = json.load(f)
        report["max_abs_err_f64"] = err
        check(report["impressions"] == len(lines), "the report counts the scores file's lines")
        # AUC of the scores as written: same scores, another program
        same = auc(got[:, 2], labels)
        check(report["auc"] is not None and abs(report["auc"] - same) < 1e-9,
              f"AUC in the report is the scores' ({same:.6f})")
        loss = logloss(got[:, 2], labels)
        check(abs(report["logloss"] - loss) < 1e-9,
              f"log-loss in the report is the scores' ({loss:.6f})")
        with open(args.report, "w", encoding="utf-8") as f:
            json.dump(report, f, indent=2)
            f.write("\n")
    print(f"1..{len(results)}")
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
