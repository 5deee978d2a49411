#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures hsimage import: files of 1 GiB, to a directory and to the gateway, beside plain copies
of the same bytes. See README.md, "Imports"."""
import argparse
import collections
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np

import s3_world
from s3_world import Network

MIB = 1 << 20
CONNECTIONS = 64
CHUNKS = {"1 MiB chunks": MIB, "64 KiB chunks": MIB // 16, "contiguous": None, "gzip": MIB}


def say(text):
    print(text, flush=True)


def make_file(path, kind, size):
    """Random bytes; for gzip numbers that are compressed to about a half."""
    chunk = CHUNKS[kind]
    rng = np.random.default_rng(1)
    more = {"chunks": (chunk // 4,)} if chunk else {}
    if kind == "gzip":
        more.update(compression="gzip", compression_opts=1)
    with h5py.File(path, "w") as f:
        d = f.create_dataset("d", (size // 4,), "<u4", **more)
        for at in range(0, size // 4, 4 * MIB):
            n = min(4 * MIB, size // 4 - at)
            d[at:at + n] = rng.integers(0, 1 << (16 if kind == "gzip" else 32), n, dtype="<u4")
    with h5py.File(path) as f:
        d = f["d"]
        if not chunk:
            at, step = d.id.get_offset(), 4 * MIB
            return [(at + i, min(step, size - i)) for i in range(0, size, step)]
        return [(i.byte_offset, i.size) for i in map(d.id.get_chunk_info,
                                                     range(d.id.get_num_chunks()))]


# Processor seconds of the program and of the servers of the gateway; peak memory in MiB.
Run = collections.namedtuple("Run", "seconds cpu servers peak")


class Bench:
    def __init__(self, args, directory):
        self.args, self.directory = args, directory
        self.path = os.path.join(directory, "file.h5")
        self.gateway = None

    def servers_cpu(self):
        """The processor seconds of the gateway's servers so far."""
        ticks = 0
        for name in ("rgw", "osd") if self.gateway else ():
            with open(os.path.join(self.gateway.directory, name + ".pid")) as f:
                pid = f.read().strip()
            with open(f"/proc/{pid}/stat") as f:
                ticks += sum(map(int, f.read().rpartition(")")[2].split()[11:13]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def measure(self, command, env, text=""):
        with tempfile.TemporaryFile("w+") as lines, tempfile.TemporaryFile("w+") as errors:
            lines.write(text)
            lines.seek(0)
            servers, start = self.servers_cpu(), time.monotonic()
            done = subprocess.Popen(command, env=env, stdin=lines, stdout=subprocess.DEVNULL,
                                    stderr=errors)
            status, cpu, peak = s3_world.wait_for(done)
            seconds = time.monotonic() - start
            errors.seek(0)
            assert status == 0, errors.read()
        return Run(seconds, cpu, self.servers_cpu() - servers, peak)

    def run(self, target, env, *options):
        return self.measure([s3_world.mounts.HSIMAGE, "import", *options, self.path, target], env)

    @staticmethod
    def report(where, kind, bytes_, runs, floors):
        """floors: the runs of each program that the import is compared with, by its name."""
        def median(some, figure):
            return statistics.median(getattr(r, figure) for r in some)

        def figures(name, some):
            return (f"  {name:8} {bytes_ / median(some, 'seconds') / 1e6:5.0f} MB/s, CPU s: "
                    f"{median(some, 'cpu'):4.1f} + servers {median(some, 'servers'):4.1f}")

        say(f"{where}, {kind}:")
        say(figures("import", runs) + f", peak {max(r.peak for r in runs):.0f} MiB")
        for name, some in floors.items():
            say(figures(name, some) +
                f", ratio {median(some, 'seconds') / median(runs, 'seconds'):4.2f}")

    # ---- directory ----

    def to_directory(self, kind, parts):
        total = sum(n for _, n in parts)
        runs, floor = [], []
        for _ in range(self.args.runs):
            # It is kept until the end: ext4 without a journal does not reuse the inode of a deleted
            # file for a minute, and its search for another one would be most of an import's time.
            bucket = tempfile.mkdtemp(prefix="bucket-", dir=self.directory)
            os.mkdir(os.path.join(bucket, "db"))
            runs.append(self.run(os.path.join(bucket, "x.h5"), None, "-o", "allow_empty"))
            # It is kept, too: pages that were just freed are much cheaper than others in a
            # virtual machine, whose host provides memory when it is first touched.
            copy = tempfile.mktemp(prefix="copy-", dir=self.directory)
            floor.append(self.measure(["sh", "-c", 'cp "$0" "$1" && sync "$1"', self.path, copy],
                                      None))
        self.report("directory", kind, total, runs, {"cp+sync": floor})

    # ---- S3 ----

    def plain_puts(self, bucket, parts, sign, env):
        lines = []
        for i, (at, n) in enumerate(parts):
            path = f"/{bucket}/{'signed' if sign else 'plain'}/{i}"
            target = path if sign else s3_world.s3client.presigned(
                self.proxy.host, path, *self.gateway.keys, method="PUT")
            lines.append(f"{at} {n} {target}\n")
        return self.measure([os.path.join(s3_world.PROGRAMS, "parallel_get"), str(self.proxy.port),
                             str(CONNECTIONS), self.path, *(["sign"] if sign else [])], env,
                            "".join(lines))

    def to_gateway(self, kind, parts, delay):
        self.proxy.set(Network(delay))
        total = sum(n for _, n in parts)
        env = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
        env.update(HOME=self.directory, AWS_ACCESS_KEY_ID=self.gateway.keys[0],
                   AWS_SECRET_ACCESS_KEY=self.gateway.keys[1], AWS_EC2_METADATA_DISABLED="true",
                   AWS_ENDPOINT_URL=self.proxy.endpoint)
        client = self.gateway.client()
        runs, plain, signed, puts = [], [], [], set()

        def import_(name):
            self.proxy.reset()
            runs.append(self.run(f"s3://{name}/x.h5", env, "-o", "allow_empty"))
            puts.add(sum(r.method == "PUT" for r in self.proxy.spent().rows))

        # Each one is the first in turn, because the server is slower in a new bucket.
        programs = [import_,
                    lambda name: plain.append(self.plain_puts(name, parts, False, env)),
                    lambda name: signed.append(self.plain_puts(name, parts, True, env))]
        for i in range(self.args.runs):
            name = re.sub("[^a-z0-9]", "-", f"{kind}-{delay}-{i}".lower())
            client.make_bucket(name)
            for program in programs[i % 3:] + programs[:i % 3]:
                program(name)
                self.empty(client, name)
        self.report(f"gateway {delay} ms", kind, total, runs, {"PUTs": plain, "signed": signed})
        say(f"  {len(parts)} chunks, PUTs: {', '.join(map(str, sorted(puts)))}")

    def empty(self, client, bucket):
        for key in re.findall("<Key>(.*?)</Key>", self.all_keys(client, bucket)):
            client.delete(bucket, key)

    @staticmethod
    def all_keys(client, bucket):
        text, token = "", {}
        while True:
            page = client.request("GET", f"/{bucket}", {"list-type": "2", **token})[1].decode()
            text += page
            more = re.search("<NextContinuationToken>(.*?)</", page)
            if not more:
                return text
            token = {"continuation-token": more.group(1)}

    def all(self):
        for kind in self.args.kinds:
            parts = make_file(self.path, kind, self.args.size * MIB)
            if "directory" in self.args.targets:
                self.to_directory(kind, parts)
            if "gateway" not in self.args.targets:
                continue
            with s3_world.Gateway(os.path.join(self.directory, "rgw")) as self.gateway, \
                    s3_world.Proxy(self.gateway, self.directory) as self.proxy:
                for delay in self.args.delays:
                    self.to_gateway(kind, parts, delay)
            self.gateway = None
            shutil.rmtree(os.path.join(self.directory, "rgw"), ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1024, help="MiB of a file")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--delays", type=lambda s: [int(x) for x in s.split(",")], default=[0, 20])
    parser.add_argument("--targets", type=lambda s: s.split(","), default=["directory", "gateway"])
    parser.add_argument("--directory", help="where the files are made")
    parser.add_argument("kinds", nargs="*", default=list(CHUNKS), metavar="KIND")
    args = parser.parse_args()
    unknown = [k for k in args.kinds if k not in CHUNKS]
    if unknown:
        sys.exit(f"unknown kind {unknown[0]}; known: {', '.join(CHUNKS)}")
    with tempfile.TemporaryDirectory(prefix="import-bench-", dir=args.directory) as directory:
        Bench(args, directory).all()


if __name__ == "__main__":
    main()
