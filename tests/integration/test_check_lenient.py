# SPDX-License-Identifier: Apache-2.0
"""Damage that the reader of this program does not need to notice, and libhdf5 does: `hsimage check`
reports it. Imports may take such a file."""
import struct

import h5py
import numpy as np
import pytest

from mounts import HSIMAGE, run

UNDEF = b"\xff" * 8


def make(path):
    """Groups and chunks with more than one node in a level."""
    with h5py.File(path, "w") as f:
        for i in range(300):
            f[f"n{i:03}"] = i
        f.create_dataset("z", data=np.arange(400).reshape(20, 20), chunks=(1, 2))
    return path, bytearray(path.read_bytes())


def nodes(body, kind):
    """The offsets of the nodes of B-trees with chunks (1) or groups (0), by their levels."""
    found, at = {}, -1
    while (at := body.find(b"TREE", at + 1)) >= 0:
        if body[at + 4] == kind:
            found.setdefault(body[at + 5], []).append(at)
    return found


def leaf(body, kind):
    """A leaf that is neither the first nor the last of its level."""
    return next(at for at in nodes(body, kind)[0]
                if UNDEF not in (body[at + 8:at + 16], body[at + 16:at + 24]))


def group_key_outside(body):
    body[leaf(body, 0) + 24 + 2] = 1
    return "is outside of the local heap"


def group_key_of_another_name(body):
    at = leaf(body, 0)
    body[at + 24:at + 32] = body[at + 24 + 16:at + 32 + 16]
    return "is not within the keys of the B-tree"


def group_sibling(body):
    body[leaf(body, 0) + 8] ^= 8
    return "its left sibling is"


def chunk_sibling(body):
    body[leaf(body, 1) + 16] ^= 8
    return "its right sibling is"


def chunk_key(body):
    body[leaf(body, 1) + 24 + 8 + 16] = 0xff
    return "key 0 has an offset within an element"


def free_space_address(body):
    body[39] = 0x77
    return "the address of free-space information is 0x77ff"


@pytest.mark.parametrize("damage", [group_key_outside, group_key_of_another_name, group_sibling,
                                    chunk_sibling, chunk_key, free_space_address])
def test_damage_of_version_1_structures(tmp_path, damage):
    path, body = make(tmp_path / "a.h5")
    assert run(HSIMAGE, "check", "--all", path, check=True).stdout.startswith("sound: ")
    expected = damage(body)
    path.write_bytes(body)
    done = run(HSIMAGE, "check", "--all", path)
    assert done.returncode == 1 and expected in done.stdout


def test_a_header_without_messages(tmp_path):
    path, body = make(tmp_path / "a.h5")
    with h5py.File(path) as f:
        at = h5py.h5o.get_info(f["n005"].id).addr
    struct.pack_into("<H", body, at + 2, 0)
    path.write_bytes(body)
    with h5py.File(path) as f, pytest.raises(KeyError):
        f["n005"]    # pylint: disable=pointless-statement
    done = run(HSIMAGE, "check", path)
    assert done.returncode == 1 and "/n005: " in done.stdout and "no messages are" in done.stdout
