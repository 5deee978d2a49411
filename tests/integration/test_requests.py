# SPDX-License-Identifier: Apache-2.0
"""The number of requests, and of rounds of parallel requests, that each operation takes."""
import errno
import os
import time
import zlib

import h5py
import numpy as np
import pytest

import mkbucket
from mounts import difference, run


def spent(m, action):
    before = m.counts()
    result = action()
    return difference(before, m.counts()), result


def open_close(path):
    os.close(os.open(path, os.O_RDONLY))


def test_opening_asks_for_each_document_once(tmp_path, mount):
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        mkbucket.thousand(bucket)
    m = mount(tmp_path / "bucket", "debug_count")
    cost, _ = spent(m, lambda: open_close(m.file("thousand.h5")))
    assert 1002 <= cost["gets"] <= 1010
    assert cost["lists"] <= 8
    again, _ = spent(m, lambda: open_close(m.file("thousand.h5")))
    assert again["gets"] <= 3


# Seconds that each request takes, for each attempt. With longer rounds the delays of a busy
# machine matter less, but cached names are valid for one second only. A machine may stall for
# some seconds, so the pause before each attempt is longer than the one before.
DELAYS = [0.15, 0.15, 0.2, 0.25, 0.3, 0.15, 0.2, 0.25]


@pytest.fixture(scope="module")
def far(tmp_path_factory):
    """A bucket for mounts whose requests are delayed by one of DELAYS."""
    root = tmp_path_factory.mktemp("far") / "bucket"
    with mkbucket.Maker(root) as bucket:
        for path in ("x.h5", "y.h5", "run", "a/b/z.h5"):
            d = bucket.domain(path)
            d.dataset(d.root, "data", mkbucket.INT32, [4096], [1024]).chunk((3,), bytes(4096))
        mkbucket.deep_tree(bucket, 12)
        bucket.put("plain", b"bytes")
    return bucket


def rounds_of(m, action, delay):
    """The number of rounds, and the number of requests of each kind."""
    before, start = m.counts(), time.monotonic()
    action()
    elapsed = time.monotonic() - start
    return elapsed / delay, difference(before, m.counts())


def list_long(path):
    for name in os.listdir(path):
        os.stat(os.path.join(path, name))


def read_element(path):
    with h5py.File(path, "r") as f:
        f["data"][4095]


# An action, and its rounds the first time and immediately afterwards.
ROUNDS = [
    ("open", "x.h5", open_close, 3, 1),
    ("open-bare", "run.h5", open_close, 3, 1),
    ("open-tree", "deeptree.h5", open_close, 3, 1),
    ("open-plain", "plain", open_close, 2, 1),
    ("open-deep", "a/b/z.h5", open_close, 2 + 3, 1),        # a round for each directory
    ("open-missing", "no.h5", os.path.exists, 1, 0),
    ("stat-open", "x.h5", lambda p: (os.stat(p), open_close(p)), 2 + 2, 1),
    ("h5py-element", "x.h5", read_element, 4, 1),
]


def assert_rounds(far, mount, options, *steps):
    """steps: actions on a mount, and the most rounds of each (None: any). The shortest time of an
    action without a delay is subtracted. One attempt must succeed, because the machine may be busy
    during others. Returns the requests of the last step."""
    own = [float("inf")] * len(steps)
    for attempt, delay in enumerate(DELAYS):
        time.sleep(attempt)     # the machine may be less busy then
        near = mount(far.root, "debug_count", *options)
        own = [min(least, rounds_of(near, lambda step=step: step[0](near), 1)[0])
               for least, step in zip(own, steps)]
        m = mount(far.root, "debug_count", f"debug_fault=delay:1+:{int(delay * 1000)}", *options)
        took = [rounds_of(m, lambda step=step: step[0](m), delay) for step in steps]
        if all(most is None or rounds - seconds / delay < most + 0.6
               for (_, most), (rounds, _), seconds in zip(steps, took, own)):
            return took[-1][1]
    raise AssertionError((took, own))


@pytest.mark.parametrize("name, action, first, again", [r[1:] for r in ROUNDS],
                         ids=[r[0] for r in ROUNDS])
def test_rounds(far, mount, name, action, first, again):
    assert_rounds(far, mount, (), (lambda m: action(m.file(name)), first),
                  (lambda m: action(m.file(name)), again))


def test_rounds_behind_a_listing(far, mount):
    """After a listing, names are looked up without a request."""
    assert_rounds(far, mount, (), (lambda m: os.listdir(m.path), None),
                  (lambda m: open_close(m.file("x.h5")), 2))


def requests_of(m, action):
    cost, _ = spent(m, action)
    return cost["gets"] + cost["heads"] + cost["lists"]


def test_walking_a_large_directory(tmp_path, mount):
    """`ls -lR` requests the document of each domain and, for its size, a listing and the documents
    of its objects, once, however long it takes. A later one requests listings only. On a busy
    machine more than a second may pass between two look-ups, so one attempt must succeed."""
    domains, extra = 300, 20
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        for i in range(domains):
            bucket.domain(f"folder/{i:04}.h5")

    def first(m):
        out = run("ls", "-lR", m.file("folder"))
        assert out.returncode == 0 and out.stdout.count(".h5") == domains

    def again(m):
        """Takes longer than the second for which names are valid otherwise."""
        for name in sorted(os.listdir(m.file("folder"))):
            os.stat(m.file(f"folder/{name}"))
            time.sleep(0.01)
    costs = []
    for attempt in range(6):
        m = mount(tmp_path / "bucket", "debug_count", "debug_fault=delay:1+:20@*")
        cold = requests_of(m, lambda m=m: first(m))
        time.sleep(1.1 + attempt)       # names are valid for a second
        warm = requests_of(m, lambda m=m: again(m))
        assert cold >= 3 * domains and warm >= domains
        if cold <= 3 * domains + extra and warm <= domains + extra:
            return
        costs.append((cold, warm))
    raise AssertionError(costs)


def test_rounds_with_no_valid_metadata(far, mount):
    cost = assert_rounds(far, mount, ("metadata_ttl=0",),
                         (lambda m: open_close(m.file("x.h5")), 3),
                         (lambda m: open_close(m.file("x.h5")), 2))
    assert cost["gets"] == 2 and cost["lists"] == 1 and cost["bytes_in"] == 0


def test_valid_metadata_costs_no_request(far, mount):
    m = mount(far.root, "debug_count", "metadata_ttl=600")

    def use():
        list_long(m.path)
        for name in ("x.h5", "run.h5", "plain", "a/b/z.h5"):
            open_close(m.file(name))
        with h5py.File(m.file("x.h5"), "r") as f:
            assert f["data"].shape == (4096,)
    use()
    cost, _ = spent(m, use)
    assert not cost["gets"] + cost["heads"] + cost["lists"], cost


def test_a_chunk_is_got_once(tmp_path, mount):
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        d = bucket.domain("x.h5")
        ds = d.dataset(d.root, "data", mkbucket.INT32, [40], [10])
        for i in range(4):
            ds.chunk((i,), bytes(40))
    m = mount(tmp_path / "bucket", "debug_count")
    for _ in range(3):
        with h5py.File(m.file("x.h5"), "r") as f:
            assert f["data"][()].tobytes() == bytes(160)
    counts = m.counts()
    assert counts["cache_loads"] == 4
    # Four chunks, two documents, the domain's document for each look-up and each open, a summary.
    assert counts["gets"] <= 4 + 2 + 3 + 3 + 1


@pytest.fixture(scope="module", params=[8, 1500], ids=["listed", "unlisted"])
def ten_million(tmp_path_factory, request):
    """Few stored chunks, which one page of a listing names, or too many for that."""
    root = tmp_path_factory.mktemp("ten") / "bucket"
    with mkbucket.Maker(root) as bucket:
        mkbucket.ten_million(bucket, stored=request.param)
    bucket.stored = request.param
    return bucket


def test_ten_million_chunks_cost_nothing_to_open(ten_million, mount):
    m = mount(ten_million.root, "debug_count")
    idle = m.memory()
    start = time.monotonic()
    cost, f = spent(m, lambda: h5py.File(m.file("tenmillion.h5"), "r"))
    with f:
        assert time.monotonic() - start < 5
        # Its documents; and the kernel reads ahead of the metadata, perhaps into stored chunks.
        assert cost["gets"] <= 6 + 8 and cost["lists"] <= 8
        assert f["data"].shape == (10_240_000_000,) and f["data"].chunks == (1024,)
        assert m.memory() - idle < 64 << 20


def test_a_random_element_costs_one_get(ten_million, mount):
    m = mount(ten_million.root, "debug_count")
    # If all chunks are known, the stored ones are adjacent, and the kernel reads ahead.
    most = 1 if ten_million.stored > 1000 else ten_million.stored
    with h5py.File(m.file("tenmillion.h5"), "r") as f:
        f["data"].shape
        at = 9_999_999 * 1024 + 5               # the last chunk is stored
        cost, value = spent(m, lambda: f["data"][at])
        assert value == at & 0x7fffffff
        assert cost["gets"] <= most and cost["lists"] == 0
        cost, value = spent(m, lambda: f["data"][7_777_777_777])
        assert value == -1
        assert cost["gets"] <= most and cost["lists"] == 0


def test_a_damaged_chunk_is_got_once_in_a_second(tmp_path, mount):
    """When a program reads on after an error, the kernel requests each damaged page: 256 for a
    chunk of 1 MiB. The daemon makes one request and logs one line."""
    chunks, size, bad = 6, 1 << 20, 3
    bodies = [np.full(size // 4, i + 1, dtype="<i4").tobytes() for i in range(chunks)]
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        d = bucket.domain("x.h5")
        ds = d.dataset(d.root, "data", mkbucket.INT32, [chunks * size // 4], [size // 4])
        for i, body in enumerate(bodies):
            ds.chunk((i,), body if i != bad else body[:-1])
    m = mount(tmp_path / "bucket", "debug_count")
    path, key = m.file("x.h5"), ds.chunk_key((bad,))
    with h5py.File(path, "r") as f:
        at = [f["data"].id.get_chunk_info(i).byte_offset for i in range(chunks)]

    def chunk(fd, i):
        return os.pread(fd, size, at[i])

    fd = os.open(path, os.O_RDONLY)
    try:
        opening, _ = spent(m, lambda: open_close(path))
        cost, out = spent(m, lambda: run("dd", f"if={path}", "of=/dev/null", "bs=4k",
                                         "conv=noerror"))
        assert "Input/output error" in out.stderr
        assert cost["cache_loads"] <= chunks + 1
        assert cost["gets"] <= chunks + 1 + opening["gets"]
        assert 1 <= sum(key in line for line in m.log().splitlines()) <= 2, m.log()
        for i in range(chunks):
            if i != bad:
                assert chunk(fd, i) == bodies[i]
        with pytest.raises(OSError) as e:
            chunk(fd, bad)
        assert e.value.errno == errno.EIO
    finally:
        os.close(fd)
    bucket.put(key, bodies[bad])
    time.sleep(1.2)     # a failure is cached for a second
    fd = os.open(path, os.O_RDONLY)
    try:
        assert [chunk(fd, i) == bodies[i] for i in range(chunks)] == [True] * chunks
    finally:
        os.close(fd)


@pytest.mark.parametrize("filters", [[], [mkbucket.GZIP]], ids=["plain", "gzip"])
@pytest.mark.parametrize("size", [100_000, 1 << 20, 2_000_000])
def test_one_chunk_is_one_get(tmp_path, mount, size, filters):
    """The kernel reads whole pages, and ahead, but not a byte of another chunk."""
    chunks, n = 16, size // 4
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        d = bucket.domain("x.h5")
        ds = d.dataset(d.root, "data", mkbucket.INT32, [chunks * n], [n], filters=filters)
        for i in range(chunks):
            body = np.full(n, i, dtype="<i4").tobytes()
            ds.chunk((i,), zlib.compress(body, 1) if filters else body)
    m = mount(tmp_path / "bucket", "debug_count")
    with h5py.File(m.file("x.h5"), "r") as f:
        cost, value = spent(m, lambda: f["data"][9 * n:10 * n])
    assert (value == 9).all()
    assert cost["cache_loads"] == 1
