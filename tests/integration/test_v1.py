# SPDX-License-Identifier: Apache-2.0
"""Domains of schema v1. test_fidelity.py compares those that the service wrote with the independent
reader; here are the requests that they take, forms that are not in that bucket, and defects."""
import errno
import json
import os
import shutil
import struct
import zlib

import h5py
import numpy as np
import pytest

import compare
import mkbucket
import oracle
import rwmounts
from mounts import HSIMAGE, difference, run
from s3liar import Liar

SHUFFLED = {"filters": [{"class": "H5Z_FILTER_SHUFFLE", "id": 2},
                        {"class": "H5Z_FILTER_DEFLATE", "id": 1, "level": 4}]}


def items(*texts):
    return b"".join(struct.pack("<i", len(t)) + t for t in texts)


def make(root):
    """A bucket with domains of both versions."""
    with mkbucket.Maker(root) as bucket:
        bucket.folder("home")
        d = bucket.domain("home/forms.h5", v1=True)
        numbers = np.arange(64, dtype="<i4")
        ds = d.dataset(d.root, "shuffle", mkbucket.INT32, [64], [64], **SHUFFLED)
        ds.chunk((0,), zlib.compress(numbers.tobytes()))    # never shuffled in v1
        ds.doc.update(acls={"maker": {"read": True}}, stats={"min": 0})
        ds = d.dataset(d.root, "partitioned", mkbucket.INT32, [40, 40], [8, 8], fillValue=-1)
        ds.doc["layout"]["partition_count"] = 7
        for index in ((0, 0), (4, 3), (2, 1)):
            ds.chunk(index, np.full(64, sum(index), "<i4"))
        ds = d.dataset(d.root, "json", mkbucket.vstring("UTF8"), [2, 4], [1, 4])
        ds.chunk((0, 0), json.dumps([["a", "", "äö", "x" * 91]]).encode())
        ds.chunk((1, 0), items(b"b" * 91, b"", b"c", b"[\"d\"]"))
        ds = d.dataset(d.root, "lists", mkbucket.vlen(mkbucket.INT16), [3], [3])
        ds.chunk((0,), b"[[1, 2], [], [3]]")
        d.root.doc["links"]["out"] = {"class": "H5L_TYPE_EXTERNAL", "h5path": "/data",
                                      "domain": "new.h5", "created": 5}
        group = d.group(d.root, "group")
        group.doc.update(created=1700000007, lastModified=1700000008)
        group.attribute("reference", {"class": "H5T_REFERENCE", "base": "H5T_STD_REF_OBJ"}, [],
                        f"datasets/{ds.id}")
        v2 = bucket.domain("home/new.h5")
        v2.dataset(v2.root, "data", mkbucket.INT32, [4]).chunk((0,), bytes(range(16)))
        deep = bucket.domain("home/deep", v1=True)
        group = deep.root
        for level in range(12):
            group = deep.group(group, f"level{level}")
        deep.dataset(group, "data", mkbucket.INT32, [4]).chunk((0,), bytes(range(16)))
        bucket.put("headnode", b"{}")
        bucket.put("topleveldomains.txt", b"/home\n")
        bucket.put("notes.txt", b"plain")
    return bucket


@pytest.fixture(scope="module")
def bucket(tmp_path_factory):
    return make(tmp_path_factory.mktemp("v1") / "bucket")


@pytest.fixture
def own(tmp_path):
    return make(tmp_path / "bucket")


def test_forms(bucket, mount):
    m = mount(bucket.root)
    stored = oracle.Bucket(bucket.root)
    for path in ("home/forms.h5", "home/new.h5", "home/deep"):
        shown = m.file(oracle.mount_name(path))
        assert compare.differences(stored, path, shown) == []
        out = run("h5dump", shown, check=True)
        assert not out.stderr
    with h5py.File(m.file("home/forms.h5")) as f:
        assert list(f["shuffle"]) == list(range(64))
        assert f["partitioned"][33, 25] == 7 and f["partitioned"][9, 9] == -1
        assert f["json"].asstr()[0, 2] == "äö" and f["json"][1, 3] == b'["d"]'
        assert list(f["lists"][0]) == [1, 2]
        assert list(f["out"]) == [0x03020100, 0x07060504, 0x0b0a0908, 0x0f0e0d0c]
        assert f[f["group"].attrs["reference"]].name == "/lists"
    assert "forms" not in m.log(), m.log()


def test_names(bucket, mount):
    m = mount(bucket.root)
    assert sorted(os.listdir(m.path)) == ["home", "notes.txt"]
    assert sorted(os.listdir(m.file("home"))) == ["deep.h5", "forms.h5", "new.h5"]
    for hidden in ("headnode", "topleveldomains.txt", bucket.domains[0].root.key):
        assert not os.path.exists(m.file(hidden))


def test_a_domain_without_extension_and_its_catalogs(own, mount):
    """The catalogs beside the document do not make the domain a directory."""
    own.domains[2].catalog()
    own.put(f"home/deep/.{own.domains[0].objects[1].id}.chunks.txt", b"0 etag 1 2\n")
    m = mount(own.root)
    assert sorted(os.listdir(m.file("home"))) == ["deep.h5", "forms.h5", "new.h5"]
    assert os.path.isfile(m.file("home/deep"))
    own.put("home/deep/more/x", b"x")
    m = mount(own.root)
    assert os.listdir(m.file("home/deep")) == ["more"]


def test_data_in_an_hdf5_file(tmp_path, mount):
    """A contiguous reference, and one with a chunk table to which no link leads."""
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        source = os.path.join(bucket.root, "source.h5")
        with h5py.File(source, "w") as f:
            whole = f.create_dataset("whole", data=np.arange(1000, dtype="<i4"))
            chunks = f.create_dataset("chunks", data=np.arange(1000, dtype="<i4"), chunks=(100,),
                                      shuffle=True, compression="gzip")
            infos = [chunks.id.get_chunk_info(i) for i in range(10)]
            offset, size = whole.id.get_offset(), whole.id.get_storage_size()
        d = bucket.domain("ref.h5", v1=True)
        ds = d.dataset(d.root, "whole", mkbucket.INT32, [1000], [1000])
        uri = {"file_uri": "bucket/source.h5"}
        ds.doc["creationProperties"]["layout"] = {"class": "H5D_CONTIGUOUS_REF", "offset": offset,
                                                  "size": size, **uri}
        table = d.dataset(None, None, {"class": "H5T_COMPOUND", "fields": [
            {"name": "offset", "type": mkbucket.INT64}, {"name": "size", "type": mkbucket.INT32}]},
            [10])
        table.chunk((0,), b"".join(struct.pack("<qi", i.byte_offset, i.size) for i in infos))
        ds = d.dataset(d.root, "chunks", mkbucket.INT32, [1000], [100], **SHUFFLED)
        ds.doc["creationProperties"]["layout"] = {
            "class": "H5D_CHUNKED_REF_INDIRECT", "dims": [100], "chunk_table": table.id, **uri}
    m = mount(bucket.root)
    with h5py.File(m.file("ref.h5")) as f:
        assert sorted(f) == ["chunks", "whole"]
        for name in f:
            assert list(f[name]) == list(range(1000))
    done = run(HSIMAGE, "-b", bucket.root, "check", "--all", "ref.h5")
    assert done.returncode == 0 and "sound: /ref.h5" in done.stdout, done.stdout


# ---- requests ----

def of_root(request):
    return request.is_list and request.query.get("prefix", "") == ""


def test_the_root_is_not_listed(bucket, tmp_path):
    """Looking up and opening domains of v1 sends no listing that could show hashed keys."""
    with Liar(bucket.root) as server:
        env = server.environment()
        run(HSIMAGE, "-b", "s3://bucket", "info", "home/new.h5", env=env, check=True)
        mounting = sum(map(of_root, server.requests))
        for name in ("home/forms.h5", "home/deep.h5", "home/absent.h5", "home"):
            server.requests.clear()
            run(HSIMAGE, "-b", "s3://bucket", "info", name, env=env)
            assert sum(map(of_root, server.requests)) == mounting
        server.requests.clear()
        out = tmp_path / "forms.h5"
        run(HSIMAGE, "-b", "s3://bucket", "export", "--force", "home/forms.h5", out, env=env,
            check=True)
        assert sum(map(of_root, server.requests)) == mounting
        assert not server.failures
    assert compare.differences(oracle.Bucket(bucket.root), "home/forms.h5", out) == []


def opened(m, name):
    before = m.counts()
    os.close(os.open(m.file(name), os.O_RDONLY))
    return difference(before, m.counts())


def test_requests_of_an_open(own, mount):
    m = mount(own.root, "debug_count")
    os.stat(m.file("home"))
    cost = opened(m, "home/deep.h5")
    # The look-up, the document, 14 objects and 3 catalogs; each link was followed.
    assert cost["gets"] <= 24 and cost["lists"] <= 2
    own.domains[0].catalog(*(f"d-{i:08x}-1111-2222-3333-444455556666" for i in range(20)))
    cost = opened(m, "home/forms.h5")
    # 6 objects, 20 that do not exist, 3 catalogs, 4 chunks of variable length.
    assert 33 <= cost["gets"] <= 42 and cost["lists"] <= 2
    again = opened(m, "home/forms.h5")
    assert again["gets"] <= 2 and again["heads"] <= 6 and again["lists"] <= 1


def test_changes(own, mount):
    m = mount(own.root)
    with h5py.File(m.file("home/forms.h5")) as f:
        assert "added" not in f
    d = own.domains[0]
    d.dataset(d.root, "added", mkbucket.INT32, [2]).chunk((0,), bytes(8))
    own.write()
    with h5py.File(m.file("home/forms.h5")) as f:
        assert list(f["added"]) == [0, 0]
    assert compare.differences(oracle.Bucket(own.root), "home/forms.h5",
                               m.file("home/forms.h5")) == []


# ---- catalogs and defects ----

def test_catalogs_decide_nothing(own, mount):
    """Unreachable, damaged and foreign objects that only a catalog names change no byte."""
    d = own.domains[0]
    plain = mount(own.root)
    with open(plain.file("home/forms.h5"), "rb") as f:
        before = f.read()
    hidden = d.dataset(None, None, mkbucket.INT32, [2])
    broken = d.group()
    broken.raw = b"{"
    d.catalog(own.domains[2].objects[3].id, own.domains[1].objects[1].id,
              "g-00000000-0000-0000-0000-000000000000")
    own.write()
    m = mount(own.root)
    with open(m.file("home/forms.h5"), "rb") as f:
        assert f.read() == before
    assert hidden.id not in m.log() and broken.id not in m.log(), m.log()
    own.put("home/forms.h5/.groups.txt", os.urandom(100_000))
    own.put("home/forms.h5/.datasets.txt", b"")
    m = mount(own.root)
    with open(m.file("home/forms.h5"), "rb") as f:
        assert f.read() == before


def test_ids_of_the_other_version(own, mount):
    old, new = own.domains[0], own.domains[1]
    old.root.link("foreign", new.objects[1])
    new.root.link("foreign", old.objects[1])
    own.write()
    m = mount(own.root)
    for path, names in (("home/forms.h5", 6), ("home/new.h5", 1)):
        with h5py.File(m.file(path)) as f:
            assert "foreign" not in f and len(f) == names
    log = [line for line in m.log().splitlines() if "foreign" in line]
    assert len(log) == 2
    assert f"{new.objects[1].id} is an id of schema v2 in a domain of schema v1" in log[0]
    assert f"{old.objects[1].id} is an id of schema v1 in a domain of schema v2" in log[1]


def test_a_document_with_the_id_of_the_other_version(own, mount):
    d = own.domains[0]
    d.objects[1].doc["id"] = own.domains[1].objects[1].id
    own.write()
    m = mount(own.root)
    with h5py.File(m.file("home/forms.h5")) as f:
        assert "shuffle" not in f and list(f["lists"][2]) == [3]
    assert m.log().count("the object is left out") == 1


def test_a_chunk_that_is_damaged_text(own, mount):
    d = own.domains[0]
    d.objects[3].chunk((0, 0), b'[["a", 1, [], {}]]')
    m = mount(own.root)
    with h5py.File(m.file("home/forms.h5")) as f:
        with pytest.raises(OSError):
            f["json"][0]
        assert list(f["lists"][0]) == [1, 2]
    assert "the chunk is JSON text" in m.log()


# ---- programs ----

def test_check(own):
    done = run(HSIMAGE, "-b", own.root, "check", "--all", "home")
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("objects without a link are not searched for") == 2
    assert "domains 3, sound 3" in done.stdout
    assert "/home/forms.h5: objects 6, chunks 7, decoded 7" in done.stdout
    own.domains[0].objects[2].chunk((0, 0), b"short")
    for options in ([], ["--all"]):
        done = run(HSIMAGE, "-b", own.root, "check", *options, "home/forms.h5")
        assert done.returncode == 1 and "damaged: /home/forms.h5" in done.stdout
        assert own.domains[0].objects[2].chunk_key((0, 0)) in done.stdout


def test_info(bucket):
    done = run(HSIMAGE, "-b", bucket.root, "info", "home/forms.h5", check=True)
    assert f"root group: {bucket.domains[0].root.id}" in done.stdout
    assert "no listing shows the keys of the domain" in done.stdout
    assert "/json: variable-length string [2,4], chunks [1,4], 2 of 2 written" in done.stdout


def test_imports_are_of_v2(own, tmp_path):
    shutil.rmtree(os.path.join(own.root, "db"))     # a bucket of v1 only
    source = tmp_path / "x.h5"
    with h5py.File(source, "w") as f:
        f["data"] = np.arange(10)
    run(HSIMAGE, "-b", own.root, "import", source, "home/x.h5", check=True)
    done = run(HSIMAGE, "-b", own.root, "import", "--replace", source, "home/forms.h5", check=True)
    assert "storage of the replaced domain is kept" in done.stdout + done.stderr
    bucket = oracle.Bucket(own.root)
    for path in ("home/x.h5", "home/forms.h5"):
        assert not oracle.is_v1(bucket.domain(path).root)
        found = compare.differences(bucket, path, source)
        assert [line for line in found if "creation order" not in line] == []
    assert oracle.is_v1(bucket.domain("home/deep").root)


def test_domains_are_replaced_and_not_changed(own, tmp_path):
    """Ids and keys of this schema are only read."""
    with rwmounts.RwMount(own.root, tmp_path) as m:
        with pytest.raises(OSError) as raised:
            os.open(m.file("home/forms.h5"), os.O_RDWR)
        assert raised.value.errno == errno.EROFS
        with h5py.File(m.file("home/forms.h5"), "w") as f:
            f["a"] = [1, 2]
        with h5py.File(m.file("home/forms.h5"), "r+") as f:
            f["a"][0] = 3
            assert list(f["a"]) == [3, 2]
