# SPDX-License-Identifier: Apache-2.0
"""Removed and replaced domains are brought back, by the mount that has removed them or by the
command, until what they had in the bucket is deleted."""
import errno
import json
import os

import h5py
import pytest

import imports
import rwmounts
from mounts import HSIMAGE, run, wait_for

REMOVED, UNDELETE, ACLS = "user.hsds.removed", "user.hsds.undelete", "user.hsds.acls"
ACL = json.dumps({"ann": {"create": True, "read": True, "update": True, "delete": True,
                          "readACL": True, "updateACL": True}})


@pytest.fixture(name="bucket")
def fixture_bucket(tmp_path):
    make(tmp_path / "a.h5", 1)
    make(tmp_path / "b.h5", 2)
    return imports.make_bucket(tmp_path / "bucket")


def make(path, value):
    with h5py.File(path, "w") as f:
        f["d"] = [value] * 100
        f["d"].attrs["units"] = "m"


def value_of(path):
    with h5py.File(path) as f:
        return f["d"][50]


def removed(path):
    """The names in the attribute."""
    text = rwmounts.attribute(path, REMOVED)
    return [line.split(" ", 1)[1] for line in text.splitlines()] if text else []


def undelete(directory, name):
    """0 or an errno."""
    try:
        os.setxattr(directory, UNDELETE, name.encode())
    except OSError as e:
        return e.errno
    return 0


def command(bucket, m, *name):
    where = f"{bucket}/{name[0]}" if name else str(bucket)
    return run(HSIMAGE, "undelete", "--journal-dir", m.journal, where)


def storages(bucket):
    return sorted(os.listdir(bucket / "db"))


def test_by_the_mount(bucket, tmp_path):
    with rwmounts.RwMount(bucket, tmp_path, "gc_delay=1h") as m:
        os.mkdir(m.file("home/sub"))
        run("cp", tmp_path / "a.h5", m.file("home/sub/a.h5"), check=True)
        os.setxattr(m.file("home/sub/a.h5"), ACLS, ACL.encode())
        before = run(HSIMAGE, "ls", "-l", bucket / "home/sub").stdout
        assert removed(m.file("home")) == []
        os.unlink(m.file("home/sub/a.h5"))
        assert removed(m.file("")) == ["home/sub/a.h5"]
        assert removed(m.file("home")) == ["sub/a.h5"]
        assert removed(m.file("home/sub")) == ["a.h5"]
        assert REMOVED in os.listxattr(m.file("home"))
        assert undelete(m.file("home"), "other.h5") == errno.ENOENT
        assert undelete(m.file("home/sub"), "a.h5") == 0
        assert value_of(m.file("home/sub/a.h5")) == 1
        assert json.loads(os.getxattr(m.file("home/sub/a.h5"), ACLS)) == json.loads(ACL)
        after = run(HSIMAGE, "ls", "-l", bucket / "home/sub").stdout
        assert after == before
        assert removed(m.file("home")) == []
        assert undelete(m.file("home/sub"), "a.h5") == errno.ENOENT
        # It is a domain as all others: it can be changed, removed and brought back again.
        with h5py.File(m.file("home/sub/a.h5"), "r+") as f:
            f["d"][50] = 5
        os.unlink(m.file("home/sub/a.h5"))
        assert undelete(m.file("home"), "sub/a.h5") == 0
        assert value_of(m.file("home/sub/a.h5")) == 5


def test_what_was_replaced(bucket, tmp_path):
    """It comes back when the name is free."""
    with rwmounts.RwMount(bucket, tmp_path, "gc_delay=1h") as m:
        run("cp", tmp_path / "a.h5", m.file("home/a.h5"), check=True)
        run("cp", tmp_path / "b.h5", m.file("home/b.h5"), check=True)
        run("cp", tmp_path / "b.h5", m.file("home/a.h5"), check=True)
        assert removed(m.file("home")) == ["a.h5"]
        assert undelete(m.file("home"), "a.h5") == errno.EEXIST
        os.rename(m.file("home/a.h5"), m.file("home/new.h5"))
        assert undelete(m.file("home"), "a.h5") == 0
        assert [value_of(m.file(f"home/{n}.h5")) for n in ("a", "new")] == [1, 2]
        os.rename(m.file("home/a.h5"), m.file("home/b.h5"))
        os.unlink(m.file("home/b.h5"))
        # The last one that had the name comes first.
        assert undelete(m.file("home"), "b.h5") == 0
        assert value_of(m.file("home/b.h5")) == 1
        os.unlink(m.file("home/new.h5"))
        os.rename(m.file("home/b.h5"), m.file("home/c.h5"))
        assert undelete(m.file("home"), "b.h5") == 0
        assert value_of(m.file("home/b.h5")) == 2


def test_a_folder_that_is_gone(bucket, tmp_path):
    """It comes back with its file."""
    with rwmounts.RwMount(bucket, tmp_path, "gc_delay=1h") as m:
        os.mkdir(m.file("home/sub"))
        run("cp", tmp_path / "a.h5", m.file("home/sub/a.h5"), check=True)
        run("rm", "-r", m.file("home/sub"), check=True)
        with open(m.file("home/sub"), "wb"):
            pass
        assert undelete(m.file("home"), "sub/a.h5") == errno.ENOTDIR
        os.unlink(m.file("home/sub"))
        assert undelete(m.file("home"), "sub/a.h5") == 0
        assert value_of(m.file("home/sub/a.h5")) == 1


def test_by_the_command(bucket, tmp_path):
    with rwmounts.RwMount(bucket, tmp_path, "gc_delay=1h") as m:
        run("cp", tmp_path / "a.h5", m.file("home/a.h5"), check=True)
        run("cp", tmp_path / "b.h5", m.file("home/b"), check=True)
        os.unlink(m.file("home/a.h5"))
        os.unlink(m.file("home/b.h5"))
        held = command(bucket, m)
        assert held.stdout == "" and "user.hsds.undelete" in held.stderr
        refused = command(bucket, m, "home/a.h5")
        assert refused.returncode == 1 and "mount that is running" in refused.stderr
    # The mount has ended within the delay, so everything is still there.
    assert len(storages(bucket)) == 2
    listed = command(bucket, m)
    assert [line.split("  ")[1] for line in listed.stdout.splitlines()] == \
        ["home/a.h5", "home/b.h5"], listed
    assert listed.stderr == "" and listed.returncode == 0
    for name in "home/a.h5", "home/b.h5":
        done = command(bucket, m, name)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    again = command(bucket, m, "home/a.h5")
    assert again.returncode == 1 and "no removed file of this name" in again.stderr
    assert command(bucket, m).stdout == ""
    with rwmounts.RwMount(bucket, tmp_path, "gc_delay=1h") as m:
        assert [value_of(m.file(f"home/{n}.h5")) for n in "ab"] == [1, 2]
    assert run(HSIMAGE, "check", bucket).returncode == 0


def test_unmount_deletes_what_is_due(bucket, tmp_path):
    """The time goes on while nothing is mounted. The next mount deletes what its delay says."""
    with rwmounts.RwMount(bucket, tmp_path, "gc_delay=1h") as m:
        run("cp", tmp_path / "a.h5", m.file("home/a.h5"), check=True)
        os.unlink(m.file("home/a.h5"))
    assert len(storages(bucket)) == 1
    with rwmounts.RwMount(bucket, tmp_path, "gc_delay=1h") as m:
        assert removed(m.file("home")) == ["a.h5"]
    assert len(storages(bucket)) == 1
    with rwmounts.RwMount(bucket, tmp_path, "gc_delay=0") as m:
        wait_for(lambda: not storages(bucket))
        assert removed(m.file("home")) == []
        assert undelete(m.file("home"), "a.h5") == errno.ENOENT
        run("cp", tmp_path / "a.h5", m.file("home/a.h5"), check=True)
        os.unlink(m.file("home/a.h5"))
    assert storages(bucket) == []
    assert command(bucket, m).stdout == ""


def test_names_that_are_refused(bucket, tmp_path):
    with rwmounts.RwMount(bucket, tmp_path, "gc_delay=1h") as m:
        run("cp", tmp_path / "a.h5", m.file("home/a.h5"), check=True)
        os.unlink(m.file("home/a.h5"))
        # A file has no such attribute, and a name must be one that a mount can show.
        run("cp", tmp_path / "a.h5", m.file("home/c.h5"), check=True)
        assert undelete(m.file("home/c.h5"), "a.h5") in (errno.ENOENT, errno.ENOTDIR)
        for name in "", "../a.h5", "a\0.h5", "x" * 2000:
            assert undelete(m.file("home"), name) in (errno.ENOENT, errno.EINVAL)


def test_the_storage_is_gone(bucket, tmp_path):
    """Somebody else has deleted it. Nothing is put."""
    with rwmounts.RwMount(bucket, tmp_path, "gc_delay=1h") as m:
        run("cp", tmp_path / "a.h5", m.file("home/a.h5"), check=True)
        os.unlink(m.file("home/a.h5"))
        run("rm", "-r", bucket / "db" / storages(bucket)[0], check=True)
        assert undelete(m.file("home"), "a.h5") == errno.ESTALE
        assert os.listdir(m.file("home")) == []
    assert run(HSIMAGE, "check", bucket).returncode == 0
