# SPDX-License-Identifier: Apache-2.0
"""hsimage as a person or a script uses it: usage, help, output, progress, output files."""
import errno
import fcntl
import os
import pty
import re
import resource
import select
import signal
import struct
import subprocess
import termios
import zlib

import pytest

import mkbucket
from mounts import HSIMAGE, PATIENCE, run, wait_for
from oracle import mount_name
from sampling import sampled

COMMANDS = ["ls", "info", "export", "check", "import"]
MODE = "-r--r--r--"
ACLS = ('{"maker":{"create":true,"read":true,"update":true,"delete":true,"readACL":true,'
        '"updateACL":true},"default":{"create":false,"read":true,"update":false,"delete":false,'
        '"readACL":false,"updateACL":false}}')


@pytest.fixture
def bucket(tmp_path):
    """A domain with a dataset of four chunks, one of which is stored, and a plain object."""
    root = tmp_path / "bucket"
    with mkbucket.Maker(root) as made:
        d = made.domain("home/x.h5")
        d.dataset(d.root, "data", mkbucket.INT32, [4000], [1000]).chunk((0,), bytes(4000))
        d.dataset(d.root, "names", mkbucket.vstring(), [10])
        d.dataset(d.root, "nothing", mkbucket.INT32, None)
        made.put("home/plain.txt", b"plain\n")
    os.utime(root / "home" / "plain.txt", (1700000000, 1700000000))
    return root


class Terminal:
    """A program whose standard error (or all output) is a terminal of some width."""

    def __init__(self, *command, columns=80, stdout=subprocess.DEVNULL, **more):
        self.fd, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        stdout = theirs if stdout is None else stdout
        self.process = subprocess.Popen(list(map(os.fspath, command)), stdin=subprocess.DEVNULL,
                                        stdout=stdout, stderr=theirs, **more)
        os.close(theirs)
        self.text = ""

    def read(self):
        """Reads more output; False at the end."""
        assert select.select([self.fd], [], [], PATIENCE)[0], self.text
        try:
            more = os.read(self.fd, 1 << 16)
        except OSError as e:    # a terminal without a program
            assert e.errno == errno.EIO
            more = b""
        self.text += more.decode()
        return bool(more)

    def finish(self):
        while self.read():
            pass
        self.process.wait(PATIENCE)
        return self.text

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(PATIENCE)
        os.close(self.fd)


# ---- usage ----

@pytest.mark.parametrize("arguments, words", [
    ((), "missing operand: COMMAND is required: ls, info, export, check, clean, import, link, "
     "recover or undelete"),
    (("explode", "x"), "explode: no such command"),
    (("ls",), "missing operand: BUCKET[/PATH]"),
    (("info",), "missing operand: BUCKET/DOMAIN"),
    (("export",), "missing operand: BUCKET/DOMAIN"),
    (("check",), "missing operand: BUCKET[/PATH] or FILE"),
    (("ls", "--all", "x"), "ls has no option --all"),
    (("info", "--json", "x"), "info has no option --json"),
    (("check", "--verify", "x"), "check has no option --verify"),
    (("-b", "B", "export"), "missing operand: DOMAIN"),
    (("export", "-b", "B"), "missing operand: DOMAIN"),
    (("ls", "a", "b"), 'extra operand: "b"'),
    (("info", "a", ""), "empty operand: BUCKET/DOMAIN"),
    (("ls", "--verify", "x"), "ls has no option --verify"),
    (("ls", "--verify=x", "x"), "verify=x: must be auto, always or never"),
    (("info", "-l", "x"), "info has no option -l"),
    (("ls", "--output=x", "x"), "ls has no option --output"),
    (("ls", "--no-such-option", "x"), "unrecognized option '--no-such-option'"),
    (("-z",), "invalid option -- 'z'"),
    (("help", "explode"), "explode: no such command"),
    (("ls", "-o", "nonsense", "x"), "-o nonsense: unknown option"),
    (("export", "-o", "out.h5", "x"),
     "-o out.h5: unknown option; name the output file last or with --output")])
def test_wrong_usage(arguments, words, tmp_path):
    """One line names what is wrong, the next one where help is. Both begin with the program."""
    out = run(HSIMAGE, *arguments, cwd=tmp_path)
    command = next((a for a in arguments[:3] if a in COMMANDS), None)
    assert out.returncode == 2 and not out.stdout and not os.listdir(tmp_path)
    assert out.stderr == (f"hsimage: {words}\n"
                          f"Try: hsimage {f'help {command}' if command else '--help'}\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(command):
    texts = [run(HSIMAGE, *arguments, check=True).stdout
             for arguments in ((command, "--help"), ("help", command), ("-h", command))]
    assert texts[0].startswith(f"usage: hsimage [OPTIONS] {command} ")
    assert len(set(texts)) == 1
    assert max(map(len, texts[0].splitlines())) <= 90


def test_help():
    texts = [run(HSIMAGE, *arguments, check=True).stdout for arguments in (("help",), ("--help",))]
    assert texts[0] == texts[1]
    assert all(f"\n  {c} " in texts[0] for c in COMMANDS + ["help"])


def test_options_stand_anywhere(bucket):
    for arguments in (("-b", bucket, "ls", "home"), ("ls", "-b", bucket, "home"),
                      ("ls", "home", "--bucket", bucket, "--workers=1", "-o", "cache_size=1M"),
                      ("-o", "workers=1", "ls", f"{bucket}/home"), ("ls", "--", f"{bucket}/home")):
        out = run(HSIMAGE, *arguments, check=True)
        assert out.stdout == "plain.txt\nx.h5\n" and not out.stderr
    for when in ("always", "never"):
        run(HSIMAGE, f"--verify={when}", "ls", f"{bucket}/home", check=True)
        out = run(HSIMAGE, "info", f"--verify={when}", f"{bucket}/home/x.h5", check=True)
        assert "verified: " not in out.stdout, "the option of the engine, not the flag"
    posix = {**os.environ, "POSIXLY_CORRECT": "1"}
    out = run(HSIMAGE, "ls", f"{bucket}/home", "-l", env=posix, check=True)
    assert out.stdout.startswith(MODE)


# ---- ls ----

def test_ls(bucket):
    """A directory, the whole bucket, one file, and a name that does not exist."""
    assert run(HSIMAGE, "ls", bucket, check=True).stdout == "home/\n"
    assert run(HSIMAGE, "ls", f"{bucket}/home", check=True).stdout == "plain.txt\nx.h5\n"
    assert run(HSIMAGE, "ls", f"{bucket}/home/x.h5", check=True).stdout == "home/x.h5\n"
    out = run(HSIMAGE, "ls", f"{bucket}/nowhere")
    assert out.returncode == 1 and not out.stdout and "nowhere" in out.stderr


def test_ls_with_details(bucket, tmp_path):
    with mkbucket.Maker(bucket) as made:
        made.folder("home/sub")
    for at, _, names in os.walk(bucket):
        for name in names:
            os.utime(os.path.join(at, name), (1700000000, 1700000000))
    run(HSIMAGE, "export", f"{bucket}/home/x.h5", tmp_path / "x.h5", check=True)
    size = (tmp_path / "x.h5").stat().st_size
    for options, shown in ([], str(size)), (["-o", "stat=estimate"], "~4096"):
        out = run(HSIMAGE, "ls", *options, "-l", f"{bucket}/home", check=True)
        assert out.stdout == (f"{MODE}               6  2023-11-14 22:13  plain.txt\n"
                              "dr-xr-xr-x               -  2023-11-14 22:13  sub/\n"
                              f"{MODE} {shown:>15}  2023-11-14 22:13  x.h5\n")
    out = run(HSIMAGE, "ls", "-l", f"{bucket}/home/plain.txt", check=True)
    assert out.stdout == f"{MODE}               6  2023-11-14 22:13  home/plain.txt\n"


def test_ls_of_an_entry_that_cannot_be_read(bucket):
    """The others are listed; the first error is reported."""
    (bucket / "home" / "plain2.txt").write_bytes(b"")
    out = run(HSIMAGE, "-o", "metadata_ttl=0,debug_fault=fail:1+:EACCES@home/plain*", "ls", "-l",
              f"{bucket}/home")
    assert [line.split()[-1] for line in out.stdout.splitlines()] == [
        "plain.txt", "plain2.txt", "x.h5"]
    assert out.returncode == 1 and out.stderr.count("\n") == 1
    assert "home/plain.txt" in out.stderr


def test_names_do_not_drive_the_terminal(bucket):
    """Control characters of one byte and of two, and what is no character, are escaped."""
    for name in (b"a\x1b[2J", b"b\xc2\x9b2J", b"c\x9b2J", "dü".encode()):
        with open(os.path.join(os.fsencode(bucket), b"home", name), "wb"):
            pass
    out = subprocess.run([HSIMAGE, "ls", f"{bucket}/home"], timeout=PATIENCE, capture_output=True,
                         check=True)
    assert out.stdout.decode().split() == [
        r"a\x1b[2J", r"b\xc2\x9b2J", r"c\x9b2J", "dü", "plain.txt", "x.h5"]


# ---- info ----

def test_info(bucket):
    """Line by line. The sizes of data and of stored chunks come from the listing."""
    with mkbucket.Maker(bucket) as made:
        d = made.domain("y.h5")
        d.dataset(d.root, "data", mkbucket.INT32, [4000], [1000]).chunk((0,), bytes(4000))
        d.dataset(d.root, "names", mkbucket.vstring(), [10])
        d.dataset(d.root, "nothing", mkbucket.INT32, None)
        packed = d.dataset(d.root, "packed", mkbucket.INT16, [2000, 500], [1000, 500],
                           filters=[mkbucket.SHUFFLE, mkbucket.GZIP])
        packed.attribute("units", mkbucket.INT32, [], 1)
        body = zlib.compress(bytes(1000000))
        for i in range(2):
            packed.chunk((i, 0), body)
    out = run(HSIMAGE, "info", f"{bucket}/y.h5", check=True)
    lines = out.stdout.splitlines()
    run(HSIMAGE, "export", f"{bucket}/y.h5", bucket / "y.copy", check=True)
    size = (bucket / "y.copy").stat().st_size
    assert lines == [
        "domain: /y.h5", f"root group: {d.root.id}", "owner: maker",
        f"access control lists: {ACLS}",
        "created: 2023-11-14T22:13:20.000000Z", "last modified: 2023-11-14T22:13:20.000000Z",
        f"HDF5 file: {size / 1e6:.1f} MB ({size} bytes)", lines[7],
        "contents: groups 1, datasets 4, committed datatypes 0, links 4, attributes 1",
        "dataset /data: int32 [4000], chunks [1000], 1 of 4 written, filters none, 16.0 kB of data "
        "stored in 4.0 kB (4.0:1)",
        "dataset /names: variable-length string [10], chunks [10], 0 of 1 written, filters none, "
        "stored in 0 bytes",
        "dataset /nothing: int32 null",
        "dataset /packed: int16 [2000,500], chunks [1000,500], 2 of 2 written, filters shuffle, "
        f"deflate(4), 2.0 MB of data stored in {len(body) / 500:.1f} kB ({1e6 / len(body):.1f}:1)"]
    assert lines[7].startswith("file layout: revision ")
    out = run(HSIMAGE, "info", f"{bucket}/home/nothing.h5")
    assert out.returncode == 1 and "nothing.h5" in out.stderr
    out = run(HSIMAGE, "info", f"{bucket}/home/plain.txt")
    assert out.returncode == 1 and out.stderr == "hsimage: home/plain.txt: not a domain\n"


def test_info_of_a_file_with_holes(bucket):
    """A copy takes as much space on disk as `info` says."""
    with mkbucket.Maker(bucket) as made:
        d = made.domain("sparse.h5")
        data = d.dataset(d.root, "data", mkbucket.INT32, [1 << 22], [1 << 16],
                         layout={"class": "H5D_CONTIGUOUS"})
        data.chunk((7,), b"\1" * (1 << 18))
    run(HSIMAGE, "export", f"{bucket}/sparse.h5", bucket / "copy", check=True)
    st = (bucket / "copy").stat()
    out = run(HSIMAGE, "info", f"{bucket}/sparse.h5", check=True)
    line = next(line for line in out.stdout.splitlines() if line.startswith("HDF5 file: "))
    words = line.split()
    assert line == (f"HDF5 file: {st.st_size / 1e6:.1f} MB ({st.st_size} bytes), {words[6]} kB on "
                    "disk when exported: chunks that were never written take no space")
    assert abs(float(words[6]) * 1000 - st.st_blocks * 512) < 50000


def test_several_operands(bucket, tmp_path):
    """Each is processed, also after one has failed, and the exit status tells of that."""
    for name in ("one.h5", "two.h5"):
        with mkbucket.Maker(bucket) as made:
            made.domain(f"home/{name}")
    one, two, none = (f"{bucket}/home/{name}.h5" for name in ("one", "two", "none"))
    out = run(HSIMAGE, "info", one, none, two)
    assert out.returncode == 1 and "none.h5" in out.stderr
    assert [x for x in out.stdout.splitlines() if x.startswith("domain: ")] == \
        ["domain: /home/one.h5", "domain: /home/two.h5"]
    out = run(HSIMAGE, "-b", bucket, "check", "home/one.h5", "home/two.h5", check=True)
    assert out.stdout.count("sound: ") == 2
    into = tmp_path / "into"
    into.mkdir()
    out = run(HSIMAGE, "export", one, none, two, into)
    assert out.returncode == 1 and "none.h5" in out.stderr
    assert sorted(os.listdir(into)) == ["one.h5", "two.h5"]
    assert (into / "two.h5").read_bytes().startswith(b"\x89HDF")
    out = run(HSIMAGE, "export", one, into)
    assert out.returncode == 1 and "the file exists; --force replaces it" in out.stderr
    run(HSIMAGE, "-b", bucket, "export", "--force", "--output", into, "home/one.h5", check=True)
    out = run(HSIMAGE, "export", one, two, tmp_path / "absent")
    assert out.returncode == 1 and "absent: no such directory" in out.stderr
    out = run(HSIMAGE, "export", "--force", one, one, into)
    assert out.returncode == 1 and "another operand has this name, too" in out.stderr


def test_info_of_a_file_without_holes(bucket):
    """All chunks are written; the gap in front of them takes no space."""
    with mkbucket.Maker(bucket) as made:
        d = made.domain("full.h5")
        data = d.dataset(d.root, "data", mkbucket.INT32, [1 << 23], [1 << 20])
        for i in range(8):
            data.chunk((i,), b"\1" * (1 << 22))
    out = run(HSIMAGE, "info", f"{bucket}/full.h5", check=True).stdout
    assert ", 33.6 MB on disk when exported\n" in out, out


def test_info_of_a_file_that_was_kept(bucket):
    (bucket / "home/kept.h5").write_bytes(b"bytes")
    os.setxattr(bucket / "home/kept.h5", "user.hsmount.kept", b"a virtual dataset")
    out = run(HSIMAGE, "info", f"{bucket}/home/kept.h5", check=True)
    assert out.stdout == "plain file: home/kept.h5\nkept as it is: a virtual dataset\n"


def test_info_verify(bucket):
    out = run(HSIMAGE, "info", "--verify", f"{bucket}/home/x.h5", check=True)
    words = out.stdout.splitlines()[-1].split()
    assert words[0] == "verified:" and " ".join(words[2:]) == "bytes read, unreadable parts: 0"
    with mkbucket.Maker(bucket) as made:
        d = made.domain("bad.h5")
        data = d.dataset(d.root, "data", mkbucket.INT32, [8], [4])
        for i in range(2):
            data.chunk((i,), b"short")
    out = run(HSIMAGE, "info", "--verify", f"{bucket}/bad.h5")
    problems = [line for line in out.stdout.splitlines() if line.startswith("problem: ")]
    assert [data.chunk_key((i,)) in problems[i] for i in range(2)] == [True, True]
    assert len(problems) == 2 and out.returncode == 1
    assert out.stderr == "hsimage: parts of the file that cannot be read: 2\n"


# ---- output that cannot be written ----

@pytest.mark.parametrize("arguments", [
    ("ls", "{}/home"), ("ls", "-l", "{}/home"), ("ls", "{}/home/x.h5"), ("info", "{}/home/x.h5"),
    ("info", "--verify", "{}/home/x.h5"), ("export", "{}/home/x.h5"),
    ("export", "{}/home/x.h5", "-"), ("--help",), ("help", "ls"), ("--version",)])
def test_output_to_a_full_device(bucket, arguments):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([HSIMAGE, *(a.format(bucket) for a in arguments)], stdout=full,
                              stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
    assert done.returncode == 1
    assert done.stderr == b"hsimage: standard output: No space left on device\n"


def test_output_that_ends_in_the_middle(bucket):
    """More output than a buffer holds. The reason is kept, and the rest is not listed."""
    with mkbucket.Maker(bucket) as made:
        for i in range(300):
            made.put(f"many/{'n' * 200}{i:04}", b"")
    with open("/dev/full", "wb") as full:
        done = subprocess.run([HSIMAGE, "ls", f"{bucket}/many"], stdout=full,
                              stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
    assert done.returncode == 1
    assert done.stderr == b"hsimage: standard output: No space left on device\n"


# ---- export: where the bytes go ----

def test_export_equals_the_mount(sample, mount, tmp_path):
    m = mount(sample.bucket.root)
    for path in sampled(sample.bucket.files()):
        name = mount_name(path)
        with open(m.file(name), "rb") as f:
            shown = f.read()
        target = tmp_path / "out.h5"
        run(HSIMAGE, "export", f"{sample.bucket.root}/{name}", target, check=True)
        assert target.read_bytes() == shown, path
        target.unlink()


def test_export_to_standard_output(bucket, tmp_path):
    """Without FILE, and with "-": into a pipe and into a file. Nothing else is written."""
    domain = f"{bucket}/home/x.h5"
    run(HSIMAGE, "export", domain, tmp_path / "a.h5", check=True)
    run(HSIMAGE, "export", "--output", tmp_path / "b.h5", domain, check=True)
    want = (tmp_path / "a.h5").read_bytes()
    assert (tmp_path / "b.h5").read_bytes() == want
    empty = tmp_path / "empty"
    empty.mkdir()
    for operands in ((), ("-",)):
        out = subprocess.run([HSIMAGE, "export", domain, *operands], cwd=empty, timeout=PATIENCE,
                             capture_output=True, check=True)
        assert out.stdout == want and out.stderr == b""
        with open(tmp_path / "c.h5", "wb") as f:
            subprocess.run([HSIMAGE, "export", domain, *operands], cwd=empty, timeout=PATIENCE,
                           stdout=f, check=True)
        assert (tmp_path / "c.h5").read_bytes() == want
    assert not os.listdir(empty)


def test_export_from_a_terminal(bucket, tmp_path):
    """Without FILE, the domain's name in the current directory."""
    with Terminal(HSIMAGE, "export", f"{bucket}/home/x.h5", stdout=None, cwd=tmp_path) as t:
        t.finish()
        assert t.process.returncode == 0, t.text
    run(HSIMAGE, "export", f"{bucket}/home/x.h5", tmp_path / "a.h5", check=True)
    assert (tmp_path / "x.h5").read_bytes() == (tmp_path / "a.h5").read_bytes()


def test_an_export_replaces_nothing(bucket, tmp_path):
    """The source of an import often has the name of the domain."""
    source, domain = tmp_path / "x.h5", f"{bucket}/home/x.h5"
    source.write_bytes(b"precious")
    source.chmod(0o600)
    for operands in [source], ["--output", source]:
        done = run(HSIMAGE, "export", domain, *operands)
        assert done.returncode == 1 and "the file exists; --force replaces it" in done.stderr
    with Terminal(HSIMAGE, "export", domain, stdout=None, cwd=tmp_path) as t:
        assert "the file exists; --force replaces it" in t.finish()
        assert t.process.returncode == 1
    assert source.read_bytes() == b"precious"
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]
    run(HSIMAGE, "export", "--force", domain, source, check=True)
    assert source.read_bytes()[:4] == b"\x89HDF" and source.stat().st_mode & 0o777 == 0o600


def test_a_failed_export_leaves_nothing(bucket, tmp_path):
    with mkbucket.Maker(bucket) as made:
        d = made.domain("x.h5")
        d.dataset(d.root, "data", mkbucket.INT32, [4]).chunk((0,), b"short")
    (tmp_path / "out").mkdir()
    out = run(HSIMAGE, "export", f"{bucket}/x.h5", tmp_path / "out" / "out.h5")
    assert out.returncode == 1 and out.stderr.strip()
    assert not os.listdir(tmp_path / "out")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_nothing(bucket, tmp_path, number):
    """An interrupt ends the program while it waits for the bytes of a chunk."""
    directory = tmp_path / "out"
    directory.mkdir()
    process = subprocess.Popen(
        [HSIMAGE, "-o", "debug_fault=delay:1+:60000@*/d/*/[0-9]*", "export",
         f"{bucket}/home/x.h5", directory / "out.h5"],
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
    try:
        assert wait_for(lambda: os.listdir(directory))
        process.send_signal(number)
        assert process.wait(PATIENCE) == -number
        assert not os.listdir(directory)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(PATIENCE)


def test_a_size_that_the_file_system_refuses(bucket, tmp_path):
    """It is reported before anything is read, and the program is not killed by SIGXFSZ."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))

    directory = tmp_path / "out"
    directory.mkdir()
    out = run(HSIMAGE, "-o", "debug_fault=fail:1+@*/d/*/[0-9]*", "export", f"{bucket}/home/x.h5",
              directory / "out.h5", preexec_fn=limit)
    assert out.returncode == 1 and not os.listdir(directory)
    assert out.stderr == f"hsimage: {directory}/out.h5: File too large\n"


# ---- progress ----

@pytest.mark.parametrize("command", [("export", "{}/home/x.h5", "-"),
                                     ("info", "--verify", "{}/home/x.h5")],
                         ids=["export", "verify"])
@pytest.mark.parametrize("columns", [30, 60, 120])
def test_progress(bucket, command, columns):
    """The progress line fits the terminal, and nothing of it remains before other lines."""
    with Terminal(HSIMAGE, *(a.format(bucket) for a in command), columns=columns) as t:
        text = t.finish()
        assert t.process.returncode == 0, text
    drawn = text.replace("\n", "\r").split("\r")
    assert "100%" in text and max(map(len, drawn)) < columns
    assert text.startswith("opening")


@pytest.mark.parametrize("command", [("export", "{}/home/x.h5", "-"),
                                     ("info", "--verify", "{}/home/x.h5")],
                         ids=["export", "verify"])
@pytest.mark.parametrize("slow, text", [("*/.domain.json", "opening"),
                                        ("*/d/*/[0-9]*", "  0%")], ids=["open", "read"])
def test_progress_is_shown_while_nothing_comes(bucket, command, slow, text):
    with Terminal(HSIMAGE, "-o", f"debug_fault=delay:1+:60000@{slow}",
                  *(a.format(bucket) for a in command)) as t:
        while text not in t.text:
            assert t.read(), t.text
        assert t.process.poll() is None


def test_progress_grows(bucket):
    """In steps: between them the chunks are slow."""
    with mkbucket.Maker(bucket) as made:
        d = made.domain("large.h5")
        data = d.dataset(d.root, "data", mkbucket.INT32, [3 << 20], [1 << 20])
        for i in range(3):
            data.chunk((i,), bytes(4 << 20))
    with Terminal(HSIMAGE, "-o", "debug_fault=delay:1+:300@*/d/*/[0-9]*,workers=1", "export",
                  f"{bucket}/large.h5", "-") as t:
        text = t.finish()
    assert set(re.findall(r" (\d+)%", text)) - {"0", "100"}


@pytest.mark.parametrize("form", ["small", "v1"])
def test_progress_of_a_check(bucket, form):
    """Of all chunks that are requested, whether they are stored or not, and however small they are
    there. Which chunks are stored is known of the small domain only."""
    with mkbucket.Maker(bucket) as made:
        d = made.domain("checked.h5", v1=form == "v1")
        data = d.dataset(d.root, "data", mkbucket.INT32, [8 << 16], [1 << 16], filters=[
            {"class": "H5Z_FILTER_DEFLATE", "id": 1, "level": 1, "name": "deflate"}])
        for i in range(6):
            data.chunk((i,), zlib.compress(bytes(1 << 18)))
    with Terminal(HSIMAGE, "-o", "debug_fault=delay:1+:150@*[0-9],workers=1", "check",
                  "--all", f"{bucket}/checked.h5") as t:
        text = t.finish()
        assert t.process.returncode == 0, text
    shown = [int(n) for n in re.findall(r" (\d+)%", text)]
    assert shown == sorted(shown) and shown[0] < 100 and shown[-1] == 100, shown
    assert any(0 < n < 100 for n in shown), shown


def test_progress_that_does_not_come_to_its_end(bucket, tmp_path):
    """The error is on a separate line."""
    with Terminal(HSIMAGE, "-o", "debug_fault=fail:1+@*/d/*/[0-9]*", "export",
                  f"{bucket}/home/x.h5", tmp_path / "out.h5") as t:
        text = t.finish()
        assert t.process.returncode == 1
    assert "%" in text and "100%" not in text
    assert "\rhsimage: " in text and text.count("\n") == 1


def test_no_progress_without_a_terminal(bucket, tmp_path):
    out = run(HSIMAGE, "export", f"{bucket}/home/x.h5", tmp_path / "out.h5", check=True)
    assert not out.stdout and not out.stderr
    assert not run(HSIMAGE, "info", "--verify", f"{bucket}/home/x.h5", check=True).stderr
