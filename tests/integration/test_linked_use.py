# SPDX-License-Identifier: Apache-2.0
"""What a user meets after `hsimage link`: programs write to the domain, few chunks are stored, the
file is gone. test_link.py has what a link puts into the bucket."""
import os
import re
import subprocess
import sys

import h5py
import numpy as np
import pytest

import oracle
import rwmounts
from mounts import HSIMAGE, run

FILE, DOMAIN = "raw/file.h5", "home/file.h5"


@pytest.fixture(name="bucket")
def fixture_bucket(bucket):
    (bucket / "raw").mkdir()
    return bucket


def link(bucket, file=FILE, domain=DOMAIN):
    return run(HSIMAGE, "-b", bucket, "link", file, domain, check=True)


@pytest.mark.parametrize("shape,rows", [((550, 1000), 275), ((2, 300, 1000), 300),
                                        ((3, 530, 1000), 265), ((547, 1000), None)], ids=str)
def test_contiguous_data_at_the_end(bucket, shape, rows):
    """The service reads whole chunks, and zeros instead of one that ends behind the file. If no
    number of rows divides the data, they are copied."""
    with h5py.File(bucket / FILE, "w") as f:
        f["x"] = np.arange(np.prod(shape), dtype="f8").reshape(shape)
    size = os.path.getsize(bucket / FILE)
    link(bucket)
    (dataset,) = [d for d in oracle.Bucket(bucket).domain(DOMAIN).objects.values()
                  if "creationProperties" in d.doc]
    layout, chunk = dataset.properties["layout"], dataset.doc["layout"]["dims"]
    if rows is None:
        assert "_REF" not in layout["class"]
        return
    assert layout["class"] == "H5D_CONTIGUOUS_REF" and chunk[-2:] == [rows, 1000]
    for index in np.ndindex(*(-(-n // c) for n, c in zip(shape, chunk))):
        first = np.ravel_multi_index([i * c for i, c in zip(index, chunk)], shape)
        assert layout["offset"] + 8 * (first + np.prod(chunk)) <= size
    assert run(HSIMAGE, "-b", bucket, "check", "--all", DOMAIN).returncode == 0


def test_file_that_is_gone(bucket):
    """One line for each dataset, not for each chunk."""
    with h5py.File(bucket / FILE, "w") as f:
        f.create_dataset("few", data=np.zeros((10, 600)), chunks=(1, 600))
        f.create_dataset("many", data=np.zeros((1100, 100)), chunks=(1, 100))
    link(bucket)
    os.rename(bucket / FILE, bucket / "raw/moved.h5")
    for options in ([], ["--all"]):
        done = run(HSIMAGE, "-b", bucket, "check", *options, DOMAIN)
        lines = [line for line in done.stdout.splitlines() if line.startswith("error: ")]
        assert done.returncode == 1 and len(lines) == 2, done.stdout
        for path in ("/few", "/many"):
            assert any(f": {path}: no chunk can be read: dataset d-" in line and
                       f"/{FILE}: the file does not exist" in line for line in lines), lines
    done = run(HSIMAGE, "-b", bucket, "info", "--verify", DOMAIN)
    assert done.stdout.count("the file does not exist") == 2, done.stdout
    with open(bucket / FILE, "wb") as f:
        f.write(b"another file")
    done = run(HSIMAGE, "-b", bucket, "check", "--all", DOMAIN)
    assert done.stdout.count("the file is not the version that the domain was made from") == 2
    os.replace(bucket / "raw/moved.h5", bucket / FILE)
    assert run(HSIMAGE, "-b", bucket, "check", "--all", DOMAIN).returncode == 0


def test_few_chunks(bucket, tmp_path, mount):
    """A dataset of which few chunks are stored takes no space: in the export, and as a mount
    shows it if the document names the chunks."""
    with h5py.File(bucket / FILE, "w") as f:
        few = f.create_dataset("few", (1 << 24,), "i1", chunks=(1 << 16,))
        few[5], few[-1] = 1, 2
    with h5py.File(bucket / "raw/table.h5", "w") as f:
        table = f.create_dataset("table", (1 << 24,), "i1", chunks=(1 << 12,))
        table[:1002 << 12] = 1
    link(bucket)
    link(bucket, "raw/table.h5", "home/table.h5")
    lines = run(HSIMAGE, "-b", bucket, "info", DOMAIN, check=True).stdout.splitlines()
    assert any("/few: int8 [16777216], chunks [65536], 2 of 256 written" in x for x in lines)
    for name, room in (("file.h5", 1 << 20), ("table.h5", 6 << 20)):
        out = tmp_path / name
        run(HSIMAGE, "-b", bucket, "export", f"home/{name}", out, check=True)
        assert os.stat(out).st_blocks * 512 < room
        done = run("h5diff", bucket / "raw" / name, out)
        assert (done.returncode, done.stdout) == (0, "")
    shown = mount(bucket).file(DOMAIN)
    assert os.stat(shown).st_blocks * 512 < 1 << 20 and os.stat(shown).st_size < 1 << 20


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk")
def test_no_room_for_the_export(bucket, tmp_path):
    """An export that cannot fit does not begin."""
    with h5py.File(bucket / FILE, "w") as f:
        f.create_dataset("x", data=np.ones(1 << 20), chunks=(1 << 16,))
    link(bucket)
    disk = tmp_path / "disk"
    disk.mkdir()
    if run("mount", "-t", "tmpfs", "-o", "size=4m", "none", disk).returncode:
        pytest.skip("no disk can be mounted")
    try:
        done = run(HSIMAGE, "-b", bucket, "export", DOMAIN, disk / "x.h5")
        assert done.returncode == 1 and re.search(
            r"the file needs \d+ bytes on disk, and \d+ are free", done.stderr), done.stderr
        assert os.listdir(disk) == []
    finally:
        run("umount", disk, check=True)


def change(path, edit):
    """Runs statements on the open file f. Prints `written`, then `closed`. libhdf5 may crash at
    the end, after a write has failed."""
    script = f"import h5py, sys, numpy as np\nf = h5py.File(sys.argv[1], 'r+')\n{edit}\n" \
             "print('written', flush=True)\nf.close()\nprint('closed', flush=True)\n"
    return subprocess.run([sys.executable, "-c", script, path], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=100, check=False)


def test_write(bucket, tmp_path):
    """A write to linked data fails at once, the log has one line for each dataset and
    open, and the file stays usable."""
    old = np.arange(20000.)
    with h5py.File(bucket / FILE, "w") as f:
        f["big"] = old
        f.create_dataset("chunked", data=old, chunks=(10000,))
    link(bucket)
    (tmp_path / "mount").mkdir()
    with rwmounts.RwMount(bucket, tmp_path / "mount") as m:
        shown = m.file(DOMAIN)
        done = change(shown, "f['big'][...] = 7")
        assert "Read-only file system" in done.stderr and done.stdout == ""
        done = change(shown, "f['chunked'][3] = 7\nf['big'].attrs['a'] = 1")
        assert "Read-only file system" in done.stderr and "closed" in done.stdout
        change(shown, "del f['big']")
        assert change(shown, "f['big'] = np.arange(20000.) + 1").stdout == "written\nclosed\n"
        with h5py.File(shown) as f:
            assert np.array_equal(f["big"][...], old + 1)
            assert np.array_equal(f["chunked"][...], old)
        # The library gives the new dataset the place of the old one, where writes fail.
        done = change(shown, "del f['chunked']\nx = f.create_dataset('new', (20000,), "
                      "chunks=(10000,), dtype='f8')\nx[...] = np.arange(20000.)\ndel x")
        assert "closed" not in done.stdout
        with h5py.File(shown) as f:
            assert np.array_equal(f["chunked"][...], old) and "new" not in f
        assert m.left() == 1
        lines = [line for line in m.log().splitlines() if "no program can write to" in line]
        # The log counts a line that is repeated at once, as that of the third open may be.
        assert len(lines) + m.log().count("(previous line repeated 1 times)") == 3, m.log()
        assert "/home/file.h5: no program can write to the dataset /big, because its data are " \
            f"in the file {os.path.basename(bucket)}/{FILE}" in lines[0]
        assert "dataset /chunked," in lines[1]
