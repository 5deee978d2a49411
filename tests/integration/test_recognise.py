# SPDX-License-Identifier: Apache-2.0
"""A directory or S3 prefix that is not a bucket is refused before the program goes into the
background, in one line that says what it is."""
import collections
import os
import subprocess

import pytest

import mkbucket
from mounts import HSIMAGE, HSMOUNT, PATIENCE, TREE, is_mounted, run, unmount
from s3liar import Liar, error
from zarr_write import Store

V1 = "953ef986-e555-11f1-b213-02fc00000001"
V1_ARCHIVE = os.path.join(TREE, "tests", "data", "hsds-v1.tar.xz")

# Places and the messages for them; {} is the directory or bucket that holds the places.
REFUSED = [
    ("good/home", "{0}/good/home is a folder of the bucket {0}/good: use {0}/good and look for "
                  "home/ in it"),
    ("good/lab", "{0}/good/lab is a folder of the bucket {0}/good: use {0}/good and look for lab/ "
                 "in it"),
    ("good/home/x.h5", "{0}/good/home/x.h5 is a single domain of the bucket {0}/good: use {0}/good "
                       "and look for home/x.h5 in it"),
    ("good/home/run", "{0}/good/home/run is a single domain of the bucket {0}/good: use {0}/good "
                      "and look for home/run.h5 in it"),
    ("old/home/x.h5", "{0}/old/home/x.h5 is a single domain of the bucket {0}/old: use {0}/old "
                      "and look for home/x.h5 in it"),
    ("old/home", "{0}/old/home is a folder of the bucket {0}/old: use {0}/old and look for home/ "
                 "in it"),
    ("alone", "{}/alone is a folder of a bucket, not a bucket: use the bucket that it is in"),
]
OTHERS = [
    ("empty", [], "is an empty directory, not a bucket; -o allow_empty accepts it",
     "nothing is there"),
    ("other", ["data"], "is not a bucket: neither the service's storage (db/) nor a domain or "
                        "Zarr store is there; -o allow_empty accepts it",
     "may not be a bucket of domains"),
]


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """One directory with all kinds of places."""
    root = tmp_path_factory.mktemp("places")
    with mkbucket.Maker(root / "good") as bucket:
        bucket.folder("home")
        for path in ("home/x.h5", "home/run", "lab/y.h5"):
            domain = bucket.domain(path)
            domain.dataset(domain.root, "x", mkbucket.INT32, [4]).chunk((0,), bytes(range(16)))
    with mkbucket.Maker(root / "old") as bucket:      # of schema v1; home has no document
        bucket.domain("home/x.h5", v1=True)
    for place, folder in (("v1", "home"), ("new", "home"), ("alone", "sub")):
        with mkbucket.Maker(root / place) as bucket:
            bucket.folder(folder)
    for path in "stores/a/b/c/d/x", "beside/x.zarr":
        Store(root / path).write_documents()
    with mkbucket.Maker(root / "beside") as bucket:     # as a copy into a mount leaves it
        bucket.domain("x.h5")
        bucket.folder("x.zarr")
    with mkbucket.Maker(root) as bucket:
        bucket.folder("alone")
        for key in (f"v1/e8bdf-d-{V1}", f"v1/c74e7-c-{V1}_0", "other/data/x.bin"):
            bucket.put(key, b"xxxx")
    (root / "empty").mkdir()
    return root


@pytest.fixture
def server(places):
    with Liar(places) as server:
        yield server
        assert not server.failures


@pytest.fixture
def mnt(tmp_path):
    path = tmp_path / "mnt"
    path.mkdir()
    yield path
    if is_mounted(path):
        unmount(path)


def check_refused(place, mnt, words, *options, env=None):
    for command in ((HSMOUNT, *options, place, mnt), (HSIMAGE, *options, "-b", place, "ls")):
        done = run(*command, env=env)
        assert done.returncode == 1 and not done.stdout and not is_mounted(mnt)
        assert done.stderr.count("\n") == 1 and words in done.stderr


def check_accepted(place, mnt, names, *options, env=None):
    """By hsimage, and by a daemon in the background. Returns the standard error of both."""
    said = []
    for command in ((HSMOUNT, *options, place, mnt), (HSIMAGE, *options, "-b", place, "ls")):
        done = run(*command, env=env)
        assert done.returncode == 0, done.stderr
        said.append(done.stderr)
    shown = run("ls", mnt, timeout=PATIENCE, check=True)
    assert shown.stdout.split() == names
    assert sorted(name.rstrip("/") for name in done.stdout.split()) == names
    unmount(mnt)
    return said


@pytest.mark.parametrize("place, words", REFUSED, ids=[p for p, _ in REFUSED])
def test_directories(places, mnt, place, words):
    for options in ((), ("-o", "allow_empty")):
        if place not in ("good/lab", "old/home") or not options:
            check_refused(places / place, mnt, words.format(places), *options)
    if place == "good/lab":     # it has no document
        run(HSIMAGE, "-o", "allow_empty", "-b", places / place, "ls", check=True)


@pytest.mark.parametrize("place, words", REFUSED, ids=[p for p, _ in REFUSED])
def test_prefixes(server, mnt, place, words):
    check_refused(f"s3://bucket/{place}", mnt, words.format("s3://bucket"),
                  env=server.environment())


@pytest.mark.parametrize("place, names, refusal, _", OTHERS, ids=[o[0] for o in OTHERS])
def test_other_directories(places, mnt, place, names, refusal, _):
    check_refused(places / place, mnt, f"{places}/{place} {refusal}")
    assert check_accepted(places / place, mnt, names, "-o", "allow_empty") == ["", ""]


@pytest.mark.parametrize("place, names, _, warning", OTHERS, ids=[o[0] for o in OTHERS])
def test_other_prefixes(server, mnt, place, names, _, warning):
    env = server.environment()
    for said in check_accepted(f"s3://bucket/{place}", mnt, names, env=env):
        assert said.count("\n") == 1 and f"s3://bucket/{place}" in said and warning in said
    assert check_accepted(f"s3://bucket/{place}", mnt, names, "-o", "allow_empty",
                          env=env) == ["", ""]


@pytest.mark.parametrize("place, names", [("good", ["home", "lab"]), ("new", ["home"]),
                                          ("v1", ["home"])])
def test_buckets(places, server, mnt, place, names):
    """Buckets with storage of schema v2, with only the document of a folder, and of schema v1."""
    assert check_accepted(places / place, mnt, names) == ["", ""]
    assert check_accepted(f"s3://bucket/{place}", mnt, names, env=server.environment()) == ["", ""]


@pytest.mark.parametrize("place, names", [("stores", ["a"]), ("beside", ["x.h5", "x.zarr.nc"])])
def test_directories_with_stores(places, mnt, place, names):
    """Stores are in a directory that is several levels deep, and in one with a folder document."""
    assert check_accepted(places / place, mnt, names) == ["", ""]


def test_a_bucket_of_both_schemas(places, mnt, tmp_path):
    with mkbucket.Maker(tmp_path / "both") as bucket:
        bucket.domain("home/x.h5")
        bucket.put(f"e8bdf-d-{V1}", b"{}")
    done = run(HSIMAGE, "ls", tmp_path / "both" / "home", check=True)
    assert done.stdout.split() == ["x.h5"] and not done.stderr


@pytest.mark.parametrize("place, most", [("good", 2), ("empty", 3), ("other", 4)])
def test_requests_at_mount(server, place, most):
    """The first request finds the server; one more is enough to recognise a bucket."""
    run(HSIMAGE, "-b", f"s3://bucket/{place}", "info", "none.h5", env=server.environment())
    listings = [r.query for r in server.requests if r.is_list]
    # The look-up of "info" follows.
    first = [q for q in listings if "none.h5" not in q.get("prefix", "")]
    assert len(first) == most, first
    assert all(q["max-keys"] == "1" for q in first[:2])


def test_a_daemon_that_repeats_requests(server, mnt):
    """hsmount repeats requests before it goes into the background and after that, so no thread is
    lost."""
    seen = collections.Counter()

    def lie(request, _):
        of_storage = request.query.get("prefix") == "good/db/" and "delimiter" in request.query
        what = "storage" if of_storage else "names" if "delimiter" in request.query else ""
        seen[what] += 1
        return error(503, "SlowDown") if what and seen[what] == 1 else None

    server.lie = lie
    check_accepted("s3://bucket/good", mnt, ["home", "lab"], env=server.environment())
    assert seen["storage"] > 1 and seen["names"] > 1


def test_nothing_above_a_bucket_is_listed(server, mnt):
    check_accepted("s3://bucket/good", mnt, ["home", "lab"], env=server.environment())
    assert all(r.query["prefix"].startswith("good/") for r in server.requests if r.is_list)


def test_rights_that_end_at_a_folder(server, mnt):
    """What is above cannot be listed. The folder's document decides; without one, hsmount warns."""
    def lie(request, _):
        inside = request.query.get("prefix", "").startswith(("good/home/", "good/lab/"))
        return error(403, "AccessDenied") if request.is_list and not inside else None

    server.lie = lie
    env = server.environment()
    check_refused("s3://bucket/good/home", mnt, "s3://bucket/good/home is a folder of a bucket, "
                  "not a bucket: use the bucket that it is in", env=env)
    for said in check_accepted("s3://bucket/good/lab", mnt, ["y.h5"], env=env):
        assert "s3://bucket/good/lab may be a folder of a bucket: db/ is not in it" in said
        assert "403" in said and said.count("\n") == 1


def test_a_place_that_cannot_be_listed(server, mnt):
    """A failed listing does not show that it is not a bucket."""
    def lie(request, _):
        asked = request.is_list and request.query["prefix"] == "other/"
        return error(403, "AccessDenied") if asked and "delimiter" in request.query else None

    server.lie = lie
    for options in ((), ("-o", "allow_empty")):
        check_refused("s3://bucket/other", mnt, "403", *options, env=server.environment())


def test_hsimage_by_paths(places):
    """Without -b, hsimage looks for the bucket from the path upwards."""
    done = run(HSIMAGE, "ls", places / "good" / "home", check=True)
    assert sorted(done.stdout.split()) == ["run.h5", "x.h5"]
    done = run(HSIMAGE, "info", places / "v1" / "home" / "x.h5")
    assert done.returncode == 1 and "home/x.h5: no such file or directory" in done.stderr
    done = run(HSIMAGE, "ls", places / "other" / "data")
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert f"{places}/other/data is not in a bucket" in done.stderr
    assert done.stderr.endswith("; name the bucket with -b\n")
    done = run(HSIMAGE, "check", places / "other" / "typo.h5")
    assert f"{places}/other/typo.h5 does not exist, and is not in a bucket" in done.stderr


def test_a_v1_bucket_of_the_service(mnt, tmp_path):
    subprocess.run(["tar", "-xJf", V1_ARCHIVE, "-C", tmp_path], check=True, timeout=60)
    bucket = tmp_path / "hsds-v1"
    assert check_accepted(bucket, mnt, ["home"]) == ["", ""]
    check_refused(bucket / "home", mnt, f"{bucket}/home is a folder of the bucket {bucket}: ")
    domain = next(p.parent for p in bucket.rglob(".domain.json") if p.parent.suffix == ".h5")
    check_refused(domain, mnt, f"{domain} is a single domain of the bucket {bucket}: ")
    with Liar(bucket) as server:
        assert check_accepted("s3://bucket", mnt, ["home"], env=server.environment()) == ["", ""]
