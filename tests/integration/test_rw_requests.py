# SPDX-License-Identifier: Apache-2.0
"""What programs that write cost: the requests of a copy, of a temporary name and of an editor. And
the system calls of tools have the same results in a mount as on a disk."""
import os
import re
import shutil

import h5py
import numpy as np
import pytest

import imports
import mounts
import rwmounts
from mounts import run

CHUNKS = 4
TRACED = ("openat,creat,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir,chmod,fchmod,"
          "fchmodat,chown,fchown,lchown,fchownat,utimensat,truncate,ftruncate,fallocate,fsync,"
          "fdatasync,newfstatat,statx,access,faccessat2")
# What a file that does not exist yet costs: one dataset of 4 chunks, the root group, the domain.
DOMAIN = CHUNKS + 3


@pytest.fixture
def sources(tmp_path):
    root = tmp_path / "sources"
    root.mkdir()
    for name in "a.h5", "b.h5":
        with h5py.File(root / name, "w") as f:
            f.create_dataset("d", data=np.arange(CHUNKS * 100) + ord(name[0]), chunks=(100,))
    (root / "text.txt").write_text("one line\n" * 300)
    (root / "c.cdl").write_text("netcdf c { dimensions: k = 3 ; variables: float t(k) ; "
                                't:units = "m" ; float k(k) ; data: t = 1, 2, 3 ; k = 5, 6, 7 ; }')
    run("ncgen", "-k", "nc4", "-o", root / "c.nc", root / "c.cdl", check=True)
    for name in "a", "b":
        run("tar", "cf", root / f"{name}.tar", "-C", root, f"{name}.h5", check=True)
    return root


@pytest.fixture
def mounted(tmp_path):
    with rwmounts.RwMount(imports.make_bucket(tmp_path / "bucket"), tmp_path,
                          "metadata_ttl=60") as m:
        yield m


class Counter:
    """The puts and deletes of commands in a directory of the mount."""

    def __init__(self, mount, sources):
        self.mount, self.cwd = mount, mount.file("home")
        self.env = dict(os.environ, S=os.fspath(sources), LC_ALL="C")

    def __call__(self, command):
        before = self.mount.requests()
        run("bash", "-c", command, cwd=self.cwd, env=self.env, check=True)
        self.mount.released()
        after = mounts.difference(before, self.mount.requests())
        return after["put"], after["delete"]


def test_copies(mounted, sources):
    count = Counter(mounted, sources)
    assert count("cp $S/a.h5 cp.h5") == (DOMAIN, 0)
    assert count("cp -p $S/a.h5 cp-p.h5") == (DOMAIN, 0)
    assert count("cat $S/a.h5 > cat.h5") == (DOMAIN, 0)
    assert count("dd status=none if=$S/a.h5 of=dd.h5 bs=100") == (DOMAIN, 0)
    assert count("tar xf $S/a.tar") == (DOMAIN, 0)
    assert count("install $S/a.h5 install.h5") == (DOMAIN, 0)
    assert count("h5repack $S/a.h5 h5repack.h5") == (DOMAIN, 0)
    # The document of the domain is replaced. Its storage is deleted later.
    assert count("cp $S/b.h5 cp.h5") == (DOMAIN, 0)
    assert count("h5repack $S/b.h5 h5repack.h5") == (DOMAIN, 0)
    # These remove the old file first.
    assert count("tar xf $S/a.tar") == (DOMAIN, 1)
    assert count("install $S/a.h5 install.h5") == (DOMAIN, 1)


def test_first_open_after_a_copy(mounted, tmp_path):
    """The mount that has stored a new domain does not read its documents again."""
    with h5py.File(tmp_path / "many.h5", "w") as f:
        for i in range(50):
            f.create_dataset(f"g{i % 5}/d{i}", data=np.arange(10) + i)
    copy = mounted.file("home/many.h5")
    run("cp", tmp_path / "many.h5", copy, check=True)
    mounted.released()
    before = mounted.requests()
    run("h5diff", tmp_path / "many.h5", copy, check=True)
    after = mounts.difference(before, mounted.requests())
    assert after["get"] <= 50 + 4, after        # the chunks, and what the look-up asks for
    assert after["list"] <= 3, after


def test_temporary_names(mounted, sources):
    """A rename of a domain in a directory is a put of the list of its names, and a move. That of a
    plain object is a copy and a delete."""
    count = Counter(mounted, sources)
    assert count("rsync $S/a.h5 x.h5") == (DOMAIN + 1, 0)
    assert count("rsync -a $S/b.h5 x.h5") == (DOMAIN + 1, 0)
    assert count("rsync $S/text.txt t") == (2, 1)
    nc = count("cp $S/c.nc c.nc")
    assert count("ncks -hO c.nc d.nc") == (nc[0] + 1, 0)
    assert count("sed -i s/line/word/ t") == (2, 1)
    assert count("nccopy c.nc n.nc") == nc


def test_editors(mounted, sources):
    count = Counter(mounted, sources)
    assert count("cp $S/text.txt t") == (1, 0)
    puts, deletes = count("vim -u NONE -es -c '%s/line/word/' -c wq t")
    assert puts <= 6 and deletes <= 3
    assert count("mv t t~; cp $S/text.txt t") == (2, 1)     # Emacs


def test_plain_files(mounted, sources):
    count = Counter(mounted, sources)
    assert count("touch t") == (1, 0)
    assert count("touch t; chmod 600 t; touch -d 2001-01-01 t") == (0, 0)
    assert count("echo one >> t") == (1, 0)
    assert count(": >> t; cat t; : <> t") == (0, 0)
    assert count("mkdir d; mv t d/t; rm d/t; rmdir d")[0] <= 3
    # Each command that writes closes the file, and each child closes what it has inherited.
    puts, _ = count("{ echo a; /bin/true; /bin/echo b; /bin/true; echo c; } > u")
    assert puts <= 4
    with h5py.File(mounted.file("home/x.h5"), "w") as f:
        count.cwd = "/"
        f["d"] = np.arange(100)
        f.flush()
        assert mounted.requests()["put"] == count.mount.requests()["put"]


def test_looking_and_not_writing(mounted, sources):
    """A program that opens a new file's name for writing and writes nothing into an old file."""
    count = Counter(mounted, sources)
    count("cp $S/text.txt t; cp $S/a.h5 a.h5")
    before = mounted.requests()
    for _ in range(20):
        os.close(os.open(mounted.file("home/t"), os.O_RDWR))
        os.close(os.open(mounted.file("home/t"), os.O_WRONLY | os.O_APPEND))
    mounted.released()
    after = mounts.difference(before, mounted.requests())
    assert (after["put"], after["delete"]) == (0, 0)


# ---- system calls ----

TOOLS = {
    "cp": "cp -p $S/a.h5 $S/text.txt .; cp $S/b.h5 a.h5",
    "rsync": "rsync -rt $S/a.h5 $S/text.txt .; rsync -It $S/b.h5 a.h5",
    "tar": "tar xf $S/a.tar; tar xf $S/a.tar",
    "nco": "ncks -h $S/c.nc x.nc; ncks -hO $S/c.nc x.nc",
    "sed": "cp $S/text.txt t; sed -i s/line/word/ t",
    "vim": "cp $S/text.txt t; vim -u NONE -es -c '%s/line/word/' -c wq t",
    "mv": "cp $S/a.h5 a.h5; mv a.h5 b.h5; mkdir d; mv b.h5 d; mv -n d/b.h5 a.h5",
    "install": "install -D $S/a.h5 p/a.h5; install $S/b.h5 p/a.h5",
    "h5repack": "h5repack $S/a.h5 x.h5; h5repack $S/b.h5 x.h5",
}


def calls(text, root):
    """The calls that fail, and those that change names, of files below the root: their names,
    arguments and results, each once. Numbers and what is random in names are left out."""
    found = set()
    for line in text.splitlines():
        match = re.match(r"\d+ +(\w+)\((.*)\) += (-1 (\w+)|\S+)", line)
        if not match:
            continue
        arguments = match[2].replace(root, ".").replace("./", "")
        if '"/' in arguments or "</" in arguments:
            continue
        if not match[4] and not re.match("rename|unlink|rmdir|mkdir|truncate|ftruncate", match[1]):
            continue
        # What is random may have four digits in a row.
        arguments = re.sub(r"(?<=\w\.)[A-Za-z0-9]{6}\b|(?<=sed)[A-Za-z0-9]{6}|pid\d+", "*",
                           arguments)
        arguments = re.sub(r"\{.*?\}+|/\*.*?\*/|0x\w+|\b\d+<|\d{4,}", "", arguments)
        found.add(f"{match[1]}({arguments}) {match[4] or 'succeeds'}")
    return found


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
@pytest.mark.parametrize("tool", TOOLS)
def test_system_calls(mounted, sources, tmp_path, tool):
    if tool == "vim" and not shutil.which("vim"):
        pytest.skip("vim is not installed")
    found = []
    for root in tmp_path / "disk", mounted.file("home", "t"):
        os.mkdir(root)
        trace = tmp_path / "trace"
        env = dict(os.environ, S=os.fspath(sources), LC_ALL="C")
        done = run("strace", "-f", "-y", "-s", "4096", "-o", trace, "-e", f"trace={TRACED}", "bash",
                   "-c", TOOLS[tool], cwd=root, env=env)
        if "ptrace" in done.stderr:
            pytest.skip("strace is not permitted")
        assert done.returncode == 0, done.stderr
        found.append(calls(trace.read_text(errors="replace"), os.fspath(root)))
    assert found[0] == found[1]
