#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures chunks with shuffle and gzip in a directory: reads, an import that encodes again, and
chunks that are rewritten in place. See README.md, "Compressed chunks".

usage: compressed.py [--runs N] [--size MIB] [--build DIRECTORY]… [read] [import] [change] [codec]
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

import h5py
import numpy as np

import s3_world
from s3_world import mounts

SIDE, MIB = 512, 1 << 20    # a chunk is a plane of SIDE * SIDE numbers of 4 bytes: 1 MiB
PARTS = ("read", "import", "change", "codec")
READ = """
import h5py, sys, time
start = time.monotonic()
with h5py.File(sys.argv[1]) as f:
    for d in f.values():
        for i in range(0, len(d), 8):
            d[i:i + 8]
print(time.monotonic() - start)
"""
CHANGE = """
import h5py, sys
with h5py.File(sys.argv[1], "r+") as f:
    for i in range(int(sys.argv[2])):
        f["f"][i] = f["f"][i] + 1
"""


def make_file(path, planes):
    """Integers that change slowly, and the same as fractions."""
    steps = np.random.default_rng(1).integers(-3, 4, size=(planes, SIDE, SIDE))
    numbers = np.cumsum(steps, axis=0).astype("i4")
    with h5py.File(path, "w") as f:
        for name, data in (("a", numbers), ("f", (numbers * 0.1).astype("f4"))):
            f.create_dataset(name, data=data, chunks=(1, SIDE, SIDE), compression="gzip",
                             compression_opts=4, shuffle=True)


def cpu_of(pid):
    """Processor seconds of all threads, in ns by the scheduler."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as f:
            total += int(f.read().split()[0])
    return total / 1e9


def run_python(text, *operands):
    """Returns the output and the processor seconds."""
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen([sys.executable, "-c", text, *operands], stdout=out)
        status, cpu, _ = s3_world.wait_for(process)
        assert status == 0
        out.seek(0)
        return out.read(), cpu


def tool(build, name):
    return os.path.join(build, "src", "cli", name)


def imported(build, path, bucket, *options):
    """Imports the file to a new bucket. Returns the processor seconds."""
    os.makedirs(os.path.join(bucket, "db"))
    process = subprocess.Popen([tool(build, "hsimage"), "import", "-o", "allow_empty", *options,
                                path, os.path.join(bucket, "x.h5")],
                               stdout=subprocess.DEVNULL)
    status, cpu, _ = s3_world.wait_for(process)
    assert status == 0
    return cpu


def mount_of(build, bucket, directory, *options):
    mounts.HSMOUNT = tool(build, "hsmount")
    return mounts.Mount(bucket, directory, *options)


def bytes_below(directory):
    return sum(os.path.getsize(os.path.join(d, name))
               for d, _, names in os.walk(directory) for name in names)


class Bench:
    def __init__(self, args, directory):
        self.args, self.directory = args, directory
        self.path = os.path.join(directory, "all.h5")
        self.quarter = os.path.join(directory, "quarter.h5")
        self.figures = {}    # figures of each run, by the name of a row

    def new(self, name):
        path = os.path.join(self.directory, name)
        shutil.rmtree(path, ignore_errors=True)
        os.mkdir(path)
        return path

    def note(self, row, **figures):
        self.figures.setdefault(row, []).append(figures)

    def read(self, build):
        bucket = os.path.join(self.directory, "bucket")
        if not os.path.exists(bucket):
            imported(build, self.path, bucket)
        for options in ((), ("filters=none",)):
            with mount_of(build, bucket, self.new("read"), *options) as mount:
                before = cpu_of(mount.process.pid)
                seconds, reader = run_python(READ, mount.file("x.h5"))
                self.note(f"read {' '.join(options)} {build}", seconds=float(seconds),
                          daemon=cpu_of(mount.process.pid) - before, reader=reader)

    def native(self):
        seconds, cpu = run_python(READ, self.path)
        self.note("read by h5py alone", seconds=float(seconds), reader=cpu)

    def encode(self, build):
        bucket = os.path.join(self.new("import"), "bucket")
        cpu = imported(build, self.quarter, bucket, "--min-chunk", "4M")
        self.note(f"import {build}", cpu=cpu, MB=bytes_below(bucket) / 1e6)

    def change(self, build):
        """The bucket of a run is kept, so that the system does not reuse its pages at once."""
        bucket = os.path.join(tempfile.mkdtemp(dir=self.directory), "bucket")
        imported(build, self.quarter, bucket)
        planes = self.args.size // 8
        with mount_of(build, bucket, self.new("change"), "rw") as mount:
            before = cpu_of(mount.process.pid)
            _, program = run_python(CHANGE, mount.file("x.h5"), str(planes))
            self.note(f"change {build}", daemon=cpu_of(mount.process.pid) - before,
                      program=program)
            with h5py.File(mount.file("x.h5")) as f, h5py.File(self.quarter) as g:
                assert np.array_equal(f["f"][:planes], g["f"][:planes] + 1)

    def codec(self):
        chunks = self.new("chunks")
        with h5py.File(self.path) as f:
            for i in range(0, len(f["f"]), len(f["f"]) // 4):
                for d in f.values():
                    with open(f"{chunks}/{d.name[1:]}{i}", "wb") as out:
                        out.write(d.id.read_direct_chunk((i, 0, 0))[1])
        names = "\n".join(os.path.join(chunks, name) for name in os.listdir(chunks))
        subprocess.run([os.path.join(s3_world.PROGRAMS, "deflate_speed"), str(MIB)], check=True,
                       input=names.encode())

    def run(self):
        planes = self.args.size // 2
        make_file(self.path, planes)
        with h5py.File(self.path) as f, h5py.File(self.quarter, "w") as g:
            for name, d in f.items():
                g.create_dataset_like(name, d, shape=(planes // 4, SIDE, SIDE))
                g[name][:] = d[:planes // 4]
        parts = {"read": self.read, "import": self.encode, "change": self.change}
        for _ in range(self.args.runs):
            for part in self.args.parts:
                for build in self.args.build if part in parts else ():
                    parts[part](build)
            if "read" in self.args.parts:
                self.native()
        for row, runs in sorted(self.figures.items()):
            text = ", ".join(f"{name} {statistics.median(r[name] for r in runs):.2f} "
                             f"({min(r[name] for r in runs):.2f})" for name in runs[0])
            print(f"{row}: {text}", flush=True)
        if "codec" in self.args.parts:
            self.codec()


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--size", type=int, default=512, help="MiB, a multiple of 8")
    parser.add_argument("--build", action="append", help="a build directory; several are compared")
    parser.add_argument("--directory", help="where the files are made")
    parser.add_argument("parts", nargs="*", metavar="part")
    args = parser.parse_args()
    if set(args.parts) - set(PARTS) or args.size % 8:
        parser.error(f"a part is one of {' '.join(PARTS)}, a size a multiple of 8")
    args.parts = args.parts or list(PARTS)
    args.build = args.build or [mounts.BUILD]
    with tempfile.TemporaryDirectory(prefix="hsmount-gzip-", dir=args.directory) as directory:
        Bench(args, directory).run()


if __name__ == "__main__":
    main()
