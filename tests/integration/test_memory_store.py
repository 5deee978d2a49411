# SPDX-License-Identifier: Apache-2.0
"""The server of the benchmarks shows the same bucket as a directory with the same objects."""
import os
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


def test_it_shows_what_a_directory_shows(tmp_path, mount):
    with mkbucket.Maker(tmp_path / "directory") as bucket:
        fill(bucket)
    with Objects(tmp_path / "objects") as bucket:
        fill(bucket)
    expected = shown(mount(tmp_path / "directory"))
    server = subprocess.Popen([PROGRAM, tmp_path / "objects"], stdout=subprocess.PIPE, text=True)
    try:
        endpoint = "http://127.0.0.1:" + server.stdout.readline().split("=")[1].strip()
        env = dict(os.environ, AWS_ACCESS_KEY_ID="access", AWS_SECRET_ACCESS_KEY="secret",
                   AWS_ENDPOINT_URL=endpoint, AWS_REGION="us-east-1")
        m = mount("s3://bucket", "debug_count", env=env)
        assert len(expected) == 45 and shown(m) == expected
        assert m.counts()["bytes_in"] > 0 and m.stop() == 0
    finally:
        server.terminate()
        assert server.wait(10) == 0
        server.stdout.close()
