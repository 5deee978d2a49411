# SPDX-License-Identifier: Apache-2.0
"""Names and text of HDF5 files that JSON and the service have no form for are kept with all their
bytes, whichever way a file takes into a bucket and out of it: import, link, export, a mount, copies
into a mount, and programs that change a domain in place. libhdf5 (h5py, h5dump) is the judge."""
import json
import os
import shutil
import sys

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t

import filediff
import h5raw
import hsds_validator
import rwmounts
from mounts import HSIMAGE, Mount, run

DOMAIN = "home/x.h5"


def import_file(bucket, source, *options, check=True):
    return run(HSIMAGE, "-b", bucket, "import", *options, source, DOMAIN, check=check)


def export(bucket, target, domain=DOMAIN):
    run(HSIMAGE, "-b", bucket, "export", "--force", domain, target, check=True)
    return target


def documents(bucket, storage="db"):
    return [json.loads(p.read_text()) for p in (bucket / storage).rglob(".*.json")
            if p.name in (".group.json", ".dataset.json", ".datatype.json")]


def assert_sound(bucket, domain=DOMAIN):
    run(HSIMAGE, "-b", bucket, "check", "--all", domain, check=True)
    assert hsds_validator.check_domain(os.fspath(bucket), domain, strict=True) == []


def headers(path):
    """What h5dump prints of a file, without the name of the file."""
    return run("h5dump", "-p", path, check=True).stdout.split("\n", 1)[1]


# ---- names in types ----

def latin_types():
    opaque = h5t.create(h5t.OPAQUE, 3)
    opaque.set_tag(b"caf\xe9")
    enum = h5t.enum_create(h5t.STD_I8LE)
    for name, value in ((b"gr\xfcn", 1), (b"member_0", 2), (b"\xed\xb3\xbc", -1)):
        enum.enum_insert(name, value)
    compound = h5t.create(h5t.COMPOUND, 16)
    compound.insert(b"id", 0, h5t.STD_I32LE)
    compound.insert(b"T (\xb0C)", 4, h5t.IEEE_F64LE)
    compound.insert(b"farbe", 12, enum)
    compound.insert(b"gr\xf6\xdfe", 13, opaque)
    nested = h5t.create(h5t.COMPOUND, 40)
    nested.insert(b"\xff\xfe", 0, compound)
    nested.insert(b"\xc3\xa9", 16, h5t.array_create(enum, (3,)))
    nested.insert(b"\xe9", 24, h5t.vlen_create(enum))
    return {"opaque": opaque, "enum": enum, "compound": compound, "nested": nested}


def write_latin(path, more=()):
    with h5py.File(path, "w") as f:
        add_latin(f, more)
        f["plain"] = np.arange(5)


def add_latin(f, more=()):
    for name, tid in latin_types().items():
        plist = h5p.create(h5p.DATASET_CREATE)
        plist.set_chunk((2,))
        data = np.random.default_rng(1).integers(0, 256, 3 * tid.get_size(), "u1")
        did = h5d.create(f.id, name.encode(), tid, h5s.create_simple((3,)), plist)
        attr = h5py.h5a.create(did, b"a", tid, h5s.create_simple((3,)))
        if name != "nested":
            did.write(h5s.ALL, h5s.ALL, data, tid)
            attr.write(data, tid)
        tid.copy().commit(f.id, f"t {name}".encode(), lcpl=h5p.create(h5p.LINK_CREATE))
    for name in more:
        f[name] = 1


def assert_latin(path):
    with h5py.File(path, "r") as f:
        for name, tid in latin_types().items():
            for where in (name, f"t {name}"):
                found = h5py.h5o.open(f.id, where.encode())
                found = found if isinstance(found, h5t.TypeID) else found.get_type()
                assert found.equal(tid)
            assert h5py.h5a.open(f[name].id, b"a").get_type().equal(tid)
        compound = f["compound"].id.get_type()
        assert [compound.get_member_name(i) for i in range(4)] == [b"id", b"T (\xb0C)", b"farbe",
                                                                   b"gr\xf6\xdfe"]
        assert f["enum"].id.get_type().get_member_name(0) == b"gr\xfcn"
        assert f["opaque"].id.get_type().get_tag() == b"caf\xe9"


def assert_same(source, path):
    assert_latin(path)
    assert filediff.differences(source, path) == []
    assert run("h5dump", path).stdout.split("\n", 1)[1] == \
        run("h5dump", source).stdout.split("\n", 1)[1]


def test_names_in_types_are_imported(tmp_path, bucket):
    source = tmp_path / "source.h5"
    write_latin(source)
    run(HSIMAGE, "check", "--all", source, check=True)
    assert import_file(bucket, source).stderr == \
        "hsimage: clients of HSDS cannot read the values of 3 attributes, which JSON cannot " \
        "hold, such as a of /compound; a mount shows them\n"
    assert_sound(bucket)
    assert_same(source, export(bucket, tmp_path / "out.h5"))
    with Mount(bucket, tmp_path) as mount:
        assert_same(source, mount.file(DOMAIN))
    # The service sees ASCII text only.
    found = {json.dumps(d["type"]["mapping"]) for d in documents(bucket) if "mapping" in
             d.get("type", {})}
    assert found == {'{"member_0_1": 1, "member_0": 2, "member_2": -1}'}


def test_names_in_types_are_linked(tmp_path, bucket):
    source = tmp_path / "source.h5"
    write_latin(source)
    (bucket / "raw").mkdir()
    shutil.copy(source, bucket / "raw/x.h5")
    run(HSIMAGE, "-b", bucket, "link", "raw/x.h5", DOMAIN, check=True)
    run(HSIMAGE, "-b", bucket, "check", "--all", DOMAIN, check=True)
    assert_same(source, export(bucket, tmp_path / "out.h5"))


def test_names_in_types_are_copied_and_changed(tmp_path, bucket):
    """A copy into a mount, and a session that adds objects of such types and writes to one."""
    source = tmp_path / "source.h5"
    write_latin(source)
    with rwmounts.RwMount(bucket, tmp_path) as mount:
        shutil.copy(source, mount.file(DOMAIN))
        mount.released()
        assert rwmounts.is_domain(mount.file(DOMAIN))
        with h5py.File(mount.file("home/new.h5"), "w") as f:
            f["first"] = 1
        mount.released()
        for path, change in ((DOMAIN, ()), ("home/new.h5", ("more",))):
            with h5py.File(mount.file(path), "r+") as f:
                if change:
                    add_latin(f, change)
                else:
                    tid = f["enum"].id.get_type()
                    f["enum"].id.write(h5s.ALL, h5s.ALL, np.array([1, 2, -1], "i1"), tid)
                    h5py.h5a.delete(f["enum"].id, b"a")
                    h5py.h5a.create(f["enum"].id, b"a", tid, h5s.create_simple((3,)))
                    f["plain"][2] = 7
            mount.released()
            assert mount.left() == 0
            assert rwmounts.attribute(mount.file(path), "user.hsds.kept") is None
            assert_latin(mount.file(path))
    for path in (DOMAIN, "home/new.h5"):
        assert_sound(bucket, path)
        with Mount(bucket, tmp_path) as mount:
            assert_latin(mount.file(path))
    with h5py.File(export(bucket, tmp_path / "out.h5")) as f:
        assert f["plain"][2] == 7
        assert f["enum"].id.get_type().equal(latin_types()["enum"])


# ---- the order of links ----

NAMES = ["b", "a", "Z", "caf\u00e9", "0", "aa", "ab-", "a b", "\u00fc"]


def write_untracked(path, libver):
    """Groups that do not track the order: few links and many, in the header and in dense storage
    ("latest"), or in symbol tables ("earliest"). In any form, libhdf5 lists them by name."""
    with h5py.File(path, "w", libver=libver) as f:
        for name in NAMES:
            f[name] = 1
        many = f.create_group("many")
        for i in np.random.default_rng(1).permutation(40):
            many[f"n{i}"] = h5py.SoftLink("/a")
        raw = many.create_group("raw")
        for name in b"\xe9", b"e", b"\x80", b"\xc3\xa9":
            raw.id.links.create_soft(name, b"/a")


def names(path):
    found = {}
    with h5py.File(path, "r") as f:
        for where in "/", "many", "many/raw":
            found[where] = list(f[where].id)
    return found


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_links_without_an_order(tmp_path, bucket, libver):
    """The rendered groups track the order, so that h5py lists them by it."""
    source = tmp_path / "source.h5"
    write_untracked(source, libver)
    expected = names(source)
    assert expected["/"] == sorted(n.encode() for n in [*NAMES, "many"])
    import_file(bucket, source)
    assert_sound(bucket)
    assert names(export(bucket, tmp_path / "out.h5")) == expected
    with rwmounts.RwMount(bucket, tmp_path) as mount:
        assert names(mount.file(DOMAIN)) == expected
        shutil.copy(source, mount.file("home/copy.h5"))
        mount.released()
        assert names(mount.file("home/copy.h5")) == expected
        with h5py.File(mount.file(DOMAIN), "r+") as f:
            plist = f["many"].id.get_create_plist()
            assert plist.get_link_creation_order() & h5p.CRT_ORDER_TRACKED
            f["5"] = 1
            f["1"] = 1
            f["many/0"] = h5py.SoftLink("/a")
            new = f.create_group("new")         # without tracking, as in the source
            for name in "d", "c":
                new[name] = 1
            f.flush()
            new["b"] = 1
        mount.released()
    expected["/"] += [b"5", b"1", b"new"]
    expected["many"].append(b"0")
    with rwmounts.RwMount(bucket, tmp_path) as mount:
        assert names(mount.file(DOMAIN)) == expected
        with h5py.File(mount.file(DOMAIN), "r+") as f:
            f["new/a"] = 1
        mount.released()
    with Mount(bucket, tmp_path) as mount, h5py.File(mount.file(DOMAIN), "r") as f:
        assert list(f["new"].id)[-1] == b"a"
        assert sorted(f["new"].id) == [b"a", b"b", b"c", b"d"]
    assert_sound(bucket)


def write_untracked_netcdf(path, title):
    """As programs without libnetcdf write it."""
    with h5py.File(path, "w") as f:
        f.create_dataset("x", data=np.arange(4.)).make_scale("x")
        for name in "v", "u":
            f.create_dataset(name, data=np.arange(4)).dims[0].attach_scale(f["x"])
            f[name].attrs["units"] = np.bytes_("m")
        f.attrs["title"] = np.bytes_(title)


def test_netcdf_writes_to_files_without_an_order(tmp_path, bucket):
    """libnetcdf opens a file for writing only if its groups track the order of creation, so these
    programs fail on a disk."""
    source, side = tmp_path / "source.h5", tmp_path / "side.nc"
    write_untracked_netcdf(source, "source")
    run("ncks", "-h", "-v", "u", source, side, check=True)
    run("ncrename", "-h", "-v", "u,w", side, check=True)
    commands = (("ncatted", "-h", "-a", "units,v,o,c,kilometres", "x.nc"),
                ("ncks", "-h", "-A", side, "x.nc"))
    shutil.copy(source, tmp_path / "x.nc")
    before = (tmp_path / "x.nc").read_bytes()
    for command in commands:
        assert run(*command, cwd=tmp_path).returncode != 0
    assert (tmp_path / "x.nc").read_bytes() == before
    with rwmounts.RwMount(bucket, tmp_path) as mount:
        shutil.copy(source, mount.file("home/x.nc"))
        for command in commands:
            run(*command, cwd=mount.file("home"), check=True)
            mount.released()
    with Mount(bucket, tmp_path) as mount:
        text = run("ncdump", "-h", mount.file("home/x.nc"), check=True).stdout
        with h5py.File(mount.file("home/x.nc")) as f:
            assert sorted(f) == ["u", "v", "w", "x"]
            assert f["v"].attrs["units"] == b"kilometres"
    assert "v(x)" in text and "w(x)" in text and 'v:units = "kilometres"' in text


# ---- comments ----

COMMENTS = {"/": b"caf\xe9", "group": b"a comment\nof \"two\" lines\\", "data": "\u00e9".encode(),
            "small": b"\xed\xb3\xbc", "type": b"x" * 65000, "dense": b"\x01\x7f\x80"}


def set_comment(f, path, comment):
    h5py.h5o.set_comment(f[path].id, comment)


def write_comments(path, libver):
    with h5py.File(path, "w", libver=libver) as f:
        f.create_group("group")
        f.create_dataset("data", data=np.arange(100), chunks=(10,), compression="gzip")
        f["small"] = 1
        f["type"] = np.dtype("i4")
        f["none"] = 2
        dense = f.create_group("dense", track_order=True)
        for i in range(70):
            dense[f"n{i}"] = h5py.SoftLink("/data")
            if i < 12:
                dense.attrs[f"a{i}"] = i
        for where, comment in COMMENTS.items():
            set_comment(f, where, comment)


def comments(path):
    with h5py.File(path, "r") as f:
        found = {where: h5raw.comment(f[where].id) for where in (*COMMENTS, "none")}
    return {where: comment for where, comment in found.items() if comment}


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_comments_are_imported(tmp_path, bucket, libver):
    source = tmp_path / "source.h5"
    write_comments(source, libver)
    assert comments(source) == COMMENTS
    run(HSIMAGE, "check", "--all", source, check=True)
    assert import_file(bucket, source).stderr == ""
    assert_sound(bucket)
    out = export(bucket, tmp_path / "out.h5")
    assert comments(out) == COMMENTS
    assert filediff.differences(source, out) == []
    assert "caf" in headers(out) and headers(source).count("COMMENT") == headers(out).count(
        "COMMENT")
    (bucket / "raw").mkdir()
    shutil.copy(source, bucket / "raw/x.h5")
    run(HSIMAGE, "-b", bucket, "link", "raw/x.h5", "home/link.h5", check=True)
    assert comments(export(bucket, tmp_path / "link.h5", "home/link.h5")) == COMMENTS
    with rwmounts.RwMount(bucket, tmp_path) as mount:
        assert comments(mount.file(DOMAIN)) == COMMENTS
        shutil.copy(source, mount.file("home/copy.h5"))
        mount.released()
        assert rwmounts.is_domain(mount.file("home/copy.h5"))
        assert comments(mount.file("home/copy.h5")) == COMMENTS


@pytest.mark.parametrize("libver", [None, "latest"])
def test_comments_are_changed_in_place(tmp_path, bucket, libver):
    """Set, changed and removed, alone and together with other changes. The documents of other
    objects stay."""
    source = tmp_path / "source.h5"
    write_comments(source, None)
    import_file(bucket, source)
    changes = {"/": b"", "group": b"gr\xfcn", "small": b"caf\xe9" * 100, "data": b"data",
               "type": b"t", "none": b"none"}
    expected = {**COMMENTS, **changes}
    del expected["/"]
    before = {p: p.read_bytes() for p in (bucket / "db").rglob(".*.json") if p.name != ".info.json"}
    # Another member of "hsmount" stays.
    (path,) = (p for p in before if p.name == ".group.json" and b'"dense"' in before[p])
    text = before[path].replace(b'"hsmount": {', b'"hsmount": {"other": [1e2], ')
    path.write_bytes(text)
    before[path] = text
    with rwmounts.RwMount(bucket, tmp_path) as mount:
        requests = mount.requests()["put"]
        for i, (where, comment) in enumerate(changes.items()):
            with h5py.File(mount.file(DOMAIN), "r+", libver=libver) as f:
                set_comment(f, where, comment)
                if i % 2:
                    f[where].attrs["x"] = i
            mount.released()
            assert mount.left() == 0
        assert mount.requests()["put"] - requests == len(changes)
        with h5py.File(mount.file(DOMAIN), "r+") as f:
            f["new"] = 3
            set_comment(f, "new", b"new\xff")
        mount.released()
        assert comments(mount.file(DOMAIN)) == expected
        mount.released()
    root = path.read_bytes()
    assert b'"hsmount": {"other": [1e2]}' in root
    same = [p for p in before if p.read_bytes() == before[p]]
    dense = [p for p in same if b"\\u0001\\u007f\\udc80" in before[p]]
    assert len(dense) == 1, "the document of the only object that nobody has changed"
    with Mount(bucket, tmp_path) as mount:
        assert comments(mount.file(DOMAIN)) == expected
        with h5py.File(mount.file(DOMAIN)) as f:
            assert h5raw.comment(f["new"].id) == b"new\xff"
            assert f["group"].attrs["x"] == 1
    run(HSIMAGE, "-b", bucket, "check", "--all", DOMAIN, check=True)
    assert comments(export(bucket, tmp_path / "out.h5")) == expected


def test_comments_that_are_too_long(tmp_path, bucket):
    """An object header has room for 65,535 bytes, a domain for 65,000."""
    source = tmp_path / "source.h5"
    with h5py.File(source, "w") as f:
        f["x"] = 1
        f["y"] = 2
        set_comment(f, "x", b"x" * 65001)
        set_comment(f, "y", b"y" * 65000)
    done = import_file(bucket, source, check=False)
    assert done.returncode == 1
    assert "/x, comment: a comment of more than 65,000 bytes" in done.stderr
    assert sorted(os.listdir(bucket / "home")) == [".domain.json"], "nothing is left"
    done = import_file(bucket, source, "--skip-unsupported")
    assert "/x, comment: a comment of more than 65,000 bytes" in done.stderr
    with h5py.File(export(bucket, tmp_path / "out.h5")) as f:
        assert h5raw.comment(f["x"].id) == b""
        assert h5raw.comment(f["y"].id) == b"y" * 65000
    with rwmounts.RwMount(bucket, tmp_path) as mount:
        shutil.copy(source, mount.file("home/copy.h5"))
        mount.released()
        kept = rwmounts.attribute(mount.file("home/copy.h5"), "user.hsds.kept")
        assert "a comment of more than 65,000 bytes" in kept
        # In a process of its own, because h5py cannot close a file whose close has failed.
        program = f"""import h5py, os
f = h5py.File({mount.file(DOMAIN)!r}, "r+")
h5py.h5o.set_comment(f["y"].id, b"z" * 65001)
try:
    f.close()
except RuntimeError as e:
    os._exit("errno = 95" in str(e))"""
        assert run(sys.executable, "-c", program).returncode == 1
        mount.released()
        assert mount.left() == 1
        assert "/y, comment: a domain cannot hold it: a comment of more than" in mount.log()


def test_damaged_comments(tmp_path, bucket):
    """Without its NUL, a comment is left out, and told."""
    source = tmp_path / "source.h5"
    with h5py.File(source, "w", libver="earliest") as f:
        f["x"] = 1
        set_comment(f, "x", b"1234567")
    data = source.read_bytes()
    assert data.count(b"1234567\0") == 1
    source.write_bytes(data.replace(b"1234567\0", b"12345678"))
    done = import_file(bucket, source, check=False)
    assert done.returncode == 1 and "/x: the comment is left out" in done.stderr
    done = import_file(bucket, source, "--skip-unsupported")
    assert "/x: the comment is left out" in done.stderr
    with h5py.File(export(bucket, tmp_path / "out.h5")) as f:
        assert f["x"][()] == 1
    # In a document, too.
    (path,) = (bucket / "db").rglob(".dataset.json")
    path.write_text(path.read_text().rstrip("}") + '}, "hsmount": {"comment": "\\ud800"}}')
    done = run(HSIMAGE, "-b", bucket, "check", "--all", DOMAIN)
    assert "hsmount.comment" in done.stdout
    with Mount(bucket, tmp_path) as mount, h5py.File(mount.file(DOMAIN)) as f:
        assert f["x"][()] == 1
