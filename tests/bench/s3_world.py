# SPDX-License-Identifier: Apache-2.0
"""The environment of s3.py: a gateway with the data, the proxy that adds latency, the mounts."""
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SUPPORT = os.path.join(TREE, "tests", "support")
sys.path.insert(0, SUPPORT)

import mkbucket  # noqa: E402
import mounts  # noqa: E402
import s3client  # noqa: E402

os.environ.pop("AWS_CA_BUNDLE", None)     # the servers speak plain HTTP, and rclone refuses it
PROGRAMS = os.path.join(mounts.BUILD, "tests", "bench")


class Gateway:
    """Ceph's gateway of tests/support/rgw: `with Gateway(directory) as g: g.endpoint`."""

    def __init__(self, directory):
        self.directory, self.script = directory, os.path.join(SUPPORT, "rgw")

    def __enter__(self):
        try:
            started = subprocess.run([self.script, self.directory, "start"], check=True,
                                     timeout=120, stdout=subprocess.PIPE, text=True)
        except BaseException:
            self.__exit__()
            raise
        facts = dict(line.split("=", 1) for line in started.stdout.splitlines())
        self.endpoint = facts["endpoint"]
        self.keys = facts["access_key"], facts["secret_key"]
        return self

    def __exit__(self, *_):
        subprocess.run([self.script, self.directory, "stop"], check=False, timeout=60)

    def client(self):
        return s3client.Client(self.endpoint, *self.keys)


class Bucket(mkbucket.Maker):
    """A bucket of the gateway that mkbucket fills; `sizes` maps each key to its size in bytes."""

    def __init__(self, client, name):
        self.client, self.name, self.domains, self.sizes = client, name, [], {}
        client.make_bucket(name)

    def put(self, key, body):
        self.client.put(self.name, key, body)
        self.sizes[key] = len(body)

    def documents(self):
        """The size of all JSON documents in bytes."""
        return sum(n for key, n in self.sizes.items() if key.endswith(".json"))


Row = collections.namedtuple("Row", "arrived sent answered done connection method target range "
                                    "status bytes")
CHUNK_KEY = re.compile(r"/d/[^?]*/[0-9]+(_[0-9]+)*(\?|$)")


class Spent:
    """Figures of a measurement from the log of the proxy: requests and bytes, by kind of object;
    `rounds`, the length of the longest chain of requests in which each began after the previous one
    had ended; the largest number of concurrent requests; the number of connections that were
    opened."""

    def __init__(self, rows, opened=0):
        self.rows, self.opened = rows, opened
        self.requests, self.bytes = len(rows), sum(r.bytes for r in rows)
        self.by_kind = collections.Counter(self.kind(r) for r in rows)
        self.bytes_by_kind = collections.Counter()
        for r in rows:
            self.bytes_by_kind[self.kind(r)] += r.bytes
        self.chunks = len({r.target for r in rows if self.kind(r) == "chunk"})
        self.rounds, end = 0, -1
        for r in sorted(rows, key=lambda r: r.done):
            if r.arrived >= end:
                self.rounds, end = self.rounds + 1, r.done
        self.in_flight = 0
        under_way, events = 0, sorted([(r.arrived, 1) for r in rows] + [(r.done, -1) for r in rows])
        for _, step in events:
            under_way += step
            self.in_flight = max(self.in_flight, under_way)

    def round_trips(self, handshakes):
        """The length of the longest such chain, if the first request over a new connection counts
        for the handshakes, too. The proxy numbers connections in the order of their opening."""
        seen, opened, longest = set(), {r.connection for r in self.rows}, []
        opened = set(sorted(opened)[len(opened) - self.opened:])
        for r in sorted(self.rows, key=lambda r: r.arrived):
            cost = 1 + handshakes * (r.connection in opened - seen)
            seen.add(r.connection)
            before = max((n for done, n in longest if done <= r.arrived), default=0)
            longest.append((r.done, before + cost))
        return max((n for _, n in longest), default=0)

    @staticmethod
    def kind(row):
        if "list-type=2" in row.target:
            return "list"
        if row.target.split("?")[0].endswith(".json"):
            return "document"
        return "chunk" if CHUNK_KEY.search(row.target) else "other"

    def __str__(self):
        kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(self.by_kind.items()))
        return (f"{self.requests} requests ({kinds}), {self.rounds} rounds, at most "
                f"{self.in_flight} at once, {self.opened} connections opened, {self.bytes:,} bytes")


class Network(collections.namedtuple("Network", "delay mbit handshakes", defaults=(0, 0))):
    """The network between readers and gateway: milliseconds of delay for each request, the rate of
    all bodies together in 10^6 bits a second (0: no limit), and the delays that a new connection
    costs (2 with TLS 1.3)."""

    def __str__(self):
        return (f"{self.delay} ms" + (f", {self.mbit / 1000:g} Gbit/s" if self.mbit else "") +
                (f", {self.handshakes} handshakes" if self.handshakes else ""))


class Proxy:
    """latency_proxy in front of a gateway."""

    def __init__(self, gateway, directory):
        self.log_path = os.path.join(directory, "requests")
        self.process = subprocess.Popen(
            [os.path.join(PROGRAMS, "latency_proxy"), gateway.endpoint.rsplit(":", 1)[1],
             self.log_path], stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().split("=")[1])
        self.host = f"127.0.0.1:{self.port}"
        self.endpoint = f"http://{self.host}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(10)
        self.process.stdout.close()

    def ask(self, what):
        with urllib.request.urlopen(f"{self.endpoint}/.proxy/{what}", timeout=10) as answer:
            return json.load(answer)

    def set(self, network):
        self.ask(f"delay?ms={network.delay}")
        self.ask(f"connect?ms={network.delay * network.handshakes}")
        self.ask(f"rate?mbit={network.mbit}")

    def reset(self):
        self.ask("reset")

    def spent(self):
        """All traffic since reset(), including prefetches that are still running."""
        mounts.wait_for(lambda: self.ask("stats")["active"] == 0)
        opened = self.ask("stats")["connections"]
        with open(self.log_path, encoding="ascii", errors="backslashreplace") as f:
            fields = [line.rstrip("\n").split("\t") for line in f]
        return Spent([Row(*map(int, f[:5]), *f[5:8], int(f[8]), int(f[9])) for f in fields],
                     opened)

    def settle(self):
        """Waits until no request was active for a third of a second."""
        end = time.monotonic()
        while time.monotonic() < end + 0.33:
            time.sleep(0.02)
            if self.ask("stats")["active"]:
                end = time.monotonic()


# ---- readers: cold() starts one with empty caches and returns a path for h5py.File ----

class Reader:
    """`with reader.cold() as path`. `h5py` holds the further arguments of h5py.File."""
    name, h5py = None, {}

    def __init__(self, proxy, gateway, bucket, file):
        self.proxy, self.gateway, self.bucket, self.file = proxy, gateway, bucket, file
        self.directory = tempfile.mkdtemp(prefix="reader-", dir=os.path.dirname(proxy.log_path))
        self.path = os.path.join(self.directory, "mnt")

    def cold(self):
        return self

    def __exit__(self, *_):
        pass


class Ros3(Reader):
    """The S3 driver of libhdf5 (ROS3)."""
    name, can_copy = "ROS3", False

    @classmethod
    def missing(cls):
        import h5py
        return None if h5py.h5.get_config().ros3 else "h5py has no ROS3"

    def __enter__(self):
        key, secret = self.gateway.keys
        self.h5py = {"driver": "ros3", "aws_region": b"us-east-1", "secret_id": key.encode(),
                     "secret_key": secret.encode()}
        return f"{self.proxy.endpoint}/{self.bucket}/{self.file}"


class Foreign(Reader):
    """Another program that mounts the bucket with the HDF5 file."""
    can_copy, program = True, None

    @classmethod
    def missing(cls):
        return None if shutil.which(cls.program) else f"{cls.program} is not installed"

    def __enter__(self):
        os.makedirs(self.path, exist_ok=True)
        command, env = self.command()
        with open(os.path.join(self.directory, "log"), "ab") as log:
            self.process = subprocess.Popen(command, env={**os.environ, **env}, stdout=log,
                                            stderr=log, stdin=subprocess.DEVNULL)
        if not mounts.wait_for(lambda: mounts.is_mounted(self.path)
                               or self.process.poll() is not None) or self.process.poll():
            self.__exit__()
            raise RuntimeError(f"{command} did not mount")
        return os.path.join(self.path, self.file)

    def __exit__(self, *_):
        mounts.unmount(self.path)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)


class S3fs(Foreign):
    """With more concurrent requests than its defaults (20 and 5)."""
    name = program = "s3fs"

    def command(self):
        password = os.path.join(self.directory, "password")
        with open(os.open(password, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
            f.write(":".join(self.gateway.keys))
        return ["s3fs", self.bucket, self.path, "-f", "-o",
                f"url={self.proxy.endpoint},use_path_request_style,passwd_file={password},ro,"
                "parallel_count=32,multireq_max=64,no_check_certificate"], {}


class Rclone(Foreign):
    """Without modification times in the metadata of objects, which cost a request for each file."""
    program, mode = "rclone", None

    def command(self):
        key, secret = self.gateway.keys
        cache = os.path.join(self.directory, "cache")
        shutil.rmtree(cache, ignore_errors=True)
        env = {"RCLONE_CONFIG": os.path.join(self.directory, "none"),
               "RCLONE_CONFIG_FAR_TYPE": "s3", "RCLONE_CONFIG_FAR_PROVIDER": "Ceph",
               "RCLONE_CONFIG_FAR_ENDPOINT": self.proxy.endpoint,
               "RCLONE_CONFIG_FAR_ACCESS_KEY_ID": key,
               "RCLONE_CONFIG_FAR_SECRET_ACCESS_KEY": secret}
        return ["rclone", "mount", f"far:{self.bucket}", self.path, "--read-only",
                "--no-modtime", "--no-checksum", "--vfs-cache-mode", self.mode,
                "--cache-dir", cache, "--vfs-read-chunk-size", "8M",
                "--buffer-size", "32M"], env


class RcloneOff(Rclone):
    name, mode = "rclone", "off"


class RcloneFull(Rclone):
    name, mode = "rclone full", "full"


PEERS = (S3fs, RcloneOff, RcloneFull, Ros3)


def peak_memory(pid):
    """The peak memory of a program that runs, in bytes; 0 if it has ended."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next((int(line.split()[1]) << 10 for line in f if line.startswith("VmHWM")), 0)


def wait_for(process):
    """Waits for a program. Returns its exit status, processor seconds and peak memory in MiB.
    ru_maxrss would be at least the memory of this process, from which the other was forked."""
    peak, ended = 0, 0
    while not ended:
        peak = max(peak, peak_memory(process.pid))
        time.sleep(0.004)
        ended, status, used = os.wait4(process.pid, os.WNOHANG)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, used.ru_utime + used.ru_stime, peak / (1 << 20)


class Hsmount(Reader):
    """The program under test, started anew for each run."""
    name, can_copy = "hsmount", True

    def __init__(self, proxy, gateway, bucket, file, *options):
        super().__init__(proxy, gateway, bucket, file)
        self.options, self.mount = options, None
        key, secret = gateway.keys
        os.environ.update(AWS_ACCESS_KEY_ID=key, AWS_SECRET_ACCESS_KEY=secret,
                          AWS_ENDPOINT_URL=proxy.endpoint, AWS_EC2_METADATA_DISABLED="true",
                          AWS_REGION="us-east-1")

    def __enter__(self):
        self.mount = mounts.Mount(f"s3://{self.bucket}", self.directory, *self.options)
        self.mount.start()
        return self.mount.file(self.file)

    def __exit__(self, kind, value, trace):
        self.mount.__exit__(kind, value, trace)

    def peak(self):
        """The peak memory of the daemon in bytes."""
        return peak_memory(self.mount.process.pid)
