# SPDX-License-Identifier: Apache-2.0
"""Selects tests. With HSMOUNT_SAMPLE=N (default 4), one in N of the sampled parameter sets runs.
The names of the tests decide which, so they are always the same. HSMOUNT_SAMPLE=1 runs
everything."""
import collections
import os
import zlib

ONE_IN = max(1, int(os.environ.get("HSMOUNT_SAMPLE", "4")))
EVERYTHING = ONE_IN == 1
MARKERS = (
    "sampled(by=None): of the parameter sets (of each value of the parameter `by`) one in "
    "HSMOUNT_SAMPLE runs, at least one",
    "long: runs with HSMOUNT_SAMPLE=1 only")


def words():
    if EVERYTHING:
        return "everything runs"
    return (f"one in {ONE_IN} of the parameter sets of sampled tests, the same ones every time; "
            "HSMOUNT_SAMPLE=1 runs all")


def sampled(things, name=str):
    """One in ONE_IN of the things, but at least one, in the given order."""
    chosen = sorted(things, key=lambda t: (zlib.crc32(name(t).encode("utf-8", "surrogateescape")),
                                           name(t)))
    chosen = {name(t) for t in chosen[:-(-len(chosen) // ONE_IN)]}
    return [t for t in things if name(t) in chosen]


def choose(items):
    """Returns the items of pytest that run."""
    groups = collections.defaultdict(list)
    for item in items:
        marker = item.get_closest_marker("sampled")
        if marker:
            by = marker.kwargs.get("by")
            value = by and str(item.callspec.params[by])
            groups[item.nodeid.split("[")[0], value].append(item)
    left_out = set()
    for group in groups.values():
        left_out.update(set(group) - set(sampled(group, lambda item: item.nodeid)))
    return [item for item in items if item not in left_out and
            (EVERYTHING or not item.get_closest_marker("long"))]
