# SPDX-License-Identifier: Apache-2.0
"""Starts and stops the programs under test. Every wait has a time limit. Signals are sent only to
processes that were started here, by their process ids."""
import os
import re
import signal
import subprocess
import threading
import time

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("HSMOUNT_BUILD", os.path.join(TREE, "build"))
HSMOUNT = os.path.join(BUILD, "src", "cli", "hsmount")
HSIMAGE = os.path.join(BUILD, "src", "cli", "hsimage")
PATIENCE = float(os.environ.get("HSMOUNT_TEST_PATIENCE", "30"))     # seconds


def wait_for(condition, seconds=PATIENCE):
    """Polls until the condition is true. Returns False if that takes too long."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def is_mounted(path):
    """Reads the kernel's list of mounts. A stat of the path could block on a dead daemon."""
    path = os.path.realpath(path)
    with open("/proc/self/mounts", "rb") as f:
        return any(line.split(b" ")[1].decode("unicode_escape").encode("latin-1").decode()
                   == path for line in f)


def unmount(path):
    subprocess.run(["fusermount3", "-u", "-q", path], timeout=PATIENCE, check=False)
    if is_mounted(path):
        subprocess.run(["fusermount3", "-u", "-q", "-z", path], timeout=PATIENCE, check=False)


def run(*command, timeout=PATIENCE * 4, check=False, **more):
    """Runs a command. Returns returncode, stdout and stderr; these are text with escapes."""
    done = subprocess.run([os.fspath(c) for c in command], timeout=timeout, check=False,
                          stdin=subprocess.DEVNULL, capture_output=True, **more)
    done.stdout = done.stdout.decode("utf-8", "backslashreplace")
    done.stderr = done.stderr.decode("utf-8", "backslashreplace")
    if check and done.returncode:
        raise AssertionError(f"{command} exits {done.returncode}: {done.stderr}{done.stdout}")
    return done


def default_signals():
    """A shell ignores SIGINT for background commands, and the daemon would inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Mount:
    """hsmount in the foreground: `with Mount(bucket, directory, "cache_size=1M") as m: m.path`.
    env: its environment, if it is not that of the test. A writable mount has its journal in the
    directory, unless the options name another one. Unless the options say otherwise, what was
    removed is deleted at the end, so that a test which looks into the bucket need not wait."""

    def __init__(self, bucket, directory, *options, env=None):
        self.bucket, self.options, self.env = os.fspath(bucket), options, env
        self.path = os.path.join(os.fspath(directory), "mnt")
        self.log_path = os.path.join(os.fspath(directory), "log")
        given = [o.partition("=")[2] for o in options if o.startswith("journal_dir=")]
        self.journal = given[0] if given else os.path.join(os.fspath(directory), "journal")
        if "rw" in options and not given:
            self.options += (f"journal_dir={self.journal}",)
        if "rw" in options and not any(o.startswith("gc_delay=") for o in options):
            self.options += ("gc_at_unmount",)
        self.process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, value, trace):
        code = self.stop()
        if kind is None:
            assert code == 0, f"hsmount exits {code}:\n{self.log()}"
            assert "Sanitizer" not in self.log(), self.log()

    def start(self):
        os.makedirs(self.path, exist_ok=True)
        command = [HSMOUNT, self.bucket, self.path, "-f"]
        for option in self.options:
            command += ["-o", option]
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env=self.env,
                                            preexec_fn=default_signals)
        up = wait_for(lambda: self.process.poll() is not None or is_mounted(self.path))
        if not up or not self.alive():
            self.stop()
            raise AssertionError(f"{command} did not mount:\n{self.log()}")

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def drop_late_interrupts(self):
        """If an interrupt arrives after its request was answered, libfuse keeps it until a later
        request. Each request drops one. The leak checker would report those that are left."""
        calls = threading.Thread(target=lambda: [os.statvfs(self.path) for _ in range(8)],
                                 daemon=True)
        calls.start()
        calls.join(5)

    def stop(self):
        """Unmounts and waits for the end. If that fails, sends signals. Returns the exit status."""
        if self.process is None:
            return None
        if is_mounted(self.path):
            if self.alive():
                self.drop_late_interrupts()
            unmount(self.path)
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is not None:
                self.process.send_signal(number)
            try:
                code = self.process.wait(PATIENCE)
                break
            except subprocess.TimeoutExpired:
                continue
        else:
            code = None
        if is_mounted(self.path):
            unmount(self.path)
        self.process = None
        return code

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="backslashreplace") as f:
            return f.read()

    def file(self, *parts):
        return os.path.join(self.path, *parts)

    def memory(self):
        """Resident memory of the daemon in bytes."""
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def memory_peak(self):
        """The maximum of memory(); None with a sanitizer, whose memory would be included."""
        with open(f"/proc/{self.process.pid}/maps", encoding="utf-8") as f:
            if re.search(r"lib[at]san", f.read()):
                return None
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            return int(re.search(r"VmHWM:\s+(\d+) kB", f.read())[1]) << 10

    def counts(self):
        """Counters of the store and the cache (needs -o debug_count): name -> number."""
        prefix, out = "user.hsds.debug.", {}
        for name in os.listxattr(self.path):
            if name.startswith(prefix):
                out[name.removeprefix(prefix)] = int(os.getxattr(self.path, name))
        return out


def difference(before, after):
    return {k: after[k] - before[k] for k in after if k in before}
