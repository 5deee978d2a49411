# SPDX-License-Identifier: Apache-2.0
"""Judges what a commit has put into a directory bucket, and with how many requests, by a second
reader of the bucket.

- A document is put if it says something else than before, or if its object is new.
- A chunk is put if its dataset is new, or if the program has written to it.
- Each of them is put once. There is one exception: if several groups both gain and lose links (or
  rename them) to groups or to objects that stay, all but one of these groups may be put twice.
- A key is deleted if it is a chunk of a dataset that the program has written to, or belongs to an
  object that is not reachable any more, or is the summary of the domain, which is out of date. The
  program may ask for it although the bucket does not have it: once for the summary, and once for
  each chunk of a dataset that was written to, which is not stored if it has only fill values."""
import math
import os

import bucketstate
import oracle


def reachable_key(key, domain):
    """The id of the object of a domain to which a key belongs, or None."""
    folder = os.path.dirname(key)
    for oid in domain.objects:
        base = oracle.storage_key(oid)
        if key == oracle.document_key(oid) or oid[0] == "d" and (
                folder == base or os.path.dirname(folder) == base):
            return oid
    return next((oid for oid in bucketstate.types(domain) if key == oracle.document_key(oid)), None)


def chunks(dataset):
    """How many chunks the shape of a dataset has; of another object: 0."""
    if dataset.kind != "d" or not dataset.shape:
        return 0
    return math.prod(-(-n // c) for n, c in zip(dataset.shape, dataset.chunk_shape()))


def chunk_box(dataset, key):
    chunk = dataset.chunk_shape()
    index = [int(i) for i in os.path.basename(key).split("_")]
    return [(i * c, (i + 1) * c) for i, c in zip(index, chunk)]


def is_written(dataset, key, boxes):
    return any(box is None or all(w.start < end and start < w.stop for w, (start, end)
                                  in zip(box, chunk_box(dataset, key))) for box in boxes)


def hard_links(group):
    return {(link.name, link.id) for link in group.links if link.kind == "hard"}


def known(domain):
    return domain.objects.keys() | set(bucketstate.types(domain))


def second_puts(before, after):
    """How many groups may be put twice."""
    n, old, new = 0, known(before), known(after)
    for oid in before.objects.keys() & after.objects.keys():
        was, now = (hard_links(d.objects[oid]) for d in (before, after))
        lost = [t for _, t in was - now if t[0] == "g" or t in new]
        gained = [t for _, t in now - was if t[0] == "g" or t in old]
        n += bool(lost and gained)
    return max(n - 1, 0)


def two_steps(before, after):
    """How many datasets have shrunk in one dimension and grown in another: they are put twice."""
    n = 0
    for oid in before.objects.keys() & after.objects.keys():
        was, now = before.objects[oid], after.objects[oid]
        if was.kind == "d" and was.shape and now.shape:
            sides = list(zip(was.shape, now.shape))
            n += any(a > b for a, b in sides) and any(a < b for a, b in sides)
    return n


class Commit:
    """before, after: domains of the oracle. old, new: states of the bucket. written: {id: boxes} as
    of rplus.Changes; None: the program may have written to every dataset."""

    def __init__(self, before, after, old, new, written):
        self.before, self.after, self.old, self.new = before, after, old, new
        self.written = written

    def may_write(self, oid, key):
        if oid not in self.before.objects or self.written is None:
            return True
        return is_written(self.after.objects[oid], key, self.written.get(oid, ()))

    def problems_of_keys(self):
        put, (_, deleted) = self.new.put_since(self.old), self.new.since(self.old)
        for key in sorted(put):
            oid = reachable_key(key, self.after)
            if os.path.basename(key) == bucketstate.LISTS:
                continue        # the summary
            if oid is None:
                yield f"{key} was put, and is no part of the domain"
            elif key.endswith(".json"):
                if self.new.digest[key] == self.old.digest.get(key):
                    yield f"{key} was put without a change"
            elif not self.may_write(oid, key):
                yield f"{key} of {self.after.paths[oid]} was put, and nobody wrote to it"
        for key in sorted(deleted):
            oid = reachable_key(key, self.after)
            if oid is None or key.endswith(bucketstate.LISTS):
                continue
            if key.endswith(".json") or not self.may_write(oid, key):
                yield f"{key} of {self.after.paths[oid]} was deleted"
        for key in self.new.needless(self.old):
            yield f"{key} says the same"

    def absent_chunks(self):
        """How many chunks the written datasets have, or had, that were not stored before."""
        n = 0
        for oid in self.before.objects.keys() & self.after.objects.keys():
            if self.written is not None and oid not in self.written:
                continue
            stored = sum(k.startswith(oracle.storage_key(oid)) for k in self.old.digest) - 1
            n += sum(max(chunks(d.objects[oid]) - stored, 0) for d in (self.before, self.after))
        return n

    def problems(self, requests, deleted):
        """requests: {"put": number, "delete": number}. deleted: the number of objects that are gone
        since before the first one of them. What earlier commits have removed is deleted at any
        time."""
        found = list(self.problems_of_keys())
        put, gone = len(self.new.put_since(self.old)), len(self.new.since(self.old)[1])
        put += two_steps(self.before, self.after)
        twice = second_puts(self.before, self.after)
        if not put <= requests["put"] <= put + twice:
            found.append(f"{requests['put']} puts instead of {put}, or up to {twice} more")
        absent = 1 + self.absent_chunks()
        if not gone <= requests["delete"] <= deleted + absent:
            found.append(f"{requests['delete']} deletes of {deleted} keys and {absent} absent ones")
        return found
