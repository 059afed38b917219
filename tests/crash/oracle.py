"""The clients of the crash test: a process of its own that loads a server, notes all that it knows
in a journal, and goes on while the server is killed and started again.

It is told on its standard input, a line each:
  up PORT    a server serves there; once a connection to it breaks, it is gone
  drain      no more load: claim and ack what there is
and ends at the end of its input, when the requests that are under way are answered.
"""

import argparse
import json
import os
import selectors
import socket
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from journal import Journal, briefly, outcome_of  # noqa: E402
from workload import Client, Shared  # noqa: E402

ANSWER_SECONDS = 30  # a server that lives answers sooner, whatever else goes on
TURN_SECONDS = 0.02


class Link:
    """One client's connection, and the request that is under way on it."""

    def __init__(self, client):
        self.requests = client.requests()
        self.next = next(self.requests)  # to be sent
        self.socket = None
        self.server = 0  # which start of it the connection is to
        self.number = 0  # of the request under way; 0: none
        self.sent_at = 0.0
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


def encode(request):
    body = json.dumps(request.body).encode()
    return (f"POST {request.path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            ).encode() + body


def for_the_journal(body):
    return body | {"jobs": briefly(body["jobs"])} if "jobs" in body else body


class Oracle:
    def __init__(self, journal, shared, clients, seed):
        self.journal = journal
        self.shared = shared
        self.links = [Link(Client(shared, number, seed)) for number in range(clients)]
        self.port = None  # None: it is down
        self.server = 0
        self.ending = False
        self.selector = selectors.DefaultSelector()
        os.set_blocking(sys.stdin.fileno(), False)
        self.selector.register(sys.stdin, selectors.EVENT_READ, None)
        self.orders = b""

    def run(self):
        while not (self.ending and not any(link.number for link in self.links)):
            if not self.ending:
                self.send_next_requests()
            for key, events in self.selector.select(TURN_SECONDS):
                if key.data is None:
                    self.read_orders()
                elif key.data.socket is not None:
                    self.serve(key.data, events)
            self.check_answers_come()
        self.journal.sync()

    def read_orders(self):
        data = os.read(sys.stdin.fileno(), 4096)
        if not data:
            self.ending = True
            self.selector.unregister(sys.stdin)
        self.orders += data
        *lines, self.orders = self.orders.split(b"\n")
        for line in lines:
            order, *words = line.decode().split()
            if order == "up":
                self.server += 1
                self.port = int(words[0])
                self.shared.restarts += 1
            elif order == "drain":
                self.shared.draining = True

    def send_next_requests(self):
        """One sync for all of them."""
        ready = [link for link in self.links if not link.number and self.connected(link)]
        for link in ready:
            request = link.next
            link.number = self.journal.begin(request.kind, request.queue,
                                             for_the_journal(request.body))
            link.outgoing = encode(request)
        self.journal.sync()
        for link in ready:
            link.sent_at = time.monotonic()
            self.write(link)

    def connected(self, link):
        if link.socket is None and self.port is not None:
            try:
                link.connect(self.port, self.server)
            except OSError:
                self.port = None
                return False
            self.selector.register(link.socket, selectors.EVENT_READ, link)
        return link.socket is not None

    def serve(self, link, events):
        if events & selectors.EVENT_WRITE:
            self.write(link)
        if events & selectors.EVENT_READ and link.socket is not None:
            self.read(link)

    def write(self, link):
        try:
            link.outgoing = link.outgoing[link.socket.send(link.outgoing):]
        except BlockingIOError:
            pass
        except OSError:
            return self.gone(link)
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if link.outgoing else 0)
        self.selector.modify(link.socket, wanted, link)

    def read(self, link):
        try:
            data = link.socket.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            return self.gone(link)
        link.incoming += data
        reply = link.take_reply()
        if reply is not None:
            self.answered(link, *reply)

    def answered(self, link, status, reply, stays):
        noted = for_the_journal(reply)
        self.journal.replied(link.number, status, noted)
        link.number = 0
        link.next = link.requests.send(reply if outcome_of(status, reply) == "replied" else None)
        if not stays:
            self.disconnect(link)

    def gone(self, link):
        """The server has ended: whether it has done what it was asked is not known."""
        if link.server == self.server:
            self.port = None
        self.disconnect(link)
        if link.number:
            self.journal.lost(link.number)
            link.number = 0
            link.next = link.requests.send(None)

    def disconnect(self, link):
        self.selector.unregister(link.socket)
        link.close()

    def check_answers_come(self):
        now = time.monotonic()
        for link in self.links:
            if link.number and now - link.sent_at > ANSWER_SECONDS:
                sys.exit(f"no answer to request {link.number} within {ANSWER_SECONDS} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--journal", required=True)
    parser.add_argument("--prefix", default="", help="of the names of the queues")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seed", required=True)
    args = parser.parse_args()
    Oracle(Journal(args.journal), Shared(args.prefix), args.clients, args.seed).run()


if __name__ == "__main__":
    main()
