# SPDX-License-Identifier: Apache-2.0
"""A second line of the library: h5wasm carries libhdf5 2.0, which checks what 1.x lets pass."""
import hashlib
import json
import os
import shutil
import subprocess

import numpy as np
import pytest

from mounts import BUILD
from oracle import mount_name

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "h5wasm")


@pytest.fixture(scope="module")
def reader():
    """A directory with the package installed; returns a function: paths -> results by path."""
    if not shutil.which("npm") or not shutil.which("node"):
        pytest.skip("npm is not installed")
    work = os.path.join(BUILD, "h5wasm")
    os.makedirs(work, exist_ok=True)
    for name in ("package.json", "package-lock.json", "read.mjs"):
        shutil.copy(os.path.join(HERE, name), work)
    if not os.path.isdir(os.path.join(work, "node_modules", "h5wasm")):
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=work,
                       check=True, timeout=110, capture_output=True)

    def read(paths):
        out = subprocess.run(["node", "read.mjs"], cwd=work, input=json.dumps(paths).encode(),
                             check=True, timeout=110, capture_output=True).stdout
        results = [json.loads(line) for line in out.decode().splitlines()]
        return {r["path"]: r for r in results}
    return read


def native(data):
    """The digest of numbers in this machine's byte order."""
    return hashlib.sha256(data.astype(data.dtype.newbyteorder("="))).hexdigest()


def test_reads_every_domain(reader, pytestconfig, mounted):
    for which in pytestconfig.collections:
        m, entries = mounted(which), {}
        for entry in which.entries():
            entries[m.file(mount_name(entry.path))] = entry
        ours = reader(list(entries))
        theirs = reader([e.source for e in entries.values() if e.source])
        for path, entry in entries.items():
            check(entry, ours[path], theirs.get(entry.source))


def check(entry, ours, theirs):
    # What the package cannot read in the source file either is not ours to answer for; dangling
    # links and links to other files it reports as failures.
    domain = entry.collection.bucket.domain(entry.path)
    known = set(theirs["failures"]) if theirs else set()
    paths = {p: oid for oid, p in domain.paths.items()}
    failures = {p: f for p, f in ours["failures"].items() if p in paths and p not in known}
    assert not failures, f"{entry}: {failures}"
    for path, seen in ours["datasets"].items():
        obj = domain.objects.get(paths.get(path))
        if obj is None or obj.kind != "d" or obj.type[0] not in ("int", "float") or not obj.shape:
            continue
        assert seen["shape"] == list(obj.shape), f"{entry} {path}"
        if seen["digest"] and obj.type[:2] != ("float", 2):
            letter = "f" if obj.type[0] == "float" else "i"
            order = ">" if obj.type[-1] else "<"
            data = obj.data().view(np.dtype(f"{order}{letter}{obj.type[1]}"))
            assert seen["digest"] == native(data), f"{entry} {path}"
