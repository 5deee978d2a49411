# SPDX-License-Identifier: Apache-2.0
"""Mounts with -o rw whose bucket, or whose journal, is on a disk that is really full."""
import contextlib
import errno
import os
import re

import h5py
import numpy as np
import pytest

import imports
import mounts
import rwmounts
from mounts import HSIMAGE, run

MIB = 1 << 20
OLD, NEW = b"old" * 1000, b"new!" * (2 * MIB)
TEMPORARY = re.compile(r"^\.hsmount-tmp")


def write_domain(path, number, n):
    """Chunks of 64 KiB, so that blocks of a disk make no difference."""
    with h5py.File(path, "w") as f:
        f.create_dataset("d", data=np.full(n, number, "<i4"), chunks=(min(n, 16 << 10),))
    return path


def number_of(path):
    with h5py.File(path, "r") as f:
        found = np.unique(f["d"][:])
    assert len(found) == 1, "parts of two files"
    return int(found[0])


def content(path):
    with open(path, "rb") as f:
        return f.read()


class Disk:
    """A file system of its own."""

    def __init__(self, path):
        self.path, self.filler = path, path / "filler"

    def fill(self, spare=0):
        """Until nothing is free but this many bytes."""
        room = os.statvfs(self.path)
        with open(self.filler, "ab", buffering=0) as f:
            left = room.f_bavail * room.f_bsize - spare
            with contextlib.suppress(OSError):
                while left > 0:
                    left -= f.write(bytes(min(left, MIB)))
            with contextlib.suppress(OSError):
                while not spare:
                    f.write(bytes(4096))

    def make_room(self):
        self.filler.unlink()


@pytest.fixture(params=["tmpfs", "ext4"])
def disk(request, tmp_path):
    """64 MiB. ext4 allocates blocks later than it accepts bytes, tmpfs at once."""
    path, image = tmp_path / "disk", tmp_path / "image"
    path.mkdir()
    if request.param == "ext4":
        with open(image, "wb") as f:
            f.truncate(64 * MIB)
        made = run("mkfs.ext4", "-q", "-m", "0", image).returncode == 0
        command = ["mount", "-o", "loop", image, path]
    else:
        made, command = True, ["mount", "-t", "tmpfs", "-o", "size=64M", "tmpfs", path]
    if not made or run(*command).returncode:
        pytest.skip(f"needs the permission to mount a {request.param}")
    try:
        path.chmod(0o700)
        yield Disk(path)
    finally:
        run("umount", "-l", path, check=True)


@pytest.fixture
def sources(tmp_path):
    """Of 8 MiB each."""
    (tmp_path / "plain").write_bytes(NEW)
    return {"domain": write_domain(tmp_path / "new.h5", 2, 2 * MIB), "plain": tmp_path / "plain"}


def fails(call, *args):
    """The errno of a call, or 0."""
    try:
        call(*args)
    except OSError as e:
        return e.errno
    return 0


def refused_copy(source, path):
    """close(2) fails, and says why."""
    done = run("cp", source, path)
    assert done.returncode == 1
    assert "failed to close" in done.stderr and "No space left on device" in done.stderr


def assert_sound(bucket):
    done = rwmounts.check(bucket)
    assert done.returncode == 0 and not rwmounts.ORPHANS.search(done.stdout.replace(
        "unfinished 0", "")), done.stdout
    left = [name for _, _, names in os.walk(bucket) for name in names if TEMPORARY.match(name)]
    assert left == []


# ---- the bucket ----

def test_a_full_bucket(disk, tmp_path, sources):
    """The error comes from close. Files that would be replaced stay as they are, and the journal
    has the others until there is room."""
    bucket = imports.make_bucket(disk.path / "bucket")
    names = {"old.h5": "domain", "new.h5": "domain", "old.txt": "plain", "new.txt": "plain"}
    with rwmounts.RwMount(bucket, tmp_path) as m:
        run("cp", write_domain(tmp_path / "old", 1, 1000), m.file("home/old.h5"), check=True)
        (tmp_path / "mnt/home/old.txt").write_bytes(OLD)
        m.released()
        disk.fill(3 * MIB)
        for name, kind in names.items():
            refused_copy(sources[kind], m.file("home", name))
            error = rwmounts.attribute(m.file("home", name), "user.hsds.error")
            assert "No space left on device; draft" in error
        assert number_of(m.file("home/old.h5")) == 1
        assert content(m.file("home/old.txt")) == OLD
        assert m.failed() == 4
        # The bucket has nothing under these names, so everybody sees the drafts.
        assert number_of(m.file("home/new.h5")) == 2
        assert content(m.file("home/new.txt")) == NEW
    assert len(rwmounts.journal_entries(m.journal)) == 4
    with mounts.Mount(bucket, tmp_path) as reader:
        assert sorted(os.listdir(reader.file("home"))) == ["old.h5", "old.txt"]
        assert number_of(reader.file("home/old.h5")) == 1
        assert content(reader.file("home/old.txt")) == OLD
    assert rwmounts.check(bucket).returncode == 0
    disk.make_room()
    with rwmounts.RwMount(bucket, tmp_path) as m:
        assert mounts.wait_for(lambda: rwmounts.journal_entries(m.journal) == [])
        for name, kind in names.items():
            path = m.file("home", name)
            assert (number_of(path) == 2 if kind == "domain" else content(path) == NEW), name
            assert rwmounts.attribute(path, "user.hsds.error") is None
    assert_sound(bucket)


def test_writing_again(disk, tmp_path, sources):
    """What a failed commit has stored is deleted for the next one, which needs its room."""
    bucket = imports.make_bucket(disk.path / "bucket")
    with rwmounts.RwMount(bucket, tmp_path) as m:
        disk.fill(6 * MIB)
        for _ in range(3):
            refused_copy(sources["domain"], m.file("home/x.h5"))
            assert len(os.listdir(bucket / "db")) == 1
        os.truncate(disk.filler, os.path.getsize(disk.filler) - 4 * MIB)
        again = write_domain(tmp_path / "again.h5", 3, 2 * MIB)
        run("cp", again, m.file("home/x.h5"), check=True)
        assert number_of(m.file("home/x.h5")) == 3
        assert len(os.listdir(bucket / "db")) == 1
    assert rwmounts.journal_entries(m.journal) == []
    assert_sound(bucket)


def test_room_for_an_open_file(disk, tmp_path):
    """fsync and close repeat the commit, when there is room."""
    bucket = imports.make_bucket(disk.path / "bucket")
    with rwmounts.RwMount(bucket, tmp_path) as m:
        disk.fill(MIB)
        fd = os.open(m.file("home/x"), os.O_WRONLY | os.O_CREAT)
        assert os.write(fd, NEW) == len(NEW)
        for _ in range(2):
            assert fails(os.fsync, fd) == errno.ENOSPC
        assert os.listdir(bucket / "home") == [".domain.json"]
        disk.make_room()
        os.fsync(fd)
        assert content(bucket / "home/x") == NEW
        disk.fill()
        os.pwrite(fd, b"again", 0)
        assert fails(os.close, fd) == errno.ENOSPC
        assert content(bucket / "home/x") == NEW
        m.released()
        disk.make_room()
    assert rwmounts.journal_entries(m.journal) == []
    assert content(bucket / "home/x") == b"again" + NEW[5:]
    assert_sound(bucket)


def test_names_in_a_full_bucket(disk, tmp_path):
    """What needs room fails and changes nothing. Removing works, so it can make room."""
    bucket = imports.make_bucket(disk.path / "bucket")
    (bucket / "plain/below").mkdir(parents=True)
    for name in ("plain/a", "plain/b", "plain/below/c"):
        (bucket / name).write_bytes(OLD)
    with rwmounts.RwMount(bucket, tmp_path) as m:
        for name in ("x.h5", "y.h5", "z.h5"):
            run("cp", write_domain(tmp_path / "old", 1, 1000), m.file("home", name), check=True)
        disk.fill()
        assert {fails(os.rename, m.file("home/x.h5"), m.file("home/y.h5")),
                fails(os.rename, m.file("home/x.h5"), m.file("home/new.h5")),
                fails(os.rename, m.file("plain/a"), m.file("home/a")),
                fails(os.mkdir, m.file("home/new"))} == {errno.ENOSPC}
        assert sorted(os.listdir(m.file("home"))) == ["x.h5", "y.h5", "z.h5"]
        assert sorted(os.listdir(bucket / "home")) == [".domain.json", "x.h5", "y.h5", "z.h5"]
        # Directories that have no documents get them, so that they stay.
        for name in ("plain/below/c", "plain/a", "plain/b", "home/z.h5"):
            os.unlink(m.file(name))
        assert os.listdir(m.file("plain")) == ["below"]
        assert os.listdir(m.file("plain/below")) == []
        assert sorted(os.listdir(m.file("home"))) == ["x.h5", "y.h5"]
        assert number_of(m.file("home/x.h5")) == number_of(m.file("home/y.h5")) == 1
        disk.make_room()
    assert_sound(bucket)


# ---- the journal ----

def test_a_full_journal(disk, tmp_path, sources):
    """Another program takes the room that a mount keeps free. write fails, and what was accepted
    before is committed: neither fsync nor close needs room."""
    bucket = imports.make_bucket(tmp_path / "bucket")
    old = write_domain(tmp_path / "old", 1, 1000)
    with rwmounts.RwMount(bucket, tmp_path, journal=disk.path / "journal") as m:
        run("cp", old, m.file("home/old.h5"), check=True)
        files = {name: os.open(m.file("home", name), os.O_RDWR | os.O_CREAT | os.O_TRUNC)
                 for name in ("old.h5", "new.h5", "new.txt")}
        part = os.open(m.file("home/part"), os.O_WRONLY | os.O_CREAT)
        for name, fd in files.items():
            data = content(sources["domain"]) if name.endswith(".h5") else NEW
            assert os.write(fd, data) == len(data)
        disk.fill()
        assert fails(os.write, part, NEW) == errno.ENOSPC
        os.close(part)
        assert os.pwrite(files["new.txt"], b"again", 0) == 5, "it has this room"
        for fd in files.values():
            os.fsync(fd)
            os.close(fd)
        m.released()
        assert number_of(m.file("home/old.h5")) == number_of(m.file("home/new.h5")) == 2
        assert content(m.file("home/new.txt")) == b"again" + NEW[5:]
        assert content(m.file("home/part")) == b""
        # Names can be changed.
        os.rename(m.file("home/new.h5"), m.file("home/old.h5"))
        os.rename(m.file("home/new.txt"), m.file("home/moved.txt"))
        os.mkdir(m.file("home/below"))
        os.unlink(m.file("home/part"))
        assert sorted(os.listdir(m.file("home"))) == ["below", "moved.txt", "old.h5"]
        disk.make_room()
        run("cp", old, m.file("home/later.h5"), check=True)
    assert rwmounts.journal_entries(m.journal) == []
    assert_sound(bucket)


def test_a_full_journal_and_a_killed_daemon(disk, tmp_path, sources):
    """What was written before the disk was full is in the journal."""
    bucket = imports.make_bucket(tmp_path / "bucket")
    m = rwmounts.RwMount(bucket, tmp_path, journal=disk.path / "journal")
    m.start()
    fd = os.open(m.file("home/x.h5"), os.O_WRONLY | os.O_CREAT)
    os.write(fd, content(sources["domain"]))
    disk.fill()
    m.kill()
    assert fails(os.close, fd)
    draft, = map(os.path.basename, rwmounts.journal_entries(m.journal))
    run(HSIMAGE, "recover", "--journal-dir", m.journal, "export", draft, tmp_path / "found.h5",
        check=True)
    assert number_of(tmp_path / "found.h5") == 2
    assert content(tmp_path / "found.h5") == content(sources["domain"])
