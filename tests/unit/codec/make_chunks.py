#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes libhdf5_chunks.h: chunks that libhdf5 has encoded with its own filters, with the plug-in
of zfp, and h5py with lzf, and what libhdf5 reads from them. Chunks of VBZ are packed with the
library of Stream VByte, because Debian has no plug-in. Run it only to change the cases. It needs
hdf5-filter-plugin-zfp-serial, libstreamvbyte-dev and python3-numcodecs.

    python3 tests/unit/codec/make_chunks.py > tests/unit/codec/libhdf5_chunks.h
    clang-format-14 -i tests/unit/codec/libhdf5_chunks.h
"""
import ctypes
import os
import tempfile

import h5py
import numcodecs
import numpy as np
from h5py import h5d, h5p, h5s, h5t, h5z

H5 = ctypes.CDLL("libhdf5_serial.so.103")
H5.H5Pget_filter2.argtypes = [ctypes.c_int64, ctypes.c_uint] + [ctypes.c_void_p] * 3 + \
    [ctypes.c_size_t] + [ctypes.c_void_p] * 2
PACKER = ctypes.CDLL("libstreamvbyte.so")
LZF, ZFP, VBZ = 32000, 32013, 32020


def params(plist):
    """The filter and its parameters. h5py returns at most 16 of them."""
    n, values, flags = ctypes.c_size_t(256), (ctypes.c_uint * 256)(), ctypes.c_uint()
    number = H5.H5Pget_filter2(plist.id, 0, ctypes.byref(flags), ctypes.byref(n), values, 0, None,
                               None)
    return number, list(values[:n.value])


def hexes(data):
    text = data.hex()
    return "\n".join(f'"{text[i:i + 80]}"' for i in range(0, len(text), 80)) or '""'


def case(name, kind, data, use, fill=None):
    """kind: a datatype of h5py or numpy."""
    file_type = kind if isinstance(kind, h5t.TypeID) else h5t.py_create(np.dtype(kind))
    size, n = file_type.get_size(), data.size
    with tempfile.TemporaryDirectory() as where:
        with h5py.File(os.path.join(where, "f"), "w") as f:
            plist = h5p.create(h5p.DATASET_CREATE)
            plist.set_chunk(data.shape)
            if fill is not None:
                plist.set_fill_value(np.array(fill, dtype=kind))
            use(plist)
            ds = h5d.create(f.id, b"x", file_type, h5s.create_simple(data.shape), plist)
            same = data.dtype.kind == "V"
            ds.write(h5s.ALL, h5s.ALL, data, file_type if same else None)
            del ds
        with h5py.File(os.path.join(where, "f"), "r") as f:
            ds = h5d.open(f.id, b"x")
            number, values = params(ds.get_create_plist())
            mask, stored = ds.read_direct_chunk((0,) * data.ndim)
            assert mask == 0, name
            plain = np.zeros(data.shape, dtype=f"V{size}")
            ds.read(h5s.ALL, h5s.ALL, plain, ds.get_type())
    show(name, number, size, values, stored, plain)


def show(name, number, size, values, stored, plain):
    print(f'{{.name = "{name}", .id = {number}, .elem_size = {size}, .nparams = {len(values)}, '
          f'.params = {{{", ".join(map(str, values)) or 0}}},\n.stored = {hexes(stored)},\n'
          f'.plain = {hexes(plain.tobytes())}}},')


def cut(kind, precision, offset):
    """A number type with fewer bits than its bytes have."""
    t = h5t.py_create(np.dtype(kind)).copy()
    t.set_precision(precision)
    t.set_offset(offset)
    return t


def compound(size, *members):
    t = h5t.create(h5t.COMPOUND, size)
    for name, offset, member in members:
        t.insert(name, offset, member)
    return t


def noise(n, size):
    return np.random.default_rng(n * size).integers(0, 255, n * size, dtype="u1").view(f"V{size}")


def lzf(name, data):
    case("lzf: " + name, data.dtype, data, lambda p: p.set_filter(LZF, 0))


def szip(name, data, option, block):
    case("szip: " + name, data.dtype, data, lambda p: p.set_szip(option, block))


def integer(name, kind, values, bits, fill=None):
    case("scale-offset: " + name, kind, np.array(values, dtype=kind),
         lambda p: p.set_scaleoffset(h5z.SO_INT, bits), fill)


def floating(name, kind, values, digits, fill=None):
    case("scale-offset: " + name, kind, np.array(values, dtype=kind),
         lambda p: p.set_filter(h5z.FILTER_SCALEOFFSET, 0, (0, digits & 0xffffffff)), fill)


def nbit(name, kind, data):
    case("nbit: " + name, kind, data, lambda p: p.set_filter(h5z.FILTER_NBIT, 0))


def zfp(name, data, mode, *limits):
    case("zfp: " + name, data.dtype, data, lambda p: p.set_filter(ZFP, 0, (mode, 0) + limits))


def words(number):
    """A double as parameters of the plug-in of zfp."""
    return tuple(np.array([number], "<f8").view("<u4"))


def halves(numbers):
    """Numbers of 0, 1, 2 or 4 half bytes."""
    lengths = [0 if n == 0 else 1 if n < 16 else 2 if n < 256 else 4 for n in numbers]
    keys = [(0, 1, 2, None, 3)[length] for length in lengths] + [0, 0, 0]
    digits = [n >> 4 * k & 15 for n, length in zip(numbers, lengths) for k in range(length)] + [0]
    return bytes(keys[i] | keys[i + 1] << 2 | keys[i + 2] << 4 | keys[i + 3] << 6
                 for i in range(0, len(numbers), 4)) + \
        bytes(digits[i] | digits[i + 1] << 4 for i in range(0, len(digits) - 1, 2))


def vbz(name, data, version, delta, level=None):
    values, n = data.astype("<i4"), data.size
    packed = np.zeros(8 * n + 32, "u1")
    if delta:
        zigzag = np.zeros(n, "<u4")
        PACKER.zigzag_delta_encode(values.ctypes, zigzag.ctypes, ctypes.c_size_t(n), 0)
        values = zigzag
    if version == 1 and data.itemsize == 1:
        stored = halves([int(v) & 0xffff for v in values])
    else:
        PACKER.streamvbyte_encode.restype = ctypes.c_size_t
        length = PACKER.streamvbyte_encode(values.ctypes, n, packed.ctypes)
        stored = packed[:length].tobytes()
    if level != 0:
        stored = numcodecs.Zstd(level or 1).encode(stored)
    given = [version, data.itemsize, int(delta)] + ([] if level is None else [level])
    show("vbz: " + name, VBZ, data.itemsize, given, data.nbytes.to_bytes(4, "little") + stored,
         data)


def main():
    print("/* SPDX-License-Identifier: Apache-2.0 */\n/* Made by make_chunks.py with libhdf5 "
          f"{h5py.version.hdf5_version} and h5py {h5py.version.version}. */")
    print("static const struct chunk_case libhdf5_chunks[] = {")
    lzf("words", np.frombuffer(b"the cat and the dog and the cow and the cat", "u1"))
    lzf("long run", np.zeros(300, "u1"))
    lzf("ramp", np.arange(20, dtype="<i8"))
    for kind in ("u1", ">i2", "<i4", "<f8"):
        values = (np.arange(150) // 9 + np.arange(150) % 2).astype(kind)
        szip(f"entropy coding of {kind}", values, h5z.SZIP_EC_OPTION_MASK, 8)
        szip(f"nearest neighbour of {kind}", values, h5z.SZIP_NN_OPTION_MASK, 16)
    integer("no fill value", "<i2", [7, -3, 5, 100, 0, 20], 0)
    integer("fill value", ">i4", [7, -3, 5, 99, 99, 20], 0, 99)
    integer("given bits", "u1", [1, 2, 3, 4, 250, 6], 3)
    integer("all bits in the header", "<i8", [-2**63, 2**63 - 1, 0], 0)
    integer("all bits, big-endian", ">u2", [0, 65535, 77], 0)
    integer("all bits asked for", ">u2", [0, 65535, 77], 16)
    integer("one value", "<u4", [5] * 7, 0)
    integer("63 bits", "<i8", [0, 2**62, 3, 2**62 + 1], 0, 3)
    floating("float, 2 digits", "<f4", [1.234, -5.5, 3.14159, 0], 2)
    floating("float, -1 digits", ">f4", [1234, 55, 3141, 0], -1)
    floating("double with a fill value", ">f8", [1.5, 7, 2.25, 7], 3, 7)
    low = cut("<i4", 11, 5)
    high = cut(">i2", 9, 0)
    text = h5t.py_create(np.dtype("S3"))
    inner = compound(12, (b"p", 0, high), (b"q", 4, low), (b"s", 9, text))
    nbit("little-endian with an offset", low, np.arange(-20, 20, 3).astype("<i4"))
    nbit("big-endian", high, np.arange(-200, 200, 30).astype(">i2"))
    nbit("60 bits", cut("<i8", 60, 2), (np.arange(9, dtype="<i8") - 4) << 55)
    nbit("nothing to pack", "<i4", np.arange(5, dtype="<i4"))
    nbit("of 16 bytes", h5t.NATIVE_LDOUBLE, noise(3, 16))
    nbit("array", h5t.array_create(low, (3, 2)), noise(4, 24))
    nbit("compound", inner, noise(5, 12))
    nbit("array of compounds", h5t.array_create(inner, (2,)), noise(5, 24))
    nbit("array of arrays in front of a member",
         compound(20, (b"a", 1, h5t.array_create(h5t.array_create(high, (3,)), (2,))),
                  (b"b", 14, low)), noise(4, 20))
    nbit("array of strings in front of a member",
         compound(14, (b"a", 1, h5t.array_create(text, (3,))), (b"b", 10, low)), noise(4, 14))
    wave = np.round(np.sin(np.arange(60) / 5) * 1000)
    zfp("rate, 1 dimension", wave.astype("<f8"), 1, *words(12.0))
    zfp("precision, 2 dimensions", wave.reshape(6, 10).astype("<f4"), 2, 14)
    zfp("accuracy, 3 dimensions", wave.reshape(3, 4, 5).astype("<f4"), 3, *words(0.5))
    zfp("lossless, 4 dimensions", wave.reshape(2, 3, 2, 5).astype("<f8"), 5)
    zfp("lossless integers", wave.astype("<i4"), 5)
    zfp("rate, wide integers", wave.reshape(5, 12).astype("<i8") << 33, 1, *words(16.0))
    zfp("limits", wave.reshape(12, 5).astype("<f8"), 4, 100, 2000, 40, -6 & 0xffffffff)
    zfp("dimensions of 1", wave[:9].reshape(1, 9, 1).astype("<i4") + 7, 5)
    signal = (wave / 3 + np.arange(60) % 7).astype("<i2")
    jumps = np.array([0, 32767, -32768, 5, -5, 127, -128], "<i2")
    for version in (0, 1):
        vbz(f"signal, version {version}", signal, version, True, 1)
        vbz(f"bytes, version {version}", (signal[:13] & 127).astype("i1"), version, True, 0)
        vbz(f"far bytes, version {version}", np.array([127, -128, 0, 0, 3], "i1"), version, True, 0)
        vbz(f"bytes without differences, version {version}", jumps.astype("i1"), version, False)
    vbz("jumps", jumps, 0, True)
    vbz("jumps without differences", jumps, 0, False, 0)
    vbz("4 bytes", np.array([5, 4, 3, 2, 1, -2**31, 2**31 - 1, 70000], "<i4"), 1, True, 0)
    print("};")


if __name__ == "__main__":
    main()
