#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/data/items.h5 (tests/unit/domain/update_known_test.c): datasets whose attributes have
their values in each place where a file can have them. h5py 3.7 with HDF5 1.10.8."""
import sys

import h5py
import numpy as np


def main(name):
    with h5py.File(name, "w", track_order=True) as f:
        f["type"] = np.dtype("<i2")
        for i, kind in enumerate(("plain", "text", "refs", "dense", "typed", "last")):
            f.create_dataset(kind, data=np.arange(8, dtype="<i4") + i, chunks=(4,))
            f[kind].attrs["number"] = np.int32(i)
        f["text"].attrs["words"] = np.array(["one", "two", "three"], h5py.string_dtype())
        f["last"].attrs["word"] = np.array(["four"], h5py.string_dtype())
        sequences = np.empty(2, object)
        for i, other in enumerate(("plain", "text")):
            sequences[i] = np.array([f[other].ref], h5py.ref_dtype)
        f["refs"].attrs.create("lists", sequences, dtype=h5py.vlen_dtype(h5py.ref_dtype))
        for i in range(9):
            f["dense"].attrs[f"attribute {i}"] = np.arange(i, dtype="<u1")
        f["dense"].attrs["large"] = np.arange(5000, dtype="<u2").view("<u1")
        f["typed"].attrs.create("typed", 5, dtype=f["type"])


if __name__ == "__main__":
    main(sys.argv[1])
