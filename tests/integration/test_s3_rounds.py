# SPDX-License-Identifier: Apache-2.0
"""What a new mount of an S3 bucket requests until a program has its first chunk, what of it side by
side, and over which connections."""
import os
import threading

import pytest

import mkbucket
from mounts import PATIENCE, run, wait_for
from s3liar import Liar

OPENED = 32             # connections of a new mount: an eighth of them
DATASETS = 20
CHUNK = 1 << 15         # elements; chunks 5, 9 and 19 of the last dataset are stored


@pytest.fixture(scope="module")
def bucket(tmp_path_factory):
    """Domains in the root and in a folder, with fewer documents than a mount opens connections."""
    with mkbucket.Maker(tmp_path_factory.mktemp("bucket") / "bucket") as made:
        for path in ("x.h5", "run", "folder/y.h5"):
            domain = made.domain(path)
            for i in range(DATASETS):
                data = domain.dataset(domain.root, f"d{i:02}", mkbucket.INT32, [20 * CHUNK],
                                      [CHUNK])
            for n in (5, 9, 19):
                data.chunk((n,), bytes([n]) * 4 * CHUNK)
    return made


def kind(request):
    if not request.key:
        return "connect" if request.method == "HEAD" else "list"
    name = request.key.rpartition("/")[2]
    return ("domain" if name == ".domain.json" else "document" if name.endswith(".json") else
            "chunk" if request.key.startswith("db/") else "object")


class Observer(Liar):
    """`log`: the kind and the connection of each request. side_by_side() gives the numbers of
    requests that must be under way at the same time, by kind: none of them is answered before all
    have arrived."""

    def __init__(self, root):
        super().__init__(root)
        self.log, self.active, self.barriers, self.lie = [], 0, {}, self.watch

    def side_by_side(self, *groups):
        self.barriers = {k: barrier for kinds, n in groups
                         for barrier in [threading.Barrier(n)] for k in kinds}

    def watch(self, request, _):
        with self.lock:
            self.active += 1
            self.log.append((kind(request), threading.get_ident()))
        if barrier := self.barriers.get(kind(request)):
            barrier.wait(PATIENCE)      # an error is a failure of the server
        with self.lock:
            self.active -= 1

    def counts(self, log=None):
        counts = dict.fromkeys(("connect", "domain", "document", "list", "object", "chunk"), 0)
        for name, _ in self.log if log is None else log:
            counts[name] += 1
        return counts

    def await_mount(self, **expected):
        """Waits until a new mount has sent these requests and no others."""
        expected = {**self.counts([]), **expected}
        wait_for(lambda: len(self.log) >= sum(expected.values()) and self.active == 0)
        assert self.counts() == expected


@pytest.fixture
def server(bucket):
    with Observer(bucket.root) as observer:
        yield observer
    assert observer.failures == []


# Of a mount: two listings that recognise the bucket; one of the root, and what it shows: documents
# of the root, the domains and the folder, and what is below "run", which has no extension, and
# below the folder, which has no document.
MOUNT = {"connect": OPENED - 1, "domain": 4, "list": 5}


def first_chunk(server, mount, path, *options, chunk=19, side_by_side=()):
    """Reads an element of a chunk as soon as a new mount is idle. Returns the requests of the read,
    except those for chunks: the kernel may read ahead the first one, which is behind the metadata.
    The read must open no connections."""
    server.log.clear()
    server.side_by_side()
    m = mount("s3://bucket", "metadata_ttl=600", *options, env=server.environment())
    server.await_mount(**MOUNT)
    connections, n = {connection for _, connection in server.log}, len(server.log)
    server.side_by_side(*side_by_side)
    # Not h5py, which blocks the threads of the server.
    read = run("h5dump", "-d", f"/d{DATASETS - 1}", "-s", str(CHUNK * chunk), "-c", "1",
               m.file(path))
    assert f"{int.from_bytes(bytes([chunk]) * 4, 'little')}\n" in read.stdout, read.stderr
    m.stop()
    assert {connection for _, connection in server.log[n:]} <= connections
    counts = server.counts(server.log[n:])
    assert 1 <= counts.pop("chunk") <= 2
    return counts


@pytest.mark.parametrize("path", ["x.h5", "run.h5"])
def test_first_chunk(server, mount, path):
    """Three rounds: the listings of the domain's objects, the documents, the chunk. The mount has
    read the names in the root."""
    rounds = (("domain", "list"), 1 + 4), (("document",), DATASETS + 1)
    assert first_chunk(server, mount, path, side_by_side=rounds) == {
        "connect": 0, "domain": 1, "list": 4, "document": DATASETS + 1, "object": 0}


def test_first_chunk_with_a_disk_cache(server, mount, tmp_path):
    """Two rounds: the listing shows that the cached documents are current."""
    cache = f"cache_dir={tmp_path}/cache"
    first_chunk(server, mount, "x.h5", cache)
    rounds = (("domain", "list"), 1 + 4),
    assert first_chunk(server, mount, "x.h5", cache, chunk=9, side_by_side=rounds) == {
        "connect": 0, "domain": 1, "list": 4, "document": 0, "object": 0}


def test_first_chunk_below_a_folder(server, mount):
    """One more round, for each folder: a name below the root is looked up when it is used, by
    requests for an object, a listing, and two documents."""
    assert first_chunk(server, mount, "folder/y.h5") == {
        "connect": 0, "domain": 2 + 1, "list": 1 + 4, "document": DATASETS + 1, "object": 1}


def test_few_connections(server, mount):
    """The option limits the connections that are opened in advance, too."""
    mount("s3://bucket", "connections=16", env=server.environment())
    server.await_mount(**{**MOUNT, "connect": 1})
    assert len({connection for _, connection in server.log}) <= 16


def test_large_root(tmp_path, mount):
    """A mount reads the names in the root only if one small page has all of them."""
    with mkbucket.Maker(tmp_path / "bucket") as made:
        for i in range(70):
            made.domain(f"{i:02}.h5")
    with Observer(tmp_path / "bucket") as server:
        m = mount("s3://bucket", "metadata_ttl=600", env=server.environment())
        server.await_mount(connect=OPENED - 1, domain=1, list=3)
        os.stat(m.file("07.h5"))
        assert server.counts()["domain"] > 1


def test_names_that_are_never_valid(server, mount):
    mount("s3://bucket", "metadata_ttl=0", env=server.environment())
    server.await_mount(connect=OPENED - 1, domain=1, list=2)
