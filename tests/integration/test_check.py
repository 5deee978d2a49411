# SPDX-License-Identifier: Apache-2.0
"""hsimage check: real domains are sound, each defect is found where it is, nothing is written."""
import json
import os
import shutil
import stat
import zlib

import h5py
import numpy as np
import pytest

import defects
import mkbucket
from defects import DATA, EITHER, FILE, FINE, PART
from mkbucket import FLOAT64, GZIP, INT32, SHUFFLE, vlen, vstring
from mounts import HSIMAGE, run
from oracle import mount_name

MEMBERS = {"path": str, "result": str, "objects": int, "chunks": int, "bytes": int, "decoded": int,
           "decoded_bytes": int, "errors": int, "unchecked": int, "unfinished": int,
           "warnings": int, "notes": int, "omitted": int, "findings": list}
SEVERITIES = {"error": "errors", "unchecked": "unchecked", "unfinished": "unfinished",
              "warning": "warnings", "note": "notes"}


def check(*arguments, **more):
    """The results of hsimage check --json. Verifies that they agree with each other and with the
    exit status."""
    out = run(HSIMAGE, "check", "--json", *arguments, **more)
    assert not out.stderr, out.stderr
    results = [json.loads(line) for line in out.stdout.splitlines()]
    for r in results:
        assert {name: type(value) for name, value in r.items()} == MEMBERS
        for f in r["findings"]:
            assert set(f) == {"severity", "object", "key", "text"} and f["text"]
        for severity, total in SEVERITIES.items():
            assert r[total] == sum(f["severity"] == severity for f in r["findings"])
        assert r["result"] == ("damaged" if r["errors"] else
                               "unchecked" if r["unchecked"] else
                               "unfinished" if r["unfinished"] else "sound")
    assert out.returncode == any(r["result"] != "sound" for r in results), out
    return results


def check_one(*arguments, **more):
    results = check(*arguments, **more)
    assert len(results) == 1
    return results[0]


def texts(result, severity=None):
    return [f["text"] for f in result["findings"] if severity in (None, f["severity"])]


def snapshot(root):
    """Every entry with its type, size, times and bytes."""
    out = {}
    for directory, _, names in os.walk(root):
        for name in [""] + names:
            path = os.path.join(directory, name)
            st = os.lstat(path)
            body = open(path, "rb").read() if stat.S_ISREG(st.st_mode) else None
            out[path] = (st.st_mode, st.st_size, st.st_mtime_ns, st.st_ctime_ns, body)
    return out


# ---- real domains ----

@pytest.mark.sampled(by="everything")
@pytest.mark.parametrize("everything", [False, True])
def test_real_domains_are_sound(entry, everything):
    """The image of every domain scans back to its own objects, indexes and elements."""
    result = check_one(*["--all"] * everything, "-b", entry.collection.bucket.root,
                       mount_name(entry.path))
    assert result["result"] == "sound", result["findings"]
    assert result["decoded"] == result["chunks"] or not everything
    assert all(f["severity"] == "note" for f in result["findings"])


def test_a_whole_bucket(request):
    """One result for each domain, as many as the archive has."""
    for which in request.config.collections:
        results = check("-b", which.bucket.root)
        assert {r["path"].strip("/") for r in results} == set(map(mount_name, which.bucket.files()))


# ---- defects ----

@pytest.fixture(scope="module")
def damaged(tmp_path_factory):
    root = tmp_path_factory.mktemp("check") / "bucket"
    return root, defects.write(root)


@pytest.mark.parametrize("name", defects.CASES)
def test_each_defect_is_found(damaged, name):
    root, expected = damaged
    expect, key = expected[name]
    result = check_one(f"{root}/bad/{name}.h5")
    if expect == FINE:
        assert result["result"] == "sound", result["findings"]
    elif expect != EITHER:
        unknown = name == "chunk_blosc_codec_unknown"
        assert result["result"] == ("unchecked" if unknown else "damaged")
    if expect in (FILE, PART, DATA) and key:
        assert any(key in f["key"] + f["text"] for f in result["findings"]), result["findings"]
    if expect == DATA:
        assert any(f["object"] == "/bad" or f["key"] == key for f in result["findings"])


def test_neighbours_of_damage_are_sound(damaged):
    root, expected = damaged
    results = {r["path"]: r["result"] for r in check(root)}
    assert results.pop("/good.h5") == "sound"
    # A document that is damaged may lead to any storage.
    assert results.pop("/", "unchecked") == "unchecked"
    assert set(results) == {f"/bad/{name}.h5" for name in expected}
    assert "damaged" in results.values() and "sound" in results.values()


@pytest.fixture
def maker(tmp_path):
    with mkbucket.Maker(tmp_path / "bucket") as made:
        made.path = tmp_path / "bucket"
        yield made


def rich(bucket, path="x.h5"):
    """A domain with every kind of chunk: plain, filtered, of variable length, not stored."""
    d = bucket.domain(path)
    plain = d.dataset(d.root, "plain", INT32, [100, 10], [10, 10])
    for i in range(10):
        plain.chunk((i, 0), np.arange(100, dtype="<i4") + i)
    flat = d.dataset(d.root, "flat", FLOAT64, [1000], [100])
    for i in (0, 3, 9):
        flat.chunk((i,), np.arange(100, dtype="<f8"))
    names = d.dataset(d.root, "names", vstring(), [4], [2])
    names.chunk((1,), b"\x02\0\0\0hi\0\0\0\0")
    lists = d.dataset(d.root, "lists", vlen(INT32), [2], [2])
    lists.chunk((0,), b"\x04\0\0\0\7\0\0\0\0\0\0\0")
    d.root.attribute("a", INT32, [2], [1, 2])
    return d, plain


def test_a_rich_domain_is_sound(maker):
    rich(maker)
    maker.write()
    result = check_one("--all", maker.path / "x.h5")
    assert result["result"] == "sound", result["findings"]
    assert (result["objects"], result["chunks"], result["decoded"]) == (5, 15, 15)


def test_orphans_are_notes(maker):
    d, plain = rich(maker)
    lost = d.dataset(d.root, "lost", INT32, [10], [10])
    lost.chunk((0,), np.arange(10, dtype="<i4"))
    del d.root.doc["links"]["lost"]
    plain.chunk((10, 0), bytes(400))
    prefix = d.root.key.rsplit("/", 1)[0]
    maker.put(f"{prefix}/strange", b"12345")
    maker.write()
    result = check_one(maker.path / "x.h5")
    assert result["result"] == "sound"
    found = texts(result, "note")
    assert any(t.startswith("objects without a link: 1, with 2 keys") for t in found), found
    assert "keys that are no chunk within its extent: 1, 400 bytes" in found
    assert "keys that belong to no object: 1, 5 bytes" in found


def test_temporary_files_are_notes(maker):
    """Only a check of the whole bucket names them. A link to their directory changes nothing."""
    d, _ = rich(maker)
    maker.write()
    root = os.path.dirname(d.root.key)
    left = [f"{root}/.hsmount-tmp-0123456789abcdef-7", ".hsmount-tmp-\x1b[2J"]
    for path in left:
        (maker.path / path).write_bytes(b"12345")
        os.utime(maker.path / path, (0, 86400))
    os.symlink(root.split("/")[-1], maker.path / "db/link")
    found = [f for r in check(maker.path) for f in r["findings"] if "temporary" in f["text"]]
    assert sorted(f["key"] for f in found) == sorted(left)
    assert {f["severity"] for f in found} == {"note"}
    assert all(f["text"].startswith("a temporary file of 5 bytes, last written at 1970-01-02T")
               for f in found)
    assert "\x1b" not in run(HSIMAGE, "check", maker.path).stdout
    assert not any("temporary" in text for text in texts(check_one(maker.path / "x.h5")))


def test_a_stale_summary_is_a_note(maker):
    d, _ = rich(maker)
    prefix = d.root.key.rsplit("/", 1)[0]
    maker.put(f"{prefix}/.info.json", json.dumps(
        {"num_groups": 1, "num_datatypes": 0, "datasets": {}, "num_chunks": 15,
         "allocated_bytes": 7, "logical_bytes": 1, "metadata_bytes": 1,
         "lastModified": 1.0}).encode())
    maker.write()
    result = check_one(maker.path / "x.h5")
    assert result["result"] == "sound"
    found = texts(result, "note")
    assert len(found) == 2 and all("summary is stale" in t for t in found), found
    assert any("objects 1 instead of 5" in t for t in found), found


def test_a_dangling_soft_link_is_a_note(maker):
    d, _ = rich(maker)
    d.root.soft("nowhere", "/not/there")
    d.root.soft("somewhere", "/plain")
    d.root.soft("circle", "circle")
    maker.write()
    result = check_one(maker.path / "x.h5")
    assert result["result"] == "sound"
    assert sorted(texts(result)) == [
        'soft link "circle" leads to "circle", through more than 16 soft links, '
        'perhaps in a circle',
        'soft link "nowhere" leads to "/not/there", which does not exist']


def test_damage_outside_of_the_sample_needs_all(maker):
    d = maker.domain("x.h5")
    data = d.dataset(d.root, "data", INT32, [20000], [10], filters=[SHUFFLE, GZIP])
    for i in range(2000):
        data.chunk((i,), b"damaged" if 0 < i < 1999 and i % 2 else
                   zlib.compress(bytes(40)))
    maker.write()
    everything = check_one("--all", maker.path / "x.h5")
    assert (everything["decoded"], everything["errors"]) == (1001, 999)
    assert all(f["object"] == "/data" and f["key"].startswith(data.key.rsplit("/", 1)[0])
               for f in everything["findings"])
    sample = check_one(maker.path / "x.h5")
    assert sample["decoded"] + sample["errors"] == 64 and 10 < sample["errors"] < 54
    assert check_one(maker.path / "x.h5") == sample


# ---- what cannot be asked ----

@pytest.mark.parametrize("rule", ["fail:1+@*/d/*/0_0", "fail:1+@*.info.json"])
def test_a_request_that_fails_is_no_damage(maker, rule):
    d, _ = rich(maker)
    maker.put(f"{d.root.key.rsplit('/', 1)[0]}/.info.json", b"{}")
    maker.write()
    result = check_one("-o", f"debug_fault={rule}", maker.path / "x.h5")
    assert result["result"] == "unchecked", result["findings"]
    assert result["unchecked"] == 1


def test_a_domain_that_cannot_be_opened_is_unchecked(maker):
    rich(maker)
    rich(maker, "y.h5")
    maker.write()
    results = {r["path"]: r for r in
               check("-o", "debug_fault=fail:1+@x.h5/.domain.json", maker.path)}
    assert results["/x.h5"]["result"] == "unchecked"
    assert results["/y.h5"]["result"] == "sound"


def test_what_does_not_exist(tmp_path, maker):
    rich(maker)
    maker.write()
    out = run(HSIMAGE, "check", maker.path / "none.h5")
    assert out.returncode == 1 and not out.stdout and "none.h5" in out.stderr
    out = run(HSIMAGE, "check", tmp_path / "no.h5")
    assert out.returncode == 1 and not out.stdout and "no.h5" in out.stderr


# ---- output ----

def test_text(maker):
    d, plain = rich(maker)
    plain.chunk((3, 0), b"short")
    maker.domain("dir/y.h5")
    maker.write()
    out = run(HSIMAGE, "check", maker.path)
    key = plain.chunk_key((3, 0))
    assert out.returncode == 1 and not out.stderr
    assert out.stdout.splitlines() == [
        "sound: /dir/y.h5: objects 1, chunks 0, decoded 0",
        f"error: /x.h5: /plain: {key}: the chunk has 5 bytes instead of 400",
        "damaged: /x.h5: objects 5, chunks 15, decoded 14, errors 1",
        "domains 2, sound 1, damaged 1, unchecked 0, unfinished 0"]
    out = run(HSIMAGE, "check", maker.path / "dir" / "y.h5")
    assert out.returncode == 0
    assert out.stdout == "sound: /dir/y.h5: objects 1, chunks 0, decoded 0\n"


def test_names_are_escaped(maker):
    d = maker.domain("x.h5")
    d.root.soft("a\x1b[31m\"\n", "/no\x07where")
    maker.write()
    out = run(HSIMAGE, "check", maker.path / "x.h5")
    assert "\x1b" not in out.stdout and "\x07" not in out.stdout
    assert len(out.stdout.splitlines()) == 2
    result = check_one(maker.path / "x.h5")
    assert len(texts(result)) == 1


# ---- it never writes ----

def test_a_check_changes_nothing(maker):
    rich(maker)
    rich(maker, "deep/er/y.h5")
    maker.write()
    before = snapshot(maker.path)
    for arguments in ([], ["--all"]):
        check(*arguments, maker.path)
    assert snapshot(maker.path) == before


def test_a_bucket_without_write_permission(maker):
    rich(maker)
    maker.write()
    for directory, _, names in os.walk(maker.path, topdown=False):
        for name in names:
            os.chmod(os.path.join(directory, name), 0o444)
        os.chmod(directory, 0o555)
    try:
        assert check_one("--all", maker.path / "x.h5")["result"] == "sound"
    finally:
        for directory, _, _ in os.walk(maker.path):
            os.chmod(directory, 0o755)


# ---- local files ----

@pytest.fixture
def local(tmp_path):
    path = tmp_path / "local.h5"
    with h5py.File(path, "w") as f:
        f["group/flat"] = np.arange(1000)
        f.create_dataset("packed", data=np.arange(10000).reshape(100, 100), chunks=(10, 10),
                         compression="gzip", shuffle=True, fletcher32=True)
        f.create_dataset("names", data=["one", "two"], dtype=h5py.string_dtype())
        f["group"].attrs["title"] = "a title"
    return path


def test_a_sound_file(local):
    before = local.read_bytes()
    result = check_one(local)
    assert result["result"] == "sound", result["findings"]
    assert result["path"] == str(local)
    assert (result["objects"], result["chunks"]) == (5, 102)
    assert result["decoded"] == 66
    assert check_one("--all", local)["decoded"] == 102
    assert local.read_bytes() == before


def test_a_damaged_chunk_of_a_file(local):
    with h5py.File(local, "r") as f:
        info = f["packed"].id.get_chunk_info(37)
    body = bytearray(local.read_bytes())
    body[info.byte_offset + 8] ^= 0xff
    local.write_bytes(body)
    result = check_one("--all", local)
    assert result["result"] == "damaged" and result["errors"] == 1
    finding = result["findings"][0]
    assert finding["object"] == "/packed" and str(info.byte_offset) in finding["text"]


def test_a_damaged_header_of_a_file(local):
    with h5py.File(local, "r") as f:
        address = h5py.h5o.get_info(f["group/flat"].id).addr
    body = bytearray(local.read_bytes())
    body[address:address + 4] = b"\xff" * 4
    local.write_bytes(body)
    result = check_one("--all", local)
    assert result["result"] == "damaged"
    assert any(f["object"].startswith("/group") for f in result["findings"]), result["findings"]
    assert result["decoded"] >= 101


@pytest.mark.parametrize("keep", [0.9, 0.5, 0.1, 0.01])
def test_a_truncated_file(local, keep):
    body = local.read_bytes()
    local.write_bytes(body[:int(len(body) * keep)])
    assert check_one("--all", local)["result"] == "damaged"


@pytest.mark.parametrize("body", [b"", b"text\n", bytes(10000), b"\x89HDF\r\n\x1a\n"])
def test_not_an_hdf5_file(tmp_path, body):
    path = tmp_path / "file"
    path.write_bytes(body)
    result = check_one(path)
    assert result["result"] == "damaged" and result["errors"] == 1 and result["objects"] == 0


def test_a_file_that_cannot_be_read(tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    out = run(HSIMAGE, "check", path)
    assert out.returncode == 1 and "fifo" in out.stderr and not out.stdout


def test_an_exported_domain_is_a_sound_file(maker, tmp_path):
    rich(maker)
    maker.write()
    run(HSIMAGE, "export", maker.path / "x.h5", tmp_path / "copy.h5", check=True)
    assert check_one("--all", tmp_path / "copy.h5")["result"] == "sound"
    shutil.rmtree(maker.path)
