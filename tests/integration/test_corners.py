# SPDX-License-Identifier: Apache-2.0
"""Corners of the data model that test_synthetic.py does not reach: its domains in schema v1, its
files imported and linked, and domains with every rank, fill time, computed initialisers, a shared
root, attributes of 64 MB, and references that nobody can store."""
import base64
import os
import struct

import h5py
import numpy as np
import pytest
from h5py import h5a, h5s

import bucketstate
import compare
import filediff
import hsds_validator
import oracle
import rwmounts
import test_synthetic
from mkbucket import EPOCH, FLOAT64, GZIP, INT16, INT32, INT64, Maker, vlen, vstring
from mounts import HSIMAGE, run, wait_for
from programs import Python
from test_synthetic import REFERENCE, array, compound, ref, ref_bytes, sized, string

VERSIONS = pytest.mark.parametrize("v1", (False, True), ids=("v2", "v1"))
REGION = {"class": "H5T_REFERENCE", "base": "H5T_STD_REF_DSETREG"}


def bucket_of(tmp_path, make, v1=False):
    with Maker(tmp_path / "bucket") as bucket:
        bucket.folder("home")
        make(bucket.domain("home/x.h5", v1=v1))
    (tmp_path / "bucket" / "db").mkdir(exist_ok=True)
    return oracle.Bucket(tmp_path / "bucket")


def export(bucket, path, to):
    run(HSIMAGE, "-b", bucket.root, "export", "--force", path, to, check=True)
    return to


# ---- the domains of test_synthetic.py ----

@pytest.mark.sampled(rarer=2)
@pytest.mark.parametrize("name", test_synthetic.DOMAINS)
def test_schema_v1(tmp_path, name):
    if name in ("fills_shuffle", "fills_all"):
        pytest.skip("v1 never shuffles")
    bucket = bucket_of(tmp_path, test_synthetic.DOMAINS[name], v1=True)
    out = export(bucket, "home/x.h5", tmp_path / "out.h5")
    assert compare.differences(bucket, "home/x.h5", out) == []


@pytest.mark.sampled(rarer=2)
@pytest.mark.parametrize("verb", ("import", "link"))
@pytest.mark.parametrize("name", test_synthetic.DOMAINS)
def test_stored_again(tmp_path, name, verb):
    """What the mount shows can be stored as a domain again, and is the same file then."""
    bucket = bucket_of(tmp_path, test_synthetic.DOMAINS[name])
    source = export(bucket, "home/x.h5", tmp_path / "bucket" / "source.h5")
    done = run(HSIMAGE, "-b", bucket.root, verb, "--skip-unsupported",
               "source.h5" if verb == "link" else source, "home/y.h5", check=True)
    left_out = {"/names@x/y"} if name == "attributes" else set()
    assert len(left_out) == sum(": /" in line for line in done.stderr.splitlines())
    assert hsds_validator.check_domain(os.fspath(bucket.root), "home/y.h5", strict=True) == []
    again = export(bucket, "home/y.h5", tmp_path / "again.h5")
    assert filediff.differences(source, again, left_out) == []


# ---- more domains ----

def ranks(d):
    for rank in range(33):
        dims = [2 if k < 3 else 1 for k in range(rank)]
        values = np.arange(int(np.prod(dims)), dtype="<i4") - rank
        d.dataset(d.root, f"rank{rank}", INT32, dims).chunk((0,) * max(rank, 1), values)
        d.root.attribute(f"rank{rank}", INT32, dims, values.reshape(dims).tolist())


def fill_times(d):
    """Each time with a value, without one, and with the word that stands for none. The stored
    chunk is the second one of three."""
    for time in ("ALLOC", "NEVER", "IFSET"):
        for name, more in (("none", {}), ("word", {"fillValue": "None"}), ("set", {"fillValue": 7}),
                           ("base64", {"fillValue_encoding": "base64", "fillValue":
                                       base64.b64encode(struct.pack("<i", -5)).decode()})):
            for alloc in ("EARLY", "LATE", "INCR"):
                d.dataset(d.root, f"{time} {name} {alloc}", INT32, [10], [4],
                          fillTime=f"H5D_FILL_TIME_{time}", allocTime=f"H5D_ALLOC_TIME_{alloc}",
                          **more).chunk((1,), np.arange(4, dtype="<i4"))


def initialisers(d):
    for name, options in (("plain", []), ("start", ["--start=5"]),
                          ("both", ["--start=5", "--step=3"]),
                          ("down", ["--start=-1", "--step=-2"])):
        for kind, type_ in (("int", INT32), ("short", INT16), ("float", FLOAT64)):
            ds = d.dataset(d.root, f"{name} {kind}", type_, [50], [8],
                           initializer=["arange", *options])
            if kind == "int":
                ds.chunk((2,), np.full(8, 99, "<i4"))
    d.dataset(d.root, "half", FLOAT64, [20], [7], initializer=["arange", "--start=0.5",
                                                             "--step=0.25"])


def references(d):
    """Each kind of target in each place."""
    group = d.group(d.root, "group")
    data = d.dataset(group, "data", INT64, [3])
    named = d.datatype(group, "named", INT32)
    targets = [d.root, group, data, named, None, group]
    texts = [ref(t) if t else "" for t in targets]
    stored = b"".join(map(ref_bytes, targets))
    pair = compound(n=INT16, r=REFERENCE)
    inner = compound(p=pair, q=array([2], REFERENCE))
    d.dataset(d.root, "plain", REFERENCE, [6], [6]).chunk((0,), stored)
    d.dataset(d.root, "pairs", pair, [6], [6]).chunk(
        (0,), b"".join(struct.pack("<h", i) + ref_bytes(t) for i, t in enumerate(targets)))
    d.dataset(d.root, "inner", inner, [2], [2]).chunk(
        (0,), b"\1\0" + stored[:144] + b"\2\0" + stored[144:])
    d.dataset(d.root, "lists", vlen(REFERENCE), [2], [2]).chunk((0,), sized(stored, b""))
    for obj in (d.root, data, named):
        obj.attribute("plain", REFERENCE, [6], texts)
        obj.attribute("scalar", REFERENCE, [], texts[3])
        obj.attribute("pairs", pair, [2, 3], [[[i, t] for i, t in enumerate(texts[:3])],
                                              [[i, t] for i, t in enumerate(texts[3:])]])
        obj.attribute("inner", inner, [], [[7, texts[2]], [texts[3], texts[0]]])
        obj.attribute("lists", vlen(REFERENCE), [2], [texts, []])


def arrays(d):
    """Arrays in every place: of compounds, in compounds, of arrays, of sequences, in sequences."""
    point = compound(x=INT16, y=FLOAT64)
    raw = struct.pack("<hdhd", 1, 2.5, 3, 4.5)
    cases = {
        "numbers": (array([2, 3], INT32), np.arange(6, dtype="<i4").tobytes(),
                    [[0, 1, 2], [3, 4, 5]]),
        "texts": (array([2], string(3)), b"ab\0cde", ["ab", "cde"]),
        "points": (array([2], point), raw, [[1, 2.5], [3, 4.5]]),
        "arrays": (array([2], array([2], INT16)), bytes(range(8)), [[256, 770], [1284, 1798]]),
        "member": (compound(a=array([2], point), b=array([1, 2], INT16)), raw + b"\1\0\2\0",
                   [[[1, 2.5], [3, 4.5]], [[1, 2]]]),
        "in a sequence": (vlen(array([2], INT16)), sized(bytes(range(8))),
                          [[256, 770], [1284, 1798]]),
        "sequences in a compound": (compound(n=INT16, a=array([2], vlen(INT16))),
                                    b"\7\0" + sized(b"\1\0", b"") + bytes(4), [7, [[1], []]]),
    }
    for name, (type_, stored, value) in cases.items():
        d.dataset(d.root, name, type_, [1], [1]).chunk((0,), stored)
        d.dataset(d.root, name + " unset", type_, [3], [2])
        d.root.attribute(name, type_, [], value)
        d.root.attribute(name + " list", type_, [2], [value, value])


def arrays_of_slots(d):
    """Arrays of references and of variable length, as types of datasets and attributes."""
    group = d.group(d.root, "group")
    stored, texts = ref_bytes(group) + ref_bytes(None) + ref_bytes(d.root), [ref(group), "",
                                                                             ref(d.root)]
    cases = {
        "references": (array([3], REFERENCE), stored, texts),
        "a matrix of references": (array([2, 3], REFERENCE), stored * 2, [texts, texts]),
        "sequences": (array([2], vlen(INT16)), sized(b"\1\0", b"\2\0\3\0") + bytes(4),
                      [[1], [2, 3]]),
        "texts": (array([2, 1, 2], vstring()), sized(b"one", b"", b"three", b"4") + bytes(4),
                  [[["one", ""]], [["three", "4"]]]),
        "one text": (array([1], vstring()), sized(b"one") + bytes(4), ["one"]),
        "lists of references": (array([2], vlen(REFERENCE)), sized(stored, b"") + bytes(4),
                                [texts, []]),
        "arrays of texts": (array([2], array([2], vstring())),
                            sized(b"one", b"", b"three", b"4") + bytes(12),
                            [["one", ""], ["three", "4"]]),
    }
    for name, (type_, bytes_, value) in cases.items():
        d.dataset(d.root, name, type_, [1], [1]).chunk((0,), bytes_)
        d.dataset(d.root, name + " unset", type_, [3], [2])
        d.root.attribute(name, type_, [], value)
        d.root.attribute(name + " list", type_, [2], [value, value])


def plain_strings(d):
    """Strings whose count looks like the header of a zlib stream, where gzip is recorded but not
    applied."""
    for n in (0x0178, 0x9c78):
        ds = d.dataset(d.root, f"strings{n}", vstring(), [3], [3], filters=[GZIP])
        ds.chunk((0,), sized(b"x" * n, b"", b"last"))
        d.dataset(d.root, f"lists{n}", vlen(INT16), [2], [2], filters=[GZIP]).chunk(
            (0,), sized(bytes(n), b"\1\0"))


MORE = {f.__name__: f for f in (ranks, fill_times, initialisers, references, arrays,
                                arrays_of_slots, plain_strings)}


@VERSIONS
@pytest.mark.parametrize("name", MORE)
def test_more(tmp_path, name, v1):
    bucket = bucket_of(tmp_path, MORE[name], v1)
    out = export(bucket, "home/x.h5", tmp_path / "bucket" / "out.h5")
    assert compare.differences(bucket, "home/x.h5", out) == []
    for verb in ("import", "link"):
        run(HSIMAGE, "-b", bucket.root, verb, "out.h5" if verb == "link" else out,
            f"home/{verb}.h5", check=True)
        assert hsds_validator.check_domain(os.fspath(bucket.root), f"home/{verb}.h5",
                                           strict=True) == []
        again = export(bucket, f"home/{verb}.h5", tmp_path / f"{verb}.h5")
        assert filediff.differences(out, again) == []


def test_values_of_initialisers(tmp_path):
    bucket = bucket_of(tmp_path, initialisers)
    with h5py.File(export(bucket, "home/x.h5", tmp_path / "out.h5")) as f:
        expected = 5 + 3 * np.arange(50)
        assert (f["both float"][...] == expected).all()
        expected[16:24] = 99
        assert (f["both int"][...] == expected).all()
        assert (f["down short"][...] == -1 - 2 * np.arange(50)).all()
        assert f["half"][19] == 0.5 + 19 * 0.25


# ---- links and roots ----

def test_links_between_files(tmp_path, mount):
    """External links to a domain and to an HDF5 file in the bucket, and a circle of hard links, are
    followed in a mount, and by an import of the file that the mount shows."""
    with Maker(tmp_path / "bucket") as bucket:
        bucket.folder("home")
        d = bucket.domain("home/x.h5")
        group = d.group(d.root, "group")
        for name, target in (("self", group), ("up", d.root)):
            group.link(name, target)
        d.root.external("domain", "/there", "/home/deep/target.h5")
        d.root.external("object", "/plain", "/raw/plain.h5")
        d.root.external("nothing", "/there", "/home/none.h5")
        d.root.soft("dangling", "/group/none")
        d.root.soft("around", "/group/up/group/self/up/domain")
        other = bucket.domain("home/deep/target.h5")
        other.dataset(other.root, "there", INT32, [2]).chunk((0,), np.array([1, 2], "<i4"))
    (tmp_path / "bucket" / "raw").mkdir()
    with h5py.File(tmp_path / "bucket" / "raw" / "plain.h5", "w") as f:
        f["plain"] = [3, 4]
    m = mount(bucket.root)
    run(HSIMAGE, "-b", bucket.root, "import", m.file("home/x.h5"), "home/y.h5", check=True)
    for name in ("home/x.h5", "home/y.h5"):
        done = run("h5dump", "-d", "/domain", "-d", "/object", "-d", "/around", m.file(name),
                   check=True)
        assert done.stdout.count("(0): 1, 2") == 2 and done.stdout.count("(0): 3, 4") == 1
        with h5py.File(m.file(name)) as f:
            assert f["group/up/group/self/self"] == f["group"]
            assert f.get("dangling", getlink=True).path == "/group/none"
            for missing in ("nothing", "dangling"):
                with pytest.raises(KeyError):
                    f[missing].name


@VERSIONS
def test_domains_with_one_root(tmp_path, mount, v1):
    """Both show the same objects. A replacement of one keeps the storage of the other."""
    with Maker(tmp_path / "bucket") as bucket:
        bucket.folder("home")
        d = bucket.domain("home/one.h5", v1=v1)
        d.dataset(d.root, "data", INT32, [3]).chunk((0,), np.arange(3, dtype="<i4"))
        two = bucket.domain("home/two.h5", v1=v1)
        two.objects, two.doc["root"] = [], d.root.id
    (tmp_path / "bucket" / "db").mkdir(exist_ok=True)
    m = mount(bucket.root, "metadata_ttl=0")
    assert run("h5diff", m.file("home/one.h5"), m.file("home/two.h5")).returncode == 0
    with h5py.File(tmp_path / "new.h5", "w") as f:
        f["other"] = 5
    run(HSIMAGE, "-b", bucket.root, "import", "--replace", tmp_path / "new.h5", "home/one.h5",
        check=True)
    with h5py.File(export(bucket, "home/one.h5", tmp_path / "1.h5")) as f:
        assert f["other"][()] == 5
    with h5py.File(export(bucket, "home/two.h5", tmp_path / "2.h5")) as f:
        assert list(f["data"]) == [0, 1, 2]


def test_creation_order(tmp_path):
    """Links and attributes in the order of their times; names decide between equal ones. An import
    keeps the order."""
    names = ("z", "a", "m", "b")

    def make(d):
        for name in names:
            d.dataset(d.root, name, INT32, [])
            d.root.attribute(name, INT32, [], 1)
        for members in (d.root.doc["links"], d.root.doc["attributes"]):
            members["m"]["created"] = members["b"]["created"] = EPOCH - 1
        d.root.doc["creationProperties"] = {"CreateOrder": 1, "attributeCreationOrder": 3}
    bucket = bucket_of(tmp_path, make)
    out = export(bucket, "home/x.h5", tmp_path / "x.h5")
    run(HSIMAGE, "-b", bucket.root, "import", out, "home/y.h5", check=True)
    for path in (out, export(bucket, "home/y.h5", tmp_path / "y.h5")):
        with h5py.File(path) as f:
            links, attributes = [], []
            f.id.links.iterate(links.append, idx_type=h5py.h5.INDEX_CRT_ORDER)
            h5a.iterate(f.id, lambda name, *_, to=attributes: to.append(name),
                        index_type=h5py.h5.INDEX_CRT_ORDER)
            assert links == attributes == [b"b", b"m", b"z", b"a"]


# ---- large attributes ----

@pytest.mark.sampled(rarer=2)
@pytest.mark.parametrize("kind", ("text", "numbers", "strings"))
def test_attributes_of_64_megabytes(tmp_path, kind):
    value = {"text": lambda: np.bytes_(b"0123456789abcdef" * (1 << 22)),
             "numbers": lambda: np.arange(1 << 23, dtype="<f8"),
             "strings": lambda: np.array(["x" * 1000, ""] * (1 << 15), dtype=object)}[kind]()
    source = tmp_path / "source.h5"
    with h5py.File(source, "w", libver="latest") as f:
        f.attrs.create("large", value, dtype=h5py.string_dtype() if kind == "strings" else None)
    bucket = bucket_of(tmp_path, lambda d: None)
    run(HSIMAGE, "-b", bucket.root, "import", source, "home/y.h5", check=True)
    out = export(bucket, "home/y.h5", tmp_path / "out.h5")
    with h5py.File(out) as f:
        assert np.array_equal(f.attrs["large"], value)


@pytest.mark.sampled
@pytest.mark.parametrize("kind", ("text", pytest.param("numbers", marks=pytest.mark.long)))
@VERSIONS
def test_stored_attributes_of_64_megabytes(tmp_path, kind, v1):
    """In the form of the service: JSON in the document of the object."""
    text = "0123456789abcdef" * (1 << 22)

    def make(d):
        if kind == "text":
            d.root.attribute("large", string(len(text)), [], text)
        else:
            d.root.attribute("large", INT64, [1 << 23], list(range(1 << 23)))
    out = export(bucket_of(tmp_path, make, v1), "home/x.h5", tmp_path / "out.h5")
    with h5py.File(out) as f:
        shown = f.attrs["large"]
    assert shown == text.encode() if kind == "text" else (shown == np.arange(1 << 23)).all()


# ---- region references ----

def test_stored_region_references_are_null(tmp_path):
    """The service has the type, but no form for a selection."""
    def make(d):
        data = d.dataset(d.root, "data", INT32, [3])
        d.dataset(d.root, "dataset", REGION, [2], [2]).chunk((0,), ref_bytes(data) * 2)
        d.root.attribute("attribute", REGION, [2], [ref(data), ""])
    bucket = bucket_of(tmp_path, make)
    with h5py.File(export(bucket, "home/x.h5", tmp_path / "out.h5")) as f:
        assert f["dataset"].dtype == h5py.regionref_dtype
        assert not any(f["dataset"][...]) and not any(f.attrs["attribute"])


@pytest.mark.parametrize("verb", ("import", "link"))
def test_region_references_are_refused_by_name(tmp_path, verb):
    bucket = bucket_of(tmp_path, lambda d: None)
    source = tmp_path / "bucket" / "source.h5"
    pair = np.dtype([("n", "<i4"), ("r", h5py.regionref_dtype)])
    with h5py.File(source, "w") as f:
        f["type"] = pair
        data = f.create_dataset("data", data=np.arange(600, dtype="<i4"))
        region = data.regionref[2:5]
        f.create_dataset("group/dataset", (2,), h5py.regionref_dtype)[0] = region
        f.create_dataset("compound", (2,), pair)
        f.create_dataset("list", (2,), h5py.vlen_dtype(h5py.regionref_dtype))
        f.attrs.create("attribute", region, dtype=h5py.regionref_dtype)
        h5a.create(data.id, b"member", f["type"].id, h5s.create_simple((1,)))
        data.attrs["kept"] = 1
    what = ["/, attribute attribute", "/compound", "/data, attribute member", "/group/dataset",
            "/list", "/type"]
    name = "source.h5" if verb == "link" else source
    done = run(HSIMAGE, "-b", bucket.root, verb, name, "home/y.h5")
    assert done.returncode == 1
    for part in what:
        assert f"hsimage: {part}: a region reference\n" in done.stderr, part
    run(HSIMAGE, "-b", bucket.root, verb, "--skip-unsupported", name, "home/y.h5", check=True)
    with h5py.File(export(bucket, "home/y.h5", tmp_path / "out.h5")) as f:
        assert sorted(f) == ["data", "group"] and list(f["group"]) == []
        assert list(f.attrs) == [] and list(f["data"].attrs) == ["kept"]


REFUSED = "a domain cannot hold it: a region reference"
REGION_PARTS = {
    "new dataset": ("f.create_dataset('new', (2,), h5py.regionref_dtype)[0] = region",
                    f"/new: {REFUSED}"),
    "attribute": ("f['data'].attrs.create('new', region, dtype=h5py.regionref_dtype)",
                  f"/data, attribute new: {REFUSED}"),
    "type": ("f['type'] = np.dtype([('n', '<i4'), ('r', h5py.regionref_dtype)])",
             f"/type: {REFUSED}"),
    "element": ("f['dataset'][1] = region",
                "/dataset: chunk (0): region references cannot be stored in a chunk object"),
}


def with_regions(d):
    """A domain of the service that has the type of region references."""
    data = d.dataset(d.root, "data", INT32, [6], [3])
    d.dataset(d.root, "dataset", REGION, [2], [2]).chunk((0,), ref_bytes(data) * 2)
    d.root.attribute("attribute", REGION, [1], [ref(data)])


@pytest.mark.sampled(keep=2)
@pytest.mark.parametrize("part", REGION_PARTS)
def test_a_change_with_region_references(tmp_path, part):
    """It is refused as a whole, and the draft has all of it."""
    line, why = REGION_PARTS[part]
    bucket = bucket_of(tmp_path, with_regions)
    state = bucketstate.State(bucket.root).digest
    with rwmounts.RwMount(bucket.root, tmp_path, "metadata_ttl=0") as m:
        path = m.file("home/x.h5")
        with Python(path) as p:
            assert p("f = h5py.File(path, 'r+'); f['data'][0] = 7; "
                     "region = f['data'].regionref[1:3]") == "ok"
            assert p(line) == "ok"
            assert p("f.close()") not in ("", "ok")
        m.released()
        assert why in m.log()
        assert wait_for(lambda: rwmounts.attribute(path, "user.hsds.unfinished")), m.log()
        draft = rwmounts.attribute(path, "user.hsds.unfinished")
        assert bucketstate.State(bucket.root).digest == state
        with h5py.File(path) as f:
            assert list(f["data"]) == [0] * 6 and sorted(f) == ["data", "dataset"]
        run(HSIMAGE, "recover", "--journal-dir", m.journal, "export", draft, tmp_path / "out.h5",
            check=True)
        with h5py.File(tmp_path / "out.h5") as f:
            assert f["data"][0] == 7
            regions = [*f["dataset"], *f.get("new", []), *f["data"].attrs.values()]
            assert [bool(r) for r in regions].count(True) == (part != "type")
        run(HSIMAGE, "recover", "--journal-dir", m.journal, "drop", "--yes", draft, check=True)
        assert bucketstate.State(bucket.root).digest == state


def test_a_change_beside_region_references(tmp_path):
    """The type that a domain has already stays, and so do the stored elements."""
    bucket = bucket_of(tmp_path, with_regions)
    before = bucketstate.State(bucket.root)
    with rwmounts.RwMount(bucket.root, tmp_path, "metadata_ttl=0") as m:
        with h5py.File(m.file("home/x.h5"), "r+") as f:
            f["data"][5] = 7
            f.attrs["other"] = f["dataset"].attrs["other"] = 1
        m.released()
        with h5py.File(m.file("home/x.h5")) as f:
            assert f["data"][5] == 7
            assert sorted(f.attrs) == ["attribute", "other"]
            assert f["dataset"].dtype == h5py.regionref_dtype
    put, deleted = bucketstate.State(bucket.root).since(before)
    assert (len(put), len(deleted)) == (3, 0)


def test_a_new_file_with_region_references(tmp_path):
    """It is kept as it is."""
    bucket = bucket_of(tmp_path, lambda d: None)
    with rwmounts.RwMount(bucket.root, tmp_path) as m:
        path = m.file("home/y.h5")
        with h5py.File(path, "w") as f:
            data = f.create_dataset("data", data=np.arange(9))
            f.attrs.create("region", data.regionref[2:4], dtype=h5py.regionref_dtype)
        m.released()
        assert rwmounts.attribute(path, "user.hsds.kept") == \
            "a domain cannot hold it: /, attribute region: a region reference"
        with h5py.File(path) as f:
            assert list(f["data"][f.attrs["region"]]) == [2, 3]
