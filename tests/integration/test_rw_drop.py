# SPDX-License-Identifier: Apache-2.0
"""A file that could not be stored is dropped: `setfattr -x user.hsds.error FILE`. Then the name has
what the bucket has."""
import errno
import os
import sys

import h5py
import pytest

import imports
import rwmounts
from mounts import run, wait_for

ERROR = "user.hsds.error"
CHANGE = """
import h5py
f = h5py.File({!r}, "r+")
f["d"][0] = 7
f.create_dataset("new", data=range(100), chunks=(10,))
f.close()
"""


@pytest.fixture(name="bucket")
def fixture_bucket(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["d"] = [1, 2, 3]
    bucket = imports.make_bucket(tmp_path / "bucket")
    with rwmounts.RwMount(bucket, tmp_path) as m:
        run("cp", tmp_path / "a.h5", m.file("home/a.h5"), check=True)
        with open(m.file("home/old"), "wb") as f:
            f.write(b"old")
    return bucket


def write(path, data=b"new"):
    """0, or the error of close(2); None if the file cannot be opened."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.write(fd, data)
    except PermissionError:
        return None
    try:
        os.close(fd)
    except OSError as e:
        return e.errno
    return 0


def code_of(call, *arguments):
    with pytest.raises(OSError) as caught:
        call(*arguments)
    return caught.value.errno


def drop(m, name):
    m.released()
    assert run("setfattr", "-x", ERROR, m.file(name)).returncode == 0
    assert rwmounts.journal_entries(m.journal) == []
    assert m.failed() == 0
    assert not os.path.exists(m.file(name)) or rwmounts.attribute(m.file(name), ERROR) is None


@pytest.mark.parametrize("name", ["home/new", "home/old"])
def test_a_plain_file(bucket, tmp_path, name):
    """Each request fails in turn."""
    failed = 0
    for n in range(1, 8):
        with rwmounts.RwMount(bucket, tmp_path, f"debug_fault=fail:{n}:EACCES@{name}",
                              "metadata_ttl=0") as m:
            if not write(m.file(name)):
                (bucket / name).unlink(missing_ok=True)
                (bucket / "home/old").write_bytes(b"old")
                continue
            failed += 1
            drop(m, name)
            assert sorted(os.listdir(m.file("home"))) == ["a.h5", "old"]
            with open(m.file("home/old"), "rb") as f:
                assert f.read() == b"old"
            assert code_of(os.removexattr, m.file("home/old"), ERROR) == errno.ENODATA
        assert (bucket / "home/old").read_bytes() == b"old"
        assert not (bucket / "home/new").exists()
    assert failed


def test_a_changed_domain(bucket, tmp_path):
    """The change is not stored, or the log says that a part of it may be."""
    failed = partly = 0
    for n in range(1, 30, 2):
        with rwmounts.RwMount(bucket, tmp_path, f"debug_fault=fail:{n}:EACCES@db/*",
                              "metadata_ttl=0") as m:
            run(sys.executable, "-c", CHANGE.format(m.file("home/a.h5")))
            if not rwmounts.attribute(m.file("home/a.h5"), ERROR):
                continue
            failed += 1
            drop(m, "home/a.h5")
            partly += "may have a part of the changes" in m.log()
            with h5py.File(m.file("home/a.h5"), "r") as f:
                assert f["d"][1] == 2
        assert rwmounts.check(bucket).returncode == 0
    assert failed and partly


def test_open_files(bucket, tmp_path):
    """A program that reads or writes the file is not disturbed."""
    with rwmounts.RwMount(bucket, tmp_path, "debug_fault=fail:2:EACCES@home/new") as m:
        path = m.file("home/new")
        if not write(path):
            pytest.fail("the commit has not failed")
        for flags in os.O_RDONLY, os.O_RDWR:
            m.released()
            fd = os.open(path, flags)
            assert code_of(os.removexattr, path, ERROR) == errno.EBUSY
            assert os.pread(fd, 10, 0) == b"new"
            if flags == os.O_RDONLY:
                os.close(fd)
        os.pwrite(fd, b"new", 0)
        os.close(fd)
        assert code_of(os.removexattr, path, ERROR) == errno.ENODATA
    assert (bucket / "home/new").read_bytes() == b"new"


def test_a_conflict(bucket, tmp_path):
    with rwmounts.RwMount(bucket, tmp_path, "metadata_ttl=0") as m:
        path = m.file("home/old")
        fd = os.open(path, os.O_RDWR)
        os.pwrite(fd, b"mine", 0)
        (bucket / "home/old").write_bytes(b"theirs")
        assert code_of(os.close, fd) == errno.ESTALE
        assert wait_for(lambda: rwmounts.attribute(path, ERROR))
        drop(m, "home/old")
        with open(path, "rb") as f:
            assert f.read() == b"theirs"
    assert (bucket / "home/old").read_bytes() == b"theirs"
