# SPDX-License-Identifier: Apache-2.0
"""System calls for tests, also those that Python lacks, and their results as words."""
import ctypes
import errno
import os
import stat

libc = ctypes.CDLL(None, use_errno=True)
libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
libc.opendir.restype = libc.readdir.restype = ctypes.c_void_p
libc.telldir.restype = ctypes.c_long
for _function in libc.readdir, libc.telldir, libc.rewinddir, libc.closedir:
    _function.argtypes = (ctypes.c_void_p,)
libc.seekdir.argtypes = (ctypes.c_void_p, ctypes.c_long)

READ, WRITE, BOTH = os.O_RDONLY, os.O_WRONLY, os.O_RDWR
CREATE = os.O_CREAT | os.O_RDWR
KEEP_SIZE, PUNCH_HOLE, COLLAPSE, ZERO, INSERT = 1, 2, 8, 16, 32
NOREPLACE, EXCHANGE, WHITEOUT = 1, 2, 4
FICLONE, GETFLAGS, OFD_SETLK = 0x40049409, 0x80086601, 37


def result(call, *arguments):
    """What the call returns, or its errno as a word."""
    try:
        return call(*arguments)
    except OSError as e:
        return errno.errorcode[e.errno]


def checked(code):
    """The result of a function of libc."""
    if code < 0:
        raise OSError(ctypes.get_errno(), "libc")
    return code


def content(path):
    with open(path, "rb") as f:
        return f.read()


def new(root, name, body=b"abcdef"):
    path = os.path.join(root, name)
    with open(path, "wb") as f:
        f.write(body)
    return path


def with_file(path, flags, *calls):
    """Opens the file for the calls. Returns the result of the last one that returns one."""
    fd, last = os.open(path, flags, 0o666), None
    try:
        for call in calls:
            value = call(fd)
            last = last if value is None else value
        return last
    finally:
        os.close(fd)


def with_two(root, call, flags=CREATE):
    """Copies from "t" into a new file. Returns what the file has then."""
    def copy(source):
        return with_file(os.path.join(root, "copy"), flags | os.O_TRUNC,
                         lambda target: call(source, target))
    with_file(os.path.join(root, "t"), READ, copy)
    return content(os.path.join(root, "copy"))


def opened(path, flags):
    """The type of the file, or its bytes."""
    def look(fd):
        mode = os.fstat(fd).st_mode
        return stat.filemode(mode)[0] if flags & os.O_PATH or not stat.S_ISREG(mode) \
            else os.pread(fd, 100, 0)
    return with_file(path, flags, look)


def rename(source, target, flags=0):
    checked(libc.renameat2(-100, os.fsencode(source), -100, os.fsencode(target), flags))


def access(path, mode):
    return checked(libc.access(os.fsencode(path), mode))


def content_of_new(p, name):
    """The bytes of a new file with this name, a bytes object."""
    path = os.path.join(os.fsencode(p), name)
    with open(path, "xb") as f:
        f.write(b"odd")
    return content(path)
