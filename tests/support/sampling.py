# SPDX-License-Identifier: Apache-2.0
"""Selects tests. With HSMOUNT_SAMPLE=N (default 4), one in N of the sampled parameter sets runs.
With HSMOUNT_SAMPLE_OTHERS=N (default 1), one in N of all other tests runs, and one in N of the
sampled tests. With -N, all other tests but these run. The names of the tests decide which, so they
are always the same. HSMOUNT_SAMPLE=1 runs everything."""
import collections
import os
import zlib

ONE_IN = max(1, int(os.environ.get("HSMOUNT_SAMPLE", "4")))
EVERYTHING = ONE_IN == 1
OTHERS = 1 if EVERYTHING else int(os.environ.get("HSMOUNT_SAMPLE_OTHERS", "1")) or 1
MARKERS = (
    "sampled(by=None, rarer=1, keep=1): of the parameter sets (of each value of the parameter "
    "`by`) one in HSMOUNT_SAMPLE * rarer runs, at least `keep`; all if HSMOUNT_SAMPLE is 1",
    "long: runs with HSMOUNT_SAMPLE=1 only")


def words():
    if EVERYTHING:
        return "everything runs"
    others = ("" if abs(OTHERS) == 1 else f", and one in {OTHERS} of all other tests" if OTHERS > 0
              else f", and all other tests but one in {-OTHERS}")
    return (f"one in {ONE_IN} of the parameter sets of sampled tests{others}, the same ones every "
            "time; HSMOUNT_SAMPLE=1 runs all")


def is_left_out(name):
    one_in = abs(OTHERS)
    return one_in > 1 and (checksum(name) % one_in == 0) == (OTHERS < 0)


def checksum(name):
    return zlib.crc32(name.encode("utf-8", "surrogateescape"))


def sampled(things, name=str, rarer=1, keep=1):
    """One in ONE_IN * rarer of the things, but at least `keep`, in the given order."""
    one_in = 1 if EVERYTHING else ONE_IN * rarer
    chosen = sorted(things, key=lambda t: (checksum(name(t)), name(t)))
    chosen = {name(t) for t in chosen[:max(keep, -(-len(chosen) // one_in))]}
    return [t for t in things if name(t) in chosen]


def choose(items):
    """Returns the items of pytest that run."""
    groups, shares, left_out = collections.defaultdict(list), {}, set()
    for item in items:
        marker = item.get_closest_marker("sampled")
        if marker and OTHERS > 1 and is_left_out(item.nodeid.split("[")[0]):
            left_out.add(item)
        elif marker:
            by = marker.kwargs.get("by")
            value = by and str(item.callspec.params[by])
            group = item.nodeid.split("[")[0], value
            groups[group].append(item)
            shares[group] = marker.kwargs.get("rarer", 1), marker.kwargs.get("keep", 1)
        elif is_left_out(item.nodeid):
            left_out.add(item)
    for group, members in groups.items():
        left_out.update(set(members) - set(sampled(members, lambda item: item.nodeid,
                                                   *shares[group])))
    return [item for item in items if item not in left_out and
            (EVERYTHING or not item.get_closest_marker("long"))]
