# SPDX-License-Identifier: Apache-2.0
"""The next open shows what has changed in a Zarr store; an open file keeps its version. Stores with
more keys than a page of a listing has."""
import errno
import os
import shutil
import threading
import time

import h5py
import numpy as np
import pytest

import mkbucket
import mounts
from mounts import difference
from rwmounts import RwMount, opens
from zarr_write import Store, join

CHUNK = 2048                                      # elements: each chunk has pages of its own
NUMBERS = np.arange(4 * CHUNK, dtype="<i4")
MANY = 1100                                       # more keys than a page of a listing has


class Scene:
    """A store with the arrays "data", whose last chunk is not stored, and "other", in a mount."""

    def __init__(self, root, version, many=False, consolidated=False):
        self.store = Store(root / "x.zarr", version, consolidated, {"title": "old"})
        with self.store:
            self.data = self.store.array("data", NUMBERS, chunks=(CHUNK,), fill=-1, absent=[(3,)])
            self.store.array("g/other", NUMBERS, chunks=(CHUNK,))
            if many:
                self.store.array("many", np.arange(MANY, dtype="i1"), chunks=(1,))
        self.mount = None

    def document(self, path):
        return join(path, "zarr.json" if self.store.version == 3 else ".zarray")

    def chunk(self, i):
        return join("data", self.data.key((i,)))

    def path(self):
        return self.mount.file("x.zarr.nc")

    def values(self, name="data"):
        with h5py.File(self.path(), "r") as f:
            return f[name][()]

    def inode(self):
        fd = os.open(self.path(), os.O_RDONLY)
        try:
            return os.fstat(fd).st_ino
        finally:
            os.close(fd)


class OpenFile:
    """The open file of a scene, and a function that reads a chunk of "data" in it."""

    def __init__(self, scene):
        with h5py.File(scene.path(), "r") as f:
            self.at = [f["data"].id.get_chunk_info(i).byte_offset for i in range(4)]
        self.fd = os.open(scene.path(), os.O_RDONLY)

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        os.close(self.fd)

    def read(self, i):
        return np.frombuffer(os.pread(self.fd, CHUNK * 4, self.at[i]), "<i4")

    def fails(self, i):
        with pytest.raises(OSError) as raised:
            self.read(i)
        return errno.errorcode[raised.value.errno]


@pytest.fixture(name="version", params=(2, 3), ids="v{}".format)
def fixture_version(request):
    return request.param


@pytest.fixture(name="scene", params=[False, True], ids=["small", "large"])
def fixture_scene(request, version, tmp_path, mount):
    scene = Scene(tmp_path / "bucket", version, many=request.param)
    scene.mount = mount(tmp_path / "bucket")
    return scene


# ---- the next open ----

def test_an_unchanged_store_keeps_its_inode(scene):
    assert scene.inode() == scene.inode()
    assert (scene.values("g/other") == NUMBERS).all()
    assert scene.inode() == scene.inode()


def test_a_changed_document(scene):
    before = scene.inode()
    scene.store.group("", {"title": "new"})
    scene.store.write_documents()
    with h5py.File(scene.path(), "r") as f:
        assert f.attrs["title"] == b"new"
    assert scene.inode() != before


def test_a_new_array_and_one_that_is_gone(scene):
    before = scene.inode()
    scene.store.array("g/late", NUMBERS[:3])
    del scene.store.documents[scene.document("data")]
    scene.store.delete(scene.document("data"))
    scene.store.write_documents()
    with h5py.File(scene.path(), "r") as f:
        assert "data" not in f and sorted(set(f["g"]) - {"_Anonymous_Dim_3"}) == ["late", "other"]
        assert f["g/late"][()].tolist() == [0, 1, 2]
    assert scene.inode() != before


@pytest.mark.parametrize("version", (2, 3))
def test_keys_that_are_written_through_the_directory(tmp_path, version):
    scene = Scene(tmp_path / "bucket", version)
    with RwMount(tmp_path / "bucket", tmp_path) as scene.mount:
        inodes = [scene.inode()]
        new = scene.data.encoded((1,))
        with open(scene.mount.file("x.zarr", scene.chunk(0)), "wb") as f:
            f.write(new)
        assert scene.values()[:CHUNK].tolist() == NUMBERS[CHUNK:2 * CHUNK].tolist()
        inodes.append(scene.inode())
        os.unlink(scene.mount.file("x.zarr", scene.chunk(0)))
        assert (scene.values()[:CHUNK] == -1).all()
        inodes.append(scene.inode())
        with open(scene.mount.file("x.zarr", scene.chunk(3)), "wb") as f:
            f.write(new)
        assert scene.values()[3 * CHUNK:].tolist() == NUMBERS[CHUNK:2 * CHUNK].tolist()
        inodes.append(scene.inode())
        assert len(set(inodes)) == 4


@pytest.mark.parametrize("many", [False, True], ids=["small", "large"])
def test_consolidated_metadata_that_are_stale(tmp_path, mount, version, many):
    """A small store shows the arrays that exist. A larger one believes the metadata."""
    scene = Scene(tmp_path / "bucket", version, many, consolidated=True)
    scene.store.array("late", NUMBERS[:3])
    scene.store.put(scene.document("late"), scene.store.documents[scene.document("late")])
    scene.store.delete(scene.document("g/other"))
    if many:
        scene.store.delete(scene.document("data"))
    scene.mount = mount(tmp_path / "bucket")
    with h5py.File(scene.path(), "r") as f:
        assert ("late" in f, "other" in f["g"]) == ((False, True) if many else (True, False))
        assert (f["data"][:CHUNK] == NUMBERS[:CHUNK]).all()
        if many:
            assert (f["g/other"][()] == NUMBERS).all()
            with pytest.raises(OSError):    # not the fill value: the array is gone
                f["data"][3 * CHUNK:]


# ---- open files ----

def test_an_open_file_keeps_its_version(scene):
    with OpenFile(scene) as old:
        first = old.read(0)
        scene.store.group("", {"title": "new"})
        scene.store.write_documents()
        assert (old.read(0) == first).all() and (first == NUMBERS[:CHUNK]).all()
        assert (old.read(2) == NUMBERS[2 * CHUNK:3 * CHUNK]).all()


@pytest.mark.parametrize("how", ["changed", "vanished"])
def test_a_chunk_that_changes_under_an_open_file(tmp_path, mount, version, how):
    """Its version is that of the open. The other chunks stay."""
    scene = Scene(tmp_path / "bucket", version)
    scene.mount = mount(tmp_path / "bucket")
    with OpenFile(scene) as file:
        if how == "changed":
            scene.store.put(scene.chunk(1), scene.data.encoded((0,)))
        else:
            scene.store.delete(scene.chunk(1))
        assert file.fails(1) == "ESTALE"
        assert (file.read(2) == NUMBERS[2 * CHUNK:3 * CHUNK]).all()
    expected = NUMBERS[:CHUNK] if how == "changed" else np.full(CHUNK, -1)
    assert (scene.values()[CHUNK:2 * CHUNK] == expected).all()


@pytest.mark.parametrize("scene", [True], ids=["large"], indirect=True)
def test_a_chunk_that_is_not_stored(scene):
    """It has the fill value as long as the document of its array exists."""
    with OpenFile(scene) as file:
        assert (file.read(3) == -1).all()
    scene.store.group("", {"title": "new"})     # a version of which no chunk is cached
    scene.store.write_documents()
    with OpenFile(scene) as file:
        scene.store.delete(scene.document("data"))
        assert file.fails(3) == "ESTALE"
        time.sleep(1.1)                 # for so long an answer is valid
        assert file.fails(3) == "ESTALE"


# ---- more keys than a page has ----

@pytest.fixture(name="large", params=[True, False], ids=["consolidated", "documents"])
def fixture_large(request, version, tmp_path, mount):
    store = Store(tmp_path / "bucket/x.zarr", version, request.param, {"title": "large"})
    with store:
        store.array("many", np.arange(MANY, dtype="<i2"), chunks=(1,))
        for path in "a/x", "a/b/c/y", "a/b/z":
            store.array(path, np.arange(5))
    m = mount(tmp_path / "bucket", "debug_count")
    m.consolidated = request.param
    return m


def requests_of(m, action):
    before = m.counts()
    action()
    cost = difference(before, m.counts())
    return {key: cost[key] for key in ("gets", "heads", "lists")}


def test_a_store_that_cannot_be_listed_as_a_whole(large, version):
    """No key of an array is listed: consolidated metadata cost one request, and otherwise a listing
    for each group and the documents that its members may have. The second open reads nothing."""
    path, inodes = large.file("x.zarr.nc"), []

    def open_it():
        fd = os.open(path, os.O_RDONLY)
        inodes.append(os.fstat(fd).st_ino)
        os.close(fd)
    first = requests_of(large, open_it)
    again = [requests_of(large, open_it) for _ in range(2)]
    look_up, groups, nodes = 4, 4, 8
    per_node = 1 if version == 3 else 3
    assert first["lists"] <= 3 + (0 if large.consolidated else groups)
    assert first["gets"] <= look_up + 1 + (0 if large.consolidated else nodes * per_node)
    assert first["heads"] == 0
    for cost in again:
        # The groups are listed for new members, and nodes are asked for new documents.
        assert cost["lists"] <= (0 if large.consolidated else groups) and cost["gets"] <= 1, again
        assert cost["heads"] <= (0 if large.consolidated else nodes * per_node)
    assert len(set(inodes)) == 1
    with h5py.File(path, "r") as f:
        assert f.attrs["title"] == b"large"
        assert f["many"][()].tolist() == list(range(MANY))
        for name in "a/x", "a/b/c/y", "a/b/z":
            assert f[name][()].tolist() == [0, 1, 2, 3, 4]
    assert "a/x" not in large.log()


def test_groups_without_documents_in_a_large_store(tmp_path, mount):
    """In v2 programs leave the documents of groups away."""
    with Store(tmp_path / "bucket/x.zarr", 2) as store:
        store.array("many", np.arange(MANY, dtype="i1"), chunks=(1,))
        store.array("a/b/x", np.arange(5))
        for key in "a/.zgroup", "a/b/.zgroup":
            del store.documents[key]
    m = mount(tmp_path / "bucket")
    with h5py.File(m.file("x.zarr.nc"), "r") as f:
        assert f["a/b/x"][()].tolist() == [0, 1, 2, 3, 4]


def test_a_new_array_in_a_large_store(tmp_path, mount):
    """Neither a listing of all keys nor consolidated metadata show it."""
    scene = tmp_path / "bucket/x.zarr"
    with Store(scene, 2) as store:
        store.array("many", np.arange(MANY, dtype="i1"), chunks=(1,))
    m = mount(tmp_path / "bucket")
    assert opens(m.file("x.zarr.nc"))
    shutil.copytree(scene / "many", scene / "new")
    with h5py.File(m.file("x.zarr.nc"), "r") as f:
        assert "new" in f
    (scene / "new/.zattrs").write_text('{"late": 1}')
    with h5py.File(m.file("x.zarr.nc"), "r") as f:
        assert f["new"].attrs["late"].tolist() == [1]


def test_a_separator_that_only_the_keys_show(tmp_path, mount):
    """Old writers used "/" without saying so in the document."""
    with Store(tmp_path / "bucket/x.zarr", 2) as store:
        store.array("many", np.arange(MANY, dtype="i1"), chunks=(1,))
        store.array("a", np.arange(1600).reshape(40, 40), chunks=(1, 40), separator="/")
        del store.documents["a/.zarray"]["dimension_separator"]
    shutil.rmtree(tmp_path / "bucket/x.zarr/a/39")
    m = mount(tmp_path / "bucket")
    with h5py.File(m.file("x.zarr.nc"), "r") as f:
        values = f["a"][()]
    assert (values[:39] == np.arange(1560).reshape(39, 40)).all() and (values[39] == 0).all()


# ---- a bucket that fails ----

@pytest.mark.parametrize("fault", ["EIO", "EACCES"])
@pytest.mark.parametrize("many", [False, True], ids=["small", "large"])
def test_a_document_that_cannot_be_read(tmp_path, mount, fault, many):
    """The file never lacks an array for this reason: opening it fails, and the next open tries
    again."""
    scene = Scene(tmp_path / "bucket", 3, many)
    scene.mount = mount(tmp_path / "bucket", f"debug_fault=fail:1:{fault}@*/data/zarr.json")
    with pytest.raises(OSError) as raised:
        os.close(os.open(scene.path(), os.O_RDONLY))
    assert errno.errorcode[raised.value.errno] == fault
    assert "data/zarr.json" in scene.mount.log()
    assert mounts.wait_for(lambda: opens(scene.path()), 10)
    assert (scene.values()[:CHUNK] == NUMBERS[:CHUNK]).all()


@pytest.mark.parametrize("fault", ["EIO", "ETIMEDOUT"])
def test_a_store_whose_listing_fails_has_not_vanished(tmp_path, mount, fault):
    scene = Scene(tmp_path / "bucket", 2)
    scene.mount = mount(tmp_path / "bucket", f"debug_fault=fail:1+:{fault}@x.zarr/")
    with pytest.raises(OSError) as raised:
        os.stat(scene.path())
    assert errno.errorcode[raised.value.errno] == fault
    assert "x.zarr/: injected failure" in scene.mount.log()
    with pytest.raises(FileNotFoundError):
        os.stat(scene.mount.file("y.zarr.nc"))


def test_a_store_that_may_not_be_listed(tmp_path, mount):
    """The documents that mark a store are looked for one by one, and consolidated metadata show
    the rest. Without them, opening the file fails."""
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        bucket.domain("d.h5")
    Scene(tmp_path / "bucket", 3, consolidated=True)
    with Store(tmp_path / "bucket/y.zarr", 3) as store:
        store.array("data", NUMBERS)
    m = mount(tmp_path / "bucket", "debug_fault=fail:1+:EACCES@[xy].zarr/")
    with h5py.File(m.file("x.zarr.nc"), "r") as f:
        assert (f["data"][:3 * CHUNK] == NUMBERS[:3 * CHUNK]).all()
        assert (f["data"][3 * CHUNK:] == -1).all()
    with pytest.raises(PermissionError):
        os.close(os.open(m.file("y.zarr.nc"), os.O_RDONLY))


@pytest.mark.parametrize("fault", ["EIO", "EACCES"])
def test_a_mark_that_cannot_be_requested(tmp_path, mount, fault):
    """The store was converted in place, and has so many members that its marks are requested. It is
    not shown as what it was before."""
    for version in 2, 3:
        with Store(tmp_path / "bucket/x.zarr", version) as store:
            for i in range(70):
                store.group(f"g{i:02}")
    Scene(tmp_path / "bucket/other", 3)
    m = mount(tmp_path / "bucket", f"debug_fault=fail:1+:{fault}@x.zarr/zarr.json")
    with pytest.raises(OSError) as raised:
        os.close(os.open(m.file("x.zarr.nc"), os.O_RDONLY))
    assert errno.errorcode[raised.value.errno] == fault
    assert "x.zarr.nc" not in os.listdir(m.path)


def test_a_refused_object_with_the_name_of_a_file(tmp_path, mount):
    """The object has the name, so the store is not shown in its place."""
    scene = Scene(tmp_path / "bucket", 3)
    (tmp_path / "bucket/x.zarr.nc").write_bytes(b"an object")
    scene.mount = mount(tmp_path / "bucket", "debug_fault=fail:1+:EACCES@x.zarr.nc")
    for _ in range(2):
        with pytest.raises(PermissionError):
            os.close(os.open(scene.path(), os.O_RDONLY))
        os.listdir(scene.mount.path)


def test_a_refused_document_of_hsds(tmp_path, mount):
    """It does not exist, because the listing does not show it. If there is one, the store may be a
    domain, so it cannot be opened."""
    Scene(tmp_path / "bucket", 3)
    with Store(tmp_path / "bucket/y.zarr", 3) as store:
        store.put(".domain.json", {})
    m = mount(tmp_path / "bucket", "debug_fault=fail:1+:EACCES@*/.domain.json")
    with h5py.File(m.file("x.zarr.nc"), "r") as f:
        assert (f["data"][:CHUNK] == NUMBERS[:CHUNK]).all()
    assert "x.zarr.nc" in os.listdir(m.path) and "y.zarr.nc" not in os.listdir(m.path)
    with pytest.raises(PermissionError):
        os.stat(m.file("y.zarr.nc"))


def test_the_cache_on_disk(tmp_path, mount):
    """A later mount with it shows the version that the bucket has."""
    scene = Scene(tmp_path / "bucket", 2)
    for expected in (NUMBERS[:CHUNK], NUMBERS[:CHUNK], NUMBERS[CHUNK:2 * CHUNK]):
        if expected[0]:
            scene.store.put(scene.chunk(0), scene.data.encoded((1,)))
        scene.mount = mount(tmp_path / "bucket", f"cache_dir={tmp_path / 'cache'}")
        assert (scene.values()[:CHUNK] == expected).all()
        scene.mount.stop()


@pytest.mark.parametrize("scene", [True], ids=["large"], indirect=True)
def test_missing_chunks_can_be_errors(scene, mount):
    scene.mount = mount(scene.mount.bucket, "missing_chunks=error")
    with OpenFile(scene) as file:
        assert file.fails(3) == "EIO"
        assert (file.read(2) == NUMBERS[2 * CHUNK:3 * CHUNK]).all()
    assert f"chunk x.zarr/{scene.chunk(3)}: it is not stored" in scene.mount.log()


@pytest.mark.parametrize("scene", [True], ids=["large"], indirect=True)
def test_forbidden_chunks_can_count_as_missing(scene, mount):
    fault = f"debug_fault=fail:1+:EACCES@*/{scene.chunk(3)}"
    for options, expected in ((), "EACCES"), (("forbidden_chunks=absent",), None):
        scene.mount = mount(scene.mount.bucket, fault, *options)
        with OpenFile(scene) as file:
            if expected:
                assert file.fails(3) == expected
            else:
                assert (file.read(3) == -1).all()
            assert (file.read(2) == NUMBERS[2 * CHUNK:3 * CHUNK]).all()
    assert f"chunk x.zarr/{scene.chunk(3)} is forbidden, and counts as not stored" in \
        scene.mount.log()


# ---- writers ----

def test_a_store_that_is_written_while_it_is_read(tmp_path, mount, version):
    """A writer replaces all chunks again and again. A reader finds each chunk as it was at some
    moment, or an error that says so, and the next open works."""
    scene = Scene(tmp_path / "bucket", version)
    scene.mount = mount(tmp_path / "bucket")
    stop = threading.Event()
    errors, seen = set(), set()

    def put(value):
        scene.data.data[:] = value
        for i in range(3):
            scene.store.put(scene.chunk(i), scene.data.encoded((i,)))

    def write():
        value = 1
        while not stop.is_set():
            value += 1
            put(value)
    put(1)
    writer = threading.Thread(target=write)
    writer.start()
    try:
        end = time.monotonic() + 2
        while time.monotonic() < end:
            try:
                with OpenFile(scene) as file:
                    for i in range(3):
                        values = set(file.read(i).tolist())
                        assert len(values) == 1, values
                        seen |= values
            except OSError as e:
                errors.add(e.errno)
    finally:
        stop.set()
        writer.join()
    assert errors <= {errno.ESTALE} and len(seen) > 3
    assert set(scene.values()[:3 * CHUNK].tolist()) == {scene.data.data[0]}
