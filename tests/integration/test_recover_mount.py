# SPDX-License-Identifier: Apache-2.0
"""A daemon that is killed while programs write: what the next mount finishes, what it leaves, and
what hsimage recover makes of that."""
import os
import shutil
import threading

import h5py
import pytest

import journals
import mkbucket
import recovery
from mounts import HSIMAGE, run, wait_for
from recovery import listed, recover

BYTES = os.urandom(300_000)
SLOW = "debug_fault=delay:1+:300@{}"      # ms for each request
DATASETS = 12

fixture_mount = recovery.fixture_mount


@pytest.fixture
def bucket(tmp_path):
    root = tmp_path / "bucket"
    with mkbucket.Maker(root) as made:
        made.folder("home")
        made.domain("home/old.h5")
        made.put("home/notes.txt", b"first notes\n")
    return root


@pytest.fixture
def hdf5(tmp_path):
    path = tmp_path / "new.h5"
    with h5py.File(path, "w") as f:
        for n in range(DATASETS):
            f.create_dataset(f"group{n % 3}/data{n}", data=list(range(n, n + 1000)), chunks=(250,))
    return path


def in_background(function, *arguments):
    def call():
        try:
            function(*arguments)
        except OSError:
            pass
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread


def write_without_end(path, data, flags=os.O_CREAT | os.O_TRUNC):
    fd = os.open(path, os.O_RDWR | flags, 0o644)
    assert os.write(fd, data) == len(data)
    return fd


def end(fd):
    with pytest.raises(OSError):
        os.close(fd)


def test_a_file_that_is_open(mount, bucket, tmp_path):
    m = mount()
    fd = write_without_end(m.file("home/new.dat"), BYTES)
    item, = listed(tmp_path)
    assert item["state"] == "in use" and item["file"] == "home/new.dat"
    m.kill()
    end(fd)
    m = mount()
    assert wait_for(lambda: m.left() == 1), m.log()
    assert not os.path.exists(m.file("home/new.dat"))
    assert not os.path.exists(bucket / "home/new.dat")
    item, = listed(tmp_path)
    assert (item["state"], item["size"]) == ("waiting", len(BYTES))
    assert item["bucket"] == str(bucket)
    warning, = [line for line in m.log().splitlines() if item["id"] in line]
    assert "home/new.dat" in warning and "had not closed it" in warning
    assert "`hsimage recover list`" in warning
    recover(tmp_path, "export", item["id"][:8], tmp_path / "out", check=True)
    assert (tmp_path / "out").read_bytes() == BYTES
    recover(tmp_path, "drop", "--yes", item["id"], check=True)
    assert m.stop() == 0
    m = mount()
    assert listed(tmp_path) == [] and m.left() == 0


def test_a_commit_of_a_domain(mount, bucket, hdf5, tmp_path):
    """Killed when some of its objects are in the bucket. The next mount finishes it, and leaves
    nothing else behind."""
    m = mount(SLOW.format("db/*"))
    before = len(os.listdir(bucket / "db"))
    copying = in_background(shutil.copyfile, hdf5, m.file("home/new.h5"))
    assert wait_for(lambda: len(os.listdir(bucket / "db")) > before), m.log()
    m.kill()
    copying.join()
    assert not os.path.exists(bucket / "home/new.h5")
    item, = listed(tmp_path)
    assert "the next mount finishes it" in item["why"]
    m = mount()
    assert wait_for(lambda: os.path.exists(m.file("home/new.h5"))), m.log()
    assert run("h5diff", hdf5, m.file("home/new.h5"), check=True).stdout == ""
    assert wait_for(lambda: listed(tmp_path) == [])
    assert m.stop() == 0        # deletes what the first attempt has stored
    assert len(os.listdir(bucket / "db")) == before + 1
    assert run(HSIMAGE, "check", bucket / "home").returncode == 0


@pytest.mark.parametrize("keys, number", [("db/*", n) for n in (1, 2, 10, 40, 60)] +
                         [("home/new.h5/*", n) for n in range(1, 6)])
def test_each_part_of_a_commit(mount, hdf5, tmp_path, keys, number):
    """Killed at one of its requests. Then the next mount finishes the commit, or the file waits,
    whole, in the journal, unless the program was killed with it before it had copied everything."""
    m = mount(f"debug_fault=delay:{number}+:20000@{keys}")
    copying = in_background(shutil.copyfile, hdf5, m.file("home/new.h5"))
    copying.join(1)
    items = listed(tmp_path)
    m.kill()
    copying.join()
    m = mount()
    if wait_for(lambda: os.path.exists(m.file("home/new.h5")), 2):
        out = m.file("home/new.h5")
    else:
        assert keys.startswith("home/"), m.log()
        assert [i["id"] for i in listed(tmp_path)] == [i["id"] for i in items]
        if not items:
            return
        out = tmp_path / "out.h5"
        recover(tmp_path, "export", items[0]["id"], out, check=True)
        assert out.read_bytes() == hdf5.read_bytes()
    assert run("h5diff", hdf5, out, check=True).stdout == ""


def change_notes(m):
    os.close(write_without_end(m.file("home/notes.txt"), b"other", 0))


@pytest.mark.parametrize("number", range(2, 6))
def test_a_change_of_a_plain_object(mount, bucket, tmp_path, number):
    """Killed at one of its requests."""
    m = mount(f"debug_fault=delay:{number}+:20000@home/notes.txt")
    changing = in_background(change_notes, m)
    changing.join(1)
    begun = listed(tmp_path)
    m.kill()
    changing.join()
    m = mount()
    assert wait_for(lambda: listed(tmp_path) == [] or m.left(), 10)
    items = listed(tmp_path)
    if items:
        recover(tmp_path, "export", items[0]["id"], tmp_path / "out", check=True)
        assert (tmp_path / "out").read_bytes() == b"other notes\n"
    else:
        notes = (bucket / "home/notes.txt").read_bytes()
        assert notes == b"other notes\n" or (notes == b"first notes\n" and not begun)


def test_a_bucket_that_refuses(mount, bucket, hdf5, tmp_path):
    """A commit that fails is tried again at the end, and by the next mount."""
    m = mount("debug_fault=fail:3+:EACCES@db/*")
    with pytest.raises(PermissionError):
        shutil.copyfile(hdf5, m.file("home/new.h5"))
    m.stop()
    item, = listed(tmp_path)
    assert item["why"].startswith("it could not be committed: ") and "injected" in item["why"]
    m = mount()
    assert wait_for(lambda: listed(tmp_path) == []), m.log()
    assert run("h5diff", hdf5, m.file("home/new.h5"), check=True).stdout == ""
    assert m.stop() == 0
    assert run(HSIMAGE, "check", bucket / "home").returncode == 0


def test_a_conflict(mount, bucket, hdf5, tmp_path):
    """Another program has made the file meanwhile."""
    m = mount("debug_fault=fail:3+:EACCES@db/*")
    with pytest.raises(PermissionError):
        shutil.copyfile(hdf5, m.file("home/new"))
    m.kill()
    (bucket / "home/new").write_bytes(b"theirs")
    for _ in range(2):
        m = mount()
        assert wait_for(lambda: m.left() == 1), m.log()
        assert (bucket / "home/new").read_bytes() == b"theirs"
        item, = listed(tmp_path)
        assert "another program has changed it since it was opened for writing" in item["why"]
        assert m.stop() == 0
    recover(tmp_path, "export", item["id"], tmp_path / "out", check=True)
    assert (tmp_path / "out").read_bytes() == hdf5.read_bytes()


def test_a_removed_file_does_not_come_back(mount, bucket, hdf5, tmp_path):
    """Its commit had failed, and a program still had it open."""
    m = mount("debug_fault=fail:3+:EACCES@db/*")
    fd = write_without_end(m.file("home/new.h5"), hdf5.read_bytes())
    with pytest.raises(PermissionError):
        os.fsync(fd)
    os.unlink(m.file("home/new.h5"))
    m.kill()
    end(fd)
    m = mount()
    assert wait_for(lambda: listed(tmp_path) == []), m.log()
    assert not os.path.exists(m.file("home/new.h5"))
    assert not os.path.exists(bucket / "home/new.h5")


def test_a_name_that_is_written_again(mount, hdf5, tmp_path):
    """A program makes the file anew while the mount finishes the commit of an earlier one."""
    m = mount(SLOW.format("db/*"))
    copying = in_background(shutil.copyfile, hdf5, m.file("home/new.h5"))
    assert wait_for(lambda: [i for i in listed(tmp_path) if "in use" in i["state"]])
    copying.join(1)
    m.kill()
    copying.join()
    m = mount(SLOW.format("db/*"))
    with open(m.file("home/new.h5"), "wb") as f:
        f.write(b"anew")
    with open(m.file("home/new.h5"), "rb") as f:
        assert f.read() == b"anew"
    assert wait_for(lambda: listed(tmp_path) == [] or m.left()), m.log()
    assert m.stop() == 0
    with open(mount().file("home/new.h5"), "rb") as f:
        assert f.read() == b"anew"


def test_a_file_that_was_committed(mount, bucket, tmp_path):
    """A program still had it open, but had written nothing more: nothing waits."""
    m = mount()
    fd = write_without_end(m.file("home/new"), BYTES)
    os.fsync(fd)
    assert (bucket / "home/new").read_bytes() == BYTES
    m.kill()
    end(fd)
    m = mount()
    assert wait_for(lambda: listed(tmp_path) == []), m.log()
    assert m.left() == 0 and "left in the journal" not in m.log()
    # The same bytes once more are a change.
    fd = write_without_end(m.file("home/other"), BYTES)
    os.fsync(fd)
    os.pwrite(fd, BYTES[:10], 0)
    m.kill()
    end(fd)
    m = mount()
    assert wait_for(lambda: m.left() == 1), m.log()
    assert "not what was written to it later" in m.log()


def test_two_mounts_with_one_journal(mount, bucket, tmp_path):
    """What one has open, the other does not touch. What a killed one has left, the other one
    finishes when it starts."""
    first = mount()
    fd = write_without_end(first.file("home/new"), b"begun, ")
    second = mount("nonempty")
    assert second.left() == 0 and not os.path.exists(second.file("home/new"))
    item, = listed(tmp_path)
    assert item["state"] == "in use"
    done = recover(tmp_path, "drop", "--yes", item["id"])
    assert done.returncode == 1 and "another process has the draft open" in done.stderr
    os.write(fd, b"and ended")
    os.close(fd)
    assert wait_for(lambda: listed(tmp_path) == [])
    assert (bucket / "home/new").read_bytes() == b"begun, and ended"
    assert first.stop() == 0 and second.stop() == 0


def test_the_drafts_of_another_bucket(mount, bucket, tmp_path):
    other = tmp_path / "other"
    with mkbucket.Maker(other) as made:
        made.folder("home")
        made.domain("home/old.h5")
    m = mount(of=other)
    fd = write_without_end(m.file("home/new"), BYTES)
    m.kill()
    end(fd)
    m = mount()
    assert wait_for(lambda: m.alive()) and m.left() == 0
    item, = listed(tmp_path)
    assert item["bucket"] == str(other)
    assert recover(tmp_path, "list", bucket).returncode == 0
    assert recover(tmp_path, "list", other).returncode == 1


def test_what_an_earlier_version_has_left(mount, bucket, tmp_path):
    """It is named, and stays. Drafts of this version do not get into its way."""
    earlier = journals.Journal(tmp_path / "journal", bucket, version="1")
    draft = earlier.add("home/left", [(0, b"x")])
    m = mount()
    assert wait_for(lambda: m.left() == 1), m.log()
    assert f"draft {draft} of home/left is left in the journal: an earlier version" in m.log()
    with open(m.file("home/new.dat"), "wb") as f:
        f.write(BYTES)
    assert (bucket / "home/new.dat").read_bytes() == BYTES
    m.stop()
    item, = listed(tmp_path)
    assert item["id"] == draft and item["state"] == "earlier version" and earlier.has(draft)


def test_the_daemon_is_killed_again(mount, bucket, hdf5, tmp_path):
    """While it finishes what an earlier one had begun."""
    for _ in range(3):
        m = mount(SLOW.format("db/*").replace("300", "100"))
        if not listed(tmp_path):
            copying = in_background(shutil.copyfile, hdf5, m.file("home/new.h5"))
            assert wait_for(lambda: listed(tmp_path))
        stored = count_objects(bucket)
        wait_for(lambda: count_objects(bucket) > stored + 3 or not listed(tmp_path), 10)
        m.kill()
        copying.join()
    m = mount()
    assert wait_for(lambda: os.path.exists(m.file("home/new.h5"))), m.log()
    assert run("h5diff", hdf5, m.file("home/new.h5"), check=True).stdout == ""
    assert m.stop() == 0
    assert listed(tmp_path) == []
    assert run(HSIMAGE, "check", bucket / "home").returncode == 0


def count_objects(bucket):
    return sum(len(files) for _, _, files in os.walk(bucket / "db"))


def test_a_later_file_of_the_same_name(mount, bucket, tmp_path):
    """The draft of a killed mount does not come back over a file that was written after it."""
    m = mount()
    fd = write_without_end(m.file("home/new"), b"old")
    m.kill()
    end(fd)
    m = mount()
    assert wait_for(lambda: m.left() == 1)
    with open(m.file("home/new"), "wb") as f:
        f.write(b"new")
    assert m.stop() == 0
    m = mount()
    assert wait_for(lambda: m.left() == 1)
    assert (bucket / "home/new").read_bytes() == b"new"
    assert len(listed(tmp_path)) == 1


def test_a_machine_that_was_started_again(mount, bucket, tmp_path):
    """What was durable waits, the rest is set aside."""
    with h5py.File(tmp_path / "open.h5", "w", libver="latest") as f:
        f["data"] = list(range(1000))
    text = bytearray((tmp_path / "open.h5").read_bytes())
    text[11] = 1        # a program has it open for writing, so only the journal gets it
    m = mount()
    fd = write_without_end(m.file("home/new.h5"), text)
    os.fsync(fd)
    other = write_without_end(m.file("home/other"), b"never durable")
    m.kill()
    end(fd)
    end(other)
    change_boot(tmp_path / "journal")
    m = mount()
    assert wait_for(lambda: m.left() == 2), m.log()
    items = {i["file"]: i for i in listed(tmp_path)}
    assert items["home/new.h5"]["state"] == "waiting"
    assert items["home/other"]["state"] == "unreadable"
    assert "nothing was durable" in items["home/other"]["why"]
    recover(tmp_path, "export", items["home/new.h5"]["id"], tmp_path / "out", check=True)
    assert (tmp_path / "out").read_bytes() == text
    done = recover(tmp_path, "export", items["home/other"]["id"], tmp_path / "out2")
    assert done.returncode == 1 and "spool.*" in done.stderr


def change_boot(journal):
    from journals import crc32c
    for root, _, files in os.walk(journal):
        if "draft" not in files:
            continue
        with open(os.path.join(root, "draft"), "r+b") as f:
            text = bytearray(f.read())
            end = 36 + int.from_bytes(text[28:32], "little")
            text[36:52] = bytes(16)
            text[32:36] = crc32c(text[24:32], text[36:end]).to_bytes(4, "little")
            f.seek(0)
            f.write(text)
