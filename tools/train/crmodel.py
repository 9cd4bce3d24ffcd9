# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Writes csrec model containers; the format is userspace/model/FORMAT.md."""

import json
import struct

import numpy as np

PAGE = 4096
META, TABLES, ROWS, CORES, ORDER, LAYERS, WEIGHTS, BUFFERS, NODES, INPUT = range(1, 11)
OP_EMB, OP_MLP, OP_DOT, OP_CAT = range(1, 5)
NONE, RELU, SIGMOID = range(3)
TEMP, DENSE, OUTPUT = range(3)


def _crc_table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = (n >> 1) ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    return table


_TABLE = _crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for b in data:
        crc = _TABLE[(crc ^ b) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def _name(s, n):
    raw = s.encode()
    if len(raw) >= n:
        raise ValueError(f"name {s!r} is longer than {n - 1} bytes")
    return raw.ljust(n, b"\0")


def _f32(a):
    return np.ascontiguousarray(a, dtype="<f4").tobytes()


class Writer:
    """Collects the parts of a model; numbers returned are what nodes refer to."""

    def __init__(self, meta):
        self.meta = meta
        self.sections = []
        self.tables, self.layers, self.buffers, self.nodes = [], [], [], []

    def _section(self, kind, index, name, data):
        self.sections.append((kind, index, name, data))

    def dense_table(self, name, rows, order=None):
        rows = np.asarray(rows)
        index = len(self.tables)
        self.tables.append(struct.pack("<16sBBHIQ3I3H2HHQ", _name(name, 16), 0, 0, rows.shape[1], 0,
                                       rows.shape[0], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
        self._section(ROWS, index, name + " rows", _f32(rows))
        if order is not None:
            self._section(ORDER, index, name + " order", np.asarray(order, dtype="<u4").tobytes())
        return index

    def tt_table(self, name, nrows, cores):
        """cores[k] has shape [p_k, r_k, q_k, r_k+1]."""
        index = len(self.tables)
        p = [c.shape[0] for c in cores]
        q = [c.shape[2] for c in cores]
        r = [cores[1].shape[1], cores[2].shape[1]]
        self.tables.append(struct.pack("<16sBBHIQ3I3H2HHQ", _name(name, 16), 1, 0,
                                       q[0] * q[1] * q[2], 0, nrows, *p, *q, *r, 0, 0))
        data = b""
        for c in cores:
            data += _f32(c)
            data += bytes(-len(data) % 64)
        self._section(CORES, index, name + " cores", data)
        return index

    def layer(self, name, w, bias, act):
        index = len(self.layers)
        w = np.asarray(w)
        self.layers.append(struct.pack("<16sIIBBBB36x", _name(name, 16), w.shape[1], w.shape[0],
                                       act, bias is not None, 0, 0))
        self._section(WEIGHTS, index, name + " weights",
                      _f32(w) + (_f32(bias) if bias is not None else b""))
        return index

    def buffer(self, name, width, kind=TEMP):
        self.buffers.append(struct.pack("<16sIB11x", _name(name, 16), width, kind))
        return len(self.buffers) - 1

    def node(self, op, *, param=0, column=0, src=0, src_off=0, dst, dst_off=0, nvec=0, dim=0,
             vec_step=0, repeat=1, src_step=0, dst_step=0, flags=0):
        self.nodes.append(struct.pack("<BBHHHIIIIIIIIII16x", op, flags, nvec, dim, 0, param, column,
                                      src, src_off, dst, dst_off, vec_step, repeat, src_step,
                                      dst_step))

    def write(self, path, ndense=0, ncolumns=0):
        """Returns the header's checksum. Without columns there is no input: an overlay."""
        pre = [(META, 0, "meta", json.dumps(self.meta, indent=1, sort_keys=True).encode()),
               (INPUT, 0, "input", ncolumns and
                struct.pack("<16sII8x", b"criteo-tsv", ndense, ncolumns)),
               (TABLES, 0, "tables", b"".join(self.tables)),
               (LAYERS, 0, "layers", b"".join(self.layers)),
               (BUFFERS, 0, "buffers", b"".join(self.buffers)),
               (NODES, 0, "nodes", b"".join(self.nodes))]
        sections = [s for s in pre if s[3]] + self.sections
        directory = b""
        body = b""
        dir_size = len(sections) * 64
        off = PAGE + dir_size + -dir_size % PAGE
        for kind, index, name, data in sections:
            directory += struct.pack("<IIQQII32s", kind, index, off + len(body), len(data),
                                     crc32c(data), 0, _name(name, 32))
            body += data + bytes(-len(data) % PAGE)
        directory_padded = directory + bytes(-len(directory) % PAGE)

        def header(crc):
            return struct.pack("<8sHHIQQII", b"CSRECMDL", 1, 0, crc, off + len(body), PAGE,
                               len(sections), crc32c(directory)).ljust(PAGE, b"\0")
        crc = crc32c(header(0))
        with open(path, "wb") as f:
            f.write(header(crc) + directory_padded + body)
        return crc
