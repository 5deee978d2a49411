#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/data/update.h5 (tests/unit/domain/update_fixture.h): a small HDF5 file with an object
of each kind that an update treats in its own way. h5py 3.7 with HDF5 1.10.8."""
import sys

import h5py
import numpy as np


def main(name):
    with h5py.File(name, "w") as f:
        n = np.arange(24, dtype="<i4").reshape(4, 6)
        f.attrs["count"] = np.int32(5)
        f.attrs["title"] = "before"
        for group in ("a", "b", "c", "d"):
            f.create_group(group).attrs["number"] = np.int32(ord(group))
        f.create_group("a/empty")
        f.create_group("b/inner/below")
        f["c/type"] = np.dtype([("a", "<i2"), ("b", "<f8")])
        f.create_dataset("a/plain", data=n + 100)
        f["d/again"] = f["a/plain"]
        # Six chunks, of which the file stores all, and one holds the fill value only.
        grid = f.create_dataset("grid", (4, 6), "<i4", chunks=(2, 2), maxshape=(None, None),
                                fillvalue=7)
        grid[...] = n
        grid[:2, :2] = 7
        line = f.create_dataset("line", (20,), "<i2", chunks=(5,), maxshape=(None,))
        line[:] = np.arange(1, 21)
        f.create_dataset("gzip", data=np.arange(100, dtype="<i4") ** 2, chunks=(50,),
                         compression="gzip", shuffle=True)
        text = f.create_dataset("text", (5,), h5py.string_dtype(), chunks=(2,))
        text[:4] = ["one", "two", "three", "four"]
        ref = f.create_dataset("b/refs", (2,), h5py.ref_dtype)
        ref[0] = f["a/plain"].ref
        f["scalar"] = np.float64(1.5)
        f.create_dataset("null", data=h5py.Empty("<f8"))
        f.create_dataset("nothing", (0,), "<f8", maxshape=(None,), chunks=(10,))
        space = h5py.h5s.create_simple((4,))
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_layout(h5py.h5d.COMPACT)
        compact = h5py.h5d.create(f.id, b"compact", h5py.h5t.STD_I32LE, space, plist)
        compact.write(space, space, np.arange(1, 5, dtype="<i4"))


if __name__ == "__main__":
    main(sys.argv[1])
