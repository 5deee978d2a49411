# SPDX-License-Identifier: Apache-2.0
"""The daemon is killed at each request of a commit that changes a domain in place, and each request
fails once. At every moment the bucket is a domain that the service would serve. After the next
mount it has the old domain or the new one, and everything that was put is in use."""
import contextlib
import os
import shutil
import time

import h5py
import numpy as np
import pytest

import bucketstate
import hsds_validator
import imports
import mounts
import rwmounts
from mounts import HSIMAGE, Mount, run
from programs import Python
from sampling import sampled

NAME = "home/a.h5"
STOPPED = 0.3       # seconds in which a daemon that works sends its next request
MOST = 60           # more requests than any of the commits makes

CASES = {
    "values": "f['d'][50:250] = -1; f['z'][:] = 5; f['t'][0] = 'new'",
    "new": "f['g/new'] = np.arange(500); f['g/k/l'] = 1; f['n'] = f['g/x']; f.attrs['a'] = 2",
    "move": "f.move('g/x', 'h/x'); f.move('h/y', 'g/y'); f.move('h/z', 'z2')",
    "remove": "del f['g/x']; del f['h']; del f['d'].attrs['b']",
    "replace": "del f['d']; f['d'] = np.arange(77); del f['g']; f['g/other'] = 1",
    "shrink": "f['d'].resize((350,)); f['z'].resize((20,)); f['d'][0] = -3",
    "both": "f['m'].resize((4, 12)); f['m'][:, 6:] = 9; f['m'][0, 0] = -1",
    "back": "f['d'].resize((150,)); f['d'].resize((600,)); f['d'][599] = 6",
    "exchange": "a, b = f['g/x'], f['i/x']; del f['g/x'], f['i/x']; f['g/x'], f['i/x'] = b, a",
    "block": "os.pwrite(f.id.get_vfd_handle(), b'another user block', 0); f['d'][3] = 9",
    "grow": "f['d'].resize((900,)); f['d'][700:] = 8; f['d'].attrs['b'] = 'longer than before'",
}


def write_file(path):
    with h5py.File(path, "w", userblock_size=16384) as f:
        f.create_dataset("d", data=np.arange(600), chunks=(100,), maxshape=(None,))
        f.create_dataset("z", data=np.arange(100), chunks=(30,), maxshape=(None,),
                         compression="gzip")
        f.create_dataset("t", data=np.array(["one", "two"] * 9, dtype=object), chunks=(6,),
                         dtype=h5py.string_dtype())
        f["g/x"], f["g/w"], f["h/y"], f["h/z"] = 1, np.arange(20), 3, 4
        f["i/x"] = 5
        f.create_dataset("m", data=np.arange(64).reshape(8, 8), chunks=(3, 3),
                         maxshape=(None, None))
        f["d"].attrs["b"] = "short"
        f.attrs["a"] = 1
    with open(path, "r+b") as f:
        f.write(bytes(range(1, 256)) * 64)     # more than a document holds


class Case:
    """A change, with a bucket and a journal of its own for each run."""

    def __init__(self, name, tmp_path):
        self.change, self.directory, self.runs = CASES[name], tmp_path, 0
        self.counts = name not in ("values", "move", "exchange", "block")
        self.old, self.new = tmp_path / "old.h5", tmp_path / "new.h5"
        write_file(self.old)
        shutil.copy(self.old, self.new)
        with h5py.File(self.new, "r+") as f:
            exec(self.change, {"f": f, "np": np, "os": os})
        self.first = imports.make_bucket(tmp_path / "first")
        run(HSIMAGE, "-b", self.first, "import", self.old, NAME, check=True)

    def begin(self):
        self.runs += 1
        self.where = self.directory / f"run{self.runs}"
        self.bucket = self.where / "bucket"
        shutil.copytree(self.first, self.bucket)

    def mount(self, *options):
        return rwmounts.RwMount(self.bucket, self.where, "metadata_ttl=0", *options)

    def prepare(self, program):
        assert program("f = h5py.File(path, 'r+')") == "ok"
        assert program(self.change) == "ok"

    def requests_of_the_commit(self):
        """Their numbers. Those of the open and of reads come before."""
        self.begin()
        with self.mount() as m, Python(m.file(NAME)) as p:
            self.prepare(p)
            first = sum(m.requests().values())
            assert p("f.close()") == "ok"
            last = sum(m.requests().values())
        assert 0 < last - first < MOST
        return range(first + 1, last + 2)       # the last one is not of the commit

    def content(self, m):
        """"old" or "new", or the differences. A mount finishes commits in the background, so the
        file may change while it is compared."""
        found = None
        for _ in range(100):
            with contextlib.suppress(OSError):
                found = {name: rwmounts.file_differences(getattr(self, name), m.file(NAME))
                         for name in ("old", "new")}
                same = [name for name, lines in found.items() if not lines]
                if same:
                    return same[0]
            time.sleep(0.05)
        return found

    def problems(self):
        """Of a commit that is not complete. Chunks outside of a shape are deleted after it."""
        return hsds_validator.check_domain(os.fspath(self.bucket), NAME)

    def end(self, n, allowed, leaves=False):
        """leaves: a draft of which nothing was put may be left for `hsimage recover`."""
        assert self.problems() == [], n
        with self.mount() as m:
            assert self.content(m) in allowed, (n, m.log())
        left = rwmounts.journal_entries(m.journal)
        with Mount(self.bucket, self.where) as m:
            after = self.content(m)
        assert after in allowed and (not left or leaves and after == "old"), (n, after, m.log())
        assert after == "new" or bucketstate.left_over(self.bucket) == [], n
        found = hsds_validator.check_domain(os.fspath(self.bucket), NAME, strict=True)
        assert found == [], n    # what was removed is deleted by the mount that knows it last
        if self.counts:     # other changes change sizes only, and leave the summary as it was
            with contextlib.suppress(FileNotFoundError):
                assert hsds_validator.check_summary(os.fspath(self.bucket), NAME) == [], n
        done = rwmounts.check(self.bucket)
        assert done.returncode == 0, (n, done.stdout)
        shutil.rmtree(self.where)
        return after


def wait_until_stopped(case):
    """Until the bucket does not change any more."""
    state, since = None, time.monotonic()
    while time.monotonic() - since < STOPPED:
        now = bucketstate.State(case.bucket).digest
        if now != state:
            state, since = now, time.monotonic()
        time.sleep(0.02)


@pytest.fixture(name="case")
def fixture_case(request, tmp_path):
    return Case(request.param, tmp_path)


def numbers(case, name, kind):
    requests = case.requests_of_the_commit()
    return sampled(requests, lambda n: f"{name} {kind} {n - requests[0]}")


@pytest.mark.timeout(900)
@pytest.mark.sampled
@pytest.mark.parametrize("case,name", [(n, n) for n in CASES], indirect=["case"])
def test_killed_at_each_request(case, name):
    """From the n-th request on, the store does not answer, and then the daemon is killed."""
    for n in numbers(case, name, "kill"):
        case.begin()
        m = case.mount(f"debug_fault=delay:{n}+:600000")
        m.start()
        with Python(m.file(NAME)) as p:
            case.prepare(p)
            p.begin("f.close()")
            wait_until_stopped(case)
            m.kill()
        case.end(n, {"old", "new"}, True)


@pytest.mark.timeout(900)
@pytest.mark.sampled
@pytest.mark.parametrize("case,name", [(n, n) for n in CASES], indirect=["case"])
def test_each_request_fails(case, name):
    """Once. The mount tries again when it ends. If a read fails while the library closes the file,
    the file stays marked, and its draft is left."""
    for n in numbers(case, name, "fail"):
        case.begin()
        with case.mount(f"debug_fault=fail:{n}:EIO") as m, Python(m.file(NAME)) as p:
            case.prepare(p)
            result = p("f.close()")
            p.kill()
            m.released()
            if result == "ok":
                assert mounts.wait_for(lambda: case.content(m) == "new"), (n, m.log())
        if "had not closed it" in m.log():
            assert result != "ok"
            case.end(n, {"old"}, True)
        else:
            case.end(n, {"new"})


@pytest.mark.timeout(900)
@pytest.mark.sampled(rarer=2)
@pytest.mark.parametrize("case,name", [(n, n) for n in CASES], indirect=["case"])
def test_bucket_is_away(case, name):
    """From the n-th request on, each one fails, until the mount ends. The next mount commits."""
    for n in numbers(case, name, "away"):
        case.begin()
        m = case.mount(f"debug_fault=fail:{n}+:EIO")
        m.start()
        with Python(m.file(NAME)) as p:
            case.prepare(p)
            result = p("f.close()")
            p.kill()
        m.stop()
        left = rwmounts.journal_entries(m.journal)
        assert left or result == "ok", (n, m.log())
        case.end(n, {"old", "new"}, True)
