# SPDX-License-Identifier: Apache-2.0
"""Runs the scripts of tests/integration/h5wasm, which use npm packages: five versions of h5wasm
with libhdf5 1.12.1, 1.14.2 (twice), 1.14.6 and 2.0.0, and jsfive, which reads HDF5 files without
libhdf5."""
import fcntl
import json
import os
import shutil
import subprocess

from mounts import BUILD, TREE

HERE = os.path.join(TREE, "tests", "integration", "h5wasm")


def is_available():
    return bool(shutil.which("npm") and shutil.which("node"))


def install():
    """Into the build directory, once. Returns the directory."""
    work = os.path.join(BUILD, "h5wasm")
    os.makedirs(work, exist_ok=True)
    with open(os.path.join(work, "lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name in os.listdir(HERE):
            shutil.copy(os.path.join(HERE, name), work)
        with open(os.path.join(work, "package.json"), encoding="ascii") as package:
            names = json.load(package)["dependencies"]
        if not all(os.path.isdir(os.path.join(work, "node_modules", name)) for name in names):
            subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=work,
                           check=True, timeout=110, capture_output=True)
    return work


def node(script, tasks, *arguments):
    """Runs a script with a list of tasks. Returns the objects that it prints."""
    done = subprocess.run(["node", script, *arguments], cwd=install(), check=False, timeout=110,
                          input=json.dumps(tasks).encode(), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return [json.loads(line) for line in done.stdout.decode().splitlines()]
