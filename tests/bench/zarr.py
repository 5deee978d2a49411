#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures Zarr stores in a mount; README.md explains how.

    zarr.py [--delay 50] [--runs 3] [--log] [open] [series] [chunks] [list] [decode] [memory]
            [document]    (default: all)

HSMOUNT_BUILD names the build directory. --log shows the requests of each median run.
"""
import sys

# Python would find this file in place of the package of the same name, which is one of the peers.
HERE = sys.path.pop(0)
try:
    import zarr as zarr_python
except ImportError:
    zarr_python = None
sys.path.insert(0, HERE)

import argparse  # noqa: E402
import collections  # noqa: E402
import contextlib  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import re  # noqa: E402
import shutil  # noqa: E402
import statistics  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402

import h5py  # noqa: E402
import numpy as np  # noqa: E402

import bench  # noqa: E402
import s3_tasks  # noqa: E402
import scale  # noqa: E402
from s3_world import PROGRAMS, Hsmount, Network, Proxy, mkbucket, mounts  # noqa: E402

import zarr_write  # noqa: E402

MIB = 1 << 20
GROUPS, ARRAYS = 10, 10         # arrays in each group
STORE = "x.zarr"
STALE_S = 1.2                   # metadata are not valid any more


def say(line=""):
    print(line, flush=True)


# ---- stores ----

class Packed(zarr_write.Store):
    """A store in the file that memory_store reads."""

    def __init__(self, pack, path, version, consolidated=True, **more):
        self.pack = pack
        super().__init__(path, version, consolidated, **more)

    def put(self, key, data):
        self.pack.put(f"{self.root}/{key}",
                      data if isinstance(data, bytes) else json.dumps(data).encode())


def hundred(pack, version, consolidated, elements=10):
    with Packed(pack, STORE, version, consolidated, attributes={"title": "hundred"}) as store:
        for i in range(GROUPS * ARRAYS):
            store.array(f"g{i // ARRAYS}/a{i % ARRAYS}", np.arange(elements, dtype="<f4"),
                        names=["x"], codecs=["zlib"],
                        attributes={"units": "m", "long_name": f"array {i}"})


def series(pack, version, length, side):
    """A variable of `length` times, with a chunk for each."""
    with Packed(pack, STORE, version) as store:
        data = np.zeros((length, side, side), "<f4")
        data += np.random.default_rng(1).random((side, side), "<f4")
        store.array("data", data, chunks=(1, side, side), codecs=["zstd"],
                    names=["time", "y", "x"])
        store.array("time", np.arange(float(length)), names=["time"])


def large_grid(pack, version, chunks, stored):
    """An array of `chunks` chunks of 1,024 elements, of which some are stored."""
    with Packed(pack, STORE, version) as store:
        a = store.array("data", np.zeros(1024, "<i4"), fill=-1, absent=[(0,)])
        key = "data/zarr.json" if version == 3 else "data/.zarray"
        store.documents[key]["shape"] = [1024 * chunks]
        body = np.arange(1024, dtype="<i4").tobytes()
        for i in range(stored):
            store.put(f"data/{a.key((chunks // stored * i,))}", body)


def small_stores(pack, version, n):
    for i in range(n):
        # The mount looks for stores in its root. The others are in a folder.
        with Packed(pack, f"{'folder/' if i else ''}s{i:06}.zarr", version) as store:
            store.array("a", np.arange(10, dtype="<i4"), names=["x"])
    if version == 3:
        pack.put("s999999.zarr/zarr.json", b'{"zarr_format": 3, "node_type": "group"}')


def small_domains(pack, n):
    for i in range(n):
        d = pack.domain(f"folder/s{i:06}.h5")
        d.dataset(d.root, "a", mkbucket.INT32, [10], [10]).chunk((0,), bytes(40))


# ---- what is measured ----

class Counts:
    """What a task costs: requests by kind, rounds, bytes, processor seconds of the mount."""

    def __init__(self, spent, cpu=0.0):
        kinds = collections.Counter(map(self.kind, spent.rows))
        self.documents, self.chunks, self.lists = (
            kinds[k] for k in ("document", "chunk", "list"))
        self.heads = sum(r.method == "HEAD" for r in spent.rows)
        self.unchanged = sum(r.status == 304 for r in spent.rows)
        self.rounds, self.bytes, self.cpu = spent.rounds, spent.bytes, cpu
        self.gets, self.spent = len(spent.rows) - self.lists - self.heads, spent

    @staticmethod
    def kind(row):
        if re.search(r"[?&](list-type|prefix|delimiter)=", row.target):
            return "list"
        name = row.target.split("?")[0].rpartition("/")[2]
        return "document" if name.endswith(".json") or name.startswith(".z") else \
            "chunk" if ".zarr/" in row.target else "other"

    def __str__(self):
        return (f"{self.gets} GETs ({self.chunks} of chunks, {self.unchanged} unchanged), "
                f"{self.heads} HEADs, {self.lists} lists, {self.rounds} rounds, "
                f"{self.bytes:,} bytes, {self.cpu:.2f} CPU s")


class Decoded:
    """Least times of runs."""

    def __init__(self, runs):
        self.seconds, self.daemon, self.reader = map(min, zip(*runs))
        self.cpu = self.daemon + self.reader

    def __str__(self):
        return f"{self.seconds:.2f} s, {self.daemon:.2f} + {self.reader:.2f} CPU s"


class Bench:
    def __init__(self, args, directory):
        self.args, self.directory, self.rows = args, directory, []

    # ---- results ----

    def goal(self, what, text, met):
        """A line of the table at the end. met: None, or whether the goal is reached."""
        self.rows.append((what, text, {True: "yes", False: "NO", None: ""}[met]))

    def print_goals(self):
        say("\n| goal | measured | met |\n|---|---|---|")
        for row in self.rows:
            say("| {} | {} | {} |".format(*row))

    # ---- a mount of a bucket in memory_store, behind the proxy ----

    @contextlib.contextmanager
    def server(self, fill):
        with tempfile.TemporaryDirectory(dir=self.directory) as directory, \
                scale.Store(fill, directory) as store, Proxy(store, directory) as proxy:
            proxy.set(Network(self.args.delay, 0))
            yield store, proxy

    def use(self, proxy, pid, task):
        """Runs a task when the mount is idle. Returns its seconds and costs."""
        proxy.settle()
        proxy.reset()
        cpu = scale.processor_s(pid) if pid else 0
        began = time.monotonic()
        task()
        seconds = time.monotonic() - began
        return seconds, Counts(proxy.spent(), scale.processor_s(pid) - cpu if pid else 0)

    def measure(self, label, servers, *tasks, options=()):
        """Runs tasks one after the other in a new mount, several times. Returns for each its
        times in order, and the counts of the median run."""
        store, proxy = servers
        runs = [[] for _ in tasks]
        for _ in range(self.args.runs):
            reader = Hsmount(proxy, store, "bucket", "", *options)
            with reader:
                pid = reader.mount.process.pid
                for results, task in zip(runs, tasks):
                    results.append(self.use(proxy, pid, lambda task=task: task(reader.path)))
        return [self.report(f"{label}: {getattr(task, 'label', task.__name__)}", results)
                for task, results in zip(tasks, runs)]

    def report(self, label, results):
        results = sorted(results, key=lambda r: r[0])
        times, counts = [r[0] for r in results], results[len(results) // 2][1]
        say(f"{label}: {statistics.median(times):.3f} s (least {times[0]:.3f}), {counts}")
        if self.args.log:
            for r in counts.spent.rows:
                say(f"    {r.arrived:9} {r.done:9} #{r.connection:<4} {r.method} "
                    f"{r.target[:110]} {r.status} {r.bytes}")
        return times, counts

    # ---- parts ----

    def open(self):
        for version in 2, 3:
            for consolidated in True, False:
                self.open_one(version, consolidated)
        self.open_directory()

    def open_one(self, version, consolidated):
        def open_it(root):
            os.close(os.open(os.path.join(root, f"{STORE}.nc"), os.O_RDONLY))

        def open_again(root):
            open_it(root)

        def open_stale(root):
            time.sleep(STALE_S)
            open_it(root)

        def headers(root):
            mounts.run("ncdump", "-h", os.path.join(root, f"{STORE}.nc"), check=True)
        documents = GROUPS + GROUPS * ARRAYS + 1 if version == 3 else \
            GROUPS + 2 * GROUPS * ARRAYS + 2
        limit = 12 + (0 if consolidated else documents)
        how = f"v{version}, {'consolidated' if consolidated else 'documents'}"
        with self.server(lambda pack: hundred(pack, version, consolidated)) as servers:
            (_, first), (_, again), (_, stale) = self.measure(
                f"100 arrays, {how}", servers, open_it, open_again, open_stale)
            (times, listed), = self.measure(f"100 arrays, {how}", servers, headers)
            self.goal(f"open 100 arrays, {how}: ≤ {limit} GETs and HEADs, ≤ 8 lists, ≤ "
                      f"{3 if consolidated else 4} rounds with the look-up",
                      str(first), first.gets + first.heads <= limit and first.lists <= 8
                      and first.rounds <= (3 if consolidated else 4))
            self.goal(f"`ncdump -h`, {how}: ≤ {limit} GETs and HEADs, ≤ 8 lists"
                      + (", ≤ 0.35 s" if consolidated else ""),
                      f"{statistics.median(times):.2f} s (least {times[0]:.2f}), {listed}",
                      listed.gets + listed.heads <= limit and listed.lists <= 8
                      and (statistics.median(times) <= 0.35 or not consolidated))
            self.goal(f"second open, {how}: 1 round, no document", str(again),
                      again.rounds <= 1 and again.gets == again.unchanged)
            self.goal(f"the same with a look-up, {how}", str(stale), None)
            if version == 2 and consolidated:
                self.open_peers(servers)

    def open_peers(self, servers):
        """zarr-python over HTTP; a new process each, whose imports are not counted."""
        if not zarr_python:
            return
        url = f"{servers[1].endpoint}/bucket/{STORE}"

        def zarr_lists(path, _):
            began = time.monotonic()
            root = zarr_python.open_consolidated(path)
            found = [(a.shape, dict(a.attrs)) for _, g in root.groups() for _, a in g.arrays()]
            assert len(found) == GROUPS * ARRAYS
            return time.monotonic() - began

        def xarray_opens(path, _):
            import xarray
            began = time.monotonic()
            for g in range(GROUPS):
                xarray.open_zarr(path, group=f"g{g}", consolidated=True, chunks=None)
            return time.monotonic() - began
        for task in zarr_lists, xarray_opens:
            self.peer(task, servers[1], url)

    def peer(self, task, proxy, url):
        results = []
        for _ in range(self.args.runs):
            try:
                proxy.reset()
                seconds = s3_tasks.in_child(task, url, {})
                results.append((seconds, Counts(proxy.spent())))
            except Exception as e:      # an old version, or an optional package that is missing
                say(f"{task.__name__}: failed: {e}")
                return
        self.report(task.__name__, results)

    def open_directory(self):
        """Calls that other readers make for a store in a directory without consolidated
        metadata."""
        path = os.path.join(self.directory, STORE)
        with DirectoryPack(self.directory) as pack:
            hundred(pack, 2, False)
        if zarr_python:
            store = counting_store(path)
            root = zarr_python.open_group(store, "r")
            found = [(a.shape, dict(a.attrs)) for _, g in root.groups() for _, a in g.arrays()]
            assert len(found) == GROUPS * ARRAYS
            say(f"zarr-python, directory, documents: {dict(store.calls)}")
        if shutil.which("strace"):
            done = mounts.run("strace", "-f", "-c", "ncdump", "-h",
                              f"file://{path}#mode=nczarr,file")
            calls = re.findall(r"\s(\d+)\s+(?:\d+\s+)?(open\w*|\w*stat\w*)$", done.stderr, re.M)
            say(f"netCDF-C, directory, exit code {done.returncode}: " +
                ", ".join(f"{n} {name}" for n, name in calls))
        shutil.rmtree(path)

    def series(self):
        for side, length in ((256, 1000), (256, 20), (64, 1000)):
            with self.server(lambda pack, n=length, s=side: series(pack, 2, n, s)) as servers:
                results = self.measure(
                    f"20 chunks of {length} of {side * side * 4 >> 10} KiB", servers,
                    first_twenty, another_twenty)
                what = f"20 of {length} chunks of {side * side * 4 >> 10} KiB"
                for (times, counts), where, rounds in zip(
                        results, ("in a new mount: ≤ 32 GETs, ≤ 3 rounds with the open",
                                  "others later: ≤ 32 GETs"), (3, 99)):
                    self.goal(f"{what}, {where}", f"{statistics.median(times):.2f} s, {counts}",
                              counts.gets + counts.heads <= 32 and counts.rounds <= rounds)
                if zarr_python and side == 256 and length == 1000:
                    self.peer(zarr_reads_series, servers[1],
                              f"{servers[1].endpoint}/bucket/{STORE}")

    def chunks(self):
        """The figures of the open, by the number of chunks of the array."""
        opened = {}
        for chunks, stored in ((1000, 8), (10_000_000, 8), (10_000, 1500), (10_000_000, 1500),
                               (10_000_000, 300_000)):
            opened[chunks, stored] = self.open_grid(chunks, stored)
        for few, many in (((1000, 8), (10_000_000, 8)), ((10_000, 1500), (10_000_000, 1500)),
                          ((10_000, 1500), (10_000_000, 300_000))):
            a, b = opened[few], opened[many]
            self.goal("open of {:,} chunks, {:,} stored, as of {:,}, {:,} stored"
                      .format(*many, *few), f"{b[1]}, {b[0]:.3f} s, {b[2] / MIB:.1f} MiB; "
                      f"{a[1]}, {a[0]:.3f} s, {a[2] / MIB:.1f} MiB",
                      (a[1].gets, a[1].lists, a[1].heads) == (b[1].gets, b[1].lists, b[1].heads)
                      and b[2] < a[2] + MIB)

    def open_grid(self, chunks, stored):
        with self.server(lambda pack: large_grid(pack, 3, chunks, stored)) as servers:
            runs = []
            for _ in range(self.args.runs):
                reader = Hsmount(servers[1], servers[0], "bucket", "")
                with reader:
                    idle = reader.mount.memory()
                    path = os.path.join(reader.path, f"{STORE}.nc")

                    def open_file(path=path):
                        with h5py.File(path, "r") as f:
                            assert f["data"].shape == (1024 * chunks,)
                    seconds, counts = self.use(servers[1], reader.mount.process.pid, open_file)
                    memory = reader.mount.memory() - idle
                    with h5py.File(path, "r") as f:
                        _, element = self.use(
                            servers[1], reader.mount.process.pid,
                            lambda f=f: f["data"][(chunks // stored) * (stored - 1) * 1024 + 5])
                runs.append((seconds, counts, memory, element))
            runs.sort(key=lambda r: r[0])
            seconds, counts, memory, element = runs[len(runs) // 2]
            say(f"open of {chunks:,} chunks, {stored:,} stored: {seconds:.3f} s (least "
                f"{runs[0][0]:.3f}), {counts}, {memory / MIB:.1f} MiB; one element: {element}")
            return seconds, counts, memory

    def list(self, n=1000):
        kinds = (("domains", lambda pack: small_domains(pack, n)),
                 ("stores, v2", lambda pack: small_stores(pack, 2, n + 1)),
                 ("stores, v3", lambda pack: small_stores(pack, 3, n + 1)))

        def list_long(root):
            out = mounts.run("ls", "-lR", os.path.join(root, "folder"), check=True).stdout
            assert len(re.findall(r"\.(?:nc|h5)$", out, re.M)) == n

        def list_again(root):
            time.sleep(STALE_S)
            list_long(root)

        def sizes_are_exact(root):
            for name in sorted(os.listdir(os.path.join(root, "folder")))[::n // 10]:
                path = os.path.join(root, "folder", name)
                before = os.stat(path).st_size
                with open(path, "rb") as f:
                    assert os.fstat(f.fileno()).st_size == before, path
        for label, fill in kinds:
            with self.server(fill) as servers:
                (times, counts), _, _ = self.measure(
                    f"`ls -lR` of {n:,} {label}", servers, list_long, list_again, sizes_are_exact)
                self.goal(f"`ls -lR` of {n:,} {label}: ≤ 1.3 s",
                          f"{statistics.median(times):.2f} s (least {times[0]:.2f}), {counts}",
                          times[0] <= 1.3)

    def decode(self, mebibytes=1024, chunk=4 * MIB):
        """Reads all chunks of an array through a mount of a directory, decodes the same files by
        chunk_decoder, and reads the same file from floor.c, which has it in memory."""
        for codec in "zstd", "blosc-lz4-1", "blosc-zstd-1":
            bucket = os.path.join(self.directory, codec)
            local = os.path.join(bucket, "local")
            files, stored = climate(os.path.join(bucket, "stores", STORE), codec, mebibytes, chunk)
            alone, through, memory = [], [], []
            for _ in range(self.args.runs):
                alone.append(self.decoder(codec, files, chunk))
                with mounts.Mount(os.path.join(bucket, "stores"), self.directory) as m:
                    path = m.file(f"{STORE}.nc")
                    through.append(self.read_all(path, m.process.pid, chunk))
                    if not os.path.exists(local):
                        shutil.copyfile(path, local)
                with contextlib.closing(bench.floor(bucket, local)) as floor:
                    memory.append(self.read_all(os.path.join(floor.path, "data.h5"),
                                                floor.process.pid, chunk))
            self.decoded(f"{mebibytes} MiB of {codec}, {stored / MIB:.0f} MiB stored",
                         *(Decoded(runs) for runs in (alone, through, memory)))
            if zarr_python:
                self.zarr_python_decodes(os.path.join(bucket, "stores", STORE), codec)
            shutil.rmtree(bucket)

    def decoder(self, codec, files, chunk):
        """Seconds and processor seconds of the decoder alone; there is no reader."""
        done = subprocess.run(
            [os.path.join(PROGRAMS, "chunk_decoder"), codec.partition("-")[0], "2", str(chunk)],
            input="\n".join(files) + "\n", stdout=subprocess.PIPE, check=True, text=True,
            timeout=600)
        seconds, cpu, _ = map(float, done.stdout.split())
        return seconds, cpu, 0

    def read_all(self, path, pid, chunk):
        """Seconds, processor seconds of the daemon and of the reader."""
        before = scale.processor_s(pid)
        own, seconds = s3_tasks.in_child(read_in_order, path, {"size": chunk})
        return seconds, scale.processor_s(pid) - before, own

    def decoded(self, what, alone, through, memory):
        """No mount is faster than a decoder that has to share the processors with a FUSE program
        that answers from memory, and with its reader."""
        say(f"{what}: alone with 2 threads {alone}; mount {through}; floor {memory}")
        ratio = alone.seconds / through.seconds
        self.goal(f"decode {what}: ≥ 0.8 of the decoder alone",
                  f"{ratio:.2f} by the least times, {alone.cpu / through.cpu:.2f} by CPU seconds; "
                  f"the limit by CPU seconds is {alone.cpu / (alone.cpu + memory.cpu):.2f}",
                  ratio >= 0.8)

    def zarr_python_decodes(self, path, codec):
        def decode(path, _):
            began = time.monotonic()
            data = zarr_python.open_group(path, "r")["data"]
            for i in range(data.shape[0] // data.chunks[0]):
                data[i * data.chunks[0]:(i + 1) * data.chunks[0]]
            return time.monotonic() - began
        say(f"zarr-python, {codec}: "
            f"{min(s3_tasks.in_child(decode, path, {}) for _ in range(self.args.runs)):.2f} s")

    def memory(self):
        """The peak of the daemon while it decodes a single chunk."""
        for codecs in ([], ["zstd"], ["zlib"], ["blosc-zstd-1"], ["blosc-lz4-2"], ["lz4"], ["bz2"],
                       ["shuffle", "zlib"], ["zstd", "crc32c"], ["shuffle", "zstd", "crc32c"]):
            for version, order in ((2, "C"), (2, "F"), (3, [1, 0])):
                if codecs in ([], ["zstd"], ["shuffle", "zlib"]) or order == "C":
                    self.chunk_memory(codecs, version, order)

    def chunk_memory(self, codecs, version, order, side=4096):
        bucket = os.path.join(self.directory, "memory")
        data = np.random.default_rng(1).integers(0, 1 << 20, (side, side), "<i4")
        with zarr_write.Store(os.path.join(bucket, STORE), version, True) as store:
            a = store.array("data", data, chunks=(side, side), codecs=codecs, order=order)
            stored = len(a.encoded((0, 0)))
        with mounts.Mount(bucket, self.directory) as m:
            path = m.file(f"{STORE}.nc")
            os.close(os.open(path, os.O_RDONLY))
            before = m.memory()
            with h5py.File(path, "r") as f:
                assert f["data"][side - 1, 0] == data[side - 1, 0]
            grown = m.memory_peak() - before
        shutil.rmtree(bucket)
        label = f"v{version} {'+'.join(codecs) or 'no codec'}" + ("" if order == "C" else ", F")
        limit = stored + 2 * data.nbytes
        say(f"a chunk of {label}: {stored / MIB:.0f} MiB stored, {data.nbytes / MIB:.0f} decoded, "
            f"{grown / MIB:.1f} MiB at most")
        self.goal(f"memory of a chunk in flight, {label}: ≤ {limit / MIB:.0f} MiB",
                  f"{grown / MIB:.1f} MiB", grown <= limit + MIB)

    def document(self, mebibytes=50):
        for version in 2, 3:
            bucket = os.path.join(self.directory, "document")
            arrays, size = wide(os.path.join(bucket, STORE), version, mebibytes * MIB)
            with mounts.Mount(bucket, self.directory, "cache_size=4G") as m:
                before, pid, began = m.memory(), m.process.pid, time.monotonic()
                cpu = scale.processor_s(pid)
                fd = os.open(m.file(f"{STORE}.nc"), os.O_RDONLY)
                seconds, cpu = time.monotonic() - began, scale.processor_s(pid) - cpu
                peak = m.memory_peak() - before
                time.sleep(scale.IDLE_S)
                idle = m.memory() - before
                os.close(fd)
            shutil.rmtree(bucket)
            say(f"v{version}, consolidated, {size / MIB:.0f} MiB, {arrays:,} arrays: {seconds:.2f}"
                f" s, {cpu:.2f} CPU s, {peak / MIB:.0f} MiB at most, {idle / MIB:.0f} afterwards")
            self.goal(f"v{version}, a consolidated document of {size / MIB:.0f} MiB: ≤ 12 × its "
                      f"size, ≤ 1 KiB for each of {arrays:,} arrays",
                      f"{peak / size:.1f} ×, {idle / arrays:,.0f} B",
                      peak <= 12 * size and idle <= 1024 * arrays)


class DirectoryPack:
    """A bucket in a directory, for the functions above that fill one."""

    def __init__(self, directory):
        self.directory = directory

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def put(self, key, body):
        path = os.path.join(self.directory, key)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(body)


def counting_store(path):
    """zarr-python's store of a directory, which counts its calls."""
    class Counting(zarr_python.DirectoryStore):
        calls = collections.Counter()

        def __getitem__(self, key):
            self.calls["get"] += 1
            return super().__getitem__(key)

        def __contains__(self, key):
            self.calls["contains"] += 1
            return super().__contains__(key)

        def listdir(self, path=None):
            self.calls["list"] += 1
            return super().listdir(path)
    return Counting(path)


def read_series(root, first):
    """In a process that has already loaded h5py."""
    def task(path, _):
        with h5py.File(path, "r") as f:
            return f["data"][first:first + 20, 5, 7].shape
    assert s3_tasks.in_child(task, os.path.join(root, f"{STORE}.nc"), {}) == (20,)


def first_twenty(root):
    read_series(root, 0)


def another_twenty(root):
    """Some chunks may be there already, because they were prefetched."""
    with h5py.File(os.path.join(root, f"{STORE}.nc"), "r") as f:
        n = f["data"].shape[0]
    read_series(root, n // 2 if n > 20 else 0)


def zarr_reads_series(path, _):
    began = time.monotonic()
    assert zarr_python.open_consolidated(path)["data"][100:120, 5, 7].shape == (20,)
    return time.monotonic() - began


def climate(path, codec, mebibytes, chunk):
    """An array of float32 that is smooth and has some noise, as measurements have. Returns the
    paths of its chunks, and their bytes."""
    n = chunk // 4
    files, stored = [], 0
    with zarr_write.Store(path, 2, True) as store:
        a = store.array("data", np.zeros(n, "<f4"), codecs=[codec], absent=[(0,)])
        count = (mebibytes << 20) // chunk
        store.documents["data/.zarray"]["shape"] = [n * count]
        rng = np.random.default_rng(1)
        smooth = 280 + 20 * np.sin(np.linspace(0, 30, n))
        different = [zarr_write.encode(
            [codec], np.round(smooth + rng.normal(0, 0.5, n), 2).astype("<f4").tobytes(), 4)
            for _ in range(16)]
        for i in range(count):
            body = different[i % len(different)]
            store.put(f"data/{a.key((i,))}", body)
            files.append(os.path.join(path, "data", a.key((i,))))
            stored += len(body)
    return files, stored


def read_in_order(path, how):
    """Returns the processor seconds of this process, and seconds."""
    buffer = np.empty(how["size"] // 4, "<f4")
    used, start = time.process_time(), time.monotonic()
    with h5py.File(path, "r") as f:
        data = f["data"]
        for at in range(0, data.shape[0], buffer.size):
            data.read_direct(buffer, np.s_[at:at + buffer.size])
    return time.process_time() - used, time.monotonic() - start


def wide(path, version, size):
    """Arrays with attributes, whose consolidated document has about `size` bytes. There are no
    other documents. Returns the number of arrays, and the size of the document."""
    with zarr_write.Store(path, version, True) as store:
        a = store.array("first", np.zeros(10, "<f4"), absent=[(0,)], names=["x"], codecs=["zstd"])
        text = {"units": "m s-1", "long_name": "wind speed at ten metres", "valid_range": [0, 99],
                "comment": "no chunk of this array is stored. " * 8}
        if version == 3:
            one = {"zarr.json": {**a.document(), "attributes": text}}
        else:
            one = {".zarray": a.document(), ".zattrs": {**text, "_ARRAY_DIMENSIONS": ["x"]}}
        arrays = size // (len(json.dumps(one)) + 20)
        for g in range(100):
            store.group(f"g{g:02}")
        for i in range(arrays):
            for name, document in one.items():
                store.documents[f"g{i % 100:02}/a{i:06}/{name}"] = document
        store.write_documents = lambda: None
    zarr_write.Store.write_documents(store, True)
    for i in range(1001):       # more keys than a page has, so only the document counts
        store.put(f"first/unused/{i}", b"")
    name = "zarr.json" if version == 3 else ".zmetadata"
    return arrays, os.path.getsize(os.path.join(path, name))


PARTS = ("open", "series", "chunks", "list", "decode", "memory", "document")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--delay", type=float, default=50, help="of each request, in ms")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--log", action="store_true")
    parser.add_argument("parts", nargs="*", metavar="PART", choices=[[], *PARTS])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="zarr-") as directory:
        bench = Bench(args, directory)
        for part in args.parts or PARTS:
            getattr(bench, part)()
        bench.print_goals()


if __name__ == "__main__":
    main()
