# SPDX-License-Identifier: Apache-2.0
"""Makes buckets of schema v2, or v1: small ones for tests, large ones for benchmarks.

    with Maker(root) as bucket:
        d = bucket.domain("home/x.h5")
        ds = d.dataset(d.root, "data", INT32, [100], [10])
        ds.attribute("units", vstring(), [], "m")
        ds.chunk((0,), numpy_array_or_bytes)

The documents are written at the end of the `with` block. Ids depend only on the path of the domain
and the order of creation, so the same program always makes the same bucket.

On the command line, `mkbucket.py KIND DIRECTORY` makes one of the buckets in LARGE.
"""
import hashlib
import json
import os
import sys

import oracle

INT8 = {"class": "H5T_INTEGER", "base": "H5T_STD_I8LE"}
INT16 = {"class": "H5T_INTEGER", "base": "H5T_STD_I16LE"}
INT32 = {"class": "H5T_INTEGER", "base": "H5T_STD_I32LE"}
INT64 = {"class": "H5T_INTEGER", "base": "H5T_STD_I64LE"}
FLOAT64 = {"class": "H5T_FLOAT", "base": "H5T_IEEE_F64LE"}
GZIP = {"class": "H5Z_FILTER_DEFLATE", "id": 1, "level": 4, "name": "gzip"}
SHUFFLE = {"class": "H5Z_FILTER_SHUFFLE", "id": 2, "name": "shuffle"}
EPOCH = 1700000000.0


def vstring(cset="ASCII"):
    return {"class": "H5T_STRING", "charSet": f"H5T_CSET_{cset}", "strPad": "H5T_STR_NULLTERM",
            "length": "H5T_VARIABLE"}


def vlen(base):
    return {"class": "H5T_VLEN", "size": "H5T_VARIABLE", "base": base}


def shape_of(dims, maxdims=None):
    if dims is None:
        return {"class": "H5S_NULL"}
    if not dims:
        return {"class": "H5S_SCALAR"}
    shape = {"class": "H5S_SIMPLE", "dims": list(dims)}
    if maxdims is not None:
        shape["maxdims"] = list(maxdims)
    return shape


class ObjectMaker:
    """An object. `doc` is its document, which may be changed before it is written. If `raw` is set,
    it is written instead. If `missing` is set, no document is written."""

    def __init__(self, domain, oid, doc):
        self.domain, self.id, self.doc, self.raw, self.missing = domain, oid, doc, None, False

    @property
    def key(self):
        return oracle.document_key(self.id)

    def attribute(self, name, type_, dims, value, **more):
        self.doc["attributes"][name] = {"type": type_, "shape": shape_of(dims), "value": value,
                                        "created": self.domain.now(), **more}

    def link(self, name, target):
        self.doc["links"][name] = {"id": target.id, "class": "H5L_TYPE_HARD",
                                   "created": self.domain.now()}

    def soft(self, name, path):
        self.doc["links"][name] = {"h5path": path, "class": "H5L_TYPE_SOFT",
                                   "created": self.domain.now()}

    def external(self, name, path, domain):
        self.doc["links"][name] = {"h5path": path, "h5domain": domain,
                                   "class": "H5L_TYPE_EXTERNAL", "created": self.domain.now()}

    def chunk_key(self, index):
        return oracle.chunk_key(self.id, index,
                                self.doc.get("layout", {}).get("partition_count", 0))

    def chunk(self, index, data):
        """data: the bytes of the chunk object, or an array."""
        self.domain.bucket.put(self.chunk_key(index),
                               data if isinstance(data, bytes) else data.tobytes())

    def write(self):
        if not self.missing:
            body = json.dumps(self.doc).encode() if self.raw is None else self.raw
            self.domain.bucket.put(self.key, body)


class DomainMaker:
    def __init__(self, bucket, path, acls, v1=False):
        self.bucket, self.path, self.clock, self.raw = bucket, path, EPOCH, None
        self.v1 = v1
        self.digits = hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        self.objects = []
        self.doc = {"owner": "maker", "acls": acls, "created": EPOCH, "lastModified": EPOCH}
        self.root = self.group()
        self.doc["root"] = self.root.id

    def now(self):
        self.clock += 1
        return self.clock

    def make_id(self, kind):
        if not self.objects:
            tail = "".join(f"{(int(c, 16) + 8) % 16:x}" for c in self.digits)
        else:
            name = f"{self.path} {len(self.objects)}"
            tail = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        h = self.digits + tail
        if self.v1:     # a UUID, of which the first half need not be that of the domain
            return f"{kind}-{tail[:8]}-{tail[8:12]}-{tail[12:]}-{h[:4]}-{h[4:16]}"
        return f"{kind}-{h[:8]}-{h[8:16]}-{h[16:20]}-{h[20:26]}-{h[26:]}"

    def add(self, kind, members, parent, name):
        oid = self.make_id(kind)
        root = self.objects[0].id if self.objects else oid
        obj = ObjectMaker(self, oid, {"id": oid, "root": root, "created": EPOCH,
                                      "lastModified": EPOCH, **members, "attributes": {}})
        self.objects.append(obj)
        if parent:
            parent.link(name, obj)
        return obj

    def group(self, parent=None, name=None):
        return self.add("g", {"links": {}}, parent, name)

    def datatype(self, parent, name, type_):
        obj = self.add("t", {"type": type_}, parent, name)
        obj.doc["type"] = {**type_, "id": obj.id}
        return obj

    def dataset(self, parent, name, type_, dims, chunk=None, maxdims=None, **properties):
        layout = {"class": "H5D_CHUNKED", "dims": list(chunk or dims or [1])}
        members = {"type": type_, "shape": shape_of(dims, maxdims)}
        if dims is not None:
            members["layout"] = layout
        members["creationProperties"] = {"layout": layout, **properties}
        return self.add("d", members, parent, name)

    def catalog(self, *more):
        """Writes the catalogs of schema v1, with further ids."""
        names = {"g": ".groups.txt", "d": ".datasets.txt", "t": ".datatypes.txt"}
        for kind, name in names.items():
            ids = [o.id for o in self.objects[1:] if o.id[0] == kind] + \
                [oid for oid in more if oid[0] == kind]
            self.bucket.put(f"{self.path}/{name}",
                            "".join(f"{oid} etag 1700000000 300\n" for oid in ids).encode())

    def write(self):
        for obj in self.objects:
            obj.write()
        body = json.dumps(self.doc).encode() if self.raw is None else self.raw
        self.bucket.put(f"{self.path}/.domain.json", body)


class Maker:
    """A bucket in the directory `root`, which is created."""

    def __init__(self, root):
        self.root, self.domains = os.fspath(root), []
        os.makedirs(self.root, exist_ok=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            self.write()

    def write(self):
        """Writes the documents of all domains. May be called again after a change."""
        for domain in self.domains:
            domain.write()

    def put(self, key, body):
        """Replaces an object atomically: writes a new file and renames it."""
        path = os.path.join(self.root, key)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + "~", "wb") as f:
            f.write(body)
        os.replace(path + "~", path)

    def folder(self, path, acls=None):
        doc = {"owner": "maker", "acls": acls or full_acl(default=True), "created": EPOCH,
               "lastModified": EPOCH}
        self.put(f"{path}/.domain.json", json.dumps(doc).encode())

    def domain(self, path, acls=None, v1=False):
        made = DomainMaker(self, path, acls or full_acl(default=True), v1)
        self.domains.append(made)
        return made


def full_acl(default=False):
    every = ("create", "read", "update", "delete", "readACL", "updateACL")
    acls = {"maker": {p: True for p in every}}
    if default:
        acls["default"] = {p: p == "read" for p in every}
    return acls


# ---- large buckets ----

def thousand(bucket, datasets=1000):
    """1,000 datasets with three attributes each. One chunk is stored."""
    d = bucket.domain("thousand.h5")
    for i in range(datasets):
        ds = d.dataset(d.root, f"ds{i:04}", FLOAT64, [100, 100], [100, 100])
        ds.attribute("units", vstring(), [], "m/s")
        ds.attribute("scale", FLOAT64, [], i * 0.5)
        ds.attribute("range", INT32, [2], [0, i])
        if i == datasets // 2:
            ds.chunk((0, 0), bytes(range(256)) * 312 + bytes(128))


def ten_million(bucket, chunks=10_000_000, stored=8):
    """One dataset of 10,000,000 chunks, of which few are stored."""
    d = bucket.domain("tenmillion.h5")
    each = 1024     # elements: 4 KiB, as the kernel reads whole pages
    ds = d.dataset(d.root, "data", INT32, [chunks * each], [each], [0], fillValue=-1)
    for i in range(stored):
        n = i * (chunks - 1) // (stored - 1)
        ds.chunk((n,), b"".join((n * each + k & 0x7fffffff).to_bytes(4, "little")
                                for k in range(each)))


def gibibyte(bucket, mebibytes=1024, path="gibibyte.h5"):
    """1 GiB of float64 in unfiltered chunks of 1 MiB."""
    import numpy as np
    d = bucket.domain(path)
    each = (1 << 20) // 8
    ds = d.dataset(d.root, "data", FLOAT64, [mebibytes * each], [each])
    for i in range(mebibytes):
        ds.chunk((i,), np.arange(i * each, (i + 1) * each, dtype="<f8"))


def many_files(bucket, files=16, mebibytes=16):
    for i in range(files):
        gibibyte(bucket, mebibytes, f"f{i:02}.h5")


def many_links(bucket, links=100_000):
    d = bucket.domain("manylinks.h5")
    ds = d.dataset(d.root, "data", INT32, [4])
    ds.chunk((0,), bytes(range(16)))
    group = d.group(d.root, "many")
    for i in range(links):
        group.link(f"link{i:06}", ds)


def deep_tree(bucket, depth=500):
    d = bucket.domain("deeptree.h5")
    at = d.root
    for _ in range(depth):
        at = d.group(at, "g")
    d.dataset(at, "leaf", INT32, [4]).chunk((0,), bytes(range(16)))


def big_attribute(bucket, size=50_000_000):
    d = bucket.domain("bigattribute.h5")
    ds = d.dataset(d.root, "data", INT32, [4])
    ds.chunk((0,), bytes(range(16)))
    ds.attribute("big", {"class": "H5T_STRING", "charSet": "H5T_CSET_ASCII",
                         "strPad": "H5T_STR_NULLPAD", "length": size}, [],
                 ("0123456789" * (size // 10 + 1))[:size])


LARGE = {f.__name__: f for f in (thousand, ten_million, gibibyte, many_files, many_links,
                                 deep_tree, big_attribute)}


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in LARGE:
        sys.exit(f"usage: mkbucket.py {'|'.join(LARGE)} DIRECTORY")
    with Maker(sys.argv[2]) as bucket:
        LARGE[sys.argv[1]](bucket)


if __name__ == "__main__":
    main()
