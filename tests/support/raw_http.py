"""Bytes over a socket: requests that no HTTP library would send, streams it would buffer."""

import json
import socket
from typing import NamedTuple

from reprise_http import Reply


class RawConnection:
    """A connection that sends what it is told and reads replies one by one."""

    def __init__(self, port, host="127.0.0.1", timeout=10, receive_buffer=None, source=None):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.socket = socket.socket(family)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if source:
            self.socket.bind((source, 0))
        self.socket.settimeout(timeout)
        self.socket.connect((host, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)
        return self

    def _fill(self):
        """False at the end of the stream."""
        try:
            data = self.socket.recv(65536)
        except ConnectionResetError:
            data = b""
        self.buffer += data
        return bool(data)

    def line(self, end=b"\n"):
        """The next line without its end; None when the peer has closed."""
        while end not in self.buffer:
            if not self._fill():
                return None
        line, self.buffer = self.buffer.split(end, 1)
        return line

    def exactly(self, count):
        while len(self.buffer) < count:
            if not self._fill():
                raise AssertionError(f"closed after {len(self.buffer)} of {count} bytes")
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def head(self):
        """(status, headers) of the next reply; None when the peer has closed instead."""
        first = self.line(b"\r\n")
        if first is None:
            return None
        version, status = first.split(b" ", 2)[:2]
        assert version in (b"HTTP/1.1", b"HTTP/1.0"), first
        headers = []
        while line := self.line(b"\r\n"):
            name, value = line.decode("latin-1").split(":", 1)
            headers.append((name, value.strip()))
        return int(status), headers

    def reply(self, method="GET"):
        """The next final reply, whole; None when the peer has closed instead."""
        while head := self.head():
            status, headers = head
            if status >= 200:
                return Reply(status, headers, self._body(method, status, headers))
        return None

    def _body(self, method, status, headers):
        fields = {name.lower(): value for name, value in headers}
        if method == "HEAD" or status in (204, 304):
            return b""
        assert fields.get("content-type") != "text/event-stream", "a stream has no end to wait for"
        if fields.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(self.line(b"\r\n"), 16):
                body += self.exactly(size)
                self.exactly(2)
            self.exactly(2)
            return body
        return self.exactly(int(fields.get("content-length", 0)))

    def replies(self):
        """Every reply until the peer closes, or until it keeps quiet for the timeout."""
        found = []
        try:
            while reply := self.reply():
                found.append(reply)
        except TimeoutError:
            pass
        return found

    def closed_by_peer(self):
        """Waits for the end of the stream."""
        while self._fill():
            pass
        return True


def message(method, path, body=b"", headers=(), host="localhost"):
    """A plain request as bytes."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *headers]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def push_message(queue, payload):
    """A whole push as bytes, to be hidden inside something else."""
    body = json.dumps({"jobs": [{"payload": payload}]}).encode()
    return message("POST", queue.path("/push"), body, ["Content-Type: application/json"])


class Event(NamedTuple):
    type: str
    id: int | None
    data: dict


class EventStream:
    """A reader of GET /v1/events."""

    def __init__(self, port, query="", last_event_id=None, timeout=10, receive_buffer=None):
        self.connection = RawConnection(port, timeout=timeout, receive_buffer=receive_buffer)
        headers = ["Accept: text/event-stream"]
        if last_event_id is not None:
            headers.append(f"Last-Event-ID: {last_event_id}")
        self.connection.send(message("GET", "/v1/events" + query, headers=headers))
        head = self.connection.head()
        assert head, "the server closed the connection"
        self.status = head[0]
        self.headers = {name.lower(): value for name, value in head[1]}
        self.chunked = self.headers.get("transfer-encoding") == "chunked"
        self.text = b""
        self.comments = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def _more(self):
        if not self.chunked:
            assert self.connection.buffer or self.connection._fill(), "the stream ended"
            self.text += self.connection.buffer
            self.connection.buffer = b""
            return
        size = self.connection.line(b"\r\n")
        assert size is not None, "the stream ended"
        size = int(size, 16)
        assert size, "the stream ended"
        self.text += self.connection.exactly(size)
        self.connection.exactly(2)

    def _block(self):
        while b"\n\n" not in self.text:
            self._more()
        block, self.text = self.text.split(b"\n\n", 1)
        return block.decode()

    def next(self):
        """The next event; comments are counted and skipped."""
        while True:
            fields = {}
            for line in self._block().split("\n"):
                name, _, value = line.partition(":")
                if name == "" and line:
                    self.comments += 1
                elif name:
                    fields[name] = value.removeprefix(" ")
            if "data" in fields:
                number = int(fields["id"]) if "id" in fields else None
                return Event(fields.get("event", "message"), number, json.loads(fields["data"]))

    def take(self, count):
        return [self.next() for _ in range(count)]

    def next_comment(self):
        """Returns when a comment has come that had not come before."""
        seen = self.comments
        while self.comments == seen:
            for line in self._block().split("\n"):
                self.comments += line.startswith(":")
