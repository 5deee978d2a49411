# SPDX-License-Identifier: Apache-2.0
"""What HSDS keeps of a domain beside its objects: `.info.json`, from which its clients show counts
and sizes, and `.summary.json`, from which HSDS 1.0 answers. The judge is a scan by the rules of
the service, which is itself compared with the summaries that the service has written."""
import json
import os

import h5py
import numpy as np
import pytest

import h5make
import hsds_validator
import mounts
import rwmounts
from hsds_validator import check_summary
from mounts import HSIMAGE, run
from programs import Python

DOMAIN = "home/a.h5"
# Of a summary of the service. A scan that does not know all versions has no "md5_sum".
MEMBERS = {"lastModified", "num_groups", "num_datatypes", "datasets", "num_chunks",
           "allocated_bytes", "metadata_bytes", "num_linked_chunks", "linked_bytes",
           "logical_bytes", "bucket", "scan_start", "scan_complete"}


def hsimage(bucket, *args):
    done = run(HSIMAGE, "-b", bucket, *args, check=True, timeout=110)
    assert "summary" not in done.stdout + done.stderr
    return done


def storage(bucket, domain=DOMAIN):
    with open(bucket / domain / ".domain.json", encoding="ascii") as f:
        return bucket / hsds_validator.folder_of(json.load(f)["root"])


def info(bucket):
    with open(storage(bucket) / ".info.json", encoding="ascii") as f:
        return json.load(f)


@pytest.mark.sampled
def test_the_scan_is_that_of_the_service(entry):
    """Every summary of the collections, but for those that are missing."""
    bucket = entry.collection.bucket.root
    if entry.collection.name == "hsds-v1":
        pytest.skip("schema v1 has no summaries")
    try:
        assert check_summary(bucket, entry.path) == []
    except FileNotFoundError as e:
        assert e.filename.endswith(".info.json")


# ---- import, link ----

@pytest.mark.sampled(rarer=2)
@pytest.mark.parametrize("name,bounds", [n for n in h5make.names() if n[0] != "unsupported"])
def test_import(tmp_path, bucket, name, bounds):
    source = tmp_path / "source.h5"
    h5make.make(source, name, bounds)
    hsimage(bucket, "import", source, DOMAIN)
    assert set(info(bucket)) == MEMBERS and info(bucket)["bucket"] == bucket.name
    assert check_summary(bucket, DOMAIN) == []
    hsimage(bucket, "check", "--all")


def write_linked(path):
    n = np.arange(6000)
    with h5py.File(path, "w") as f:
        f["contiguous"], f["few"] = n, n[:10]
        f.create_dataset("listed", data=n, chunks=(1000,))
        f.create_dataset("table", data=n, chunks=(5,), compression="gzip", shuffle=True)
        sparse = f.create_dataset("sparse", (10 ** 6,), "<i4", chunks=(100,), fillvalue=3)
        sparse[5000:300000] = 7
        f["text"] = np.array(["one", "two"], dtype=object)


def test_link(bucket):
    (bucket / "raw").mkdir()
    write_linked(bucket / "raw/a.h5")
    hsimage(bucket, "link", "raw/a.h5", DOMAIN)
    assert set(info(bucket)) == MEMBERS
    assert check_summary(bucket, DOMAIN) == []
    datasets = info(bucket)["datasets"].values()
    assert sorted(d["num_linked_chunks"] for d in datasets if d["num_linked_chunks"]) == \
        [1, 6, 1200, 2950]


def test_a_summary_of_the_service_stays(bucket, tmp_path):
    """What is there when the domain appears is as new as the domain, or newer."""
    write_linked(tmp_path / "a.h5")
    hsimage(bucket, "import", tmp_path / "a.h5", DOMAIN)
    (storage(bucket) / ".info.json").write_text("{}")
    hsimage(bucket, "import", "--replace", tmp_path / "a.h5", DOMAIN)
    assert check_summary(bucket, DOMAIN) == []


def test_size_before_the_first_open(bucket, tmp_path):
    """`ls -l` shows the size of a large domain that was not opened yet as that of its data."""
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("d", data=np.arange(30000), chunks=(20,))
    hsimage(bucket, "import", tmp_path / "a.h5", DOMAIN)
    with mounts.Mount(bucket, tmp_path) as m:
        size = os.stat(m.file(DOMAIN)).st_size
        assert 240000 < size == sum(info(bucket)[n] for n in ("logical_bytes", "metadata_bytes"))


# ---- commits ----

CHANGES = {
    "attribute": "f['few'].attrs['a'] = 1",
    "new": "f['g/new'] = np.arange(50); f['strings'] = ['one', 'two']; f['t'] = np.dtype('i4')",
    "grow": "f['rows'].resize((500,)); f['rows'][300:] = 7; f['rows'][:10] = 1",
    "shrink": "f['rows'].resize((150,)); del f['few']",
    "remove": "del f['g'], f['text']; f['rows'][:] = 0",
}


def is_true(bucket):
    """Whether the summary is that of a scan. Removed objects may be deleted during the scan."""
    try:
        return check_summary(bucket, DOMAIN) == []
    except FileNotFoundError:
        return False


def write_rows(path):
    with h5py.File(path, "w") as f:
        f["few"], f["g/x"] = np.arange(10), 1
        f["text"] = np.array(["one", "two"], dtype=object)
        f.create_dataset("rows", data=np.arange(300), chunks=(100,), maxshape=(None,),
                         compression="gzip", fillvalue=-1)


@pytest.mark.parametrize("name", CHANGES)
def test_a_commit_puts_a_new_summary(bucket, tmp_path, name):
    """In the second commit, too. Only chunks and objects that were removed are deleted. The clients
    of the service see what the domain has."""
    write_rows(tmp_path / "a.h5")
    hsimage(bucket, "import", tmp_path / "a.h5", DOMAIN)
    first = info(bucket)
    with rwmounts.RwMount(bucket, tmp_path, "gc_delay=0") as m:
        before = m.requests()
        with h5py.File(m.file(DOMAIN), "r+") as f:
            exec(CHANGES[name], {"f": f, "np": np})
        m.released()
        assert mounts.wait_for(lambda: name == "attribute" or is_true(bucket))
        assert (info(bucket) == first) == (name == "attribute")
        assert set(info(bucket)) == MEMBERS and info(bucket)["bucket"] == bucket.name
        with h5py.File(m.file(DOMAIN), "r+") as f:
            f["another"] = np.arange(9)
        m.released()
        assert mounts.wait_for(lambda: is_true(bucket))
        made = mounts.difference(before, m.requests())
        deleted = {"shrink": 3, "remove": 5}.get(name, 0)
        assert made["delete"] == deleted, made


@pytest.mark.parametrize("name", ("new", "grow", "shrink"))
def test_a_commit_between_open_and_close(bucket, tmp_path, name):
    """It does not disturb the other one, which does not know its objects and shapes, and so cannot
    count them."""
    write_rows(tmp_path / "a.h5")
    hsimage(bucket, "import", tmp_path / "a.h5", DOMAIN)
    (tmp_path / "1").mkdir(), (tmp_path / "2").mkdir()
    with rwmounts.RwMount(bucket, tmp_path / "1") as a, \
            rwmounts.RwMount(bucket, tmp_path / "2", "metadata_ttl=0", "gc_delay=0") as b:
        with Python(a.file(DOMAIN)) as p:
            assert p("f = h5py.File(path, 'r+'); f['g/one'] = np.arange(5)") == "ok"
            with h5py.File(b.file(DOMAIN), "r+") as f:
                exec(CHANGES[name].replace("g/new", "h"), {"f": f, "np": np})
            b.released()
            assert mounts.wait_for(lambda: is_true(bucket))
            assert p("f.close()") == "ok"
        a.released()
    assert not (storage(bucket) / ".info.json").exists()


def test_commits_of_two_mounts(bucket, tmp_path):
    """The PUT of one summary waits, while another mount adds a dataset and puts its own. Neither
    lacks a dataset: the summary is deleted, because nobody has counted all."""
    write_rows(tmp_path / "a.h5")
    hsimage(bucket, "import", tmp_path / "a.h5", DOMAIN)
    (tmp_path / "1").mkdir(), (tmp_path / "2").mkdir()
    with rwmounts.RwMount(bucket, tmp_path / "1", "debug_fault=delay:1:1500@*/.info.json") as a, \
            rwmounts.RwMount(bucket, tmp_path / "2", "metadata_ttl=0") as b:
        with Python(a.file(DOMAIN)) as p:
            assert p("f = h5py.File(path, 'r+'); f['g/one'] = np.arange(5)") == "ok"
            p.begin("f.close()")
            assert mounts.wait_for(lambda: h5py.File(b.file(DOMAIN), "r")["g"].get("one"))
            with h5py.File(b.file(DOMAIN), "r+") as f:
                f["two"] = 2
            b.released()
            assert check_summary(bucket, DOMAIN) == []
            assert p.end() == "ok"
        a.released()
    assert not (storage(bucket) / ".info.json").exists()


def change(path, value):
    with h5py.File(path, "r+") as f:
        f["few"].attrs["a"] = value


@pytest.mark.parametrize("small", [True, False])
def test_a_commit_deletes_the_copy_of_the_service(bucket, tmp_path, small):
    """One DELETE before the puts, if the listing of the open has shown it; never a second one. The
    listing of a large domain is not complete, so its copy stays."""
    source = tmp_path / "a.h5"
    with h5py.File(source, "w") as f:
        f["few"] = np.arange(10)
        for n in range(0 if small else 1000):
            f[f"n{n}"] = n
    hsimage(bucket, "import", source, DOMAIN)
    copy = storage(bucket) / ".summary.json"
    with rwmounts.RwMount(bucket, tmp_path) as m:
        found = []
        for n in range(2):
            copy.write_text("{}")
            before = m.requests()
            change(m.file(DOMAIN), n)
            m.released()
            made = mounts.difference(before, m.requests())
            found.append((copy.exists(), made["put"], made["delete"]))
            before = m.requests()
            change(m.file(DOMAIN), n + 10)
            m.released()
            made = mounts.difference(before, m.requests())
            found.append((copy.exists(), made["put"], made["delete"]))
    assert found == ([(False, 1, 1), (False, 1, 0)] if small else [(True, 1, 0)] * 2) * 2
