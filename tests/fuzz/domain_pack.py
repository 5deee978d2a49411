#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints one domain of a directory bucket as an input of the fuzz target `domain`.

    domain_pack.py BUCKET PATH >corpus/domain/NAME
"""
import itertools
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))

import oracle  # noqa: E402


def body_of(data):
    """As text if it fits into one line, a document without white space."""
    try:
        data = json.dumps(json.loads(data), separators=(",", ":")).encode()
    except ValueError:
        pass
    if data.isascii() and data.decode("ascii").isprintable() and not data.startswith(b"hex:"):
        return data.decode("ascii")
    return "hex:" + data.hex()


def keys_of_v1(bucket, path):
    """Catalogs, documents and chunks of a domain of schema v1, which has no prefix."""
    folder = os.path.join(bucket, path)
    yield from (os.path.join(path, name) for name in sorted(os.listdir(folder))
                if name != ".domain.json" and not name.endswith(".chunks.txt"))
    for oid, obj in oracle.Bucket(bucket).domain(path).objects.items():
        yield oracle.document_key(oid)
        if oid[0] != "d" or not obj.shape and obj.shape != ():
            continue
        grid = [-(-n // c) for n, c in zip(obj.shape or (1,), obj.chunk_shape())]
        for index in itertools.product(*map(range, grid)):
            key = oracle.chunk_key(oid, index, obj.doc["layout"].get("partition_count", 0))
            if os.path.exists(os.path.join(bucket, key)):
                yield key


def objects_of(bucket, path):
    """Keys and bodies: the domain document first, then all below its root."""
    key = os.path.join(path, ".domain.json")
    with open(os.path.join(bucket, key), "rb") as f:
        body = f.read()
    yield key, body
    if oracle.is_v1(json.loads(body)["root"]):
        for key in keys_of_v1(bucket, path):
            with open(os.path.join(bucket, key), "rb") as f:
                yield key, f.read()
        return
    below = os.path.join(bucket, oracle.storage_key(json.loads(body)["root"]))
    for folder, folders, names in os.walk(below):
        folders.sort()
        for name in sorted(names):
            file = os.path.join(folder, name)
            with open(file, "rb") as f:
                yield os.path.relpath(file, bucket), f.read()


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: domain_pack.py BUCKET PATH")
    for key, body in objects_of(sys.argv[1], sys.argv[2]):
        print(key, body_of(body))


if __name__ == "__main__":
    main()
