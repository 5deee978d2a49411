# SPDX-License-Identifier: Apache-2.0
"""Directory markers of S3: empty objects "name/" that consoles and other tools put for a folder."""
import errno
import os

import pytest

import mkbucket
import rwmounts
from gateway import needs_gateway

pytestmark = needs_gateway


class Bucket:
    def __init__(self, client, env, tmp_path):
        self.client, self.env, self.tmp_path = client, env, tmp_path
        self.name = client.new_bucket("markers")
        self.domains = mkbucket.Maker(tmp_path / "source")

    def put(self, *keys):
        for key in keys:
            self.client.put(self.name, key, b"" if key.endswith("/") else b"1")

    def add_domains(self, *paths):
        with self.domains as maker:
            for path in paths:
                maker.domain(path)
        self.client.upload(self.name, self.tmp_path / "source")

    def keys(self):
        text = self.client.request("GET", f"/{self.name}", {"list-type": "2"})[1].decode()
        return [part.split("</Key>")[0] for part in text.split("<Key>")[1:]]

    def mount(self, *options, prefix="", name="rw"):
        return rwmounts.RwMount(f"s3://{self.name}{prefix}", self.tmp_path / name, *options,
                                env=self.env)


@pytest.fixture(name="bucket")
def make_bucket(client, environment, tmp_path):
    made = Bucket(client, environment, tmp_path)
    made.put("db/x")
    return made


def tree(root):
    return sorted(os.path.relpath(os.path.join(at, name), root)
                  for at, directories, files in os.walk(root)
                  for name in directories + files if name != ".hsmount" and ".hsmount" not in at)


def test_a_marker_is_a_directory(bucket):
    bucket.put("console/", "a/sub/", "b/", "b/sub/", "b/f")
    with bucket.mount() as m:
        assert tree(m.path) == ["a", "a/sub", "b", "b/f", "b/sub", "console"]
        assert os.listdir(m.file("console")) == []
        with open(m.file("console/new.txt"), "w", encoding="ascii") as f:
            f.write("x")
        with pytest.raises(FileExistsError):
            os.mkdir(m.file("console"))
        with pytest.raises(IsADirectoryError):
            open(m.file("a/sub"), "wb").close()
    assert "console/new.txt" in bucket.keys()
    with bucket.mount("metadata_ttl=0", name="again") as m:
        assert tree(m.path) == ["a", "a/sub", "b", "b/f", "b/sub", "console", "console/new.txt"]


def test_rmdir(bucket):
    bucket.put("console/", "a/sub/", "b/", "b/f", "strange/", "strange//x", "full/")
    bucket.client.put(bucket.name, "full/", b"something")
    with bucket.mount() as m:
        os.rmdir(m.file("console"))
        os.mkdir(m.file("both"))
        bucket.put("both/")
        os.rmdir(m.file("both"))
        for name in "a", "b":
            with pytest.raises(OSError) as e:
                os.rmdir(m.file(name))
            assert e.value.errno == errno.ENOTEMPTY
        assert m.log().count("is not removed") == 0
        # No mount shows these keys, so the log names them.
        for name, key in ("strange", "strange//"), ("full", "full/"):
            with pytest.raises(OSError) as e:
                os.rmdir(m.file(name))
            assert e.value.errno == errno.ENOTEMPTY
            line = next(l for l in m.log().splitlines() if f"{name} is not removed" in l)
            assert key in line
        os.rmdir(m.file("a/sub"))
        os.rmdir(m.file("a"))
        os.remove(m.file("b/f"))
        os.rmdir(m.file("b"))
        assert tree(m.path) == ["full", "strange"]
    assert bucket.keys() == ["db/x", "full/", "strange/", "strange//x"]


def test_a_directory_stays_after_its_last_entry(bucket):
    bucket.put("marked/", "marked/f", "loose/f")
    with bucket.mount() as m:
        os.remove(m.file("marked/f"))
        os.remove(m.file("loose/f"))
        assert tree(m.path) == ["loose", "marked"]
    assert [k for k in bucket.keys() if not k.startswith("db")] == ["loose/.domain.json", "marked/"]


@pytest.mark.parametrize("is_listed", [False, True])
def test_markers_in_domains(bucket, is_listed):
    """A marker is no key of a domain, and goes with its name."""
    bucket.add_domains("home/x.h5", "home/y.h5", "home/z.h5", "home/bare")
    bucket.put("home/", "home/x.h5/", "home/y.h5/", "home/z.h5/", "home/bare/", "db/")
    with bucket.mount() as m:
        if is_listed:
            assert sorted(os.listdir(m.path)) == ["home"]
            assert sorted(os.listdir(m.file("home"))) == ["bare.h5", "x.h5", "y.h5", "z.h5"]
        for name in "x.h5", "y.h5", "z.h5", "bare.h5":
            assert rwmounts.opens(m.file("home/" + name))
        os.remove(m.file("home/x.h5"))
        os.rename(m.file("home/y.h5"), m.file("home/moved.h5"))
        with open(m.file("home/z.h5"), "wb") as f:
            f.write(b"a plain file")
        os.remove(m.file("home/bare.h5"))
        m.released()
        assert sorted(os.listdir(m.file("home"))) == ["moved.h5", "z.h5"]
    with bucket.mount(name="again") as m:
        assert sorted(os.listdir(m.file("home"))) == ["moved.h5", "z.h5"]
        with open(m.file("home/z.h5"), "rb") as f:
            assert f.read() == b"a plain file"
    assert [k for k in bucket.keys() if k.startswith("home")] == [
        "home/", "home/moved.h5/.domain.json", "home/z.h5"]


def test_an_object_with_bytes_is_no_marker(bucket):
    bucket.add_domains("home/x.h5")
    bucket.client.put(bucket.name, "home/x.h5/", b"data of another program")
    with bucket.mount() as m:
        os.remove(m.file("home/x.h5"))
        assert "home/x.h5/ has bytes" in m.log()
    assert "home/x.h5/" in bucket.keys()


def test_the_marker_of_the_mounted_prefix(bucket):
    bucket.put("pre/", "pre/db/", "pre/db/x", "pre/a/")
    with bucket.mount(prefix="/pre") as m:
        assert tree(m.path) == ["a"]
        os.rmdir(m.file("a"))
        assert tree(m.path) == []
    assert "pre/" in bucket.keys()


def test_many_markers_are_listed_by_one_request_each(bucket):
    bucket.put("top/", *(f"top/{i:02}/" for i in range(20)))
    with bucket.mount() as m:
        assert len(os.listdir(m.file("top"))) == 20
        before = m.requests()
        for i in range(20):
            os.rmdir(m.file(f"top/{i:02}"))
        after = m.requests()
        # One look at the keys below, and one DELETE.
        assert after["delete"] - before["delete"] == 20
        assert after["list"] - before["list"] <= 40
        assert after.get("put", 0) == before.get("put", 0)
        assert os.listdir(m.file("top")) == []
