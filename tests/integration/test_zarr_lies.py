# SPDX-License-Identifier: Apache-2.0
"""Shards of Zarr stores on a server that lies: about ranges, sizes and versions. Every chunk that
is read has the right bytes of one version, or the read fails and the log says why."""
import concurrent.futures
import dataclasses
import errno
import os

import h5py
import numpy as np

from mounts import HSIMAGE, run
from s3liar import Answer, Liar, error, etag_of, range_of
from zarr_write import Shards, Store

ROWS, ROW = 6, 1024         # a chunk is a page of the kernel
DATA, OTHER = (np.arange(k, k + ROWS * ROW, dtype="<i4").reshape(ROWS, ROW) for k in (1, 1000))
EIO, ESTALE = "EIO", "ESTALE"


def is_index(request):
    return request.headers["range"].startswith(("bytes=-", f"bytes={DATA.nbytes}-"))


def answer(honest, body, **headers):
    return Answer(honest.status, {**honest.headers, **headers}, body)


def part(body, first, last, total):
    return {"status": 206, "headers": {"Content-Range": f"bytes {first}-{last}/{total}"},
            "body": body[first:last + 1]}


@dataclasses.dataclass
class Lie:
    """`tell` gets a request of a range, the honest answer, the stored object and what replaces it;
    see Liar.lie. Then a chunk has its bytes, or the read fails with an error and a message in the
    log. `listed` is the result if a listing has shown the size, and `unlisted`, if it differs, the
    result without one. `stored` is what is stored, if it is no shard."""
    tell: callable
    listed: tuple = None
    unlisted: tuple = None
    stored: bytes = None


def all_of_it(_, honest, body, __):
    return Answer(200, {**honest.headers, "Content-Range": None}, body)


def all_for_a_suffix(request, honest, body, other):
    return all_of_it(request, honest, body, other) if is_index(request) else None


def shifted(by, which):
    def tell(request, honest, body, _):
        if which(request):
            first, last = range_of(request.headers["range"], len(body))
            lie = part(body, first - by, last - by, len(body))
            return Answer(206, {**honest.headers, **lie["headers"]}, lie["body"])
        return None
    return tell


def cut(which):
    return lambda request, honest, *_: answer(honest, honest.body[:-5]) if which(request) else None


def another_total(request, honest, body, _):
    """The object seems to be longer, so the index would be elsewhere."""
    first, last = range_of(request.headers["range"], len(body))
    return answer(honest, honest.body, **{"Content-Range": f"bytes {first}-{last}/{1 << 40}"})


def replaced(status):
    """After the index was read, the object is another one: the condition fails, the object is gone,
    or the server does not know conditions."""
    def tell(request, honest, _, other):
        if is_index(request):
            return None
        if status != 206:
            return error(status, "NoSuchKey" if status == 404 else "PreconditionFailed")
        first, last = range_of(request.headers["range"], len(other))
        return answer(honest, other[first:last + 1], ETag=f'"{etag_of(other)}"')
    return tell


def chunk(request):
    return not is_index(request)


WHOLE = EIO, "the server sent the whole object instead of its last 100 bytes"
RANGE = EIO, "the server sent another range"
GONE = ESTALE, "deleted since it was read first"
CHANGED = ESTALE, "changed since"
LIES = {
    "honest": Lie(lambda *_: None),
    # Only the range is kept of an object that is sent from its beginning.
    "ignores-ranges": Lie(all_of_it, None, WHOLE),
    "whole-for-a-suffix": Lie(all_for_a_suffix, None, WHOLE),
    "another-range-for-the-index": Lie(shifted(1, is_index), RANGE),
    "another-range-for-a-chunk": Lie(shifted(1, chunk), RANGE),
    "short-index": Lie(cut(is_index), (EIO, "95 bytes instead of 100")),
    "short-chunk": Lie(cut(chunk), (EIO, "4091 bytes instead of 4096")),
    "another-size": Lie(another_total, CHANGED, RANGE),
    "416": Lie(lambda request, *_: error(416, "InvalidRange"), (
        EIO, "416 for a range of an object of 24676 bytes")),
    "empty": Lie(lambda *_: None, (EIO, "the shard has 0 bytes, its index has 100"), stored=b""),
    "too-short": Lie(lambda *_: None, (EIO, "the shard has 4 bytes, its index has 100"),
                     stored=b"1234"),
    "replaced": Lie(replaced(412), CHANGED),
    "deleted": Lie(replaced(404), GONE),
    "replaced-without-conditions": Lie(replaced(206), CHANGED),
}


# Whether a listing shows how large a shard is. If it does not, the index is a range that counts
# from the end.
WAYS = "listed", "unlisted"


def write(root):
    """Stores all shards. Returns by key: the lie, what a program stored, and what replaces it."""
    bodies = {}
    for name, lie in (("/".join((way, name)), lie) for way in WAYS for name, lie in LIES.items()):
        with Store(root / f"{name}.zarr", 3, True) as store:
            how = {"chunks": DATA.shape, "shards": [Shards((1, ROW))]}
            a = store.array("data", DATA, **how)
            other = store.array("other", OTHER, **how).encoded((0, 0))
            del store.documents["other/zarr.json"]
            key = f"data/{a.key((0, 0))}"
            if lie.stored is not None:
                store.put(key, lie.stored)
            bodies[f"{name}.zarr/{key}"] = lie, a.encoded((0, 0)), other
    return bodies


def read(path, offset):
    """Row 3, or the name of an error."""
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.pread(fd, 4 * ROW, offset)
    except OSError as e:
        return errno.errorcode[e.errno]
    finally:
        os.close(fd)


def test_lies_about_shards(tmp_path, mount):
    """All lies are told in one mount, at the same time."""
    bodies = write(tmp_path / "bucket")
    names = [f"{way}/{name}" for way in WAYS for name in LIES]
    with Liar(tmp_path / "bucket") as server, \
            concurrent.futures.ThreadPoolExecutor(len(names)) as readers:
        suffixes = []

        def lie(request, honest):
            prefix = request.query.get("prefix", "")
            if request.is_list and prefix.startswith("unlisted/") and ".zarr/" in prefix and \
                    "delimiter" not in request.query:
                return error(403, "AccessDenied")
            if request.key not in bodies or "range" not in request.headers:
                return None
            if request.headers["range"].startswith("bytes=-"):
                suffixes.append(request.key)
            told, body, other = bodies[request.key]
            return told.tell(request, honest, body, other)
        server.lie = lie
        run(HSIMAGE, "export", "--output", tmp_path / "honest.nc",
            "s3://bucket/unlisted/honest.zarr", env=server.environment(), check=True)
        with h5py.File(tmp_path / "honest.nc", "r") as f:
            assert (f["data"][:] == DATA).all()
            at = f["data"].id.get_chunk_info(3).byte_offset
        m = mount("s3://bucket", "retry_time=5", env=server.environment())
        got = dict(zip(names, readers.map(lambda name: read(m.file(f"{name}.zarr.nc"), at), names)))
        log = m.log()
        assert {key.split("/")[0] for key in suffixes} == {"unlisted"}
        assert len(set(suffixes)) == len(LIES)
        for name in names:
            way, _, which = name.partition("/")
            told = LIES[which]
            code, message = (told.unlisted if way == "unlisted" and told.unlisted else
                             told.listed) or (DATA[3].tobytes(), "")
            lines = "".join(line for line in log.splitlines(True) if f"{name}.zarr" in line)
            assert got[name] == code, (name, got[name], lines)
            assert message in lines, (name, lines)
        assert not server.failures
