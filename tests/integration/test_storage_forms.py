# SPDX-License-Identifier: Apache-2.0
"""Each form in which HDF5 stores raw data (compact, contiguous, chunked, with chunks missing,
extended, compressed, in external files) is imported and linked. libhdf5 compares the domain with
the file. Files of an external file list are found below one directory only."""
import json
import os
import shutil

import h5py
import numpy as np
import pytest
from h5py import h5d, h5f, h5p, h5s, h5t

import hsds_validator
from mounts import HSIMAGE, run

FILE, DOMAIN = "raw/file.h5", "home/file.h5"
N = 1000
VALUES = np.arange(N, dtype="<i4") * 3 - 7


@pytest.fixture
def bucket(bucket):
    (bucket / "raw").mkdir()
    return bucket


def external(f, name, pieces, shape=(N,), maxshape=None, fill=None):
    """A dataset in external files: pieces of (name, offset, size)."""
    dcpl = h5p.create(h5p.DATASET_CREATE)
    for piece in pieces:
        dcpl.set_external(*piece)
    if fill is not None:
        dcpl.set_fill_value(np.array(fill, "<i4"))
    space = h5s.create_simple(shape, maxshape)
    return h5d.create(f.id, name, h5t.STD_I32LE, space, dcpl)


def compact(f, files):
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_layout(h5d.COMPACT)
    h5py.Dataset(h5d.create(f.id, b"data", h5t.STD_I32LE, h5s.create_simple((N,)), dcpl))[...] = \
        VALUES


def contiguous(f, files):
    f["data"] = VALUES


def chunked(f, files):
    f.create_dataset("data", data=VALUES, chunks=(64,))


def sparse(f, files):
    ds = f.create_dataset("data", (1 << 20,), "<i4", chunks=(1000,), fillvalue=-1)
    for start in (0, 1 << 18, (1 << 20) - N):
        ds[start:start + N] = VALUES


def dynamic(f, files):
    ds = f.create_dataset("data", (0, 10), "<i4", chunks=(7, 10), maxshape=(None, 20))
    for rows in (N // 20, N // 10):
        ds.resize((rows, 10))
        ds[...] = VALUES[:rows * 10].reshape(rows, 10)


def compressed(f, files):
    f.create_dataset("data", data=VALUES, chunks=(100,), compression="gzip", shuffle=True,
                     fletcher32=True)


def external_list(f, files):
    """Parts of several files in another order, and the last one without a limit."""
    raw = VALUES.tobytes()
    (files / "below").mkdir()
    (files / "a").write_bytes(b"header" + raw[:900] + b"rest of the file")
    (files / "below" / "b").write_bytes(raw[900:1300])
    (files / "c").write_bytes(bytes(100) + raw[1300:] + b"more than is needed")
    external(f, b"data", [(b"a", 6, 900), (b"below/b", 0, 400), (b"c", 100, h5f.UNLIMITED)])


FORMS = (compact, contiguous, chunked, sparse, dynamic, compressed, external_list)


def make(bucket, form):
    """The file in the bucket; beside it, and nowhere else, a directory with its external files."""
    files = bucket.parent / "files"
    files.mkdir()
    with h5py.File(bucket / FILE, "w") as f:
        form(f, files)
    return bucket / FILE, files


def store(bucket, verb, *options, check=True):
    source = FILE if verb == "link" else bucket / FILE
    return run(HSIMAGE, "-b", bucket, verb, *options, source, DOMAIN, check=check, timeout=60)


def export(bucket, tmp_path):
    run(HSIMAGE, "-b", bucket, "export", "--force", DOMAIN, tmp_path / "out.h5", check=True)
    return tmp_path / "out.h5"


def layout_of(bucket):
    """The class of the layout of the only dataset, and the number of its chunk objects."""
    documents = sorted(bucket.glob("db/*/d/*/.dataset.json"))
    assert documents
    properties = json.loads(documents[0].read_text())["creationProperties"]
    chunks = [p for p in documents[0].parent.iterdir() if p.name[0] != "."]
    return properties["layout"]["class"], len(chunks)


@pytest.mark.parametrize("verb", ("import", "link"))
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_form(bucket, tmp_path, form, verb):
    source, files = make(bucket, form)
    store(bucket, verb, *(["--allow-external", files] if form is external_list else []))
    assert hsds_validator.check_domain(os.fspath(bucket), DOMAIN, strict=True) == []
    layout, chunks = layout_of(bucket)
    linked = verb == "link" and form not in (compact, external_list)
    assert layout.endswith("_REF") == linked and (chunks == 0) == linked
    # libhdf5 looks for external files in the working directory.
    done = run("h5diff", "-v", source, export(bucket, tmp_path), cwd=files)
    assert done.returncode == 0 and "0 differences" in done.stdout, done.stdout
    assert run(HSIMAGE, "-b", bucket, "check", "--all", DOMAIN).returncode == 0


# ---- external files ----

@pytest.mark.parametrize("fill", (None, 0, 9))
def test_a_file_that_is_too_short(bucket, tmp_path, fill):
    """What the file does not have is zero, not the fill value: so libhdf5 reads it."""
    def short(f, files):
        (files / "a").write_bytes(VALUES.tobytes()[:1001])
        (files / "empty").write_bytes(b"")
        external(f, b"data", [(b"a", 1, 2000), (b"empty", 5, 2000)], fill=fill)
        external(f, b"grown", [(b"a", 4, h5f.UNLIMITED)], (3, 2), (h5s.UNLIMITED, 2)) \
            .set_extent((200, 2))
    source, files = make(bucket, short)
    store(bucket, "import", "--allow-external", files)
    out = export(bucket, tmp_path)
    assert run("h5diff", source, out, cwd=files).returncode == 0
    with h5py.File(out) as f:
        assert f["data"][-1] == 0 and f["data"][1] != 0 and f["grown"][0, 0] == VALUES[1]


def test_an_absolute_name_below_the_directory(bucket, tmp_path):
    def absolute(f, files):
        (files / "a").write_bytes(VALUES.tobytes())
        external(f, b"data", [(os.fsencode(files.resolve() / "a"), 0, 4 * N)])
    source, files = make(bucket, absolute)
    store(bucket, "import", "--allow-external", files)
    with h5py.File(export(bucket, tmp_path)) as f:
        assert (f["data"][...] == VALUES).all()


@pytest.mark.parametrize("verb", ("import", "link"))
def test_without_the_option(bucket, verb):
    make(bucket, external_list)
    done = store(bucket, verb, check=False)
    assert done.returncode == 1
    assert "hsimage: /data: raw data in external files, which --allow-external reads" in done.stderr
    assert not list(bucket.glob("db/*/*"))


def name_of(tmp_path, kind):
    """A name of an external file that must not be read, and a word of the message."""
    (tmp_path / "secret").write_bytes(bytes(4 * N))
    files = tmp_path / "files"
    if kind == "parent":
        return b"../secret", "leads out of"
    if kind == "parent in the middle":
        (files / "below").mkdir()
        return b"below/../../files/below/../../secret", "leads out of"
    if kind == "absolute":
        return os.fsencode(tmp_path / "secret"), "leads out of"
    if kind == "beside":
        shutil.copytree(files, tmp_path / "files2")
        return os.fsencode(tmp_path / "files2" / "x"), "leads out of"
    if kind == "link":
        (files / "x").symlink_to("../secret")
        return b"x", "leads out of"
    if kind == "absolute link":
        (files / "x").symlink_to(tmp_path / "secret")
        return b"x", "leads out of"
    if kind == "directory":
        (files / "x").mkdir()
        return b"x", "not a regular file"
    if kind == "pipe":
        os.mkfifo(files / "x")
        return b"x", "not a regular file"
    return b"x", "does not exist"


@pytest.mark.parametrize("kind", ("parent", "parent in the middle", "absolute", "beside", "link",
                                  "absolute link", "directory", "pipe", "missing"))
def test_a_file_that_is_not_below_the_directory(bucket, tmp_path, kind):
    why = []

    def outside(f, files):
        name, word = name_of(tmp_path, kind)
        why.append(word)
        external(f, b"data", [(name, 0, 4 * N)])
        f["fine"] = VALUES
    _, files = make(bucket, outside)
    done = store(bucket, "import", "--allow-external", files, check=False)
    lines = [line for line in done.stderr.splitlines() if "/data: " in line]
    assert done.returncode == 1 and len(lines) == 1 and why[0] in lines[0], done.stderr
    done = store(bucket, "import", "--allow-external", files, "--skip-unsupported")
    with h5py.File(export(bucket, tmp_path)) as f:
        assert list(f) == ["fine"]


def test_pieces_that_are_too_few_or_too_large(bucket, tmp_path):
    """libhdf5 refuses to make the first one, so the size of its dataspace is changed afterwards."""
    def short(f, files):
        (files / "a").write_bytes(b"x")
        external(f, b"data", [(b"a", 0, h5f.UNLIMITED)], (1 << 40,))
    _, files = make(bucket, short)
    done = store(bucket, "import", "--allow-external", files, check=False)
    assert done.returncode == 1 and "more than 1 GiB of the raw data is missing" in done.stderr
    with h5py.File(bucket / FILE, "w") as f:
        external(f, b"data", [(b"a", 0, 77 * 4)], (77,))
    raw = (bucket / FILE).read_bytes()
    size = (77).to_bytes(8, "little")
    assert raw.count(size) >= 1
    (bucket / FILE).write_bytes(raw.replace(size, (78).to_bytes(8, "little")))
    done = store(bucket, "import", "--allow-external", files, check=False)
    assert done.returncode == 1 and "room for 308 bytes of data instead of 312" in done.stderr


def test_usage(bucket, tmp_path):
    make(bucket, contiguous)
    done = store(bucket, "import", "--allow-external", tmp_path / "none", check=False)
    assert done.returncode == 1 and "--allow-external: " in done.stderr
    done = run(HSIMAGE, "import", "--abort", "--allow-external", tmp_path, bucket / DOMAIN)
    assert done.returncode == 2
