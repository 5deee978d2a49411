#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes indexes.h5 with h5py 3.7 and HDF5 1.10.8: datasets with every chunk index of version 4 of
the layout message. A chunk is one 16-bit element, whose value follows from the number of the chunk,
so the bytes show whether a reader has found the right chunk. The only filter is shuffle, which does
not change chunks of one element.

    tests/data/indexes.py tests/data/indexes.h5
"""
import itertools
import sys

import h5py
from h5py import h5d, h5p, h5s, h5t

U = h5s.UNLIMITED


def value(number):
    return number * 7 % 65521 + 1


# group/name: extent, maximum extent, early allocation, which chunks are written
DATASETS = {
    "simple": {
        "one": ((1, 1), (1, 1), False, lambda n: True),
        "exact": ((3, 4), (3, 4), True, lambda n: n % 2),
        "larger": ((2, 3, 2), (3, 5, 7), True, lambda n: True),
    },
    "fixed": {
        "small": ((6, 5), (6, 5), False, lambda n: n % 5 != 2),
        "larger": ((6, 5), (9, 11), False, lambda n: True),
        "paged": ((3, 1100), (3, 1100), False, lambda n: n < 700 or n >= 2500),
        "unwritten": ((4, 4), (4, 4), False, lambda n: False),
    },
    "extensible": {
        "small": ((9,), (U,), False, lambda n: n != 3),
        "middle": ((700,), (U,), False, lambda n: n % 3),
        "second": ((7, 40), (10, U), False, lambda n: n % 4),
        "first": ((40, 7), (U, 9), False, lambda n: n % 4),
        "paged": ((140000,), (U,), False,
                  lambda n: n in (0, 5, 20, 21, 131055, 131059, 131061, 132100, 133105, 139999)),
        "third": ((3, 2, 9), (3, 5, U), False, lambda n: True),
    },
    "tree": {
        "small": ((3, 3), (U, U), False, lambda n: n != 4),
        "two levels": ((30, 20), (U, U), False, lambda n: n % 7),
    },
}


def make(group, name, dims, maximum, early, written, filtered):
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_chunk((1,) * len(dims))
    if filtered:
        plist.set_shuffle()
    if early:
        plist.set_alloc_time(h5d.ALLOC_TIME_EARLY)
    dataset = h5py.Dataset(h5d.create(group.id, name.encode(), h5t.STD_U16LE,
                                      h5s.create_simple(dims, maximum), plist))
    many = 1
    for n in dims:
        many *= n
    numbers = filter(written, range(many))
    for number in numbers:
        rest, where = number, []
        for n in reversed(dims):
            where.insert(0, rest % n)
            rest //= n
        dataset[tuple(where)] = value(number)


def main():
    with h5py.File(sys.argv[1], "w", libver="latest") as f:
        for kind, filtered in itertools.product(DATASETS, (False, True)):
            group = f.create_group(kind + (", filtered" if filtered else ""))
            for name, row in DATASETS[kind].items():
                if not (filtered and row[2]):    # filters and early allocation: no implicit index
                    make(group, name, *row, filtered)


if __name__ == "__main__":
    main()
