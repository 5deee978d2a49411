# SPDX-License-Identifier: Apache-2.0
"""A mount has a domain open for writing, and another mount removes, replaces, renames or changes
it. `close` succeeds only if the domain has the change afterwards."""
import json
import os
import shutil
import subprocess
import sys

import h5py
import numpy as np
import pytest

import imports
import rwmounts
from mounts import HSIMAGE, run

WRITER = ("import h5py, sys\nf = h5py.File(sys.argv[1], 'r+')\nexec(sys.argv[2])\n"
          "print('open', flush=True)\nsys.stdin.readline()\nf.close()\nprint('closed')\n")
ATTRIBUTE, CHUNK, CONTIGUOUS = "f.attrs['q'] = 1", "f['z'][5] = 77", "f['x'][5] = 77"


class World:
    def __init__(self, tmp_path):
        self.tmp_path = tmp_path
        self.bucket = imports.make_bucket(tmp_path / "bucket")
        with h5py.File(tmp_path / "a.h5", "w") as f:
            f["x"] = np.arange(100)
            f.create_dataset("z", data=np.arange(100), chunks=(10,), maxshape=(None,))
        with h5py.File(tmp_path / "b.h5", "w") as f:
            f["other"] = 1
        for source, name in (("a.h5", "home/a.h5"), ("b.h5", "home/other.h5")):
            run(HSIMAGE, "-b", self.bucket, "import", tmp_path / source, name, check=True)

    def mount(self, which):
        return rwmounts.RwMount(self.bucket, self.tmp_path / which, "metadata_ttl=0")

    def drafts(self, which):
        done = run(HSIMAGE, "recover", "--journal-dir", self.tmp_path / which / "journal", "list",
                   "--json")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def drop(self, which):
        for item in self.drafts(which):
            run(HSIMAGE, "recover", "--journal-dir", self.tmp_path / which / "journal", "drop",
                "--yes", item["id"], check=True)


@pytest.fixture(name="world")
def fixture_world(tmp_path):
    return World(tmp_path)


class Writer:
    """A program that has a file open for writing, and has changed it."""

    def __init__(self, path, edit):
        self.process = subprocess.Popen([sys.executable, "-c", WRITER, path, edit],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "open\n", self.process.communicate()

    def close(self):
        """Whether close() has succeeded."""
        out, err = self.process.communicate("\n", timeout=60)
        assert (self.process.returncode == 0) == ("closed" in out), err
        return self.process.returncode == 0


def remove(world, b):
    os.unlink(b.file("home/a.h5"))


def replace(world, b):
    shutil.copyfile(world.tmp_path / "b.h5", b.file("home/a.h5"))


def rename_over(world, b):
    shutil.copyfile(world.tmp_path / "b.h5", b.file("home/t.h5"))
    os.rename(b.file("home/t.h5"), b.file("home/a.h5"))


def unlink_dataset(world, b):
    with h5py.File(b.file("home/a.h5"), "r+") as f:
        del f["z"]


@pytest.mark.parametrize("other,edit", [
    (remove, ATTRIBUTE), (remove, CHUNK), (replace, ATTRIBUTE), (replace, CONTIGUOUS),
    (rename_over, CHUNK), (unlink_dataset, CHUNK)],
    ids=lambda value: getattr(value, "__name__", ""))
def test_the_change_is_nowhere(world, other, edit):
    with world.mount("a") as a, world.mount("b") as b:
        writer = Writer(a.file("home/a.h5"), edit)
        other(world, b)
        assert not writer.close()
        [draft] = world.drafts("a")
        assert draft["file"] == "home/a.h5"
        assert "another program has" in a.log()
    assert world.drafts("a") != []
    # The next mount looks again, and leaves the draft.
    with world.mount("a") as a:
        a.released()
    assert len(world.drafts("a")) == 1
    world.drop("a")
    assert world.drafts("a") == []
    done = rwmounts.check(world.bucket)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_change_has_another_name(world):
    """The storage is the same, whatever its name is."""
    with world.mount("a") as a, world.mount("b") as b:
        writer = Writer(a.file("home/a.h5"), CHUNK)
        os.rename(b.file("home/a.h5"), b.file("home/renamed.h5"))
        assert writer.close()
        assert "is called /home/renamed.h5 now" in a.log()
        with h5py.File(b.file("home/renamed.h5"), "r") as f:
            assert f["z"][5] == 77
    assert world.drafts("a") == []
    assert rwmounts.check(world.bucket).returncode == 0


def test_a_moved_dataset_keeps_the_change(world):
    with world.mount("a") as a, world.mount("b") as b:
        writer = Writer(a.file("home/a.h5"), CHUNK)
        with h5py.File(b.file("home/a.h5"), "r+") as f:
            f.move("z", "g/moved")
        assert writer.close()
        with h5py.File(b.file("home/a.h5"), "r") as f:
            assert f["g/moved"][5] == 77


@pytest.mark.sampled
@pytest.mark.parametrize("edit", [
    "f['z'][0] += 1", "f['z'][0:2] = [f['z'][0] + 1, id(f)]", "f['s'][0] = b'other'",
    "f.attrs['n'] = 1", "f['z'].resize((101,)); f['z'][100] = 7",
    "f['z'].resize((200,)); f['z'][100:200] = 7", "f.create_group('g')"])
def test_the_second_of_two_equal_changes_is_refused(world, edit):
    """Both programs have read the same, and put the same bytes, or each its own."""
    with h5py.File(world.tmp_path / "c.h5", "w") as f:
        f.create_dataset("z", data=np.arange(100), chunks=(10,), maxshape=(None,))
        f.create_dataset("s", data=[b"zero"] * 4, chunks=(2,), dtype=h5py.string_dtype())
    run(HSIMAGE, "-b", world.bucket, "import", world.tmp_path / "c.h5", "home/c.h5", check=True)
    with world.mount("a") as a, world.mount("b") as b:
        writers = [Writer(m.file("home/c.h5"), edit) for m in (a, b)]
        assert [w.close() for w in writers] == [True, False]
        assert [len(world.drafts(which)) for which in "ab"] == [0, 1]
        with h5py.File(a.file("home/c.h5"), "r") as f:
            after = np.array(f["z"][...])
    world.drop("b")
    with world.mount("a") as a, h5py.File(a.file("home/c.h5"), "r") as f:
        assert (np.array(f["z"][...]) == after).all()
    done = rwmounts.check(world.bucket)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("is_dropped", [True, False], ids=["dropped", "left"])
def test_a_dropped_commit_does_not_come_back(world, is_dropped):
    """A commit has put chunks outside of the old shape when it fails. Later the dataset grows."""
    edit = "f['z'].resize((200,)); f['z'][100:200] = 999"
    [folder] = [at for at, _, names in os.walk(world.bucket / "db") if len(names) == 11]
    # The document is read at the open and before the first put.
    key = os.path.relpath(folder, world.bucket) + "/.dataset.json"
    a = rwmounts.RwMount(world.bucket, world.tmp_path / "a", "metadata_ttl=0",
                         f"debug_fault=fail:3+:EACCES@{key}")
    a.start()
    try:
        assert not Writer(a.file("home/a.h5"), edit).close()
        assert len(os.listdir(folder)) == 21
    finally:
        a.kill()
    if is_dropped:
        world.drop("a")
    with world.mount("b") as b:
        with h5py.File(b.file("home/a.h5"), "r+") as f:
            f["z"].resize((170,))
        with h5py.File(b.file("home/a.h5"), "r") as f:
            assert (f["z"][...] == [*range(100), *[0] * 70]).all()
    if not is_dropped:
        world.drop("a")
    with world.mount("b") as b, h5py.File(b.file("home/a.h5"), "r") as f:
        assert (f["z"][...] == [*range(100), *[0] * 70]).all()
