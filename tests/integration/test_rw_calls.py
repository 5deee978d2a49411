# SPDX-License-Identifier: Apache-2.0
"""Mounts with -o rw: system calls that change files do what they do on a disk. Who sees a file that
is being written, what happens when a commit fails or is interrupted, and the journal directory."""
import ctypes
import errno
import json
import mmap
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

import mounts
from mounts import Mount
from pairs import Pair, make_bucket, python, stats

libc = ctypes.CDLL(None, use_errno=True)
libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
KEEP_SIZE, PUNCH_HOLE = 1, 2
SOON = 4        # seconds: one of patience, and the delays of a busy machine


@pytest.fixture(name="pair")
def fixture_pair(tmp_path):
    make_bucket(tmp_path / "bucket")
    with Pair(tmp_path / "bucket", tmp_path) as pair:
        yield pair


# ---- who sees what ----

LOOK = """
    import os, sys
    with open(sys.argv[1], "rb") as f:
        print(os.stat(sys.argv[1]).st_size, f.read()[:20])
    """


def test_a_file_that_is_written_is_seen_by_its_writer(pair):
    before = python(LOOK, pair.path("old.h5"))
    with open(pair.path("old.h5"), "wb") as f:
        f.write(b"new bytes")
        f.flush()
        assert os.path.samestat(os.stat(pair.path("old.h5")), os.fstat(f.fileno()))
        assert os.path.getsize(pair.path("old.h5")) == 9
        with open(pair.path("old.h5"), "rb") as again:
            assert again.read() == b"new bytes"
        for _ in range(3):      # other processes, and this one in between
            assert python(LOOK, pair.path("old.h5")) == before
            assert os.path.getsize(pair.path("old.h5")) == 9
        f.write(b", more")
        f.flush()
        assert os.fstat(f.fileno()).st_size == os.path.getsize(pair.path("old.h5")) == 15
    with open(pair.path("old.h5"), "rb") as f:
        assert f.read() == b"new bytes, more"
    assert python(LOOK, pair.path("old.h5")).endswith("15 b'new bytes, more'")
    with open(pair.local("old.h5"), "wb") as f:
        f.write(b"new bytes, more")
    pair.equals("old.h5")


def test_a_new_name_is_seen_by_everybody(pair):
    with open(pair.path("new"), "wb") as f:
        f.write(b"some")
        f.flush()
        assert "new" in os.listdir(pair.rw.file("home"))
        assert python(LOOK, pair.path("new")) == "4 b'some'"
        f.write(b" more")
        f.flush()
        assert python(LOOK, pair.path("new")) == "9 b'some more'"
        assert "new" not in os.listdir(pair.ro.file("home"))
        # Another process adds to the same draft.
        python("""
            import sys
            with open(sys.argv[1], "ab") as f:
                f.write(b", theirs")
            """, pair.path("new"))
        assert os.fstat(f.fileno()).st_size == 17
    with open(pair.local("new"), "wb") as f:
        f.write(b"some more, theirs")
    pair.equals("new")


def test_a_child_that_closes_what_it_has_inherited(pair):
    """Nothing is committed by that: the bucket has no object until the writer closes the file."""
    with open(pair.path("new"), "wb") as f:
        for i in range(5):
            f.write(b"%d" % i)
            f.flush()
            subprocess.run(["true"], check=True, pass_fds=[f.fileno()])
        assert "new" not in os.listdir(pair.ro.file("home"))
    assert "new" in os.listdir(pair.ro.file("home"))


def test_a_negative_look_up_does_not_hide_a_new_file(tmp_path):
    """Neither in the mount that makes it, nor in O_EXCL."""
    make_bucket(tmp_path / "bucket")
    with Pair(tmp_path / "bucket", tmp_path, None, "metadata_ttl=60") as pair:
        assert not os.path.exists(pair.path("x")) and not os.path.exists(pair.path("y"))
        with open(pair.path("x"), "w", encoding="ascii") as f:
            assert python(LOOK, pair.path("x")).endswith("0 b''")
            f.write("x")
        assert python(LOOK, pair.path("x")).endswith("1 b'x'")
        with open(tmp_path / "bucket/home/y", "wb") as f:
            f.write(b"other")
        with pytest.raises(FileExistsError):
            os.open(pair.path("y"), os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        with open(pair.path("y"), "ab") as f:
            f.write(b" more")
        assert python(LOOK, pair.path("y")).endswith("10 b'other more'")


def test_a_file_that_another_program_has_removed(tmp_path):
    """The mount has listed the name, and still knows it. An open for writing asks the bucket."""
    bucket = tmp_path / "bucket"
    make_bucket(bucket)
    with Pair(bucket, tmp_path, None, "metadata_ttl=60") as pair:
        for name in "opened", "made", "truncated":
            with open(bucket / "home" / name, "wb") as f:
                f.write(b"other")
        assert {"opened", "made", "truncated"} <= set(os.listdir(pair.path("")))
        for name in "opened", "made", "truncated":
            assert os.stat(pair.path(name)).st_size == 5
            os.unlink(bucket / "home" / name)
        with pytest.raises(FileNotFoundError):
            os.open(pair.path("opened"), os.O_RDWR)
        with pytest.raises(FileNotFoundError):
            os.truncate(pair.path("truncated"), 0)
        with open(pair.path("made"), "ab") as f:
            f.write(b"mine")
        with open(bucket / "home/made", "rb") as f:
            assert f.read() == b"mine"


RANDOM_CALLS = """
import errno, os, random, sys, time
root, seed = sys.argv[1], int(sys.argv[2])
rnd, end, wrong = random.Random(seed), time.monotonic() + 3, []
names = [os.path.join(root, f"f{i}") for i in range(3)]

def write(path, flags):
    fd = os.open(path, os.O_WRONLY | flags)
    try:
        os.write(fd, bytes([seed]) * rnd.randrange(1, 200000))
    finally:
        os.close(fd)

calls = [
    (lambda p: write(p, os.O_CREAT | os.O_TRUNC), (errno.ESTALE,)),
    (lambda p: os.close(os.open(p, os.O_RDWR | os.O_CREAT)), (errno.ESTALE,)),
    (lambda p: os.close(os.open(p, os.O_RDONLY)), (errno.ENOENT,)),
    (lambda p: os.close(os.open(p, os.O_RDWR)), (errno.ENOENT, errno.ESTALE)),
    (lambda p: os.rename(p, rnd.choice(names)), (errno.ENOENT,)),
    (os.unlink, (errno.ENOENT,)),
    (lambda p: os.truncate(p, 0), (errno.ENOENT, errno.ESTALE)),
    (os.stat, (errno.ENOENT,)),
    (lambda p: os.listdir(root), ()),
]
while time.monotonic() < end:
    i = rnd.randrange(len(calls))
    try:
        calls[i][0](rnd.choice(names))
    except OSError as e:
        if e.errno not in calls[i][1]:
            wrong.append((i, errno.errorcode[e.errno]))
print(wrong)
"""


def test_processes_that_use_the_same_names(pair):
    """If a name changes again and again, a call may fail with ESTALE. Otherwise no call fails in a
    way that it does not on a disk. The bucket has what the mount shows."""
    directory = pair.path("sub")
    children = [subprocess.Popen([sys.executable, "-c", RANDOM_CALLS, directory, str(seed)],
                                 stdout=subprocess.PIPE, text=True) for seed in range(1, 6)]
    for child in children:
        out, _ = child.communicate(timeout=60)
        assert (child.returncode, out) == (0, "[]\n"), pair.rw.log()
    pair.rw.stop()
    pair.rw.start()
    assert os.listdir(pair.path("sub")) == os.listdir(pair.ro.file("home/sub"))
    for name in os.listdir(pair.path("sub")):
        shutil.copy(pair.path(f"sub/{name}"), pair.local(name))
        pair.equals(f"sub/{name}", name)


# ---- calls ----

def test_append_to_a_text(pair):
    shutil.copy(pair.path("notes.txt"), pair.local("notes.txt"))
    for place in pair.path("notes.txt"), pair.local("notes.txt"):
        mounts.run("sh", "-c", 'for i in 1 2 3; do echo $i >> "$0"; done', place, check=True)
    pair.equals("notes.txt")


def both_places(pair, name, call):
    results = []
    for path in pair.path(name), pair.local(name):
        results.append(call(path))
    assert results[0] == results[1]
    pair.equals(name)


def test_truncate(pair):
    def sizes(path):
        with open(path, "wb") as f:
            f.write(b"abcdefgh" * 1000)
            f.truncate(100)
            f.seek(50)
            f.write(b"!")
        os.truncate(path, 70)
        os.truncate(path, 200)
        with open(path, "r+b") as f:
            f.truncate(3)
            f.truncate(90)
            f.seek(0)
            return f.read(), os.fstat(f.fileno()).st_size, os.path.getsize(path)
    both_places(pair, "t", sizes)

    def empty(path):
        os.truncate(path, 0)
        return os.path.getsize(path)
    both_places(pair, "t", empty)


def test_a_domain_is_truncated_by_its_path(pair):
    with open(pair.path("old.h5"), "rb") as reader:
        size = os.fstat(reader.fileno()).st_size
        os.truncate(pair.path("old.h5"), 0)
        assert os.path.getsize(pair.path("old.h5")) == 0
        assert len(reader.read()) == size
    with open(pair.local("old.h5"), "wb"):
        pass
    pair.equals("old.h5")


def test_allocate_and_holes(pair):
    def calls(path):
        with open(path, "w+b") as f:
            fd = f.fileno()
            os.posix_fallocate(fd, 0, 300000)
            f.write(b"x" * 200000)
            f.flush()
            size = os.fstat(fd).st_size
            assert libc.fallocate(fd, KEEP_SIZE, 0, 1 << 20) == 0
            assert libc.fallocate(fd, KEEP_SIZE | PUNCH_HOLE, 65536, 65536) == 0
            assert os.fstat(fd).st_size == size == 300000
            f.seek(0)
            return f.read()
    both_places(pair, "a", calls)


def test_a_sparse_file(pair):
    with open(pair.local("s"), "wb") as f:
        for offset in 0, 5 << 20, 50 << 20:
            f.seek(offset)
            f.write(b"data")
        f.truncate(64 << 20)
    mounts.run("cp", "--sparse=always", pair.local("s"), pair.path("s"), check=True)
    pair.equals("s")
    with open(pair.path("t"), "w+b") as f:
        f.seek(10 << 20)
        f.write(b"end")
        f.flush()
        assert os.lseek(f.fileno(), 0, os.SEEK_DATA) >= 9 << 20
        assert os.lseek(f.fileno(), 0, os.SEEK_HOLE) == 0


def test_mapped_memory(pair):
    def change(path):
        with open(path, "w+b") as f:
            f.truncate(3 * mmap.PAGESIZE)
            with mmap.mmap(f.fileno(), 0) as pages:
                pages[5:10] = b"hello"
                pages[2 * mmap.PAGESIZE:2 * mmap.PAGESIZE + 3] = b"end"
                pages.flush()
                pages[20:23] = b"bye"
            f.seek(0)
            return f.read()
    both_places(pair, "m", change)
    python("""
        import mmap, os, sys
        fd = os.open(sys.argv[1], os.O_RDWR)
        pages = mmap.mmap(fd, 0)
        os.close(fd)
        pages[0:5] = b"after"
        os._exit(0)
        """, pair.path("m"))
    with open(pair.local("m"), "r+b") as f:
        f.write(b"after")
    pair.equals("m")


def test_exclusive_creation(pair):
    def exclusive(path):
        codes = []
        for _ in range(2):
            try:
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
                codes.append(0)
            except OSError as e:
                codes.append(e.errno)
        return codes
    both_places(pair, "e", exclusive)
    with pytest.raises(FileExistsError):
        os.open(pair.path("old.h5"), os.O_WRONLY | os.O_CREAT | os.O_EXCL)


def test_other_calls(pair):
    """Each does what it does on a disk."""
    def calls(path):
        os.mknod(path, 0o600)
        with open(path, "r+b", buffering=0) as f:
            f.write(b"0123456789")
            os.fsync(f.fileno())
            os.fdatasync(f.fileno())
            os.chmod(path, 0o600)
            os.utime(path, (1, 1))
            os.rename(path, path + ".renamed")
            f.write(b"after")
            os.rename(path + ".renamed", path)
            result = [os.fstat(f.fileno()).st_size, os.path.getsize(path), os.access(path, os.W_OK)]
            os.unlink(path)
            result += [os.fstat(f.fileno()).st_size, os.path.exists(path)]
            f.write(b"gone")
        with open(path, "wb") as f:
            f.write(b"second")
        with open(path, "r+b") as a, open(path, "rb") as b:
            a.write(b"S")
            a.flush()
            return result, b.read(), os.path.getsize(path)
    both_places(pair, "c", calls)
    both_places(pair, "d", lambda path: os.close(os.open(path, os.O_RDONLY | os.O_CREAT)))


def test_attributes_are_refused_as_tools_expect(pair):
    path = pair.path("notes.txt")
    for name, code in ("system.posix_acl_access", errno.EOPNOTSUPP),  \
                      ("security.selinux", errno.EOPNOTSUPP), ("user.x", errno.EOPNOTSUPP):
        with pytest.raises(OSError) as raised:
            os.setxattr(path, name, b"x")
        assert raised.value.errno in (code, errno.EINVAL), name
    for name, code in ("user.x", errno.ENODATA), ("user.hsds.root", errno.EOPNOTSUPP):
        with pytest.raises(OSError) as raised:
            os.removexattr(path, name)
        assert raised.value.errno == code, name
    for name in "security.capability", "user.x":
        with pytest.raises(OSError) as raised:
            os.getxattr(path, name)
        assert raised.value.errno == errno.ENODATA


def test_access_control_lists_are_set(pair):
    with open(pair.path("old.h5"), "rb"):
        pass
    acls = json.loads(os.getxattr(pair.path("old.h5"), "user.hsds.acls"))
    acls["ann"] = dict.fromkeys(next(iter(acls.values())), True)
    os.setxattr(pair.path("old.h5"), "user.hsds.acls", json.dumps(acls).encode())
    for m in pair.rw, pair.ro:
        assert json.loads(os.getxattr(m.file("home/old.h5"), "user.hsds.acls")) == acls
    with pytest.raises(OSError) as raised:
        os.setxattr(pair.path("old.h5"), "user.hsds.acls", b"[]")
    assert raised.value.errno == errno.EINVAL


def test_files_of_the_daemon_are_not_written(pair):
    for flags in os.O_WRONLY, os.O_RDWR | os.O_TRUNC, os.O_WRONLY | os.O_CREAT:
        with pytest.raises(OSError) as raised:
            os.open(pair.rw.file(".hsmount/stats"), flags)
        assert raised.value.errno in (errno.EROFS, errno.EACCES)
    with pytest.raises(PermissionError):
        os.open(pair.rw.file(".hsmount/new"), os.O_WRONLY | os.O_CREAT)


def test_a_file_without_a_change_sends_nothing(pair):
    with open(pair.path("notes.txt"), "rb"):
        pass
    before = stats(pair)["store"]["calls"]["put"]
    for _ in range(3):
        os.close(os.open(pair.path("notes.txt"), os.O_RDWR))
    with open(pair.path("notes.txt"), "rb") as f:
        assert f.read() == b"first\n"
    assert stats(pair)["store"]["calls"]["put"] == before


# ---- the mount ----

def test_files_that_are_open_at_the_end(tmp_path):
    """SIGTERM commits them."""
    make_bucket(tmp_path / "bucket")
    with Mount(tmp_path / "bucket", tmp_path / "rw", "rw") as m:
        writer = subprocess.Popen(
            [sys.executable, "-c", "import sys, time\nf = open(sys.argv[1], 'wb')\n"
             "f.write(b'begun')\nf.flush()\nprint(1, flush=True)\ntime.sleep(60)",
             m.file("home/begun")], stdout=subprocess.PIPE)
        try:
            assert writer.stdout.readline() == b"1\n"
            m.process.terminate()
            assert m.process.wait(30) == 0
        finally:
            writer.kill()
            writer.wait()
            writer.stdout.close()
            mounts.unmount(m.path)
        assert (tmp_path / "bucket/home/begun").read_bytes() == b"begun"
        m.process = None
        assert m.stop() is None
        m.start()


def test_the_journal_directory(tmp_path):
    make_bucket(tmp_path / "bucket")
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "open").mkdir(mode=0o777)
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "mnt").mkdir()
    for name, words in ("file", "file"), ("open", "open"), ("file/below", "file"):
        command = [mounts.HSMOUNT, tmp_path / "bucket", tmp_path / "mnt", "-f",
                   "-o", f"rw,journal_dir={tmp_path / name}"]
        done = mounts.run(*command)
        assert done.returncode == 1 and words in done.stderr, done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
    for options in "journal_dir=/tmp", "spool_size=1G", "rw,spool_size=1":
        done = mounts.run(mounts.HSMOUNT, tmp_path / "bucket", tmp_path / "mnt", "-f", "-o",
                          options)
        assert done.returncode == 2, done.stderr
    # Directories above it are made.
    deep = tmp_path / "a/b/journal"
    with Mount(tmp_path / "bucket", tmp_path / "rw", "rw", f"journal_dir={deep}") as m:
        with open(m.file("home/x"), "wb") as f:
            f.write(b"x")
            f.flush()
            assert os.listdir(deep)
    assert (tmp_path / "bucket/home/x").read_bytes() == b"x"


def test_a_full_spool(tmp_path):
    """Room is missing at write, never at close; what is there is committed."""
    make_bucket(tmp_path / "bucket")
    with Mount(tmp_path / "bucket", tmp_path / "rw", "rw", "spool_size=4M") as m:
        with open(m.file("home/large"), "wb", buffering=0) as f:
            with pytest.raises(OSError) as raised:
                for _ in range(100):
                    f.write(b"x" * 65536)
            assert raised.value.errno == errno.ENOSPC
            size = os.fstat(f.fileno()).st_size
            assert 1 << 20 < size <= 4 << 20
        with open(m.file("home/small"), "wb") as f:
            f.write(b"fits")
    assert os.path.getsize(tmp_path / "bucket/home/large") == size


def test_a_read_only_mount(pair):
    for path, flags in ("old.h5", os.O_RDWR), ("old.h5", os.O_WRONLY | os.O_TRUNC), \
            ("new", os.O_WRONLY | os.O_CREAT):
        with pytest.raises(OSError) as raised:
            os.open(pair.ro.file("home", path), flags)
        assert raised.value.errno == errno.EROFS
    with pytest.raises(OSError) as raised:
        os.truncate(pair.ro.file("home/old.h5"), 0)
    assert raised.value.errno == errno.EROFS


# ---- failures and interrupts ----

def write_precious(path):
    """0, or the error of close(2); None if the file cannot be opened."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT)
    except PermissionError:
        return None
    os.write(fd, b"precious")
    try:
        os.close(fd)
    except OSError as e:
        return e.errno
    return 0


def test_a_commit_that_fails(tmp_path):
    """Each request for the object fails in turn. If close(2) fails, the file can still be read, and
    the attribute and the log say why. It is tried again at the end."""
    failed = 0
    for n in range(1, 8):
        make_bucket(tmp_path / f"bucket{n}")
        with Mount(tmp_path / f"bucket{n}", tmp_path / f"rw{n}", "rw",
                   f"debug_fault=fail:{n}:EACCES@home/new") as m:
            code = write_precious(m.file("home/new"))
            if code:
                assert code == errno.EACCES
                failed += 1
                with open(m.file("home/new"), "rb") as again:
                    assert again.read() == b"precious"
                assert "draft" in os.getxattr(m.file("home/new"), "user.hsds.error").decode()
                assert len([line for line in m.log().splitlines() if "home/new" in line]) == 1, \
                    m.log()
        assert code is None or (tmp_path / f"bucket{n}/home/new").read_bytes() == b"precious"
    assert failed


INTERRUPTED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
os.write(fd, b"begun")
print("ready", flush=True)
try:
    os.close(fd)
    print("done")
except (OSError, KeyboardInterrupt) as e:
    print(type(e).__name__)
"""


def interrupted(path, script, seconds):
    """Ctrl-C reaches the script after this time. Returns what it prints."""
    with subprocess.Popen([sys.executable, "-c", script, path], stdout=subprocess.PIPE,
                          text=True) as child:
        assert child.stdout.readline() == "ready\n"
        time.sleep(seconds)
        start = time.monotonic()
        child.send_signal(signal.SIGINT)
        result = child.stdout.readline()
        assert time.monotonic() - start < SOON
        return result


CREATING = """
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
signal.signal(signal.SIGINT, lambda *_: None)
print("ready", flush=True)
print(libc.open(os.fsencode(sys.argv[1]), os.O_WRONLY | os.O_CREAT, 0o666), ctypes.get_errno())
"""


def open_drafts(m):
    with open(m.file(".hsmount/stats"), encoding="utf-8") as f:
        return json.load(f)["drafts"]["open"]


def test_an_interrupt_while_a_file_is_created(tmp_path):
    """The call fails, and no file stays open that no program has."""
    make_bucket(tmp_path / "bucket")
    with Mount(tmp_path / "bucket", tmp_path / "rw", "rw",
               "metadata_ttl=0", "debug_fault=delay:2:8000@home/new") as m:
        assert interrupted(m.file("home/new"), CREATING, 1) == f"-1 {errno.EINTR}\n"
        assert mounts.wait_for(lambda: (tmp_path / "bucket/home/new").exists())
        assert mounts.wait_for(lambda: open_drafts(m) == 0)


def test_an_interrupt_while_a_file_is_committed(tmp_path):
    """The program ends soon; the commit goes on."""
    make_bucket(tmp_path / "bucket")
    with Mount(tmp_path / "bucket", tmp_path / "rw", "rw",
               "debug_fault=delay:2+:6000@home/new") as m:
        assert interrupted(m.file("home/new"), INTERRUPTED, 1) != "done\n"
        assert not (tmp_path / "bucket/home/new").exists()
        assert mounts.wait_for(lambda: (tmp_path / "bucket/home/new").exists())
    assert (tmp_path / "bucket/home/new").read_bytes() == b"begun"
