# SPDX-License-Identifier: Apache-2.0
"""The kernel reads whole pages, so a damaged chunk makes all other data in its pages unreadable.
These belong to the same dataset, unless the domain has more than 4,096 datasets."""
import errno
import os

import h5py
import numpy as np
import pytest

from mkbucket import INT8, Maker, vstring
from mounts import HSIMAGE, run

PAGE, OWN_PAGES, SIZE = 4096, 4096, 112


def make(bucket, path, n, bad):
    """n datasets of one chunk of 112 bytes; the chunk of dataset `bad` is damaged."""
    d = bucket.domain(path)
    for i in range(n):
        ds = d.dataset(d.root, f"d{i:05}", INT8, [SIZE], [SIZE])
        ds.doc["creationProperties"]["layout"] = {"class": "H5D_CONTIGUOUS"}
        ds.chunk((0,), np.full(SIZE, i % 100, "i1") if i != bad else b"damaged")


@pytest.fixture(scope="module")
def bucket(tmp_path_factory):
    root = tmp_path_factory.mktemp("pages")
    with Maker(root) as made:
        make(made, "ten.h5", 10, 4)
        make(made, "many.h5", OWN_PAGES + 1, 1000)
        d = made.domain("text.h5")
        for name in ("a", "b", "c"):
            d.dataset(d.root, name, vstring(), [2], [2]).chunk(
                (0,), b"\1\0\0\0x\1\0\0\0y" if name != "b" else b"\1\0\0\0x\1\0\0\0yz")
    return root


def readable(path):
    """Names of the datasets whose values can be read. All metadata must be readable."""
    found = set()
    with h5py.File(path, "r") as f:
        for name in f:
            ds = f[name]
            try:
                value = ds[...]
            except OSError:
                continue
            if ds.dtype.kind == "i":
                assert (value == int(name[1:]) % 100).all()
            found.add(name)
    return found


def offsets(path):
    with h5py.File(path, "r") as f:
        return {name: f[name].id.get_offset() for name in f}


def test_a_damaged_chunk_makes_no_other_dataset_unreadable(bucket, mount):
    path = mount(bucket).file("ten.h5")
    assert readable(path) == {f"d{i:05}" for i in range(10) if i != 4}
    assert run("h5dump", "-A", path).returncode == 0


def test_a_damaged_heap_makes_no_other_dataset_unreadable(bucket, mount):
    assert readable(mount(bucket).file("text.h5")) == {"a", "c"}


def test_of_many_datasets_those_in_the_damaged_page_are_unreadable(bucket, mount):
    path = mount(bucket).file("many.h5")
    at = offsets(path)
    bad = at["d01000"] // PAGE
    together = {name for name, offset in at.items() if offset // PAGE == bad}
    assert len(together) == PAGE // SIZE
    assert readable(path) == set(at) - together


def test_no_byte_of_a_damaged_page_can_be_read(bucket, mount):
    path = mount(bucket).file("many.h5")
    at = offsets(path)
    page = at["d01000"] // PAGE * PAGE
    first = min(offset for offset in at.values() if offset >= page)
    assert first < at["d01000"]
    with open(path, "rb", buffering=0) as f:
        for start, n in ((page, PAGE), (first, 1), (page + PAGE - 1, 1)):
            with pytest.raises(OSError) as failed:
                os.pread(f.fileno(), n, start)
            assert failed.value.errno == errno.EIO
        for start in (page - PAGE, page + PAGE):
            assert len(os.pread(f.fileno(), PAGE, start)) == PAGE
        # A longer read ends before the damaged page.
        assert len(os.pread(f.fileno(), 4 * PAGE, page - PAGE)) == PAGE


def test_a_dataset_without_data_has_no_page_of_its_own(tmp_path, mount):
    with Maker(tmp_path / "bucket") as made:
        d = made.domain("sparse.h5")
        for i in range(100):
            ds = d.dataset(d.root, f"d{i:05}", INT8, [SIZE], [SIZE])
            if i % 10 == 0:
                ds.chunk((0,), bytes(SIZE))
    m = mount(tmp_path / "bucket")
    with open(m.file("sparse.h5"), "rb") as f:
        st = os.fstat(f.fileno())
    run(HSIMAGE, "export", tmp_path / "bucket/sparse.h5", tmp_path / "x.h5", check=True)
    assert os.stat(tmp_path / "x.h5").st_size == st.st_size
    with h5py.File(m.file("sparse.h5"), "r") as f:
        raw = min(f[n].id.get_chunk_info(0).byte_offset for n in f if f[n].id.get_num_chunks())
    assert raw + 9 * PAGE < st.st_size <= raw + 10 * PAGE
    assert st.st_blocks * 512 < raw + 10 * 1024
