# SPDX-License-Identifier: Apache-2.0
"""The requests of an open of many objects in S3, and of the first open in a later mount with the
same disk cache."""
import hashlib
import os

import h5py
import pytest

import mkbucket
from gateway import needs_gateway
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


@pytest.fixture
def env(address):
    return dict(os.environ, AWS_ACCESS_KEY_ID="access", AWS_SECRET_ACCESS_KEY="secret",
                AWS_ENDPOINT_URL=f"http://{address}", AWS_REGION="us-east-1")


def opened(mount, env, *options, bucket="bucket"):
    """What one open costs in a new mount, and a digest of the beginning of the file."""
    m = mount(f"s3://{bucket}", "debug_count", *options, env=env)
    before = m.counts()
    with open(m.file("x.h5"), "rb") as f:
        counts = difference(before, m.counts())
        digest = hashlib.sha256(f.read(1 << 20)).hexdigest()
    assert m.stop() == 0                            # writes what is queued
    return counts, digest


def test_a_later_mount_requests_listings_only(env, tmp_path, mount):
    cache = tmp_path / "cache"
    plain, expected = opened(mount, env)
    assert OBJECTS + 1 <= plain["gets"] <= OBJECTS + 10
    # The first pages of the names and the domain; ranges, of which a few are not full.
    assert plain["lists"] <= 5 + PAGES + 3
    first, digest = opened(mount, env, f"cache_dir={cache}")
    assert digest == expected
    assert first["gets"] <= OBJECTS + 10 and first["lists"] <= 5 + PAGES + 3
    assert len(os.listdir(cache)) <= 2 * PAGES      # no file for each document
    later, digest = opened(mount, env, f"cache_dir={cache}")
    assert digest == expected
    assert later["disk_hits"] >= OBJECTS and later["disk_errors"] == 0
    assert later["gets"] + later["heads"] + later["lists"] <= PAGES + 10
    # A damaged part is requested again.
    part = max((cache / n for n in os.listdir(cache)), key=os.path.getsize)
    with open(part, "r+b") as f:
        f.seek(5000)
        f.write(b"\xff")
    again, digest = opened(mount, env, f"cache_dir={cache}")
    assert digest == expected and again["disk_dropped"] == 1
    assert 500 <= again["gets"] <= 1020


class Uploaded(mkbucket.Maker):
    def __init__(self, client, name):
        self.client, self.name, self.domains = client, name, []
        client.make_bucket(name)

    def put(self, key, body):
        self.client.put(self.name, key, body)


@pytest.mark.parametrize("name", [pytest.param("many-objects", marks=needs_gateway)])
def test_a_service_lists_ranges(client, environment, tmp_path, mount, name):
    """Every object is found, although no listing begins at the beginning and ends at the end."""
    with Uploaded(client, name) as bucket:
        d = bucket.domain("x.h5")
        for i in range(1300):
            d.dataset(d.root, f"d{i:05}", mkbucket.INT8, [1], [1])
    cache = tmp_path / "cache"
    plain, expected = opened(mount, environment, bucket=name)
    assert 1301 <= plain["gets"] <= 1310 and 4 + 2 <= plain["lists"] <= 12
    first, digest = opened(mount, environment, f"cache_dir={cache}", bucket=name)
    assert digest == expected and first["gets"] <= 1310
    later, digest = opened(mount, environment, f"cache_dir={cache}", bucket=name)
    assert digest == expected and later["disk_hits"] >= 1301 and later["gets"] <= 10
    m = mount(f"s3://{name}", env=environment)
    with h5py.File(m.file("x.h5"), "r") as f:
        assert sorted(f) == [f"d{i:05}" for i in range(1300)]
