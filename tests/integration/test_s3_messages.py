# SPDX-License-Identifier: Apache-2.0
"""Messages if a bucket in S3 cannot be mounted: one line that says what to do, before the program
goes into the background, and without any secret."""
import concurrent.futures
import datetime
import http.server
import os
import shutil
import subprocess
import threading
import time

import pytest

import faultproxy
import mounts
from gateway import hsimage, needs_gateway

pytestmark = needs_gateway


def refused(env, bucket, directory, *options, seconds=5, before=(), lines=1):
    """The message of hsmount, which must not mount."""
    mnt = directory / "mnt"
    mnt.mkdir()
    started = time.monotonic()
    done = subprocess.run([*before, mounts.HSMOUNT, f"s3://{bucket}", mnt, *options], env=env,
                          capture_output=True, text=True, timeout=60)
    assert time.monotonic() - started < seconds
    assert not mounts.is_mounted(mnt)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.count("\n") == lines, done.stderr
    secret = env["AWS_SECRET_ACCESS_KEY"]
    assert not secret or secret not in done.stderr
    return done.stderr


WRONG = {"AWS_SECRET_ACCESS_KEY": "n0t-this-one"}
NOBODY = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}


@pytest.mark.parametrize("change, bucket, words", [
    (WRONG, None, "the secret access key is wrong"),
    ({"AWS_ACCESS_KEY_ID": "nobody"}, None, "the service does not know the access key"),
    (NOBODY, None, "for a public bucket use -o no_sign_request"),
    ({}, "no-such-bucket", "there is no bucket 'no-such-bucket'"),
    ({}, "..", "is not the name of a bucket"),
    ({"AWS_ENDPOINT_URL": "gopher://x"}, None, "is not an http or https URL"),
    ({"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, None, "connection failed"),
    ({"AWS_ENDPOINT_URL": "http://no-such-host.invalid"}, None, "connection failed"),
    ({"AWS_REGION": "a b"}, None, "is not the name of a region"),
    ({"AWS_PROFILE": "absent", **NOBODY}, None, "there is no profile 'absent'"),
    ({"AWS_CA_BUNDLE": "/absent.pem"}, None, "/absent.pem"),
])
def test_wrong_settings(environment, sample_bucket, tmp_path, change, bucket, words):
    assert words in refused({**environment, **change}, bucket or sample_bucket, tmp_path)


def test_endpoint_that_ends_with_the_bucket(environment, gateway, sample_bucket, tmp_path):
    good = hsimage(environment, "ls", f"s3://{sample_bucket}")
    env = dict(environment, AWS_ENDPOINT_URL=f"{gateway['endpoint']}/{sample_bucket}")
    done = subprocess.run([mounts.HSIMAGE, "ls", f"s3://{sample_bucket}"], env=env,
                          capture_output=True, timeout=60, check=False)
    assert done.returncode == 0 and done.stdout == good
    assert b"the endpoint ends with the name of the bucket" in done.stderr
    assert done.stderr.count(b"\n") == 1
    env["AWS_ENDPOINT_URL"] = f"{gateway['endpoint']}/no-such-bucket"
    assert "there is no bucket 'no-such-bucket'" in refused(env, "no-such-bucket", tmp_path)


def test_in_the_foreground(environment, sample_bucket, tmp_path):
    env = dict(environment, **WRONG)
    assert "secret access key is wrong" in refused(env, sample_bucket, tmp_path, "-f")


def test_hsimage_says_the_same(environment, sample_bucket):
    env = dict(environment, **WRONG)
    assert "secret access key is wrong" in hsimage(env, "ls", f"s3://{sample_bucket}", code=1)


def test_bucket_that_is_not_public(environment, sample_bucket, tmp_path):
    env = dict(environment, **NOBODY)
    message = refused(env, sample_bucket, tmp_path, "-o", "no_sign_request")
    assert "the bucket is not public" in message and "AccessDenied" in message


def test_untrusted_certificate(environment, gateway, sample_bucket, tmp_path):
    env = dict(environment, AWS_ENDPOINT_URL=gateway["tls_endpoint"])
    message = refused(env, sample_bucket, tmp_path)
    assert "certificate" in message and "check endpoint and ca_bundle" in message


class Website(http.server.BaseHTTPRequestHandler):
    status = 404

    def do_GET(self):
        self.send_error(self.status)

    def log_message(self, *_):
        pass


class Portal(Website):
    """Answers every request with its page."""
    status = 200


@pytest.mark.parametrize("kind", [Website, Portal])
def test_server_that_is_not_an_s3_service(environment, tmp_path, kind):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            env = dict(environment, AWS_ENDPOINT_URL=f"http://127.0.0.1:{server.server_port}")
            assert "may not be an S3 service" in refused(env, "bucket", tmp_path)
        finally:
            server.shutdown()


def test_gateway_that_knows_buckets_in_the_path_only(environment, gateway, sample_bucket):
    """The host has a dot in its name, but does not accept buckets as part of the host."""
    fault = {"what": "status", "value": 404, "code": "NoSuchBucket", "percent": 100}
    with faultproxy.Proxy(gateway["endpoint"]) as proxy:
        host = f"s3.localhost:{proxy.port}"
        proxy.set({**fault, "unless": f"Host: {host}\r\n"})
        env = dict(environment, AWS_ENDPOINT_URL=f"http://{host}")
        names = hsimage(env, "ls", f"s3://{sample_bucket}")
        assert names == hsimage(environment, "ls", f"s3://{sample_bucket}") and names
        assert proxy.count("status") == 1
        # An explicit style is not changed.
        assert "s3.localhost" in hsimage(dict(env, AWS_CONFIG_FILE=virtual(environment)), "ls",
                                         f"s3://{sample_bucket}", code=1)
        assert proxy.count("status") == 2
        assert f"no bucket 'absent' at {host}" in hsimage(env, "ls", "s3://absent", code=1)


def virtual(environment):
    """A shared config file with virtual-host style."""
    path = os.path.join(environment["HOME"], "virtual")
    with open(path, "w", encoding="ascii") as f:
        f.write("[default]\ns3 =\n  addressing_style = virtual\n")
    return path


def test_rights_that_end_at_a_prefix(environment, client, gateway, sample, tmp_path):
    """All requests are for keys with the prefix."""
    client.make_bucket("rights")
    for names in (".domain.json", ".group.json"):
        client.upload("rights", sample.bucket.root, "lab/", names)
    fault = {"what": "status", "value": 403, "code": "AccessDenied", "path": "list-type=",
             "unless": "prefix=lab", "percent": 100}
    with faultproxy.Proxy(gateway["endpoint"], [fault]) as proxy:
        env = dict(environment, AWS_ENDPOINT_URL=proxy.endpoint)
        with mounts.Mount("s3://rights/lab", tmp_path, env=env) as m:
            assert "home" in os.listdir(m.path) and "warning" not in m.log()
        (tmp_path / "all").mkdir()
        assert "do not allow listing the bucket" in refused(env, "rights", tmp_path / "all")


def test_prefix_with_nothing_below(environment, sample_bucket, tmp_path):
    with mounts.Mount(f"s3://{sample_bucket}/hmoe", tmp_path, env=environment) as m:
        assert f"s3://{sample_bucket}/hmoe: nothing is there" in m.log()
        assert os.listdir(m.path) == []


def http_time(seconds):
    when = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return when.strftime("%a, %d %b %Y %H:%M:%S GMT")


@pytest.mark.parametrize("status, code, header, words", [
    (400, "ExpiredToken", {}, "the credentials have expired"),
    (403, "ExpiredToken", {}, "the credentials have expired"),
    (400, "InvalidToken", {}, "the session token is wrong"),
    (403, "RequestTimeTooSkewed", {"Date": -1200},
     "the clock of this machine is 20 minutes ahead; set it"),
    (403, "RequestTimeTooSkewed", {"Date": 1200},
     "the clock of this machine is 20 minutes behind; set it"),
    (403, "RequestTimeTooSkewed", {}, "the clock of this machine is wrong; set it"),
    (403, "AccessDenied", {}, "the credentials do not allow listing the bucket"),
    (301, "PermanentRedirect", {}, "the bucket is at another endpoint"),
    (503, "SlowDown", {}, "4 attempts"),
])
def test_answers(environment, gateway, sample_bucket, tmp_path, status, code, header, words):
    """Answers that the gateway does not give itself."""
    header = {k: http_time(v) if isinstance(v, int) else v for k, v in header.items()}
    fault = {"what": "status", "value": status, "code": code, "header": header, "percent": 100}
    with faultproxy.Proxy(gateway["endpoint"], [fault]) as proxy:
        env = dict(environment, AWS_ENDPOINT_URL=proxy.endpoint)
        # A warning says with which time the request is repeated.
        message = refused(env, sample_bucket, tmp_path, lines=2 if "Date" in header else 1)
        assert words in message and code in message
        # With another time, the request is repeated once.
        assert len(proxy.requests) == (4 if status == 503 else 2 if "Date" in header else 1)


@pytest.mark.parametrize("offset, words", [
    ("+20m", "20 minutes ahead"),
    ("-20m", "20 minutes behind"),
])
def test_wrong_clock(environment, sample_bucket, tmp_path, offset, words):
    """The program runs with another clock, and the gateway checks its signature."""
    if not shutil.which("faketime"):
        pytest.skip("faketime is not installed")
    env = dict(environment, FAKETIME_DONT_FAKE_MONOTONIC="1")
    if subprocess.run(["faketime", "-f", offset, mounts.HSMOUNT, "-V"], env=env, check=False,
                      capture_output=True, timeout=30).returncode:
        pytest.skip("a library that is loaded first is not for this build")
    done = subprocess.run(["faketime", "-f", offset, mounts.HSIMAGE, "ls", f"s3://{sample_bucket}"],
                          env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and done.stdout, done.stderr
    assert done.stderr.count(f"the clock of this machine is {words}, says ") == 1, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


def test_server_that_never_answers(environment, sample_bucket, tmp_path):
    """A mount fails soon if no connection is accepted or no request answered."""
    def attempt(accepts):
        directory = tmp_path / str(accepts)
        directory.mkdir()
        with faultproxy.Silent(accepts) as server:
            env = dict(environment, AWS_ENDPOINT_URL=server.endpoint)
            return refused(env, sample_bucket, directory, seconds=14)

    with concurrent.futures.ThreadPoolExecutor() as pool:
        for message in pool.map(attempt, (True, False)):
            assert "2 attempts" in message and "timed out" in message


def test_server_that_is_busy_for_long(environment, gateway, sample_bucket, tmp_path):
    """Retry-After is respected, but no attempt begins later than 8 seconds."""
    fault = {"what": "status", "value": 503, "header": {"Retry-After": "3"}, "percent": 100}
    with faultproxy.Proxy(gateway["endpoint"], [fault]) as proxy:
        env = dict(environment, AWS_ENDPOINT_URL=proxy.endpoint)
        assert "3 attempts" in refused(env, sample_bucket, tmp_path, seconds=9)


def test_nothing_is_left_behind(environment, gateway, sample_bucket, tmp_path):
    with faultproxy.Proxy(gateway["endpoint"]) as proxy:
        env = dict(environment, AWS_ENDPOINT_URL=proxy.endpoint, **WRONG)
        refused(env, sample_bucket, tmp_path)
        assert mounts.wait_for(lambda: proxy.open_connections == 0, 5)
    assert os.listdir(tmp_path / "mnt") == []
