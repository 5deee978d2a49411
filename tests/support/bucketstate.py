# SPDX-License-Identifier: Apache-2.0
"""What is in a directory bucket: which objects a change has put and deleted, which of them had to
be put, and which objects of the storage nothing leads to."""
import hashlib
import json
import os

import oracle

CONTENT = ("attributes", "links", "shape", "hsmount")   # the members that a change may touch
LISTS = ".info.json"
NAMES = ".hsmount-names"     # the list of the names of a storage
USER_BLOCK = ".hsmount-userblock-"


def content_of(raw):
    """The members of a document that say what the object is, in the form that is compared. Times
    count only where they say in which order a program made things."""
    document = json.loads(raw)

    def order(entries):
        return sorted(entries, key=lambda name: (entries[name].get("created", 0), name))

    def timeless(entries):
        return {n: {k: v for k, v in e.items() if k not in ("created", "lastModified")}
                for n, e in entries.items()}
    parts = {name: document.get(name) for name in CONTENT}
    for name in "attributes", "links":
        if parts[name]:
            parts[f"order of {name}"] = order(parts[name])
            parts[name] = timeless(parts[name])
    return parts


class State:
    """All objects of a bucket at one moment. A state before it saves reading what is the same."""

    def __init__(self, root, before=None):
        self.root, self.digest, self.documents = os.fspath(root), {}, {}
        self.version = {}
        for at, _, names in os.walk(self.root):
            for name in names:
                try:
                    self.add(os.path.join(at, name), before)
                except FileNotFoundError:
                    continue

    def add(self, path, before):
        key, status = path[len(self.root) + 1:], os.stat(path)
        # Each put makes a new file.
        version = status.st_ino, status.st_mtime_ns
        if before and before.version.get(key) == version:
            digest, raw = before.digest[key], before.documents.get(key)
        else:
            with open(path, "rb") as f:
                raw = f.read()
            digest = hashlib.sha256(raw).digest()
        self.digest[key], self.version[key] = digest, version
        if key.endswith(".json"):
            self.documents[key] = raw

    def since(self, old):
        """(keys of objects that were put, keys of those that were deleted)."""
        put = {k for k, v in self.digest.items() if old.digest.get(k) != v}
        return put, set(old.digest) - set(self.digest)

    def put_since(self, old):
        """Keys of objects that were put, even if their bytes are the same."""
        return {k for k, v in self.version.items() if old.version.get(k) != v}

    def needless(self, old):
        """Documents whose bytes have changed, although they say the same."""
        return [key for key, raw in self.documents.items()
                if key in old.documents and old.documents[key] != raw and
                not key.endswith((".domain.json", LISTS)) and
                content_of(raw) == content_of(old.documents[key])]


def types(domain):
    """The ids of committed types that are used. They need no link."""
    for o in domain.objects.values():
        yield from (a.committed for a in o.attributes if a.committed)
        if o.kind != "g" and o.committed:
            yield o.committed


def storage(domain):
    """Keys that the objects of a domain of schema v2 may have: documents, and the directories and
    names of chunks inside the shape."""
    keys, chunks = {oracle.document_key(oid) for oid in types(domain)}, {}
    for oid, o in domain.objects.items():
        keys.add(oracle.document_key(oid))
        if o.kind != "d" or o.shape is None:
            continue
        grid = [-(-n // c) for n, c in zip(o.shape, o.chunk_shape() or o.shape)]
        chunks[oracle.storage_key(oid)] = grid or [1]
    return keys, chunks


def is_chunk(key, chunks):
    folder, name = os.path.split(key)
    if os.path.basename(folder)[:1] == "p" and folder not in chunks:
        folder = os.path.dirname(folder)
    if folder not in chunks:
        return False
    index = [int(i) for i in name.split("_")] if name.replace("_", "").isdigit() else []
    return len(index) == len(chunks[folder]) and all(i < n for i, n in zip(index, chunks[folder]))


def left_over(root):
    """Keys below db/ that belong to no domain of schema v2."""
    bucket, keys, chunks = oracle.Bucket(root), set(), {}
    for path in bucket.files():
        domain = bucket.domain(path)
        more, folder = storage(domain), oracle.storage_key(domain.root)
        keys |= more[0] | {f"{folder}/{NAMES}"}
        block = domain.user_block()
        if block and "object" in block:
            keys.add(f"{folder}/{USER_BLOCK}{block['object']}")
        chunks.update(more[1])
    found = []
    for at, _, names in os.walk(os.path.join(os.fspath(root), "db")):
        for name in names:
            key = os.path.relpath(os.path.join(at, name), root)
            if name != LISTS and key not in keys and not is_chunk(key, chunks):
                found.append(key)
    return sorted(found)


def id_of(domain, path):
    """The id of the object to which a path of hard links leads, or None."""
    oid = domain.root
    for name in path.strip("/").split("/") if path != "/" else ():
        links = domain.objects[oid].links if oid in domain.objects else ()
        oid = next((link.id for link in links if link.name == name), None)
    return oid
