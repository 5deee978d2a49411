# SPDX-License-Identifier: Apache-2.0
"""hsimage recover commit: drafts that programs left unfinished are stored in the bucket, or
refused, and then they are as before."""
import hashlib
import os
import pty
import shutil
import signal
import subprocess
import sys

import h5py
import numpy as np
import pytest

import bucketstate
import hsds_validator
import imports
import mounts
import oracle
import recovery
import rwmounts
from mounts import HSIMAGE, Mount, run, wait_for
from programs import Python
from recovery import NAME, listed, recover

ROWS, CHUNK = 4000, 1000
BYTES = os.urandom(100_000)
EBUSY = 16
STATUS = {0: 20, 1: 20, 2: 11, 3: 11}       # offset of the mark in superblocks of each version

CHANGES = {
    "values": "f['d'][5] = -1; f['z'][:10] = 7",
    "attribute": "f['g'].attrs['new'] = 'text'",
    "objects": "f['more/x'] = list(range(100)); f['g/y'] = 1; f['alias'] = f['d']",
    "remove": "del f['z']; del f['g'].attrs['a']",
    "grow": "f['d'].resize((6000,)); f['d'][5500:] = 3",
    "strings": "f['g/text'][0] = 'other text'",
}
LIBVERS = ("earliest", "latest")

fixture_bucket, fixture_mount = recovery.fixture_bucket, recovery.fixture_mount


def write_file(path):
    with h5py.File(path, "w") as f:
        f.create_dataset("d", data=np.arange(ROWS), chunks=(CHUNK,), maxshape=(None,))
        f.create_dataset("z", data=np.arange(100), chunks=(30,), compression="gzip")
        f.create_dataset("untouched", data=np.arange(50), chunks=(10,))
        f["g/text"] = ["variable", "length"]
        f["g"].attrs["a"] = 1
        f["still/there"] = 2


@pytest.fixture(name="leave")
def fixture_leave(mount, tmp_path):
    """Kills a program that changes the domain, and its mount. Returns the draft, and what h5py
    finds in a native file after the same change."""
    def call(change, libver="earliest", keep=False):
        m = mount()
        with Python(m.file(NAME)) as p:
            assert p(f"f = h5py.File(path, 'r+', libver={libver!r})") == "ok"
            assert p(f"{change}; f.flush()") == "ok"
            p.kill()
        if not keep:
            m.kill()
        assert wait_for(lambda: [i["state"] for i in listed(tmp_path)] == ["waiting"]), m.log()
        item, = listed(tmp_path)
        return (item["id"], m) if keep else item["id"]
    return call


def commit(tmp_path, draft, *options, **more):
    return recover(tmp_path, "commit", "--yes", *options, draft, **more)


def directory(tmp_path, draft):
    found, = [at for at, _, _ in os.walk(tmp_path / "journal") if os.path.basename(at) == draft]
    return found


def files(place):
    """The bytes of all files of a draft."""
    found = {}
    for name in sorted(os.listdir(place)):
        with open(os.path.join(place, name), "rb") as f:
            found[name] = hashlib.sha256(f.read()).digest()
    return found


def after_change(tmp_path, change):
    path = tmp_path / "changed.h5"
    shutil.copy(tmp_path / "a.h5", path)
    with h5py.File(path, "r+") as f:
        exec(change, {"f": f})      # pylint: disable=exec-used
    return path


# ---- a domain that was changed in place ----

@pytest.mark.sampled(keep=4)
@pytest.mark.parametrize("libver", LIBVERS)
@pytest.mark.parametrize("name", CHANGES)
def test_a_killed_writer(leave, bucket, tmp_path, name, libver):
    """The bucket gets what an export shows, and nothing else changes."""
    before, old = bucketstate.State(bucket), oracle.Bucket(bucket).domain(NAME)
    draft = leave(CHANGES[name], libver)
    assert bucketstate.State(bucket).digest == before.digest
    recover(tmp_path, "export", draft, tmp_path / "out.h5", check=True)
    done = commit(tmp_path, draft)
    assert done.stderr == "" and (done.returncode, done.stdout) == (0, "")
    assert listed(tmp_path) == []
    run(HSIMAGE, "-b", bucket, "export", NAME, tmp_path / "now.h5", check=True)
    clear(tmp_path / "out.h5")
    assert rwmounts.file_differences(tmp_path / "out.h5", tmp_path / "now.h5") == []
    assert rwmounts.file_differences(after_change(tmp_path, CHANGES[name]),
                                     tmp_path / "now.h5") == []
    assert rwmounts.check(bucket).returncode == 0
    assert hsds_validator.check_domain(os.fspath(bucket), NAME) == []
    state, now = bucketstate.State(bucket), oracle.Bucket(bucket).domain(NAME)
    assert state.needless(before) == []
    put, _ = state.since(before)
    for path in ("untouched", "still", "still/there"):
        oid = bucketstate.id_of(old, path)
        assert bucketstate.id_of(now, path) == oid
        assert not [key for key in put if key.startswith(oracle.storage_key(oid))]
    if name == "attribute":
        assert put == {oracle.document_key(bucketstate.id_of(old, "g"))}
    if name == "values":
        found = now.objects[bucketstate.id_of(now, "d")].data()
        assert found.view("<i8").tolist() == [-1 if n == 5 else n for n in range(ROWS)]
        folder = oracle.storage_key(bucketstate.id_of(old, "d"))
        assert {key for key in put if key.startswith(folder)} == {f"{folder}/0"}
    assert bucketstate.left_over(bucket) == []


def clear(path):
    """Removes the mark, as h5clear does: otherwise libhdf5 refuses files of version 3."""
    run("h5clear", "-s", path)


def test_show_warns(leave, tmp_path):
    draft = leave(CHANGES["values"])
    shown = recover(tmp_path, "show", draft, check=True).stdout
    line, = [x for x in shown.splitlines() if x.startswith("warning: ")]
    assert "the data may be wrong" in line and f"`hsimage recover commit {draft}`" in line


def test_a_mount_that_goes_on(leave, tmp_path):
    """The program alone was killed. The domain cannot be changed until the commit. Then the mount
    shows the new version, and programs can change it."""
    draft, m = leave(CHANGES["values"], keep=True)
    path = m.file(NAME)
    assert os.getxattr(path, "user.hsds.unfinished").decode() == draft
    with pytest.raises(OSError) as failure:
        os.close(os.open(path, os.O_RDWR))
    assert failure.value.errno == EBUSY
    assert f"`hsimage recover commit {draft}`" in m.log()
    with h5py.File(path, "r") as f:
        assert f["d"][5] == 5
    commit(tmp_path, draft, check=True)
    assert "user.hsds.unfinished" not in os.listxattr(path)
    with h5py.File(path, "r") as f:
        assert f["d"][5] == -1 and f["z"][3] == 7
    with h5py.File(path, "r+") as f:
        f["d"][6] = -2
    with h5py.File(path, "r") as f:
        assert f["d"][5:7].tolist() == [-1, -2]
    assert listed(tmp_path) == []


def test_a_reader_keeps_its_version(leave, tmp_path):
    draft, m = leave(CHANGES["attribute"], keep=True)
    with h5py.File(m.file(NAME), "r") as f:
        assert list(f["g"].attrs) == ["a"]
        commit(tmp_path, draft, check=True)
        assert list(f["g"].attrs) == ["a"] and f["d"][ROWS - 1] == ROWS - 1
    with h5py.File(m.file(NAME), "r") as f:
        assert sorted(f["g"].attrs) == ["a", "new"]


def refused(tmp_path, bucket, draft, *texts):
    """The commit fails, and neither the bucket nor the draft has changed."""
    place = directory(tmp_path, draft)
    before, state = files(place), bucketstate.State(bucket).digest
    done = commit(tmp_path, draft)
    assert done.returncode == 1 and done.stdout == ""
    for text in (draft, *texts):
        assert text in done.stderr, done.stderr
    assert files(place) == before and bucketstate.State(bucket).digest == state


@pytest.mark.parametrize("how", ("attribute", "chunk", "removed", "replaced"))
def test_the_domain_has_changed_since(leave, bucket, tmp_path, how):
    draft = leave(CHANGES["values"])
    with Mount(bucket, tmp_path / "other", "rw") as m:
        if how in ("removed", "replaced"):
            os.unlink(m.file(NAME))
        if how == "replaced":
            write_file(m.file(NAME))
        if how == "attribute":
            with h5py.File(m.file(NAME), "r+") as f:
                f["still"].attrs["x"] = 1
        if how == "chunk":
            with h5py.File(m.file(NAME), "r+") as f:
                f["d"][ROWS - 1] = 1
    refused(tmp_path, bucket, draft, "has changed since", "spool.*", f"recover drop {draft}")


def write_at(place, name, offset, data):
    with open(os.path.join(place, name), "r+b") as f:
        f.seek(offset)
        f.write(data)


def test_a_damaged_spool(leave, bucket, tmp_path):
    draft = leave(CHANGES["values"])
    place = directory(tmp_path, draft)
    with open(os.path.join(place, "spool.0"), "r+b") as f:
        f.seek(30)
        byte = f.read(1)
        f.seek(30)
        f.write(bytes([byte[0] ^ 1]))
    refused(tmp_path, bucket, draft, "spool.0 is damaged")


@pytest.mark.parametrize("damage", ("d", "g"))
def test_a_damaged_file(mount, bucket, tmp_path, damage):
    """The whole file is scanned, although the program has not touched this part otherwise."""
    m = mount()
    with h5py.File(m.file(NAME), "r") as f:
        at = h5py.h5o.get_info(f[damage].id).addr
    fd = os.open(m.file(NAME), os.O_RDWR)
    os.pwrite(fd, b"\1", STATUS[superblock(fd)])
    os.pwrite(fd, b"\xff" * 16, at)
    m.kill()
    with pytest.raises(OSError):
        os.close(fd)
    item, = listed(tmp_path)
    refused(tmp_path, bucket, item["id"], "it is damaged", f"recover export {item['id']} FILE",
            f"recover drop {item['id']}")


def superblock(fd):
    return os.pread(fd, 1, 8)[0]


def test_no_hdf5_file_any_more(mount, bucket, tmp_path):
    m = mount()
    fd = os.open(m.file(NAME), os.O_RDWR)
    os.pwrite(fd, b"no signature", 0)
    m.kill()
    with pytest.raises(OSError):
        os.close(fd)
    item, = listed(tmp_path)
    refused(tmp_path, bucket, item["id"], "not an HDF5 file")


def test_an_end_that_is_missing(mount, bucket, tmp_path):
    m = mount()
    fd = os.open(m.file(NAME), os.O_RDWR)
    os.pwrite(fd, b"\1", STATUS[superblock(fd)])
    os.ftruncate(fd, os.fstat(fd).st_size - 1)
    m.kill()
    with pytest.raises(OSError):
        os.close(fd)
    item, = listed(tmp_path)
    refused(tmp_path, bucket, item["id"], "the file is truncated")


VIRTUAL = ("layout = h5py.VirtualLayout((5,), 'i8'); "
           "layout[:] = h5py.VirtualSource('other.h5', 'd', (5,)); "
           "f.create_virtual_dataset('v', layout)")


def test_what_a_domain_cannot_hold(leave, bucket, tmp_path):
    draft = leave(VIRTUAL)
    refused(tmp_path, bucket, draft, f"recover export {draft} FILE")


def test_why_a_change_was_refused(mount, tmp_path):
    """The reason is known while the mount lives, after it, and to the next one."""
    reason = "it could not be committed: /v: a domain cannot hold it: a virtual dataset"
    m = mount()
    done = run(sys.executable, "-c", f"import h5py; f = h5py.File({m.file(NAME)!r}, 'r+'); "
               + VIRTUAL + "; f.close()")
    assert "Operation not supported" in done.stderr
    for _ in range(2):
        item, = listed(tmp_path)
        assert item["state"] == "waiting" and item["why"].startswith(reason), item
        shown = recover(tmp_path, "show", item["id"], check=True).stdout
        assert f"state: waiting: {reason}" in shown
        m.stop()
        m = mount()
        assert wait_for(lambda: m.left() == 1)
        assert f"draft {item['id']} of {NAME} is left in the journal: {reason}" in m.log()


def test_a_reason_with_foreign_bytes(mount, tmp_path):
    m = mount()
    fd = os.open(m.file("home/new.dat"), os.O_RDWR | os.O_CREAT)
    os.write(fd, b"1")
    m.kill()
    with pytest.raises(OSError):
        os.close(fd)
    item, = listed(tmp_path)
    why, = tmp_path.glob(f"*/2/*/{item['id']}")
    (why / "why").write_bytes(b"\x1b[2J\xff" + b"x" * 5000)
    item, = listed(tmp_path)
    assert item["why"].startswith("it could not be committed: \x1b[2J")
    assert len(item["why"]) < 2000
    for words in ("list",), ("show", item["id"]):
        text = recover(tmp_path, *words).stdout
        assert "[2J" in text and text.replace("\n", "").isprintable()


def test_another_bucket(leave, bucket, tmp_path):
    draft = leave(CHANGES["values"])
    other = imports.make_bucket(tmp_path / "other")
    done = commit(tmp_path, draft, "-b", other)
    assert done.returncode == 1 and f"is not the bucket of draft {draft}" in done.stderr
    os.rename(bucket, tmp_path / "away")
    done = commit(tmp_path, draft)
    assert done.returncode == 1 and draft in done.stderr
    os.rename(tmp_path / "away", bucket)
    commit(tmp_path, draft, check=True)
    assert listed(tmp_path) == []


def test_a_draft_in_use(mount, tmp_path):
    m = mount()
    with h5py.File(m.file(NAME), "r+") as f:
        f["d"][0] = 3
        f.flush()
        item, = listed(tmp_path)
        done = commit(tmp_path, item["id"])
        assert done.returncode == 1
        assert "another process has the draft open: close the file, or unmount" in done.stderr
    assert listed(tmp_path) == []


def test_nothing_changed(mount, bucket, tmp_path):
    """The program has written what was there."""
    before = bucketstate.State(bucket).digest
    m = mount()
    fd = os.open(m.file(NAME), os.O_RDWR)
    os.pwrite(fd, os.pread(fd, 8, 0), 0)
    m.kill()
    with pytest.raises(OSError):
        os.close(fd)
    item, = listed(tmp_path)
    commit(tmp_path, item["id"], check=True)
    assert bucketstate.State(bucket).digest == before and listed(tmp_path) == []


# ---- asking ----

@pytest.mark.parametrize("answer", ["y\n", "n\n", "\n", "\x04"])
def test_it_asks(leave, bucket, tmp_path, answer):
    draft = leave(CHANGES["attribute"])
    before = bucketstate.State(bucket).digest
    done = recover(tmp_path, "commit", draft)
    assert done.returncode == 1 and "--yes commits without a question" in done.stderr
    fd, theirs = pty.openpty()
    with subprocess.Popen([HSIMAGE, "recover", "--journal-dir", tmp_path / "journal", "commit",
                           draft], stdin=theirs, stderr=subprocess.PIPE, text=True) as asked:
        os.close(theirs)
        os.write(fd, answer.encode())
        _, text = asked.communicate(timeout=mounts.PATIENCE)
    os.close(fd)
    assert "the data may be wrong" in text and f"Commit draft {draft} of {NAME}, " in text
    assert (listed(tmp_path) == []) == (answer == "y\n")
    assert (bucketstate.State(bucket).digest != before) == (answer == "y\n")


# ---- other files ----

def left_file(mount, tmp_path, name, data, flags=os.O_CREAT | os.O_TRUNC):
    """A mount is killed while a program writes a file. Returns the draft."""
    m = mount()
    fd = os.open(m.file(name), os.O_RDWR | flags, 0o644)
    os.ftruncate(fd, 0 if flags & os.O_TRUNC else os.fstat(fd).st_size)
    assert os.pwrite(fd, data, 0) == len(data)
    m.kill()
    with pytest.raises(OSError):
        os.close(fd)
    item, = [i for i in listed(tmp_path) if i["file"] == name]
    return item["id"]


@pytest.fixture(name="hdf5")
def fixture_hdf5(tmp_path):
    path = tmp_path / "new.h5"
    with h5py.File(path, "w", libver="latest") as f:
        for n in range(6):
            f.create_dataset(f"group{n % 3}/data{n}", data=np.arange(n, n + 1000), chunks=(250,))
    return path


def test_a_new_domain(mount, bucket, hdf5, tmp_path):
    draft = left_file(mount, tmp_path, "home/new.h5", hdf5.read_bytes())
    done = commit(tmp_path, draft[:8])
    assert (done.returncode, done.stderr) == (0, "")
    assert listed(tmp_path) == []
    m = mount()
    assert run("h5diff", hdf5, m.file("home/new.h5"), check=True).stdout == ""
    assert rwmounts.check(bucket).returncode == 0


@pytest.mark.parametrize("kind", ("text", "empty", "cut", "marked"))
def test_a_new_plain_file(mount, bucket, hdf5, tmp_path, kind):
    data = {"text": BYTES, "empty": b"", "cut": hdf5.read_bytes()[:-10],
            "marked": marked(hdf5.read_bytes())}[kind]
    draft = left_file(mount, tmp_path, "home/new", data)
    done = commit(tmp_path, draft, check=True)
    assert ("stored as a plain file: " in done.stderr) == (kind in ("cut", "marked"))
    assert (bucket / "home/new").read_bytes() == data
    assert listed(tmp_path) == []


def marked(data):
    """A program has the file open."""
    return data[:11] + b"\1" + data[12:]


def test_a_domain_is_replaced(mount, bucket, hdf5, tmp_path):
    draft = left_file(mount, tmp_path, NAME, hdf5.read_bytes())
    commit(tmp_path, draft, check=True)
    m = mount()
    assert run("h5diff", hdf5, m.file(NAME), check=True).stdout == ""
    m.stop()
    assert bucketstate.left_over(bucket) == []      # the old storage is deleted


@pytest.mark.parametrize("kind", ("text", "empty", "cut", "marked", "damaged"))
def test_a_part_replaces_no_domain(mount, bucket, hdf5, tmp_path, kind):
    """A program was killed while it wrote a new file over the domain."""
    whole = hdf5.read_bytes()
    data = {"text": BYTES, "empty": b"", "cut": whole[:-10], "marked": marked(whole),
            "damaged": whole[:48] + bytes(2000) + whole[2048:]}[kind]
    draft = left_file(mount, tmp_path, NAME, data)
    refused(tmp_path, bucket, draft, "would replace a domain", f"recover export {draft} FILE")


def put_object(bucket, data=b"old bytes"):
    (bucket / "home/notes").write_bytes(data)


def test_a_plain_file_is_replaced(mount, bucket, hdf5, tmp_path):
    put_object(bucket)
    draft = left_file(mount, tmp_path, "home/notes", hdf5.read_bytes()[:-10])
    refused(tmp_path, bucket, draft, "would replace a plain file: its end is missing")
    recover(tmp_path, "drop", "--yes", draft, check=True)
    draft = left_file(mount, tmp_path, "home/notes", b"new")
    commit(tmp_path, draft, check=True)
    assert (bucket / "home/notes").read_bytes() == b"new"


def test_a_plain_file_is_changed(mount, bucket, tmp_path):
    put_object(bucket)
    draft = left_file(mount, tmp_path, "home/notes", b"new", 0)
    commit(tmp_path, draft, check=True)
    assert (bucket / "home/notes").read_bytes() == b"new bytes"
    assert listed(tmp_path) == []


@pytest.mark.parametrize("flags", (0, os.O_CREAT | os.O_TRUNC))
def test_a_plain_file_has_changed_since(mount, bucket, tmp_path, flags):
    put_object(bucket)
    draft = left_file(mount, tmp_path, "home/notes", b"new", flags)
    text = "another program has changed it" if flags else "has changed since"
    put_object(bucket, b"theirs")
    refused(tmp_path, bucket, draft, text)
    os.unlink(bucket / "home/notes")
    refused(tmp_path, bucket, draft, text)


@pytest.mark.parametrize("theirs", ("object", "domain"))
def test_a_name_that_is_taken(mount, bucket, hdf5, tmp_path, theirs):
    """Until it is free again."""
    draft = left_file(mount, tmp_path, "home/new.h5", hdf5.read_bytes())
    if theirs == "object":
        (bucket / "home/new.h5").write_bytes(b"theirs")
    else:
        run(HSIMAGE, "-b", bucket, "import", tmp_path / "a.h5", "home/new.h5", check=True)
    refused(tmp_path, bucket, draft, "another program has changed it",
            f"recover export {draft} FILE", f"recover drop {draft}")
    if theirs == "object":
        os.unlink(bucket / "home/new.h5")
    else:
        shutil.rmtree(bucket / "home/new.h5")
    commit(tmp_path, draft, check=True)
    assert run("h5diff", hdf5, mount().file("home/new.h5"), check=True).stdout == ""


def test_several(mount, bucket, tmp_path):
    """One that fails does not stop the others."""
    first = left_file(mount, tmp_path, "home/x", b"1")
    second = left_file(mount, tmp_path, "home/y", b"2")
    done = recover(tmp_path, "commit", "-y", first, "ffff", second)
    assert done.returncode == 1 and "ffff: there is no such draft" in done.stderr
    assert (bucket / "home/x").read_bytes() + (bucket / "home/y").read_bytes() == b"12"


def test_set_aside(mount, bucket, tmp_path):
    draft = left_file(mount, tmp_path, "home/x", BYTES)
    write_at(directory(tmp_path, draft), "map", 20, b"\xff")
    for _ in range(2):
        done = commit(tmp_path, draft)
        assert done.returncode == 1 and "spool.*, each byte at its own offset" in done.stderr
    assert not os.path.exists(bucket / "home/x")


def test_a_machine_that_was_started_again(mount, bucket, tmp_path):
    """What was durable counts."""
    import journals
    journal = journals.Journal(tmp_path / "journal", bucket)
    draft = journal.add("home/x", [(0, BYTES)], boot=bytes(16), sync=True)
    with open(journal.place(draft, "map"), "ab") as f:
        f.write(journals.record(journals.WRITE, 0, 0, 5) + b"torn")
    commit(tmp_path, draft, check=True)
    assert (bucket / "home/x").read_bytes() == BYTES and listed(tmp_path) == []


# ---- the command is killed, or the bucket fails ----

EVERYTHING = "f['d'][5] = -1; f['z'][:10] = 7; f['g'].attrs['new'] = 'text'; " \
             "f['more/x'] = list(range(100)); del f['still']"
STOPPED = 0.4       # seconds in which a command that works sends its next request


def start_commit(tmp_path, draft, number):
    """The store does not answer from this request on. Then the command is killed."""
    with subprocess.Popen([HSIMAGE, "-o", f"debug_fault=delay:{number}+:600000", "recover",
                           "--journal-dir", tmp_path / "journal", "commit", "--yes", draft],
                          stderr=subprocess.DEVNULL) as p:
        try:
            p.wait(STOPPED)
        except subprocess.TimeoutExpired:
            p.kill()
    return p.returncode


def check_either(tmp_path, bucket, old, new):
    """The domain is the old or the new one. Returns which."""
    out = tmp_path / "now.h5"
    run(HSIMAGE, "-b", bucket, "export", "--force", "--output", out, NAME, check=True)
    found = {n: rwmounts.file_differences(path, out) for n, path in (("old", old), ("new", new))}
    same = [n for n, lines in found.items() if not lines]
    assert same, found
    assert rwmounts.check(bucket).returncode == 0
    return same[0]


def finish(mount, tmp_path, draft, by):
    """After the command was killed: the next mount completes or leaves the commit, and the command
    completes what is left. Returns whether the mount has left it."""
    if by == "mount":
        m = mount()
        assert wait_for(lambda: listed(tmp_path) == [] or m.left()), m.log()
        m.stop()
    is_left = bool(listed(tmp_path))
    if is_left:
        commit(tmp_path, draft, check=True)
    assert listed(tmp_path) == []
    return is_left


@pytest.mark.sampled
@pytest.mark.parametrize("number", range(1, 44))
def test_killed_at_each_request(leave, mount, bucket, tmp_path, number):
    """At every moment the bucket is a domain that the service would serve, and nothing is lost."""
    new = after_change(tmp_path, EVERYTHING)
    draft = leave(EVERYTHING)
    status = start_commit(tmp_path, draft, number)
    assert status in (0, -signal.SIGKILL)
    assert hsds_validator.check_domain(os.fspath(bucket), NAME) == []
    waits = [i["id"] for i in listed(tmp_path)]
    assert waits in ([draft], [])
    # At last it deletes the objects that were removed.
    assert waits or check_either(tmp_path, bucket, tmp_path / "a.h5", new) == "new"
    has_plan = waits and os.path.exists(os.path.join(directory(tmp_path, draft), "plan"))
    is_left = finish(mount, tmp_path, draft, "mount" if number % 2 else "command")
    assert not (has_plan and number % 2 and is_left)
    assert check_either(tmp_path, bucket, tmp_path / "a.h5", new) == "new"
    assert hsds_validator.check_domain(os.fspath(bucket), NAME) == []


@pytest.mark.sampled
@pytest.mark.parametrize("number", range(1, 44, 3))
def test_each_request_fails(leave, bucket, tmp_path, number):
    """From then on. The message says whether the bucket may have changed."""
    new = after_change(tmp_path, EVERYTHING)
    draft = leave(EVERYTHING)
    before = bucketstate.State(bucket).digest
    done = commit(tmp_path, draft, "-o", f"debug_fault=fail:{number}+:EACCES")
    if done.returncode == 0:
        assert listed(tmp_path) == []
    elif "the commit has begun" not in done.stderr:
        assert bucketstate.State(bucket).digest == before
    else:
        assert os.path.exists(os.path.join(directory(tmp_path, draft), "plan"))
    if listed(tmp_path):
        commit(tmp_path, draft, check=True)
    assert check_either(tmp_path, bucket, tmp_path / "a.h5", new) == "new"
    assert listed(tmp_path) == []


@pytest.mark.sampled
@pytest.mark.parametrize("number", range(1, 30, 2))
def test_a_new_domain_and_a_kill(mount, bucket, hdf5, tmp_path, number):
    draft = left_file(mount, tmp_path, "home/new.h5", hdf5.read_bytes())
    status = start_commit(tmp_path, draft, number)
    assert status in (0, -signal.SIGKILL)
    assert number > 10 or [i["id"] for i in listed(tmp_path)] == [draft]
    finish(mount, tmp_path, draft, "mount" if number % 4 == 1 else "command")
    out = tmp_path / "now.h5"
    run(HSIMAGE, "-b", bucket, "export", "--force", "--output", out, "home/new.h5", check=True)
    assert run("h5diff", hdf5, out, check=True).stdout == ""
    assert rwmounts.check(bucket).returncode == 0
    assert bucketstate.left_over(bucket) == []


def test_interrupted(leave, mount, bucket, tmp_path):
    """By the user: the command ends, and the draft is still there."""
    new = after_change(tmp_path, EVERYTHING)
    draft = leave(EVERYTHING)
    with subprocess.Popen([HSIMAGE, "-o", "debug_fault=delay:1+:300", "recover", "--journal-dir",
                           tmp_path / "journal", "commit", "--yes", draft],
                          stderr=subprocess.PIPE, text=True) as p:
        place = os.path.join(directory(tmp_path, draft), "plan")
        assert wait_for(lambda: os.path.exists(place))
        p.send_signal(signal.SIGINT)
        _, text = p.communicate(timeout=mounts.PATIENCE)
    assert p.returncode == 1 and "the commit has begun" in text
    finish(mount, tmp_path, draft, "mount")
    assert check_either(tmp_path, bucket, tmp_path / "a.h5", new) == "new"
