# SPDX-License-Identifier: Apache-2.0
"""What changes in the bucket is seen by the next open; an open file stays as it was."""
import os

import h5py
import numpy as np
import pytest

import mkbucket
from mkbucket import INT32
from mounts import wait_for

OLD, NEW = np.arange(8, dtype="<i4"), np.arange(8, dtype="<i4") * 100


class Scene:
    def __init__(self, bucket, mount):
        self.bucket, self.mount = bucket, mount
        self.domain = bucket.domains[0]
        self.data = self.domain.objects[1]
        self.path = mount.file("x.h5")

    def change_attribute(self, value):
        self.data.doc["attributes"]["a"]["value"] = value
        self.data.doc["lastModified"] += 1
        self.data.write()

    def look(self):
        with h5py.File(self.path, "r") as f:
            return int(f["data"].attrs["a"]), f["data"][()].tolist()

    def inode(self):
        fd = os.open(self.path, os.O_RDONLY)
        try:
            return os.fstat(fd).st_ino
        finally:
            os.close(fd)


@pytest.fixture
def scene(tmp_path, mount):
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        d = bucket.domain("x.h5")
        ds = d.dataset(d.root, "data", INT32, [8], [8])
        ds.attribute("a", INT32, [], 1)
        ds.chunk((0,), OLD)
    return Scene(bucket, mount(tmp_path / "bucket"))


def test_a_changed_attribute_is_seen_by_the_next_open(scene):
    assert scene.look() == (1, OLD.tolist())
    before = scene.inode()
    assert scene.inode() == before
    scene.change_attribute(2)
    assert scene.look() == (2, OLD.tolist())
    assert scene.inode() != before


def test_a_changed_chunk_is_seen_by_the_next_open(scene):
    assert scene.look() == (1, OLD.tolist())
    scene.data.chunk((0,), NEW)
    assert scene.look() == (1, NEW.tolist())


def test_an_open_file_keeps_its_snapshot(scene):
    with open(scene.path, "rb") as old:
        first = old.read(64)
        scene.change_attribute(3)
        assert scene.look()[0] == 3
        old.seek(0)
        rest = old.read()
        assert rest[:64] == first
        with open(scene.path, "rb") as new:
            assert new.read() != rest


def test_an_unchanged_domain_keeps_its_inode(scene):
    assert len({scene.inode() for _ in range(5)}) == 1


def test_a_new_domain_appears(scene):
    assert os.listdir(scene.mount.path) == ["x.h5"]
    made = scene.bucket.domain("later.h5")
    made.write()
    assert wait_for(lambda: "later.h5" in os.listdir(scene.mount.path), 15)
    with h5py.File(scene.mount.file("later.h5"), "r") as f:
        assert list(f) == []


def test_a_removed_domain_disappears(scene):
    scene.look()
    os.unlink(os.path.join(scene.bucket.root, "x.h5", ".domain.json"))
    assert wait_for(lambda: not os.path.exists(scene.path), 15)


def test_a_replaced_plain_object_is_seen(scene):
    scene.bucket.put("plain", b"one")
    path = scene.mount.file("plain")
    assert wait_for(lambda: os.path.exists(path), 15)
    with open(path, "rb") as f:
        assert f.read() == b"one"
    scene.bucket.put("plain", b"twotwo")

    def seen():
        with open(path, "rb") as f:
            return f.read() == b"twotwo"
    assert wait_for(seen, 15)
