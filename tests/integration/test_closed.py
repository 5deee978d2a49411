# SPDX-License-Identifier: Apache-2.0
"""Folders and domains without read permission do not hide their neighbours. Opening them fails with
EACCES."""
import errno
import os
import stat
import tempfile

import pytest

import mkbucket
import mounts
from s3liar import Liar, error

SHOWN = ["john.doe", "open.h5", "secret", "shut.h5"]
NOBODY = 65534


def fill(root):
    with mkbucket.Maker(root) as bucket:
        for path in ("home", "home/secret", "home/john.doe"):
            bucket.folder(path)
        for path in ("home/open.h5", "home/shut.h5", "home/secret/x.h5", "home/john.doe/y.h5"):
            domain = bucket.domain(path)
            domain.dataset(domain.root, "x", mkbucket.INT32, [4]).chunk((0,), bytes(range(16)))
    return root


def is_closed(name):
    """name: a key, or the prefix of a listing."""
    return any(name.startswith(f"home/{closed}/") for closed in ("secret", "john.doe", "shut.h5"))


def refuse(request, _):
    name = request.query.get("prefix", "") if request.is_list else request.key
    return error(403, "AccessDenied") if is_closed(name) else None


@pytest.fixture
def liar(tmp_path):
    with Liar(fill(tmp_path / "bucket")) as server:
        yield server
        assert not server.failures


def check_mount(m):
    home = m.file("home")
    assert sorted(os.listdir(home)) == SHOWN
    kinds = {e.name: e.is_dir() for e in os.scandir(home)}
    assert kinds == {"john.doe": True, "secret": True, "open.h5": False, "shut.h5": False}
    assert stat.S_ISDIR(os.stat(m.file("home/secret")).st_mode)
    assert "home: 3 entries cannot be listed; the first is home/john.doe" in m.log()
    for refused in (lambda: os.listdir(m.file("home/secret")),
                    lambda: os.open(m.file("home/john.doe"), os.O_RDONLY | os.O_DIRECTORY),
                    lambda: os.stat(m.file("home/secret/x.h5")),
                    lambda: os.open(m.file("home/shut.h5"), os.O_RDONLY)):
        with pytest.raises(PermissionError) as caught:
            refused()
        assert caught.value.errno == errno.EACCES
    for absent in ("home/secret.h5", "home/none", "home/none.h5"):
        with pytest.raises(FileNotFoundError):
            os.stat(m.file(absent))
    with open(m.file("home/open.h5"), "rb") as f:
        assert f.read(8) == b"\x89HDF\r\n\x1a\n"


def check_ls(argument, **more):
    def ls(path):
        return mounts.run(mounts.HSIMAGE, "ls", f"{argument}/{path}", **more)

    done = ls("home")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["john.doe/", "open.h5", "secret/", "shut.h5"]
    assert done.stderr.count("\n") == 1
    assert "home: 3 entries cannot be listed; the first is home/john.doe" in done.stderr
    done = ls("home/secret")
    assert done.returncode != 0 and not done.stdout and "home/secret" in done.stderr
    assert ls("home/none").returncode != 0


def test_prefixes_that_a_policy_denies(liar, mount):
    liar.lie = refuse
    env = liar.environment()
    check_mount(mount("s3://bucket", env=env))
    check_ls("s3://bucket", env=env)


def test_a_bucket_that_refuses_every_request(liar, mount):
    """In a mount that loses its rights every name fails with EACCES. hsimage fails at once."""
    env = liar.environment()
    m = mount("s3://bucket", "metadata_ttl=0", env=env)
    assert sorted(os.listdir(m.file("home"))) == SHOWN
    liar.lie = lambda request, _: error(403, "AccessDenied")
    with pytest.raises(PermissionError):
        os.listdir(m.file("home"))
    for name in ("home", "home/secret", "home/none", "home/none.h5"):
        with pytest.raises(PermissionError):
            os.stat(m.file(name))
    done = mounts.run(mounts.HSIMAGE, "ls", "s3://bucket/home", env=env)
    assert done.returncode != 0 and done.stderr.count("\n") == 1 and "403" in done.stderr


def test_rights_that_end_within_a_listing(liar):
    """After the listing every request is refused; no part of the directory is shown."""
    listed = []

    def lie(request, _):
        if request.is_list and request.query.get("prefix") == "home/" and not listed:
            listed.append(request)
            return None
        return error(403, "AccessDenied") if listed else None

    liar.lie = lie
    done = mounts.run(mounts.HSIMAGE, "ls", "s3://bucket/home", env=liar.environment())
    assert listed
    assert done.returncode != 0 and not done.stdout


def test_directories_without_permission(tmp_path, mount):
    """Modes do not apply to root, so the store injects the failures."""
    fill(tmp_path / "bucket")
    rules = [f"fail:1+:EACCES@home/{name}/*" for name in ("secret", "john.doe", "shut.h5")]
    check_mount(mount(tmp_path / "bucket", "debug_fault=" + "\\,".join(rules)))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_directories_of_mode_0():
    """A user who is not the owner reads the bucket."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        root = fill(os.path.join(directory, "bucket"))
        for name in ("secret", "john.doe", "shut.h5"):
            os.chmod(os.path.join(root, "home", name), 0)
        nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        try:
            mounts.run(mounts.HSIMAGE, "--version", **nobody)
        except PermissionError:
            pytest.skip("the other user may not run the program")
        check_ls(root, **nobody)
