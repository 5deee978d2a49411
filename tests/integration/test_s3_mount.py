# SPDX-License-Identifier: Apache-2.0
"""Options and promises of mounts of S3 buckets, with a proxy that checks every request: addressing,
bucket owner and requester pays, error messages, counters."""
import io
import json
import os
import re
import threading
import time

import h5py
import pytest

import faultproxy
import mkbucket
import mounts
from gateway import needs_gateway
from oracle import mount_name
from s3liar import Answer, Liar, error

CHUNKS, CHUNK = 96, 64 << 10        # of one dataset; bytes
OWNER = "123456789012"


def content(path):
    with open(path, "rb") as f:
        return f.read()


def stats(m):
    return json.loads(content(m.file(".hsmount/stats")))


@pytest.fixture(scope="module")
def bucket(tmp_path_factory):
    with mkbucket.Maker(tmp_path_factory.mktemp("bucket") / "bucket") as made:
        domain = made.domain("x.h5")
        made.data = domain.dataset(domain.root, "data", mkbucket.INT32, [CHUNKS * CHUNK // 4],
                                   [CHUNK // 4])
        for i in range(CHUNKS):
            made.data.chunk((i,), bytes([i]) * CHUNK)
        made.put("plain", b"plain" * 100000)
    return made


@pytest.fixture
def liar(bucket):
    with Liar(bucket.root) as server:
        yield server
        assert not server.failures


@pytest.fixture(scope="module")
def image(bucket, tmp_path_factory):
    """The domain's file, from a mounted directory."""
    with mounts.Mount(bucket.root, tmp_path_factory.mktemp("image")) as m:
        return content(m.file("x.h5"))


def is_chunk(request, number=None):
    return bool(re.search(rf"/d/.*/{r'[0-9]+' if number is None else number}$", request.key))


# ---- addressing ----

@pytest.mark.parametrize("option", [None, "path_style"])
@needs_gateway[0]
@needs_gateway[1]
def test_bucket_in_the_hosts_name(environment, gateway, sample, sample_bucket, tmp_path, option):
    entry = sample.entries()[0]
    with faultproxy.Proxy(gateway["endpoint"]) as proxy:
        host = f"s3.localhost:{proxy.port}"
        env = dict(environment, AWS_ENDPOINT_URL=f"http://{host}")
        with mounts.Mount(f"s3://{sample_bucket}", tmp_path, *([option] if option else []),
                          env=env) as m:
            assert content(m.file(mount_name(entry.path)))[:8] == b"\x89HDF\r\n\x1a\n"
        assert len(proxy.requests) > 3
        for request in proxy.requests:
            named = request.target.split("?")[0].split("/")[1] == sample_bucket
            assert named == bool(option), request
            assert request.headers["host"] == (host if option else f"{sample_bucket}.{host}")


# ---- bucket owner and requester pays ----

def unless(header, value):
    """S3's answer to requests without a header."""
    return lambda request, _: (None if request.headers.get(header) == value else
                               error(403, "AccessDenied"))


@pytest.mark.parametrize("header, value, option, wrong, words", [
    ("x-amz-expected-bucket-owner", OWNER, f"bucket_owner={OWNER}", "bucket_owner=210987654321",
     "account 210987654321 does not own it"),
    ("x-amz-request-payer", "requester", "requester_pays", "path_style",
     "the credentials do not allow listing the bucket"),
], ids=["owner", "payer"])
def test_server_that_insists(liar, image, tmp_path, header, value, option, wrong, words):
    """With the right option everything can be read; without it the mount fails."""
    liar.lie = unless(header, value)
    with mounts.Mount("s3://bucket", tmp_path, option, env=liar.environment()) as m:
        assert content(m.file("x.h5")) == image
        assert len(content(m.file("plain"))) == 500000
    (tmp_path / "mnt2").mkdir()
    done = mounts.run(mounts.HSMOUNT, "-o", wrong, "s3://bucket", tmp_path / "mnt2",
                      env=liar.environment())
    assert done.returncode == 1 and not mounts.is_mounted(tmp_path / "mnt2")
    assert words in done.stderr and done.stderr.count("\n") == 1


# ---- error messages ----

def refusal(number, status, code):
    return Answer(status, {"Content-Type": "application/xml", "x-amz-request-id": f"id-{number}"},
                  f"<Error><Code>{code}</Code><Message>because</Message></Error>".encode())


@pytest.mark.parametrize("busy", [0, 2])
def test_errors_name_everything(liar, bucket, mount, busy):
    """A message has method, key, status, S3's code, the request id and the number of attempts."""
    received = []

    def lie(request, _):
        if not is_chunk(request, 50):
            return None
        received.append(request)
        if len(received) <= busy:
            return refusal(len(received), 503, "SlowDown")
        return refusal(len(received), 403, "AccessDenied")

    m = mount("s3://bucket", "log_level=info", env=liar.environment())
    liar.lie = lie
    with pytest.raises(OSError):
        content(m.file("x.h5"))
    liar.lie = None
    key = re.escape(bucket.data.chunk_key((50,)))
    message = rf"GET {key}: 403 AccessDenied: because \(request id-{busy + 1}\)"
    if busy:
        message = f"attempt {busy + 1}: " + message
    assert re.search(rf"error: .*chunk {key}: {message}", m.log()), m.log()
    for n in range(1, busy + 1):
        assert re.search(rf"attempt {n} failed, the next follows in \d+ ms: "
                         rf"GET {key}: 503 SlowDown: because "
                         rf"\(request id-{n}\)", m.log()), m.log()


@pytest.mark.parametrize("method, key, message", [
    ("GET", "plain", "GET plain: 403 AccessDenied: because (request id-7)"),
    ("HEAD", "plain", "HEAD plain: 403 (request id-7)"),    # the answer has no body
    ("GET", "", "listing of '': GET bucket: 403 AccessDenied: because (request id-7)"),
], ids=["get", "head", "list"])
def test_errors_of_other_requests(liar, mount, method, key, message):
    m = mount("s3://bucket", "metadata_ttl=0", env=liar.environment())
    liar.lie = lambda request, _: (refusal(7, 403, "AccessDenied") if
                                   (request.method, request.key) == (method, key) else None)
    with pytest.raises(PermissionError):
        content(m.file("plain")) if key else os.listdir(m.path)
    assert f"{message}\n" in m.log(), m.log()


# ---- one thread for all requests ----

def test_requests_need_no_threads(liar, image, mount):
    """One reader causes dozens of parallel requests."""
    lock, now, most = threading.Lock(), [0], [0, 0]
    m = mount("s3://bucket", env=liar.environment())

    def slowly(request, _):
        if is_chunk(request):
            with lock:
                now[0] += 1
                if now[0] > most[0]:
                    most[:] = now[0], len(os.listdir(f"/proc/{m.process.pid}/task"))
            time.sleep(0.3)
            with lock:
                now[0] -= 1

    os.stat(m.file("x.h5"))
    liar.lie = slowly
    assert content(m.file("x.h5")) == image
    print(f"{most[0]} requests at once, {most[1]} threads")
    assert most[0] >= 24
    # Sixteen workers, those of FUSE, and a few with one task each.
    assert most[1] <= 32


# ---- a file that is closed ----

def test_closing_a_file_calls_requests_off(liar, image, mount):
    """Unmounting does not wait for prefetches whose reader has ended."""
    with h5py.File(io.BytesIO(image), "r") as f:
        chunks = f["data"].id
        places = [chunks.get_chunk_info(i).byte_offset for i in range(CHUNKS)]
    hanging, gone = [], []

    def hang(connection):
        hanging.append(connection)
        connection.settimeout(mounts.PATIENCE)
        gone.append(connection.recv(1))         # empty if the other side has closed

    def lie(request, _):
        if not is_chunk(request):
            return None
        time.sleep(0.05)
        return hang if int(request.key.rsplit("/", 1)[1]) > 12 else None

    m = mount("s3://bucket", "metadata_ttl=600", env=liar.environment())
    fd = os.open(m.file("x.h5"), os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    liar.lie = lie
    for i in range(0, 13, 2):
        assert os.pread(fd, CHUNK, places[i]) == bytes([i]) * CHUNK
    assert mounts.wait_for(lambda: len(hanging) == stats(m)["cache"]["loading"] >= 4)
    os.close(fd)
    started = time.monotonic()
    assert mounts.wait_for(lambda: stats(m)["cache"]["loading"] == 0)
    assert time.monotonic() - started < 5
    assert mounts.wait_for(lambda: len(gone) == len(hanging)) and not any(gone)
    seen = stats(m)
    assert seen["http"]["requests"]["GET"]["none"] == len(hanging)
    assert (seen["http"]["retries"], seen["cache"]["load_failures"]) == (0, 0)
    assert m.log() == ""
    liar.lie = None
    assert content(m.file("x.h5")) == image


# ---- counters ----

def test_bytes_that_came(liar, image, mount):
    """Bytes as the server sent them, and as programs read them."""
    sent = []

    def count(request, honest):
        sent.append(len(honest.body) if request.method == "GET" else 0)

    liar.lie = count
    m = mount("s3://bucket", "metadata_ttl=600", env=liar.environment())
    assert content(m.file("x.h5")) == image
    seen = stats(m)
    assert seen["http"]["received_bytes"] == seen["read"]["fetched_bytes"] == sum(sent)
    assert len(image) <= seen["read"]["bytes"] <= len(image) + (8 << 10)
    assert seen["read"]["amplification_ratio"] == pytest.approx(
        seen["read"]["fetched_bytes"] / seen["read"]["bytes"], abs=1e-3)
    [domain] = seen["domain"]
    assert domain["fetched_bytes"] == CHUNKS * CHUNK == domain["loads"] * CHUNK
    assert domain["prefetch_started"] == seen["prefetch"]["started"] > CHUNKS / 2
    assert domain["prefetch_useful"] == seen["prefetch"]["useful"] == domain["prefetch_started"]


def test_how_long_requests_took(liar, mount):
    """Each chunk takes a third of a second: more than .2, less than a second."""
    def slowly(request, _):
        if is_chunk(request):
            time.sleep(0.34)

    m = mount("s3://bucket", "metadata_ttl=600", env=liar.environment())
    os.close(os.open(m.file("x.h5"), os.O_RDONLY))
    before, liar.lie = stats(m), slowly
    content(m.file("x.h5"))
    after = stats(m)

    def between(*path):
        """The increase of the requests longer than .2 s and longer than a second, and of the
        sum."""
        old, new = before, after
        for name in path:
            old, new = old.get(name, {}), new[name]
        buckets = {"0.2": 0, "1": 0, **(old.get("buckets") or {})}
        count = new["count"] - old.get("count", 0)
        return (count - (new["buckets"]["0.2"] - buckets["0.2"]),
                count - (new["buckets"]["1"] - buckets["1"]), new["sum"] - old.get("sum", 0))

    for path in (("http", "request_seconds", "GET"), ("store", "call_seconds", "get")):
        late, later, total = between(*path)
        assert late == CHUNKS and total >= CHUNKS * 0.34, path
        assert later <= CHUNKS / 4, path       # a busy machine
    assert between("cache", "wait_seconds")[0] >= 2
