# SPDX-License-Identifier: Apache-2.0
"""The tasks on the example, for h5py and other programs. Each task gets the arguments of h5py.File,
runs in its own process, and returns the seconds from before the file is opened until it is closed,
the seconds until the file was `opened`, and a checksum of the data. The seconds do not include the
time of the checksum."""
import multiprocessing
import os
import subprocess
import tempfile
import time
import zlib

import h5py
import numpy as np

import example

PATIENCE = 300      # seconds
STRIDE = 3
EIGHT = 8
SETTLED = 0.5      # seconds until chunks that were prefetched have arrived


def in_child(task, path, h5py_options):
    """Returns the result of the task, or an error. A child that hangs is killed."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(False)
    child = context.Process(target=lambda: theirs.send(task(path, h5py_options)))
    child.start()
    theirs.close()
    try:
        if not ours.poll(PATIENCE):
            raise TimeoutError(f"{task.__name__} takes too long")
        return ours.recv()
    except EOFError:
        raise RuntimeError(f"{task.__name__} failed") from None
    finally:
        child.kill()
        child.join()


def checksum(*arrays):
    crc = 0
    for a in arrays:
        crc = zlib.crc32(np.ascontiguousarray(a), crc)
    return crc


def list_objects(path, options):
    """Every object's kind, shape and type, and every attribute's value."""
    found = {}

    def visit(name, obj):
        what = (obj.shape, obj.dtype) if isinstance(obj, h5py.Dataset) else None
        found[name] = what, dict(obj.attrs)
    start = time.monotonic()
    with h5py.File(path, "r", **options) as f:
        visit("/", f)
        f.visititems(visit)
    seconds = time.monotonic() - start
    assert len(found) == example.OBJECTS
    return {"seconds": seconds, "check": sorted((k, len(v[1])) for k, v in found.items())}


def one_chunk(path, options):
    start = time.monotonic()
    with h5py.File(path, "r", **options) as f:
        opened = time.monotonic() - start
        plane = f["temperature"][100]
    return {"seconds": time.monotonic() - start, "opened": opened, "check": checksum(plane)}


def short_slab(path, options):
    """EIGHT chunks in a row, from the middle of the dataset."""
    start = time.monotonic()
    with h5py.File(path, "r", **options) as f:
        opened = time.monotonic() - start
        planes = f["temperature"][50:50 + EIGHT]
    seconds = time.monotonic() - start
    time.sleep(SETTLED)
    return {"seconds": seconds, "opened": opened, "check": checksum(planes)}


def strided_slices(path, options):
    """Every third chunk, with one slice each. `marks` gets the time at which each has arrived."""
    planes, marks = [], []
    start = time.monotonic()
    with h5py.File(path, "r", **options) as f:
        opened = time.monotonic() - start
        data = f["temperature"]
        for i in range(0, example.CHUNKS, STRIDE):
            planes.append(data[i])
            marks.append(time.monotonic() - start)
    return {"seconds": time.monotonic() - start, "opened": opened, "marks": marks,
            "check": checksum(*planes)}


def strided_slab(path, options):
    """The same chunks with one hyperslab."""
    start = time.monotonic()
    with h5py.File(path, "r", **options) as f:
        opened = time.monotonic() - start
        planes = f["temperature"][::STRIDE]
    return {"seconds": time.monotonic() - start, "opened": opened, "check": checksum(planes)}


def read_all(path, options):
    """Each dataset whole."""
    start = time.monotonic()
    with h5py.File(path, "r", **options) as f:
        opened = time.monotonic() - start
        arrays = [f[name][...] for name in (*example.COORDINATES, "temperature")]
    return {"seconds": time.monotonic() - start, "opened": opened, "check": checksum(*arrays)}


def copy(path, options):
    """Copies the file into memory with cp."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        to = os.path.join(directory, "copy.h5")
        start = time.monotonic()
        subprocess.run(["cp", path, to], check=True, timeout=PATIENCE)
        seconds = time.monotonic() - start
        return {"seconds": seconds, "check": read_all(to, {})["check"]}


def dump_headers(path, options):
    start = time.monotonic()
    done = subprocess.run(["h5dump", "-H", path], check=True, timeout=PATIENCE,
                          stdout=subprocess.PIPE)
    return {"seconds": time.monotonic() - start, "check": done.stdout.count(b"DATASET ")}


TASKS = {
    "list": list_objects,
    "one chunk": one_chunk,
    "8 chunks": short_slab,
    "64 chunks": strided_slices,
    "64 chunks, one slab": strided_slab,
    "all": read_all,
    "cp": copy,
}


def wanted(task):
    """The number of data bytes that a task reads."""
    return {"one chunk": example.CHUNK_BYTES, "8 chunks": EIGHT * example.CHUNK_BYTES,
            "64 chunks": 64 * example.CHUNK_BYTES,
            "64 chunks, one slab": 64 * example.CHUNK_BYTES, "all": example.RAW_BYTES,
            "cp": example.RAW_BYTES}.get(task, 0)
