# SPDX-License-Identifier: Apache-2.0
"""A writable mount beside a read-only one of the same bucket: what was written into the first is
compared with what the second shows."""
import filecmp
import json
import os
import sys
import textwrap

import h5py

import mkbucket
import mounts
from mounts import Mount

CHUNKS, CHUNK = 8, 32 << 10     # of the domain that is there first; bytes


def make_bucket(root):
    with mkbucket.Maker(root) as bucket:
        for path in "home", "home/sub":
            bucket.folder(path)
        domain = bucket.domain("home/old.h5")
        data = domain.dataset(domain.root, "data", mkbucket.INT8, [CHUNKS * CHUNK], [CHUNK])
        for i in range(CHUNKS):
            data.chunk((i,), bytes([i]) * CHUNK)
        bucket.put("home/notes.txt", b"first\n")


class Pair:
    """A writable mount and a read-only one of the same bucket, and a directory on a disk."""

    def __init__(self, url, tmp_path, env=None, *options):
        self.rw = Mount(url, tmp_path / "rw", "rw", *options, env=env)
        self.ro = Mount(url, tmp_path / "ro", "metadata_ttl=0", env=env)
        self.disk = tmp_path / "disk"
        self.disk.mkdir()

    def __enter__(self):
        self.rw.__enter__()
        try:
            self.ro.__enter__()
        except BaseException as e:
            self.rw.__exit__(type(e), e, None)
            raise
        return self

    def __exit__(self, *raised):
        try:
            self.ro.__exit__(*raised)
        finally:
            self.rw.__exit__(*raised)

    def path(self, name):
        return self.rw.file("home", name)

    def local(self, name):
        return os.fspath(self.disk / name)

    def equals(self, name, local=None):
        """What the other mount shows under the name has the content of the local file. Files are
        committed at the last close, for which no program waits."""
        local, there = self.local(local or name), self.ro.file("home", name)
        compare = compare_hdf5 if h5py.is_hdf5(local) else compare_bytes
        assert mounts.wait_for(lambda: compare(local, there) == "", 10), \
            compare(local, there) + self.rw.log()


def compare_hdf5(a, b):
    if not os.path.exists(b):
        return f"{b} is missing"
    return mounts.run("h5diff", a, b).stdout + ("" if h5py.is_hdf5(b) else "no HDF5")


def compare_bytes(a, b):
    if not os.path.exists(b):
        return f"{b} is missing"
    return "" if filecmp.cmp(a, b, shallow=False) else f"{b} differs"


def python(script, *arguments, check=True):
    """Runs a script in another process."""
    done = mounts.run(sys.executable, "-c", textwrap.dedent(script), *arguments)
    assert not check or done.returncode == 0, done.stderr
    return done.stdout.strip()


def stats(pair):
    with open(pair.rw.file(".hsmount/stats"), encoding="utf-8") as f:
        return json.load(f)
