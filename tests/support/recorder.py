# SPDX-License-Identifier: Apache-2.0
"""Records what libhdf5 writes when it changes a file, and writes it again elsewhere. The library
marks only files of the disk as open for writing, so a recording looks like that of an old library,
which does not know the mark.

    r = Recorder(bytes)                 a file in memory, which h5py opens
    with h5py.File(r, "r+") as f: …
    r.log                               [(offset, bytes)], and (size, None) where its size was set
"""
import io
import os

STATUS = 20     # offset of the mark in a superblock of version 0
SIGNATURE = b"\x89HDF\r\n\x1a\n"


def superblock(content):
    """The offset of the superblock, which is behind the user block."""
    at = 0
    while content[at:at + 8] != SIGNATURE:
        at = at * 2 or 512
    return at


class Recorder(io.BytesIO):
    def __init__(self, content):
        super().__init__(content)
        self.log = []

    def write(self, data):
        self.log.append((self.tell(), bytes(data)))
        return super().write(data)

    def truncate(self, size):
        self.log.append((size, None))
        missing = size - len(self.getvalue())
        if missing > 0:
            at = self.tell()
            self.seek(0, io.SEEK_END)
            super().write(bytes(missing))
            self.seek(at)
        return super().truncate(size)

    def marks(self):
        """The values that the mark has got."""
        mark = superblock(self.getvalue()) + STATUS
        return {data[mark - offset] for offset, data in self.log
                if data is not None and offset <= mark < offset + len(data)}


def replay(fd, log):
    for offset, data in log:
        if data is None:
            os.ftruncate(fd, offset)
        else:
            os.pwrite(fd, data, offset)
