# SPDX-License-Identifier: Apache-2.0
"""A small writer of Zarr stores, v2 and v3, in a directory. It shares no code with the program:
arrays come from numpy, codecs from Python and numcodecs.

  with Store(path, version=3, consolidated=True) as store:
      store.group("g", {"title": "numbers"})
      store.array("g/x", np.arange(10), chunks=(4,), codecs=["zlib"], names=["x"])
      store.array("g/y", np.arange(10), chunks=(8,), shards=[Shards((2,))], codecs=["zlib"])
"""
import bz2
import gzip
import itertools
import json
import os
import struct
import zlib

import numpy as np
from numcodecs import blosc, lz4, zstd

V3_TYPES = {"b1": "bool", "c8": "complex64", "c16": "complex128",
            **{f"{kind}{size}": f"{name}{8 * size}" for kind, name in
               (("i", "int"), ("u", "uint"), ("f", "float")) for size in (1, 2, 4, 8)}}
DOCUMENT = {2: ".zgroup", 3: "zarr.json"}    # of a group
# name: encode(bytes, size of an element), members of the configuration, name in v3
CODECS = {
    "zlib": (lambda b, n: zlib.compress(b, 1), {"level": 1}, "numcodecs.zlib"),
    "gzip": (lambda b, n: gzip.compress(b, 1), {"level": 1}, "gzip"),
    "bz2": (lambda b, n: bz2.compress(b, 1), {"level": 1}, "numcodecs.bz2"),
    "zstd": (lambda b, n: zstd.compress(b, 1), {"level": 1}, "zstd"),
    "lz4": (lambda b, n: lz4.compress(b, 1), {"acceleration": 1}, "numcodecs.lz4"),
    "crc32c": (lambda b, n: b + crc32c(b).to_bytes(4, "little"), {}, "crc32c"),
    "shuffle": (lambda b, n: shuffled(b, n), {"elementsize": None}, "numcodecs.shuffle"),
}
for _name, _shuffle in itertools.product(("lz4", "lz4hc", "blosclz", "zstd", "zlib"), (0, 1, 2)):
    CODECS[f"blosc-{_name}-{_shuffle}"] = (
        lambda b, n, c=_name, s=_shuffle: blosc.compress(elements(b, n), c.encode(), 3, s),
        {"cname": _name, "clevel": 3, "shuffle": _shuffle, "blocksize": 0}, "blosc")


CRC_TABLE = list(range(256))
for _ in range(8):
    CRC_TABLE = [c >> 1 ^ (0x82f63b78 if c & 1 else 0) for c in CRC_TABLE]


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xffffffff


def shuffled(data, size):
    whole = len(data) // size * size
    return np.frombuffer(data, "u1", whole).reshape(-1, size).T.tobytes() + data[whole:]


def elements(data, size):
    """For blosc, which takes the size of an element from the buffer."""
    return np.frombuffer(data, "u1" if len(data) % size else f"u{min(size, 8)}")


def encode(codecs, data, size):
    for name in codecs:
        data = bytes(CODECS[name][0](data, size))
    return data


def configuration(name, size):
    members = dict(CODECS[name][1])
    if name == "shuffle":
        members["elementsize"] = size
    return members


def codec2(name, size):
    return {"id": name.partition("-")[0], **configuration(name, size)}


def codec3(name, size):
    members = configuration(name, size)
    if name.startswith("blosc"):
        members.update(shuffle=("noshuffle", "shuffle", "bitshuffle")[members["shuffle"]],
                       typesize=size if size <= 8 else 8)
    return {"name": CODECS[name][2], **({"configuration": members} if members else {})}


def number(value):
    """A value as JSON has it in both versions."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, complex):
        return [number(value.real), number(value.imag)]
    if isinstance(value, float) and not np.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    return value


def chunk_key(version, encoding, separator, index):
    """The key of a chunk below its array."""
    text = separator.join(map(str, index))
    if version == 2 or encoding == "v2":
        return text or "0"
    return "c" + (separator + text if index else "")


def document2(a):
    return {"zarr_format": 2, "shape": list(a.data.shape), "chunks": list(a.chunks),
            "dtype": a.data.dtype.str, "order": a.order, "fill_value": number(a.fill),
            "filters": [codec2(c, a.size) for c in a.codecs[:-1]] or None,
            "compressor": codec2(a.codecs[-1], a.size) if a.codecs else None,
            **({"dimension_separator": a.separator} if a.separator else {})}


def transposition(order, rank):
    if order == "C":
        return []
    return [{"name": "transpose", "configuration": {
        "order": list(range(rank))[::-1] if order == "F" else order}}]


# ---- shards ----

NOT_STORED = (1 << 64) - 1


def morton(index):
    """The number of an inner chunk in the order of zarr-python."""
    return sum((n >> bit & 1) << (bit * len(index) + len(index) - 1 - axis)
               for axis, n in enumerate(index) for bit in range(20))


class Shards:
    """Shards whose inner chunks have this shape along the axes as they are stored; `order` and
    `around` are the codecs before and after sharding_indexed. `write` is the order in which the
    inner chunks are stored: "lexical", "morton" or a random generator. `gap` bytes are in front of
    each. Inner chunks that hold only the fill value are not stored, unless keep_fill is set."""

    def __init__(self, inner, order="C", around=(), at_start=False, big=False, checksum=True,
                 write="lexical", gap=0, keep_fill=False):
        self.inner, self.order, self.around = tuple(inner), order, list(around)
        self.at_start, self.big, self.checksum = at_start, big, checksum
        self.write, self.gap, self.keep_fill = write, gap, keep_fill

    def codec(self, inner_codecs, size):
        index = [{"name": "bytes", "configuration": {"endian": "big" if self.big else "little"}}]
        return [*transposition(self.order, len(self.inner)), {
            "name": "sharding_indexed", "configuration": {
                "chunk_shape": list(self.inner), "codecs": inner_codecs,
                "index_codecs": index + ([{"name": "crc32c"}] if self.checksum else []),
                "index_location": "start" if self.at_start else "end"}},
                *(codec3(c, size) for c in self.around)]

    def sequence(self, grid):
        indexes = list(np.ndindex(*grid))
        if self.write == "morton":
            indexes.sort(key=morton)
        elif self.write != "lexical":
            self.write.shuffle(indexes)
        return [tuple(map(int, i)) for i in indexes]

    def encoded(self, data, fill, encode_inner):
        data = transposed(data, self.order)
        grid = [n // c for n, c in zip(data.shape, self.inner)]
        n = int(np.prod(grid, dtype=int))
        head = n * 16 + 4 * self.checksum if self.at_start else 0
        entries, body, ranges = [(NOT_STORED, NOT_STORED)] * n, bytearray(), {}
        for index in self.sequence(grid):
            part = np.asarray(data[tuple(slice(i * c, (i + 1) * c) for i, c in
                                         zip(index, self.inner))], data.dtype)
            if not self.keep_fill and part.tobytes() == np.array(
                    fill, part.dtype).tobytes() * part.size:
                continue
            chunk = encode_inner(part)
            if chunk not in ranges:         # equal chunks share a range
                body += b"\xee" * self.gap
                ranges[chunk] = (head + len(body), len(chunk))
                body += chunk
            number = 0
            for i, count in zip(index, grid):
                number = number * count + i
            entries[number] = ranges[chunk]
        index = b"".join(struct.pack(">QQ" if self.big else "<QQ", *e) for e in entries)
        index += crc32c(index).to_bytes(4, "little") if self.checksum else b""
        return encode(self.around, index + bytes(body) if self.at_start else bytes(body) + index,
                      data.dtype.itemsize)


def transposed(data, order):
    if order == "C":
        return data
    return data.transpose(range(data.ndim)[::-1] if order == "F" else order)


def document3(a):
    endian = "big" if a.data.dtype.str[0] == ">" else "little"
    to_bytes = {"name": "bytes"}
    if a.data.dtype.itemsize > 1:
        to_bytes["configuration"] = {"endian": endian}
    return {"zarr_format": 3, "node_type": "array", "shape": list(a.data.shape),
            "data_type": V3_TYPES[a.data.dtype.str[1:]],
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(a.chunks)}},
            "chunk_key_encoding": {"name": a.encoding,
                                   "configuration": {"separator": a.separator}},
            "fill_value": number(a.fill),
            "codecs": codecs3(a, to_bytes),
            "attributes": a.attributes, **({"dimension_names": a.names} if a.names else {})}


def codecs3(a, to_bytes):
    codecs = transposition(a.order, len(a.chunks)) + [to_bytes] + [
        codec3(c, a.size) for c in a.codecs]
    for shards in reversed(a.shards):
        codecs = shards.codec(codecs, a.size)
    return codecs


class Array:
    """An array as it is stored. After it was stored, `data` has the fill value where no chunk
    is. If there are shards, `chunks` is their shape, and `order` and `codecs` are those of the
    chunks in the innermost ones."""

    def __init__(self, version, data, chunks=None, fill=0, order="C", codecs=(), separator=".",
                 encoding="default", absent=(), attributes=None, names=None, shards=()):
        self.version, self.order, self.codecs = version, order, list(codecs)
        self.data = np.array(data)
        self.size = self.data.dtype.itemsize
        self.chunks = tuple(self.data.shape if chunks is None else chunks)
        self.fill = fill if fill is None else np.array(fill, self.data.dtype)[()]
        self.shown_fill = 0 if fill is None else self.fill
        self.separator, self.encoding, self.absent = separator, encoding, set(absent)
        self.attributes, self.names = dict(attributes or {}), names
        self.shards = list(shards)

    def grid(self):
        return itertools.product(*(range(-(-n // c)) for n, c in
                                   zip(self.data.shape, self.chunks)))

    def region(self, index):
        return tuple(slice(i * c, (i + 1) * c) for i, c in zip(index, self.chunks))

    def key(self, index):
        return chunk_key(self.version, self.encoding, self.separator or ".", index)

    def encoded(self, index):
        part = self.data[self.region(index)]
        whole = np.full(self.chunks, self.shown_fill, self.data.dtype)
        whole[tuple(map(slice, part.shape))] = part
        return self.encoded_in(self.shards, whole)

    def encoded_in(self, shards, data):
        if shards:
            return shards[0].encoded(data, self.shown_fill,
                                     lambda part: self.encoded_in(shards[1:], part))
        return encode(self.codecs, transposed(data, self.order).tobytes("C"), self.size)

    def document(self):
        return document2(self) if self.version == 2 else document3(self)


class Store:
    """A store in a directory. At the end of `with`, its groups and the consolidated metadata are
    written."""

    def __init__(self, root, version=2, consolidated=False, attributes=None, **array_defaults):
        self.root, self.version, self.consolidated = os.fspath(root), version, consolidated
        self.defaults = array_defaults
        self.documents, self.arrays = {}, {}
        self.group("", attributes)

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        if raised == (None, None, None):
            self.write_documents()

    def path(self, *parts):
        return os.path.join(self.root, *filter(None, parts))

    def put(self, key, data):
        """Writes a key: bytes, or a value as JSON."""
        path = self.path(key)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        # Under another name first, as programs do: a reader never finds a part.
        with open(path + ".part", "wb") as f:
            f.write(data if isinstance(data, bytes) else json.dumps(data).encode())
        os.replace(path + ".part", path)

    def delete(self, key):
        os.unlink(self.path(key))

    def group(self, path, attributes=None):
        attributes = dict(attributes or {})
        if self.version == 3:
            self.documents[join(path, "zarr.json")] = {
                "zarr_format": 3, "node_type": "group", "attributes": attributes}
            return
        self.documents[join(path, ".zgroup")] = {"zarr_format": 2}
        if attributes:
            self.documents[join(path, ".zattrs")] = attributes

    def array(self, path, data, **how):
        """Stores an array, and makes the groups above it."""
        for at in (path[:i] for i, c in enumerate(path) if c == "/"):
            if join(at, DOCUMENT[self.version]) not in self.documents:
                self.group(at)
        a = Array(self.version, data, **{**self.defaults, **how})
        if self.version == 3:
            self.documents[join(path, "zarr.json")] = a.document()
        else:
            attributes = {**a.attributes, **({"_ARRAY_DIMENSIONS": a.names} if a.names else {})}
            self.documents[join(path, ".zarray")] = a.document()
            if attributes:
                self.documents[join(path, ".zattrs")] = attributes
        for index in a.grid():
            if index in a.absent:
                a.data[a.region(index)] = a.shown_fill
            else:
                self.put(join(path, a.key(index)), a.encoded(index))
        self.arrays[path] = a
        return a

    def write_documents(self, only_root=False):
        """only_root: the consolidated metadata, but no document of a node below the root."""
        for key, document in self.documents.items():
            if key != "zarr.json" and not only_root:
                self.put(key, document)
        if self.version == 3:
            root = dict(self.documents["zarr.json"])
            if self.consolidated:
                root["consolidated_metadata"] = {
                    "kind": "inline", "must_understand": False,
                    "metadata": {os.path.dirname(key): document for key, document in
                                 self.documents.items() if key != "zarr.json"}}
            self.put("zarr.json", root)
        elif self.consolidated:
            self.put(".zmetadata", {"zarr_consolidated_format": 1, "metadata": self.documents})


def join(path, name):
    return f"{path}/{name}" if path else name
