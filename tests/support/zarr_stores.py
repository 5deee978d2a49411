# SPDX-License-Identifier: Apache-2.0
"""The stores of tests/data/zarr-stores.tar.xz. Each comes with its truth: the netCDF-4 file that
its file in a mount has to equal."""
import csv
import os
import subprocess
import sys

import h5py

import mounts

DATA = os.path.join(mounts.TREE, "tests", "data")
NON_COORDINATE = "_nc4_non_coord_"     # before the name of a variable that is no coordinate
NOT_A_VARIABLE = b"This is a netCDF dimension but not a netCDF variable."


def stages():
    """{store: what it needs}; see the file."""
    with open(os.path.join(DATA, "zarr-stores.tsv"), encoding="utf-8") as f:
        return {row[0]: row[1] for row in csv.reader(f, delimiter="\t")}


# The stores that only use what is read so far: numbers, also in shards.
ALL = sorted(stages())
REFUSED = ("v3draft_zarr213",)
DAMAGED = ("h3_broken",)
NUMBERS = [n for n in ALL if stages()[n] in ("G1", "G2") and n not in REFUSED + DAMAGED]


class Stores:
    def __init__(self, directory):
        subprocess.run(["tar", "-xJf", os.path.join(DATA, "zarr-stores.tar.xz"), "-C", directory],
                       check=True, timeout=60)
        self.directory = os.path.join(directory, "zarr-stores")
        self.bucket = os.path.join(self.directory, "stores")
        with open(os.path.join(self.directory, "index.tsv"), encoding="utf-8") as f:
            self.rows = {row["store"]: row
                         for row in csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE)}

    def path(self, name):
        """The path of a store in the bucket."""
        return os.path.relpath(os.path.join(self.directory, self.rows[name]["path"]), self.bucket)

    def shown(self, name):
        """The path of its file in a mount."""
        return shown(self.path(name))

    def truth(self, name):
        return os.path.join(self.directory, self.rows[name]["truth"])

    def differences(self, path, name):
        """What differs between a mounted file and the truth of a store."""
        reader = os.path.join(self.directory, "zarr_oracle.py")
        return mounts.run(sys.executable, reader, "same", path, self.truth(name)).stdout


def shown(path):
    return path if path.endswith((".nc", ".nc4", ".h5", ".hdf5")) else f"{path}.nc"


def variables(f):
    """{path: dataset} of the variables of a netCDF-4 file, without dimensions that are none."""
    found = {}

    def add(name, o):
        if isinstance(o, h5py.Dataset) and not bytes(
                o.attrs.get("NAME", b"")).startswith(NOT_A_VARIABLE):
            found[name.replace(NON_COORDINATE, "")] = o
    f.visititems(add)
    return found
