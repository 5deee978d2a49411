# SPDX-License-Identifier: Apache-2.0
"""Zarr stores of any size: stores with millions of keys, and stores with very many groups and
arrays. What counts is how many requests they take, and how much time and memory."""
import os
import time

import h5py
import numpy as np
import pytest

from mounts import difference
from s3liar import Liar, listing
from zarr_write import Store

MIB = 1 << 20


# ---- stores with millions of keys ----

class Claims:
    """Answers of a server whose stores claim to have a million chunks each. It lists no more than
    the first page of any of them."""

    def __init__(self, server):
        self.server, self.pages, self.more = server, 0, []
        self.documents = server.keys("")

    def page(self, store):
        keys = [f"{store}/data/c.{i:06}" for i in range(999)] + [f"{store}/data/zarr.json"]
        return listing([(key, "0" * 32, 4096) for key in sorted(keys)], True, "more")

    def __call__(self, request, honest):
        if not request.is_list or "delimiter" in request.query:
            return None
        prefix, after = request.query.get("prefix", ""), request.query.get("start-after", "")
        if "continuation-token" in request.query:
            self.more.append(request.query)
        later = [key for key in self.documents if key.startswith(prefix) and key > after]
        if not later:
            return None
        self.pages += 1
        return self.page("/".join(later[0].split("/")[:2]))


@pytest.mark.parametrize("n", [30, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.parametrize("version", (2, 3), ids="v{}".format)
def test_the_sizes_of_stores_with_a_million_keys(tmp_path, mount, version, n):
    """One request for the document of each store, side by side, and no more than a page of its
    keys. The size is that of an open."""
    root = tmp_path / "bucket"
    for i in range(n):
        with Store(root / f"d/{i:04}.zarr", version, True) as store:
            a = store.array("data", np.zeros(1024, "<i4"), absent=[(0,)])
            document = store.documents["data/zarr.json" if version == 3 else "data/.zarray"]
            document["shape"] = [1024 * (1_000_000 + i)]
            store.write_documents(True)
            store.write_documents = lambda: None
        assert a.chunks == (1024,)
    with Liar(root) as server:
        server.lie = claims = Claims(server)
        m = mount("s3://bucket", "debug_count", "metadata_ttl=60", env=server.environment())
        names = sorted(os.listdir(m.file("d")))
        assert names == [f"{i:04}.zarr.nc" for i in range(n)]
        before, began, pages = m.counts(), time.monotonic(), claims.pages
        sizes = [os.stat(m.file("d", name)).st_size for name in names]
        cost = difference(before, m.counts())
        print(f"{n} stores: {time.monotonic() - began:.2f} s, {cost}")
        assert cost["gets"] == n and cost["lists"] <= n and not cost["heads"], cost
        assert claims.pages - pages <= n and not claims.more
        assert sizes == sorted(set(sizes)) and sizes[0] > 4096 * 1_000_000
        for i in (0, 7, n - 1):
            with open(m.file("d", names[i]), "rb") as f:
                assert os.fstat(f.fileno()).st_size == sizes[i]
        assert not server.failures


# ---- stores with very many nodes ----

def many_nodes(root, groups, arrays, consolidated):
    """A store with so many groups, which have so many arrays each; without chunks. Its documents
    are links to a few files."""
    with Store(root / "x.zarr", 3, consolidated) as store:
        store.array("g/a", np.zeros(10, "<f4"), absent=[(0,)], names=["x"], attributes={"u": "m"})
        group, array = store.documents["g/zarr.json"], store.documents["g/a/zarr.json"]
        for i in range(groups if consolidated else 1):
            store.documents[f"g{i:05}/zarr.json"] = group
            for j in range(arrays):
                store.documents[f"g{i:05}/a{j:03}/zarr.json"] = array
        store.write_documents(consolidated)
        store.write_documents = lambda: None
    for i in () if consolidated else range(1, groups):
        for name in ("", *(f"a{j:03}/" for j in range(arrays))):
            os.makedirs(store.path(f"g{i:05}/{name}"))
            os.link(store.path(f"g00000/{name}zarr.json"), store.path(f"g{i:05}/{name}zarr.json"))
    if consolidated:            # more keys than a page of a listing
        for i in range(1001):
            store.put(f"g/a/unused/{i}", b"")


@pytest.mark.parametrize("consolidated", (True, False), ids=("consolidated", "documents"))
@pytest.mark.parametrize("groups, arrays", [
    (200, 9), pytest.param(10_000, 9, marks=pytest.mark.long)], ids=("2000", "100000"))
def test_very_many_groups_and_arrays(tmp_path, mount, groups, arrays, consolidated):
    """A request for each document and a listing of each group, or one document. Memory is less
    than 5 KiB for each node."""
    nodes = groups * (arrays + 1) + 2
    many_nodes(tmp_path / "bucket", groups, arrays, consolidated)
    m = mount(tmp_path / "bucket", "debug_count")
    os.listdir(m.path)
    before, memory, began = m.counts(), m.memory(), time.monotonic()
    with h5py.File(m.file("x.zarr.nc"), "r") as f:
        opened, cost = time.monotonic() - began, difference(before, m.counts())
        kept, peak = m.memory() - memory, m.memory_peak()
        print(f"{nodes} nodes: {opened:.2f} s, {cost}, kept {kept >> 20} MiB, peak "
              f"{(peak or 0) - memory >> 20} MiB")
        assert len(f) == groups + 1
        last = f[f"g{groups - 1:05}/a{arrays - 1:03}"]
        assert last.shape == (10,) and last.attrs["u"] in (b"m", "m")
    if consolidated:
        assert cost["gets"] <= 4 and cost["lists"] <= 4, cost
    else:
        assert nodes <= cost["gets"] <= nodes + 5, cost
        assert groups + 1 <= cost["lists"] <= groups + 5, cost
    if peak is not None:
        assert peak - memory <= 5120 * nodes + 16 * MIB
