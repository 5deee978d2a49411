# SPDX-License-Identifier: Apache-2.0
"""The next open shows a change of the bucket; an open file keeps its version."""
import errno
import io
import multiprocessing
import os
import threading
import time

import h5py
import numpy as np
import pytest

import mkbucket
from mkbucket import INT32
from mounts import difference, wait_for

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


def test_an_unchanged_domain_keeps_its_pages(tmp_path, mount):
    """If nothing has changed, a new open reads from the kernel's page cache."""
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        d = bucket.domain("x.h5")
        ds = d.dataset(d.root, "data", INT32, [1 << 18], [1 << 18])
        ds.chunk((0,), np.arange(1 << 18, dtype="<i4"))
    m = mount(tmp_path / "bucket", "debug_count")
    path = m.file("x.h5")

    def read():
        with open(path, "rb") as f:
            return os.fstat(f.fileno()).st_ino, f.read()
    inode, first = read()
    before = m.counts()
    for _ in range(3):
        assert read() == (inode, first)
    cost = difference(before, m.counts())
    assert cost["reads"] == 0 and cost["images"] == 0
    assert cost["bytes_in"] == 0, "answers must have no bodies"
    ds.doc["lastModified"] += 1
    ds.write()
    other, second = read()
    assert other != inode and second[:8] == first[:8]


def test_chunks_of_a_large_domain_are_read_again(tmp_path, mount):
    """Chunks of a domain of many keys may change unseen. An open reads them again, but does not
    plan the file again."""
    n = 1500
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        d = bucket.domain("x.h5")
        ds = d.dataset(d.root, "data", INT32, [n], [1])
        for i in range(n):
            ds.chunk((i,), np.array([i], "<i4"))
    m = mount(tmp_path / "bucket", "debug_count")
    path = m.file("x.h5")

    def last():
        with h5py.File(path, "r") as f:
            return int(f["data"][n - 1])
    assert last() == n - 1
    before = m.counts()
    ds.chunk((n - 1,), np.array([-1], "<i4"))
    assert last() == -1
    assert difference(before, m.counts())["images"] == 0


def test_only_changed_documents_are_read_again(tmp_path, mount):
    """If one of 300 objects has changed, the open costs one listing and that document."""
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        d = bucket.domain("x.h5")
        for i in range(300):
            d.dataset(d.root, f"ds{i:03}", INT32, [8], [8]).attribute("a", INT32, [], i)
    m = mount(tmp_path / "bucket", "debug_count")
    path = m.file("x.h5")
    with h5py.File(path, "r") as f:
        assert f["ds007"].attrs["a"] == 7
    changed = d.objects[8]
    changed.doc["attributes"]["a"]["value"] = 1000
    changed.write()
    before = m.counts()
    fd = os.open(path, os.O_RDONLY)
    cost = difference(before, m.counts())
    os.close(fd)
    # The domain's document at the look-up and at the open, and the one that has changed.
    assert cost["gets"] <= 3 and cost["lists"] == 1 and cost["heads"] == 0
    with h5py.File(path, "r") as f:
        assert f["ds007"].attrs["a"] == 1000


def test_a_stale_read_ends_the_validity_of_opens(tmp_path, mount):
    """A read finds another version of a chunk, so the next open ignores metadata_ttl."""
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        d = bucket.domain("x.h5")
        ds = d.dataset(d.root, "data", INT32, [8192], [4096])
        ds.chunk((0,), np.zeros(4096, "<i4"))
        ds.chunk((1,), np.zeros(4096, "<i4"))
    path = mount(tmp_path / "bucket", "metadata_ttl=1000", "cache_size=0").file("x.h5")
    with open(path, "rb") as f:
        before = f.read()
        ds.chunk((1,), np.ones(4096, "<i4"))
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        with pytest.raises(OSError) as caught:
            os.pread(f.fileno(), len(before), 0)
            os.pread(f.fileno(), 4096, len(before) - 4096)
        assert caught.value.errno == errno.ESTALE
    with h5py.File(path, "r") as f:
        assert f["data"][()].sum() == 4096


def open_often(path, seconds, failures):
    """Runs in a separate process; puts the errors of its opens into the queue."""
    end, failed = time.monotonic() + seconds, []
    while time.monotonic() < end:
        try:
            os.close(os.open(path, os.O_RDONLY))
        except OSError as e:
            failed.append(str(e))
    failures.put(failed[:100])


@pytest.mark.sampled
@pytest.mark.parametrize("options", [(), ("metadata_ttl=0",)], ids=["default", "no-ttl"])
def test_rewriting_fails_no_open(tmp_path, mount, options):
    """With hundreds of versions a second, each open shows one whole version, and none that is older
    than the one in the bucket when the open began."""
    values, seconds, openers = 3000, 3, 8       # 3,000 values of four bytes take several pages
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        d = bucket.domain("x.h5")
        d.root.attribute("v", INT32, [values], [0] * values)
    path = mount(tmp_path / "bucket", *options).file("x.h5")
    now, wrong, opens, began = [0], [], [0], time.monotonic()

    def goes_on():
        """For some seconds. On a busy machine also until enough has happened."""
        passed = time.monotonic() - began
        return passed < seconds or (passed < 60 and not (opens[0] > 5 and now[0] > 50))

    def look():
        while goes_on():
            least = now[0]
            with open(path, "rb") as f:
                data = f.read()
            with h5py.File(io.BytesIO(data), "r") as f:
                seen = f.attrs["v"][()]
            opens[0] += 1
            if (seen != seen[0]).any() or seen[0] < least:
                wrong.append(f"{set(seen.tolist())} instead of {least} or later")
    failures = multiprocessing.Queue()
    processes = [multiprocessing.Process(target=open_often, args=(path, seconds, failures))
                 for _ in range(openers)]
    for process in processes:
        process.start()
    reader = threading.Thread(target=look)
    reader.start()
    while goes_on():
        d.root.doc["attributes"]["v"]["value"] = [now[0] + 1] * values
        d.root.write()
        now[0] += 1
        time.sleep(0.001)
    reader.join()
    failed = [failures.get(timeout=30) for _ in processes]
    for process in processes:
        process.join()
    assert not wrong, f"{len(wrong)} of {opens[0]} opens: {wrong[:3]}"
    assert not sum(failed, []), failed
    assert opens[0] > 5 and now[0] > 50
