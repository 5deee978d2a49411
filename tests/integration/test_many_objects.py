# SPDX-License-Identifier: Apache-2.0
"""The requests of an open of many objects in S3, and of the first open in a later mount with the
same disk cache."""
import hashlib
import os

import pytest

import mkbucket
from mounts import difference
from test_memory_store import Objects, serving

OBJECTS = 4_000
PAGES = OBJECTS // 1000 + 1


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("many") / "objects"
    with Objects(path) as bucket:
        d = bucket.domain("x.h5")
        for i in range(OBJECTS):
            d.dataset(d.root, f"d{i:05}", mkbucket.INT32, [4], [4])
    with serving(path) as at:
        yield at


def opened(mount, address, *options):
    """What one open costs in a new mount, and a digest of the beginning of the file."""
    env = dict(os.environ, AWS_ACCESS_KEY_ID="access", AWS_SECRET_ACCESS_KEY="secret",
               AWS_ENDPOINT_URL=f"http://{address}", AWS_REGION="us-east-1")
    m = mount("s3://bucket", "debug_count", *options, env=env)
    before = m.counts()
    with open(m.file("x.h5"), "rb") as f:
        counts = difference(before, m.counts())
        digest = hashlib.sha256(f.read(1 << 20)).hexdigest()
    assert m.stop() == 0                            # writes what is queued
    return counts, digest


def test_a_later_mount_requests_listings_only(address, tmp_path, mount):
    cache = tmp_path / "cache"
    plain, expected = opened(mount, address)
    assert OBJECTS + 1 <= plain["gets"] <= OBJECTS + 10
    # The first pages of the names and the domain; ranges, of which a few are not full.
    assert plain["lists"] <= 5 + PAGES + 3
    first, digest = opened(mount, address, f"cache_dir={cache}")
    assert digest == expected
    assert first["gets"] <= OBJECTS + 10 and first["lists"] <= 5 + PAGES + 3
    assert len(os.listdir(cache)) <= 2 * PAGES      # no file for each document
    later, digest = opened(mount, address, f"cache_dir={cache}")
    assert digest == expected
    assert later["disk_hits"] >= OBJECTS and later["disk_errors"] == 0
    assert later["gets"] + later["heads"] + later["lists"] <= PAGES + 10
    # A damaged part is requested again.
    part = max((cache / n for n in os.listdir(cache)), key=os.path.getsize)
    with open(part, "r+b") as f:
        f.seek(5000)
        f.write(b"\xff")
    again, digest = opened(mount, address, f"cache_dir={cache}")
    assert digest == expected and again["disk_dropped"] == 1
    assert 500 <= again["gets"] <= 1020
