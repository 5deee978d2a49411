# SPDX-License-Identifier: Apache-2.0
"""Reads what ncdump prints of a file of numbers without groups: a second reader of its values, next
to h5py."""
import re

import numpy as np

from mounts import run

FILL = re.compile(r"^\t\t(\S+):_FillValue = (\S+?)[ULBSbsfd]* ;", re.M)
DECLARED = re.compile(r"^\t\w+ ([^\s(:;]+)(?:\(([^)]*)\))? ;", re.M)
DIMENSION = re.compile(r"^\t(\S+) = (?:UNLIMITED ; // \()?(\d+)", re.M)
DATA = re.compile(r"^ (\S+) =\s(.*?) ;$", re.M | re.S)
# What "_" stands for in a variable without fill value.
DEFAULTS = {"u1": 255, "i2": -32767, "u2": 65535, "i4": -2147483647, "u4": 4294967295,
            "i8": -9223372036854775806, "u8": 18446744073709551614}


class Variable:
    """names: of its dimensions. lengths: their lengths. fill: as text, or None. values: as texts,
    in the order of the file. None: there are no values."""

    def __init__(self, names, lengths):
        self.names, self.lengths, self.fill, self.values = names, lengths, None, None

    def array(self, dtype):
        fill = self.fill or str(DEFAULTS.get(np.dtype(dtype).str[1:]))
        texts = [fill if v == "_" else v for v in self.values or ()]
        kind = int if np.dtype(dtype).kind in "iu" else float
        values = [kind(v.rstrip("f") if v.endswith(("nf", "yf", "Nf")) else v) for v in texts]
        return np.array(values, dtype).reshape(self.lengths)


def variables(path):
    """{name: Variable}"""
    text = run("ncdump", "-p", "9,17", path, check=True).stdout
    head, _, data = text.partition("\ndata:\n")
    lengths = {name: int(n) for name, n in DIMENSION.findall(head)}
    found = {}
    for name, dims in DECLARED.findall(head):
        names = [d.strip() for d in dims.split(",")] if dims else []
        found[name] = Variable(names, [lengths[d] for d in names])
    for name, fill in FILL.findall(head):
        found[name].fill = fill
    for name, values in DATA.findall(data):
        found[name].values = [v.strip() for v in values.split(",")]
    return found
