"""The connections of the crash test's clients: what is under way on each, and what the journal is
told of it. One speaks HTTP, one request at a time; one the beanstalk protocol, several at once."""

import json
import socket
import time
from collections import deque

from beanstalk_client import WITH_CHUNK, flat_yaml
from ids import job_id_of
from journal import brief, briefly, outcome_of, payload_in

# A lease that may be over by the time at which it is known says nothing for certain.
DOUBT_SECONDS = 0.1


class Link:
    """One client's connection. `door` is which of the server's."""

    door = "http"

    def __init__(self, client, journal):
        self.client = client
        self.journal = journal
        self.requests = client.requests()
        self.next = next(self.requests)  # to be sent
        self.socket = None
        self.server = 0  # which start of it the connection is to
        self.sent_at = 0.0
        self.rests_until = 0.0
        self.outgoing = b""
        self.incoming = bytearray()

    def connect(self, port, server):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=1)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.server = server
        self.outgoing = b""
        self.incoming.clear()

    def close(self):
        self.socket.close()
        self.socket = None

    def is_ready(self):
        return not self.is_busy and time.monotonic() >= self.rests_until


class HttpLink(Link):
    def __init__(self, client, journal):
        super().__init__(client, journal)
        self.number = 0  # of the request under way; 0: none

    @property
    def is_busy(self):
        return self.number != 0

    def begin(self):
        """Notes the next request, and makes it ready to be sent after a sync."""
        self.number = self.journal.begin(self.next.kind, self.next.queue,
                                         for_the_journal(self.next.body))
        self.outgoing = encode(self.next)

    def receive(self, data):
        """Whether the connection stays."""
        self.incoming += data
        reply = self.take_reply()
        if reply is None:
            return True
        status, body, stays = reply
        self.journal.replied(self.number, status, for_the_journal(body))
        self.go_on(body if outcome_of(status, body) == "replied" else None)
        return stays

    def take_reply(self):
        """(status, JSON, whether the connection stays) once it is there whole."""
        end = self.incoming.find(b"\r\n\r\n")
        if end < 0:
            return None
        status_line, *lines = bytes(self.incoming[:end]).decode("latin-1").split("\r\n")
        headers = {name.strip().lower(): value.strip()
                   for name, _, value in (line.partition(":") for line in lines)}
        size = int(headers["content-length"])
        if len(self.incoming) < end + 4 + size:
            return None
        body = bytes(self.incoming[end + 4:end + 4 + size])
        del self.incoming[:end + 4 + size]
        stays = headers.get("connection", "").lower() != "close"
        return int(status_line.split(" ")[1]), json.loads(body), stays

    def go_on(self, reply):
        self.number = 0
        self.next = self.requests.send(reply)

    def gone(self):
        """Whether the server has done what it was asked is not known."""
        if self.number:
            self.journal.lost(self.number)
            self.go_on(None)


def encode(request):
    body = json.dumps(request.body).encode()
    return (f"POST {request.path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            ).encode() + body


def for_the_journal(body):
    return body | {"jobs": briefly(body["jobs"])} if "jobs" in body else body


class TubeLink(Link):
    """The client yields lists of commands, which leave together, each with its own entry in the
    journal, and is given the list of their replies, None for those that did not come. A reserve is
    answered when stats-job has told what the protocol does not say of a job that it gives out."""

    door = "tube"

    def __init__(self, client, journal):
        super().__init__(client, journal)
        self.expected = deque()  # what takes the next replies, in their order
        self.pending = {}  # the numbers of commands that are under way, with their places
        self.replies = []

    @property
    def is_busy(self):
        return bool(self.pending)

    def connect(self, port, server):
        super().connect(port, server)
        self.expected.clear()
        self.client.connected()
        self.outgoing = self._ahead(self.client.greeting())

    def _ahead(self, lines):
        """Text of commands whose replies nobody needs."""
        self.expected.extend([lambda line, chunk: None] * len(lines))
        return b"".join(line.encode() + b"\r\n" for line in lines)

    def begin(self):
        self.replies = [None] * len(self.next)
        for place, command in enumerate(self.next):
            number = self.journal.begin(command.kind, command.queue, command.body, self.door)
            self.pending[number] = place
            if command.tube:
                self.outgoing += self._ahead([f"use {command.tube}"])
            self.outgoing += command.text
            self.expected.append(self._taker(number, command, time.time()))

    def hang_up(self):
        """Notes that the connection ends, before it does or as soon as it was seen; from then on
        others may have what it held."""
        leases = [{"token": lease.token} for lease in self.client.leave()]
        if leases:
            self.journal.lost(self.journal.begin("hang_up", "", {"leases": leases}, self.door))

    def _taker(self, number, command, sent):
        def take(line, chunk):
            word, *words = line.split(" ")
            if word == "RESERVED":
                job = int(words[0])
                self.outgoing += f"stats-job {job}\r\n".encode()
                self.expected.append(lambda line, stats: self._learn(
                    number, job, chunk, flat_yaml(stats) if stats else None, sent))
                return
            reply = command.read(word, words)
            if reply is None:
                # INTERNAL_ERROR: it does not know, so nobody does.
                self.client.doubts = True
            self.journal.replied(number, 500 if reply is None else 200, reply or {"line": line})
            self._settle(number, reply)

        return take

    def _learn(self, number, job, body, stats, sent):
        held = stats is not None and stats["state"] == "reserved"
        seconds = stats["ttr"] if stats else 1
        if time.time() - sent > seconds - DOUBT_SECONDS:
            # Its time may have run out, and what was told may be of another lease.
            self.client.doubts = True
            self.journal.lost(number)
            return self._settle(number, None)
        delivered = {"id": job_id_of(job), "payload": brief(payload_in(body)), "held": held}
        if held:
            token = f"{self.client.name}-{number}"
            delivered |= {"token": token, "queue": stats["tube"], "attempts": stats["reserves"],
                          "priority": stats["pri"], "ttr": stats["ttr"]}
            self.client.holds(job, delivered)
        self.journal.replied(number, 200, {"jobs": [delivered]})
        self._settle(number, {"jobs": [delivered]})

    def _settle(self, number, reply):
        self.replies[self.pending.pop(number)] = reply
        if not self.pending:
            self._go_on()

    def _go_on(self):
        self.next = self.requests.send(self.replies)
        if self.client.rests:
            self.rests_until, self.client.rests = time.monotonic() + self.client.rests, 0

    def receive(self, data):
        self.incoming += data
        while self.expected and (reply := self._take_reply()) is not None:
            self.expected.popleft()(*reply)
        return True

    def _take_reply(self):
        """(line, chunk) once it is there whole."""
        end = self.incoming.find(b"\r\n")
        if end < 0:
            return None
        line, chunk, size = self.incoming[:end].decode(), None, end + 2
        if line.split(" ")[0] in WITH_CHUNK:
            size += int(line.rpartition(" ")[2]) + 2
            if len(self.incoming) < size:
                return None
            chunk = bytes(self.incoming[end + 2:size - 2])
        del self.incoming[:size]
        return line, chunk

    def gone(self):
        for number in self.pending:
            self.journal.lost(number)
        self.hang_up()
        if not self.pending:
            # What it was going to send was for leases of this connection.
            self.replies = [None] * len(self.next)
        self.pending.clear()
        self._go_on()
