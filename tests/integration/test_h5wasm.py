# SPDX-License-Identifier: Apache-2.0
"""h5wasm contains libhdf5 2.0. It reads the files of a mount, which makes checks that 1.x does not
make, and it writes files for import. In the files that it writes in the newest format are messages
that the libhdf5 of h5py cannot read. h5wasm itself describes these. test_readers.py has older
versions of it."""
import hashlib
import os
import shutil

import h5py
import numpy as np
import pytest

import filediff
import h5make
import h5model
import hsds_validator
import imports
import mkbucket
import wasm
from mounts import HSIMAGE, run
from oracle import mount_name
from sampling import sampled

DOMAIN = "home/file.h5"


@pytest.fixture(name="node", scope="module")
def fixture_node():
    """Returns a function that runs a script with a list of tasks, and returns the objects that it
    prints."""
    if not wasm.is_available():
        pytest.skip("npm is not installed")
    return wasm.node


@pytest.fixture(scope="module")
def reader(node):
    """Returns a function that reads files and returns results by path."""
    def read(files):
        files = [{"path": path, "objects": objects} for path, objects in files]
        return {r["path"]: r for r in node("read.mjs", files)}
    return read


def native(data):
    """The digest of numbers in native byte order."""
    return hashlib.sha256(data.astype(data.dtype.newbyteorder("="))).hexdigest()


def test_reads_domains(reader, pytestconfig, mounted):
    for which in pytestconfig.collections:
        m, jobs = mounted(which), []
        for entry in sampled(which.entries()):
            domain = which.bucket.domain(entry.path)
            objects = [p for p in domain.paths.values() if p.isprintable()]
            jobs.append((entry, domain, m.file(mount_name(entry.path)), objects))
        ours = reader([(shown, objects) for _, _, shown, objects in jobs])
        theirs = reader([(entry.source, objects) for entry, _, _, objects in jobs if entry.source])
        for entry, domain, shown, _ in jobs:
            check(entry, domain, ours[shown], theirs.get(entry.source))


def check(entry, domain, ours, theirs):
    # Ignores what the package cannot read in the source file either.
    known = theirs["failures"] if theirs else ()
    failures = {p: f for p, f in ours["failures"].items() if p not in known}
    assert not failures, f"{entry}: {failures}"
    paths = {p: oid for oid, p in domain.paths.items()}
    for path, seen in ours["datasets"].items():
        obj = domain.objects[paths[path]]
        if obj.shape is None:
            continue
        assert seen["shape"] == list(obj.shape), f"{entry} {path}"
        if seen["digest"] and obj.type[0] in ("int", "float") and obj.type[:2] != ("float", 2):
            letter = "f" if obj.type[0] == "float" else "i"
            data = obj.data().view(np.dtype(f"{'>' if obj.type[-1] else '<'}{letter}{obj.type[1]}"))
            assert seen["digest"] == native(data), f"{entry} {path}"
        if obj.type[0] == "vstring":
            # The package reads a null string from address 0.
            stored = [None if s is None else s.decode("utf-8", "replace") for s in obj.data()]
            shown = [None if s is None else x for s, x in zip(stored, seen["strings"])]
            assert shown == stored, f"{entry} {path}"


def test_reads_linked_files(reader, tmp_path, mount):
    """Data that stay in an HDF5 file are those of the file."""
    bucket = imports.make_bucket(tmp_path / "bucket")
    n = np.arange(60000, dtype="<i4").reshape(300, 200)
    with h5py.File(bucket / "file.h5", "w") as f:
        f.create_dataset("contiguous", data=n)
        f.create_dataset("few", data=n, chunks=(100, 70), compression="gzip", shuffle=True,
                         fletcher32=True)
        f.create_dataset("many", data=n, chunks=(5, 10), compression="gzip")
    run(HSIMAGE, "-b", bucket, "link", "file.h5", DOMAIN, check=True)
    files = [os.path.join(mount(bucket).path, DOMAIN), os.fspath(bucket / "file.h5")]
    found = reader([(path, ["/contiguous", "/few", "/many"]) for path in files])
    for path in files:
        assert not found[path]["failures"]
        assert [d["digest"] for d in found[path]["datasets"].values()] == [native(n)] * 3


# ---- files that h5wasm writes ----

FORMATS = {"earliest": ("earliest", "latest"), "v108": ("v108", "v108"), "v110": ("v110", "v110"),
           "latest": ("latest", "latest")}
FORMS = ("numbers", "strings", "compounds", "references", "layouts", "filters", "groups",
         "attributes", "huge_attributes", "scales", "swmr", "unsupported")
TOO_NEW = {"earliest": ("huge_attributes", "swmr"), "v108": ("swmr",)}
REFUSED = {"unsupported": {"/regions": "/regions"}}


class Imported:
    """A file, and what `import` and `export` make of it."""

    def __init__(self, name, source, directory):
        self.name, self.source, self.out = name, source, directory / f"{name}.out.h5"
        self.model = h5model.Model(source, "--claims")
        small = os.path.getsize(source) < 8 << 20    # h5model takes long for many elements
        self.found = self.model.run() if small else []
        bucket = directory / name
        with mkbucket.Maker(bucket) as maker:
            maker.folder("home")
        (bucket / "db").mkdir(exist_ok=True)
        self.refused = REFUSED.get(name, {})
        if self.refused:
            done = run(HSIMAGE, "-b", bucket, "import", source, DOMAIN)
            assert done.returncode == 1
            for shown in self.refused.values():
                assert f"hsimage: {shown}: " in done.stderr
        options = ["--skip-unsupported"] if self.refused else []
        done = run(HSIMAGE, "-b", bucket, "import", *options, source, DOMAIN, check=True)
        assert imports.left_out(done) == set(self.refused), done.stderr
        self.found += hsds_validator.check_domain(os.fspath(bucket), DOMAIN, strict=True)
        run(HSIMAGE, "-b", bucket, "export", "--force", DOMAIN, self.out, check=True)
        self.found += filediff.differences(source, self.out, self.refused)
        shutil.rmtree(bucket)

    def objects(self):
        """The paths that JSON can express."""
        paths = []
        for o in self.model.objects:
            try:
                paths.append(h5model.raw_bytes(o["path"]).decode())
            except UnicodeDecodeError:
                pass
        return [p for p in paths if p not in self.refused]

    def compare(self, source, out):
        """source, out: what describe.mjs prints."""
        for path, theirs in source["objects"].items():
            ours = out["objects"][path]
            for name in [r.partition("@")[2] for r in self.refused if r.startswith(path + "@")]:
                theirs["attributes"].pop(name)
            if path == "/":
                for refused in self.refused:
                    theirs["links"].pop(refused[1:], None)
            for key in theirs:
                if key == "value" and "failure" in ours or "failure" in theirs:
                    continue    # h5wasm lacks the filter or the type
                if key != "filters" and comparable(theirs[key]) != comparable(ours.get(key)):
                    self.found.append(f"{path}: {key} {str(ours.get(key))[:200]}, h5wasm has "
                                      f"{str(theirs[key])[:200]} in the source")
        for o in self.model.objects:
            path = h5model.raw_bytes(o["path"]).decode("utf-8", "replace")
            if o["path"] in self.model.unreadable and path in source["objects"]:
                self.compare_model(path, o, source["objects"][path])

    def compare_model(self, path, ours, theirs):
        """An object that h5py cannot read, as treedump shows it."""
        assert ours["kind"] == theirs["kind"].lower() == "dataset", path
        shown = theirs["metadata"]
        for a, b in ((ours["shape"], shown["shape"]), (ours["max"], extents(shown["maxshape"])),
                     (ours.get("chunk"), shown["chunks"]),
                     ([f["id"] for f in ours.get("filters", ())], theirs["filters"]),
                     (ours["data"], theirs.get("value"))):
            if b is not None and not same(a, b):
                self.found.append(f"{path}: {str(a)[:100]}, h5wasm has {str(b)[:100]}")


def comparable(value):
    """Without what an image may change: contiguous data can be in chunks, and the other way."""
    if isinstance(value, dict):
        return {k: comparable(v) for k, v in value.items() if k not in ("chunks", "filters")}
    return [comparable(v) for v in value] if isinstance(value, list) else value


def extents(shape):
    """The package shows an unlimited extent as the number that stands for it, rounded."""
    return shape and [None if n is None or n >= 2**63 else n for n in shape]


def same(ours, theirs):
    """ours: as treedump prints it. The package shows references in compounds as []."""
    if theirs == [] and not isinstance(ours, list):
        return ours is None or ours.startswith("/")
    if isinstance(theirs, list):
        return isinstance(ours, list) and len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, str) and isinstance(theirs, (int, float)):
        return float.fromhex(ours) == theirs
    if isinstance(ours, int) and isinstance(theirs, str):
        return f"{ours}n" == theirs
    if isinstance(ours, str) and theirs in ("NaN", "Infinity", "-Infinity"):
        return ours == theirs.lower().replace("infinity", "inf")
    if isinstance(ours, str) and isinstance(theirs, str):
        return h5model.raw_bytes(ours).decode().rstrip("\0 ") == theirs.rstrip("\0 ")
    return ours == theirs or ours is None and theirs == ""


def judge(node, files):
    """files: what Imported returns."""
    tasks = [{"path": os.fspath(path), "objects": f.objects()}
             for f in files for path in (f.source, f.out)]
    shown = {d["path"]: d for d in node("describe.mjs", tasks)}
    for f in files:
        f.compare(shown[os.fspath(f.source)], shown[os.fspath(f.out)])
    assert {f.name: f.found[:5] for f in files if f.found} == {}


@pytest.mark.parametrize("bounds", FORMATS)
def test_imports_what_it_writes(node, tmp_path, bounds):
    forms = sampled([form for form in FORMS if form not in TOO_NEW.get(bounds, ())],
                    lambda form: f"{bounds} {form}")
    node("write.mjs", [{"path": os.fspath(tmp_path / f"{form}.h5"), "form": form,
                        "libver": FORMATS[bounds]} for form in forms])
    judge(node, [Imported(form, tmp_path / f"{form}.h5", tmp_path) for form in forms])


# libhdf5 2.0 cannot read the unlimited extents that it writes with lengths of 2 or 4 bytes.
NOT_REWRITTEN = ("wide_file", "unsupported", "addresses_2", "addresses_4")


@pytest.mark.long
@pytest.mark.parametrize("name,bounds", [
    (name, bounds) for name, bounds in h5make.names()
    if bounds in ("earliest", "latest") and name not in NOT_REWRITTEN])
def test_imports_what_it_rewrites(node, tmp_path, name, bounds):
    """Types and layouts that its functions cannot make: files of h5py in which it writes all values
    again and changes extents, links and attributes."""
    path, objects = tmp_path / f"{name}.h5", ["/"]
    h5make.make(path, name, bounds)
    with h5py.File(path, "r") as f:
        f.visit(lambda o: objects.append(f"/{o}") if o.isprintable() else None)
    node("write.mjs", [{"path": os.fspath(path), "libver": FORMATS["latest"], "objects": objects}])
    judge(node, [Imported(name, path, tmp_path)])
