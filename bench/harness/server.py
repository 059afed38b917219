"""A `reprise serve` process on a data directory of its own."""

import http.client
import json
import time

from harness.processes import BenchError
from harness.server_process import ServerProcess


class Server(ServerProcess):
    """`options` are further ones of `reprise serve`."""

    def __init__(self, binary, scratch, start=True, options=()):
        super().__init__(scratch, start)
        self.binary = binary
        self.options = options
        self.port_file = self.folder / "port"
        self.address = None

    def start(self):
        """Seconds from starting the process until /readyz says yes."""
        started = time.monotonic()
        self.port_file.unlink(missing_ok=True)
        self.spawn([self.binary, "serve", "--data", self.data, "--listen", "127.0.0.1:0",
                    "--port-file", self.port_file, *self.options])
        self.address = self.poll(lambda: read_port_file(self.port_file), started)
        self.poll(self._is_ready, started)
        return time.monotonic() - started

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


def read_port_file(path):
    """The address, or None while the file is not there or not whole."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return None
    return text.strip() if text.endswith("\n") else None
