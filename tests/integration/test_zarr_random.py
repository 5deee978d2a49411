# SPDX-License-Identifier: Apache-2.0
"""Random Zarr stores: every array in the mount has the elements that were stored. HSMOUNT_SAMPLE=1
runs ten times as many. To see what a seed makes: `describe(random_store(seed, directory))`."""
import contextlib
import errno
import json
import os

import h5py
import numpy as np
import numcodecs
import pytest
import zarr

from gateway import needs_gateway
from mounts import Mount
from test_memory_store import Objects, serving
from zarr_stores import variables
from zarr_write import CODECS, Shards, Store

STORES = 50         # in one mount, with a seed each
BATCHES = 6
TYPES = ["|b1", "|i1", "|u1"] + [
    order + kind for order in "<>" for kind in (
        "i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")]
COMPRESSORS = [name for name in CODECS if name not in ("shuffle", "crc32c")]
ELEMENTS_MAX = 4000
LETTERS = list("abcdefgh xyz.-_") + ["ü", "%"]


def pick(rnd, things):
    return things[rnd.integers(len(things))]


def random_shape(rnd):
    """The lengths of an array and of its chunks."""
    while True:
        rank = rnd.integers(0, 6)
        shape = tuple(int(pick(rnd, (0, 1, 2, 3, 5, 8, 17, 40)) if rnd.random() > 0.04 else 300)
                      for _ in range(rank))
        chunks = tuple(int(rnd.integers(1, max(n, 1) + 3)) for n in shape)
        if np.prod(chunks, dtype=float) <= ELEMENTS_MAX and \
                np.prod([-(-n // c) for n, c in zip(shape, chunks)], dtype=float) <= 100:
            return shape, chunks


def random_data(rnd, dtype, shape):
    n = int(np.prod(shape, dtype=int))
    how = pick(rnd, ("bits", "few", "count"))
    if how == "bits":
        data = np.frombuffer(rnd.bytes(n * dtype.itemsize), dtype)
        if dtype.kind in "bfc":
            data = (data.view("u1") & 1).astype("?")[:n] if dtype.kind == "b" else \
                rnd.normal(size=n).astype(dtype)
    elif how == "few":
        data = rnd.choice([0, 1, 100], n).astype(dtype)
    else:
        data = (np.arange(n) % 120).astype(dtype)
    return data.reshape(shape)


def random_fill(rnd, version, dtype):
    if version == 2 and rnd.random() < 0.2:
        return None
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return pick(rnd, (0, 1, 7, limits.min, limits.max))
    if dtype.kind == "b":
        return pick(rnd, (False, True))
    part = pick(rnd, (0.0, -0.0, 1.5, -2.25, np.nan, np.inf, -np.inf))
    return complex(part, pick(rnd, (0.0, np.nan, 4.0))) if dtype.kind == "c" else part


def random_codecs(rnd):
    codecs = ["shuffle"] if rnd.random() < 0.3 else []
    for _ in range(pick(rnd, (0, 1, 1, 1, 2))):
        codecs.append(pick(rnd, COMPRESSORS))
    if rnd.random() < 0.2:
        codecs.insert(rnd.integers(len(codecs) + 1), "crc32c")
    return codecs


def random_order(rnd, rank):
    return [int(i) for i in rnd.permutation(rank)] if rank and rnd.random() < 0.4 else "C"


def random_shards(rnd, chunk):
    """Shards of such chunks, and the shape of the outermost ones."""
    rank, levels, inner = len(chunk), [], [tuple(chunk)]
    for _ in range(pick(rnd, (1, 1, 1, 2, 3, 4))):
        shape = tuple(int(n * rnd.integers(1, 4)) for n in inner[-1])
        inner.append(shape if np.prod(shape, dtype=float) <= 5 * ELEMENTS_MAX else inner[-1])
    axes = list(range(rank))
    for shape in inner[-2::-1]:
        order = random_order(rnd, rank)
        axes = axes if order == "C" else [axes[i] for i in order]
        around = [pick(rnd, ("crc32c", "gzip", "zstd", "shuffle"))] if rnd.random() < 0.15 else []
        levels.append(Shards(
            [shape[axis] for axis in axes], order, around=around,
            at_start=rnd.random() < 0.3, big=rnd.random() < 0.2, checksum=rnd.random() < 0.7,
            write=pick(rnd, ("lexical", "morton", rnd)), gap=int(pick(rnd, (0, 0, 0, 7, 5000))),
            keep_fill=rnd.random() < 0.5))
    return levels, inner[-1]


def make_holes(rnd, data, chunk, fill):
    """Some chunks get the fill value, which shards need not store."""
    for index in np.ndindex(*[-(-n // c) for n, c in zip(data.shape, chunk)]):
        if rnd.random() < 0.3:
            data[tuple(slice(i * c, (i + 1) * c) for i, c in zip(index, chunk))] = fill


def random_name(rnd, used):
    name = ""
    while not name.strip(". ") or name in used:
        name = "".join(pick(rnd, LETTERS) for _ in range(rnd.integers(1, 9)))
    used.add(name)
    return name


def random_array(rnd, store, path, in_shards=False):
    dtype = np.dtype(pick(rnd, TYPES))
    shape, chunks = random_shape(rnd)
    order = pick(rnd, "CF")
    if store.version == 3 and shape and rnd.random() < 0.3:
        order = [int(i) for i in rnd.permutation(len(shape))]
    data, fill, shards = random_data(rnd, dtype, shape), random_fill(rnd, store.version, dtype), ()
    if store.version == 3 and (in_shards or rnd.random() < 0.5):
        data = np.array(data)
        make_holes(rnd, data, chunks, fill)
        shards, chunks = random_shards(rnd, chunks)
    grid = list(np.ndindex(*[-(-n // c) for n, c in zip(shape, chunks)]))
    stored = pick(rnd, (0, 0.5, 1, 1))
    separator = pick(rnd, "./")
    store.array(
        path, data, chunks=chunks, order=order, shards=shards, fill=fill, codecs=random_codecs(rnd),
        separator=separator, encoding=pick(rnd, ("default", "v2")),
        absent=[index for index in grid if rnd.random() >= stored],
        names=pick(rnd, (None, [pick(rnd, "xyz") for _ in shape])))
    if store.version == 2 and rnd.random() < 0.3 and len(shape) > 1:
        del store.documents[f"{path}/.zarray"]["dimension_separator"]


def random_store(seed, directory):
    rnd = np.random.default_rng(seed)
    with Store(os.path.join(directory, f"{seed}.zarr"), int(pick(rnd, (2, 3))),
               bool(pick(rnd, (False, True)))) as store:
        used = {"g", "h"}
        for _ in range(rnd.integers(1, 4)):
            group = pick(rnd, ("", "g/", "g/h/"))
            random_array(rnd, store, group + random_name(rnd, used))
    return store


def random_shard_store(seed, directory):
    """All arrays are in shards."""
    rnd = np.random.default_rng(seed)
    with Store(os.path.join(directory, f"{seed}.zarr"), 3, bool(rnd.random() < 0.5)) as store:
        for i in range(rnd.integers(1, 4)):
            random_array(rnd, store, f"a{i}", True)
    return store


def describe(store):
    return "\n".join(f"{path}: {a.document()} absent {sorted(a.absent)}"
                     for path, a in store.arrays.items())


def as_shown(data):
    """Half precision is shown as single precision, booleans as bytes."""
    return data.astype(data.dtype.str.replace("f2", "f4").replace("b1", "u1"))


def equal(got, expected):
    """Bit by bit, but for NaN."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return False
    has_nan = expected.dtype.kind in "fc" and np.isnan(expected).any()
    return np.array_equal(got, expected, equal_nan=True) if has_nan else \
        got.tobytes() == expected.tobytes()


def differences(path, arrays):
    """arrays: the elements by the path of their array."""
    with h5py.File(path, "r") as f:
        found = variables(f)
        if set(found) != set(arrays):
            return [f"{sorted(found)} instead of {sorted(arrays)}"]
        return [f"{name}: {got!r} instead of {expected!r}" for name, got, expected in (
            (name, np.asarray(found[name][()], found[name].dtype), as_shown(data))
            for name, data in arrays.items()) if not equal(got, expected)]


def elements(store):
    return {path: a.data for path, a in store.arrays.items()}


@pytest.mark.parametrize("batch", [
    *range(BATCHES), *(pytest.param(i, marks=pytest.mark.long)
                       for i in range(BATCHES, 10 * BATCHES))])
def test_random_stores(tmp_path, batch):
    seeds = range(batch * STORES, (batch + 1) * STORES)
    stores = {seed: random_store(seed, tmp_path / "bucket") for seed in seeds}
    with Mount(tmp_path / "bucket", tmp_path) as m:
        for seed, store in stores.items():
            wrong = differences(m.file(f"{seed}.zarr.nc"), elements(store))
            assert not wrong, f"seed {seed}: {wrong}\n{describe(store)}\n" + "".join(
                line for line in m.log().splitlines(True) if f"/{seed}.zarr" in line)
        assert "error" not in m.log()


# ---- shards in buckets of all kinds ----

@contextlib.contextmanager
def in_directory(root, _):
    yield root, None


@contextlib.contextmanager
def in_memory(root, _):
    with Objects(f"{root}.objects") as bucket:
        for at, _, names in os.walk(root):
            for name in names:
                path = os.path.join(at, name)
                with open(path, "rb") as f:
                    bucket.put(os.path.relpath(path, root), f.read())
    with serving(f"{root}.objects") as address:
        yield "s3://bucket", dict(
            os.environ, AWS_ACCESS_KEY_ID="access", AWS_SECRET_ACCESS_KEY="secret",
            AWS_ENDPOINT_URL=f"http://{address}", AWS_REGION="us-east-1")


@contextlib.contextmanager
def in_service(root, request):
    client, name = request.getfixturevalue("client"), f"random-shards-{os.path.basename(root)}"
    client.make_bucket(name)
    client.upload(name, root)
    yield f"s3://{name}", request.getfixturevalue("environment")


@pytest.mark.parametrize("bucket", [
    in_directory, in_memory, pytest.param(in_service, marks=needs_gateway)])
@pytest.mark.parametrize("first, seeds", [
    (0, 6), *(pytest.param(i, STORES, marks=pytest.mark.long) for i in range(0, 1000, STORES))])
def test_random_shards(tmp_path, request, bucket, first, seeds):
    root = tmp_path / str(first)
    stores = {seed: random_shard_store(seed, root) for seed in range(first, first + seeds)}
    with bucket(root, request) as (where, env), Mount(where, tmp_path, env=env) as m:
        for seed, store in stores.items():
            wrong = differences(m.file(f"{seed}.zarr.nc"), elements(store))
            assert not wrong, f"seed {seed}: {wrong}\n{describe(store)}\n{m.log()}"
        assert "error" not in m.log()


# ---- stores of zarr-python ----

NUMCODECS = (None, numcodecs.Zlib(), numcodecs.GZip(), numcodecs.BZ2(), numcodecs.LZ4(),
             numcodecs.Zstd(), *(numcodecs.Blosc(cname, shuffle=shuffle) for cname in (
                 "lz4", "lz4hc", "blosclz", "zlib", "zstd") for shuffle in (0, 1, 2)))


def store_of_zarr_python(seed, directory):
    """A store of Zarr v2. Returns the elements of its arrays by path."""
    rnd = np.random.default_rng(seed)
    root = zarr.open_group(zarr.DirectoryStore(os.path.join(directory, f"{seed}.zarr")), "w")
    arrays, used = {}, {"g", "h"}
    for _ in range(rnd.integers(1, 4)):
        path = pick(rnd, ("", "g/", "g/h/")) + random_name(rnd, used)
        dtype = np.dtype(pick(rnd, TYPES))
        shape, chunks = random_shape(rnd)
        fill = random_fill(rnd, 2, dtype)
        if dtype.kind == "c" and fill is not None:
            fill += 0       # zarr-python loses the sign of -0
        a = root.create_dataset(
            path, shape=shape, chunks=chunks, dtype=dtype, order=pick(rnd, "CF"),
            compressor=pick(rnd, NUMCODECS), fill_value=fill,
            filters=[numcodecs.Shuffle(dtype.itemsize)] if rnd.random() < 0.3 else None,
            dimension_separator=pick(rnd, "./"), write_empty_chunks=pick(rnd, (True, False)))
        # Without a fill value, chunks that are not stored have no defined elements.
        part = ... if a.fill_value is None or rnd.random() < 0.5 else \
            tuple(slice(int(rnd.integers(n + 1))) for n in shape)
        a[part] = random_data(rnd, dtype, shape)[part]
        arrays[path] = a[...]
    if rnd.random() < 0.5:
        zarr.consolidate_metadata(root.store)
    return arrays


@pytest.mark.parametrize("batch", [0, 1, *(pytest.param(i, marks=pytest.mark.long)
                                           for i in range(2, 20))])
def test_random_stores_of_zarr_python(tmp_path, batch):
    """The elements are those that zarr-python reads."""
    seeds = range(batch * STORES, (batch + 1) * STORES)
    stores = {seed: store_of_zarr_python(seed, tmp_path / "bucket") for seed in seeds}
    with Mount(tmp_path / "bucket", tmp_path) as m:
        for seed, arrays in stores.items():
            wrong = differences(m.file(f"{seed}.zarr.nc"), arrays)
            assert not wrong, f"seed {seed}: {wrong}\n{m.log()}"
        assert "error" not in m.log()


# ---- damage ----

VALUES = [None, 0, -1, 2.5, 1e300, 1 << 63, 1 << 70, "", "x" * 300, [], {}, [[]], [0], [-1],
          [1 << 40], True, {"name": "bytes"}, {"id": "zlib"}, "NaN", "<f8", "|V0", ">i2", "/",
          "\ud800", "a\0b"]


def places(value, at=()):
    """The paths to all values in a document but the whole."""
    for key, inner in (value.items() if isinstance(value, dict) else
                       enumerate(value) if isinstance(value, list) else ()):
        yield (*at, key)
        yield from places(inner, (*at, key))


def damage_value(rnd, text):
    document = json.loads(text)
    at = pick(rnd, list(places(document)))
    inner = document
    for key in at[:-1]:
        inner = inner[key]
    if rnd.random() < 0.3:
        del inner[at[-1]]
    else:
        inner[at[-1]] = pick(rnd, VALUES)
    return json.dumps(document).encode()


def damage_bytes(rnd, text):
    at, n = int(rnd.integers(len(text) + 1)), int(rnd.integers(1, 20))
    return pick(rnd, (text[:at] + text[at + n:], text[:at] + rnd.bytes(n) + text[at + n:],
                      text[:at] + text[at:at + n] + text[at:], text[:at]))


def damage_store(seed, store):
    rnd = np.random.default_rng(seed)
    paths = sorted(os.path.join(at, name) for at, _, names in os.walk(store.root) for name in names)
    for _ in range(rnd.integers(1, 4)):
        path = pick(rnd, paths)
        with open(path, "rb") as f:
            text = f.read()
        is_json = os.path.basename(path).startswith(("zarr.json", ".z"))
        try:
            text = (damage_value if is_json and rnd.random() < 0.7 else damage_bytes)(rnd, text)
        except ValueError:      # it was damaged before
            pass
        with open(path, "wb") as f:
            f.write(text)


@pytest.mark.parametrize("batch", [0, *(pytest.param(i, marks=pytest.mark.long)
                                        for i in range(1, 10))])
def test_damaged_stores(tmp_path, batch):
    """A file opens or fails with EIO, and so does every read. The daemon and other stores stay."""
    seeds = range(batch * 2 * STORES, (batch + 1) * 2 * STORES)
    for seed in seeds:
        damage_store(seed, random_store(seed, tmp_path / "bucket"))
    good = random_store(batch, tmp_path / "good")
    os.rename(good.root, tmp_path / "bucket/good.zarr")
    with Mount(tmp_path / "bucket", tmp_path) as m:
        for seed in seeds:
            try:
                with h5py.File(m.file(f"{seed}.zarr.nc"), "r") as f:
                    for variable in variables(f).values():
                        read(variable)
            except OSError as e:
                assert e.errno == errno.EIO, (seed, e)
            assert m.alive(), f"seed {seed}: {m.log()}"
        assert not differences(m.file("good.zarr.nc"), elements(good))


def read(variable):
    try:
        if variable.size < ELEMENTS_MAX * 100:
            variable[()]
    except OSError as e:
        assert "errno = 5" in str(e), e
