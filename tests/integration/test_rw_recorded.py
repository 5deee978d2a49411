# SPDX-License-Identifier: Apache-2.0
"""Writes of libhdf5 that were recorded are made again in a mount: as an old library makes them,
which does not mark a file that it has open, and with damage."""
import io
import os
import random
import shutil
import signal
import struct
import subprocess
import sys

import h5py
import pytest

import bucketstate
import filediff
import hsds_validator
import imports
import mounts
import recorder
import rplus
import rwmounts
from mounts import HSIMAGE, Mount, run

BOUNDS = (None, ("v108", "v108"), ("v110", "v110"), "latest")
DRAFTS, AT_ONCE = 200, 20


class Place:
    """A bucket with domains, of which the files on the disk have the same content."""

    def __init__(self, tmp_path, seeds):
        self.directory, self.bucket = tmp_path, imports.make_bucket(tmp_path / "bucket")
        for seed in seeds:
            source = tmp_path / f"{seed}.source.h5"
            rplus.make(source, seed)
            rplus.change(source, seed, 20, BOUNDS[seed % 4], seed % 2)
            run(HSIMAGE, "-b", self.bucket, "import", source, self.name(seed), check=True)

    @staticmethod
    def name(seed):
        return f"home/{seed}.h5"

    def copy(self, mount, seed):
        """The file of a mount, on the disk."""
        return shutil.copyfile(mount.file(self.name(seed)), self.directory / f"{seed}.h5")

    def state(self):
        return bucketstate.State(self.bucket).digest


def record(path, seed, count):
    """What libhdf5 writes when it makes random changes of a file."""
    with open(path, "rb") as f:
        made = recorder.Recorder(f.read())
    with h5py.File(made, "r+", libver=BOUNDS[seed % 4]) as f:
        rplus.Changes(f, seed + 1000, seed % 2).run(count)
    return made


def replayed(path, log):
    fd = os.open(path, os.O_RDWR)
    recorder.replay(fd, log)
    return fd


# ---- libraries that do not mark the file ----

@pytest.mark.sampled(keep=4)
@pytest.mark.parametrize("seed", range(12))
def test_an_old_library(tmp_path, seed):
    """What it has written is committed when the last descriptor is closed, and not before."""
    place = Place(tmp_path, [seed])
    with rwmounts.RwMount(place.bucket, tmp_path, "metadata_ttl=0") as m:
        shown, disk = m.file(place.name(seed)), place.copy(m, seed)
        made, before = record(disk, seed, 30), place.state()
        assert made.marks() == {0}
        fd = replayed(shown, made.log)
        os.close(os.dup(fd))
        os.fsync(fd)
        assert place.state() == before
        os.close(fd)
        m.released()
        os.close(replayed(disk, made.log))
        assert filediff.differences(disk, shown) == [], m.log()
    assert rwmounts.journal_entries(m.journal) == []
    with Mount(place.bucket, tmp_path) as m:
        assert filediff.differences(disk, m.file(place.name(seed))) == []
    assert rwmounts.check(place.bucket).returncode == 0


@pytest.mark.sampled(keep=2)
@pytest.mark.parametrize("seed", range(4))
def test_without_locks(tmp_path, seed):
    place = Place(tmp_path, [seed])
    with rwmounts.RwMount(place.bucket, tmp_path, "metadata_ttl=0") as m:
        shown, disk = m.file(place.name(seed)), place.copy(m, seed)
        for path in disk, shown:
            subprocess.run([sys.executable, rplus.__file__, path, "77", "30"], check=True,
                           env={**os.environ, "HDF5_USE_FILE_LOCKING": "FALSE"})
        assert filediff.differences(disk, shown) == [], m.log()
    assert rwmounts.journal_entries(m.journal) == []
    assert rwmounts.check(place.bucket).returncode == 0


# ---- damage ----

class Mutation:
    """Damages one or a few of the pieces that were written. Metadata is written in small pieces."""

    def __init__(self, seed, log):
        self.random, self.log = random.Random(seed), list(log)

    def piece(self):
        small = [i for i, (_, data) in enumerate(self.log) if data and len(data) <= 4096]
        return self.random.choice(small)

    def change(self, i, at, data):
        offset, old = self.log[i]
        self.log[i] = offset, old[:at] + data + old[at + len(data):]

    def flip_bits(self):
        for _ in range(self.random.choice((1, 1, 4))):
            i = self.piece()
            at = self.random.randrange(len(self.log[i][1]))
            self.change(i, at, bytes([self.log[i][1][at] ^ 1 << self.random.randrange(8)]))

    def addresses(self):
        """(piece, offset in it, number) of what may be an address in the file."""
        end = max(offset for offset, _ in self.log)
        for i, (_, data) in enumerate(self.log):
            for at in range(0, len(data or b"") - 7 if len(data or b"") <= 4096 else 0):
                number, = struct.unpack_from("<Q", data, at)
                if 512 <= number <= end and number % 8 == 0:
                    yield i, at, number

    def swap_addresses(self):
        found = list(self.addresses())
        if len(found) > 1:
            (i, a, x), (j, b, y) = self.random.sample(found, 2)
            self.change(i, a, struct.pack("<Q", y))
            self.change(j, b, struct.pack("<Q", x))

    def loop(self):
        """An address leads to the piece in which it is."""
        found = list(self.addresses())
        if found:
            i, at, _ = self.random.choice(found)
            self.change(i, at, struct.pack("<Q", self.log[i][0]))

    def wild_address(self):
        found = list(self.addresses())
        if found:
            i, at, _ = self.random.choice(found)
            self.change(i, at, struct.pack("<Q", self.random.choice((1, 1 << 40, 2**64 - 2))))

    def lose(self):
        """A piece does not arrive, or only a part of it."""
        i = self.piece()
        offset, data = self.log[i]
        self.log[i] = offset, data[:self.random.randrange(len(data))]

    def repeat(self):
        """A piece arrives at the place of another one."""
        i, j = self.piece(), self.piece()
        self.log[i] = self.log[i][0], self.log[j][1]

    EVERY = (flip_bits, flip_bits, swap_addresses, loop, wild_address, lose, repeat)

    def run(self):
        self.random.choice(self.EVERY)(self)
        return self.log


def in_a_process(function, *arguments):
    """The lines that a function returns; None: it has failed, or libhdf5 has crashed or hangs."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.alarm(60)
            with io.open(write, "w", encoding="utf-8", errors="replace") as out:
                out.write("\n".join(map(str, function(*arguments))))
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    with io.open(read, encoding="utf-8", errors="replace") as f:
        text = f.read()
    return text.splitlines() if os.waitpid(pid, 0)[1] == 0 else None


def unreadable(path):
    """What libhdf5 cannot read of a file."""
    return sorted(filediff.File(path).unreadable)


def is_refused(m, before):
    """Waits for the end of the commit. If it has failed, there is one more draft than before."""
    def found():
        entries, left = len(rwmounts.journal_entries(m.journal)), m.stats()["drafts"]["left"]
        return entries == left and entries in (before, before + 1)
    assert mounts.wait_for(found), (m.stats()["drafts"], m.log())
    return m.stats()["drafts"]["left"] > before


@pytest.mark.timeout(600)
@pytest.mark.sampled
@pytest.mark.parametrize("first", range(0, DRAFTS, AT_ONCE))
def test_damaged_drafts(tmp_path, first):
    """Damage is refused, and then nothing is put. What is not noticed as damage gives a domain that
    shows what libhdf5 reads from the same bytes on a disk."""
    seeds = range(first, first + AT_ONCE)
    place, refused, committed, problems = Place(tmp_path, seeds), set(), set(), []
    with rwmounts.RwMount(place.bucket, tmp_path, "metadata_ttl=0") as m:
        for seed in seeds:
            disk, before = place.copy(m, seed), place.state()
            log = Mutation(seed, record(disk, seed, 10).log).run()
            os.close(replayed(m.file(place.name(seed)), log))
            os.close(replayed(disk, log))
            (refused if is_refused(m, len(refused)) else committed).add(seed)
            if seed in refused and place.state() != before:
                problems.append(f"{seed}: was refused, and the bucket has changed")
        assert m.alive(), m.log()
    assert "Sanitizer" not in m.log(), m.log()
    assert len(rwmounts.journal_entries(m.journal)) == len(refused)
    problems += [line for line in rwmounts.check(place.bucket).stdout.splitlines()
                 if line.startswith("error: ")]
    with Mount(place.bucket, tmp_path) as m:
        for seed in committed:
            disk, shown = tmp_path / f"{seed}.h5", m.file(place.name(seed))
            found = in_a_process(filediff.differences, disk, shown)
            if in_a_process(unreadable, disk) != []:
                # Damage of what has no meaning for the content, such as of lists of free space.
                found = in_a_process(filediff.differences, shown, shown)
            if found is None:
                problems.append(f"{seed}: libhdf5 cannot read it")
            elif found:
                problems.append(f"{seed}: {found[:5]}")
        for seed in refused:
            shown = m.file(place.name(seed))
            source = tmp_path / f"{seed}.source.h5"
            problems += [f"{seed}: {line}" for line in filediff.differences(source, shown)]
    assert problems == [], problems
    assert refused and committed
    for seed in seeds:
        found = hsds_validator.check_domain(os.fspath(place.bucket), place.name(seed), strict=True)
        assert [line for line in found if not line.endswith("is not reachable")] == [], seed
