# SPDX-License-Identifier: Apache-2.0
"""Reads an HDF5 file in the neutral form of `oracle`: types are tuples, elements are its bytes.

The memory type of every read is the type in the file. So libhdf5 converts nothing, and no
conversion can hide a wrong byte order, padding or enum value. h5py cannot do that for
variable-length data, so H5Dread and H5Aread of the library that h5py has loaded are called
directly.
"""
import ctypes
import math

import h5py
import numpy as np
from h5py import h5t

import oracle


def loaded_library():
    with open("/proc/self/maps", encoding="ascii", errors="replace") as f:
        for line in f:
            path = line.rsplit(" ", 1)[-1].strip()
            if "libhdf5" in path and "_hl" not in path and "/libhdf5" in path:
                return ctypes.CDLL(path)
    raise RuntimeError("h5py has loaded no libhdf5")


_lib = loaded_library()
_hid = ctypes.c_int64
_lib.H5Dread.argtypes = [_hid, _hid, _hid, _hid, _hid, ctypes.c_void_p]
_lib.H5Aread.argtypes = [_hid, _hid, ctypes.c_void_p]
_lib.H5Oget_comment.argtypes = [_hid, ctypes.c_char_p, ctypes.c_size_t]
_lib.H5Oget_comment.restype = ctypes.c_ssize_t

PADS = {h5t.STR_NULLTERM: "nullterm", h5t.STR_NULLPAD: "nullpad", h5t.STR_SPACEPAD: "spacepad"}


def text(name):
    """Names in a type may have any bytes."""
    return name.decode("utf-8", "surrogateescape")


def comment(handle):
    """The comment of an object; b"" if it has none. h5py.h5o.get_comment() returns other bytes."""
    size = _lib.H5Oget_comment(handle.id, None, 0)
    if size < 0:
        raise RuntimeError("H5Oget_comment")
    buffer = ctypes.create_string_buffer(size + 1)
    _lib.H5Oget_comment(handle.id, buffer, size + 1)
    return buffer.value


def type_of(tid):
    """TypeID -> the same tuple as oracle.parse_type returns for a type document."""
    cls = tid.get_class()
    big = cls in (h5t.INTEGER, h5t.FLOAT) and tid.get_order() == h5t.ORDER_BE
    if cls == h5t.INTEGER:
        signed = tid.get_sign() == h5t.SGN_2
        name = f"STD_{'I' if signed else 'U'}{8 * tid.get_size()}{'BE' if big else 'LE'}"
        if not hasattr(h5t, name) or not tid.equal(getattr(h5t, name)):
            return ("odd integer", name, tid.get_offset(), tid.get_precision())
        return ("int", tid.get_size(), signed, big and tid.get_size() > 1)
    if cls == h5t.FLOAT:
        name = f"IEEE_F{8 * tid.get_size()}{'BE' if big else 'LE'}"
        if not hasattr(h5t, name) or not tid.equal(getattr(h5t, name)):
            return ("odd float", tid.get_fields(), tid.get_ebias())
        return ("float", tid.get_size(), big)
    if cls == h5t.STRING:
        pad = PADS[tid.get_strpad()]
        cset = "utf8" if tid.get_cset() == h5t.CSET_UTF8 else "ascii"
        if tid.is_variable_str():
            return ("vstring", pad, cset)
        return ("string", tid.get_size(), pad, cset)
    if cls == h5t.OPAQUE:
        return ("opaque", tid.get_size(), text(tid.get_tag()))
    if cls == h5t.REFERENCE:
        return ("ref",) if tid.equal(h5t.STD_REF_OBJ) else ("odd reference",)
    if cls == h5t.ENUM:
        return ("enum", type_of(tid.get_super()), tuple(sorted(
            (text(tid.get_member_name(i)), tid.get_member_value(i))
            for i in range(tid.get_nmembers()))))
    if cls == h5t.COMPOUND:
        return ("compound", tuple((text(tid.get_member_name(i)), type_of(tid.get_member_type(i)))
                                  for i in range(tid.get_nmembers())))
    if cls == h5t.ARRAY:
        return ("array", tid.get_array_dims(), type_of(tid.get_super()))
    if cls == h5t.VLEN:
        return ("vlen", type_of(tid.get_super()))
    return ("class", cls)


def is_packed(tid):
    """True if no compound has gaps; those in the bucket have none."""
    cls = tid.get_class()
    if cls in (h5t.ARRAY, h5t.VLEN):
        return is_packed(tid.get_super())
    if cls != h5t.COMPOUND:
        return True
    at = 0
    for i in range(tid.get_nmembers()):
        member = tid.get_member_type(i)
        if tid.get_member_offset(i) != at or not is_packed(member):
            return False
        at += member.get_size()
    return at == tid.get_size()


def one_byte_orders(t):
    """Ignores the byte order of types of one byte, which can be either in a document."""
    if t[0] == "int" and t[1] == 1:
        return ("int", 1, t[2], False)
    if t[0] == "enum":
        return ("enum", one_byte_orders(t[1]), t[2])
    if t[0] == "compound":
        return ("compound", tuple((n, one_byte_orders(m)) for n, m in t[1]))
    if t[0] == "array":
        return ("array", t[1], one_byte_orders(t[2]))
    if t[0] == "vlen":
        return ("vlen", one_byte_orders(t[1]))
    return t


class Reader:
    """Reads datasets and attributes of one open file. ids: address of an HDF5 object -> its id."""

    def __init__(self, ids):
        self.ids = ids

    def element(self, tid, at):
        """The element of type tid at a memory address, in neutral form."""
        cls = tid.get_class()
        if cls == h5t.STRING and tid.is_variable_str():
            pointer = ctypes.c_void_p.from_address(at).value
            return ctypes.string_at(pointer) if pointer else None
        if cls == h5t.VLEN:
            count = ctypes.c_size_t.from_address(at).value
            pointer = ctypes.c_void_p.from_address(at + 8).value
            base = tid.get_super()
            n = base.get_size()
            if oracle.is_plain(type_of(base)):
                return ctypes.string_at(pointer, count * n) if count else b""
            return [self.element(base, pointer + i * n) for i in range(count)]
        if cls == h5t.REFERENCE:
            address = ctypes.c_uint64.from_address(at).value
            return self.ids.get(address, f"address {address}") if address else None
        if cls == h5t.COMPOUND and not oracle.is_plain(type_of(tid)):
            return tuple(self.element(tid.get_member_type(i), at + tid.get_member_offset(i))
                         for i in range(tid.get_nmembers()))
        if cls == h5t.ARRAY and not oracle.is_plain(type_of(tid)):
            base = tid.get_super()
            n = base.get_size()
            return [self.element(base, at + i * n) for i in range(math.prod(tid.get_array_dims()))]
        return ctypes.string_at(at, tid.get_size())

    def neutral(self, tid, shape, read):
        if shape is None:
            return None
        n = tid.get_size()
        raw = np.zeros(math.prod(shape) * n, "u1")
        if raw.size and read(raw.ctypes.data) < 0:
            raise OSError("libhdf5 failed to read")
        if oracle.is_plain(type_of(tid)):
            return raw.view(f"V{n}").reshape(shape)
        return [self.element(tid, raw.ctypes.data + i * n) for i in range(math.prod(shape))]

    def dataset(self, ds):
        tid = ds.id.get_type()
        return self.neutral(tid, ds.shape, lambda p: _lib.H5Dread(ds.id.id, tid.id, 0, 0, 0, p))

    def attribute(self, aid):
        tid, space = aid.get_type(), aid.get_space()
        null = space.get_simple_extent_type() == h5py.h5s.NULL
        shape = None if null else space.get_simple_extent_dims()
        return self.neutral(tid, shape, lambda p: _lib.H5Aread(aid.id, tid.id, p))
