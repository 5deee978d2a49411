# SPDX-License-Identifier: Apache-2.0
"""What a new file costs in S3, and what proves that its name is absent: a listing of its directory,
if the service refuses to make an object that exists. See "New names" in doc/DETAILS.md."""
import contextlib
import errno
import os
import shutil
import sys
import time

import h5py
import numpy as np
import pytest

import mkbucket
import mounts
import rwmounts
import zarr_write
from mounts import run
from s3service import PROBE, Service

DOMAIN = 4      # PUTs: chunk, dataset and root group side by side, then the document


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "source.h5"
    with h5py.File(path, "w") as f:
        f["d"] = np.arange(100)
    return path


@contextlib.contextmanager
def writable(tmp_path, *options, fill=None, **how):
    """A service with a folder `d`, and a mount of it."""
    root = tmp_path / "bucket"
    with mkbucket.Maker(root) as made:
        made.domain("d/old.h5")
        if fill:
            fill(made)
    with Service(root, **how) as service:
        with rwmounts.RwMount("s3://bucket", tmp_path, *options, env=service.environment()) as m:
            m.service = service
            yield m
        assert not service.failures


def names(m):
    """Requests since the last call, but those of the service's test, as "METHOD key"."""
    assert mounts.wait_for(lambda: settled(m.service))
    with m.service.lock:
        made = [r for r in m.service.requests if PROBE not in r.key]
        m.service.requests.clear()
    return [f"{r.method} {r.key or listing(r)}" for r in made if r.key or "prefix" in r.query]


def listing(request):
    """A look-up asks for a few keys, a listing for as many as a page can have."""
    whole = request.query["max-keys"] == "1000"
    return f"{'whole' if whole else 'part'} of {request.query['prefix']}"


def settled(service):
    n = len(service.requests)
    time.sleep(0.05)
    return n == len(service.requests)


def copy(m, source, name):
    shutil.copyfile(source, m.file("d", name))
    m.released()
    return names(m)


def value_of(path):
    """In a process of its own: libhdf5 would keep the interpreter from running the server."""
    script = "import h5py, sys; print(h5py.File(sys.argv[1], 'r')['d'][7])"
    return int(run(sys.executable, "-c", script, path, check=True).stdout)


def asks(made, name):
    return [r for r in made if f"d/{name}" in r and not r.startswith("PUT")]


def test_requests(tmp_path, source):
    """The directory is listed while its first file is written. Then only PUTs are sent."""
    with writable(tmp_path, "metadata_ttl=60") as m:
        assert os.listdir(m.file("d")) == ["old.h5"]
        names(m)
        first = copy(m, source, "0.h5")
        assert first.count("GET whole of d/") == 1
        assert len(asks(first, "0.h5")) == 3    # the name, its document, what is below it
        for i in range(1, 6):
            made = copy(m, source, f"{i}.h5")
            assert len(made) == DOMAIN and all(r.startswith("PUT") for r in made), made
        assert not os.path.exists(m.file("d/6.h5")) and names(m) == []
        run("tar", "cf", tmp_path / "t.tar", "-C", tmp_path, source.name, check=True)
        run("tar", "xf", tmp_path / "t.tar", "-C", m.file("d"), check=True)
        m.released()
        assert len(names(m)) == DOMAIN
        for i in range(6):
            assert value_of(m.file("d", f"{i}.h5")) == 7


def test_own_changes(tmp_path, source):
    """The listing is older than what this mount has made, removed and renamed since."""
    with writable(tmp_path, "metadata_ttl=60") as m:
        copy(m, source, "0.h5")
        copy(m, source, "1.h5")
        os.unlink(m.file("d/1.h5"))
        names(m)
        assert asks(copy(m, source, "1.h5"), "1.h5")    # it was there once
        os.rename(m.file("d/1.h5"), m.file("d/2.h5"))
        os.mkdir(m.file("d/e"))
        with open(m.file("d/f"), "w", encoding="ascii") as f:
            f.write("plain")
        m.released()
        for path, there in (("1.h5", False), ("2.h5", True), ("e", True), ("f", True)):
            assert os.path.exists(m.file("d", path)) == there
        copy(m, source, "e/x.h5")
        assert sorted(os.listdir(m.file("d"))) == ["0.h5", "2.h5", "e", "f", "old.h5"]
        assert os.listdir(m.file("d/e")) == ["x.h5"]


def other_mount(m, tmp_path):
    (tmp_path / "other").mkdir()
    return rwmounts.RwMount("s3://bucket", tmp_path / "other", env=m.service.environment())


def test_another_mount(tmp_path, source):
    """Another mount makes a file after the listing. The put is refused, and the file is found."""
    with writable(tmp_path, "metadata_ttl=60") as m, other_mount(m, tmp_path) as other:
        copy(m, source, "0.h5")
        shutil.copyfile(source, other.file("d/1.h5"))
        other.released()
        fd = os.open(m.file("d/1.h5"), os.O_WRONLY | os.O_CREAT)
        os.write(fd, source.read_bytes())
        with pytest.raises(OSError) as refused:
            os.close(fd)
        assert refused.value.errno == errno.ESTALE
        assert value_of(m.file("d/1.h5")) == 7
        assert m.failed() == 1
        shutil.copyfile(source, m.file("d/1.h5"))       # it replaces the file now
        m.released()
        assert m.stats()["drafts"]["left"] == 0


def test_seen_since_the_listing(tmp_path, source):
    """A file of another mount that this mount has read can be renamed, although it is newer than
    the complete listing."""
    with writable(tmp_path, "metadata_ttl=60") as m, other_mount(m, tmp_path) as other:
        copy(m, source, "0.h5")
        shutil.copyfile(source, other.file("d/1.h5"))
        other.released()
        assert "1.h5" in os.listdir(m.file("d"))
        assert value_of(m.file("d/1.h5")) == 7
        os.rename(m.file("d/1.h5"), m.file("d/2.h5"))
        assert value_of(m.file("d/2.h5")) == 7


def test_listing_becomes_stale(tmp_path, source):
    with writable(tmp_path, "metadata_ttl=0.5") as m, other_mount(m, tmp_path) as other:
        copy(m, source, "0.h5")
        shutil.copyfile(source, other.file("d/1.h5"))
        other.released()
        time.sleep(0.6)         # names are valid for half a second
        assert os.path.exists(m.file("d/1.h5"))


@pytest.mark.parametrize("options, how", [((), {"put_absent": "ignored"}),
                                          ((), {"put_absent": 501}), (("metadata_ttl=0",), {})])
def test_without_evidence(tmp_path, source, options, how):
    """A service that does not check the condition is asked about each name, and so is each service
    if nothing may be cached."""
    with writable(tmp_path, *(options or ("metadata_ttl=60",)), **how) as m:
        copy(m, source, "0.h5")
        for i in range(1, 3):
            assert len(asks(copy(m, source, f"{i}.h5"), f"{i}.h5")) >= 3


def test_other_names_of_files(tmp_path, source):
    """The file of a store, and that of a domain without extension, are not in the listing under
    their names."""
    def fill(made):
        made.domain("d/run")
        with zarr_write.Store(os.path.join(made.root, "d/x.zarr"), 2) as store:
            store.array("a", np.arange(4))

    with writable(tmp_path, "metadata_ttl=60", fill=fill) as m:
        copy(m, source, "0.h5")
        assert os.path.exists(m.file("d/run.h5")) and os.path.exists(m.file("d/x.zarr.nc"))
        assert os.path.isdir(m.file("d/x.zarr"))
        for name in "run.h5", "x.zarr.nc":
            with pytest.raises(FileExistsError):
                os.open(m.file("d", name), os.O_WRONLY | os.O_CREAT | os.O_EXCL)
