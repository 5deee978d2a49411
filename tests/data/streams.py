#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/data/streams.h5 (tests/unit/domain/import_link_test.c): a dataset that a link refers
to, with six compressed chunks. h5py 3.7 with HDF5 1.10.8."""
import sys

import h5py
import numpy as np


def main(name):
    with h5py.File(name, "w") as f:
        f.create_dataset("x", data=np.arange(600, dtype="<i4"), chunks=(100,), compression="gzip")


if __name__ == "__main__":
    main(sys.argv[1])
