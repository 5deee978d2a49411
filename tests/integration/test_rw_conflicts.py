# SPDX-License-Identifier: Apache-2.0
"""Two mounts with -o rw write one name at the same time. The slower one gets ESTALE, its file stays
in its journal, and its storage is deleted if nobody can have seen it."""
import errno
import json
import os
import re
import threading

import h5py
import numpy
import pytest

import faultproxy
import imports
import rwmounts
from gateway import needs_gateway
from mounts import HSIMAGE, run, wait_for

CHANGED = "another program has changed it since it was opened for writing"


class World:
    """A bucket with a folder "home" in a directory or in the gateway."""

    def __init__(self, tmp_path, client=None, env=None):
        self.tmp_path, self.client, self.env = tmp_path, client, env
        self.url = imports.make_bucket(tmp_path / "bucket")
        if client:
            self.name = client.new_bucket("conflict")
            client.upload(self.name, self.url)
            self.url = f"s3://{self.name}"

    def mount(self, which, *options):
        return rwmounts.RwMount(self.url, self.tmp_path / which, "metadata_ttl=0", *options,
                                env=self.env)

    def stored(self):
        """The keys of the objects of all domains."""
        if not self.client:
            return sorted(os.path.relpath(os.path.join(at, name), self.url)
                          for at, _, names in os.walk(self.url / "db") for name in names)
        _, text = self.client.request("GET", f"/{self.name}",
                                      {"list-type": "2", "prefix": "db/"})
        assert b"<IsTruncated>false" in text
        return sorted(re.findall("<Key>([^<]*)", text.decode()))

    def check(self):
        done = rwmounts.check(self.url, self.env)
        assert done.returncode == 0, done.stdout + done.stderr

    def recover(self, which, *command):
        return run(HSIMAGE, "recover", "--journal-dir", self.tmp_path / which / "journal",
                   *command, env=self.env)

    def waiting(self, which):
        lines = self.recover(which, "list", "--json").stdout.splitlines()
        return [json.loads(line) for line in lines]


@pytest.fixture(name="directory")
def fixture_directory(tmp_path):
    return World(tmp_path)


@pytest.fixture(name="world", params=["directory", pytest.param("gateway", marks=needs_gateway)])
def fixture_world(request, tmp_path):
    if request.param == "directory":
        return World(tmp_path)
    return World(tmp_path, request.getfixturevalue("client"),
                 request.getfixturevalue("environment"))


def make(path, number):
    with h5py.File(path, "w") as f:
        f.create_dataset("d", data=numpy.arange(4000) * number, chunks=(1000,))
        f["group/x"] = number
    return path


def write_all(path, source):
    """A file that is written and open."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    os.write(fd, source.read_bytes())
    return fd


def close_late(fd):
    with pytest.raises(OSError) as caught:
        os.close(fd)
    assert caught.value.errno == errno.ESTALE


def check_winner(world, file):
    with world.mount("reader") as m:
        assert run("h5diff", file, m.file("home/x.h5")).returncode == 0
    world.check()


@pytest.mark.sampled(keep=2)
@pytest.mark.parametrize("replaced", [False, True])
def test_two_mounts(world, tmp_path, replaced):
    mine, theirs = make(tmp_path / "mine.h5", 1), make(tmp_path / "theirs.h5", 2)
    if replaced:
        with world.mount("first") as m:
            run("cp", make(tmp_path / "old.h5", 3), m.file("home/x.h5"), check=True)
    with world.mount("slow") as slow:
        fd = write_all(slow.file("home/x.h5"), mine)
        with world.mount("fast") as fast:
            run("cp", theirs, fast.file("home/x.h5"), check=True)
        winner = world.stored()
        close_late(fd)
        assert len(world.stored()) > len(winner)
        assert run("h5diff", theirs, slow.file("home/x.h5")).returncode == 0
    assert world.stored() == winner
    check_winner(world, theirs)

    # Later mounts leave the draft alone, and log no warning about it.
    item, = world.waiting("slow")
    assert item["state"] == "waiting" and CHANGED in item["why"]
    said = slow.log()
    with world.mount("slow") as slow:
        assert wait_for(lambda: slow.stats()["drafts"]["left"] == 1)
        assert slow.requests().get("put", 0) == 0
    assert item["id"] not in slow.log()[len(said):]
    assert world.recover("slow", "export", item["id"], tmp_path / "out").returncode == 0
    assert (tmp_path / "out").read_bytes() == mine.read_bytes()
    done = world.recover("slow", "drop", "--yes", item["id"])
    assert done.returncode == 0 and "kept" not in done.stderr, done.stderr
    assert world.waiting("slow") == [] and world.stored() == winner
    check_winner(world, theirs)


def test_a_plain_object_beneath_a_change_is_removed(world):
    """Bytes that the program has not written are gone. The draft does not keep the name."""
    with world.mount("slow") as slow, world.mount("fast") as fast:
        for letter in b"a", b"b":
            with open(fast.file("home/plain"), "wb") as f:
                f.write(letter * (3 << 20))
            with open(slow.file("home/plain"), "rb") as reader:
                fd = os.open(slow.file("home/plain"), os.O_RDWR)
                os.pwrite(fd, b"changed", 0)
                os.unlink(fast.file("home/plain"))
                for descriptor in fd, reader.fileno():
                    with pytest.raises(OSError) as caught:
                        os.pread(descriptor, 1, 2 << 20)
                    assert caught.value.errno == errno.ESTALE
                close_late(fd)
            assert not os.path.exists(slow.file("home/plain"))
        assert wait_for(lambda: slow.stats()["drafts"]["open"] == 0)
    assert [item["state"] for item in world.waiting("slow")] == ["waiting"] * 2


def test_a_mount_that_is_killed(world, tmp_path):
    """After the refusal, but before the storage is deleted."""
    mine, theirs = make(tmp_path / "mine.h5", 1), make(tmp_path / "theirs.h5", 2)
    slow = world.mount("slow")
    with slow:
        fd = write_all(slow.file("home/x.h5"), mine)
        with world.mount("fast") as fast:
            run("cp", theirs, fast.file("home/x.h5"), check=True)
        winner = world.stored()
        close_late(fd)
        slow.kill()
        item, = world.waiting("slow")
        assert len(world.stored()) > len(winner)
        done = world.recover("slow", "drop", "--yes", item["id"])
        assert done.returncode == 0 and "deleted" in done.stderr, done.stderr
        assert world.stored() == winner
        check_winner(world, theirs)
        slow.start()


@pytest.mark.parametrize("number", range(1, 5))
def test_killed_at_each_request(directory, tmp_path, number):
    """For the document of the domain. Whatever is known, the file of the other mount is whole."""
    world = directory
    mine, theirs = make(tmp_path / "mine.h5", 1), make(tmp_path / "theirs.h5", 2)
    slow = world.mount("slow", f"debug_fault=delay:{number}+:20000@home/x.h5/*")
    slow.start()
    copying = threading.Thread(target=run, daemon=True,
                               args=("cp", mine, slow.file("home/x.h5")))
    copying.start()
    copying.join(1)
    with world.mount("fast") as fast:
        copied = run("cp", theirs, fast.file("home/x.h5"))
        assert copied.returncode == 0, copied.stderr
    slow.kill()
    copying.join()
    with world.mount("slow"):
        assert wait_for(lambda: not world.waiting("slow") or
                        world.waiting("slow")[0]["state"] == "waiting")
    for item in world.waiting("slow"):
        assert world.recover("slow", "drop", "--yes", item["id"]).returncode == 0
    with world.mount("reader") as m:
        assert run("h5diff", theirs, m.file("home/x.h5")).returncode == 0
    done = rwmounts.check(world.url)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("what", [pytest.param(w, marks=needs_gateway)
                                  for w in ("nothing", "document", "objects")])
def test_lost_answers(tmp_path, gateway, client, environment, what):
    """If the document is put twice, the first put may have been seen. Complete storage stays then,
    and each mount makes the commit again."""
    mine, theirs = make(tmp_path / "mine.h5", 1), make(tmp_path / "theirs.h5", 2)
    faults = {"nothing": [],
              "document": [{"what": "drop", "first": 1, "method": "PUT", "path": "x.h5/.domain"}],
              "objects": [{"what": "lose", "first": 3, "method": "PUT", "path": "/db/"}]}[what]
    with faultproxy.Proxy(gateway["endpoint"]) as proxy:
        world = World(tmp_path, client, dict(environment, AWS_ENDPOINT_URL=proxy.endpoint))
        with world.mount("slow") as slow:
            fd = write_all(slow.file("home/x.h5"), mine)
            with world.mount("fast") as fast:
                run("cp", theirs, fast.file("home/x.h5"), check=True)
            winner = world.stored()
            proxy.faults[:] = faults
            proxy.seen[:] = [0] * len(faults)
            close_late(fd)
        assert all(seen >= fault["first"] for seen, fault in zip(proxy.seen, faults))
        item, = world.waiting("slow")
        left = world.stored()
        check_winner(world, theirs)
        if what != "document":
            assert left == winner
            return
        assert len(left) > len(winner)
        said = slow.log()
        with world.mount("slow") as slow:
            assert wait_for(lambda: item["id"] in slow.log()[len(said):])
        done = world.recover("slow", "drop", "--yes", item["id"])
        assert done.returncode == 0 and "kept the objects below" in done.stderr
        assert world.stored() == left
        check_winner(world, theirs)
