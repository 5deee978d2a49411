# SPDX-License-Identifier: Apache-2.0
"""Every domain of the collections in a mounted S3 bucket has the same bytes as in a directory,
which test_fidelity.py checks. Also mounts of a bucket while another program writes to it."""
import errno
import os

import h5py
import numpy as np
import pytest

import faultproxy
import mkbucket
import mounts
from gateway import needs_gateway
from mkbucket import INT32
from mounts import run
from oracle import mount_name
from sampling import sampled

pytestmark = needs_gateway


@pytest.fixture(scope="module")
def remote(gateway, uploaded, tmp_path_factory):
    """Mounts of the collections in S3, remote(collection, tls), kept for the module."""
    running = {}

    def mounted_bucket(which, tls=False):
        key = which.name, tls
        if key not in running:
            directory = tmp_path_factory.mktemp("remote")
            env = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
            env.update(HOME=str(directory), AWS_ACCESS_KEY_ID=gateway["access_key"],
                       AWS_SECRET_ACCESS_KEY=gateway["secret_key"],
                       AWS_CA_BUNDLE=gateway["ca_bundle"],
                       AWS_ENDPOINT_URL=gateway["tls_endpoint" if tls else "endpoint"])
            running[key] = mounts.Mount(f"s3://{uploaded(which)}", directory, env=env)
            running[key].start()
        return running[key]

    yield mounted_bucket
    for mount in running.values():
        code = mount.stop()
        assert code == 0, f"hsmount exits {code}:\n{mount.log()}"
        assert "Sanitizer" not in mount.log(), mount.log()


def content(path):
    with open(path, "rb") as f:
        return f.read()


def names(mount):
    return sorted(os.path.join(at, name)[len(mount.path):]
                  for at, _, files in os.walk(mount.path) for name in files)


@pytest.mark.sampled
def test_same_bytes(entry, mounted, remote):
    name = mount_name(entry.path)
    local, far = mounted(entry.collection).file(name), remote(entry.collection).file(name)
    assert content(far) == content(local)
    assert os.stat(far).st_size == os.stat(local).st_size


def test_same_names(pytestconfig, mounted, remote):
    for which in pytestconfig.collections:
        assert names(remote(which)) == names(mounted(which))


def spread(config, step):
    return [e for c in config.collections for e in c.entries()[::step]]


def test_same_bytes_over_tls(pytestconfig, mounted, remote):
    for entry in sampled(spread(pytestconfig, 1)):
        name = mount_name(entry.path)
        far = remote(entry.collection, tls=True).file(name)
        assert content(far) == content(mounted(entry.collection).file(name)), entry


def visit(path):
    """All objects and attributes as h5py reads them."""
    seen = []

    def note(name, o):
        size = {h5py.Dataset: lambda: o.shape, h5py.Group: lambda: sorted(o)}.get(type(o))
        seen.append((name, size and size(), sorted(o.attrs)))

    with h5py.File(path, "r") as f:
        f.visititems(note)
    return seen


def test_readers(pytestconfig, mounted, remote):
    for entry in spread(pytestconfig, 12):
        name = mount_name(entry.path)
        local, far = mounted(entry.collection).file(name), remote(entry.collection).file(name)
        assert visit(far) == visit(local)
        ours, theirs = run("h5dump", "-H", far, check=True), run("h5dump", "-H", local, check=True)
        assert ours.stdout.replace(far, local) == theirs.stdout


# ---- two mounts, and another writer ----

class Outside(mkbucket.Maker):
    """Writes directly to a bucket of the gateway."""

    def __init__(self, client, bucket, directory):
        super().__init__(directory)
        self.client, self.bucket = client, bucket
        client.make_bucket(bucket)

    def put(self, key, body):
        self.client.put(self.bucket, key, bytes(body))


CHUNKS, EACH = 32, 64 * 1024        # 256 KiB a chunk


class Shared:
    """A domain of many chunks in a bucket with two mounts."""

    def __init__(self, client, name, directory, mount, env):
        self.outside = Outside(client, name, directory)
        self.domain = self.outside.domain("x.h5")
        self.data = self.domain.dataset(self.domain.root, "data", INT32, [CHUNKS * EACH], [EACH])
        self.data.attribute("a", INT32, [], 1)
        self.fill(1)
        self.outside.write()
        self.mounts = [mount(f"s3://{name}", env=env) for _ in range(2)]

    def fill(self, value):
        for i in range(CHUNKS):
            self.data.chunk((i,), np.full(EACH, value, "<i4"))

    def look(self, mount):
        with h5py.File(mount.file("x.h5"), "r") as f:
            return int(f["data"].attrs["a"]), set(f["data"][::EACH // 2].tolist())


@pytest.fixture
def shared(client, environment, tmp_path, mount):
    made = []

    def make(name):
        made.append(Shared(client, name, tmp_path / "outside", mount, environment))
        return made[-1]

    return make


def test_changes_are_seen_after_reopening(shared):
    s = shared("changes")
    for m in s.mounts:
        assert s.look(m) == (1, {1})
    s.data.chunk((7,), np.full(EACH, 2, "<i4"))
    for m in s.mounts:
        assert s.look(m) == (1, {1, 2})
    s.data.doc["attributes"]["a"]["value"] = 5
    s.data.write()
    for m in s.mounts:
        assert s.look(m) == (5, {1, 2})


def test_domains_come_and_go(shared):
    s = shared("comings")
    for m in s.mounts:
        assert os.listdir(m.path) == ["x.h5"]
    s.outside.domain("later.h5").write()
    for m in s.mounts:
        assert mounts.wait_for(lambda: sorted(os.listdir(m.path)) == ["later.h5", "x.h5"], 15)
        with h5py.File(m.file("later.h5"), "r") as f:
            assert list(f) == []
    s.outside.client.delete("comings", "x.h5/.domain.json")
    for m in s.mounts:
        assert mounts.wait_for(lambda: not os.path.exists(m.file("x.h5")), 15)


def test_an_open_file_is_one_version(shared):
    """An open file has its old chunks, or fails with ESTALE if they are gone. The next open has the
    new ones."""
    s = shared("versions")
    with h5py.File(s.mounts[0].file("x.h5"), "r") as f:
        offset = f["data"].id.get_chunk_info(0).byte_offset
        size = f["data"].id.get_chunk_info(0).size
        places = [f["data"].id.get_chunk_info(i).byte_offset for i in range(CHUNKS)]
    fd = os.open(s.mounts[1].file("x.h5"), os.O_RDONLY)
    try:
        assert set(np.frombuffer(os.pread(fd, size, offset), "<i4")) == {1}
        s.fill(2)
        seen, stale = set(), 0
        for place in places:
            try:
                seen.update(np.frombuffer(os.pread(fd, size, place), "<i4").tolist())
            except OSError as e:
                assert e.errno in (errno.ESTALE, errno.EIO)
                stale += 1
        assert seen == {1} and stale > 0
    finally:
        os.close(fd)
    for m in s.mounts:
        assert s.look(m) == (1, {2})


def test_unchanged_domain_is_not_sent_again(client, environment, gateway, tmp_path, mount):
    """The inode and the kernel's pages stay valid. The open costs a conditional GET and a
    listing."""
    outside = Outside(client, "unchanged", tmp_path / "outside")
    domain = outside.domain("x.h5")
    data = domain.dataset(domain.root, "data", INT32, [EACH], [EACH])
    data.chunk((0,), np.arange(EACH, dtype="<i4"))
    outside.write()
    with faultproxy.Proxy(gateway["endpoint"]) as proxy:
        m = mount("s3://unchanged", "debug_count",
                  env=dict(environment, AWS_ENDPOINT_URL=proxy.endpoint))

        def read():
            with open(m.file("x.h5"), "rb") as f:
                return os.fstat(f.fileno()).st_ino, f.read()
        first, start, before = read(), len(proxy.requests), m.counts()
        assert read() == first
        sent = proxy.requests[start:]
        cost = mounts.difference(before, m.counts())
        assert cost["reads"] == 0 and cost["images"] == 0
        # The answer has no body; the listing counts its own bytes.
        assert cost["gets"] <= 2 and cost["lists"] == 1 and cost["bytes_in"] == 0
        assert all("if-none-match" in r.headers or "list-type" in r.target for r in sent), sent
        data.attribute("a", INT32, [], 1)
        data.write()
        start = len(proxy.requests)
        assert read()[0] != first[0]
        assert sum(".dataset.json" in r.target for r in proxy.requests[start:]) == 1
        assert not any(".group.json" in r.target for r in proxy.requests[start:])
