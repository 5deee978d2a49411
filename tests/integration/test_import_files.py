# SPDX-License-Identifier: Apache-2.0
"""Any HDF5 file becomes a domain, and the domain is the file again: import, export, compare. The
judges are libhdf5 (h5diff, and object by object through h5py), netCDF-C (ncdump) and, for what is
stored, a validator of what the service requires. Files: every form that h5py can write
(support/h5make), exported images after random changes by a writer (support/h5edit), and, if they
are beside the checkout, files of HDF5's own tests and of other projects."""
import os
import random
import re
import shutil
import sys
import zlib

import h5py
import numpy as np
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


def import_file(bucket, source, *options, check=True):
    return run(HSIMAGE, "-b", bucket, "import", *options, source, DOMAIN, check=check,
               timeout=110)


def export(bucket, target):
    run(HSIMAGE, "-b", bucket, "export", "--force", DOMAIN, target, check=True, timeout=110)
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
    if name in ("types", "attributes"):     # JSON cannot hold all of these values
        assert re.fullmatch(r"hsimage: clients of HSDS cannot read the values of \d+ attributes?, "
                            r"which JSON cannot hold, such as .*\n", done.stderr), done.stderr
    else:
        assert done.stderr == ""
    assert filediff.differences(source, out) == []
    if name not in ("types", "filters", "groups", "shared"):    # h5diff cannot compare all of these
        assert run("h5diff", source, out).returncode == 0


def test_what_a_domain_cannot_hold(tmp_path, bucket):
    source = tmp_path / "source.h5"
    h5make.make(source, "unsupported", "v110")
    refused = import_file(bucket, source, check=False)
    expected = {"/regions", "/external", "/virtual"}
    assert refused.returncode == 1
    for path in expected:
        assert f"hsimage: {path}: " in refused.stderr
    assert sorted(os.listdir(bucket / "home")) == [".domain.json"], "nothing is left"
    done, out = round_trip(bucket, source, tmp_path, "--skip-unsupported")
    assert imports.left_out(done) == expected
    assert filediff.differences(source, out, expected) == []


def test_attribute_names_with_a_slash(tmp_path, bucket):
    """The service cannot address them by their names; they are kept nevertheless."""
    source = tmp_path / "source.h5"
    with h5py.File(source, "w") as f:
        f.attrs["km/h"] = 36
        f.create_dataset("d", data=range(3)).attrs["m/s"] = 10
        f["d"].attrs["/"] = "/"
    done, out = round_trip(bucket, source, tmp_path)
    assert done.stderr == (f"{imports.UNADDRESSABLE}3 attributes whose name contains \"/\", "
                           "such as km/h of /; a mount shows them\n")
    assert filediff.differences(source, out) == []
    shown = run(HSIMAGE, "-b", bucket, "info", DOMAIN, check=True).stdout
    assert "clients of HSDS cannot ask by name for: /d, attribute m/s\n" in shown
    checked = run(HSIMAGE, "-b", bucket, "check", "--all", DOMAIN, check=True).stdout
    assert 'attribute "m/s": clients of HSDS cannot ask for it by its name' in checked


@pytest.mark.parametrize("n", [4, 8])
def test_attributes_without_an_order(tmp_path, bucket, n):
    """ncdump prints them in the order of the header messages."""
    names = ["units", "long_name", "valid_min", "a", "n0", "n3", "n2", "n1"][:n]
    for name in "source", "out":
        (tmp_path / name).mkdir()
    source, out = tmp_path / "source/x.h5", tmp_path / "out/x.h5"
    with h5py.File(source, "w") as f:
        d = f.create_dataset("x", data=[1, 2])
        for name in names:
            d.attrs[name] = name
    import_file(bucket, source)
    run(HSIMAGE, "-b", bucket, "export", DOMAIN, out, check=True)
    headers = [run("ncdump", "-h", file, check=True).stdout for file in (source, out)]
    assert headers[0] == headers[1]
    assert headers[0].index("x:units") < headers[0].index("x:long_name")


# ---- chunks that another program has compressed ----

def stream(data, shuffled):
    plain = data.tobytes()
    if shuffled:
        plain = data.view("u1").reshape(-1, data.itemsize).T.tobytes()
    return zlib.compress(plain)


# For each chunk, its offset and how many of its elements are stored.
SHORT = {"edge": ((15,), (10,), {(0,): 10, (10,): 5}),
         "only an edge": ((3,), (10,), {(0,): 3}),
         "two dimensions": ((5, 7), (4, 4), {(0, 0): 16, (0, 4): 15, (4, 0): 4, (4, 4): 3}),
         "too long": ((15,), (10,), {(0,): 12, (10,): 11})}


def write_short(path, shape, chunks, stored, shuffled=False):
    with h5py.File(path, "w") as f:
        d = f.create_dataset("x", shape, dtype="<i4", chunks=chunks, compression="gzip",
                             shuffle=shuffled, maxshape=(None,) * len(shape))
        for at, n in stored.items():
            d.id.write_direct_chunk(at, stream(np.arange(n, dtype="<i4") + sum(at), shuffled))
    return path


@pytest.mark.parametrize("shuffled", [False, True], ids=["", "shuffled"])
@pytest.mark.parametrize("name", SHORT)
def test_chunks_of_another_length(tmp_path, bucket, name, shuffled):
    """libhdf5 reads a chunk that has all elements inside of the extent, and the first elements of
    one that is too long. The bucket gets whole chunks."""
    source = write_short(tmp_path / "source.h5", *SHORT[name], shuffled)
    done, out = round_trip(bucket, source, tmp_path)
    assert done.stderr == ""
    assert filediff.differences(source, out) == []
    run(HSIMAGE, "-b", bucket, "check", "--all", DOMAIN, check=True)
    run(HSIMAGE, "check", "--all", source, check=True)
    found = [p for p in (bucket / "db").rglob("*") if p.name[0].isdigit() and p.is_file()]
    assert len(found) == len(SHORT[name][2])
    size = 4 * int(np.prod(SHORT[name][1]))
    assert {len(zlib.decompress(p.read_bytes())) for p in found} == {size}


@pytest.mark.parametrize("name", SHORT)
def test_links_to_chunks_of_another_length(tmp_path, bucket, name):
    shape, chunks, _ = SHORT[name]
    whole = int(np.prod(chunks))
    large = (600,) + shape[1:]       # smaller datasets are copied
    stored = {(at,) + (0,) * (len(shape) - 1): whole for at in range(0, 600, chunks[0])}
    if len(shape) == 1:
        large = (605 if chunks == (10,) else 600,)
        stored[(600,)] = 12 if name == "too long" else 5
    else:
        large = (599, 4)
        stored[(596, 0)] = 12
    (bucket / "raw").mkdir()
    source = write_short(bucket / "raw/x.h5", large, chunks, stored)
    run(HSIMAGE, "-b", bucket, "link", "raw/x.h5", DOMAIN, check=True)
    out = tmp_path / "out.h5"
    run(HSIMAGE, "-b", bucket, "export", DOMAIN, out, check=True)
    with h5py.File(source) as a, h5py.File(out) as b:
        assert np.array_equal(a["x"][...], b["x"][...])
    run(HSIMAGE, "-b", bucket, "check", "--all", DOMAIN, check=True)


@pytest.mark.parametrize("how", ["an element is missing", "a bit is wrong", "it is cut"])
def test_damaged_streams_are_told(tmp_path, bucket, how):
    """Before the source can be deleted."""
    source = write_short(tmp_path / "source.h5", (15,), (10,),
                         {(0,): 10, (10,): 4 if how == "an element is missing" else 5})
    body = bytearray(stream(np.arange(10, dtype="<i4"), False))
    if how != "an element is missing":
        with h5py.File(source, "r+") as f:
            body[len(body) // 2] ^= how == "a bit is wrong"
            f["x"].id.write_direct_chunk((0,), bytes(body[:-4] if how == "it is cut" else body))
    done = import_file(bucket, source, check=False)
    assert done.returncode == 1 and "dataset /x: chunk (" in done.stderr
    assert sorted(os.listdir(bucket / "home")) == [".domain.json"], "nothing is left"


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
        run(HSIMAGE, "-b", which.bucket.root, "export", "--force", mount_name(entry.path), path,
            check=True)
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
