# SPDX-License-Identifier: Apache-2.0
"""Where the renderer says that the objects of a domain are in its file, the reader of HDF5 files
finds them."""
import os

from mounts import BUILD, run

SCAN = os.path.join(BUILD, "tests", "support", "imagescan")


def test_the_reader_finds_what_the_renderer_has_placed(entry):
    result = run(SCAN, entry.collection.bucket.root, entry.path)
    assert result.returncode == 0, result.stdout
    objects = entry.collection.bucket.domain(entry.path).objects
    assert int(result.stdout.split(" ")[0]) <= len(objects)
