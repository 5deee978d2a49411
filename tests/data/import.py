#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/data/import.h5 (tests/unit/domain/import_test.c): a small HDF5 file with each way in
which the chunks of a dataset become objects. h5py 3.7 with HDF5 1.10.8."""
import sys

import h5py
import numpy as np


def main(name):
    with h5py.File(name, "w", track_order=True) as f:
        n = np.arange(24, dtype="<i4")
        f.attrs["title"] = "everything"
        f.create_dataset("contiguous", data=n.reshape(4, 6))
        # Six chunks, of which the file stores five; one holds the fill value only.
        chunked = f.create_dataset("chunked", (4, 6), "<i4", chunks=(2, 2), fillvalue=7)
        chunked[:2, :2] = 7
        chunked[:2, 2:] = n.reshape(4, 6)[:2, 2:]
        chunked[2:, :4] = n.reshape(4, 6)[2:, :4]
        f.create_dataset("gzip", data=np.arange(500, dtype="<i4") ** 2, chunks=(250,),
                         compression="gzip", shuffle=True, fletcher32=True)
        f.create_dataset("lzf", data=n, chunks=(12,), compression="lzf")
        f.create_dataset("zeros", data=np.zeros(40, "<f8"))
        f.create_dataset("nothing", (0,), "<f8", maxshape=(None,), chunks=(10,))
        f.create_dataset("null", data=h5py.Empty("<f8"))
        f["scalar"] = np.float64(1.5)
        group = f.create_group("group/below")
        text = group.create_dataset("text", (5,), h5py.string_dtype(), chunks=(2,))
        text[:3] = ["one", "two", "three"]
        ref = group.create_dataset("refs", (2,), h5py.ref_dtype)
        ref[0] = f["chunked"].ref
        f["type"] = np.dtype([("a", "<i2"), ("b", "<f8")])
        f.create_dataset("records", (3,), f["type"])[...] = [(1, 1.5), (2, 2.5), (3, 3.5)]
        f["soft"] = h5py.SoftLink("/group/below")


if __name__ == "__main__":
    main(sys.argv[1])
