# SPDX-License-Identifier: Apache-2.0
"""A mount of a bucket in S3 whose server fails in every way of the proxy: seldom, often, and in
bursts. Every byte is right, nothing hangs, and no request, load or connection is left over."""
import concurrent.futures
import errno
import itertools
import json
import os
import re
import threading
import time

import h5py
import numpy as np
import pytest

import faultproxy
import mkbucket
import mounts
from gateway import needs_gateway
from mkbucket import INT32
from oracle import mount_name

pytestmark = needs_gateway

# Only a digest detects a wrong byte, and listings have none.
FAULTS = {
    "429": {"what": "status", "value": 429, "header": {"Retry-After": "0"}},
    "500": {"what": "status", "value": 500},
    "502": {"what": "status", "value": 502},
    "503": {"what": "status", "value": 503},
    "504": {"what": "status", "value": 504},
    "error200": {"what": "error200"},
    "drop": {"what": "drop"},
    "lose": {"what": "lose"},
    "reset": {"what": "reset"},
    "cut": {"what": "cut"},
    "flip": {"what": "flip", "method": "GET", "object": True, "whole": True},
    "slow": {"what": "slow", "value": 0.2},
    "stall": {"what": "stall", "value": 0.3},
}
HARMLESS = ("slow", "stall")        # late answers, but complete ones
RATES = {"1%": {"percent": 1}, "10%": {"percent": 10}, "bursts": {"burst": (20, 200)}}
READERS = 8
CACHE = 8 << 20


def content(path):
    with open(path, "rb") as f:
        return f.read()


@pytest.fixture(scope="module")
def expected(sample, tmp_path_factory):
    """A part of the corpus, with chunks and documents of all kinds: name -> bytes."""
    entries = [e for e in sample.entries() if "manychunks" not in e.path][::4]
    with mounts.Mount(sample.bucket.root, tmp_path_factory.mktemp("expected")) as mount:
        return {n: content(mount.file(n)) for n in (mount_name(e.path) for e in entries)}


def read_all(mount, expected):
    """The names of the files with wrong bytes, read by several threads."""
    with concurrent.futures.ThreadPoolExecutor(READERS) as pool:
        got = pool.map(lambda name: content(mount.file(name)), expected)
        return [name for name, data in zip(expected, got) if data != expected[name]]


@pytest.mark.sampled(by="name")
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("name", FAULTS)
def test_corpus(environment, gateway, sample_bucket, tmp_path, expected, name, rate):
    fault = {**FAULTS[name], **RATES[rate]}
    with faultproxy.Proxy(gateway["endpoint"]) as proxy:
        env = dict(environment, AWS_ENDPOINT_URL=proxy.endpoint)
        mount = mounts.Mount(f"s3://{sample_bucket}", tmp_path, "debug_count",
                             f"cache_size={CACHE},metadata_ttl=60", env=env)
        with mount:
            proxy.set(fault)
            assert read_all(mount, expected) == []
            proxy.set()
            assert mounts.wait_for(lambda: proxy.serving == 0, 5)
            counts, peak = mount.counts(), mount.memory_peak()
            stats = json.loads(content(mount.file(".hsmount/stats")))
        assert mounts.wait_for(lambda: proxy.open_connections == 0, 5)
    injected = sum(1 for r in proxy.requests if r.fault)
    assert injected > 0
    # The mount counts the requests that were answered correctly; the first one is not counted.
    asked = sum(not r.only_connects for r in proxy.requests)
    answered = asked - (0 if name in HARMLESS else injected)
    assert answered == 1 + counts["gets"] + counts["heads"] + counts["lists"]
    assert peak is None or peak < CACHE + (64 << 20)
    assert (stats["cache"]["loading"], stats["cache"]["queued"]) == (0, 0)
    # Each fault causes one retry, which is counted. If a kept connection is dead, libcurl repeats
    # the request itself, and this is not counted.
    retries = stats["http"]["retries"]
    if name in ("drop", "lose"):
        assert retries <= injected
    else:
        assert retries == (0 if name in HARMLESS else injected)
    if fault["what"] == "status":
        by_status = [by.get(name, 0) for by in stats["http"]["requests"].values()]
        assert sum(by_status) == injected


# ---- an unavailable server ----

KEPT = 32       # connections that a mount opens in advance
CHUNKS, EACH = 48, 64 * 1024        # 256 KiB a chunk


class Bucket(mkbucket.Maker):
    def __init__(self, client, directory):
        super().__init__(directory)
        self.client = client
        client.make_bucket("away")

    def put(self, key, body):
        self.client.put("away", key, bytes(body))


@pytest.fixture
def away_bucket(client, environment, tmp_path_factory):
    """The name of a domain, and the offsets of its chunks. h5py blocks other threads while it
    waits, so it must not be used while a proxy runs in this process."""
    with Bucket(client, tmp_path_factory.mktemp("away")) as bucket:
        d = bucket.domain("x.h5")
        ds = d.dataset(d.root, "data", INT32, [CHUNKS * EACH], [EACH])
        for i in range(CHUNKS):
            ds.chunk((i,), np.full(EACH, i, "<i4"))
    with mounts.Mount("s3://away", tmp_path_factory.mktemp("places"), env=environment) as mount:
        with h5py.File(mount.file("x.h5"), "r") as f:
            chunks = f["data"].id
            return "away", [chunks.get_chunk_info(i).byte_offset for i in range(CHUNKS)]


class Outage:
    """A mount whose server is unavailable for some seconds, in one of several ways."""

    def __init__(self, places, proxy, seconds, go, come):
        self.places, self.proxy, self.seconds = places, proxy, seconds
        self.go, self.come = go, come

    def watch(self, mount):
        """Reads a chunk, stops the server, and lets four readers read other chunks. Returns the
        seconds until all have succeeded, and the requests of this time."""
        with open(mount.file("x.h5"), "rb", buffering=0) as f:
            def chunk(i):
                values = np.frombuffer(os.pread(f.fileno(), EACH * 4, self.places[i]), "<i4")
                return set(values.tolist())

            assert chunk(0) == {0}
            self.go()
            before, started = len(self.proxy.requests), time.monotonic()
            timer = threading.Timer(self.seconds, self.come)
            timer.start()
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                got = list(pool.map(chunk, (20, 27, 34, 41)))
            timer.join()
            assert got == [{20}, {27}, {34}, {41}]
            return time.monotonic() - started, self.proxy.requests[before:]


def attempts_of(requests, log):
    """The largest number of attempts for one object, as counted by the proxy and by the mount."""
    targets = sorted(r.target for r in requests)
    seen = max((len(list(g)) for _, g in itertools.groupby(targets)), default=0)
    reported = max((int(n) for n in re.findall(r"attempt (\d+) failed, the next", log)), default=0)
    return seen, reported


def outlast(environment, gateway, away_bucket, directory, away, how):
    """An unavailable server: how, seconds, attempts counted by the proxy and reported by the
    mount."""
    bucket, places = away_bucket
    with faultproxy.Proxy(gateway["endpoint"]) as proxy:
        def all_of(**fault):
            return lambda: proxy.set({"percent": 100, **fault})

        ways = {
            "gone": (proxy.leave, proxy.come_back),
            "reset": (all_of(what="drop"), proxy.set),
            "silent": (all_of(what="stall", value=90), proxy.set),
            "half": (all_of(what="slow", value=90), proxy.set),     # of each body, then nothing
        }
        env = dict(environment, AWS_ENDPOINT_URL=proxy.endpoint)
        with mounts.Mount(f"s3://{bucket}", directory, "log_level=info", env=env) as mount:
            seconds, requests = Outage(places, proxy, away, *ways[how]).watch(mount)
            seen, reported = attempts_of(requests, mount.log())
        assert mounts.wait_for(lambda: proxy.open_connections == 0, 5)
        return how, seconds, seen, reported


@pytest.mark.long
def test_permanently_busy_server(environment, gateway, away_bucket, tmp_path):
    """A permanently busy server: the read fails within a minute with one log line, and the file can
    be read again when the server recovers."""
    bucket, places = away_bucket
    fault = {"what": "status", "value": 503, "percent": 100, "header": {"Retry-After": "20"}}
    with faultproxy.Proxy(gateway["endpoint"]) as proxy:
        env = dict(environment, AWS_ENDPOINT_URL=proxy.endpoint)
        with mounts.Mount(f"s3://{bucket}", tmp_path, env=env) as mount, \
                open(mount.file("x.h5"), "rb", buffering=0) as f:
            proxy.set(fault)
            started = time.monotonic()
            with pytest.raises(OSError) as caught:
                os.pread(f.fileno(), 4096, places[20])
            seconds = time.monotonic() - started
            assert caught.value.errno == errno.EIO and 30 < seconds < 62, seconds
            proxy.set()
            time.sleep(1.2)         # a failure is cached for a second
            assert set(os.pread(f.fileno(), 4096, places[20])) == {0, 20}
            assert re.search(r"error: .*: 3 attempts in \d\d\.\d s: GET db/\S+/20: 503 SlowDown: "
                             r"injected \(request fault-1\)\n", mount.log()), mount.log()


# The least number of attempts if requests fail at once, and if they time out.
@pytest.mark.parametrize("away, ways, at_once, timed_out", [
    (5, ("gone", "reset"), 3, 0),
    pytest.param(30, ("gone", "reset", "silent", "half"), 7, 2, marks=pytest.mark.long),
], ids=["briefly", "long"])
def test_unavailable_server(environment, gateway, away_bucket, tmp_path, away, ways, at_once,
                             timed_out):
    """For some seconds connections are refused or reset, requests are not answered, or bodies stop
    half-way. Reads of an open file wait and then succeed, and the number of requests is limited."""
    for how in ways:
        (tmp_path / how).mkdir()
    with concurrent.futures.ThreadPoolExecutor(len(ways)) as pool:
        for how, seconds, seen, reported in pool.map(
                lambda how: outlast(environment, gateway, away_bucket, tmp_path / how, away, how),
                ways):
            print(f"{how}: {seconds:.1f} s, {seen} attempts seen, {reported} reported")
            assert away <= seconds < away + 15, how
            # About ten for each object; libcurl adds one for each kept connection that is dead.
            assert reported <= 18 and seen <= reported + KEPT, how
            assert reported >= (timed_out if how in ("silent", "half") else at_once), how


def test_unmounting_needs_no_server(environment, gateway, sample_bucket, tmp_path):
    """A mount can be unmounted while its server is unavailable."""
    with faultproxy.Proxy(gateway["endpoint"]) as proxy:
        env = dict(environment, AWS_ENDPOINT_URL=proxy.endpoint)
        with mounts.Mount(f"s3://{sample_bucket}", tmp_path, "metadata_ttl=0", env=env) as mount:
            content(mount.file("home/test_user1/h5/big.h5"))
            proxy.leave()
            started = time.monotonic()
        assert time.monotonic() - started < 10
