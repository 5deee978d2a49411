# SPDX-License-Identifier: Apache-2.0
"""Independent readers see in the mount what the service stored, in every domain of the archives."""
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


@pytest.mark.sampled
def test_h5dump(shown):
    out = run("h5dump", shown, check=True)
    assert out.stdout.startswith("HDF5 ") and not out.stderr


@pytest.mark.sampled
def test_h5dump_properties(shown):
    run("h5dump", "-pBH", shown, check=True)


@pytest.mark.sampled
def test_h5ls(shown):
    out = run("h5ls", "-rv", shown, check=True)
    assert not out.stderr


@pytest.mark.sampled
def test_h5stat(shown):
    run("h5stat", shown, check=True)


def outcome(command, *more):
    """None if all commands succeed, otherwise the first one that fails and its exit status."""
    out = run(*command)
    if out.returncode == 0:
        return outcome(*more) if more else None
    return command[0], out.returncode


def check_as_on_source(entry, shown, attempt):
    """A tool must succeed, except if it fails on the source file too: tools have limits and
    defects (attributes over 64 KiB, references between files, missing plug-ins)."""
    ours = attempt(shown)
    if ours is not None and os.path.exists(entry.twin):
        theirs = attempt(entry.twin)
        assert theirs is not None, f"{ours}, but the tool accepts the source file"
        return
    assert ours is None


@pytest.mark.sampled
def test_h5diff_with_source(entry, shown):
    if not entry.source:
        pytest.skip("made by a client, no source file")
    out = run("h5diff", entry.source, shown)
    if not entry.equals_source:
        assert out.returncode in (0, 1, 2), f"{entry.changes}\n{out.stdout}{out.stderr}"
    elif out.returncode:
        readable = run("h5dump", entry.source)      # may need a plug-in that is not installed
        assert readable.returncode, out.stdout + out.stderr


@pytest.mark.sampled
def test_h5repack(entry, shown, tmp_path):
    def attempt(path):
        copy = tmp_path / (entry.collection.name + os.path.basename(path) + ".repacked")
        copy.unlink(missing_ok=True)
        return outcome(("h5repack", path, copy), ("h5diff", path, copy))
    check_as_on_source(entry, shown, attempt)


@pytest.mark.sampled
def test_h5copy(entry, shown, tmp_path):
    def attempt(path):
        with h5py.File(path, "r") as f:
            names = [name for name in f
                     if isinstance(name, str) and f.get(name) not in (None, f) and
                     isinstance(f.get(name, getlink=True), h5py.HardLink)]
        copy = tmp_path / "copied.h5"
        copy.unlink(missing_ok=True)
        copies = [("h5copy", "-i", path, "-o", copy, "-s", f"/{name}", "-d", f"/{name}")
                  for name in names]
        found = outcome(*copies) if copies else None
        # h5copy of a single object does not keep references.
        if found or not copies or entry.has_references:
            return found
        return outcome(*(("h5diff", path, copy, f"/{name}", f"/{name}") for name in names))
    check_as_on_source(entry, shown, attempt)
