# SPDX-License-Identifier: Apache-2.0
"""Zarr stores of other programs: zarrita writes v3, zarr.js and GDAL write v2, and the writer in
support/zarr_write.py writes both. h5py and ncdump read the files of the mount. What they find is
what the program was told to store."""
import base64
import os
import shutil

import h5py
import numpy as np
import pytest

import cdl
import wasm
from mounts import HSIMAGE, Mount, run
from rwmounts import attribute
from zarr_write import Array, Store, codec2, document3, number

JS_TYPES = {"b1": "BoolArray", "i8": "BigInt64Array", "u8": "BigUint64Array", **{
    f"{kind}{size}": f"{name}{8 * size}Array" for kind, name in (
        ("i", "Int"), ("u", "Uint"), ("f", "Float")) for size in (1, 2, 4, 8)
    if size < 8 or kind == "f"}}
STORED = 0.75       # of the rows of chunks, if some are missing
ATTRIBUTES = {"title": "numbers"}


def count(dtype, *shape):
    n = int(np.prod(shape, dtype=int))
    return (np.arange(n) * 7 % 100).astype(dtype).reshape(shape)


def limits(dtype):
    of = np.iinfo(dtype)
    return np.array([of.min, of.max, 0, 1, of.max // 3, of.min // 3], dtype)


def real(dtype):
    return np.array([0.1, -0.0, 1 / 3, np.inf, -np.inf, 1e-30], dtype)


# {store: {array: (data, how)}}. `missing`: the last rows of chunks are not stored.
STORES = {
    "sizes": {
        "scalar": (np.float64(0.1), {}),
        "one": (count("<i2", 1), {}),
        "empty": (count("<f4", 0), {"chunks": (4,)}),
        "no_columns": (count("<i4", 3, 0), {"chunks": (2, 2)}),
        "edges": (count("<f4", 7, 5), {"chunks": (3, 2), "names": ["y", "x"]}),
        "five_axes": (count("|u1", 3, 2, 4, 1, 5), {"chunks": (2, 2, 3, 1, 2)}),
        "many": (count("<i4", 3000), {"chunks": (100,), "names": ["t"]}),
    },
    "fills": {
        **{f"int_{t[1:]}": (limits(t), {"chunks": (2,), "fill": fill, "missing": True,
                                        "names": ["n"]})
           for t, fill in (("|i1", -128), ("<i2", 99), ("<i4", -2147483648), ("|u1", 255),
                           ("<u2", 65535), ("<u4", 4294967295))},
        **{f"real_{t[1:]}_{name}": (real(t), {"chunks": (2,), "fill": fill, "missing": True,
                                                "names": ["n"]})
           for t in ("<f4", "<f8") for name, fill in (
               ("nan", np.nan), ("inf", np.inf), ("minus_inf", -np.inf), ("number", 0.1))},
        "long": (limits("<i8"), {"chunks": (2,), "fill": None, "missing": True}),
        "unsigned_long": (limits("<u8"), {"chunks": (2,), "fill": None, "missing": True}),
        "none": (real("<f8"), {"chunks": (2,), "fill": None, "missing": True}),
        "truth": (count("|b1", 6), {"chunks": (2,), "fill": True, "missing": True}),
    },
    "separators": {
        f"{name}_{rank}": (count("<i4", *(5,) * rank), {"chunks": (2,) * rank, "fill": -5,
                                                        "separator": separator, "missing": True})
        for name, separator in (("dot", "."), ("slash", "/")) for rank in (1, 2, 3)},
    "large_chunks": {
        "longer": (count("<i4", 3), {"chunks": (8,), "names": ["a"]}),
        "wider": (count("<f8", 5, 3), {"chunks": (2, 16), "names": ["b", "a"]}),
        "both": (count("<i2", 2, 3), {"chunks": (5, 5), "codecs": ["zstd"]}),
        "compressed": (count("<u2", 5, 3), {"chunks": (64, 2), "codecs": ["blosc-lz4-1"]}),
        "missing": (count("<i4", 9, 2), {"chunks": (4, 7), "fill": 12, "missing": True}),
    },
    "codecs": {
        "big": (count(">f8", 6, 5), {"chunks": (4, 4)}),
        "transposed": (count("<i4", 6, 5), {"chunks": (4, 3), "order": "F"}),
        "transposed_big": (count(">i2", 4, 3, 5), {"chunks": (2, 2, 2), "order": "F",
                                                   "codecs": ["lz4"]}),
        **{name.replace("-", "_"): (count("<f4", 40, 30), {"chunks": (16, 30), "codecs": [name]})
           for name in ("zstd", "lz4", "zlib", "gzip", "blosc-lz4-1", "blosc-lz4hc-0",
                        "blosc-zstd-2", "blosc-zlib-1", "blosc-blosclz-1")},
    },
}
# What a program cannot store: zarrita does not encode with these codecs. zarr.js has neither
# integers of 64 bits, scalars, empty arrays and booleans, nor these two codecs and order F.
CANNOT = {"own": (), "zarrita": ("zlib", "gzip"),
          "zarrjs": ("long", "unsigned_long", "scalar", "empty", "no_columns", "truth", "zstd",
                     "both", "lz4", "transposed", "transposed_big")}
WRITERS = [("own", 2), ("own", 3), ("zarrita", 3), ("zarrjs", 2)]


def arrays_of(writer, version, store):
    """{name: Array}, each with the elements that it has after it was stored."""
    out = {}
    for name, (data, how) in STORES[store].items():
        how = dict(how)
        missing = how.pop("missing", False)
        how.setdefault("separator", "/" if writer == "zarrita" else ".")
        if name not in CANNOT[writer]:
            a = out[name] = Array(version, data, attributes={"units": "m"}, **how)
            last = int(len(data) * STORED) // a.chunks[0] if missing else None
            a.absent = {i for i in a.grid() if missing and i[0] >= last}
            a.rows = last and last * a.chunks[0]
    return out


def leave_out_chunks(a):
    for index in a.absent:
        a.data[a.region(index)] = a.shown_fill


def js_array(writer, name, a):
    stored = a.data if a.rows is None else a.data[:a.rows]
    little = stored.astype(stored.dtype.newbyteorder("<"))
    options = {"shape": a.data.shape, "fillValue": None if a.fill is None else number(a.fill)}
    attributes = dict(a.attributes)
    if writer == "zarrita":
        document = document3(a)
        plain = len(document["codecs"]) == 1 and a.data.dtype.str[0] != ">"
        options.update(chunkShape=a.chunks, dtype=document["data_type"],
                       codecs=[] if plain else document["codecs"], dimensionNames=a.names,
                       chunkSeparator=a.separator)
    else:
        options.update(chunks=a.chunks, dtype=a.data.dtype.str, order=a.order,
                       compressor=codec2(a.codecs[0], a.size) if a.codecs else None)
        if a.separator == "/":
            options["dimensionSeparator"] = "/"
        if a.names:
            attributes["_ARRAY_DIMENSIONS"] = a.names
    return {"name": name, "attributes": attributes, "options": options, "rows": a.rows,
            "type": JS_TYPES[a.data.dtype.str[1:]],
            "bytes": base64.b64encode(little.tobytes()).decode()}


class Written:
    """The bucket with all stores, and {path of a store: {array: Array}}."""

    def __init__(self, bucket):
        self.bucket, self.stores, tasks = bucket, {}, []
        for writer, version in WRITERS:
            for name in STORES:
                path = f"{writer}{version}_{name}.zarr"
                arrays = self.stores[path] = arrays_of(writer, version, name)
                if writer == "own":
                    self.write(path, version, arrays)
                else:
                    tasks.append({"library": writer, "path": os.fspath(bucket / path),
                                  "attributes": ATTRIBUTES,
                                  "arrays": [js_array(writer, n, a) for n, a in arrays.items()]})
                for a in arrays.values():
                    leave_out_chunks(a)
        if wasm.is_available():
            wasm.node("write.mjs", tasks, directory="zarrjs")

    def write(self, path, version, arrays):
        with Store(self.bucket / path, version, attributes=ATTRIBUTES) as store:
            for name, a in arrays.items():
                store.array(name, a.data, chunks=a.chunks, fill=a.fill, order=a.order,
                            codecs=a.codecs, separator=a.separator, absent=a.absent,
                            attributes=a.attributes, names=a.names)


@pytest.fixture(scope="module", name="written")
def fixture_written(tmp_path_factory):
    return Written(tmp_path_factory.mktemp("bucket"))


@pytest.fixture(scope="module", name="running")
def fixture_running(written, tmp_path_factory):
    with Mount(written.bucket, tmp_path_factory.mktemp("mount")) as m:
        yield m


def shown_type(a):
    """Booleans are shown as bytes."""
    return a.data.dtype if a.data.dtype.kind != "b" else np.dtype("u1")


def same(one, two):
    """Bit by bit, but for NaN and for the byte order."""
    one, two = (np.asarray(x, np.asarray(x).dtype.newbyteorder("<")) for x in (one, two))
    nan = [np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool) for x in (one, two)]
    return one.shape == two.shape and one.dtype == two.dtype and \
        np.array_equal(nan[0], nan[1]) and one[~nan[0]].tobytes() == two[~nan[1]].tobytes()


def check_with_h5py(path, arrays):
    with h5py.File(path, "r") as f:
        assert set(arrays) <= set(f), path
        for name, a in arrays.items():
            d, t = f[name], shown_type(a)
            assert d.dtype == t and same(d[()], a.data.astype(t)), (name, d[()])
            assert a.fill is None or same(d.fillvalue, a.fill.astype(t)), (name, d.fillvalue)
            for key, value in a.attributes.items():
                assert d.attrs[key] == value.encode(), (name, key)
            # Without names of dimensions, the fill value of v2 is no mask.
            is_masked = a.version == 2 and a.fill is not None and a.names is not None
            assert ("_FillValue" in d.attrs) == is_masked, name
            assert not is_masked or same(d.attrs["_FillValue"].reshape(()), a.fill), name


def check_title(path):
    with h5py.File(path, "r") as f:
        assert f.attrs["title"] == b"numbers"


def check_with_ncdump(path, arrays):
    found = cdl.variables(path)
    for name, a in arrays.items():
        v = found[name]
        assert not a.names or v.names == a.names, name
        assert same(v.array(shown_type(a)), a.data.astype(shown_type(a))), (name, v.values)


@pytest.mark.parametrize("path", [
    f"{writer}{version}_{name}.zarr" for writer, version in WRITERS for name in STORES])
def test_stores_of_other_programs(written, running, path):
    if not path.startswith("own") and not wasm.is_available():
        pytest.skip("npm is not installed")
    shown = running.file(f"{path}.nc")
    check_with_h5py(shown, written.stores[path])
    check_with_ncdump(shown, written.stores[path])
    check_title(shown)
    info = run(HSIMAGE, "info", written.bucket / path, check=True).stdout
    assert "problem: " not in info
    assert f"format: zarr{path.partition('_')[0][-1]}\n" in info


# ---- GDAL ----

GDAL_TYPES = ("|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8")
GDAL_FILL = 7


def gdal_arrays(names):
    """Most chunks of 3 x 2 elements in the last rows only have the fill value. GDAL leaves them
    out."""
    out = {}
    for t in GDAL_TYPES:
        data = count(t, 9, 5)
        data[3:] = GDAL_FILL
        data[8, 4] = 3
        out[f"a_{t[1:]}"] = Array(2, data, fill=GDAL_FILL, attributes={"units": "m"}, names=names)
    return out


def write_netcdf(path, arrays):
    netcdf4 = pytest.importorskip("netCDF4")
    with netcdf4.Dataset(path, "w") as f:
        f.title = "numbers"
        for axis, n in ("y", 9), ("x", 5), ("t", 20):
            f.createDimension(axis, n)
        for name, a in arrays.items():
            fill = {} if a.fill is None else {"fill_value": a.fill}
            v = f.createVariable(name, a.data.dtype, a.names or ("y", "x"), **fill)
            v.set_auto_mask(False)
            v.units = "m"
            v[...] = a.data


def run_gdal(program, source, store, *options):
    if not shutil.which(program):
        pytest.skip("GDAL is not installed")
    store.parent.mkdir()
    run(program, "-q", "-of", "Zarr", *options, source, store, check=True)


def check_gdal(mount, tmp_path, arrays):
    m = mount(tmp_path / "bucket")
    check_with_h5py(m.file("x.zarr.nc"), arrays)
    check_with_ncdump(m.file("x.zarr.nc"), arrays)
    assert attribute(m.file("x.zarr.nc"), "user.hsds.problems") == "0"
    return m.file("x.zarr.nc")


def option(name, value):
    return ("-co", f"ARRAY:{name}={value}")


@pytest.mark.parametrize("codec", ["NONE", "GZIP"])
def test_gdal_with_coordinates(tmp_path, mount, codec):
    """GDAL leaves scalars out."""
    arrays = gdal_arrays(["y", "x"])
    for name in "y", "x", "t":
        n = {"y": 9, "x": 5, "t": 20}[name]
        arrays[name] = Array(2, np.arange(n) / 4, fill=None, attributes={"units": "m"},
                             names=[name])
    write_netcdf(tmp_path / "s.nc", arrays)
    run_gdal("gdalmdimtranslate", tmp_path / "s.nc", tmp_path / "bucket/x.zarr",
             *option("COMPRESS", codec))
    check_title(check_gdal(mount, tmp_path, arrays))


@pytest.mark.parametrize("options", [("BLOSC", "BIT"), ("ZSTD", None), ("LZ4", None)],
                         ids=lambda o: o[0])
def test_gdal_with_missing_chunks(tmp_path, mount, options):
    """It has no names for dimensions without coordinates."""
    codec, shuffle = options
    arrays = gdal_arrays(None)
    write_netcdf(tmp_path / "s.nc", arrays)
    run_gdal("gdalmdimtranslate", tmp_path / "s.nc", tmp_path / "bucket/x.zarr",
             *option("COMPRESS", codec), *option("BLOCKSIZE", "3,2"),
             *(option("BLOSC_SHUFFLE", shuffle) if shuffle else ()))
    assert not (tmp_path / "bucket/x.zarr/a_i4/1.0").exists()
    check_title(check_gdal(mount, tmp_path, arrays))


def test_gdal_raster(tmp_path, mount):
    """Written with the driver's raster interface: one array in order F, keys with "/"."""
    arrays = gdal_arrays(None)
    write_netcdf(tmp_path / "s.nc", arrays)
    run_gdal("gdal_translate", f"NETCDF:{tmp_path}/s.nc:a_f4", tmp_path / "bucket/x.zarr",
             "-co", "COMPRESS=BLOSC", "-co", "CHUNK_MEMORY_LAYOUT=F", "-co", "BLOCKSIZE=3,2",
             "-co", "DIM_SEPARATOR=/", "--config", "GDAL_NETCDF_BOTTOMUP", "NO")
    raster = arrays["a_f4"]
    raster.attributes = {"a_f4#units": "m"}
    check_gdal(mount, tmp_path, {"x": raster})
