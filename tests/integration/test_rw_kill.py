# SPDX-License-Identifier: Apache-2.0
"""The daemon is killed at each request of a copy, and at each write of a program. Afterwards the
old file or the new one is there, and the next mount finishes what was begun. Requests to the bucket
fail in turn: then the program gets an error, the old file remains, and nothing is lost."""
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest

import imports
import mounts
import rwmounts
from mounts import HSIMAGE, run
from sampling import EVERYTHING, sampled

LAST = 60           # more requests than any of the copies makes
STOPPED = 0.25      # seconds in which a daemon that works sends its next request

PY = f'"{sys.executable}" -c'
FILL = "f['d'] = np.arange(900); f.create_dataset('c', data=np.arange(500), chunks=(100,))"
# Name: what a shell runs, and the file that it writes. There are old.h5, old.txt and dir/.
COPIES = {
    "cp": ("cp $S/new.h5 x.h5", "x.h5"),
    "cp-over": ("cp $S/new.h5 old.h5", "old.h5"),
    "cp-over-text": ("cp $S/new.h5 old.txt", "old.txt"),
    "cp-text": ("cp $S/new.txt x.txt", "x.txt"),
    "cp-text-over": ("cp $S/new.txt old.txt", "old.txt"),
    "cp-text-over-domain": ("cp $S/new.txt old.h5", "old.h5"),
    "cp-no-extension": ("cp $S/new.h5 x", "x.h5"),
    "cp-netcdf": ("cp $S/new.nc x.nc", "x.nc"),
    "cp-netcdf-over": ("cp $S/new.nc old.h5", "old.h5"),
    "cp-broken": ("cp $S/broken.h5 x.h5", "x.h5"),
    "cp-virtual-over": ("cp $S/virtual.h5 old.h5", "old.h5"),
    "cat": ("cat $S/new.h5 > dir/x.h5", "dir/x.h5"),
    "tar": ("tar xf $S/new.tar", "new.h5"),
    "rsync": ("rsync -t $S/new.h5 x.h5", "x.h5"),
    "rsync-over": ("rsync -t $S/new.h5 old.h5", "old.h5"),
    "mv-over": ("cp $S/new.h5 x.h5 && mv x.h5 old.h5", "old.h5"),
    "sed": ("sed -i s/old/new/ old.txt", "old.txt"),
    "append": ("cat $S/new.txt >> old.txt", "old.txt"),
    "h5repack": ("h5repack -f GZIP=1 $S/new.h5 x.h5", "x.h5"),
    "h5py": (f"""{PY} "import h5py, numpy as np
with h5py.File('old.h5', 'w') as f: {FILL}" """, "old.h5"),
    "h5py-flush": (f"""{PY} "import h5py, numpy as np
with h5py.File('x.h5', 'w') as f: {FILL}; f.flush(); f['more'] = 1" """, "x.h5"),
}


def write_file(path, number):
    with h5py.File(path, "w") as f:
        f.create_dataset("d", data=np.arange(4000) * number, chunks=(1000,))
        f["group/x"] = number
        f.attrs["number"] = number


@pytest.fixture(scope="session")
def sources(tmp_path_factory):
    root = tmp_path_factory.mktemp("sources")
    write_file(root / "new.h5", 2)
    write_file(root / "old.h5", 1)
    (root / "old.txt").write_text("old line\n" * 100)
    (root / "new.txt").write_text("new line\n" * 200)
    (root / "broken.h5").write_bytes((root / "new.h5").read_bytes()[:5000])
    with h5py.File(root / "virtual.h5", "w") as f:
        layout = h5py.VirtualLayout((4000,), "<i8")
        layout[:] = h5py.VirtualSource("new.h5", "d", (4000,))
        f.create_virtual_dataset("v", layout)
    (root / "c.cdl").write_text("netcdf c { dimensions: k = 3 ; variables: float t(k) ; "
                                "data: t = 1, 2, 3 ; }")
    run("ncgen", "-k", "nc4", "-o", root / "new.nc", root / "c.cdl", check=True)
    run("tar", "cf", root / "new.tar", "-C", root, "new.h5", check=True)
    return root


@pytest.fixture(scope="session")
def first(tmp_path_factory, sources):
    """A bucket with the old files."""
    root = imports.make_bucket(tmp_path_factory.mktemp("first") / "bucket")
    run(HSIMAGE, "-b", root, "import", sources / "old.h5", "home/old.h5", check=True)
    shutil.copy(sources / "old.txt", root / "home/old.txt")
    with rwmounts.RwMount(root, tmp_path_factory.mktemp("first-mount")) as m:
        os.mkdir(m.file("home/dir"))
    return root


class Case:
    """A copy, with a bucket and a journal of its own for each run."""

    def __init__(self, name, sources, first, tmp_path):
        self.command, self.path = COPIES[name]
        self.sources, self.first, self.directory = sources, first, tmp_path
        self.bucket, self.where, self.runs = None, None, 0
        disk = tmp_path / "disk"
        (disk / "dir").mkdir(parents=True)
        for old in "old.h5", "old.txt":
            shutil.copy(sources / old, disk)
        self.old = self.copy_of(disk, "old-file")
        run("bash", "-c", self.command, cwd=disk, env=self.env(), check=True)
        self.new = self.copy_of(disk, "new-file")

    def copy_of(self, disk, name):
        source = next((p for p in (disk / self.path, disk / os.path.splitext(self.path)[0])
                       if p.is_file()), None)
        return shutil.copy(source, self.directory / name) if source else None

    def env(self):
        return dict(os.environ, S=os.fspath(self.sources))

    def begin(self):
        """A copy of the first bucket, which replaces that of the last run."""
        if self.where:
            shutil.rmtree(self.where)
        self.runs += 1
        self.where = self.directory / f"run{self.runs}"
        self.where.mkdir()
        self.bucket = self.where / "bucket"
        shutil.copytree(self.first, self.bucket)

    def mount(self, *options):
        return rwmounts.RwMount(self.bucket, self.where, "metadata_ttl=0", *options)

    def shell(self, m):
        """Even chdir() may hang or fail."""
        return ["bash", "-c", f"cd {m.file('home')} && {self.command}"]

    def start(self, m):
        return subprocess.Popen(self.shell(m), env=self.env(),
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL, start_new_session=True)

    def content(self, m, allowed=("old", "new")):
        """"old", "new", or what it is instead. A mount finishes commits in the background, so the
        file can become what is allowed, and it can change between two comparisons. A directory
        cannot have an object and a domain of one name, so if one replaces the other, the name is
        missing for a moment. And a request of this test may be the one that fails: the daemon
        remembers that for a second."""
        shown, found = m.file("home", self.path), None
        for _ in range(200):
            with contextlib.suppress(OSError):
                for name, expected in (("new", self.new), ("old", self.old)):
                    if expected and (found := rwmounts.file_differences(expected, shown)) == []:
                        found = name
                        break
            if not os.path.exists(shown):
                found = "missing" if self.old else "old"
            if found in tuple(allowed):     # it may be a list of differences
                return found
            time.sleep(0.01)
        return found

    def requests_of_mount(self):
        """Those of the mount itself, which are not hit, and of its end."""
        self.begin()
        with self.mount() as m:
            return sum(m.requests().values())

    def numbers(self, kind):
        """Which requests of a copy are hit: each, or a sample. How many there are is not known
        before, so this ends when the copy has ended before its n-th request."""
        first = self.requests_of_mount() + 1
        return sampled(range(first, first + LAST), lambda n: f"{self.command} {kind} {n - first}")

    def end(self, n, allowed):
        """After a crash or faults: a mount repairs, another one shows that it has."""
        with self.mount() as m:
            before = self.content(m, allowed)
            assert before in allowed, (n, before, m.log())
        left = rwmounts.journal_entries(m.journal)
        listed = run(HSIMAGE, "recover", "list", "--journal-dir", m.journal).stdout if left else ""
        assert all(os.path.basename(entry) in listed for entry in left), (n, left, listed)
        with mounts.Mount(self.bucket, self.where) as m:
            after = self.content(m)
            assert after in allowed and (before, after) != ("new", "old"), (n, before, after)
            assert sorted(os.listdir(m.file("home/dir"))) in ([], [os.path.basename(self.path)])
        done = run(HSIMAGE, "-o", "allow_empty", "-b", self.bucket, "check", "--all")
        assert done.returncode == 0, (n, done.stdout)
        return after, left


def bucket_state(root):
    return {os.path.join(at, name) for at, _, names in os.walk(root) for name in names}


def wait_until_stopped(case, process):
    """Until the program has ended (True), or the bucket does not change any more."""
    state, since = None, time.monotonic()
    while time.monotonic() - since < STOPPED:
        if process.poll() is not None:
            return True
        now = bucket_state(case.bucket)
        if now != state:
            state, since = now, time.monotonic()
        time.sleep(0.01)
    return False


def finish(process):
    """The session of a program whose file system is gone."""
    try:
        process.wait(mounts.PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture
def case(request, sources, first, tmp_path):
    return Case(request.param, sources, first, tmp_path)


@pytest.mark.timeout(900)
@pytest.mark.sampled(rarer=2)
@pytest.mark.parametrize("case", COPIES, indirect=True)
def test_killed_at_each_request(case):
    """From the n-th request on, the store does not answer, and then the daemon is killed."""
    for n in case.numbers("kill"):
        case.begin()
        m = case.mount(f"debug_fault=delay:{n}+:600000")
        m.start()
        process = case.start(m)
        complete = wait_until_stopped(case, process)
        m.kill()
        finish(process)
        if complete and process.returncode == 0:
            assert case.end(n, {"new"})[0] == "new"
            return
        case.end(n, {"old", "new"})


@pytest.mark.timeout(900)
@pytest.mark.sampled(rarer=2)
@pytest.mark.parametrize("case", COPIES, indirect=True)
def test_each_request_fails(case):
    """Once. The mount tries again when it ends, unless the program has removed the file."""
    failures = 0
    for n in case.numbers("fail"):
        case.begin()
        with case.mount(f"debug_fault=fail:{n}:EIO") as m:
            failed = run(*case.shell(m), env=case.env()).returncode
            shown = m.file("home", case.path)
            error = os.path.exists(shown) and rwmounts.attribute(shown, "user.hsds.error")
            # A file of which the bucket has nothing is shown although its commit has failed.
            content = case.content(m)
            assert content == "old" or not failed or not case.old or not error, (n, content)
            assert failed or content == "new", (n, content, m.log())
        after, left = case.end(n, {"old", "new"})
        assert left == [], n
        if error:
            assert after == "new", (n, error)
        failures += bool(failed)
        if not failed and n > 40:
            break
    assert failures or not EVERYTHING


COMMITS = ("cp", "cp-over", "cp-text", "cp-text-over", "cp-virtual-over", "cp-netcdf-over")


@pytest.mark.timeout(900)
@pytest.mark.sampled
@pytest.mark.parametrize("case", COMMITS, indirect=True)
def test_bucket_is_away(case):
    """From the n-th request on, each one fails, until the mount ends. The next mount commits."""
    for n in case.numbers("away"):
        case.begin()
        m = case.mount(f"debug_fault=fail:{n}+:EIO")
        m.start()
        failed = run(*case.shell(m), env=case.env()).returncode
        m.stop()
        left = rwmounts.journal_entries(m.journal)
        if not failed:
            assert case.end(n, {"new"})[1] == []
            return
        assert "is not in the bucket" in m.log() or not left, m.log()
        after, still = case.end(n, {"old", "new"})
        assert still == []
        assert after == ("new" if left else "old"), (n, left)


# ---- killed while a program writes ----

PIECES = 6


def steps(fd, body):
    """What a program does to a file, and the bytes after each step."""
    size, piece, now = len(body), -(-len(body) // PIECES), b""
    for at in range(0, size, piece):
        now = body[:at + piece]
        yield now, lambda at=at: os.pwrite(fd, body[at:at + piece], at)
    yield now, lambda: os.fsync(fd)
    yield body[:size // 2], lambda: os.ftruncate(fd, size // 2)
    yield body[:size // 2] + bytes(100) + b"end", lambda: os.pwrite(fd, b"end", size // 2 + 100)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name,old", [("new.h5", "old.h5"), ("new.txt", "old.txt"),
                                      ("new.h5", "x.h5"), ("new.txt", "x.txt")])
def test_killed_at_each_write(sources, first, tmp_path, name, old):
    """Until fsync, only the journal has the file. What was written can be saved."""
    body = (sources / name).read_bytes()
    for number in sampled(range(PIECES + 4), lambda n: f"{name} {old} {n}"):
        where = tmp_path / f"run{number}"
        where.mkdir()
        shutil.copytree(first, where / "bucket")
        m = rwmounts.RwMount(where / "bucket", where)
        m.start()
        fd, expected = os.open(m.file("home", old), os.O_RDWR | os.O_CREAT | os.O_TRUNC), b""
        for _, (expected, step) in zip(range(number), steps(fd, body)):
            step()
        m.kill()
        with contextlib.suppress(OSError):
            os.close(fd)
        committed = sources / (name if number > PIECES else old)
        with rwmounts.RwMount(where / "bucket", where) as m:
            assert os.path.exists(m.file("home", old)) == committed.exists()
            if committed.exists():
                assert rwmounts.file_differences(committed, m.file("home", old)) == []
        left = rwmounts.journal_entries(m.journal)
        if number == PIECES + 1: # committed by fsync, and not changed since
            assert left == []
            continue
        assert len(left) == 1
        saved = where / "saved"
        run(HSIMAGE, "recover", "export", "--journal-dir", m.journal,
            os.path.basename(left[0]), saved, check=True)
        assert saved.read_bytes() == expected
        shutil.rmtree(where)


@pytest.mark.parametrize("removed", [False, True])
def test_killed_after_a_failed_commit(sources, first, tmp_path, removed):
    """The next mount makes the commit again, unless the program has removed the name."""
    bucket = tmp_path / "bucket"
    shutil.copytree(first, bucket)
    m = rwmounts.RwMount(bucket, tmp_path, "debug_fault=fail:1+:EIO@db/*")
    m.start()
    path = m.file("home/again.h5")
    fd = os.open(path, os.O_WRONLY | os.O_CREAT)
    os.write(fd, (sources / "new.h5").read_bytes())
    with pytest.raises(OSError):
        os.fsync(fd)
    if removed:
        os.unlink(path)
    m.kill()
    with contextlib.suppress(OSError):
        os.close(fd)
    with rwmounts.RwMount(bucket, tmp_path) as m:
        assert mounts.wait_for(lambda: not rwmounts.journal_entries(m.journal))
        assert os.path.exists(path) == (not removed)
    assert (bucket / "home/again.h5").exists() == (not removed)
