# SPDX-License-Identifier: Apache-2.0
"""The sources of credentials, and mounts that live longer than their credentials. The services are
ours (tests/support/awsfake.py) but for STS, which is the gateway's own where requests to it are
signed."""
import contextlib
import errno
import json
import os
import re
import time

import pytest

import awsfake
import faultproxy
from gateway import hsimage, needs_gateway
from mounts import HSIMAGE, run, wait_for

pytestmark = needs_gateway

NAMES = [f"file{i}" for i in range(4)]


@pytest.fixture(scope="module")
def bucket(client):
    client.make_bucket("credentials")
    client.put("credentials", "db/x", b"")      # so that it is recognised as a bucket
    for name in NAMES:
        client.put("credentials", name, name.encode())
    return "credentials"


@pytest.fixture
def aws(gateway):
    with awsfake.Services(gateway["access_key"], gateway["secret_key"]) as services:
        services.sts = gateway["sts_endpoint"]
        yield services


def without_keys(environment, **more):
    env = {k: v for k, v in environment.items()
           if k not in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
    return {**env, **more}


def config(directory, text):
    path = directory / "config"
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


def metadata(environment, aws, directory):
    return without_keys(environment, AWS_EC2_METADATA_DISABLED="",
                        AWS_EC2_METADATA_SERVICE_ENDPOINT=aws.endpoint)


def container(environment, aws, directory):
    token = directory / "token"
    token.write_text(aws.token)
    return without_keys(environment, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=str(token),
                        AWS_CONTAINER_CREDENTIALS_FULL_URI=aws.endpoint + awsfake.CONTAINER)


def process(environment, aws, directory):
    answer = json.dumps({"Version": 1, **aws.keys()})
    command = f"echo x >>{directory}/runs; echo '{answer}'"
    return without_keys(environment, AWS_CONFIG_FILE=config(
        directory, f"[default]\ncredential_process = {command}\n"))


def role(environment, aws, directory):
    return without_keys(
        environment, AWS_PROFILE="reader", AWS_ENDPOINT_URL_STS=aws.sts, AWS_ENDPOINT_URL=aws.sts,
        AWS_CONFIG_FILE=config(directory, f"""
[profile base]
aws_access_key_id = {aws.access_key}
aws_secret_access_key = {aws.secret_key}
[profile reader]
role_arn = arn:aws:iam:::role/reader
source_profile = base
"""))


def web_identity(environment, aws, directory):
    """The environment of a pod in Kubernetes."""
    token = directory / "token"
    token.write_text(aws.web_token)
    aws.secrets.append(aws.web_token)
    return without_keys(environment, AWS_WEB_IDENTITY_TOKEN_FILE=str(token),
                        AWS_ROLE_ARN=awsfake.ROLE, AWS_ROLE_SESSION_NAME="a-pod",
                        AWS_ENDPOINT_URL_STS=aws.endpoint, AWS_ENDPOINT_URL=aws.sts)


@pytest.mark.parametrize("source", [metadata, container, process, role, web_identity])
def test_sources(environment, aws, bucket, tmp_path, source):
    """Real requests with the credentials of each source. No output contains a secret."""
    env = source(environment, aws, tmp_path)
    done = run(HSIMAGE, "-o", "log_level=debug", "-b", f"s3://{bucket}", "ls", env=env, check=True)
    assert done.stdout.split() == NAMES
    for secret in secrets_of(aws):
        assert secret not in done.stderr
    assert aws.served == (1 if source in (metadata, container, web_identity) else 0)
    if source is process:
        assert (tmp_path / "runs").read_text() == "x\n"


def secrets_of(aws):
    """The secrets of a source, and what they were exchanged for."""
    return [aws.secret_key, aws.token, "session-1", *aws.secrets]


@pytest.mark.parametrize("source", [metadata, container, process, role, web_identity])
def test_no_secret_is_visible(environment, gateway, aws, bucket, tmp_path, mount, source):
    """No secret appears in the log, also after failures, nor in arguments, extended attributes and
    metrics."""
    server = aws.sts if source in (role, web_identity) else gateway["endpoint"]
    with faultproxy.Proxy(server) as proxy:
        env = dict(source(environment, aws, tmp_path), AWS_ENDPOINT_URL=proxy.endpoint)
        m = mount(f"s3://{bucket}", "metadata_ttl=0", "log_level=debug", "debug_count", env=env)
        read(m)
        tokens = {r.headers.get("x-amz-security-token", "") for r in proxy.requests} - {""}
        assert bool(tokens) == (source in (role, web_identity))
        proxy.set({"what": "status", "value": 403, "code": "SignatureDoesNotMatch", "percent": 100})
        with pytest.raises(OSError):
            read(m)
        seen = what_others_see(m)
        assert "SignatureDoesNotMatch" in seen and "user.hsds.debug.gets" in seen
        for secret in (*secrets_of(aws), *tokens):
            assert secret not in seen
        m.stop()


def test_role_that_may_not_be_assumed(environment, aws, bucket, tmp_path):
    env = role(environment, aws, tmp_path)
    path = tmp_path / "config"
    path.write_text(path.read_text().replace("role/reader", "role/nobody"))
    message = hsimage(env, "-b", f"s3://{bucket}", "ls", code=1)
    assert "STS: status 4" in message and message.count("\n") == 1
    assert aws.secret_key not in message


def content(path):
    with open(path, "rb") as f:
        return f.read()


def read(mount):
    """Reads from the bucket, not from a cache."""
    for name in NAMES:
        assert content(mount.file(name)) == name.encode()


@pytest.mark.sampled
@pytest.mark.parametrize("source", [metadata, container])
def test_mount_outlives_its_credentials(environment, aws, bucket, tmp_path, mount, source):
    """Credentials are renewed when they expire. Before that, not every request tries a renewal. If
    the service fails, requests succeed again when the service does."""
    aws.lifetime = 4
    m = mount(f"s3://{bucket}", "metadata_ttl=0", env=source(environment, aws, tmp_path))
    read(m)
    read(m)
    assert aws.served == 2          # the first ones, and an attempt to renew them
    time.sleep(4.2)                 # they expire
    read(m)
    assert aws.served == 3
    # They are renewed before they expire; if that fails, they are used until they expire.
    aws.broken = True
    time.sleep(0.5)
    read(m)
    time.sleep(4.2)
    with pytest.raises(OSError) as caught:
        read(m)
    assert caught.value.errno in (errno.EACCES, errno.EIO)
    assert "credentials cannot be renewed" in m.log()
    aws.broken = False
    assert wait_for(lambda: readable(m), 10)


def asked_process(environment, aws, directory):
    return without_keys(environment, AWS_CONFIG_FILE=config(
        directory, f"[default]\ncredential_process = curl -sf {aws.endpoint}{awsfake.PROCESS}\n"))


def assumed_role(environment, aws, directory):
    return dict(role(environment, aws, directory), AWS_ENDPOINT_URL_STS=aws.endpoint)


def test_processes_and_roles_renew(environment, gateway, bucket, tmp_path, mount):
    """The renewal happens before the first credentials expire."""
    renewed = []
    with contextlib.ExitStack() as stack:
        for source in (asked_process, assumed_role):
            aws = stack.enter_context(
                awsfake.Services(gateway["access_key"], gateway["secret_key"]))
            aws.sts, aws.lifetimes = gateway["sts_endpoint"], [4]
            (tmp_path / source.__name__).mkdir()
            env = source(environment, aws, tmp_path / source.__name__)
            renewed.append(mount(f"s3://{bucket}", "metadata_ttl=0", env=env))
            read(renewed[-1])
            assert aws.served == 2
            aws.broken = True
        time.sleep(4.2)             # they expire
        for m in renewed:
            read(m)
            assert m.log() == ""


def what_others_see(mount):
    """The log, the output of ps(1), extended attributes and metrics."""
    seen = [mount.log()]
    with open(f"/proc/{mount.process.pid}/cmdline", encoding="utf-8") as f:
        seen.append(f.read())
    try:
        for name in os.listxattr(mount.path):
            seen += [name, os.getxattr(mount.path, name).decode()]
    except PermissionError as e:            # the listing is denied
        seen.append(str(e))
    seen += [content(mount.file(".hsmount", name)).decode() for name in ("stats", "metrics")]
    return "\n".join(seen)


def test_mount_with_a_web_identity(environment, aws, bucket, tmp_path, mount):
    """Credentials are renewed before they expire, each time with the current token of the file. A
    refused token is reported, without the token itself."""
    aws.lifetime = 4
    m = mount(f"s3://{bucket}", "metadata_ttl=0", "log_level=debug",
              env=web_identity(environment, aws, tmp_path))
    read(m)
    served = aws.served
    assert served >= 2              # the first ones, and an attempt to renew them
    aws.web_token = "header.payload.signature-2"
    web_identity(environment, aws, tmp_path)
    time.sleep(4.2)
    read(m)
    assert aws.served > served
    served = aws.served
    aws.web_token = "header.payload.signature-3"
    aws.secrets.append(aws.web_token)
    time.sleep(4.2)
    with pytest.raises(OSError) as caught:
        read(m)
    assert caught.value.errno == errno.EACCES and aws.served == served
    seen = what_others_see(m)
    assert "STS: status 400 InvalidIdentityToken" in seen
    web_identity(environment, aws, tmp_path)
    assert wait_for(lambda: readable(m), 10) and aws.served > served
    assert len(aws.secrets) == 4 + 2 * aws.served
    for secret in (*aws.secrets, aws.secret_key):
        assert secret not in what_others_see(m)


def readable(mount):
    try:
        read(mount)
        return True
    except OSError:
        return False


def test_server_says_that_they_are_over(environment, gateway, aws, bucket, tmp_path, mount):
    """If the server rejects credentials as expired before their end, they are renewed, and no read
    fails."""
    with faultproxy.Proxy(gateway["endpoint"]) as proxy:
        env = dict(metadata(environment, aws, tmp_path), AWS_ENDPOINT_URL=proxy.endpoint)
        m = mount(f"s3://{bucket}", "metadata_ttl=0", env=env)
        assert aws.served == 1
        proxy.set({"what": "status", "value": 400, "code": "ExpiredToken", "first": 1})
        read(m)
        assert proxy.count("status") == 1 and aws.served == 2
        m.stop()


def log_in(aws, path):
    """Writes session keys without their expiry time, as login tools of universities do. Returns the
    access key."""
    session = aws.session_of(awsfake.ROLE)
    key, secret, token = (re.search(f"<{name}>(.+)</{name}>", session)[1]
                          for name in ("AccessKeyId", "SecretAccessKey", "SessionToken"))
    path.write_text(f"[default]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n"
                    f"aws_session_token = {token}\n")
    path.chmod(0o600)
    return key


@pytest.mark.parametrize("status, code", [(400, "ExpiredToken"), (403, "AccessDenied")])
def test_somebody_logs_in_again(environment, aws, bucket, tmp_path, mount, status, code):
    """A new login while the bucket is mounted: after the old session has expired, with the errors
    of Amazon and of Ceph, the mount uses the new one."""
    path = tmp_path / "credentials"
    log_in(aws, path)
    with faultproxy.Proxy(aws.sts) as proxy:
        env = without_keys(environment, AWS_SHARED_CREDENTIALS_FILE=str(path),
                           AWS_ENDPOINT_URL=proxy.endpoint)
        m = mount(f"s3://{bucket}", "metadata_ttl=0", env=env)
        read(m)
        proxy.set({"what": "status", "value": status, "code": code, "percent": 100,
                   "unless": log_in(aws, path)})
        read(m)
        assert proxy.count("status") >= 1
        for secret in aws.secrets:
            assert secret not in what_others_see(m)
        m.stop()


def test_keys_that_last_are_over(environment, gateway, bucket, mount):
    """Keys of the environment cannot be renewed: the request fails at once, without a retry."""
    with faultproxy.Proxy(gateway["endpoint"]) as proxy:
        env = dict(environment, AWS_ENDPOINT_URL=proxy.endpoint)
        m = mount(f"s3://{bucket}", "metadata_ttl=60", env=env)
        assert sorted(os.listdir(m.path)) == NAMES
        proxy.set({"what": "status", "value": 400, "code": "ExpiredToken", "percent": 100})
        with pytest.raises(OSError) as caught:
            content(m.file(NAMES[0]))
        assert caught.value.errno == errno.EACCES
        assert proxy.count("status") == 1
        assert len(re.findall("400 ExpiredToken", m.log())) == 1
        m.stop()
