#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Trains the small DLRM that csrec ships, on what csrec-gen writes.

    csrec-gen --rows N --seed 1 ... | train.py --output tools/data/sample.crm -

The three largest tables are trained in tensor-train form (three cores, as
facebookresearch/FBTT-Embedding lays them out), the others row by row. Needs
python3-torch. Seeds are fixed: one machine gives one model.
"""

import argparse
import json
import struct
import sys

import numpy as np
import torch

import crmodel

DIM = 16
NDENSE, NCAT = 13, 26
BOT = [64, DIM]
TOP = [64, 32, 1]
# Rows per table; a categorical value is used modulo this.
ROWS = [1460, 583, 100000, 4000, 305, 24, 4000, 633, 3, 4000, 4000, 80000, 3194, 27, 4000, 60000,
        10, 4000, 2173, 4, 4000, 18, 15, 4000, 105, 4000]
# TT tables: p (its product covers the rows), q, ranks
TT = {2: ((50, 50, 40), (2, 2, 4), (8, 8)),
      11: ((40, 50, 40), (2, 2, 4), (8, 8)),
      15: ((40, 40, 40), (2, 2, 4), (8, 8))}
ORDER_FROM = 1000	# tables with fewer rows are not worth splitting


def read_tsv(f):
    dense, cats, labels = [], [], []
    for line in f:
        fields = line.rstrip("\n").split("\t")
        labels.append(int(fields[0]))
        dense.append([max(int(x or 0), 0) for x in fields[1:14]])
        cats.append([int(x or "0", 16) % n for x, n in zip(fields[14:], ROWS)])
    x = np.log(np.array(dense, dtype=np.float32) + np.float32(1))
    return torch.from_numpy(x), torch.tensor(cats), torch.tensor(labels, dtype=torch.float32)


class TTEmbedding(torch.nn.Module):
    def __init__(self, p, q, r):
        super().__init__()
        self.p = p
        ranks = [1, *r, 1]
        # Elements of the product get the deviation that a row table's have.
        std = (0.05 ** 2 / (r[0] * r[1])) ** (1 / 6)
        self.cores = torch.nn.ParameterList(
            [torch.nn.Parameter(torch.randn(p[k], ranks[k], q[k], ranks[k + 1]) * std)
             for k in range(3)])

    def forward(self, ids):
        p = self.p
        a = self.cores[0][ids // (p[1] * p[2])]		# b 1 q0 r1
        b = self.cores[1][ids // p[2] % p[1]]		# b r1 q1 r2
        c = self.cores[2][ids % p[2]]			# b r2 q2 1
        ab = torch.einsum("bxi,bijk->bxjk", a[:, 0], b)
        return torch.einsum("bxjk,bkl->bxjl", ab, c[..., 0]).reshape(len(ids), -1)


class Rows(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(n, DIM) * 0.05)

    def forward(self, ids):
        return torch.nn.functional.embedding(ids, self.weight)


def mlp(n, widths, last):
    layers = []
    for i, m in enumerate(widths):
        layers.append(torch.nn.Linear(n, m))
        layers.append(last if i == len(widths) - 1 else torch.nn.ReLU())
        n = m
    return torch.nn.Sequential(*layers)


class DLRM(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = torch.nn.ModuleList(
            [TTEmbedding(*TT[t]) if t in TT else Rows(ROWS[t]) for t in range(NCAT)])
        self.bot = mlp(NDENSE, BOT, torch.nn.ReLU())
        pairs = (NCAT + 1) * NCAT // 2
        self.top = mlp(DIM + pairs, TOP, torch.nn.Identity())
        self.tril = torch.tril_indices(NCAT + 1, NCAT + 1, -1)

    def forward(self, x, ids):
        v = self.bot(x)
        t = torch.stack([v] + [self.tables[i](ids[:, i]) for i in range(NCAT)], 1)
        z = torch.bmm(t, t.transpose(1, 2))[:, self.tril[0], self.tril[1]]
        return self.top(torch.cat([v, z], 1))[:, 0]


def auc(score, label):
    """Probability that a click scores above a non-click, ties counting half."""
    _, inverse, counts = np.unique(score, return_inverse=True, return_counts=True)
    rank = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    pos = label > 0.5
    n1, n0 = pos.sum(), (~pos).sum()
    return (rank[pos].sum() - n1 * (n1 + 1) / 2) / (n1 * n0)


def evaluate(model, x, ids, y):
    with torch.no_grad():
        z = torch.cat([model(x[i:i + 4096], ids[i:i + 4096]) for i in range(0, len(y), 4096)])
        loss = torch.nn.functional.binary_cross_entropy_with_logits(z, y)
    return auc(z.numpy().astype(np.float64), y.numpy()), loss.item()


def export(model, ids, path, meta):
    w = crmodel.Writer(meta)
    tables = []
    for t in range(NCAT):
        module = model.tables[t]
        if t in TT:
            cores = [c.detach().numpy() for c in module.cores]
            tables.append(w.tt_table(f"C{t + 1}", ROWS[t], cores))
            continue
        order = None
        if ROWS[t] >= ORDER_FROM:
            counts = np.bincount(ids[:, t].numpy(), minlength=ROWS[t])
            order = np.argsort(-counts, kind="stable")
        tables.append(w.dense_table(f"C{t + 1}", module.weight.detach().numpy(), order))

    def layers(prefix, seq, last):
        linear = [m for m in seq if isinstance(m, torch.nn.Linear)]
        return [w.layer(f"{prefix}{i}", m.weight.detach().numpy(), m.bias.detach().numpy(),
                        last if i == len(linear) - 1 else crmodel.RELU)
                for i, m in enumerate(linear)]

    bot = layers("bot", model.bot, crmodel.RELU)
    top = layers("top", model.top, crmodel.SIGMOID)

    # [dense vector, 26 embeddings] side by side is what the interaction reads
    x = w.buffer("dense", NDENSE, crmodel.DENSE)
    features = w.buffer("features", (NCAT + 1) * DIM)
    for t in tables:
        w.node(crmodel.OP_EMB, param=t, column=t, dst=features, dst_off=(t + 1) * DIM)
    src = x
    for i, layer in enumerate(bot):
        last = i == len(bot) - 1
        dst = features if last else w.buffer(f"bot{i}", BOT[i])
        w.node(crmodel.OP_MLP, param=layer, src=src, dst=dst)
        src = dst
    src = w.buffer("interaction", DIM + (NCAT + 1) * NCAT // 2)
    w.node(crmodel.OP_DOT, src=features, dst=src, nvec=NCAT + 1, dim=DIM, vec_step=DIM)
    for i, layer in enumerate(top):
        last = i == len(top) - 1
        dst = w.buffer("click" if last else f"top{i}", TOP[i],
                       crmodel.OUTPUT if last else crmodel.TEMP)
        w.node(crmodel.OP_MLP, param=layer, src=src, dst=dst)
        src = dst
    w.write(path, NDENSE, NCAT)


def save_safetensors(model, path):
    """The parameters by facebookresearch/dlrm's keys, which csrec convert takes; tables that
    were trained in TT form as the rows they stand for."""
    tensors = {}
    with torch.no_grad():
        for t in range(NCAT):
            tensors[f"emb_l.{t}.weight"] = model.tables[t](torch.arange(ROWS[t]))
    for name, seq in (("bot_l", model.bot), ("top_l", model.top)):
        for i, m in enumerate(seq):
            if isinstance(m, torch.nn.Linear):
                tensors[f"{name}.{i}.weight"] = m.weight.detach()
                tensors[f"{name}.{i}.bias"] = m.bias.detach()
    head, at = {}, 0
    for key, v in tensors.items():
        head[key] = {"dtype": "F32", "shape": list(v.shape), "data_offsets": [at, at + 4 * v.numel()]}
        at += 4 * v.numel()
    text = json.dumps(head).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for v in tensors.values():
            f.write(np.ascontiguousarray(v.numpy(), dtype="<f4").tobytes())


def main():
    ap = argparse.ArgumentParser(description="Trains the sample DLRM.")
    ap.add_argument("input", help="training TSV, - for standard input")
    ap.add_argument("--test", help="TSV to report AUC on after each epoch")
    ap.add_argument("--output", required=True, help="model container to write")
    ap.add_argument("--safetensors", help="also write the parameters, for csrec convert")
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--batch", type=int, default=512)
    ap.add_argument("--lr", type=float, default=0.002)
    ap.add_argument("--decay", type=float, default=0.3, help="learning-rate factor per epoch")
    ap.add_argument("--threads", type=int, default=1)
    args = ap.parse_args()

    torch.manual_seed(20)
    torch.set_num_threads(args.threads)
    torch.use_deterministic_algorithms(True)
    with sys.stdin if args.input == "-" else open(args.input, encoding="ascii") as f:
        x, ids, y = read_tsv(f)
    test = None
    if args.test:
        with open(args.test, encoding="ascii") as f:
            test = read_tsv(f)
    print(f"{len(y)} rows, {y.mean().item():.3f} clicks", flush=True)

    model = DLRM()
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    order = torch.Generator().manual_seed(21)
    for epoch in range(args.epochs):
        total = 0
        perm = torch.randperm(len(y), generator=order)
        for i in range(0, len(y) - args.batch + 1, args.batch):
            b = perm[i:i + args.batch]
            loss = torch.nn.functional.binary_cross_entropy_with_logits(model(x[b], ids[b]), y[b])
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            total += loss.item()
        for g in opt.param_groups:
            g["lr"] *= args.decay
        msg = f"epoch {epoch}: training loss {total / (len(y) // args.batch):.4f}"
        if test:
            msg += ", test AUC {:.4f}, loss {:.4f}".format(*evaluate(model, *test))
        print(msg, flush=True)

    if args.safetensors:
        save_safetensors(model, args.safetensors)
    export(model, ids, args.output, {
        "name": "csrec sample DLRM",
        "arch": {"bot": [NDENSE, *BOT], "top": TOP, "dim": DIM, "interaction": "dot"},
        "training": {"rows": len(y), "epochs": args.epochs, "batch": args.batch, "lr": args.lr,
                     "decay": args.decay, "seed": 20},
    })


if __name__ == "__main__":
    main()
