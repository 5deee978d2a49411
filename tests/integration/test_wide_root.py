# SPDX-License-Identifier: Apache-2.0
"""A bucket of schema v1 with very many objects in its root. Look-ups and opens never list the root,
and listing it takes few rounds."""
import bisect
import json
import os
import re

import pytest

import mounts
from oracle import hashed
from s3liar import Liar, etag_of, listing

PAGE = 1000
GROUP = "g-10000000-0000-11f1-b213-000000000001"
DATASET = "d-10000000-0000-11f1-b213-000000000002"


class WideServer(Liar):
    """Serves a directory, and lists objects in the root of the bucket that nobody reads."""

    def __init__(self, root, number):
        super().__init__(root)
        real = [f"{name}/" if os.path.isdir(os.path.join(root, name)) else name
                for name in os.listdir(root)]
        self.names = sorted(real + [hashed(f"c-{i:08x}-0000-11f1-b213-000000000003_0")
                                    for i in range(number)], key=os.fsencode)
        self.roots = 0

    def list(self, request):
        prefix = request.query.get("prefix", "")
        if "/" in prefix:
            return super().list(request)
        after = request.query.get("continuation-token", request.query.get("start-after", ""))
        most = int(request.query.get("max-keys", PAGE))
        with self.lock:
            self.roots += 1
        first = max(bisect.bisect_left(self.names, prefix), bisect.bisect_right(self.names, after))
        items = [name for name in self.names[first:first + most + 1] if name.startswith(prefix)]
        return listing([name if name.endswith("/") else (name, etag_of(b""), 1)
                        for name in items[:most]], len(items) > most,
                       items[most - 1] if len(items) > most else None)


def write(root, key, content):
    os.makedirs(os.path.dirname(os.path.join(root, key)) or root, exist_ok=True)
    with open(os.path.join(root, key), "wb") as f:
        f.write(content if isinstance(content, bytes) else json.dumps(content).encode())


@pytest.fixture
def bucket(tmp_path):
    root = os.fspath(tmp_path / "bucket")
    folder = {"owner": "ann", "acls": {}, "created": 1.5, "lastModified": 1.5}
    write(root, "home/.domain.json", folder)
    write(root, "shared/.domain.json", folder)
    write(root, "home/x.h5/.domain.json", {**folder, "root": GROUP})
    write(root, hashed(GROUP), {
        "id": GROUP, "root": GROUP, "created": 1.5, "lastModified": 1.5, "attributes": {},
        "links": {"data": {"class": "H5L_TYPE_HARD", "id": DATASET, "created": 1.5}}})
    write(root, hashed(DATASET), {
        "id": DATASET, "root": GROUP, "created": 1, "lastModified": 1, "attributes": {},
        "type": {"class": "H5T_INTEGER", "base": "H5T_STD_I32LE"},
        "shape": {"class": "H5S_SIMPLE", "dims": [4]},
        "layout": {"class": "H5D_CHUNKED", "dims": [4]}})
    write(root, hashed("c" + DATASET[1:] + "_0"), b"".join(i.to_bytes(4, "little")
                                                          for i in (3, 1, 4, 1)))
    return root


def read(mount):
    """The elements, read by another process: this one serves the requests meanwhile."""
    done = mounts.run("h5dump", "-y", "-d", "/data", os.path.join(mount.path, "home", "x.h5"),
                      check=True)
    return [int(n) for n in re.search(r"DATA \{([^}]*)\}", done.stdout)[1].split(",")]


def lists_of_root(server):
    """A page of 64 entries is the mount's own, which may come late."""
    return [r for r in server.requests
            if r.is_list and "/" not in r.query.get("prefix", "")
            and r.query.get("max-keys") not in ("1", "2", "64")]


@pytest.mark.parametrize("number", [20_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_opens_do_not_list_the_root(tmp_path, bucket, number):
    with WideServer(bucket, number) as server:
        with mounts.Mount("s3://bucket", tmp_path, env=server.environment()) as mount:
            server.requests.clear()
            assert sorted(os.listdir(os.path.join(mount.path, "home"))) == ["x.h5"]
            assert read(mount) == [3, 1, 4, 1]
            # A look-up asks whether there are keys that begin with "home", but not for the root.
            assert not [r for r in lists_of_root(server) if not r.query.get("prefix")]

            server.requests.clear()
            assert sorted(os.listdir(mount.path)) == ["home", "shared"]
            pages = len(lists_of_root(server))
            assert 200 <= pages <= (264 if number == 20_000 else 1100)

            server.requests.clear()
            assert sorted(os.listdir(mount.path)) == ["home", "shared"]
            assert not lists_of_root(server)
        assert not server.failures


def test_given_roots(tmp_path, bucket):
    with WideServer(bucket, 20_000) as server:
        with mounts.Mount("s3://bucket", tmp_path, "root=/home,/absent",
                          env=server.environment()) as mount:
            server.requests.clear()
            assert os.listdir(mount.path) == ["home"]
            assert read(mount) == [3, 1, 4, 1]
            assert not os.path.exists(os.path.join(mount.path, "shared"))
            assert not [r for r in lists_of_root(server) if not r.query.get("prefix")]
        assert not server.failures


def test_a_directory_bucket(tmp_path, bucket):
    for i in range(3000):
        name = hashed(f"c-{i:08x}-0000-11f1-b213-000000000003_0")
        with open(os.path.join(bucket, name), "wb"):
            pass
    with mounts.Mount(bucket, tmp_path) as mount:
        assert sorted(os.listdir(mount.path)) == ["home", "shared"]
        assert read(mount) == [3, 1, 4, 1]


@pytest.mark.parametrize("roots", ["/", "home/ann", ".."])
def test_wrong_roots(tmp_path, bucket, roots):
    domain = os.path.join(bucket, "home/x.h5")
    done = mounts.run(mounts.HSIMAGE, "-o", f"root={roots}", "info", domain)
    assert done.returncode == 1
    assert f"root={roots}" in done.stderr
