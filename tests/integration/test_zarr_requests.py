# SPDX-License-Identifier: Apache-2.0
"""What Zarr stores cost: requests by kind, rounds, and memory."""
import os

import h5py
import numpy as np
import pytest

from mounts import difference, run
from test_requests import assert_rounds
from zarr_write import Store

MIB = 1 << 20
GROUPS, ARRAYS = 10, 10                 # arrays in each group


@pytest.fixture(scope="module", name="version", params=(2, 3), ids="v{}".format)
def fixture_version(request):
    return request.param


def spent(m, action):
    before = m.counts()
    action()
    cost = difference(before, m.counts())
    cost["all"] = cost["gets"] + cost["heads"] + cost["lists"]
    return cost


def open_close(path):
    os.close(os.open(path, os.O_RDONLY))


# ---- opening ----

@pytest.fixture(scope="module", name="hundred", params=(True, False),
                ids=("consolidated", "documents"))
def fixture_hundred(request, version, tmp_path_factory):
    """A hundred arrays of one small chunk each. All keys are on one page of a listing."""
    root = tmp_path_factory.mktemp("hundred")
    with Store(root / "x.zarr", version, request.param, {"title": "hundred"}) as store:
        for i in range(GROUPS * ARRAYS):
            store.array(f"g{i // ARRAYS}/a{i % ARRAYS}", np.arange(10, dtype="<f4"), names=["x"],
                        codecs=["zlib"], attributes={"units": "m"})
    store.bucket, store.consolidated = root, request.param
    store.file = "x.zarr.nc"
    return store


def list_all(path):
    found = []

    def visit(name, obj):
        if isinstance(obj, h5py.Dataset) and obj.attrs.get("units") == b"m":
            found.append(name)
    with h5py.File(path, "r") as f:
        f.visititems(visit)
    assert len(found) == GROUPS * ARRAYS


@pytest.mark.parametrize("program", [list_all, ("ncdump", "-h"), ("h5dump", "-H")],
                         ids=("h5py", "ncdump", "h5dump"))
def test_listing_a_hundred_arrays(hundred, mount, program):
    """Documents are read once, and no chunk is, although the kernel reads ahead."""
    m = mount(hundred.bucket, "debug_count")
    path = m.file(hundred.file)
    cost = spent(m, lambda: program(path) if callable(program) else
                 run(*program, path, check=True))
    documents = 0 if hundred.consolidated else len(hundred.documents)
    assert cost["gets"] + cost["heads"] <= 12 + documents and cost["lists"] <= 8, cost
    assert cost["cache_loads"] == 0
    open_close(path)    # the name is valid for a second, which a busy machine may have exceeded
    again = spent(m, lambda: open_close(path))
    assert again["gets"] <= 1 and again["lists"] <= 1 and not again["heads"], again
    assert again["bytes_in"] == 0


@pytest.mark.parametrize("consolidated", (True, False), ids=("consolidated", "documents"))
def test_rounds_of_an_open(version, consolidated, tmp_path, mount):
    """Those of the documents, after the look-up. The second open has one."""
    with Store(tmp_path / "bucket/x.zarr", version, consolidated) as store:
        for i in range(4):
            store.array(f"g{i // 2}/a{i}", np.arange(10, dtype="<f4"), names=["x"])
    store.root = tmp_path / "bucket"        # of assert_rounds()
    assert_rounds(store, mount, ("stat=estimate", "metadata_ttl=10"),
                  (lambda m: os.stat(m.file("x.zarr.nc")), None),
                  (lambda m: open_close(m.file("x.zarr.nc")), 2 if consolidated else 3),
                  (lambda m: open_close(m.file("x.zarr.nc")), 1))


def test_the_round_of_a_look_up(version, tmp_path, mount):
    """The listing of a store is sent at once, because the survey at the mount has found one."""
    with Store(tmp_path / "bucket/x.zarr", version) as store:
        store.array("a", np.arange(3))
    store.root = tmp_path / "bucket"
    cost = assert_rounds(store, mount, ("stat=estimate",),
                         (lambda m: os.stat(m.file("x.zarr.nc")), 1))
    assert cost["lists"] == 2 and cost["gets"] == 3, cost


def test_the_rounds_of_a_listing_of_wide_stores(version, tmp_path, mount):
    """The marks of all prefixes with many members are requested at once."""
    for i in range(4):
        with Store(tmp_path / f"bucket/{i}.zarr", version) as store:
            for k in range(70):
                store.group(f"g{k:02}")
    store.root = tmp_path / "bucket"
    assert_rounds(store, mount, ("stat=estimate", "metadata_ttl=0"),
                  (lambda m: os.listdir(m.path), 5))


# ---- chunks ----

def test_twenty_chunks_of_a_series(version, tmp_path, mount):
    n, side = 20, 256
    with Store(tmp_path / "bucket/x.zarr", version, True) as store:
        store.array("data", np.zeros((n, side, side), "<f4"), chunks=(1, side, side),
                    codecs=["zstd"], names=["time", "y", "x"])
        store.array("time", np.arange(float(n)), names=["time"])
    m = mount(tmp_path / "bucket", "debug_count")

    def read():
        with h5py.File(m.file("x.zarr.nc"), "r") as f:
            assert f["data"][:, 5, 7].shape == (n,)
    cost = spent(m, read)
    assert cost["gets"] + cost["heads"] <= 32 and cost["lists"] <= 8, cost
    assert cost["cache_loads"] <= n + 1


def open_grid(root, mount, version, chunks, stored):
    """Returns the requests of an open, of a stored element and of one that is not stored; and the
    memory of the open."""
    with Store(root / "x.zarr", version, True) as store:
        a = store.array("data", np.zeros(1024, "<i4"), fill=-1, absent=[(0,)])
        document = store.documents["data/zarr.json" if version == 3 else "data/.zarray"]
        document["shape"] = [1024 * chunks]
        for i in range(stored):
            store.put(f"data/{a.key((i * (chunks // stored),))}", bytes(4096))
    m = mount(root, "debug_count")
    idle = m.memory()
    f = None

    def open_file():
        nonlocal f
        f = h5py.File(m.file("x.zarr.nc"), "r")
        assert f["data"].shape == (1024 * chunks,)
    costs = [spent(m, open_file)]
    memory = m.memory() - idle
    for chunk, value in (((stored - 1) * (chunks // stored), 0), (chunks - 1, -1)):
        costs.append(spent(m, lambda c=chunk, v=value: f["data"][1024 * c] == v or pytest.fail()))
    f.close()
    m.stop()
    return [{k: cost[k] for k in ("gets", "heads", "lists")} for cost in costs], memory


@pytest.mark.parametrize("stored", (8, 1200), ids=("listed", "unlisted"))
def test_the_number_of_chunks_does_not_matter(version, tmp_path, mount, stored):
    """No request lists the chunks, and memory does not grow with their number."""
    few, memory_few = open_grid(tmp_path / "few", mount, version, 2 * stored, stored)
    many, memory_many = open_grid(tmp_path / "many", mount, version, 10_000_000, stored)
    assert many[0] == few[0]
    assert many[0]["gets"] + many[0]["heads"] <= 12 and many[0]["lists"] <= 4
    assert memory_many < memory_few + MIB
    for cost in many[1:]:
        # If all chunks are known, the stored ones are adjacent, and the kernel reads ahead.
        assert cost["lists"] == 0 and cost["gets"] <= (stored if stored < 1000 else 1)


# ---- many stores ----

def test_walking_a_directory_of_stores(version, tmp_path, mount):
    """A listing and the document of each store, besides the listing that finds it."""
    n = 200
    for i in range(n):
        with Store(tmp_path / f"bucket/{i:03}.zarr", version, True) as store:
            store.array("a", np.arange(7 * i), chunks=(i + 1,), names=["x"])
    m = mount(tmp_path / "bucket", "debug_count", "metadata_ttl=60")
    cost = spent(m, lambda: run("ls", "-lR", m.path, check=True))
    assert cost["gets"] + cost["heads"] <= 2 * n + 20 and cost["lists"] <= 2 * n + 20, cost
    sizes = {name: os.stat(m.file(name)).st_size for name in os.listdir(m.path)}
    assert len(sizes) == n and len(set(sizes.values())) > n // 4
    for name, size in sizes.items():
        with open(m.file(name), "rb") as f:
            assert os.fstat(f.fileno()).st_size == size, name


# ---- memory ----

@pytest.mark.parametrize("codecs, order", [([], "C"), (["zstd"], "C"), (["blosc-lz4-1"], "C"),
                                           (["shuffle", "zlib"], "F"), (["zstd", "crc32c"], "F")])
def test_memory_of_a_chunk(version, tmp_path, mount, codecs, order):
    """At most the stored bytes, and twice the decoded ones."""
    side = 2048 if "crc32c" not in codecs else 512
    data = np.random.default_rng(1).integers(0, 1 << 20, (side, side), "<i4")
    with Store(tmp_path / "bucket/x.zarr", version, True) as store:
        a = store.array("data", data, chunks=(side, side), codecs=codecs, order=order)
    m = mount(tmp_path / "bucket")
    path = m.file("x.zarr.nc")
    open_close(path)
    before = m.memory()
    if m.memory_peak() is None:
        pytest.skip("a sanitizer takes memory, too")
    with h5py.File(path, "r") as f:
        assert f["data"][side - 1, 0] == data[side - 1, 0]
    stored = os.path.getsize(store.path("data", a.key((0, 0))))
    assert m.memory_peak() - before <= stored + 2 * data.nbytes + 2 * MIB


def test_memory_of_a_large_consolidated_document(version, tmp_path, mount):
    """At most 12 times its size while it is read, and less afterwards."""
    arrays = 8000
    with Store(tmp_path / "bucket/x.zarr", version, True) as store:
        a = store.array("first", np.zeros(10, "<f4"), absent=[(0,)], names=["x"], codecs=["zstd"])
        text = {"units": "m s-1", "comment": "no chunk of this array is stored. " * 16}
        for i in range(arrays):
            if version == 3:
                store.documents[f"a{i}/zarr.json"] = {**a.document(), "attributes": text}
            else:
                store.documents[f"a{i}/.zarray"] = a.document()
                store.documents[f"a{i}/.zattrs"] = {**text, "_ARRAY_DIMENSIONS": ["x"]}
        store.write_documents(True)
        store.write_documents = lambda: None
    size = os.path.getsize(store.path("zarr.json" if version == 3 else ".zmetadata"))
    assert size > 5 * MIB
    for i in range(1001):       # more keys than a page of a listing: only the document counts
        store.put(f"first/unused/{i}", b"")
    m = mount(tmp_path / "bucket")
    before = m.memory()
    if m.memory_peak() is None:
        pytest.skip("a sanitizer takes memory, too")
    with h5py.File(m.file("x.zarr.nc"), "r") as f:
        assert len(f) > arrays
        assert m.memory_peak() - before <= 12 * size
        assert m.memory() - before <= 1.25 * 1024 * arrays
