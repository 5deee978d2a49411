# SPDX-License-Identifier: Apache-2.0
"""Every reader of HDF5 files finds in the mount what it finds in the file from which a domain was
made: libhdf5 1.12 to 2.0 (five versions of h5wasm), libhdf5 1.10 (h5py), netCDF (ncdump), and
jsfive, which reads HDF5 files without libhdf5. The files are mixed: see h5make.make_mixed(). What a
reader cannot read in the source either is left out (readers.py)."""
import os
import re

import h5py
import numpy as np
import pytest

import h5make
import imports
import mounts
import readers
import wasm
from mounts import HSIMAGE, run
from sampling import sampled

FILES = 120
# An image has more attributes of one object in dense storage, in which jsfive finds none.
JSFIVE_ATTRIBUTES_MAX = 64


class Files:
    """Mixed files, the mounted images of the domains that are made from them, and what h5py finds
    in the files."""

    def __init__(self, directory, mount):
        self.pairs, bucket = [], imports.make_bucket(directory / "bucket")
        for seed in sampled(range(FILES), rarer=2):
            source = os.fspath(directory / f"{seed}.h5")
            h5make.make_mixed(source, seed)
            run(HSIMAGE, "-b", bucket, "import", source, f"home/{seed}.h5", check=True)
            self.pairs.append((source, os.path.join(mount.path, f"home/{seed}.h5")))
        mount.start()
        self.objects = {source: readers.objects_of(source) for source, _ in self.pairs}
        self.truth = readers.read("h5py", self.objects.items())


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    directory = tmp_path_factory.mktemp("readers")
    mount = mounts.Mount(directory / "bucket", directory)
    try:
        yield Files(directory, mount)
    finally:
        if mount.process:
            assert mount.stop() == 0, mount.log()


@pytest.mark.sampled(keep=3)
@pytest.mark.parametrize("reader", readers.READERS)
def test_finds_in_the_image_what_is_in_the_file(files, reader):
    if reader != "h5py" and not wasm.is_available():
        pytest.skip("npm is not installed")
    found = readers.read(reader, [(path, files.objects[pair[0]])
                                  for pair in files.pairs for path in pair])
    compared = left_out = 0
    for source, image in files.pairs:
        if "failure" in found[source]:
            assert reader == "jsfive"
            continue
        assert "failure" not in found[image], f"{source}: {found[image]['failure']}"
        differences, n, skipped = readers.differences(
            found[source], found[image], files.truth[source],
            JSFIVE_ATTRIBUTES_MAX if reader == "jsfive" else None)
        assert differences == [], source
        compared, left_out = compared + n, left_out + skipped
    # What a reader cannot read is the smaller part.
    assert compared > left_out * (1 if reader == "jsfive" else 20), (compared, left_out)


EMPTY_TEXT = re.compile(r'(?<=[ =])(NIL|_|"")(?=[, ])')


def test_ncdump(files):
    """It fails on some types and attributes, in the source as well. A stored empty string is not a
    null pointer in an image, so it is not NIL."""
    compared = 0
    for source, image in files.pairs:
        before = run("ncdump", "-n", "x", source)
        if before.returncode == 0:
            shown = run("ncdump", "-n", "x", image, check=True)
            assert EMPTY_TEXT.sub("_", shown.stdout) == EMPTY_TEXT.sub("_", before.stdout), source
            compared += 1
    assert compared > len(files.pairs) // 4


def test_datasets_without_chunks(tmp_path):
    """jsfive finds the right number of elements. (It has no fill values: it leaves the elements of
    all missing chunks undefined.) libhdf5 finds the fill values, and writes the first chunk."""
    if not wasm.is_available():
        pytest.skip("npm is not installed")
    source, image, bucket = tmp_path / "x.h5", tmp_path / "out.h5", tmp_path / "bucket"
    with h5py.File(source, "w") as f:
        for name, dtype in (("plain", "<f8"), ("text", h5py.string_dtype())):
            f.create_dataset(name, (10, 7), dtype, chunks=(3, 4), maxshape=(None, 7))
        f.create_dataset("gzip", (100,), "<i4", chunks=(10,), compression="gzip", fillvalue=5)
        f.create_dataset("none", (0, 7), "<i2", chunks=(3, 4), maxshape=(None, 7))
    imports.make_bucket(bucket)
    run(HSIMAGE, "-b", bucket, "import", source, "home/x.h5", check=True)
    run(HSIMAGE, "-b", bucket, "export", "home/x.h5", image, check=True)
    objects = ["/plain", "/gzip"]
    for path, expected in ((source, {"failure": "Error: fewer elements than the shape has"}),
                           (image, readers.NO_FILL_VALUES)):
        found = readers.read("jsfive", [(os.fspath(path), objects)])[os.fspath(path)]["objects"]
        assert [found[o]["value"] for o in objects] == [expected] * 2
    for tool in ("h5dump", "h5stat", "h5debug"):
        run(tool, image, check=True)
    with h5py.File(image, "r+") as f:
        assert (f["gzip"][()] == 5).all() and f["none"].shape == (0, 7)
        assert f["text"][9, 6] == b"" and f["gzip"].id.get_storage_size() == 0
        f["gzip"][55] = 1
        f["plain"].resize((20, 7))
        f["plain"][19] = 3
        f["none"].resize((1, 7))
        f["none"][0] = 4
        f["text"][0, 0] = "first"
    with h5py.File(image, "r") as f:
        assert f["gzip"].id.get_num_chunks() == 1 and np.flatnonzero(f["gzip"][()] != 5) == [55]
        assert f["plain"].id.get_num_chunks() == 2 and (f["plain"][19] == 3).all()
        assert (f["none"][()] == 4).all() and f["text"][0, 0] == b"first"


@pytest.mark.parametrize("count", (9, 64))
def test_many_attributes(tmp_path, count):
    """They are in the object header, so jsfive finds them, and libhdf5 1.10 can copy the object.
    (It crashes if values of variable length are in dense storage.) Programs add and remove
    attributes as on a disk."""
    source, image, bucket = tmp_path / "x.h5", tmp_path / "out.h5", tmp_path / "bucket"
    with h5py.File(source, "w") as f:
        d = f.create_dataset("x", data=[1, 2])
        for i in range(count):
            d.attrs[f"a{i}"] = f"text {i}"
    imports.make_bucket(bucket)
    run(HSIMAGE, "-b", bucket, "import", source, "home/x.h5", check=True)
    run(HSIMAGE, "-b", bucket, "export", "home/x.h5", image, check=True)
    run("h5copy", "-i", image, "-o", tmp_path / "copy.h5", "-s", "/x", "-d", "/x", check=True)
    with h5py.File(tmp_path / "copy.h5", "r") as f:
        assert dict(f["x"].attrs) == {f"a{i}": f"text {i}" for i in range(count)}
    if wasm.is_available():
        found = readers.read("jsfive", [(os.fspath(image), ["/x"])])[os.fspath(image)]
        assert len(found["objects"]["/x"]["attributes"]) == count
    with h5py.File(image, "r+") as f:
        d = f["x"]
        for i in range(0, count, 2):
            del d.attrs[f"a{i}"]
        for i in range(70):
            d.attrs[f"b{i}"] = i
    with h5py.File(image, "r") as f:
        assert len(f["x"].attrs) == 70 + count // 2 and f["x"].attrs["b69"] == 69
        assert f["x"].attrs["a1"] == "text 1"
    run("h5dump", "-H", image, check=True)
