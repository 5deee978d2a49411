# SPDX-License-Identifier: Apache-2.0
"""What users do with Zarr stores: mount a single one, look at it with hsimage, copy one into a
writable mount, and try to change the file of one."""
import errno
import json
import os
import shutil

import h5py
import numpy as np
import pytest

import mkbucket
from mounts import HSIMAGE, HSMOUNT, Mount, run
from rwmounts import RwMount, attribute
from s3liar import Liar, error
from zarr_write import Store, join

NUMBERS = np.arange(12, dtype="<i4").reshape(3, 4)


def write_store(path, version=2, **how):
    """Arrays with codecs, and one that cannot be shown."""
    with Store(path, version, attributes={"title": "numbers"}, **how) as store:
        store.array("g/a", NUMBERS, chunks=(2, 2), codecs=["shuffle", "zlib"], order="F",
                    fill=-1, names=["y", "x"], attributes={"units": "m"})
        store.array("plain", np.linspace(0, 1, 5), fill=np.nan)
        store.array("bad", NUMBERS)
        store.documents["bad/.zarray" if version == 2 else "bad/zarr.json"][
            "dtype" if version == 2 else "data_type"] = "<q9"
    return store


@pytest.fixture(scope="module", name="version", params=(2, 3), ids="v{}".format)
def fixture_version(request):
    return request.param


@pytest.fixture(scope="module", name="bucket")
def fixture_bucket(tmp_path_factory, version):
    root = tmp_path_factory.mktemp("bucket")
    for path in "x.zarr", "deep/er/no suffix", "has.nc":
        write_store(root / path, version, consolidated=path == "x.zarr")
    (root / "beside.txt").write_bytes(b"plain")
    return root


@pytest.fixture(scope="module", name="shown")
def fixture_shown(bucket, tmp_path_factory):
    with Mount(bucket, tmp_path_factory.mktemp("mount")) as m:
        yield m


def values(path):
    with h5py.File(path, "r") as f:
        assert f.attrs["title"] == b"numbers" and f["g/a"].attrs["units"] == b"m"
        return f["g/a"][()].tolist()


# ---- a bucket that refuses listings ----

def refuse(request, honest):
    """As S3 does if the user may read objects but not list them: no answer shows that an object
    does not exist."""
    return error(403, "AccessDenied") if request.is_list or honest.status == 404 else None


@pytest.mark.parametrize("where", ["", "a/b/"])
def test_a_bucket_that_refuses_listings(tmp_path, version, where):
    """A single store with consolidated metadata can be mounted. All chunks that exist can be
    read."""
    with Store(tmp_path / "bucket" / where / "x.zarr", version, consolidated=True) as store:
        store.array("g/data", np.arange(4096, dtype="<i4"), chunks=(2048,), fill=-1, absent=[(1,)])
    Store(tmp_path / "bucket/y.zarr", version).write_documents()
    with Liar(tmp_path / "bucket") as service:
        service.lie = refuse
        env = service.environment()
        url = f"s3://bucket/{where}x.zarr"
        for options, rest in ((), []), (("forbidden_chunks=absent",), [-1] * 2048):
            with Mount(url, tmp_path / "mnt", *options, env=env) as m:
                assert os.listdir(m.path) == ["x.zarr.nc"]
                # h5py would stop the threads of the service.
                for start, expected in (0, list(range(2048))), (2048, rest):
                    run("h5dump", "-d", "/g/data", "-s", str(start), "-c", "2048", "-b", "LE", "-o",
                        tmp_path / "raw", m.file("x.zarr.nc"))
                    assert np.fromfile(tmp_path / "raw", "<i4").tolist() == expected
        # So can hsimage open it.
        assert run(HSIMAGE, "ls", url, env=env, check=True).stdout == "x.zarr.nc\n"
        info = run(HSIMAGE, "info", url, env=env, check=True).stdout
        assert f"format: zarr{version}\n" in info and "/g/data: int32 [4096]" in info
        run(HSIMAGE, "export", "-o", "forbidden_chunks=absent", url, tmp_path / "out.nc",
            env=env, check=True)
        with h5py.File(tmp_path / "out.nc", "r") as f:
            assert f["g/data"][()].tolist() == list(range(2048)) + [-1] * 2048
        for wrong in f"{url}.nc", "s3://bucket", "s3://bucket/none.zarr":
            r = run(HSIMAGE, "info", wrong, env=env)
            assert r.returncode == 1 and "the credentials do not allow listing" in r.stderr, r
        with Mount("s3://bucket/y.zarr", tmp_path / "mnt", env=env) as m:
            with pytest.raises(PermissionError):
                open(m.file("y.zarr.nc"), "rb")
        for wrong in "s3://bucket", "s3://bucket/none.zarr":
            r = run(HSMOUNT, wrong, tmp_path / "mnt", env=env)
            assert r.returncode == 1 and "the credentials do not allow listing" in r.stderr


# ---- chunks that are larger than a mount holds ----

@pytest.fixture(scope="module", name="large_chunks")
def fixture_large_chunks(tmp_path_factory, version):
    """An array with two chunks of 320 MB, of which few bytes take space. The second chunk is not
    stored. Another array has one chunk, whose length is a prime."""
    root = tmp_path_factory.mktemp("bucket")
    row = 1000 * 1000
    with Store(root / "x.zarr", version) as store:
        for name, shape, chunk in (("a", [160, 1000, 1000], [80, 1000, 1000]),
                                   ("b", [83, 1000, 1000], [83, 1000, 1000])):
            a = store.array(name, np.zeros((1, 1, 1), "<f4"), absent=[(0, 0, 0)], fill=-1)
            document = a.document()
            document["shape"] = shape
            if version == 2:
                document["chunks"] = chunk
            else:
                document["chunk_grid"]["configuration"]["chunk_shape"] = chunk
            store.documents[join(name, ".zarray" if version == 2 else "zarr.json")] = document
            store.put(f"{name}/{a.key((0, 0, 0))}", b"")
            with open(store.path(name, a.key((0, 0, 0))), "r+b") as f:
                f.truncate(chunk[0] * row * 4)
                for at in 0, 7, 79:
                    f.seek((at * row + 999_999) * 4)
                    f.write(np.array([at + 0.5], "<f4").tobytes())
    return store


def test_a_chunk_of_320_mb(large_chunks, tmp_path):
    with Mount(os.path.dirname(large_chunks.root), tmp_path / "mnt") as m:
        with h5py.File(m.file("x.zarr.nc"), "r") as f:
            for a in f["a"], f["b"]:
                assert a.chunks[0] < 10 and a.chunks[1:] == (1000, 1000)
                assert [a[i, 999, 999] for i in (0, 7, 79)] == [0.5, 7.5, 79.5]
                assert a[7:9, 998:, 998:].tolist() == [[[0, 0], [0, 7.5]], [[0, 0], [0, 0]]]
            assert (f["a"][80:88] == -1).all() and f["a"][159, 999, 999] == -1
            assert not f["b"][80:83].any()
    if large_chunks.version == 2:
        r = run(HSIMAGE, "check", "--all", large_chunks.root, check=True)
        assert r.stdout.endswith("chunks 2, decoded 41\n"), r.stdout
    with open(large_chunks.path("a", large_chunks.arrays["a"].key((0, 0, 0))), "r+b") as chunk:
        whole = chunk.seek(0, os.SEEK_END)
        chunk.truncate(whole - 1)
        r = run(HSIMAGE, "check", large_chunks.root)
        assert r.returncode == 1 and "a: x.zarr/a/" in r.stdout
        assert "the chunk has 319999999 bytes instead of 320000000" in r.stdout, r.stdout
        assert "chunks 2, decoded 0, errors 1\n" in r.stdout, r.stdout
        with Mount(os.path.dirname(large_chunks.root), tmp_path / "mnt") as m:
            with h5py.File(m.file("x.zarr.nc"), "r") as f, pytest.raises(OSError):
                f["a"][0, 999, 999]     # whose bytes are there
            assert "the object has 319999999 bytes instead of 320000000" in m.log()
        chunk.truncate(whole)


def test_the_parts_of_a_chunk_are_of_one_version(large_chunks, tmp_path):
    with Mount(os.path.dirname(large_chunks.root), tmp_path / "mnt") as m:
        with h5py.File(m.file("x.zarr.nc"), "r") as f:
            assert f["b"][7, 999, 999] == 7.5
            key = large_chunks.path("b", large_chunks.arrays["b"].key((0, 0, 0)))
            with open(key, "r+b") as chunk:
                chunk.write(b"\1")
            with pytest.raises(OSError):
                f["b"][79, 999, 999]


# ---- names ----

def test_names(shown):
    assert sorted(os.listdir(shown.path)) == ["beside.txt", "deep", "has.nc", "x.zarr.nc"]
    assert os.listdir(shown.file("deep/er")) == ["no suffix.nc"]
    for path in "x.zarr.nc", "deep/er/no suffix.nc", "has.nc":
        assert values(shown.file(path)) == NUMBERS.tolist()


def test_the_directory_of_a_store_has_its_keys(bucket, shown):
    path = shown.file("x.zarr")
    assert sorted(os.listdir(path)) == sorted(os.listdir(bucket / "x.zarr"))
    assert sorted(os.listdir(f"{path}/g")) == sorted(os.listdir(bucket / "x.zarr/g"))
    for at, _, names in os.walk(bucket / "x.zarr"):
        for name in names:
            key = os.path.relpath(os.path.join(at, name), bucket)
            with open(shown.file(key), "rb") as a, open(bucket / key, "rb") as b:
                assert a.read() == b.read(), key


def test_what_find_and_copies_see(shown, tmp_path):
    """Each store once, as a file."""
    found = run("find", shown.path, "-type", "f", "-printf", "%P\n", check=True).stdout
    assert sorted(found.split("\n")[:-1]) == [
        "beside.txt", "deep/er/no suffix.nc", "has.nc", "x.zarr.nc"]
    run("cp", "-r", shown.file("deep"), tmp_path, check=True)
    assert values(tmp_path / "deep/er/no suffix.nc") == NUMBERS.tolist()


@pytest.mark.parametrize("kind", ["object", "domain", "directory"])
def test_another_entry_with_the_name_comes_first(tmp_path, mount, kind):
    root = tmp_path / "bucket"
    with mkbucket.Maker(root) as bucket:
        bucket.domain("d.h5")
        if kind == "object":
            bucket.put("x.zarr.nc", b"mine")
        elif kind == "directory":
            bucket.put("x.zarr.nc/key", b"mine")
        else:
            d = bucket.domain("x.zarr.nc")
            d.dataset(d.root, "mine", mkbucket.INT32, [1], [1])
    write_store(root / "x.zarr")
    m = mount(root)
    path = m.file("x.zarr.nc")
    assert os.listdir(m.path).count("x.zarr.nc") == 1
    if kind == "domain":
        with h5py.File(path, "r") as f:
            assert list(f) == ["mine"]
    else:
        with open(path if kind == "object" else f"{path}/key", "rb") as f:
            assert f.read() == b"mine"
    assert ".zgroup" in os.listdir(m.file("x.zarr"))
    assert "the name x.zarr.nc is taken" in m.log()


def test_stores_beside_domains(tmp_path, mount):
    """In a folder of HSDS, and with a folder document, which a writable mount makes."""
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        bucket.folder("home")
        bucket.domain("home/d.h5")
        bucket.folder("home/x.zarr")
    write_store(tmp_path / "bucket/home/x.zarr")
    m = mount(tmp_path / "bucket")
    assert values(m.file("home/x.zarr.nc")) == NUMBERS.tolist()
    # Folders are listed for marks only once the mount has seen a store.
    assert sorted(os.listdir(m.file("home"))) == ["d.h5", "x.zarr.nc"]


def test_a_listing_that_shows_the_first_store(tmp_path, mount):
    """It also shows the stores with a folder document that it has."""
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        bucket.folder("home")
        bucket.folder("home/a.zarr")
        bucket.folder("home/plain")
        bucket.domain("home/plain/d.h5")
    for name in "a.zarr", "b.zarr":
        write_store(tmp_path / "bucket/home" / name)
    m = mount(tmp_path / "bucket")
    assert sorted(os.listdir(m.file("home"))) == ["a.zarr.nc", "b.zarr.nc", "plain"]


def test_a_store_that_is_copied_into_a_folder_of_hsds(tmp_path, bucket):
    with mkbucket.Maker(tmp_path / "bucket") as maker:
        maker.folder("home")
        maker.domain("home/d.h5")
    with RwMount(tmp_path / "bucket", tmp_path) as m:
        run("cp", "-r", bucket / "x.zarr", m.file("home"), check=True)
        assert sorted(os.listdir(m.file("home"))) == ["d.h5", "x.zarr.nc"]
    with Mount(tmp_path / "bucket", tmp_path) as m:
        assert values(m.file("home/x.zarr.nc")) == NUMBERS.tolist()
        assert sorted(os.listdir(m.file("home"))) == ["d.h5", "x.zarr.nc"]


def test_a_file_that_is_copied_into_the_directory_of_a_store(tmp_path, version):
    """It is stored as it is, as all keys of a store."""
    write_store(tmp_path / "bucket/x.zarr", version)
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["x"] = [1, 2, 3]
    with RwMount(tmp_path / "bucket", tmp_path) as m:
        for path in "x.zarr/a.h5", "x.zarr/g/a.h5":
            run("cp", tmp_path / "a.h5", m.file(path), check=True)
            assert run("cmp", tmp_path / "a.h5", m.file(path)).returncode == 0
            assert (tmp_path / "bucket" / path).is_file()
            assert "in the directory of a store" in attribute(m.file(path), "user.hsds.kept")
        run("cp", tmp_path / "a.h5", m.file("a.h5"), check=True)
    assert (tmp_path / "bucket/a.h5/.domain.json").is_file()
    r = run(HSIMAGE, "check", tmp_path / "bucket")
    assert "left over" not in r.stdout, r.stdout


def test_a_store_in_a_group_of_a_store_is_a_part_of_it(tmp_path, mount):
    root = tmp_path / "bucket"
    write_store(root / "x.zarr")
    write_store(root / "x.zarr/inner")
    m = mount(root)
    assert os.listdir(m.path) == ["x.zarr.nc"]
    assert "inner" in os.listdir(m.file("x.zarr"))
    with h5py.File(m.file("x.zarr.nc"), "r") as f:
        assert f["inner/g/a"][()].tolist() == NUMBERS.tolist()


# ---- a single store ----

@pytest.mark.parametrize("name, file", [("x.zarr", "x.zarr.nc"), ("has.nc", "has.nc"),
                                        ("deep/er/no suffix", "no suffix.nc")])
def test_a_mount_of_one_store(bucket, mount, name, file):
    m = mount(bucket / name)
    assert os.listdir(m.path) == [file]
    assert values(m.file(file)) == NUMBERS.tolist()
    assert not os.path.exists(m.file("beside.txt"))


def test_a_mount_of_a_group_of_a_store(bucket, mount):
    m = mount(bucket / "x.zarr/g")
    assert os.listdir(m.path) == ["g.nc"]
    with h5py.File(m.file("g.nc"), "r") as f:
        assert f["a"][()].tolist() == NUMBERS.tolist()


@pytest.mark.parametrize("name", ["x.zarr", "x.zarr.nc", "deep/er/no suffix", "has.nc"])
def test_hsimage(bucket, version, tmp_path, name):
    path = bucket / name
    cause = "bad/.zarray: dtype" if version == 2 else "bad/zarr.json: data_type"
    info = run(HSIMAGE, "info", path, check=True).stdout
    assert f"format: zarr{version}\n" in info
    assert f'problem: {cause} "<q9" is not known\n' in info
    assert "/g/a: int32 [3,4], chunks [2,2], 4 of 4 written, codecs transpose, " in info
    # An array of a type that is not supported may be sound, but nothing has read its chunks.
    checked = run(HSIMAGE, "check", path)
    assert checked.returncode == 1 and checked.stdout.count("unchecked: ") == 2, checked
    assert f"{cause} \"<q9\" is not known" in checked.stdout and "error" not in checked.stdout
    run(HSIMAGE, "export", path, tmp_path / "out.nc", check=True)
    assert values(tmp_path / "out.nc") == NUMBERS.tolist()


def test_hsimage_ls(bucket):
    assert run(HSIMAGE, "ls", bucket / "x.zarr.nc", check=True).stdout == "x.zarr.nc\n"
    assert run(HSIMAGE, "ls", "-o", "allow_empty", "-b", bucket, "deep/er",
               check=True).stdout == "no suffix.nc\n"
    keys = run(HSIMAGE, "ls", bucket / "x.zarr", check=True).stdout.split()
    assert [k.rstrip("/") for k in keys] == sorted(os.listdir(bucket / "x.zarr"))


def test_a_store_that_does_not_exist(bucket, tmp_path):
    for path in "nope.zarr", "nope.zarr.nc", "no/such/directory":
        r = run(HSIMAGE, "info", bucket / path)
        assert r.returncode == 1 and f"{path}: no such file or directory" in r.stderr, r
    r = run(HSIMAGE, "info", tmp_path / "nope.zarr")
    assert r.returncode == 1 and "is not in a bucket" in r.stderr, r


def test_hsimage_finds_wide_stores_among_domains(tmp_path):
    with mkbucket.Maker(tmp_path / "bucket") as maker:
        maker.folder("home")
        maker.domain("home/d.h5")
    with Store(tmp_path / "bucket/home/wide.zarr") as store:
        for i in range(70):
            store.group(f"g{i}")
    listed = run(HSIMAGE, "ls", "-b", tmp_path / "bucket", "home", check=True).stdout
    assert listed.split() == ["d.h5", "wide.zarr.nc"]
    checked = run(HSIMAGE, "check", tmp_path / "bucket", check=True).stdout
    assert "sound: /home/d.h5: " in checked and "sound: /home/wide.zarr.nc: " in checked


def test_check_of_what_a_file_shows_in_another_form(tmp_path):
    with Store(tmp_path / "x.zarr", attributes={"CLASS": "x"}) as store:
        for name, shape in ("a", 4), ("b", 5):
            store.array(name, np.zeros(shape), names=["x"])
    info = run(HSIMAGE, "info", store.root, check=True).stdout
    assert info.count("problem: ") == 2 and "x_5" in info
    checked = run(HSIMAGE, "check", store.root)
    assert checked.returncode == 0 and "\nsound: " in checked.stdout, checked
    assert "note: /x.zarr: x.zarr/.zattrs: attribute \"CLASS\" is left out" in checked.stdout
    assert "note: /x.zarr: b: dimension x is 5 here, 4 elsewhere: x_5" in checked.stdout
    found = json.loads(run(HSIMAGE, "check", "--json", store.root, check=True).stdout)["findings"]
    assert sorted((f["key"], f["text"].partition(" ")[0]) for f in found) == [
        ("", "b:"), ("x.zarr/.zattrs", "attribute")]


@pytest.mark.parametrize("defect", ["document", "fill value", "codecs"])
def test_check_of_a_damaged_document(tmp_path, defect):
    with Store(tmp_path / "x.zarr", 3) as store:
        store.array("a", NUMBERS, codecs=["zlib"])
    document = store.documents["a/zarr.json"]
    if defect == "fill value":
        document["fill_value"] = "x"
    elif defect == "codecs":
        document["codecs"].reverse()
    store.put("a/zarr.json", b"{" if defect == "document" else json.dumps(document).encode())
    where = "a" if defect == "fill value" else "x.zarr/a/zarr.json"
    checked = run(HSIMAGE, "check", store.root)
    assert checked.returncode == 1 and checked.stdout.count("error: ") == 1, checked
    assert f"error: /x.zarr: {where}: " in checked.stdout and "\ndamaged: " in checked.stdout


def test_the_cause_if_no_document_can_be_read(tmp_path):
    os.mkdir(tmp_path / "x.zarr")
    (tmp_path / "x.zarr/.zmetadata").write_text("{}", encoding="ascii")
    for command in "info", "check":
        said = run(HSIMAGE, command, tmp_path / "x.zarr")
        assert said.returncode == 1
        assert "no document of the store can be read: .zmetadata: zarr_consolidated_format is " \
            "not 1" in said.stdout + said.stderr, said


def test_check_finds_a_damaged_chunk(tmp_path):
    store = write_store(tmp_path / "x.zarr")
    store.put("g/a/1.0", b"no zlib stream")
    del store.documents["bad/.zarray"]
    shutil.rmtree(store.path("bad"))
    assert "sound: /x.zarr: " in run(HSIMAGE, "check", store.root, check=True).stdout
    checked = run(HSIMAGE, "check", "--all", store.root)
    assert checked.returncode == 1 and checked.stdout.count("error: ") == 1
    assert "x.zarr/g/a/1.0" in checked.stdout and "zlib" in checked.stdout, checked.stdout


@pytest.mark.parametrize("target", ["", "/g", "/g/a/", "/new.h5", "/no/such/new.h5"])
def test_no_domain_is_imported_into_a_store(tmp_path, target):
    store = write_store(tmp_path / "bucket/x.zarr")
    with h5py.File(tmp_path / "f.h5", "w") as f:
        f["a"] = 1
    before = sorted(os.walk(tmp_path / "bucket"))
    r = run(HSIMAGE, "import", tmp_path / "f.h5", f"{store.root}{target}")
    assert r.returncode == 1, r
    assert "x.zarr is a store of the format zarr2, which contains no domains; name a path " \
        "outside of it" in r.stderr, r
    assert sorted(os.walk(tmp_path / "bucket")) == before


def test_a_domain_is_imported_beside_a_store(tmp_path):
    write_store(tmp_path / "bucket/home/x.zarr")
    with h5py.File(tmp_path / "f.h5", "w") as f:
        f["a"] = 1
    run(HSIMAGE, "import", "-o", "allow_empty", "-b", tmp_path / "bucket", tmp_path / "f.h5",
        "home/x.h5", check=True)


def test_check_compares_keys_and_sizes(tmp_path, version):
    """It reads no chunk without --all. Foreign keys are counted, but not those of an array that
    is left out."""
    store = write_store(tmp_path / "x.zarr", version)
    for all_chunks, decoded in ((), 0), (("--all",), 5):
        checked = run(HSIMAGE, "check", *all_chunks, store.root)
        assert f"objects 7, chunks 5, decoded {decoded}, unchecked 1\n" in checked.stdout
        assert checked.stdout.count("\n") == 2, checked
    store.put("g/notes.txt", b"mine")
    store.put("g/a/thumbs/1", b"icon")
    plain, empty = (store.path(*k) for k in (("plain", store.arrays["plain"].key((0,))),
                                             ("g/a", store.arrays["g/a"].key((0, 1)))))
    with open(plain, "ab") as chunk:
        chunk.write(b"x")
    with open(empty, "wb"):
        pass
    checked = run(HSIMAGE, "check", store.root).stdout
    assert "note: /x.zarr: keys that are neither a document nor a chunk of an array: 2, 8 bytes" \
        in checked, checked
    assert f"error: /x.zarr: /plain: {os.path.relpath(plain, tmp_path)}: the chunk has 41 bytes " \
        "instead of 40" in checked, checked
    assert f"/g/a: {os.path.relpath(empty, tmp_path)}: the chunk is empty" in checked, checked
    assert "errors 2, unchecked 1, notes 1\n" in checked, checked


def test_extended_attributes(shown, version):
    path = shown.file("deep/er/no suffix.nc")
    transpose = "transpose, shuffle(4), zlib(1)"
    assert attribute(path, "user.hsds.domain") == "/deep/er/no suffix"
    assert attribute(path, "user.hsds.format") == f"zarr{version}"
    assert attribute(path, "user.hsds.filters") == f"/g/a: {transpose}\n"
    assert attribute(path, "user.hsds.problems") == "1"
    assert {"user.hsds.domain", "user.hsds.format", "user.hsds.filters",
            "user.hsds.problems"} <= set(os.listxattr(path))
    for name in "user.hsds.acls", "user.hsds.root", "user.hsds.owner":
        assert attribute(path, name) is None


# ---- writing ----

@pytest.fixture(name="rw")
def fixture_rw(tmp_path):
    write_store(tmp_path / "bucket/x.zarr")
    with RwMount(tmp_path / "bucket", tmp_path) as m:
        yield m


def test_a_store_that_is_copied_into_a_mount(rw, bucket):
    run("cp", "-r", bucket / "x.zarr", rw.file("y.zarr"), check=True)
    assert sorted(os.listdir(rw.path)) == ["x.zarr.nc", "y.zarr.nc"]
    assert values(rw.file("y.zarr.nc")) == NUMBERS.tolist()
    printed = run("ncdump", rw.file("y.zarr.nc"), check=True).stdout
    assert "0, 1, 2, 3" in printed and 'title = "numbers"' in printed
    rw.stop()
    rw.start()
    assert values(rw.file("y.zarr.nc")) == NUMBERS.tolist()


def test_a_store_that_is_copied_within_a_mount(rw):
    shutil.copytree(rw.file("x.zarr"), rw.file("copies/of/y"))
    assert values(rw.file("copies/of/y.nc")) == NUMBERS.tolist()
    shutil.rmtree(rw.file("copies/of/y"))
    assert os.listdir(rw.file("copies/of")) == []


CALLS = {
    "write": lambda p, _: os.open(p, os.O_RDWR),
    "append": lambda p, _: os.open(p, os.O_WRONLY | os.O_APPEND),
    "create": lambda p, _: os.open(p, os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
    "truncate": lambda p, _: os.truncate(p, 0),
    "unlink": lambda p, _: os.unlink(p),
    "rename": os.rename,
}


@pytest.mark.parametrize("call", CALLS)
def test_the_file_of_a_store_cannot_be_changed(rw, tmp_path, call):
    path = rw.file("x.zarr.nc")
    with pytest.raises(OSError) as raised:
        CALLS[call](path, rw.file("y.nc"))
    assert raised.value.errno == errno.EROFS
    assert "x.zarr.nc: a domain of the format zarr2 can only be read; its objects are in the " \
        "directory x.zarr" in rw.log()
    assert os.listdir(rw.path) == ["x.zarr.nc"]
    assert values(path) == NUMBERS.tolist()
    assert sorted(os.listdir(tmp_path / "bucket")) == ["x.zarr"]


def test_nobody_may_write_the_file_of_a_store(rw):
    """An open and a failed change do not change its mode."""
    path = rw.file("x.zarr.nc")
    modes = [os.stat(path).st_mode & 0o777]
    with open(path, "rb") as f:
        f.read(1)
        modes += [os.fstat(f.fileno()).st_mode & 0o777, os.stat(path).st_mode & 0o777]
    modes.append(os.stat(path).st_mode & 0o777)
    assert modes == [0o444] * 4


def test_h5py_and_nco_cannot_write_into_a_store(rw):
    with pytest.raises(OSError):
        h5py.File(rw.file("x.zarr.nc"), "r+")
    assert run("ncatted", "-h", "-a", "title,global,o,c,new", rw.file("x.zarr.nc")).returncode
    assert values(rw.file("x.zarr.nc")) == NUMBERS.tolist()


def test_a_directory_that_becomes_a_store(rw):
    """When the first document arrives, and the reverse when the last one goes. The directory stays
    open for the program that writes into it."""
    directory = rw.file("new.zarr")
    os.mkdir(directory)
    with open(f"{directory}/0", "wb") as f:
        f.write(b"\1\0\2\0")
    assert sorted(os.listdir(rw.path)) == ["new.zarr", "x.zarr.nc"]
    with open(f"{directory}/.zarray", "w", encoding="ascii") as f:
        f.write('{"zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "<i2"}')
    assert sorted(os.listdir(rw.path)) == ["new.zarr.nc", "x.zarr.nc"]
    with h5py.File(rw.file("new.zarr.nc"), "r") as f:
        assert f["data"][()].tolist() == [1, 2]
    os.unlink(f"{directory}/.zarray")
    assert sorted(os.listdir(rw.path)) == ["new.zarr", "x.zarr.nc"]
