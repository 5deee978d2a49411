# SPDX-License-Identifier: Apache-2.0
"""Random changes of netCDF-4 files by the library of netCDF and by NCO. The same seed makes the
same changes of two files with equal content."""
import os

import netCDF4
import numpy as np

from mounts import run

ZLIB = {"zlib": True, "complevel": 3, "shuffle": True}


def make(path, seed):
    """A file with an unlimited dimension, coordinates, groups and texts."""
    with netCDF4.Dataset(path, "w", format="NETCDF4") as f:
        f.createDimension("t", None)
        f.createDimension("x", 6)
        f.createDimension("y", 5)
        f.createVariable("t", "<f8", ("t",))[:] = np.arange(4)
        f.createVariable("x", "<f4", ("x",))[:] = np.arange(6)
        f.createVariable("v", "<i4", ("t", "x"), chunksizes=(2, 4))[:] = \
            np.arange(24).reshape(4, 6) + seed
        f.createVariable("z", "<f8", ("t", "y", "x"), **ZLIB)[:] = \
            np.arange(120.).reshape(4, 5, 6) % 7
        f.createVariable("fixed", "i2", ("y", "x"))[:] = seed
        f.createVariable("words", str, ("x",))[:] = np.array(list("abcdef"), dtype=object)
        f["v"].units = "m"
        g = f.createGroup("g")
        g.createVariable("w", "u1", ("x",), fill_value=9)[2:4] = 1
        f.title = "a title"


class Changes:
    def __init__(self, f, seed):
        self.f, self.seed, self.random = f, seed, np.random.default_rng(seed)
        self.count = 0

    def number(self, low, high):
        return int(self.random.integers(low, high))

    def pick(self, items):
        return items[self.number(0, len(items))]

    def name(self):
        self.count += 1
        return f"n{self.seed}_{self.count}"

    def variable(self, *dimensions):
        names = sorted(n for n, v in self.f.variables.items()
                       if v.dtype is not str and set(dimensions) <= set(v.dimensions))
        return self.f.variables[self.pick(names)]

    def append(self):
        """A record of every variable grows with the first one that is written."""
        v = self.variable("t")
        n = len(self.f.dimensions["t"])
        v[n:n + self.number(1, 4)] = self.number(0, 99)

    def write(self):
        v = self.variable()
        if v.size:
            first = self.number(0, v.shape[0])
            v[first:first + self.number(1, 4)] = self.number(0, 99)

    def write_words(self):
        at, letter = self.number(0, 6), chr(97 + self.number(0, 26))
        self.f["words"][at] = letter * len(self.f["words"][at] or "x")

    def set_attribute(self):
        owner = self.pick([self.f, self.variable(), self.f["g"]])
        owner.setncattr(self.pick(["units", "a", self.name()]),
                        self.pick(["text", self.number(0, 9), np.arange(3.), "ü" * 30]))

    def many_attributes(self):
        self.variable().setncatts({f"many{i}": self.number(0, 9) for i in range(12)})

    def remove_attribute(self):
        owner = self.variable()
        names = sorted(set(owner.ncattrs()) - {"_FillValue"})
        if names:
            owner.delncattr(self.pick(names))

    def new_variable(self):
        more = self.pick([{}, ZLIB, {"chunksizes": (3, 2)}, {"fill_value": 7}])
        v = self.f.createVariable(self.name(), "<i4", ("t", "x"), **more)
        if self.number(0, 3):
            v[0:2] = self.number(0, 99)

    def new_dimension(self):
        name = self.name()
        self.f.createDimension(name, self.number(1, 9))
        self.f.createVariable(name, "<f4", (name,))[:] = self.number(0, 99)

    def new_group(self):
        g = self.f.createGroup(f"g/{self.name()}")
        g.createVariable("w", "<f8", ("x",))[1:3] = self.number(0, 99)

    EVERY = (append, append, write, write, write, write_words, set_attribute, set_attribute,
             many_attributes, remove_attribute, new_variable, new_dimension, new_group)


def change(path, seed, count):
    with netCDF4.Dataset(path, "a") as f:
        changes = Changes(f, seed)
        for _ in range(count):
            changes.EVERY[changes.number(0, len(changes.EVERY))](changes)


def write_side_file(path, seed):
    """For ncks -A."""
    with netCDF4.Dataset(path, "w", format="NETCDF4") as f:
        f.createDimension("x", 6)
        f.createVariable("fromside", "<i4", ("x",))[:] = np.arange(6) * seed
        f.createVariable("x", "<f4", ("x",))[:] = np.arange(6) + seed % 3


def commands(seed, side):
    """Up to three commands of NCO. The name of the file is the last word that each of them gets."""
    random = np.random.default_rng(seed)
    every = (["ncatted", "-h", "-a", f"units,v,o,c,metres {seed}"],
             ["ncatted", "-h", "-a", f"new{seed},global,c,d,1.5", "-a", "title,global,d,,"],
             ["ncatted", "-h", "-a", f"long,z,o,c,{'many words ' * 9}"],
             ["ncks", "-h", "-A", os.fspath(side)],
             ["ncrename", "-h", "-v", f".fromside,renamed{seed}"],
             ["ncrename", "-h", "-a", f".units,units{seed}"],
             ["ncrename", "-h", "-d", f".y,y{seed}"])
    return [every[int(random.integers(len(every)))] for _ in range(int(random.integers(1, 4)))]


def run_command(path, command):
    """Returns the exit status. In the directory of the file, where NCO makes temporary files."""
    where, name = os.path.split(os.fspath(path))
    return run(*command, name, cwd=where).returncode
