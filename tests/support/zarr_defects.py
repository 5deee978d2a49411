# SPDX-License-Identifier: Apache-2.0
"""Zarr stores with one defect each. All have the arrays "ok" and, if the defect lets it be shown,
"bad". CASES: {name: Case}, named after the defect. write(directory) writes them all, in both
versions of the format, if the defect occurs in both: v2/NAME.zarr and v3/NAME.zarr."""
import gzip
import json
import os
import zlib

import numpy as np
from numcodecs import blosc, lz4, zstd

from zarr_write import Store, crc32c, join

OK = np.arange(6, dtype="<i4")
# What happens: opening the file fails; "bad" is left out; reading "bad" fails; "bad" is shown, with
# a note or without one.
FILE, PART, DATA, NOTE, FINE = "file", "part", "data", "note", "fine"
CASES = {}


class Case:
    """keys and causes: of v2 and v3. The message has both; the key is that of a document, of a
    chunk, or of an array."""

    def __init__(self, change, expect, keys, causes):
        self.change, self.expect, self.keys, self.causes = change, expect, keys, causes

    def versions(self):
        return [v for v in (2, 3) if self.causes[v - 2] is not None]


def pair(x):
    return x if isinstance(x, tuple) else (x, x)


def case(name, expect, cause, key=("bad/.zarray", "bad/zarr.json")):
    """The function gets the store, the document of "bad", and an empty {key: bytes} of what is
    written over the store in the end. A cause of None: this version cannot have the defect."""
    def add(change):
        assert name not in CASES
        CASES[name] = Case(change, expect, pair(key), pair(cause))
        return change
    return add


def member(name, expect, cause, v2, v3, **more):
    """A defect of one member of the document, whose names in both versions are given with the
    value: (name, value). None: this version does not have it."""
    @case(name, expect, (cause if v2 else None, cause if v3 else None)
          if not isinstance(cause, tuple) else cause, **more)
    def change(store, document, _):
        key, value = v2 if store.version == 2 else v3
        document[key] = value


def write(directory):
    for name, one in CASES.items():
        for version in one.versions():
            write_case(os.path.join(directory, f"v{version}", f"{name}.zarr"), version, one)
    with Store(os.path.join(directory, "good.zarr")) as store:
        store.array("ok", OK)


def write_case(path, version, one):
    store, over = Store(path, version), {}
    store.array("ok", OK)
    store.array("bad", OK, chunks=(4,))
    one.change(store, store.documents[document_key(store, "bad")], over)
    store.write_documents()
    for key, data in over.items():
        store.put(key, data)


def document_key(store, path):
    return join(path, "zarr.json" if store.version == 3 else ".zarray")


def chunk_key(store, i):
    return f"bad/c.{i}" if store.version == 3 else f"bad/{i}"


# ---- the document of the root ----

ROOT = (".zgroup", "zarr.json")
for _name, _text, _cause in (
        ("root_empty", b"", "not JSON"),
        ("root_not_json", b"{oops", "not JSON"),
        ("root_10000_deep", b'{"a":' * 10000 + b"1" + b"}" * 10000, "not JSON"),
        ("root_a_list", b"[1]", "not an object"),
        ("root_a_number", b"2", "not JSON"),
        ("root_zarr_format_4", b'{"zarr_format": 4, "node_type": "group"}',
         "zarr_format 4 is not known"),
        ("root_not_utf8", b'{"zarr_format": 2, "zarr_format": 3, "node_type": "group", "\xff": 1}',
         "not JSON"),
        ("root_nul", b'{"zarr_format"\0: 2}', "not JSON")):
    @case(_name, FILE, _cause, key=ROOT)
    def _root(store, document, over, text=_text):
        over[ROOT[store.version - 2]] = text


@case("root_of_50_megabytes", FINE, "", key=ROOT)
def _(store, document, over):
    """Of white space."""
    text = json.dumps(store.documents[ROOT[store.version - 2]]).encode()
    over[ROOT[store.version - 2]] = text[:-1] + b" " * 50_000_000 + b"}"


@case("document_empty", PART, "not JSON")
def _(store, document, over):
    over[document_key(store, "bad")] = b""


@case("document_not_utf8", PART, "not JSON")
def _(store, document, over):
    over[document_key(store, "bad")] = b'{"zarr_format": 3, "node_type": "\xff\xfe"}'


@case("document_10000_deep", PART, "not JSON")
def _(store, document, over):
    over[document_key(store, "bad")] = b"[" * 10000 + b"]" * 10000


@case("document_a_list", PART, "not an object")
def _(store, document, over):
    over[document_key(store, "bad")] = b"[]"


# ---- consolidated metadata ----

ZMETADATA = (".zmetadata", None)
for _name, _text, _cause in (
        ("zmetadata_empty", b"", "empty document; the documents are read"),
        ("zmetadata_not_json", b"{oops", "the documents are read"),
        ("zmetadata_a_list", b"[]", "the documents are read"),
        ("zmetadata_10000_deep", b'{"metadata":' * 10000, "the documents are read"),
        ("zmetadata_of_another_format", b'{"zarr_consolidated_format": 2, "metadata": {}}',
         "zarr_consolidated_format is not 1; the documents are read"),
        ("zmetadata_without_metadata", b'{"zarr_consolidated_format": 1}',
         "it has no 'metadata'; the documents are read")):
    @case(_name, NOTE, (_cause, None), key=ZMETADATA)
    def _view(store, document, over, text=_text):
        over[".zmetadata"] = text

for _name, _view3 in (("view_null", None), ("view_a_list", []), ("view_of_another_kind", {
        "kind": "reference", "must_understand": False, "metadata": {"bad": 5}}), (
            "view_without_members", {"kind": "inline", "metadata": 1})):
    @case(_name, FINE, (None, ""))
    def _view_case(store, document, over, view=_view3):
        store.documents["zarr.json"]["consolidated_metadata"] = view


@case("member_of_the_view_no_object", PART, "not a JSON object")
def _(store, document, over):
    store.consolidated = True
    over[document_key(store, "bad")] = json.dumps(document).encode()
    store.documents[document_key(store, "bad")] = 5


# ---- members ----

def grid(*chunk):
    return {"name": "regular", "configuration": {"chunk_shape": list(chunk)}}


for _name, _shape, _cause in (
        ("shape_negative", [-6], "shape"), ("shape_float", [6.5], "shape"),
        ("shape_2_to_63", [1 << 63], "shape"), ("shape_2_to_64", [1 << 64], "shape"),
        ("shape_text", ["six"], "shape"), ("shape_null", None, "shape"),
        ("shape_rank_33", [1] * 33, "33")):
    @case(_name, PART, _cause)
    def _shape_case(store, document, over, shape=_shape):
        document["shape"] = shape
        if shape and len(shape) == 33:
            document["chunks" if store.version == 2 else "chunk_grid"] = \
                shape if store.version == 2 else grid(*shape)


@case("shape_product_beyond_2_to_63", PART, "")
def _(store, document, over):
    document["shape"] = [1 << 40, 1 << 40]
    document["chunks"] = [4, 4]
    if store.version == 3:
        del document["chunks"]
        document["chunk_grid"] = grid(4, 4)


for _name, _chunks, _cause in (
        ("chunk_length_0", [0], "is 0"), ("chunks_too_many", [4, 4], "has 2 numbers"),
        ("chunks_too_few", [], "has 0 numbers"), ("chunks_negative", [-4], "chunk"),
        ("chunks_2_to_40", [1 << 40], "over the limit"),
        ("chunks_beyond_2_to_64", [1 << 62], "over the limit")):
    member(_name, PART, _cause, ("chunks", _chunks), ("chunk_grid", grid(*_chunks)))
member("type_of_3_bytes", PART, ("dtype", "data_type"), ("dtype", "<i3"), ("data_type", "int24"))
member("text_of_no_bytes", PART, ("dtype", "data_type"), ("dtype", "|S0"), (
    "data_type", {"name": "null_terminated_bytes", "configuration": {"length_bytes": 0}}))
member("type_missing", PART, ("dtype", "data_type"), ("dtype", None), ("data_type", None))
for _name, _fill in (("fill_text", "many"), ("fill_too_large", 1 << 40), ("fill_a_list", [1, 2]),
                     ("fill_an_object", {"a": 1}), ("fill_a_fraction", 0.5)):
    member(_name, NOTE, "does not fit int32", ("fill_value", _fill), ("fill_value", _fill),
           key="bad")
member("format_4", PART, "zarr_format 4 is not known", ("zarr_format", 4), ("zarr_format", 4))
member("separator", PART, "separator", ("dimension_separator", "-"), (
    "chunk_key_encoding", {"name": "default", "configuration": {"separator": "-"}}))
member("key_encoding", PART, "chunk_key_encoding 'mine' is not known", None,
       ("chunk_key_encoding", {"name": "mine"}))
member("unknown_member", PART, "'mine' must be understood and is not", None, ("mine", {}))
member("order", PART, "order", ("order", "X"), None)

# ---- codecs ----

ZLIB = ({"id": "zlib", "level": 1}, {"name": "numcodecs.zlib", "configuration": {"level": 1}})
MINE = ({"id": "mine"}, {"name": "mine"})
BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
for _name, _order in (("codec_unknown_first", (MINE, ZLIB, ZLIB)),
                      ("codec_unknown_in_the_middle", (ZLIB, MINE, ZLIB)),
                      ("codec_unknown_last", (ZLIB, ZLIB, MINE))):
    @case(_name, PART, "codec 'mine' is not known")
    def _codec(store, document, over, order=_order):
        if store.version == 2:
            document["filters"] = [c[0] for c in order[:2]]
            document["compressor"] = order[2][0]
        else:
            document["codecs"] = [BYTES] + [c[1] for c in order]
member("codecs_100", PART, "over the limit", ("filters", [ZLIB[0]] * 100),
       ("codecs", [BYTES] + [ZLIB[1]] * 100))
member("codecs_no_list", PART, "not a list", ("filters", {}), ("codecs", {}))
member("codec_without_a_name", PART, "codec", ("compressor", {"level": 1}),
       ("codecs", [BYTES, {"configuration": {}}]))
member("two_codecs_that_make_bytes", PART, "codec 'bytes' is at a wrong place", None,
       ("codecs", [BYTES, BYTES]))
for _name, _axes in (("transpose_with_a_repeated_axis", [0, 0]),
                     ("transpose_without_an_axis", [0]), ("transpose_of_another_axis", [0, 2]),
                     ("transpose_with_a_negative_axis", [0, -1])):
    @case(_name, PART, (None, "codec 'transpose'"))
    def _axes_case(store, document, over, axes=_axes):
        document.update(shape=[2, 3], chunk_grid=grid(2, 3), codecs=[
            {"name": "transpose", "configuration": {"order": axes}}, BYTES])

# ---- chunks ----

CHUNK = ("bad/0", "bad/c.0")
for _name, _size in (("chunk_empty", 0), ("chunk_one_byte_short", 15), ("chunk_one_byte_long", 17)):
    @case(_name, DATA, f"chunk has {_size} bytes", key=CHUNK)
    def _chunk(store, document, over, size=_size):
        over[chunk_key(store, 0)] = bytes(size)


@case("chunk_not_compressed", DATA, "zlib", key=CHUNK)
def _(store, document, over):
    member_of = ("compressor", ZLIB[0]) if store.version == 2 else ("codecs", [BYTES, ZLIB[1]])
    document.update([member_of])


NAMES3 = {"zlib": "numcodecs.zlib", "lz4": "numcodecs.lz4"}
ZEROS = bytes(16 << 20)


def chunk_of(name, codec, change, cause):
    """The first chunk of "bad" is what the function makes of its 16 bytes. It is encoded, and
    decoding it fails."""
    @case(name, DATA, cause, key=CHUNK)
    def write_it(store, document, over):
        if store.version == 2:
            document["compressor"] = {"id": codec}
        else:
            document["codecs"] = [BYTES, {"name": NAMES3.get(codec, codec)}]
        over[chunk_key(store, 0)] = change(OK[:4].tobytes())


def with_size(frame, size):
    """A frame of zstd of less than 256 bytes has its size behind the descriptor."""
    assert frame[4] == 0x20
    return frame[:5] + bytes([size]) + frame[6:]


def without_size(frame):
    """With a window in its place, if there is none."""
    descriptor = frame[4]
    if descriptor == 0x20:
        return frame[:4] + bytes([0, 0]) + frame[6:]
    assert descriptor == 0x80
    return frame[:4] + bytes([0]) + frame[5:6] + frame[10:]


# The header of a Blosc frame: its fields, and where they are.
FRAME = blosc.compress(OK[:4], b"lz4", 5, 1)
NOT_A_FRAME = "not a Blosc 1 frame"
for _name, _at, _value, _cause in (
        ("version", 0, 9, NOT_A_FRAME), ("version_of_the_compressor", 1, 9, NOT_A_FRAME),
        ("flags", 2, 0xe1, "compressor 7 is not built in"), ("type_size", 3, 0, NOT_A_FRAME),
        ("size", 4, 0xffffffff, "states 4294967295 bytes, at most 16"),
        ("size_too_small", 4, 15, "frame of 15 bytes has impossible blocks of 16"),
        ("size_of_blocks", 8, 0xffffffff, "impossible blocks of 4294967295"),
        ("size_of_blocks_0", 8, 0, "impossible blocks of 0"),
        ("size_of_the_frame", 12, 0xffffffff, NOT_A_FRAME),
        ("size_of_the_frame_too_small", 12, 16, NOT_A_FRAME)):
    _bytes = _value.to_bytes(4 if _at > 3 else 1, "little")
    chunk_of(f"blosc_{_name}", "blosc", lambda _, at=_at, b=_bytes:
             FRAME[:at] + b + FRAME[at + len(b):], _cause)
chunk_of("zlib_bomb", "zlib", lambda _: zlib.compress(ZEROS, 9), "inflates to more than 16 bytes")
chunk_of("gzip_bomb", "gzip", lambda _: gzip.compress(ZEROS, 9), "inflates to more than 16 bytes")
chunk_of("zstd_bomb", "zstd", lambda _: zstd.compress(ZEROS, 3), "decode to more than 16")
chunk_of("zstd_bomb_without_size", "zstd", lambda _: without_size(zstd.compress(ZEROS, 3)),
         "decode to more than 16")
chunk_of("zstd_size_too_large", "zstd", lambda b: with_size(zstd.compress(b, 3), 17),
         "decode to more than 16")
chunk_of("zstd_size_too_small", "zstd", lambda b: with_size(zstd.compress(b, 3), 15),
         "damaged frame")
chunk_of("lz4_size_of_4_gib", "lz4", lambda b: b"\xff" * 4 + lz4.compress(b)[4:],
         "state 4294967295, at most 16")
chunk_of("crc32c_wrong", "crc32c", lambda b: b + bytes(4), "crc32c does not match")


@case("zstd_without_size", FINE, "")
def _(store, document, over):
    document.update([("compressor", {"id": "zstd"}) if store.version == 2 else
                     ("codecs", [BYTES, {"name": "zstd"}])])
    for i, values in enumerate((OK[:4], [4, 5, 0, 0])):
        data = np.array(values, OK.dtype).tobytes()
        over[chunk_key(store, i)] = without_size(zstd.compress(data, 3))


@case("chunk_a_directory", FINE, "", key=CHUNK)
def _(store, document, over):
    """Nothing is stored under the key, so it has the fill value."""
    store.delete(chunk_key(store, 0))
    over[f"{chunk_key(store, 0)}/0"] = bytes(16)


# ---- shards ----

CRC = {"name": "crc32c"}
MISSING = (1 << 64) - 1


def sharded(inner=(2,), codecs=(BYTES,), index=(BYTES, CRC)):
    return {"name": "sharding_indexed", "configuration": {
        "chunk_shape": list(inner), "codecs": list(codecs), "index_codecs": list(index)}}


def shard(*entries, body=OK[:4].tobytes()):
    index = b"".join(n.to_bytes(8, "little") for entry in entries for n in entry)
    return body + index + crc32c(index).to_bytes(4, "little")


GOOD = shard((0, 8), (8, 8))
LATER = shard((0, 8), (MISSING, MISSING), body=OK[4:].tobytes())
for _name, _shard, _cause in (
        ("empty", b"", "the shard has 0 bytes, its index has 36"),
        ("shorter_than_its_index", GOOD[-35:], "the shard has 35 bytes, its index has 36"),
        ("with_a_wrong_checksum_of_its_index", GOOD[:-1] + bytes([GOOD[-1] ^ 1]),
         "index of the shard: crc32c does not match"),
        ("chunk_past_the_end", shard((0, 8), (100, 8)), "it ends behind the shard"),
        ("chunk_in_the_index", shard((0, 8), (9, 8)), "it overlaps the index"),
        ("chunk_with_an_overflow", shard((0, 8), (MISSING - 3, 8)), "it ends behind the shard"),
        ("chunk_with_half_an_entry", shard((0, 8), (MISSING, 8)), "only one of them says"),
        ("chunk_of_no_bytes", shard((0, 8), (8, 0)), "it has no bytes"),
        ("chunk_too_long", shard((0, 8), (8, 1 << 20)), "no encoded chunk is so long"),
        ("chunk_one_byte_short", shard((0, 8), (8, 7)), "chunk has 7 bytes, its shape needs 8"),
        ("chunks_that_overlap", shard((0, 8), (7, 8)), None)):
    @case(f"shard_{_name}", DATA if _cause else FINE, (None, _cause or ""), key=CHUNK)
    def _shard_case(store, document, over, data=_shard):
        document["codecs"] = [sharded()]
        over.update({chunk_key(store, 0): data, chunk_key(store, 1): LATER})


@case("shard_with_a_wrong_checksum_around", DATA, (None, "the codecs around the shard"), key=CHUNK)
def _(store, document, over):
    document["codecs"] = [sharded(), CRC]
    over[chunk_key(store, 0)] = GOOD + bytes(4)


NESTED = sharded((1,))
for _ in range(19):
    NESTED = sharded((1,), [NESTED])
for _name, _codecs, _cause in (
        ("inner_chunks_that_do_not_divide", [sharded((3,))], "do not divide the length 4"),
        ("inner_chunks_of_length_0", [sharded((0,))], "do not divide the length 4"),
        ("inner_chunks_of_another_rank", [sharded((2, 2))], "has 2 numbers, shape has 1"),
        ("compressed_index", [sharded(index=(BYTES, {"name": "gzip"}))],
         "an index with the codec 'gzip' is not known"),
        ("second_shard_in_a_chain", [sharded(), sharded()],
         "codec 'sharding_indexed' is at a wrong place"),
        ("20_nested_shards", [NESTED], "more than 4 shards inside of each other")):
    @case(_name, PART, (None, _cause))
    def _sharding(store, document, over, codecs=_codecs):
        document["codecs"] = codecs


@case("shard_of_2_to_40_inner_chunks", PART, (None, "shard of 1099511627776 inner chunks"))
def _(store, document, over):
    document.update(chunk_grid=grid(1 << 40), codecs=[sharded((1,))])


# ---- attributes and dimensions ----

def attributes(store, document, values, over):
    if store.version == 3:
        document["attributes"] = values
    else:
        store.documents["bad/.zattrs"] = values


ATTRIBUTES = ("bad/.zattrs", "bad/zarr.json")


for _megabytes in (5, 50):
    @case(f"attribute_of_{_megabytes}_megabytes", FINE, "")
    def _long(store, document, over, n=_megabytes * 1_000_000):
        attributes(store, document, {"long": "x" * n}, over)


@case("attributes_100000", FINE, "")
def _(store, document, over):
    attributes(store, document, {f"a{i}": i for i in range(100000)}, over)


@case("attribute_class", NOTE, 'attribute "CLASS" is left out: the name is reserved',
      key=ATTRIBUTES)
def _(store, document, over):
    attributes(store, document, {"CLASS": "DIMENSION_SCALE", "NAME": "x"}, over)


@case("attribute_name_of_10000_bytes", NOTE, "is left out: its name has more than 255 bytes",
      key=ATTRIBUTES)
def _(store, document, over):
    attributes(store, document, {"n" * 10000: 1, "": 2}, over)


@case("attributes_a_list", NOTE, "not an object", key=ATTRIBUTES)
def _(store, document, over):
    attributes(store, document, [1, 2], over)


@case("attributes_not_json", NOTE, ("not JSON", None), key=ATTRIBUTES)
def _(store, document, over):
    over["bad/.zattrs"] = b"{oops"


@case("dimension_name_of_10000_bytes", NOTE, "cannot be the name of a dimension", key=ATTRIBUTES)
def _(store, document, over):
    name_dimensions(store, document, ["n" * 10000])


@case("dimension_names_too_many", NOTE, "has 3 names for 1 dimensions", key=ATTRIBUTES)
def _(store, document, over):
    name_dimensions(store, document, ["x", "y", "z"])


@case("dimension_name_a_number", NOTE, "cannot be the name of a dimension", key=ATTRIBUTES)
def _(store, document, over):
    name_dimensions(store, document, [5])


def name_dimensions(store, document, names):
    if store.version == 3:
        document["dimension_names"] = names
    else:
        store.documents["bad/.zattrs"] = {"_ARRAY_DIMENSIONS": names}


@case("dimension_name_with_1000_lengths", NOTE, "dimension x is 1000 here, 1 elsewhere: x_1000",
      key="many/a999")
def _(store, document, over):
    name_dimensions(store, document, ["x"])
    for i in range(1000):
        store.array(f"many/a{i}", np.zeros(i + 1, "i1"), names=["x"], absent=[(0,)])


# ---- nodes ----

@case("array_in_an_array", NOTE, "it is an array; the group of the same name is left out",
      key="bad")
def _(store, document, over):
    store.array("bad/inner", OK)


@case("array_that_is_a_group_too", NOTE, ("it is an array", None), key="bad")
def _(store, document, over):
    store.group("bad")
