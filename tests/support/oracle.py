# SPDX-License-Identifier: Apache-2.0
"""A second reader of a bucket (schema v1 and v2): the oracle of the integration tests.

It shares no code with the programs, and it is short because it reads everything at once. It returns
data in *neutral form*, into which `h5raw` converts an HDF5 file:

  type     nested tuples, see `parse_type`
  element  of a plain type (no variable length, no reference inside): its bytes, as in a file;
           otherwise: compound -> tuple of elements, array -> list, vlen -> list of elements (or
           the bytes of all if the base is plain), vlen string -> bytes, or None if it has no
           value, reference -> object id or None
  data     plain: numpy array of void with the dataset's shape; otherwise a flat list of elements
"""
import base64
import hashlib
import json
import math
import os
import struct
import zlib

import numcodecs
import numpy as np

PARTITION_PRIMES = (29, 31, 37, 41, 43, 47, 53, 59, 61, 67)
DOCUMENT = {"g": ".group.json", "d": ".dataset.json", "t": ".datatype.json"}
PADS = {"H5T_STR_NULLTERM": "nullterm", "H5T_STR_NULLPAD": "nullpad",
        "H5T_STR_SPACEPAD": "spacepad"}


# ---- keys ----

def is_v1(oid):
    """Ids of schema v1 are UUIDs: their second group has 4 digits instead of 8."""
    return len(oid.split("-")[2]) == 4


def hashed(name):
    """Key of schema v1."""
    return hashlib.md5(name.encode()).hexdigest()[:5] + "-" + name


def is_root(oid):
    digits = oid[2:].replace("-", "")
    return oid[0] == "g" and digits[16:] == "".join(
        f"{(int(c, 16) + 8) % 16:x}" for c in digits[:16])


def storage_key(oid):
    """Directory of an object: "db/8-8" for a root group, "db/8-8/d/4-6-6" for a dataset."""
    h = oid[2:].replace("-", "")
    base = f"db/{h[:8]}-{h[8:16]}"
    return base if is_root(oid) else f"{base}/{oid[0]}/{h[16:20]}-{h[20:26]}-{h[26:]}"


def document_key(oid):
    if is_v1(oid):
        return hashed(oid)
    return f"{storage_key(oid)}/{DOCUMENT[oid[0]]}"


def chunk_key(oid, index, partitions=0):
    part = ""
    k = sum(i * PARTITION_PRIMES[d % 10] for d, i in enumerate(index)) % max(partitions or 1, 1)
    if is_v1(oid):
        which = f"c{k}" if partitions and partitions > 1 else "c"
        return hashed(which + oid[1:] + "".join(f"_{i}" for i in index))
    if partitions and partitions > 1:
        part = f"p{k}/"
    return f"{storage_key(oid)}/{part}" + "_".join(map(str, index))


def reference_id(text):
    """"datasets/d-…" -> "d-…"; anything else, the empty reference included -> None."""
    if isinstance(text, bytes):
        text = text.rstrip(b"\0 ").decode("latin-1")
    text = (text or "").rpartition("/")[2]
    return text if len(text) == 38 and text[:2] in ("g-", "d-", "t-") else None


# ---- types ----

def parse_base(name):
    kind, _, form = name.removeprefix("H5T_").partition("_")
    big = form.endswith("BE")
    bits = int(form[1:].removesuffix("BE").removesuffix("LE"))
    if kind == "IEEE":
        return ("float", bits // 8, big)
    return ("int", bits // 8, form[0] == "I", big)


def parse_type(t):
    """Type JSON -> ("int", size, signed, big) ("float", size, big) ("string", size, pad, cset)
    ("vstring", pad, cset) ("opaque", size, tag) ("ref",) ("enum", base, ((name, value) …))
    ("compound", ((name, type) …)) ("array", dims, base) ("vlen", base)."""
    if isinstance(t, str):
        return parse_base(t)
    cls = t["class"]
    if cls in ("H5T_INTEGER", "H5T_FLOAT"):
        return parse_base(t["base"])
    if cls == "H5T_STRING":
        pad = PADS[t.get("strPad", "H5T_STR_NULLPAD")]
        cset = "utf8" if t.get("charSet") == "H5T_CSET_UTF8" else "ascii"
        if t["length"] == "H5T_VARIABLE":
            return ("vstring", pad, cset)
        return ("string", t["length"], pad, cset)
    if cls == "H5T_OPAQUE":
        return ("opaque", t["size"], t.get("tag", ""))
    if cls == "H5T_REFERENCE":
        return ("ref",)
    if cls == "H5T_ENUM":
        return ("enum", parse_type(t["base"]), tuple(sorted(t["mapping"].items())))
    if cls == "H5T_COMPOUND":
        return ("compound", tuple((f["name"], parse_type(f["type"])) for f in t["fields"]))
    if cls == "H5T_ARRAY":
        dims = t["dims"] if isinstance(t["dims"], list) else [t["dims"]]
        return ("array", tuple(dims), parse_type(t["base"]))
    if cls == "H5T_VLEN":
        return ("vlen", parse_type(t["base"]))
    raise ValueError(f"type class {cls}")


def is_plain(t):
    if t[0] in ("vlen", "vstring", "ref"):
        return False
    if t[0] == "compound":
        return all(is_plain(m) for _, m in t[1])
    return is_plain(t[2]) if t[0] == "array" else True


def has_vlen(t):
    if t[0] == "compound":
        return any(has_vlen(m) for _, m in t[1])
    return has_vlen(t[2]) if t[0] == "array" else t[0] in ("vlen", "vstring")


def size_of(t, ref=48):
    """Size of one element without variable parts. A reference has 48 bytes in a chunk."""
    if t[0] in ("int", "float", "string", "opaque"):
        return t[1]
    if t[0] == "enum":
        return size_of(t[1])
    if t[0] == "compound":
        return sum(size_of(m, ref) for _, m in t[1])
    if t[0] == "array":
        return math.prod(t[1]) * size_of(t[2], ref)
    if t[0] == "ref":
        return ref
    raise ValueError(f"{t[0]} has no fixed size")


def null_element(t):
    if is_plain(t):
        return b"\0" * size_of(t)
    if t[0] == "compound":
        return tuple(null_element(m) for _, m in t[1])
    if t[0] == "array":
        return [null_element(t[2])] * math.prod(t[1])
    if t[0] == "vlen":
        return b"" if is_plain(t[1]) else []
    return None


# ---- values in JSON ----

def text_bytes(value):
    """Text -> UTF-8; a lone surrogate becomes its three bytes."""
    return value.encode("utf-8", "surrogatepass")


def number(value, integer):
    if value is None:
        return 0 if integer else math.nan       # as numpy converts None
    if isinstance(value, list):
        return number(value[0], integer)
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            value = float(value)
    return int(value) if integer else float(value)


def encode_value(t, v):
    """One element of JSON -> neutral form. Accepts whatever the service stores."""
    kind = t[0]
    if kind == "int":
        n = number(v, True) & ((1 << 8 * t[1]) - 1)
        return n.to_bytes(t[1], "big" if t[3] else "little")
    if kind == "float":
        try:
            return struct.pack((">" if t[2] else "<") + {2: "e", 4: "f", 8: "d"}[t[1]],
                               number(v, False))
        except OverflowError:
            return np.array(number(v, False)).astype(
                (">" if t[2] else "<") + f"f{t[1]}").tobytes()
    if kind == "enum":
        return encode_value(t[1], dict(t[2]).get(v, v) if isinstance(v, str) else v)
    if kind == "string":
        fill = b" " if t[2] == "spacepad" else b"\0"
        return text_bytes(v or "")[:t[1]].ljust(t[1], fill)
    if kind == "opaque":
        return text_bytes(v or "")[:t[1]].ljust(t[1], b"\0")
    if kind == "vstring":
        return None if v is None else text_bytes(v)
    if kind == "ref":
        return reference_id(v)
    if kind == "compound":
        if v is None:
            return null_element(t)
        parts = [encode_value(m, x) for (_, m), x in zip(t[1], v)]
        return b"".join(parts) if is_plain(t) else tuple(parts)
    if kind == "array":
        parts = [encode_value(t[2], x) for x in flatten(v, len(t[1]), math.prod(t[1]))]
        return b"".join(parts) if is_plain(t) else parts
    if kind == "vlen":
        parts = [encode_value(t[1], x) for x in (v or [])]
        return b"".join(parts) if is_plain(t[1]) else parts
    raise ValueError(kind)


def flatten(value, rank, count):
    """Nested lists of `rank` levels -> `count` elements. Accepts lists with fewer levels."""
    out = [value]
    for _ in range(rank):
        if len(out) == count and rank > 1 and not any(isinstance(x, list) for x in out):
            break
        out = [y for x in out for y in (x if isinstance(x, list) else [x])]
    return out


def split_fixed(t, raw):
    """One element from packed bytes (references as 48 bytes of text) -> neutral form."""
    if is_plain(t):
        return bytes(raw)
    if t[0] == "ref":
        return reference_id(bytes(raw))
    if t[0] == "compound":
        out, at = [], 0
        for _, m in t[1]:
            n = size_of(m)
            out.append(split_fixed(m, raw[at:at + n]))
            at += n
        return tuple(out)
    n = size_of(t[2])
    return [split_fixed(t[2], raw[i * n:i * n + n]) for i in range(math.prod(t[1]))]


def parse_vlen(t, buf, at):
    """One element from a variable-length chunk -> (neutral form, next offset)."""
    if t[0] == "compound":
        out = []
        for _, m in t[1]:
            v, at = parse_vlen(m, buf, at)
            out.append(v)
        return (b"".join(out) if is_plain(t) else tuple(out)), at
    if t[0] == "array" and has_vlen(t):
        out = []
        for _ in range(math.prod(t[1])):
            v, at = parse_vlen(t[2], buf, at)
            out.append(v)
        return out, at
    if t[0] in ("vlen", "vstring"):
        n, = struct.unpack_from("<i", buf, at)
        raw, at = bytes(buf[at + 4:at + 4 + n]), at + 4 + n
        if n < 0 or len(raw) != n:
            raise ValueError("variable-length item outside its chunk")
        if t[0] == "vstring" or is_plain(t[1]):
            return raw, at
        m = size_of(t[1])
        return [split_fixed(t[1], raw[i:i + m]) for i in range(0, n, m)], at
    n = size_of(t)
    return split_fixed(t, buf[at:at + n]), at + n


# ---- chunk bytes ----

def bit_unshuffle(raw, itemsize):
    """Inverse of the bit transposition over a block of elements (a multiple of 8 of them)."""
    n = len(raw) // itemsize
    bits = np.unpackbits(np.frombuffer(raw, "u1"), bitorder="little").reshape(itemsize * 8, n)
    return np.packbits(bits.T.reshape(-1), bitorder="little").tobytes()


def bitshuffle_lz4(raw, itemsize):
    """The service's bitshuffle: u64 BE total size, u32 BE block size, LZ4 blocks, each after its
    u32 BE length, then the last elements, fewer than 8, unshuffled."""
    total, block = struct.unpack_from(">QI", raw)
    at, out = 12, bytearray()
    elements = total // itemsize
    while elements - len(out) // itemsize >= 8:
        n = min(block // itemsize, (elements - len(out) // itemsize) // 8 * 8)
        size, = struct.unpack_from(">I", raw, at)
        body = struct.pack("<I", n * itemsize) + raw[at + 4:at + 4 + size]
        out += bit_unshuffle(numcodecs.lz4.decompress(body), itemsize)
        at += 4 + size
    return bytes(out) + raw[at:at + total - len(out)]


def inflates_to(raw, nbytes):
    """A compressed chunk may be as long as its elements. nbytes None: to any number of bytes."""
    try:
        return nbytes in (None, len(zlib.decompress(raw)))
    except zlib.error:
        return False


def decode_chunk(raw, filters, nbytes, itemsize, unshuffles=True):
    """Stored bytes -> element bytes. nbytes None: variable length, any size. unshuffles: the bytes
    of a zlib stream may be shuffled, as in schema v2."""
    classes = [f.get("class") for f in filters]
    names = [f.get("name") for f in filters]
    shuffled = "H5Z_FILTER_SHUFFLE" in classes
    bitshuffled = "bitshuffle" in names or "H5Z_FILTER_BITSHUFFLE" in classes
    if raw[:1] == b"\2" and len(raw) >= 16 and \
            struct.unpack_from("<I", raw, 12)[0] == len(raw) and raw[1] == 1 and filters:
        raw = bytes(numcodecs.Blosc().decode(raw))
        shuffled = False
    elif "H5Z_FILTER_DEFLATE" in classes and \
            (nbytes not in (None, len(raw)) or inflates_to(raw, nbytes)):
        raw = zlib.decompress(raw)
        shuffled = shuffled and unshuffles
    else:
        shuffled = False
    if bitshuffled:
        raw = bitshuffle_lz4(raw, itemsize)
    elif shuffled and nbytes:
        raw = np.frombuffer(raw, "u1").reshape(itemsize, -1).T.tobytes()
    if nbytes is not None and len(raw) != nbytes:
        raise ValueError(f"chunk of {len(raw)} bytes instead of {nbytes}")
    return raw


# ---- objects ----

class Attribute:
    def __init__(self, name, doc):
        self.name, self.created = name, doc.get("created", 0)
        self.type, self.committed = parse_type(doc["type"]), committed_id(doc["type"])
        self.shape = parse_shape(doc["shape"])
        self.data = None if self.shape is None else self.parse(doc)

    def parse(self, doc):
        count, value = math.prod(self.shape), doc.get("value")
        exact = doc.get("hsmount", {}).get("value")
        if exact is not None:
            doc = {"encoding": "base64"}
            value = exact
        if value is None:
            elements = [null_element(self.type)] * count
        elif doc.get("encoding") == "base64":
            raw = base64.b64decode(value)
            if has_vlen(self.type):
                elements, at = [], 0
                for _ in range(count):
                    v, at = parse_vlen(self.type, raw, at)
                    elements.append(v)
            else:
                n = size_of(self.type)
                raw = raw.ljust(n * count, b"\0")
                elements = [split_fixed(self.type, raw[i * n:i * n + n]) for i in range(count)]
        elif not self.shape:
            elements = [encode_value(self.type, value)]
        else:
            elements = [encode_value(self.type, v)
                        for v in flatten(value, len(self.shape), count)]
        assert len(elements) == count, f"attribute {self.name}: {len(elements)} values"
        if not is_plain(self.type):
            return elements
        return np.frombuffer(b"".join(elements), f"V{size_of(self.type)}").reshape(self.shape)


class Link:
    def __init__(self, name, doc):
        self.name, self.created = name, doc.get("created", 0)
        self.kind = doc["class"].removeprefix("H5L_TYPE_").lower()
        self.id, self.path = doc.get("id"), doc.get("h5path")
        self.domain = doc.get("h5domain", doc.get("domain"))


def committed_id(t):
    return t.get("id") if isinstance(t, dict) else None


def parse_shape(doc):
    if doc["class"] == "H5S_NULL":
        return None
    return tuple(doc["dims"]) if doc["class"] == "H5S_SIMPLE" else ()


def by_creation(items):
    return sorted(items, key=lambda x: (x.created, text_bytes(x.name)))


class Object:
    def __init__(self, bucket, oid, doc):
        self.bucket, self.id, self.doc, self.kind = bucket, oid, doc, oid[0]
        self.attributes = by_creation(Attribute(n, d) for n, d in doc["attributes"].items())
        self.links = by_creation(Link(n, d) for n, d in doc.get("links", {}).items())
        if self.kind != "g":
            self.type, self.committed = parse_type(doc["type"]), committed_id(doc["type"])
        if self.kind == "d":
            self.shape = parse_shape(doc["shape"])
            self.maxshape = self.parse_max(doc["shape"])

    @property
    def comment(self):
        """Its bytes; b"" if it has none."""
        extras = self.doc.get("hsmount")
        text = extras.get("comment") if isinstance(extras, dict) else None
        return (text or "").encode("utf-8", "surrogateescape")

    def parse_max(self, shape):
        if not self.shape:
            return self.shape
        unlimited = (0, "H5S_UNLIMITED")
        return tuple(None if m in unlimited else m for m in shape.get("maxdims", [])) or self.shape

    @property
    def properties(self):
        cp = self.doc.get("creationProperties")
        return cp if isinstance(cp, dict) else {}

    def chunk_shape(self):
        return tuple(self.doc.get("layout", self.properties.get("layout", {})).get("dims", ()))

    def fill(self):
        value = self.properties.get("fillValue")
        if value in (None, "None"):
            return null_element(self.type)
        exact = self.properties.get("hsmount", {}).get("fillValue")
        if exact is not None:
            return split_fixed(self.type, base64.b64decode(exact))
        if self.properties.get("fillValue_encoding") == "base64":
            return split_fixed(self.type, base64.b64decode(value))
        return encode_value(self.type, value)

    def arange(self):
        """The values of a computed dataset, or None."""
        init = self.properties.get("initializer")
        if not init or init[0] != "arange":
            return None
        opt = dict(x.lstrip("-").split("=", 1) for x in init[1:])
        n = math.prod(self.shape)
        values = float(opt.get("start", 0)) + np.arange(n) * float(opt.get("step", 1))
        return [encode_value(self.type, float(v)) for v in values]

    def stored_chunk(self, index):
        """Elements of one chunk in neutral form (flat), or None if the chunk is not stored."""
        try:
            raw = self.bucket.get(chunk_key(
                self.id, index, self.doc.get("layout", {}).get("partition_count", 0)))
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        count, filters = math.prod(self.chunk_shape()), self.properties.get("filters", [])
        if has_vlen(self.type) and raw[:1] == b"[" and raw[1:2] not in b"\0\1\2\3\4":
            values = flatten(json.loads(raw), len(self.chunk_shape()), count)
            return [encode_value(self.type, v) for v in values]
        if has_vlen(self.type):
            buf, at, out = decode_chunk(raw, filters, None, 1), 0, []
            for _ in range(count):
                v, at = parse_vlen(self.type, buf, at)
                out.append(v)
            return out
        n = size_of(self.type)
        buf = decode_chunk(raw, filters, count * n, n, not is_v1(self.id))
        if is_plain(self.type):
            return np.frombuffer(buf, f"V{n}")
        return [split_fixed(self.type, buf[i * n:i * n + n]) for i in range(count)]

    def data(self):
        """The whole dataset in neutral form; None for a null dataspace."""
        if self.shape is None:
            return None
        shape, computed = self.shape or (1,), self.arange()
        if is_plain(self.type):
            n = size_of(self.type)
            filling = b"".join(computed) if computed else self.fill() * math.prod(shape)
            out = np.frombuffer(bytearray(filling), f"V{n}").reshape(shape)
        else:
            out = np.empty(shape, object)
            for i in np.ndindex(*shape):
                out[i] = self.fill()
        chunk = self.chunk_shape()
        if math.prod(shape) and len(chunk) == len(shape) and all(chunk):
            for index in np.ndindex(*(-(-n // c) for n, c in zip(shape, chunk))):
                part = self.stored_chunk(index)
                if part is not None:
                    self.paste(out, part, index, chunk)
        return out.reshape(self.shape) if is_plain(self.type) else list(out.reshape(-1))

    @staticmethod
    def paste(out, part, index, chunk):
        if isinstance(part, list):
            grid = np.empty(len(part), object)
            for i, v in enumerate(part):
                grid[i] = v
            part = grid
        window = tuple(slice(i * c, min((i + 1) * c, n))
                       for i, c, n in zip(index, chunk, out.shape))
        inside = tuple(slice(0, w.stop - w.start) for w in window)
        out[window] = part.reshape(chunk)[inside]


class Domain:
    """All reachable objects. `paths` maps each id to its first path in breadth-first order."""

    def __init__(self, bucket, path, doc):
        self.bucket, self.path, self.doc, self.root = bucket, path, doc, doc["root"]
        self.objects, self.paths, self.dangling = {}, {self.root: "/"}, []
        queue = [self.root]
        self.objects[self.root] = bucket.object(self.root)
        for oid in queue:
            group = self.objects[oid]
            for link in list(group.links):
                if link.kind != "hard":
                    continue
                if link.id not in self.objects:
                    try:
                        self.objects[link.id] = bucket.object(link.id)
                    except FileNotFoundError:
                        self.dangling.append((oid, link.name))
                        group.links.remove(link)
                        continue
                    self.paths[link.id] = self.paths[oid].rstrip("/") + "/" + link.name
                    if link.id[0] == "g":
                        queue.append(link.id)


    def user_block(self):
        """The member of the document of the root group, or None."""
        return self.bucket.document(document_key(self.root)).get("hsmount", {}).get("userBlock")


class Bucket:
    def __init__(self, root):
        self.root = os.fspath(root)

    def get(self, key):
        with open(os.path.join(self.root, key), "rb") as f:
            return f.read()

    def document(self, key):
        return json.loads(self.get(key).decode("utf-8"))

    def object(self, oid):
        return Object(self, oid, self.document(document_key(oid)))

    def domain(self, path):
        return Domain(self, path, self.document(f"{path}/.domain.json"))

    def domains(self):
        """(path, document) of every domain and folder, folders without "root", sorted."""
        found = []
        for at, dirs, files in os.walk(self.root):
            path = os.path.relpath(at, self.root)
            if path == ".":
                dirs[:] = [d for d in dirs if d != "db"]
            elif ".domain.json" in files:
                found.append((path, self.document(f"{path}/.domain.json")))
        return sorted(found)

    def files(self):
        """Paths of the domains that are files."""
        return [p for p, doc in self.domains() if "root" in doc]


def mount_name(path):
    """Path of the domain's file in the mount."""
    base = os.path.basename(path)
    return path if "." in base.lstrip(".") else path + ".h5"
