# SPDX-License-Identifier: Apache-2.0
"""The two programs as a person or a script meets them."""
import ctypes
import os
import pty
import select
import signal
import subprocess

import pytest

import mkbucket
from mounts import HSIMAGE, HSMOUNT, PATIENCE, Mount, is_mounted, run, unmount, wait_for
from oracle import mount_name


@pytest.fixture
def bucket(tmp_path):
    root = tmp_path / "bucket"
    with mkbucket.Maker(root) as made:
        d = made.domain("home/x.h5")
        d.dataset(d.root, "data", mkbucket.INT32, [4]).chunk((0,), bytes(range(16)))
        made.put("home/plain.txt", b"plain\n")
    return root


@pytest.fixture
def directory(tmp_path):
    path = tmp_path / "mnt"
    path.mkdir()
    yield path
    if is_mounted(path):
        unmount(path)


@pytest.mark.parametrize("program", [HSMOUNT, HSIMAGE])
def test_help_and_version(program):
    out = run(program, "--help")
    assert out.returncode == 0 and out.stdout.lower().startswith("usage") and not out.stderr
    assert max(map(len, out.stdout.splitlines())) <= 100
    out = run(program, "--version")
    assert out.returncode == 0 and "0.1.0" in out.stdout


@pytest.mark.parametrize("arguments, words", [
    ((), "missing operand: BUCKET and MOUNTPOINT are required"),
    (("only-a-bucket",), "missing operand: BUCKET and MOUNTPOINT are required"),
    (("--no-such-option",), "--no-such-option"), (("a", "b", "c"), "extra operand: c"),
    (("a", "b", "-o", "nonsense"), "-o nonsense: unknown option")])
def test_hsmount_refuses_wrong_usage(arguments, words, tmp_path):
    out = run(HSMOUNT, *arguments, cwd=tmp_path)
    assert out.returncode == 2 and words in out.stderr and not out.stdout


@pytest.mark.parametrize("arguments, words", [
    ((), "missing operand: COMMAND is required"), (("explode", "x"), "explode: no such command"),
    (("ls",), "usage: ls"), (("info",), "usage: info"), (("export",), "usage: export"),
    (("ls", "--no-such-option", "x"), "--no-such-option")])
def test_hsimage_refuses_wrong_usage(arguments, words, tmp_path):
    out = run(HSIMAGE, *arguments, cwd=tmp_path)
    assert out.returncode == 2 and words in out.stderr and not out.stdout


def test_long_options(bucket, directory):
    """Every option of -o is also an option of its own."""
    out = run(HSMOUNT, "--metadata-ttl=0", "--no-sign-request", "--cache-size", "1M", "--ro",
              bucket, directory)
    assert out.returncode == 0, out.stderr
    out = run(HSIMAGE, "--cache-size=lots", "ls", bucket)
    assert out.returncode == 2 and "cache_size=lots" in out.stderr
    out = run(HSIMAGE, "--ca-bundle", "/no/such/file", "--no-sign-request",
              "--endpoint=https://127.0.0.1:1", "--region=us-east-1", "ls", "s3://bucket")
    assert out.returncode == 1 and "/no/such/file" in out.stderr
    assert run(HSIMAGE, "--umask=0", "ls", bucket).returncode == 2, "only hsmount has it"


@pytest.mark.parametrize("name", ["endpoint", "region", "profile", "ca_bundle", "bucket_owner"])
def test_values_that_are_empty(name):
    """Of a shell's variable that is not set: told as that, not as what it leads to."""
    out = run(HSIMAGE, "-o", f"{name}=", "ls", "s3://bucket")
    assert out.returncode == 2 and f"{name}=: must not be empty" in out.stderr


def test_options_that_do_not_go_together(bucket, directory, tmp_path):
    """A size for what there is not is told, not ignored. Their order does not matter."""
    for arguments in [(HSMOUNT, "-o", "cache_disk_size=2M", bucket, directory),
                      (HSMOUNT, "--cache-disk-size=2M", bucket, directory),
                      (HSIMAGE, "-o", "cache_disk_size=2M", "ls", bucket)]:
        out = run(*arguments)
        assert out.returncode == 2 and not out.stdout and not is_mounted(directory)
        assert "cache_disk_size: nothing is kept on disk without cache_dir" in out.stderr
    out = run(HSIMAGE, "-o", f"cache_disk_size=2M,cache_dir={tmp_path}/cache", "ls", bucket)
    assert out.returncode == 0, out.stderr


def test_a_bucket_that_is_not_there(directory, tmp_path):
    for name in ("no-such-bucket", "file:///no/such/bucket"):
        out = run(HSMOUNT, name, directory, cwd=tmp_path)
        assert out.returncode > 0 and "no" in out.stderr and not is_mounted(directory)
    assert "file://: no directory is named" in run(HSMOUNT, "file://", directory).stderr


def test_a_mount_point_that_is_not_there(bucket, tmp_path):
    out = run(HSMOUNT, bucket, tmp_path / "nowhere")
    assert out.returncode > 0 and "nowhere" in out.stderr


def test_a_mount_point_within_the_bucket(bucket, tmp_path):
    """It would show itself. On the bucket's own directory a mount may lie."""
    within = bucket / "home" / "mnt"
    within.mkdir()
    os.symlink(bucket, tmp_path / "link")
    out = run(HSMOUNT, tmp_path / "link", within)
    unmount(within)
    assert out.returncode == 1 and "lies within the bucket" in out.stderr
    (tmp_path / "bucket2").mkdir()
    for place in (bucket, tmp_path / "bucket2"):
        out = run(HSMOUNT, bucket, place)
        assert out.returncode == 0, out.stderr
        try:
            assert (place / "home" / "plain.txt").read_bytes() == b"plain\n"
        finally:
            unmount(place)


def test_the_same_mount_twice(bucket, tmp_path):
    """Is refused; another bucket may lie on top. Names that are escaped in lists of mounts are."""
    place = tmp_path / "a b"
    place.mkdir()
    bucket = bucket.rename(tmp_path / "buck et,x")
    (tmp_path / "other" / "db").mkdir(parents=True)
    try:
        for what, code in ((bucket, 0), (bucket, 1), (tmp_path / "other", 0), (bucket, 0)):
            out = run(HSMOUNT, what, place)
            assert out.returncode == code, out.stderr
            assert ("is mounted there already" in out.stderr) == bool(code)
    finally:
        for _ in range(4):
            unmount(place)
    assert not is_mounted(place)


def test_a_mount_that_is_hidden(bucket, directory):
    """By another one above it: it is not in the way."""
    place = directory / "place"
    place.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    hidden = False
    try:
        assert run(HSMOUNT, bucket, place).returncode == 0
        if libc.mount(b"none", os.fsencode(directory), b"tmpfs", 0, None):
            pytest.skip(f"no tmpfs: {os.strerror(ctypes.get_errno())}")
        hidden = True
        place.mkdir()
        out = run(HSMOUNT, bucket, place)
        assert out.returncode == 0, out.stderr
        assert "is mounted there already" in run(HSMOUNT, bucket, place).stderr
        unmount(place)
    finally:
        if hidden:
            libc.umount2(os.fsencode(directory), 2)
        unmount(place)


def test_a_mount_whose_daemon_has_died(bucket, tmp_path):
    """Who mounts again is told what is in the way, and what to do."""
    m = Mount(bucket, tmp_path)
    m.start()
    try:
        m.process.kill()
        m.process.wait(PATIENCE)
        out = run(HSMOUNT, bucket, m.path)
        assert out.returncode == 1 and "fusermount3 -u" in out.stderr and m.path in out.stderr
        run("fusermount3", "-u", m.path, check=True)
        assert not is_mounted(m.path)
        out = run(HSMOUNT, bucket, m.path)
        assert out.returncode == 0, out.stderr
    finally:
        while is_mounted(m.path):
            unmount(m.path)


def test_a_mount_that_an_automounter_waits_for(bucket, directory):
    """systemd's, say: to look into the place before the mount is there is to wait for oneself."""
    libc = ctypes.CDLL(None, use_errno=True)
    asked, ask = os.pipe()
    options = f"fd={ask},pgrp={os.getpgrp()},minproto=5,maxproto=5,direct"
    try:
        if libc.mount(b"automount", os.fsencode(directory), b"autofs", 0, options.encode()):
            pytest.skip(f"no autofs: {os.strerror(ctypes.get_errno())}")
        try:
            # In a session, and so a process group, of its own.
            out = run(HSMOUNT, bucket, directory, timeout=PATIENCE, start_new_session=True)
            assert out.returncode == 0, out.stderr
            assert not select.select([asked], [], [], 0)[0]
            assert os.listdir(directory / "home")
            run("fusermount3", "-u", directory, check=True)
        finally:
            os.close(asked)     # who waits is let go
            asked = -1
            for _ in range(2):
                libc.umount2(os.fsencode(directory), 2)
    finally:
        for fd in (asked, ask):
            if fd >= 0:
                os.close(fd)


@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_daemonizes_and_unmounts(bucket, directory, form):
    out = run(HSMOUNT, form.format(bucket), directory)
    assert out.returncode == 0, out.stderr
    assert is_mounted(directory), "the parent returns once the file system is there"
    assert os.listdir(directory / "home") and (directory / "home/x.h5").stat().st_size > 0
    run("fusermount3", "-u", directory, check=True)
    assert wait_for(lambda: not is_mounted(directory))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_unmount(bucket, tmp_path, number):
    with Mount(bucket, tmp_path) as m:
        os.listdir(m.path)
        process = m.process
        process.send_signal(number)
        assert process.wait(PATIENCE) == 0
        assert not is_mounted(m.path)


def test_ls(bucket):
    out = run(HSIMAGE, "ls", bucket, check=True)
    assert out.stdout.split() == ["home/"] or "home" in out.stdout
    out = run(HSIMAGE, "ls", f"{bucket}/home", check=True)
    assert "x.h5" in out.stdout and "plain.txt" in out.stdout
    assert run(HSIMAGE, "ls", f"{bucket}/nowhere").returncode > 0


def test_info(bucket):
    out = run(HSIMAGE, "info", f"{bucket}/home/x.h5", check=True)
    assert "/data" in out.stdout or "data" in out.stdout
    out = run(HSIMAGE, "info", f"{bucket}/home/nothing.h5")
    assert out.returncode > 0 and "nothing.h5" in out.stderr


def test_export_equals_the_mount(sample, mount, tmp_path):
    m = mount(sample.bucket.root)
    for path in sample.bucket.files():
        name = mount_name(path)
        with open(m.file(name), "rb") as f:
            shown = f.read()
        target = tmp_path / "out.h5"
        run(HSIMAGE, "export", f"{sample.bucket.root}/{name}", target, check=True)
        assert target.read_bytes() == shown, path
        target.unlink()


def test_export_to_standard_output(bucket, tmp_path):
    run(HSIMAGE, "export", f"{bucket}/home/x.h5", tmp_path / "a.h5", check=True)
    out = subprocess.run([HSIMAGE, "export", f"{bucket}/home/x.h5", "-"], timeout=PATIENCE,
                         capture_output=True, check=True)
    assert out.stdout == (tmp_path / "a.h5").read_bytes()
    assert out.stderr == b"", "no progress bar without a terminal"


def test_a_bar_that_does_not_come_to_its_end(tmp_path):
    with mkbucket.Maker(tmp_path / "bucket") as made:
        d = made.domain("x.h5")
        d.dataset(d.root, "data", mkbucket.INT32, [4096]).chunk((0,), bytes(16384))
    terminal, theirs = pty.openpty()
    try:
        done = subprocess.run([HSIMAGE, "-o", "debug_fault=fail:1+@*/d/*/[0-9]*", "export",
                               tmp_path / "bucket" / "x.h5", tmp_path / "out.h5"],
                              stderr=theirs, timeout=PATIENCE, check=False)
        said = os.read(terminal, 1 << 16)
    finally:
        os.close(theirs)
        os.close(terminal)
    assert done.returncode == 1 and b"%" in said and b"100%" not in said


def test_names_do_not_drive_the_terminal(bucket):
    """Not by control characters of one byte nor of two, nor by what is no character."""
    for name in (b"a\x1b[2J", b"b\xc2\x9b2J", b"c\x9b2J", "dü".encode()):
        with open(os.path.join(os.fsencode(bucket), b"home", name), "wb"):
            pass
    out = subprocess.run([HSIMAGE, "ls", f"{bucket}/home"], timeout=PATIENCE, capture_output=True,
                         check=True)
    assert out.stdout.decode().split() == [
        r"a\x1b[2J", r"b\xc2\x9b2J", r"c\x9b2J", "dü", "plain.txt", "x.h5"]


def test_a_failed_export_leaves_nothing(tmp_path):
    with mkbucket.Maker(tmp_path / "bucket") as made:
        d = made.domain("x.h5")
        d.dataset(d.root, "data", mkbucket.INT32, [4]).chunk((0,), b"short")
    out = run(HSIMAGE, "export", tmp_path / "bucket/x.h5", tmp_path / "out.h5")
    assert out.returncode > 0 and out.stderr.strip()
    assert not (tmp_path / "out.h5").exists()
