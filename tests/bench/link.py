#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures domains whose data lie inside HDF5 files, in Ceph's gateway behind a delay; README.md,
"Linked files", explains the parts.

    link.py [--delays 0,50] [--delay 50] [--link-size 1000] [table] [read] [link]  (default: all)

HSMOUNT_BUILD names the build directory.
"""
import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np

import s3_world
from s3_tasks import checksum, in_child
from s3_world import Hsmount, Network, RcloneOff, Ros3, S3fs

import mounts  # found through s3_world

PARTS = ("table", "read", "link")
MIB = 1 << 20
FILE, DOMAIN = "raw/file.h5", "home/file.h5"
STRIDED = 64
FLOOR_RANGE, CONNECTIONS = MIB, 64
TABLE_CHUNKS, TABLE_CHUNK_ELEMENTS = 1_000_000, 16
READ_FILES = {"1 MiB chunks": (MIB, 192), "10 kB chunks": (10_000, 3200)}   # bytes, chunks
LINK_CHUNK = 10_000
AT_ONCE = 10_000    # chunks of one call: libhdf5 takes 6 kB of memory for each
COUNTS = re.compile(r"(\d+) requests? read (\d+) bytes of it")


def say(line):
    print(line, flush=True)


def make_file(path, chunk, chunks, libver="latest"):
    """One dataset of `chunks` chunks of `chunk` bytes. Returns the bytes of its metadata."""
    each = chunk // 4
    step = min(64 * MIB // chunk, AT_ONCE) * each
    with h5py.File(path, "w", libver=libver) as f:
        d = f.create_dataset("d", (chunks * each,), "<i4", chunks=(each,))
        for at in range(0, d.size, step):
            n = min(step, d.size - at)
            d[at:at + n] = np.arange(at, at + n, dtype="<i4")
    return os.path.getsize(path) - chunk * chunks


# ---- tasks: each gets the arguments of h5py.File and the bytes of a chunk ----

def strided(path, options, each, chunks):
    start = time.monotonic()
    with h5py.File(path, "r", **options) as f:
        parts = [f["d"][i * each:(i + 1) * each] for i in range(0, chunks, chunks // STRIDED)]
    return {"seconds": time.monotonic() - start, "check": checksum(*parts)}


def in_order(path, options, each, chunks):
    """One slice for each chunk."""
    start = time.monotonic()
    with h5py.File(path, "r", rdcc_nbytes=0, **options) as f:
        parts = [f["d"][i * each:(i + 1) * each] for i in range(chunks)]
    return {"seconds": time.monotonic() - start, "check": checksum(*parts)}


class Bench:
    def __init__(self, args, directory):
        self.args, self.directory = args, directory
        self.path = os.path.join(directory, "file.h5")

    def put(self, name):
        client = self.gateway.client()
        client.make_bucket(name)
        with open(self.path, "rb") as f:
            client.put(name, FILE, f.read())

    def environment(self):
        key, secret = self.gateway.keys
        return {**os.environ, "HOME": self.directory, "AWS_ACCESS_KEY_ID": key,
                "AWS_SECRET_ACCESS_KEY": secret, "AWS_EC2_METADATA_DISABLED": "true",
                "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": self.proxy.endpoint}

    def link(self, bucket, domain=DOMAIN):
        """Returns the seconds, the processor seconds, the peak memory in MiB, the requests and
        bytes of the file, and all traffic."""
        self.proxy.reset()
        with tempfile.TemporaryFile("w+") as errors:
            start = time.monotonic()
            done = subprocess.Popen([mounts.HSIMAGE, "-b", f"s3://{bucket}", "-o", "allow_empty",
                                     "link", FILE, domain], env=self.environment(), stderr=errors)
            status, cpu, peak = s3_world.wait_for(done)
            seconds = time.monotonic() - start
            errors.seek(0)
            text = errors.read()
            assert status == 0, text
        requests, bytes_ = map(int, COUNTS.search(text).groups())
        return seconds, cpu, peak, requests, bytes_, self.proxy.spent()

    # ---- the open of a domain with a large chunk table ----

    def table(self):
        make_file(self.path, 4 * TABLE_CHUNK_ELEMENTS, TABLE_CHUNKS)
        self.put("table")
        self.proxy.set(Network(0))
        self.link("table")
        self.proxy.set(Network(self.args.delay))
        reader = Hsmount(self.proxy, self.gateway, "table", DOMAIN)
        with reader as path:
            self.proxy.reset()
            start = time.monotonic()
            with h5py.File(path) as f:
                self.tell("open", start, reader)
                d, n = f["d"], TABLE_CHUNK_ELEMENTS
                places = list(range(TABLE_CHUNKS // 26, TABLE_CHUNKS, TABLE_CHUNKS // 13))
                for name, numbers in (
                        ("13 reads, at least one in each chunk of the table", places),
                        ("13 more reads", [i + 1000 for i in places]),
                        ("1,000 random chunks", random.Random(1).sample(range(TABLE_CHUNKS),
                                                                        1000))):
                    self.proxy.reset()
                    start = time.monotonic()
                    for i in numbers:
                        assert d[i * n] == i * n
                    self.tell(name, start, reader)
                self.proxy.reset()
                start = time.monotonic()
                for at in range(0, d.size, AT_ONCE * n):
                    assert d[at:at + AT_ONCE * n][-1] == at + AT_ONCE * n - 1
                self.tell("all", start, reader)

    def tell(self, what, start, reader):
        seconds = time.monotonic() - start
        spent = self.proxy.spent()
        table = [r for r in spent.rows if s3_world.CHUNK_KEY.search(r.target)]
        say(f"table, {self.args.delay} ms, {what}: {seconds:.2f} s, {spent.requests} requests, "
            f"{len(table)} of them for the table ({sum(r.bytes for r in table):,} bytes), "
            f"{spent.bytes:,} bytes, {spent.rounds} rounds, "
            f"peak memory {reader.peak() / MIB:.0f} MiB")

    # ---- reads ----

    def read(self):
        self.proxy.set(Network(self.args.delay))
        for name, (chunk, chunks) in READ_FILES.items():
            make_file(self.path, chunk, chunks)
            bucket = f"read{chunk}"
            self.put(bucket)
            self.link(bucket)
            self.read_file(name, bucket, chunk, chunks)

    def read_file(self, name, bucket, chunk, chunks):
        with h5py.File(self.path) as f:
            at = [f["d"].id.get_chunk_info(i).byte_offset for i in range(chunks)]
        floors = {strided: [(at[i], chunk) for i in range(0, chunks, chunks // STRIDED)],
                  in_order: [(i, min(FLOOR_RANGE, at[-1] + chunk - i))
                             for i in range(at[0], at[-1] + chunk, FLOOR_RANGE)]}
        for task, ranges in floors.items():
            what = f"{name}, " + (f"{len(ranges)} strided" if task is strided else "all in order")
            floor = self.floor(bucket, ranges)
            self.figure(what, "floor", floor, *floor)
            check = None
            for peer in (Hsmount, S3fs, RcloneOff, Ros3):
                why = peer.missing() if peer is not Hsmount else None
                if why:
                    say(f"{what}: {peer.name} left out, {why}")
                    continue
                key = DOMAIN if peer is Hsmount else FILE
                reader = peer(self.proxy, self.gateway, bucket, key)
                with reader.cold() as path:
                    self.proxy.reset()
                    result = in_child(lambda p, o, t=task: t(p, o, chunk // 4, chunks), path,
                                      reader.h5py)
                    spent = self.proxy.spent()
                check = check or result["check"]
                assert result["check"] == check, f"{peer.name} reads other data"
                self.figure(what, peer.name, floor, result["seconds"], spent)

    def floor(self, bucket, ranges):
        target = s3_world.s3client.presigned(self.proxy.host, f"/{bucket}/{FILE}",
                                             *self.gateway.keys)
        self.proxy.reset()
        done = subprocess.run(
            [os.path.join(s3_world.PROGRAMS, "parallel_get"), str(self.proxy.port),
             str(CONNECTIONS)], text=True, stdout=subprocess.PIPE, check=True, timeout=120,
            input="".join(f"{a}-{a + n - 1} {target}\n" for a, n in ranges))
        return float(done.stdout.split()[0]), self.proxy.spent()

    def figure(self, what, who, floor, seconds, spent):
        say(f"{self.args.delay} ms, {what}, {who}: {seconds:.2f} s ({seconds / floor[0]:.1f} of "
            f"the floor), {spent.requests} requests, {spent.rounds} rounds, "
            f"{spent.bytes:,} bytes")

    # ---- hsimage link ----

    def link_times(self):
        for libver in ("earliest", "latest"):
            chunks = self.args.link_size * 1_000_000 // LINK_CHUNK
            metadata = make_file(self.path, LINK_CHUNK, chunks, libver)
            bucket = f"link-{libver}"
            self.put(bucket)
            for delay in self.args.delays:
                self.proxy.set(Network(delay))
                seconds, cpu, peak, requests, bytes_, spent = self.link(bucket,
                                                                        f"home/{delay}.h5")
                say(f"link, {chunks} chunks, {libver}, {delay} ms: {seconds:.2f} s "
                    f"({cpu:.2f} s CPU), {requests} requests and {bytes_:,} bytes of the file, "
                    f"{bytes_ / metadata:.3f} of its metadata ({metadata:,}); all: "
                    f"{spent.requests} requests, {spent.rounds} rounds; peak {peak:.0f} MiB")

    def run(self):
        parts = {"table": self.table, "read": self.read, "link": self.link_times}
        for part in self.args.parts:
            with s3_world.Gateway(os.path.join(self.directory, part)) as self.gateway, \
                    s3_world.Proxy(self.gateway, self.directory) as self.proxy:
                parts[part]()


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--delays", default="0,50", type=lambda s: [int(n) for n in s.split(",")])
    parser.add_argument("--delay", type=int, default=50)
    parser.add_argument("--link-size", type=int, default=1000, help="MB")
    parser.add_argument("--directory", help="where the files are made")
    parser.add_argument("parts", nargs="*", metavar="part")
    args = parser.parse_args()
    if set(args.parts) - set(PARTS):
        parser.error(f"a part is one of {' '.join(PARTS)}")
    args.parts = args.parts or list(PARTS)
    for name in [n for n in os.environ if n.startswith("AWS_")]:
        del os.environ[name]        # settings of the machine for other servers
    with tempfile.TemporaryDirectory(prefix="hsmount-link-", dir=args.directory) as directory:
        Bench(args, directory).run()


if __name__ == "__main__":
    main()
