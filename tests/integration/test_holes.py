# SPDX-License-Identifier: Apache-2.0
"""Holes of files whose chunks an open has not listed: domains of more than 1,000 keys or of version
1, linked datasets with a chunk table, arrays in shards. lseek asks the bucket, once for each
dataset, and stat and `hsimage export` then know what takes space. What asking costs, and what is
never a hole. Holes that an open knows are in test_posix_effects.py."""
import os
import re
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest

import mkbucket
from mounts import HSIMAGE, difference, run
from zarr_write import Shards, Store

PAGE = CHUNK = 4096
CHUNKS = 2000
STORED = [*range(3, 1203), 1800]        # more than a page of a listing has


def expected():
    out = np.zeros((CHUNKS, CHUNK), "u1")
    out[STORED] = 7
    return out.reshape(-1)


def large(root, v1=False):
    with mkbucket.Maker(root) as bucket:
        d = bucket.domain("x.h5", v1=v1)
        data = d.dataset(d.root, "data", mkbucket.INT8, [CHUNKS * CHUNK], [CHUNK])
        for i in STORED:
            data.chunk((i,), b"\7" * CHUNK)
    return "x.h5"


def version1(root):
    return large(root, v1=True)


def linked(root, *options):
    (root / "db").mkdir(parents=True)
    with h5py.File(root / "file.h5", "w") as f:
        data = f.create_dataset("data", (CHUNKS * CHUNK,), "i1", chunks=(CHUNK,))
        for i in STORED:
            data.id.write_direct_chunk((i * CHUNK,), b"\7" * CHUNK)
    run(HSIMAGE, "-b", root, "link", *options, "file.h5", "x.h5", check=True)
    return "x.h5"


def fastlinked(root):
    return linked(root, "--fastlink")


def shards(root):
    with Store(root / "x.zarr", 3, True) as store:
        store.array("data", expected().reshape(CHUNKS, CHUNK), chunks=(100, CHUNK),
                    shards=[Shards((1, CHUNK), checksum=False)])
    return "x.zarr.nc"


# How many listings, and how many requests at most, find all holes. The document of the dataset is
# checked, because chunks are absent, at most once a second. In version 1, each chunk is requested.
# The table of a link has one chunk. Without the table, which HSDS would make, the chunk index of
# the file is read, page by page. Each shard has an index.
FORMS = {"large": (large, 2, 3), "v1": (version1, 0, CHUNKS + 60), "table": (linked, 0, 2),
         "fastlink": (fastlinked, 0, 22), "shards": (shards, 0, 21)}


def ranges(fd):
    """The ranges outside of holes."""
    end = 0
    while True:
        try:
            start = os.lseek(fd, end, os.SEEK_DATA)
        except OSError:
            return
        end = os.lseek(fd, start, os.SEEK_HOLE)
        yield start, end


def spent(m, before):
    cost = difference(before, m.counts())
    return cost["gets"] + cost["heads"] + cost["lists"], cost["lists"]


@pytest.mark.parametrize("form", FORMS)
def test_lseek_asks_the_bucket_once(tmp_path, mount, form):
    make, lists, most = FORMS[form]
    name = make(tmp_path / "bucket")
    m = mount(tmp_path / "bucket", "debug_count", "metadata_ttl=0")
    path, fd = m.file(name), os.open(m.file(name), os.O_RDONLY)
    try:
        size, all_blocks, before = os.fstat(fd).st_size, os.stat(path).st_blocks, m.counts()
        found = list(ranges(fd))
        cost = spent(m, before)
        assert cost[0] <= most and cost[1] == lists, cost
        assert list(ranges(fd)) == found and spent(m, before) == cost
        data = sum(end - start for start, end in found)
        assert len(STORED) * CHUNK < data < (len(STORED) + 200) * CHUNK, found
        # stat knows it then, of the open file and by its name.
        for st in (os.fstat(fd), os.stat(path)):
            assert st.st_size == size and abs(st.st_blocks * 512 - data) < 2 * PAGE
        assert all_blocks * 512 > data + 700 * CHUNK
        whole = np.fromfile(path, "u1")
        for start, end in found:
            whole[start:end] = 0
        assert not whole.any()      # what is in holes reads as zeros
    finally:
        os.close(fd)
    out = tmp_path / "copy.h5"
    run("cp", "--sparse=auto", path, out, check=True)
    assert os.stat(out).st_blocks * 512 <= data + CHUNK
    with h5py.File(out, "r") as f:
        assert (f["data"][...].reshape(-1) == expected()).all()


def test_chunks_with_two_keys(tmp_path, mount):
    """An old Zarr array does not say how its keys are written. If both forms of the key of a chunk
    are stored, the chunk is still stored once."""
    with Store(tmp_path / "bucket/x.zarr", 2, True) as store:
        store.array("data", expected().reshape(CHUNKS, CHUNK), chunks=(1, CHUNK), separator=None,
                    absent=[(i, 0) for i in range(CHUNKS) if i not in STORED])
    array = tmp_path / "bucket/x.zarr/data"
    for i in STORED:
        (array / f"{i}").mkdir()
        os.link(array / f"{i}.0", array / f"{i}/0")
    m = mount(tmp_path / "bucket", "metadata_ttl=0")
    with open(m.file("x.zarr.nc"), "rb") as f:
        found = list(ranges(f.fileno()))
        assert len(found) <= 4, found
        data = sum(end - start for start, end in found)
        assert len(STORED) * CHUNK < data < (len(STORED) + 200) * CHUNK, found
        assert abs(os.fstat(f.fileno()).st_blocks * 512 - data) < 2 * PAGE


def test_a_bucket_that_refuses_the_listing(tmp_path, mount):
    """No chunk counts as absent, the log says why, and the bucket is asked once."""
    large(tmp_path / "bucket")
    m = mount(tmp_path / "bucket", "debug_count", "log_level=info",
              "debug_fault=fail:1:EACCES@db/*/d/*/")
    with open(m.file("x.h5"), "rb") as f:
        before = m.counts()
        found = list(ranges(f.fileno()))
        assert sum(end - start for start, end in found) > CHUNKS * CHUNK
        assert list(ranges(f.fileno())) == found and spent(m, before) == (1, 1)
    assert m.log().count("lseek shows no holes in this dataset") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk")
@pytest.mark.parametrize("form", ["large", "v1", "table"])
def test_an_export_that_cannot_fit_does_not_begin(tmp_path, form):
    """What is stored is counted before."""
    name = FORMS[form][0](tmp_path / "bucket")
    disk = tmp_path / "disk"
    disk.mkdir()
    if run("mount", "-t", "tmpfs", "-o", "size=4m", "none", disk).returncode:
        pytest.skip("no disk can be mounted")
    try:
        done = run(HSIMAGE, "-b", tmp_path / "bucket", "export", name, disk / "x.h5")
        needs = re.search(r"the file needs (\d+) bytes on disk, and \d+ are free", done.stderr)
        assert done.returncode == 1 and needs, done.stderr
        assert len(STORED) * CHUNK < int(needs[1]) < (len(STORED) + 200) * CHUNK
        assert os.listdir(disk) == []
        run("mount", "-o", "remount,size=7m", disk, check=True)     # less than its size
        run(HSIMAGE, "-b", tmp_path / "bucket", "export", name, disk / "x.h5", check=True)
    finally:
        run("umount", disk, check=True)


def test_a_program_that_waits_for_lseek_can_be_killed(tmp_path, mount):
    large(tmp_path / "bucket")
    m = mount(tmp_path / "bucket", "metadata_ttl=600", "debug_fault=delay:1:5000@db/*/d/*/")
    script = "import os, sys; fd = os.open(sys.argv[1], os.O_RDONLY); print(flush=True); " \
             "os.lseek(fd, os.fstat(fd).st_size // 4, os.SEEK_HOLE)"
    with subprocess.Popen([sys.executable, "-c", script, m.file("x.h5")],
                          stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        time.sleep(0.2)
        start = time.monotonic()
        child.send_signal(signal.SIGKILL)
        child.wait(10)
        assert time.monotonic() - start < 3
    assert os.listdir(m.path) == ["x.h5"]
