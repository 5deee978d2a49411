# SPDX-License-Identifier: Apache-2.0
"""What protects the bodies of uploads: over TLS a CRC-32C, if the service compares it; otherwise
the SHA-256 in the signature. See "Checksums of S3 objects" in doc/DETAILS.md."""
import contextlib

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
