# SPDX-License-Identifier: Apache-2.0
"""A program that changes a domain in place, and does not finish: what hsimage recover makes of its
draft, and what the next mount does."""
import json
import os
import subprocess
import sys

import h5py
import numpy as np
import pytest

import imports
import mounts
from mounts import HSIMAGE, Mount, run, wait_for

NAME = "home/a.h5"
ROWS, CHUNK = 4000, 1000
CHANGES = 8     # datasets that one commit changes

CHANGE = """
import h5py, sys
f = h5py.File(sys.argv[1], "r+")
f["d"][5] = -1
f["g"].attrs["new"] = "text"
f["more"] = list(range(100))
for n in range({}):
    f[f"many/{{n}}"][0] = 100 + n
f.flush()
""".format(CHANGES)
WAIT = """
print("ready", flush=True)
sys.stdin.read()
"""


def write_file(path):
    with h5py.File(path, "w") as f:
        f.create_dataset("d", data=np.arange(ROWS), chunks=(CHUNK,), maxshape=(None,))
        f["g/text"] = ["variable", "length"]
        for n in range(CHANGES):
            f.create_dataset(f"many/{n}", data=[n, n], chunks=(2,))


@pytest.fixture(name="bucket")
def fixture_bucket(tmp_path):
    write_file(tmp_path / "a.h5")
    bucket = imports.make_bucket(tmp_path / "bucket")
    run(HSIMAGE, "-b", bucket, "import", tmp_path / "a.h5", NAME, check=True)
    return bucket


@pytest.fixture(name="mount")
def fixture_mount(tmp_path, bucket):
    """Starts mounts that have one journal, and stops them at the end."""
    started = []

    def start(*options):
        m = Mount(bucket, tmp_path / f"mount{len(started)}", "rw", "metadata_ttl=0",
                  f"journal_dir={tmp_path / 'journal'}", *options)
        started.append(m)
        m.start()
        return m
    yield start
    for m in started:
        m.stop()


@pytest.fixture(name="writer")
def fixture_writer():
    """Starts programs that run CHANGE, and kills them at the end."""
    started = []

    def start(path, code=CHANGE + WAIT):
        p = subprocess.Popen([sys.executable, "-c", code, path], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        started.append(p)
        return p
    yield start
    for p in started:
        p.kill()
        p.communicate()


def kill(m):
    m.process.kill()
    m.process.wait(mounts.PATIENCE)
    m.stop()


def recover(tmp_path, *command, **more):
    return run(HSIMAGE, "recover", "--journal-dir", tmp_path / "journal", *command, **more)


def listed(tmp_path):
    return [json.loads(line) for line in recover(tmp_path, "list", "--json").stdout.splitlines()]


def left(m):
    with open(m.file(".hsmount/stats"), encoding="utf-8") as f:
        return json.load(f)["drafts"]["left"]


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


@pytest.fixture(name="unfinished")
def fixture_unfinished(mount, writer, tmp_path):
    """A program and its mount have been killed. Returns the draft, and what the program had."""
    m = mount()
    p = writer(m.file(NAME))
    assert p.stdout.readline() == b"ready\n"
    had = bytes_of(m.file(NAME))
    item, = listed(tmp_path)
    assert item["state"] == "in use" and item["changes_domain"] is True
    kill(m)
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
    assert wait_for(lambda: left(m) == 1)
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
    assert wait_for(lambda: left(m) == 1), m.log()
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


def test_the_program_alone_is_killed(mount, writer, tmp_path):
    """Its mount leaves the draft when the file is closed, and goes on."""
    m = mount()
    p = writer(m.file(NAME))
    assert p.stdout.readline() == b"ready\n"
    had = bytes_of(m.file(NAME))
    p.kill()
    assert wait_for(lambda: [i["state"] for i in listed(tmp_path)] == ["waiting"]), m.log()
    item, = listed(tmp_path)
    recover(tmp_path, "export", item["id"], tmp_path / "out", check=True)
    assert (tmp_path / "out").read_bytes() == had
    assert content(m.file(NAME)) == content(tmp_path / "a.h5")


@pytest.mark.parametrize("number", range(30, 46))
def test_each_request_of_a_commit(mount, writer, bucket, tmp_path, number):
    """Killed at one of its requests: the next mount completes what had begun. Without a plan the
    bucket is as before, and the draft has what the program wrote."""
    old = content(tmp_path / "a.h5")
    run(sys.executable, "-c", CHANGE, tmp_path / "a.h5", check=True)
    new = content(tmp_path / "a.h5")
    m = mount(f"debug_fault=delay:{number}+:20000@db/*")
    p = writer(m.file(NAME), CHANGE)
    ended = wait_for(lambda: p.poll() is not None, 2.5)
    kill(m)
    items = listed(tmp_path)
    assert ended or items or number < 35
    has_plan = False
    for item in items:
        shown = recover(tmp_path, "show", item["id"], check=True).stdout
        has_plan = "interrupted commit: " in shown
        assert has_plan == ("the next mount finishes it" in item["why"])
    m = mount()
    assert wait_for(lambda: listed(tmp_path) == [] or left(m), 10), m.log()
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
