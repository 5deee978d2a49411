#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures a mount of a bucket with network latency; README.md explains how.

    s3.py [--delays 0,20,50] [--runs 3] [floor] [mount] [connect] [peers] [network] [random]
          [memory]    (default: all)

HSMOUNT_BUILD names the build directory. --log shows the requests of each median run.
"""
import argparse
import concurrent.futures
import os
import statistics
import subprocess
import sys
import tempfile
import time

import example
import s3_tasks
import s3_world
from s3_world import Hsmount, Network, PEERS, S3fs
from s3_tasks import TASKS, in_child, wanted

import mkbucket  # found through s3_world
import mounts

FLOOR_CONNECTIONS = 64
PARTS = ("floor", "mount", "connect", "peers", "network", "random", "memory")
NETWORKS = Network(50, 1000), Network(50, 2500)     # of the part network
TLS = Network(50, 0, 2)     # of the part connect: TCP and TLS 1.3 cost a round trip each
QUEUE = Network(0, 1000)     # 64 connections that have data each wait 32 ms for their next turn
HEADERS = "h5dump -H, 1,000 datasets"
TTL = "metadata_ttl=60"
MIB = 1 << 20


def say(line=""):
    print(line, flush=True)


class Figure:
    """One measurement: result and cost of the median run, and the seconds of all runs."""

    def __init__(self, runs):
        runs = sorted(runs, key=lambda r: r[0]["seconds"])
        self.result, self.spent = runs[len(runs) // 2]
        self.seconds = self.result["seconds"]
        self.all = [r[0]["seconds"] for r in runs]

    def __str__(self):
        return f"{self.seconds:.3f} s ({self.all[0]:.3f} … {self.all[-1]:.3f}), {self.spent}"


class Bench:
    """The environment and the measured figures: figures[(reader, measure, network)]."""

    def __init__(self, args, gateway, proxy, memory_directory):
        self.args, self.gateway, self.proxy = args, gateway, proxy
        self.memory_directory = memory_directory
        self.figures, self.checks, self.complaints = {}, {}, []

    # ---- data ----

    def fill(self):
        client = self.gateway.client()
        self.domain = s3_world.Bucket(client, "domain")
        made = example.make_domain(self.domain)
        self.domain.write()
        self.temperature = next(o for o in made.objects if o.id == self.chunked_id(made))
        self.chunk_keys = [k for k in self.domain.sizes if not k.endswith(".json")]
        self.thousand = s3_world.Bucket(client, "thousand")
        mkbucket.thousand(self.thousand)
        self.thousand.write()
        self.local = local = os.path.join(self.memory_directory, "example.h5")
        example.write_file(local)
        client.make_bucket("file")
        with open(local, "rb") as f:
            client.put("file", "example.h5", f.read())
        self.expected = {name: TASKS[name](local, {})["check"] for name in TASKS}
        if "memory" in self.args.parts:
            self.large = s3_world.Bucket(client, "large")
            mkbucket.gibibyte(self.large)
            self.large.write()

    @staticmethod
    def chunked_id(made):
        return made.root.doc["links"]["temperature"]["id"]

    # ---- one measurement ----

    def measure(self, reader, measure, task, again=False):
        """Cold runs of a task. With `again`, the second run in the same mount is measured."""
        runs = []
        for _ in range(self.args.runs):
            with reader.cold() as path:
                if again:
                    in_child(task, path, reader.h5py)
                self.proxy.reset()
                result = in_child(task, path, reader.h5py)
                runs.append((result, self.proxy.spent()))
            want = self.expected.get(measure, result["check"])
            if result["check"] != want:
                self.complaints.append(f"{reader.name}: {measure}: wrong data")
        figure = Figure(runs)
        self.keep(reader.name, measure, figure)
        return figure

    def keep(self, who, measure, figure):
        self.figures[who, measure, self.network_now] = figure
        say(f"{self.network_now!s:>6}  {who:12} {measure:28} {figure}")
        if self.args.log:
            for r in figure.spent.rows:
                say(f"    {r.arrived:9} {r.sent:9} {r.answered:9} {r.done:9} #{r.connection:<4}"
                    f" {r.method} {r.target[:110]} {r.range} {r.status} {r.bytes}")

    def at_each(self, networks):
        for self.network_now in networks:
            self.proxy.set(self.network_now)
            yield

    def at_delays(self):
        return self.at_each(map(Network, self.args.delays))

    def parallel_get(self, bucket, keys, connections=FLOOR_CONNECTIONS):
        """Seconds of parallel GETs alone."""
        targets = [s3_world.s3client.presigned(self.proxy.host, f"/{bucket}/{key}",
                                               *self.gateway.keys) for key in keys]
        done = subprocess.run(
            [os.path.join(s3_world.PROGRAMS, "parallel_get"), str(self.proxy.port),
             str(connections)], input="\n".join(targets) + "\n", text=True,
            stdout=subprocess.PIPE, check=True, timeout=120)
        return float(done.stdout.split()[0])

    def fetch(self, measure, *what):
        """Runs of parallel_get()."""
        runs = []
        for _ in range(self.args.runs):
            self.proxy.reset()
            runs.append(({"seconds": self.parallel_get(*what)}, self.proxy.spent()))
        figure = Figure(runs)
        self.keep("floor", measure, figure)
        return figure

    # ---- parts ----

    def floor(self):
        """The chunk objects by parallel GETs, and the tasks on a file in memory."""
        strided = [self.temperature.chunk_key((i, 0, 0))
                   for i in range(0, example.CHUNKS, s3_tasks.STRIDE)]
        for _ in self.at_delays():
            for measure, task in TASKS.items():
                self.keep("in memory", measure, Figure([
                    (in_child(task, self.local, {}), s3_world.Spent([]))
                    for _ in range(self.args.runs)]))
            for measure, keys in (("one chunk", strided[:1]), ("64 chunks", strided),
                                  ("all", self.chunk_keys)):
                self.fetch(measure, "domain", keys)

    def mount(self):
        for _ in self.at_delays():
            reader = Hsmount(self.proxy, self.gateway, "domain", "example.h5")
            for measure, task in TASKS.items():
                self.measure(reader, measure, task)
            self.measure(reader, "list again", s3_tasks.list_objects, again=True)
            patient = Hsmount(self.proxy, self.gateway, "domain", "example.h5", TTL)
            self.measure(patient, f"list again, {TTL}", s3_tasks.list_objects, again=True)
            thousand = Hsmount(self.proxy, self.gateway, "thousand", "thousand.h5")
            self.measure(thousand, HEADERS, s3_tasks.dump_headers)

    def connect(self):
        """The first chunk of a new mount: at once, when the mount has opened its connections, and
        with the documents in a disk cache. One GET over a new connection is the floor."""
        cache = f"cache_dir={tempfile.mkdtemp(dir=self.memory_directory)}"
        for _ in self.at_each([TLS]):
            self.fetch("one chunk", "domain", [self.temperature.chunk_key((100, 0, 0))])
            self.first_chunk("first chunk, at once", at_once=True)
            self.first_chunk("first chunk")
            with Hsmount(self.proxy, self.gateway, "domain", "example.h5", cache) as path:
                in_child(s3_tasks.list_objects, path, {})
            self.first_chunk("first chunk, cache_dir", cache, f"cache_disk_size={MIB}")
            if S3fs.missing() is None:
                self.measure(S3fs(self.proxy, self.gateway, "file", "example.h5"), "first chunk",
                             s3_tasks.one_chunk)

    def first_chunk(self, measure, *options, at_once=False):
        reader = Hsmount(self.proxy, self.gateway, "domain", "example.h5", *options)
        runs = []
        for _ in range(self.args.runs):
            with reader as path:
                if not at_once:
                    self.proxy.settle()
                self.proxy.reset()
                result = in_child(s3_tasks.one_chunk, path, {})
                runs.append((result, self.proxy.spent()))
        figure = Figure(runs)
        self.keep(reader.name, measure, figure)
        trips = sorted(spent.round_trips(TLS.handshakes) for _, spent in runs)
        self.extra.append(f"{measure}: {trips[len(trips) // 2]} round trips "
                          f"({trips[0]} … {trips[-1]}) at {TLS}")

    def peers(self):
        for peer in PEERS:
            why = peer.missing()
            if why:
                say(f"{peer.name}: left out, {why}")
                continue
            for _ in self.at_delays():
                reader = peer(self.proxy, self.gateway, "file", "example.h5")
                for measure, task in TASKS.items():
                    if measure != "cp" or peer.can_copy:
                        self.measure(reader, measure, task)

    def network(self):
        """Whole files over a link with a limited rate, and checks of that limit."""
        readers = [Hsmount(self.proxy, self.gateway, "domain", "example.h5")]
        why = S3fs.missing()
        if why:
            say(f"{S3fs.name}: left out, {why}")
        else:
            readers.append(S3fs(self.proxy, self.gateway, "file", "example.h5"))
        for _ in self.at_each(NETWORKS):
            self.check_rate(self.fetch("all", "domain", self.chunk_keys))
            self.check_rate(self.fetch("one object, one connection", "file", ["example.h5"], 1))
            for reader in readers:
                for measure in ("all", "cp"):
                    self.measure(reader, measure, TASKS[measure])
        for _ in self.at_each([QUEUE]):
            self.check_heads()

    def check_rate(self, figure):
        """The rate of the bodies from the first byte to the last."""
        rows = figure.spent.rows
        seconds = (max(r.done for r in rows) - min(r.answered for r in rows)) / 1e6
        rate = figure.spent.bytes / seconds / 1e6
        share = rate * 8 / self.network_now.mbit
        connections = len({r.connection for r in rows})
        self.extra.append(f"at {self.network_now}: {figure.spent.bytes / 1e6:.0f} MB over "
                          f"{connections} connections flow at {rate:.1f} MB/s, {share:.3f} of the "
                          "rate")
        say(self.extra[-1])
        if share > 1.03:
            self.complaints.append(f"{self.network_now}: the proxy lets too much through")

    def check_heads(self):
        """The time of a HEAD and of a small GET while other connections transfer bodies."""
        client = s3_world.s3client.Client(self.proxy.endpoint, *self.gateway.keys)
        small = min(self.chunk_keys, key=self.domain.sizes.get)
        times = {"HEAD": [], "GET": []}
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            bodies = pool.submit(self.parallel_get, "domain", self.chunk_keys)
            while not bodies.done():
                for method, seconds in times.items():
                    start = time.monotonic()
                    client.request(method, f"/domain/{small}")
                    seconds.append(time.monotonic() - start)
        head, get = (statistics.median(seconds) for seconds in times.values())
        self.extra.append(f"at {self.network_now}, beside {FLOOR_CONNECTIONS} connections: HEAD "
                          f"{head:.3f} s, GET of {self.domain.sizes[small]:,} bytes {get:.3f} s")
        say(self.extra[-1])
        if head > get / 2:
            self.complaints.append("the proxy lets a request without a body wait for a turn")

    def random(self):
        """4 KiB reads from the cache of the daemon, then from the page cache."""
        self.proxy.set(Network(0))
        reader = Hsmount(self.proxy, self.gateway, "domain", "example.h5", "debug_count")
        with reader as path:
            with open(path, "rb") as f:
                while f.read(MIB):
                    pass
                for name in ("from the daemon", "from the kernel"):
                    if name == "from the daemon":
                        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                    before, pages = reader.mount.counts(), os.fstat(f.fileno()).st_size // 4096
                    rate = self.random_rate(path)
                    spent = mounts.difference(before, reader.mount.counts())
                    line = (f"4 KiB random reads, 4 threads, {name}: {rate:,.0f} a second; "
                            f"{spent['reads']} FUSE reads, {spent['gets']} gets for {pages} pages")
                    say(line)
                    self.extra.append(line)

    def random_rate(self, path):
        done = subprocess.run([os.path.join(s3_world.PROGRAMS, "random_read"), path, "4"],
                              check=True, timeout=120, stdout=subprocess.PIPE, text=True)
        return float(done.stdout)

    def memory(self):
        """The peak memory of a daemon after more than 1 GiB of all kinds of reads."""
        self.proxy.set(Network(self.args.delays[-1]))
        for mib in (256, 64):
            reader = Hsmount(self.proxy, self.gateway, "large", "gibibyte.h5", f"cache_size={mib}M")
            with reader as path:
                self.stroll(path)
                peak = reader.peak()
            example_reader = Hsmount(self.proxy, self.gateway, "domain", "example.h5",
                                     f"cache_size={mib}M")
            with example_reader as path:
                for task in TASKS.values():
                    in_child(task, path, {})
                self.random_rate(path)
                peak = max(peak, example_reader.peak())
            line = (f"peak memory with a cache of {mib} MiB: {peak / MIB:.0f} MiB "
                    f"(goal {mib + 64})")
            say(line)
            self.extra.append(line)

    @staticmethod
    def stroll(path):
        """Reads 1 GiB in order, then parts of it with four concurrent readers."""
        subprocess.run(["cp", path, "/dev/null"], check=True, timeout=300)
        quarters = [subprocess.Popen(["dd", f"if={path}", "of=/dev/null", "bs=1M", "count=64",
                                      f"skip={i * 256}", "status=none"]) for i in range(4)]
        for q in quarters:
            assert q.wait(120) == 0

    # ---- report ----

    extra = ()

    def run(self):
        self.extra = []
        self.fill()
        for part in PARTS:
            if part in self.args.parts:
                getattr(self, part)()
        self.report()
        for complaint in self.complaints:
            say(complaint)
        return 1 if self.complaints else 0

    def seconds(self, who, measure, network):
        figure = self.figures.get((who, measure, network))
        return figure.seconds if figure else None

    def best_peer(self, measure, network):
        times = [(self.seconds(p.name, measure, network), p.name) for p in PEERS
                 if self.seconds(p.name, measure, network)]
        return min(times) if times else None

    def report(self):
        networks = sorted({n for _, _, n in self.figures}, key=lambda n: (n.mbit, n.delay))
        say("\n| measure | reader | " + " | ".join(map(str, networks)) + " |")
        say("|---|---|" + "---|" * len(networks))
        measures = list(dict.fromkeys(m for _, m, _ in self.figures))
        for measure in measures:
            for who in dict.fromkeys(w for w, m, _ in self.figures if m == measure):
                cells = [f"{s:.3f}" if (s := self.seconds(who, measure, n)) is not None else ""
                         for n in networks]
                say(f"| {measure} | {who} | " + " | ".join(cells) + " |")
        say()
        for network in networks:
            for line in self.verdicts(network):
                say(f"at {network}: {line}")
        for line in self.extra:
            say(line)

    def verdicts(self, network):
        """A line for each goal."""
        def get(measure, who="hsmount"):
            return self.figures.get((who, measure, network))

        def peer(measure):
            best = self.best_peer(measure, network)
            return f"; best peer {best[0]:.2f} s, {best[1]}" if best else ""
        if f := get("list"):
            yield (f"open and list: {f.seconds:.2f} s, {f.spent.rounds} rounds, "
                   f"{f.spent.requests} requests (goal 0.35 s, 3 rounds){peer('list')}")
        for name in ("list again", f"list again, {TTL}"):
            if f := get(name):
                yield f"{name}: {f.seconds:.2f} s, {f.spent.requests} requests (goal 0)"
        if f := get("one chunk"):
            yield (f"one chunk: {f.seconds:.2f} s, {f.spent.rounds} rounds, {f.spent.chunks} "
                   f"chunks (goal 0.3 s, 4 rounds, 1 chunk){peer('one chunk')}")
        if f := get("8 chunks"):
            yield (f"8 chunks: {f.seconds:.2f} s, {f.spent.rounds} rounds, {f.spent.chunks} chunks "
                   f"(goal {3 * s3_tasks.EIGHT + 4} chunks){peer('8 chunks')}")
        for name, base in (("64 chunks", "64 chunks"), ("64 chunks, one slab", "64 chunks"),
                           ("all", "all"), ("cp", "all")):
            f, floor = get(name), get(base, "floor")
            if f and floor:
                goal = 3 if "64" in name else 1.3
                rest = f.seconds - f.result["opened"] if "opened" in f.result else f.seconds
                yield (f"{name}: {f.seconds:.2f} s, {f.seconds / floor.seconds:.2f} of the floor "
                       f"{floor.seconds:.3f} s (goal {goal}), without the opening "
                       f"{rest / floor.seconds:.2f}{peer(name)}")
                if "marks" in f.result:
                    rest = f.result["marks"][-1] - f.result["marks"][3]
                    yield (f"  {name} after the fourth: {rest:.2f} s, "
                           f"{rest / floor.seconds:.2f} of the floor (goal 1.5)")
        if f := get(HEADERS):
            json = self.thousand.documents()
            kinds = f.spent.bytes_by_kind
            yield (f"{HEADERS}: {f.seconds:.2f} s (goal 1.2), {f.spent.requests} requests, "
                   f"documents {kinds['document'] / json:.3f} of the JSON, with "
                   f"{kinds['list']:,} bytes of listings {f.spent.bytes / json:.3f} (goal 1.05)")
        yield from self.amplification(get)

    def amplification(self, get):
        taken = asked = 0
        for name in TASKS:
            if f := get(name):
                taken += f.spent.bytes
                asked += wanted(name) + self.domain.documents()
        if asked:
            yield f"read amplification: {taken / asked:.3f} (goal 1.1)"


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--delays", default="0,20,50",
                        type=lambda text: [int(part) for part in text.split(",")])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--log", action="store_true")
    parser.add_argument("parts", nargs="*", metavar="part")
    args = parser.parse_args()
    if set(args.parts) - set(PARTS):
        parser.error(f"a part is one of {' '.join(PARTS)}")
    args.parts = args.parts or list(PARTS)
    return args


def main():
    args = arguments()
    for name in [n for n in os.environ if n.startswith("AWS_")]:
        del os.environ[name]        # settings of the machine for other servers
    with tempfile.TemporaryDirectory(prefix="hsmount-s3-") as work, \
            tempfile.TemporaryDirectory(prefix="hsmount-s3-", dir="/dev/shm") as memory, \
            s3_world.Gateway(os.path.join(work, "rgw")) as gateway, \
            s3_world.Proxy(gateway, work) as proxy:
        sys.exit(Bench(args, gateway, proxy, memory).run())


if __name__ == "__main__":
    main()
