# SPDX-License-Identifier: Apache-2.0
"""Checks that the service would serve a domain in a directory bucket.

It knows the members that the service requires, and the forms of keys, ids, types, shapes, values
and chunks. It shares no code with the programs or with `oracle`. Members with the name `hsmount`
are ignored, as the service ignores them.

    problems = check_domain(bucket, "home/u/run.h5", strict=True)

`strict` is for domains that this project has written. Without it, the oddities of domains that real
versions of the service have written are accepted: dangling links, attributes without a value,
values of another shape, links with equal times, chunks outside of the extent, types without served
data.

    python3 hsds_validator.py [--strict] BUCKET [DOMAIN]
"""
import base64
import json
import math
import os
import re
import struct
import sys

ID = re.compile(r"([gdt])-([0-9a-f]{8})-([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{6})-([0-9a-f]{6})\Z")
CHUNK = re.compile(r"(0|[1-9][0-9]*)(_(0|[1-9][0-9]*))*\Z")
FILES = {"g": ".group.json", "d": ".dataset.json", "t": ".datatype.json"}
NUMBER = re.compile(r"H5T_(STD_[IU](8|16|32|64)|IEEE_F(16|32|64))(LE|BE)?\Z")
PERMISSIONS = ("create", "read", "update", "delete", "readACL", "updateACL")
REF_BYTES = 48
PADS = ("H5T_STR_NULLTERM", "H5T_STR_NULLPAD", "H5T_STR_SPACEPAD")
COMPRESSORS = (1, 32001, 32003, 32004, 32005, 32008, 32015)


def flat(v):
    """The elements of nested lists."""
    if isinstance(v, list):
        for x in v:
            yield from flat(x)
    else:
        yield v


def is_number(v):
    return isinstance(v, (int, float)) and not isinstance(v, bool)


def is_size(v):
    return isinstance(v, int) and not isinstance(v, bool) and v >= 0


def root_of(oid):
    """The id of the root group of an object's domain."""
    digits = "".join(ID.match(oid).groups()[1:3])
    rest = "".join(f"{(int(c, 16) + 8) % 16:x}" for c in digits)
    return f"g-{digits[:8]}-{digits[8:]}-{rest[:4]}-{rest[4:10]}-{rest[10:]}"


def folder_of(oid):
    kind, a, b, c, d, e = ID.match(oid).groups()
    return f"db/{a}-{b}" if oid == root_of(oid) else f"db/{a}-{b}/{kind}/{c}-{d}-{e}"


# Classes of the layout that the creator asked for.
ASKED = ("H5D_CHUNKED", "H5D_CONTIGUOUS", "H5D_CONTIGUOUS_REF", "H5D_CHUNKED_REF",
         "H5D_CHUNKED_REF_INDIRECT")


class Checker:
    def __init__(self, bucket, strict):
        self.bucket = bucket
        self.strict = strict
        self.problems = []
        self.docs = {}   # id -> document
        self.where = []

    def say(self, text):
        self.problems.append(": ".join(self.where + [text]))

    def need(self, condition, text):
        if not condition:
            self.say(text)
        return condition

    def member(self, doc, name, kind):
        """A member that the service requires; None if it is missing or of another kind."""
        ok = {"text": lambda v: isinstance(v, str), "object": lambda v: isinstance(v, dict),
              "time": is_number, "id": lambda v: isinstance(v, str) and bool(ID.match(v))}[kind]
        if not self.need(name in doc, f"{name} is missing"):
            return None
        return doc[name] if self.need(ok(doc[name]), f"{name} is no {kind}") else None

    # ---- types ----

    def number(self, name):
        m = isinstance(name, str) and NUMBER.match(name)
        if not self.need(m, f"unknown base {name!r}"):
            return None
        return int(m.group(2) or m.group(3)) // 8

    def dims(self, v, what):
        dims = v if isinstance(v, list) else [v]
        ok = all(is_size(d) for d in dims) and len(dims) <= 32
        return dims if self.need(ok, f"{what} are no sizes") else None

    def type(self, t, place="top"):
        """Bytes of an element as it is stored; None: it has no fixed size, or the type is bad."""
        if isinstance(t, str):
            return self.number(t)
        ok = isinstance(t, dict) and isinstance(t.get("class"), str)
        if not self.need(ok, "a type without class"):
            return None
        name = t["class"].removeprefix("H5T_").lower()
        check = getattr(self, "type_" + name, None)
        if not self.need(check, f"class {t['class']} is not served"):
            return None
        if place != "top":
            self.need("id" not in t, "a committed type inside of a type")
        elif "id" in t:
            self.committed(t)
        return check(t, place)

    def committed(self, t):
        doc = self.docs.get(t["id"])
        if doc is None:
            self.need(not self.strict, f"no committed type {t['id']}")
            return
        plain = {k: v for k, v in t.items() if k != "id"}
        known = doc["type"]
        if isinstance(known, dict):
            known = {k: v for k, v in known.items() if k != "id"}
        self.need(not self.strict or plain == known, "the type differs from its committed type")

    def type_integer(self, t, place):
        base = t.get("base")
        return self.type(base, "base") if isinstance(base, dict) else self.number(base)

    type_float = type_integer

    def type_string(self, t, place):
        self.need(t.get("charSet") in ("H5T_CSET_ASCII", "H5T_CSET_UTF8"), "charSet")
        self.need(t.get("strPad") in PADS, "strPad")
        if t.get("length") == "H5T_VARIABLE":
            return None
        ok = self.need(is_size(t.get("length")) and t["length"] > 0, "length")
        return t["length"] if ok else None

    def type_opaque(self, t, place):
        self.need(isinstance(t.get("tag", ""), str), "tag")
        ok = is_size(t.get("size")) and t["size"] > 0
        return t["size"] if self.need(ok, "size of opaque") else None

    def type_reference(self, t, place):
        self.need(t.get("base") == "H5T_STD_REF_OBJ", f"references of kind {t.get('base')}")
        return REF_BYTES

    def type_enum(self, t, place):
        self.need(place != "array", "an array of enumerations")
        mapping = t.get("mapping")
        ok = isinstance(mapping, dict) and mapping
        self.need(ok and all(isinstance(v, int) for v in mapping.values()), "mapping")
        return self.type(t.get("base"), "base")

    def type_compound(self, t, place):
        self.need(place not in ("array", "vlen"), f"a compound inside of {place}")
        fields = t.get("fields")
        if not self.need(isinstance(fields, list) and fields, "fields"):
            return None
        names = [f.get("name") for f in fields]
        ok = all(isinstance(n, str) and n and n.isascii() for n in names)
        self.need(ok, f"field names {names}")
        self.need(len(set(names)) == len(names), "two fields have one name")
        sizes = [self.type(f.get("type"), "field") for f in fields]
        if self.strict and len(fields) == 1:
            self.need(sizes[0] is not None, "a compound of one member of variable length")
        return None if None in sizes else sum(sizes)

    def type_array(self, t, place):
        self.need(place == "field" or not self.strict, f"an array type as {place}")
        dims = self.dims(t.get("dims"), "array dims")
        size = self.type(t.get("base"), "array")
        if not dims or not self.need(all(dims), "an array dimension of 0"):
            return None
        return None if size is None else math.prod(dims) * size

    def type_vlen(self, t, place):
        base = t.get("base")
        self.type(base, "vlen")
        if self.strict:
            cls = base.get("class") if isinstance(base, dict) else "H5T_INTEGER"
            ok = cls in ("H5T_INTEGER", "H5T_FLOAT", "H5T_REFERENCE") or (
                cls == "H5T_STRING" and base["length"] != "H5T_VARIABLE")
            self.need(ok, f"a sequence of {cls}")

    # ---- shapes, values ----

    def shape(self, shape, attribute):
        """The dimensions; None: there are no elements."""
        cls = shape.get("class")
        if cls == "H5S_SCALAR":
            return []
        if cls != "H5S_SIMPLE":
            self.need(cls == "H5S_NULL", f"shape of class {cls}")
            return None
        dims = self.dims(shape.get("dims"), "dims")
        top = shape.get("maxdims")
        if dims is not None and top is not None and not attribute:
            ok = isinstance(top, list) and len(top) == len(dims) and all(
                m in (0, "H5S_UNLIMITED", None) or (is_size(m) and m >= d)
                for m, d in zip(top, dims))
            self.need(ok, f"maxdims {top}")
        return dims

    def nested(self, v, dims):
        if not dims:
            return True
        return (isinstance(v, list) and len(v) == dims[0] and
                all(self.nested(x, dims[1:]) for x in v))

    def exact(self, text, size, t, value):
        """The bytes of a value of type t whose lists have lost some of them. Those of floating
        point numbers must be the numbers that clients of the service read."""
        try:
            raw = base64.b64decode(text, validate=True)
        except (ValueError, TypeError):
            self.say("the exact value is no base64")
            return
        self.need(size is None or len(raw) == size, f"{len(raw)} bytes in an exact value")
        m = NUMBER.match(t if isinstance(t, str) else str(t.get("base")))
        if m and m[3] and size == len(raw):
            numbers = struct.unpack(f"{'>' if m[4] == 'BE' else '<'}{size * 8 // int(m[3])}"
                                    f"{ {'16': 'e', '32': 'f', '64': 'd'}[m[3]]}", raw)
            shown = list(flat(value))
            same = len(numbers) == len(shown) and all(
                is_number(b) and (a == b or (a != a and b != b)) for a, b in zip(numbers, shown))
            self.need(same, f"the value {value} beside an exact one of {numbers}")

    def value(self, a, dims, size):
        encoding = a.get("encoding")
        if self.strict and "value" in a.get("hsmount", {}):
            self.need(encoding is None, "an exact value beside one in base64")
            self.exact(a["hsmount"]["value"],
                       None if size is None or dims is None else size * math.prod(dims),
                       a["type"], a.get("value"))
        if "value" not in a:
            self.need(encoding and not self.strict, "value is missing")
            return
        v = a["value"]
        if encoding is not None:
            self.need(encoding == "base64" and isinstance(v, str), "encoding")
            try:
                raw = base64.b64decode(v, validate=True)
            except (ValueError, TypeError):
                self.say("value is no base64")
                return
            if self.strict and size is not None and dims is not None:
                self.need(len(raw) == size * math.prod(dims), f"{len(raw)} bytes in base64")
        elif self.strict and dims is not None and math.prod(dims) > 0:
            self.need(self.nested(v, dims), f"value has not the shape {dims}")
        elif self.strict and dims is None:
            self.need(v is None, "a value in a null dataspace")

    def attributes(self, doc):
        for name, a in (self.member(doc, "attributes", "object") or {}).items():
            self.where.append(f"attribute {name!r}")
            self.need(name or not self.strict, "name")
            size = self.type(a.get("type"))
            dims = self.shape(self.member(a, "shape", "object") or {}, True)
            self.member(a, "created", "time")
            self.value(a, dims, size)
            self.where.pop()
        if self.strict:
            self.times(doc["attributes"])

    def times(self, members):
        times = [m["created"] for m in members.values()]
        self.need(len(set(times)) == len(times), "times are not distinct")

    # ---- objects ----

    def object(self, oid, doc):
        self.where.append(oid)
        self.need(doc.get("id") == oid, f"id {doc.get('id')}")
        self.need(doc.get("root") == root_of(oid), f"root {doc.get('root')}")
        self.member(doc, "created", "time")
        self.member(doc, "lastModified", "time")
        if oid[0] == "g":
            self.group(doc)
        elif oid[0] == "d":
            self.dataset(oid, doc)
        else:
            self.type(doc.get("type"), "base" if "id" in (doc.get("type") or {}) else "committed")
        self.attributes(doc)
        self.where.pop()

    def group(self, doc):
        links = self.member(doc, "links", "object") or {}
        for name, link in links.items():
            self.where.append(f"link {name!r}")
            self.need(name and "/" not in name, "name")
            cls = link.get("class")
            if cls == "H5L_TYPE_HARD":
                oid = self.member(link, "id", "id")
                self.need(oid in self.docs or not self.strict, f"no object {oid}")
            elif cls == "H5L_TYPE_EXTERNAL":
                self.member(link, "h5path", "text")
                self.member(link, "h5domain", "text")
            elif self.need(cls == "H5L_TYPE_SOFT", f"class {cls}"):
                self.member(link, "h5path", "text")
            self.need(is_number(link.get("created")) or not self.strict, "created")
            self.where.pop()
        if self.strict:
            self.times(links)

    def filters(self, props):
        """True if chunk objects have other bytes than their elements."""
        filters = props.get("filters", [])
        if not self.need(isinstance(filters, list), "filters are no list"):
            return True
        for f in filters:
            ok = isinstance(f, dict) and isinstance(f.get("name"), str)
            if not self.need(ok, "a filter without name"):
                return True
            self.need(isinstance(f.get("class"), str) and is_size(f.get("id")), f"filter {f}")
            if self.strict:
                self.need(f["id"] in (1, 2), f"filter {f['id']} is not one of chunk objects")
        return any(f["id"] in COMPRESSORS for f in filters)

    def dataset(self, oid, doc):
        size = self.type(doc.get("type"))
        dims = self.shape(self.member(doc, "shape", "object") or {}, False)
        props = doc.get("creationProperties", {})
        if isinstance(props, str):  # base64 of another client
            props = {}
        self.need(isinstance(props, dict), "creationProperties")
        asked = props.get("layout", {})
        layout = doc.get("layout", asked)
        if self.strict:
            self.need("layout" in doc or dims is None, "layout is missing")
            self.need(asked.get("class") in ASKED, f"layout {asked}")
            self.same_layout(asked, layout, dims)
        filtered = self.filters(props)
        if dims is None or "dims" not in layout:
            self.need(dims is None or not self.strict, "no chunk shape")
            return
        self.need(isinstance(layout.get("class"), str), "layout without class")
        chunk = self.dims(layout["dims"], "layout dims")
        ok = chunk is not None and len(chunk) == max(len(dims), 1)
        if not self.need(ok, f"chunks {chunk} of {dims}"):
            return
        if "fillValue_encoding" in props:
            ok = props["fillValue_encoding"] == "base64"
            self.need(ok and isinstance(props.get("fillValue"), str), "fillValue")
        if self.strict and props.get("hsmount", {}).get("fillValue") is not None:
            self.need("fillValue_encoding" not in props, "two fill values in base64")
            self.exact(props["hsmount"]["fillValue"], size, doc["type"], props.get("fillValue"))
        refers = "_REF" in layout.get("class", "") or "_REF" in asked.get("class", "")
        if refers and self.strict:
            self.referred(asked, dims or [1], chunk, size)
        if not refers:
            self.chunks(oid, dims or [1], chunk, None if filtered or size is None else size,
                        layout.get("partition_count"))

    def same_layout(self, asked, layout, dims):
        """HSDS 1.0 reads the chunk shape from the creation properties only, and takes a layout
        without one as a single chunk of the shape of the dataset."""
        if dims is None or "_REF" in asked.get("class", ""):
            return
        chunk = asked.get("dims", [max(d, 1) for d in dims] or [1])
        self.need(chunk == layout["dims"], f"layouts {asked} and {layout}")
        self.need("dims" in asked or asked.get("class") != "H5D_CHUNKED", f"layout {asked}")

    def referred(self, asked, dims, chunk, size):
        """A layout that refers to a file of the bucket. The service reads a whole chunk of
        contiguous data, and zeros in place of one that ends behind the file."""
        if asked.get("class") == "H5D_CHUNKED_REF_INDIRECT":
            table = self.docs.get(asked.get("chunk_table"))
            self.need(table and isinstance(table.get("type"), dict) and
                      table["type"].get("class") == "H5T_COMPOUND", "chunk_table")
        if not self.need(isinstance(asked.get("file_uri"), str), "file_uri"):
            return
        path = os.path.join(os.path.dirname(os.path.abspath(self.bucket)), asked["file_uri"])
        end = os.path.getsize(path) if os.path.isfile(path) else math.inf
        grid = [-(-d // c) for d, c in zip(dims, chunk)]
        ranges = {}
        if asked["class"] == "H5D_CONTIGUOUS_REF" and size is not None and 0 not in grid:
            last = 0
            for d, n, c in zip(dims, grid, chunk):
                last = last * d + (n - 1) * c
            if self.need(is_size(asked.get("offset")), "offset"):
                ranges["_".join(str(n - 1) for n in grid)] = [asked["offset"] + last * size,
                                                              size * math.prod(chunk)]
        elif asked["class"] == "H5D_CHUNKED_REF":
            ranges = asked.get("chunks", {})
        for name, at in ranges.items():
            index = [int(i) for i in name.split("_")] if CHUNK.match(name) else []
            ok = len(index) == len(grid) and all(i < n for i, n in zip(index, grid))
            self.need(ok, f"no chunk of this dataset: {name}")
            ok = all(map(is_size, at)) and len(at) >= 2 and at[0] + at[1] <= end
            self.need(ok, f"chunk {name} at {at} is not inside of the file")

    def chunks(self, oid, dims, chunk, size, partitions):
        folder = os.path.join(self.bucket, folder_of(oid))
        for path, _, names in os.walk(folder):
            for name in names:
                if name in FILES.values():
                    continue
                self.where.append(name)
                index = [int(i) for i in name.split("_")] if CHUNK.match(name) else None
                inside = index is not None and len(index) == len(dims) and all(
                    c and i * c < d for i, c, d in zip(index, chunk, dims))
                self.need(inside or not self.strict, "no chunk of this dataset")
                self.need(path == folder or partitions, "a folder without partitions")
                n = os.path.getsize(os.path.join(path, name))
                if inside and size is not None:
                    whole = size * math.prod(chunk)
                    self.need(n == whole, f"{n} bytes instead of {whole}")
                self.where.pop()

    # ---- domains ----

    def load(self, key):
        with open(os.path.join(self.bucket, key), "rb") as f:
            text = f.read()
        if self.strict:
            self.need(text.isascii() and b"\n" not in text, f"{key} is not one line of ASCII")
        return json.loads(text)

    def storage(self, root):
        """All documents of the domain with this root group."""
        base = folder_of(root)
        for path, _, names in os.walk(os.path.join(self.bucket, base)):
            rel = os.path.relpath(path, self.bucket)
            for name in names:
                if name not in FILES.values():
                    continue
                doc = self.load(os.path.join(rel, name))
                oid = doc.get("id")
                ok = (isinstance(oid, str) and ID.match(oid) and folder_of(oid) == rel and
                      FILES[oid[0]] == name)
                if self.need(ok, f"{rel}/{name} has the id {oid}"):
                    self.docs[oid] = doc

    def domain(self, path):
        doc = self.load(os.path.join(path, ".domain.json"))
        self.where = [path]
        self.member(doc, "owner", "text")
        for user, acl in (self.member(doc, "acls", "object") or {}).items():
            self.need(all(isinstance(acl.get(p), bool) for p in PERMISSIONS), f"acl of {user}")
        if self.strict:
            self.need("owner" in doc and doc["owner"] in doc["acls"], "the owner has no acl")
        if "root" not in doc and not self.strict:
            return  # a folder
        root = self.member(doc, "root", "id")
        if root is None or not self.need(root == root_of(root), f"{root} is no root group"):
            return
        self.storage(root)
        self.need(root in self.docs, "the root group is missing")
        for oid, document in self.docs.items():
            self.object(oid, document)
        if self.strict:
            self.reachable(root)

    def reachable(self, root):
        """Every document must be linked, or be a committed type or a chunk table that is used."""
        todo, seen = [root], {root}
        while todo:
            doc = self.docs[todo.pop()]
            names = [link["id"] for link in doc.get("links", {}).values() if "id" in link]
            types = [doc.get("type")] + [a["type"] for a in doc["attributes"].values()]
            names += [t["id"] for t in types if isinstance(t, dict) and "id" in t]
            layout = doc.get("creationProperties", {}).get("layout", {})
            names += [layout["chunk_table"]] if "chunk_table" in layout else []
            todo += [n for n in names if n in self.docs and n not in seen]
            seen.update(names)
        for oid in self.docs:
            self.need(oid in seen, f"{oid} is not reachable")


class Scan:
    """The summary that a scan of the service makes of a domain: `.info.json`."""

    def __init__(self, bucket, path):
        self.checker = Checker(bucket, False)
        self.checker.storage(self.checker.load(os.path.join(path, ".domain.json"))["root"])
        self.root = os.path.join(bucket, *folder_of(next(iter(self.checker.docs))).split("/")[:2])

    def stored(self):
        """What the file has, without the times."""
        with open(os.path.join(self.root, ".info.json"), "rb") as f:
            info = json.load(f)
        for name in "lastModified", "scan_start", "scan_complete":
            assert is_number(info.pop(name)), name
        for dataset in info["datasets"].values():
            assert is_number(dataset.pop("lastModified"))
        info.pop("md5_sum", None)
        info.pop("bucket", None)
        return info

    def linked(self, oid, asked):
        """The number and bytes of the chunks in an HDF5 file; None: not in this document."""
        if asked.get("class") == "H5D_CHUNKED_REF":
            return len(asked["chunks"]), sum(c[1] for c in asked["chunks"].values())
        doc = self.checker.docs[oid]
        if asked.get("class") == "H5D_CONTIGUOUS_REF":
            n = math.prod(-(-d // c) for d, c in zip(doc["shape"]["dims"], doc["layout"]["dims"]))
            return n, asked["size"]
        return (0, 0) if "_REF" not in asked.get("class", "") else self.table(asked["chunk_table"])

    def table(self, oid):
        """Of a chunk table, whose records begin with an offset and a size."""
        fields = self.checker.docs[oid]["type"]["fields"]
        record = sum(self.checker.type(f["type"], "field") or 0 for f in fields)
        sizes = []
        for name in self.chunks(oid):
            with open(name, "rb") as f:
                data = f.read()
            sizes += [int.from_bytes(data[i + 8:i + 12], "little")
                      for i in range(0, len(data), record)]
        return len([s for s in sizes if s]), sum(sizes)

    def chunks(self, oid):
        for path, _, names in os.walk(os.path.join(self.checker.bucket, folder_of(oid))):
            for name in names:
                if CHUNK.match(name):
                    yield os.path.join(path, name)

    def dataset(self, oid, doc):
        sizes = [os.path.getsize(name) for name in self.chunks(oid)]
        size = self.checker.type(doc["type"])
        dims = self.checker.shape(doc["shape"], False)
        props = doc.get("creationProperties", {})
        linked = self.linked(oid, props.get("layout", {}) if isinstance(props, dict) else {})
        logical = sum(sizes) if size is None else math.prod(dims) * size if dims is not None else 0
        return {"num_chunks": len(sizes), "allocated_bytes": sum(sizes), "logical_bytes": logical,
                "linked_bytes": linked[1], "num_linked_chunks": linked[0]}

    def expected(self):
        docs = self.checker.docs
        datasets = {oid: self.dataset(oid, d) for oid, d in docs.items() if oid[0] == "d"}
        paths = [os.path.join(self.checker.bucket, folder_of(o), FILES[o[0]]) for o in docs]
        out = {"datasets": datasets, "num_groups": sum(o[0] == "g" for o in docs),
               "num_datatypes": sum(o[0] == "t" for o in docs),
               "metadata_bytes": sum(map(os.path.getsize, paths))}
        for name in ("num_chunks", "allocated_bytes", "logical_bytes", "linked_bytes",
                     "num_linked_chunks"):
            out[name] = sum(d[name] for d in datasets.values())
        return out


def check_summary(bucket, path):
    """The members of the summary of a domain that are not those of a scan, as texts."""
    scan = Scan(bucket, path)
    stored, expected = scan.stored(), scan.expected()
    return [f"{path}: {name}: {stored.get(name)} instead of {expected.get(name)}"
            for name in sorted({*stored, *expected}) if stored.get(name) != expected.get(name)]


def check_domain(bucket, path, strict=False):
    """The problems of a domain, as texts; empty: the service would serve it."""
    checker = Checker(bucket, strict)
    try:
        checker.domain(path)
    except (KeyError, ValueError, TypeError, AttributeError, OSError) as e:
        checker.say(f"{type(e).__name__}: {e}")
    return checker.problems


def domains(bucket):
    """The paths of all domains and folders of a bucket."""
    for path, _, names in os.walk(bucket):
        if ".domain.json" in names:
            yield os.path.relpath(path, bucket)


def main(args):
    strict = "--strict" in args
    args = [a for a in args if a != "--strict"]
    found = []
    for path in args[1:] or sorted(domains(args[0])):
        found += check_domain(args[0], path, strict)
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
