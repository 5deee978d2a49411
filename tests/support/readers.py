# SPDX-License-Identifier: Apache-2.0
"""Compares what readers of HDF5 files find in a file and in the image of the domain that was made
from it. The readers: libhdf5 1.12 to 2.0 in five versions of the npm package h5wasm, jsfive, which
is a reader of its own, and h5py. An item is what a reader finds in one place: the links of a group,
the shape or the elements of a dataset, the names of attributes, the value of an attribute.

A reader may fail on an item of the source, or find something else in it than h5py does: many
readers lack types, filters or forms of the format. Such an item is a fault of the reader and is
left out. All other items must be the same in the image."""
import hashlib
import json
import re

import h5py
import numpy as np

import wasm

H5WASM = ("h5wasm-0.4", "h5wasm-0.6", "h5wasm-0.7", "h5wasm-0.8", "h5wasm")
READERS = (*H5WASM, "jsfive", "h5py")
TYPED = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")
BIG = re.compile("-?[0-9]+n")    # an integer of 64 bits
ELEMENTS_MAX = 500000    # larger datasets are not read
# jsfive has no fill values. An image lacks chunks that have only fill values in the source.
NO_FILL_VALUES = {"failure": "Error: elements without a value"}


def objects_of(path):
    """The paths of the objects in a file, each once, that are text and not too large."""
    found = ["/"]

    def add(name, o):
        elements = o.size or 0 if isinstance(o, h5py.Dataset) else 0
        if name.isprintable() and elements <= ELEMENTS_MAX:
            found.append(f"/{name}")
    with h5py.File(path, "r") as f:
        f.visititems(add)
    return found


# ---- h5py ----

def has_addresses(dtype):
    """True if elements contain references, which readers show as addresses."""
    if h5py.check_ref_dtype(dtype):
        return True
    if dtype.names:
        return any(has_addresses(dtype[name]) for name in dtype.names)
    inner = dtype.subdtype[0] if dtype.subdtype else h5py.check_vlen_dtype(dtype)
    return bool(inner) and not isinstance(inner, type) and has_addresses(inner)


def text_of(value):
    return (value.decode("utf-8", "replace") if isinstance(value, bytes) else value or "")


def number_of(value):
    if isinstance(value, np.floating):
        value = float(value)
        return value if np.isfinite(value) else repr(value).replace("nan", "NaN").replace(
            "inf", "Infinity")
    return int(value)


def value_of(data, dtype):
    """As contents.mjs shows it; None: readers show it in different ways; "addresses"."""
    if has_addresses(dtype):
        return "addresses"
    if isinstance(data, h5py.Empty):
        return None
    data = np.asarray(data)
    if h5py.check_string_dtype(dtype):
        return [text_of(v) for v in data.reshape(-1).tolist()]
    if dtype.kind == "O":    # lists: old versions of h5wasm, and jsfive, show addresses
        return [json.dumps(v.tolist(), separators=(",", ":")) for v in data.reshape(-1)]
    if dtype.kind not in "iuf" or h5py.check_enum_dtype(dtype) or \
            f"{dtype.kind}{dtype.itemsize}" not in TYPED:
        return None
    native = np.ascontiguousarray(data.astype(data.dtype.newbyteorder("=")))
    return {"digest": hashlib.sha256(native).hexdigest(),
            "list": [number_of(v) for v in native.reshape(-1)[:100]]}


def attempt(read):
    try:
        return read()
    except (OSError, TypeError, ValueError, KeyError, RuntimeError) as e:
        return {"failure": str(e)}


def attributes_of(o):
    def value(name):
        a = o.attrs.get_id(name)
        return value_of(o.attrs[name], a.dtype)
    return {name: attempt(lambda n=name: value(n)) for name in o.attrs}


def read_h5py(path, objects):
    out = {"path": path, "objects": {}}
    with h5py.File(path, "r") as f:
        for name in objects:
            o, found = f[name], {}
            found["attributes"] = attempt(lambda: attributes_of(o))
            if isinstance(o, h5py.Group):
                found["links"] = sorted(o)
            if isinstance(o, h5py.Dataset):
                found["shape"] = list(o.shape) if o.shape is not None else None
                found["value"] = attempt(lambda: value_of(o[()], o.dtype))
            out["objects"][name] = found
    return out


def read(reader, tasks):
    """tasks: pairs of a path and its objects. Returns what the reader finds, by path."""
    if reader == "h5py":
        return {path: read_h5py(path, objects) for path, objects in tasks}
    found = wasm.node("contents.mjs", [{"path": path, "objects": objects}
                                       for path, objects in tasks], reader)
    return {f["path"]: f for f in found}


# ---- comparing ----

def items(found, attributes_max=None):
    """The items of a file, by place. Objects with more attributes come without them."""
    for path, o in found["objects"].items():
        for key in ("links", "shape", "value", "failure"):
            if key in o:
                yield (path, key), o[key]
        attributes = o.get("attributes", {})
        if attributes_max is not None and len(attributes) > attributes_max:
            continue
        if "failure" in attributes and isinstance(attributes["failure"], str):
            yield (path, "attributes"), attributes
            continue
        yield (path, "attributes"), sorted(attributes)
        for name, value in attributes.items():
            yield (path, "attribute", name), value


def failed(item):
    return isinstance(item, dict) and "failure" in item


def number(v):
    return int(v[:-1]) if isinstance(v, str) and BIG.fullmatch(v) else v


def same(item, truth):
    """truth: as h5py finds it."""
    if isinstance(truth, dict) and "list" in truth:
        if isinstance(item, dict):
            return item.get("digest") == truth["digest"]
        return isinstance(item, list) and [number(v) for v in item[:100]] == truth["list"]
    return item == truth


def differences(source, image, truth, attributes_max=None):
    """What a reader finds in the image and not in the source. truth: what h5py finds in the source.
    Objects with more attributes are compared without these. Returns a list of texts and the numbers
    of items that were compared and left out."""
    truth = dict(items(truth, attributes_max))
    ours, theirs = dict(items(image)), dict(items(source))
    found, compared, left_out = [], 0, 0
    for place, is_true in truth.items():
        if is_true == "addresses":
            continue
        before, now = theirs.get(place), ours.get(place)
        if before is None or failed(before) or (is_true is not None and not same(before, is_true)):
            left_out += 1
            continue
        compared += 1
        if now not in (before, NO_FILL_VALUES):
            found.append(f"{place}: {json.dumps(now)[:200]}, in the source "
                         f"{json.dumps(before)[:200]}")
    return found, compared, left_out
