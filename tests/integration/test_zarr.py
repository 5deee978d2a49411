# SPDX-License-Identifier: Apache-2.0
"""Zarr stores in a mount. The judges are the netCDF-4 files that come with the stores, which the
reader beside them compares with the mounted ones, and programs that read netCDF-4 files."""
import importlib.util
import os
import re
import sys

import h5py
import numpy as np
import pytest

import readers
import wasm
from mounts import HSIMAGE, Mount, run
from zarr_stores import ALL, NUMBERS, REFUSED, Stores, variables

OTHERS = [n for n in ALL if n not in NUMBERS]
# What these stores are is in documents of NCZarr, which are not read: chunks beside the directory
# of their array, chunks that are longer than the document says, sizes of types in bits.
NCZARR_ONLY = ("d18_seed_literal", "nc20200628_nczarr")


@pytest.fixture(scope="module", name="stores")
def fixture_stores(tmp_path_factory):
    return Stores(str(tmp_path_factory.mktemp("stores")))


@pytest.fixture(scope="module", name="mount")
def fixture_mount(stores, tmp_path_factory):
    with Mount(stores.bucket, tmp_path_factory.mktemp("mount")) as m:
        yield m


def test_all_stores_are_listed(mount, stores):
    names = os.listdir(mount.path)
    for name in ALL:
        path = stores.path(name)
        if "/" not in path:
            assert stores.shown(name) in names and path not in names, path


# ---- stores of numbers ----

@pytest.mark.parametrize("name", NUMBERS)
def test_equals_its_truth(mount, stores, name):
    assert stores.differences(mount.file(stores.shown(name)), name) == ""


def lines_of(text):
    """The lines of a CDL text without its name. The order of variables and attributes, and so the
    mark at the end of a line, may differ."""
    text = re.sub(r"\Anetcdf .*", "netcdf {", text)
    return sorted(line.strip().rstrip(",;").rstrip() for line in text.splitlines())


@pytest.mark.parametrize("name", NUMBERS)
def test_ncdump_prints_its_truth(mount, stores, name):
    done = run("ncdump", mount.file(stores.shown(name)), check=True)
    with open(stores.truth(name)[:-3] + ".cdl", encoding="utf-8") as f:
        assert lines_of(done.stdout) == lines_of(f.read())


@pytest.mark.parametrize("program", [("h5dump",), ("h5ls", "-rv"), ("ncks", "-M")], ids=" ".join)
def test_programs_read_all_stores(mount, stores, program):
    for name in NUMBERS:
        run(*program, mount.file(stores.shown(name)), check=True)


XARRAY = """
import sys, xarray
for path in sys.argv[2:]:
    with xarray.open_dataset(path, engine=sys.argv[1], decode_times=False) as f:
        f.load()
"""


@pytest.mark.parametrize("engine, module", [("netcdf4", "netCDF4"), ("h5netcdf", "h5netcdf")])
def test_xarray_reads_all_stores(mount, stores, engine, module):
    if not importlib.util.find_spec("xarray") or not importlib.util.find_spec(module):
        pytest.skip(f"xarray or {module} is not installed")
    paths = [mount.file(stores.shown(name)) for name in NUMBERS]
    run(sys.executable, "-c", XARRAY, engine, *paths, check=True)


def comparable(found):
    """Dimensions have their numbers in another order, and _NCProperties names the program. The
    truth has empty strings without an address, which h5wasm shows as null."""
    for file in found.values():
        for o in file["objects"].values():
            o["attributes"] = {
                name: [""] if value in ([None], ["null"]) else value
                for name, value in o.get("attributes", {}).items()
                if not name.startswith(("_Netcdf4", "_NCProperties"))}
    return found


@pytest.mark.parametrize("reader", [
    "h5wasm", "h5wasm-0.4", *(pytest.param(r, marks=pytest.mark.long)
                              for r in ("h5wasm-0.6", "h5wasm-0.7", "h5wasm-0.8", "jsfive"))])
def test_readers_find_what_they_find_in_the_truth(mount, stores, reader):
    """libhdf5 2.0 and 1.12, versions between them, and a reader without libhdf5."""
    if not wasm.is_available():
        pytest.skip("npm is not installed")
    pairs = [(stores.truth(name), mount.file(stores.shown(name))) for name in NUMBERS]
    tasks = [(path, readers.objects_of(truth)) for truth, shown in pairs for path in (truth, shown)]
    found, expected = (comparable(readers.read(r, tasks)) for r in (reader, "h5py"))
    wrong, compared = {}, 0
    for truth, shown in pairs:
        lines, n, _ = readers.differences(found[truth], found[shown], expected[truth])
        wrong[shown] = lines[:5]
        compared += n
    assert not any(wrong.values()), {path: lines for path, lines in wrong.items() if lines}
    assert compared > 400


def test_every_dataset_is_read(mount, stores):
    """Those that are only dimensions of the netCDF-4 file, too."""
    for name in NUMBERS:
        with h5py.File(mount.file(stores.shown(name)), "r") as f:
            f.visititems(lambda _, o: o[()] if isinstance(o, h5py.Dataset) else None)
            assert variables(f)


# ---- other stores ----

def both_numbers(one, two):
    return all(d.dtype.kind in "iuf" or d.dtype.names == ("r", "i") for d in (one, two))


@pytest.mark.parametrize("name", [n for n in OTHERS if n not in NCZARR_ONLY])
def test_shows_what_it_can(mount, stores, name):
    """Every number that is shown is that of the truth, and `hsimage info` names all variables that
    are left out. The index tells which damaged or odd ones differ from the truth."""
    row, path = stores.rows[name], mount.file(stores.shown(name))
    if row["expect"] == "plain objects":
        assert "refs.json" in os.listdir(mount.file("kerchunk_hdf5"))
        return
    if row["expect"] == "refused":
        with pytest.raises(OSError):
            h5py.File(path, "r")
        return
    known = re.findall(r"(?:\A|\| )/([^:@]+):", row["known_differences"])
    done = run(HSIMAGE, "info", os.path.join(stores.bucket, stores.path(name)), check=True)
    problems = re.findall(r"^problem: (.*)", done.stdout, re.M)
    with h5py.File(path, "r") as f, h5py.File(stores.truth(name), "r") as truth:
        found, expected = variables(f), variables(truth)
        for variable in set(expected) - set(found):
            assert any(p.startswith(f"{variable}/") for p in problems), (variable, problems)
        for variable in set(expected) & set(found) - set(known):
            one, two = found[variable], expected[variable]
            if one.shape == two.shape and both_numbers(one, two):
                assert same_numbers(one[()], two[()]), variable


def same_numbers(one, two):
    return np.array_equal(one, two) if one.dtype.kind in "Vc" else \
        np.array_equal(one, two, equal_nan=True)


def test_stores_of_netcdf_c_before_4_8_open(mount, stores):
    for name in NCZARR_ONLY:
        h5py.File(mount.file(stores.shown(name)), "r").close()


def test_a_draft_of_the_format_is_refused(mount, stores):
    for name in REFUSED:
        with pytest.raises(OSError):
            h5py.File(mount.file(stores.shown(name)), "r")
    assert "Zarr v3 of the 2022 draft is not supported" in mount.log()
