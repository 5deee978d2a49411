# SPDX-License-Identifier: Apache-2.0
"""netCDF-4 files that were loaded into a bucket: programs that read netCDF print the same for the
file in the mount as for the source file."""
import os
import sys

import h5py
import netCDF4
import numpy as np
import pytest

import hsload
from mkbucket import Maker, vstring
from mounts import HSIMAGE, run
from oracle import mount_name


# ---- sources ----

def coordinates(path, form):
    with netCDF4.Dataset(path, "w", format=form) as f:
        for name, n in (("time", None), ("lat", 3), ("lon", 4)):
            f.createDimension(name, n)
            v = f.createVariable(name, "f8", (name,))
            v.units = {"time": "days since 2000-01-01", "lat": "degrees_north",
                       "lon": "degrees_east"}[name]
            v.standard_name = {"time": "time", "lat": "latitude", "lon": "longitude"}[name]
            v[:] = np.arange(n or 2)
        t = f.createVariable("t", "f4", ("time", "lat", "lon"), fill_value=-1)
        t.units, t.long_name = "K", "air temperature"
        t[:] = np.arange(24).reshape(2, 3, 4)
        f.title = "with coordinates"


def without_coordinates(path, form):
    """Dimensions without coordinate variables."""
    with netCDF4.Dataset(path, "w", format=form) as f:
        f.createDimension("x", 5)
        f.createDimension("rec", None)
        f.createVariable("a", "i4", ("rec", "x"))[:] = np.arange(10).reshape(2, 5)
        f.createVariable("b", "i2", ("x",))[:] = np.arange(5)
        f.createVariable("scalar", "f8", ())[...] = 2.5


def groups(path, form):
    with netCDF4.Dataset(path, "w", format=form) as f:
        f.createDimension("x", 3)
        f.createVariable("x", "i4", ("x",))[:] = [1, 2, 3]
        g = f.createGroup("g")
        g.createDimension("y", 2)
        g.createVariable("y", "f4", ("y",))[:] = [0.5, 1.5]
        v = g.createVariable("v", "i8", ("x", "y"))
        v[:] = np.arange(6).reshape(3, 2)
        v.coordinates = "x y"
        f.createVariable("names", str, ("x",))[:] = np.array(["one", "", "three"], object)


SOURCES = {f"{make.__name__}_{form}": (make, form) for make, form in (
    (coordinates, "NETCDF4"), (coordinates, "NETCDF4_CLASSIC"), (without_coordinates, "NETCDF4"),
    (without_coordinates, "NETCDF4_CLASSIC"), (groups, "NETCDF4"))}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """A directory with the source files, and the bucket into which they are loaded."""
    root = tmp_path_factory.mktemp("netcdf")
    (root / "sources").mkdir()
    with Maker(root / "bucket") as bucket:
        for name, (make, form) in SOURCES.items():
            make(root / "sources" / f"{name}.nc", form)
            hsload.load(root / "sources" / f"{name}.nc", bucket.domain(f"{name}.nc"))
    return root


@pytest.fixture
def pair(request, loaded, mount):
    """The source and the same file in a mount."""
    name = f"{request.param}.nc"
    return loaded / "sources" / name, mount(loaded / "bucket").file(name)


every_source = pytest.mark.parametrize("pair", SOURCES, indirect=True)


# ---- readers ----

def output(path, *command):
    """Exit status and output lines of a tool. The lines are sorted, because hsload does not keep
    the order of variables and attributes."""
    out = run(*command, path)
    text = out.stdout.replace(os.fspath(path), "FILE").replace(";", "").replace(",", "")
    return out.returncode, sorted(line.strip() for line in text.splitlines())


TOOLS = {"ncdump": ("ncdump", "-n", "x"), "ncks": ("ncks", "--cdl"), "cdo": ("cdo", "-s", "sinfon"),
         "cdo-values": ("cdo", "-s", "infon")}


@pytest.mark.sampled(by="tool")
@every_source
@pytest.mark.parametrize("tool", TOOLS)
def test_tools(pair, tool):
    source, shown = pair
    theirs = output(source, *TOOLS[tool])
    assert output(shown, *TOOLS[tool]) == theirs
    assert theirs[0] == 0 or tool.startswith("cdo") and "groups" in os.fspath(source)


IDENTICAL = """
import sys, xarray
source, shown, group = sys.argv[1:]
with xarray.open_dataset(source, engine="netcdf4", group=group or None) as theirs, \\
        xarray.open_dataset(shown, engine="netcdf4", group=group or None) as ours:
    assert theirs.variables
    xarray.testing.assert_identical(ours.load(), theirs.load())
"""


@pytest.mark.sampled(keep=2)
@every_source
def test_xarray(pair):
    source, shown = pair
    for group in ["", "g"] if "groups" in os.fspath(source) else [""]:
        out = run(sys.executable, "-c", IDENTICAL, source, shown, group)  # it may crash
        assert out.returncode == 0, out.stderr


# ---- domains that hsload of the service made ----

@pytest.fixture
def archived(pytestconfig, mounted):
    """(source, shown) for the domains that hsload made from files with dimension scales."""
    found = []
    for which in pytestconfig.collections:
        for entry in which.entries():
            if "nc4" in os.path.basename(entry.path) or "dim_scale" in entry.path:
                found.append((entry.source, mounted(which).file(mount_name(entry.path))))
    return found


@pytest.mark.parametrize("tool", TOOLS)
def test_tools_on_domains_of_hsload(archived, tool):
    for source, shown in archived:
        with h5py.File(source, "r") as f:
            named_types = any(isinstance(o, h5py.Datatype) for o in f.values())
        theirs, ours = output(source, *TOOLS[tool]), output(shown, *TOOLS[tool])
        assert ours[0] == theirs[0], shown
        # libnetcdf skips variables that come before their types, and hsload orders by name.
        if not named_types:
            assert ours == theirs, shown
    assert len(archived) >= 3


def test_scales_of_a_client(sample, mounted):
    out = run("ncdump", mounted(sample).file("home/test_user1/native/dims.h5"), check=True).stdout
    assert "x = 4 ;" in out and "double x(x) ;" in out and "x = 0, 1, 2, 3 ;" in out


# ---- padding of dimension scales ----

def padded(length):
    return {"class": "H5T_STRING", "charSet": "H5T_CSET_ASCII", "strPad": "H5T_STR_NULLPAD",
            "length": length}


def test_only_attributes_of_scales_are_null_terminated(tmp_path):
    int8 = {"class": "H5T_INTEGER", "base": "H5T_STD_I8LE"}
    with Maker(tmp_path / "bucket") as bucket:
        d = bucket.domain("x.h5")
        scale = d.dataset(d.root, "scale", int8, [2])
        table = d.dataset(d.root, "table", int8, [2])
        group = d.group(d.root, "group")
        for made, cls in ((scale, "DIMENSION_SCALE"), (table, "TABLE"), (group, "DIMENSION_SCALE")):
            made.attribute("CLASS", padded(len(cls)), [], cls)
            made.attribute("NAME", padded(4), [], "some")
            made.attribute("other", padded(4), [], "text")
        text = d.dataset(d.root, "text", int8, [2])
        text.attribute("CLASS", vstring(), [], "DIMENSION_SCALE")
        text.attribute("NAME", padded(4), [], "some")
    run(HSIMAGE, "export", tmp_path / "bucket/x.h5", tmp_path / "x.h5", check=True)
    with h5py.File(tmp_path / "x.h5", "r") as f:
        def form(path, name):
            t = f[path].attrs.get_id(name).get_type()
            return t.get_size(), t.get_strpad()
        assert form("scale", "CLASS") == (16, h5py.h5t.STR_NULLTERM)
        assert form("scale", "NAME") == (5, h5py.h5t.STR_NULLTERM)
        assert h5py.h5ds.is_scale(f["scale"].id) and f["scale"].attrs["NAME"] == b"some"
        for path, name, size in (("scale", "other", 4), ("table", "CLASS", 5), ("table", "NAME", 4),
                                 ("group", "CLASS", 15), ("group", "NAME", 4), ("text", "NAME", 4)):
            assert form(path, name) == (size, h5py.h5t.STR_NULLPAD), (path, name)
