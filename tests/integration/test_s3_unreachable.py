# SPDX-License-Identifier: Apache-2.0
"""A service that does not answer while it is mounted: calls end in time, the log has two lines, and
all goes on when it is back. What is no outage: answers that report a failure, bodies that stall."""
import collections
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

RETRY = 5                   # seconds
# A request that fails at once is repeated after 0.1, 0.2, 0.4 … s: with all pauses of half the
# length, this is how often it is sent within RETRY seconds.
ATTEMPTS = 8
ELEMENTS = 64 * 1024        # in a chunk
SILENT = {"percent": 100, "what": "stall", "value": 900, "all": True}
SLOW = {"percent": 100, "what": "delay", "value": 3, "all": True}
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


def result(call, *args):
    """The errno of a call, 0 if it succeeds."""
    try:
        call(*args)
    except OSError as e:
        return e.errno
    return 0


def calls_of(mount):
    """Calls that need the bucket."""
    return [(os.listdir, mount.file("a")), (os.stat, mount.file("a/y.h5")),
            (os.stat, mount.file("b/none")), (read_all, mount.file("a/y.h5"))]


def all_fail(mount):
    calls = calls_of(mount)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda c: result(*c), calls))
    assert results == [errno.EIO] * len(results), results


def news(mount):
    """The lines about the service."""
    return re.findall(r"warning: \S+ (?:has been )?(unreachable since|answers again)", mount.log())


def becomes_unreachable(mount):
    """Makes calls until the service counts as unreachable."""
    all_fail(mount)
    assert mounts.wait_for(lambda: len(news(mount)) == 1, 4 * RETRY), mount.log()


def answers(mount):
    return result(os.listdir, mount.file("a")) == 0


def most_often(requests):
    """How often the same request was sent."""
    return max(collections.Counter((r.method, r.target) for r in requests).values())


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
    other = os.open(mount.file("b/other"), os.O_CREAT | os.O_RDWR)
    os.write(other, b"bytes")
    go_away(proxy, how)

    # A commit that has begun fails as other calls do.
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        closed = pool.submit(result, os.close, written)
        becomes_unreachable(mount)
        assert closed.result() == errno.EIO

    # From now on calls send nothing but probes, and log nothing. What is cached can be read.
    log, sent = mount.log(), len(proxy.requests)
    for _ in range(8):
        all_fail(mount)
        assert os.pread(opened, 1 << 16, 0) == cached
    assert result(os.mkdir, mount.file("a/dir")) == errno.EIO
    assert {r.method for r in proxy.requests[sent:]} <= {"GET", "HEAD"}
    assert len(proxy.requests) - sent < 16
    assert mount.log() == log

    # No commit begins. Its draft stays in the journal.
    sent = len(proxy.requests)
    assert result(os.close, other) == errno.EIO
    assert "b/other" in mount.log()[len(log):]
    # The kernel reports the end of an open file after close(2) has returned.
    assert mounts.wait_for(lambda: mount.stats()["drafts"]["failed"] == 2)
    assert all(r.method == "HEAD" for r in proxy.requests[sent:])

    come_back(proxy, how)
    assert mounts.wait_for(lambda: answers(mount), 30)
    for call in calls_of(mount):
        assert result(*call) in (0, errno.ENOENT)
    os.close(opened)
    # The drafts have waited, and are committed when a program asks for it.
    for name, begin in (("a/new.h5", b"\x89HDF"), ("b/other", b"byte")):
        fd = os.open(mount.file(name), os.O_RDWR)
        os.fsync(fd)
        os.close(fd)
        assert mount.failed() <= 1 and read_all(mount.file(name))[:4] == begin
        os.unlink(mount.file(name))
    assert mount.failed() == 0
    assert news(mount) == ["unreachable since", "answers again"], mount.log()


@pytest.mark.parametrize("how", ["gone", "silent"])
def test_store_notices_by_itself(mount, proxy, how):
    """The service goes away and comes back while only one call is made."""
    go_away(proxy, how)
    assert result(os.listdir, mount.file("a")) == errno.EIO
    assert mounts.wait_for(lambda: len(news(mount)) == 1, 4 * RETRY), mount.log()
    come_back(proxy, how)
    assert mounts.wait_for(lambda: len(news(mount)) == 2, 30), mount.log()
    assert answers(mount)


def test_slow_service_comes_back(mount, proxy):
    """It needs longer for an answer than the probe of a program may take. Programs that call all
    the time do not keep the daemon from asking itself."""
    go_away(proxy, "silent")
    becomes_unreachable(mount)
    proxy.set(SLOW)
    assert mounts.wait_for(lambda: answers(mount), 60), mount.log()
    proxy.set()
    assert news(mount) == ["unreachable since", "answers again"], mount.log()


def test_unmount_of_an_unreachable_service(mount, proxy, tmp_path):
    """It ends at once, and sends no commit. The next mount has the draft."""
    written = new_file(tmp_path, mount)
    go_away(proxy, "silent")
    becomes_unreachable(mount)
    assert result(os.close, written) == errno.EIO
    sent = len(proxy.requests)
    assert mount.stats()["drafts"]["failed"] == 1
    mount.stop()
    assert {r.method for r in proxy.requests[sent:]} <= {"HEAD"}
    proxy.set()
    mount.start()
    assert mounts.wait_for(lambda: mount.left() == 1, 30), mount.log()


def test_one_lost_request_is_no_outage(mount, proxy):
    """A request gets no answer, and no program sends another one. Later ones are sent as usual."""
    proxy.leave()
    assert result(os.stat, mount.file("a/y.h5")) == errno.EIO
    proxy.come_back()
    assert mounts.wait_for(lambda: proxy.requests and proxy.requests[-1].only_connects, 4 * RETRY)
    assert answers(mount)
    assert len(news(mount)) in (0, 2)


def test_busy_service_is_no_outage(mount, proxy):
    """503 is an answer. All requests of a system call share the time for repeating them: the kernel
    looks a name up twice, and the second look-up sends nothing."""
    assert answers(mount)
    proxy.set(BUSY)
    for call, path in (os.listdir, mount.file("a")), (os.stat, mount.file("b/none")):
        sent = len(proxy.requests)
        assert result(call, path) == errno.EIO
        assert 1 < most_often(proxy.requests[sent:]) <= ATTEMPTS, proxy.requests[sent:]
    proxy.set()
    assert mounts.wait_for(lambda: answers(mount), 30)
    assert news(mount) == []


def test_busy_service_in_a_commit(mount, proxy, tmp_path):
    """What only cleans up after a failure is sent once."""
    name = mount.file("b/first")
    fd = os.open(name, os.O_CREAT | os.O_WRONLY)
    os.write(fd, b"bytes")
    proxy.set({**BUSY, "method": "DELETE"})
    sent = len(proxy.requests)
    assert result(os.close, fd) == errno.EIO
    assert most_often(r for r in proxy.requests[sent:] if r.method == "DELETE") == 5
    proxy.set()


def test_one_failure_is_not_that_of_others(mount, proxy):
    """The time for repeats that one file has used up is not that of another file, or of a second
    call."""
    assert answers(mount)
    proxy.set({**BUSY, "path": "/a/y.h5"})
    assert result(os.stat, mount.file("a/y.h5")) == errno.EIO
    for name in ("b", "a"):
        proxy.set({"first": 3, "what": "status", "value": 503, "path": f"prefix={name}"})
        assert result(os.listdir, mount.file(name)) == 0


def test_stalled_bodies_are_no_outage(mount, proxy):
    """The bodies of chunks stall while other requests are answered."""
    proxy.set({"percent": 100, "what": "slow", "value": 900, "path": "/d/", "method": "GET"})
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        reading = pool.submit(result, read_all, mount.file("a/x.h5"))
        while not reading.done():
            assert result(os.listdir, mount.file("b")) == 0
            time.sleep(0.1)
    assert reading.result() == errno.EIO
    assert news(mount) == []


def test_one_prefix_hangs(mount, proxy):
    """The service never answers requests for one prefix, and no program sends other ones."""
    proxy.set({**SILENT, "path": "/d/"})
    for _ in range(3):
        assert result(read_all, mount.file("a/x.h5")) == errno.EIO
    assert news(mount) == []
