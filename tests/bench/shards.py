#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures shards of Zarr stores in a mount; README.md explains how.

    shards.py [--delay 50] [--mbit 1000] [--runs 3] [--mib 192] [whole] [small]     (default: all)

HSMOUNT_BUILD names the build directory.
"""
import argparse
import importlib.util
import os
import statistics
import sys
import tempfile

import h5py
import numpy as np

# By its file, because a package has the same name.
SPEC = importlib.util.spec_from_file_location(
    "zarr_bench", os.path.join(os.path.dirname(os.path.abspath(__file__)), "zarr.py"))
zarr_bench = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(zarr_bench)

from s3_world import Network  # noqa: E402
from zarr_write import Shards  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20
SHARD = 8 * MIB
SIZES = [64 << 2 * i for i in range(9)]     # bytes of an inner chunk: 64 B to 4 MiB
READ = 4 * MIB
SMALL = 32                                  # MiB of the arrays of the part "small"
say = zarr_bench.say


def body(n, shard):
    return (np.arange(n // 4, dtype="<u4") + shard * (n // 4)).tobytes()


def fill(chunk, mib):
    """A store of an array of so many MiB in inner chunks of `chunk` bytes, without codecs; and an
    object with the same bytes."""
    def write(pack):
        n = mib * MIB // 4
        with zarr_bench.Packed(pack, zarr_bench.STORE, 3) as store:
            a = store.array("data", np.zeros(SHARD // 4, "<u4"), chunks=(SHARD // 4,), fill=1,
                            shards=[Shards((chunk // 4,), checksum=False)], absent=[(0,)])
            store.documents["data/zarr.json"]["shape"] = [n]
            inner = SHARD // chunk
            index = np.stack([np.arange(inner) * chunk, np.full(inner, chunk)], 1)
            for i in range(mib * MIB // SHARD):
                store.put(f"data/{a.key((i,))}",
                          body(SHARD, i) + index.astype("<u8").tobytes())
        pack.put("plain", b"".join(body(SHARD, i) for i in range(mib * MIB // SHARD)))
    return write


def file_of(root):
    return os.path.join(root, f"{zarr_bench.STORE}.nc")


def one_element(root):
    with h5py.File(file_of(root), "r") as f:
        n = f["data"].shape[0]
        assert f["data"][n // 2 + 5] == n // 2 + 5


def in_order(root):
    with h5py.File(file_of(root), "r") as f:
        data, step = f["data"], READ // 4
        for i in range(0, data.shape[0], step):
            assert data[i:i + step][-1] == i + step - 1


def copy(name):
    """What cp(1) reads."""
    def task(root):
        with open(os.path.join(root, name), "rb", buffering=0) as f:
            while f.read(128 * KIB):
                pass
    task.label = f"cp {name}"
    return task


class Bench(zarr_bench.Bench):
    def whole(self):
        """The whole array in order, and the same bytes as one object, over a link."""
        for chunk in (KIB, 64 * KIB, MIB):
            with self.server(fill(chunk, self.args.mib)) as servers:
                servers[1].set(Network(self.args.delay, self.args.mbit))
                what = f"{self.args.mib} MiB in chunks of {chunk >> 10} KiB"
                (plain, _), = self.measure(what, servers, copy("plain"))
                for task in in_order, copy(f"{zarr_bench.STORE}.nc"):
                    (times, counts), = self.measure(what, servers, task)
                    ratio = statistics.median(plain) / statistics.median(times)
                    self.goal(f"{what}, {getattr(task, 'label', 'h5py')}: ≥ 0.8 of cp of an object",
                              f"{ratio:.2f}, {statistics.median(times):.2f} s, {counts}",
                              ratio >= 0.8)

    def small(self):
        """What inner chunks cost by their size."""
        say("\n| inner chunk | one element: GETs, bytes, s | 32 MiB in order: GETs, bytes, s, "
            "CPU s |\n|---|---|---|")
        for chunk in SIZES:
            with self.server(fill(chunk, SMALL)) as servers:
                (times, one), = self.measure(f"{chunk} B", servers, one_element)
                (times2, all_), = self.measure(f"{chunk} B", servers, in_order)
            self.rows.append((
                f"{chunk} B", f"{one.gets}, {one.bytes:,}, {statistics.median(times):.2f}",
                f"{all_.gets}, {all_.bytes:,}, {statistics.median(times2):.2f}, {all_.cpu:.2f}"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--delay", type=float, default=50)
    parser.add_argument("--mbit", type=float, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--mib", type=int, default=192)
    parser.add_argument("parts", nargs="*", choices=["whole", "small", []])
    args = parser.parse_args()
    args.log = False
    with tempfile.TemporaryDirectory() as directory:
        bench = Bench(args, directory)
        for part in args.parts or ["whole", "small"]:
            bench.rows.clear()
            getattr(bench, part)()
            bench.print_goals()


if __name__ == "__main__":
    sys.exit(main())
