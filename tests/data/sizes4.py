#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/data/sizes4.h5 (tests/unit/h5/file_test.c): an HDF5 file behind a user block, with
addresses and lengths of 4 bytes and a table of shared messages, in which every structure that h5/
decodes occurs. h5py 3.7 with HDF5 1.10.8."""
import ctypes
import sys

import h5py
import numpy as np
from h5py import h5f, h5p

USER_BLOCK, LINKS, ATTRS, V18 = 512, 60, 10, 1


def share_messages(fcpl):
    """One index of shared attributes of 1 MiB or more: none of ours."""
    with open("/proc/self/maps", encoding="ascii") as maps:
        path = next(line.split()[-1] for line in maps if "libhdf5" in line and "_hl" not in line)
    lib = ctypes.CDLL(path)
    lib.H5Pset_shared_mesg_nindexes.argtypes = [ctypes.c_int64, ctypes.c_uint]
    lib.H5Pset_shared_mesg_index.argtypes = [ctypes.c_int64] + 3 * [ctypes.c_uint]
    assert lib.H5Pset_shared_mesg_nindexes(fcpl.id, 1) >= 0
    assert lib.H5Pset_shared_mesg_index(fcpl.id, 0, 1 << 12, 1 << 20) >= 0


def main(name):
    fcpl = h5p.create(h5p.FILE_CREATE)
    fcpl.set_sizes(4, 4)
    fcpl.set_userblock(USER_BLOCK)
    fcpl.set_link_creation_order(h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED)
    share_messages(fcpl)
    fapl = h5p.create(h5p.FILE_ACCESS)
    fapl.set_libver_bounds(V18, V18)
    with h5py.File(h5f.create(name.encode(), h5f.ACC_TRUNC, fcpl, fapl)) as f:
        values = np.arange(100, dtype="<i2").reshape(10, 10)
        data = f.create_dataset("data", data=values, chunks=(4, 4), maxshape=(None, 10))
        text = f.create_dataset("text", (1,), dtype=h5py.string_dtype())
        text[0] = "in a global heap"
        for i in range(LINKS):
            f[f"link {i}"] = h5py.SoftLink("/data")
        for i in range(ATTRS):
            data.attrs[f"attribute {i}"] = np.full(5000 if i == 7 else 1, i, dtype="u1")


if __name__ == "__main__":
    main(sys.argv[1])
