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
import commits
import compare
import filediff
import hsds_validator
import imports
import mounts
import ncplus
import oracle
import rplus
import rwmounts
import wasm
from mounts import HSIMAGE, Mount, run
from sampling import EVERYTHING

# Versions of the format, one for each session. Version 1.8 does not read what 1.10 writes.
BOUNDS = ((None, "latest", ("v110", "v110")), (None, "latest", ("v108", "latest")),
          (("v108", "v108"), ("earliest", "v108")))
NAME, LARGEST = "home/x.h5", 8 << 20
BATCHES, RUNS = (100, 10) if EVERYTHING else (2, 10)


class Pair:
    """A domain in a mount, and a file on the disk with the same content."""

    def __init__(self, bucket, name, disk):
        self.bucket, self.name, self.disk = bucket, name, os.fspath(disk)
        self.known = []     # problems that a domain of the service has before all changes

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
        return found + [p for p in self.problems() if p not in self.known]

    def problems(self):
        """What the service would not accept."""
        return hsds_validator.check_domain(os.fspath(self.bucket), self.name, strict=True)

    def session(self, mount, seed, count, libver, references):
        """The same changes of both. Returns what is wrong."""
        paths = rplus.addresses(self.disk)
        made = rplus.change(self.disk, seed, count, libver, references)
        now = rplus.addresses(self.disk)
        same = {now.by_address[address]: was for address, was in paths.by_address.items()
                if address in now.by_address and address not in made.removed}
        written = {now.by_address[address]: boxes for address, boxes in made.written.items()
                   if address in now.by_address}
        # A new object may get the id of a removed one whose place it has.
        written.update({path: [None] for path in now.by_address.values() if path not in same})
        return self.judged(mount, same, written, lambda: rplus.change(
            self.shown(mount), seed, count, libver, references))

    def judged(self, mount, same, written, change):
        """Makes a change in the mount. same: {path: path before it}, of objects that stay. written:
        {path: boxes}, see commits.Commit; None: all may be written."""
        before, first = self.domain(), bucketstate.State(self.bucket)
        requests = mount.requests()
        old = bucketstate.State(self.bucket, first)
        change()
        mount.released()
        after, new = self.domain(), bucketstate.State(self.bucket, old)
        requests = mounts.difference(requests, mount.requests())
        _, deleted = bucketstate.State(self.bucket, new).since(first)
        found = self.differences(mount)
        for path, was in same.items():
            if bucketstate.id_of(after, path) != bucketstate.id_of(before, was):
                found.append(f"{path} was {was}, and has another id")
        if written is not None:
            written = {bucketstate.id_of(after, path): boxes for path, boxes in written.items()}
        found += commits.Commit(before, after, old, new, written).problems(
            requests, len(deleted))
        # What was removed is deleted later.
        return found + [line for line in self.stored_differences(mount)
                        if not line.endswith("is not reachable")]

    def other_session(self, mount, change):
        """Changes by a program that does not tell what it does. Objects keep their places. Some
        programs make another file and give it the name."""
        before, file = rplus.addresses(self.disk), os.stat(self.disk).st_ino
        change(self.disk)
        now = rplus.addresses(self.disk)
        if os.stat(self.disk).st_ino != file:
            change(self.shown(mount))
            return self.differences(mount) + self.stored_differences(mount)
        same = {path: before.by_address[address] for path, address in now.items()
                if address in before.by_address}
        return self.judged(mount, same, None, lambda: change(self.shown(mount)))


def make_source(path, seed):
    if is_netcdf(seed):
        return ncplus.make(path, seed)
    libver = BOUNDS[seed % 3][0]
    rplus.make(path, seed, libver)
    rplus.change(path, seed, 25, libver, seed % 2)


def is_netcdf(seed):
    return seed % 10 in (7, 8)


def h5wasm_session(mount, pair, bounds):
    """libhdf5 2.0 writes all values again, and changes extents, links and attributes."""
    with h5py.File(pair.disk, "r") as f:
        objects = ["/"] + rplus.objects(f, rplus.DATASET, rplus.GROUP)
    libver = ["v108", "v108"] if bounds is BOUNDS[2] else ["v110", "v110"]
    return pair.other_session(mount, lambda path: wasm.node("write.mjs", [
        {"path": os.fspath(path), "libver": libver, "objects": objects}]))


def netcdf_session(mount, pair, seed, count):
    """By the library, or by NCO."""
    if seed % 2:
        return pair.other_session(mount, lambda path: ncplus.change(path, seed, count))
    side, found = os.path.splitext(pair.disk)[0] + ".side.nc", []
    ncplus.write_side_file(side, seed)
    for command in ncplus.commands(seed, side):
        codes = []
        found += pair.other_session(mount, lambda path, c=command, done=codes: done.append(
            ncplus.run_command(path, c)))
        found += [f"{command} returns {codes}"] * (codes[0] != codes[1])
    return found


def any_session(mount, pair, seed, session):
    """Which programs change a file, and with which version of the format, depends on the seed."""
    count = (1, 3, 10, 30, 60)[(seed // 4 + session) % 5]
    if is_netcdf(seed):
        return netcdf_session(mount, pair, seed * 10 + session, count)
    bounds = BOUNDS[seed % 3]
    if seed % 10 == 9 and session == seed % 4 and wasm.is_available():
        return h5wasm_session(mount, pair, bounds)
    libver = bounds[(seed // 3 + session) % len(bounds)]
    return pair.session(mount, seed * 10 + session, count, libver, seed % 2)


@pytest.mark.sampled
@pytest.mark.timeout(300)
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
                found = any_session(m, pair, seed, session)
                assert found == [], (found, seed, session, m.log())
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
        pair.known = pair.problems()
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
