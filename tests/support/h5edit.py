# SPDX-License-Identifier: Apache-2.0
"""Changes an HDF5 file at random, as programs that open it read-write do: attributes, groups,
links, datasets of all layouts, resizing, variable-length data, copies of objects, deleting and
creating again. The same seed makes the same changes.

    h5edit.py FILE SEED [OPERATIONS]
"""
import random
import sys

import h5py
import numpy as np

import h5make

TYPES = ["<i4", ">f8", "u1", "<f4", "S7", h5py.string_dtype(), h5py.vlen_dtype("i4"),
         np.dtype([("a", "<i2"), ("b", ">f4")]), h5py.enum_dtype({"A": 1, "B": 2}), "?"]


def names(group):
    """The names of a group's links that are UTF-8; h5py cannot list others."""
    found = []
    group.id.links.iterate(found.append)
    return sorted(n.decode() for n in found if n.decode("utf-8", "ignore").encode() == n)


class Editor:
    def __init__(self, f, seed):
        self.f, self.random, self.made = f, random.Random(seed), 0

    def name(self):
        self.made += 1
        return f"made {self.made} " + "x" * self.random.choice((0, 1, 10, 60))

    def pick(self, kind):
        """A random object of the file: by a walk over hard links with a limit."""
        found, todo, seen = [], [self.f["/"]], set()
        while todo and len(seen) < 200:
            group = todo.pop()
            if group.id in seen:
                continue
            seen.add(group.id)
            if kind is h5py.Group:
                found.append(group)
            for name in names(group)[:40]:
                if group.get(name, getlink=True).__class__ is not h5py.HardLink:
                    continue
                child = group.get(name)
                if isinstance(child, h5py.Group):
                    todo.append(child)
                if isinstance(child, kind):
                    found.append(child)
        return self.random.choice(found) if found else None

    def value(self):
        r = self.random
        return r.choice(
    (r.randrange(100),
    r.random(),
    "text " * r.randrange(9),
    np.arange(
        r.randrange(
            1,
            400)),
            np.bytes_("bytes"),
            np.zeros(
                (2,
                3),
                 ">f4")))

    def data(self, dtype, shape):
        dtype = np.dtype(dtype)
        n = int(np.prod(shape))
        if h5py.check_string_dtype(dtype) and dtype.kind == "O":
            return np.array(["s" * self.random.randrange(40) for _ in range(n)],
                            object).reshape(shape)
        if h5py.check_vlen_dtype(dtype):
            out = np.empty(n, object)
            for i in range(n):
                out[i] = np.arange(self.random.randrange(30), dtype="i4")
            return out.reshape(shape)
        if dtype.names or dtype.kind == "S":
            return np.zeros(shape, dtype)
        return np.array([self.random.randrange(2) for _ in range(n)]).astype(dtype).reshape(shape)

    # ---- operations ----

    def add_attribute(self):
        o = self.pick((h5py.Group, h5py.Dataset))
        for _ in range(self.random.choice((1, 1, 3, 12))):
            o.attrs[self.name()] = self.value()

    def change_attribute(self):
        o = self.pick((h5py.Group, h5py.Dataset))
        if len(o.attrs):
            o.attrs[self.random.choice(sorted(o.attrs))] = self.value()

    def delete_attribute(self):
        o = self.pick((h5py.Group, h5py.Dataset))
        if len(o.attrs):
            del o.attrs[self.random.choice(sorted(o.attrs))]

    def rename_attribute(self):
        o = self.pick((h5py.Group, h5py.Dataset))
        if len(o.attrs):
            h5py.h5a.rename(
    o.id,
    self.random.choice(
        sorted(
            o.attrs)).encode(),
             self.name().encode())

    def add_group(self):
        g = self.pick(h5py.Group)
        for _ in range(self.random.choice((1, 2, 70))):
            g.create_group(self.name(), track_order=self.random.random() < 0.5)

    def add_dataset(self):
        r, g = self.random, self.pick(h5py.Group)
        dtype = r.choice(TYPES)
        shape = tuple(r.randrange(1, 12) for _ in range(r.randrange(1, 4)))
        options = {}
        if r.random() < 0.7:
            options["chunks"] = tuple(r.randrange(1, n + 1) for n in shape)
            options["maxshape"] = tuple(r.choice((n, n * 2, None)) for n in shape)
            if dtype in TYPES[:5] and r.random() < 0.6:
                options.update(compression=r.choice(("gzip", "lzf")), shuffle=r.random() < 0.5,
                               fletcher32=r.random() < 0.3)
        d = g.create_dataset(self.name(), shape, dtype, **options)
        if r.random() < 0.8:
            d[...] = self.data(dtype, shape)

    def rewrite(self):
        d = self.pick(h5py.Dataset)
        if d is None or not d.shape or not d.size or d.size > 10**6 or d.dtype.kind in "V" or \
                h5py.check_ref_dtype(d.dtype):
            return
        box = tuple(slice(0, self.random.randrange(1, n + 1)) for n in d.shape)
        shape = tuple(s.stop for s in box)
        try:
            d[box] = self.data(d.dtype, shape)
        except (TypeError, ValueError):
            pass

    def resize(self):
        d = self.pick(h5py.Dataset)
        if d is None or not d.chunks or d.size > 10**6:
            return
        new = [self.random.randrange(0, min(m or n + 20, n + 20) + 1)
               for n, m in zip(d.shape, d.maxshape)]
        d.resize(new)

    def add_link(self):
        g, o = self.pick(h5py.Group), self.pick((h5py.Group, h5py.Dataset))
        kind = self.random.randrange(3)
        g[self.name()] = (o, h5py.SoftLink("/" + self.name()),
                          h5py.ExternalLink("other.h5", "/x"))[kind]

    def delete_link(self):
        g = self.pick(h5py.Group)
        if names(g):
            del g[self.random.choice(names(g))]

    def move(self):
        g = self.pick(h5py.Group)
        if names(g):
            g.move(self.random.choice(names(g)), self.name())

    def copy(self):
        o, g = self.pick((h5py.Group, h5py.Dataset)), self.pick(h5py.Group)
        if o.name != "/":
            self.f.copy(o, g, name=self.name(), shallow=True)

    def again(self):
        """Deletes a dataset and makes another one of the same name."""
        d = self.pick(h5py.Dataset)
        if d is not None and d.shape is not None and d.name:
            name, parent = d.name, d.parent
            del self.f[name]
            parent.create_dataset(name.rsplit("/", 1)[1], data=np.arange(self.random.randrange(50)))

    def run(self, operations):
        every = [self.add_attribute, self.change_attribute, self.delete_attribute,
                 self.rename_attribute, self.add_group, self.add_dataset, self.add_dataset,
                 self.rewrite, self.rewrite, self.resize, self.add_link, self.delete_link,
                 self.move, self.copy, self.again]
        for _ in range(operations):
            operation = self.random.choice(every)
            try:
                operation()
            except (OSError, RuntimeError, ValueError, KeyError, TypeError, AttributeError) as e:
                # An operation that libhdf5 refuses, such as a name that is taken.
                self.refused = f"{operation.__name__}: {e}"


def bounds_of(seed):
    return random.Random(seed).choice(sorted(h5make.BOUNDS))


def edit(path, seed, operations=20):
    libver = {"v108": ("v108", "v108"), "v110": ("v110", "v110"), "latest": "latest",
              "earliest": None}[bounds_of(seed)]
    with h5py.File(path, "r+", libver=libver) as f:
        Editor(f, seed).run(operations)


if __name__ == "__main__":
    edit(sys.argv[1], int(sys.argv[2]), *map(int, sys.argv[3:]))
