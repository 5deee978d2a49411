# SPDX-License-Identifier: Apache-2.0
"""Empty strings of variable length, and strings without a value. libhdf5 gives a program a pointer
to "" for the first and a null pointer for the second. A program that calls strlen() on a null
pointer crashes."""
import shutil
import struct

import h5py
import numpy as np
import pytest

import compare
from mkbucket import INT32, Maker, vlen, vstring
from mounts import HSIMAGE, run
from oracle import Bucket

MANY = 200_000      # a heap collection has at most 65,535 objects


def sized(*items):
    return b"".join(struct.pack("<i", len(i)) + i for i in items)


def compound(**members):
    return {"class": "H5T_COMPOUND",
            "fields": [{"name": n, "type": t} for n, t in members.items()]}


def array(dims, base):
    return {"class": "H5T_ARRAY", "dims": dims, "base": base}


def make(bucket):
    d = bucket.domain("strings.h5")
    string, row = vstring("UTF8"), compound(n=INT32, s=vstring("UTF8"))
    d.dataset(d.root, "mixed", string, [6], [3]).chunk((0,), sized(b"", b"x", b""))
    d.dataset(d.root, "scalar", string, []).chunk((0,), sized(b""))
    d.dataset(d.root, "rows", row, [3], [3]).chunk(
        (0,), b"".join(struct.pack("<i", i) + sized(b"s" * (i % 2)) for i in range(3)))
    d.dataset(d.root, "arrays", array([3], string), [2], [2]).chunk(
        (0,), sized(b"", b"a", b"", b"", b"", b"") + bytes(8))
    d.dataset(d.root, "sequences", vlen(INT32), [3], [3]).chunk((0,), sized(b"", bytes(4), b""))
    for name, fill in (("", ""), ("_null", None), ("_row", [7, ""])):
        for stored in (0, 1):
            ds = d.dataset(d.root, f"fill{name}{stored}", row if name == "_row" else string, [6],
                           [2], fillValue=fill)
            if stored:
                ds.chunk((1,), sized(b"", b"x") if name != "_row" else
                         struct.pack("<i", 1) + sized(b"") + struct.pack("<i", 2) + sized(b"x"))
    d.root.attribute("list", string, [4], ["", "x", None, ""])
    d.root.attribute("empty", string, [], "")
    d.root.attribute("null", string, [2], None)
    d.root.attribute("row", row, [2], [[1, ""], [2, None]])
    d.root.attribute("base64", string, [2], "AAAAAAEAAABh", encoding="base64")
    d.root.attribute("sequences", vlen(INT32), [2], [[], [1]])


@pytest.fixture(scope="module")
def bucket(tmp_path_factory):
    root = tmp_path_factory.mktemp("strings")
    with Maker(root) as made:
        make(made)
        d = made.domain("many.h5")
        d.dataset(d.root, "strings", vstring(), [MANY], [MANY]).chunk((0,), bytes(4 * MANY))
        d = made.domain("none.h5")
        d.dataset(d.root, "strings", vlen(INT32), [MANY], [MANY]).chunk((0,), bytes(4 * MANY))
    return Bucket(root)


@pytest.fixture(scope="module")
def exported(bucket, tmp_path_factory):
    directory = tmp_path_factory.mktemp("exported")
    for name in ("strings", "many", "none"):
        run(HSIMAGE, "export", f"{bucket.root}/{name}.h5", directory / f"{name}.h5", check=True)
    return directory


def elements(path, name):
    """(count, address of the collection, index) of each element of a dataset of one chunk."""
    with h5py.File(path, "r") as f:
        at, size = f[name].id.get_chunk_info(0).byte_offset, 16 * f[name].size
    with open(path, "rb") as f:
        f.seek(at)
        return list(struct.iter_unpack("<IQI", f.read(size)))


def test_empty_is_told_from_null(bucket, exported, mount):
    """The comparison in these tests distinguishes null pointers."""
    assert compare.differences(bucket, "strings.h5", exported / "strings.h5") == []
    assert compare.differences(bucket, "strings.h5", mount(bucket.root).file("strings.h5")) == []


def test_h5dump_tells_them_apart(exported):
    def values(*what):
        out = run("h5dump", "-y", *what, exported / "strings.h5", check=True).stdout
        return out.split("DATA {")[1].split("}")[0].replace(",", "").split()
    assert values("-d", "/mixed") == ['""', '"x"', '""', "NULL", "NULL", "NULL"]
    assert values("-a", "/list") == ['""', '"x"', "NULL", '""']
    assert values("-a", "/empty") == ['""']
    assert values("-a", "/null") == ["NULL", "NULL"]


def test_ncdump_shows_no_nil(tmp_path):
    with Maker(tmp_path / "bucket") as made:
        d = made.domain("strings.h5")
        d.dataset(d.root, "s", vstring("UTF8"), [3], [3]).chunk((0,), sized(b"", b"x", b""))
        d.root.attribute("a", vstring("UTF8"), [2], ["", "y"])
    run(HSIMAGE, "export", tmp_path / "bucket/strings.h5", tmp_path / "x.nc", check=True)
    out = run("ncdump", tmp_path / "x.nc", check=True).stdout
    assert "NIL" not in out
    assert 's = _, "x", _ ;' in out         # the fill value of netCDF's strings is ""
    assert 'string :a = "", "y" ;' in out


def test_no_two_elements_share_an_object(exported):
    found = elements(exported / "many.h5", "strings")
    assert {count for count, _, _ in found} == {0}
    assert all(address and 1 <= index <= 65535 for _, address, index in found)
    assert len(set(found)) == MANY


def test_empty_sequences_are_null_references(exported):
    assert set(elements(exported / "none.h5", "strings")) == {(0, 0, 0)}


def test_what_an_empty_string_takes(exported):
    """An empty string takes 16 bytes in the heap and 16 bytes in the dataset; each collection has
    a header."""
    grown = (exported / "many.h5").stat().st_size - (exported / "none.h5").stat().st_size
    assert 16 * MANY <= grown <= 16.1 * MANY


def test_a_writer_replaces_them_one_by_one(exported, tmp_path):
    copy = shutil.copy(exported / "many.h5", tmp_path / "copy.h5")
    with h5py.File(copy, "r+") as f:
        for i in range(0, MANY, 20011):
            f["strings"][i] = f"text {i}"
        f["strings"][1] = ""
    with h5py.File(copy, "r") as f:
        expected = np.full(MANY, b"", object)
        for i in range(0, MANY, 20011):
            expected[i] = b"text %d" % i
        assert (f["strings"][...] == expected).all()
    assert run("h5repack", copy, tmp_path / "packed.h5").returncode == 0
