# SPDX-License-Identifier: Apache-2.0
"""Writes drafts into a journal directory, as doc/JOURNAL.md describes them."""
import hashlib
import os
import struct

NEW, REPLACE, CHANGE = 1, 2, 3
START, BEGIN, WRITE, SIZE, ZERO, SEAL, FOLD, MARK, SYNC = range(1, 10)
RECORD = 32


def _table():
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82f63b78 if n & 1 else 0)
        yield n


TABLE = list(_table())


def crc32c(*parts):
    crc = 0xffffffff
    for part in parts:
        for byte in part:
            crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    return crc ^ 0xffffffff


def boot_id():
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
        return bytes.fromhex(f.read().strip().replace("-", ""))


def frame(kind, body):
    """See src/base/frame.h."""
    head = struct.pack("<HHI", kind, 0, len(body))
    return head + struct.pack("<I", crc32c(head, body)) + body


CREATED = 1700000000 * 10 ** 9


def description(name, kind=NEW, path=None, version="", beneath=0, created_ns=CREATED, boot=None,
                format_version=1):
    texts = [t.encode() + b"\0" for t in (name if path is None else path, name, version)]
    body = struct.pack("<16sIIQq", boot or boot_id(), kind, 0, beneath, created_ns)
    head = frame(0xf0f0, b"HSMDRAFT" + struct.pack("<I", format_version))
    return (head + frame(1, body + b"".join(texts))).ljust(4096, b"\0")


def earlier_description(name, kind=NEW, path=None, version="", beneath=0, created_ns=CREATED,
                        boot=None, format_version=4):
    """As an earlier version of hsmount has written it, in JOURNAL/1."""
    texts = [t.encode() for t in (name if path is None else path, name, version)]
    rest = struct.pack("<16sIIQqHHHH", boot or boot_id(), kind, 0, beneath, created_ns,
                       *map(len, texts), 0) + b"".join(t + b"\0" for t in texts)
    rest = rest.ljust(4096 - 16, b"\0")
    head = b"HSMDRAFT" + struct.pack("<I", format_version)
    return head + struct.pack("<I", crc32c(head, rest)) + rest


def unknown_sums(frames):
    """A file `sums.0`. The checksums of these frames are unknown."""
    head = frame(0xf0f0, b"HSMDSUMS" + struct.pack("<I", 1))
    entries = bytearray(8 * (max(frames, default=-1) + 1))
    for n in frames:
        check = crc32c(struct.pack("<IIII", 0, n, 0, 1 << 17)) >> 19 << 18
        struct.pack_into("<II", entries, 8 * n, 0, 1 << 31 | check | 1 << 17)
    return head + bytes(8) + entries


def record(kind, generation=0, offset=0, length=0):
    return frame(kind, struct.pack("<IQQ", generation, offset, length))


def mark(number, running=True, last=True, failed=0):
    """See commit_mark_encode(): a commit has begun."""
    return number << 32 | failed << 2 | last << 1 | running


class Journal:
    """The part of a journal directory that belongs to one bucket. identity: of the bucket, which is
    the real path of a directory."""

    def __init__(self, path, identity, name=None, version="2"):
        self.path, self.identity, self.version = path, os.fspath(identity), version
        bucket = hashlib.sha256(self.identity.encode()).hexdigest()
        self.dir = os.path.join(path, version, bucket)
        for part in (path, os.path.join(path, version), self.dir):
            os.makedirs(part, mode=0o700, exist_ok=True)
        with open(os.path.join(self.dir, "bucket"), "w", encoding="utf-8") as f:
            f.write(f"{name or self.identity}\n{self.identity}\n")
        self.number = 0

    def add(self, name, pieces=(), commit=None, size=None, sync=False, **about):
        """A draft with (offset, bytes) written. Returns its id."""
        self.number += 1
        draft = f"{self.number:02x}{os.urandom(7).hex()}"
        here = self.place(draft)
        os.mkdir(here, 0o700)
        records = [(START, 0x32504d48, 0, about.get("beneath", 0))]
        frames = set()
        with open(os.path.join(here, "spool.0"), "wb") as spool:
            for offset, data in pieces:
                spool.seek(offset)
                spool.write(data)
                records.append((WRITE, 0, offset, len(data)))
                frames.update(range(offset >> 16, (offset + len(data) + 65535) >> 16))
        if size is not None:
            records.append((SIZE, 0, 0, size))
        if commit is not None:
            records.append((MARK, 0, 0, commit))
        if sync:
            records.append((SYNC, 0, 0, 0))
        with open(os.path.join(here, "map"), "wb") as out:
            for r in records:
                out.write(record(*r))
        with open(os.path.join(here, "sums.0"), "wb") as out:
            out.write(unknown_sums(frames))
        with open(os.path.join(here, "draft"), "wb") as out:
            describe = description if self.version == "2" else earlier_description
            out.write(describe(name, **about))
        return draft

    def place(self, draft, *parts):
        return os.path.join(self.dir, draft, *parts)

    def has(self, draft):
        return os.path.isdir(self.place(draft))
