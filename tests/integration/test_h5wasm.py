# SPDX-License-Identifier: Apache-2.0
"""h5wasm reads the files with libhdf5 2.0, which makes checks that 1.x does not make."""
import hashlib
import json
import os
import shutil
import subprocess

import numpy as np
import pytest

from mounts import BUILD
from oracle import mount_name
from sampling import sampled

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "h5wasm")


@pytest.fixture(scope="module")
def reader():
    """Installs the package. Returns a function that reads files and returns results by path."""
    if not shutil.which("npm") or not shutil.which("node"):
        pytest.skip("npm is not installed")
    work = os.path.join(BUILD, "h5wasm")
    os.makedirs(work, exist_ok=True)
    for name in ("package.json", "package-lock.json", "read.mjs"):
        shutil.copy(os.path.join(HERE, name), work)
    if not os.path.isdir(os.path.join(work, "node_modules", "h5wasm")):
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=work,
                       check=True, timeout=110, capture_output=True)

    def read(files):
        files = [{"path": path, "objects": objects} for path, objects in files]
        out = subprocess.run(["node", "read.mjs"], cwd=work, input=json.dumps(files).encode(),
                             check=True, timeout=110, capture_output=True).stdout
        results = [json.loads(line) for line in out.decode().splitlines()]
        return {r["path"]: r for r in results}
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
