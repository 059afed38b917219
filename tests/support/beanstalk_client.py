"""The beanstalk protocol over a socket: bytes out, one reply at a time back, nothing hidden."""

import socket
from pathlib import Path
from typing import NamedTuple

from waiting import eventually

TIMEOUT_SECONDS = 20
# Replies whose line ends with the size of a chunk that follows.
WITH_CHUNK = ("RESERVED", "FOUND", "OK")


class Reply(NamedTuple):
    line: str
    body: bytes | None = None

    @property
    def word(self):
        return self.line.split(" ")[0]

    @property
    def number(self):
        """The id of a job, or a count."""
        return int(self.line.split(" ")[1])


class Job(NamedTuple):
    id: int
    body: bytes


def put_text(body, pri=1024, delay=0, ttr=60):
    return b"put %d %d %d %d\r\n%s\r\n" % (pri, delay, ttr, len(body), body)


def flat_yaml(text):
    """The only two kinds of YAML there are here: `name: value` lines, or a list of names."""
    lines = text.decode().split("\n")
    assert lines[0] == "---" and lines[-1] == "", f"not the YAML of the protocol: {text!r}"
    if all(line.startswith("- ") for line in lines[1:-1]):
        return [line.removeprefix("- ") for line in lines[1:-1]]
    pairs = [line.split(": ", 1) for line in lines[1:-1]]
    assert all(len(pair) == 2 for pair in pairs), f"not the YAML of the protocol: {text!r}"
    assert len(dict(pairs)) == len(pairs), f"a name occurs twice: {text!r}"
    return {name: int(value) if value.isdigit() else value for name, value in pairs}


class Beanstalk:
    """One connection. It sends what it is told, split as it is told."""

    def __init__(self, port, host="127.0.0.1", timeout=TIMEOUT_SECONDS):
        self.socket = socket.create_connection((host, port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data.encode() if isinstance(data, str) else data)
        return self

    def end_sending(self):
        self.socket.shutdown(socket.SHUT_WR)

    def _fill(self):
        """False at the end of the stream."""
        # beanstalkd holds back the rest of its replies until it is told that the first has come.
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        try:
            data = self.socket.recv(1 << 20)
        except ConnectionResetError:
            data = b""
        self.buffer += data
        return bool(data)

    def _exactly(self, count):
        while len(self.buffer) < count:
            assert self._fill(), f"closed after {len(self.buffer)} of {count} bytes"
        data = bytes(self.buffer[:count])
        del self.buffer[:count]
        return data

    def line(self):
        """The next line without its end; None when the peer has closed."""
        while (end := self.buffer.find(b"\r\n")) < 0:
            if not self._fill():
                assert not self.buffer, f"closed within a line: {bytes(self.buffer)!r}"
                return None
        return self._exactly(end + 2)[:-2].decode()

    def reply(self):
        """The next reply, whole; None when the peer has closed instead."""
        line = self.line()
        if line is None:
            return None
        words = line.split(" ")
        if words[0] not in WITH_CHUNK:
            return Reply(line)
        chunk = self._exactly(int(words[-1]) + 2)
        assert chunk[-2:] == b"\r\n", f"the chunk of {line!r} does not end where it says"
        return Reply(line, chunk[:-2])

    def replies(self, count):
        return [self.reply() for _ in range(count)]

    def lines(self, count):
        return [reply.line for reply in self.replies(count)]

    def quiet(self, seconds):
        """Whether nothing comes for so long."""
        self.socket.settimeout(seconds)
        try:
            return not self.buffer and not self._fill()
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(TIMEOUT_SECONDS)

    def closed_by_peer(self):
        """Waits for the end of the stream, where nothing more may come."""
        return self.line() is None

    # Whole commands.

    def ask(self, command, body=None):
        self.send(command.encode() + b"\r\n" + (b"" if body is None else body + b"\r\n"))
        return self.reply()

    def tell(self, command, body=None):
        """The line of the reply."""
        reply = self.ask(command, body)
        return reply and reply.line

    def put(self, body=b"", **fields):
        """The id of a job with this body."""
        reply = self.send(put_text(body, **fields)).reply()
        assert reply.word == "INSERTED", reply
        return reply.number

    def reserve(self, wait=0):
        """The job, or None when there is none in this time."""
        return self._job(self.ask(f"reserve-with-timeout {wait}"), "RESERVED", "TIMED_OUT")

    def reserve_one(self, wait=10):
        job = self.reserve(wait)
        assert job, f"no job within {wait} s"
        return job

    def peek(self, what):
        """peek("ready") or peek(id); None when there is none."""
        command = f"peek-{what}" if isinstance(what, str) else f"peek {what}"
        return self._job(self.ask(command), "FOUND", "NOT_FOUND")

    def _job(self, reply, found, absent):
        if reply.line == absent:
            return None
        assert reply.word == found, reply
        return Job(reply.number, reply.body)

    def yaml(self, command):
        reply = self.ask(command)
        assert reply.word == "OK", reply
        return flat_yaml(reply.body)

    def stats_job(self, job_id):
        return self.yaml(f"stats-job {job_id}")

    def stats_tube(self, tube):
        return self.yaml(f"stats-tube {tube}")

    def state_of(self, job_id):
        """Its state, or None when there is no such job."""
        reply = self.ask(f"stats-job {job_id}")
        return None if reply.line == "NOT_FOUND" else flat_yaml(reply.body)["state"]

    def only(self, tube):
        """Uses and watches this tube and no other."""
        before = self.yaml("list-tubes-watched")
        assert self.tell(f"use {tube}") == f"USING {tube}"
        self.tell(f"watch {tube}")
        for other in before:
            if other != tube:
                self.tell(f"ignore {other}")
        return self

    def read_by_peer(self):
        """Returns once the peer has taken all bytes sent so far out of its socket."""
        eventually(lambda: self._unread_by_peer() == 0, "the peer to read", every=0.0005)

    def _unread_by_peer(self):
        own, peer = ("0100007F:%04X" % address[1] for address in (
            self.socket.getsockname(), self.socket.getpeername()))
        for line in Path("/proc/net/tcp").read_text().splitlines():
            fields = line.split()
            if fields[1:3] == [peer, own]:
                return int(fields[4].split(":")[1], 16)
        raise AssertionError("the connection is gone")
