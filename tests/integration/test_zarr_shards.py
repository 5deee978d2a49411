# SPDX-License-Identifier: Apache-2.0
"""What shards of Zarr stores cost: requests, bytes and memory; what the disk cache keeps of them;
and what `hsimage` says of them."""
import os
import random
import re
import struct
import time

import h5py
import numpy as np
import pytest

from mounts import HSIMAGE, difference, run
from zarr_write import Shards, Store

KIB, MIB = 1 << 10, 1 << 20
ROW = 256                                   # elements of 4 bytes: an inner chunk of 1 KiB


def rows(n):
    return np.arange(n * ROW, dtype="<i4").reshape(n, ROW)


def write(root, n, per_shard, **how):
    """n inner chunks of 1 KiB, without a checksum, which takes long to compute here."""
    with Store(root / "bucket/x.zarr", 3, True) as store:
        store.array("data", rows(n), chunks=(per_shard, ROW),
                    shards=[Shards((1, ROW), checksum=False, keep_fill=True, **how)])
    return store


def spent(m, action):
    before = m.counts()
    action()
    return difference(before, m.counts())


def opened(m):
    """An open file whose metadata have been read."""
    f = h5py.File(m.file("x.zarr.nc"), "r")
    assert f["data"].shape[1] == ROW
    return f


def test_one_inner_chunk(tmp_path, mount):
    """The index, and what the kernel reads ahead."""
    write(tmp_path, 4096, 4096)
    m = mount(tmp_path / "bucket", "debug_count")
    with opened(m) as f:
        cost = spent(m, lambda: f["data"][2000, 5] == rows(4096)[2000, 5] or pytest.fail())
    assert cost["gets"] <= 6 and cost["heads"] == cost["lists"] == 0, cost
    assert cost["bytes_in"] <= 600_000, cost


def test_a_series_over_shards(tmp_path, mount):
    write(tmp_path, 1000, 100)
    m = mount(tmp_path / "bucket", "debug_count")
    with opened(m) as f:
        cost = spent(m, lambda: f["data"][:, 7].tolist() == rows(1000)[:, 7].tolist() or
                     pytest.fail())
    assert cost["gets"] <= 100 and cost["heads"] == cost["lists"] == 0, cost
    assert cost["bytes_in"] <= 3_000_000, cost


@pytest.mark.parametrize("distant", (False, True), ids=("near", "distant"))
def test_the_whole_array(tmp_path, mount, distant):
    """At most one GET for each 256 inner chunks, and three more for each shard; for each 512 in a
    distant bucket, of which more is requested at a time."""
    n, shards = 40960, 10
    write(tmp_path, n, n // shards)
    m = mount(tmp_path / "bucket", "debug_count",
              *(["debug_fault=delay:1+:20@*data/c*", "workers=64"] if distant else []))

    def read():
        data = rows(n)
        with opened(m) as f:
            for i in range(0, n, 2048):
                assert (f["data"][i:i + 2048] == data[i:i + 2048]).all()
    cost = spent(m, read)
    index = n * 16
    assert cost["gets"] <= n // (512 if distant else 256) + 3 * shards, cost
    assert cost["bytes_in"] <= 1.02 * (n * KIB + index), cost


def settle(root):
    """Recently written objects are not stored, because two writes may share a time."""
    past = time.time() - 3600
    for at, _, names in os.walk(root):
        for name in names:
            os.utime(os.path.join(at, name), (past, past))


def test_the_next_mounts_read_from_the_disk(tmp_path, mount):
    """The timing of the kernel's requests decides which ranges are joined, and other reads join
    other ones. What was fetched is found all the same."""
    n, data = 4000, rows(4000)
    write(tmp_path, n, 800, gap=100, write=random.Random(1))
    settle(tmp_path / "bucket")

    def in_order(f):
        assert (f["data"][:] == data).all()

    def backward(f):
        for i in range(n - 25, -1, -25):
            assert (f["data"][i:i + 25] == data[i:i + 25]).all()

    def some(f):
        assert (f["data"][::7, 5] == data[::7, 5]).all()
    costs = []
    for read in in_order, in_order, backward, some:
        m = mount(tmp_path / "bucket", "debug_count", f"cache_dir={tmp_path}/cache")
        with opened(m) as f:
            costs.append(spent(m, lambda f=f, read=read: read(f))["gets"])
        m.stop()
    assert costs[0] > 0 and costs[1:] == [0, 0, 0], costs


def test_memory_of_a_point_in_a_large_shard(tmp_path, mount):
    """A shard of 1 GiB with 2^20 inner chunks: the index has 16 MiB."""
    n = 1 << 20
    with Store(tmp_path / "bucket/x.zarr", 3, True) as store:
        a = store.array("data", np.zeros((1, ROW), "<i4"), chunks=(1, ROW),
                        shards=[Shards((1, ROW), checksum=False)])
        store.documents["data/zarr.json"]["shape"] = [n, ROW]
        grid = store.documents["data/zarr.json"]["chunk_grid"]
        grid["configuration"]["chunk_shape"] = [n, ROW]
    with open(store.path("data", a.key((0, 0))), "wb") as f:
        f.truncate(n * KIB)
        f.seek(n * KIB)
        f.write(np.stack([np.arange(n) * KIB, np.full(n, KIB)], 1).astype("<u8").tobytes())
        f.seek(777_777 * KIB)
        f.write(struct.pack("<i", 42))
    m = mount(tmp_path / "bucket")
    with opened(m) as f:
        before = m.memory()
        if m.memory_peak() is None:
            pytest.skip("a sanitizer takes memory, too")
        assert f["data"][777_777, 0] == 42 and f["data"][n - 1, 5] == 0
        assert m.memory_peak() - before <= 32 * MIB


# ---- hsimage ----

def test_info_names_the_shapes(tmp_path):
    with Store(tmp_path / "x.zarr", 3) as store:
        store.array("flat", np.zeros((8, 12), "<i4"), chunks=(4, 6), shards=[Shards((2, 3))])
        store.array("nested", np.zeros((8, 12), "<i4"), chunks=(8, 6),
                    shards=[Shards((4, 6)), Shards((2, 3), around=["zstd"])], codecs=["gzip"])
    info = run(HSIMAGE, "info", tmp_path / "x.zarr", check=True).stdout
    assert re.search(r"/flat: int32 \[8,12\], chunks \[2,3\], 16 in all, in shards of \[4,6\], "
                     "codecs none", info), info
    assert re.search(r"/nested: .*in shards of \[8,6\] of \[4,6\], codecs gzip\(1\), zstd around "
                     "shards", info), info


@pytest.mark.parametrize("all_chunks", (False, True), ids=("indexes", "chunks"))
def test_check_reads_every_index(tmp_path, all_chunks):
    """And, on request, every chunk."""
    with Store(tmp_path / "bucket/x.zarr", 3) as store:
        a = store.array("data", rows(30), chunks=(10, ROW), shards=[Shards((1, ROW))],
                        codecs=["crc32c"])
    check = [HSIMAGE, "check", *(["--all"] if all_chunks else []), tmp_path / "bucket/x.zarr"]
    assert run(*check).returncode == 0
    with open(store.path("data", a.key((1, 0))), "r+b") as f:   # a chunk, and an index
        f.seek(3)
        f.write(b"\xff")
    with open(store.path("data", a.key((2, 0))), "r+b") as f:
        f.seek(-30, os.SEEK_END)
        f.write(b"\xff")
    done = run(*check)
    assert done.returncode == 1, done
    assert "data/c.2.0: index of the shard: crc32c does not match" in done.stdout, done.stdout
    assert ("data/c.1.0" in done.stdout) == all_chunks, done.stdout
