#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Inputs of the converter's tests, and what must come of them.

    inputs.py FOLDER        writes FOLDER/NAME.safetensors or .npz, .json (arch), .want;
                            clicks.tsv; hostile files and hostile.list
    inputs.py FOLDER NAME SCORES          compares the scores of a converted model
    inputs.py FOLDER rows TYPE FILE.npy   compares extracted rows of table C3 of "dot"

The models' forward passes are written here from their definitions (facebookresearch/dlrm,
TorchRec, DeepRecInfra), in float64, and share nothing with the converter or its container.
"""

import json
import struct
import sys
import zipfile

import numpy as np

folder = sys.argv[1]
NDENSE, NLINES = 13, 60


def safetensors(path, tensors, types=None, pad=0, meta=True):
    """8-byte length, JSON, data; tensors in an order that is not the keys'."""
    head, data = ({"__metadata__": {"format": "pt"}} if meta else {}), b""
    for key in sorted(tensors, key=lambda k: (k[::-1], k)):
        a = np.asarray(tensors[key])
        kind = (types or {}).get(key, "F32")
        if kind == "BF16":
            raw = (a.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()
        else:
            raw = a.astype({"F32": "<f4", "F16": "<f2"}[kind]).tobytes()
        head[key] = {"dtype": kind, "shape": list(a.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(head).encode() + b" " * pad
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def clicks():
    rng = np.random.default_rng(1)
    lines, dense, cats = [], [], []
    for _ in range(NLINES):
        ints = [int(v) for v in rng.integers(-3, 60, NDENSE)]
        ids = [int(v) for v in rng.integers(0, 2**32, 26)]
        lines.append("\t".join([str(int(rng.integers(0, 2)))] + [str(v) for v in ints] + [f"{v:08x}" for v in ids]))
        dense.append([max(v, 0) for v in ints])
        cats.append(ids)
    with open(folder + "/clicks.tsv", "w", encoding="ascii") as f:
        f.write("\n".join(lines) + "\n")
    x = np.log(np.array(dense, dtype=np.float32) + np.float32(1)).astype(np.float64)
    return x, np.array(cats)


def f32(rng, *shape, scale=0.4):
    return rng.normal(0, scale, shape).astype(np.float32)


def linears(rng, tensors, keys, widths):
    for (w, b), n_in, n_out in zip(keys, widths, widths[1:]):
        tensors[w] = f32(rng, n_out, n_in, scale=(1.5 / n_in) ** 0.5)
        tensors[b] = f32(rng, n_out)


def seq(name, n):
    return [(f"{name}.{2 * i}.weight", f"{name}.{2 * i}.bias") for i in range(n)]


def relu(x):
    return np.maximum(x, 0)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def run(tensors, keys, x, last):
    for i, (w, b) in enumerate(keys):
        x = x @ tensors[w].astype(np.float64).T + tensors[b].astype(np.float64)
        x = last(x) if i == len(keys) - 1 else relu(x)
    return x


def lookup(table, ids):
    return table.astype(np.float64)[ids % len(table)]


def dlrm(seed, ntables, dims, bot, top, op, itself=False, md=None):
    """facebookresearch/dlrm: forward() of DLRM_Net, one id a bag."""
    rng = np.random.default_rng(seed)
    t = {}
    base = bot[-1]
    for i in range(ntables):
        d = dims[i % len(dims)]
        n = int(rng.integers(3, 90))
        if md and d < base:
            t[f"emb_l.{i}.embs.weight"] = f32(rng, n, d)
            t[f"emb_l.{i}.proj.weight"] = f32(rng, base, d)
        elif md and i % 2:
            t[f"emb_l.{i}.embs.weight"] = f32(rng, n, d)
        else:
            t[f"emb_l.{i}.weight"] = f32(rng, n, d)
    out = [base if md else dims[i % len(dims)] for i in range(ntables)]
    f = ntables + 1
    n_in = base + sum(out) if op == "cat" else base + f * (f + (1 if itself else -1)) // 2
    linears(rng, t, seq("bot_l", len(bot)), [NDENSE] + bot)
    linears(rng, t, seq("top_l", len(top)), [n_in] + top)

    def forward(x, cats):
        v = run(t, seq("bot_l", len(bot)), x, relu)
        ly = []
        for i in range(ntables):
            if f"emb_l.{i}.weight" in t:
                e = lookup(t[f"emb_l.{i}.weight"], cats[:, i])
            else:
                e = lookup(t[f"emb_l.{i}.embs.weight"], cats[:, i])
                if f"emb_l.{i}.proj.weight" in t:
                    e = e @ t[f"emb_l.{i}.proj.weight"].astype(np.float64).T
            ly.append(e)
        if op == "cat":
            z = np.hstack([v] + ly)
        else:
            s = np.stack([v] + ly, 1)
            pairs = [(i, j) for i in range(f) for j in range(i + (1 if itself else 0))]
            z = np.hstack([v] + [np.sum(s[:, i] * s[:, j], 1, keepdims=True) for i, j in pairs])
        return run(t, seq("top_l", len(top)), z, sigmoid)

    return t, forward


def torchrec(seed, ntables, d, bot, top, prefix):
    """torchrec.models.dlrm.DLRM, whose products come row by row above the diagonal."""
    rng = np.random.default_rng(seed)
    t, f = {}, ntables + 1
    emb = [f"{prefix}sparse_arch.embedding_bag_collection.embedding_bags.t_cat_{i}.weight" for i in range(ntables)]
    dense = [(f"{prefix}dense_arch.model._mlp.{i}._linear.weight", f"{prefix}dense_arch.model._mlp.{i}._linear.bias")
             for i in range(len(bot))]
    over = [(f"{prefix}over_arch.model.0._mlp.{i}._linear.weight", f"{prefix}over_arch.model.0._mlp.{i}._linear.bias")
            for i in range(len(top) - 1)] + [(f"{prefix}over_arch.model.1.weight", f"{prefix}over_arch.model.1.bias")]
    for key in emb:
        t[key] = f32(rng, int(rng.integers(3, 90)), d)
    linears(rng, t, dense, [NDENSE] + bot)
    linears(rng, t, over, [d + f * (f - 1) // 2] + top)

    def forward(x, cats):
        v = run(t, dense, x, relu)
        s = np.stack([v] + [lookup(t[key], cats[:, i]) for i, key in enumerate(emb)], 1)
        z = np.einsum("nfd,ngd->nfg", s, s)
        upper = np.triu_indices(f, 1)
        return run(t, over, np.hstack([v, z[:, upper[0], upper[1]]]), sigmoid)

    return t, forward


def wide_deep(seed, ntables, d, top, tasks=None, ntasks=0):
    """DeepRecInfra wide_and_deep.py and multi_task_wnd.py."""
    rng = np.random.default_rng(seed)
    t = {f"emb_l.{i}.weight": f32(rng, int(rng.integers(3, 90)), d) for i in range(ntables)}
    linears(rng, t, seq("top_l", len(top)), [NDENSE + ntables * d] + top)
    for k in range(ntasks):
        linears(rng, t, seq(f"task_l.{k}", len(tasks) - 1), tasks)

    def forward(x, cats):
        z = np.hstack([x] + [lookup(t[f"emb_l.{i}.weight"], cats[:, i]) for i in range(ntables)])
        z = run(t, seq("top_l", len(top)), z, relu if tasks else sigmoid)
        return run(t, seq("task_l.0", len(tasks) - 1), z, sigmoid) if tasks else z

    return t, forward


def ncf(seed, d, top, product):
    """DeepRecInfra ncf.py: its code adds the MF vectors, the paper multiplies them."""
    rng = np.random.default_rng(seed)
    t = {f"emb_l.{i}.weight": f32(rng, 40 + i, d) for i in range(4)}
    linears(rng, t, seq("top_l", len(top) - 1), [2 * d] + top[:-1])
    linears(rng, t, seq("final_l", 1), [d + top[-2], top[-1]])
    t["final_l.0.bias"] += 2	# so that its ReLU does not hide everything

    def forward(_, cats):
        e = [lookup(t[f"emb_l.{i}.weight"], cats[:, i]) for i in range(4)]
        mf = e[0] * e[1] if product else e[0] + e[1]
        z = run(t, seq("top_l", len(top) - 1), np.hstack(e[2:]), relu)
        return run(t, seq("final_l", 1), np.hstack([mf, z]), relu)

    return t, forward


def dashes(v):
    return "-".join(str(n) for n in v)


def cases():
    yield "dot", *dlrm(1, 26, [8], [16, 8], [24, 12, 1], "dot"), {}
    yield "itself", *dlrm(2, 5, [6], [6], [1], "dot", itself=True), {"npz": "stored"}
    yield "cat", *dlrm(3, 7, [5, 9, 2], [10, 4], [30, 20, 10, 5, 1], "cat"), {"npz": "deflated"}
    yield "mixed", *dlrm(4, 6, [8, 2, 4], [8], [9, 1], "dot", md=True), {}
    yield "half", *dlrm(5, 3, [8], [8], [9, 1], "dot"), {"types": "F16"}
    yield "bfloat", *dlrm(6, 3, [8], [8], [9, 1], "dot"), {"types": "BF16"}
    # 3 tables of 2: 2 + 6 both ways
    yield "either", *dlrm(7, 3, [2], [2], [4, 1], "cat"), {"arch": {"arch_interaction_op": "cat"}}
    yield "ddp", *dlrm(8, 3, [4], [4], [4, 1], "dot"), {"prefix": "module."}
    yield "torchrec", *torchrec(9, 26, 8, [16, 8], [24, 12, 1], ""), {}
    yield "torchrec-dmp", *torchrec(10, 12, 4, [4], [6, 1], "_dmp_wrapped_module.model."), {}
    yield "wnd", *wide_deep(11, 9, 4, [16, 8, 1]), {"arch": {
        "arch_mlp_bot": "13", "arch_mlp_top": "16-8-1", "arch_sparse_feature_size": 4,
        "num_indices_per_lookup_fixed": True, "num_indices_per_lookup": 1,
        "arch_interaction_op": "cat", "model_type": "wnd", "model_name": "wnd"}}
    yield "mtwnd", *wide_deep(12, 9, 4, [16, 8], [8, 6, 3], 3), {"arch": {
        "arch_mlp_bot": "13", "arch_mlp_top": "16-8", "arch_mlp_tasks": "8-6-3", "num_multi_tasks": 3,
        "arch_interaction_op": "cat", "model_type": "mtwnd", "model_name": "mtwnd"}}
    yield "ncf", *ncf(13, 8, [16, 16, 8, 4], False), {"arch": {
        "arch_mlp_bot": "512", "arch_mlp_top": "16-16-8-4", "arch_embedding_size": "40-41-42-43",
        "arch_sparse_feature_size": 8, "arch_interaction_op": "cat", "model_type": "ncf"}}
    yield "ncf-mul", *ncf(14, 8, [16, 16, 8, 4], True), {"arch": {"model_type": "ncf", "csrec_mf_op": "mul"}}


def write_cases():
    x, cats = clicks()
    for name, tensors, forward, how in cases():
        path = f"{folder}/{name}"
        if "types" in how:	# what the file can hold is what the model is
            for key, a in tensors.items():
                a = a.astype(np.float16) if how["types"] == "F16" else \
                    (a.view("<u4") & np.uint32(0xffff0000)).view("<f4")
                tensors[key] = a.astype(np.float32)
        want = forward(x, cats)[:, 0]
        assert want.std() > 1e-3, name
        np.savetxt(path + ".want", want, fmt="%.17g")
        stored = {how.get("prefix", "") + key: a for key, a in tensors.items()}
        if "npz" in how:
            (np.savez if how["npz"] == "stored" else np.savez_compressed)(path + ".npz", **stored)
        else:
            safetensors(path + ".safetensors", stored, dict.fromkeys(stored, how.get("types", "F32")), pad=len(name))
        if "arch" in how:
            with open(path + ".json", "w", encoding="ascii") as f:
                json.dump(how["arch"], f)
        if name == "dot":
            np.save(folder + "/C3.npy", tensors["emb_l.2.weight"])


def hostile():
    """Files that must be refused, each with what the message has to say."""
    t, _ = dlrm(20, 3, [4], [4], [4, 1], "dot")
    out = []

    def case(name, text, data, ext="safetensors", arch=None):
        with open(f"{folder}/h-{name}.{ext}", "wb") as f:
            f.write(data)
        if arch:
            with open(f"{folder}/h-{name}.json", "w", encoding="ascii") as f:
                f.write(arch)
        out.append(f"h-{name}\t{ext}\t{text}")

    def st(tensors, types=None):
        safetensors(folder + "/tmp", tensors, types)
        with open(folder + "/tmp", "rb") as f:
            return f.read()

    def header(change, data=b""):
        raw = st(t)
        n = struct.unpack_from("<Q", raw)[0]
        head = json.loads(raw[8:8 + n])
        text = change(head)
        text = text if isinstance(text, bytes) else json.dumps(head).encode()
        return struct.pack("<Q", len(text)) + text + raw[8 + n:] + data

    def without(key):
        return st({k: v for k, v in t.items() if k != key})

    def having(key, value, **kw):
        return st({**t, key: value}, **kw)

    def poisoned(key, value):
        a = t[key].copy()
        a.flat[5] = value
        return st({**t, key: a})

    good = st(t)
    case("empty", "0 bytes", b"")
    case("text", "no safetensors file", b"label\t1\t2\t3 and so on, some text")
    case("header-huge", "at most 16777216", struct.pack("<Q", 1 << 25) + b"{" * (1 << 25))
    case("header-2^63", "no safetensors file", struct.pack("<Q", 1 << 63) + good[8:])
    case("deep", "depth", struct.pack("<Q", 100000) + b'{"a":' + b"[" * 99995)
    case("array", "'{' is missing", struct.pack("<Q", 8) + b"[1,2,33]")
    case("cut", "is the file cut?", good[:-100])
    case("longer", "8 bytes behind the last tensor", good + bytes(8))
    case("duplicate", "duplicate", header(lambda h: json.dumps(h).encode()[:-1] + b',"emb_l.0.weight":{}}'))
    case("entry", "top_l.2.bias: header entry", header(lambda h: h["top_l.2.bias"].update(more=1)))
    case("offsets-back", "leave the", header(lambda h: h["emb_l.0.weight"]["data_offsets"].reverse()))
    case("offsets-text", "emb_l.0.weight: data_offsets are not numbers",
         header(lambda h: h["emb_l.0.weight"].update(data_offsets=["0", "4"])))
    case("offset-2^70", "too big", header(lambda h: h["emb_l.0.weight"].update(data_offsets=[0, 2**70])))

    def overlap(h):
        last = max((v for k, v in h.items() if k != "__metadata__"), key=lambda v: v["data_offsets"][1])
        last["data_offsets"] = [at - 4 for at in last["data_offsets"]]
    case("overlap", "within another tensor", header(overlap))
    case("gap", "behind a gap", header(lambda h: h.pop("bot_l.0.bias") and None))
    case("shape", "its shape takes", header(lambda h: h["emb_l.1.weight"].update(shape=[1, 4])))
    case("shape-2^62", "no sensible size", header(lambda h: h["emb_l.1.weight"].update(shape=[2**62, 2**62])))
    case("shape-negative", "shape is not of numbers", header(lambda h: h["emb_l.1.weight"].update(shape=[-1, 4])))
    case("dtype", "emb_l.1.weight, at byte", header(lambda h: h["emb_l.1.weight"].update(dtype="I64")))
    case("nan", "emb_l.1.weight: element 5, at byte", poisoned("emb_l.1.weight", np.nan))
    case("infinite", "top_l.0.weight: element 5, at byte", poisoned("top_l.0.weight", -np.inf))
    case("nan-bias", "bot_l.0.bias: element", st({**t, "bot_l.0.bias": np.full(4, np.nan)}))
    case("missing-table", "emb_l.1.weight is missing", without("emb_l.1.weight"))
    case("missing-bias", "top_l.2.bias is missing", without("top_l.2.bias"))
    case("missing-layer", "top_l.0.weight is missing", without("top_l.0.weight"))
    case("extra", "optimizer.lr, at byte", having("optimizer.lr", np.zeros(3)))
    case("other-prefix", "do not belong to one model", having("x.emb_l.3.weight", np.zeros((3, 4))))
    case("odd-layer", "top_l.1.weight, at byte", having("top_l.1.weight", np.zeros((1, 4))))
    case("table-1d", "a table is [rows, dim]", having("emb_l.1.weight", np.zeros(8)))
    case("table-3d", "3 dimensions", having("emb_l.1.weight", np.zeros((2, 2, 2))))
    case("table-empty", "a table is [rows, dim]", having("emb_l.1.weight", np.zeros((0, 4))))
    case("table-wide", "a table is [rows, dim]", having("emb_l.1.weight", np.zeros((1, 1025))))
    case("layer-in", "takes 5 inputs", having("top_l.2.weight", np.zeros((1, 5))))
    case("bias", "top_l.2.bias, at byte", having("top_l.2.bias", np.zeros(2)))
    case("interaction", "interaction dot gives 10", having("top_l.0.weight", np.zeros((4, 11))))
    either, _ = dlrm(7, 3, [2], [2], [4, 1], "cat")
    case("ambiguous", "may be dot or cat", st(either))
    case("qr", "quotient-remainder", having("emb_l.1.weight_q", np.zeros((3, 4))))
    case("pooling", "weighted pooling", having("v_W_l.0", np.zeros(3)))
    tr, _ = torchrec(9, 3, 4, [4], [6, 1], "")
    case("dcn", "cross network (DCN)", st({**tr, "inter_arch.crossnet.W_kernels.0": np.zeros((4, 4))}))
    case("projection", "DLRM_Projection", st({**tr, "inter_arch.interaction_branch1.model.0.weight": np.zeros((4, 4))}))
    case("key-control", "has byte 0x1b", having("emb_l.\33[2J", np.zeros(3)))
    case("key-long", "a key of 300 bytes", having("e" * 300, np.zeros(3)))
    for kind in ("din", "dien", "dcn"):
        case("type-" + kind, f"'{kind}' cannot be converted", good, arch=json.dumps({"model_type": kind, "user_behavior_tables": 250}))
    case("arch-op", "neither dot nor cat", good, arch='{"arch_interaction_op": "sum"}')
    case("arch-top", "not those of arch_mlp_top", good, arch='{"arch_mlp_top": "5-1"}')
    case("arch-bot", "not those of arch_mlp_bot", good, arch='{"arch_mlp_bot": "12-4"}')
    case("arch-dim", "arch_sparse_feature_size says 8", good, arch='{"arch_sparse_feature_size": 8}')
    case("arch-tables", "arch_embedding_size 2", good, arch='{"arch_embedding_size": "3-4"}')
    case("arch-itself", "with arch_interaction_itself gives 14", good,
         arch='{"arch_interaction_op": "dot", "arch_interaction_itself": true}')
    case("arch-unknown", "arch_mlp_bottom is unknown", good, arch='{"arch_mlp_bottom": "13-4"}')
    case("arch-numbers", "is not numbers with -", good, arch='{"arch_mlp_bot": "13--4"}')
    case("arch-json", "line 1", good, arch='{"arch_mlp_bot": ')
    case("arch-wnd", "no bottom MLP", good, arch='{"model_type": "wnd"}')
    case("arch-clamp", "loss_threshold", good, arch='{"loss_threshold": 0.1}')

    # npz
    np.savez(folder + "/tmp.npz", **t)
    with open(folder + "/tmp.npz", "rb") as f:
        stored = f.read()
    np.savez_compressed(folder + "/tmp.npz", **t)
    with open(folder + "/tmp.npz", "rb") as f:
        packed = f.read()
    where = stored.index(t["emb_l.1.weight"].tobytes())

    def npz(tensors):
        np.savez(folder + "/tmp.npz", **tensors)
        with open(folder + "/tmp.npz", "rb") as f:
            return f.read()

    case("npz-text", "no zip directory", b"x" * 100, "npz")
    case("npz-cut", "no zip directory", stored[:-10], "npz")
    case("npz-front", "possible", stored[1000:], "npz")
    case("npz-bit", "emb_l.1.weight: checksum", stored[:where + 1] + bytes([stored[where + 1] ^ 1]) + stored[where + 2:], "npz")
    case("npz-int", "type '<i8'", npz({**t, "emb_l.1.weight": np.zeros((3, 4), dtype="<i8")}), "npz")
    case("npz-big-endian", "type '>f4'", npz({**t, "emb_l.1.weight": np.zeros((3, 4), dtype=">f4")}), "npz")
    case("npz-fortran", "Fortran order", npz({**t, "emb_l.1.weight": np.asfortranarray(t["emb_l.1.weight"])}), "npz")
    case("npz-nan", "emb_l.1.weight: element 0", npz({**t, "emb_l.1.weight": np.full((3, 4), np.nan, dtype="f4")}), "npz")
    at = packed.index(b"emb_l.1.weight.npy") + 60
    case("npz-deflate", "emb_l.1.weight", packed[:at] + b"\xff" * 20 + packed[at + 20:], "npz")
    with zipfile.ZipFile(folder + "/tmp.npz", "w", zipfile.ZIP_BZIP2) as z:
        z.writestr("emb_l.0.weight.npy", bytes(200))
    with open(folder + "/tmp.npz", "rb") as f:
        case("npz-bzip2", "method 12", f.read(), "npz")
    with zipfile.ZipFile(folder + "/tmp.npz", "w") as z:
        z.writestr("readme.txt", "x")
    with open(folder + "/tmp.npz", "rb") as f:
        case("npz-member", "is no .npy", f.read(), "npz")
    with zipfile.ZipFile(folder + "/tmp.npz", "w") as z:
        z.writestr("emb_l.0.weight.npy", b"\x93NUMPY\1\0\x40\0" + b"{'descr': '<f4', 'shape': (" + b"9" * 40 + b"), }" + bytes(64))
    with open(folder + "/tmp.npz", "rb") as f:
        case("npz-header", "not what numpy writes", f.read(), "npz")
    with open(folder + "/hostile.list", "w", encoding="utf-8") as f:
        f.write("\n".join(out) + "\n")


def other_columns():
    """Five dense inputs, one of ids: no click log has that."""
    safetensors(folder + "/columns.safetensors", {
        "emb_l.0.weight": np.ones((3, 4)), "top_l.0.weight": np.ones((1, 9)), "top_l.0.bias": np.ones(1)})


def large(gib):
    """One table of that many GiB, all zeros, in a file that takes no room."""
    rows = int(gib * 2**30) // (4 * 64)
    head, at = {}, 0
    shapes = {"emb_l.0.weight": [rows, 64], "bot_l.0.weight": [64, 13], "bot_l.0.bias": [64],
              "top_l.0.weight": [1, 65], "top_l.0.bias": [1]}
    for key, shape in shapes.items():
        n = 4 * int(np.prod(shape))
        head[key] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + n]}
        at += n
    text = json.dumps(head).encode()
    with open(folder + "/large.safetensors", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.truncate(8 + len(text) + at)


def quantized(a, kind):
    """ATen qembeddingbag_byte_prepack and its inverse, in float32 step by step; binary16."""
    if kind == "fp16":
        return a.astype(np.float16).astype(np.float32)
    if kind == "fp32":
        return a
    lo, hi = a.min(1, keepdims=True), a.max(1, keepdims=True)
    span = hi - lo
    q = np.rint((a - lo) * (np.float32(255) / (span + np.float32(1e-8))))
    return q * (span / np.float32(255)) + lo


if len(sys.argv) == 2:
    write_cases()
    hostile()
    other_columns()
    large(2.5)
elif sys.argv[2] == "rows":
    want = quantized(np.load(folder + "/C3.npy"), sys.argv[3])
    got = np.load(sys.argv[4])
    assert want.dtype == got.dtype == np.float32 and want.shape == got.shape
    assert np.array_equal(want.view("u4"), got.view("u4")), "rows differ"
else:
    want = np.loadtxt(f"{folder}/{sys.argv[2]}.want")
    with open(sys.argv[3], encoding="ascii") as f:
        got = [line.split()[-1] for line in f]
    got = np.array([float(v) for v in got if v != "score"])
    err = np.max(np.abs(got - want) / np.maximum(1, np.abs(want))) if len(got) == len(want) else np.inf
    print(f"# {len(got)} scores, largest difference {err:.3e}")
    sys.exit(0 if err < 2e-6 else 1)
