# SPDX-License-Identifier: Apache-2.0
"""A defect in a Zarr store makes its own part of the file fail, and neither the mount nor the rest
of the store. One clear message names the key and the cause. The cases are in
support/zarr_defects.py, each named after its defect."""
import errno
import os

import h5py
import numpy as np
import pytest

import zarr_defects
from mounts import HSIMAGE, Mount, run
from zarr_defects import CASES, DATA, FILE, FINE, OK, PART
from zarr_write import Store

MANY = 1100     # more keys than a page of a listing has


@pytest.fixture(scope="module", name="damaged")
def fixture_damaged(tmp_path_factory):
    """One mount of all cases. Each test checks that the daemon still runs."""
    directory = tmp_path_factory.mktemp("damaged")
    zarr_defects.write(os.path.join(directory, "bucket"))
    with Mount(directory / "bucket", directory) as m:
        yield m


def check_neighbour(m):
    assert m.alive(), m.log()
    with h5py.File(m.file("good.zarr.nc"), "r") as f:
        assert f["ok"][()].tolist() == OK.tolist()


def check_shown(path, case):
    with h5py.File(path, "r") as f:
        assert f["ok"][()].tolist() == OK.tolist()
        assert ("bad" in f) == (case.expect != PART)
        if case.expect == DATA:
            with pytest.raises(OSError):
                f["bad"][()]
        elif case.expect != PART:
            assert f["bad"][4:].tolist() == OK[4:].tolist()
        assert f["ok"][()].tolist() == OK.tolist()
    run("h5dump", "-H", path, check=True)


# Each of these takes a few seconds.
LONG = {("root_of_50_megabytes", 2), ("attribute_of_50_megabytes", 2),
        ("attribute_of_50_megabytes", 3), ("attributes_100000", 3)}


@pytest.mark.parametrize("name, version", [
    pytest.param(name, version, id=f"{name}-v{version}",
                 marks=[pytest.mark.long] if (name, version) in LONG else [])
    for name, case in CASES.items() for version in case.versions()])
def test_defect(damaged, name, version):
    case, path = CASES[name], damaged.file(f"v{version}", f"{name}.zarr.nc")
    key, cause = case.keys[version - 2], case.causes[version - 2]
    assert f"{name}.zarr.nc" in os.listdir(damaged.file(f"v{version}"))
    if case.expect == FILE:
        with pytest.raises(OSError) as raised:
            os.close(os.open(path, os.O_RDONLY))
        assert raised.value.errno == errno.EIO
    else:
        check_shown(path, case)
    check_neighbour(damaged)
    info = run(HSIMAGE, "info", f"{damaged.bucket}/v{version}/{name}.zarr")
    assert info.returncode == (case.expect == FILE)
    said = damaged.log() if case.expect in (FILE, DATA) else info.stdout
    lines = [line for line in said.splitlines()
             if key in line and cause in line and (said is info.stdout or name in line)]
    assert case.expect == FINE or lines, said
    if case.expect in (FILE, FINE):
        assert "problem: " not in info.stdout and "\n" not in info.stderr.strip()


def test_a_chunk_that_is_a_directory_has_the_fill_value(damaged):
    for version in 2, 3:
        with h5py.File(damaged.file(f"v{version}/chunk_a_directory.zarr.nc"), "r") as f:
            assert f["bad"][()].tolist() == [0, 0, 0, 0, 4, 5]


@pytest.mark.parametrize("megabytes", (5, pytest.param(50, marks=pytest.mark.long)))
def test_a_long_attribute(damaged, megabytes):
    for version in 2, 3:
        path = damaged.file(f"v{version}/attribute_of_{megabytes}_megabytes.zarr.nc")
        with h5py.File(path, "r") as f:
            assert f["bad"].attrs["long"] in ("x" * megabytes * 1_000_000,
                                              b"x" * megabytes * 1_000_000)


def test_many_attributes(damaged):
    with h5py.File(damaged.file("v2/attributes_100000.zarr.nc"), "r") as f:
        assert f["bad"].attrs["a99999"] == 99999 and len(f["bad"].attrs) >= 100000


MEMBERS = ("../x", "a/../x", "a//b", "/a", "./a", "a/", "n" * 1024, "n" * 1014 + "/a", "n" * 300,
           "a\0b", "\ud800")


@pytest.mark.parametrize("version", (2, 3))
def test_members_of_consolidated_metadata_with_odd_paths(tmp_path, mount, version):
    """In a store whose keys are not listed, nothing else shows which paths exist. The metadata may
    give a path that no key can have, or that a link in an HDF5 file cannot."""
    with Store(tmp_path / "bucket/x.zarr", version, True) as store:
        store.array("many", np.arange(MANY, dtype="i1"), chunks=(1,))
        store.array("g/ok", OK)
    document = store.documents[zarr_defects.document_key(store, "g/ok")]
    store.documents.update((zarr_defects.document_key(store, path), document)
                           for path in MEMBERS)
    store.write_documents(only_root=True)
    m = mount(tmp_path / "bucket")
    with h5py.File(m.file("x.zarr.nc"), "r") as f:
        assert f["g/ok"][()].tolist() == OK.tolist() and f["many"][5] == 5
        assert not {"x", "..", "."} & set(f)
    info = run(HSIMAGE, "info", tmp_path / "bucket/x.zarr", check=True).stdout
    for path in "../x", "a/../x", "a//b", "./a":
        assert f"problem: {path}" in info, info
    assert m.alive()


@pytest.mark.parametrize("members", (50_000, pytest.param(1_000_000, marks=pytest.mark.long)))
@pytest.mark.parametrize("version", (2, 3))
def test_a_million_members_of_consolidated_metadata(tmp_path, version, members):
    """They are no arrays. The array that is one is read, and the number of notes has a limit."""
    with Store(tmp_path / "x.zarr", version, True) as store:
        store.array("many", np.arange(MANY, dtype="i1"), chunks=(1,))
        store.array("ok", OK)
    store.documents.update((zarr_defects.document_key(store, f"a{i}"), {}) for i in range(members))
    store.write_documents(only_root=True)
    run(HSIMAGE, "export", tmp_path / "x.zarr", tmp_path / "out.nc", check=True)
    with h5py.File(tmp_path / "out.nc", "r") as f:
        assert f["ok"][()].tolist() == OK.tolist() and len(f) == 4
    info = run(HSIMAGE, "info", tmp_path / "x.zarr", check=True).stdout
    assert 100 < info.count("problem: ") <= 1000


def test_documents_of_both_versions_at_one_prefix(tmp_path, mount):
    """Those of v3 count, as for the programs that leave the others there."""
    with Store(tmp_path / "bucket/x.zarr", 2) as old:
        old.array("old", OK)
    with Store(tmp_path / "bucket/x.zarr", 3) as new:
        new.array("new", OK)
    (tmp_path / "bucket/x.zarr/.zarray").write_bytes(b'{"zarr_format": 2}')
    m = mount(tmp_path / "bucket")
    with h5py.File(m.file("x.zarr.nc"), "r") as f:
        assert f["new"][()].tolist() == OK.tolist() and "old" not in f
    assert os.getxattr(m.file("x.zarr.nc"), "user.hsds.format") == b"zarr3"


def test_an_array_and_a_group_at_the_root(tmp_path, mount):
    with Store(tmp_path / "bucket/x.zarr", 2) as store:
        store.array("inner", OK)
        store.put("0", OK.tobytes())
        store.put(".zarray", {"zarr_format": 2, "shape": [6], "chunks": [6], "dtype": "<i4"})
    m = mount(tmp_path / "bucket")
    with h5py.File(m.file("x.zarr.nc"), "r") as f:
        assert f["data"][()].tolist() == OK.tolist()
    assert "it is an array; the group of the same name is left out" in m.log()


@pytest.mark.parametrize("version", (2, 3))
def test_100_stores_within_each_other(tmp_path, mount, version):
    """Each is a group of the one above it, and no file."""
    for i in range(100):
        with Store(tmp_path / "bucket/x.zarr" / ("g/" * i), version) as store:
            store.array("ok", OK)
    m = mount(tmp_path / "bucket")
    assert os.listdir(m.path) == ["x.zarr.nc"]
    assert "g.nc" not in os.listdir(m.file("x.zarr"))
    with h5py.File(m.file("x.zarr.nc"), "r") as f:
        for i in 0, 1, 50, 99:
            assert f["g/" * i + "ok"][()].tolist() == OK.tolist()


NAMES = {"newline": "a\nb", "backslash": "a\\b", "255_bytes": "n" * 255, "quote": 'a"b',
         "percent": "a%2Fb", "dots": "...", "not_ascii": "\u00fc\u4e2d"}


@pytest.mark.parametrize("version", (2, 3))
@pytest.mark.parametrize("name", NAMES)
def test_array_name_with_(tmp_path, mount, name, version):
    """It is the name of a link. Programs that print it escape it."""
    name = NAMES[name]
    with Store(tmp_path / "bucket/x.zarr", version) as store:
        store.array(name, OK)
        store.array(f"g/{name}", OK, chunks=(4,))
    path = mount(tmp_path / "bucket").file("x.zarr.nc")
    with h5py.File(path, "r") as f:
        assert f[name][()].tolist() == f[f"g/{name}"][()].tolist() == OK.tolist()
    run("h5dump", path, check=True)
    run("ncdump", path, check=True)
    info = run(HSIMAGE, "info", tmp_path / "bucket/x.zarr", check=True).stdout
    assert len([line for line in info.splitlines() if line.startswith("dataset /")]) == 3


REQUESTS = 18       # more than reading the store takes


@pytest.mark.parametrize("consolidated", (False, True), ids=("documents", "consolidated"))
@pytest.mark.parametrize("version", (2, 3))
@pytest.mark.parametrize("answer, fault", [("403", "EACCES"), ("404", "ENOENT")])
def test_each_request_in_turn_is_answered(tmp_path, answer, fault, version, consolidated):
    """The whole store is read, or nothing: a refused or vanished object never counts as a missing
    chunk or attribute, because the listing shows it."""
    with Store(tmp_path / "bucket/x.zarr", version, consolidated, {"title": "t"}) as store:
        arrays = {name: store.array(name, np.arange(8, dtype="<i4"), chunks=(4,), fill=-1)
                  for name in ("a", "g/b")}
    codes = []
    for nth in range(1, REQUESTS + 1):
        out = tmp_path / f"{nth}.nc"
        done = run(HSIMAGE, "export", "-o", f"debug_fault=fail:{nth}:{fault}",
                   tmp_path / "bucket/x.zarr.nc", out)
        codes.append(done.returncode)
        assert done.returncode in (0, 1) and done.returncode == (not out.exists()), done
        if done.returncode:
            assert "x.zarr" in done.stderr, done
            continue
        with h5py.File(out, "r") as f:
            assert f.attrs["title"] == b"t", (answer, nth)
            for name, a in arrays.items():
                assert f[name][()].tolist() == a.data.tolist(), (answer, nth)
    assert codes[-1] == 0 and sum(codes) >= 5, codes
