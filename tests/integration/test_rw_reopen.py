# SPDX-License-Identifier: Apache-2.0
"""The next open after a commit costs what an open of an unchanged domain costs, however large the
domain is: it asks the bucket whether it has what was put, and reads none of it again."""
import os
import threading

import h5py
import numpy as np
import pytest

import imports
import rwmounts
from gateway import needs_gateway
from mounts import HSIMAGE, difference, run
from sampling import EVERYTHING

NAME = "home/a.h5"
READS = ("get", "head", "list")
COMMITS = 20 if EVERYTHING else 8


def write_file(path, many):
    with h5py.File(path, "w") as f:
        f.create_dataset("d", data=np.arange(1000), chunks=(100,), maxshape=(None,))
        f["g/x"] = 1
        for n in range(many):
            f.create_group(f"many/n{n:04}")


def few_objects(path, many):
    """More than four keys for each object: the documents are compared one by one."""
    with h5py.File(path, "w") as f:
        f.create_dataset("d", data=np.arange(many), chunks=(1,), maxshape=(None,))
        f["g/x"] = 1


SIZES = {"small": (write_file, 20), "groups": (write_file, 1500), "chunks": (few_objects, 1500)}
# The requests are the same in both places, and a gateway needs longer for the large ones.
CASES = [("directory", size) for size in SIZES] + [
    pytest.param(("gateway", size), marks=needs_gateway + [pytest.mark.long] * (size != "small"))
    for size in SIZES]


def make_place(request, place, tmp_path):
    """Returns the bucket's address and the environment of programs."""
    root = imports.make_bucket(tmp_path / "bucket")
    if place == "directory":
        return os.fspath(root), None
    client = request.getfixturevalue("client")
    name = client.new_bucket("reopen")
    client.upload(name, root)
    return f"s3://{name}", request.getfixturevalue("environment")


@pytest.fixture(name="mounted", params=CASES, ids="-".join)
def fixture_mounted(request, tmp_path):
    place, size = request.param
    url, env = make_place(request, place, tmp_path)
    write, many = SIZES[size]
    write(tmp_path / "a.h5", many)
    run(HSIMAGE, "-b", url, "import", tmp_path / "a.h5", NAME, env=env, check=True)
    with rwmounts.RwMount(url, tmp_path, "metadata_ttl=0", env=env) as m:
        m.size, m.url, m.env = size, url, env
        yield m


def cost_of_open(m):
    """Requests and fetched bytes."""
    before, fetched = m.requests(), m.stats()["store"]["read_bytes"]
    os.close(os.open(m.file(NAME), os.O_RDONLY))
    made = difference(before, m.requests())
    return {**{call: made[call] for call in READS},
            "bytes": m.stats()["store"]["read_bytes"] - fetched}


def after_commit(cost):
    """The cost of the first open after a commit, if an open of an unchanged domain costs this. The
    kernel still has the inode of the draft under the name. It looks the name up, gets another
    inode, drops what it has, and looks the name up again, which is one GET that fetches nothing.
    On a busy machine, this may also happen at the second open."""
    return {**cost, "get": cost["get"] + 1}


def commit(m, call):
    with h5py.File(m.file(NAME), "r+") as f:
        call(f)
    m.released()


def attribute(f):
    f["g"].attrs["a"] = f["g"].attrs.get("a", 0) + 1


def element(f):
    f["d"][5] = -1


def new_dataset(f):
    f["g/new"] = 3


def new_groups(f):
    f["g/k/l/m"] = 3


def rename(f):
    f.move("g/x", "g/y")


def remove(f):
    del f["g/new"]


def remove_all(f):
    del f["g/k"]


def grow(f):
    f["d"].resize((len(f["d"]) + 1,))
    f["d"][-1] = 7


# The change, and how many objects it adds.
CHANGES = [(attribute, 0), (element, 0), (new_dataset, 1), (new_groups, 3), (rename, 0),
           (remove, -1), (remove_all, -3), (grow, 0), (attribute, 0)]


@pytest.mark.sampled(keep=2)
def test_open_after_each_commit(mounted):
    cost_of_open(mounted)
    unchanged = cost_of_open(mounted)
    assert unchanged["list"] > 0 or mounted.size == "chunks", unchanged
    for call, objects in CHANGES:
        commit(mounted, call)
        if mounted.size == "chunks":
            unchanged["head"] += objects
        costs = [cost_of_open(mounted) for _ in range(3)]
        assert costs[0] == after_commit(unchanged) and costs[2] == unchanged, call.__name__
        assert costs[1] in (unchanged, after_commit(unchanged)), call.__name__
    with h5py.File(mounted.file(NAME), "r") as f:
        assert sorted(f["g"]) == ["y"] and f["g"].attrs["a"] == 2
        assert f["d"][5] == -1 and f["d"][-1] == 7


def test_several_commits_before_an_open(mounted):
    """What they have put adds up: also if one program makes all of them."""
    cost_of_open(mounted)
    unchanged = cost_of_open(mounted)
    for call in (new_groups, attribute, new_dataset, rename, remove):
        commit(mounted, call)
    if mounted.size == "chunks":
        unchanged["head"] += 3
    assert cost_of_open(mounted) == after_commit(unchanged)
    with h5py.File(mounted.file(NAME), "r") as f:
        assert sorted(f["g"]) == ["k", "y"] and f["g/k/l/m"][()] == 3


@pytest.mark.sampled(keep=2)
def test_write_close_open_100_times(mounted):
    """Each round costs the same, but the first one, which reads the domain."""
    def once():
        before = mounted.requests()
        commit(mounted, attribute)
        written = difference(before, mounted.requests())
        return written, cost_of_open(mounted)
    rounds = [once() for _ in range(100 if mounted.size == "small" else 20)]
    assert [r for r in rounds[2:] if r != rounds[1]] == [], rounds[1]
    assert rounds[0][1] == rounds[1][1]
    for written, _ in rounds:
        assert (written["put"], written["delete"]) == (1, 0)


def test_another_program_changes_it(mounted, tmp_path):
    """What another mount puts between the commit and the open is seen."""
    (tmp_path / "other").mkdir()
    cost_of_open(mounted)
    with rwmounts.RwMount(mounted.url, tmp_path / "other", "metadata_ttl=0",
                          env=mounted.env) as other:
        for n in range(3):
            commit(mounted, attribute)
            commit(other, attribute)
            commit(other, lambda f, n=n: f["g"].create_group(f"by the other {n}"))
            with h5py.File(mounted.file(NAME), "r") as f:
                assert f["g"].attrs["a"] == 2 * n + 2
                assert f"by the other {n}" in f["g"]


def test_readers_during_commits(mounted):
    """A reader that opens the domain while it is changed sees one state of each object."""
    failures, stop = [], threading.Event()

    def read():
        command = ("import sys, h5py\nlast = 0\n"
                   "for n in range(20):\n"
                   "    with h5py.File(sys.argv[1], 'r') as f:\n"
                   "        a = int(f['g'].attrs.get('a', 0))\n"
                   "        assert a >= last and f['d'][6] == 6, (a, last)\n"
                   "        last = a\n")
        while not stop.is_set():
            done = run("/usr/bin/python3", "-c", command, mounted.file(NAME))
            if done.returncode:
                failures.append(done.stderr)
                return
    readers = [threading.Thread(target=read) for _ in range(3)]
    for r in readers:
        r.start()
    for _ in range(COMMITS):
        commit(mounted, attribute)
    stop.set()
    for r in readers:
        r.join()
    assert failures == []
    with h5py.File(mounted.file(NAME), "r") as f:
        assert f["g"].attrs["a"] == COMMITS


def test_first_chunk_of_texts_in_a_large_domain(tmp_path):
    """The versions of documents do not tell that a dataset has another chunk."""
    bucket, disk = imports.make_bucket(tmp_path / "bucket"), tmp_path / "a.h5"
    with h5py.File(disk, "w") as f:
        for n in range(1100):
            f.create_group(f"many/{n}")
        f.create_dataset("texts", (12,), h5py.string_dtype(), chunks=(4,), maxshape=(None,))
    run(HSIMAGE, "-b", bucket, "import", disk, "home/a.h5", check=True)
    with rwmounts.RwMount(bucket, tmp_path, "metadata_ttl=0") as m:
        for at, text in ((5, b"first"), (1, b"second"), (6, b"a longer one"), (5, b"")):
            for path in disk, m.file("home/a.h5"):
                with h5py.File(path, "r+") as f:
                    f["texts"][at] = text
            m.released()
            with h5py.File(disk) as f, h5py.File(m.file("home/a.h5")) as g:
                assert list(g["texts"]) == list(f["texts"]), at
