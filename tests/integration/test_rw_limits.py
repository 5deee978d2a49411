# SPDX-License-Identifier: Apache-2.0
"""Mounts with -o rw at their limits: no room for what programs write, a bucket that refuses some
requests, readers of files that are replaced, several programs that write one file, and many files
at a time."""
import concurrent.futures
import errno
import io
import os
import re
import subprocess
import sys
import tarfile
import threading

import h5py
import numpy as np
import pytest

import faultproxy
import imports
import mounts
import rwmounts
from gateway import needs_gateway
from mounts import HSIMAGE, run
from sampling import EVERYTHING, ONE_IN

MIB = 1 << 20


def write_file(path, number, n=4000, **more):
    with h5py.File(path, "w") as f:
        f.create_dataset("d", data=np.full(n, number, "<i4"), chunks=(1000,), **more)
        f.attrs["number"] = number
    return path


def number_of(path):
    """The number that the whole file has, which must not be mixed from two."""
    with h5py.File(path, "r") as f:
        number = f.attrs["number"]
        data = f["d"][:]
    assert (data == number).all()
    return int(number)


def number_elsewhere(path):
    """number_of() in another process. libhdf5 would block the threads of this one, and so the
    proxy that the mount needs."""
    program = "import sys, test_rw_limits as t; print(t.number_of(sys.argv[1]))"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return int(run(sys.executable, "-c", program, path, env=env, check=True).stdout)


# ---- room ----

@pytest.fixture
def small_disk(tmp_path):
    """A journal directory on a file system of 20 MiB, of which 16 MiB are kept free."""
    path = tmp_path / "small"
    path.mkdir()
    done = run("mount", "-t", "tmpfs", "-o", "size=20M,mode=700", "tmpfs", path)
    if done.returncode:
        pytest.skip("needs the permission to mount a tmpfs")
    yield path
    run("umount", "-l", path, check=True)


def fill(path, size):
    """Writes until the file has the size or there is no room. Returns the errors of write and
    close, and how much was written."""
    fd, at, failed = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666), 0, 0
    try:
        while at < size:
            at += os.pwrite(fd, bytes([1 + at // MIB]) * min(MIB, size - at), at)
    except OSError as e:
        failed = e.errno
    try:
        os.close(fd)
    except OSError as e:
        return failed, e.errno, at
    return failed, 0, at


def no_room(bucket, tmp_path, *options, journal=None):
    source = write_file(tmp_path / "new.h5", 2, 2 * MIB)     # 8 MiB
    old = write_file(tmp_path / "old.h5", 1)
    with rwmounts.RwMount(bucket, tmp_path, *options, journal=journal) as m:
        run("cp", old, m.file("home/x.h5"), check=True)
        done = run("cp", source, m.file("home/x.h5"))
        assert done.returncode == 1 and "No space left on device" in done.stderr
        assert "error writing" in done.stderr and "close" not in done.stderr
        # The old file is better than the part that was written, which stays in the journal.
        assert m.failed() == 1
        assert "it lacks a part" in rwmounts.attribute(m.file("home/x.h5"), "user.hsds.error")
        assert number_of(m.file("home/x.h5")) == 1
        run("cp", old, m.file("home/x.h5"), check=True)
        m.released()
        assert rwmounts.attribute(m.file("home/x.h5"), "user.hsds.error") is None
        # What was accepted has room, also in the bucket. A new file is what was written.
        failed, closed, n = fill(m.file("home/large"), 64 * MIB)
        assert (failed, closed) == (errno.ENOSPC, 0) and 0 < n < 8 * MIB
        assert os.path.getsize(m.file("home/large")) == n
        os.unlink(m.file("home/large"))
        m.released()
        run("cp", old, m.file("home/y.h5"), check=True)
        assert number_of(m.file("home/y.h5")) == 1
    return m


def test_spool_size(bucket, tmp_path):
    no_room(bucket, tmp_path, "spool_size=4M")
    with mounts.Mount(bucket, tmp_path) as m:
        assert number_of(m.file("home/x.h5")) == number_of(m.file("home/y.h5")) == 1


def test_full_disk(bucket, tmp_path, small_disk):
    m = no_room(bucket, tmp_path, journal=small_disk / "journal")
    assert rwmounts.journal_entries(m.journal) == []


def test_a_journal_without_room(bucket, tmp_path, small_disk):
    """Nothing can be written, and everything can be read."""
    with rwmounts.RwMount(bucket, tmp_path) as m:
        write_file(m.file("home/x.h5"), 1)
    (small_disk / "full").write_bytes(bytes(19 * MIB))
    with rwmounts.RwMount(bucket, tmp_path, journal=small_disk / "journal") as m:
        assert number_of(m.file("home/x.h5")) == 1
        failed, closed, n = 0, 0, 0
        try:
            failed, closed, n = fill(m.file("home/y"), MIB)
        except OSError as e:
            failed = e.errno
        assert (failed, closed, n) == (errno.ENOSPC, 0, 0)
        os.rename(m.file("home/x.h5"), m.file("home/z.h5"))


# ---- readers and writers of one file ----

def test_readers_of_a_replaced_file(bucket, tmp_path):
    """They read the old file to its end, and later ones read the new file."""
    sources = [write_file(tmp_path / f"{i}.h5", i, 100_000) for i in range(4)]
    with rwmounts.RwMount(bucket, tmp_path, "cache_size=1M") as m:
        run("cp", sources[0], m.file("home/x.h5"), check=True)
        with open(m.file("home/x.h5"), "rb") as f:
            image = f.read()
        readers = []
        for source in sources[1:]:
            readers.append(open(m.file("home/x.h5"), "rb"))
            run("cp", source, m.file("home/x.h5"), check=True)
            assert number_of(m.file("home/x.h5")) == int(source.stem)
        assert readers[0].read() == image
        for i, reader in enumerate(readers):
            reader.seek(0)
            (tmp_path / "copy.h5").write_bytes(reader.read())
            assert number_of(tmp_path / "copy.h5") == i
            reader.close()


def test_readers_while_a_file_is_replaced(bucket, tmp_path):
    """Each open gives one of the files, whole."""
    sources = [write_file(tmp_path / f"{i}.h5", i, 40_000) for i in range(3)]
    with rwmounts.RwMount(bucket, tmp_path, "metadata_ttl=0") as m:
        run("cp", sources[0], m.file("home/x.h5"), check=True)
        ended, seen = threading.Event(), set()
        program = ("import sys, h5py\nfor line in sys.stdin:\n"
                   " with h5py.File(sys.argv[1], 'r') as f:\n"
                   "  n, d = f.attrs['number'], f['d'][:]\n"
                   " assert (d == n).all(), d\n print(n, flush=True)")

        def read():
            with subprocess.Popen(["/usr/bin/python3", "-c", program, m.file("home/x.h5")],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
                while not ended.is_set():
                    p.stdin.write("\n")
                    p.stdin.flush()
                    seen.add(int(p.stdout.readline()))
                p.stdin.close()
            return p.returncode

        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            readers = [pool.submit(read) for _ in range(3)]
            try:
                # The readers may start late.
                for i in range(600):
                    run("cp", sources[i % 3], m.file("home/x.h5"), check=True)
                    if i >= 30 and len(seen) > 1:
                        break
            finally:
                ended.set()
            assert [r.result() for r in readers] == [0, 0, 0]
        assert len(seen) > 1


def test_two_writers_of_one_file(bucket, tmp_path):
    """They share the file, as on a disk. Others see what was committed last."""
    with rwmounts.RwMount(bucket, tmp_path) as m:
        path = m.file("home/t")
        for root in (tmp_path, m.file("home")):
            one = os.open(os.path.join(root, "t"), os.O_RDWR | os.O_CREAT | os.O_TRUNC)
            two = os.open(os.path.join(root, "t"), os.O_RDWR)
            os.pwrite(one, b"a" * 10000, 0)
            os.pwrite(two, b"b" * 10000, 5000)
            assert os.pread(one, 2, 4999) == b"ab"
            os.close(one)
            os.pwrite(two, b"c", 0)
            os.close(two)
        with open(path, "rb") as f, open(tmp_path / "t", "rb") as g:
            assert f.read() == g.read()
        # Two copies at the same time: one of them, or an error, but no domain of both parts.
        sources = [write_file(tmp_path / f"{i}.h5", i, 100_000) for i in (1, 2)]
        for _ in range(5):
            copies = [subprocess.Popen(["cp", s, m.file("home/x.h5")], stderr=subprocess.DEVNULL)
                      for s in sources]
            assert all(c.wait(mounts.PATIENCE) in (0, 1) for c in copies)
        run("cp", sources[0], m.file("home/x.h5"), check=True)
        assert number_of(m.file("home/x.h5")) == 1
    with mounts.Mount(bucket, tmp_path) as m:
        assert number_of(m.file("home/x.h5")) == 1


# ---- many ----

def test_copies_at_once(bucket, tmp_path):
    sources = [write_file(tmp_path / f"{i}.h5", i, 200_000, compression="gzip") for i in range(16)]
    with rwmounts.RwMount(bucket, tmp_path) as m:
        copies = [subprocess.Popen(["cp", s, m.file("home")]) for s in sources]
        assert [c.wait(mounts.PATIENCE) for c in copies] == [0] * 16
        assert [number_of(m.file("home", s.name)) for s in sources] == list(range(16))
    with mounts.Mount(bucket, tmp_path) as m:
        assert [number_of(m.file("home", s.name)) for s in sources] == list(range(16))
        assert all(rwmounts.is_domain(m.file("home", s.name)) for s in sources)
    assert rwmounts.journal_entries(tmp_path / "journal") == []


@pytest.mark.timeout(1800)
def test_an_archive_of_many_files(bucket, tmp_path):
    """10,000 in the long run."""
    n = 10_000 if EVERYTHING else max(100, 1000 // ONE_IN)
    with h5py.File(tmp_path / "x.h5", "w") as f:
        f["d"] = np.arange(10)
    body = (tmp_path / "x.h5").read_bytes()
    with tarfile.open(tmp_path / "all.tar", "w") as t:
        for i in range(n):
            info = tarfile.TarInfo(f"d{i // 500}/{i}{'.txt' if i % 5 == 0 else '.h5'}")
            content = b"text %d" % i if i % 5 == 0 else body
            info.size = len(content)
            t.addfile(info, io.BytesIO(content))
    with rwmounts.RwMount(bucket, tmp_path) as m:
        run("tar", "xf", tmp_path / "all.tar", "-C", m.file("home"), check=True, timeout=1500)
        m.released()
        assert m.memory_peak() is None or m.memory_peak() < 512 * MIB
    assert rwmounts.journal_entries(tmp_path / "journal") == []
    with mounts.Mount(bucket, tmp_path) as m:
        names = [os.path.join(os.path.relpath(at, m.file("home")), name)
                 for at, _, found in os.walk(m.file("home")) for name in found]
        assert len(names) == n
        for name in sorted(names)[:: n // 50]:
            if name.endswith(".txt"):
                with open(m.file("home", name), "rb") as f:
                    assert f.read() == b"text %s" % re.search(r"(\d+)\.", name)[1].encode()
            else:
                assert run("h5diff", tmp_path / "x.h5", m.file("home", name)).returncode == 0


# ---- buckets that refuse ----

def refuse(method, status, code, **more):
    return {"what": "status", "value": status, "code": code, "method": method, "every": 1, **more}


REFUSALS = {
    "puts": [refuse("PUT", 403, "AccessDenied")],
    "puts of domains": [refuse("PUT", 403, "AccessDenied", path="x.h5/.domain.json")],
    "conditions": [refuse("PUT", 501, "NotImplemented", **{"with": "if-"})],
    "deletes": [refuse("DELETE", 403, "AccessDenied")],
}


@pytest.fixture
def s3_world(client, gateway, environment):
    name = client.new_bucket("limits")
    with faultproxy.Proxy(gateway["endpoint"]) as proxy:
        yield name, proxy, dict(environment, AWS_ENDPOINT_URL=proxy.endpoint)


@pytest.mark.parametrize("what", [pytest.param(w, marks=needs_gateway) for w in REFUSALS])
def test_a_bucket_that_refuses(s3_world, tmp_path, what):
    name, proxy, env = s3_world
    old, new = (write_file(tmp_path / f"{n}.h5", n) for n in (1, 2))
    with rwmounts.RwMount(f"s3://{name}", tmp_path, "metadata_ttl=0", env=env) as m:
        os.mkdir(m.file("home"))
        run("cp", old, m.file("home/x.h5"), check=True)
    proxy.faults[:] = REFUSALS[what]
    proxy.seen[:] = [0] * len(proxy.faults)
    with rwmounts.RwMount(f"s3://{name}", tmp_path, "metadata_ttl=0", env=env) as m:
        done = run("cp", new, m.file("home/x.h5"))
        if what == "conditions":        # then others may interfere, but the copy succeeds
            assert done.returncode == 0 and number_elsewhere(m.file("home/x.h5")) == 2
        elif what == "deletes":      # replacing deletes later; a rename needs it at once
            assert done.returncode == 0 and number_elsewhere(m.file("home/x.h5")) == 2
            moved = run("mv", m.file("home/x.h5"), m.file("home/y.h5"))
            assert moved.returncode == 1
            assert number_elsewhere(m.file("home/x.h5")) == 2
        else:
            assert done.returncode == 1, "an error of close"
            assert rwmounts.attribute(m.file("home/x.h5"), "user.hsds.error")
            assert number_elsewhere(m.file("home/x.h5")) == 1
            assert "x.h5" in m.log()
            assert m.failed() == 1
        del proxy.faults[:]
    if "puts" in what:
        assert rwmounts.journal_entries(m.journal) == [], "the end of the mount tries again"
    with mounts.Mount(f"s3://{name}", tmp_path, env=env) as m:
        assert number_elsewhere(m.file("home/x.h5")) == 2
    done = run(HSIMAGE, "check", f"s3://{name}", env=env)
    assert done.returncode == 0, done.stdout


def test_a_read_only_directory(bucket, tmp_path):
    with rwmounts.RwMount(bucket, tmp_path) as m:
        write_file(m.file("home/x.h5"), 1)
    if run("mount", "--bind", "-o", "ro", bucket, bucket).returncode:
        pytest.skip("needs the permission to mount")
    try:
        run("mount", "-o", "remount,bind,ro", bucket, check=True)
        with rwmounts.RwMount(bucket, tmp_path, "metadata_ttl=0") as m:
            new = write_file(tmp_path / "new.h5", 2)
            assert run("cp", new, m.file("home/x.h5")).returncode == 1
            assert number_of(m.file("home/x.h5")) == 1
            assert rwmounts.attribute(m.file("home/x.h5"), "user.hsds.error")
            assert len(rwmounts.journal_entries(m.journal)) == 1
    finally:
        run("umount", "-l", bucket, check=True)
    assert len(rwmounts.journal_entries(m.journal)) == 1
    with rwmounts.RwMount(bucket, tmp_path, "metadata_ttl=0") as m:
        assert mounts.wait_for(lambda: number_of(m.file("home/x.h5")) == 2)
    assert rwmounts.journal_entries(m.journal) == []
