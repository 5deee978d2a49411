# SPDX-License-Identifier: Apache-2.0
"""hsimage import: files that become domains in a directory and in S3. libhdf5's tools, ncdump and
the oracle judge what is stored; the keys of the bucket show what an import leaves behind."""
import contextlib
import json
import os
import re
import signal
import subprocess
import time

import h5py
import numpy as np
import pytest

import compare
import filediff
import gateway
import mkbucket
import mounts
import oracle
import s3client
from gateway import needs_gateway
from mounts import HSIMAGE, PATIENCE, run, wait_for
from sampling import sampled

RECORD = re.compile(r"\bimport\b")


# ---- files ----

def layouts(f):
    n = np.arange(60000, dtype="<i4").reshape(200, 300)
    f.create_dataset("contiguous", data=n)
    f.create_dataset("chunked", data=n, chunks=(64, 70), maxshape=(None, 300))
    f.create_dataset("both", data=n, chunks=(64, 70), maxshape=(None, None))
    f.create_dataset("columns", data=n, chunks=(64, 70), maxshape=(200, None))
    sparse = f.create_dataset("sparse", (1000, 1000), "<f8", chunks=(100, 100), fillvalue=-1)
    sparse[250, 730] = 5
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_layout(h5py.h5d.COMPACT)
    space = h5py.h5s.create_simple((10,))
    h5py.h5d.create(f.id, b"compact", h5py.h5t.STD_I16BE, space, plist).write(
        h5py.h5s.ALL, h5py.h5s.ALL, np.arange(10, dtype=">i2"))
    f.create_dataset("early", (50,), "<i4", chunks=(7,))
    f.create_dataset("empty", (0, 4), "<i4", maxshape=(None, 4))
    f["null"] = h5py.Empty("<f4")
    f["scalar"] = 2.5


def filters(f):
    n = (np.arange(40000) % 1000).astype("<i4")
    f.create_dataset("gzip", data=n, chunks=(3000,), compression="gzip")
    f.create_dataset("shuffled", data=n, chunks=(3000,), compression="gzip", shuffle=True)
    f.create_dataset("summed", data=n, chunks=(3000,), compression="gzip", shuffle=True,
                     fletcher32=True)
    f.create_dataset("sum", data=n, chunks=(3000,), fletcher32=True)
    f.create_dataset("shuffle", data=n, chunks=(3000,), shuffle=True)
    f.create_dataset("scaled", data=n, chunks=(3000,), scaleoffset=0)
    f.create_dataset("zeros", data=np.zeros(40000, "<i4"), chunks=(3000,), compression="gzip")


def types(f):
    text = h5py.string_dtype()
    f["text"] = np.array(["a", "", "long " * 100, "ü"], dtype=object)
    f.create_dataset("fixed", data=np.array([b"ab", b"cde"], dtype="S5"))
    rows = f.create_dataset("rows", (5,), h5py.vlen_dtype("<i4"))
    for i in range(5):
        rows[i] = np.arange(i)
    f["bool"] = np.array([True, False])
    f["enum"] = np.array([1, 2, 1], dtype=h5py.enum_dtype({"ONE": 1, "TWO": 2}, "<i2"))
    record = np.dtype([("n", "<i4"), ("x", ">f8"), ("s", "S3"), ("a", "<i2", (2, 3))])
    f["record"] = np.zeros(4, record)
    f["complex"] = np.array([1 + 2j])
    mixed = f.create_dataset("mixed", (3,), np.dtype([("n", "<i4"), ("s", text)]), chunks=(2,))
    mixed[0] = (1, "one")
    f["named"] = np.dtype("<i8")
    f.create_dataset("of_named", (3,), f["named"])
    refs = f.create_dataset("refs", (3,), h5py.ref_dtype)
    refs[0], refs[1] = f["record"].ref, f.ref
    f["opaque"] = np.array([b"\x00\x01", b"\x02\x03"], dtype="V2")
    f["half"] = np.array([1.5, -2], dtype="<f2")
    f["nan"] = np.array([np.nan, np.inf, -0.0])
    odd = np.array([0, 0x7ff8000000000000, 0xfff8000000000000, 0xfff8000000000007], "<u8")
    f.create_dataset("odd_nan", (2,), "<f8", fillvalue=odd.view("<f8")[2])
    f["odd_nan"].attrs["all"] = odd.view("<f8")


def groups(f):
    f.create_dataset("data", data=np.arange(10))
    deep = f.create_group("a/b/c/d")
    deep["up"] = f["a"]
    deep["data"] = f["data"]
    f["soft"] = h5py.SoftLink("/a/b")
    f["dangling"] = h5py.SoftLink("/nowhere")
    f["external"] = h5py.ExternalLink("other.h5", "/x")
    many = f.create_group("many", track_order=True)
    for i in range(300):
        many.create_group(f"g{299 - i:03}")
    for i in range(40):
        f.attrs[f"attribute {i:02}"] = np.full(i, i)
    f.attrs["big"] = np.arange(7000)
    f.attrs["text"] = "words"
    f.attrs["list"] = ["one", "two"]
    f.attrs["ref"] = f["data"].ref
    f.attrs["null"] = h5py.Empty("<i4")


MAKERS = {maker.__name__: maker for maker in (layouts, filters, types, groups)}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """One file for each maker and each range of formats."""
    directory = tmp_path_factory.mktemp("files")
    made = {}
    for name, maker in MAKERS.items():
        for version in ("earliest", "latest"):
            path = directory / f"{name}-{version}.h5"
            with h5py.File(path, "w", libver=version) as f:
                maker(f)
            made[name, version] = path
    return made


@pytest.fixture
def bucket(tmp_path):
    """A bucket with a domain and the documents of two folders."""
    root = tmp_path / "bucket"
    with mkbucket.Maker(root) as made:
        made.domain("home/ann/there.h5")
        made.folder("home")
        made.folder("home/ann")
    return root


def keys(root):
    return sorted(os.path.relpath(os.path.join(at, name), root)
                  for at, _, names in os.walk(root) for name in names)


def import_file(*arguments, code=0, **more):
    """Standard error of hsimage import."""
    done = run(HSIMAGE, "import", *arguments, **more)
    assert done.returncode == code, done.stderr
    assert not done.stdout
    return done.stderr


def export(source, path, **more):
    run(HSIMAGE, "export", "--force", source, path, check=True, **more)
    return path


def assert_equal_files(one, other):
    """h5diff exits 2 if it has no decoder for a filter of one file; it compares all the rest."""
    done = run("h5diff", "-v", one, other)
    equal = set(re.findall(r"^(\d+) differences found", done.stdout, re.M)) == {"0"}
    unread = all("filter is not available" in line for line in done.stderr.splitlines())
    assert equal and unread and done.returncode in (0, 2), done.stdout + done.stderr


# ---- content ----

@pytest.mark.sampled(by="name")
@pytest.mark.parametrize("version", ("earliest", "latest"))
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("options", [(), ("--min-chunk", "64K"), ("-j", "1")], ids=" ".join)
def test_round_trip(files, bucket, tmp_path, name, version, options):
    source = files[name, version]
    assert import_file(*options, source, bucket / "home/ann/new.h5") == ""
    exported = export(bucket / "home/ann/new.h5", tmp_path / "out.h5")
    assert_equal_files(source, exported)
    assert compare.differences(oracle.Bucket(str(bucket)), "home/ann/new.h5", exported) == []
    assert not [k for k in keys(bucket) if RECORD.search(k)]


def test_sources_of_the_collection(sample, bucket, tmp_path):
    """The files from which the service's loaders made the collection."""
    sources = sorted({e.source for e in sample.entries() if e.source})
    assert len(sources) > 20
    for i, source in enumerate(sampled(sources)):
        done = run(HSIMAGE, "import", "--skip-unsupported", source, bucket / f"home/{i}.h5")
        assert done.returncode == 0, (source, done.stderr)
        exported = export(bucket / f"home/{i}.h5", tmp_path / "out.h5")
        if done.stderr == "":
            assert filediff.differences(source, exported) == [], source
        domain = oracle.Bucket(str(bucket)).domain(f"home/{i}.h5")
        # The oracle does not know the types that the service's JSON cannot say.
        if not any("hsmount" in json.dumps(o.doc) for o in domain.objects.values()):
            assert compare.differences(oracle.Bucket(str(bucket)), f"home/{i}.h5", exported) == []


def test_lzf(bucket, tmp_path):
    """h5diff has no decoder for it."""
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("d", data=np.arange(40000) % 100, chunks=(3000,), compression="lzf")
    import_file(path, bucket / "home/ann/x.h5")
    with h5py.File(export(bucket / "home/ann/x.h5", tmp_path / "out.h5")) as f:
        assert np.array_equal(f["d"][:], np.arange(40000) % 100)


def test_netcdf(bucket, tmp_path):
    cdl = tmp_path / "x.cdl"
    cdl.write_text("netcdf x { dimensions: t = unlimited ; y = 3 ; variables: float v(t, y) ; "
                   'v:units = "K" ; double t(t) ; string s(y) ; data: t = 1, 2 ; '
                   'v = 1, 2, 3, 4, 5, 6 ; s = "a", "", "c" ; }')
    run("ncgen", "-k", "nc4", "-o", tmp_path / "x.nc", cdl, check=True)
    import_file(tmp_path / "x.nc", f"{bucket}/home/ann/")
    os.mkdir(tmp_path / "out")
    exported = export(bucket / "home/ann/x.nc", tmp_path / "out" / "x.nc")
    assert run("ncdump", exported, check=True).stdout == \
        run("ncdump", tmp_path / "x.nc", check=True).stdout


def test_what_is_put(bucket, tmp_path):
    """Chunks of fill values are not stored, and deflated ones are stored as they are."""
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("zeros", data=np.zeros(1000), chunks=(100,))
        d = f.create_dataset("d", data=np.random.default_rng(1).integers(0, 9, 4000),
                             chunks=(1000,), compression="gzip", shuffle=True, fletcher32=True)
        raw = [d.id.read_direct_chunk((1000 * i,))[1][:-4] for i in range(4)]
    before = keys(bucket)
    import_file(path, bucket / "home/ann/x.h5")
    new = [k for k in keys(bucket) if k not in before]
    chunks = [k for k in new if not k.endswith(".json")]
    assert len(new) == 4 + 3 + 2    # with the summary and the document of the domain
    assert [(bucket / k).read_bytes() for k in chunks] == raw


def test_min_chunk_and_advice(bucket, tmp_path):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("d", data=np.arange(100001, dtype="u1"), chunks=(1,))
    text = import_file("--min-chunk", "1K", path, bucket / "home/ann/x.h5")
    assert text == ""
    chunks = [k for k in keys(bucket) if re.search(r"/d/.*/\d+$", k)]
    assert len(chunks) == 98
    exported = export(bucket / "home/ann/x.h5", tmp_path / "out.h5")
    assert_equal_files(path, exported)


def test_advice(bucket, tmp_path):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("d", data=np.zeros(100001, dtype="u1"), chunks=(1,))
    text = import_file(path, bucket / "home/ann/x.h5")
    assert text == ("hsimage: 100001 chunks are smaller than 64 KiB, and each becomes an object; "
                    "--min-chunk=1M joins neighbouring chunks\n")


# ---- the target ----

def test_names(files, bucket):
    source = files["groups", "latest"]
    import_file(source, bucket / "home/ann")
    assert (bucket / "home/ann/groups-latest.h5/.domain.json").exists()
    import_file(source, f"{bucket}/home/ann/new/")
    assert (bucket / "home/ann/new/groups-latest.h5/.domain.json").exists()
    assert (bucket / "home/ann/new/.domain.json").exists()
    import_file(source, bucket / "home/ann/bare")
    assert (bucket / "home/ann/bare/.domain.json").exists()
    import_file("-b", bucket, source, "home/top.h5")
    for target, words in (("home/ann", "groups-latest.h5: the domain exists"),
                          ("home/ann/there.h5", "the domain exists; to replace it"),
                          ("home/ann/bare.h5", "home/ann/bare: the domain exists"),
                          ("home/ann/there.h5/x", "is a domain, not a folder"),
                          ("db/x.h5", "part of the bucket's storage")):
        before = keys(bucket)
        text = import_file("-b", bucket, source, target, code=1)
        assert words in text and text.count("\n") == 1, text
        assert keys(bucket) == before


def test_owner(files, bucket):
    source = files["groups", "latest"]
    env = {k: v for k, v in os.environ.items() if k != "HS_USERNAME"}

    def owner(name):
        text = (bucket / f"home/ann/{name}/.domain.json").read_text()
        return re.search(r'"owner": "([^"]*)"', text).group(1)

    import_file(source, bucket / "home/ann/1.h5", env=env)
    import_file(source, bucket / "home/ann/2.h5", env=dict(env, HS_USERNAME="sam"))
    import_file("--owner", "eve", source, bucket / "home/ann/3.h5",
                env=dict(env, HS_USERNAME="sam"))
    folder = re.search(r'"owner": "([^"]*)"', (bucket / "home/ann/.domain.json").read_text())
    assert [owner("1.h5"), owner("2.h5"), owner("3.h5")] == [folder.group(1), "sam", "eve"]


def test_replace(files, bucket, tmp_path):
    import_file(files["groups", "latest"], bucket / "home/ann/x.h5")
    before = keys(bucket)
    import_file("--replace", files["types", "latest"], bucket / "home/ann/x.h5")
    assert_equal_files(files["types", "latest"], export(bucket / "home/ann/x.h5",
                                                        tmp_path / "out.h5"))
    storage = {k.split("/")[1] for k in keys(bucket) if k.startswith("db/")}
    assert len(storage) == len({k.split("/")[1] for k in before if k.startswith("db/")})
    import_file("--replace", "--keep-storage", files["groups", "latest"], bucket / "home/ann/x.h5")
    assert len({k.split("/")[1] for k in keys(bucket) if k.startswith("db/")}) == len(storage) + 1


# ---- errors ----

def test_wrong_files(bucket, tmp_path):
    text = tmp_path / "x.txt"
    text.write_text("no HDF5\n" * 1000)
    cut = tmp_path / "cut.h5"
    with h5py.File(cut, "w") as f:
        f.create_dataset("d", data=np.arange(100000), chunks=(1000,))
    os.truncate(cut, os.path.getsize(cut) // 2)
    before = keys(bucket)
    for path, words in (("-", "standard input cannot be imported"),
                        (tmp_path, "is not a regular file"),
                        (tmp_path / "none.h5", "No such file or directory"),
                        (text, "x.txt"), (cut, "cut.h5")):
        out = import_file(path, bucket / "home/ann/new.h5", code=1)
        assert words in out, out
    assert keys(bucket) == before
    new = tmp_path / "new"
    (new / "db").mkdir(parents=True)
    for command in "import", "link":
        assert run(HSIMAGE, command, cut, new / "home/new.h5").returncode == 1
        assert list(new.rglob("*")) == [new / "db"]


def test_read_only_bucket(files, bucket, tmp_path):
    """The bucket is checked before the file is opened."""
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    unreadable = tmp_path / "unreadable.h5"
    unreadable.write_bytes(files["types", "latest"].read_bytes())
    unreadable.chmod(0)
    bucket.chmod(0o555)
    try:
        text = import_file(unreadable, bucket / "home/ann/new.h5", code=1)
    finally:
        bucket.chmod(0o755)
    assert "unreadable.h5" not in text and "Permission denied" in text


def test_refused_put(files, bucket):
    """Every put fails: the first one is that of the record, and no byte of the file is read."""
    before = keys(bucket)
    text = import_file("-o", "debug_fault=fail:2+:EACCES@*import*", files["types", "latest"],
                       bucket / "home/ann/new.h5", code=1)
    assert "import" in text
    assert keys(bucket) == before


def virtual(path):
    with h5py.File(path, "w", libver="latest") as f:
        f.create_dataset("real", data=np.arange(10))
        layout = h5py.VirtualLayout((10,), "<i8")
        layout[:] = h5py.VirtualSource(".", "real", (10,))
        f.create_virtual_dataset("virtual", layout)
        f["group/link"] = f["virtual"]


def test_unsupported(bucket, tmp_path):
    path = tmp_path / "x.h5"
    virtual(path)
    with h5py.File(path, "r+") as f:
        f.create_dataset("large", (1 << 28,), "i4", chunks=(1 << 27,))
    before = keys(bucket)
    text = import_file(path, bucket / "home/ann/x.h5", code=1)
    assert "2 parts of the file cannot be stored" in text and "--skip-unsupported" in text
    assert keys(bucket) == before
    text = import_file("--skip-unsupported", path, bucket / "home/ann/x.h5")
    assert "/virtual" in text and "/large" in text and text.count("\n") == 2
    with h5py.File(export(bucket / "home/ann/x.h5", tmp_path / "out.h5")) as f:
        assert list(f) == ["group", "real"] and list(f["group"]) == []


def test_usage(files, bucket):
    source = files["types", "latest"]
    for arguments, words in (((source,), "missing operand: BUCKET/DOMAIN"),
                             ((), "missing operand: FILE and BUCKET/DOMAIN"),
                             (("-j", "0", source, bucket), "-j 0: must be a number"),
                             (("--min-chunk", "1T", source, bucket), "at most 256M"),
                             (("--keep-storage", source, bucket), "option of --replace"),
                             (("--abort", "--replace", bucket), "--abort removes")):
        text = import_file(*arguments, code=2)
        assert words in text, text
    done = run(HSIMAGE, "ls", "--replace", bucket)
    assert done.returncode == 2 and "ls has no option of import" in done.stderr


# ---- interrupted imports ----

@pytest.fixture
def large(tmp_path):
    path = tmp_path / "large.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("d", data=np.random.default_rng(1).integers(0, 1 << 30, (400, 1000)),
                         chunks=(1, 1000))
        f.create_dataset("gzip", data=np.arange(100000), chunks=(1000,), compression="gzip")
    return path


@contextlib.contextmanager
def slow_import(source, target, *options):
    """An import whose puts take 20 ms each, one at a time."""
    program = subprocess.Popen(
        [HSIMAGE, "import", "-j", "1", "-o", "debug_fault=delay:1+:20", *options, source, target],
        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        preexec_fn=mounts.default_signals)
    try:
        yield program
    finally:
        program.kill()
        program.wait(PATIENCE)
        program.stderr.close()


def chunks_of(bucket):
    return [k for k in keys(bucket) if re.search(r"^db/.*/\d+(_\d+)*$", k)]


@pytest.mark.parametrize("number", (signal.SIGKILL, signal.SIGINT, signal.SIGTERM))
def test_interrupted(bucket, large, tmp_path, number):
    target = bucket / "home/ann/x.h5"
    before = keys(bucket)
    with slow_import(large, target) as program:
        assert wait_for(lambda: len(chunks_of(bucket)) > 10)
        program.send_signal(number)
        code = program.wait(PATIENCE)
        text = program.stderr.read()
    if number == signal.SIGKILL:
        assert code == -number
    else:
        assert code == 1
        assert "interrupted" in text and "--abort" in text
    assert not (target / ".domain.json").exists()
    assert run(HSIMAGE, "ls", bucket / "home/ann").stdout == "there.h5\n"
    assert len([k for k in keys(bucket) if RECORD.search(k)]) == 1
    there = len(chunks_of(bucket))
    assert 10 < there < 500
    # Another version of the file is not mixed into it.
    os.utime(large, (1, 1))
    assert "is not finished" in import_file(large, target, code=1)
    assert "removed" in import_file("--abort", target)
    assert keys(bucket) == before
    assert "no unfinished import" in import_file("--abort", target, code=1)


def test_continued(bucket, large, tmp_path):
    target = bucket / "home/ann/x.h5"
    with slow_import(large, target) as program:
        assert wait_for(lambda: len(chunks_of(bucket)) > 10)
    there = {k: os.stat(bucket / k).st_mtime_ns for k in chunks_of(bucket)}
    text = import_file(large, target)
    assert f"continued an interrupted import: {len(there)} chunks" in text
    assert {k: os.stat(bucket / k).st_mtime_ns for k in there} == there
    assert_equal_files(large, export(target, tmp_path / "out.h5"))
    assert not [k for k in keys(bucket) if RECORD.search(k)]


def test_changed_file(bucket, large):
    target = bucket / "home/ann/x.h5"
    with slow_import(large, target) as program:
        assert wait_for(lambda: len(chunks_of(bucket)) > 10)
        os.utime(large)
        program.send_signal(signal.SIGCONT)
        text = program.stderr.read()
        assert program.wait(PATIENCE) == 1
    assert "has changed during the import; remove what is stored with --abort" in text
    assert not (target / ".domain.json").exists()
    assert "is not finished, and cannot be continued" in import_file(large, target, code=1)


def test_damaged_chunk(bucket, tmp_path):
    """The import ends at a chunk that cannot be decoded, and so does the next one."""
    path, target = tmp_path / "x.h5", bucket / "home/ann/x.h5"
    with h5py.File(path, "w") as f:
        d = f.create_dataset("d", data=np.arange(4000), chunks=(1000,), fletcher32=True)
        at = d.id.get_chunk_info(2)
    with open(path, "r+b") as f:
        f.seek(at.byte_offset + 5)
        f.write(b"x")
    before = keys(bucket)
    for _ in range(2):
        text = import_file(path, target, code=1)
        assert "dataset /d: chunk (2)" in text and text.count("\n") == 1
        assert "the same command fails again as long as the file is like this" in text
    import_file("--abort", target)
    assert keys(bucket) == before


# ---- new buckets ----

def test_empty_directory(large, tmp_path):
    """An empty directory becomes a bucket, and remains one when an import is removed."""
    new, target = tmp_path / "new", tmp_path / "new/home/x.h5"
    new.mkdir()
    assert "no unfinished import" in import_file("--abort", target, code=1)
    import_file("-o", "debug_fault=fail:30+:EIO", large, target, code=1)
    unfinished = run(HSIMAGE, "check", new)
    assert unfinished.returncode == 1 and "\nunfinished: /home/x.h5: " in unfinished.stdout
    assert run(HSIMAGE, "check", target).stdout == unfinished.stdout
    import_file("--abort", target)
    assert [str(p.relative_to(new)) for p in new.rglob("*")] == ["db"]
    assert not run(HSIMAGE, "-b", new, "ls").stdout
    import_file(large, new / "home/large.h5")
    assert run(HSIMAGE, "check", new).stdout.startswith("sound: /home/large.h5: ")
    # Only an empty directory is taken for one that is meant to be a bucket.
    other = tmp_path / "other"
    other.mkdir()
    (other / "file").touch()
    for options, words in (((), "an empty directory for a new one"), (("-b", other), "is not a b")):
        text = import_file(*options, large, "x.h5" if options else other / "x.h5", code=1)
        assert words in text, text
    assert os.listdir(other) == ["file"]


# ---- S3 ----

def count_puts(text):
    return len(re.findall(r"\bput\b", text))


@pytest.fixture
def remote(client):
    name = f"import-{time.monotonic_ns()}"
    client.make_bucket(name)
    client.put(name, "db/x/.group.json", b"{}")
    return name


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.timeout(300)
@needs_gateway[1]
def test_s3(environment, remote, files, tmp_path, name):
    source = files[name, "latest"]
    text = gateway.hsimage(environment, "import", str(source), f"s3://{remote}/home/x.h5")
    assert text == b""
    out = tmp_path / "out.h5"
    gateway.hsimage(environment, "export", f"s3://{remote}/home/x.h5", str(out))
    assert_equal_files(source, out)
    text = gateway.hsimage(environment, "import", str(source), f"s3://{remote}/home/x.h5", code=1)
    assert "the domain exists" in text


def test_values_that_clients_cannot_read(bucket, tmp_path):
    """They are in base64, which h5pyd does not decode. An import and a check say how many."""
    with h5py.File(tmp_path / "x.h5", "w", libver="latest") as f:
        f.attrs["nan"] = np.array([-np.nan])
        f.attrs["text"] = "caf\u00e9"
        text = h5py.h5t.C_S1.copy()
        text.set_size(4)
        latin1 = h5py.h5a.create(f.id, b"latin1", text, h5py.h5s.create(h5py.h5s.SCALAR))
        latin1.write(np.array(b"\xe9", "S4"))
        f.attrs.create("large", np.arange(1 << 18, dtype="<f8"))
    done = run(HSIMAGE, "import", tmp_path / "x.h5", f"{bucket}/x.h5", check=True)
    assert "clients of HSDS cannot read the values of 2 attributes, which JSON cannot hold, " \
        "such as l" in done.stderr, done.stderr
    done = run(HSIMAGE, "check", f"{bucket}/x.h5", check=True)
    assert "clients of HSDS cannot read its value" in done.stdout
    assert "Such attributes: 2" in done.stdout
    docs = [json.loads(path.read_text()) for path in (bucket / "db").glob("*/.group.json")]
    coded = {name for doc in docs for name, a in doc["attributes"].items() if "encoding" in a}
    assert coded == {"latin1", "large"}


@pytest.mark.timeout(300)
@needs_gateway[1]
def test_s3_interrupted(environment, remote, large, tmp_path):
    target = f"s3://{remote}/home/x.h5"
    text = gateway.hsimage(environment, "import", "-o", "debug_fault=fail:200+:EACCES",
                           str(large), target, code=1)
    assert "the same command continues the import" in text
    assert "no such file" in gateway.hsimage(environment, "ls", f"s3://{remote}/home", code=1)
    gateway.hsimage(environment, "import", str(large), target)
    out = tmp_path / "out.h5"
    gateway.hsimage(environment, "export", target, str(out))
    assert_equal_files(large, out)


@pytest.mark.timeout(300)
@needs_gateway[1]
def test_s3_abort(environment, client, remote, large):
    target = f"s3://{remote}/home/x.h5"
    gateway.hsimage(environment, "import", "-o", "debug_fault=fail:200+:EACCES", str(large),
                    target, code=1)
    gateway.hsimage(environment, "import", "--abort", target)
    answer = client.request("GET", f"/{remote}", {"list-type": "2"})[1].decode()
    assert re.findall("<Key>(.*?)</Key>", answer) == ["db/x/.group.json"]
