# SPDX-License-Identifier: Apache-2.0
"""The protocol: regions and redirects, headers of all requests, HTTP/2, Retry-After, and the
version of ranges."""
import errno
import hashlib
import os
import signal
import threading
import time

import pytest

import faultproxy
import h2proxy
import mounts
from gateway import hsimage, needs_gateway, run_contract
from oracle import mount_name
from sampling import EVERYTHING

pytestmark = needs_gateway


def content(path):
    with open(path, "rb") as f:
        return f.read()


def listing(env, bucket, *options):
    return hsimage(env, *options, "ls", f"s3://{bucket}")


# ---- regions and redirects ----

@pytest.mark.parametrize("status, code", [
    (301, "PermanentRedirect"),
    (400, "AuthorizationHeaderMalformed"),
    (307, "TemporaryRedirect"),
])
@pytest.mark.parametrize("named", [None, "us-west-2"])
def test_region_is_found(environment, gateway, sample_bucket, status, code, named):
    """A service that refuses requests signed for another region, and names the bucket's region."""
    fault = {"what": "status", "value": status, "code": code, "percent": 100,
             "header": {"x-amz-bucket-region": "eu-test-1"}, "unless": "/eu-test-1/s3/"}
    with faultproxy.Proxy(gateway["endpoint"], [fault]) as proxy:
        env = dict(environment, AWS_ENDPOINT_URL=proxy.endpoint)
        if named:
            env["AWS_REGION"] = named
        assert listing(env, sample_bucket) == listing(environment, sample_bucket)
        assert [r.fault for r in proxy.requests[:2]] == ["status", None]
        assert proxy.count("status") == 1


def test_region_that_is_wrong_again(environment, gateway, sample_bucket):
    """A redirect is followed once, so a circle ends."""
    fault = {"what": "status", "value": 400, "code": "AuthorizationHeaderMalformed",
             "header": {"x-amz-bucket-region": "eu-test-1"}, "percent": 100}
    with faultproxy.Proxy(gateway["endpoint"], [fault]) as proxy:
        env = dict(environment, AWS_ENDPOINT_URL=proxy.endpoint)
        message = hsimage(env, "ls", f"s3://{sample_bucket}", code=1)
        assert "the bucket is in another region" in message
        assert len(proxy.requests) == 2


@pytest.mark.parametrize("status", [301, 307])
def test_redirect_is_followed_once(environment, gateway, sample_bucket, status):
    """The first request is redirected to the bucket's endpoint; all others are sent there."""
    with faultproxy.Proxy(gateway["endpoint"]) as there:
        fault = {"what": "status", "value": status, "percent": 100,
                 "header": {"Location": there.endpoint + "{target}"}}
        with faultproxy.Proxy(gateway["endpoint"], [fault]) as here:
            env = dict(environment, AWS_ENDPOINT_URL=here.endpoint)
            assert listing(env, sample_bucket) == listing(environment, sample_bucket)
            assert len(here.requests) == 1 and len(there.requests) > 3


def test_redirects_in_a_circle(environment, gateway, sample_bucket):
    with faultproxy.Proxy(gateway["endpoint"]) as proxy:
        proxy.set({"what": "status", "value": 307, "percent": 100,
                   "header": {"Location": proxy.endpoint + "{target}"}})
        env = dict(environment, AWS_ENDPOINT_URL=proxy.endpoint)
        started = time.monotonic()
        message = hsimage(env, "ls", f"s3://{sample_bucket}", code=1)
        assert "the bucket is at another endpoint" in message
        assert len(proxy.requests) == 2 and time.monotonic() - started < 5


# ---- headers of every request ----

def test_payer_and_owner(environment, gateway, sample, sample_bucket, tmp_path):
    """The headers are in every request and covered by the signature, which the gateway checks."""
    with faultproxy.Proxy(gateway["endpoint"]) as proxy:
        env = dict(environment, AWS_ENDPOINT_URL=proxy.endpoint)
        options = ("-o", "requester_pays,bucket_owner=123456789012")
        path = sample.entries()[0].path
        hsimage(env, *options, "export", "--force", f"s3://{sample_bucket}/{path}",
                str(tmp_path / "x.h5"))
        assert len(proxy.requests) > 3
        for request in proxy.requests:
            assert request.headers["x-amz-request-payer"] == "requester"
            assert request.headers["x-amz-expected-bucket-owner"] == "123456789012"
            signed = request.headers["authorization"].split("SignedHeaders=")[1].split(",")[0]
            assert {"x-amz-request-payer", "x-amz-expected-bucket-owner", "host"} <= \
                set(signed.split(";"))


def test_plain_requests_carry_neither(environment, gateway, sample_bucket):
    with faultproxy.Proxy(gateway["endpoint"]) as proxy:
        listing(dict(environment, AWS_ENDPOINT_URL=proxy.endpoint), sample_bucket)
        for request in proxy.requests:
            assert not any("payer" in name or "owner" in name for name in request.headers)


def test_unsigned_requests(environment, gateway, client, sample):
    """A public bucket: the program searches and sends no credentials."""
    policy = b'''{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": "*",
        "Action": ["s3:ListBucket", "s3:GetObject"],
        "Resource": ["arn:aws:s3:::public", "arn:aws:s3:::public/*"]}]}'''
    client.make_bucket("public")
    client.upload("public", sample.bucket.root, names=".domain.json")
    client.request("PUT", "/public", query={"policy": ""}, body=policy)
    with faultproxy.Proxy(gateway["endpoint"]) as proxy:
        env = dict(environment, AWS_ENDPOINT_URL=proxy.endpoint)
        whole = hsimage(env, "-b", str(sample.bucket.root), "ls")
        assert hsimage(env, "-o", "no_sign_request", "-b", "s3://public", "ls") == whole
        assert len(proxy.requests) > 3
        assert not any("authorization" in r.headers for r in proxy.requests)


@pytest.mark.parametrize("how", ["variable", "option"])
def test_certificates_to_trust(environment, gateway, sample_bucket, how):
    env = dict(environment, AWS_ENDPOINT_URL=gateway["tls_endpoint"])
    want = listing(environment, sample_bucket)
    if how == "variable":
        env["AWS_CA_BUNDLE"] = gateway["ca_bundle"]
        assert listing(env, sample_bucket) == want
    else:
        assert listing(env, sample_bucket, "--ca-bundle", gateway["ca_bundle"]) == want


# ---- HTTP/2 ----

@pytest.fixture
def h2(gateway, tmp_path):
    if not h2proxy.NGHTTPX:
        pytest.skip("nghttpx is not installed")
    certificates = os.path.dirname(gateway["ca_bundle"])

    def start(server=gateway["endpoint"], *options):
        return h2proxy.H2Proxy(server, certificates, tmp_path, *options)

    return start


def over(environment, gateway, proxy):
    return dict(environment, AWS_ENDPOINT_URL=proxy.endpoint, AWS_CA_BUNDLE=gateway["ca_bundle"])


def test_contract_over_http2(environment, gateway, contract_bucket, h2):
    # A client between the two that avoids the delays of Nagle's algorithm.
    with faultproxy.Proxy(gateway["endpoint"]) as plain, h2(plain.endpoint) as proxy:
        run_contract(over(environment, gateway, proxy), contract_bucket,
                     "bare" if EVERYTHING else "stack")
        assert {e.protocol for e in proxy.log()} == {"h2"}


def test_one_connection_for_all(environment, gateway, sample, sample_bucket, tmp_path, h2):
    entry = max(sample.entries(), key=lambda e: len(sample.bucket.domain(e.path).objects))
    want, got = tmp_path / "d.h5", tmp_path / "s.h5"
    hsimage(environment, "export", "--force", f"{sample.bucket.root}/{entry.path}", str(want))
    with faultproxy.Proxy(gateway["endpoint"]) as plain, h2(plain.endpoint) as proxy:
        env = over(environment, gateway, proxy)
        hsimage(env, "export", "--force", f"s3://{sample_bucket}/{entry.path}", str(got))
        log = proxy.log()
    assert got.read_bytes() == want.read_bytes()
    assert {e.protocol for e in log} == {"h2"} and len(log) > 50
    assert len({e.port for e in log}) == 1


def test_a_mount_has_one_connection(environment, gateway, sample, sample_bucket, mount, h2):
    """It opens none before it needs them."""
    name = mount_name(sample.entries()[0].path)
    with faultproxy.Proxy(gateway["endpoint"]) as plain, h2(plain.endpoint) as proxy:
        m = mount(f"s3://{sample_bucket}", env=over(environment, gateway, proxy))
        assert content(m.file(name))[:8] == b"\x89HDF\r\n\x1a\n"
        m.stop()
        log = proxy.log()
    assert {e.protocol for e in log} == {"h2"} and len({e.port for e in log}) == 1
    assert not any(r.only_connects for r in plain.requests)


@pytest.mark.parametrize("faults", [
    [{"what": "status", "value": 503, "percent": 10}, {"what": "drop", "percent": 3},
     {"what": "cut", "percent": 3}],
    [{"what": "stall", "value": 3, "every": 300}],
], ids=["mixed", "stall"])
def test_contract_over_http2_with_faults(environment, gateway, contract_bucket, h2, faults):
    """A late stream is ended. Its connection is closed only if it has received nothing else."""
    with faultproxy.Proxy(gateway["endpoint"], faults) as faulty, h2(faulty.endpoint) as proxy:
        run_contract(over(environment, gateway, proxy), contract_bucket, "stack")
        assert any(r.fault for r in faulty.requests)
        if faults[0]["what"] == "stall":
            first = "?list-type=2&max-keys=1"       # of each store
            stores = sum(r.target.endswith(first) for r in faulty.requests)
            assert len({e.port for e in proxy.log()}) <= stores + faulty.count("stall")


def test_http2_connection_that_is_dead(environment, gateway, contract_bucket, h2):
    """All requests share one connection. If it receives nothing any more, they move to another."""
    with faultproxy.Proxy(gateway["endpoint"]) as plain, h2(plain.endpoint) as proxy:
        def away():
            time.sleep(0.7)     # requests run
            proxy.signal(signal.SIGSTOP)
            time.sleep(2.5)     # the connection receives nothing
            proxy.signal(signal.SIGCONT)
        thread = threading.Thread(target=away)
        thread.start()
        try:
            run_contract(over(environment, gateway, proxy), contract_bucket, "stack")
        finally:
            thread.join()


# ---- Retry-After, and versions ----

def test_busy_server_says_when(environment, gateway, sample_bucket):
    fault = {"what": "status", "value": 503, "header": {"Retry-After": "2"}, "first": 1,
             "path": "encoding-type"}
    with faultproxy.Proxy(gateway["endpoint"], [fault]) as proxy:
        env = dict(environment, AWS_ENDPOINT_URL=proxy.endpoint)
        started = time.monotonic()
        listing(env, sample_bucket)
        assert proxy.count("status") == 1
        assert 2 < time.monotonic() - started < 6


def test_plain_object_is_one_version(environment, client, gateway, mount):
    """An open file has the old bytes or fails with ESTALE, and never mixes versions; the next open
    has the new bytes. Requests name the version, so the server does not send another one."""
    size = 16 << 20
    client.make_bucket("plain")
    client.put("plain", "file", b"a" * size)
    with faultproxy.Proxy(gateway["endpoint"]) as proxy:
        m = mount("s3://plain", env=dict(environment, AWS_ENDPOINT_URL=proxy.endpoint))
        path = m.file("file")
        with open(path, "rb", buffering=0) as f:
            assert os.pread(f.fileno(), 65536, 0) == b"a" * 65536
            client.put("plain", "file", b"b" * size)
            seen, stale = set(), 0
            for offset in range(0, size, 1 << 20):
                try:
                    seen.update(os.pread(f.fileno(), 1 << 20, offset))
                except OSError as e:
                    assert e.errno == errno.ESTALE
                    stale += 1
            assert seen == set(b"a") and stale >= 8
        # The look-up requests the first byte of any version.
        ranges = [r for r in proxy.requests if r.headers.get("range", "bytes=0-0") != "bytes=0-0"]
        etag = f'"{hashlib.md5(b"a" * size).hexdigest()}"'
        assert len(ranges) >= stale and {r.headers.get("if-match") for r in ranges} == {etag}
        assert mounts.wait_for(lambda: content(path) == b"b" * size, 10)
        m.stop()
