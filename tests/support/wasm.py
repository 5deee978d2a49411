# SPDX-License-Identifier: Apache-2.0
"""Runs scripts that use npm packages. Those in tests/integration/h5wasm use five versions of h5wasm
with libhdf5 1.12.1, 1.14.2 (twice), 1.14.6 and 2.0.0, and jsfive, which reads HDF5 files without
libhdf5. Those in tests/integration/zarrjs use zarrita and zarr.js, which write Zarr stores."""
import fcntl
import json
import os
import shutil
import subprocess

from mounts import BUILD, TREE

SCRIPTS = os.path.join(TREE, "tests", "integration")


def is_available():
    return bool(shutil.which("npm") and shutil.which("node"))


def install(directory):
    """Into the build directory, once. Returns the directory there."""
    here, work = os.path.join(SCRIPTS, directory), os.path.join(BUILD, directory)
    os.makedirs(work, exist_ok=True)
    with open(os.path.join(work, "lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name in os.listdir(here):
            shutil.copy(os.path.join(here, name), work)
        with open(os.path.join(work, "package.json"), encoding="ascii") as package:
            names = json.load(package)["dependencies"]
        if not all(os.path.isdir(os.path.join(work, "node_modules", name)) for name in names):
            subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=work,
                           check=True, timeout=110, capture_output=True)
    return work


def node(script, tasks, *arguments, directory="h5wasm"):
    """Runs a script with a list of tasks. Returns the objects that it prints."""
    done = subprocess.run(["node", script, *arguments], cwd=install(directory), check=False,
                          timeout=110, input=json.dumps(tasks).encode(), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return [json.loads(line) for line in done.stdout.decode().splitlines()]
