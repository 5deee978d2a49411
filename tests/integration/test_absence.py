# SPDX-License-Identifier: Apache-2.0
"""A chunk, an attribute or a name is shown as absent only where the store has proved that it is not
there. Each test is named after a way in which stored data once read as fill values, or an attribute
that could not be read as one that does not exist."""
import errno
import json
import os
import re
import subprocess
import time

import h5py
import numpy as np
import pytest

import mkbucket
import mounts
import oracle

# Chunks of whole pages: the kernel reads no other bytes with them.
EACH = 4096
INTS = np.arange(3 * EACH, dtype="<i4")


def three_chunks(domain, name="data", skip=(), each=EACH, **properties):
    """A dataset of three chunks, whose elements are their own numbers."""
    dataset = domain.dataset(domain.root, name, mkbucket.INT32, [3 * each], [each], **properties)
    for i in range(3):
        if i not in skip:
            dataset.chunk((i,), np.arange(i * each, (i + 1) * each, dtype="<i4"))
    return dataset


def make_large(domain, keys=1100):
    """More keys than one page of a listing holds, in a dataset of their own."""
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
    """h5dump reports an error, and no value. (Of a part it shows nothing, and does not say why.)"""
    done = h5dump(path, dataset, *options)
    assert done.returncode != 0 or options, done.stdout[:1000]
    assert not shown(done), done.stdout[:1000]


def assert_reads(path, dataset, values=INTS):
    done = h5dump(path, dataset)
    assert done.returncode == 0, done.stderr
    same = shown(done) == [str(v) for v in values]
    assert same, done.stdout[:1000]


def read_errno(f, dataset, at):
    """What a read with h5py fails with."""
    with pytest.raises(OSError) as caught:
        f[dataset][at]
    return int(re.search(r"errno = (\d+)", str(caught.value))[1])


def verify(bucket, path, failures, env=None):
    """What `hsimage info --verify` says."""
    done = mounts.run(mounts.HSIMAGE, "info", "--verify", f"{bucket}/{path}", env=env)
    assert f"{failures} failures" in done.stdout, done.stdout + done.stderr
    assert (done.returncode != 0) == (failures > 0)
    return done.stdout


# ---- 1. data in another file ----

REFS = {
    "contiguous": {"class": "H5D_CONTIGUOUS_REF", "file_uri": "a/b.h5", "offset": 4016,
                   "size": 12 * EACH},
    "chunked": {"class": "H5D_CHUNKED_REF", "file_uri": "a/b.h5", "dims": [EACH],
                "chunks": {"0": [4016, 4 * EACH], "1": [4016, 4 * EACH]}},
    "indirect": {"class": "H5D_CHUNKED_REF_INDIRECT", "file_uri": "a/b.h5", "dims": [EACH],
                 "chunk_table": "d-00000000-00000000-0000-000000-000000"},
}


@pytest.mark.parametrize("large", [False, True], ids=["listed", "unlisted"])
def test_1_datasets_of_a_ref_layout(tmp_path, mount, large):
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
            "chunklocator", "--h5path=/x", "--filepath=a/b.h5"])
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


def datasets(root, path):
    """The datasets of a domain as their documents tell: (path in the file, document)."""
    def document(key):
        with open(os.path.join(root, key), "rb") as f:
            return json.load(f)

    def below(group, name):
        for link, target in document(oracle.document_key(group))["links"].items():
            if target.get("class") != "H5L_TYPE_HARD":
                continue
            if target["id"].startswith("g-"):
                yield from below(target["id"], f"{name}/{link}")
            elif target["id"].startswith("d-"):
                yield f"{name}/{link}", document(oracle.document_key(target["id"]))

    return list(below(document(f"{path}/.domain.json")["root"], ""))


def test_1_datasets_that_the_service_linked(tmp_path, mount):
    """Domains of the real service. (Their small datasets share pages, and so failures.)"""
    archive = os.path.join(os.path.dirname(mounts.TREE), "shared", "data", "hsds-links.tar.xz")
    if not os.path.exists(archive):
        pytest.skip("the archive is not there")
    subprocess.run(["tar", "-xJf", archive, "-C", tmp_path], check=True, timeout=60)
    bucket = oracle.Bucket(os.path.join(tmp_path, "links"))
    m, refs = mount(bucket.root), 0
    for path in bucket.files():
        name = path if "." in os.path.basename(path) else f"{path}.h5"
        with h5py.File(m.file(name), "r") as f:
            for name, doc in datasets(bucket.root, path):
                first = (0,) * len(f[name].shape)
                if "_REF" in repr(doc) or "chunklocator" in repr(doc):
                    for at in (first, ()):
                        with pytest.raises(OSError):
                            f[name][at]
                    refs += "_REF" in repr(doc)
    assert refs > 30


# ---- 4. chunks that go while the file is open ----

FAR = 1 << 18       # elements of a chunk: more than the kernel reads ahead


@pytest.fixture
def large(tmp_path):
    """A bucket with a domain of more keys than a page holds, and its dataset."""
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
        assert (f["many"][()] == 1).all()       # the others are as they were
    with h5py.File(path, "r") as f:
        assert sorted(f) == ["many"]


def test_4_chunk_that_is_deleted_when_its_dataset_changes(large, mount):
    """The document is looked at again once in a second; what it said is for the snapshot's life."""
    bucket, dataset = large
    m = mount(bucket.root, "debug_count", "cache_size=0")
    path = m.file("x.h5")
    with h5py.File(path, "r") as f:
        assert f["data"][2 * FAR] == -1
        heads = m.counts()["heads"]
        remove(bucket, dataset.chunk_key((1,)))
        bucket.put(dataset.key, json.dumps(dataset.doc, indent=1).encode())
        time.sleep(1.1)
        assert read_errno(f, "data", FAR) == errno.ESTALE
        assert m.counts()["heads"] == heads + 1
        bucket.put(dataset.chunk_key((1,)), np.arange(FAR, 2 * FAR, dtype="<i4").tobytes())
        assert read_errno(f, "data", FAR) == errno.ESTALE
    with h5py.File(path, "r") as f:
        assert (f["data"][:2 * FAR] == np.arange(2 * FAR)).all()


def test_4_absent_chunks_cost_one_request_a_second(large, mount):
    """A chunk that is not stored is one request, and the dataset's document one a second."""
    bucket, dataset = large
    m = mount(bucket.root, "debug_count")
    with h5py.File(m.file("x.h5"), "r") as f:
        before, started = m.counts(), time.monotonic()
        assert (f["data"][2 * FAR:] == -1).all()
        after, seconds = m.counts(), time.monotonic() - started
    assert after["heads"] - before["heads"] <= 1 + seconds
    assert after["lists"] == before["lists"]
