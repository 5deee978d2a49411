#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""h5file_corpus.py DIRECTORY: writes the seed files of the fuzz target h5file, which cover the
structures that libhdf5 writes. They differ a little with the version of libhdf5 and the time, so
the files in corpus/h5file were written once, with h5py 3.7 and HDF5 1.10.8."""

import ctypes
import os
import sys

import h5py
import numpy as np
from h5py import h5d, h5f, h5g, h5p, h5s, h5t

LIB = ctypes.CDLL("libhdf5_serial.so.103")
HID = ctypes.c_int64


def call(name, *args):
    function = getattr(LIB, name)
    function.restype = ctypes.c_int
    if function(*args) < 0:
        raise RuntimeError(name)


def created(path, low=h5f.LIBVER_LATEST, high=h5f.LIBVER_LATEST, sizes=None, sohm=False, block=0):
    fapl = h5p.create(h5p.FILE_ACCESS)
    fapl.set_libver_bounds(low, high)
    fcpl = h5p.create(h5p.FILE_CREATE)
    if sizes:
        fcpl.set_sizes(*sizes)
    if block:
        fcpl.set_userblock(block)
    if sohm:
        call("H5Pset_shared_mesg_nindexes", HID(fcpl.id), ctypes.c_uint(2))
        call("H5Pset_shared_mesg_index", HID(fcpl.id), ctypes.c_uint(0), ctypes.c_uint(0x17),
             ctypes.c_uint(8))
        call("H5Pset_shared_mesg_index", HID(fcpl.id), ctypes.c_uint(1), ctypes.c_uint(0x08),
             ctypes.c_uint(8))
        if sohm == "tree":
            call("H5Pset_shared_mesg_phase_change", HID(fcpl.id), ctypes.c_uint(3),
                 ctypes.c_uint(2))
    return h5py.File(h5f.create(path.encode(), h5f.ACC_TRUNC, fcpl, fapl))


def types(f):
    f["i"] = np.arange(5, dtype=">i2")
    f["f"] = np.arange(4, dtype="f4")
    f["s"] = np.array([b"ab", b"c"])
    f["scalar"] = 7
    f["null"] = h5py.Empty("i4")
    f["v"] = np.array(["x", "longer text", ""], dtype=h5py.string_dtype())
    ragged = f.create_dataset("vlen", (3,), h5py.vlen_dtype("u2"))
    ragged[0], ragged[2] = [1, 2, 3], [4]
    f["e"] = np.array([0, 1], dtype=h5py.enum_dtype({"A": 0, "B": 1}, basetype="i1"))
    f["c"] = np.zeros(3, dtype=np.dtype({"names": ["x", "y"], "formats": ["i4", "(2,)f8"],
                                        "offsets": [4, 16], "itemsize": 40}))
    f["o"] = np.void(b"abc")
    f["committed"] = np.dtype("i8")
    f.create_dataset("of_committed", (2,), dtype=f["committed"])
    refs = f.create_dataset("refs", (2,), h5py.ref_dtype)
    refs[0] = f["i"].ref
    regions = f.create_dataset("regions", (2,), h5py.regionref_dtype)
    regions[0] = f["i"].regionref[1:3]


def names(f):
    """Text that is not UTF-8."""
    latin = h5t.enum_create(h5t.STD_I8LE)
    latin.enum_insert(b"gr\xfcn", 1)
    compound = h5t.create(h5t.COMPOUND, 8)
    compound.insert(b"T (\xb0C)", 1, latin)
    opaque = h5t.create(h5t.OPAQUE, 3)
    opaque.set_tag(b"caf\xe9")
    compound.insert(b"\xed\xb3\xbc", 4, opaque)
    h5d.create(f.id, b"gr\xf6\xdfe", compound, h5s.create_simple((2,)))
    h5py.h5o.set_comment(f.id, b"caf\xe9", obj_name=b"gr\xf6\xdfe")
    h5py.h5o.set_comment(f.id, b"a comment")


def attributes(f):
    for i in range(12):
        f.attrs["attribute %02d" % i] = np.arange(i + 1, dtype="i2")
    f.attrs["text"] = "a string in a heap"
    f.attrs["huge"] = np.zeros(5000, "u1")
    f.attrs["ref"] = f.ref


def links(f):
    f["soft"] = h5py.SoftLink("/g/other")
    f["external"] = h5py.ExternalLink("other.h5", "/x")
    g = f.create_group("g")
    f["hard"] = g
    g["loop"] = f["/"]


def many_links(f, n):
    for i in range(n):
        f["link number %03d" % i] = h5py.SoftLink("/target %03d" % i)


def chunked(f, **more):
    data = (np.arange(40 * 30) % 100).astype("i2").reshape(40, 30)
    f.create_dataset("d", data=data, chunks=(8, 8), **more)


def filters(f):
    data = np.arange(64, dtype="i4")
    f.create_dataset("gzip", data=data, chunks=(16,), compression="gzip", shuffle=True,
                     fletcher32=True)
    f.create_dataset("lzf", data=data, chunks=(20,), compression="lzf")
    f.create_dataset("szip", data=data, chunks=(32,), compression="szip")
    f.create_dataset("so", data=data, chunks=(16,), scaleoffset=5)
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_chunk((16,))
    call("H5Pset_nbit", HID(dcpl.id))
    kind = h5t.STD_I32LE.copy()
    kind.set_precision(11)
    kind.set_offset(3)
    h5d.create(f.id, b"nbit", kind, h5s.create_simple((32,)), dcpl).write(
        h5s.ALL, h5s.ALL, data[:32])
    d = f.create_dataset("mask", (4, 4), "i2", chunks=(2, 4), compression="gzip")
    d.id.write_direct_chunk((0, 0), b"0123456789abcdef", filter_mask=1)


def indexes(f):
    f.create_dataset("single", data=np.arange(6, dtype="i2"), chunks=(6,))
    f.create_dataset("single_gz", data=np.arange(50) % 3, chunks=(50,), compression="gzip")
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_chunk((4,))
    dcpl.set_alloc_time(h5d.ALLOC_TIME_EARLY)
    h5d.create(f.id, b"implicit", h5t.STD_I16LE, h5s.create_simple((10,)), dcpl)
    f.create_dataset("farray", data=np.arange(20, dtype="i2"), chunks=(3,))
    f.create_dataset("farray_gz", data=np.arange(20) % 3, chunks=(3,), compression="gzip")
    f.create_dataset("earray", data=np.arange(60, dtype="i2"), chunks=(2,), maxshape=(None,))
    f.create_dataset("earray_gz", data=np.arange(20) % 3, chunks=(4,), maxshape=(None,),
                     compression="gzip")
    f.create_dataset("btree", data=np.ones((6, 6), "i2"), chunks=(2, 2), maxshape=(None, None))
    f.create_dataset("btree_gz", data=np.ones((6, 6)), chunks=(3, 3), maxshape=(None, None),
                     compression="gzip")


def large_indexes(f):
    d = f.create_dataset("farray", (5000,), "i1", chunks=(1,))
    d[1500], d[4999] = 1, 2
    d = f.create_dataset("earray", (6000,), "i1", chunks=(1,), maxshape=(None,))
    d[0], d[700], d[5999] = 1, 2, 3
    d = f.create_dataset("btree", (40, 40), "i1", chunks=(1, 2), maxshape=(None, None))
    d[:, :8] = 1


def layouts(f):
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_layout(h5d.COMPACT)
    h5d.create(f.id, b"compact", h5t.STD_I32LE, h5s.create_simple((4,)), dcpl).write(
        h5s.ALL, h5s.ALL, np.arange(4, dtype="i4"))
    f.create_dataset("contiguous", data=np.arange(300, dtype="i2"))
    f.create_dataset("empty", (10,), "i4", fillvalue=9)
    f.create_dataset("external", (4,), "i1", external=[("raw.bin", 0, 4)])
    source = h5py.VirtualSource("x.h5", "d", shape=(4,))
    layout = h5py.VirtualLayout(shape=(4,), dtype="i4")
    layout[:] = source
    f.create_virtual_dataset("virtual", layout, fillvalue=1)


def external(f):
    for name, pieces in ((b"one", [(b"a", 0, 40)]),
                         (b"three", [(b"a", 8, 12), (b"longer name", 0, 8),
                                     (b"b", 30, h5f.UNLIMITED)])):
        dcpl = h5p.create(h5p.DATASET_CREATE)
        for piece in pieces:
            dcpl.set_external(*piece)
        h5d.create(f.id, name, h5t.STD_I32LE, h5s.create_simple((10,)), dcpl)


def filtered_group(f, n):
    gcpl = h5p.create(h5p.GROUP_CREATE)
    call("H5Pset_deflate", HID(gcpl.id), ctypes.c_uint(6))
    g = h5g.create(f.id, b"g", gcpl=gcpl)
    for i in range(n):
        g.links.create_soft(b"link%03d" % i, b"/target%03d" % i)
    g.links.create_soft(b"huge", b"x" * 5000)


def shared(f):
    for i in range(8):
        d = f.create_dataset("d%d" % i, (3, 4 + i % 3), "f8", fillvalue=3.5 + i % 2)
        d.attrs["units"] = np.arange(i % 2 + 6)


# Messages of newer libraries: a complex number of two floats, and a revised reference.
COMPLEX = bytes.fromhex("5b0100000800000011201f000400000000002000170800177f000000")
REVISED = bytes.fromhex("4712000012000000")


def forms(f):
    f["complex"] = np.arange(3, dtype="c8")
    f.create_dataset("revised", data=h5py.Empty(h5py.ref_dtype))
    f.attrs.create("revised", h5py.Empty(h5py.ref_dtype))
    f.create_dataset("chunks", data=np.arange(40, dtype="<i2"), chunks=(4,), maxshape=(None,))


def patch_forms(path):
    """What libhdf5 1.10 cannot write. The headers of old objects have no checksum."""
    with open(path, "r+b") as f:
        body = f.read()
        compound = body.index(b"\x16\x02\0\0\x08\0\0\0r\0")
        body = body[:compound] + COMPLEX + body[compound + len(COMPLEX):]
        body = body.replace(b"\x17\0\0\0\x08\0\0\0", REVISED)
        body = body[:20] + b"\1" + body[21:] + b"bytes behind the end"    # marked as open
        f.seek(0)
        f.write(body)


def rewritten(path, low, high):
    """A file that was opened again and changed: continuations, free space, other versions."""
    with created(path, low, high) as f:
        attributes(f)
        f.create_dataset("d", data=np.arange(12), chunks=(4,), maxshape=(None,))
    with h5py.File(path, "r+") as f:
        for i in range(0, 12, 2):
            del f.attrs["attribute %02d" % i]
        f.attrs["long"] = np.arange(200)
        f["d"].resize((20,))
        f["d"].attrs["a"] = "b"
        for i in range(6):
            f["d"].attrs["more %d" % i] = i
        f.create_group("x/y/z")
        f.move("x/y", "moved")


def main(out):
    os.makedirs(out, exist_ok=True)
    old = {"low": h5f.LIBVER_EARLIEST, "high": h5f.LIBVER_LATEST}

    def write(name, fill, *args, **options):
        with created(os.path.join(out, name), **options) as f:
            fill(f, *args)

    for suffix, options in (("old", old), ("new", {})):
        write("types-" + suffix, types, **options)
        write("names-" + suffix, names, **options)
        write("attributes-" + suffix, attributes, **options)
        write("links-" + suffix, links, **options)
        write("many-links-" + suffix, many_links, 40, **options)
        write("chunked-" + suffix, chunked, **options)
        write("filters-" + suffix, filters, **options)
        write("layouts-" + suffix, layouts, **options)
        write("external-" + suffix, external, **options)
    write("forms", forms, **old)
    patch_forms(os.path.join(out, "forms"))
    write("indexes", indexes)
    write("large-indexes", large_indexes)
    write("nested-heap", many_links, 300)
    write("filtered-group", filtered_group, 40)
    write("filtered-group-small", filtered_group, 12)
    write("shared-list", shared, sohm=True)
    write("shared-tree", shared, sohm="tree")
    write("sizes-2-2", attributes, sizes=(2, 4), block=512)
    write("sizes-4-4", chunked, sizes=(4, 4), **old)
    write("sizes-4-8", types, sizes=(4, 8), **old)
    rewritten(os.path.join(out, "rewritten-old"), **old)
    rewritten(os.path.join(out, "rewritten-new"), h5f.LIBVER_LATEST, h5f.LIBVER_LATEST)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
