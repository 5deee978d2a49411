# SPDX-License-Identifier: Apache-2.0
"""Any HDF5 file becomes a domain, and the domain is the file again: import, export, compare. The
judges are libhdf5 (h5diff, and object by object through h5py), netCDF-C (ncdump) and, for what is
stored, a validator of what the service requires. Files: every form that h5py can write
(support/h5make), exported images after random changes by a writer (support/h5edit), and, if they
are beside the checkout, files of HDF5's own tests and of other projects."""
import csv
import os
import random
import shutil
import subprocess

import h5py
import pytest

import filediff
import h5edit
import h5make
import hsds_validator
import mkbucket
from mounts import BUILD, HSIMAGE, TREE, run
from oracle import mount_name
from sampling import sampled

FOREIGN = os.path.join(os.path.dirname(TREE), "shared", "data", "foreign-hdf5")
DOMAIN = "home/file.h5"


@pytest.fixture
def bucket(tmp_path):
    root = tmp_path / "bucket"
    with mkbucket.Maker(root) as maker:
        maker.folder("home")
    return root


def import_file(bucket, source, *options, check=True):
    return run(HSIMAGE, "-b", bucket, "import", *options, source, DOMAIN, check=check,
               timeout=110)


def export(bucket, target):
    run(HSIMAGE, "-b", bucket, "export", DOMAIN, target, check=True, timeout=110)
    return target


def left_out(done):
    """The paths that `--skip-unsupported` lists: lines "left out: PATH: reason"."""
    found = set()
    for line in done.stderr.splitlines():
        if "left out: " in line:
            path = line.split("left out: ", 1)[1].rsplit(": ", 1)[0]
            found.add(path)
    return found


def round_trip(bucket, source, tmp_path, *options):
    done = import_file(bucket, source, *options)
    assert hsds_validator.check_domain(os.fspath(bucket), DOMAIN, strict=True) == []
    return done, export(bucket, tmp_path / "out.h5")


# ---- what h5py can write ----

@pytest.mark.sampled
@pytest.mark.parametrize("name,bounds", [n for n in h5make.names() if n[0] != "unsupported"])
def test_every_form(tmp_path, bucket, name, bounds):
    source = tmp_path / "source.h5"
    h5make.make(source, name, bounds)
    done, out = round_trip(bucket, source, tmp_path)
    assert done.stderr == ""
    assert filediff.differences(source, out) == []
    if name not in ("types", "groups", "shared"):    # h5diff cannot compare all of these
        assert run("h5diff", source, out).returncode == 0


def test_what_a_domain_cannot_hold(tmp_path, bucket):
    source = tmp_path / "source.h5"
    h5make.make(source, "unsupported", "v110")
    refused = import_file(bucket, source, check=False)
    expected = {"/regions", "/vlen of compound", "/fine@with/slash", "/external", "/virtual"}
    assert refused.returncode == 1
    for path in expected:
        assert path in refused.stderr
    assert not os.path.exists(bucket / DOMAIN)
    done, out = round_trip(bucket, source, tmp_path, "--skip-unsupported")
    assert left_out(done) == expected
    assert filediff.differences(source, out, expected) == []


def test_netcdf(tmp_path, bucket):
    source = tmp_path / "sample.nc"
    h5make.make_netcdf(source)
    _, out = round_trip(bucket, source, tmp_path)
    assert filediff.differences(source, out) == []
    texts = []
    for path in (source, out):
        copy = tmp_path / "same-name.nc"
        shutil.copy(path, copy)
        texts.append(run("ncdump", copy, check=True).stdout)
    assert texts[0] == texts[1]


# ---- after a writer ----

def edited(pytestconfig, tmp_path, seed):
    """An exported image, after random changes."""
    which = pytestconfig.collections[0]
    entries = [e for e in which.entries()]
    entry = random.Random(seed).choice(entries)
    path = tmp_path / "edited.h5"
    run(HSIMAGE, "-b", which.bucket.root, "export", mount_name(entry.path), path, check=True)
    return entry, path, h5edit.edit(path, seed)


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(300))
def test_after_a_writer(pytestconfig, tmp_path, bucket, seed):
    entry, source, bounds = edited(pytestconfig, tmp_path, seed)
    done, out = round_trip(bucket, source, tmp_path, "--skip-unsupported")
    ignored = left_out(done)
    assert filediff.differences(source, out, ignored) == [], (str(entry), bounds)
