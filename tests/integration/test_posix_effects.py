# SPDX-License-Identifier: Apache-2.0
"""System calls in a directory bucket and in S3: effects that other mounts and other programs must
see, or must not see. test_posix.py has the results of single calls."""
import ctypes
import fcntl
import mmap
import os
import re
import subprocess
import sys
import threading

import pytest

import mkbucket
import mounts
from gateway import environment_of, needs_gateway
from mounts import Mount
from pairs import Pair, make_bucket, python, stats
from syscalls import CREATE, READ, content, content_of_new, libc, new, result, with_file


@pytest.fixture(scope="module", name="pair",
                params=["directory", pytest.param("gateway", marks=needs_gateway)])
def fixture_pair(request, tmp_path_factory):
    """Mounts of one bucket, a writable one and a read-only one, in a directory and in S3."""
    root, env = tmp_path_factory.mktemp(request.param), None
    make_bucket(root / "bucket")
    url = os.fspath(root / "bucket")
    if request.param == "gateway":
        client = request.getfixturevalue("client")
        env = environment_of(request.getfixturevalue("gateway"), root)
        name = client.new_bucket("posix")
        client.upload(name, url)
        url = f"s3://{name}"
    with Pair(url, root, env) as pair:
        yield pair


class Place:
    """A directory of its own in both mounts."""

    def __init__(self, pair, name):
        self.pair, self.name = pair, re.sub(r"\W+", "-", name)
        os.mkdir(self.rw())

    def rw(self, *names):
        return self.pair.rw.file("home", self.name, *names)

    def ro(self, *names):
        return self.pair.ro.file("home", self.name, *names)

    def seen(self, name):
        """The bytes that the other mount shows, or the errno."""
        return result(lambda: content(self.ro(name)))


@pytest.fixture(name="place")
def fixture_place(pair, request):
    return Place(pair, request.node.name)


def stored(fd):
    with mmap.mmap(fd, 0) as pages:
        pages[:5] = b"bytes"
        pages.flush()


WRITES = {
    "fsync": (0, lambda fd: (os.write(fd, b"bytes"), os.fsync(fd))),
    "fdatasync": (0, lambda fd: (os.write(fd, b"bytes"), os.fdatasync(fd))),
    "O_SYNC": (os.O_SYNC, lambda fd: os.write(fd, b"bytes")),
    "O_DSYNC": (os.O_DSYNC, lambda fd: os.write(fd, b"bytes")),
    "RWF_DSYNC": (0, lambda fd: os.pwritev(fd, [b"bytes"], 0, os.RWF_DSYNC)),
    "msync": (0, lambda fd: (os.ftruncate(fd, 5), stored(fd))),
    "close of a duplicate": (0, lambda fd: (os.write(fd, b"bytes"), os.close(os.dup(fd)))),
}
NO_WRITES = {
    "write": lambda fd: os.write(fd, b"bytes"),
    "syncfs": libc.syncfs,
    "sync_file_range": lambda fd: libc.sync_file_range(fd, ctypes.c_int64(0), ctypes.c_int64(5), 7),
}


def test_what_stores_an_open_file(place):
    for i, (name, (flags, write)) in enumerate(WRITES.items()):
        assert with_file(place.rw(str(i)), CREATE | flags, write,
                         lambda fd, i=i: place.seen(str(i))) == b"bytes", name


def test_what_does_not_store_an_open_file(place):
    def calls(fd):
        for name, call in NO_WRITES.items():
            call(fd)
            assert place.seen("x") == "ENOENT", name
        with_file(place.rw(), READ, os.fsync)
        assert place.seen("x") == "ENOENT"
    with_file(place.rw("x"), CREATE, calls)
    assert place.seen("x") == b"bytes"


ODD_NAMES = [
    b" ", b" a ", b"a\nb", b"a\rb", b"\t", b"\x7f", b"\xc2\x80", b"a\\b", b"%", b"a%2Fb",
    b"a+b", b"a?b#c&d=e", b"*", b"\'\"", b"<&>", b";", b"a:b", b"...", b".x", b"a.", b"~", b"-rf",
    "ü".encode(), "u\u0308".encode(), "\u200b".encode(), "\ufeff".encode(),
    "\U0001f600".encode(), b".fuse_hidden0001", b".hsmount", b"db", b"x.domain.json"]


def test_odd_names(place):
    """A name in the mount has the same bytes as in the bucket, and in another mount."""
    for name in ODD_NAMES:
        assert content_of_new(place.rw(), name) == b"odd", name
    for listed in place.rw(), place.ro():
        assert set(os.listdir(os.fsencode(listed))) == set(ODD_NAMES)
    shown, source = os.fsencode(place.ro()) + b"/", os.fsencode(place.rw()) + b"/"
    for name in ODD_NAMES:
        assert content(shown + name) == b"odd", name
    for name in ODD_NAMES[::2]:
        os.rename(source + name, source + b"moved " + name)
    assert set(os.listdir(shown)) == \
        {b"moved " + name for name in ODD_NAMES[::2]} | set(ODD_NAMES[1::2])
    for name in os.listdir(source):
        os.unlink(source + name)
    assert os.listdir(shown) == []


APPEND = """
    import os, sys
    fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for i in range(200):
        os.write(fd, b"%s %03d\\n" % (sys.argv[2].encode(), i))
    sys.stdin.read()
    """


def test_processes_that_append(place):
    """No line overwrites another one."""
    command = [sys.executable, "-c", APPEND.replace("\n    ", "\n"), place.rw("log")]
    children = [subprocess.Popen([*command, word], stdin=subprocess.PIPE) for word in "abc"]
    for child in children:
        child.communicate(timeout=mounts.PATIENCE)
        assert child.returncode == 0
    lines = place.seen("log").splitlines()
    assert sorted(lines) == [b"%c %03d" % (word, i) for word in b"abc" for i in range(200)]


def test_a_mapping_that_processes_share(place):
    path = place.rw("mapped")

    def change(fd):
        os.ftruncate(fd, 2 * mmap.PAGESIZE)
        with mmap.mmap(fd, 0) as pages:
            pages[:4] = b"mine"
            theirs = python("""
                import mmap, os, sys
                pages = mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 0)
                print(pages[:4])
                pages[4096:4102] = b"theirs"
                """, path)
            return theirs, pages[4096:4102]
    assert with_file(path, CREATE, change) == ("b'mine'", b"theirs")
    assert place.seen("mapped") == (b"mine" + bytes(4092) + b"theirs").ljust(8192, b"\0")


def test_copies_of_a_domain(place):
    """By calls that copy in the kernel. The copy becomes a domain."""
    calls = {"copy_file_range": lambda a, b: os.copy_file_range(a, b, 1 << 24),
             "sendfile": lambda a, b: os.sendfile(b, a, None, 1 << 24)}
    source = place.pair.path("old.h5")
    for name, call in calls.items():
        target = place.rw(f"{name}.h5")

        def copy(fd):
            def some(to):
                while call(fd, to):
                    pass
            with_file(target, CREATE, some)
        with_file(source, READ, copy)
        done = mounts.run("h5diff", place.pair.ro.file("home/old.h5"), place.ro(f"{name}.h5"))
        assert done.returncode == 0, done.stdout + done.stderr
        assert os.getxattr(place.ro(f"{name}.h5"), "user.hsds.root")


def send_all(source, target, looks=False):
    """Copies by sendfile(2), without a look at the size unless `looks` is set."""
    def send(fd, to):
        if looks:
            os.fstat(fd)
        while os.sendfile(to, fd, None, 1 << 24):
            pass
    with_file(source, READ, lambda fd: with_file(target, CREATE, lambda to: send(fd, to)))


@pytest.mark.parametrize("options", [(), ("stat=exact",), ("stat=estimate", "metadata_ttl=0")],
                         ids=str)
def test_a_file_that_was_not_examined_before_it_was_opened(tmp_path, options):
    """Copies in the kernel end at the size that the kernel has. An open gives it the right one.
    With estimates, several first opens at the same time need an fstat for it (SEMANTICS.md)."""
    make_bucket(tmp_path / "bucket")
    with Mount(tmp_path / "bucket", tmp_path, *options) as m:
        source, targets = m.file("home/old.h5"), [tmp_path / f"copy{i}" for i in range(8)]
        looks = "stat=estimate" in options
        threads = [threading.Thread(target=send_all, args=(source, t, looks)) for t in targets]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(mounts.PATIENCE)
        for target in targets:
            mounts.run("cmp", source, target, check=True)
    with Mount(tmp_path / "bucket", tmp_path, *options) as m:
        # The kernel cannot look this name up again.
        assert with_file(m.file("home/old.h5"), os.O_PATH, lambda fd: content(
            f"/proc/self/fd/{fd}")) == targets[0].read_bytes()
    with Mount(tmp_path / "bucket", tmp_path, *options) as m:
        send_all(m.file("home/old.h5"), tmp_path / "alone")
        assert (tmp_path / "alone").read_bytes() == targets[0].read_bytes()


def test_statvfs(place):
    """The room is that of the file system of the bucket. In S3, it is that of the journal."""
    space, read_only = os.statvfs(place.rw()), os.statvfs(place.ro())
    if place.pair.rw.bucket.startswith("s3:"):
        assert space.f_blocks == stats(place.pair)["drafts"]["spool_size_bytes"] // space.f_frsize
        assert 0 < space.f_bavail <= space.f_blocks and read_only.f_blocks == 0
    else:
        disk = os.statvfs(place.pair.rw.bucket)
        total = disk.f_blocks * disk.f_frsize // space.f_frsize
        assert space.f_blocks == read_only.f_blocks == total
    assert read_only.f_flag & os.ST_RDONLY and not space.f_flag & os.ST_RDONLY


@pytest.mark.parametrize("by", ["unlink", "rename", "another mount"])
def test_a_plain_object_that_is_removed_while_it_is_open(place, by):
    """Reads of what the daemon does not have fail with ESTALE, whoever has removed it."""
    new(place.rw(), "plain", b"x" * (3 << 20))
    mount = place.ro if by == "another mount" else place.rw
    with open(mount("plain"), "rb", buffering=0) as f:
        assert f.read(3) == b"xxx"
        if by == "rename":
            os.rename(new(place.rw(), "other", b"new"), place.rw("plain"))
        else:
            os.unlink(place.rw("plain"))
        assert os.pread(f.fileno(), 3, 5) == b"xxx"
        assert result(os.pread, f.fileno(), 3, 2 << 20) == "ESTALE"
        assert os.fstat(f.fileno()).st_size == 3 << 20
    assert place.seen("plain") == (b"new" if by == "rename" else "ENOENT")


LOCK = """
    import errno, fcntl, os, sys
    fd = os.open(sys.argv[1], getattr(os, sys.argv[2]))
    try:
        fcntl.flock(fd, getattr(fcntl, sys.argv[3]) | fcntl.LOCK_NB)
        print("locked")
    except OSError as e:
        print(errno.errorcode[e.errno])
    """


def test_locks(place):
    """Programs that read the last commit have one file, those that write have another one."""
    path, other = new(place.rw(), "locked"), place.ro("locked")
    with open(path, "rb") as reader:
        fcntl.flock(reader, fcntl.LOCK_SH)
        assert python(LOCK, path, "O_RDONLY", "LOCK_SH") == "locked"
        assert python(LOCK, path, "O_RDONLY", "LOCK_EX") == "EAGAIN"
        assert python(LOCK, path, "O_RDWR", "LOCK_EX") == "locked"
        assert python(LOCK, other, "O_RDONLY", "LOCK_EX") == "locked"
    with open(path, "r+b") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        assert python(LOCK, path, "O_RDWR", "LOCK_SH") == "EAGAIN"
        assert python(LOCK, path, "O_RDONLY", "LOCK_SH") == "locked"


def test_inotify_of_another_mount(place):
    """It reports what programs of the same mount do."""
    watched = []
    for path in place.rw(), place.ro():
        watched.append(libc.inotify_init1(os.O_NONBLOCK))
        assert libc.inotify_add_watch(watched[-1], os.fsencode(path), 0xfff) >= 0
    try:
        new(place.rw(), "made")
        assert os.listdir(place.ro()) == ["made"]
        events = result(os.read, watched[0], 65536)
        assert b"made" in events
        # The other mount reports only that its directory was listed.
        assert b"made" not in os.read(watched[1], 65536)
    finally:
        for fd in watched:
            os.close(fd)


def test_holes_of_a_domain(tmp_path):
    """lseek finds the chunk that is not stored, and stat does not count it."""
    chunk, missing = 1 << 20, 1
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        domain = bucket.domain("x.h5")
        data = domain.dataset(domain.root, "data", mkbucket.INT8, [3 * chunk], [chunk])
        data.doc["creationProperties"]["layout"] = {"class": "H5D_CONTIGUOUS"}
        for i in {0, 1, 2} - {missing}:
            data.chunk((i,), bytes([i + 1]) * chunk)
    with Mount(tmp_path / "bucket", tmp_path) as m:
        fd = os.open(m.file("x.h5"), READ)
        try:
            hole = os.lseek(fd, 0, os.SEEK_HOLE)
            end = os.lseek(fd, hole, os.SEEK_DATA)
            s = os.fstat(fd)
            assert end - hole > chunk - 2 * mmap.PAGESIZE
            assert os.pread(fd, end - hole, hole) == bytes(end - hole)
            assert os.lseek(fd, end, os.SEEK_HOLE) == s.st_size > 3 * chunk
            assert 2 * chunk <= s.st_blocks * 512 < 3 * chunk
        finally:
            os.close(fd)
