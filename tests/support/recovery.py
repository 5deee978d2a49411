# SPDX-License-Identifier: Apache-2.0
"""Mounts that have one journal, and hsimage recover. A module of tests assigns the fixtures that it
uses to names of its own:

    fixture_mount = recovery.fixture_mount"""
import json

import pytest

import imports
import rwmounts
from mounts import HSIMAGE, run

NAME = "home/a.h5"


@pytest.fixture(name="bucket")
def fixture_bucket(request, tmp_path):
    """A bucket with one domain, imported from the file that write_file() of the module makes."""
    request.module.write_file(tmp_path / "a.h5")
    bucket = imports.make_bucket(tmp_path / "bucket")
    run(HSIMAGE, "-b", bucket, "import", tmp_path / "a.h5", NAME, check=True)
    return bucket


@pytest.fixture(name="mount")
def fixture_mount(tmp_path, bucket):
    """Starts mounts that have one journal, and stops them at the end."""
    started = []

    def start(*options, of=None, env=None):
        m = rwmounts.RwMount(of or bucket, tmp_path / f"mount{len(started)}", "metadata_ttl=0",
                             *options, env=env, journal=tmp_path / "journal")
        started.append(m)
        m.start()
        return m
    yield start
    for m in started:
        m.stop()


def recover(tmp_path, *command, **more):
    return run(HSIMAGE, "recover", "--journal-dir", tmp_path / "journal", *command, **more)


def listed(tmp_path):
    return [json.loads(line) for line in recover(tmp_path, "list", "--json").stdout.splitlines()]
