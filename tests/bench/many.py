#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the open of a domain of many objects; README.md explains how.

    many.py [--delays 0,50] [--runs 3] [N…]    (default: 10000 100000)

HSMOUNT_BUILD names the build directory."""
import argparse
import os
import statistics
import tempfile

from s3_world import Hsmount, Network, Proxy

import scale

KINDS = ("no cache", "cold", "warm")


def list_rounds(rows):
    """How many listings depend on each other: the longest chain of which each one began after the
    one before had ended."""
    rounds, end = 0, -1
    for r in sorted((r for r in rows if "list-type=2" in r.target), key=lambda r: r.done):
        if r.arrived >= end:
            rounds, end = rounds + 1, r.done
    return rounds


def measure(proxy, store, n, delay, cache, kind):
    options = [] if kind == "no cache" else [f"cache_dir={cache}"]
    reader = Hsmount(proxy, store, "bucket", "thousand.h5", "cache_size=1G", *options)
    proxy.set(Network(0, 0))
    with reader as path:
        proxy.settle()
        proxy.set(Network(delay, 0))
        proxy.reset()
        pid, before = reader.mount.process.pid, scale.processor_s(reader.mount.process.pid)
        os.close(os.open(path, os.O_RDONLY))
        cpu = scale.processor_s(pid) - before
        rows = proxy.spent().rows
    lists = sum("list-type=2" in r.target for r in rows)
    return {"cpu": cpu, "requests": len(rows), "lists": lists, "rounds": list_rounds(rows)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--delays", default="0,50")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("n", nargs="*", type=int, default=[10_000, 100_000])
    args = parser.parse_args()
    print("| objects | delay | | CPU s | requests | listings | rounds of listings |")
    for n in args.n:
        with tempfile.TemporaryDirectory() as directory, \
                scale.Store(lambda pack, n=n: scale.datasets(pack, n), directory) as store, \
                Proxy(store, directory) as proxy:
            for delay in map(int, args.delays.split(",")):
                results = {kind: [] for kind in KINDS}
                for run in range(args.runs):
                    cache = os.path.join(directory, f"cache{delay}-{run}")
                    for kind in KINDS:
                        results[kind].append(measure(proxy, store, n, delay, cache, kind))
                for kind, all_runs in results.items():
                    r = {k: statistics.median(x[k] for x in all_runs) for k in all_runs[0]}
                    print(f"| {n:,} | {delay} ms | {kind} | {r['cpu']:.2f} | {r['requests']:,} | "
                          f"{r['lists']} | {r['rounds']} |", flush=True)


if __name__ == "__main__":
    main()
