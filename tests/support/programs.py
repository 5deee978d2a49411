# SPDX-License-Identifier: Apache-2.0
"""Programs that open files and are told what to do with them, line by line."""
import os
import signal
import subprocess
import sys

import mounts

LOOP = """
import errno, os, sys
import h5py
import numpy as np
for line in sys.stdin:
    try:
        exec(line)
        print("ok", flush=True)
    except OSError as e:
        print(errno.errorcode.get(e.errno, ascii(str(e))), flush=True)
    except Exception as e:
        print(ascii(f"{type(e).__name__}: {e}"), flush=True)
"""


class Python:
    """`with Python(path) as p: p("f = h5py.File(path, 'r+')")` returns "ok", the name of the error,
    or its text. env: more variables."""

    def __init__(self, path, **env):
        self.path = path
        self.process = subprocess.Popen(
            [sys.executable, "-c", f"path = {os.fspath(path)!r}\n{LOOP}"], text=True, cwd="/",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=dict(os.environ, **env))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.stdin.close()
        try:
            self.process.wait(mounts.PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
        self.process.stdout.close()

    def begin(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def end(self):
        return self.process.stdout.readline().rstrip("\n")

    def __call__(self, line):
        self.begin(line)
        return self.end()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(mounts.PATIENCE)
