# SPDX-License-Identifier: Apache-2.0
"""Writes to services that do not check conditions: a versioned bucket of Ceph, which answers 412 to
a current ETag, and small servers that ignore conditions or refuse them. See "Services and
conditions" in doc/DETAILS.md."""
import contextlib
import ctypes
import errno
import json
import os
import re
import shutil
import sys

import h5py
import pytest

import rwmounts
from gateway import needs_gateway
from mounts import run
from s3service import PROBE, Service

VERSIONS = b'<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">' \
           b"<Status>Enabled</Status></VersioningConfiguration>"
RENAME_NOREPLACE = 1
KINDS = ["ignored", 501]


def read(path):
    with open(path, "rb") as f:
        return f.read()


def write_h5(path, value):
    with h5py.File(path, "w") as f:
        f["x"] = [value, 2, 3]


def value_of(path):
    """In a process of its own: libhdf5 would keep the interpreter from running the server."""
    script = "import h5py, sys; print(h5py.File(sys.argv[1], 'r')['x'][0])"
    return int(run(sys.executable, "-c", script, path, check=True).stdout)


def features(m):
    """{feature: support}."""
    return {name: "".join(found) for name, found in m.stats()["store"]["features"].items()}


def warnings(m):
    return re.findall("does not check the conditions.*", m.log())


# ---- a versioned bucket of Ceph ----

@pytest.fixture
def versioned(client):
    name = client.new_bucket("versioned")
    client.request("PUT", f"/{name}", {"versioning": ""}, body=VERSIONS)
    client.put(name, "db/x", b"1")
    client.put(name, "d/a", b"1")
    return f"s3://{name}"


@needs_gateway[0]
@needs_gateway[1]
def test_versioned_bucket(versioned, environment, tmp_path):
    one, two = tmp_path / "1.h5", tmp_path / "2.h5"
    write_h5(one, 1)
    write_h5(two, 2)
    with rwmounts.RwMount(versioned, tmp_path, env=environment) as m:
        for text in ("first", "second, longer", "third"):
            with open(m.file("d/p"), "w", encoding="ascii") as f:
                f.write(text)
            m.released()
        assert read(m.file("d/p")) == b"third"
        for file, value in ((one, 1), (two, 2)):
            shutil.copyfile(file, m.file("d/x.h5"))
            m.released()
            assert value_of(m.file("d/x.h5")) == value
        shutil.copyfile(one, m.file("d/y.h5"))
        m.released()
        os.rename(m.file("d/y.h5"), m.file("d/x.h5"))
        assert value_of(m.file("d/x.h5")) == 1
        for value in (7, 8):
            with h5py.File(m.file("d/x.h5"), "r+") as f:
                f["x"][0] = value
                f.attrs["a"] = value
            m.released()
        acl = dict.fromkeys(("create", "read", "update", "delete", "readACL", "updateACL"), True)
        for read_acl in (True, False):
            acls = {"default": dict(acl, readACL=read_acl)}
            os.setxattr(m.file("d/x.h5"), "user.hsds.acls", json.dumps(acls).encode())
        assert value_of(m.file("d/x.h5")) == 8
        assert features(m)["put_if_none_match"] == "ignored"
        assert features(m)["put_if_match"] == "broken"
        assert features(m)["marks"] == "works"
        assert len(warnings(m)) == 1
        drafts = m.stats()["drafts"]
        assert drafts["commit_failures"] == drafts["failed"] == drafts["left"] == 0
    assert not rwmounts.journal_entries(tmp_path / "journal")


# ---- services that ignore or refuse conditions ----

@contextlib.contextmanager
def two_mounts(tmp_path, how):
    root = tmp_path / "bucket"
    for key in ("db/x", "d/k"):
        (root / key).parent.mkdir(parents=True)
        (root / key).write_text("1")
    with Service(root, put_absent=how, put_match=how) as service:
        env = service.environment()
        with rwmounts.RwMount("s3://bucket", tmp_path / "a", env=env) as a, \
                rwmounts.RwMount("s3://bucket", tmp_path / "b", env=env) as b:
            a.server = b.server = service
            yield a, b
        assert not service.failures
        assert not [key for key in service.keys("") if PROBE in key]


@pytest.fixture
def pair(tmp_path, request):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with two_mounts(tmp_path, request.param) as both:
        yield both


@pytest.mark.parametrize("pair", KINDS, indirect=True)
def test_two_new_files(pair):
    a, b = pair
    first = open(a.file("d/new"), "w", encoding="ascii")
    first.write("from A")
    first.flush()
    with open(b.file("d/new"), "w", encoding="ascii") as f:
        f.write("from B")
    with pytest.raises(OSError) as refused:
        first.close()
    assert refused.value.errno == errno.ESTALE
    assert read(b.file("d/new")) == b"from B"
    assert b.stats()["drafts"]["commit_failures"] == 0
    assert a.failed() == 1
    assert len(rwmounts.journal_entries(a.journal)) == 1
    assert len(warnings(b)) == 1


@pytest.mark.parametrize("pair", KINDS, indirect=True)
def test_two_new_domains(pair, tmp_path):
    a, b = pair
    write_h5(tmp_path / "a.h5", 1)
    write_h5(tmp_path / "b.h5", 2)
    fd = os.open(a.file("d/new.h5"), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
    os.write(fd, (tmp_path / "a.h5").read_bytes())
    shutil.copyfile(tmp_path / "b.h5", b.file("d/new.h5"))
    with pytest.raises(OSError) as refused:
        os.close(fd)
    assert refused.value.errno == errno.ESTALE
    assert a.failed() == 1
    assert value_of(b.file("d/new.h5")) == 2


@pytest.mark.parametrize("pair", KINDS, indirect=True)
def test_two_folders(pair):
    """Both mounts have seen that there is no such folder."""
    a, b = pair
    assert not os.path.exists(a.file("d/folder")) and not os.path.exists(b.file("d/folder"))
    os.mkdir(a.file("d/folder"))
    with pytest.raises(FileExistsError):
        os.mkdir(b.file("d/folder"))


@pytest.mark.parametrize("pair", KINDS, indirect=True)
def test_rename_does_not_replace(pair, tmp_path):
    a, b = pair
    for name, value in (("one.h5", 1), ("two.h5", 2)):
        write_h5(tmp_path / name, value)
        shutil.copyfile(tmp_path / name, a.file("d", name))
    a.released()
    assert not os.path.exists(b.file("d/target.h5"))
    os.rename(a.file("d/one.h5"), a.file("d/target.h5"))
    libc = ctypes.CDLL(None, use_errno=True)
    done = libc.renameat2(-100, os.fsencode(b.file("d/two.h5")), -100,
                          os.fsencode(b.file("d/target.h5")), RENAME_NOREPLACE)
    assert done == -1 and ctypes.get_errno() == errno.EEXIST
    assert value_of(b.file("d/two.h5")) == 2
    assert value_of(b.file("d/target.h5")) == 1


def test_service_with_conditions(tmp_path):
    """The first write tests the service once, with requests for objects of its own. A service that
    checks If-Match of DELETE gets it."""
    root = tmp_path / "bucket"
    (root / "d").mkdir(parents=True)
    (root / "d/k").write_text("1")
    with Service(root, delete_match="checked") as service:
        with rwmounts.RwMount("s3://bucket", tmp_path, env=service.environment()) as m:
            assert read(m.file("d/k")) == b"1"
            assert not [r for r in service.requests if r.method in ("PUT", "DELETE")]
            for name in ("one", "two"):
                with open(m.file("d", name), "w", encoding="ascii") as f:
                    f.write(name)
                m.released()
            os.unlink(m.file("d/one"))
            assert set(features(m).values()) == {"works", "unknown"}
            assert not warnings(m)
        probes = [r for r in service.requests if r.key.startswith(PROBE)]
        assert " ".join(r.method for r in probes) == "PUT PUT HEAD PUT PUT DELETE DELETE"
        assert len({r.key for r in probes}) == 1
        assert all("if-match" in r.headers for r in service.requests
                   if r.method == "DELETE" and r.key == "d/one")
        assert service.keys("") == ["d/.domain.json", "d/k", "d/two"]
