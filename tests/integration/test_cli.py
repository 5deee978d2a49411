# SPDX-License-Identifier: Apache-2.0
"""The command lines of the two programs."""
import ctypes
import os
import pathlib
import re
import select
import signal
import stat
import subprocess
import tempfile

import pytest

import mkbucket
from mounts import HSIMAGE, HSMOUNT, PATIENCE, Mount, is_mounted, run, unmount, wait_for


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


@pytest.mark.parametrize("program", [HSMOUNT, HSIMAGE])
def test_help_to_a_full_disk(program):
    with open("/dev/full", "w", encoding="utf-8") as full:
        out = subprocess.run([program, "--help"], stdout=full, stderr=subprocess.PIPE, check=False,
                             timeout=PATIENCE)
    assert out.returncode == 1 and b"No space left on device" in out.stderr


@pytest.mark.parametrize("program, arguments, words", [
    (HSMOUNT, ("", "m"), "empty operand: BUCKET\n"),
    (HSMOUNT, ("b", ""), "empty operand: MOUNTPOINT\n"),
    (HSIMAGE, ("ls", ""), "empty operand: BUCKET[/PATH]\n"),
    (HSIMAGE, ("-b", "b", "ls", ""), "empty operand: PATH\n"),
    (HSIMAGE, ("export", "b/x.h5", ""), "empty operand: FILE\n"),
    (HSIMAGE, ("export", "b/x.h5", "--output="), "--output: must not be empty\n"),
    (HSIMAGE, ("-b", "", "ls"), "--bucket: must not be empty\n"),
    (HSIMAGE, ("help", "ls", "info"), 'extra operand: "info"\n')])
def test_operands_that_are_empty(program, arguments, words, tmp_path):
    """An empty operand, from a shell variable that is not set, is refused."""
    out = run(program, *arguments, cwd=tmp_path)
    assert out.returncode == 2 and words in out.stderr and not out.stdout


@pytest.mark.parametrize("arguments, words", [
    ((), "missing operand: BUCKET and MOUNTPOINT\n"),
    (("only-a-bucket",), "missing operand: MOUNTPOINT\n"),
    (("--no-such-option",), "--no-such-option"), (("a", "b", "c"), 'extra operand: "c"\n'),
    (("a", "b", "-o", "nonsense"), "-o nonsense: unknown option")])
def test_hsmount_refuses_wrong_usage(arguments, words, tmp_path):
    out = run(HSMOUNT, *arguments, cwd=tmp_path)
    assert out.returncode == 2 and words in out.stderr and not out.stdout


def test_long_options(bucket, directory):
    """Every option of -o is also a long option."""
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
    """From a shell variable that is not set. The message says so."""
    out = run(HSIMAGE, "-o", f"{name}=", "ls", "s3://bucket")
    assert out.returncode == 2 and f"{name}=: must not be empty" in out.stderr


def test_options_that_do_not_go_together(bucket, directory, tmp_path):
    """A size without a cache directory is an error. The order of options does not matter."""
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
    out = run(HSMOUNT, "file://localhost/bucket", directory)
    assert out.returncode == 1 and "bucket file://localhost/bucket: No such file" in out.stderr
    out = run(HSMOUNT, "file://", directory)
    assert out.returncode == 1 and "file://: the name of the directory is missing" in out.stderr


def test_a_mount_point_that_is_not_there(bucket, tmp_path):
    out = run(HSMOUNT, bucket, tmp_path / "nowhere")
    assert out.returncode > 0 and "nowhere" in out.stderr


def test_a_mount_point_within_the_bucket(bucket, tmp_path):
    """The bucket would contain itself. A mount on the directory of the bucket is allowed."""
    within = bucket / "home" / "mnt"
    within.mkdir()
    os.symlink(bucket, tmp_path / "link")
    out = run(HSMOUNT, tmp_path / "link", within)
    unmount(within)
    assert out.returncode == 1 and "is inside the bucket" in out.stderr
    (tmp_path / "bucket2").mkdir()
    for place in (bucket, tmp_path / "bucket2"):
        out = run(HSMOUNT, bucket, place)
        assert out.returncode == 0, out.stderr
        try:
            assert (place / "home" / "plain.txt").read_bytes() == b"plain\n"
        finally:
            unmount(place)


def test_the_same_mount_twice(bucket, tmp_path):
    """The second one is refused; that of another bucket needs -o nonempty. The names of bucket and
    mount point are escaped in /proc/mounts."""
    place = tmp_path / "a b"
    place.mkdir()
    bucket = bucket.rename(tmp_path / "buck et,x")
    other = tmp_path / "other"
    (other / "db").mkdir(parents=True)
    same, differs = "is mounted there already", "mount over it with -o nonempty"
    try:
        for what, options, words in [
                (bucket, [], ""), (bucket, [], same), (bucket, ["-o", "nonempty"], same),
                (other, [], differs), (other, ["-o", "nonempty"], ""), (bucket, [], differs),
                (bucket, ["--nonempty"], "")]:
            out = run(HSMOUNT, what, place, *options)
            assert out.returncode == bool(words) and words in out.stderr, out.stderr
    finally:
        for _ in range(3):
            unmount(place)
    assert not is_mounted(place)


def test_a_mount_that_is_hidden(bucket, directory):
    """A mount that another mount hides does not count."""
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
    """Mounting again fails, and the message says what to do."""
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
    """systemd makes such mounts. If hsmount opened the mount point before mounting, it would
    deadlock."""
    libc = ctypes.CDLL(None, use_errno=True)
    asked, ask = os.pipe()
    options = f"fd={ask},pgrp={os.getpgrp()},minproto=5,maxproto=5,direct"
    try:
        if libc.mount(b"automount", os.fsencode(directory), b"autofs", 0, options.encode()):
            pytest.skip(f"no autofs: {os.strerror(ctypes.get_errno())}")
        try:
            # In a separate session, and so in a separate process group.
            out = run(HSMOUNT, bucket, directory, timeout=PATIENCE, start_new_session=True)
            assert out.returncode == 0, out.stderr
            assert not select.select([asked], [], [], 0)[0]
            assert os.listdir(directory / "home")
            run("fusermount3", "-u", directory, check=True)
        finally:
            os.close(asked)     # unblocks processes that wait for the automounter
            asked = -1
            for _ in range(2):
                libc.umount2(os.fsencode(directory), 2)
    finally:
        for fd in (asked, ask):
            if fd >= 0:
                os.close(fd)


def test_a_descriptor_as_the_mount_point(bucket, directory):
    """mount.fuse3(8) passes /dev/fd/N for drop_privileges."""
    libc = ctypes.CDLL(None, use_errno=True)
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
    try:
        if libc.mount(b"bucket", os.fsencode(directory), b"fuse.hsmount", 7, options.encode()):
            pytest.skip(f"cannot mount: {os.strerror(ctypes.get_errno())}")
        out = run(HSMOUNT, bucket, f"/dev/fd/{device}", pass_fds=[device])
    finally:
        os.close(device)
    assert out.returncode == 0, out.stderr
    assert (directory / "home" / "plain.txt").read_bytes() == b"plain\n"
    unmount(directory)
    assert not is_mounted(directory)
    out = run(HSMOUNT, bucket, "/dev/fd/999")
    assert out.returncode == 1 and "/dev/fd/999: Bad file descriptor" in out.stderr
    out = run(HSMOUNT, bucket, "/dev/fd/0")      # /dev/null
    assert out.returncode == 1 and "/dev/fd/0: is not an open /dev/fuse" in out.stderr


def test_privileges_are_dropped(bucket, directory):
    """mount.fuse3(8) mounts. allow_other alone is refused: the kernel would not check modes."""
    for options, words in [("allow_other,default_permissions", ""),
                           ("allow_other", "the kernel would not check permissions")]:
        out = run("mount", "-t", "fuse", "-o", f"ro,drop_privileges,{options}",
                  f"{HSMOUNT}#{bucket}", directory)
        if out.returncode and os.getuid():
            pytest.skip(out.stderr)
        try:
            assert bool(out.returncode) == bool(words) and words in out.stderr, out.stderr
            assert words or os.listdir(directory) == ["home"]
        finally:
            unmount(directory)


def test_words_of_fstab_are_accepted(bucket, directory):
    """Also the options in /proc/mounts."""
    run(HSMOUNT, bucket, directory, check=True)
    [line] = [l for l in pathlib.Path("/proc/mounts").read_text(encoding="utf-8").splitlines()
              if f" {directory} " in l]
    unmount(directory)
    assert "user_id=" in line
    for words in (line.split()[3], "rw,noexec,relatime,sync,nodiratime,lazytime,user,nofail,"
                  "_netdev,x-systemd.automount,comment=for the lab",
                  "ro,nosuid,nodev,relatime,user_id=0,group_id=0,max_read=131072,blksize=4096,"
                  'fsname=x,subtype=hsmount,context="u:object_r:t:s0:c1,c2",seclabel'):
        out = run(HSMOUNT, bucket, directory, "-o", words)
        assert out.returncode == 0, out.stderr
        assert os.listdir(directory) == ["home"]
        unmount(directory)
    out = run(HSMOUNT, bucket, directory, "-o", "remount,ro")
    assert out.returncode == 2 and "unmount it and mount it again" in out.stderr


def test_modes_and_owner(bucket, tmp_path):
    with Mount(bucket, tmp_path, "file_mode=0640,dir_mode=0750,uid=daemon,gid=daemon") as m:
        for path, mode in (m.path, 0o750), (m.file("home"), 0o750), (m.file("home/x.h5"), 0o640):
            st = os.stat(path)
            assert (stat.S_IMODE(st.st_mode), st.st_uid, st.st_gid) == (mode, 1, 1), path
    with Mount(bucket, tmp_path, "file_mode=0666,umask=022") as m:
        assert stat.S_IMODE(os.stat(m.file("home/x.h5")).st_mode) == 0o644
        assert stat.S_IMODE(os.stat(m.file("home")).st_mode) == 0o555


def test_the_example_for_fstab():
    """Another user reads a domain whose access control list allows only its owner."""
    page = pathlib.Path(__file__).parents[2] / "doc" / "hsmount.1"
    [example] = re.findall(r"^\.Dl /srv/hsds/bucket (\S+) (\S+) (\S+) 0 0$",
                           page.read_text(encoding="utf-8"), re.M)
    with tempfile.TemporaryDirectory() as parent:
        os.chmod(parent, 0o755)
        root, place = pathlib.Path(parent, "bucket"), pathlib.Path(parent, "mnt")
        place.mkdir()
        with mkbucket.Maker(root) as made:
            d = made.domain("home/x.h5", acls=mkbucket.full_acl())
            d.dataset(d.root, "data", mkbucket.INT32, [4]).chunk((0,), bytes(16))
        # mount(8) sets PATH, so the type "fuse.hsmount" finds an installed hsmount only.
        assert example[1] == "fuse.hsmount"
        out = run("mount", "-t", "fuse", "-o", example[2], f"{HSMOUNT}#{root}", place)
        if out.returncode and os.getuid():
            pytest.skip(out.stderr)
        assert out.returncode == 0, out.stderr
        try:
            out = run("head", "-c", "8", place / "home" / "x.h5", user="nobody", group="nogroup")
            assert out.returncode == 0 and "HDF" in out.stdout, out.stderr
        finally:
            unmount(place)


def test_an_s3_url_with_one_slash(directory):
    for name in ("s3:/bucket", "s3:bucket"):
        out = run(HSMOUNT, name, directory)
        assert out.returncode == 1 and "did you mean s3://bucket?" in out.stderr
        out = run(HSIMAGE, "ls", name)
        assert out.returncode == 1 and "did you mean s3://bucket?" in out.stderr


def test_the_log_names_the_mount(bucket, tmp_path):
    m = Mount(bucket, tmp_path, "log_level=info", "cache_size=64MiB")
    with m:
        os.listdir(m.path)
    assert m.log().splitlines() == [
        f"hsmount: {m.path}: info: mounted {bucket} with hsmount 0.1.0, "
        "options: log_level=info,cache_size=64MiB",
        f"hsmount: {m.path}: info: unmounted {bucket}"]


def test_the_log_of_hsimage_names_the_bucket(bucket):
    out = run(HSIMAGE, "-o", "log_level=debug", "ls", bucket)
    assert out.returncode == 0 and out.stderr
    assert all(line.startswith(f"hsimage: {bucket}: debug: ") for line in out.stderr.splitlines())


def test_the_top_of_a_bucket_is_no_domain(bucket):
    for command, words in ("info", "/: not a domain"), ("export", "/: is a directory"):
        out = run(HSIMAGE, command, bucket)
        assert out.returncode == 1 and out.stderr == f"hsimage: {words}\n"


def test_debug_shows_requests(bucket, tmp_path):
    """One line for each request that is counted, with its key."""
    with Mount(bucket, tmp_path, "log_level=debug", "debug_count") as m:
        with open(m.file("home/x.h5"), "rb") as f:
            f.read()
        counts = m.counts()
        log = m.log()
    for op, n in ("get", counts["gets"]), ("list", counts["lists"]), ("head", counts["heads"]):
        start = f"^hsmount: {re.escape(m.path)}: debug: {op}"
        lines = re.findall(start + r" .*: \S+, \d+ bytes, [\d.]+ ms", log, re.M)
        assert len(lines) == n, log
    assert re.search(r"debug: get home/x\.h5/\.domain\.json: ok, \d+ bytes, ", log), log
    assert re.search(r"debug: get db/\S+: ok, 16 bytes, ", log), log


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
