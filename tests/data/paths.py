#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/data/paths.h5 (tests/unit/h5file/one_test.c): groups of each form with many links,
through which one dataset is found. h5py 3.7 with HDF5 1.10.8."""
import sys

import h5py
import numpy as np

LINKS = 300


def main(name):
    with h5py.File(name, "w") as f:
        data = f.create_dataset("data", data=np.arange(200, dtype="<u2"), chunks=(2,),
                                shuffle=True)
        f.create_dataset("contiguous", data=np.arange(9, dtype="<i4"))
        old = f.create_group("old")                        # a symbol table of two levels
        dense = f.create_group("dense", track_order=True)  # a fractal heap and a B-tree
        for i in range(LINKS):
            old[f"link {i}"] = data
            dense[f"link {i}"] = data
        compact = f.create_group("compact", track_order=True)
        compact["data"] = data
        compact["absolute"] = h5py.SoftLink("/old/link 7")
        compact["relative"] = h5py.SoftLink("./below//data")
        compact.create_group("below")["data"] = h5py.SoftLink("/compact/absolute")
        compact["group"] = h5py.SoftLink("/dense")
        compact["loop"] = h5py.SoftLink("loop")
        compact["elsewhere"] = h5py.ExternalLink("other.h5", "/data")
        compact["dangling"] = h5py.SoftLink("/old/link 300")


if __name__ == "__main__":
    main(sys.argv[1])
