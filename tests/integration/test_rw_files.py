# SPDX-License-Identifier: Apache-2.0
"""Mounts with -o rw: files are created and replaced by tools and by libhdf5. h5diff and cmp compare
what was written with what another, read-only mount of the bucket shows."""
import errno
import os
import shutil
import zlib

import h5py
import numpy
import pytest

import mounts
from gateway import needs_gateway
from pairs import CHUNK, CHUNKS, Pair, compare_bytes, make_bucket, python, stats


@pytest.fixture(name="pair")
def fixture_pair(tmp_path):
    make_bucket(tmp_path / "bucket")
    with Pair(tmp_path / "bucket", tmp_path) as pair:
        yield pair


@pytest.fixture(name="both", params=["directory", pytest.param("gateway", marks=needs_gateway)])
def fixture_both(request, tmp_path):
    make_bucket(tmp_path / "bucket")
    url, env = tmp_path / "bucket", None
    if request.param == "gateway":
        client = request.getfixturevalue("client")
        name = client.new_bucket("files")
        client.upload(name, url)
        url, env = f"s3://{name}", request.getfixturevalue("environment")
    with Pair(url, tmp_path, env) as pair:
        yield pair


def make_hdf5(path, seed=1, size=100000):
    values = numpy.random.default_rng(seed).integers(0, 100, size)
    with h5py.File(path, "w") as f:
        f.attrs["seed"] = seed
        f.create_dataset("packed", data=values, chunks=(10000,), compression="gzip")
        f.create_dataset("group/plain", data=values[:100].astype("f4"))
        f["group/strings"] = ["a", "bc", ""]
        f["alias"] = f["packed"]
        f["reference"] = f["packed"].ref


def kept(pair, name):
    """Why a file is a plain object."""
    try:
        return os.getxattr(pair.path(name), "user.hsds.kept").decode()
    except OSError as e:
        assert e.errno == errno.ENODATA
        return None


def is_domain(pair, name):
    return "user.hsds.root" in os.listxattr(pair.ro.file("home", name))


# ---- copies ----

def test_a_copy(both):
    make_hdf5(both.local("new.h5"))
    mounts.run("cp", both.local("new.h5"), both.path("new.h5"), check=True)
    both.equals("new.h5")
    assert is_domain(both, "new.h5")
    # At once also for the process that looks next, in the same mount.
    with h5py.File(both.path("new.h5"), "r") as f:
        assert f.attrs["seed"] == 1
    # As a file that is no HDF5 file, and in a new directory.
    mounts.run("cp", "-r", both.disk, both.path("tree"), check=True)
    with open(both.local("text"), "wb") as f:
        f.write(os.urandom(3 << 20))
    mounts.run("cp", "-p", both.local("text"), both.path("tree/text"), check=True)
    both.equals("tree/text", "text")
    both.equals("tree/new.h5", "new.h5")
    assert kept(both, "tree/text") is None


def test_a_copy_over_a_domain(both):
    """A reader that has the old domain open goes on to its end."""
    with open(both.path("old.h5"), "rb") as f:
        image = f.read()
    make_hdf5(both.local("old.h5"), seed=2)
    with open(both.path("old.h5"), "rb") as mine, open(both.ro.file("home/old.h5"), "rb") as other:
        assert mine.read(5000) == image[:5000] == other.read(5000)
        mounts.run("cp", both.local("old.h5"), both.path("old.h5"), check=True)
        assert mine.read() == image[5000:]
        mine.seek(0)
        assert mine.read() == image
        assert other.read() == image[5000:]
        assert os.fstat(mine.fileno()).st_size == len(image)
    both.equals("old.h5")
    with h5py.File(both.path("old.h5")) as f:
        assert f.attrs["seed"] == 2


def test_repack_into_the_mount(pair):
    make_hdf5(pair.local("a.h5"))
    mounts.run("h5repack", "-f", "GZIP=9", pair.local("a.h5"), pair.path("b.h5"), check=True)
    pair.equals("b.h5", "a.h5")
    mounts.run("h5repack", pair.path("b.h5"), pair.path("old.h5"), check=True)
    pair.equals("old.h5", "a.h5")
    assert is_domain(pair, "b.h5") and is_domain(pair, "old.h5")


@pytest.mark.parametrize("command", [
    "rsync -a {disk}/ {home}/copy/", "tar -C {disk} -cf - . | tar -C {home}/copy -xf -",
    "install -m 0640 {disk}/* {home}/copy", "cp -a {disk}/. {home}/copy",
    "cp {disk}/* {home}/copy && mv {home}/copy/x.h5 {home}/copy/y.h5 && "
    "mv -n {home}/copy/y.h5 {home}/copy/x.h5",
    "cd {disk} && for i in *; do dd if=\"$i\" of=\"{home}/copy/$i\" bs=4k status=none; done",
    "cd {disk} && for i in *; do cat \"$i\" > \"{home}/copy/$i\"; done"])
def test_tools(pair, command):
    make_hdf5(pair.local("x.h5"))
    for name, body in ("text.txt", b"text\n" * 1000), ("empty", b""), ("no extension", b"1"):
        with open(pair.local(name), "wb") as f:
            f.write(body)
    os.mkdir(pair.path("copy"))
    command = command.format(disk=pair.disk, home=pair.rw.file("home"))
    done = mounts.run("bash", "-ec", "set -o pipefail; " + command)
    assert (done.returncode, done.stderr) == (0, ""), pair.rw.log()
    for name in os.listdir(pair.disk):
        pair.equals(f"copy/{name}", name)
    assert sorted(os.listdir(pair.path("copy"))) == sorted(os.listdir(pair.disk))
    assert is_domain(pair, "copy/x.h5")


def test_a_name_without_extension(pair):
    """The tool that has made the file finds it under the name that it has given."""
    make_hdf5(pair.local("run"))
    mounts.run("cp", pair.local("run"), pair.path("run"), check=True)
    pair.equals("run")
    assert is_domain(pair, "run")
    assert "run.h5" in os.listdir(pair.rw.file("home"))
    os.rename(pair.path("run"), pair.path("run.nc"))
    pair.equals("run.nc", "run")


# ---- libhdf5 in one process ----

def test_h5py_creates_and_reopens(pair):
    path = pair.path("made.h5")
    for seed in 1, 2:
        make_hdf5(path, seed)
        with h5py.File(path, "r") as f:
            assert f.attrs["seed"] == seed
        make_hdf5(pair.local("made.h5"), seed)
        pair.equals("made.h5")
    for name in path, pair.local("made.h5"):
        with h5py.File(name, "a") as f:
            f.attrs["more"] = 1
    pair.equals("made.h5")
    with h5py.File(path, "r") as f:
        assert f.attrs["seed"] == 2


@pytest.mark.parametrize("mode", ["x", "a"])
def test_h5py_makes_new_files(pair, mode):
    with h5py.File(pair.path("made.h5"), mode) as f:
        f["a"] = [1, 2, 3]
    with h5py.File(pair.local("made.h5"), mode) as f:
        f["a"] = [1, 2, 3]
    pair.equals("made.h5")
    if mode == "x":
        with pytest.raises(OSError):
            h5py.File(pair.path("made.h5"), mode)
    pair.equals("made.h5")


@pytest.mark.parametrize("name", ["new.h5", "old.h5"])
def test_one_process_opens_a_file_twice(pair, name):
    """libhdf5 finds out that it has the file open already: by the inode."""
    with h5py.File(pair.path(name), "w") as f:
        f["a"] = numpy.arange(10)
        with h5py.File(pair.path(name), "r+") as again:
            again["b"] = [1]
            assert f["b"][0] == 1
        assert os.path.samestat(os.stat(pair.path(name)), os.fstat(f.id.get_vfd_handle()))
        f["c"] = [2]
    with h5py.File(pair.local(name), "w") as f:
        f["a"], f["b"], f["c"] = numpy.arange(10), [1], [2]
    pair.equals(name)


def test_two_files_at_once(pair):
    with h5py.File(pair.path("1.h5"), "w") as a, h5py.File(pair.path("2.h5"), "w") as b:
        for i in range(1, 20):
            a[f"d{i}"], b[f"d{i}"] = [i], [-i]
    for name, sign in ("1.h5", 1), ("2.h5", -1):
        with h5py.File(pair.local(name), "w") as f:
            for i in range(1, 20):
                f[f"d{i}"] = [sign * i]
        pair.equals(name)


def test_a_domain_has_no_other_size(pair):
    with pytest.raises(OSError) as raised:
        os.truncate(pair.path("old.h5"), 100)
    assert raised.value.errno == errno.EROFS
    with h5py.File(pair.path("old.h5"), "r") as f:
        assert f["data"].shape == (CHUNKS * CHUNK,)


# ---- what is kept as it is ----

def test_damaged_and_unclosed_files(pair):
    make_hdf5(pair.local("whole.h5"))
    with open(pair.local("whole.h5"), "rb") as f:
        body = f.read()
    for path in pair.local("short.h5"), pair.path("short.h5"):
        with open(path, "wb") as f:
            f.write(body[:len(body) // 2])
    # Only a copy, written from its beginning to its end, may be longer than it says.
    for path in pair.local("long.h5"), pair.path("long.h5"):
        with open(path, "wb") as f:
            f.seek(len(body))
            f.write(b"more")
            f.seek(0)
            f.write(body)
    for name in "short.h5", "long.h5":
        assert mounts.wait_for(lambda n=name: os.path.exists(pair.ro.file("home", n)), 10)
        assert compare_bytes(pair.local(name), pair.ro.file("home", name)) == ""
        assert mounts.wait_for(lambda n=name: kept(pair, n), 10), pair.rw.log()
    # A program that is killed while libhdf5 has the file open.
    python("""
        import h5py, os, sys
        f = h5py.File(sys.argv[1], "w")
        f["a"] = list(range(1000))
        f.flush()
        os.kill(os.getpid(), 9)
        """, pair.path("killed.h5"), check=False)
    assert mounts.wait_for(lambda: os.path.exists(pair.ro.file("home/killed.h5")), 10)
    assert mounts.wait_for(lambda: kept(pair, "killed.h5"), 10), pair.rw.log()


def write_edge(path, values, n):
    """The last chunk has n elements in the file, of which 5 are inside of the extent."""
    with h5py.File(path, "a") as f:
        d = f.require_dataset("x", (15,), "<i4", chunks=(10,), compression="gzip")
        for at, end in ((0, 10), (10, 10 + n)):
            d.id.write_direct_chunk((at,), zlib.compress(values[at:end].tobytes()))


def test_chunks_that_end_at_the_extent(pair):
    """libhdf5 reads them, so a copy becomes a domain. A chunk that lacks elements inside of the
    extent is damage: a copy stays as it is, and a change fails when it is closed."""
    values = numpy.arange(15, dtype="<i4")
    write_edge(pair.local("short.h5"), values, 5)
    write_edge(pair.local("damaged.h5"), values, 4)
    for name in "short.h5", "damaged.h5":
        shutil.copyfile(pair.local(name), pair.path(name))
    assert mounts.wait_for(lambda: kept(pair, "damaged.h5"), 10)
    assert "dataset /x: chunk (1): " in kept(pair, "damaged.h5")
    assert compare_bytes(pair.local("damaged.h5"), pair.ro.file("home", "damaged.h5")) == ""
    assert mounts.wait_for(lambda: is_domain(pair, "short.h5"), 10)
    for added in 0, 100:
        if added:
            write_edge(pair.path("short.h5"), values + added, 5)
        with h5py.File(pair.path("short.h5"), "r") as f:
            assert (f["x"][()] == values + added).all()
    python("""
        import h5py, os, sys, zlib
        f = h5py.File(sys.argv[1], "r+")
        f["x"].id.write_direct_chunk((10,), zlib.compress(bytes(16)))
        try:
            f.close()
            os._exit(1)
        except RuntimeError:
            os._exit(0)
        """, pair.path("short.h5"))
    assert "dataset /x: chunk (1): " in pair.rw.log()
    with h5py.File(pair.ro.file("home", "short.h5"), "r") as f:
        assert (f["x"][()] == values + 100).all()
