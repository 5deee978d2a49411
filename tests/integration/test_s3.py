# SPDX-License-Identifier: Apache-2.0
"""The S3 store with a Ceph RADOS Gateway on loopback, directly and through a proxy that injects
faults: the contract of a store, signatures, TLS, whole domains."""
import pytest

import faultproxy
import mounts
from gateway import hsimage, needs_gateway, run_contract
from sampling import EVERYTHING

pytestmark = needs_gateway


def test_contract(environment, contract_bucket):
    run_contract(environment, contract_bucket, "bare")


def test_contract_over_tls(environment, gateway, contract_bucket):
    env = dict(environment, AWS_ENDPOINT_URL=gateway["tls_endpoint"],
               AWS_CA_BUNDLE=gateway["ca_bundle"])
    run_contract(env, contract_bucket, "bare" if EVERYTHING else "stack")


def test_contract_in_virtual_hosts(environment, gateway, contract_bucket):
    port = gateway["endpoint"].rsplit(":", 1)[1]
    env = dict(environment, AWS_ENDPOINT_URL=f"http://s3.localhost:{port}")
    run_contract(env, contract_bucket, "virtual-host")


FAULTS = {
    "busy": [{"what": "status", "value": 503, "percent": 20},
             {"what": "status", "value": 429, "percent": 5}],
    "broken": [{"what": "status", "value": v, "percent": 4} for v in (500, 502, 504)],
    # This burst is longer than the first request of a mount waits.
    "burst": [{"what": "status", "value": 503, "first": 12, "path": "start-after"}],
    "error200": [{"what": "error200", "percent": 10}],
    "drop": [{"what": "drop", "percent": 10}],
    "lose": [{"what": "lose", "percent": 10}],
    "reset": [{"what": "reset", "percent": 10}],
    "cut": [{"what": "cut", "percent": 10}],
    "flip": [{"what": "flip", "percent": 30, "method": "GET", "path": "/a/", "whole": True}],
    "stall": [{"what": "stall", "value": 3, "every": 300}],
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", FAULTS)
def test_contract_with_faults(environment, gateway, contract_bucket, name):
    """Temporary failures are retried until a request succeeds; conditions hold nevertheless."""
    with faultproxy.Proxy(gateway["endpoint"], FAULTS[name]) as proxy:
        run_contract(dict(environment, AWS_ENDPOINT_URL=proxy.endpoint), contract_bucket, "stack")
        assert any(r.fault for r in proxy.requests)


def export(env, bucket, entry, path):
    hsimage(env, "export", "--force", f"{bucket}/{entry.path}", str(path))
    return path.read_bytes()


def test_domains(environment, sample, sample_bucket, tmp_path):
    """The files of a bucket and of a directory are the same, byte for byte."""
    for entry in sample.entries()[::8]:
        want = export(environment, sample.bucket.root, entry, tmp_path / "d.h5")
        assert export(environment, f"s3://{sample_bucket}", entry, tmp_path / "s.h5") == want


@pytest.mark.parametrize("faults", [
    [dict(f, percent=3) for name in ("busy", "error200", "drop", "reset", "cut")
     for f in FAULTS[name]],
    [{"what": "drop", "path": "/db/", "first": 40}],
], ids=["mixed", "away"])
def test_domain_with_faults(environment, gateway, sample, sample_bucket, tmp_path, faults):
    entry = max(sample.entries(), key=lambda e: len(
        sample.bucket.domain(e.path).objects))
    want = export(environment, sample.bucket.root, entry, tmp_path / "d.h5")
    with faultproxy.Proxy(gateway["endpoint"], faults) as proxy:
        env = dict(environment, AWS_ENDPOINT_URL=proxy.endpoint)
        assert export(env, f"s3://{sample_bucket}", entry, tmp_path / "s.h5") == want
        assert any(r.fault for r in proxy.requests)


def test_connections_are_kept(environment, gateway, sample_bucket):
    with faultproxy.Proxy(gateway["endpoint"]) as proxy:
        env = dict(environment, AWS_ENDPOINT_URL=proxy.endpoint)
        hsimage(env, "-o", "connections=4", "ls", f"s3://{sample_bucket}/home/test_user1")
        assert len(proxy.requests) > 12
        assert proxy.connections <= 4


@pytest.mark.parametrize("name, section", [("credentials", "lab"), ("config", "profile lab")])
def test_profile_and_its_warning(environment, gateway, sample_bucket, tmp_path, name, section):
    """Keys from a shared file that other users can read are used. The user is warned once, also by
    a daemon before it goes into the background."""
    (tmp_path / ".aws").mkdir()
    (tmp_path / "mnt").mkdir()
    path = tmp_path / ".aws" / name
    path.write_text(f"[{section}]\naws_access_key_id = {gateway['access_key']}\n"
                    f"aws_secret_access_key = {gateway['secret_key']}\n")
    list_it = (mounts.HSIMAGE, "-o", "profile=lab", "ls", f"s3://{sample_bucket}")
    mount_it = (mounts.HSMOUNT, "-o", "profile=lab", f"s3://{sample_bucket}", tmp_path / "mnt")
    for mode in (0o644, 0o640, 0o604, 0o600):
        path.chmod(mode)
        for command in (list_it, mount_it) if mode in (0o644, 0o600) else (list_it,):
            try:
                done = mounts.run(*command, env=environment)
            finally:
                if mounts.is_mounted(tmp_path / "mnt"):
                    mounts.unmount(tmp_path / "mnt")
            assert done.returncode == 0, done.stderr
            if mode == 0o600:
                assert done.stderr == ""
            else:
                assert f"{name}: other users can read it (mode {mode:o})" in done.stderr
                assert done.stderr.count("\n") == 1


def test_config_without_keys(environment, sample_bucket, tmp_path):
    """The config file may be readable for everyone."""
    (tmp_path / ".aws").mkdir()
    path = tmp_path / ".aws" / "config"
    path.write_text("[default]\nregion = us-east-1\n")
    path.chmod(0o644)
    done = mounts.run(mounts.HSIMAGE, "ls", f"s3://{sample_bucket}", env=environment)
    assert (done.returncode, done.stderr) == (0, "")


def test_prefix(environment, client, sample):
    client.make_bucket("nested")
    client.upload("nested", sample.bucket.root, "a/b c/", ".domain.json")
    whole = hsimage(environment, "-b", str(sample.bucket.root), "ls")
    assert hsimage(environment, "-b", "s3://nested/a/b c/", "ls") == whole
