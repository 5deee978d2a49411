# SPDX-License-Identifier: Apache-2.0
"""Domains whose data are in HDF5 files, from a directory and from S3: every dataset must be equal
to that of the source file, and reads must not take more requests than necessary."""
import json
import os
import shutil
import subprocess

import h5py
import numpy as np
import pytest

import mkbucket
import mounts
from gateway import needs_gateway
from mounts import difference, run

ARCHIVE = os.path.join(mounts.TREE, "tests", "data", "hsds-links.tar.xz")
HOME = "home/test_user1"
SOURCES = {"contig": "contig", "chunked_few": "chunked_few", "chunked_many": "chunked_many",
           "chunked_many_fast": "chunked_many", "agg_0": "agg_0"}


@pytest.fixture(scope="session")
def links(tmp_path_factory):
    """The bucket "links", with the HDF5 files in data/."""
    directory = tmp_path_factory.mktemp("links")
    subprocess.run(["tar", "-xJf", ARCHIVE, "-C", directory], check=True, timeout=60)
    return os.path.join(directory, "links")


@pytest.fixture
def copy(links, tmp_path):
    """The same bucket, for a test that changes it."""
    return shutil.copytree(links, tmp_path / "links")


def datasets(f):
    out = {}
    f.visititems(lambda name, o: out.update({name: o}) if isinstance(o, h5py.Dataset) else None)
    return out


def equal(a, b):
    a, b = a[()], b[()]
    if np.asarray(a).dtype.kind == "f":
        return np.array_equal(a, b, equal_nan=True)
    return np.array_equal(a, b)


def check_all(m, links):
    for name, source in SOURCES.items():
        with h5py.File(m.file(HOME, name + ".h5")) as f, \
                h5py.File(os.path.join(links, "data", source + ".h5")) as s:
            expected = datasets(s)
            assert datasets(f).keys() == expected.keys()
            for path, dataset in datasets(f).items():
                assert equal(dataset, expected[path]), (name, path)
                # libhdf5's own files have filters that HSDS drops, but the same chunks.
                if expected[path].chunks is None:
                    assert dataset.chunks is None or expected[path].size < 512
                else:
                    assert dataset.chunks == expected[path].chunks
    sources = [h5py.File(os.path.join(links, "data", f"agg_{i}.h5")) for i in range(4)]
    with h5py.File(m.file(HOME, "agg.h5")) as f:
        assert datasets(f).keys() == {"t", "u"}
        for path, dataset in datasets(f).items():
            for i, source in enumerate(sources):
                assert np.array_equal(dataset[i], source[path][()]), (path, i)
    for source in sources:
        source.close()
    with h5py.File(m.file(HOME, "image_link.h5")) as f, \
            open(os.path.join(links, "data", "chunked_few.h5"), "rb") as s:
        assert bytes(datasets(f)["h5image"][()]) == s.read()


def test_all_datasets_in_a_directory(links, mount):
    m = mount(links)
    check_all(m, links)
    assert "error" not in m.log()


@needs_gateway[0]
@needs_gateway[1]
def test_all_datasets_in_s3(links, client, environment, mount):
    client.make_bucket("links")
    client.upload("links", links)
    check_all(mount("s3://links", env=environment), links)


@pytest.mark.parametrize("name", ["contig", "chunked_few", "chunked_many_fast"])
def test_h5diff_reports_no_difference(links, mount, name):
    m = mount(links)
    source = os.path.join(links, "data", SOURCES[name] + ".h5")
    done = run("h5diff", m.file(HOME, name + ".h5"), source)
    # 1: objects differ. Attributes and types that hsload changes are none of these domains.
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_open_reads_nothing_of_a_table(links, mount):
    m = mount(links, "debug_count")
    os.stat(m.file(HOME, "chunked_many.h5"))
    before = m.counts()
    os.close(os.open(m.file(HOME, "chunked_many.h5"), os.O_RDONLY))
    assert difference(before, m.counts())["range_gets"] == 0


def dump(m, name, dataset, start, count):
    done = run("h5dump", "-d", dataset, "-s", start, "-c", count, m.file(HOME, name))
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_small_h5dump_is_one_range(links, mount):
    """Of a contiguous dataset. In a chunked one, a page may have bytes of two chunks."""
    m = mount(links, "debug_count")
    for name, dataset, start, count, most in (("contig.h5", "/big", "300,5", "1,10", 1),
                                              ("chunked_few.h5", "/gzip", "70,110", "1,10", 2)):
        with h5py.File(m.file(HOME, name)):
            pass
        before = m.counts()
        dump(m, name, dataset, start, count)
        assert difference(before, m.counts())["range_gets"] <= most, name


def test_chunks_that_lie_side_by_side_are_joined(links, mount):
    m = mount(links, "debug_count")
    with h5py.File(m.file(HOME, "chunked_many.h5")) as f:
        before = m.counts()
        f["m1d"][()]
        after = difference(before, m.counts())
    # How many are joined depends on how many are requested at the same time. bytes_in has what the
    # kernel reads ahead, too.
    assert after["range_gets"] < after["bytes_in"] / 4000, after


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """A file of 2,000 chunks of 4,000 bytes."""
    return linked(tmp_path_factory.mktemp("long"), lambda f: f.create_dataset(
        "d", data=np.arange(2000000, dtype="<i4"), chunks=(1000,)))


FAR = ("debug_fault=delay:1+:30@data/*", "workers=64", "debug_count")


def test_chunks_are_joined_all_along_a_file(long, mount):
    """Prefetches are requested in groups, so a long read takes few requests from beginning to end,
    and few bytes that no program reads. The program reads one chunk at a time."""
    m = mount(long, *FAR)
    with h5py.File(m.file("x.h5"), rdcc_nbytes=0) as f:
        before = m.counts()
        for i in range(0, 2000000, 1000):
            assert f["d"][i] == i
        spent = difference(before, m.counts())
    print(spent)
    assert spent["range_gets"] <= 2000 / 20
    assert 8000000 <= spent["bytes_in"] < 1.2 * 8000000


def test_a_reader_that_stops_wastes_little(long, mount):
    """The read-ahead of the kernel and what is prefetched for it, at most."""
    m = mount(long, *FAR)
    with h5py.File(m.file("x.h5"), rdcc_nbytes=0) as f:
        before = m.counts()
        for i in range(500000, 520000, 1000):
            assert f["d"][i] == i
    spent = difference(before, m.counts())
    print(spent)
    assert spent["bytes_in"] < 5 << 20 and spent["range_gets"] <= 20


def test_the_next_open_reads_the_chunk_table_again(tmp_path, mount):
    """In a domain of more than 1,000 keys, whose chunks an open does not list."""
    record = np.dtype([("offset", "<i8"), ("size", "<i4")])
    fields = [{"name": "offset", "type": mkbucket.INT64}, {"name": "size", "type": mkbucket.INT32}]
    root = tmp_path / "links"
    with mkbucket.Maker(root) as made:
        domain = made.domain("x.h5")
        made.put("data/x", np.arange(1000, dtype="<i4").tobytes())
        many = domain.dataset(domain.root, "many", mkbucket.INT32, [1001], [1])
        for i in range(1001):
            many.chunk((i,), np.array([i], "<i4"))
        table = domain.dataset(None, None, {"class": "H5T_COMPOUND", "fields": fields}, [2], [2])
        table.chunk((0,), np.array([(400, 40), (800, 40)], record))
        domain.dataset(domain.root, "d", mkbucket.INT32, [20], [10], layout={
            "class": "H5D_CHUNKED_REF_INDIRECT", "file_uri": "links/data/x", "dims": [10],
            "chunk_table": table.id})
    m = mount(root)
    for first in (100, 300):
        with h5py.File(m.file("x.h5")) as f:
            assert np.array_equal(f["d"][:10], np.arange(first, first + 10))
        np.array([(1200, 40), (800, 40)], record).tofile(root / table.chunk_key((0,)))


def test_contiguous_data_take_few_requests(links, mount):
    m = mount(links, "debug_count")
    with h5py.File(m.file(HOME, "contig.h5")) as f:
        before = m.counts()
        f["big"][()]
        after = difference(before, m.counts())
    assert after["range_gets"] <= 16, after         # of 18 runs of 256 KiB
    assert after["bytes_in"] < 1.2 * 4400000


def test_another_name_of_the_bucket(copy, tmp_path, mount):
    renamed = tmp_path / "renamed"
    os.rename(copy, renamed)
    m = mount(renamed)
    with h5py.File(m.file(HOME, "contig.h5")) as f:
        with pytest.raises(OSError):
            f["big"][()]
    assert 'links/data/contig.h5 is outside of the bucket "renamed"' in m.log()
    assert ("; to read it, use -o bucket_name=links if it is a copy of that bucket, "
            "otherwise -o allow_uri=s3://links/data/\n") in m.log()
    check_all(mount(renamed, "bucket_name=links"), renamed)


def edit(bucket, oid, change):
    """Changes the layout in the document of a dataset, and the way it is stored."""
    path = os.path.join(bucket, "db", oid[2:19], "d", oid[20:], ".dataset.json")
    with open(path, encoding="utf-8") as f:
        document = json.load(f)
    change(document["creationProperties"]["layout"])
    with open(path, "w", encoding="utf-8") as f:
        json.dump(document, f)


BIG = "d-5b05ad3b-4b5a4676-026a-a4941b-ebc00b"     # of contig.h5


def fails(m, name, dataset, errors=OSError):
    with h5py.File(m.file(HOME, name)) as f:
        with pytest.raises(errors):
            f[dataset][()]


def test_a_file_elsewhere_needs_permission(copy, tmp_path, mount):
    other = tmp_path / "other"
    (other / "sub").mkdir(parents=True)
    shutil.copy(copy / "data" / "contig.h5", other / "sub" / "x.h5")
    os.symlink(copy / "data" / "contig.h5", other / "sub" / "link.h5")
    with h5py.File(copy / "data" / "contig.h5") as f:
        expected = f["big"][()]
    edit(copy, BIG, lambda l: l.update(file_uri=f"file://{other}/sub/x.h5"))
    m = mount(copy)
    fails(m, "contig.h5", "big")
    assert "is outside of the bucket" in m.log()
    m = mount(copy, f"allow_uri=file://{other}/")
    with h5py.File(m.file(HOME, "contig.h5")) as f:
        assert np.array_equal(f["big"][()], expected)
    # A link that leads out of the directory is not followed.
    edit(copy, BIG, lambda l: l.update(file_uri=f"file://{other}/sub/link.h5"))
    m = mount(copy, f"allow_uri=file://{other}/")
    fails(m, "contig.h5", "big")


@pytest.mark.parametrize("uri, why", [
    ("links/data/none.h5", "does not exist"),
    ("links/data/../data/contig.h5", "not the URI of a file"),
    ("http://links/data/contig.h5", "only s3:// and file://"),
    ("s3://key:secret@links/data/contig.h5", "contains credentials"),
    ("https://key:secret@links/data/contig.h5", "contains credentials"),
    ("links/", "not the URI of a file"),
    ("links/home/.domain.json", "past the end of the file"),
])
def test_bad_uris_fail_with_one_clear_line(copy, mount, uri, why):
    edit(copy, BIG, lambda l: l.update(file_uri=uri))
    m = mount(copy)
    fails(m, "contig.h5", "big")
    with h5py.File(m.file(HOME, "contig.h5")) as f, h5py.File(copy / "data" / "contig.h5") as s:
        assert equal(f["c1d"], s["c1d"])
    assert why in m.log() and "secret" not in m.log(), m.log()


@pytest.mark.parametrize("change, why", [
    ({"offset": 5000000}, "past the end of the file, which has 4724408 bytes"),
    ({"size": 100}, "has 100 bytes, which are fewer than those of the dataset"),
])
def test_bad_ranges_fail_with_one_clear_line(copy, mount, change, why):
    edit(copy, BIG, lambda l: l.update(change))
    m = mount(copy)
    fails(m, "contig.h5", "big")
    assert why in m.log(), m.log()


def test_a_damaged_reference_fails_only_reads(copy, mount):
    edit(copy, BIG, lambda l: l.update(offset=-8))
    m = mount(copy)
    with h5py.File(m.file(HOME, "contig.h5")) as f:
        assert f["big"].shape == (550, 1000) and f["c1d"][0] is not None
        with pytest.raises(OSError):
            f["big"][()]
    assert "not the offset and size of a range" in m.log()
    checked = run(mounts.HSIMAGE, "-b", copy, "check", HOME + "/contig.h5")
    assert checked.returncode == 1
    assert f"{BIG}: its reference to HDF5 files is damaged" in checked.stdout


def test_a_changed_file_is_an_error_until_the_next_open(copy, mount):
    m = mount(copy)
    path = copy / "data" / "contig.h5"
    with h5py.File(path) as f:
        expected = f["c1d"][()]
    with h5py.File(m.file(HOME, "contig.h5")) as f:
        assert np.array_equal(f["c1d"][()], expected)
        shutil.copy(copy / "data" / "contig.h5", copy / "data" / "new.h5")
        os.rename(copy / "data" / "new.h5", path)
        with pytest.raises(OSError):
            f["big"][()]
    assert "links/data/contig.h5" in m.log()
    assert "has changed since the domain was opened" in m.log()
    with h5py.File(m.file(HOME, "contig.h5")) as f, h5py.File(path) as s:
        assert equal(f["c2d"], s["c2d"]) and equal(f["big"], s["big"])


def test_another_version_than_the_recorded_one(copy, mount):
    edit(copy, BIG, lambda l: l.update(hsmount={"size": 17}))
    m = mount(copy)
    fails(m, "contig.h5", "big")
    assert "is not the version that the domain was made from" in m.log()


def write_file(path, make):
    with h5py.File(path, "w", libver="latest") as f:
        make(f)


def linked(tmp_path, make, chunks=None):
    """A bucket with a file and a domain that refers to the chunks of all datasets in it. HSDS drops
    all filters but deflate and shuffle."""
    root = tmp_path / "links"
    with mkbucket.Maker(root) as made:
        domain = made.domain("x.h5")
        os.makedirs(root / "data")
        write_file(root / "data" / "x.h5", make)
        with h5py.File(root / "data" / "x.h5") as f:
            for name, d in datasets(f).items():
                filters = [{"class": "H5Z_FILTER_DEFLATE", "id": 1, "level": 4, "name": "gzip"}] \
                    if d.compression == "gzip" else []
                if d.shuffle:
                    filters.insert(0, {"class": "H5Z_FILTER_SHUFFLE", "id": 2, "name": "shuffle"})
                infos = [d.id.get_chunk_info(i) for i in range(d.id.get_num_chunks())]
                table = {"_".join(str(o // c) for o, c in zip(i.chunk_offset, d.chunks)):
                         [i.byte_offset, i.size] for i in infos}
                kind = {"i": mkbucket.INT32}[d.dtype.kind]
                domain.dataset(domain.root, name, kind, list(d.shape), list(d.chunks),
                               filters=filters,
                               layout={"class": "H5D_CHUNKED_REF", "file_uri": "links/data/x.h5",
                                       "dims": list(d.chunks), "chunks": table})
    return root


def test_filters_that_the_service_drops(tmp_path, mount):
    n = (np.arange(40000) % 1000).astype("<i4").reshape(200, 200)

    def make(f):
        f.create_dataset("sum", data=n, chunks=(64, 70), fletcher32=True)
        f.create_dataset("gzip_sum", data=n, chunks=(64, 70), compression="gzip", fletcher32=True)
        f.create_dataset("lzf", data=n, chunks=(64, 70), compression="lzf")
        f.create_dataset("lzf_shuffle", data=n, chunks=(64, 70), compression="lzf", shuffle=True)
        f.create_dataset("scaled", data=n, chunks=(64, 70), scaleoffset=0)
        f.create_dataset("szip", data=n, chunks=(64, 70), compression="szip")
        masked = f.create_dataset("masked", (200, 200), "<i4", chunks=(64, 70), compression="gzip")
        masked[...] = n
        masked.id.write_direct_chunk((0, 0), np.ascontiguousarray(n[:64, :70]).tobytes(), 1)

    root = linked(tmp_path, make)
    m = mount(root, "debug_count")
    with h5py.File(m.file("x.h5")) as f, h5py.File(root / "data" / "x.h5") as s:
        assert len(datasets(f)) == 7
        for name, d in datasets(f).items():
            assert equal(d, s[name]), name


def test_a_filter_without_a_decoder_is_named(tmp_path, mount):
    n = np.arange(1000, dtype="<i4")

    def make(f):
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((1000,))
        plist.set_filter(32768, h5py.h5z.FLAG_OPTIONAL, (7,))
        d = h5py.h5d.create(f.id, b"odd", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((1000,)),
                            plist)
        d.write_direct_chunk((0,), b"odd bytes", 0)
        f.create_dataset("sound", data=n, chunks=(100,))

    root = linked(tmp_path, make)
    m = mount(root)
    with h5py.File(m.file("x.h5")) as f:
        with pytest.raises(OSError):
            f["odd"][()]
        assert np.array_equal(f["sound"][()], n)
    assert "filter 32768 is not built in" in m.log(), m.log()
