"""Just enough of two protocols to see that a server answers, and what it holds."""

import socket

from harness.processes import BenchError

TIMEOUT_SECONDS = 60


class LineClient:
    """One connection; replies begin with a line."""

    def __init__(self, address):
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), TIMEOUT_SECONDS)
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def line(self):
        text = self.file.readline()
        if not text.endswith(b"\r\n"):
            raise OSError("the server closed the connection")
        return text[:-2].decode()

    def body(self, size):
        data = self.file.read(size + 2)
        if len(data) != size + 2:
            raise OSError("the server closed the connection")
        return data[:-2]


class BeanstalkClient(LineClient):
    def is_ready(self):
        self.send(b"list-tube-used\r\n")
        return self.line().startswith("USING")

    def claim(self, queue):
        """The body of a job, or None."""
        self.send(f"watch {queue}\r\nignore default\r\nreserve-with-timeout 0\r\n".encode())
        for _ in range(2):
            if not self.line().startswith("WATCHING"):
                raise BenchError("the server does not watch a tube")
        word, *rest = self.line().split()
        return self.body(int(rest[1])) if word == "RESERVED" else None

    def stored(self, queue):
        """How many jobs there are, ready or claimed."""
        self.send(f"stats-tube {queue}\r\n".encode())
        word, *rest = self.line().split()
        if word != "OK":
            raise BenchError(f"stats-tube: {word}")
        lines = self.body(int(rest[0])).decode().splitlines()
        stats = dict(line.split(": ", 1) for line in lines if ": " in line)
        return int(stats["current-jobs-ready"]) + int(stats["current-jobs-reserved"])


class RedisClient(LineClient):
    """Of a stream that reprise_peer_load has filled."""

    def call(self, *words):
        parts = [f"*{len(words)}\r\n"] + [f"${len(word)}\r\n{word}\r\n" for word in words]
        self.send("".join(parts).encode())
        return self._reply()

    def _reply(self):
        line = self.line()
        kind, rest = line[0], line[1:]
        if kind == "-":
            if rest.startswith("LOADING"):
                return None
            raise BenchError(f"redis: {rest}")
        if kind == "$":
            return None if rest == "-1" else self.body(int(rest))
        if kind == "*":
            return None if rest == "-1" else [self._reply() for _ in range(int(rest))]
        return rest

    def is_ready(self):
        return self.call("PING") == "PONG"

    def claim(self, queue):
        reply = self.call("XREADGROUP", "GROUP", "workers", "first", "COUNT", "1", "STREAMS", queue,
                          ">")
        return reply[0][1][0][1][1] if reply else None

    def stored(self, queue):
        return int(self.call("XLEN", queue))
