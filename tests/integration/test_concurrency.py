# SPDX-License-Identifier: Apache-2.0
"""Many readers at the same time share requests and do not wait for other files, and programs that
change domains do not disturb readers."""
import errno
import hashlib
import os
import subprocess
import sys
import threading
import time

import h5py
import pytest

import imports
import mkbucket
import mounts
import rwmounts
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


# ---- readers and writers ----

WRITER = """
import sys, h5py, numpy as np
path, rounds = sys.argv[1], int(sys.argv[2])
for n in range(1, rounds + 1):
    with h5py.File(path, "r+") as f:
        f.attrs["a"] = f.attrs["b"] = n
        f["d"].resize((100 * n,))
        f["d"][:] = n
        if n % 2:
            f[f"g/{n}"] = np.arange(n)
        else:
            del f[f"g/{n - 1}"]
"""
READER = """
import sys, h5py
seen = [0]
while seen[-1] < int(sys.argv[2]):
    try:
        with h5py.File(sys.argv[1], "r") as f:
            seen.append(int(f.attrs["a"]))
            assert f.attrs["b"] == seen[-1] >= seen[-2]
    except FileNotFoundError:
        break
"""
DOMAINS, READERS_OF_EACH, ROUNDS = 4, 8, 6
# A version that is open and is replaced has chunks that are gone.
EXPECTED_ERRORS = {errno.ESTALE, errno.ENOENT}


@pytest.mark.timeout(600)
def test_writers_and_readers(tmp_path):
    """Four programs change domains. Of each one, readers have old versions open, and open new ones.
    Another domain is deleted while it is read."""
    bucket, source = imports.make_bucket(tmp_path / "bucket"), tmp_path / "a.h5"
    with h5py.File(source, "w") as f:
        f.create_dataset("d", (1,), "<i4", maxshape=(None,), chunks=(50,))
        f.attrs["a"] = f.attrs["b"] = 0
        f.create_group("g")
    names = [f"home/{n}.h5" for n in range(DOMAINS + 1)]
    for name in names:
        mounts.run(mounts.HSIMAGE, "-b", bucket, "import", source, name, check=True)
    stop, errors = threading.Event(), []

    def read(path):
        while not stop.is_set():
            try:
                read_all(path)
            except OSError as e:
                errors.append(e.errno)
                if e.errno == errno.ENOENT:
                    return
    with rwmounts.RwMount(bucket, tmp_path, "metadata_ttl=0") as m:
        threads = [threading.Thread(target=read, args=(m.file(name),)) for name in names
                   for _ in range(READERS_OF_EACH - 1)]
        programs = [subprocess.Popen([sys.executable, "-c", text, m.file(name), str(ROUNDS)])
                    for name in names[:-1] for text in (WRITER, READER)]
        try:
            for t in threads:
                t.start()
            os.unlink(m.file(names[-1]))
            codes = [p.wait(400) for p in programs]
        finally:
            stop.set()
            for p in programs:
                p.kill()
            for t in threads:
                t.join(100)
        assert codes == [0] * len(codes), m.log()
        assert set(errors) <= EXPECTED_ERRORS
        for name in names[:-1]:
            with h5py.File(m.file(name), "r") as f:
                assert f.attrs["a"] == ROUNDS and (f["d"][:] == ROUNDS).all() and not len(f["g"])
    assert m.process is None and "Sanitizer" not in m.log(), m.log()
    assert rwmounts.journal_entries(m.journal) == []
    assert rwmounts.check(bucket).returncode == 0
