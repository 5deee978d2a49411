#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/data/links.h5 (tests/unit/import/import_link_test.c): datasets at the limits of
links. h5py 3.7 with HDF5 1.10.8."""
import sys

import h5py
import numpy as np


def main(name):
    with h5py.File(name, "w") as f:
        f.create_dataset("copied", data=np.ones(511, "u1"))
        f.create_dataset("linked", data=np.ones(512, "u1"))
        f.create_dataset("listed", data=np.ones(1000, "u1"), chunks=(1,))
        # One chunk more than a document lists. The shuffle filter was not applied to the last one.
        table = f.create_dataset("table", (90000,), "u1", chunks=(1,), shuffle=True)
        table[:1000] = 1
        table.id.write_direct_chunk((89999,), b"\1", filter_mask=1)


if __name__ == "__main__":
    main(sys.argv[1])
