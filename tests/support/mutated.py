# SPDX-License-Identifier: Apache-2.0
"""Changes a few bytes of small HDF5 files, and looks for those that `hsimage check` calls sound
although libhdf5 reads something else than a domain that was made of them.

    mutated.py COUNT [SEED]     prints the files that differ, and the counts

libhdf5 may crash or loop on such files, so each comparison runs in a process of its own.
"""
import itertools
import multiprocessing
import os
import random
import re
import shutil
import sys
import tempfile

import filediff
import h5make
import imports
from mounts import HSIMAGE, run

SIGNATURES = re.compile(b"TREE|SNOD|HEAP|GCOL|OHDR|OCHK|FRHP|FHDB|BTHD|BTLF|FAHD|EAHD|\x89HDF")
NEAR = 120        # bytes behind a signature
PATIENCE = 20     # seconds
LARGEST = 100_000    # bytes; larger files take long, and most of their bytes are raw data


def mutate(body, r):
    """Changes 1 to 3 bytes: half of the files near a signature, the others anywhere."""
    starts = [m.start() for m in SIGNATURES.finditer(body)]
    body = bytearray(body)
    for _ in range(r.choice((1, 1, 1, 2, 3))):
        at = r.choice(starts) + r.randrange(NEAR) if r.random() < .5 else r.randrange(len(body))
        at = min(at, len(body) - 1)
        old = body[at]
        body[at] = r.choice((old ^ 1 << r.randrange(8), r.randrange(256), old + 1 & 255, 0, 255))
    return bytes(body)


def compare(source, out, found):
    """Runs in its own process. libhdf5 prints errors, which do not matter."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    try:
        found.put(filediff.differences(source, out))
    except (OSError, RuntimeError, ValueError, KeyError) as e:
        found.put(f"{type(e).__name__}: {e}")


def libhdf5_differs(source, out):
    """The differences, or None and why libhdf5 cannot read the file or crashes."""
    fork = multiprocessing.get_context("fork")
    found = fork.SimpleQueue()
    process = fork.Process(target=compare, args=(source, out, found))
    process.start()
    process.join(PATIENCE)
    if process.is_alive():
        process.kill()
        process.join()
        return None, "does not end"
    if process.exitcode != 0 or found.empty():
        return None, f"ends with {process.exitcode}"
    answer = found.get()
    return (None, answer) if isinstance(answer, str) else (answer, "")


class Counts:
    def __init__(self):
        self.files = self.sound = self.refused = self.equal = self.unreadable = 0
        self.different = []    # (name, differences)

    def __str__(self):
        return (f"{self.files} files, {self.sound} sound: {self.equal} equal, {self.refused} "
                f"not imported, {self.unreadable} not readable by libhdf5, "
                f"{len(self.different)} different")


def judge(name, source, directory, counts, keep=None):
    counts.files += 1
    checked = run(HSIMAGE, "check", source)
    if not checked.stdout.splitlines()[-1].startswith("sound: "):
        return
    counts.sound += 1
    bucket, out = directory / "bucket", directory / "out.h5"
    shutil.rmtree(bucket, ignore_errors=True)
    imports.make_bucket(bucket)
    done = run(HSIMAGE, "-b", bucket, "import", source, "home/x.h5")
    if done.returncode:
        counts.refused += 1
        return
    run(HSIMAGE, "-b", bucket, "export", "--force", "home/x.h5", out, check=True)
    found, why = libhdf5_differs(source, out)
    if found is None:
        counts.unreadable += 1
        print(f"{name}: libhdf5: {why}"[:300], flush=True)
    elif found:
        counts.different.append((name, found))
        print(f"{name}: {found[:3]}\n{checked.stdout}", flush=True)
    else:
        counts.equal += 1
    if keep and (found or found is None):
        shutil.copy(source, keep / f"{name.replace('/', '_')}.h5")


def run_all(directory, count, seed, keep=None):
    """Judges `count` mutated files in a directory (a path)."""
    counts, made = Counts(), {}
    names = [n for n in h5make.names() if n[0] != "unsupported"]
    for i in itertools.count():
        if counts.files == count:
            return counts
        r = random.Random(f"{seed}/{i}")
        form, bounds = names[i % len(names)] if count >= len(names) else r.choice(names)
        source = directory / "source.h5"
        if (form, bounds) not in made:
            h5make.make(source, form, bounds)
            made[form, bounds] = source.read_bytes()
        if len(made[form, bounds]) > LARGEST:
            continue
        source.write_bytes(mutate(made[form, bounds], r))
        judge(f"{seed}/{i} {form} {bounds}", source, directory, counts, keep)
        if counts.files % 100 == 0:
            print(counts, flush=True)


def main():
    from pathlib import Path
    keep = Path(os.environ["MUTATED_KEEP"]) if "MUTATED_KEEP" in os.environ else None
    with tempfile.TemporaryDirectory() as directory:
        counts = run_all(Path(directory), int(sys.argv[1]), sys.argv[2] if sys.argv[2:] else "1",
                         keep)
    print(counts)
    return bool(counts.different)


if __name__ == "__main__":
    sys.exit(main())
