"""A server's process with a directory of its own: started, watched, killed and removed."""

import shutil
import signal
import tempfile
import time
from pathlib import Path

from harness.processes import (BenchError, cpu_seconds, end, peak_resident_bytes,
                               reset_peak_resident_bytes, resident_bytes, spawn)

START_SECONDS = 120
STOP_SECONDS = 60
POLL_SECONDS = 0.002


class ServerProcess:
    """With `with`: started empty, or not yet when its directory is to be filled before; killed and
    removed at the end."""

    def __init__(self, scratch, start=True):
        self.start_at_once = start
        self.folder = Path(tempfile.mkdtemp(prefix="reprise-bench-", dir=scratch))
        self.data = self.folder / "data"
        self.log_path = self.folder / "server.log"
        self.process = None

    def __enter__(self):
        if self.start_at_once:
            self.start()
        return self

    def __exit__(self, *_):
        if self.process:
            end(self.process)
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self):
        """Seconds from starting the process until it serves."""
        raise NotImplementedError

    def spawn(self, command):
        with open(self.log_path, "ab") as log:
            self.process = spawn(command, stdout=log, stderr=log, cwd=self.folder)

    def poll(self, condition, started):
        """Waits until the condition holds, and fails when the process ends before; returns what
        the condition gave."""
        while not (value := condition()):
            if self.process.poll() is not None:
                raise BenchError(f"the server ended with {self.process.returncode} while starting:"
                                 f"\n{self.log_path.read_text(errors='replace')}")
            if time.monotonic() - started > START_SECONDS:
                raise BenchError(f"the server was not ready after {START_SECONDS} s")
            time.sleep(POLL_SECONDS)
        return value

    def terminate(self, codes=(0,)):
        """SIGTERM; seconds until the process has ended."""
        started = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(STOP_SECONDS)
        if code not in codes:
            raise BenchError(f"SIGTERM ended the server with {code}")
        return time.monotonic() - started

    def kill(self):
        end(self.process)

    def cpu_seconds(self):
        return cpu_seconds(self.process.pid)

    def resident_bytes(self):
        return resident_bytes(self.process.pid)

    def peak_resident_bytes(self):
        return peak_resident_bytes(self.process.pid)

    def reset_peak_resident_bytes(self):
        reset_peak_resident_bytes(self.process.pid)

    def disk_bytes(self):
        """Allocated, not apparent: a preallocated file counts as a whole, a hole does not."""
        total = 0
        for path in self.data.rglob("*"):
            try:
                total += path.lstat().st_blocks * 512
            except FileNotFoundError:
                continue  # compaction removes files at any time
        return total
