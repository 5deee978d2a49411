#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures `hsimage check` of one domain with many small chunks: time, requests and peak memory, in
a directory and, with --s3, in Ceph's gateway behind a proxy that delays each request.

usage: check.py [--chunks N] [--s3] [--delay MS]
"""
import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time

import s3_world
from s3_world import mkbucket, mounts

CHUNK = 256    # elements


def fill(bucket, chunks):
    """x.h5: one dataset of int32. All chunks are stored."""
    d = bucket.domain("x.h5")
    data = d.dataset(d.root, "data", mkbucket.INT32, [chunks * CHUNK], [CHUNK])
    for i in range(chunks):
        data.chunk((i,), i.to_bytes(4, "little") * CHUNK)
    bucket.write()


def measure(name, operand, *options, env=None, requests=lambda: None):
    with tempfile.TemporaryFile("w+") as out:
        began = time.monotonic()
        process = subprocess.Popen([mounts.HSIMAGE, "check", "--json", *options, operand], env=env,
                                   stdout=out)
        status, _, memory = s3_world.wait_for(process)
        seconds = time.monotonic() - began
        out.seek(0)
        result = json.load(out)
    assert status == 0 and result["result"] == "sound", result
    spent = requests()
    print(f"{name}: {seconds:.2f} s, {result['decoded']} of {result['chunks']} chunks decoded, "
          f"{memory:.0f} MiB{f', {spent}' if spent else ''}", flush=True)


def in_directory(work, chunks):
    with mkbucket.Maker(os.path.join(work, "bucket")) as bucket:
        fill(bucket, chunks)
    path = os.path.join(work, "bucket", "x.h5")
    for options in ([], ["--all"]):
        measure(f"directory {' '.join(options) or 'sample'}", path, *options)


def in_gateway(work, chunks, delay):
    with s3_world.Gateway(os.path.join(work, "rgw")) as gateway, \
            s3_world.Proxy(gateway, work) as proxy:
        client = gateway.client()
        client.make_bucket("check")
        client.upload("check", os.path.join(work, "bucket"))
        env = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
        env.update(AWS_ACCESS_KEY_ID=gateway.keys[0], AWS_SECRET_ACCESS_KEY=gateway.keys[1],
                   AWS_EC2_METADATA_DISABLED="true", AWS_ENDPOINT_URL=proxy.endpoint)
        for ms in dict.fromkeys((0, delay)):
            proxy.set(s3_world.Network(ms))
            for options in ([], ["--all"]):
                proxy.reset()
                measure(f"gateway at {ms} ms, {' '.join(options) or 'sample'}",
                        "s3://check/x.h5", *options, env=env, requests=proxy.spent)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--s3", action="store_true")
    parser.add_argument("--delay", type=int, default=20)
    args = parser.parse_args()
    work = tempfile.mkdtemp(prefix="hsmount-bench-")
    try:
        in_directory(work, args.chunks)
        if args.s3:
            in_gateway(work, args.chunks, args.delay)
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
