#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/data/rare.h5 (tests/unit/import): the less common cases of an import. h5py 3.7 with
HDF5 1.10.8."""
import sys

import h5py
import numpy as np


def main(name):
    with h5py.File(name, "w", track_order=True, userblock_size=8192) as f:
        f.attrs["km/h"] = 3.6
        f.create_dataset("cube", data=np.arange(64, dtype="<i4").reshape(4, 4, 4), chunks=(2, 2, 2))
        f["cube"].attrs["m/s"] = 1.0
        # The first chunk holds the fill value only, and compresses well.
        n = np.arange(2000, dtype="<i4")
        n[:1000] = 7
        f.create_dataset("gzip", data=n, chunks=(1000,), compression="gzip", fillvalue=7)
        f.create_dataset("contiguous", data=n[1000:])
        f.create_dataset("zeros", data=np.zeros(1000, "<i4"))
        # References to all objects, of which this dataset is the last.
        refs = f.create_dataset("refs", (6,), h5py.ref_dtype)
        for i, path in enumerate(["/", *f]):
            refs[i] = f[path].ref
    with open(name, "r+b") as f:
        f.write(b"x" * 5000)    # too long for a document


if __name__ == "__main__":
    main(sys.argv[1])
