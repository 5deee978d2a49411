# SPDX-License-Identifier: Apache-2.0
"""A bucket that lives long, in a small S3 service of each kind: round after round, a program makes,
changes, replaces, renames or removes a file, while requests fail, answers are lost, or the daemon
is killed. After each round each file is the old one or the new one, a change that was reported as
done is there, and nothing is left that the next mount cannot repair. HSMOUNT_SAMPLE=1 makes 100
rounds with each kind of service."""
import json
import os
import random
import select
import subprocess
import sys
import time

import pytest

import mounts
import rwmounts
from mounts import HSIMAGE, run
from s3service import Service
from sampling import EVERYTHING

ROUNDS = 100 if EVERYTHING else 5
KINDS = {"checks": {"delete_match": "checked"}, "no-match": {"put_match": "ignored"},
         "ignores": {"put_absent": "ignored", "put_match": "ignored"},
         "refuses": {"put_absent": 501, "put_match": 501}}
NAMES = ("a.h5", "b.h5", "c.h5", "d.txt")
LAST = 30       # requests after the start of a mount of which one is hit
STOPPED = 0.5   # seconds in which a daemon that works sends its next request

# libhdf5 would keep this interpreter from running the server. So programs run in a process of their
# own, which has loaded the libraries and makes a copy of itself for each program.
PROGRAMS = """
import json, os, shutil, sys
import h5py, numpy as np

def fill(f, value):
    f.attrs["value"] = value
    f.require_dataset("d", (300,), "i8", chunks=(100,))[:] = value
    f[f"g{value}/x"] = value
    for old in [name for name in f if name.startswith("g") and name != f"g{value}"]:
        del f[old]

def change(home, value, name, other, scratch):
    with h5py.File(f"{home}/{name}", "r+") as f:
        fill(f, value)

def new(home, value, name, other, scratch):
    if name.endswith(".h5"):
        with h5py.File(scratch, "w") as f:
            fill(f, value)
    else:
        with open(scratch, "w") as f:
            f.write(f"{value}\\n" * 1000)
    shutil.copyfile(scratch, f"{home}/{name}")

def rename(home, value, name, other, scratch):
    os.rename(f"{home}/{name}", f"{home}/{other}")

def remove(home, value, name, other, scratch):
    os.unlink(f"{home}/{name}")

def value_of(path):
    if not os.path.exists(path):
        return None
    if path.endswith(".txt"):
        values = {int(line) for line in open(path)}
        return values.pop() if len(values) == 1 else "torn"
    with h5py.File(path, "r") as f:
        value = int(f.attrs["value"])
        whole = set(f) == {"d", f"g{value}"} and (f["d"][:] == value).all() and \
            f[f"g{value}/x"][()] == value
        return value if whole else f"torn: {value} {list(f)} {set(f['d'][:])}"

def read(home, names):
    return {name: value_of(f"{home}/{name}") for name in names}

for line in sys.stdin:
    call, *arguments = json.loads(line)
    child = os.fork()
    if child == 0:
        try:
            result = [True, globals()[call](*arguments)]
        except Exception as e:
            result = [False, repr(e)]
        print(json.dumps(result), flush=True)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if status:      # libhdf5 may crash after a failed write
        print(json.dumps([False, f"status {status}"]), flush=True)
"""


class Programs:
    def __init__(self):
        self.process = subprocess.Popen([sys.executable, "-c", PROGRAMS], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def start(self, call, *arguments):
        self.process.stdin.write(json.dumps([call, *arguments]) + "\n")
        self.process.stdin.flush()

    def has_ended(self, seconds):
        return bool(select.select([self.process.stdout], [], [], seconds)[0])

    def result(self):
        """[whether the program has ended well, what it returns or why it has failed]"""
        assert self.has_ended(mounts.PATIENCE), "a program does not end"
        return json.loads(self.process.stdout.readline())

    def end(self):
        self.process.kill()
        self.process.communicate()


class Bucket:
    def __init__(self, tmp_path, service, kind):
        self.directory, self.service, self.programs = tmp_path, service, Programs()
        self.env = service.environment()
        self.random = random.Random(kind)
        self.values = dict.fromkeys(NAMES)
        with self.mount() as m:
            os.mkdir(m.file("home"))
            self.first = sum(m.requests().values())

    def mount(self, *options):
        return rwmounts.RwMount("s3://bucket", self.directory, "metadata_ttl=0", *options,
                                env=self.env)

    def decide(self, number):
        """A program, and what the files may have after it: {name: value} if it has not ended well,
        or if it has."""
        have = [n for n in NAMES if self.values[n] is not None]
        domains = [n for n in have if n.endswith(".h5")]
        what = self.random.choice(["new"] + ["change", "change", "rename"] * bool(domains) +
                                  ["new", "remove"] * bool(have))
        name = self.random.choice({"new": NAMES, "remove": have}.get(what, domains))
        other = self.random.choice([n for n in NAMES if n.endswith(".h5") and n != name])
        after = dict(self.values)
        if what == "rename":
            after[other] = after[name]
        after[name] = number if what in ("new", "change") else None
        return (what, name, other), after

    def wait_until_stopped(self):
        """Until the program has ended, or the daemon sends nothing more."""
        sent, since = -1, time.monotonic()
        while time.monotonic() - since < STOPPED and not self.programs.has_ended(0.02):
            if sent != len(self.service.requests):
                sent, since = len(self.service.requests), time.monotonic()

    def hit(self, how, program, number):
        """Runs the program while this goes wrong. Returns what Programs.result() does."""
        n = self.first + self.random.randint(1, LAST)
        rule = {"kill": f"delay:{n}+:600000", "fail": f"fail:{n}:EIO", "away": f"fail:{n}+:EIO"}
        m = self.mount(*([f"debug_fault={rule[how]}"] if how in rule else []))
        m.start()
        if how == "lose":
            self.service.lie = self.loses(self.random.randint(1, 8))
        what, name, other = program
        self.programs.start(what, m.file("home"), number, name, other,
                            os.fspath(self.directory / "scratch"))
        if how == "kill":
            self.wait_until_stopped()
            m.kill()
        result = self.programs.result()
        m.stop()
        self.service.lie = lambda request, honest: None
        return result

    @staticmethod
    def loses(n):
        """The n-th PUT or DELETE is carried out, but its answer says that it was not."""
        count = iter(range(1, 1 << 30))

        def lie(request, honest):
            lost = request.method in ("PUT", "DELETE") and honest.status < 300 and next(count) == n
            return type(honest)(500, {}) if lost else None
        return lie

    def repair(self):
        """The next mount commits what it can. What it cannot commit is dropped by a person."""
        with self.mount() as m:
            m.released()
        left = [os.path.basename(entry) for entry in rwmounts.journal_entries(m.journal)]
        if left:
            run(HSIMAGE, "--journal-dir", m.journal, "recover", "drop", "--yes", *left,
                env=self.env, check=True)

    def read(self):
        with mounts.Mount("s3://bucket", self.directory, env=self.env) as m:
            self.programs.start("read", m.file("home"), NAMES)
            ended_well, values = self.programs.result()
            assert ended_well, (values, m.log())
            return values


def live(bucket):
    for number in range(1, ROUNDS + 1):
        program, after = bucket.decide(number)
        how = bucket.random.choice(("kill", "kill", "fail", "away", "lose"))
        ended_well, why = bucket.hit(how, program, number)
        bucket.repair()
        now = bucket.read()
        context = (number, program, how, ended_well, why)
        assert now in ([after] if ended_well else [after, bucket.values]), context
        bucket.values = now


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
def test_rounds(tmp_path, kind):
    root = tmp_path / "bucket"
    (root / "db").mkdir(parents=True)
    (root / "db/x").write_text("1")
    with Service(root, **KINDS[kind]) as service:
        bucket = Bucket(tmp_path, service, kind)
        try:
            live(bucket)
        finally:
            bucket.programs.end()
        assert not service.failures
        done = run(HSIMAGE, "-b", "s3://bucket", "check", "--all", env=bucket.env)
        assert done.returncode == 0, done.stdout
