#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Writes small untrained models of other families into a folder: Wide & Deep, two heads
over shared features, NCF. They show that the container needs no new format for them;
the writer is the one that the training script uses, the readers are what is tested."""

import sys

import numpy as np

top, folder = sys.argv[1:]
sys.path.insert(0, top + "/tools/train")
import crmodel as cr  # noqa: E402  (its folder is known only now)

rng = np.random.default_rng(7)


def rows(n, dim):
    return rng.normal(0, 0.3, (n, dim))


def dense_layer(w, name, n_in, n_out, act, bias=True):
    return w.layer(name, rng.normal(0, (2 / n_in) ** 0.5, (n_out, n_in)),
                   rng.normal(0, 0.1, n_out) if bias else None, act)


def wide_deep():
    """Wide: a weight per value (tables of dim 1) and the dense inputs; deep: CAT and MLP."""
    w = cr.Writer({"name": "wide and deep"})
    x = w.buffer("dense", 13, cr.DENSE)
    wide = w.buffer("wide", 6)
    deep_in = w.buffer("deep-in", 3 * 8 + 13)
    hidden = w.buffer("hidden", 16)
    logits = w.buffer("logits", 3)
    out = w.buffer("click", 1, cr.OUTPUT)
    xs = w.buffer("dense-copy", 13)
    for c in range(6):
        w.node(cr.OP_EMB, param=w.dense_table(f"wide{c}", rows(50 + c, 1)), column=c, dst=wide,
               dst_off=c)
    for c in range(3):
        w.node(cr.OP_EMB, param=w.dense_table(f"deep{c}", rows(200 + c, 8), range(100)),
               column=c, dst=deep_in, dst_off=13 + c * 8)
    # CAT of one vector is a copy; by way of a buffer, and straight into the wider one
    w.node(cr.OP_CAT, src=x, dst=xs, nvec=1, dim=13, vec_step=13)
    w.node(cr.OP_CAT, src=xs, dst=deep_in, nvec=1, dim=13, vec_step=13)
    w.node(cr.OP_MLP, param=w.layer("wide-sum", np.ones((1, 6)), None, cr.NONE), src=wide,
           dst=logits, dst_off=0)
    w.node(cr.OP_MLP, param=dense_layer(w, "wide-dense", 13, 1, cr.NONE), src=x, dst=logits,
           dst_off=1)
    w.node(cr.OP_MLP, param=dense_layer(w, "deep0", 37, 16, cr.RELU), src=deep_in, dst=hidden)
    w.node(cr.OP_MLP, param=dense_layer(w, "deep1", 16, 1, cr.NONE), src=hidden, dst=logits,
           dst_off=2)
    w.node(cr.OP_MLP, param=w.layer("sum", np.ones((1, 3)), None, cr.SIGMOID), src=logits, dst=out)
    w.write(folder + "/wide-deep.crm", 13, 26)


def two_heads():
    """Shared features with the diagonal, two heads in one output."""
    w = cr.Writer({"name": "two heads"})
    x = w.buffer("dense", 13, cr.DENSE)
    f = w.buffer("features", 4 * 4)
    z = w.buffer("pairs", 4 + 10)
    heads = w.buffer("heads", 2, cr.OUTPUT)
    cores = [rng.normal(0, 0.6, s) for s in ((4, 1, 1, 3), (5, 3, 2, 2), (6, 2, 2, 1))]
    w.node(cr.OP_EMB, param=w.tt_table("tt", 111, cores), column=7, dst=f, dst_off=4)
    shared = w.dense_table("shared", rows(300, 4), range(299, -1, -1))
    for i in (2, 3):		# one table, two columns
        w.node(cr.OP_EMB, param=shared, column=i, dst=f, dst_off=i * 4)
    w.node(cr.OP_MLP, param=dense_layer(w, "bot", 13, 4, cr.RELU), src=x, dst=f)
    w.node(cr.OP_DOT, src=f, dst=z, nvec=4, dim=4, vec_step=4, flags=1)
    for h in range(2):
        w.node(cr.OP_MLP, param=dense_layer(w, f"head{h}", 14, 1, cr.SIGMOID), src=z, dst=heads,
               dst_off=h)
    w.write(folder + "/two-heads.crm", 13, 26)


def ncf():
    """GMF by DOT over vectors of one element, repeated; MLP path beside it; no dense input."""
    d = 8
    w = cr.Writer({"name": "NCF"})
    gmf_in, mlp_in = w.buffer("gmf-in", 2 * d), w.buffer("mlp-in", 2 * d)
    gmf, both = w.buffer("gmf", 2 * d), w.buffer("both", 2 * d + 6)
    hidden = w.buffer("hidden", 12)
    out = w.buffer("score", 1, cr.OUTPUT)
    for path, dst in (("gmf", gmf_in), ("mlp", mlp_in)):
        for i, side in enumerate(("user", "item")):
            w.node(cr.OP_EMB, param=w.dense_table(f"{path}-{side}", rows(500, d), range(500)),
                   column=2 + i, dst=dst, dst_off=i * d)
    w.node(cr.OP_DOT, src=gmf_in, dst=gmf, nvec=2, dim=1, vec_step=d, repeat=d, src_step=1,
           dst_step=2)
    w.node(cr.OP_CAT, src=gmf, dst=both, nvec=1, dim=2 * d, vec_step=2 * d)
    w.node(cr.OP_MLP, param=dense_layer(w, "mlp0", 2 * d, 12, cr.RELU), src=mlp_in, dst=hidden)
    w.node(cr.OP_MLP, param=dense_layer(w, "mlp1", 12, 6, cr.RELU), src=hidden, dst=both,
           dst_off=2 * d)
    # the products are the odd elements of gmf; u itself gets no weight
    weights = rng.normal(0, 1, (1, 2 * d + 6))
    weights[0, 0:2 * d:2] = 0
    w.node(cr.OP_MLP, param=w.layer("out", weights, np.zeros(1), cr.SIGMOID), src=both, dst=out)
    w.write(folder + "/ncf.crm", 13, 26)


wide_deep()
two_heads()
ncf()
