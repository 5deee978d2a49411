# SPDX-License-Identifier: Apache-2.0
"""Collections of domains that the real service wrote: the archives in tests/data, or the larger
ones in ../shared/data beside the checkout, if they exist."""
import csv
import os
import subprocess

import mounts
import oracle

ARCHIVES = ("hsds-v2", "hsds-v2-public", "hsds-v1")

# Changes by a loader that h5diff does not report.
HARMLESS = ("filltime", "layout-class", "chunk-dims-stored", "chunk-dims-requested", "filters",
            "link-creation-order", "compound-padding-dropped", "committed-type-unlinked", "type",
            "attr-type", "fillvalue-lost")


class Entry:
    """One domain of a collection, and its line of the manifest."""

    def __init__(self, collection, path, line):
        self.collection, self.path = collection, path
        self.source = None
        if line and line[2].endswith(".h5"):
            self.source = os.path.join(collection.sources, line[2])
        # A file with the same kinds of objects, for tools that fail on some.
        self.twin = self.source or os.path.join(os.path.dirname(collection.sources),
                                                "hsds-v2-sources", os.path.basename(path))
        self.changes = line[4] if line else ""
        self.service_differs = bool(line) and "h5diff rc 1" in line[5]

    def __str__(self):
        return f"{self.collection.name}:{self.path}"

    @property
    def equals_source(self):
        """True if the manifest has no change that h5diff reports, and h5diff reported none in the
        file that the service itself returned. hsmount writes other file names in external links."""
        kinds = [part.strip().split(" ")[0] for part in self.changes.split(";") if part.strip()]
        links = [link for obj in self.collection.bucket.domain(self.path).objects.values()
                 for link in obj.links]
        return not self.service_differs and all(k == "none" or k in HARMLESS for k in kinds) and \
            not any(link.kind == "external" for link in links)

    @property
    def has_references(self):
        """True if any dataset or attribute has object references."""
        types = []
        for obj in self.collection.bucket.domain(self.path).objects.values():
            types += [a.type for a in obj.attributes] + ([obj.type] if obj.kind == "d" else [])
        return any("'ref'" in repr(t) for t in types)


class Collection:
    def __init__(self, directory, name, archive):
        self.name, self.archive = name, archive
        self.bucket = oracle.Bucket(os.path.join(directory, name))
        self.sources = os.path.join(directory, f"{name}-sources")
        rows, manifest = [], os.path.join(directory, f"{name}.manifest.tsv")
        if os.path.exists(manifest):
            with open(manifest, encoding="utf-8") as f:
                rows = [r for r in csv.reader(f, delimiter="\t") if len(r) > 5 and r[0] == name]
        self.manifest = {r[1].strip("/"): r for r in rows}

    def __str__(self):
        return f"{self.archive}: {len(self.bucket.files())} domains"

    def entries(self):
        return [Entry(self, p, self.manifest.get(p)) for p in self.bucket.files()]


def archives():
    for directory in (os.path.join(os.path.dirname(mounts.TREE), "shared", "data"),
                      os.path.join(mounts.TREE, "tests", "data")):
        found = [os.path.join(directory, f"{name}.tar.xz") for name in ARCHIVES]
        found = [path for path in found if os.path.exists(path)]
        if found:
            return found
    raise FileNotFoundError("no archive of domains in tests/data")


def unpack_all(directory):
    for archive in archives():
        subprocess.run(["tar", "-xJf", archive, "-C", directory], check=True, timeout=60)


def all_in(directory):
    """The collections that unpack_all() put there."""
    return [Collection(directory, os.path.basename(archive).removesuffix(".tar.xz"), archive)
            for archive in archives()]
