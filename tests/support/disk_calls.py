"""The calls that a process makes to its disk, counted, and one of them troubled: see disk_shim.c."""

import mmap
import struct
from pathlib import Path

HEADER = struct.Struct("<QQQ1024s")  # struct calls of the library
KINDS_KEPT = 65536
WRITES, SYNCS, NAMES = "wd", "sd", "n"


class DiskCalls:
    """Shared by all processes that are started with its environment."""

    def __init__(self, library, path, below, trouble=None, at=0):
        path.write_bytes(bytes(HEADER.size + KINDS_KEPT))
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 0)
        self.env = {"LD_PRELOAD": str(library), "DISK_CALLS": str(path),
                    "DISK_CALLS_BELOW": str(below)}
        if trouble:
            self.env |= {"DISK_TROUBLE": trouble, "DISK_TROUBLE_AT": str(at)}

    def count(self):
        return HEADER.unpack_from(self.memory)[0]

    def happened(self):
        return HEADER.unpack_from(self.memory)[1] != 0

    def happened_at(self):
        """When, by time.monotonic()."""
        return HEADER.unpack_from(self.memory)[2] / 1e9

    def happened_to(self):
        """The file."""
        return Path(HEADER.unpack_from(self.memory)[3].split(b"\0")[0].decode())

    def kinds(self):
        """What each call was, one letter each."""
        count = min(self.count(), KINDS_KEPT)
        return self.memory[HEADER.size:HEADER.size + count].decode()

    def close(self):
        self.memory.close()
