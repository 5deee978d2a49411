# SPDX-License-Identifier: Apache-2.0
"""A service that does not answer while it is mounted: calls end in time, the log has two lines, and
all goes on when it is back. What is no outage: answers that report a failure, bodies that stall."""
import concurrent.futures
import errno
import os
import re
import time

import h5py
import numpy as np
import pytest

import faultproxy
import mkbucket
import mounts
import rwmounts
from gateway import needs_gateway
from mkbucket import INT32

pytestmark = needs_gateway

RETRY = 3                   # seconds
AT_ONCE = 1.5
PROBE = 3.5                 # of a call that is the probe of a service that accepts and is silent
BOUND = RETRY + 4           # of a call that begins in the first seconds of an outage
ELEMENTS = 64 * 1024        # in a chunk
SILENT = {"percent": 100, "what": "stall", "value": 900, "all": True}
BUSY = {"percent": 100, "what": "status", "value": 503}


class Bucket(mkbucket.Maker):
    def __init__(self, client, directory, name):
        super().__init__(directory)
        self.client, self.name = client, name
        client.make_bucket(name)

    def put(self, key, body):
        self.client.put(self.name, key, bytes(body))


@pytest.fixture(scope="module")
def bucket(client, tmp_path_factory):
    with Bucket(client, tmp_path_factory.mktemp("bucket"), "unreachable") as made:
        for name in ("a/x.h5", "a/y.h5", "b/z.h5"):
            d = made.domain(name)
            ds = d.dataset(d.root, "data", INT32, [4 * ELEMENTS], [ELEMENTS])
            for i in range(4):
                ds.chunk((i,), np.full(ELEMENTS, i, "<i4"))
    return made.name


@pytest.fixture
def proxy(gateway):
    with faultproxy.Proxy(gateway["endpoint"]) as made:
        yield made


@pytest.fixture
def mount(environment, bucket, proxy, tmp_path):
    env = dict(environment, AWS_ENDPOINT_URL=proxy.endpoint)
    with rwmounts.RwMount(f"s3://{bucket}", tmp_path, "metadata_ttl=0", f"retry_time={RETRY}",
                          "connections=8", env=env) as made:
        yield made


def go_away(proxy, how):
    if how == "gone":
        proxy.leave()
    else:
        proxy.set(SILENT)


def come_back(proxy, how):
    if how == "gone":
        proxy.come_back()
    else:
        proxy.set()


def read_all(path):
    with open(path, "rb", buffering=0) as f:
        return f.readall()


def timed(call, *args):
    """The errno of a call, 0 if it succeeds, and its seconds."""
    started, code = time.monotonic(), 0
    try:
        call(*args)
    except OSError as e:
        code = e.errno
    return code, time.monotonic() - started


def calls_of(mount):
    """Calls that need the bucket."""
    return [(os.listdir, mount.file("a")), (os.stat, mount.file("a/y.h5")),
            (os.stat, mount.file("b/none")), (read_all, mount.file("a/y.h5"))]


def all_fail(mount, seconds):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda c: timed(*c), calls_of(mount)))
    assert [code for code, _ in results] == [errno.EIO] * len(results), results
    assert max(spent for _, spent in results) < seconds, results
    return results


def news(mount):
    """The lines about the service."""
    return re.findall(r"warning: \S+ (?:has been )?(unreachable since|answers again)", mount.log())


def new_file(tmp_path, mount):
    """A complete HDF5 file that is written and not closed yet."""
    with h5py.File(tmp_path / "new.h5", "w") as f:
        f["d"] = np.arange(100)
    fd = os.open(mount.file("a/new.h5"), os.O_CREAT | os.O_WRONLY)
    os.write(fd, (tmp_path / "new.h5").read_bytes())
    return fd


@pytest.mark.parametrize("how", ["gone", "silent"])
def test_outage(mount, proxy, tmp_path, how):
    opened = os.open(mount.file("a/x.h5"), os.O_RDONLY)
    cached = os.pread(opened, 1 << 16, 0)
    assert read_all(mount.file("a/y.h5"))
    written = new_file(tmp_path, mount)
    go_away(proxy, how)

    # In the first seconds calls wait, and end together, also the commit of a file.
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        closed = pool.submit(timed, os.close, written)
        all_fail(mount, BOUND)
        code, seconds = closed.result()
    assert code == errno.EIO and seconds < BOUND, seconds
    assert mounts.wait_for(lambda: len(news(mount)) == 1, RETRY + 5), mount.log()

    # Then they fail at once, but for the probe. What is cached can be read.
    for _ in range(3):
        all_fail(mount, PROBE if how == "silent" else AT_ONCE)
        assert os.pread(opened, 1 << 16, 0) == cached
    assert timed(os.mkdir, mount.file("a/dir"))[0] == errno.EIO
    assert mount.stats()["drafts"]["failed"] == 1

    come_back(proxy, how)
    assert mounts.wait_for(lambda: timed(os.listdir, mount.file("a"))[0] == 0, 5)
    for call in calls_of(mount):
        assert timed(*call)[0] in (0, errno.ENOENT)
    os.close(opened)
    # The draft has waited, and is committed when a program asks for it.
    written = os.open(mount.file("a/new.h5"), os.O_RDWR)
    os.fsync(written)
    os.close(written)
    assert mount.failed() == 0 and read_all(mount.file("a/new.h5"))[1:4] == b"HDF"
    os.unlink(mount.file("a/new.h5"))
    assert news(mount) == ["unreachable since", "answers again"], mount.log()


@pytest.mark.parametrize("how", ["gone", "silent"])
def test_store_notices_by_itself(mount, proxy, how):
    """The service goes away and comes back while only one call is made."""
    go_away(proxy, how)
    assert timed(os.listdir, mount.file("a"))[0] == errno.EIO
    assert mounts.wait_for(lambda: len(news(mount)) == 1, RETRY + 5), mount.log()
    come_back(proxy, how)
    assert mounts.wait_for(lambda: len(news(mount)) == 2, 15), mount.log()
    assert timed(os.listdir, mount.file("a"))[0] == 0


def test_one_lost_request_is_no_outage(mount, proxy):
    """A request gets no answer, and no program sends another one. Later ones are sent as usual."""
    proxy.leave()
    assert timed(os.stat, mount.file("a/y.h5"))[0] == errno.EIO
    proxy.come_back()
    time.sleep(RETRY + 1)
    assert timed(os.listdir, mount.file("a"))[0] == 0
    assert len(news(mount)) in (0, 2)


def test_busy_service_is_no_outage(mount, proxy):
    """503 is an answer. Calls that send several requests share the time for repeating them."""
    proxy.set(BUSY)
    for _ in range(2):
        all_fail(mount, BOUND)
    time.sleep(RETRY)
    proxy.set()
    assert mounts.wait_for(lambda: timed(os.listdir, mount.file("a"))[0] == 0, 5)
    assert news(mount) == []


def test_stalled_bodies_are_no_outage(mount, proxy):
    """The bodies of chunks stall while other requests are answered."""
    proxy.set({"percent": 100, "what": "slow", "value": 900, "path": "/d/", "method": "GET"})
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        reading = pool.submit(timed, read_all, mount.file("a/x.h5"))
        while not reading.done():
            assert timed(os.listdir, mount.file("b"))[0] == 0
            time.sleep(0.1)
    assert reading.result()[0] == errno.EIO
    assert news(mount) == []


def test_requests_without_an_answer_beside_answered_ones(mount, proxy):
    """The service never answers requests for one prefix."""
    proxy.set({**SILENT, "path": "/d/"})
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        reading = pool.submit(timed, read_all, mount.file("a/x.h5"))
        while not reading.done():
            assert timed(os.listdir, mount.file("b"))[0] == 0
            time.sleep(0.1)
    assert reading.result()[0] == errno.EIO
    assert news(mount) == []
