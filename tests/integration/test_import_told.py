# SPDX-License-Identifier: Apache-2.0
"""What import and link refuse although libhdf5 could read the bytes, and what they take with a line
that tells of a loss: marks of open files, bytes behind the end, types of newer libraries, filters.
libhdf5 and its tools are the judge."""
import os
import shutil
import struct

import h5py
import numpy as np
import pytest

import filediff
import rwmounts
from mounts import HSIMAGE, run

DOMAIN = "home/file.h5"
CLOSED = "the program that wrote it has not closed it"


def hsimage(bucket, command, source, *options):
    return run(HSIMAGE, "-b", bucket, command, *options, source, DOMAIN)


def export(bucket, target):
    run(HSIMAGE, "-b", bucket, "export", "--force", DOMAIN, target, check=True)
    return target


def make(path, libver="earliest"):
    with h5py.File(path, "w", libver=libver) as f:
        f["x"] = np.arange(2000)
        f.flush()
        shutil.copy(path, f"{path}.open")    # as a killed program leaves it
    os.replace(f"{path}.open", path)
    return path


def test_a_file_that_is_marked_as_open(tmp_path, bucket):
    source = make(bucket / "live.h5", "latest")
    with pytest.raises(OSError, match="already open for write"):
        h5py.File(source, "r")
    for command, operand in ("import", source), ("link", "live.h5"):
        done = hsimage(bucket, command, operand, "--replace")
        assert done.returncode == 1 and "status flags 0x1" in done.stderr
        assert "h5clear -s" in done.stderr and "--ignore-open-flag" in done.stderr
        done = hsimage(bucket, command, operand, "--ignore-open-flag", "--replace")
        assert done.returncode == 0 and "a program is writing it, or was killed" in done.stderr
        assert done.stderr.startswith(f"hsimage: {operand}: ")    # as it was named
        with h5py.File(export(bucket, tmp_path / "out.h5")) as f:
            assert (f["x"][()] == np.arange(2000)).all()
    done = run(HSIMAGE, "check", source)
    assert done.returncode == 1 and "error: " in done.stdout and "status flags" in done.stdout
    run("h5clear", "-s", source, check=True)
    assert hsimage(bucket, "import", source, "--replace").stderr == ""


def test_an_old_mark_is_ignored(tmp_path, bucket):
    """As libhdf5 does it."""
    source = make(bucket / "live.h5")
    with h5py.File(source, "r") as f:
        assert f["x"][1] == 1
    for command, operand in ("import", source), ("link", "live.h5"):
        done = hsimage(bucket, command, operand, "--replace")
        assert done.returncode == 0 and "which libhdf5 ignores in version 0" in done.stderr
    done = run(HSIMAGE, "check", source, check=True)
    assert "note: " in done.stdout and "a program is writing it" in done.stdout


def test_copies_to_a_mount(tmp_path, bucket):
    """Bytes behind the end are left out. A mark is the only sign of a killed writer."""
    tail, marked = tmp_path / "tail.h5", make(tmp_path / "marked.h5")
    with h5py.File(tail, "w") as f:
        f["x"] = [1, 2]
    with open(tail, "ab") as f:
        f.write(b"\n" * 10)
    done = hsimage(bucket, "import", tail)
    assert done.returncode == 0 and "the last 10 bytes lie behind the end" in done.stderr
    done = run(HSIMAGE, "check", tail, check=True)
    assert "note: " in done.stdout and "the last 10 bytes" in done.stdout
    with rwmounts.RwMount(bucket, tmp_path) as m:
        for source in tail, marked:
            shutil.copyfile(source, m.file("home", source.name))
        m.released()
        assert rwmounts.is_domain(m.file("home/tail.h5"))
        assert filediff.differences(tail, m.file("home/tail.h5")) == []
        kept = rwmounts.attribute(m.file("home/marked.h5"), "user.hsds.kept")
        assert kept.startswith(CLOSED) and "`hsimage import`" in kept


def patch(path, old, new):
    """Writes over the beginning of the only message that begins like this."""
    body = path.read_bytes()
    assert body.count(old) == 1
    at = body.index(old)
    path.write_bytes(body[:at] + new + body[at + len(new):])


def test_complex_numbers(tmp_path, bucket):
    """libhdf5 2.0 has a class of its own for them."""
    source, expected = tmp_path / "source.h5", tmp_path / "expected.h5"
    with h5py.File(source, "w") as f:
        f["z"] = np.array([1 + 2j, 3 - 4j], "c8")
    shutil.copy(source, expected)
    real = bytes.fromhex("11201f000400000000002000170800177f000000")
    compound = bytes.fromhex("1602000008000000") + b"r"
    patch(source, compound, bytes.fromhex("5b01000008000000") + real)
    done = hsimage(bucket, "import", source)
    assert done.returncode == 0
    assert "complex numbers (H5T_COMPLEX), which become compounds of r and i, 1 in" in done.stderr
    out = export(bucket, tmp_path / "out.h5")
    assert filediff.differences(expected, out) == []


def revised(f, name):
    """A reference of libhdf5 1.12 to an object."""
    return struct.pack("<BBBQ", 2, 0, 8, h5py.h5o.get_info(f[name].id).addr) + bytes(7)


def make_revised(path, values):
    with h5py.File(path, "w") as f:
        f.create_group("g/h")
        f["refs"] = np.array([v if isinstance(v, bytes) else revised(f, v) for v in values], "V18")
    patch(path, bytes.fromhex("1500000012000000"), bytes.fromhex("4712000012000000"))
    return path


def test_revised_references(tmp_path, bucket):
    source = make_revised(tmp_path / "source.h5", ["g", bytes(18), "g/h"])
    done = hsimage(bucket, "import", source)
    assert done.returncode == 0
    assert "revised references (H5T_STD_REF), which become object references, 1 in" in done.stderr
    with h5py.File(export(bucket, tmp_path / "out.h5")) as f:
        assert [f[r].name if r else None for r in f["refs"][()]] == ["/g", None, "/g/h"]


@pytest.mark.parametrize("kind,what", [(3, "a dataset region"), (4, "an attribute")])
def test_revised_references_to_other_things(tmp_path, bucket, kind, what):
    other = struct.pack("<BBI", kind, 0, 8) + bytes(12)
    source = make_revised(tmp_path / "source.h5", ["g", other])
    done = hsimage(bucket, "import", source)
    assert done.returncode == 1
    assert f"/refs: chunk 0: a revised reference (H5T_STD_REF) to {what}\n" in done.stderr
    done = hsimage(bucket, "import", source, "--skip-unsupported")
    assert done.returncode == 0
    with h5py.File(export(bucket, tmp_path / "out.h5")) as f:
        assert list(f) == ["g"]


def make_filtered(path, number, params=(1, 2), values=np.arange(8, dtype="<i4"), stored=None):
    """The library may not have the filter. Then the chunk is written as the filter would do it."""
    with h5py.File(path, "w") as f:
        p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        p.set_chunk(values.shape)
        p.set_filter(number, h5py.h5z.FLAG_OPTIONAL, params)
        space = h5py.h5s.create_simple(values.shape)
        d = h5py.h5d.create(f.id, b"x", h5py.h5t.py_create(values.dtype), space, p)
        if h5py.h5z.filter_avail(number):
            d.write(h5py.h5s.ALL, h5py.h5s.ALL, values)
        else:
            d.write_direct_chunk((0,), stored or values.tobytes())
    return path


@pytest.mark.parametrize("number", [32022, 32023])
def test_rounding_filters(tmp_path, bucket, number):
    source = make_filtered(tmp_path / "source.h5", number)
    assert hsimage(bucket, "import", source).stderr == ""
    with h5py.File(export(bucket, tmp_path / "out.h5")) as f:
        assert (f["x"][()] == np.arange(8)).all()


# The chunk of VBZ is the one that its project publishes.
@pytest.mark.parametrize("number,params,values,stored", [
    (32013, (5,), np.sin(np.arange(60, dtype="<f8")).reshape(4, 15), None),
    (32020, (1, 4, 1, 0), np.array([5, 4, 3, 2, 1], "<i4"), b"\x14\0\0\0\0\0\x0a\1\1\1\1"),
], ids=["zfp", "VBZ"])
def test_filters_of_plugins(tmp_path, bucket, number, params, values, stored):
    if stored is None and not h5py.h5z.filter_avail(number):
        pytest.skip("libhdf5 lacks the plug-in")
    source = make_filtered(bucket / "x.h5", number, params, values, stored)
    done = run(HSIMAGE, "check", source, check=True)
    assert done.stdout.startswith("sound: ")
    for command, operand in ("import", source), ("link", "x.h5"):
        done = hsimage(bucket, command, operand, "--replace")
        assert done.returncode == 0, done.stderr
        with h5py.File(export(bucket, tmp_path / "out.h5")) as f:
            assert (f["x"][()] == values).all()


def test_a_filter_without_decoder(tmp_path, bucket):
    source = make_filtered(tmp_path / "source.h5", 32026)
    for command, operand in ("import", source), ("link", source):
        options = ["--as", "x.h5"] if command == "link" else []
        done = hsimage(bucket, command, operand, *options)
        assert done.returncode == 1
        assert "/x: a filter without a decoder: 32026\n" in done.stderr
    done = run(HSIMAGE, "check", source)
    assert done.returncode == 1 and "filter 32026" in done.stdout
    # A name takes the place of the parameters.
    patch(source, struct.pack("<HHHHII", 32026, 0, 1, 2, 1, 2),
          struct.pack("<HHHH8s", 32026, 8, 1, 0, b"Blosc2"))
    for command in ["import"], ["link", "--as", "x.h5"]:
        done = hsimage(bucket, command[0], source, *command[1:])
        assert done.returncode == 1
        assert "/x: a filter without a decoder: 32026 (Blosc2)\n" in done.stderr


def test_chunks_that_contradict_the_layout(tmp_path, bucket):
    """A chunk without filters is as large as the layout says."""
    source = bucket / "x.h5"
    with h5py.File(source, "w") as f:
        f.create_dataset("d", data=np.arange(1024), chunks=(512,))
    body = bytearray(source.read_bytes())
    key = struct.pack("<IIQQ", 4096, 0, 512, 0)
    assert body.count(key) == 1
    at = body.index(key)
    for size in 4088, 4104, 1 << 31:
        struct.pack_into("<I", body, at, size)
        source.write_bytes(body)
        done = hsimage(bucket, "link", "x.h5")
        assert done.returncode == 1 and "dataset /d: chunk 1" in done.stderr
        assert hsimage(bucket, "import", source).returncode == 1


@pytest.mark.parametrize("chunks", [3, 1200])
def test_a_vast_extent_with_few_chunks(tmp_path, bucket, chunks):
    """Only stored chunks count, for import, link and readers."""
    with h5py.File(bucket / "x.h5", "w") as f:
        d = f.create_dataset("m", (2**33, 2**20), chunks=(10, 10), dtype="f4")
        for i in range(chunks):
            d[2**22 * i, 3 * i] = i + 1
    for command, operand in ("import", bucket / "x.h5"), ("link", "x.h5"):
        done = hsimage(bucket, command, operand, "--replace")
        assert done.returncode == 0, done.stderr
        if command == "link":    # a table would have a record for each chunk, stored or not
            assert ("1 dataset refers" in done.stderr) == (chunks <= 1000), done.stderr
        done = run(HSIMAGE, "-b", bucket, "check", "--all", DOMAIN)
        assert done.stdout.startswith("sound: "), done.stdout
        with h5py.File(export(bucket, tmp_path / "out.h5")) as f:
            assert [f["m"][2**22 * i, 3 * i] for i in (0, 1, 2, chunks - 1)] == [1, 2, 3, chunks]
            assert f["m"][5, 5] == 0
