# SPDX-License-Identifier: Apache-2.0
"""A file that `hsimage check` calls sound has the same content for libhdf5 and in a domain: small
files with a few changed bytes (support/mutated.py)."""
import pytest

import mutated


@pytest.mark.parametrize("count", [10, pytest.param(1080, marks=[pytest.mark.long,
                                                                 pytest.mark.timeout(3000)])])
def test_sound_files(tmp_path, count):
    counts = mutated.run_all(tmp_path, count, "1")
    assert counts.different == []
    assert counts.equal > 0, counts
