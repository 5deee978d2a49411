# SPDX-License-Identifier: Apache-2.0
"""Where the renderer says that the objects and the variable-length items of a domain are in its
file, the reader of HDF5 files finds them. It finds the chunks of the domain, too."""
import os

import numpy as np
import pytest

import mkbucket
from mounts import BUILD, run

SCAN = os.path.join(BUILD, "tests", "support", "imagescan")


def scan(bucket, path):
    """The number of objects, of chunks, of chunks with variable-length elements, of collections."""
    result = run(SCAN, bucket, path)
    assert result.returncode == 0, result.stdout
    return [int(word) for word in result.stdout.split(" ")[:4]]


@pytest.mark.sampled
def test_the_reader_finds_what_the_renderer_has_placed(entry):
    counts = scan(entry.collection.bucket.root, entry.path)
    assert counts[0] <= len(entry.collection.bucket.domain(entry.path).objects)


def test_collections_of_nested_elements(tmp_path):
    nested = mkbucket.vlen(mkbucket.vlen(mkbucket.INT16))
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        bucket.folder("home")
        d = bucket.domain("home/nested.h5")
        ds = d.dataset(d.root, "nested", nested, [6, 2], [2, 2])
        for i in range(3):
            lists = [[list(range(k * 50)) for k in range(i + j)] for j in range(4)]
            ds.chunk((i, 0), b"".join(item(b"".join(item(np.array(x, "<i2").tobytes())
                                                    for x in inner)) for inner in lists))
        ds = d.dataset(d.root, "long", mkbucket.vstring("UTF8"), [5], [2])
        for i in range(3):
            ds.chunk((i,), item(b"a" * 70000 * i) + item(b"b" * 9000))
    objects, chunks, variable, collections = scan(bucket.root, "home/nested.h5")
    assert (objects, chunks, variable) == (3, 6, 6)
    assert collections > 6


def item(data):
    return len(data).to_bytes(4, "little") + data
