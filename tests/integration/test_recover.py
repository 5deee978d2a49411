# SPDX-License-Identifier: Apache-2.0
"""hsimage recover: drafts that mounts have left in the journal, and what can be wrong with it."""
import fcntl
import json
import os
import pty
import re
import shutil
import stat
import subprocess

import pytest

import journals
import mkbucket
from mounts import HSIMAGE, PATIENCE, run

BYTES = os.urandom(100_000)


@pytest.fixture
def bucket(tmp_path):
    root = tmp_path / "bucket"
    with mkbucket.Maker(root) as made:
        made.domain("home/x.h5")
        made.put("home/plain.txt", b"old bytes of the object")
    return root


@pytest.fixture
def journal(tmp_path, bucket):
    return journals.Journal(tmp_path / "journal", bucket)


def recover(journal, *command, **more):
    path = getattr(journal, "path", journal)
    return run(HSIMAGE, "recover", "--journal-dir", path, *command, **more)


def listed(journal, *command):
    done = recover(journal, "list", "--json", *command)
    assert done.stderr == ""
    items = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == (1 if any(i["state"] != "in use" for i in items) else 0)
    return items


def state_of(journal, draft):
    found = [i for i in listed(journal) if i["id"] == draft]
    return found[0]["state"] if found else None


# ---- the commands ----

def test_list(journal, bucket, tmp_path):
    assert listed(journal) == []
    first = journal.add("home/a.h5", [(0, BYTES)])
    second = journal.add("home/b.h5", [(5, b"x")], commit=journals.mark(1),
                         created_ns=1800000000 * 10 ** 9)
    other = journals.Journal(journal.path, "https://s3.example/b\nprefix", "s3://b/prefix")
    third = other.add("c")
    items = {i["id"]: i for i in listed(journal)}
    assert items[first] == {"id": first, "state": "waiting", "size": len(BYTES),
                            "begun": "2023-11-14T22:13:20.000000Z", "bucket": str(bucket),
                            "file": "home/a.h5", "changes_domain": False,
                            "why": "the program that wrote it had not closed it"}
    assert items[second]["size"] == 6 and "the next mount finishes it" in items[second]["why"]
    assert items[third]["bucket"] == "s3://b/prefix"
    assert [i["id"] for i in listed(journal, bucket)] == [first, second]
    assert [i["id"] for i in listed(journal, "s3://b//prefix/")] == [third]
    assert listed(journal, tmp_path) == []
    lines = recover(journal, "list", bucket).stdout.splitlines()
    assert re.match(rf"{first}  waiting +{len(BYTES)}  2023-11-14 22:13  {bucket}  home/a.h5: ",
                    lines[0])


def test_show(journal, bucket):
    draft = journal.add("home/a.h5", [(0, b"head"), (1 << 20, b"tail")], size=2 << 20,
                        commit=journals.mark(2), kind=journals.REPLACE, version='d:"etag"')
    done = recover(journal, "show", draft[:6], check=True)
    for line in (f"draft: {draft}", "file: home/a.h5", 'replaces: a domain of version "etag"',
                 f"bucket: {bucket}", "size: 2097152 bytes", "written: 8 bytes in 2 ranges",
                 "commits: 2, the last one has not ended; the program had closed the file",
                 "content: not an HDF5 file", f"directory: {journal.place(draft)}"):
        assert line in done.stdout.splitlines()


def test_show_hdf5(journal, tmp_path):
    """Complete, cut, and with the mark that a program has it open."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w", libver="latest") as f:
        f["data"] = list(range(1000))
    whole = (tmp_path / "x.h5").read_bytes()
    opened = bytearray(whole)
    opened[11] |= 1
    for data, expected in ((whole, "that was closed; its structures are sound"),
                           (whole[:-10], "that is not complete: its end is missing: "),
                           (bytes(opened), "that is not complete: ")):
        draft = journal.add("x.h5", [(0, data)])
        done = recover(journal, "show", draft, check=True)
        assert f"content: an HDF5 file {expected}" in done.stdout


def test_export(journal, tmp_path):
    size = 3 << 20
    draft = journal.add("home/a", [(100, BYTES), (1 << 20, BYTES)], size=size)
    want = bytearray(size)
    for at in (100, 1 << 20):
        want[at:at + len(BYTES)] = BYTES
    out = tmp_path / "out"
    assert recover(journal, "export", draft, out, check=True).stderr == ""
    assert out.read_bytes() == want
    assert out.stat().st_blocks * 512 < size        # holes stay holes
    done = subprocess.run([HSIMAGE, "recover", "--journal-dir", journal.path, "export", draft, "-"],
                          check=True, timeout=PATIENCE, capture_output=True)
    assert (done.stdout, done.stderr) == (want, b"")
    assert journal.has(draft)

    out.write_bytes(b"precious")
    done = recover(journal, "export", draft, out)
    assert done.returncode == 1 and "the file exists; --force replaces it" in done.stderr
    assert out.read_bytes() == b"precious"
    recover(journal, "export", "--force", draft, out, check=True)
    assert out.read_bytes() == want
    done = recover(journal, "export", draft, tmp_path / "missing" / "out")
    assert done.returncode == 1 and "No such file or directory" in done.stderr


def test_export_over_an_object(journal, bucket, tmp_path):
    """What was not written is only in the bucket."""
    old = (bucket / "home" / "plain.txt")
    st = old.stat()
    version = f"o:{st.st_mtime_ns:x}-{st.st_size:x}-{st.st_ino:x}-{st.st_ctime_ns:x}"
    about = {"kind": journals.CHANGE, "version": version, "beneath": st.st_size}
    draft = journal.add("home/plain.txt", [(0, b"new")], **about)
    out = tmp_path / "out"
    done = recover(journal, "export", draft, out)
    assert done.returncode == 0, done.stderr
    assert out.read_bytes() == b"new bytes of the object"
    whole = journal.add("home/plain.txt", [(0, b"n" * st.st_size)], **about)
    old.write_bytes(b"another object")
    done = recover(journal, "export", "--force", draft, out)
    assert done.returncode == 1 and "the bytes that were not written" in done.stderr
    assert out.read_bytes() == b"new bytes of the object"
    shutil.rmtree(bucket)
    done = recover(journal, "export", "--force", draft, out)
    assert done.returncode == 1 and "is only in the bucket" in done.stderr
    recover(journal, "export", "--force", whole, out, check=True)
    assert out.read_bytes() == b"n" * st.st_size


def test_drop(journal):
    drafts = [journal.add(f"home/{n}") for n in range(4)]
    done = recover(journal, "drop", drafts[0])
    assert done.returncode == 1 and "--yes deletes without a question" in done.stderr
    assert journal.has(drafts[0])
    done = recover(journal, "drop", "-y", drafts[0], "ffff", drafts[1][:5])
    assert done.returncode == 1 and "ffff: there is no such draft" in done.stderr
    assert [i["id"] for i in listed(journal)] == drafts[2:]
    recover(journal, "drop", "--yes", drafts[2], check=True)
    assert [i["id"] for i in listed(journal)] == drafts[3:]


@pytest.mark.parametrize("answer", ["y\n", "n\n", "\n", "\x04"])
def test_drop_asks(journal, answer):
    draft = journal.add("home/a", [(0, b"1234")])
    fd, theirs = pty.openpty()
    with subprocess.Popen([HSIMAGE, "recover", "--journal-dir", journal.path, "drop", draft],
                          stdin=theirs, stderr=subprocess.PIPE, text=True) as asked:
        os.close(theirs)
        os.write(fd, answer.encode())
        _, text = asked.communicate(timeout=PATIENCE)
    os.close(fd)
    assert f"Delete draft {draft} of home/a, 4 bytes? [y/N] " in text
    assert journal.has(draft) == (answer != "y\n")


def test_usage(journal):
    for command, text in (([], "list, show, export, commit or drop is required"),
                          (["lst"], "recover lst: no such command"),
                          (["list", "a", "b"], 'extra operand: "b"'),
                          (["show"], "missing operand: ID"),
                          (["show", ""], "empty operand: ID"),
                          (["export"], "missing operand: ID and FILE"),
                          (["export", "a"], "missing operand: FILE"),
                          (["drop"], "missing operand: ID"),
                          (["commit"], "missing operand: ID"),
                          (["commit", "a", "", "b"], "empty operand: ID"),
                          (["commit", "--json", "a"], "recover commit has no option --json"),
                          (["commit", "--force", "a"], "recover commit has no option --force"),
                          (["drop", "a", "", "b"], "empty operand: ID"),
                          (["list", "--force"], "recover list has no option --force"),
                          (["show", "--json", "a"], "recover show has no option --json"),
                          (["export", "--yes", "a", "b"], "recover export has no option --yes")):
        done = recover(journal, *command)
        assert done.returncode == 2 and text in done.stderr, (command, done.stderr)
    done = run(HSIMAGE, "ls", "--yes", "x")
    assert done.returncode == 2 and "ls has no option --yes" in done.stderr
    for command in ("commit", "drop"):
        assert f"recover {command} [--yes] ID..." in \
            run(HSIMAGE, "help", "recover", check=True).stdout


# ---- bad input ----

@pytest.mark.parametrize("word", ["..", "/", "../x", "a/b", "*", "0" * 17, "ABCDEF", "\x1b[2J",
                                  "-", "a b", "å", "%s%n", "\n"])
def test_strange_ids(journal, tmp_path, word):
    draft = journal.add("a")
    for command in (["show", "--", word], ["export", "--", word, tmp_path / "out"],
                    ["commit", "--yes", "--", word], ["drop", "--yes", "--", word]):
        done = recover(journal, *command)
        assert done.returncode == 1 and "not the id of a draft" in done.stderr, done.stderr
        assert "\x1b" not in done.stderr
    assert journal.has(draft) and not (tmp_path / "out").exists()


def test_directories(tmp_path, bucket):
    """Missing, a link, of others, a file, empty."""
    missing = tmp_path / "missing"
    done = recover(missing, "list")
    assert done.returncode == 1 and "No such file or directory" in done.stderr
    assert not missing.exists()
    env = dict(os.environ, XDG_STATE_HOME=str(tmp_path / "state"), HOME=str(tmp_path / "home"))
    if os.geteuid():
        done = run(HSIMAGE, "recover", "list", env=env)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    journal = journals.Journal(tmp_path / "journal", bucket)
    draft = journal.add("a")
    link = tmp_path / "link"
    link.symlink_to(journal.path)
    for path in (link, f"{link}/"):
        done = recover(path, "list")
        assert done.returncode == 1 and "is a symbolic link" in done.stderr
    for path in (journal.path, journal.path / "2", journal.dir):
        os.chmod(path, 0o755)
        for command in (["list"], ["show", draft], ["drop", "-y", draft]):
            done = recover(journal, *command)
            assert done.returncode == 1 and "can be accessed by others" in done.stderr
        os.chmod(path, 0o700)
    if os.geteuid() == 0:
        os.chown(journal.path, 1, 1)
        done = recover(journal, "list")
        assert done.returncode == 1 and "belongs to another user" in done.stderr
        os.chown(journal.path, 0, 0)
    done = recover("/dev/null", "list")
    assert done.returncode == 1 and "Not a directory" in done.stderr
    empty = tmp_path / "empty"
    empty.mkdir(0o700)
    assert listed(empty) == [] and list(empty.iterdir()) == []


def test_a_bucket_without_a_name(journal, tmp_path):
    """As an older version has left it, and with a file that lies."""
    draft = journal.add("a", [(0, BYTES)])
    note = os.path.join(journal.dir, "bucket")
    for text in (None, b"", b"x\ny\n", b"\0" * 100, b"s3://evil\n/etc\n", b"\x1b[2J\n" * 2):
        os.unlink(note)
        if text is not None:
            with open(note, "wb") as f:
                f.write(text)
        assert listed(journal)[0]["bucket"] == ""
        assert "  -  a: " in recover(journal, "list").stdout
        recover(journal, "export", "--force", draft, tmp_path / "out", check=True)
        if text is None:
            open(note, "wb").close()


def test_a_later_version(journal, tmp_path):
    draft = journal.add("a", [(0, b"x")], format_version=5)
    item, = listed(journal)
    assert item["state"] == "later version" and "version 5 of the format" in item["why"]
    for command in (["export", draft, tmp_path / "out"], ["commit", "--yes", draft],
                    ["drop", "--yes", draft]):
        done = recover(journal, *command)
        assert done.returncode == 1
        assert "use the version of hsmount that wrote the draft" in done.stderr
    assert recover(journal, "show", draft, check=True).stdout.startswith(f"draft: {draft}\n")
    assert journal.has(draft)


def test_an_earlier_version(journal, bucket, tmp_path):
    """What version 1 of the journal has is listed, and stays as it is."""
    assert listed(journal) == []
    earlier = journals.Journal(journal.path, bucket, version="1")
    draft = earlier.add("a", [(0, b"x")])
    notes = "0123456789abcdef"
    with open(os.path.join(earlier.dir, notes + ".garbage"), "wb") as f:
        f.write(b"HSMGARBG")
    items = {i["id"]: i for i in listed(journal)}
    assert set(items) == {draft, notes}
    assert items[draft]["state"] == "earlier version" and items[draft]["file"] == "a"
    assert "only that version can commit it" in items[draft]["why"]
    assert "what is to be deleted from the bucket" in items[notes]["why"]
    for command in (["show", draft], ["export", draft, tmp_path / "out"],
                    ["commit", "--yes", draft], ["drop", "--yes", draft]):
        done = recover(journal, *command)
        assert done.returncode == 1 and "only that version can commit it" in done.stderr
    assert earlier.has(draft) and len(listed(journal)) == 2


def aside(journal, draft):
    return os.path.isdir(os.path.join(journal.dir, "unreadable", draft))


@pytest.mark.parametrize("file", ["draft", "map", "spool.0"])
def test_cut_files(journal, tmp_path, file):
    """A draft whose files are cut at some byte is exported as it was at that time, or set aside."""
    about = {"pieces": [(0, b"one"), (10, b"two"), (3, b"three")], "commit": journals.mark(1)}
    sizes = {"draft": 4096, "map": 5 * journals.RECORD, "spool.0": 13}
    states = {0: b"", 1: b"", 2: b"one", 3: b"one" + bytes(7) + b"two",
              4: b"onethree" + bytes(2) + b"two"}
    states[5] = states[4]
    step = 97 if file == "draft" else 1
    drafts = {}
    for n in range(0, sizes[file] + 1, step):
        draft = drafts[n] = journal.add("home/a", **about)
        os.truncate(journal.place(draft, file), n)
    found = {i["id"]: i for i in listed(journal)}
    assert len(found) == len(drafts)
    for n, draft in drafts.items():
        out = tmp_path / f"out{n}"
        done = recover(journal, "export", draft, out) if n % 8 < 2 or n == sizes[file] else None
        readable = (file == "map" and n >= journals.RECORD) or n == sizes[file]
        assert found[draft]["state"] == ("waiting" if readable else "unreadable")
        assert aside(journal, draft) != readable and journal.has(draft) == readable
        if done:
            assert done.returncode == (0 if readable else 1), done.stderr
        if done and readable:
            count = n // journals.RECORD if file == "map" else 5
            assert out.read_bytes() == states[count]
        elif done:
            assert "spool.*, each byte at its own offset" in done.stderr
    done = recover(journal, "drop", "--yes", *drafts.values())
    assert done.returncode == 0, done.stderr
    assert listed(journal) == []


def test_another_boot(journal, tmp_path):
    """Only what was durable counts."""
    boot = bytes(16)
    synced = journal.add("a", [(0, b"x")], boot=boot, sync=True)
    lost = journal.add("b", [(0, b"x")], boot=boot)
    assert state_of(journal, synced) == "waiting" and state_of(journal, lost) == "unreadable"
    recover(journal, "export", synced, tmp_path / "out", check=True)
    assert (tmp_path / "out").read_bytes() == b"x"
    item, = [i for i in listed(journal) if i["id"] == lost]
    assert "nothing was durable" in item["why"] and item["file"] == "b"


def test_strange_entries(journal):
    """Files where directories belong, links, pipes, and names that are no ids."""
    draft = journal.add("a")
    for name in ("x", "0" * 15, "0" * 17, "0" * 15 + "G", "é"):
        os.mkdir(os.path.join(journal.dir, name), 0o700)
    open(os.path.join(journal.dir, "0" * 16), "wb").close()
    os.symlink(journal.place(draft), os.path.join(journal.dir, "1" * 16))
    pipe = journal.add("b")
    os.unlink(journal.place(pipe, "draft"))
    os.mkfifo(journal.place(pipe, "draft"))
    states = {i["id"]: i["state"] for i in listed(journal)}
    assert states == {draft: "waiting", "0" * 16: "unreadable", "1" * 16: "unreadable",
                      pipe: "unreadable"}
    done = recover(journal, "drop", "--yes", "1" * 16)
    assert done.returncode == 1 and journal.has(draft)


def test_in_use(journal, tmp_path):
    """A draft that a mount has open is listed, and nothing else."""
    draft = journal.add("a", [(0, b"x")])
    with open(journal.place(draft, "draft"), "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        item, = listed(journal)
        assert item["state"] == "in use" and item["size"] is None and item["file"] == "a"
        for command in (["export", draft, tmp_path / "out"], ["drop", "--yes", draft]):
            done = recover(journal, *command)
            assert done.returncode == 1 and "another process has the draft open" in done.stderr
        assert "state: in use" in recover(journal, "show", draft, check=True).stdout
    assert journal.has(draft) and state_of(journal, draft) == "waiting"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
def test_full_disks(tmp_path, bucket):
    """A journal on a full disk can be listed, exported and dropped; an export to a full disk fails
    and leaves nothing behind."""
    disk = tmp_path / "disk"
    disk.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=1m", "none", disk, check=True)
    try:
        journal = journals.Journal(disk / "journal", bucket)
        draft = journal.add("a", [(0, BYTES)])
        broken = journal.add("b", [(0, b"x")])
        os.truncate(journal.place(broken, "map"), 0)
        with open(disk / "fill", "wb", buffering=0) as f:
            with pytest.raises(OSError):
                while True:
                    f.write(bytes(4096))
        assert {state_of(journal, draft), state_of(journal, broken)} == {"waiting", "unreadable"}
        recover(journal, "export", draft, tmp_path / "out", check=True)
        assert (tmp_path / "out").read_bytes() == BYTES
        done = recover(journal, "export", draft, disk / "out")
        assert done.returncode == 1 and "No space left on device" in done.stderr
        assert sorted(os.listdir(disk)) == ["fill", "journal"]
        recover(journal, "drop", "--yes", draft, broken, check=True)
        assert listed(journal) == []
    finally:
        run("umount", disk, check=True)


def test_private(journal):
    """What recover makes is as private as the rest."""
    draft = journal.add("a")
    os.truncate(journal.place(draft, "map"), 0)
    listed(journal)
    for root, directories, files in os.walk(os.path.join(journal.dir, "unreadable")):
        for name in directories + files:
            mode = os.stat(os.path.join(root, name)).st_mode
            assert stat.S_ISREG(mode) or mode & 0o077 == 0
            assert name != "why" or mode & 0o077 == 0
