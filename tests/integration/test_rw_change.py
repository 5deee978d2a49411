# SPDX-License-Identifier: Apache-2.0
"""Programs change existing domains in place. The same random changes are made of a domain in a
mount and of a file on the disk. After each close, libhdf5 finds the same in both, and the second
reader of the bucket finds it in the bucket. An object that stays keeps its id, and documents that
say the same keep their bytes."""
import os
import shutil

import h5py
import pytest

import bucketstate
import compare
import filediff
import hsds_validator
import imports
import oracle
import rplus
import rwmounts
from mounts import HSIMAGE, Mount, run
from sampling import EVERYTHING

# Versions of the format, one for each session. Version 1.8 does not read what 1.10 writes.
BOUNDS = ((None, "latest", ("v110", "v110")), (None, "latest", ("v108", "latest")),
          (("v108", "v108"), ("earliest", "v108")))
NAME, LARGEST = "home/x.h5", 8 << 20
BATCHES, RUNS = (100, 10) if EVERYTHING else (10, 10)


class Pair:
    """A domain in a mount, and a file on the disk with the same content."""

    def __init__(self, bucket, name, disk):
        self.bucket, self.name, self.disk = bucket, name, os.fspath(disk)

    def shown(self, mount):
        return mount.file(self.name)

    def domain(self):
        return oracle.Bucket(self.bucket).domain(self.name)

    def differences(self, mount):
        return filediff.differences(self.disk, self.shown(mount))

    def stored_differences(self, mount):
        """Between what a mount shows and the bucket."""
        with h5py.File(self.shown(mount), "r") as f:
            found = [line for line in compare.Comparison(self.domain(), f).run()
                     if not line.endswith(": the compound has holes")]
        return found + hsds_validator.check_domain(os.fspath(self.bucket), self.name, strict=True)

    def session(self, mount, seed, count, libver, references):
        """The same changes of both. Returns what is wrong."""
        before, paths = self.domain(), rplus.addresses(self.disk)
        state = bucketstate.State(self.bucket)
        removed = rplus.change(self.disk, seed, count, libver, references)
        rplus.change(self.shown(mount), seed, count, libver, references)
        after, found = self.domain(), self.differences(mount)
        for path, address in rplus.addresses(self.disk).items():
            was = paths.by_address.get(address)
            if was and address not in removed and \
                    bucketstate.id_of(after, path) != bucketstate.id_of(before, was):
                found.append(f"{path} was {was}, and has another id")
        now = bucketstate.State(self.bucket)
        return found + [f"{key} says the same" for key in now.needless(state)]


def make_source(path, seed):
    libver = BOUNDS[seed % 3][0]
    h5py.File(path, "w", libver=libver).close()
    rplus.change(path, seed, 25, libver, seed % 2)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_changes(tmp_path, batch):
    bucket = imports.make_bucket(tmp_path / "bucket")
    pairs = []
    for n in range(RUNS):
        seed = batch * RUNS + n
        disk = tmp_path / f"{seed}.h5"
        make_source(disk, seed)
        pairs.append((seed, Pair(bucket, f"home/{seed}.h5", disk)))
        run(HSIMAGE, "-b", bucket, "import", disk, f"home/{seed}.h5", check=True)
    with rwmounts.RwMount(bucket, tmp_path, "metadata_ttl=0") as m:
        for seed, pair in pairs:
            for session in range(1 + seed % 4):
                count = (1, 3, 10, 30, 60)[(seed // 4 + session) % 5]
                bounds = BOUNDS[seed % 3]
                libver = bounds[(seed // 3 + session) % len(bounds)]
                assert pair.session(m, seed * 10 + session, count, libver, seed % 2) == [], \
                    (seed, session, count, libver, m.log())
    assert rwmounts.journal_entries(m.journal) == [], m.log()
    with Mount(bucket, tmp_path) as m:
        for seed, pair in pairs:
            assert pair.differences(m) == [], seed
            assert pair.stored_differences(m) == [], seed
    assert bucketstate.left_over(bucket) == []
    done = rwmounts.check(bucket)
    assert done.returncode == 0, done.stdout


@pytest.mark.timeout(300)
@pytest.mark.sampled
def test_domains_of_the_service(tmp_path, entry):
    """The documents of a domain that a real service has written have members that this program does
    not know. The file of the disk is a copy of what a mount shows."""
    if entry.collection.name == "hsds-v1":
        pytest.skip("domains of schema v1 cannot be changed")
    theirs, bucket = entry.collection.bucket, imports.make_bucket(tmp_path / "bucket")
    root = theirs.domain(entry.path).root
    for key in f"{entry.path}/.domain.json", oracle.storage_key(root):
        copy = shutil.copy if key.endswith(".json") else shutil.copytree
        target = bucket / key.replace(entry.path, NAME) if key.endswith(".json") else bucket / key
        os.makedirs(target.parent, exist_ok=True)
        copy(os.path.join(theirs.root, key), target)
    disk = tmp_path / "disk.h5"
    with rwmounts.RwMount(bucket, tmp_path, "metadata_ttl=0") as m:
        pair = Pair(bucket, NAME, disk)
        if os.stat(m.file(NAME)).st_size > LARGEST:
            pytest.skip("large")
        try:
            shutil.copyfile(m.file(NAME), disk)
            assert pair.differences(m) == []
            rplus.change(shutil.copyfile(disk, tmp_path / "trial.h5"), 100, 10, None, True)
        except (OSError, RuntimeError, ValueError, TypeError, KeyError) as e:
            pytest.skip(f"h5py cannot read or change all of it: {e}")
        for seed in 100, 110:
            assert pair.session(m, seed, 10, None, True) == [], m.log()
    assert rwmounts.journal_entries(m.journal) == [], m.log()
    with Mount(bucket, tmp_path) as m:
        assert pair.differences(m) == []
    assert rwmounts.check(bucket).returncode == 0
