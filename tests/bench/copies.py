#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures copies of files into mounts and out of them: hsmount, s3fs and rclone on the gateway,
beside parallel PUTs and GETs of the same bytes; and the requests of `tar x` of many small files.
See README.md, "Copies"."""
import argparse
import collections
import importlib
import io
import os
import re
import shutil
import statistics
import subprocess
import tarfile
import tempfile
import time

import h5py
import numpy as np

import s3_world
from s3_world import Network, mounts

bench_import = importlib.import_module("import")    # the name is a keyword
MIB, say = bench_import.MIB, bench_import.say
KINDS = ("1 MiB chunks", "contiguous")
NAME = "x.h5"


def cpu_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        return sum(map(int, f.read().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def assert_copied(source, copy):
    """The file of a domain has the numbers of the source, but other bytes."""
    with h5py.File(source) as f, h5py.File(copy) as g:
        assert f["d"].shape == g["d"].shape
        for at in range(0, len(f["d"]), 4 * MIB):
            assert np.array_equal(f["d"][at:at + 4 * MIB], g["d"][at:at + 4 * MIB]), copy


class Hsmount:
    """hsmount with -o rw and its journal beside the mount."""
    name, in_background = "hsmount", False

    def __init__(self, bench, bucket):
        self.bench, self.bucket = bench, bucket
        self.directory = tempfile.mkdtemp(prefix="mount-", dir=bench.directory)

    def __enter__(self):
        self.mount = mounts.Mount(
            f"s3://{self.bucket}", self.directory, "rw", "metadata_ttl=60", "allow_empty",
            f"journal_dir={self.directory}/journal", env=self.bench.env())
        self.mount.start()
        self.process, self.path = self.mount.process, self.mount.path
        return self

    def __exit__(self, kind, value, trace):
        self.mount.__exit__(kind, value, trace)
        shutil.rmtree(self.directory, ignore_errors=True)


class Foreign:
    """Another program that mounts the bucket. in_background: close returns before the bucket has
    the file."""

    def __init__(self, bench, bucket):
        self.reader = self.kind(bench.proxy, bench.gateway, bucket, NAME)

    def __enter__(self):
        self.reader.__enter__()
        self.process, self.path = self.reader.process, self.reader.path
        return self

    def __exit__(self, *_):
        self.reader.__exit__()


class WritableS3fs(s3_world.S3fs):
    def command(self):
        command, env = super().command()
        return [word.replace(",ro,", ",") for word in command], env


class WritableRclone(s3_world.RcloneFull):
    mode = "full"

    def command(self):
        command, env = super().command()
        command.remove("--read-only")
        return command + ["--vfs-write-back", "0s", "--s3-upload-concurrency", "32",
                          "--s3-chunk-size", "8M"], env


class S3fs(Foreign):
    name, in_background, kind = "s3fs", False, WritableS3fs


class Rclone(Foreign):
    name, in_background, kind = "rclone", True, WritableRclone


PEERS = {kind.name: kind for kind in (Hsmount, S3fs, Rclone)}
Figures = collections.namedtuple("Figures", "seconds cpu servers peak requests")


class Bench(bench_import.Bench):
    def env(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
        env.update(HOME=self.directory, AWS_ACCESS_KEY_ID=self.gateway.keys[0],
                   AWS_SECRET_ACCESS_KEY=self.gateway.keys[1], AWS_EC2_METADATA_DISABLED="true",
                   AWS_ENDPOINT_URL=self.proxy.endpoint)
        return env

    def timed(self, mounted, command, until=None):
        """Runs a command, and measures it with the processor time of the mount's daemon."""
        self.proxy.reset()
        cpu, servers = cpu_of(mounted.process.pid), self.servers_cpu()
        start = time.monotonic()
        subprocess.run(command, check=True, timeout=1800, stdout=subprocess.DEVNULL)
        while until and not until():
            time.sleep(0.02)
        seconds = time.monotonic() - start
        return Figures(seconds, cpu_of(mounted.process.pid) - cpu, self.servers_cpu() - servers,
                       s3_world.peak_memory(mounted.process.pid) / MIB,
                       collections.Counter(r.method for r in self.proxy.spent().rows))

    def stored(self, client, bucket):
        """Whether the bucket has an object with the size of the whole file."""
        size = os.path.getsize(self.path)
        return lambda: f"<Size>{size}</Size>" in self.all_keys(client, bucket)

    def both_ways(self, peer, bucket, client):
        """A copy in, and one out of a fresh mount. Memory takes the copy out."""
        with peer(self, bucket) as m:
            inward = self.timed(m, ["cp", self.path, os.path.join(m.path, NAME)],
                                self.stored(client, bucket) if m.in_background else None)
        out = os.path.join(self.args.memory, f"copy-bench-{os.getpid()}")
        try:
            with peer(self, bucket) as m:
                outward = self.timed(m, ["cp", os.path.join(m.path, NAME), out])
                if peer is Hsmount:
                    os.getxattr(os.path.join(m.path, NAME), "user.hsds.root")   # it is a domain
            assert_copied(self.path, out)
        finally:
            if os.path.exists(out):
                os.unlink(out)
        return inward, outward

    def floor(self, bucket, parts):
        """Parallel signed PUTs of the parts of the file, and GETs."""
        inward = self.plain_puts(bucket, parts, True, self.env())
        targets = [s3_world.s3client.presigned(self.proxy.host, f"/{bucket}/signed/{i}",
                                               *self.gateway.keys) for i in range(len(parts))]
        outward = self.measure([os.path.join(s3_world.PROGRAMS, "parallel_get"),
                                str(self.proxy.port), str(bench_import.CONNECTIONS)], self.env(),
                               "".join(t + "\n" for t in targets))
        return inward, outward

    def copies(self, kind, parts, delay):
        client = self.gateway.client()
        runs = collections.defaultdict(list)
        for i in range(self.args.runs):
            order = ["floor", *self.args.peers]
            for name in order[i % len(order):] + order[:i % len(order)]:
                bucket = re.sub("[^a-z0-9]", "-", f"{kind}-{delay}-{i}-{name}".lower())
                client.make_bucket(bucket)
                runs[name].append(self.floor(bucket, parts) if name == "floor"
                                  else self.both_ways(PEERS[name], bucket, client))
                self.empty(client, bucket)
        for way, where in enumerate(("in", "out")):
            say(f"{where}, {kind}, {delay} ms:")
            floor = statistics.median(run[way].seconds for run in runs["floor"])
            for name, some in runs.items():
                some = [run[way] for run in some]
                seconds = [r.seconds for r in some]
                median = statistics.median(seconds)
                requests = getattr(some[0], "requests", {"PUT" if way == 0 else "GET": len(parts)})
                say(f"  {name:8} {self.args.size * MIB / median / 1e6:5.0f} MB/s "
                    f"({min(seconds):.2f} … {max(seconds):.2f} s), of the floor "
                    f"{floor / median:4.2f}, CPU s: {statistics.median(r.cpu for r in some):.1f} + "
                    f"servers {statistics.median(r.servers for r in some):.1f}, peak "
                    f"{max(r.peak for r in some):.0f} MiB, "
                    + ", ".join(f"{n} {method}" for method, n in sorted(requests.items())))

    def archive(self, n):
        """A tar file of small domains: a group and a dataset of one chunk each."""
        path = os.path.join(self.directory, "small.tar")
        with h5py.File(os.path.join(self.directory, "small.h5"), "w") as f:
            f["d"] = np.arange(100)
            f["d"].attrs["unit"] = "m"
        with open(os.path.join(self.directory, "small.h5"), "rb") as f:
            body = f.read()
        with tarfile.open(path, "w") as t:
            for i in range(n):
                info = tarfile.TarInfo(f"{i}.h5")
                info.size = len(body)
                t.addfile(info, io.BytesIO(body))
        return path

    def small_files(self, n, delay):
        client, bucket = self.gateway.client(), f"small-{delay}"
        client.make_bucket(bucket)
        archive = self.archive(n)
        with Hsmount(self, bucket) as m:
            r = self.timed(m, ["tar", "xf", archive, "-C", m.path])
            kinds = collections.Counter((row.method, s3_world.Spent.kind(row))
                                        for row in self.proxy.spent().rows)
        say(f"tar x of {n} domains, {delay} ms: {r.seconds:.1f} s, CPU s: {r.cpu:.1f} + servers "
            f"{r.servers:.1f}; requests per file: " + ", ".join(
                f"{count / n:.2f} {method} {kind}" for (method, kind), count
                in sorted(kinds.items())))
        self.empty(client, bucket)

    def with_gateway(self, delay, measure, *arguments):
        """A new gateway each time: it keeps deleted parts of large objects for two hours."""
        directory = os.path.join(self.directory, "rgw")
        with s3_world.Gateway(directory) as self.gateway, \
                s3_world.Proxy(self.gateway, self.directory) as self.proxy:
            self.proxy.set(Network(delay))
            measure(*arguments, delay)
        self.gateway = None
        shutil.rmtree(directory, ignore_errors=True)

    def all(self):
        for kind in self.args.kinds if self.args.size else ():
            parts = bench_import.make_file(self.path, kind, self.args.size * MIB)
            for delay in self.args.delays:
                self.with_gateway(delay, self.copies, kind, parts)
        for delay in self.args.delays if self.args.files else ():
            self.with_gateway(delay, self.small_files, self.args.files)


def main():
    def words(text):
        return text.split(",")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1024, help="MiB of a file; 0: no large files")
    parser.add_argument("--files", type=int, default=1000, help="small files; 0: none")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--delays", type=lambda s: [int(x) for x in words(s)], default=[0, 20, 50])
    parser.add_argument("--peers", type=words, default=[
        name for name in PEERS if name == "hsmount" or shutil.which(name)])
    parser.add_argument("--directory", help="where the files are made")
    parser.add_argument("--memory", default="/dev/shm", help="where copies out go")
    parser.add_argument("kinds", nargs="*", default=list(KINDS), metavar="KIND")
    args = parser.parse_args()
    os.environ.pop("AWS_CA_BUNDLE", None)       # rclone fails with it
    # Deleted parts of large objects count, too.
    os.environ["MEMSTORE"] = str((1024 + args.size * 2 * (args.runs * len(PEERS) + 1)) * MIB)
    with tempfile.TemporaryDirectory(prefix="copy-bench-", dir=args.directory) as directory:
        Bench(args, directory).all()


if __name__ == "__main__":
    main()
