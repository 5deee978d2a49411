# SPDX-License-Identifier: Apache-2.0
"""Zarr stores in a bucket of an S3 service."""
import errno
import os

import h5py
import numpy as np
import pytest

import gateway
import mounts
from gateway import needs_gateway
from mounts import Mount
from rwmounts import RwMount
from zarr_stores import NUMBERS, Stores
from zarr_write import Store

pytestmark = needs_gateway
BUCKET = "zarr-stores"


@pytest.fixture(scope="module", name="env")
def fixture_env(gateway, tmp_path_factory):
    env = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
    env.update(HOME=str(tmp_path_factory.mktemp("home")), AWS_EC2_METADATA_DISABLED="true",
               AWS_ACCESS_KEY_ID=gateway["access_key"], AWS_ENDPOINT_URL=gateway["endpoint"],
               AWS_SECRET_ACCESS_KEY=gateway["secret_key"])
    return env


@pytest.fixture(scope="module", name="stores")
def fixture_stores(client, tmp_path_factory, pytestconfig):
    stores = Stores(str(tmp_path_factory.mktemp("stores")))
    with gateway.once(pytestconfig.unpacked, f"{BUCKET}.uploaded") as done:
        if not done.read():
            client.make_bucket(BUCKET)
            for name in NUMBERS:
                path = stores.path(name)
                client.upload(BUCKET, os.path.join(stores.bucket, path), f"{path}/")
            done.write("done")
    return stores


@pytest.fixture(scope="module", name="remote")
def fixture_remote(stores, env, tmp_path_factory):
    with Mount(f"s3://{BUCKET}", tmp_path_factory.mktemp("remote"), env=env) as m:
        yield m


@pytest.mark.sampled
@pytest.mark.parametrize("name", NUMBERS)
def test_equals_its_truth(remote, stores, name):
    assert stores.differences(remote.file(stores.shown(name)), name) == ""


def test_a_single_store(stores, env, tmp_path):
    with Mount(f"s3://{BUCKET}/v2_groups.zarr", tmp_path, env=env) as m:
        assert os.listdir(m.path) == ["v2_groups.zarr.nc"]
        assert stores.differences(m.file("v2_groups.zarr.nc"), "v2_groups") == ""
    text = gateway.hsimage(env, "info", f"s3://{BUCKET}/v2_groups.zarr").decode()
    assert "domain: /v2_groups.zarr\n" in text and "format: zarr2\n" in text


def read_ahead(m):
    """The file with the read-ahead of a mount, in KiB, and its value."""
    device = os.stat(m.path).st_dev
    path = f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb"
    with open(path, encoding="ascii") as f:
        return path, int(f.read())


def test_the_kernel_reads_few_chunks_ahead(client, env, tmp_path):
    """Each file has the read-ahead for its chunks when it is opened."""
    bucket = "zarr-read-ahead"
    for name, n in ("small", 4096), ("medium", 65536), ("large", 1 << 20):
        with Store(tmp_path / name, 3) as store:
            store.array("data", np.arange(2 * n, dtype="<i4"), chunks=(n,))
            store.array("x", np.arange(2.), names=["x"])
    client.make_bucket(bucket)
    for name in "small", "medium", "large":
        client.upload(bucket, tmp_path / name, f"{name}.zarr/")
    with Mount(f"s3://{bucket}", tmp_path, env=env) as m:
        if not os.access(read_ahead(m)[0], os.W_OK):
            pytest.skip("only root may change the read-ahead")
        for name, kb in ("small", 64), ("large", 2048), ("medium", 1024), ("small", 64):
            with open(m.file(f"{name}.zarr.nc"), "rb"):
                assert read_ahead(m)[1] == kb, name
        with open(m.file("small.zarr/zarr.json"), "rb"):
            assert read_ahead(m)[1] == 2048


def test_a_chunk_that_changes_under_an_open_file(client, env, tmp_path):
    """The chunk is far from the metadata, so that the kernel does not read it ahead."""
    last = 63
    bucket, numbers = "zarr-fresh", np.arange(2048 * (last + 1), dtype="<i4")
    with Store(tmp_path / "x.zarr", 3) as store:
        data = store.array("data", numbers, chunks=(2048,))
    client.make_bucket(bucket)
    client.upload(bucket, tmp_path / "x.zarr", "x.zarr/")
    with Mount(f"s3://{bucket}", tmp_path, env=env) as m:
        path = m.file("x.zarr.nc")
        with h5py.File(path, "r") as f:
            at = [f["data"].id.get_chunk_info(i).byte_offset for i in (0, last)]
        fd = os.open(path, os.O_RDONLY)
        client.put(bucket, f"x.zarr/data/c.{last}", data.encoded((0,)))
        with pytest.raises(OSError) as raised:
            os.pread(fd, 8192, at[1])
        assert raised.value.errno == errno.ESTALE
        assert os.pread(fd, 8192, at[0]) == numbers[:2048].tobytes()
        os.close(fd)
        with h5py.File(path, "r") as f:
            assert f["data"][-2048:].tolist() == numbers[:2048].tolist()


def test_a_store_that_is_copied_into_a_mount(client, env, tmp_path):
    with Store(tmp_path / "x.zarr", 2, attributes={"title": "copied"}) as store:
        store.array("g/data", np.arange(100), chunks=(9,), codecs=["shuffle", "zlib"])
    client.make_bucket("zarr-rw")
    with RwMount("s3://zarr-rw", tmp_path, "allow_empty", env=env) as m:
        mounts.run("cp", "-r", tmp_path / "x.zarr", m.path, check=True)
        assert os.listdir(m.path) == ["x.zarr.nc"]
        printed = mounts.run("ncdump", m.file("x.zarr.nc"), check=True).stdout
        assert 'title = "copied"' in printed and "97, 98, 99" in printed
    with Mount("s3://zarr-rw", tmp_path, env=env) as m:
        assert os.listdir(m.path) == ["x.zarr.nc"]


def test_more_than_a_page_of_keys(client, env, tmp_path):
    """Not consolidated: groups are listed level by level, also behind the first page of children
    of one of them."""
    numbers = np.arange(20, dtype="<i2")
    with Store(tmp_path / "large.zarr", 3) as store:
        store.array("a/b/numbers", numbers, chunks=(1,))
        for i in range(1010):
            store.group(f"many/{i}")
        store.group("many")
        store.group("z", {"last": 1})
    bucket = "zarr-large"
    client.make_bucket(bucket)
    client.upload(bucket, tmp_path / "large.zarr", "large.zarr/")
    with Mount(f"s3://{bucket}", tmp_path, env=env) as m:
        with h5py.File(m.file("large.zarr.nc"), "r") as f:
            assert np.array_equal(f["a/b/numbers"], numbers)
            assert len(f["many"]) == 1010 and f["z"].attrs["last"] == 1


def test_requests_of_a_walk(client, env, tmp_path):
    """Stores with few keys share the pages of a listing, which also shows their sizes. Then the
    only requests for each store are those of its documents."""
    bucket, n = "zarr-walk", 40
    for i in range(n):
        with Store(tmp_path / f"b/d/{i:02}.zarr", 2, consolidated=True) as store:
            store.array("a", np.arange(i + 1, dtype="<i4"))
    client.make_bucket(bucket)
    client.upload(bucket, tmp_path / "b")
    with Mount(f"s3://{bucket}", tmp_path, "debug_count", env=env) as m:
        folder = os.path.join(m.path, "d")
        os.stat(folder)
        before = m.counts()
        names = sorted(os.listdir(folder))
        assert names == [f"{i:02}.zarr.nc" for i in range(n)]
        sizes = [os.stat(os.path.join(folder, name)).st_size for name in names]
        spent = mounts.difference(before, m.counts())
        assert spent["gets"] == n and spent["lists"] <= 3 and not spent["heads"], spent
        for name, size in zip(names, sizes):
            with open(os.path.join(folder, name), "rb") as f:
                assert len(f.read()) == size > 4096


def test_a_whole_bucket_cannot_be_a_store(client, env, tmp_path):
    with Store(tmp_path / "whole", 2) as store:
        store.array("x", np.arange(3))
    client.make_bucket("zarr-whole")
    client.upload("zarr-whole", tmp_path / "whole")
    done = mounts.run(mounts.HSIMAGE, "ls", "s3://zarr-whole", env=env)
    assert done.returncode == 1 and "nothing is above it" in done.stderr
