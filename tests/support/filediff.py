# SPDX-License-Identifier: Apache-2.0
"""Compares two HDF5 files object by object, as h5py and libhdf5 read them: user block, links,
types, spaces, fill values, data, attributes. Elements are compared as their bytes in the type of
the file, without the padding of compounds, so no conversion hides a difference.

    filediff.py A B         prints the differences
"""
import ctypes
import sys

import h5py
import numpy as np
from h5py import h5a, h5d, h5g, h5i, h5l, h5o, h5p, h5s, h5t

import h5raw

KINDS = {h5l.TYPE_HARD: "hard", h5l.TYPE_SOFT: "soft", h5l.TYPE_EXTERNAL: "external"}


def has_region(tid):
    """True if the type has region references, whose selections are not compared."""
    cls = tid.get_class()
    if cls == h5t.REFERENCE:
        return not tid.equal(h5t.STD_REF_OBJ)
    if cls in (h5t.ARRAY, h5t.VLEN):
        return has_region(tid.get_super())
    if cls == h5t.COMPOUND:
        return any(has_region(tid.get_member_type(i)) for i in range(tid.get_nmembers()))
    return False


def is_plain(tid):
    """True if elements are compared as bytes: no variable length, no references."""
    cls = tid.get_class()
    if cls == h5t.STRING:
        return not tid.is_variable_str()
    if cls == h5t.ARRAY:
        return is_plain(tid.get_super())
    if cls == h5t.COMPOUND:
        return all(is_plain(tid.get_member_type(i)) for i in range(tid.get_nmembers()))
    return cls not in (h5t.VLEN, h5t.REFERENCE)


def used_bytes(tid):
    """A mask of the bytes of an element of a plain type that are not padding."""
    cls, size = tid.get_class(), tid.get_size()
    if cls == h5t.ARRAY:
        base = used_bytes(tid.get_super())
        return np.tile(base, size // len(base))
    if cls == h5t.COMPOUND:
        mask = np.zeros(size, bool)
        for i in range(tid.get_nmembers()):
            at = tid.get_member_offset(i)
            mask[at:at + tid.get_member_type(i).get_size()] = used_bytes(tid.get_member_type(i))
        return mask
    return np.ones(size, bool)


def same_texts(a, b):
    """Two types of text of variable length, which libhdf5 finds different if their character types
    are written in different versions of the message."""
    return all(t.get_class() == h5t.STRING and t.is_variable_str() for t in (a, b)) and \
        h5raw.type_of(a) == h5raw.type_of(b)


def as_plain_reference(kind):
    """The type, with references to objects instead of the revised ones, which libhdf5 1.10 does not
    know and which become such references."""
    if kind == ("odd reference",):
        return ("ref",)
    return type(kind)(map(as_plain_reference, kind)) if isinstance(kind, (tuple, list)) else kind


def normal(value, left_out):
    """A reference to an object that is gone or was left out becomes null in a domain, and a text of
    variable length that was never written becomes empty."""
    if isinstance(value, (list, tuple)):
        return type(value)(normal(v, left_out) for v in value)
    if isinstance(value, str) and (value.startswith("address ") or value in left_out):
        return None
    return None if value == b"" else value


class File:
    """An open file, with a path for each object: the first one in the order of a walk by name."""

    def __init__(self, path):
        self.block = user_block(path)
        self.f = h5py.File(path, "r")
        self.paths, self.objects, self.unreadable = {}, {}, set()
        todo = [(b"/", self.f["/"].id)]
        while todo:
            path, handle = todo.pop(0)
            try:
                address = h5o.get_info(handle).addr
            except RuntimeError:
                self.unreadable.add(path.decode("utf-8", "surrogateescape"))
                continue
            if address in self.paths:
                continue
            self.paths[address] = path.decode("utf-8", "surrogateescape")
            self.objects[path] = handle
            if not isinstance(handle, h5g.GroupID):
                continue
            for name in sorted(names(handle)):
                if handle.links.get_info(name).type != h5l.TYPE_HARD:
                    continue
                child = path.rstrip(b"/") + b"/" + name
                try:
                    todo.append((child, open_object(handle, name)))
                except (KeyError, RuntimeError):
                    self.unreadable.add(child.decode("utf-8", "surrogateescape"))
        self.reader = h5raw.Reader(self.paths)

    def path_of(self, handle):
        return self.paths.get(h5o.get_info(handle).addr)


def user_block(path):
    """The bytes in front of the superblock, or None if it cannot be found."""
    with open(path, "rb") as f:
        at, size = 0, f.seek(0, 2)
        while at < size:
            f.seek(at)
            if f.read(8) == b"\x89HDF\r\n\x1a\n":
                f.seek(0)
                return f.read(at)
            at = at * 2 or 512
    return None


def open_object(group, name):
    return h5o.open(group, name)


def names(group):
    out = []
    group.links.iterate(out.append)
    return out


def attribute_names(handle):
    """None if this libhdf5 cannot read an attribute of the object, which fails for all of them."""
    found = []
    try:
        h5a.iterate(handle, lambda name, *_: found.append(name))
    except RuntimeError:
        return None
    return found


class Difference:
    def __init__(self, a, b, ignored=()):
        """ignored: paths (of objects; "path@attribute"; of links) that are left out on purpose.
        Objects of the first file that this libhdf5 cannot read are not compared either."""
        self.a, self.b, self.found = File(a), File(b), []
        self.ignored = set(ignored) | self.a.unreadable

    def note(self, where, what):
        if where not in self.ignored:
            self.found.append(f"{where}: {what}")

    def run(self):
        if self.a.block != self.b.block:
            self.note("the file", "its user block differs")
        for path, handle in self.a.objects.items():
            where = path.decode("utf-8", "surrogateescape")
            if any(where == i or where.startswith(i.rstrip("/") + "/") for i in self.ignored):
                continue
            other = self.b.objects.get(path)
            if other is None or h5i.get_type(other) != h5i.get_type(handle):
                self.note(where, "missing, or of another kind")
                continue
            if isinstance(handle, h5g.GroupID):
                self.links(where, handle, other)
            elif isinstance(handle, h5d.DatasetID):
                self.dataset(where, handle, other)
            else:
                self.type(where, handle, other)
            self.attributes(where, handle, other)
            comments = [h5raw.comment(o) for o in (handle, other)]
            if comments[0] != comments[1]:
                self.note(where, f"comment {comments[1]}, not {comments[0]}")
        for path in self.b.objects:
            if path not in self.a.objects:
                self.note(path.decode("utf-8", "surrogateescape"), "is not in the first file")
        return self.found

    def links(self, where, a, b):
        theirs, ours = names(a), names(b)
        for name in set(theirs) ^ set(ours):
            self.note(f"{where.rstrip('/')}/{name.decode('utf-8', 'surrogateescape')}",
                      "this link is in one file only")
        for name in set(theirs) & set(ours):
            at = f"{where.rstrip('/')}/{name.decode('utf-8', 'surrogateescape')}"
            x, y = a.links.get_info(name), b.links.get_info(name)
            if x.type != y.type:
                self.note(at, f"link class {x.type}, not {y.type}")
            elif x.type == h5l.TYPE_HARD:
                if at not in self.ignored and self.a.path_of(
    open_object(
        a,
        name)) != self.b.path_of(
            open_object(
                b,
                 name)):
                    self.note(at, "links to another object")
            elif x.type == h5l.TYPE_SOFT and a.links.get_val(name) != b.links.get_val(name):
                self.note(at, f"soft link {a.links.get_val(name)}, not {b.links.get_val(name)}")
            elif x.type == h5l.TYPE_EXTERNAL and \
                    a.links.get_val(name)[1] != b.links.get_val(name)[1]:
                self.note(at, "external link to another object")
        if tracks_order(a):
            one, two = [], []
            a.links.iterate(one.append, idx_type=h5py.h5.INDEX_CRT_ORDER)
            b.links.iterate(two.append, idx_type=h5py.h5.INDEX_CRT_ORDER)
            if set(one) == set(two) and one != two:
                self.note(where, "links in another order")

    def type(self, where, a, b):
        if not a.equal(b) and not same_texts(a, b):
            types = h5raw.type_of(a), h5raw.type_of(b)
            if as_plain_reference(types[0]) == types[1]:
                return False    # this libhdf5 cannot read the values either
            self.note(where, f"type {h5raw.type_of(a)}, not {h5raw.type_of(b)}")
            return False
        if a.committed() != b.committed() or \
                a.committed() and self.a.path_of(a) != self.b.path_of(b):
            self.note(where, "another committed type")
        return True

    def space(self, where, a, b):
        same = a.get_simple_extent_type() == b.get_simple_extent_type()
        if same and a.get_simple_extent_type() == h5s.SIMPLE:
            same = a.get_simple_extent_dims() == b.get_simple_extent_dims() and \
                a.get_simple_extent_dims(True) == b.get_simple_extent_dims(True)
        if not same:
            self.note(
    where, f"space {a.get_simple_extent_dims()} {a.get_simple_extent_dims(True)}, "
    f"not {b.get_simple_extent_dims()} {b.get_simple_extent_dims(True)}")
        return same

    def values(self, where, tid, x, y):
        """x, y: in neutral form."""
        if x is None or y is None:
            if x is not y:
                self.note(where, "one value is null")
        elif isinstance(x, np.ndarray):
            if x.tobytes() == y.tobytes():
                return    # an element may have 100 MB
            mask = used_bytes(tid)
            one = np.frombuffer(x.tobytes(), "u1").reshape(-1, len(mask))[:, mask]
            two = np.frombuffer(y.tobytes(), "u1").reshape(-1, len(mask))[:, mask]
            bad = np.flatnonzero((one != two).any(axis=1))
            if bad.size and not self.nan_equal(tid, x, y):
                self.note(where, f"{bad.size} of {len(one)} elements differ, first {bad[0]}: "
                                 f"{bytes(one[bad[0]])!r}, not {bytes(two[bad[0]])!r}"[:300])
        elif x != y:
            bad = [i for i, (p, q) in enumerate(zip(x, y))
                   if p != q and normal(p, self.ignored) != normal(q, self.ignored)]
            if not bad:
                return
            self.note(where, f"{len(bad)} of {len(x)} elements differ, first {bad[0]}: "
                             f"{str(x[bad[0]])[:100]}, not {str(y[bad[0]])[:100]}")

    @staticmethod
    def nan_equal(tid, x, y):
        """JSON loses the payload of a NaN."""
        if tid.get_class() != h5t.FLOAT or tid.get_size() > 8:
            return False
        one, two = (np.frombuffer(v.tobytes(), tid.dtype) for v in (x, y))
        return np.array_equal(one, two, equal_nan=True)

    def dataset(self, where, a, b):
        if not self.type(where, a.get_type(), b.get_type()) or \
                not self.space(where, a.get_space(), b.get_space()):
            return
        one, two = a.get_create_plist(), b.get_create_plist()
        if one.get_layout() == h5d.CHUNKED and two.get_layout() == h5d.CHUNKED and \
                one.get_chunk() != two.get_chunk():
            self.note(where, f"chunks {one.get_chunk()}, not {two.get_chunk()}")
        if is_plain(a.get_type()) and one.fill_value_defined() == h5d.FILL_VALUE_USER_DEFINED:
            tid, fill = a.get_type(), []
            for plist in (one, two):
                buffer = np.zeros(tid.get_size(), "u1")
                h5raw._lib.H5Pget_fill_value(ctypes.c_int64(plist.id), ctypes.c_int64(tid.id),
                                             ctypes.c_void_p(buffer.ctypes.data))
                fill.append(buffer[used_bytes(tid)].tobytes())
            if fill[0] != fill[1]:
                self.note(where, f"fill value {fill[0]!r}, not {fill[1]!r}")
        if has_region(a.get_type()):
            return
        tid = a.get_type()
        if is_plain(tid) and a.get_space().get_simple_extent_npoints() * tid.get_size() > 1 << 28:
            return self.sparse(where, a, b)
        try:
            data = self.a.reader.dataset(h5py.Dataset(a))
        except OSError:
            return    # this libhdf5 lacks the filter, or a file of external data
        self.values(where, tid, data, self.b.reader.dataset(h5py.Dataset(b)))

    def sparse(self, where, a, b):
        """Large datasets: every stored chunk of both."""
        one, two = h5py.Dataset(a), h5py.Dataset(b)
        offsets = set()
        for d in (one, two):
            if d.chunks:
                offsets |= {
    d.id.get_chunk_info(i).chunk_offset for i in range(
        d.id.get_num_chunks())}
        for offset in sorted(offsets):
            box = tuple(slice(o, min(o + c, n)) for o, c, n in zip(offset, one.chunks, one.shape))
            if one[box].tobytes() != two[box].tobytes():
                self.note(where, f"the chunk at {offset} differs")

    def attributes(self, where, a, b):
        listed = [attribute_names(handle) for handle in (a, b)]
        if listed[0] is None:
            return
        if listed[1] is None:
            self.note(where, "its attributes cannot be read")
            return
        for name in set(listed[0]) ^ set(listed[1]):
            self.note(f"{where}@{name.decode('utf-8', 'surrogateescape')}",
                      "this attribute is in one file only")
        for name in set(listed[0]) & set(listed[1]):
            at = f"{where}@{name.decode('utf-8', 'surrogateescape')}"
            x, y = h5a.open(a, name), h5a.open(b, name)
            if self.type(at, x.get_type(), y.get_type()) and \
                    self.space(at, x.get_space(), y.get_space()) and not has_region(x.get_type()):
                self.values(
    at,
    x.get_type(),
    self.a.reader.attribute(x),
     self.b.reader.attribute(y))


def tracks_order(group):
    return bool(group.get_create_plist().get_link_creation_order() & h5p.CRT_ORDER_INDEXED)


def differences(a, b, ignored=()):
    return Difference(a, b, ignored).run()


def main():
    found = differences(sys.argv[1], sys.argv[2])
    print("\n".join(found))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
