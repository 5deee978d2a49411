# SPDX-License-Identifier: Apache-2.0
"""Copies of HDF5 files into a mount. Each one becomes a domain, in which a later mount shows the
same content, if `hsimage import` can make a domain of it; otherwise it stays the file that it is,
with a reason. Files: exported domains of the collections, the sources of the service's loaders,
every form that h5py can write, files after random changes by a writer, and, if they are beside the
checkout, files of HDF5's own tests and of other projects."""
import filecmp
import os
import random
import shutil
import subprocess
import sys

import pytest

import filediff
import h5edit
import h5make
import hsds_validator
import imports
import mounts
import rwmounts
from mounts import HSIMAGE, run
from oracle import mount_name
from sampling import sampled

# h5diff cannot compare all of what these have (see test_import_files.py).
NOT_FOR_H5DIFF = ("types", "filters", "groups", "shared")


class Source:
    def __init__(self, path, name, h5diff=True):
        self.path, self.name, self.h5diff = os.fspath(path), name, h5diff
        self.domain = f"home/{name}.h5"
        self.importable = None
        self.kept = "" # user.hsds.kept in the mount that was written to

    def __str__(self):
        return self.name


def exported(pytestconfig, directory):
    """The images of the domains of the collections."""
    entries = [e for c in pytestconfig.collections for e in c.entries()]
    for i, entry in enumerate(sampled(entries, rarer=4)):
        path = directory / f"exported-{i}.h5"
        done = run(HSIMAGE, "-b", entry.collection.bucket.root, "export", "--force",
                   mount_name(entry.path),
                   path)
        if done.returncode == 0:
            yield Source(path, f"exported-{i}", h5diff=False)


def originals(pytestconfig, _):
    found = sorted({e.source for c in pytestconfig.collections for e in c.entries() if e.source})
    for i, path in enumerate(sampled(found, os.path.basename, 3)):
        yield Source(path, f"original-{i}", h5diff=False)


def generated(_, directory):
    for name, bounds in sampled(h5make.names(), rarer=2):
        path = directory / f"{name}-{bounds}.h5"
        h5make.make(path, name, bounds)
        yield Source(path, f"generated-{name}-{bounds}", name not in NOT_FOR_H5DIFF)
    path = directory / "generated.nc"
    h5make.make_netcdf(path)
    yield Source(path, "generated-netcdf")


def edited(pytestconfig, directory):
    """As in test_import_files.py."""
    which = pytestconfig.collections[0]
    for seed in sampled(range(1000, 1500), rarer=20):
        entry = random.Random(seed).choice(which.entries())
        path = directory / f"edited-{seed}.h5"
        for operations in (20, 5, 0):
            run(HSIMAGE, "-b", which.bucket.root, "export", "--force", mount_name(entry.path), path,
                check=True)
            if run(sys.executable, h5edit.__file__, path, str(seed),
                   str(operations)).returncode == 0:
                yield Source(path, f"edited-{seed}", h5diff=False)
                break


def foreign_files(pytestconfig, _):
    names = imports.foreign_names()
    if not names:
        pytest.skip("the files are not there")
    for i, name in enumerate(sampled(names, rarer=3)):
        if name not in imports.CRASHES:
            yield Source(pytestconfig.foreign / name, f"foreign-{i}-{os.path.basename(name)}",
                         h5diff=False)


def unreadable(path):
    """Whether libhdf5 cannot read the file. It crashes on some."""
    program = "import sys, filediff; filediff.File(sys.argv[1])"
    return subprocess.run([sys.executable, "-c", program, path], capture_output=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": os.path.dirname(filediff.__file__)},
                          check=False).returncode != 0


def differences(source, shown, bucket):
    """What is wrong with the file of a mount."""
    if not rwmounts.is_domain(shown):
        if not filecmp.cmp(source.path, shown, False):
            return ["another plain object"]
        # A file that is being written looks like one that was marked and not closed, or that has
        # structures behind its recorded end, so these are kept as they are.
        is_open = "the program that wrote it has not closed it" in source.kept
        if source.importable and not is_open:
            return ["kept, but it can be imported: " + source.kept]
        return []
    if not source.importable:
        return ["a domain, but it cannot be imported"]
    found = hsds_validator.check_domain(os.fspath(bucket), source.domain, strict=True)
    if unreadable(source.path):
        return found
    found += filediff.differences(source.path, shown)
    if source.h5diff:
        done = run("h5diff", source.path, shown)
        found += [f"h5diff: {done.stdout}{done.stderr}"] * bool(done.returncode)
    return found


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", [exported, originals, generated, edited, foreign_files])
def test_copies(pytestconfig, request, tmp_path, kind):
    if kind is foreign_files and imports.foreign_names():
        pytestconfig.foreign = request.getfixturevalue("foreign")
    made = tmp_path / "made"
    made.mkdir()
    sources = list(kind(pytestconfig, made))
    others = imports.make_bucket(tmp_path / "imported")
    for source in sources:
        source.importable = run(HSIMAGE, "-b", others, "import", source.path,
                                source.domain).returncode == 0
    bucket = imports.make_bucket(tmp_path / "bucket")
    problems = []
    with rwmounts.RwMount(bucket, tmp_path) as m:
        for source in sources:
            shutil.copyfile(source.path, m.file(source.domain))
        for source in sources:
            shown = m.file(source.domain)
            source.kept = rwmounts.attribute(shown, "user.hsds.kept") or ""
            if not rwmounts.is_domain(shown) and rwmounts.opens(shown) and not source.kept:
                problems.append(f"{source}: kept without a reason")
    assert rwmounts.journal_entries(m.journal) == []
    with mounts.Mount(bucket, tmp_path) as m:
        assert sorted(os.listdir(m.file("home"))) == sorted(f"{s}.h5" for s in sources)
        for source in sources:
            problems += [f"{source}: {line}" for line in
                         differences(source, m.file(source.domain), bucket)]
    assert problems == []
    domains = [s for s in sources if s.importable]
    assert len(domains) * 2 >= len(sources), "the test has lost its files"
    done = run(HSIMAGE, "check", "--all", bucket, timeout=600)
    assert done.returncode == 0, done.stdout
