# SPDX-License-Identifier: Apache-2.0
"""The example of s3.py: 202 MB in 104 HDF5 objects, as one HDF5 file and as a domain.

One dataset, temperature, has 192 chunks of 1 MiB: float64 noise, which nothing compresses, so the
chunks are stored as they are. Three small datasets are its coordinates; 99 groups are stations.
Every object has two or three attributes. The result is always the same.
"""
import os
import sys

import h5py
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                                "support"))
import mkbucket  # noqa: E402

CHUNKS, SHAPE = 192, (256, 512)      # of temperature: planes of 1 MiB
CHUNK_BYTES = SHAPE[0] * SHAPE[1] * 8
STATIONS = 98
OBJECTS = 104
COORDINATES = {"time": CHUNKS, "lat": SHAPE[0], "lon": SHAPE[1]}
RAW_BYTES = CHUNKS * CHUNK_BYTES + 8 * sum(COORDINATES.values())


def plane(i):
    return np.random.default_rng(i).random(SHAPE)


def coordinate(name):
    return np.linspace(0, 1, COORDINATES[name])


def objects():
    """(path, attributes) of every object, parents first; attributes are text or numbers."""
    yield "/", {"title": "example", "institution": "bench", "version": 1.0}
    yield "/temperature", {"units": "K", "long_name": "air temperature", "scale": 0.5}
    for name in COORDINATES:
        yield f"/{name}", {"units": "1", "standard_name": name}
    yield "/stations", {"network": "synthetic", "count": float(STATIONS)}
    for i in range(STATIONS):
        yield f"/stations/s{i:03}", {"name": f"station {i}", "latitude": i * 0.5,
                                     "height": i * 10.0}


def write_file(path):
    """The example as h5py writes it."""
    with h5py.File(path, "w") as f:
        for name, attributes in objects():
            if name == "/temperature":
                at = f.create_dataset(name, (CHUNKS, *SHAPE), "<f8", chunks=(1, *SHAPE))
                for i in range(CHUNKS):
                    at[i] = plane(i)
            elif name.strip("/") in COORDINATES:
                data = coordinate(name.strip("/"))
                at = f.create_dataset(name, data=data, chunks=data.shape)
            else:
                at = f.require_group(name)
            for key, value in attributes.items():
                at.attrs[key] = value


def make_domain(bucket, path="example.h5"):
    """The same as a domain, its documents written with the bucket."""
    domain = bucket.domain(path)
    made = {"/": domain.root}
    for name, attributes in objects():
        parent, _, last = name.rpartition("/")
        if name == "/temperature":
            at = domain.dataset(made["/"], last, mkbucket.FLOAT64, [CHUNKS, *SHAPE], [1, *SHAPE])
            for i in range(CHUNKS):
                at.chunk((i, 0, 0), plane(i))
        elif last in COORDINATES:
            data = coordinate(last)
            at = domain.dataset(made["/"], last, mkbucket.FLOAT64, [data.size], [data.size])
            at.chunk((0,), data)
        else:
            at = made.get(name) or domain.group(made[parent or "/"], last)
        made[name] = at
        for key, value in attributes.items():
            if isinstance(value, str):
                at.attribute(key, mkbucket.vstring(), [], value)
            else:
                at.attribute(key, mkbucket.FLOAT64, [], value)
    assert len(made) == OBJECTS
    return domain
