"""A `reprise serve` process on a data directory of its own."""

import http.client
import json
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


class Server:
    """With `with`: started empty, or not yet when its directory is to be filled before; killed and
    removed at the end."""

    def __init__(self, binary, scratch, start=True):
        self.binary = binary
        self.start_at_once = start
        self.folder = Path(tempfile.mkdtemp(prefix="reprise-bench-", dir=scratch))
        self.data = self.folder / "data"
        self.port_file = self.folder / "port"
        self.log_path = self.folder / "server.log"
        self.process = None
        self.address = None

    def __enter__(self):
        if self.start_at_once:
            self.start()
        return self

    def __exit__(self, *_):
        if self.process:
            end(self.process)
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self):
        """Seconds from starting the process until /readyz says yes."""
        started = time.monotonic()
        self.port_file.unlink(missing_ok=True)
        with open(self.log_path, "ab") as log:
            self.process = spawn(
                [self.binary, "serve", "--data", self.data, "--listen", "127.0.0.1:0",
                 "--port-file", self.port_file], stdout=log, stderr=log, cwd=self.folder)
        self._poll(self._read_address, started)
        self._poll(self._is_ready, started)
        return time.monotonic() - started

    def _poll(self, condition, started):
        while not condition():
            if self.process.poll() is not None:
                raise BenchError(f"the server ended with {self.process.returncode} while starting:"
                                 f"\n{self.log_path.read_text(errors='replace')}")
            if time.monotonic() - started > START_SECONDS:
                raise BenchError(f"the server was not ready after {START_SECONDS} s")
            time.sleep(POLL_SECONDS)

    def _read_address(self):
        try:
            text = self.port_file.read_text()
        except FileNotFoundError:
            return False
        self.address = text.strip()
        return text.endswith("\n")

    def _is_ready(self):
        try:
            return self.request("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def request(self, method, path, body=None):
        """(status, the reply as JSON)"""
        connection = http.client.HTTPConnection(self.address, timeout=60)
        try:
            connection.request(method, path, None if body is None else json.dumps(body),
                               {"Content-Type": "application/json"})
            reply = connection.getresponse()
            return reply.status, json.loads(reply.read())
        finally:
            connection.close()

    def call(self, method, path, body=None):
        status, reply = self.request(method, path, body)
        if status not in (200, 201):
            raise BenchError(f"{method} {path}: {status} {reply}")
        return reply

    def terminate(self):
        """SIGTERM; seconds until the process has ended."""
        started = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(STOP_SECONDS)
        if code != 0:
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
