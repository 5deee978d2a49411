# SPDX-License-Identifier: Apache-2.0
"""A chunk, an attribute or a name is shown as absent only if the store has proved that it is
absent. Each test is named after a defect by which stored data read as fill values, or an
unreadable attribute was shown as one that does not exist."""
import errno
import itertools
import json
import os
import re
import resource
import sys
import tempfile
import threading
import time
import zlib

import h5py
import numpy as np
import pytest

import mkbucket
import mounts
import sampling
from s3liar import Answer, Liar, error

# Chunks of whole pages: the kernel reads no other bytes with them.
EACH = 4096
INTS = np.arange(3 * EACH, dtype="<i4")


def three_chunks(domain, name="data", skip=(), each=EACH, **properties):
    """A dataset of three chunks; the value of each element is its index."""
    dataset = domain.dataset(domain.root, name, mkbucket.INT32, [3 * each], [each], **properties)
    for i in range(3):
        if i not in skip:
            dataset.chunk((i,), np.arange(i * each, (i + 1) * each, dtype="<i4"))
    return dataset


def make_large(domain, keys=1100):
    """Adds a dataset with more chunks than one page of a listing."""
    many = domain.dataset(domain.root, "many", mkbucket.INT8, [keys], [1])
    for i in range(keys):
        many.chunk((i,), b"\1")


def h5dump(path, dataset, *options):
    return mounts.run("h5dump", "-d", dataset, "-y", "-w", "0", *options, path)


def shown(done):
    """The values that h5dump prints, as text."""
    data = re.search(r"DATA \{(.*?)\}", done.stdout, re.S)
    return data[1].replace(",", " ").split() if data else []


def assert_fails(path, dataset, *options):
    """h5dump reports an error, and no value. For a part of a dataset it prints neither."""
    done = h5dump(path, dataset, *options)
    assert done.returncode != 0 or options, done.stdout[:1000]
    assert not shown(done), done.stdout[:1000]


def assert_reads(path, dataset, values=INTS):
    done = h5dump(path, dataset)
    assert done.returncode == 0, done.stderr
    same = shown(done) == [str(v) for v in values]
    assert same, done.stdout[:1000]


def read_errno(f, dataset, at):
    """The error of a read with h5py."""
    with pytest.raises(OSError) as caught:
        f[dataset][at]
    return int(re.search(r"errno = (\d+)", str(caught.value))[1])


def verify(bucket, path, failures, env=None):
    """The output of `hsimage info --verify`."""
    done = mounts.run(mounts.HSIMAGE, "info", "--verify", f"{bucket}/{path}", env=env)
    assert f"unreadable parts: {failures}\n" in done.stdout, done.stdout + done.stderr
    assert (done.returncode != 0) == (failures > 0)
    return done.stdout


# ---- 1. data in another file ----

# References to a file that does not exist.
REFS = {
    "contiguous": {"class": "H5D_CONTIGUOUS_REF", "file_uri": "bucket/a/b.h5", "offset": 4016,
                   "size": 12 * EACH},
    "chunked": {"class": "H5D_CHUNKED_REF", "file_uri": "bucket/a/b.h5", "dims": [EACH],
                "chunks": {"0": [4016, 4 * EACH], "1": [4016, 4 * EACH]}},
    "indirect": {"class": "H5D_CHUNKED_REF_INDIRECT", "file_uri": "bucket/a/b.h5", "dims": [EACH],
                 "chunk_table": "d-00000000-00000000-0000-000000-000000"},
}


@pytest.mark.parametrize("large", [False, True], ids=["listed", "unlisted"])
def test_1_datasets_in_a_file_that_is_not_there(tmp_path, mount, large):
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        d = bucket.domain("x.h5")
        three_chunks(d)
        for name, layout in REFS.items():
            for suffix, more in (("", {}), ("_gzip", {"filters": [mkbucket.GZIP]})):
                ds = d.dataset(d.root, name + suffix, mkbucket.INT32, [3 * EACH], [EACH],
                               fillValue=7, **more)
                ds.doc["creationProperties"]["layout"] = layout
        strings = d.dataset(d.root, "strings", mkbucket.vstring(), [12], [4])
        strings.doc["layout"]["class"] = "H5D_CHUNKED_REF"
        table = d.dataset(d.root, "table", mkbucket.INT32, [3 * EACH], [EACH], initializer=[
            "chunklocator", "--h5path=/x", "--filepath=a/b.h5", "--bucket=bucket"])
        table.chunk((1,), INTS[EACH:2 * EACH])
        d.dataset(d.root, "computed", mkbucket.INT32, [3 * EACH], [EACH],
                  initializer=["arange"])
        if large:
            make_large(d)
    path = mount(bucket.root).file("x.h5")
    for name in REFS:
        for suffix in ("", "_gzip"):
            assert_fails(path, name + suffix)
            assert_fails(path, name + suffix, "-s", "5", "-c", "2")
            with h5py.File(path, "r") as f:
                assert read_errno(f, name + suffix, EACH) == errno.EIO
    assert_fails(path, "strings")
    assert_fails(path, "table")
    assert_fails(path, "table", "-s", str(2 * EACH), "-c", "1")
    with h5py.File(path, "r") as f:
        assert (f["table"][EACH:2 * EACH] == INTS[EACH:2 * EACH]).all()
    assert_reads(path, "data")
    assert_reads(path, "computed")


# ---- 3. answers of S3 that do not prove absence ----

# A separate process: h5py holds Python's lock while it reads, and the server here needs the lock.
READER = """
import h5py, json, re, sys
for first, end in json.loads(sys.argv[2]):
    with h5py.File(sys.argv[1], "r") as f:
        try:
            print(json.dumps(f["data"][first:end].tolist()))
        except OSError as e:
            print(re.search(r"errno = (\\d+)", str(e))[1])
"""


def read_parts(path, *parts):
    """For each part (first, end) of "data" its values, or the errno."""
    done = mounts.run(sys.executable, "-c", READER, path, json.dumps(parts), check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def bare_404(_, honest):
    """A server, or a proxy in front of it, that answers 404 without an error document."""
    return Answer(404, {}) if honest.status == 404 else None


def folder_of(dataset):
    return os.path.dirname(dataset.key) + "/"


def is_chunk_of(dataset, request):
    folder = folder_of(dataset)
    return request.method == "GET" and request.key.startswith(folder) and \
        request.key[len(folder):].isdigit()


def listings(liar, dataset):
    """The listings below a dataset that the server has received."""
    return [r for r in liar.requests if r.is_list and
            r.query.get("prefix", "").startswith(folder_of(dataset))]


def sparse(root, chunks, stored):
    """A dataset with some stored chunks, in a domain that is too large to be listed."""
    with mkbucket.Maker(root) as bucket:
        d = bucket.domain("x.h5")
        dataset = d.dataset(d.root, "data", mkbucket.INT32, [chunks], [1], fillValue=-1)
        for i in stored:
            dataset.chunk((i,), np.array([i], dtype="<i4"))
        make_large(d)
    return dataset, [i if i in stored else -1 for i in range(chunks)]


@pytest.mark.sampled
@pytest.mark.parametrize("answer", [Answer(404, {}), error(404, "NotFound")],
                         ids=["no-body", "no-code"])
def test_3_404_for_a_chunk_that_is_there(tmp_path, mount, answer):
    """A read gives the bytes or an error, never the fill value."""
    dataset, values = sparse(tmp_path / "bucket", 8, range(8))
    told = []

    def lie(request, _):
        if not is_chunk_of(dataset, request):
            return None
        told.append(request)
        return answer

    with Liar(tmp_path / "bucket") as liar:
        m = mount("s3://bucket", env=liar.environment())
        liar.lie = lie
        reader = threading.Timer(10, lambda: setattr(liar, "lie", None))
        reader.start()
        got = read_parts(m.file("x.h5"), (0, 8))
        assert told and got in ([errno.EIO], [values])
        reader.cancel()
        liar.lie = None
        time.sleep(1.1)         # the failure of a chunk is cached for a second
        assert read_parts(m.file("x.h5"), (0, 8)) == [values]
        assert not liar.failures


def test_3_404_where_nothing_may_be_listed(tmp_path, mount):
    dataset, values = sparse(tmp_path / "bucket", 8, range(0, 8, 2))
    with Liar(tmp_path / "bucket") as liar:
        liar.lie = lambda request, honest: error(403, "AccessDenied") if request.is_list and \
            request.query.get("prefix", "").startswith(folder_of(dataset)) else \
            bare_404(request, honest)
        m = mount("s3://bucket", env=liar.environment())
        assert read_parts(m.file("x.h5"), (0, 8)) == [errno.EACCES]
        liar.lie = bare_404
        time.sleep(1.1)         # the failure of a chunk is cached for a second
        assert read_parts(m.file("x.h5"), (0, 8)) == [values]


@pytest.mark.sampled
@pytest.mark.parametrize("order", ["forwards", "backwards"])
def test_3_absent_chunks_without_error_documents(tmp_path, mount, order):
    """Absent chunks read as fill values, and each GET of one is followed by one listing of its
    key."""
    stored = range(0, 300, 100)
    dataset, values = sparse(tmp_path / "bucket", stored.stop, stored)
    parts = [(at, at + 100) for at in range(0, stored.stop, 100)]
    if order == "backwards":
        parts.reverse()
    with Liar(tmp_path / "bucket") as liar:
        liar.lie = bare_404
        m = mount("s3://bucket", env=liar.environment())
        got = read_parts(m.file("x.h5"), *parts)
        assert got == [values[first:end] for first, end in parts]
        keys = [r.query["prefix"] for r in listings(liar, dataset)]
        absent = [r.key for r in liar.requests if is_chunk_of(dataset, r) and
                  int(os.path.basename(r.key)) not in stored]
        assert len(set(absent)) == 297 and sorted(keys) == sorted(absent)


def test_3_names_without_error_documents(tmp_path, mount):
    """Without an error document a name exists if a listing shows it."""
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        three_chunks(bucket.domain("x.h5"))
        bucket.put("plain", b"bytes")
    with Liar(tmp_path / "bucket") as liar:
        liar.lie = bare_404
        m = mount("s3://bucket", env=liar.environment())
        for name in ("none", "none.h5", "plai"):
            with pytest.raises(FileNotFoundError):
                os.stat(m.file(name))
        with open(m.file("plain"), "rb") as f:
            assert f.read() == b"bytes"
        assert read_parts(m.file("x.h5"), (0, 10)) == [list(range(10))]
        liar.lie = lambda request, honest: Answer(404, {}) if request.method == "HEAD" else None
        time.sleep(1.1)         # names are valid for a second
        try:
            assert os.stat(m.file("plain")).st_size == 5
        except OSError as e:    # any error but ENOENT
            assert e.errno == errno.EIO


# ---- 4. chunks that are deleted while the file is open ----

FAR = 1 << 18       # elements of a chunk: more than the kernel reads ahead


@pytest.fixture
def large(tmp_path):
    """A bucket with a domain of more keys than one page of a listing, and its dataset."""
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        d = bucket.domain("x.h5")
        dataset = three_chunks(d, skip=(2,), each=FAR, fillValue=-1)
        make_large(d)
    return bucket, dataset


def remove(bucket, key):
    os.unlink(os.path.join(bucket.root, key))


def test_4_chunk_that_is_deleted_with_its_dataset(large, mount):
    bucket, dataset = large
    path = mount(bucket.root).file("x.h5")
    with h5py.File(path, "r") as f:
        assert f["data"][FAR - 1] == FAR - 1
        remove(bucket, dataset.chunk_key((1,)))
        remove(bucket, dataset.key)
        for at in (FAR, 2 * FAR, FAR):
            assert read_errno(f, "data", at) == errno.ESTALE
        assert (f["many"][()] == 1).all()       # other datasets are not affected
    with h5py.File(path, "r") as f:
        assert sorted(f) == ["many"]


def test_4_chunk_that_is_deleted_when_its_dataset_changes(large, mount):
    """The document is checked once a second; a change stays for the lifetime of the snapshot."""
    bucket, dataset = large
    m = mount(bucket.root, "debug_count", "cache_size=0")
    path = m.file("x.h5")
    with h5py.File(path, "r") as f:
        assert f["data"][2 * FAR] == -1
        heads = m.counts()["heads"]
        remove(bucket, dataset.chunk_key((1,)))
        bucket.put(dataset.key, json.dumps(dataset.doc, indent=1).encode())
        time.sleep(1.1)         # the document is checked once a second
        assert read_errno(f, "data", FAR) == errno.ESTALE
        assert m.counts()["heads"] == heads + 1
        bucket.put(dataset.chunk_key((1,)), np.arange(FAR, 2 * FAR, dtype="<i4").tobytes())
        assert read_errno(f, "data", FAR) == errno.ESTALE
    with h5py.File(path, "r") as f:
        assert (f["data"][:2 * FAR] == np.arange(2 * FAR)).all()


def test_4_absent_chunks_cost_one_request_a_second(large, mount):
    """An absent chunk takes one request, and the dataset's document one a second."""
    bucket, dataset = large
    m = mount(bucket.root, "debug_count")
    with h5py.File(m.file("x.h5"), "r") as f:
        before, started = m.counts(), time.monotonic()
        assert (f["data"][2 * FAR:] == -1).all()
        after, seconds = m.counts(), time.monotonic() - started
    assert after["heads"] - before["heads"] <= 1 + seconds
    assert after["lists"] == before["lists"]


# ---- 2. links of a directory bucket ----

NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}


def as_nobody(*command):
    """A user who does not own the bucket."""
    try:
        return mounts.run(*command, **NOBODY)
    except PermissionError:
        pytest.skip("the other user may not run the program")


def make_link(bucket, key, how):
    """Moves an object or a directory within the bucket, and makes a link in its place."""
    path, elsewhere = os.path.join(bucket.root, key), os.path.join(bucket.root, "elsewhere")
    os.makedirs(elsewhere, exist_ok=True)
    moved = os.path.join(elsewhere, key.replace("/", "-"))
    os.rename(path, moved)
    inside = os.path.relpath(moved, os.path.dirname(path))
    os.symlink({"inside": inside, "absolute": moved, "dangling": inside + "-not",
                "out": "/etc/hostname", "circle": os.path.basename(path)}[how], path)


LINKS = {"absolute": errno.EACCES, "out": errno.EACCES, "circle": errno.EACCES,
         "dangling": errno.EIO}


def two_datasets(root, large=False):
    with mkbucket.Maker(root) as bucket:
        d = bucket.domain("x.h5")
        bucket.data, bucket.other = three_chunks(d), three_chunks(d, "other")
        if large:
            make_large(d)
    return bucket


@pytest.mark.parametrize("large", [False, True], ids=["listed", "unlisted"])
@pytest.mark.parametrize("how", ["inside", *LINKS])
def test_2_chunk_behind_a_link(tmp_path, mount, how, large):
    bucket = two_datasets(tmp_path / "bucket", large)
    key = bucket.data.chunk_key((1,))
    make_link(bucket, key, how)
    m = mount(bucket.root)
    with h5py.File(m.file("x.h5"), "r") as f:
        assert (f["other"][()] == INTS).all()
        if how == "inside":
            assert (f["data"][()] == INTS).all()
        else:
            assert read_errno(f, "data", EACH) == LINKS[how]
            assert (f["data"][:EACH] == INTS[:EACH]).all()
            assert (f["data"][2 * EACH:] == INTS[2 * EACH:]).all()
            assert key in m.log()
    said = verify(bucket.root, "x.h5", 0 if how == "inside" else 1)
    assert how == "inside" or key in said


@pytest.mark.parametrize("how", LINKS)
def test_2_document_behind_a_link(tmp_path, mount, how):
    """The open fails; it does not show a file without the dataset."""
    for number, key_of in enumerate((lambda b: b.data.key,
                                     lambda b: os.path.dirname(b.data.key))):
        bucket = two_datasets(tmp_path / f"bucket{number}")
        make_link(bucket, key_of(bucket), how)
        m = mount(bucket.root)
        with pytest.raises(OSError) as caught:
            open(m.file("x.h5"), "rb")
        assert caught.value.errno in (errno.EACCES, errno.ENOLINK)
        assert key_of(bucket) in m.log()
        assert mounts.run(mounts.HSIMAGE, "info", f"{bucket.root}/x.h5").returncode != 0


@pytest.mark.parametrize("how", LINKS)
def test_2_domain_behind_a_link(tmp_path, mount, how):
    """The name is not listed, and its look-up fails with an error other than ENOENT."""
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        for path in ("x.h5", "y.h5"):
            three_chunks(bucket.domain(path))
    make_link(bucket, "x.h5", how)
    m = mount(bucket.root)
    assert "x.h5" not in os.listdir(m.path) and "y.h5" in os.listdir(m.path)
    assert "x.h5" in m.log()
    with pytest.raises(OSError) as caught:
        os.stat(m.file("x.h5"))
    assert caught.value.errno in (errno.EACCES, errno.ENOLINK)
    with pytest.raises(FileNotFoundError):
        os.stat(m.file("none.h5"))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
@pytest.mark.parametrize("what", ["chunk", "document"])
def test_2_target_of_another_user(what):
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        bucket = two_datasets(os.path.join(directory, "bucket"))
        key = bucket.data.chunk_key((1,)) if what == "chunk" else bucket.data.key
        make_link(bucket, key, "inside")
        assert as_nobody(mounts.HSIMAGE, "info", "--verify",
                         f"{bucket.root}/x.h5").returncode == 0
        os.chmod(os.path.join(bucket.root, "elsewhere"), 0o700)
        done = as_nobody(mounts.HSIMAGE, "info", "--verify", f"{bucket.root}/x.h5")
        assert done.returncode != 0 and key in done.stdout + done.stderr
        assert what == "document" or "unreadable parts: 1\n" in done.stdout
        done = as_nobody(mounts.HSIMAGE, "export", "--output", "/dev/null", f"{bucket.root}/x.h5")
        assert done.returncode != 0 and key in done.stderr


def test_2_too_few_descriptors(tmp_path):
    """The daemon has too few descriptors to examine a link. The result is right, or an error."""
    bucket = two_datasets(tmp_path / "bucket")
    for i in range(3):
        make_link(bucket, bucket.data.chunk_key((i,)), "inside")
        make_link(bucket, bucket.other.chunk_key((i,)), "inside")

    def export(limit):
        def few():
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

        out = tmp_path / f"out{limit}"
        done = mounts.run(mounts.HSIMAGE, "export", "--force", f"{bucket.root}/x.h5", out,
                          preexec_fn=few if limit else None)
        assert done.returncode == 0 or done.stderr
        return out.read_bytes() if done.returncode == 0 else None

    good = export(0)
    assert INTS.tobytes() in good
    times = 6 if sampling.EVERYTHING else 2
    results = [export(limit) for limit in times * list(range(5, 20))]
    assert all(r in (None, good) for r in results)
    assert None in results and good in results


# ---- 5. attributes of a document that could not be read ----

@pytest.mark.parametrize("code", ["EIO", "EACCES"])
def test_5_attribute_of_a_document_that_could_not_be_read(tmp_path, mount, code):
    bucket = two_datasets(tmp_path / "bucket")
    m = mount(bucket.root, f"debug_fault=fail:1+:{code}@x.h5/.domain.json")
    for name in ("user.hsds.owner", "user.hsds.root", "user.hsds.chunks"):
        with pytest.raises(OSError) as caught:
            os.getxattr(m.file("x.h5"), name)
        assert caught.value.errno == getattr(errno, code)
    with pytest.raises(OSError) as caught:
        os.listxattr(m.file("x.h5"))
    assert caught.value.errno == getattr(errno, code)
    with pytest.raises(OSError) as caught:
        os.getxattr(m.file("x.h5"), "user.other")
    assert caught.value.errno == errno.ENODATA


# ---- 6. errors while a domain is opened ----

STRINGS = [b"one", b"", b"three", b"four" * 100]


@pytest.mark.parametrize("code, large, filters", [
    ("EIO", False, [mkbucket.GZIP]), ("EIO", True, [mkbucket.GZIP]), ("EIO", True, []),
    ("EACCES", False, [mkbucket.GZIP]), ("EACCES", True, [mkbucket.GZIP]),
], ids=["io-listed", "io-unlisted", "io-plain", "refused-listed", "refused-unlisted"])
def test_6_error_while_a_domain_is_opened(tmp_path, mount, code, large, filters):
    """Each request of an open fails in turn. The error does not stay, and the file is the same
    whenever it can be opened."""
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        d = bucket.domain("x.h5")
        three_chunks(d)
        strings = d.dataset(d.root, "strings", mkbucket.vstring(), [4], [2], filters=filters)
        for i in range(2):
            body = b"".join(len(s).to_bytes(4, "little") + s for s in STRINGS[2 * i:2 * i + 2])
            strings.chunk((i,), zlib.compress(body) if filters else body)
        if large:
            make_large(d)
    storage = os.path.dirname(d.root.key)
    good = None
    for key in (None, strings.chunk_key((1,)), strings.key, f"{os.path.dirname(strings.key)}/",
                f"{storage}/", f"{storage}/d/", d.root.key, "x.h5/.domain.json"):
        # The look-up of the name requests the domain's document.
        nth = 2 if key == "x.h5/.domain.json" else 1
        fault = [f"debug_fault=fail:{nth}:{code}@{key}"] if key else []
        m = mount(bucket.root, "metadata_ttl=0", *fault)
        for last in (False, False, True):
            try:
                with open(m.file("x.h5"), "rb") as f:
                    body = f.read()
                with h5py.File(m.file("x.h5"), "r") as f:
                    assert list(f["strings"][()]) == STRINGS
                    assert (f["data"][()] == INTS).all()
                good = good or body
                # Without the listing the chunks are requested one by one.
                assert body == good or (key == f"{storage}/" and code == "EACCES" and not last)
            except OSError as e:
                number = getattr(errno, code)
                assert e.errno == number or f"errno = {number}" in str(e)
                assert not last
                if not filters and key == strings.chunk_key((1,)):
                    time.sleep(1.1)     # the failure of a chunk is cached for a second
        m.stop()


# ---- 7. bytes of two versions ----

@pytest.mark.sampled
@pytest.mark.parametrize("large", [False, True], ids=["listed", "unlisted"])
def test_7_chunk_that_is_written_while_it_is_read(tmp_path, large):
    """A chunk is overwritten in place, as HSDS does, so a read may see bytes of two versions."""
    size, piece = 64 << 20, 1 << 20
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        d = bucket.domain("x.h5")
        dataset = d.dataset(d.root, "data", mkbucket.INT32, [size // 4], [size // 4])
        dataset.chunk((0,), bytes(size))
        if large:
            make_large(d)
    stop = threading.Event()

    def write():
        with open(os.path.join(bucket.root, dataset.chunk_key((0,))), "r+b", buffering=0) as f:
            for i in itertools.count():
                for at in range(0, size, piece):
                    os.pwrite(f.fileno(), bytes([i % 256]) * piece, at)
                    if stop.is_set():
                        return

    def export():
        return mounts.run(mounts.HSIMAGE, "export", "--force", "--output", tmp_path / "out",
                          f"{bucket.root}/x.h5")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        done = export()
        assert done.returncode != 0 and dataset.chunk_key((0,)) in done.stderr
    finally:
        stop.set()
        writer.join()
    assert export().returncode == 0
