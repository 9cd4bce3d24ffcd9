#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tests of userspace/tt through probe, and of csrec tt: check.py PROBE SCRATCH CSREC MODEL TSV

The oracle lays a table out as a tensor and uses np.linalg.svd and np.einsum in float64.
"""
import json
import os
import subprocess
import sys

import numpy as np

PROBE, SCRATCH, CSREC, MODEL, TSV = sys.argv[1:6]
EINVAL, ENOSPC, ERANGE = 22, 28, 34
count = bad = 0


def tap(good, name):
    global count, bad
    count += 1
    bad += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}", flush=True)


def path(name):
    return os.path.join(SCRATCH, name)


def put(name, a, kind=np.float32):
    if a is None:
        return "-"
    np.ascontiguousarray(a, kind).tofile(path(name))
    return path(name)


def probe(*args):
    run = subprocess.run([PROBE, *map(str, args)], capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(f"probe {args}: exit {run.returncode}\n{run.stderr}")
    out = {}
    for line in run.stdout.splitlines():
        key, _, value = line.partition(" ")
        out[key] = value
    return out


def shape(p, q, r=None):
    lists = [p, q] + ([r] if r is not None else [])
    return "/".join(",".join(map(str, x)) for x in lists)


def put_cores(name, cores):
    for k, g in enumerate(cores):
        put(f"{name}.{k}", g)
    return path(name)


def get_cores(name, p, q, r):
    return [np.fromfile(path(f"{name}.{k}"), np.float32).reshape(p[k], r[k], q[k], r[k + 1])
            for k in range(len(p))]


def decompose(a, p, q, r, weight=None, name="svd"):
    out = probe("svd", shape(p, q, r), put("a", a), a.shape[1], put("w", weight), path(name))
    if "refused" in out:
        return out, None
    return {k: float(v) for k, v in out.items()}, get_cores(name, p, q, r)


def full(cores):
    """The table that cores stand for, [prod p][prod q], float64."""
    t = np.ones((1, 1, 1))
    for g in cores:
        t = np.einsum("imr,prqs->ipmqs", t, g.astype(np.float64))
        t = t.reshape(t.shape[0] * t.shape[1], -1, t.shape[4])
    return t[:, :, 0]


def random_cores(rng, p, q, r):
    return [rng.standard_normal((p[k], r[k], q[k], r[k + 1])).astype(np.float32)
            for k in range(len(p))]


def oracle_svd(a, p, q, r):
    """TT-SVD: relative error, and sqrt of the discarded sigma^2 over the norm."""
    d = len(p)
    t = np.zeros((np.prod(p), a.shape[1]))
    t[:len(a)] = a
    t = t.reshape(*p, *q).transpose([x for k in range(d) for x in (k, d + k)])
    c, lost, left = t, 0.0, []
    rank = 1
    for k in range(d - 1):
        u, s, v = np.linalg.svd(c.reshape(rank * p[k] * q[k], -1), full_matrices=False)
        n = min(r[k + 1], len(s))
        lost += (s[n:] ** 2).sum()
        left.append(u[:, :n].reshape(rank, p[k], q[k], n).transpose(1, 0, 2, 3))
        c, rank = s[:n, None] * v[:n], n
    left.append(c.reshape(rank, p[-1], q[-1], 1).transpose(1, 0, 2, 3))
    norm = np.linalg.norm(a)
    return np.linalg.norm(full(left)[:len(a)] - a) / norm, np.sqrt(lost) / norm


def smooth(rng, n, dim):
    """A table whose unfoldings have decaying singular values, as trained ones have."""
    x = np.linspace(0, 1, n)[:, None]
    y = np.linspace(0, 1, dim)[None]
    return (1 / (0.3 + x + y) + np.sin(9 * x * y) + 0.02 * rng.standard_normal((n, dim))).astype(np.float32)


P, Q, R = [7, 9, 11, 5], [3, 4, 5, 7], [13, 12, 7]


def test_exact(rng):
    for d in (2, 3, 4):
        p, q, r = P[:d], Q[:d], [1, *R[:d - 1], 1]
        a = full(random_cores(rng, p, q, r)).astype(np.float32)
        out, cores = decompose(a, p, q, r)
        tap(out["relative"] < 2e-6 and np.linalg.norm(full(cores) - a) / np.linalg.norm(a) < 2e-6,
            f"{d} cores: a table of that rank comes back exactly ({out['relative']:.1e})")
        got = np.fromfile(path("all"), np.float32) if not probe(
            "rows", shape(p, q, r), path("svd"), 3, len(a) - 3, path("all")) else None
        tap(got is not None and np.abs(got.reshape(-1, a.shape[1]) - full(cores)[3:]).max() < 1e-4 * np.abs(a).max(),
            f"{d} cores: tt_rows() agrees with einsum")


def test_truncated(rng):
    for d, r, n, noise in ((2, [1, 5, 1], 60, 1), (3, [1, 6, 5, 1], 690, 1), (3, [1, 8, 4, 1], 693, 0),
                           (4, [1, 4, 6, 3, 1], 3400, 0), (3, [1, 40, 40, 1], 600, 1)):
        p, q = P[:d], Q[:d]
        dim = int(np.prod(q))
        a = rng.standard_normal((n, dim)).astype(np.float32) if noise else smooth(rng, n, dim)
        want, bound = oracle_svd(a, p, q, r)
        out, cores = decompose(a, p, q, r)
        here = np.linalg.norm(full(cores)[:n] - a) / np.linalg.norm(a)
        tap(abs(out["relative"] - want) < 1e-5 * want + 1e-6 and abs(here - out["relative"]) < 1e-6,
            f"{d} cores, ranks {r[1:-1]}: error as np.linalg.svd's ({out['relative']:.6f}, {want:.6f})")
        # padding rows are part of what the bound is about, so the error may be well below it
        tap(abs(out["bound"] - bound) < 1e-5 * bound + 1e-7 and out["relative"] <= bound + 1e-6 and
            out["relative"] >= 0.8 * bound,
            f"{d} cores, ranks {r[1:-1]}: sqrt of discarded sigma^2 bounds it, narrowly")


def test_random(rng):
    # both sides of the unfolding above 1024: the randomized way
    p, q, r = [60, 60], [20, 20], [1, 12, 1]
    low = full(random_cores(rng, p, q, r)).astype(np.float32)
    out, _ = decompose(low, p, q, r)
    tap(out["relative"] < 2e-6, f"randomized: exact rank comes back ({out['relative']:.1e})")
    a = (low / np.std(low) * 0.3 + smooth(rng, 3600, 400)).astype(np.float32)
    for r in ([1, 12, 1], [1, 3, 1]):
        want, _ = oracle_svd(a, p, q, r)
        out, first = decompose(a, p, q, r)
        tap(want - 1e-6 <= out["relative"] < 1.001 * want,
            f"randomized, rank {r[1]}: error within 0.1 % of the optimum ({out['relative']:.5f}, {want:.5f})")
    _, again = decompose(a, p, q, r, name="again")
    tap(all(np.array_equal(x, y) for x, y in zip(first, again)), "randomized: twice the same bits")
    out = probe("to", shape(p, q), put("a", a), 400, "-", path("to"), 0.02, 400)
    rank = int(out["r"].split()[1])
    tap(float(out["relative"]) <= 0.02 and oracle_svd(a, p, q, [1, rank - 2, 1])[0] > 0.02,
        f"randomized: rank by error is as small as can be, within one ({rank})")


def test_to(rng):
    a = smooth(rng, 690, 60)
    for target in (0.3, 0.05, 0.01):
        out = probe("to", shape(P[:3], Q[:3]), put("a", a), 60, "-", path("to"), target, 256)
        r = list(map(int, out["r"].split()))
        # each bond gets half of the squared error; one rank less anywhere would exceed that
        less = [oracle_svd(a, P[:3], Q[:3], [1, max(r[1] - 1, 1), 10 ** 6, 1])[1],
                oracle_svd(a, P[:3], Q[:3], [1, r[1], max(r[2] - 1, 1), 1])[1]]
        share = target / np.sqrt(2)
        first = oracle_svd(a, P[:3], Q[:3], [1, r[1], 10 ** 6, 1])[1]
        tap(float(out["relative"]) <= target and (less[0] > share or r[1] == 1) and
            (np.sqrt(less[1] ** 2 - first ** 2) > share or r[2] == 1),
            f"rank by error {target}: kept ({float(out['relative']):.4f}), no rank too many {r[1:-1]}")
    out = probe("to", shape(P[:3], Q[:3]), put("a", a), 60, "-", path("to"), 1e-4, 8)
    tap(out.get("refused", "").startswith(f"{ERANGE} "), "an error that the largest rank cannot keep is refused")


def test_weights(rng):
    n, p, q, r = 650, P[:3], Q[:3], [1, 4, 4, 1]
    a = rng.standard_normal((n, 60)).astype(np.float32)
    w = np.floor(1e5 / (1 + np.arange(n)) ** 1.2)
    plain, _ = decompose(a, p, q, r)
    out, cores = decompose(a, p, q, r, w)
    diff = ((full(cores)[:n] - a) ** 2).sum(1)
    want = np.sqrt((w * diff).sum() / (w[:, None] * a.astype(float) ** 2).sum())
    none = np.sqrt((w * ((full(decompose(a, p, q, r)[1])[:n] - a) ** 2).sum(1)).sum() /
                   (w[:, None] * a.astype(float) ** 2).sum())
    tap(abs(out["weighted"] - want) < 1e-5, "the weighted error is what numpy makes of the cores")
    tap(out["weighted"] < 0.9 * none and out["relative"] > plain["relative"],
        f"weights lower the error they weight ({none:.3f} to {out['weighted']:.3f})")
    # weights that are a product over digits: the optimum is TT-SVD of the scaled table
    f = [rng.uniform(0.5, 4, x) for x in p]
    w = (f[0][:, None, None] * f[1][None, :, None] * f[2][None, None]).reshape(-1)
    b = rng.standard_normal((len(w), 60)).astype(np.float32)
    out, _ = decompose(b, p, q, r, w)
    want, _ = oracle_svd(b * np.sqrt(w)[:, None], p, q, r)
    tap(abs(out["weighted"] - want) < 1e-5 * want, f"weights of product form: the optimum ({want:.5f})")
    out, cores = decompose(b, p, q, r, np.ones(len(w)))
    tap(abs(out["weighted"] - out["relative"]) < 1e-12 and
        abs(out["relative"] - oracle_svd(b, p, q, r)[0]) < 1e-5, "equal weights are no weights")
    w = np.zeros(n)
    w[[5, 60]] = 1, 3  # digits 0 0 5 and 0 5 5: ranks 3 and 5 hold both
    out, cores = decompose(a, p, q, [1, 3, 5, 1], w)
    tap(out["weighted"] < 0.01 and np.isfinite(full(cores)).all(),
        f"most weights 0: the rows that count are good, the others finite ({out['weighted']:.4f})")
    out = probe("to", shape(p, q), put("a", a), 60, put("w", 1e4 / (1 + np.arange(n))), path("to"), 0.3, 256)
    tap(float(out["weighted"]) <= 0.3, f"rank by weighted error: kept ({float(out['weighted']):.4f})")


def test_measure(rng):
    p, q, r, n = P[:3], Q[:3], [1, 5, 6, 1], 600
    cores = random_cores(rng, p, q, r)
    a = (full(cores)[:n] + rng.standard_normal((n, 60)) * rng.uniform(0, 3, (n, 1))).astype(np.float32)
    w = rng.uniform(0, 9, n).astype(np.float32)
    out = probe("measure", shape(p, q, r), put("a", a), 60, put("w", w), put_cores("m", cores))
    row = np.linalg.norm(full(cores)[:n] - a, axis=1)
    norm = np.linalg.norm(a)
    want = {"norm": norm, "relative": np.linalg.norm(row) / norm, "mean_row": row.mean(),
            "worst_row": row.max(), "worst": row.argmax(),
            "weighted": np.sqrt((w * row ** 2).sum() / (w * np.linalg.norm(a, axis=1) ** 2).sum())}
    tap(all(abs(float(out[k]) - v) <= 1e-5 * v for k, v in want.items()), "errors as numpy counts them")
    tap(np.allclose(np.fromfile(path("m.rows"), np.float32), row, rtol=1e-4, atol=1e-4), "errors of each row")
    zero, cores = decompose(np.zeros((600, 60), np.float32), p, q, r)
    tap(zero["relative"] == 0 and zero["worst_row"] == 0, "a table of zeros has no error")


def bag_oracle(table, ids, offsets, weights):
    rows = table[ids] * (1 if weights is None else weights[:, None].astype(np.float64))
    out = np.zeros((len(offsets) - 1, table.shape[1]))
    for b in range(len(offsets) - 1):
        out[b] = rows[offsets[b]:offsets[b + 1]].sum(0)
    return out


def bag(cores, nrows, ids, offsets, weights=None):
    p, q = [g.shape[0] for g in cores], [g.shape[2] for g in cores]
    r = [1] + [g.shape[3] for g in cores]
    out = probe("bag", shape(p, q, r), put_cores("b", cores), nrows, put("ids", ids, np.uint32),
                put("offsets", offsets, np.uint32), put("weights", weights), path("out"))
    return out, np.fromfile(path("out"), np.float32).reshape(len(offsets) - 1, -1)


def test_bag(rng):
    for d in (2, 3, 4):
        p, q, r = P[:d], Q[:d], [1, *R[:d - 1], 1]
        cores = random_cores(rng, p, q, r)
        table = full(cores)
        for nbags, pooling in ((200, 1), (500, 10), (3, 7000)):
            # as FBTT-Embedding's test: lengths around pooling, negative ones are empty bags
            length = np.maximum(rng.normal(pooling, 20 if pooling < 100 else 1, nbags).astype(int), 0)
            offsets = np.concatenate([[0], np.cumsum(length)])
            ids = rng.integers(0, len(table), offsets[-1])
            for weights in (None, rng.standard_normal(len(ids)).astype(np.float32)):
                _, got = bag(cores, len(table), ids, offsets, weights)
                want = bag_oracle(table, ids, offsets, weights)
                # fp32: r-term sums per core and as many as the bag is long, of this size
                scale = bag_oracle(np.abs(table) + np.abs(table).std(), ids, offsets,
                                   None if weights is None else np.abs(weights))
                tap((np.abs(got - want) <= (2e-6 if pooling < 100 else 1e-5) * scale + 1e-30).all() and (length == 0).any() == (pooling < 100),
                    f"bag: {d} cores, {nbags} bags of {pooling}, {'no ' if weights is None else ''}weights")
    cores = random_cores(rng, P[:3], Q[:3], [1, 13, 12, 1])
    _, got = bag(cores, 600, [], [0, 0, 0])
    tap((got == 0).all() and got.shape == (2, 60), "bag: only empty bags are zeros")
    for name, ids, offsets, code in (("id beyond the table", [1, 600], [0, 2], ERANGE),
                                     ("offsets that descend", [1, 2, 3], [0, 3, 2], EINVAL),
                                     ("first offset not 0", [1, 2, 3], [1, 2], EINVAL)):
        out, got = bag(cores, 600, ids, offsets)
        tap(out.get("refused", "").startswith(f"{code} ") and (got.view(np.uint32) == 0x5a5a5a5a).all(),
            f"bag: {name} is refused, nothing written: {out.get('refused')}")


def test_auto():
    good = True
    for d in (2, 3, 4):
        for n in (1, 2, 3, 7, 64, 1000, 1461, 2202608, 10131227, 2 ** 31 - 1):
            p = list(map(int, probe("auto", d, n, 16)["p"].split()))
            product = int(np.prod(p, dtype=object))
            root = n ** (1 / d)
            good &= n <= product <= n + n // min(p) and max(p) <= np.ceil(root) + 1 and len(p) == d
    tap(good, "automatic p: enough, equal, and less than a last digit's worth to spare")
    for dim, d, want in ((16, 3, [2, 2, 4]), (64, 3, [4, 4, 4]), (64, 2, [8, 8]), (128, 3, [4, 4, 8]),
                         (13, 3, [1, 1, 13]), (48, 4, [2, 2, 3, 4]), (1, 2, [1, 1])):
        got = list(map(int, probe("auto", d, 100, dim)["q"].split()))
        tap(got == want, f"automatic q: {dim} in {d} is {got}")
    p, q = [200, 220, 250], [2, 2, 4]
    bytes_of = lambda r: 4 * sum(p[k] * r[k] * q[k] * r[k + 1] for k in range(3))
    out = probe("bytes", shape(p, q), 135040 * 4, 256)
    tap(out["r"] == "1 16 16 1" and int(out["bytes"]) == 540160, "rank by bytes: FBTT's example, rank 16 exactly")
    out = probe("bytes", shape(p, q), 135040 * 4 - 1, 256)
    r = list(map(int, out["r"].split()))
    tap(r == [1, 15, 15, 1] and int(out["bytes"]) == bytes_of(r), "rank by bytes: one byte less, one rank less")
    tap(probe("bytes", shape(p, q), 10 ** 12, 32)["r"] == "1 32 32 1", "rank by bytes: not above the largest")
    tap(probe("bytes", shape([4, 5], [2, 2]), 10 ** 12, 32)["r"] == "1 8 1", "rank by bytes: not above the full rank")
    tap(probe("bytes", shape(p, q), 100, 32).get("refused", "").startswith(f"{ENOSPC} "), "rank by bytes: too few")


def test_bad(rng):
    a = rng.standard_normal((600, 60)).astype(np.float32)
    ok = [1, 4, 4, 1]
    nan, inf = a.copy(), a.copy()
    nan[17, 3], inf[599, 59] = np.nan, -np.inf
    w = np.ones(600)
    wneg, wnan = w.copy(), w.copy()
    wneg[7], wnan[8] = -1, np.nan
    cases = [
        ("product of p too small", a, [7, 9, 9], [3, 4, 5], ok, None, "567"),
        ("product of q not dim", a, [7, 9, 11], [3, 4, 4], ok, None, "48"),
        ("p of 0", a, [7, 0, 11], [3, 4, 5], ok, None, "core 1"),
        ("q of 0", a, [7, 9, 11], [3, 0, 5], ok, None, "core 1"),
        ("product of p beyond 2^32", a, [2 ** 16, 2 ** 16, 2], [3, 4, 5], ok, None, "2^32"),
        ("p that wraps", a, [2 ** 32 - 1, 2 ** 32 - 1, 2 ** 32 - 1], [3, 4, 5], ok, None, "2^32"),
        ("q that wraps", a, [7, 9, 11], [2 ** 31, 2 ** 31, 60], ok, None, "product of q"),
        ("rank 0", a, [7, 9, 11], [3, 4, 5], [1, 4, 0, 1], None, "r2 is 0"),
        ("rank beyond all", a, [7, 9, 11], [3, 4, 5], [1, 4097, 4, 1], None, "4097"),
        ("outer rank 2", a, [7, 9, 11], [3, 4, 5], [1, 4, 4, 2], None, "outer"),
        ("one core", a, [600], [60], [1, 1], None, "1 cores"),
        ("five cores", a, [4, 4, 4, 4, 4], [3, 4, 5, 1], [1, 2, 2, 2, 2], None, "5 cores"),
        ("a core of 2^40 elements", a, [2, 2 ** 28, 2], [3, 4, 5], [1, 4096, 4096, 1], None, "2^40"),
        ("NaN", nan, [7, 9, 11], [3, 4, 5], ok, None, "row 17, element 3"),
        ("infinity", inf, [7, 9, 11], [3, 4, 5], ok, None, "row 599, element 59"),
        ("negative weight", a, [7, 9, 11], [3, 4, 5], ok, wneg, "row 7"),
        ("weight NaN", a, [7, 9, 11], [3, 4, 5], ok, wnan, "row 8"),
        ("all weights 0", a, [7, 9, 11], [3, 4, 5], ok, w * 0, "weights"),
    ]
    for name, rows, p, q, r, weight, says in cases:
        out = probe("svd", shape(p, q, r), put("a", rows), 60, put("w", weight), path("bad"))
        msg = out.get("refused", "")
        tap(msg.startswith(f"{EINVAL} ") and says in msg, f"refused: {name}: {msg}")
    for target, rank in ((0, 8), (1, 8), ("nan", 8), (0.1, 0), (0.1, 5000)):
        out = probe("to", shape([7, 9, 11], [3, 4, 5]), put("a", a), 60, "-", path("bad"), target, rank)
        tap(out.get("refused", "").startswith(f"{EINVAL} "), f"refused: error {target}, largest rank {rank}")
    for d, n, dim in ((1, 10, 4), (5, 10, 4), (3, 0, 4), (3, 2 ** 31, 4), (3, 10, 0), (3, 10, 65536)):
        tap("refused" in probe("auto", d, n, dim), f"refused: automatic shape of {d} cores, {n} rows, dim {dim}")
    big = a * np.float32(3e37)
    tap(decompose(big, [7, 9, 11], [3, 4, 5], ok)[0]["relative"] < 1, "rows near the end of fp32 are decomposed")


def csrec(*args):
    run = subprocess.run([CSREC, "--json", *map(str, args)], capture_output=True, text=True)
    return run.returncode, json.loads(run.stdout) if run.stdout else {}, run.stderr


def table_of(model, table):
    csrec("model", "extract", model, "--table", table, "-o", path("t.npy"))
    return np.load(path("t.npy")).astype(np.float64)


def test_command():
    out = path("out.crm")
    before = table_of(MODEL, "C4")
    _, models, _ = csrec("model", "show", MODEL)
    others = [t["name"] for t in models["tables"]]
    index = others.index("C4")
    p, q = [20, 20, 10], [2, 2, 4]
    code, r, _ = csrec("tt", "--model", MODEL, "--table", index, "--shape", "20,20,10", "--ranks", "12,9",
                       "--labels", TSV, "-o", out)
    after = table_of(out, "C4")
    row = np.linalg.norm(after - before, axis=1)
    norm = np.linalg.norm(before)
    want = {"relative_error": np.linalg.norm(row) / norm, "mean_row_error": row.mean(),
            "worst_row_error": row.max(), "worst_row": row.argmax(), "norm": norm,
            "bytes_before": before.size * 4, "bytes_after": 4 * (20 * 2 * 12 + 20 * 12 * 2 * 9 + 10 * 9 * 4)}
    tap(code == 0 and all(abs(r[k] - v) <= 1e-5 * v for k, v in want.items()) and
        abs(r["relative_error"] - oracle_svd(before, p, q, [1, 12, 9, 1])[0]) < 1e-5,
        "csrec tt: what is reported is what numpy finds in the new model")
    tap(csrec("model", "verify", out)[0] == 0 and
        all(np.array_equal(table_of(out, t), table_of(MODEL, t)) for t in ("C1", "C3", "C26")),
        "csrec tt: the new model is intact, other tables are as they were")
    for what, model in (("before", MODEL), ("after", out)):
        _, golden, _ = csrec("infer", "--model", model, "--backend", "golden", "--input", TSV)
        tap(abs(golden["auc"] - r["auc_" + what]) < 1e-12 and
            abs(golden["logloss"] - r["logloss_" + what]) < 1e-12 and
            golden["impressions"] == r["impressions"], f"csrec tt: AUC {what} is csrec infer's")
    code, r, _ = csrec("tt", "--model", MODEL, "--table", "C4", "--ranks", "7", "-o", out)
    row = np.linalg.norm(table_of(out, "C4") - before, axis=1)
    tap(code == 0 and len(r["p"]) == 2 and abs(np.linalg.norm(row) / norm - r["relative_error"]) < 1e-6,
        "csrec tt: two cores are a model's three")
    code, r, _ = csrec("tt", "--model", MODEL, "--table", "C4", "--max-bytes", "8K", "-o", out)
    tap(code == 0 and 6144 < r["bytes_after"] <= 8192, "csrec tt: --max-bytes is kept, and used")
    code, r, _ = csrec("tt", "--model", MODEL, "--table", "C4", "--max-error", "0.8", "-o", out)
    tap(code == 0 and 0.7 < r["relative_error"] <= 0.8, "csrec tt: --max-error is kept, and used")
    # numpy reads what is exported, and what numpy writes is imported
    code, r, _ = csrec("tt", "--model", MODEL, "--table", "C4", "--ranks", "5,6", "--export", path("c.npz"), "-o", out)
    with np.load(path("c.npz")) as f:
        got = [f[f"tt_cores.{k}"] for k in range(3)]
    rr = [1, 5, 6, 1]
    tap(code == 0 and [g.shape for g in got] == [(1, r["p"][k], rr[k] * r["q"][k] * rr[k + 1]) for k in range(3)] and
        np.abs(full([g.reshape(r["p"][k], rr[k], r["q"][k], rr[k + 1]) for k, g in enumerate(got)])[:4000] -
               table_of(out, "C4")).max() < 1e-6, "csrec tt: --export is what np.load() and FBTT-Embedding take")
    rng = np.random.default_rng(9)
    mine = random_cores(rng, [20, 20, 10], [2, 2, 4], [1, 3, 7, 1])
    np.savez(path("mine.npz"), **{f"tt_cores.{k}": g.reshape(1, len(g), -1) for k, g in enumerate(mine)})
    code, r, _ = csrec("tt", "--model", MODEL, "--table", "C4", "--import", path("mine.npz"), "-o", out)
    want = np.linalg.norm(full(mine) - before) / norm
    tap(code == 0 and r["ranks"] == [3, 7] and np.abs(table_of(out, "C4") - full(mine)).max() < 1e-4 and
        abs(r["relative_error"] - want) < 1e-5 * want, "csrec tt: --import of what np.savez() wrote")
    code, r, _ = csrec("tt", "--model", MODEL, "--table", "C4", "--ranks", "3,4,3", "--export", path("c4.npz"))
    with np.load(path("c4.npz")) as f:
        tap(code == 0 and len(f.files) == 4, "csrec tt: four cores are exported")
    got = probe("mutate", shape([1, 1, 1], [2, 2, 4]), path("mine.npz"), 1500)
    tap(int(got["refusals"]) > 1000 and got.get("r") == "1 3 7 1",
        f"1500 damaged .npz under sanitizers: {got['refusals']} refused, none overruns")
    raw = open(path("mine.npz"), "rb").read()
    nan = [g.copy() for g in mine]
    nan[1][0, 0, 0, 0] = np.nan
    for name, content in (("cut short", raw[:-30]), ("empty", b""), ("a bit turned", raw[:400] + bytes([raw[400] ^ 1]) + raw[401:]),
                          ("NaN", nan), ("two cores", mine[:2]), ("ranks that do not meet", [mine[0], mine[0], mine[2]]),
                          ("too few rows", [mine[0][:3], mine[1], mine[2]])):
        if isinstance(content, bytes):
            open(path("x.npz"), "wb").write(content)
        else:
            np.savez(path("x.npz"), **{f"tt_cores.{k}": g.reshape(1, len(g), -1) for k, g in enumerate(content)})
        code, r, said = csrec("tt", "--model", MODEL, "--table", "C4", "--import", path("x.npz"), "-o", path("x.crm"))
        tap(code == 7 and not os.path.exists(path("x.crm")) and path("x.npz") in said,
            f"csrec tt refuses: --import of {name}: {said.strip()}")
    np.savez_compressed(path("x.npz"), **{f"tt_cores.{k}": g.reshape(1, len(g), -1) for k, g in enumerate(mine)})
    code, r, said = csrec("tt", "--model", MODEL, "--table", "C4", "--import", path("x.npz"), "-o", path("x.crm"))
    tap(code == 7 and "compressed" in said, f"csrec tt refuses: {said.strip()}")
    csrec("profile", "--format", "criteo", "--input", TSV, "--model", MODEL, "-o", path("s.json"))
    code, r, _ = csrec("tt", "--model", MODEL, "--table", "C4", "--ranks", "6,6", "--stats", path("s.json"), "-o", out)
    ids = np.array([int(line.split("\t")[14 + 3] or "0", 16) for line in open(TSV)]) % len(before)
    w = np.bincount(ids, minlength=len(before))
    diff = ((table_of(out, "C4") - before) ** 2).sum(1)
    tap(code == 0 and abs(r["weighted_error"] - np.sqrt((w * diff).sum() / (w * (before ** 2).sum(1)).sum())) < 1e-5,
        "csrec tt: error weighted by the accesses of --stats")
    keep = open(out, "rb").read()
    copy = path("copy.crm")
    open(copy, "wb").write(open(MODEL, "rb").read())
    bad_model = path("bad.crm")
    open(bad_model, "wb").write(open(MODEL, "rb").read()[:100000])
    good = {"--model": MODEL, "--table": "C4", "--ranks": "4,4", "-o": out}
    for name, change, want in (
            ("no such table", {"--table": "C99"}, 2), ("table number too large", {"--table": "26"}, 2),
            ("table in TT form", {"--table": "C3"}, 7), ("rank 0", {"--ranks": "4,0"}, 2),
            ("rank 257", {"--ranks": "257,4"}, 2), ("ranks that are no numbers", {"--ranks": "4,x"}, 2),
            ("four cores", {"--ranks": "4,4,4"}, 2), ("numbers of cores differ", {"--shape": "64,63"}, 2),
            ("shape too small", {"--shape": "10,10,10"}, 2), ("q not the dimension", {"--q": "2,2,2"}, 2),
            ("shape that overflows", {"--shape": "4294967295,4294967295,4294967295"}, 2),
            ("two ways to say the rank", {"--max-error": "0.5"}, 2),
            ("ranks beyond the golden model with --labels", {"--ranks": "40,40", "--labels": TSV}, 2),
            ("statistics that are none", {"--stats": TSV}, 7), ("labels that are none", {"--labels": MODEL}, 7),
            ("a model cut short", {"--model": bad_model}, 7), ("no model", {"--model": path("none")}, 7),
            ("output onto the model", {"--model": copy, "-o": copy}, 2),
            ("cores onto the model", {"--model": copy, "--export": copy}, 2)):
        args = [x for pair in {**good, **change}.items() for x in pair]
        code, r, said = csrec("tt", *args)
        tap(code == want and r.get("exit") == want and said.startswith("csrec tt: ") and
            open(copy, "rb").read() == open(MODEL, "rb").read() and
            open(out, "rb").read() == keep,
            f"csrec tt refuses: {name}: {said.strip()}")


test_exact(np.random.default_rng(1))
test_truncated(np.random.default_rng(2))
test_random(np.random.default_rng(3))
test_to(np.random.default_rng(4))
test_weights(np.random.default_rng(5))
test_measure(np.random.default_rng(6))
test_bag(np.random.default_rng(7))
test_auto()
test_bad(np.random.default_rng(8))
test_command()
print(f"1..{count}")
sys.exit(bad != 0)
