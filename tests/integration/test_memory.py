# SPDX-License-Identifier: Apache-2.0
"""The memory of the daemon: attributes that were never set, and the limit of metadata."""
import errno
import json
import os
import re

import h5py
import numpy as np
import pytest

import mkbucket as mb
import mounts

MIB = 1 << 20
FLOAT16 = {"class": "H5T_FLOAT", "base": "H5T_IEEE_F16LE"}


def cpu_seconds(m):
    """CPU time that the daemon has used so far."""
    with open(f"/proc/{m.process.pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def bytes_of_metadata(m):
    with open(m.file(".hsmount", "stats"), encoding="ascii") as f:
        return json.load(f)["cache"]["charged_bytes"]


def test_eight_unset_attributes_of_2_28_elements(tmp_path, mount):
    """Time and memory depend on the size of the documents, 700 bytes, and not on the dimensions."""
    with mb.Maker(tmp_path / "bucket") as bucket:
        for i in range(8):
            bucket.domain(f"{i}.h5").root.attribute("a", mb.INT8, [2**28 - 1], None)
    m = mount(tmp_path / "bucket")
    os.listdir(m.path)
    before, since = m.memory(), cpu_seconds(m)
    files = [open(m.file(f"{i}.h5"), "rb") for i in range(8)]
    try:
        assert all(os.fstat(f.fileno()).st_size > 2**28 for f in files)
        assert bytes_of_metadata(m) < MIB
        if m.memory_peak() is not None:
            assert m.memory_peak() - before < 50 * MIB
            assert cpu_seconds(m) - since < 0.5
        # The value is zero and a hole of the file.
        assert os.pread(files[3].fileno(), MIB, 2**27) == bytes(MIB)
        hole = os.lseek(files[3].fileno(), 0, os.SEEK_HOLE)
        assert hole < MIB
        assert os.lseek(files[3].fileno(), hole, os.SEEK_DATA) - hole >= 2**28 - 1
    finally:
        for f in files:
            f.close()


@pytest.mark.parametrize("type_, dims", [(mb.INT16, [1, 2**27]), (FLOAT16, [1, 2**27]),
                                         (mb.INT8, [2**27])])
def test_one_null_for_2_27_elements(tmp_path, mount, type_, dims):
    with mb.Maker(tmp_path / "bucket") as bucket:
        bucket.domain("x.h5").root.attribute("a", type_, dims, [None])
    m = mount(tmp_path / "bucket")
    os.listdir(m.path)
    before, since = m.memory(), cpu_seconds(m)
    with open(m.file("x.h5"), "rb") as f:
        assert bytes_of_metadata(m) < MIB
        if m.memory_peak() is not None:
            assert m.memory_peak() - before < 50 * MIB
            assert cpu_seconds(m) - since < 0.5
        middle = os.pread(f.fileno(), MIB, 2**26)
    assert len(middle) == MIB
    # null is NaN for a float, here 0x7e00. The value can begin at an odd offset.
    nan = b"\x00\x7e" * MIB
    expected = (nan[:MIB], nan[1:MIB + 1]) if type_ is FLOAT16 else (bytes(MIB),)
    assert middle in expected


def test_large_attributes_are_read_correctly(tmp_path, mount):
    """Attributes that are unset, null or partly set, and ordinary ones, as libhdf5 reads them."""
    n = 1 << 20
    with mb.Maker(tmp_path / "bucket") as bucket:
        d = bucket.domain("x.h5")
        target = d.group(d.root, "target")
        d.root.attribute("unset", mb.INT32, [n], None)
        d.root.attribute("null", mb.FLOAT64, [2, 5000], [None])
        d.root.attribute("part", mb.INT16, [2, 4000], [list(range(4000)), None])
        d.root.attribute("strings", mb.vstring(), [2, 3000], [[f"s{i}" for i in range(3000)],
                                                              None])
        d.root.attribute("small", mb.INT32, [3], None)
        d.root.attribute("word", mb.vstring(), [], "word")
        d.root.attribute("refs", {"class": "H5T_REFERENCE", "base": "H5T_STD_REF_OBJ"},
                         [2, 2000], [[f"groups/{target.id}"] * 2000, None])
        ds = d.dataset(d.root, "data", {"class": "H5T_ARRAY", "dims": [20000], "base": mb.INT32},
                       [3], [1], fillValue=7)
        ds.chunk((1,), np.arange(20000, dtype="<i4"))
    m = mount(tmp_path / "bucket")
    with h5py.File(m.file("x.h5"), "r") as f:
        assert sorted(f.attrs) == ["null", "part", "refs", "small", "strings", "unset", "word"]
        assert f.attrs["unset"].shape == (n,) and not f.attrs["unset"].any()
        assert np.isnan(f.attrs["null"]).all() and f.attrs["null"].shape == (2, 5000)
        assert (f.attrs["part"] == [np.arange(4000), np.zeros(4000)]).all()
        strings = f.attrs["strings"]
        assert list(strings[0]) == [f"s{i}" for i in range(3000)] and not any(strings[1])
        assert list(f.attrs["small"]) == [0, 0, 0] and f.attrs["word"] == "word"
        refs = f.attrs["refs"]
        assert all(f[r] == f["target"] for r in refs[0]) and not any(refs[1])
        assert (f["data"][0] == 7).all() and (f["data"][2] == 7).all()
        assert (f["data"][1] == np.arange(20000)).all()
    out = mounts.run("h5dump", "-a", "/unset", m.file("x.h5"), check=True).stdout
    assert out.count(" 0,") + out.count(" 0\n") >= n - n // 10 and " 1," not in out
    copy = tmp_path / "copy.h5"
    mounts.run(mounts.HSIMAGE, "export", tmp_path / "bucket" / "x.h5", copy, check=True)
    with h5py.File(copy, "r") as f:
        assert not f.attrs["unset"].any() and np.isnan(f.attrs["null"]).all()
    mounts.run("h5diff", m.file("x.h5"), copy, check=True)


def large(bucket, name, n):
    """A domain with a short document whose metadata takes slightly more than 2 n bytes, if programs
    can change it."""
    items = mb.vlen({"class": "H5T_ARRAY", "dims": [n], "base": mb.INT8})
    bucket.domain(name).root.attribute("a", items, [], [None])


def test_metadata_has_a_limit(tmp_path, mount):
    """Opening a domain that does not fit fails and the log says why. Domains that are not open are
    evicted."""
    with mb.Maker(tmp_path / "bucket") as bucket:
        for i in range(4):
            large(bucket, f"{i}.h5", 80 * MIB)
        large(bucket, "image.h5", 20 * MIB)     # its objects fit, its image does not
        ds = bucket.domain("small.h5")
        ds.dataset(ds.root, "x", mb.INT32, [10]).chunk((0,), np.arange(10, dtype="<i4"))
    m = mount(tmp_path / "bucket", "cache_size=1M", "rw", f"journal_dir={tmp_path}/journal")
    files = []
    for i in range(3):
        files.append(open(m.file(f"{i}.h5"), "rb"))
    assert 480 * MIB < bytes_of_metadata(m) < 512 * MIB
    with pytest.raises(OSError) as error:
        open(m.file("3.h5"), "rb")
    assert error.value.errno == errno.ENOMEM
    assert "domain /3.h5: at least " in m.log() and "cache_size=1048576" in m.log()
    with pytest.raises(OSError) as error:
        open(m.file("image.h5"), "rb")
    assert error.value.errno == errno.ENOMEM
    assert re.search(r"domain /image.h5: objects of 2\d{7} bytes: image of 2\d{7} bytes: "
                     r"out of memory: ", m.log())
    # Other domains can be opened, and open files are still readable.
    with h5py.File(m.file("small.h5"), "r") as f:
        assert list(f["x"]) == list(range(10))
    assert len(os.pread(files[0].fileno(), 4096, 0)) == 4096
    for f in files:
        f.close()
    # Closed domains are evicted, so the next opening succeeds.

    def opens():
        try:
            open(m.file("3.h5"), "rb").close()
        except OSError:
            return False
        return True
    assert mounts.wait_for(opens)
    if m.memory_peak() is not None:
        assert m.memory_peak() < 1024 * MIB


def test_metadata_of_closed_domains_is_evicted_when_needed(tmp_path, mount):
    with mb.Maker(tmp_path / "bucket") as bucket:
        for i in range(4):
            large(bucket, f"{i}.h5", 80 * MIB)
    m = mount(tmp_path / "bucket", "cache_size=1000M", "rw", f"journal_dir={tmp_path}/journal")
    open(m.file("0.h5"), "rb").close()
    files = [open(m.file(f"{i}.h5"), "rb") for i in (1, 2)]
    # The closed domain stays in memory until another one needs its room.
    assert bytes_of_metadata(m) > 480 * MIB
    with open(m.file("3.h5"), "rb"):
        assert 480 * MIB < bytes_of_metadata(m) < 512 * MIB
    for f in files:
        f.close()


def test_a_small_cache_opens_ordinary_domains(tmp_path, mount):
    with mb.Maker(tmp_path / "bucket") as bucket:
        d = bucket.domain("x.h5")
        for i in range(300):
            d.dataset(d.root, f"d{i}", mb.INT32, [10]).chunk((0,), np.arange(10, dtype="<i4"))
    m = mount(tmp_path / "bucket", "cache_size=0")
    with h5py.File(m.file("x.h5"), "r") as f:
        assert all(list(f[f"d{i}"]) == list(range(10)) for i in range(300))
