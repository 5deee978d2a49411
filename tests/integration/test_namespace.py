# SPDX-License-Identifier: Apache-2.0
"""Names, kinds, modes and extended attributes of what the mount shows."""
import errno
import os
import stat
import subprocess

import h5py
import pytest

import mkbucket
from mkbucket import INT32


@pytest.fixture
def tree(tmp_path, mount):
    root = tmp_path / "bucket"
    with mkbucket.Maker(root) as bucket:
        for path in ("home", "home/empty"):
            bucket.folder(path)
        for path in ("home/run", "home/run/part.h5", "home/data.nc", "home/ünï/dömäin x.h5",
                     "home/.hidden"):
            d = bucket.domain(path)
            d.dataset(d.root, "x", INT32, [4]).chunk((0,), bytes(range(16)))
        closed = bucket.domain("home/closed.h5", mkbucket.full_acl())
        closed.dataset(closed.root, "x", INT32, [4])
        bucket.put("home/notes.txt", b"plain bytes\n")
        bucket.put("top.bin", bytes(range(256)) * 100)
    return mount(root)


def names(path):
    return sorted(os.listdir(path))


def test_the_root_hides_storage(tree):
    assert names(tree.path) == ["home", "top.bin"]
    with pytest.raises(FileNotFoundError):
        os.stat(tree.file("db"))


def test_a_folder_shows_domains_folders_and_plain_objects(tree):
    assert names(tree.file("home")) == sorted(
        [".hidden.h5", "closed.h5", "data.nc", "empty", "notes.txt", "run", "run.h5", "ünï"])
    assert names(tree.file("home/empty")) == []
    assert names(tree.file("home/ünï")) == ["dömäin x.h5"]


def test_a_domain_with_subdomains_is_a_file_and_a_directory(tree):
    assert stat.S_ISREG(os.stat(tree.file("home/run.h5")).st_mode)
    assert names(tree.file("home/run")) == ["part.h5"]


def test_listing_tells_the_types(tree):
    kinds = {e.name: e.is_dir(follow_symlinks=False) for e in os.scandir(tree.file("home"))}
    assert kinds["run"] and kinds["empty"] and not kinds["run.h5"] and not kinds["notes.txt"]


@pytest.mark.parametrize("name", ["home/run.h5", "home/data.nc", "home/ünï/dömäin x.h5",
                                  "home/run/part.h5", "home/closed.h5", "home/.hidden.h5"])
def test_domains_open(tree, name):
    with h5py.File(tree.file(name), "r") as f:
        assert f["x"].shape == (4,)


def test_a_domain_without_its_extension_is_not_there(tree):
    for name in ("home/data", "home/run/part", "home/.domain.json", "home/run.h5.h5"):
        with pytest.raises(FileNotFoundError):
            os.stat(tree.file(name))


def test_plain_objects_are_read_through(tree):
    with open(tree.file("home/notes.txt"), "rb") as f:
        assert f.read() == b"plain bytes\n"
    with open(tree.file("top.bin"), "rb") as f:
        f.seek(255)
        assert f.read(3) == b"\xff\x00\x01"
    assert os.stat(tree.file("top.bin")).st_size == 25600


def test_modes_follow_the_acls(tree):
    open_mode = stat.S_IMODE(os.stat(tree.file("home/data.nc")).st_mode)
    closed_mode = stat.S_IMODE(os.stat(tree.file("home/closed.h5")).st_mode)
    assert open_mode & 0o444 == 0o444
    assert closed_mode & 0o444 == 0o400
    assert stat.S_IMODE(os.stat(tree.file("home")).st_mode) & 0o555 == 0o555


def test_extended_attributes_tell_what_the_service_knows(tree):
    path = tree.file("home/data.nc")
    attrs = {n: os.getxattr(path, n).decode() for n in os.listxattr(path)}
    assert attrs and all(n.startswith("user.hsds.") for n in attrs)
    assert any("home/data.nc" in v for v in attrs.values())
    assert any(v.startswith("g-") for v in attrs.values())
    assert "maker" in attrs["user.hsds.owner"]
    with pytest.raises(OSError) as e:
        os.getxattr(path, "user.hsds.nothing")
    assert e.value.errno == errno.ENODATA


def test_statfs(tree):
    s = os.statvfs(tree.path)
    assert s.f_bsize > 0 and s.f_namemax >= 255 and s.f_flag & os.ST_RDONLY


def test_sizes_are_exact_once_opened(tree):
    path = tree.file("home/run.h5")
    assert os.stat(path).st_size > 0
    with open(path, "rb") as f:
        body = f.read()
        assert os.fstat(f.fileno()).st_size == len(body)
    assert os.stat(path).st_size == len(body)
    assert 0 < os.stat(path).st_blocks <= (len(body) + 511) // 512 + 8


@pytest.mark.parametrize("change", [
    lambda p: os.open(p + "/home/run.h5", os.O_RDWR),
    lambda p: os.open(p + "/home/new.h5", os.O_CREAT | os.O_WRONLY),
    lambda p: os.unlink(p + "/home/run.h5"),
    lambda p: os.mkdir(p + "/home/d"),
    lambda p: os.rmdir(p + "/home/empty"),
    lambda p: os.rename(p + "/home/run.h5", p + "/home/r.h5"),
    lambda p: os.truncate(p + "/home/run.h5", 0),
    lambda p: os.setxattr(p + "/home/run.h5", "user.x", b"1"),
    lambda p: os.chmod(p + "/home/run.h5", 0o600),
    lambda p: os.symlink("x", p + "/home/s")],
    ids=["open", "create", "unlink", "mkdir", "rmdir", "rename", "truncate", "setxattr", "chmod",
         "symlink"])
def test_nothing_can_be_changed(tree, change):
    with pytest.raises(OSError) as e:
        change(tree.path)
    assert e.value.errno == errno.EROFS


def test_owner_and_umask_options(tmp_path, mount):
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        bucket.domain("x.h5")
    m = mount(tmp_path / "bucket", "uid=1234,gid=2345,umask=077")
    s = os.stat(m.file("x.h5"))
    assert (s.st_uid, s.st_gid, s.st_mode & 0o077) == (1234, 2345, 0)


@pytest.mark.parametrize("options, code, status", [
    ((), errno.EACCES, errno.EACCES), (("rw",), errno.EACCES, errno.EACCES),
    (("file_mode=0755",), 0, 7), (("file_mode=0755", "umask=0111"), errno.EACCES, errno.EACCES)])
def test_executable_files(tmp_path, mount, options, code, status):
    """access(2) and execve(2) agree."""
    def result(call, *arguments):
        try:
            return call(*arguments)
        except OSError as e:
            return e.errno

    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        bucket.domain("home/x.h5")
        bucket.put("home/program", b"#!/bin/sh\nexit 7\n")
    m = mount(tmp_path / "bucket", *options)
    assert os.access(m.file("home/program"), os.X_OK) == (code == 0)
    assert result(subprocess.call, [m.file("home/program")]) == status
    assert os.access(m.file("home/x.h5"), os.X_OK) == (code == 0)
    assert not os.access(m.file(".hsmount/stats"), os.X_OK) or code == 0
    assert os.access(m.file("home"), os.X_OK) and os.access(m.file(".hsmount"), os.X_OK)
    assert os.access(m.path, os.R_OK | os.X_OK)


def test_keys_cannot_lead_out_of_the_bucket(tmp_path, mount):
    (tmp_path / "secret").write_bytes(b"not in the bucket")
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        bucket.domain("x.h5")
    os.symlink(tmp_path / "secret", tmp_path / "bucket" / "leak.txt")
    os.symlink(tmp_path, tmp_path / "bucket" / "out")
    m = mount(tmp_path / "bucket")
    for name in ("leak.txt", "out/secret"):
        with pytest.raises(OSError):
            with open(m.file(name), "rb") as f:
                f.read()
    assert os.stat(m.file("x.h5")).st_size > 0


def test_external_links_work_inside_the_mount(tmp_path, mount):
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        target = bucket.domain("home/a/target.h5")
        target.dataset(target.root, "x", INT32, [4]).chunk((0,), bytes(range(16)))
        d = bucket.domain("home/b/links.h5")
        d.root.external("absolute", "/x", "/home/a/target.h5")
        d.root.external("scheme", "/x", "hdf5://home/a/target.h5")
    m = mount(tmp_path / "bucket")
    with h5py.File(m.file("home/b/links.h5"), "r") as f:
        for name in ("absolute", "scheme"):
            assert f[name][()].tobytes() == bytes(range(16))


