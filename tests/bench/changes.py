#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what changes of existing domains cost: requests, bytes in the bucket and in the journal,
objects and index nodes that commits read, processor time and memory of the daemon. See README.md,
"Changes"."""
import argparse
import collections
import contextlib
import os
import shutil
import tempfile
import time

import h5py
import numpy as np

import bench
import s3_world
from s3_world import Network, mkbucket, mounts
import rwmounts

MIB = 1 << 20
NAME = "home/x.h5"
Cost = collections.namedtuple("Cost", "seconds cpu peak requests written fetched journal "
                              "objects nodes rounds")


def say(*words):
    print(*words, flush=True)


def cpu_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        return sum(map(int, f.read().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")


class Place:
    """A bucket in a directory, which is copied to the gateway if there is a proxy."""

    def __init__(self, directory, proxy=None, gateway=None):
        self.directory, self.proxy, self.gateway = directory, proxy, gateway
        self.root, self.url, self.env = os.path.join(directory, "bucket"), None, None

    def __enter__(self):
        os.makedirs(os.path.join(self.root, "home"))
        with open(os.path.join(self.root, "home/.domain.json"), "w", encoding="ascii") as f:
            f.write('{"owner": "u", "acls": {"u": {"create": true, "read": true, "update": true, '
                    '"delete": true, "readACL": true, "updateACL": true}}, "created": 1, '
                    '"lastModified": 1}')
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.directory, ignore_errors=True)

    def put(self, path):
        """Imports a file, and deletes it."""
        mounts.run(mounts.HSIMAGE, "-b", self.root, "import", path, NAME, check=True, timeout=1800)
        os.unlink(path)

    def mount(self):
        self.url = self.root
        if self.proxy:
            key, secret = self.gateway.keys
            self.env = {**os.environ, "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret,
                        "AWS_ENDPOINT_URL": self.proxy.endpoint, "AWS_REGION": "us-east-1",
                        "AWS_EC2_METADATA_DISABLED": "true"}
            name = os.path.basename(self.directory).lower().replace("_", "-")
            client = self.gateway.client()
            client.make_bucket(name)
            client.upload(name, self.root)
            self.url = f"s3://{name}"
        return rwmounts.RwMount(self.url, self.directory, env=self.env,
                                journal=os.path.join(self.directory, "journal"))


class Meter:
    """Measures one step in a mount."""

    def __init__(self, place, mount, name):
        self.place, self.mount, self.pid = place, mount, mount.process.pid
        self.path = mount.file(name)

    def spend(self, step):
        if self.place.proxy:
            self.place.proxy.reset()
        before, cpu, start = self.mount.stats(), cpu_of(self.pid), time.monotonic()
        step()
        self.mount.released()
        seconds = time.monotonic() - start
        after = self.mount.stats()
        calls = collections.Counter()
        for sign, stats in ((1, after), (-1, before)):
            for call, results in stats["store"]["calls"].items():
                calls[call] += sign * sum(results.values())

        def grown(room, name):
            return after[room][name] - before[room][name]
        return Cost(seconds, cpu_of(self.pid) - cpu, s3_world.peak_memory(self.pid) / MIB,
                    {call: n for call, n in sorted(calls.items()) if n},
                    grown("store", "written_bytes"), grown("store", "read_bytes"),
                    grown("drafts", "written_bytes"), grown("drafts", "scanned_objects"),
                    grown("drafts", "scanned_nodes"),
                    self.place.proxy.spent().rounds if self.place.proxy else None)

    def show(self, label, step):
        cost = self.spend(step)
        calls = ", ".join(f"{n:,} {call.upper()}" for call, n in cost.requests.items()) or "none"
        rounds = f" in {cost.rounds} rounds" if cost.rounds is not None else ""
        say(f"  {label}: {calls}{rounds}; bucket: {cost.written:,} bytes put, {cost.fetched:,} "
            f"read; {cost.journal:,} bytes written to the journal; {cost.objects:,} objects and "
            f"{cost.nodes:,} index nodes read; {cost.seconds:.2f} s, "
            f"CPU s {cost.cpu:.2f}, peak {cost.peak:.0f} MiB")

    def open_and_close(self, label="open and close"):
        self.show(label, lambda: h5py.File(self.path, "r").close())

    def change(self, label, edit):
        """A program that opens the domain, changes it and closes it."""
        def step():
            with h5py.File(self.path, "r+") as f:
                edit(f)
        self.show(label, step)


@contextlib.contextmanager
def measured(place, title, name=NAME):
    """A fresh mount, in which the domain was opened once."""
    with place.mount() as m:
        meter = Meter(place, m, name)
        say(title)
        meter.open_and_close()
        yield meter


# ---- the cases ----

def gibibyte(place, size):
    """Chunks of 1 MiB."""
    path = os.path.join(place.directory, "x.h5")
    with h5py.File(path, "w") as f:
        d = f.create_dataset("d", (size << 17,), "<f8", chunks=(1 << 17,))
        for i in range(size):
            d[i << 17:(i + 1) << 17] = np.arange(i, i + (1 << 17))
    place.put(path)
    with measured(place, f"one dataset of {size} MiB, chunks of 1 MiB:") as meter:
        def unread(f):
            f["d"][5] = -1

        def read_before(f):
            f["d"][7 << 17] = -1

        def read():
            with h5py.File(meter.path) as f:
                assert f["d"][(7 << 17) + 1] == 8

        def whole(f):
            f["d"][9 << 17:10 << 17] = np.zeros(1 << 17) + 0.5
        meter.change("one element", unread)
        kept = os.open(meter.path, os.O_RDONLY)     # else the next open begins with an empty cache
        meter.show("one element is read", read)
        meter.change("one element of a chunk that was read", read_before)
        os.close(kept)
        meter.change("a whole chunk", whole)
        meter.open_and_close()


def thousand(place, n):
    """Small datasets in one group."""
    path = os.path.join(place.directory, "x.h5")
    with h5py.File(path, "w") as f:
        for i in range(n):
            f[f"many/d{i:04}"] = np.arange(10) + i
            f[f"many/d{i:04}"].attrs["unit"] = "m"
        f.create_dataset("rows", (0, 10), "<f8", chunks=(100, 10), maxshape=(None, 10))
    place.put(path)
    with measured(place, f"{n} datasets:") as meter:
        def attribute(f):
            f["many/d0500" if n > 500 else "many/d0005"].attrs["unit"] = "km"

        def link(f):
            f["another"] = h5py.SoftLink("/many")

        def rename(f):
            for i in range(n):
                f.move(f"many/d{i:04}", f"many/e{i:04}")

        def append():
            for i in range(100):
                with h5py.File(meter.path, "r+") as f:
                    rows = f["rows"]
                    rows.resize(len(rows) + 100, 0)
                    rows[-100:] = i
        meter.change("one attribute", attribute)
        meter.open_and_close("open and close after it")
        meter.change("one link", link)
        meter.show("100 rows are appended, 100 times, with open and close", append)
        meter.change(f"{n} links are renamed", rename)


def many_chunks(place, chunks):
    """Chunks of 4 KiB, of which 1,500 are stored, so the file has all of them."""
    with mkbucket.Maker(place.root) as made:
        mkbucket.ten_million(made, chunks, 1500)
    with measured(place, f"{chunks:,} chunks:", "tenmillion.h5") as meter:
        def element(f):
            f["data"][chunks // 2 * 1024] = -5

        def strided(f):
            for i in range(0, chunks, max(1, chunks // 3162)):
                f["data"][i * 1024:(i + 1) * 1024] = np.arange(1024)

        def append(f):
            f["data"].resize(((chunks + 1000) * 1024,))
            f["data"][chunks * 1024:] = np.ones(1000 * 1024)
        meter.change("one element", element)
        meter.change("3,162 chunks, one in each node of the index", strided)
        meter.change("1,000 chunks are appended", append)


def growing(place, rows, columns):
    """A dataset with two unlimited dimensions and chunks of 4 KiB, none of which is stored."""
    path = os.path.join(place.directory, "x.h5")
    with h5py.File(path, "w") as f:
        f.create_dataset("d", (rows * 32, columns * 32), "<i4", chunks=(32, 32),
                         maxshape=(None, None))
    place.put(path)
    with measured(place, f"a grid of {rows} x {columns} chunks, of which none is stored:") as meter:
        def append(f):
            d = f["d"]
            d.resize(d.shape[0] + 32, 0)
            d[-32:] = np.ones((32, columns * 32))
        meter.change(f"{columns} chunks are appended", append)


def small_writes(place, n=2000):
    """4 bytes in each row of a dataset whose chunks are larger than the cache of the library."""
    rows = n
    path = os.path.join(place.directory, "x.h5")

    def write(path):
        with h5py.File(path, "r+") as f:
            start = time.monotonic()
            f["d"][:, 3] = np.arange(rows)
            return time.monotonic() - start
    with h5py.File(path, "w") as f:
        f["d"] = np.zeros((rows, 1000), "<i4")
    say(f"{n} writes of 4 bytes, while the file is open:")
    say(f"  on the disk: {write(path) * 1000:.0f} ms")
    through = bench.pass_through(place.directory, path)
    if through:
        try:
            say(f"  libfuse's passthrough_ll: "
                f"{write(os.path.join(through.path, 'x.h5')) * 1000:.0f} ms")
        finally:
            through.close()
    place.put(path)
    with place.mount() as m:
        times = sorted(write(m.file(NAME)) for _ in range(3))
        say(f"  mount: {times[1] * 1000:.0f} ms ({times[0] * 1000:.0f} … {times[2] * 1000:.0f})")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1024, help="MiB of the large dataset")
    parser.add_argument("--datasets", type=int, default=1000)
    parser.add_argument("--chunks", type=int, default=10_000_000)
    parser.add_argument("--delays", default="", metavar="MS,…",
                        help="also measure at the gateway, with these delays of each request")
    parser.add_argument("--directory", help="where the buckets are made")
    args = parser.parse_args()
    cases = [(gibibyte, args.size), (thousand, args.datasets), (many_chunks, args.chunks),
             (growing, 1000, 1000), (small_writes,)]

    def measure(chosen, **more):
        for case, *sizes in chosen:
            directory = tempfile.mkdtemp(prefix="change-bench-", dir=args.directory)
            with Place(directory, **more) as place:
                case(place, *sizes)
    say("A bucket in a directory")
    measure(cases)
    for delay in filter(None, args.delays.split(",")):
        with tempfile.TemporaryDirectory(dir=args.directory) as directory, \
                s3_world.Gateway(directory) as gateway, \
                s3_world.Proxy(gateway, directory) as proxy:
            proxy.set(Network(int(delay)))
            say(f"The gateway, {delay} ms")
            measure(cases[:2], proxy=proxy, gateway=gateway)


if __name__ == "__main__":
    main()
