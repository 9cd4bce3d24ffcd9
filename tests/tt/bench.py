#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""tt_embedding_bag() against numpy on one thread: bench.py PROBE SCRATCH. Prints JSON.

rows: numpy rebuilds the rows named, each distinct one once, by batched matmul, then gathers and
sums. full: numpy rebuilds the whole table, then gathers and sums. Best of five, taken in turn.
"""
import json
import subprocess
import sys
import time

import numpy as np

PROBE, SCRATCH = sys.argv[1:3]


def numpy_rows(cores, p, q, ids):
    row, where = np.unique(ids, return_inverse=True)
    digits = np.unravel_index(row, p)
    t = cores[0][digits[0]].reshape(len(row), q[0], -1)
    for k in range(1, len(p)):
        g = cores[k][digits[k]]
        t = t @ g.reshape(len(row), g.shape[1], -1)
        t = t.reshape(len(row), -1, g.shape[3])
    return t.reshape(len(row), -1)[where]


def numpy_full(cores, ids):
    t = np.ones((1, 1, 1), np.float32)
    for g in cores:
        t = np.tensordot(t, g, (2, 1)).transpose(0, 2, 1, 3, 4)
        t = t.reshape(t.shape[0] * t.shape[1], -1, t.shape[4])
    return t[:, :, 0][ids]


def seconds(f):
    start = time.monotonic()
    f()
    return time.monotonic() - start


def case(name, p, q, r, nbags, pooling, zipf, full):
    rng = np.random.default_rng(1)
    cores = [rng.standard_normal((p[k], r[k], q[k], r[k + 1])).astype(np.float32) for k in range(len(p))]
    rows = int(np.prod(p))
    n = nbags * pooling
    ids = (rng.zipf(zipf, n) - 1) % rows if zipf else rng.integers(0, rows, n)
    starts = np.arange(nbags) * pooling
    for k, g in enumerate(cores):
        g.tofile(f"{SCRATCH}/bench.{k}")
    ids.astype(np.uint32).tofile(f"{SCRATCH}/bench.ids")
    np.append(starts, n).astype(np.uint32).tofile(f"{SCRATCH}/bench.offsets")
    shape = "/".join(",".join(map(str, x)) for x in (p, q, r))
    command = [PROBE, "time", shape, f"{SCRATCH}/bench", str(rows), f"{SCRATCH}/bench.ids",
               f"{SCRATCH}/bench.offsets", "20"]
    ours, theirs, whole = [], [], []
    for _ in range(5):
        ours.append(float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[1]))
        theirs.append(seconds(lambda: np.add.reduceat(numpy_rows(cores, p, q, ids), starts)))
        if full:
            whole.append(seconds(lambda: np.add.reduceat(numpy_full(cores, ids), starts)))
    return {"name": name, "p": p, "q": q, "ranks": r[1:-1], "bags": nbags, "ids": n,
            "csrec_us_per_id": min(ours) / n * 1e6, "numpy_rows_ratio": min(theirs) / min(ours),
            "numpy_full_ratio": min(whole) / min(ours) if full else None}


print(json.dumps({"cases": [
    case("FBTT README, uniform", [200, 220, 250], [4, 4, 4], [1, 32, 32, 1], 512, 20, 0, False),
    case("FBTT README, Zipf 1.1", [200, 220, 250], [4, 4, 4], [1, 32, 32, 1], 512, 20, 1.1, False),
    case("Kaggle, rank 16", [200, 220, 250], [2, 2, 4], [1, 16, 16, 1], 512, 20, 0, False),
    case("100,000 rows", [50, 50, 40], [2, 2, 4], [1, 16, 16, 1], 512, 20, 0, True),
]}, indent=2))
