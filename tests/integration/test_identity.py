# SPDX-License-Identifier: Apache-2.0
"""A domain always gives the same bytes, and a copy of its file needs no mount."""
import hashlib
import os

import compare
from mounts import run
from oracle import mount_name
from sampling import sampled


def digest(path):
    h = hashlib.sha256()
    with open(path, "rb") as f:
        while block := f.read(1 << 20):
            h.update(block)
    return h.hexdigest(), os.stat(path).st_size


def test_two_mounts_give_the_same_bytes(pytestconfig, mount):
    for which in pytestconfig.collections:
        first, second = mount(which.bucket.root), mount(which.bucket.root, "cache_size=1M")
        for path in sampled(which.bucket.files()):
            name = mount_name(path)
            assert digest(first.file(name)) == digest(second.file(name)), path


def test_copies_open_without_the_mount(sample, mount, tmp_path):
    mounted = mount(sample.bucket.root)
    copies = {}
    for path in sampled(sample.bucket.files()):
        copies[path] = tmp_path / f"{len(copies)}.h5"
        run("cp", "--sparse=auto", mounted.file(mount_name(path)), copies[path], check=True)
    assert mounted.stop() == 0
    for path, copy in copies.items():
        assert compare.differences(sample.bucket, path, copy) == [], path


def test_sparse_copies_are_equal(sample, mount, tmp_path):
    mounted = mount(sample.bucket.root)
    for path in sample.bucket.files()[:12]:
        shown, copy = mounted.file(mount_name(path)), tmp_path / "copy.h5"
        run("cp", "--sparse=always", shown, copy, check=True)
        run("cmp", shown, copy, check=True)


def test_tar_with_holes(sample, mount, tmp_path):
    mounted, names = mount(sample.bucket.root), []
    for path in sample.bucket.files()[:12]:
        names.append(mount_name(path))
        digest(mounted.file(names[-1]))         # the size is exact from now on
    run("tar", "-S", "-cf", tmp_path / "a.tar", "-C", mounted.path, *names, check=True)
    run("tar", "-xf", tmp_path / "a.tar", "-C", tmp_path, check=True)
    for name in names:
        run("cmp", mounted.file(name), tmp_path / name, check=True)


def test_seek_finds_data_and_the_end(sample, mount):
    mounted = mount(sample.bucket.root)
    for path in sample.bucket.files()[:12]:
        fd = os.open(mounted.file(mount_name(path)), os.O_RDONLY)
        try:
            size = os.fstat(fd).st_size
            assert os.lseek(fd, 0, os.SEEK_DATA) == 0       # the superblock
            assert 0 < os.lseek(fd, 0, os.SEEK_HOLE) <= size
            assert os.lseek(fd, 0, os.SEEK_END) == size
        finally:
            os.close(fd)
