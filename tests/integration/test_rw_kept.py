# SPDX-License-Identifier: Apache-2.0
"""Why a file was stored as it is: the attribute user.hsds.kept, which the bucket keeps with the
object. Foreign programs can store anything there."""
import errno
import os
import urllib.parse

import h5py
import pytest

import imports
import mounts
from gateway import needs_gateway
from rwmounts import RwMount, attribute, is_domain

KEPT = "user.hsds.kept"
MISSING = "its end is missing: it has "
# What programs may have stored, and what the mount shows. In a directory these are the bytes of an
# attribute. In S3 they are percent-encoded in a header.
FOREIGN = [
    (b"plain text", "plain text"), ("\u00e9 100 %".encode(), "\u00e9 100 %"),
    (b"x" * 512, "x" * 512), (b"x" * 513, None), (b"", None), (b"two\nlines", None),
    (b"\x1b[2J", None), (b"a\0b", None), (b"\xff", None), (b"\xc2\x85", None),
    (b"\xed\xa0\x80", None)]
HEADERS = ["not encoded", "%", "%4", "%zz", "%41", "%c3%a9", "%00", "a+b", "%2%35", "%C3", "a,b",
           "x" * 600, "%20" * 513]


class Directory:
    env = None

    def __init__(self, root):
        self.url = os.fspath(root)

    def put(self, key, body, note):
        path = os.path.join(self.url, key)
        with open(path, "wb") as f:
            f.write(body)
        os.setxattr(path, "user.hsmount.kept", note)


class Gateway:
    def __init__(self, client, bucket, env):
        self.client, self.bucket, self.url, self.env = client, bucket, f"s3://{bucket}", env

    def put(self, key, body, note):
        self.put_header(key, body, urllib.parse.quote(note, safe="-_.~"))

    def put_header(self, key, body, value):
        self.client.request("PUT", f"/{self.bucket}/{key}", body=body,
                            headers={"x-amz-meta-hsmount-kept": value})


def make_gateway(request, tmp_path):
    root = imports.make_bucket(tmp_path / "bucket")
    client = request.getfixturevalue("client")
    name = client.new_bucket("kept")
    client.upload(name, root)
    return Gateway(client, name, request.getfixturevalue("environment"))


def has_attributes(directory):
    try:
        os.setxattr(directory, "user.hsmount.test", b"")
    except OSError as e:
        assert e.errno == errno.EOPNOTSUPP
        return False
    return True


@pytest.fixture(name="place", params=["directory", pytest.param("gateway", marks=needs_gateway)])
def fixture_place(request, tmp_path):
    if request.param == "gateway":
        return make_gateway(request, tmp_path)
    if not has_attributes(tmp_path):
        pytest.skip("the file system has no extended attributes")
    return Directory(imports.make_bucket(tmp_path / "bucket"))


@pytest.fixture(name="body")
def fixture_body(tmp_path):
    """The first half of an HDF5 file."""
    with h5py.File(tmp_path / "whole.h5", "w") as f:
        f["a"] = list(range(1000))
    body = (tmp_path / "whole.h5").read_bytes()
    return body[:len(body) // 2]


def mount(place, directory, *options):
    return RwMount(place.url, directory, *options, env=place.env)


def write(m, name, body):
    """Such a file is committed at the last close, for which the program does not wait."""
    with open(m.file("home", name), "wb") as f:
        f.write(body)
    m.released()


def reason(m, name):
    value = attribute(m.file("home", name), KEPT)
    assert os.listxattr(m.file("home", name)) == ([KEPT] if value else [])
    return value


def test_the_reason_outlives_the_mount(place, tmp_path, body):
    expected = f"{MISSING}{len(body)} of {2 * len(body)} bytes"
    with mount(place, tmp_path) as m:
        write(m, "a.h5", body)
        write(m, "text", b"text")
        assert reason(m, "a.h5") == expected
        assert reason(m, "text") is None
    with mount(place, tmp_path) as m:
        assert reason(m, "a.h5") == expected
        os.rename(m.file("home/a.h5"), m.file("home/b.h5"))
        assert reason(m, "b.h5") == expected
        assert attribute(m.file("home/a.h5"), KEPT) is None
        os.rename(m.file("home/text"), m.file("home/text.txt"))
        assert reason(m, "text.txt") is None
    with mount(place, tmp_path) as m:
        assert reason(m, "b.h5") == expected
        assert reason(m, "text.txt") is None
        shown = mounts.run("getfattr", "-d", "-m", "user.hsds", m.file("home/b.h5"), check=True)
        assert f'{KEPT}="{expected}"' in shown.stdout.splitlines()


def test_a_file_that_is_replaced_loses_it(place, tmp_path, body):
    names = "a.h5", "b.h5", "c.h5", "d.h5"
    with mount(place, tmp_path) as m:
        for name in names:
            write(m, name, body)
    with mount(place, tmp_path) as m:
        write(m, "a.h5", b"no HDF5 file")
        with h5py.File(m.file("home/b.h5"), "w") as f:
            f["a"] = [1]
        write(m, "other", b"text")
        os.rename(m.file("home/other"), m.file("home/c.h5"))
        with open(m.file("home/d.h5"), "ab") as f:
            f.write(b"more")
        m.released()
        assert reason(m, "d.h5").startswith(f"{MISSING}{len(body) + 4} of ")
    with mount(place, tmp_path) as m:
        assert reason(m, "a.h5") is None and reason(m, "c.h5") is None
        assert is_domain(m.file("home/b.h5")) and attribute(m.file("home/b.h5"), KEPT) is None
        assert reason(m, "d.h5").startswith(f"{MISSING}{len(body) + 4} of ")
        os.unlink(m.file("home/d.h5"))
        write(m, "d.h5", b"text")
        assert reason(m, "d.h5") is None


def test_the_next_mount_stores_it(place, tmp_path, body):
    """The daemon is killed before the bucket has the file."""
    m = mount(place, tmp_path, "debug_fault=fail:2+:EACCES@home/a.h5")
    m.start()
    with open(m.file("home/a.h5"), "wb") as f:
        f.write(body)
    assert mounts.wait_for(lambda: attribute(m.file("home/a.h5"), "user.hsds.error"))
    m.kill()
    with mount(place, tmp_path) as m:
        assert mounts.wait_for(lambda: os.path.exists(m.file("home/a.h5")))
        m.released()
        assert mounts.wait_for(lambda: (reason(m, "a.h5") or "").startswith(MISSING)), m.log()


def test_requests(place, tmp_path):
    """Once for each version; the files of a directory in one round after the second."""
    n = 20
    for i in range(n):
        place.put(f"home/x{i:02}", b"x", b"why" if i % 2 else b"none")
    with mount(place, tmp_path, "metadata_ttl=60") as m:
        def heads(call, *arguments):
            before = m.requests()
            call(*arguments)
            after = mounts.difference(before, m.requests())
            assert not after["put"] and not after["delete"]
            return after["head"]

        names = sorted(os.listdir(m.file("home")))
        assert [name for name in names if name.startswith("x")] == [f"x{i:02}" for i in range(n)]
        plain = [m.file("home", name) for name in names if name.startswith("x")]
        assert heads(os.listxattr, plain[0]) == 1
        assert heads(os.listxattr, plain[1]) == n - 1
        for path in plain:
            assert heads(os.listxattr, path) == heads(os.getxattr, path, KEPT) == 0
        disk = tmp_path / "disk"
        assert heads(mounts.run, "cp", "-a", m.file("home"), disk) == 0
        assert attribute(disk / "x01", KEPT) == "why"
        # The kernel, ls and cp ask for these.
        for name in "security.capability", "system.posix_acl_access", "user.other":
            assert heads(attribute, plain[0], name) == 0
    # In S3, the look-up of a single name gets it at no cost.
    with mount(place, tmp_path, "metadata_ttl=60") as m:
        os.stat(m.file("home/x01"))
        assert heads(os.getxattr, m.file("home/x01"), KEPT) == (place.env is None)


def test_foreign_notes(place, tmp_path):
    for i, (note, _) in enumerate(FOREIGN):
        place.put(f"home/x{i}", b"text", note)
    headers = HEADERS if place.env else []
    for i, value in enumerate(headers):
        place.put_header(f"home/h{i}", b"text", value)
    with mount(place, tmp_path) as m:
        for i, (_, expected) in enumerate(FOREIGN):
            assert reason(m, f"x{i}") == expected, FOREIGN[i]
            # A copy has what the mount shows.
            os.rename(m.file(f"home/x{i}"), m.file(f"home/y{i}"))
            assert reason(m, f"y{i}") == expected, FOREIGN[i]
        for i, value in enumerate(headers):
            assert reason(m, f"h{i}") is None, value


def test_a_failure_is_an_error(place, tmp_path):
    place.put("home/x", b"text", b"why")
    with mount(place, tmp_path, "metadata_ttl=60", "debug_fault=fail:1:EACCES@home/x") as m:
        os.listdir(m.file("home"))
        with pytest.raises(PermissionError):
            os.getxattr(m.file("home/x"), KEPT)
        assert reason(m, "x") == "why"


@pytest.fixture(name="ramfs")
def fixture_ramfs(tmp_path):
    """A file system without extended attributes."""
    path = tmp_path / "ramfs"
    path.mkdir()
    if mounts.run("mount", "-t", "ramfs", "none", path).returncode:
        pytest.skip("needs the permission to mount a ramfs")
    try:
        yield path
    finally:
        mounts.run("umount", path, check=True)


def test_a_directory_without_attributes(ramfs, tmp_path, body):
    """The file is stored all the same."""
    root = imports.make_bucket(ramfs / "bucket")
    assert not has_attributes(root)
    with RwMount(root, tmp_path) as m:
        write(m, "a.h5", body)
        assert reason(m, "a.h5") is None
        os.rename(m.file("home/a.h5"), m.file("home/b.h5"))
        assert reason(m, "b.h5") is None
        assert "user.hsmount.kept" not in m.log()
    assert (root / "home/b.h5").read_bytes() == body
