# SPDX-License-Identifier: Apache-2.0
"""Hostile buckets: small objects that need much memory, sizes that no file has, and directories
with entries that no service writes. Only the hostile object fails, and only for the program that
reads it."""
import os
import struct
import sys
import zlib

import h5py
import numpy as np
import pytest

import mkbucket
from mkbucket import FLOAT64, GZIP, INT8, INT32, vstring
from mounts import HSIMAGE, run

OK = np.arange(10, dtype="<i4")
MANY_VALUES = 256 << 20     # bytes of the largest value


def domain(bucket, path="x.h5"):
    d = bucket.domain(path)
    d.dataset(d.root, "ok", INT32, [10], [10]).chunk((0,), OK)
    return d


def is_healthy(m, path="x.h5"):
    with h5py.File(m.file(path), "r") as f:
        return f["ok"][()].tolist() == OK.tolist()


MEASURE = """
import os, sys
quiet = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=quiet)
_, status, usage = os.wait4(pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss << 10)
"""


def peak_memory(*command):
    """Exit status and largest resident size of a command in bytes. exec keeps the peak of the
    process that starts the command, so a small process starts it."""
    found = run(sys.executable, "-c", MEASURE, *command, check=True).stdout.split()
    return int(found[0]), int(found[1])


# ---- sizes ----

def test_contiguous_dataset_of_2_to_the_63_bytes(tmp_path, mount):
    """Only stored chunks have a place in the file."""
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        d = domain(bucket)
        vast = d.dataset(d.root, "vast", FLOAT64, [1 << 60], [1000])
        vast.doc["creationProperties"]["layout"] = {"class": "H5D_CONTIGUOUS"}
        vast.chunk((3,), np.full(1000, 7.5))
    m = mount(tmp_path / "bucket")
    assert is_healthy(m)
    assert os.stat(m.file("x.h5")).st_size < 1 << 20
    with h5py.File(m.file("x.h5"), "r") as f:
        assert f["vast"].shape == (1 << 60,)
        assert set(f["vast"][3000:4000]) == {7.5} and set(f["vast"][4000:5000]) == {0.0}
        assert f["vast"][(1 << 60) - 1] == 0


def test_several_datasets_that_together_are_too_large(tmp_path, mount):
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        d = domain(bucket)
        for i in range(5):
            vast = d.dataset(d.root, f"vast{i}", INT8, [1 << 61], [1000])
            vast.doc["creationProperties"]["layout"] = {"class": "H5D_CONTIGUOUS"}
            vast.chunk((i,), bytes([i]) * 1000)
    m = mount(tmp_path / "bucket")
    assert is_healthy(m)
    with h5py.File(m.file("x.h5"), "r") as f:
        assert [int(f[f"vast{i}"][i * 1000]) for i in range(5)] == list(range(5))


@pytest.mark.parametrize("dims,chunk", [
    ([1 << 62], [1 << 20]), ([1 << 58], [1]), ([1 << 58] + [1] * 31, [1] * 32)])
def test_computed_elements_beyond_any_file(tmp_path, dims, chunk):
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        d = domain(bucket)
        bad = d.dataset(d.root, "bad", INT8, dims, chunk, initializer=["arange"])
    out = run(HSIMAGE, "info", "--verify", tmp_path / "bucket" / "x.h5")
    assert out.returncode == 0, out.stderr
    assert bad.key in out.stdout and "computed elements" in out.stdout
    assert "dataset /ok" in out.stdout and "dataset /bad" not in out.stdout


# ---- memory ----

def test_values_that_few_bytes_ask_for(tmp_path):
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        d = domain(bucket)
        for i in range(8):
            ds = d.dataset(d.root, f"d{i}", INT32, [1])
            ds.attribute("null", INT8, [MANY_VALUES * 3 // 4], None)
    code, peak = peak_memory(HSIMAGE, "info", tmp_path / "bucket" / "x.h5")
    assert code == 0 and peak < 256 << 20
    out = run(HSIMAGE, "info", tmp_path / "bucket" / "x.h5", check=True)
    assert "attributes 8\n" in out.stdout and "left out" not in out.stdout


def test_documents_with_holes(tmp_path):
    """Large documents are read one by one."""
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        d = domain(bucket)
        groups = [d.group(d.root, f"g{i}") for i in range(4)]
    for group in groups:
        os.truncate(tmp_path / "bucket" / group.key, 255 << 20)
    code, peak = peak_memory(HSIMAGE, "info", tmp_path / "bucket" / "x.h5")
    assert code == 0 and peak < 768 << 20


def test_chunk_becomes_a_bomb_while_the_file_is_open(tmp_path, mount):
    text = os.urandom(1 << 17).hex().encode()   # so large that read-ahead does not reach the end
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        d = domain(bucket)
        ds = d.dataset(d.root, "bad", vstring(), [64], [1], filters=[GZIP])
        for i in range(64):
            ds.chunk((i,), zlib.compress(struct.pack("<i", len(text)) + text))
    m = mount(tmp_path / "bucket", "cache_size=1M")
    with h5py.File(m.file("x.h5"), "r") as f:
        assert f["bad"][0] == text
        size = (1 << 28) - 4
        bomb = zlib.compress(struct.pack("<i", size) + bytes(size), 9)
        for i in range(48, 64):
            bucket.put(ds.chunk_key((i,)), bomb)
        before = m.memory()
        with pytest.raises(OSError):
            f["bad"][48:]
        assert m.memory() - before < 256 << 20
        assert f["ok"][()].tolist() == OK.tolist()
    assert ds.chunk_key((48,)) in m.log()


# ---- reads after an error ----

def test_damaged_chunk_neither_ends_nor_empties_the_file(tmp_path, mount):
    """The kernel interprets a short reply as the end of the file."""
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        d = domain(bucket)
        ds = d.dataset(d.root, "bad", FLOAT64, [4 * 4096], [4096])
        for i in range(4):
            ds.chunk((i,), np.full(4096, i + 1.0) if i != 2 else b"damaged")
    m = mount(tmp_path / "bucket")
    size, failed, seen = 0, 0, set()
    with open(m.file("x.h5"), "rb", buffering=0) as f:
        whole = os.fstat(f.fileno()).st_size
        for at in range(0, whole, 4096):
            try:
                page = os.pread(f.fileno(), 4096, at)
                size += len(page)
                seen |= set(np.frombuffer(page[:len(page) // 8 * 8], "<f8").tolist())
            except OSError:
                failed += 4096
        assert os.fstat(f.fileno()).st_size == whole
    assert size + failed == whole and failed == 4096 * 8
    assert {1.0, 2.0, 4.0} <= seen
    with h5py.File(m.file("x.h5"), "r") as f:
        for _ in range(2):
            with pytest.raises(OSError):
                f["bad"][2 * 4096:3 * 4096]
            assert set(f["bad"][3 * 4096:]) == {4.0}
    assert ds.chunk_key((2,)) in m.log()


def test_problems_neither_flood_the_log_nor_reach_the_terminal_raw(tmp_path, mount):
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        d = domain(bucket)
        gone = d.group(d.root, "gone\x1b[2J\n0")
        gone.missing = True
        for i in range(5000):
            d.root.link(f"gone{i}", gone)
    m = mount(tmp_path / "bucket")
    assert is_healthy(m)
    log = m.log()
    assert 50 <= log.count("left out") <= 60 and log.count("\n") < 70
    assert "more problems are not logged" in log
    out = run(HSIMAGE, "info", tmp_path / "bucket" / "x.h5", check=True)
    assert "left out" in out.stdout and "\x1b" not in out.stdout + out.stderr


# ---- odd entries in the directories of a bucket ----

def put_deep(place):
    path = place
    for _ in range(80):
        path = path / "d"
    path.mkdir(parents=True)


def put_loop(place):
    place.mkdir()
    (place / "self").symlink_to(".")
    (place / "up").symlink_to("..")


ODD = {
    "deep_directory": put_deep,
    "directory_loop": put_loop,
    "fifo": os.mkfifo,
    "link_out_of_the_bucket": lambda place: place.symlink_to("/etc/passwd"),
    "link_to_a_directory_outside": lambda place: place.symlink_to("/"),
    "link_to_itself": lambda place: place.symlink_to(place.name),
    "directory": lambda place: place.mkdir(),
    "name_with_newline": lambda place: (place.parent / "0\n1").write_bytes(b"x"),
    "name_not_utf8": lambda place: open(os.fsencode(place) + b"\xff\xfe", "wb").close(),
    "name_of_255_bytes": lambda place: (place.parent / ("n" * 255)).write_bytes(b"x"),
}


LINKS = [name for name in ODD if name.startswith("link_")]
PAGE = 1 << 14      # elements of a chunk that shares no page with another


@pytest.mark.parametrize("name", ODD)
def test_odd_file_in_place_of_a_chunk(tmp_path, mount, name):
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        d = domain(bucket)
        ds = d.dataset(d.root, "odd", INT32, [2 * PAGE], [PAGE])
        ds.chunk((1,), np.arange(PAGE, dtype="<i4"))
        domain(bucket, "other.h5")
    ODD[name](tmp_path / "bucket" / ds.chunk_key((0,)))
    m = mount(tmp_path / "bucket")
    assert is_healthy(m, "other.h5")
    with h5py.File(m.file("x.h5"), "r") as f:
        assert f["odd"][PAGE:].tolist() == list(range(PAGE))
        if name in LINKS:       # an existing entry is not an absent chunk
            with pytest.raises(OSError):
                f["odd"][:PAGE]
        else:
            assert is_healthy(m)
            assert not f["odd"][:PAGE].any()


@pytest.mark.parametrize("name", ODD)
def test_odd_file_beside_domains(tmp_path, mount, name):
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        bucket.folder("dir")
        domain(bucket, "dir/x.h5")
    ODD[name](tmp_path / "bucket" / "dir" / "odd")
    m = mount(tmp_path / "bucket")
    assert "x.h5" in os.listdir(m.file("dir"))
    assert is_healthy(m, "dir/x.h5")
    for entry in os.listdir(os.fsencode(m.file("dir"))):
        os.stat(os.path.join(os.fsencode(m.file("dir")), entry))


@pytest.mark.parametrize("name", ODD)
def test_odd_file_in_place_of_a_document(tmp_path, mount, name):
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        domain(bucket)
        bad = domain(bucket, "bad.h5")
        odd = bad.dataset(bad.root, "odd", INT32, [10], [10])
        odd.missing = True
    (tmp_path / "bucket" / odd.key).parent.mkdir(parents=True)
    ODD[name](tmp_path / "bucket" / odd.key)
    m = mount(tmp_path / "bucket")
    assert is_healthy(m)
    if name in LINKS:           # an existing entry is not an absent object
        with pytest.raises(OSError):
            open(m.file("bad.h5"), "rb")
        return
    assert is_healthy(m, "bad.h5")
    with h5py.File(m.file("bad.h5"), "r") as f:
        assert "odd" not in f
