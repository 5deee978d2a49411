# SPDX-License-Identifier: Apache-2.0
"""The disk cache: objects on disk that later mounts use."""
import io
import os
import shutil
import signal
import stat
import subprocess
import threading
import time

import h5py
import numpy as np
import pytest

import faultproxy
import mkbucket
import s3liar
from gateway import needs_gateway
from mounts import HSIMAGE, HSMOUNT, difference, is_mounted, run, unmount, wait_for

CHUNKS, ELEMENTS = 24, 16384                        # of 64 KiB
DOCUMENTS = 3                                       # of the domain, its root group, the dataset


def body(i, salt=0):
    return np.random.default_rng(1000 * salt + i).integers(
        -2**31, 2**31, ELEMENTS, dtype="<i4").tobytes()


def settle(path):
    """Recently written objects are not stored, because two writes may share a time."""
    past = time.time() - 3600
    os.utime(path, (past, past))


class Bucket:
    def __init__(self, root):
        self.root = root
        with mkbucket.Maker(root) as self.maker:
            d = self.maker.domain("x.h5")
            self.data = d.dataset(d.root, "data", mkbucket.INT32, [CHUNKS * ELEMENTS], [ELEMENTS])
            for i in range(CHUNKS):
                self.data.chunk((i,), body(i))
        for directory, _, names in os.walk(root):
            for name in names:
                settle(os.path.join(directory, name))
        self.want = [body(i) for i in range(CHUNKS)]

    def replace(self, i, salt):
        self.want[i] = body(i, salt)
        self.maker.put(self.data.chunk_key((i,)), self.want[i])
        settle(os.path.join(self.root, self.data.chunk_key((i,))))


@pytest.fixture
def bucket(tmp_path):
    return Bucket(tmp_path / "bucket")


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def check(m, bucket):
    with open(m.file("x.h5"), "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)   # the kernel's pages
        image = io.BytesIO(file.read())
    # h5py would keep the proxy in this process from running while it waits.
    with h5py.File(image, "r") as f:
        got = f["data"][()].tobytes()
    assert got == b"".join(bucket.want)


def spent(m, action):
    before = m.counts()
    action()
    return difference(before, m.counts())


def kept(m, number=CHUNKS + DOCUMENTS):
    """Waits for entries, which are written after the read is answered, in any order."""
    assert wait_for(lambda: m.counts()["disk_stored"] >= number), m.counts()


def size_of(cache):
    return sum(os.stat(cache / n).st_blocks * 512 for n in os.listdir(cache))


def test_the_next_mount_asks_for_no_chunk(bucket, cache, mount):
    m = mount(bucket.root, "debug_count", f"cache_dir={cache}")
    check(m, bucket)
    assert m.counts()["disk_hits"] == 0
    m.stop()                                        # writes all queued entries
    assert stat.S_IMODE(os.stat(cache).st_mode) == 0o700
    # Also in a directory that others may list.
    assert {stat.S_IMODE(os.stat(cache / n).st_mode) for n in os.listdir(cache)} == {0o600}
    m = mount(bucket.root, "debug_count", f"cache_dir={cache}")
    check(m, bucket)
    counts = m.counts()
    assert counts["disk_hits"] >= CHUNKS and counts["disk_errors"] == 0
    # Documents that no listing contains are fetched conditionally.
    assert counts["gets"] <= 8 and counts["bytes_in"] < 4096
    assert counts["disk_hit_bytes"] >= CHUNKS * ELEMENTS * 4


def test_a_changed_chunk_is_got_again(bucket, cache, mount):
    m = mount(bucket.root, "debug_count", f"cache_dir={cache}")
    check(m, bucket)
    kept(m)
    bucket.replace(7, salt=1)
    assert spent(m, lambda: check(m, bucket))["bytes_in"] < 2 * ELEMENTS * 4
    m.stop()
    bucket.replace(9, salt=2)
    m = mount(bucket.root, "debug_count", f"cache_dir={cache}")
    check(m, bucket)
    assert ELEMENTS * 4 <= m.counts()["bytes_in"] < 2 * ELEMENTS * 4


def test_other_options_know_it_too(bucket, cache, tmp_path):
    """hsimage uses the cache, here with a relative path."""
    for _ in range(2):
        run(HSIMAGE, "--cache-dir=cache", "export", "--force", f"{bucket.root}/x.h5",
            tmp_path / "x.h5", cwd=tmp_path, check=True)
        with h5py.File(tmp_path / "x.h5", "r") as f:
            assert f["data"][()].tobytes() == b"".join(bucket.want)
    assert len(os.listdir(cache)) > CHUNKS


def test_a_daemon_in_the_background(bucket, cache, tmp_path):
    """The daemon changes its directory; a relative path of the cache refers to the old one."""
    (tmp_path / "mnt").mkdir()
    run(HSMOUNT, bucket.root, "mnt", "-o", "cache_dir=cache", cwd=tmp_path, check=True)
    try:
        with h5py.File(tmp_path / "mnt" / "x.h5", "r") as f:
            assert f["data"][()].tobytes() == b"".join(bucket.want)
        assert wait_for(lambda: len(os.listdir(cache)) > CHUNKS)
    finally:
        unmount(tmp_path / "mnt")


def test_damage_while_mounted(bucket, cache, mount):
    """Each round damages all entries in another way while two mounts read them."""
    ways = [lambda n, b: b[:n // 2] + bytes([b[n // 2] ^ 1]) + b[n // 2 + 1:],
            lambda n, b: b[:n // 3], lambda n, b: b"", lambda n, b: bytes(n),
            lambda n, b: b + b"x", lambda n, b: os.urandom(n)]
    for number, way in enumerate(ways):
        # A cache of one chunk: reads go to the disk.
        m = mount(bucket.root, "debug_count", f"cache_dir={cache}", "cache_size=64K")
        check(m, bucket)
        kept(m, *([1] if number else []))
        for name in os.listdir(cache):
            if name != "hsmount-cache.lock" or number % 2:
                old = (cache / name).read_bytes()
                (cache / name).write_bytes(way(len(old), old))
        check(m, bucket)
        check(m, bucket)
        if number:
            assert m.counts()["disk_dropped"] > 0
        assert m.stop() == 0
        assert "warning" not in m.log() and "error" not in m.log(), m.log()


def test_two_mounts_share(bucket, cache, mount):
    options = ["debug_count", f"cache_dir={cache}"]
    a, b = mount(bucket.root, *options), mount(bucket.root, *options)
    check(a, bucket)
    kept(a)
    check(b, bucket)
    assert b.counts()["disk_hits"] >= CHUNKS and b.counts()["bytes_in"] < 4096
    bucket.replace(3, salt=3)
    readers = [threading.Thread(target=check, args=(m, bucket)) for m in (a, b, a, b)]
    for t in readers:
        t.start()
    for t in readers:
        t.join()
    for m in (a, b):
        check(m, bucket)


def test_killed(bucket, cache, mount):
    for _ in range(4):
        m = mount(bucket.root, "debug_count", f"cache_dir={cache}",
                  f"cache_disk_size={2 << 20}")
        reader = subprocess.Popen(["cat", m.file("x.h5")], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        wait_for(lambda: m.counts()["disk_stored"] > 2, 2)
        m.process.send_signal(signal.SIGKILL)
        m.process.wait(10)
        m.process = None
        unmount(m.path)
        reader.wait(30)
        assert not is_mounted(m.path)
    (cache / "tmp-0123456789abcdef").write_bytes(bytes(1 << 20))    # a leftover of a dead writer
    m = mount(bucket.root, "debug_count", f"cache_dir={cache}", f"cache_disk_size={2 << 20}")
    check(m, bucket)
    check(m, bucket)
    assert m.stop() == 0
    assert size_of(cache) <= (2 << 20) + 8192
    assert not [n for n in os.listdir(cache) if n.startswith("tmp-")]


def test_limit(bucket, cache, mount):
    """Two mounts write at the same time, and the limit holds at any moment."""
    limit = 1 << 20
    options = ["debug_count", f"cache_dir={cache}", "cache_disk_size=1M", "cache_size=64K"]
    mounts = [mount(bucket.root, *options) for _ in range(2)]
    most, done = [0], threading.Event()

    def watch():
        while not done.is_set():
            try:
                most[0] = max(most[0], size_of(cache))
            except FileNotFoundError:
                pass
    watcher = threading.Thread(target=watch)
    watcher.start()
    readers = [threading.Thread(target=check, args=(m, bucket)) for m in mounts * 2]
    for t in readers:
        t.start()
    for t in readers:
        t.join()
    done.set()
    watcher.join()
    assert all(m.counts()["disk_evicted"] + m.counts()["disk_stored"] > 0 for m in mounts)
    assert sum(m.counts()["disk_evicted"] for m in mounts) > 0
    assert limit // 4 < most[0] <= limit + 8192     # the lock file; counting takes time


def test_what_is_refused(bucket, tmp_path):
    (tmp_path / "mnt").mkdir()
    (tmp_path / "open").mkdir()
    os.chmod(tmp_path / "open", 0o777)
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "own").mkdir(mode=0o700)
    os.symlink(tmp_path / "own", tmp_path / "link")
    for option, why in [(f"cache_dir={tmp_path}/open", "others can write"),
                        (f"cache_dir={tmp_path}/file", "Not a directory"),
                        (f"cache_dir={tmp_path}/link", "symbolic link"),
                        (f"cache_dir={tmp_path}/no/such", "No such file"),
                        ("cache_dir=", "must not be empty"),
                        (f"cache_dir={tmp_path}/own,cache_disk_size=9", "at least 1M"),
                        ("cache_disk_size=lots", "must be a number of bytes")]:
        out = run(HSMOUNT, bucket.root, tmp_path / "mnt", "-o", option)
        assert out.returncode > 0 and why in out.stderr, (option, out.stderr)
        assert len(out.stderr.strip().splitlines()) <= 2
    assert not is_mounted(tmp_path / "mnt")


def test_the_disk_goes_away(bucket, cache, mount):
    m = mount(bucket.root, "debug_count", f"cache_dir={cache}", "cache_size=64K")
    check(m, bucket)
    kept(m)
    # The daemon may create and rename files while rmtree() lists them.
    assert wait_for(lambda: shutil.rmtree(cache, ignore_errors=True) or not cache.exists())
    check(m, bucket)
    bucket.replace(1, salt=1)
    bucket.replace(2, salt=1)
    check(m, bucket)
    assert wait_for(lambda: m.counts()["disk_errors"] > 1)
    assert sum("cache directory" in line for line in m.log().splitlines()) == 1


# ---- over S3 ----

def test_other_objects_of_the_same_names(bucket, cache, tmp_path, mount, monkeypatch):
    """Objects of another bucket with the same names, sizes and versions are not confused."""
    monkeypatch.setattr(s3liar, "etag_of", lambda body: "version-1")
    other = Bucket(tmp_path / "other")
    for i in range(CHUNKS):
        other.replace(i, salt=4)
    for made in (bucket, other):
        with s3liar.Liar(made.root) as server:
            m = mount("s3://bucket", "debug_count", f"cache_dir={cache}", env=server.environment())
            check(m, made)
            kept(m)
            assert m.counts()["disk_hits"] == 0
            check(m, made)
            m.stop()


class Listed:
    """Lists a folder in a new mount, with the cache: the output, and what was requested for it."""

    def __init__(self, server, cache, mount):
        server.requests.clear()
        m = mount("s3://bucket", "debug_count", f"cache_dir={cache}", "stat=estimate",
                  env=server.environment())
        self.text = run("ls", "-l", m.file("folder"), check=True).stdout
        self.documents = [r.key for r in server.requests if r.key.endswith(".h5/.domain.json")]
        self.listings = [r.query for r in server.requests
                         if r.query.get("prefix") == "folder/" and r.query["max-keys"] == "1000"]
        self.flat = sum("delimiter" not in q for q in self.listings)
        m.stop()


def test_a_directory(tmp_path, cache, mount):
    """The next mount requests the documents of a directory that have changed."""
    domains = 40
    made = mkbucket.Maker(tmp_path / "names")
    for i in range(domains):
        made.domain(f"folder/{i:02}.h5")
    made.write()
    with s3liar.Liar(made.root) as server:
        first = Listed(server, cache, mount)
        assert len(first.documents) == domains and first.flat == 0
        second = Listed(server, cache, mount)
        assert second.text == first.text
        assert (second.documents, len(second.listings), second.flat) == ([], 1, 1)
        made.domain("folder/03.h5", acls={"maker": mkbucket.full_acl()["maker"]})
        made.domain("folder/new.h5")
        made.write()
        shutil.rmtree(tmp_path / "names/folder/07.h5")
        third = Listed(server, cache, mount)
        assert sorted(third.documents) == ["folder/03.h5/.domain.json",
                                           "folder/new.h5/.domain.json"]
        assert third.text.count(".h5") == domains
        assert "07.h5" not in third.text and "new.h5" in third.text
        lines = [next(x for x in listed.text.splitlines() if x.endswith("03.h5"))
                 for listed in (first, third)]
        assert lines[0].split()[0] != lines[1].split()[0]       # the mode
        assert Listed(server, cache, mount).documents == []
        # Too many keys: the listing of all of them stops, and no later mount makes it.
        for i in range(1100):
            made.put(f"folder/00.h5/more/{i}", b"")
        fourth = Listed(server, cache, mount)
        assert fourth.flat == 1 and len(fourth.listings) == 2
        assert fourth.text == third.text and len(fourth.documents) == domains
        fifth = Listed(server, cache, mount)
        assert fifth.flat == 0 and fifth.text == third.text


@needs_gateway[0]
@needs_gateway[1]
def test_s3(environment, gateway, client, bucket, cache, mount):
    remote = "disk-cache"
    client.make_bucket(remote)
    client.upload(remote, bucket.root)
    with faultproxy.Proxy(gateway["endpoint"]) as proxy:
        env = dict(environment, AWS_ENDPOINT_URL=proxy.endpoint)
        name = f"s3://{remote}"
        keys = tuple("/" + bucket.data.chunk_key((i,)) for i in range(CHUNKS))

        def fetched(action):
            before = len(proxy.requests)
            action()
            return sum(r.target.endswith(keys) for r in proxy.requests[before:])

        m = mount(name, f"cache_dir={cache}", env=env)
        assert fetched(lambda: check(m, bucket)) == CHUNKS
        m.stop()
        m = mount(name, f"cache_dir={cache}", "debug_count", env=env)
        assert fetched(lambda: check(m, bucket)) == 0
        assert m.counts()["bytes_in"] == 0          # answers of 304 only
        bucket.replace(5, salt=1)
        client.put(remote, bucket.data.chunk_key((5,)), bucket.want[5])
        assert fetched(lambda: check(m, bucket)) == 1
        for entry in os.listdir(cache):
            (cache / entry).write_bytes(b"no longer")
        m.stop()
        m = mount(name, f"cache_dir={cache}", "debug_count", env=env)
        assert fetched(lambda: check(m, bucket)) == CHUNKS
        assert m.counts()["disk_dropped"] >= CHUNKS
