# SPDX-License-Identifier: Apache-2.0
"""Several users who write into one mount (-o allow_other). The kernel checks modes: those of the
access control lists, or file_mode= and dir_mode=."""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

import imports
import mounts
import rwmounts
from mounts import run

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become other users")

LAB = 61000
ANN, BOB = {"user": 61001, "group": LAB}, {"user": 61002, "group": LAB}
EVE = {"user": 61003, "group": 61003}
SHARED = (f"gid={LAB}", "file_mode=0660", "dir_mode=0770")

# Evaluates a line for each call, and prints the result or the name of the error.
PROGRAM = """
import errno, os, sys
import h5py
def write(path, text):
    with open(path, "w") as f:
        f.write(text)
def append(path, text):
    with open(path, "a") as f:
        f.write(text)
def read(path):
    with open(path) as f:
        return f.read()
def make(path, number):
    with h5py.File(path, "w") as f:
        f["d"] = [number] * 10000
def number(path):
    with h5py.File(path, "r") as f:
        d = f["d"][:]
    assert (d == d[0]).all(), "parts of two files"
    return int(d[0])
for line in sys.stdin:
    try:
        print(repr(eval(line)), flush=True)
    except OSError as e:
        print(errno.errorcode.get(e.errno, e), flush=True)
"""


class User:
    """A program of a user that makes calls: ann("os.unlink", path)."""

    def __init__(self, who):
        self.who = {**who, "extra_groups": []}
        self.process = subprocess.Popen([sys.executable, "-c", PROGRAM], text=True, cwd="/",
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, **self.who)

    def begin(self, expression):
        self.process.stdin.write(f"{expression}\n")
        self.process.stdin.flush()

    def end(self):
        """The value of the expression. Text is quoted, so that it is not taken for an error."""
        return self.process.stdout.readline().rstrip("\n")

    def __call__(self, call, *args):
        self.begin(f"{call}({', '.join(map(repr, args))})")
        return self.end()

    def run(self, *command):
        return run(*command, cwd="/", **self.who)

    def stop(self):
        self.process.stdin.close()
        self.process.stdout.close()
        assert self.process.wait(mounts.PATIENCE) == 0


@pytest.fixture
def users():
    """ann and bob are in one group, eve is not."""
    with contextlib.ExitStack() as stack:
        made = []
        for who in (ANN, BOB, EVE):
            made.append(User(who))
            stack.callback(made[-1].stop)
        yield made


@pytest.fixture
def place():
    """A directory that all users can reach."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="hsmount-test-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def mount(place):
    """mount(option …): writable, and open to all users."""
    imports.make_bucket(place / "bucket")
    (place / "bucket").chmod(0o700)
    with contextlib.ExitStack() as stack:
        yield lambda *options: stack.enter_context(
            rwmounts.RwMount(place / "bucket", place, "allow_other", *options))


# ---- with modes for a group ----

def test_a_group_shares_a_mount(mount, users, place):
    """Each member may do everything with the files of the others, as soon as they are committed."""
    ann, bob, eve = users
    m = mount(*SHARED)
    x, y, z, below = (m.file("home", name) for name in ("x.h5", "y.h5", "z", "below"))
    assert ann("make", x, 1) == "None"
    assert bob("number", x) == "1"
    assert bob("make", x, 2) == "None"
    assert ann("number", x) == "2"
    assert ann("write", z, "one ") == bob("append", z, "two") == "None"
    assert ann("read", z) == bob("read", z) == "'one two'"
    assert bob("os.rename", x, y) == ann("os.mkdir", below) == "None"
    assert ann("os.rename", y, m.file("home/below/x.h5")) == "None"
    assert bob("number", m.file("home/below/x.h5")) == "2"
    assert bob("os.rmdir", below) == "ENOTEMPTY"
    assert bob("os.unlink", m.file("home/below/x.h5")) == ann("os.rmdir", below) == "None"
    assert bob("os.listdir", m.file("home")) == "['z']"
    # Others may do nothing.
    for call in (("read", z), ("write", z, "no"), ("os.listdir", m.file("home")),
                 ("write", m.file("home/new"), "no"), ("os.unlink", z),
                 ("os.rename", z, x), ("os.mkdir", below), ("os.stat", z)):
        assert eve(*call) == "EACCES", call
    # All files belong to the user who mounted. A mount does not know who has written them.
    found = os.stat(z)
    assert (found.st_uid, found.st_gid, found.st_mode & 0o7777) == (os.geteuid(), LAB, 0o660)
    assert json.loads((place / "bucket/home/.domain.json").read_text())["owner"]


def test_users_at_the_same_time(mount, users):
    """Each works on files of its own, and on a common one."""
    ann, bob, _ = users
    m = mount(*SHARED)
    common = m.file("home/common.h5")
    assert ann("make", common, 0) == "None"
    for i in range(1, 16):
        for user, name in ((ann, "a"), (bob, "b")):
            own, moved = m.file(f"home/{name}.h5"), m.file(f"home/{name}{i}.h5")
            user.begin(f"[make({own!r}, {i}), os.rename({own!r}, {moved!r}), number({moved!r}), "
                       f"write({own!r}, 'text'), os.unlink({own!r})]")
        assert ann.end() == bob.end() == f"[None, None, {i}, None, None]"
        # One of them replaces the file, and the other one reads the old or the new one.
        writer, reader = (ann, bob) if i % 2 else (bob, ann)
        writer.begin(f"make({common!r}, {i})")
        assert reader("number", common) in (f"{i - 1}", f"{i}")
        assert writer.end() == "None"
        assert reader("number", common) == f"{i}"
    assert sorted(os.listdir(m.file("home"))) == \
        sorted(["common.h5"] + [f"{name}{i}.h5" for name in "ab" for i in range(1, 16)])


REOPEN = """
import os, sys
for i in range(200):
    for flags in (os.O_RDWR | os.O_CREAT, os.O_RDWR | os.O_TRUNC, os.O_RDONLY):
        fd = os.open(sys.argv[1], flags, 0o666)
        if flags & os.O_TRUNC:
            os.write(fd, b"%d" % i)
        os.close(fd)
"""


def test_open_right_after_a_close(mount):
    """libhdf5 opens a file for writing, closes it without a change, and opens it once more to
    truncate it. The daemon learns of the close while the second open(2) runs already."""
    m = mount(*SHARED)
    paths = [m.file(f"home/{i}.txt") for i in range(6)]
    children = [subprocess.Popen([sys.executable, "-c", REOPEN, path], stderr=subprocess.PIPE,
                                 text=True) for path in paths]
    for child in children:
        assert child.communicate(timeout=60)[1] == ""
    for path in paths:
        with open(path, encoding="utf-8") as f:
            assert f.read() == "199"


def test_files_that_are_being_written(mount, users):
    """Until the commit, another user sees the old file, or the draft of a new one."""
    ann, bob, eve = users
    m = mount(*SHARED)
    old, new = m.file("home/old"), m.file("home/new")
    assert bob("write", old, "old") == "None"
    for name, path in (("o", old), ("n", new)):
        ann.begin(f"globals().update({name}=open({path!r}, 'w')) or {name}.write('draft') or "
                  f"{name}.flush()")
        assert ann.end() == "5"
        ann.begin(f"{name}.flush()")
        assert ann.end() == "None"
    assert bob("read", old) == "'old'" and bob("read", new) == "'draft'"
    assert eve("read", new) == "EACCES"
    # All who write a name share the draft. So bob's close commits what ann has written, too.
    assert bob("append", new, " of both") == "None"
    assert bob("os.rename", new, m.file("home/moved")) == "None"
    for name in "on":
        ann.begin(f"{name}.close()")
        assert ann.end() == "None"
    assert bob("read", old) == "'draft'" and bob("read", m.file("home/moved")) == "'draft of both'"


# ---- with the modes of access control lists ----

def acl(*permissions):
    names = ("create", "read", "update", "delete", "readACL", "updateACL")
    return {name: name in permissions for name in names}


def set_acls(user, path, mode, **acls):
    """Sets the list, and waits until the kernel has dropped the old mode. Returns the result."""
    acls = {name: acl(*permissions) for name, permissions in acls.items()}
    result = user("os.setxattr", path, "user.hsds.acls", json.dumps(acls).encode())
    assert mounts.wait_for(lambda: os.stat(path).st_mode & 0o777 == mode)
    return result


def test_access_control_lists(mount, users):
    """The owner of all files has the permissions of the owner of a domain or folder, and everybody
    else those of `default`, of which only reading counts."""
    ann, bob, _ = users
    m = mount(f"uid={ANN['user']}", f"gid={LAB}")
    home, x, new = m.file("home"), m.file("home/x.h5"), m.file("home/new.h5")
    owner = os.environ.get("HS_USERNAME", "root")
    everything = ("create", "read", "update", "delete", "readACL", "updateACL")
    assert ann("make", x, 1) == "None"
    # Nobody but its owner may read a new domain.
    assert bob("number", x) == "EACCES" and ann("number", x) == "1"
    assert set_acls(bob, x, 0o600, default=everything) == "EACCES"
    assert set_acls(ann, x, 0o644, **{owner: everything, "default": everything}) == "None"
    assert bob("number", x) == "1"
    for call in (("make", x, 2), ("append", x, "no"), ("make", new, 2), ("os.unlink", x),
                 ("os.rename", x, new), ("os.mkdir", new)):
        assert bob(*call) == "EACCES", call
    assert bob("os.chmod", x, 0o666) == bob("os.utime", x, (1, 1)) == "EPERM"
    assert ann("os.chmod", x, 0o666) == ann("os.utime", x, (1, 1)) == "None", "without effect"
    assert ann("make", x, 3) == "None" and bob("number", x) == "3"
    # A list that lets the owner only read, and so not change the list either.
    assert set_acls(ann, x, 0o400, **{owner: ("read", "updateACL"), "default": ()}) == "None"
    assert ann("make", x, 4) == "EACCES" and ann("number", x) == "3"
    assert bob("number", x) == "EACCES"
    assert set_acls(ann, x, 0o400, **{owner: everything, "default": ()}) == "EACCES"
    assert set_acls(ann, home, 0o500, maker=("read",), default=()) == "None"
    assert ann("make", new, 1) == ann("os.unlink", x) == "EACCES"
    assert bob("os.listdir", home) == "EACCES"


def test_a_directory_for_all(mount, users):
    """dir_mode= alone lets everybody make, rename and remove files. The modes of the files follow
    from their lists, whoever has made them."""
    _, bob, eve = users
    m = mount("dir_mode=0777")
    x, y = m.file("home/x.h5"), m.file("home/y")
    assert bob("make", x, 1) == bob("write", y, "text") == "None"
    assert bob("number", x) == bob("make", x, 2) == bob("append", y, "no") == "EACCES"
    assert eve("read", y) == "'text'"
    assert eve("os.rename", y, x) == "None"
    assert bob("read", x) == "'text'"
    assert bob("os.unlink", x) == "None"


def test_programs_of_a_user_who_owns_nothing(mount, users, place):
    """Changing modes and times fails, as of a file of another user on a disk."""
    _, bob, _ = users
    m = mount("file_mode=0666", "dir_mode=0777")
    source = place / "source.h5"
    with open(source, "wb") as f:
        f.write(b"text")
    source.chmod(0o644)
    run("tar", "cf", place / "source.tar", "-C", place, "source.h5", check=True)
    for command in (["cp", source, m.file("home/a")], ["cp", source, m.file("home/a")],
                    ["touch", m.file("home/a"), m.file("home/b")],
                    ["tar", "xmf", place / "source.tar", "-C", m.file("home")],
                    ["mv", m.file("home/source.h5"), m.file("home/c")]):
        assert bob.run(*command).returncode == 0, command
    for command in (["cp", "-p", source, m.file("home/d")],
                    ["install", source, m.file("home/e")],
                    ["tar", "xf", place / "source.tar", "-C", m.file("home")]):
        done = bob.run(*command)
        assert done.returncode and "Operation not permitted" in done.stderr, command
    for name in ("a", "c", "d", "e", "source.h5"):
        with open(m.file("home", name), "rb") as f:
            assert f.read() == b"text", name
