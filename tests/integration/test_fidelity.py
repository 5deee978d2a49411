# SPDX-License-Identifier: Apache-2.0
"""Every domain that the real service wrote, seen through the mount by other people's readers."""
import os

import h5py
import pytest

import compare
from mounts import run
from oracle import mount_name


@pytest.fixture
def shown(entry, mounted):
    return mounted(entry.collection).file(mount_name(entry.path))


def test_shows_what_is_stored(entry, shown):
    assert compare.differences(entry.collection.bucket, entry.path, shown) == []


def test_h5dump(shown):
    out = run("h5dump", shown, check=True)
    assert out.stdout.startswith("HDF5 ") and not out.stderr


def test_h5dump_properties(shown):
    run("h5dump", "-pBH", shown, check=True)


def test_h5ls(shown):
    out = run("h5ls", "-rv", shown, check=True)
    assert not out.stderr


def test_h5stat(shown):
    run("h5stat", shown, check=True)


def test_h5diff_with_source(entry, shown):
    if not entry.source:
        pytest.skip("made by a client, no source file")
    out = run("h5diff", entry.source, shown)
    if entry.equals_source:
        assert out.returncode == 0, out.stdout + out.stderr
    else:
        assert out.returncode in (0, 1), f"{entry.changes}\n{out.stdout}{out.stderr}"


def test_h5repack(shown, tmp_path):
    copy = tmp_path / "repacked.h5"
    run("h5repack", shown, copy, check=True)
    out = run("h5diff", shown, copy)
    assert out.returncode == 0, out.stdout + out.stderr


def test_h5copy(shown, tmp_path):
    with h5py.File(shown, "r") as f:
        names = [name for name in f
                 if isinstance(f.get(name, getlink=True), h5py.HardLink) and name.isprintable()]
    copy = tmp_path / "copied.h5"
    for name in names:
        run("h5copy", "-i", shown, "-o", copy, "-s", f"/{name}", "-d", f"/{name}", check=True)
    for name in names:
        out = run("h5diff", shown, copy, f"/{name}", f"/{name}")
        assert out.returncode == 0, out.stdout + out.stderr


def test_ncdump(entry, shown):
    if "nc4" not in os.path.basename(entry.path):
        pytest.skip("not written by netCDF")
    ours, theirs = run("ncdump", shown, check=True), run("ncdump", entry.source, check=True)
    names = [line.split("(")[0] for line in theirs.stdout.splitlines() if line.startswith("\t")]
    for name in names:
        if " " in name.strip() and "=" not in name and ":" not in name:
            assert name.split()[-1] in ours.stdout
