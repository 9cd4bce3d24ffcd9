#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The golden compute library against an oracle that follows REFERENCE.md section 5 on its
own, bit by bit, and against float64, loosely, so that the rules themselves make sense.

    compute_test.py LIBCSREC_GOLDEN.SO

float32 sums and products of the oracle are numpy's; those in turn are compared with
exact rational arithmetic rounded by hand, so that nothing rests on the FPU's word.
"""
import ctypes as ct
import math
import random
import sys
from fractions import Fraction

import numpy as np

F32, U32 = np.float32, np.uint32
NAN = 0x7FC00000
OK, BAD_OFFSETS, BAD_ID = 0, 12, 13
DOT, CAT = 0, 1
ACT_NONE, ACT_RELU, ACT_SIGMOID = 0, 1, 2

lib = ct.CDLL(sys.argv[1])
rng = np.random.default_rng(20261130)
np.seterr(all="ignore")

ntests = nfailed = 0


def ok(cond, name, why=""):
    global ntests, nfailed
    ntests += 1
    print(f"{'ok' if cond else 'not ok'} {ntests} - compute: {name}", flush=True)
    if not cond:
        nfailed += 1
        if why:
            print(f"# {why}")


def bits(a):
    return np.ascontiguousarray(a, F32).view(U32)


def same(got, want, name):
    g, w = bits(got).ravel(), bits(want).ravel()
    if g.shape != w.shape:
        ok(False, name, f"shapes {g.shape} and {w.shape}")
        return
    bad = np.flatnonzero(g != w)
    ok(bad.size == 0, name, bad.size and
       f"{bad.size} of {g.size} differ, first at {bad[0]}: got {g[bad[0]]:08x}, "
       f"expected {w[bad[0]]:08x}")


# --- the oracle -----------------------------------------------------------------

def f(pattern):
    return np.array(pattern, U32).view(F32)


def canon(a):
    a = np.array(a, F32)
    a.view(U32)[np.isnan(a)] = NAN
    return a


def add(a, b):
    return canon(np.add(a, b, dtype=F32))


def mul(a, b):
    return canon(np.multiply(a, b, dtype=F32))


def neg(a):
    return (np.array(a, F32).view(U32) ^ U32(0x80000000)).view(F32)


def dot(a, b):
    """Over the last axis of both, which broadcast against each other."""
    a, b = np.broadcast_arrays(np.asarray(a, F32), np.asarray(b, F32))
    p = [np.zeros(a.shape[:-1], F32) for _ in range(8)]
    for k in range(a.shape[-1]):
        p[k % 8] = add(p[k % 8], mul(a[..., k], b[..., k]))
    return add(add(add(p[0], p[1]), add(p[2], p[3])), add(add(p[4], p[5]), add(p[6], p[7])))


def relu(x):
    x = np.asarray(x, F32)
    return canon(np.where((x > 0) | np.isnan(x), x, F32(0)))


def sigmoid(x):
    x = np.atleast_1d(np.array(x, F32))
    nan = np.isnan(x)
    t = np.minimum((np.where(nan, F32(0), x).view(U32) & U32(0x7FFFFFFF)).view(F32), F32(104))
    log2e, magic, hi, lo = f(0x3FB8AA3B), f(0x4B400000), f(0x3F318000), f(0xB95E8083)
    m = add(mul(t, log2e), magic)
    k = (m.view(U32) & U32(0xFF)).astype(int)
    kf = add(m, neg(magic))
    r = add(add(t, neg(mul(kf, hi))), neg(mul(kf, lo)))
    u = neg(r)
    c = [f(v) for v in (0x39506967, 0x3AB743CE, 0x3C088908, 0x3D2AA9C1, 0x3E2AAAAA, 0x3F000000)]
    p = np.broadcast_to(c[0], u.shape)
    for ci in c[1:]:
        p = add(mul(p, u), ci)
    p = mul(p, mul(u, u))
    p = add(p, u)
    p = add(p, F32(1))
    e = mul(p, np.ldexp(1.0, -np.minimum(k, 100)).astype(F32))
    e = np.where(k > 100, mul(e, np.ldexp(1.0, -np.maximum(k - 100, 0)).astype(F32)), e)
    d = add(F32(1), e)
    y = (U32(0x7EF311C7) - d.view(U32)).view(F32)
    for _ in range(2):
        y = mul(y, add(F32(2), neg(mul(d, y))))
    y = add(y, mul(y, add(F32(1), neg(mul(d, y)))))
    y = np.where(x.view(U32) >> U32(31) == 0, y, mul(e, y))
    y = np.array(y, F32)
    y.view(U32)[nan] = NAN
    return y


def act(y, kind):
    return {ACT_NONE: lambda v: v, ACT_RELU: relu, ACT_SIGMOID: sigmoid}[kind](y)


def emb(table, ids, offsets, weights):
    out = np.zeros((len(offsets) - 1, table.shape[1]), F32)
    for b in range(len(offsets) - 1):
        s = np.zeros(table.shape[1], F32)
        for j in range(offsets[b], offsets[b + 1]):
            row = table[ids[j]]
            s = add(s, row if weights is None else mul(weights[j], row))
        out[b] = s
    return out


def tt_rows(cores, p, q, r):
    """Every row of the table that three cores stand for."""
    rows = []
    for i in range(p[0] * p[1] * p[2]):
        i0, i1, i2 = i // (p[1] * p[2]), i // p[2] % p[1], i % p[2]
        a = cores[0][i0].reshape(q[0], r[0])
        b = cores[1][i1].reshape(r[0], q[1] * r[1])
        c = cores[2][i2].reshape(r[1], q[2])
        t = dot(a[:, None, :], b.T[None, :, :]).reshape(q[0] * q[1], r[1])
        rows.append(dot(t[:, None, :], c.T[None, :, :]).reshape(-1))
    return np.array(rows, F32)


def interact(v, op, self):
    n = v.shape[0]
    if op == CAT:
        return v.reshape(-1)
    pairs = [dot(v[i], v[j]) for i in range(n) for j in range(i + self)]
    return np.concatenate([v[0], np.array(pairs, F32)])


# --- float32 by exact arithmetic ------------------------------------------------

def exact(pattern):
    e, m = pattern >> 23 & 0xFF, pattern & 0x7FFFFF
    v = Fraction(m, 1) if e == 0 else Fraction(m | 1 << 23, 1) * 2 ** (e - 1)
    v /= 2 ** 149
    return -v if pattern >> 31 else v


def rounded(v):
    """Nearest-even float32 pattern of a non-zero rational."""
    sign, v = (1 << 31, -v) if v < 0 else (0, v)
    units = v * 2 ** 149          # in smallest subnormals
    shift = max(0, (units.numerator // units.denominator).bit_length() - 24)
    scaled = units / 2 ** shift
    n = scaled.numerator // scaled.denominator
    rest = scaled - n
    if rest > Fraction(1, 2) or rest == Fraction(1, 2) and n & 1:
        n += 1
    if n == 1 << 24:
        n, shift = 1 << 23, shift + 1
    if n < 1 << 23:
        return sign | n           # subnormal: shift is 0
    if shift + 1 >= 255:
        return sign | 0x7F800000
    return sign | (shift + 1) << 23 | n & 0x7FFFFF


def is_nan(u):
    return u & 0x7FFFFFFF > 0x7F800000


def is_inf(u):
    return u & 0x7FFFFFFF == 0x7F800000


def exact_add(a, b):
    if is_nan(a) or is_nan(b) or is_inf(a) and is_inf(b) and a != b:
        return NAN
    if is_inf(a) or is_inf(b):
        return a if is_inf(a) else b
    v = exact(a) + exact(b)
    if v == 0:
        return a & b & 1 << 31 if exact(a) == 0 else 0
    return rounded(v)


def exact_mul(a, b):
    sign = (a ^ b) & 1 << 31
    zero = exact(a) == 0 and not is_inf(a) or exact(b) == 0 and not is_inf(b)
    if is_nan(a) or is_nan(b) or zero and (is_inf(a) or is_inf(b)):
        return NAN
    if is_inf(a) or is_inf(b):
        return sign | 0x7F800000
    if zero:
        return sign
    return rounded(exact(a) * exact(b))


# --- operands -------------------------------------------------------------------

EDGE = np.array([
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000,
    0x80800000, 0x3F800000, 0xBF800000, 0x3F800001, 0x3F7FFFFF, 0x7F7FFFFF, 0xFF7FFFFF,
    0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001, 0x7F800001, 0xFFFFFFFF, 0x34000000,
    0x33800000, 0x4B800000, 0x20000000, 0x1F800000, 0x5F000000,
], U32)


def normal(shape):
    return rng.standard_normal(shape).astype(F32)


def wild(shape):
    """Any bit pattern, a quarter of them from the edge cases."""
    u = rng.integers(0, 1 << 32, shape, dtype=np.uint64).astype(U32)
    e = rng.choice(EDGE, shape)
    return np.where(rng.random(shape) < 0.25, e, u).astype(U32).view(F32)


def tiny(shape):
    """Sums and products around the subnormals."""
    return np.ldexp(rng.standard_normal(shape), rng.integers(-75, -60, shape)).astype(F32)


def integers(shape):
    return rng.integers(-9, 10, shape).astype(F32)


KINDS = {"normal": normal, "wild": wild, "tiny": tiny, "integer": integers}


# --- the library ----------------------------------------------------------------

class Bags(ct.Structure):
    _fields_ = [("nbags", ct.c_uint32), ("nids", ct.c_uint32), ("ids", ct.c_void_p),
                ("offsets", ct.c_void_p), ("weights", ct.c_void_p), ("nrows", ct.c_uint64),
                ("out", ct.c_void_p), ("out_stride", ct.c_size_t)]


class Mlp(ct.Structure):
    _fields_ = [("batch", ct.c_size_t), ("in_dim", ct.c_size_t), ("out_dim", ct.c_size_t),
                ("x", ct.c_void_p), ("w", ct.c_void_p), ("bias", ct.c_void_p),
                ("y", ct.c_void_p), ("x_stride", ct.c_size_t), ("w_stride", ct.c_size_t),
                ("y_stride", ct.c_size_t), ("act", ct.c_int)]


PTR = ct.c_void_p
lib.csrec_golden_env_ok.restype = ct.c_bool
for fn in ("add", "mul", "relu", "sigmoid", "dot"):
    getattr(lib, "csrec_golden_" + fn).restype = ct.c_float
lib.csrec_golden_dot.argtypes = [PTR, PTR, ct.c_size_t]
lib.csrec_golden_emb.argtypes = [PTR, PTR, ct.c_size_t, ct.c_size_t, PTR]
lib.csrec_golden_tt.argtypes = [PTR, PTR, PTR, PTR, PTR, ct.c_bool, PTR]
lib.csrec_golden_interact.argtypes = [PTR, PTR, ct.c_size_t, ct.c_size_t, ct.c_size_t,
                                      ct.c_int, ct.c_bool]
lib.csrec_golden_interact.restype = None
lib.csrec_golden_interact_len.argtypes = [ct.c_int, ct.c_bool, ct.c_size_t, ct.c_size_t]
lib.csrec_golden_interact_len.restype = ct.c_size_t
lib.csrec_golden_mlp.argtypes = [PTR]
lib.csrec_golden_mlp.restype = None
lib.csrec_golden_bag_add.argtypes = [PTR, PTR, PTR, ct.c_size_t]
lib.csrec_golden_bag_add.restype = None


def ptr(a):
    return None if a is None else a.ctypes.data


def strided(a, pad):
    """Rows of a, each followed by pad elements that nobody may change."""
    s = np.full((a.shape[0], a.shape[1] + pad), -12345, F32)
    s.view(U32)[:, :a.shape[1]] = bits(a)
    return s


def c_scalar(name, *args):
    """Through a bag or dot of one element would change zeros; so by value, bits kept."""
    fn = getattr(lib, "csrec_golden_" + name)
    return fn(*[ct.c_float.from_buffer_copy(U32(a).tobytes()) for a in args])


def c_bits(x):
    return int.from_bytes(bytes(ct.c_float(x)), "little")


def c_dot(a, b):
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    return F32(lib.csrec_golden_dot(ptr(a), ptr(b), a.size))


def run_bags(call, dim, ids, offsets, weights, nrows, pad, out=None):
    nbags = len(offsets) - 1
    ids, offsets = np.array(ids, U32), np.array(offsets, U32)
    out = strided(np.full((nbags, dim), -777, F32) if out is None else out, pad)
    b = Bags(nbags, len(ids), ptr(ids), ptr(offsets), ptr(weights), nrows, ptr(out),
             out.strides[0])
    detail = ct.c_uint64(0)
    st = call(ct.byref(b), ct.byref(detail))
    assert np.all(out[:, dim:] == -12345), "wrote between rows"
    return st, detail.value, np.ascontiguousarray(out[:, :dim])


def c_emb(table, ids, offsets, weights, pad=0, nrows=None):
    t = strided(table, pad)
    return run_bags(lambda b, d: lib.csrec_golden_emb(b, ptr(t), t.strides[0], table.shape[1], d),
                    table.shape[1], ids, offsets, weights,
                    table.shape[0] if nrows is None else nrows, pad)


def c_tt(cores, p, q, r, ids, offsets, weights, nrows, out=None):
    cp = (ct.c_void_p * 3)(*[ptr(c) for c in cores])
    pp, qq, rr = (ct.c_uint32 * 3)(*p), (ct.c_uint16 * 3)(*q), (ct.c_uint16 * 2)(*r)
    return run_bags(lambda b, d: lib.csrec_golden_tt(b, cp, pp, qq, rr, out is not None, d),
                    q[0] * q[1] * q[2], ids, offsets, weights, nrows, 1, out)


def c_interact(v, op, self, pad):
    s = strided(v, pad)
    n = lib.csrec_golden_interact_len(op, self, *v.shape)
    out = np.zeros(n, F32)
    lib.csrec_golden_interact(ptr(out), ptr(s), s.strides[0], v.shape[0], v.shape[1], op, self)
    return out


def c_mlp(x, w, bias, kind, pad=0):
    xs, ws = strided(x, pad), strided(w, pad)
    y = strided(np.zeros((x.shape[0], w.shape[0]), F32), pad)
    m = Mlp(x.shape[0], x.shape[1], w.shape[0], ptr(xs), ptr(ws), ptr(bias), ptr(y),
            xs.strides[0], ws.strides[0], y.strides[0], kind)
    lib.csrec_golden_mlp(ct.byref(m))
    assert np.all(y[:, w.shape[0]:] == -12345), "wrote between rows"
    return np.ascontiguousarray(y[:, :w.shape[0]])


def some_bags(nbags, nrows):
    sizes = rng.integers(0, 6, nbags)
    sizes[rng.integers(0, nbags)] = 0
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return rng.integers(0, nrows, offsets[-1]), offsets


# --- tests ----------------------------------------------------------------------

def test_scalars():
    ok(lib.csrec_golden_env_ok(), "default floating-point environment")
    random.seed(1)
    pairs = [(int(a), int(b)) for a in EDGE for b in EDGE]
    a, b = bits(wild(4000)), bits(wild(4000))
    pairs += list(zip(a.tolist(), b.tolist()))
    # exponents close together, so that sums cancel and products land anywhere
    for _ in range(4000):
        u = random.getrandbits(32)
        v = (u ^ random.getrandbits(24) ^ random.getrandbits(1) << 31) & 0xFFFFFFFF
        pairs.append((u, v))
        pairs.append((u, (0x7F000000 - (u & 0x7F800000)) & 0x7F800000 | random.getrandbits(23)))
    for name, ex, np_op in (("add", exact_add, add), ("mul", exact_mul, mul)):
        want = [ex(x, y) for x, y in pairs]
        got = [c_bits(c_scalar(name, x, y)) for x, y in pairs]
        x, y = (np.array(z, U32).view(F32) for z in zip(*pairs))
        bad = sum(g != w for g, w in zip(got, want))
        ok(bad == 0, f"{name}: {len(pairs)} pairs against exact arithmetic", f"{bad} differ")
        bad = int(np.sum(bits(np_op(x, y)) != np.array(want, U32)))
        ok(bad == 0, f"{name}: the oracle too", f"{bad} differ")

    x = np.concatenate([EDGE.view(F32), wild(5000), normal(5000)])
    got = np.array([c_bits(c_scalar("relu", v)) for v in bits(x).tolist()], U32)
    same(got.view(F32), relu(x), "relu")
    ok(c_bits(c_scalar("relu", 0x80000000)) == 0 and
       c_bits(c_scalar("relu", 0xFFC12345)) == NAN, "relu: -0 gives +0, any NaN the one NaN")
    near = (np.arange(-3000, 3000) / 25).astype(F32)
    x = np.concatenate([x, near, neg(tiny(200)), f([0x42D00000, 0xC2D00000, 0x42D00001])])
    got = np.array([c_bits(c_scalar("sigmoid", v)) for v in bits(x).tolist()], U32)
    same(got.view(F32), sigmoid(x), "sigmoid")


def test_dot():
    for kind, make in KINDS.items():
        got, want = [], []
        for n in list(range(0, 42)) + [63, 64, 65, 255, 256, 1000, 4096]:
            a, b = make(n), make(n)
            got.append(c_dot(a, b))
            want.append(dot(a, b))
        same(np.array(got), np.array(want), f"dot: {kind} operands, 0 to 4096 elements")
    worst = 0.0
    for n in (1, 7, 64, 479, 4096):
        a, b = normal(n), normal(n)
        ref = float(np.sum(a.astype(np.float64) * b))
        scale = float(np.sum(np.abs(a.astype(np.float64) * b)))
        worst = max(worst, abs(float(c_dot(a, b)) - ref) / scale / (n / 8 + 4))
    ok(worst < 2 ** -24, "dot: within the rounding of eight partial sums of float64",
       f"worst {worst}")
    a, b = normal(13), normal(13)
    pad = np.zeros(3, F32)
    same(c_dot(a, b), c_dot(np.concatenate([a, pad]), np.concatenate([b, pad])),
         "dot: padding with zeros changes nothing")
    same(c_dot(neg(np.zeros(9, F32)), np.ones(9, F32)), F32(0), "dot: no sum is ever -0")


def test_emb():
    for kind, make in KINDS.items():
        for dim, weighted in ((1, False), (16, True), (33, False), (64, True), (256, True)):
            table = make((29, dim))
            ids, offsets = some_bags(11, 29)
            weights = make(len(ids)) if weighted else None
            st, detail, got = c_emb(table, ids, offsets, weights, pad=dim % 5)
            same(got, emb(table, ids, offsets, weights),
                 f"emb: {kind}, dim {dim}{', weights' if weighted else ''}")
            if kind == "normal":
                ok(st == OK and detail == len(ids), f"emb: dim {dim}: detail is the ids used")
                ref = np.array([sum(((weights[j] if weighted else 1.0) *
                                     table[ids[j]].astype(np.float64)
                                     for j in range(offsets[b], offsets[b + 1])),
                                    np.zeros(dim)) for b in range(11)])
                ok(np.allclose(got, ref, rtol=1e-5, atol=1e-5), f"emb: dim {dim}: near float64")
    table = normal((5, 8))
    st, detail, got = c_emb(table, [1, 2], [0, 0, 2, 2], None)
    ok(not bits(got[0]).any() and not bits(got[2]).any(), "emb: an empty bag is +0")
    st, detail, got = c_emb(table, [1, 2, 3], [1, 1, 2], None)
    ok(st == OK and detail == 1, "emb: offsets need not start at 0 nor end at nids")
    st, _, got = c_emb(neg(np.zeros((1, 4), F32)), [0], [0, 1], None)
    same(got, np.zeros((1, 4), F32), "emb: a bag's sum starts from +0")
    t = table.copy()
    t.view(U32)[2, 3] = 0xFFC54321
    same(c_emb(t, [2], [0, 1], None)[2][0, 3], f(NAN), "emb: a summed NaN becomes the one NaN")
    for offsets, bag in (([0, 2, 1, 3], 1), ([0, 1, 2, 4], 2), ([4, 4, 4, 4], 0)):
        st, detail, got = c_emb(table, [0, 1, 2], offsets, None)
        ok((st, detail) == (BAD_OFFSETS, bag) and
           np.all(got[bag:] == -777) and np.all(got[:bag] != -777), f"emb: offsets {offsets}")
    st, detail, got = c_emb(table, [0, 1, 5], [0, 1, 3, 3], None)
    ok((st, detail) == (BAD_ID, 2) and np.all(got[1:] == -777) and np.all(got[0] != -777),
       "emb: id not below nrows")


def test_tt():
    shapes = (((2, 3, 4), (2, 2, 2), (3, 5)), ((3, 1, 2), (4, 4, 2), (16, 16)),
              ((1, 2, 3), (1, 1, 1), (1, 1)), ((2, 2, 2), (4, 4, 4), (32, 32)),
              ((2, 2, 2), (4, 4, 16), (9, 8)))
    for kind, make in KINDS.items():
        for p, q, r in shapes:
            rr = (1, *r, 1)
            cores = [make((p[k], rr[k] * q[k] * rr[k + 1])) for k in range(3)]
            n = p[0] * p[1] * p[2]
            table = tt_rows(cores, p, q, r)
            ids, offsets = some_bags(7, n)
            weights = make(len(ids))
            st, detail, got = c_tt(cores, p, q, r, ids, offsets, None, n)
            want = emb(table, ids, offsets, None)
            same(got, want, f"tt: {kind}, p {p} q {q} r {r}")
            old = make(want.shape)
            st, detail, got = c_tt(cores, p, q, r, ids, offsets, weights, n, old)
            same(got, add(old, emb(table, ids, offsets, weights)),
                 f"tt: {kind}, p {p} q {q} r {r}, weights, accumulating")
            if kind == "normal":
                # the definition: sum over both ranks, in float64
                c = [cores[k].astype(np.float64).reshape(p[k], rr[k], q[k], rr[k + 1])
                     for k in range(3)]
                full = np.einsum("iaub,jbvc,kcwd->ijkuvw", *c).reshape(n, -1)
                ok(np.allclose(table, full, rtol=1e-4, atol=1e-4 * np.abs(full).max()),
                   f"tt: q {q} r {r}: rows near float64")
                st, detail, got = c_tt(cores, p, q, r, [0, n], [0, 1, 2], None, n)
                ok((st, detail) == (BAD_ID, 1), f"tt: q {q} r {r}: id not below nrows")


def test_interact():
    for kind, make in KINDS.items():
        for nvec, dim in ((1, 1), (2, 3), (4, 16), (27, 16), (9, 33), (64, 256)):
            if nvec == 64 and kind != "wild":
                continue
            v = make((nvec, dim))
            for op, self in ((DOT, False), (DOT, True), (CAT, False)):
                same(c_interact(v, op, self, dim % 3), interact(v, op, self),
                     f"interact: {kind}, {nvec} x {dim} {'cat' if op else 'dot'}"
                     f"{', diagonal' if self else ''}")
            if kind == "normal":
                z = v.astype(np.float64) @ v.astype(np.float64).T
                li, lj = np.tril_indices(nvec, -1)
                ref = np.concatenate([v[0], z[li, lj]])
                ok(np.allclose(c_interact(v, DOT, False, 0), ref, rtol=1e-4, atol=1e-4),
                   f"interact: {nvec} x {dim}: the strict lower triangle, near float64")


def test_mlp():
    for kind, make in KINDS.items():
        for batch, nin, nout in ((1, 1, 1), (3, 13, 8), (2, 64, 17), (5, 479, 3)):
            x, w, bias = make((batch, nin)), make((nout, nin)), make(nout)
            for a in (ACT_NONE, ACT_RELU, ACT_SIGMOID):
                for b in (None, bias):
                    y = dot(x[:, None, :], w[None, :, :])
                    if b is not None:
                        y = add(y, b)
                    same(c_mlp(x, w, b, a, nin % 4), act(y.reshape(-1), a),
                         f"mlp: {kind}, {batch} x {nin} -> {nout}, act {a}"
                         f"{', bias' if b is not None else ''}")


def test_placement():
    """A bag split between memory and TT: EMB first, then TT accumulates."""
    p, q, r = (2, 3, 2), (2, 4, 2), (4, 4)
    cores = [normal((2, 8)), normal((3, 64)), normal((2, 8))]
    hot, tt = normal((6, 16)), tt_rows(cores, p, q, r)
    ids_h, off_h = some_bags(5, 6)
    ids_t, off_t = some_bags(5, 12)
    part = c_emb(hot, ids_h, off_h, None)[2]
    got = c_tt(cores, p, q, r, ids_t, off_t, None, 12, part)[2]
    same(got, add(emb(hot, ids_h, off_h, None), emb(tt, ids_t, off_t, None)),
         "placement: EMB, then TT on top")


def test_dlrm():
    """
    The tiny model that facebookresearch/dlrm prints in its README (commit
    14e547d71348): its first mini-batch, its initial parameters, and its mean squared
    error of 0.451893.
    """
    def a(*v):
        return np.array(v, F32)
    x = a([.69647, .28614, .22685, .55131], [.71947, .42311, .98076, .68483])
    target = np.array([.55679, .15896])
    tables = [a([.05438, -.11105], [.42513, .34167], [-.1426, -.45641], [-.19523, -.10181]),
              a([.23667, .57199], [-.16638, .30316], [.10759, .22136]),
              a([-.49338, -.14301], [-.36649, -.22139])]
    ids = [[1, 0, 1], [0, 1], [1, 0]]
    offsets = [[0, 1, 3], [0, 1, 2], [0, 1, 2]]
    bot = [(a([.51313, .66662, .10591, .13089], [.32198, .66156, .84651, .55326],
              [.85445, .38484, .31679, .35426]), a(.17108, .82911, .33867)),
           (a([.55237, .57855, .52153], [.00269, .98835, .90534]), a(.20764, .29249))]
    top = [(a([.52001, .90191, .98363, .25754, .56436, .80697, .39437, .73107],
              [.16107, .6007, .86586, .98352, .07937, .42835, .20454, .45064],
              [.54776, .09333, .29686, .92758, .569, .45741, .75353, .74186],
              [.04858, .7087, .83924, .16594, .781, .28654, .30647, .66526]),
            a(.11139, .66487, .88786, .69631)),
           (a([.44033, .43821, .7651, .56564], [.0849, .58267, .81484, .33707]),
            a(.92758, .75072)),
           (a([.57406, .75164]), a(.07915))]
    for w, b in bot:
        x = c_mlp(x, w, b, ACT_RELU)
    vecs = [x] + [c_emb(t, i, o, None)[2] for t, i, o in zip(tables, ids, offsets)]
    z = np.array([c_interact(np.array([v[s] for v in vecs], F32), DOT, False, 0)
                  for s in range(2)], F32)
    ok(z.shape == (2, 8), "dlrm: eight interactions")
    for n, (w, b) in enumerate(top):
        z = c_mlp(z, w, b, ACT_SIGMOID if n == 2 else ACT_RELU)
    loss = float(np.mean((z[:, 0].astype(np.float64) - target) ** 2))
    ok(abs(loss - 0.451893) < 2e-5, "dlrm: the loss of the README's first mini-batch",
       f"got {loss:.6f}, expected 0.451893")
    ok(not math.isnan(loss), "dlrm: no NaN")


for test in (test_scalars, test_dot, test_emb, test_tt, test_interact, test_mlp, test_placement,
             test_dlrm):
    test()
print(f"1..{ntests}")
sys.exit(1 if nfailed else 0)
