#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the measurements that README.md explains. Prints lines "name: figure"; a measurement is
the median of several runs unless it says otherwise.

    bench.py [open] [chunks] [sequential] [readers]       (default: all)

HSMOUNT_BUILD names the build directory. Needs about 2.5 GiB in the directory for temporary files.
"""
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TREE, "tests", "support"))

import h5py  # noqa: E402
import numpy as np  # noqa: E402

import mkbucket  # noqa: E402
from mounts import Mount, difference, is_mounted, run, unmount, wait_for  # noqa: E402

RUNS = 5


def say(name, figure):
    print(f"{name}: {figure}", flush=True)


def timed(action):
    start = time.monotonic()
    action()
    return time.monotonic() - start


def spread(times, scale=1, unit="s"):
    times = sorted(t * scale for t in times)
    return f"{statistics.median(times):.3g} {unit} ({times[0]:.3g} … {times[-1]:.3g})"


def drop_pages(path):
    """Drops the pages of the file from the page cache, so the next read goes to the file system."""
    fd = os.open(path, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def open_close(path):
    os.close(os.open(path, os.O_RDONLY))


# ---- 1,000 datasets ----

def fuse_reads(bucket, work, name, *command):
    """The number of reads that the kernel sends for one command on a file that is not cached."""
    with Mount(bucket, work, "debug_count") as m:
        path = m.file(name)
        open_close(path)
        before = m.counts()
        seconds = timed(lambda: run(*command, path, check=True))
        spent = difference(before, m.counts())
        return spent.get("reads", "uncounted"), seconds


def bench_open(work):
    bucket = os.path.join(work, "thousand")
    with mkbucket.Maker(bucket) as made:
        mkbucket.thousand(made)
    cold, memory = [], []
    for i in range(RUNS):
        with Mount(bucket, work, "debug_count") as m:
            idle, before = m.memory(), m.counts()
            cold.append(timed(lambda: open_close(m.file("thousand.h5"))))
            spent = difference(before, m.counts())
            memory.append(m.memory() - idle)
            again = [timed(lambda: open_close(m.file("thousand.h5"))) for _ in range(RUNS)]
            size = os.stat(m.file("thousand.h5")).st_size
    say("open of 1,000 datasets x 3 attributes, first", spread(cold, 1000, "ms"))
    say("  open again", spread(again, 1000, "ms"))
    say("  requests of the first open",
        f"{spent['gets']} gets, {spent['heads']} heads, {spent['lists']} lists")
    say("  resident memory that it took", f"{statistics.median(memory) / 2**20:.1f} MiB")
    say("  size of the image", f"{size:,} bytes")
    for label, command in (("h5dump -H", ("h5dump", "-H")), ("h5dump -pH", ("h5dump", "-pH")),
                           ("h5ls -r", ("h5ls", "-r"))):
        reads, seconds = fuse_reads(bucket, work, "thousand.h5", *command)
        say(f"  {label}", f"{reads} FUSE reads, {seconds:.3f} s")


# ---- 10,000,000 chunks ----

def bench_chunks(work):
    for chunks, stored in ((10_000, 8), (10_000_000, 8), (10_000_000, 1500)):
        bucket = os.path.join(work, f"chunks{chunks}-{stored}")
        with mkbucket.Maker(bucket) as made:
            mkbucket.ten_million(made, chunks, stored)
        with Mount(bucket, work, "debug_count") as m:
            idle, before = m.memory(), m.counts()
            seconds = timed(lambda: open_close(m.file("tenmillion.h5")))
            spent = difference(before, m.counts())
            grown = m.memory() - idle
            say(f"open of one dataset of {chunks:,} chunks, {stored} stored",
                f"{seconds * 1000:.3g} ms, "
                f"{spent['gets']} gets, {spent['heads']} heads, {spent['lists']} lists, "
                f"{grown / 2**20:.1f} MiB more memory")
            rng, times = np.random.default_rng(1), []
            with h5py.File(m.file("tenmillion.h5"), "r") as f:
                f["data"].shape
                before = m.counts()
                for at in rng.integers(0, chunks * 1024, 200):
                    times.append(timed(lambda: f["data"][int(at)]))
                spent = difference(before, m.counts())
            say("  one random element", f"{spread(times, 1000, 'ms')}, "
                f"{spent['gets'] / 200:.2f} gets, "
                f"{spent['lists'] / 200:.2f} lists each")


# ---- 1 GiB in order ----

def read_in_order(path):
    """Bytes per second of h5py reading a dataset in pieces of 8 MiB."""
    drop_pages(path)
    total, buffer = 0, np.empty(1 << 20, "<f8")
    start = time.monotonic()
    with h5py.File(path, "r") as f:
        data = f["data"]
        for at in range(0, data.shape[0], buffer.size):
            n = min(buffer.size, data.shape[0] - at)
            data.read_direct(buffer, np.s_[at:at + n], np.s_[:n])
            total += n * 8
    return total / (time.monotonic() - start)


EXAMPLES = "/usr/share/doc/libfuse3-dev/examples"


class Comparison:
    """Another FUSE program over a local file: compiled, mounted, and unmounted by close()."""

    def __init__(self, work, name, source, command):
        program, self.path = os.path.join(work, name), os.path.join(work, name + ".mnt")
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "fuse3"], check=True,
                               capture_output=True).stdout.decode().split()
        run("cc", "-O2", "-w", "-D_GNU_SOURCE", "-I", work, "-o", program, source, *flags,
            check=True)
        os.makedirs(self.path, exist_ok=True)
        self.process = subprocess.Popen([program, *command, self.path])
        assert wait_for(lambda: is_mounted(self.path))

    def close(self):
        unmount(self.path)
        self.process.wait(30)


def floor(work, file):
    """The memory-backed file system of floor.c."""
    return Comparison(work, "floor", os.path.join(TREE, "tests/bench/floor.c"), [file])


def pass_through(work, file):
    """passthrough_ll of libfuse if its examples are installed, else None."""
    source = os.path.join(EXAMPLES, "passthrough_ll.c")
    if not os.path.exists(source):
        return None
    for header in ("config.h", "fuse_config.h"):
        with open(os.path.join(work, header), "w") as f:
            f.write("#define HAVE_UTIMENSAT 1\n")
    return Comparison(work, "pass", source,
                      ["-f", "-o", f"source={os.path.dirname(file)}", "-o", "cache=auto"])


def bench_sequential(work, mebibytes=1024):
    bucket = os.path.join(work, "gibibyte")
    with mkbucket.Maker(bucket) as made:
        mkbucket.gibibyte(made, mebibytes)
    local = os.path.join(work, "local.h5")
    with h5py.File(local, "w") as f:
        data = f.create_dataset("data", (mebibytes << 17,), "<f8", chunks=(1 << 17,))
        for i in range(mebibytes):
            data[i << 17:(i + 1) << 17] = np.arange(i << 17, (i + 1) << 17)
    os.sync()
    say("1 GiB in chunks of 1 MiB, local file, h5py",
        f"{(base := median_rate(local)) / 2**20:.0f} MiB/s")
    ceiling = 0
    for label, program, name in (
            ("memory-backed FUSE floor", floor(work, local), "data.h5"),
            ("libfuse's passthrough_ll", pass_through(work, local), "local.h5")):
        if not program:
            continue
        try:
            through = median_rate(os.path.join(program.path, name))
        finally:
            program.close()
        ceiling = ceiling or through
        say(f"  {label}", f"{through / 2**20:.0f} MiB/s, {through / base:.2f} of the local file")
    with Mount(bucket, work, "debug_count") as m:
        rate = median_rate(m.file("gibibyte.h5"))
        idle = m.counts()
        say("  mount", f"{rate / 2**20:.0f} MiB/s, {rate / ceiling:.2f} of the floor, "
            f"{rate / through:.2f} of the last, {rate / base:.2f} of the local file")
        say("  gets in all runs", f"{idle['gets']}, "
            f"prefetches {idle.get('prefetches', 0)}, used {idle.get('prefetch_used', 0)}")
    shutil.rmtree(bucket)


def median_rate(path):
    return statistics.median(read_in_order(path) for _ in range(RUNS))


# ---- 16 readers ----

def together(calls):
    threads = [threading.Thread(target=c) for c in calls]

    def go():
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    return timed(go)


def read_plain(path):
    with open(path, "rb") as f:
        while f.read(1 << 20):
            pass


def bench_readers(work, readers=16, mebibytes=16):
    bucket = os.path.join(work, "files")
    with mkbucket.Maker(bucket) as made:
        mkbucket.many_files(made, readers, mebibytes)
    for label, pick in (("one file", lambda i: "f00.h5"), (f"{readers} files",
                                                          lambda i: f"f{i:02}.h5")):
        times = []
        for _ in range(RUNS):
            with Mount(bucket, work, "debug_count") as m:
                before = m.counts()
                times.append(together([lambda i=i: read_plain(m.file(pick(i)))
                                       for i in range(readers)]))
                spent = difference(before, m.counts())
        wanted = mebibytes * (1 if label == "one file" else readers)
        say(f"{readers} readers of {label} of {mebibytes} MiB", f"{spread(times)}, "
            f"{spent['cache_loads']} chunk loads for {wanted} chunks")


BENCHES = {"open": bench_open, "chunks": bench_chunks, "sequential": bench_sequential,
           "readers": bench_readers}


def main():
    wanted = sys.argv[1:] or list(BENCHES)
    if set(wanted) - set(BENCHES):
        sys.exit(f"usage: bench.py [{'] ['.join(BENCHES)}]")
    work = tempfile.mkdtemp(prefix="hsmount-bench-")
    try:
        for name in wanted:
            BENCHES[name](work)
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
