# SPDX-License-Identifier: Apache-2.0
"""System calls: each row of a table is a call with its result, an errno or an effect. Calls that do
what they do on a disk are made on a disk, too. doc/SEMANTICS.md has the words of the row of each
other call. test_posix_effects.py has what more than one call or program is needed for."""
import ctypes
import errno
import fcntl
import mmap
import os
import shutil
import socket
import stat
import struct
import typing

import pytest

import mounts
from mounts import Mount
from pairs import Pair, make_bucket
from syscalls import (BOTH, COLLAPSE, CREATE, EXCHANGE, FICLONE, GETFLAGS, INSERT, KEEP_SIZE,
                      NOREPLACE, OFD_SETLK, PUNCH_HOLE, READ, WHITEOUT, WRITE, ZERO, access,
                      checked, content, content_of_new, libc, new, opened, rename, result,
                      with_file, with_two)

NAME_OF_DIRENT = 19     # its offset in bytes
UNKNOWN_INODE = 0xffffffff
SEMANTICS = os.path.join(mounts.TREE, "doc", "SEMANTICS.md")


@pytest.fixture(scope="module", name="directory")
def fixture_directory(tmp_path_factory):
    root = tmp_path_factory.mktemp("directory")
    make_bucket(root / "bucket")
    with Pair(root / "bucket", root) as pair:
        yield pair


def fill(root, domain):
    """The files that the rows use, and do not change."""
    os.makedirs(os.path.join(root, "dir"))
    os.makedirs(os.path.join(root, "full"))
    new(root, "t")
    new(os.path.join(root, "full"), "file")
    shutil.copyfile(domain, os.path.join(root, "d.h5"))


@pytest.fixture(scope="module", name="roots")
def fixture_roots(directory):
    """Directories with the same files: on the disk, in the writable mount, in the read-only one."""
    roots = os.path.join(directory.disk, "rows"), directory.path("rows"), \
        directory.ro.file("home", "rows")
    shutil.copyfile(directory.path("old.h5"), directory.local("old.h5"))
    for root in roots[:2]:
        fill(root, directory.local("old.h5"))
    return roots


def allocated(root, mode, offset=4096, length=8192):
    """The size of a file of 16384 bytes "x", and how many of them are left."""
    path = new(root, "allocated", b"x" * 16384)

    def call(fd):
        checked(libc.fallocate(fd, mode, offset, length))
        return os.fstat(fd).st_size, os.pread(fd, 100000, 0).count(b"x")
    return with_file(path, BOTH, call)


def mapped(path, flags, kind, protection, change=b""):
    """The first bytes of a mapping after a change of it, and those of the file."""
    def look(fd):
        with mmap.mmap(fd, 0, kind, protection) as pages:
            if change:
                pages[:len(change)] = change
            return pages[:6], os.pread(fd, 6, 0)
    return with_file(path, flags, look)


def sought(path):
    steps = [(0, os.SEEK_DATA), (0, os.SEEK_HOLE), (6, os.SEEK_DATA), (6, os.SEEK_HOLE),
             (-1, os.SEEK_DATA), (-1, os.SEEK_SET), (0, os.SEEK_END), (1 << 40, os.SEEK_SET)]
    return with_file(path, READ, lambda fd: [result(os.lseek, fd, *step) for step in steps])


def appended(root):
    """Two descriptors, and one that does not append. pwrite(2) appends, too."""
    path = new(root, "log", b"")
    fds = [os.open(path, WRITE | os.O_APPEND) for _ in range(2)] + [os.open(path, WRITE)]
    try:
        for fd, text in (fds[0], b"one "), (fds[1], b"two "), (fds[2], b"O"), (fds[0], b"three "):
            os.write(fd, text)
        os.pwrite(fds[1], b"four", 0)
    finally:
        for fd in fds:
            os.close(fd)
    return content(path)


def duplicated(root):
    def calls(fd):
        os.write(fd, b"a")
        second = os.dup(fd)
        os.write(second, b"b")
        os.close(second)
        os.write(fd, b"c")
    path = os.path.join(root, "duplicated")
    with_file(path, CREATE, calls)
    return content(path)


def removed(root):
    """An open file that is removed can be used on, and is gone."""
    path = os.path.join(root, "removed")
    read = with_file(
        path, CREATE, lambda fd: os.write(fd, b"abc"), lambda fd: os.unlink(path),
        lambda fd: os.pwrite(fd, b"12345", 1), lambda fd: os.ftruncate(fd, 5), os.fsync,
        lambda fd: (os.fstat(fd).st_size, os.pread(fd, 10, 0)))
    return read, os.path.exists(path)


def replaced(root):
    """A file that is being written, and another one that is renamed over it."""
    path = os.path.join(root, "replaced")
    read = with_file(path, CREATE, lambda fd: os.write(fd, b"old"),
                     lambda fd: os.rename(new(root, "other", b"new"), path),
                     lambda fd: os.write(fd, b"er"), lambda fd: os.pread(fd, 10, 0))
    return read, content(path), os.path.exists(os.path.join(root, "other"))


def spliced(source, target):
    reading, writing = os.pipe()
    os.splice(reading, target, os.splice(source, writing, 100))
    os.close(reading)
    os.close(writing)


def locked(path, lock):
    """The result for the second of two open files."""
    def second(first):
        lock(first)
        return with_file(path, BOTH, lambda fd: result(lock, fd))
    return with_file(path, BOTH, second)


def lock_description(fd):
    fcntl.fcntl(fd, OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))


def lock_whole(fd):
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def names_read(root):
    """readdir(3) and telldir(3), a change, the rest of the listing, seekdir(3), rewinddir(3)."""
    path = os.path.join(root, "listed")
    os.mkdir(path)
    for i in range(8):
        new(path, str(i))
    stream = libc.opendir(os.fsencode(path))

    def rest():
        while entry := libc.readdir(stream):
            yield ctypes.string_at(entry + NAME_OF_DIRENT).decode()
    names, places, reader = [], [], rest()
    for _ in range(5):
        places.append(libc.telldir(stream))
        names.append(next(reader))
    os.unlink(os.path.join(path, "7"))
    new(path, "new")
    stay = set(names + list(reader)) - {".", "..", "7", "new"}
    libc.seekdir(stream, places[3])
    again = next(rest()) == names[3]
    libc.rewinddir(stream)
    listed = sorted(rest())
    libc.closedir(stream)
    return sorted(stay), again, listed


def emptied(root):
    """Removes each name as soon as it is read."""
    path, n = os.path.join(root, "emptied"), 0
    os.mkdir(path)
    for i in range(50):
        new(path, str(i), b"")
    with os.scandir(path) as entries:
        for n, entry in enumerate(entries, 1):
            os.unlink(entry.path)
    os.rmdir(path)
    return n


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


class Row(typing.NamedTuple):
    name: str
    call: typing.Callable
    result: object
    words: str = None       # of SEMANTICS.md, if a disk does something else


SAME = [
    # open
    Row("open a file with O_DIRECTORY", lambda p: opened(p + "/t", os.O_DIRECTORY), "ENOTDIR"),
    Row("open a directory", lambda p: opened(p + "/dir", os.O_DIRECTORY), "d"),
    Row("open a directory to write", lambda p: opened(p + "/dir", WRITE), "EISDIR"),
    Row("open a directory with O_CREAT", lambda p: opened(p + "/dir", CREATE), "EISDIR"),
    Row("open with O_NOFOLLOW", lambda p: opened(p + "/t", os.O_NOFOLLOW), b"abcdef"),
    Row("open with O_PATH", lambda p: opened(p + "/t", os.O_PATH), "-"),
    Row("open with O_EXCL only", lambda p: opened(p + "/t", BOTH | os.O_EXCL), b"abcdef"),
    Row("open with O_CREAT what exists",
        lambda p: opened(new(p, "made"), CREATE), b"abcdef"),
    Row("open with O_TRUNC to read",
        lambda p: (opened(new(p, "cut"), READ | os.O_TRUNC), content(p + "/cut")), (b"", b"")),
    Row("open with O_TMPFILE below a file", lambda p: opened(p + "/t", os.O_TMPFILE | BOTH),
        "ENOTDIR"),
    Row("open below a file", lambda p: opened(p + "/t/x", READ), "ENOTDIR"),
    Row("open a file with a slash", lambda p: opened(p + "/t/", READ), "ENOTDIR"),
    Row("create a file with a slash", lambda p: opened(p + "/x/", CREATE), "EISDIR"),
    # read and write
    Row("read a file that is open to write",
        lambda p: with_file(p + "/t", WRITE, lambda fd: os.read(fd, 1)), "EBADF"),
    Row("read a file that is open with O_PATH",
        lambda p: with_file(p + "/t", os.O_PATH, lambda fd: os.read(fd, 1)), "EBADF"),
    Row("read a directory", lambda p: with_file(p + "/dir", READ, lambda fd: os.read(fd, 1)),
        "EISDIR"),
    Row("pread around the end",
        lambda p: with_file(p + "/t", READ, lambda fd: [os.pread(fd, 9, at)
                                                        for at in (4, 6, 1 << 40)]),
        [b"ef", b"", b""]),
    Row("pread at -1", lambda p: with_file(p + "/t", READ, lambda fd: os.pread(fd, 1, -1)),
        "EINVAL"),
    Row("write a file that is open to read",
        lambda p: with_file(p + "/t", READ, lambda fd: os.write(fd, b"x")), "EBADF"),
    Row("pwrite behind the end",
        lambda p: (with_file(new(p, "gap"), BOTH, lambda fd: os.pwrite(fd, b"g", 8)),
                   content(p + "/gap")), (1, b"abcdef\0\0g")),
    Row("pwrite of nothing", lambda p: (with_file(new(p, "none"), BOTH, lambda fd:
                                                  os.pwrite(fd, b"", 100)), content(p + "/none")),
        (0, b"abcdef")),
    Row("write with O_APPEND", appended, b"One two three four"),
    Row("dup", duplicated, b"abc"),
    # sizes
    Row("ftruncate of a file that is open to read",
        lambda p: with_file(p + "/t", READ, lambda fd: os.ftruncate(fd, 0)), "EINVAL"),
    Row("ftruncate to -1", lambda p: with_file(p + "/t", BOTH, lambda fd: os.ftruncate(fd, -1)),
        "EINVAL"),
    Row("truncate a directory", lambda p: os.truncate(p + "/dir", 0), "EISDIR"),
    Row("truncate nothing", lambda p: os.truncate(p + "/none.txt", 0), "ENOENT"),
    Row("fallocate", lambda p: allocated(p, 0, 16384), (24576, 16384)),
    Row("fallocate of no bytes", lambda p: allocated(p, 0, 0, 0), "EINVAL"),
    Row("fallocate with KEEP_SIZE", lambda p: allocated(p, KEEP_SIZE, 16384), (16384, 16384)),
    Row("fallocate with ZERO_RANGE", lambda p: allocated(p, ZERO, 12288), (20480, 12288)),
    Row("fallocate with ZERO_RANGE and KEEP_SIZE", lambda p: allocated(p, ZERO | KEEP_SIZE, 12288),
        (16384, 12288)),
    Row("fallocate with PUNCH_HOLE", lambda p: allocated(p, PUNCH_HOLE | KEEP_SIZE), (16384, 8192)),
    Row("fallocate with PUNCH_HOLE only", lambda p: allocated(p, PUNCH_HOLE), "ENOTSUP"),
    Row("fallocate of a file that is open to read",
        lambda p: with_file(p + "/t", READ, lambda fd: checked(libc.fallocate(fd, 0, 0, 9))),
        "EBADF"),
    Row("lseek", lambda p: sought(p + "/t"),
        [0, 6, "ENXIO", "ENXIO", "ENXIO", "EINVAL", 6, 1 << 40]),
    # mmap
    Row("mmap to read", lambda p: mapped(p + "/t", READ, mmap.MAP_SHARED, mmap.PROT_READ),
        (b"abcdef", b"abcdef")),
    Row("mmap to write a file that is open to read",
        lambda p: mapped(p + "/t", READ, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE),
        "EACCES"),
    Row("mmap of a file that is open to write",
        lambda p: mapped(p + "/t", WRITE, mmap.MAP_SHARED, mmap.PROT_READ), "EACCES"),
    Row("mmap with a private change",
        lambda p: mapped(p + "/t", READ, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE, b"X"),
        (b"Xbcdef", b"abcdef")),
    Row("mmap with a shared change",
        lambda p: (mapped(new(p, "m"), BOTH, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE,
                          b"X"), content(p + "/m")), ((b"Xbcdef", b"Xbcdef"), b"Xbcdef")),
    Row("mmap of a directory",
        lambda p: with_file(p + "/dir", READ, lambda fd: mmap.mmap(fd, 9, prot=mmap.PROT_READ)),
        "ENODEV"),
    # names
    Row("rename to itself", lambda p: (rename(p + "/t", p + "/t"), content(p + "/t")),
        (None, b"abcdef")),
    Row("rename a directory there and back", lambda p: (rename(p + "/full", p + "/x"),
        sorted(os.listdir(p + "/x")) == [], rename(p + "/x", p + "/full")), (None, False, None)),
    Row("rename a directory over another one", lambda p: rename(p + "/dir", p + "/full"),
        "ENOTEMPTY"),
    Row("rename a directory below itself", lambda p: rename(p + "/dir", p + "/dir/x"), "EINVAL"),
    Row("rename a directory over a file", lambda p: rename(p + "/dir", p + "/t"), "ENOTDIR"),
    Row("rename below a file", lambda p: rename(p + "/t", p + "/t/x"), "ENOTDIR"),
    Row("rename with a dot", lambda p: rename(p + "/.", p + "/x"), "EBUSY"),
    Row("rename with two flags", lambda p: rename(p + "/t", p + "/x", NOREPLACE | EXCHANGE),
        "EINVAL"),
    Row("rename with an unknown flag", lambda p: rename(p + "/t", p + "/x", 16), "EINVAL"),
    Row("exchange with nothing", lambda p: rename(p + "/t", p + "/x", EXCHANGE), "ENOENT"),
    Row("rename over a file that is written", replaced, (b"older", b"new", False)),
    Row("unlink a file that is written", removed, ((5, b"a1234"), False)),
    Row("unlink a file with a slash", lambda p: os.unlink(p + "/t/"), "ENOTDIR"),
    Row("rmdir a dot", lambda p: os.rmdir(p + "/dir/."), "EINVAL"),
    Row("rmdir two dots", lambda p: os.rmdir(p + "/dir/.."), "ENOTEMPTY"),
    Row("mkdir with a slash", lambda p: (os.mkdir(p + "/slash/"), os.listdir(p + "/slash")),
        (None, [])),
    Row("link to an existing name", lambda p: os.link(p + "/t", p + "/d.h5"), "EEXIST"),
    Row("link of a directory", lambda p: os.link(p + "/dir", p + "/x"), "EPERM"),
    Row("symlink to an existing name", lambda p: os.symlink("t", p + "/d.h5"), "EEXIST"),
    Row("readlink of a file", lambda p: os.readlink(p + "/t"), "EINVAL"),
    Row("mknod of an existing name", lambda p: os.mkfifo(p + "/t"), "EEXIST"),
    Row("a name of 255 bytes",
        lambda p: (new(p, "ü" * 127 + "x"), os.path.exists(p + "/" + "ü" * 127 + "x"))[1], True),
    Row("a name of 256 bytes", lambda p: new(p, "ü" * 128), "ENAMETOOLONG"),
    Row("a path of 4096 bytes", lambda p: os.stat(p + "/." * 2048), "ENAMETOOLONG"),
    Row("readdir during changes", names_read,
        ([str(i) for i in range(7)], True, sorted([".", "..", "new", *map(str, range(7))]))),
    Row("unlink during readdir", emptied, 50),
    # other calls
    Row("access of a file to execute", lambda p: access(p + "/t", os.X_OK), "EACCES"),
    Row("access of a domain to execute", lambda p: access(p + "/d.h5", os.X_OK), "EACCES"),
    Row("access of a directory to search", lambda p: access(p + "/dir", os.X_OK), 0),
    Row("access of nothing", lambda p: access(p + "/x", os.R_OK), "ENOENT"),
    Row("execve", lambda p: os.execv(p + "/t", ["t"]), "EACCES"),
    Row("flock", lambda p: locked(p + "/t", lock_whole), "EAGAIN"),
    Row("fcntl with F_OFD_SETLK", lambda p: locked(p + "/t", lock_description), "EAGAIN"),
    Row("fcntl with F_SETLK of a file that is open to read",
        lambda p: with_file(p + "/t", READ, lambda fd: fcntl.lockf(fd, fcntl.LOCK_EX)), "EBADF"),
    Row("copy_file_range",
        lambda p: with_two(p, lambda a, b: os.copy_file_range(a, b, 100, 1, 2)), b"\0\0bcdef"),
    Row("copy_file_range with O_APPEND",
        lambda p: with_two(p, lambda a, b: os.copy_file_range(a, b, 9), CREATE | os.O_APPEND),
        "EBADF"),
    Row("sendfile", lambda p: with_two(p, lambda a, b: os.sendfile(b, a, 2, 100)), b"cdef"),
    Row("splice", lambda p: with_two(p, spliced), b"abcdef"),
    Row("getxattr of nothing", lambda p: os.getxattr(p + "/t", "user.x"), "ENODATA"),
    Row("setxattr with a name of 256 bytes",
        lambda p: os.setxattr(p + "/t", "user." + "x" * 251, b""), "ERANGE"),
    Row("setxattr of 65537 bytes", lambda p: os.setxattr(p + "/t", "user.x", b"x" * 65537),
        "E2BIG"),
    Row("statvfs", lambda p: os.statvfs(p).f_namemax, 255),
]


def reopened(path):
    def again(fd):
        link = f"/proc/self/fd/{fd}"
        return result(opened, link, READ), result(opened, link, BOTH)
    return with_file(path, READ, again)


def with_removed_directory(p):
    path = os.path.join(p, "gone")
    os.mkdir(path)
    return with_file(path, READ, lambda fd: os.rmdir(path),
                     lambda fd: (result(os.listdir, fd),
                                 result(lambda: os.close(os.open("x", CREATE, dir_fd=fd)))))


def attributes(path):
    """Changes all attributes. Returns those that have another value then."""
    def seen():
        s = os.stat(path)
        return {"mode": s.st_mode, "owner": s.st_uid, "group": s.st_gid, "time": s.st_mtime_ns,
                "inode": s.st_ino}
    before = seen()
    os.chmod(path, 0o4711)
    os.chown(path, 12345, 12345)
    os.utime(path, (1, 1))
    after = seen()
    return {name for name, value in before.items() if after[name] != value}


def attributes_of_draft(p):
    """As attributes(), of a file that is not in the bucket."""
    path = os.path.join(p, "draft.txt")
    return with_file(path, CREATE, lambda fd: os.write(fd, b"x"), lambda fd: attributes(path))


def modes_of_new(p):
    """Two modes for each call that makes something: the results are equal."""
    for i, mode in enumerate((0o600, 0o777)):
        os.close(os.open(f"{p}/o{i}", CREATE, mode))
        os.mkdir(f"{p}/d{i}", mode)
        os.mknod(f"{p}/n{i}", stat.S_IFREG | mode)
    return [mode_of(f"{p}/{kind}0") == mode_of(f"{p}/{kind}1") for kind in "odn"]


def links_of_removed(p):
    path = os.path.join(p, "linked")
    return with_file(path, CREATE, lambda fd: os.unlink(path), lambda fd: os.fstat(fd).st_nlink)


def unaligned(p):
    """O_DIRECT, three bytes at offset 1 into memory at an odd address."""
    memory = memoryview(bytearray(8))
    with_file(p + "/t", READ | os.O_DIRECT, lambda fd: os.preadv(fd, [memory[1:4]], 1))
    return bytes(memory[1:4])


def deep(p):
    """Makes directories in each other until a key is too long."""
    for n in range(100):
        p = os.path.join(p, "d" * 100)
        if (code := result(os.mkdir, p)) is not None:
            return n > 5, code
    return None


def bound(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path)


LINKS = "| `symlink`, `link`, `mknod` of a device, pipe or socket | EPERM |"
DIFFERENT = [
    Row("open with O_TMPFILE", lambda p: opened(p + "/dir", os.O_TMPFILE | BOTH), "ENOTSUP",
        "`open` with `O_TMPFILE`"),
    Row("open with O_DIRECT", unaligned, b"bcd", "`open` with `O_DIRECT`"),
    Row("open of /proc/self/fd/N", lambda p: reopened(p + "/t"), (b"abcdef", "ESTALE"),
        "`open` of `/proc/self/fd/N` for writing"),
    Row("modes of new files", modes_of_new, [True] * 3,
        "the mode of a new file or directory is ignored"),
    Row("write behind 2^60",
        lambda p: with_file(p + "/t", BOTH, lambda fd: os.pwrite(fd, b"x", 1 << 60)), "EFBIG",
        "`write`, `ftruncate`, `fallocate` beyond 2^60 bytes"),
    Row("ftruncate behind 2^60",
        lambda p: with_file(p + "/t", BOTH, lambda fd: os.ftruncate(fd, (1 << 60) + 1)), "EFBIG",
        "`write`, `ftruncate`, `fallocate` beyond 2^60 bytes"),
    Row("fallocate behind 2^60",
        lambda p: with_file(p + "/t", BOTH, lambda fd: checked(libc.fallocate(fd, 0, 1 << 60, 1))),
        "EFBIG", "`write`, `ftruncate`, `fallocate` beyond 2^60 bytes"),
    Row("truncate a domain", lambda p: os.truncate(p + "/d.h5", 100), "EROFS",
        "`truncate` of a domain to another size than 0"),
    Row("fallocate with COLLAPSE_RANGE", lambda p: allocated(p, COLLAPSE), "ENOTSUP",
        "`FALLOC_FL_COLLAPSE_RANGE`"),
    Row("fallocate with INSERT_RANGE", lambda p: allocated(p, INSERT), "ENOTSUP",
        "`FALLOC_FL_INSERT_RANGE`"),
    Row("exchange", lambda p: rename(p + "/t", p + "/d.h5", EXCHANGE), "EINVAL",
        "`RENAME_EXCHANGE`"),
    Row("exchange a file and a directory", lambda p: rename(p + "/t", p + "/dir", EXCHANGE),
        "EINVAL", "`RENAME_EXCHANGE`"),
    Row("rename with RENAME_WHITEOUT", lambda p: rename(p + "/t", p + "/x", WHITEOUT), "EINVAL",
        "`RENAME_WHITEOUT`"),
    Row("link", lambda p: os.link(p + "/t", p + "/x"), "EPERM", LINKS),
    Row("symlink", lambda p: os.symlink("t", p + "/x"), "EPERM", LINKS),
    Row("mknod of a device", lambda p: os.mknod(p + "/x", stat.S_IFCHR, os.makedev(1, 3)), "EPERM",
        LINKS),
    Row("bind of a socket",
        lambda p: with_file(p, os.O_PATH, lambda fd: bound(f"/proc/self/fd/{fd}/x")), "EPERM",
        "| `bind` of a socket | EPERM |"),
    Row("a name that is not UTF-8", lambda p: content_of_new(p, b"\xff"), "EINVAL",
        "a new name that is not UTF-8"),
    Row("a name with a control character", lambda p: os.mkdir(p + "/x\x01"), "EINVAL",
        "that has a control character"),
    Row("a name of the storage", lambda p: os.mkdir(p + "/.domain.json"), "EINVAL",
        "that is part of the storage"),
    Row("mkdir of a long path", deep, (True, "ENAMETOOLONG"), "| 1,024 bytes for a key"),
    Row("chmod, chown, utimensat of a domain", lambda p: attributes(p + "/d.h5"), set(),
        "`chmod`, `chown` and `utimens`\nsucceed without effect"),
    Row("chmod, chown, utimensat of a directory", lambda p: attributes(p + "/dir"), set(),
        "`chmod`, `chown` and `utimens`\nsucceed without effect"),
    Row("chmod, chown, utimensat of a draft", attributes_of_draft, set(),
        "`chmod`, `chown` and `utimens`\nsucceed without effect"),
    Row("access to write in a mount with -o rw", lambda p: access(p + "/d.h5", os.W_OK), 0,
        "`access` with `W_OK`"),
    Row("stat of a directory",
        lambda p: (os.stat(p + "/full").st_nlink, os.stat(p + "/full").st_size), (2, 0),
        "`st_nlink` is 1 for a file"),
    Row("fstat of a removed file", links_of_removed, 1, "`st_nlink` is 1 for a file"),
    Row("no birth time", lambda p: mounts.run("stat", "-c", "%W", p + "/t").stdout, "0\n",
        "no birth time"),
    Row("readdir of inode numbers",
        lambda p: {entry.inode() for entry in os.scandir(p)}, {UNKNOWN_INODE},
        "no inode numbers (`d_ino`)"),
    Row("a removed directory", with_removed_directory, ("ENOENT", "ENOENT"),
        "ENOENT for a directory that was removed"),
    Row("setxattr", lambda p: os.setxattr(p + "/t", "user.x", b""), "ENOTSUP",
        "`setxattr` of other attributes"),
    Row("setxattr of a label", lambda p: os.setxattr(p + "/t", "security.x", b""), "ENOTSUP",
        "`setxattr` of other attributes"),
    Row("removexattr", lambda p: os.removexattr(p + "/d.h5", "user.hsds.root"), "ENOTSUP",
        "| `removexattr` |"),
    Row("removexattr of nothing", lambda p: os.removexattr(p + "/t", "user.x"), "ENODATA",
        "| `removexattr` |"),
    Row("ioctl FICLONE",
        lambda p: with_two(p, lambda a, b: fcntl.ioctl(b, FICLONE, a)), "ENOTSUP",
        "EOPNOTSUPP for `FICLONE`"),
    Row("ioctl FS_IOC_GETFLAGS",
        lambda p: with_file(p + "/t", READ, lambda fd: fcntl.ioctl(fd, GETFLAGS, bytes(8))),
        "ENOTTY", "ENOTTY for `FS_IOC_GETFLAGS`"),
    Row("statvfs of inodes", lambda p: os.statvfs(p).f_files, 0, "no number of inodes (`f_files`)"),
]

# Calls that would change something in a read-only mount. The kernel finds some errors earlier.
READ_ONLY = [
    Row("open to write", lambda p: opened(p + "/t", WRITE), "EROFS"),
    Row("open with O_APPEND", lambda p: opened(p + "/d.h5", WRITE | os.O_APPEND), "EROFS"),
    Row("open with O_TRUNC to read", lambda p: opened(p + "/t", READ | os.O_TRUNC), "EROFS"),
    Row("open with O_CREAT what exists", lambda p: opened(p + "/t", READ | os.O_CREAT), b"abcdef"),
    Row("open with O_EXCL", lambda p: opened(p + "/t", CREATE | os.O_EXCL), "EEXIST"),
    Row("open with O_CREAT", lambda p: opened(p + "/x", READ | os.O_CREAT), "EROFS"),
    Row("open with O_TMPFILE", lambda p: opened(p + "/dir", os.O_TMPFILE | BOTH), "EROFS"),
    Row("open a directory to write", lambda p: opened(p + "/dir", WRITE), "EISDIR"),
    Row("open of /proc/self/fd/N", lambda p: reopened(p + "/t"), (b"abcdef", "EROFS")),
    Row("ftruncate", lambda p: with_file(p + "/t", READ, lambda fd: os.ftruncate(fd, 0)), "EINVAL"),
    Row("truncate", lambda p: os.truncate(p + "/t", 9), "EROFS"),
    Row("fallocate",
        lambda p: with_file(p + "/t", READ, lambda fd: checked(libc.fallocate(fd, 0, 0, 9))),
        "EBADF"),
    Row("mmap to write",
        lambda p: mapped(p + "/t", READ, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE),
        "EACCES"),
    Row("mmap with a private change",
        lambda p: mapped(p + "/t", READ, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE, b"X"),
        (b"Xbcdef", b"abcdef")),
    Row("fsync", lambda p: with_file(p + "/t", READ, os.fsync, os.fdatasync), None),
    Row("flock", lambda p: with_file(p + "/t", READ, lock_whole, lambda fd: with_file(
        p + "/t", READ, lambda other: result(lock_whole, other))), "EAGAIN"),
    Row("rename", lambda p: rename(p + "/t", p + "/x"), "EROFS"),
    Row("rename a directory", lambda p: rename(p + "/dir", p + "/x"), "EROFS"),
    Row("exchange", lambda p: rename(p + "/t", p + "/d.h5", EXCHANGE), "EROFS"),
    Row("unlink", lambda p: os.unlink(p + "/d.h5"), "EROFS"),
    Row("rmdir", lambda p: os.rmdir(p + "/full"), "EROFS"),
    Row("mkdir", lambda p: os.mkdir(p + "/x"), "EROFS"),
    Row("mkdir of an existing name", lambda p: os.mkdir(p + "/dir"), "EEXIST"),
    Row("link", lambda p: os.link(p + "/t", p + "/x"), "EROFS"),
    Row("symlink", lambda p: os.symlink("t", p + "/x"), "EROFS"),
    Row("mknod", lambda p: os.mknod(p + "/x", stat.S_IFREG), "EROFS"),
    Row("chmod", lambda p: os.chmod(p + "/t", 0o600), "EROFS"),
    Row("chown", lambda p: os.chown(p + "/t", os.getuid(), -1), "EROFS"),
    Row("utimensat", lambda p: os.utime(p + "/t", (1, 1)), "EROFS"),
    Row("access to write", lambda p: access(p + "/t", os.W_OK), "EROFS"),
    Row("access to read", lambda p: access(p + "/t", os.R_OK), 0),
    Row("access to execute", lambda p: access(p + "/t", os.X_OK), "EACCES"),
    Row("access of a directory", lambda p: access(p, os.R_OK | os.X_OK), 0),
    Row("setxattr", lambda p: os.setxattr(p + "/dir", "user.hsds.acls", b"{}"), "EROFS"),
    Row("removexattr", lambda p: os.removexattr(p + "/t", "user.x"), "EROFS"),
    Row("getxattr into a short buffer",
        lambda p: checked(libc.getxattr(os.fsencode(p + "/d.h5"), b"user.hsds.root",
                                        ctypes.create_string_buffer(1), 1)), "ERANGE"),
    Row("listxattr into a short buffer",
        lambda p: checked(libc.listxattr(os.fsencode(p + "/d.h5"), ctypes.create_string_buffer(1),
                                         1)), "ERANGE"),
]


def parametrized(rows):
    return pytest.mark.parametrize("row", rows, ids=lambda row: row.name.replace("/", "-"))


@parametrized(SAME)
def test_as_on_a_disk(roots, row):
    on_disk = result(row.call, roots[0])
    # File systems of disks lack some operations of fallocate(2).
    assert on_disk in (row.result, "ENOTSUP")
    assert result(row.call, roots[1]) == row.result


@parametrized(DIFFERENT)
def test_not_as_on_a_disk(roots, row):
    assert result(row.call, roots[1]) == row.result
    with open(SEMANTICS, encoding="utf-8") as f:
        assert row.words in f.read()


@parametrized(READ_ONLY)
def test_in_a_read_only_mount(roots, row):
    assert result(row.call, roots[2]) == row.result


def test_nothing_else_has_changed(directory, tmp_path):
    """Calls that fail change nothing, as another mount of the bucket shows."""
    root = directory.path("unchanged")
    fill(root, directory.local("old.h5"))
    refused = [row for row in DIFFERENT + SAME if isinstance(row.result, str)]
    made = {"allocated", "copy"}        # by calls on files that were made for them
    for row in refused:
        if "mkdir of a long path" not in row.name:
            assert result(row.call, root) == row.result, row.name
    with Mount(directory.rw.bucket, tmp_path, "metadata_ttl=0") as m:
        shown = m.file("home/unchanged")
        assert set(os.listdir(shown)) - made == {"t", "d.h5", "dir", "full"}
        assert os.listdir(os.path.join(shown, "full")) == ["file"]
        assert os.listdir(os.path.join(shown, "dir")) == []
        assert content(os.path.join(shown, "t")) == b"abcdef"
        done = mounts.run("h5diff", directory.local("old.h5"), os.path.join(shown, "d.h5"))
        assert done.returncode == 0, done.stdout


