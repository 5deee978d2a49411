# SPDX-License-Identifier: Apache-2.0
"""Mounts with -o rw and their journals, and comparisons of what programs leave on a disk and in
such a mount."""
import json
import os
import re
import signal

import h5py

import filediff
import mounts
from mounts import HSIMAGE, Mount, run

# Of hsimage check: storage that no domain refers to, such as that of a replaced domain. What a
# killed commit leaves looks like an import that has not ended.
ORPHANS = re.compile(r"note|unfinished")


class RwMount(Mount):
    """The journal is in the directory above the mount, so that a later mount with the same
    directory finds it."""

    def __init__(self, bucket, directory, *options, env=None, journal=None):
        if journal:
            options = (f"journal_dir={os.fspath(journal)}", *options)
        super().__init__(bucket, directory, "rw", *options, env=env)

    def stats(self):
        with open(self.file(".hsmount/stats"), encoding="utf-8") as f:
            return json.load(f)

    def requests(self):
        """Requests to the store so far: {"put": 3, …}."""
        calls = self.stats()["store"]["calls"]
        return {call: sum(results.values()) for call, results in calls.items()}

    def left(self):
        """The number of drafts that wait for a decision."""
        return self.stats()["drafts"]["left"]

    def released(self):
        """Waits for the commits of files that programs have closed. The kernel reports the end of
        an open file after close(2) has returned, and only then is an empty file committed."""
        def idle():
            drafts = self.stats()["drafts"]
            return drafts["open"] == 0 and (drafts["failed"] or drafts["left"] or
                                            drafts["spool_bytes"] == 0)
        assert mounts.wait_for(idle), self.stats()["drafts"]

    def failed(self):
        """The number of files that could not be stored. A file counts when the kernel has
        reported the end of its last open file, which is after close(2) has returned."""
        self.released()
        return self.stats()["drafts"]["failed"]

    def kill(self):
        """Ends the daemon at once. Programs that use the mount get errors."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(mounts.PATIENCE)
        self.process = None
        mounts.unmount(self.path)


def attribute(path, name):
    """The text of an extended attribute, or None."""
    try:
        return os.getxattr(path, name).decode()
    except OSError:
        return None


def is_domain(path):
    """Whether a file of a mount is a domain, which has attributes, and no plain object."""
    return attribute(path, "user.hsds.root") is not None


def opens(path):
    """Whether libhdf5 can open a file."""
    try:
        h5py.File(path, "r").close()
        return True
    except OSError:
        return False


def shown_name(path):
    """The name of a file of the disk in a mount: a domain without extension gets one."""
    name = os.path.basename(path)
    return name if "." in name[1:] or not opens(path) else name + ".h5"


def tree(root, on_disk):
    """{path as in a mount: path of the file, or None for a directory}."""
    found = {}
    for at, directories, names in os.walk(root):
        where = os.path.relpath(at, root)
        for name in directories:
            found[os.path.normpath(os.path.join(where, name))] = None
        for name in names:
            path = os.path.join(at, name)
            shown = shown_name(path) if on_disk else name
            found[os.path.normpath(os.path.join(where, shown))] = path
    return found


def file_differences(disk, shown):
    """HDF5 files by their content, object by object and as h5diff compares them; others as bytes.
    As texts."""
    if opens(disk):
        if not opens(shown):
            return [f"{shown}: is not an HDF5 file"]
        found = [f"{shown}: {line}" for line in filediff.differences(disk, shown)]
        done = run("h5diff", disk, shown)
        return found + [f"{shown}: h5diff: {done.stdout}{done.stderr}"] * bool(done.returncode)
    with open(disk, "rb") as a, open(shown, "rb") as b:
        one, two = a.read(), b.read()
    return [] if one == two else [f"{shown}: {len(two)} bytes, not the {len(one)} of the disk"]


def tree_differences(disk, mount):
    """Names, kinds and contents."""
    expected, found = tree(disk, True), tree(mount, False)
    kinds = [{path: file is not None for path, file in t.items()} for t in (expected, found)]
    if kinds[0] != kinds[1]:
        return [f"the disk has {sorted(set(kinds[0].items()) - set(kinds[1].items()))}, the mount "
                f"has {sorted(set(kinds[1].items()) - set(kinds[0].items()))}"]
    return [line for path, file in expected.items() if file
            for line in file_differences(file, found[path])]


def check(bucket, env=None):
    """`hsimage check --all` finds nothing but storage that is left over. Returns its output."""
    done = run(HSIMAGE, "check", "--all", "-o", "allow_empty", bucket, env=env)
    return done


def journal_entries(journal):
    """The drafts that a journal has, as paths."""
    found = []
    for at, directories, _ in os.walk(journal):
        found += [os.path.join(at, name) for name in directories
                  if re.fullmatch(r"[0-9a-f]{16}(\.\w+)?", name)]
    return sorted(found)
