# SPDX-License-Identifier: Apache-2.0
"""A program that reads what does not come: it can be interrupted, and stands in nobody's way."""
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

import h5py
import numpy as np
import pytest

import mkbucket
from mounts import Mount, is_mounted, run, wait_for
from s3liar import Liar, error

CHUNK = 1 << 20
SLOW_MS = 3000
SLOWER_MS = 8000    # outlasts the start of thirty programs
STALLED_MS = 30000
SOON = 2.0          # half a second, and what a busy machine makes of it

# Says that it is about to read, and what the read came to, and when, after the signal.
READER = """
import os, signal, sys, time
class Interrupted(Exception): pass
def handler(number, frame): raise Interrupted
signal.signal(signal.SIGINT, handler)
fd = os.open(sys.argv[1], os.O_RDONLY)
try:
    print("reading", flush=True)
    print("read", len(os.pread(fd, int(sys.argv[3]), int(sys.argv[2]))), flush=True)
except Interrupted:
    print("interrupted", flush=True)
"""


def make(root, files, chunks=4):
    """Files x0.h5 …, each with a dataset of some MiB. Returns the key of chunk 0 of each, and the
    bytes of the chunks."""
    keys, body = [], [np.full(CHUNK // 4, i + 1, dtype="<i4").tobytes() for i in range(chunks)]
    with mkbucket.Maker(root) as bucket:
        for n in range(files):
            d = bucket.domain(f"x{n}.h5")
            ds = d.dataset(d.root, "data", mkbucket.INT32, [chunks * CHUNK // 4], [CHUNK // 4])
            for i in range(chunks):
                ds.chunk((i,), body[i])
            keys.append(ds.chunk_key((0,)))
    return keys, body


@contextlib.contextmanager
def reader(path, offset=0, size=CHUNK):
    """A process that has begun to read."""
    child = subprocess.Popen([sys.executable, "-c", READER, path, str(offset), str(size)],
                             stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "reading\n"
        yield child
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def interrupt(*children):
    """Seconds until all have noticed."""
    start = time.monotonic()
    for child in children:
        child.send_signal(signal.SIGINT)
    for child in children:
        assert child.stdout.readline() == "interrupted\n"
        child.wait(5)
    return time.monotonic() - start


def threads(m):
    return len(os.listdir(f"/proc/{m.process.pid}/task"))


def places(path):
    """Offsets of the chunks. All files here have one layout."""
    with h5py.File(path, "r") as f:
        ds = f["data"]
        return [ds.id.get_chunk_info(i).byte_offset for i in range(ds.id.get_num_chunks())]


def stall(tmp_path, mount, ms):
    """Chunk 0 of x0.h5 comes after so long; all else at once."""
    keys, body = make(tmp_path / "bucket", 2)
    m = mount(tmp_path / "bucket", "debug_count", f"debug_fault=delay:1:{ms}@{keys[0]}")
    return m, places(m.file("x1.h5")), body


@pytest.fixture
def stalled(tmp_path, mount):
    return stall(tmp_path, mount, SLOW_MS)


@pytest.mark.sampled(by="size")
@pytest.mark.parametrize("wait", [0.1, 1.0], ids=["at-once", "later"])
@pytest.mark.parametrize("size", [CHUNK, 8192], ids=["chunk", "pages"])
def test_an_interrupted_read_comes_back(stalled, wait, size):
    m, at, body = stalled
    path = m.file("x0.h5")
    with reader(path, at[0], size) as child:
        time.sleep(wait)
        assert interrupt(child) < SOON
        # Others are served meanwhile, and the chunk is right once it comes.
        start = time.monotonic()
        with open(m.file("x1.h5"), "rb") as f:
            assert os.pread(f.fileno(), CHUNK, at[1]) == body[1]
        assert time.monotonic() - start < SOON
    with open(path, "rb") as f:
        assert os.pread(f.fileno(), CHUNK, at[0]) == body[0]
    assert "error" not in m.log()


@pytest.mark.parametrize("how", ["silent", "half", "busy"])
def test_a_read_from_s3_can_be_interrupted(tmp_path, mount, how):
    """While the server says nothing, stops within the body, or has refused and is to be asked again
    later. Who comes after it gets the bytes as soon as the server has come to itself."""
    keys, body = make(tmp_path / "bucket", 1)
    over = threading.Event()

    def stop(connection):
        if how == "half":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % CHUNK +
                               body[0][:CHUNK // 2])
        over.wait(30)

    # h5py keeps other threads from running while it waits, and so the server.
    at = places(mount(tmp_path / "bucket").file("x0.h5"))
    with Liar(tmp_path / "bucket") as liar:
        m = mount("s3://bucket", env=liar.environment())
        wrong = error(503, "SlowDown") if how == "busy" else stop
        liar.lie = lambda request, _: wrong if request.key == keys[0] else None
        try:
            with reader(m.file("x0.h5"), at[0]) as child:
                assert wait_for(lambda: any(r.key == keys[0] for r in liar.requests))
                time.sleep(0.3)
                assert interrupt(child) < SOON
        finally:
            liar.lie = None
            over.set()
        with open(m.file("x0.h5"), "rb") as f:
            assert os.pread(f.fileno(), CHUNK, at[0]) == body[0]
        assert not liar.failures
        m.stop()


def test_a_reader_can_be_killed(stalled):
    """Also while it waits for a single page, of which the kernel tells us nothing."""
    m, at, _ = stalled
    with reader(m.file("x0.h5"), at[0], 100) as child:
        time.sleep(0.2)
        start = time.monotonic()
        child.kill()
        child.wait(5)
        assert time.monotonic() - start < SOON


def test_a_read_that_takes_long_is_right(stalled):
    """Reading ahead is cancelled; the pages come all the same, and the chunk is got once."""
    m, at, body = stalled
    path = m.file("x0.h5")
    before = m.counts()
    with open(path, "rb") as f:
        got = os.pread(f.fileno(), at[3] + CHUNK - at[0], at[0])
    for i in range(4):
        assert got[at[i] - at[0]:][:CHUNK] == body[i]
    assert m.counts()["cache_loads"] - before["cache_loads"] == 4
    assert "error" not in m.log()


def test_interrupts_leave_nothing_behind(tmp_path, mount):
    m, at, body = stall(tmp_path, mount, SLOWER_MS)
    path = m.file("x0.h5")
    with open(m.file("x1.h5"), "rb") as f:
        assert os.pread(f.fileno(), CHUNK, at[0]) == body[0]
    memory, most = m.memory(), 0
    for _ in range(3):
        with contextlib.ExitStack() as stack:
            # All read the same pages: the kernel lets one after the other ask for them.
            children = [stack.enter_context(reader(path, at[0])) for _ in range(10)]
            assert interrupt(*children) < SOON
            most = max(most, threads(m))
    assert most < 64
    assert wait_for(lambda: threads(m) < 40, 5)
    assert m.memory() - memory < 64 << 20


def test_stuck_readers_starve_nobody(tmp_path, mount):
    """Forty files whose data do not come, then all that other programs do."""
    files, (_, body) = 40, make(tmp_path / "bucket", 41, chunks=3)
    m = mount(tmp_path / "bucket", "workers=64", f"debug_fault=delay:1+:{SLOW_MS}@db/*/d/*/0")
    other = m.file(f"x{files}.h5")
    at = places(other)
    with contextlib.ExitStack() as stack:
        for n in range(files):
            stack.enter_context(reader(m.file(f"x{n}.h5"), at[0]))
        time.sleep(0.3)
        for pause in (0, 1):
            time.sleep(pause)
            start = time.monotonic()
            assert len(os.listdir(m.path)) == files + 1
            os.stat(m.file("x0.h5"))
            with open(other, "rb") as f:
                assert os.pread(f.fileno(), CHUNK, at[1 + pause]) == body[1 + pause]
            assert time.monotonic() - start < SOON


@pytest.mark.parametrize("how", ["TERM", "unmount"])
def test_a_mount_ends_while_a_read_hangs(tmp_path, how):
    keys, _ = make(tmp_path / "bucket", 2)
    with Mount(tmp_path / "bucket", tmp_path,
               f"debug_fault=delay:1:{STALLED_MS}@{keys[0]}") as m:
        at = places(m.file("x1.h5"))
        with reader(m.file("x0.h5"), at[0]):
            time.sleep(0.2)
            start = time.monotonic()
            if how == "TERM":
                m.process.send_signal(signal.SIGTERM)
            else:
                busy = run("fusermount3", "-u", m.path)
                assert busy.returncode != 0 and is_mounted(m.path), "as of any file system"
                run("fusermount3", "-u", "-z", m.path, check=True)
                m.process.send_signal(signal.SIGTERM)
            assert m.process.wait(20) == 0
            assert time.monotonic() - start < 15
            assert not is_mounted(m.path)


def test_a_mount_ends_while_a_plain_file_hangs(tmp_path):
    """To close the file is to wait for what is loaded ahead of its reader."""
    (tmp_path / "bucket").mkdir()
    (tmp_path / "bucket" / "plain").write_bytes(bytes(4 * CHUNK))
    with Mount(tmp_path / "bucket", tmp_path, "allow_empty", "metadata_ttl=60",
               f"debug_fault=delay:2+:{STALLED_MS}@plain") as m:
        with reader(m.file("plain")) as child:
            time.sleep(0.5)
            assert child.poll() is None, "it waits"
            start = time.monotonic()
            m.process.send_signal(signal.SIGTERM)
            assert m.process.wait(20) == 0
            assert time.monotonic() - start < 15
            assert not is_mounted(m.path) and "leaving" in m.log()


def assert_comes_back(m, *command):
    """When it is interrupted while it waits; and the mount goes on."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.5)
        assert child.poll() is None, "it waits"
        start = time.monotonic()
        child.send_signal(signal.SIGINT)
        child.wait(10)
        assert time.monotonic() - start < SOON
    finally:
        child.kill()
        child.wait()
    assert sorted(os.listdir(m.file(".hsmount"))) == ["metrics", "stats"]


# Waits for its listing or its open, which the bucket does not answer.
@pytest.mark.parametrize("command, name, keys",
                         [("ls", "", "*"), ("stat", "x0.h5", "*"), ("cat", "x0.h5", "db/*")],
                         ids=["listing", "lookup", "open"])
def test_an_interrupted_command_comes_back(tmp_path, command, name, keys):
    """What cannot be cancelled is answered all the same."""
    make(tmp_path / "bucket", 1)
    with Mount(tmp_path / "bucket", tmp_path, f"debug_fault=delay:1+:{SLOW_MS}@{keys}") as m:
        assert_comes_back(m, command, os.path.join(m.path, name))


def test_an_attribute_that_is_interrupted_comes_back(tmp_path):
    make(tmp_path / "bucket", 1)
    with Mount(tmp_path / "bucket", tmp_path, "metadata_ttl=600",
               f"debug_fault=delay:1+:{SLOW_MS}@db/*") as m:
        os.stat(m.file("x0.h5"))    # the name is cached from here on
        assert_comes_back(m, "getfattr", "-n", "user.hsds.chunks", m.file("x0.h5"))


# A timer every 20 ms, as profilers and progress bars have; read without Python's own trying again.
TICKING = """
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.pread.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long]
fd = os.open(sys.argv[1], os.O_RDONLY)
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
size, buf = int(sys.argv[3]), ctypes.create_string_buffer(int(sys.argv[3]))
n = libc.pread(fd, buf, size, int(sys.argv[2]))
signal.setitimer(signal.ITIMER_REAL, 0)
print(n, ctypes.get_errno() if n < 0 else 0, flush=True)
"""


@pytest.mark.parametrize("size", [CHUNK, 8192], ids=["chunk", "pages"])
def test_a_timer_is_no_interrupt(stalled, size):
    """Programs do not expect EINTR of a file: signals that nobody ends a program with give none."""
    m, at, _ = stalled
    done = subprocess.run([sys.executable, "-c", TICKING, m.file("x0.h5"), str(at[0]), str(size)],
                          capture_output=True, text=True, timeout=60)
    assert done.stdout == f"{size} 0\n", done.stderr


# The same timer in a program that waits for a name, an open, a listing or a page.
WAITING = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
print("ready", flush=True)
{"list": os.listdir, "stat": os.stat,
 "read": lambda path: os.pread(os.open(path, os.O_RDONLY), 100, 0)}[sys.argv[1]](sys.argv[2])
"""


@pytest.mark.sampled(by="what")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("what, name, fault", [
    ("list", "", "1+:{}@*"), ("stat", "plain", "1+:{}@*"), ("read", "plain", "1+:{}@plain"),
], ids=["listing", "lookup", "open"])
def test_a_program_with_a_timer_can_be_ended(tmp_path, number, what, name, fault):
    """The kernel tells of the timer only."""
    (tmp_path / "bucket").mkdir()
    (tmp_path / "bucket" / "plain").write_bytes(bytes(CHUNK))
    with Mount(tmp_path / "bucket", tmp_path, "allow_empty",
               "debug_fault=delay:" + fault.format(SLOW_MS)) as m:
        child = subprocess.Popen([sys.executable, "-c", WAITING, what, os.path.join(m.path, name)],
                                 stdout=subprocess.PIPE, text=True)
        try:
            assert child.stdout.readline() == "ready\n"
            time.sleep(0.5)
            assert child.poll() is None, "it waits"
            start = time.monotonic()
            child.send_signal(number)
            assert child.wait(10) == -number
            assert time.monotonic() - start < SOON
        finally:
            child.kill()
            child.wait()
            child.stdout.close()


def test_a_mount_ends_while_an_open_hangs(tmp_path):
    make(tmp_path / "bucket", 1)
    with Mount(tmp_path / "bucket", tmp_path, f"debug_fault=delay:1+:{STALLED_MS}@db/*") as m:
        child = subprocess.Popen(["cat", m.file("x0.h5")], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        try:
            time.sleep(0.5)
            m.process.send_signal(signal.SIGTERM)
            assert m.process.wait(20) == 0
            assert not is_mounted(m.path) and "leaving" in m.log()
        finally:
            child.kill()
            child.wait()
