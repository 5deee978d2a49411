# SPDX-License-Identifier: Apache-2.0
"""The user block of a file, such as the header of a MATLAB 7.3 file, is kept with the domain, and
the file of the domain has it in front of its superblock."""
import json
import os
import shutil

import h5py
import numpy as np
import pytest

import bucketstate
import filediff
import hsds_validator
import imports
import mounts
import recorder
import rwmounts
from mounts import HSIMAGE, Mount, run
from programs import Python

NAME = "home/a.mat"
MATLAB = b"MATLAB 7.3 MAT-file, Platform: GLNXA64, HDF5 schema 1.00 .".ljust(116) + \
    b"\0" * 8 + b"\0\2IM"
SMALL = 4096        # bytes; a larger block is an object of its own
BLOCKS = {"matlab": (512, MATLAB), "zeros": (1024, b""), "text": (2048, b"text\n" * 400),
          "small": (SMALL, bytes(range(1, 256)) * 16), "large": (2 * SMALL, b"x" * (SMALL + 1)),
          "random": (1 << 20, np.random.default_rng(1).bytes(1 << 20))}


def write(path, size, text, libver=None):
    with h5py.File(path, "w", userblock_size=size, libver=libver) as f:
        f["x"] = np.arange(3000.0)
        f["x"].attrs["MATLAB_class"] = np.bytes_("double")
        f.create_dataset("c", data=np.arange(10000).reshape(100, 100), chunks=(10, 50),
                         compression="gzip", maxshape=(None, 100))
        f.create_dataset("s", data=np.array(["a", "", "text"], dtype=object),
                         dtype=h5py.string_dtype())
    with open(path, "r+b") as f:
        f.write(text[:size])
    return path


def block_of(path, size):
    with open(path, "rb") as f:
        return f.read(size)


def objects(bucket):
    """The keys of user blocks that are objects of their own."""
    return [name for _, _, names in os.walk(bucket / "db") for name in names
            if name.startswith(bucketstate.USER_BLOCK)]


@pytest.fixture(name="bucket")
def fixture_bucket(tmp_path):
    return imports.make_bucket(tmp_path / "bucket")


@pytest.fixture(name="matlab")
def fixture_matlab(bucket, tmp_path):
    source = write(tmp_path / "a.mat", *BLOCKS["matlab"])
    run(HSIMAGE, "-b", bucket, "import", source, NAME, check=True)
    return source


@pytest.mark.parametrize("libver", (None, "latest"))
@pytest.mark.parametrize("which", BLOCKS)
def test_a_file_comes_back(bucket, tmp_path, which, libver):
    size, text = BLOCKS[which]
    source, out = write(tmp_path / "a.mat", size, text, libver), tmp_path / "out.mat"
    run(HSIMAGE, "-b", bucket, "import", source, NAME, check=True)
    assert len(objects(bucket)) == (which in ("large", "random"))
    assert hsds_validator.check_domain(os.fspath(bucket), NAME, strict=True) == []
    assert f"user block: {size} bytes" in run(HSIMAGE, "-b", bucket, "info", NAME).stdout
    run(HSIMAGE, "-b", bucket, "export", NAME, out, check=True)
    assert filediff.differences(source, out) == []
    done = run(HSIMAGE, "-b", bucket, "check", "--all", NAME)
    assert done.returncode == 0 and done.stdout.startswith("sound:"), done.stdout
    with Mount(bucket, tmp_path) as m:
        assert filediff.differences(source, m.file(NAME)) == []
        with open(m.file(NAME), "rb") as shown, open(out, "rb") as file:
            assert shown.read() == file.read()
            for at in 0, size - 1, size, size + 95, 4096:    # across the ends of the block
                assert os.pread(shown.fileno(), 100, at) == os.pread(file.fileno(), 100, at)


def test_other_programs_know_the_file(bucket, tmp_path):
    """Its type, its variables, and the parts into which h5unjam divides it."""
    matlab = tmp_path / "a.mat"
    with h5py.File(matlab, "w", userblock_size=512) as f:
        f["x"] = np.arange(6.0).reshape(2, 3)
        f["x"].attrs["MATLAB_class"] = np.bytes_("double")
    with open(matlab, "r+b") as f:
        f.write(MATLAB)
    run(HSIMAGE, "-b", bucket, "import", matlab, NAME, check=True)
    with Mount(bucket, tmp_path) as m:
        shown = m.file(NAME)
        assert "Matlab v7.3 mat-file" in run("file", shown).stdout
        assert run("cmp", "-n", "512", matlab, shown).returncode == 0
        found = run("matdump", "-f", "whos", shown)
        assert found.returncode == 0 and "3x2" in found.stdout, found.stderr
        assert found.stdout == run("matdump", "-f", "whos", matlab).stdout
        run("h5unjam", "-i", shown, "-u", tmp_path / "block", "-o", tmp_path / "rest.h5",
            check=True)
    assert block_of(tmp_path / "block", 512).rstrip(b"\0") == MATLAB.rstrip(b"\0")
    assert run("h5diff", matlab, tmp_path / "rest.h5").returncode == 0


def test_a_link(bucket, tmp_path):
    """The data stay in the file; the block is copied."""
    source = write(bucket / "a.mat", *BLOCKS["matlab"])
    run(HSIMAGE, "-b", bucket, "link", "a.mat", NAME, check=True)
    with Mount(bucket, tmp_path) as m:
        assert filediff.differences(source, m.file(NAME)) == []


@pytest.mark.parametrize("which", ("matlab", "random"))
def test_cp_into_a_mount(bucket, tmp_path, which):
    source = write(tmp_path / "a.mat", *BLOCKS[which])
    with rwmounts.RwMount(bucket, tmp_path) as m:
        shutil.copy(source, m.file(NAME))
        m.released()
        assert filediff.differences(source, m.file(NAME)) == []
    assert os.path.exists(bucket / NAME / ".domain.json")
    assert rwmounts.check(bucket).returncode == 0
    assert bucketstate.left_over(bucket) == []


# ---- changes in place ----

def in_both(m, disk, change):
    for path in disk, m.file(NAME):
        change(path)
    m.released()
    assert filediff.differences(disk, m.file(NAME)) == [], m.log()


def change_data(path):
    with h5py.File(path, "r+") as f:
        n = len(f)
        f["x"][n:7], f["c"][3, 4], f["s"][1] = -n, n, "a longer text" * n
        f["c"].resize((100 + 10 * n, 100))
        f[f"new{n}"], f.attrs["n"] = [1, 2, 3], n
        f["x"].attrs.pop("MATLAB_class", None)


def change_block(path):
    with open(path, "r+b") as f:
        f.seek(100)
        f.write(b"other text")


@pytest.mark.parametrize("which", ("matlab", "text", "random"))
def test_changes(bucket, tmp_path, which):
    """Of the data, of the block, of the data again; with and without the block beneath."""
    disk = write(tmp_path / "disk.mat", *BLOCKS[which])
    run(HSIMAGE, "-b", bucket, "import", disk, NAME, check=True)
    with rwmounts.RwMount(bucket, tmp_path, "metadata_ttl=0") as m:
        for change in change_data, change_block, change_block, change_data:
            in_both(m, disk, change)
    with Mount(bucket, tmp_path) as m:
        assert filediff.differences(disk, m.file(NAME)) == []
    assert hsds_validator.check_domain(os.fspath(bucket), NAME, strict=True) == []
    assert rwmounts.check(bucket).returncode == 0
    assert bucketstate.left_over(bucket) == []     # the earlier block was deleted


def test_requests_of_a_change_of_the_block(bucket, tmp_path):
    """The document of the root group is put, and nothing else. close(2) waits for it."""
    disk = write(tmp_path / "disk.mat", *BLOCKS["matlab"])
    run(HSIMAGE, "-b", bucket, "import", disk, NAME, check=True)
    before = bucketstate.State(bucket)
    with rwmounts.RwMount(bucket, tmp_path) as m:
        change_block(m.file(NAME))
        after = bucketstate.State(bucket)
        puts, gone = after.since(before)
    assert [os.path.basename(key) for key in puts] == [".group.json"] and not gone
    document, = (json.loads(after.documents[key]) for key in puts)
    assert document["hsmount"]["userBlock"]["size"] == 512


@pytest.mark.parametrize("sizes", ((0, 512), (512, 0), (512, 2048), (8192, 1024)))
def test_another_size(bucket, tmp_path, sizes):
    """h5jam and h5unjam move all of the file."""
    disk, block = tmp_path / "disk.mat", tmp_path / "block"
    write(disk, sizes[0], b"before" * 2000)
    block.write_bytes(b"after".ljust(sizes[1], b"."))
    run(HSIMAGE, "-b", bucket, "import", disk, NAME, check=True)

    def jam(path):
        work = tmp_path / "work.h5"
        run("h5unjam", "-i", path, "-o", tmp_path / "bare.h5", "--delete") if sizes[0] else \
            shutil.copy(path, tmp_path / "bare.h5")
        if sizes[1]:
            run("h5jam", "-i", tmp_path / "bare.h5", "-u", block, "-o", work, check=True)
        else:
            shutil.move(tmp_path / "bare.h5", work)
        with open(work, "rb") as f, open(path, "r+b") as out:     # in place
            out.write(f.read())
            out.truncate()

    def write_more(path):
        with h5py.File(path, "r+") as f:
            f["x"][:10] = 7
            f["c"][50:, 60:] = 8
    with rwmounts.RwMount(bucket, tmp_path, "metadata_ttl=0") as m:
        for change in jam, write_more, change_data:
            in_both(m, disk, change)
    with Mount(bucket, tmp_path) as m:
        assert filediff.differences(disk, m.file(NAME)) == []
    assert rwmounts.check(bucket).returncode == 0


def test_a_killed_program(bucket, matlab, tmp_path):
    """libhdf5 marks the superblock behind the block, so the change is not committed."""
    before = bucketstate.State(bucket)
    with rwmounts.RwMount(bucket, tmp_path) as m:
        with Python(m.file(NAME)) as p:
            assert p("f = h5py.File(path, 'r+')") == "ok"
            assert p("f['x'][:] = -1; f.flush()") == "ok"
            p.kill()
        assert mounts.wait_for(lambda: m.left() == 1), m.log()
        assert bucketstate.State(bucket).digest == before.digest
    left, = json.loads("[" + run(HSIMAGE, "recover", "list", "--json", "--journal",
                                 m.journal).stdout.replace("}\n{", "},{") + "]")
    def recover(command, *more):
        return run(HSIMAGE, "recover", command, left["id"], *more, "--journal", m.journal,
                   check=True).stdout
    assert "the library had not closed the file" in recover("show")
    recover("export", tmp_path / "out.mat")
    assert filediff.user_block(tmp_path / "out.mat") == MATLAB.ljust(512, b"\0")
    recover("commit", "--yes")
    with Mount(bucket, tmp_path) as m, h5py.File(m.file(NAME), "r") as f:
        assert f.userblock_size == 512 and (f["x"][()] == -1).all()
    assert block_of(tmp_path / "out.mat", 512) == block_of(matlab, 512)


def test_an_old_library(bucket, matlab, tmp_path):
    """It does not mark the file: the last close commits, and not an earlier one."""
    with open(matlab, "rb") as f:
        made = recorder.Recorder(f.read())
    with rwmounts.RwMount(bucket, tmp_path, "metadata_ttl=0") as m:
        with open(m.file(NAME), "rb") as f:
            made = recorder.Recorder(f.read())
        change_data(made)
        assert made.marks() == {0}
        before = bucketstate.State(bucket).digest
        fd = os.open(m.file(NAME), os.O_RDWR)
        recorder.replay(fd, made.log)
        os.close(os.dup(fd))
        assert bucketstate.State(bucket).digest == before
        os.close(fd)
        m.released()
        (tmp_path / "made.mat").write_bytes(made.getvalue())
        assert filediff.differences(tmp_path / "made.mat", m.file(NAME)) == []


# ---- what is refused, and damage ----

def test_a_block_that_is_too_large(bucket, tmp_path):
    source = write(tmp_path / "a.mat", 128 << 20, b"large")
    done = run(HSIMAGE, "-b", bucket, "import", source, NAME)
    assert done.returncode == 1
    assert "a user block of 134217728 bytes; the limit is 67108864 bytes" in done.stderr
    done = run(HSIMAGE, "-b", bucket, "import", "--skip-unsupported", source, NAME, check=True)
    assert "a user block of 134217728 bytes" in done.stderr and "left out" in done.stderr
    with Mount(bucket, tmp_path) as m, h5py.File(m.file(NAME), "r") as f:
        assert f.userblock_size == 0 and f["x"][4] == 4


def document(bucket):
    name, = (os.path.join(at, ".group.json") for at, _, names in os.walk(bucket / "db")
             if ".group.json" in names)
    return name


DAMAGE = {
    "size": {"size": 500, "value": ""}, "large": {"size": 1 << 40, "value": ""},
    "text": {"size": 512, "value": "???"}, "long": {"size": 512, "value": "QUFB" * 300},
    "nothing": {"size": 512}, "name": {"size": 512, "object": "../../x"}, "list": [1],
}


@pytest.mark.parametrize("which", DAMAGE)
def test_damage_of_the_document(bucket, matlab, tmp_path, which):
    """The data can be read nevertheless, and `check` says what is wrong."""
    path = document(bucket)
    with open(path, encoding="ascii") as f:
        content = json.load(f)
    content["hsmount"]["userBlock"] = DAMAGE[which]
    with open(path, "w", encoding="ascii") as f:
        json.dump(content, f)
    with Mount(bucket, tmp_path) as m, h5py.File(m.file(NAME), "r") as f:
        assert f.userblock_size == 0 and f["x"][4] == 4
    done = rwmounts.check(bucket)
    assert done.returncode == 1 and "userBlock" in done.stdout, done.stdout


@pytest.mark.parametrize("damage", ("missing", "other bytes", "too long"))
def test_damage_of_the_object(bucket, tmp_path, damage):
    """The block is shown as zeros, so all else stays where it is."""
    source = write(tmp_path / "a.mat", *BLOCKS["random"])
    run(HSIMAGE, "-b", bucket, "import", source, NAME, check=True)
    folder, (name,) = os.path.dirname(document(bucket)), objects(bucket)
    path = os.path.join(folder, name)
    if damage == "missing":
        os.unlink(path)
    else:
        with open(path, "ab" if damage == "too long" else "r+b") as f:
            f.write(b"damage")
    with Mount(bucket, tmp_path) as m:
        assert filediff.user_block(m.file(NAME)) == bytes(1 << 20)
        with h5py.File(m.file(NAME), "r") as f:
            assert f["x"][4] == 4
        assert "the user block is shown as zeros" in m.log()
    done = rwmounts.check(bucket)
    assert done.returncode == 1 and "the user block is shown as zeros" in done.stdout, done.stdout


@pytest.mark.parametrize("whole", (False, True))
def test_a_write_over_a_damaged_block(bucket, tmp_path, whole):
    """What cannot be read is not replaced by zeros, unless all of it is written."""
    size, text = BLOCKS["random"]
    source = write(tmp_path / "a.mat", size, text)
    run(HSIMAGE, "-b", bucket, "import", source, NAME, check=True)
    name, = objects(bucket)
    with open(os.path.join(os.path.dirname(document(bucket)), name), "ab") as f:
        f.write(b"more")
    before = bucketstate.State(bucket)
    with rwmounts.RwMount(bucket, tmp_path, "metadata_ttl=0") as m:
        fd = os.open(m.file(NAME), os.O_RDWR)
        os.pwrite(fd, text if whole else b"AB", 0)
        if whole:
            os.close(fd)
            assert filediff.differences(source, m.file(NAME)) == []
        else:
            with pytest.raises(OSError):
                os.close(fd)
            assert "the user block of the domain cannot be read" in m.log()
            assert bucketstate.State(bucket).digest == before.digest
    if whole:
        assert name in objects(bucket)      # for a person to look at


def test_a_block_that_cannot_be_read(bucket, tmp_path):
    """"Could not ask" is no absence: the open fails."""
    source = write(tmp_path / "a.mat", *BLOCKS["random"])
    run(HSIMAGE, "-b", bucket, "import", source, NAME, check=True)
    with Mount(bucket, tmp_path, f"debug_fault=fail:1+:EACCES@*{bucketstate.USER_BLOCK}*") as m:
        with pytest.raises(PermissionError):
            block_of(m.file(NAME), 10)


