# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests that need an S3 server: one Ceph RADOS Gateway for all workers of a run, a
client of the tests, buckets with the collections, and the environment of a program that uses them.
The workers share one name space of buckets, so each test file has its own names."""
import contextlib
import fcntl
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


@contextlib.contextmanager
def once(directory, name):
    """Yields a file for the result of a step that the first worker carries out. It is empty if the
    step has to be carried out. Other workers wait."""
    with open(os.path.join(directory, name), "a+", encoding="utf-8") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        f.seek(0)
        yield f


def gateway_directory(config):
    return os.path.join(config.unpacked, "rgw")


def stop_gateway(config):
    directory = gateway_directory(config)
    if os.path.exists(directory):
        subprocess.run([SCRIPT, directory, "stop"], check=True, timeout=60)


@pytest.fixture(scope="session")
def gateway(pytestconfig):
    """Output of tests/support/rgw: endpoint, tls_endpoint, ca_bundle, access_key, secret_key."""
    with once(pytestconfig.unpacked, "rgw.settings") as settings:
        text = settings.read()
        if not text:
            text = subprocess.run(
                [SCRIPT, gateway_directory(pytestconfig), "start", str(pytestconfig.main_pid)],
                check=True, timeout=120, stdout=subprocess.PIPE, text=True).stdout
            settings.write(text)
    return dict(line.split("=", 1) for line in text.splitlines())


@pytest.fixture(scope="session")
def client(gateway):
    return s3client.Client(gateway["endpoint"], gateway["access_key"], gateway["secret_key"])


@pytest.fixture(scope="session")
def uploaded(client, pytestconfig):
    """The bucket of a collection: uploaded(collection) fills it at the first call."""
    def upload(which):
        with once(pytestconfig.unpacked, f"{which.name}.uploaded") as done:
            if not done.read():
                client.make_bucket(which.name)
                client.upload(which.name, which.bucket.root)
                done.write("done")
        return which.name

    return upload


@pytest.fixture(scope="session")
def sample_bucket(uploaded, sample):
    return uploaded(sample)


@pytest.fixture(scope="session")
def contract_bucket(client, worker_id):
    name = f"contract-{worker_id}"
    client.make_bucket(name)
    return name


def environment_of(gateway, home):
    """The environment of a program that uses the gateway, without the machine's own AWS
    settings."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
    env.update(HOME=str(home), AWS_ACCESS_KEY_ID=gateway["access_key"],
               AWS_SECRET_ACCESS_KEY=gateway["secret_key"], AWS_EC2_METADATA_DISABLED="true",
               AWS_ENDPOINT_URL=gateway["endpoint"])
    return env


@pytest.fixture
def environment(gateway, tmp_path):
    return environment_of(gateway, tmp_path)


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
