# SPDX-License-Identifier: Apache-2.0
"""Damaged domains, each named after its defect, for tests of malformed input.

Each case makes one domain `bad/<name>.h5` with a valid dataset "ok" (the integers 0 … 9), damages
one thing, and returns the expected result:

  FILE   the file is listed, but opening it fails with EIO
  PART   the file opens, "ok" is correct, the object (or attribute) "bad" is left out
  DATA   the file opens, "ok" is correct, reading "bad" fails
  FINE   this is not damage: both exist
  EITHER "ok" is correct; "bad" may exist or not

and the key of the object that `hsimage info` must name (None: it reports no problem, or none of an
object).
"""
import json
import struct
import zlib

import numpy as np

import mkbucket
from mkbucket import FLOAT64, GZIP, INT32, SHUFFLE, vlen, vstring

FILE, PART, DATA, FINE, EITHER = "FILE", "PART", "DATA", "FINE", "EITHER"
CASES = {}
OK = np.arange(10, dtype="<i4")


def case(expect, name=None):
    def register(function):
        CASES[name or function.__name__] = (expect, function)
        return function
    return register


def make(bucket, name):
    """Makes the domain. Returns the expectation and the key that info must name, or None."""
    expect, function = CASES[name]
    d = bucket.domain(f"bad/{name}.h5")
    d.dataset(d.root, "ok", INT32, [10], [10]).chunk((0,), OK)
    return expect, function(d)


def bad_dataset(d, type_=INT32, dims=(10,), chunk=None, **properties):
    return d.dataset(d.root, "bad", type_, list(dims), chunk, **properties)


# ---- documents ----

@case(FILE)
def domain_json_truncated(d):
    d.raw = json.dumps(d.doc).encode()[:40]
    return f"{d.path}/.domain.json"


@case(FILE)
def domain_json_is_an_array(d):
    d.raw = b"[1, 2]"
    return f"{d.path}/.domain.json"


@case(FILE)
def domain_root_is_not_an_id(d):
    d.doc["root"] = "../../etc/passwd"
    return f"{d.path}/.domain.json"


@case(FILE)
def domain_root_is_a_dataset(d):
    d.doc["root"] = d.objects[1].id
    return f"{d.path}/.domain.json"


@case(FILE)
def root_json_missing(d):
    d.root.missing = True
    return d.root.key


@case(FILE)
def root_json_truncated(d):
    d.root.raw = json.dumps(d.root.doc).encode()[:-20]
    return d.root.key


@case(FILE)
def root_json_empty(d):
    d.root.raw = b""
    return d.root.key


@case(FILE)
def root_json_invalid_utf8(d):
    d.root.raw = json.dumps(d.root.doc).encode().replace(b'"ok"', b'"\xff\xfe"')
    return d.root.key


@case(FILE)
def root_json_nested_100000_deep(d):
    d.root.raw = b"[" * 100000
    return d.root.key


@case(FILE)
def root_json_has_another_id(d):
    d.root.doc["id"] = d.objects[1].id
    return d.root.key


@case(PART)
def dataset_json_truncated(d):
    bad = bad_dataset(d)
    bad.raw = json.dumps(bad.doc).encode()[:100]
    return bad.key


@case(PART)
def dataset_json_empty(d):
    bad = bad_dataset(d)
    bad.raw = b""
    return bad.id


@case(PART)
def dataset_json_missing(d):
    bad = bad_dataset(d)
    bad.missing = True
    return bad.id


@case(PART)
def dataset_has_another_id(d):
    bad = bad_dataset(d)
    bad.doc["id"] = d.objects[1].id
    return bad.key


@case(PART)
def dataset_has_another_root(d):
    bad = bad_dataset(d)
    bad.doc["root"] = "g-00000000-11111111-8888-888899-999999"
    return bad.key


@case(PART)
def dataset_without_type(d):
    bad = bad_dataset(d)
    del bad.doc["type"]
    return bad.key


@case(PART)
def dataset_without_shape(d):
    bad = bad_dataset(d)
    del bad.doc["shape"]
    return bad.key


@case(PART)
def group_json_is_a_number(d):
    bad = d.group(d.root, "bad")
    bad.raw = b"17"
    return bad.key


# ---- shapes and layouts ----

def shaped(name, expect=PART, dims=(10,), chunk=None, maxdims=None):
    @case(expect, name)
    def with_shape(d):
        bad = d.dataset(d.root, "bad", INT32, dims, chunk, maxdims)
        return bad.key


shaped("dims_product_overflows", dims=[1 << 62, 1 << 62], chunk=[10, 10])
shaped("dims_negative", dims=[-1], chunk=[10])
shaped("dims_not_integers", dims=[2.5], chunk=[10])
shaped("dims_are_text", dims=["ten"], chunk=[10])
shaped("dims_beyond_64_bits", dims=[1 << 70], chunk=[10])
shaped("rank_33", dims=[1] * 33, chunk=[1] * 33)
shaped("chunk_dim_zero", chunk=[0])
shaped("chunk_dim_negative", chunk=[-10])
shaped("chunk_rank_differs", chunk=[5, 2])
shaped("chunk_of_2_to_the_40_elements", dims=[1 << 41], chunk=[1 << 40])
shaped("chunk_size_product_overflows", dims=[1 << 31] * 2, chunk=[(1 << 32) - 1] * 2)
shaped("max_dims_below_dims", dims=[10], maxdims=[5])
shaped("max_dims_rank_differs", dims=[10], maxdims=[10, 10])


@case(FINE)
def layout_missing(d):
    """The dataset has no stored chunks: all elements have the fill value."""
    bad = bad_dataset(d)
    del bad.doc["layout"]
    del bad.doc["creationProperties"]


@case(PART)
def filters_1000_in_a_pipeline(d):
    return bad_dataset(d, filters=[GZIP] * 1000).key


# ---- types ----

def typed(name, type_, expect=PART):
    @case(expect, name)
    def with_type(d):
        bad = bad_dataset(d)
        bad.doc["type"] = type_
        return bad.key


typed("type_class_unknown", {"class": "H5T_QUATERNION"})
typed("type_base_unknown", {"class": "H5T_INTEGER", "base": "H5T_STD_I33LE"})
typed("type_is_null", None)
typed("string_length_zero", {**vstring(), "length": 0})
typed("string_length_negative", {**vstring(), "length": -5})
typed("string_length_absurd", {**vstring(), "length": 1 << 60})
typed("opaque_size_absurd", {"class": "H5T_OPAQUE", "size": 1 << 60, "tag": ""})
typed("compound_without_fields", {"class": "H5T_COMPOUND", "fields": []})
typed("compound_field_names_twice", {"class": "H5T_COMPOUND", "fields": [
    {"name": "a", "type": INT32}, {"name": "a", "type": INT32}]})
typed("enum_value_out_of_range", {"class": "H5T_ENUM", "base": INT32, "mapping": {"A": 1 << 40}},
      EITHER)
typed("enum_of_floats", {"class": "H5T_ENUM", "base": FLOAT64, "mapping": {"A": 1}})
typed("array_dims_overflow", {"class": "H5T_ARRAY", "dims": [1 << 31] * 3, "base": INT32})
typed("array_rank_33", {"class": "H5T_ARRAY", "dims": [1] * 33, "base": INT32})
typed("array_dim_zero", {"class": "H5T_ARRAY", "dims": [0], "base": INT32})


@case(PART)
def type_tree_10000_deep(d):
    bad = bad_dataset(d)
    body = json.dumps(bad.doc)
    deep = '{"class": "H5T_ARRAY", "dims": [1], "base": ' * 10000 + json.dumps(INT32) + "}" * 10000
    bad.raw = body.replace(json.dumps(INT32), deep, 1).encode()
    return bad.key


@case(PART)
def type_tree_100_deep(d):
    bad = bad_dataset(d)
    for _ in range(100):
        bad.doc["type"] = {"class": "H5T_VLEN", "base": bad.doc["type"]}
    return bad.key


# ---- links ----

@case(FINE)
def groups_in_a_cycle(d):
    a = d.group(d.root, "bad")
    b = d.group(a, "b")
    b.link("a", a)
    b.link("self", b)
    b.link("root", d.root)


def linked(name, expect, link_name="bad", **members):
    @case(expect, name)
    def with_link(d):
        d.root.doc["links"][link_name] = {"class": "H5L_TYPE_HARD", "created": 1.0,
                                          "id": d.objects[1].id, **members}
        return d.root.key if expect == PART else None


linked("link_name_with_slash", EITHER, "bad/bad")
linked("link_name_with_nul", EITHER, "bad\0bad")
linked("link_name_empty", EITHER, "")
linked("link_name_is_a_dot", PART, ".")
linked("link_name_lone_surrogate", EITHER, "bad\ud800")
linked("link_name_escaped_byte", EITHER, "bad\udce9")
linked("link_name_of_100000_bytes", EITHER, "b" * 100000)
linked("link_without_id", PART, id=None)
linked("link_id_is_a_path", PART, id="../../../etc/passwd")
linked("link_to_another_domain", PART, id="d-12345678-9abcdef0-1234-567890-abcdef")
linked("link_class_unknown", PART, **{"class": "H5L_TYPE_WORMHOLE"})
linked("soft_link_without_path", PART, **{"class": "H5L_TYPE_SOFT"})
linked("external_link_without_domain", PART, **{"class": "H5L_TYPE_EXTERNAL", "h5path": "/x"})


@case(FINE)
def link_to_nothing_soft(d):
    d.root.soft("bad", "/nowhere")


# ---- attributes ("bad" is an attribute of "ok") ----

def attributed(name, expect, type_=INT32, dims=(), value=1, **more):
    @case(expect, name)
    def with_attribute(d):
        d.objects[1].attribute("bad", type_, list(dims), value, **more)
        return d.objects[1].key if expect == PART else None


attributed("attribute_dims_absurd", PART, dims=[1 << 40])
attributed("attribute_dims_overflow", PART, dims=[1 << 62, 1 << 62])
attributed("attribute_type_unknown", PART, type_={"class": "H5T_QUATERNION"})
attributed("attribute_base64_damaged", PART, value="!!!!", encoding="base64")
attributed("attribute_too_many_values", EITHER, dims=[2], value=[1, 2, 3, 4, 5])
attributed("attribute_value_is_an_object", EITHER, value={"a": 1})
attributed("attribute_reference_to_nothing", EITHER,
           type_={"class": "H5T_REFERENCE", "base": "H5T_STD_REF_OBJ"},
           value="datasets/d-12345678-9abcdef0-1234-567890-abcdef")


@case(EITHER)
def attribute_name_with_nul(d):
    d.objects[1].attribute("bad\0bad", INT32, [], 1)


@case(FINE)
def attribute_value_lost(d):
    """The service stores this if the attribute and its value arrive in one request."""
    ok = d.objects[1]
    ok.attribute("bad", INT32, [2], None, encoding="base64")
    del ok.doc["attributes"]["bad"]["value"]


# ---- chunks ----

def chunked(name, body, expect=DATA, type_=FLOAT64, filters=()):
    @case(expect, name)
    def with_chunk(d):
        bad = bad_dataset(d, type_, (1000,), [1000], filters=list(filters))
        bad.chunk((0,), body() if callable(body) else body)
        return bad.chunk_key((0,))


def blosc(nbytes, body, flags=0x60, block=None, cbytes=None):
    return struct.pack("<BBBBIII", 2, 1, flags, 1, nbytes, block or nbytes,
                       16 + len(body) if cbytes is None else cbytes) + body


chunked("chunk_empty", b"")
chunked("chunk_one_byte_short", bytes(7999))
chunked("chunk_one_byte_long", bytes(8001))
chunked("chunk_zlib_truncated", lambda: zlib.compress(bytes(range(250)) * 32)[:100], filters=[GZIP])
chunked("chunk_zlib_garbage", b"\x78\x9c" + b"\xa5" * 500, filters=[GZIP])
chunked("chunk_zlib_too_short", lambda: zlib.compress(bytes(100)), filters=[GZIP])
chunked("chunk_zlib_bomb", lambda: zlib.compress(bytes(1 << 28), 9), filters=[GZIP])
chunked("chunk_blosc_states_a_false_size", lambda: blosc(1 << 31, bytes(100)), filters=[GZIP])
chunked("chunk_blosc_nbytes_short", lambda: blosc(16, bytes(16), flags=0x02), filters=[GZIP])
chunked("chunk_blosc_memcpy_past_its_end", lambda: blosc(8000, bytes(10), flags=0x02),
        filters=[GZIP])
chunked("chunk_blosc_block_size_zero",
        lambda: struct.pack("<BBBBIII", 2, 1, 0x60, 1, 8000, 0, 116) + bytes(100), filters=[GZIP])
chunked("chunk_blosc_offsets_outside", lambda: blosc(8000, b"\xff" * 200), filters=[GZIP])
chunked("chunk_blosc_codec_unknown", lambda: blosc(8000, bytes(100), flags=0xe0), filters=[GZIP])
chunked("chunk_bitshuffle_states_a_false_size",
        lambda: struct.pack(">QI", 1 << 60, 1 << 31) + bytes(100),
        filters=[{"class": "H5Z_FILTER_BITSHUFFLE", "id": 32008, "name": "bitshuffle"}])
chunked("chunk_gzip_of_shuffle_short", lambda: zlib.compress(bytes(7992)),
        filters=[SHUFFLE, GZIP])
chunked("vlen_count_negative", struct.pack("<i", -1) * 1000, type_=vstring())
chunked("vlen_count_past_the_end", struct.pack("<i", 1 << 30) + bytes(100), type_=vstring())
chunked("vlen_chunk_ends_early", struct.pack("<i", 2) + b"ab", type_=vstring())
chunked("vlen_count_no_multiple_of_its_base", (struct.pack("<i", 3) + b"abc") * 1000,
        type_=vlen(INT32))


@case(FINE)
def chunk_key_is_only_a_prefix(d):
    bad = bad_dataset(d, INT32, (10,))
    d.bucket.put(bad.chunk_key((0,)) + "/x", b"x")


@case(FINE)
def chunk_outside_the_extent(d):
    bad = bad_dataset(d, INT32, (10,))
    bad.chunk((0,), OK)
    bad.chunk((99,), b"never read")


def write(root):
    """A bucket with every case and a valid domain. Returns {name: (expectation, key)}."""
    with mkbucket.Maker(root) as bucket:
        good = bucket.domain("good.h5")
        good.dataset(good.root, "ok", INT32, [10], [10]).chunk((0,), OK)
        return {name: make(bucket, name) for name in CASES}
