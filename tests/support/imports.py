# SPDX-License-Identifier: Apache-2.0
"""What the tests of imports and of links share: an empty bucket, what the program leaves out, and
files of HDF5's own tests and of other projects, if they are beside the checkout."""
import os
import re

import mkbucket
from mounts import TREE

FOREIGN = os.path.join(os.path.dirname(TREE), "shared", "data", "foreign-hdf5")
CRASHES = {    # h5py or its libhdf5
    "hdf5-2.0dev/tools/test/h5diff/testfiles/h5diff_attr3.h5"}
REFUSED = {"hdf5-2.0dev/tools/test/misc/testfiles/h5clear_mdc_image.h5": "metadata cache image"}
LEFT_OUT = re.compile(r"hsimage: (/.*?)(?:, (?:(attribute)|link) (.*?))?: .*")


def foreign_names():
    try:
        with open(f"{FOREIGN}.index.tsv", encoding="utf-8") as f:
            return [line.split("\t")[0] for line in f][1:]
    except FileNotFoundError:
        return []


def make_bucket(root):
    """An empty bucket with a folder "home"."""
    with mkbucket.Maker(root) as maker:
        maker.folder("home")
    (root / "db").mkdir(exist_ok=True)
    return root


# The beginnings of lines about what is not left out.
UNADDRESSABLE = "hsimage: clients of HSDS cannot ask by name for "
UNSERVED = "hsimage: clients of HSDS cannot read the values of "
TOLD = (UNADDRESSABLE, UNSERVED, "hsimage: types with ")


def left_out(done, other=None):
    """What `--skip-unsupported` lists, one line each: "hsimage: PATH: reason", where PATH may end
    with ", attribute NAME" or ", link NAME". As paths for filediff. Every other line must match the
    pattern `other`."""
    found = set()
    whole = tuple(f"hsimage: {operand}: " for operand in done.args[1:])    # about the file itself
    for line in done.stderr.splitlines(True):
        match = LEFT_OUT.fullmatch(line.rstrip("\n"))
        if line.startswith(TOLD + whole):
            continue
        if match:
            path, attribute, name = match.groups()
            found.add(path if not name else f"{path}@{name}" if attribute else
                      f"{path.rstrip('/')}/{name}")
        else:
            assert other and other.fullmatch(line), line
    return found
