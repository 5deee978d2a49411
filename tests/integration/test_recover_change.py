# SPDX-License-Identifier: Apache-2.0
"""A program that changes a domain in place, and does not finish: what hsimage recover makes of its
draft, and what the next mount does."""
import os

import h5py
import numpy as np
import pytest

import bucketstate
import recovery
from mounts import HSIMAGE, Mount, run, wait_for
from programs import Python
from recovery import NAME, listed, recover

ROWS, CHUNK = 4000, 1000
CHANGES = 8     # datasets that one commit changes

CHANGE = """
f = h5py.File(path, "r+")
f["d"][5] = -1
f["g"].attrs["new"] = "text"
f["more"] = list(range(100))
for n in range({}):
    f[f"many/{{n}}"][0] = 100 + n
f.flush()
""".format(CHANGES)

fixture_bucket, fixture_mount = recovery.fixture_bucket, recovery.fixture_mount


def write_file(path):
    with h5py.File(path, "w") as f:
        f.create_dataset("d", data=np.arange(ROWS), chunks=(CHUNK,), maxshape=(None,))
        f["g/text"] = ["variable", "length"]
        for n in range(CHANGES):
            f.create_dataset(f"many/{n}", data=[n, n], chunks=(2,))


def content(path):
    with h5py.File(path, "r") as f:
        return (f["d"][:].tolist(), sorted(f["g"].attrs), sorted(f),
                [int(f[f"many/{n}"][0]) for n in range(CHANGES)])


def bytes_of(path):
    """What the programs have that write a file."""
    fd = os.open(path, os.O_RDWR)
    try:
        return os.pread(fd, 1 << 30, 0)
    finally:
        os.close(fd)


def change(p):
    """Returns what the program has then."""
    assert p(f"exec({CHANGE!r})") == "ok"
    return bytes_of(p.path)


@pytest.fixture(name="unfinished")
def fixture_unfinished(mount, tmp_path):
    """A program and its mount have been killed. Returns the draft, and what the program had."""
    m = mount()
    with Python(m.file(NAME)) as p:
        had = change(p)
        item, = listed(tmp_path)
        assert item["state"] == "in use" and item["changes_domain"] is True
        m.kill()
    item, = listed(tmp_path)
    return item, had


def test_list_and_show(unfinished, tmp_path):
    item, had = unfinished
    assert (item["state"], item["size"], item["file"]) == ("waiting", len(had), NAME)
    assert item["changes_domain"] is True
    assert item["why"] == "the program that wrote it had not closed it"
    assert "changes the domain in place; the program" in recover(tmp_path, "list").stdout
    lines = recover(tmp_path, "show", item["id"], check=True).stdout.splitlines()
    changes, = [line for line in lines if line.startswith("changes: ")]
    assert changes.startswith(f"changes: the domain {NAME} in place, of version ")
    assert "commits: none has begun" in lines
    library, = [line for line in lines if line.startswith("library: ")]
    assert "the library had not closed the file" in library
    ranges, = [line for line in lines if line.startswith("written ranges: ")]
    assert ranges.startswith("written ranges: 0 to ")
    assert any(line.startswith("not written: ") for line in lines)


def test_the_name_shows_the_draft(unfinished, mount, tmp_path):
    item, _ = unfinished
    m = mount()
    assert wait_for(lambda: m.left() == 1)
    path = m.file(NAME)
    assert os.getxattr(path, "user.hsds.unfinished").decode() == item["id"]
    assert "user.hsds.unfinished" in os.listxattr(path)
    recover(tmp_path, "drop", "--yes", item["id"], check=True)
    assert "user.hsds.unfinished" not in os.listxattr(path)


def test_export(unfinished, tmp_path):
    item, had = unfinished
    recover(tmp_path, "export", item["id"], tmp_path / "out", check=True)
    assert (tmp_path / "out").read_bytes() == had


def test_the_domain_waits_for_the_draft(unfinished, mount, tmp_path):
    """It can be read and replaced, but not changed."""
    item, _ = unfinished
    m = mount()
    assert wait_for(lambda: m.left() == 1), m.log()
    with pytest.raises(OSError) as failure:
        os.close(os.open(m.file(NAME), os.O_RDWR))
    assert failure.value.errno == 16
    assert item["id"] in m.log() and f"`hsimage recover drop {item['id']}`" in m.log()
    assert content(m.file(NAME)) == content(tmp_path / "a.h5")
    recover(tmp_path, "drop", "--yes", item["id"], check=True)
    with h5py.File(m.file(NAME), "r+") as f:
        f["d"][0] = 7
    assert content(m.file(NAME))[0][0] == 7
    assert listed(tmp_path) == []


def test_the_domain_has_changed_since(unfinished, bucket, tmp_path):
    """Bytes of two versions make no file."""
    item, _ = unfinished
    with Mount(bucket, tmp_path / "other", "rw") as m:
        with h5py.File(m.file(NAME), "r+") as f:
            f["g"].attrs["other"] = 1
    done = recover(tmp_path, "export", item["id"], tmp_path / "out")
    assert done.returncode == 1 and f"the domain {NAME} has changed since" in done.stderr
    spools = done.stderr.split("in the files ")[1].split("spool.*")[0]
    assert os.path.exists(os.path.join(spools, "spool.0"))
    assert not (tmp_path / "out").exists()
    assert recover(tmp_path, "show", item["id"]).returncode == 0
    recover(tmp_path, "drop", "--yes", item["id"], check=True)


def test_a_chunk_has_changed_since(unfinished, bucket, tmp_path):
    """No document has: the service writes chunks without one."""
    item, _ = unfinished
    with Mount(bucket, tmp_path / "other", "rw") as m:
        with h5py.File(m.file(NAME), "r+") as f:
            f["d"][ROWS - 1] = 1
    done = recover(tmp_path, "export", item["id"], tmp_path / "out")
    assert done.returncode == 1 and "has changed since" in done.stderr


@pytest.mark.parametrize("how", ("removed", "replaced"))
def test_the_domain_is_gone(unfinished, bucket, tmp_path, how):
    item, _ = unfinished
    with Mount(bucket, tmp_path / "other", "rw") as m:
        os.unlink(m.file(NAME))
        if how == "replaced":
            write_file(m.file(NAME))
    done = recover(tmp_path, "export", item["id"], tmp_path / "out")
    assert done.returncode == 1 and "has changed since" in done.stderr


def test_the_program_alone_is_killed(mount, tmp_path):
    """Its mount leaves the draft when the file is closed, and goes on."""
    m = mount()
    with Python(m.file(NAME)) as p:
        had = change(p)
        p.kill()
    assert wait_for(lambda: [i["state"] for i in listed(tmp_path)] == ["waiting"]), m.log()
    item, = listed(tmp_path)
    recover(tmp_path, "export", item["id"], tmp_path / "out", check=True)
    assert (tmp_path / "out").read_bytes() == had
    assert content(m.file(NAME)) == content(tmp_path / "a.h5")


EMPTY = {"when opened": "fd = os.open(path, os.O_RDWR | os.O_TRUNC)",
         "later": "fd = os.open(path, os.O_RDWR); os.ftruncate(fd, 0)"}
WRITE = {"nothing": "pass", "text": "os.write(fd, b'text')",
         "a begun HDF5 file": "f = h5py.File('/proc/self/fd/%d' % fd, 'w'); f['d'] = 1; f.flush()"}


@pytest.mark.parametrize("write", WRITE)
@pytest.mark.parametrize("empty", EMPTY)
def test_a_domain_was_emptied(mount, bucket, tmp_path, empty, write):
    """A program has truncated it, and has not closed it when the program and the daemon are killed.
    What it has written replaces nothing."""
    state = bucketstate.State(bucket).digest
    m = mount()
    with Python(m.file(NAME)) as p:
        assert p(EMPTY[empty]) == "ok" and p(WRITE[write]) == "ok"
        assert content(m.file(NAME)) == content(tmp_path / "a.h5")
        m.kill()
        p.kill()
    item, = listed(tmp_path)
    assert (item["state"], item["file"]) == ("waiting", NAME)
    m = mount()
    assert wait_for(lambda: m.left() == 1), m.log()
    assert content(m.file(NAME)) == content(tmp_path / "a.h5")
    assert bucketstate.State(bucket).digest == state
    recover(tmp_path, "drop", "--yes", item["id"], check=True)
    assert listed(tmp_path) == [] and bucketstate.State(bucket).digest == state
    with h5py.File(m.file(NAME), "r+") as f:
        f["d"][0] = 7
    assert content(m.file(NAME))[0][0] == 7


@pytest.mark.sampled
@pytest.mark.parametrize("number", range(30, 46))
def test_each_request_of_a_commit(mount, bucket, tmp_path, number):
    """Killed at one of its requests: the next mount completes what had begun. Without a plan the
    bucket is as before, and the draft has what the program wrote."""
    old = content(tmp_path / "a.h5")
    with Python(tmp_path / "a.h5") as p:
        change(p)
    new = content(tmp_path / "a.h5")
    m = mount(f"debug_fault=delay:{number}+:20000@db/*")
    with Python(m.file(NAME)) as p:
        assert p("pass") == "ok"    # it has started
        p.begin(f"exec({CHANGE!r}); f.close(); sys.exit()")
        ended = wait_for(lambda: p.process.poll() is not None, 2.5)
        m.kill()
    items = listed(tmp_path)
    assert ended or items or number < 35
    has_plan = False
    for item in items:
        shown = recover(tmp_path, "show", item["id"], check=True).stdout
        has_plan = "interrupted commit: " in shown
        assert has_plan == ("the next mount finishes it" in item["why"])
    m = mount()
    assert wait_for(lambda: listed(tmp_path) == [] or m.left(), 10), m.log()
    if ended or has_plan:
        assert listed(tmp_path) == [] and content(m.file(NAME)) == new
    elif items:
        assert [i["id"] for i in listed(tmp_path)] == [i["id"] for i in items]
        assert content(m.file(NAME)) == old
        recover(tmp_path, "export", items[0]["id"], tmp_path / "out", check=True)
    else:
        assert content(m.file(NAME)) == old
    assert m.stop() == 0
    assert run(HSIMAGE, "check", bucket / "home").returncode == 0
