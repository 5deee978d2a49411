# SPDX-License-Identifier: Apache-2.0
"""MOUNT/.hsmount: the counters of a mount, read with ordinary tools."""
import concurrent.futures
import errno
import json
import os
import shutil
import stat
import subprocess

import pytest

import mkbucket
from mounts import PATIENCE, difference, run

FILES = ["metrics", "stats"]


@pytest.fixture
def small(tmp_path):
    with mkbucket.Maker(tmp_path / "bucket") as bucket:
        d = bucket.domain("home/x.h5")
        d.dataset(d.root, "data", mkbucket.INT32, [4]).chunk((0,), bytes(16))
    return tmp_path / "bucket"


def test_it_is_not_listed(small, mount):
    m = mount(small)
    assert os.listdir(m.path) == ["home"]
    out = run("find", m.path, check=True)
    assert ".hsmount" not in out.stdout
    out = run("tar", "-cf", "/dev/null", "-v", "-C", m.path, ".", check=True)
    assert ".hsmount" not in out.stdout


def test_it_is_found_by_name(small, mount):
    m = mount(small)
    assert sorted(os.listdir(m.file(".hsmount"))) == FILES
    assert stat.S_IMODE(os.stat(m.file(".hsmount")).st_mode) == 0o555
    out = run("ls", "-la", m.file(".hsmount"), check=True)
    assert "stats" in out.stdout and out.stderr == ""
    for name in FILES:
        st = os.stat(m.file(".hsmount", name))
        assert stat.S_ISREG(st.st_mode) and stat.S_IMODE(st.st_mode) == 0o444
        assert st.st_uid == os.getuid() and st.st_size > 100
    with pytest.raises(FileNotFoundError):
        os.stat(m.file(".hsmount", "nothing"))
    with pytest.raises(FileNotFoundError):
        os.stat(m.file("home", ".hsmount"))
    with pytest.raises(OSError) as e:
        open(m.file(".hsmount", "stats"), "w")
    assert e.value.errno == errno.EROFS
    assert os.listxattr(m.file(".hsmount", "stats")) == []
    run("ls", "-R", m.file(".hsmount"), check=True)
    assert "error" not in m.log()


def test_tools_read_it(small, mount, tmp_path):
    m = mount(small)
    stats, metrics = m.file(".hsmount", "stats"), m.file(".hsmount", "metrics")
    shown = json.loads(run("cat", stats, check=True).stdout)
    assert set(shown) >= {"mount", "cache"}
    with open(stats, encoding="utf-8") as f:
        assert set(json.load(f)) == set(shown)
    shutil.copyfile(stats, tmp_path / "python")
    run("cp", stats, tmp_path / "cp", check=True)
    run("dd", f"if={stats}", f"of={tmp_path / 'dd'}", "bs=7", check=True)
    for copy in ("python", "cp", "dd"):
        assert set(json.loads((tmp_path / copy).read_text())) == set(shown), copy
    if shutil.which("jq"):
        assert json.loads(run("jq", ".mount", stats, check=True).stdout)
    text = run("cat", metrics, check=True).stdout
    assert text.endswith("\n") and "# TYPE hsmount_" in text
    assert run("grep", "-c", "^hsmount_", metrics, check=True).stdout.strip().isdigit()
    assert len(run("tail", "-c", "100", metrics, check=True).stdout) > 50
    assert text.startswith(run("head", "-n", "3", metrics, check=True).stdout)


def test_an_open_file_is_one_text(small, mount):
    """The contents of a file do not change while it is open."""
    m = mount(small)
    with open(m.file(".hsmount", "stats"), "rb", buffering=0) as f:
        first = f.read(10)
        for _ in range(20):
            with open(m.file("home/x.h5"), "rb") as x:
                x.read()
        body = first + f.read()
        json.loads(body)
        assert f.seek(0, os.SEEK_END) == len(body)
        assert os.pread(f.fileno(), len(body), 0) == body
        assert os.pread(f.fileno(), 10, len(body)) == b""
        assert os.pread(f.fileno(), 10, len(body) - 5) == body[-5:]
        assert os.lseek(f.fileno(), 3, os.SEEK_DATA) == 3
        assert os.lseek(f.fileno(), 3, os.SEEK_HOLE) == len(body)
    with open(m.file(".hsmount", "stats"), "rb") as f:
        assert f.read() != body, "counters have moved"


def test_it_sends_no_request_to_the_bucket(small, mount):
    m = mount(small, "debug_count", "metadata_ttl=0")
    before = m.counts()
    for _ in range(3):
        os.listdir(m.file(".hsmount"))
        for name in FILES:
            with open(m.file(".hsmount", name), "rb") as f:
                assert f.read()
            os.stat(m.file(".hsmount", name))
    spent = difference(before, m.counts())
    assert not any(spent[k] for k in ("gets", "range_gets", "heads", "lists")), spent


def test_it_hides_an_object_of_the_same_name(small, mount):
    (small / ".hsmount").mkdir()
    (small / ".hsmount" / "stats").write_text("the bucket's")
    (small / "home" / ".hsmount").mkdir()
    (small / "home" / ".hsmount" / "note").write_text("seen")
    m = mount(small)
    assert os.listdir(m.path) == ["home"]
    json.loads(open(m.file(".hsmount", "stats"), encoding="utf-8").read())
    assert open(m.file("home", ".hsmount", "note"), encoding="utf-8").read() == "seen"


def test_many_read_it_at_once(small, mount):
    m = mount(small)
    children = [subprocess.Popen(["cat", m.file(".hsmount", "stats")], stdout=subprocess.PIPE)
                for _ in range(16)]
    for child in children:
        json.loads(child.communicate(timeout=PATIENCE)[0])
        assert child.returncode == 0


def test_files_are_closed_at_once(small, mount):
    """While other threads of the daemon still handle requests for them."""
    m = mount(small)

    def read_and_close():
        for _ in range(100):
            with open(m.file(".hsmount", "metrics"), "rb") as f:
                assert f.read(1 << 20)

    with concurrent.futures.ThreadPoolExecutor(8) as readers:
        for reader in [readers.submit(read_and_close) for _ in range(8)]:
            reader.result(PATIENCE)
