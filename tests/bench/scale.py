#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs to serve more of something: objects, links, domains, larger chunks, more readers.

    HSMOUNT_BUILD=build-release tests/bench/scale.py [--delay MS] [--large] [--svg FILE]
                                                     [FAMILY[:N,N…]…]

Each line is a fresh mount of a bucket in memory_store, behind latency_proxy. It has the time, the
requests and rounds, the processor time of the daemon, also for each of the N, and the memory of
the daemon above that of an empty mount: at most, and when it is idle. For folders and whole files,
s3fs and rclone do the same with plain files, if they are installed. --large adds sizes that take
minutes."""
import argparse
import collections
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time

from s3_world import PROGRAMS, Hsmount, Network, Proxy, RcloneOff, S3fs

import mkbucket

DATA = 64 << 20
IDLE_S = 1.5


class Store:
    """memory_store with a bucket that `fill` has put. certificate: with its key, for TLS."""
    keys = "access", "secret"

    def __init__(self, fill, directory, certificate=()):
        path = os.path.join(directory, "objects")
        with Pack(path) as pack:
            fill(pack)
        self.process = subprocess.Popen([os.path.join(PROGRAMS, "memory_store"), path,
                                         *certificate], stdout=subprocess.PIPE, text=True)
        self.endpoint = (f"http{'s' if certificate else ''}://127.0.0.1:" +
                         self.process.stdout.readline().split("=")[1].strip())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(10)
        self.process.stdout.close()


class Pack(mkbucket.Maker):
    """The file that memory_store reads."""

    def __init__(self, path):
        self.file, self.domains = open(path, "wb", 1 << 20), []

    def __exit__(self, kind, value, trace):
        super().__exit__(kind, value, trace)
        self.file.close()

    def put(self, key, body):
        self.file.write(b"%d bucket/%s\n" % (len(body), key.encode()) + body)


# ---- what is measured: a function that fills the bucket, and one that uses the mount ----

def links(pack, n):
    mkbucket.many_links(pack, n)


def datasets(pack, n):
    mkbucket.thousand(pack, n)


def domains(pack, n):
    for i in range(n):
        d = pack.domain(f"folder/{i:06}.h5")
        d.dataset(d.root, "data", mkbucket.INT32, [4], [4]).chunk((0,), bytes(16))


def files(pack, n):
    """For programs that know no domains."""
    for i in range(n):
        pack.put(f"folder/{i:06}.h5", bytes(2048))


def chunks(pack, n):
    d, size = pack.domain("data.h5"), DATA // n
    data = d.dataset(d.root, "data", mkbucket.INT8, [DATA], [size])
    for i in range(n):
        data.chunk((i,), os.urandom(16) * (size // 16))


def readers(pack, _):
    chunks(pack, 64)


def one_file(pack, _):
    pack.put("data.h5", os.urandom(1 << 20) * (DATA >> 20))


def open_it(root, _):
    name, = os.listdir(root)
    os.close(os.open(os.path.join(root, name), os.O_RDONLY))


def list_it(root, _):
    subprocess.run(["ls", "-lR", os.path.join(root, "folder")], stdout=subprocess.DEVNULL,
                   check=True)


def copy_it(root, _):
    shutil.copyfile(os.path.join(root, "data.h5"), "/dev/null")


def read_at_once(root, n):
    path = os.path.join(root, "data.h5")
    for process in [subprocess.Popen(["cat", path], stdout=subprocess.DEVNULL) for _ in range(n)]:
        assert process.wait() == 0


Family = collections.namedtuple("Family", "what fill use sizes large peers")
FAMILIES = {
    "links": Family("open a group of N links", links, open_it,
                    (1, 1000, 10000, 100000), (1000000,), None),
    "datasets": Family("open a domain of N datasets", datasets, open_it,
                       (1, 100, 1000, 10000), (100000,), None),
    "domains": Family("`ls -lR` of N domains", domains, list_it,
                      (1, 100, 1000, 10000), (100000,), files),
    "chunks": Family("copy 64 MiB in N chunks", chunks, copy_it,
                     (1, 4, 64, 1024, 16384), (), one_file),
    "readers": Family("N programs read the same 64 MiB", readers, read_at_once,
                      (1, 4, 16, 64), (), one_file),
}


# ---- measuring ----

def memory(pid, what):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) / 1024 for line in f if line.startswith(what + ":"))


def processor_s(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


Result = collections.namedtuple("Result", "program n seconds requests rounds cpu peak idle")


def measure(reader, proxy, use, n):
    with reader.cold():
        root, pid = reader.path, (getattr(reader, "mount", None) or reader).process.pid
        proxy.settle()
        proxy.reset()
        empty, used = memory(pid, "VmRSS"), processor_s(pid)
        began = time.monotonic()
        use(root, n)
        seconds = time.monotonic() - began
        spent = proxy.spent()
        time.sleep(IDLE_S)
        return Result(reader.name, n, seconds, spent.requests, spent.rounds,
                      processor_s(pid) - used, memory(pid, "VmHWM") - empty,
                      memory(pid, "VmRSS") - empty)


def run(classes, fill, use, n, delay):
    with tempfile.TemporaryDirectory(prefix="scale-") as directory, \
            Store(lambda pack: fill(pack, n), directory) as store, \
            Proxy(store, directory) as proxy:
        proxy.set(Network(delay, 0))
        for cls in classes:
            reader = cls(proxy, store, "bucket", "data.h5")
            yield measure(reader, proxy, use, n)


def print_result(r):
    per = 1e6 * r.cpu / r.n
    print(f"| {r.program} | {r.n:,} | {r.seconds:.2f} | {r.requests:,} | {r.rounds:,} | "
          f"{r.cpu:.2f} | {per:,.0f} | {r.peak:,.0f} | {r.idle:,.0f} |", flush=True)


# ---- the plot: processor time against N, both logarithmic ----

WIDTH, HEIGHT, MARGIN = 640, 420, 60
COLOURS = "#1f6f8b", "#c8553d", "#588157", "#8e5ea2", "#b8860b"


def scale_of(values, low, high):
    first, last = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    last = max(last, first + 1)
    return range(first, last + 1), lambda v: low + (high - low) * (
        (math.log10(v) - first) / (last - first))


def draw(path, curves):
    points = [p for curve in curves.values() for p in curve]
    decades_x, x = scale_of([p[0] for p in points], MARGIN, WIDTH - 150)
    decades_y, y = scale_of([p[1] for p in points], HEIGHT - MARGIN, 20)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
           'font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for d in decades_x:
        out += [f'<path d="M{x(10 ** d):.0f} 20V{HEIGHT - MARGIN}" stroke="#ddd"/>',
                f'<text x="{x(10 ** d):.0f}" y="{HEIGHT - MARGIN + 18}" '
                f'text-anchor="middle">{10 ** d:,}</text>']
    for d in decades_y:
        out += [f'<path d="M{MARGIN} {y(10 ** d):.0f}H{WIDTH - 150}" stroke="#ddd"/>',
                f'<text x="{MARGIN - 6}" y="{y(10 ** d) + 4:.0f}" '
                f'text-anchor="end">{10 ** d:g}</text>']
    for (name, curve), colour in zip(curves.items(), COLOURS):
        line = " ".join(f"{x(n):.1f},{y(cpu):.1f}" for n, cpu in curve)
        out += [f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>',
                f'<text x="{x(curve[-1][0]) + 6:.0f}" y="{y(curve[-1][1]) + 4:.0f}" '
                f'fill="{colour}">{name}</text>']
    out += [f'<text x="{MARGIN}" y="{HEIGHT - 18}">N; processor time of the daemon in seconds'
            '</text>', "</svg>"]
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(out) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--delay", type=float, default=0, help="of each request, in ms")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--svg", help="draw processor time against N into this file")
    parser.add_argument("families", nargs="*", metavar="FAMILY[:N,N…]", help=", ".join(FAMILIES))
    args = parser.parse_args()
    curves = {}
    for cls in (S3fs, RcloneOff):
        if cls.missing():
            print(cls.missing(), file=sys.stderr)
    peers = [cls for cls in (S3fs, RcloneOff) if not cls.missing()]
    for choice in args.families or FAMILIES:
        name, _, sizes = choice.partition(":")
        family = FAMILIES[name]
        print(f"\n{family.what}:\n\n| program | N | s | requests | rounds | CPU s | µs of CPU for "
              "each | MiB at most | MiB idle |\n|---|---|---|---|---|---|---|---|---|", flush=True)
        for n in (map(int, sizes.split(",")) if sizes else
                  family.sizes + (family.large if args.large else ())):
            for result in run([Hsmount], family.fill, family.use, n, args.delay):
                print_result(result)
                curves.setdefault(name, []).append((n, max(result.cpu, 0.005)))
            if family.peers:
                for result in run(peers, family.peers, family.use, n, args.delay):
                    print_result(result)
    if args.svg:
        draw(args.svg, curves)


if __name__ == "__main__":
    main()
