#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the small HDF5 files of tests/unit/engine/draft_domain_test.c in a directory. h5py 3.7 with
HDF5 1.10.8."""
import sys

import h5py
import numpy as np


def main(directory):
    def new(name, **options):
        return h5py.File(f"{directory}/{name}", "w", **options)

    with new("draft-one.h5") as f:
        f.create_dataset("x", data=np.arange(6, dtype="<i2"), chunks=(6,))
    with new("draft-other.h5", userblock_size=512, libver="latest") as f:
        f.create_dataset("y", data=np.arange(300, dtype="<i4"), chunks=(100,), fletcher32=True)
    # A virtual dataset, which a domain cannot hold.
    with new("draft-refused.h5") as f:
        layout = h5py.VirtualLayout((6,), "<i2")
        layout[:] = h5py.VirtualSource("draft-one.h5", "x", (6,))
        f.create_virtual_dataset("group/virtual", layout)


if __name__ == "__main__":
    main(sys.argv[1])
