# SPDX-License-Identifier: Apache-2.0
"""Damaged files of a journal after a daemon was killed while a program wrote. No wrong byte is
exported or committed."""
import os
import random
import shutil

import pytest

import journals
import mkbucket
import mounts
import rwmounts
from mounts import HSIMAGE, run

FRAME, HEADER, ENTRY = 65536, 32, 8
SIZE = 5 * FRAME + 1000


def append(fd, data):
    """In pieces that do not end with frames."""
    for at in range(0, len(data), 10_007):
        os.pwrite(fd, data[at:at + 10_007], at)


def overwrite(fd, data):
    """Everything twice, and a part of it again."""
    os.pwrite(fd, bytes(len(data)), 0)
    append(fd, data[::-1])
    os.pwrite(fd, data, 0)
    os.pwrite(fd, data[FRAME - 5:FRAME + 5], FRAME - 5)


def scatter(fd, data):
    """Small pieces in a random order, which overlap, and everything twice."""
    pieces = [(at, at + 1000 + at % 3001) for at in range(0, len(data), 1000)]
    shuffle = random.Random(7)
    for _ in range(2):
        shuffle.shuffle(pieces)
        for start, end in pieces:
            os.pwrite(fd, data[start:end], start)


def shrink(fd, data):
    """Truncated within a frame, and written again."""
    os.pwrite(fd, data[::-1] + bytes(2 * FRAME), 0)
    os.ftruncate(fd, 2 * FRAME + 5000)
    os.pwrite(fd, data[2 * FRAME:], 2 * FRAME)
    os.pwrite(fd, data[:2 * FRAME], 0)


WRITERS = [append, overwrite, scatter, shrink]


@pytest.fixture
def bucket(tmp_path):
    root = tmp_path / "bucket"
    with mkbucket.Maker(root) as made:
        made.folder("home")
        made.domain("home/old.h5")
    return root


class Killed:
    """What a daemon leaves that was killed while a program had the file open."""

    def __init__(self, bucket, tmp_path, write):
        self.bucket, self.where = bucket, tmp_path
        self.data = random.Random(write.__name__).randbytes(SIZE)
        m = rwmounts.RwMount(bucket, tmp_path)
        m.start()
        fd = os.open(m.file("home/new.dat"), os.O_RDWR | os.O_CREAT)
        write(fd, self.data)
        m.kill()
        with pytest.raises(OSError):
            os.close(fd)
        self.journal = m.journal
        self.place, = rwmounts.journal_entries(m.journal)
        self.id = os.path.basename(self.place)

    def path(self, name):
        return os.path.join(self.place, name)

    def flip(self, name, at, bit=0):
        with open(self.path(name), "r+b") as f:
            f.seek(at)
            byte = f.read(1)[0]
            f.seek(at)
            f.write(bytes([byte ^ 1 << bit]))

    def finish(self):
        """Makes it a draft whose commit has begun, so that the next mount continues it."""
        with open(self.path("map"), "r+b") as f:
            size = f.seek(0, os.SEEK_END)
            assert size % journals.RECORD == 0
            f.write(journals.record(journals.SEAL, 0, 0, len(self.data)) +
                    journals.record(journals.MARK, 0, 0, journals.mark(1)))

    def export(self):
        out = self.where / "out"
        done = run(HSIMAGE, "recover", "export", "--force", "--journal-dir", self.journal,
                   self.id, out)
        return done, out.read_bytes() if done.returncode == 0 else None


@pytest.mark.parametrize("write", WRITERS)
def test_a_changed_byte(bucket, tmp_path, write):
    killed = Killed(bucket, tmp_path, write)
    assert killed.export()[1] == killed.data
    for at in (0, 1, FRAME - 1, FRAME, 2 * FRAME + 4999, 2 * FRAME + 5000, 3 * FRAME + 77,
               SIZE - 1):
        killed.flip("spool.0", at, at % 8)
        done, _ = killed.export()
        assert done.returncode == 1, at
        assert "spool.0 is damaged" in done.stderr
        assert f"at offset {at // FRAME * FRAME} " in done.stderr
        killed.flip("spool.0", at, at % 8)
    assert killed.export()[1] == killed.data


@pytest.mark.parametrize("write", WRITERS)
def test_no_mount_commits_it(bucket, tmp_path, write):
    killed = Killed(bucket, tmp_path, write)
    killed.finish()
    killed.flip("spool.0", 3 * FRAME + 1)
    with rwmounts.RwMount(bucket, tmp_path) as m:
        assert mounts.wait_for(lambda: m.stats()["drafts"]["left"] == 1), m.log()
        assert not os.path.exists(m.file("home/new.dat"))
        assert "spool.0 is damaged" in m.log()
    assert not os.path.exists(bucket / "home/new.dat")
    killed.flip("spool.0", 3 * FRAME + 1)
    with rwmounts.RwMount(bucket, tmp_path) as m:
        assert mounts.wait_for(lambda: os.path.exists(bucket / "home/new.dat")), m.log()
    assert (bucket / "home/new.dat").read_bytes() == killed.data


def test_damaged_checksums(bucket, tmp_path):
    """Each entry cut off, and some of the bits of each entry changed."""
    killed = Killed(bucket, tmp_path, scatter)
    path = killed.path("sums.0")
    size = os.path.getsize(path)
    assert size == HEADER + 6 * ENTRY
    for bit in range(HEADER * 8, size * 8, 5):
        killed.flip("sums.0", bit // 8, bit % 8)
        done, _ = killed.export()
        assert done.returncode == 1 and "sums.0 is damaged" in done.stderr, bit
        frame = (bit // 8 - HEADER) // ENTRY
        assert f"spool.0 at offset {frame * FRAME}" in done.stderr
        killed.flip("sums.0", bit // 8, bit % 8)
    assert killed.export()[1] == killed.data
    whole = shutil.copy(path, tmp_path / "whole")
    for cut in range(size - 1, HEADER - 1, -1):
        os.truncate(path, cut)
        done, _ = killed.export()
        assert done.returncode == 1 and "sums.0 is damaged" in done.stderr, cut
    shutil.copy(whole, path)
    assert killed.export()[1] == killed.data


@pytest.mark.parametrize("damage", ["missing", "header"])
def test_unreadable(bucket, tmp_path, damage):
    """The draft is set aside."""
    killed = Killed(bucket, tmp_path, append)
    if damage == "missing":
        os.unlink(killed.path("sums.0"))
    else:
        killed.flip("sums.0", 30)
    done, _ = killed.export()
    assert done.returncode == 1 and "sums.0 is " in done.stderr
    assert not os.path.exists(killed.place)
    assert "sums.0 is " in run(HSIMAGE, "recover", "list", "--journal-dir", killed.journal).stdout
