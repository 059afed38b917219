"""A wall clock that a test sets while a server runs, by Debian's libfaketime. What the server reads
of the steady clock stays as it is."""

from pathlib import Path

LIBRARIES = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))


class WallClock:
    def __init__(self, folder):
        assert LIBRARIES, "libfaketime is missing: run scripts/setup"
        self.file = Path(folder) / "wall-clock"
        self.set(days=0)

    def set(self, days):
        """So many days ahead of the machine's own time. One write, so that nobody reads half."""
        fresh = self.file.with_suffix(".new")
        fresh.write_text(f"{days * 86400:+d}\n")
        fresh.rename(self.file)

    def environment(self):
        # jemalloc looks at the clock while it starts, and libfaketime allocates when it is asked for
        # the first time: with the system's allocators in front neither waits for the other.
        return {"LD_PRELOAD": f"{LIBRARIES[0]}:libstdc++.so.6:libc.so.6",
                "FAKETIME_TIMESTAMP_FILE": str(self.file),
                "FAKETIME_NO_CACHE": "1", "DONT_FAKE_MONOTONIC": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_FORCE_MONOTONIC_FIX": "0"}
