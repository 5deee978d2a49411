# SPDX-License-Identifier: Apache-2.0
"""Makes HDF5 files of every type, layout, chunk index, filter, group form and attribute form that
h5py and its libhdf5 can write, in four generations of the format. Functions that h5py does not have
are called in the libhdf5 that it has loaded.

    h5make.py DIRECTORY     makes them all
"""
import ctypes
import os
import subprocess
import sys

import h5py
import numpy as np
from h5py import h5d, h5f, h5g, h5l, h5p, h5r, h5s, h5t

import h5raw

BOUNDS = {"earliest": (h5f.LIBVER_EARLIEST, h5f.LIBVER_LATEST), "v108": (h5f.LIBVER_V18,) * 2,
          "v110": (h5f.LIBVER_V110,) * 2, "latest": (h5f.LIBVER_LATEST,) * 2}
UNLIMITED = h5s.UNLIMITED
hid = ctypes.c_int64


def call(name, *values):
    """Calls a function of libhdf5. Each integer is an id."""
    result = getattr(h5raw._lib, name)(*[hid(v) if isinstance(v, int) else v for v in values])
    if result < 0:
        raise OSError(f"{name} fails")
    return result


def space(shape, maxshape=None):
    return h5s.create_simple(shape, maxshape) if shape is not None else h5s.create(h5s.NULL)


def write(did, tid, values):
    """values: the bytes of all elements in the type of the file."""
    data = np.frombuffer(bytes(values), "u1").copy()
    if h5raw._lib.H5Dwrite(hid(did.id), hid(tid.id), hid(0), hid(0), hid(0),
                           ctypes.c_void_p(data.ctypes.data)) < 0:
        raise OSError("H5Dwrite fails")


def dataset(f, name, tid, shape, values=None, dcpl=None, maxshape=None):
    did = h5d.create(f.id, name.encode(), tid, space(shape, maxshape), dcpl)
    if values is not None:
        write(did, tid, values)
    return did


def attribute(f, name, tid, shape, values):
    aid = h5py.h5a.create(f.id, name.encode(), tid, space(shape))
    data = np.frombuffer(bytes(values), "u1").copy()
    if h5raw._lib.H5Awrite(hid(aid.id), hid(tid.id), ctypes.c_void_p(data.ctypes.data)) < 0:
        raise OSError("H5Awrite fails")


def plain_types():
    """Types whose elements are plain bytes: (name, type)."""
    for bits in (8, 16, 32, 64):
        for sign in "IU":
            for order in ("LE", "BE"):
                yield f"{sign}{bits}{order}", getattr(h5t, f"STD_{sign}{bits}{order}")
        for order in ("LE", "BE"):
            yield f"B{bits}{order}", getattr(h5t, f"STD_B{bits}{order}")
    for bits in (16, 32, 64):
        for order in ("LE", "BE"):
            yield f"F{bits}{order}", getattr(h5t, f"IEEE_F{bits}{order}")
    yield "time32", h5t.UNIX_D32LE
    yield "time64", h5t.UNIX_D64BE
    long_double = h5t.NATIVE_LDOUBLE.copy()
    yield "long-double", long_double
    narrow = h5t.STD_I32LE.copy()
    narrow.set_precision(12)
    narrow.set_offset(5)
    yield "12-bits", narrow
    three = h5t.STD_I32BE.copy()
    three.set_precision(24)
    three.set_size(3)
    yield "3-bytes", three
    for pad in ("NULLTERM", "NULLPAD", "SPACEPAD"):
        for cset in ("ASCII", "UTF8"):
            t = h5t.C_S1.copy()
            t.set_size(7)
            t.set_strpad(getattr(h5t, f"STR_{pad}"))
            t.set_cset(getattr(h5t, f"CSET_{cset}"))
            yield f"string-{pad}-{cset}", t
    opaque = h5t.create(h5t.OPAQUE, 5)
    opaque.set_tag(b"a tag")
    yield "opaque", opaque
    opaque = opaque.copy()
    opaque.set_tag(b"caf\xe9")
    yield "opaque-latin-1", opaque
    enum = h5t.enum_create(h5t.STD_U8LE)
    for name, value in ((b"gr\xfcn", 2), (b"member_0", 1), (b"\xed\xb3\xbc", 7)):
        enum.enum_insert(name, value)
    yield "enum-latin-1", enum
    latin = h5t.create(h5t.COMPOUND, 16)
    latin.insert(b"T (\xb0C)", 4, h5t.IEEE_F64LE)
    latin.insert(b"farbe", 1, enum)
    latin.insert(b"caf\xe9", 12, h5t.STD_U16BE)
    yield "compound-latin-1", latin
    enum = h5t.enum_create(h5t.STD_I16BE)
    for name, value in ((b"RED", 3), (b"GREEN", -1), ("BL\u00dc".encode(), 300)):
        enum.enum_insert(name, value)
    yield "enum", enum
    yield "bool", h5t.py_create(np.dtype("?"))
    yield "complex", h5t.py_create(np.dtype("c16"))
    yield "array", h5t.array_create(h5t.STD_I16LE, (2, 3))
    padded = h5t.create(h5t.COMPOUND, 24)
    padded.insert(b"late", 16, h5t.IEEE_F64BE)
    padded.insert(b"early", 2, h5t.STD_U8LE)
    yield "padded", padded
    nested = h5t.create(h5t.COMPOUND, 40)
    nested.insert(b"inner", 8, padded)
    nested.insert("na\u00efve".encode(), 0, enum)
    nested.insert(b"bits", 4, h5t.STD_B16LE)
    yield "nested", nested
    yield "array-of-padded", h5t.array_create(padded, (3,))
    yield "array-of-enum", h5t.array_create(enum, (2,))


def sample_bytes(tid, n, seed=1):
    """n elements of a plain type. Padding and floats are as a program could have written them."""
    size = tid.get_size()
    rng = np.random.default_rng(seed)
    cls = tid.get_class()
    if cls == h5t.COMPOUND:
        out = np.zeros((n, size), "u1")
        for i in range(tid.get_nmembers()):
            member, at = tid.get_member_type(i), tid.get_member_offset(i)
            out[:, at:at + member.get_size()] = np.frombuffer(
                sample_bytes(member, n, seed + i + 1), "u1").reshape(n, -1)
        return out.tobytes()
    if cls == h5t.ARRAY:
        count = int(np.prod(tid.get_array_dims()))
        return sample_bytes(tid.get_super(), n * count, seed)
    if cls == h5t.FLOAT and size <= 8:
        order = ">" if tid.get_order() == h5t.ORDER_BE else "<"
        return rng.normal(size=n).astype(f"{order}f{size}").tobytes()
    if cls == h5t.FLOAT:
        return rng.normal(size=n).astype("longdouble").tobytes()
    if cls == h5t.STRING:
        words = [b"", b"a", b"seven77", b"caf\xc3\xa9", b"six666"]
        pad = b" " if tid.get_strpad() == h5t.STR_SPACEPAD else b"\0"
        return b"".join(words[i % 5][:size].ljust(size, pad) for i in range(n))
    if cls == h5t.ENUM:
        base = tid.get_super()
        order = ">" if base.get_order() == h5t.ORDER_BE else "<"
        values = [tid.get_member_value(i) for i in range(tid.get_nmembers())]
        return np.array([values[i % len(values)] for i in range(n)]).astype(
            f"{order}i{size}").tobytes()
    if cls == h5t.INTEGER and (tid.get_precision() != 8 * size):
        bits = rng.integers(0, 1 << tid.get_precision(), n) << tid.get_offset()
        order = "big" if tid.get_order() == h5t.ORDER_BE else "little"
        return b"".join(int(b).to_bytes(size, order) for b in bits)
    return rng.integers(0, 256, n * size, "u1").tobytes()


# ---- one function for each file; f is open for writing ----

def types(f):
    for name, tid in plain_types():
        dataset(f, f"d {name}", tid, (5,), sample_bytes(tid, 5))
        dataset(f, f"s {name}", tid, (), sample_bytes(tid, 1))
        dcpl = h5p.create(h5p.DATASET_CREATE)
        dcpl.set_chunk((2, 3))
        dataset(f, f"c {name}", tid, (5, 4), sample_bytes(tid, 20), dcpl)
        g = f.require_group("attributes")
        attribute(g, name, tid, (3,), sample_bytes(tid, 3))
        attribute(g, f"{name} scalar", tid, (), sample_bytes(tid, 1))


def variable_length(f):
    ascii_type, utf8 = h5py.string_dtype("ascii"), h5py.string_dtype("utf-8")
    f.create_dataset("ascii", data=["one", "", "three" * 100], dtype=ascii_type)
    f.create_dataset("utf8", data=["\u00e9\u4e2d", "x"] * 30, dtype=utf8, chunks=(7,),
                     maxshape=(None,), compression="gzip")
    f.create_dataset("empty", (0,), dtype=utf8, maxshape=(None,))
    f.create_dataset("unset", (4,), dtype=utf8)
    numbers = f.create_dataset("numbers", (6,), dtype=h5py.vlen_dtype("<f8"), chunks=(4,))
    for i in range(5):
        numbers[i] = np.arange(i, dtype="f8") / 3
    large = f.create_dataset("large items", (3,), dtype=h5py.vlen_dtype("i4"))
    for i in range(3):
        large[i] = np.arange(20000 * (i + 1))
    mixed = np.dtype([("id", "<i4"), ("name", utf8), ("list", h5py.vlen_dtype("u2"))])
    rows = np.empty(3, mixed)
    for i in range(3):
        rows[i] = (i, f"row {i}", np.arange(i, dtype="u2"))
    f.create_dataset("compound", data=rows)
    f.attrs["text"] = "variable \u00e9"
    f.attrs.create("texts", ["a", "", "ccc"], dtype=utf8)
    f.attrs.create("lists", np.array([np.arange(2, dtype="i4"), np.arange(3, dtype="i4")], object),
                   dtype=h5py.vlen_dtype("i4"))


def references(f):
    target = f.create_dataset("group/target", data=np.arange(10))
    other = f.create_group("other")
    f["kind"] = np.dtype("<i8")
    refs = f.create_dataset("references", (5,), dtype=h5py.ref_dtype)
    refs[0], refs[1], refs[2], refs[3] = target.ref, other.ref, f.ref, f["kind"].ref
    f.attrs["one"] = target.ref
    f.attrs.create("many", [other.ref, target.ref], dtype=h5py.ref_dtype)
    pair = np.dtype([("where", h5py.ref_dtype), ("n", "i4")])
    rows = np.empty(2, pair)
    rows[0], rows[1] = (target.ref, 1), (f.ref, 2)
    f.create_dataset("pairs", data=rows)
    lists = f.create_dataset("lists", (2,), dtype=h5py.vlen_dtype(h5py.ref_dtype))
    lists[0] = np.array([target.ref, other.ref], dtype=h5py.ref_dtype)


def committed(f):
    f["point"] = np.dtype([("x", "<f4"), ("y", "<f4")])
    kind = f["point"]
    kind.attrs["unit"] = "m"
    f.create_dataset("points", (4,), dtype=kind)[...] = np.ones(4, kind.dtype)
    f.create_dataset("chunked points", (4,), dtype=kind, chunks=(2,))[:2] = np.zeros(2, kind.dtype)
    f.attrs.create("origin", np.zeros((), kind.dtype), dtype=kind)
    f["sub/alias"] = kind


def layouts(f):
    def plist(layout=None, chunk=None, fill=None, fill_time=None, alloc=None):
        p = h5p.create(h5p.DATASET_CREATE)
        if layout is not None:
            p.set_layout(layout)
        if chunk:
            p.set_chunk(chunk)
        if fill is not None:
            p.set_fill_value(np.array(fill, "i4"))
        if fill_time is not None:
            p.set_fill_time(fill_time)
        if alloc is not None:
            p.set_alloc_time(alloc)
        return p
    data = np.arange(60, dtype="<i4").tobytes()
    i4 = h5t.STD_I32LE
    dataset(f, "compact", i4, (60,), data, plist(h5d.COMPACT))
    dataset(f, "compact unwritten", i4, (60,), None, plist(h5d.COMPACT, fill=7))
    dataset(f, "contiguous", i4, (5, 12), data, plist(h5d.CONTIGUOUS))
    dataset(f, "contiguous unwritten", i4, (5, 12), None, plist(h5d.CONTIGUOUS, fill=-3))
    dataset(f, "contiguous early", i4, (5, 12), None,
            plist(h5d.CONTIGUOUS, fill=9, alloc=h5d.ALLOC_TIME_EARLY))
    dataset(f, "never filled", i4, (5, 12), data, plist(
        chunk=(2, 5), fill_time=h5d.FILL_TIME_NEVER))
    dataset(f, "scalar", i4, (), data[:4])
    dataset(f, "null", i4, None)
    dataset(f, "no elements", i4, (0, 3))
    dataset(f, "large rows", h5t.STD_U8LE, (3, 5 << 20), bytes(15 << 20))
    big = np.arange(3 << 20, dtype="<u4")
    dataset(f, "cut", h5t.STD_U32LE, (3, 1 << 20), big.tobytes())
    # One of each chunk index (of the version 1 B-tree, in the old formats). An importer writes and
    # syncs an object for each chunk, so the indexes with many chunks are no larger than their forms
    # require: a fixed array with pages (more than 1,024 chunks), an extensible array with two sizes
    # of super blocks (more than 500), a B-tree of depth 2 if the chunks are filtered.
    for name, shape, maxshape, chunk in (
            ("single", (5, 12), (5, 12), (5, 12)), ("fixed", (50, 12), (50, 12), (1, 5)),
            ("fixed paged", (1100,), (2200,), (1,)),
            ("extensible", (50, 12), (UNLIMITED, 12), (4, 5)),
            ("extensible second", (4, 50), (8, UNLIMITED), (3, 2)),
            ("extensible long", (600,), (UNLIMITED,), (1,)),
            ("tree", (50, 12), (UNLIMITED, UNLIMITED), (4, 5)),
            ("tree deep", (80, 80), (UNLIMITED, UNLIMITED), (1, 2)),
            ("rank 4", (3, 4, 5, 2), None, (2, 3, 2, 1))):
        values = np.arange(np.prod(shape), dtype="<i4").tobytes()
        filtered = plist(chunk=chunk)
        filtered.set_deflate(4)
        dataset(f, f"{name} deflate", i4, shape, values, filtered, maxshape)
        dataset(f, f"{name} empty", i4, shape, None, plist(chunk=chunk, fill=5), maxshape)
        if name != "tree deep":
            dataset(f, name, i4, shape, values, plist(chunk=chunk), maxshape)
        if name not in ("fixed paged", "extensible long", "tree deep"):
            dataset(f, f"{name} early", i4, shape, None,
                    plist(chunk=chunk, fill=4, alloc=h5d.ALLOC_TIME_EARLY), maxshape)
    sparse = f.create_dataset("sparse", (5000, 5000), "<f8", chunks=(100, 100), fillvalue=1.5,
                              maxshape=(None, None))
    for i in (0, 5, 4999):
        sparse[i, i] = i
    resized = f.create_dataset("resized", (20, 20), "i2", chunks=(3, 7), maxshape=(None, 40))
    resized[...] = np.arange(400).reshape(20, 20)
    resized.resize((7, 33))
    resized.resize((30, 10))
    one = f.create_dataset("shrunk to nothing", (20,), "i2", chunks=(3,), maxshape=(None,))
    one[...] = 5
    one.resize((0,))


def filters(f):
    data = (np.arange(1000) // 7).astype("<i4").reshape(20, 50)

    def make(name, tid=h5t.STD_I32LE, values=data, prepare=(), mask=None, edges=False):
        p = h5p.create(h5p.DATASET_CREATE)
        p.set_chunk((6, 20))
        for method, *arguments in prepare:
            if hasattr(p, method):
                getattr(p, method)(*arguments)
            else:
                call(method, p.id, *[ctypes.c_uint(a) for a in arguments])
        if edges:
            call("H5Pset_chunk_opts", p.id, ctypes.c_uint(2))
        did = dataset(f, name, tid, values.shape, values.tobytes(), p)
        if mask is not None:
            did.write_direct_chunk((0, 0), bytes(np.zeros((6, 20), "<i4").tobytes()), mask)
    sets = {"deflate": [("set_deflate", 6)], "shuffle": [("set_shuffle",)],
            "fletcher32": [("set_fletcher32",)], "lzf": [("set_filter", 32000, 1)],
            "scale-offset": [("set_scaleoffset", 2, 0)], "nbit": [("H5Pset_nbit",)],
            "szip": [("set_szip", 32, 16)],
            "shuffle deflate": [("set_shuffle",), ("set_deflate", 1)],
            "shuffle deflate fletcher32": [("set_shuffle",), ("set_deflate", 9),
                                           ("set_fletcher32",)],
            "fletcher32 deflate": [("set_fletcher32",), ("set_deflate", 3)],
            "shuffle lzf": [("set_shuffle",), ("set_filter", 32000, 1)],
            "deflate twice": [("set_deflate", 3), ("set_deflate", 3)]}
    for name, prepare in sets.items():
        if name == "szip" and not h5py.h5z.filter_avail(h5py.h5z.FILTER_SZIP):
            continue
        make(name, prepare=prepare)
    make("masked", prepare=sets["deflate"], mask=1)
    make("partly masked", prepare=sets["shuffle deflate"], mask=3)
    if f.libver[1] in ("v110", "latest") and f.libver != ("earliest", "latest"):
        make("edges", prepare=sets["shuffle deflate"], edges=True)
    floats = data.astype("<f4") / 4
    make("scale-offset float", h5t.IEEE_F32LE, floats, [("set_scaleoffset", 0, 3)])
    make("scale-offset big-endian", h5t.STD_I32BE, data.astype(">i4"), [("set_scaleoffset", 2, 0)])
    narrow = h5t.STD_I32LE.copy()
    narrow.set_precision(12)
    narrow.set_offset(4)
    make("nbit 12 bits", narrow, (data << 4).astype("<i4"), sets["nbit"])
    pair = h5t.create(h5t.COMPOUND, 8)
    pair.insert(b"a", 0, narrow)
    pair.insert(b"b", 4, h5t.IEEE_F32LE)
    rows = np.zeros((20, 50), [("a", "<i4"), ("b", "<f4")])
    rows["a"], rows["b"] = data << 4, floats
    make("nbit compound", pair, rows, sets["nbit"])
    make("nbit array", h5t.array_create(narrow, (1,)), (data << 4).astype("<i4"), sets["nbit"])


def groups(f):
    for n in (0, 1, 8, 9, 500):
        g = f.create_group(f"g{n}")
        for i in range(n):
            g.create_group(f"link {n - i:03d}")
        t = f.create_group(f"ordered {n}", track_order=True)
        for i in range(n):
            t.create_group(f"link {n - i:03d}")
    f["hard"] = f["g1"]
    f["loop/self"] = f.require_group("loop")
    f["loop/root"] = f["/"]
    f["soft"] = h5py.SoftLink("/g1/link 001")
    f["dangling"] = h5py.SoftLink("nowhere/at all")
    f["circle a"], f["circle b"] = h5py.SoftLink("circle b"), h5py.SoftLink("circle a")
    f["external"] = h5py.ExternalLink("other.h5", "/x")
    f["name with \u00e9 and spaces"] = h5py.SoftLink("/soft")
    f["x" * 3000] = h5py.SoftLink("long name")
    h5l.LinkProxy.create_soft(f.id.links, b"lone \xe9", b"bytes \xff")
    f["g8"].id.set_comment(b".", b"a comment")
    h5py.h5o.set_comment(f.id, b"caf\xe9\n\"\\" + b"x" * 300)
    deep = f
    for i in range(50):
        deep = deep.create_group("d")
    deep.attrs["depth"] = 50


def attributes(f):
    for n in (1, 8, 9, 300):
        g = f.create_group(f"a{n}")
        t = f.create_group(f"ordered {n}", track_order=True)
        for i in range(n):
            g.attrs[f"name {n - i:03d}"] = i
            t.attrs[f"name {n - i:03d}"] = np.arange(i % 5)
    f.attrs["null"] = h5py.Empty("f4")
    f.attrs.create("null text", h5py.Empty(h5py.string_dtype()))
    f.attrs["many dimensions"] = np.arange(24).reshape(2, 3, 4)
    f.attrs["no elements"] = np.zeros((0, 2))
    f.attrs["special"] = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-310, 1 / 3])
    f.attrs["extremes"] = np.array([0, 2**64 - 1], "u8")
    f.attrs["\u00e9 name"] = np.bytes_(b"bytes \xff\xfe")
    d = f.create_dataset("dataset", (3,))
    for i in range(20):
        d.attrs[f"a{i}"] = f"text {i}"
    del d.attrs["a3"]
    d.attrs["a4"] = "a longer text than it was " * 10


def huge_attributes(f):
    """Not in the earliest format, whose attributes have at most 64 KiB."""
    f.attrs["huge"] = np.arange(50000)
    f.create_dataset("d", (1,)).attrs["huge"] = np.zeros(10**6, "u1")


def shared(f):
    """The file shares messages: see OPTIONS."""
    for i in range(20):
        d = f.create_dataset(f"d{i}", (10,), "<i4", fillvalue=77, chunks=(3,), compression="gzip")
        d.attrs["a text that is shared"] = np.bytes_("long enough to be shared " * 4)
        d[...] = i


def unsupported(f):
    """What a domain cannot hold. Everything else in it can be imported."""
    f.create_dataset("fine", data=np.arange(4))
    region = f["fine"].regionref[1:3]
    f.create_dataset("regions", (1,), dtype=h5py.regionref_dtype)[0] = region
    pair = h5t.create(h5t.COMPOUND, 8)
    pair.insert(b"a", 0, h5t.STD_I32LE)
    pair.insert(b"b", 4, h5t.STD_I32LE)
    dataset(f, "vlen of compound", h5t.vlen_create(pair), (2,))
    f["fine"].attrs["with/slash"] = 1
    p = h5p.create(h5p.DATASET_CREATE)
    p.set_external(b"raw data", 0, 40)
    dataset(f, "external", h5t.STD_I32LE, (10,), None, p)
    virtual = h5py.VirtualLayout((4,), "i8")
    virtual[...] = h5py.VirtualSource(".", "fine", (4,))
    f.create_virtual_dataset("virtual", virtual)


def wide_file(f):
    """Many objects: symbol tables and indexes with several levels."""
    for i in range(2000):
        f.create_dataset(f"d{i:05d}", data=i)


def user_block(f):
    f["x"] = np.arange(100)
    f.create_dataset("y", data=np.arange(100), chunks=(7,), compression="gzip")
    f.attrs["a"] = "text"


def set_sizes(fcpl, size):
    fcpl.set_sizes(size, size)


def set_shared(fcpl):
    call("H5Pset_shared_mesg_nindexes", fcpl.id, ctypes.c_uint(2))
    call("H5Pset_shared_mesg_index", fcpl.id, ctypes.c_uint(0), ctypes.c_uint(0x1f),
         ctypes.c_uint(20))
    call("H5Pset_shared_mesg_index", fcpl.id, ctypes.c_uint(1), ctypes.c_uint(0x20),
         ctypes.c_uint(20))


# File -> (maker, preparation of the file's creation properties, formats)
ALL = tuple(BOUNDS)
FILES = {
    **{m.__name__: (m, None, ALL) for m in (types, variable_length, references, committed, layouts,
                                            filters, groups, attributes, wide_file)},
    "huge_attributes": (huge_attributes, None, ("v108", "v110", "latest")),
    "shared": (shared, set_shared, ("v108", "latest")),
    "user_block": (user_block, lambda p: p.set_userblock(1024), ("earliest", "latest")),
    "addresses_4": (user_block, lambda p: set_sizes(p, 4), ("earliest", "latest")),
    "addresses_2": (user_block, lambda p: set_sizes(p, 2), ("earliest",)),
    "pages": (user_block, lambda p: p.set_file_space_strategy(h5f.FSPACE_STRATEGY_PAGE, True, 1),
              ("latest",)),
    "unsupported": (unsupported, None, ("v110",)),
}


def make(path, name, bounds):
    maker, prepare, _ = FILES[name]
    fcpl, fapl = h5p.create(h5p.FILE_CREATE), h5p.create(h5p.FILE_ACCESS)
    fapl.set_libver_bounds(*BOUNDS[bounds])
    fapl.set_fclose_degree(h5f.CLOSE_STRONG)
    if prepare:
        prepare(fcpl)
    with h5py.File(h5f.create(os.fspath(path).encode(), h5f.ACC_TRUNC, fcpl, fapl)) as f:
        maker(f)


def names():
    return [(name, bounds) for name in FILES for bounds in FILES[name][2]]


CDL = """netcdf sample {
types:
  compound point { float x ; float y ; } ;
  byte enum colour { red = 0, green = 5 } ;
  int(*) list ;
  opaque(5) bytes ;
dimensions: time = UNLIMITED ; lat = 5 ; lon = 7 ; place = 3 ;
variables:
  double time(time) ; time:units = "days since 2000-01-01" ;
  float lat(lat) ; lat:units = "degrees_north" ;
  float lon(lon) ; lon:_FillValue = -1.f ;
  float t(time, lat, lon) ; t:_DeflateLevel = 4 ; t:_Shuffle = "true" ; t:_ChunkSizes = 1, 5, 7 ;
  short packed(time, lat) ; packed:scale_factor = 0.1 ; packed:_Fletcher32 = "true" ;
  string label(place) ; string label:names = "a", "", "\u00e9" ;
  point p(place) ; colour c(place) ; list l(place) ; bytes o(place) ;
  int64 scalar ; char text(place, lat) ; ubyte u(lon) ;
:Conventions = "CF-1.8" ; :numbers = 1, 2, 3 ;
data:
  time = 0, 1, 2 ; lat = -60, -30, 0, 30, 60 ; lon = 0, 50, 100, 150, 200, 250, 300 ;
  label = "one", "", "three" ; p = {1, 2}, {3, 4}, {5, 6} ; c = red, green, red ;
  l = {1}, {2, 3}, {4, 5, 6} ; o = 0X0102030405, 0X0000000000, 0XFF00FF00FF ; scalar = -9 ;
  text = "abcde", "f", "" ; u = 1, 2, 3, 4, 5, 6, 255 ; packed = 1, 2, 3, 4, 5 ;
group: inner { dimensions: k = 2 ; variables: int v(k) ; double w(time) ; :note = "x" ;
  data: v = 1, 2 ; }
}
"""


def make_netcdf(path):
    subprocess.run(["ncgen", "-k", "nc4", "-o", os.fspath(path)], input=CDL, text=True, check=True,
                   timeout=60)


# ---- what most programs write ----

MIXED_TYPES = ("<i1", "<i2", ">i4", "<i8", "<u1", ">u2", "<u4", "<u8", "<f4", "<f8", ">f8", "text",
               "S7", "S1", "bool", "enum", "compound", "vlen")
MIXED_WORDS = ("temperature", "a b", "caf\u00e9", "", "x" * 40, "units: m/s")


def mixed_dtype(name):
    special = {"text": h5py.string_dtype(), "enum": h5py.enum_dtype({"red": 0, "green": 5}, "<i2"),
               "compound": np.dtype([("n", "<i4"), ("x", "<f8"), ("name", "S5")]),
               "vlen": h5py.vlen_dtype(np.dtype("<i4"))}
    return special.get(name) or np.dtype(name)


def mixed_values(r, dtype, shape):
    n = int(np.prod(shape))
    words = [MIXED_WORDS[i] for i in r.integers(0, len(MIXED_WORDS), n)]
    if h5py.check_string_dtype(dtype):
        values = words if dtype.kind == "O" else [w.encode() for w in words]
    elif dtype.names:
        values = [(i, i / 7, w.encode()[:5]) for i, w in enumerate(words)]
    elif h5py.check_enum_dtype(dtype):
        values = r.choice([0, 5], n)
    else:
        values = r.normal(0, 1000, n) if dtype.kind == "f" else r.integers(0, 120, n)
    return np.array(values, dtype).reshape(shape)


def mixed_dataset(r, group, name, dtype):
    is_list = dtype.kind == "O" and not h5py.check_string_dtype(dtype)
    rank = 1 if is_list else int(r.integers(0, 4))
    shape = tuple(int(n) for n in r.integers(1, 9, rank))
    options = {}
    if rank and dtype.kind in "iuf" and r.integers(0, 2):
        options["fillvalue"] = mixed_values(r, dtype, ())
    if rank and r.integers(0, 3):
        options["chunks"] = tuple(int(r.integers(1, n + 1)) for n in shape)
        options["maxshape"] = tuple(None if r.integers(0, 2) else n for n in shape)
        if dtype.kind != "O":
            options["compression"] = "gzip" if r.integers(0, 2) else None
            options["shuffle"] = bool(r.integers(0, 2))
            options["fletcher32"] = bool(r.integers(0, 2))
        if r.integers(0, 6) == 0:
            shape = tuple(0 if n is None else n for n in options["maxshape"])
    d = group.create_dataset(name, shape, dtype, **options)
    written = int(r.integers(0, 4))    # 0: nothing, 1: one element
    if is_list:
        for i in range(d.size if written > 1 else min(d.size, written)):
            d[i] = r.integers(0, 1000, r.integers(0, 4)).astype("<i4")
    elif d.size and rank and written == 1:
        d[:1] = mixed_values(r, dtype, (1,) + shape[1:])
    elif d.size and written:
        d[...] = mixed_values(r, dtype, shape)
    return d


def mixed_attributes(r, o, types, rank_max):
    for i in range(int(r.choice([0, 1, 3, 8, 9, 20, 64, 65]))):
        dtype = mixed_dtype(r.choice(types))
        shape = tuple(int(n) for n in r.integers(1, 4, r.integers(0, rank_max + 1)))
        o.attrs.create(f"{MIXED_WORDS[i % 3]} {i}", mixed_values(r, dtype, shape), dtype=dtype)


def make_mixed(path, seed):
    """A small file with what most programs write. With an even seed, it has only types and
    attributes that netCDF reads. Some have a user block."""
    r = np.random.default_rng(seed)
    bounds = list(BOUNDS)[seed % len(BOUNDS)] if seed % 3 == 0 else "earliest"
    types = MIXED_TYPES if seed % 2 else MIXED_TYPES[:12]
    attributes = (MIXED_TYPES[:14], 2) if seed % 2 else (types, 1)
    block = {3: 512, 8: 8192}.get(seed % 10, 0)
    with h5py.File(path, "w", libver=bounds if bounds in ("earliest", "latest") else (bounds,) * 2,
                   track_order=bool(seed & 4), userblock_size=block) as f:
        groups = [f]
        for i in range(int(r.integers(1, 5))):
            groups.append(groups[int(r.integers(0, len(groups)))].create_group(f"group {i}"))
        for i in range(int(r.integers(1, 16))):
            group = groups[int(r.integers(0, len(groups)))]
            d = mixed_dataset(r, group, f"d{i}", mixed_dtype(r.choice(types)))
            if r.integers(0, 3) == 0:
                mixed_attributes(r, d, *attributes)
        mixed_attributes(r, groups[-1], *attributes)
        f["soft"], f["hard"] = h5py.SoftLink("/group 0"), groups[-1]
    with open(path, "r+b") as f:
        f.write(b"a block in front of the superblock\n"[:block] * (block // 40))


def main():
    directory = sys.argv[1]
    for name, bounds in names():
        make(os.path.join(directory, f"{name}-{bounds}.h5"), name, bounds)
    make_netcdf(os.path.join(directory, "sample.nc"))


if __name__ == "__main__":
    main()
