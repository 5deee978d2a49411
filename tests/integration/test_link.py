# SPDX-License-Identifier: Apache-2.0
"""hsimage link: domains whose data stay in an HDF5 file of the bucket. The references and chunk
tables are read here, without the product, and compared with what libhdf5 says of the file: the
place and the stored bytes of each chunk. Requests and bytes are counted."""
import json
import os
import re
import shutil
import subprocess
import time
import zlib

import h5py
import numpy as np
import pytest

import filediff
import gateway
import h5make
import hsds_validator
import imports
import mkbucket
import oracle
import s3client
from gateway import needs_gateway
from mounts import HSIMAGE, PATIENCE, run, wait_for

FILE, DOMAIN = "raw/file.h5", "home/file.h5"
COUNTS = re.compile(r"hsimage: (\d+) datasets? refers? to (\d+) bytes of the file; "
                    r"(\d+) requests? read (\d+) bytes of it\n")
LINKED_MIN, LISTED_MAX = 512, 1000
RECORD = np.dtype([("offset", "<i8"), ("size", "<i4")])
MASKED = np.dtype([("offset", "<i8"), ("size", "<i4"), ("filter_mask", "<i4")])


@pytest.fixture
def bucket(bucket):
    (bucket / "raw").mkdir()
    return bucket


def link(bucket, *options, check=True, file=FILE, domain=DOMAIN):
    return run(HSIMAGE, "-b", bucket, "link", *options, file, domain, check=check, timeout=110)


def counts_of(done):
    return tuple(int(n) for n in COUNTS.search(done.stderr).groups())


# ---- a reader of references ----

def table_records(bucket, oid, shape):
    """The records of a chunk table, by its documents and chunk objects alone."""
    with open(bucket / oracle.document_key(oid), encoding="ascii") as f:
        doc = json.load(f)
    names = [field["name"] for field in doc["type"]["fields"]]
    dtype = MASKED if len(names) == 3 else RECORD
    assert names == list(dtype.names) and tuple(doc["shape"]["dims"]) == shape
    assert [field["type"]["base"] for field in doc["type"]["fields"]] == \
        ["H5T_STD_I64LE", "H5T_STD_I32LE", "H5T_STD_I32LE"][:len(names)]
    chunk = doc["layout"]["dims"]
    out = np.zeros(shape, dtype)
    for index in np.ndindex(*(-(-n // c) for n, c in zip(shape, chunk))):
        raw = (bucket / oracle.chunk_key(oid, index)).read_bytes()
        part = np.frombuffer(raw, dtype).reshape(chunk)
        window = tuple(slice(i * c, min((i + 1) * c, n))
                       for i, c, n in zip(index, chunk, shape))
        out[window] = part[tuple(slice(0, w.stop - w.start) for w in window)]
    return out


def references(bucket, dataset):
    """{coordinates: (offset, size, mask)} of a linked dataset; None: it has its data itself."""
    layout = dataset.properties.get("layout", {})
    if not layout.get("class", "").endswith(("_REF", "_REF_INDIRECT")):
        return None
    assert layout["file_uri"] == "bucket/" + FILE
    assert layout["hsmount"]["size"] == os.path.getsize(bucket / FILE)
    if layout["class"] == "H5D_CONTIGUOUS_REF":
        return {(): (layout["offset"], layout["size"], 0)}
    assert layout["dims"] == dataset.doc["layout"]["dims"]
    if layout["class"] == "H5D_CHUNKED_REF":
        return {tuple(int(i) for i in key.split("_")): (v[0], v[1], v[2] if len(v) > 2 else 0)
                for key, v in layout["chunks"].items()}
    grid = tuple(-(-n // c) for n, c in zip(dataset.shape, layout["dims"]))
    found = table_records(bucket, layout["chunk_table"], grid)
    masks = found["filter_mask"] if "filter_mask" in found.dtype.names else np.zeros(grid, int)
    return {index: (int(found[index]["offset"]), int(found[index]["size"]), int(masks[index]))
            for index in np.ndindex(*grid) if found[index]["size"]}


def check_chunks(raw, ds, refs):
    """The references of a chunked dataset are what libhdf5 says."""
    chunk = ds.chunks
    infos = [ds.id.get_chunk_info(i) for i in range(ds.id.get_num_chunks())]
    infos = [i for i in infos if all(o < n for o, n in zip(i.chunk_offset, ds.shape))]
    expected = {tuple(o // c for o, c in zip(i.chunk_offset, chunk)): i for i in infos}
    assert refs.keys() == expected.keys()
    for index, (offset, size, mask) in refs.items():
        info = expected[index]
        read_mask, stored = ds.id.read_direct_chunk(info.chunk_offset)
        assert size == info.size == len(stored)
        assert raw[offset:offset + size] == stored
        assert mask in (info.filter_mask, unfiltered_edge(ds, index)) and read_mask in (0, mask)


def unfiltered_edge(ds, index):
    partial = any((i + 1) * c > n for i, c, n in zip(index, ds.chunks, ds.shape))
    return (1 << ds.id.get_create_plist().get_nfilters()) - 1 if partial else 0


def is_linked(ds):
    t = ds.id.get_type()
    if ds.shape in (None, ()) or ds.size < LINKED_MIN or ds.id.get_storage_size() == 0:
        return False
    plist = ds.id.get_create_plist()
    if plist.get_layout() == h5py.h5d.COMPACT:
        return False
    return not has_class(t) and is_packed(t)


def has_class(t):
    cls = t.get_class()
    if cls == h5py.h5t.COMPOUND:
        return any(has_class(t.get_member_type(i)) for i in range(t.get_nmembers()))
    if cls == h5py.h5t.ARRAY:
        return has_class(t.get_super())
    return cls in (h5py.h5t.VLEN, h5py.h5t.REFERENCE) or (
        cls == h5py.h5t.STRING and t.is_variable_str())


def is_packed(t):
    cls = t.get_class()
    if cls == h5py.h5t.ARRAY:
        return is_packed(t.get_super())
    if cls != h5py.h5t.COMPOUND:
        return True
    at = 0
    for i in range(t.get_nmembers()):
        if t.get_member_offset(i) != at or not is_packed(t.get_member_type(i)):
            return False
        at += t.get_member_type(i).get_size()
    return at == t.get_size()


def check_all(bucket, domain=DOMAIN):
    """Each dataset of the file is linked, with the right references, or copied. Returns the classes
    of their layouts."""
    stored = oracle.Bucket(bucket).domain(domain)
    raw = (bucket / FILE).read_bytes()
    by_path = {path: stored.objects[oid] for oid, path in stored.paths.items()}
    classes = {}
    with h5py.File(bucket / FILE, "r") as f:
        for path, found in by_path.items():
            if found.kind != "d":
                continue
            try:
                ds = f[path]
            except KeyError as e:    # complex numbers, which libhdf5 1.10.8 does not know
                if "bad version number for datatype message" not in str(e):
                    raise
                continue
            refs = references(bucket, found)
            classes[path] = found.properties.get("layout", {}).get("class")
            try:
                linked = is_linked(ds)
            except RuntimeError:    # libhdf5 cannot read its index
                continue
            assert (refs is not None) == linked, path
            if refs is None:
                continue
            if ds.chunks is None:
                [(offset, size, _)] = refs.values()
                assert raw[offset:offset + size] == ds[()].tobytes(), path
            else:
                check_chunks(raw, ds, refs)
    return classes


def linked_places(bucket):
    """(path, references()) of each linked dataset."""
    stored = oracle.Bucket(bucket).domain(DOMAIN)
    for oid, path in stored.paths.items():
        refs = references(bucket, stored.objects[oid]) if oid[0] == "d" else None
        if refs is not None:
            yield path, refs


def check_export(bucket, tmp_path, ignored=()):
    """The image of the domain is equal to the file."""
    out = tmp_path / "out.h5"
    run(HSIMAGE, "-b", bucket, "export", "--force", DOMAIN, out, check=True, timeout=110)
    assert filediff.differences(bucket / FILE, out, ignored) == []
    return out


# ---- what h5py can write ----

@pytest.mark.sampled(rarer=2)
@pytest.mark.parametrize("name,bounds", [n for n in h5make.names() if n[0] != "unsupported"])
def test_every_form(bucket, tmp_path, name, bounds):
    h5make.make(bucket / FILE, name, bounds)
    done = link(bucket)
    classes = check_all(bucket)
    datasets, _, requests, read = counts_of(done)
    assert datasets == sum("_REF" in (c or "") for c in classes.values())
    assert requests >= 1 and read <= 1.2 * os.path.getsize(bucket / FILE)
    assert hsds_validator.check_domain(os.fspath(bucket), DOMAIN, strict=True) == []
    check_export(bucket, tmp_path)


def make_file(path, version="earliest"):
    with h5py.File(path, "w", libver=version) as f:
        make_members(f)


def make_members(f):
    n = np.arange(120000, dtype="<i4").reshape(400, 300)
    f.attrs["title"] = "linked"
    f.create_dataset("contiguous", data=n)
    f.create_dataset("few", data=n, chunks=(100, 70), compression="gzip", shuffle=True,
                     fletcher32=True)
    f.create_dataset("many", data=n, chunks=(10, 10), compression="gzip")
    f.create_dataset("growing", data=n, chunks=(7, 11), maxshape=(None, None))
    f.create_dataset("row", data=n.reshape(-1), chunks=(50,), maxshape=(None,))
    f.create_dataset("lzf", data=n, chunks=(100, 100), compression="lzf")
    f.create_dataset("small", data=np.arange(10))
    f.create_dataset("text", data=["word"] * 600, dtype=h5py.string_dtype())
    gaps = np.dtype({"names": ["a", "b"], "formats": ["i1", "<f8"], "offsets": [0, 8],
                     "itemsize": 16})
    f.create_dataset("gaps", data=np.ones(1000, gaps))
    f.create_dataset("unwritten", (10000,), "<i4", chunks=(100,))
    mask = f.create_dataset("mask", (1000, 20), "<i4", chunks=(10, 1), compression="gzip")
    mask[...] = n.reshape(-1)[:20000].reshape(1000, 20)
    mask.id.write_direct_chunk((30, 2), n.reshape(-1)[:10].tobytes(), filter_mask=1)
    f.create_group("group")["soft"] = h5py.SoftLink("/few")


@pytest.mark.parametrize("version", ["earliest", "latest"])
def test_layouts(bucket, tmp_path, version):
    make_file(bucket / FILE, version)
    datasets, data, _, _ = counts_of(link(bucket))
    classes = check_all(bucket)
    assert datasets == 7 and data > 0
    assert classes["/contiguous"] == "H5D_CONTIGUOUS_REF"
    assert classes["/few"] == classes["/lzf"] == "H5D_CHUNKED_REF"
    for path in ("/many", "/growing", "/row", "/mask"):
        assert classes[path] == "H5D_CHUNKED_REF_INDIRECT"
    stored = oracle.Bucket(bucket).domain(DOMAIN)
    few = next(stored.objects[i] for i, path in stored.paths.items() if path == "/few")
    assert [f["id"] for f in few.properties["filters"]] == [2, 1]
    assert all(f["name"] for f in few.properties["filters"])
    assert [f["id"] for f in few.properties["hsmount"]["filters"]] == [2, 1, 3]
    assert few.properties["layout"]["hsmount"]["h5path"] == "/few"
    assert few.properties["layout"]["hsmount"]["exact"] is True
    check_export(bucket, tmp_path)
    lines = run(HSIMAGE, "-b", bucket, "info", DOMAIN, check=True).stdout.splitlines()
    assert sum(line.endswith(", data in bucket/raw/file.h5") for line in lines) == datasets
    checked = run(HSIMAGE, "-b", bucket, "check", "--all", DOMAIN)
    assert checked.returncode == 0 and "notes" not in checked.stdout, checked.stdout
    places = next(refs for path, refs in linked_places(bucket) if path == "/few")
    with open(bucket / FILE, "r+b") as f:
        f.seek(places[1, 2][0] + 10)
        f.write(b"damage")
    checked = run(HSIMAGE, "-b", bucket, "check", DOMAIN)
    assert checked.returncode == 1, checked.stdout
    assert re.search(rf"error: .*/few: .*bucket/{FILE}, \d+ bytes at offset {places[1, 2][0]}: ",
                     checked.stdout), checked.stdout
    assert checked.stdout.count("error: ") == 1
    os.unlink(bucket / FILE)
    checked = run(HSIMAGE, "-b", bucket, "check", DOMAIN)
    assert checked.returncode == 1 and "the file does not exist" in checked.stdout


def test_fastlink(bucket, tmp_path):
    make_file(bucket / FILE)
    link(bucket, "--fastlink")
    stored = oracle.Bucket(bucket).domain(DOMAIN)
    many = next(stored.objects[i] for i, path in stored.paths.items() if path == "/many")
    table = many.properties["layout"]["chunk_table"]
    key = oracle.document_key(table)
    assert os.listdir(os.path.dirname(bucket / key)) == [".dataset.json"], "no chunks"
    with open(bucket / key, encoding="ascii") as f:
        doc = json.load(f)
    assert doc["creationProperties"]["initializer"] == [
        "chunklocator", "--h5path=/many", "--filepath=" + FILE, "--bucket=bucket"]
    assert doc["shape"]["dims"] == [40, 30]
    check_export(bucket, tmp_path)


# ---- verification ----

def write_streams(path, stored, shape=(600, 4), chunks=(100, 4), **more):
    """A dataset /group/x with these streams as chunks."""
    with h5py.File(path, "a") as f:
        d = f.create_dataset("group/x", shape, "<i4", chunks=chunks, compression="gzip",
                             maxshape=(None, 4), **more)
        for at, stream in stored.items():
            d.id.write_direct_chunk(at, stream)


def streams():
    """Whole chunks, except for the last one, which ends at the extent."""
    data = np.arange(1, 2201, dtype="<i4").reshape(550, 4)
    return data, {(i, 0): zlib.compress(data[i:i + 100].tobytes()) for i in range(0, 550, 100)}


def test_verify(bucket, tmp_path):
    """All data are read. A chunk that ends at the extent is whole."""
    data, stored = streams()
    make_file(bucket / FILE)
    write_streams(bucket / FILE, stored, (550, 4))
    with h5py.File(bucket / FILE) as f:
        assert (f["group/x"][()] == data).all()
    datasets, size, _, read = counts_of(link(bucket, "--verify"))
    assert read > size
    unverified = counts_of(link(bucket, "--replace"))
    assert unverified[:2] == (datasets, size) and unverified[3] < read - size // 2
    check_export(bucket, tmp_path)
    run(HSIMAGE, "-b", bucket, "check", "--all", DOMAIN, check=True)


def files_in(bucket):
    return sorted(p for p in bucket.rglob("*") if p.is_file())


DAMAGE = {"cut": (lambda s: s[:-7], r"chunk \(2,0\): .*"),
          "garbage": (lambda s: b"garbage" * 9, r"chunk \(2,0\): .*"),
          "no stream": (lambda s: b"\0", r"chunk \(2,0\): .*"),
          "elements are missing": (lambda s: zlib.compress(zlib.decompress(s)[:-4]),
                                   r"chunk \(2,0\): .*1596 bytes instead of 1600.*")}


@pytest.mark.parametrize("damage", DAMAGE)
def test_verify_finds_damage(bucket, damage):
    """Every damaged chunk is reported, and the bucket stays as it was."""
    change, reason = DAMAGE[damage]
    stored = streams()[1]
    stored[(200, 0)] = change(stored[(200, 0)])
    write_streams(bucket / FILE, stored, (550, 4))
    before = files_in(bucket)
    done = link(bucket, "--verify", check=False)
    assert done.returncode == 1
    found = [line for line in done.stderr.splitlines() if "chunk (" in line]
    assert len(found) == 1 and re.fullmatch(r"hsimage: dataset /group/x: " + reason, found[0])
    assert done.stderr.endswith(f"{FILE}: 1 chunk of the file is damaged\n"), done.stderr
    assert files_in(bucket) == before
    link(bucket)


def test_verify_checks_checksums(bucket):
    with h5py.File(bucket / FILE, "w") as f:
        d = f.create_dataset("x", data=np.arange(3000), chunks=(100,), fletcher32=True)
        places = [d.id.get_chunk_info(i).byte_offset for i in range(25)]
    with open(bucket / FILE, "r+b") as f:
        for place in places:
            f.seek(place)
            f.write(b"damage")
    done = link(bucket, "--verify", check=False)
    assert done.returncode == 1 and "25 chunks of the file are damaged" in done.stderr
    assert done.stderr.count("dataset /x: chunk (") == 20 and "and 5 more" in done.stderr


def test_verify_is_an_option_of_link(bucket):
    make_file(bucket / FILE)
    done = run(HSIMAGE, "-b", bucket, "import", "--verify", bucket / FILE, DOMAIN)
    assert done.returncode == 2 and "import has no option --verify" in done.stderr
    done = run(HSIMAGE, "-b", bucket, "link", "--abort", "--verify", DOMAIN)
    assert done.returncode == 2 and "other options do not apply" in done.stderr


# Names of datasets, and whether the service can look up their chunks: it passes them to a shell.
NAMES = {"plain": True, "with-all_of.these": True, "my data": False, "a;touch pwned;b": False,
         "x$HOME": False, "a`b`": False, "quote'd": False, "gr\u00f6\u00dfe": False}


def tables_of(bucket):
    """For each path, the key and the document of the chunk table."""
    stored, out = oracle.Bucket(bucket).domain(DOMAIN), {}
    for i, path in stored.paths.items():
        if "chunk_table" in stored.objects[i].properties.get("layout", {}):
            key = oracle.document_key(stored.objects[i].properties["layout"]["chunk_table"])
            out[path] = key, json.loads((bucket / key).read_text(encoding="ascii"))
    return out


def test_fastlink_of_names_that_a_shell_changes(bucket, tmp_path):
    with h5py.File(bucket / FILE, "w") as f:
        for name in NAMES:
            f.create_dataset(name, data=range(1, 10001), chunks=(5,), dtype="i4")
    done = link(bucket, "--fastlink")
    tables = tables_of(bucket)
    assert set(tables) == {f"/{name}" for name in NAMES}
    for name, is_safe in NAMES.items():
        key, document = tables[f"/{name}"]
        assert ("initializer" in document["creationProperties"]) == is_safe, name
        assert (len(os.listdir(os.path.dirname(bucket / key))) == 1) == is_safe, name
    # The log replaces what cannot be printed.
    assert done.stderr.count("its chunk table is stored") == len(NAMES) - sum(NAMES.values())
    assert "dataset /my data: its chunk table is stored" in done.stderr
    check_export(bucket, tmp_path)


@pytest.mark.parametrize("name", ["odd bucket", "$(reboot)"])
def test_fastlink_in_a_bucket_of_such_a_name(bucket, name):
    other = bucket.rename(bucket.parent / name)
    make_file(other / FILE)
    assert "dataset /many: its chunk table is stored" in link(other, "--fastlink").stderr


def test_an_empty_record_proves_nothing(bucket, tmp_path):
    """A service that could not read the file has stored records of size 0."""
    make_file(bucket / FILE)
    link(bucket, "--fastlink")
    run(HSIMAGE, "-b", bucket, "check", "--all", DOMAIN, check=True)
    key, document = tables_of(bucket)["/many"]
    rows, columns = document["shape"]["dims"]
    size = sum(int(f["type"]["base"][-4:-2]) // 8 for f in document["type"]["fields"])
    (bucket / key).with_name("0_0").write_bytes(bytes(rows * columns * size))
    check_export(bucket, tmp_path)
    checked = run(HSIMAGE, "-b", bucket, "check", "--all", DOMAIN)
    assert checked.returncode == 1
    assert checked.stdout.count("the chunk table has an empty record for chunk") == 1


def test_a_copy_of_the_bucket(bucket, tmp_path):
    """A directory can be copied: what the domain records of the file is true of the copy, too."""
    make_file(bucket / FILE)
    link(bucket)
    (tmp_path / "copy").mkdir()
    copied = shutil.copytree(bucket, tmp_path / "copy" / "bucket")
    check_export(copied, tmp_path)
    with open(copied / FILE, "ab") as f:
        f.write(b"x")
    refused = run(HSIMAGE, "-b", copied, "export", DOMAIN, tmp_path / "no.h5")
    assert "is not the version that the domain was made from" in refused.stderr


def test_mount(bucket, mount):
    """h5diff and ncdump read both files; the data of one come from ranges of the other."""
    with h5py.File(bucket / FILE, "w", track_order=True) as f:
        make_members(f)
        del f["unwritten"], f["lzf"]    # h5diff does not compare them
    link(bucket)
    shown = os.path.join(mount(bucket).path, DOMAIN)
    done = run("h5diff", bucket / FILE, shown)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    texts = [run("ncdump", "-n", "x", path, check=True).stdout for path in (bucket / FILE, shown)]
    assert texts[0] == texts[1] and "many" in texts[0]


def tree_of(root):
    return sorted(os.path.relpath(os.path.join(path, name), root)
                  for path, _, names in os.walk(root) for name in names)


def test_local_file(bucket, tmp_path):
    """With --as, the object need not exist; if it does, its size is compared."""
    local = tmp_path / "local.h5"
    make_file(local)
    target = os.path.join(bucket, DOMAIN)
    refused = run(HSIMAGE, "link", local, target)
    assert refused.returncode == 1 and "name its key in the bucket with --as" in refused.stderr
    done = run(HSIMAGE, "link", "--as", FILE, local, target, check=True, timeout=110)
    assert counts_of(done)[2:] == (0, 0)
    shutil.copy(local, bucket / FILE)
    check_all(bucket)
    run(HSIMAGE, "link", "--replace", "--as", FILE, local, target, check=True, timeout=110)
    check_all(bucket)
    with open(bucket / FILE, "ab") as f:
        f.write(b"more")
    refused = run(HSIMAGE, "link", "--replace", "--as", FILE, local, target)
    assert refused.returncode == 1 and "is not the object" in refused.stderr


def test_bucket_name(bucket, tmp_path):
    """References name the bucket as the service knows it."""
    make_file(bucket / FILE)
    named = ("-o", "bucket_name=public")
    run(HSIMAGE, *named, "-b", bucket, "link", FILE, DOMAIN, check=True, timeout=110)
    stored = oracle.Bucket(bucket).domain(DOMAIN)
    uris = {x.properties["layout"]["file_uri"] for x in stored.objects.values()
            if "file_uri" in x.properties.get("layout", {})}
    assert uris == {"public/" + FILE}
    out = tmp_path / "out.h5"
    run(HSIMAGE, *named, "-b", bucket, "export", "--force", DOMAIN, out, check=True, timeout=110)
    assert filediff.differences(bucket / FILE, out) == []
    assert run(HSIMAGE, "-b", bucket, "export", DOMAIN, tmp_path / "no.h5").returncode == 1


def test_operands(bucket, tmp_path):
    make_file(bucket / FILE)
    run(HSIMAGE, "link", bucket / FILE, bucket / DOMAIN, check=True, timeout=110)
    check_all(bucket)
    for arguments, text in [
            ((bucket / "raw/none.h5", bucket / "home/x.h5"), "the bucket has no such object"),
            ((bucket / FILE, bucket / DOMAIN), "the domain exists"),
            ((bucket / DOMAIN, bucket / "home/x.h5"), "the bucket has no such object"),
            (("--min-chunk", "1M", bucket / FILE, bucket / "home/x.h5"),
             "link has no option --min-chunk")]:
        done = run(HSIMAGE, "link", *arguments)
        assert done.returncode and text in done.stderr, done.stderr
    other = tmp_path / "other"
    with mkbucket.Maker(other) as maker:
        maker.folder("home")
    (other / "db").mkdir(exist_ok=True)
    done = run(HSIMAGE, "link", bucket / FILE, other / "home/x.h5")
    assert done.returncode == 1 and "files of its own bucket" in done.stderr


def test_interrupted(bucket):
    """A link that was interrupted is continued, and can be removed."""
    make_file(bucket / FILE)
    before = tree_of(bucket)
    failing = ("-o", "debug_fault=fail:20+:EACCES@*/d/*")
    assert link(bucket, *failing, check=False).returncode == 1
    assert tree_of(bucket) != before
    copied = run(HSIMAGE, "-b", bucket, "import", bucket / FILE, DOMAIN)
    assert copied.returncode == 1 and "cannot be continued" in copied.stderr
    other = link(bucket, "--fastlink", check=False)
    assert other.returncode == 1 and "cannot be continued" in other.stderr
    link(bucket)
    check_all(bucket)
    assert link(bucket, "--replace", *failing, check=False).returncode == 1
    run(HSIMAGE, "-b", bucket, "link", "--abort", DOMAIN, check=True)
    check_all(bucket)


def test_file_that_changes(bucket):
    """A file that changes while it is read is noticed, and nothing of the domain appears."""
    make_file(bucket / FILE)
    before = tree_of(bucket)
    program = subprocess.Popen(
        [HSIMAGE, "-b", bucket, "-o", "debug_fault=delay:3+:200@raw/*", "link", FILE, DOMAIN],
        stderr=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: tree_of(bucket) != before, PATIENCE)    # the record
        time.sleep(0.3)         # each read of the file takes 0.2 s from the third on
        with open(bucket / FILE, "r+b") as f:
            f.seek(0, 2)
            f.write(b"x")
        _, text = program.communicate(timeout=PATIENCE * 4)
    finally:
        program.kill()
        program.wait()
    assert program.returncode == 1 and "changed" in text, text
    assert not (bucket / DOMAIN / ".domain.json").exists()


def test_overlapping_chunks(bucket):
    """A record of the index is changed so that two chunks share bytes: a warning, once."""
    make_file(bucket / FILE)
    with h5py.File(bucket / FILE) as f:
        infos = [f["growing"].id.get_chunk_info(i) for i in range(3)]
    raw = (bucket / FILE).read_bytes()
    old, new = (infos[i].byte_offset.to_bytes(8, "little") for i in (2, 1))
    assert raw.count(old) == 1
    (bucket / FILE).write_bytes(raw.replace(old, new))
    done = link(bucket)
    assert done.stderr.count("overlap") == 2, done.stderr
    assert f"chunks overlap in the file: chunk at {infos[1].byte_offset} " in done.stderr


def test_large_chunk(bucket):
    with h5py.File(bucket / FILE, "w") as f:
        f.create_dataset("fine", data=np.arange(10))
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((300 << 20,))
        plist.set_deflate(1)
        space = h5py.h5s.create_simple((300 << 20,))
        ds = h5py.Dataset(h5py.h5d.create(f.id, b"large", h5py.h5t.STD_U8LE, space, plist))
        ds.id.write_direct_chunk((0,), b"x" * 1000, filter_mask=0)
    refused = link(bucket, check=False)
    assert refused.returncode == 1 and "/large: " in refused.stderr
    assert "256 MiB" in refused.stderr
    done = link(bucket, "--skip-unsupported")
    assert "/large: " in done.stderr


# ---- how much is read ----

def metadata_bytes(path):
    """Bytes of the file that are no raw data."""
    data = 0

    def add(_, x):
        nonlocal data
        if isinstance(x, h5py.Dataset):
            data += x.id.get_storage_size()
    with h5py.File(path, "r") as f:
        f.visititems(add)
    return os.path.getsize(path) - data


@pytest.mark.sampled
@pytest.mark.parametrize("version", ["earliest", "latest"])
def test_bytes(bucket, version):
    """The nodes of an index are between the chunks, which are not read."""
    n = np.random.default_rng(1).integers(0, 2**62, (1000, 1500))
    with h5py.File(bucket / FILE, "w", libver=version) as f:
        for k in range(3):
            f.create_dataset(f"d{k}", n.shape, n.dtype, chunks=(10, 20), maxshape=(None, None))
        for i in range(0, 1000, 100):
            for k in range(3):
                f[f"d{k}"][i:i + 100] = n[i:i + 100]
    metadata = metadata_bytes(bucket / FILE)
    datasets, data, requests, read = counts_of(link(bucket))
    assert datasets == 3 and data == 3 * n.nbytes
    assert read <= 1.2 * metadata, (read, metadata)
    assert requests <= 3 * 7500 / 16 + 100
    check_all(bucket)


# ---- S3 ----

@pytest.mark.timeout(300)
@needs_gateway[1]
def test_s3(environment, client, tmp_path):
    name = f"link-{time.monotonic_ns()}"
    client.make_bucket(name)
    client.put(name, "db/x/.group.json", b"{}")
    make_file(tmp_path / "file.h5", "latest")
    client.put(name, FILE, (tmp_path / "file.h5").read_bytes())
    done = run(HSIMAGE, "link", f"s3://{name}/{FILE}", f"s3://{name}/{DOMAIN}", env=environment,
               check=True, timeout=110)
    datasets, _, requests, read = counts_of(done)
    assert datasets == 7 and requests > 1
    assert read < (tmp_path / "file.h5").stat().st_size / 2
    out = tmp_path / "out.h5"
    gateway.hsimage(environment, "export", "--force", f"s3://{name}/{DOMAIN}", str(out))
    assert filediff.differences(tmp_path / "file.h5", out) == []
    refused = run(HSIMAGE, "link", f"s3://{name}/raw/none.h5", f"s3://{name}/{DOMAIN}",
                  env=environment)
    assert refused.returncode == 1 and "no such object" in refused.stderr


# ---- files of HDF5's own tests and of other projects ----

@pytest.mark.skipif(not imports.foreign_names(), reason="the files are not there")
@pytest.mark.sampled(rarer=2)
@pytest.mark.parametrize("name", imports.foreign_names())
def test_foreign(foreign, bucket, tmp_path, name):
    shutil.copy(foreign / name, bucket / FILE)
    done = link(bucket, "--skip-unsupported", check=False)
    copied = run(HSIMAGE, "-b", bucket, "import", "--skip-unsupported", bucket / FILE,
                 "home/copy.h5", timeout=110)
    assert done.returncode == copied.returncode, done.stderr
    if done.returncode:
        return
    assert hsds_validator.check_domain(os.fspath(bucket), DOMAIN, strict=True) == []
    try:
        h5py.File(bucket / FILE, "r").close()
    except OSError as e:
        pytest.skip(f"libhdf5 cannot open it: {e}")
    check_all(bucket)
    if name in imports.CRASHES:
        pytest.skip("libhdf5 crashes")
    check_export(bucket, tmp_path, imports.left_out(done, COUNTS))
