# SPDX-License-Identifier: Apache-2.0
"""Checks the validator of domains: it accepts what real versions of the service have written, and
misses nothing that the service requires."""
import base64
import copy
import json

import pytest

from hsds_validator import check_domain, domains

ROOT = "g-00112233-44556677-8899-aabbcc-ddeeff"
DSET = "d-00112233-44556677-0001-000002-000003"
ACL = {p: True for p in ("create", "read", "update", "delete", "readACL", "updateACL")}
INT = {"class": "H5T_INTEGER", "base": "H5T_STD_I32LE"}
DOCS = {
    "a.h5/.domain.json": {"root": ROOT, "owner": "me", "acls": {"me": ACL}, "created": 1.0,
                          "lastModified": 1.0},
    "db/00112233-44556677/.group.json": {
        "id": ROOT, "root": ROOT, "created": 1.0, "lastModified": 1.0,
        "links": {"x": {"id": DSET, "class": "H5L_TYPE_HARD", "created": 1.0},
                  "y": {"class": "H5L_TYPE_EXTERNAL", "h5path": "/z", "h5domain": "b.h5",
                        "created": 2.0}},
        "attributes": {"a": {"type": INT, "shape": {"class": "H5S_SIMPLE", "dims": [2]},
                             "value": [1, 2], "created": 1.0}}},
    "db/00112233-44556677/d/0001-000002-000003/.dataset.json": {
        "id": DSET, "root": ROOT, "created": 1.0, "lastModified": 1.0, "type": INT,
        "shape": {"class": "H5S_SIMPLE", "dims": [3], "maxdims": [0]}, "attributes": {},
        "creationProperties": {"layout": {"class": "H5D_CHUNKED", "dims": [2]},
                               "filters": [{"class": "H5Z_FILTER_SHUFFLE", "id": 2,
                                            "name": "shuffle"}]},
        "layout": {"class": "H5D_CHUNKED", "dims": [2]}},
}
DOMAIN, GROUP, DATASET = DOCS
REQUIRED = (
    [(DOMAIN, (m,)) for m in ("root", "owner", "acls")] +
    [(DOMAIN, ("acls", "me", p)) for p in ACL] +
    [(GROUP, (m,)) for m in ("id", "root", "created", "lastModified", "links", "attributes")] +
    [(GROUP, ("links", "x", m)) for m in ("id", "class")] +
    [(GROUP, ("links", "y", m)) for m in ("h5path", "h5domain")] +
    [(GROUP, ("attributes", "a", m)) for m in ("type", "shape", "value", "created")] +
    [(DATASET, (m,)) for m in ("id", "root", "created", "lastModified", "type", "shape",
                               "attributes")] +
    [(DATASET, ("shape", "class")), (DATASET, ("creationProperties", "filters", 0, "name"))])
WRONG = {
    "id of another object": (DATASET, ("id",), DSET[:-1] + "4"),
    "root that is no root": (DOMAIN, ("root",), ROOT[:-1] + "0"),
    "link to nothing": (GROUP, ("links", "x", "id"), DSET[:-1] + "4"),
    "unknown type": (DATASET, ("type",), {"class": "H5T_TIME"}),
    "unknown base": (DATASET, ("type", "base"), "H5T_STD_I24LE"),
    "array of compounds": (DATASET, ("type",), {"class": "H5T_ARRAY", "dims": [2], "base": {
        "class": "H5T_COMPOUND", "fields": [{"name": "a", "type": INT}]}}),
    "field name": (DATASET, ("type",), {"class": "H5T_COMPOUND",
                                        "fields": [{"name": "é", "type": INT}]}),
    "rank of chunks": (DATASET, ("layout", "dims"), [2, 2]),
    "maximum": (DATASET, ("shape", "maxdims"), [2]),
    "value": (GROUP, ("attributes", "a", "value"), [[1, 2]]),
    "equal times": (GROUP, ("links", "y", "created"), 1.0),
    "filter": (DATASET, ("creationProperties", "filters", 0, "id"), 32001),
}


def put(bucket, docs, chunks=(("0", 8), ("1", 8))):
    for key, doc in docs.items():
        path = bucket / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(doc))
    for name, size in chunks:
        (bucket / DATASET).with_name(name).write_bytes(bytes(size))
    return check_domain(bucket, "a.h5", strict=True)


def changed(key, path, change):
    docs = copy.deepcopy(DOCS)
    at = docs[key]
    for step in path[:-1]:
        at = at[step]
    change(at, path[-1])
    return docs


@pytest.mark.sampled
def test_accepts_real_domains(entry):
    if entry.collection.name == "hsds-v1":
        pytest.skip("the validator is for what an import puts: schema v2")
    assert check_domain(entry.collection.bucket.root, entry.path) == []


def test_accepts_a_whole_domain(tmp_path):
    assert put(tmp_path, DOCS) == []
    assert list(domains(tmp_path)) == ["a.h5"]


@pytest.mark.parametrize("key,path", REQUIRED, ids=str)
def test_misses_no_member(tmp_path, key, path):
    assert put(tmp_path, changed(key, path, lambda at, last: at.pop(last))) != []


@pytest.mark.parametrize("name", WRONG)
def test_finds_wrong_members(tmp_path, name):
    key, path, value = WRONG[name]
    assert put(tmp_path, changed(key, path, lambda at, last: at.__setitem__(last, value))) != []


@pytest.mark.parametrize("chunk", [("0", 7), ("2", 8), ("00", 8), ("0_0", 8)])
def test_finds_wrong_chunks(tmp_path, chunk):
    assert put(tmp_path, DOCS, [chunk]) != []


@pytest.mark.parametrize("value,sign,is_good", [
    (float("nan"), 0xff, True), (float("nan"), 0x7f, True), (1.5, 0xff, False),
    ("NaN", 0xff, False)])
def test_exact_values(tmp_path, value, sign, is_good):
    """A NaN with another sign is NaN for clients of the service, and exact in `hsmount`."""
    docs = copy.deepcopy(DOCS)
    exact = base64.b64encode(bytes(8) + bytes([0, 0, 0, 0, 0, 0, 0xf8, sign])).decode()
    docs[GROUP]["attributes"]["a"].update(
        type={"class": "H5T_FLOAT", "base": "H5T_IEEE_F64LE"}, value=[0.0, value],
        hsmount={"value": exact})
    assert (put(tmp_path, docs) == []) == is_good


FILE = {"class": "H5D_CONTIGUOUS_REF", "file_uri": "bucket/x.bin", "offset": 100, "size": 12}
REFERENCES = {
    "all is well": (FILE, 116, True),
    "the last chunk ends behind the file": (FILE, 115, False),
    "a file that is not there": ({**FILE, "file_uri": "other/x.bin"}, 1, True),
    "no file": ({k: v for k, v in FILE.items() if k != "file_uri"}, 116, False),
    "chunks": ({**FILE, "class": "H5D_CHUNKED_REF", "chunks": {"1": [100, 8]}}, 108, True),
    "a chunk behind the file": ({**FILE, "class": "H5D_CHUNKED_REF",
                                 "chunks": {"1": [100, 8]}}, 107, False),
    "a chunk outside of the extent": ({**FILE, "class": "H5D_CHUNKED_REF",
                                       "chunks": {"2": [100, 8]}}, 108, False),
    "no table": ({**FILE, "class": "H5D_CHUNKED_REF_INDIRECT", "chunk_table": DSET}, 116, False)}


@pytest.mark.parametrize("what", REFERENCES)
def test_references(tmp_path, what):
    layout, size, is_good = REFERENCES[what]
    docs = copy.deepcopy(DOCS)
    docs[DATASET]["creationProperties"] = {"layout": layout}
    (tmp_path / "bucket").mkdir()
    (tmp_path / "bucket/x.bin").write_bytes(bytes(size))
    assert (put(tmp_path / "bucket", docs, ()) == []) == is_good
