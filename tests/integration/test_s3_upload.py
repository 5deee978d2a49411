# SPDX-License-Identifier: Apache-2.0
"""What protects the bodies of uploads: over TLS a CRC-32C, if the service compares it; otherwise
the SHA-256 in the signature. See "Checksums of S3 objects" in doc/DETAILS.md."""
import contextlib
import errno
import os
import shutil

import h5py
import numpy as np
import pytest

import rwmounts
from s3service import CRC, PROBE, Service

LARGE = 100000          # bytes; small bodies always have their SHA-256
MIN = 64 << 10


@contextlib.contextmanager
def uploaded(tmp_path, crc, tls=True, damage=0):
    """Writes files through a mount; the server damages the first `damage` bodies that it gets.
    Gives the server and the support that the mount has found."""
    root = tmp_path / "bucket"
    for key in ("db/x", "d/k"):
        (root / key).parent.mkdir(parents=True)
        (root / key).write_text("1")
    bodies = {f"f{i}": np.random.default_rng(i).bytes(n)
              for i, n in enumerate((LARGE, LARGE + 1, MIN, MIN - 1, 10))}
    left = [damage]
    with Service(root, crc=crc, tls=tmp_path if tls else None) as service:
        def honest(request, answer=service.honest):
            if left[0] and request.method == "PUT" and request.key.startswith("d/f"):
                left[0] -= 1
                request.body = bytes([request.body[0] ^ 1]) + request.body[1:]
            return answer(request)
        service.honest = honest
        with rwmounts.RwMount("s3://bucket", tmp_path, env=service.environment()) as m:
            for name, body in bodies.items():
                with open(m.file(f"d/{name}"), "wb") as f:
                    f.write(body)
            m.released()
            support = "".join(m.stats()["store"]["features"]["put_crc32c"])
            assert m.stats()["drafts"]["commit_failures"] == 0
        assert not service.failures
        for name, body in bodies.items():
            assert (root / "d" / name).read_bytes() == body
        assert not [key for key in service.keys("") if PROBE in key]
        yield service, support


def puts(service, probe=False):
    return [r for r in service.requests if r.method == "PUT" and (PROBE in r.key) == probe and
            (probe or r.key.startswith("d/f"))]


def is_unsigned(request):
    return request.headers["x-amz-content-sha256"] == "UNSIGNED-PAYLOAD"


def test_compared(tmp_path):
    """The test costs three requests, once: a wrong CRC, the right one, and a DELETE."""
    with uploaded(tmp_path, "checked") as (service, support):
        assert support == "works"
        assert len(puts(service)) == 5
        for request in puts(service):
            assert is_unsigned(request) == (CRC in request.headers) == (len(request.body) >= MIN)
        assert [is_unsigned(r) for r in puts(service, probe=True)].count(True) == 2


def test_damaged(tmp_path):
    """A body that the service receives damaged is sent again."""
    with uploaded(tmp_path, "checked", damage=1) as (service, _):
        assert len(puts(service)) == 6
        assert is_unsigned(puts(service)[0]) and is_unsigned(puts(service)[1])


@pytest.mark.parametrize("crc, support", [("ignored", "ignored"), (403, "missing"),
                                          (501, "missing"), (500, "untested")])
def test_not_compared(tmp_path, crc, support):
    with uploaded(tmp_path, crc) as (service, found):
        assert found == support
        assert not any(is_unsigned(r) or CRC in r.headers for r in puts(service))


@pytest.mark.parametrize("damage", [0, 1])
def test_not_confirmed(tmp_path, damage):
    """The first large body is sent again with its SHA-256, and all later ones have it at once. The
    object exists then, with the mark of the put; it is replaced, because its bytes may be wrong."""
    with uploaded(tmp_path, "forgotten", damage=damage) as (service, support):
        assert support == "missing"
        sent = puts(service)
        assert [is_unsigned(r) for r in sent] == [True] + 6 * [False]
        assert [r.key for r in sent[:4]] == 3 * ["d/f0"] + ["d/f1"]
        assert ["if-match" in r.headers for r in sent[:4]] == [False, False, True, False]


def test_plain_http(tmp_path):
    """Without TLS, only the SHA-256 in the signature protects a body. Nothing is tested."""
    with uploaded(tmp_path, "checked", tls=False) as (service, support):
        assert support == "unknown"
        assert not any(is_unsigned(r) or CRC in r.headers for r in service.requests)


# ---- domains ----

CHUNKS = 6


def write_domain(path, seed):
    """Chunks without filters. Each begins with another element than the fill value, except for the
    first two: one has the fill value only, so it is not stored."""
    data = np.random.default_rng(seed).integers(1, 100, CHUNKS * LARGE, "i1")
    data[:LARGE] = data[LARGE] = 0
    with h5py.File(path, "w") as f:
        f.create_dataset("d", data=data, chunks=(LARGE,))
    return data


@contextlib.contextmanager
def domains(tmp_path):
    """A mount that has stored a domain, so that it knows what the service does with CRCs."""
    root = tmp_path / "bucket"
    (root / "db").mkdir(parents=True)
    (root / "db" / "x").write_text("1")
    with Service(root, crc="checked", tls=tmp_path) as service:
        with rwmounts.RwMount("s3://bucket", tmp_path, env=service.environment()) as m:
            write_domain(tmp_path / "first.h5", 1)
            shutil.copyfile(tmp_path / "first.h5", m.file("first.h5"))
            service.requests.clear()
            yield service, m


def chunk_puts(service):
    return [r for r in service.requests if r.method == "PUT" and len(r.body) == LARGE]


@pytest.mark.parametrize("damage", [0, 1])
def test_chunks_of_a_domain(tmp_path, damage):
    """Chunks are sent from the journal. One that arrives damaged is sent again."""
    left = [damage]
    with domains(tmp_path) as (service, m):
        def honest(request, answer=service.honest):
            if left[0] and request.method == "PUT" and len(request.body) == LARGE:
                left[0] -= 1
                request.body = request.body[:-1] + b"\0"
            return answer(request)
        service.honest = honest
        data = write_domain(tmp_path / "second.h5", 2)
        shutil.copyfile(tmp_path / "second.h5", m.file("second.h5"))
        sent = chunk_puts(service)
        assert len(sent) == CHUNKS - 1 + damage and all(is_unsigned(r) for r in sent)
        assert {r.body for r in sent} >= {data[i:i + LARGE].tobytes()
                                          for i in range(LARGE, len(data), LARGE)}
        # The server runs in this process, so h5py must not wait for it.
        shutil.copyfile(m.file("second.h5"), tmp_path / "back.h5")
        with h5py.File(tmp_path / "back.h5", "r") as f:
            assert np.array_equal(f["d"][:], data)


def test_a_damaged_journal(tmp_path):
    """What was written has a CRC. Other bytes, which a damaged disk returns, are not stored."""
    with domains(tmp_path) as (service, m):
        data = write_domain(tmp_path / "second.h5", 2)
        body = (tmp_path / "second.h5").read_bytes()
        copy = os.open(m.file("second.h5"), os.O_WRONLY | os.O_CREAT)
        assert os.write(copy, body) == len(body)
        at = body.index(data[2 * LARGE:3 * LARGE].tobytes()) + LARGE // 2
        spool, = (p for p in tmp_path.rglob("spool.0") if p.stat().st_size >= len(body))
        with open(spool, "r+b") as f:
            f.seek(at)
            f.write(bytes([body[at] ^ 1]))
        with pytest.raises(OSError) as e:
            os.close(copy)
        assert e.value.errno == errno.EIO
        assert "the local disk is damaged" in m.log()
        damaged = body[at - 9:at] + bytes([body[at] ^ 1])
        assert len([r for r in chunk_puts(service) if damaged in r.body]) == 1
        assert "second.h5" not in os.listdir(tmp_path / "bucket")
        with open(spool, "r+b") as f:
            f.seek(at)
            f.write(body[at:at + 1])
    assert any(name.startswith("second") for name in os.listdir(tmp_path / "bucket"))
