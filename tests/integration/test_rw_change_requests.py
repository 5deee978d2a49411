# SPDX-License-Identifier: Apache-2.0
"""What a change of an existing domain costs. The requests of a commit are counted and compared with
the objects of the bucket that have changed: what has changed is put, and nothing else."""
import os
import re

import h5py
import numpy as np
import pytest

import bucketstate
import imports
import rwmounts
from gateway import needs_gateway
from mounts import HSIMAGE, difference, run

NAME = "home/a.h5"
CHUNK = 100
MANY, FEW = 1000, 50     # of a directory, and of the gateway, which is slower


def write_file(path, many):
    with h5py.File(path, "w") as f:
        f.create_dataset("d", data=np.arange(10 * CHUNK), chunks=(CHUNK,), maxshape=(None,))
        f.create_dataset("z", data=np.arange(10 * CHUNK), chunks=(CHUNK,), compression="gzip",
                         maxshape=(None,))
        f.create_dataset("t", data=np.array(["one", "two"] * CHUNK, dtype=object), chunks=(CHUNK,),
                         dtype=h5py.string_dtype())
        for n in range(many):
            f[f"many/n{n:03}"] = n
        f["g/x"], f["g/y"] = 1, 2


class Directory:
    def __init__(self, tmp_path):
        self.root, self.env = imports.make_bucket(tmp_path / "bucket"), None
        self.url = os.fspath(self.root)

    def put(self, source):
        run(HSIMAGE, "-b", self.url, "import", source, NAME, env=self.env, check=True)

    def changes(self, call):
        """(objects that were put, objects that were deleted) by the oracle."""
        before = bucketstate.State(self.root)
        call()
        after = bucketstate.State(self.root)
        assert after.needless(before) == []
        put, deleted = after.since(before)
        return len(put), len(deleted)


class Gateway(Directory):
    def __init__(self, request, tmp_path):
        super().__init__(tmp_path)
        self.client = request.getfixturevalue("client")
        self.env = request.getfixturevalue("environment")
        self.name = self.client.new_bucket("change")
        self.url = f"s3://{self.name}"
        self.client.upload(self.name, self.root)

    def state(self):
        found, token = {}, {}
        while token is not None:
            query = {"list-type": "2", "prefix": "db/", **token}
            page = self.client.request("GET", f"/{self.name}", query=query)[1]
            parts = [re.findall(f"<{tag}>(.*?)</{tag}>", page.decode()) for tag in ("Key", "ETag")]
            found.update(zip(*parts))
            more = re.search("<NextContinuationToken>(.*?)</", page.decode())
            token = {"continuation-token": more[1]} if more else None
        return found

    def changes(self, call):
        before = self.state()
        call()
        after = self.state()
        return (sum(before.get(k) != v for k, v in after.items()), len(set(before) - set(after)))


@pytest.fixture(name="place", params=["directory", pytest.param("gateway", marks=needs_gateway)])
def fixture_place(request, tmp_path):
    if request.param == "gateway":
        return Gateway(request, tmp_path)
    return Directory(tmp_path)


def put_file(place, directory):
    write_file(directory / "a.h5", FEW if place.env else MANY)
    place.put(directory / "a.h5")


@pytest.fixture(name="mounted")
def fixture_mounted(place, tmp_path):
    with rwmounts.RwMount(place.url, tmp_path, env=place.env) as m:
        yield m


def element(f):
    f["d"][123] = -1


def elements(f):
    f["d"][CHUNK - 1:CHUNK + 1] = -2


def compressed(f):
    f["z"][5] = -1


def same(f):
    f["d"][:] = f["d"][:]


def text(f):
    f["t"][0] = "xyz"


def longer_text(f):
    f["t"][0] = "a longer text"


def attribute(f):
    f["many/n005"].attrs["a"] = 1


def more_attributes(f):
    for n in range(20):
        f["many/n005"].attrs[f"b{n}"] = n


def remove_attribute(f):
    del f["many/n005"].attrs["a"]


def rename_attribute(f):
    h5py.h5a.rename(f["many/n005"].id, b"b1", b"c")


def soft_link(f):
    f["g/s"] = h5py.SoftLink("/d")


def hard_link(f):
    f["g/h"] = f["many/n000"]


def new_dataset(f):
    f["g/new"] = 3


def new_group(f):
    f.create_group("g/k")


def rename(f):
    f.move("g/x", "g/w")


def rename_many(f):
    for n in range(len(f["many"]) - ("w" in f["many"])):
        f.move(f"many/n{n:03}", f"many/m{n:03}")


def move(f):
    f.move("g/w", "many/w")


def append(f):
    f["d"].resize((11 * CHUNK,))
    f["d"][10 * CHUNK:] = 7


def grow(f):
    f["d"].resize((20 * CHUNK,))


def shrink(f):
    f["d"].resize((9 * CHUNK,))


def shrink_within(f):
    f["d"].resize((9 * CHUNK - 3,))


def remove(f):
    del f["g/new"]


# The change, and the puts and deletes of its commit. If there are more or fewer objects or chunks,
# the summary is put, too. Removed objects are deleted later.
CHANGES = [
    (element, 1, 0), (elements, 2, 0), (compressed, 1, 0), (text, 1, 0), (longer_text, 1, 0),
    (attribute, 1, 0), (more_attributes, 1, 0), (remove_attribute, 1, 0),
    (rename_attribute, 1, 0), (soft_link, 1, 0), (hard_link, 1, 0), (new_dataset, 4, 0),
    (new_group, 3, 0), (rename, 1, 0), (rename_many, 1, 0), (move, 2, 0), (append, 3, 0),
    (grow, 1, 0), (shrink, 2, 2), (shrink_within, 2, 0), (remove, 2, 0)]
COUNTED = {new_dataset, new_group, append, shrink, remove}


def change(mount, call):
    with h5py.File(mount.file(NAME), "r+") as f:
        call(f)


def requests(mount, call):
    before = mount.requests()
    call()
    mount.released()
    return difference(before, mount.requests())


def test_each_change(place, mounted, tmp_path):
    put_file(place, tmp_path)
    found = {}
    # So large a domain is not listed. Its summary is deleted, each time again.
    absent = {} if place.env else {"shrink": 10, "new_group": 1, "append": 1, "remove": 1}
    for call, puts, deletes in CHANGES:
        made = {}
        if not place.env and call in COUNTED:
            puts, deletes = puts - 1, deletes + (call is new_dataset)
        changed = place.changes(lambda c=call: made.update(
            requests(mounted, lambda: change(mounted, c))))
        name = call.__name__
        sent = made["put"], made["delete"] - absent.get(name, 0)
        found[name] = changed, sent, (puts, deletes)
    wrong = {name: counts for name, counts in found.items() if len(set(counts)) > 1}
    assert wrong == {}, "(objects that differ), (requests), (expected)"


def test_same_data(place, mounted, tmp_path):
    """Written chunks are put, although the bytes are the same."""
    put_file(place, tmp_path)
    made = {}
    assert place.changes(lambda: made.update(
        requests(mounted, lambda: change(mounted, same)))) == (0, 0)
    assert (made["put"], made["delete"]) == (10, 0)


def test_what_is_read(place, mounted, tmp_path):
    """A commit reads the three groups, the datasets that have changed, and the nodes of chunk
    indexes that have changed. Each dataset has one node."""
    put_file(place, tmp_path)
    found = {}
    for call in (soft_link, element, attribute, compressed, append):
        before = mounted.stats()["drafts"]
        change(mounted, call)
        mounted.released()
        after = mounted.stats()["drafts"]
        found[call.__name__] = tuple(after[name] - before[name]
                                     for name in ("scanned_objects", "scanned_nodes"))
    assert found == {"soft_link": (3, 0), "element": (4, 0), "attribute": (4, 0),
                     "compressed": (4, 1), "append": (4, 1)}


def test_nothing_is_written(place, mounted, tmp_path):
    """Opening for writing looks at the name and at the version of the domain, like opening for
    reading, and once more for the draft. It does not read the domain again."""
    put_file(place, tmp_path)
    h5py.File(mounted.file(NAME), "r").close()

    def call():
        for _ in range(10):
            os.close(os.open(mounted.file(NAME), os.O_RDWR))
    made = requests(mounted, call)
    assert made["put"] == made["delete"] == 0
    assert made["get"] + made["list"] + made["head"] <= 10 * 9
    assert rwmounts.journal_entries(mounted.journal) == []
    # libhdf5 writes the superblock when it opens and closes a file.
    made = requests(mounted, lambda: change(mounted, lambda f: None))
    assert made["put"] == made["delete"] == 0
    assert rwmounts.journal_entries(mounted.journal) == []


def test_appending(place, mounted, tmp_path):
    """Each round costs the same, however long the dataset is. The chunks are larger than what the
    kernel reads ahead."""
    rounds, rows = 20 if place.env else 100, 1 << 15
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("d", (0,), "<i8", chunks=(rows,), maxshape=(None,))
        f["other"] = 1
    place.put(tmp_path / "a.h5")

    def append_rows():
        with h5py.File(mounted.file(NAME), "r+") as f:
            d = f["d"]
            d.resize((len(d) + rows,))
            d[-rows:] = np.arange(rows) + 1
    made = [requests(mounted, append_rows) for _ in range(rounds)]
    assert {(m["put"], m["delete"]) for m in made} == {(3, 0)}
    # What the daemon knows of a name is valid for a second.
    asked = [m["get"] + m["head"] + m["list"] for m in made[1:]]
    assert max(asked) <= min(asked) + 6 and sum(asked[-9:]) <= sum(asked[:9]) + 12, asked
    with h5py.File(mounted.file(NAME), "r") as f:
        assert (f["d"][:].reshape(rounds, rows) == np.arange(rows) + 1).all()


def test_netcdf(tmp_path):
    """Tools of netCDF and NCO change a file in place, as on a disk."""
    (tmp_path / "c.cdl").write_text(
        "netcdf c { dimensions: k = 3 ; t = UNLIMITED ; variables: float v(t, k) ; "
        'v:units = "m" ; float k(k) ; data: v = 1, 2, 3, 4, 5, 6 ; k = 5, 6, 7 ; }')
    disk = tmp_path / "disk"
    disk.mkdir()
    run("ncgen", "-k", "nc4", "-o", disk / "c.nc", tmp_path / "c.cdl", check=True)
    (tmp_path / "d.cdl").write_text(
        "netcdf d { dimensions: k = 3 ; variables: int w(k) ; data: w = 7, 8, 9 ; }")
    run("ncgen", "-k", "nc4", "-o", tmp_path / "d.nc", tmp_path / "d.cdl", check=True)
    bucket = imports.make_bucket(tmp_path / "bucket")
    run(HSIMAGE, "-b", bucket, "import", disk / "c.nc", "home/c.nc", check=True)
    commands = [
        'ncatted -h -a units,v,o,c,"kilometres and more" c.nc',
        "ncatted -h -a new,global,c,d,1.5 c.nc",
        "ncatted -h -a units,v,d,, c.nc",
        f"ncks -h -A {tmp_path / 'd.nc'} c.nc",
        "ncap2 -h -A -s 'v(1,:)=9.f' c.nc c.nc",
        "ncrename -h -v w,renamed c.nc",
        "ncrename -h -a .new,newer c.nc",
        "ncrename -h -d k,kk c.nc"]
    with rwmounts.RwMount(bucket, tmp_path, "metadata_ttl=0") as m:
        for command in commands:
            done = [run("bash", "-c", command, cwd=where) for where in (disk, m.file("home"))]
            assert done[0].returncode == done[1].returncode, (command, done[1].stderr, m.log())
            assert rwmounts.file_differences(disk / "c.nc", m.file("home/c.nc")) == [], command
            shown = [run("ncdump", where).stdout for where in (disk / "c.nc", m.file("home/c.nc"))]
            assert shown[0] == shown[1], command
    with rwmounts.RwMount(bucket, tmp_path) as m:
        assert rwmounts.file_differences(disk / "c.nc", m.file("home/c.nc")) == []
    assert bucketstate.left_over(bucket) == []
    assert rwmounts.check(bucket).returncode == 0


def test_the_next_open(tmp_path):
    """After a commit, an open fetches no document: those that the commit has put, and all others,
    are kept. The texts of the documents have 6 MB."""
    place = Directory(tmp_path)
    with h5py.File(tmp_path / "a.h5", "w") as f:
        for n in range(MANY):
            f[f"many/n{n:03}"] = n
            f[f"many/n{n:03}"].attrs["text"] = "x" * 6000
    place.put(tmp_path / "a.h5")
    with rwmounts.RwMount(place.url, tmp_path) as m:
        path = m.file(NAME)
        cold = requests(m, lambda: h5py.File(path, "r").close())
        assert cold["get"] > MANY
        for changed in (1, MANY // 2):
            made = requests(m, lambda k=changed: change(
                m, lambda f: [f[f"many/n{n:03}"].attrs.create("a", k) for n in range(k)]))
            assert made["put"] == changed
            made = requests(m, lambda: h5py.File(path, "r").close())
            assert made["get"] + made["head"] < 10 and made["list"] <= 3, made
