# SPDX-License-Identifier: Apache-2.0
"""Compares what h5file/ reads from an HDF5 file, as tests/support/treedump prints it, with what
h5py and its libhdf5 report.

    h5model.py FILE...      prints the differences
"""
import ctypes
import json
import math
import os
import struct
import subprocess
import sys

import h5py
import numpy as np
from h5py import h5a, h5d, h5g, h5i, h5l, h5o, h5p, h5s, h5t

import h5raw
from filediff import attribute_names, has_region, is_plain, names, tracks_order
from mounts import BUILD

TREEDUMP = os.path.join(BUILD, "tests", "support", "treedump")
CLASSES = {h5t.INTEGER: "integer", h5t.FLOAT: "float", h5t.TIME: "time", h5t.STRING: "string",
           h5t.BITFIELD: "bitfield", h5t.OPAQUE: "opaque", h5t.COMPOUND: "compound",
           h5t.REFERENCE: "reference", h5t.ENUM: "enum", h5t.VLEN: "vlen", h5t.ARRAY: "array"}
LAYOUTS = {h5d.COMPACT: "compact", h5d.CONTIGUOUS: "contiguous", h5d.CHUNKED: "chunked"}
TOO_LARGE = 1 << 26    # bytes of a dataset that are compared


def dump(path, *options):
    """The objects of a file, and the line at its end."""
    out = subprocess.run([TREEDUMP, "--data", *options, path], stdin=subprocess.DEVNULL,
                         capture_output=True, timeout=110, check=False)
    lines = [json.loads(line) for line in out.stdout.splitlines()]
    assert lines and "Sanitizer" not in out.stderr.decode("utf-8", "replace"), out.stderr
    return lines[:-1], lines[-1]


def latin(raw):
    return raw.decode("latin-1")


def raw_bytes(text):
    return text.encode("latin-1")


def whole(tid):
    return tid.get_offset() == 0 and tid.get_precision() == 8 * tid.get_size()


def float_text(raw, tid):
    """None: a form that Python cannot read."""
    size = tid.get_size()
    if size not in (2, 4, 8) or not tid.equal(getattr(
            h5t, f"IEEE_F{8 * size}{'BE' if tid.get_order() == h5t.ORDER_BE else 'LE'}")):
        return None
    order = ">" if tid.get_order() == h5t.ORDER_BE else "<"
    value = struct.unpack(order + {2: "e", 4: "f", 8: "d"}[size], raw)[0]
    if math.isnan(value):
        return "nan"
    return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")


class Skip(Exception):
    """A value that is not compared."""


class Model:
    def __init__(self, path, *options):
        self.found, self.unreadable = [], set()
        self.objects, self.end = dump(path, *options)
        self.f = h5py.File(path, "r")
        self.handles, self.addresses = {}, {}
        for o in self.objects:
            try:
                handle = h5o.open(self.f.id, raw_bytes(o["path"]))
                self.handles[o["number"]] = handle
                self.addresses[o["path"]] = h5o.get_info(handle).addr
            except (KeyError, ValueError, RuntimeError, OSError):
                # A committed type without a link has no path; other objects libhdf5 cannot read.
                self.unreadable.add(o["path"])

    def note(self, where, what):
        if where in self.unreadable:
            return
        self.found.append(f"{where}: {what}")

    def equal(self, where, what, ours, theirs):
        if ours != theirs:
            self.note(where, f"{what}: {str(ours)[:150]}, libhdf5 has {str(theirs)[:150]}")

    def run(self):
        for o in self.objects:
            handle = self.handles.get(o["number"])
            if handle is None or o.get("broken"):
                continue
            kind = {h5i.GROUP: "group", h5i.DATASET: "dataset", h5i.DATATYPE: "datatype"}[
                h5i.get_type(handle)]
            self.equal(o["path"], "kind", o["kind"], kind)
            if kind == "group":
                self.links(o, handle)
            elif kind == "dataset":
                self.dataset(o, handle)
            else:
                self.type(o["path"], o["type"], handle)
            self.attributes(o, handle)
            self.equal(o["path"], "comment", raw_bytes(o["comment"] or ""),
                       h5raw.comment(handle))
        self.f.close()
        return self.found

    def links(self, o, group):
        unsupported = {p["path"] for p in self.end.get("problems", ())
                       if p["severity"] == "unsupported"}
        theirs = [n for n in names(group)
                  if f"{o['path'].rstrip('/')}/{latin(n)}" not in unsupported]
        ours = [raw_bytes(link["name"]) for link in o["links"]]
        self.equal(o["path"], "links", sorted(ours), sorted(theirs))
        if tracks_order(group):
            ordered = []
            group.links.iterate(ordered.append, idx_type=h5py.h5.INDEX_CRT_ORDER)
            self.equal(o["path"], "order of links", ours, ordered)
        for link in o["links"]:
            name = raw_bytes(link["name"])
            where = f"{o['path'].rstrip('/')}/{link['name']}"
            if name not in theirs:
                continue
            info = group.links.get_info(name)
            kind = {h5l.TYPE_HARD: "hard", h5l.TYPE_SOFT: "soft",
                    h5l.TYPE_EXTERNAL: "external"}.get(info.type, "user")
            self.equal(where, "class", link["class"], kind)
            if kind == "hard" and link["target"] not in self.unreadable:
                self.equal(where, "target", self.addresses.get(link["target"]), info.u)
            elif kind == "soft":
                self.equal(where, "path", raw_bytes(link["path"]), group.links.get_val(name))
            elif kind == "external":
                self.equal(where, "file and path",
                           (raw_bytes(link["file"]), raw_bytes(link["path"])),
                           group.links.get_val(name))

    def type(self, where, ours, tid):
        cls = CLASSES.get(tid.get_class())
        self.equal(where, "class of the type", ours["class"],
                   "vlen" if cls == "string" and tid.is_variable_str() else cls)
        if ours["class"] == "vlen" or ours["class"] != cls:
            if cls == "vlen":
                self.type(where, ours["base"], tid.get_super())
            return
        if is_plain(tid):    # otherwise libhdf5 tells the size in memory
            self.equal(where, "size of the type", ours["size"], tid.get_size())
        if cls == "integer":
            self.equal(where, "bits", (ours["offset"], ours["precision"]),
                       (tid.get_offset(), tid.get_precision()))
        if cls in ("integer", "float") and tid.get_size() > 1:
            self.equal(where, "order", ours["order"],
                       {h5t.ORDER_LE: "LE", h5t.ORDER_BE: "BE"}.get(tid.get_order()))
        if cls == "integer":
            self.equal(where, "sign", ours["signed"], tid.get_sign() == h5t.SGN_2)
        elif cls == "float":
            fields = tid.get_fields()
            self.equal(where, "fields", (ours["sign"], *ours["exp"], *ours["mant"], ours["bias"]),
                       (*fields, tid.get_ebias()))
        elif cls == "string":
            self.equal(where, "padding", ours["pad"], tid.get_strpad())
            self.equal(where, "character set", ours["cset"], tid.get_cset())
        elif cls == "opaque":
            self.equal(where, "tag", raw_bytes(ours["tag"]), tid.get_tag())
        elif cls == "enum":
            self.equal(where, "members", sorted((raw_bytes(n), v) for n, v in ours["members"]),
                       sorted((tid.get_member_name(i), tid.get_member_value(i))
                              for i in range(tid.get_nmembers())))
        elif cls == "array":
            self.equal(where, "dimensions", ours["dims"], list(tid.get_array_dims()))
            self.type(where, ours["base"], tid.get_super())
        elif cls == "compound":
            self.equal(where, "members", [raw_bytes(m["name"]) for m in ours["members"]],
                       [tid.get_member_name(i) for i in range(tid.get_nmembers())])
            for i, m in enumerate(ours["members"][:tid.get_nmembers()]):
                if is_plain(tid):
                    self.equal(where, "offset", m["offset"], tid.get_member_offset(i))
                self.type(where, m["type"], tid.get_member_type(i))

    def space(self, where, o, space):
        kind = {h5s.NULL: "null", h5s.SCALAR: "scalar", h5s.SIMPLE: "simple"}[
            space.get_simple_extent_type()]
        self.equal(where, "space", o["space"], kind)
        if kind == "simple":
            self.equal(where, "shape", o["shape"], list(space.get_simple_extent_dims()))
            self.equal(where, "maximum shape", o["max"],
                       [None if n is None or n == h5s.UNLIMITED else n
                        for n in space.get_simple_extent_dims(True)])

    # ---- values ----

    def element(self, tid, at):
        """The element at a memory address, as treedump prints it, but finite floats as numbers."""
        cls, size = tid.get_class(), tid.get_size()
        if cls == h5t.STRING and tid.is_variable_str():
            pointer = ctypes.c_void_p.from_address(at).value
            return latin(ctypes.string_at(pointer)) if pointer else None
        if cls == h5t.VLEN:
            count = ctypes.c_size_t.from_address(at).value
            pointer = ctypes.c_void_p.from_address(at + 8).value
            base = tid.get_super()
            return [self.element(base, pointer + i * base.get_size()) for i in range(count)]
        if cls == h5t.ARRAY:
            base = tid.get_super()
            return [self.element(base, at + i * base.get_size())
                    for i in range(math.prod(tid.get_array_dims()))]
        if cls == h5t.COMPOUND:
            return [self.element(tid.get_member_type(i), at + tid.get_member_offset(i))
                    for i in range(tid.get_nmembers())]
        if cls == h5t.REFERENCE:
            address = ctypes.c_uint64.from_address(at).value
            return ("reference", address) if address else None
        raw = ctypes.string_at(at, size)
        if cls == h5t.STRING:
            return ("string", raw)
        if cls == h5t.OPAQUE:
            return raw.hex()
        if cls == h5t.FLOAT:
            value = float_text(raw, tid)
            if value is None:
                raise Skip
            return value
        if cls in (h5t.INTEGER, h5t.ENUM):
            kind = tid.get_super() if cls == h5t.ENUM else tid
            if not whole(kind):
                raise Skip
            order = "big" if kind.get_order() == h5t.ORDER_BE else "little"
            return int.from_bytes(raw, order, signed=kind.get_sign() == h5t.SGN_2)
        if cls == h5t.BITFIELD:
            for order in ("LE", "BE"):
                if tid.equal(getattr(h5t, f"STD_B{8 * size}{order}", h5t.STD_B8LE)):
                    return int.from_bytes(raw, "little" if order == "LE" else "big")
        raise Skip

    def same(self, ours, theirs):
        if isinstance(theirs, tuple) and theirs[0] == "reference":
            return ours is None and theirs[1] not in self.addresses.values() or \
                isinstance(ours, str) and self.addresses.get(ours) == theirs[1]
        if isinstance(theirs, tuple):    # without the padding of any kind
            raw = raw_bytes(ours)
            return theirs[1].startswith(raw) and theirs[1][len(raw):].strip(b"\0 ") == b"" or \
                theirs[1].split(b"\0")[0] == raw
        if isinstance(theirs, list):
            return isinstance(ours, list) and len(ours) == len(theirs) and \
                all(map(self.same, ours, theirs))
        if isinstance(theirs, float):
            return isinstance(ours, str) and float.fromhex(ours) == theirs
        return ours == theirs

    def value(self, where, tid, n, ours, read):
        if has_region(tid):
            return
        raw = np.zeros(max(n * tid.get_size(), 1), "u1")
        if n and read(raw.ctypes.data) < 0:
            return    # libhdf5 cannot read it
        if ours is None:
            self.note(where, "libhdf5 can read its value")
            return
        try:
            theirs = [self.element(tid, raw.ctypes.data + i * tid.get_size()) for i in range(n)]
        except Skip:
            return
        if len(ours) != n:
            self.note(where, f"{len(ours)} elements, libhdf5 has {n}")
            return
        bad = [i for i in range(n) if not self.same(ours[i], theirs[i])]
        if bad:
            self.note(where, f"{len(bad)} of {n} elements differ, first {bad[0]}: "
                             f"{str(ours[bad[0]])[:100]}, libhdf5 has {str(theirs[bad[0]])[:100]}")

    def attributes(self, o, handle):
        theirs = attribute_names(handle)
        if theirs is None:
            return
        self.equal(o["path"], "attributes", sorted(raw_bytes(a["name"]) for a in o["attrs"]),
                   sorted(theirs))
        for a in o["attrs"]:
            where = f"{o['path']}@{a['name']}"
            if raw_bytes(a["name"]) not in theirs:
                continue
            aid = h5a.open(handle, raw_bytes(a["name"]))
            tid, space = aid.get_type(), aid.get_space()
            self.type(where, a["type"], tid)
            self.space(where, a, space)
            self.committed(where, a, tid)
            n = space.get_simple_extent_npoints()
            if space.get_simple_extent_type() == h5s.NULL:
                n = 0
            self.value(where, tid, n, a.get("value") or [],
                       lambda p, aid=aid, tid=tid: h5raw._lib.H5Aread(aid.id, tid.id, p))

    def committed(self, where, ours, tid):
        theirs = h5o.get_info(tid).addr if tid.committed() else None
        shown = ours["committed"]
        if shown in self.unreadable:
            return
        self.equal(where, "committed type", shown if shown is None else self.addresses.get(shown),
                   theirs)

    def dataset(self, o, did):
        where, tid, space = o["path"], did.get_type(), did.get_space()
        self.type(where, o["type"], tid)
        self.space(where, o, space)
        self.committed(where, o, tid)
        try:
            plist = did.get_create_plist()
        except RuntimeError:
            return    # libhdf5 cannot read its fill value
        virtual = plist.get_layout() == h5d.VIRTUAL
        raw = "virtual" if virtual else "external" if plist.get_external_count() else "stored"
        self.equal(where, "place of the raw data", o["raw"], raw)
        if raw != "stored":
            return
        self.equal(where, "layout", o["layout"], LAYOUTS[plist.get_layout()])
        if plist.get_layout() == h5d.CHUNKED:
            self.equal(where, "chunk", o["chunk"], list(plist.get_chunk()))
            self.equal(where, "filters", [f["id"] for f in o["filters"]],
                       [plist.get_filter(i)[0] for i in range(plist.get_nfilters())])
            self.chunks(where, o, did, space)
        self.fill(where, o["fill"], tid, plist)
        n = space.get_simple_extent_npoints()
        if space.get_simple_extent_type() == h5s.NULL:
            n = 0
        if n * max(tid.get_size(), 1) <= TOO_LARGE and not ("data" not in o and
                                                            "data_error" not in o):
            self.value(where, tid, n, o.get("data"),
                       lambda p: h5raw._lib.H5Dread(did.id, tid.id, 0, 0, 0, p))

    def chunks(self, where, o, did, space):
        """libhdf5 1.10.8 counts wrongly in extensible arrays whose fast dimension is unlimited. A
        chunk that cannot be decoded ends the count of treedump."""
        unlimited = [n == h5s.UNLIMITED for n in space.get_simple_extent_dims(True)]
        if "data_error" in o or len(unlimited) > 1 and unlimited[1:].count(True) == 1:
            return
        try:
            self.equal(where, "stored chunks", o["chunks"], did.get_num_chunks())
        except (RuntimeError, TypeError):
            pass    # another library of h5py

    def fill(self, where, ours, tid, plist):
        defined = plist.fill_value_defined() == h5d.FILL_VALUE_USER_DEFINED
        self.equal(where, "fill value is defined", ours["defined"], defined)
        if defined and is_plain(tid) and ours.get("hex") is not None:
            buffer = np.zeros(tid.get_size(), "u1")
            if h5raw._lib.H5Pget_fill_value(ctypes.c_int64(plist.id), ctypes.c_int64(tid.id),
                                            ctypes.c_void_p(buffer.ctypes.data)) >= 0:
                self.equal(where, "fill value", ours["hex"], buffer.tobytes().hex())


def differences(path, *options):
    return Model(path, *options).run()


def main():
    for path in sys.argv[1:]:
        try:
            found = differences(path)
        except OSError as e:
            found = [f"h5py: {e}"]
        print(path, "equal" if not found else "DIFFERS")
        for line in found[:20]:
            print("   ", line[:300])


if __name__ == "__main__":
    main()
