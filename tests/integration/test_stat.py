# SPDX-License-Identifier: Apache-2.0
"""Sizes and times of domains before and after an open, over a remount, what they cost, and what
programs that compare them see: `-o stat`."""
import json
import os
import re
import shutil
import time
from pathlib import Path

import h5py
import pytest

import mkbucket
from mkbucket import INT32
from mounts import difference, run
from s3liar import Liar, error

LARGE = 1001        # chunks: more keys than a page of a listing has
MODES = ("auto", "exact", "estimate")


def files(m):
    return sorted(os.path.join(at, name) for at, _, names in os.walk(m.path) for name in names)


def shown(path):
    st = os.stat(path) if isinstance(path, str) else os.fstat(path)
    return st.st_size, st.st_blocks, st.st_mtime_ns


def stats(m):
    return {path[len(m.path):]: shown(path) for path in files(m)}


def opened(path):
    """What fstat(2) shows, or None if the file cannot be opened."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        return shown(fd)
    finally:
        os.close(fd)


def requests_of(m, action):
    before = m.counts()
    action()
    cost = difference(before, m.counts())
    return cost["gets"] + cost["heads"] + cost["lists"]


def storage_of(bucket, path):
    root = json.loads((Path(bucket) / path / ".domain.json").read_text())["root"]
    return Path(bucket) / "db" / re.sub(r"^g-(.{8})-(.{8})-.*$", r"\1-\2", root)


def is_large(bucket, name):
    path = name.strip("/")
    path = path if (Path(bucket) / path).exists() else path[:-len(".h5")]
    return sum(p.is_file() for p in storage_of(bucket, path).rglob("*")) > 1000


def small(bucket, path, values=4):
    d = bucket.domain(path)
    d.dataset(d.root, "data", INT32, [values], [4]).chunk((0,), bytes(16))
    return d


def large(bucket, path):
    d = bucket.domain(path)
    data = d.dataset(d.root, "data", INT32, [LARGE], [1])
    for i in range(LARGE):
        data.chunk((i,), bytes([i % 256, 0, 0, 0]))
    return d


def summary_of(bucket, domain, **members):
    root = re.sub(r"^g-(.{8})-(.{8})-.*$", r"\1-\2", domain.root.id)
    bucket.put(f"db/{root}/.info.json", json.dumps(members).encode())


@pytest.fixture
def made(tmp_path):
    """A bucket with domains of all kinds, whose objects are old enough for a cache."""
    root = tmp_path / "bucket"
    with mkbucket.Maker(root) as bucket:
        small(bucket, "a/small.h5")
        small(bucket, "a/bare")
        summary_of(bucket, large(bucket, "a/large.h5"), lastModified=1720000000,
                   logical_bytes=123456, allocated_bytes=1000, metadata_bytes=0)
        large(bucket, "a/no-summary.h5")
        bucket.put("a/plain", b"bytes")
        damaged = small(bucket, "a/damaged.h5")
    key = os.path.join(root, damaged.root.key)
    with open(key, "w", encoding="utf-8") as f:
        f.write("damaged")
    for at, _, names in os.walk(root):
        for name in names:
            os.utime(os.path.join(at, name), (1600000000, 1600000000))
    return root


# ---- sizes and times ----

def test_an_open_changes_neither_sizes_nor_times(pytestconfig, mount):
    """All domains of the collections. Sizes of domains of schema v1, and of those with more than a
    thousand keys, are exact after the open only."""
    for which in pytestconfig.collections:
        m = mount(which.bucket.root)
        before, exact = stats(m), 0
        for name in before:
            seen = opened(m.path + name)
            if seen and (which.name == "hsds-v1" or is_large(which.bucket.root, name)):
                assert seen[2] == before[name][2], name
            elif seen:
                assert seen == before[name], name
                exact += 1
            assert shown(m.path + name) == (seen or before[name]), name
        assert exact > 20 or which.name == "hsds-v1"
        assert stats(mount(which.bucket.root)) == before


@pytest.mark.parametrize("mode", MODES)
def test_modes(made, mount, mode):
    m = mount(made, f"stat={mode}", "debug_count")
    os.listdir(m.file("a"))
    cost = requests_of(m, lambda: stats(m))
    before = stats(m)
    seen = {name: opened(m.path + name) for name in before}
    assert stats(m) == {name: seen[name] or before[name] for name in before}
    assert before["/a/plain"][0] == 5
    assert before["/a/damaged.h5"][0] == 4096 and not seen["/a/damaged.h5"]
    exact = {name for name in before if before[name] == seen[name]}
    assert all(before[name][2] == seen[name][2] for name in seen if seen[name])
    everything = {"/a/small.h5", "/a/bare.h5", "/a/large.h5", "/a/no-summary.h5", "/a/plain"}
    if mode == "exact":
        assert exact == everything
    elif mode == "auto":
        assert exact == {"/a/small.h5", "/a/bare.h5", "/a/plain"}
        assert before["/a/large.h5"][0] == 123456 and before["/a/no-summary.h5"][0] == 4096
    else:
        assert exact == {"/a/plain"} and cost <= 6      # the names
        assert before["/a/large.h5"][0] == before["/a/small.h5"][0] == 4096
        return
    assert before["/a/small.h5"][2] == 1600000000 * 10 ** 9     # of its newest key
    assert before["/a/large.h5"][2] == 1720000000 * 10 ** 9     # of its summary


def test_the_time_is_that_of_the_newest_key(made, mount):
    storage = storage_of(made, "a/small.h5")
    keys = [p for p in storage.rglob("*") if p.is_file()]
    assert len(keys) == 3       # a group, a dataset, a chunk
    for i, key in enumerate(keys):
        os.utime(key, (1650000000 + i, 1650000000 + i))
        m = mount(made)
        assert os.stat(m.file("a/small.h5")).st_mtime == 1650000000 + i
    # The service writes its summary when nothing else has changed.
    (storage / ".info.json").write_text("{}")
    assert os.stat(mount(made).file("a/small.h5")).st_mtime == 1650000002


def test_a_change_shows_without_an_open(made, mount):
    """What make(1) sees of a domain that was opened before."""
    m = mount(made, "metadata_ttl=0")
    path = m.file("a/small.h5")
    with open(path, "rb") as f:
        before = shown(path)
        ino = os.fstat(f.fileno()).st_ino
        assert shown(f.fileno()) == before and os.stat(path).st_ino == ino
        dataset, = storage_of(made, "a/small.h5").rglob(".dataset.json")
        text = json.loads(dataset.read_text())
        text["attributes"] = {}
        dataset.write_text(json.dumps(dict(text, lastModified=1)))
        assert shown(f.fileno())[0] == before[0] and os.fstat(f.fileno()).st_ino == ino
    after = shown(path)
    assert after[2] > before[2] and os.stat(path).st_ino != ino
    assert opened(path) == after == shown(path)


def enlarge(bucket, path):
    """Another program adds an attribute that the file has to hold."""
    dataset, = storage_of(bucket, path).rglob(".dataset.json")
    text = json.loads(dataset.read_text())
    text["attributes"] = {"a": {"type": INT32, "shape": mkbucket.shape_of([2000]),
                                "value": [1] * 2000, "created": 1.0}}
    dataset.write_text(json.dumps(text))


def test_an_open_finds_what_a_walk_has_shown(tmp_path, mount):
    """The walk has read a newer version than an earlier open, which is still valid."""
    root = tmp_path / "bucket"
    with mkbucket.Maker(root) as bucket:
        for name in "uvxyz":
            small(bucket, f"{name}.h5")
    m = mount(root, "metadata_ttl=2")
    path = m.file("x.h5")

    def walked():
        return {name: shown(m.file(name)) for name in sorted(os.listdir(m.path))}["x.h5"]
    for _ in range(8):
        walked()
        ended = time.monotonic()
        time.sleep(1)
        began = time.monotonic()
        before = opened(path)
        enlarge(root, "x.h5")
        time.sleep(max(0, ended + 2.1 - time.monotonic()))
        after = walked()
        while after == before and time.monotonic() < began + 1.9:
            after = walked()
        if after != before:
            break
        time.sleep(2.1)
        dataset, = storage_of(root, "x.h5").rglob(".dataset.json")
        dataset.write_text(json.dumps(dict(json.loads(dataset.read_text()), attributes={})))
        time.sleep(2.1)
    else:
        raise AssertionError("no walk has shown the change before the earlier open has expired")
    assert opened(path) == after == shown(path)


def test_a_change_through_the_mount_shows_at_once(made, mount):
    m = mount(made, "rw", "metadata_ttl=60")
    path = m.file("a/small.h5")
    before = shown(path)
    with h5py.File(path, "r+") as f:
        f["more"] = list(range(5000))
    after = shown(path)
    assert after[0] > before[0] and after[2] > before[2]
    assert opened(path) == after


def test_a_large_domain_that_the_mount_changes_is_forgotten(made, tmp_path, mount):
    """The commit changes neither of the documents that tell its version: nobody may show the size
    that it had as the exact one. That includes a later mount with the same cache."""
    cache = f"cache_dir={tmp_path / 'cache'}"
    m = mount(made, "rw", "metadata_ttl=60", cache)
    path = m.file("a/large.h5")
    assert opened(path)
    remembered = shown(path)
    with h5py.File(path, "r+") as f:
        f.attrs["more"] = list(range(5000))     # no object and no chunk more
    sizes = {shown(path)[0]}
    m.stop()
    m = mount(made, cache)
    sizes.add(shown(m.file("a/large.h5"))[0])
    with h5py.File(m.file("a/large.h5"), "r") as f:
        assert f.attrs["more"][4999] == 4999
    assert remembered[0] not in sizes
    assert shown(m.file("a/large.h5"))[0] > remembered[0] + 20000


def test_a_large_domain_is_remembered_in_cache_dir(made, tmp_path, mount):
    cache = f"cache_dir={tmp_path / 'cache'}"
    first = mount(made, cache)
    estimate = shown(first.file("a/large.h5"))
    with h5py.File(first.file("a/large.h5"), "r") as f:
        assert f["data"][5] == 5
    exact = shown(first.file("a/large.h5"))
    assert exact[0] != estimate[0] and exact[2] == estimate[2]
    small_one = shown(first.file("a/small.h5"))
    first.stop()
    second = mount(made, cache, "debug_count")
    os.listdir(second.file("a"))
    cost = requests_of(second, lambda: (shown(second.file("a/small.h5")),
                                        shown(second.file("a/large.h5"))))
    assert shown(second.file("a/large.h5")) == exact
    assert shown(second.file("a/small.h5")) == small_one
    assert cost <= 4        # a listing each, the summary, and a name that has become stale
    without = mount(made)
    assert shown(without.file("a/large.h5")) == estimate
    # Another layout has other sizes, and a damaged record is not used.
    assert shown(mount(made, cache, "filters=none").file("a/large.h5"))[0] == estimate[0]
    second.stop()
    for entry in (tmp_path / "cache").iterdir():
        if len(entry.name) == 64:
            body = bytearray(entry.read_bytes())
            body[-1] ^= 1
            entry.write_bytes(body)
    third = mount(made, cache)
    assert shown(third.file("a/large.h5")) == estimate
    assert shown(third.file("a/small.h5")) == small_one


# ---- what it costs ----

def test_requests_of_walks(tmp_path, mount):
    """Of a bucket in S3: a listing for each page of names, and one for up to a thousand keys."""
    domains, root = 150, tmp_path / "bucket"
    with mkbucket.Maker(root) as bucket:
        for i in range(domains):
            small(bucket, f"folder/{i:04}.h5")
    with Liar(root) as server:
        m = mount("s3://bucket", "debug_count", "metadata_ttl=4", env=server.environment())

        def walk():
            out = run("ls", "-lR", m.file("folder"))
            assert out.returncode == 0 and out.stdout.count(".h5") == domains
        costs = []
        for attempt in range(4):
            first = requests_of(m, walk)
            again = requests_of(m, walk)
            time.sleep(4.1)     # names are valid for four seconds
            later = requests_of(m, walk)
            time.sleep(4.1)     # the next attempt begins with the same
            costs.append((first, again, later))
            if again == 0 and later <= 30:
                break
        else:
            raise AssertionError(costs)
        # For each domain its document and two objects. The first domains are listed one by one,
        # because nobody knows yet how many keys a domain has.
        assert 3 * domains <= costs[0][0] <= 3 * domains + 100
        assert not server.failures


def test_a_bucket_that_refuses_shared_listings(tmp_path, mount):
    """A policy may allow to list the keys of each domain, and not those of all."""
    domains, root = 60, tmp_path / "bucket"
    with mkbucket.Maker(root) as bucket:
        for i in range(domains):
            small(bucket, f"{i:04}.h5", 4 + i * 1000)
    with Liar(root) as server:
        refused = []

        def lie(request, _):
            if request.is_list and request.query.get("prefix") == "db/" and \
                    "start-after" in request.query:
                refused.append(request)
                return error(403, "AccessDenied")
        server.lie = lie
        m = mount("s3://bucket", env=server.environment())
        sizes = {path: shown(path) for path in files(m)}
        assert sizes == {path: opened(path) for path in sizes}
        assert len(sizes) == domains and len(refused) == 1


def test_a_change_during_a_walk(tmp_path, mount):
    """Each stat shows a version that was in the bucket, and the later open finds the same."""
    domains, root = 120, tmp_path / "bucket"
    with mkbucket.Maker(root) as bucket:
        for i in range(domains):
            small(bucket, f"{i:04}.h5")
    with Liar(root) as server:
        changed = []

        def lie(request, _):
            if request.is_list and request.query.get("prefix") == "db/" and not changed:
                for i in range(0, domains, 10):
                    enlarge(root, f"{i:04}.h5")
                    changed.append(i)
        m = mount("s3://bucket", "metadata_ttl=1", env=server.environment())
        server.lie = lie
        before = [shown(path)[0] for path in files(m)]
        assert changed
        time.sleep(1.1)         # names are valid for a second
        after = [shown(path)[0] for path in files(m)]
        assert after == [opened(path)[0] for path in files(m)]
        assert len(set(after)) == 2 and set(before) <= set(after)
        assert [i for i, size in enumerate(after) if size == max(after)] == changed


# ---- programs that compare sizes and times ----

def copy(program, m, to):
    """Copies everything; returns the number of files that were transferred."""
    if program == "rsync":
        out = run("rsync", "-a", "--exclude=damaged.h5", "--stats", m.path + "/", f"{to}/")
        assert out.returncode == 0, out.stderr
        return int(re.search(r"Number of regular files transferred: ([0-9]+)", out.stdout).group(1))
    env = dict(os.environ, RCLONE_CONFIG=f"{to}.conf")
    out = run("rclone", "copy", "--exclude=damaged.h5", "-v", "--stats-one-line", m.path, str(to),
              env=env)
    assert out.returncode == 0, out.stderr
    return len(re.findall(r": Copied", out.stderr))


@pytest.mark.parametrize("program", ["rsync", "rclone"])
@pytest.mark.parametrize("mode", ["auto", "exact"])
def test_a_second_copy_transfers_nothing(made, tmp_path, mount, program, mode):
    """In the mode auto, large domains must have been opened with the same cache_dir, and need a
    summary."""
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed")
    options = [f"stat={mode}"] + ([f"cache_dir={tmp_path / 'cache'}"] if mode == "auto" else [])
    to = tmp_path / "copy"
    m = mount(made, *options)
    if mode == "auto":
        assert all(opened(path) for path in files(m) if "damaged" not in path)
    assert copy(program, m, to) == 5
    m.stop()
    m = mount(made, *options)
    assert copy(program, m, to) == (mode == "auto")
    for name, (size, _, mtime) in stats(m).items():
        if "damaged" not in name:
            st = os.stat(f"{to}{name}")
            assert (st.st_size, st.st_mtime_ns) == (size, mtime), name


# ---- failures ----

def test_a_failure_is_not_remembered(made, mount):
    """In the mode auto, a stat shows what is known; with stat=exact, it fails."""
    failing = "debug_fault=fail:1:EIO@db/*/"
    m = mount(made, failing, "metadata_ttl=60")
    sizes = [os.stat(m.file("a/small.h5")).st_size for _ in range(2)]
    assert sizes[0] == 4096 != sizes[1]
    m = mount(made, failing, "metadata_ttl=60", "stat=exact")
    with pytest.raises(OSError):
        os.stat(m.file("a/small.h5"))
    assert os.stat(m.file("a/small.h5")).st_size == sizes[1]


def test_a_document_that_is_listed_and_absent_is_not_remembered(tmp_path, mount):
    """A gateway that answers 404 for an object that it has listed may find it later."""
    root, cache = tmp_path / "bucket", f"cache_dir={tmp_path / 'cache'}"
    with mkbucket.Maker(root) as bucket:
        small(bucket, "x.h5")
    enlarge(root, "x.h5")
    for at, _, names in os.walk(root):
        for name in names:
            os.utime(os.path.join(at, name), (1600000000, 1600000000))
    with Liar(root) as server:
        server.lie = lambda r, _: error(404, "NoSuchKey") \
            if r.key.endswith(".dataset.json") else None
        m = mount("s3://bucket", cache, env=server.environment())
        without = shown(m.file("x.h5"))
        m.stop()
        server.lie = None
        m = mount("s3://bucket", cache, env=server.environment())
        assert without[0] < shown(m.file("x.h5"))[0] == opened(m.file("x.h5"))[0]


def test_a_document_that_is_absent_once(tmp_path, mount):
    """It was deleted and put again after it had been listed: the first size is the true one."""
    root = tmp_path / "bucket"
    with mkbucket.Maker(root) as bucket:
        small(bucket, "x.h5")
    enlarge(root, "x.h5")
    with Liar(root) as server:
        absent = [error(404, "NoSuchKey")]
        server.lie = lambda r, _: absent.pop() \
            if absent and r.key.endswith(".dataset.json") else None
        m = mount("s3://bucket", env=server.environment())
        assert shown(m.file("x.h5")) == opened(m.file("x.h5"))
        assert not absent


def test_a_bucket_that_refuses_listings_of_storage(made, mount):
    """Then the size is an estimate, and the file cannot be opened."""
    with Liar(made) as server:
        server.lie = lambda r, _: error(403, "AccessDenied") \
            if r.is_list and re.match("db/.", r.query.get("prefix", "")) else None
        m = mount("s3://bucket", env=server.environment())
        assert os.stat(m.file("a/small.h5")).st_size == 4096
        assert os.stat(m.file("a/large.h5")).st_size == 123456
        assert opened(m.file("a/small.h5")) is None
