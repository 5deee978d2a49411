# SPDX-License-Identifier: Apache-2.0
"""Compares an HDF5 file with the domain that it shows, for the fidelity tests."""
import h5py
import numpy as np
from h5py import h5a, h5d, h5g, h5i, h5o, h5t

import h5raw
import oracle
from oracle import text_bytes

TYPES = {"g": h5i.GROUP, "d": h5i.DATASET, "t": h5i.DATATYPE}


def same(a, b):
    """Equal data in neutral form."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
    return type(a) is type(b) and a == b


def shortened(x):
    text = repr(x.tobytes()[:48] if isinstance(x, np.ndarray) else x)
    return text if len(text) < 120 else text[:117] + "..."


def terminated(obj, attr):
    """Type and data that the mount shows for an attribute. These are the stored ones, except that
    hsload removes the terminator of CLASS and NAME of dimension scales, and the mount adds it."""
    def text(a):
        return a.data.tobytes().rstrip(b"\0")
    classes = [a for a in obj.attributes if a.name == "CLASS" and a.type[0] == "string"]
    if obj.kind != "d" or attr.name not in ("CLASS", "NAME") or attr.type[0] != "string" or \
            attr.type[2] != "nullpad" or attr.data is None or attr.data.size != 1 or \
            not any(text(a) == b"DIMENSION_SCALE" for a in classes):
        return attr.type, attr.data
    value = text(attr) + b"\0"
    return (("string", len(value), "nullterm", attr.type[3]),
            np.frombuffer(value, f"V{len(value)}").reshape(attr.data.shape))


class Comparison:
    """Collects the differences as lines "path: difference"."""

    def __init__(self, domain, file):
        self.domain, self.file, self.differences = domain, file, []
        self.ids, self.handles = {}, {}
        for oid, path in domain.paths.items():
            try:
                handle = h5o.open(file.id, text_bytes(path))
            except KeyError as e:
                self.note(path, f"cannot be opened: {e}")
                continue
            self.handles[oid] = handle
            self.ids[h5o.get_info(handle).addr] = oid
        self.reader = h5raw.Reader(self.ids)

    def note(self, where, what):
        self.differences.append(f"{where}: {what}")

    def equal(self, where, what, stored, shown):
        if stored != shown:
            self.note(where, f"{what}: stored {shortened(stored)}, shown {shortened(shown)}")

    def run(self):
        for oid, handle in self.handles.items():
            obj, path = self.domain.objects[oid], self.domain.paths[oid]
            self.equal(path, "kind", TYPES[obj.kind], h5i.get_type(handle))
            if obj.kind == "g":
                self.links(path, obj, handle)
            elif obj.kind == "d":
                self.dataset(path, obj, h5py.Dataset(handle))
            else:
                self.type(path, obj.type, handle, oid)
            self.attributes(path, obj, handle)
            self.equal(path, "comment", obj.comment, h5raw.comment(handle))
        return self.differences

    def type(self, where, stored, tid, committed):
        """committed: id of the committed type of the attribute or dataset, or None."""
        self.equal(where, "type", h5raw.one_byte_orders(stored), h5raw.type_of(tid))
        if not h5raw.is_packed(tid):
            self.note(where, "the compound has holes")
        if h5i.get_type(tid) != h5i.DATATYPE or committed and committed not in self.handles:
            return
        shown = self.ids.get(h5o.get_info(tid).addr) if tid.committed() else None
        self.equal(where, "committed type", committed, shown)

    def links(self, path, obj, group):
        names = [text_bytes(link.name) for link in obj.links]
        order = group.get_create_plist().get_link_creation_order()
        shown = []
        if order & h5py.h5p.CRT_ORDER_INDEXED:
            group.links.iterate(shown.append, idx_type=h5py.h5.INDEX_CRT_ORDER)
        else:
            self.note(path, "link creation order is not tracked")
            names.sort()
            group.links.iterate(shown.append)
        self.equal(path, "links", names, shown)
        for link in obj.links:
            name = text_bytes(link.name)
            if name not in shown:
                continue
            info, where = group.links.get_info(name), f"{path.rstrip('/')}/{link.name}"
            kind = {h5py.h5l.TYPE_HARD: "hard", h5py.h5l.TYPE_SOFT: "soft",
                    h5py.h5l.TYPE_EXTERNAL: "external"}.get(info.type)
            self.equal(where, "link class", link.kind, kind)
            if kind == "hard":
                target = h5o.get_info(h5o.open(group, name)).addr
                self.equal(where, "target", link.id, self.ids.get(target))
            elif kind == "soft":
                self.equal(where, "soft link", text_bytes(link.path), group.links.get_val(name))
            elif kind == "external":
                self.equal(where, "external link's path", text_bytes(link.path),
                           group.links.get_val(name)[1])

    def attributes(self, path, obj, handle):
        names = [text_bytes(a.name) for a in obj.attributes]
        shown = []
        h5a.iterate(handle, lambda name, *_: shown.append(name))
        self.equal(path, "attributes", sorted(names), sorted(shown))
        if "attributeCreationOrder" in obj.properties:
            ordered = []
            h5a.iterate(handle, lambda name, *_: ordered.append(name),
                        index_type=h5py.h5.INDEX_CRT_ORDER)
            self.equal(path, "attribute order", names, ordered)
        for attr in obj.attributes:
            name, where = text_bytes(attr.name), f"{path}@{attr.name}"
            if name not in shown:
                continue
            aid = h5a.open(handle, name)
            type_, stored = terminated(obj, attr)
            self.type(where, type_, aid.get_type(), attr.committed)
            data = self.reader.attribute(aid)
            if not same(stored, data):
                self.note(where, f"value: stored {shortened(stored)}, shown {shortened(data)}")

    def dataset(self, path, obj, ds):
        self.type(path, obj.type, ds.id.get_type(), obj.committed)
        self.equal(path, "shape", obj.shape, ds.shape)
        if obj.shape is not None and 0 not in obj.shape:    # 0 may mean fixed or unlimited
            self.equal(path, "maximum shape", obj.maxshape, ds.maxshape)
        stored, shown = obj.data(), self.reader.dataset(ds)
        if not same(stored, shown):
            self.note(path, f"data: {first_difference(stored, shown)}")
        if stored is not None and obj.type[0] in ("int", "float") and ds.size:
            if ds[...].tobytes() != stored.tobytes():
                self.note(path, "a read with h5py differs")


def first_difference(a, b):
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.dtype == b.dtype and \
            a.shape == b.shape:
        where = np.flatnonzero(a.reshape(-1) != b.reshape(-1))
        i = np.unravel_index(where[0], a.shape) if a.shape else ()
        return f"{where.size} of {a.size} elements, first at {i}: stored {bytes(a[i])!r}, " \
               f"shown {bytes(b[i])!r}"
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        i = next(i for i, (x, y) in enumerate(zip(a, b)) if not (type(x) is type(y) and x == y))
        return f"element {i}: stored {shortened(a[i])}, shown {shortened(b[i])}"
    return f"stored {shortened(a)}, shown {shortened(b)}"


def differences(bucket, path, filename):
    """The differences between the file and the stored domain; [] if there are none."""
    with h5py.File(filename, "r") as f:
        return Comparison(bucket.domain(path), f).run()
