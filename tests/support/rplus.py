# SPDX-License-Identifier: Apache-2.0
"""Random changes of an HDF5 file. The same seed makes the same changes of two files with equal
content: each decision depends on the random numbers and on the sorted names of what is there.

A reference to an object that was removed means nothing, and may lead to another object later. So
the changes of a file have either references or removals.

    python3 rplus.py FILE SEED COUNT [libver]
"""
import random
import sys

import h5py
import numpy as np

GROUP, DATASET = h5py.h5o.TYPE_GROUP, h5py.h5o.TYPE_DATASET
TYPES = ("<i4", ">i2", "<f8", "u1", "S5")
TEXTS = ("", "a", "ü", "many words " * 8)


def objects(f, *kinds):
    """Paths of all objects of the kinds (h5py.h5o.TYPE_...), each once, sorted."""
    found = {}

    def visit(name, info):
        if info.type in kinds:
            found.setdefault(info.addr, name.decode())
    h5py.h5o.visit(f.id, visit, info=True)
    return sorted(name for name in found.values() if name != ".")


class Addresses(dict):
    """{path: address of the object} of all hard links of a file, without those that lead from a
    group to itself or to a group above it. by_address: one path of each object."""

    def __init__(self, f):
        super().__init__()
        self.by_address = {}
        self.add("/", f["/"].id)

    def add(self, path, handle):
        address = h5py.h5o.get_info(handle).addr
        self[path] = address
        if address in self.by_address:
            return
        self.by_address[address] = path
        if not isinstance(handle, h5py.h5g.GroupID):
            return
        names = []
        handle.links.iterate(names.append)
        for name in names:
            if handle.links.get_info(name).type == h5py.h5l.TYPE_HARD:
                self.add(f"{path.rstrip('/')}/{name.decode()}", h5py.h5o.open(handle, name))


def addresses(path):
    with h5py.File(path, "r") as f:
        return Addresses(f)


def has_dense_texts(dataset):
    """Whether the dataset may have attributes of variable length in dense storage. It begins with
    more than 8 attributes, and ends with less than 6."""
    return len(dataset.attrs) >= 6 and any(
        dataset.attrs.get_id(name).dtype.hasobject for name in dataset.attrs)


def has_values(dataset):
    """Whether it certainly has a stored chunk, if it has chunks. Domains do not store those that
    have only fill values."""
    if not dataset.chunks:
        return True
    values = dataset[()]
    if dataset.dtype.kind == "O":
        return any(len(v) for v in values.reshape(-1) if not isinstance(v, h5py.Reference))
    return bool((values != dataset.fillvalue).any())


class Changes:
    """is_newer: new objects have the format of 1.8 or a later one.
    removed: the addresses of objects that were removed. A new object may have one of them.
    written: {address of a dataset: [box that was written, or None: any part of it]}."""

    def __init__(self, f, seed, references=False, is_newer=False):
        self.references, self.is_newer = references, is_newer
        self.f, self.random = f, np.random.default_rng(seed)
        self.comments = np.random.default_rng(seed + 1)
        self.seed, self.count, self.removed, self.written = seed, 0, set(), {}

    def pick(self, items):
        return items[int(self.random.integers(len(items)))] if items else None

    def number(self, low, high):
        return int(self.random.integers(low, high))

    def group(self):
        return self.f[self.pick(["/"] + objects(self.f, GROUP))]

    def dataset(self):
        name = self.pick(objects(self.f, DATASET))
        return None if name is None else self.f[name]

    def wrote(self, dataset, box=None):
        """The library writes contiguous data in larger pieces, and heaps as a whole."""
        plain = dataset.chunks and dataset.dtype.kind != "O"
        self.written.setdefault(h5py.h5o.get_info(dataset.id).addr, []).append(
            box if plain else None)

    def name(self):
        self.count += 1
        return f"n{self.number(0, 100)}_{self.seed}_{self.count}"

    def values(self, dtype, shape):
        n = int(np.prod(shape, dtype=np.int64))
        bits = self.random.integers(0, 100, n)
        if dtype == np.dtype("S5"):
            return np.array([f"{b}".encode() for b in bits], dtype="S5").reshape(shape)
        return bits.astype(dtype).reshape(shape)

    # ---- groups and links ----

    def make_group(self):
        self.group().create_group(self.name())

    def soft_link(self):
        self.group()[self.name()] = h5py.SoftLink("/" + self.name())

    def external_link(self):
        self.group()[self.name()] = h5py.ExternalLink("other.h5", "/" + self.name())

    def hard_link(self):
        target = self.dataset()
        if target is not None:
            self.group()[self.name()] = target

    def link_of(self):
        group = self.group()
        name = self.pick(sorted(group))
        return group, name

    def rename(self):
        group, name = self.link_of()
        if name is not None:
            group.move(name, self.name())

    def move(self):
        """To another group, which is not below the object itself."""
        group, name = self.link_of()
        if name is None or not isinstance(group.get(name), h5py.Dataset):
            return
        target = self.group()
        self.f.move(f"{group.name}/{name}", f"{target.name}/{self.name()}")

    def unlink(self, group, name):
        before = set(Addresses(self.f).values())
        del group[name]
        self.removed |= before - set(Addresses(self.f).values())

    def remove(self):
        group, name = self.link_of()
        if name is not None:
            self.unlink(group, name)

    def replace(self):
        """Another object of the same name, often at the place of the first one."""
        group, name = self.link_of()
        if name is not None:
            self.unlink(group, name)
            group.create_dataset(name, data=self.values("<i4", (7,)))

    def copy(self):
        source, group, name = self.dataset(), self.group(), self.name()
        # libhdf5 1.10 crashes when it copies a dataset without chunks of the format of 1.10, or
        # one with data of variable length among so many attributes that they are in a heap.
        if source is not None and has_values(source) and not has_dense_texts(source):
            self.f.copy(source, group, name=name)

    # ---- datasets ----

    def make_chunked(self):
        shape = tuple(self.number(1, 40) for _ in range(self.number(1, 3)))
        chunk = tuple(self.number(1, n + 1) for n in shape)
        options = self.pick([{}, {"compression": "gzip"}, {"shuffle": True, "compression": 4},
                             {"fletcher32": True}, {"fillvalue": 3}])
        self.group().create_dataset(self.name(), data=self.values("<i4", shape), chunks=chunk,
                                    maxshape=(None,) * len(shape), **options)

    def make_contiguous(self):
        dtype = self.pick(TYPES)
        shape = tuple(self.number(1, 30) for _ in range(self.number(0, 3)))
        self.group().create_dataset(self.name(), data=self.values(np.dtype(dtype), shape))

    def make_unwritten(self):
        # Without a fill value, libhdf5 shows what was in the file before.
        self.group().create_dataset(self.name(), shape=(self.number(5, 50),), dtype="<f4",
                                    chunks=self.pick([None, (5,)]), fillvalue=0)

    def make_texts(self):
        n = self.number(1, 12)
        data = [self.pick(TEXTS) for _ in range(n)]
        self.group().create_dataset(self.name(), data=np.array(data, dtype=object),
                                    dtype=h5py.string_dtype(), chunks=(self.number(1, n + 1),),
                                    maxshape=(None,))

    def make_growing(self):
        """A dataset that grows and shrinks in two dimensions."""
        options = self.pick([{}, {"compression": "gzip"}])
        self.group().create_dataset(self.name(), data=self.values("<i2", (6, 10)), chunks=(4, 3),
                                    maxshape=(None, None), **options)

    def make_sequences(self):
        data = np.empty(self.number(1, 9), object)
        for i in range(len(data)):
            data[i] = self.values("<i4", (self.number(0, 6),))
        self.group().create_dataset(self.name(), data=data, dtype=h5py.vlen_dtype("<i4"),
                                    chunks=(3,), maxshape=(None,))

    def make_type(self):
        """A committed type, with a dataset and an attribute of it."""
        where, name = self.group(), self.name()
        where[name] = np.dtype([("a", "<i4"), ("b", ">f8")])
        data = np.array([(self.number(0, 99), 1.5)] * 3, dtype=where[name].dtype)
        self.group().create_dataset(self.name(), data=data, dtype=where[name], chunks=(2,))
        self.owner().attrs.create(self.name(), data, dtype=where[name])

    def make_references(self):
        target = self.dataset()
        if target is None:
            return
        self.group().create_dataset(self.name(), data=np.array([target.ref, self.f.ref]),
                                    dtype=h5py.ref_dtype)

    def make_null(self):
        self.group().create_dataset(self.name(), data=h5py.Empty("<f8"))

    def changeable(self):
        d = self.dataset()
        return None if d is None or d.shape is None or 0 in d.shape else d

    def write(self):
        d = self.changeable()
        if d is None:
            return
        first = [self.number(0, n) for n in d.shape]
        where = tuple(slice(at, self.number(at, n) + 1) for at, n in zip(first, d.shape))
        shape = tuple(w.stop - w.start for w in where)
        self.wrote(d, where)
        if h5py.check_string_dtype(d.dtype) and d.dtype.kind == "O":
            count = int(np.prod(shape, dtype=np.int64))
            flat = [self.pick(TEXTS).encode() for _ in range(count)]
            d[where] = np.array(flat, dtype=object).reshape(shape)
        elif d.dtype.kind in "iuf":
            d[where] = self.values(d.dtype, shape)
        elif d.dtype == np.dtype("S5"):
            d[where] = self.values(d.dtype, shape)

    def resize(self):
        d = self.dataset()
        if d is None or d.shape is None or d.chunks is None or d.maxshape == d.shape:
            return
        shape = [min(self.number(1, 2 * n + 3), m or 200) for n, m in zip(d.shape, d.maxshape)]
        self.wrote(d)
        d.resize(tuple(shape))

    def shrink_and_grow(self):
        """Elements that were outside of the shape for a while have the fill value."""
        d = self.changeable()
        if d is None or d.chunks is None or d.maxshape == d.shape:
            return
        old = d.shape
        self.wrote(d)
        d.resize(tuple(self.number(1, n + 1) for n in old))
        d.resize(old)

    def write_references(self):
        d = self.pick([name for name in objects(self.f, DATASET)
                       if h5py.check_ref_dtype(self.f[name].dtype)])
        target = self.dataset()
        if d is not None and self.f[d].size:
            self.wrote(self.f[d])
            self.f[d][0] = target.ref

    def write_equal_length(self):
        """Other texts and sequences of the same lengths: the elements themselves stay, and what
        they lead to changes."""
        d = self.pick([name for name in objects(self.f, DATASET)
                       if self.f[name].dtype.kind == "O" and self.f[name].size and
                       not h5py.check_ref_dtype(self.f[name].dtype)])
        if d is None:
            return
        d = self.f[d]
        self.wrote(d)
        at, letter = self.number(0, d.size), chr(97 + self.number(0, 26))
        where = np.unravel_index(at, d.shape)
        old = d[where]
        d[where] = old + 1 if isinstance(old, np.ndarray) else letter.encode() * len(old)

    # ---- attributes ----

    def owner(self):
        return self.f[self.pick(["/"] + objects(self.f, GROUP, DATASET))]

    def set_attribute(self):
        value = self.pick([self.number(0, 99), self.pick(TEXTS), self.values("<f8", (3,)),
                           h5py.Empty("<i4")])
        self.owner().attrs[self.pick(["a", "b", "km/h", "ü", self.name()])] = value

    def set_references(self):
        target = self.dataset()
        if target is not None:
            self.owner().attrs["ref"] = target.ref

    def attribute(self):
        owner = self.owner()
        return owner, self.pick(sorted(owner.attrs))

    def remove_attribute(self):
        owner, name = self.attribute()
        if name is not None:
            del owner.attrs[name]

    def rename_attribute(self):
        owner, name = self.attribute()
        if name is not None:
            h5py.h5a.rename(owner.id, name.encode(), self.name().encode())

    def many_attributes(self):
        owner = self.owner()
        few = self.number(2, 12)
        for i in range({2: 40, 3: 66}.get(few, few)):
            owner.attrs[f"many{i}"] = i

    def large_attribute(self):
        """Of more than 64 KiB. The version of the object's header decides whether that is possible,
        so it is a new object."""
        owner, size = self.group().create_group(self.name()), self.number(8193, 8400)
        if self.is_newer:
            owner.attrs["large"] = self.values("<f8", (size,))

    def set_comment(self):
        """Sets, changes or removes the comment of an object. Random numbers of its own leave the
        sequence of the other operations as it is."""
        owners = ["/"] + objects(self.f, GROUP, DATASET)
        owner = self.f[owners[int(self.comments.integers(len(owners)))]]
        texts = b"", b"a comment", b"caf\xe9", "\u00e9".encode() * 200
        h5py.h5o.set_comment(owner.id, texts[int(self.comments.integers(len(texts)))])

    # ---- scales ----

    def attach_scale(self):
        d = self.changeable()
        if d is None or not d.shape or h5py.h5ds.is_scale(d.id):
            return
        scale = self.group().create_dataset(self.name(), data=np.arange(d.shape[0]))
        scale.make_scale("scale")
        d.dims[0].attach_scale(scale)

    ALWAYS = (
        make_group, soft_link, external_link, hard_link, rename, move, copy,
        make_chunked, make_contiguous, make_unwritten, make_texts, make_null, make_growing,
        make_sequences, make_type, write, write, write, write, resize, resize, resize,
        shrink_and_grow, write_equal_length, set_attribute, set_attribute, remove_attribute,
        rename_attribute, many_attributes, large_attribute)
    REMOVALS = (remove, replace, remove, replace, replace)
    REFERENCES = (make_references, write_references, set_references, attach_scale)

    def run(self, count):
        operations = self.ALWAYS + (self.REFERENCES if self.references else self.REMOVALS)
        for _ in range(count):
            operations[self.number(0, len(operations))](self)
            if self.comments.integers(8) == 0:
                self.set_comment()


USER_BLOCKS = 0, 512, 8192, 0       # by seed: none, in a document, an object of its own


def make(path, seed, libver=None):
    """A file without objects. Many have a user block."""
    size = USER_BLOCKS[seed // 3 % len(USER_BLOCKS)]
    h5py.File(path, "w", libver=libver, userblock_size=size).close()
    with open(path, "r+b") as f:
        f.write(random.Random(seed).randbytes(size))


def change(path, seed, count, libver=None, references=False):
    """Returns the Changes, which has the addresses of what was removed and written."""
    with h5py.File(path, "r+", libver=libver) as f:
        changes = Changes(f, seed, references, libver and libver[0] != "earliest")
        changes.run(count)
        return changes


if __name__ == "__main__":
    change(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
