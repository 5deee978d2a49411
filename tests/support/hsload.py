# SPDX-License-Identifier: Apache-2.0
"""Loads an HDF5 file into a bucket. It loses the same information as the service's hsload: links
are in alphabetical order, and a single fixed-length string in an attribute is stored null-padded
and without a terminator. Supports numbers, strings and object references, as in netCDF-4 files."""
import h5py
import numpy as np

from mkbucket import vlen, vstring

REFERENCE = {"class": "H5T_REFERENCE", "base": "H5T_STD_REF_OBJ"}
COLLECTIONS = {"g": "groups", "d": "datasets", "t": "datatypes"}


def type_of(dtype):
    if h5py.check_string_dtype(dtype):
        info = h5py.check_string_dtype(dtype)
        if info.length is None:
            return vstring("UTF8" if info.encoding == "utf-8" else "ASCII")
        return fixed(info.length)
    if h5py.check_ref_dtype(dtype):
        return REFERENCE
    if h5py.check_vlen_dtype(dtype):
        return vlen(type_of(h5py.check_vlen_dtype(dtype)))
    if dtype.names:
        return {"class": "H5T_COMPOUND", "fields": [
            {"name": n, "type": type_of(dtype.fields[n][0])} for n in dtype.names]}
    order = "BE" if dtype.byteorder == ">" else "LE"
    if dtype.kind == "f":
        return {"class": "H5T_FLOAT", "base": f"H5T_IEEE_F{8 * dtype.itemsize}{order}"}
    return {"class": "H5T_INTEGER",
            "base": f"H5T_STD_{'I' if dtype.kind == 'i' else 'U'}{8 * dtype.itemsize}{order}"}


def fixed(length):
    return {"class": "H5T_STRING", "charSet": "H5T_CSET_ASCII", "strPad": "H5T_STR_NULLPAD",
            "length": max(length, 1)}


class Loader:
    def __init__(self, source, domain):
        self.source, self.domain, self.made = source, domain, {}

    def run(self):
        self.made[self.source.id] = self.domain.root
        self.source.visititems(self.make)
        for found, made in list(self.made.items()):
            self.attributes(h5py.h5i.get_type(found), found, made)

    def make(self, name, obj):
        parent = self.made[obj.parent.id]
        leaf = name.rpartition("/")[2]
        if isinstance(obj, h5py.Group):
            self.made[obj.id] = self.domain.group(parent, leaf)
            return
        maxdims = [m or 0 for m in obj.maxshape]
        fill = {} if obj.dtype.kind == "O" else {"fillValue": obj.fillvalue.item()
                                                 if obj.dtype.kind != "S" else
                                                 obj.fillvalue.decode("latin-1")}
        ds = self.domain.dataset(parent, leaf, type_of(obj.dtype), list(obj.shape),
                                 [max(n, 1) for n in obj.shape] or None, maxdims, **fill)
        self.made[obj.id] = ds
        if obj.size:
            data = obj[...]
            if data.dtype.kind == "O":
                data = b"".join(len(x).to_bytes(4, "little") + x for x in data.reshape(-1))
            ds.chunk((0,) * max(obj.ndim, 1), data)

    def value(self, v):
        if isinstance(v, h5py.Reference):
            made = self.made[self.source[v].id]
            return f"{COLLECTIONS[made.id[0]]}/{made.id}"
        if isinstance(v, (np.void, tuple)):
            return [self.value(x) for x in (v if isinstance(v, tuple) else v.tolist())]
        if isinstance(v, np.ndarray):
            return [self.value(x) for x in v]
        if isinstance(v, bytes):
            return v.decode("utf-8")
        return v.item() if isinstance(v, np.generic) else v

    def attributes(self, kind, found, made):
        obj = h5py.Dataset(found) if kind == h5py.h5i.DATASET else h5py.Group(found)
        for name in obj.attrs:
            aid = obj.attrs.get_id(name)
            value = obj.attrs[name]
            if isinstance(value, h5py.Empty):
                made.attribute(name, fixed(1), None, None)
                continue
            type_ = type_of(aid.dtype)
            if aid.dtype.kind == "S" and not aid.shape:
                type_ = fixed(len(value))
            made.attribute(name, type_, list(aid.shape), self.value(value))


def load(path, domain):
    """Copies everything in the file at `path` into a mkbucket domain."""
    with h5py.File(path, "r") as f:
        Loader(f, domain).run()
