# SPDX-License-Identifier: Apache-2.0
"""Programs that wait for the bucket can be interrupted and killed, and do not delay each other."""
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
SHORT_MS = 300      # shorter than the patience of every request
SLOW_MS = 3000
SLOWER_MS = 25000   # outlasts the start of thirty programs on a busy machine
STALLED_MS = 30000
SOON = 2.5          # one second of patience, and the delays of a busy machine

# A program that makes one call. It reports the signal or the error that ends the call.
PROGRAM = """
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.pread.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long]
call, path, size, offset, timer = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])

def check(result):          # of a call that Python does not repeat
    if result < 0:
        raise OSError(ctypes.get_errno(), call)
    return result

fd = os.open(path, os.O_RDONLY) if "read" in call else -1
buf = ctypes.create_string_buffer(size)
calls = {
    "lookup": lambda: os.stat(path),
    "listing": lambda: os.listdir(path),
    "attribute": lambda: os.getxattr(path, "user.hsds.chunks"),
    "open": lambda: check(libc.open(os.fsencode(path), os.O_RDONLY)),
    "read": lambda: os.pread(fd, size, offset),
    "read once": lambda: check(libc.pread(fd, buf, size, offset)),
}
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, timer and 0.05, timer and 0.05)
try:
    print("ready", flush=True)
    calls[call]()
    print("done", flush=True)
except (OSError, KeyboardInterrupt) as e:
    print(type(e).__name__, flush=True)
"""


@contextlib.contextmanager
def program(call, path, size=CHUNK, offset=0, timer=False):
    """A running PROGRAM. With a timer, it gets a signal that it handles 20 times a second."""
    arguments = [call, path, str(size), str(offset), str(int(timer))]
    child = subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments],
                             stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "ready\n"
        yield child
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def wait_until_blocked(*children):
    """Until all sleep in their calls: they sleep nowhere else after they were ready."""
    def sleeps(child):
        with open(f"/proc/{child.pid}/stat", encoding="ascii") as f:
            return f.read().rsplit(")", 1)[1].split()[0] in "SD"
    assert wait_for(lambda: all(map(sleeps, children))), "a call is not delayed"


def interrupt(*children):
    """Sends Ctrl-C to all and returns the seconds until all have ended with KeyboardInterrupt."""
    start = time.monotonic()
    for child in children:
        child.send_signal(signal.SIGINT)
    for child in children:
        assert child.stdout.readline() == "KeyboardInterrupt\n"
        child.wait(5)
    return time.monotonic() - start


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


def threads(m):
    return len(os.listdir(f"/proc/{m.process.pid}/task"))


def places(path):
    """Offsets of the chunks. All files here have one layout."""
    with h5py.File(path, "r") as f:
        ds = f["data"]
        return [ds.id.get_chunk_info(i).byte_offset for i in range(ds.id.get_num_chunks())]


def delay_chunk(tmp_path, mount, ms):
    """A mount in which chunk 0 of x0.h5 is delayed."""
    keys, body = make(tmp_path / "bucket", 2)
    m = mount(tmp_path / "bucket", "debug_count", f"debug_fault=delay:1:{ms}@{keys[0]}")
    return m, places(m.file("x1.h5")), body


@contextlib.contextmanager
def delayed_call(tmp_path, call, ms):
    """A mount and the path for a call that takes so long, because a request for it is delayed."""
    make(tmp_path / "bucket", 1)
    (tmp_path / "bucket" / "dir").mkdir()
    (tmp_path / "bucket" / "dir" / "plain").write_bytes(bytes(CHUNK))
    name, fault, ttl = {
        "lookup": ("dir/plain", "1+:{}@dir/plain*", 0),
        "listing": ("dir", "1+:{}@dir/", 0),
        "open": ("x0.h5", "1:{}@db/*", 600),
        "attribute": ("x0.h5", "1:{}@db/*", 600),
        "read once": ("dir/plain", "1+:{}@dir/plain", 600),
    }[call]
    with Mount(tmp_path / "bucket", tmp_path, f"metadata_ttl={ttl}",
               "debug_fault=delay:" + fault.format(ms)) as m:
        if ttl:
            os.listdir(m.file("dir"))    # its names are cached from here on
        yield m, os.path.join(m.path, name)


# ---- interrupted reads ----

@pytest.fixture
def slow(tmp_path, mount):
    return delay_chunk(tmp_path, mount, SLOW_MS)


@pytest.mark.sampled(by="size")
@pytest.mark.parametrize("wait", [0, 1.0], ids=["early", "late"])
@pytest.mark.parametrize("size", [CHUNK, 8192], ids=["chunk", "pages"])
def test_ctrl_c_ends_a_blocked_read(slow, wait, size):
    m, at, body = slow
    path = m.file("x0.h5")
    with program("read", path, size, at[0]) as child:
        wait_until_blocked(child)
        time.sleep(wait)        # late: the read has been blocked for a while
        assert interrupt(child) < SOON
        # Other programs are served meanwhile, and the chunk is right when it arrives.
        start = time.monotonic()
        with open(m.file("x1.h5"), "rb") as f:
            assert os.pread(f.fileno(), CHUNK, at[1]) == body[1]
        assert time.monotonic() - start < SOON
    with open(path, "rb") as f:
        assert os.pread(f.fileno(), CHUNK, at[0]) == body[0]
    assert "error" not in m.log()


@pytest.mark.parametrize("how", ["silent", "half", "busy"])
def test_a_read_from_s3_can_be_interrupted(tmp_path, mount, how):
    """The server does not answer, stops within the body, or refuses the request for now. A
    read after that gets the bytes as soon as the server works again."""
    keys, body = make(tmp_path / "bucket", 1)
    over = threading.Event()

    def stop(connection):
        if how == "half":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % CHUNK +
                               body[0][:CHUNK // 2])
        over.wait(30)

    # From another mount, because h5py blocks the thread of the server while it waits.
    at = places(mount(tmp_path / "bucket").file("x0.h5"))
    with Liar(tmp_path / "bucket") as liar:
        m = mount("s3://bucket", env=liar.environment())
        wrong = error(503, "SlowDown") if how == "busy" else stop
        liar.lie = lambda request, _: wrong if request.key == keys[0] else None
        try:
            with program("read", m.file("x0.h5"), CHUNK, at[0]) as child:
                assert wait_for(lambda: any(r.key == keys[0] for r in liar.requests))
                assert interrupt(child) < SOON
        finally:
            liar.lie = None
            over.set()
        with open(m.file("x0.h5"), "rb") as f:
            assert os.pread(f.fileno(), CHUNK, at[0]) == body[0]
        assert not liar.failures
        m.stop()


def test_a_long_read_is_right_and_loads_each_chunk_once(slow):
    """The daemon cancels the read-ahead, but not the load of the chunk."""
    m, at, body = slow
    path = m.file("x0.h5")
    before = m.counts()
    with open(path, "rb") as f:
        got = os.pread(f.fileno(), at[3] + CHUNK - at[0], at[0])
    for i in range(4):
        assert got[at[i] - at[0]:][:CHUNK] == body[i]
    assert m.counts()["cache_loads"] - before["cache_loads"] == 4
    assert "error" not in m.log()


def test_a_repeated_read_can_be_interrupted_again(slow):
    m, at, _ = slow
    with contextlib.ExitStack() as stack:
        for _ in range(2):
            child = stack.enter_context(program("read", m.file("x0.h5"), CHUNK, at[0]))
            wait_until_blocked(child)
            assert interrupt(child) < SOON


def test_many_interrupted_readers_end_together_and_leave_nothing_behind(tmp_path, mount):
    m, at, body = delay_chunk(tmp_path, mount, SLOWER_MS)
    path = m.file("x0.h5")
    with open(m.file("x1.h5"), "rb") as f:
        assert os.pread(f.fileno(), CHUNK, at[0]) == body[0]
    memory, most = m.memory(), 0
    for _ in range(3):
        with contextlib.ExitStack() as stack:
            # All read the same pages: the kernel lets one after the other request them.
            children = [stack.enter_context(program("read", path, CHUNK, at[0]))
                        for _ in range(10)]
            # Ten processes also take time to end on a busy machine.
            assert interrupt(*children) < 2 * SOON < SLOWER_MS / 1000
            most = max(most, threads(m))
    assert most < 64
    assert wait_for(lambda: threads(m) < 40, 5)
    assert m.memory() - memory < 64 << 20


# ---- all calls ----

CALLS = ["lookup", "listing", "open", "attribute", "read once"]


@pytest.mark.parametrize("call", CALLS)
def test_a_timer_does_not_disturb_a_short_call(tmp_path, call):
    """Few programs expect EINTR from a file."""
    with delayed_call(tmp_path, call, SHORT_MS) as (_, path):
        with program(call, path, timer=True) as child:
            start = time.monotonic()
            result = child.stdout.readline()
            seconds = time.monotonic() - start
    assert seconds >= SHORT_MS / 1000 - 0.1, "the call was not delayed"
    # On a busy machine the call may take longer than the daemon's patience.
    assert result == "done\n" or seconds > (0.5 if call == "read once" else 1)


@pytest.mark.parametrize("call", CALLS)
def test_ctrl_c_ends_a_blocked_call(tmp_path, call):
    with delayed_call(tmp_path, call, SLOW_MS) as (m, path):
        with program(call, path) as child:
            wait_until_blocked(child)
            assert interrupt(child) < SOON
        # The mount still works.
        assert sorted(os.listdir(m.file(".hsmount"))) == ["metrics", "stats"]


def test_many_interrupted_lookups_of_one_name_end_together(tmp_path):
    """The kernel lets one after the other request it."""
    with delayed_call(tmp_path, "lookup", SLOW_MS) as (_, path), contextlib.ExitStack() as stack:
        children = [stack.enter_context(program("lookup", path)) for _ in range(6)]
        wait_until_blocked(*children)
        assert interrupt(*children) < SOON


@pytest.mark.sampled(by="call")
@pytest.mark.parametrize("timer", [False, True], ids=["plain", "timer"])
@pytest.mark.parametrize("call", CALLS)
def test_a_blocked_program_can_be_killed(tmp_path, call, timer):
    """Also if the kernel has already reported the interrupt of a timer: it reports only the first
    signal."""
    with delayed_call(tmp_path, call, SLOW_MS) as (_, path):
        with program(call, path, timer=timer) as child:
            wait_until_blocked(child)
            start = time.monotonic()
            child.kill()
            assert child.wait(10) == -signal.SIGKILL
            assert time.monotonic() - start < SOON


def test_a_reader_of_one_page_can_be_killed(slow):
    m, at, _ = slow
    with program("read", m.file("x0.h5"), 100, at[0]) as child:
        wait_until_blocked(child)
        start = time.monotonic()
        child.kill()
        child.wait(5)
        assert time.monotonic() - start < SOON


def test_a_program_with_a_timer_reads_by_repetition(slow):
    """As Python and libhdf5 do. The chunk is loaded once, although reads are cancelled."""
    m, at, _ = slow
    before = m.counts()
    with program("read", m.file("x0.h5"), CHUNK, at[0], timer=True) as child:
        assert child.stdout.readline() == "done\n"
    # The read-ahead of the next chunk may have begun.
    assert m.counts()["cache_loads"] - before["cache_loads"] <= 4


def test_blocked_readers_do_not_delay_other_programs(tmp_path, mount):
    files, (_, body) = 40, make(tmp_path / "bucket", 41, chunks=3)
    m = mount(tmp_path / "bucket", "workers=64", f"debug_fault=delay:1+:{SLOW_MS}@db/*/d/*/0")
    other = m.file(f"x{files}.h5")
    at = places(other)
    with contextlib.ExitStack() as stack:
        for n in range(files):
            last = stack.enter_context(program("read", m.file(f"x{n}.h5"), CHUNK, at[0]))
        wait_until_blocked(last)
        for pause in (0, 1):
            time.sleep(pause)       # also after a second of blocked reads
            start = time.monotonic()
            assert len(os.listdir(m.path)) == files + 1
            os.stat(m.file("x0.h5"))
            with open(other, "rb") as f:
                assert os.pread(f.fileno(), CHUNK, at[1 + pause]) == body[1 + pause]
            assert time.monotonic() - start < SOON


# ---- the end of the mount ----

@pytest.mark.parametrize("how", ["TERM", "unmount"])
def test_a_mount_ends_while_a_read_is_blocked(tmp_path, how):
    keys, _ = make(tmp_path / "bucket", 2)
    with Mount(tmp_path / "bucket", tmp_path,
               f"debug_fault=delay:1:{STALLED_MS}@{keys[0]}") as m:
        at = places(m.file("x1.h5"))
        with program("read", m.file("x0.h5"), CHUNK, at[0]):
            time.sleep(0.2)         # until the daemon has the request
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


def test_a_mount_ends_while_a_plain_file_is_blocked(tmp_path):
    """Closing the file would wait for the blocks that are prefetched."""
    (tmp_path / "bucket").mkdir()
    (tmp_path / "bucket" / "plain").write_bytes(bytes(4 * CHUNK))
    with Mount(tmp_path / "bucket", tmp_path, "allow_empty", "metadata_ttl=60",
               f"debug_fault=delay:2+:{STALLED_MS}@plain") as m:
        with program("read", m.file("plain")) as child:
            time.sleep(0.5)         # until the first block is read, and the others are requested
            assert child.poll() is None, "the read is not delayed"
            start = time.monotonic()
            m.process.send_signal(signal.SIGTERM)
            assert m.process.wait(20) == 0
            assert time.monotonic() - start < 15
            assert not is_mounted(m.path) and "exiting without waiting" in m.log()


def test_a_mount_ends_while_an_open_is_blocked(tmp_path):
    """Nobody but the watchdog notices that the connection to the kernel has ended."""
    make(tmp_path / "bucket", 1)
    with Mount(tmp_path / "bucket", tmp_path, f"debug_fault=delay:1+:{STALLED_MS}@db/*") as m:
        with program("open", m.file("x0.h5")):
            time.sleep(0.2)         # until the daemon has the request
            run("umount", "-f", m.path)     # the connection ends, and a busy mount point stays
            assert m.process.wait(20) == 0
            assert "exiting without waiting" in m.log()
        run("umount", "-l", m.path)
        assert not is_mounted(m.path)
