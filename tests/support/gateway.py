# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests that need an S3 server: one Ceph RADOS Gateway for the whole run, a client
of the tests, buckets with the collections, and the environment of a program that uses them."""
import os
import shutil
import subprocess

import pytest

import mounts
import s3client

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rgw")
CONTRACT = os.path.join(mounts.BUILD, "tests", "support", "s3_contract")

needs_gateway = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(not shutil.which("radosgw"), reason="radosgw is not installed"),
]


@pytest.fixture(scope="session")
def gateway(tmp_path_factory):
    """Output of tests/support/rgw: endpoint, tls_endpoint, ca_bundle, access_key, secret_key."""
    directory = tmp_path_factory.mktemp("rgw")
    try:
        started = subprocess.run([SCRIPT, directory, "start"], check=True, timeout=120,
                                 stdout=subprocess.PIPE, text=True)
        yield dict(line.split("=", 1) for line in started.stdout.splitlines())
    finally:
        subprocess.run([SCRIPT, directory, "stop"], check=True, timeout=60)


@pytest.fixture(scope="session")
def client(gateway):
    return s3client.Client(gateway["endpoint"], gateway["access_key"], gateway["secret_key"])


@pytest.fixture(scope="session")
def uploaded(client):
    """The bucket of a collection: uploaded(collection) fills it at the first call."""
    buckets = {}

    def upload(which):
        if which.name not in buckets:
            client.make_bucket(which.name)
            client.upload(which.name, which.bucket.root)
            buckets[which.name] = which.name
        return buckets[which.name]

    return upload


@pytest.fixture(scope="session")
def sample_bucket(uploaded, sample):
    return uploaded(sample)


@pytest.fixture(scope="session")
def contract_bucket(client):
    client.make_bucket("contract")
    return "contract"


@pytest.fixture
def environment(gateway, tmp_path):
    """The environment of a program that uses the gateway, without the machine's own AWS
    settings."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
    env.update(HOME=str(tmp_path), AWS_ACCESS_KEY_ID=gateway["access_key"],
               AWS_SECRET_ACCESS_KEY=gateway["secret_key"], AWS_EC2_METADATA_DISABLED="true",
               AWS_ENDPOINT_URL=gateway["endpoint"])
    return env


def hsimage(env, *arguments, code=0):
    """Standard output of hsimage; standard error if it is expected to fail."""
    done = subprocess.run([mounts.HSIMAGE, *arguments], env=env, capture_output=True, timeout=120)
    assert done.returncode == code, done.stderr.decode()
    return done.stdout if code == 0 else done.stderr.decode()


def run_contract(env, bucket, group):
    """Runs tests/support/s3_contract.c, which must pass."""
    done = subprocess.run([CONTRACT], env=dict(env, S3_TEST_BUCKET=bucket, S3_TEST_GROUP=group),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240)
    assert done.returncode == 0, "\n".join(
        line for line in done.stdout.splitlines() if "RUN" not in line and " OK " not in line)
