# SPDX-License-Identifier: Apache-2.0
"""A damaged object makes its own file or its own part of the file fail, and neither the mount nor
other objects. The cases are in support/defects.py, each named after its defect."""
import errno
import os
import time

import h5py
import numpy as np
import pytest

import defects
import mkbucket
from defects import DATA, EITHER, FILE, FINE, PART
from mounts import HSIMAGE, Mount, run


@pytest.fixture(scope="module")
def damaged(tmp_path_factory):
    """One mount of all cases. Each test checks that the daemon still runs."""
    directory = tmp_path_factory.mktemp("damaged")
    root = directory / "bucket"
    expected = defects.write(root)
    with Mount(root, directory) as m:
        m.expected = expected
        yield m


def check_neighbour(m):
    assert m.alive(), m.log()
    with h5py.File(m.file("good.h5"), "r") as f:
        assert f["ok"][()].tolist() == defects.OK.tolist()


def has(f, name):
    """The object of this name, or the attribute of "ok"."""
    return name in f or name in f["ok"].attrs


@pytest.mark.parametrize("name", defects.CASES)
def test_defect(damaged, name):
    expect, key = damaged.expected[name]
    path = damaged.file("bad", f"{name}.h5")
    assert f"{name}.h5" in os.listdir(damaged.file("bad"))
    if expect == FILE:
        with pytest.raises(OSError) as e:
            with open(path, "rb") as f:
                f.read(8)
        assert e.value.errno == errno.EIO
    else:
        with h5py.File(path, "r") as f:
            assert f["ok"][()].tolist() == defects.OK.tolist()
            assert expect == EITHER or has(f, "bad") == (expect in (DATA, FINE))
            if expect == DATA:
                with pytest.raises(OSError):
                    f["bad"][()]
                assert f["ok"][()].tolist() == defects.OK.tolist()
        run("h5dump", "-H", path, check=True)
    check_neighbour(damaged)
    out = run(HSIMAGE, "info", "--verify", f"{damaged.bucket}/bad/{name}.h5")
    assert out.returncode in (0, 1), out.stderr
    if expect in (FILE, PART, DATA) and key:
        assert key in out.stdout + out.stderr, f"{key} not named in:\n{out.stdout}{out.stderr}"


def test_empty_domain_json_is_a_domain_that_is_not_there_yet(tmp_path, mount):
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        bucket.domain("good.h5")
        bucket.put("young.h5/.domain.json", b"")
    m = mount(tmp_path / "bucket")
    with pytest.raises(OSError):
        with open(m.file("young.h5"), "rb") as f:
            f.read(8)
    assert os.stat(m.file("good.h5")).st_size > 0


def test_100000_links(tmp_path, mount):
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        mkbucket.many_links(bucket)
    m = mount(tmp_path / "bucket")
    with h5py.File(m.file("manylinks.h5"), "r") as f:
        assert len(f["many"]) == 100_000
        for name in ("link000000", "link054321", "link099999"):
            assert f["many"][name] == f["data"]
        assert "link100000" not in f["many"]
        assert h5py.h5o.get_info(f["data"].id).rc == 100_001


def test_50_megabytes_in_an_attribute(tmp_path, mount):
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        mkbucket.big_attribute(bucket)
    m = mount(tmp_path / "bucket")
    with h5py.File(m.file("bigattribute.h5"), "r") as f:
        value = bytes(f["data"].attrs["big"])
        assert len(value) == 50_000_000
        assert value[:10] == b"0123456789" and value[-10:] == b"0123456789"


def test_500_groups_deep(tmp_path, mount):
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        mkbucket.deep_tree(bucket)
    m = mount(tmp_path / "bucket")
    with h5py.File(m.file("deeptree.h5"), "r") as f:
        assert f["g/" * 500 + "leaf"][()].tobytes() == bytes(range(16))


@pytest.mark.parametrize("fault, seen", [("EFBIG", "EIO"), ("ETIMEDOUT", "EIO"),
                                         ("EACCES", "EACCES")])
def test_errno_of_a_chunk_that_fails(tmp_path, mount, fault, seen):
    """The errno describes the file, not the object in the store."""
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        d = bucket.domain("x.h5")
        ds = d.dataset(d.root, "data", mkbucket.INT32, [1024], [1024])
        ds.chunk((0,), np.arange(1024, dtype="<i4"))
    m = mount(tmp_path / "bucket", f"debug_fault=fail:1+:{fault}@*/d/*/[0-9]*")
    with h5py.File(m.file("x.h5"), "r") as f:
        at = f["data"].id.get_chunk_info(0).byte_offset
    with open(m.file("x.h5"), "rb") as f, pytest.raises(OSError) as e:
        os.pread(f.fileno(), 4096, at)
    assert e.value.errno == getattr(errno, seen)


def test_a_store_that_fails_now_and_then(tmp_path, mount):
    """A third of the gets of chunks fail. A read gives an error or the right data. A failure is
    cached for a second only, so a program that tries again reads everything in the end."""
    page, chunks = np.arange(1024, dtype="<i4"), 64
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        d = bucket.domain("x.h5")
        ds = d.dataset(d.root, "data", mkbucket.INT32, [chunks * 1024], [1024])
        for i in range(chunks):
            ds.chunk((i,), page)
    m = mount(tmp_path / "bucket", "debug_count,debug_fault=fail:33%:EIO@*/d/*/[0-9]*")
    left, errors = set(range(chunks)), 0
    for _ in range(20):
        with h5py.File(m.file("x.h5"), "r") as f:
            for i in sorted(left):
                try:
                    assert (f["data"][i * 1024:(i + 1) * 1024] == page).all()
                    left.remove(i)
                except OSError:
                    errors += 1
        if not left:
            break
        time.sleep(1.1)         # a failure is cached for a second
    assert not left, f"{len(left)} chunks never read, {errors} errors"
    assert m.counts()["failures"] > 10
