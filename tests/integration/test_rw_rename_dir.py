# SPDX-License-Identifier: Apache-2.0
"""Directories are renamed within the bucket: one document of each domain, and no data."""
import concurrent.futures
import errno
import os
import time

import h5py
import pytest

import faultproxy
import mkbucket
import mounts
import rwmounts
from gateway import needs_gateway

skip_without_gateway = needs_gateway[1]
CHUNKS, CHUNK = 4, 1 << 10
DOMAINS = {"home/a.h5": 1, "home/run": 2, "home/sub/b.nc": 3, "home/sub/deep/c.h5": 4,
           "other/d.h5": 5}
FOLDERS = "home", "home/sub", "home/empty", "other"
PLAIN = {"home/notes.txt": b"notes", "home/sub/empty": b""}
ACL = {"ann": dict.fromkeys(("create", "read", "update", "delete", "readACL", "updateACL"), True)}


class Place:
    def __init__(self, request, tmp_path, kind):
        self.root, self.tmp_path, self.env = tmp_path / "bucket", tmp_path, None
        self.url, self.client = os.fspath(self.root), None
        with mkbucket.Maker(self.root) as bucket:
            for path in FOLDERS:
                bucket.folder(path, ACL if path == "home/sub" else None)
            for path, value in DOMAINS.items():
                domain = bucket.domain(path)
                data = domain.dataset(domain.root, "data", mkbucket.INT8, [CHUNKS * CHUNK], [CHUNK])
                for i in range(CHUNKS):
                    data.chunk((i,), bytes([value]) * CHUNK)
            for key, body in PLAIN.items():
                bucket.put(key, body)
        if kind == "directory":
            return
        self.client = request.getfixturevalue("client")
        self.name = self.client.new_bucket("renamedir")
        self.client.upload(self.name, self.root)
        self.url, self.env = f"s3://{self.name}", request.getfixturevalue("environment")

    def mount(self, *options, name="rw", env=None):
        return rwmounts.RwMount(self.url, self.tmp_path / name, *options, env=env or self.env)

    def keys(self):
        text = self.client.request("GET", f"/{self.name}", {"list-type": "2"})[1].decode()
        return [part.split("</Key>")[0] for part in text.split("<Key>")[1:]]

    def check(self):
        """Storage without a name, or names without a storage."""
        done = mounts.run(mounts.HSIMAGE, "check", self.url, env=self.env)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(name="place", params=["directory", pytest.param("gateway", marks=needs_gateway)])
def make_place(request, tmp_path):
    return Place(request, tmp_path, request.param)


@pytest.fixture(name="in_s3")
def make_place_in_s3(request, tmp_path):
    return Place(request, tmp_path, "gateway")


def content(path):
    with open(path, "rb") as f:
        if f.read(4) != b"\x89HDF":
            f.seek(0)
            return f.read()
    with h5py.File(path, "r") as f:
        values = set(f["data"][:].tolist())
    assert len(values) == 1
    return values.pop()


def tree(root):
    found = {}
    for at, directories, names in os.walk(root):
        found |= {os.path.relpath(os.path.join(at, d), root): None for d in directories}
        found |= {os.path.relpath(os.path.join(at, n), root): content(os.path.join(at, n))
                  for n in names}
    return found


def names(root):
    return sorted(os.path.relpath(os.path.join(at, name), root)
                  for at, directories, files in os.walk(root) for name in directories + files)


HOME = {"a.h5": 1, "run.h5": 2, "sub": None, "sub/b.nc": 3, "sub/deep": None, "sub/deep/c.h5": 4,
        "empty": None, "notes.txt": b"notes", "sub/empty": b""}


def test_everything_moves(place):
    with place.mount() as m:
        acls = os.getxattr(m.file("home/sub"), "user.hsds.acls")
        assert tree(m.file("home")) == HOME
        inside = os.open(m.file("home/sub"), os.O_RDONLY)
        with open(m.file("home/a.h5"), "rb") as reader:
            start = reader.read(1000)
            os.rename(m.file("home"), m.file("moved"))
            assert not os.path.exists(m.file("home"))
            assert tree(m.file("moved")) == HOME
            reader.seek(0)
            assert reader.read(1000) == start
        # What the kernel knows has the new names, too.
        assert os.readlink(f"/proc/self/fd/{inside}") == m.file("moved/sub")
        with open(os.open("b.nc", os.O_RDONLY, dir_fd=inside), "rb") as f:
            assert f.read(4) == b"\x89HDF"
        os.close(inside)
        assert os.getxattr(m.file("moved/sub"), "user.hsds.acls") == acls
        with h5py.File(m.file("moved/sub/b.nc"), "r+") as f:
            f.attrs["changed"] = 1
        os.rename(m.file("moved/sub"), m.file("other/sub"))
    place.check()
    with place.mount(name="again") as m:
        assert sorted(os.listdir(m.path)) == ["moved", "other"]
        assert sorted(os.listdir(m.file("other"))) == ["d.h5", "sub"]
        with h5py.File(m.file("other/sub/b.nc")) as f:
            assert f.attrs["changed"] == 1
        assert os.getxattr(m.file("other/sub"), "user.hsds.acls") == acls


def test_like_a_disk(place, tmp_path):
    disk = tmp_path / "disk"
    for path in FOLDERS:
        (disk / path).mkdir(parents=True, exist_ok=True)
    (disk / "home/a.h5").write_bytes(b"")
    (disk / "other/d.h5").write_bytes(b"")

    def attempt(root, source, target):
        try:
            os.rename(os.path.join(root, source), os.path.join(root, target))
        except OSError as e:
            return e.errno
        return 0

    with place.mount() as m:
        for source, target in (("home", "home/sub/x"), ("home", "other"), ("home", "other/d.h5"),
                               ("other/d.h5", "home"), ("absent", "x"), ("home", "absent/x"),
                               ("home", "home")):
            assert attempt(m.path, source, target) == attempt(disk, source, target), target
        # A rename that fails keeps the empty directory that it would have replaced.
        with open(m.file("home/large"), "wb") as f:
            f.truncate((64 << 20) + 1)
        os.mkdir(m.file("new"))
        assert attempt(m.path, "home", "new") == errno.EXDEV
        assert os.listdir(m.file("new")) == []
        # Over an empty directory.
        assert attempt(m.path, "other", "home/empty") == attempt(disk, "other", "home/empty") == 0
        assert os.listdir(m.file("home/empty")) == ["d.h5"]
        assert not os.path.exists(m.file("other"))


def test_files_that_are_written(place):
    with place.mount() as m:
        with (open(m.file("home/new.bin"), "wb") as new, h5py.File(m.file("home/a.h5"), "r+") as f,
              h5py.File(m.file("home/run.h5"), "r+") as bare):
            new.write(b"first")
            new.flush()
            f.attrs["written"] = bare.attrs["written"] = 1
            bare.flush()
            os.rename(m.file("home"), m.file("moved"))
            new.write(b" second")
            f.attrs["after"] = bare.attrs["after"] = 2
            bare.flush()
            # Another descriptor of this program shows the same file.
            with open(m.file("moved/run.h5"), "rb") as again:
                assert os.fstat(again.fileno()).st_ino == os.stat(m.file("moved/run.h5")).st_ino
        m.released()
        assert content(m.file("moved/new.bin")) == b"first second"
        assert not os.path.exists(m.file("home"))
    with place.mount(name="again") as m:
        for name in "a.h5", "run.h5":
            with h5py.File(m.file("moved/" + name)) as f:
                assert dict(f.attrs) == {"written": 1, "after": 2}
        assert content(m.file("moved/new.bin")) == b"first second"
    place.check()


def test_limits(place):
    with place.mount("rename_dir_max=1") as m:
        before = tree(m.path)
        calls = m.requests()
        for source in "home", "home/sub":
            with pytest.raises(OSError) as e:
                os.rename(m.file(source), m.file("moved"))
            assert e.value.errno == errno.EXDEV
        after = m.requests()
        assert (after["put"], after["delete"]) == (calls["put"], calls["delete"])
        assert tree(m.path) == before
        os.rename(m.file("other"), m.file("moved"))
        # mv copies after EXDEV.
        mounts.run("mv", m.file("home/sub"), m.file("moved/sub"), check=True)
        assert content(m.file("moved/sub/deep/c.h5")) == 4
    with place.mount(name="again") as m:
        with open(m.file("home/large"), "wb") as f:
            f.truncate((64 << 20) + 1)
        with pytest.raises(OSError) as e:
            os.rename(m.file("home"), m.file("x"))
        assert e.value.errno == errno.EXDEV
        assert not os.path.exists(m.file("x"))


@skip_without_gateway
def test_a_refused_file_keeps_all(in_s3, gateway, environment):
    """If one document cannot be put, all files get their old names back."""
    place = in_s3
    fault = {"what": "status", "value": 403, "code": "AccessDenied", "percent": 100,
             "method": "PUT", "path": "moved/sub/deep/c.h5/"}
    with faultproxy.Proxy(gateway["endpoint"], [fault]) as proxy:
        with place.mount(env=dict(environment, AWS_ENDPOINT_URL=proxy.endpoint)) as m:
            # The proxy runs in this process, and libhdf5 would keep it from answering.
            before = names(m.path)
            with pytest.raises(OSError) as e:
                os.rename(m.file("home"), m.file("moved"))
            assert e.value.errno == errno.EACCES
            assert names(m.path) == before
    assert "home/run/.domain.json" in place.keys()
    with place.mount(name="again") as m:
        assert names(m.path) == before
        assert tree(m.file("home")) == HOME
    place.check()


@pytest.mark.parametrize("seconds", [0.1, 0.25, 0.4])
def test_a_kill_loses_nothing(place, seconds):
    """Each file has one of its names, and later mounts can use it."""
    m = place.mount("debug_fault=delay:1+:20")
    m.start()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(os.rename, m.file("home"), m.file("moved"))
        time.sleep(seconds)
        m.kill()
    with place.mount(name="rw") as m:
        found = [item for name in ("home", "moved") if os.path.exists(m.file(name))
                 for item in tree(m.file(name)).items() if item[1] is not None]
        assert sorted(found) == sorted(item for item in HOME.items() if item[1] is not None)
    place.check()


@skip_without_gateway
def test_requests(in_s3):
    with in_s3.mount() as m:
        tree(m.path)
        before = m.requests()
        os.rename(m.file("home"), m.file("moved"))
        after = mounts.difference(before, m.requests())
        domains, folders, plain = 4, 4, len(PLAIN)
        # A domain has a list of names and a document; the folder `deep` gets a document twice.
        assert after["put"] <= 2 * domains + folders + plain + 2, after
        assert after["delete"] <= domains + folders + plain + 2, after
