#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""journal_corpus.py DIRECTORY: writes the seed files of the fuzz targets of the journal, which
consist of framed records (src/base/frame.h). Each is named after what is wrong with it."""

import os
import struct
import sys

TABLE = []
for n in range(256):
    for _ in range(8):
        n = n >> 1 ^ (0x82f63b78 if n & 1 else 0)
    TABLE.append(n)


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    return crc ^ 0xffffffff


def frame(kind, body, zero=0):
    head = struct.pack("<HHI", kind, zero, len(body))
    return head + struct.pack("<I", crc32c(head + body)) + body


def head(magic, version=1):
    return frame(0xf0f0, magic + struct.pack("<I", version))


def text(*texts):
    return b"".join(t + b"\0" for t in texts)


def flip(data, at):
    return data[:at] + bytes([data[at] ^ 0x20]) + data[at + 1:]


# ---- drafts ----

BOOT = bytes(range(16))
IDENTITY = bytes(range(1, 33))


def about(kind=3, layout=0, beneath=300000, path=b"home/u/a", name=b"/home/u/a.h5",
          version=b'"etag"', identity=b"", texts=None):
    return (BOOT + struct.pack("<IIQq", kind, layout, beneath, 1234567890123456789) +
            (text(path, name, version) if texts is None else texts) + identity)


def draft(body=None, start=head(b"HSMDRAFT"), kind=1, tail=b"", size=4096, **more):
    file = start + frame(kind, about(**more) if body is None else body) + tail
    return file + bytes(max(0, size - len(file)))


LONGEST = 4096 - 24 - 12 - 40 - len(text(b"", b"n", b""))

DRAFTS = {
    "change": draft(),
    "new": draft(kind=1, body=about(kind=1, beneath=0, version=b"")),
    "identity": draft(identity=IDENTITY),
    "layout": draft(identity=IDENTITY, layout=3),
    "longest": draft(body=about(kind=1, beneath=0, path=b"p" * LONGEST, name=b"n", version=b"")),
    "bad-magic": draft(start=head(b"HSMDPLAN")),
    "later-version": draft(start=head(b"HSMDRAFT", 5)),
    "bad-crc": flip(draft(), 60),
    "another-record": draft(kind=2),
    "tail-not-zero": draft()[:-1] + b"x",
    "two-records": draft(tail=frame(1, about())),
    "kind-zero": draft(body=about(kind=0, beneath=0)),
    "unknown-kind": draft(body=about(kind=4)),
    "beneath-of-new": draft(body=about(kind=1)),
    "identity-of-new": draft(body=about(kind=1, beneath=0, identity=IDENTITY)),
    "identity-zero": draft(identity=bytes(32)),
    "identity-short": draft(identity=IDENTITY[1:]),
    "layout-without-identity": draft(layout=3),
    "no-nul": draft(texts=b"home/u/a\0/home/u/a.h5\0etag"),
    "fixed-part-only": draft(body=about()[:40]),
    "short": draft()[:4095],
    "head-only": head(b"HSMDRAFT"),
    "empty": b"",
}

# ---- plans ----


def plan(operations=(), earlier=(), objects=(), removed=(), root=b"g-root", counts=None, size=8,
         start=head(b"HSMDPLAN"), tail=b"", first=None):
    counts = counts or (len(operations), len(earlier), len(objects), len(removed))
    body = struct.pack("<QQI4I", 0x123456789abcdef0, size, 1, *counts) + text(root)
    records = [frame(2, o) for o in operations] + [frame(3, e) for e in earlier]
    records += [frame(4, o) for o in objects] + [frame(5, r) for r in removed]
    return start + (frame(1, body) if first is None else first) + b"".join(records) + tail


def operation(action=1, condition=0, body=1, zero=0, offset=0, length=2, key=b"document",
              version=b"", inline=b"{}", digest=b"\1" * 32):
    return (struct.pack("<BBBBIQQ", action, condition, body, zero, 2, offset, length) + digest +
            text(key, version) + inline)


RANGE = operation(condition=1, body=2, offset=2, length=5, key=b"chunk", inline=b"")
BODIES = operation(body=3, offset=70000, length=65537, key=b"large", inline=b"")
DELETE = operation(action=2, body=0, length=0, key=b"old", inline=b"", digest=bytes(32))
ALL = (RANGE, operation(condition=2, version=b'"etag"'), BODIES, DELETE)
NUMBER = struct.pack("<Q", 7)
SUBJECT = {"earlier": (NUMBER, NUMBER), "objects": (text(b"d-1"), text(b"g-2")),
           "removed": (text(b"d-3", b"etag"), text(b"g-4", b""))}


def only(*more, **fields):
    return plan((operation(*more, **fields),))


PLANS = {
    "good": plan(ALL, **SUBJECT),
    "no-subject": plan(ALL, root=b""),
    "no-operations": plan(),
    "subject-without-root": plan(ALL, root=b"", **SUBJECT),
    "empty": b"",
    "head-only": head(b"HSMDPLAN"),
    "bad-magic": plan(ALL, start=head(b"HSMDRAFT")),
    "later-version": plan(ALL, start=head(b"HSMDPLAN", 2)),
    "bad-crc": flip(plan(ALL), 90),
    "cut": plan(ALL, **SUBJECT)[:-3],
    "tail": plan(ALL, tail=b"x"),
    "tail-record": plan(ALL, tail=frame(5, text(b"d-5", b""))),
    "first-record-short": plan(first=frame(1, bytes(36))),
    "first-record-missing": plan(first=b""),
    "count-huge": plan(ALL, counts=(2**32 - 1, 0, 0, 0)),
    "counts-overflow": plan(ALL, counts=(2**32 - 1,) * 4),
    "fewer-than-said": plan(ALL, counts=(5, 0, 0, 0)),
    "more-than-said": plan(ALL, counts=(3, 0, 0, 0)),
    "order": plan(removed=(text(b"d-5", b""),), counts=(1, 0, 0, 0)),
    "short-number": plan(earlier=(NUMBER[1:],)),
    "object-empty": plan(objects=(text(b""),)),
    "object-two-texts": plan(objects=(text(b"d-1", b"d-2"),)),
    "object-no-nul": plan(objects=(b"d-1",)),
    "removed-no-id": plan(removed=(text(b"", b"v"),)),
    "removed-no-version": plan(removed=(text(b"d-1"),)),
    "removed-tail": plan(removed=(text(b"d-1", b"v", b""),)),
    "unknown-action": only(action=3),
    "not-zero": only(zero=1),
    "no-key": only(key=b""),
    "version-without-condition": only(version=b"v"),
    "inline-too-short": only(length=3),
    "inline-too-long": only(length=1),
    "range-past-size": only(body=2, offset=4, length=5, inline=b""),
    "range-overflows": only(body=2, offset=2**64 - 1, length=5, inline=b""),
    "bodies-empty": only(body=3, length=0, inline=b""),
    "delete-with-body": only(action=2),
    "operation-short": plan((operation()[:57],)),
}

# ---- events ----


def event(kind, path=b"home/u/a", storage=b"db/01234567-89abcdef/", following=b"", objects=(),
          count=None, tail=b"", since=1764484514 * 10**9, document=b""):
    count = len(objects) if count is None else count
    pairs = b"".join(text(*o) for o in objects)
    return frame(kind, struct.pack("<II", 1, count) + text(path, storage, following) + pairs +
                 (b"" if since is None else struct.pack("<q", since) + text(document)) + tail)


REMOVED = ((b"d-1", b"etag"), (b"g-2", b""))
DOCUMENT = b'{"root": "g-01234567-89abcdef-0000-000000-000000"}'
GOOD = [event(1, following=b"db/11111111-22222222/"), event(1, document=DOCUMENT),
        event(2, document=DOCUMENT), event(2, since=0), event(3),
        event(4, storage=b"g-root", objects=REMOVED), frame(5, struct.pack("<I", 1)),
        event(2, since=None), event(4, storage=b"g-root", objects=REMOVED, since=None)]
BAD = {
    "bad-magic": head(b"HSMDPLAN"), "later-version": head(b"HSMDEVNT", 3), "empty": b"",
    "type-zero": event(0), "unknown-type": event(6), "no-path": event(2, path=b""),
    "longest-path": event(2, path=b"p" * 1024), "path-too-long": event(2, path=b"p" * 1025),
    "no-storage": event(2, storage=b""), "next-of-removed": event(2, following=b"db/1/"),
    "objects-of-removed": event(2, objects=REMOVED), "no-objects": event(4),
    "no-id": event(4, objects=((b"", b"v"),)), "count-huge": event(4, count=2**32 - 1),
    "count-too-small": event(4, objects=REMOVED, count=1),
    "fewer-than-said": event(4, objects=REMOVED, count=3), "tail": event(2, tail=b"x"),
    "no-nul": event(4, count=1, tail=b"d-1\0etag", since=None),
    "document-of-rename": event(3, document=DOCUMENT), "negative-time": event(2, since=-1),
    "document-no-nul": event(2, since=None, tail=bytes(8) + b"{}"),
    "no-document": event(2, since=None, tail=bytes(8)), "deleted-tail": frame(5, bytes(8)),
    "deleted-short": frame(5, bytes(3)), "bad-crc": flip(event(2), 30), "torn": event(2)[:-5],
    "not-zero": frame(2, event(2)[12:], zero=1), "half-header": event(2)[:7],
}
EVENTS = {"good": head(b"HSMDEVNT", 2) + b"".join(GOOD)}
EVENTS.update((name, data if b"HSM" in data or not data else head(b"HSMDEVNT") + data)
              for name, data in BAD.items())


def main():
    for target, files in ("header", DRAFTS), ("plan", PLANS), ("gc_event", EVENTS):
        directory = os.path.join(sys.argv[1], "journal_" + target)
        os.makedirs(directory, exist_ok=True)
        for name, data in files.items():
            with open(os.path.join(directory, name), "wb") as f:
                f.write(data)


if __name__ == "__main__":
    main()
