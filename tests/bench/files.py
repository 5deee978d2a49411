#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what a mount costs for files as wholes: a copy into a mount over HTTPS, `tar x` of
small domains, and `ls -lR` of many domains. See README.md, "Whole files"."""
import argparse
import contextlib
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
import time

import h5py
import numpy as np

import scale
from s3_world import Network, Proxy, mounts

from s3liar import make_certificate

MIB = 1 << 20


def environment(endpoint, certificate=None):
    env = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
    env.update(AWS_ACCESS_KEY_ID="access", AWS_SECRET_ACCESS_KEY="secret", AWS_REGION="us-east-1",
               AWS_EC2_METADATA_DISABLED="true", AWS_ENDPOINT_URL=endpoint)
    if certificate:
        env["AWS_CA_BUNDLE"] = certificate
    return env


@contextlib.contextmanager
def mounted(directory, endpoint, *options, certificate=None, binary=None):
    """A new mount, in a directory of its own. binary: another hsmount."""
    at = tempfile.mkdtemp(prefix="mount-", dir=directory)
    used, mounts.HSMOUNT = mounts.HSMOUNT, binary or mounts.HSMOUNT
    mount = mounts.Mount("s3://bucket", at, "allow_empty", *options,
                         env=environment(endpoint, certificate))
    try:
        with mount:
            yield mount
    finally:
        mounts.HSMOUNT = used
        shutil.rmtree(at, ignore_errors=True)


def nothing(_):
    """Fills a bucket."""


class Bench:
    def __init__(self, args, directory):
        self.args, self.directory = args, directory

    def path(self, name):
        return os.path.join(self.directory, name)

    @contextlib.contextmanager
    def server(self, fill):
        """A bucket in memory behind the proxy."""
        with scale.Store(fill, self.directory) as store, Proxy(store, self.directory) as proxy:
            proxy.set(Network(self.args.delay, 0))
            yield proxy

    # ---- a copy into a mount ----

    def upload(self):
        """The write phase and close() apart. The bucket is in memory and speaks TLS."""
        print(f"copy of {self.args.size} MiB over HTTPS:\n\n| hsmount | s | write CPU s | "
              "close CPU s | CPU s |\n|---|---|---|---|---|")
        with h5py.File(self.path("x.h5"), "w") as f:
            f.create_dataset("d", data=np.frombuffer(os.urandom(MIB) * self.args.size, "i1"),
                             chunks=(MIB,))
        certificate = make_certificate(self.directory, "127.0.0.1")
        for _ in range(self.args.runs):
            for binary in (None, *self.args.other):
                with scale.Store(nothing, self.directory, certificate) as store, \
                        mounted(self.directory, store.endpoint, "rw", certificate=certificate[0],
                                binary=binary) as mount:
                    self.copy(mount, binary)
        os.unlink(self.path("x.h5"))

    def copy(self, mount, binary):
        cpu, began = [scale.processor_s(mount.process.pid)], time.monotonic()
        with open(self.path("x.h5"), "rb", buffering=0) as source, \
                open(mount.file("x.h5"), "wb", buffering=0) as copy:
            while part := source.read(MIB // 4):
                copy.write(part)
            cpu.append(scale.processor_s(mount.process.pid))
        cpu.append(scale.processor_s(mount.process.pid))
        print(f"| {binary or 'this'} | {time.monotonic() - began:.2f} | {cpu[1] - cpu[0]:.2f} | "
              f"{cpu[2] - cpu[1]:.2f} | {cpu[2] - cpu[0]:.2f} |", flush=True)

    # ---- small files ----

    def tar(self):
        """One tar, then eight at once, in one folder and in eight."""
        print(f"tar x of {self.args.files} small domains, {self.args.delay} ms:\n\n| hsmount | "
              "tars, folders | ms a file | rounds a file | requests a file | CPU ms a file |\n"
              "|---|---|---|---|---|---|")
        with h5py.File(self.path("s.h5"), "w") as f:
            f["d"] = np.arange(100)
            f["d"].attrs["unit"] = "m"
        with open(self.path("s.h5"), "rb") as f:
            body = f.read()
        with tarfile.open(self.path("t.tar"), "w") as archive:
            for i in range(self.args.files):
                member = tarfile.TarInfo(f"{i}.h5")
                member.size = len(body)
                archive.addfile(member, io.BytesIO(body))
        for _ in range(self.args.runs):
            for binary in (None, *self.args.other):
                with self.server(nothing) as proxy, \
                        mounted(self.directory, proxy.endpoint, "rw", binary=binary) as mount:
                    self.unpack(proxy, mount, binary)

    def unpack(self, proxy, mount, binary):
        for tars, folders in (1, 1), (8, 1), (8, 8):
            into = [mount.file(f"of{tars}in{folders}-{k % folders}") for k in range(tars)]
            for folder in sorted(set(into)):
                os.mkdir(folder)
            # The first write of a mount tests the service.
            with open(os.path.join(into[0], "first"), "wb") as f:
                f.write(b"x")
            proxy.settle()
            proxy.reset()
            cpu, began = scale.processor_s(mount.process.pid), time.monotonic()
            programs = [subprocess.Popen(["tar", "xf", self.path("t.tar"), "-C", folder,
                                          "--transform", f"s/^/{k}-/"])
                        for k, folder in enumerate(into)]
            assert all(p.wait() == 0 for p in programs)
            took, spent = time.monotonic() - began, proxy.spent()
            n = tars * self.args.files
            rounds = took * 1000 / self.args.files / self.args.delay if self.args.delay else 0
            print(f"| {binary or 'this'} | {tars}, {folders} | {took * 1000 / n:.1f} | "
                  f"{rounds:.1f} | {spent.requests / n:.2f} | "
                  f"{(scale.processor_s(mount.process.pid) - cpu) * 1000 / n:.1f} |", flush=True)

    # ---- many domains ----

    def list(self):
        """Twice in each mount: without a cache on disk, with an empty one, and with a full one."""
        print(f"ls -lR of {self.args.domains} domains, {self.args.delay} ms:\n\n| hsmount | cache "
              "on disk, list | s | requests | CPU s |\n|---|---|---|---|---|")
        for binary in (None, *self.args.other):
            cache = tempfile.mkdtemp(prefix="cache-", dir=self.directory)
            with self.server(lambda pack: scale.domains(pack, self.args.domains)) as proxy:
                for label, options in (("none", ()), ("empty", (f"cache_dir={cache}",)),
                                       ("full", (f"cache_dir={cache}",))):
                    with mounted(self.directory, proxy.endpoint, *options,
                                 binary=binary) as mount:
                        self.list_twice(proxy, mount, binary, label)

    def list_twice(self, proxy, mount, binary, label):
        for k in 1, 2:
            proxy.settle()
            proxy.reset()
            cpu, began = scale.processor_s(mount.process.pid), time.monotonic()
            scale.list_it(mount.path, None)
            took, spent = time.monotonic() - began, proxy.spent()
            print(f"| {binary or 'this'} | {label}, {k} | {took:.2f} | {spent.requests} | "
                  f"{scale.processor_s(mount.process.pid) - cpu:.2f} |", flush=True)


PARTS = ("upload", "tar", "list")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--delay", type=float, default=20, help="of each request, in ms")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--size", type=int, default=512, help="of the copy, in MiB")
    parser.add_argument("--files", type=int, default=40, help="of each archive")
    parser.add_argument("--domains", type=int, default=1000)
    parser.add_argument("--other", action="append", default=[],
                        help="another hsmount, measured in turn")
    parser.add_argument("parts", nargs="*", metavar="PART", choices=[[], *PARTS])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="files-") as directory:
        for part in args.parts or PARTS:
            getattr(Bench(args, directory), part)()
            print()


if __name__ == "__main__":
    main()
