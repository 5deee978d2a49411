# SPDX-License-Identifier: Apache-2.0
"""hsimage recover commit stores drafts in a bucket of S3, with the requests that it needs."""
import collections
import os

import h5py
import numpy as np
import pytest

import faultproxy
import imports
import rwmounts
from gateway import needs_gateway
from mounts import HSIMAGE, run
from programs import Python
from recovery import NAME, listed, recover

pytestmark = needs_gateway
NEW, DATASETS, CHUNKS = "home/new.h5", 6, 4
CHANGE = "f['d'][5] = -1; f['g'].attrs['a'] = 2"


def write_file(path):
    with h5py.File(path, "w") as f:
        f.create_dataset("d", data=np.arange(4000), chunks=(1000,))
        f.create_group("g").attrs["a"] = 1
        f["untouched"] = np.arange(50)


def write_new_file(path):
    with h5py.File(path, "w") as f:
        for n in range(DATASETS):
            f.create_dataset(f"{n}", data=np.arange(1, 1001) + n, chunks=(1000 // CHUNKS,))


def leave_drafts(url, env, tmp_path):
    """A program has changed a domain and another one has written a new file when the daemon is
    killed. Returns {name of the file: draft}."""
    m = rwmounts.RwMount(url, tmp_path, env=env)
    m.start()
    with Python(m.file(NAME)) as p:
        assert p("f = h5py.File(path, 'r+')") == "ok"
        assert p(f"{CHANGE}; f.flush()") == "ok"
        fd = os.open(m.file(NEW), os.O_RDWR | os.O_CREAT, 0o644)
        os.write(fd, (tmp_path / "new.h5").read_bytes())
        m.kill()
    with pytest.raises(OSError):
        os.close(fd)
    return {i["file"]: i["id"] for i in listed(tmp_path)}


def test_commit(gateway, client, environment, tmp_path):
    name = client.new_bucket("recover")
    client.upload(name, imports.make_bucket(tmp_path / "bucket"))
    write_file(tmp_path / "a.h5")
    write_new_file(tmp_path / "new.h5")
    with faultproxy.Proxy(gateway["endpoint"]) as proxy:
        url, env = f"s3://{name}", dict(environment, AWS_ENDPOINT_URL=proxy.endpoint)
        run(HSIMAGE, "-b", url, "import", tmp_path / "a.h5", NAME, env=env, check=True)
        drafts = leave_drafts(url, env, tmp_path)

        def commit(file):
            """Returns the numbers of requests."""
            before = len(proxy.requests)
            recover(tmp_path, "commit", "--yes", drafts[file], env=env, check=True)
            return collections.Counter(r.method for r in proxy.requests[before:])
        # GET: two find out whether it is a bucket, four what the name is. Four listings and four
        # documents open the domain. The document of /g is read again before it is replaced.
        # PUT: the chunk and the document. Before that, a new process tests the conditions of the
        # gateway, which wants ETags without quotes (see s3/probe_conditions.c): six PUTs, a HEAD,
        # a DELETE.
        # HEAD: three ask at the end whether the domain still has what was changed.
        probe = collections.Counter(PUT=6, HEAD=1, DELETE=1)
        assert commit(NAME) == probe + collections.Counter(GET=15, PUT=2, HEAD=3)
        # Each dataset has a document and its chunks. The root group and the domain have documents.
        assert commit(NEW) == probe + collections.Counter(GET=9, PUT=DATASETS * (1 + CHUNKS) + 2)
        assert listed(tmp_path) == []
        with h5py.File(tmp_path / "a.h5", "r+") as f:
            exec(CHANGE, {"f": f})    # pylint: disable=exec-used
        for source, file in ("a.h5", NAME), ("new.h5", NEW):
            run(HSIMAGE, "-b", url, "export", "--force", file, tmp_path / "out.h5", env=env,
                check=True)
            assert rwmounts.file_differences(tmp_path / source, tmp_path / "out.h5") == []
        assert rwmounts.check(url, env).returncode == 0
