# SPDX-License-Identifier: Apache-2.0
"""Mounts with -o rw: names change as on a disk, in a directory and in S3. Open files of removed
domains can be read, and their storage is gone after the mount has ended."""
import ctypes
import errno
import json
import os
import re
import time

import h5py
import pytest

import mkbucket
import mounts
from gateway import needs_gateway
from mounts import Mount

NOREPLACE, EXCHANGE = 1, 2
PERMISSIONS = ("create", "read", "update", "delete", "readACL", "updateACL")
CHUNKS, CHUNK = 8, 32 << 10         # of each domain; bytes
DOMAINS = {"home/a.h5": 1, "home/b.h5": 2, "home/run": 3, "home/sub/d.nc": 4, "loose/e.h5": 5}
PLAIN = {"home/plain.txt": b"plain", "home/empty": b"", "loose/only.txt": b"only"}
# PUTs and DELETEs of a rename, by whether it is in S3: the list of names of the storage, and in S3
# the document of the new name and that of the old one. A directory moves the document.
RENAME = {False: (1, 0), True: (2, 1)}
libc = ctypes.CDLL(None, use_errno=True)


def rename(source, target, flags=0):
    if libc.renameat2(-100, os.fsencode(source), -100, os.fsencode(target), flags):
        raise OSError(ctypes.get_errno(), "renameat2")


class Directory:
    env = None

    def __init__(self, root):
        self.url = os.fspath(root)

    def keys(self):
        return sorted(os.path.relpath(os.path.join(at, name), self.url)
                      for at, _, names in os.walk(self.url) for name in names)

    def get(self, key):
        with open(os.path.join(self.url, key), "rb") as f:
            return f.read()

    def put(self, key, body):
        path = os.path.join(self.url, key)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".new", "wb") as f:
            f.write(body)
        os.rename(path + ".new", path)


class Gateway:
    def __init__(self, client, bucket, env):
        self.client, self.bucket, self.env, self.url = client, bucket, env, f"s3://{bucket}"

    def keys(self):
        _, body = self.client.request("GET", f"/{self.bucket}", {"list-type": "2"})
        return sorted(re.findall("<Key>(.*?)</Key>", body.decode()))

    def get(self, key):
        return self.client.get(self.bucket, key)

    def put(self, key, body):
        self.client.put(self.bucket, key, body)


@pytest.fixture(params=["directory", pytest.param("gateway", marks=needs_gateway)])
def place(request, tmp_path):
    root = tmp_path / "bucket"
    with mkbucket.Maker(root) as bucket:
        for path in "home", "home/sub":
            bucket.folder(path)
        for path, value in DOMAINS.items():
            domain = bucket.domain(path)
            data = domain.dataset(domain.root, "data", mkbucket.INT8, [CHUNKS * CHUNK], [CHUNK])
            for i in range(CHUNKS):
                data.chunk((i,), bytes([value * 10 + i]) * CHUNK)
        for key, body in PLAIN.items():
            bucket.put(key, body)
    if request.param == "directory":
        return Directory(root)
    client = request.getfixturevalue("client")
    name = client.new_bucket("names")
    client.upload(name, root)
    return Gateway(client, name, request.getfixturevalue("environment"))


def mount(place, tmp_path, *options, name="rw"):
    return Mount(place.url, tmp_path / name, *options, env=place.env)


@pytest.fixture
def disk(tmp_path):
    """The same tree on a disk. The content of a domain is its number."""
    root = tmp_path / "disk"
    for path, value in DOMAINS.items():
        file = root / (path if "." in os.path.basename(path) else path + ".h5")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"domain {value}", encoding="ascii")
    for path, body in PLAIN.items():
        (root / path).write_bytes(body)
    return os.fspath(root)


def content(path):
    with open(path, "rb") as f:
        body = f.read()
    if not body.startswith(b"\x89HDF"):
        return body
    with h5py.File(path, "r") as f:
        data = f["data"][::CHUNK]
    assert [v - data[0] for v in data] == list(range(CHUNKS))
    return f"domain {data[0] // 10}".encode()


def tree(root):
    out = {}
    for at, directories, names in os.walk(root):
        directories.sort()
        out |= {os.path.relpath(os.path.join(at, d), root): None for d in directories}
        out |= {os.path.relpath(os.path.join(at, n), root): content(os.path.join(at, n))
                for n in names}
    return out


def attempt(call, root, *arguments):
    """0, or the errno."""
    paths = [os.path.join(root, a) if isinstance(a, str) else a for a in arguments]
    try:
        call(*paths)
    except OSError as e:
        return e.errno
    return 0


def requests(m):
    with open(m.file(".hsmount/stats"), encoding="utf-8") as f:
        calls = json.load(f)["store"]["calls"]
    return {call: sum(results.values()) for call, results in calls.items()}


STEPS = [
    (os.mkdir, "home/new", 0),
    (os.mkdir, "home/new", errno.EEXIST),
    (os.mkdir, "home/a.h5", errno.EEXIST),
    (os.mkdir, "home/run.h5", errno.EEXIST),
    (os.mkdir, "home/none/x", errno.ENOENT),
    (os.mkdir, "home/plain.txt/x", errno.ENOTDIR),
    (os.mkdir, "home/" + "n" * 300, errno.ENAMETOOLONG),
    (os.rmdir, "home", errno.ENOTEMPTY),
    (os.rmdir, "home/a.h5", errno.ENOTDIR),
    (os.rmdir, "home/none", errno.ENOENT),
    (os.unlink, "home/new", errno.EISDIR),
    (os.unlink, "home/none", errno.ENOENT),
    (rename, "home/a.h5", "home/a.h5", 0),
    (rename, "home/a.h5", "home/new/a.h5", 0),
    (rename, "home/new/a.h5", "home/b.h5", NOREPLACE, errno.EEXIST),
    (rename, "home/new/a.h5", "home/new/c.h5", NOREPLACE, 0),
    (rename, "home/new/c.h5", "home/b.h5", 0),
    (rename, "home/none", "home/x", errno.ENOENT),
    (rename, "home/b.h5", "home/none/x.h5", errno.ENOENT),
    (rename, "home/b.h5", "home/new", errno.EISDIR),
    (rename, "home/b.h5", "home/run.h5", 0),
    (rename, "home/run.h5", "home/sub/d.nc", 0),
    (rename, "home/plain.txt", "home/new/p", 0),
    (rename, "home/empty", "home/new/p", 0),
    (rename, "home/new/p", "home/sub/d.nc", 0),
    (rename, "loose/e.h5", "home/sub/d.nc", 0),
    (os.unlink, "loose/only.txt", 0),
    (os.rmdir, "loose", 0),
    (os.rmdir, "home/new", 0),
    (os.chmod, "home/sub/d.nc", 0o600, 0),
    (os.chmod, "home/sub", 0o700, 0),
    (os.chown, "home/sub/d.nc", os.getuid(), os.getgid(), 0),
    (os.utime, "home/sub/d.nc", (1, 1), 0),
    (os.rename, "home/sub/d.nc", "top.h5", 0),
    (os.unlink, "top.h5", 0),
    (os.rmdir, "home/sub", 0),
]


@pytest.mark.sampled(keep=2)
@pytest.mark.parametrize("ttl", ["metadata_ttl=0", "metadata_ttl=60"])
def test_as_on_a_disk(place, disk, tmp_path, ttl):
    with mount(place, tmp_path, "rw", ttl) as m:
        assert tree(m.path) == tree(disk)
        for call, *arguments, code in STEPS:
            assert attempt(call, disk, *arguments) == code, (call, arguments)
            assert attempt(call, m.path, *arguments) == code, (call, arguments, m.log())
            # Comparing contents takes requests, so the tree is compared often enough.
            if call in (rename, os.rename) or code == 0:
                assert tree(m.path) == tree(disk), (call, arguments)
    with mount(place, tmp_path, name="later") as m:
        assert tree(m.path) == tree(disk) == {"home": None}
    assert place.keys() == ["home/.domain.json"]


def test_requests_of_a_rename(place, tmp_path):
    # Without `root`, a mount reads the names in its root meanwhile.
    with mount(place, tmp_path, "rw", "metadata_ttl=1", "root=/home") as m:
        cold = True
        for source, target in (("a.h5", "new.h5"), ("new.h5", "sedaQfsfy"),
                               ("sedaQfsfy", ".x.h5.Q3ZrN"), (".x.h5.Q3ZrN", "b.h5"),
                               ("b.h5", "run.h5"), ("run.h5", "sub/d.nc")):
            before = requests(m)
            rename(m.file("home", source), m.file("home", target))
            after = mounts.difference(before, requests(m))
            assert (after["put"], after["delete"]) == RENAME[place.env is not None], (source, after)
            # One round for each name, and one for the directory; the old name is always looked up
            # again. Then the list exists, and is read.
            read = 0 if cold else 1
            # Nothing has shown yet whether "run", which is the domain of run.h5, has a marker.
            assert after["list"] <= 6 and after["get"] + after["head"] <= 12 + read, after
            assert not cold or (after["list"], after["get"]) == (5, 11)
            cold = False
        assert content(m.file("home/sub/d.nc")) == b"domain 1"
        before = requests(m)
        # A directory with one domain: in addition, a document of the folder.
        assert attempt(rename, m.path, "home/sub", "home/other") == 0
        after = mounts.difference(before, requests(m))
        put, delete = RENAME[place.env is not None]
        assert (after["put"], after["delete"]) == (put + 1, delete + 1), after


def test_names_without_extension(place, tmp_path):
    """A domain is found under its name in the bucket, and under the one that is listed."""
    home = "home/"
    with mount(place, tmp_path, "rw") as m:
        for path in "home/run", "home/run.h5":
            assert content(m.file(path)) == b"domain 3"
        assert attempt(os.mkdir, m.path, "home/run") == errno.EEXIST
        assert attempt(os.listdir, m.path, "home/run") == errno.ENOTDIR
        rename(m.file("home/a.h5"), m.file("home/sedaQfsfy"))
        assert "home/sedaQfsfy/.domain.json" in place.keys()
        assert content(m.file("home/sedaQfsfy")) == b"domain 1"
        assert sorted(os.listdir(m.file("home"))) == ["b.h5", "empty", "plain.txt", "run.h5",
                                                      "sedaQfsfy.h5", "sub"]
        rename(m.file("home/sedaQfsfy"), m.file("home/b.h5"))
        assert content(m.file("home/b.h5")) == b"domain 1"
        # Its listed name becomes its name in the bucket, and the reverse.
        assert attempt(rename, m.path, "home/run.h5", "home/run") == 0
        assert "home/run/.domain.json" in place.keys()
        assert attempt(rename, m.path, "home/run", "home/run.h5", NOREPLACE) == errno.EEXIST
        rename(m.file("home/run"), m.file("home/run.h5"))
        assert "home/run.h5/.domain.json" in place.keys()
        assert not os.path.exists(m.file("home/run"))
        rename(m.file("home/run.h5"), m.file("home/run"))
        assert "home/run/.domain.json" in place.keys()
        for name in ".x.h5.Q3ZrN", "a.", ".hidden", "...", "home":
            rename(m.file("home/run"), m.file(home + name))
            assert content(m.file(home + name)) == b"domain 3"
            listed = name if "." in name[1:] else name + ".h5"
            assert listed in os.listdir(m.file("home"))
            rename(m.file(home + listed), m.file("home/run"))
        rename(m.file("home/plain.txt"), m.file("home/run"))
        assert content(m.file("home/run")) == b"plain"
        assert not os.path.exists(m.file("home/run.h5"))
        rename(m.file("home/b.h5"), m.file("home/run"))
        os.unlink(m.file("home/run"))
    assert [k for k in place.keys() if k.startswith(home)] == [
        "home/.domain.json", "home/empty", "home/sub/.domain.json", "home/sub/d.nc/.domain.json"]


def test_a_temporary_file_is_renamed(place, tmp_path):
    """As rsync, sed -i and NCO do it: the file is committed under its temporary name, found there,
    and renamed."""
    with h5py.File(tmp_path / "new.h5", "w") as f:
        f["data"] = range(1000)
    new = (tmp_path / "new.h5").read_bytes()
    with mount(place, tmp_path, "rw") as m:
        for i, name in enumerate((".x.h5.Q3ZrN", "sedaQfsfy", "out.nc.pid1.ncks.tmp", "a.", ".tmp",
                                  "x" * 252)):
            temporary, target = m.file("home", name), m.file("home", f"{i % 2}.h5")
            with open(temporary, "xb") as f:
                f.write(new)
            assert f"home/{name}/.domain.json" in place.keys()
            os.utime(temporary)
            os.chmod(temporary, 0o600)
            assert os.stat(temporary).st_size > 0
            before = requests(m)
            os.rename(temporary, target)
            after = mounts.difference(before, requests(m))
            assert (after["put"], after["delete"]) == RENAME[place.env is not None], (name, after)
            with h5py.File(target, "r") as f:
                assert list(f["data"][:3]) == [0, 1, 2]
            assert not os.path.exists(temporary)
        for name in "sedaQfsfy", ".x.h5.Q3ZrN":
            with open(m.file("home", name), "xb") as f:
                f.write(b"no HDF5")
            os.rename(m.file("home", name), m.file("home/plain.txt"))
            assert content(m.file("home/plain.txt")) == b"no HDF5"
    assert len(storages(place)) == len(DOMAINS) + 2


def storages(place):
    return {key.split("/")[1] for key in place.keys() if key.startswith("db/")}


def test_open_files_of_removed_domains(place, tmp_path):
    """Nothing of the data is read before the domains lose their names."""
    paths = "home/a.h5", "home/b.h5", "home/run.h5"
    with mount(place, tmp_path, name="before") as m:
        images = []
        for path in paths:
            with open(m.file(path), "rb") as f:
                images.append(f.read())
    assert len(storages(place)) == 5
    with mount(place, tmp_path, "rw") as m:
        files = [open(m.file(path), "rb") for path in paths]
        os.unlink(m.file("home/a.h5"))
        rename(m.file("home/run.h5"), m.file("home/b.h5"))
        with pytest.raises(FileNotFoundError):
            os.stat(m.file("home/a.h5"))
        assert content(m.file("home/b.h5")) == b"domain 3"
        for f, image in zip(files, images):
            assert f.read() == image
            f.close()
        assert len(storages(place)) == 5
    assert len(storages(place)) == 3
    with mount(place, tmp_path, name="after") as m:
        assert content(m.file("home/b.h5")) == b"domain 3"
        assert content(m.file("home/sub/d.nc")) == b"domain 4"


@pytest.mark.long
@pytest.mark.timeout(120)
def test_storage_is_deleted_while_mounted(place, tmp_path):
    with mount(place, tmp_path, "rw") as m:
        with open(m.file("home/a.h5"), "rb"):
            os.unlink(m.file("home/a.h5"))
            os.unlink(m.file("home/b.h5"))
            time.sleep(20)      # storage is deleted half a minute after its domain
            assert len(storages(place)) == 5
            assert mounts.wait_for(lambda: len(storages(place)) == 4)
            time.sleep(8)       # but not that of an open file
            assert len(storages(place)) == 4
        assert mounts.wait_for(lambda: len(storages(place)) == 3)


def test_two_names_of_one_domain(place, tmp_path):
    place.put("home/twin.h5/.domain.json", place.get("home/a.h5/.domain.json"))
    with mount(place, tmp_path, "rw") as m:
        os.unlink(m.file("home/a.h5"))
    assert len(storages(place)) == 5
    with mount(place, tmp_path, "rw") as m:
        assert content(m.file("home/twin.h5")) == b"domain 1"
        os.unlink(m.file("home/twin.h5"))
    assert len(storages(place)) == 4


def test_a_removed_name_leads_elsewhere(place, tmp_path):
    """The storage of a removed name is not deleted if the domain gets a name in another folder."""
    place.put("home/twin.h5/.domain.json", place.get("home/a.h5/.domain.json"))
    with mount(place, tmp_path, "rw") as m:
        os.unlink(m.file("home/a.h5"))
        rename(m.file("home/twin.h5"), m.file("home/sub/twin.h5"))
    with mount(place, tmp_path) as m:
        assert content(m.file("home/sub/twin.h5")) == b"domain 1"


@pytest.mark.parametrize("then", ["the same journal", "rm old", "rm new", "mv old", "mv new"])
def test_a_rename_that_fails(place, tmp_path, then):
    """From some request for the old name's document on, all fail, as if the daemon were killed. The
    domain always has a name. If it has two, the next mount with the journal removes the old one. If
    another mount removes or renames one of them before, the other one stays."""
    if not place.env and then != "the same journal":
        pytest.skip("a directory moves the document in one step, so the domain never has two names")
    both, code, n = 0, errno.EIO, 2
    while code:     # until the rename needs no more requests
        n += 1
        new_name, old_name = f"home/sub/new{n}.h5", f"home/old{n}.h5"
        with mount(place, tmp_path, "rw") as m:
            rename(m.file("home/a.h5"), m.file(old_name))
        fault = f"debug_fault=fail:{n}+:EIO@{old_name}/.domain.json"
        with mount(place, tmp_path, "rw", fault) as m:
            code = attempt(rename, m.path, old_name, new_name)
            keys = place.keys()
            old, new = (f"{path}/.domain.json" in keys for path in (old_name, new_name))
            assert (code, old, new) in {(0, False, True), (errno.EIO, True, False),
                                        (errno.EIO, True, True)}, (n, m.log())
            both += old and new
            if old and new:
                assert f"the domain has both names, /{old_name} and /{new_name}" in m.log()
        if old and new and then != "the same journal":
            with mount(place, tmp_path, "rw", name="other") as m:
                verb, which = then.split()
                one = m.file(old_name if which == "old" else new_name)
                if verb == "rm":
                    os.unlink(one)
                elif attempt(rename, m.path, one, "home/sub/moved.h5") == 0:
                    rename(m.file("home/sub/moved.h5"), one)
                old, new = os.path.exists(m.file(old_name)), os.path.exists(m.file(new_name))
                assert old or new
        with mount(place, tmp_path, "rw") as m:
            if new and then == "the same journal":
                assert mounts.wait_for(lambda: not os.path.exists(m.file(old_name)))
                old = False
        with mount(place, tmp_path, "rw", name="other") as m:
            last = m.file(new_name if new else old_name)
            assert content(last) == b"domain 1"
            rename(last, m.file("home/a.h5"))
            if old and new:
                os.unlink(m.file(old_name))
            assert content(m.file("home/a.h5")) == b"domain 1"
    assert bool(both) == (place.env is not None)


def test_another_program_changes_the_bucket(place, tmp_path):
    """The mount has old versions in its caches."""
    with mount(place, tmp_path, "rw", "metadata_ttl=60") as m:
        for name in "a.h5", "b.h5", "plain.txt":
            os.stat(m.file("home", name))
        for key in "home/a.h5/.domain.json", "home/b.h5/.domain.json":
            document = json.loads(place.get(key))
            document["lastModified"] += 1
            place.put(key, json.dumps(document).encode())
        place.put("home/plain.txt", b"newer")
        rename(m.file("home/a.h5"), m.file("home/b.h5"))
        assert content(m.file("home/b.h5")) == b"domain 1"
        rename(m.file("home/plain.txt"), m.file("home/p"))
        assert content(m.file("home/p")) == b"newer"
        os.unlink(m.file("home/b.h5"))
    assert "home/b.h5/.domain.json" not in place.keys()


def test_a_directory_is_made_again(place, tmp_path):
    """Although a program still uses the removed one."""
    with mount(place, tmp_path, "rw") as m:
        os.mkdir(m.file("home/d"))
        fd = os.open(m.file("home/d"), os.O_RDONLY)
        os.rmdir(m.file("home/d"))
        os.mkdir(m.file("home/d"))
        rename(m.file("home/a.h5"), m.file("home/d/a.h5"))
        assert os.listdir(m.file("home/d")) == ["a.h5"]
        os.close(fd)
        document = json.loads(place.get("home/d/.domain.json"))
        assert "root" not in document and document["owner"] in document["acls"]


def create(path):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o666))


def write(path):
    os.close(os.open(path, os.O_WRONLY))


REFUSED = [
    (os.truncate, "home/a.h5", 1, errno.EROFS),
    (create, "home/.domain.json", errno.EINVAL),
    (os.mkfifo, "home/fifo", errno.EPERM),
    (os.symlink, "a.h5", "home/link", errno.EPERM),
    (os.link, "home/a.h5", "home/link.h5", errno.EPERM),
    (os.setxattr, "home/a.h5", b"user.x", b"1", errno.ENOTSUP),
    (os.removexattr, "home/a.h5", b"user.hsds.root", errno.ENOTSUP),
    (rename, "home/a.h5", "home/b.h5", EXCHANGE, errno.EINVAL),
    (os.mkdir, "db", errno.EINVAL),
    (os.mkdir, "home/.domain.json", errno.EINVAL),
    (os.rmdir, ".hsmount", errno.EPERM),
    (os.unlink, ".hsmount/stats", errno.EPERM),
    (rename, "home/a.h5", ".hsmount/a.h5", errno.EPERM),
]
WRITES = [
    (create, "home/x.h5", 0),
    (write, "home/plain.txt", 0),
    (os.truncate, "home/a.h5", 0, 0),
    (os.mknod, "home/x.h5", 0),
]


def test_what_is_refused(place, tmp_path):
    keys = place.keys()
    with mount(place, tmp_path, "rw") as m:
        for call, *arguments, code in REFUSED:
            assert attempt(call, m.path, *arguments) == code, (call, arguments)
        assert os.stat(m.file("home")).st_mode & 0o700 == 0o700
        assert os.access(m.file("home/a.h5"), os.W_OK)
    with mount(place, tmp_path, name="ro") as m:
        assert os.stat(m.file("home")).st_mode & 0o200 == 0
        for call, *arguments, _ in REFUSED + WRITES + STEPS[:1] + [
                (os.rmdir, "home/sub", 0), (os.unlink, "home/a.h5", 0),
                (rename, "home/a.h5", "home/x.h5", 0), (os.chmod, "home/a.h5", 0o600, 0)]:
            assert attempt(call, m.path, *arguments) in (errno.EROFS, errno.EXDEV), \
                (call, arguments)
    assert place.keys() == keys


def test_the_mode_of_a_domain_that_was_opened(tmp_path):
    """The bits are those of the name, also of an open file, and of a file that was open."""
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        bucket.domain("home/a.h5")
    with Mount(tmp_path / "bucket", tmp_path, "rw", "metadata_ttl=0") as m:
        path = m.file("home/a.h5")
        modes = [os.stat(path).st_mode]
        with open(path, "rb") as f:
            f.read(8)
            modes += [os.fstat(f.fileno()).st_mode, os.stat(path).st_mode]
        modes.append(os.stat(path).st_mode)
        assert modes[0] & 0o200 and len(set(modes)) == 1, [oct(mode) for mode in modes]


def test_no_empty_directories(tmp_path):
    """The storage of a domain leaves no directory when it is removed, but the bucket remains."""
    bucket = tmp_path / "bucket"
    bucket.mkdir()
    with Mount(bucket, tmp_path / "rw", "rw") as m:
        os.mkdir(m.file("home"))
        with h5py.File(m.file("home/a.h5"), "w") as f:
            f.create_dataset("g/x", data=range(100), chunks=(10,))
        assert len(list(bucket.rglob("db/*/d/*/*"))) > 10
        os.remove(m.file("home/a.h5"))
        os.rmdir(m.file("home"))
    assert list(bucket.rglob("*")) == [bucket / "db"]
    with Mount(bucket, tmp_path / "later") as m:
        assert os.listdir(m.path) == []


@pytest.mark.parametrize("place", ["directory", pytest.param("gateway", marks=needs_gateway)])
def test_an_empty_place(place, tmp_path, request):
    """It becomes a bucket, even if only a plain file is stored in it."""
    url, env = os.fspath(tmp_path / "bucket"), None
    if place == "gateway":
        name = request.getfixturevalue("client").new_bucket("empty")
        url, env = f"s3://{name}", request.getfixturevalue("environment")
    else:
        os.mkdir(url)
        with pytest.raises(AssertionError, match="is an empty directory, not a bucket"):
            with Mount(url, tmp_path / "ro"):
                pass
    with Mount(url, tmp_path / "rw", "rw", env=env) as m:
        assert os.listdir(m.path) == []
        assert "nothing is there; it becomes a bucket" in m.log()
        with open(m.file("text"), "w") as f:
            f.write("plain")
    # A directory of S3 exists only with its objects.
    lines = ["may not be a bucket"] if place == "gateway" else []
    with Mount(url, tmp_path / "later", "rw", env=env) as m:
        assert os.listdir(m.path) == ["text"]
        assert [line in m.log() for line in lines] == [True] * len(lines)
        assert lines or m.log() == ""
        os.mkdir(m.file("home"))
    with Mount(url, tmp_path / "last", env=env) as m:
        assert os.listdir(m.path) == ["home", "text"]
        assert m.log() == ""


def kill(m):
    m.process.kill()
    m.process.wait()
    m.process = None
    mounts.unmount(m.path)


def test_the_daemon_is_killed(place, tmp_path):
    """The next mount with the same journal deletes the storage of removed domains."""
    m = mount(place, tmp_path, "rw")
    m.start()
    os.unlink(m.file("home/a.h5"))
    rename(m.file("home/run.h5"), m.file("home/b.h5"))
    os.unlink(m.file("home/sub/d.nc"))
    kill(m)
    assert len(storages(place)) == 5
    # Another journal knows nothing about it.
    with mount(place, tmp_path, "rw", name="other"):
        pass
    assert len(storages(place)) == 5
    # Killed again.
    m.start()
    kill(m)
    assert len(storages(place)) == 5
    with m:
        assert content(m.file("home/b.h5")) == b"domain 3"
    assert len(storages(place)) == 2
    with mount(place, tmp_path, name="after") as m:
        assert content(m.file("home/b.h5")) == b"domain 3"
        assert content(m.file("loose/e.h5")) == b"domain 5"


def leave_out(acls, permission):
    return {user: {p: v for p, v in perms.items() if p != permission}
            for user, perms in acls.items()}


def test_access_control_lists(place, tmp_path):
    """They can be set in the form in which they are read."""
    name = b"user.hsds.acls"
    with mount(place, tmp_path, "rw", "metadata_ttl=0") as m:
        before = {key: json.loads(place.get(f"home/{key}.domain.json")) for key in ("", "a.h5/")}
        for path in "home", "home/a.h5", "home/run.h5":
            acls = json.loads(os.getxattr(m.file(path), name))
            acls["bob"] = dict.fromkeys(next(iter(acls.values())), True)
            acls["default"] = acls["bob"] | {"read": False}
            os.setxattr(m.file(path), name, json.dumps(acls).encode())
            assert json.loads(os.getxattr(m.file(path), name)) == acls
            assert os.stat(m.file(path)).st_mode & 0o077 == 0
            for bad in (b"", b"[]", json.dumps(leave_out(acls, "read")).encode(),
                        json.dumps(acls | {"": acls["bob"]}).encode()):
                assert attempt(os.setxattr, m.path, path, name, bad) == errno.EINVAL
            value = json.dumps(acls).encode()
            assert attempt(os.setxattr, m.path, path, name, value,
                           os.XATTR_CREATE) == errno.EEXIST
        assert attempt(os.setxattr, m.path, "home/plain.txt", name, b"{}") == errno.ENOTSUP
        assert attempt(os.setxattr, m.path, "loose", name, b"{}", os.XATTR_REPLACE) == errno.ENODATA
        assert attempt(os.setxattr, m.path, "loose", name, b"{}", os.XATTR_CREATE) == 0
        for key, document in before.items():
            now = json.loads(place.get(f"home/{key}.domain.json"))
            assert now.pop("acls")["bob"]["create"] is True
            del document["acls"]
            assert now == document
        assert content(m.file("home/run")) == b"domain 3"


def test_copies_keep_access_control_lists(place, tmp_path):
    """cp -a and mv set them before the copy is in the bucket."""
    def acls(path):
        return json.loads(os.getxattr(m.file(path), name))

    name = "user.hsds.acls"
    with mount(place, tmp_path, "rw") as m:
        lists = {}
        for number, path in enumerate(("home", "home/a.h5", "home/run.h5", "home/sub/d.nc")):
            lists[path[4:]] = acls(path)
            lists[path[4:]][f"user{number}"] = dict.fromkeys(PERMISSIONS, number % 2 == 0)
            os.setxattr(m.file(path), name, json.dumps(lists[path[4:]]).encode())
        mounts.run("cp", "-a", m.file("home/a.h5"), m.file("loose/copy.h5"), check=True)
        mounts.run("cp", m.file("home/a.h5"), m.file("loose/without.h5"), check=True)
        assert acls("loose/copy.h5") == lists["/a.h5"] != acls("loose/without.h5")
        mounts.run("mv", m.file("loose/copy.h5"), m.file("home/sub/renamed.h5"), check=True)
        assert acls("home/sub/renamed.h5") == lists["/a.h5"]
        mounts.run("mv", m.file("home"), m.file("moved"), check=True)
        mounts.run("cp", "-a", m.file("moved"), m.file("copied"), check=True)
        # The file keeps the list until it is in the bucket.
        fd = os.open(m.file("loose/new.h5"), os.O_RDWR | os.O_CREAT)
        value = json.dumps(lists["/a.h5"]).encode()
        with pytest.raises(OSError) as raised:
            os.setxattr(fd, name, value, os.XATTR_REPLACE)
        assert raised.value.errno == errno.ENODATA
        os.setxattr(fd, name, value)
        assert acls("loose/new.h5") == lists["/a.h5"] and name in os.listxattr(fd)
        with open(m.file("moved/a.h5"), "rb") as f:
            os.write(fd, f.read())
        os.close(fd)
        assert acls("loose/new.h5") == lists["/a.h5"]
        fd = os.open(m.file("loose/new.txt"), os.O_RDWR | os.O_CREAT)
        os.setxattr(fd, name, value)
        os.close(fd)
        assert attempt(os.getxattr, m.path, "loose/new.txt", name) == errno.ENODATA
    with mount(place, tmp_path, name="later") as m:
        for top in "moved", "copied":
            assert {path: acls(top + path) for path in lists} == lists, top
        assert acls("moved/sub/renamed.h5") == lists["/a.h5"]
        assert content(m.file("copied/a.h5")) == content(m.file("moved/a.h5")) == b"domain 1"


@pytest.mark.timeout(120)
def test_mv_of_a_folder(place, tmp_path):
    """mv copies what cannot be renamed, with all that is below."""
    with mount(place, tmp_path, "rw") as m:
        os.mkdir(m.file("home/empty folder"))
        before = tree(m.path)
        mounts.run("mv", m.file("home"), m.file("moved"), check=True)
        wanted = {("moved" + path[4:] if path.split("/")[0] == "home" else path): body
                  for path, body in before.items()}
        assert tree(m.path) == wanted
        # Into a directory, and over an empty one.
        os.mkdir(m.file("target"))
        mounts.run("mv", m.file("moved"), m.file("target"), check=True)
        mounts.run("mv", "-T", m.file("target/moved"), m.file("home"), check=True)
        os.rmdir(m.file("target"))
        assert tree(m.path) == before
    with mount(place, tmp_path, name="later") as m:
        assert tree(m.path) == before
    # The storage of the first copies is gone.
    assert len(storages(place)) == len(DOMAINS)


def test_large_plain_objects(tmp_path):
    """Up to 64 MiB are copied within the bucket, larger ones are left to mv."""
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        bucket.folder("home")
        bucket.put("db/x", b"")
        bucket.put("home/fits", b"f" * (64 << 20))
        bucket.put("home/large", b"l" * ((64 << 20) + 1))
    with Mount(tmp_path / "bucket", tmp_path / "rw", "rw") as m:
        rename(m.file("home/fits"), m.file("home/moved"))
        assert attempt(rename, m.path, "home/large", "home/other") == errno.EXDEV
        assert sorted(os.listdir(m.file("home"))) == ["large", "moved"]
        assert os.path.getsize(m.file("home/moved")) == 64 << 20
