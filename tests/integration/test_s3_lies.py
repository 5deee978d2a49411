# SPDX-License-Identifier: Apache-2.0
"""A server that lies. All bytes that are read are right, or the read fails in time. Requests are
sent to no other server than the one that the user has named."""
import base64
import dataclasses
import errno
import os
import re
import threading
import time

import pytest

import mkbucket
import mounts
from s3liar import Answer, Liar, error, etag_of, listing

ELEMENTS, CHUNK = 4096, 1024


@pytest.fixture
def liar(tmp_path):
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        domain = bucket.domain("a/x.h5")
        dataset = domain.dataset(domain.root, "data", mkbucket.INT32, [ELEMENTS], [CHUNK])
        for i in range(ELEMENTS // CHUNK):
            dataset.chunk((i,), b"".join(n.to_bytes(4, "little")
                                         for n in range(i * CHUNK, (i + 1) * CHUNK)))
    with Liar(tmp_path / "bucket") as server:
        yield server
        assert not server.failures


def is_chunk(request):
    return request.method == "GET" and re.search(r"/d/[^/]*/\d$", request.key)


def is_listing(request):
    return request.is_list and request.query.get("max-keys") != "1"


def forever(head, piece):
    def speak(connection):
        connection.sendall(head)
        while True:
            connection.sendall(piece)
    return speak


def export(liar, tmp_path, code=0):
    """The exported file, or standard error if the export fails with this code."""
    out = tmp_path / "out.h5"
    done = mounts.run(mounts.HSIMAGE, "export", "--force", "--output", out, "s3://bucket/a/x.h5",
                      env=liar.environment())
    assert done.returncode == code, done.stderr
    assert "Sanitizer" not in done.stderr
    return done.stderr if code else out.read_bytes()


def with_body(answer, body, **headers):
    return Answer(answer.status, {**answer.headers, **headers}, body)


# ---- another version ----

OTHER = b"\1" * (4 * CHUNK)


@pytest.mark.parametrize("etag", ["other-1", etag_of(OTHER)])
def test_server_without_conditions(liar, tmp_path, etag):
    """The server ignores If-Match and sends another version."""
    liar.lie = lambda request, honest: is_chunk(request) and with_body(
        honest, OTHER, ETag=f'"{etag}"') or None
    assert f"another version (ETag {etag}," in export(liar, tmp_path, code=1)


@pytest.mark.parametrize("etag", ["anything", None])
def test_304_without_a_condition(liar, mount, etag):
    liar.lie = lambda request, honest: is_chunk(request) and Answer(
        304, {"Content-Length": None, **({"ETag": f'"{etag}"'} if etag else {})}) or None
    m = mount("s3://bucket", env=liar.environment())
    with pytest.raises(OSError) as caught:
        with open(m.file("a/x.h5"), "rb") as f:
            f.read()
    assert caught.value.errno == errno.EIO
    liar.lie = None


@pytest.mark.parametrize("status, body", [(206, OTHER[:10]), (204, b"")],
                         ids=["part", "nothing"])
def test_answers_that_stay_nowhere(liar, mount, tmp_path, status, body):
    """A part of the object or nothing, with the ETag of the whole: neither read nor cached on
    disk."""
    lied = []

    def lie(request, honest):
        if not is_chunk(request) or request.key in lied:
            return None
        lied.append(request.key)
        length = {"Content-Length": None} if not body else {
            "Content-Range": f"bytes 0-{len(body) - 1}/{len(body)}"}
        return Answer(status, {**honest.headers, **length}, body)

    good = export(liar, tmp_path)
    options = [f"cache_dir={tmp_path}/cache", "cache_size=0"]
    liar.lie = lie
    m = mount("s3://bucket", *options, env=liar.environment())
    with open(m.file("a/x.h5"), "rb") as f:
        assert f.read() == good
    assert lied
    m.stop()
    liar.lie = None
    m = mount("s3://bucket", *options, env=liar.environment())
    with open(m.file("a/x.h5"), "rb") as f:
        assert f.read() == good


def test_416_for_an_existing_range(liar, mount):
    """A range that the server refuses although the object has it is requested again."""
    body = bytes(range(256)) * 8192
    lied = []
    with open(os.path.join(liar.root, "plain"), "wb") as f:
        f.write(body)

    def lie(request, honest):
        if request.key != "plain" or "if-match" not in request.headers or lied:
            return None
        lied.append(request)
        return error(416, "InvalidRange")

    liar.lie = lie
    m = mount("s3://bucket", env=liar.environment())
    with open(m.file("plain"), "rb") as f:
        assert f.read() == body
    assert lied


# ---- answers that never end ----

@pytest.mark.parametrize("which, status", [(is_chunk, 403), (is_listing, 403), (is_chunk, 404)])
def test_error_that_never_ends(liar, tmp_path, which, status):
    liar.lie = lambda request, honest: which(request) and forever(
        f"HTTP/1.1 {status} No\r\n\r\n".encode(), b"x" * 65536) or None
    started = time.monotonic()
    export(liar, tmp_path, code=1)
    assert time.monotonic() - started < mounts.PATIENCE


def test_body_that_never_ends(liar, tmp_path):
    liar.lie = lambda request, honest: is_chunk(request) and forever(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"10000\r\n" + b"x" * 65536 + b"\r\n") or None
    assert "too long" in export(liar, tmp_path, code=1)


def test_failed_export_waits_for_nothing(liar, tmp_path):
    """One chunk is refused; the others, which are prefetched, are never answered."""
    over = threading.Event()

    def silent(_):
        over.wait(mounts.PATIENCE)

    liar.lie = lambda request, honest: is_chunk(request) and (
        Answer(403, {}) if request.key.endswith("/0") else silent) or None
    started = time.monotonic()
    try:
        assert "403" in export(liar, tmp_path, code=1)
        assert time.monotonic() - started < 10
        assert len(list(filter(is_chunk, liar.requests))) > 1, "nothing was loaded ahead"
    finally:
        over.set()


# ---- damaged bodies ----

POLYNOMIALS = {"crc32": (0xedb88320, 4), "crc32c": (0x82f63b78, 4),
               "crc64nvme": (0x9a6c9329ac4bc9b5, 8)}


def crc_header(name, body):
    """The header with a reflected CRC, computed bit by bit."""
    polynomial, size = POLYNOMIALS[name]
    crc = ones = (1 << 8 * size) - 1
    for byte in body:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (polynomial if crc & 1 else 0)
    return {f"x-amz-checksum-{name}": base64.b64encode((crc ^ ones).to_bytes(size, "big")).decode()}


def flip(body):
    return body[:100] + bytes([body[100] ^ 1]) + body[101:]


class Damage:
    """Damages the body of every chunk, the first `times` times. With a checksum, chunks are sent
    with this CRC on request, and with a header that says that their ETag is not the MD5."""
    def __init__(self, checksum=None, times=1 << 30):
        self.checksum, self.times, self.seen = checksum, times, {}

    def __call__(self, request, honest):
        if not is_chunk(request):
            return None
        assert "range" not in request.headers
        headers = {}
        if self.checksum and request.headers.get("x-amz-checksum-mode") == "ENABLED":
            headers = {"x-amz-server-side-encryption": "aws:kms",
                       **crc_header(self.checksum, honest.body)}
        self.seen[request.key] = self.seen.get(request.key, 0) + 1
        if self.seen[request.key] > self.times:
            return with_body(honest, honest.body, **headers)
        return with_body(honest, flip(honest.body), **headers)


def export_with(liar, tmp_path, verify):
    out = tmp_path / f"{verify}.h5"
    return out, mounts.run(mounts.HSIMAGE, "-o", f"verify={verify}", "export", "--force",
                           "--output", out,
                           "s3://bucket/a/x.h5", env=liar.environment())


@pytest.mark.parametrize("checksum", [*POLYNOMIALS, None])
def test_damaged_bodies_are_read_again(liar, tmp_path, checksum):
    good = export(liar, tmp_path)
    liar.lie = damage = Damage(checksum, times=1)
    liar.requests.clear()
    assert export(liar, tmp_path) == good
    assert set(damage.seen.values()) == {2} and len(damage.seen) == ELEMENTS // CHUNK
    for request in liar.requests:
        whole = (request.method == "GET" and request.key != "" and
                 "range" not in request.headers)
        assert ("x-amz-checksum-mode" in request.headers) == whole


def test_verify_never(liar, tmp_path):
    """The server's checksum is neither requested nor compared, nor is the MD5."""
    good = export(liar, tmp_path)
    liar.lie = Damage("crc32c")
    liar.requests.clear()
    out, done = export_with(liar, tmp_path, "never")
    assert done.returncode == 0, done.stderr
    assert sum(a != b for a, b in zip(out.read_bytes(), good)) == ELEMENTS // CHUNK
    assert not any("x-amz-checksum-mode" in r.headers for r in liar.requests)


@pytest.mark.parametrize("verify, compared", [("auto", False), ("always", True), ("never", False)])
def test_verify_over_tls(liar, tmp_path, verify, compared):
    """TLS protects bodies on their way, so they are only compared on request."""
    good = export(liar, tmp_path)
    with Liar(liar.root, tls=tmp_path) as server:
        server.lie = damage = Damage("crc64nvme", times=1)
        out, done = export_with(server, tmp_path, verify)
        assert done.returncode == 0, done.stderr
        assert (out.read_bytes() == good) == compared
        assert set(damage.seen.values()) == {2 if compared else 1}
        assert any("x-amz-checksum-mode" in r.headers for r in server.requests) == compared
        assert not server.failures


def test_checksums_of_checksums_are_ignored(liar, tmp_path):
    """Checksums of multipart uploads, which end with the number of parts, are not compared."""
    good = export(liar, tmp_path)
    liar.lie = lambda request, honest: is_chunk(request) and with_body(
        honest, honest.body, **{"x-amz-checksum-crc32": "AAAAAA==-3"}) or None
    out, done = export_with(liar, tmp_path, "always")
    assert done.returncode == 0, done.stderr
    assert out.read_bytes() == good


# ---- listings ----

def test_listing_that_is_damaged_once(liar, tmp_path):
    """The length is right, so only the parser detects the damage. The listing is requested
    again."""
    good = export(liar, tmp_path)
    damaged = []

    def lie(request, honest):
        if not is_listing(request) or damaged:
            return None
        damaged.append(request)
        return with_body(honest, honest.body.replace(b"</Key>", b"</Kex>"))

    liar.lie = lie
    assert export(liar, tmp_path) == good
    assert damaged


def test_listing_that_is_always_damaged(liar, tmp_path):
    """An answer that is damaged in the same way twice is an error: no third attempt would help."""
    damaged = []

    def lie(request, honest):
        if not is_listing(request):
            return None
        damaged.append(request.query.get("prefix"))
        return with_body(honest, honest.body.replace(b"</Key>", b"</Kex>"))

    liar.lie = lie
    started = time.monotonic()
    assert "2 attempts" in export(liar, tmp_path, code=1)
    assert time.monotonic() - started < 10
    assert max(damaged.count(prefix) for prefix in damaged) == 2


def test_chunk_that_is_always_damaged(liar, tmp_path):
    liar.lie = damage = Damage()
    started = time.monotonic()
    assert "the body is damaged" in export(liar, tmp_path, code=1)
    assert time.monotonic() - started < 10
    assert max(damage.seen.values()) == 2


def test_listing_that_ignores_max_keys(liar, tmp_path):
    good = export(liar, tmp_path)

    def lie(request, honest):
        if request.is_list and request.query.get("max-keys") != "1000":
            return liar.list(dataclasses.replace(request, query={**request.query,
                                                                 "max-keys": "1000"}))
        return None

    liar.lie = lie
    assert export(liar, tmp_path) == good
    assert mounts.run(mounts.HSIMAGE, "ls", "s3://bucket/a", env=liar.environment()).stdout


def test_listing_with_a_prefix_that_xml_lacks(liar, mount):
    """Some services repeat the prefix without the encoding that was asked for. The answer is read
    without it, so it takes one request."""
    def lie(request, honest):
        if not request.is_list or not set("\x01\x02") & set(request.query.get("prefix", "")):
            return None
        listings.append(request.query["prefix"])
        return with_body(honest, honest.body.replace(
            b"<IsTruncated>", b"<Prefix>a/&#1;/</Prefix><IsTruncated>"))

    listings = []
    liar.lie = lie
    m = mount("s3://bucket", env=liar.environment())
    assert not os.path.exists(m.file("a/\x01"))
    os.makedirs(os.path.join(liar.root, "a/\x02"))
    with open(os.path.join(liar.root, "a/\x02/x\x03?y"), "w", encoding="ascii") as f:
        f.write("data")
    assert os.listdir(m.file("a/\x02")) == ["x\x03?y"]
    with open(m.file("a/\x02/x\x03?y"), encoding="ascii") as f:
        assert f.read() == "data"
    assert listings.count("a/\x01/") == 1
    assert os.path.exists(m.file("a/x.h5"))


def test_listing_of_too_many(liar, tmp_path):
    liar.lie = lambda request, honest: is_listing(request) and listing(
        [(f"{request.query.get('prefix', '')}{i:08}", "e", 1) for i in range(20000)]) or None
    assert "a malformed listing" in export(liar, tmp_path, code=1)


# ---- values from answers that are copied into requests ----

def test_etag_with_the_end_of_a_line(liar, tmp_path):
    good = export(liar, tmp_path)
    liar.lie = lambda request, honest: is_listing(request) and with_body(
        honest, honest.body.replace(b"<ETag>&quot;", b"<ETag>&quot;&#13;&#10;X-Evil: yes&#13;&#10;"
                                    )) or None
    assert export(liar, tmp_path) == good
    assert not any("x-evil" in r.headers for r in liar.requests)


@pytest.mark.parametrize("region", ["eu&#13;&#10;X-Evil: yes", "evil.org/", "a" * 31])
def test_invalid_region(liar, tmp_path, region):
    document = f"<Error><Code>AuthorizationHeaderMalformed</Code><Region>{region}</Region></Error>"
    liar.lie = lambda request, honest: request.is_list and Answer(
        400, {"Content-Type": "application/xml"}, document.encode()) or None
    export(liar, tmp_path, code=1)
    assert not any("x-evil" in r.headers for r in liar.requests)
    for request in liar.requests:
        assert re.search(r"/(us-east-1|a{31})/s3/", request.headers["authorization"])


def test_redirect_to_another_host(liar, tmp_path):
    """The other host would get the session token."""
    with Liar(liar.root, "127.0.0.2") as other:
        liar.lie = lambda request, _: Answer(
            307, {"Location": f"http://127.0.0.2:{other.port}/bucket"})
        assert "is not followed" in export(liar, tmp_path, code=1)
        assert not other.requests


def test_listing_that_is_cut_short(liar, tmp_path):
    """More items follow, but there is no continuation token: the missing items must not seem to be
    absent."""
    liar.lie = lambda request, honest: is_listing(request) and listing([], truncated=True) or None
    assert "more items follow" in export(liar, tmp_path, code=1)


def test_listing_in_no_order(liar, tmp_path):
    """If the next page began after the greatest key, chunks would be missing and read as zeros."""
    def lie(request, honest):
        prefix = request.query.get("prefix", "")
        keys = [k for k in liar.keys(prefix) if k.startswith(prefix)]
        if not is_listing(request) or is_folder(request) or "start-after" in request.query:
            return None
        return listing([(k, etag_of(liar.body(k)), len(liar.body(k)))
                        for k in keys if not k.endswith("/1")][::-1], truncated=True, token="x")

    liar.lie = lie
    assert "not in order" in export(liar, tmp_path, code=1)


def is_folder(request):
    return is_listing(request) and request.query.get("delimiter") == "/"


@pytest.mark.parametrize("item, message", [
    (b"<Key>a/bad%00key</Key><Size>1</Size>", r"a/bad%00key \(the key contains a NUL"),
    (b"<Key>a/bad%2</Key><Size>1</Size>", r"a/bad%2 \(the key is badly encoded"),
    (b"<Key>a/" + b"k" * 9000 + b"</Key><Size>1</Size>", r"a/k+\.\.\. \(the key is too long"),
    (b"<Key>a/bad</Key><Size>-1</Size>", r"a/bad \(the size is not valid"),
], ids=["NUL", "escape", "length", "size"])
def test_bad_item_hides_no_other(liar, tmp_path, item, message):
    """The item is left out, with one warning."""
    good = export(liar, tmp_path)
    liar.lie = lambda request, honest: (
        is_folder(request) and request.query.get("prefix") == "a/" and
        with_body(honest, honest.body.replace(
            b"<IsTruncated>", b"<Contents>" + item + b"</Contents><IsTruncated>"))) or None
    done = mounts.run(mounts.HSIMAGE, "ls", "s3://bucket/a", env=liar.environment())
    assert done.returncode == 0 and done.stdout.split() == ["x.h5"]
    assert len(re.findall("left out", done.stderr)) == 1
    assert re.search(f"s3://bucket/a/: 1 items of the listing are left out, the first is {message}",
                     done.stderr)
    assert export(liar, tmp_path) == good


def test_folder_of_which_nothing_can_be_read(liar, mount):
    """The folder exists, and listing it fails: it must not seem to be missing or empty."""
    os.mkdir(os.path.join(liar.root, "folder"))
    with open(os.path.join(liar.root, "folder", "plain"), "wb") as f:
        f.write(b"x")
    liar.lie = lambda request, honest: request.is_list and with_body(
        honest, re.sub(rb"(plain</Key>.*?<Size>)\d+", rb"\1-4", honest.body)) or None
    m = mount("s3://bucket", env=liar.environment())
    assert os.path.isdir(m.file("folder"))
    with pytest.raises(OSError) as caught:
        os.listdir(m.file("folder"))
    assert caught.value.errno == errno.EIO


def test_chunk_without_a_size(liar, tmp_path):
    """The chunk exists: it must not seem to be absent and read as zeros."""
    liar.lie = lambda request, honest: is_listing(request) and not is_folder(request) and with_body(
        honest, re.sub(rb"(/0</Key>.*?<Size>)\d+", rb"\1-4", honest.body)) or None
    assert "/0 (the size is not valid)" in export(liar, tmp_path, code=1)
