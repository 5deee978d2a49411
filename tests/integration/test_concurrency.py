# SPDX-License-Identifier: Apache-2.0
"""Many readers at the same time share requests and do not wait for other files."""
import hashlib
import os
import threading
import time

import pytest

import mkbucket
from mounts import difference

READERS, CHUNKS = 16, 8


def read_all(path):
    h = hashlib.sha256()
    with open(path, "rb") as f:
        while block := f.read(1 << 20):
            h.update(block)
    return h.hexdigest()


def together(calls):
    """Starts all calls at the same time; returns their results and the seconds that all took."""
    results, barrier = [None] * len(calls), threading.Barrier(len(calls))

    def one(i):
        barrier.wait(30)
        results[i] = calls[i]()

    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(calls))]
    start = time.monotonic()
    for t in threads:
        t.start()
    for t in threads:
        t.join(100)
    assert not any(t.is_alive() for t in threads), "a reader hangs"
    return results, time.monotonic() - start


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    root = tmp_path_factory.mktemp("files") / "bucket"
    with mkbucket.Maker(root) as bucket:
        mkbucket.many_files(bucket, READERS, CHUNKS)
    return root


def test_readers_of_one_file_share_the_gets(files, mount):
    m = mount(files, "debug_count", "debug_fault=delay:1+:20@*/d/*")
    before = m.counts()
    results, _ = together([lambda: read_all(m.file("f03.h5"))] * READERS)
    spent = difference(before, m.counts())
    assert len(set(results)) == 1
    assert spent["gets"] <= CHUNKS + 2 * READERS + 8
    assert spent["cache_loads"] == CHUNKS


def test_readers_of_many_files_do_not_wait_for_each_other(files, mount):
    m = mount(files, "debug_count", "debug_fault=delay:1+:50@*/d/*")
    before = m.counts()
    results, seconds = together([lambda i=i: read_all(m.file(f"f{i:02}.h5"))
                                 for i in range(READERS)])
    spent = difference(before, m.counts())
    assert None not in results
    assert spent["cache_loads"] == READERS * CHUNKS
    in_sequence = READERS * CHUNKS * 0.05
    assert seconds < in_sequence / 2 + 5


def test_opens_at_once_make_one_image(files, mount):
    m = mount(files, "debug_count", "debug_fault=delay:1+:50@*.json")
    fds, _ = together([lambda: os.open(m.file("f07.h5"), os.O_RDONLY)] * READERS)
    try:
        assert len({os.fstat(fd).st_ino for fd in fds}) == 1
        assert m.counts()["images"] == 1
    finally:
        for fd in fds:
            os.close(fd)


def test_readers_while_the_domain_changes(tmp_path, mount):
    """Each open shows one whole version, and never an older one than before."""
    import h5py
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        d = bucket.domain("x.h5")
        ds = d.dataset(d.root, "data", mkbucket.INT32, [4])
        ds.attribute("a", mkbucket.INT32, [2], [0, 0])
    m = mount(tmp_path / "bucket")
    stop, seen = threading.Event(), []

    def change():
        n = 0
        while not stop.wait(0.02):
            n += 1
            ds.doc["attributes"]["a"]["value"] = [n, n]
            ds.write()

    writer = threading.Thread(target=change)
    writer.start()
    try:
        end = time.monotonic() + 5
        while time.monotonic() < end:
            with h5py.File(m.file("x.h5"), "r") as f:
                seen.append(f["data"].attrs["a"].tolist())
    finally:
        stop.set()
        writer.join(10)
    assert all(a == b for a, b in seen)
    assert [a for a, _ in seen] == sorted(a for a, _ in seen)
    assert len({a for a, _ in seen}) > 2
