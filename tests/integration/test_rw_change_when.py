# SPDX-License-Identifier: Apache-2.0
"""When a domain that a program changes in place is committed, what others see meanwhile, and what
becomes of a program that does not finish."""
import contextlib
import errno
import os
import re
import shutil

import h5py
import numpy as np
import pytest

import bucketstate
import imports
import mounts
import rwmounts
from mounts import HSIMAGE, Mount, run
from programs import Python

NAME = "home/a.h5"
ROWS, CHUNK = 40000, 10000


def write_file(path):
    with h5py.File(path, "w", userblock_size=1024) as f:
        f.create_dataset("d", data=np.arange(ROWS), chunks=(CHUNK,), maxshape=(None,))
        f["g/x"] = 1
        f.attrs["version"] = 1


class Place:
    """A bucket with a domain, and the file from which it was made."""

    def __init__(self, tmp_path):
        self.directory, self.source = tmp_path, tmp_path / "a.h5"
        write_file(self.source)
        self.bucket = imports.make_bucket(tmp_path / "bucket")
        for name in NAME, "home/other.h5":
            run(HSIMAGE, "-b", self.bucket, "import", self.source, name, check=True)
        self.old = bucketstate.State(self.bucket)

    def is_unchanged(self):
        return bucketstate.State(self.bucket).digest == self.old.digest

    @contextlib.contextmanager
    def reader(self, *options):
        """Another mount, without the names that the first one has cached."""
        with Mount(self.bucket, self.directory / "reader", "metadata_ttl=0", *options) as m:
            yield m.file(NAME)

    def version(self):
        """What a new mount shows."""
        with self.reader() as path:
            return version(path)


def version(path):
    with h5py.File(path, "r") as f:
        return int(f.attrs["version"])


@pytest.fixture(name="place")
def fixture_place(tmp_path):
    (tmp_path / "reader").mkdir()
    return Place(tmp_path)


@pytest.fixture(name="mounted")
def fixture_mounted(place, tmp_path):
    with rwmounts.RwMount(place.bucket, tmp_path, "metadata_ttl=0") as m:
        yield m
    done = rwmounts.check(place.bucket)
    assert done.returncode == 0, done.stdout
    assert bucketstate.left_over(place.bucket) == []


def drafts(mounted):
    return rwmounts.journal_entries(mounted.journal)


def recover(mounted, *arguments, **more):
    command, *rest = arguments
    return run(HSIMAGE, "recover", command, "--journal-dir", mounted.journal, *rest, **more)


def drop_conflicts(mounted):
    """The mount that has made a draft has it open until it ends."""
    mounted.stop()
    drop_all(mounted)
    mounted.start()


def drop_all(mounted):
    for entry in drafts(mounted):
        recover(mounted, "drop", "--yes", os.path.basename(entry), check=True)


# ---- commits ----

def test_flush_waits_and_close_commits(place, mounted):
    with place.reader() as other, Python(mounted.file(NAME)) as p:
        assert p("f = h5py.File(path, 'r+'); f.attrs['version'] = 2; f['d'][5] = -1") == "ok"
        for _ in range(3):
            assert p("f.flush()") == "ok"
            assert place.is_unchanged()
        assert version(other) == version(mounted.file(NAME)) == 1
        assert p("f.close()") == "ok"
        assert version(other) == version(mounted.file(NAME)) == 2
        assert version(other) == 2


def test_forked_children_do_not_commit(place, mounted):
    """A child that ends closes what it has inherited."""
    with Python(mounted.file(NAME)) as p:
        assert p("f = h5py.File(path, 'r+'); f.attrs['version'] = 2; f.flush()") == "ok"
        assert p("pid = os.fork() or os._exit(0); os.waitpid(pid, 0)") == "ok"
        assert place.is_unchanged()
        assert p("f.close()") == "ok"
        assert place.version() == 2


def test_fsync_makes_the_journal_durable(place, mounted):
    with Python(mounted.file(NAME)) as p:
        assert p("f = h5py.File(path, 'r+'); f.attrs['version'] = 2; f.flush()") == "ok"
        assert p("os.fsync(f.id.get_vfd_handle())") == "ok"
        assert place.is_unchanged() and len(drafts(mounted)) == 1
        assert p("f.close()") == "ok"
    assert place.version() == 2 and drafts(mounted) == []


def test_two_commits_of_one_descriptor(place, mounted):
    """A process that keeps a descriptor of its own sees each commit of the library, too."""
    path = mounted.file(NAME)
    with Python(path) as p:
        assert p("fd = os.open(path, os.O_RDWR)") == "ok"
        for number in 2, 3, 4:
            assert p("f = h5py.File(path, 'r+')") == "ok"
            assert p(f"assert f.attrs['version'] == {number - 1}") == "ok"
            assert p(f"f.attrs['version'] = {number}; f['d'][{number}] = -1; f.close()") == "ok"
            assert version(path) == number and place.version() == number
        assert p("os.close(fd)") == "ok"
    with h5py.File(path, "r") as f:
        assert (np.flatnonzero(f["d"][:] == -1) == [2, 3, 4]).all()


def test_two_writers_in_one_process(place, mounted):
    with Python(mounted.file(NAME)) as p:
        assert p("f = h5py.File(path, 'r+'); g = h5py.File(path, 'r+')") == "ok"
        assert p("f.attrs['version'] = 2; g['d'][1] = -5") == "ok"
        assert p("assert f['d'][1] == -5; f.close()") == "ok"
        assert p("g.close()") == "ok"
    with place.reader() as path, h5py.File(path, "r") as f:
        assert f.attrs["version"] == 2 and f["d"][1] == -5


def test_a_second_process_is_locked_out(place, mounted):
    """libhdf5 locks a file that it writes, and the lock works in a mount."""
    with Python(mounted.file(NAME)) as p, Python(mounted.file(NAME)) as q:
        assert p("f = h5py.File(path, 'r+'); f.attrs['version'] = 2; f.flush()") == "ok"
        assert q("g = h5py.File(path, 'r+')") == "EAGAIN"
        assert p("f.close()") == "ok"
        assert q("g = h5py.File(path, 'r+'); g.attrs['version'] = 3; g.close()") == "ok"
    assert place.version() == 3


# ---- readers ----

def test_readers_see_the_last_commit(place, mounted):
    path = mounted.file(NAME)
    with Python(path) as old, Python(path) as writer, Python(path) as new:
        assert old("f = h5py.File(path, 'r'); assert f.attrs['version'] == 1") == "ok"
        assert writer("f = h5py.File(path, 'r+'); f.attrs['version'] = 2; "
                      "f['d'][0] = -1; f['d'].resize((3 * 10000 - 5,))") == "ok"
        assert new("f = h5py.File(path, 'r'); assert f.attrs['version'] == 1; "
                   "assert f['d'].shape == (40000,) and f['d'][0] == 0; f.close()") == "ok"
        assert writer("f.close()") == "ok"
        assert new("f = h5py.File(path, 'r'); assert f.attrs['version'] == 2; "
                   "assert f['d'].shape == (29995,) and f['d'][0] == -1") == "ok"
        assert old("assert f.attrs['version'] == 1 and f['d'].shape == (40000,)") == "ok"
        # The chunk that has not changed can be read, the others only if they are cached.
        assert old("assert f['d'][10000] == 10000") == "ok"
        assert old("d = f['d'][:10]; assert d[0] == 0") != ""


def test_swmr(place, mounted):
    """A domain cannot be opened for SWMR writing. h5py says why, and the file stays usable. A SWMR
    reader sees the last commit. A new file can be written with SWMR."""
    path, new = mounted.file(NAME), mounted.file("home/new.h5")
    with h5py.File(path, "r+", libver="latest") as f:
        with pytest.raises(RuntimeError, match="Unable to start swmr writing .file superblock "
                                               "version - should be at least 3"):
            f.swmr_mode = True
        f["d"][5] = -1
    with pytest.raises(OSError, match="superblock version for SWMR is less than 3"):
        h5py.h5f.open(path.encode(), h5py.h5f.ACC_RDWR | h5py.h5f.ACC_SWMR_WRITE)
    assert not place.is_unchanged()
    with h5py.File(path, "r", swmr=True) as f:
        assert f["d"][5] == -1
    assert drafts(mounted) == []
    with h5py.File(new, "w", libver="latest") as f:
        d = f.create_dataset("x", (10,), "i4", chunks=(2,), maxshape=(None,))
        f.swmr_mode = True
        for i in range(10):
            d[i] = i
            d.flush()
    mounted.released()
    assert (place.bucket / "home/new.h5/.domain.json").exists()
    with h5py.File(new, "r") as f:
        assert list(f["x"]) == list(range(10))


def test_a_stale_reader_gets_errors_for_changed_chunks(place, tmp_path):
    """A reader in another mount has the old version open. The chunks are larger than what the
    kernel reads ahead, so the mount has only those that were read."""
    rows, name = 1 << 17, "home/large.h5"
    with h5py.File(tmp_path / "large.h5", "w") as f:
        f.create_dataset("d", data=np.arange(8 * rows), chunks=(rows,))
    run(HSIMAGE, "-b", place.bucket, "import", tmp_path / "large.h5", name, check=True)
    with rwmounts.RwMount(place.bucket, tmp_path, "metadata_ttl=0") as m, place.reader() as path:
        other = os.path.join(os.path.dirname(path), os.path.basename(name))
        with Python(other) as p:
            assert p(f"f = h5py.File(path, 'r'); d = f['d']; n = {rows}") == "ok"
            assert p("assert d[7 * n] == 7 * n") == "ok"
            with h5py.File(m.file(name), "r+") as f:
                f["d"][3 * rows + 1] = -1
                f["d"][7 * rows + 1] = -1
            # The changed chunk that the mount has in its memory is the old one.
            results = [p(f"assert d[{i} * n + 1] == {i} * n + 1") for i in (5, 7, 3, 1)]
            assert [r == "ok" for r in results] == [True, True, False, True], results
            assert p("fd = os.open(path, os.O_RDONLY); os.close(fd)") == "ok"
        with h5py.File(other, "r") as f:
            assert f["d"][3 * rows + 1] == f["d"][7 * rows + 1] == -1


# ---- programs that do not finish ----

def killed_writer(mounted):
    with Python(mounted.file(NAME)) as p:
        assert p("f = h5py.File(path, 'r+'); f.attrs['version'] = 2; f['d'][0] = -1") == "ok"
        assert p("f.flush()") == "ok"
        p.kill()
    left(mounted)


def left(mounted):
    """Waits until the last commit has failed, and the draft waits for a decision."""
    assert mounts.wait_for(lambda: mounted.stats()["drafts"]["left"] == 1), mounted.log()


def test_a_killed_writer_leaves_its_draft(place, mounted):
    path = mounted.file(NAME)
    killed_writer(mounted)
    assert place.is_unchanged() and version(path) == 1
    assert len(drafts(mounted)) == 1
    identity = os.path.basename(drafts(mounted)[0])
    assert identity in mounted.log()
    for flags in os.O_RDWR, os.O_WRONLY, os.O_WRONLY | os.O_APPEND:
        with pytest.raises(OSError) as failed:
            os.open(path, flags)
        assert failed.value.errno == errno.EBUSY
    assert re.search(f"{NAME}.*hsimage recover", mounted.log()), mounted.log()
    assert version(path) == 1
    listed = recover(mounted, "list")
    assert listed.returncode == 1 and identity in listed.stdout and NAME in listed.stdout
    recover(mounted, "drop", "--yes", identity, check=True)
    assert recover(mounted, "list").returncode == 0
    with h5py.File(path, "r+") as f:
        assert f.attrs["version"] == 1
        f.attrs["version"] = 3
    assert place.version() == version(path) == 3


def test_a_draft_outlives_the_mount(place, tmp_path):
    with rwmounts.RwMount(place.bucket, tmp_path, "metadata_ttl=0") as m:
        killed_writer(m)
    with rwmounts.RwMount(place.bucket, tmp_path, "metadata_ttl=0") as m:
        assert place.is_unchanged() and version(m.file(NAME)) == 1 and len(drafts(m)) == 1
        with pytest.raises(OSError) as failed:
            os.open(m.file(NAME), os.O_RDWR)
        assert failed.value.errno == errno.EBUSY
        drop_all(m)
        with h5py.File(m.file(NAME), "r+") as f:
            f.attrs["version"] = 2
        assert place.version() == 2
    assert drafts(m) == []


@pytest.mark.parametrize("how", ["rm", "cp", "mv"])
def test_a_file_with_a_draft_can_be_replaced(place, mounted, how):
    path = mounted.file(NAME)
    killed_writer(mounted)
    other = place.directory / "other.h5"
    with h5py.File(other, "w") as f:
        f.attrs["version"] = 7
    if how == "rm":
        os.unlink(path)
        assert not os.path.exists(path)
    if how == "mv":
        shutil.copy(other, mounted.file("home/b.h5"))
        os.rename(mounted.file("home/b.h5"), path)
    else:
        shutil.copy(other, path)
    assert version(path) == 7 and place.version() == 7
    if drafts(mounted):
        drop_all(mounted)
    with h5py.File(path, "r+") as f:
        f.attrs["version"] = 8
    assert place.version() == 8


# ---- programs without the mark ----

def test_without_locks(place, mounted):
    with Python(mounted.file(NAME), HDF5_USE_FILE_LOCKING="FALSE") as p:
        assert p("f = h5py.File(path, 'r+'); f.attrs['version'] = 2; f['d'][0] = -1") == "ok"
        assert place.is_unchanged()
        assert p("f.close()") == "ok"
    assert place.version() == 2


def changed_copy(place, mounted):
    """The file as a program would have changed it on a disk."""
    copy = place.directory / "copy.h5"
    shutil.copy(mounted.file(NAME), copy)
    with h5py.File(copy, "r+") as f:
        f.attrs["version"] = 2
        f["d"][CHUNK] = -1
        f["g/new"] = [1, 2, 3]
    return copy


@pytest.mark.parametrize("command", [
    "dd if={0} of={1} conv=notrunc bs=4096", "rsync --inplace --no-whole-file -I {0} {1}",
    "rsync --inplace -I {0} {1}", "dd if={0} of={1} conv=notrunc bs=512 oflag=sync"])
def test_bytes_from_a_copy(place, mounted, command):
    """The whole file is written, without the mark. It is committed at the last close."""
    copy = changed_copy(place, mounted)
    before = bucketstate.State(place.bucket)
    run("bash", "-c", command.format(copy, mounted.file(NAME)), check=True)
    mounted.released()
    assert rwmounts.file_differences(copy, mounted.file(NAME)) == []
    put, deleted = bucketstate.State(place.bucket).since(before)
    # The root group, /g, /g/new and its chunk, one chunk of /d, and the summary.
    assert len(put) == 6 and not deleted
    with place.reader() as path:
        assert rwmounts.file_differences(copy, path) == []


def refused(place, mounted, command):
    run("bash", "-c", command.format(mounted.file(NAME)))
    left(mounted)
    assert place.is_unchanged() and version(mounted.file(NAME)) == 1 and place.version() == 1
    assert len(drafts(mounted)) == 1, mounted.log()
    assert os.path.basename(drafts(mounted)[0]) in mounted.log()
    with pytest.raises(OSError) as failed:
        os.open(mounted.file(NAME), os.O_RDWR)
    assert failed.value.errno == errno.EBUSY
    drop_all(mounted)
    with h5py.File(mounted.file(NAME), "r+") as f:
        f.attrs["version"] = 2
    assert place.version() == 2


@pytest.mark.parametrize("command", [
    "echo more >> {0}", "printf text | dd of={0} conv=notrunc bs=1 seek=1024",
    "head -c 3000 /dev/zero | dd of={0} conv=notrunc",
    "python3 -c \"import os; os.ftruncate(os.open('{0}', os.O_RDWR), 5000)\""])
def test_damage_is_refused(place, mounted, command):
    """Bytes that no domain can hold. The bucket stays as it is, and the draft is kept."""
    refused(place, mounted, command)


@pytest.mark.parametrize("command,content", [
    (": > {0}", b""), ("truncate -s 0 {0}", b""), ("echo text > {0}", b"text\n"),
    ("python3 -c \"import os; f = os.open('{0}', os.O_RDWR); os.ftruncate(f, 0); "
     "os.write(f, b'text')\"", b"text")])
def test_emptied_and_written(place, mounted, command, content):
    """A program that has emptied the file replaces it, as on a disk."""
    run("bash", "-c", command.format(mounted.file(NAME)), check=True)
    mounted.released()
    with open(mounted.file(NAME), "rb") as f:
        assert f.read() == content
    assert not rwmounts.is_domain(mounted.file(NAME)) and drafts(mounted) == []


def test_reading_while_a_program_has_the_file_open(place, mounted):
    """Written chunks come from the draft, also if a page has bytes behind them: the objects in the
    bucket have other versions now."""
    path = mounted.file("home/pages.h5")
    with h5py.File(path, "w") as f:
        f.create_dataset("d", data=np.arange(200000, dtype="i8"), chunks=(20000,))
    mounted.released()
    fd = os.open(path, os.O_RDWR)
    try:
        with h5py.File(path, "r+") as f:
            f["d"][100000:180000] = -1
        with open(path, "rb") as f:
            assert len(f.read()) == os.fstat(fd).st_size
        with h5py.File(path, "r") as f:
            assert (f["d"][100000:180000] == -1).all() and f["d"][99999] == 99999
    finally:
        os.close(fd)
    mounted.released()


def test_equal_bytes(place, mounted):
    """Metadata that are written again are compared."""
    path = mounted.file(NAME)
    with open(path, "rb") as f:
        head = f.read(512)
    with open(path, "r+b") as f:
        f.write(head)
    mounted.released()
    assert place.is_unchanged() and drafts(mounted) == []


# ---- two mounts ----

@pytest.fixture(name="two")
def fixture_two(place, tmp_path):
    with contextlib.ExitStack() as stack:
        made = []
        for name in "one", "two":
            (tmp_path / name).mkdir()
            made.append(stack.enter_context(
                rwmounts.RwMount(place.bucket, tmp_path / name, "metadata_ttl=0")))
        yield made
    assert rwmounts.check(place.bucket).returncode == 0


def both(two, first, second):
    """Two programs that have one domain open at the same time. The results of their closes."""
    with Python(two[0].file(NAME)) as p, Python(two[1].file(NAME)) as q:
        for program, line in (p, first), (q, second):
            assert program("f = h5py.File(path, 'r+', libver='latest')") == "ok"
            assert program(line) == "ok"
        return p("f.close()"), q("f.close()")


def test_attributes_of_one_group(place, two):
    """The first close wins. The other one fails, and its draft is kept."""
    first, second = both(two, "f.attrs['one'] = 1", "f.attrs['two'] = 2")
    assert first == "ok" and second != "ok"
    two[1].released()
    assert drafts(two[0]) == [] and len(drafts(two[1])) == 1
    assert "ESTALE" in second or "Stale" in second or "close" in second, second
    with place.reader() as path, h5py.File(path, "r") as f:
        assert sorted(f.attrs) == ["one", "version"]
    with h5py.File(two[1].file(NAME), "r") as f:
        assert sorted(f.attrs) == ["one", "version"]
    drop_conflicts(two[1])
    with h5py.File(two[1].file(NAME), "r+") as f:
        f.attrs["two"] = 2
    with h5py.File(two[0].file(NAME), "r") as f:
        assert sorted(f.attrs) == ["one", "two", "version"]


def test_the_system_call_reports_the_conflict(place, two):
    """close(2) returns ESTALE."""
    copy, marked = place.directory / "copy.h5", place.directory / "marked.h5"
    shutil.copy(two[1].file(NAME), copy)
    with h5py.File(copy, "r+") as f:
        f.attrs["two"] = 2
        f.flush()
        shutil.copy(copy, marked)
    fd = os.open(two[1].file(NAME), os.O_RDWR)
    with h5py.File(two[0].file(NAME), "r+") as f:
        f.attrs["one"] = 1
    os.write(fd, marked.read_bytes())
    os.pwrite(fd, copy.read_bytes(), 0)
    with pytest.raises(OSError) as failed:
        os.close(fd)
    assert failed.value.errno == errno.ESTALE
    two[1].released()
    assert version(two[1].file(NAME)) == 1 and len(drafts(two[1])) == 1
    drop_conflicts(two[1])


def test_different_chunks(place, two):
    assert both(two, "f['d'][5] = -1", "f['d'][10005] = -2") == ("ok", "ok")
    for path in two[0].file(NAME), two[1].file(NAME):
        with h5py.File(path, "r") as f:
            assert f["d"][5] == -1 and f["d"][10005] == -2
    assert drafts(two[0]) == drafts(two[1]) == []


def test_one_chunk(place, two):
    """Both have read the chunk, so its version is known."""
    lines = "assert f['d'][1] == 1; f['d'][5] = -1", "assert f['d'][1] == 1; f['d'][6] = -2"
    first, second = both(two, *lines)
    assert first == "ok" and second != "ok"
    with place.reader() as path, h5py.File(path, "r") as f:
        assert list(f["d"][5:7]) == [-1, 6]
    assert len(drafts(two[1])) == 1
    drop_conflicts(two[1])


def test_one_links_what_the_other_unlinks(place, two):
    assert both(two, "f['h'] = f['g/x']", "del f['g/x']") == ("ok", "ok")
    for m in two:
        m.released()
    with place.reader() as path, h5py.File(path, "r") as f:
        assert f["h"][()] == 1 and "x" not in f["g"]
    for m in two:
        m.stop()
        m.start()
    with place.reader() as path, h5py.File(path, "r") as f:
        assert f["h"][()] == 1
