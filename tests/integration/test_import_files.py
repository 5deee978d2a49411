# SPDX-License-Identifier: Apache-2.0
"""Any HDF5 file becomes a domain, and the domain is the file again: import, export, compare. The
judges are libhdf5 (h5diff, and object by object through h5py), netCDF-C (ncdump) and, for what is
stored, a validator of what the service requires. Files: every form that h5py can write
(support/h5make), exported images after random changes by a writer (support/h5edit), and, if they
are beside the checkout, files of HDF5's own tests and of other projects."""
import os
import random
import shutil
import sys

import h5py
import pytest

import filediff
import h5edit
import h5make
import h5model
import hsds_validator
import imports
from mounts import HSIMAGE, run
from oracle import mount_name

DOMAIN = "home/file.h5"


@pytest.fixture
def bucket(tmp_path):
    return imports.make_bucket(tmp_path / "bucket")


def import_file(bucket, source, *options, check=True):
    return run(HSIMAGE, "-b", bucket, "import", *options, source, DOMAIN, check=check,
               timeout=110)


def export(bucket, target):
    run(HSIMAGE, "-b", bucket, "export", DOMAIN, target, check=True, timeout=110)
    return target


def round_trip(bucket, source, tmp_path, *options):
    done = import_file(bucket, source, *options)
    assert hsds_validator.check_domain(os.fspath(bucket), DOMAIN, strict=True) == []
    return done, export(bucket, tmp_path / "out.h5")


# ---- what h5py can write ----

@pytest.mark.sampled(rarer=2)
@pytest.mark.parametrize("name,bounds", [n for n in h5make.names() if n[0] != "unsupported"])
def test_every_form(tmp_path, bucket, name, bounds):
    source = tmp_path / "source.h5"
    h5make.make(source, name, bounds)
    done, out = round_trip(bucket, source, tmp_path)
    assert done.stderr == ""
    assert filediff.differences(source, out) == []
    if name not in ("types", "filters", "groups", "shared"):    # h5diff cannot compare all of these
        assert run("h5diff", source, out).returncode == 0


def test_what_a_domain_cannot_hold(tmp_path, bucket):
    source = tmp_path / "source.h5"
    h5make.make(source, "unsupported", "v110")
    refused = import_file(bucket, source, check=False)
    expected = {"/regions", "/fine@with/slash", "/external", "/virtual"}
    assert refused.returncode == 1
    for path in ("/regions", "/fine, attribute with/slash", "/external", "/virtual"):
        assert f"hsimage: {path}: " in refused.stderr
    assert sorted(os.listdir(bucket / "home")) == [".domain.json"], "nothing is left"
    done, out = round_trip(bucket, source, tmp_path, "--skip-unsupported")
    assert imports.left_out(done) == expected
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
    """An exported image, after random changes. libhdf5 crashes in some runs, in files of its own,
    too; these are repeated with fewer changes."""
    which = pytestconfig.collections[0]
    entry = random.Random(seed).choice(which.entries())
    path = tmp_path / "edited.h5"
    for operations in (20, 10, 5, 2, 0):
        run(HSIMAGE, "-b", which.bucket.root, "export", mount_name(entry.path), path, check=True)
        done = run(sys.executable, h5edit.__file__, path, str(seed), str(operations))
        if done.returncode == 0:
            return entry, path, h5edit.bounds_of(seed)
        assert done.returncode < 0, done.stderr
    raise AssertionError("libhdf5 crashes without a change")


@pytest.mark.sampled(rarer=2)
@pytest.mark.parametrize("seed", range(300))
def test_after_a_writer(pytestconfig, tmp_path, bucket, seed):
    entry, source, bounds = edited(pytestconfig, tmp_path, seed)
    done, out = round_trip(bucket, source, tmp_path, "--skip-unsupported")
    ignored = imports.left_out(done)
    assert filediff.differences(source, out, ignored) == [], (str(entry), bounds)


# ---- files of HDF5's own tests and of other projects ----

@pytest.mark.skipif(not imports.foreign_names(), reason="the files are not there")
@pytest.mark.sampled(rarer=2)
@pytest.mark.parametrize("name", imports.foreign_names())
def test_foreign_model(foreign, name):
    if name in imports.CRASHES:
        pytest.skip("libhdf5 crashes")
    try:
        found = h5model.differences(foreign / name, "--claims")
    except OSError as e:
        pytest.skip(f"libhdf5 cannot open it: {e}")
    assert found == []


@pytest.mark.skipif(not imports.foreign_names(), reason="the files are not there")
@pytest.mark.sampled(rarer=2)
@pytest.mark.parametrize("name", imports.foreign_names())
def test_foreign_round_trip(foreign, tmp_path, bucket, name):
    source = foreign / name
    done = import_file(bucket, source, "--skip-unsupported", check=False)
    if done.returncode:
        assert imports.REFUSED.get(name, "?") in done.stderr
        return
    assert hsds_validator.check_domain(os.fspath(bucket), DOMAIN, strict=True) == []
    if name in imports.CRASHES:
        pytest.skip("libhdf5 crashes")
    ignored = imports.left_out(done)
    out = export(bucket, tmp_path / "out.h5")
    try:
        h5py.File(source, "r").close()
    except OSError as e:
        pytest.skip(f"libhdf5 cannot open it: {e}")
    assert filediff.differences(source, out, ignored) == []
