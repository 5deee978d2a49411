# SPDX-License-Identifier: Apache-2.0
"""Domains that the tests make, each for one part of the format, with contents that no service has
written. libhdf5 reads in their files, exported and mounted, what the oracle reads in the bucket."""
import base64
import shutil
import struct
import zlib

import h5py
import numpy as np
import pytest
from h5py import h5o

import compare
from mkbucket import (EPOCH, FLOAT64, GZIP, INT32, INT64, INT8, Maker, SHUFFLE, shape_of, vlen,
                      vstring)
from mounts import HSIMAGE, run
from oracle import Bucket, is_plain, parse_type

INT32BE = {"class": "H5T_INTEGER", "base": "H5T_STD_I32BE"}
REFERENCE = {"class": "H5T_REFERENCE", "base": "H5T_STD_REF_OBJ"}
FLETCHER = {"class": "H5Z_FILTER_FLETCHER32", "id": 3, "name": "fletcher32"}
PIPELINES = {"raw": [], "gzip": [GZIP], "shuffle": [SHUFFLE, GZIP],
             "all": [SHUFFLE, GZIP, FLETCHER]}


def string(length, pad="NULLPAD", cset="ASCII"):
    return {"class": "H5T_STRING", "charSet": f"H5T_CSET_{cset}", "strPad": f"H5T_STR_{pad}",
            "length": length}


def compound(**members):
    return {"class": "H5T_COMPOUND",
            "fields": [{"name": n, "type": t} for n, t in members.items()]}


def array(dims, base):
    return {"class": "H5T_ARRAY", "dims": dims, "base": base}


ENUM = {"class": "H5T_ENUM", "base": {"class": "H5T_INTEGER", "base": "H5T_STD_I16BE"},
        "mapping": {"RED": -1, "GREEN": 2, "BLUE": 300}}


def sized(*items):
    """Items of variable length as in a stored chunk."""
    return b"".join(struct.pack("<i", len(i)) + i for i in items)


def ref(obj):
    kind = {"g": "groups", "d": "datasets", "t": "datatypes"}[obj.id[0]]
    return f"{kind}/{obj.id}"


def ref_bytes(obj):
    return ref(obj).encode().ljust(48, b"\0") if obj else bytes(48)


def store(ds, index, plain, itemsize=1):
    """Stores a chunk as the service does: with the filters shuffle and deflate of the dataset."""
    classes = [f["class"] for f in ds.doc["creationProperties"].get("filters", [])]
    if "H5Z_FILTER_DEFLATE" in classes:
        if "H5Z_FILTER_SHUFFLE" in classes and itemsize > 1:
            plain = np.frombuffer(plain, "u1").reshape(-1, itemsize).T.tobytes()
        plain = zlib.compress(plain)
    ds.chunk(index, plain)


def contiguous(ds):
    """Records contiguous layout. The service stores chunks nevertheless."""
    ds.doc["creationProperties"]["layout"] = {"class": "H5D_CONTIGUOUS"}
    return ds


def many_keys(d):
    """Adds so many objects that the domain is not listed completely."""
    pad = d.dataset(d.root, "pad", INT8, [1100], [1])
    for i in range(1100):
        pad.chunk((i,), bytes([i % 127]))


# ---- fill values ----

def fills(d):
    """name -> type, fill value properties, chunk of four elements."""
    group = d.group(d.root, "target")
    both = compound(a=INT32, b=FLOAT64, c=string(3))
    mixed = compound(n=INT32, s=vstring("UTF8"), v=vlen(INT32BE))
    return {
        "int": (INT32, {"fillValue": -7}, struct.pack("<4i", 1, 2, 3, 4)),
        "int_be": (INT32BE, {"fillValue": 258}, struct.pack(">4i", 1, 2, 3, 4)),
        "int_text": (INT64, {"fillValue": str(2**62 + 1)}, struct.pack("<4q", 1, 2, 3, 4)),
        "float": (FLOAT64, {"fillValue": -0.0}, struct.pack("<4d", 1, 2, 3, 4)),
        "nan": (FLOAT64, {"fillValue": float("nan")}, struct.pack("<4d", 1, 2, 3, 4)),
        "infinity": (FLOAT64, {"fillValue": float("-inf")}, struct.pack("<4d", 1, 2, 3, 4)),
        "default": (FLOAT64, {}, struct.pack("<4d", 1, 2, 3, 4)),
        "never": (INT32, {"fillValue": 9, "fillTime": "H5D_FILL_TIME_NEVER"},
                  struct.pack("<4i", 1, 2, 3, 4)),
        "nullpad": (string(5), {"fillValue": "ab"}, b"onetwothreefourfive!"),
        "nullterm": (string(5, "NULLTERM", "UTF8"), {"fillValue": "ä"},
                     b"one\0\0two\0\0\xc3\xa4\0\0\0four\0"),
        "spacepad": (string(5, "SPACEPAD"), {"fillValue": "ab"}, b"one  two  3    four "),
        "enum": (ENUM, {"fillValue": 300}, struct.pack(">4h", -1, 2, 300, 2)),
        "compound": (both, {"fillValue": [5, 2.5, "xyz"]},
                     struct.pack("<id3s", 1, 2.5, b"abc") * 4),
        "compound_base64": (both, {"fillValue_encoding": "base64", "fillValue":
                                   base64.b64encode(struct.pack("<id3s", 7, -1.5, b"\xff\0z"))
                                   .decode()}, struct.pack("<id3s", 1, 2.5, b"abc") * 4),
        "array": (array([2, 2], INT32), {"fillValue": [[1, 2], [3, 4]]},
                  struct.pack("<16i", *range(16))),
        "opaque": ({"class": "H5T_OPAQUE", "size": 3, "tag": "t"},
                   {"fillValue_encoding": "base64",
                    "fillValue": base64.b64encode(b"\1\2\3").decode()}, b"abcdefghi\xff\0\1"),
        "reference": (REFERENCE, {"fillValue": ref(group)},
                      b"".join(map(ref_bytes, (d.root, None, group, d.root)))),
        "vstring_empty": (vstring(), {"fillValue": ""}, sized(b"one", b"", b"three", b"4")),
        "vstring": (vstring(), {"fillValue": "fill"}, sized(b"one", b"", b"three", b"4")),
        "vstring_default": (vstring("UTF8"), {}, sized(b"one", b"", b"three", b"4")),
        "vlen": (vlen(INT32), {"fillValue": [1, 2, 3]},
                 sized(bytes(8), b"", bytes(range(12)), bytes(4))),
        "mixed": (mixed, {"fillValue": [4, "x", [1, 2]]},
                  b"".join(struct.pack("<i", i) + sized(b"s" * i, bytes(4 * i))
                           for i in range(4))),
    }


def make_fills(d, pipeline):
    for name, (type_, properties, chunk) in fills(d).items():
        filters = PIPELINES[pipeline]
        for suffix, stored in (("", [1]), ("_none", []), ("_all", [0, 1, 2])):
            ds = d.dataset(d.root, name + suffix, type_, [10], [4], filters=filters, **properties)
            for i in stored:
                store(ds, (i,), chunk, len(chunk) // 4 if is_plain(parse_type(type_)) else 1)
        if not filters:
            for suffix, stored in (("_lin", [1]), ("_lin_none", []), ("_lin_all", [0, 1, 2])):
                ds = contiguous(d.dataset(d.root, name + suffix, type_, [10], [4], **properties))
                for i in stored:
                    store(ds, (i,), chunk)


# ---- shapes ----

SHAPES = [
    # dims, chunk: linear ones, linear ones with a partial last chunk, and others
    ([5, 4], [5, 4]), ([5, 4], [2, 4]), ([5, 4], [1, 4]), ([5, 4], [1, 2]), ([5, 4], [1, 3]),
    ([5, 4], [5, 2]), ([5, 4], [8, 4]), ([5, 4], [5, 8]), ([5, 4], [1, 1]), ([1, 4], [1, 3]),
    ([3, 1, 4], [1, 1, 3]), ([3, 1, 4], [2, 1, 4]), ([1, 1, 7], [1, 1, 2]), ([7], [3]),
    ([2, 3, 4], [1, 2, 4]), ([2, 4, 4], [1, 2, 4]), ([2, 3, 4], [1, 1, 4]), ([3, 5], [4, 7]),
    ([1] * 32, [1] * 32), ([1] * 30 + [3, 5], [1] * 30 + [2, 5]),
    ([2] * 10 + [1] * 22, [1] * 3 + [2] * 7 + [1] * 22),
]


def make_shapes(d, linear):
    for n, (dims, chunk) in enumerate(SHAPES):
        for kind, type_ in (("int", INT32), ("text", vstring())):
            for every in (1, 2):
                ds = d.dataset(d.root, f"{kind}{n}_{every}", type_, dims, chunk, fillTime="x")
                if linear:
                    contiguous(ds)
                put_every(ds, dims, chunk, kind, every)


def put_every(ds, dims, chunk, kind, every):
    count = int(np.prod(chunk))
    for i, index in enumerate(np.ndindex(*(-(-n // c) for n, c in zip(dims, chunk)))):
        if i % every:
            continue
        ds.chunk(index, sized(*(b"%d.%d" % (i, k) for k in range(count))) if kind == "text"
                 else np.arange(i * 100, i * 100 + count, dtype="<i4"))


def make_extents(d):
    """Empty, null, scalar and extendible dataspaces."""
    for name, dims, chunk, maxdims in (
            ("empty", [0], [10], None), ("empty_growing", [0], [10], [0]),
            ("empty_bounded", [0, 4], [3, 4], [8, 4]), ("empty_inner", [3, 0], [3, 2], [3, 0]),
            ("empty_fixed", [3, 0, 2], [3, 1, 2], None), ("growing", [5, 5], [2, 3], [0, 9]),
            ("chunk_zero", [0], [0], None)):
        for kind, type_ in (("int", INT32), ("text", vstring())):
            for pipeline in ("raw", "gzip"):
                ds = d.dataset(d.root, f"{name}_{kind}_{pipeline}", type_, dims, chunk, maxdims,
                               filters=PIPELINES[pipeline])
                if name == "growing" and pipeline == "raw":
                    put_every(ds, dims, chunk, kind, 2)
    for kind, type_ in (("int", INT32), ("text", vstring()), ("ref", REFERENCE),
                        ("mixed", compound(n=INT32, s=vstring())), ("enum", ENUM)):
        d.dataset(d.root, f"null_{kind}", type_, None)
        d.dataset(d.root, f"scalar_none_{kind}", type_, [])
        d.root.attribute(f"null_{kind}", type_, None, None)
        d.root.attribute(f"empty_{kind}", type_, [0], [])
        d.root.attribute(f"empty2_{kind}", type_, [3, 0], [])
        d.root.attribute(f"unset_{kind}", type_, [2], None)
    for kind, type_, data in (
            ("int", INT32, b"\1\2\3\4"), ("text", vstring(), sized(b"hello")),
            ("long", vstring(), sized(b"x" * 200_000)), ("ref", REFERENCE, ref_bytes(d.root)),
            ("mixed", compound(n=INT32, s=vstring()), b"\1\0\0\0" + sized(b"abc")),
            ("string", string(5), b"ab\0cd")):
        d.dataset(d.root, f"scalar_{kind}", type_, []).chunk((0,), data)


# ---- types ----

def make_long(d):
    """Datatypes and values near 64 KiB, the maximum size of an object header message."""
    for members in (1300, 2000, 3000):
        d.dataset(d.root, f"compound{members}", compound(**{f"m{i}": INT8 for i in range(members)}),
                  [2]).chunk((0,), bytes(i % 251 for i in range(2 * members)))
        d.root.attribute(f"compound{members}", compound(**{f"m{i}": INT32 for i in range(members)}),
                         [1], [list(range(members))])
    for length in (65000, 65527, 65528, 70000):
        for stored in ([], [1]):
            ds = d.dataset(d.root, f"string{length}_{len(stored)}", string(length), [3], [1],
                           fillValue="fill")
            for i in stored:
                ds.chunk((i,), b"x" * length)


def make_types(d):
    group = d.group(d.root, "group")
    named = d.datatype(d.root, "named", compound(a=INT32, b=string(4)))
    refs = [d.root, group, None, named]
    chunk = b"".join(map(ref_bytes, refs))
    d.dataset(d.root, "references", REFERENCE, [4], [4]).chunk((0,), chunk)
    d.dataset(d.root, "references_2", REFERENCE, [6], [4]).chunk((0,), chunk)
    d.dataset(d.root, "vlen_refs", vlen(REFERENCE), [3], [3]).chunk(
        (0,), sized(ref_bytes(group) + ref_bytes(d.root), b"", ref_bytes(named)))
    d.dataset(d.root, "ref_compound", compound(r=REFERENCE, n=INT8), [2], [2]).chunk(
        (0,), ref_bytes(named) + b"\1" + ref_bytes(None) + b"\2")
    d.dataset(d.root, "ref_text", compound(r=REFERENCE, s=vstring(), n=INT8), [2], [2]).chunk(
        (0,), ref_bytes(named) + sized(b"one") + b"\1" + ref_bytes(d.root) + sized(b"") + b"\2")
    d.dataset(d.root, "array_refs", array([2], REFERENCE), [2], [2]).chunk((0,), chunk)
    d.dataset(d.root, "array_vlen", array([2], vlen(INT32)), [2], [2]).chunk(
        (0,), sized(bytes(4), b"", bytes(range(8)), bytes(12)) + bytes(8))
    d.dataset(d.root, "array_text", array([2, 2], vstring()), [1], [1]).chunk(
        (0,), sized(b"a", b"", b"ccc", b"d" * 5000) + bytes(4))
    d.dataset(d.root, "vlen_compound", vlen(compound(a=INT8, b=FLOAT64)), [2], [2]).chunk(
        (0,), sized(struct.pack("<bdbd", 1, 2, 3, 4), b""))
    d.dataset(d.root, "vlen_enum", vlen(ENUM), [2], [2]).chunk((0,), sized(b"\0\2\1\x2c", b""))
    nested = compound(a=compound(x=array([2], INT8), y=string(3)), b=array([2], compound(z=ENUM)))
    d.dataset(d.root, "nested", nested, [2], [2]).chunk((0,), b"\1\2abc\0\2\0\2" * 2)
    d.root.attribute("references", REFERENCE, [4], [ref(r) if r else "" for r in refs])
    d.root.attribute("vlen_refs", vlen(REFERENCE), [2], [[ref(group), ref(d.root)], []])
    d.root.attribute("ref_list", compound(ds=REFERENCE, i=INT32), [1], [[ref(group), 3]])
    d.root.attribute("mixed", compound(s=vstring(), v=vlen(ENUM), r=REFERENCE), [2],
                     [["ä", [2, 300], ref(named)], ["", [], ""]])
    d.root.attribute("array_text", array([2], vstring()), [2], [["a", "b"], ["", "d"]])
    d.dataset(d.root, "enum3000",
              {**ENUM, "mapping": {f"member {i}": i for i in range(3000)}}, [2])


def make_committed(d):
    inner = compound(a=INT32, b=string(4))
    first = d.datatype(d.root, "first", inner)
    d.root.link("first again", first)
    text = d.datatype(d.root, "text", vstring("UTF8"))
    hidden = d.datatype(None, None, ENUM)
    for t in (first, text, hidden):
        t.attribute("plain", INT32, [], 5)
    for name, t in (("int", INT32), ("string", string(3)), ("double", FLOAT64)):
        d.datatype(d.root, name, t)
    first.attribute("own", first.doc["type"], [], [1, "ab"])
    for i in range(9):
        text.attribute(f"a{i}", text.doc["type"], [2], [f"x{i}", ""])
    for i, t in enumerate((first, text, hidden)):
        d.dataset(d.root, f"user{i}", t.doc["type"], [3], [2])
    d.root.attribute("by_hidden", hidden.doc["type"], [2], [2, 300])
    d.root.attribute("by_first", first.doc["type"], [], [3, "abcd"])


# ---- attributes ----

def attributes(obj, count):
    for i in range(count):
        obj.attribute(f"attribute {i}", INT32, [], i)


def make_attributes(d):
    for ordered in (None, 1, 2, 3):
        for count in (0, 1, 7, 8, 9, 100):
            group = d.group(d.root, f"g{count}_{ordered}")
            if ordered:
                group.doc["creationProperties"] = {
                    "attributeCreationOrder": {1: "H5P_CRT_ORDER_TRACKED", 2: [
                        "H5P_CRT_ORDER_TRACKED", "H5P_CRT_ORDER_INDEXED"], 3: 3}[ordered]}
            attributes(group, count)
    for size in (65000, 65460, 65470, 65480, 65490, 65500, 65510, 65520, 65536, 70000, 3_000_000):
        group = d.group(d.root, f"size{size}")
        group.attribute("small", INT32, [], 1)
        group.attribute("huge", string(size), [], "h" * size)
        group.attribute("text", vstring(), [], "v" * size)
        group.attribute("numbers", INT8, [size], [i % 100 for i in range(min(size, 70000))]
                        if size <= 70000 else None)
    names = d.group(d.root, "names")
    for name in ("a", "ä", "with space", "n" * 255, "n" * 256, "n" * 4000, "n" * 60000, ".", "x/y"):
        names.attribute(name, INT32, [], len(name))


# ---- links ----

def make_links(d):
    leaf = d.dataset(d.root, "leaf", INT32, [2])
    for count in (1, 63, 64, 65, 200, 1000):
        group = d.group(d.root, f"links{count}")
        for i in range(count):
            # the order of creation is not that of names
            group.link(f"l{i * 7919 % 1009}", leaf)
    names = d.group(d.root, "names")
    for n in (1, 2, 255, 256, 4000, 4096, 30000):
        names.link("n" * n, leaf)
    for name in ("ä", "日本語", "with space", " ", "..", "...", "tab\t", "new\nline", "a\\b"):
        names.link(name, leaf)
    long = d.group(d.root, "long")
    for n in (61000, 65000):
        long.link("n" * n, leaf)
    soft = d.group(d.root, "soft")
    for i, path in enumerate(("/leaf", "../leaf", ".", "/", "nowhere", "//leaf/", "a" * 3000,
                              "s" * 64000, "ä/ö")):
        soft.soft(f"soft{i}", path)
    outside = d.group(d.root, "outside")
    for i, (path, domain) in enumerate((
            ("/x", "other.h5"), ("x", "/home/other.h5"), ("/", "hdf5://home/other.h5"),
            ("/x", "../../../../etc/passwd"), ("p" * 3000, "f" * 3000))):
        outside.external(f"external{i}", path, domain)
    ties = d.group(d.root, "ties")
    for name in ("b", "a", "Z", "ä", "aa"):
        ties.link(name, leaf)
        ties.doc["links"][name]["created"] = EPOCH
    cycle = d.group(d.root, "cycle")
    cycle.link("self", cycle)
    cycle.link("root", d.root)


DOMAINS = {
    "shapes": lambda d: make_shapes(d, False), "linear_shapes": lambda d: make_shapes(d, True),
    "extents": make_extents, "long": make_long, "types": make_types, "committed": make_committed,
    "attributes": make_attributes, "links": make_links,
    **{f"fills_{p}": lambda d, p=p: make_fills(d, p) for p in PIPELINES},
}
UNLISTED = ("shapes", "linear_shapes", "extents", "fills_raw", "fills_gzip")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("synthetic")
    with Maker(root) as bucket:
        for name, make in DOMAINS.items():
            make(bucket.domain(f"{name}.h5"))
        for name in UNLISTED:
            d = bucket.domain(f"{name}_unlisted.h5")
            DOMAINS[name](d)
            many_keys(d)
    return Bucket(root)


EVERY = list(DOMAINS) + [f"{n}_unlisted" for n in UNLISTED]


@pytest.fixture(scope="module")
def exported(made, tmp_path_factory):
    directory = tmp_path_factory.mktemp("exported")
    return {name: export(made, f"{name}.h5", directory / f"{name}.h5") for name in EVERY}


def export(bucket, path, to):
    run(HSIMAGE, "export", "--force", f"{bucket.root}/{path}", to, check=True)
    return to


@pytest.mark.parametrize("name", EVERY)
def test_exported_file(made, exported, name):
    assert compare.differences(made, f"{name}.h5", exported[name]) == []


def test_mounted_files(made, mount):
    mounted = mount(made.root)
    for name in EVERY:
        assert compare.differences(made, f"{name}.h5", mounted.file(f"{name}.h5")) == [], name


@pytest.mark.parametrize("name", EVERY)
def test_tools_read_it(exported, tmp_path, name):
    copy = writable(exported[name], tmp_path)
    with h5py.File(copy, "r+") as f:        # h5dump divides by zero if chunks have 32 dimensions
        for at, o in list(f.items()):
            if isinstance(o, h5py.Dataset) and len(o.shape or ()) > 31:
                del f[at]
    for command in (["h5dump"], ["h5ls", "-r"], ["h5stat"]):
        done = run(*command, copy)
        assert done.returncode == 0, f"{command}: {done.stderr}"


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_fill_values_survive_h5repack(exported, tmp_path, pipeline):
    run("h5repack", exported[f"fills_{pipeline}"], tmp_path / "repacked.h5", check=True)


def test_references_to_unreachable_objects_are_null(tmp_path):
    with Maker(tmp_path / "bucket") as bucket:
        d = bucket.domain("orphan.h5")
        orphan = d.dataset(None, None, INT32, [1])
        d.root.attribute("reference", REFERENCE, [], ref(orphan))
    with h5py.File(export(Bucket(tmp_path / "bucket"), "orphan.h5", tmp_path / "x.h5"), "r") as f:
        assert not f.attrs["reference"]


def test_a_type_too_long_for_a_file_is_left_out(tmp_path):
    long = {**ENUM, "base": INT32, "mapping": {f"member {i}": i for i in range(9000)}}
    with Maker(tmp_path / "bucket") as bucket:
        d = bucket.domain("long.h5")
        d.dataset(d.root, "long", long, [2])
        d.dataset(d.root, "other", INT32, [2])
        d.root.attribute("long", long, [], 1)
        d.root.attribute("other", INT32, [], 1)
        d.root.external("far", "x", "f" * 5000)
    with h5py.File(export(Bucket(tmp_path / "bucket"), "long.h5", tmp_path / "x.h5"), "r") as f:
        assert sorted(f) == ["far", "other"]
        assert list(f.attrs) == ["other"]
        assert f.get("far", getlink=True).filename == "."


# ---- a writer on a copy ----

def writable(path, tmp_path):
    return shutil.copy(path, tmp_path / "copy.h5")


def names_by_creation(group):
    found = []
    group.id.links.iterate(found.append, idx_type=h5py.h5.INDEX_CRT_ORDER)
    return [n.decode() for n in found]


def test_everything_can_be_deleted(exported, tmp_path):
    """libhdf5 can delete everything: reference counts, heaps and B-trees are consistent."""
    for name in EVERY:
        copy = writable(exported[name], tmp_path)
        with h5py.File(copy, "r+") as f:
            for attribute in list(f.attrs):
                del f.attrs[attribute]
            for link in list(f):
                del f[link]
            f["new"] = np.arange(1000)
        with h5py.File(copy, "r") as f:
            assert list(f) == ["new"] and f["new"][999] == 999 and not f.attrs, name
        assert run("h5dump", copy).returncode == 0, name


def test_attributes_can_be_added_and_deleted(exported, tmp_path):
    copy, expected = writable(exported["attributes"], tmp_path), {}
    with h5py.File(copy, "r+") as f:
        for name, group in f.items():
            for i in range(10):
                group.attrs[f"new {i}"] = "x" * i
            group.attrs["large"] = np.arange(20000)
            for attribute in list(group.attrs)[:-4]:
                del group.attrs[attribute]
            group.attrs["last"] = 2.5
            expected[name] = sorted(group.attrs)
    with h5py.File(copy, "r") as f:
        for name, group in f.items():
            assert sorted(group.attrs) == expected[name]
            assert group.attrs["last"] == 2.5


def test_committed_types_take_attributes(exported, tmp_path):
    """The header of a short type has one small message; libhdf5 needs room for a continuation."""
    copy = writable(exported["committed"], tmp_path)
    with h5py.File(copy, "r+") as f:
        types = [name for name, o in f.items() if isinstance(o, h5py.Datatype)]
        assert {"first", "text", "int", "string", "double"} <= set(types)
        before = {name: f[name].dtype for name in types}
        for name in types:
            f[name].attrs["new"] = np.arange(10)
    with h5py.File(copy, "r") as f:
        for name in types:
            assert f[name].dtype == before[name]
            assert list(f[name].attrs["new"]) == list(range(10)), name


def test_links_can_be_added_and_deleted(exported, tmp_path):
    copy, expected = writable(exported["links"], tmp_path), {}
    groups = [f"links{n}" for n in (1, 63, 64, 65, 200, 1000)]
    with h5py.File(copy, "r+") as f:
        for name in groups:
            group = f[name]
            names = names_by_creation(group)
            for n in names[::2]:
                del group[n]
            for n in ("a", "b", "c"):
                group[n] = f["leaf"]
            group.move("b", "moved")
            for n in names[1::2][3:]:
                del group[n]
            group["soft"] = h5py.SoftLink("/leaf")
            expected[name] = names[1::2][:3] + ["a", "c", "moved", "soft"]
        kept = sum(len(f[n]) - 1 for n in groups)
        for name in set(f) - set(groups) - {"leaf"}:
            del f[name]
        assert h5o.get_info(f["leaf"].id).rc == kept + 1
    with h5py.File(copy, "r") as f:
        for name in groups:
            assert names_by_creation(f[name]) == expected[name]


def test_replacing_one_fill_value_leaves_the_others(exported, tmp_path):
    for pipeline in PIPELINES:
        copy = writable(exported[f"fills_{pipeline}"], tmp_path)
        names = ["vstring", "vstring_all"] + (["vstring_lin"] if pipeline == "raw" else [])
        with h5py.File(copy, "r+") as f:
            expected = {n: list(f[n][...]) for n in names}
            for n in names:
                f[n][0] = "a longer one"
                expected[n][0] = b"a longer one"
        with h5py.File(copy, "r") as f:
            assert {n: list(f[n][...]) for n in names} == expected, pipeline


def test_datasets_grow(exported, tmp_path):
    copy = writable(exported["extents"], tmp_path)
    with h5py.File(copy, "r+") as f:
        growing = [n for n, o in f.items() if isinstance(o, h5py.Dataset) and o.maxshape != o.shape]
        assert len(growing) > 10
        before = {n: f[n][...] for n in growing}
        for n in growing:
            f[n].resize([s + 3 if m is None else m for s, m in zip(f[n].shape, f[n].maxshape)])
            f[n][(-1,) * f[n].ndim] = "text" if n.endswith(("text_raw", "text_gzip")) else 7
    with h5py.File(copy, "r") as f:
        for n in growing:
            old = tuple(slice(0, s) for s in before[n].shape)
            assert (f[n][old] == before[n]).all()
            assert f[n][(-1,) * f[n].ndim] in (b"text", 7)
