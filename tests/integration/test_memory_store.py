# SPDX-License-Identifier: Apache-2.0
"""The server of the benchmarks shows the same bucket as a directory with the same objects."""
import contextlib
import http.client
import os
import re
import subprocess

import mkbucket
import mounts

PROGRAM = os.path.join(mounts.BUILD, "tests", "bench", "memory_store")


def fill(bucket):
    for i in range(40):
        d = bucket.domain(f"folder/{i:02}.h5")
        d.dataset(d.root, "data", mkbucket.INT32, [4], [4]).chunk((0,), bytes([i] * 16))
    d = bucket.domain("an odd name &%+/large.h5")
    data = d.dataset(d.root, "data", mkbucket.INT8, [1200], [1])
    for i in range(1200):
        data.chunk((i,), bytes([i % 251]))
    bucket.put("folder/plain.txt", b"plain" * 1000)


class Objects(mkbucket.Maker):
    """The file that the server reads."""

    def __init__(self, path):
        self.file, self.domains = open(path, "wb"), []

    def __exit__(self, *result):
        super().__exit__(*result)
        self.file.close()

    def put(self, key, body):
        body = bytes(body)
        self.file.write(b"%d bucket/%s\n" % (len(body), key.encode()) + body)


def shown(m):
    out = {}
    for at, directories, names in os.walk(m.path):
        for name in names:
            with open(os.path.join(at, name), "rb") as f:
                out[os.path.relpath(f.name, m.path)] = f.read()
        out[os.path.relpath(at, m.path)] = sorted(directories)
    return out


@contextlib.contextmanager
def serving(objects):
    """The address of a server with these objects."""
    server = subprocess.Popen([PROGRAM, objects], stdout=subprocess.PIPE, text=True)
    try:
        yield "127.0.0.1:" + server.stdout.readline().split("=")[1].strip()
    finally:
        server.terminate()
        assert server.wait(10) == 0
        server.stdout.close()


def test_it_shows_what_a_directory_shows(tmp_path, mount):
    with mkbucket.Maker(tmp_path / "directory") as bucket:
        fill(bucket)
    with Objects(tmp_path / "objects") as bucket:
        fill(bucket)
    expected = shown(mount(tmp_path / "directory"))
    with serving(tmp_path / "objects") as address:
        env = dict(os.environ, AWS_ACCESS_KEY_ID="access", AWS_SECRET_ACCESS_KEY="secret",
                   AWS_ENDPOINT_URL=f"http://{address}", AWS_REGION="us-east-1")
        m = mount("s3://bucket", "debug_count", env=env)
        assert len(expected) == 45 and shown(m) == expected
        assert m.counts()["bytes_in"] > 0 and m.stop() == 0


def test_it_keeps_connections_and_knows_conditions(tmp_path):
    with Objects(tmp_path / "objects") as bucket:
        for key in ("f/", "f/a", "f/b/x", "f/c"):
            bucket.put(key, b"text")
    with serving(tmp_path / "objects") as address:
        connection = http.client.HTTPConnection(address)

        def get(target, **fields):
            connection.request("GET", f"/bucket{target}", headers=fields)
            answer = connection.getresponse()
            assert not answer.will_close
            return answer.status, answer.read(), answer.getheader("ETag")

        def names(after):
            _, text, _ = get(f"?list-type=2&prefix=f/&delimiter=/&start-after={after}")
            return re.findall("<(?:Key|Prefix)>([^<]*)", text.decode())

        status, body, etag = get("/f/a")
        assert (status, body) == (200, b"text")
        assert get("/f/a", **{"If-None-Match": etag})[:2] == (304, b"")
        assert get("/f/a", Range="bytes=1-2")[:2] == (206, b"ex")
        assert names("f/") == ["f/a", "f/b/", "f/c"]
        assert names("f/b/") == ["f/c"]
        connection.close()
